# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules and scenarios of faults on demand, as far as they need no guest."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError, fault, scenario  # noqa: E402


def schema(name: str) -> dict:
    """A definition of QEMU's schema for qhca."""
    text = re.sub(r"^#.*$", "", (TOP / "qemu-hw/qhca.json").read_text(), flags=re.M)
    for block in re.split(r"\n\s*\n", text):
        if block.strip() and name in block:
            found = ast.literal_eval(block.strip())
            if name in (found.get("struct"), found.get("enum")):
                return found
    raise KeyError(name)


def test_fields_are_those_of_qmp():
    """What a rule can say is what the device understands, and the reverse."""
    known = {key.lstrip("*") for key in schema("QhcaFault")["data"]}
    full = {
        "action": "delay", "at": "packet", "qpn": 1, "peer": 2, "rel-psn": "3-4",
        "opcode": "ACK", "syndrome": 5, "qp-type": "rc", "direction": "in", "kind": "wqe",
        "access": "read", "address": "6-7", "index": "8-9", "skip": 1, "nth": 2, "every": 3,
        "count": 4, "probability": 0.5, "time": "1ms", "packets": 6,
    }  # fmt: skip
    assert set(fault.to_qmp(full)) == known
    assert list(fault.ACTIONS) == schema("QhcaFaultAction")["data"]
    for field, name in (("at", "QhcaFaultAt"), ("kind", "QhcaDmaKind"),
                        ("direction", "QhcaFaultDirection"), ("access", "QhcaFaultAccess")):
        for word in schema(name)["data"]:
            assert fault.to_qmp({"action": "drop", field: word})[field] == word


def test_values():
    assert fault.to_qmp({"action": "drop", "qpn": "0x11", "psn": "5-9", "nth": "2"}) == {
        "action": "drop", "number": 17, "psn": 5, "psn-last": 9, "nth": 2}
    assert fault.to_qmp({"action": "drop", "rel-psn": 7}) == {
        "action": "drop", "psn": 7, "psn-relative": True}
    assert fault.to_qmp({"action": "drop", "opcode": ["ACK", 4]})["opcode"] == "ACK,4"
    for value, ns in (("250us", 250000), ("3ms", 3000000), ("1s", 10**9), (5, 5), ("5", 5)):
        assert fault.to_qmp({"action": "delay", "time": value})["time"] == ns


@pytest.mark.parametrize("rule, complaint", [
    ({}, "action: is missing.*drop"),
    ({"action": "dorp"}, "action: drop, delay.*'dorp'"),
    ({"action": "drop", "qpm": 1}, "qpm: no such field.*qpn"),
    ({"action": "drop", "qpn": "x"}, "qpn: a number"),
    ({"action": "drop", "qpn": True}, "qpn: a number"),
    ({"action": "drop", "qpn": 1, "cqn": 1}, "cqn: only one of"),
    ({"action": "drop", "psn": 1 << 24}, "psn: 16777216 is not 0 to 16777215"),
    ({"action": "drop", "psn": "5-"}, "psn: a number"),
    ({"action": "drop", "psn": 1, "rel-psn": 1}, "rel-psn: only one"),
    ({"action": "drop", "probability": 2}, "probability: 0 to 1"),
    ({"action": "drop", "direction": "up"}, "direction: out, in or both"),
    ({"action": "delay", "time": "2h"}, "time: a time like"),
    ({"action": "delay", "time": -1}, "time: a time like"),
])
def test_mistakes(rule, complaint):
    with pytest.raises(fault.FaultError, match=complaint):
        fault.to_qmp(rule)


def test_scenarios_that_come_with_the_lab():
    assert len(scenario.names()) >= 10
    for name in scenario.names():
        found = scenario.load(name)
        assert found.about != "-" and found.faults and found.run, name
        assert set(found.guests) <= {"a", "b"}


GOOD = """\
about = "x"
seed = 3

[[fault]]
guest = "a"
action = "drop"
nth = 2

[[fault]]
guest = "b"
action = "delay"
time = "1ms"

[trigger]
guest = "a"
counter = "roce-tx-packets"
at-least = 5

[run]
listen = 99
b = "true"
a = "false"
"""


def test_scenario(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(GOOD)
    s = scenario.load(str(path))
    assert (s.name, s.about, s.seed, s.listen) == ("s", "x", 3, 99)
    assert s.faults == [("a", {"action": "drop", "nth": 2}, 6),
                        ("b", {"action": "delay", "time": "1ms"}, 11)]
    assert s.run == [("b", "true"), ("a", "false")] and s.guests == ["a", "b"]
    assert (s.trigger.guest, s.trigger.at_least) == ("a", 5)


@pytest.mark.parametrize("old, new, complaint", [
    ("seed = 3", "seed = x", r"s\.toml:2: not TOML"),
    ("seed = 3", 'seed = "3"', r"s\.toml:2: seed: a number is wanted"),
    ("about", "abuot", r"s\.toml:1: abuot: no such field; there are about"),
    ("nth = 2", "nht = 2", r"s\.toml:7: nht: no such field.*nth"),
    ('time = "1ms"', 'time = "1h"', r"s\.toml:12: time: a time like"),
    ('action = "delay"', 'action = "dealy"', r"s\.toml:11: action: .*delay"),
    ('guest = "b"\naction', "action", r"s\.toml:9: guest: which guest"),
    ('counter = "roce-tx-packets"', "", r"s\.toml:14: \[trigger\] has no counter"),
    ("at-least = 5", "at-least = true", r"s\.toml:17: at-least: a number"),
    ('a = "false"', 'aa = "false"', r"s\.toml:22: aa: no guest"),
    ('b = "true"', "b = 3", r"s\.toml:21: b: a text is wanted"),
])
def test_scenario_mistakes(tmp_path, old, new, complaint):
    path = tmp_path / "s.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(LabError, match=complaint):
        scenario.load(str(path))


def test_no_such_scenario():
    with pytest.raises(LabError, match="there are .*lost-ack"):
        scenario.load("lost-akc")
    with pytest.raises(LabError, match="no file"):
        scenario.load("./none.toml")


def test_command_line(tmp_path):
    def lab(*words):
        return subprocess.run([str(TOP / "lab/qhca-lab"), "--name", "none", *words],
                              capture_output=True, text=True, check=False)

    assert "lost-ack" in lab("fault", "scenarios").stdout
    assert lab("fault", "check", "lost-ack", "dead-peer").returncode == 0
    path = tmp_path / "s.toml"
    path.write_text(GOOD.replace("nth", "nht"))
    wrong = lab("fault", "check", str(path))
    assert wrong.returncode == 125 and f"{path}:7: nht: no such field" in wrong.stderr
    assert "lab none is not up" in lab("fault", "add", "a", "drop", "--nth", "2").stderr
    assert lab("fault", "list", "--", "x").returncode == 2

# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules and scenarios of injected faults, as far as they need no guest."""

import contextlib
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError, fault, scenario  # noqa: E402
from qhca_lab.qmp import QmpError  # noqa: E402


def test_command_line_values():
    """Numbers, units, ranges and flags; QEMU interprets keys and words."""
    rule = {"action": "delay", "number": 17, "psn": 5, "psn-last": 9, "psn-relative": True,
            "opcode": "read-response", "time": 250000, "probability": 0.5}
    for text in ("delay,number=0x11,psn=5-9,psn-relative=on,opcode=read-response,time=250us,"
                 "probability=.5", f"action={fault.text(rule)}"):
        assert fault.parse(text) == rule
    for value, number in (("3ms", 3000000), ("1s", 10**9), ("5ns", 5), ("5", 5), ("007", 7)):
        assert fault.parse(f"delay,time={value}") == {"action": "delay", "time": number}
    assert fault.parse("dorp,address=0x10-0x1f,x=2h,y=5-,z=-1,off=off") == {
        "action": "dorp", "address": 16, "address-last": 31, "x": "2h", "y": "5-", "z": "-1",
        "off": False}
    with pytest.raises(LabError, match="'17' is not KEY=VALUE"):
        fault.parse("drop,17")


class Refusal:
    """A guest whose QEMU refuses all rules with this message."""

    def __init__(self, name: str, text: str):
        self.name, self.nic, self.text = name, "qhca", text

    @contextlib.contextmanager
    def qmp(self):
        yield self

    def command(self, name: str, _arguments: dict):
        raise QmpError(name, {"desc": self.text})


@pytest.mark.parametrize("text, key, shown", [
    ("Parameter 'fault.nht' is unexpected", "nht", "Parameter 'nht' is unexpected"),
    ("'psn' has 24 bits: 0 to 16777215", "psn", None),
    ("there are 64 faults already: remove one", "", None),
])
def test_refused(text, key, shown):
    with pytest.raises(fault.FaultError, match=f"^{re.escape(shown or text)}$") as error:
        fault.add(Refusal("a", text), {"action": "drop"})
    assert error.value.key == key


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
time = 1_000_000

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
    assert s.faults == [
        ("a", {"action": "drop", "nth": 2}, {"action": 6, "nth": 7}),
        ("b", {"action": "delay", "time": 1000000}, {"action": 11, "time": 12})]
    assert s.run == [("b", "true"), ("a", "false")] and s.guests == ["a", "b"]
    assert (s.trigger.guest, s.trigger.at_least) == ("a", 5)


@pytest.mark.parametrize("old, new, complaint", [
    ("seed = 3", "seed = x", r"s\.toml:2: not TOML"),
    ("seed = 3", 'seed = "3"', r"s\.toml:2: seed: a number is wanted"),
    ("about", "abuot", r"s\.toml:1: abuot: no such field; there are about"),
    ("nth = 2", "nth = 2024-01-01", r"s\.toml:7: nth: a word, a number"),
    ("time = 1_000_000", "time = [1]", r"s\.toml:12: time: a word, a number"),
    ("time = 1_000_000", "time = inf", r"s\.toml:12: time: a word, a number"),
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


@pytest.mark.parametrize("text, line", [
    ("Parameter 'fault.time' is unexpected", 12), ("Parameter 'fault.action' is missing", 11),
    ("out of memory", 11),
])
def test_refused_scenario(tmp_path, text, line):
    """QEMU's refusals are reported with the line."""
    path = tmp_path / "s.toml"
    path.write_text(GOOD)
    s = scenario.load(str(path))
    with pytest.raises(LabError, match=rf"s\.toml:{line}: {text.replace('fault.', '')}"):
        scenario.set_faults({"b": Refusal("b", text)},
                            dataclasses.replace(s, faults=s.faults[1:]))


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
    path.write_text(GOOD.replace("seed", "sede"))
    wrong = lab("fault", "check", str(path))
    assert wrong.returncode == 125 and f"{path}:2: sede: no such field" in wrong.stderr
    assert "lab none is not up" in lab("fault", "add", "a", "drop,nth=2").stderr
    assert lab("fault", "list", "--", "x").returncode == 2

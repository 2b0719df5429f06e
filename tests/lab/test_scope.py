# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/qhca-scope's command line, with simulated adapters."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from fake_adapter import EVENTS, Refuse, make_lab  # noqa: E402
from qhca_scope import Scope, TookTooLong, cli, parsing, render, sync_daemon  # noqa: E402
from qhca_scope.style import Style  # noqa: E402
from qhca_scope.errors import Usage  # noqa: E402

PROGRAM = TOP / "lab" / "qhca-scope"


@pytest.fixture
def base(monkeypatch):
    """A short private place for labs; the environment sets nothing else."""
    base = Path(tempfile.mkdtemp(prefix="qs", dir="/tmp"))
    monkeypatch.setenv("QHCA_RUN", str(base))
    monkeypatch.delenv("QHCA_LAB", raising=False)
    yield base
    shutil.rmtree(base, ignore_errors=True)     # the cleanup may still write its log


@pytest.fixture
def lab(base):
    """Two adapters, "a" and "b"; the daemon ends with them."""
    adapters = make_lab("one", base)
    yield adapters
    for adapter in adapters.values():
        adapter.close()


@pytest.fixture
def scope(lab, capsys):
    """scope(...): (exit status, output)."""
    def run(*argv):
        try:
            status = cli.main([str(a) for a in argv])
        except SystemExit as end:       # argparse
            status = end.code
        said = capsys.readouterr()
        return status, said.out + said.err
    return run


@pytest.fixture
def answer(scope):
    """answer(...): the command's JSON output."""
    def run(*argv):
        status, text = scope("--json", *argv)
        assert status == 0, text
        return json.loads(text)
    return run


def until(condition, what):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"not within 120 s: {what}"
        time.sleep(0.01)


# ------------------------------------------------------------ looks as text


def test_list_and_one(scope):
    status, text = scope("qp")
    assert status == 0
    head, *rows = text.splitlines()[1:]
    assert head.split() == ["qpn", "state"]
    assert [r.split() for r in rows] == [["17", "RTS"], ["18", "RTS"]]
    status, text = scope("qp", 17)
    lines = [line.split() for line in text.splitlines()]
    assert ["state", "RTS"] in lines and ["dgid", "::ffff:10.99.0.2"] in lines
    assert ["access", "LOCAL_WRITE|REMOTE_WRITE", "(0x7)"] in lines
    assert "0000  01 02" not in text
    assert "0000  01 02" in scope("qp", "0x11", "--raw")[1]


def test_a_kind_nobody_told_of(scope, answer):
    """Everything in the device's schema is a command."""
    assert scope("novelty")[0] == 0
    assert answer("novelty", 2)["look"]["context"] == {"shine": 4}


def test_ring(scope, answer):
    status, text = scope("ring", "qp", 17, "sq")
    assert status == 0
    rows = {line.split()[1]: line for line in text.splitlines() if ">" in line}
    assert set(rows) == {"9", "10", "12"}
    assert rows["9"].startswith("C>") and rows["10"].startswith("N>")
    assert rows["12"].startswith("P>") and "in-flight" in rows["9"]
    assert "[{addr=0x7f00 len=64 lkey=0x1a02}]" in rows["9"]
    seen = answer("ring", "qp", 17, "sq", "--from", 3, "--count", 2)["look"]["entries"]
    assert [e["index"] for e in seen] == [3, 4]
    assert len(answer("ring", "qp", 17, "--count", 5)["look"]["entries"]) == 5


def test_walk(scope, answer):
    status, text = scope("walk", "qp", 17, "sq", 10)
    assert status == 0
    for part in ("slot 10", "offset 0x280", "TREE, 2 hops", "▶ [0]", "▶ [1]", "│ [0]",
                 "page 0x22000", "DMA address 0x22280", "68 65 6c 6c 6f", "hello"):
        assert part in text, part
    assert answer("walk", "mr", "0x1a02", "--va", "0x7f0000001000")["look"]["va"] == 0x7F0000001000


def test_walk_asks_what_is_said(scope, lab):
    scope("walk", "qp", 17, "sq", 10, "--entries", 4, "--bytes", 16)
    assert lab["a"].asked("qhca-walk") == [
        {"object": "qp", "number": 17, "ring": "sq", "index": 10, "entries": 4, "bytes": 16}]


def test_tree(scope, answer):
    status, text = scope("tree", "qp", 17, "sq")
    assert status == 0
    lines = [line.rstrip() for line in text.splitlines()]
    assert "└─ [0] → table 0x11000  page 0" in lines
    assert "   ├─ [1] → page 0x22000  page 1" in lines
    assert "   └─ [2] not valid  page 2" in lines
    assert "there are more" in scope("tree", "qp", 17, "--count", 1)[1]
    assert answer("tree", "qp", 17)["look"]["pages"] == 3


def test_counters(scope, answer):
    status, text = scope("counters")
    assert "roce-tx-packets" in text and "roce-rx-packets" not in text
    assert answer("counters", "rx") == {"counters": {
        g: {"roce-rx-packets": 0} for g in "ab"}}
    assert list(answer("counters", "--all", "--guest", "b")["counters"]) == ["b"]


def test_ls(scope, answer, lab):
    lab["b"].state = "paused"
    status, text = scope("ls")
    assert status == 0 and "frozen" in text and "running" in text
    seen = answer("ls")
    assert seen["guests"]["a"]["objects"]["qp"] == 2 and seen["guests"]["b"]["run"] == "paused"


def test_names(scope, answer):
    assert "RC SEND_ONLY" in scope("names", "packet-in")[1]
    assert answer("names")["events"] == EVENTS


def test_json_of_every_look_is_the_devices(answer):
    for command in (["qp"], ["qp", 17], ["ring", "qp", 17], ["walk", "qp", 17, 3], ["stop"]):
        seen = answer(*command)
        assert seen["guest"] == "a" and seen["time"] == 123456789 and "look" in seen


def test_one_value(scope):
    assert scope("--get", "look.context.state_name", "qp", 17) == (0, "RTS\n")
    assert scope("ring", "qp", 17, "--get", "look.entries.1.wr_id") == (0, "265\n")
    assert json.loads(scope("qp", 17, "--get", "look.context.av")[1])["sgid_index"] == 1
    status, text = scope("qp", 17, "--get", "look.context.colour")
    assert status == 2 and "there are: " in text and "dest_qpn" in text


def test_many_objects_are_asked_in_pieces(answer, lab):
    lab["a"].qps = {n: {} for n in range(1, 700)}
    assert len(answer("qp")["look"]["objects"]) == 699
    assert len(lab["a"].asked("qhca-inspect")) >= 3
    seen = answer("qp", "--limit", 10)["look"]
    assert len(seen["objects"]) == 10 and seen["more"]


# ------------------------------------------------------------------- errors


@pytest.mark.parametrize("argv, status, said", [
    (["qp", "99"], 3, "there are: 17, 18"),
    (["srq", "1"], 3, "it has no srq at all"),
    (["ring", "qp", "99"], 3, "there are: 17, 18"),
    (["walk", "qp", "99", "1"], 3, "there are: 17, 18"),
    (["nonsense"], 2, "kinds: device, qp, "),
    (["qp", "seventeen"], 2, "give it as 17 or 0x11"),
    (["qp", "99999999999"], 2, "too big"),
    (["qp", "1", "2"], 2, "one number is enough"),
    (["mcg", "1"], 2, "omit the number"),
    (["ring", "qp"], 2, "for example: qp 17 sq"),
    (["ring", "qp", "17", "xq"], 2, "there are: sq, rq, cq"),
    (["ring", "gid", "1"], 2, "rings are sq and rq of a qp"),
    (["walk", "qp", "17", "sq"], 2, "one of an index, --offset and --va"),
    (["walk", "qp", "17", "3", "--offset", "3"], 2, "one of an index"),
    (["walk", "qp", "17", "--offset", "x"], 2, "not a number"),
    (["walk", "qp", "17", "3", "--entries", "5000"], 2, "too big"),
    (["break", "doorbel"], 2, "there are: doorbell, wqe"),
    (["break", "doorbell", "--psn", "1"], 2, "chosen by number, peer, index, code"),
    (["break", "wqe", "--cqn", "2"], 2, "it can be chosen by --qpn"),
    (["break", "cqe", "--qpn", "2", "--peer", "3"], 2, "--qpn is given twice"),
    (["break", "wqe", "--opcode", "SING"], 2, "there are: RDMA_READ, SEND"),
    (["break", "packet-in", "--opcode", "SEND_ONLY"], 2, "RC_SEND_ONLY, UC_SEND_ONLY"),
    (["break", "packet-in", "--syndrome", "NAK"], 2, "give a number"),
    (["delete", "7"], 1, "there is no break 7"),
    (["delete"], 2, "scope breaks lists them"),
    (["step"], 1, "scope break wqe --once"),
    (["step", "nonsense"], 2, "there are: doorbell"),
    (["step", "-n", "0"], 2, "at least 1"),
    (["step", "--timeout", "-1"], 2, "not a number of seconds"),
    (["wait", "--timeout", "0.05"], 4, "no stop within 0.05 s"),
    (["names", "nonsense"], 2, "there are: doorbell"),
    (["counters", "nonsense"], 2, "scope counters --all"),
    (["--guest", "z", "qp"], 1, "it has a, b"),
    (["--lab", "two", "qp"], 1, "up are: one"),
])
def test_errors_say_what_to_do(scope, argv, status, said):
    got, text = scope(*argv)
    assert got == status and said in text, text
    assert "Traceback" not in text
    if got != 2 or "usage:" not in text:
        got, text = scope("--json", *argv)
        message = json.loads(text)
        assert got == status and message["error"] and said in message["error"] + message["hint"]


def test_no_lab(base, capsys):
    assert cli.main(["qp"]) == 1
    assert "lab/qhca-lab up" in capsys.readouterr().err


def test_several_labs(lab, base, capsys, monkeypatch):
    more = make_lab("two", base)
    assert cli.main(["ls"]) == 1
    assert "one, two" in capsys.readouterr().err
    monkeypatch.setenv("QHCA_LAB", "two")
    assert cli.main(["--json", "ls"]) == 0
    assert json.loads(capsys.readouterr().out)["lab"] == "two"
    for adapter in more.values():
        adapter.close()


def test_guests_without_adapter(base, capsys):
    """The default is the first guest with a qhca; one without cannot be selected."""
    adapters = make_lab("mix", base, nics=("rxe", "qhca:max_qp=64"))
    assert cli.main(["--json", "qp"]) == 0
    assert json.loads(capsys.readouterr().out)["guest"] == "b"
    assert cli.main(["--guest", "a", "qp"]) == 1
    assert "choose one of b" in capsys.readouterr().err
    for adapter in adapters.values():
        adapter.close()


def test_an_older_qemu(scope, lab):
    del lab["a"].answers["qhca-query-names"]
    status, text = scope("names")
    assert status == 1 and "older than this tool" in text and "make qemu" in text


def test_qemu_that_ends(scope, lab):
    lab["a"].answers["qhca-inspect"] = lambda _a: lab["a"].close()
    status, text = scope("qp")
    assert status == 1 and "QEMU closed" in text


# --------------------------------------------------------- breaks and steps


def test_break_conditions(scope, answer, lab):
    """Names become codes; what is listed has names again."""
    assert answer("break", "doorbell", "--qpn", 17, "--once")["id"] == 1
    scope("break", "packet-in", "--opcode", "rc send-only", "--psn", "0x64", "--peer", 18)
    scope("break", "wqe", "--code", 4, "--wr-id", 0xFEDCBA9876543210, "--ignore", 3,
          "--syndrome", "key_pd")
    assert [a["condition"] for a in lab["a"].asked("qhca-break-add")] == [
        {"on": "doorbell", "number": 17, "code": 0, "once": True},
        {"on": "packet-in", "code": 4, "psn": 100, "peer": 18},
        {"on": "wqe", "code": 4, "wr-id": 0xFEDCBA9876543210, "syndrome": 2, "ignore": 3},
    ]
    status, text = scope("breaks")
    assert "code RC SEND_ONLY" in text and "code RDMA_READ" in text
    assert [b["id"] for b in answer("breaks")["breaks"]] == [1, 2, 3]


def test_objects_of_a_break(scope, lab):
    """A number is of the kind that was named, not of another that has the same."""
    scope("break", "doorbell", "--cqn", 17)
    scope("break", "doorbell", "--qpn", 17, "--code", "CQ_ARM")
    scope("break", "doorbell", "--number", 17)
    scope("break", "cqe", "--qpn", 17)
    scope("break", "cqe", "--cqn", 2, "--qpn", 17)
    scope("break", "walk", "--object", 17)
    assert [a["condition"] for a in lab["a"].asked("qhca-break-add")] == [
        {"on": "doorbell", "number": 17, "code": 8},
        {"on": "doorbell", "number": 17, "code": 8},
        {"on": "doorbell", "number": 17},
        {"on": "cqe", "peer": 17},
        {"on": "cqe", "peer": 17, "number": 2},
        {"on": "walk", "number": 17},
    ]


def test_delete(scope, answer, lab):
    for guest in "aab":
        scope("--guest", guest, "break", "walk")
    assert answer("delete", 2) == {"deleted": [{"guest": "a", "id": 2}]}
    status, text = scope("delete", 1)
    assert status == 2 and "--guest" in text
    assert answer("--guest", "b", "delete", 1)["deleted"] == [{"guest": "b", "id": 1}]
    assert answer("delete", "--all")["deleted"] == [{"guest": "a", "id": 1}]
    assert scope("breaks")[1].strip() == "no break is set"


def test_break_and_wait(scope, lab):
    """The peer is stopped when the command comes back."""
    def met():
        until(lambda: lab["a"].breaks, "a break")
        lab["a"].meet(number=17, index=12)
    threading.Thread(target=met).start()
    status, text = scope("break", "doorbell", "--wait", 120)
    assert status == 0 and "break 1 on doorbell: doorbell SQ number 17 index 12" in text
    assert lab["b"].state == "paused" and "b frozen" in text


def test_a_break_nobody_waits_for_freezes_the_peer(scope, lab):
    """The daemon stops the peer, and resumes it together with the other guest."""
    scope("break", "doorbell", "--qpn", 17)
    lab["a"].meet(number=17)
    until(lambda: lab["b"].state == "paused", "the peer's stop")
    lab["a"].run()              # as gdb would
    until(lambda: lab["b"].state == "running", "the peer going on")
    lab["a"].meet(number=17)
    until(lambda: lab["b"].state == "paused", "the peer's second stop")
    assert scope("continue")[0] == 0
    assert (lab["a"].state, lab["b"].state) == ("running", "running")


def test_the_peer_stands_before_anything_is_asked(lab):
    """A peer's timers run until it is stopped: do not wait for anything before that."""
    plain = lab["a"].answers["query-status"]
    seen = []

    def status(arguments):
        seen.append(lab["b"].state)
        return plain(arguments)
    lab["a"].meet()
    lab["a"].answers["query-status"] = status
    with Scope.of_lab("one") as s:
        assert s.peers_follow(s["a"]) == ["b"]
    assert seen and set(seen) == {"paused"}


def test_a_stop_that_is_past_stops_nobody(lab):
    """Told late of a stop: the peer runs when it has been looked at."""
    with Scope.of_lab("one") as s:
        assert s.peers_follow(s["a"]) == []     # nothing but its state tells
        assert lab["b"].state == "running"
        count = lab["b"].names().count("stop")
        lab["a"].meet()
        lab["a"].run()
        until(lambda: len(s["a"].qmp.peek_events()) == 3, "three events")
        assert s.peers_follow(s["a"]) == []
        events = s["a"].qmp.poll_events()
        sync_daemon.handle(s, s["a"], events)
        assert [e["event"] for e in events] == ["QHCA_STOP", "STOP", "RESUME"]
        assert lab["b"].names().count("stop") == count, "stopped for what is known to be past"


def test_a_stop_of_gdb_freezes_the_peer(scope, lab):
    """gdb's own breakpoints are stops without an event of the adapter."""
    scope("break", "doorbell")
    lab["a"].stop("debug")
    until(lambda: lab["b"].state == "paused", "the peer's stop")
    lab["a"].run()
    until(lambda: lab["b"].state == "running", "the peer going on")
    before = lab["b"].names().count("stop")
    asked = lab["a"].names().count("query-status")
    lab["a"].stop("paused")     # a user's QMP command, which is intended
    until(lambda: lab["a"].names().count("query-status") > asked, "the daemon to ask why")
    assert scope("break", "wqe")[0] == 0
    assert lab["b"].state == "running"
    assert lab["b"].names().count("stop") == before
    lab["a"].run()
    lab["a"].stop("debug")      # perhaps before the daemon has come to the one above
    until(lambda: lab["b"].state == "paused", "the peer's stop")


def test_the_daemon_stays_while_one_stands_in_gdb(scope, lab, tmp_path):
    """No break is left, but a command waits for one that is stopped without."""
    scope("break", "doorbell")
    lab["a"].stop("debug")
    until(lambda: lab["b"].state == "paused", "the peer's stop")
    scope("delete", "--all")
    with Scope.of_lab("one") as s, open(tmp_path / "lock", "w") as lock:
        assert not sync_daemon.ended(s, s.adapters, lock)
        lab["a"].run()
        until(lambda: lab["b"].state == "running", "the peer going on")
        assert sync_daemon.ended(s, s.adapters, lock)


def test_stops_of_all_kinds_when_attended(scope, lab):
    """In `make debug` guests stop and continue together, whatever stopped them."""
    with Scope.of_lab("one") as s:
        s.attend()
        for state in ("paused", "debug", "paused"):     # gdb's Ctrl-C, a breakpoint
            lab["a"].stop(state)
            until(lambda: lab["b"].state == "paused", "the peer's stop")
            lab["a"].run()
            until(lambda: lab["b"].state == "running", "the peer going on")
        scope("freeze")
        lab["a"].run()
        until(lambda: lab["b"].state == "running", "the peer going on")
        lab["b"].meet()
        until(lambda: lab["a"].state == "paused", "the other's stop")
        before = lab["a"].names().count("stop")
        lab["a"].run()          # gdb's continue, while b is stopped at its break
        until(lambda: lab["a"].names().count("stop") > before, "the second stop")
        until(lambda: lab["a"].state == "paused", "it is stopped")
        assert lab["b"].state == "debug"
        assert scope("continue")[0] == 0
        assert (lab["a"].state, lab["b"].state) == ("running", "running")
        assert sync_daemon.alive(s.lab)


def test_the_daemon_ends_with_its_work(scope, lab, monkeypatch):
    scope("break", "doorbell")
    found = Scope.of_lab("one").lab
    assert sync_daemon.alive(found)
    scope("delete", "--all")
    until(lambda: not sync_daemon.alive(found), "the daemon's end")
    scope("break", "doorbell")
    assert sync_daemon.alive(found)


def test_standing_alone(scope, lab, answer):
    assert answer("together", "off") == {"together": False}
    scope("break", "doorbell")
    lab["a"].meet()
    assert scope("wait", "--timeout", 120)[0] == 0
    time.sleep(0.1)
    assert lab["b"].state == "running"
    assert answer("together", "on") == {"together": True}


def test_step(scope, answer, lab):
    scope("break", "doorbell")
    lab["a"].meet()
    until(lambda: lab["b"].state == "paused", "the peer's stop")
    plain = lab["b"].answers["cont"]

    def go_on(arguments):
        plain(arguments)
        threading.Timer(0.05, lambda: lab["a"].meet("wqe", qpn=17, index=3)).start()
        return {}
    lab["b"].answers["cont"] = go_on        # what a waits for comes from b
    seen = answer("step", "wqe", "-n", 3)
    assert lab["a"].asked("qhca-step") == [{"on": "wqe", "count": 3}]
    assert seen["look"]["why"] == "step" and seen["look"]["event"]["index"] == 3
    assert seen["states"] == {"a": "debug", "b": "paused"}
    assert "cont" in lab["b"].names(), "the peer went on while a stepped"


def test_a_step_that_needs_no_peer(scope, answer, lab, monkeypatch):
    """The peer stays stopped, and resumes with the stepped guest."""
    monkeypatch.setattr("qhca_scope.scope.ALONE", 30)
    scope("break", "doorbell")
    lab["a"].meet()
    until(lambda: lab["b"].state == "paused", "the peer's stop")
    plain = lab["a"].answers["qhca-step"]

    def step(arguments):
        plain(arguments)
        lab["a"].meet("hop", number=17)
        return {}
    lab["a"].answers["qhca-step"] = step
    for _ in range(20):
        assert answer("step", "walk")["states"] == {"a": "debug", "b": "paused"}
    assert "cont" not in lab["b"].names()
    lab["a"].run()              # as gdb would
    until(lambda: lab["b"].state == "running", "the peer going on")


def test_step_that_does_not_end(scope, lab):
    """The steps are forgotten, all run, and the status says so."""
    lab["a"].meet()
    lab["b"].state = "paused"
    status, text = scope("step", "--timeout", 0.1)
    assert status == 4 and "all guests run" in text
    assert lab["a"].steps is None
    assert (lab["a"].state, lab["b"].state) == ("running", "running")


def test_the_guest_at_a_break_is_meant(answer, lab):
    lab["b"].meet()
    assert answer("stop")["guest"] == "b" and answer("qp")["guest"] == "b"
    lab["a"].meet()
    assert answer("stop")["guest"] == "a"


def test_stop_shows_why_and_the_trail(scope, lab):
    assert "running" in scope("stop")[1]
    lab["a"].meet(number=17, index=4)
    status, text = scope("stop")
    assert "break 1 on doorbell" in text
    assert "      -1.000" in text and "       0.000" in text


def test_freeze_and_thaw(answer, lab):
    assert answer("freeze") == {"frozen": ["a", "b"]}
    assert answer("freeze") == {"frozen": []}
    assert answer("thaw") == {"continued": ["a", "b"]}


def test_a_freeze_stays_when_a_break_goes_on(scope, lab):
    """The daemon does not thaw a guest that was frozen manually."""
    scope("break", "doorbell")
    lab["a"].meet()
    until(lambda: lab["b"].state == "paused", "the peer's stop")
    scope("freeze")
    lab["a"].run()
    time.sleep(0.2)
    assert lab["b"].state == "paused"


def test_one_guest_that_refuses(scope, lab):
    def refuse(_a):
        raise Refuse("not now")
    lab["b"].answers["stop"] = refuse
    status, text = scope("freeze")
    assert status == 1 and "the others run" in text and lab["a"].state == "running"


def test_wait_in_time(lab):
    with Scope.of_lab("one") as s:
        with pytest.raises(TookTooLong):
            s.wait_stop(timeout=0.05)
        threading.Timer(0.1, lambda: lab["b"].meet()).start()
        assert s.wait_stop(timeout=60).name == "b"
        assert lab["a"].state == "paused"


# -------------------------------------------------------- watch and programs


def start(*argv):
    # A shell that has put us in the background lets us ignore Ctrl-C.
    return subprocess.Popen([str(PROGRAM), *argv], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def test_watch_tells_each_thing_at_once(lab):
    child = start("watch", "--json")
    assert json.loads(child.stdout.readline())["guests"] == ["a", "b"]
    lab["a"].meet(number=17)
    lines = [json.loads(child.stdout.readline()) for _ in range(2)]
    assert [(m["guest"], m["event"]) for m in lines] == [("a", "QHCA_STOP"), ("a", "STOP")]
    assert lines[0]["look"]["event"]["number"] == 17
    lab["a"].run()
    assert json.loads(child.stdout.readline())["event"] == "RESUME"
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0


def test_watch_ends_with_the_guests(lab):
    child = start("watch")
    assert "watching" in child.stdout.readline()
    for adapter in lab.values():
        adapter.close()
    out, _ = child.communicate(timeout=60)
    assert out.count("QEMU has ended") == 2 and child.returncode == 0


def test_a_reader_that_has_enough(lab):
    """scope qp | head does not complain about broken pipes."""
    lab["a"].qps = {n: {} for n in range(1, 5000)}
    child = start("qp")
    child.stdout.readline()
    child.stdout.close()
    assert "Traceback" not in child.stderr.read()
    assert child.wait(60) in (0, 141)


@pytest.mark.parametrize("argv", [["--help"], ["break", "--help"], ["ring", "--help"]])
def test_help(argv):
    out = subprocess.run([str(PROGRAM), *argv], capture_output=True, text=True, check=True).stdout
    assert "example" in out


# ------------------------------------------------------------------- shapes


def test_codes():
    codes = [{"code": 4, "name": "RC SEND_ONLY"}, {"code": 17, "name": "RC ACK"}]
    for text in ("RC_SEND_ONLY", "rc send-only", "send_only", "4", "0x4"):
        assert parsing.coded(text, codes, "code") == 4
    for text in ("-1", "", "1x", "0x", "4.0", "٣"):
        with pytest.raises(Usage):
            parsing.number(text)


def test_tables_fit_or_say_what_is_left_out():
    rows = [{f"column{i}": "x" * 10 for i in range(10)}]
    lines = render.plain_text(render.table(rows, 60)).splitlines()
    assert all(len(line) <= 60 for line in lines[:2])
    assert "column9" in lines[2] and "column9" not in lines[0]
    assert "column9" in render.plain_text(render.table(rows, 0)).splitlines()[0]


def test_entry_0_has_its_index():
    look = {"object": "qp", "number": 1, "ring": "sq", "producer": 1, "consumer": 0,
            "entries": [{"index": 0, "slot": 0, "mark": "posted"}]}
    lines = render.plain_text(render.look_lines(look)).splitlines()
    assert lines[1].split() == ["index", "mark"] and lines[2].split() == ["C>", "0", "posted"]


def test_an_error_on_the_path_is_shown():
    look = {"object": "qp", "number": 1, "ring": "sq", "slot": 0, "offset": 0, "hops": [],
            "buffer": {}, "error": "the entry is not valid"}
    assert "error: the entry is not valid" in render.plain_text(render.look_lines(look))


@pytest.mark.parametrize("look", [{}, {"x": None}, {"list": [1, 2]}, {"a": {"b": {"c": []}}},
                                  {"objects": [], "object": "qp"}, {"rows": [{"a": 1}, {"b": 2}]}])
def test_any_look_has_a_shape(look):
    render.look_lines(look)


def test_ascii_where_there_is_no_unicode():
    style = Style(colour=False, unicode=False)
    assert style.draw("├─ ▶ │ →").isascii()


def test_colour_only_where_it_is_wanted(lab, monkeypatch):
    def run(*argv, **env):
        return subprocess.run([str(PROGRAM), *argv, "qp", "17"], capture_output=True, text=True,
                              check=True, env=dict(os.environ, **env)).stdout
    assert "\x1b[" not in run()
    assert "\x1b[" in run("--colour", "always")

# SPDX-License-Identifier: GPL-2.0-or-later
"""Parallel QMP connections, and guests that are frozen together."""

import contextlib
import ctypes
import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from fake_qemu import FakeQemu, Refuse  # noqa: E402
from qhca_lab import LabError, freeze, machine, process, qmp, sched  # noqa: E402


@pytest.fixture
def short():
    """A folder with a short name, for sockets."""
    base = Path(f"/tmp/qf{os.getpid()}")
    base.mkdir(mode=0o700)
    yield base
    subprocess.run(["rm", "-rf", str(base)], check=True)


class FakeGuest:
    def __init__(self, name, directory):
        self.name = name
        self.dir = directory
        self.qemu = FakeQemu(directory)
        self.alive = True

    def tool_qmp(self, timeout=60.0):
        return qmp.open_free(self.dir, timeout)


class FakeLab:
    def __init__(self, base):
        self.guests = [FakeGuest(name, base / name) for name in "ab"]

    def states(self):
        return [g.qemu.state for g in self.guests]


@pytest.fixture
def lab(short):
    lab = FakeLab(short)
    yield lab
    for guest in lab.guests:
        guest.qemu.close()


# ------------------------------------------------------------- connections


def test_tools_side_by_side(lab):
    """Each tool gets its own socket, and the lab's stays free."""
    guest = lab.guests[0]
    tools = [guest.tool_qmp() for _ in range(3)]
    assert [t.path.name for t in tools] == ["qmp1", "qmp2", "qmp3"]
    with qmp.Qmp(guest.dir / "qmp", 2) as own:
        for connection in [*tools, own]:
            assert connection.command("query-status")["running"]
    tools[1].close()
    with guest.tool_qmp() as again:
        assert again.path.name == "qmp2"
    for tool in tools:
        tool.close()


@pytest.mark.parametrize("answers", [True, False])
def test_quit(lab, answers):
    """QEMU may be gone before it has answered; any other command must be answered."""
    qemu = lab.guests[0].qemu
    qemu.answers["quit"] = lambda _: qemu.event("SHUTDOWN") or answers or qemu.close() or {}
    with lab.guests[0].tool_qmp() as tool:
        tool.quit()
        if not answers:
            with pytest.raises(qmp.QmpClosed, match="closed"):
                tool.command("query-status")


def test_a_late_answer_is_no_answer(lab):
    """A command that took too long does not affect later ones."""
    qemu, late = lab.guests[0].qemu, threading.Event()

    def slow(_arguments):
        late.wait(120)
        return "slow"
    qemu.answers.update({"slow": slow, "quick": "quick"})
    with lab.guests[0].tool_qmp() as tool:
        tool._timeout = 0.05
        with pytest.raises(LabError, match="no response from QEMU"):
            tool.command("slow")
        late.set()
        qemu.event("NOISE")
        assert tool.wait_event("NOISE", 120)
        tool._timeout = 20
        assert tool.command("quick") == "quick"
        assert [e["event"] for e in tool.poll_events()] == []


def test_all_sockets_busy(lab):
    guest = lab.guests[0]
    tools = [guest.tool_qmp() for _ in range(3)]
    with pytest.raises(qmp.Busy, match="end a tool"):
        guest.tool_qmp(0.1)
    for tool in tools:
        tool.close()


def test_a_guest_without_further_sockets(short):
    """QEMU of an older lab, or started by hand: the one socket serves."""
    qemu = FakeQemu(short / "old", names=("qmp",))
    with qmp.open_free(short / "old", 2) as tool:
        assert tool.path.name == "qmp"
        with pytest.raises(qmp.Busy):
            qmp.open_free(short / "old", 0.1)
    qemu.close()


def test_every_guest_has_the_sockets(short):
    """The sockets on QEMU's command line are those that open_free() expects."""
    state = {"name": "a", "number": 1, "nic": "none", "mac": "", "ip": "", "ip6": ""}
    from qhca_lab import Options

    words = machine.command_line(state, [], short / "a", short, Options())
    made = {w.split(",")[0].removeprefix("unix:") for w, before in zip(words[1:], words)
            if before == "-qmp"}
    assert made == {str(short / "a" / n)
                    for n in ["qmp"] + [f"qmp{i}" for i in range(1, qmp.SPARE + 1)]}


def test_no_guest(short):
    with pytest.raises(LabError, match="no QMP at"):
        qmp.open_free(short / "nobody", 0.1)


def test_events_are_kept_in_order(lab):
    """Also those that come between a command and its answer, or after a
    time-out."""
    qemu = lab.guests[0].qemu
    with lab.guests[0].tool_qmp() as tool:
        with pytest.raises(LabError, match="no event NEVER"):
            tool.wait_event("NEVER", 0.05)

        def answer(_arguments):
            qemu.event("FIRST")
            qemu.event("SECOND", {"n": 2})
            return 7

        qemu.answers["ask"] = answer
        assert tool.command("ask") == 7
        assert tool.wait_event("SECOND", 2)["data"] == {"n": 2}
        assert [e["event"] for e in tool.poll_events()] == ["FIRST"]
        assert tool.poll_events() == []


def test_events_that_came_with_an_answer(lab):
    """They were read with it, so select() does not report them: do not sleep on them."""
    qemu = lab.guests[0].qemu

    def answer(_arguments):
        qemu.event("STOP")
        return 7

    qemu.answers["ask"] = answer
    with lab.guests[0].tool_qmp() as one, lab.guests[1].tool_qmp() as other:
        assert not qmp.wait_any([one, other], 0.0)
        assert one.command("ask") == 7
        assert not select.select([one, other], [], [], 0.0)[0]
        assert qmp.wait_any([one, other], 0.0)
        assert [e["event"] for e in one.poll_events()] == ["STOP"]
        assert not qmp.wait_any([one, other], 0.0)


def test_qemu_that_ends_is_an_error(lab):
    with lab.guests[0].tool_qmp() as tool:
        lab.guests[0].qemu.close()
        with pytest.raises(LabError, match="closed its QMP"):
            tool.command("query-status")
            tool.command("query-status")


# --------------------------------------------------------------- scheduling


def test_the_thread_that_reads_commands_is_preferred():
    """It is found by its name in a process with many threads; others are not changed."""
    libc, tids, end = ctypes.CDLL(None), {}, threading.Event()

    def run(name):
        libc.prctl(15, name.encode(), 0, 0, 0)      # PR_SET_NAME
        tids[name] = threading.get_native_id()
        end.wait(120)

    names = ("IO mon_iothread", "qhca-bell", "CPU 0/TCG")
    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    try:
        while len(tids) < len(names):
            assert all(t.is_alive() for t in threads)
        did = sched.prefer_threads(os.getpid())
        policies = {n: os.sched_getscheduler(t) & ~os.SCHED_RESET_ON_FORK for n, t in tids.items()}
        assert policies["CPU 0/TCG"] == os.SCHED_OTHER
        if did == "real-time":
            assert policies["IO mon_iothread"] == policies["qhca-bell"] == os.SCHED_RR
        else:
            assert did in ("short slice", "nothing") and not may_be_real_time()
    finally:
        end.set()
        for thread in threads:
            thread.join()


def may_be_real_time():
    """Not all users may, nor root in some containers. Tried in a separate thread, which
    keeps its priority until it ends."""
    got = []

    def attempt():
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
            got.append(True)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return bool(got)


def test_preferred_is_over_at_its_end():
    def policy():
        return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK

    before = policy()
    with sched.preferred():
        assert policy() == os.SCHED_RR or not may_be_real_time()
    assert policy() == before


# ------------------------------------------------------------------- freeze


def test_freeze_and_thaw(lab):
    assert freeze.freeze(lab) == ["a", "b"]
    assert lab.states() == ["paused", "paused"]
    assert [freeze.run_state(g) for g in lab.guests] == ["paused", "paused"]
    assert freeze.freeze(lab) == []
    assert freeze.thaw(lab) == ["a", "b"]
    assert lab.states() == ["running", "running"]
    assert freeze.thaw(lab) == []


def test_all_are_told_before_one_is_waited_for(lab):
    """The first guest answers only after the second got the command."""
    told = threading.Event()
    a, b = (g.qemu for g in lab.guests)
    plain = dict(a.answers)
    for command in ("stop", "cont"):
        told.clear()

        def late(arguments, command=command):
            assert told.wait(60), "the second guest waits for the first's answer"
            return plain[command](arguments)

        def tell(_arguments, command=command):
            told.set()
            return b.stop("paused") if command == "stop" else b.run()

        a.answers[command], b.answers[command] = late, tell
        {"stop": freeze.freeze, "cont": freeze.thaw}[command](lab)
    assert lab.states() == ["running", "running"]


def test_a_guest_at_a_break_stays_there(lab):
    """A freeze stops the others; a thaw resumes all."""
    lab.guests[0].qemu.state = "debug"
    assert freeze.freeze(lab) == ["b"]
    assert lab.states() == ["debug", "paused"]
    assert freeze.thaw(lab) == ["a", "b"]
    assert lab.states() == ["running", "running"]


def test_after_an_error_all_run(lab):
    def refuse(_arguments):
        raise Refuse("not now")

    lab.guests[1].qemu.answers["stop"] = refuse
    with pytest.raises(LabError, match="not frozen: guest b: .*not now.*the others run"):
        freeze.freeze(lab)
    assert lab.states() == ["running", "running"]
    assert "stop" in lab.guests[0].qemu.names()


def test_an_error_thawing_one_does_not_hold_the_other(lab):
    def refuse(_arguments):
        raise Refuse("not now")

    freeze.freeze(lab)
    lab.guests[0].qemu.answers["cont"] = refuse
    with pytest.raises(LabError, match="guest a: .*not now"):
        freeze.thaw(lab)
    assert lab.states() == ["paused", "running"]


def test_a_dead_guest_is_named(lab):
    lab.guests[1].alive = False
    with pytest.raises(LabError, match="guest b has ended"):
        freeze.freeze(lab)
    assert lab.states() == ["running", "running"]
    assert freeze.run_state(lab.guests[1]) is None


def test_status_shows_which_guests_are_stopped(short, monkeypatch, capsys):
    """As text and as JSON, of a lab as it is remembered."""
    from qhca_lab import cli, paths
    from qhca_scope import cli as scope_cli

    monkeypatch.setenv("QHCA_RUN", str(short))
    directory = paths.lab_dir("fz")
    guests = {}
    qemus = {}
    for number, name in enumerate("ab", 1):
        qemus[name] = FakeQemu(directory / name)
        guests[name] = {"name": name, "nic": "qhca", "ip": "10.99.0.1", "ip6": "fd99::1",
                        "mac": "", "number": number, "process": process.identity(os.getpid())}
    (directory / "lab.json").write_text(json.dumps(
        {"name": "fz", "logs": str(short), "helpers": [], "options": {}, "guests": guests}))
    assert scope_cli.main(["--lab", "fz", "freeze"]) == 0
    qemus["b"].state = "debug"
    capsys.readouterr()
    assert cli.main(["--name", "fz", "status"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "frozen" in out[1] and "at a break" in out[2]
    assert cli.main(["--name", "fz", "status", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)["guests"]
    assert [(g["run"], g["frozen"]) for g in seen.values()] == [("paused", True), ("debug", True)]
    assert scope_cli.main(["--lab", "fz", "thaw"]) == 0
    assert [q.state for q in qemus.values()] == ["running", "running"]
    for qemu in qemus.values():
        qemu.close()

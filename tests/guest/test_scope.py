# SPDX-License-Identifier: GPL-2.0-or-later
"""
qhca-scope with real guests: each command, its JSON, the terminal interface, and
that all of it agrees with the application and with memory.

QHCA_SCREENSHOTS=DIR keeps the screens of the terminal interface there, for
lab/figures/screenshot.
"""

import contextlib
import json
import os
import re
import select
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from labs import TOP
from qhca_lab.pair import start_server
from qhca_lab.terminal import Terminal
from test_queue_buffers import Qbuf, context, layout

SCOPE = TOP / "lab" / "qhca-scope"
PAGE = 4096
PATIENCE = 120                  # seconds: the machine may be busy with others


class Tool:
    """qhca-scope for a lab."""

    def __init__(self, lab):
        self.lab = lab

    def run(self, *argv, status=0):
        """Its output; the exit status must be STATUS."""
        words = [str(SCOPE), "--lab", self.lab.name, *map(str, argv)]
        done = subprocess.run(words, capture_output=True, text=True, check=False,
                              timeout=2 * PATIENCE)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def json(self, *argv, status=0):
        return json.loads(self.run("--json", *argv, status=status))

    def wait(self):
        """The next stop."""
        return self.json("wait", "--timeout", PATIENCE)

    def free(self):
        """No break is set and the guests run."""
        with contextlib.suppress(AssertionError):
            self.run("delete", "--all")
        self.run("continue")


@pytest.fixture
def tool(pair):
    tool = Tool(pair)
    yield tool
    tool.free()


@pytest.fixture
def qbuf(pair, progs, tool):
    """A program that waits before it moves messages between two QPs."""
    q = Qbuf(pair, progs, "--depth 64 --messages 300 --nocap")
    yield q
    if q.job.running:
        tool.free()             # a stopped guest cannot kill anything
        q.job.kill()


def go(qbuf):
    """Let it continue; the guest may stop before it can answer."""
    qbuf.guest.start(f"echo go > {qbuf.fifo}")


def end(qbuf):
    result = qbuf.job.wait(PATIENCE)
    assert result.rc == 0, result.err
    return json.loads(qbuf.said().splitlines()[-1])


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(0.05)


# -------------------------------------------------------------------- looks


@pytest.mark.long("tests/device/test_scope has each kind")
def test_every_kind_can_be_listed_and_shown(tool, qbuf):
    """What the device's schema has, whatever that is by now."""
    kinds = tool.run("nonsense", status=2).split("kinds: ")[1].split(";")[0].split(", ")
    assert {"qp", "cq", "mr", "gid", "device"} <= set(kinds)
    for kind in kinds:
        seen = tool.json(kind)
        assert seen["guest"] == "a" and seen["look"]["object"] == kind
    ls = tool.json("ls")["guests"]
    assert ls["a"]["objects"]["qp"] == len(tool.json("qp")["look"]["objects"])
    assert ls["b"]["run"] == "running"


def test_what_is_shown_is_what_the_driver_made(tool, pair, qbuf):
    qpn = qbuf.first["qpn"]
    qpc = context(pair.a, "qp", qpn)
    seen = tool.json("qp", qpn)["look"]["context"]
    for field in ("qpn", "state", "send_cqn", "dest_qpn", "sq_psn", "rq_psn", "timeout"):
        assert seen[field] == getattr(qpc, field), field
    text = tool.run("qp", qpn)
    assert re.search(r"state +RTS\n", text) and re.search(r"type +RC\n", text)
    assert f"::ffff:{pair.a.ip}" in text
    assert tool.run("qp", qpn, "--get", "look.context.dest_qpn").strip() == str(qbuf.first["peer"])
    assert "no qp 77777" in tool.run("qp", 77777, status=3)


@pytest.mark.long("test_stops has the same walks, tests/device/test_scope how they are shown")
@pytest.mark.parametrize("form", ["tree hops=2 page_shift=12 table_shift=12", "list"])
def test_walks_lead_to_the_applications_pages(tool, pair, progs, form):
    """The page frames in the tree are those of the application's pagemap."""
    with layout(pair.a, form):
        q = Qbuf(pair, progs, "--depth 1024 --scatter")
    qpn, pfns, stride = q.first["qpn"], q.first["pfns"], q.first["stride"]
    for index in (0, 70, 1023):
        page, rest = divmod(index * stride, PAGE)
        text = tool.run("walk", "qp", qpn, "sq", index)
        assert f"DMA address 0x{pfns[page] * PAGE + rest:x} " in text
        assert text.count("▶") + text.count(">") >= 1
        assert tool.json("walk", "qp", qpn, "sq", index)["look"]["address"] == \
            pfns[page] * PAGE + rest
    q.finish()


def test_counters_of_both(tool, qbuf):
    found = tool.json("counters", "--all")["counters"]
    assert set(found) == {"a", "b"} and "roce-tx-packets" in found["b"]


# --------------------------------------------------------- breaks and steps


@pytest.mark.long("test_terminal_interface steps, tests/device/test_scope has the commands")
def test_break_step_and_go_on(tool, qbuf):
    """Each step is one WQE; the ring's marks move by one; all arrives."""
    qpn = qbuf.first["qpn"]
    number = tool.json("break", "doorbell", "--qpn", qpn, "--once")["id"]
    assert [b["id"] for b in tool.json("breaks")["breaks"]] == [number]
    go(qbuf)
    stop = tool.wait()
    assert (stop["guest"], stop["look"]["why"], stop["states"]) == \
        ("a", "break", {"a": "debug", "b": "paused"})
    first = tool.json("ring", "qp", qpn, "sq")["look"]
    assert first["producer"] == stop["look"]["event"]["index"] > first["next"]
    assert tool.json("breaks")["breaks"] == []
    tool.run("break", "wqe", "--qpn", qpn)      # the program has two QPs
    done = first["next"]
    for n in range(3):
        tool.run("continue", "--wait", PATIENCE)
        look = tool.json("ring", "qp", qpn, "sq")["look"]
        assert look["next"] == done + n + 1
        line = next(x for x in tool.run("ring", "qp", qpn, "sq").splitlines()
                    if "N" in x.split(">")[0] and ">" in x)
        assert int(line.split(">")[1].split()[0]) == look["next"]
    tool.run("delete", "--all")                 # or it may be met before the step's end
    stop = tool.json("step", "packet-in", "-n", 2, "--timeout", PATIENCE)
    assert stop["look"]["why"] == "step" and stop["look"]["event"]["kind"] == "rx"
    assert "packet-in" in tool.run("stop")
    assert set(tool.json("continue")["continued"]) == {"a", "b"}
    assert end(qbuf)["moved"] == 300


@pytest.mark.long("tests/device/test_scope has names as conditions")
def test_names_of_codes(tool, qbuf):
    """A packet by its name, and what is listed has the name again."""
    tool.run("break", "packet-in", "--opcode", "rc-ack", "--qpn", qbuf.first["qpn"])
    assert "RC ACK" in tool.run("breaks")
    go(qbuf)
    event = tool.wait()["look"]["event"]
    assert (event["kind"], event["opcode_name"], event["qpn"]) == \
        ("rx", "RC ACK", qbuf.first["qpn"])
    tool.run("delete", "--all")
    tool.run("continue")
    assert end(qbuf)["moved"] == 300


def test_peer_stands_while_somebody_else_lets_go(tool, pair, qbuf):
    """No command waits, and QMP's cont resumes, as gdb would."""
    tool.run("break", "doorbell", "--qpn", qbuf.first["qpn"], "--once")
    go(qbuf)

    def state(guest):
        return pair.qmp(guest, "query-status")["status"]
    until(lambda: (state("a"), state("b")) == ("debug", "paused"), "both are stopped")
    pair.qmp("a", "cont")
    until(lambda: (state("a"), state("b")) == ("running", "running"), "both run")
    assert end(qbuf)["moved"] == 300


@pytest.mark.long("stops for four seconds; test_stops freezes for longer than a timer")
def test_standing_long_costs_no_retry(tool, pair, progs):
    """Two guests, many stops, each longer than the ACK timeout of half a second, which
    no delay of the host comes near: nothing is sent again."""
    names = ("roce-timeouts", "roce-retransmits")
    before = tool.json("counters", "--all")["counters"]
    program = f"{progs.path('faultpp')} --timeout 17 --iters 300"
    server = start_server(pair.b, program)
    tool.run("break", "wqe", "--opcode", "SEND", "--once")
    client = pair.a.start(f"{program} {pair.b.ip}")
    event = tool.wait()["look"]["event"]
    for _ in range(6):
        seen = tool.json("step", "wqe", "--timeout", PATIENCE)["look"]["event"]
        assert (seen["qpn"], seen["index"]) == (event["qpn"], event["index"] + 1)
        event = seen
        time.sleep(0.6)         # stay stopped for this long
    tool.run("continue")
    assert client.wait(PATIENCE).rc == 0 and server.wait(PATIENCE).rc == 0
    after = tool.json("counters", "--all")["counters"]
    for guest in "ab":
        for name in names:
            assert after[guest][name] == before[guest][name], (guest, name)


@pytest.mark.long("tests/device/test_scope has it")
def test_a_step_that_does_not_come(tool, qbuf):
    """Nothing is sent: the step is forgotten and the guests run."""
    tool.run("freeze")
    assert "all guests run" in tool.run("step", "wqe", "--timeout", 1, status=4)
    seen = tool.json("stop")
    assert "steps_left" not in seen["look"] and set(seen["states"].values()) == {"running"}


def test_watch(tool, qbuf):
    """It reports the stops of both guests on its own."""
    watch = subprocess.Popen([str(SCOPE), "--lab", tool.lab.name, "watch", "--json"],
                             stdout=subprocess.PIPE)
    seen, rest = [], b""

    def told(event, guest=None):
        """Wait until it has told of that."""
        nonlocal rest
        deadline = time.monotonic() + PATIENCE
        while True:
            for one in seen:
                if one["event"] == event and guest in (None, one.get("guest")):
                    return one
            left = max(0.0, deadline - time.monotonic())
            assert select.select([watch.stdout], [], [], left)[0], (event, guest, seen)
            said = os.read(watch.stdout.fileno(), 1 << 20)
            assert said, "it has ended"
            *lines, rest = (rest + said).split(b"\n")
            seen.extend(map(json.loads, lines))
    try:
        assert told("watching")["guests"] == ["a", "b"]
        tool.run("break", "doorbell", "--qpn", qbuf.first["qpn"], "--once")
        go(qbuf)
        assert told("QHCA_STOP")["look"]["event"]["number"] == qbuf.first["qpn"]
        assert told("QHCA_STOP")["guest"] == "a"
        told("STOP", "a")
        told("STOP", "b")
        tool.run("continue")
        told("RESUME", "b")
    finally:
        watch.terminate()
        watch.wait(30)
        watch.stdout.close()
    assert end(qbuf)["moved"] == 300


def test_wrong_use(tool):
    assert "must be stopped to step" in tool.run("step", status=1)
    assert "no event is called" in tool.run("break", "nonsense", status=2)
    assert "it has a, b" in tool.run("--guest", "z", "qp", status=1)
    assert tool.json("qp", "77777", status=3)["hint"].startswith("there are: ")


# ------------------------------------------------------- terminal interface


def keep(terminal, name):
    """Save the current screen, if requested."""
    folder = os.environ.get("QHCA_SCREENSHOTS")
    if folder:
        Path(folder, f"scope-{name}.ansi").write_text(terminal.screen(colour=True))


OTHER_SIZES = pytest.mark.long("tests/lab/test_tui has terminals of other sizes")


@pytest.mark.parametrize("width, height", [
    pytest.param(80, 24, marks=OTHER_SIZES), (160, 50), pytest.param(200, 60, marks=OTHER_SIZES)])
def test_terminal_interface(tool, pair, qbuf, width, height):
    """The panes show the QP; each step moves the ring's mark; after the end the
    guests run and the program's messages all arrive."""
    qpn = qbuf.first["qpn"]
    with Terminal(f"{shlex.quote(str(SCOPE))} --lab {pair.name} --guest a", width, height, f"guest{width}",
                  {k: v for k, v in os.environ.items() if k.startswith("QHCA_")}) as terminal:
        def see(pattern):
            return terminal.wait(pattern, PATIENCE)

        see(r"\*a: runs")
        terminal.type("b")
        see("^break: ")
        terminal.type("C-u", f"wqe --qpn {qpn}", "Enter")
        see("break [0-9]+, wqe, number")
        go(qbuf)
        see("a: at a break .*b: frozen")
        see(f"qp {qpn}")
        pages = {"2": f"context of qp {qpn}", "5": "DMA address 0x", "7": "events",
                 "8": "cq [0-9]+ ", "3": f"qp {qpn} sq"}
        for key, words in pages.items():
            terminal.type(key)
            text = see(words)
            assert all(len(line) <= width for line in text.split("\n"))

        def marked():
            """What N> points to in the send queue: the leftmost such mark."""
            found = re.search(r"N[A-Z]*> +(\d+) ", terminal.screen())
            return int(found[1]) if found else None
        until(lambda: marked() is not None, "the ring's mark")
        for _ in range(3):
            before = marked()
            terminal.type("c")
            until(lambda: marked() == before + 1, f"the mark on {before + 1}")
        terminal.type("p")
        see("a step on packet: tx")
        keep(terminal, f"{width}x{height}")
        terminal.type("q")
        see("remove them and resume all guests")
        terminal.type("y")
        see("status 0")
    assert tool.json("breaks")["breaks"] == []
    assert {tool.json("ls")["guests"][g]["run"] for g in "ab"} == {"running"}
    assert end(qbuf)["moved"] == 300

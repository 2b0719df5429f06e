# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal interface of qhca-scope, driven and read through tmux, with simulated adapters."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from fake_adapter import make_lab  # noqa: E402
from qhca_lab.terminal import Terminal  # noqa: E402
from qhca_scope import render  # noqa: E402
from qhca_scope.tui import panes  # noqa: E402

PROGRAM = TOP / "lab" / "qhca-scope"
# In a line for a shell; the checkout's path may have a space.
QUOTED = shlex.quote(str(PROGRAM))


@pytest.fixture
def lab(monkeypatch):
    base = Path(tempfile.mkdtemp(prefix="qu", dir="/tmp"))
    monkeypatch.setenv("QHCA_RUN", str(base))
    monkeypatch.delenv("QHCA_LAB", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    adapters = make_lab("one", base)
    yield adapters
    for adapter in adapters.values():
        adapter.close()
    shutil.rmtree(base, ignore_errors=True)     # the cleanup may still write its log


@pytest.fixture
def opened(lab):
    """opened(width, height, options): the interface, drawn."""
    terminals = []

    def opened(width=80, height=24, options="", env=None):
        # exec: the window's process is the program, for signals
        terminal = Terminal(f"{QUOTED} {options}", width, height, f"tui{len(terminals)}",
                            {"QHCA_RUN": os.environ["QHCA_RUN"], **(env or {})})
        terminals.append(terminal)
        terminal.wait("qhca-scope  lab one")
        return terminal
    yield opened
    for terminal in terminals:
        terminal.close()


def until(condition, what):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"not within 120 s: {what}"
        time.sleep(0.02)


def program(terminal):
    """The process id of the program in the window."""
    out = subprocess.run(["pgrep", "-P", str(terminal.pid()), "-f", "qhca-scope"],
                         capture_output=True, text=True, check=True).stdout
    return int(out.split()[0])


def fits(terminal, width, height):
    """The whole window is used, and nothing is beyond it."""
    lines = terminal.screen().split("\n")
    assert len(lines) <= height + 1 and all(len(line) <= width for line in lines)


def test_small_window_shows_each_page(opened):
    terminal = opened(80, 24)
    for key, words in (("1", "qp \\(2\\)"), ("2", "context of qp 18"), ("3", "C>     9  in-flight"),
                       ("4", "qp 18 rq"), ("5", "DMA address 0x22280"), ("6", "packets"),
                       ("7", "nothing yet"), ("8", "completions")):
        terminal.type(key)
        terminal.wait(words)
        fits(terminal, 80, 24)


@pytest.mark.parametrize("width, height, seen", [
    (120, 34, ["1 qp \\(2\\)", "2 context", "3 qp 18 sq", "5 buffer table", "7 events"]),
    (160, 50, ["1 qp \\(2\\)", "2 context", "3 qp 18 sq", "4 qp 18 rq", "5 buffer table",
               "6 packets", "7 events", "8 completions"]),
    (200, 60, ["guest b, peer", " qp 17 sq", "8 completions"]),
])
def test_larger_windows_show_more(opened, width, height, seen):
    terminal = opened(width, height)
    for words in seen:
        terminal.wait(words)
    fits(terminal, width, height)


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_a_context_is_in_columns(width):
    """All fields are there, one long value moves no other out of its column."""
    item = {f"field{n}": n + 1 for n in range(20)} | {"access": "LOCAL_WRITE|REMOTE_WRITE (0x7)"}
    lines = render.plain_text(panes.grid(item, {}, width)).split("\n")
    assert all(len(line) <= max(width, 38) for line in lines)
    words = " ".join(lines)
    assert all(f"field{n} " in words for n in range(20)) and "(0x7)" in words
    places = [m.start() for line in lines for m in re.finditer(r"field|access", line)]
    assert len(set(places)) == max(len(re.findall(r"field|access", line)) for line in lines)
    assert len(set(places)) > 1 or width < 50


@pytest.mark.parametrize("width", [20, 40, 80])
def test_long_lines_are_wrapped(width):
    """Every word is there, and in a row that fits."""
    line = [("dim", "       0.000  "), ("name", "cqe         "), ("key", "opcode "),
            ("number", "SEND  "), ("key", "status "), ("bad", "RETRY_EXC_ERR  ")]
    rows = [render.plain_text([row]) for row in panes.wrapped(line, width, 4)]
    assert " ".join(" ".join(rows).split()) == "0.000 cqe opcode SEND status RETRY_EXC_ERR"
    assert all(len(row) <= max(width, 24) for row in rows)
    assert (len(rows) == 1) == (width == 80)
    assert all(row.startswith("    ") and row[4] != " " for row in rows[1:])


@pytest.mark.parametrize("room, shown", [(50, 6), (16, 3), (14, 2), (5, 1)])
def test_a_walk_fits_the_pane(room, shown):
    """The way and the bytes at its end are more than what lies beside it."""
    entries = [{"index": n, "at": 8 * n, "address": 4096 * n, "marked": n == 5} for n in range(6)]
    hop = {"level": 0, "table": 0x1000, "used": 512, "entries": entries}
    view = types.SimpleNamespace(walk={
        "object": "qp", "number": 17, "ring": "sq", "slot": 5, "buffer": {}, "address": 0x5000,
        "hops": [hop, dict(hop, level=1)], "bytes": "00" * 64})
    text = render.plain_text(panes.table_lines(view, 80, room))
    assert len(text.split("\n")) <= room or shown == 1
    assert text.count("▶ [5]") == 2 and text.count("] ") == 2 * shown
    assert "DMA address 0x5000" in text and "0030  00" in text


def test_resize(opened):
    terminal = opened(80, 24)
    terminal.wait("1 objects 2 context")
    terminal.resize(160, 50)
    terminal.wait("8 completions")
    terminal.resize(40, 10)
    terminal.wait("too small")
    terminal.resize(80, 24)
    terminal.wait("1 objects 2 context")


def test_a_stop_is_shown_and_a_step_moves(opened, lab):
    terminal = opened(160, 50)
    lab["a"].meet(number=17, index=12)
    terminal.wait("break 1 on doorbell: doorbell SQ number 17 index 12")
    text = terminal.wait("b: frozen")
    assert re.search("a: at a break", text) and "context of qp 17" in text
    terminal.type("s")
    until(lambda: lab["a"].asked("qhca-step"), "a step")
    assert lab["a"].asked("qhca-step") == [{"on": "wqe", "count": 1}]
    terminal.wait("a: steps: wqe")
    lab["a"].meet("wqe", qpn=17, index=11)
    terminal.wait("a step on wqe: wqe qpn 17 index 11")
    terminal.wait("slot 11")
    terminal.type("c")
    terminal.wait("a: runs .*b: runs")
    assert (lab["a"].state, lab["b"].state) == ("running", "running")


@pytest.mark.parametrize("key, on", [("p", "packet"), ("d", "doorbell"), ("w", "walk")])
def test_keys_of_steps(opened, lab, key, on):
    terminal = opened()
    lab["a"].meet()
    terminal.wait("at a break")
    terminal.type(key)
    if on == "packet":          # this adapter has none such
        terminal.wait("no event is called 'packet'")
    else:
        until(lambda: lab["a"].asked("qhca-step") == [{"on": on, "count": 1}], "a step")


def test_a_step_that_does_not_end_is_given_up(opened, lab):
    terminal = opened()
    lab["a"].meet()
    terminal.wait("at a break")
    terminal.type("s")
    terminal.wait("steps: wqe")
    terminal.type("Escape")
    terminal.wait("are cancelled")
    assert lab["a"].steps is None


def test_step_needs_a_stop(opened, lab):
    terminal = opened()
    terminal.type("s")
    terminal.wait("must be stopped to step")
    assert not lab["a"].asked("qhca-step")


def test_freeze_by_key(opened, lab):
    terminal = opened()
    terminal.type("f")
    terminal.wait("a: frozen .*b: frozen")
    assert (lab["a"].state, lab["b"].state) == ("paused", "paused")
    terminal.type("f")
    terminal.wait("a: runs .*b: runs")


def test_break_prompt_and_quit_removes_it(opened, lab):
    terminal = opened()
    terminal.type("b")
    terminal.wait("break: doorbell --qpn 18")
    terminal.type("Enter")
    terminal.wait("break 1, doorbell, number 18")
    assert lab["a"].breaks[0]["condition"] == {"on": "doorbell", "number": 18, "code": 0}
    lab["a"].meet(number=18)
    terminal.wait("b: frozen")
    terminal.type("q")
    terminal.wait("remove them and resume all guests")
    terminal.type("y")
    terminal.wait("status 0")
    assert lab["a"].breaks == []
    assert (lab["a"].state, lab["b"].state) == ("running", "running")


def test_a_break_that_was_met_once_is_gone(opened, lab):
    """It no longer counts; the guest is stopped by it, so quitting asks."""
    terminal = opened(120, 34)
    terminal.type("b")
    terminal.wait("^break: ")
    terminal.type("C-u", "wqe --once", "Enter")
    terminal.wait("1 break.s. set here")
    lab["a"].breaks.clear()
    lab["a"].meet("wqe", qpn=17, index=11)
    terminal.wait("a: at a break .*b: frozen")
    terminal.wait("sq slot 11")
    until(lambda: "set here" not in terminal.screen(), "no break any more")
    terminal.type("c")              # a ring in motion is shown where it is
    terminal.wait("a: runs")
    terminal.wait("sq slot 10")
    terminal.type("f")
    terminal.wait("a: frozen")
    terminal.type("q")
    terminal.wait("guests are stopped")
    terminal.type("y")
    terminal.wait("status 0")
    assert lab["a"].state == "running"


def test_break_prompt_says_what_is_wrong(opened, lab):
    terminal = opened(120, 34)
    for words, said in (("nonsense", "no event is called"), ("wqe --psn 3", "a wqe has no psn"),
                        ("wqe --opcode SING", "no code is called"), ("wqe --colour", "colour")):
        terminal.type("b")
        terminal.wait("^break: ")
        terminal.type("C-u", words, "Enter")
        terminal.wait(said)
    assert lab["a"].breaks == []


def test_quit_may_keep(opened, lab):
    terminal = opened()
    terminal.type("b")
    terminal.wait("break: ")
    terminal.type("Enter")
    terminal.wait("break 1, ")
    lab["a"].meet(number=18)
    terminal.wait("at a break")
    terminal.type("q")
    terminal.wait("keep all")
    terminal.type("k")
    terminal.wait("status 0")
    assert len(lab["a"].breaks) == 1 and lab["a"].state == "debug"


def test_inspect_qping_changes_nothing(opened, lab):
    """Quitting without having set a break leaves a stopped guest as it is."""
    lab["a"].add({"condition": {"on": "doorbell"}})
    lab["a"].meet()
    terminal = opened()
    terminal.wait("at a break")
    terminal.type("q")
    terminal.wait("status 0")
    assert lab["a"].state == "debug" and len(lab["a"].breaks) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_guests_go_on_when_it_dies(opened, lab, number):
    terminal = opened()
    terminal.type("b")
    terminal.wait("break: ")
    terminal.type("Enter")
    terminal.wait("break 1, ")
    lab["a"].meet(number=18)
    terminal.wait("b: frozen")
    os.kill(program(terminal), number)
    until(lambda: lab["a"].breaks == [], "the break's end")
    until(lambda: (lab["a"].state, lab["b"].state) == ("running", "running"), "guests that run")


def test_a_guest_that_ends(opened, lab):
    """The other one is still there to look at."""
    terminal = opened(120, 34)
    lab["a"].close()
    terminal.wait("QEMU closed|ended")
    terminal.type("Tab")
    terminal.wait(r"\*b: runs")
    terminal.wait("context of qp")
    terminal.type("q")
    terminal.wait("status 0")


def test_objects_and_kinds(opened):
    terminal = opened()
    terminal.type("1")
    terminal.wait("qp \\(2\\)")
    terminal.type("Up")
    terminal.wait("   qp 17$")
    terminal.type("o")
    terminal.wait("show: qp 17")
    terminal.type("C-u", "novelty 2", "Enter")
    terminal.wait("   novelty 2$")
    terminal.type("2")
    terminal.wait("shine +4")
    terminal.type("o")
    terminal.wait("show: ")
    terminal.type("C-u", "qp 99", "Enter")
    terminal.wait("no qp 99")


def test_the_cursor_of_a_ring_leads_the_walk(opened):
    terminal = opened(160, 50)
    terminal.type("3")
    terminal.wait("sq slot 10")
    terminal.type("Down", "Down")
    terminal.wait("sq slot 12")
    terminal.type("Up")
    terminal.wait("sq slot 11")


def test_both_guests(opened):
    terminal = opened(100, 30)
    terminal.type("v")
    text = terminal.wait("guest a.*guest b")
    assert "peer" not in text.splitlines()[0]
    terminal.type("v", "Tab")
    terminal.wait(r"\*b: runs")


def test_help_and_breaks_lists(opened, lab):
    terminal = opened()
    terminal.type("?")
    terminal.wait("step one table walk")
    terminal.type("x")
    terminal.type("B")
    terminal.wait("no break is set")
    terminal.type("x")
    lab["b"].add({"condition": {"on": "wqe", "code": 4}})
    terminal.type("B")
    terminal.wait("guest b  break 1  met 0 times  wqe, code RDMA_READ")
    terminal.type("x", "D")
    terminal.wait("delete break")
    terminal.type("Enter")
    terminal.wait("1 removed")
    assert lab["b"].breaks == []


def test_colour_and_none(opened, lab):
    lab["a"].meet()
    terminal = opened()
    terminal.wait("at a break")
    assert "\x1b[33m" in terminal.screen(True) or "\x1b[93m" in terminal.screen(True)
    plain = opened(env={"NO_COLOR": "1"})
    plain.wait("at a break")
    assert not re.search(r"\x1b\[(3|4|9)[0-7]m", plain.screen(True))


@pytest.mark.parametrize("term, colour", [("vt100", False), ("xterm-mono", False),
                                          ("xterm", True), ("nobody-knows-it", True)])
def test_colour_as_the_terminal_can(lab, term, colour, tmp_path):
    """What is sent to it, byte by byte."""
    sent = tmp_path / "sent"
    lab["a"].meet()
    with Terminal(f"env TERM={term} script -qfc {shlex.quote(QUOTED)} {sent}", 100, 30, "colour",
                  {"QHCA_RUN": os.environ["QHCA_RUN"]}) as terminal:
        terminal.wait("at a break")
        terminal.type("q")
        terminal.wait("status 0")
    found = re.search(rb"\x1b\[[0-9;]*(?<![0-9])[349][0-7]m", sent.read_bytes())
    assert bool(found) == colour, found


def test_ascii_terminal(opened):
    """Without UTF-8 no line-drawing character is sent."""
    terminal = opened(160, 50, env={"LANG": "C", "LC_ALL": "C"})
    text = terminal.wait("> \\[1\\]")
    assert text.isascii()


@pytest.mark.parametrize("env, said", [
    ({"TERM": "dumb"}, "cannot draw on TERM=dumb"), ({"TERM": ""}, "cannot draw on TERM"),
])
def test_terminals_that_cannot(lab, env, said):
    words = " ".join(f"{k}={v}" for k, v in env.items())
    with Terminal(f"env {words} {QUOTED}", 100, 24, "dumb",
                  {"QHCA_RUN": os.environ["QHCA_RUN"]}) as terminal:
        terminal.wait(said)
        terminal.wait("scope --help")
        terminal.wait("status 2")


def test_no_terminal(lab):
    ended = subprocess.run([str(PROGRAM)], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=False)
    assert ended.returncode == 2 and "needs a terminal" in ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr

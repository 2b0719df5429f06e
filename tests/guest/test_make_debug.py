# SPDX-License-Identifier: GPL-2.0-or-later
"""`make debug`: its panes, and that it leaves nothing behind.

A tmux server of our own is the terminal. It is the reader's tmux in one test,
and just a terminal in the other.
"""

import os
import subprocess
import time

import pytest
from labs import TOP
from qhca_lab import Lab, LabError
from qhca_lab.freeze import run_state

pytestmark = pytest.mark.long("boots a pair for each terminal; test_gdb has gdb and stops")

NAME = "debug"
BOOTED = 400                    # seconds; the others are much shorter on a quiet machine
SHOWN = 120


class Terminal:
    """A detached tmux server with a shell in its only window."""

    def __init__(self, folder):
        self.socket = str(folder / "tmux")
        self.run("-f", "/dev/null", "new-session", "-d", "-x", "180", "-y", "50", "-c", str(TOP),
                 "env PS1='ready> ' bash --noprofile --norc")

    def run(self, *words, socket=None):
        env = {k: v for k, v in os.environ.items() if k != "TMUX"}
        done = subprocess.run(["tmux", "-S", socket or self.socket, *words], env=env,
                              capture_output=True, text=True, timeout=20)
        return done.stdout

    def type(self, text):
        self.run("send-keys", "-t", ":0", text, "Enter")

    def screen(self, pane=":0", socket=None):
        return self.run("capture-pane", "-p", "-J", "-t", pane, socket=socket)

    def panes(self, socket=None):
        """{title: pane} of the window that debug has opened."""
        rows = self.run("list-panes", "-a", "-F", "#{window_name}\t#{pane_title}\t#{pane_id}",
                        socket=socket).splitlines()
        return {row.split("\t")[1]: row.split("\t")[2] for row in rows if row.startswith("qhca\t")}

    def close(self):
        self.run("kill-server")


def until(what, seconds, show):
    """Wait for what() to be true; else show() tells what was there."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, show()
        time.sleep(0.2)
    return found


def up():
    try:
        return Lab.load(NAME)
    except LabError:
        return None


@pytest.fixture
def terminal(tmp_path, manager):
    manager.drop()          # two guests at a time are enough
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()
    if lab := up():
        lab.down()


def all_is_shown(terminal, socket=None):
    """The four panes show a program that is stopped at its doorbell."""
    titles = {"scope", "gdb at guest a", "guest a", "guest b"}
    until(lambda: titles <= set(terminal.panes(socket)), BOOTED, terminal.screen)
    panes = terminal.panes(socket)

    def shows(title, *words):
        def look():
            text = terminal.screen(panes[title], socket)
            return all(word in text for word in words) and text
        return until(look, SHOWN, lambda: f"{title} does not show {words}:\n"
                     + terminal.screen(panes[title], socket))

    shows("guest a", "$ ibv_rc_pingpong")
    shows("gdb at guest a", "SIGTRAP", "qhca_")
    shows("scope", "doorbell")
    return panes


def states(lab):
    return [run_state(lab[name]) for name in "ab"]


def stopped_at(lab):
    """The event at which guest a's adapter is stopped; None if it runs."""
    with lab["a"].tool_qmp() as qmp:
        look = qmp.command("qhca-query-stop")["look"]
    return look.get("event") if look["stopped"] else None


def test_inside_tmux(terminal):
    """In the reader's tmux: a window more; the programs go on; it ends with it."""
    terminal.type("lab/run/debug")
    panes = all_is_shown(terminal)
    lab = up()

    def stand(*wanted):
        until(lambda: states(lab) == list(wanted), SHOWN,
              lambda: f"{states(lab)}, not {wanted}: {lab.logs}/scope-sync.log")

    def gdb(*keys):
        terminal.run("send-keys", "-t", panes["gdb at guest a"], *keys)

    stand("debug", "paused")
    # Packet by packet, so that they part and meet often; then all at once.
    for _ in range(8):
        before = stopped_at(lab)
        terminal.run("send-keys", "-t", panes["scope"], "p")
        until(lambda: stopped_at(lab) not in (None, before), SHOWN,
              lambda: terminal.screen(panes["scope"]))
        stand("debug", "paused")
    gdb("continue", "Enter")
    for guest in ("guest a", "guest b"):
        until(lambda: "[ended with " in terminal.screen(panes[guest]), SHOWN,
              lambda: terminal.screen(panes[guest]))
        assert "[ended with 0]" in terminal.screen(panes[guest])
    # What stops guest a, gdb's Ctrl-C here, stops guest b, too.
    stand("running", "running")
    gdb("C-c")
    stand("paused", "paused")
    gdb("continue", "Enter")
    stand("running", "running")
    terminal.run("kill-window", "-t", panes["scope"])
    until(lambda: "qhca: ended" in terminal.screen(), SHOWN, terminal.screen)
    assert up() is None and not terminal.panes()


def test_in_a_plain_terminal(terminal):
    """Outside of tmux: its own tmux, which C-b d ends with everything else."""
    terminal.type("env -u TMUX lab/run/debug --solo '/qhca/build/guest-progs/retries rnr 12 1'")
    lab = until(up, BOOTED, terminal.screen)
    socket = str(lab.dir / "tmux")
    titles = {"scope", "gdb at guest a", "guest a", "guest b"}
    until(lambda: titles <= set(terminal.panes(socket)), BOOTED, terminal.screen)
    panes = terminal.panes(socket)
    until(lambda: "SIGTRAP" in terminal.screen(panes["gdb at guest a"], socket), SHOWN,
          lambda: terminal.screen(panes["gdb at guest a"], socket))
    terminal.run("detach-client", socket=socket)
    until(lambda: "qhca: ended" in terminal.screen(), SHOWN, terminal.screen)
    assert up() is None
    assert "no server" in subprocess.run(["tmux", "-S", socket, "ls"], capture_output=True,
                                         text=True).stderr.lower() or not os.path.exists(socket)

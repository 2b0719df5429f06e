# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/run/debug where it cannot work: it reports that before a guest is booted."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

DEBUG = Path(__file__).resolve().parents[2] / "lab" / "run" / "debug"


def debug(*words, terminal=True, **environment):
    """(exit status, output) of lab/run/debug."""
    env = {**os.environ, "TERM": "xterm", **environment}
    env.pop("TMUX", None)
    if not terminal:
        done = subprocess.run([DEBUG, *words], env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        return done.returncode, done.stdout
    ours, theirs = pty.openpty()
    with subprocess.Popen([DEBUG, *words], env=env, stdin=theirs, stdout=theirs,
                          stderr=theirs) as child:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    return child.returncode, said.decode()


def test_without_a_terminal():
    status, said = debug(terminal=False)
    assert status == 1 and "needs a terminal" in said and "ssh -t" in said


def test_with_a_dumb_terminal():
    status, said = debug(TERM="dumb")
    assert status == 1 and "TERM" in said


def test_without_a_program():
    status, said = debug(" ")
    assert status == 1 and "PROG is empty" in said


@pytest.fixture
def without_tmux(tmp_path):
    """A PATH that has python3 and no tmux."""
    (tmp_path / "python3").symlink_to("/usr/bin/python3")
    return str(tmp_path)


def test_without_tmux(without_tmux):
    status, said = debug(PATH=without_tmux)
    assert status == 1 and "no tmux" in said and "make deps" in said

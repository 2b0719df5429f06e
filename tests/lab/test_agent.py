# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's end of lab/qhca-lab, with a port that is none."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab" / "guest"))

import agent  # noqa: E402


class Port:
    """Keeps what is sent, and is as full as the test says."""

    def __init__(self):
        self.sent = []
        self.session = None

    def send(self, kind, data):
        self.sent.append((kind, bytes(data)))

    def text(self, kind):
        return b"".join(d for k, d in self.sent if k == kind)

    @property
    def end(self):
        return json.loads(self.sent[-1][1]) if self.sent and self.sent[-1][0] == b"X" else None


def with_folder(cls):
    """The kernel makes a control group's files."""
    folder = Path(agent.CGROUP) / f"s{agent.Cgroup.count + 1}"
    folder.mkdir()
    (folder / "cgroup.procs").touch()
    return object.__new__(cls)


def processes(cgroup):
    """The file of CGROUP's processes; the kernel forgets those that have ended."""
    return Path(cgroup.path) / "cgroup.procs"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Starts a command; gives its port."""
    monkeypatch.setattr(agent, "CGROUP", str(tmp_path))
    monkeypatch.setattr(agent.guestenv, "environment",
                        lambda _user: dict(os.environ, HOME=str(tmp_path)))
    monkeypatch.setattr(agent.Cgroup, "__new__", with_folder)
    monkeypatch.setattr(agent.Cgroup, "free", [])
    monkeypatch.setattr(agent.Cgroup, "left", [])
    monkeypatch.setattr(agent, "home", agent.Cgroup())
    monkeypatch.chdir(tmp_path)
    ports = []

    def start(line, **request):
        port = Port()
        port.session = agent.Session(port, {"argv": ["sh", "-c", line], **request})
        ports.append(port)
        return port

    yield start
    for port in ports:
        if port.session:
            port.session.close(kill=True)


def turn(seconds=0.0):
    """What the agent's loop does once."""
    for key, events in agent.sel.select(seconds):
        if key.fd in agent.sel.get_map():
            key.data(key.fd, events)


def until_it_ended(port):
    deadline = time.monotonic() + 30
    while port.session.ended is None:
        assert time.monotonic() < deadline, "the command does not end"
        turn(0.1)


def test_output_and_status(run):
    port = run("echo out; echo err >&2; exit 3")
    deadline = time.monotonic() + 30
    while port.end is None:
        assert time.monotonic() < deadline
        turn(0.1)
    assert (port.text(b"O"), port.text(b"E"), port.end) == (b"out\n", b"err\n", {"status": 3})


def test_output_that_had_to_wait(run, monkeypatch):
    """A port that was full until long after the command's end loses nothing."""
    port = run("head -c 60000 /dev/zero | tr '\\0' x; exec sleep 0.01")
    port.session.pause(True)
    until_it_ended(port)
    port.session.maybe_finish()
    assert port.end is None
    monkeypatch.setattr(agent, "GRACE", -1)         # the time is over
    port.session.pause(False)
    port.session.maybe_finish()
    assert port.end == {"status": 0} and port.text(b"O") == b"x" * 60000


def test_who_is_left_running_holds_nothing_up(run, monkeypatch):
    """What a child of a command writes for ever is no reason to wait for ever."""
    port = run("yes & exit 0")
    until_it_ended(port)
    monkeypatch.setattr(agent, "GRACE", -1)
    port.session.maybe_finish()
    assert port.end == {"status": 0} and port.session is None


@pytest.mark.parametrize("request_", ({}, {"tty": True}), ids=("pipes", "terminal"))
def test_programs_that_are_missing(run, request_):
    """Nothing is left open of a command that cannot start."""
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        run("", argv=["no-such-program"], **request_)
    with pytest.raises(FileNotFoundError):
        run("", cwd="/no/such/folder", **request_)
    cgroups = agent.Cgroup.free + agent.Cgroup.left
    assert len(os.listdir("/proc/self/fd")) == len(before) + len(cgroups)


def test_terminal(run):
    port = run("tty -s && stty size; kill -9 $$", tty=True, rows=7, cols=70)
    until_it_ended(port)
    deadline = time.monotonic() + 30
    while port.end is None:
        assert time.monotonic() < deadline
        turn(0.1)
    assert port.text(b"O") == b"7 70\r\n" and port.end == {"signal": 9}


def test_control_groups_are_used_again(run):
    """But not while something runs in one."""
    one = run("exit 0").session.cgroup
    processes(one).write_text("")
    one.give_back()
    assert agent.Cgroup.take() is one
    processes(one).write_text("4711\n")
    one.give_back()
    assert agent.Cgroup.take() is not one
    processes(one).write_text("")
    assert agent.Cgroup.take() is one

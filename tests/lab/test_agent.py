# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's end of lab/qhca-lab, with a fake port."""

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
    """Records what is sent, and is as full as the test specifies."""

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
    """Starts a command; returns its port."""
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
    """One iteration of the agent's loop."""
    for key, events in agent.sel.select(seconds):
        if key.fd in agent.sel.get_map():
            key.data(key.fd, events)


def until_it_ended(port):
    deadline = time.monotonic() + 120
    while port.session.ended is None:
        assert time.monotonic() < deadline, "the command does not end"
        turn(0.1)


def test_output_and_status(run):
    port = run("echo out; echo err >&2; exit 3")
    deadline = time.monotonic() + 120
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
    """A child of a command that writes forever does not make the agent wait forever."""
    port = run("yes & exit 0")
    until_it_ended(port)
    monkeypatch.setattr(agent, "GRACE", -1)
    port.session.maybe_finish()
    assert port.end == {"status": 0} and port.session is None


@pytest.mark.parametrize("request_", ({}, {"tty": True}), ids=("pipes", "terminal"))
def test_programs_that_are_missing(run, request_):
    """A command that cannot start leaves nothing open."""
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        run("", argv=["no-such-program"], **request_)
    with pytest.raises(FileNotFoundError):
        run("", cwd="/no/such/folder", **request_)
    cgroups = agent.Cgroup.free + agent.Cgroup.left
    assert len(os.listdir("/proc/self/fd")) == len(before) + len(cgroups)


def test_terminal(run):
    port = run("tty -s && stty size; kill -9 $$", tty=True, rows=7, cols=70)
    deadline = time.monotonic() + 120
    while port.end is None:
        assert time.monotonic() < deadline
        turn(0.1)
    assert port.text(b"O") == b"7 70\r\n" and port.end == {"signal": 9}


def test_control_groups_are_used_again(run):
    """But not while a process runs in one."""
    one = run("exit 0").session.cgroup
    processes(one).write_text("")
    one.give_back()
    assert agent.Cgroup.take() is one
    processes(one).write_text("4711\n")
    one.give_back()
    assert agent.Cgroup.take() is not one
    processes(one).write_text("")
    assert agent.Cgroup.take() is one


def test_python_without_a_new_interpreter(run):
    """A program run in a copy of the agent behaves like any other."""
    def outcome(text):
        port = run("", python=True, env={"WORD": "here"})
        port.session.feed(text.encode())
        port.session.end_input()
        deadline = time.monotonic() + 120
        while port.end is None:
            assert time.monotonic() < deadline
            turn(0.1)
        return port.end["status"], port.text(b"O").decode(), port.text(b"E").decode()

    assert outcome("import os, sys\nprint(os.environ['WORD'], __name__, sys.argv,"
                   " os.listdir('/proc/self/fd')[:4], os.getsid(0) == os.getpid())") == (
        0, "here __main__ ['-'] ['0', '1', '2', '3'] True\n", "")
    assert outcome("raise SystemExit(7)") == (7, "", "")
    assert outcome("import sys; sys.exit('no')") == (1, "", "no\n")
    status, out, err = outcome("print('ä')\n1 / 0")
    assert (status, out) == (1, "ä\n") and 'File "<stdin>", line 2' in err
    assert "SyntaxError" in outcome("1 +")[2]
    assert outcome("import threading\nthreading.Thread(target=lambda: print('late')).start()") == (
        0, "late\n", "")


def test_questions(tmp_path, monkeypatch):
    """Answers need no process."""
    (tmp_path / "one").write_text("1\n" * agent.CHUNK)
    monkeypatch.setattr(agent.guestenv, "environment", lambda: {"NODE": "a", "GIDX": "1"})
    port = Port()
    agent.Port.answer(port, [str(tmp_path / "missing"), str(tmp_path / "one")])
    assert port.text(b"O") == b"1\n" * agent.CHUNK and port.end == {"status": 0}
    agent.Port.answer(port, "environment")
    assert port.text(b"O").endswith(b"1\nNODE=a\nGIDX=1\n")


def test_a_host_that_is_away_for_a_moment(monkeypatch):
    """The end of the last connection may be reported after the first data of the next one: the
    command of the new one continues. Without a new connection, it is killed."""
    class Session:
        killed = False

        def close(self, kill):
            Session.killed = kill

        def pause(self, _on):
            pass

    mine, theirs = os.pipe()
    answers = []

    def read(_fd, _size):
        if not answers:
            raise BlockingIOError
        return answers.pop(0)

    port = object.__new__(agent.Port)
    vars(port).update(fd=mine, inbuf=bytearray(), out=bytearray(), session=Session(),
                      attached=True, synced=True, away=None)
    monkeypatch.setattr(agent.os, "read", read)
    agent.sel.register(mine, agent.selectors.EVENT_READ, port.on_event)
    try:
        answers.append(b"")
        port.on_event(mine, agent.selectors.EVENT_READ)
        assert port.away is not None and mine not in agent.sel.get_map()
        answers.append(b"")
        port.check()                            # still away, but not for long
        assert port.away is not None and not Session.killed
        port.check()                            # and here it is
        assert port.away is None and port.attached and mine in agent.sel.get_map()
        answers.append(b"")
        port.on_event(mine, agent.selectors.EVENT_READ)
        monkeypatch.setattr(agent, "AWAY", -1)  # the time is over
        answers.append(b"")
        port.check()
        assert Session.killed and not port.attached
    finally:
        for fd in (mine, theirs):
            os.close(fd)

# SPDX-License-Identifier: GPL-2.0-or-later
"""A server and its client, with programs on this host instead of in guests."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import CommandFailed, CommandTimeout, LabError, Result, cli, pair  # noqa: E402

SERVER = """
import os, socket, sys, time
s = socket.create_server(("127.0.0.1", 0))
open({file!r}, "w").write(str(s.getsockname()[1]))
print("serving", os.environ["PEER"], flush=True)
c, _ = s.accept()
print("client said", c.recv(9).decode(), flush=True)
{then}
"""
CLIENT = """
import os, socket, sys, time
c = socket.create_connection(("127.0.0.1", int(open({file!r}).read())))
print("I am the client of", os.environ["PEER"], flush=True)
c.send(b"hello"); c.close()
{then}
"""


class Network:
    """A separate network for the tests, so that other listeners on this host do not interfere."""

    def __init__(self):
        root = os.getuid() == 0
        self._holder = subprocess.Popen(
            ["unshare", "--net", *([] if root else ["--user", "--map-root-user"]),
             "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE, env=dict(os.environ, PATH="/usr/sbin:/usr/bin:/sbin:/bin"))
        assert self._holder.stdout.readline() == b"up\n"
        self.enter = ["nsenter", f"--target={self._holder.pid}", "--net",
                      *([] if root else ["--user", "--preserve-credentials"])]

    def read(self, file):
        path = Path(f"/proc/{self._holder.pid}/net/{file}")
        return path.read_text() if path.exists() else ""

    def close(self):
        self._holder.kill()
        self._holder.wait()
        self._holder.stdout.close()


class Job:
    """Background, on this host."""

    def __init__(self, guest, command, env):
        self.guest, self.command = guest, command
        argv = ["/bin/bash", "-c", command] if isinstance(command, str) else command
        self._child = subprocess.Popen([*guest.network.enter, *argv], env={**os.environ, **env},
                                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       start_new_session=True)
        self._texts = {}
        self._threads = [threading.Thread(target=self._read, args=a, daemon=True)
                         for a in ((1, self._child.stdout), (2, self._child.stderr))]
        for thread in self._threads:
            thread.start()

    def _read(self, number, stream):
        for line in stream:
            self._texts[number] = self._texts.get(number, "") + line

    stdout = property(lambda self: self._texts.get(1, ""))
    stderr = property(lambda self: self._texts.get(2, ""))
    running = property(lambda self: self._child.poll() is None)

    def join(self, timeout):
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        for thread in self._threads:
            thread.join(5)
        return True

    def result(self):
        return Result(str(self.command), self._child.poll(), self.stdout, self.stderr, 0.0)

    def wait(self, timeout, check=False):
        assert self.join(timeout)
        if check and self._child.returncode:
            raise CommandFailed(self.result().describe(), self.result())
        return self.result()

    def kill(self):
        if self.running:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


class Guest:
    def __init__(self, name, network):
        self.name, self.ip, self.alive = name, f"address of {name}", True
        self.network, self.jobs = network, []

    def start(self, command, env=None):
        self.jobs.append(Job(self, command, env or {}))
        return self.jobs[-1]

    def listening(self):
        rows = [line.split() for file in ("tcp", "tcp6")
                for line in self.network.read(file).splitlines()]
        return {row[1] for row in rows if row[3] == "0A"}

    def processes(self):
        return f"processes of {self.name}"

    def evidence(self, _lines):
        return ""


@pytest.fixture(scope="module")
def network():
    network = Network()
    yield network
    network.close()


@pytest.fixture
def lab(monkeypatch, network):
    monkeypatch.setattr(pair, "run_state", lambda guest: pair.RUNNING)
    guests = {name: Guest(name, network) for name in "abc"}
    yield guests
    for guest in guests.values():
        for job in guest.jobs:
            job.kill()


@pytest.fixture
def programs(tmp_path):
    """Shell lines for server and client, with what they do in the end."""
    count = iter(range(9))

    def line(text, then):
        script = tmp_path / f"{next(count)}.py"
        script.write_text(text.format(file=str(tmp_path / "port"), then=then))
        return f"{sys.executable} {script}"

    def make(server="", client=""):
        return line(SERVER, server), line(CLIENT, client)

    return make


def test_the_client_waits_for_its_server(lab, programs, capsys):
    server, client = programs()
    served, result = pair.run(lab, ("b", f"sleep 0.5; {server}"), ("a", client),
                              show=pair.Labelled())
    assert served.rc == result.rc == 0
    assert capsys.readouterr().out.splitlines() == [
        "a: I am the client of address of b", "b: serving address of a", "b: client said hello"]


def test_other_guests(lab, programs):
    server, client = programs()
    _, result = pair.run(lab, ("c", server), ("b", client))
    assert "address of c" in result.out


@pytest.mark.parametrize("ends, status, told", [
    (("sys.exit(0)", "sys.exit(0)"), 0, []),
    (("sys.exit(0)", "sys.exit(3)"), 3, ["the command in guest a ended with status 3"]),
    (("sys.exit(4)", "sys.exit(0)"), 4, ["the command in guest b ended with status 4"]),
])
def test_exit_status(lab, programs, ends, status, told):
    server, client = ("b", programs(*ends)[0]), ("a", programs(*ends)[1])
    said = []
    assert pair.status(pair.run(lab, server, client), server, client, said.append) == status
    assert said == told


def test_checked(lab, programs):
    server, client = programs(client="sys.exit(3)")
    with pytest.raises(CommandFailed, match="guest a"):
        pair.run_checked(lab, ("b", server), ("a", client))


def test_a_hang_is_killed_and_shown(lab, programs, monkeypatch):
    server, client = programs(client="time.sleep(600)")
    over = pair.TimeLimit.over

    def said(limit):
        """The time is over as soon as there is all to show, however slow the host is."""
        texts = "".join(job.stdout for name in "ab" for job in lab[name].jobs)
        return "I am the client" in texts and "client said hello" in texts or over(limit)

    monkeypatch.setattr(pair.TimeLimit, "over", said)
    with pytest.raises(CommandTimeout) as error:
        pair.run(lab, ("b", server), ("a", client), timeout=120)
    for words in ("I am the client", "client said hello", "processes of a", "processes of b"):
        assert words in str(error.value)
    assert not any(job.running for guest in lab.values() for job in guest.jobs)


def test_a_server_that_does_not_end(lab, programs, monkeypatch):
    monkeypatch.setattr(pair, "GRACE", 0.5)
    server, client = programs(server="time.sleep(60)")
    with pytest.raises(LabError, match="the server did not"):
        pair.run(lab, ("b", server), ("a", client))
    assert not lab["b"].jobs[0].running


def test_a_server_that_ends_at_once(lab):
    with pytest.raises(CommandFailed, match="status 1 before a client (?s:.*)no such device"):
        pair.run(lab, ("b", "echo no such device; exit 1"), ("a", "echo never"))
    assert not lab["a"].jobs


def test_a_server_that_is_not_ready(lab):
    with pytest.raises(CommandTimeout, match="not ready after 0.5 s(?s:.*)processes of b"):
        pair.start_server(lab["b"], "while :; do :; done", timeout=0.5, port=1)
    assert not lab["b"].jobs[0].running


def test_a_certain_port(lab, tmp_path):
    """Another socket of the server does not count."""
    server = tmp_path / "server.py"
    server.write_text("import socket, time\n"
                      "one = socket.create_server(('127.0.0.1', 0)); time.sleep(0.7)\n"
                      "two = socket.create_server(('127.0.0.1', 47511)); time.sleep(60)\n")
    begin = time.monotonic()
    pair.start_server(lab["b"], f"{sys.executable} {server}", port=47511)
    assert time.monotonic() - begin > 0.7


def test_a_command_that_knows(lab, tmp_path):
    """No socket listens, and the server does not sleep."""
    file = tmp_path / "ready"
    job = pair.start_server(lab["b"], f"sleep 0.5; touch {file}; while :; do :; done",
                            ready=f"test -e {file}")
    assert file.exists() and job.running


def test_time_with_a_stopped_guest_does_not_count(lab, monkeypatch):
    states = {"a": "debug", "b": "paused"}
    monkeypatch.setattr(pair, "run_state", lambda guest: states[guest.name])
    limit = pair.TimeLimit(0.2, lab["a"], lab["b"])
    time.sleep(0.3)
    assert not limit.over()
    states.update(a="running", b="running")
    time.sleep(0.3)
    assert limit.over()


def test_a_client_of_the_host(lab, programs, capfd):
    server, client = programs(server="time.sleep(60)")

    class Named(dict):
        name = "mylab"

    command = [*lab["b"].network.enter, "bash", "-c", f"{client}; echo in $QHCA_LAB; exit 5"]
    assert pair.run_host_client(Named(lab), ("b", f"export PEER=none; {server}"), command) == 5
    said = capfd.readouterr().out
    assert "client of address of b" in said and "in mylab" in said
    assert "b: client said hello" in said
    assert not lab["b"].jobs[0].running


# ---------------------------------------------------------- the command line


def asked(*words, rest=()):
    args = cli.parser().parse_args(words)
    args.rest = list(rest)
    return pair.Asked.of(args)


@pytest.mark.parametrize("command", [["pair"], ["record", "-o", "run"]], ids=lambda c: c[0])
@pytest.mark.parametrize("words, server, client, timeout, name", [
    (["x -n 1"], ("b", "x -n 1"), ("a", "x -n 1 $PEER"), pair.TIMEOUT, "x -n 1"),
    (["--server", "a", "--client", "c", "x"], ("a", "x"), ("c", "x $PEER"), pair.TIMEOUT, "x"),
    (["x", "--client-command", "y $PEER", "--timeout", "3"], ("b", "x"), ("a", "y $PEER"), 3,
     "b: x; a: y $PEER"),
])
def test_all_commands_take_the_same(command, words, server, client, timeout, name):
    found = asked(*command, *words)
    assert (found.server, found.client, found.timeout) == (server, client, timeout)
    assert str(found) == name


def test_a_client_of_the_host_is_no_other():
    assert str(asked("record", "x", rest=["./y", "a b"])) == "b: x; host: ./y 'a b'"
    with pytest.raises(LabError, match="the client is either"):
        asked("pair", "x", "--client-command", "y", rest=["./z"])


@pytest.mark.parametrize("words, rest, told", [
    (["--client", "a"], [], "need a PROGRAM"),
    (["--timeout", "3", "--seconds", "1"], [], "need a PROGRAM"),
    (["x", "--seconds", "1"], [], "give one of"),
    (["--seconds", "1"], ["true"], "give one of"),
])
def test_record_refuses(monkeypatch, words, rest, told):
    monkeypatch.setattr(cli.record.Lab, "load", lambda name: None)
    args = cli.parser().parse_args(["record", *words])
    args.rest = rest
    with pytest.raises(LabError, match=told):
        args.run(args)


def test_asked_for_on_the_command_line(lab, programs, monkeypatch, capsys):
    server, client = programs(client="sys.exit(3)")
    said = []
    assert asked("pair", server, "--client-command", client).run(lab, said.append) == 3
    assert said == ["the command in guest a ended with status 3"]
    assert "a: I am the client of address of b" in capsys.readouterr().out
    server, client = programs(client="time.sleep(600)")
    found = asked("record", server, "--client-command", client, "--timeout", "1")
    assert found.run(lab, said.append) == 124 and "killed after 1 s" in said[-1]

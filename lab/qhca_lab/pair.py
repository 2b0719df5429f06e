# SPDX-License-Identifier: GPL-2.0-or-later
"""Running a pair of programs: a server in one guest and, once it waits for
clients, its client in another guest or on the host.

Everything that needs a pair goes through here: qhca-lab pair, record, the demo,
make debug, the benchmarks, the figures and the tests.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable

from .errors import CommandFailed, CommandTimeout, LabError
from .freeze import RUNNING, run_state
from .guest import Background, Guest, Result

# Seconds for a server to become ready, for both programs, and for the server to
# end after its client.
READY_TIMEOUT = 60.0
TIMEOUT = 600.0
GRACE = 30.0
GRACE_FAILED = 5.0

# In the server's guest: wait until a TCP socket listens that did not before, or until
# all processes of the server have slept for two seconds (rping listens on no TCP
# port); with a port, only until that one listens. A process belongs to the server if
# its token is in the environment. No other program is started in the loop, as that is
# slow in a guest under TCG.
WAIT_READY = r"""
token=$1 port=$2; shift 2; before=" $* "
exec 3<> <(:)
pause() { read -r -t 0.1 -u 3; }
cgroup= idle=0 used_before=
while :; do
    for table in /proc/net/tcp /proc/net/tcp6; do
        [ -e $table ] || continue
        while read -r _ address _ state _; do
            [[ $state != 0A || $before == *" $address "* || $address != *$port ]] || exit 0
        done <$table
    done
    if [ -n "$port" ]; then
        :
    elif [ -z "$cgroup" ]; then
        for found in $(grep -lz "^QHCA_PAIR=$token$" /proc/[0-9]*/environ 2>/dev/null); do
            read -r cgroup 2>/dev/null <${found%environ}cgroup && cgroup=/sys/fs/cgroup${cgroup#0::}
            break
        done
    else
        sleeping=y
        { while read -r pid; do
            read -r stat 2>/dev/null </proc/$pid/stat || continue
            stat=${stat##*) }
            [ "${stat%% *}" = S ] || sleeping=
        done <$cgroup/cgroup.procs; read -r _ used <$cgroup/cpu.stat; } 2>/dev/null
        if [ -n "$sleeping" ] && [ "$used" = "$used_before" ]; then
            [ $((++idle)) -lt 20 ] || exit 0
        else
            idle=0
        fi
        used_before=$used
    fi
    pause
done
"""


class TimeLimit:
    """SECONDS during which all GUESTS run. While one of them is stopped, at a break
    or by gdb, the time does not count."""

    STEP = 5.0

    def __init__(self, seconds: float, *guests: Guest):
        self.seconds = self._left = seconds
        self._guests = guests
        self._seen = time.monotonic()

    def over(self) -> bool:
        spent = time.monotonic() - self._seen
        if spent < min(self.STEP, self._left):
            return False
        self._seen += spent
        if all(run_state(g) in (RUNNING, "unknown", None) for g in self._guests):
            self._left -= spent
        return self._left <= 0


class Listening:
    """Detects when a program in GUEST starts to listen on a TCP port."""

    def __init__(self, guest: Guest):
        self.guest = guest
        self._before = guest.listening()

    def watch(self, token: str = "-", port: int | None = None) -> Background:
        """A command in the guest that ends when a server is ready. TOKEN: what the
        server has in its environment as QHCA_PAIR. PORT: it listens on this one."""
        suffix = "" if port is None else f":{port:04X}"
        return self.guest.start(["/bin/bash", "-c", WAIT_READY, "wait-ready", token, suffix,
                                 *sorted(self._before)])


def start_server(guest: Guest, command: str | list[str], timeout: float = READY_TIMEOUT,
                 env: dict | None = None, port: int | None = None,
                 ready: str | None = None) -> Background:
    """Start COMMAND in GUEST and return once it waits for clients, on PORT if that is
    given, or with READY once that shell command succeeds in the guest. CommandFailed when
    it ends first, CommandTimeout when it is not ready in time."""
    listening = Listening(guest)
    token = secrets.token_hex(8)
    job = guest.start(command, env=dict(env or {}, QHCA_PAIR=token))
    if ready is None:
        watch = listening.watch(token, port)
    else:
        watch = guest.start(f"until ( {ready} ) >/dev/null 2>&1; do sleep 0.1; done")
    try:
        limit = TimeLimit(timeout, guest)
        while watch.running:
            if not job.running:
                result = job.wait(0)
                raise CommandFailed(f"guest {guest.name}: the server ended with status {result.rc} "
                                    f"before a client could connect\n{result.describe()}", result)
            if limit.over():
                raise CommandTimeout(
                    f"guest {guest.name}: the server is not ready after {timeout:g} s\n"
                    f"{job.result().describe()}\n{guest.processes()}", job.result())
            watch.join(0.05)
        watch.wait(0, check=True)
    except BaseException:
        job.kill()
        raise
    finally:
        watch.kill()
    return job


def end_server(job: Background, grace: float = GRACE) -> Result:
    """Wait until the server ends; LabError if it does not within GRACE."""
    limit = TimeLimit(grace, job.guest)
    while not job.join(0.05):
        if limit.over():
            raise LabError(f"the client ended, the server did not\n{job.result().describe()}")
    return job.wait(0)


def run(lab, server: tuple[str, str], client: tuple[str, str], timeout: float = TIMEOUT,
        show: Callable[[Background, bool], None] | None = None) -> tuple[Result, Result]:
    """Run a server and its client to their ends; returns the results of both.

    SERVER and CLIENT are (guest, shell command); $PEER is the other's address.
    SHOW(job, ended) is called regularly for each of them. After TIMEOUT
    seconds, in which time with a stopped guest does not count, both are killed and
    CommandTimeout shows them. A server that outlives a failed client is ended.
    """
    a, b = lab[client[0]], lab[server[0]]
    show = show or (lambda _job, _ended: None)
    limit = TimeLimit(timeout, a, b)
    job = start_server(b, server[1], env={"PEER": a.ip})
    try:
        other = a.start(client[1], env={"PEER": b.ip})
        try:
            while not other.join(0.05):
                show(other, False)
                if limit.over():
                    waiting = f"{a.processes()}\n{b.processes()}"
                    raise CommandTimeout(
                        f"killed after {timeout:g} s\nguest {a.name}: {other.result().describe()}\n"
                        f"guest {b.name}: {job.result().describe()}\n{waiting}\n"
                        f"{a.evidence(10)}\n{b.evidence(10)}", other.result())
            show(other, True)
            result = other.wait(0)
        finally:
            other.kill()
        try:
            served = end_server(job, GRACE if result.rc == 0 else GRACE_FAILED)
        except LabError:
            if result.rc == 0:
                raise
            served = job.result()
        return served, result
    finally:
        job.kill()
        show(job, True)


def run_checked(lab, server: tuple[str, str], client: tuple[str, str],
                timeout: float = TIMEOUT) -> tuple[Result, Result]:
    """run(), with CommandFailed if either ends with a status other than 0."""
    results = run(lab, server, client, timeout)
    for result, (guest, _) in zip(reversed(results), (client, server)):
        if result.rc != 0:
            raise CommandFailed(f"guest {guest}: {result.describe()}", result)
    return results


class Labelled:
    """Writes the output of jobs, each line with its guest's name: the SHOW of run(). The
    client's as it arrives, the server's after its end, so that they do not mix.
    """

    def __init__(self):
        self._written: dict[tuple[int, bool], int] = {}

    def __call__(self, job: Background, ended: bool) -> None:
        for errors, stream in ((False, sys.stdout), (True, sys.stderr)):
            text = job.stderr if errors else job.stdout
            at = self._written.get((id(job), errors), 0)
            end = len(text) if ended else text.rfind("\n") + 1
            for line in text[at:end].splitlines():
                print(f"{job.guest.name}: {line}", file=stream, flush=True)
            self._written[(id(job), errors)] = max(at, end)


def status(results: tuple[Result, Result], server: tuple[str, str], client: tuple[str, str],
           say: Callable[[str], None]) -> int:
    """The exit status for RESULTS of run(): the client's, or if that is 0 the server's.
    SAY is called with who failed."""
    found = 0
    for result, (guest, _) in zip(results, (server, client)):
        if result.rc != 0:
            say(f"the command in guest {guest} ended with status {result.rc}")
            found = result.rc or 1
    return found


def run_host_client(lab, server: tuple[str, str], command: list[str]) -> int:
    """Run COMMAND on the host while a server waits in a guest; its exit status. It
    finds the lab in QHCA_LAB and the server's address in PEER. The server is ended
    soon after it."""
    guest = lab[server[0]]
    job = start_server(guest, server[1])
    try:
        status = subprocess.call(command, env=dict(os.environ, QHCA_LAB=lab.name, PEER=guest.ip))
        job.join(2)
    except OSError as error:
        raise LabError(f"{command[0]}: {error.strerror}") from None
    finally:
        job.kill()
        Labelled()(job, True)
    return status if status >= 0 else 128 - status


# ---------------------------------------------------------- the command line


def add_arguments(parser, needed: bool = True) -> None:
    """The arguments of a command that runs a pair; PROGRAM may be left out unless NEEDED."""
    parser.add_argument("program", metavar="PROGRAM", nargs=None if needed else "?",
                        help="a shell line: the server and, followed by the server's address, "
                        "the client")
    parser.add_argument("--server", metavar="GUEST", help="default b")
    parser.add_argument("--client", metavar="GUEST", help="default a")
    parser.add_argument("--client-command", metavar="COMMAND",
                        help="run this as the client; $PEER in it is the server's address")
    parser.add_argument("--timeout", type=float, metavar="SECONDS",
                        help=f"kill both then; status 124 (default {TIMEOUT:.0f}). Time in which "
                        "a guest is stopped, as at a break, does not count")


@dataclasses.dataclass(frozen=True)
class Asked:
    """The pair that the arguments of a command ask for: (guest, shell command) of each
    end, or a command of the host as the client."""

    server: tuple[str, str]
    client: tuple[str, str]
    host: list[str]
    timeout: float

    @classmethod
    def of(cls, args) -> Asked:
        """From the arguments of add_arguments() and ARGS.rest, the words after --."""
        if args.rest and (args.client or args.client_command):
            raise LabError("the client is either the command after -- or one in a guest")
        return cls((args.server or "b", args.program),
                   (args.client or "a", args.client_command or f"{args.program} $PEER"),
                   args.rest, TIMEOUT if args.timeout is None else args.timeout)

    def __str__(self) -> str:
        if not self.host and self.client[1] == f"{self.server[1]} $PEER":
            return self.server[1]
        client = f"host: {shlex.join(self.host)}" if self.host else ": ".join(self.client)
        return f"{': '.join(self.server)}; {client}"

    def run(self, lab, say: Callable[[str], None]) -> int:
        """Run it with labelled output; the exit status. SAY is called with errors."""
        if self.host:
            return run_host_client(lab, self.server, self.host)
        try:
            results = run(lab, self.server, self.client, self.timeout, Labelled())
        except CommandTimeout as error:
            say(str(error))
            return 124
        return status(results, self.server, self.client, say)

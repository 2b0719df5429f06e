# SPDX-License-Identifier: GPL-2.0-or-later
"""A running guest: commands, files, console."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import select
import shlex
import signal
import tarfile
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from . import paths, process, qmp
from .channel import Channel
from .errors import CommandFailed, CommandTimeout, LabError


@dataclasses.dataclass
class Result:
    """How a command ended: `rc` is its exit status, 128 + N if signal N killed it, None if
    it was killed because it took too long. `out` and `err` are its output."""

    command: str
    rc: int | None
    out: str
    err: str
    seconds: float

    def describe(self) -> str:
        ended = "timed out" if self.rc is None else f"status {self.rc}"
        text = f"$ {self.command}\n[{ended} after {self.seconds:.1f} s]"
        for name, stream in (("stdout", self.out), ("stderr", self.err)):
            if stream.strip():
                text += f"\n--- {name}\n{stream.rstrip()}"
        return text


# What the kernel prints when something is wrong with it or with the driver.
# All of it has a log level that reaches the console.
KERNEL_TROUBLE = re.compile(
    r"BUG:|Oops|WARNING:|Call Trace|general protection|hung task|blocked for more"
    r"|refcount_t|DMAR: \[(DMA|INTR|Fault)|soft lockup|rcu:.*stall|UBSAN|KASAN"
    r"|Kernel panic|page allocation failure|Unable to handle|non-static key|ODEBUG:"
    r"|unregister_netdevice: waiting"
)
# Warnings although the driver and the device have done nothing wrong:
# - An application may register the same memory twice, which the check of DMA mappings in
#   the kernel "debug" does not expect.
# - rds_ib_free_frmr() counts the pages of an MR after it has put that on a list, from which
#   a flush on another CPU may have taken it and cleared it. The count is then wrong for
#   ever, which is found when RDS is unloaded. MRs themselves are counted by their PD, too.
KERNEL_FALSE_ALARM = re.compile(
    r"^.*\[ cut here \].*\n.*(?:cacheline tracking EEXIST| rds_ib_destroy_mr_pool\+).*\n"
    r"(?:.*\n)*?.*---\[ end trace .*\n",
    re.MULTILINE)


def kernel_trouble(text: str) -> list[str]:
    """The lines of a console that report errors."""
    return [line for line in KERNEL_FALSE_ALARM.sub("", text).splitlines()
            if KERNEL_TROUBLE.search(line)]


# Seconds for a guest to confirm that a command was killed; a stopped guest cannot.
KILL_PATIENCE = 2.0
# Seconds for a guest to list what its processes wait for; a hung guest cannot.
PS_PATIENCE = 60.0
BUILD_ID = re.compile(r"^build (\w+) ([0-9a-f]+)$", re.MULTILINE)
SECTION = re.compile(r"^section (\w+) (\S+) (0x[0-9a-f]+)$", re.MULTILINE)


def sections(text: str) -> dict[str, dict[str, str]]:
    """{module: {section: address}} of what qhca-sections printed."""
    found: dict[str, dict[str, str]] = {}
    for module, name, address in SECTION.findall(text):
        found.setdefault(module, {})[name] = address
    return found


def build_ids(text: str) -> dict[str, str]:
    """{module: its build ID note, hexadecimal} of what qhca-sections printed."""
    return dict(BUILD_ID.findall(text))


def exit_status(reply: dict) -> int:
    """A shell's exit status for the agent's last message."""
    if "signal" in reply:
        return 128 + reply["signal"]
    return reply["status"]


class Python(str):
    """A Python program as a command. It is run like "python3 -", but starts faster: the
    guest's agent has loaded Python already."""


def request_of(command: str | list[str], stdin: bytes) -> tuple[dict, bytes]:
    """The request to the agent, and stdin: a string is for the guest's shell, a list is run
    as it is."""
    if isinstance(command, Python):
        assert not stdin
        return {"python": True}, command.encode()
    if isinstance(command, str):
        return {"argv": ["/bin/bash", "-c", command]}, stdin
    return {"argv": list(command)}, stdin


class Background:
    """A command that runs in a guest in the background.

    A thread collects its output; `stdout` and `stderr` hold the output so far.
    """

    def __init__(self, guest: Guest, command, stdin: bytes, request: dict):
        self.guest = guest
        self.command = command if isinstance(command, str) else shlex.join(command)
        self._begin = time.monotonic()
        what, stdin = request_of(command, stdin)
        self._channel = Channel(guest.dir, {**request, **what}, stdin)
        self._chunks: dict[bytes, list[bytes]] = {b"O": [], b"E": []}
        self._reply: dict | None = None
        self._error: LabError | None = None
        self._wake_r, self._wake_w = os.pipe()
        self._done = threading.Event()
        self._seconds = 0.0
        self._pending: list[tuple[bytes, bytes]] = []
        self._closing = False
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def _pump(self) -> None:
        channel = self._channel
        try:
            end = None
            while self._reply is None:
                if self._closing and end is None:
                    end = time.monotonic() + KILL_PATIENCE
                    channel.send(b"K")
                if end is not None and time.monotonic() > end:
                    break
                poll = select.poll()
                want = select.POLLIN | (select.POLLOUT if channel.wants_write else 0)
                poll.register(channel.fileno(), want)
                poll.register(self._wake_r, select.POLLIN)
                for fd, _events in poll.poll(100 if end else 1000):
                    if fd == self._wake_r:
                        os.read(self._wake_r, 64)
                while self._pending:
                    channel.send(*self._pending.pop(0))
                channel.flush()
                for kind, data in channel.messages():
                    if kind in self._chunks:
                        self._chunks[kind].append(data)
                    elif kind == b"X":
                        self._reply = json.loads(data)
        except (LabError, OSError) as error:
            self._error = LabError(f"guest {self.guest.name}: {error}")
        finally:
            self._seconds = time.monotonic() - self._begin
            channel.close()
            self._done.set()

    def _wake(self) -> None:
        os.write(self._wake_w, b"x")

    def __del__(self):
        for fd in (getattr(self, "_wake_r", -1), getattr(self, "_wake_w", -1)):
            if fd >= 0 and self._done.is_set():
                os.close(fd)

    def _text(self, kind: bytes) -> str:
        return b"".join(self._chunks[kind]).decode(errors="replace")

    @property
    def stdout(self) -> str:
        return self._text(b"O")

    @property
    def stderr(self) -> str:
        return self._text(b"E")

    @property
    def running(self) -> bool:
        return not self._done.is_set()

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to the command's process group."""
        self._pending.append((b"S", json.dumps({"signal": int(number)}).encode()))
        self._wake()

    def kill(self) -> None:
        """Kill the command with all its children; harmless if it has ended. A guest that
        is stopped kills it as soon as it runs."""
        if self.running:
            self._closing = True
            self._wake()
            self._done.wait(2 * KILL_PATIENCE)

    def join(self, timeout: float) -> bool:
        """Wait at most TIMEOUT seconds for the end; has it ended?"""
        return self._done.wait(timeout)

    def wait_for(self, pattern: str, timeout: float = 30.0) -> re.Match:
        """Wait until PATTERN is found in its output so far."""
        deadline = time.monotonic() + timeout
        while True:
            ended = self._done.is_set()
            found = re.search(pattern, self.stdout + self.stderr, re.MULTILINE)
            if found:
                return found
            if ended:
                raise LabError(
                    f"it ended without printing {pattern!r}\n" + self.result().describe()
                )
            if time.monotonic() > deadline:
                raise CommandTimeout(
                    f"guest {self.guest.name}: no {pattern!r} within {timeout} s\n"
                    f"{self.result().describe()}\n{self.guest.evidence()}",
                    self.result(),
                )
            self._done.wait(0.05)

    def lines(self) -> Iterator[str]:
        """Its lines on standard output, each as soon as it is complete; ends with the command.
        An incomplete last line is omitted."""
        position = 0
        while True:
            ended = self._done.wait(0.1)
            *whole, _rest = self.stdout[position:].split("\n")
            for line in whole:
                position += len(line) + 1
                yield line
            if ended:
                return

    def result(self) -> Result:
        """How it ended, or what it has written so far."""
        status = exit_status(self._reply) if self._reply else None
        stderr = self.stderr
        if self._reply and "error" in self._reply:
            stderr += self._reply["error"] + "\n"
        seconds = self._seconds if self._done.is_set() else time.monotonic() - self._begin
        return Result(self.command, status, self.stdout, stderr, seconds)

    def wait(self, timeout: float = 60.0, check: bool = False) -> Result:
        """Wait for the end. When TIMEOUT seconds pass first, the command is
        killed and CommandTimeout shows it with the console and QEMU's log.
        With CHECK another status than 0 raises CommandFailed."""
        if not self._done.wait(timeout):
            result = self.result()
            processes = self.guest.processes()
            self.kill()
            raise CommandTimeout(
                f"guest {self.guest.name}: killed after {timeout} s\n"
                f"{result.describe()}\n{processes}\n{self.guest.evidence()}",
                result,
            )
        if self._error:
            raise LabError(
                f"{self._error}\n{self.result().describe()}\n{self.guest.evidence()}"
            )
        result = self.result()
        if check and result.rc != 0:
            raise CommandFailed(
                f"guest {self.guest.name}: {result.describe()}", result
            )
        return result


class Guest:
    """One guest of a lab. `dir` holds its sockets, `logs` its log files."""

    def __init__(self, name: str, state: dict, directory: Path, logs: Path):
        self.name = name
        self.state = state
        self.dir = directory
        self.logs = logs
        self.ip: str = state["ip"]
        self.ip6: str = state["ip6"]
        self.nic: str = state["nic"]

    @property
    def driver(self) -> Path:
        """The folder of the driver's build for its kernel."""
        return Path(self.state.get("driver") or paths.BUILD / "driver")

    @property
    def alive(self) -> bool:
        return process.alive(self.state["process"])

    def start(
        self,
        command: str | list[str],
        input: bytes | str = b"",
        env: dict | None = None,
        cwd: str | None = None,
        user: str | None = None,
    ) -> Background:
        """Start a command (a shell line, an argument list, Python), do not wait."""
        if isinstance(input, str):
            input = input.encode()
        request = {"env": env or {}, "cwd": cwd, "user": user}
        return Background(self, command, input, request)

    def run(
        self,
        command: str | list[str],
        timeout: float = 60.0,
        check: bool = True,
        **kwargs,
    ) -> Result:
        """Run a command and wait for it; see start() and Background.wait()."""
        return self.start(command, **kwargs).wait(timeout, check)

    def resume(self, what: dict, timeout: float = 120.0) -> None:
        """Tell a copy of the saved guest who it is; see boot.py in lab/guest."""
        Background(self, [], b"", {"resume": what}).wait(timeout, check=True)

    def listening(self) -> set[str]:
        """Local addresses of its listening TCP sockets, as /proc/net/tcp has them."""
        text = self.read("/proc/net/tcp", "/proc/net/tcp6")
        rows = [line.split() for line in text.splitlines()]
        return {row[1] for row in rows if row[3] == "0A"}

    def wait_listening(self, port: int, timeout: float = 30.0) -> None:
        """Wait until a process in it listens on a TCP port. Its sockets are listed instead of
        connecting: a server that serves once would take the trial connection."""
        self.run(f"until ss -Hltn 'sport = :{port}' | grep -q .; do sleep 0.1; done", timeout)

    def put(self, source: str | Path, target: str, timeout: float = 120.0) -> None:
        """Copy a file or a folder of the host to TARGET in the guest."""
        source = Path(source)
        if not source.exists():
            raise LabError(f"{source}: no such file")
        buffer = BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.add(source, arcname="item")
        script = (
            'set -e; t=$1; [ ! -d "$t" ] || t=${t%/}/$2; '
            'd=$(mktemp -d "$(dirname "$t")/.qhca.XXXXXX"); '
            "trap 'rm -rf \"$d\"' EXIT; tar -x --no-same-owner -C \"$d\"; "
            'rm -rf "$t"; mv "$d/item" "$t"'
        )
        self.run(
            ["/bin/bash", "-c", script, "put", target, source.resolve().name],
            timeout,
            input=buffer.getvalue(),
        )

    def get(self, source: str, target: str | Path, timeout: float = 120.0) -> None:
        """Copy a file or a folder of the guest to TARGET on the host."""
        script = 'tar -c -h -C "$(dirname "$1")" "$(basename "$1")"'
        job = self.start(["/bin/bash", "-c", script, "get", source])
        job.wait(timeout, check=True)
        data = b"".join(job._chunks[b"O"])
        target = Path(target)
        if target.is_dir():
            target = target / Path(source).name
        with tarfile.open(fileobj=BytesIO(data)) as tar:
            for member in tar.getmembers():
                rest = member.name.split("/", 1)[1:]
                path = target.joinpath(*rest)
                if ".." in path.relative_to(target).parts:
                    raise LabError(f"{source}: refused a path with '..'")
                if member.isdir():
                    path.mkdir(parents=True, exist_ok=True)
                elif member.isfile():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(tar.extractfile(member).read())
                    path.chmod(member.mode & 0o777)

    def qmp(self, timeout: float = 20.0) -> qmp.Qmp:
        """A QMP connection for a few commands, in a with statement: the lab's own socket, for
        which others wait."""
        return qmp.Qmp(self.dir / "qmp", timeout)

    def tool_qmp(self, timeout: float = 20.0) -> qmp.Qmp:
        """A QMP connection for a tool that keeps it while others work: the
        first free one of the guest's further sockets."""
        return qmp.open_free(self.dir, timeout)

    def environment(self, timeout: float = 30.0) -> dict:
        """IBDEV, GIDX, NETDEV, ... as the guest has them now."""
        lines = self._ask("environment", timeout).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def read(self, *files: str) -> str:
        """Text files of the guest, concatenated; missing ones count as empty."""
        return self._ask(list(files))

    def _ask(self, what: str | list[str], timeout: float = 60.0) -> str:
        """What the agent knows without starting a program."""
        return Background(self, [], b"", {"ask": what}).wait(timeout, check=True).out

    def console(self) -> str:
        """The output of the guest's serial console."""
        return read_log(self.logs / "console.log")

    def qemu_log(self) -> str:
        """The output of QEMU."""
        return read_log(self.logs / "qemu.log")

    def processes(self) -> str:
        """What its processes wait for, and its QPs, for error messages about a command
        that hangs. The guest is asked once and need not answer."""
        job = self.start("ps --ppid 2 -p 2 -N -o pid,stat,wchan:24,time,args | tail -n 12; "
                         "for p in $(ps -eo pid=,stat= | awk '$2 ~ /^D/ { print $1 }'); do "
                         "echo \"stack of $p\"; cat /proc/$p/stack; done; rdma res show qp")
        job._done.wait(PS_PATIENCE)
        job.kill()
        return f"--- processes of guest {self.name}\n{job.stdout.rstrip()}"

    def evidence(self, lines: int = 30) -> str:
        """The end of console and QEMU log, for error messages."""
        parts = []
        for title, text in (("console", self.console()), ("QEMU log", self.qemu_log())):
            tail = "\n".join(text.splitlines()[-lines:])
            parts.append(f"--- {title} of guest {self.name}, last lines\n{tail}")
        return "\n".join(parts)


def read_log(path: Path) -> str:
    try:
        return path.read_text(errors="replace").replace("\r", "")
    except OSError:
        return ""

# SPDX-License-Identifier: GPL-2.0-or-later
"""A small QMP client: one command per connection, or a few, or a long watch."""

from __future__ import annotations

import collections
import contextlib
import fcntl
import json
import os
import select
import socket
import time
from pathlib import Path

from .errors import LabError
from .unix_socket import connect

# Sockets of a guest in addition to "qmp": each serves one tool at a time.
SPARE = 6


class QmpError(LabError):
    """QEMU rejected a command; `reply` is its error object."""

    def __init__(self, command: str, reply: dict):
        super().__init__(f"QMP {command}: {reply.get('desc', reply)}")
        self.reply = reply


class QmpClosed(LabError):
    """QEMU has closed the connection, or is gone."""


class Busy(LabError):
    """Another program holds the socket."""


def take_lock(path: Path) -> int:
    """The lock of the socket at PATH as an open file; Busy if it is taken."""
    try:
        fd = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise LabError(f"no QMP at {path}: the lab is gone") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise Busy(f"another program uses {path}") from None
    return fd


def take_first(paths: list[Path], timeout: float) -> tuple[Path, int]:
    """The first of PATHS that is free, and its lock; Busy after TIMEOUT."""
    deadline = time.monotonic() + timeout
    while True:
        for path in paths:
            with contextlib.suppress(Busy):
                return path, take_lock(path)
        if time.monotonic() > deadline:
            names = ", ".join(p.name for p in paths)
            raise Busy(
                f"other programs use all of {paths[0].parent}'s QMP sockets "
                f"({names}): end a tool that is connected to this guest"
                if len(paths) > 1
                else f"another program uses {paths[0]}"
            )
        time.sleep(0.02)


def open_free(directory: Path, timeout: float = 20.0) -> Qmp:
    """A connection for a tool that keeps it: the first free one of the spare
    sockets of the guest whose folder is DIRECTORY. The lab's own socket is
    taken only when QEMU was started without any other."""
    spare = [directory / f"qmp{n}" for n in range(1, SPARE + 1)]
    spare = [path for path in spare if path.exists()] or [directory / "qmp"]
    path, lock = take_first(spare, timeout)
    return Qmp(path, timeout, lock)


def wait_any(connections: list[Qmp], timeout: float | None) -> bool:
    """Wait until one of CONNECTIONS may have something for poll_events(), or
    TIMEOUT seconds (None: no limit). False if nothing came.

    Events that arrived with an answer have been read already, so select() would not
    report them. Nor does it report a Ctrl-C that Python noted just before: so it
    checks again each second."""
    if any(c.pending for c in connections):
        return True
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = 1.0 if end is None else min(1.0, max(0.0, end - time.monotonic()))
        if select.select(connections, [], [], left)[0]:
            return True
        if end is not None and time.monotonic() >= end:
            return False


class Qmp:
    """A connection to a guest's QMP socket; use it in a with statement.

    QEMU serves one client at a time, so the connection holds a lock: another program
    waits for it, at most `timeout` seconds. LOCK is that lock if it is held already.
    Events that have arrived are in `events`, oldest first.
    """

    def __init__(self, path: Path, timeout: float = 20.0, lock: int | None = None):
        self.path = Path(path)
        self.events: list[dict] = []
        self._timeout = timeout
        self._serial = 0
        self._asked: collections.deque[int] = collections.deque()
        self._buffer = bytearray()
        self._lock = take_first([self.path], timeout)[1] if lock is None else lock
        self._socket: socket.socket | None = None
        try:
            self._socket = connect(self.path, timeout)
            self._read(timeout)  # the greeting
            self.command("qmp_capabilities")
        except OSError as error:
            self.close()
            raise LabError(f"no QMP at {path}: {error}") from error
        except LabError:
            self.close()
            raise

    def fileno(self) -> int:
        """For select(); wait_any() also knows about data that has been read already."""
        return self._socket.fileno()

    @property
    def pending(self) -> bool:
        """Has something been read that poll_events() has not returned yet?"""
        return bool(self.events) or b"\n" in self._buffer

    def _read(self, timeout: float) -> dict:
        """The next message; TimeoutError after TIMEOUT seconds without one."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._socket], [], [], max(0.0, left))
            if not ready:
                raise TimeoutError(f"no response from QEMU for {timeout:g} s")
            try:
                data = self._socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                raise QmpClosed("QEMU closed its QMP connection")
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        return json.loads(line)

    def send(self, name: str, arguments: dict | None = None) -> None:
        """Send a command; reply() must follow, once for each that was sent, in
        their order."""
        self._serial += 1
        message: dict = {"execute": name, "id": self._serial}
        if arguments:
            message["arguments"] = arguments
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise QmpClosed(f"QEMU closed its QMP connection: {error}") from error
        self._asked.append(self._serial)

    def reply(self, name: str):
        """The value of the command NAME that was sent; QmpError if it is refused. Late
        answers to commands that timed out are ignored."""
        serial = self._asked.popleft()
        while True:
            try:
                reply = self._read(self._timeout)
            except TimeoutError as error:
                raise LabError(f"QMP {name}: {error}") from error
            if reply.get("id", serial) != serial:
                continue
            if "return" in reply:
                return reply["return"]
            if "error" in reply:
                raise QmpError(name, reply["error"])
            self.events.append(reply)

    def _read_event(self, timeout: float) -> None:
        """Keep the next message if it is an event: it may be a late answer."""
        message = self._read(timeout)
        if "event" in message:
            self.events.append(message)

    def command(self, name: str, arguments: dict | None = None):
        """Run a command and return its value; QmpError if it is rejected."""
        self.send(name, arguments)
        return self.reply(name)

    def quit(self) -> None:
        """End QEMU. It may be gone before it has answered: nothing runs the command's
        coroutine again once the main loop has seen the request."""
        with contextlib.suppress(QmpClosed):
            self.command("quit")

    def peek_events(self) -> list[dict]:
        """All events that have arrived, without waiting; they are kept."""
        with contextlib.suppress(TimeoutError):
            while True:
                self._read_event(0.0)
        return self.events

    def poll_events(self) -> list[dict]:
        """Return and remove all events that have arrived, without waiting."""
        events = self.peek_events()
        self.events = []
        return events

    def wait_event(self, name: str, timeout: float) -> dict:
        """The next event NAME, also one seen before; LabError on time-out."""
        deadline = time.monotonic() + timeout
        while True:
            for event in self.events:
                if event.get("event") == name:
                    self.events.remove(event)
                    return event
            left = deadline - time.monotonic()
            if left <= 0:
                raise LabError(f"no event {name} within {timeout} s")
            with contextlib.suppress(TimeoutError):
                self._read_event(left)

    def close(self) -> None:
        """End the connection; harmless when it was ended."""
        if self._socket is not None:
            self._socket.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Qmp:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

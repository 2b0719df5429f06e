# SPDX-License-Identifier: GPL-2.0-or-later
"""A small QMP client: one command per connection, or a few."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path

from .errors import LabError


class QmpError(LabError):
    """QEMU refused a command; `reply` is its error object."""

    def __init__(self, command: str, reply: dict):
        super().__init__(f"QMP {command}: {reply.get('desc', reply)}")
        self.reply = reply


class Qmp:
    """A connection to a guest's QMP socket; use it in a with statement.

    QEMU serves one client at a time, so the connection holds a lock: another
    program waits for its turn, at most `timeout` seconds.
    """

    def __init__(self, path: Path, timeout: float = 20.0):
        self._timeout = timeout
        self.events: list[dict] = []
        self._lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(self._lock)
                    raise LabError(f"somebody else keeps {path} busy") from None
                time.sleep(0.02)
        self._file = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
            self._file = self._socket.makefile("r")
            self._read()  # the greeting
            self.command("qmp_capabilities")
        except OSError as error:
            self.close()
            raise LabError(f"no QMP at {path}: {error}") from error

    def _read(self) -> dict:
        line = self._file.readline()
        if not line:
            raise LabError("QEMU closed its QMP connection")
        return json.loads(line)

    def command(self, name: str, arguments: dict | None = None):
        """Run a command and return its value; QmpError when refused."""
        message = {"execute": name}
        if arguments:
            message["arguments"] = arguments
        self._socket.sendall(json.dumps(message).encode() + b"\n")
        while True:
            reply = self._read()
            if "return" in reply:
                return reply["return"]
            if "error" in reply:
                raise QmpError(name, reply["error"])
            self.events.append(reply)

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
            self._socket.settimeout(left)
            try:
                self.events.append(self._read())
            except TimeoutError:
                pass
            finally:
                self._socket.settimeout(self._timeout)

    def close(self) -> None:
        # The file keeps the connection open, and QEMU serves only one.
        if self._file:
            self._file.close()
        self._socket.close()
        os.close(self._lock)

    def __enter__(self) -> Qmp:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

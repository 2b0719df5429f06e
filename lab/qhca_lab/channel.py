# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of the guest agent's protocol (see lab/guest/agent.py)."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import struct
from pathlib import Path

from .errors import LabError
from .unix_socket import connect

MAGIC = bytes.fromhex("f1716863615f73796e63ff0d0a1a00c5")
HEADER = struct.Struct(">cI")
CHUNK = 32768
PORTS = 12


class Channel:
    """One command in a guest. Feed it, read its messages, close it.

    Closing before the end kills the command in the guest.
    """

    def __init__(self, guest_dir: Path, request: dict, stdin: bytes | None = None):
        """Take a free port of the guest whose sockets are in GUEST_DIR, send
        REQUEST and, unless it is None, all of its STDIN. Raises LabError when all
        ports are busy or QEMU is gone."""
        self._lock = None
        self._socket = None
        self._take_port(guest_dir)
        ident = secrets.token_hex(8)
        self._expect = MAGIC + bytes.fromhex(ident)
        self._synced = False
        self._in = bytearray()
        self._out = bytearray(MAGIC)
        self._queue(b"R", json.dumps(dict(request, id=ident)).encode())
        # In one go, because each separate message wakes the guest.
        if stdin is not None:
            self._queue(b"I", stdin)
            if stdin:
                self._queue(b"I")
        self.flush()

    def _take_port(self, guest_dir: Path) -> None:
        for number in range(PORTS):
            fd = os.open(
                guest_dir / f"port{number}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
            )
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                continue
            self._lock = fd
            try:
                self._socket = connect(guest_dir / f"port{number}")
            except OSError as error:
                self.close()
                raise LabError(f"the guest's QEMU does not respond: {error}") from error
            self._socket.setblocking(False)
            return
        raise LabError(f"all {PORTS} command ports of the guest are in use")

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        return bool(self._out)

    @property
    def backlog(self) -> int:
        """Bytes accepted by send() and not yet taken by the guest."""
        return len(self._out)

    def _queue(self, kind: bytes, data: bytes = b"") -> None:
        for at in range(0, len(data) or 1, CHUNK):
            piece = data[at : at + CHUNK]
            self._out += HEADER.pack(kind, len(piece)) + piece

    def send(self, kind: bytes, data: bytes = b"") -> None:
        """Queue a message; long data is split."""
        self._queue(kind, data)
        self.flush()

    def flush(self) -> None:
        try:
            while self._out:
                n = self._socket.send(self._out[: 8 * CHUNK])
                del self._out[:n]
        except BlockingIOError:
            pass

    def messages(self) -> list[tuple[bytes, bytes]]:
        """Complete messages that have arrived. Raises LabError when QEMU has ended."""
        try:
            while True:
                data = self._socket.recv(8 * CHUNK)
                if not data:
                    raise LabError("QEMU closed the connection: the guest is gone")
                self._in += data
                if len(data) < CHUNK:
                    break
        except BlockingIOError:
            pass
        except ConnectionError as error:
            raise LabError(f"QEMU closed the connection: {error}") from error
        found = []
        if not self._synced:
            at = self._in.find(self._expect)
            if at < 0:
                del self._in[: -len(self._expect)]
                return found
            del self._in[: at + len(self._expect)]
            self._synced = True
        while len(self._in) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._in)
            if len(self._in) < HEADER.size + length:
                break
            found.append(
                (kind, bytes(self._in[HEADER.size : HEADER.size + length]))
            )
            del self._in[: HEADER.size + length]
        return found

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

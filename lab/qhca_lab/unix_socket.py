# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections to a program's Unix socket."""

from __future__ import annotations

import socket
import time
from pathlib import Path

# A server binds its socket, which makes the file, before it listens. On a busy host
# it may lose the CPU in between, and refuses connections until it gets it back.
YOUNG = 10.0


def connect(path: Path, timeout: float | None = None) -> socket.socket:
    """A connection to the server at PATH; its operations have TIMEOUT. OSError if there
    is none: ConnectionRefusedError only if the socket is older than YOUNG seconds."""
    end = time.monotonic() + YOUNG
    while True:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        try:
            sock.connect(str(path))
            return sock
        except ConnectionRefusedError:
            sock.close()
            if time.monotonic() > end or time.time() - path.stat().st_mtime > YOUNG:
                raise
        except BaseException:
            sock.close()
            raise
        time.sleep(0.02)

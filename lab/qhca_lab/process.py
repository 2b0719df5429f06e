# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes remembered across program runs, by pid and start time."""

from __future__ import annotations

import os
import signal
import time


def start_time(pid: int) -> int | None:
    """Start time of PID in clock ticks, None when it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def identity(pid: int) -> dict:
    """What to remember of a running process."""
    return {"pid": pid, "start": start_time(pid)}


def alive(who: dict) -> bool:
    """Does the process remembered as WHO still run?"""
    return who["start"] is not None and start_time(who["pid"]) == who["start"]


def end(who: dict, grace: float = 3.0) -> None:
    """End WHO: politely, and after GRACE seconds by force."""
    for number, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        if not alive(who):
            return
        try:
            os.kill(who["pid"], number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + wait
        while alive(who) and time.monotonic() < deadline:
            time.sleep(0.02)
            reap(who["pid"])


def reap(pid: int) -> None:
    """Collect PID if it is an ended child of ours."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass

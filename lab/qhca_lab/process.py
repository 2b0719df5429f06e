# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes remembered across program runs, by pid and start time."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time

_PR_SET_PDEATHSIG = 1


def spawn(args: list[str], tied: bool, **kwargs) -> subprocess.Popen:
    """Start a process of a lab, in a session of its own. The kernel kills a TIED one when
    the thread that started it ends for any reason."""
    libc = ctypes.CDLL(None)

    def tie():
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return subprocess.Popen(
        args,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=tie if tied else None,
        **kwargs,
    )


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
    """Is the process WHO still running?"""
    return who["start"] is not None and start_time(who["pid"]) == who["start"]


def end(who: dict, grace: float = 3.0) -> None:
    """End WHO: by SIGTERM, and after GRACE seconds by SIGKILL."""
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
    """Reap PID if it is an ended child of ours."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass

# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduling of QEMU's threads: who runs first when CPUs are short.

A guest that polls keeps its vCPU thread busy for ever. Where there are fewer
CPUs than vCPUs, QEMU's main loop, which brings the frames from the wire, then
waits until the poller's time is up. A kernel built without preemption looks at
that only at the timer tick: 4 ms for each packet. So the main loop gets a
real-time priority, if we may give it one (root, or RLIMIT_RTPRIO), and else a
short slice, which Linux 6.12 and later honour. It sleeps when it has nothing to
do, and the kernel's real-time throttling keeps the rest alive in any case.

This is done alike for all guests, whatever their adapter is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from pathlib import Path

PRIORITY = 1  # the lowest of the real-time ones
SLICE_NS = 100_000  # the kernel's least
MONITOR = "mon_iothread"  # in QEMU's name of that thread, with debug-threads=on

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274, "ppc64le": 355}
_RESET_ON_FORK = 1  # vCPU threads and children are ordinary again


class _SchedAttr(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    ]


def _short_slice(tid: int) -> bool:
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return False
    attr = _SchedAttr(
        size=ctypes.sizeof(_SchedAttr),
        flags=_RESET_ON_FORK,
        nice=os.getpriority(os.PRIO_PROCESS, tid),
        runtime=SLICE_NS,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(number, tid, ctypes.byref(attr), 0) == 0


def prefer(tid: int) -> str:
    """Let thread TID run before others; a process's id is that of its first
    thread, QEMU's main loop. Threads that it makes afterwards are ordinary.

    Returns what was done: "real-time", "short slice" or "nothing": then latencies
    are those of the scheduler.
    """
    try:
        os.sched_setscheduler(
            tid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY)
        )
        return "real-time"
    except OSError:
        return "short slice" if _short_slice(tid) else "nothing"


def prefer_monitor(pid: int) -> str:
    """The same for the thread of QEMU process PID that reads QMP commands, which
    is there once a socket is: who stops guests together must not wait for it.
    """
    found = "nothing"
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, ValueError):
            if MONITOR in (task / "comm").read_text():
                found = prefer(int(task.name))
    return found


@contextlib.contextmanager
def preferred():
    """In a with statement: this thread runs before others, if it may. For what
    is short and must not be interrupted in its middle."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(
            0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY)
        )
        changed = True
    except OSError:
        changed = False
    try:
        yield
    finally:
        if changed:
            try:
                os.sched_setscheduler(0, *before)
            except OSError:     # who is not root cannot take that flag away
                os.sched_setscheduler(0, before[0] | os.SCHED_RESET_ON_FORK, before[1])

# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduling of QEMU's threads: who runs first when CPUs are short.

A guest that polls keeps its vCPU thread permanently busy. With fewer CPUs than
vCPUs, QEMU's main loop, which receives the frames from the wire, then waits until
the poller's time slice is over. A kernel without preemption checks that only at
the timer tick: 4 ms per packet. So the main loop gets a real-time priority, if
permitted (root, or RLIMIT_RTPRIO), otherwise a short slice, which Linux 6.12 and
later honour. It sleeps when it is idle, and the kernel's real-time throttling
protects everything else.

This is done for all guests, whatever their adapter is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from pathlib import Path

PRIORITY = 1  # the lowest of the real-time ones
SLICE_NS = 100_000  # the kernel's least
# In the names of QEMU's threads, with debug-threads=on: that which reads QMP commands, and
# that which answers the bells of memory links.
THREADS = ("mon_iothread", "qhca-bell")

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
    """Prioritize thread TID; a process's id is that of its first thread, QEMU's main loop.
    Threads that it creates afterwards are ordinary.

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


def prefer_threads(pid: int) -> str:
    """The same for other threads of QEMU process PID, which exist once its guest runs:
    stopping guests together, and the messages of a memory link, must not wait for them.
    """
    found = "nothing"
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, ValueError):
            name = (task / "comm").read_text()
            if any(wanted in name for wanted in THREADS):
                found = prefer(int(task.name))
    return found


@contextlib.contextmanager
def preferred():
    """In a with statement: prioritize this thread, if permitted. For short code that must
    not be interrupted."""
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
            except OSError:     # only root can clear that flag
                os.sched_setscheduler(0, before[0] | os.SCHED_RESET_ON_FORK, before[1])

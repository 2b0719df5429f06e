# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU time of a lab's guests and of their QEMUs."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from ..guest import Guest

# Beside the main loop: the thread that answers the bells of memory links (qemu-hw/qhca-bell.c).
BELLS = "qhca-bell"


def guest_seconds(stat: str, hertz: int) -> float:
    """CPU time of a guest, from its /proc/stat and its ticks per second."""
    words = stat.splitlines()[0].split()
    user, nice, system, _idle, _iowait, irq, softirq = (int(n) for n in words[1:8])
    return (user + nice + system + irq + softirq) / hertz


def loop_seconds(tasks: Path) -> float:
    """CPU time of the threads below TASKS, /proc/PID/task, in which all of the device runs that
    vCPUs do not run: the main loop and those that answer bells."""
    total = 0
    for task in tasks.iterdir():
        # others come and go
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if task.name == tasks.parent.name or (task / "comm").read_text().strip() == BELLS:
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def qemu_seconds(guest: Guest) -> tuple[float, float]:
    """CPU time of a guest's QEMU so far, and of its threads of loop_seconds()."""
    pid = guest.state["process"]["pid"]
    # The CPU clock of a process, see clock_getcpuclockid(3).
    return time.clock_gettime(~pid << 3 | 2), loop_seconds(Path(f"/proc/{pid}/task"))

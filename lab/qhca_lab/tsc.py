# SPDX-License-Identifier: GPL-2.0-or-later
"""The frequency of the host's time stamp counter, which a guest under TCG reads as its own.

A booting Linux measures it against timers that QEMU emulates. On a busy host these can
be so late that the guest's clock runs many times too fast, and the clocks of all guests
that start from it after it was saved. So guests are told the frequency instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import platform
import time

from . import per_boot
from .paths import BUILD

KEPT = BUILD / "tsc.json"
# rdtsc; shl $32,%rdx; or %rdx,%rax; ret
READ = bytes.fromhex("0f31 48c1e220 4809d0 c3")
# Seconds between the two readings that are compared.
SPAN = 0.05
# How often each is repeated, as a switch of tasks can come between counter and clock.
REPEATS = 20
# The result is rounded to this many kHz: a saved guest is only good for the frequency
# that it was told, and two measurements differ by less than 1 kHz.
ROUND = 1000


def khz() -> int | None:
    """The frequency in kHz, None if this host has no such counter. Measured once per boot
    of the host."""
    if platform.machine() != "x86_64":
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return int(per_boot.load(KEPT)["khz"])
    found = measure()
    per_boot.store(KEPT, khz=found)
    return found


def measure() -> int:
    """The frequency in kHz, by CLOCK_MONOTONIC, from which QEMU derives a guest's timers."""
    with mmap.mmap(-1, mmap.PAGESIZE,
                   prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(READ)
        start = ctypes.c_char.from_buffer(page)
        try:
            counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(start))
            begin = _both(counter)
            time.sleep(SPAN)
            end = _both(counter)
        finally:
            # The page cannot be unmapped before.
            del start
    return round((end[0] - begin[0]) / (end[1] - begin[1]) * 1e6 / ROUND) * ROUND


def _both(counter) -> tuple[int, float]:
    """COUNTER and the clock, in ns, at the same time."""
    best = None
    for _ in range(REPEATS):
        before, ticks, after = time.monotonic_ns(), counter(), time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, ticks, (before + after) / 2
    return best[1], best[2]

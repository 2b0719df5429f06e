# SPDX-License-Identifier: GPL-2.0-or-later
"""One clock from many.

There are three kinds of clock. A guest's trace clock has a constant rate relative to
its adapter's; adapters have the virtual clocks of their QEMU processes; and all
processes have the host's monotonic clock. Nothing is guessed: known are pairs of
events in a certain order, and simultaneous readings of two clocks. From these follow
the most likely time and its maximum error.

The clock of the lab is the host's, less the time for which the first guest was
stopped, from 0 at the start of the recording. Times are nanoseconds.
"""

from __future__ import annotations

import bisect
import dataclasses

from ..errors import LabError
from .device_log import Sync


class HostClock:
    """Virtual time of one QEMU process to the host's monotonic clock."""

    def __init__(self, syncs: list[Sync]):
        if not syncs:
            raise LabError("an adapter's recording has no pair of clocks")
        self._syncs = syncs
        self._times = [s.time for s in syncs]
        if any(a > b for a, b in zip(self._times, self._times[1:])) or any(
            a.host > b.host for a, b in zip(syncs, syncs[1:])
        ):
            raise LabError("the clocks of an adapter's recording go backwards")
        self.error = max(s.width for s in syncs) / 2

    def host(self, time: float, segment: int | None = None) -> float:
        """Host time at virtual TIME. SEGMENT, of a record, says on which side of a stop it
        was; without it, a time at a stop is before it."""
        syncs = self._syncs
        if segment is None:
            segment = bisect.bisect_left(self._times, time)
        segment = min(max(segment, 0), len(syncs))
        if segment == 0:
            return syncs[0].host + time - syncs[0].time
        if segment == len(syncs):
            return syncs[-1].host + time - syncs[-1].time
        a, b = syncs[segment - 1], syncs[segment]
        # At a stop, virtual time had stopped before the reading was taken; at a
        # resume, it ran before: use the other reading.
        if a.running and not b.running:
            return a.host + time - a.time
        if b.running and not a.running:
            return b.host + time - b.time
        if b.time == a.time:
            return a.host
        return a.host + (time - a.time) * (b.host - a.host) / (b.time - a.time)

    def still(self) -> list[tuple[float, float]]:
        """Intervals of host time in which the machine was stopped."""
        found, since = [], None
        for number, sync in enumerate(self._syncs):
            if not sync.running and since is None:
                since = self.host(sync.time, number) if number else sync.host
                stopped = sync.time
            elif sync.running and since is not None:
                found.append((since, self.host(stopped, number)))
                since = None
        if since is not None:
            found.append((since, self._syncs[-1].host))
        return found


class LabClock:
    """Host time to the lab's: the time from ORIGIN on, less STILL."""

    def __init__(self, origin: float, still: list[tuple[float, float]]):
        self._origin = origin
        self._still = still

    def time(self, host: float) -> float:
        return host - self._origin - sum(
            max(0, min(host, end) - begin) for begin, end in self._still
        )


@dataclasses.dataclass
class Order:
    """Two clocks' readings in a known order: at TICKS of the guest's clock something
    happened before (or after) adapter time TIME."""

    ticks: int
    time: float
    guest_first: bool


@dataclasses.dataclass
class Line:
    """adapter time = base_time + rate * (ticks - base_ticks). `error`: the maximum error
    between the first mark and the last; `worst`: by how much a known order is still
    violated, 0 if none is."""

    base_ticks: int
    base_time: float
    rate: float
    error: float
    worst: float

    def time(self, ticks: int) -> float:
        return self.base_time + self.rate * (ticks - self.base_ticks)


def _room(orders: list[tuple[float, float, bool]], rate: float) -> tuple[float, float]:
    """The bounds of the offset at RATE; the first may be greater."""
    low, high = float("-inf"), float("inf")
    for ticks, time, guest_first in orders:
        offset = time - rate * ticks
        if guest_first:
            high = min(high, offset)
        else:
            low = max(low, offset)
    return low, high


def fit(marks: list[tuple[int, float, int]], orders: list[Order],
        until: int | None = None) -> Line:
    """The line through MARKS (ticks before, adapter time, ticks after) that keeps
    all ORDERS, if one can; it is wanted up to UNTIL (ticks; default: the last mark). LabError with too few marks."""
    if len(marks) < 2:
        raise LabError(f"{len(marks)} marks relate a guest's clock to its adapter's: 2 are needed")
    marks = sorted(marks)
    base_ticks, base_time = marks[0][0], marks[0][1]
    known = []
    for before, time, after in marks:
        known.append((before - base_ticks, time - base_time, True))
        known.append((after - base_ticks, time - base_time, False))
    # The tightest mark of each half gives the rate; the others then bound the offset.
    half = len(marks) // 2
    first = min(marks[:half], key=lambda m: m[2] - m[0])
    last = min(marks[half:], key=lambda m: m[2] - m[0])
    span = (last[0] + last[2] - first[0] - first[2]) / 2
    if span <= 0:
        raise LabError("all marks of a guest have the same time")
    rate = (last[1] - first[1]) / span
    if not 1e-3 < rate < 1e3:
        raise LabError(f"a guest's clock and its adapter's differ by a factor of {rate:.3g}")
    # The room is concave in the rate: search where it is widest.
    slack = (first[2] - first[0] + last[2] - last[0]) / span
    some = known + [
        (o.ticks - base_ticks, o.time - base_time, o.guest_first)
        for o in orders[:300] + orders[300:][-300:]
    ]

    def width(rate: float) -> float:
        low, high = _room(some, rate)
        return high - low

    rate = _peak(width, rate * (1 - slack), rate * (1 + slack))
    known += [(o.ticks - base_ticks, o.time - base_time, o.guest_first) for o in orders]
    low, high = _room(known, rate)
    middle = (low + high) / 2
    worst = max(0.0, (low - high) / 2)
    error = abs(high - low) / 2
    if width(rate) > 0:
        # Other rates are possible, too: how far off is the line then?
        slowest = _edge(width, rate, rate * (1 - 2 * slack))
        fastest = _edge(width, rate, rate * (1 + 2 * slack))
        for ticks in (0, max(marks[-1][2], until or marks[-1][2]) - base_ticks):
            here = rate * ticks + middle

            def over(r, ticks=ticks):
                return r * ticks + _room(some, r)[1]

            def under(r, ticks=ticks):
                return -r * ticks - _room(some, r)[0]

            error = max(error, over(_peak(over, slowest, fastest)) - here,
                        under(_peak(under, slowest, fastest)) + here)
    return Line(base_ticks, base_time + middle, rate, error, worst)


def _peak(function, low: float, high: float) -> float:
    """Where between LOW and HIGH the concave FUNCTION is greatest."""
    for _ in range(60):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if function(a) < function(b):
            low = a
        else:
            high = b
    return (low + high) / 2


def _edge(function, inside: float, outside: float) -> float:
    """Where between INSIDE and OUTSIDE a concave FUNCTION stops being positive."""
    for _ in range(60):
        middle = (inside + outside) / 2
        if function(middle) > 0:
            inside = middle
        else:
            outside = middle
    return outside


@dataclasses.dataclass
class Shift:
    """By how much a clock was shifted to keep the order of packets, and by how much an
    order is still violated, because a larger shift would exceed the clocks' error."""

    shift: float
    worst: float


def shift(earliest: float, latest: float, error: float) -> Shift:
    """The smallest shift not below EARLIEST and not above LATEST, which may
    contradict each other, within ERROR either way."""
    wanted = 0.0
    if earliest > latest:
        wanted = (earliest + latest) / 2
    elif wanted < earliest:
        wanted = earliest
    elif wanted > latest:
        wanted = latest
    moved = min(max(wanted, -error), error)
    return Shift(moved, max(0.0, earliest - moved, moved - latest))

# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring: as a circle of entries, and in memory."""

from __future__ import annotations

import dataclasses
import math

from qhca_lab.svg import Svg, elide, number

from . import frame
from .entry import kind, untouched, words
from .model import Subject, size

ROW = 23.0
SHOWN = 12
OUTER, INNER = 118.0, 86.0
MASK = (1 << 32) - 1
# mark: (hue, what it means)
MARKS = {
    "free": ("", "free"),
    "consumed": ("", "taken by software"),
    "posted": ("orange", "posted: not fetched yet"),
    "in-flight": ("purple", "in flight: fetched, not completed"),
    "waiting": ("green", "waiting for software"),
}
# pointer: (hue, symbol)
POINTERS = {"consumer": "green", "next": "purple", "producer": "orange"}


@dataclasses.dataclass
class Ring:
    """The numbers of a ring."""

    depth: int
    pointers: dict[str, int]  # counters, those the ring has
    ranges: list[tuple[int, int, str]]  # (first counter, count, mark)

    @classmethod
    def of(cls, look: dict) -> Ring:
        depth = max(1, look["depth"])
        pointers = {name: look[name] for name in POINTERS if name in look}
        ranges = []
        if "producer" in pointers:
            head, tail = pointers["producer"], pointers["consumer"]
            held = min(head - tail & MASK, depth)
            if look["object"] in ("cq", "eq"):
                ranges = [(tail, held, "waiting")]
            elif "next" in pointers:
                taken = min(pointers["next"] - tail & MASK, held)
                ranges = [(tail, taken, "in-flight"), (tail + taken, held - taken, "posted")]
            else:
                ranges = [(tail, held, "posted")]
        return cls(depth, pointers, [r for r in ranges if r[1]])

    def count(self, mark: str) -> int:
        return sum(n for _, n, m in self.ranges if m == mark)


def draw(subject: Subject, look: dict, width: float = frame.WIDTH) -> str:
    """The figure. LOOK is qhca-ring's answer."""
    numbers = Ring.of(look)
    svg = frame.begin("Ring", subject, _desc(numbers), width)
    left = OUTER + 92
    _circle(svg, numbers, frame.EDGE + left, 106 + OUTER + 26)
    below = svg.bottom
    x = frame.EDGE + 2 * left + 26
    if width - x - frame.EDGE < 380:
        _entries(svg, look, numbers, frame.EDGE, below + 22, width - 2 * frame.EDGE)
    else:
        _entries(svg, look, numbers, x, 92, width - x - frame.EDGE)
    _memory(svg, subject, look, numbers, svg.bottom + 36)
    return frame.end(svg, subject, _meaning(subject, numbers))


def _desc(numbers: Ring) -> str:
    parts = [f"{name} {value}" for name, value in numbers.pointers.items()]
    parts += [f"{n} {mark}" for _, n, mark in numbers.ranges]
    return f"A ring of {numbers.depth} entries: {', '.join(parts) or 'used in any order'}."


def _spot(angle: float, radius: float, x: float, y: float) -> tuple[float, float]:
    return x + radius * math.sin(angle), y - radius * math.cos(angle)


def _sector(svg: Svg, x: float, y: float, a: float, b: float, cls: str) -> None:
    """The part of the ring from angle A to B, clockwise from the top."""
    if b - a >= 2 * math.pi - 1e-9:  # an arc cannot be a whole circle
        middle = (a + b) / 2
        _sector(svg, x, y, a, middle, cls)
        _sector(svg, x, y, middle, b, cls)
        return
    big = int(b - a > math.pi)
    points = [_spot(a, OUTER, x, y), _spot(b, OUTER, x, y), _spot(b, INNER, x, y),
              _spot(a, INNER, x, y)]  # fmt: skip
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = ((number(p), number(q)) for p, q in points)
    svg.path(f"M{ax} {ay}A{OUTER:g} {OUTER:g} 0 {big} 1 {bx} {by}L{cx} {cy}"
             f"A{INNER:g} {INNER:g} 0 {big} 0 {dx} {dy}Z", cls)  # fmt: skip


def _circle(svg: Svg, numbers: Ring, x: float, y: float) -> None:
    turn = 2 * math.pi / numbers.depth
    svg.circle(x, y, OUTER, "f-panel s-line")
    for first, count, mark in numbers.ranges:
        hue = MARKS[mark][0]
        slot = first % numbers.depth
        with svg.group(f"{count} {mark}, from counter {first & MASK}"):
            # one of thousands must still be visible
            wide = max(turn * count, 0.035)
            _sector(svg, x, y, turn * slot, turn * slot + wide, f"f-{hue}fill s-{hue}")
    svg.circle(x, y, INNER, "f-paper s-line")
    if numbers.depth <= 128:
        for i in range(numbers.depth):
            (ax, ay), (bx, by) = _spot(turn * i, INNER, x, y), _spot(turn * i, OUTER, x, y)
            svg.line(ax, ay, bx, by, "s-line", stroke_width="0.6")
    svg.reach(y + OUTER + 30)
    ax, ay = _spot(0, INNER - 8, x, y)
    svg.text(ax, ay + 8, "0", "t-soft z10", "middle")
    if numbers.depth >= 8:
        for part in (1, 2, 3):
            ax, ay = _spot(math.pi / 2 * part, INNER - 13, x, y)
            svg.text(ax, ay + 4, str(numbers.depth * part // 4), "t-soft z10", "middle")
    svg.text(x, y - 4, f"{numbers.depth} slots", "b t-ink", "middle")
    held = sum(n for _, n, _ in numbers.ranges)
    text = f"{held} in use" if numbers.pointers else "in any order"
    if held == numbers.depth:
        text = "full"
    svg.text(x, y + 14, text if held or not numbers.pointers else "empty", "t-soft", "middle")
    _pointers(svg, numbers, x, y, turn)


def _pointers(svg: Svg, numbers: Ring, x: float, y: float, turn: float) -> None:
    """Arrows from outside to the ring; adjacent ones share a stack of labels."""
    clusters: list[list[tuple[float, str]]] = []
    for name, value in numbers.pointers.items():
        angle = turn * (value % numbers.depth)
        for cluster in clusters:
            if math.cos(cluster[0][0] - angle) > math.cos(0.4):
                cluster.append((angle, name))
                break
        else:
            clusters.append([(angle, name)])
    for cluster in clusters:
        angle = cluster[0][0]
        side, up = math.sin(angle), math.cos(angle)
        qx, qy = _spot(angle, OUTER + 17, x, y)
        anchor = "start" if side > 0.25 else "end" if side < -0.25 else "middle"
        qx += {"start": 6, "end": -6, "middle": 0}[anchor]
        # the stack grows away from the ring
        qy += -13 * (len(cluster) - 1) if up > 0.25 else 0
        qy += 4 - 6 * up if anchor != "middle" else (-3 if up > 0 else 11)
        for i, (tip, name) in enumerate(cluster):
            hue, value = POINTERS[name], numbers.pointers[name]
            px, py = _spot(tip, OUTER + 2, x, y)
            if not any(t == tip for t, _ in cluster[:i]):
                ax, ay = _spot(tip, OUTER + 14, x, y)
                svg.line(px, py, ax, ay, f"s-{hue} w2")
                svg.head(px, py, -math.sin(tip), math.cos(tip), hue, 8)
            with svg.group(f"{name}: counter {value}, slot {value % numbers.depth}"):
                svg.text(qx, qy + 13 * i, f"{name} {value}", f"t-{hue} b z11", anchor)


def _rows(look: dict, numbers: Ring) -> list:
    """Entries to show, and a counter that is next to be written, and ranges left out."""
    entries = list(look["entries"])
    keep = []
    for name in POINTERS:
        if name in numbers.pointers:
            keep += [i for i, e in enumerate(entries) if e.get("index") == numbers.pointers[name]]
    shown = elide(len(entries), keep or [0], SHOWN)
    rows: list = [i if isinstance(i, range) else entries[i] for i in shown]
    producer = numbers.pointers.get("producer")
    if producer is not None and entries and (
        entries[-1].get("index", -2) + 1 & MASK == producer and shown and len(entries) > 0
    ):
        rows.append(producer)
    return rows


def _entries(svg: Svg, look: dict, numbers: Ring, x: float, y: float, w: float) -> None:
    """The list of entries."""
    cols = (x + 74, x + 140, x + 184)
    for at, text in zip(cols, ("counter", "slot", "entry"), strict=True):
        svg.text(at, y + 12, text, "t-soft z11")
    y += 20
    for row in _rows(look, numbers):
        if isinstance(row, range):
            svg.text(cols[2] + 8, y + 15, frame.more(len(row), "entry", "entries"), "t-soft z11")
            y += ROW
            continue
        ghost = isinstance(row, int)
        index = row if ghost else row.get("index")
        slot = index % numbers.depth if ghost else row["slot"]
        hue = "" if ghost else MARKS.get(row.get("mark", ""), ("", ""))[0]
        tags = [n for n, v in numbers.pointers.items() if v == index]
        for i, name in enumerate(tags):
            svg.text(x + 62, y + 15 + 10 * (i - (len(tags) - 1) / 2), name,
                     f"t-{POINTERS[name]} b z10", "end")
        if tags:
            svg.head(x + 71, y + ROW / 2, 1, 0, POINTERS[tags[-1]], 7)
        with svg.group("" if ghost else _tip(row)):
            svg.rect(cols[0] - 1, y, w - 73, ROW - 3,
                     f"f-{hue}fill s-{hue}" if hue else "f-panel s-faint" + (" d" if ghost else ""))
            svg.text(cols[0] + 6, y + 14, "" if index is None else str(index), "m t-ink z11")
            svg.text(cols[1] + 6, y + 14, str(slot), "m t-soft z11")
            if ghost:
                svg.text(cols[2] + 6, y + 14, "the next to be written", "t-soft z11")
            else:
                _one(svg, row, cols[2] + 6, y + 14, x + w - cols[2] - 12)
        y += ROW
    svg.reach(y)


def _one(svg: Svg, row: dict, x: float, y: float, room: float) -> None:
    name = kind(row)
    # entries that were never written are all zeros, and decode as opcode 0
    if untouched(row) and row.get("mark") in ("free", "consumed"):
        svg.text(x, y, "never written", "t-soft z11")
        return
    svg.text(x, y, name, "b t-ink z11", room=100, size=11)
    shift = 8 + 7.4 * len(name) if len(name) < 13 else 104
    svg.text(x + shift, y, words(row), "t-soft z11", room=room - shift, size=10)


def _tip(row: dict) -> str:
    at = f" at {row['address']:#x}" if "address" in row else ""
    return f"{row.get('mark', 'entry')}{at}: {kind(row)} {words(row)}".strip()


def _memory(svg: Svg, subject: Subject, look: dict, numbers: Ring, y: float) -> None:
    """The linear buffer that is used as a ring."""
    x, w = frame.EDGE, svg.width - 2 * frame.EDGE
    svg.text(x, y, "In memory it is a straight buffer", "b t-ink")
    where = f"{subject.va:#x}" if subject.va is not None else "offset 0"
    y += 34
    high = 26.0
    svg.rect(x, y, w, high, "f-panel s-line", rx=0)
    for first, count, mark in numbers.ranges:
        hue, slot = MARKS[mark][0], first % numbers.depth
        parts = [(slot, min(count, numbers.depth - slot))]
        if slot + count > numbers.depth:
            parts.append((0, slot + count - numbers.depth))
        for at, n in parts:
            svg.rect(x + w * at / numbers.depth, y, max(w * n / numbers.depth, 3), high,
                     f"f-{hue}fill s-{hue}", rx=0)
    if numbers.depth <= 128:
        for i in range(1, numbers.depth):
            at = x + w * i / numbers.depth
            svg.line(at, y, at, y + high, "s-line", stroke_width="0.6")
    svg.path(f"M{number(x + w - 4)} {number(y - 4)}C{number(x + w - 40)} {number(y - 24)} "
             f"{number(x + 40)} {number(y - 24)} {number(x + 4)} {number(y - 4)}", "n s-line d")
    svg.head(x + 3, y - 3, -0.75, 0.66)
    groups: list[list[tuple[float, str]]] = []
    for name, value in sorted(numbers.pointers.items(), key=lambda p: p[1] % numbers.depth):
        at = x + w * (value % numbers.depth) / numbers.depth
        svg.head(at, y + high + 2, 0, -1, POINTERS[name], 9)
        if groups and at - groups[-1][-1][0] < 110:
            groups[-1].append((at, name))
        else:
            groups.append([(at, name)])
    for group in groups:
        at = sum(a for a, _ in group) / len(group)
        room = 32 * len(group)
        anchor = "start" if at < x + room else "end" if at > x + w - room else "middle"
        at = min(max(at, x), x + w)
        svg.spans(at, y + high + 25,
                  [(f"{' · ' if i else ''}{n}", f"t-{POINTERS[n]} b z11")
                   for i, (_, n) in enumerate(group)], anchor)
    low = y + high + (44 if groups else 18)
    svg.text(x, low + 4, f"slot 0, {where}", "m t-soft z11", room=w / 2, size=11)
    svg.text(x + w, low + 4, f"slot {numbers.depth - 1}, + {size(look['stride'])} each",
             "m t-soft z11", "end", room=w / 2, size=11)
    at = x
    for mark, (hue, text) in MARKS.items():
        if hue and numbers.count(mark):
            svg.rect(at, low + 20, 14, 12, f"f-{hue}fill s-{hue}", rx=2)
            svg.text(at + 20, low + 30, f"{numbers.count(mark)} {text}", "t-soft z11")
            at += 60 + 6.5 * len(text)


def _meaning(subject: Subject, numbers: Ring) -> str:
    if not numbers.pointers:
        return ("WQEs of a shared receive queue are used in any order: the index ring beside it "
                "says which are posted.")
    if subject.object in ("cq", "eq"):
        return ("The adapter writes at producer and goes on; software takes at consumer and says "
                "so. Counters are never masked: producer − consumer entries wait, and the slot is "
                "the counter mod the depth.")
    taken = (" The adapter fetches at next: what lies between consumer and next is in flight."
             if "next" in numbers.pointers else "")
    return ("Software writes at producer, rings, and goes on; the adapter moves consumer when an "
            f"entry is done.{taken} Counters are never masked: producer − consumer = "
            "0 is empty, depth is full, and the slot is the counter mod the depth.")

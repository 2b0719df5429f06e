# SPDX-License-Identifier: GPL-2.0-or-later
"""
The swim lanes of one message as SVG: time runs downwards, the guests are left and
right of the wire, each with application, driver and adapter. Each row is one event;
the times between are printed and not drawn to scale, because they range from
nanoseconds to milliseconds.
"""

from __future__ import annotations

import dataclasses
import statistics

from ..svg import Svg, number
from . import explanations
from .stories import Recording, Step, Story

AXIS = 122.0  # room for times
LANE, WIRE = 164.0, 118.0
BOX, ROW, WAIT = 34.0, 43.0, 20.0
HEAD = 62.0
EDGE = 16.0
STEPS_MAX = 160


@dataclasses.dataclass
class Lane:
    pid: int
    layer: str
    x: float
    w: float

    @property
    def middle(self) -> float:
        return self.x + self.w / 2


def lanes_of(story: Story) -> list[Lane]:
    """The columns: the sender's, the wire, the others'."""
    pids: list[int] = []
    for step in story.steps:
        if step.layer != "wire" and step.pid not in pids:
            pids.append(step.pid)
    if not pids:
        pids = [story.steps[0].pid]
    wired = len(pids) > 1 or any(s.layer == "wire" for s in story.steps)
    order = [(pids[0], layer) for layer in ("provider", "driver", "device")]
    if wired:
        order.append((-1, "wire"))
    for pid in pids[1:]:
        order += [(pid, layer) for layer in ("device", "driver", "provider")]
    lanes, x = [], AXIS
    for pid, layer in order:
        width = WIRE if layer == "wire" else LANE
        # Frames that are steps of their own need room for text.
        if layer == "wire" and any(s.layer == "wire" for s in story.steps):
            width = LANE
        lanes.append(Lane(pid, layer, x, width))
        x += width
    return lanes


def shown_steps(story: Story) -> tuple[list[int], int]:
    """(indices of the steps to draw, how many are left out in the middle)"""
    count = len(story.steps)
    if count <= STEPS_MAX:
        return list(range(count)), 0
    head = STEPS_MAX * 2 // 3
    tail = STEPS_MAX - head
    return [*range(head), *range(count - tail, count)], count - head - tail


def draw(recording: Recording, story: Story) -> str:
    """The picture as a document of its own."""
    title = heading(recording, story)
    svg = Svg(width_of(story), title, describe(recording, story))
    room = svg.width - 2 * EDGE
    svg.text(EDGE, 34, title, "h1 t-ink", room=room, size=17)
    svg.text(EDGE, 55, describe(recording, story), "t-soft", room=room)
    _heads(svg, recording, lanes_of(story), 72)
    bottom = _body(svg, story, 72 + HEAD)
    svg.text(EDGE, bottom + 18, "Each row is one event; times are the recording's, from the "
             "first event on.", "t-soft z11", room=room)
    return svg.finish()


def draw_parts(recording: Recording, story: Story) -> tuple[str, str]:
    """The same for a page, which has style sheet and title: (heads of the lanes, the rest)."""
    width = width_of(story)
    heads = Svg(width, "Lanes", heading(recording, story), bare=True)
    _heads(heads, recording, lanes_of(story), 8)
    body = Svg(width, heading(recording, story), describe(recording, story), bare=True)
    _body(body, story, 4)
    return heads.finish(0), body.finish(8)


def width_of(story: Story) -> float:
    last = lanes_of(story)[-1]
    return last.x + last.w + EDGE


def _body(svg: Svg, story: Story, y: float) -> float:
    """The steps, their times and arrows, from Y on; returns where they end."""
    lanes = lanes_of(story)
    indices, left_out = shown_steps(story)
    rows = _rows(story, indices, y + 4)
    bottom = rows[indices[-1]] + BOX + 10
    for lane in lanes:
        svg.path(f"M{number(lane.x + 3)} {number(y)}V{number(bottom)}H{number(lane.x + lane.w - 3)}"
                 f"V{number(y)}Z", "f-panel s-faint")
    svg.reach(bottom)
    places = {(lane.pid, lane.layer): lane for lane in lanes}

    def lane_of(step: Step) -> Lane:
        wire = places.get((-1, "wire"))
        if step.layer == "wire" and wire:
            return wire
        return places.get((step.pid, step.layer), lanes[0])

    _times(svg, story, indices, rows, left_out)
    for begin, end, name in _through(story):
        if begin in rows and end in rows:
            _arrow(svg, story, lanes, lane_of(story.steps[begin]), lane_of(story.steps[end]),
                   rows, begin, end, name)
    for i in indices:
        _box(svg, story, i, lane_of(story.steps[i]), rows[i])
    return bottom


def heading(recording: Recording, story: Story) -> str:
    """The message in one line."""
    pids = list(dict.fromkeys(s.pid for s in story.steps if s.layer != "wire"))
    # a guest's name without its address
    where = " → ".join(" ".join(recording.guest(p).split(" ")[:2]) for p in pids[:2])
    wqe = next((s for s in story.steps if s.kind in ("wqe", "post_send")), None)
    if wqe is None:
        return f"{story.title} · {where}"
    args = {**story.args, **wqe.args}
    what = explanations.say(args, "opcode_name", "opcode") or story.title
    size = args.get("bytes")
    parts = [f"{what} of {size} bytes" if isinstance(size, int) else what]
    parts += [f"{name} {args[key]}" for key, name in (("qpn", "QP"), ("index", "WQE"))
              if key in args]
    return " · ".join([*parts, where])


def describe(recording: Recording, story: Story) -> str:
    at = story.begin - recording.begin
    return (f"{len(story.steps)} steps in {explanations.duration(story.seconds * 1e6)}, "
            f"{explanations.duration(at)} after the begin of the recording.")


def _through(story: Story) -> list[tuple[int, int, str]]:
    """The arrows; one that stays in a thread goes through the steps between, if all
    of those are of that thread, too."""
    out = set()
    for begin, end, name in story.arrows:
        between = story.steps[begin:end + 1]
        if len({(s.pid, s.tid) for s in between}) == 1:
            out |= {(i, i + 1, name) for i in range(begin, end)}
        else:
            out.add((begin, end, name))
    # A step without an arrow was done for the step before it.
    joined = {end for _, end, _ in story.arrows} | {begin for begin, _, _ in story.arrows}
    for i, (a, b) in enumerate(zip(story.steps, story.steps[1:], strict=False)):
        if i + 1 not in joined and (a.pid, a.tid) == (b.pid, b.tid):
            out.add((i, i + 1, ""))
    return sorted({(begin, end): arrow for arrow in sorted(out, reverse=True)
                   for begin, end in [arrow[:2]]}.values())


def _waits(story: Story, indices: list[int]) -> set[int]:
    """Steps before which much more time passes than usual."""
    gaps = {b: story.steps[b].ts - story.steps[a].ts
            for a, b in zip(indices, indices[1:], strict=False)}
    if len(gaps) < 3:
        return set()
    usual = statistics.median(gaps.values())
    return {i for i, gap in gaps.items() if gap > max(8 * usual, 1.0)}


def _rows(story: Story, indices: list[int], y: float) -> dict[int, float]:
    rows: dict[int, float] = {}
    waits = _waits(story, indices)
    before = None
    for i in indices:
        if i in waits:
            y += WAIT
        if before is not None and i != before + 1:
            y += ROW
        rows[i] = y
        y += ROW
        before = i
    return rows


def _heads(svg: Svg, recording: Recording, lanes: list[Lane], top: float) -> None:
    """The lanes' names, and the guests over them."""
    for lane in lanes:
        hue = explanations.HUES[lane.layer]
        name, sub = explanations.LANES[lane.layer]
        x, w = lane.x + 3, lane.w - 6
        svg.rect(x, top + 24, w, HEAD - 24, "f-panel", rx=0)
        svg.rect(x, top + 24, w, 3, f"f-{hue}", rx=1.5)
        svg.text(lane.middle, top + 42, name, f"b t-{hue}", "middle", room=lane.w)
        svg.text(lane.middle, top + 56, sub, "t-soft z10", "middle", room=lane.w, size=10)
    by_guest: dict[int, list[Lane]] = {}
    for lane in lanes:
        by_guest.setdefault(lane.pid, []).append(lane)
    for pid, group in by_guest.items():
        if pid == -1:
            continue
        x1, x2 = group[0].x + 3, group[-1].x + group[-1].w - 3
        svg.text((x1 + x2) / 2, top + 12, recording.guest(pid), "b t-ink", "middle", room=x2 - x1)
        svg.line(x1, top + 19, x2, top + 19, "s-line")


def _times(svg: Svg, story: Story, indices: list[int], rows: dict[int, float],
           left_out: int) -> None:
    """The axis: time since the first step, and since the step before."""
    waits = _waits(story, indices)
    x = AXIS - 16
    svg.line(x + 7, rows[indices[0]] + BOX / 2, x + 7, rows[indices[-1]] + BOX / 2, "s-faint w2")
    before = None
    for i in indices:
        y = rows[i] + BOX / 2
        ts = story.steps[i].ts
        svg.circle(x + 7, y, 3, "f-line")
        svg.text(x, y - 1, f"{ts - story.begin:.3f} µs", "m t-ink z11", "end")
        if before is not None:
            gap = explanations.duration(ts - story.steps[before].ts)
            if i in waits:
                middle = (rows[before] + BOX + rows[i]) / 2
                svg.path(f"M{number(x + 7)} {number(middle - 9)}l5 4l-10 5l5 4", "n s-orange w2")
                svg.text(x - 4, middle + 4, f"{gap} later", "t-orange b z11", "end")
            else:
                svg.text(x, y + 12, f"+{gap}", "t-soft z10", "end")
            if i != before + 1:
                svg.text(AXIS + 14, rows[i] - 12, f"… {left_out} more steps are left out here",
                         "t-soft b")
        before = i


def _box(svg: Svg, story: Story, i: int, lane: Lane, y: float) -> None:
    step = story.steps[i]
    hue = "red" if explanations.trouble(step) else explanations.HUES[lane.layer]
    meaning = explanations.meaning(step)
    tip = f"{step.name}: {meaning}" if meaning else step.name
    w = lane.w - 20
    with svg.group(tip, "step", data_step=f"{story.number}-{i}"):
        svg.rect(lane.x + 10, y, w, BOX, f"f-{hue}fill s-{hue}", rx=4)
        svg.text(lane.x + 17, y + 14, step.name, "b t-ink z11", room=w - 12, size=10.8)
        svg.text(lane.x + 17, y + 27, explanations.summary(step), "t-soft z10", room=w - 10, size=8.9)


def _down(svg: Svg, lane: Lane, rows: dict[int, float], begin: int, end: int) -> None:
    """From one step to a later one of the same lane: past the rows between."""
    ya, yb = rows[begin] + BOX / 2, rows[end] + BOX / 2
    if end == begin + 1:
        svg.line(lane.middle, ya + BOX / 2, lane.middle, yb - BOX / 2 - 4, "s-soft w2")
        svg.head(lane.middle, yb - BOX / 2, 0, 1, "soft")
        return
    svg.path(f"M{number(lane.x + 10)} {number(ya)}C{number(lane.x - 3)} {number(ya)} "
             f"{number(lane.x - 3)} {number(yb)} {number(lane.x + 5)} {number(yb)}", "n s-soft w2")
    svg.head(lane.x + 10, yb, 1, 0, "soft")


def _arrow(svg: Svg, story: Story, lanes: list[Lane], a: Lane, b: Lane, rows: dict[int, float],
           begin: int, end: int, name: str) -> None:
    """From one step to the next, drawn under the boxes."""
    ya, yb = rows[begin] + BOX / 2, rows[end] + BOX / 2
    if a is b:
        _down(svg, a, rows, begin, end)
        return
    right = b.x > a.x
    x1 = a.x + a.w - 10 if right else a.x + 10
    x2 = b.x + 10 if right else b.x + b.w - 10
    sign = 1 if right else -1
    cross = a.pid != b.pid and "wire" not in (a.layer, b.layer)
    hue = "purple" if cross or "wire" in (a.layer, b.layer) else "soft"
    bend = 14 * sign
    # Down in the gap next to its box, then straight across.
    past = not cross and abs(lanes.index(a) - lanes.index(b)) > 1
    svg.path(f"M{number(x1)} {number(ya)}C{number(x1 + bend * 2)} {number(ya)} "
             f"{number(x2 - bend * 2)} {number(yb)} {number(x2 - 5 * sign)} {number(yb)}",
             f"n s-{hue} w2" + (" d" if past else ""))
    svg.head(x2, yb, sign, 0, hue, 7)
    middle = (ya + yb) / 2
    if past and {a.layer, b.layer} == {"provider", "device"}:
        svg.text((x1 + x2) / 2 + 10 * sign, middle - 8 if right else middle + 2,
                 "past the kernel", "t-soft z10", "start" if right else "end")
    if cross:
        wire = next((lane for lane in lanes if lane.layer == "wire"), a)
        label = (explanations.summary(story.steps[begin]) or name).split(" · ")
        # in the corners that the curve leaves free
        far, near = (wire.x + wire.w - 7, wire.x + 7) if right else (wire.x + 7, wire.x + wire.w - 7)
        ends = ("end", "start") if right else ("start", "end")
        svg.text(far, middle - 11, label[0], "t-purple z10 b", ends[0], room=wire.w - 10, size=9.4)
        if len(label) > 1:
            svg.text(near, middle + 18, label[1], "t-purple z10", ends[1], room=wire.w - 10,
                     size=9.4)

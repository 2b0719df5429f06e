# SPDX-License-Identifier: GPL-2.0-or-later
"""How the parts of a view are displayed: functions from a View and a width to lines."""

from __future__ import annotations

import re

from .. import render
from ..machine import number_of, shown_number
from ..render import Line
from .model import View

PACKETS = ("tx", "rx", "rx_drop", "retransmit")
GAP = 3                         # columns between those of a grid
MOVES = 5                       # a growing number must not move what is next to it
# Fields of a ring's entry that are not shown: the table shows its location.
LEFT_OUT = ("slot", "address", "raw", "num_sge")


def state_words(view: View) -> tuple[str, str]:
    """(kind of text, words) of a guest's run state."""
    if view.state is None:
        return "bad", "ended"
    if view.at_break:
        return "path", "at a break"
    if view.stopped:
        return "warn", "frozen" if view.state == "paused" else view.state
    return "good", f"steps: {view.stepping}" if view.stepping else "runs"


def wrapped(line: Line, width: int, indent: int) -> list[Line]:
    """LINE in rows of WIDTH, broken between words but not after a key; further rows begin
    at column INDENT."""
    units: list[Line] = []
    glue = False
    for kind, text in line:
        for word in re.findall(r" *[^ ]+ *|^ +$", text):
            if glue:
                units[-1].append((kind, word))
            else:
                units.append([(kind, word)])
            glue = kind == "key"
    rows: list[Line] = [[]]
    at = 0
    for unit in units:
        text = "".join(t for _, t in unit)
        if at > indent and at + len(text.rstrip()) > width:
            rows.append([("dim", " " * indent)])
            at = indent
        rows[-1] += unit
        at += len(text)
    return rows


def stop_lines(view: View, width: int) -> list[Line]:
    """Why it stopped, and the last doorbell: always three lines."""
    kind, words = state_words(view)
    lines: list[Line] = []
    if view.trouble:
        lines += wrapped([("bad", view.trouble)], width, 2)[:2]
    elif view.at_break:
        lines += wrapped([("path", render.sentence(view.stop) or words)], width, 2)[:2]
    else:
        hint = {"runs": "  b sets a break, f freezes all guests",
                "frozen": "  c lets all go on"}.get(words, "")
        lines.append([(kind, f"guest {view.name} {words}"), ("dim", hint)])
    bell = view.last("doorbell")
    if len(lines) == 2:
        pass                            # no room for more
    elif bell and view.at_break and bell == view.stop.get("event"):
        lines.append([("dim", "nothing has been done about this doorbell yet")])
    elif bell:
        bare = {k: v for k, v in bell.items() if k not in ("kind", "time")}
        text = "".join(t for _, t in render.event_line(dict(bare, kind="doorbell")))
        line: Line = [("key", "last "), ("number", " ".join(text.split()))]
        if view.history[-1].get("time") is not None and "time" in bell:
            ago = (view.history[-1]["time"] - bell["time"]) / 1000
            line.append(("dim", f"  {ago:.1f} us before"))
        lines.append(line)
    else:
        lines.append([("dim", "no doorbell was seen yet")])
    heads: Line = []
    for name, ring in view.rings.items():
        heads.append(("title", f"{name} "))
        for key in ("producer", "next", "consumer"):
            if key in ring:
                heads += [("key", f"{key} "), ("number", f"{ring[key]} ")]
        record = view.look.get("doorbell_record", {}).get("index")
        if name == "rq" and record not in (None, ring.get("producer")):
            # the device looks there when it needs a WQE
            heads += [("key", "record "), ("number", f"{record} ")]
        heads.append(("dim", " "))
    lines.append(heads or [("dim", "no ring")])
    return lines


def object_lines(view: View, width: int) -> tuple[list[Line], int | None]:
    """The objects of the kind, and the row of the one that is shown."""
    lines: list[Line] = []
    row = None
    for entry in view.objects:
        entry = render.merged(entry)
        number = number_of(view.kind, entry)
        if number == view.number and row is None:
            row = len(lines)
        words = " ".join(str(entry[k]) for k in ("type", "state", "gid") if k in entry)
        lines.append([("number", f"{shown_number(view.kind, number):>6} "),
                      (render.mood(str(entry.get("state", ""))), words)])
    return lines or [[("dim", f"no {view.kind}")]], row


def grid(item: dict, before: dict, width: int) -> list[Line]:
    """The plain fields of ITEM in as many columns as fit; those that differ
    from BEFORE are marked. Insignificant ones are omitted unless they have changed."""
    now, old = render.merged(item), render.merged(before) if before else {}
    cells = []
    for key, value in now.items():
        if not render.is_plain(value) or key in ("raw", "rx_hash_key"):
            continue
        changed = bool(old) and old.get(key) != value
        if render.nothing(value) and not changed and value is not True:
            continue
        text = render.scalar(key, value)
        cells.append((key, text, "path" if changed else render.mood(text)))
    if not cells:
        return []
    across = next((n for n in range(min(len(cells), width // 8 + 1), 1, -1)
                   if sum(grid_widths(cells, n)) <= width + GAP), 1)
    down = -(-len(cells) // across)
    lines: list[Line] = []
    for row in range(down):
        line: Line = []
        for first in range(0, len(cells), down):
            column = cells[first : first + down]
            if row < len(column):
                key, text, kind = column[row]
                key_width = max(len(k) for k, _, _ in column)
                value_width = max(MOVES, *(len(v) for _, v, _ in column))
                line += [("key", f"{key:<{key_width}} "),
                         (kind, f"{text:<{value_width}}"), ("dim", " " * GAP)]
        lines.append(line)
    return lines


def grid_widths(cells: list[tuple], across: int) -> list[int]:
    """The width of each column, with the gap after it, with CELLS in ACROSS columns."""
    down = -(-len(cells) // across)
    columns = [cells[at : at + down] for at in range(0, len(cells), down)]
    return [max(len(k) for k, _, _ in c) + 1 + max(MOVES, *(len(v) for _, v, _ in c)) + GAP
            for c in columns]


def context_lines(view: View, width: int) -> list[Line]:
    """The context, then the device's other state of the object."""
    if not view.look:
        return [[("dim", f"no {view.kind} to show")]]
    lines = grid(view.look.get("context", view.look), view.before.get("context", {}), width)
    context = view.look.get("context", {})
    for name in (k for k, v in context.items() if isinstance(v, dict)):
        part = grid(context[name], view.before.get("context", {}).get(name, {}), width)
        if part:
            lines += [[("title", name)], *part]
    rest = {k: v for k, v in view.look.items()
            if k not in ("context", "object", "number", "raw")}
    for name, value in render.merged(rest).items():
        if isinstance(value, dict):
            part = grid(value, view.before.get(name, {}), width)
            if part:
                lines += [[("title", name)], *part]
            for inner, deep in render.merged(value).items():
                if isinstance(deep, dict):
                    part = grid(deep, view.before.get(name, {}).get(inner, {}), width)
                    lines += [[("title", f"{name}, {inner}")], *part] if part else []
                elif isinstance(deep, list) and deep:
                    lines.append([("title", f"{name}, {inner}")])
                    lines += render.table([d if isinstance(d, dict) else {"": d} for d in deep],
                                         width)
    return lines


def ring_lines(view: View, name: str, width: int) -> tuple[list[Line], int | None]:
    """Entries of a ring, and the row of the cursor."""
    look = view.rings.get(name)
    if not look:
        return [[("dim", "none" if view.rings else "it has no ring")]], None
    entries = [{k: v for k, v in e.items() if k not in LEFT_OUT} for e in look["entries"]]
    lines = render.table(entries, width, marks=render.ring_marks(look) or None)
    if lines and lines[-1] and lines[-1][0][1].startswith("· also"):
        lines.pop()
    at = view.cursor(name)
    row = None if at is None else next(
        (n + 1 for n, e in enumerate(look["entries"]) if e.get("index") == at), None)
    return lines, row


def table_lines(view: View, width: int, height: int) -> list[Line]:
    """The path to the entry under the cursor; of each table on the path as many adjacent
    entries as there is room for."""
    if "error" in view.walk:
        return [[("bad", view.walk["error"])]]
    if not view.walk:
        return [[("dim", "no ring to walk: choose an object that has one")]]
    lines = render.walk_lines(view.walk, width)
    for count in (4, 3, 2, 1):
        if len(lines) <= height:
            break
        hops = [dict(hop, entries=around(hop["entries"], count)) if "entries" in hop else hop
                for hop in view.walk.get("hops", [])]
        lines = render.walk_lines(dict(view.walk, hops=hops), width)
    return lines


def around(entries: list[dict], count: int) -> list[dict]:
    """COUNT of ENTRIES, the marked one among them."""
    at = next((n for n, e in enumerate(entries) if e.get("marked")), 0)
    first = min(max(0, at - count // 2), max(0, len(entries) - count))
    return entries[first : first + count]


def event_lines(view: View, width: int, kinds: tuple = ()) -> list[Line]:
    """The events, newest last; times in microseconds before it."""
    if not view.history:
        return [[("dim", "nothing yet: events are kept while a break or step is set")]]
    last = view.history[-1].get("time", 0)
    old = len(view.history) - view.fresh
    lines = []
    for n, event in enumerate(view.history):
        if kinds and event.get("kind") not in kinds:
            continue
        line = render.event_line(event, last)
        if event.get("kind") in PACKETS:
            line[1] = ("path", line[1][1])
        rows = wrapped(line, width, 14)
        if n < old:
            rows = [[("dim", text) for _, text in row] for row in rows]
        lines += rows
    return lines or [[("dim", "no packets yet")]]


def packet_lines(view: View, width: int) -> list[Line]:
    return event_lines(view, width, PACKETS)


def completion_lines(view: View, width: int) -> list[Line]:
    """The CQEs that wait, and the last ones."""
    lines: list[Line] = []
    for look in view.completions:
        entries = [e for e in look["entries"]
                   if e.get("mark") == "waiting" or e.get("index", 0) < look.get("producer", 0)]
        lines.append([("title", f"cq {look['number']}  "), ("key", "producer "),
                      ("number", f"{look.get('producer')}  "), ("key", "consumer "),
                      ("number", f"{look.get('consumer')}")])
        if entries:
            rows = [{k: v for k, v in e.items()
                     if k not in (*LEFT_OUT, "phase", "timestamp")} for e in entries[-8:]]
            table = render.table(rows, width)
            if table[-1][0][1].startswith("· also"):
                table.pop()
            lines += table
    return lines or [[("dim", "no CQ belongs to it")]]

# SPDX-License-Identifier: GPL-2.0-or-later
"""The buffer table with the path to one entry marked: all forms, 0 to 3 hops."""

from __future__ import annotations

import dataclasses

from qhca_lab.svg import Svg, elide, wrap

from . import frame
from .entry import details, untouched
from .model import Subject, size

ROW = 22.0
MINI = 22.0
SHOWN = 7
TOP = 96.0
CONTEXTS = {"qp": "QPC", "cq": "CQC", "srq": "SRQC", "eq": "EQC", "mr": "MPT"}
PARTS = {"srq": "buf", "index": "idx", "cq": "buf", "eq": "buf", "": "buf"}


@dataclasses.dataclass
class Column:
    """The table in front: where its entries' arrows begin."""

    x: float
    w: float
    rows: dict[int, float]  # entry: y
    marked: int


def draw(subject: Subject, look: dict, entry: dict | None = None,
         width: float = frame.WIDTH) -> str:
    """The figure. LOOK is qhca-walk's answer with table entries; ENTRY, qhca-ring's
    entry of the same place, is shown decoded."""
    hops = look["hops"]
    svg = frame.begin("Buffer table", subject, _desc(look), width)
    columns = len(hops) + 2
    room = width - 2 * frame.EDGE
    w = min(176.0, room / (columns + (columns - 1) * 0.26))
    step = min((room - w) / (columns - 1), w * 1.9)
    start = (width - step * (columns - 1) - w) / 2
    column = _context(svg, subject, look, start, w)
    for i in range(len(hops)):
        column = _table(svg, subject, look, i, column, start + step * (i + 1), w)
    _page(svg, subject, look, column, start + step * (columns - 1), w)
    y = _arithmetic(svg, subject, look, svg.bottom + 30)
    if entry:
        _decoded(svg, entry, y + 10)
    return frame.end(svg, subject, _meaning(subject))


def _desc(look: dict) -> str:
    way = [f"table at {look['buffer']['addr']:#x}"]
    way += [f"entry {h['index']} at {h['at']:#x}" for h in look["hops"]]
    end = f"DMA address {look['address']:#x}" if "address" in look else str(look.get("error"))
    return f"The path of offset {look['offset']:#x}: {', '.join(way)}, then {end}."


def _titled(svg: Svg, x: float, y: float, w: float, name: str, sub: str) -> float:
    """A heading over a box; returns where the box begins."""
    svg.text(x, y + 10, name, "b t-ink", room=w)
    svg.text(x, y + 26, sub, "t-soft z11", room=w, size=10)
    return y + 35


def _context(svg: Svg, subject: Subject, look: dict, x: float, w: float) -> Column:
    """The part of the context that leads to the table."""
    buffer = look["buffer"]
    fields = [("addr", f"{buffer['addr']:#x}"), ("form", subject.form),
              ("hops", str(buffer["hops"])), ("len", size(subject.length))]  # fmt: skip
    if subject.form in ("FLAT", "TREE"):
        fields.append(("page_shift", str(buffer["page_shift"])))
    if subject.form == "TREE":
        fields.append(("table_shift", str(buffer["table_shift"])))
    if subject.form in ("FLAT", "LIST"):
        fields.append(("entries", str(buffer["entries"])))
    if buffer["first"]:
        fields.append(("first", f"{buffer['first']:#x}"))
    if subject.stride:
        fields += [("depth", str(subject.depth)), ("stride", str(subject.stride))]
    context = CONTEXTS.get(subject.object, "context")
    number = f"{subject.number:#x}" if subject.object == "mr" else str(subject.number)
    part = PARTS.get(subject.ring, subject.ring)
    y = _titled(svg, x, TOP, w, f"{context} of {subject.object.upper()} {number}",
                f"field {part}, in the adapter")
    svg.rect(x, y, w, ROW * len(fields), "f-panel s-line", rx=0)
    for i, (key, value) in enumerate(fields):
        if not i:
            svg.rect(x, y, w, ROW, "f-bluefill s-blue w2", rx=0)
        svg.text(x + 8, y + 15, key, "m t-soft z11")
        svg.text(x + w - 8, y + 15, value, "m t-ink z11" + ("" if i else " b"), "end",
                 room=w - 22 - 6.6 * len(key), size=10.5)
        y += ROW
    svg.text(x, y + 16, "first address" if subject.form == "DIRECT" else "where the table is",
             "t-soft z11")
    return Column(x, w, {0: TOP + 35 + ROW / 2}, 0)


def _shown(hop: dict) -> list[int | range]:
    items = elide(hop["used"], hop["index"], SHOWN)
    return items if hop["index"] < hop["used"] else [*items, hop["index"]]


def _known(hop: dict) -> dict[int, dict]:
    return {hop["index"]: hop} | {e["index"]: e for e in hop.get("entries", ())}


def _minis(svg: Svg, column: Column, others: list[tuple[int, str, str]], x: float, y: float,
           w: float) -> float:
    """Small boxes for what other entries point to, from Y on: (entry, text, tip)."""
    for index, text, tip in others:
        with svg.group(tip):
            svg.link(column.x + column.w, column.rows[index], x, y + MINI / 2)
            svg.rect(x, y, w, MINI, "f-paper s-line", rx=0)
            svg.text(x + w / 2, y + 15, text, "m t-soft z10", "middle", room=w - 10, size=10)
        y += MINI + 7
    return y


def _others(subject: Subject, look: dict, level: int) -> list[tuple[int, str, str]]:
    """What the entries of table LEVEL that are shown, but not marked, point to."""
    hop = look["hops"][level]
    known, out = _known(hop), []
    for i in _shown(hop):
        entry = known.get(i) if isinstance(i, int) and i != hop["index"] else None
        if not entry or not entry.get("valid"):
            continue
        kind = "buffer" if subject.form == "LIST" else str(entry.get("kind", ""))
        text = f"{kind} {entry['address']:#x}"
        if subject.form == "LIST":
            text = f"{entry['address']:#x} {size(entry['length'])}"
        out.append((entry["index"], text, f"{kind} of entry {entry['index']}"))
    return out


def _table(svg: Svg, subject: Subject, look: dict, i: int, column: Column, x: float,
           w: float) -> Column:
    """One table on the path, with small boxes for its siblings."""
    hop, last = look["hops"][i], i == len(look["hops"]) - 1
    error = look.get("error") if last else None
    sisters = _others(subject, look, i - 1) if i else []
    y = _minis(svg, column, [s for s in sisters if s[0] < column.marked], x, TOP, w)
    y += 6 if y > TOP else 0
    name = {"LIST": "list", "FLAT": "table"}.get(subject.form)
    name = name or ("root table" if not i else f"table of level {i}")
    used = hop["used"]
    y = _titled(svg, x, y, w, name,
                f"{used} entr{'y' if used == 1 else 'ies'} at {hop['table']:#x}")
    svg.link(column.x + column.w, column.rows[column.marked], x, y + ROW / 2, "blue", "w2")
    known, rows = _known(hop), {}
    for item in _shown(hop):
        if isinstance(item, range):
            svg.rect(x, y, w, ROW, "f-paper s-line d", rx=0)
            svg.text(x + w / 2, y + 15, frame.more(len(item)), "t-soft z11", "middle",
                     room=w, size=10)
        else:
            on = item == hop["index"]
            hue = "red" if error else "blue"
            with svg.group(_entry_tip(hop, item, known.get(item), subject)):
                svg.rect(x, y, w, ROW, f"f-{hue}fill s-{hue} w2" if on else "f-panel s-line", rx=0)
                svg.text(x + 7, y + 15, str(item), "t-soft z11")
                svg.text(x + w - 7, y + 15, _entry_text(known.get(item), subject),
                         "m t-ink z11" + (" b" if on else ""), "end", room=w - 44, size=10.5)
            rows[item] = y + ROW / 2
        y += ROW
    for line in wrap(_index_rule(subject, look, i), w * 1.1, 11):
        svg.text(x, y + 16, line, "t-soft z11")
        y += 15
    _minis(svg, column, [s for s in sisters if s[0] > column.marked], x, y + 16, w)
    return Column(x, w, rows, hop["index"])


def _entry_text(entry: dict | None, subject: Subject) -> str:
    if entry is None:
        return "not read"
    if not entry.get("valid"):
        return "not valid"
    if subject.form == "LIST":
        return f"{entry['address']:#x}+{entry['length']:#x}"
    return f"{entry['address']:#x}"


def _entry_tip(hop: dict, index: int, entry: dict | None, subject: Subject) -> str:
    stride = 16 if subject.form == "LIST" else 8
    tip = f"entry {index}, at {hop['table'] + index * stride:#x}"
    if entry and "entry" in entry:
        tip += f": {entry['entry']:#018x}, {entry.get('kind', 'not valid')}"
    return tip


def _page_number(look: dict) -> int:
    return look["offset"] + look["buffer"]["first"] >> look["buffer"]["page_shift"]


def _index_rule(subject: Subject, look: dict, i: int) -> str:
    """How the index of hop I is computed."""
    buffer, hop = look["buffer"], look["hops"][i]
    if subject.form == "LIST":
        return "lengths added up until the offset is reached"
    page = _page_number(look)
    if subject.form == "FLAT":
        return f"index = page number {page}"
    bits = buffer["table_shift"] - 3
    up = bits * (buffer["hops"] - 1 - i)
    high = f"({page} >> {up})" if up else str(page)
    return f"{high} mod {1 << bits} = {hop['index']}"


def _page(svg: Svg, subject: Subject, look: dict, column: Column, x: float, w: float) -> None:
    """What the last entry points to: the page with the bytes, or the error."""
    hops = look["hops"]
    sisters = _others(subject, look, len(hops) - 1) if hops else []
    y = _minis(svg, column, [s for s in sisters if s[0] < column.marked], x, TOP, w)
    y += 6 if y > TOP else 0
    if "address" not in look:
        svg.link(column.x + column.w, column.rows[column.marked], x, y + 20, "red", "w2 d")
        for line in wrap(str(look.get("error", "nothing is known")), w - 16, 12):
            svg.text(x + 8, y + 24, line, "t-red b", room=w - 16)
            y += 17
        _minis(svg, column, [s for s in sisters if s[0] > column.marked], x, y + 30, w)
        return
    base, span, name = _span(subject, look)
    y = _titled(svg, x, y, w, name, f"{size(span)} at {base:#x}")
    svg.link(column.x + column.w, column.rows[column.marked], x, y + ROW / 2, "blue", "w2")
    inside = look["address"] - base
    if subject.stride:
        y = _slots(svg, subject, look, inside, span, x, y, w)
    else:
        high = 5 * ROW
        svg.rect(x, y, w, high, "f-panel s-line", rx=0)
        at = y + min(max(high * inside / span, 3), high - 3)
        svg.line(x, at, x + w, at, "s-blue w3")
        label = at - 6 if at > y + 20 else at + 15
        svg.text(x + w - 7, label, f"+{inside:#x}", "m t-ink z11 b", "end")
        y += high
    svg.text(x, y + 16, f"{base:#x} + {inside:#x}", "m t-soft z11", room=w * 1.2, size=10.5)
    svg.text(x, y + 32, f"= {look['address']:#x}", "m t-blue b")
    _minis(svg, column, [s for s in sisters if s[0] > column.marked], x, y + 46, w)


def _span(subject: Subject, look: dict) -> tuple[int, int, str]:
    """(DMA address, length, name) of the block with the bytes."""
    buffer = look["buffer"]
    if subject.form == "DIRECT":
        return buffer["addr"] + buffer["first"], subject.length, "the buffer itself"
    if subject.form == "LIST":
        leaf = look["hops"][-1]
        return leaf["address"], leaf["length"], f"buffer {leaf['index']}"
    page = 1 << buffer["page_shift"]
    return look["address"] & ~(page - 1), page, f"page {_page_number(look)}"


def _slots(svg: Svg, subject: Subject, look: dict, inside: int, span: int, x: float, y: float,
           w: float) -> float:
    """A page as the entries of a ring it holds; returns where it ends."""
    first = look["slot"] - inside // subject.stride
    count = max(1, min(span // subject.stride, subject.depth - first))
    for item in elide(count, look["slot"] - first, SHOWN):
        if isinstance(item, range):
            svg.rect(x, y, w, ROW, "f-paper s-line d", rx=0)
            svg.text(x + w / 2, y + 15, frame.more(len(item)), "t-soft z11", "middle",
                     room=w, size=10)
        else:
            on = first + item == look["slot"]
            svg.rect(x, y, w, ROW, "f-bluefill s-blue w2" if on else "f-panel s-line", rx=0)
            svg.text(x + 7, y + 15, f"slot {first + item}", "t-ink b" if on else "t-soft z11")
            svg.text(x + w - 7, y + 15, f"+{item * subject.stride:#x}", "m t-soft z11", "end")
        y += ROW
    return y


def _steps(subject: Subject, look: dict) -> list[str]:
    """The arithmetic from the entry to the DMA address, a line each."""
    offset, buffer = look["offset"], look["buffer"]
    out = []
    if subject.stride:
        index = look.get("index")
        slot = look["slot"]
        if index is not None:
            out.append(f"slot = index mod depth = {index} mod {subject.depth} = {slot}")
        out.append(f"offset = slot × stride = {slot} × {subject.stride} = {offset} ({offset:#x})")
    else:
        out.append(f"offset = VA − IOVA of the region = {look.get('va', 0):#x} − "
                   f"{look.get('va', 0) - offset:#x} = {offset:#x}")
    if subject.form in ("FLAT", "TREE"):
        pos = offset + buffer["first"]
        first = f"(offset + first {buffer['first']:#x})" if buffer["first"] else "offset"
        step = 1 << buffer["page_shift"]
        out.append(f"page = {first} / {size(step)} = {pos >> buffer['page_shift']}, "
                   f"byte {pos & step - 1} ({pos & step - 1:#x}) of it")
    if "address" in look:
        hops = len(look["hops"])
        reads = {"DIRECT": "no read of a table",
                 "LIST": f"{look['hops'][0]['index'] + 1 if hops else 0} list entries read"}.get(
            subject.form, f"{hops} read{'s' if hops != 1 else ''} of 8 bytes")
        out.append(f"DMA address = {look['address']:#x}, after {reads}")
    return out


def _arithmetic(svg: Svg, subject: Subject, look: dict, y: float) -> float:
    """The arithmetic below the picture; returns where it ends."""
    lines = _steps(subject, look)
    w = svg.width - 2 * frame.EDGE
    svg.rect(frame.EDGE, y, w, 14 + 19 * len(lines), "f-panel s-faint")
    for line in lines:
        y += 19
        svg.text(frame.EDGE + 12, y + 3, line, "m t-ink z11", room=w - 24, size=11)
    return y + 14


def _decoded(svg: Svg, entry: dict, y: float) -> None:
    """The entry's fields, in two columns."""
    if untouched(entry):
        svg.text(frame.EDGE, y + 14, "The bytes there are all zero: nothing was written yet.", "t-soft")
        return
    fields = details(entry)
    w = svg.width - 2 * frame.EDGE
    half = w / 2
    rows = (len(fields) + 1) // 2
    svg.text(frame.EDGE, y + 14, "The bytes there, decoded", "b t-ink")
    y += 24
    for i, (name, value) in enumerate(fields):
        x = frame.EDGE + (i // rows) * half
        at = y + 18 * (i % rows) + 12
        svg.text(x, at, name, "t-soft z11")
        svg.text(x + 78, at, value, "m t-ink z11", room=half - 90, size=11)
    svg.reach(y + 18 * rows)


def _meaning(subject: Subject) -> str:
    """The purpose of the form."""
    return {
        "DIRECT": "No table: the context holds the address of the buffer itself, which must be "
                  "one contiguous block.",
        "LIST": "The obvious approach: addresses and lengths in a list. The adapter must add up "
                "lengths from the first entry on, so far offsets cost more reads.",
        "FLAT": "All pages are of one size, which the context holds once: no lengths, and the "
                "entry is found by a shift. The table itself must be contiguous.",
        "TREE": "Tables of tables, as a CPU's page tables are: each table is small, so a large "
                "and scattered buffer needs no contiguous table.",
    }.get(subject.form, "")  # fmt: skip

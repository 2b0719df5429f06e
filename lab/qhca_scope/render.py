# SPDX-License-Identifier: GPL-2.0-or-later
"""Inspection results as lines of (kind of text, text): one form for the command line
and the terminal interface.

This module knows no kinds of objects and no fields. A number with its name
(`state`, `state_name`) becomes one value, lists of objects become tables, the rest
depends on the type of the value. So new data from the device needs no change here.
"""

from __future__ import annotations

import re

from .field_order import ordered

Line = list[tuple[str, str]]

# JSON does not say which numbers to show in hexadecimal; names do.
HEX = re.compile(
    r"(^|_)(addr|address|table|entry|at|va|iova|key|rkey|lkey|qkey|wr_id|cookie|dbrec|page"
    r"|offset|base|raddr|tag|mask|imm|aeth|leaf|deadline_at|value|ctrl|handle|page_addr)$"
)
DEC = re.compile(r"^(entries|(.*_)?page)$")
GOOD = ("RTS", "SUCCESS", "posted", "in-flight", "waiting", "running", "VALID", "READY", "OK")
BAD = ("ERR", "SQE", "_ERR", "error", "FATAL", "OVERFLOW", "NAK")


def is_hex(name: str) -> bool:
    return bool(HEX.search(name)) and not DEC.match(name)


def scalar(name: str, value) -> str:
    """A plain value as text."""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, int) and is_hex(name):
        return f"0x{value:x}"
    return "".join(c if c.isprintable() else "?" for c in str(value))


def is_plain(value) -> bool:
    return not isinstance(value, (dict, list))


def merged(item: dict) -> dict:
    """ITEM in reading order, with names of codes and flags in place of the
    numbers: {state: 3, state_name: "RTS"} is {state: "RTS"}."""
    out = dict(item)
    for key, value in item.items():
        for end in ("_name", "_names"):
            bare = key.removesuffix(end)
            if bare == key or not isinstance(value, str):
                continue
            del out[key]
            out[bare] = value or "-"
            if end == "_names" and item.get(bare) and isinstance(item[bare], int):
                out[bare] += f" (0x{item[bare]:x})"
    return ordered(out)


def mood(text: str) -> str:
    """The kind of text a value is, for colour."""
    if any(text == b or text.endswith(b) for b in BAD):
        return "bad"
    return "good" if text in GOOD else "number"


def compact(name: str, value) -> str:
    """A value of any depth in one line."""
    if isinstance(value, dict):
        parts = (f"{k}={compact(k, v)}" for k, v in merged(value).items())
        return "{" + " ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(compact(name, v) for v in value) + "]"
    return scalar(name, value)


def size(text_bytes: int) -> str:
    """4096 -> 4 KiB."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if text_bytes and not text_bytes & ((1 << shift) - 1):
            return f"{text_bytes >> shift} {unit}"
    return f"{text_bytes} B"


def hexdump(digits: str, indent: str = "", width: int = 16) -> list[Line]:
    """Lines of a string of hexadecimal digits."""
    data = bytes.fromhex(digits)
    lines = []
    for at in range(0, len(data), width):
        row = data[at : at + width]
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        pairs = " ".join(f"{b:02x}" for b in row)
        lines.append([("dim", f"{indent}{at:04x}  "), ("number", f"{pairs:<{3 * width - 1}}"),
                      ("dim", f"  {text}")])
    return lines


def fields(item: dict, indent: int = 0, raw: bool = False) -> list[Line]:
    """An object as lines "name  value", nested ones indented."""
    item = merged(item)
    pad = "  " * indent
    plain = [k for k, v in item.items() if is_plain(v) and (raw or k != "raw")]
    width = max((len(k) for k in plain), default=0)
    lines: list[Line] = []
    for key, value in item.items():
        if key in ("raw", "bytes", "inline") and isinstance(value, str):
            if raw or key != "raw":
                lines.append([("key", f"{pad}{key}")])
                lines += hexdump(value, pad + "  ")
        elif is_plain(value):
            text = scalar(key, value)
            lines.append([("key", f"{pad}{key:<{width}}  "), (mood(text), text)])
        elif isinstance(value, dict):
            lines.append([("title", f"{pad}{key}")])
            lines += fields(value, indent + 1, raw)
        elif not value:
            lines.append([("key", f"{pad}{key:<{width}}  "), ("dim", "none")])
        elif all(isinstance(v, dict) for v in value):
            lines.append([("title", f"{pad}{key}")])
            lines += [[("number", pad + "  "), *line] for line in table(value)]
        else:
            lines.append([("key", f"{pad}{key:<{width}}  "), ("number", compact(key, value))])
    return lines


def nothing(value) -> bool:
    """Is it insignificant: 0, empty, or made only of such parts?"""
    if isinstance(value, dict):
        return all(nothing(v) for v in merged(value).values())
    if isinstance(value, list):
        return all(nothing(v) for v in value)
    return value in (0, None, "", "-", "NONE", "00:00:00:00:00:00")


def columns(rows: list[dict], full: bool = False) -> list[str]:
    """The keys of ROWS in order; those that are insignificant in all rows are omitted
    unless FULL. An index is always significant."""
    found: dict[str, bool] = {}
    for row in rows:
        for key, value in row.items():
            found[key] = found.get(key, False) or key == "index" or not nothing(value)
    keep = [k for k, said in found.items() if full or said]
    return keep or list(found)


def cells(rows: list[dict], full: bool = False,
          keep: bool = False) -> tuple[list[str], list[list[str]]]:
    """(headers, rows of text). With KEEP the columns keep their order."""
    rows = rows if keep else [merged(r) for r in rows]
    rows = [{k: v for k, v in r.items() if k != "raw"} for r in rows]
    heads = columns(rows, full)
    return heads, [[compact(k, r[k]) if k in r else "" for k in heads] for r in rows]


def table(rows: list[dict], width: int = 0, full: bool = False,
          marks: list[str] | None = None, keep: bool = False) -> list[Line]:
    """A table with a header. With WIDTH, columns that do not fit are named below. MARKS
    precede the rows; a row's own "mark" gives its style.
    KEEP as in cells()."""
    if not rows:
        return [[("dim", "none")]]
    heads, text = cells(rows, full, keep)
    wide = [max(len(h), *(len(r[i]) for r in text)) for i, h in enumerate(heads)]
    gutter = max((len(m) for m in marks), default=0) + 1 if marks else 0
    shown, used = 0, gutter
    for w in wide:
        if width and shown and used + w > width:
            break
        used += w + 2
        shown += 1
    lines: list[Line] = [
        [("key", " " * gutter + "  ".join(f"{h:<{w}}" for h, w in
                                         zip(heads[:shown], wide)).rstrip())]
    ]
    numeric = [all(re.fullmatch(r"[0-9]*", r[i]) for r in text) for i in range(len(heads))]
    for n, row in enumerate(text):
        line: Line = [("path", f"{marks[n]:<{gutter}}")] if marks else []
        idle = rows[n].get("mark") in ("free", "consumed")
        for i in range(shown):
            cell = f"{row[i]:>{wide[i]}}" if numeric[i] else f"{row[i]:<{wide[i]}}"
            kind = "dim" if idle else mood(row[i])
            line.append((kind, cell + ("  " if i + 1 < shown else "")))
        lines.append(line)
    if shown < len(heads):
        lines.append([("dim", "· also, in a wider window or with --wide: "
                       + ", ".join(heads[shown:]))])
    return lines


# ------------------------------------------------------------------- events

# The object of an event comes first.
WHOSE = ("doorbell", "opcode", "cqn", "eqn", "number", "object", "queue", "vector", "qpn")


def event_line(event: dict, since: int | None = None) -> Line:
    """An event of the trail in one line; times in microseconds before SINCE."""
    event = dict(event)
    kind, time = event.pop("kind", "?"), event.pop("time", None)
    line: Line = []
    if time is not None:
        if since is None:
            line.append(("dim", f"{time / 1000:.3f} us  "))
        else:
            line.append(("dim", f"{(time - since) / 1000:>12.3f}  "))
    line.append(("name", f"{kind:<11} "))
    event = merged(event)
    for key in sorted(event, key=lambda k: WHOSE.index(k) if k in WHOSE else len(WHOSE)):
        text = compact(key, event[key])
        if key != kind:                 # "doorbell SQ", not "doorbell doorbell SQ"
            line.append(("key", f"{key} "))
        line.append((mood(text), text + "  "))
    return line


def sentence(stop: dict) -> str:
    """Why an adapter stopped, in a line of text."""
    if not stop.get("stopped"):
        return ""
    why = "a step" if stop.get("why") == "step" else f"break {stop.get('id', '?')}"
    event = "".join(t for _, t in event_line(dict(stop.get("event", {}), time=None)))
    return f"{why} on {stop.get('on', '?')}: {' '.join(event.split())}"


def trail_lines(look: dict) -> list[Line]:
    """The events since the adapter last resumed, with times before the last."""
    trail = look.get("trail") or []
    if not trail:
        return [[("dim", "no events since it last resumed")]]
    last = trail[-1].get("time", 0)
    return [event_line(e, last) for e in trail]


# -------------------------------------------------------------------- rings


def ring_marks(look: dict) -> list[str]:
    """For each entry which of the ring's counters point to it: P, N, C."""
    letters = [(k, k[0].upper()) for k in ("consumer", "next", "producer") if k in look]
    marks = []
    for entry in look["entries"]:
        text = "".join(c for k, c in letters if entry.get("index") == look[k])
        marks.append(text + ">" if text else "")
    return marks


def ring_head(look: dict) -> Line:
    """The summary of a whole ring."""
    line: Line = [("title", f"{look['object']} {look['number']} {look['ring']}  ")]
    for key in ("producer", "next", "consumer"):
        if key in look:
            line += [("key", f"{key} "), ("number", f"{look[key]}  ")]
    line += [("dim", f"{look.get('depth')} entries of {look.get('stride')} B")]
    return line


def ring_lines(look: dict, width: int = 0, full: bool = False) -> list[Line]:
    marks = ring_marks(look)
    return [ring_head(look),
            *table(look["entries"], width, full, marks if any(marks) else None)]


# -------------------------------------------------------------------- walks


def buffer_text(buffer: dict) -> str:
    """The form of a buffer table in a few words."""
    buffer = merged(buffer)
    text = str(buffer.get("form", "?"))
    if buffer.get("hops"):
        text += f", {buffer['hops']} hop" + ("s" if buffer["hops"] != 1 else "")
    for name in ("page", "table"):
        if buffer.get(f"{name}_shift"):
            text += f", {name}s of {size(1 << buffer[f'{name}_shift'])}"
    return text + f", {buffer.get('len', '?')} bytes at 0x{buffer.get('addr', 0):x}"


def walk_lines(look: dict, width: int = 0) -> list[Line]:
    """A walk as a tree; the path to the byte is marked. With WIDTH, bytes are in
    rows that fit."""
    if "va" in look:
        where = f"va 0x{look['va']:x}"
    else:
        where = f"{look.get('ring', '')} slot {look.get('slot')}"
    number = look["number"]
    number = f"0x{number:x}" if look["object"] in ("mr", "mw") else number
    lines: list[Line] = [
        [("title", f"{look['object']} {number} {where}"),
         ("path", f"  →  offset 0x{look.get('offset', 0):x}")],
        [("dim", "buffer: " + buffer_text(look.get("buffer", {})))],
    ]
    pad = ""
    for hop in look.get("hops", []):
        lines.append([("path", f"{pad}└─ "), ("name", f"hop {hop['level']}"),
                      ("number", f"  table 0x{hop['table']:x}"),
                      ("dim", f"  {hop.get('used')} entries")])
        pad += "   "
        entries = hop.get("entries") or [dict(hop, marked=True)]
        for entry in entries:
            on = entry.get("marked")
            kind = "path" if on else "dim"
            text = f"{pad}{'▶' if on else '│'} [{entry['index']}]"
            extra = {k: v for k, v in entry.items() if k not in (
                "index", "marked", "at", "entries", "level", "table", "used", "valid", "kind",
                "address", "entry", "length")}
            text += f"  at 0x{entry.get('at', 0):x}"
            if not entry.get("valid", True):
                text += "  not valid"
            if "address" in entry:
                text += f"  → {entry.get('kind', 'segment')} 0x{entry['address']:x}"
            if "length" in entry:
                text += f" + {entry['length']}"
            if extra:
                text += "  " + " ".join(f"{k}={compact(k, v)}" for k, v in extra.items())
            lines.append([(kind, text)])
    for name in ("address", "device_memory"):
        if name in look:
            title = "DMA address" if name == "address" else "device memory"
            lines.append([("path", f"{pad}└─ {title} 0x{look[name]:x}"),
                          ("dim", f"  {look.get('contiguous')} bytes in one piece")])
    if "bytes" in look:
        wide = len(pad) + 74
        lines += hexdump(look["bytes"], pad + "   ", 8 if 0 < width < wide else 16)
    if "error" in look:
        lines.append([("bad", f"{pad}└─ error: {look['error']}")])
    return lines


def tree_lines(look: dict) -> list[Line]:
    """A whole buffer table, tables with their entries below them."""
    number = look["number"]
    number = f"0x{number:x}" if look["object"] in ("mr", "mw") else number
    lines: list[Line] = [[("title", f"{look['object']} {number} {look.get('ring', '')}".rstrip())]]
    if "buffer" in look:
        lines.append([("dim", "buffer: " + buffer_text(look["buffer"]))])
    rest = {k: v for k, v in look.items()
            if is_plain(v) and k not in ("object", "number", "ring", "more")}
    if rest:
        lines.append([("dim", ", ".join(f"{k} {scalar(k, v)}" for k, v in merged(rest).items()))])
    lines += branch(look.get("entries", []), "")
    if look.get("more"):
        lines.append([("dim", "there are more: --from, --count")])
    return lines


def branch(entries: list[dict], pad: str) -> list[Line]:
    """Entries of a table and what is below each."""
    lines: list[Line] = []
    for n, entry in enumerate(entries):
        last = n + 1 == len(entries)
        text = f"[{entry.get('index', '?')}]"
        words = {k: v for k, v in merged(entry).items() if k not in (
            "index", "entries", "kind", "address", "entry", "valid", "error", "at")}
        if "address" in entry:
            text += f" → {entry.get('kind', 'segment')} 0x{entry['address']:x}"
        elif not entry.get("valid", True):
            text += " not valid"
        line: Line = [("dim", pad + ("└─ " if last else "├─ ")), ("number", text)]
        if words:
            line.append(("dim", "  " + " ".join(f"{k} {compact(k, v)}" for k, v in words.items())))
        if "error" in entry:
            line.append(("bad", f"  error: {entry['error']}"))
        lines.append(line)
        lines += branch(entry.get("entries", []), pad + ("   " if last else "│  "))
    return lines


# ----------------------------------------------------------- all the others


def look_lines(look: dict, width: int = 0, full: bool = False, raw: bool = False) -> list[Line]:
    """Lines for any inspection result, by its contents."""
    if "objects" in look and isinstance(look["objects"], list):
        lines = table(look["objects"], width, full)
        if not look["objects"]:
            lines = [[("dim", f"no {look.get('object', 'object')}")]]
        if look.get("more"):
            lines.append([("dim", "there are more")])
        return lines
    if "entries" in look and "ring" in look:
        return ring_lines(look, width, full)
    if "hops" in look and "offset" in look:
        return walk_lines(look)
    return fields(look, 0, raw)


def plain_text(lines: list[Line]) -> str:
    return "\n".join("".join(t for _, t in line).rstrip() for line in lines)

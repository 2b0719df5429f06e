# SPDX-License-Identifier: GPL-2.0-or-later
"""
The subject of a figure: one ring or memory region, from the results of qhca-ring,
qhca-walk and qhca-inspect, and from the guest's driver.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from qhca_lab.errors import LabError

PAGE = 4096  # of the guest's CPU
# Entries per query, and queries per figure.
WINDOW = 1024
LOOKS_MAX = 64

OBJECTS = {
    "qp": ("QP", "sq"), "cq": ("CQ", "cq"), "srq": ("SRQ", "srq"), "eq": ("EQ", "eq"),
    "mr": ("MR", ""), "eth-sq": ("Ethernet queue", "sq"), "eth-rq": ("Ethernet queue", "rq"),
}  # fmt: skip
RINGS = {
    "sq": "send queue", "rq": "receive queue", "cq": "completion queue", "eq": "event queue",
    "srq": "shared receive queue", "index": "index ring", "ops": "tag operations",
    "": "memory region",
}  # fmt: skip

Ask = Callable[..., dict]


class DrawError(LabError):
    """A figure that cannot be drawn, and why."""


@dataclasses.dataclass(frozen=True)
class Run:
    """Bytes of a buffer that are contiguous for the device, too.

    `address` is a DMA address; None: missing (on-demand paging)."""

    offset: int
    address: int | None
    length: int


@dataclasses.dataclass
class Subject:
    """One ring or memory region."""

    object: str
    number: int
    ring: str
    buffer: dict  # struct qhca_buf, decoded
    time: int = 0  # device clock, ns
    guest: str = ""
    va: int | None = None  # of the first byte, where it is known
    stride: int = 0  # 0: not a ring
    depth: int = 0
    driver: dict | None = None  # of parse_driver()

    @property
    def length(self) -> int:
        return self.buffer["len"]

    @property
    def name(self) -> str:
        word = OBJECTS[self.object][0]
        number = f"{self.number:#x}" if self.object == "mr" else str(self.number)
        return f"{word} {number}" + (f", {RINGS[self.ring]}" if self.ring else "")

    @property
    def form(self) -> str:
        return str(self.buffer.get("form_name", "?"))

    @property
    def facts(self) -> str:
        """One line for under a title."""
        parts = []
        if self.stride:
            parts.append(f"{self.depth} entries of {self.stride} bytes")
        parts.append(size(self.length))
        hops = self.buffer.get("hops", 0)
        form = {
            "DIRECT": "no table (DIRECT)", "LIST": "a list of buffers (LIST)",
            "FLAT": "one table of equal pages (FLAT)",
            "TREE": f"{hops} level{'s' if hops != 1 else ''} of tables (TREE)",
        }.get(self.form, self.form)  # fmt: skip
        parts.append(form)
        return " · ".join(parts)

    @property
    def source(self) -> str:
        """Where and when, for the foot of a figure."""
        where = f"guest {self.guest}, " if self.guest else ""
        return f"Drawn from a running adapter: {where}device clock {self.time / 1e9:.6f} s."


def size(count: int) -> str:
    """Bytes in human-readable form, exact."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift and not count & ((1 << shift) - 1):
            return f"{count >> shift} {unit}"
    return f"{count} byte{'s' if count != 1 else ''}"


def about(count: int) -> str:
    """Bytes in human-readable form, rounded."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.3g} {unit}"
    return f"{count} bytes"


def parse_driver(text: str) -> dict[str, dict]:
    """The sections of a file of /sys/kernel/debug/qhca/*/{qps,cqs,srqs,mrs}.

    {"sq": {"va": ..., "sg": [(address, length), ...], ...}, ...}; numbers are
    integers, unknown lines are omitted.
    """
    sections: dict[str, dict] = {}
    now: dict | None = None
    for line in text.splitlines():
        head = re.fullmatch(r"(\w[\w ]{0,31}):", line)
        if head:
            now = sections[head.group(1)] = {"sg": []}
            continue
        field = re.fullmatch(r"\s+(\w{1,32}): (.{1,200})", line)
        if not field or now is None:
            continue
        key, value = field.groups()
        segment = re.fullmatch(r"(0x[0-9a-f]{1,16}|0) \+ (0x[0-9a-f]{1,16})", value)
        if key == "sg" and segment:
            now["sg"].append((int(segment.group(1), 0), int(segment.group(2), 0)))
        elif key == "sg":
            now["sg_cut"] = True
        elif re.fullmatch(r"0x[0-9a-f]{1,16}|\d{1,20}", value):
            now[key] = int(value, 0)
        else:
            now[key] = value
    return sections


def driver_section(texts: list[str], subject: Subject) -> dict | None:
    """The driver's data of SUBJECT in one of TEXTS; it must include its table."""
    wanted = subject.ring or f"mr {subject.number:#x}"
    for text in texts:
        section = parse_driver(text).get(wanted)
        if section and section.get("addr") == subject.buffer["addr"]:
            return section
    return None


def find(ask: Ask, object: str, number: int, ring: str = "") -> Subject:
    """The subject by its name; LabError explains why it does not exist.

    ASK(command, **arguments) runs a QMP command and returns its result."""
    if object not in OBJECTS:
        raise DrawError(f"nothing to draw of {object!r}: use one of {', '.join(OBJECTS)}")
    ring = ring or OBJECTS[object][1]
    arguments = {"object": object, "number": number}
    if ring:
        arguments["ring"] = ring
    try:
        answer = ask("qhca-walk", **arguments, offset=0, entries=0, bytes=0)
    except LabError as error:
        if "no such object" not in str(error):
            raise
        name = f"{number:#x}" if object == "mr" else number
        raise DrawError(
            f"there is no {OBJECTS[object][0]} {name}: `scope {object}` lists all") from error
    look = answer["look"]
    found = Subject(object, number, ring, look["buffer"], time=answer.get("time", 0))
    if object == "mr":
        found.va = look["va"]
    else:
        entries = ask("qhca-ring", **arguments, index=0, count=1)["look"]
        found.stride, found.depth = entries["stride"], entries["depth"]
    return found


def walk(ask: Ask, subject: Subject, **where) -> dict:
    """The device's walk to one entry or byte of SUBJECT."""
    arguments = {"object": subject.object, "number": subject.number, **where}
    if subject.ring:
        arguments["ring"] = subject.ring
    return ask("qhca-walk", **arguments)["look"]


def _leaves(look: dict, at: int) -> list[Run]:
    """The leaves from offset AT on that a single walk to AT has shown."""
    buffer, hops = look["buffer"], look["hops"]
    if not hops:
        return [Run(at, look.get("address"), buffer["len"] - at)]
    leaf = hops[-1]
    if buffer["form_name"] != "LIST":
        step = 1 << buffer["page_shift"]
        start = at + buffer["first"] & ~(step - 1)
        entries = [e for e in leaf.get("entries", ()) if e["index"] >= leaf["index"]]
        runs = []
        for entry in entries:
            begin = max(start - buffer["first"], at)
            skip = begin + buffer["first"] - start
            good = entry.get("valid") and entry.get("kind") == "page"
            address = entry["address"] + skip if good else None
            end = min(start - buffer["first"] + step, buffer["len"])
            if end > begin:
                runs.append(Run(begin, address, end - begin))
            start += step
        return runs
    runs = []
    for entry in leaf.get("entries", ()):
        if entry["index"] >= leaf["index"] and entry["length"]:
            end = min(at + entry["length"], buffer["len"])
            if end > at:
                runs.append(Run(at, entry["address"] if entry.get("valid") else None, end - at))
            at = end
    return runs


def merged(runs: list[Run]) -> list[Run]:
    """RUNS, merged where the device's addresses are contiguous."""
    out: list[Run] = []
    for run in runs:
        last = out[-1] if out else None
        if last and last.offset + last.length == run.offset and (
            run.address is None and last.address is None
            or None not in (run.address, last.address)
            and last.address + last.length == run.address
        ):
            out[-1] = Run(last.offset, last.address, last.length + run.length)
        else:
            out.append(run)
    return out


def memory(ask: Ask, subject: Subject) -> list[Run]:
    """Where the device finds SUBJECT's bytes: contiguous runs in order.

    From the buffer table, by at most LOOKS_MAX queries; incomplete if that was not
    enough. A broken entry ends the list; an invalid one (on-demand paging) is a hole.
    """
    runs: list[Run] = []
    at = 0
    for _ in range(LOOKS_MAX):
        if at >= subject.length:
            break
        look = walk(ask, subject, offset=at, entries=WINDOW, bytes=0)
        fresh = _leaves(look, at)
        if not fresh and look.get("error"):
            # a whole table is missing: continue after what it would cover
            buffer = subject.buffer
            if buffer["form_name"] != "TREE":
                break
            missing = buffer["hops"] - len(look["hops"])
            covers = 1 << buffer["page_shift"] + missing * (buffer["table_shift"] - 3)
            end = (at + buffer["first"] & ~(covers - 1)) + covers - buffer["first"]
            fresh = [Run(at, None, min(end, subject.length) - at)]
        if not fresh:
            break
        runs += fresh
        at = runs[-1].offset + runs[-1].length
    return merged(runs)


def address_at(runs: list[Run], offset: int) -> int | None:
    """The DMA address of a byte; None if it is missing or unknown."""
    for run in runs:
        if run.offset <= offset < run.offset + run.length:
            return None if run.address is None else run.address + offset - run.offset
    return None

# SPDX-License-Identifier: GPL-2.0-or-later
"""The scatter list that the kernel keeps for a pinned buffer."""

from __future__ import annotations

import math

from qhca_lab.svg import HUES, Svg, elide

from . import frame
from .model import PAGE, Run, Subject, size

ROW = 30.0
SHOWN = 9


def _segments(subject: Subject, runs: list[Run]) -> tuple[list[tuple[int, int]], int]:
    """([(DMA address, length)], total number): the driver's, otherwise computed."""
    if subject.driver and subject.driver["sg"]:
        sg = subject.driver["sg"]
        return sg, int(subject.driver.get("sg_entries", len(sg)))
    sg = [(r.address, r.length) for r in runs if r.address is not None]
    return sg, len(sg)


def draw(subject: Subject, runs: list[Run], width: float = frame.WIDTH) -> str:
    """The figure. RUNS are of subject.memory()."""
    sg, count = _segments(subject, runs)
    told = bool(subject.driver and subject.driver["sg"])
    desc = f"A scatter list of {count} entries describes {size(subject.length)} of memory."
    svg = frame.begin("Scatter list", subject, desc, width)
    col = (width - 2 * frame.EDGE - 110) / 3
    x0, x1, x2 = frame.EDGE, frame.EDGE + col + 55, frame.EDGE + 2 * (col + 55)
    for x, head, sub in (
        (x0, "struct ib_umem", "one per buffer"),
        (x1, "struct scatterlist", "one entry per contiguous piece"),
        (x2, "pinned memory", "pages that touch are one piece"),
    ):
        svg.text(x, 100, head, "b t-ink m", room=col)
        svg.text(x, 118, sub, "t-soft z11", room=col, size=11)
    top = 134.0
    _umem(svg, subject, count, x0, col * 0.92, top, told)
    items = elide(count, [], SHOWN, edge=2)
    items = [i if isinstance(i, int) and i < len(sg) else i for i in items]
    # Heights first: they grow with the number of pages, up to a limit.
    y = top
    for item in items:
        if isinstance(item, range):
            svg.text(x1 + col / 2, y + 18, frame.more(len(item), "entry", "entries"),
                     "t-soft", "middle", room=col)
            svg.text(x2 + col / 2, y + 18, "⋮", "t-soft", "middle")
            y += ROW
            continue
        if item >= len(sg):
            svg.text(x1 + col / 2, y + 18, "not shown by the driver", "t-soft", "middle", room=col)
            y += ROW
            continue
        address, length = sg[item]
        y = _entry(svg, item, address, length, x1, x2, col, y) + 10
    svg.link(x0 + col * 0.92, top + 15, x1, top + 15)
    total = sum(n for _, n in sg)
    return frame.end(
        svg, subject,
        f"ib_umem_get() pins {-(-total // PAGE)} pages of {PAGE} bytes and merges neighbours: "
        f"{count} entr{'y' if count == 1 else 'ies'}. The list is for the CPU; the adapter never "
        "reads it, so its address does not matter. The driver builds a buffer table from it "
        "(figure “table”).",
        "Read from the guest's driver (debugfs)." if told else
        "The guest's driver could not be asked: these entries are computed from the buffer table, "
        "by merging adjacent pages. The kernel may have split very long entries.",
    )  # fmt: skip


def _umem(svg: Svg, subject: Subject, count: int, x: float, w: float, y: float, told: bool) -> None:
    driver = subject.driver or {}
    va = driver.get("va", subject.va)
    fields = [
        ("address", "not known here" if va is None else f"{va:#x}"),
        ("length", f"{int(driver.get('length', subject.length)):#x}"),
        ("access", f"{driver['access']:#x}" if isinstance(driver.get("access"), int) else "…"),
        ("entries", f"{count}" if told else f"{count} (computed)"),
    ]
    svg.rect(x, y, w, ROW + 24 * len(fields), "f-panel s-line")
    svg.rect(x, y, w, ROW, "f-bluefill s-blue")
    svg.text(x + 10, y + 20, "sgt_append.sgt", "m t-blue", room=w - 20)
    for i, (key, value) in enumerate(fields):
        at = y + ROW + 17 + 24 * i
        svg.text(x + 10, at, key, "t-soft")
        svg.text(x + w - 10, at, value, "m t-ink z11", "end", room=w - 80, size=11)


def _entry(svg: Svg, index: int, address: int, length: int, x1: float, x2: float,
           col: float, y: float) -> float:
    """One entry and its memory; returns where the lower of both ends."""
    hue = HUES[index % len(HUES)]
    pages = max(1, -(-length // PAGE))
    high = ROW + 14 * min(8.0, math.log2(pages)) if pages > 1 else ROW
    with svg.group(f"entry {index}: {address:#x} + {length:#x}, {pages} pages"):
        svg.rect(x1, y, col, ROW, f"f-{hue}fill s-{hue}")
        svg.text(x1 + 8, y + 19, f"[{index}]", "t-soft z11")
        svg.text(x1 + 44, y + 19, f"{address:#x}", "m t-ink z11", room=col * 0.55, size=11)
        svg.text(x1 + col - 8, y + 19, f"+{length:#x}", "m t-ink z11", "end")
        svg.link(x1 + col, y + ROW / 2, x2, y + ROW / 2, hue)
        svg.rect(x2, y, col, high, f"f-{hue}fill s-{hue}")
        parts = min(pages, 1 << 5)
        for i in range(1, parts):
            at = y + high * i / parts
            svg.line(x2, at, x2 + 9, at, f"s-{hue}")
            svg.line(x2 + col - 9, at, x2 + col, at, f"s-{hue}")
        words = "1 page" if pages == 1 else f"{pages} pages merged"
        svg.text(x2 + col / 2, y + high / 2 + 4, f"{words} · {size(length)}", "t-ink", "middle",
                 room=col - 24)
    return y + high

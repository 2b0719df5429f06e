# SPDX-License-Identifier: GPL-2.0-or-later
"""The two views of a buffer: contiguous for the CPU, scattered pages for the device."""

from __future__ import annotations

import bisect
import dataclasses

from qhca_lab.svg import HUES, Svg, elide

from . import frame
from .model import PAGE, Run, Subject, about

ROW = 26.0
GAP = 30.0
SHOWN = 14


@dataclasses.dataclass
class Page:
    number: int
    address: int | None  # DMA address
    run: int  # its contiguous run; -1: none
    known: bool
    y: float = 0.0  # of its middle on the left
    y_dma: float = 0.0  # and on the right
    mark: float | None = None  # where in it something is pointed at, 0..1


def _pages(subject: Subject, runs: list[Run], marked: int | None) -> tuple[list, int]:
    """([Page or range that is left out], number of pages)"""
    lead = (subject.va if subject.va is not None else subject.buffer["first"]) % PAGE
    count = (subject.length + lead + PAGE - 1) // PAGE
    starts = [r.offset for r in runs]
    reach = runs[-1].offset + runs[-1].length if runs else 0

    def page(n: int) -> Page:
        offset = max(n * PAGE - lead, 0)
        at = bisect.bisect_right(starts, offset) - 1
        if at < 0 or offset >= reach:
            return Page(n, None, -1, False)
        run = runs[at]
        if run.address is None:
            return Page(n, None, -1, True)
        return Page(n, (run.address + offset - run.offset) & ~(PAGE - 1), at, True)

    # The first pages are the most instructive, and scattered ones: show more of those.
    keep = [] if marked is None else [(marked + lead) // PAGE]
    if not keep:
        keep = [i for i in (0,) if count]
    shown = elide(count, keep, SHOWN, edge=3)
    return [page(i) if isinstance(i, int) else i for i in shown], count


def draw(subject: Subject, runs: list[Run], marked: int | None = None,
           mark_name: str = "", width: float = frame.WIDTH) -> str:
    """The figure. RUNS are of subject.memory(); MARKED is an offset to point at."""
    items, count = _pages(subject, runs, marked)
    pages = [p for p in items if isinstance(p, Page)]
    pieces = len([r for r in runs if r.address is not None])
    whole = runs and runs[-1].offset + runs[-1].length >= subject.length
    desc = (
        f"{count} pages of {PAGE} bytes that follow one another in virtual memory lie in "
        f"{'' if whole else 'at least '}{pieces} contiguous pieces for the adapter."
    )
    svg = frame.begin("Two views of one buffer", subject, desc, width)
    box = min(210.0, (width - 2 * frame.EDGE - 250) * 0.28)
    left = frame.EDGE + 126
    right = width - frame.EDGE - 126 - box
    top = 146.0
    for x, head, sub in (
        (left, "What the application sees", "virtual addresses, page after page"),
        (right, "What the adapter sees", "DMA addresses, in their order"),
    ):
        svg.text(x + box / 2, 100, head, "b t-ink", "middle", room=box + 120)
        svg.text(x + box / 2, 118, sub, "t-soft z11", "middle", room=box + 120, size=11)
    middle = (left + box + right) / 2
    svg.text(middle, 100, "pinned", "t-soft z11", "middle")
    svg.text(middle, 116, "ib_umem_get()", "m t-soft z11", "middle")

    bottom = _virtual(svg, subject, items, left, box, top, marked, mark_name)
    _physical(svg, pages, right, box, top, bottom, mark_name)
    for page in pages:
        _joint(svg, page, left + box, right)
    return frame.end(
        svg, subject,
        f"{count} page{'s' if count != 1 else ''} of {PAGE} bytes, contiguous for the CPU, "
        f"in {'' if whole else 'at least '}{pieces} piece{'s' if pieces != 1 else ''} for the "
        "adapter: pages whose DMA addresses follow one another have one colour. Without an IOMMU "
        "a DMA address is a physical one, behind an IOMMU an IOVA.",
        "" if subject.va is not None else
        "The adapter does not know virtual addresses of rings, only the guest's driver does, "
        "which could not be asked: offsets are shown instead.",
        "" if whole else "The table was too large, or broken, to be read to its end.",
    )  # fmt: skip


def _hue(page: Page) -> str:
    return HUES[page.run % len(HUES)] if page.run >= 0 else "line"


def _virtual(svg: Svg, subject: Subject, items: list, x: float, w: float, y: float,
             marked: int | None, mark_name: str) -> float:
    """The left column, from Y on; returns where it ends."""
    lead = (subject.va or 0) % PAGE
    for item in items:
        if isinstance(item, range):
            svg.rect(x, y, w, GAP, "f-panel s-line d", rx=0)
            svg.text(x + w / 2, y + GAP / 2 + 4, frame.more(len(item), "page"),
                     "t-soft", "middle", room=w)
            y += GAP
            continue
        page = item
        base = page.number * PAGE - lead
        tip = f"page {page.number}, offset {max(base, 0):#x}"
        with svg.group(tip):
            hue = _hue(page)
            svg.rect(x, y, w, ROW, f"f-{hue}fill s-{hue}" if page.run >= 0 else "f-panel s-line",
                     rx=0)
            svg.text(x + 10, y + ROW / 2 + 4, f"page {page.number}", "t-ink")
            at = f"+{max(base, 0):#x}" if subject.va is None else f"{subject.va + base:#x}"
            svg.text(x - 10, y + ROW / 2 + 4, at, "m t-soft z11", "end")
        if marked is not None and 0 <= marked - base < PAGE:
            page.mark = (marked - base) / PAGE
            _mark(svg, x, w, y, page.mark, mark_name)
        page.y = y + ROW / 2
        y += ROW
    return y


def _mark(svg: Svg, x: float, w: float, y: float, spot: float, name: str) -> None:
    """Point at a place in the page whose box begins at X, Y."""
    at = y + ROW * min(max(spot, 0.06), 0.94)
    svg.line(x + w - 9, at, x + w, at, "s-ink w2")
    svg.head(x + w - 8, at, 1, 0, "ink", 7)
    svg.text(x + w - 20, y + ROW / 2 + 4, name, "t-ink z11 b", "end", room=w - 90, size=10.5)


def _physical(svg: Svg, pages: list[Page], x: float, w: float, top: float, bottom: float,
              mark_name: str) -> None:
    """The right column: pages by DMA address, with the holes between."""
    there = sorted((p for p in pages if p.address is not None), key=lambda p: p.address)
    holes = sum(b.address != a.address + PAGE for a, b in zip(there, there[1:], strict=False))
    need = len(there) * ROW + holes * GAP
    y = top + max(0.0, (bottom - top - need) / 2)
    before: Page | None = None
    for page in there:
        if before and page.address != before.address + PAGE:
            away = page.address - before.address - PAGE
            same = page.run == before.run and away > 0
            text = f"{away // PAGE} more of this piece" if same else f"{about(away)} apart"
            svg.text(x + w / 2, y + GAP / 2 + 4, text, "t-soft z10", "middle", room=w, size=10)
            for side in (x, x + w):
                svg.line(side, y + 3, side, y + GAP - 3, "s-line d")
            y += GAP
        hue = _hue(page)
        with svg.group(f"page {page.number} at DMA address {page.address:#x}"):
            svg.rect(x, y, w, ROW, f"f-{hue}fill s-{hue}", rx=0)
            svg.text(x + 10, y + ROW / 2 + 4, f"page {page.number}", "t-ink")
            svg.text(x + w + 10, y + ROW / 2 + 4, f"{page.address:#x}", "m t-soft z11")
        page.y_dma = y + ROW / 2
        if page.mark is not None:
            _mark(svg, x, w, y, page.mark, mark_name)
        y += ROW
        before = page


def _joint(svg: Svg, page: Page, x1: float, x2: float) -> None:
    """The curve from a page's left to its right place."""
    if page.address is None:
        text = "not there: page fault" if page.known else "not read"
        svg.text(x1 + 10, page.y + 4, text, "t-soft z10")
        return
    svg.link(x1, page.y, x2, page.y_dma, _hue(page))

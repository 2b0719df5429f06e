# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of zero copy, from adapters that are stopped in the middle of a transfer:
a received frame in its buffers, and the path of a sent page.

The stopped adapter is inspected first (Split, Way), then the figure is drawn."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time

from qhca_lab import LabError, pair
from qhca_lab.selftests.two_ends import PAGE_MTU
from qhca_lab.svg import Svg, elide
from qhca_scope import ethernet
from qhca_scope.machine import AT_BREAK, RUNNING

PROGRAM = "/qhca/build/guest-progs/zerocopy"
PAGE = 4096
PAGES = 16
# Maximum number of stops before the right one; other frames come first.
STOPS = 200
WIDTH, EDGE, ROW = 960.0, 28.0, 30.0
# A figure shows at most this many buffers.
SHOWN = 7
HEADER, PAYLOAD = "orange", "blue"


# --------------------------------------------------------------------- looking


@dataclasses.dataclass
class Split:
    """A split frame as `scope eth QUEUE` shows it, and the buffers around it."""

    guest: str
    queue: int
    cqn: int
    frame: dict
    ring: list[dict]
    data: list[dict]


@dataclasses.dataclass
class Way:
    """A send WQE with pages of a sender: its segments as (address, length), and the
    page of the sender's buffer at each address."""

    guest: str
    queue: int
    index: int
    wqe: dict
    pages: dict[int, int]

    @property
    def segments(self) -> list[tuple[int, int]]:
        return [(s["addr"], s["len"]) for s in self.wqe["segs"]]


@contextlib.contextmanager
def stopping(machine, condition: dict):
    """Break on CONDITION while the block runs; yields a function that waits for the next
    stop and returns its event. The guest resumes at the next call and at the end."""
    machine.add_break(condition)

    def wait() -> dict:
        if machine.command("query-status")["status"] != RUNNING:
            machine.command("cont")
        event = machine.qmp.wait_event("QHCA_STOP", 60)["data"]["stop"]["look"]["event"]
        deadline = time.monotonic() + 20
        while machine.command("query-status")["status"] != AT_BREAK:
            if time.monotonic() > deadline:
                raise LabError("the guest did not stop")
            time.sleep(0.02)
        return event

    try:
        yield wait
    finally:
        machine.command("qhca-break-remove")
        if machine.command("query-status")["status"] != RUNNING:
            machine.command("cont")


def posted(machine, queue: int, ring: str, index: int) -> list[dict]:
    """The buffer at INDEX and the next two, which wait for frames."""
    look = machine.look("qhca-ring", object="eth-rq", number=queue, ring=ring, index=index,
                        count=3)["look"]
    return [{"index": index + at, "addr": wqe["addr"], "len": wqe["len"]}
            for at, wqe in enumerate(look["entries"])]


def look_at_split(lab, machine) -> Split:
    """b sends pages to a, which splits frames; a stops when a split frame is complete."""
    a, b = lab["a"], lab["b"]
    for guest in (a, b):
        guest.run(f"ip link set $NETDEV mtu {PAGE_MTU[4]}")
    a.run("ethtool -G $NETDEV tcp-data-split on")
    server = pair.start_server(a, f"{PROGRAM} {PAGES}")
    try:
        queues = {}
        for number in machine.numbers("eth-rq"):
            queues[machine.inspect("eth-rq", number)["context"]["cqn"]] = number
        with stopping(machine, {"on": "cqe"}) as wait:
            client = b.start(f"{PROGRAM} {PAGES} {a.ip}")
            for _ in range(STOPS):
                cqn = wait()["cqn"]
                found = ethernet.frames(machine, queues[cqn], 1) if cqn in queues else []
                if found and found[0]["header_len"] and found[0]["data"]:
                    look = found[0]
                    return Split(a.name, queues[cqn], cqn, look,
                                 posted(machine, queues[cqn], "rq", look["ring"][0]["index"]),
                                 posted(machine, queues[cqn], "data", look["data"][-1]["index"]))
        raise LabError("no split frame came")
    finally:
        client.wait(120)
        server.wait(120)
        a.run("ethtool -G $NETDEV tcp-data-split off")


def look_at_way(lab, machine) -> Way:
    """a sends pages to b; a stops at the doorbell of a WQE with such pages."""
    a, b = lab["a"], lab["b"]
    server = pair.start_server(b, f"{PROGRAM} {PAGES}")
    found = None
    with stopping(machine, {"on": "doorbell", "code": 0x18}) as wait:
        client = a.start(f"{PROGRAM} {PAGES} {b.ip}")
        for _ in range(STOPS):
            event = wait()
            index = event["index"] - 1
            wqe = machine.look("qhca-ring", object="eth-sq", number=event["number"], ring="sq",
                               index=index, count=1)["look"]["entries"][0]
            if sum(s["len"] for s in wqe["segs"]) > PAGE and len(wqe["segs"]) > 2:
                found = event["number"], index, wqe
                break
    sent = json.loads(client.wait(120, check=True).out)
    server.wait(120, check=True)
    if not found or sent["copied"]:
        raise LabError("no WQE with pages of the sender was seen")
    return Way(a.name, *found, {pfn * PAGE: i for i, pfn in enumerate(sent["pfns"])})


# --------------------------------------------------------------------- drawing


def begin(title: str, facts: str, desc: str) -> Svg:
    svg = Svg(WIDTH, title, desc)
    svg.text(EDGE, 38, title, "h1 t-ink", room=WIDTH - 2 * EDGE, size=17)
    svg.text(EDGE, 59, facts, "t-soft", room=WIDTH - 2 * EDGE)
    svg.line(EDGE, 72, WIDTH - EDGE, 72, "s-faint")
    return svg


def end(svg: Svg, text: str, source: str) -> str:
    y = svg.bottom + 34
    svg.line(EDGE, y - 20, WIDTH - EDGE, y - 20, "s-faint")
    y = svg.paragraph(EDGE, y, text, WIDTH - 2 * EDGE) + 3
    svg.text(EDGE, y + 2, source, "t-soft z11")
    return svg.finish()


def buffer(svg: Svg, x: float, y: float, w: float, piece: dict, hue: str) -> None:
    """A buffer of a ring: its slot, its address, and how far the frame fills it."""
    used = piece.get("bytes", 0)
    svg.rect(x, y, w, ROW - 6, "f-panel s-line")
    if used:
        svg.rect(x, y, max(6.0, w * used / piece["len"]), ROW - 6, f"f-{hue}fill s-{hue}")
    svg.text(x + 16, y + 16, str(piece["index"]), "t-soft z11")
    svg.text(x + 66, y + 16, f"{piece['addr']:#x}", "m t-ink z11")
    words = f"{used} of {piece['len']} B" if used else f"{piece['len']} B, waits"
    svg.text(x + w - 8, y + 16, words, "t-ink z11" if used else "t-soft z11", "end")


def column(svg: Svg, x: float, y: float, w: float, pieces: list[dict], after: list[dict],
           hue: str) -> list[float]:
    """The buffers PIECES that hold a frame, then those AFTER; returns the places of PIECES."""
    middles = []
    for item in elide(len(pieces), 0, SHOWN):
        if isinstance(item, range):
            svg.text(x + w / 2, y + 16, f"… {len(item)} more buffers", "t-soft", "middle")
        else:
            buffer(svg, x, y, w, pieces[item], hue)
            middles.append(y + (ROW - 6) / 2)
        y += ROW
    used = {p["index"] for p in pieces}
    for piece in after:
        if piece["index"] not in used:
            buffer(svg, x, y, w, piece, hue)
            y += ROW
    return middles


def draw_split(look: Split) -> str:
    """The frame above, the buffers of both rings below."""
    frame = look.frame
    head, length = frame["header_len"], frame["bytes"]
    svg = begin(f"A split frame: completion {frame['completion']}",
                f"receive queue {look.queue} of guest {look.guest}; {length} B, headers {head} B",
                f"A frame of {length} bytes: {head} bytes of headers lie in one ring's buffers, "
                f"{length - head} bytes of payload in another's.")
    top, whole, w = 108.0, WIDTH - 2 * EDGE, 200.0
    svg.text(EDGE, top - 8, "the frame as it comes from the wire", "b t-ink")
    svg.rect(EDGE, top, w, 34, f"f-{HEADER}fill s-{HEADER}")
    svg.text(EDGE + w / 2, top + 21, f"headers · {head} B", "t-ink", "middle")
    svg.rect(EDGE + w, top, whole - w, 34, f"f-{PAYLOAD}fill s-{PAYLOAD}")
    svg.text(EDGE + w + (whole - w) / 2, top + 21, f"payload · {length - head} B", "t-ink",
             "middle")
    y, col = top + 112, (whole - 40) / 2
    places = ((EDGE, "ring: buffers for headers", frame["ring"], look.ring, HEADER,
               EDGE + w / 2),
              (EDGE + col + 40, "data ring: pages", frame["data"], look.data, PAYLOAD,
               EDGE + w + (whole - w) / 2))
    for x, title, pieces, after, hue, start in places:
        svg.text(x, y - 12, title, "b t-ink")
        middles = column(svg, x, y, col, pieces, after, hue)
        svg.path(f"M{start:.1f} {top + 34:.1f}V{top + 62:.1f}H{x + col / 2:.1f}V{y - 5:.1f}",
                 f"n s-{hue}")
        svg.head(x + col / 2, y, 0, 1, hue)
        assert middles, title
    return end(
        svg,
        "Both rings go on by the buffers that the frame has used. The payload begins at the start "
        "of a buffer of its own, whatever the length of the headers is, so a page of the data ring "
        "holds payload and nothing else: it can be mapped into an application, or be memory that "
        "the kernel cannot read.",
        f"Guest {look.guest}, stopped when the adapter had written the completion to CQ {look.cqn}.")


def draw_way(look: Way) -> str:
    """The sender's pages, the WQE's segments, the frames, from left to right."""
    segments = look.segments
    total = sum(n for _, n in segments)
    mss, head = look.wqe["mss"], look.wqe["hdr_len"]
    large = bool(mss)
    count = -(-(total - head) // mss) if large else 1
    svg = begin(f"The path of a page: WQE {look.index}",
                f"send queue {look.queue} of guest {look.guest}; {len(segments)} segments, "
                f"{total} B, {count} frame{'s' * (count > 1)}",
                f"{len(segments) - 1} segments of a send WQE are pages of the application's buffer.")
    col = (WIDTH - 2 * EDGE - 2 * 60) / 3
    x0, x1, x2 = (EDGE + i * (col + 60) for i in range(3))
    for x, title, sub in (
        (x0, "the application's buffer", "send(…, MSG_ZEROCOPY): pinned pages"),
        (x1, "segments of the send WQE", "DMA address and length"),
        (x2, "the wire", f"{mss} B of payload in each frame" if large else "one frame"),
    ):
        svg.text(x, 100, title, "b t-ink", room=col)
        svg.text(x, 117, sub, "t-soft z11", room=col, size=11)
    top = y = 132.0
    for item in elide(len(segments), [0, 1], 9):
        if isinstance(item, range):
            svg.text(x1 + col / 2, y + 16, f"… {len(item)} more segments", "t-soft", "middle")
            y += ROW
            continue
        address, length = segments[item]
        page = look.pages.get(address & -PAGE)
        hue = HEADER if page is None else PAYLOAD
        middle = y + (ROW - 6) / 2
        svg.rect(x1, y, col, ROW - 6, f"f-{hue}fill s-{hue}")
        svg.text(x1 + 8, y + 16, f"{address:#x}", "m t-ink z11")
        svg.text(x1 + col - 8, y + 16, f"{length} B", "t-ink z11", "end")
        if page is None:
            svg.text(x0 + col, y + 16, "headers, of the kernel", "t-soft", "end")
        else:
            last = look.pages.get((address + length - 1) & -PAGE, page)
            name = f"page {page}" if page == last else f"pages {page} to {last}"
            svg.rect(x0, y, col, ROW - 6, f"f-{hue}fill s-{hue}")
            svg.text(x0 + 8, y + 16, name, "t-ink z11")
            svg.text(x0 + col - 8, y + 16, f"frame number {address // PAGE:#x}", "m t-soft z11",
                     "end")
            svg.link(x0 + col, middle, x1, middle, hue)
        y += ROW
    svg.link(x1 + col, (top + y) / 2, x2, top + min(count, 8) * ROW / 2)
    at = top
    for item in elide(count, 0, 8):
        if isinstance(item, range):
            svg.text(x2 + col / 2, at + 16, f"… {len(item)} more frames", "t-soft", "middle")
        else:
            payload = min(mss, total - head - item * mss) if large else total
            svg.rect(x2, at, 60, ROW - 6, f"f-{HEADER}fill s-{HEADER}")
            svg.text(x2 + 30, at + 16, f"{head} B" if large else "headers", "t-ink z11", "middle")
            svg.rect(x2 + 60, at, (col - 60) * (payload / mss if large else 1), ROW - 6,
                     f"f-{PAYLOAD}fill s-{PAYLOAD}")
            svg.text(x2 + 68, at + 16, f"{payload} B", "t-ink z11")
        at += ROW
    return end(
        svg,
        "No CPU reads the data: the kernel pins the application's pages, the driver maps them for "
        "DMA and writes their addresses into the WQE, and the adapter reads the bytes from there "
        "into the frames, and sums them while it does. It writes the headers before each frame. On "
        "a wire of qhcas alone all of it may pass as one super-frame.",
        f"Guest {look.guest}, stopped at the doorbell of this WQE; the page frames are those that "
        "the application told afterwards.")

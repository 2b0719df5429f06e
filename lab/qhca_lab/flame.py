# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of perf: counted stacks, and a flame graph of them as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .svg import Svg, clip

# Frames from the root, which is the thread's name, to the leaf: samples.
Stacks = dict[tuple[str, ...], int]

KERNEL = "_[k]"
# TCG's translations of the guest's instructions: code in no file.
GUEST_CODE = "[guest code]"
# The first thread of a process, whatever its name.
MAIN = "main loop"

# Of `perf script -F comm,pid,tid,ip,sym,dso`: the start of a sample, and one of its frames.
_SAMPLE = re.compile(r"^(?P<comm>\S.*?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s*$")
_FRAME = re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<name>.+) \((?P<file>.*)\)$")

WIDTH, MARGIN, ROW = 1200.0, 12.0, 17.0
# Narrower frames would be invisible.
LEAST = 0.3


def frame_name(name: str, file: str) -> str:
    """The name of a frame in stacks."""
    if file.startswith("[kernel") or file.endswith((".ko", ".ko.xz")):
        return name + KERNEL
    if name != "[unknown]":
        return name
    # perf looks for such code in a file that the program may have written.
    if not file.startswith("/") or re.fullmatch(r"/tmp/perf-\d+\.map", file):
        return GUEST_CODE
    return f"[{file.rpartition('/')[2]}]"


def fold(lines: Iterable[str]) -> dict[int, Stacks]:
    """The samples of each process in the output of perf script."""
    found: dict[int, Stacks] = {}
    stack: list[str] = []
    sample = None

    def end() -> None:
        if sample:
            stacks = found.setdefault(int(sample["pid"]), {})
            thread = MAIN if sample["pid"] == sample["tid"] else sample["comm"]
            whole = (thread, *reversed(stack))
            stacks[whole] = stacks.get(whole, 0) + 1

    for line in lines:
        begins = _SAMPLE.match(line)
        if begins:
            end()
            sample, stack = begins, []
            continue
        frame = _FRAME.match(line)
        if frame:
            name = frame_name(frame["name"].partition("+0x")[0], frame["file"])
            # For code in no file, the unwinder finds many addresses in a row.
            if not (name == GUEST_CODE and stack and stack[-1] == GUEST_CODE):
                stack.append(name)
    end()
    return found


def hue(name: str) -> str:
    """The colour of a frame: whose code it is."""
    if name.endswith(KERNEL):
        return "orangefill"
    if name == GUEST_CODE:
        return "greenfill"
    return "bluefill" if name.startswith("qhca_") else "panel"


class _Node:
    def __init__(self):
        self.samples = 0
        self.below: dict[str, _Node] = {}


def _tree(stacks: Stacks) -> _Node:
    root = _Node()
    for frames, count in stacks.items():
        node = root
        node.samples += count
        for name in frames:
            node = node.below.setdefault(name, _Node())
            node.samples += count
    return root


def draw(stacks: Stacks, title: str, subtitle: str) -> str:
    """A flame graph: the width of a frame is its share of the samples, its callers are
    below it. Hovering shows a frame's whole name and its share."""
    root = _tree(stacks)
    scale = (WIDTH - 2 * MARGIN) / max(root.samples, 1)

    def depth(node: _Node) -> int:
        return max((1 + depth(n) for n in node.below.values() if n.samples * scale >= LEAST),
                   default=0)

    svg = Svg(WIDTH, title, subtitle)
    svg.text(MARGIN, 30, title, "t-ink h1")
    svg.text(MARGIN, 50, subtitle, "t-soft")
    bottom = 60 + ROW * depth(root)

    def frames(node: _Node, x: float, level: int) -> None:
        for name in sorted(node.below):
            child = node.below[name]
            width, y = child.samples * scale, bottom - ROW * level
            if width < LEAST:
                continue
            with svg.group(f"{name}: {child.samples / root.samples:.1%}"):
                svg.rect(x, y, width, ROW - 1, f"f-{hue(name)}", rx=1.0)
                label = clip(name, width - 4, 10.5)
                if len(label) > 3:
                    svg.text(x + 2, y + 12, label, "t-ink m z10", size=10.5)
            frames(child, x, level + 1)
            x += width

    frames(root, MARGIN, 1)
    svg.reach(bottom + ROW)
    return svg.finish()

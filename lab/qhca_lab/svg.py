# SPDX-License-Identifier: GPL-2.0-or-later
"""
A small canvas for figures: SVG that needs no script, no font and no network.

Built as an element tree, so text from guests is escaped. The same calls give the
same bytes. Colours are classes: light ones, and dark ones if the reader's browser
prefers them; a renderer without media queries shows the light ones.
"""

from __future__ import annotations

import contextlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

NS = "http://www.w3.org/2000/svg"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
MONO = "ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"

# name: (light, dark); hues that the colour-blind can distinguish, too
PALETTE = {
    "paper": ("#ffffff", "#14181d"),
    "panel": ("#f3f5f7", "#1e242b"),
    "ink": ("#1b2027", "#e6eaef"),
    "soft": ("#586069", "#9aa6b2"),
    "line": ("#8a94a0", "#66717d"),
    "faint": ("#d5dae0", "#343c45"),
    "blue": ("#0b62c4", "#6cb2ff"),
    "bluefill": ("#dcebfc", "#173a5e"),
    "orange": ("#b54a00", "#ffa657"),
    "orangefill": ("#ffe8d4", "#55300f"),
    "green": ("#13764a", "#57c98d"),
    "greenfill": ("#d8f1e4", "#123d29"),
    "purple": ("#7a3aa8", "#cfa2f2"),
    "purplefill": ("#efe2f8", "#412657"),
    "red": ("#c2213a", "#ff8a94"),
    "redfill": ("#fde1e4", "#561d25"),
}
HUES = ("blue", "orange", "green", "purple", "red")

# Characters that XML does not allow, and those that change the direction of text.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufffe\uffff]"
)


def clean(text: object) -> str:
    """TEXT as a document can hold it: one line, no control characters."""
    return _UNFIT.sub("\ufffd", str(text).replace("\n", " ").replace("\t", " ").replace("\r", " "))


def width_of(text: str, size: float) -> float:
    """Approximate width of TEXT in px, rather too wide: fonts differ."""
    return sum(1.0 if ord(c) > 0x2E80 else 0.62 for c in text) * size


def clip(text: object, room: float, size: float) -> str:
    """TEXT, shortened with an ellipsis when it is wider than ROOM px."""
    text = clean(text)
    if width_of(text, size) <= room:
        return text
    while text and width_of(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def wrap(text: str, room: float, size: float) -> list[str]:
    """TEXT in lines that are at most ROOM px wide; long words are clipped."""
    lines: list[str] = []
    for word in clean(text).split():
        if lines and width_of(f"{lines[-1]} {word}", size * 0.9) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(clip(word, room, size * 0.9))
    return lines


def number(value: float) -> str:
    """A coordinate, short and always the same."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def css() -> str:
    """The style sheet of every figure."""

    def colours(which: int) -> str:
        rules = []
        for name in ("ink", "soft", *HUES):
            rules.append(f".t-{name}{{fill:{PALETTE[name][which]}}}")
        for name in PALETTE:
            rules.append(f".f-{name}{{fill:{PALETTE[name][which]}}}")
        for name in ("ink", "soft", "line", "faint", *HUES):
            rules.append(f".s-{name}{{stroke:{PALETTE[name][which]}}}")
        return "".join(rules)

    return (
        f"text{{font-family:{SANS};font-size:12px;white-space:pre}}"
        f".m{{font-family:{MONO}}}.b{{font-weight:600}}.h1{{font-size:19px;font-weight:600}}"
        ".n{fill:none}.w2{stroke-width:2}.w3{stroke-width:3}"
        ".d{stroke-dasharray:4 3}.z10{font-size:10.5px}.z11{font-size:11px}"
        f"{colours(0)}@media(prefers-color-scheme:dark){{{colours(1)}}}"
    )


class Svg:
    """A drawing that grows downwards; `finish()` gives the document.

    Coordinates are px. CLS names classes of css(): `t-` text, `f-` fill, `s-`
    stroke colours; `m` monospace, `b` bold, `n` no fill, `d` dashed.
    """

    def __init__(self, width: float, title: str, desc: str, bare: bool = False):
        """BARE: a part of a page, which has the style sheet and the paper."""
        self.width = width
        self.bottom = 0.0
        self._root = ET.Element("svg", {"xmlns": NS, "role": "img"})
        self._paper = None
        if bare:
            self._root.set("role", "group")
            self._root.set("aria-label", clean(f"{title}. {desc}"))
        else:
            self._root.set("aria-labelledby", "title desc")
            ET.SubElement(self._root, "title", id="title").text = clean(title)
            ET.SubElement(self._root, "desc", id="desc").text = clean(desc)
            ET.SubElement(self._root, "style").text = css()
            self._paper = ET.SubElement(self._root, "rect", {"class": "f-paper s-faint"})
        self._at = self._root

    def _add(self, name: str, cls: str, attributes: dict) -> ET.Element:
        element = ET.SubElement(self._at, name)
        if cls:
            element.set("class", cls)
        for key, value in attributes.items():
            text = number(value) if isinstance(value, (int, float)) else value
            element.set(key.replace("_", "-"), text)
        return element

    def reach(self, y: float) -> None:
        """The drawing goes down to Y at least."""
        self.bottom = max(self.bottom, y)

    @contextlib.contextmanager
    def group(self, tip: str = "", cls: str = "", **attributes) -> Iterator[None]:
        """Group what is drawn in the block; TIP shows on hovering."""
        before = self._at
        self._at = self._add("g", cls, attributes)
        if tip:
            ET.SubElement(self._at, "title").text = clean(tip)
        try:
            yield
        finally:
            self._at = before

    def rect(self, x, y, w, h, cls="f-panel s-line", rx=3.0, **attributes) -> None:
        self._add("rect", cls, {"x": x, "y": y, "width": w, "height": h, "rx": rx, **attributes})
        self.reach(y + h)

    def line(self, x1, y1, x2, y2, cls="s-line", **attributes) -> None:
        self._add("line", cls, {"x1": x1, "y1": y1, "x2": x2, "y2": y2, **attributes})
        self.reach(max(y1, y2))

    def path(self, d: str, cls="n s-line", **attributes) -> None:
        self._add("path", cls, {"d": d, **attributes})

    def circle(self, x, y, r, cls="n s-line") -> None:
        self._add("circle", cls, {"cx": x, "cy": y, "r": r})
        self.reach(y + r)

    def text(self, x, y, text, cls="t-ink", anchor="start", room=None, size=12.0) -> None:
        """One line at baseline Y; clipped to ROOM px when that is given."""
        shown = clean(text) if room is None else clip(text, room, size)
        element = self._add("text", cls, {"x": x, "y": y})
        if anchor != "start":
            element.set("text-anchor", anchor)
        if shown != clean(text):
            ET.SubElement(element, "title").text = clean(text)
            element[0].tail = shown
        else:
            element.text = shown
        self.reach(y + size / 3)

    def spans(self, x, y, parts, anchor="start") -> None:
        """One line of several (text, cls) in turn."""
        element = self._add("text", "", {"x": x, "y": y})
        if anchor != "start":
            element.set("text-anchor", anchor)
        for text, cls in parts:
            ET.SubElement(element, "tspan", {"class": cls}).text = clean(text)
        self.reach(y + 4)

    def paragraph(self, x, y, text, room, cls="t-soft", size=12.0) -> float:
        """Lines of at most ROOM px from baseline Y on; returns the next baseline."""
        for line in wrap(text, room, size):
            self.text(x, y, line, cls)
            y += size * 1.45
        return y

    def head(self, x, y, dx, dy, hue="line", size=6.0) -> None:
        """The head of an arrow that ends at X, Y in direction DX, DY (unit)."""
        ax, ay = x - dx * size, y - dy * size
        px, py = -dy * size * 0.5, dx * size * 0.5
        self.path(
            f"M{number(x)} {number(y)}L{number(ax + px)} {number(ay + py)}"
            f"L{number(ax - px)} {number(ay - py)}Z",
            f"f-{hue}",
        )

    def link(self, x1, y1, x2, y2, hue="line", cls="", head=True) -> None:
        """A curved arrow from left to right."""
        bend = max(16.0, abs(x2 - x1) * 0.45)
        self.path(
            f"M{number(x1)} {number(y1)}C{number(x1 + bend)} {number(y1)} "
            f"{number(x2 - bend)} {number(y2)} {number(x2 - (5 if head else 0))} {number(y2)}",
            f"n s-{hue} {cls}".strip(),
        )
        if head:
            self.head(x2, y2, 1, 0, hue)

    def finish(self, margin: float = 18.0) -> str:
        """The document's text."""
        w, h = number(self.width), number(self.bottom + margin)
        for key, value in (
            ("width", w), ("height", h), ("viewBox", f"0 0 {w} {h}"),
            ("style", "max-width:100%;height:auto"),
        ):  # fmt: skip
            if self._paper is not None or key != "style":
                self._root.set(key, value)
        if self._paper is None:
            return ET.tostring(self._root, encoding="unicode") + "\n"
        for key, value in (
            ("x", "0.5"), ("y", "0.5"), ("width", number(self.width - 1)),
            ("height", number(self.bottom + margin - 1)), ("rx", "8"),
        ):  # fmt: skip
            self._paper.set(key, value)
        return ET.tostring(self._root, encoding="unicode") + "\n"


def elide(count: int, keep: list[int] | int, limit: int, edge: int = 1) -> list[int | range]:
    """Which of COUNT items to show when at most LIMIT of them can be.

    The first and last EDGE, those of KEEP and their neighbours. A range in the
    answer marks items that are left out; never just one.
    """
    if count <= limit:
        return list(range(count))
    wanted = [keep] if isinstance(keep, int) else list(keep)
    wanted = [k for k in wanted if 0 <= k < count]
    chosen = set(wanted[:limit])
    rings = [set(range(min(edge, count))) | set(range(max(0, count - edge), count))]
    for distance in range(1, limit):
        rings.append({k + s * distance for k in wanted for s in (-1, 1)})
    if not wanted:
        rings.append(set(range(limit)))
    for ring in rings:
        for item in sorted(ring):
            if 0 <= item < count and len(chosen) < limit:
                chosen.add(item)
    shown: list[int | range] = []
    following = 0
    for item in [*sorted(chosen), count]:
        if item - following == 1:
            shown.append(following)
        elif item > following:
            shown.append(range(following, item))
        if item < count:
            shown.append(item)
        following = item + 1
    return shown

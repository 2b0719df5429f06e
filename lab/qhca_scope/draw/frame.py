# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of all figures: a header with title and facts, a footer that explains."""

from __future__ import annotations

from qhca_lab.svg import Svg

from .model import Subject

EDGE = 28.0  # room at the sides
WIDTH_MIN, WIDTH, WIDTH_MAX = 640, 960, 2400


def begin(title: str, subject: Subject, desc: str, width: float) -> Svg:
    """A drawing with its head; draw from y = 92 on."""
    svg = Svg(width, f"{title}: {subject.name}", desc)
    svg.text(EDGE, 38, f"{title}: {subject.name}", "h1 t-ink", room=width - 2 * EDGE, size=17)
    svg.text(EDGE, 59, subject.facts, "t-soft", room=width - 2 * EDGE)
    svg.line(EDGE, 72, width - EDGE, 72, "s-faint")
    return svg


def end(svg: Svg, subject: Subject, *paragraphs: str) -> str:
    """The foot and the document's text."""
    y = svg.bottom + 34
    svg.line(EDGE, y - 20, svg.width - EDGE, y - 20, "s-faint")
    for text in paragraphs:
        y = svg.paragraph(EDGE, y, text, svg.width - 2 * EDGE) + 3
    svg.text(EDGE, y + 2, subject.source, "t-soft z11", room=svg.width - 2 * EDGE, size=10)
    return svg.finish()


def more(count: int, what: str = "", plural: str = "") -> str:
    """The text in place of omitted items: "… 4092 more pages"."""
    word = what if count == 1 else plural or (what and what + "s")
    return f"… {count} more {word}".rstrip()

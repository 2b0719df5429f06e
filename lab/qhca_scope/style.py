# SPDX-License-Identifier: GPL-2.0-or-later
"""Colour, width and line-drawing characters for the output."""

from __future__ import annotations

import codecs
import dataclasses
import locale
import os
import shutil
import sys

CODES = {
    "title": "1", "key": "36", "dim": "2", "good": "32", "warn": "33", "bad": "31",
    "path": "1;33", "number": "", "name": "1",
}


def terminal_encoding() -> str:
    """The encoding of the locale. In the C locale Python itself uses UTF-8 all the same, and
    so do libraries that ask Python, such as urwid."""
    try:
        return codecs.lookup(locale.getencoding()).name
    except LookupError:
        return "ascii"


@dataclasses.dataclass
class Style:
    """How to print: `colour`, `width` in columns (0: any), `unicode` lines."""

    colour: bool = False
    width: int = 0
    unicode: bool = True

    @classmethod
    def of(cls, stream=None, colour: str = "auto") -> Style:
        """What fits STREAM (standard output). COLOUR is auto, always or never;
        NO_COLOR and TERM=dumb turn auto off."""
        stream = stream or sys.stdout
        tty = stream.isatty()
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"
        encoding = (getattr(stream, "encoding", None) or "ascii").lower()
        if tty and encoding.startswith("utf"):
            encoding = terminal_encoding()
        return cls(
            colour=colour == "always" or (colour == "auto" and tty and not plain),
            width=shutil.get_terminal_size().columns if tty else 0,
            unicode=encoding.startswith("utf"),
        )

    def paint(self, kind: str, text: str) -> str:
        code = CODES.get(kind)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text

    def draw(self, text: str) -> str:
        """Lines and arrows, or their ASCII approximation."""
        return text if self.unicode else text.translate(ASCII)


ASCII = str.maketrans({
    "├": "+", "└": "`", "─": "-", "│": "|", "▶": ">", "→": "-", "·": ".", "…": ".", "●": "*",
    "—": "-", "◀": "<",
})

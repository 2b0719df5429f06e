# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/figures/screenshot: a terminal's screen as SVG."""

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "lab" / "figures" / "screenshot"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(text, title="t"):
    out = subprocess.run([str(SCRIPT), title], input=text, capture_output=True, text=True,
                         check=True).stdout
    return ET.fromstring(out)


def texts(root):
    return [(t.text.replace("\u00a0", " "), t.get("fill"), t.get("font-weight"))
            for t in root.iter(SVG + "text")][1:]


def test_text_and_colour():
    root = drawn("\x1b[31mred\x1b[0m plain\x1b[1;90m <&> \x1b[m\nsecond\n", "a < b")
    assert root.find(SVG + "title").text == "a < b"
    seen = texts(root)
    assert [s[0] for s in seen] == ["red", " plain", " <&> ", "second"]
    assert seen[0][1] != seen[1][1] and seen[2][2] == "bold" and seen[3][2] is None


def test_places():
    """Each stretch begins at its column, each line at its row."""
    first, second, third = list(drawn("ab\x1b[32mcd\n e").iter(SVG + "text"))[1:]
    width = float(first.get("textLength")) / 2
    assert float(second.get("x")) - float(first.get("x")) == 2 * width
    assert float(third.get("y")) > float(first.get("y"))


def test_reverse_has_a_background():
    rects = list(drawn("\x1b[7mbar\x1b[27m rest").iter(SVG + "rect"))
    assert len(rects) == 2          # the window's, the bar's


def test_odd_sequences_are_no_text():
    assert [t[0] for t in texts(drawn("\x1b[2J\x1b[1;1Hx\x07\x1b[38;5;12my"))] == ["x", "y"]

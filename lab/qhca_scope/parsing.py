# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers and names as people type them."""

from __future__ import annotations

import re

from .errors import Usage


def number(text: str, bits: int = 64) -> int:
    """A number of at most BITS bits: decimal, or hexadecimal with 0x."""
    if not re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", text):
        raise Usage(f"{text!r} is not a number", "give it as 17 or 0x11")
    value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
    if value >> bits:
        raise Usage(f"{text} is too big: a number of at most {bits} bits")
    return value


def plain(name: str) -> str:
    """A name in canonical form: rc-send_only, "RC SEND_ONLY"."""
    return re.sub(r"[ _-]+", "_", name.strip()).upper()


def coded(text: str, names: list[dict], what: str) -> int:
    """The code for TEXT: a number, or one of NAMES (from qhca-query-names). The start of a
    name may be omitted if the rest is unambiguous: SEND_ONLY."""
    if re.match(r"[0-9]", text):
        return number(text, 32)
    if not names:
        raise Usage(f"{what} of this event has no names: give a number, not {text!r}")
    known = {plain(n["name"]): n["code"] for n in names}
    wanted = plain(text)
    if wanted in known:
        return known[wanted]
    ends = [n for n in known if n.endswith("_" + wanted)]
    if len(ends) == 1:
        return known[ends[0]]
    if ends:
        raise Usage(f"{text!r} can be {', '.join(sorted(ends))}", "name one of them")
    near = [n for n in known if wanted in n] or list(known)
    raise Usage(f"no {what} is called {text!r}", "there are: " + ", ".join(sorted(near)))

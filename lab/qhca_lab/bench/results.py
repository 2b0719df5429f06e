# SPDX-License-Identifier: GPL-2.0-or-later
"""build/bench.json: the figures of the last runs; --net and --scale have their own parts."""

from __future__ import annotations

import json
from pathlib import Path

from ..paths import BUILD

PARTS = ("net", "scale")


def judged(reached: bool) -> str:
    """How the tables say whether an aim was reached."""
    return "reached" if reached else "MISSED"


def keep(part: str | None, figures: dict) -> Path:
    """Replace PART (None: everything outside the parts) by FIGURES; returns the file."""
    target = BUILD / "bench.json"
    try:
        old = json.loads(target.read_text())
    except (OSError, ValueError):
        old = {}
    new = dict(figures) if part is None else {k: v for k, v in old.items() if k != part}
    if part is None:
        new.update({name: old[name] for name in PARTS if name in old})
    else:
        new[part] = figures
    target.write_text(json.dumps(new, indent=1) + "\n")
    return target

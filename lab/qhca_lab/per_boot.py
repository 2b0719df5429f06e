# SPDX-License-Identifier: GPL-2.0-or-later
"""Results that hold until the host is booted again, in JSON files."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def load(path: Path) -> dict:
    """What store() has written to PATH since the host was booted; {} if there is nothing, or
    it is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_text())
        if kept["boot"] == _boot():
            return kept
    return {}


def store(path: Path, **values) -> None:
    """Replace PATH, so that a reader finds the whole old or the whole new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"boot": _boot(), **values}, indent=1) + "\n")
    new.replace(path)


def _boot() -> str:
    return BOOT_ID.read_text().strip()

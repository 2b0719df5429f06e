# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images that can hold snapshots."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .errors import LabError
from .paths import QEMU


def create(path: Path, backing: Path) -> None:
    """A qcow2 image at PATH on top of the raw image BACKING, which must not change any
    more."""
    made = subprocess.run(
        [str(QEMU.with_name("qemu-img")), "create", "-q", "-f", "qcow2", "-F", "raw",
         "-b", str(backing), str(path)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    if made.returncode:
        raise LabError(made.stderr.strip() or f"{path}: qemu-img failed")

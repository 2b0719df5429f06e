# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths: the checkout, its build products, the folder for sockets."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from .errors import LabError


def _plain(checkout: Path) -> Path:
    """CHECKOUT as all builds name it; lab/build/common.sh explains why, and does the same."""
    name = str(checkout)
    if re.fullmatch(r"[a-zA-Z0-9/._+@%~-]*", name):
        return checkout
    link = Path(f"/var/tmp/qhca-{os.getuid()}-{hashlib.sha256(name.encode()).hexdigest()[:12]}")
    if not link.is_symlink():
        link.symlink_to(checkout)
    if os.readlink(link) != name:
        raise LabError(f"{link} is not a link to {name}: remove it")
    return link


CHECKOUT = Path(__file__).resolve().parents[2]
TOP = _plain(CHECKOUT)
BUILD = Path(os.environ.get("QHCA_BUILD") or TOP / "build")
QEMU = BUILD / "bin" / "qemu-system-x86_64"
GUEST = BUILD / "guest"

# A unix socket's path may hold 107 bytes; ours end in /NAME/a/port11.
_LONGEST_BASE = 60


def in_root(path: Path) -> Path:
    """PATH without links, as it is named in the build root."""
    path = path.resolve()
    return TOP / path.relative_to(CHECKOUT) if path.is_relative_to(CHECKOUT) else path


def run_base() -> Path:
    """The private folder for labs' sockets and state, created if missing."""
    candidates = []
    if os.environ.get("QHCA_RUN"):
        candidates.append(Path(os.environ["QHCA_RUN"]))
    if os.environ.get("XDG_RUNTIME_DIR"):
        candidates.append(Path(os.environ["XDG_RUNTIME_DIR"]) / "qhca")
    candidates.append(Path(f"/tmp/qhca-{os.getuid()}"))
    for base in candidates:
        if len(str(base)) > _LONGEST_BASE:
            continue
        try:
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
            info = base.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid():
            return base
    raise LabError(
        "no private folder for sockets: tried "
        + ", ".join(map(str, candidates))
        + "; set QHCA_RUN to a short path you own"
    )


def lab_dir(name: str) -> Path:
    """The folder of lab NAME; different checkouts have different ones."""
    if not name.replace("-", "").replace("_", "").isalnum() or len(name) > 20:
        raise LabError(f"bad lab name {name!r}: letters, digits, - and _, at most 20")
    return run_base() / f"{tag()}-{name}"


def tag() -> str:
    """The prefix of the folders of this checkout's labs."""
    return hashlib.sha256(str(TOP).encode()).hexdigest()[:6]


def labs() -> list[str]:
    """Names of this checkout's labs that were brought up and not taken down."""
    start = f"{tag()}-"
    found = run_base().glob(f"{start}*/lab.json")
    return sorted(path.parent.name[len(start):] for path in found)

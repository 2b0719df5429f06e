# SPDX-License-Identifier: GPL-2.0-or-later
"""Initramfs of a guest without shared folders: the image's own one, and behind it
an archive with what is to be in /qhca. Linux unpacks both, one over the other."""

from __future__ import annotations

import stat
from pathlib import Path

ALIGN = 4


def _entry(inode: int, name: str, mode: int, data: bytes = b"") -> bytes:
    """One member in the cpio format "newc"."""
    raw = name.encode() + b"\0"
    fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % value for value in fields) + raw
    return _pad(head) + _pad(data)


def _pad(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGN)


def archive(files: dict[str, Path | bytes]) -> bytes:
    """A cpio archive of FILES: paths in it, and what they hold (a path of the
    host, or bytes). Folders come by themselves."""
    parts, folders, inode = [], set(), 0
    for name in sorted(files):
        for parent in reversed(Path(name).parents):
            if str(parent) != "." and parent not in folders:
                folders.add(parent)
                inode += 1
                parts.append(_entry(inode, str(parent), stat.S_IFDIR | 0o755))
        source = files[name]
        inode += 1
        if isinstance(source, bytes):
            parts.append(_entry(inode, name, stat.S_IFREG | 0o755, source))
        else:
            mode = stat.S_IFREG | (source.stat().st_mode & 0o777)
            parts.append(_entry(inode, name, mode, source.read_bytes()))
    return b"".join(parts) + _entry(0, "TRAILER!!!", 0)


def tree(folder: Path, below: str) -> dict[str, Path]:
    """The regular files in FOLDER, as members of the archive below BELOW."""
    return {
        f"{below}/{path.relative_to(folder)}": path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def build(base: Path, files: dict[str, Path | bytes], target: Path) -> None:
    """Write the initramfs BASE with FILES added to TARGET."""
    target.write_bytes(_pad(base.read_bytes()) + archive(files))

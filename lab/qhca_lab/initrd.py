# SPDX-License-Identifier: GPL-2.0-or-later
"""Initramfs of a guest without shared folders: the image's own, followed by an archive
with the contents of /qhca. Linux unpacks both, one over the other."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from .errors import LabError
from .paths import BUILD, TOP, in_root

# Linux wants archives that follow another to begin at a multiple of this.
ALIGN = 4
# In the folder $1, all of it; the order does not depend on the file system's.
CPIO = "cd \"$1\" && find . -mindepth 1 | LC_ALL=C sort | cpio -o -H newc -R 0:0 --reproducible --quiet"


def archive(files: dict[str, Path | bytes]) -> bytes:
    """A cpio archive of FILES: paths in it, and their contents (a path of the host, or
    bytes). Folders are added automatically."""
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        for path, source in files.items():
            target = Path(name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                target.write_bytes(source)
                target.chmod(0o755)
            else:
                shutil.copy(source, target)
        made = subprocess.run([str(TOP / "lab" / "in-root"), "sh", "-c", CPIO, "sh",
                               str(in_root(Path(name)))], capture_output=True)  # fmt: skip
    if made.returncode:
        raise LabError(f"cpio: {made.stderr.decode(errors='replace').strip()}")
    return made.stdout


def tree(folder: Path, below: str) -> dict[str, Path]:
    """The regular files in FOLDER, as members of the archive below BELOW."""
    return {
        f"{below}/{path.relative_to(folder)}": path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def build(base: Path, files: dict[str, Path | bytes], target: Path) -> None:
    """Write the initramfs BASE with FILES added to TARGET."""
    head = base.read_bytes()
    target.write_bytes(head + bytes(-len(head) % ALIGN) + archive(files))

# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels that guests can boot.

A word selects one, as in `qhca-lab up --kernel`:

default     that of the guest image, from Debian 13
newest      the newest one of the suite's backports
debug       one of the default's series with KASAN, lockdep, kmemleak and similar
            checkers (lab/build/make-debug-kernel)
FOLDER      the build tree of a kernel

All but the default have a folder below build/kernels, which `make kernel` fills
(lab/build/make-kernel): the driver for it, and "image", a link to what boots. The
name of the link's target is a hash of its inputs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
import sys
from pathlib import Path

from .errors import LabError
from .paths import BUILD, GUEST

DEFAULT = "default"
NEWEST = "newest"
DEBUG = "debug"
KNOWN = f"{DEFAULT}, {NEWEST}, {DEBUG} or the folder of a kernel build tree"

BZIMAGE = "arch/x86/boot/bzImage"


def usual() -> str:
    """The default kernel of labs: $QHCA_KERNEL."""
    return os.environ.get("QHCA_KERNEL") or DEFAULT


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel for guests. It need not have been built: see check()."""

    # Its name: a word, or the absolute path of a build tree.
    what: str
    # Its folder below build/kernels; "" for the default.
    name: str

    @property
    def tree(self) -> Path | None:
        """Its build tree; that of "debug" need not exist."""
        if self.what == DEBUG:
            link = self.folder / "tree"
            return link.readlink() if link.is_symlink() else link
        return Path(self.what) if os.sep in self.what else None

    @property
    def folder(self) -> Path:
        """Where products that depend on the kernel are: driver, guest-modules."""
        return BUILD / "kernels" / self.name if self.name else BUILD

    @property
    def image(self) -> Path:
        """The folder of what QEMU boots; its name identifies the contents."""
        return (self.folder / "image").resolve() if self.name else GUEST

    @property
    def vmlinuz(self) -> Path:
        return self.image / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.image / "initrd"

    @property
    def modules(self) -> Path | None:
        """The disk with its modules; None if they are in the guest image."""
        return self.image / "modules.img" if self.name else None

    @property
    def driver(self) -> Path:
        """The folder of the driver that is built for it."""
        return self.folder / "driver"

    @property
    def version(self) -> str:
        """What `uname -r` will say."""
        return (self.image / "version").read_text().strip()

    @property
    def pace(self) -> float:
        """How many times slower than the default kernel it is: for time limits."""
        return 10.0 if self.what == DEBUG else 1.0

    @property
    def command(self) -> str:
        """What builds it."""
        return f"make kernel KERNEL={shlex.quote(self.what)}" if self.name else "make build"

    def check(self) -> None:
        """LabError unless all of it exists and is up to date."""
        needed = [self.vmlinuz, self.initrd]
        if self.name:
            needed += [self.modules, *(self.driver / "guest" / f"{m}.ko" for m in
                                       ("qhca", "qhca_ib"))]
        for path in needed:
            if not path.exists():
                raise LabError(f"{path} is missing: run '{self.command}' first")
        if self.tree and stamp(self.tree) != (self.image / "stamp").read_text().strip():
            raise LabError(f"the kernel in {self.tree} was rebuilt: run '{self.command}'")


def kernel(what: str) -> Kernel:
    """The kernel WHAT; LabError for an unknown word."""
    if what in ("", DEFAULT):
        return Kernel(DEFAULT, "")
    if what in (NEWEST, DEBUG):
        return Kernel(what, what)
    tree = Path(what).expanduser()
    if not tree.is_dir():
        raise LabError(f"unknown kernel {what!r}: use {KNOWN}")
    tree = tree.resolve()
    return Kernel(str(tree), f"tree-{hashlib.sha256(str(tree).encode()).hexdigest()[:12]}")


def tree_modules(tree: Path) -> list[Path]:
    """The modules of a build tree, as paths in it."""
    try:
        lines = (tree / "modules.order").read_text().split()
    except OSError:
        raise LabError(f"{tree} has no modules.order: run 'make bzImage modules' there") from None
    # Listed there as .ko before Linux 6.3, then as .o.
    return [Path(line).with_suffix(".ko") for line in lines]


def stamp(tree: Path) -> str:
    """A hash that changes when the kernel in TREE is rebuilt."""
    told = []
    for path in [Path(BZIMAGE), *tree_modules(tree)]:
        try:
            info = (tree / path).stat()
        except OSError:
            raise LabError(f"{tree} has no {path}: run 'make bzImage modules' there") from None
        told.append(f"{path} {info.st_size} {info.st_mtime_ns}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def main(argv: list[str]) -> int:
    """For the scripts in lab/build, so that they need not duplicate this.

    name WHAT       its folder below build/kernels
    tree WHAT       the absolute path of a build tree
    stamp FOLDER    stamp() of a build tree
    modules FOLDER  its modules, one a line
    """
    question, what = argv
    try:
        if question == "name":
            print(kernel(what).name)
        elif question == "tree":
            print(kernel(what).tree)
        elif question == "stamp":
            print(stamp(Path(what)))
        elif question == "modules":
            print(*tree_modules(Path(what)), sep="\n")
    except LabError as error:
        print(f"qhca: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

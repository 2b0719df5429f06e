# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the kernel has put the sections of the driver's modules, for debuggers: a line
"section MODULE NAME ADDRESS" for each; and which build they are, a line "build MODULE NOTE".

A module of its own, as boot.py calls it: a program for each file takes a guest a third of
a second.
"""

import os

MODULES = ("qhca", "qhca_ib")
SECTIONS = (".text", ".data", ".bss", ".rodata", ".init.text", ".exit.text",
            ".data..ro_after_init", ".data..read_mostly")  # fmt: skip
# More than any of the files has; the kernel wants each read at once.
MOST = 4096


def whole(path):
    """The bytes of a small file, or None."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(fd, MOST)
    finally:
        os.close(fd)


def show():
    """Print the lines."""
    for module in MODULES:
        folder = f"/sys/module/{module}"
        for name in SECTIONS:
            address = whole(f"{folder}/sections/{name}")
            if address:
                print(f"section {module} {name} {address.decode().strip()}")
        note = whole(f"{folder}/notes/.note.gnu.build-id")
        if note:
            print(f"build {module} {note.hex()}")


if __name__ == "__main__":
    show()

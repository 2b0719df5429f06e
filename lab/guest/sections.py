# SPDX-License-Identifier: GPL-2.0-or-later
"""For debuggers: the addresses of the sections of the driver's modules, in lines "section
MODULE NAME ADDRESS", and the modules' build IDs, in lines "build MODULE NOTE".

A separate module, because boot.py calls it: a program per file would take a guest a third
of a second.
"""

import guestenv

SECTIONS = (".text", ".data", ".bss", ".rodata", ".init.text", ".exit.text",
            ".data..ro_after_init", ".data..read_mostly")  # fmt: skip


def show():
    """Print the lines."""
    for module in guestenv.MODULES:
        folder = f"/sys/module/{module}"
        for name in SECTIONS:
            address = guestenv.read(f"{folder}/sections/{name}")
            if address:
                print(f"section {module} {name} {address}")
        note = guestenv.read_bytes(f"{folder}/notes/.note.gnu.build-id")
        if note:
            print(f"build {module} {note.hex()}")


if __name__ == "__main__":
    show()

# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading programs, libraries and kernel modules by pyelftools: build IDs and addresses of
sections."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import LabError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

# The linker's build ID: the same source and options give the same bytes.
BUILD_ID = ".note.gnu.build-id"


@contextlib.contextmanager
def opened(file) -> Iterator[ELFFile]:
    """FILE, open in binary mode, as ELF; LabError if it is invalid."""
    # Imported here, because most of the lab works without it: also with a Python other than
    # the system's.
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise LabError("python3-pyelftools is missing ('make deps' installs it), or this is "
                       "not the system's Python, /usr/bin/python3") from None
    try:
        elf = ELFFile(file)
        if elf.elfclass != 64 or not elf.little_endian:
            raise LabError("not a 64-bit little-endian ELF file")
        yield elf
    except LabError:
        raise
    except Exception as error:      # pyelftools and its dependencies raise many kinds
        raise LabError(f"no ELF file, or a damaged one: {error}") from None


def build_id(path: Path) -> tuple[int, bytes]:
    """Address in memory and contents of a file's build ID; 0 and nothing if it has none."""
    with open(path, "rb") as file, opened(file) as elf:
        section = elf.get_section_by_name(BUILD_ID)
        return (section["sh_addr"], section.data()) if section else (0, b"")


def notes(elf: ELFFile, section: str, owner: str) -> Iterator[bytes]:
    """The contents of the notes of OWNER in a section, without their types: pyelftools
    interprets the types of all owners as GNU's."""
    found = elf.get_section_by_name(section)
    if found and found["sh_type"] == "SHT_NOTE":
        for note in found.iter_notes():
            if note["n_name"] == owner:
                yield note["n_descdata"]


def offset(elf: ELFFile, address: int) -> int:
    """The offset of ADDRESS in the file."""
    for place in elf.address_offsets(address):
        return place
    raise LabError(f"address {address:#x} is not in the file")

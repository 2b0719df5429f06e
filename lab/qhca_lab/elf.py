# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading programs, libraries and kernel modules: sections, and which build it is."""

from __future__ import annotations

import struct

from .errors import LabError

_LOAD = 1
# What the linker writes of a build: the same source and options, the same bytes.
BUILD_ID = ".note.gnu.build-id"


class Elf:
    """As much of a 64-bit little-endian ELF file as is needed."""

    def __init__(self, data: bytes):
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise LabError("not a 64-bit little-endian ELF file")
        (phoff, shoff) = self.unpack("<QQ", 32)
        phentsize, phnum, shentsize, shnum, names = self.unpack("<HHHHH", 54)
        self.loads = []
        for n in range(phnum):
            kind, _flags, offset, vaddr, _paddr, filesz = self.unpack("<IIQQQQ", phoff + n * phentsize)
            if kind == _LOAD:
                self.loads.append((vaddr, filesz, offset))
        raw = [self.unpack("<IIQQQQ", shoff + n * shentsize) for n in range(shnum)]
        table = raw[names] if names < len(raw) else None
        self.sections = {}
        for name, _kind, _flags, addr, offset, size in raw:
            if table:
                self.sections.setdefault(self.text(table[4] + name), (addr, offset, size))

    def unpack(self, layout: str, at: int) -> tuple:
        try:
            return struct.unpack_from(layout, self.data, at)
        except (struct.error, OverflowError):
            raise LabError("the ELF file is cut short or damaged") from None

    def text(self, at: int) -> str:
        end = self.data.find(b"\0", at) if at < len(self.data) else -1
        if end < 0:
            raise LabError("the ELF file is cut short or damaged")
        return self.data[at:end].decode("ascii", "replace")

    def offset(self, address: int) -> int:
        """Where in the file ADDRESS is."""
        for vaddr, size, offset in self.loads:
            if vaddr <= address < vaddr + size:
                return address - vaddr + offset
        raise LabError(f"address {address:#x} is not in the file")

    def section(self, name: str) -> bytes:
        """The contents of a section; empty if there is none of that name."""
        _addr, offset, size = self.sections.get(name, (0, 0, 0))
        return self.data[offset:offset + size]

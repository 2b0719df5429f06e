# SPDX-License-Identifier: GPL-2.0-or-later
"""Static probe points (USDT) of a library, from its .note.stapsdt section."""

from __future__ import annotations

import dataclasses
import io
import re
import struct

from .. import elf
from ..errors import LabError

# Registers of x86-64 in all their widths, and what the kernel calls them.
_REGISTERS = {}
for _n in ("ax", "bx", "cx", "dx"):
    for _alias in (f"r{_n}", f"e{_n}", _n, f"{_n[0]}l"):
        _REGISTERS[_alias] = _n
for _n in ("si", "di", "bp", "sp"):
    for _alias in (f"r{_n}", f"e{_n}", _n, f"{_n}l"):
        _REGISTERS[_alias] = _n
for _n in range(8, 16):
    for _end in ("", "d", "w", "b"):
        _REGISTERS[f"r{_n}{_end}"] = f"r{_n}"
_TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64", -1: "s8", -2: "s16", -4: "s32", -8: "s64"}
_ARGUMENT = re.compile(
    r"(?P<size>-?[1248])@(?:\$(?P<constant>-?\d+)|%(?P<register>\w+)"
    r"|(?P<offset>-?\d+)?\(%(?P<base>\w+)\))$"
)


@dataclasses.dataclass(frozen=True)
class Probe:
    """A probe point. `offset` and `counter` (0: none) are offsets in the file: of
    the instruction, and of the 16 bits that count who watches it; `arguments`
    are in the language of uprobe_events."""

    provider: str
    name: str
    offset: int
    counter: int
    arguments: tuple[str, ...]

    def event(self, group: str, path: str, names: tuple[str, ...]) -> str:
        """A line for uprobe_events: event GROUP/name for the library at PATH,
        with NAMES for the arguments; there may be more arguments than names."""
        if len(self.arguments) < len(names):
            raise LabError(
                f"probe point {self.name} of {path} has {len(self.arguments)} arguments, "
                f"{len(names)} are wanted: is the library older than this program?"
            )
        place = f"{path}:{self.offset:#x}"
        if self.counter:
            place += f"({self.counter:#x})"
        words = [f"{n}={a}" for n, a in zip(names, self.arguments)]
        return " ".join([f"p:{group}/{self.name}", place, *words])


def argument(text: str) -> str:
    """One argument as the note has it ("4@8(%rdx)") for uprobe_events
    ("+8(%dx):u32")."""
    found = _ARGUMENT.match(text)
    if not found:
        raise LabError(f"cannot watch a probe point with argument {text!r}")
    kind = _TYPES[int(found["size"])]
    if found["constant"] is not None:
        return f"\\{found['constant']}:{kind}"
    register = found["register"] or found["base"]
    if register not in _REGISTERS:
        raise LabError(f"cannot watch a probe point with argument {text!r}: register {register}")
    name = _REGISTERS[register]
    if found["register"]:
        return f"%{name}:{kind}"
    return f"{int(found['offset'] or 0):+d}(%{name}):{kind}"


def probes(data: bytes, provider: str) -> dict[str, Probe]:
    """The probe points of PROVIDER in the library DATA, by name; LabError when
    it is no such library or a point cannot be watched."""
    found: dict[str, Probe] = {}
    with elf.opened(io.BytesIO(data)) as library:
        base_now = library.get_section_by_name(".stapsdt.base")
        for body in elf.notes(library, ".note.stapsdt", "stapsdt"):
            texts = body[24:].split(b"\0")
            if len(body) < 24 or len(texts) < 4:
                raise LabError("the library's probe points are cut short or damaged")
            pc, base, counter = struct.unpack_from("<QQQ", body)
            moved = base_now["sh_addr"] - base if base_now else 0
            owner_name, name, words = (t.decode("ascii", "replace") for t in texts[:3])
            if owner_name != provider:
                continue
            if name in found:
                raise LabError(f"probe point {name} exists more than once")
            found[name] = Probe(
                provider,
                name,
                elf.offset(library, pc + moved),
                elf.offset(library, counter + moved) if counter else 0,
                tuple(argument(w) for w in words.split()),
            )
    return found

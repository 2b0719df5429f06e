# SPDX-License-Identifier: GPL-2.0-or-later
"""
The programming manual as data, and its comparison with the contract header.

Tables of docs/hardware.md that count, by their first two column names:

    | Name | Value | ...         constants
    | Offset | Name | ...        registers and doorbells
    | Offset | Size | Field |    fields of the structure named above the table
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

MANUAL = Path(__file__).resolve().parents[2] / "docs/hardware.md"

NAME = re.compile(r"`(QHCA_\w+)`")
STRUCT = re.compile(r"^`struct (qhca_\w+)`, (\d+) bytes$")


@dataclass
class Manual:
    """What the manual says: numbers by name."""

    constants: dict[str, int] = field(default_factory=dict)
    structs: dict[str, tuple[int, dict[str, tuple[int, int]]]] = field(default_factory=dict)
    registers: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def number(text: str) -> int:
    """Read "12", "0x1f" or "1 << 3"; ValueError for anything else."""
    shifted = re.fullmatch(r"(\d+) << (\d+)", text)
    if shifted:
        return int(shifted[1]) << int(shifted[2])
    return int(text, 16) if text.startswith("0x") else int(text)


def cells(line: str) -> list[str]:
    """The cells of a table row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text: str):
    """Yield (line before the table, header cells, rows) of each table."""
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        if not lines[i].startswith("|"):
            i += 1
            continue
        start = i
        while i < len(lines) and lines[i].startswith("|"):
            i += 1
        above = next((l for l in reversed(lines[:start]) if l.strip()), "")
        yield above, cells(lines[start]), [cells(l) for l in lines[start + 2:i]]


def parse(text: str) -> Manual:
    """Read the manual; unreadable parts are reported as problems, not as exceptions."""
    manual = Manual()

    def once(where: dict, key: str, value) -> None:
        if key in where:
            manual.problems.append(f"{key} is in the manual twice")
        where[key] = value

    def guarded(read, row: list[str]) -> None:
        try:
            read(row)
        except (ValueError, IndexError, TypeError):
            manual.problems.append(f"cannot read the row {row}")

    def constant(row: list[str]) -> None:
        once(manual.constants, NAME.fullmatch(row[0])[1], number(row[1]))

    def register(row: list[str]) -> None:
        name = NAME.fullmatch(row[1])[1]
        once(manual.constants, name, number(row[0]))
        manual.registers[name] = row[2:]

    for above, header, rows in tables(text):
        if header[:2] == ["Name", "Value"]:
            for row in rows:
                guarded(constant, row)
        elif header[:2] == ["Offset", "Name"]:
            for row in rows:
                guarded(register, row)
        elif header[:3] == ["Offset", "Size", "Field"]:
            title = STRUCT.match(above)
            if not title:
                manual.problems.append(f"fields without a structure, below: {above}")
                continue
            fields: dict[str, tuple[int, int]] = {}

            def member(row: list[str]) -> None:
                once(fields, row[2].strip("`"), (number(row[0]), number(row[1])))

            for row in rows:
                guarded(member, row)
            once(manual.structs, title[1], (int(title[2]), fields))
    return manual


def difference(kind: str, header: dict, manual: dict) -> list[str]:
    """Compare two dictionaries both ways."""
    out = [f"{kind} {k} is missing in the manual" for k in header if k not in manual]
    out += [f"{kind} {k} is not in the header" for k in manual if k not in header]
    out += [
        f"{kind} {k}: header {header[k]}, manual {manual[k]}"
        for k in header
        if k in manual and header[k] != manual[k]
    ]
    return out


def compare(constants: dict, structs: dict, text: str) -> list[str]:
    """
    All differences between the header, as contract.load() gives it, and the
    manual's text; empty if they agree.
    """
    manual = parse(text)
    out = manual.problems
    out += difference("constant", constants, manual.constants)
    sizes = {name: size for name, (size, _) in structs.items()}
    out += difference("structure", sizes, {n: s for n, (s, _) in manual.structs.items()})
    for name, (_, fields) in structs.items():
        if name in manual.structs:
            layout = {f: (offset, size) for f, (offset, size, *_) in fields.items()}
            out += difference(f"struct {name} field", layout, manual.structs[name][1])
    out += unknown_names(constants, structs, text)
    return out


def unknown_names(constants: dict, structs: dict, text: str) -> list[str]:
    """Names anywhere in the text that the header does not have."""
    out = []
    for name in sorted(set(re.findall(r"QHCA_\w+\*?", text))):
        if name.endswith("*"):
            known = any(c.startswith(name[:-1]) for c in constants)
        else:
            known = name in constants or any(
                name.endswith("_") and c.startswith(name) for c in constants
            )
        if not known:
            out.append(f"the text names {name}, which is not in the header")
    for name in sorted(set(re.findall(r"struct (qhca_\w+)", text)) - set(structs)):
        out.append(f"the text names struct {name}, which is not in the header")
    return out

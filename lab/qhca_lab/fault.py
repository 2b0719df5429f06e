# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults on demand: rules for a guest's adapter, over QMP.

A rule is a dictionary of fields as people write them ({"action": "delay",
"psn": "5-9", "time": "250us"}); to_qmp() makes of it what QMP's qhca-fault-add
takes. See docs/how-to/inject-faults.md.
"""

from __future__ import annotations

import re

from .errors import LabError

ACTIONS = (
    "drop", "delay", "duplicate", "reorder", "corrupt", "corrupt-icrc",
    "corrupt-payload", "no-ack", "rnr", "dma-error", "table-error",
    "cq-overflow", "stall-events", "hold-interrupt", "lose-interrupt", "fatal",
    "reset", "link-down", "garbage",
)  # fmt: skip

# What number= is called where it has a better name.
NUMBERS = ("number", "qpn", "cqn", "eqn", "vector", "key")

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "": 1}


class FaultError(LabError):
    """A field of a rule is invalid; `field` is its name."""

    def __init__(self, field: str, text: str):
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


def number(value, field: str, least: int = 0, most: int = 2**64 - 1) -> int:
    """VALUE, a number or its text in any base, as a number."""
    try:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError
        found = value if isinstance(value, int) else int(value, 0)
    except ValueError:
        raise FaultError(field, f"a number is wanted, not {value!r}") from None
    if not least <= found <= most:
        raise FaultError(field, f"{value} is not {least} to {most}")
    return found


def span(value, field: str, most: int) -> tuple[int, int]:
    """(first, last) of a number or of "FIRST-LAST"."""
    if isinstance(value, str) and "-" in value.strip()[1:]:
        first, last = value.split("-", 1)
        return number(first.strip(), field, 0, most), number(last.strip(), field, 0, most)
    found = number(value, field, 0, most)
    return found, found


def nanoseconds(value, field: str = "time") -> int:
    """Of "250us", "3ms", "1s", "800ns" or a number of nanoseconds."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", str(value).strip())
    if isinstance(value, bool) or not match or match[2] not in UNITS:
        raise FaultError(field, f"a time like 800ns, 250us, 3ms or 1s is wanted, not {value!r}")
    return int(match[1]) * UNITS[match[2]]


def probability(value, field: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if isinstance(value, bool) or not 0 <= found <= 1:
        raise FaultError(field, f"0 to 1 is wanted, not {value!r}")
    return found


def text(value, field: str) -> str:
    if isinstance(value, list):  # of opcodes
        return ",".join(text(item, field) for item in value)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise FaultError(field, f"a word is wanted, not {value!r}")
    return str(value)


def one_of(*words: str):
    def convert(value, field: str) -> str:
        if value not in words:
            raise FaultError(field, f"{', '.join(words[:-1])} or {words[-1]} is wanted, "
                             f"not {value!r}")
        return value

    return convert


PLAIN = {
    "action": one_of(*ACTIONS),
    "at": one_of("now", "packet", "recv", "dma", "table", "cqe", "event", "interrupt",
                 "register"),
    "peer": lambda v, f: number(v, f, 0, 2**32 - 1),
    "opcode": text,
    "syndrome": lambda v, f: number(v, f, 0, 255),
    "qp-type": text,
    "direction": one_of("out", "in", "both"),
    "kind": one_of("command", "table", "wqe", "cqe", "eqe", "record", "data", "ethernet"),
    "access": one_of("read", "write", "both"),
    "skip": number,
    "nth": number,
    "every": number,
    "count": number,
    "probability": probability,
    "time": nanoseconds,
    "packets": lambda v, f: number(v, f, 0, 2**32 - 1),
}
SPANS = {
    "psn": (2**24 - 1, "psn"),
    "rel-psn": (2**24 - 1, "psn"),
    "address": (2**64 - 1, "address"),
    "index": (2**64 - 1, "index"),
}
FIELDS = [*NUMBERS, *PLAIN, *SPANS]


def to_qmp(rule: dict) -> dict:
    """The arguments of qhca-fault-add for RULE; FaultError specifies the field."""
    fault: dict = {}
    for field, value in rule.items():
        if field in NUMBERS:
            if "number" in fault:
                raise FaultError(field, f"only one of {', '.join(NUMBERS)} can be given")
            fault["number"] = number(value, field, 0, 2**32 - 1)
        elif field in PLAIN:
            fault[field] = PLAIN[field](value, field)
        elif field in SPANS:
            most, name = SPANS[field]
            if name in fault:
                raise FaultError(field, "only one of psn and rel-psn can be given")
            fault[name], last = span(value, field, most)
            if last != fault[name]:
                fault[f"{name}-last"] = last
            if field == "rel-psn":
                fault["psn-relative"] = True
        else:
            raise FaultError(field, f"no such field; there are {', '.join(FIELDS)}")
    if "action" not in fault:
        raise FaultError("action", f"is missing; there are {', '.join(ACTIONS)}")
    return fault


def _adapter(guest) -> None:
    if guest.nic.split(":")[0] != "qhca":
        raise LabError(f"guest {guest.name} has {guest.nic}: only qhca can inject faults")


def add(guest, rule: dict) -> dict:
    """Add RULE to GUEST's adapter; returns QMP's response."""
    _adapter(guest)
    fault = to_qmp(rule)
    with guest.qmp() as qmp:
        return qmp.command("qhca-fault-add", {"fault": fault})


def listed(guest) -> dict:
    """{"seed": ..., "held": ..., "faults": [{"id", "rule", "hits", "matches"}]}"""
    _adapter(guest)
    with guest.qmp() as qmp:
        return qmp.command("qhca-fault-list")


def remove(guest, number: int | None = None) -> None:
    """Remove one fault of GUEST's adapter, or all."""
    _adapter(guest)
    with guest.qmp() as qmp:
        qmp.command("qhca-fault-remove", None if number is None else {"id": number})


def seed(guest, number: int) -> None:
    """Set the seed and reset all counts."""
    _adapter(guest)
    with guest.qmp() as qmp:
        qmp.command("qhca-fault-seed", {"seed": number})


def counters(guest) -> dict[str, int]:
    """The adapter's counters by name."""
    with guest.qmp() as qmp:
        look = qmp.command("qhca-inspect", {"object": "device"})["look"]
    return look["counters"]

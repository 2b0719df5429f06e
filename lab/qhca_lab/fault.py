# SPDX-License-Identifier: GPL-2.0-or-later
"""Injected faults: rules for a guest's adapter, over QMP.

A rule is an argument of QMP's qhca-fault-add, {"action": "delay", "psn": 5, "time":
250000}; QEMU checks it. See docs/how-to/inject-faults.md.
"""

from __future__ import annotations

import re

from .errors import LabError
from .qmp import QmpError

# Forms that a command line accepts for QMP's numbers: 250us, and 5-9 for KEY and KEY-last.
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
NUMBER = r"(0x[0-9a-fA-F]+|[0-9]+)"


class FaultError(LabError):
    """QEMU refused a rule; `key` is the one in its message."""

    def __init__(self, text: str):
        super().__init__(text.replace("'fault.", "'"))
        found = re.search(r"'([^']+)'", str(self))
        self.key = found[1] if found else ""


def parse(text: str) -> dict:
    """The rule of a command line: "ACTION,KEY=VALUE,...", as QEMU's monitor has it,
    with UNITS and ranges."""
    action, *rest = text.split(",")
    rule: dict = {"action": action.removeprefix("action=")}
    for item in rest:
        key, equals, value = item.partition("=")
        if not equals:
            raise LabError(f"{item!r} is not KEY=VALUE")
        if match := re.fullmatch(f"{NUMBER}-{NUMBER}", value):
            rule[key], rule[f"{key}-last"] = int(match[1], 0), int(match[2], 0)
        elif match := re.fullmatch(f"([0-9]+)({'|'.join(UNITS)})", value):
            rule[key] = int(match[1]) * UNITS[match[2]]
        elif re.fullmatch(NUMBER, value):
            rule[key] = int(value, 16 if value.startswith("0x") else 10)
        elif re.fullmatch(r"[0-9]*\.[0-9]+", value):
            rule[key] = float(value)
        else:
            rule[key] = {"on": True, "off": False}.get(value, value)
    return rule


def text(rule: dict) -> str:
    """RULE as written on the command line and in the monitor."""
    rest = (f",{key}={'on' if value is True else 'off' if value is False else value}"
            for key, value in sorted(rule.items()) if key != "action")
    return rule["action"] + "".join(rest)


def _adapter(guest) -> None:
    if guest.nic.split(":")[0] != "qhca":
        raise LabError(f"guest {guest.name} has {guest.nic}: only qhca can inject faults")


def add(guest, rule: dict) -> dict:
    """Add RULE to GUEST's adapter; returns QMP's response. FaultError if QEMU refuses it."""
    _adapter(guest)
    with guest.qmp() as qmp:
        try:
            return qmp.command("qhca-fault-add", {"fault": rule})
        except QmpError as error:
            raise FaultError(error.reply["desc"]) from None


def listed(guest) -> dict:
    """{"seed": ..., "held": ..., "faults": [{"id", "fault", "hits", "matches"}]}"""
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

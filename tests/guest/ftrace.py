# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's trace events in a guest, from a separate ftrace instance."""

import contextlib
import re

TRACING = "/sys/kernel/tracing"
INSTANCE = f"{TRACING}/instances/qhca-test"
LINE = re.compile(r"\s([\d.]+): (qhca_\w+): (.*)$")
FIELD = re.compile(r'(\w+)=("[^"]*"|\S+)')


class Event:
    """One event: .name, .time in seconds, and its fields as attributes."""

    def __init__(self, time, name, text):
        self.time, self.name, self.text = float(time), name, text
        for key, value in FIELD.findall(text):
            if value.startswith('"'):
                value = value[1:-1]
            elif re.fullmatch(r"-?\d+|0x[0-9a-f]+", value):
                value = int(value, 0)
            setattr(self, key, value)

    def __repr__(self):
        return f"{self.time} {self.name}: {self.text}"


class Events(list):
    """Events in order; filled when the with block ends."""

    def of(self, name, **fields):
        """Those with this name, and these values in their fields."""
        return [e for e in self if e.name == name
                and all(getattr(e, k) == v for k, v in fields.items())]

    def one(self, name, **fields):
        found = self.of(name, **fields)
        assert len(found) == 1, (name, fields, found)
        return found[0]


def so_far(guest):
    """The events so far."""
    text = guest.run(f"cat {INSTANCE}/trace").out
    assert "LOST" not in text
    return Events(Event(*m.groups()) for m in map(LINE.search, text.splitlines()) if m)


@contextlib.contextmanager
def events(guest, *systems):
    """All events of the SYSTEMs ("qhca", "qhca_ib" if none is given)."""
    found = Events()
    guest.run(f"mkdir -p {INSTANCE} && cd {INSTANCE} && echo mono > trace_clock && echo > trace"
              " && echo 8192 > buffer_size_kb")
    try:
        for system in systems or ("qhca", "qhca_ib"):
            guest.run(f"echo 1 > {INSTANCE}/events/{system}/enable")
        yield found
        found += so_far(guest)
    finally:
        guest.run(f"for e in {INSTANCE}/events/qhca*; do echo 0 > $e/enable; done;"
                  f" rmdir {INSTANCE}")

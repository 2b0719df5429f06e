# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of active breaks and recordings, measured alternately in one lab."""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
from pathlib import Path

from ..errors import LabError
from ..lab import Lab, Options
from ..paths import BUILD
from ..record import ftrace
from .perftest import NAME, given, measure, nics, qhca_ends, say

# Room for everything in one run: a full file would cost nothing more.
LIMIT = 16 << 30
BUFFER_KB = 16 << 10
# No QP has this number: the break checks every doorbell and is never met.
NOBODY = 0xFFFFFE


@contextlib.contextmanager
def nothing(_lab, _folder: Path):
    yield


@contextlib.contextmanager
def break_set(lab, _folder: Path):
    """A break that is never met, in each adapter."""
    try:
        for guest in lab.guests:
            with guest.qmp() as qmp:
                qmp.command("qhca-break-add",
                            {"condition": {"on": "doorbell", "number": NOBODY}})
        yield
    finally:
        for guest in lab.guests:
            with guest.qmp() as qmp:
                qmp.command("qhca-break-remove")


@contextlib.contextmanager
def device(lab, folder: Path):
    """Each adapter writes its events and the head of its frames."""
    lost = 0
    try:
        for guest in lab.guests:
            with guest.qmp() as qmp:
                qmp.command("qhca-record-start",
                            {"file": str(folder / guest.name), "limit": LIMIT})
        yield
    finally:
        for guest in lab.guests:
            with guest.qmp() as qmp:
                lost += qmp.command("qhca-record-stop")["lost"]
            (folder / guest.name).unlink(missing_ok=True)
    if lost:
        raise LabError(f"{lost} events were lost, which lowers the cost: use a smaller --seconds")


@contextlib.contextmanager
def guests(lab, _folder: Path):
    """The driver's trace events and the provider's points, in the guests' kernel."""
    try:
        for guest in lab.guests:
            why = ftrace.start(guest, BUFFER_KB)
            if why:
                raise LabError(f"guest {guest.name}: {why}")
        yield
    finally:
        for guest in lab.guests:
            ftrace.clean(guest)


@contextlib.contextmanager
def everything(lab, folder: Path):
    """Everything that `qhca-lab record` enables."""
    with device(lab, folder), guests(lab, folder):
        yield


WAYS = {"off": nothing, "break": break_set, "device": device, "guests": guests,
        "record": everything}


def compare(args, cases) -> int:
    """Measure each case in each of WAYS, print the table, write
    build/bench-tracing.json; the exit status."""
    minutes = len(cases) * args.rounds * len(WAYS) * (args.seconds + 4) / 60
    say(f"booting two guests; then about {minutes:.0f} minutes")
    results = []
    with (
        tempfile.TemporaryDirectory(dir=BUILD, prefix="bench-tracing-") as folder,
        Lab.up(NAME, nics(["qhca"] * 2, args.property), Options(smp=args.smp, tied=True),
               progress=say, replace=True) as lab,
    ):
        ends = qhca_ends(lab)
        for case in cases:
            title, unit, *_ = case
            values: dict[str, list] = {name: [] for name in WAYS}
            for number in range(args.rounds):
                for name in sorted(WAYS, reverse=number % 2):
                    with WAYS[name](lab, Path(folder)):
                        values[name].append(measure(lab, ends, case, args.seconds))
            entry = {"case": title, "unit": unit, "samples": values,
                     **{name: statistics.median(got) for name, got in values.items()}}
            results.append(entry)
            say(row(entry))
    print("\n" + f"{'':18} {'unit':6}" + "".join(f" {name:>18}" for name in WAYS))
    for entry in results:
        print(row(entry))
    print(f"\nmedians of {args.rounds} rounds{given(args.property)}; behind each how much slower than "
          "off. break: one that is never met;\ndevice: the adapter's part of a recording; guests: "
          "driver and provider; record: all of it")
    target = BUILD / "bench-tracing.json"
    target.write_text(json.dumps({"properties": args.property, "results": results},
                                 indent=1) + "\n")
    print(target)
    return 0


def row(entry: dict) -> str:
    text = f"{entry['case']:18} {entry['unit']:6}"
    for name in WAYS:
        slower = entry[name] / entry["off"]
        if entry["unit"] not in ("us", "ms"):
            slower = 1 / slower
        text += f" {entry[name]:>11,.1f}" + (f" {slower:5.2f}x" if name != "off" else " " * 7)
    return text

# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases, and one measurement by perftest."""

from __future__ import annotations

import json
import re
import sys

from .. import machine, pair
from ..errors import LabError
from ..guest import Result

NAME = "bench"
SIZES = {"4 KiB": 4096, "64 KiB": 65536, "1 MiB": 1 << 20}

# (title, unit, program, options, column of the result line, aim)
# Columns: bandwidth tests print bytes, iterations, peak, average MiB/s, Mpps;
# latency tests, with -D, bytes, iterations, average us, tps.
CASES = [
    (f"{verb} {title}", "MiB/s", f"ib_{verb}_bw",
     f"-s {size} -t {128 if size < 65536 else 32 if size < 1 << 20 else 8}", 3,
     20 if size == 65536 else None)
    for title, size in SIZES.items()
    for verb in ("write", "read", "send")
] + [
    ("write 2 B latency", "us", "ib_write_lat", "-s 2", 2, 4),
    ("read 2 B latency", "us", "ib_read_lat", "-s 2", 2, 4),
    ("send 2 B latency", "us", "ib_send_lat", "-s 2", 2, 4),
    ("write 8 B rate", "msg/s", "ib_write_bw", "-s 8", 4, 10),
    ("send 8 B rate", "msg/s", "ib_send_bw", "-s 8", 4, 10),
] + [
    # A program of the tests, as perftest does not measure this.
    (f"register 256 MiB, {pages} pages", "ms", "memory", f"register 256 {pages}", None, None)
    for pages in ("small", "huge")
]  # fmt: skip


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def nics(kinds: list[str], properties: list[str]) -> list[str]:
    """Adapters of these KINDS for a lab; each qhca gets PROPERTIES, "NAME=VALUE"."""
    return [":".join([kind, *properties]) if kind == "qhca" else kind for kind in kinds]


def given(properties: list[str]) -> str:
    """PROPERTIES, to be appended to what a measurement was made with."""
    return f", adapters with {' '.join(properties)}" if properties else ""


def check_properties(properties: list[str]) -> None:
    """LabError unless each of PROPERTIES is "NAME=VALUE", in which this tree's adapter has
    the property NAME. Whether it takes the VALUE, it says itself when a guest starts."""
    if not properties:
        return
    try:
        known = machine.adapter_properties()
    except OSError as error:
        raise LabError(f"no QEMU: {error}") from None
    for text in properties:
        name, equal, value = text.partition("=")
        if not equal or not value or set(value) & set(",:"):
            raise LabError(f"--property {text}: give NAME=VALUE, without commas and colons")
        if name not in known:
            raise LabError(f"the adapter has no property {name}: it has "
                           f"{', '.join(sorted(known)) or 'none'}")


def qhca_ends(lab) -> dict:
    """Device, GID index and address of the adapter in each guest."""
    ends = {}
    for guest in lab.guests:
        env = guest.environment()
        ends[guest.name] = {"device": env["IBDEV"], "index": env["GIDX"], "ip": guest.ip}
    return ends


def command_line(end: dict, case: tuple, seconds: int) -> str:
    """The command of a case for one of both ENDS; the client's ends with the server's
    address."""
    _title, _unit, program, options, *_ = case
    return f"{program} -d {end['device']} -x {end['index']} -F {options} -D {seconds}"


def figure(result: Result, case: tuple) -> float:
    """The result of a perftest client, in the unit of its CASE."""
    _title, unit, _program, _options, column, _aim = case
    rows = re.findall(r"^ *\d+ +\d+ +[\d. \t]+$", result.out, re.M)
    if not rows:
        raise LabError(f"no result line\n{result.describe()}")
    value = float(rows[-1].split()[column])
    return value * 1e6 if unit == "msg/s" else value


def measure(lab, ends: dict, case: tuple, seconds: int) -> float:
    """One run of CASE, one of CASES, from a to b, or in a alone; the figure in its
    unit."""
    _title, _unit, program, options, column, _aim = case
    a = lab["a"]
    if column is None:
        env = {"IBDEV": ends["a"]["device"], "GIDX": str(ends["a"]["index"])}
        out = a.run(f"/qhca/build/guest-progs/{program} {options}", timeout=120, env=env).out
        return float(json.loads(out)["register"])
    _served, result = pair.run_checked(
        lab, ("b", command_line(ends["b"], case, seconds)),
        ("a", f"{command_line(ends['a'], case, seconds)} {ends['b']['ip']}"),
        timeout=60 + 10 * seconds)
    return figure(result, case)

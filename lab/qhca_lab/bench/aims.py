# SPDX-License-Identifier: GPL-2.0-or-later
"""All goals in one table, each judged by what this run has measured.

The goals beside the host need two guests. Those beside an older device (--against) need
four for each kind of link: memory links, the wire alone, a switch, Soft-RoCE at the other
end. What was not measured is in the table, too, with the reason.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import time

from ..errors import LabError
from ..lab import Lab, Options
from ..paths import BUILD
from . import revisions
from .perftest import NAME, given, measure, nics, qhca_ends, say
from .results import judged
from .softroce import HOST_AIMS, beside_host, host_limits

HOST = "host"
NO_REVISION = "no --against"


@dataclasses.dataclass(frozen=True)
class Wire:
    """Where the older device is measured: the options of the labs, and what `status` then
    shows as their link."""

    title: str
    link: str
    peer: str
    shown: str


WIRES = {
    "memory": Wire("memory link", "auto", "qhca", "dgram, memory"),
    "dgram": Wire("wire", "dgram", "qhca", "dgram"),
    "switch": Wire("switch", "switch", "qhca", "switch"),
    "rxe": Wire("to Soft-RoCE", "auto", "rxe", "dgram"),
}


@dataclasses.dataclass(frozen=True)
class Aim:
    """A goal for CASE of perftest. PLACE: HOST or one of WIRES; with a wire, AIM is how many
    times better than the older device it should be."""

    place: str
    case: str
    aim: float


@dataclasses.dataclass
class Place:
    """What was measured at one of the places: entries by case; or WHY nothing was, and per
    case why it failed."""

    entries: dict[str, dict] = dataclasses.field(default_factory=dict)
    why: str = ""
    errors: dict[str, str] = dataclasses.field(default_factory=dict)


def all_aims() -> list[Aim]:
    """Every goal, in the order of the table."""
    found = [Aim(HOST, case, aim) for case, (_of, aim) in HOST_AIMS.items()]
    for place, wire in WIRES.items():
        for case in HOST_AIMS:
            aim = revisions.aim_against(revisions.BASE, case, wire.shown, wire.peer)
            if aim:
                found.append(Aim(place, case, aim))
    return found


def judge(aim: Aim, places: dict[str, Place]) -> dict:
    """A row: the AIM, with `figure` and `reached`, or with `why` it was not measured."""
    row = dataclasses.asdict(aim)
    place = places.get(aim.place) or Place(why="not tried")
    entry = place.entries.get(aim.case)
    if entry is None:
        return row | {"why": place.errors.get(aim.case) or place.why or "left out by --only"}
    if aim.place == HOST:
        told = entry["host"]
        return row | {"unit": entry["unit"], "value": entry["qhca"], "of": told["of"],
                      "figure": told["figure"], "reached": told["reached"]}
    return row | {"unit": entry["unit"], "value": entry["now"], "before": entry["before"],
                  "figure": entry["ratio"], "least": entry["least"], "most": entry["most"],
                  "reached": entry["ratio"] >= aim.aim}


def line(row: dict) -> str:
    """A row of the table."""
    on_host = row["place"] == HOST
    head = f"{'host' if on_host else WIRES[row['place']].title:13} {row['case']:18}"
    if "why" in row:
        return f"{head} not measured: {row['why']}"
    told = f"{row['value']:>12,.1f} {row['unit']:6}"
    if not on_host:
        told += (f" {row['figure']:6.2f} x {row['before']:,.1f} before "
                 f"({row['least']:.2f} to {row['most']:.2f}), aim {row['aim']:g} x")
    elif row["of"]:
        told += f" {row['figure']:6.2f} of {row['of']}, aim {row['aim']:g}"
    else:
        told += f" aim: at most {row['aim']:g} {row['unit']}"
    return f"{head} {told}: {judged(row['reached'])}"


def summary(rows: list[dict]) -> str:
    counts = [sum(row.get("reached") is told for row in rows) for told in (True, False)]
    return (f"{len(rows)} aims: {counts[0]} reached, {counts[1]} missed, "
            f"{len(rows) - sum(counts)} not measured")


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# ----------------------------------------------------------------------- measure


def on_host(args, cases: list[tuple]) -> tuple[Place, dict]:
    """qhca between two guests, and the host's own rates, before and after that."""
    place = Place()
    limits = [host_limits()]
    with Lab.up(NAME, nics(["qhca"] * 2, args.property), Options(smp=args.smp, tied=True),
                progress=say, replace=True) as lab:
        ends = qhca_ends(lab)
        for case in cases:
            title, unit, *_ = case
            try:
                values = [measure(lab, ends, case, args.seconds) for _ in range(args.rounds)]
            except LabError as error:
                place.errors[title] = first_line(error)
                say(f"{title} failed: {first_line(error)}")
                continue
            place.entries[title] = {"case": title, "unit": unit, "samples": values,
                                    "qhca": statistics.median(values)}
        accel, link = lab.state["accel"], lab.state["link"]
    limits.append(host_limits())
    host = {key: statistics.mean(each[key] for each in limits) for key in limits[0]}
    for entry in place.entries.values():
        entry["host"] = beside_host(entry, host)
    return place, {"host": host, "accel": accel, "link": link}


def on_wire(args, wire: Wire, cases: list[tuple], before: revisions.Before) -> Place:
    """This device and BEFORE, on one of WIRES."""
    place = Place()
    with revisions.labs(args, wire.link, wire.peer, before) as labs:
        shown = labs["now"].state["link"]
        if shown != wire.shown:
            return Place(why=f"the link is {shown}, not {wire.shown}")
        for case in cases:
            try:
                place.entries[case[0]] = revisions.alternate(args, labs, case)
            except LabError as error:
                place.errors[case[0]] = first_line(error)
                say(f"{case[0]} failed: {first_line(error)}")
    return place


def compare(args, cases: list[tuple]) -> int:
    """Measure CASES at all places, print the table, write build/bench-aims.json; the exit
    status."""
    aims = all_aims()
    wanted = {place: [case for case in cases
                      if any(a.place == place and a.case == case[0] for a in aims)]
              for place in (HOST, *WIRES)}
    before = revisions.what_before(args.against, args.software) if args.against else None
    runs = len(wanted[HOST]) + sum(2 * len(wanted[p]) for p in WIRES if before)
    say(f"about {runs * args.rounds * (args.seconds + 3) / 60 + 1:.0f} minutes")
    places = {place: Place(why="" if before else NO_REVISION) for place in WIRES}
    facts: dict = {}
    try:
        places[HOST], facts = on_host(args, wanted[HOST]) if wanted[HOST] else (Place(), {})
    except LabError as error:
        places[HOST] = Place(why=first_line(error))
    for name, wire in WIRES.items():
        if before and wanted[name]:
            say(f"{wire.title} ...")
            try:
                places[name] = on_wire(args, wire, wanted[name], before)
            except LabError as error:
                places[name] = Place(why=first_line(error))
    rows = [judge(aim, places) for aim in aims]
    print()
    for row in rows:
        print(line(row))
    print(f"\n{summary(rows)}")
    if facts:
        print(f"guests run under {facts['accel']}, link {facts['link']}{given(args.property)}; "
              "the host itself: "
              + ", ".join(f"{key} {value:,.0f}" for key, value in facts["host"].items()))
    if before:
        print(f"before: {args.against}{before.note}")
    target = BUILD / "bench-aims.json"
    target.write_text(json.dumps({
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "against": args.against,
        "properties": args.property, **facts, "aims": rows}, indent=1) + "\n")
    print(target)
    if any(p.errors or p.why not in ("", NO_REVISION) for p in places.values()):
        return 1
    return int(args.strict and any(row.get("reached") is False for row in rows))

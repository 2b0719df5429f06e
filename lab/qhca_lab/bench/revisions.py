# SPDX-License-Identifier: GPL-2.0-or-later
"""The device of this tree and that of another revision, alternately."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import NamedTuple

from .. import kernels
from ..errors import LabError
from ..lab import Lab, Options
from ..paths import BUILD, TOP
from .perftest import NAME, given, measure, nics, qhca_ends, say
from .results import judged

# The revision at which the goals were set, before memory links and super-frames, and how
# many times better than its device a case should be, by the kind of link.
BASE = "9add8dd"
BASE_AIMS = {
    "dgram, memory": {f"{verb} 2 B latency": 2.0 for verb in ("write", "read", "send")},
    "dgram": {f"{verb} 64 KiB": 2.0 for verb in ("write", "read", "send")},
}
# Through a switch, or to Soft-RoCE, no case should be slower.
NOT_SLOWER = 1.0


def aim_against(revision: str, title: str, link: str, peer: str) -> float | None:
    """How many times better than REVISION a case should be on LINK (as `status` shows it)
    with an adapter PEER at the other end; None if there is no goal."""
    if not revision.startswith(BASE):
        return None
    if peer != "qhca" or link == "switch":
        return NOT_SLOWER
    return BASE_AIMS.get(link, {}).get(title)


def verdict(entry: dict) -> str:
    """Whether the median of the ratios reaches the goal; if not, whether some round does."""
    aim = entry.get("aim")
    if not aim:
        return ""
    told = ("reached in some rounds" if entry["ratio"] < aim <= entry["most"]
            else judged(entry["ratio"] >= aim))
    return f"  (aim {aim:g} x: {told})"


def resolved(revision: str) -> str:
    """The short hash of REVISION."""
    done = subprocess.run(["git", "-C", str(TOP), "rev-parse", "--verify", "--short",
                           revision + "^{commit}"], check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"no such revision: {revision}")
    return done.stdout.strip()


def build_before(name: str, software: bool) -> str:
    """The QEMU of the revision with the hash NAME, built in a folder of its own; with SOFTWARE,
    its driver and its provider as well."""
    tree = BUILD / "against" / name
    if not tree.exists():
        new = tree.with_suffix(".new")
        new.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "-C", str(TOP), "archive", name], check=True,
                                 stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(new)], input=archive.stdout, check=True)
        new.rename(tree)
    env = dict(os.environ, QHCA_BUILD=str(tree / "build"),
               QHCA_CACHE=os.environ.get("QHCA_CACHE", str(BUILD / "cache")))
    what = ["qemu", *(("driver", "provider") if software else ())]
    say(f"{', '.join(what)} of {name} ...")
    # By make, because older revisions have their scripts elsewhere.
    subprocess.run(["make", "-s", "-C", str(tree), *what], check=True, env=env)
    return str(tree / "build/bin/qemu-system-x86_64")


class Before(NamedTuple):
    """What --against means: a QEMU, its revision ("": it was given by its path), and the folder
    of the build whose driver and provider its guests use (None: those of this tree)."""

    binary: str
    revision: str = ""
    software: str | None = None

    @property
    def note(self) -> str:
        """What the table says of it, after its name."""
        return ", with its driver and provider" if self.software else ""


def is_qemu(against: str) -> bool:
    return os.path.isfile(against) and os.access(against, os.X_OK)


def is_file(against: str) -> bool:
    """A file of figures, and neither a QEMU nor a revision?"""
    return against.endswith(".json") or (os.path.isfile(against) and not is_qemu(against))


def what_before(against: str, software: bool) -> Before:
    """What --against AGAINST means, built if need be; SOFTWARE: with driver and provider."""
    if is_qemu(against):
        if software:
            raise LabError("--software needs a revision: a QEMU has no driver and no provider")
        return Before(against)
    revision = resolved(against)
    # That device refuses today's driver, whose Ethernet queues have longer contexts.
    software = software or revision.startswith(BASE)
    if software and kernels.usual() != kernels.DEFAULT:
        raise LabError("--software is for guests with the default kernel: its driver is "
                       "built for no other")
    binary = build_before(revision, software)
    return Before(binary, revision, str(Path(binary).parents[1]) if software else None)


@contextlib.contextmanager
def frozen(wanted: dict[str, tuple[str, list[str], Options]]):
    """Labs by the keys of WANTED, each with its name, its adapters and its options, all frozen."""
    with contextlib.ExitStack() as stack:
        found = {}
        for key, (name, kinds, options) in wanted.items():
            found[key] = stack.enter_context(
                Lab.up(name, kinds, options, progress=say, replace=True))
            found[key].freeze()
        yield found
        for lab in found.values():
            lab.thaw()


def labs(args, link: str, peer: str, before: Before):
    """Two labs, frozen: `now` with this tree's device, and `before` with BEFORE. Their wire is
    LINK, and the adapter of their second guests PEER."""
    kinds = ["qhca", peer]
    options = Options(smp=args.smp, tied=True, link=link)
    return frozen({
        "now": (NAME, nics(kinds, args.property), options),
        "before": (NAME + "-before", kinds, dataclasses.replace(
            options, binary=before.binary, software=before.software)),
    })


def alternate(args, both: dict[str, Lab], case: tuple) -> dict:
    """Measure CASE in BOTH labs, alternately; the medians, and those of the ratios."""
    title, unit, *_ = case
    values: dict[str, list] = {name: [] for name in both}
    for number in range(args.rounds):
        for name in sorted(both, reverse=number % 2):
            both[name].thaw()
            try:
                values[name].append(measure(both[name], qhca_ends(both[name]), case, args.seconds))
            finally:
                both[name].freeze()
    ratios = sorted(b / a if unit in ("us", "ms") else a / b
                    for a, b in zip(values["now"], values["before"]))
    return {"case": title, "unit": unit, "samples": values,
            "ratio": statistics.median(ratios), "least": ratios[0], "most": ratios[-1],
            **{name: statistics.median(got) for name, got in values.items()}}


def compare(args, cases) -> int:
    """The device of this tree against that of another revision, alternately."""
    before = what_before(args.against, args.software)
    minutes = len(cases) * args.rounds * 2 * (args.seconds + 3) / 60
    say(f"booting four guests; then about {minutes:.0f} minutes")
    results = []
    with labs(args, args.link, args.peer, before) as both:
        link = both["now"].state["link"]
        for case in cases:
            entry = alternate(args, both, case)
            entry["aim"] = aim_against(before.revision, case[0], link, args.peer)
            results.append(entry)
            say(ratio_row(entry))
    print(f"\n{'':18} {'now':>12} {'before':>12} {'unit':6} {'ratio':>7} {'least':>7} {'most':>7}")
    for entry in results:
        print(ratio_row(entry))
    print(f"\nbefore: {args.against}{before.note}; link {link}, from qhca to {args.peer}"
          f"{given(args.property)}; a ratio above 1 is better than before; least and most are of "
          f"{args.rounds} rounds")
    target = BUILD / "bench-against.json"
    target.write_text(json.dumps({
        "against": args.against, "link": link, "peer": args.peer, "properties": args.property,
        "results": results}, indent=1) + "\n")
    print(target)
    missed = [e for e in results if e["aim"] and e["ratio"] < e["aim"]]
    return int(bool(args.strict and missed))


def ratio_row(entry: dict) -> str:
    return (f"{entry['case']:18} {entry['now']:>12,.1f} {entry['before']:>12,.1f} "
            f"{entry['unit']:6} {entry['ratio']:7.3f} {entry['least']:7.3f} {entry['most']:7.3f}"
            f"{verdict(entry)}")

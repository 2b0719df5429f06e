# SPDX-License-Identifier: GPL-2.0-or-later
"""qhca-lab fault: the command line for fault injection."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from . import fault, scenario
from .lab import Lab

# Counters that show the effect of a fault, in the order of cause and effect.
TOLD = (
    "roce-tx-packets", "roce-rx-packets", "roce-retransmits", "roce-timeouts",
    "roce-seq-nak-tx", "roce-seq-nak-rx", "roce-rnr-nak-tx", "roce-rnr-nak-rx",
    "roce-retry-exceeded", "roce-rnr-exceeded", "roce-duplicate",
    "roce-out-of-sequence", "roce-icrc-errors", "roce-access-errors",
    "roce-op-errors", "roce-inv-req-errors", "roce-rx-no-qp", "dma-errors",
    "table-errors", "cq-overflows",
)  # fmt: skip


def _lab(args) -> Lab:
    return Lab.load(args.name)


def cmd_add(args) -> int:
    info = fault.add(_lab(args)[args.guest], fault.parse(args.rule))
    print(f"{args.guest} {info['id']}: {fault.text(info['fault'])}")
    return 0


def _line(guest: str, f: dict) -> str:
    hits = f"{f['hits']} hit{'s' * (f['hits'] != 1)} of {f['matches']}"
    return f"  {guest} {f['id']}: {fault.text(f['fault'])}: {hits}"


def cmd_list(args) -> int:
    lab = _lab(args)
    guests = [lab[args.guest]] if args.guest else [
        g for g in lab.guests if g.nic.split(":")[0] == "qhca"]
    found = {g.name: fault.listed(g) for g in guests}
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    for name, listed in found.items():
        print(f"guest {name}: seed {listed['seed']}, {len(listed['faults'])} faults, "
              f"{listed['held']} packets and interrupts held")
        for f in listed["faults"]:
            print(_line(name, f))
    return 0


def cmd_remove(args) -> int:
    fault.remove(_lab(args)[args.guest], args.id)
    return 0


def cmd_seed(args) -> int:
    fault.seed(_lab(args)[args.guest], args.seed)
    return 0


def cmd_scenarios(args) -> int:
    for name in scenario.names():
        print(f"{name:14} {scenario.load(name).about}")
    return 0


def cmd_check(args) -> int:
    for name in args.scenario:
        found = scenario.load(name)
        print(f"{name}: {len(found.faults)} faults for guests {', '.join(found.guests)}")
    return 0


def show(outcome: scenario.Outcome, about: str) -> None:
    print(f"scenario {outcome.scenario} (seed {outcome.seed}): {about}")
    for name, status in outcome.status.items():
        if name in outcome.output:
            for line in outcome.output[name].rstrip().splitlines():
                print(f"  {name}| {line}")
        ended = "was killed after the time limit" if status is None else f"ended with {status}"
        print(f"{'command' if name == 'command' else 'guest ' + name} {ended}")
    print("faults:")
    for f in outcome.faults:
        print(_line(f["guest"], f))
    print("counters that went up:")
    for name, counters in outcome.counters.items():
        for counter in TOLD:
            if counter in counters:
                print(f"  {name} {counter} +{counters[counter]}")


def cmd_run(args) -> int:
    found = scenario.load(args.scenario)
    if args.seed is not None:
        found.seed = args.seed
    outcome = scenario.run(_lab(args), found, args.rest or None)
    if args.json:
        print(json.dumps(dataclasses.asdict(outcome), indent=1))
    else:
        sys.stdout.flush()
        show(outcome, found.about)
    if not all(f["hits"] for f in outcome.faults):
        print("qhca-lab: note: a fault was never hit", file=sys.stderr)
    if args.rest:
        return outcome.status["command"]
    return 0 if None not in outcome.status.values() else 124


def add_parser(command) -> None:
    """Add "fault" by COMMAND, which makes a subparser."""
    p = command("fault", None, "inject repeatable faults into an adapter; see "
                "docs/how-to/inject-faults.md")
    sub = p.add_subparsers(dest="fault", required=True, metavar="WHAT")

    def what(word, run, text):
        q = sub.add_parser(word, help=text, description=text)
        q.add_argument("--name", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        q.set_defaults(run=run)
        return q

    q = what("add", cmd_add, "add a fault to a guest's adapter")
    q.add_argument("guest")
    q.add_argument("rule", help="ACTION,KEY=VALUE,... as in QMP's qhca-fault-add; also 250us, "
                   "3ms, 1s for nanoseconds, and 5-9 for KEY=5,KEY-last=9")
    q = what("list", cmd_list, "list the faults and how often each has hit")
    q.add_argument("guest", nargs="?")
    q.add_argument("--json", action="store_true")
    q = what("remove", cmd_remove, "remove one fault of a guest, or all")
    q.add_argument("guest")
    q.add_argument("id", nargs="?", type=int)
    q = what("seed", cmd_seed, "set the seed and reset all counts")
    q.add_argument("guest")
    q.add_argument("seed", type=int)
    what("scenarios", cmd_scenarios, "list the scenarios in lab/scenarios")
    q = what("check", cmd_check, "check scenario files")
    q.add_argument("scenario", nargs="+")
    q = what("run", cmd_run, "run a scenario (a name or a .toml file) with a host command "
             "after --, or with its own commands")
    q.add_argument("scenario")
    q.add_argument("--seed", type=int, help="override the scenario's seed")
    q.add_argument("--json", action="store_true")


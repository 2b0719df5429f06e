# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of lab/qhca-scope."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

from qhca_lab import LabError

from . import ethernet, render, sync_daemon, watch
from .errors import ScopeError, Usage
from .machine import AT_BREAK, Machine
from .parsing import coded, number
from .scope import Scope
from .style import Style

DESCRIPTION = """\
Inspect the adapters of a lab: any object, its rings and buffer tables. Stop them
at any event, and step them by WQE or packet.

Without a command, the terminal interface opens. Any other command is a kind of
object (qp, cq, srq, eq, mr, pd, gid, ...; scope ls lists them) and shows all
objects of that kind, or the one with the number that follows."""

EXAMPLES = """\
examples:
  scope ls                            guests and their numbers of objects
  scope qp                            all QPs
  scope qp 17                         one QP, decoded; --raw adds the bytes of its context
  scope ring qp 17 sq                 its send queue, with producer and consumer
  scope walk qp 17 sq 10              the buffer table to WQE 10, hop by hop
  scope walk mr 0x1a02 --va 0x7f0000001000
  scope break doorbell --qpn 17       stop right after the store that rings it
  scope break packet-in --opcode RC_SEND_ONLY --psn 100 --once
  scope wait --timeout 30             wait for a stop; show why, and the trail
  scope step wqe -n 3                 step three WQEs
  scope continue                      resume all guests
  scope watch --json | jq .           a line for each stop, until Ctrl-C

exit status: 0 done, 1 error, 2 usage error, 3 no such object, 4 timeout,
130 Ctrl-C. All commands are in docs/reference/qhca-scope.md."""


class Output:
    """Where output goes: lines for people, or JSON for programs."""

    def __init__(self, args):
        self.get: str | None = args.get
        self.json: bool = args.json or bool(self.get)
        self.wide: bool = args.wide
        self.style = Style.of(sys.stdout, args.colour)

    @property
    def width(self) -> int:
        return 0 if self.wide else self.style.width

    def data(self, value) -> None:
        if self.get:
            value = picked(value, self.get)
        plain = self.get and render.is_plain(value)
        print(render.scalar("", value) if plain else json.dumps(value, indent=1), flush=True)

    def lines(self, lines: list[render.Line]) -> None:
        paint, draw = self.style.paint, self.style.draw
        for line in lines:
            print("".join(paint(kind, draw(text)) for kind, text in line).rstrip())
        sys.stdout.flush()

    def say(self, text: str, kind: str = "number") -> None:
        self.lines([[(kind, text)]])


def picked(value, path: str):
    """The part of VALUE at PATH: look.event.qpn, look.objects.0.key."""
    at = []
    for word in path.split("."):
        here = value if isinstance(value, dict) else (
            dict(zip(map(str, range(len(value))), value)) if isinstance(value, list) else {})
        if word not in here:
            where = ".".join(at) or "the answer"
            raise Usage(f"{where} has no {word!r}", "there are: " + (", ".join(here) or "none"))
        value = here[word]
        at.append(word)
    return value


def chosen(args, scope: Scope) -> Machine:
    """The machine to which a command applies."""
    if args.guest:
        machine = scope[args.guest]
        if not machine.has_adapter:
            raise ScopeError(
                f"guest {machine.name} has no qhca adapter ({machine.guest.nic})",
                "choose one of " + (", ".join(m.name for m in scope.adapters) or "a new lab"),
            )
        return machine
    return scope.default()


def several(args, scope: Scope) -> list[Machine]:
    """The given guest, or all with an adapter."""
    return [chosen(args, scope)] if args.guest else [m for m in scope.adapters if m.guest.alive]


def answer(out: Output, machine: Machine, whole: dict, lines, **more) -> None:
    """Print an inspection result with its guest."""
    if out.json:
        out.data({"guest": machine.name, **more, **whole})
    else:
        out.lines([[("dim", f"guest {machine.name}, device clock "
                     f"{whole['time'] / 1e9:.9f} s")], *lines])


# -------------------------------------------------------------------- looks


def cmd_ls(args, scope: Scope, out: Output) -> int:
    """Guests with the number of their objects."""
    found = {}
    for machine in scope.machines.values():
        entry = {"nic": machine.guest.nic, "run": None}
        if machine.guest.alive:
            entry["run"] = machine.state()
            if machine.has_adapter:
                look = machine.inspect("device")
                there = look["objects"]
                entry["objects"] = {k: there[k] for k in machine.kinds() if k in there}
                entry["clock"] = look["clock"]
        found[machine.name] = entry
    if out.json:
        out.data({"lab": scope.lab.name, "together": scope.together, "guests": found})
        return 0
    out.say(f"lab {scope.lab.name}", "title")
    rows = [{"guest": n, "adapter": e["nic"].split(":")[0], "run": run_text(e["run"]),
             **e.get("objects", {})} for n, e in found.items()]
    out.lines(render.table(rows, out.width, full=out.wide, keep=True))
    return 0


def run_text(state: str | None) -> str:
    return {None: "ended", AT_BREAK: "at a break", "paused": "frozen"}.get(state, state)


def cmd_show(args, scope: Scope, out: Output) -> int:
    """All of a kind, or one object."""
    if len(args.numbers) > 1:
        raise Usage(f"one number is enough: scope {args.kind} {args.numbers[0]}")
    machine = chosen(args, scope)
    if args.kind not in machine.kinds():
        raise Usage(
            f"{args.kind!r} is neither a command nor a kind of object",
            "kinds: " + ", ".join(machine.kinds()) + "; commands: scope --help",
        )
    if args.numbers or args.kind == "device":
        arguments = {"object": args.kind}
        if args.numbers:
            arguments["number"] = number(args.numbers[0], 32)
        whole = machine.look("qhca-inspect", **arguments)
    else:
        whole = machine.all(args.kind, args.limit)
    answer(out, machine, whole,
           render.look_lines(whole["look"], out.width, args.full, args.raw))
    return 0


def target(words: list[str]) -> tuple[dict, list[str]]:
    """KIND NUMBER [RING] of WORDS, and the remaining words."""
    if len(words) < 2:
        raise Usage("specify an object: KIND NUMBER [RING]", "for example: qp 17 sq")
    arguments = {"object": words[0], "number": number(words[1], 32)}
    rest = words[2:]
    if rest and not rest[0][:1].isdigit():
        arguments["ring"] = rest.pop(0)
    return arguments, rest


def check_ring(machine: Machine, arguments: dict) -> None:
    known = machine.choices("qhca-ring", "ring")
    if "ring" in arguments and arguments["ring"] not in known:
        raise Usage(f"no such ring: {arguments['ring']!r}", "there are: " + ", ".join(known))


def cmd_ring(args, scope: Scope, out: Output) -> int:
    """Entries of a ring."""
    arguments, rest = target(args.what)
    if rest:
        raise Usage(f"what is {rest[0]!r}?", "entries are chosen with --from and --count")
    machine = chosen(args, scope)
    check_ring(machine, arguments)
    if args.start is not None:
        arguments["index"] = args.start
        arguments["count"] = args.count or 8
    elif args.count is not None:
        look = machine.look("qhca-ring", **arguments)["look"]
        first = look["entries"][0].get("index", 0) if look["entries"] else 0
        arguments.update(index=first, count=args.count)
    whole = machine.look("qhca-ring", **arguments)
    answer(out, machine, whole, render.ring_lines(whole["look"], out.width, args.full))
    return 0


def cmd_walk(args, scope: Scope, out: Output) -> int:
    """The path through a buffer table."""
    arguments, rest = target(args.what)
    if rest:
        arguments["index"] = number(rest.pop(0), 32)
    if rest:
        raise Usage(f"what is {rest[0]!r}?", "scope walk KIND NUMBER [RING] INDEX")
    for name in ("va", "offset"):
        if getattr(args, name) is not None:
            arguments[name] = getattr(args, name)
    ways = [n for n in ("index", "va", "offset") if n in arguments]
    if len(ways) != 1:
        raise Usage("give one of an index, --offset and --va",
                    "scope walk qp 17 sq 10; scope walk mr KEY --va ADDRESS")
    machine = chosen(args, scope)
    check_ring(machine, arguments)
    whole = machine.look("qhca-walk", entries=args.entries, bytes=args.bytes, **arguments)
    answer(out, machine, whole, render.walk_lines(whole["look"]))
    return 0


def cmd_tree(args, scope: Scope, out: Output) -> int:
    """A whole buffer table."""
    arguments, rest = target(args.what)
    if rest:
        raise Usage(f"what is {rest[0]!r}?", "pages are chosen with --from and --count")
    machine = chosen(args, scope)
    check_ring(machine, arguments)
    whole = machine.look("qhca-tree", **arguments, **{"from": args.start, "count": args.count})
    answer(out, machine, whole, render.tree_lines(whole["look"]))
    return 0


def cmd_eth(args, scope: Scope, out: Output) -> int:
    """The Ethernet function, or the frames in a receive queue."""
    machine = chosen(args, scope)
    if args.queue is None:
        look = ethernet.overview(machine)
        if out.json:
            out.data({"guest": machine.name, **look})
        else:
            out.lines(ethernet.overview_lines(look, out.width))
        return 0
    found = ethernet.frames(machine, args.queue, args.count)
    if out.json:
        out.data({"guest": machine.name, "queue": args.queue, "frames": found})
    else:
        out.lines(ethernet.frame_lines(found))
    return 0


def cmd_counters(args, scope: Scope, out: Output) -> int:
    """The statistics of the adapters, side by side."""
    found = {m.name: m.inspect("device")["counters"] for m in several(args, scope)}
    if not found:
        raise ScopeError(f"no guest of lab {scope.lab.name} has a qhca that runs")
    names = list(next(iter(found.values())))
    names = [n for n in names if all(w in n for w in args.words)]
    if args.words and not names:
        raise Usage(f"no counter has {' and '.join(args.words)} in its name",
                    "scope counters --all lists them")
    if not args.all and not args.words:
        names = [n for n in names if any(c.get(n) for c in found.values())]
    if out.json:
        out.data({"counters": {g: {n: c[n] for n in names} for g, c in found.items()}})
    else:
        out.lines(render.table([{"counter": n, **{g: c[n] for g, c in found.items()}}
                               for n in names], full=True, keep=True))
    return 0


# ------------------------------------------------------------------- breaks

FIELDS = ("number", "peer", "index", "psn", "code", "wr-id", "syndrome")
# Options that name an object, and the field of each event that has its number. For
# events that are not listed it is `number`, whatever the kind.
OBJECTS = ("qpn", "cqn", "eqn", "srqn", "vector", "object")
QPN_ALONE = {"qpn": "number"}
OBJECT_FIELDS = {
    **dict.fromkeys(("wqe", "recv-wqe", "packet", "packet-in", "packet-out", "drop", "state",
                     "retransmit", "timer", "data", "resume"), QPN_ALONE),
    "cqe": {"cqn": "number", "qpn": "peer"},
    "event": {"eqn": "number", "qpn": "peer", "cqn": "peer", "srqn": "peer", "object": "peer"},
    "interrupt": {"vector": "number"},
}
# Numbers of different kinds of objects may be the same; their doorbells differ.
DOORBELLS = {"qpn": "SQ", "cqn": "CQ_ARM", "eqn": "EQ", "srqn": "TM"}


def object_fields(args, event: dict) -> dict:
    """What --qpn, --cqn and so on mean for the event: {field: text}."""
    fields = {}
    known = OBJECT_FIELDS.get(args.on, dict.fromkeys(OBJECTS, "number"))
    for name in OBJECTS:
        text = getattr(args, name)
        if text is None:
            continue
        if name not in known:
            raise Usage(f"a {args.on} has no {name}",
                        "it can be chosen by " + ", ".join(f"--{n}" for n in known))
        field = known[name]
        if field in fields or getattr(args, field) is not None:
            raise Usage(f"--{name} is given twice: it is the {field} of a {args.on}")
        fields[field] = text
        bell = DOORBELLS.get(name) if args.on == "doorbell" and args.code is None else None
        if bell in [n["name"] for n in event["codes"]]:
            fields["code"] = bell
    return fields


def condition_of(args, machine: Machine) -> dict:
    """The condition that the options specify; names become codes."""
    events = machine.names()
    if args.on not in events:
        raise Usage(f"no event is called {args.on!r}", "there are: " + ", ".join(events))
    event = events[args.on]
    condition = {"on": args.on}
    given = {
        "number": args.number, "peer": args.peer, "index": args.index, "psn": args.psn,
        "code": args.code, "wr-id": args.wr_id, "syndrome": args.syndrome,
        **object_fields(args, event),
    }
    for field, text in given.items():
        if text is None:
            continue
        if field not in event["fields"]:
            raise Usage(
                f"a {args.on} has no {field}",
                "it can be chosen by " + (", ".join(event["fields"]) or "nothing more"),
            )
        if field == "code":
            condition[field] = coded(text, event["codes"], "code")
        elif field == "syndrome":
            condition[field] = coded(text, event["syndromes"], "syndrome")
            if condition[field] > 0xFF:
                raise Usage(f"{text} is too big: a syndrome has 8 bits")
        else:
            condition[field] = number(text, 64 if field == "wr-id" else 32)
    if args.ignore:
        condition["ignore"] = args.ignore
    if args.once:
        condition["once"] = True
    return condition


def condition_text(condition: dict, names: dict[str, dict]) -> str:
    """A condition in words, codes by name."""
    event = names.get(condition["on"], {"codes": [], "syndromes": []})
    text = condition["on"]
    for field, value in condition.items():
        if field == "on":
            continue
        known = {"code": event["codes"], "syndrome": event["syndromes"]}.get(field, [])
        name = next((n["name"] for n in known if n["code"] == value), None)
        value = name or render.compact(field.replace("-", "_"), value)
        text += f", {field} {value}"
    return text


def cmd_break(args, scope: Scope, out: Output) -> int:
    """Set a break."""
    machine = chosen(args, scope)
    info = scope.add_break(machine, condition_of(args, machine))
    if args.wait is not None:
        if not out.json:
            out.say(break_text(machine, info))
        scope.wait_stop([machine], args.wait or None)
        return show_stop(machine, scope, out)
    if out.json:
        out.data({"guest": machine.name, **info})
    else:
        out.say(break_text(machine, info))
    return 0


def break_text(machine: Machine, info: dict) -> str:
    condition = condition_text(info["condition"], machine.names())
    return f"guest {machine.name}: break {info['id']}, {condition}"


def cmd_breaks(args, scope: Scope, out: Output) -> int:
    """List breaks."""
    found = [(m, info) for m in several(args, scope) for info in m.breaks()]
    if out.json:
        out.data({"breaks": [{"guest": m.name, **info} for m, info in found]})
    elif not found:
        out.say("no break is set", "dim")
    else:
        out.lines(render.table([
            {"guest": m.name, "id": i["id"], "hits": i["hits"],
             "condition": condition_text(i["condition"], m.names())} for m, i in found
        ], full=True, keep=True))
    return 0


def cmd_delete(args, scope: Scope, out: Output) -> int:
    """Remove breaks."""
    there = [(m, info["id"]) for m in several(args, scope) for info in m.breaks()]
    gone = []
    if not args.ids and not args.all:
        raise Usage("specify a break: scope delete ID, or --all",
                    "scope breaks lists them")
    for text in args.ids:
        wanted = number(text, 32)
        found = [(m, i) for m, i in there if i == wanted]
        if not found:
            raise ScopeError(f"there is no break {wanted}",
                             "there are: " + (", ".join(f"{i} of guest {m.name}" for m, i in there)
                                              or "none"))
        if len(found) > 1:
            raise Usage(f"guests {', '.join(m.name for m, _ in found)} have a break {wanted}",
                        "choose one with --guest")
        gone += found
    for machine, wanted in gone if args.ids else there:
        machine.remove_break(wanted)
    gone = gone if args.ids else there
    if out.json:
        out.data({"deleted": [{"guest": m.name, "id": i} for m, i in gone]})
    else:
        out.say("deleted: " + (", ".join(f"{i} of guest {m.name}" for m, i in gone) or "none"))
    return 0


def cmd_names(args, scope: Scope, out: Output) -> int:
    """The fields that a condition can have, and the names of codes."""
    names = chosen(args, scope).names()
    if args.on and args.on not in names:
        raise Usage(f"no event is called {args.on!r}", "there are: " + ", ".join(names))
    if out.json:
        out.data({"events": [names[args.on]] if args.on else list(names.values())})
    elif args.on:
        event = names[args.on]
        out.say(f"{args.on}: {', '.join(event['fields'])}", "title")
        for key in ("codes", "syndromes"):
            if event[key]:
                out.lines([[("title", key)], *render.table(event[key], full=True)])
    else:
        out.lines(render.table([
            {"event": n, "fields": ", ".join(e["fields"]), "codes": len(e["codes"]),
             "syndromes": len(e["syndromes"])} for n, e in names.items()], full=True, keep=True))
    return 0


# ------------------------------------------------------- stopping and resuming


def show_stop(machine: Machine, scope: Scope, out: Output) -> int:
    whole = machine.stop_look()
    look = whole["look"]
    if out.json:
        out.data({"guest": machine.name, "run": machine.state(), "states": scope.states(),
                  **whole})
        return 0
    state = machine.state()
    lines: list[render.Line] = []
    if look["stopped"]:
        lines.append([("title", f"guest {machine.name} stopped: "),
                      ("path", render.sentence(look))])
    elif look.get("steps_left"):
        lines.append([("title", f"guest {machine.name} is {run_text(state)}, "
                       f"{look['steps_left']} {look['stepping']} to go")])
    else:
        lines.append([("title", f"guest {machine.name} is {run_text(state)}")])
    others = [f"{n} {run_text(s)}" for n, s in scope.states().items() if n != machine.name]
    if others:
        lines.append([("dim", "others: " + ", ".join(others))])
    if look.get("trail"):
        lines.append([("dim", "trail, microseconds before the last:")])
        lines += render.trail_lines(look)
    out.lines(lines)
    return 0


def cmd_stop(args, scope: Scope, out: Output) -> int:
    """Why it stopped."""
    return show_stop(chosen(args, scope), scope, out)


def cmd_wait(args, scope: Scope, out: Output) -> int:
    """Wait for a stop."""
    try:
        machine = scope.wait_stop(several(args, scope), args.timeout)
    except ScopeError as error:
        if error.status == 4 and not error.hint:
            error.hint = "scope breaks lists the breaks that are set"
        raise
    return show_stop(machine, scope, out)


def cmd_step(args, scope: Scope, out: Output) -> int:
    """Continue to an event."""
    machine = chosen(args, scope)
    scope.step(machine, args.on, args.count)
    if args.no_wait:
        if out.json:
            out.data({"guest": machine.name, "stepping": args.on, "count": args.count})
        else:
            out.say(f"guest {machine.name} continues for {args.count} {args.on}; "
                    "scope wait waits for the stop")
        return 0
    try:
        scope.wait_running_stop(machine, args.timeout)
    except ScopeError as error:
        if error.status == 4:
            error.hint = (f"there were fewer than {args.count} {args.on}; the steps were "
                          "cancelled and all guests run")
        raise
    return show_stop(machine, scope, out)


def cmd_continue(args, scope: Scope, out: Output) -> int:
    """Resume all guests."""
    gone = scope.go()
    if args.wait is not None:
        return cmd_wait(argparse.Namespace(guest=args.guest, timeout=args.wait or None),
                        scope, out)
    report_guests(out, gone, "resumed", "all guests were running", "continued")
    return 0


def cmd_freeze(args, scope: Scope, out: Output) -> int:
    """Stop all."""
    report_guests(out, scope.freeze(), "stopped", "all guests were stopped", "frozen")
    return 0


def report_guests(out: Output, names: list[str], did: str, none: str, key: str) -> None:
    if out.json:
        out.data({key: names})
    else:
        many = "s" if len(names) > 1 else ""
        out.say(f"guest{many} {', '.join(names)} {did}" if names else none)


def cmd_together(args, scope: Scope, out: Output) -> int:
    """Whether one guest's stop stops the others."""
    if args.switch:
        scope.set_together(args.switch == "on")
    if out.json:
        out.data({"together": scope.together})
    else:
        out.say("a guest that stops at a break stops the others" if scope.together else
                "a guest that stops at a break leaves the others running: they may exhaust their retries")
    return 0


def cmd_watch(args, scope: Scope, out: Output) -> int:
    """A line for each stop or change."""
    return watch.watch(several(args, scope), out, args.trail)


def cmd_keep(args, scope: Scope, out: Output) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return sync_daemon.keep(scope)


def cmd_cleanup(args, scope: Scope, out: Output) -> int:
    from .tui import cleanup

    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return cleanup.main(scope)


def cmd_tui(args, scope: Scope, out: Output) -> int:
    """The terminal interface."""
    from .tui import app

    return app.run(scope, args.guest, args.colour, args.page)


def cmd_draw(args, scope: Scope, out: Output) -> int:
    """Figures; the module is qhca_scope.draw."""
    return args.module.run(args, chosen(args, scope))


# ------------------------------------------------------------------- parser


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def typed(bits: int):
    def convert(text: str) -> int:
        try:
            return number(text, bits)
        except Usage as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return convert


def common_options() -> argparse.ArgumentParser:
    """Options of every command, before or after its name."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("common options")
    group.add_argument("--lab", metavar="NAME",
                       help="the lab (default: $QHCA_LAB, or the only one that is up)")
    group.add_argument("--guest", "-g", metavar="LETTER",
                       help="the guest (default: the one that is stopped at a break, "
                       "otherwise the first with a qhca)")
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--get", metavar="PATH",
                       help="print one value of the JSON output: --get look.event.qpn")
    group.add_argument("--wide", action="store_true", help="print all columns, even if lines get longer than the terminal")
    group.add_argument("--colour", "--color", choices=("auto", "always", "never"),
                       help="colour (default: auto; NO_COLOR and TERM=dumb disable it)")
    return common


def parser() -> tuple[argparse.ArgumentParser, dict]:
    common = common_options()
    top = argparse.ArgumentParser(
        prog="scope", description=DESCRIPTION, epilog=EXAMPLES, parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub = top.add_subparsers(dest="cmd", metavar="COMMAND")

    def command(word, run, text, example="", **kwargs):
        p = sub.add_parser(
            word, help=text, description=text[:1].upper() + text[1:] + ".", parents=[common],
            epilog=example, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)
        p.set_defaults(run=run)
        return p

    command("ls", cmd_ls, "list guests and how many objects each has")

    p = command("show", cmd_show, "show objects: `scope qp` and `scope qp 17` are short for "
                "`scope show qp`, `scope show qp 17`")
    p.add_argument("kind", metavar="KIND")
    p.add_argument("numbers", metavar="NUMBER", nargs="*", help="one object; for an mr its key")
    p.add_argument("--raw", action="store_true", help="also print the bytes of the context")
    p.add_argument("--full", action="store_true", help="also print columns that are all zero")
    p.add_argument("--limit", type=typed(32), metavar="N", help="print at most N objects")

    p = command("ring", cmd_ring, "show entries of a ring, with its producer (P), consumer (C) "
                "and next to fetch (N)", "example: scope ring qp 17 sq --from 8 --count 4")
    p.add_argument("what", nargs="+", metavar="KIND NUMBER [RING]")
    p.add_argument("--from", dest="start", type=typed(32), metavar="INDEX",
                   help="counter of the first entry (default: around the entries in use)")
    p.add_argument("--count", type=typed(32), metavar="N", help="number of entries "
                   "(default with --from: 8)")
    p.add_argument("--full", action="store_true", help="also print columns that are all zero")

    p = command("walk", cmd_walk, "walk a buffer table as the device does: index or address, "
                "hops, DMA address, bytes",
                "examples: scope walk qp 17 sq 10\n          scope walk mr 0x1a02 --va 0x7f00")
    p.add_argument("what", nargs="+", metavar="KIND NUMBER [RING] [INDEX]")
    p.add_argument("--va", type=typed(64), metavar="ADDRESS", help="virtual address in the MR")
    p.add_argument("--offset", type=typed(64), metavar="BYTES", help="offset in the buffer")
    p.add_argument("--entries", type=typed(10), default=8, metavar="N",
                   help="entries to show of each table (default 8)")
    p.add_argument("--bytes", type=typed(8), default=64, metavar="N",
                   help="bytes to show at the end of the walk (default 64)")

    p = command("tree", cmd_tree, "show a whole buffer table, tables with their entries below",
                "example: scope tree qp 17 sq --from 16 --count 32")
    p.add_argument("what", nargs="+", metavar="KIND NUMBER [RING]")
    p.add_argument("--from", dest="start", type=typed(32), default=0, metavar="PAGE",
                   help="first page (default 0)")
    p.add_argument("--count", type=typed(32), default=64, metavar="N",
                   help="print at most N entries (default 64)")

    p = command("eth", cmd_eth, "show the Ethernet function: queues, RSS tables, filters, "
                "shapers; with a queue, the frames in it", "examples: scope eth; scope eth 3 --count 64")
    p.add_argument("queue", nargs="?", type=typed(32), metavar="QUEUE",
                   help="a receive queue: its last frames and their buffers")
    p.add_argument("--count", type=typed(32), default=16, metavar="N",
                   help="inspect the last N completions of its CQ (default 16)")

    p = command("counters", cmd_counters, "show the adapters' counters that are not 0",
                "example: scope counters roce rx")
    p.add_argument("words", nargs="*", metavar="WORD", help="only counters with all of these words in their names")
    p.add_argument("--all", action="store_true", help="also show counters that are 0")

    p = command("break", cmd_break, "set a break: stop at an event",
                "examples: scope break doorbell --qpn 17\n"
                "          scope break cqe --status RETRY_EXC_ERR\n"
                "          scope break packet-in --opcode RC_SEND_ONLY --psn 100\n"
                "scope names lists events, their fields and the names of codes")
    p.add_argument("on", metavar="EVENT")
    for name in OBJECTS:
        p.add_argument(f"--{name}", metavar="N",
                       help="the event's QP; also --cqn, --eqn, --srqn, --vector, --object. For "
                       "doorbells this means the send queue unless --code is given"
                       if name == "qpn" else argparse.SUPPRESS)
    p.add_argument("--number", metavar="N", help="number of the event's object, of any kind")
    p.add_argument("--peer", metavar="N", help="number of the other object: peer QPN, UAR, key")
    p.add_argument("--index", metavar="N", help="index of the ring entry")
    p.add_argument("--psn", metavar="N", help="packet sequence number")
    for name in ("opcode", "status", "type", "state", "code"):
        p.add_argument(f"--{name}", dest="code", metavar="CODE",
                       help="by name or number; also --status, --type, --state, --code"
                       if name == "opcode" else argparse.SUPPRESS)
    p.add_argument("--syndrome", metavar="CODE", help="by name or number")
    p.add_argument("--wr-id", metavar="N", help="work request id")
    p.add_argument("--ignore", type=typed(64), default=0, metavar="N",
                   help="ignore the first N matches")
    p.add_argument("--once", action="store_true", help="remove the break when it is met")
    p.add_argument("--wait", type=seconds, nargs="?", const=0.0, metavar="SECONDS",
                   help="wait for the stop (default: no limit) and show it")

    command("breaks", cmd_breaks, "list breaks and how often each has been met")
    p = command("delete", cmd_delete, "remove breaks")
    p.add_argument("ids", nargs="*", metavar="ID")
    p.add_argument("--all", action="store_true", help="all breaks, of the guest if --guest is given")
    p = command("names", cmd_names, "list events, the fields a break can match, and the names "
                "of codes")
    p.add_argument("on", nargs="?", metavar="EVENT")

    p = command("step", cmd_step, "continue to the next event of a kind, or to a break",
                "example: scope step packet -n 2")
    p.add_argument("on", nargs="?", default="wqe", metavar="EVENT", help="default: wqe")
    p.add_argument("-n", "--count", type=typed(32), default=1, metavar="N", help="number of events (default 1)")
    p.add_argument("--timeout", type=seconds, default=30.0, metavar="SECONDS",
                   help="give up after this long (default 30)")
    p.add_argument("--no-wait", action="store_true", help="do not wait for the stop")

    p = command("continue", cmd_continue, "resume all guests and cancel pending steps",
                aliases=["cont"])
    p.add_argument("--wait", type=seconds, nargs="?", const=0.0, metavar="SECONDS",
                   help="wait for the next stop and show it")
    p = command("wait", cmd_wait, "wait until a guest stops at a break, and show why")
    p.add_argument("--timeout", type=seconds, metavar="SECONDS", help="give up after this long")
    command("stop", cmd_stop, "show why an adapter stopped, and the events before it")
    command("freeze", cmd_freeze, "stop all guests together, so that none exhausts its retries")
    command("thaw", cmd_continue, "same as continue").set_defaults(wait=None)
    p = command("together", cmd_together, "show or set whether a guest that stops at a break "
                "also stops the others (default: on)")
    p.add_argument("switch", nargs="?", choices=("on", "off"))

    p = command("watch", cmd_watch, "print a line for each stop and change until Ctrl-C")
    p.add_argument("--trail", action="store_true", help="with each stop, print the events before it")

    p = command("tui", cmd_tui, "open the terminal interface (also the default command)")
    p.add_argument("--page", metavar="NAME", help="first page on a small terminal")
    p = sub.add_parser("_keep", parents=[common])
    p.set_defaults(run=cmd_keep)
    p = sub.add_parser("_cleanup", parents=[common])
    p.set_defaults(run=cmd_cleanup)

    try:
        from . import draw
    except ImportError:
        draw = None
    if draw is not None and hasattr(draw, "add_arguments"):
        p = command("draw", cmd_draw, "draw a figure of a live object as SVG")
        draw.add_arguments(p)
        p.set_defaults(module=draw)
    return top, sub.choices


VALUED = ("--lab", "--guest", "-g", "--get", "--colour", "--color")


def with_command(argv: list[str], known: dict) -> list[str]:
    """ARGV with "show" before a kind, and "tui" if there is no command."""
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] in ("-h", "--help"):
            return argv
        at += 2 if argv[at] in VALUED else 1
    if at >= len(argv):
        return [*argv, "tui"]
    if argv[at] not in known:
        return [*argv[:at], "show", *argv[at:]]
    return argv


def report(error: LabError, as_json: bool) -> None:
    """Print an error as JSON in place of the output, or as text."""
    hint = getattr(error, "hint", "")
    if as_json:
        print(json.dumps({"error": str(error), "hint": hint}), flush=True)
        return
    style = Style.of(sys.stderr)
    print(style.paint("bad", "scope: ") + str(error), file=sys.stderr)
    if hint:
        print("       " + hint, file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    top, known = parser()
    argv = with_command(list(sys.argv[1:] if argv is None else argv), known)
    args = top.parse_args(argv)
    for name, value in (("lab", None), ("guest", None), ("json", False), ("wide", False),
                        ("get", None), ("colour", "auto")):
        if not hasattr(args, name):
            setattr(args, name, value)
    try:
        with Scope.of_lab(args.lab) as scope:
            return args.run(args, scope, Output(args))
    except LabError as error:
        report(error, args.json and not args.get)
        return getattr(error, "status", 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe: print nothing more, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE

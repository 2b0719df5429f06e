# SPDX-License-Identifier: GPL-2.0-or-later
"""
A recording (trace.json) as stories: the path of one message, step by step.

A story consists of the arrow chain "message" of the trace, that of its completion, its
further packets, and what the adapter did between two steps. A command of the driver to
the adapter is a story, too.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections import defaultdict

from ..errors import LabError

# Layers in the order in which a send passes them.
LAYERS = ("provider", "driver", "device", "wire")
_LAYER_WORDS = (
    ("wire", ("wire", "frame", "network")),
    ("device", ("device", "adapter", "engine", "qemu")),
    ("driver", ("driver", "kernel", "irq")),
    ("provider", ("provider", "application", "app", "user")),
)
# Maximum number of events between two steps of a thread that are shown.
BETWEEN_MAX = 24
# After these the adapter turns to something else.
_LAST_OF_A_BURST = ("tx", "msix", "poll", "qhca_aq_cmd", "aq_cmd")
# Arrows that are not part of a story.
_SMALL = ("doorbell",)
PSN = 0xFFFFFF
# Events of a command: those of its task at most this far from it, and these results.
AROUND_MAX, AROUND_US = 8, 20000.0
_RESULTS = ("create", "destroy", "modify", "reg", "dereg")


class TraceError(LabError):
    """A file that is not a recording, and why."""


@dataclasses.dataclass(eq=False)
class Step:
    """One event. Times are microseconds of the recording's clock."""

    ts: float
    pid: int
    tid: int
    name: str
    layer: str
    kind: str
    args: dict
    order: int = 0


@dataclasses.dataclass
class Story:
    """A message: its steps in order of time, and arrows between their indices."""

    number: int
    steps: list[Step]
    arrows: list[tuple[int, int, str]]
    title: str
    kind: str  # the arrow's: "message", "command", ...
    args: dict

    @property
    def begin(self) -> float:
        return self.steps[0].ts

    @property
    def seconds(self) -> float:
        return (self.steps[-1].ts - self.steps[0].ts) / 1e6


@dataclasses.dataclass
class Recording:
    processes: dict[int, str]
    threads: dict[tuple[int, int], str]
    stories: list[Story]
    events: int
    problems: list[str]
    other: dict
    begin: float = 0.0
    end: float = 0.0

    def guest(self, pid: int) -> str:
        return self.processes.get(pid, f"process {pid}")


def _layer(category: str, thread: str, process: str) -> str:
    for text in (category.lower(), thread.lower(), process.lower()):
        for layer, words in _LAYER_WORDS:
            if any(w in text for w in words):
                return layer
    return "device"


def _whole(event: dict, *keys: str) -> bool:
    return all(type(event.get(k)) is int for k in keys)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and (
        -1e15 < value < 1e15)


@dataclasses.dataclass(eq=False)
class Chain:
    """Arrows that lead from one step to the next."""

    kind: str
    name: str
    args: dict
    steps: list[Step]

    @property
    def key(self) -> tuple | None:
        """The WQE it belongs to; None if unknown."""
        found = tuple(self.args.get(k) for k in ("guest", "qpn", "index"))
        return None if None in found or any(isinstance(f, (dict, list)) for f in found) else found


class _Reader:
    """The events of a file, sorted by what they are."""

    def __init__(self, trace: object):
        events = trace.get("traceEvents") if isinstance(trace, dict) else trace
        if not isinstance(events, list):
            raise TraceError("this is no recording: it has no list 'traceEvents'")
        self.processes: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.slices: list[dict] = []
        self.flow_steps: dict[tuple, list[dict]] = defaultdict(list)
        self.bad = 0
        for event in events:
            if not isinstance(event, dict) or not self._take(event):
                self.bad += 1

    def _take(self, event: dict) -> bool:
        phase = event.get("ph")
        if phase == "M":
            name = event.get("args", {}).get("name") if isinstance(event.get("args"), dict) else 0
            if event.get("name") == "process_name" and _whole(event, "pid"):
                self.processes[event["pid"]] = str(name)
            elif event.get("name") == "thread_name" and _whole(event, "pid", "tid"):
                self.threads[event["pid"], event["tid"]] = str(name)
            return True
        if phase not in ("X", "i", "I", "B", "s", "t", "f"):
            return isinstance(phase, str)  # others are of no use here
        if not _whole(event, "pid", "tid") or not _number(event.get("ts")):
            return False
        if phase in ("X", "i", "I", "B"):
            if not isinstance(event.get("args", {}), dict):
                return False
            self.slices.append(event)
        elif phase in ("s", "t", "f"):
            flow = (str(event.get("cat")), str(event.get("name")), str(event.get("id")))
            self.flow_steps[flow].append(event)
        return True


def load(trace: object) -> Recording:
    """Read a trace; invalid parts are omitted and reported in `problems`.

    TraceError if it is not a trace at all."""
    reader = _Reader(trace)
    steps: list[Step] = []
    for event in reader.slices:
        key = (event["pid"], event["tid"])
        args = event.get("args", {})
        steps.append(Step(
            float(event["ts"]), *key, str(event.get("name", "?")),
            _layer(str(event.get("cat", "")), reader.threads.get(key, ""),
                   reader.processes.get(key[0], "")),
            str(args.get("event", event.get("name", "?"))), args,
        ))  # fmt: skip
    steps.sort(key=lambda s: s.ts)
    for number, step in enumerate(steps):
        step.order = number
    problems = []
    told = trace.get("otherData") if isinstance(trace, dict) else None
    told = told.get("problems") if isinstance(told, dict) else None
    if isinstance(told, list):
        problems += [str(p) for p in told[:20]]
    if reader.bad:
        problems.append(f"{reader.bad} events of the file make no sense and are left out")
    other = trace.get("otherData") if isinstance(trace, dict) else None
    recording = Recording(reader.processes, reader.threads, [], len(steps), problems,
                          other if isinstance(other, dict) else {})
    if steps:
        recording.begin, recording.end = steps[0].ts, steps[-1].ts
    by_thread: dict[tuple[int, int], list[Step]] = defaultdict(list)
    for step in steps:
        by_thread[step.pid, step.tid].append(step)
    chains, lost = _chains(reader, by_thread)
    if lost:
        problems.append(f"{lost} ends of arrows point at no event")
    recording.stories = _stories(chains, by_thread)
    if steps and not recording.stories:
        problems.append("no arrow joins the events: there is no message to show")
    return recording


def _chains(reader: _Reader, by_thread: dict) -> tuple[list, int]:
    """([(kind, args, [Step])], number of ends that were not found)"""
    starts = {key: [s.ts for s in thread] for key, thread in by_thread.items()}
    chains, lost = [], 0
    for (kind, name, _id), flow in reader.flow_steps.items():
        found: list[Step] = []
        for event in sorted(flow, key=lambda e: e["ts"]):
            key = (event["pid"], event["tid"])
            at = bisect.bisect_right(starts.get(key, []), event["ts"] + 1e-6) - 1
            if at < 0:
                lost += 1
                continue
            step = by_thread[key][at]
            if not found or found[-1] is not step:
                found.append(step)
        if len(found) > 1:
            args = next((e["args"] for e in flow if isinstance(e.get("args"), dict)), {})
            chains.append(Chain(kind, name, args, found))
    chains.sort(key=lambda c: ([s.order for s in c.steps], c.kind, c.name))
    return chains, lost


class _Groups:
    """Groups of chains: each group is a story, its first chain the main one."""

    def __init__(self):
        self.groups: list[list[Chain]] = []
        self._of_step: dict[int, list[Chain]] = {}
        self._of_key: dict[tuple, list[Chain]] = {}
        # of a queue pair (pid, qpn): its messages' first PSN, in order
        self._sent: dict[tuple, list[tuple[int, list[Chain]]]] = defaultdict(list)

    def _add(self, group: list[Chain], chain: Chain) -> None:
        group.append(chain)
        for step in chain.steps:
            self._of_step.setdefault(step.order, group)

    def begin(self, chain: Chain) -> None:
        group: list[Chain] = []
        self._add(group, chain)
        self.groups.append(group)
        if chain.key:
            self._of_key[chain.key] = group
        for step in chain.steps:
            psn = step.args.get("psn")
            if type(psn) is int and step.kind in ("wqe", "tx"):
                self._sent[step.pid, str(step.args.get("qpn"))].append((psn, group))
                break

    def join(self, chain: Chain) -> bool:
        """Add CHAIN to the group that it continues; False if there is none."""
        group = self._of_key.get(chain.key) if chain.key else None
        group = group or self._of_step.get(chain.steps[0].order)
        if group is None and chain.kind == "packet":
            group = self._by_psn(chain)
        if group is not None:
            self._add(group, chain)
        return group is not None

    def _by_psn(self, chain: Chain) -> list[Chain] | None:
        """The message of which CHAIN is a packet or response: the last that began."""
        for step in (chain.steps[0], chain.steps[-1]):
            psn = step.args.get("psn")
            if type(psn) is not int:
                continue
            for first, group in reversed(self._sent.get((step.pid, str(step.args.get("qpn"))), [])):
                if psn - first & PSN < 1 << 23:
                    return group
        return None

    def step_is_of(self, step: Step) -> list[Chain] | None:
        return self._of_step.get(step.order)


def _stories(chains: list[Chain], by_thread: dict) -> list[Story]:
    """Join chains to those that they continue, and make a story of each group."""
    groups = _Groups()
    named = {c.kind for c in chains}
    parts = {"completion", "packet"} if "message" in named else set()
    rest = []
    for chain in chains:
        if chain.kind in _SMALL:
            continue
        # A chain that begins at a step of another one belongs to it.
        begins = groups.step_is_of(chain.steps[0])
        if chain.kind in parts or (begins and begins[0].steps[0] is not chain.steps[0]
                                   and chain.kind != "command"):
            rest.append(chain)
        else:
            groups.begin(chain)
    for chain in rest:
        if not groups.join(chain) and chain.kind != "packet":
            groups.begin(chain)
    orders = {key: [s.order for s in thread] for key, thread in by_thread.items()}
    told = [_tell(group, groups, by_thread, orders) for group in groups.groups]
    told.sort(key=lambda s: (s.steps[0].order, s.title))
    for number, story in enumerate(told, 1):
        story.number = number
    return told


def _tell(group: list[Chain], groups: _Groups, by_thread: dict, orders: dict) -> Story:
    chosen: dict[int, Step] = {}
    for chain in group:
        chosen |= {s.order: s for s in chain.steps}
    threads = defaultdict(list)
    for step in sorted(chosen.values(), key=lambda s: s.order):
        threads[step.pid, step.tid].append(step)
    for key, spine in threads.items():
        thread = by_thread[key]
        for a, b in zip(spine, spine[1:], strict=False):
            if a.layer != "device" or a.kind in _LAST_OF_A_BURST:
                continue
            low, high = (bisect.bisect_left(orders[key], x.order) for x in (a, b))
            if high - low > BETWEEN_MAX:
                continue
            between = thread[low + 1:high]
            # What the adapter did between two steps served the message, unless
            # it has worked on another one there.
            if not any(map(groups.step_is_of, between)):
                chosen |= {s.order: s for s in between}
    extra = _around(group[0], by_thread, orders) if group[0].kind == "command" else []
    for chain in extra:
        chosen |= {s.order: s for s in chain.steps}
    steps = sorted(chosen.values(), key=lambda s: s.order)
    at = {s.order: i for i, s in enumerate(steps)}
    arrows = []
    if any(s.kind == "irq" for chain in extra for s in chain.steps):
        # The response came with the interrupt.
        group = [dataclasses.replace(group[0], steps=group[0].steps[:-1]), *group[1:]]
    for chain in [*group, *extra]:
        arrows += [(at[a.order], at[b.order], chain.name)
                   for a, b in zip(chain.steps, chain.steps[1:], strict=False)]
    main = group[0]
    return Story(0, steps, sorted(set(arrows)), main.name, main.kind, main.args)


def _around(command: Chain, by_thread: dict, orders: dict) -> list[Chain]:
    """What the driver did for a command before it was sent, while it waited and
    when it was done: events of the same task, next to the command's."""
    first, last = command.steps[0], command.steps[-1]
    key, task = (first.pid, first.tid), first.args.get("task")
    if first.layer != "driver" or task is None or (last.pid, last.tid) != key:
        return []
    thread = by_thread[key]
    begin, end = (bisect.bisect_left(orders[key], s.order) for s in (first, last))
    before: list[Step] = []
    for step in reversed(thread[max(0, begin - AROUND_MAX):begin]):
        if (step.args.get("task") != task or step.kind != "table"
                or first.ts - step.ts > AROUND_US):
            break
        before.insert(0, step)
    interrupt = [s for s in thread[begin + 1:end][:AROUND_MAX]
                 if s.kind == "irq" and s.args.get("vector") == 0][-1:]
    after: list[Step] = []
    for step in thread[end + 1:end + 1 + AROUND_MAX]:
        if step.ts - last.ts > AROUND_US:
            break
        if step.args.get("task") == task:
            if not step.kind.startswith(_RESULTS):
                break
            after.append(step)
    chains = [Chain("command", command.name, {}, steps) for steps in (
        [*before, first], [*interrupt, last], [last, *after]) if len(steps) > 1]
    # the response of the adapter comes with an interrupt
    if interrupt and len(command.steps) > 2:
        chains.append(Chain("command", command.name, {}, [command.steps[-2], *interrupt]))
    return chains

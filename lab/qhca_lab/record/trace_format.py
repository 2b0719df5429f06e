# SPDX-License-Identifier: GPL-2.0-or-later
"""trace.json: the Trace Event Format (JSON object form), as Perfetto and
chrome://tracing read it; and the rules it keeps, as a check."""

from __future__ import annotations

import bisect
import dataclasses

# Events are points in time. To be visible, and for arrows to be attached, they get a
# length: to the next one of their thread, but at most this, in ns.
LENGTH = 2000


@dataclasses.dataclass(eq=False)
class Event:
    """A point in time (ns of the lab's clock) in thread `tid` of guest `pid`."""

    time: float
    pid: int
    tid: int
    name: str
    layer: str
    args: dict
    kind: str = ""
    order: int = 0  # order of events at the same time: the lower is first
    shown: int = 0  # the time as written to the file
    length: int = 0


@dataclasses.dataclass
class Flow:
    """An arrow through events that cause each other."""

    name: str
    kind: str
    events: list[Event]
    args: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Thread:
    pid: int
    tid: int
    name: str
    order: int


def place(events: list[Event]) -> None:
    """Fill in `shown` and `length`: whole nanoseconds, and no two events of a thread
    in the same one."""
    threads: dict[tuple[int, int], list[Event]] = {}
    for event in sorted(events, key=lambda e: (e.time, e.order)):
        threads.setdefault((event.pid, event.tid), []).append(event)
    for thread in threads.values():
        last = None
        for event in thread:
            event.shown = round(event.time)
            if last is not None and event.shown <= last.shown:
                event.shown = last.shown + 1
            event.length = LENGTH
            if last is not None:
                last.length = min(LENGTH, event.shown - last.shown)
            last = event


def _us(ns: int) -> float:
    return ns / 1000


def render(events: list[Event], flows: list[Flow], processes: dict[int, str],
           threads: list[Thread], other: dict) -> dict:
    """The trace as a dictionary; place() must have been called."""
    out: list[dict] = []
    for pid, name in processes.items():
        out.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        out.append({"ph": "M", "pid": pid, "name": "process_sort_index",
                    "args": {"sort_index": pid}})
    for thread in threads:
        base = {"ph": "M", "pid": thread.pid, "tid": thread.tid}
        out.append({**base, "name": "thread_name", "args": {"name": thread.name}})
        out.append({**base, "name": "thread_sort_index", "args": {"sort_index": thread.order}})
    timed: list[tuple[int, int, int, dict]] = []
    for event in events:
        timed.append((event.shown, 0, 0, {
            "ph": "X", "pid": event.pid, "tid": event.tid, "ts": _us(event.shown),
            "dur": _us(event.length), "name": event.name, "cat": event.layer,
            "args": {"event": event.kind, **event.args},
        }))  # fmt: skip
    number = 0
    for flow in flows:
        if len(flow.events) < 2:
            continue
        number += 1
        for at, event in enumerate(flow.events):
            last = at == len(flow.events) - 1
            step = {
                "ph": "f" if last else "t" if at else "s", "pid": event.pid, "tid": event.tid,
                "ts": _us(event.shown), "name": flow.name, "cat": flow.kind, "id": number,
            }  # fmt: skip
            if last:
                step["bp"] = "e"
            if not at and flow.args:
                step["args"] = flow.args
            timed.append((event.shown, number, at, step))
    timed.sort(key=lambda t: t[:3])
    out += [t[3] for t in timed]
    return {"displayTimeUnit": "ns", "traceEvents": out, "otherData": other}


def check(trace: dict) -> list[str]:
    """What is wrong with TRACE by the rules of the format, each as a text:

    - every event has a phase known here, process, thread, time and name of
      their types; complete events have a length that is not negative
    - slices of a thread nest or do not meet
    - a flow begins once and ends once, its times do not go back, and each of
      its steps lies in a slice of the same thread
    """
    wrong: list[str] = []
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["there is no list 'traceEvents'"]
    slices: dict[tuple, list[tuple[float, float]]] = {}
    flows: dict[tuple, list[dict]] = {}
    for number, event in enumerate(trace["traceEvents"]):
        where = f"event {number}"
        if not isinstance(event, dict):
            wrong.append(f"{where} is no object")
            continue
        phase = event.get("ph")
        types = {"pid": int, "name": str}
        if phase != "M":
            types |= {"tid": int, "ts": (int, float), "cat": str}
        if phase == "X":
            types["dur"] = (int, float)
        if phase not in ("M", "X", "s", "t", "f"):
            wrong.append(f"{where} has phase {phase!r}")
            continue
        bad = [k for k, t in types.items()
               if not isinstance(event.get(k), t) or isinstance(event.get(k), bool)]
        if bad:
            wrong.append(f"{where} has no good {', '.join(bad)}")
            continue
        if not isinstance(event.get("args", {}), dict):
            wrong.append(f"{where} has args that are no object")
        if phase == "X":
            if event["dur"] < 0:
                wrong.append(f"{where} has a negative length")
            slices.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event["dur"])
            )
        elif phase in "stf":
            if "id" not in event:
                wrong.append(f"{where} is of a flow and has no id")
            else:
                key = (event["cat"], event["name"], event["id"])
                flows.setdefault(key, []).append(event)
    tiny = 1e-6  # us: what floating point numbers lose
    starts: dict[tuple, list[float]] = {}
    for thread, spans in slices.items():
        spans.sort(key=lambda s: (s[0], -s[1]))
        starts[thread] = [s[0] for s in spans]
        open_until: list[float] = []
        for begin, end in spans:
            while open_until and open_until[-1] <= begin + tiny:
                open_until.pop()
            if open_until and end > open_until[-1] + tiny:
                wrong.append(f"slices of thread {thread} overlap at {begin}")
            open_until.append(end)
    for key, steps in flows.items():
        phases = "".join(s["ph"] for s in steps)
        if phases[0] != "s" or phases[-1] != "f" or set(phases[1:-1]) - {"t"}:
            wrong.append(f"flow {key} has the phases {phases}")
        for a, b in zip(steps, steps[1:]):
            if b["ts"] < a["ts"]:
                wrong.append(f"flow {key} goes back in time at {b['ts']}")
        for step in steps:
            thread = (step["pid"], step["tid"])
            spans = slices.get(thread, [])
            at = bisect.bisect_right(starts.get(thread, []), step["ts"] + tiny) - 1
            if at < 0 or spans[at][1] < step["ts"] - tiny:
                wrong.append(f"flow {key} points at no slice at {step['ts']}")
    return wrong

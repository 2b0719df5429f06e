# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace.json for tests: its rules are checked, its arrows can be followed."""

from collections import defaultdict

from qhca_lab.record import chrome


class Trace:
    """TRACE, a dictionary as in trace.json, with its arrows followed."""

    def __init__(self, trace: dict):
        self.trace = trace
        assert chrome.check(trace) == []
        self.other = trace["otherData"]
        self.events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        at = {(e["pid"], e["tid"], e["ts"]): e for e in self.events}
        flows = defaultdict(list)
        for e in trace["traceEvents"]:
            if e["ph"] in "stf":
                flows[e["id"]].append(e)
        # (kind, name, args, events): each step of an arrow is at an event's begin.
        self.flows = [
            (f[0]["cat"], f[0]["name"], f[0].get("args", {}),
             [at[s["pid"], s["tid"], s["ts"]] for s in f])
            for f in flows.values()
        ]

    def of(self, layer: str, kind: str, **args) -> list[dict]:
        """Events of LAYER and KIND with these values in their args."""
        return [e for e in self.events if e["cat"] == layer and e["args"]["event"] == kind
                and all(e["args"].get(k) == v for k, v in args.items())]

    def flow(self, kind: str) -> list[tuple]:
        return [f for f in self.flows if f[0] == kind]


def kinds(steps: list[dict]) -> list[str]:
    return [s["args"]["event"] for s in steps]

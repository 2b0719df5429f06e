# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace.json for tests: checks its rules, and follows its arrows."""

from collections import Counter, defaultdict

from qhca_lab.errors import LabError
from qhca_lab.record import perfetto, trace_format


class Trace:
    """TRACE, a dictionary as in trace.json, with its arrows followed."""

    def __init__(self, trace: dict):
        self.trace = trace
        assert trace_format.check(trace) == []
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


SLICES = """
SELECT s.id, p.pid, t.tid, s.ts, s.dur, s.name, s.category AS cat FROM slice s
JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid) JOIN process p USING (upid)
"""
FLOWS = "SELECT slice_out, slice_in FROM flow"
TROUBLE = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


def has_perfetto() -> bool:
    """Is the trace processor installed? It is optional; lab/perfetto/fetch-perfetto downloads
    it."""
    try:
        return bool(perfetto.folder())
    except LabError:
        return False


def seen_by_perfetto(path, trace: Trace) -> None:
    """Perfetto's trace processor loads the file PATH without an error, has the
    events that TRACE has, and joins the same ones by arrows."""
    slices, flows, trouble = perfetto.query(path, SLICES, FLOWS, TROUBLE)
    assert not trouble

    def ns(us):
        return round(us * 1000)

    def ours(e):
        return e["pid"], e["tid"], ns(e["ts"]), e["name"], e["cat"]

    def theirs(s):
        return s["pid"], s["tid"], s["ts"], s["name"], s["cat"]

    assert Counter((*theirs(s), s["dur"]) for s in slices) == Counter(
        (*ours(e), ns(e["dur"])) for e in trace.events)
    by_id = {s["id"]: theirs(s) for s in slices}
    joined = Counter((by_id[f["slice_out"]], by_id[f["slice_in"]]) for f in flows)
    assert joined == Counter(
        (ours(a), ours(b)) for *_, steps in trace.flows for a, b in zip(steps, steps[1:]))
    assert joined and all(a[2] <= b[2] for a, b in joined)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Many QPs, many MRs, many guests: does the cost of a message stay the same?

RDMA WRITEs of 8 bytes and of 64 KiB, by the program "traffic" of the tests. A case and
its reference, one QP with one MR, are measured immediately one after the other in the
same guests, so that other load on the host affects both.

And what a QP costs to create, to connect (INIT, RTR, RTS) and to destroy, by one thread
and by several of one process, by the program "qps".
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import statistics
import time
from pathlib import Path

from ..errors import CommandTimeout, LabError
from ..guest import Background, Guest
from ..lab import Lab, Options
from .cpu import qemu_seconds
from .perftest import NAME, given, nics, say
from .results import judged, keep

MIB = 1 << 20
PROGRAM = "/qhca/build/guest-progs/traffic"
LIFE = "/qhca/build/guest-progs/qps"
STEPS = ("create", "connect", "destroy")
SMALL, LARGE = 8, 65536
SIZES = (SMALL, LARGE)
FIRST_PORT = 20000
# Seconds for a phase, and for creating everything before: 10,000 QPs on a slow host.
PATIENCE = 600.0
# Goal: with this many active QPs, at least this share of the rate of one.
AIM_QPS, AIM = 1000, 0.8


# -------------------------------------------------------------------- traffic


@dataclasses.dataclass
class Phase:
    """What a phase has moved: `all` writes; WRITES of them, in US microseconds, count."""

    size: int
    active: int
    writes: int
    us: int
    all: int

    @property
    def rate(self) -> float:
        """Writes per second."""
        return self.writes * 1e6 / self.us


class Traffic:
    """The program in guests A and B, connected: A writes, or BOTH do."""

    def __init__(self, a: Guest, b: Guest, port: int, phases: list[tuple[int, int]],
                 qps: int = 1, mrs: int = 1, ms: int = 3000, both: bool = False):
        words = [str(n) for n in (qps, mrs, ms)] + [f"{size}:{n}" for size, n in phases]

        def program(server: str) -> list[str]:
            return [PROGRAM, *(["-b"] if both else []), str(port), server, *words]

        self._jobs: list[Background] = [b.start(program("-"))]
        try:
            b.wait_listening(port, PATIENCE)
            self._jobs.append(a.start(program(b.ip)))
            for job in self._jobs:
                job.wait_for("^ready$", PATIENCE)
        except BaseException:
            self.end()
            raise
        # The writers, and how many phases they have reported.
        self._writers = self._jobs if both else self._jobs[1:]
        self._told = 0

    def begin(self) -> None:
        """Start the next phase."""
        for job in self._writers:
            job.signal(signal.SIGUSR1)

    def finish(self) -> list[Phase]:
        """What each writer has moved in the phase that was started."""
        deadline = time.monotonic() + PATIENCE
        found = [self._wait(job, deadline) for job in self._writers]
        self._told += 1
        return found

    def _wait(self, job: Background, deadline: float) -> Phase:
        while True:
            running = job.running
            lines = [line for line in job.stdout.split("\n")[:-1] if line.startswith("{")]
            if len(lines) > self._told:
                return Phase(**json.loads(lines[self._told]))
            if not running:
                raise LabError(f"guest {job.guest.name}: {job.result().describe()}\n"
                               f"{job.guest.evidence()}")
            if time.monotonic() > deadline:
                raise CommandTimeout(f"guest {job.guest.name}: a phase did not end\n"
                                     f"{job.result().describe()}", job.result())
            job.join(0.01)

    def end(self) -> None:
        for job in self._jobs:
            job.kill()

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_exc) -> None:
        self.end()


def sample(lab: Lab, flows: list[Traffic]) -> dict:
    """One phase of all FLOWS at once: their total writes per second, and the CPU time per
    write of each guest's QEMU."""
    before = {g.name: qemu_seconds(g) for g in lab.guests}
    for flow in flows:
        flow.begin()
    phases = [phase for flow in flows for phase in flow.finish()]
    after = {g.name: qemu_seconds(g) for g in lab.guests}
    writes = sum(phase.all for phase in phases)
    return {
        "rate": sum(phase.rate for phase in phases),
        "qemu": {n: (after[n][0] - before[n][0]) / writes for n in after},
        "loop": {n: (after[n][1] - before[n][1]) / writes for n in after},
    }


# --------------------------------------------------------------------- memory


def qemu_memory(smaps: str) -> int:
    """Resident bytes of a QEMU, from /proc/PID/smaps, without the memory of its guest and
    of others that it maps: these are its largest mappings."""
    maps: list[dict[str, int]] = []
    for line in smaps.splitlines():
        key, _, rest = line.partition(":")
        if key == "Size":
            maps.append({})
        if key in ("Size", "Rss"):
            maps[-1][key] = int(rest.split()[0]) << 10
    guest = max(m["Size"] for m in maps)
    return sum(m["Rss"] for m in maps if m["Size"] < guest)


def memory(guest: Guest) -> dict[str, int]:
    """Current memory use in bytes: of the device in QEMU, and of everything in the guest."""
    pid = guest.state["process"]["pid"]
    told = dict(line.split(":") for line in guest.read("/proc/meminfo").splitlines())
    available = int(told["MemAvailable"].split()[0]) << 10
    return {"qemu": qemu_memory(Path(f"/proc/{pid}/smaps").read_text()), "guest": -available}


# ---------------------------------------------------------------------- cases


@dataclasses.dataclass(frozen=True)
class Case:
    """QPs and MRs of two guests; ACTIVE: numbers of QPs that are active, one after another.
    Or, with GUESTS, one QP each way between any two of this number of guests. Or, with
    THREADS, QPs that this number of threads of one guest create, connect and destroy."""

    qps: int = 1
    active: tuple[int, ...] = (1,)
    mrs: int = 1
    guests: int = 0
    threads: int = 0


CASES = {
    f"{n:,} QPs": Case(qps=n, active=(n, n // 100)) for n in (100, 1000, 10000)
} | {
    f"{n:,} MRs": Case(mrs=n) for n in (10, 1000, 100000)
} | {
    f"{n} guests": Case(guests=n) for n in (2, 4)
} | {
    f"life of {n:,} QPs, {threads} thread{'s' * (threads > 1)}": Case(qps=n, threads=threads)
    for n in (1000, 10000) for threads in (1, 4)
}


def title(name: str, case: Case, active: int) -> str:
    return f"{name}, {active:,} active" if len(case.active) > 1 else name


def middle(samples: list[dict]) -> dict:
    """The medians of several results of sample(), or of this function."""
    return {
        "rate": statistics.median(s["rate"] for s in samples),
        **{part: {guest: statistics.median(s[part][guest] for s in samples)
                  for guest in samples[0][part]} for part in ("qemu", "loop")},
    }


def entry_of(name: str, size: int, samples: list[tuple[dict, dict]]) -> dict:
    """Of pairs (case, one QP) the medians, and the share of one QP's rate."""
    return {
        "case": name, "size": size,
        **middle([case for case, _one in samples]),
        "ratio": statistics.median(case["rate"] / one["rate"] for case, one in samples),
        "one": middle([one for _case, one in samples]),
        "samples": [[case["rate"], one["rate"]] for case, one in samples],
    }


def one_qp(rows: list[dict]) -> list[dict]:
    """The rows of the one QP that was measured with ROWS."""
    return [{"case": "1 QP", "size": size, "ratio": 1.0,
             **middle([row["one"] for row in rows if row["size"] == size])} for size in SIZES]


def two_guests(lab: Lab, one: Traffic, name: str, case: Case, args) -> list[dict]:
    """The rows of a case of two guests. ONE: a flow of one QP with the phases SIZES."""
    a, b = lab["a"], lab["b"]
    before = memory(a)
    phases = [(size, active) for active in case.active for size in SIZES]
    found: dict[tuple[int, int], list] = {(active, size): [] for size, active in phases}
    ms = int(args.seconds * 1000)
    with Traffic(a, b, FIRST_PORT + 1, phases, case.qps, case.mrs, ms) as flow:
        after = memory(a)
        for _round in range(args.rounds):
            for size, active in phases:
                reference = sample(lab, [one])
                found[active, size].append((sample(lab, [flow]), reference))
    rows = [entry_of(title(name, case, active), size, samples)
            for (active, size), samples in found.items()]
    if case.qps > 1:
        for row in rows:
            row["qps"] = case.qps
            row["memory"] = {part: (after[part] - before[part]) / case.qps for part in after}
    return rows


def all_to_all(lab: Lab, one: Traffic, name: str, case: Case, args) -> list[dict]:
    """The rows of a case of many guests, of which any two write to each other."""
    guests = lab.guests[:case.guests]
    pairs = [(a, b) for a in guests for b in guests if a.name < b.name]
    with contextlib.ExitStack() as stack:
        flows = [stack.enter_context(
            Traffic(a, b, FIRST_PORT + 1 + n, [(size, 1) for size in SIZES],
                    ms=int(args.seconds * 1000), both=True)) for n, (a, b) in enumerate(pairs)]
        found: dict[int, list] = {size: [] for size in SIZES}
        for _round in range(args.rounds):
            for size in SIZES:
                reference = sample(lab, [one])
                found[size].append((sample(lab, flows), reference))
    return [entry_of(name, size, samples) for size, samples in found.items()]


def life(lab: Lab, name: str, case: Case, args) -> dict:
    """The row of a case with threads: microseconds per QP of each of STEPS, medians."""
    samples = []
    for _round in range(args.rounds):
        done = lab["a"].run([LIFE, str(case.qps), str(case.threads)], timeout=PATIENCE)
        samples.append(json.loads(done.out))
        if samples[-1]["rts"] != case.qps:
            raise LabError(f"{name}: not all QPs are connected\n{done.describe()}")
    return {"case": name, "qps": case.qps, "threads": case.threads, "samples": samples,
            **{step: statistics.median(s[step] for s in samples) for step in STEPS}}


def measure(lab: Lab, cases: dict[str, Case], args, way) -> list[dict]:
    """Measure each of CASES, by WAY, one of the two above, against one QP."""
    rows = []
    with Traffic(lab["a"], lab["b"], FIRST_PORT, [(size, 1) for size in SIZES],
                 ms=int(args.seconds * 1000)) as one:
        for name, case in cases.items():
            for row in way(lab, one, name, case, args):
                rows.append(row)
                say(line(row))
    return rows


# ---------------------------------------------------------------------- table


HEAD = (f"{'RDMA WRITE':24} {'':8} {'rate':>12} {'':7} {'of one QP':>9}   "
        "CPU us, QEMUs (of these, main loops and bells)")


def line(row: dict) -> str:
    """A row of the table. The cost of a write is per message or per MiB."""
    small = row["size"] == SMALL
    rate = row["rate"] if small else row["rate"] * row["size"] / MIB
    unit, per = ("msg/s", 1) if small else ("MiB/s", MIB / row["size"])
    price = "  ".join(f"{name} {row['qemu'][name] * per * 1e6:,.1f} "
                      f"({row['loop'][name] * per * 1e6:,.1f})" for name in row["qemu"])
    text = (f"{row['case']:24} {'8 B' if small else '64 KiB':8} {rate:>12,.0f} {unit:7} "
            f"{row['ratio']:>9.2f}   per {unit[:3]}: {price}")
    return text + verdict(row)


def verdict(row: dict) -> str:
    """Whether the goal is met, if there is one."""
    if row["case"] != title(f"{AIM_QPS:,} QPs", Case(active=(AIM_QPS, 1)), AIM_QPS):
        return ""
    return f"  (aim {AIM}: {judged(row['ratio'] >= AIM)})"


LIFE_HEAD = f"{'us per QP':32}" + "".join(f" {step:>10}" for step in STEPS) + f" {'all':>10}"


def life_line(row: dict) -> str:
    """A row of the table below LIFE_HEAD."""
    times = [row[step] for step in STEPS]
    return f"{row['case']:32}" + "".join(f" {time:>10,.1f}" for time in (*times, sum(times)))


def compare(args, names: list[str]) -> int:
    """Measure the cases of these NAMES, print the table, put it into build/bench.json;
    the exit status."""
    cases = {name: CASES[name] for name in names}
    lives = {n: c for n, c in cases.items() if c.threads}
    phases = sum(len(c.active) for n, c in cases.items() if n not in lives)
    seconds = phases * len(SIZES) * 2 * args.rounds * (args.seconds + 2)
    seconds += sum(c.qps for c in lives.values()) * args.rounds / 500
    say(f"about {seconds / 60 + 2:.0f} minutes")
    rows, links, lived = [], [], []
    for way, wanted, guests in (
        (two_guests, {n: c for n, c in cases.items() if not c.guests and n not in lives}, 2),
        (all_to_all, {n: c for n, c in cases.items() if c.guests}, 4),
    ):
        if wanted:
            with Lab.up(NAME, nics(["qhca"] * guests, args.property),
                        Options(smp=args.smp, tied=True), progress=say, replace=True) as lab:
                accel = lab.state["accel"]
                links.append(lab.state["link"])
                found = measure(lab, wanted, args, way)
                rows += one_qp(found) + found
    if lives:
        with Lab.up(NAME, nics(["qhca"], args.property), Options(smp=args.smp, tied=True),
                    progress=say, replace=True) as lab:
            accel = lab.state["accel"]
            links.append(lab.state["link"])
            for name, case in lives.items():
                lived.append(life(lab, name, case, args))
                say(life_line(lived[-1]))
    if rows:
        print("", HEAD, *map(line, rows), "", *memory_lines(rows), sep="\n")
    if lived:
        print("", LIFE_HEAD, *map(life_line, lived), "", sep="\n")
    print(f"guests run under {accel}, {os.cpu_count()} CPUs, link {' and '.join(links)}"
          f"{given(args.property)};\neach figure is the median of {args.rounds} rounds, in "
          "which one QP of the same guests was measured just before")
    target = keep("scale", {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpus": os.cpu_count(), "smp": args.smp, "accel": accel, "links": links,
        "properties": args.property,
        "results": rows, "lives": lived,
    })  # fmt: skip
    print(target)
    return int(args.strict and any("MISSED" in verdict(row) for row in rows))


def memory_lines(rows: list[dict]) -> list[str]:
    """The memory of a QP, for each number of QPs."""
    found = {row["qps"]: row["memory"] for row in rows if "memory" in row}
    return [f"memory of each of {qps:,} QPs: {took['qemu'] / 1024:.1f} KiB in QEMU, "
            f"{took['guest'] / 1024:.1f} KiB in the guest" for qps, took in found.items()]

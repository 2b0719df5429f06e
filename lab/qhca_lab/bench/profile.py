# SPDX-License-Identifier: GPL-2.0-or-later
"""Where both QEMUs spend their time while perftest runs: perf's samples as flame
graphs, and as a table of the cost of a message."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from .. import flame, pair
from ..errors import LabError
from ..lab import Lab, Options
from ..paths import BUILD
from .perftest import CASES, command_line, figure, given, nics, qhca_ends, say

NAME = "profile"
FOLDER = BUILD / "profile"
# file: the case of perftest
RUNS = {"write-64k": "write 64 KiB", "send-8": "send 8 B rate", "send-2": "send 2 B latency"}
# Samples a second of each thread, by the host's clock: no counter of the CPU is needed.
HERTZ = 499
# Bytes of the stack in each sample, for the unwinder.
STACK = 8192
# Additional seconds of perftest, in which perf starts and ends.
MARGIN = 10

# The purpose of a sample: that of its first frame, from the leaf on, that is listed here.
# Functions that are not listed, like the engine's own, count for their callers.
PURPOSES = [(name, re.compile(pattern)) for name, pattern in (
    ("guest's code", r"^\[guest code\]$"),
    ("TCG", r"^(helper_(?!st|ld)|cpu_exec|cpu_tb_exec|tb_|tcg_|atomic_mmu|mttcg_)"),
    ("way from a store to the device", r"^(helper_(st|ld)|cpu_(st|ld)|do_(st|ld)|int_(st|ld)|"
     r"memory_region_)"),
    ("QEMU's big lock", r"^(bql_|qemu_mutex_|pthread_mutex_|g_mutex_)"),
    ("idle CPUs", r"^(qemu_wait_io_event|qemu_cond_wait)"),
    ("host's sockets: copies", r"^(_copy_(from|to)_iter|copyin|copyout)"),
    ("host's sockets: sending", r"^net_dgram_receive"),
    ("host's sockets: receiving", r"^net_dgram_(read|send)"),
    ("memory link: bells", r"^qhca_(op_memlink_bell|memlink_(rung|readable|ring|more)|fds_recv|"
     r"bells_\w+)$"),
    ("memory link: rings", r"^qhca_(op_)?(memlink|shring)_"),
    ("QEMU's net layer", r"^(qemu_net_|qemu_deliver_|qemu_send_|qemu_flush_|net_)"),
    ("ICRC", r"^(crc32_|qhca_icrc)"),
    ("engine: DMA, walks of tables", r"^(qhca_(op_)?dma_|address_space_|flatview_|table_walk|"
     r"mr_copy|dma_)"),
    ("engine", r"^(qhca_)"),
    ("main loop: ppoll", r"^(ppoll|qemu_poll)"),
    ("main loop: all else", r"^(main_loop_|g_main_|aio_|timerlist|qemu_main|os_host_)"),
)]
OTHER = "other"
# Threads, in the table.
VCPU, REST = "vCPUs", "others"


def purpose(frames: tuple[str, ...]) -> str:
    """The purpose to which the sample with these FRAMES, from the root, is attributed."""
    for frame in reversed(frames):
        for name, pattern in PURPOSES:
            if pattern.search(frame):
                return name
    return OTHER


def messages_per_second(case: tuple, value: float) -> float:
    """Messages per second from the figure of a CASE of perftest; a latency is half a round trip."""
    _title, unit, _program, options, *_ = case
    size = int(re.search(r"-s (\d+)", options)[1])
    return {"MiB/s": value * (1 << 20) / size, "msg/s": value, "us": 1e6 / value}[unit]


def record(lab: Lab, ends: dict, case: tuple, seconds: int, file: Path) -> float:
    """Run CASE, and record both QEMUs into FILE meanwhile; its figure."""
    a, b = lab["a"], lab["b"]
    long = seconds + MARGIN
    server = pair.start_server(b, command_line(ends["b"], case, long))
    try:
        client = a.start(f"stdbuf -oL {command_line(ends['a'], case, long)} {b.ip}")
        # The head of its table: both are connected, and the traffic begins.
        client.wait_for("#bytes", 120)
        pids = ",".join(str(g.state["process"]["pid"]) for g in (a, b))
        done = subprocess.run(
            ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "-p", pids,
             "--call-graph", f"dwarf,{STACK}", "-o", str(file), "--", "sleep", str(seconds)],
            capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"perf record: {done.stderr.strip()}")
        if not client.running:
            raise LabError(f"perftest ended before perf\n{client.result().describe()}")
        value = figure(client.wait(60 + 10 * long, check=True), case)
        pair.end_server(server)
        return value
    finally:
        server.kill()


def stacks_of(file: Path) -> dict[int, flame.Stacks]:
    """The samples in a FILE of perf, by process."""
    with tempfile.TemporaryFile("w+") as said:
        script = subprocess.Popen(
            ["perf", "script", "-i", str(file), "--no-inline", "-F", "comm,pid,tid,ip,sym,dso"],
            stdout=subprocess.PIPE, stderr=said, text=True, errors="replace")
        found = flame.fold(script.stdout)
        if script.wait():
            said.seek(0)
            raise LabError(f"perf script: {said.read().strip()[-500:]}")
    return found


# ---------------------------------------------------------------------- table


def costs(stacks: flame.Stacks, messages: float) -> dict[str, dict[str, float]]:
    """CPU microseconds of a message, by thread and purpose. MESSAGES were sent while the
    samples were taken."""
    found: dict[str, dict[str, float]] = {}
    for frames, count in stacks.items():
        row = found.setdefault(VCPU if frames[0].startswith("CPU ") else REST, {})
        why = purpose(frames[1:])
        row[why] = row.get(why, 0.0) + count / HERTZ / messages * 1e6
    return found


def table(told: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Lines: CPU microseconds per message, for each purpose of both guests' threads."""
    columns = [(guest, thread) for guest in told for thread in (VCPU, REST)]
    lines = [f"{'':32}" + "".join(f" {f'{guest}: {thread}':>12}" for guest, thread in columns)]

    def row(title: str, values: list[float]) -> str:
        return f"{title:32}" + "".join(f" {value:12.2f}" for value in values)

    for name in [*(name for name, _ in PURPOSES), OTHER]:
        values = [told[g].get(t, {}).get(name, 0.0) for g, t in columns]
        if any(value >= 0.005 for value in values):
            lines.append(row(name, values))
    lines.append(row("all", [sum(told[g].get(t, {}).values()) for g, t in columns]))
    return lines


def profile(args, runs: list[str]) -> int:
    """Record RUNS, write their flame graphs, print their tables; the exit status."""
    if not shutil.which("perf"):
        raise LabError("perf is missing: 'make profile' installs Debian's linux-perf")
    FOLDER.mkdir(parents=True, exist_ok=True)
    known = {case[0]: case for case in CASES}
    told = {}
    with Lab.up(NAME, nics(["qhca"] * 2, args.property), Options(smp=args.smp, tied=True),
                progress=say, replace=True) as lab:
        ends, accel, link = qhca_ends(lab), lab.state["accel"], lab.state["link"]
        for name in runs:
            case = known[RUNS[name]]
            data = FOLDER / f"{name}.data"
            say(f"{case[0]} ...")
            value = record(lab, ends, case, args.seconds, data)
            messages = messages_per_second(case, value) * args.seconds
            stacks = stacks_of(data)
            data.unlink()
            told[name] = {"case": case[0], "figure": value, "unit": case[1], "us": {}}
            for guest in lab.guests:
                own = stacks.get(guest.state["process"]["pid"], {})
                told[name]["us"][guest.name] = costs(own, messages)
                write(f"{name}-{guest.name}", own, f"{case[0]}, QEMU of guest {guest.name}",
                      f"{value:,.0f} {case[1]} while it was profiled, {sum(own.values())} samples")
    for name, entry in told.items():
        print(f"\n{entry['case']}: {entry['figure']:,.1f} {entry['unit']} while it was profiled; "
              "CPU microseconds of a message")
        print(*table(entry["us"]), sep="\n")
    target = FOLDER / "profile.json"
    target.write_text(json.dumps({
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "accel": accel,
        "link": link, "properties": args.property, "seconds": args.seconds,
        "runs": told}, indent=1) + "\n")
    print(f"\nguests run under {accel}, link {link}{given(args.property)}; flame graphs are in "
          f"{FOLDER}")
    return 0


def write(name: str, stacks: flame.Stacks, title: str, subtitle: str) -> None:
    """Flame graph and folded stacks of a QEMU."""
    (FOLDER / f"{name}.svg").write_text(flame.draw(stacks, title, subtitle))
    (FOLDER / f"{name}.txt").write_text(
        "".join(f"{';'.join(frames)} {count}\n" for frames, count in sorted(stacks.items())))

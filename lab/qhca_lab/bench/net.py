# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP over the net device of qhca and over virtio-net, alternately.

Two labs, each with its own wire of the same kind: two guests with qhca, two with
virtio-net; with --against REV a third, with the qhca of that revision. While one is
measured, the others are stopped. The result has the speed and the CPU time per GiB: of
both guests by their own accounts, and of both QEMUs by the host's, which includes
device, wire and the emulation of the guests' CPUs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from .. import kernels, pair
from ..errors import CommandFailed, LabError
from ..guest import Guest
from ..lab import Lab, Options
from ..selftests import place, two_ends
from . import cpu, revisions
from .perftest import NAME, given, nics, say
from .results import judged, keep

GIB = 1 << 30
MIB = 1 << 20
# The kind of adapter in each lab, by its name in the table.
ADAPTERS = {"qhca": "qhca", "virtio": "rxe"}
# Goals: how many times as fast as virtio-net on the same wire, and as revisions.BASE with its
# driver and provider.
VIRTIO_AIM = 3.0
BASE_AIM = 5.0
# Time limit of one run in seconds, for a slow host.
PATIENCE = 300


# ------------------------------------------------------------------- CPU time


@dataclasses.dataclass
class Cpu:
    """Seconds of CPU time: of the guests by their own account, of their QEMUs, and of
    the QEMUs' main loops and bells' threads, in which most of the device runs."""

    guest: float
    qemu: float
    loop: float

    def since(self, before: Cpu) -> Cpu:
        return Cpu(*(now - then for now, then in
                     zip(dataclasses.astuple(self), dataclasses.astuple(before))))


def cpu_now(lab: Lab) -> Cpu:
    """The CPU time of all guests of LAB up to now."""
    total = Cpu(0.0, 0.0, 0.0)
    for guest in lab.guests:
        ticks, _, stat = guest.run("getconf CLK_TCK; cat /proc/stat").out.partition("\n")
        qemu, loop = cpu.qemu_seconds(guest)
        total.guest += cpu.guest_seconds(stat, int(ticks))
        total.qemu += qemu
        total.loop += loop
    return total


# ---------------------------------------------------------------------- cases


@dataclasses.dataclass
class Run:
    """The bytes that one run has moved, and its seconds."""

    bytes: int
    seconds: float

    @property
    def speed(self) -> float:
        """MiB/s."""
        return self.bytes / MIB / self.seconds


def iperf_result(text: str) -> Run:
    """The receiver's result, from iperf3's JSON; LabError if there is none."""
    try:
        told = json.loads(text)
    except ValueError:
        raise LabError(f"iperf3 reports no result: {text.strip()[-200:]}") from None
    if "error" in told:
        raise LabError(f"iperf3: {told['error']}")
    got = told["end"]["sum_received"]
    if not got["bytes"] or not got["seconds"]:
        raise LabError("iperf3: nothing was received")
    return Run(got["bytes"], got["seconds"])


def iperf(lab: Lab, seconds: int, streams: int, zero_copy: bool) -> Run:
    """iperf3 from a to b. ZERO_COPY: it sends pages of a file, by sendfile()."""
    options = f"-t {seconds} -P {streams}" + (" -Z" if zero_copy else "")
    try:
        _, client = pair.run_checked(lab, ("b", "iperf3 -s -1"),
                                     ("a", f"iperf3 -J {options} -c $PEER"), PATIENCE)
    except CommandFailed as error:
        # It reports the reason of a failure in JSON, too.
        return iperf_result(error.result.out)
    return iperf_result(client.out)


def can_split(rings: str) -> bool:
    """Does the adapter with these `ethtool -g` have the header/data split?"""
    return bool(re.search(r"^TCP data split:\s*(on|off)$", rings, re.M))


@contextlib.contextmanager
def split_pages(lab: Lab, adapter: str):
    """A page of payload in each frame, in separate buffers if the adapter supports it."""
    a, b = lab["a"], lab["b"]
    split = adapter != "virtio" and can_split(a.run("ethtool -g $NETDEV").out)
    for guest in (a, b):
        guest.run(f"ip link set $NETDEV mtu {two_ends.PAGE_MTU[4]}")
    if split:
        a.run("ethtool -G $NETDEV tcp-data-split on")
    try:
        yield
    finally:
        if split:
            a.run("ethtool -G $NETDEV tcp-data-split off")
        for guest in (a, b):
            guest.run(f"ip link set $NETDEV mtu {Options().mtu}")


def tcp_mmap(lab: Lab, adapter: str, seconds: int, folder: str) -> Run:
    """The kernel's tcp_mmap: a maps what b sends, or copies what it cannot map."""
    with split_pages(lab, adapter):
        got = two_ends.tcp_mmap(lab["a"], lab["b"], folder, 4, 48 * seconds)
    return Run(int(got.mib * MIB), got.seconds)


def ncdevmem(lab: Lab, adapter: str, seconds: int, folder: str) -> Run:
    """The kernel's ncdevmem: data sent by b goes to device memory of a."""
    a = lab["a"]
    mib = 16 * seconds
    queues = re.findall(r"Combined:\s*(\d+)", a.run("ethtool -l $NETDEV").out)
    if int(queues[0]) < two_ends.DEVMEM_QUEUES:
        raise NotPossible(f"{queues[0]} queues")
    a.run(f"ethtool -L $NETDEV combined {two_ends.DEVMEM_QUEUES}")
    try:
        with (split_pages(lab, adapter),
              two_ends.ncdevmem(a, lab["b"], folder, 4, check=False) as devmem):
            took = devmem.send_zeros(mib)
            received = devmem.received()
    finally:
        a.run("ethtool -K $NETDEV ntuple off && ethtool -K $NETDEV ntuple on && "
              f"ethtool -X $NETDEV default && ethtool -L $NETDEV combined {queues[1]}")
    if received != mib * MIB:
        raise LabError(f"ncdevmem received {received} bytes of {mib} MiB")
    return Run(received, took)


class NotPossible(LabError):
    """The adapter lacks what the case needs."""


# title: (lab, adapter, seconds, folder of the selftests) -> Run
CASES: dict[str, Callable[[Lab, str, int, str], Run]] = {
    f"TCP, {streams} stream{'s' * (streams > 1)}{', zero copy' * zero_copy}":
        lambda lab, _adapter, seconds, _folder, streams=streams, zero_copy=zero_copy:
            iperf(lab, seconds, streams, zero_copy)
    for zero_copy in (False, True) for streams in (1, 4)
} | {"tcp_mmap": tcp_mmap, "ncdevmem": ncdevmem}


# ----------------------------------------------------------------- comparison


def sample(lab: Lab, adapter: str, case: str, seconds: int, folder: str) -> dict:
    """One run of a case: MiB/s, and CPU seconds per GiB."""
    before = cpu_now(lab)
    run = CASES[case](lab, adapter, seconds, folder)
    spent = cpu_now(lab).since(before)
    gib = run.bytes / GIB
    return {"speed": run.speed, "guest": spent.guest / gib, "qemu": spent.qemu / gib,
            "loop": spent.loop / gib}


def entry_of(case: str, samples: dict[str, list[dict]], errors: dict[str, str]) -> dict:
    """The medians of a case's samples, and how much faster qhca is."""
    entry = {"case": case, "unit": "MiB/s", "errors": errors, "samples": samples}
    for adapter, got in samples.items():
        entry[adapter] = {key: statistics.median(s[key] for s in got)
                          for key in ("speed", "guest", "qemu", "loop")} if got else None
    for other, ratio in (("virtio", "ratio"), ("before", "gain")):
        if entry["qhca"] and entry.get(other):
            entry[ratio] = entry["qhca"]["speed"] / entry[other]["speed"]
    return entry


def aims(entry: dict, revision: str) -> list[tuple[str, float, float]]:
    """What ENTRY was compared with, how many times faster it is, and should be; REVISION:
    that of --against, or ""."""
    found = []
    if "ratio" in entry:
        found.append(("virtio-net", entry["ratio"], VIRTIO_AIM))
    if "gain" in entry and revision.startswith(revisions.BASE):
        found.append((revision, entry["gain"], BASE_AIM))
    return found


def aim_row(case: str, other: str, times: float, aim: float) -> str:
    return f"{case:22} {times:6.2f} x {other}, aim {aim:g} x: {judged(times >= aim)}"


def why_rows(entry: dict) -> list[str]:
    """Why there are no figures of an adapter."""
    return [f"{entry['case']:22} not measured, {adapter}: {why.splitlines()[0]}"
            for adapter, why in entry["errors"].items()]


def measure(labs: dict[str, Lab], case: str, args, folder: str) -> dict:
    """A case on each adapter, one after the other; failures are recorded."""
    samples: dict[str, list[dict]] = {name: [] for name in labs}
    errors: dict[str, str] = {}
    for number in range(args.rounds):
        for name in sorted(labs, reverse=number % 2):
            if name in errors:
                continue
            labs[name].thaw()
            try:
                samples[name].append(sample(labs[name], name, case, args.seconds, folder))
            except NotPossible as error:
                errors[name] = f"not possible: {error}"
            except LabError as error:
                errors[name] = str(error)
                say(f"{case} on {name} failed: {str(error).splitlines()[0]}")
            finally:
                labs[name].freeze()
    return entry_of(case, samples, errors)


HEAD = (f"{'':22} {'qhca':>9} {'virtio':>9} {'MiB/s':6} {'':>7}   CPU s/GiB: "
        f"{'guests':>15} {'QEMUs':>15} {'loops and bells':>15}")


def row(entry: dict) -> str:
    """One line for a result: speeds, and each cost as qhca/virtio."""

    def figure(adapter: str, key: str, form: str) -> str:
        return "-" if entry[adapter] is None else format(entry[adapter][key], form)

    ratio = f"{entry['ratio']:6.1f} x" if "ratio" in entry else ""
    text = (f"{entry['case']:22} {figure('qhca', 'speed', ',.0f'):>9} "
            f"{figure('virtio', 'speed', ',.0f'):>9} {'MiB/s':6} {ratio:>8} {'':>13}")
    for key in ("guest", "qemu", "loop"):
        both = f"{figure('qhca', key, '.2f')} / {figure('virtio', key, '.2f')}"
        text += f" {both:>15}"
    return text


def earlier(path: str) -> dict[str, dict]:
    """The cases of an earlier run, from its file."""
    try:
        told = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise LabError(f"{path}: {error}") from None
    if not isinstance(told, dict) or "net" not in told:
        raise LabError(f"{path}: no figures of --net")
    return {entry["case"]: entry for entry in told["net"]["results"]}


def then_row(case: str, now: dict | None, then: dict | None, ratios: str = "") -> str:
    """Figures of qhca for a CASE, now and then; above 1 is better. RATIOS: what else to tell."""
    if not now or not then:
        return f"{case:22} {'-':>9}"
    return (f"{case:22} {now['speed']:>9,.0f} {then['speed']:>9,.0f} MiB/s  "
            f"{now['speed'] / then['speed']:6.2f} x{ratios}   "
            f"QEMUs {now['qemu']:.2f} s/GiB, before {then['qemu']:.2f}")


def before_row(entry: dict) -> str:
    """A case's figures of qhca, and of the revision of --against."""
    return then_row(entry["case"], entry["qhca"], entry["before"])


def against_row(now: dict, before: dict | None) -> str:
    """A case's figures of qhca, now and in an earlier run."""
    before = before or {}
    ratios = ""
    if "ratio" in now and "ratio" in before:
        ratios = f"   against virtio {now['ratio']:.1f} x, before {before['ratio']:.1f} x"
    return then_row(now["case"], now["qhca"], before.get("qhca"), ratios)


def all_labs(args, before: revisions.Before | None):
    """The labs, by the names of the table, all frozen; with BEFORE one more, named "before"."""
    options = Options(smp=args.smp, tied=True)
    wanted = {name: (f"{NAME}-net-{name}", nics([nic] * 2, args.property), options)
              for name, nic in ADAPTERS.items()}
    if before:
        wanted["before"] = f"{NAME}-net-before", ["qhca"] * 2, dataclasses.replace(
            options, binary=before.binary, software=before.software)
    return revisions.frozen(wanted)


def compare(args, cases) -> int:
    """Measure CASES, print the table, put it into build/bench.json; the exit status."""
    past, before = {}, None
    if args.against and revisions.is_file(args.against):
        if args.software:
            raise LabError("--software needs a revision: a file of figures has no driver")
        past = earlier(args.against)
    elif args.against:
        before = revisions.what_before(args.against, args.software)
    revision = before.revision if before else ""
    count = len(ADAPTERS) + bool(before)
    minutes = len(cases) * args.rounds * count * (args.seconds + 7) / 60
    say(f"booting {2 * count} guests; then about {minutes:.0f} minutes")
    found = []
    kernel = kernels.kernel(kernels.usual())
    kernel.check()
    folder = place.shared(kernel.version)
    with all_labs(args, before) as labs:
        for case in cases:
            found.append(measure(labs, case, args, folder))
            say(row(found[-1]))
    print(f"\n{HEAD}")
    for entry in found:
        print(row(entry))
    if args.property:
        print(f"\n{args.rounds} rounds{given(args.property)}")
    if past:
        print(f"\nqhca, compared with the run of {args.against}:")
        for entry in found:
            print(against_row(entry, past.get(entry["case"])))
    if before:
        print(f"\nqhca, compared with {args.against}{before.note}:")
        for entry in found:
            print(before_row(entry))
    aimed = [(entry["case"], *told) for entry in found for told in aims(entry, revision)]
    print()
    for told in aimed:
        print(aim_row(*told))
    for entry in found:
        for why in why_rows(entry):
            print(why)
    target = keep("net", {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpus": os.cpu_count(), "smp": args.smp, "guest_kernel": kernel.version,
        "properties": args.property, "against": revision or args.against,
        "results": found,
    })  # fmt: skip
    print(f"\n{target}")
    failed = [e for e in found
              if any(not text.startswith("not possible") for text in e["errors"].values())]
    missed = args.strict and (any(times < aim for *_, times, aim in aimed)
                              or any("qhca" in entry["errors"] for entry in found))
    return int(bool(failed or missed))

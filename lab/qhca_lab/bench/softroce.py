# SPDX-License-Identifier: GPL-2.0-or-later
"""qhca and Soft-RoCE in the same two guests, and the rates of the host itself."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time

from ..errors import LabError
from ..lab import Lab, Options
from ..paths import BUILD, TOP
from .perftest import NAME, given, measure, nics, qhca_ends, say
from .results import judged, keep

# The host's own figures, and the share of each that the adapter should reach in the same
# run; for a latency, the maximum in microseconds.
HOST_AIMS = {
    f"{verb} {size}": (f"memcpy_{key}_mib_s", share)
    for verb in ("write", "read", "send")
    for size, key, share in (("4 KiB", "4k", 0.12), ("64 KiB", "64k", 0.4), ("1 MiB", "1m", 0.6))
} | {
    f"{verb} 8 B rate": ("unix_dgram_64b_frames_s", 0.4) for verb in ("write", "send")
} | {
    f"{verb} 2 B latency": (None, 20.0) for verb in ("write", "read", "send")
}


def host_limits() -> dict:
    """memcpy and socket rates of the host, by lab/bench/host.c."""
    out = BUILD / "bench"
    out.mkdir(parents=True, exist_ok=True)
    in_root = str(TOP / "lab" / "in-root")
    source = str(TOP / "lab" / "bench" / "host.c")
    subprocess.run(
        [in_root, "gcc", "-std=gnu11", "-O2", "-Wall", "-o", str(out / "host"), source],
        check=True,
    )
    done = subprocess.run(
        [in_root, str(out / "host")], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def second_adapter() -> list[str]:
    """QEMU options: a virtio-net for Soft-RoCE beside the lab's adapter."""
    return [
        "-netdev",
        "dgram,id=net1,local.type=unix,local.path={dir}/rxe-{name},"
        "remote.type=unix,remote.path={dir}/rxe-{peer}",
        "-device",
        "virtio-net-pci,netdev=net1,mac=52:54:00:51:cb:0{n},romfile=",
    ]


FIND = """
import sys
sys.path.insert(0, "/qhca/lab")
import guestenv
device = guestenv.rdma_device(guestenv.netdev({"mac": sys.argv[1]}))
print(device, guestenv.gid_index(device, sys.argv[2]))
"""


def set_up_rxe(guest, number: int, mtu: int) -> dict:
    """Soft-RoCE on the second interface; returns its device and GID index."""
    mac, ip = f"52:54:00:51:cb:{number:02x}", f"10.98.0.{number}"
    guest.run(
        f"set -e; dev=$(basename $(dirname $(grep -l {mac} /sys/class/net/*/address)));"
        f"ip link set $dev mtu {mtu} up; ip address add {ip}/24 dev $dev;"
        "modprobe rdma_rxe; rdma link add rxe1 type rxe netdev $dev"
    )
    deadline = time.monotonic() + 20
    while True:
        device, index = guest.run(["python3", "-S", "-c", FIND, mac, ip]).out.split()
        if index != "None":
            return {"device": device, "index": index, "ip": ip}
        if time.monotonic() > deadline:
            raise LabError(f"guest {guest.name}: Soft-RoCE has no GID for {ip}")
        time.sleep(0.2)


def run_cases(lab, adapters, cases, rounds, seconds):
    """Measure every case on every adapter, one after the other; failures are recorded."""
    results = []
    for case in cases:
        title, unit, program, options, _column, aim = case
        values: dict[str, list] = {name: [] for name in adapters}
        errors: dict[str, str] = {}
        for _round in range(rounds):
            for name, ends in adapters.items():
                if name in errors:
                    continue
                try:
                    value = measure(lab, ends, case, seconds)
                except LabError as error:
                    errors[name] = str(error)
                    say(f"{title} on {name} failed: {str(error).splitlines()[0]}")
                    continue
                values[name].append(value)
        entry = {"case": title, "unit": unit, "program": program, "options": options,
                 "aim": aim, "errors": errors, "samples": values}  # fmt: skip
        for name, got in values.items():
            entry[name] = statistics.median(got) if got else None
        if entry.get("qhca") and entry.get("rxe"):
            better = entry["qhca"] / entry["rxe"]
            entry["ratio"] = 1 / better if unit in ("us", "ms") else better
        results.append(entry)
        say(row(entry))
    return results


def row(entry: dict) -> str:
    def figure(value):
        return "-" if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"

    ratio = entry.get("ratio")
    text = (f"{entry['case']:18} {figure(entry.get('qhca')):>12} "
            f"{figure(entry.get('rxe')):>12} {entry['unit']:6}")
    if ratio is not None:
        text += f" {ratio:8.1f} x"
        if entry["aim"]:
            text += f"  (aim {entry['aim']} x: {judged(ratio >= entry['aim'])})"
    return text


def beside_host(entry: dict, host: dict) -> dict | None:
    """How a case compares with the rates of the HOST; None if there is no goal for it."""
    value, aim = entry.get("qhca"), HOST_AIMS.get(entry["case"])
    if value is None or aim is None:
        return None
    of, least = aim
    if of is None:
        return {"of": None, "figure": value, "aim": least, "reached": value <= least}
    return {"of": of, "figure": value / host[of], "aim": least,
            "reached": value / host[of] >= least}


def host_row(entry: dict) -> str:
    """One line for a case that beside_host() knows."""
    told = entry["host"]
    figure = f"{told['figure']:8.2f} of {told['of']}" if told["of"] else \
        f"{told['figure']:8.1f} {entry['unit']}"
    limit = f"at least {told['aim']}" if told["of"] else \
        f"at most {told['aim']:.0f} {entry['unit']}"
    return (f"  {entry['case']:18} {figure:36} aim: {limit}, "
            f"{judged(told['reached'])}")


def compare(args, cases) -> int:
    """Measure, print the table, write build/bench.json; the exit status."""
    say("measuring the host ...")
    limits = [host_limits()]
    minutes = len(cases) * args.rounds * 2 * (args.seconds + 3) / 60
    say(f"booting two guests; then about {minutes:.0f} minutes")
    options = Options(qemu=second_adapter(), smp=args.smp, tied=True)
    adapter = nics(["none" if args.no_qhca else "qhca"] * 2, args.property)
    with Lab.up(NAME, adapter, options, progress=say, replace=True) as lab:
        adapters: dict[str, dict] = {}
        if not args.no_qhca:
            adapters["qhca"] = qhca_ends(lab)
        adapters["rxe"] = {
            guest.name: set_up_rxe(guest, number, options.mtu)
            for number, guest in enumerate(lab.guests, 1)
        }
        results = run_cases(lab, adapters, cases, args.rounds, args.seconds)
        kernel = lab["a"].run("uname -r").out.strip()
        accel, link = lab.state["accel"], lab.state["link"]

    # Once more, because other load varies: the mean counts.
    limits.append(host_limits())
    host = {key: statistics.mean(each[key] for each in limits) for key in limits[0]}
    print(f"\n{'':18} {'qhca':>12} {'Soft-RoCE':>12} {'unit':6} {'better by':>10}")
    for entry in results:
        print(row(entry))
    print(f"\nguests run under {accel}, link {link}{given(args.property)}; the host itself:")
    for key, value in host.items():
        print(f"  {key:28} {value:>12,.0f}")
    for entry in results:
        entry["host"] = beside_host(entry, host)
    beside = [entry for entry in results if entry["host"]]
    if beside:
        print("\nqhca beside the host:")
        for entry in beside:
            print(host_row(entry))
    target = keep(None, {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpus": os.cpu_count(), "smp": args.smp, "guest_kernel": kernel, "mtu": options.mtu,
        "accel": accel, "link": link, "properties": args.property,
        "host": host, "results": results,
    })  # fmt: skip
    print(f"\n{target}")
    if any(e["errors"] for e in results):
        return 1
    missed = [e for e in results if e["aim"] and e.get("ratio", 0) < e["aim"]]
    missed += [e for e in beside if not e["host"]["reached"]]
    return 1 if args.strict and missed else 0

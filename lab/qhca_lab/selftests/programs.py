# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of selftests, and how each is run.

Those of drivers/net and drivers/net/hw are listed in their makefiles: a new one in the
next kernel runs without a change here. Those of net/ are programs for two machines:
two_ends.py runs them, and this module checks their results.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

from ..errors import CommandFailed, CommandTimeout, LabError
from . import two_ends
from .ktap import FAIL, PASS, SKIP, XFAIL, Case, parse
from .place import TESTS, Place

# Seconds for one test: rss_ctx.py takes a quarter of an hour on a busy host.
LIMIT = 3600
FOLDERS = ("drivers/net", "drivers/net/hw")
# The tests that the gate runs: quick ones, without time limits that a busy host exceeds
# (ping.py allows half a second for a response, toeplitz counts frames for half a minute).
# Guest tests have msg_zerocopy and tcp_mmap.
SHORT = {"drivers/net/queues.py", "drivers/net/stats.py"}


# Tests that need something other than an adapter with one port, and fail without it
# instead of skipping themselves, with their text in the table.
OTHER_HARDWARE = {
    "drivers/net/netcons_basic.sh":
        "not run: tests only netdevsim, which Debian's kernel lacks",
    "drivers/net/hw/ethtool.sh": "not run: needs a PHY that negotiates its speed with the partner",
    "drivers/net/hw/ethtool_extended_state.sh":
        "not run: needs a PHY that negotiates, and a port without a cable",
    "drivers/net/hw/hw_stats_l3.sh": "not run: needs a switch that routes and counts",
    "drivers/net/hw/hw_stats_l3_gre.sh":
        "not run: needs a switch that routes and counts",
}  # fmt: skip

# Commands of Debian packages that tests need, and the usual image lacks.
NEEDS = {"drivers/net/netpoll_basic.py": "bpftrace"}

# Time limits for real machines, by test: what a case and its reason look like if it took
# longer, with the seconds and the limit. On slow machines the kernel's own tests report
# such failures as expected (xfail_on_slow in net/lib.sh), but not all of them do.
LIMITS = {
    # ethtool runs while 16 streams use the CPUs
    "drivers/net/hw/rss_ctx.py":
        r"test_hitless_key_update: Check failed (?P<took>[\d.]+) >= (?P<limit>0\.\d+)",
}
SLOWER = 10


def on_slow(test: str, case: Case) -> Case:
    """CASE of TEST as it counts on an emulated CPU: exceeding a known time limit up to
    tenfold is no failure."""
    took = re.match(LIMITS.get(test, "(?!)"), f"{case.name}: {case.reason}")
    if case.verdict != FAIL or not took or float(took["took"]) > SLOWER * float(took["limit"]):
        return case
    why = f"{float(took['took']):.2g} s on an emulated CPU, limit {took['limit']} s"
    return Case(case.name, XFAIL, why)


@dataclasses.dataclass
class Program:
    """A selftest: its path below tools/testing/selftests, and what runs it. RUN
    returns the cases and the whole output."""

    name: str
    run: Callable[[Place], tuple[list[Case], str]]

    @property
    def short(self) -> bool:
        return self.name in SHORT


def _listed(makefile: str) -> list[str]:
    """The programs that a makefile of the selftests runs (TEST_PROGS)."""
    text = re.sub(r"\\\n", " ", makefile)
    text = re.sub(r"#.*", "", text)
    found = re.findall(r"^TEST_PROGS\s*[:+]?=(.*)$", text, re.MULTILINE)
    return [word for line in found for word in line.split() if re.fullmatch(r"[\w.-]+", word)]


def _script(name: str) -> Callable[[Place], tuple[list[Case], str]]:
    """A test in one file, with the ports that it needs as its arguments."""

    def run(place: Place) -> tuple[list[Case], str]:
        needs = NEEDS.get(name)
        if needs and place.a.run(f"command -v {needs}", check=False).rc:
            reason = f"not run: needs {needs}, which is not in the image (QHCA_GUEST_PACKAGES)"
            return [Case("", SKIP, reason)], reason
        folder, _, file = name.rpartition("/")
        text = (place.tests / name).read_text()
        number = re.search(r"^NUM_NETIFS=(\d+)", text, re.MULTILINE)
        ports = place.ports[: int(number[1])] if number else []
        env = place.env
        if re.search(r"DRIVER_TEST_CONFORMANT:?=yes", text):
            # lib.sh takes the two ends from the environment, and supports only ssh.
            ports, env = [], env | {"REMOTE_TYPE": "ssh"}
        # Not all are executable; the kernel's own runner ignores that, too.
        line = f"exec 2>&1; cd {TESTS}/{folder} && chmod +x {file} && exec ./{file} {' '.join(ports)}"
        job = place.a.start(line, env=env)
        ended = job.join(LIMIT)
        result = job.result()
        job.kill()
        cases = parse(name, result.out, result.rc if ended else None)
        return [on_slow(name, case) for case in cases], result.out

    return run


def _other(name: str) -> Callable[[Place], tuple[list[Case], str]]:
    """A test for other hardware."""
    reason = OTHER_HARDWARE[name]
    return lambda _place: ([Case("", SKIP, reason)], reason)


def programs(tests: Path, everything: bool = False) -> list[Program]:
    """All tests, of the tree TESTS (tools/testing/selftests). EVERYTHING: including those for
    other hardware."""
    names = [f"{folder}/{file}" for folder in FOLDERS
             for file in sorted(_listed((tests / folder / "Makefile").read_text()))]
    found = [Program(n, _other(n) if n in OTHER_HARDWARE and not everything else _script(n))
             for n in names]
    # Later kernels have them elsewhere, with a script that runs both ends.
    pairs = {"net/msg_zerocopy": msg_zerocopy, "net/tcp_mmap": tcp_mmap,
             "net/ncdevmem": ncdevmem, "net/toeplitz": toeplitz,
             "net/timestamping": timestamping}  # fmt: skip
    found += [Program(n, run) for n, run in pairs.items() if (tests / f"{n}.c").exists()]
    return found + ([Program("ptp/phc.sh", phc)] if (tests / "ptp/phc.sh").exists() else [])


# ------------------------------------------------------- programs with two ends


class Refused(LabError):
    """The adapter rejects a setting; the text is ethtool's."""


def _cases(cases: dict[str, Callable[[list[str]], str | None]]) -> tuple[list[Case], str]:
    """Run CASES by name: each is called with a list to which it adds its output, and may return
    a remark. It raises Refused if the adapter lacks the feature, another LabError if it fails."""
    told: list[str] = []
    found = []
    for name, case in cases.items():
        told.append(f"-- {name}")
        try:
            found.append(Case(name, PASS, case(told) or ""))
        except Refused as error:
            found.append(Case(name, SKIP, str(error)))
        except (CommandFailed, CommandTimeout) as error:
            told.append(error.result.describe())
            words = (error.result.err or error.result.out).strip().splitlines()
            found.append(Case(name, FAIL, words[-1] if words else str(error).splitlines()[0]))
        except LabError as error:
            told.append(str(error))
            found.append(Case(name, FAIL, str(error).splitlines()[0]))
    return found, "\n".join(told)


def _set(place: Place, line: str) -> None:
    """Set the adapter by ethtool, or raise Refused."""
    result = place.a.run(f"ethtool {line.replace('DEV', place.env['NETIF'])}", check=False)
    if result.rc:
        raise Refused(" ".join((result.err or result.out).split()))


@contextlib.contextmanager
def _setting(place: Place, *lines: str):
    """Undo the settings of the block by LINES, arguments of ethtool."""
    try:
        yield
    finally:
        for line in lines:
            with contextlib.suppress(Refused):
                _set(place, line)


def msg_zerocopy(place: Place) -> tuple[list[Case], str]:
    """Every send is notified, and none was copied; all are without scatter-gather."""

    def case(ip: int, protocol: str, want: str):
        def run(told: list[str]) -> None:
            sent, notified, zc = two_ends.msg_zerocopy(place.a, place.b, TESTS, ip, protocol, 1400)
            told.append(f"tx={sent} txc={notified} zc={zc}")
            if sent != notified or zc != want:
                raise LabError(f"zc={zc}, {notified} notifications of {sent} sends")

        return run

    def without(told: list[str]) -> None:
        _set(place, "-K DEV sg off")
        with two_ends.without_sg(place.a):
            case(4, "tcp", "n")(told)

    cases = {f"{p} v{ip}": case(ip, p, "y") for p in ("tcp", "udp") for ip in (4, 6)}
    return _cases(cases | {"tcp v4, sg off": without})


def tcp_mmap(place: Place) -> tuple[list[Case], str]:
    """With header split whole pages arrive and are mapped, without it none are."""

    def case(ip: int, split: str):
        def run(told: list[str]) -> str:
            try:
                _set(place, f"-G DEV tcp-data-split {split}")
            except Refused:
                # Without the setting it is off.
                if split == "on":
                    raise
            for guest in (place.a, place.b):
                guest.run(f"ip link set $NETDEV mtu {two_ends.PAGE_MTU[ip]}")
            got = two_ends.tcp_mmap(place.a, place.b, TESTS, ip)
            told.append(got.said)
            if (got.percent < 99) if split == "on" else (got.percent > 0):
                raise LabError(f"{got.percent} % mapped")
            return " ".join(got.said.split())

        return run

    try:
        with _setting(place, "-G DEV tcp-data-split off"):
            return _cases({f"v{ip}, tcp-data-split {split}": case(ip, split)
                           for ip in (4, 6) for split in ("on", "off")})
    finally:
        for guest in (place.a, place.b):
            guest.run("ip link set $NETDEV mtu 1500")


def ncdevmem(place: Place) -> tuple[list[Case], str]:
    """b sends a pattern to a's device memory; a checks every byte (-v 7)."""
    mib = 16

    def case(ip: int):
        def run(told: list[str]) -> None:
            _set(place, f"-L DEV combined {two_ends.DEVMEM_QUEUES}")
            _set(place, "-G DEV tcp-data-split on")
            with two_ends.ncdevmem(place.a, place.b, TESTS, ip) as devmem:
                devmem.send(mib).wait(two_ends.LIMIT, check=True)
                try:
                    received = devmem.received()
                finally:
                    told.append(devmem.job.stderr[-2000:])
            if received != mib << 20:
                raise LabError(f"{received} bytes of {mib << 20}")

        return run

    with _setting(place, "-X DEV default", "-G DEV tcp-data-split off"):
        return _cases({f"v{ip}": case(ip) for ip in (4, 6)})


def toeplitz(place: Place) -> tuple[list[Case], str]:
    """b sends packets; a computes their hash and compares it with the adapter's."""

    def case(ip: int, protocol: str, rss: bool):
        def run(told: list[str]) -> None:
            shown = place.a.run("ethtool -x $NETDEV", check=False)
            key = re.search(r"^((?:[0-9a-f]{2}:){39}[0-9a-f]{2})$", shown.out, re.MULTILINE)
            if not key:
                raise Refused(f"no RSS key: {' '.join((shown.err or shown.out).split())}")
            if "receive-hashing: on" not in place.a.run("ethtool -k $NETDEV").out:
                raise Refused("the adapter reports no hash: receive-hashing is off")
            if protocol == "udp":
                _set(place, f"-N DEV rx-flow-hash udp{ip} sdfn")
            cpus = f"-C {_queue_cpus(place)}" if rss else ""
            flag = "-t" if protocol == "tcp" else "-u"
            job = place.a.start(
                f"exec stdbuf -oL {TESTS}/net/toeplitz -{ip} {flag} -d 8000 -i $NETDEV "
                f"-k {key[1]} -T 30000 {cpus} -s -v")
            udp = "-u" if protocol == "udp" else ""
            sender = place.b.start(f"while :; do echo x | nc -{ip} {udp} -w 0 "
                                   f"{two_ends.address(place.a, ip)} 8000; done")
            try:
                job.join(two_ends.LIMIT)
            finally:
                sender.kill()
                result = job.result()
                job.kill()
            told.append(f"{result.out[-1000:]}\n{result.err}")
            if result.rc != 0:
                words = (result.err.strip() or result.out.strip() or "no output").splitlines()
                raise LabError(words[-1])

        return run

    return _cases({f"{protocol} v{ip}{', rss' if rss else ''}": case(ip, protocol, rss)
                   for rss in (False, True) for protocol in ("tcp", "udp") for ip in (4, 6)})


def timestamping(place: Place) -> tuple[list[Case], str]:
    """hwtstamp_config sets what timestamping then uses: frames of both guests come with
    the adapter's times, at the sender and at the receiver."""
    tool = f"{TESTS}/net/hwtstamp_config $NETDEV"

    def setting(tx: str, rx: str, want: str):
        def run(told: list[str]) -> None:
            result = place.a.run(f"{tool} {tx} {rx}", check=False)
            told.append(f"{result.out}{result.err}")
            if "not supported" in result.err:
                raise Refused(result.err.strip())
            shown = place.a.run(tool).out
            if result.rc or f"tx_type = {tx}\nrx_filter = {want}\n" not in shown:
                raise LabError(f"{result.err.strip()} {' '.join(shown.split())}")

        return run

    def stamped(tx: str, rx: str, received: str):
        def run(told: list[str]) -> None:
            program = f"exec stdbuf -oL {TESTS}/net/timestamping $NETDEV"
            raw = "SOF_TIMESTAMPING_RAW_HARDWARE"
            jobs = [g.start(f"{program} SOF_TIMESTAMPING_{kind}_HARDWARE {raw}")
                    for g, kind in ((place.a, tx), (place.b, rx))]
            try:
                job = jobs[0] if received == "error" else jobs[1]
                job.wait_for(rf"received {received} data.*\n(.*\n)*?.*HW raw [1-9]", two_ends.LIMIT)
            finally:
                for job in jobs:
                    job.kill()
                    told.append(job.stdout[-2000:] + job.stderr[-500:])
                if "not supported" in "".join(job.stderr for job in jobs):
                    raise Refused("no hardware timestamps")

        return run

    try:
        return _cases({
            "hwtstamp_config on all": setting("ON", "ALL", "ALL"),
            "hwtstamp_config off none": setting("OFF", "NONE", "NONE"),
            "hwtstamp_config, a filter": setting("ON", "PTP_V2_EVENT", "ALL"),
            "send": stamped("TX", "RX", "error"),
            "receive": stamped("TX", "RX", "regular"),
        })  # fmt: skip
    finally:
        for guest in (place.a, place.b):
            guest.run(f"{tool} OFF NONE", check=False)


def phc(place: Place) -> tuple[list[Case], str]:
    """The adapter's PTP clock, by linuxptp's phc_ctl."""
    shown = place.a.run("ls $(readlink -f /sys/class/net/$NETDEV/device)/ptp", check=False)
    if shown.rc:
        return [Case("", SKIP, "the adapter has no PTP clock")], shown.err
    result = place.a.run(f"{TESTS}/ptp/phc.sh /dev/{shown.out.strip()} 2>&1", LIMIT, check=False)
    return parse("ptp/phc.sh", result.out, result.rc), result.out


def _queue_cpus(place: Place) -> str:
    """The CPUs that take the interrupts of the receive queues, in their order."""
    script = ("for i in $(ls /sys/class/net/$NETDEV/device/msi_irqs | sort -n); do "
              "grep -qE -- '(rx|input|comp|queue|TxRx)' /sys/kernel/irq/$i/actions && "
              "cat /proc/irq/$i/effective_affinity_list; done; true")
    return ",".join(place.a.run(script).out.split())

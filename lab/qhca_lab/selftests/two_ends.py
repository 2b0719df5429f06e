# SPDX-License-Identifier: GPL-2.0-or-later
"""The selftests of net/ that are programs for two machines, each run once.

A and B are guests, FOLDER is where tools/testing/selftests lies in them, IP is 4 or
6. programs.py sets the features of the adapter that a case needs. A run without a result
raises LabError.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re

from ..errors import LabError
from ..guest import Background, Guest
from ..pair import start_server

# Time limit of one run in seconds, for a slow host.
LIMIT = 300
MIB = 1 << 20


def address(guest: Guest, ip: int) -> str:
    return guest.ip if ip == 4 else guest.ip6


@contextlib.contextmanager
def _running(job: Background):
    """Yield JOB, and kill it at the end."""
    try:
        yield job
    finally:
        job.kill()


# ----------------------------------------------------------------- msg_zerocopy

ZEROCOPY_PORT = 8000
_SENT = re.compile(r"^tx=(\d+) \(\d+ MB\) txc=(\d+) zc=([yn])$", re.MULTILINE)


@contextlib.contextmanager
def without_sg(guest: Guest):
    """Disable gathering and segmentation of GUEST's adapter. Each frame that TCP sends must
    be a separate packet: when Linux segments in software, it copies without telling the
    sender."""
    segments = json.loads(guest.run("ip -d -j link show $NETDEV").out)[0]["gso_max_segs"]
    guest.run("ethtool -K $NETDEV sg off && ip link set $NETDEV gso_max_segs 1")
    try:
        yield
    finally:
        guest.run(f"ip link set $NETDEV gso_max_segs {segments}; ethtool -K $NETDEV sg on")


def msg_zerocopy(a: Guest, b: Guest, folder: str, ip: int, protocol: str,
                 datagram: int) -> tuple[int, int, str]:
    """a sends to b with MSG_ZEROCOPY for a second: calls of send, notifications, and
    "y" if none was copied, "n" if some were. PROTOCOL is "tcp", or "udp" with DATAGRAM
    bytes each: one that does not fit the MTU is always copied."""
    size = f"-s {datagram}" if protocol == "udp" else ""
    program = f"{folder}/net/msg_zerocopy"
    line = (f"exec {program} -{ip} -i $NETDEV -S {address(a, ip)} "
            f"-D {address(b, ip)} {size}")
    # Later ones must be told what to expect, and fail otherwise.
    expect = f"Z='-Z 1'; {program} $Z 2>&1 | grep -q 'invalid option' && Z=; "
    table = f"/proc/net/{protocol}"
    # It ends at a fixed time: later than the sender, even on a slow host.
    with _running(b.start(f"{line} -t {2 * LIMIT} -r {protocol}")) as server:
        b.run(f"until grep -qs ':{ZEROCOPY_PORT:04X} ' {table} {table}6; do sleep 0.05; done")
        said = a.run(f"{expect}{line} $Z -t 1 -z {protocol}", LIMIT, check=False).err
        if not server.running:
            raise LabError(f"the receiver has ended\n{server.result().describe()}")
    found = _SENT.search(said)
    if not found:
        raise LabError(f"msg_zerocopy reports no result: {said}")
    return int(found[1]), int(found[2]), "n" if "serr: " in said else found[3]


# --------------------------------------------------------------------- tcp_mmap

MMAP_PORT = 8787
_MAPPED = re.compile(r"received (\S+) MB \((\S+) % mmap'ed\) in (\S+) s, (\S+) Gbit")
# Ethernet carries one page and the headers with TCP's timestamps.
PAGE_MTU = {4: 4096 + 20 + 32, 6: 4096 + 40 + 32}


@dataclasses.dataclass
class Mapped:
    """What tcp_mmap received: MiB, how much of it was mapped, in how many seconds, and
    its own words."""

    mib: float
    percent: float
    seconds: float
    said: str


def tcp_mmap(a: Guest, b: Guest, folder: str, ip: int, mib: int = 64) -> Mapped:
    """b sends at least MIB MiB to a, which maps the pages that arrive."""
    program = f"{folder}/net/tcp_mmap -{ip}"
    server = start_server(a, f"exec stdbuf -oL {program} -s -z", port=MMAP_PORT)
    with _running(server):
        count = "$(cat /sys/class/net/$NETDEV/statistics/rx_bytes)"
        # It would send 32 GiB: it is killed as soon as enough has arrived.
        with _running(b.start(f"exec {program} -H {address(a, ip)} -z")):
            a.run(f"end=$(({count} + {mib * MIB})); until [ {count} -ge $end ]; do sleep 0.05; "
                  "done", LIMIT)
        found = server.wait_for(_MAPPED.pattern, LIMIT)
    return Mapped(float(found[1]), float(found[2]), float(found[3]), found[0])


# --------------------------------------------------------------------- ncdevmem

# Sender and receiver have the same port, as the filter requires; the next run uses
# another one, because the sender's stays in use for a minute; iperf3 has 5201.
_devmem_ports = itertools.count(5301)
# Its defaults: the last 8 of 16 queues take what it receives.
DEVMEM_QUEUES = 16
# yes(1) writes it, the newline becomes the zero: 1 2 3 4 5 6 0, as -v 7 wants.
_PATTERN = "yes $(echo -e \\\\x01\\\\x02\\\\x03\\\\x04\\\\x05\\\\x06) | tr \\\\n \\\\0"
# It runs ethtool by sudo, which guests do not have.
_SUDO = """\
printf '#!/bin/sh\\nexec "$@"\\n' >/usr/local/bin/sudo && chmod 755 /usr/local/bin/sudo
"""
_TOTAL = re.compile(r"^total_received=(\d+)$", re.MULTILINE)


@dataclasses.dataclass
class Devmem:
    """ncdevmem in one guest, JOB, and its sender in the other."""

    job: Background
    sender: Guest
    target: str

    def send(self, mib: int) -> Background:
        """Start to send MIB MiB of the pattern that ncdevmem checks."""
        return self.sender.start(f"{_PATTERN} | head -c {mib}M | nc -N -p {self.target}")

    def send_zeros(self, mib: int) -> float:
        """Send MIB MiB unchecked, and wait until they are received; returns seconds."""
        line = f"head -c {mib}M /dev/zero | nc -N -p {self.target}"
        return self.sender.run(line, LIMIT).seconds

    def received(self) -> int:
        """The bytes that ncdevmem has received and verified, after its end."""
        result = self.job.wait(LIMIT)
        totals = _TOTAL.findall(result.err)
        words = result.err.strip().splitlines() or ["no output"]
        if result.rc or not totals or "Failed validation" in result.err:
            raise LabError(f"ncdevmem: {words[-1]}")
        return int(totals[-1])


@contextlib.contextmanager
def ncdevmem(a: Guest, b: Guest, folder: str, ip: int, check: bool = True):
    """ncdevmem in a, bound to device memory and waiting for b: yields a Devmem. Without
    CHECK it compares no bytes, and the lines it writes for each piece stay in the
    guest: both take longer than to receive."""
    a.run("test -c /dev/udmabuf || modprobe udmabuf")
    a.run(_SUDO)
    port = next(_devmem_ports)
    line = (f"{folder}/net/ncdevmem -l -f $NETDEV -s {address(a, ip)} "
            f"-c {address(b, ip)} -p {port}")
    line = f"exec {line} -v 7" if check else \
        f"{line} 2>/run/ncdevmem; status=$?; tail -n 20 /run/ncdevmem >&2; exit $status"
    with _running(start_server(a, line, timeout=LIMIT, port=port)) as job:
        yield Devmem(job, b, f"{port} {address(a, ip)} {port}")

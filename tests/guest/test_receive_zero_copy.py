# SPDX-License-Identifier: GPL-2.0-or-later
"""Zero-copy receive: TCP_ZEROCOPY_RECEIVE and device memory, by the kernel's own tcp_mmap and
ncdevmem.

Both need header/data split: payload in pages of its own.
"""

import contextlib
import json
import re
import sys

import pytest

from labs import TOP

sys.path.insert(0, str(TOP / "tests"))

from qhca_lab.record import Recording  # noqa: E402
from qhca_lab.selftests import two_ends  # noqa: E402
from timeline import Trace  # noqa: E402

PAGE = 4096
MIB = 1 << 20
# Ethernet, a VLAN's tag, IPv6 and TCP with all options it can have.
HEADERS = 14 + 4 + 40 + 60


@contextlib.contextmanager
def split(pair, ip, on=True):
    """Header split at a, and an MTU for one page in each frame."""
    dev = pair.a.netdev
    pair.set_mtu(two_ends.PAGE_MTU[ip])
    pair.a.run(f"ethtool -G {dev} tcp-data-split {'on' if on else 'off'}")
    try:
        yield
    finally:
        pair.a.run(f"ethtool -G {dev} tcp-data-split off")


@contextlib.contextmanager
def queues(pair):
    """As many queues as ncdevmem wants, and what it sets undone."""
    dev = pair.a.netdev
    before = re.findall(r"Combined:\s*(\d+)", pair.a.run(f"ethtool -l {dev}").out)[-1]
    pair.a.run(f"ethtool -L {dev} combined {two_ends.DEVMEM_QUEUES}")
    try:
        yield
    finally:
        pair.a.run(f"ethtool -K {dev} ntuple off && ethtool -K {dev} ntuple on && "
                   f"ethtool -X {dev} default && ethtool -L {dev} combined {before}")


@pytest.mark.parametrize("ip", [4, pytest.param(6, marks=pytest.mark.long("IPv4 is in the gate"))])
def test_tcp_mmap(pair, selftests, ip):
    """With split pages are mapped, without it none is. Both throughputs are printed."""
    with split(pair, ip):
        mapped = two_ends.tcp_mmap(pair.a, pair.b, selftests(), ip)
    print(f"split on:  {mapped.said}")
    with split(pair, ip, on=False):
        copied = two_ends.tcp_mmap(pair.a, pair.b, selftests(), ip)
    print(f"split off: {copied.said}")
    assert mapped.percent >= 99
    assert copied.percent == 0


DEVMEM = "16 queues are made and exchanged; test_tcp_mmap shows the split"


@pytest.mark.long(DEVMEM)
@pytest.mark.parametrize("ip", [4, 6])
def test_ncdevmem(pair, selftests, ip):
    """Every byte that b sends arrives correctly in a's device memory."""
    mib = 16
    with queues(pair), split(pair, ip):
        with two_ends.ncdevmem(pair.a, pair.b, selftests(), ip) as devmem:
            devmem.send(mib).wait(two_ends.LIMIT, check=True)
            assert devmem.received() == mib * MIB


@pytest.mark.long(DEVMEM)
def test_unbound_under_traffic(pair, selftests):
    """The owner of the memory dies while frames come: its queues restart with pages of
    the kernel's, and receive again."""
    with queues(pair), split(pair, 4):
        with two_ends.ncdevmem(pair.a, pair.b, selftests(), 4) as devmem:
            sender = devmem.send(1024)
            devmem.job.wait_for(r"^total_received=\d{7,}$", two_ends.LIMIT)
            devmem.job.kill()
        sender.kill()
        # The flow rule still leads there.
        got = two_ends.tcp_mmap(pair.a, pair.b, selftests(), 4, 8)
        assert got.mib >= 8
        with two_ends.ncdevmem(pair.a, pair.b, selftests(), 4) as devmem:
            devmem.send(4).wait(two_ends.LIMIT, check=True)
            assert devmem.received() == 4 * MIB


# Run in a guest: the page frames of the memfd that ncdevmem made device memory of.
FRAMES = """
import ctypes, glob, mmap, os, struct
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if "udmabuf-test" not in os.readlink(path):
            continue
    except OSError:
        continue
    with open(path, "r+b") as f:
        memory = mmap.mmap(f.fileno(), 0)
    for at in range(0, len(memory), 4096):
        memory[at]
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    with open("/proc/self/pagemap", "rb") as f:
        f.seek(start // 4096 * 8)
        entries = struct.unpack(f"<{len(memory) // 4096}Q", f.read(len(memory) // 512))
    print(*(e & (1 << 55) - 1 for e in entries))
    break
"""


@pytest.mark.long(DEVMEM)
def test_payload_stays_out_of_the_kernel(pair, selftests, tmp_path):
    """One recording: each byte of the payload goes to a page of the device memory, and
    only headers go to pages of the kernel's."""
    length = MIB
    with queues(pair), split(pair, 4):
        with two_ends.ncdevmem(pair.a, pair.b, selftests(), 4) as devmem:
            pages = {int(n) for n in pair.a.run(["python3", "-c", FRAMES], 120).out.split()}
            with Recording(pair, tmp_path, provider=False):
                devmem.send(1).wait(two_ends.LIMIT, check=True)
                assert devmem.received() == length
    assert len(pages) > length // PAGE and all(pages)
    trace = Trace(json.loads((tmp_path / "trace.json").read_text()))
    inside = 0
    outside = []
    last = {}
    for event in trace.of("device", "eth_data", write=True):
        if event["pid"] != 1:
            continue
        args = event["args"]
        if int(args["address"], 16) // PAGE in pages:
            inside += args["bytes"]
        else:
            # The pieces of a frame follow one another; a queue that restarts counts anew.
            if last.get(args["queue"], (-1,))[0] != args["index"]:
                last[args["queue"]] = args["index"], len(outside)
                outside.append(0)
            outside[last[args["queue"]][1]] += args["bytes"]
    # What is sent again comes twice.
    assert inside >= length
    assert outside and max(outside) <= HEADERS, outside

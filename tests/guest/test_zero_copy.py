# SPDX-License-Identifier: GPL-2.0-or-later
"""MSG_ZEROCOPY over the net device, by the kernel's selftest and by a recording."""

import json
import sys

import pytest

from labs import TOP, run_pair

sys.path.insert(0, str(TOP / "tests"))

from qhca_lab.record import Recording  # noqa: E402
from qhca_lab.selftests import two_ends  # noqa: E402
from timeline import Trace  # noqa: E402

PAGE = 4096
# Ethernet, IPv4 and TCP with its timestamps, and what the kernel may align.
HEADERS = 128
# A datagram that must be fragmented is always copied: this one fits an MTU of 9000.
DATAGRAM = 8000


@pytest.fixture
def small_buffers(pair):
    """Little is in flight when msg_zerocopy waits for its last notifications. The rest is as in
    msg_zerocopy.sh."""
    setting = "net.ipv4.tcp_wmem"
    before = pair.a.run(f"sysctl -n {setting} net.core.optmem_max").out.split("\n")
    pair.a.run(f"sysctl -qw {setting}='4096 65536 131072' net.core.optmem_max=1000000")
    yield
    pair.a.run(f"sysctl -qw {setting}='{before[0]}' net.core.optmem_max={before[1]}")


def msg_zerocopy(pair, selftests, ip, protocol):
    """The selftest from a to b: calls of send, notifications, "y" or "n"."""
    return two_ends.msg_zerocopy(pair.a, pair.b, selftests(), ip, protocol, DATAGRAM)


IPV6 = pytest.mark.long("the adapter looks at the same pages as for IPv4")


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("ip", [4, pytest.param(6, marks=IPV6)])
def test_msg_zerocopy(pair, selftests, small_buffers, ip, protocol):
    """The kernel's selftest: every send is notified, none was copied."""
    sent, notified, zc = msg_zerocopy(pair, selftests, ip, protocol)
    print(f"{protocol} over IPv{ip}: {sent} sends")
    assert sent == notified and sent > 10
    assert zc == "y"


@pytest.mark.parametrize("protocol", [
    "tcp", pytest.param("udp", marks=pytest.mark.long("TCP is in the gate"))])
def test_msg_zerocopy_without_sg(pair, selftests, small_buffers, protocol):
    """An adapter without scatter-gather gets copies, and the sender is notified."""
    with two_ends.without_sg(pair.a):
        sent, notified, zc = msg_zerocopy(pair, selftests, 4, protocol)
    assert sent == notified and sent > 10
    assert zc == "n"


def test_device_reads_the_senders_pages(pair, progs, tmp_path):
    """One recording: the frames' bytes come from the page frames of the sender, and
    from nowhere else but their headers."""
    pages = 64
    program = f"{progs.path('zerocopy')} {pages}"
    with Recording(pair, tmp_path, provider=False):
        server, client = run_pair(pair.b, pair.a, program)
    got, sent = json.loads(server.out), json.loads(client.out)
    assert got == {"bytes": pages * PAGE, "wrong": ""}
    assert not sent["copied"]
    trace = Trace(json.loads((tmp_path / "trace.json").read_text()))
    reads = [(int(e["args"]["address"], 16), e["args"]["bytes"], e["args"]["queue"],
              e["args"]["index"]) for e in trace.of("device", "eth_data", write=False)
             if e["pid"] == 1]
    assert all(sent["pfns"]), "no page frames: is this not root?"
    frames = set(sent["pfns"])
    payload = [r for r in reads if r[0] // PAGE in frames]
    # Each byte of each page, and none twice: a TCP segment that was sent again is
    # read again, so only the bytes are counted, not the reads.
    bytes_read = set()
    for address, length, _, _ in payload:
        bytes_read.update(range(address, address + length))
    assert {a // PAGE for a in bytes_read} == frames
    assert len(bytes_read) == pages * PAGE
    # What else those frames consist of.
    theirs = {r[2:] for r in payload}
    rest = {}
    for address, length, *frame in reads:
        if address // PAGE not in frames and tuple(frame) in theirs:
            rest[tuple(frame)] = rest.get(tuple(frame), 0) + length
    assert rest.keys() == theirs and max(rest.values()) <= HEADERS, rest

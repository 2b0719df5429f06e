# SPDX-License-Identifier: GPL-2.0-or-later
"""What the net device refuses: with the errno that other drivers give, and with a text where
ethtool gets one (by netlink). Nothing changes, and the link stays up."""

import re

import pytest

from test_driver import ping
from test_net_queues import put_bind_rx, queues  # noqa: F401 (a fixture)


INVALID = "Invalid argument"
RANGE = "Numerical result out of range"
UNSUPPORTED = "Operation not supported"
MISSING = "No such file or directory"
BUSY = "Device or resource busy"

# command after "ethtool", with {dev}: [the text,] the errno's text
REFUSED = {
    "-L {dev} combined 17": ("requested channel count exceeds maximum", INVALID),
    "-L {dev} combined 0": ("no RX or TX channel", INVALID),
    "-L {dev} rx 2": ("requested channel count exceeds maximum", INVALID),
    "-L {dev} combined 2": ("too low for existing indirection table", INVALID),
    "-G {dev} rx 1": ("a ring must have at least 64 entries", INVALID),
    "-G {dev} tx 1": ("a ring must have at least 64 entries", INVALID),
    "-G {dev} rx 100000": ("requested ring size exceeds maximum", INVALID),
    "-G {dev} rx-buf-len 3000": ("power of two from 4096 to 32768 bytes", INVALID),
    "-C {dev} rx-usecs 70000": ("at most 65535 us or frames", RANGE),
    "-C {dev} tx-frames 70000": ("at most 65535 us or frames", RANGE),
    "-X {dev} equal 5": (INVALID,),
    "-X {dev} hfunc xor": (UNSUPPORTED,),
    "-X {dev} context 9 equal 2": (MISSING,),
    "-X {dev} context {used} delete": (BUSY,),
    "-N {dev} flow-type udp4 dst-port 1 action 4": (INVALID,),
    "-N {dev} flow-type udp4 dst-port 1 action -2": (UNSUPPORTED,),
    "-N {dev} flow-type udp4 dst-port 1 vf 1 queue 1": (INVALID,),
    "-N {dev} flow-type udp4 dst-port 1 context 40": (MISSING,),
    "-N {dev} flow-type udp4 dst-port 1 context {used} action 3": (INVALID,),
    "-N {dev} flow-type udp4 dst-port 1 action 1 loc 100000": (INVALID,),
    "-N {dev} flow-type sctp4 dst-port 1 action 1": (UNSUPPORTED,),
    "-N {dev} delete 77": (MISSING,),
    "-N {dev} rx-flow-hash udp4 sdfnt": (INVALID,),
    "-N {dev} rx-flow-hash sctp4 sdfn": (UNSUPPORTED,),
}
SHOWN = ("for what in -l -g -c -x -n; do ethtool $what {dev}; done; "
         "ethtool -n {dev} rx-flow-hash udp4; cat /sys/class/net/{dev}/carrier_changes")


def test_refused(queues):  # noqa: F811
    a, dev = queues.a, queues.a.netdev
    used = re.search(r"is (\d+)", a.run(f"ethtool -X {dev} context new equal 2").out)[1]
    a.run(f"ethtool -N {dev} flow-type udp4 dst-port 7001 context {used}")
    before = a.run(SHOWN.format(dev=dev)).out
    for command, texts in REFUSED.items():
        done = a.run("ethtool " + command.format(dev=dev, used=used), check=False)
        assert done.rc, command
        for text in texts:
            assert text in done.out + done.err, (command, done.out + done.err)
    assert a.run(SHOWN.format(dev=dev)).out == before
    ping(queues)


BOUND = pytest.mark.long("a queue is exchanged; test_queue_not_exchanged shows the same")


@pytest.mark.parametrize("pages,answer", [(2, "ENOMEM"), pytest.param(15, "ENOMEM", marks=BOUND),
                                          pytest.param(16, "bound", marks=BOUND)])
def test_dma_buf_too_small(pair, pages, answer):
    """Memory of another device that does not even hold one packet of 64 KiB is not bound."""
    a, dev = pair.a, pair.a.netdev
    said = f"dmesg | grep -c 'queue 1: only {pages} buffers of 4096 bytes are free' || true"
    before = a.run(f"{said}; cat /sys/class/net/{dev}/carrier_changes").out.split()
    bind_rx = put_bind_rx(a)
    try:
        a.run(f"ethtool -G {dev} tcp-data-split on")
        told = a.run(f"{bind_rx} 1 {pages * 4096} </dev/null").out
        assert told == f"{answer}\n"
        ping(pair)
    finally:
        a.run(f"ethtool -G {dev} tcp-data-split auto")
    after = a.run(f"{said}; cat /sys/class/net/{dev}/carrier_changes").out.split()
    assert int(after[0]) - int(before[0]) == (answer == "ENOMEM")
    assert after[1] == before[1]

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Rate limits of send queues. The tests do not check durations: what the adapter has sent, by its
counters, must not exceed what its own clock allows.
"""

import re

import pytest
from labs import PATIENCE, Python
from test_driver import function_reset, ping

RATE = 8                        # Mb/s: a byte in a microsecond
DATAGRAMS, SIZE = 600, 1400
SLACK = 80000                   # bytes: the bucket, large sends, other frames


@pytest.fixture
def one(pair):
    """Guest a with one channel, and without limits at the end."""
    a = pair.a
    was = re.findall(r"Combined:\s+(\d+)", a.run(f"ethtool -l {a.netdev}").out)[1]
    a.run(f"ethtool -L {a.netdev} combined 1")
    a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
    yield pair
    limit(a, 0)
    a.run(f"ethtool -L {a.netdev} combined {was}")
    ping(pair)


def limit(guest, rate, queue=0):
    guest.run(f"echo {rate} > /sys/class/net/{guest.netdev}/queues/tx-{queue}/tx_maxrate")


def shapers(pair):
    """The device's shapers with a rate."""
    found = pair.qmp("a", "qhca-inspect", object="shaper")["look"]["objects"]
    return [s for s in found if s["rate"]]


def sent(pair):
    """Bytes that have left, and the device's clock before or after that."""
    answer = pair.qmp("a", "qhca-inspect", object="device")
    return answer["look"]["counters"]["eth-tx-bytes"], answer["time"]


def send(pair):
    """Datagrams to the other guest; True if they were no faster than the limit."""
    first, begin = sent(pair)
    pair.a.run(Python(f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# few at a time, or the queueing discipline drops what has waited for too long
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
for i in range({DATAGRAMS}):
    s.sendto(bytes({SIZE}), ({pair.b.ip!r}, 9))
"""))
    total = DATAGRAMS * SIZE
    pair.a._until(lambda: sent(pair)[0] - first >= total, PATIENCE, "datagrams are missing")
    last, end = sent(pair)
    return last - first <= (end - begin) * RATE // 8000 + SLACK


@pytest.mark.long("tests/device/test_shaper has the rate, the next test the driver")
def test_maxrate(one):
    """tx_maxrate holds, and survives other rings, channels and a reset."""
    a, dev = one.a, one.a.netdev
    assert shapers(one) == []
    limit(a, RATE)
    assert [s["rate"] for s in shapers(one)] == [RATE * 10**6]
    assert send(one)
    seen = one.qmp("a", "qhca-inspect", object="shaper",
                   number=shapers(one)[0]["number"])["look"]["context"]
    assert seen["held"] and seen["bytes"] >= DATAGRAMS * SIZE
    was = re.findall(r"TX:\s+(\d+)", a.run(f"ethtool -g {dev}").out)[1]
    a.run(f"ethtool -G {dev} tx 256 && ethtool -L {dev} combined 2 && "
          f"ethtool -L {dev} combined 1")
    assert [s["rate"] for s in shapers(one)] == [RATE * 10**6]
    function_reset(a)
    a.wait_for(f"ping -c 1 -W 1 {one.b.ip}")
    assert [s["rate"] for s in shapers(one)] == [RATE * 10**6]
    assert send(one)
    a.run(f"ip link set {dev} down")
    assert shapers(one) == []
    # qhca-net: an interface that goes down loses its IPv6 addresses
    a.run(f"ip link set {dev} up && ethtool -G {dev} tx {was} && qhca-net", PATIENCE)
    assert [s["rate"] for s in shapers(one)] == [RATE * 10**6]
    limit(a, 0)
    assert one.qmp("a", "qhca-inspect", object="shaper")["look"]["objects"] == []


def test_maxrate_of_each_queue(one):
    """Each queue has its own; a rate out of range is refused."""
    a, dev = one.a, one.a.netdev
    a.run(f"ethtool -L {dev} combined 2")
    limit(a, 100, 0)
    limit(a, 200, 1)
    assert sorted(s["rate"] for s in shapers(one)) == [100 * 10**6, 200 * 10**6]
    where = f"/sys/class/net/{dev}/queues/tx-1/tx_maxrate"
    assert a.run(f"echo 4000000000 > {where}", check=False).rc
    assert a.run(f"cat {where}").out.strip() == "200"
    limit(a, 0, 1)
    assert [s["rate"] for s in shapers(one)] == [100 * 10**6]

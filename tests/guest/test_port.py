# SPDX-License-Identifier: GPL-2.0-or-later
"""Port settings of ethtool: loopback, flow control, and the form of received frames."""

import re

import pytest
from labs import PATIENCE, Python, run_pair
from test_driver import function_reset

# Frames of a type that is not sent otherwise.
TYPE = 0x88B5
# Sends three of them; how many come back, not counting those that only pass on their way out.
COME_BACK = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons({type}))
s.bind(({dev!r}, {type}))
for i in range(3):
    s.send(b"\\xff" * 6 + bytes.fromhex("020000000001") + ({type}).to_bytes(2, "big") + bytes(100))
s.settimeout({wait})
n = 0
try:
    while n < 3:
        n += s.recvfrom(200)[1][2] != socket.PACKET_OUTGOING
except TimeoutError:
    pass
print(n)
"""


def come_back(guest, wait):
    program = COME_BACK.format(type=TYPE, dev=guest.netdev, wait=wait)
    return int(guest.run(Python(program), PATIENCE + wait).out)


def test_loopback(pair):
    """Frames sent are received, also after a reset of the device; RDMA is not affected."""
    a = pair.a
    assert come_back(a, 1) == 0
    # or the kernel takes what comes back for another guest with its address
    a.run(f"sysctl -q net.ipv6.conf.{a.netdev}.accept_dad=0")
    a.run(f"ethtool -K {a.netdev} loopback on")
    try:
        assert come_back(a, PATIENCE) == 3
        assert a.run(f"ping -c 1 -W 1 {pair.b.ip}", check=False).rc != 0
        function_reset(a)
        assert come_back(a, PATIENCE) == 3
    finally:
        a.run(f"ethtool -K {a.netdev} loopback off")
        a.run(f"sysctl -q net.ipv6.conf.{a.netdev}.accept_dad=1")
    assert come_back(a, 1) == 0
    a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
    run_pair(pair.b, a, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 10",
             f"ibv_rc_pingpong -d $IBDEV -g $GIDX -n 10 {pair.b.ip}")


def paused(guest):
    """PAUSE frames received, by the standard's statistics."""
    shown = guest.run(f"ethtool -I -a {guest.netdev}").out
    return int(re.search(r"rx_pause_frames: (\d+)", shown)[1])


def test_flow_control(pair):
    """PAUSE frames are counted, and obeyed if that is wanted; the adapter sends none."""
    a, b = pair.a, pair.b
    frame = "0180c2000001" "020000000001" "8808" "0001" "ffff" + "00" * 42
    send = Python(f"""
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
s.bind(({b.netdev!r}, 0))
for i in range(3):
    s.send(bytes.fromhex({frame!r}))
""")
    refused = a.run(f"ethtool -A {a.netdev} tx on", check=False)
    assert refused.rc and "not supported" in refused.err
    for rx in ("off", "on"):
        a.run(f"ethtool -A {a.netdev} rx {rx}", check=False)    # fails if it is so already
        assert re.search(rf"RX:\s+{rx}", a.run(f"ethtool -a {a.netdev}").out)
        before = paused(a)
        b.run(send)
        a._until(lambda count=before + 3: paused(a) == count, PATIENCE, "no PAUSE frames")
        assert pair.qmp("a", "qhca-inspect", object="device")["look"]["obeys_pause"] is (rx == "on")
        a.run(f"ping -c 2 -i 0.2 -W 5 {b.ip}")
    function_reset(a)
    assert re.search(r"RX:\s+on", a.run(f"ethtool -a {a.netdev}").out)
    assert pair.qmp("a", "qhca-inspect", object="device")["look"]["obeys_pause"]
    a.run(f"ethtool -A {a.netdev} rx off")


def test_no_padding(pair):
    """A short packet is received with its own length, without Ethernet's padding."""
    a, b = pair.a, pair.b
    job = a.start(Python(f"""
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
s.bind(({a.netdev!r}, 0x0800))
print("ready", flush=True)
while True:
    frame, where = s.recvfrom(2000)
    if where[2] != socket.PACKET_OUTGOING and frame[36:38] == (7109).to_bytes(2, "big"):
        print(len(frame), flush=True)
        break
"""))
    job.wait_for("ready", PATIENCE)
    b.run(Python(f"""
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ({a.ip!r}, 7109))
"""))
    assert job.wait(PATIENCE).out.split() == ["ready", "43"]


@pytest.mark.parametrize("lro", ["off", "on"])
def test_lro(pair, lro):
    """LRO is merging without GRO's name: one of the two is on."""
    a, b, dev = pair.a, pair.b, pair.a.netdev
    pair.set_mtu(1500)
    b.run(f"ethtool -K {b.netdev} tso off")     # frames that can be merged
    a.run(f"ethtool -K {dev} rx-gro-hw off lro {lro}")
    try:
        assert f"large-receive-offload: {lro}" in a.run(f"ethtool -k {dev}").out
        before = a.ethtool_stat("drv_rx_large")
        run_pair(a, b, "iperf3 -s -1", f"iperf3 -n 8M -c {a.ip}")
        merged = a.ethtool_stat("drv_rx_large") - before
        assert (merged > 0) == (lro == "on")
        # what the device merges, it has checked
        a.run(f"ethtool -K {dev} rx off")
        wanted = "off [requested on]" if lro == "on" else "off"
        assert f"large-receive-offload: {wanted}\n" in a.run(f"ethtool -k {dev}").out
        a.run(f"ethtool -K {dev} rx on")
        assert f"large-receive-offload: {lro}\n" in a.run(f"ethtool -k {dev}").out
        a.run(f"ethtool -K {dev} rx-gro-hw on")
        assert "large-receive-offload: off" in a.run(f"ethtool -k {dev}").out
    finally:
        b.run(f"ethtool -K {b.netdev} tso on")
        a.run(f"ethtool -K {dev} rx on lro off rx-gro-hw on")

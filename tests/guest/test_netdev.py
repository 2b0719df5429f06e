# SPDX-License-Identifier: GPL-2.0-or-later
"""The Ethernet function, alone and while RDMA traffic runs."""

import json

import pytest

from labs import run_pair, vlan
from qhca_lab.pair import start_server
from test_driver import known_neighbours


@pytest.mark.parametrize("mtu", [
    1500, pytest.param(9000, marks=pytest.mark.long("the other tests have this MTU"))])
def test_ping(pair, mtu):
    pair.set_mtu(mtu)
    for size in (0, 56, mtu - 28):
        pair.a.run(f"ping -c 3 -i 0.2 -W 5 -M do -s {size} {pair.b.ip}")
    pair.a.run(f"ping -6 -c 3 -i 0.2 -W 5 {pair.b.ip6}")
    # one byte more does not fit
    assert pair.a.run(f"ping -c 1 -W 2 -M do -s {mtu - 27} {pair.b.ip}", check=False).rc != 0


@pytest.mark.parametrize("mtu", [
    pytest.param(1500, marks=pytest.mark.long("the same in smaller pieces")), 9000])
def test_iperf_while_rdma_runs(pair, mtu):
    pair.set_mtu(mtu)
    server = start_server(pair.b, "iperf3 -s -1")
    rdma = start_server(pair.b, "ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 3000")
    client = pair.a.start(f"ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 3000 {pair.b.ip}")
    out = pair.a.run(f"iperf3 -J -t 2 -c {pair.b.ip}", timeout=90).out
    assert client.wait(180).rc == 0
    assert rdma.wait(60).rc == 0
    assert server.wait(60).rc == 0
    assert json.loads(out)["end"]["sum_received"]["bytes"] > 1 << 20


CROSSED = pytest.mark.long("each of the two values is in the gate, with another partner")


@pytest.mark.parametrize("offload,udp", [
    ("on", False), pytest.param("on", True, marks=CROSSED),
    pytest.param("off", False, marks=CROSSED), ("off", True),
], ids=["on-tcp", "on-udp", "off-tcp", "off-udp"])
def test_checksum_offload(pair, offload, udp):
    """Data arrive whole with checksum and scatter-gather offload on and off."""
    dev = pair.a.netdev
    pair.set_mtu(1500)
    errors = "nstat -az | awk '/InCsumErrors/ {s += $2} END {print s + 0}'"
    before = pair.b.run(errors).out
    pair.a.run(f"ethtool -K {dev} tx {offload} sg {offload} rx {offload}")
    try:
        shown = pair.a.run(f"ethtool -k {dev}").out
        assert f"tx-checksumming: {offload}" in shown
        flags = "-u -b 5M -l 1000" if udp else ""
        _, client = run_pair(pair.b, pair.a, "iperf3 -s -1",
                             f"iperf3 -J -t 2 {flags} -c {pair.b.ip}")
        assert json.loads(client.out)["end"]["sum"]["bytes"] if udp else True
        assert pair.b.run(errors).out == before, "checksum errors at the receiver"
    finally:
        pair.a.run(f"ethtool -K {dev} tx on sg on rx on")


def test_ethtool(pair):
    dev = pair.a.netdev
    assert "driver: qhca" in pair.a.run(f"ethtool -i {dev}").out
    assert "Link detected: yes" in pair.a.run(f"ethtool {dev}").out
    before = pair.a.ethtool_stat("eth_tx_packets")
    pair.a.run(f"ping -c 5 -i 0.2 {pair.b.ip}")
    assert pair.a.ethtool_stat("eth_tx_packets") >= before + 5
    assert pair.a.run(f"ethtool -g {dev}").out
    assert pair.a.run(f"ethtool -l {dev}").out


def test_missed_frames(pair):
    """Frames for which there was no buffer: also in the stack's own statistics."""
    a, dev = pair.a, pair.a.netdev
    send = (
        "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"for i in range(500): s.sendto(b'x' * 1000, ('{a.ip}', 9))\""
    )

    def missed():
        """Statistics of the stack and of the device: reading the device's updates the stack's,
        too."""
        device = a.ethtool_stat("eth_rx_dropped")
        shown = json.loads(a.run(f"ip -s -s -j link show {dev}").out)[0]["stats64"]["rx"]
        return shown["missed_errors"], device

    # A neighbour that is asked for comes in between, and is the device's alone.
    with known_neighbours(pair):
        stack, device = missed()
        arrived = "ethtool -S $NETDEV | awk '/eth_rx_(packets|dropped)/ {n += $2} END {print n}'"
        before = int(a.run(arrived).out)
        knobs = f"/sys/class/net/{dev}"
        try:
            a.run(f"ethtool -G {dev} rx 64")
            # after a poll that finds nothing the queue is left alone for 3 s
            a.run(f"echo 3000000000 > {knobs}/gro_flush_timeout; "
                  f"echo 1000 > {knobs}/napi_defer_hard_irqs")
            pair.b.run(send)
            # frames that arrive while the interface is down are not counted by the stack
            a.wait_for(f"test $({arrived}) -ge {before + 500}")
        finally:
            a.run(f"echo 0 > {knobs}/napi_defer_hard_irqs; echo 0 > {knobs}/gro_flush_timeout; "
                  f"ethtool -G {dev} rx 1024")
        a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
        now_stack, now_device = missed()
    assert now_device > device, "no frame was dropped: the test shows nothing"
    assert now_stack - stack == now_device - device


def test_link_down_and_up(pair):
    """The host pulls the cable; carrier and port state follow, traffic resumes."""
    a = pair.a
    pair.set_link("a", False)
    try:
        a.wait_for(f"grep -qx 0 /sys/class/net/{a.netdev}/carrier")
        a.wait_for("grep -q DOWN /sys/class/infiniband/$IBDEV/ports/1/state")
    finally:
        pair.set_link("a", True)
    a.wait_for(f"grep -qx 1 /sys/class/net/{a.netdev}/carrier")
    a.wait_for("grep -q ACTIVE /sys/class/infiniband/$IBDEV/ports/1/state")
    a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")


def test_vlan(pair):
    """A VLAN over the netdev, and RDMA over the VLAN's GID."""
    with vlan(pair):
        pair.a.wait_for("ping -c 1 -W 1 10.98.0.2")
        gidx = {g.name: g.wait_gid(ip) for g, ip in ((pair.a, "10.98.0.1"), (pair.b, "10.98.0.2"))}
        run_pair(pair.b, pair.a, f"ibv_rc_pingpong -d $IBDEV -g {gidx['b']} -c -n 100",
                 f"ibv_rc_pingpong -d $IBDEV -g {gidx['a']} -c -n 100 {pair.b.ip}")


def test_gids_follow_addresses(pair):
    """A GID appears with an address and disappears with it."""
    a = pair.a
    a.run(f"ip addr add 10.97.0.1/24 dev {a.netdev}")
    index = a.wait_gid("10.97.0.1")
    assert index is not None
    a.run(f"ip addr del 10.97.0.1/24 dev {a.netdev}")
    a.wait_no_gid("10.97.0.1")

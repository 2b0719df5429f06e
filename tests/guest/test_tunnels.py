# SPDX-License-Identifier: GPL-2.0-or-later
"""Large sends in tunnels: the device segments them, or the kernel if it cannot."""

import contextlib

import pytest

from labs import Python, vlan
from test_net_queues import transfer

ERRORS = "nstat -az | awk '/InCsumErrors/ {s += $2} END {print s + 0}'"
SIZE = 3000001  # bytes that transfer() sends

# The version of the outer IP, what to add to "ip link add t0 type", and the feature.
TUNNELS = {
    "vxlan": (4, "vxlan id 7 dstport 4789 noudpcsum", "tx-udp_tnl-segmentation"),
    "vxlan6_csum": (6, "vxlan id 7 dstport 4789 udpcsum", "tx-udp_tnl-csum-segmentation"),
    "geneve": (4, "geneve id 7 udpcsum", "tx-udp_tnl-csum-segmentation"),
    "gre": (4, "gre key 9", "tx-gre-segmentation"),
    "gretap6": (6, "ip6gretap", "tx-gre-segmentation"),
    "ipip": (4, "ipip", "tx-ipxip4-segmentation"),
    "sit": (4, "sit", "tx-ipxip4-segmentation"),
    "ip6tnl": (6, "ip6tnl mode any", "tx-ipxip6-segmentation"),
}


def ends(pair, version):
    """Of both guests: itself, its number, its address, the other's."""
    a, b = pair.a, pair.b
    addresses = (a.ip, b.ip) if version == 4 else (a.ip6, b.ip6)
    return ((a, 1, *addresses), (b, 2, *reversed(addresses)))


@contextlib.contextmanager
def device(pair, name, version, kind, net, local=True):
    """The tunnel NAME between both guests, with addresses in the networks NET."""
    try:
        for guest, number, own, other in ends(pair, version):
            where = f"local {own} remote {other} dev {guest.netdev}" if local else \
                f"remote {other}"
            guest.run(f"ip link add {name} type {kind} {where} && ip link set {name} up && "
                      f"ip addr add 10.{net}.0.{number}/24 dev {name} && "
                      f"ip addr add fd{net}::{number}/64 dev {name} nodad")
        yield
    finally:
        for guest in (pair.a, pair.b):
            guest.run(f"ip link del {name}", check=False)


SHORT = ("vxlan6_csum",)


@pytest.mark.parametrize("tunnel", [
    tunnel if tunnel in SHORT else pytest.param(
        tunnel, marks=pytest.mark.long("tests/device/test_large_send has it")) for tunnel in TUNNELS])
def test_segmentation(pair, tunnel):
    """TCP in it arrives whole, with the switch on and off."""
    a, b = pair.a, pair.b
    version, kind, feature = TUNNELS[tunnel]
    pair.set_mtu(1500)
    bad = b.run(ERRORS).out
    with device(pair, "t0", version, kind, 88, local=not kind.startswith("geneve")):
        dst = "fd88::2" if tunnel in ("sit", "ip6tnl", "vxlan6_csum") else "10.88.0.2"
        a.wait_for(f"ping -c 1 -W 1 {dst}")
        try:
            for switch in ("on", "off"):
                a.run(f"ethtool -K {a.netdev} {feature} {switch}")
                large = a.ethtool_stat("drv_tx_large")
                frames = a.ethtool_stat("eth_tx_packets")
                transfer(a, b, dst, 5303)
                assert (a.ethtool_stat("drv_tx_large") > large) == (switch == "on")
                assert a.ethtool_stat("eth_tx_packets") - frames > SIZE // 1500
        finally:
            a.run(f"ethtool -K {a.netdev} {feature} on")
    assert b.run(ERRORS).out == bad, "checksum errors at the receiver"


def test_datagrams(pair):
    """One send of many datagrams, and checksums of small ones."""
    a, b = pair.a, pair.b
    with device(pair, "t0", 4, TUNNELS["vxlan"][1], 88):
        a.wait_for("ping -c 1 -W 1 10.88.0.2")
        job = b.start(Python("""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5304))
s.settimeout(60)
print("ready", flush=True)
got = [s.recv(65536) for i in range(12)]
print([len(x) for x in got], [x[0] for x in got], flush=True)
"""))
        job.wait_for("ready")
        bad = b.run(ERRORS).out
        large = a.ethtool_stat("drv_tx_large")
        a.run(Python("""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"z", ("10.88.0.2", 5304))
s.setsockopt(socket.SOL_UDP, 103, 1200)
s.sendto(b"".join(bytes([i]) * 1200 for i in range(10)) + bytes([10]) * 77,
         ("10.88.0.2", 5304))
"""))
        assert job.wait(90).rc == 0
        assert job.out_so_far().splitlines()[-1] == (
            f"{[1] + [1200] * 10 + [77]} {[122] + list(range(11))}")
        assert a.ethtool_stat("drv_tx_large") == large + 1
        assert b.run(ERRORS).out == bad


@pytest.mark.long("tests/device/test_large_send has tunnels in a VLAN")
def test_vlan(pair):
    """A tunnel over a VLAN: the device inserts the tag in each frame."""
    a, b = pair.a, pair.b
    with vlan(pair, net=87):
        try:
            for guest, number, *_ in ends(pair, 4):
                guest.run(f"ip link add t0 type gretap local 10.87.0.{number} "
                          f"remote 10.87.0.{3 - number} && ip link set t0 up && "
                          f"ip addr add 10.88.0.{number}/24 dev t0")
            a.wait_for("ping -c 1 -W 1 10.88.0.2")
            large = a.ethtool_stat("drv_tx_large")
            transfer(a, b, "10.88.0.2", 5305)
            assert a.ethtool_stat("drv_tx_large") > large
        finally:
            for guest in (a, b):
                guest.run("ip link del t0", check=False)


def test_service_tag(pair):
    """The device finds no IP behind a tag of 802.1ad, and is given no large send with one."""
    a, b = pair.a, pair.b
    with vlan(pair, net=86, protocol="802.1ad") as dst:
        a.wait_for(f"ping -c 1 -W 1 {dst}")
        large = a.ethtool_stat("drv_tx_large")
        transfer(a, b, dst, 5308)
        assert a.ethtool_stat("drv_tx_large") == large


@pytest.mark.long("test_left_to_the_kernel has what the device is not given, too")
@pytest.mark.parametrize("kind", ["gre", "ipip"])
def test_in_another(pair, kind):
    """Data in a tunnel in a tunnel arrive whole: the device is not given these to cut."""
    a, b = pair.a, pair.b
    with device(pair, "t0", 4, "ipip" if kind == "ipip" else TUNNELS["vxlan"][1], 88):
        try:
            for guest, number, *_ in ends(pair, 4):
                guest.run(f"ip link add t1 type {kind} local 10.88.0.{number} "
                          f"remote 10.88.0.{3 - number} && ip link set t1 up && "
                          f"ip addr add 10.89.0.{number}/24 dev t1")
            a.wait_for("ping -c 1 -W 1 10.89.0.2")
            transfer(a, b, "10.89.0.2", 5306)
        finally:
            for guest in (a, b):
                guest.run("ip link del t1", check=False)


@pytest.mark.parametrize("kind", [
    pytest.param("gre csum", marks=pytest.mark.long("the other one is in the gate")),
    "ipip encap fou encap-sport auto encap-dport 5555"], ids=["gre_csum", "fou"])
def test_left_to_the_kernel(pair, kind):
    """Tunnels that the device does not support."""
    a, b = pair.a, pair.b
    fou = "fou" in kind
    large = a.ethtool_stat("drv_tx_large")
    for guest in (a, b) if fou else ():
        guest.run("modprobe fou && ip fou add port 5555 ipproto 4")
    try:
        with device(pair, "t0", 4, kind, 88):
            a.wait_for("ping -c 1 -W 1 10.88.0.2")
            transfer(a, b, "10.88.0.2", 5307)
    finally:
        for guest in (a, b) if fou else ():
            guest.run("ip fou del port 5555")
    assert a.ethtool_stat("drv_tx_large") == large

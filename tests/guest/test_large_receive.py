# SPDX-License-Identifier: GPL-2.0-or-later
"""Received packets that hold many frames: their effect on sockets, the next hop and the
statistics, and how they are switched off. They come as super-frames, or the device merges frames
that arrived one by one."""

import contextlib
import json
import re
from pathlib import Path

import pytest

from labs import Python
from test_net_queues import transfer

STAMPS = Path(__file__).parent / "scripts" / "stamps.py"
RX_ALL = 1      # linux/net_tstamp.h
CHECKSUM_ERRORS = "nstat -az | awk '/InCsumErrors/ {s += $2} END {print s + 0}'"


def shown(guest, feature="rx-gro-hw"):
    """The state of a feature in ethtool: "on", "off [requested on]", ..."""
    text = guest.run(f"ethtool -k {guest.netdev}").out
    return re.search(rf"^{feature}: (.*)$", text, re.MULTILINE)[1]


@contextlib.contextmanager
def switched(guest, feature, value):
    """One feature of ethtool, restored after the block."""
    guest.run(f"ethtool -K {guest.netdev} {feature} {value}")
    try:
        yield
    finally:
        back = "on" if value == "off" else "off"
        guest.run(f"ethtool -K {guest.netdev} {feature} {back}")


@contextlib.contextmanager
def counted(guest):
    """What the guest received in the block: "large" packets, all "frames", and the packets
    "merged" by the device."""
    def now():
        link = json.loads(guest.run(f"ip -s -j link show {guest.netdev}").out)
        return {"large": guest.ethtool_stat("drv_rx_large"),
                "frames": link[0]["stats64"]["rx"]["packets"],
                "merged": guest.ethtool_stat("eth_rx_gro_packets"),
                "merged frames": guest.ethtool_stat("eth_rx_gro_frames")}

    before, found = now(), {}
    yield found
    found.update({k: n - before[k] for k, n in now().items()})


@contextlib.contextmanager
def one_by_one(guest):
    """The guest sends single frames."""
    try:
        with switched(guest, "tx-tcp-segmentation", "off"), \
                switched(guest, "tx-tcp6-segmentation", "off"):
            yield
    finally:
        guest.run(f"ethtool -K {guest.netdev} tso on")


# Each family once, and each value of the other parameter.
MERGED = pytest.mark.long("test_merged has IPv4 in frames of that size")
CROSSED = pytest.mark.long("each of the two values is in the gate, with another partner")


@pytest.mark.parametrize("family,mtu", [pytest.param(4, 1500, marks=MERGED),
                                        pytest.param(4, 9000, marks=CROSSED),
                                        pytest.param(6, 1500, marks=CROSSED), (6, 9000)])
def test_tcp(pair, family, mtu):
    """A stream arrives complete, in large packets if they are enabled. The statistics
    count frames in any case."""
    a, b = pair.a, pair.b
    pair.set_mtu(mtu)
    dst = b.ip if family == 4 else b.ip6
    errors = b.run(CHECKSUM_ERRORS).out
    assert shown(b) == "on"
    with counted(b) as on:
        transfer(a, b, dst, 5311)
    with switched(b, "rx-gro-hw", "off"), counted(b) as off:
        transfer(a, b, dst, 5312)
    least = 3000001 // mtu
    assert 0 < on["large"] < least and on["frames"] >= least, on
    assert off["large"] == 0 and off["frames"] >= least, off
    assert b.run(CHECKSUM_ERRORS).out == errors


@pytest.mark.parametrize("family,split", [pytest.param(4, False, marks=CROSSED), (4, True),
                                          pytest.param(6, False, marks=CROSSED),
                                          pytest.param(6, True, marks=CROSSED)])
def test_merged(pair, family, split):
    """The device merges the frames of a stream, and gives them out one by one when it is
    switched off. What arrives is right in any case."""
    a, b = pair.a, pair.b
    pair.set_mtu(1500)
    dst = b.ip if family == 4 else b.ip6
    errors = b.run(CHECKSUM_ERRORS).out
    try:
        b.run(f"ethtool -G {b.netdev} tcp-data-split {'on' if split else 'auto'}")
        with one_by_one(a):
            with counted(b) as on:
                transfer(a, b, dst, 5321)
            with switched(b, "rx-gro-hw", "off"), counted(b) as off:
                transfer(a, b, dst, 5322)
    finally:
        b.run(f"ethtool -G {b.netdev} tcp-data-split auto")
    least = 3000001 // 1500
    assert 0 < on["merged"] <= on["large"] and on["merged frames"] >= 2 * on["merged"], on
    assert on["frames"] >= least, on
    assert off["merged"] == off["large"] == 0 and off["frames"] >= least, off
    assert b.run(CHECKSUM_ERRORS).out == errors


# The limit of encapsulations would be an option between the two headers.
TUNNELS = {
    4: ("type ipip local {0.ip} remote {1.ip}", "10.97.0."),
    6: ("type ip6tnl mode any encaplimit none local {0.ip6} remote {1.ip6}", "10.97.0."),
    66: ("type ip6tnl mode ip6ip6 encaplimit none local {0.ip6} remote {1.ip6}", "fd97::"),
}


@pytest.mark.long("test_merged has the packets, and the stack their tunnels")
@pytest.mark.parametrize("kind", TUNNELS)
def test_merged_in_a_tunnel(pair, kind):
    """IP in IP: the stack takes the merged packets out of the tunnel as it would its own."""
    a, b = pair.a, pair.b
    pair.set_mtu(1500)
    args, net = TUNNELS[kind]
    length = 64 if kind == 66 else 24
    errors = b.run(CHECKSUM_ERRORS).out
    try:
        for near, far, number in (a, b, 1), (b, a, 2):
            near.run(f"ip link add tunnel {args.format(near, far)} && ip link set tunnel up && "
                     f"ip addr add {net}{number}/{length} dev tunnel "
                     f"{'nodad' if kind == 66 else ''}")
        with counted(b) as n:
            transfer(a, b, f"{net}2", 5331)
    finally:
        for guest in a, b:
            guest.run("ip link del tunnel", check=False)
    assert 0 < n["merged"] <= n["large"] and n["merged frames"] >= 2 * n["merged"], n
    assert b.run(CHECKSUM_ERRORS).out == errors


@pytest.mark.long("test_ptp has stamps, test_merged the packets")
def test_merged_and_stamped(pair):
    """A packet that holds many frames has a timestamp, its arrival; they are in order."""
    a, b = pair.a, pair.b
    pair.set_mtu(1500)
    b.put(STAMPS, "/tmp/stamps.py")
    b.run(f"python3 /tmp/stamps.py configure 0 {RX_ALL}")
    try:
        with one_by_one(a), counted(b) as n:
            job = b.start("python3 /tmp/stamps.py receive_stream")
            job.wait_for("ready")
            a.run(f"head -c 3000001 /dev/zero >/dev/tcp/{b.ip}/9999")
            result = job.wait(90)
    finally:
        b.run("python3 /tmp/stamps.py configure 0 0")
    assert result.rc == 0, result.describe()
    before, stamps, after = json.loads(result.out.splitlines()[-1])
    assert n["merged"] > 0
    assert len(stamps) > 1 and stamps == sorted(stamps), stamps
    assert before <= stamps[0] and stamps[-1] <= after, (before, stamps, after)


@pytest.mark.long("the kernel's rules for features; test_merged switches the packets off")
@pytest.mark.parametrize("feature", ["rx", "gro"])
def test_switched_off_with_another(pair, feature):
    """Without checksums or GRO there are no large packets; they come back with it."""
    a, b = pair.a, pair.b
    with switched(b, feature, "off"):
        assert shown(b) == "off [requested on]"
        with counted(b) as off:
            transfer(a, b, b.ip, 5313)
    assert shown(b) == "on"
    with counted(b) as on:
        transfer(a, b, b.ip, 5314)
    assert off["large"] == 0 < on["large"]


DATAGRAMS = """
import socket
s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
s.bind(("", {port}))
s.settimeout(60)
s.setsockopt(socket.SOL_UDP, 104, {gro})
print("ready", flush=True)
got = b""
sizes = []
while len(got) < 10 * 1200 + 77:
    data, extra, *_ = s.recvmsg(65536, 64)
    got += data
    sizes.append((len(data), int.from_bytes(extra[0][2], "little") if extra else 0))
want = b"".join(bytes([i]) * 1200 for i in range(10)) + bytes([10]) * 77
print("right" if got == want else "wrong", sizes, flush=True)
"""
SEND = """
import socket
s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_UDP, 103, 1200)
s.sendto(b"".join(bytes([i]) * 1200 for i in range(10)) + bytes([10]) * 77, ({dst!r}, {port}))
"""


@pytest.mark.parametrize("family,gro", [pytest.param(4, 0, marks=CROSSED), (4, 1),
                                        (6, 0), pytest.param(6, 1, marks=CROSSED)])
def test_udp(pair, family, gro):
    """A socket gets single datagrams, or all of them at once on request."""
    a, b = pair.a, pair.b
    dst = b.ip if family == 4 else b.ip6
    fields = {"family": "AF_INET" if family == 4 else "AF_INET6", "port": 5315 + gro,
              "gro": gro, "dst": dst}
    a.wait_for(f"ping -c 1 -W 1 {dst}")
    errors = b.run(CHECKSUM_ERRORS).out
    job = b.start(Python(DATAGRAMS.format(**fields)))
    job.wait_for("ready")
    with counted(b) as n:
        a.run(Python(SEND.format(**fields)))
        assert job.wait(90).rc == 0
    want = [(10 * 1200 + 77, 1200)] if gro else [(1200, 0)] * 10 + [(77, 0)]
    assert job.out_so_far().splitlines()[-1] == f"right {want}"
    assert n["large"] == 1 and n["frames"] >= 11
    assert b.run(CHECKSUM_ERRORS).out == errors


@contextlib.contextmanager
def inner_namespace(guest):
    """A network namespace of a guest with 10.96.0.2, behind its interface `outside`; starts
    a program in Python in it. The path to it does not carry large packets."""
    try:
        guest.run(
            "ip netns add inner && ip link add outside type veth peer name inside netns inner && "
            "ip link set outside up && ip netns exec inner ip addr add 10.96.0.2/24 dev inside && "
            "ip netns exec inner ip link set inside up && "
            "ethtool -K outside tso off gso off tx-udp-segmentation off tx off && "
            "ip netns exec inner ethtool -K inside gro off")
        yield lambda text: guest.start("ip netns exec inner python3 -", input=text)
    finally:
        guest.run("ip netns del inner; ip link del outside", check=False)


@contextlib.contextmanager
def inner_network(pair):
    """Such a namespace behind b, to which b forwards."""
    a, b = pair.a, pair.b
    with inner_namespace(b) as start:
        try:
            b.run("ip addr add 10.96.0.1/24 dev outside && "
                  "ip netns exec inner ip route add default via 10.96.0.1 && "
                  "sysctl -qw net.ipv4.ip_forward=1")
            a.run(f"ip route add 10.96.0.0/24 via {b.ip}")
            yield start
        finally:
            a.run("ip route del 10.96.0.0/24", check=False)
            b.run("sysctl -qw net.ipv4.ip_forward=0")


def hop_counts(guest):
    return json.loads(guest.run("ip -s -j link show outside").out)[0]["stats64"]["tx"]


@pytest.mark.long("the stack cuts the packets again; test_merged has what it is given")
def test_forwarded(pair):
    """The next hop gets frames again, and what arrives there is right."""
    a, b = pair.a, pair.b
    pair.set_mtu(1500)
    with inner_network(pair) as start:
        fields = {"family": "AF_INET", "port": 5317, "gro": 0, "dst": "10.96.0.2"}
        inside = f"{CHECKSUM_ERRORS.replace('nstat', 'ip netns exec inner nstat')}"
        job = start(DATAGRAMS.format(**fields))
        job.wait_for("ready")
        with counted(b) as udp:
            a.run(Python(SEND.format(**fields)))
            assert job.wait(90).rc == 0
        want = [(1200, 0)] * 10 + [(77, 0)]
        assert job.out_so_far().splitlines()[-1] == f"right {want}"
        with counted(b) as tcp:
            transfer(a, b, "10.96.0.2", 5318, start)
        with one_by_one(a), counted(b) as merged:
            transfer(a, b, "10.96.0.2", 5323, start)
        assert b.run(inside).out.strip() == "0"
        hop = hop_counts(b)
        assert hop["packets"] >= 2 * (3000001 // 1500) and hop["bytes"] / hop["packets"] <= 1514
    assert udp["large"] == 1 and tcp["large"] > 0 and merged["merged"] > 0


@contextlib.contextmanager
def bridged_network(pair):
    """Such a namespace in a VLAN of a's, to which b is the bridge."""
    a, b = pair.a, pair.b
    with inner_namespace(b) as start:
        try:
            b.run("ip link add link $NETDEV name vlan96 type vlan id 96 && "
                  "ip link add br96 type bridge && "
                  "for dev in outside vlan96; do ip link set $dev master br96 up || exit; done && "
                  "ip link set br96 up")
            a.run("ip link add link $NETDEV name vlan96 type vlan id 96 && "
                  "ip addr add 10.96.0.1/24 dev vlan96 && ip link set vlan96 up")
            a.wait_for("ping -c 1 -W 1 10.96.0.2")
            yield start
        finally:
            a.run("ip link del vlan96", check=False)
            b.run("ip link del br96; ip link del vlan96", check=False)


@pytest.mark.long("as test_forwarded: the stack cuts the packets again")
def test_bridged(pair):
    """As test_forwarded, for a bridge, in a VLAN."""
    a, b = pair.a, pair.b
    pair.set_mtu(1500)
    with bridged_network(pair) as start:
        with counted(b) as whole:
            transfer(a, b, "10.96.0.2", 5324, start)
        with one_by_one(a), counted(b) as merged:
            transfer(a, b, "10.96.0.2", 5325, start)
        errors = f"{CHECKSUM_ERRORS.replace('nstat', 'ip netns exec inner nstat')}"
        assert b.run(errors).out.strip() == "0"
        hop = hop_counts(b)
        assert hop["packets"] >= 2 * (3000001 // 1500) and hop["bytes"] / hop["packets"] <= 1518
    assert whole["large"] > 0 and merged["merged"] > 0


def test_with_header_split(pair):
    """The payload of a large packet goes to data buffers, whole pages of it."""
    a, b = pair.a, pair.b
    try:
        b.run(f"ethtool -G {b.netdev} tcp-data-split on")
        with counted(b) as n:
            for dst in (b.ip, b.ip6):
                transfer(a, b, dst, 5319)
    finally:
        b.run(f"ethtool -G {b.netdev} tcp-data-split off")
    assert n["large"] > 0


def test_changed_under_traffic(pair):
    """Ten changes while a stream arrives; the link stays up."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    changes = b.run(f"cat /sys/class/net/{dev}/carrier_changes").out
    job = a.start(f"ping -q -i 0.01 {b.ip}")
    try:
        for _ in range(5):
            b.run(f"ethtool -K {dev} rx-gro-hw off && ethtool -K {dev} rx-gro-hw on")
        transfer(a, b, b.ip, 5320)
    finally:
        job.kill()
    assert b.run(f"cat /sys/class/net/{dev}/carrier_changes").out == changes

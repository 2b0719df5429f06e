# SPDX-License-Identifier: GPL-2.0-or-later
"""The net device's queues: channels, RSS, filters, large sends."""

import contextlib
import ipaddress
import re
import struct
from pathlib import Path

import pytest

from labs import PATIENCE, Python, vlan
from qhca_lab import fault
from test_driver import function_reset, ping

KEY = bytes(range(1, 41))
KEY_TEXT = ":".join(f"{b:02x}" for b in KEY)


def toeplitz(data, key=KEY):
    """RSS hash of the bytes of a frame's fields."""
    value, window = 0, int.from_bytes(key, "big")
    width = 8 * len(key)
    for i in range(8 * len(data)):
        if data[i // 8] >> (7 - i % 8) & 1:
            value ^= window >> (width - 32 - i) & 0xFFFFFFFF
    return value


def udp_hash(src, dst, sport, dport, symmetric=False):
    s, d = ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed
    if symmetric:
        s = d = bytes(x ^ y for x, y in zip(s, d))
        sport = dport = sport ^ dport
    return toeplitz(s + d + struct.pack(">HH", sport, dport))


def send_udp(guest, dst, flows, count=5, size=64):
    """Send COUNT datagrams in each flow of (source port, destination port)."""
    family = "AF_INET6" if ":" in dst else "AF_INET"
    guest.run(Python(f"""
import socket
for sport, dport in {flows!r}:
    s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("", sport))
    for i in range({count}):
        try:
            s.sendto(bytes({size}), ({dst!r}, dport))
        except ConnectionRefusedError:
            pass
    s.close()
"""))


def per_queue(guest, what="rx"):
    """Packets received by each queue."""
    text = guest.run("ethtool -S $NETDEV").out
    found = re.findall(rf"^ *{what}(\d+)_packets: (\d+)", text, re.MULTILINE)
    return [int(n) for _, n in sorted((int(q), n) for q, n in found)]


def received(guest, action, wanted):
    """Packets that each queue receives during an action that causes at least WANTED."""
    before = per_queue(guest)

    def delta():
        return [n - b for n, b in zip(per_queue(guest), before)]

    action()
    return guest._until(lambda: sum(d := delta()) >= wanted and d, PATIENCE, "packets are missing")


def known(pair):
    """The neighbours are known, so that only the test's frames are sent."""
    pair.a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
    pair.b.run(f"ping -c 1 -W 5 {pair.a.ip}")


@pytest.fixture
def queues(pair):
    """Both guests with four channels and a known key; as before at the end."""
    before = {}
    for g in pair:
        text = g.run(f"ethtool -l {g.netdev}").out
        before[g.name] = re.findall(r"Combined:\s+(\d+)", text)[1]
        g.run(f"ethtool -L {g.netdev} combined 4 && ethtool -X {g.netdev} equal 4 hkey {KEY_TEXT}")
    known(pair)
    yield pair
    for g in pair:
        g.run(f"for i in $(ethtool -n {g.netdev} | sed -n 's/^Filter: //p'); do "
              f"ethtool -N {g.netdev} delete $i; done", check=False)
        for i in range(1, 4):
            g.run(f"ethtool -X {g.netdev} context {i} delete", check=False)
        g.run(f"ethtool -X {g.netdev} default; ethtool -L {g.netdev} combined {before[g.name]}")
    ping(pair)


def test_channels(pair):
    """Any number of channels up to 16, while frames arrive; the link stays up."""
    a, dev = pair.a, pair.a.netdev
    was = re.findall(r"Combined:\s+(\d+)", a.run(f"ethtool -l {dev}").out)
    assert was[0] == "16"
    changes = a.run(f"cat /sys/class/net/{dev}/carrier_changes").out
    job = pair.b.start(f"ping -q -i 0.01 {a.ip}")
    try:
        for n in (1, 16, 3):
            a.run(f"ethtool -L {dev} combined {n}", timeout=120)
            shown = re.findall(r"Combined:\s+(\d+)", a.run(f"ethtool -l {dev}").out)
            assert shown[1] == str(n)
            for kind in ("rx", "tx"):
                assert int(a.run(f"ls /sys/class/net/{dev}/queues | grep -c {kind}-").out) == n
            assert len(per_queue(a)) == n
            a.run(f"ping -c 3 -i 0.1 -W 5 {pair.b.ip}")
        for wrong in ("combined 17", "combined 0", "rx 2"):
            assert a.run(f"ethtool -L {dev} {wrong}", check=False).rc, wrong
        # a table keeps the queues that it names
        a.run(f"ethtool -L {dev} combined 4 && ethtool -X {dev} equal 4")
        assert a.run(f"ethtool -L {dev} combined 2", check=False).rc
        a.run(f"ethtool -X {dev} default && ethtool -L {dev} combined 2")
        a.run(f"ethtool -G {dev} rx 256 tx 256 && ethtool -G {dev} rx 1024 tx 512")
    finally:
        job.kill()
        a.run(f"ethtool -X {dev} default; ethtool -L {dev} combined {was[1]}")
    assert a.run(f"cat /sys/class/net/{dev}/carrier_changes").out == changes
    ping(pair)


@pytest.mark.parametrize("family", [
    pytest.param(4, marks=pytest.mark.long("test_rss_table_and_key has IPv4")),
    pytest.param(6, marks=pytest.mark.long("tests/engine/test_eth_rss has the hash of IPv6"))])
def test_rss_spreads_by_hash(queues, family):
    """Each flow goes to the queue that its hash selects, and to no other."""
    a, b = queues.a, queues.b
    src, dst = (a.ip, b.ip) if family == 4 else (a.ip6, b.ip6)
    flows = [(20000 + 7 * i, 9) for i in range(40)]
    want = [0] * 4
    for sport, dport in flows:
        want[udp_hash(src, dst, sport, dport) % 128 % 4] += 5
    assert min(want) > 0
    got = received(b, lambda: send_udp(a, dst, flows), 200)
    # and perhaps a frame of the background
    assert all(g >= w for g, w in zip(got, want)) and sum(got) - sum(want) < 20, (got, want)


def test_rss_table_and_key(queues):
    """The table selects the receiving queues; the symmetric hash ignores the direction."""
    a, b, dev = queues.a, queues.b, queues.b.netdev
    shown = b.run(f"ethtool -x {dev}").out
    assert KEY_TEXT in shown and "toeplitz: on" in shown
    flows = [(21000 + i, 9) for i in range(30)]
    b.run(f"ethtool -X {dev} weight 1 0 0 1")
    got = received(b, lambda: send_udp(a, b.ip, flows), 150)
    assert got[1] == got[2] == 0 and got[0] and got[3]
    # only addresses: one queue has all
    b.run(f"ethtool -X {dev} equal 4 && ethtool -N {dev} rx-flow-hash udp4 sd")
    shown = b.run(f"ethtool -n {dev} rx-flow-hash udp4").out
    assert "IP SA" in shown and "L4 bytes" not in shown
    got = received(b, lambda: send_udp(a, b.ip, flows), 150)
    assert max(got) >= 150
    for wrong in ("udp4 m", "ether sd"):
        assert b.run(f"ethtool -N {dev} rx-flow-hash {wrong}", check=False).rc, wrong
    b.run(f"ethtool -N {dev} rx-flow-hash udp4 sdfn")
    b.run(f"ethtool -X {dev} xfrm symmetric-xor")
    want = [0] * 4
    for sport, dport in flows:
        want[udp_hash(a.ip, b.ip, sport, dport, True) % 128 % 4] += 5
    got = received(b, lambda: send_udp(a, b.ip, flows), 150)
    assert all(g >= w for g, w in zip(got, want)), (got, want)
    assert b.run(f"ethtool -N {dev} rx-flow-hash udp4 s", check=False).rc
    b.run(f"ethtool -X {dev} xfrm none")


@pytest.mark.parametrize("resets", [
    False, pytest.param(True, marks=pytest.mark.long("rules that last; they work in the gate"))])
def test_contexts_and_filters(queues, resets):
    """Rules lead to a context, a queue or nowhere, also after a reset of the adapter."""
    a, b, dev = queues.a, queues.b, queues.b.netdev
    out = b.run(f"ethtool -X {dev} context new start 2 equal 1").out
    context = int(re.search(r"is (\d+)", out)[1])

    def rule(text, check=True):
        found = re.search(r"ID (\d+)", b.run(f"ethtool -N {dev} flow-type {text}", check=check).out)
        return int(found[1]) if found else None

    def to(port, wanted=100):
        return received(b, lambda: send_udp(a, b.ip, [(22000 + i, port) for i in range(20)]), wanted)

    in_context = rule(f"udp4 dst-port 7001 context {context}")
    in_queue = rule("udp4 dst-port 7002 action 3")
    dropped = rule("udp4 dst-port 7003 action -1")
    rule(f"tcp6 dst-ip {b.ip6} src-port 5 action 1")
    shown = b.run(f"ethtool -n {dev}").out
    assert "Total 4 rules" in shown and f"Direct to RSS Context {context}\n" in shown, shown

    def act():
        assert to(7001)[2] >= 100
        assert to(7002)[3] >= 100
        before = b.ethtool_stat("eth_rx_packets")
        send_udp(a, b.ip, [(23000, 7003)], count=50)
        got = to(7002)
        assert got[3] >= 100 and b.ethtool_stat("eth_rx_packets") - before < 150
    act()
    if resets:
        b.run(f"ethtool -G {dev} rx 512")
        act()
        function_reset(b)
        b.setup_nic()
        known(queues)
        act()
        b.run(f"ethtool -G {dev} rx 1024")
    # invalid rules
    for wrong in ("udp4 dst-port 1 action 99", "udp4 dst-port 1 context 40",
                  "sctp4 dst-port 1 action 1", "udp4 dst-port 1 action 1 loc 100000"):
        assert rule(wrong, check=False) is None, wrong
    assert b.run(f"ethtool -X {dev} context {context} delete", check=False).rc
    assert b.run(f"ethtool -N {dev} delete 77", check=False).rc
    assert b.run(f"ethtool -L {dev} combined 2", check=False).rc
    # a rule for the same frames is replaced, unless it says where it wants to be
    assert rule("udp4 dst-port 7002 action 0") == in_queue
    assert to(7002)[0] >= 100
    assert rule("udp4 dst-port 7002 action 3") == in_queue
    # the lower location has the frame
    rule(f"udp4 dst-port 7002 action 1 loc {in_queue + 200}")
    assert to(7002)[3] >= 100
    b.run(f"ethtool -N {dev} delete {in_queue}")
    assert to(7002)[1] >= 100
    for one in (in_context, dropped):
        b.run(f"ethtool -N {dev} delete {one}")
    b.run(f"ethtool -X {dev} context {context} delete")
    # off: no rules
    b.run(f"ethtool -K {dev} ntuple off")
    assert "Total 0 rules" in b.run(f"ethtool -n {dev}").out
    assert rule("udp4 dst-port 7004 action 1", check=False) is None
    b.run(f"ethtool -K {dev} ntuple on")


def test_filter_adds_its_queue(queues):
    """A filter's queue is added to each entry of its context's table, also of a later one."""
    a, b, dev = queues.a, queues.b, queues.b.netdev
    # the context has the key of the default one
    out = b.run(f"ethtool -X {dev} context new equal 2").out
    context = re.search(r"is (\d+)", out)[1]
    rule = f"ethtool -N {dev} flow-type udp4 context {context} dst-port"
    b.run(f"{rule} 7011")
    added = re.search(r"ID (\d+)", b.run(f"{rule} 7012 action 2").out)[1]

    def check(port, entries, base):
        flows = [(24000 + i, port) for i in range(20)]
        want = [0] * 4
        for flow in flows:
            want[base + udp_hash(a.ip, b.ip, *flow) % 128 % entries] += 5
        got = received(b, lambda: send_udp(a, b.ip, flows), 100)
        assert all(g >= w for g, w in zip(got, want)), (port, got, want)

    for entries in (2, 1):
        b.run(f"ethtool -X {dev} context {context} equal {entries}")
        check(7011, entries, 0)
        check(7012, entries, 2)
    b.run(f"ethtool -G {dev} rx 512 && ethtool -G {dev} rx 1024")
    check(7012, 1, 2)
    # beyond the last queue
    assert b.run(f"{rule} 7013 action 4", check=False).rc
    assert b.run(f"ethtool -X {dev} context {context} equal 3", check=False).rc
    check(7012, 1, 2)
    b.run(f"ethtool -X {dev} equal 1")
    assert b.run(f"ethtool -L {dev} combined 2", check=False).rc
    b.run(f"ethtool -L {dev} combined 3")
    b.run(f"ethtool -N {dev} delete {added}")
    b.run(f"ethtool -L {dev} combined 2 && ethtool -L {dev} combined 4")
    b.run(f"ethtool -X {dev} context {context} equal 3")


def test_removed_with_contexts(pair):
    """The driver leaves the adapter while rules and contexts exist."""
    a, dev = pair.a, pair.a.netdev
    a.run(f"ethtool -L {dev} combined 4")
    context, *_ = (re.search(r"is (\d+)", a.run(f"ethtool -X {dev} context new equal 2").out)[1]
                   for _ in range(3))
    a.run(f"ethtool -N {dev} flow-type udp4 dst-port 7001 context {context}")
    for step in ("unbind", "bind"):
        a.run(f"echo {a.pci} > /sys/bus/pci/drivers/qhca/{step}")
    a.setup_nic()
    assert "Total 0 rules" in a.run(f"ethtool -n {dev}").out
    ping(pair)


RECEIVE = """
import hashlib, socket, sys
s = socket.create_server(("", {port}), family=socket.{family}, dualstack_ipv6=False)
print("ready", flush=True)
c, _ = s.accept()
h, n = hashlib.sha256(), 0
while data := c.recv(1 << 16):
    h.update(data)
    n += len(data)
print(n, h.hexdigest(), flush=True)
"""
SEND = """
import hashlib, random, socket
data = random.Random(1).randbytes(3000001)
with socket.create_connection(({dst!r}, {port})) as s:
    s.sendall(data)
print(len(data), hashlib.sha256(data).hexdigest())
"""


IPV4 = pytest.mark.long("test_udp_segmentation has IPv4 in the gate")
CROSSED = pytest.mark.long("each of the two values is in the gate, with another partner")


@pytest.mark.parametrize("family,mtu", [pytest.param(4, 1500, marks=IPV4),
                                        pytest.param(4, 9000, marks=CROSSED),
                                        pytest.param(6, 1500, marks=CROSSED), (6, 9000)])
def test_tcp_segmentation(pair, family, mtu):
    """Large sends of TCP arrive whole, with the switch on and off."""
    a, b = pair.a, pair.b
    pair.set_mtu(mtu)
    dst = b.ip if family == 4 else b.ip6
    errors = "nstat -az | awk '/InCsumErrors/ {s += $2} END {print s + 0}'"
    bad = b.run(errors).out
    try:
        for switch in ("on", "off"):
            a.run(f"ethtool -K {a.netdev} tso {switch}")
            before = a.ethtool_stat("drv_tx_large")
            text = RECEIVE.format(port=5301, family="AF_INET" if family == 4 else "AF_INET6")
            job = b.start(Python(text))
            job.wait_for("ready")
            sent = a.run(Python(SEND.format(dst=dst, port=5301))).out
            assert job.wait().rc == 0
            assert job.out_so_far().splitlines()[-1] == sent.strip()
            assert (a.ethtool_stat("drv_tx_large") > before) == (switch == "on")
    finally:
        a.run(f"ethtool -K {a.netdev} tso on")
    assert b.run(errors).out == bad, "checksum errors at the receiver"


LARGE = """
import socket, struct
exts, payload = {exts}, bytes(3000)
src, dst = (socket.inet_pton(socket.AF_INET6, ip) for ip in ({src!r}, {dst!r}))
mac = lambda text: bytes.fromhex(text.replace(":", ""))
length = struct.pack(">I", 20 + len(payload))
pseudo = struct.unpack(">18H", src + dst + length) + (6,)
check = sum(pseudo)
check = (check & 0xFFFF) + (check >> 16)
check = (check & 0xFFFF) + (check >> 16)
types = [60] * exts + [6]               # destination options, TCP
frame = mac({dst_mac!r}) + mac({src_mac!r}) + b"\\x86\\xdd"
frame += struct.pack(">IHBB", 6 << 28, 8 * exts + 20 + len(payload), types[0], 64) + src + dst
for n in range(exts):
    frame += bytes([types[n + 1], 0, 1, 4, 0, 0, 0, 0])     # PadN
start = len(frame)
frame += struct.pack(">HHIIBBHHH", 7401, 7402, 1, 1, 5 << 4, 0x10, 1000, check, 0) + payload
# struct virtio_net_hdr: NEEDS_CSUM, GSO_TCPV6
head = struct.pack("=BBHHHH", 1, 4, start + 20, 1000, start, 16)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
s.setsockopt(263, 15, 1)                # SOL_PACKET, PACKET_VNET_HDR
s.bind(({dev!r}, 0x86dd))
s.send(head + frame)
"""
LARGE_GOT = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86dd))
s.bind(({dev!r}, 0x86dd))
s.settimeout(60)
at, got = 54 + 8 * {exts}, 0
print("ready", flush=True)
while got < 3000:
    frame, where = s.recvfrom(65536)
    if where[2] != socket.PACKET_OUTGOING and frame[at:at + 4] == bytes.fromhex("1ce91cea"):
        got += int.from_bytes(frame[18:20], "big") - 8 * {exts} - 20
print(got, flush=True)
"""


@pytest.mark.long("headers that no socket can request; streams are in the gate")
@pytest.mark.parametrize("exts,large", [(8, 1), (9, 0)])
def test_segmentation_behind_extension_headers(pair, exts, large):
    """The device follows eight IPv6 extension headers: behind more, the kernel segments."""
    a, b = pair.a, pair.b
    pair.set_mtu(1500)
    ping(pair)
    macs = [g.run("cat /sys/class/net/$NETDEV/address").out.strip() for g in pair]
    job = b.start(Python(LARGE_GOT.format(dev=b.netdev, exts=exts)))
    job.wait_for("ready")
    before = [a.ethtool_stat(n) for n in ("drv_tx_large", "eth_tx_errors")]
    a.run(Python(LARGE.format(dev=a.netdev, exts=exts, src=a.ip6, dst=b.ip6, src_mac=macs[0],
                              dst_mac=macs[1])))
    assert job.wait(90).out.split() == ["ready", "3000"]
    after = [a.ethtool_stat(n) for n in ("drv_tx_large", "eth_tx_errors")]
    assert after == [before[0] + large, before[1]]


@pytest.mark.parametrize("family,tagged", [
    (4, False), (6, True),
    pytest.param(6, False, marks=pytest.mark.long("IPv6 in a VLAN is in the gate")),
    pytest.param(4, True, marks=pytest.mark.long("IPv6 in a VLAN is in the gate"))])
def test_udp_segmentation(pair, family, tagged):
    """One send of many datagrams: the device cuts it, and inserts a VLAN's tag in each."""
    a, b = pair.a, pair.b
    dst = b.ip if family == 4 else b.ip6
    name = "AF_INET" if family == 4 else "AF_INET6"
    with vlan(pair, family) if tagged else contextlib.nullcontext(dst) as dst:
        a.wait_for(f"ping -c 1 -W 1 {dst}")
        job = b.start(Python(f"""
import socket
s = socket.socket(socket.{name}, socket.SOCK_DGRAM)
s.bind(("", 5302))
s.settimeout(60)
print("ready", flush=True)
got = [s.recv(65536) for i in range(11)]
print([len(x) for x in got], [x[0] for x in got], flush=True)
"""))
        job.wait_for("ready")
        before = a.ethtool_stat("drv_tx_large")
        a.run(Python(f"""
import socket
s = socket.socket(socket.{name}, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_UDP, 103, 1200)
s.sendto(b"".join(bytes([i]) * 1200 for i in range(10)) + bytes([10]) * 77, ({dst!r}, 5302))
"""))
        assert job.wait(90).rc == 0
        assert job.out_so_far().splitlines()[-1] == f"{[1200] * 10 + [77]} {list(range(11))}"
        assert a.ethtool_stat("drv_tx_large") == before + 1


def transfer(a, b, dst, port, start=None):
    """3,000,001 bytes over TCP from A to B, at DST, where START starts a program in
    Python; the hashes of both are the same."""
    family = "AF_INET6" if ":" in dst else "AF_INET"
    text = RECEIVE.format(port=port, family=family)
    job = start(text) if start else b.start(Python(text))
    job.wait_for("ready")
    sent = a.run(Python(SEND.format(dst=dst, port=port))).out
    assert job.wait().rc == 0
    assert job.out_so_far().splitlines()[-1] == sent.strip()


OTHER_MTU = pytest.mark.long("more of the same: 9000 has the most pages")
SPLIT = pytest.mark.long("test_tcp_mmap and test_with_header_split have streams that are split")


@pytest.mark.parametrize("mtu", [pytest.param(1500, marks=OTHER_MTU),
                                 pytest.param(4148, marks=OTHER_MTU),
                                 pytest.param(9000, marks=SPLIT)])
def test_header_data_split(pair, mtu):
    """Split frames arrive whole, in queues that are exchanged while the link stays."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    shown = b.run(f"ethtool -g {dev}").out
    assert re.findall(r"TCP data split:\s+(\w+)", shown)[-1] == "off", shown
    pair.set_mtu(mtu)
    changes = b.run(f"cat /sys/class/net/{dev}/carrier_changes").out
    try:
        b.run(f"ethtool -G {dev} tcp-data-split on")
        shown = b.run(f"ethtool -g {dev}").out
        assert re.findall(r"TCP data split:\s+(\w+)", shown)[-1] == "on", shown
        split = b.ethtool_stat("drv_rx_split")
        for dst in (b.ip, b.ip6):
            transfer(a, b, dst, 5303)
        assert b.ethtool_stat("drv_rx_split") - split >= 2 * 3000001 // mtu
        # frames of neither TCP nor UDP, fragments, and other rings
        a.run(f"ping -c 3 -i 0.1 -s 20000 -W 10 {b.ip}")
        b.run(f"ethtool -G {dev} rx 256")
        transfer(a, b, b.ip, 5303)
        b.run(f"ethtool -L {dev} combined 3")
        transfer(a, b, b.ip6, 5303)
        b.run(f"ethtool -G {dev} tcp-data-split off")
        split = b.ethtool_stat("drv_rx_split")
        transfer(a, b, b.ip, 5303)
        assert b.ethtool_stat("drv_rx_split") == split
    finally:
        b.run(f"ethtool -L {dev} combined 2; ethtool -G {dev} rx 1024 tcp-data-split auto")
    assert b.run(f"cat /sys/class/net/{dev}/carrier_changes").out == changes
    ping(pair)


def put_bind_rx(guest) -> str:
    """A program that binds memory of another device to queues; its command."""
    guest.put(Path(__file__).parent / "scripts" / "bind_rx.py", "/tmp/bind_rx.py")
    guest.run("test -c /dev/udmabuf || modprobe udmabuf")
    return "python3 /tmp/bind_rx.py"


@pytest.mark.long("an exchange that the device refuses; those that succeed are in the gate")
def test_queue_not_exchanged(queues):
    """The device refuses to suspend a queue that is to be replaced: the caller gets an error, and
    the queue continues as before, with the link and the other queues."""
    a, b, dev = queues.a, queues.b, queues.b.netdev
    changes = b.run(f"cat /sys/class/net/{dev}/carrier_changes").out
    bind_rx = put_bind_rx(b)
    try:
        # all received frames go to queue 2, the third in the list
        b.run(f"ethtool -G {dev} tcp-data-split on && ethtool -X {dev} start 2 equal 1")
        shown = b.run("cat /sys/kernel/debug/qhca/*/queues").out
        number = int(re.findall(r"^rx_rq (\d+)", shown, re.MULTILINE)[2])
        rule = {"action": "dma-error", "kind": "command", "access": "read", "number": number}
        fault.add(b, rule)
        try:
            assert b.run(f"{bind_rx} 2").out == "EFAULT\n"
            assert [f["hits"] for f in fault.listed(b)["faults"]] == [1]
        finally:
            fault.remove(b)
        before = per_queue(b)
        transfer(a, b, b.ip, 5306)
        ping(queues)
        assert per_queue(b)[2] - before[2] >= 3000001 // 9000
        assert f"rx_rq {number} " in b.run("cat /sys/kernel/debug/qhca/*/queues").out
        # and it can still be exchanged
        job = b.start(f"{bind_rx} 2", input="")
        assert job.wait(60).out == "bound\n"
        transfer(a, b, b.ip, 5307)
    finally:
        b.run(f"ethtool -X {dev} default; ethtool -G {dev} tcp-data-split auto")
    assert b.run(f"cat /sys/class/net/{dev}/carrier_changes").out == changes

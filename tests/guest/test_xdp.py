# SPDX-License-Identifier: GPL-2.0-or-later
"""XDP programs in the net device's driver: their effect on frames, in one buffer and in several,
and the programs when the queues change."""

import contextlib
import ipaddress
import json
import re

import pytest

from ftrace import INSTANCE, events
from labs import PATIENCE, Python, lacks, vlan
from test_dmabuf import scripts
from test_driver import function_reset, ping
from test_large_receive import shown
from test_net_queues import KEY_TEXT, send_udp, toeplitz, transfer, udp_hash
from test_ptp import RX_ALL, RX_NONE, SCRIPT as STAMPS, TX_OFF, stamps

# section of the program, MTU, bytes of a datagram
SIZES = {"single": ("xdp", 1500, 1400), "several": ("xdp.frags", 9000, 8900)}
SEVERAL = pytest.mark.long("frames in several buffers are in the gate, and streams in one")
ALIKE = [pytest.param("single", marks=SEVERAL), "several"]
L3_IPV4, L4_ANY = 1 << 0, 1 << 3  # XDP_RSS_L3_IPV4, XDP_RSS_L4


@contextlib.contextmanager
def attached(guest, progs, section="xdp"):
    """The tests' program at the guest's adapter."""
    dev = guest.netdev
    guest.run(f"ip link set dev {dev} xdpdrv obj {progs.path('xdp.bpf.o')} sec {section}")
    try:
        yield
    finally:
        guest.run(f"ip link set dev {dev} xdpdrv off")


@pytest.fixture(params=ALIKE)
def program(request, pair, progs):
    """A pair, with the program at b; the bytes of a datagram that tests send."""
    section, mtu, size = SIZES[request.param]
    pair.set_mtu(mtu)
    pair.a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
    pair.b.run(f"ping -c 1 -W 5 {pair.a.ip}")
    with attached(pair.b, progs, section):
        yield pair, size


def counters(guest):
    """The counters of all queues for XDP, added up."""
    found = {}
    for side, name, value in re.findall(r"^ *([rt]x)\d+_(xdp_\w+): (\d+)$",
                                        guest.run("ethtool -S $NETDEV").out, re.MULTILINE):
        key = f"{side}_{name}"
        found[key] = found.get(key, 0) + int(value)
    return found


@contextlib.contextmanager
def counted(guest):
    """The increments of the counters in the block, without those that did not change."""
    before, found = counters(guest), {}
    yield found
    found.update({k: n - before[k] for k, n in counters(guest).items() if n != before[k]})


ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, {device!r})
s.connect(({dst!r}, {port}))
s.settimeout(30)
for i in range({count}):
    sent = bytes((i + j) % 251 for j in range({size}))
    s.send(sent)
    got = s.recv(65536)
    want = (sent + bytes({longer}))[:{upto}]
    assert got == want, (i, len(got), got[:8])
print("right")
"""


def echo(a, b, port, size, count=20, longer=0, upto=65536, dst=None, device=""):
    out = a.run(Python(ECHO.format(dst=dst or b.ip, port=port, size=size, count=count,
                                   longer=longer, upto=upto, device=device.encode()))).out
    assert out.strip() == "right"


@pytest.mark.parametrize("program", SIZES, indirect=True)
def test_pass(program, pair):
    """A stream arrives whole, a datagram also when the program has moved its head."""
    a, b = pair.a, pair.b
    with counted(b) as n:
        for dst in (b.ip, b.ip6):
            transfer(a, b, dst, 7120)
        job = b.start(Python("""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7107))
s.settimeout(60)
print("ready", flush=True)
print(len(s.recv(65536)), flush=True)
"""))
        job.wait_for("ready")
        send_udp(a, b.ip, [(7200, 7107)], count=1, size=program[1])
        assert job.wait(90).rc == 0
    assert job.out_so_far().split()[-1] == str(program[1])
    assert n.keys() == {"rx_xdp_packets"}


def test_drop(program, pair):
    """No socket gets what the program drops."""
    a, b = pair.a, pair.b
    with counted(b) as n:
        send_udp(a, b.ip, [(7200, 7101)], count=200, size=program[1])
        b._until(lambda: counters(b)["rx_xdp_drops"] >= 200, PATIENCE, "frames are not dropped")
        unreachable = b.run("nstat -az UdpNoPorts | awk '/NoPorts/ {print $2}'").out
    assert n["rx_xdp_drops"] >= 200 and "tx_xdp_xmit" not in n
    send_udp(a, b.ip, [(7200, 7101)], count=10)
    assert b.run("nstat -az UdpNoPorts | awk '/NoPorts/ {print $2}'").out == unreachable


@pytest.mark.parametrize("port,counter", [(7102, "rx_xdp_tx"), (7103, "rx_xdp_redirects")])
def test_sent_back(program, pair, port, counter):
    """Each byte that the program sends back, or redirects, is correct."""
    a, b = pair.a, pair.b
    with counted(b) as n:
        echo(a, b, port, program[1], count=50)
    assert n[counter] == n["tx_xdp_xmit"] == 50
    assert "rx_xdp_drops" not in n and "tx_xdp_drops" not in n


def test_sent_back_with_its_tag(program, pair):
    """The adapter has stripped the tag of a frame in a VLAN: what is sent back has it again."""
    a, b = pair.a, pair.b
    with vlan(pair) as dst:
        a.wait_for(f"ping -c 1 -W 1 {dst}")
        with counted(b) as n:
            echo(a, b, 7102, program[1], dst=dst, device="v42")
            echo(a, b, 7105, program[1], dst=dst, device="v42", upto=100)
            echo(a, b, 7102, program[1])
    assert n["rx_xdp_tx"] == n["tx_xdp_xmit"] == 60


@pytest.mark.long("test_sent_back has frames that are redirected to the adapter")
@pytest.mark.parametrize("size", SIZES)
def test_from_another_device(pair, progs, size):
    """Frames that a program redirects to the adapter from another device are sent, even if the
    adapter itself has no program."""
    section, mtu, length = SIZES[size]
    a, b = pair.a, pair.b
    pair.set_mtu(mtu)
    number = int(b.run(f"cat /sys/class/net/{b.netdev}/ifindex").out)
    mac = a.run("cat /sys/class/net/$NETDEV/address").out.strip()
    job = a.start(Python(f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# SO_RCVBUFFORCE: a busy host lets datagrams wait
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)
s.bind(("", {7500 + number}))
s.settimeout(60)
print("ready", flush=True)
assert all(s.recv(65536) == bytes((i + j) % 251 for j in range({length})) for i in range(50))
"""))
    job.wait_for("ready")
    try:
        b.run("ip netns add other && ip link add v0 type veth peer name v1 netns other && "
              f"ip link set v0 mtu {mtu} up && ip link set dev v0 xdpdrv "
              f"obj {progs.path('xdp.bpf.o')} sec {section}")
        b.run(f"ip netns exec other sh -c 'ip link set v1 mtu {mtu} up && ethtool -K v1 tx off && "
              f"ip addr add {b.ip}/32 dev v1 && ip route add {a.ip} dev v1 && "
              f"ip neigh add {a.ip} lladdr {mac} dev v1'")
        with counted(b) as n:
            b.run("ip netns exec other python3 -", input=f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(50):
    s.sendto(bytes((i + j) % 251 for j in range({length})), ({a.ip!r}, {7500 + number}))
""")
            assert job.wait(90).rc == 0, job.result().describe()
    finally:
        b.run("ip link del v0; ip netns del other", check=False)
    assert n == {"tx_xdp_xmit": 50}


@pytest.mark.long("test_sent_back has each byte, test_xsk a ring that runs empty")
def test_many_sent_back(program, pair):
    """More frames than the rings hold arrive at once. Those sent back are correct, and the adapter
    continues."""
    a, b = pair.a, pair.b
    for port in (7102, 7103):
        send_udp(a, b.ip, [(7300 + i, port) for i in range(8)], count=400, size=program[1])
        echo(a, b, port, program[1], count=5)
    ping(pair)


def test_resized(program, pair):
    """A program cuts a datagram, across its buffers, and makes one longer."""
    a, b = pair.a, pair.b
    size = program[1]
    echo(a, b, 7105, size, upto=100)
    # as much as fits the last buffer
    longer = 1000 if size < 2000 else size
    echo(a, b, 7106, longer - 64, longer=64)


def test_aborted(program, pair):
    """It causes a trace event."""
    a, b = pair.a, pair.b
    with counted(b) as n, events(b, "xdp"):
        send_udp(a, b.ip, [(7200, 7104)], count=10, size=program[1])
        b.wait_for(f"test $(grep -c 'xdp_exception.*action=ABORTED' {INSTANCE}/trace) -ge 10")
        b.run(f"echo 0 > {INSTANCE}/events/xdp/enable")
    assert n["rx_xdp_drops"] >= 10


def test_no_room_to_send_back(pair, progs):
    """Frames for which the send ring has no room are dropped, with a trace event."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    rates = f"/sys/class/net/{dev}/queues/tx-*/tx_maxrate"
    pair.set_mtu(1500)
    b.run(f"ethtool -G {dev} tx 64 && echo 1 | tee {rates}")
    a.wait_for(f"ping -c 1 -W 1 {b.ip}")
    try:
        with attached(b, progs), counted(b) as n, events(b, "xdp"):
            send_udp(a, b.ip, [(7300 + i, 7102) for i in range(4)], count=200, size=1400)
            b.wait_for(f"grep -q 'xdp_exception.*action=TX' {INSTANCE}/trace")
            b.run(f"echo 0 > {INSTANCE}/events/xdp/enable; echo 0 | tee {rates}")
            echo(a, b, 7103, 1400, count=5)
        assert n["rx_xdp_drops"] == n["tx_xdp_drops"] > 0
    finally:
        b.run(f"echo 0 | tee {rates}; ethtool -G {dev} tx 512")
    ping(pair)


@pytest.mark.long("test_xsk has the same changes, with a program and a socket")
def test_queues_change(program, pair):
    """The program survives changes of rings and channels, a reset of the adapter, and setting the
    interface down."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    was = re.findall(r"Combined:\s+(\d+)", b.run(f"ethtool -l {dev}").out)[1]
    try:
        for command in (f"ethtool -G {dev} rx 256 tx 128", f"ethtool -L {dev} combined 3"):
            b.run(command)
            echo(a, b, 7102, program[1], count=5)
        function_reset(b)
        a.wait_for(f"ping -c 1 -W 1 {b.ip}")
        echo(a, b, 7103, program[1], count=5)
        b.run(f"sysctl -qw net.ipv6.conf.{dev}.keep_addr_on_down=1")
        b.run(f"ip link set {dev} down && ip link set {dev} up")
        a.wait_for(f"ping -c 1 -W 1 {b.ip}")
        echo(a, b, 7102, program[1], count=5)
    finally:
        b.run(f"ethtool -G {dev} rx 1024 tx 512; ethtool -L {dev} combined {was}; "
              f"sysctl -qw net.ipv6.conf.{dev}.keep_addr_on_down=0")


def test_large_packets_are_off(pair, progs):
    """A program sees frames: packets that hold many frames are disabled, and enabled again
    afterwards."""
    b = pair.b
    pair.set_mtu(1500)
    assert shown(b) == "on"
    with attached(b, progs):
        assert shown(b) == "off [requested on]"
        large = b.ethtool_stat("drv_rx_large")
        transfer(pair.a, b, b.ip, 7121)
        assert b.ethtool_stat("drv_rx_large") == large
    assert shown(b) == "on"
    transfer(pair.a, b, b.ip, 7122)
    assert b.ethtool_stat("drv_rx_large") > large


def test_attached_under_traffic(pair, progs):
    """Programs are attached, detached and replaced under traffic."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    pair.set_mtu(1500)
    changes = b.run(f"cat /sys/class/net/{dev}/carrier_changes").out
    job = a.start(f"ping -q -i 0.01 {b.ip}")
    try:
        for _ in range(3):
            with attached(b, progs):
                b.run(f"ip -force link set dev {dev} xdpdrv obj {progs.path('xdp.bpf.o')} "
                      "sec xdp.frags")
        transfer(a, b, b.ip, 7123)
    finally:
        job.kill()
    assert b.run(f"cat /sys/class/net/{dev}/carrier_changes").out == changes


def test_refused(pair, progs):
    """Incompatible settings are refused, with a reason, in either order."""
    b, dev = pair.b, pair.b.netdev
    attach = f"ip link set dev {dev} xdpdrv obj {progs.path('xdp.bpf.o')} sec xdp"
    pair.set_mtu(1500)

    def refused(command, why):
        result = b.run(command, check=False)
        assert result.rc and why in result.out + result.err, result.describe()

    b.run(f"ethtool -G {dev} tcp-data-split on")
    try:
        refused(attach, "split")
    finally:
        b.run(f"ethtool -G {dev} tcp-data-split off")
    b.run(f"ethtool -G {dev} rx-buf-len 8192")
    try:
        refused(attach, "buffers")
    finally:
        b.run(f"ethtool -G {dev} rx-buf-len 4096")
    b.run(f"ip link set {dev} mtu 9000")
    refused(attach, "MTU")
    b.run(f"ip link set {dev} mtu 1500")
    with attached(b, progs):
        refused(f"ethtool -G {dev} tcp-data-split on", "XDP")
        refused(f"ethtool -G {dev} rx-buf-len 8192", "XDP")
        refused(f"ip link set {dev} mtu 9000", "")
        echo(pair.a, b, 7102, 1000, count=3)


@pytest.mark.skipif(lacks("CONFIG_DEBUG_INFO_BTF"), reason="this kernel is built without BTF, which "
                    "names the kernel's functions to programs")
@pytest.mark.parametrize("tag,fields", [(None, "sd"), (42, "sdfn")])
def test_metadata(pair, tag, fields):
    """A program gets the RSS hash and its type, the tag that the adapter has stripped, and a
    timestamp if frames are stamped."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    src, dst = a.ip, b.ip
    pair.set_mtu(1500)
    b.put(STAMPS, "/tmp/stamps.py")
    stamps(b, "configure", TX_OFF, RX_ALL if tag else RX_NONE)
    b.run(f"ethtool -X {dev} hkey {KEY_TEXT} && ethtool -N {dev} rx-flow-hash udp4 {fields}")
    try:
        if tag:
            src, dst = "10.95.0.1", "10.95.0.2"
            for g, ip in ((a, src), (b, dst)):
                g.run(f"ip link add link {g.netdev} name v{tag} type vlan id {tag} && "
                      f"ip addr add {ip}/24 dev v{tag} && ip link set v{tag} up")
        job = b.start(f"python3 {scripts(b)}/xdp_metadata.py {dev} 7110")
        job.wait_for("ready", 60)
        a.wait_for(f"ping -c 1 -W 1 {dst}")
        before = stamps(b, "now")
        send_udp(a, dst, [(7200, 7110)], count=1)
        assert job.wait().rc == 0
        after = stamps(b, "now")
    finally:
        stamps(b, "configure", TX_OFF, RX_NONE)
        for g in (a, b):
            g.run(f"ip link del v{tag}" if tag else "true", check=False)
        b.run(f"ethtool -N {dev} rx-flow-hash udp4 sdfn")
    told = json.loads(job.out_so_far().splitlines()[-1])
    time = told.pop("time")
    assert before <= time <= after if tag else time is None
    if fields == "sd":
        want = toeplitz(b"".join(ipaddress.ip_address(ip).packed for ip in (src, dst))), L3_IPV4
    else:
        want = udp_hash(src, dst, 7200, 7110), L4_ANY
    assert told == {"hash": want[0], "type": want[1], "vlan": [0x8100, tag] if tag else None}


@pytest.mark.long("another lab: the kernel bounces what the adapter sees")
def test_bounce_buffers(swiotlb_pair, progs):
    """The kernel copies between what programs see and what the adapter does."""
    a, b = swiotlb_pair.a, swiotlb_pair.b
    for section, mtu, size in SIZES.values():
        swiotlb_pair.set_mtu(mtu)
        a.wait_for(f"ping -c 1 -W 1 {b.ip}")
        with attached(b, progs, section):
            for port in (7102, 7103):
                echo(a, b, port, size, count=20)
            echo(a, b, 7105, size, upto=100)
            transfer(a, b, b.ip, 7124)


@pytest.mark.long("test_lifecycle takes the driver away, test_attached_under_traffic the program")
def test_unloaded(pair, progs):
    """The driver is unloaded with a program attached, and reloaded without one."""
    b, dev = pair.b, pair.b.netdev
    pair.set_mtu(1500)
    b.run(f"ip link set dev {dev} xdpdrv obj {progs.path('xdp.bpf.o')} sec xdp")
    echo(pair.a, b, 7102, 1000, count=3)
    b.run("/qhca/lab/bin/qhca-unload", 60)
    b.load_driver()
    b.setup_nic()
    assert "xdp" not in b.run(f"ip link show {b.netdev}").out
    pair.a.wait_for(f"ping -c 1 -W 1 {b.ip}")

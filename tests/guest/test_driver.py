# SPDX-License-Identifier: GPL-2.0-or-later
"""
The core driver against a device that misbehaves or goes away, and its kernel
queues in every buffer layout.
"""

import contextlib
import re

import pytest

from labs import PATIENCE, Python, build_nodebug, run_pair
from physmem import write64
from test_pingpong import pingpong

OTHERS = pytest.mark.long("each form has one in the gate; test_queue_buffers has more")
LAYOUTS = [
    pytest.param("direct", "direct", 0, marks=pytest.mark.long("rings are so without a knob")),
    ("list", "list", 0),
    pytest.param("flat", "flat", 1, marks=OTHERS),
    ("flat page_shift=13", "flat", 1),
    pytest.param("tree hops=1", "tree", 1, marks=OTHERS),
    pytest.param("tree hops=2", "tree", 2, marks=OTHERS),
    ("tree hops=3 page_shift=14 table_shift=13", "tree", 3),
]


def debugfs(guest):
    return f"/sys/kernel/debug/qhca/{guest.pci}"


def set_command(guest, bit, on):
    """Set or clear a bit of the function's PCI command register."""
    path = f"/sys/bus/pci/devices/{guest.pci}/config"
    guest.run(
        "python3 -c 'import os; f = os.open(\"%s\", os.O_RDWR); "
        "v = int.from_bytes(os.pread(f, 2, 4), \"little\"); "
        "os.pwrite(f, ((v | %d) if %d else (v & ~%d)).to_bytes(2, \"little\"), 4)'"
        % (path, bit, on, bit)
    )


def ping(pair):
    pair.a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
    pair.a.run(f"ping -c 5 -i 0.1 -W 5 -s 8000 {pair.b.ip}")


@contextlib.contextmanager
def known_neighbours(pair):
    """No guest has to resolve the other's address: that would be one more frame, and resolution
    times out after three seconds, before a lost interrupt is detected."""
    ends = [(pair.a, pair.b), (pair.b, pair.a)]
    for guest, peer in ends:
        mac = peer.run("cat /sys/class/net/$NETDEV/address").out.strip()
        guest.run(f"ip neigh replace {peer.ip} lladdr {mac} dev $NETDEV nud permanent")
    try:
        yield
    finally:
        for guest, peer in ends:
            guest.run(f"ip neigh del {peer.ip} dev $NETDEV")


def function_reset(guest):
    guest.run(f"echo 1 > /sys/bus/pci/devices/{guest.pci}/reset")


@pytest.mark.parametrize("text,form,hops", LAYOUTS, ids=lambda value: value)
def test_kernel_queue_layout(pair, text, form, hops):
    """EQs, CQs and Ethernet queues work in the requested layout."""
    a = pair.a
    try:
        a.run(f"echo '{text} scope=kernel' > {debugfs(a)}/layout")
        function_reset(a)  # recreates the EQs, too
        ping(pair)
        lines = a.run(f"cat {debugfs(a)}/queues").out.splitlines()
        names = {line.split()[0] for line in lines}
        assert {"eq", "tx_cq", "tx_sq", "rx_cq", "rx_rq"} <= names
        for line in lines:
            found = re.search(r" form (\w+) hops (\d+) ", line)
            assert found.groups() == (form, str(hops)), line
    finally:
        a.run(f"echo auto > {debugfs(a)}/layout")
        function_reset(a)
        ping(pair)


@pytest.mark.long("test_queues_are_remade has a queue that stopped")
@pytest.mark.parametrize("queue,told", [
    ("rx_rq", "receive"), ("tx_sq", "send"),
])
def test_stopped_queue(pair, queue, told):
    """The device can no longer read a ring and stops: the driver creates a new one."""
    a, dev = pair.a, pair.a.netdev

    def rings():
        """For all channels: RSS decides which of them gets the frames."""
        found = re.findall(rf"^{queue} .* pages (\d+) .* addr (\w+)$",
                           a.run(f"cat {debugfs(a)}/queues").out, re.MULTILINE)
        return [(int(pages), int(table, 16)) for pages, table in found]

    flood = ("python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
             f"for i in range(3000): s.sendto(b'x' * 100, ('{a.ip}', 9))\"")
    try:
        a.run(f"echo 'flat page_shift=12 scope=kernel' > {debugfs(a)}/layout; "
              f"ethtool -G {dev} rx 8192")
        ping(pair)
        for pages, table in rings():
            assert pages > 16  # the device reads eight entries at a time and keeps them
            for page in range(pages):
                write64(pair, "a", table + 8 * page, 0)
        # more frames than those eight pages have WQEs, in both directions
        pair.b.run(flood)
        a.run(f"ping -f -c 200 -w 10 {pair.b.ip}", check=False)
        a.wait_for(f"dmesg | tail -n 20 | grep -q '{told} queue .* stopped'")
        ping(pair)
    finally:
        a.run(f"echo auto > {debugfs(a)}/layout; ethtool -G {dev} rx 1024")
    ping(pair)


def test_layout_refused(pair):
    """Invalid values are refused and change nothing."""
    knob = f"{debugfs(pair.a)}/layout"
    before = pair.a.run(f"cat {knob}").out
    for text in ("tree hops=4", "direct hops=1", "cube", "flat page_shift=11"):
        assert pair.a.run(f"echo '{text}' > {knob}", check=False).rc != 0
    assert pair.a.run(f"cat {knob}").out == before


def test_commands_need_no_interrupt(pair):
    """A command that is answered before its doorbell write returns is completed at once, without
    an interrupt."""
    a = pair.a

    def interrupts():
        line = a.run(f"grep 'qhca-async@{a.pci}' /proc/interrupts").out
        return sum(int(word) for word in line.split()[1:] if word.isdigit())

    before = interrupts()
    # by one process: to start a hundred takes longer
    said = a.run(f"cat{f' {debugfs(a)}/stats' * 100}").out
    commands = [int(n) for n in re.findall(r"^aq_commands (\d+)$", said, re.MULTILINE)]
    assert commands[-1] - commands[0] >= 99
    assert interrupts() - before < 50  # other commands and events may cause some


@pytest.mark.parametrize("bit", [
    pytest.param(2, marks=pytest.mark.long("test_unbind_dead_device has no registers, too")),
    pytest.param(4, marks=pytest.mark.long("test_dump_of_a_real_death has no DMA, too")),
], ids=["memory", "bus-master"])
def test_dead_device(pair, bit):
    """
    Registers do not respond, or DMA fails: the driver reports it, no command waits for its timeout,
    and a reset recovers the adapter.
    """
    a = pair.a
    with a.health_set("device", auto_recover=False):
        set_command(a, bit, False)
        try:
            # any command detects it, at once and not after a timeout
            a.run(f"ethtool -S {a.netdev}", check=False)
            a.wait_for(f"dmesg | tail -n 60 | grep -q 'qhca {a.pci}: device is dead'")
            said = a.run(f"dmesg | grep 'qhca {a.pci}: device is dead' | tail -n 1").out
            assert "timed out" not in said, said
            assert a.run(f"ip link set {a.netdev} down && ip link set {a.netdev} up",
                         check=False).rc != 0
        finally:
            set_command(a, bit, True)
            function_reset(a)
    a.run(f"ip link set {a.netdev} up")
    a.setup_nic()
    ping(pair)


def test_unbind_dead_device(pair):
    """A function that no longer responds can be unbound, at once."""
    a, pci = pair.a, pair.a.pci
    set_command(a, 2, False)
    a.run(f"echo {pci} > /sys/bus/pci/drivers/qhca/unbind")
    a.run(f"printf '\\x06' | dd of=/sys/bus/pci/devices/{pci}/config bs=1 seek=4 conv=notrunc"
          " status=none")
    a.run(f"echo {pci} > /sys/bus/pci/drivers/qhca/bind")
    a.setup_nic()
    ping(pair)


@pytest.mark.long("ten resets; one in traffic is in test_lifecycle")
def test_reset_while_all_is_changed(pair):
    """Function resets against ifdown, ring sizes, MTU, filters and statistics."""
    a, dev, pci = pair.a, pair.a.netdev, pair.a.pci
    knobs = debugfs(a)
    jobs = [
        a.start(f"while :; do ethtool -S {dev}; cat {knobs}/*; done >/dev/null 2>&1"),
        a.start(f"while :; do ip link set {dev} down; ip link set {dev} up; done >/dev/null 2>&1"),
        a.start(f"while :; do ethtool -G {dev} rx 256 tx 128; ip link set {dev} mtu 1500; "
                f"ip link set {dev} promisc on; ethtool -G {dev} rx 1024 tx 512; "
                f"ip link set {dev} mtu 9000; ip link set {dev} promisc off; done >/dev/null 2>&1"),
        a.start(f"ping -i 0.01 {pair.b.ip} >/dev/null 2>&1"),
    ]
    for _ in range(10):
        a.run(f"echo 1 > /sys/bus/pci/devices/{pci}/reset; sleep 0.2")
    for job in jobs:
        job.kill()
    # the loops ended at any place; a process that waits for a lock ends when it gets it
    a.wait_for("! pgrep -x 'ip|ethtool|ping'")
    a.run(f"ip link set {dev} promisc off; ip link set {dev} up; ethtool -G {dev} rx 1024 tx 512")
    a.setup_nic()
    ping(pair)


def test_unicast_overflow(pair):
    """A macvlan's address is not in the filter: its frames are received nevertheless."""
    a, b = pair.a, pair.b
    a.run(f"ip link add link {a.netdev} name mv0 type macvlan mode bridge && "
          "ip addr add 10.96.0.1/24 dev mv0 && ip link set mv0 up")
    b.run(f"ip addr add 10.96.0.2/24 dev {b.netdev}")
    try:
        b.wait_for("ping -c 1 -W 1 10.96.0.1")
    finally:
        a.run("ip link del mv0")
        b.run(f"ip addr del 10.96.0.2/24 dev {b.netdev}")


def test_multicast_filter(pair):
    """Frames of a joined group are received, those of another are filtered."""
    a, b = pair.a, pair.b
    listen = (
        "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "s.bind(('', 7777)); s.setsockopt(0, socket.IP_ADD_MEMBERSHIP, "
        f"socket.inet_aton('239.1.2.3') + socket.inet_aton('{a.ip}')); "
        "s.settimeout(60); print(s.recv(100).decode())\""
    )
    send = (
        "python3 -c \"import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"s.setsockopt(0, socket.IP_MULTICAST_IF, socket.inet_aton('{b.ip}'))\n"
        "for i in range(20): s.sendto(b'{text}', ('{group}', 7777)); time.sleep(0.01)\""
    )
    job = a.start(listen)
    a.wait_for("ip maddr | grep -q 239.1.2.3")
    filtered = a.ethtool_stat("eth_rx_filtered")
    b.run(send.replace("{text}", "other").replace("{group}", "239.9.9.9"))
    a._until(lambda: a.ethtool_stat("eth_rx_filtered") >= filtered + 20, PATIENCE,
             "the other group's frames are not filtered")
    assert job.running
    b.run(send.replace("{text}", "joined").replace("{group}", "239.1.2.3"))
    assert job.wait().out.strip() == "joined"


SIZES = pytest.mark.long("test_channels and test_xsk change rings; here is what is refused")


@SIZES
@pytest.mark.parametrize("depth", [64, 200, 8192])
def test_ring_sizes(pair, depth):
    a, dev = pair.a, pair.a.netdev
    rounded = 1 << (depth - 1).bit_length()
    try:
        a.run(f"ethtool -G {dev} rx {depth} tx {depth}")
        assert a.run(f"ethtool -g {dev} | grep -c ':[[:space:]]*{rounded}$'").out.strip() != "0"
        a.run(f"ping -f -c 500 -s 8000 {pair.b.ip}")
        run_pair(pair.b, a, "iperf3 -s -1", f"iperf3 -t 1 -c {pair.b.ip}")
    finally:
        a.run(f"ethtool -G {dev} rx 1024 tx 512")


@pytest.mark.parametrize("ring", ["rx", "tx"])
def test_rings_that_are_too_small(pair, ring):
    """A refused request changes nothing."""
    a, dev = pair.a, pair.a.netdev
    before = a.run(f"ethtool -g {dev}").out
    for depth in (0, 1, 63):
        refused = a.run(f"ethtool -G {dev} {ring} {depth}", check=False)
        assert refused.rc and "at least 64" in refused.err, refused.describe()
    assert a.run(f"ethtool -g {dev}").out == before


@pytest.mark.long("40,000 datagrams; test_netdev has frames for which there is no buffer")
def test_flood_of_small_rings(pair):
    """More frames than the rings hold, both ways: frames may be lost, queues do not stop."""
    a, b = pair.a, pair.b
    send = (
        "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for i in range(20000): s.sendto(b'x', ('{ip}', 9))\""
    )
    try:
        for guest in pair:
            guest.run(f"ethtool -G {guest.netdev} rx 64 tx 64")
        before = [g.health(what) for g in pair for what in ("tx", "rx")]
        jobs = [a.start(send.format(ip=b.ip)), b.start(send.format(ip=a.ip))]
        for job in jobs:
            assert job.wait().rc == 0
        ping(pair)
        assert [g.health(what) for g in pair for what in ("tx", "rx")] == before
    finally:
        for guest in pair:
            guest.run(f"ethtool -G {guest.netdev} rx 1024 tx 512")


def test_moderation(pair):
    """Events wait for more completions as long as configured."""
    a, dev = pair.a, pair.a.netdev

    def round_trip():
        """The quickest of five, in ms: a busy host may have delayed the others."""
        out = a.run(f"ping -c 5 -i 0.3 {pair.b.ip} | tail -1").out
        return float(out.split("=")[1].split("/")[0])

    def quick():
        """It may take a while until a busy host does not delay one of them."""
        a._until(lambda: round_trip() < 30, PATIENCE, "no echo comes at once")

    with known_neighbours(pair):
        quick()
        try:
            # both, because an event of either makes the driver check all queues
            a.run(f"ethtool -C {dev} adaptive-rx off rx-usecs 60000 rx-frames 1000 "
                  "tx-usecs 60000 tx-frames 1000")
            assert round_trip() > 30
        finally:
            a.run(f"ethtool -C {dev} adaptive-rx on rx-usecs 0 rx-frames 0 "
                  "tx-usecs 50 tx-frames 32")
        quick()


def completion_interrupts(guest):
    """So far, of all vectors and CPUs."""
    lines = guest.run(f"grep 'qhca-comp.*@{guest.pci}' /proc/interrupts").out.splitlines()
    return sum(int(n) for line in lines for n in line.partition("PCI")[0].split()[1:])


def test_sends_complete_without_interrupts(pair):
    """Frames that the wire accepts at once are complete when the doorbell write returns."""
    a, sends = pair.a, 200
    before = completion_interrupts(a)
    sent = a.run(Python(f"""
import socket, time

def sent():
    # of the driver: what it has taken completions of
    return int(open("/sys/class/net/{a.netdev}/statistics/tx_packets").read())

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# there is no response
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton({a.ip!r}))
first = sent()
for _ in range({sends}):
    s.sendto(bytes(64), ("239.9.9.9", 9))
    time.sleep(0.001)
print(sent() - first)
""")).out
    # some of them wait while the wire is full
    assert int(sent) > sends - 20
    assert completion_interrupts(a) - before < sends / 4


def test_netconsole(pair):
    """Sending with interrupts off, by netpoll."""
    a, b = pair.a, pair.b
    mac = b.run(f"cat /sys/class/net/{b.netdev}/address").out.strip()
    listen = (
        "python3 -c \"import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "s.bind(('', 6666)); s.settimeout(60); text = ''\n"
        "while 'hello-netpoll-19' not in text: text += s.recv(9000).decode()\n"
        "print(sum(('hello-netpoll-%d\\n' % i) in text for i in range(20)))\""
    )
    job = b.start(listen)
    b.wait_for("ss -Hlun 'sport = :6666' | grep -q .")
    a.run(f"modprobe netconsole netconsole=6665@{a.ip}/{a.netdev},6666@{b.ip}/{mac}")
    try:
        a.run("for i in $(seq 0 19); do echo \"<1>hello-netpoll-$i\" > /dev/kmsg; done")
        assert job.wait().out.strip() == "20"
    finally:
        a.run("rmmod netconsole")


@pytest.mark.long("unloads and loads twice; test-driver checks what is built that way")
def test_without_debugging(pair):
    """CONFIG_QHCA_DEBUG=n: everything works, without anything from debug/."""
    a = pair.a
    build_nodebug(a.kernel)
    try:
        a.run("/qhca/lab/bin/qhca-unload")
        for module in ("qhca", "qhca_ib"):
            a.run(f"insmod {a.build}/driver/nodebug/{module}.ko")
        a.setup_nic()
        ping(pair)
        pingpong(pair.b, a, "ibv_rc_pingpong", "-s 4096 -n 50")
        pingpong(pair.b, a, "ibv_srq_pingpong", "-n 50")
        assert a.run("ls -d /sys/kernel/debug/qhca /sys/kernel/tracing/events/qhca*",
                     check=False).out.strip() == ""
        assert "sq-psn" in a.run("rdma -dd resource show qp").out     # the core's own
        with a.health_set("device", grace_period=0):
            a.run(f"devlink health test pci/{a.pci} reporter device")
            a.wait_for(f"devlink health show pci/{a.pci} reporter device | grep -q 'recover 1'")
        a.setup_nic()
        ping(pair)
    finally:
        a.run("/qhca/lab/bin/qhca-unload", check=False)
        a.load_driver()
        a.setup_nic()
    ping(pair)

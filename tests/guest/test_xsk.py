# SPDX-License-Identifier: GPL-2.0-or-later
"""Zero-copy AF_XDP sockets: what they receive and send, their queues, and the effect of other
changes on both."""

import contextlib
import errno
import itertools
import json
import re
import sys

import pytest

from labs import PATIENCE, TOP, Python
from qhca_lab import fault
from test_driver import function_reset, ping
from test_health import counts, wait_counts
from test_net_queues import known, transfer
from test_xdp import attached, echo

sys.path.insert(0, str(TOP / "tests"))

from qhca_lab.record import Recording  # noqa: E402
from timeline import Trace  # noqa: E402

PAGE = 4096
PORT = 7300  # the first; the Nth queue's is by N greater
SENT = pytest.mark.long("test_echo and test_device_uses_the_applications_pages send")
OTHERS = pytest.mark.long("others of the same kind are in the gate")
_numbers = itertools.count()


def receive_queues(guest):
    """The adapter's Ethernet receive queues. A queue that gets other rings also gets another
    CQ."""
    look = guest.lab.qmp(guest.name, "qhca-inspect", object="eth-rq")["look"]
    return {(queue["number"], queue["cqn"]) for queue in look["objects"]}


class Xsk:
    """The program xsk in a guest. `queues`: how many are its own, without a copy."""

    queues = 0

    def __init__(self, guest, progs, arguments):
        self.guest = guest
        self.pipe = f"/tmp/xsk.{next(_numbers)}"
        guest.run(f"mkfifo {self.pipe}")
        self.job = guest.start(f"exec {progs.path('xsk')} {arguments} <> {self.pipe}")
        self.read = 0
        self.bound = self.answer()

    def tell(self, command):
        self.guest.run(f"echo '{command}' > {self.pipe}")

    def answer(self, timeout=90):
        def line():
            return dict(enumerate(self.job.out_so_far().split("\n")[:-1])).get(self.read)

        self.guest._until(lambda: line() or not self.job.running, timeout, "xsk is silent")
        said = line()
        assert said, f"xsk has ended: {self.job.wait(5).describe()}"
        self.read += 1
        return json.loads(said)

    def ask(self, command):
        self.tell(command)
        return self.answer()

    def end(self, kill=False):
        """The program ends. The kernel releases its queues some time after the sockets are closed,
        in a work item; the driver then gives them other rings. Until then MTU, rings and channels
        cannot be changed."""
        had, running = receive_queues(self.guest), self.job.running
        if kill:
            self.job.kill()
        elif running:
            self.tell("quit")
            assert self.job.wait(60).rc == 0
        if running:
            self.guest._until(lambda: len(had - receive_queues(self.guest)) >= self.queues,
                              PATIENCE, "the queues stay with the sockets")
            self.guest.run(f"rm -f {self.pipe}")


@contextlib.contextmanager
def sockets(guest, progs, queues="1", port=PORT, options="", fill=400):
    """The program with sockets at the guest's queues. Datagrams for each queue's port go to
    it, and the program's, if it has one (PORT), are redirected to its socket."""
    dev, rules = guest.netdev, []
    for q in queues.split(","):
        out = guest.run(f"ethtool -N {dev} flow-type udp4 dst-port {PORT + int(q)} "
                        f"action {q}").out
        rules.append(re.search(r"ID (\d+)", out)[1])

    def bound():
        x = Xsk(guest, progs, f"{options} {dev} {queues} {port or ''}")
        # the kernel lets go of an earlier socket's queue in its own time
        return None if x.bound == {"errno": errno.EBUSY} else x

    x = guest._until(bound, PATIENCE, "the queue stays busy")
    try:
        assert x.bound == {"bound": len(queues.split(","))}, x.bound
        if x.ask("state")["zerocopy"]:
            x.queues = x.bound["bound"]
        if fill:
            x.ask(f"fill {fill}")
        yield x
        x.end()
    finally:
        x.end(kill=True)
        for rule in rules:
            guest.run(f"ethtool -N {dev} delete {rule}", check=False)


@pytest.fixture
def two(pair):
    """A pair with known neighbours and two channels."""
    pair.set_mtu(1500)
    was = re.findall(r"Combined:\s+(\d+)", pair.b.run("ethtool -l $NETDEV").out)[1]
    pair.b.run("ethtool -L $NETDEV combined 2", check=was != "2")
    known(pair)
    yield pair
    pair.b.run(f"ethtool -L $NETDEV combined {was}", check=was != "2")
    ping(pair)


SEND = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range({count}):
    for port in {ports}:
        s.sendto(bytes((i + j) & 255 for j in range({size})), ({dst!r}, port))
"""


def send(guest, dst, count, size=1000, ports=(PORT + 1,)):
    guest.run(Python(SEND.format(dst=dst, count=count, size=size, ports=ports)))


def stat(guest, name):
    return guest.ethtool_stat(name)


def end_point(guest):
    return f"{guest.run('cat /sys/class/net/$NETDEV/address').out.strip()},{guest.ip}"


def received(x, sent, command="recv"):
    """N frames of datagrams arrived as they were sent."""
    got = x.answer() if command is None else x.ask(f"{command} {sent} 60000")
    assert got["frames"] == sent and got["wrong"] == 0 and got["completed"], got
    return got


@pytest.mark.parametrize("options", ["", pytest.param("-c", marks=OTHERS),
                                     pytest.param("-n", marks=OTHERS),
                                     pytest.param("-k 2048", marks=OTHERS),
                                     pytest.param("-H 192", marks=OTHERS)])
def test_receive(two, progs, options):
    """Datagrams of one flow arrive in the application's memory, each byte correct; other traffic
    continues. With XDP_COPY, too."""
    a, b = two.a, two.b
    before = stat(b, "rx1_xsk_packets")
    with sockets(b, progs, port=PORT + 1, options=options) as x:
        assert x.ask("state")["zerocopy"] == (options != "-c")
        for size in (1, 1400):
            x.tell("recv 150 60000")
            send(a, b.ip, 150, size)
            received(x, 150, None)
        ping(two)
    count = stat(b, "rx1_xsk_packets") - before
    assert count >= 300 if options != "-c" else count == 0


RECEIVE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE
s.bind(("", {port}))
s.settimeout(60)
print("ready", flush=True)
for i in range({count}):
    got = s.recv(65536)
    assert got == bytes((i + j) & 255 for j in range({size})), (i, len(got), got[:8])
print("right", flush=True)
"""


@contextlib.contextmanager
def receiving(guest, count, size, port=7310):
    """A socket of the stack gets what the block sends."""
    job = guest.start(Python(RECEIVE.format(port=port, count=count, size=size)))
    job.wait_for("ready")
    yield
    assert job.wait(90).rc == 0, job.result().describe()


@pytest.mark.parametrize("options,size", [pytest.param("", 1000, marks=SENT), pytest.param("-n", 18, marks=OTHERS),
                                          pytest.param("-c", 1000, marks=OTHERS),
                                          pytest.param("-s", 1400, marks=OTHERS)])
def test_transmit(two, progs, options, size):
    """Frames in the application's ring are sent, each byte correct, and each buffer is returned;
    also more than the rings hold."""
    a, b = two.a, two.b
    before = stat(b, "tx1_xsk_packets")
    with sockets(b, progs, port=None, options=options) as x:
        spare = x.ask("state")["spare"]
        with receiving(a, 600, size):
            sent = x.ask(f"send 600 {size} {end_point(b)} {end_point(a)} 7310")
        assert sent == {"completed": True}
        assert x.ask("state")["spare"] == spare
    count = stat(b, "tx1_xsk_packets") - before
    assert count == (0 if options == "-c" else 600)


def test_metadata_of_frames_sent(two, progs):
    """The adapter computes the requested checksums, and reports when a frame was sent. A checksum
    outside the frame drops only that frame."""
    a, b = two.a, two.b
    ends = f"{end_point(b)} {end_point(a)} 7310"
    with sockets(b, progs, port=None, options="-m") as x:
        with receiving(a, 50, 700):
            first = x.ask(f"send 50 700 {ends} csum stamp")
        with receiving(a, 1, 700):
            second = x.ask(f"send 1 700 {ends} stamp")
        assert first["completed"] and second["completed"]
        assert 0 < first["stamp"] < second["stamp"] < first["stamp"] + 120e9
        errors = stat(b, "eth_tx_errors")
        assert x.ask(f"send 3 700 {ends} csum bad")["completed"]
        assert stat(b, "eth_tx_errors") == errors + 3
        with receiving(a, 20, 700):
            assert x.ask(f"send 20 700 {ends} csum")["completed"]


def test_echo(two, progs):
    """Frames are sent back from the buffers in which they arrived."""
    a, b = two.a, two.b
    with sockets(b, progs, port=PORT + 1) as x:
        for size in (18, 1400):
            x.tell("echo 60 60000")
            echo(a, b, PORT + 1, size, count=60)
            assert x.answer()["frames"] == 60


@pytest.mark.long("test_xdp has frames in several buffers")
def test_several_buffers(two, progs):
    """With XDP_USE_SG a frame may have several chunks, in both directions."""
    a, b = two.a, two.b
    two.set_mtu(9000)
    known(two)
    with sockets(b, progs, port=PORT + 1, options="-s -k 2048") as x:
        x.tell("recv 40 60000")
        send(a, b.ip, 40, 8900)
        received(x, 40, None)
        x.tell("echo 20 60000")
        echo(a, b, PORT + 1, 8900, count=20)
        assert x.answer()["frames"] == 20
        with receiving(a, 50, 8000):
            assert x.ask(f"send 50 8000 {end_point(b)} {end_point(a)} 7310")["completed"]
        two.set_mtu(1500)
        x.tell("recv 10 60000")
        send(a, b.ip, 10, 1000)
        received(x, 10, None)


@pytest.mark.parametrize("options", ["", pytest.param("-n", marks=OTHERS)])
def test_fill_ring_empty(two, progs, options):
    """Without buffers frames are dropped, and nothing spins; with new buffers reception continues,
    whether or not the application has to wake the driver up."""
    a, b = two.a, two.b
    with sockets(b, progs, port=PORT + 1, options=options, fill=0) as x:
        for _ in range(2):
            send(a, b.ip, 30)
            assert x.ask("take 1 300")["frames"] == 0
            starved = stat(b, "rx1_xsk_starved")
            b.run("sleep 1")
            if not options:
                assert x.ask("state")["rx_wakeup"]
                assert stat(b, "rx1_xsk_starved") <= starved + 20
            assert stat(b, "rx1_xsk_starved") <= starved + 200
            x.ask("fill 64")
            x.tell("take 64 60000")
            send(a, b.ip, 64)
            received(x, 64, None)


@pytest.mark.long("test_receive has a socket at one queue, and the rest goes on")
def test_two_queues(two, progs):
    """Each queue has its own socket, with its own memory."""
    a, b = two.a, two.b
    # both flows have one port in the program, and each a queue by the sender's port
    with contextlib.ExitStack() as stack:
        for q in (0, 1):
            out = b.run(f"ethtool -N {b.netdev} flow-type udp4 src-port {7400 + q} "
                        f"dst-port 7320 action {q}").out
            rule = re.search(r"ID (\d+)", out)[1]
            stack.callback(b.run, f"ethtool -N {b.netdev} delete {rule}")
        x = stack.enter_context(sockets(b, progs, queues="0,1", port=7320))
        x.tell("recv 300 60000")
        a.run(Python(f"""
import socket
both = []
for q in (0, 1):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 7400 + q))
    both.append(s)
for i in range(200):
    both[i % 4 == 0].sendto(bytes((i + j) & 255 for j in range(500)), ({b.ip!r}, 7320))
for i in range(100):
    both[1].sendto(bytes((i + j) & 255 for j in range(500)), ({b.ip!r}, 7320))
"""))
        assert received(x, 300, None)["queues"] == [150, 150]
        # the stack has no other queues: what the program passes comes as copies
        ping(two)
        transfer(a, b, b.ip, 7321)


@pytest.mark.long("test_queues_change has all that happens to a bound socket")
def test_unbound_under_traffic(two, progs):
    """Sockets are opened and closed under traffic; the link stays up, and the other queues are not
    affected."""
    a, b = two.a, two.b
    changes = b.run("cat /sys/class/net/$NETDEV/carrier_changes").out
    job = a.start(Python(f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for i in range(50):
        s.sendto(bytes((i + j) & 255 for j in range(900)), ({b.ip!r}, {PORT + 1}))
    time.sleep(0.01)
"""))
    other = a.start(f"ping -q -i 0.02 {b.ip}")
    try:
        for dies in (True, False):
            with sockets(b, progs, port=PORT + 1) as x:
                received(x, 200)
                if dies:
                    x.end(kill=True)
        transfer(a, b, b.ip, 7322)
    finally:
        job.kill()
        other.kill()
    assert b.run("cat /sys/class/net/$NETDEV/carrier_changes").out == changes
    transfer(b, a, a.ip, 7326)


@pytest.mark.long("test_xdp has each action of a program, in the driver's own buffers")
def test_programs_pass(two, progs):
    """Without a socket that receives, all actions of programs work in its buffers, and no buffer
    is lost: far more frames arrive than there are buffers."""
    a, b = two.a, two.b
    b.run("ethtool -L $NETDEV combined 1")
    try:
        with attached(b, progs), sockets(b, progs, queues="0", port=None, fill=256) as x:
            for port in (7102, 7103):
                echo(a, b, port, 1000, count=200)
            echo(a, b, 7105, 1000, count=20, upto=100)
            echo(a, b, 7106, 1000, count=20, longer=64)
            send(a, b.ip, 300, ports=(7101, 7104))
            with receiving(b, 100, 800, port=7107):
                send(a, b.ip, 100, 800, ports=(7107,))
            transfer(a, b, b.ip, 7327)
            assert x.ask("state")["dropped"] == 0
    finally:
        b.run("ethtool -L $NETDEV combined 2")


@OTHERS
def test_programs_pass_several_buffers(two, progs):
    """The same for frames of several chunks."""
    a, b = two.a, two.b
    b.run("ethtool -L $NETDEV combined 1")
    two.set_mtu(9000)
    known(two)
    try:
        with attached(b, progs, "xdp.frags"), \
                sockets(b, progs, queues="0", port=None, options="-s -k 2048 -r 1024", fill=1000):
            echo(a, b, 7102, 8000, count=100)
            echo(a, b, 7105, 8000, count=20, upto=100)
            send(a, b.ip, 100, 8000, ports=(7101,))
            with receiving(b, 50, 8000, port=7107):
                send(a, b.ip, 50, 8000, ports=(7107,))
            transfer(a, b, b.ip, 7328)
    finally:
        b.run("ethtool -L $NETDEV combined 2")


def test_queues_change(two, progs):
    """The socket survives other rings, more channels, a reset, and setting the interface down; its
    own channel cannot be removed."""
    a, b, dev = two.a, two.b, two.b.netdev

    def works(x):
        a.wait_for(f"ping -c 1 -W 1 {b.ip}")
        x.tell("recv 30 60000")
        send(a, b.ip, 30)
        received(x, 30, None)

    with sockets(b, progs, port=PORT + 1) as x:
        try:
            b.run(f"ethtool -G {dev} rx 256 tx 128")
            works(x)
            b.run(f"ethtool -L {dev} combined 4")
            works(x)
            result = b.run(f"ethtool -L {dev} combined 1", check=False)
            assert result.rc and "too low" in result.out + result.err, result.describe()
            works(x)
            function_reset(b)
            works(x)
            b.run(f"sysctl -qw net.ipv6.conf.{dev}.keep_addr_on_down=1; "
                  f"ip link set {dev} down && ip link set {dev} up")
            works(x)
        finally:
            b.run(f"ethtool -G {dev} rx 1024 tx 512; ethtool -L {dev} combined 2; "
                  f"sysctl -qw net.ipv6.conf.{dev}.keep_addr_on_down=0")


@pytest.mark.long("errors of a bind(); those that succeed are in the gate")
def test_refused(two, progs):
    """bind() fails with the proper error, and incompatible changes are refused while the socket is
    bound."""
    b, dev = two.b, two.b.netdev

    def refused(arguments, error):
        x = Xsk(b, progs, arguments)
        assert x.bound == {"errno": error}, errno.errorcode.get(x.bound.get("errno"))
        b.run(f"rm -f {x.pipe}")

    refused(f"{dev} 2", errno.EINVAL)
    two.set_mtu(9000)
    refused(f"{dev} 1", errno.EINVAL)
    two.set_mtu(1500)
    b.run(f"ethtool -G {dev} tcp-data-split on")
    try:
        refused(f"{dev} 1", errno.EOPNOTSUPP)
    finally:
        b.run(f"ethtool -G {dev} tcp-data-split off")
    with sockets(b, progs, port=None):
        refused(f"{dev} 1", errno.EBUSY)
        result = b.run(f"ethtool -G {dev} tcp-data-split on", check=False)
        assert result.rc and "AF_XDP" in result.out + result.err, result.describe()
        assert b.run(f"ip link set {dev} mtu 9000", check=False).rc


@pytest.mark.long("two commands that the device refuses; test_refused has errors of the driver")
def test_queue_that_cannot_be_restarted(two, progs):
    """The device refuses the socket's receive queue, and then the one before it: the queues are
    recreated, and the adapter lives."""
    b = two.b
    deaths = counts(b, "device")
    _, errors, recoveries = counts(b, "rx")
    shown = b.run("cat /sys/kernel/debug/qhca/*/queues").out
    number = int(re.findall(r"^rx_rq (\d+)", shown, re.MULTILINE)[1])
    # the first command suspends the queue
    fault.add(b, {"action": "dma-error", "kind": "command", "access": "read", "number": number,
                  "skip": 1})
    try:
        x = Xsk(b, progs, f"{b.netdev} 1")
        x.job.kill()
        b.run(f"rm -f {x.pipe}")
        assert x.bound == {"errno": errno.EFAULT}, x.bound
        wait_counts(b, "rx", "healthy", errors + 1, recoveries + 1)
    finally:
        fault.remove(b)
    assert counts(b, "device") == deaths
    with sockets(b, progs, port=None):
        pass


def test_device_uses_the_applications_pages(two, progs, tmp_path):
    """One recording: the adapter writes what it receives for the socket into the page frames
    of its memory, and reads there what it sends."""
    a, b = two.a, two.b
    size, count = 1000, 20
    with sockets(b, progs, port=PORT + 1) as x:
        pages = set(x.ask("pages")["pfns"])
        assert all(pages), "no page frames: is this not root?"
        with Recording(two, tmp_path, provider=False):
            x.tell(f"echo {count} 60000")
            echo(a, b, PORT + 1, size, count=count)
            assert x.answer()["frames"] == count
    trace = Trace(json.loads((tmp_path / "trace.json").read_text()))
    length = 14 + 20 + 8 + size
    for write in (True, False):
        frames = [int(e["args"]["address"], 16) // PAGE
                  for e in trace.of("device", "eth_data", write=write)
                  if e["pid"] == 2 and e["args"]["bytes"] == length]
        assert len(frames) == count and set(frames) <= pages, (write, frames)


@pytest.mark.long("another lab: the kernel bounces what the adapter sees")
def test_bounce_buffers(swiotlb_pair, progs):
    """Where the adapter cannot reach the application's memory the kernel copies."""
    a, b = swiotlb_pair.a, swiotlb_pair.b
    swiotlb_pair.set_mtu(1500)
    known(swiotlb_pair)
    with sockets(b, progs, port=PORT + 1) as x:
        x.tell("echo 60 60000")
        echo(a, b, PORT + 1, 1400, count=60)
        assert x.answer()["frames"] == 60
        x.tell("recv 100 60000")
        send(a, b.ip, 100)
        received(x, 100, None)

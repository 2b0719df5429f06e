# SPDX-License-Identifier: GPL-2.0-or-later
"""
Memory links: packets between adapters of a host leave the wire, and return to it when they are
observed, or when anything happens to the peer.
"""

import contextlib
import ctypes
import json
import mmap
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))

from adapter import CAP_EXP, Adapter  # noqa: E402
from layout import C  # noqa: E402
from live import ACCESS  # noqa: E402
from machine import QEMU, TIMEOUT, Machine, until  # noqa: E402
from memlink import (F_SEAL_GROW, F_SEAL_SHRINK, MARKER, ROCE, ROOM, SECOND,  # noqa: E402
                     SHARED, End, Lingering, Net, Peer, Route, sealed)
from qhca_lab import capture  # noqa: E402
from rdma import MR, QP  # noqa: E402
from test_migrate import save  # noqa: E402
from test_unplug import INDICATOR_OFF, POWER_OFF, SLOT, SLOT_CONTROL, Slot, unplug  # noqa: E402

pytestmark = pytest.mark.once("what leaves the wire passes no observer")

WRITE, READ, SEND = C.QHCA_WQE_RDMA_WRITE, C.QHCA_WQE_RDMA_READ, C.QHCA_WQE_SEND
SO_SNDBUFFORCE = 32
STACK = 2 << 20                 # of a thread, at least
LENGTHS = (0, 1, 3, 1023, 1024, 1025, 4096, 65537, 300_000, ROOM)


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="qhca-ml."))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def thread() -> bool:
    """Does a thread answer the bells, or the main loop?"""
    return False


@pytest.fixture
def lab(folder, thread):
    """A function that makes an end, number @n."""
    net, ends = Net(), []

    def make(n: int, *options: str, start: bool = True, properties: str = "", **how) -> End:
        properties += f",memlink-thread={'on' if thread else 'off'}"
        end = End(net, folder, n, *options, properties=properties, **how)
        ends.append(end)
        return end.start() if start else end

    make.net = net
    yield make
    for end in ends:
        if end.m in net.ports:
            end.close()


@pytest.fixture
def pair(lab):
    """Two ends, an RC QP each, and nothing on the wire."""
    return Route(lab(1), lab(2)).up()


# ---- packets and data ----

@pytest.mark.parametrize("kind", ["RC", "UC", "UD"])
def test_data(pair, kind):
    """Messages of all kinds and lengths: the data is right, and only markers are frames."""
    route = pair if kind == "RC" else Route(pair.a, pair.b, getattr(C, f"QHCA_QPT_{kind}"))
    kinds = {"RC": (WRITE, SEND, READ), "UC": (WRITE, SEND), "UD": (SEND,)}[kind]
    for opcode in kinds:
        for length in LENGTHS:
            if kind != "UD" or length <= 4096:
                assert route.move(opcode, length) == 0
    assert {f[12:14] for f in pair.net.frames} <= {MARKER, ROCE}


@pytest.mark.observe
def test_what_is_shown(pair):
    a, b = pair.a, pair.b
    before = a.link(b)
    assert before["state"] == "up" and not before["revoked"] and not before["lost"]
    pair.move(WRITE, 40_000)
    pair.move(WRITE, 64)
    link = a.link(b)
    assert link["sent"] - before["sent"] == 2       # 40 packets in one record
    assert link["named"] - before["named"] == 1
    assert b.link(a)["received"] == link["sent"]
    assert a.adapter.stat("ROCE_TX_PACKETS") == b.adapter.stat("ROCE_RX_PACKETS")


@pytest.mark.observe
@pytest.mark.parametrize("why", ["memory is not shared", "the memory is not sealed", "iommu"])
def test_memory_that_cannot_be_named(lab, why):
    """Then all payload is in the records."""
    options, memory = (), SHARED
    if why == "memory is not shared":
        memory = ()
    elif why == "the memory is not sealed":
        memory = (SHARED[0], SHARED[1] + ",seal=off", *SHARED[2:])
    else:
        options = ("-device", "intel-iommu,intremap=off")
    route = Route(lab(1, *options, memory=memory), lab(2, *options, memory=memory)).up()
    for opcode in (WRITE, SEND, READ):
        assert route.move(opcode, 300_000) == 0
    for a, b in ((route.a, route.b), (route.b, route.a)):
        assert a.link(b)["named"] == 0 and a.link(b)["sent"] > 5


def test_three_adapters(lab):
    """Each has a link to each; one of them dies, and the other two continue."""
    a, b, c = lab(1), lab(2), lab(3)
    routes = [Route(a, b).up(), Route(b, c).up(), Route(c, a).up()]
    for route in routes:
        for opcode in (WRITE, SEND, READ):
            assert route.move(opcode, 70_000) == 0
    c.kill()
    assert routes[0].move(WRITE, 70_000) == 0


@pytest.mark.observe
def test_two_adapters_of_one_machine(lab, folder, thread):
    """They have a link to each other, too."""
    second = (f"qhca,id=r,addr=5.0,mac=02:00:00:00:00:03,memlink={folder},"
              f"memlink-thread={'on' if thread else 'off'}")
    a, b = lab(1, "-device", second), lab(2)
    until(lambda: set(a.links()) == {b.mac, "02:00:00:00:00:03"}, "links")
    until(lambda: len(b.links()) == 2, "links")
    assert Route(a, b).up().move(WRITE, 70_000) == 0


# ---- observers ----

def look_for(pair, begin, end):
    """From begin() on packets are on the wire, after end() they return to the link."""
    begin()
    before = len(pair.net.frames)
    assert pair.move(WRITE, 5000) >= 6      # packets and an acknowledge
    assert pair.move(READ, 5000) >= 6
    seen = [f for f in pair.net.frames[before:] if f[12:14] == ROCE]
    end()
    pair.up()
    assert pair.move(WRITE, 5000) == 0
    return seen


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_capture(pair, who, tmp_path):
    """A filter of the netdev sees all packets, from the first one after it was added."""
    m = (pair.a if who == "sender" else pair.b).m
    path = tmp_path / "pcap"
    seen = look_for(
        pair, lambda: m.qmp("object-add", **{
            "qom-type": "filter-dump", "id": "f", "netdev": "wire", "file": str(path),
            "maxlen": 65536}),
        lambda: m.qmp("object-del", id="f"))
    captured = [p.data for p in capture.read_pcap(path, 0)]
    assert all(frame in captured for frame in seen)


@pytest.mark.observe
@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_recording(pair, who, tmp_path):
    m = (pair.a if who == "sender" else pair.b).m
    path = tmp_path / "record"
    seen = look_for(pair, lambda: m.qmp("qhca-record-start", file=str(path)),
                    lambda: m.qmp("qhca-record-stop"))
    records = [json.loads(line) for line in path.read_text().splitlines()]
    frames = [r for r in records if r["kind"] in ("frame_in", "frame_out")]
    assert len(frames) >= len(seen)


@pytest.mark.observe
@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_fault_rule(pair, who):
    m = (pair.a if who == "sender" else pair.b).m
    look_for(pair, lambda: m.qmp("qhca-fault-add", fault={"action": "drop", "nth": 100_000}),
             lambda: m.qmp("qhca-fault-remove"))


@pytest.mark.observe
@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_break(pair, who):
    m = (pair.a if who == "sender" else pair.b).m
    look_for(pair, lambda: m.qmp("qhca-break-add", condition={"on": "packet", "psn": 0xABCDEF}),
             lambda: m.qmp("qhca-break-remove"))


def next_stop(pair, m) -> dict:
    """Run until @m stops; the event at which it did."""
    def stopped() -> bool:
        m.qmp("query-status")           # reads the events before its answer
        return any(event["event"] == "QHCA_STOP" for event in m.events)

    pair.net.until(stopped, "a stop")
    event = m.wait_event("QHCA_STOP")["data"]["stop"]["look"]["event"]
    pair.net.until(lambda: m.qmp("query-status")["status"] == "debug", "run state debug")
    return event


@pytest.mark.observe
@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_stop_at_a_packet(pair, who):
    """
    A break at the first packet of a message that would have used the link, and steps to the
    next ones: exact, and nothing is lost.
    """
    m = (pair.a if who == "sender" else pair.b).m
    m.qmp("qhca-break-add", condition={
        "on": "packet-out" if who == "sender" else "packet-in", "once": True})
    before = pair.net.packets()
    data = pair.post(WRITE, 5000)
    psn = next_stop(pair, m)["psn"]
    for i in (1, 2):
        m.qmp("qhca-step", on="packet")
        assert next_stop(pair, m)["psn"] == psn + i
    assert not pair.a.cq.peek()
    m.qmp("cont")
    pair.check(WRITE, data)
    # None was sent again. The acknowledge may already use the link.
    assert pair.net.packets() - before in (5, 6)
    assert pair.up().move(WRITE, 5000) == 0


@pytest.mark.observe
def test_recorded_machine(folder, tmp_path):
    """It has no links, when it is recorded and when that is replayed: a recording does not
    contain what a peer does."""
    def links(*options: str) -> tuple[list[str], list]:
        """The sockets in the folder, and the links that the adapter has."""
        args = [str(QEMU), "-nodefaults", "-display", "none", "-machine", "q35", "-accel", "tcg",
                "-m", "256M", *SHARED, "-S", "-qmp", "stdio", *options,
                "-netdev", f"dgram,id=wire,local.type=unix,local.path={tmp_path}/wire,"
                f"remote.type=unix,remote.path={tmp_path}/peer", "-device",
                f"qhca,id=q,addr=4.0,netdev=wire,mac=02:00:00:00:00:01,memlink={folder}"]
        with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as qemu:
            def ask(execute: str, **arguments) -> dict:
                qemu.stdin.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
                qemu.stdin.flush()
                for line in qemu.stdout:
                    if "event" not in (answer := json.loads(line)) and "QMP" not in answer:
                        return answer["return"]
                raise EOFError("QEMU has ended")

            ask("qmp_capabilities")
            look = ask("qhca-inspect", object="device", device="q")["look"]
            found = os.listdir(folder), look["memlinks"]
            with contextlib.suppress(EOFError):     # it may be gone before it answers
                ask("quit")
        for name in found[0]:
            (folder / name).unlink()        # it stays when QEMU ends
        return found

    assert links() == (["020000000001"], [])
    for mode in ("record", "replay"):
        assert links("-icount", f"shift=0,rr={mode},rrfile={tmp_path}/rr", "-object",
                     "filter-replay,id=replay,netdev=wire") == ([], [])


def test_link_down(pair):
    """Set down, the wire carries nothing, and neither does the link; QPs time out."""
    pair.b.m.qmp("set_link", name="wire", up=False)
    data = pair.post(WRITE, 5000)
    pair.a.m.clock_step(SECOND)
    assert not pair.a.cq.peek()
    pair.b.m.qmp("set_link", name="wire", up=True)
    pair.net.until(lambda: (pair.a.m.clock_step(SECOND // 10), pair.a.cq.peek())[1], "the rest")
    pair.check(WRITE, data)
    pair.up()


# ---- a peer, an adapter or a machine stops ----

def check_end(statuses: list[int]) -> None:
    """Some messages got through, one did not, the others were not tried."""
    good = statuses.count(C.QHCA_WC_SUCCESS)
    assert statuses == ([C.QHCA_WC_SUCCESS] * good + [C.QHCA_WC_RETRY_EXC_ERR]
                        + [C.QHCA_WC_WR_FLUSH_ERR] * (len(statuses) - good - 1))


def test_peer_killed(lab):
    """
    In traffic: the QP ends as if the wire were cut.  Another one with its MAC address
    takes its place, over the socket that was left, and the link is back.
    """
    a, b = lab(1), lab(2)
    route = Route(a, b, timeout=10, retry_cnt=1).up()
    files = a.files()
    for _ in range(12):
        route.post(WRITE, ROOM)
    b.kill()
    assert b.socket().exists()
    route.post(WRITE, ROOM, clean=False)
    route.net.until(lambda: (a.m.clock_step(SECOND // 10), route.qa.query().state)[1]
                    == C.QHCA_QPS_ERR, "the QP's end")
    check_end([route.completed(a).status for _ in range(13)])
    until(lambda: a.files() < files, "the link's end")
    route = Route(a, lab(2)).up()
    assert route.move(READ, 70_000) == 0
    assert a.files() == files


def test_peer_stopped_by_its_host(lab):
    """It does not block others: packets use the wire.  When it continues, so does the link."""
    a, b, c = lab(1), lab(2), lab(3)
    route, other = Route(a, b, timeout=20).up(), Route(a, c).up()
    route.move(WRITE, ROOM)
    b.suspend(True)
    try:
        data = [route.post(WRITE, ROOM, clean=False) for _ in range(14)][-1]
        assert other.move(READ, 300_000) == 0
        for _ in range(3):
            a.m.clock_step(SECOND)          # it does not receive: the link is cut
        assert other.move(READ, 300_000) == 0
    finally:
        b.suspend(False)
    for _ in range(13):
        route.net.until(lambda: (a.m.clock_step(SECOND // 2), a.cq.peek())[1], "messages")
        assert a.cq.take().status == C.QHCA_WC_SUCCESS
    route.net.until(lambda: (a.m.clock_step(SECOND // 2), a.cq.peek())[1], "the last message")
    route.check(WRITE, data)
    assert route.up().move(WRITE, 300_000) == 0


def test_stop_and_cont(pair):
    """A stopped machine gets nothing; then it gets all."""
    a, b = pair.a, pair.b
    b.m.qmp("stop")
    data = [pair.post(SEND, 50_000) for _ in range(3)][-1]
    a.m.qmp("query-status")
    assert not a.cq.peek() and not b.cq.peek()
    b.m.qmp("cont")
    for end in (a, b):
        for _ in range(2):
            pair.net.until(lambda: (a.m.clock_step(SECOND // 50), end.cq.peek())[1], "messages")
            assert end.cq.take().status == C.QHCA_WC_SUCCESS
    pair.net.until(lambda: (a.m.clock_step(SECOND // 50), a.cq.peek())[1], "the last message")
    pair.check(SEND, data)
    assert pair.up().move(SEND, 50_000) == 0


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_reset(pair, who):
    """In traffic; what the adapter sent before is no longer read."""
    a, b = pair.a, pair.b
    for _ in range(10):
        pair.post(WRITE, ROOM)
    end = a if who == "sender" else b
    end.adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    end.adapter.start_admin()
    end.setup()
    if end is b:
        # Completions of these WRITEs must not be taken for those of the next ones.
        a.adapter.command(C.QHCA_CMD_DESTROY_QP, pair.qa.num)
        while a.cq.peek():
            a.cq.take()
    route = Route(a, b).up()
    for opcode in (WRITE, SEND, READ):
        for _ in range(3):
            route.net.until(lambda: not a.cq.peek() or a.cq.take() is None, "old completions")
        assert route.move(opcode, 70_000) == 0


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_unplug(lab, who):
    """In traffic; the other one times out, and with the next adapter the link is back."""
    ends = {}
    for n, name in ((1, "sender"), (2, "receiver")):
        if name == who:
            end = ends[name] = lab(n, *SLOT, place="bus=rp", start=False)
            slot = Slot(end.m)
            end.start(slot.adapter)
        else:
            ends[name] = lab(n)
    a, b = ends["sender"], ends["receiver"]
    gone, stays = (a, b) if who == "sender" else (b, a)
    route = Route(a, b, timeout=10, retry_cnt=1).up()
    files = stays.files()
    for _ in range(12):
        route.post(WRITE, ROOM)
    unplug(slot)
    assert not gone.socket().exists()
    if stays is a:
        route.post(WRITE, ROOM, clean=False)

        def ended() -> bool:
            a.m.clock_step(SECOND // 10)
            return route.qa.query().state == C.QHCA_QPS_ERR

        route.net.until(ended, "the QP's end")
        check_end([route.completed(a).status for _ in range(13)])
    until(lambda: stays.files() < files, "the link's end")
    gone.m.qmp("device_add", driver="qhca", id="q", bus="rp", netdev="wire", mac=gone.mac,
               memlink=str(gone.folder))
    at = slot.exp + SLOT_CONTROL
    control = slot.port.config(at, 2)
    slot.port.config_write(at, control & ~(POWER_OFF | INDICATOR_OFF) | 0x100, 2)
    gone.start(Adapter(gone.m, slot=0, bus=1, memory=0x4000000))
    assert Route(a, b).up().move(WRITE, 300_000) == 0
    assert stays.files() == files


def test_snapshot(pair, tmp_path):
    """
    Saved and loaded again, in traffic: the state is that of an adapter on a wire, and
    its link is another one.
    """
    a, b = pair.a, pair.b
    data = [pair.post(WRITE, 100_000) for _ in range(10)][-1]
    save(a.m, tmp_path / "state")
    until(lambda: not a.socket().exists(), "another machine to be free to go on")
    new = Machine("-incoming", f"file:{tmp_path / 'state'}", *a.options, device=a.device)
    a.close()
    a.m = a.adapter.m = new
    pair.net.plug(new)
    until(lambda: new.qmp("query-status")["status"] == "paused", "the state to be loaded")
    new.qmp("cont")
    for _ in range(9):
        pair.net.until(lambda: (new.clock_step(SECOND // 50), a.cq.peek())[1], "messages")
        assert a.cq.take().status == C.QHCA_WC_SUCCESS
    pair.net.until(lambda: (new.clock_step(SECOND // 50), a.cq.peek())[1], "the last message")
    pair.check(WRITE, data)
    assert pair.up().move(READ, 300_000) == 0


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_live_migration(lab, who):
    """
    Within the host, so that for a time two machines have the MAC address: the source
    has the links until it stops, and then the destination gets them.
    """
    a, b = lab(1), lab(2)
    route = Route(a, b).up()
    end = a if who == "sender" else b
    files = (b if who == "sender" else a).files()
    old = end.m
    new = Machine("-incoming", "defer", *end.options, device=end.device)
    try:
        path = f"{new.dir}/migrate"
        new.qmp("migrate-incoming", uri=f"unix:{path}")
        assert route.move(WRITE, 300_000) == 0
        data = [route.post(WRITE, 100_000) for _ in range(10)][-1]
        old.qmp("migrate", uri=f"unix:{path}")
        route.net.until(lambda: old.qmp("query-migrate").get("status") == "completed",
                        "the migration")
        route.net.unplug(old)
        route.net.plug(new)
        until(lambda: new.qmp("query-status")["running"], "the machine to go on")
    except BaseException:
        new.close(check=False)
        raise
    end.m = end.adapter.m = new
    for _ in range(9):
        route.net.until(lambda: (a.m.clock_step(SECOND // 50), a.cq.peek())[1], "messages")
        assert a.cq.take().status == C.QHCA_WC_SUCCESS
    route.net.until(lambda: (a.m.clock_step(SECOND // 50), a.cq.peek())[1], "the last message")
    route.check(WRITE, data)
    assert route.up().move(READ, 300_000) == 0      # and the old one is still there
    until(lambda: (b if who == "sender" else a).files() == files, "descriptors to be closed")
    assert old.process.poll() is None
    old.close()
    assert route.move(READ, 300_000) == 0


def test_postcopy(lab):
    """
    A machine that runs while a part of its memory is still elsewhere shares none: a peer that
    read it would make zero pages of what has not arrived. Then it has links.
    """
    a, b = lab(1), lab(2)
    route = Route(a, b).up()
    old = b.m
    old.command("memset", hex(ROOM * 64), hex(ROOM * 64), "0x55")
    new = Machine("-incoming", "defer", *b.options, device=b.device)
    try:
        try:
            for machine in (old, new):
                machine.qmp("migrate-set-capabilities",
                            capabilities=[{"capability": "postcopy-ram", "state": True}])
        except RuntimeError as err:
            pytest.skip(f"no page faults are passed to user space here: {err}")
        path = f"{new.dir}/migrate"
        new.qmp("migrate-incoming", uri=f"unix:{path}")
        old.qmp("migrate-set-parameters", max_bandwidth=ROOM, max_postcopy_bandwidth=ROOM)
        old.qmp("migrate", uri=f"unix:{path}")
        until(lambda: old.qmp("query-migrate")["status"] == "active", "the migration")
        old.qmp("migrate-start-postcopy")
        until(lambda: new.qmp("query-status")["running"], "the machine to go on")
        # longer than from one scan for peers to the next
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert not b.socket().exists()
            assert new.qmp("query-migrate")["status"] == "postcopy-active"
        old.qmp("migrate-set-parameters", max_postcopy_bandwidth=0)
        until(lambda: old.qmp("query-migrate")["status"] == "completed", "all of the memory")
        route.net.unplug(old)
        route.net.plug(new)
    except BaseException:
        new.close(check=False)
        raise
    b.m = b.adapter.m = new
    assert route.up().move(READ, 300_000) == 0
    old.close()


# ---- hostile peers: only their own link suffers ----

@pytest.fixture
def victim(lab):
    """An end with a good link, which still works at the end, when all other links are gone."""
    other, end = lab(1), lab(2)
    Route(other, end).up()
    files = end.files()
    yield end
    until(lambda: end.files() == files, "descriptors to be closed")
    route = Route(other, end).up()
    assert route.move(WRITE, 300_000) == 0 and route.move(READ, 300_000) == 0


BIG, HUGE = 1 << 45, 1 << 21
HUGE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
HELLOS = {
    "nothing": lambda: {"length": 0, "fds": []},
    "nothing, with descriptors": lambda: {"length": 0},
    "a byte": lambda: {"length": 1},
    "too short": lambda: {"length": Peer.HELLO.size - 1},
    "too long": lambda: {"length": Peer.HELLO.size + 1},
    "no magic": lambda: {"magic": 0},
    "another version": lambda: {"version": 2},
    "the adapter's own address": lambda: {"mac": b"\2\0\0\0\0\2"},
    "an address to which it would connect": lambda: {"mac": b"\2\0\0\0\0\1"},
    "no rings": lambda: {"rings": 0},
    "too many rings": lambda: {"rings": 0xFFFF},
    "no descriptors": lambda: {"fds": []},
    "one descriptor": lambda: {"fds": [sealed(Peer.RING)]},
    "too many descriptors": lambda: {"fds": [sealed(Peer.RING) for _ in range(100)]},
    "too many regions": lambda: {"regions": 9, "fds": [sealed(Peer.RING) for _ in range(10)]},
    "regions without end": lambda: {"regions": 0xFFFFFFFE},
    "rings too small": lambda: {"fds": [sealed(Peer.RING - 4096) for _ in range(2)]},
    "rings not sealed": lambda: {"fds": [sealed(Peer.RING, 0) for _ in range(2)]},
    "rings that cannot grow": lambda: {"fds": [sealed(Peer.RING, F_SEAL_GROW)
                                              for _ in range(2)]},
    "rings that cannot be written": lambda: {"fds": [sealed(Peer.RING, F_SEAL_SHRINK | 8)
                                                     for _ in range(2)]},
    "pipes": lambda: {"fds": [*os.pipe()]},
    "a socket": lambda: {"fds": [sealed(Peer.RING), socket.socket().detach()]},
    "folders": lambda: {"fds": [os.open("/", os.O_RDONLY), os.open("/", os.O_RDONLY)]},
    "an ordinary file": lambda: {"fds": [os.open(__file__, os.O_RDONLY) for _ in range(2)]},
    "memory not sealed": lambda: {"fds": [*RINGS(), sealed(4096, 0)], "memory": 4096},
    "a pipe for memory": lambda: {"fds": [*RINGS(), *os.pipe()], "memory": 4096},
    "memory of no size": lambda: {"fds": [*RINGS(), sealed(4096)], "memory": 0},
    "memory behind its end": lambda: {"fds": [*RINGS(), sealed(4096)], "memory": 8192},
    "memory at an odd place": lambda: {"fds": [*RINGS(), sealed(8192)], "spaces": [1, 4096]},
    "memory that wraps": lambda: {"fds": [*RINGS(), sealed(8192)],
                                  "spaces": [(1 << 64) - 4096, 8192]},
    "memory without end": lambda: {"fds": [*RINGS(), sealed(BIG)], "memory": BIG},
    # after a hole was punched into them, there may be no page for it
    "rings in huge pages": lambda: {"fds": [huge(HUGE), huge(HUGE)]},
    "memory in huge pages": lambda: {"fds": [*RINGS(), huge(HUGE)], "memory": HUGE},
}


def huge(size: int) -> int:
    """A memory file of hugetlbfs, which needs no pages as long as it is not mapped."""
    return sealed(size, flags=os.MFD_HUGETLB | os.MFD_HUGE_2MB)


def RINGS() -> list[int]:
    return [sealed(Peer.RING), sealed(Peer.RING)]


def test_wrong_hellos(victim):
    """Each is refused, and no resources of it are kept."""
    for what, make in HELLOS.items():
        if "huge pages" in what and not HUGE_PAGES.exists():
            continue
        for _ in range(2):
            peer = Peer(victim).hello(**make())
            assert peer.cut_off(), what
            peer.close()


@pytest.mark.long("a connection has five seconds to say something")
def test_connections_that_say_nothing(victim):
    """Many connect and disconnect, many stay: the others are found nevertheless."""
    for _ in range(40):
        Peer(victim).close()
    silent = [Peer(victim) for _ in range(5)]
    good = Peer(victim).hello().answer()
    for peer in silent:
        assert peer.cut_off()       # within some seconds
        peer.close()
    good.bell()
    good.close()


def test_another_with_the_same_address(victim):
    first = Peer(victim).hello().answer()
    second = Peer(victim).hello()
    assert second.cut_off()
    second.close()
    first.sock.shutdown(socket.SHUT_WR)
    assert first.cut_off()                  # that one is gone
    first.close()
    Peer(victim).hello().answer().close()


def test_bells_without_end(victim):
    peer = Peer(victim).hello().answer()
    for _ in range(20_000):
        peer.bell()
    victim.adapter.command(C.QHCA_CMD_NOP)
    peer.sock.send(b"x" * 5000)             # a long one, and one with descriptors
    socket.send_fds(peer.sock, [b"!"], [peer.memory[0]] if peer.memory else [0])
    victim.adapter.command(C.QHCA_CMD_NOP)
    peer.close()


def send_many(sock: socket.socket, count: int) -> None:
    """@count messages that are not read."""
    with contextlib.suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 22)
    sock.setblocking(False)
    try:
        for _ in range(count):
            sock.send(b"!")
    except BlockingIOError:
        pytest.skip("sockets hold fewer messages here (net.core.wmem_max)")


@pytest.mark.parametrize("how", ["hello", "bell", "not read", "not read, behind many"])
def test_descriptor_that_takes_long_to_close(victim, how):
    """The last close() of a socket can take as long as its owner likes. Nothing waits for it."""
    peer, slow = Peer(victim), Lingering()
    if how == "bell":
        peer.hello().answer()
    victim.suspend(True)                    # it must close its descriptor after us
    if how == "hello":
        peer.hello(fds=[sealed(Peer.RING), slow.sock.detach()])
    else:
        if how != "bell":
            peer.hello(length=1)
        if how == "not read, behind many":
            send_many(peer.sock, 2000)
        slow.pass_to(peer.sock)
    victim.suspend(False)
    until(slow.closing, "the last descriptor to be closed")
    victim.adapter.command(C.QHCA_CMD_NOP)
    victim.m.qmp("query-status")
    assert slow.closing()
    slow.peer.close()
    peer.close()


def test_many_descriptors_that_take_long_to_close(victim):
    """A thread for each could be more than there may be. A peer that passes them is cut off."""
    peer, slow = Peer(victim).hello().answer(), [Lingering() for _ in range(20)]
    before = victim.threads()
    victim.suspend(True)                    # it must close its descriptors after us
    socket.send_fds(peer.sock, [b"!"], [each.sock.fileno() for each in slow])
    socket.send_fds(peer.sock, [b"!"], [each.sock.fileno() for each in slow])
    for each in slow:
        each.sock.close()
    victim.suspend(False)
    assert peer.cut_off()
    until(lambda: any(each.closing() for each in slow), "the last descriptor to be closed")
    assert victim.threads() <= before + 2
    victim.adapter.command(C.QHCA_CMD_NOP)
    for each in slow:
        each.peer.close()
    peer.close()


@pytest.fixture
def no_stacks_kept(monkeypatch):
    """A thread that ends leaves no room for another one."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=0")


@contextlib.contextmanager
def no_more_threads(process: Path):
    """There is no room for the stack of another one."""
    pid, status = int(process.name), (process / "status").read_text().splitlines()
    size = int(next(line for line in status if line.startswith("VmSize")).split()[1]) << 10
    if size > 1 << 40:
        pytest.skip("AddressSanitizer maps memory all the time")
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (size + STACK // 2, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, before)


@pytest.mark.observe
def test_no_more_threads(no_stacks_kept, victim):
    """What a thread would have released stays until there can be one: the adapter goes on."""
    process, size = Path(f"/proc/{victim.m.process.pid}"), 1 << 26
    peer = Peer(victim).hello([*RINGS(), sealed(size)], memory=size).answer()

    def kept() -> tuple[bool, int]:
        """Is memory of a peer still mapped, and how many of its files are open?"""
        files = 0
        for file in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                files += os.readlink(file).startswith("/memfd:test")
        return "/memfd:test" in (process / "maps").read_text(), files

    assert kept() == (True, 0)
    with no_more_threads(process):
        peer.close()
        until(lambda: victim.links().keys() == {"02:00:00:00:00:01"}, "the link's end")
        other = Peer(victim).hello(length=1, fds=[sealed(size), sealed(size), *os.pipe()])
        assert other.cut_off()
        other.close()
        victim.adapter.command(C.QHCA_CMD_NOP)
        assert kept() == (True, 2)
    until(lambda: kept() == (False, 0), "the memory to be released")


@pytest.mark.observe
def test_symbolic_link(lab):
    """It is no adapter: a file system that it leads to may not answer."""
    other = lab(1)
    with tempfile.TemporaryDirectory(prefix="qhca-ml.") as elsewhere:
        os.rename(other.socket(), f"{elsewhere}/socket")
        os.symlink(f"{elsewhere}/socket", other.socket())
        end, third, fourth = lab(2), lab(3), lab(4)
        for each in (third, fourth):
            until(lambda: end.mac in each.links(), "a link to an adapter")
        until(lambda: third.mac in fourth.links(), "a link to the other")
        assert other.mac not in third.links() and other.mac not in fourth.links()


def test_connections_without_end(lab):
    """A peer connects all the time, by another name of the socket, while that is removed."""
    end = lab(1, *SLOT, place="bus=rp", start=False)
    other, over = end.folder / "other", threading.Event()
    os.link(end.socket(), other)

    def knock() -> None:
        while not over.wait(0):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
                sock.setblocking(False)
                with contextlib.suppress(OSError):
                    sock.connect(str(other))

    knocks = [threading.Thread(target=knock, daemon=True) for _ in range(2)]
    for each in knocks:
        each.start()
    try:
        unplug(Slot(end.m))
    finally:
        over.set()
        for each in knocks:
            each.join()


def test_garbage_in_the_ring(victim):
    """For any contents of the ring: the link is cut, and nothing else happens."""
    dice = random.Random(7)
    for turn in range(24):
        peer = Peer(victim).hello().answer()
        size = dice.choice((64, 192, 4096, 1 << 20))
        data = bytearray(dice.randbytes(min(size, 8192)))
        prod = size
        if turn % 4 == 1:                   # a plausible start of a record
            data[0:8] = dice.randint(2, 6).to_bytes(4, "little") + size.to_bytes(4, "little")
        elif turn % 4 == 2:                 # more in the ring than it holds
            prod = (1 << 20) + 64
        elif turn % 4 == 3:                 # a record of no length
            data = bytearray(4096)
        peer.put(bytes(data), prod)
        peer.set_word(0, peer.WANTS_ROOM, dice.getrandbits(32))
        for at in (peer.CONS, peer.SLEEPS, peer.REFUSES, peer.SEEN):
            peer.set_word(1, at, dice.getrandbits(32))
        # it may have checked already
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            peer.bell()
        assert peer.cut_off()
        peer.close()


def test_ring_that_changes_all_the_time(victim):
    """While the adapter reads it."""
    dice = random.Random(8)
    peer = Peer(victim).hello().answer()
    try:
        for _ in range(3000):
            peer.put(bytes([dice.randint(0, 6), 0, 0, 0, 0, dice.randint(0, 255), 0, 0]), 65536)
            peer.set_word(0, peer.PROD, dice.randrange(0, 1 << 20, 64))
            peer.bell()
    except (BrokenPipeError, ConnectionResetError):
        pass                                # cut off, as it should be
    peer.close()


class Honest:
    """A peer that makes the victim use the link, up to a certain step."""

    def __init__(self, victim: End):
        self.victim, self.net = victim, victim.net
        self.peer = Peer(victim).hello().answer()
        s = victim
        self.qp = QP(s.adapter, s.cq, s.pd)
        self.qp.to_init(ACCESS & ~C.QHCA_ACCESS_LOCAL_WRITE)
        self.qp.to_rtr(psn=100, dest_qpn=0x1234, ip="10.99.0.9", mac="02:00:00:00:00:09")
        self.qp.to_rts(psn=100, timeout=0)

    def markers(self) -> None:
        """See those of the wire."""
        for frame in self.net.frames:
            if frame[12:14] == MARKER and frame[:6] == self.peer.mac:
                assert frame[18:26] == self.peer.token.to_bytes(8, "big")
                number = int.from_bytes(frame[26:30], "big")
                self.peer.set_word(1, self.peer.SEEN, number)
        self.peer.bell()

    def post(self, length: int) -> None:
        self.qp.post_send((self.victim.mr.iova, length, self.victim.mr.key),
                          opcode=WRITE, remote=(0x1000, 1))

    def named(self) -> "Honest":
        """The first record in the ring is one that names memory."""
        self.post(64)
        self.net.until(lambda: any(f[12:14] == MARKER and f[:6] == self.peer.mac
                                   for f in self.net.frames), "a marker")
        self.markers()
        self.post(40_000)
        self.net.until(lambda: (self.markers(), self.peer.word(1, self.peer.PROD))[1],
                       "a record")
        assert self.state() == self.peer.REFS
        return self

    def state(self) -> int:
        return self.peer.word(1, self.peer.DATA)


@pytest.mark.parametrize("end", ["deregister", "destroy", "reset", "bus master", "patience"])
def test_what_is_named_is_revoked(victim, end):
    """A peer that does not read it in time must not read it later."""
    h = Honest(victim).named()
    if end == "deregister":
        victim.adapter.command(C.QHCA_CMD_DESTROY_MR, victim.mr.key)
        victim.mr = MR(victim.adapter, victim.pd, 2 * ROOM, ACCESS)
    elif end == "destroy":
        victim.adapter.command(C.QHCA_CMD_DESTROY_QP, h.qp.num)
    elif end == "reset":
        control = victim.adapter.capability(CAP_EXP) + 8
        victim.adapter.config_write(control, 0x8000, 2)
    elif end == "bus master":
        victim.adapter.set_master(False)
        assert h.state() == h.peer.REVOKED
        victim.adapter.set_master(True)
    else:
        h.peer.set_word(1, h.peer.REFUSES, 1)       # the next one must wait
        h.post(64)
        for _ in range(3):
            victim.m.clock_step(SECOND)
        assert h.peer.cut_off()
    assert h.state() == h.peer.REVOKED
    h.peer.close()
    if end == "reset":
        victim.adapter.start()
        victim.setup()


class Copying(Honest):
    """A peer that is copying while its QP is destroyed."""

    def __init__(self, victim: End):
        super().__init__(victim)
        self.named()
        self.peer.set_word(1, self.peer.DATA, self.peer.COPYING)

    def destroy(self) -> None:
        adapter = self.victim.adapter
        adapter.submit(opcode=C.QHCA_CMD_DESTROY_QP, obj=self.qp.num)
        adapter.ring_admin()
        # the adapter goes on with all else
        assert adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_READY
        self.victim.m.qmp("query-status")
        assert not adapter.acq.peek()

    def destroyed(self) -> None:
        assert self.victim.adapter.acq.take().status == C.QHCA_ST_OK


def test_copy_that_ends(victim):
    """A command that takes memory away is completed when the peer has finished its copy."""
    h = Copying(victim)
    h.destroy()
    assert h.peer.word(1, h.peer.WANTS_ROOM)
    h.peer.set_word(1, h.peer.DATA, h.peer.DONE)
    h.peer.set_word(1, h.peer.CONS, h.peer.word(1, h.peer.PROD))
    h.peer.bell()
    h.destroyed()
    assert h.peer.connected()
    h.peer.close()


def test_copy_that_never_ends(victim):
    """The peer is disconnected after a second."""
    h = Copying(victim)
    h.destroy()
    victim.m.clock_step(SECOND * 9 // 10)
    assert not victim.adapter.acq.peek()
    victim.m.clock_step(SECOND // 5)
    h.destroyed()
    assert h.peer.cut_off()
    h.peer.close()


@pytest.mark.parametrize("cut", [False, True], ids=["closed", "cut off"])
def test_link_that_ends_during_a_copy(victim, cut):
    """A peer that was disconnected may still be copying until it has disconnected, too."""
    h = Copying(victim)
    h.destroy()
    if cut:
        h.peer.put(b"\xff" * 64, 64)        # not a record
        h.peer.bell()
        assert h.peer.cut_off()
    h.peer.close()
    h.destroyed()


def test_memory_is_shared_for_reading(victim):
    """By the descriptors that it gets, a peer can neither write nor discard it."""
    peer = Peer(victim).hello().answer()
    assert peer.memory
    for fd in peer.memory:
        with mmap.mmap(fd, 4096, prot=mmap.PROT_READ) as readable:
            assert len(readable[:]) == 4096
        with pytest.raises(PermissionError):
            mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        with pytest.raises(OSError):
            os.pwrite(fd, b"x", 0)
        with pytest.raises(OSError):
            os.posix_fallocate(fd, 0, 4096)
        with pytest.raises(OSError):
            os.ftruncate(fd, 4096)
    peer.close()


def can_lock(size: int) -> bool:
    """May a process lock @size bytes of memory?"""
    with mmap.mmap(-1, size) as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        # munmap() unlocks them
        return ctypes.CDLL(None).mlock(ctypes.c_void_p(address), ctypes.c_size_t(size)) == 0


def test_locked_memory(lab):
    """An adapter that locks its guest's memory locks, and so allocates, none of its peers'."""
    if not can_lock(1 << 29):
        pytest.skip("no memory can be locked here (ulimit -l)")
    end, memory = lab(2, "-overcommit", "mem-lock=on"), sealed(1 << 26)
    peer = Peer(end).hello([*RINGS(), os.dup(memory)], memory=1 << 26).answer()
    assert os.fstat(memory).st_blocks == 0
    os.close(memory)
    peer.close()


def test_markers_that_are_guessed(victim):
    """A peer to which the wire does not lead gets no packets, whatever it claims to have seen."""
    h = Honest(victim)
    h.post(64)
    h.net.until(lambda: any(f[12:14] == MARKER and f[:6] == h.peer.mac for f in h.net.frames),
                "a marker")
    for number in range(1, 5):
        h.peer.set_word(1, h.peer.SEEN, number)
        h.peer.bell()
        h.post(64)
        victim.m.clock_step(SECOND)
        h.net.turn()
    assert h.peer.word(1, h.peer.PROD) == 0
    h.peer.close()


@pytest.mark.observe
def test_peer_with_the_name_of_another(lab, folder):
    """The adapter connects to an address: who responds must not claim to have another."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as trap:
        trap.bind(str(folder / "000000000001"))
        trap.listen()
        trap.settimeout(TIMEOUT)
        end = lab(2)
        for mac, known in (((2, 0, 0, 0, 0, 9), False), ((0, 0, 0, 0, 0, 1), True)):
            sock, _ = trap.accept()
            sock.settimeout(TIMEOUT)
            data, fds, _, _ = socket.recv_fds(sock, 4096, 16)
            assert Peer.HELLO.unpack(data)[3] == 2      # rings
            sock.send(Peer.HELLO.pack(Peer.MAGIC, Peer.VERSION, bytes(mac), 0, 0, 7, *[0] * 16))
            if known:
                until(lambda: "00:00:00:00:00:01" in end.links(), "a link")
            else:
                assert sock.recv(16) == b"" and not end.links()
            sock.close()
            for fd in fds:
                os.close(fd)


MEMORY_PORT, EJECT = 0xA00, 1 << 3      # QEMU's docs/specs/acpi_mem_hotplug.rst


def test_memory_that_is_unplugged(lab):
    """Peers have to release it: they are disconnected, and find the rest of the memory."""
    end = lab(1, "-m", "256M,slots=2,maxmem=1G",
              "-object", "memory-backend-memfd,id=more,size=64M,share=on",
              "-device", "pc-dimm,id=dimm,memdev=more")
    peer = Peer(end).hello().answer()
    assert len(peer.memory) == 2
    end.m.qmp("device_del", id="dimm")
    end.m.out32(MEMORY_PORT, 0)
    end.m.command("outb", hex(MEMORY_PORT + 0x14), EJECT)
    end.m.wait_event("DEVICE_DELETED")
    end.m.qmp("object-del", id="more")
    assert peer.cut_off()
    peer.close()

    def again():
        try:
            return Peer(end, 8).hello().answer()
        except (AssertionError, ConnectionResetError, BrokenPipeError):
            return None         # the adapter accepts no one until the others are gone

    peer = until(again, "another hello")
    assert len(peer.memory) == 1
    peer.close()


def test_memory_of_the_peer_that_is_cut_short(victim):
    """This is impossible: mapped memory is sealed."""
    memory = sealed(1 << 20)
    peer = Peer(victim).hello([*RINGS(), os.dup(memory)], memory=1 << 20).answer()
    with pytest.raises(PermissionError):
        os.ftruncate(memory, 4096)
    os.close(memory)
    peer.close()


# ---- the folder ----

@pytest.mark.parametrize("where, why", [
    ("missing", "No such file"), ("file", "Not a directory"), ("x" * 120, "too long")])
def test_folder_that_is_none(folder, where, why):
    (folder / "file").write_text("")
    with pytest.raises(RuntimeError, match=why):
        Machine(device=f"qhca,memlink={folder / where}")


def test_two_with_one_address(lab):
    a = lab(1)
    with pytest.raises(RuntimeError, match="two adapters have the same MAC address"):
        Machine(device=a.device)
    assert Route(a, lab(2)).up().move(WRITE, 5000) == 0


def test_other_files_in_the_folder(lab, folder):
    """Files of all kinds that sort first: they do not block."""
    (folder / "000000000000").mkdir()
    (folder / "000000000001").write_text("file")
    os.mkfifo(folder / "000000000002")
    (folder / "000000000003").symlink_to("/dev/zero")
    (folder / "000000000004").symlink_to("nothing")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gone:
        gone.bind(str(folder / "000000000005"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream, \
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as full:
        stream.bind(str(folder / "000000000006"))
        stream.listen()
        full.bind(str(folder / "000000000007"))
        full.listen(0)          # and does not accept
        (folder / ("y" * 200)).write_text("")
        assert Route(lab(1), lab(2)).up().move(WRITE, 5000) == 0


def test_folder_full_of_names(lab, folder):
    """More than one scan tries: the next ones continue."""
    for i in range(1200):
        (folder / f"file{i}").touch()
    for i in range(300):
        (folder / f"{i:012x}").touch()
    assert Route(lab(1), lab(2)).up().move(WRITE, 5000) == 0


def test_socket_of_another_user(lab, folder):
    """A peer of any other identity gets no memory."""
    if os.geteuid():
        pytest.skip("only root can act as another user")
    folder.chmod(0o777)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        try:
            os.setgid(65534)
            os.setuid(65534)
            trap = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            trap.bind(str(folder / "000000000001"))
            trap.listen()
            theirs.send(b"ready")
            victim, _ = trap.accept()
            theirs.send(b"got %d" % len(victim.recv(4096)))
        finally:
            os._exit(0)
    theirs.close()
    ours.settimeout(TIMEOUT)
    assert ours.recv(16) == b"ready"
    lab(2)
    assert ours.recv(16) == b"got 0"
    os.waitpid(child, 0)

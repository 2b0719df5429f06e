# SPDX-License-Identifier: GPL-2.0-or-later
"""
Every kind of wire, blocked forever, slow, cut in the middle of a frame, without a peer and with
another one, while the adapter sends, is reset, saved, unplugged and plugged in again.  In all
cases QEMU responds, sleeps, and keeps no file open.
"""

import os
import re
import signal
from pathlib import Path

import pytest
from adapter import CAP_EXP, Adapter
from busy import never_idle
from layout import C
from machine import DEVICE, Machine, until
from rdma import BTH, MR, Setup, parse
from scapy.layers.l2 import ARP, Ether
from test_ethernet import Ethernet
from test_migrate import save
from test_unplug import (INDICATOR_OFF, POWER_OFF, SLOT, SLOT_CONTROL, SLOT_DEVICE, Slot,
                         unplug)
from wires import WIRES, DgramPair, Passt, StreamServer, UnixServer, Wire

pytestmark = pytest.mark.once("no observer is in the way between QP and wire")

MTU = 4096
FIRST_PSN = 200
PACKETS = 60                    # fewer than may be sent before the first acknowledge (64)
ACK_TIMEOUT = (4096 << 14) + 1  # ns
DEVICE_CONTROL, FLR = 8, 0x8000
WMEM, WMEM_USUAL = Path("/proc/sys/net/core/wmem_default"), 212992


def next_psn(wire: Wire) -> int:
    """Of the next frame that is ours."""
    while True:
        frame = wire.frame()
        if frame[:6] == b"\2\0\0\0\0\2":
            return parse(frame)[BTH].psn


def sends_and_repeats(wire: Wire, machine: Machine) -> None:
    """The rest of the message arrives, and after a timeout its beginning: when a machine stops,
    QEMU discards the frame that waits for the wire."""
    while next_psn(wire) != FIRST_PSN + PACKETS - 1:
        pass
    machine.clock_step(ACK_TIMEOUT)
    assert next_psn(wire) == FIRST_PSN


# What QEMU says of a backend without a peer; "": a socket that listens.
UNCONNECTED = ("", "initializing", "listening", "connecting")


def backend(m: Machine, name: str) -> str:
    """What QEMU says of the backend NAME: its addresses, or a state."""
    told = m.qmp("human-monitor-command", command_line="info network")
    return re.search(rf"\b{name}: index=0,type=[\w-]+,(.*)", told)[1].strip()


class Bench:
    """A machine with the adapter in a slot, and the peer on @wire."""

    def __init__(self, wire: Wire):
        self.wire = wire
        self.m = Machine(*SLOT, device=SLOT_DEVICE, netdev=wire.netdev, overwrite_freed=True)
        self.slot = Slot(self.m)
        self.adapter = self.slot.adapter
        try:
            wire.connect()
            until(self.linked, "the backend")
        except BaseException:
            wire.end()
            self.m.close(check=False)
            raise

    def linked(self) -> bool:
        """Does QEMU know its peer, or is there no connection to wait for?"""
        return backend(self.m, "wire") not in UNCONNECTED

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.m.process.pid}/fd"))

    def start(self, psn: int = FIRST_PSN) -> None:
        self.adapter.memory = 0x1000000
        self.adapter.start()
        self.connect(psn)

    def connect(self, psn: int = FIRST_PSN) -> None:
        """A QP with a large MR."""
        self.s = Setup(self.adapter, "init")
        self.s.mr = MR(self.adapter, self.s.pd, size=1 << 20)
        self.s.qp.to_rtr(mtu=5)
        self.s.qp.to_rts(psn=psn)

    def send(self, packets: int) -> None:
        self.s.qp.post_send(self.s.sge(packets * MTU))

    def asleep(self) -> None:
        """QEMU is idle, but responds."""
        self.m.qmp("query-status")
        until(self.m.sleeps, "QEMU to sleep")

    def psn(self) -> int:
        return next_psn(self.wire)

    def block(self) -> None:
        """More is to be sent than the wire holds."""
        self.send(PACKETS)
        self.asleep()

    def reset(self, how: str, psn: int = FIRST_PSN) -> None:
        if how == "flr":
            control = self.adapter.capability(CAP_EXP) + DEVICE_CONTROL
            self.adapter.config_write(control, FLR, 2)
        else:
            self.adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
        self.start(psn)

    def plug(self) -> None:
        self.m.qmp("device_add", driver="qhca", id="q", bus="rp", netdev="wire",
                   mac="02:00:00:00:00:01")
        at = self.slot.exp + SLOT_CONTROL
        control = self.slot.port.config(at, 2)
        self.slot.port.config_write(
            at, control & ~(POWER_OFF | INDICATOR_OFF) | 0x100, 2)
        self.adapter = self.slot.adapter = Adapter(self.m, slot=0, bus=1)
        self.start()

    def hard_life(self, path) -> None:
        """Reset, saved, unplugged and plugged in again, always sending."""
        for how in ("register", "flr"):
            self.reset(how)
            self.block()
        save(self.m, path)
        self.m.qmp("cont")
        self.asleep()
        self.adapter.command(C.QHCA_CMD_NOP)
        unplug(self.slot)
        self.asleep()
        self.plug()
        self.block()


def on(wires):
    """A bench for each of these wires."""
    return pytest.mark.parametrize("bench", wires, indirect=True,
                                   ids=lambda w: w.__name__)


@pytest.fixture
def bench(request):
    b = Bench(request.param())
    yield b
    b.wire.end()
    b.m.close()


@on([w for w in WIRES if w.blocks])
def test_slow_and_blocked_for_ever(bench, tmp_path):
    """
    A peer that reads long after QEMU has stopped trying gets every frame.  Then the peer stops
    reading while everything happens that can happen to an adapter; then it reads again.
    """
    bench.start()
    files = bench.files()
    bench.block()
    for psn in range(FIRST_PSN, FIRST_PSN + PACKETS):
        assert bench.psn() == psn
    bench.hard_life(tmp_path / "state")
    assert bench.files() == files
    # The stream consists of whole frames; those of the last connection follow.
    while bench.psn() != FIRST_PSN + PACKETS - 1:
        pass


@on([w for w in WIRES if w.blocks])
def test_migrated_while_blocked(bench, tmp_path):
    """
    The adapter moves to another QEMU, whose wire is blocked, too, and continues there; so it does
    in the first QEMU if that runs again after all.
    """
    if int(WMEM.read_text()) > WMEM_USUAL:
        pytest.skip(f"{WMEM}: the buffers of this host's sockets hold the whole message")
    bench.start()
    bench.block()
    save(bench.m, tmp_path / "state")
    wire = DgramPair()
    with Machine(*SLOT, "-incoming", f"file:{tmp_path}/state", device=SLOT_DEVICE,
                 netdev=wire.netdev, overwrite_freed=True) as other:
        wire.connect()
        until(lambda: other.qmp("query-status")["status"] == "paused", "the state to be loaded")
        other.qmp("cont")
        until(other.sleeps, "the second QEMU to sleep")
        sends_and_repeats(wire, other)
        wire.end()
    bench.m.qmp("cont")
    sends_and_repeats(bench.wire, bench.m)


@on(WIRES)
def test_peer_dies(bench, tmp_path):
    """
    The peer ends, if possible in the middle of a frame, while QEMU waits for it; the
    next one gets whole frames.
    """
    bench.start()
    files = bench.files()
    bench.block()
    if not bench.wire.whole:
        bench.wire.sock.recv(3000)
    bench.wire.kill()
    bench.asleep()
    if bench.wire.again:
        bench.wire.connect()
        until(bench.linked, "the backend")
        bench.send(1)
        while bench.psn() != FIRST_PSN + PACKETS:
            pass
        bench.block()
        bench.wire.kill()
    bench.hard_life(tmp_path / "state")
    if bench.wire.again:
        bench.wire.connect()
        until(bench.linked, "the backend")
        bench.reset("register")
        bench.send(20)
        for psn in range(FIRST_PSN, FIRST_PSN + 20):
            assert bench.psn() == psn
        assert bench.files() == files


def netdev_arguments(text: str) -> dict:
    """Options of -netdev as arguments of netdev_add."""
    kind, *options = text.split(",")
    arguments: dict = {"type": kind}
    for key, value in (option.split("=") for option in options):
        *groups, last = key.split(".")
        at = arguments
        for group in groups:
            at = at.setdefault(group, {})
        at[last] = {"on": True, "off": False}.get(value, value)
    return arguments


@pytest.mark.parametrize("wire", [UnixServer, StreamServer], ids=lambda wire: wire.__name__)
def test_frames_before_the_server_listens(wire):
    """QEMU makes a server's socket in a thread. Until its main loop hears of that, the link is
    down, and a frame is lost."""
    far = wire()
    with Machine(device=DEVICE, netdev=lambda _: ("hubport,id=wire,hubid=0", [])) as m:
        adapter = Adapter(m)
        adapter.start()
        s = Setup(adapter, "rts")
        text, _ = far.netdev(m)
        with never_idle(m):
            m.qmp("netdev_add", **netdev_arguments(text.replace("id=wire", "id=far")))
            m.qmp("netdev_add", type="hubport", id="port", hubid=0, netdev="far")
            # it is still being initialized, unless a busy host let the main loop rest
            s.qp.post_send(s.sge(8))
            adapter.command(C.QHCA_CMD_NOP)
        until(lambda: backend(m, "far") == "listening", "the server")
        m.qmp("set_link", name="far", up=True)
        s.qp.post_send(s.sge(8))
        adapter.command(C.QHCA_CMD_NOP)
        far.connect()
        until(lambda: backend(m, "far") not in UNCONNECTED, "the backend")
        m.clock_step(ACK_TIMEOUT)
        assert parse(far.frame())[BTH].psn == FIRST_PSN


@on([Passt])
def test_a_network_behind_the_wire(bench):
    """passt answers for its gateway."""
    bench.adapter.start()
    bench.wire.process.send_signal(signal.SIGCONT)
    eth = Ethernet(bench.adapter)
    mac = "02:00:00:00:00:01"
    eth.send(bytes(Ether(src=mac, dst="ff:ff:ff:ff:ff:ff")
                   / ARP(hwsrc=mac, psrc="169.254.2.1", pdst=Passt.GATEWAY)))
    assert eth.cq.take().opcode == C.QHCA_CQE_OP_ETH_SEND
    while True:
        _, frame = eth.receive()
        answer = Ether(frame)
        if ARP in answer and answer[ARP].op == 2:
            break               # passt may announce things by itself
    assert (answer[ARP].psrc, answer[ARP].hwdst) == (Passt.GATEWAY, mac)

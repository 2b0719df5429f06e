# SPDX-License-Identifier: GPL-2.0-or-later
"""
Migration to a file and back: an active connection continues in another QEMU, and a corrupted state
is refused, however it was changed.
"""

import random
import time

import pytest
from adapter import EQ
from conftest import DEVICE
from layout import C, struct
from machine import Machine
from rdma import BTH, PEER_MAC, Setup, ack, packet, parse
from test_ethernet import Ethernet, frame_to

REFUSED = pytest.mark.once("what is refused is decided by the engine, where nothing is observed")

RTS_PSN, RTR_PSN = 200, 100
FIRST, LAST = 0x00, 0x02
ENGINE = b"Sconfig\0"           # how the engine's part of the state begins


def until(what, say):
    limit = time.monotonic() + 120
    while not what():
        assert time.monotonic() < limit, say
        time.sleep(0.01)


def save(machine, path):
    """Stop the machine and write its state to @path."""
    machine.qmp("stop")
    machine.qmp("migrate", uri=f"file:{path}")
    until(lambda: machine.qmp("query-migrate").get("status") == "completed",
          "the state is not written")


@pytest.fixture
def moved(tmp_path):
    """A function that moves an adapter into a new QEMU."""
    machines = []

    def move(adapter, device=DEVICE):
        path = tmp_path / f"state{len(machines)}"
        save(adapter.m, path)
        new = Machine("-incoming", f"file:{path}", device=device)
        machines.append(new)
        until(lambda: new.qmp("query-status")["status"] == "paused",
              "the state is not loaded")
        new.qmp("cont")
        adapter.m = new

    yield move
    for machine in machines:
        machine.close()


def roce(machine):
    """The next RoCE frame; QEMU announces a machine that has moved by RARP."""
    while True:
        frame = machine.receive_frame()
        if frame is None or frame[12:14] != b"\x80\x35":
            return parse(frame)


@pytest.fixture
def rts(adapter):
    return Setup(adapter, "rts")


def test_shaper_waits(adapter, moved):
    """A queue waits for its shaper: it continues in the other QEMU."""
    eth = Ethernet(adapter)
    number = adapter.command(C.QHCA_CMD_CREATE_SHAPER, data=struct("qhca_shaperc")(
        rate=1000000, weight=1)).obj
    adapter.command(C.QHCA_CMD_MODIFY_ETH_SQ, eth.sqn, struct("qhca_eth_qc")(shaper=number),
                    mask=C.QHCA_ETH_SQ_M_SHAPER)
    for _ in range(3):
        eth.send(frame_to(PEER_MAC, 986))
    moved(adapter)
    for frames in (1, 2):
        adapter.m.clock_step(8 * 10**6 - 1000)
        assert adapter.stat("ETH_TX_PACKETS") == frames
        adapter.m.clock_step(1000)
        assert adapter.stat("ETH_TX_PACKETS") == frames + 1


def test_requester_in_flight(rts, moved):
    """Two messages are in flight: the ACK arrives at the other QEMU."""
    rts.mr.fill(b"x" * 100)
    for wr_id in (1, 2):
        rts.qp.post_send(rts.sge(100), wr_id=wr_id)
        assert rts.adapter.m.receive_frame()
    moved(rts.adapter)
    assert rts.cq.peek() is None
    rts.adapter.m.send_frame(ack(rts.qp.num, RTS_PSN + 1))
    assert [rts.cq.take().wr_id for _ in range(2)] == [1, 2]
    rts.qp.post_send(rts.sge(10), wr_id=3)
    assert roce(rts.adapter.m)[BTH].psn == RTS_PSN + 2


def test_timer(rts, moved):
    """No response: the other QEMU retransmits after the timeout."""
    rts.mr.fill(b"y" * 3000)
    rts.qp.post_send(rts.sge(3000))
    before = [rts.adapter.m.receive_frame() for _ in range(3)]
    moved(rts.adapter)
    assert rts.qp.query().timeouts == 0
    rts.adapter.m.clock_step((4096 << 14) + 1)
    again = [roce(rts.adapter.m)[BTH].psn for _ in before]
    assert again == [RTS_PSN, RTS_PSN + 1, RTS_PSN + 2]
    assert rts.qp.query().timeouts == 1


def test_responder_in_a_message(rts, moved):
    """The first half of a message before the move, the second after it."""
    data = bytes(range(256)) * 6
    rts.qp.post_recv(rts.sge(len(data)), wr_id=7)
    rts.adapter.m.send_frame(packet(rts.qp.num, FIRST, RTR_PSN, data[:1024]))
    until(lambda: rts.qp.query().exp_psn == RTR_PSN + 1, "the first half is not there")
    moved(rts.adapter)
    moved(rts.adapter)          # and once more
    rts.adapter.m.send_frame(
        packet(rts.qp.num, LAST, RTR_PSN + 1, data[1024:], ackreq=1))
    cqe = rts.cq.take()
    assert (cqe.status, cqe.wr_id, cqe.byte_len) == (C.QHCA_WC_SUCCESS, 7, len(data))
    assert rts.mr.data(len(data)) == data
    assert roce(rts.adapter.m)[BTH].psn == RTR_PSN + 1


def test_interrupts(rts, moved):
    """An armed CQ reports its completion by MSI-X after the move."""
    rts.cq.arm()
    rts.qp.post_send(rts.sge(4))
    assert rts.adapter.m.receive_frame()
    moved(rts.adapter)
    assert not rts.adapter.interrupted(1)
    rts.adapter.m.send_frame(ack(rts.qp.num, RTS_PSN))
    until(lambda: rts.adapter.interrupted(1), "no interrupt")
    assert rts.eq.take().type == C.QHCA_EV_CQ


def test_events_wait(adapter, moved):
    """A full EQ with a record: pending events are written after the move, and interrupt."""
    eq = EQ(adapter, shift=1, record=True)
    for up in (False, True, False):
        adapter.m.qmp("set_link", name="wire", up=up)
    assert adapter.interrupted(1)
    assert eq.notify()
    moved(adapter)
    assert [eq.take().type for _ in range(2)] == [C.QHCA_EV_PORT] * 2
    assert eq.peek() is None
    eq.store()
    # The link is up at the destination, which the event says that had to wait.
    assert eq.take().type == C.QHCA_EV_PORT
    assert adapter.interrupted(1)
    assert not eq.notify()


def refusal(path, device=DEVICE):
    """QEMU's error for the state at @path, or None if it accepted it."""
    machine = Machine("-incoming", "defer", device=device)
    loaded = False
    try:
        machine.qmp("migrate-incoming", uri=f"file:{path}")
        until(lambda: machine.qmp("query-status")["status"] != "inmigrate",
              "the state is neither taken nor refused")
        loaded = True
    except (EOFError, OSError):
        machine.process.wait(60)
    if loaded:
        # An accepted state must work.
        try:
            machine.qmp("cont")
            machine.clock_step(1000000000)
            machine.qmp("qhca-inspect", object="qp")
        finally:
            machine.close()
        return None
    machine.close(check=False)
    assert machine.process.returncode == 1, machine.output
    return machine.output


@REFUSED
def test_another_configuration(rts, tmp_path):
    """Differing limits are reported."""
    save(rts.adapter.m, tmp_path / "state")
    said = refusal(tmp_path / "state", DEVICE + ",max-qp=64")
    assert "other limits of objects" in said


@REFUSED
@pytest.mark.parametrize("section,at,value,said", [
    (b"Sregs\0\0\0", 9 + 5 + 5 + 1, 0xFF, "a register has unknown bits"),
    (b"Scq\0\0\0\0\0", 9 + 1, 9, "cq: the section has version 9, and this release reads"),
    (b"Scq\0\0\0\0\0", 9 + 5 + 1, 0, "the section ends too early"),
    (b"Send\0\0\0\0", 1, 0x58, "end: an unknown section comes here: Xnd, version 1"),
])
def test_spoilt(rts, tmp_path, section, at, value, said):
    """The error in a state is reported."""
    path = tmp_path / "state"
    save(rts.adapter.m, path)
    state = bytearray(path.read_bytes())
    start = state.index(section, state.index(ENGINE))
    state[start + at] = value
    path.write_bytes(state)
    assert said in refusal(path)


@pytest.mark.observe
def test_spoilt_at_random(rts, tmp_path):
    """Changing any byte of the state makes QEMU at worst exit(1)."""
    rts.mr.fill(b"z" * 2000)
    rts.qp.post_recv(rts.sge(64))
    rts.qp.post_send(rts.sge(2000))
    path = tmp_path / "state"
    save(rts.adapter.m, path)
    state = path.read_bytes()
    start = state.index(ENGINE)
    length = int.from_bytes(state[start - 8:start], "big")
    dice = random.Random(1)
    for _ in range(30):
        bad = bytearray(state)
        for _ in range(dice.randint(1, 3)):
            bad[start - 8 + dice.randrange(length + 8)] = dice.randrange(256)
        path.write_bytes(bad)
        refusal(path)

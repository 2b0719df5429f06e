# SPDX-License-Identifier: GPL-2.0-or-later
"""
Reliable connection over the real wire, packet by packet, checked with scapy's decoder and ICRC
instead of the engine's.
"""

import pytest
from adapter import direct
from layout import C, struct
from rdma import (
    ACKNOWLEDGE, AETH, BTH, IP, MR, OUR_IP, OUR_MAC, PEER_IP, PEER_MAC, PEER_QPN, SEND_ONLY,
    UDP, Ether, Setup, ack, packet, parse,
)

REFUSED = pytest.mark.once("what is refused is decided by the engine, where nothing is observed")

RTS_PSN, RTR_PSN = 200, 100


@pytest.fixture
def rts(adapter):
    return Setup(adapter, "rts")


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 61, 1024])
def test_send(rts, length):
    """One SEND: headers, payload, pad, ICRC; the ACK completes it."""
    data = bytes(i * 7 & 0xFF for i in range(length))
    rts.mr.fill(data)
    rts.qp.post_send(rts.sge(length), wr_id=0x1122334455667788)
    frame = parse(rts.adapter.m.receive_frame())
    assert (frame[Ether].src, frame[Ether].dst) == (OUR_MAC, PEER_MAC)
    assert (frame[IP].src, frame[IP].dst) == (OUR_IP, PEER_IP)
    assert frame[UDP].sport >= 0xC000
    bth = frame[BTH]
    assert (bth.opcode, bth.dqpn, bth.psn) == (SEND_ONLY, PEER_QPN, RTS_PSN)
    assert (bth.pkey, bth.ackreq, bth.padcount) == (0xFFFF, 1, -length % 4)
    end = 14 + 28 + 12 + length
    assert bytes(frame)[14 + 28 + 12:end] == data
    assert rts.cq.peek() is None
    rts.adapter.m.send_frame(ack(rts.qp.num, RTS_PSN))
    cqe = rts.cq.take()
    assert (cqe.status, cqe.opcode) == (C.QHCA_WC_SUCCESS, C.QHCA_CQE_OP_SEND)
    assert (cqe.wr_id, cqe.qpn, cqe.wqe_index) == (0x1122334455667788, rts.qp.num, 0)


def test_segments(rts):
    """3000 bytes at MTU 1024: FIRST, MIDDLE, LAST."""
    data = bytes(i % 251 for i in range(3000))
    rts.mr.fill(data)
    rts.qp.post_send(rts.sge(3000))
    got = b""
    for i, opcode in enumerate((0x00, 0x01, 0x02)):
        raw = rts.adapter.m.receive_frame()
        frame = parse(raw)
        assert (frame[BTH].opcode, frame[BTH].psn) == (opcode, RTS_PSN + i)
        got += raw[54:14 + frame[IP].len - 4]
    assert got == data
    rts.adapter.m.send_frame(ack(rts.qp.num, RTS_PSN + 2))
    assert rts.cq.take().status == C.QHCA_WC_SUCCESS


def test_receive(adapter):
    """A SEND from the peer lands in the receive buffer and is acknowledged."""
    s = Setup(adapter, "rtr")
    s.qp.post_recv(s.sge(100, at=16), wr_id=77)
    adapter.m.send_frame(packet(s.qp.num, SEND_ONLY, RTR_PSN, b"hello, adapter",
                                ackreq=1, solicited=1))
    cqe = s.cq.take()
    assert (cqe.status, cqe.opcode) == (C.QHCA_WC_SUCCESS, C.QHCA_CQE_OP_RECV)
    assert (cqe.wr_id, cqe.byte_len) == (77, 14)
    assert s.mr.data(14, 16) == b"hello, adapter"
    assert s.mr.data(8, 30) == bytes(8), "nothing behind it"
    frame = parse(adapter.m.receive_frame())
    assert (frame[BTH].opcode, frame[BTH].dqpn) == (ACKNOWLEDGE, PEER_QPN)
    assert frame[BTH].psn == RTR_PSN
    assert frame[AETH].syndrome & 0x60 == 0 and frame[AETH].msn == 1


def test_events(adapter):
    """COMM_EST on the first packet in RTR; CQ event when armed; its interrupt."""
    s = Setup(adapter, "rtr")
    s.cq.arm()
    s.qp.post_recv(s.sge(100))
    adapter.m.send_frame(packet(s.qp.num, SEND_ONLY, RTR_PSN, b"x", ackreq=1))
    s.cq.take()
    events = {(e.type, e.obj) for e in (s.eq.take(), s.eq.take())}
    assert events == {(C.QHCA_EV_COMM_EST, s.qp.num), (C.QHCA_EV_CQ, s.cq.num)}
    assert adapter.interrupted(1)


@REFUSED
@pytest.mark.parametrize("corrupt", ["icrc", "payload", "short", "version", "opcode",
                                     "qpn", "source", "udp-length", "ip-length"])
def test_bad_packet_is_dropped(adapter, corrupt):
    """A corrupted packet changes nothing; the next valid one is accepted."""
    s = Setup(adapter, "rtr")
    s.qp.post_recv(s.sge(100), wr_id=1)
    good = packet(s.qp.num, SEND_ONLY, RTR_PSN, b"0123456789ab", ackreq=1)
    bad = bytearray(good)
    if corrupt == "icrc":
        bad[-1] ^= 1
    elif corrupt == "payload":
        bad[60] ^= 1
    elif corrupt == "short":
        del bad[50:]
    elif corrupt == "version":
        bad = packet(s.qp.num, SEND_ONLY, RTR_PSN, b"0123456789ab", version=3)
    elif corrupt == "opcode":
        bad = packet(s.qp.num, 0x1F, RTR_PSN, b"0123456789ab")
    elif corrupt == "qpn":
        bad = packet(0xABCDE, SEND_ONLY, RTR_PSN, b"0123456789ab")
    elif corrupt == "source":
        bad[29] ^= 1
    elif corrupt == "udp-length":
        bad[39] += 1
    elif corrupt == "ip-length":
        bad[17] -= 1
    adapter.m.send_frame(bytes(bad))
    assert adapter.m.no_frame()
    assert s.cq.peek() is None
    assert s.mr.data(12) == bytes(12)
    adapter.m.send_frame(good)
    assert s.cq.take().wr_id == 1


@pytest.mark.parametrize("what", ["key", "bounds", "pd"])
def test_local_errors(rts, what):
    """A bad SGE: local protection error at the requester, nothing sent."""
    if what == "key":
        sge = (rts.mr.iova, 8, rts.mr.key ^ 1)
    elif what == "bounds":
        sge = (rts.mr.iova + 4090, 8, rts.mr.key)
    else:
        pd = rts.adapter.command(C.QHCA_CMD_ALLOC_PD).obj
        other = MR(rts.adapter, pd)
        sge = (other.iova, 8, other.key)
    rts.qp.post_send(sge, wr_id=5)
    cqe = rts.cq.take()
    assert (cqe.status, cqe.wr_id) == (C.QHCA_WC_LOC_PROT_ERR, 5)
    assert cqe.syndrome == {"key": C.QHCA_SYN_KEY_INVALID, "pd": C.QHCA_SYN_KEY_PD,
                            "bounds": C.QHCA_SYN_KEY_BOUNDS}[what]
    assert rts.adapter.m.no_frame()
    assert rts.qp.query().state == C.QHCA_QPS_ERR


@REFUSED
@pytest.mark.parametrize("opcode", [0x03, 0x3F, 0x40, 0xFF])
def test_bad_opcode(rts, opcode):
    rts.qp.post_send(rts.sge(8), opcode=opcode)
    cqe = rts.cq.take()
    assert cqe.status == C.QHCA_WC_LOC_QP_OP_ERR
    assert cqe.syndrome == C.QHCA_SYN_WQE_OPCODE


def test_too_many_sges(rts):
    rts.qp.write_send(rts.sge(8))
    rts.adapter.m.store(rts.qp.sq + struct("qhca_wqe_ctrl").num_sge.offset, 0xFFFF, 2)
    rts.qp.ring_sq()
    cqe = rts.cq.take()
    assert cqe.status == C.QHCA_WC_LOC_QP_OP_ERR
    assert cqe.syndrome == C.QHCA_SYN_WQE_SGE


@REFUSED
@pytest.mark.parametrize("addr", [0xFFFFFFFFFFFFFC00, 0x800000000000, 0xC0000000,
                                  0xC4000000])
def test_ring_not_in_memory(adapter, addr):
    """A send queue in unmapped memory, or in the device's BARs: only the QP fails."""
    s = Setup(adapter, "rts", sq=direct(addr, 1024))
    adapter.ring(C.QHCA_DB_SQ, s.qp.num, 1)
    cqe = s.cq.take()
    assert (cqe.status, cqe.wqe_index) == (C.QHCA_WC_LOC_QP_OP_ERR, 0)
    qpc = s.qp.query()
    assert (qpc.state, qpc.syndrome) == (C.QHCA_QPS_ERR, C.QHCA_SYN_WQE_DMA)
    assert adapter.stat("DMA_ERRORS") >= 1


def test_invalid_table_entry(adapter):
    """The WQE's page has no valid entry in the table: counted, QP in error."""
    table = adapter.alloc(4096)
    flat = struct("qhca_buf")(addr=table, len=1024, entries=1, form=C.QHCA_BUF_FLAT,
                              hops=1, page_shift=12)
    s = Setup(adapter, "rts", sq=flat)
    adapter.ring(C.QHCA_DB_SQ, s.qp.num, 1)
    cqe = s.cq.take()
    assert cqe.status == C.QHCA_WC_LOC_QP_OP_ERR
    assert cqe.syndrome == s.qp.query().syndrome == C.QHCA_SYN_TABLE_INVALID
    assert adapter.stat("TABLE_ERRORS") == 1


def test_retransmission(rts):
    """
    No ACK: the packet goes out again after the QP's timeout, then after twice and
    four times that; then RETRY_EXC.
    """
    m = rts.adapter.m
    rts.qp.modify("STATE", state=C.QHCA_QPS_ERR)
    rts.qp.modify("STATE", state=C.QHCA_QPS_RESET)
    rts.qp.to_init()
    rts.qp.to_rtr()
    rts.qp.to_rts(psn=7, timeout=10, retry_cnt=2)     # 4.2 ms
    rts.qp.post_send(rts.sge(4), wr_id=9)
    first = m.receive_frame()
    for longer in (1, 2):
        m.clock_step(4_000_000 * longer)
        assert m.no_frame(), "too early"
        m.clock_step(300_000 * longer)
        again = m.receive_frame()
        assert parse(again)[BTH].psn == parse(first)[BTH].psn == 7
    m.clock_step(4 * 4_300_000)
    cqe = rts.cq.take()
    assert (cqe.status, cqe.wr_id) == (C.QHCA_WC_RETRY_EXC_ERR, 9)
    assert rts.adapter.stat("ROCE_RETRANSMITS") == 2


def test_receiver_not_ready(adapter):
    """No receive WQE: RNR NAK with the QP's timer code."""
    s = Setup(adapter, "rtr")
    adapter.m.send_frame(packet(s.qp.num, SEND_ONLY, RTR_PSN, b"abcd", ackreq=1))
    aeth = parse(adapter.m.receive_frame())[AETH]
    assert aeth.syndrome == 0x20 | 12
    assert adapter.stat("ROCE_RNR_NAK_TX") == 1


def test_backpressure(rts):
    """A blocked wire loses nothing: all frames arrive, in order."""
    m = rts.adapter.m
    data = bytes(4096)
    rts.mr.fill(data)
    rts.qp.modify("STATE", state=C.QHCA_QPS_ERR)
    rts.qp.modify("STATE", state=C.QHCA_QPS_RESET)
    rts.qp.to_init()
    rts.qp.to_rtr(mtu=1)
    rts.qp.to_rts(psn=0)
    for _ in range(16):                 # 16 x 16 packets; a socket holds fewer
        rts.qp.write_send(rts.sge(4096))
    rts.qp.ring_sq()
    psn = 0
    while psn < 256:
        bth = parse(m.receive_frame())[BTH]
        assert bth.psn == psn
        if bth.ackreq:
            m.send_frame(ack(rts.qp.num, psn))
        psn += 1
    for _ in range(16):
        assert rts.cq.take().status == C.QHCA_WC_SUCCESS
    assert rts.adapter.stat("ROCE_RETRANSMITS") == 0


def test_stopped_machine(rts):
    """While the machine is stopped nothing is sent; afterwards nothing is lost."""
    m = rts.adapter.m
    m.qmp("stop")
    rts.qp.post_send(rts.sge(4))
    assert m.no_frame()
    m.qmp("cont")
    assert parse(m.receive_frame())[BTH].psn == RTS_PSN

# SPDX-License-Identifier: GPL-2.0-or-later
"""Tag matching on the real wire, with handmade headers and packets."""

import struct as pack

import pytest
from adapter import CQ, direct
from layout import C, struct
from rdma import ACKNOWLEDGE, AETH, BTH, PEER_QPN, QP, SEND_ONLY, Setup, ack, packet, parse

pytestmark = pytest.mark.once("test_rc receives in both builds; the rest is the engine's")

RTS_PSN, RTR_PSN = 200, 100
READ_REQUEST, READ_RESPONSE_ONLY = 0x0C, 0x10
TAGS = 8


def headers(opcode: int, tag: int, ctx: int = 0, rvh: tuple | None = None) -> bytes:
    """struct qhca_tmh, and with @rvh (va, rkey, len) struct qhca_rvh."""
    data = pack.pack(">B3xIQ", opcode, ctx, tag)
    return data + (pack.pack(">QII", *rvh) if rvh else b"")


class TagSetup:
    """A TM SRQ with one connected QP."""

    def __init__(self, adapter):
        self.base = Setup(adapter, "reset")
        self.adapter, self.mr, pd = adapter, self.base.mr, self.base.pd
        self.cq = CQ(adapter, self.base.eq)
        self.ops, self.produced = adapter.alloc(16 << 7), 0
        self.wqes, self.index, self.dbrec = (adapter.alloc(n) for n in (16 << 6, 64, 64))
        srqc = struct("qhca_srqc")(
            buf=direct(self.wqes, 16 << 6), idx=direct(self.index, 64), dbrec=self.dbrec,
            pd=pd, shift=4, stride=6, flags=C.QHCA_SRQ_F_TM, cqn=self.cq.num,
            ops=direct(self.ops, 16 << 7), ops_shift=4, ops_stride=7, max_tags=TAGS)
        self.srqn = adapter.command(C.QHCA_CMD_CREATE_SRQ, data=srqc).obj
        qpc = struct("qhca_qpc")(
            type=C.QHCA_QPT_RC, pd=pd, flags=C.QHCA_QP_F_SRQ, srqn=self.srqn,
            send_cqn=self.base.cq.num, recv_cqn=self.base.cq.num)
        self.qp = QP.__new__(QP)
        self.qp.adapter = adapter
        self.qp.num = adapter.command(C.QHCA_CMD_CREATE_QP, data=qpc).obj
        self.qp.to_init()
        self.qp.to_rtr()
        self.qp.to_rts()
        self.psn = RTR_PSN

    def operation(self, opcode: int, sge: tuple | None = None, **fields) -> int:
        """Post one; returns the result the device wrote."""
        wqe = struct("qhca_tm_wqe")(opcode=opcode, num_sge=1 if sge else 0, **fields)
        at = self.ops + (self.produced % 16 << 7)
        self.adapter.m.write_mem(at, bytes(wqe) + (bytes(struct("qhca_sge")(*sge)) if sge else b""))
        self.produced += 1
        self.adapter.ring(C.QHCA_DB_TM, self.srqn, self.produced)
        return self.adapter.m.load(at + struct("qhca_tm_wqe").result.offset, 4)

    def add(self, handle: int, tag: int, at: int = 0, length: int = 256) -> None:
        assert self.operation(
            C.QHCA_WQE_TAG_ADD, (self.mr.iova + at, length, self.mr.key), handle=handle,
            tag=tag, mask=2**64 - 1, recv_wr_id=1000 + handle) == C.QHCA_TM_DONE

    def send(self, payload: bytes) -> int:
        """From the peer; returns the syndrome of the answer."""
        self.adapter.m.send_frame(packet(self.qp.num, SEND_ONLY, self.psn, payload, ackreq=1))
        frame = parse(self.adapter.m.receive_frame())
        assert (frame[BTH].opcode, frame[BTH].psn) == (ACKNOWLEDGE, self.psn)
        self.psn += 1
        return frame[AETH].syndrome

    def take(self):
        return struct("qhca_tm_cqe").from_buffer_copy(bytes(self.cq.take()))


@pytest.fixture
def tm(adapter):
    return TagSetup(adapter)


def test_feature(adapter):
    assert adapter.reg(C.QHCA_REG_FEATURES, 8) & C.QHCA_FEAT_TAG_MATCHING


def test_eager(tm):
    tm.add(3, 0x1122334455667788)
    assert tm.send(headers(C.QHCA_TMH_EAGER, 0x1122334455667788, 77) + b"eager data!!") == 0x1F
    cqe = tm.take()
    assert (cqe.status, cqe.opcode) == (C.QHCA_WC_SUCCESS, C.QHCA_CQE_OP_TM_RECV)
    assert cqe.flags == (
        C.QHCA_CQE_F_SRQN | C.QHCA_CQE_F_TM_MATCH | C.QHCA_CQE_F_TM_DATA_VALID)
    assert (cqe.wr_id, cqe.wqe_index, cqe.byte_len) == (1003, 3, 12)
    assert (cqe.srqn, cqe.qpn) == (tm.srqn, tm.qp.num)
    assert (cqe.app_ctx, cqe.tag) == (77, 0x1122334455667788)
    assert tm.mr.data(12) == b"eager data!!"


def test_nobody_wants_it(tm):
    """No entry, no receive WQE: RNR NAK."""
    tm.add(0, 5)
    assert tm.send(headers(C.QHCA_TMH_EAGER, 6)) & 0xE0 == 0x20


def test_rendezvous(tm):
    request = headers(C.QHCA_TMH_RNDV, 9, 1, (0xABCDEF0123456789, 0x4711, 64))
    tm.add(1, 9, at=128)
    m = tm.adapter.m
    m.send_frame(packet(tm.qp.num, SEND_ONLY, tm.psn, request, ackreq=1))
    seen = {}
    for _ in range(2):                  # the ACK and the READ, in any order
        raw = m.receive_frame()
        seen[parse(raw)[BTH].opcode] = raw
    assert set(seen) == {ACKNOWLEDGE, READ_REQUEST}
    assert seen[READ_REQUEST][54:70] == pack.pack(">QII", 0xABCDEF0123456789, 0x4711, 64)
    cqe = tm.take()
    assert cqe.flags == C.QHCA_CQE_F_SRQN | C.QHCA_CQE_F_TM_MATCH
    data = bytes(range(64))
    m.send_frame(packet(tm.qp.num, READ_RESPONSE_ONLY, RTS_PSN, bytes([0x1F, 0, 0, 1]) + data))
    cqe = tm.take()
    assert cqe.flags == C.QHCA_CQE_F_SRQN | C.QHCA_CQE_F_TM_DATA_VALID
    assert (cqe.wqe_index, cqe.byte_len, cqe.status) == (1, 64, C.QHCA_WC_SUCCESS)
    assert tm.mr.data(64, at=128) == data
    raw = m.receive_frame()
    frame = parse(raw)
    assert (frame[BTH].opcode, frame[BTH].psn, frame[BTH].dqpn) == (
        SEND_ONLY, RTS_PSN + 1, PEER_QPN)
    assert raw[54:86] == bytes([C.QHCA_TMH_FIN]) + request[1:]
    m.send_frame(ack(tm.qp.num, RTS_PSN + 1))


def test_operations(tm):
    """Results are in the ring at once; a handle is used once."""
    tm.add(0x10002, 1)
    assert tm.operation(C.QHCA_WQE_TAG_DEL, handle=2) == C.QHCA_TM_DONE | C.QHCA_SYN_TM_HANDLE
    assert tm.operation(C.QHCA_WQE_TAG_DEL, handle=0x10002) == C.QHCA_TM_DONE
    assert tm.operation(C.QHCA_WQE_TAG_SYNC, unexp=5, flags=C.QHCA_WQE_F_SIGNALED,
                        wr_id=6) == C.QHCA_TM_DONE
    cqe = tm.take()
    assert (cqe.opcode, cqe.wr_id) == (C.QHCA_CQE_OP_TM_SYNC, 6)
    assert cqe.flags == C.QHCA_CQE_F_SRQN | C.QHCA_CQE_F_TM_SYNC_REQ
    srqc = tm.adapter.query(C.QHCA_CMD_QUERY_SRQ, tm.srqn, "qhca_srqc")
    assert (srqc.tags, srqc.unexp_seen, srqc.unexp_told) == (0, 0, 5)
    assert (srqc.ops_head, srqc.ops_tail) == (4, 4)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Invalid doorbells: counted, ignored or an error of the QP, never of the adapter."""

import pytest
from adapter import BARS, CQ, EQ
from layout import C
from rdma import QP, Setup, parse


@pytest.fixture
def rts(adapter):
    return Setup(adapter, "rts")


def test_unknown_numbers(rts):
    a = rts.adapter
    for i, kind in enumerate((C.QHCA_DB_SQ, C.QHCA_DB_CQ_ARM, C.QHCA_DB_EQ,
                              C.QHCA_DB_RQ, C.QHCA_DB_ETH_SQ)):
        for num in (0xFFFFFF, 0x1234):
            a.ring(kind, num, 1)
        assert a.stat("DB_BAD_OBJECT") == 2 * (i + 1)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_wrong_size(rts, size):
    a = rts.adapter
    a.doorbell(C.QHCA_DB_SQ, rts.qp.num, size)
    assert a.stat("DB_BAD_ACCESS") == 1
    assert a.stat("DB_BAD_OBJECT") == 0
    assert rts.qp.query().state == C.QHCA_QPS_RTS


@pytest.mark.parametrize("offset", [1, 4, 7, 0x38, 0x800, 0xFF8])
def test_wrong_offset(rts, offset):
    a = rts.adapter
    a.doorbell(offset, rts.qp.num | 1 << 32)
    assert a.stat("DB_BAD_ACCESS") >= 1
    assert rts.qp.query().sq_head == 0


def test_page_of_another(adapter):
    """The page of another context cannot ring doorbells of this one."""
    uar1 = adapter.command(C.QHCA_CMD_ALLOC_UAR).obj
    uar2 = adapter.command(C.QHCA_CMD_ALLOC_UAR).obj
    s = Setup(adapter, "rts", uar=uar1)
    s.qp.write_send(s.sge(8))
    for page in (0, uar2):
        adapter.ring(C.QHCA_DB_SQ, s.qp.num, 1, page)
    adapter.ring(C.QHCA_DB_RQ, s.qp.num, 1, uar2)
    assert adapter.stat("DB_BAD_OWNER") == 3
    assert adapter.m.no_frame()
    s.qp.ring_sq()
    assert parse(adapter.m.receive_frame())


def test_user_pages_cannot_ring_kernel_doorbells(rts):
    a = rts.adapter
    uar = a.command(C.QHCA_CMD_ALLOC_UAR).obj
    a.ring(C.QHCA_DB_EQ, rts.eq.num | C.QHCA_DB_EQ_ARM, 0, uar)
    a.ring(C.QHCA_DB_ETH_SQ, 0, 1, uar)
    stats = a.stats()
    assert (stats[C.QHCA_STAT_DB_BAD_OWNER] + stats[C.QHCA_STAT_DB_BAD_ACCESS]
            + stats[C.QHCA_STAT_DB_BAD_OBJECT]) == 2


def test_page_not_allocated(rts):
    rts.qp.write_send(rts.sge(8))
    rts.adapter.ring(C.QHCA_DB_SQ, rts.qp.num, 1, uar=500)
    assert rts.adapter.stat("DB_BAD_OWNER") == 1
    assert rts.adapter.m.no_frame()


@pytest.mark.parametrize("index", [17, 1000, 0x80000000, 0xFFFFFFEF])
def test_index_beyond_the_ring(rts, index):
    """The QP fails, with an event; its neighbour continues."""
    a = rts.adapter
    other = QP(a, rts.cq, rts.pd)
    other.to_init()
    other.to_rtr()
    other.to_rts()
    a.ring(C.QHCA_DB_SQ, rts.qp.num, index)
    assert a.stat("DB_BAD_INDEX") == 1
    qpc = rts.qp.query()
    assert (qpc.state, qpc.syndrome) == (C.QHCA_QPS_ERR, C.QHCA_SYN_DB_INDEX)
    event = rts.eq.take()
    assert (event.type, event.obj) == (C.QHCA_EV_QP_FATAL, rts.qp.num)
    assert a.interrupted(1)
    other.post_send(rts.sge(8))
    assert parse(a.m.receive_frame())


def test_index_overtaken(rts):
    """A late doorbell of a slow CPU, whose WQEs are completed already: no effect."""
    a = rts.adapter
    for index in (0xFFFFFFFF, 0xFFFFFFF0):
        a.ring(C.QHCA_DB_SQ, rts.qp.num, index)
    assert a.stat("DB_BAD_INDEX") == 0
    assert rts.qp.query().state == C.QHCA_QPS_RTS
    rts.qp.post_send(rts.sge(8))
    assert a.m.receive_frame()


def test_same_index_again(rts):
    rts.qp.post_send(rts.sge(8))
    assert rts.adapter.m.receive_frame()
    rts.qp.ring_sq()
    assert rts.adapter.m.no_frame()
    assert rts.qp.query().state == C.QHCA_QPS_RTS


@pytest.mark.parametrize("state", ["reset", "init", "rtr"])
def test_not_ready_to_send(adapter, state):
    s = Setup(adapter, state)
    s.qp.post_send(s.sge(8))
    assert adapter.stat("DB_BAD_STATE") == 1
    assert adapter.m.no_frame()
    assert s.qp.query().sq_head == 0


def test_not_enabled(bare):
    """Doorbells of an adapter that is not enabled do nothing."""
    for offset in range(0, 0x40, 8):
        bare.doorbell(offset, 0xFFFFFFFFFFFFFFFF)
    bare.enable_msix()
    bare.start_admin()
    assert bare.command(C.QHCA_CMD_NOP)


def test_reads_give_zero(rts):
    for size in (1, 2, 4, 8):
        assert rts.adapter.m.load(BARS[C.QHCA_BAR_DB], size) == 0


def test_stride(bare):
    """With 64 KiB stride UAR 1 lies at 64 KiB."""
    bare.reg_write(C.QHCA_REG_DB_SHIFT, 16)
    bare.enable_msix()
    bare.start_admin()
    uar = bare.command(C.QHCA_CMD_ALLOC_UAR).obj
    cq = CQ(bare, EQ(bare), uar=uar)
    bare.doorbell((uar << 16) + C.QHCA_DB_CQ_ARM, cq.num)
    cqc = bare.query(C.QHCA_CMD_QUERY_CQ, cq.num, "qhca_cqc")
    assert cqc.arm == C.QHCA_ARM_ANY
    other = bare.command(C.QHCA_CMD_ALLOC_UAR).obj
    bare.doorbell((other << 16) + C.QHCA_DB_CQ_ARM, cq.num)
    assert bare.stat("DB_BAD_OWNER") == 1
    bare.doorbell((uar << 12) + C.QHCA_DB_CQ_ARM, cq.num)
    assert bare.stat("DB_BAD_ACCESS") == 1, "inside page 0, but no doorbell there"

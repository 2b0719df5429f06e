# SPDX-License-Identifier: GPL-2.0-or-later
"""EQs with a doorbell record: interrupts without a doorbell, and a full EQ."""

import pytest
from adapter import EQ
from layout import C


@pytest.fixture
def link(adapter):
    """A function that changes the link: an event on the asynchronous EQ."""
    up = True

    def change():
        nonlocal up
        up = not up
        adapter.m.qmp("set_link", name="wire", up=up)

    return change


def test_interrupts(adapter, link):
    """Software that has caught up is interrupted; no doorbell is needed."""
    assert adapter.reg(C.QHCA_REG_FEATURES, 8) & C.QHCA_FEAT_EQ_RECORD
    eq = EQ(adapter, record=True)
    for _ in range(3):
        link()
        assert adapter.interrupted(1)
        link()
        assert not adapter.interrupted(1), "software has yet to see the first"
        for _ in range(2):
            assert eq.take().type == C.QHCA_EV_PORT
        assert eq.peek() is None
        eq.store()
    assert adapter.stat("DOORBELLS") == 0
    assert adapter.stat("EQES") == 6
    assert adapter.stat("INTERRUPTS") == 3
    eqc = adapter.query(C.QHCA_CMD_QUERY_EQ, eq.num, "qhca_eqc")
    assert (eqc.flags, eqc.dbrec) == (C.QHCA_EQ_F_RECORD, eq.dbrec)
    assert (eqc.prod, eqc.cons, eqc.armed) == (6, 4, 0)


def test_ring_with_entries_left(adapter, link):
    """Software that stops early asks for another interrupt; the record counts."""
    eq = EQ(adapter, record=True)
    link()
    link()
    assert adapter.interrupted(1)
    eq.take()
    eq.store()
    adapter.ring(C.QHCA_DB_EQ, eq.num | C.QHCA_DB_EQ_ARM, 0xBAD)
    assert adapter.interrupted(1)
    eq.take()
    eq.store()
    adapter.ring(C.QHCA_DB_EQ, eq.num | C.QHCA_DB_EQ_ARM, 0xBAD)
    assert not adapter.interrupted(1)
    assert adapter.stat("DB_BAD_INDEX") == 0
    link()
    assert adapter.interrupted(1)


def test_full(adapter, link):
    """The device requests a doorbell while an event is pending, and then no longer."""
    eq = EQ(adapter, shift=1, record=True)
    for _ in range(2):
        link()
    assert not eq.notify(), "it is full, but nothing waits"
    link()
    assert eq.notify()
    assert adapter.interrupted(1)
    eq.take()
    assert eq.peek() and adapter.stat("EQES") == 2
    eq.store()
    assert not eq.notify()
    assert not adapter.interrupted(1), "an entry is left"
    assert [eq.take().type for _ in range(2)] == [C.QHCA_EV_PORT] * 2
    eq.store()
    assert adapter.stat("DOORBELLS") == 1
    link()
    assert adapter.interrupted(1)


@pytest.mark.parametrize("index", [2, 0x80000000, 0xFFFFFFFF])
def test_bad_index(adapter, link, index):
    """An impossible consumer index is counted, and changes nothing."""
    eq = EQ(adapter, record=True)
    adapter.m.store(eq.dbrec, index, 4)
    link()
    assert adapter.stat("DB_BAD_INDEX") == 1
    adapter.m.store(eq.dbrec, 0, 4)
    eq.take()
    eq.store()
    adapter.interrupted(1)
    link()
    assert adapter.interrupted(1)
    assert adapter.stat("DB_BAD_INDEX") == 1


def test_no_memory(adapter, link):
    """A record in unmapped memory stops the adapter, like a ring in unmapped memory."""
    EQ(adapter, dbrec=1 << 40)
    assert adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_READY
    link()
    status = adapter.reg(C.QHCA_REG_STATUS)
    assert status & C.QHCA_STATUS_FATAL
    assert ((status & C.QHCA_STATUS_FATAL_MASK) >> C.QHCA_STATUS_FATAL_SHIFT
            == C.QHCA_FATAL_EQ)
    assert not adapter.interrupted(1)

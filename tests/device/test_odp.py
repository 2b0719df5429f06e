# SPDX-License-Identifier: GPL-2.0-or-later
"""On-demand paging over the real bus: faults, responses, and removed pages."""

import pytest
from adapter import PAGE
from layout import C, struct
from rdma import ACKNOWLEDGE, AETH, BTH, SEND_ONLY, Setup, ack, packet, parse

IOVA = 0x10_0000_0000
RTS_PSN, RTR_PSN = 200, 100
SEND, RECV = C.QHCA_PAGE_FAULT_SEND, C.QHCA_PAGE_FAULT_RECV


class Paged:
    """A QP that may send, and an MR of 8 pages, all missing."""

    def __init__(self, adapter):
        self.s = Setup(adapter, "rts")
        self.adapter, self.m, self.qp = adapter, adapter.m, self.s.qp
        self.table = adapter.alloc(PAGE)
        buf = struct("qhca_buf")(addr=self.table, len=8 * PAGE, entries=8,
                                 form=C.QHCA_BUF_FLAT, hops=1, page_shift=12)
        mpt = struct("qhca_mpt")(buf=buf, iova=IOVA, len=8 * PAGE, key=0x77, pd=self.s.pd,
                                 access=C.QHCA_ACCESS_LOCAL_WRITE, flags=C.QHCA_MR_F_ODP)
        self.key = adapter.command(C.QHCA_CMD_CREATE_MR, data=mpt).obj

    def set(self, page: int, addr: int, flags: int = 0) -> None:
        self.m.store(self.table + 8 * page, addr and addr | C.QHCA_BTE_VALID | flags, 8)

    def take_away(self, page: int) -> None:
        self.set(page, 0)
        self.adapter.ring(C.QHCA_DB_MR_SYNC, self.key >> C.QHCA_KEY_INDEX_SHIFT, 0)
        self.adapter.reg(C.QHCA_REG_STATUS)

    def fault(self, side: int):
        """The event, and what the QP waits for; nothing else waits."""
        event = self.s.eq.take()
        assert (event.type, event.obj) == (C.QHCA_EV_PAGE_FAULT, self.qp.num)
        kind = struct("qhca_page_fault")
        size = len(bytes(kind()))
        self.adapter.command(C.QHCA_CMD_QUERY_PAGE_FAULT, self.qp.num, out=size * C.QHCA_PAGE_FAULT_SIDES)
        out = self.m.read_mem(self.adapter.scratch + PAGE, size * C.QHCA_PAGE_FAULT_SIDES)
        faults = [kind.from_buffer_copy(out, i * size) for i in range(C.QHCA_PAGE_FAULT_SIDES)]
        assert [i for i, f in enumerate(faults) if f.flags] == [side]
        assert faults[side].key == self.key
        return faults[side]

    def resume(self, side: int, token: int, failed: bool = False):
        arg = side | token << C.QHCA_RESUME_TOKEN_SHIFT | (C.QHCA_RESUME_FAILED if failed else 0)
        self.adapter.command(C.QHCA_CMD_RESUME_PAGE_FAULT, self.qp.num, arg=arg)


@pytest.fixture
def paged(adapter):
    return Paged(adapter)


def test_send(paged):
    """The packet is sent when its page is present, and never reads a removed one."""
    p, m = paged, paged.m
    pages = [p.adapter.alloc(PAGE) for _ in range(2)]
    for i, page in enumerate(pages):
        m.write_mem(page, bytes([i + 1]) * 64)
    for i, page in enumerate(pages):
        p.qp.post_send((IOVA + PAGE, 64, p.key), wr_id=i)
        fault = p.fault(SEND)
        assert (fault.addr, fault.len, fault.flags) == (IOVA + PAGE, 64, C.QHCA_PAGE_FAULT_VALID)
        assert p.qp.query().req_state == C.QHCA_REQ_WAIT_PAGE
        assert m.no_frame()
        p.set(1, page)
        p.resume(SEND, fault.token)
        frame = m.receive_frame()
        assert frame[54:54 + 64] == bytes([i + 1]) * 64
        m.send_frame(ack(p.qp.num, RTS_PSN + i))
        assert p.s.cq.take().status == C.QHCA_WC_SUCCESS
        p.take_away(1)
    assert p.adapter.stat("PAGE_FAULTS") == 2
    assert p.adapter.stat("TABLE_ERRORS") == 0


def test_receive(paged):
    """A message waits for a page that may be written, and is acknowledged then."""
    p, m = paged, paged.m
    page = p.adapter.alloc(PAGE)
    p.set(2, page)                      # to read only
    p.qp.post_recv((IOVA + 2 * PAGE + 8, 500, p.key), wr_id=9)
    m.send_frame(packet(p.qp.num, SEND_ONLY, RTR_PSN, b"a page too late", ackreq=1))
    fault = p.fault(RECV)
    assert (fault.addr, fault.len) == (IOVA + 2 * PAGE + 8, 15)
    assert fault.flags == C.QHCA_PAGE_FAULT_VALID | C.QHCA_PAGE_FAULT_WRITE
    assert m.no_frame()
    p.set(2, page, C.QHCA_BTE_WRITE)
    p.resume(RECV, fault.token)
    cqe = p.s.cq.take()
    assert (cqe.status, cqe.wr_id, cqe.byte_len) == (C.QHCA_WC_SUCCESS, 9, 15)
    assert m.read_mem(page + 8, 15) == b"a page too late"
    frame = parse(m.receive_frame())
    assert (frame[BTH].opcode, frame[BTH].psn) == (ACKNOWLEDGE, RTR_PSN)
    assert frame[AETH].syndrome & 0x60 == 0


def test_no_page(paged):
    """Software has no such page: the error of a key without the right."""
    p = paged
    p.qp.post_send((IOVA, 64, p.key), wr_id=3)
    fault = p.fault(SEND)
    p.resume(SEND, fault.token, failed=True)
    cqe = p.s.cq.take()
    assert (cqe.status, cqe.syndrome) == (C.QHCA_WC_LOC_PROT_ERR, C.QHCA_SYN_PAGE_FAULT)
    assert p.m.no_frame()


def test_reset_ends_the_waiting(paged):
    """No page fault is left after a reset of the device."""
    p = paged
    p.qp.post_send((IOVA, 64, p.key))
    p.fault(SEND)
    p.adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    p.adapter.start()
    again = Paged(p.adapter)
    again.qp.post_send((IOVA, 64, again.key))
    fault = again.fault(SEND)
    again.set(0, again.adapter.alloc(PAGE))
    again.resume(SEND, fault.token)
    assert parse(again.m.receive_frame())[BTH].opcode == SEND_ONLY

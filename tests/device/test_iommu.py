# SPDX-License-Identifier: GPL-2.0-or-later
"""
With a vIOMMU (Intel VT-d): the adapter can access only what is mapped for it; a fault is an
error code, not a crash.
"""

import pytest
from adapter import Adapter
from conftest import DEVICE
from layout import C
from machine import Machine, until
from rdma import AETH, QP, SEND_ONLY, Setup, ack, packet, parse

pytestmark = pytest.mark.once("the bus is the same in both builds")

DMAR = 0xFED90000
GCMD, GSTS, RTADDR, CCMD, IOTLB, FSTS = 0x18, 0x1C, 0x20, 0x28, 0x108, 0x34
TE, SRTP = 1 << 31, 1 << 30
SHIFT = 0x40000000          # IOVA = physical address + SHIFT


class Iommu:
    """Legacy-mode tables with 4 KiB pages for one device: IOVA = physical + shift."""

    def __init__(self, m: Machine, devfn: int, start: int, size: int, shift: int):
        self.m = m
        at = 0x8000000
        m.command("memset", hex(at), 0x40000, "0x0")
        root, context, l3, l2 = at, at + 0x1000, at + 0x2000, at + 0x3000
        self.leaves = at + 0x4000
        m.store(root, context | 1, 8)                       # bus 0, present
        m.store(context + 16 * devfn, l3 | 1, 8)            # second level
        m.store(context + 16 * devfn + 8, 1 << 8 | 1, 8)    # domain 1, 39 bits
        m.store(l3 + 8 * ((start + shift) >> 30), l2 | 3, 8)
        for i, block in enumerate(range(start, start + size, 1 << 21)):
            leaf = self.leaves + 0x1000 * i
            m.store(l2 + 8 * ((block + shift) >> 21 & 511), leaf | 3, 8)
            table = b"".join((block + 4096 * p | 3).to_bytes(8, "little")
                             for p in range(512))
            m.write_mem(leaf, table)
        self.start = start
        m.store(DMAR + RTADDR, root, 8)
        m.store(DMAR + GCMD, SRTP, 4)
        self.flush()
        m.store(DMAR + GCMD, TE, 4)
        until(lambda: m.load(DMAR + GSTS, 4) & TE, "translation on")

    def flush(self) -> None:
        self.m.store(DMAR + CCMD, 1 << 63 | 1 << 61, 8)
        self.m.store(DMAR + IOTLB, 1 << 63 | 1 << 60, 8)

    def entry(self, address: int, value: int) -> None:
        """Set the page table entry of physical page @address."""
        self.m.store(self.leaves + 8 * ((address - self.start) >> 12), value, 8)
        self.flush()

    def unmap(self, address: int) -> None:
        self.entry(address, 0)

    def faulted(self) -> bool:
        return bool(self.m.load(DMAR + FSTS, 4) & 2)


class Translated(Adapter):
    """An adapter that is given IOVAs; the test itself uses physical addresses."""

    def submit(self, **fields) -> None:
        for name in ("in_addr", "out_addr"):
            if fields.get(name):
                fields[name] += SHIFT
        super().submit(**fields)

    def reg_write(self, offset, value, size=4):
        if offset in (C.QHCA_REG_ASQ_BASE, C.QHCA_REG_ACQ_BASE):
            value += SHIFT
        super().reg_write(offset, value, size)


@pytest.fixture
def adapter():
    with Machine("-device", "intel-iommu,intremap=off", device=DEVICE) as m:
        adapter = Translated(m)
        adapter.iommu = Iommu(m, 4 << 3, 0x1000000, 0x1000000, SHIFT)
        yield adapter


def test_command(adapter):
    adapter.enable_pci()
    adapter.start_admin()
    port = adapter.query(C.QHCA_CMD_QUERY_PORT, 0, "qhca_port")
    assert port.max_mtu == 9216
    assert not adapter.iommu.faulted()


def test_unmapped_ring(adapter):
    """The admin ring is not mapped: fatal with the reason; then it recovers."""
    adapter.enable_pci()
    adapter.start_admin()
    adapter.iommu.unmap(adapter.asq)
    adapter.submit(opcode=C.QHCA_CMD_NOP)
    adapter.ring_admin()
    status = adapter.reg(C.QHCA_REG_STATUS)
    assert status >> C.QHCA_STATUS_FATAL_SHIFT == C.QHCA_FATAL_AQ_DMA
    assert adapter.iommu.faulted()
    Adapter.reg_write(adapter, C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.start_admin()
    adapter.command(C.QHCA_CMD_NOP)


def test_unmapped_buffers(adapter):
    adapter.enable_pci()
    adapter.start_admin()
    adapter.iommu.unmap(adapter.scratch + 4096)
    cqe = adapter.try_command(C.QHCA_CMD_QUERY_PORT, out=64)
    assert cqe.status == C.QHCA_ST_DMA_ERROR
    adapter.iommu.unmap(adapter.scratch)
    assert adapter.try_command(C.QHCA_CMD_SET_GID,
                               data=bytes(64)).status == C.QHCA_ST_DMA_ERROR


def test_read_only_mapping(adapter):
    """Read-only mappings are not written."""
    adapter.enable_pci()
    adapter.start_admin()
    page = adapter.scratch + 4096
    adapter.iommu.entry(page, page | 1)
    assert adapter.try_command(C.QHCA_CMD_QUERY_PORT,
                               out=64).status == C.QHCA_ST_DMA_ERROR
    assert adapter.m.read_mem(page, 64) == bytes(64)


@pytest.fixture
def setup():
    """A QP in RTS; IOVAs equal physical addresses, so that all tools work."""
    with Machine("-device", "intel-iommu,intremap=off", device=DEVICE) as m:
        adapter = Adapter(m)
        adapter.iommu = Iommu(m, 4 << 3, 0x1000000, 0x1000000, 0)
        adapter.start()
        yield Setup(adapter, "rts")


def test_send(setup):
    setup.mr.fill(b"through the IOMMU")
    setup.qp.post_send(setup.sge(17))
    raw = setup.adapter.m.receive_frame()
    assert parse(raw) and b"through the IOMMU" in raw
    setup.adapter.m.send_frame(ack(setup.qp.num, 200))
    assert setup.cq.take().status == C.QHCA_WC_SUCCESS
    assert not setup.adapter.iommu.faulted()


def test_unmapped_data(setup):
    """A page of an MR is unmapped while in use: this QP fails, the adapter continues."""
    other = QP(setup.adapter, setup.cq, setup.pd)
    setup.adapter.iommu.unmap(setup.mr.addr)
    setup.qp.post_send(setup.sge(8), wr_id=3)
    cqe = setup.cq.take()
    assert cqe.status != C.QHCA_WC_SUCCESS and cqe.wr_id == 3
    assert cqe.syndrome == C.QHCA_SYN_DATA_DMA
    assert setup.adapter.iommu.faulted()
    setup.adapter.iommu.entry(setup.mr.addr, setup.mr.addr | 3)
    for step in (other.to_init, other.to_rtr, other.to_rts):
        step()
    other.post_send(setup.sge(8))
    assert parse(setup.adapter.m.receive_frame())


def test_unmapped_receive_buffer(setup):
    setup.qp.post_recv(setup.sge(64), wr_id=4)
    setup.adapter.iommu.unmap(setup.mr.addr)
    setup.adapter.m.send_frame(packet(setup.qp.num, SEND_ONLY, 100, b"abc", ackreq=1))
    cqe = setup.cq.take()
    assert (cqe.status, cqe.wr_id) == (C.QHCA_WC_LOC_PROT_ERR, 4)
    assert cqe.syndrome == C.QHCA_SYN_DATA_DMA
    assert parse(setup.adapter.m.receive_frame())[AETH].syndrome == 0x63


@pytest.mark.parametrize("ring", ["cq", "eq"])
def test_unmapped_rings(setup, ring):
    """Completions or events cannot be written: an error state, no crash."""
    setup.adapter.iommu.unmap(getattr(setup, ring).addr)
    setup.cq.arm()
    setup.qp.post_send(setup.sge(8))
    assert setup.adapter.m.receive_frame()
    setup.adapter.m.send_frame(ack(setup.qp.num, 200))
    if ring == "cq":
        event = setup.eq.take()
        assert (event.type, event.obj) == (C.QHCA_EV_CQ_ERR, setup.cq.num)
    else:
        status = until(lambda: setup.adapter.reg(C.QHCA_REG_STATUS)
                       & C.QHCA_STATUS_FATAL_MASK, "the fatal state")
        assert status >> C.QHCA_STATUS_FATAL_SHIFT == C.QHCA_FATAL_EQ
    setup.adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    setup.adapter.start_admin()
    setup.adapter.command(C.QHCA_CMD_NOP)

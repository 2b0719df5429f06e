# SPDX-License-Identifier: GPL-2.0-or-later
"""
The peer writes, reads and changes memory: what the keys allow, what DMA can access, and that it
never accesses registers, not even the device's own.
"""

import pytest
from adapter import BARS, direct
from layout import C, struct
from rdma import AETH, BTH, MR, Setup, packet, parse

REFUSED = pytest.mark.once("what is refused is decided by the engine, where nothing is observed")

WRITE_ONLY, READ_REQUEST, READ_RESPONSE_ONLY = 0x0A, 0x0C, 0x10
ATOMIC_ACK, COMPARE_SWAP, FETCH_ADD = 0x12, 0x13, 0x14
ALL = C.QHCA_ACCESS_MASK
PSN = 100
NAK_ACCESS, NAK_OP = 0x62, 0x63


class Target:
    """A QP in RTR that allows everything, and an MR at @addr."""

    def __init__(self, adapter, addr: int = 0, access: int = ALL, qp_access: int = ALL):
        self.m = adapter.m
        self.s = Setup(adapter, "reset")
        self.s.qp.to_init(access=qp_access)
        self.s.qp.to_rtr(psn=PSN)
        self.mr = MR(adapter, self.s.pd, access=access)
        if addr:
            mpt = struct("qhca_mpt")(buf=direct(addr, 4096), iova=self.mr.iova, len=4096,
                                     key=0x77, pd=self.s.pd, access=access)
            self.mr.key = adapter.command(C.QHCA_CMD_CREATE_MR, data=mpt).obj

    def ask(self, opcode: int, body: bytes) -> tuple:
        """Send a request; (BTH, bytes after the BTH) of the response."""
        self.m.send_frame(packet(self.s.qp.num, opcode, PSN, body, ackreq=1))
        raw = self.m.receive_frame()
        frame = parse(raw)
        return frame[BTH], raw[54:14 + frame["IP"].len - 4]

    def reth(self, length: int, at: int = 0) -> bytes:
        return ((self.mr.iova + at).to_bytes(8, "big") + self.mr.key.to_bytes(4, "big")
                + length.to_bytes(4, "big"))

    def atomic(self, swap: int, compare: int = 0, at: int = 0) -> bytes:
        return ((self.mr.iova + at).to_bytes(8, "big") + self.mr.key.to_bytes(4, "big")
                + swap.to_bytes(8, "big") + compare.to_bytes(8, "big"))


def test_write(adapter):
    t = Target(adapter)
    bth, body = t.ask(WRITE_ONLY, t.reth(12, 100) + b"written here")
    assert AETH(body).syndrome & 0x60 == 0
    assert t.mr.data(14, 99) == b"\0written here\0"


def test_read(adapter):
    t = Target(adapter)
    t.mr.fill(b"read me, please!", 50)
    bth, body = t.ask(READ_REQUEST, t.reth(16, 50))
    assert (bth.opcode, bth.psn) == (READ_RESPONSE_ONLY, PSN)
    assert body[4:] == b"read me, please!"


@pytest.mark.parametrize("opcode, swap, compare, before, after", [
    (FETCH_ADD, 5, 0, 7, 12), (FETCH_ADD, 1, 0, (1 << 64) - 1, 0),
    (COMPARE_SWAP, 9, 7, 7, 9), (COMPARE_SWAP, 9, 8, 7, 7),
])
def test_atomic(adapter, opcode, swap, compare, before, after):
    t = Target(adapter)
    t.m.store(t.mr.addr + 8, before, 8)
    bth, body = t.ask(opcode, t.atomic(swap, compare, at=8))
    assert bth.opcode == ATOMIC_ACK
    assert int.from_bytes(body[4:12], "big") == before
    assert t.m.load(t.mr.addr + 8, 8) == after


REQUESTS = {
    "write": (WRITE_ONLY, lambda t: t.reth(8) + b"12345678"),
    "read": (READ_REQUEST, lambda t: t.reth(8)),
    "add": (FETCH_ADD, lambda t: t.atomic(1)),
    "swap": (COMPARE_SWAP, lambda t: t.atomic(1, 0)),
}


@REFUSED
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("addr", [BARS[C.QHCA_BAR_DB], BARS[C.QHCA_BAR_REGS],
                                  0xFEE00000, 0x800000000000])
def test_not_memory(adapter, name, addr):
    """An MR over registers or over nothing: the peer gets an error, no effect."""
    t = Target(adapter, addr)
    opcode, body = REQUESTS[name]
    bad_access = adapter.stat("DB_BAD_ACCESS")
    doorbells = adapter.stat("DOORBELLS")
    _, answer = t.ask(opcode, body(t))
    assert AETH(answer).syndrome == NAK_OP
    stats = adapter.stats()
    assert stats[C.QHCA_STAT_DB_BAD_ACCESS] == bad_access
    assert stats[C.QHCA_STAT_DOORBELLS] == doorbells
    assert stats[C.QHCA_STAT_DMA_ERRORS] >= 1
    assert t.s.qp.query().state == C.QHCA_QPS_ERR


@REFUSED
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("who", ["MR", "QP"])
def test_not_allowed(adapter, name, who):
    t = Target(adapter, **{"access" if who == "MR" else "qp_access":
                           C.QHCA_ACCESS_LOCAL_WRITE if who == "MR" else 0})
    opcode, body = REQUESTS[name]
    _, answer = t.ask(opcode, body(t))
    assert AETH(answer).syndrome in (NAK_ACCESS, 0x61)
    assert t.mr.data(8) == bytes(8)

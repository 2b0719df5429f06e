# SPDX-License-Identifier: GPL-2.0-or-later
"""
A guest with random behaviour, by seed: random commands, doorbells, rings, registers and frames.
QEMU must survive, and after a reset the adapter must work.
"""

import random

import pytest
from adapter import EQ
from layout import C, struct
from rdma import Setup, packet, parse

pytestmark = pytest.mark.once("no observer is in the way of what a guest sends")

ROUNDS = 2000
INPUTS = ["qhca_port", "qhca_gid", "qhca_eqc", "qhca_cqc", "qhca_srqc", "qhca_qpc",
          "qhca_mpt", "qhca_eth_qc"]


class Guest:
    """Random acts on a working adapter."""

    def __init__(self, adapter, seed: int):
        self.a, self.m, self.r = adapter, adapter.m, random.Random(seed)
        self.setup()

    def setup(self) -> None:
        self.s = Setup(self.a, "rts")
        self.qpc = bytes(self.s.qp.query())

    def number(self) -> int:
        """Small, a power of two or near it, all ones, or anything."""
        r = self.r
        return r.choice([
            r.randrange(4), 1 << r.randrange(64), (1 << r.randrange(64)) - 1,
            0xFFFFFFFF, 0xFFFFFF, r.getrandbits(64), 0x1000000 + r.randrange(0x100000),
            0xC0000000, 0xC4000000])

    def command(self) -> None:
        """A structure with a few corrupted fields, or noise."""
        kind = struct(self.r.choice(INPUTS))
        data = bytearray(bytes(kind()))
        if kind is struct("qhca_qpc") and self.r.random() < 0.7:
            data = bytearray(self.qpc)
        for _ in range(self.r.randrange(6)):
            at = self.r.randrange(len(data) - 8)
            data[at:at + 8] = (self.number() & (1 << 64) - 1).to_bytes(8, "little")
        self.m.write_mem(self.a.scratch, bytes(data))
        self.a.submit(
            opcode=self.r.choice([self.r.randrange(0x48), self.r.randrange(256)]),
            obj=self.number() & 0xFFFFFFFF, cmd_id=1, in_len=len(data),
            in_addr=self.a.scratch, out_addr=self.a.scratch + 4096, out_len=512,
            mask=self.number(), arg=self.number())
        self.a.ring_admin()
        self.a.acq.take()

    def doorbell(self) -> None:
        page = self.r.choice([0, 0, 1, self.r.randrange(16384)])
        offset = self.r.choice([8 * self.r.randrange(6), self.r.randrange(4096)])
        num = self.r.choice([self.s.qp.num, self.s.cq.num, 0, self.number() & 0xFFFFFFFF])
        size = self.r.choice([8, 8, 8, 1, 2, 4])
        value = num | (self.number() & 0xFFFFFFFF) << 32
        self.a.doorbell((page << 12) + offset, value & (1 << 8 * size) - 1, size)

    def wqe(self) -> None:
        """Noise in the rings of the QP, and its doorbell."""
        self.m.write_mem(self.s.qp.sq + 64 * self.r.randrange(16),
                         self.r.randbytes(64))
        self.m.write_mem(self.s.qp.rq + 32 * self.r.randrange(16),
                         self.r.randbytes(32))
        self.m.store(self.s.qp.dbrec, self.r.choice([self.r.randrange(20),
                                                     self.number() & 0xFFFFFFFF]), 4)
        self.s.qp.sq_prod += 1
        self.s.qp.ring_sq()

    def frame(self) -> None:
        """A valid packet, or one with corrupted bytes, or noise."""
        data = bytearray(packet(
            self.r.choice([self.s.qp.num, 1, self.r.getrandbits(24)]),
            self.r.randrange(256), self.r.choice([100, 101, self.r.getrandbits(24)]),
            self.r.randbytes(self.r.randrange(64)), ackreq=1))
        for _ in range(self.r.choice([0, 0, 1, 3])):
            data[self.r.randrange(len(data))] = self.r.randrange(256)
        if self.r.random() < 0.1:
            data = self.r.randbytes(self.r.randrange(1, 9300))
        self.m.send_frame(bytes(data))

    def register(self) -> None:
        offset = self.r.choice([4 * self.r.randrange(0x18), self.r.randrange(0x4000)])
        # Not CTRL, and no admin doorbell: the commands would end.
        if not 0x10 <= offset < 0x14 and not 0x40 <= offset < 0x48:
            self.a.reg_write(offset, self.number() & 0xFFFFFFFF)
        self.a.reg(self.r.randrange(0x60), self.r.choice([1, 2, 4, 8]))

    def time(self) -> None:
        self.m.clock_step(self.r.choice([1000, 10**6, 10**9]))

    def live(self, rounds: int) -> None:
        """This many random actions; the adapter is reset if it is fatal."""
        acts = [self.command, self.doorbell, self.wqe, self.frame, self.register, self.time]
        for _ in range(rounds):
            self.r.choice(acts)()
            while self.m.receive_frame(0):
                pass
            if self.a.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_FATAL:
                self.a.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
                self.a.start_admin()
                self.setup()


@pytest.mark.parametrize("seed", [*range(4), *(
    pytest.param(seed, marks=pytest.mark.long("four seeds are in the gate, and test-engine fuzzes"))
    for seed in range(4, 8))])
def test_random_guest(adapter, seed):
    Guest(adapter, seed).live(ROUNDS)
    adapter.m.qmp("query-status")
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    while adapter.m.receive_frame(0.05):
        pass
    adapter.start_admin()
    assert EQ(adapter).num == 0
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.start_admin()
    s = Setup(adapter, "rts")
    s.qp.post_send(s.sge(8))
    assert parse(adapter.m.receive_frame())

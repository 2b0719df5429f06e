# SPDX-License-Identifier: GPL-2.0-or-later
"""A small driver for the adapter, written against the contract header."""

from layout import C, stat, struct
from machine import Machine, until

PAGE = 4096
BARS = {C.QHCA_BAR_REGS: 0xC0000000, C.QHCA_BAR_DM: 0xC2000000,
        C.QHCA_BAR_DB: 0xC4000000}
MSIX_TABLE = BARS[C.QHCA_BAR_REGS] + C.QHCA_MSIX_TABLE
MSIX_PBA = BARS[C.QHCA_BAR_REGS] + C.QHCA_MSIX_PBA
PCI_COMMAND, PCI_CAP_LIST = 0x04, 0x34
COMMAND_MEMORY, COMMAND_MASTER = 2, 4
CAP_PM, CAP_EXP, CAP_MSIX = 0x01, 0x10, 0x11
MSI_DATA = 0x5A000000


class AdminError(Exception):
    """A command completed with a status other than OK."""

    def __init__(self, opcode: int, status: int, result: int):
        super().__init__(f"command 0x{opcode:02x}: status {status}, result {result}")
        self.status, self.result = status, result


class Ring:
    """A ring in guest memory that the device fills, with phase bits."""

    def __init__(self, adapter: "Adapter", kind: str, shift: int):
        self.adapter, self.kind = adapter, struct(kind)
        self.size = len(bytes(self.kind()))
        self.shift, self.cons = shift, 0
        self.addr = adapter.alloc(self.size << shift)

    def peek(self):
        """The next entry, or None; it stays."""
        depth = 1 << self.shift
        at = self.addr + (self.cons & (depth - 1)) * self.size
        entry = self.kind.from_buffer_copy(self.adapter.m.read_mem(at, self.size))
        lap = (self.cons >> self.shift) & 1
        return entry if (entry.phase & 1) == (lap ^ 1) else None

    def take(self):
        """Wait for the next entry and take it."""
        entry = until(self.peek, f"an entry in a ring of {self.kind.__name__}")
        self.cons += 1
        return entry


class EQ(Ring):
    """An event queue, armed from the start; @record: with a doorbell record (at @dbrec)."""

    def __init__(self, adapter: "Adapter", vector: int = 1, shift: int = 6,
                 arm: bool = True, record: bool = False, dbrec: int = 0):
        super().__init__(adapter, "qhca_eqe", shift)
        self.dbrec = dbrec or (adapter.alloc(64) if record else 0)
        eqc = struct("qhca_eqc")(buf=direct(self.addr, self.size << shift),
                                 shift=shift, vector=vector, dbrec=self.dbrec,
                                 flags=C.QHCA_EQ_F_RECORD if self.dbrec else 0)
        self.num = adapter.command(C.QHCA_CMD_CREATE_EQ, data=eqc).obj
        if arm and not self.dbrec:
            self.arm()

    def arm(self) -> None:
        self.adapter.ring(C.QHCA_DB_EQ, self.num | C.QHCA_DB_EQ_ARM, self.cons)

    def notify(self) -> bool:
        """Has the device asked for a doorbell?"""
        return bool(self.adapter.m.load(self.dbrec + 4, 4) & C.QHCA_DBREC_NOTIFY)

    def store(self) -> None:
        """Store the consumer index in the record; ring only if the device asks."""
        self.adapter.m.store(self.dbrec, self.cons & 0xFFFFFFFF, 4)
        if self.notify():
            self.adapter.ring(C.QHCA_DB_EQ, self.num, self.cons)


class CQ(Ring):
    """A completion queue on @eq."""

    def __init__(self, adapter: "Adapter", eq: EQ, shift: int = 6, uar: int = 0,
                 **fields):
        super().__init__(adapter, "qhca_cqe", shift)
        self.dbrec = adapter.alloc(64)
        self.uar = uar
        cqc = struct("qhca_cqc")(buf=direct(self.addr, self.size << shift),
                                 dbrec=self.dbrec, eqn=eq.num, uar=uar,
                                 shift=shift, **fields)
        self.num = adapter.command(C.QHCA_CMD_CREATE_CQ, data=cqc).obj

    def take(self):
        cqe = super().take()
        self.adapter.m.store(self.dbrec, self.cons & 0xFFFFFFFF, 4)
        return cqe

    def arm(self, solicited: bool = False) -> None:
        flags = C.QHCA_DB_SOLICITED if solicited else 0
        self.adapter.ring(C.QHCA_DB_CQ_ARM, self.num | flags, self.cons, self.uar)


def direct(addr: int, length: int):
    """Descriptor of one contiguous block."""
    return struct("qhca_buf")(addr=addr, len=length, form=C.QHCA_BUF_DIRECT)


class Adapter:
    """The adapter in @machine, at bus @bus, slot 4: PCI, registers, commands."""

    def __init__(self, machine: Machine, slot: int = 4, bus: int = 0,
                 memory: int = 0x1000000):
        self.m, self.slot, self.bus = machine, slot, bus
        self.memory = memory
        self.ready = False

    # ---- PCI ----

    def _address(self, offset: int) -> int:
        return 0x80000000 | self.bus << 16 | self.slot << 11 | (offset & 0xFC)

    def config(self, offset: int, size: int = 4) -> int:
        self.m.out32(0xCF8, self._address(offset))
        value = self.m.in32(0xCFC) >> (offset & 3) * 8
        return value & ((1 << size * 8) - 1)

    def config_write(self, offset: int, value: int, size: int = 4) -> None:
        self.m.out32(0xCF8, self._address(offset))
        port = 0xCFC + (offset & 3)
        self.m.command("out" + "bwl"[size.bit_length() - 1], hex(port), hex(value))

    def capability(self, cap: int) -> int:
        """Offset of a capability in configuration space; 0: absent."""
        at = self.config(PCI_CAP_LIST, 1)
        while at and self.config(at, 1) != cap:
            at = self.config(at + 1, 1)
        return at

    def enable_pci(self, master: bool = True) -> None:
        for bar, addr in BARS.items():
            self.config_write(0x10 + 4 * bar, addr)
            self.config_write(0x14 + 4 * bar, 0)
        self.config_write(PCI_COMMAND, COMMAND_MEMORY |
                          (COMMAND_MASTER if master else 0), 2)

    def set_master(self, on: bool) -> None:
        self.config_write(PCI_COMMAND,
                          COMMAND_MEMORY | (COMMAND_MASTER if on else 0), 2)

    def enable_msix(self, vectors: int = 4) -> None:
        """MSI-X messages are stores into memory, where tests see them."""
        self.messages = self.alloc(PAGE)
        for v in range(vectors):
            entry = MSIX_TABLE + 16 * v
            self.m.store(entry, self.messages + 4 * v, 4)
            self.m.store(entry + 4, 0, 4)
            self.m.store(entry + 8, MSI_DATA | v, 4)
            self.m.store(entry + 12, 0, 4)
        self.config_write(self.capability(CAP_MSIX) + 2, 0x8000, 2)

    def mask_vector(self, vector: int, masked: bool) -> None:
        self.m.store(MSIX_TABLE + 16 * vector + 12, int(masked), 4)

    def interrupted(self, vector: int) -> bool:
        """True once for each (merged) interrupt of the vector."""
        at = self.messages + 4 * vector
        if self.m.load(at, 4) == MSI_DATA | vector:
            self.m.store(at, 0, 4)
            return True
        return False

    # ---- memory ----

    def alloc(self, size: int, align: int = PAGE) -> int:
        """Zeroed guest memory, never freed."""
        addr = (self.memory + align - 1) & ~(align - 1)
        self.memory = addr + size
        self.m.command("memset", hex(addr), size, "0x0")
        return addr

    # ---- registers, doorbells ----

    def reg(self, offset: int, size: int = 4) -> int:
        return self.m.load(BARS[C.QHCA_BAR_REGS] + offset, size)

    def reg_write(self, offset: int, value: int, size: int = 4) -> None:
        self.m.store(BARS[C.QHCA_BAR_REGS] + offset, value, size)

    def doorbell(self, offset: int, value: int, size: int = 8) -> None:
        self.m.store(BARS[C.QHCA_BAR_DB] + offset, value, size)

    def ring(self, kind: int, num: int, index: int, uar: int = 0) -> None:
        """Ring doorbell @kind in the page of @uar."""
        index &= 0xFFFFFFFF
        self.doorbell((uar << 12) + kind, num | index << C.QHCA_DB_INDEX_SHIFT)

    # ---- admin queue ----

    def start(self, shift: int = 4, irq: bool = False) -> None:
        """Everything up to the admin queue."""
        self.enable_pci()
        self.enable_msix()
        self.start_admin(shift, irq)

    def start_admin(self, shift: int = 4, irq: bool = False) -> None:
        self.aq_shift, self.aq_prod = shift, 0
        self.asq = self.alloc(len(bytes(struct("qhca_aq_cmd")())) << shift)
        self.acq = Ring(self, "qhca_aq_cqe", shift)
        self.scratch = self.alloc(2 * PAGE)
        self.reg_write(C.QHCA_REG_ASQ_BASE, self.asq, 8)
        self.reg_write(C.QHCA_REG_ACQ_BASE, self.acq.addr, 8)
        self.reg_write(C.QHCA_REG_AQ_SHIFT, shift)
        self.reg_write(C.QHCA_REG_AQ_CTRL, C.QHCA_AQ_CTRL_IRQ if irq else 0)
        self.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_ENABLE)
        status = self.reg(C.QHCA_REG_STATUS)
        assert status & C.QHCA_STATUS_READY, f"not ready: status 0x{status:x}"

    def submit(self, **fields) -> None:
        """Write a command into the ring; no doorbell."""
        cmd = struct("qhca_aq_cmd")(**fields)
        slot = self.aq_prod & ((1 << self.aq_shift) - 1)
        self.m.write_mem(self.asq + slot * len(bytes(cmd)), bytes(cmd))
        self.aq_prod += 1

    def ring_admin(self) -> None:
        self.reg_write(C.QHCA_REG_ASQ_DB, self.aq_prod & 0xFFFFFFFF)

    def try_command(self, opcode: int, obj: int = 0, data=b"", out: int = 0, **fields):
        """Run a command; its completion, whatever the status is."""
        data = bytes(data)
        if data:
            self.m.write_mem(self.scratch, data)
            fields.setdefault("in_addr", self.scratch)
            fields.setdefault("in_len", len(data))
        if out:
            fields.setdefault("out_addr", self.scratch + PAGE)
            fields.setdefault("out_len", out)
        cmd_id = 0x1000 | self.aq_prod & 0xFFF
        self.submit(opcode=opcode, obj=obj, cmd_id=cmd_id, **fields)
        self.ring_admin()
        cqe = self.acq.take()
        assert cqe.cmd_id == cmd_id
        return cqe

    def command(self, opcode: int, obj: int = 0, data=b"", out: int = 0, **fields):
        """Run a command that must succeed."""
        cqe = self.try_command(opcode, obj, data, out, **fields)
        if cqe.status != C.QHCA_ST_OK:
            raise AdminError(opcode, cqe.status, cqe.result)
        return cqe

    def query(self, opcode: int, obj: int, kind: str):
        """Run a query; returns the structure."""
        cls = struct(kind)
        size = len(bytes(cls()))
        self.command(opcode, obj, out=size)
        return cls.from_buffer_copy(self.m.read_mem(self.scratch + PAGE, size))

    def stats(self) -> list[int]:
        size = 8 * C.QHCA_STAT_COUNT
        self.command(C.QHCA_CMD_QUERY_STATS, out=size)
        data = self.m.read_mem(self.scratch + PAGE, size)
        return [int.from_bytes(data[i:i + 8], "little") for i in range(0, size, 8)]

    def stat(self, name: str) -> int:
        return self.stats()[stat(name)]

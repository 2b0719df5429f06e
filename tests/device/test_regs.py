# SPDX-License-Identifier: GPL-2.0-or-later
"""Registers: reset values, access sizes, the halves of 64-bit registers."""

import pytest
from adapter import MSIX_PBA
from layout import C

RESET_VALUES = [
    ("ID", 4, C.QHCA_ID_MAGIC),
    ("VERSION", 4, C.QHCA_VERSION_MAJOR << 16 | C.QHCA_VERSION_MINOR),
    ("CTRL", 4, 0),
    ("STATUS", 4, C.QHCA_STATUS_LINK),
    ("DB_SHIFT", 4, 12),
    ("DB_PAGES", 4, C.QHCA_BAR_DB_SIZE >> 12),
    ("ASQ_BASE", 8, 0),
    ("ACQ_BASE", 8, 0),
    ("AQ_SHIFT", 4, 0),
    ("AQ_CTRL", 4, 0),
    ("MARKER", 8, 0),
    ("ASQ_DB", 4, 0),
]
WRITABLE = [("DB_SHIFT", 4, 14), ("ASQ_BASE", 8, 0x123456789A000),
            ("ACQ_BASE", 8, 0xFEDCBA9876000), ("AQ_SHIFT", 4, 8), ("AQ_CTRL", 4, 1)]


def reg(name: str) -> int:
    return getattr(C, f"QHCA_REG_{name}")


@pytest.mark.parametrize("name, size, value", RESET_VALUES)
def test_reset_value(bare, name, size, value):
    assert bare.reg(reg(name), size) == value


def test_features(bare):
    features = bare.reg(C.QHCA_REG_FEATURES, 8)
    for name in ("RC", "UD", "SRQ", "LIST_FORM"):
        assert features & getattr(C, f"QHCA_FEAT_{name}"), name


@pytest.mark.parametrize("name, size, value", WRITABLE)
def test_write_and_reset(bare, name, size, value):
    before = bare.reg(reg(name), size)
    bare.reg_write(reg(name), value, size)
    assert bare.reg(reg(name), size) == value
    bare.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    assert bare.reg(reg(name), size) == before


def test_db_pages_follow_stride(bare):
    for shift in range(12, 17):
        bare.reg_write(C.QHCA_REG_DB_SHIFT, shift)
        assert bare.reg(C.QHCA_REG_DB_PAGES) == C.QHCA_BAR_DB_SIZE >> shift


@pytest.mark.parametrize("name", ["ID", "VERSION", "FEATURES", "STATUS", "DB_PAGES",
                                  "VECTORS"])
def test_read_only(bare, name):
    before = bare.reg(reg(name))
    bare.reg_write(reg(name), ~before & 0xFFFFFFFF)
    assert bare.reg(reg(name)) == before


def test_halves_of_64_bits(bare):
    """Two 4-byte writes, low half first; it takes effect with the high one."""
    bare.reg_write(C.QHCA_REG_ASQ_BASE, 0x1111111122222000, 8)
    bare.reg_write(C.QHCA_REG_ASQ_BASE, 0x44444000)
    assert bare.reg(C.QHCA_REG_ASQ_BASE, 8) == 0x1111111122222000
    bare.reg_write(C.QHCA_REG_ASQ_BASE + 4, 0x33333333)
    assert bare.reg(C.QHCA_REG_ASQ_BASE, 8) == 0x3333333344444000
    assert bare.reg(C.QHCA_REG_ASQ_BASE) == 0x44444000
    assert bare.reg(C.QHCA_REG_ASQ_BASE + 4) == 0x33333333


def test_clock(bare):
    """The device clock is virtual time; the low half latches the high one."""
    t0 = bare.reg(C.QHCA_REG_CLOCK, 8)
    bare.m.clock_step(5_000_000_000)
    low = bare.reg(C.QHCA_REG_CLOCK)
    bare.m.clock_step(1 << 33)
    high = bare.reg(C.QHCA_REG_CLOCK + 4)
    assert (high << 32 | low) - t0 == 5_000_000_000


@pytest.mark.parametrize("size", [1, 2])
def test_small_access(bare, size):
    assert bare.reg(C.QHCA_REG_ID, size) == 0
    bare.reg_write(C.QHCA_REG_DB_SHIFT, 14, size)
    assert bare.reg(C.QHCA_REG_DB_SHIFT) == 12


@pytest.mark.parametrize("offset, size", [(1, 4), (2, 4), (4, 8), (0xC, 8)])
def test_unaligned_access(bare, offset, size):
    """It changes nothing."""
    bare.reg(offset, size)
    bare.reg_write(C.QHCA_REG_DB_SHIFT - 4 + offset, 0xFFFFFFFF, size)
    assert bare.reg(C.QHCA_REG_ID) == C.QHCA_ID_MAGIC
    assert bare.reg(C.QHCA_REG_DB_SHIFT) == 12


@pytest.mark.parametrize("offset, size", [
    (C.QHCA_REG_ID, 1), (C.QHCA_REG_ID, 2), (C.QHCA_REG_ID, 8), (C.QHCA_REG_ID + 1, 1),
    (C.QHCA_REG_ID + 2, 4), (C.QHCA_REG_FEATURES, 2), (C.QHCA_REG_FEATURES - 4, 8),
    (C.QHCA_REG_FEATURES + 4, 8), (0x50, 4), (0x50, 8),
])
def test_invalid_access_is_counted(adapter, offset, size):
    before = adapter.stat("DB_BAD_ACCESS")
    assert adapter.reg(offset, size) == 0
    assert adapter.stat("DB_BAD_ACCESS") == before + 1
    adapter.reg_write(offset, 0, size)
    assert adapter.stat("DB_BAD_ACCESS") == before + 2


@pytest.mark.parametrize("offset", [0x50, 0x54, 0x100, 0x1000, C.QHCA_MSIX_PBA - 8])
def test_unknown_offset(bare, offset):
    for size in (4, 8):
        bare.reg_write(offset, 0xFFFFFFFF, size)
        assert bare.reg(offset, size) == 0


def test_whole_bar_is_safe(bare):
    """Reading and writing every offset with every size is harmless."""
    for offset in range(0, 0x60, 1):
        for size in (1, 2, 4, 8):
            bare.reg(offset, size)
            if not C.QHCA_REG_CTRL - 8 < offset < C.QHCA_REG_CTRL + 4:
                bare.reg_write(offset, 0xA5A5A5A5, size)
    bare.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    for name, size, value in RESET_VALUES:
        assert bare.reg(reg(name), size) == value, name


@pytest.mark.parametrize("asq, acq, shift, db", [
    (0x100000, 0x200000, 0, 12), (0x100000, 0x200000, 9, 12),
    (0x100040, 0x200000, 4, 12), (0x100000, 0x200008, 4, 12),
    (0x100000, 0x200000, 4, 11), (0x100000, 0x200000, 4, 17),
    (0x100000, 0x200000, 0xFFFFFFFF, 12), (0x100000, 0x200000, 4, 0xFFFFFFFF),
])
def test_bad_enable(bare, asq, acq, shift, db):
    """Enabled with invalid settings: fatal with the reason, and a reset recovers it."""
    bare.reg_write(C.QHCA_REG_ASQ_BASE, asq, 8)
    bare.reg_write(C.QHCA_REG_ACQ_BASE, acq, 8)
    bare.reg_write(C.QHCA_REG_AQ_SHIFT, shift)
    bare.reg_write(C.QHCA_REG_DB_SHIFT, db)
    bare.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_ENABLE)
    status = bare.reg(C.QHCA_REG_STATUS)
    assert not status & C.QHCA_STATUS_READY
    assert status & C.QHCA_STATUS_FATAL
    fatal = (status & C.QHCA_STATUS_FATAL_MASK) >> C.QHCA_STATUS_FATAL_SHIFT
    assert fatal == C.QHCA_FATAL_AQ_CONFIG
    bare.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    bare.enable_msix()
    bare.start_admin()
    bare.command(C.QHCA_CMD_NOP)


def test_fixed_while_enabled(adapter):
    for name, size, value in WRITABLE:
        if name == "AQ_CTRL":
            continue
        before = adapter.reg(reg(name), size)
        adapter.reg_write(reg(name), value, size)
        assert adapter.reg(reg(name), size) == before, name
    adapter.command(C.QHCA_CMD_NOP)


# ---- interrupts ----

def nop_with_irq(adapter):
    adapter.reg_write(C.QHCA_REG_AQ_CTRL, C.QHCA_AQ_CTRL_IRQ)
    adapter.command(C.QHCA_CMD_NOP)


def test_interrupt(adapter):
    adapter.command(C.QHCA_CMD_NOP)
    assert not adapter.interrupted(0), "not asked for"
    nop_with_irq(adapter)
    assert adapter.interrupted(0)
    assert not adapter.interrupted(0)
    assert adapter.m.load(adapter.messages + 4, 4) == 0, "no other vector"


def test_masked_vector_latches_and_replays(adapter):
    pba = MSIX_PBA
    adapter.mask_vector(0, True)
    nop_with_irq(adapter)
    nop_with_irq(adapter)
    assert not adapter.interrupted(0)
    assert adapter.m.load(pba, 8) & 1, "pending bit"
    adapter.mask_vector(0, False)
    assert adapter.interrupted(0), "replayed"
    assert adapter.m.load(pba, 8) & 1 == 0
    assert not adapter.interrupted(0), "once"


def test_function_mask_latches_and_replays(adapter):
    msix = adapter.capability(0x11)
    adapter.config_write(msix + 2, 0xC000, 2)
    nop_with_irq(adapter)
    assert not adapter.interrupted(0)
    adapter.config_write(msix + 2, 0x8000, 2)
    assert adapter.interrupted(0)


def test_interrupt_with_msix_off(adapter):
    """Without MSI-X there is no interrupt, and no INTx either."""
    msix = adapter.capability(0x11)
    adapter.config_write(msix + 2, 0, 2)
    nop_with_irq(adapter)
    assert not adapter.interrupted(0)
    assert adapter.config(0x06, 2) & 8 == 0, "INTx status"


def test_interrupt_without_bus_master(adapter):
    """A message that cannot be sent is lost, with no other effect."""
    adapter.reg_write(C.QHCA_REG_AQ_CTRL, C.QHCA_AQ_CTRL_IRQ)
    adapter.mask_vector(0, True)
    adapter.command(C.QHCA_CMD_NOP)
    adapter.set_master(False)
    adapter.mask_vector(0, False)
    adapter.set_master(True)
    assert not adapter.interrupted(0)
    nop_with_irq(adapter)
    assert adapter.interrupted(0)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The PCI function: identity, BARs, capabilities, reset, power, properties."""

import re
import subprocess

import pytest
from adapter import (
    BARS, CAP_EXP, CAP_MSIX, CAP_PM, MSIX_TABLE, PCI_COMMAND, Adapter, EQ,
)
from conftest import DEVICE
from layout import C
from machine import QEMU, Machine

REFUSED = pytest.mark.once("what is refused is decided by the engine, where nothing is observed")

DEVCAP, DEVCTL = 4, 8
FLR = 0x8000


def flr(adapter: Adapter) -> None:
    """Function-level reset, then what software must do again."""
    cap = adapter.capability(CAP_EXP)
    control = adapter.config(cap + DEVCTL, 2)
    adapter.config_write(cap + DEVCTL, control | FLR, 2)


def test_identity(bare):
    assert bare.config(0x00, 2) == C.QHCA_PCI_VENDOR_ID
    assert bare.config(0x02, 2) == C.QHCA_PCI_DEVICE_ID
    assert bare.config(0x08) == 0x02000000 | C.QHCA_PCI_REVISION
    assert bare.config(0x3D, 1) == 0, "no INTx pin"


@pytest.mark.parametrize("bar, size, prefetch", [
    (C.QHCA_BAR_REGS, C.QHCA_BAR_REGS_SIZE, False),
    (C.QHCA_BAR_DB, C.QHCA_BAR_DB_SIZE, True),
    (C.QHCA_BAR_DM, 16 << 20, True),
])
def test_bar(machine, bar, size, prefetch):
    adapter = Adapter(machine)
    at = 0x10 + 4 * bar
    adapter.config_write(at, 0xFFFFFFFF)
    adapter.config_write(at + 4, 0xFFFFFFFF)
    low, high = adapter.config(at), adapter.config(at + 4)
    assert low & 7 == 4, "64-bit memory"
    assert bool(low & 8) == prefetch
    assert (high << 32 | low & ~15) == (1 << 64) - size


def test_capabilities(bare):
    exp = bare.capability(CAP_EXP)
    assert exp and bare.capability(CAP_PM)
    assert bare.config(exp + DEVCAP) & 1 << 28, "FLR capability"
    msix = bare.capability(CAP_MSIX)
    assert bare.config(msix + 4) == C.QHCA_MSIX_TABLE | C.QHCA_BAR_REGS
    assert bare.config(msix + 8) == C.QHCA_MSIX_PBA | C.QHCA_BAR_REGS
    vectors = (bare.config(msix + 2, 2) & 0x7FF) + 1
    assert vectors == bare.reg(C.QHCA_REG_VECTORS)


@pytest.mark.parametrize("vectors", [1, 64, 2048])
def test_vectors_property(vectors):
    with Machine(device=f"{DEVICE},vectors={vectors}") as m:
        adapter = Adapter(m)
        adapter.enable_pci()
        assert adapter.reg(C.QHCA_REG_VECTORS) == vectors
        msix = adapter.capability(CAP_MSIX)
        assert (adapter.config(msix + 2, 2) & 0x7FF) + 1 == vectors
        # The last vector works, and its table entry is not in the PBA.
        last = MSIX_TABLE + 16 * (vectors - 1)
        m.store(last + 8, 0x12345678, 4)
        assert m.load(last + 8, 4) == 0x12345678


@pytest.mark.parametrize("size", ["4k", "64M"])
def test_device_memory_property(size):
    with Machine(device=f"{DEVICE},dm-size={size}") as m:
        adapter = Adapter(m)
        size = int(size[:-1]) << {"k": 10, "M": 20}[size[-1]]
        at = 0x10 + 4 * C.QHCA_BAR_DM
        adapter.config_write(at, 0xFFFFFFFF)
        assert adapter.config(at) & ~15 == (1 << 32) - size


def test_no_device_memory():
    with Machine(device=f"{DEVICE},dm-size=0") as m:
        adapter = Adapter(m)
        at = 0x10 + 4 * C.QHCA_BAR_DM
        adapter.config_write(at, 0xFFFFFFFF)
        assert adapter.config(at) == 0
        adapter.start()
        adapter.command(C.QHCA_CMD_NOP)


def test_device_memory_is_memory(adapter):
    """Any size, any alignment; the contents survive a reset of the function."""
    base = BARS[C.QHCA_BAR_DM]
    adapter.m.write_mem(base + 4091, b"over the page")
    for size in (1, 2, 4, 8):
        adapter.m.store(base + 64 * size, 0x0807060504030201 & ((1 << 8 * size) - 1), size)
        assert adapter.m.read_mem(base + 64 * size, size) == bytes(range(1, size + 1))
    flr(adapter)
    adapter.enable_pci()
    assert adapter.m.read_mem(base + 4091, 13) == b"over the page"


@REFUSED
@pytest.mark.parametrize("option, text", [
    ("vectors=0", "vectors"), ("dm-size=4095", "dm-size"), ("dm-size=12k", "dm-size"),
    ("dm-size=128G", "dm-size"), ("vectors=2049", "vectors"), ("max-qp=17", ""),
    ("max-qp=8", ""), ("mac=01:00:00:00:00:01", ""), ("max-gid=0", ""),
    ("min-ack-timeout=32", "min-ack-timeout"), ("gro-hold=1000001", "gro-hold"),
])
def test_bad_property(option, text):
    with pytest.raises(RuntimeError) as error:
        Machine(device=f"qhca,{option}")
    message = str(error.value)
    assert "qhca" in message and text in message
    assert "did not start: \n" not in message, "it says why"


def test_bad_property_leaves_nothing():
    """Refused at run time: the slot stays free, a good one fits."""
    with Machine(device="pcie-root-port,id=rp,addr=3.0,chassis=1", wire=False) as m:
        for bad in ({"vectors": 0}, {"dm-size": 4095}, {"max-qp": 17}, {"max-gid": 0}):
            with pytest.raises(RuntimeError, match="qhca"):
                m.qmp("device_add", driver="qhca", id="q", bus="rp", **bad)
        m.qmp("device_add", driver="qhca", id="q", bus="rp")


def test_not_on_conventional_pci():
    with pytest.raises(RuntimeError, match="PCI Express"):
        Machine("-device", "pci-bridge,id=conventional,chassis_nr=1",
                device="qhca,bus=conventional,addr=1")


def test_help():
    text = subprocess.run([QEMU, "-device", "qhca,help"], check=True,
                          capture_output=True, text=True).stdout
    lines = {m[1]: m[2] for m in re.finditer(r"^ +([\w-]+)=<\w+> *(.*)$", text, re.M)}
    for name in ("mac", "netdev", "vectors", "max-qp", "max-cq", "max-mr", "speed"):
        assert re.search(r"- *\w\w", lines[name]), f"{name} has no description"
    assert "default" in lines["max-qp"]


def test_flr(adapter):
    """FLR destroys every object, register value and MSI-X setting."""
    EQ(adapter)
    pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
    assert pd
    flr(adapter)
    assert adapter.config(PCI_COMMAND, 2) & 7 == 0
    msix = adapter.capability(CAP_MSIX)
    assert adapter.config(msix + 2, 2) & 0x8000 == 0
    adapter.enable_pci()
    for reg in (C.QHCA_REG_CTRL, C.QHCA_REG_ASQ_BASE, C.QHCA_REG_AQ_SHIFT):
        assert adapter.reg(reg) == 0
    assert adapter.reg(C.QHCA_REG_STATUS) == C.QHCA_STATUS_LINK
    # It starts again as if new: the first EQ can be made again.
    adapter.start()
    assert EQ(adapter).num == 0
    assert adapter.stat("AQ_COMMANDS") == 1, "counters were reset"


def test_system_reset(adapter):
    EQ(adapter)
    adapter.m.qmp("system_reset")
    adapter.enable_pci()
    assert adapter.reg(C.QHCA_REG_CTRL) == 0
    adapter.start()
    assert EQ(adapter).num == 0


def test_power_state(adapter):
    """In D3hot the BARs do not respond; back in D0 everything is as before."""
    pm = adapter.capability(CAP_PM)
    assert adapter.reg(C.QHCA_REG_ID) == C.QHCA_ID_MAGIC
    adapter.config_write(pm + 4, 3, 2)
    assert adapter.config(pm + 4, 2) & 3 == 3
    assert adapter.reg(C.QHCA_REG_ID) != C.QHCA_ID_MAGIC
    adapter.config_write(pm + 4, 0, 2)
    adapter.enable_pci()
    assert adapter.reg(C.QHCA_REG_ID) == C.QHCA_ID_MAGIC
    adapter.command(C.QHCA_CMD_NOP)


def test_bus_master_off(adapter):
    """Without bus mastering the admin queue cannot be read: fatal, no crash."""
    adapter.command(C.QHCA_CMD_NOP)
    adapter.set_master(False)
    adapter.submit(opcode=C.QHCA_CMD_NOP)
    adapter.ring_admin()
    status = adapter.reg(C.QHCA_REG_STATUS)
    assert status & C.QHCA_STATUS_FATAL
    fatal = (status & C.QHCA_STATUS_FATAL_MASK) >> C.QHCA_STATUS_FATAL_SHIFT
    assert fatal == C.QHCA_FATAL_AQ_DMA
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.set_master(True)
    adapter.start_admin()
    adapter.command(C.QHCA_CMD_NOP)


def test_memory_that_moves(adapter):
    """DMA into a BAR that has moved fails, even though it worked before."""
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.memory = BARS[C.QHCA_BAR_DM]
    adapter.start_admin()
    adapter.command(C.QHCA_CMD_NOP)
    adapter.config_write(0x10 + 4 * C.QHCA_BAR_DM, 0xCA000000)
    adapter.ring_admin()
    assert not adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_FATAL     # nothing to read
    adapter.aq_prod += 1
    adapter.ring_admin()
    status = adapter.reg(C.QHCA_REG_STATUS)
    assert status & C.QHCA_STATUS_FATAL
    assert ((status & C.QHCA_STATUS_FATAL_MASK) >> C.QHCA_STATUS_FATAL_SHIFT ==
            C.QHCA_FATAL_AQ_DMA)


def test_message_that_resets_its_sender(machine):
    """
    An MSI-X message may be aimed at the function's own configuration space
    and start a function-level reset: while a command is completing.
    """
    adapter = Adapter(machine)
    # Turn on memory-mapped configuration at 0xb0000000 (q35 PCIEXBAR).
    machine.out32(0xCF8, 0x80000060)
    machine.out32(0xCFC, 0xB0000001)
    adapter.enable_pci()
    adapter.enable_msix()
    adapter.start_admin(irq=True)
    devctl = 0xB0000000 + (4 << 15) + adapter.capability(CAP_EXP) + DEVCTL
    entry = MSIX_TABLE
    machine.store(entry, devctl, 4)
    machine.store(entry + 8, FLR, 4)
    adapter.submit(opcode=C.QHCA_CMD_NOP)
    adapter.ring_admin()
    assert adapter.config(PCI_COMMAND, 2) & 7 == 0, "it was reset"
    adapter.start()
    adapter.command(C.QHCA_CMD_NOP)


def test_message_to_own_doorbell(adapter):
    """A message to the device's own registers is just another register write."""
    adapter.reg_write(C.QHCA_REG_AQ_CTRL, C.QHCA_AQ_CTRL_IRQ)
    entry = MSIX_TABLE
    adapter.m.store(entry, BARS[C.QHCA_BAR_REGS] + C.QHCA_REG_ASQ_DB, 4)
    adapter.m.store(entry + 8, 0x1000, 4)
    adapter.submit(opcode=C.QHCA_CMD_NOP)
    adapter.ring_admin()
    adapter.m.qmp("query-status")
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.start_admin()
    adapter.command(C.QHCA_CMD_NOP)

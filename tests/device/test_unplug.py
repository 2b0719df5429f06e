# SPDX-License-Identifier: GPL-2.0-or-later
"""Hot-unplug, also at the worst moments."""

import json

import pytest
from adapter import CAP_EXP, COMMAND_MASTER, MSIX_TABLE, PCI_COMMAND, Adapter
from layout import C
from machine import Machine
from rdma import BTH, SEND_ONLY, Setup, packet, parse

BRIDGE_BUSES, BRIDGE_MEMORY, BRIDGE_PREFETCH = 0x18, 0x20, 0x24
SLOT_CONTROL, POWER_OFF, INDICATOR_OFF = 0x18, 0x400, 0x300
ECAM = 0xB0000000


class Slot:
    """A root port at 3.0 with the adapter on its bus 1."""

    def __init__(self, m: Machine):
        self.m = m
        port = self.port = Adapter(m, slot=3)
        port.config_write(BRIDGE_BUSES, 0x00010100)
        port.config_write(BRIDGE_MEMORY, 0xC010C000)            # 0xc0000000
        port.config_write(BRIDGE_PREFETCH, 0xC7F1C401)          # 0xc4000000
        port.config_write(0x28, 0)
        port.config_write(0x2C, 0)
        port.config_write(0x04, 7, 2)
        self.exp = port.capability(CAP_EXP)
        self.adapter = Adapter(m, slot=0, bus=1)

    def eject(self) -> None:
        """What a guest does after it has released the device: power the slot off."""
        control = self.port.config(self.exp + SLOT_CONTROL, 2)
        self.port.config_write(self.exp + SLOT_CONTROL,
                               control | POWER_OFF | INDICATOR_OFF, 2)


SLOT = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
        "-device", "pcie-root-port,id=rp,addr=3.0,chassis=1")
SLOT_DEVICE = "qhca,id=q,bus=rp,mac=02:00:00:00:00:01"


@pytest.fixture
def slot():
    with Machine(*SLOT, device=SLOT_DEVICE, overwrite_freed=True) as m:
        yield Slot(m)


def unplug(slot: Slot) -> None:
    slot.m.qmp("device_del", id="q")
    slot.m.clock_step(6_000_000_000)        # the attention button's five seconds
    slot.eject()
    assert slot.m.wait_event("DEVICE_DELETED")["data"]["device"] == "q"


def test_unplug_idle(slot):
    slot.adapter.enable_pci()
    unplug(slot)
    assert slot.adapter.config(0) == 0xFFFFFFFF


@pytest.mark.observe
def test_unplug_while_recording(slot, tmp_path):
    """The recording ends with the adapter, and is complete."""
    slot.adapter.start()
    slot.m.qmp("qhca-record-start", file=str(tmp_path / "record"))
    slot.adapter.reg_write(C.QHCA_REG_MARKER, 7, 8)
    unplug(slot)
    found = [json.loads(x) for x in (tmp_path / "record").read_text().splitlines()]
    assert any(r["kind"] == "marker" and r["value"] == 7 for r in found)
    assert found[-1]["kind"] == "end"


def test_unplug_with_qp_active(slot):
    """A QP with packets in flight, a running timer, and arriving frames."""
    slot.adapter.start()
    s = Setup(slot.adapter, "rts")
    for _ in range(16):
        s.qp.write_send(s.sge(4096))
    s.qp.ring_sq()
    assert parse(slot.m.receive_frame())[BTH].psn == 200
    unplug(slot)
    slot.m.clock_step(10_000_000_000)
    assert slot.adapter.config(0) == 0xFFFFFFFF


@pytest.mark.observe
def test_unplug_inside_a_call(slot):
    """A debugger has stopped it in a table walk, with pending doorbells."""
    slot.adapter.start()
    s = Setup(slot.adapter, "rts")
    slot.m.qmp("device_del", id="q")
    slot.m.clock_step(6_000_000_000)
    slot.m.qmp("qhca-break-add", condition={"on": "walk"})
    for _ in range(3):
        s.qp.write_send(s.sge(4096))
        s.qp.ring_sq()
    slot.m.wait_event("QHCA_STOP")
    slot.eject()
    assert slot.m.wait_event("DEVICE_DELETED")["data"]["device"] == "q"
    slot.m.qmp("cont")
    assert slot.adapter.config(0) == 0xFFFFFFFF


def test_unplug_and_plug_again(slot):
    slot.adapter.start()
    Setup(slot.adapter, "rts")
    unplug(slot)
    slot.m.qmp("netdev_del", id="wire")
    slot.m.qmp("device_add", driver="qhca", id="q", bus="rp")
    control = slot.port.config(slot.exp + SLOT_CONTROL, 2)
    slot.port.config_write(slot.exp + SLOT_CONTROL,
                           control & ~(POWER_OFF | INDICATOR_OFF) | 0x100, 2)
    again = Adapter(slot.m, slot=0, bus=1, memory=0x2000000)
    again.start()
    again.command(C.QHCA_CMD_NOP)


def test_message_that_unplugs_its_sender(slot):
    """
    An MSI-X message aimed at the slot's own power control: the device goes
    away while its command is completing.
    """
    m = slot.m
    m.out32(0xCF8, 0x80000060)
    m.out32(0xCFC, ECAM | 1)
    slot.adapter.enable_pci()
    slot.adapter.enable_msix()
    slot.adapter.start_admin(irq=True)
    m.qmp("device_del", id="q")
    m.clock_step(6_000_000_000)
    entry = MSIX_TABLE
    m.store(entry, ECAM + (3 << 15) + slot.exp + SLOT_CONTROL, 4)
    m.store(entry + 8, POWER_OFF | INDICATOR_OFF | 0xC0, 4)
    slot.adapter.submit(opcode=C.QHCA_CMD_NOP)
    slot.adapter.ring_admin()
    assert m.wait_event("DEVICE_DELETED")["data"]["device"] == "q"


def test_netdev_goes_first(slot):
    """The wire is removed while a QP is sending."""
    slot.adapter.start()
    s = Setup(slot.adapter, "rts")
    s.qp.post_send(s.sge(64))
    slot.m.qmp("netdev_del", id="wire")
    assert not slot.adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK
    slot.m.clock_step(10_000_000_000)
    slot.adapter.command(C.QHCA_CMD_NOP)
    unplug(slot)


@pytest.mark.parametrize("decode", [True, False])
def test_frame_that_unplugs_its_receiver(slot, decode):
    """
    The same from the wire's side: the interrupt for a received packet takes
    the device away while the net core is delivering to it; with the BARs
    decoded, or not, so that nothing else holds on to the device.
    """
    m = slot.m
    m.out32(0xCF8, 0x80000060)
    m.out32(0xCFC, ECAM | 1)
    slot.adapter.start()
    s = Setup(slot.adapter, "rtr")
    s.cq.arm()
    for _ in range(8):
        s.qp.post_recv(s.sge(64))
    m.qmp("device_del", id="q")
    m.clock_step(6_000_000_000)
    entry = MSIX_TABLE + 16
    m.store(entry, ECAM + (3 << 15) + slot.exp + SLOT_CONTROL, 4)
    m.store(entry + 8, POWER_OFF | INDICATOR_OFF | 0xC0, 4)
    if not decode:
        slot.adapter.config_write(PCI_COMMAND, COMMAND_MASTER, 2)
    for i in range(8):
        m.send_frame(packet(s.qp.num, SEND_ONLY, 100 + i, b"bye", ackreq=1))
    assert m.wait_event("DEVICE_DELETED")["data"]["device"] == "q"
    assert slot.adapter.config(0) == 0xFFFFFFFF

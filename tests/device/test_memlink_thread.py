# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory links whose bells a thread answers: what depends on that is the same as without."""

from pathlib import Path

import pytest

# Tests and fixtures, to be run here with the thread.
from test_memlink import (folder, lab, pair, test_another_with_the_same_address,  # noqa: F811
                          test_bells_without_end, test_break, test_capture, test_copy_that_ends,
                          test_copy_that_never_ends, test_data,
                          test_descriptor_that_takes_long_to_close, test_fault_rule,
                          test_garbage_in_the_ring, test_link_down,
                          test_link_that_ends_during_a_copy, test_live_migration,
                          test_many_descriptors_that_take_long_to_close,
                          test_memory_that_is_unplugged, test_peer_killed,
                          test_peer_stopped_by_its_host, test_recording, test_reset,
                          test_ring_that_changes_all_the_time, test_snapshot,
                          test_stop_and_cont, test_stop_at_a_packet, test_three_adapters,
                          test_two_adapters_of_one_machine, test_unplug,
                          test_what_is_named_is_revoked, victim)
from adapter import MSIX_TABLE
from layout import C
from machine import Machine, until
from memlink import Route
from test_unplug import ECAM, INDICATOR_OFF, POWER_OFF, SLOT, SLOT_CONTROL, Slot, unplug

pytestmark = pytest.mark.once("what leaves the wire passes no observer")


@pytest.fixture
def thread() -> bool:
    return True


def threads(machine: Machine) -> int:
    """Threads of @machine's QEMU that answer bells."""
    tasks = Path(f"/proc/{machine.process.pid}/task")
    return sum((task / "comm").read_text() == "qhca-bell\n" for task in tasks.iterdir())


def test_one_for_each_adapter(lab):  # noqa: F811
    """It ends with the adapter, even if that is unplugged while bells ring."""
    a = lab(1, "-name", "a,debug-threads=on", *SLOT, place="bus=rp", start=False)
    slot = Slot(a.m)
    assert threads(a.m) == 1
    unplug(slot)
    until(lambda: threads(a.m) == 0, "the thread's end")


def test_one_unless_told_otherwise(folder):  # noqa: F811
    for option, count in (("", 1), (",memlink-thread=auto", 1), (",memlink-thread=off", 0)):
        with Machine("-name", "a,debug-threads=on", device=f"qhca,memlink={folder}{option}") as m:
            assert threads(m) == count


def test_message_that_unplugs_its_sender(lab):  # noqa: F811
    """An interrupt that the thread raises, aimed at the slot's power control."""
    a = lab(1)
    b = lab(2, "-name", "b,debug-threads=on", *SLOT, place="bus=rp", start=False)
    slot = Slot(b.m)
    b.m.out32(0xCF8, 0x80000060)
    b.m.out32(0xCFC, ECAM | 1)
    b.start(slot.adapter)
    route = Route(a, b, timeout=10, retry_cnt=1).up()
    b.m.qmp("device_del", id="q")
    b.m.clock_step(6_000_000_000)
    entry = MSIX_TABLE + 16                 # that of the CQ's EQ
    b.m.store(entry, ECAM + (3 << 15) + slot.exp + SLOT_CONTROL, 4)
    b.m.store(entry + 8, POWER_OFF | INDICATOR_OFF | 0xC0, 4)
    b.cq.arm()
    route.post(C.QHCA_WQE_SEND, 64)
    assert b.m.wait_event("DEVICE_DELETED")["data"]["device"] == "q"
    until(lambda: threads(b.m) == 0, "the thread's end")
    assert not b.socket().exists()
    b.m.qmp("query-status")


def test_without_links():
    """The property alone is a mistake."""
    with pytest.raises(RuntimeError, match="memlink-thread needs memlink"):
        Machine(device="qhca,memlink-thread=on")

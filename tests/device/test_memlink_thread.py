# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory links whose bells a thread answers: what depends on that is the same as without."""

import os
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
from machine import QEMU, Machine, until
from memlink import Peer, Route
from test_unplug import ECAM, INDICATOR_OFF, POWER_OFF, SLOT, SLOT_CONTROL, Slot, unplug

pytestmark = pytest.mark.once("what leaves the wire passes no observer")


@pytest.fixture
def thread() -> bool:
    return True


def bells(machine: Machine) -> list[int]:
    """Threads of @machine's QEMU that answer bells."""
    tasks = Path(f"/proc/{machine.process.pid}/task")
    return [int(task.name) for task in tasks.iterdir()
            if (task / "comm").read_text() == "qhca-bell\n"]


def threads(machine: Machine) -> int:
    return len(bells(machine))


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


def test_acknowledgments_that_wait_in_vain(pair):  # noqa: F811
    """Both ends send in turn, but each only when its last message is acknowledged: no message
    announces an acknowledgment, so that needs a bell of its own, a moment later."""
    for _ in range(60):
        assert pair.there_and_back() == 0
    assert pair.move(C.QHCA_WQE_RDMA_WRITE, 70_000) == 0


def test_peer_killed_while_acknowledgments_wait(lab):  # noqa: F811
    """What is to be rung soon is forgotten with its link."""
    a, b, c = lab(1), lab(2), lab(3)
    route, other = Route(a, b).up(), Route(a, c).up()
    for _ in range(20):
        route.there_and_back()
    b.kill()
    for _ in range(20):
        assert other.there_and_back() == 0


@pytest.mark.parametrize("cpu", [0, 1, 5000, 0xFFFF])
def test_bells_of_any_cpu(lab, cpu):  # noqa: F811
    """The peer says where it runs. The thread may follow, but only to where it may be."""
    victim = lab(1, "-name", "a,debug-threads=on")
    peer = Peer(victim).hello().answer()
    (tid,) = bells(victim.m)
    allowed = os.sched_getaffinity(tid)

    def ring() -> set[int]:
        """Where the thread may run after one more bell."""
        peer.bell(cpu.to_bytes(2, "little"))
        victim.adapter.command(C.QHCA_CMD_NOP)
        return os.sched_getaffinity(tid)

    def rings() -> set[int]:
        now = ring()
        assert now in (allowed, {cpu}) and now <= allowed
        return now

    if cpu in allowed and "asan" not in QEMU.name:       # with it, answers take too long
        until(lambda: rings() == {cpu}, "the thread to follow")
    for _ in range(100):
        rings()

    def stays() -> bool:
        os.sched_setaffinity(tid, {only})
        for _ in range(20):
            ring()
        return os.sched_getaffinity(tid) == {only}

    # What an administrator says is obeyed, unless the thread was just about to move.
    for only in sorted(allowed - {cpu})[-1:]:
        until(stays, "the thread to stay")
    peer.close()


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

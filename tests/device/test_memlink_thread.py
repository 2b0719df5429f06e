# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory links whose bells a thread answers: what depends on that is the same as without."""

from pathlib import Path

import pytest

# Tests and fixtures, to be run here with the thread.
from test_memlink import (folder, lab, pair, test_another_with_the_same_address,  # noqa: F401
                          test_bells_without_end, test_break, test_copy_that_ends, test_data,
                          test_descriptor_that_takes_long_to_close, test_link_that_ends_during_a_copy,
                          test_live_migration, test_many_descriptors_that_take_long_to_close,
                          test_peer_killed, test_reset, test_snapshot, test_stop_and_cont,
                          test_three_adapters, test_two_adapters_of_one_machine,
                          test_unplug, test_what_is_named_is_revoked, victim)
from machine import Machine, until
from test_unplug import Slot, unplug

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
    a = lab(1, "-name", "a,debug-threads=on",
            "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
            "-device", "pcie-root-port,id=rp,addr=3.0,chassis=1", place="bus=rp", start=False)
    slot = Slot(a.m)
    assert threads(a.m) == 1
    unplug(slot)
    until(lambda: threads(a.m) == 0, "the thread's end")


def test_without_links():
    """The property alone is a mistake."""
    with pytest.raises(RuntimeError, match="memlink-thread needs memlink"):
        Machine(device="qhca,memlink-thread=on")

# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures: a machine with the adapter, before and after its initialization."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from adapter import Adapter  # noqa: E402
from machine import DEVICE, Machine  # noqa: E402


@pytest.fixture
def machine():
    with Machine(device=DEVICE) as m:
        yield m


@pytest.fixture
def bare(machine):
    """The adapter as it is after power-on, BARs mapped, bus master on."""
    adapter = Adapter(machine)
    adapter.enable_pci()
    return adapter


@pytest.fixture
def adapter(machine):
    """The adapter with its admin queue and MSI-X running."""
    adapter = Adapter(machine)
    adapter.start()
    return adapter

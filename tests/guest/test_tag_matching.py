# SPDX-License-Identifier: GPL-2.0-or-later
"""
Tag matching with data: the receiver has a TM SRQ, the sender is an RC QP of any adapter, even one
without tag matching.
"""

import json

import pytest

from labs import run_pair

PROGRAM = "/qhca/build/guest-progs/tm"


def transfer(receiver, sender):
    """Run both ends; each checks what it gets."""
    # Soft-RoCE needs 40 s for 1600 messages, on a host that is not slow
    received, sent = run_pair(receiver, sender, f"timeout {receiver.seconds(600)} {PROGRAM}",
                              timeout=600)
    assert json.loads(sent.out)["bursts"] == json.loads(received.out)["bursts"] == 100
    assert json.loads(received.out)["unexpected"] == 2


def test_between_guests(pair):
    transfer(pair.a, pair.b)


def test_loopback(pair):
    transfer(pair.a, pair.a)


@pytest.mark.long("Soft-RoCE needs 40 s for it; two of ours are in the gate")
def test_soft_roce_sends(mixed):
    """Soft-RoCE answers the adapter's READs and takes its FINs."""
    transfer(mixed.a, mixed.b)

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Live migration under RC traffic: whichever side moves, and however often, each message arrives and
completes exactly once, in order, with its data.  The protocol recovers what the wire loses in a
switch-over.
"""

import pytest
from live import Live

pytestmark = pytest.mark.once("test_migrate saves and loads in both builds")


def travel(live: Live, movers, messages: int) -> None:
    """Move the sides in turn, with @messages between moves."""
    for side in movers:
        live.run(messages)
        live.move(side)
    live.run(messages)
    live.finish()
    assert live.moves == len(movers)


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_one_side_moves(who):
    with Live() as live:
        travel(live, [getattr(live, who)] * 3, 30)
        assert live.switch.lost and live.sender.adapter.stat("ROCE_RETRANSMITS")


def test_both_sides_move():
    with Live(seed=2) as live:
        travel(live, live.sides * 3, 30)


@pytest.mark.long("a few moves of each side are in the gate")
def test_a_hundred_moves():
    with Live(seed=3) as live:
        travel(live, live.sides * 50, 20)

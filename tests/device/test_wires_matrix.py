# SPDX-License-Identifier: GPL-2.0-or-later
"""
Every kind of wire in every bad state, and everything that may happen to the adapter meanwhile: the
product of the three.  QEMU responds, sleeps, keeps no file open, and the wire works afterwards if
there is a peer.

The gate has one case of each kind of wire; together they have each state and each action.
"""

import pytest
from layout import C
from machine import Machine, until
from test_migrate import save
from test_unplug import SLOT, SLOT_DEVICE, unplug
from test_wires import FIRST_PSN, Bench, next_psn
from wires import WIRES, DgramPair, Wire

pytestmark = pytest.mark.once("no observer is in the way between QP and wire")

LAST_PSN = 0x5000               # of the frame that shows that the wire works


# ---- states of the wire, while the adapter sends ----

def blocked(bench: Bench) -> None:
    """The peer does not read."""
    bench.block()


def slow(bench: Bench) -> None:
    """The peer has read some frames, each after QEMU had stopped trying."""
    bench.block()
    for psn in (FIRST_PSN, FIRST_PSN + 1):
        assert bench.psn() == psn
        bench.asleep()


def cut(bench: Bench) -> None:
    """The peer ends in the middle of a frame."""
    bench.block()
    bench.wire.sock.recv(3000)
    bench.wire.kill()
    bench.asleep()


def dead(bench: Bench) -> None:
    """The peer ends between two frames."""
    bench.block()
    bench.wire.kill()
    bench.asleep()


def restarted(bench: Bench) -> None:
    """There is another peer, which does not read, either."""
    dead(bench)
    revive(bench)
    bench.send(8)
    bench.asleep()


def revive(bench: Bench) -> None:
    bench.wire.connect()
    until(bench.linked, "the backend")


# ---- what happens to the adapter ----

def send(bench: Bench, path) -> None:
    bench.send(4)


def reset(bench: Bench, path) -> None:
    for how in ("register", "flr"):
        bench.reset(how)
        bench.send(8)


def saved(bench: Bench, path) -> None:
    save(bench.m, path)
    bench.m.qmp("cont")


def unplugged(bench: Bench, path) -> None:
    unplug(bench.slot)
    bench.asleep()
    bench.plug()
    bench.send(8)


def migrated(bench: Bench, path) -> None:
    """
    The adapter continues in another QEMU, whose wire works, and in the first one if that runs
    again after all.
    """
    bench.send(4)               # there is something to send, whatever was lost
    save(bench.m, path)
    wire = DgramPair()
    with Machine(*SLOT, "-incoming", f"file:{path}", device=SLOT_DEVICE, netdev=wire.netdev,
                 overwrite_freed=True) as other:
        wire.connect()
        until(lambda: other.qmp("query-status")["status"] == "paused", "the state to be loaded")
        other.qmp("cont")
        until(other.sleeps, "the second QEMU to sleep")
        # All frames may have left before the state was saved: then they are repeated.
        other.clock_step(1_000_000_000)
        assert next_psn(wire) >= FIRST_PSN
        wire.end()
    bench.m.qmp("cont")


STATES = (blocked, slow, cut, dead, restarted)
ACTIONS = (send, reset, saved, unplugged, migrated)
MORE = pytest.mark.long("one case of each wire is in the gate")


def possible(wire: type[Wire], state) -> bool:
    """Can @wire be in @state?"""
    return {cut: not wire.whole, restarted: wire.again}.get(state, True)


def cases():
    """All; those for the gate go through states and actions in a diagonal."""
    for i, wire in enumerate(WIRES):
        states = [s for s in STATES if possible(wire, s)]
        for state in states:
            for action in ACTIONS:
                gate = (state, action) == (states[i % len(states)], ACTIONS[i % len(ACTIONS)])
                yield pytest.param(
                    wire, state, action, marks=[] if gate else MORE,
                    id=f"{wire.__name__}-{state.__name__}-{action.__name__}")


def works_again(bench: Bench, state) -> None:
    """A frame sent from now on arrives, behind those that were sent before."""
    if state in (cut, dead):
        if not bench.wire.again:
            return
        revive(bench)
    bench.wire.discard()
    bench.reset("register", LAST_PSN)
    bench.send(1)
    until(lambda: bench.psn() == LAST_PSN, "the last frame")


@pytest.mark.parametrize("wire, state, action", cases())
def test_matrix(wire, state, action, tmp_path):
    bench = Bench(wire())
    try:
        bench.start()
        state(bench)
        files = bench.files()
        action(bench, tmp_path / "state")
        bench.asleep()
        bench.adapter.command(C.QHCA_CMD_NOP)
        # One that tries to reach its peer again has a socket now and then.
        until(lambda: bench.files() <= files, "files to be closed")
        works_again(bench, state)
        bench.asleep()
    finally:
        bench.wire.end()
        bench.m.close()


def test_the_gate_has_each_state_and_action():
    gate = [p.values for p in cases() if not p.marks]
    assert {case[0] for case in gate} == set(WIRES)
    assert {case[1] for case in gate} == set(STATES)
    assert {case[2] for case in gate} == set(ACTIONS)

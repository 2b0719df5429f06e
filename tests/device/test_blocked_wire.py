# SPDX-License-Identifier: GPL-2.0-or-later
"""A peer that does not read, or is gone, while the adapter has frames for it."""

import socket

from machine import Machine, until
from rdma import BTH, Setup, parse
from test_unplug import slot, unplug  # noqa: F401 (a fixture)


class Full:
    """
    The receive queue of the peer, full of frames from elsewhere.  So QEMU's send buffer is empty,
    and only the peer blocks its frames.
    """

    def __init__(self, m: Machine):
        self.m = m
        self.others = []
        while self._fill():
            pass

    def _fill(self) -> int:
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        other.setblocking(False)
        self.others.append(other)
        sent = 0
        try:
            while True:
                other.sendto(b"x", str(self.m.dir / "peer"))
                sent += 1
        except BlockingIOError:
            return sent

    def drain(self) -> list[bytes]:
        """The adapter's frames among all pending ones."""
        frames = []
        while frame := self.m.receive_frame(0):
            if frame != b"x":
                frames.append(frame)
        return frames


def send(s: Setup, count: int = 4) -> None:
    for _ in range(count):
        s.qp.write_send(s.sge(64))
    s.qp.ring_sq()


def psns(m: Machine, count: int) -> list[int]:
    return [parse(m.receive_frame())[BTH].psn for _ in range(count)]


def test_no_spin(adapter):
    """QEMU sleeps while the peer does not read, and continues when it does."""
    s = Setup(adapter)
    full = Full(adapter.m)
    send(s)
    until(adapter.m.sleeps, "QEMU to sleep")
    first = until(full.drain, "the frame that was blocked")
    assert [parse(f)[BTH].psn for f in first] + psns(adapter.m, 4 - len(first)) == [
        200, 201, 202, 203]
    until(adapter.m.sleeps, "QEMU to sleep")


def test_peer_goes_while_it_blocks(adapter):
    """The peer is gone: frames are lost, and QEMU sleeps."""
    m = adapter.m
    s = Setup(adapter)
    Full(m)
    send(s)
    m.wire.close()
    until(m.sleeps, "QEMU to sleep")
    (m.dir / "peer").unlink()
    m.wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    m.wire.bind(str(m.dir / "peer"))
    send(s, 2)
    assert psns(m, 2) == [204, 205], "another peer is at the same place"
    full = Full(m)
    send(s, 2)
    until(m.sleeps, "QEMU to sleep")
    first = until(full.drain, "the frame that was blocked")
    assert [parse(f)[BTH].psn for f in first] + psns(m, 2 - len(first)) == [206, 207]


def test_unplug(slot):
    """The net core drops a held frame together with the device."""
    slot.adapter.start()
    s = Setup(slot.adapter)
    full = Full(slot.m)
    send(s)
    unplug(slot)
    frames = full.drain()
    until(slot.m.sleeps, "QEMU to sleep")
    assert frames + full.drain() == [], "a frame of a device that has gone"


def test_unplug_behind_its_netdev(slot):
    """First the backend is deleted, then the device whose frame it holds."""
    slot.adapter.start()
    s = Setup(slot.adapter)
    full = Full(slot.m)
    send(s)
    slot.m.qmp("netdev_del", id="wire")
    unplug(slot)
    full.drain()
    until(slot.m.sleeps, "QEMU to sleep")

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Live migration under traffic: two machines on a switch, RC messages between them,
and moves of either to another QEMU while messages are in flight.

Time is virtual and advances only when nothing else happens.
"""

import random
import select
from collections import deque

from adapter import CQ, EQ, Adapter
from layout import C
from machine import Machine, until
from rdma import MR, QP, mac_bytes, set_gid

SLOTS, SLOT = 16, 2048          # of messages; bytes
FIRST, SECOND, THIRD = (n * SLOTS * SLOT for n in range(3))     # parts of a region
WORDS = 3 * SLOTS * SLOT        # for atomics
WINDOW = 12                     # messages in flight: fewer than slots
TIMEOUT = 10                    # of the QPs, IBA code: 4.2 ms
STEP_NS = 5_000_000             # of virtual time, if nothing else happens
SLOWLY = 16384                  # bytes/s: copying memory does not end too early
QUEUE = 256                     # frames that wait for a machine to read
ACCESS = (C.QHCA_ACCESS_LOCAL_WRITE | C.QHCA_ACCESS_REMOTE_WRITE
          | C.QHCA_ACCESS_REMOTE_READ | C.QHCA_ACCESS_REMOTE_ATOMIC)


class Switch:
    """
    An Ethernet switch that learns who is where.  It forwards on request.  It drops frames that a
    machine does not read, frames to a deaf machine, and frames from a mute one.
    """

    def __init__(self) -> None:
        self.ports: dict[Machine, deque] = {}
        self.where: dict[bytes, Machine] = {}
        self.deaf: set[Machine] = set()
        self.mute: set[Machine] = set()
        self.lost = 0

    def plug(self, machine: Machine) -> None:
        machine.wire.setblocking(False)
        self.ports[machine] = deque()

    def unplug(self, machine: Machine) -> None:
        self.lost += len(self.ports.pop(machine))
        self.deaf.discard(machine)
        self.mute.discard(machine)

    def deafen(self, machine: Machine) -> None:
        """From now on, what is sent to the machine is lost."""
        self.deaf.add(machine)
        self.lost += len(self.ports[machine])
        self.ports[machine].clear()

    def _give(self, to: Machine, frame: bytes) -> None:
        if to in self.deaf or len(self.ports[to]) == QUEUE:
            self.lost += 1
        else:
            self.ports[to].append(frame)

    def _forward(self, source: Machine, frame: bytes) -> None:
        if source in self.mute:
            self.lost += 1
            return
        self.where[frame[6:12]] = source
        to = self.where.get(frame[:6])
        for port in [to] if to in self.ports else list(self.ports):
            if port is not source:
                self._give(port, frame)

    def _flush(self) -> None:
        for machine, queue in self.ports.items():
            while queue:
                try:
                    machine.wire.sendto(queue[0], str(machine.dir / "qemu"))
                except BlockingIOError:
                    break
                queue.popleft()

    def turn(self, most: int = QUEUE) -> int:
        """Forward at most @most pending frames; returns how many."""
        count = 0
        ready = select.select([m.wire for m in self.ports], [], [], 0)[0]
        for machine in [m for m in self.ports if m.wire in ready]:
            while count < most:
                try:
                    self._forward(machine, machine.wire.recv(65536))
                except BlockingIOError:
                    break
                count += 1
        self._flush()
        return count


class Side:
    """A machine with an adapter and one RC QP."""

    def __init__(self, switch: Switch, number: int):
        self.switch = switch
        self.mac, self.ip = f"02:00:00:00:00:0{number}", f"10.99.0.{number}"
        self.device = f"qhca,id=q,addr=4.0,mac={self.mac}"
        self.m = Machine(device=self.device)
        self.now = 0            # its virtual time, ns
        try:
            switch.plug(self.m)
            self._start()
        except BaseException:
            self.m.close(check=False)
            raise

    def _start(self) -> None:
        self.adapter = Adapter(self.m)
        self.adapter.start()
        self.cq = CQ(self.adapter, EQ(self.adapter), shift=7)
        self.pd = self.adapter.command(C.QHCA_CMD_ALLOC_PD).obj
        set_gid(self.adapter, ip=self.ip, mac=self.mac)
        self.mr = MR(self.adapter, self.pd, WORDS + 64, ACCESS)
        self.qp = QP(self.adapter, self.cq, self.pd)

    def connect(self, peer: "Side") -> None:
        self.qp.to_init(ACCESS & ~C.QHCA_ACCESS_LOCAL_WRITE)
        self.qp.to_rtr(psn=0xFFFFF0, dest_qpn=peer.qp.num, ip=peer.ip, mac=peer.mac, mtu=1)
        self.qp.to_rts(psn=0xFFFFF0, timeout=TIMEOUT)

    def sge(self, at: int, length: int) -> tuple[int, int, int]:
        return self.mr.iova + at, length, self.mr.key

    def remote(self, at: int) -> tuple[int, int]:
        return self.mr.iova + at, self.mr.key

    def word(self, at: int) -> int:
        return int.from_bytes(self.mr.data(8, at), "little")

    def step(self) -> None:
        self.m.clock_step(STEP_NS)
        self.now += STEP_NS

    def close(self, check: bool = True) -> None:
        self.m.close(check)


def pattern(seed: int, length: int) -> bytes:
    return random.Random(seed).randbytes(length)


class Traffic:
    """
    RC messages of all kinds from one side to another, numbered from 0.  Each completion is
    checked: its order, its status, its data.
    """

    KINDS = ("send", "write", "read", "add", "swap", "write_imm")

    def __init__(self, sender: Side, receiver: Side):
        self.sender, self.receiver = sender, receiver
        self.posted = self.done = self.received = self.receives = 0
        self.adds = self.swaps = 0          # of those that are complete
        self.expected: deque = deque()      # receives: message, has it data
        for slot in range(SLOTS):
            receiver.mr.fill(pattern(-1 - slot, SLOT), THIRD + slot * SLOT)
        for side, peer in ((sender, receiver), (receiver, sender)):
            side.connect(peer)
        self._post_receives()

    def _post_receives(self) -> None:
        while self.receives - self.received < SLOTS:
            at = FIRST + self.receives % SLOTS * SLOT
            self.receiver.qp.post_recv(self.receiver.sge(at, SLOT), wr_id=self.receives)
            self.receives += 1

    @staticmethod
    def _length(number: int) -> int:
        return 1 + number * 577 % SLOT

    def _post(self) -> None:
        n = self.posted
        kind, length, at = self.KINDS[n % len(self.KINDS)], self._length(n), n % SLOTS * SLOT
        sender, receiver = self.sender, self.receiver
        if kind in ("send", "write", "write_imm"):
            sender.mr.fill(pattern(n, length), FIRST + at)
            opcode = {"send": C.QHCA_WQE_SEND, "write": C.QHCA_WQE_RDMA_WRITE,
                      "write_imm": C.QHCA_WQE_RDMA_WRITE_IMM}[kind]
            sender.qp.write_send(sender.sge(FIRST + at, length), n, opcode,
                                 remote=(0, 0) if kind == "send" else
                                 receiver.remote(SECOND + at))
            if kind != "write":
                self.expected.append((n, kind == "send"))
        elif kind == "read":
            sender.qp.write_send(sender.sge(SECOND + at, length), n, C.QHCA_WQE_RDMA_READ,
                                 remote=receiver.remote(THIRD + at))
        elif kind == "add":
            sender.qp.write_send(sender.sge(SECOND + at, 8), n, C.QHCA_WQE_FETCH_ADD,
                                 remote=receiver.remote(WORDS), arg0=1)
        else:
            swap = n // len(self.KINDS)
            sender.qp.write_send(sender.sge(SECOND + at, 8), n, C.QHCA_WQE_COMP_SWAP,
                                 remote=receiver.remote(WORDS + 8), arg0=swap, arg1=swap + 1)
        self.posted += 1

    def post(self, limit: int) -> bool:
        """Post up to message @limit, as many as may be in flight."""
        before = self.posted
        while self.posted < limit and self.posted - self.done < WINDOW:
            self._post()
        if self.posted != before:
            self.sender.qp.ring_sq()
        return self.posted != before

    def _complete(self, cqe) -> None:
        n = self.done
        kind, length, at = self.KINDS[n % len(self.KINDS)], self._length(n), n % SLOTS * SLOT
        assert (cqe.wr_id, cqe.status) == (n, C.QHCA_WC_SUCCESS), \
            f"message {n}, {kind}: completion of {cqe.wr_id}, status {cqe.status}"
        if kind in ("write", "write_imm"):
            assert self.receiver.mr.data(length, SECOND + at) == pattern(n, length), \
                f"message {n}: what it wrote is not there"
        elif kind == "read":
            assert (self.sender.mr.data(length, SECOND + at)
                    == pattern(-1 - n % SLOTS, SLOT)[:length]), f"message {n}: it read other data"
        elif kind == "add":
            assert self.sender.word(SECOND + at) == self.adds, f"message {n}: not added once"
            self.adds += 1
        elif kind == "swap":
            assert self.sender.word(SECOND + at) == self.swaps, f"message {n}: not swapped once"
            self.swaps += 1
        self.done += 1

    def _receive(self, cqe) -> None:
        n, has_data = self.expected.popleft()
        slot = self.received % SLOTS
        assert (cqe.wr_id, cqe.status, cqe.byte_len) == (
            self.received, C.QHCA_WC_SUCCESS, self._length(n)), \
            f"receive {self.received} of message {n}: {cqe.wr_id}, status {cqe.status}"
        if has_data:
            data = self.receiver.mr.data(cqe.byte_len, FIRST + slot * SLOT)
            assert data == pattern(n, cqe.byte_len), f"message {n}: it came with other data"
        self.received += 1

    def poll(self) -> bool:
        """Take and check all completions; returns whether there was one."""
        before = self.done, self.received
        while self.receiver.cq.peek():
            self._receive(self.receiver.cq.take())
        while self.sender.cq.peek():
            self._complete(self.sender.cq.take())
        self._post_receives()
        return before != (self.done, self.received)

    def in_flight(self) -> int:
        return self.posted - self.done

    def check_end(self) -> None:
        """Nothing remains, and no atomic was executed twice."""
        assert not self.sender.cq.peek() and not self.receiver.cq.peek()
        assert not self.expected
        assert self.receiver.word(WORDS) == self.adds
        assert self.receiver.word(WORDS + 8) == self.swaps


class Live:
    """Two sides, the traffic between them, and moves; a context manager."""

    def __init__(self, seed: int = 1):
        self.dice = random.Random(seed)
        self.switch = Switch()
        self.sides: list[Side] = []
        self.moves = 0

    def __enter__(self) -> "Live":
        try:
            self.sides = [Side(self.switch, 1)]
            self.sides.append(Side(self.switch, 2))
            self.sender, self.receiver = self.sides
            self.traffic = Traffic(*self.sides)
        except BaseException:
            self.__exit__(True)
            raise
        return self

    def __exit__(self, failed, *_) -> None:
        for side in self.sides:
            side.close(check=not failed)

    # ---- traffic ----

    def _settled(self) -> bool:
        """Has every adapter stopped sending, after an iteration of its main loop?"""
        for _ in range(2):
            for side in self.sides:
                side.m.qmp("query-status")
        return not self.switch.turn() and not any(self.switch.ports.values())

    def _pump(self, limit: int) -> None:
        """Let something happen: a frame, a completion, a message, or else time."""
        moved = self.switch.turn()
        if not (self.traffic.poll() | self.traffic.post(limit)) and not moved \
                and self._settled():
            for side in self.sides:
                side.step()

    def run(self, messages: int) -> None:
        """Continue until MESSAGES more are complete, with others in flight."""
        goal = self.traffic.done + messages

        def done() -> bool:
            self._pump(goal + WINDOW)
            return self.traffic.done >= goal

        until(done, f"message {goal}")

    def finish(self) -> None:
        """Complete all that is in flight."""
        def done() -> bool:
            self._pump(self.traffic.posted)
            return not self.traffic.in_flight() and not self.traffic.expected

        until(done, "the last message")
        self.traffic.check_end()

    # ---- moves ----

    def _precopy(self, source: Machine, path: str) -> None:
        """Messages continue while the guest's memory is copied."""
        source.qmp("migrate-set-parameters", max_bandwidth=SLOWLY)
        source.qmp("migrate", uri=f"unix:{path}")
        until(lambda: source.qmp("query-migrate").get("status") == "active",
              "the migration to begin")
        self.run(2 * WINDOW)
        assert source.qmp("query-migrate")["status"] == "active", "copied too early"

    def _in_the_middle(self) -> None:
        """Post messages, and leave them half complete."""
        self.traffic.post(self.traffic.posted + WINDOW)
        frames = self.dice.randint(0, 3 * WINDOW)

        def reached() -> bool:
            nonlocal frames
            moved = self.switch.turn(frames)
            frames -= moved
            return not frames or (not moved and self._settled())

        until(reached, "frames on the wire")

    def _switch_over(self, side: Side, new: Machine) -> None:
        """
        The wire ends at the old machine, and continues when the new one has sent something.
        Before it stops, the old one is deaf, then works, and then is mute, so that everything it does at the
        end has to be requested again.
        """
        old = side.m
        if self.moves % 3 == 0:
            self.switch.deafen(old)
        elif self.moves % 3 == 2:
            self.switch.mute.add(old)
            until(lambda: not self.switch.turn() and self._settled(), "what is to be lost")
        old.qmp("migrate-set-parameters", max_bandwidth=0)

        def moved() -> bool:
            self.switch.turn()
            return old.qmp("query-migrate")["status"] == "completed"

        until(moved, "the migration to end")
        self.switch.deafen(old)

        def heard() -> bool:
            self.switch.turn()
            return self.switch.where[mac_bytes(side.mac)] is new

        until(heard, "the machine's announcement")
        assert new.qmp("query-status")["status"] == "running"

    def move(self, side: Side) -> None:
        """Move the machine of @side into another QEMU."""
        new = Machine("-incoming", "defer", device=side.device)
        try:
            path = str(new.dir / "migrate")
            new.qmp("migrate-incoming", uri=f"unix:{path}")
            self._precopy(side.m, path)
            new.command("clock_set", side.now)
            self._in_the_middle()
            assert self.traffic.in_flight(), "nothing is in flight"
            self.switch.plug(new)
            self._switch_over(side, new)
        except BaseException:
            self.switch.ports.pop(new, None)
            new.close(check=False)
            raise
        self.switch.unplug(side.m)
        side.m.close()
        side.m = side.adapter.m = new
        self.moves += 1

# SPDX-License-Identifier: GPL-2.0-or-later
"""Cause and effect of events, by QPN, index and PSN."""

from __future__ import annotations

import bisect
import dataclasses
from collections import defaultdict

from .. import roce
from .device_log import Record

# Operations of the BTH without the class (IBA 9.2).
_FIRST_RESPONSE, _LAST_RESPONSE = 0x0D, 0x12
_DATAGRAM_CLASSES = (0x20, 0x60)  # UC, UD: no response
# Codes of completions of receives, from the adapter's contract.
_RECEIVES, _ETHERNET = 0x80, 0x40
_CQ_EVENT = 0x01
PSN = 0xFFFFFF
# A frame that arrives up to this early (ns) is matched with one that was sent.
_STRANGE = 10_000


def is_response(opcode: int) -> bool:
    return _FIRST_RESPONSE <= opcode & 0x1F <= _LAST_RESPONSE


@dataclasses.dataclass(eq=False)
class Message:
    """A send WQE and its effects; lists are in order of time."""

    device: Device
    qpn: int
    index: int
    fetched: int  # number of the record, as all below
    psn: int
    out: list[int] = dataclasses.field(default_factory=list)
    doorbell: int | None = None
    completion: int | None = None


class Device:
    """The records of one adapter, linked to each other."""

    def __init__(self, name: str, records: list[Record]):
        self.name = name
        self.records = records
        self.messages: list[Message] = []
        self.cause: dict[int, int] = {}
        self.frame_of: dict[int, int] = {}  # of a packet's record: its frame's
        self.packet_of: dict[int, list[int]] = defaultdict(list)
        self.message_of: dict[int, Message] = {}  # of a packet out or a completion
        self.context: dict[int, int] = {}  # of a doorbell: the QPC it found
        self.cqe: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.eqe: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.doorbell: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self.marker: dict[int, list[int]] = defaultdict(list)
        self._by_index: dict[tuple[int, int], Message] = {}
        self._sent: dict[int, list[Message]] = defaultdict(list)
        self._rung: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._last: dict[tuple, int] = {}
        self._frames_out: list[tuple] = []  # sent together, without a packet yet
        self._frames_out_time: int | None = None
        self._frames: list[tuple] = []
        self._made: dict[tuple, list[int]] = defaultdict(list)
        self._unsent: dict[tuple, list[int]] = defaultdict(list)
        for number, record in enumerate(records):
            handler = getattr(self, f"_on_{record.kind}", None)
            if handler:
                try:
                    handler(number, record.fields)
                except (KeyError, TypeError, ValueError):
                    pass  # a damaged line is not linked
        self._delayed()

    # ---- one function per kind

    def _on_doorbell(self, number, f):
        self.doorbell[f["doorbell"], f["number"], f["index"]].append(number)
        if f["doorbell"] == 0:
            self._rung[f["number"]].append((number, f["index"]))

    def _on_qpc(self, number, f):
        if number and self.records[number - 1].kind == "doorbell":
            self.context[number - 1] = number

    def _on_marker(self, number, f):
        self.marker[f["value"]].append(number)

    def _on_wqe(self, number, f):
        known = self._by_index.get((f["qpn"], f["index"]))
        if known and not known.out and known.completion is None:
            return  # a datagram's WQE is fetched again if the wire was busy
        message = Message(self, f["qpn"], f["index"], number, f.get("psn", 0))
        self.messages.append(message)
        self._by_index[f["qpn"], f["index"]] = message
        self._sent[f["qpn"]].append(message)
        for rung, head in reversed(self._rung[f["qpn"]]):
            ahead = (head - f["index"]) & 0xFFFFFFFF
            # Not one of an earlier QP with this number either.
            if not 0 < ahead <= 1 << 16 or (known and rung < known.fetched):
                break
            message.doorbell = rung
        if message.doorbell is not None:
            self.cause[number] = message.doorbell
        self._last["walk", f["qpn"]] = number

    def _sender(self, qpn: int, psn: int) -> Message | None:
        """The WQE whose packets have PSN: the newest that matches."""
        for message in reversed(self._sent[qpn]):
            if (psn - message.psn) & PSN < 1 << 23:
                return message
        return None

    def _join(self, packet: int, frame: int) -> None:
        self.frame_of[packet] = frame
        self.packet_of[frame].append(packet)

    def _header(self, number: int) -> tuple | None:
        data = bytes.fromhex(self.records[number].fields.get("data", ""))
        bth = roce.bth(data)
        return bth and (bth.opcode, bth.qpn, bth.psn)

    def _on_frame_out(self, number, f):
        # The packets of a super-frame are recorded together.
        if self.records[number].time != self._frames_out_time:
            self._frames_out, self._frames_out_time = [], self.records[number].time
        frame = (number, self._header(number))
        if frame[1]:
            self._frames_out.append(frame)
            self._frames.append(frame)

    def _on_frame_in(self, number, f):
        header = self._header(number)
        if header:
            self._last["frame_in", header] = number

    def _delayed(self) -> None:
        """Frames that were sent some time after their packet was built (an injected fault can
        delay them)."""
        for frame, header in self._frames:
            if frame not in self.packet_of:
                waiting = [n for n in self._unsent.get(header, ()) if n < frame]
                if waiting:
                    self._join(waiting[-1], frame)
                    self._unsent[header].remove(waiting[-1])
                elif self._made[header]:
                    # Sent twice: it belongs to the nearest packet.
                    near = min(self._made[header], key=lambda n: abs(n - frame))
                    self.packet_of[frame].append(near)

    def _on_tx(self, number, f):
        # The frame was recorded right before the packet, those of a super-frame before
        # the first packet; one that stays within the adapter has none.
        header = (f["opcode"], f["peer"], f["psn"])
        self._made[header].append(number)
        frame = next((n for n, of in self._frames_out if of == header), None)
        if frame is None:
            self._unsent[header].append(number)
            self._frames_out = []
        else:
            self._join(number, frame)
            self._frames_out = [other for other in self._frames_out if other[0] > frame]
        qpn = f["qpn"]
        if is_response(f["opcode"]):
            request = self._last.get(("request", qpn))
            if request is not None:
                self.cause[number] = request
            return
        message = self._sender(qpn, f["psn"])
        if message:
            message.out.append(number)
            self.message_of[number] = message
            self.cause[number] = message.fetched
        self._last["sent", qpn] = number

    def _on_rx(self, number, f):
        frame = self._last.get(("frame_in", (f["opcode"], f["qpn"], f["psn"])))
        if frame is not None:
            self._join(number, frame)
        what = "response" if is_response(f["opcode"]) else "request"
        self._last[what, f["qpn"]] = number

    def _on_rx_drop(self, number, f):
        frame = self._last.get(("frame_in", (f["opcode"], f["qpn"], f["psn"])))
        if frame is not None:
            self._join(number, frame)

    def _on_recv_wqe(self, number, f):
        request = self._last.get(("request", f["qpn"]))
        if request is not None:
            self.cause[number] = request

    def _on_cqe(self, number, f):
        self.cqe[f["cqn"], f["index"]].append(number)
        qpn = f["qpn"]
        cause = None
        if f["opcode"] & _ETHERNET:
            pass  # of the network interface, which has its own numbers
        elif f["opcode"] & _RECEIVES:
            cause = self._last.get(("request", qpn))
        else:
            cause = self._last.get(("response", qpn))
            sent = self._last.get(("sent", qpn))
            if sent is not None and self.records[sent].fields["opcode"] & 0xE0 in _DATAGRAM_CLASSES:
                cause = sent
            message = self._by_index.get((qpn, f["wqe"]))
            if message:
                message.completion = number
                self.message_of[number] = message
                if cause is None or cause < message.fetched:
                    cause = message.fetched
        if cause is not None:
            self.cause[number] = cause
        self._last["cqe", f["cqn"]] = number

    def _on_eqe(self, number, f):
        self.eqe[f["eqn"], f["index"]].append(number)
        completion = self._last.get(("cqe", f["object"]))
        if f["type"] == _CQ_EVENT and completion is not None:
            self.cause[number] = completion
        self._last["eqe"] = number

    def _on_msix(self, number, f):
        event = self._last.pop("eqe", None)
        # Others than event queues raise vectors too.
        if event is not None and number - event <= 2:
            self.cause[number] = event


def pair_frames(devices: list[Device], host,
                error: float) -> dict[tuple[str, int], tuple[str, int]]:
    """Match received with sent frames: (device, number) to (device, number).
    HOST(device, number) is a frame's host time, with an error of at most ERROR.

    The bytes must be equal. Among equal frames (retransmissions and their
    acknowledgments), each received one is matched with the last one sent before it that
    no later one is matched with: this matches as many as possible, in order. If none is
    left, the frame is a copy that the wire made of the last one before it. Pairs are in
    the order of DEVICES and of their records."""
    sent: dict[tuple, list[tuple[float, Device, int]]] = defaultdict(list)
    came: dict[tuple, list[tuple[float, int]]] = defaultdict(list)
    for at, device in enumerate(devices):
        for number, record in enumerate(device.records):
            frame = (record.fields.get("bytes"), record.fields.get("data"))
            if record.kind == "frame_out":
                sent[frame].append((host(device, number), device, number))
            elif record.kind == "frame_in":
                came[at, frame].append((host(device, number), number))
    pairs = {}
    for (at, frame), ins in came.items():
        group = sorted((s for s in sent.get(frame, ()) if s[1] is not devices[at]),
                       key=lambda s: s[0])
        times = [s[0] for s in group]
        free = len(group)       # members of GROUP not yet used
        for now, number in sorted(ins, reverse=True):
            before = bisect.bisect_right(times, now + error)
            free = min(free, before)
            if free:
                free -= 1
                meant = free
            elif before:
                meant = before - 1
            elif group and times[0] <= now + _STRANGE:
                meant = 0       # received before it was sent: report that
            else:
                continue
            pairs[at, number] = (group[meant][1].name, group[meant][2])
    return {(devices[at].name, number): pairs[at, number] for at, number in sorted(pairs)}

# SPDX-License-Identifier: GPL-2.0-or-later
"""Merge the records of guests and adapters into one trace and one packet file."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from ..errors import LabError
from ..pcapng import Packet
from . import names, trace_format
from .causes import Device, pair_frames
from .clocks import HostClock, LabClock, Line, Order, fit, shift
from .device_log import DeviceLog
from .ftrace import Event as GuestEvent
from .ftrace import GuestLog

DRIVER, DEVICE = 1000001, 1000002  # threads; those of applications are real ids


@dataclasses.dataclass
class Source:
    """The records of one guest; None if there are none."""

    name: str
    device: DeviceLog | None
    guest: GuestLog | None
    ip: str = ""


class _Node:
    """A guest while its records are converted to the lab's clock."""

    def __init__(self, number: int, source: Source):
        self.number = number
        self.source = source
        self.name = source.name
        self.device: Device | None = None
        self.shift = 0.0
        self.shift_worst = 0.0
        self.line: Line | None = None
        # Device events by number of the record; guest events by kind and key.
        self.points: dict[int, trace_format.Event] = {}
        self.keyed: dict[tuple, list[trace_format.Event]] = defaultdict(list)
        if source.device:
            self.device = Device(self.name, source.device.records)
            self.host = HostClock(source.device.syncs)

    def host_time(self, number: int) -> float:
        record = self.device.records[number]
        return self.host.host(record.time, record.segment)


def _key(event: GuestEvent) -> tuple | None:
    """The key of a guest's event; None if it has none."""
    f = event.fields
    try:
        match event.name:
            case "wqe" | "qhca_post_send":
                return ("wqe", f["qpn"], f["index"])
            case "doorbell":
                return ("doorbell", f["offset"], f["number"], f["index"])
            case "qhca_doorbell":
                return ("doorbell", f["reg"], f["num"], f["index"])
            case "poll":
                return ("poll", f["cqn"], f["index"])
            case "qhca_poll_cq":
                return ("poll", f["cqn"], f["ci"])
            case "qhca_eqe":
                return ("eqe", f["eqn"], f["index"])
            case "qhca_irq":
                return ("irq", f["vector"])
            case "qhca_cq_event":
                return ("cq_event", f["cqn"])
            case "qhca_aq_cmd":
                return ("aq_cmd", f["opcode"])
            case "qhca_aq_done":
                return ("aq_done", f["opcode"], f["ticket"])
    except KeyError:
        pass
    return None


def _marks(node: _Node) -> list[tuple[int, float, int]]:
    begun, spans = {}, defaultdict(list)
    for event in node.source.guest.events:
        value = event.fields.get("value")
        if event.name == "qhca_marker_begin":
            begun[value] = event.clock
        elif event.name == "qhca_marker" and value in begun:
            spans[value].append((begun.pop(value), event.clock))
    marks = []
    for value, found in spans.items():
        numbers = node.device.marker[value]
        # A repeated value occurs equally often on both sides, or it is ambiguous.
        if len(numbers) == len(found):
            marks += [(before, node.device.records[n].time, after)
                      for (before, after), n in zip(found, numbers)]
    return sorted(marks)


def _orders(node: _Node) -> list[Order]:
    """Pairs of events of a guest and its adapter, of which one caused the other."""
    seen: dict[tuple, list[int]] = defaultdict(list)
    for event in node.source.guest.events:
        key = _key(event)
        if key:
            seen[key].append(event.clock)
    records = node.device.records
    found = []
    sides = (
        ("doorbell", node.device.doorbell, True),
        ("poll", node.device.cqe, False),
        ("eqe", node.device.eqe, False),
    )
    for kind, table, guest_first in sides:
        for key, numbers in table.items():
            clocks = seen.get((kind, *key), ())
            # A reused number occurs equally often on both sides, or it is ambiguous.
            if len(clocks) == len(numbers):
                found += [
                    Order(c, records[n].time, guest_first) for c, n in zip(clocks, numbers)
                ]
    return found


# ------------------------------------------------------------------- the clocks


def _shift_devices(nodes: list[_Node], pairs: dict) -> None:
    """Shift adapters' clocks, within their error, so that no packet arrives before
    it was sent."""
    by_name = {n.name: n for n in nodes}
    placed = {nodes[0].name} if nodes else set()
    for node in nodes[1:]:
        earliest, latest = float("-inf"), float("inf")
        error = node.host.error
        for (to, into), (origin, out) in pairs.items():
            if to == node.name and origin in placed:
                other = by_name[origin]
                gap = other.host_time(out) + other.shift - node.host_time(into)
                earliest = max(earliest, gap + 1)
            elif origin == node.name and to in placed:
                other = by_name[to]
                gap = other.host_time(into) + other.shift - node.host_time(out)
                latest = min(latest, gap - 1)
            else:
                continue
            error = max(error, node.host.error + other.host.error)
        moved = shift(earliest, latest, error)
        node.shift, node.shift_worst = moved.shift, moved.worst
        placed.add(node.name)


# ------------------------------------------------------------------- the events


def _device_events(node: _Node, lab: LabClock, known: names.Names) -> None:
    device = node.device
    for number, record in enumerate(device.records):
        name = names.device_event(record.kind, record.fields)
        if not name:
            continue
        # A packet was sent when its frame was, just before it was traced.
        frame = device.frame_of.get(number) if record.kind == "tx" else None
        if frame is not None and frame > number:
            frame = None  # it was held back
        time = lab.time(node.host_time(number if frame is None else frame)) + node.shift
        node.points[number] = trace_format.Event(
            time, node.number, DEVICE, name, "device", known.args(record.fields), record.kind,
            number,
        )  # fmt: skip


def _guest_events(node: _Node, lab: LabClock, known: names.Names) -> list[trace_format.Event]:
    events = []
    for order, event in enumerate(node.source.guest.events):
        time = lab.time(node.host.host(node.line.time(event.clock))) + node.shift
        provider = not event.name.startswith("qhca_")
        fields = {k: v for k, v in event.fields.items()
                  if k not in ("__probe_ip", "pci", "dev")}
        kind = event.name.removeprefix("qhca_")
        args = known.args(known.decode(kind, fields)) | {"cpu": event.cpu}
        if not provider:
            args["task"] = f"{event.comm}-{event.pid}"
        made = trace_format.Event(
            time, node.number, event.pid if provider else DRIVER,
            names.guest_event(kind, fields), "provider" if provider else "driver", args, kind,
            order,
        )  # fmt: skip
        events.append(made)
        key = _key(event)
        if key:
            node.keyed[key].append(made)
    return events


def _before(events: list[trace_format.Event], time: float) -> trace_format.Event | None:
    """The last of EVENTS (in order of time) not after TIME."""
    return next((e for e in reversed(events) if e.time <= time), None)


def _after(events: list[trace_format.Event], time: float) -> trace_format.Event | None:
    return next((e for e in events if e.time >= time), None)


# ------------------------------------------------------------------- the arrows


class _Arrows:
    def __init__(self, nodes: dict[str, _Node], pairs: dict):
        self.nodes = nodes
        self.flows: list[trace_format.Flow] = []
        self.received: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
        self.sent: dict[tuple[str, int], tuple[str, int]] = {}
        self.drawn: set[tuple[int, int]] = set()
        self.backwards = 0
        for (to, into), (origin, out) in pairs.items():
            outs = nodes[origin].device.packet_of.get(out, ())
            ins = nodes[to].device.packet_of.get(into, ())
            for sent in outs:
                for received in ins:
                    self.received[origin, sent].append((to, received))
                    self.sent[to, received] = (origin, sent)
        self._interrupts()

    def _interrupts(self) -> None:
        """The effects of a CQE in its own adapter and guest, except the poll."""
        self.events_of: dict[tuple[str, int], list[trace_format.Event]] = defaultdict(list)
        for node in self.nodes.values():
            if not node.device:
                continue
            raised: dict[int, int] = {}
            for number, cause in node.device.cause.items():
                if node.device.records[number].kind == "msix":
                    raised[cause] = number
            for number, cause in node.device.cause.items():
                record = node.device.records[number]
                if record.kind != "eqe" or (node.name, cause) in self.events_of:
                    continue
                found = self.events_of[node.name, cause]
                found.append(node.points[number])
                taken = _after(
                    node.keyed.get(("eqe", record.fields["eqn"], record.fields["index"]), []),
                    node.points[number].time,
                )
                if number in raised:
                    interrupt = node.points[raised[number]]
                    found.append(interrupt)
                    vector = node.device.records[raised[number]].fields["vector"]
                    handler = _after(node.keyed.get(("irq", vector), []), interrupt.time)
                    if handler and (not taken or handler.time <= taken.time):
                        found.append(handler)
                if taken:
                    found.append(taken)
                    told = _after(
                        node.keyed.get(("cq_event", record.fields["object"]), []), taken.time
                    )
                    if told:
                        found.append(told)

    def completion(self, node: _Node, number: int) -> list[trace_format.Event]:
        """From a CQE to the application that polls it."""
        fields = node.device.records[number].fields
        written = node.points[number]
        polled = _after(node.keyed.get(("poll", fields["cqn"], fields["index"]), []), written.time)
        way = [e for e in self.events_of.get((node.name, number), ())
               if not polled or e.time <= polled.time]
        return [written, *way] + ([polled] if polled else [])

    def draw(self, name: str, kind: str, events: list[trace_format.Event], **args) -> None:
        """An arrow through EVENTS; steps that would go back in time are omitted."""
        way: list[trace_format.Event] = []
        for event in events:
            if way and event is way[-1]:
                continue
            if way and (event.shown or event.time) < (way[-1].shown or way[-1].time):
                self.backwards += 1
                continue
            way.append(event)
        if len(way) > 1:
            self.flows.append(trace_format.Flow(name, kind, way, args))
            self.drawn.update((id(a), id(b)) for a, b in zip(way, way[1:]))

    def posting(self, node: _Node, message) -> list[trace_format.Event]:
        """From the application to the fetched WQE."""
        fetched = node.points[message.fetched]
        way = []
        written = _before(node.keyed.get(("wqe", message.qpn, message.index), []), fetched.time)
        if written:
            way.append(written)
        if message.doorbell is not None:
            rung = node.points[message.doorbell]
            fields = node.device.records[message.doorbell].fields
            key = ("doorbell", fields["doorbell"], fields["number"], fields["index"])
            store = _before(node.keyed.get(key, []), rung.time)
            way += ([store] if store else []) + [rung]
            context = node.device.context.get(message.doorbell)
            if context is not None:
                way.append(node.points[context])
        return way + [fetched]

    def messages(self) -> None:
        # For a message: the receive that it completed at the peer.
        completes: dict[int, tuple[_Node, int]] = {}
        for node in self.nodes.values():
            if not node.device:
                continue
            for number, cause in node.device.cause.items():
                record = node.device.records[number]
                if record.kind == "cqe" and record.fields["opcode"] & 0x80:
                    origin = self.sent.get((node.name, cause))
                    if origin:
                        sender = self.nodes[origin[0]].device
                        message = sender.message_of.get(origin[1])
                        if message:
                            completes.setdefault(id(message), (node, number))
        for node in self.nodes.values():
            for message in node.device.messages if node.device else ():
                self._message(node, message, completes.get(id(message)))

    def _crossing(self, node: _Node, number: int) -> list[trace_format.Event]:
        """A sent packet, and its arrival at the peer, if any."""
        way = [node.points[number]]
        for to, into in self.received.get((node.name, number), ())[:1]:
            way.append(self.nodes[to].points[into])
        return way

    def _message(self, node: _Node, message, done: tuple[_Node, int] | None) -> None:
        way = self.posting(node, message)
        crossed: list[trace_format.Event] = []
        if message.out:
            crossed = self._crossing(node, message.out[0])
            way += crossed
        # Packets of a message overlap: the arrow follows the first, and at the
        # peer from it to the last. A lost packet is retransmitted.
        if done:
            peer, number = done
            into = peer.device.cause[number]
            if len(crossed) < 2:
                way.append(node.points[self.sent[peer.name, into][1]])
            way.append(peer.points[into])
            way += self.completion(peer, number)
        elif len(message.out) > 1:
            last = self._crossing(node, message.out[-1])
            way += last if len(crossed) < 2 else last[1:]
        label = f"qp {message.qpn} sq {message.index}"
        args = {"guest": node.name, "qpn": message.qpn, "index": message.index}
        self.draw(label, "message", way, **args)
        if message.completion is None:
            return
        back = []
        cause = node.device.cause.get(message.completion)
        if cause is not None and node.device.records[cause].kind == "rx":
            origin = self.sent.get((node.name, cause))
            if origin:
                peer = self.nodes[origin[0]]
                request = peer.device.cause.get(origin[1])
                if request is not None:
                    back.append(peer.points[request])
                back.append(peer.points[origin[1]])
        if cause is not None:
            back.append(node.points[cause])
        self.draw(label, "completion", back + self.completion(node, message.completion), **args)

    def packets(self) -> None:
        """Packets that are not part of another arrow."""
        for (name, number), came in self.received.items():
            for to, into in came:
                a, b = self.nodes[name].points[number], self.nodes[to].points[into]
                if (id(a), id(b)) not in self.drawn:
                    self.draw(f"psn {a.args['psn']}", "packet", [a, b])

    def doorbells(self) -> None:
        for node in self.nodes.values():
            if not node.device:
                continue
            for key, numbers in node.device.doorbell.items():
                for number in numbers:
                    rung = node.points[number]
                    store = _before(node.keyed.get(("doorbell", *key), []), rung.time)
                    if store and (id(store), id(rung)) not in self.drawn:
                        self.draw(rung.name, "doorbell", [store, rung])

    def commands(self) -> None:
        for node in self.nodes.values():
            if not node.device:
                continue
            executed = defaultdict(list)
            for number, record in enumerate(node.device.records):
                if record.kind == "command":
                    executed[record.fields.get("opcode")].append(node.points[number])
            for key, issued in node.keyed.items():
                if key[0] != "aq_cmd":
                    continue
                waiting = list(executed[key[1]])
                for event in issued:
                    while waiting and waiting[0].time < event.time:
                        waiting.pop(0)
                    if not waiting:
                        break
                    done = waiting.pop(0)
                    answer = _after(
                        node.keyed.get(("aq_done", key[1], event.args.get("ticket")), []), done.time
                    )
                    self.draw(f"command {done.args.get('opcode_name', key[1])}", "command",
                              [event, done] + ([answer] if answer else []))


# ------------------------------------------------------------------ the packets


def _comment(node: _Node, frame: int, lost: bool) -> str:
    """The QP, WQE and packet of a frame."""
    parts = []
    for number in node.device.packet_of.get(frame, ()):
        record = node.device.records[number]
        f = record.fields
        operation = f.get("opcode_name", f"opcode {f['opcode']:#x}")
        message = node.device.message_of.get(number)
        if message:
            wqe = node.device.records[message.fetched].fields
            again = " again" if any(
                node.device.records[n].fields["psn"] == f["psn"]
                for n in message.out[: message.out.index(number)]
            ) else ""
            parts.append(f"qp {f['qpn']} sq wqe {message.index} {operation} psn {f['psn']}{again} "
                         f"wr_id {wqe['wr_id']:#x}")
        else:
            parts.append(f"qp {f.get('qpn')} {operation} psn {f.get('psn')}")
    if lost:
        parts.append("did not arrive")
    return ", ".join(parts)


def _packets(nodes: list[_Node], lab: LabClock, pairs: dict) -> list[Packet]:
    """Each frame once: as it was sent, or, from a guest that is not recorded, as it was
    received."""
    arrived = set(pairs.values())
    everybody = len(nodes) > 1
    found = []
    for interface, node in enumerate(nodes):
        for number, record in enumerate(node.device.records):
            out = record.kind == "frame_out"
            if not out and (record.kind != "frame_in" or (node.name, number) in pairs):
                continue
            try:
                data = bytes.fromhex(record.fields["data"])
                length = int(record.fields["bytes"])
            except (KeyError, ValueError, TypeError):
                continue
            roce = bool(node.device.packet_of.get(number))
            lost = everybody and out and roce and (node.name, number) not in arrived
            time = lab.time(node.host_time(number)) + node.shift
            found.append(Packet(max(0, round(time)), interface, out, length, data,
                                _comment(node, number, lost)))
    found.sort(key=lambda p: p.time)
    return found


# -------------------------------------------------------------------- the whole


@dataclasses.dataclass
class Merged:
    """`trace`: what goes into trace.json; `interfaces` and `packets`: into
    wire.pcapng; `problems`: what readers should know."""

    trace: dict
    interfaces: list[str]
    packets: list[Packet]
    problems: list[str]


def merge(sources: list[Source], about: dict | None = None) -> Merged:
    """Merge SOURCES; LabError if none has an adapter's recording."""
    problems: list[str] = []
    nodes = [_Node(n, s) for n, s in enumerate(sources, 1)]
    recorded = [n for n in nodes if n.device]
    if not recorded:
        raise LabError("no guest of the lab has a qhca adapter that was recorded")
    for node in nodes:
        for log in (node.source.device, node.source.guest):
            problems += [f"guest {node.name}: {p}" for p in log.problems] if log else []
    lab = LabClock(min(n.source.device.syncs[0].host for n in recorded), recorded[0].host.still())
    by_name = {n.name: n for n in nodes}
    pairs = pair_frames([n.device for n in recorded], lambda d, n: by_name[d.name].host_time(n),
                        2 * max(n.host.error for n in recorded))
    _shift_devices(recorded, pairs)

    known = names.Names([n.device for n in recorded])
    events: list[trace_format.Event] = []
    clocks = {}
    for node in recorded:
        _device_events(node, lab, known)
        events += node.points.values()
        clock = clocks[node.name] = {
            "adapter_error_ns": round(node.host.error, 1),
            "adapter_shift_ns": round(node.shift, 1),
            "adapter_disorder_ns": round(node.shift_worst, 1),
        }
        if node.shift_worst:
            problems.append(f"guest {node.name}: packets are out of order by "
                            f"{node.shift_worst:.0f} ns, more than the clocks can explain")
        if not node.source.guest or not node.source.guest.events:
            continue
        try:
            node.line = fit(_marks(node), _orders(node), node.source.guest.events[-1].clock)
        except LabError as error:
            problems.append(f"guest {node.name}: driver and provider are missing: {error}")
            continue
        clock |= {
            "guest_clock": node.source.guest.clock,
            "guest_ns_per_tick": node.line.rate,
            "guest_error_ns": round(node.line.error, 1),
            "guest_disorder_ns": round(node.line.worst, 1),
        }
        if node.line.worst:
            problems.append(f"guest {node.name}: its events and its adapter's are out of order by "
                            f"up to {node.line.worst:.0f} ns")
        events += _guest_events(node, lab, known)
    for node in nodes:
        if not node.device:
            problems.append(f"guest {node.name}: nothing is recorded, it has no qhca adapter")

    trace_format.place(events)
    arrows = _Arrows(by_name, pairs)
    arrows.messages()
    arrows.doorbells()
    arrows.commands()
    arrows.packets()

    threads = {}
    comms = {e.pid: e.comm for n in recorded if n.source.guest for e in n.source.guest.events}
    for event in events:
        if (event.pid, event.tid) in threads:
            continue
        if event.tid == DEVICE:
            name, order = "device", 3
        elif event.tid == DRIVER:
            name, order = "driver", 2
        else:
            name, order = f"application {comms.get(event.tid, '?')} {event.tid}", 1
        threads[event.pid, event.tid] = trace_format.Thread(event.pid, event.tid, name, order)
    processes = {
        n.number: f"guest {n.name}" + (f" {n.source.ip}" if n.source.ip else "") for n in nodes
    }
    if arrows.backwards:
        problems.append(f"{arrows.backwards} arrows would go back in time and were omitted")
    other = {
        "format": "qhca timeline", "version": 1, "clock": "nanoseconds since the start, "
        "less the time in which guest " + recorded[0].name + " was stopped", "clocks": clocks,
        "lost": {n.name: {"device": n.source.device.lost,
                          "guest": n.source.guest.lost if n.source.guest else 0}
                 for n in recorded},
        "problems": problems, **(about or {}),
    }  # fmt: skip
    trace = trace_format.render(events, arrows.flows, processes, list(threads.values()), other)
    return Merged(trace, [f"guest {n.name}" for n in recorded], _packets(recorded, lab, pairs),
                  problems)

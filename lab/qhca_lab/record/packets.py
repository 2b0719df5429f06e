# SPDX-License-Identifier: GPL-2.0-or-later
"""wire.pcapng: the frames of a recording, on the clock of the lab, each with a
comment that says whose it is."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable
from pathlib import Path

ROCE_PORT = 4791


@dataclasses.dataclass(frozen=True)
class RoceHeader:
    opcode: int
    qpn: int  # destination
    psn: int


def roce_header(frame: bytes) -> RoceHeader | None:
    """The BTH of FRAME; None if it is no RoCEv2 packet or too short to tell."""
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    kind = frame[at : at + 2]
    at += 2
    if kind == b"\x08\x00" and len(frame) > at + 20:
        protocol, udp = frame[at + 9], at + (frame[at] & 15) * 4
    elif kind == b"\x86\xdd" and len(frame) > at + 40:
        protocol, udp = frame[at + 6], at + 40
    else:
        return None
    if protocol != 17 or len(frame) < udp + 20:
        return None
    if int.from_bytes(frame[udp + 2 : udp + 4], "big") != ROCE_PORT:
        return None
    bth = udp + 8
    return RoceHeader(
        frame[bth],
        int.from_bytes(frame[bth + 5 : bth + 8], "big"),
        int.from_bytes(frame[bth + 9 : bth + 12], "big"),
    )


@dataclasses.dataclass
class Packet:
    """A frame as it goes into the file: nanoseconds, number of the interface, seen
    when it went out or came in, bytes it had on the wire, those that were kept."""

    time: int
    interface: int
    out: bool
    length: int
    data: bytes
    comment: str = ""


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


_END = _option(0, b"")


def write(target: Path, interfaces: list[str], packets: Iterable[Packet], comment: str = "") -> int:
    """Write PACKETS, in their order, as pcapng; returns how many. COMMENT is of
    the whole file."""
    count = 0
    with open(target, "wb") as f:
        options = _option(1, comment.encode()) if comment else b""
        f.write(
            _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + options
                   + _option(4, b"qhca-lab") + _END)
        )
        for name in interfaces:
            # Ethernet; if_tsresol 9: nanoseconds
            f.write(_block(1, struct.pack("<HHI", 1, 0, 65536) + _option(2, name.encode())
                           + _option(9, b"\x09") + _END))
        for p in packets:
            head = struct.pack("<IIIII", p.interface, p.time >> 32, p.time & 0xFFFFFFFF,
                               len(p.data), p.length)
            options = _option(2, struct.pack("<I", 2 if p.out else 1))
            if p.comment:
                options = _option(1, p.comment.encode()) + options
            f.write(_block(6, head + p.data + b"\0" * (-len(p.data) % 4) + options + _END))
            count += 1
    return count

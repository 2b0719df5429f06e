# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet files for Wireshark and tshark, in the format pcapng."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable
from pathlib import Path

# Block types, and options as their blocks number them.
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_OPT_END, _OPT_COMMENT = 0, 1
_SHB_USERAPPL, _IF_NAME, _IF_TSRESOL, _EPB_FLAGS = 4, 2, 9, 2
_ETHERNET, _NANOSECONDS = 1, b"\x09"

# No frame is longer, not even a super-frame: QEMU's NET_BUFSIZE.
SNAPLEN = 68 << 10


@dataclasses.dataclass
class Packet:
    """A frame: time in nanoseconds, number of its interface, whether it was sent there
    (None: unknown), its length on the wire, the captured bytes."""

    time: int
    interface: int
    out: bool | None
    length: int
    data: bytes
    comment: str = ""


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def _block(kind: int, body: bytes, options: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    if options:
        body += options + _option(_OPT_END, b"")
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def write(target: Path, interfaces: list[str], packets: Iterable[Packet], comment: str = "") -> int:
    """Write PACKETS, in their order; returns how many. INTERFACES are the names of
    Ethernet interfaces, COMMENT is for the whole file."""
    count = 0
    with open(target, "wb") as f:
        options = _option(_OPT_COMMENT, comment.encode()) if comment else b""
        f.write(_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1),
                       options + _option(_SHB_USERAPPL, b"qhca-lab")))
        for name in interfaces:
            f.write(_block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, SNAPLEN),
                           _option(_IF_NAME, name.encode())
                           + _option(_IF_TSRESOL, _NANOSECONDS)))
        for p in packets:
            head = struct.pack("<IIIII", p.interface, p.time >> 32, p.time & 0xFFFFFFFF,
                               len(p.data), p.length)
            options = _option(_OPT_COMMENT, p.comment.encode()) if p.comment else b""
            if p.out is not None:
                options += _option(_EPB_FLAGS, struct.pack("<I", 2 if p.out else 1))
            f.write(_block(_PACKET, head + p.data, options))
            count += 1
    return count

# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the headers of a RoCEv2 packet are in an Ethernet frame."""

from __future__ import annotations

import dataclasses

PORT = 4791  # of UDP
UDP = 17  # the protocol of IP
VLAN, SERVICE_VLAN = b"\x81\x00", b"\x88\xa8"
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
ETHERNET_SIZE, TAG_SIZE, IPV4_SIZE, IPV6_SIZE, UDP_SIZE, BTH_SIZE = 14, 4, 20, 40, 8, 12


@dataclasses.dataclass(frozen=True)
class Headers:
    """Offsets of a packet's headers in its frame; SIX: its IP is IPv6."""

    ip: int
    udp: int
    six: bool

    @property
    def bth(self) -> int:
        return self.udp + UDP_SIZE


@dataclasses.dataclass(frozen=True)
class Bth:
    opcode: int
    qpn: int  # destination
    psn: int


def find(frame: bytes) -> Headers | None:
    """The headers of FRAME, tagged or not; None if it is no RoCEv2 packet or too short to
    have a BTH."""
    ip = ETHERNET_SIZE
    while frame[ip - 2 : ip] in (VLAN, SERVICE_VLAN):
        ip += TAG_SIZE
    kind = frame[ip - 2 : ip]
    if kind == IPV4 and len(frame) >= ip + IPV4_SIZE:
        found = Headers(ip, ip + (frame[ip] & 15) * 4, False)
        protocol = frame[ip + 9]
    elif kind == IPV6 and len(frame) >= ip + IPV6_SIZE:
        found = Headers(ip, ip + IPV6_SIZE, True)
        protocol = frame[ip + 6]
    else:
        return None
    if protocol != UDP or len(frame) < found.bth + BTH_SIZE:
        return None
    return found if number(frame, found.udp + 2) == PORT else None


def bth(frame: bytes) -> Bth | None:
    """The BTH of FRAME; None as for find()."""
    found = find(frame)
    if not found:
        return None
    at = found.bth
    return Bth(frame[at], number(frame, at + 5, 3), number(frame, at + 9, 3))


def number(frame: bytes, at: int, size: int = 2) -> int:
    """The number of SIZE bytes in FRAME, in network byte order."""
    return int.from_bytes(frame[at : at + size], "big")

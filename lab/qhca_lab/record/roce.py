# SPDX-License-Identifier: GPL-2.0-or-later
"""The RoCEv2 header of a frame."""

from __future__ import annotations

import dataclasses

ROCE_PORT = 4791


@dataclasses.dataclass(frozen=True)
class RoceHeader:
    opcode: int
    qpn: int  # destination
    psn: int


def roce_header(frame: bytes) -> RoceHeader | None:
    """The BTH of FRAME; None if it is not a RoCEv2 packet or is too short to tell."""
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

# SPDX-License-Identifier: GPL-2.0-or-later
"""Splitting super-frames of RoCEv2: packets of a message that passed the wire as one
(the manual, section 16). A capture shows the packets, as if there were no super-frames."""

from __future__ import annotations

import struct
import zlib

from . import roce

_MAGIC = b"QSFG"
_TRAILER = struct.Struct(">4sHH")
# Operations of SEND, RDMA WRITE and READ response: the middle one, the first, and for
# each that ends a message, the one that does not begin it as well.
_SEND = (0x01, 0x00, {0x02: 0x02, 0x03: 0x03, 0x04: 0x02, 0x05: 0x03, 0x16: 0x16, 0x17: 0x16})
_WRITE = (0x07, 0x06, {0x08: 0x08, 0x09: 0x09, 0x0A: 0x08, 0x0B: 0x09})
_READ = (0x0E, 0x0D, {0x0F: 0x0F, 0x10: 0x0F})
_BEGINS = {0x00, 0x04, 0x05, 0x17, 0x06, 0x0A, 0x0B, 0x0D, 0x10}
# Bytes of extended headers at the beginning and at the end of a message. An AETH is
# both, and there is one even in a packet that is both.
_RETH = {0x06: 16, 0x0A: 16, 0x0B: 16}
_TAIL = {0x03: 4, 0x05: 4, 0x16: 4, 0x17: 4, 0x09: 4, 0x0B: 4, 0x0D: 4, 0x0F: 4, 0x10: 4}
_RC, _UC, _XRC = 0x00, 0x20, 0xA0
_MTUS = (256, 512, 1024, 2048, 4096)
_MOST = 128  # packets in a super-frame


def cut(frame: bytes) -> list[bytes]:
    """The packets of FRAME as frames, if it is a super-frame of RoCEv2 and intact;
    else FRAME itself."""
    return _cut(frame) or [frame]


def _cut(frame: bytes) -> list[bytes] | None:
    headers = roce.find(frame)
    if not headers:
        return None
    ip, udp, bth, six = headers.ip, headers.udp, headers.bth, headers.six
    end = len(frame) - _TRAILER.size - 4  # of the payload and its pad
    if (
        end < bth + roce.BTH_SIZE
        or ip != (18 if frame[12:14] == roce.VLAN else 14)
        or (frame[ip] >> 4 != 6 if six else frame[ip] != 0x45)
        or roce.number(frame, ip + (4 if six else 2)) != end + 4 - (udp if six else ip)
        or roce.number(frame, udp + 4) != end + 4 - udp
    ):
        return None
    magic, size, count = _TRAILER.unpack_from(frame, end + 4)
    op, kind = frame[bth] & 0x1F, frame[bth] & 0xE0
    family = next((f for f in (_SEND, _WRITE, _READ) if op in (f[0], f[1]) or op in f[2]), None)
    if (
        magic != _MAGIC
        or not 2 <= count <= _MOST
        or size not in _MTUS
        or family is None
        or kind not in (_RC, _UC, _XRC)
        or (kind == _UC and op > 0x0B)
    ):
        return None
    middle, first, lasts = family
    at = bth + roce.BTH_SIZE
    xrceth = frame[at : at + 4] if kind == _XRC and family is not _READ else b""
    at += len(xrceth)
    reth = frame[at : at + _RETH.get(op, 0)]
    at += len(reth)
    tail = frame[at : at + _TAIL.get(op, 0)]
    at += len(tail)
    pad = frame[bth + 1] >> 4 & 3
    payload = frame[at : end - pad]
    before = (count - 1) * size
    if (
        (end - at) % 4
        or not before < len(payload) <= len(payload) + pad <= before + size
        or _icrc(frame[ip:end], six) != frame[end : end + 4]
        or (not six and _sum(frame[ip : ip + 20]) != 0xFFFF)
    ):
        return None
    psn = roce.number(frame, bth + 9, 3)
    made = []
    for number in range(count):
        data = payload[number * size : (number + 1) * size]
        ends = number + 1 == count
        what = first if number == 0 and op in _BEGINS else lasts.get(op, middle) if ends else middle
        pad = -len(data) % 4
        flags = frame[bth + 1] & (0xCF if ends else 0x4F) | pad << 4
        ack = frame[bth + 8] & 0x80 if ends else 0
        head = bytes([kind | what, flags]) + frame[bth + 2 : bth + 8]
        head += bytes([ack]) + ((psn + number) & 0xFFFFFF).to_bytes(3, "big")
        head += xrceth + (reth if what == 0x06 else b"") + (tail if what in _TAIL else b"")
        made.append(_seal(frame[:bth], ip, six, head + data + bytes(pad)))
    return made


def _seal(head: bytes, ip: int, six: bool, body: bytes) -> bytes:
    """The frame with the headers HEAD up to UDP, with correct lengths, checksum and ICRC."""
    out = bytearray(head + body)
    length = 8 + len(body) + 4
    struct.pack_into(">H", out, len(head) - 4, length)
    if six:
        struct.pack_into(">H", out, ip + 4, length)
    else:
        struct.pack_into(">H", out, ip + 2, 20 + length)
        struct.pack_into(">H", out, ip + 10, 0)
        struct.pack_into(">H", out, ip + 10, ~_sum(out[ip : ip + 20]) & 0xFFFF)
    return bytes(out + _icrc(out[ip:], six))


def _sum(header: bytes) -> int:
    """The checksum of an IPv4 header without options; valid: 0xffff."""
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) + (total >> 16)


def _icrc(packet: bytes, six: bool) -> bytes:
    """ICRC of the packet from its IP header on, without the ICRC (annex A17.3.3)."""
    masked = bytearray(packet)
    if six:
        masked[0] |= 0x0F  # traffic class, flow label, hop limit
        masked[1] = masked[2] = masked[3] = masked[7] = 0xFF
    else:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xFF
    udp = roce.IPV6_SIZE if six else roce.IPV4_SIZE
    masked[udp + 6] = masked[udp + 7] = 0xFF
    masked[udp + 8 + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))

# SPDX-License-Identifier: GPL-2.0-or-later
"""Capturing the lab's wire: QEMU's filter-dump at the guests' ends, as pcapng.

With two guests one guest's end sees every frame, with one clock. With more,
each guest's own frames are taken at its end and merged; clocks are then brought
together by the host's time of the last write, good to some milliseconds.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from .errors import LabError

_PCAP = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")


def start(lab) -> None:
    """Begin a capture; LabError when one runs already."""
    if lab.state.get("capture"):
        raise LabError("a capture runs already: 'qhca-lab capture --stop' ends it")
    several = len(lab.guests) > 2
    points = {}
    for guest in lab.guests if several else [lab["a"]]:
        path = lab.dir / f"{guest.name}.pcap"
        with guest.qmp() as qmp:
            qmp.command(
                "object-add",
                {
                    "qom-type": "filter-dump",
                    "id": "capture0",
                    "netdev": "net0",
                    "file": str(path),
                    "maxlen": 65536,
                    # "rx" is what the wire receives: the guest's own frames.
                    "queue": "rx" if several else "all",
                },
            )
        points[guest.name] = str(path)
    lab.state["capture"] = points
    lab.save()


def stop(lab, target: Path) -> int:
    """End the capture, write TARGET, return the number of frames."""
    points = lab.state.pop("capture", None)
    if not points:
        raise LabError("no capture runs")
    lab.save()
    frames = []
    for index, (name, path) in enumerate(points.items()):
        try:
            with lab[name].qmp() as qmp:
                qmp.command("object-del", {"id": "capture0"})
        except LabError:
            if lab[name].alive:
                raise
        frames += read_pcap(Path(path), index)
        os.unlink(path)
    frames.sort(key=lambda frame: frame[0])
    write_pcapng(target, [f"guest {name}" for name in points], frames)
    return len(frames)


def read_pcap(path: Path, interface: int) -> list[tuple[int, int, int, bytes]]:
    """Frames of a filter-dump file as (microseconds, interface, length, data).

    The times are shifted so that the last frame has the file's own time. A
    frame cut short by QEMU's end is left out.
    """
    data = path.read_bytes()
    written = int(path.stat().st_mtime * 1e6)
    frames = []
    at = _PCAP.size
    while at + _RECORD.size <= len(data):
        seconds, micros, kept, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + kept > len(data):
            break
        frames.append(
            (seconds * 1000000 + micros, interface, length, data[at : at + kept])
        )
        at += kept
    if frames:
        shift = written - frames[-1][0]
        frames = [(f[0] + shift,) + f[1:] for f in frames]
    return frames


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def write_pcapng(target: Path, interfaces: list[str], frames) -> None:
    """Write FRAMES as read_pcap() gives them, one Ethernet interface each of
    INTERFACES (names); times in microseconds."""
    with open(target, "wb") as f:
        f.write(
            _block(
                0x0A0D0D0A,
                struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
                + _option(4, b"qhca-lab")
                + _option(0, b""),
            )
        )
        for name in interfaces:
            f.write(
                _block(
                    1,
                    struct.pack("<HHI", 1, 0, 65536)
                    + _option(2, name.encode())
                    + _option(9, b"\x06")
                    + _option(0, b""),
                )
            )
        for micros, interface, length, data in frames:
            head = struct.pack(
                "<IIIII", interface, micros >> 32, micros & 0xFFFFFFFF, len(data), length
            )
            f.write(_block(6, head + data + b"\0" * (-len(data) % 4)))

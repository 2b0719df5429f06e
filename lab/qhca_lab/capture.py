# SPDX-License-Identifier: GPL-2.0-or-later
"""Capturing the lab's wire: QEMU's filter-dump at the guests' ends, as pcapng.

With two guests, one guest's end sees every frame, on one clock. With more, each
guest's own frames are captured at its end and merged; the clocks are then aligned by
the host's time of the last write, to within some milliseconds.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from . import pcapng, super_frame
from .errors import LabError

_PCAP = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")


def start(lab) -> None:
    """Start a capture; LabError if one is already running."""
    if lab.state.get("capture"):
        raise LabError("a capture is already running: 'qhca-lab capture --stop' ends it")
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
                    "maxlen": pcapng.SNAPLEN,
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
        raise LabError("no capture is running")
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
    frames.sort(key=lambda frame: frame.time)
    return pcapng.write(target, [f"guest {name}" for name in points], frames)


def read_pcap(path: Path, interface: int) -> list[pcapng.Packet]:
    """Frames of a filter-dump file.

    A super-frame of RoCEv2 is split into its packets, which get its time. Times are
    shifted so that the last frame has the file's own time. A frame that is truncated
    because QEMU ended is left out.
    """
    data = path.read_bytes()
    written = path.stat().st_mtime_ns
    frames = []
    at = _PCAP.size
    while at + _RECORD.size <= len(data):
        seconds, micros, kept, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + kept > len(data):
            break
        time = (seconds * 1000000 + micros) * 1000
        frame = data[at : at + kept]
        for packet in super_frame.cut(frame) if kept == length else [frame]:
            whole = len(packet) if packet is not frame else length
            frames.append(pcapng.Packet(time, interface, None, whole, packet))
        at += kept
    shift = written - frames[-1].time if frames else 0
    for frame in frames:
        frame.time += shift
    return frames

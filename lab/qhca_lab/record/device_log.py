# SPDX-License-Identifier: GPL-2.0-or-later
"""What an adapter recorded (QMP command qhca-record-start): JSON lines."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from ..errors import LabError


@dataclasses.dataclass
class Sync:
    """A reading of both clocks, ns; `width`: the distance of the host's readings before and after."""

    time: int
    host: int
    width: int
    running: bool


@dataclasses.dataclass
class Record:
    """One line. `segment`: number of clock readings before it."""

    kind: str
    time: int
    fields: dict
    segment: int


@dataclasses.dataclass
class DeviceLog:
    """A whole file. `lost`: number of events missing at the end, None if unknown because
    the file is incomplete."""

    start: dict
    records: list[Record]
    syncs: list[Sync]
    lost: int | None
    problems: list[str]


def _number(line: dict, name: str) -> int:
    value = line.get(name)
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError(name)
    return value


def parse(text: str, name: str = "the device's record") -> DeviceLog:
    """Read the lines of TEXT. Invalid lines and an incomplete last one are reported in
    `problems` and omitted; LabError if it is not a recording at all."""
    log = DeviceLog({}, [], [], None, [])
    bad = 0
    lines = text.split("\n")
    if lines.pop():
        log.problems.append(f"{name} ends in the middle of a line: QEMU was killed")
    for number, raw in enumerate(lines, 1):
        try:
            line = json.loads(raw)
            kind = line["kind"]
            if kind == "start":
                if line.get("version") != 1:
                    raise LabError(f"{name} has version {line.get('version')}, not 1")
                log.start = line
            elif kind == "sync":
                log.syncs.append(
                    Sync(_number(line, "time"), _number(line, "host"),
                         _number(line, "width"), bool(line["running"]))
                )
            elif kind == "end":
                log.lost = _number(line, "lost")
            else:
                time = _number(line, "time")
                log.records.append(Record(str(kind), time, line, len(log.syncs)))
        except (ValueError, KeyError, TypeError, AttributeError):
            bad += 1
            if bad <= 3:
                log.problems.append(f"{name}, line {number} makes no sense: {raw[:80]!r}")
    if bad > 3:
        log.problems.append(f"{name}: {bad} lines in all make no sense")
    if not log.start or not log.syncs:
        raise LabError(f"{name} is not the recording of an adapter")
    if log.lost is None:
        log.problems.append(f"{name} has no end: what came last may be missing")
    elif log.lost:
        log.problems.append(f"{name}: {log.lost} events are missing at its end")
    return log


def read(path: Path) -> DeviceLog:
    try:
        return parse(path.read_text(errors="replace"), path.name)
    except OSError as error:
        raise LabError(f"no recording of the adapter: {error}") from error

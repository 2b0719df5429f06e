# SPDX-License-Identifier: GPL-2.0-or-later
"""Starting and stopping a recording in a lab that is up."""

from __future__ import annotations

import json
from pathlib import Path

from .. import pcapng
from ..errors import LabError
from ..page import TraceError, render
from . import device_log, ftrace
from .merge import Merged, Source, merge


# A page with more events than this would be useless.
PAGE_EVENTS = 200_000


class Recording:
    """A recording of all guests of LAB that have a qhca adapter, into FOLDER.

    with Recording(lab, Path("run")) as recording:
        ...
    recording.result.problems
    """

    def __init__(self, lab, folder: Path, buffer_mb: float = 16, limit_mb: float = 256,
                 frame_bytes: int = 256, provider: bool = True, about: dict | None = None):
        if not 0.1 <= buffer_mb <= 512:
            raise LabError("the guests' buffer must have 0.1 to 512 MB")
        if not 0.1 <= limit_mb <= 1 << 20:
            raise LabError("the adapters' files must have at least 0.1 MB")
        if not 0 <= frame_bytes <= 65536:
            raise LabError("0 to 65536 bytes of a frame can be kept")
        self.lab = lab
        self.folder = Path(folder)
        self.buffer_kb = int(buffer_mb * 1024)
        self.limit = int(limit_mb * (1 << 20))
        self.frame_bytes = frame_bytes
        self.provider = provider
        self.about = dict(about or {})
        self.result: Merged | None = None
        self._notes: list[str] = []
        self._devices: list = []
        self._tracing: list = []

    def _raw(self, name: str, what: str) -> Path:
        return self.folder / "raw" / f"{name}.{what}"

    def start(self) -> None:
        guests = [g for g in self.lab.guests if g.nic.split(":")[0] == "qhca"]
        if not guests:
            raise LabError("no guest of this lab has a qhca adapter: nothing can be recorded")
        (self.folder / "raw").mkdir(parents=True, exist_ok=True)
        for old in (self.folder / "raw").iterdir():
            old.unlink()
        about = {"ip": {g.name: g.ip for g in self.lab.guests}, "about": self.about}
        (self.folder / "raw" / "about.json").write_text(json.dumps(about, indent=1) + "\n")
        try:
            for guest in guests:
                with guest.qmp() as qmp:
                    qmp.command("qhca-record-start", {
                        "file": str(self._raw(guest.name, "device").resolve()),
                        "limit": self.limit, "frame-bytes": self.frame_bytes,
                    })  # fmt: skip
                self._devices.append(guest)
            for guest in guests:
                self._tracing.append(guest)
                why = ftrace.start(guest, self.buffer_kb, self.provider)
                if why:
                    self._notes.append(f"guest {guest.name}: no events of the provider: {why}")
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Stop it without a result."""
        for guest in self._tracing:
            try:
                ftrace.clean(guest)
            except LabError:
                pass
        for guest in self._devices:
            try:
                with guest.qmp() as qmp:
                    qmp.command("qhca-record-stop")
            except LabError:
                pass
        self._tracing, self._devices = [], []

    def stop(self) -> Merged:
        """Stop it, write trace.json and wire.pcapng; returns the result."""
        for guest in self._tracing:
            try:
                self._raw(guest.name, "guest").write_text(ftrace.stop(guest))
            except LabError as error:
                self._notes.append(f"guest {guest.name}: its trace is lost: "
                                   f"{str(error).splitlines()[0]}")
        for guest in self._devices:
            try:
                with guest.qmp() as qmp:
                    reply = qmp.command("qhca-record-stop")
                if reply.get("error"):
                    self._notes.append(f"guest {guest.name}: its adapter's file could not be "
                                       f"written: {reply['error']}")
            except LabError as error:
                self._notes.append(f"guest {guest.name}: {error}")
        self._tracing, self._devices = [], []
        self.result = merge_folder(self.folder, self._notes)
        return self.result

    def __enter__(self) -> Recording:
        self.start()
        return self

    def __exit__(self, kind, _value, _traceback) -> None:
        if kind is not None and not issubclass(kind, (KeyboardInterrupt, SystemExit)):
            self.abort()
        else:
            self.stop()


def merge_folder(folder: Path, notes: list[str]) -> Merged:
    """Build the files of FOLDER from FOLDER/raw; NOTES precede the problems."""
    raw = folder / "raw"
    try:
        about = json.loads((raw / "about.json").read_text())
        guests = dict(about["ip"])
        more = dict(about["about"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(f"{raw} holds no recording: {error}") from None
    sources = []
    for name, ip in guests.items():
        device, guest = raw / f"{name}.device", raw / f"{name}.guest"
        sources.append(Source(
            name, device_log.read(device) if device.exists() else None,
            ftrace.parse(guest.read_text(errors="replace"), guest.name)
            if guest.exists() else None, str(ip),
        ))  # fmt: skip
    merged = merge(sources, more)
    merged.problems[:0] = notes
    merged.trace["otherData"]["problems"] = merged.problems
    write(merged, folder)
    return merged


def write(merged: Merged, folder: Path) -> None:
    """Write trace.json, wire.pcapng and, unless there are too many events, page.html to
    FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "trace.json", "w") as f:
        # One event per line, for people and diff.
        trace = dict(merged.trace)
        events = trace.pop("traceEvents")
        f.write(json.dumps(trace, indent=1)[:-2] + ',\n "traceEvents": [\n')
        f.write(",\n".join(json.dumps(e, separators=(",", ":")) for e in events))
        f.write("\n]}\n")
    pcapng.write(folder / "wire.pcapng", merged.interfaces, merged.packets,
                 "times are those of trace.json: the virtual clock of the lab, from 0 at "
                 "the begin of the recording")
    page = folder / "page.html"
    page.unlink(missing_ok=True)
    if len(merged.trace["traceEvents"]) <= PAGE_EVENTS:
        try:
            page.write_text(render(merged.trace), encoding="utf-8")
        except TraceError as error:
            merged.problems.append(f"no page.html: {error}")
    else:
        merged.problems.append("no page.html: there is too much for one page; "
                               "open trace.json in Perfetto")

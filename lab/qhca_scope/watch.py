# SPDX-License-Identifier: GPL-2.0-or-later
"""A line for each event of the adapters of a lab."""

from __future__ import annotations

import json
import sys
import time

from qhca_lab import LabError
from qhca_lab.qmp import wait_any

from . import render

# QEMU's events that matter here, in words.
WORDS = {
    "STOP": "stopped", "RESUME": "goes on", "RESET": "was reset", "SHUTDOWN": "shuts down",
    "DEVICE_DELETED": "lost a device", "GUEST_PANICKED": "panicked",
}


def watch(machines, out, trail: bool) -> int:
    """Print until Ctrl-C (status 0), or until all guests are gone."""
    begin = time.time()
    for machine in machines:
        machine.qmp.poll_events()
    said(out, {"event": "watching", "guests": [m.name for m in machines]},
         [("dim", "watching " + ", ".join(f"guest {m.name}" for m in machines)
           + "; press Ctrl-C to stop")])
    try:
        while machines:
            wait_any([m.qmp for m in machines], None)
            for machine in list(machines):
                try:
                    events = machine.qmp.poll_events()
                    for event in events:
                        show(out, machine, event, trail, begin)
                except LabError:
                    machines.remove(machine)
                    said(out, {"guest": machine.name, "event": "gone"},
                         [("bad", f"guest {machine.name}: QEMU has ended")])
    except KeyboardInterrupt:
        pass
    return 0


def show(out, machine, event: dict, trail: bool, begin: float) -> None:
    name, data = event["event"], event.get("data", {})
    stamp = event["timestamp"]
    when = stamp["seconds"] + stamp["microseconds"] / 1e6
    line: render.Line = [("dim", f"{max(0.0, when - begin):9.3f} s  "),
                        ("name", f"guest {machine.name}  ")]
    if name == "QHCA_STOP":
        stop = data["stop"]
        message = {"guest": machine.name, "event": name, "when": when, **stop}
        lines = [[*line, ("path", render.sentence(stop["look"]))]]
        if trail:
            look = machine.stop_look()["look"]
            message["trail"] = look.get("trail", [])
            lines += [[("dim", " " * 12), *text] for text in render.trail_lines(look)]
        said(out, message, *lines)
    elif name in WORDS:
        said(out, {"guest": machine.name, "event": name, "when": when, "data": data},
             [*line, ("dim", WORDS[name])])


def said(out, message: dict, *lines: render.Line) -> None:
    if out.json:
        print(json.dumps(message), flush=True)
    else:
        out.lines(list(lines))
    sys.stdout.flush()

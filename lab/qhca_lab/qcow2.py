# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images that can hold snapshots. QEMU makes them; there is no qemu-img."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .errors import LabError
from .paths import QEMU


def create(path: Path, backing: Path) -> None:
    """A qcow2 image at PATH on top of the raw image BACKING, which nobody
    writes to any more from then on."""
    with subprocess.Popen(
        [str(QEMU), "-machine", "none", "-nodefaults", "-display", "none", "-qmp", "stdio"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as qemu:  # fmt: skip

        def command(name: str, **arguments):
            request = {"execute": name, "arguments": arguments}
            qemu.stdin.write(json.dumps(request) + "\n")
            qemu.stdin.flush()
            for line in qemu.stdout:
                reply = json.loads(line)
                if "error" in reply:
                    raise LabError(f"{path}: {reply['error']['desc']}")
                if "return" in reply:
                    return reply["return"]
            raise LabError(f"{path}: QEMU ended")

        def job(name: str, options: dict) -> None:
            command("blockdev-create", **{"job-id": name, "options": options})
            while True:
                (state,) = [j for j in command("query-jobs") if j["id"] == name]
                if state["status"] == "concluded":
                    break
            command("job-dismiss", id=name)
            if "error" in state:
                raise LabError(f"{path}: {state['error']}")

        try:
            qemu.stdout.readline()  # the greeting
            command("qmp_capabilities")
            job("file", {"driver": "file", "filename": str(path), "size": 0})
            command("blockdev-add", **{
                "driver": "file", "node-name": "file", "filename": str(path),
            })  # fmt: skip
            job("qcow2", {
                "driver": "qcow2", "file": "file", "size": backing.stat().st_size,
                "backing-file": str(backing), "backing-fmt": "raw",
            })  # fmt: skip
            command("quit")
        finally:
            qemu.kill()

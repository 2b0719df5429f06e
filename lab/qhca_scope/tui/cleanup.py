# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that outlives the terminal interface: if that dies, by any signal, it removes
the breaks and resumes the guests."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys

from qhca_lab import LabError

from ..sync_daemon import PROGRAM
from .model import undo


class Cleanup:
    """The interface's end: tell() what would have to be undone, bye() if nothing."""

    def __init__(self, lab):
        with open(lab.logs / "scope-cleanup.log", "ab") as log:
            self._child = subprocess.Popen(
                [str(PROGRAM), "--lab", lab.name, "_cleanup"], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=log, start_new_session=True, cwd="/",
            )
        self._told: dict | None = None

    def tell(self, report: dict) -> None:
        if report != self._told:
            self._say(report)
            self._told = json.loads(json.dumps(report))

    def bye(self) -> None:
        self._say("bye")
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        self._child.wait()

    def _say(self, what) -> None:
        with contextlib.suppress(OSError):
            self._child.stdin.write(json.dumps(what).encode() + b"\n")
            self._child.stdin.flush()


def main(scope, lines=None) -> int:
    """Read reports until the end; undo the last one unless it says bye."""
    last = None
    for line in lines if lines is not None else sys.stdin:
        with contextlib.suppress(ValueError):
            last = json.loads(line)
    if not isinstance(last, dict):
        return 0
    try:
        undo(scope, last)
    except LabError as error:
        print(f"cleanup of lab {scope.lab.name}: {error}", file=sys.stderr)
        return 1
    return 0

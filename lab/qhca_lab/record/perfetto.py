# SPDX-License-Identifier: GPL-2.0-or-later
"""SQL queries of recordings, by Perfetto's own trace processor, as in ui.perfetto.dev."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from ..errors import LabError
from ..paths import TOP

PROCESSOR = TOP / "lab" / "perfetto" / "processor.mjs"


def folder() -> str:
    """The path of the processor; LabError, with the way to install it, if it is missing."""
    got = subprocess.run([TOP / "lab" / "perfetto" / "fetch-perfetto", "--cached"], capture_output=True,
                         text=True, check=False)
    if got.returncode:
        raise LabError(got.stderr.strip().removeprefix("qhca: error: "))
    return got.stdout.strip()


def query(trace: Path, *queries: str, timeout: float = 600) -> list[list[dict]]:
    """Load the file TRACE and run QUERIES, SQL as of Perfetto's documentation; for
    each its rows. LabError with the processor's own
    words when it refuses the trace or a query."""
    if not Path(trace).exists():
        raise LabError(f"there is no {trace}")
    where = folder()
    try:
        done = subprocess.run(["node", PROCESSOR, where, trace],
                              input=json.dumps(queries), capture_output=True, text=True,
                              check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise LabError(f"Perfetto's trace processor did not respond in {timeout:.0f} s") from None
    if done.returncode:
        before, mark, said = done.stderr.partition("perfetto: ")
        raise LabError(f"Perfetto reports: {(said if mark else before).strip()}")
    return json.loads(done.stdout)


def table(rows: list[dict]) -> list[str]:
    """ROWS as lines for people and for cut(1): names, then values, tabs between."""
    if not rows:
        return []
    cells = [list(rows[0])] + [["" if v is None else str(v) for v in row.values()] for row in rows]
    return ["\t".join(line) for line in cells]

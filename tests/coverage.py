#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests reach: lines and branches of each source file, worst first.

    coverage.py [--lines MIN] [--branches MIN] [--missing] SOURCES OBJECTS...

SOURCES is the folder whose files count, OBJECTS are folders of objects built
with gcc --coverage that have run. --missing names the lines too. Exit status 1
when a total is below its minimum.

A line that cannot be reached says so, and why: `... /* GCOVR_EXCL_LINE: why */`.
Such lines are counted and shown, not forgotten.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

EXCLUDED = "GCOVR_EXCL_LINE"


class Source:
    """One file; what several objects have of it (a header) is added up."""

    def __init__(self, path: Path):
        self.path = path
        self.lines: dict[int, int] = defaultdict(int)
        self.branches: dict[tuple[int, str], list[int]] = {}
        text = path.read_text().splitlines()
        self.excluded = {n for n, line in enumerate(text, 1) if EXCLUDED in line}

    def add(self, line: dict) -> None:
        number = line["line_number"]
        self.lines[number] += line["count"]
        # inline functions are laid out the same in each object
        key = (number, line.get("function_name", ""))
        counts = [branch["count"] for branch in line["branches"]]
        old = self.branches.get(key, [])
        if len(old) == len(counts):
            counts = [a + b for a, b in zip(old, counts)]
        if len(counts) >= len(old):
            self.branches[key] = counts

    def line_counts(self) -> list[int]:
        return [c for n, c in self.lines.items() if n not in self.excluded]

    def branch_counts(self) -> list[int]:
        return [c for (n, _), counts in self.branches.items() if n not in self.excluded
                for c in counts]

    def missing(self) -> str:
        """Lines never reached, and those of which a branch never was."""
        never = sorted(n for n, c in self.lines.items() if not c and n not in self.excluded)
        half = sorted({n for (n, _), counts in self.branches.items()
                       if 0 in counts and self.lines[n] and n not in self.excluded})
        parts = [f"lines {ranges(never)}"] if never else []
        parts += [f"branches {ranges(half)}"] if half else []
        return "; ".join(parts)


def ranges(numbers: list[int]) -> str:
    """1 2 3 7 -> 1-3 7"""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def read(folder: Path, objects: list[Path]) -> list[Source]:
    notes = [note for where in objects for note in sorted(where.rglob("*.gcno"))]
    if not notes:
        sys.exit(f"coverage: no *.gcno in {' '.join(map(str, objects))}")
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities",
                           *map(str, notes)], check=True, capture_output=True, text=True)
    sources: dict[Path, Source] = {}
    for text in done.stdout.splitlines():
        data = json.loads(text)
        for file in data["files"]:
            path = (Path(data["current_working_directory"]) / file["file"]).resolve()
            if folder not in path.parents:
                continue
            source = sources.setdefault(path, Source(path))
            for line in file["lines"]:
                source.add(line)
    return list(sources.values())


def percent(counts: list[int]) -> float:
    return 100 * sum(c > 0 for c in counts) / len(counts) if counts else 100.0


def row(name: str, lines: list[int], branches: list[int]) -> str:
    return (f"{name:32} {sum(c > 0 for c in lines):6}/{len(lines):<6} {percent(lines):5.1f}"
            f" {sum(c > 0 for c in branches):6}/{len(branches):<6} {percent(branches):5.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=float, default=0, help="the least percentage")
    parser.add_argument("--branches", type=float, default=0, help="the least percentage")
    parser.add_argument("--missing", action="store_true", help="name what was not reached")
    parser.add_argument("sources", type=Path)
    parser.add_argument("objects", type=Path, nargs="+")
    args = parser.parse_args()
    sources = read(args.sources.resolve(), args.objects)
    sources.sort(key=lambda s: (percent(s.line_counts()), percent(s.branch_counts()), s.path))
    print(f"{'file':32} {'lines':>13} {'%':>5} {'branches':>13} {'%':>5}")
    for s in sources:
        print(row(s.path.name, s.line_counts(), s.branch_counts()))
        if args.missing and s.missing():
            print(f"    {s.missing()}")
    lines = [c for s in sources for c in s.line_counts()]
    branches = [c for s in sources for c in s.branch_counts()]
    print(row("total", lines, branches))
    excluded = sum(len(s.excluded) for s in sources)
    if excluded:
        print(f"{excluded} lines are marked as out of reach ({EXCLUDED})")
    low = [f"{what} {got:.1f} % are below {least:g} %"
           for what, got, least in (("lines", percent(lines), args.lines),
                                    ("branches", percent(branches), args.branches))
           if got < least]
    if low:
        print("coverage: " + ", ".join(low), file=sys.stderr)
    return bool(low)


if __name__ == "__main__":
    sys.exit(main())

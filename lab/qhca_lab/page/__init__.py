# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording as a page of swim lanes: python3 -m qhca_lab.page trace.json -o page.html

The page is one file. It needs no network, and works without scripts. With
-o NAME.svg one message is drawn alone."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..errors import LabError
from . import html, lanes
from .stories import Recording, Story, TraceError, load

__all__ = ["Recording", "Story", "TraceError", "load", "main", "render", "render_message"]

# A larger trace.json is not read: Perfetto is the tool for it.
BYTES_MAX = 512 << 20


def render(trace: dict) -> str:
    """The page of TRACE (trace.json as a dictionary); TraceError if it is not a trace."""
    return html.page(load(trace))


def render_message(trace: dict, number: int | None = None) -> str:
    """The SVG of message NUMBER (from 1, commands count; default: the first message)."""
    recording = load(trace)
    if not recording.stories:
        raise TraceError(f"the recording has no message: {recording.events} events, "
                         "and no arrow connects them")
    if number is None:
        number = next((s.number for s in recording.stories if s.kind != "command"), 1)
    if not 1 <= number <= len(recording.stories):
        raise TraceError(f"no message {number}: there are {len(recording.stories)}")
    return lanes.draw(recording, recording.stories[number - 1])


def read(path: Path) -> dict:
    """A trace.json; TraceError says what is wrong with the file."""
    try:
        if path.stat().st_size > BYTES_MAX:
            raise TraceError(f"{path} is larger than {BYTES_MAX >> 20} MiB: record a shorter "
                             "time, or open it in Perfetto")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path} is not JSON: {error}") from error


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m qhca_lab.page", description="Draw a recording as swim lanes.")
    parser.add_argument("trace", metavar="trace.json", type=Path)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True,
                        help="page.html for all messages, NAME.svg for one")
    parser.add_argument("--message", type=int, metavar="N",
                        help="the message to draw as an SVG (default: the first)")
    parser.add_argument("--list", action="store_true", help="print the messages' numbers, too")
    args = parser.parse_args(argv)
    try:
        trace = read(args.trace)
        if args.output.suffix == ".svg":
            out = render_message(trace, args.message)
        elif args.message is not None:
            raise TraceError("--message is for an SVG: -o NAME.svg")
        else:
            out = render(trace)
        args.output.write_text(out, encoding="utf-8")
        if args.list:
            recording = load(trace)
            for story in recording.stories:
                print(f"{story.number:6}  {lanes.heading(recording, story)}")
    except (LabError, OSError) as error:
        print(f"page: error: {error}", file=sys.stderr)
        return 1
    return 0

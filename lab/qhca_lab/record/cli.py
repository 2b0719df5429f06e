# SPDX-License-Identifier: GPL-2.0-or-later
"""The command `qhca-lab record`."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from .. import pair
from ..errors import LabError
from ..lab import Lab
from . import ftrace, perfetto
from .session import Recording, merge_folder

TEXT = """\
Record a lab while a program runs in it: the provider, the driver, the adapter
and the wire of every guest, on one clock. FOLDER gets trace.json (for
ui.perfetto.dev), wire.pcapng (for Wireshark) and page.html.

The program is PROGRAM, in two guests and with the options of qhca-lab pair, or a
program on the host after -- (with QHCA_LAB in its environment, so that qhca-lab in it
finds this lab). Without either, record until Ctrl-C or for --seconds."""

EXAMPLES = """\
examples:
  qhca-lab record 'ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5'
  qhca-lab record -o run 'rping -s -C 3' --client-command 'rping -c -C 3 -a $PEER'
  qhca-lab record -o run -- ./my-test.sh
  qhca-lab record -o run --merge              # rebuild the files of FOLDER
  qhca-lab record -o run --sql 'SELECT name, count(*) FROM slice GROUP BY name'"""


def add(command) -> None:
    """Add the command to the parser; COMMAND as in cli.parser()."""
    p = command("record", run, "record all guests on one clock: trace.json, wire.pcapng, page.html",
                epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.description = TEXT
    p.add_argument("-o", "--output", default="run", metavar="FOLDER",
                   help="output folder (default: run)")
    pair.add_arguments(p, needed=False)
    p.add_argument("--seconds", type=float, help="record this long")
    p.add_argument("--buffer", type=float, default=16, metavar="MB",
                   help="trace buffer of a guest, per CPU (default 16)")
    p.add_argument("--limit", type=float, default=256, metavar="MB",
                   help="size limit of an adapter's file (default 256)")
    p.add_argument("--frame-bytes", type=int, default=256, metavar="N",
                   help="bytes to keep of each frame (default 256)")
    p.add_argument("--no-provider", action="store_true",
                   help="omit the provider's events, which cost the most")
    p.add_argument("--merge", action="store_true",
                   help="only rebuild the files of FOLDER from FOLDER/raw")
    p.add_argument("--sql", metavar="QUERY",
                   help="only query the recording in FOLDER with Perfetto's trace processor "
                   "(lab/perfetto/fetch-perfetto installs it); prints tab-separated rows")
    p.add_argument("--clean", action="store_true",
                   help="only clean up the lab after a recording was killed")


def say(text: str) -> None:
    print(f"qhca-lab: {text}", file=sys.stderr, flush=True)


def _clean(lab: Lab) -> int:
    for guest in lab.guests:
        ftrace.clean(guest)
        try:
            with guest.qmp() as qmp:
                qmp.command("qhca-record-stop")
        except LabError:
            pass  # none runs
    return 0


def _report(folder: Path, merged) -> int:
    for problem in merged.problems:
        say(f"note: {problem}")
    counts = {}
    for event in merged.trace["traceEvents"]:
        counts[event["ph"]] = counts.get(event["ph"], 0) + 1
    say(f"{counts.get('X', 0)} events, {counts.get('s', 0)} arrows in {folder}/trace.json, "
        f"{len(merged.packets)} packets in {folder}/wire.pcapng"
        + (f"; see {folder}/page.html" if (folder / "page.html").exists() else ""))
    return 0


def _wait(seconds: float | None) -> int:
    """Until Ctrl-C or for SECONDS."""
    got: list[int] = []
    before = [signal.signal(n, lambda number, _f: got.append(number))
              for n in (signal.SIGINT, signal.SIGTERM)]
    try:
        if seconds is None:
            say("recording; press Ctrl-C to stop")
        end = None if seconds is None else time.monotonic() + seconds
        while not got and (end is None or time.monotonic() < end):
            time.sleep(0.1)
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before):
            signal.signal(number, handler)
    return 0


def run(args) -> int:
    folder = Path(args.output)
    if args.merge:
        return _report(folder, merge_folder(folder, []))
    if args.sql:
        for line in perfetto.table(perfetto.query(folder / "trace.json", args.sql)[0]):
            print(line)
        return 0
    lab = Lab.load(args.name)
    if args.clean:
        return _clean(lab)
    if (args.program or args.rest) and args.seconds is not None:
        raise LabError("give one of PROGRAM, -- COMMAND and --seconds")
    if not args.program and (args.server or args.client or args.client_command
                             or args.timeout is not None):
        raise LabError("--server, --client, --client-command and --timeout need a PROGRAM")
    asked = pair.Asked.of(args) if args.program else None
    what = str(asked) if asked else shlex.join(args.rest)
    recording = Recording(
        lab, folder, args.buffer, args.limit, args.frame_bytes, not args.no_provider,
        {"command": what} if what else {},
    )  # fmt: skip
    status = 0
    try:
        with recording:
            if asked:
                status = asked.run(lab, say)
            elif args.rest:
                status = subprocess.call(args.rest, env=dict(os.environ, QHCA_LAB=lab.name))
            else:
                status = _wait(args.seconds)
    except FileNotFoundError as error:
        raise LabError(f"cannot run the command: {error}") from None
    _report(folder, recording.result)
    return status if status >= 0 else 128 - status

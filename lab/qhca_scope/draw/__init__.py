# SPDX-License-Identifier: GPL-2.0-or-later
"""`scope draw`: the figures of the queue-buffer article, from a running adapter."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import frame, ring, sgl, table, va_dma
from . import model as looks
from .model import DrawError, Subject

FIGURES = {
    "va-dma": "the buffer as the application and as the adapter see it",
    "sgl": "the scatter list of its pinned pages",
    "table": "the buffer table, with the way to one entry marked",
    "ring": "the ring with its marks, its entries decoded",
}
EXAMPLES = """\
examples:
  scope draw table qp 17 sq --index 1000 -o table.svg
  scope draw ring cq 24 -o ring.svg
  scope draw va-dma mr 0x1111 -o mr.svg
  scope draw all qp 17 -o figures/"""


def _number(text: str) -> int:
    return int(text, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `scope draw`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("figure", choices=[*FIGURES, "all"], metavar="FIGURE",
                        help="; ".join(f"{k}: {v}" for k, v in FIGURES.items()) + "; all of them")
    parser.add_argument("object", metavar="KIND", choices=list(looks.OBJECTS),
                        help=f"one of {', '.join(looks.OBJECTS)}")
    parser.add_argument("number", metavar="NUMBER", type=_number,
                        help="its number; for an MR its key")
    parser.add_argument("ring", nargs="?", default="", metavar="RING",
                        choices=["", *(r for r in looks.RINGS if r)],
                        help="sq, rq, cq, eq, srq, index or ops (default: the first it has)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--index", type=_number, metavar="N",
                       help="the entry to mark, by its counter (default: the next to be processed)")
    where.add_argument("--offset", type=_number, metavar="BYTES", help="the byte to mark")
    where.add_argument("--va", type=_number, metavar="ADDRESS", help="the byte to mark, of an MR")
    parser.add_argument("-o", "--output", default="-", metavar="FILE.svg",
                        help="output file (default: standard output); with all a folder")
    parser.add_argument("--width", type=int, default=frame.WIDTH, metavar="PX",
                        help=f"{frame.WIDTH_MIN} to {frame.WIDTH_MAX} (default {frame.WIDTH})")


def _driver_texts(connection, subject: Subject) -> list[str]:
    """What the guest's driver reports about SUBJECT; empty if it cannot be queried."""
    guest = getattr(connection, "guest", None)
    if guest is None or not connection.command("query-status", {}).get("running"):
        return []
    files = {"qp": "qps", "cq": "cqs", "srq": "srqs"}
    if subject.object == "mr":  # one file for all of them
        look = f"sed -n '/^mr {subject.number:#x}:/,/^mr /p' $f/mrs"
    elif subject.object in files:
        look = f"cat $f/{files[subject.object]}/{subject.number}"
    else:
        return []
    script = f"for f in /sys/kernel/debug/qhca/*; do {look}; echo ---; done"
    return guest.run(script, timeout=20, check=False).out.split("---\n")


def _one_entry(ask, subject: Subject, args) -> tuple[dict, dict | None]:
    """(walk, decoded entry or None) of the place to mark."""
    where = {}
    if args.offset is not None:
        where["offset"] = args.offset
    elif args.va is not None:
        where["va"] = args.va
    elif subject.object == "mr":
        if args.index is not None:
            raise DrawError("a memory region has no entries: use --offset or --va")
        where["offset"] = 0
    elif args.index is not None:
        where["index"] = args.index
    else:
        where["index"] = _usual_index(ask, subject)
    look = looks.walk(ask, subject, **where, entries=looks.WINDOW, bytes=64)
    if not subject.stride:
        return look, None
    look["index"] = where.get("index", look["slot"])
    entries = ask("qhca-ring", object=subject.object, number=subject.number, ring=subject.ring,
                  index=look["index"], count=1)["look"]["entries"]
    return look, entries[0] if entries else None


def _usual_index(ask, subject: Subject) -> int:
    """The entry that is processed next, otherwise the last processed one."""
    look = ask("qhca-ring", object=subject.object, number=subject.number,
               ring=subject.ring, index=0, count=1)["look"]
    if "producer" not in look:
        return 0
    now = look.get("next", look["consumer"])
    return now if now != look["producer"] else max(look["producer"] - 1, 0)


def _ring_look(ask, subject: Subject, args) -> dict:
    if not subject.stride:
        raise DrawError("a memory region is not a ring: draw va-dma, sgl or table")
    more = {}
    if args.index is not None:
        more = {"index": max(args.index - 4, 0), "count": min(subject.depth, 12)}
    return ask("qhca-ring", object=subject.object, number=subject.number, ring=subject.ring,
               **more)["look"]


def figures(connection, args) -> dict[str, str]:
    """{name: SVG} of what ARGS ask for; see add_arguments().

    CONNECTION.command(NAME, ARGUMENTS) runs a QMP command; CONNECTION.guest, if there, is
    the lab's guest, whose driver knows what the adapter does not: virtual addresses."""

    def ask(command, **arguments):
        return connection.command(command, arguments)

    if not frame.WIDTH_MIN <= args.width <= frame.WIDTH_MAX:
        raise DrawError(f"--width {args.width}: from {frame.WIDTH_MIN} to {frame.WIDTH_MAX}")
    subject = looks.find(ask, args.object, args.number, args.ring)
    guest = getattr(connection, "guest", None)
    subject.guest = guest.name if guest is not None else ""
    subject.driver = looks.driver_section(_driver_texts(connection, subject), subject)
    if subject.driver and isinstance(subject.driver.get("va"), int):
        subject.va = subject.driver["va"]
    wanted = [f for f in FIGURES if f in (args.figure,) or args.figure == "all"]
    if args.figure == "all" and not subject.stride:
        wanted.remove("ring")
    runs = looks.memory(ask, subject) if {"va-dma", "sgl"} & set(wanted) else []
    out = {}
    for name in wanted:
        if name == "ring":
            out[name] = ring.draw(subject, _ring_look(ask, subject, args), args.width)
        elif name == "sgl":
            out[name] = sgl.draw(subject, runs, args.width)
        else:
            look, entry = _one_entry(ask, subject, args)
            if name == "table":
                out[name] = table.draw(subject, look, entry, args.width)
            else:
                mark = f"entry {look['index']}" if subject.stride else f"+{look['offset']:#x}"
                out[name] = va_dma.draw(subject, runs, look["offset"], mark, args.width)
    return out


def run(args, connection) -> int:
    """Draw the figures requested by ARGS, over CONNECTION; see figures()."""
    if args.figure == "all" and args.output == "-":
        raise DrawError("all figures need a folder: -o FOLDER")
    drawn = figures(connection, args)
    if args.output == "-":
        sys.stdout.write(drawn[args.figure])
        return 0
    ring_name = f"-{args.ring}" if args.ring else ""
    for name, text in drawn.items():
        path = Path(args.output)
        if args.figure == "all":
            path /= f"{args.object}{args.number}{ring_name}-{name}.svg"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise DrawError(f"{path} cannot be written: {error.strerror}") from error
        print(path, file=sys.stderr)
    return 0

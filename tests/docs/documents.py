# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents' fenced blocks, and what they promise.

The convention for authors of documents:

```sh           commands that a reader types at the top of the checkout: executed, all
                blocks of a document in one shell, in order
```output       what the preceding sh block prints, stdout and stderr
```             without a word: commands that no test can run. The comment
                <!-- not run: REASON --> must precede it
```text, ```c   any other word: to be read, not typed

In an output block "..." matches anything in a line, and a line that is only "..."
any number of lines. Runs of blanks are equal.

Everything that needs guests comes after a shown "lab/qhca-lab up". A document that leaves the lab up
shares it with others: it shows no "down", and its "up" has no options.

Comments that come before a block (a reader does not see them):

<!-- numbers vary -->        in the next output, each number may be another, and its sign, too
<!-- exit status: 1 -->      the next commands fail, with this status
<!-- deadline: 120 s -->     the next commands may take so long (otherwise 120 s, with a boot in
                             them 300 s)
<!-- run: COMMANDS -->       executed, not shown: makes or removes files, by rm or mkdir.
                             Whatever starts a program or waits must be shown
<!-- long: REASON -->        on top of a document: its commands are not executed by the gate
                             ("make test"), only by "make test-all"
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

DEADLINE = 120.0  # seconds for a block: an idle host takes a few
BOOT_DEADLINE = 300.0  # for one that boots guests: a busy host takes minutes

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,})(?P<word>.*)$")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
# Commands that a reader would type, in a block that must not have any.
_TYPED = re.compile(r"^(\$ |sudo |make( |$)|lab/\w|\./\w|ibv_\w+ |rdma \w|echo .*>)")
# A minus is part of a number where it cannot be a hyphen; then it may vary, too.
_NUMBER = re.compile(r"(?<![A-Za-z_.])(?P<sign>(?:^|(?<=[ \t(=:]))-?)?(0x[0-9a-fA-F]+|\d+(\.\d+)?)")
# The words of a date vary with the day.
_DATE = re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d:\d\d|"
                   r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d")

_UP = re.compile(r"lab/qhca-lab (--name \S+ )?up\b")
_UP_AS_IT_IS = re.compile(r"^lab/qhca-lab up *(#.*)?$", re.MULTILINE)
_DOWN = re.compile(r"lab/qhca-lab (--name \S+ )?down\b")
# Commands that need a lab that is up, except those that only read files.
_IN_LAB = re.compile(
    r"lab/qhca-(scope|gdb)\b|lab/qhca-lab (--name \S+ )?"
    r"(?!(fault (scenarios|check)|record\b.* --(merge|sql)|rr-\w+|\S+ --help)\b)[a-z]"
)

# The commands that may be hidden: the visible ones must work by themselves.
_TIDYING = re.compile(r"(rm|mkdir)( [\w./-]+)+")


class DocumentError(Exception):
    """A document breaks the convention; the text says where and how."""


@dataclasses.dataclass
class Block:
    """Commands to execute, or output to expect."""

    path: Path
    line: int
    text: str
    deadline: float = DEADLINE
    status: int = 0
    hidden: bool = False
    output: list[Output] = dataclasses.field(default_factory=list)

    def __post_init__(self):
        if self.deadline == DEADLINE and "qhca-lab up" in self.text:
            self.deadline = BOOT_DEADLINE

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(TOP)}:{self.line}"


@dataclasses.dataclass
class Output:
    """The output of a block; VARY: its numbers may differ."""

    line: int
    text: str
    vary: bool


@dataclasses.dataclass
class Document:
    path: Path
    blocks: list[Block]
    long: str | None = None
    not_run: list[str] = dataclasses.field(default_factory=list)

    @property
    def shares_lab(self) -> bool:
        """Does it use a lab of two guests as it is, and leave it up?"""
        text = "\n".join(block.text for block in self.blocks)
        return bool(_UP_AS_IT_IS.search(text)) and not _DOWN.search(text)


def documents() -> list[Path]:
    """
    All Markdown files of the checkout except those in build/, which is not even walked:
    builds create and remove files there meanwhile.
    """
    found = []
    for folder, folders, files in os.walk(TOP):
        folders[:] = [f for f in folders if not f.startswith(".") and
                      (Path(folder), f) != (TOP, "build")]
        found += [Path(folder) / f for f in files
                  if f.endswith(".md") and not f.startswith(".")]
    return sorted(found)


def parse(path: Path, text: str | None = None) -> Document:
    """Read a document; DocumentError when it breaks the convention."""
    text = path.read_text() if text is None else text
    document = Document(path, [])
    pending = _Pending(path)
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if fence:
            at = _take_fence(document, pending, lines, at, fence)
        elif "<!--" in line:
            begin = at
            comment = line[line.index("<!--"):]
            while "-->" not in comment:
                at += 1
                if at == len(lines):
                    raise DocumentError(f"{_where(path, begin)}: a comment without end")
                comment += "\n" + lines[at]
            for match in _COMMENT.finditer(comment):
                pending.take(document, match.group(1).strip(), begin)
            at += 1
        else:
            if line.startswith("#"):
                pending.after = None
            at += 1
    pending.must_be_empty(len(lines) - 1)
    _must_show_up(document)
    return document


def _must_show_up(document: Document) -> None:
    """A reader has no guests but those that a shown command has booted."""
    up = False
    for block in document.blocks:
        for number, line in enumerate(block.text.split("\n")):
            if _UP.search(line):
                up = True
            elif _DOWN.search(line):
                up = False
            elif not up and _IN_LAB.search(line):
                raise DocumentError(f"{_where(document.path, block.line - 1 + number)}: no lab is "
                                    f"up here, show lab/qhca-lab up before: {line.strip()}")


def _where(path: Path, at: int) -> str:
    return f"{path.relative_to(TOP)}:{at + 1}"


class _Pending:
    """What comments say about the next block, and the block to which output belongs."""

    def __init__(self, path: Path):
        self.path = path
        self.after: Block | None = None
        self.clear()

    def clear(self) -> None:
        self.deadline = self.status = self.reason = None
        self.vary = False

    def must_be_empty(self, at: int) -> None:
        if self.vary or (self.deadline, self.status, self.reason) != (None,) * 3:
            raise DocumentError(
                f"{_where(self.path, at)}: the comment before does not fit its block"
            )

    def take(self, document: Document, words: str, at: int) -> None:
        """A comment with WORDS at line AT (from 0)."""
        key, _, value = words.partition(":")
        value = value.strip()
        if words == "numbers vary":
            self.vary = True
        elif key == "exit status" and value.isdecimal():
            self.status = int(value)
        elif key == "deadline" and re.fullmatch(r"\d+ s", value):
            self.deadline = float(value[:-2])
        elif key == "not run" and value:
            self.reason = value
        elif key == "long" and value:
            document.long = value
        elif key == "run" and value:
            hidden = re.split(r"[;\n]\s*", value)
            if not all(_TIDYING.fullmatch(command.strip()) for command in hidden):
                raise DocumentError(f"{_where(self.path, at)}: hidden commands only tidy up (rm, "
                                    f"mkdir): show these in a ```sh block: {value}")
            document.blocks.append(
                Block(self.path, at + 1, value, self.deadline or DEADLINE, hidden=True)
            )
            self.clear()
            self.after = None
        elif key in ("run", "not run", "needs", "long", "deadline", "exit status", "numbers vary"):
            raise DocumentError(f"{_where(self.path, at)}: not understood: <!-- {words} -->")


def _take_fence(document, pending, lines, at, fence) -> int:
    """Read the block that begins at line AT; returns the line after it."""
    path, begin = document.path, at
    word = fence["word"].strip()
    close = re.compile(rf"^ *`{{{len(fence['mark'])},}} *$")
    body = []
    at += 1
    while at < len(lines) and not close.match(lines[at]):
        body.append(lines[at].removeprefix(fence["indent"]))
        at += 1
    if at == len(lines):
        raise DocumentError(f"{_where(path, begin)}: a block without end")
    text = "\n".join(body)
    where = _where(path, begin)
    if word == "sh":
        block = Block(path, begin + 2, text, pending.deadline or DEADLINE, pending.status or 0)
        pending.deadline = pending.status = None
        pending.must_be_empty(begin)
        document.blocks.append(block)
        pending.after = block
    elif word == "output":
        if pending.after is None:
            raise DocumentError(f"{where}: output, but no commands (```sh) before it")
        date = _DATE.search(text)
        if date:
            raise DocumentError(f"{where}: a date is another one tomorrow, write ... for it: "
                                f"{date[0]}")
        pending.after.output.append(Output(begin + 2, text, pending.vary))
        pending.vary = False
        pending.must_be_empty(begin)
    elif word == "":
        if not pending.reason:
            raise DocumentError(
                f"{where}: a block without a word: ```sh if a reader types it, ```output for "
                "what that prints, ```text for anything else; or <!-- not run: REASON --> "
                "before it"
            )
        document.not_run.append(f"{where}: {pending.reason}")
        pending.reason = None
        pending.must_be_empty(begin)
        pending.after = None
    else:
        pending.must_be_empty(begin)
        typed = [line for line in body if _TYPED.match(line)] if word == "text" else []
        if word in ("shell", "bash", "console") or typed:
            raise DocumentError(
                f"{where}: commands in a block that is not executed; make it ```sh, or a plain "
                "block with <!-- not run: REASON --> before it"
            )
    pending.clear()
    return at + 1


# ----------------------------------------------------------------- comparing


def _pattern(line: str, vary: bool) -> re.Pattern:
    pieces = []
    for piece in line.rstrip().split("..."):
        out, last = "", 0
        for number in _NUMBER.finditer(piece) if vary else ():
            out += re.escape(piece[last:number.start()])
            out += "-?" if number["sign"] is not None else ""
            out += r"0x[0-9a-fA-F]+" if "0x" in number[0] else r"\d+(?:\.\d+)?"
            last = number.end()
        pieces.append(out + re.escape(piece[last:]))
    text = ".*".join(pieces)
    return re.compile(re.sub(r"(\\?[ \t])+", r"[ \\t]+", text) + r"[ \t]*\Z")


def mismatch(expected: str, got: str, vary: bool = False) -> str | None:
    """None if the output GOT matches EXPECTED, else the difference."""
    wanted = expected.rstrip().split("\n")
    lines = got.rstrip().split("\n") if got.strip() else []
    # reached: the possible numbers of `lines` matched by the expected ones so far
    reached = {0}
    for number, line in enumerate(wanted):
        if line.strip() == "...":
            reached = set(range(min(reached), len(lines) + 1))
            continue
        pattern = _pattern(line, vary)
        after = {n + 1 for n in reached if n < len(lines) and pattern.match(lines[n])}
        if not after:
            near = lines[max(0, min(reached)):]
            seen = near[0] if near and len(reached) == 1 else None
            return f"line {number + 1} is not there: {line!r}" + (
                f"; instead: {seen!r}" if seen is not None else ""
            )
        reached = after
    if len(lines) in reached:
        return None
    return f"more is printed than shown: {lines[min(reached)]!r}"

# SPDX-License-Identifier: GPL-2.0-or-later
"""C sources as lines of text: conditionals decided, constructs cut.

This relies on the style of the kernel and of QEMU: a statement begins and ends with a
line.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable


class CutError(Exception):
    """A rule that no longer fits the sources."""


CONDITION = re.compile(
    r"^\s*#\s*(?:(ifdef|ifndef)\s+(\w+)"
    r"|if\s+(!?)(?:IS_ENABLED|IS_REACHABLE|defined)\s*\(?(\w+)\)?\s*(?:/\*.*)?$"
    r"|(if|elif|else|endif)\b)")
ELIF = re.compile(r"^\s*#\s*elif\s+defined\s*\(?(\w+)\)?\s*$")


def decide(text: str, values: dict[str, bool]) -> str:
    """@text as if the preprocessor knew @values, as unifdef does."""
    out = []
    # of each #if: whether a branch has been taken (None: unknown), and the enclosing state
    stack: list[tuple[bool | None, bool]] = []
    on = True
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        m = CONDITION.match(line)
        if not m:
            if on:
                out.append(line)
            continue
        kind = m[1] or ("if" if m[4] or m[5] == "if" else m[5])
        if kind in ("ifdef", "ifndef", "if"):
            name = m[2] or m[4]
            known = values.get(name)
            if known is not None and (kind == "ifndef" or m[3]):
                known = not known
            stack.append((known, on))
            if known is None:
                if on:
                    out.append(line)
            else:
                on = on and known
        elif kind == "elif":
            known, outer = stack[-1]
            if known is None:
                if on:
                    out.append(line)
                continue
            m = ELIF.match(line)
            if not m or m[1] not in values:
                raise CutError(f"cannot decide: {line}")
            on = outer and not known and values[m[1]]
            stack[-1] = (known or values[m[1]], outer)
        elif kind == "else":
            known, outer = stack[-1]
            if known is None:
                if on:
                    out.append(line)
            else:
                on = outer and not known
        else:
            known, outer = stack.pop()
            if known is None and on:
                out.append(line)
            on = outer
    return "\n".join(out)


def bare(lines: list[str]) -> list[str]:
    """@lines without comments and contents of strings."""
    text = "\n".join(lines)

    def blank(m: re.Match) -> str:
        if m[0].startswith(("/", "//")):
            return re.sub(r"[^\n]", " ", m[0])
        return m[0][0] + " " * (len(m[0]) - 2) + m[0][-1]

    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", blank, text,
                  flags=re.S)
    return text.split("\n")


@functools.cache
def has(pattern: str, line: str) -> bool:
    """Remembered, as most lines are the same after each patch."""
    return bool(re.search(pattern, line))


def indent(line: str) -> int:
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())


WORD = re.compile(r"\w+")
LABEL = re.compile(r"^(\w+|\s*case\b.*|\s*default):$")
# braces around a single statement, without an else
BRACES = re.compile(r"^(\t+)((?:if|for|while) \([^\n]*\)) \{\n(\1\t[^\n;{}]*;)\n\1\}\n(?!\1else)",
                    re.M)
# the heading of a part of a file of which nothing is left
HEADING = re.compile(r"^/\* ---- [^\n]* ---- \*/\n\s*(?=/\*(?:\n \*)? ---- |#endif|\Z)", re.M)
# a macro that expands to a definition
MACRO = re.compile(r"^[A-Z][A-Z0-9_]*\([^()]*\)$")


class Source:
    """A file from which parts are cut. @braces: single statements have them, too."""

    def __init__(self, name: str, text: str, braces: bool = False):
        self.name, self.braces = name, braces
        self.lines = text.split("\n")
        self.bare = bare(self.lines)
        self.doubts: list[tuple[str, str]] = []

    def text(self) -> str:
        """What is left, without the blank lines that surrounded what was cut."""
        text = HEADING.sub("", "\n".join(self.lines))
        text = re.sub(r"\n{3,}", "\n\n", text)
        text = re.sub(r"\{\n\n", "{\n", text)
        if not self.braces:
            text = BRACES.sub(r"\1\2\n\3\n", text)
        return re.sub(r"\n\n([ \t]*\})", r"\n\1", text).rstrip("\n") + "\n"

    def depths(self, i: int) -> dict[int, int]:
        """Number of open parentheses at the start of each line up to @i."""
        first = i
        while first and not re.match(r"[^\s)]", self.bare[first]):
            first -= 1
        depth, result = 0, {}
        for n in range(first, i + 1):
            result[n] = depth
            line = self.bare[n]
            if not line.startswith("#"):
                depth += line.count("(") - line.count(")")
        return result

    def directive(self, i: int) -> tuple[int, int]:
        """First and last line of the directive at line @i."""
        end = i
        if re.match(r"\s*#\s*if", self.lines[i]):
            depth = 1
            while depth:
                end += 1
                if re.match(r"\s*#\s*if", self.lines[end]):
                    depth += 1
                elif re.match(r"\s*#\s*endif", self.lines[end]):
                    depth -= 1
        else:
            while self.lines[end].endswith("\\"):
                end += 1
        return i, end

    def doc_entry(self, i: int) -> tuple[int, int]:
        """A line of a comment and its continuation."""
        end = i
        while not self.lines[i].endswith("*/") and \
                not re.match(r"\s*\*(/| @| *$)", self.lines[end + 1]):
            end += 1
        return i, end

    def branch(self, i: int) -> tuple[int, int]:
        """A label or case, and everything up to the next one."""
        end = i
        while not (indent(self.bare[end + 1]) <= indent(self.bare[i]) and
                   self.bare[end + 1].strip() and
                   (LABEL.match(self.bare[end + 1].rstrip()) or self.bare[end + 1].strip() == "}")):
            end += 1
        return i, end

    def ends_construct(self, i: int) -> bool:
        """Is line @i complete, not continued by the next one?"""
        line = self.bare[i].strip()
        return (not line or line.startswith("#") or line.endswith((";", "{", "}", ",", ":")) or
                bool(MACRO.match(self.bare[i].rstrip())))

    def construct(self, i: int) -> tuple[int, int]:
        """First and last line of the smallest construct around line @i that can be cut."""
        if self.lines[i].lstrip().startswith("#"):
            return self.directive(i)
        if not self.bare[i].strip():
            return self.doc_entry(i)
        if LABEL.match(self.bare[i].rstrip()):
            return self.branch(i)
        if MACRO.match(self.bare[i]):
            return i, i
        depths = self.depths(i)
        start = i
        while start and (depths.get(start, 0) > 0 or not self.ends_construct(start - 1)):
            start -= 1
        end, round_, curly = start, 0, 0
        while True:
            line = self.bare[end]
            round_ += line.count("(") - line.count(")")
            curly += line.count("{") - line.count("}")
            done = line.rstrip().endswith((";", ",", "}")) and not round_ and not curly
            following = self.bare[end + 1].strip() if end + 1 < len(self.bare) else ""
            if done and not following.startswith("else"):
                return start, end
            if done and not line.strip().startswith("}"):
                raise CutError(f"{self.name}:{start + 1}: this has an else: {self.lines[start]}")
            end += 1
            if end == len(self.bare):
                raise CutError(f"{self.name}:{start + 1}: no end: {self.lines[start]}")

    def with_comment(self, start: int, end: int) -> int:
        """The first line of the comment that belongs to what is cut."""
        top = start
        while top and not self.bare[top - 1].strip() and self.lines[top - 1].strip():
            top -= 1
            if self.lines[top].lstrip().startswith("/*"):
                break
        if top == start or not self.lines[top].lstrip().startswith(("/*", "//")):
            return start
        after = self.lines[end + 1].strip() if end + 1 < len(self.lines) else ""
        if indent(self.lines[start]) or not after or after.startswith(("}", "#", "/*")):
            return top
        return start

    def cut(self, i: int, doubtful: bool = False) -> None:
        """Cut the construct that contains line @i; @doubtful: see note_doubt()."""
        start, end = self.construct(i)
        if doubtful:
            self.note_doubt(start, end)
        if self.bare[i].strip():
            start = self.with_comment(start, end)
        del self.lines[start:end + 1]
        del self.bare[start:end + 1]

    def matching(self, pattern: str) -> list[int]:
        """
        The lines that match @pattern, in the code without contents of strings, unless the
        pattern itself has a quotation mark or the start of a comment or comment line.
        """
        comment = r"/\*" in pattern or pattern.startswith((r" \*", r"^ \*"))
        text = self.lines if comment or '"' in pattern else self.bare
        return [i for i, line in enumerate(text)
                if has(pattern, line) and (comment or self.bare[i].strip())]

    def cut_matching(self, pattern: str) -> int:
        """Cut every construct with a line that matches @pattern (see matching()); returns their number."""
        n = 0
        while found := self.matching(pattern):
            self.cut(found[0])
            n += 1
        return n

    def note_doubt(self, start: int, end: int) -> None:
        """
        Remember lines that are about to be cut automatically although they make a decision,
        and their function: a rule has to say what remains.
        """
        lines = self.bare[start:end + 1]
        if not indent(lines[0]) or LABEL.match(lines[0].rstrip()):
            return
        if re.match(r"\s*return\b", lines[0]) or any(
                re.match(r"\s*\} else", x) and indent(x) == indent(lines[0]) for x in lines):
            head = start
            while head and not re.match(r"[A-Za-z]", self.bare[head]):
                head -= 1
            self.doubts.append((self.lines[head], "\n".join(self.lines[start:end + 1])))

    def doubt(self) -> str | None:
        """A construct in the remaining code that should not have been cut automatically."""
        return next((cut for head, cut in self.doubts if head in self.lines), None)

    def cut_names(self, mentioned: Callable[[str], bool]) -> None:
        """Cut every construct with a line that has one of the names @mentioned."""
        i = 0
        while i < len(self.bare):
            if not self.bare[i].startswith("#include") and mentioned(self.bare[i]):
                self.cut(i, doubtful=True)
                i = max(0, i - 40)
            else:
                i += 1

    def cut_unused(self, before: str) -> None:
        """Cut static functions and objects that are no longer used, but were in @before."""
        static = re.compile(r"^static (?:[\w\s]|\*)+?\*?\b(\w+)(?:\(|\[\w*\] =|\[\]| =)", re.M)
        used_before = Counter(WORD.findall(before))
        changed = True
        while changed:
            changed = False
            text = "\n".join(self.bare)
            used = Counter(WORD.findall(text))
            for m in static.finditer(text):
                if used[m[1]] == 1 and used_before[m[1]] > 1:
                    self.cut(text[:m.start()].count("\n") + m[0].count("\n"))
                    changed = True
                    break

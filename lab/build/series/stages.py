# SPDX-License-Identifier: GPL-2.0-or-later
"""What a tree of sources looks like after each patch of a series.

A file in the tree must not contain what belongs to a later patch. Code that mentions a
function or object of a later file is cut automatically; the rules of that patch say what
else belongs to it (the series.toml of each part explains them).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from fnmatch import fnmatch

from c_text import CutError, Source, bare, decide

DEFINITION = re.compile(
    r"^(?!static\b|typedef\b|extern\b|return\b|#)(?:[A-Za-z_][\w \t]*[ *]+)?(qhca_\w+)"
    r"(?:\(|(?:\[[^\]]*\])? = )", re.M)
EMPTY = re.compile(r"^[^\n]*(?:\)|\belse|\bdo) \{\n\s*\}[^\n]*$", re.M)
STUB = re.compile(r"^static inline [^;{}()]*?\b(\w+)\(", re.M)


def defined(text: str) -> set[str]:
    """The functions and objects that the C file @text exports."""
    return set(DEFINITION.findall("\n".join(bare(text.split("\n")))))


class Names:
    """A pattern of many names: words are looked up, because thousands of lines are searched."""

    WORD = re.compile(r"\w+")

    @staticmethod
    @functools.cache
    def words_of(line: str) -> frozenset[str]:
        """Remembered, as most lines are the same after each patch."""
        return frozenset(Names.WORD.findall(line))

    def __init__(self, names: list[str]):
        self.words = {n for n in names if self.WORD.fullmatch(n)}
        others = [n for n in names if n not in self.words]
        self.others = re.compile(r"\b(?:" + "|".join(others) + r")\b") if others else None

    def search(self, line: str) -> bool:
        words = self.words_of(line)
        return bool(words) and (not self.words.isdisjoint(words) or
                                bool(self.others and self.others.search(line)))


class Stages:
    """The patches @patches of files with the final state @full: {name: text}.

    @braces: the sources have braces around single statements, too.
    """

    def __init__(self, patches: list[dict], full: dict[str, str], braces: bool = False):
        self.patches, self.full, self.braces = patches, full, braces
        self.check()

    def check(self) -> None:
        """Each rule must match something in the final state of its file."""
        whole = functools.cache(lambda file: Source(file, self.full[file], self.braces))
        for p in self.patches:
            for file, text, _ in p.get("swap", []):
                if text not in self.full.get(file, ""):
                    raise CutError(f"{p['subject']}: {file} has not: {text!r}")
            for file, pattern, maybe in self.cuts(p):
                if not maybe and not whole(file).matching(pattern):
                    raise CutError(f"{p['subject']}: {file} has no line {pattern}")

    @staticmethod
    def cuts(patch: dict) -> Iterator[tuple[str, str, bool]]:
        """File, pattern, and whether only some versions have it: then it begins with a question mark."""
        for file, patterns in patch.get("cut", {}).items():
            for pattern in patterns:
                yield file, pattern.removeprefix("?"), pattern.startswith("?")

    def absent(self, n: int) -> set[str]:
        """The files that no patch up to @n adds."""
        return set(self.full) - {f for p in self.patches[:n + 1] for f in p["files"]}

    def swapped(self, n: int) -> dict[str, str]:
        """The files after patch @n, with conditionals and swaps of later patches undone."""
        later = self.patches[n + 1:]
        unset = [rule for p in later for rule in p.get("unset", {}).items()]
        texts = {f: decide(t, {name: False for glob, names in unset if fnmatch(f, glob)
                               for name in names}) if f.endswith((".c", ".h")) else t
                 for f, t in self.full.items() if f not in self.absent(n)}
        for p in later:
            for file, text, before in p.get("swap", []):
                if file in texts:
                    texts[file] = texts[file].replace(text, before)
        return texts

    def gone(self, n: int, sources: dict[str, Source]) -> list[str]:
        """Patterns of the names that do not exist after patch @n."""
        later = self.patches[n + 1:]
        ahead = {f for p in later if p.get("ahead") for f in p["files"]}
        names = set()
        for f in self.absent(n) - ahead:
            if f.endswith(".c"):
                names |= defined(self.full[f])
        for f, source in sources.items():
            if f.endswith(".h"):
                names -= set(STUB.findall("\n".join(source.bare)))
        return sorted(names) + [x for p in later for x in p.get("names", [])]

    def stage(self, n: int) -> dict[str, str]:
        """{name: text} of the files after patch @n."""
        texts = self.swapped(n)
        if n + 1 == len(self.patches):
            return texts
        sources = {f: Source(f, t, self.braces) for f, t in texts.items()
                   if f.endswith((".c", ".h"))}
        for p in self.patches[n + 1:]:
            for file, pattern, _ in self.cuts(p):
                if file in sources:
                    sources[file].cut_matching(pattern)
        names = Names(self.gone(n, sources))
        for source in sources.values():
            source.cut_names(names.search)
        for f, source in sources.items():
            if f.endswith(".c"):
                source.cut_unused("\n".join(bare(self.full[f].split("\n"))))
        result = texts | {f: s.text() for f, s in sources.items()}
        for f, source in sources.items():
            empty = set(EMPTY.findall(result[f])) - set(EMPTY.findall(self.full[f]))
            doubt = empty.pop() if empty else source.doubt()
            if doubt:
                raise CutError(f"after {self.patches[n]['subject']}: {f}: what is left of this?\n"
                               f"{doubt}")
        return result

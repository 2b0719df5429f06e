# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver as one kernel wants it: qhca_compat.h is resolved and gone.

Conditionals are decided as Kbuild does, macros are replaced by their definitions,
and the few functions that remain move to the header that the series names.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from c_text import CutError, Source, decide

CALL = re.compile(r"\$\(call have,(.*),([^,]+),(\w+)\)")
PRESENT = re.compile(r"\$\(if \$\(wildcard \$\(srctree\)/include/(.*?)\),-D(QHCA_HAVE_\w+)\)")


def found(kbuild: str, include: Path) -> dict[str, bool]:
    """QHCA_HAVE_* as Kbuild finds them in the headers of @include."""
    have = {name: (include / header).exists() for header, name in PRESENT.findall(kbuild)}
    for pattern, header, name in CALL.findall(kbuild):
        have["QHCA_HAVE_" + name] = not subprocess.run(
            ["grep", "-qs", "-e", pattern, str(include / header)]).returncode
    if not have:
        raise CutError("Kbuild asks for nothing: its 'have' is another one now")
    return have


def arguments(text: str, at: int) -> tuple[list[str], int]:
    """The arguments of the call whose parenthesis is at @at, and where it ends."""
    depth, start, args = 0, at + 1, []
    for i in range(at, len(text)):
        if text[i] == "(":
            depth += 1
        elif text[i] == ")":
            depth -= 1
            if not depth:
                args.append(text[start:i].strip())
                return args, i + 1
        elif text[i] == "," and depth == 1:
            args.append(text[start:i].strip())
            start = i + 1
    raise CutError("a call without an end")


def columns(line: str) -> int:
    return len(line.expandtabs(8))


def indented(width: int) -> str:
    return "\t" * (width // 8) + " " * (width % 8)


def shifted(tail: str, by: int) -> str:
    """@tail, which begins with arguments, when what is before them is @by longer."""
    _, end = arguments(tail, 0)
    return re.sub(r"\n([ \t]+)", lambda m: "\n" + indented(columns(m[1]) + by),
                  tail[:end]) + tail[end:]


def wrapped(line: str, call: str) -> str:
    """@call, behind @line, in lines of 80 columns if it is a plain call."""
    m = re.fullmatch(r"(\w+)\((.*)\)", call, re.S)
    if not m or columns(line + call) < 80:
        return call
    args, _ = arguments(call, len(m[1]))
    width = columns(line + m[1]) + 1
    lines = [m[1] + "(" + args[0]]
    at = columns(line + lines[0])
    for arg in args[1:]:
        if at + 2 + len(arg) >= 79:
            lines.append(indented(width) + arg)
            lines[-2] += ","
            at = columns(lines[-1])
        else:
            lines[-1] += ", " + arg
            at += 2 + len(arg)
    return "\n".join(lines) + ")"


class Macros:
    """What qhca_compat.h defines, taken out of it."""

    def __init__(self, text: str):
        self.bodies: dict[str, tuple[list[str] | None, str]] = {}

        def take(m: re.Match) -> str:
            params = None if m[2] is None else [p.strip() for p in m[2].split(",")]
            self.bodies[m[1]] = (params, re.sub(r"[ \t]*\\\n[ \t]*", "\n", m[3]).strip())
            return ""

        self.rest = re.sub(r"^#define (\w+)(?:\(([^)]*)\))?((?:[^\n]*\\\n)*[^\n]*)\n", take, text,
                           flags=re.M)
        # guards, and names that are there to be asked for
        self.flags = {n: True for n, (p, b) in self.bodies.items() if not b and p is None and
                      n.isupper() and "_BY_" in n}
        self.bodies.pop("QHCA_COMPAT_H", None)

    def expand(self, text: str) -> str:
        """@text with all macros replaced, those in macros too."""
        for name in self.flags:
            self.bodies.pop(name, None)
        names = re.compile(r"\b(" + "|".join(sorted(self.bodies, key=len, reverse=True)) + r")\b")
        at = 0
        while m := names.search(text, at):
            params, body = self.bodies[m[1]]
            end = m.end()
            comment = text[text.rfind("\n", 0, m.start()) + 1:m.start()].lstrip()
            if comment.startswith(("*", "/*")):     # it only speaks of it
                name = re.match(r"\w*", body)[0] or m[1]
                text = text[:m.start()] + name + text[end:]
                at = m.start() + len(name)
                continue
            if params is not None:
                args, end = arguments(text, m.end())
                args = [re.sub(r"\s+", " ", arg) for arg in args]
                for param, arg in zip(params, args):
                    body = re.sub(rf"\b{param}\b", lambda _: arg, body)
                body = re.sub(r"(?<![\w)])\((\w+)\)", r"\1", body)
            body = re.sub(r"^\((\w+)\)$", r"\1", body)
            line = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
            if body.startswith(","):    # parameters
                deep = columns(line[:line.index("(") + 1]) if "(" in line else 8
                body = body.replace("\n", "\n" + indented(deep))
            else:
                body = body.replace("\n", "\n" + re.match(r"\s*", line)[0])
            head, tail = text[:m.start()], text[end:]
            if params is None and tail.startswith("("):
                tail = shifted(tail, len(body) - len(m[0]))
            elif params is not None and "\n" not in body:
                body = wrapped(line, body)
            if body.startswith(","):
                head = head.rstrip()
            elif not body and re.match(r"\s*\)", tail):
                head = head.rstrip()
            elif not body and not line.strip() and tail.startswith("\n"):
                head, tail = head[:len(head) - len(line)], tail[1:]
            text = head + body + tail
            at = len(head) if body != m[0] else len(head) + len(body)
        return re.sub(r"[ \t]+\n", "\n", text)


def functions(text: str) -> dict[str, str]:
    """{name: text with comment} of the functions and structures of a header."""
    result = {}
    for m in re.finditer(r"(?:^/\*(?:[^*]|\*(?!/))*\*/\n)?^(?:static inline [^;{]*?\b(\w+)\(|"
                         r"struct (\w+) \{).*?^\}(?:;)?\n", text, re.M | re.S):
        result[m[1] or m[2]] = m[0]
    return result


def resolve(files: dict[str, str], kbuild: str, include: Path, rules: dict) -> dict[str, str]:
    """@files of the driver without qhca_compat.h, for the kernel whose headers are in @include."""
    files = dict(files)
    have = found(kbuild, include)
    macros = Macros(decide(files.pop("include/qhca_compat.h"), have))
    values = {"__KERNEL__": True, **have, **macros.flags}
    for name in re.findall(r"\bQHCA_\w+_BY_\w+", "\n".join(files.values())):
        values.setdefault(name, False)
    left = functions(decide(macros.rest, {}))
    empty = {n for n, text in left.items() if re.search(r"\)\n\{\n\}\n$", text)}
    newer = {header: (include / header).read_text() for header, *_ in rules["newer"]}
    for _, _, old, _ in rules["newer"]:
        if not any(re.search(old, text) for text in files.values()):
            raise CutError(f"series.toml: no file has what newer kernels replace: {old}")
    for name, text in files.items():
        text = macros.expand(decide(text, values))
        for header, has, old, new in rules["newer"]:
            if re.search(has, newer[header]):
                text = re.sub(old, new, text)
        for old, new in rules["simplify"]:
            text = re.sub(old, new, text)
        source = Source(name, text)
        source.cut_matching(r"\bif \(false\)")
        if empty:
            source.cut_names(re.compile(r"\b(" + "|".join(empty) + r")\b").search)
        files[name] = source.text()
    for name, text in left.items():
        if name in empty:
            continue
        if name not in rules["homes"]:
            raise CutError(f"qhca_compat.h has {name}, and the series does not say where it goes")
        home = rules["homes"][name]
        text = Source(name, macros.expand(text))
        if empty:
            text.cut_names(re.compile(r"^\t+(" + "|".join(empty) + r")\b").search)
        if home.endswith(".c"):
            last = re.findall(r"^#include .*\n", files[home], re.M)[-1]
            head, _, tail = text.text().rstrip("\n").partition("static inline")
            # what the shorter first line leaves to the arguments, if it has them
            first, _, args = tail.partition("(")
            if "\n" not in first:
                args = shifted("(" + args, -len(" inline"))[1:]
            files[home] = files[home].replace(last, f"{last}\n{head}static{first}({args}\n")
            continue
        place = files[home].rindex("\n#endif")
        files[home] = files[home][:place] + "\n" + text.text().rstrip("\n") + "\n" + \
            files[home][place:]
    includes = re.findall(r"^#include <(.*)>\n", macros.rest, re.M)
    for header, homes in rules["includes"].items():
        if header in includes or header.startswith("linux/"):
            for home in homes:
                first = re.search(r"^#include .*\n", files[home], re.M)
                if f"<{header}>" not in files[home]:
                    files[home] = files[home][:first.start()] + f"#include <{header}>\n" + \
                        files[home][first.start():]
    for name, text in files.items():
        files[name] = re.sub(r'^#include "qhca_compat.h"\n', "", text, flags=re.M)
    return files

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Hold sources in layers to the arrows that their layers.toml declares.

layers.py SOURCES OBJECTS...

SOURCES is a folder with layers.toml and a folder for each layer; each of OBJECTS has the
objects of a build in the same folders, perhaps with a prefix "e_". Says what is wrong and
fails, or says what was checked.
"""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

STATIC = re.compile(r"^static\s+(?!inline)(?:[\w ]+[ *]+|[\w ]+\n)(\w+)\(", re.M)
INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<((?:qhca|rdma/qhca)[^>]*)>)', re.M)
# With fewer objects than this a folder is not a build.
LEAST = 20


def part_of(path: Path) -> str:
    """core/pci.c and core/pci.o belong to core, main.c to main, e_base/idr.o to base."""
    return path.parts[0].removeprefix("e_") if len(path.parts) > 1 else path.stem


class Layers:
    def __init__(self, top: Path):
        self.top = top.resolve()
        self.rules = tomllib.loads((top / "layers.toml").read_text())
        debug = self.rules.get("debug", {})
        self.hooks = set(debug.get("hooks", []))
        self.hook_symbols = re.compile(debug.get("symbols", "(?!)"))
        self.parts = [p for p in self.rules if p not in ("common", "modules")]
        self.modules = self.rules.get("modules", {})
        self.owner = {h: part for part in ("common", *self.parts) for h in self.rules[part]["offers"]}
        self.errors: list[str] = []
        self.arrows: Counter = Counter()

    def sources(self):
        for path in sorted(self.top.glob("**/*.[ch]")):
            path = path.relative_to(self.top)
            if path.parts[0] != "include" and not path.name.endswith(".mod.c") and \
                    str(path) not in self.rules["common"]["offers"]:
                yield path, part_of(path), (self.top / path).read_text()

    def allowed(self, part: str, other: str) -> bool:
        return other in (part, "common", *self.rules[part]["uses"])

    def target(self, path: Path, name: str) -> Path | None:
        """The file of ours that @path means by @name, None for a header of include/."""
        for file in (self.top / path.parent / name, self.top / name):
            if file.exists():
                return file.resolve().relative_to(self.top)
        return None

    def includes(self) -> int:
        count = 0
        for path, part, text in self.sources():
            if part not in self.parts:
                self.errors.append(f"{path}: no part of this name is declared")
                continue
            for name in ("".join(found) for found in INCLUDE.findall(text)):
                if name.endswith("_user.h"):
                    continue        # in place of the kernel's headers, for the unit tests
                count += 1
                file = self.target(path, name)
                offered = str(file or name)
                if offered in self.hooks:
                    other = part
                elif offered in self.owner:
                    other = self.owner[offered]
                elif file is not None:
                    other = part_of(file)
                    if other != part and not self.rules[part].get("private"):
                        self.errors.append(f"{path} includes {name}, which is private to {other}")
                else:
                    self.errors.append(f"{path} includes {name}, which no part offers")
                    continue
                self.arrow(path, part, other, f"includes {name}")
        return count

    def arrow(self, path: Path, part: str, other: str, what: str):
        if not self.allowed(part, other):
            self.errors.append(f"{path} {what} of {other}: {part} must not use {other}")
        elif other not in (part, "common"):
            self.arrows[part, other] += 1

    def symbols(self, objects: Path) -> int:
        """What the objects call of each other."""
        defined, needed = {}, []
        files = [f for part in self.parts for pattern in (f"{part}/*.o", f"{part}.o", f"e_{part}/*.o")
                 for f in sorted(objects.glob(pattern))]
        for file in files:
            path = file.relative_to(objects)
            for line in subprocess.run(["nm", file], check=True, text=True,
                                       capture_output=True).stdout.splitlines():
                kind, name = line.split()[-2:]
                if kind == "U":
                    needed.append((path, name))
                elif kind.isupper():
                    defined.setdefault(name, part_of(path))
        for path, name in needed:
            part, other = part_of(path), defined.get(name)
            if other is None or other == part:
                continue
            if other == "debug" and self.hook_symbols.fullmatch(name):
                continue
            self.arrow(path, part, other, f"calls {name}")
        if len(files) < LEAST:
            self.errors.append(f"{objects} has {len(files)} objects, so nothing was checked")
        return len(files)

    def statics(self) -> int:
        """A backtrace has names alone: each static function has one of its own."""
        where: dict[str, list[str]] = {}
        for path, part, text in self.sources():
            module = self.modules.get(path.name.split("_")[0], self.modules.get(part, ""))
            for name in set(STATIC.findall(text)) - {"UVERBS_HANDLER"}:
                where.setdefault(f"{module}:{name}", []).append(str(path))
        for name, paths in where.items():
            if len(paths) > 1:
                self.errors.append(f"static {name.split(':')[1]} in {' and '.join(paths)}")
        return len(where)


def main() -> int:
    layers = Layers(Path(sys.argv[1]))
    includes = layers.includes()
    statics = layers.statics()
    objects = sum(layers.symbols(Path(p)) for p in sys.argv[2:])
    for error in layers.errors:
        print(error)
    print(f"{includes} includes, {objects} objects, {statics} static functions; "
          + ", ".join(f"{a} -> {b}: {n}" for (a, b), n in sorted(layers.arrows.items())))
    return bool(layers.errors)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())

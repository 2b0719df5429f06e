#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Check that sources in layers keep to the dependencies that their layers.toml declares.

layers.py SOURCES OBJECTS...

SOURCES is a folder with layers.toml and a folder for each layer; each of OBJECTS has the objects
of a build in the same folders, perhaps with a prefix "e_". Where layers.toml has a "folder", all
sources are in that one, and each layer lists its "files"; the objects may then have a prefix
"lib-". Reports errors and fails, or reports what was checked.
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


class Layers:
    def __init__(self, top: Path):
        self.rules = tomllib.loads((top / "layers.toml").read_text())
        self.top = (top / self.rules.pop("folder", ".")).resolve()
        debug = self.rules.get("debug", {})
        self.hooks = set(debug.get("hooks", []))
        self.hook_symbols = re.compile(debug.get("symbols", "(?!)"))
        self.parts = [p for p, rules in self.rules.items() if "uses" in rules]
        self.modules = self.rules.get("modules", {})
        self.names = self.rules.get("statics", {})
        self.owner = {h: part for part in ("common", *self.parts) for h in self.rules[part]["offers"]}
        self.listed = {f: part for part in self.parts for f in self.rules[part].get("files", [])}
        self.globals: dict[str, Path] = {}
        self.errors: list[str] = []
        self.arrows: Counter = Counter()

    def part_of(self, path: Path) -> str:
        """core/pci.c and core/pci.o belong to core, main.c to main, e_base/idr.o to base; in a
        flat folder idr.c and lib-idr.o to the part that lists idr.c."""
        if self.listed:
            file = path.name.removeprefix("lib-")
            file = f"{file[:-2]}.c" if file.endswith(".o") else file
            return self.listed.get(file) or self.owner.get(file, file)
        return path.parts[0].removeprefix("e_") if len(path.parts) > 1 else path.stem

    def program(self, path: Path) -> str:
        """The program in which @path is linked."""
        return self.modules.get(path.name.split("_")[0], self.modules.get(self.part_of(path), ""))

    def sources(self):
        for path in sorted(self.top.glob("**/*.[ch]")):
            path = path.relative_to(self.top)
            if path.parts[0] != "include" and not path.name.endswith(".mod.c") and \
                    str(path) not in self.rules["common"]["offers"]:
                yield path, self.part_of(path), (self.top / path).read_text()

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
                    other = self.part_of(file)
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
        """The calls between the objects."""
        defined, needed = {}, []
        files = [f for f in sorted(objects.glob("*.o" if self.listed else "**/*.o"))
                 if self.part_of(f.relative_to(objects)) in self.parts]
        lines = files and subprocess.run(["nm", "-A", *(f.relative_to(objects) for f in files)],
                                         cwd=objects, check=True, text=True,
                                         capture_output=True).stdout.splitlines()
        for line in lines:
            file, _, symbol = line.partition(":")
            path, (kind, name) = Path(file), symbol.split()[-2:]
            if kind == "U":
                needed.append((path, name))
            elif kind.isupper():
                self.globals.setdefault(f"{self.program(path)}:{name}", path)
                defined.setdefault(name, self.part_of(path))
        for path, name in needed:
            part, other = self.part_of(path), defined.get(name)
            if other is None or other == part:
                continue
            if other == "debug" and self.hook_symbols.fullmatch(name):
                continue
            self.arrow(path, part, other, f"calls {name}")
        if len(files) < LEAST:
            self.errors.append(f"{objects} has {len(files)} objects, so nothing was checked")
        return len(files)

    def circles(self):
        """Whatever the parts: no header includes itself by way of others."""
        graph = {path: [file for names in INCLUDE.findall(text)
                        if (file := self.target(path, "".join(names)))]
                 for path, _, text in self.sources()}
        done = set()

        def follow(way: list[Path]):
            if way[-1] in way[:-1]:
                circle = way[way.index(way[-1]):]
                self.errors.append("a circle of includes: " + ", ".join(map(str, circle)))
            elif way[-1] not in done:
                for file in graph.get(way[-1], []):
                    follow([*way, file])
                done.add(way[-1])

        for path in graph:
            follow([path])

    def statics(self) -> int:
        """A backtrace only has names: each static function has a unique one, which describes it.
        After symbols()."""
        where: dict[str, list[str]] = {}
        for path, part, text in self.sources():
            for name in set(STATIC.findall(text)) - {"UVERBS_HANDLER"}:
                where.setdefault(f"{self.program(path)}:{name}", []).append(str(path))
        for key, paths in sorted(where.items()):
            name = key.split(":")[1]
            what = f"static {name} in {' and '.join(paths)}"
            if len(paths) > 1:
                self.errors.append(what)
            if not self.names.get("strict", True):
                continue
            if "_" not in name.removeprefix(self.names.get("prefix", "")):
                self.errors.append(f"{what}: one word, which may be about anything")
            if name.split("_")[0] in self.names.get("refused", ()):
                self.errors.append(f"{what}: its first word does not say what it is about")
            if key in self.globals:
                self.errors.append(f"{what}: {self.globals[key]} has a global of this name")
        return len(where)


def main() -> int:
    layers = Layers(Path(sys.argv[1]))
    includes = layers.includes()
    layers.circles()
    objects = sum(layers.symbols(Path(p)) for p in sys.argv[2:])
    statics = layers.statics()
    for error in layers.errors:
        print(error)
    print(f"{includes} includes, {objects} objects, {statics} static functions; "
          + ", ".join(f"{a} -> {b}: {n}" for (a, b), n in sorted(layers.arrows.items())))
    return bool(layers.errors)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())

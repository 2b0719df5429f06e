#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Hold the driver against kernel-driver/layers.toml.

layers.py DRIVER OBJECTS...

DRIVER is the folder of the sources; each of OBJECTS has the objects of a build in the
same folders, with debug/ or without. Says what is wrong and fails, or says what was checked.
"""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

STATIC = re.compile(r"^static\s+(?!inline)(?:[\w ]+[ *]+|[\w ]+\n)(\w+)\(", re.M)


def part_of(path: Path) -> str:
    """core/pci.c and core/pci.o belong to core, main.c to main."""
    return path.parts[0] if len(path.parts) > 1 else path.stem


class Layers:
    def __init__(self, driver: Path):
        self.driver = driver
        self.rules = tomllib.loads((driver / "layers.toml").read_text())
        self.hooks = set(self.rules["debug"]["hooks"])
        self.hook_symbols = re.compile(self.rules["debug"]["symbols"])
        self.parts = [p for p in self.rules if p != "common"]
        self.owner = {h: part for part, rule in self.rules.items() for h in rule["offers"]}
        self.errors: list[str] = []
        self.arrows: Counter = Counter()

    def sources(self):
        for path in sorted(self.driver.glob("**/*.[ch]")):
            path = path.relative_to(self.driver)
            if path.parts[0] != "include" and not path.name.endswith(".mod.c"):
                yield path, part_of(path), (self.driver / path).read_text()

    def allowed(self, part: str, other: str) -> bool:
        return other in (part, "common", *self.rules[part]["uses"])

    def includes(self) -> int:
        count = 0
        for path, part, text in self.sources():
            if part not in self.parts:
                self.errors.append(f"{path}: no part of this name is declared")
                continue
            for name in re.findall(r'^#include [<"]((?:\.\./|qhca|rdma/qhca)[^>"]*|[\w-]+\.h)[>"]',
                                   text, re.M):
                if name.endswith("_user.h"):
                    continue        # in place of the kernel's headers, for the unit tests
                count += 1
                if (self.driver / path.parent / name).exists():
                    near = (self.driver / path.parent / name).resolve()
                    other = part_of(near.relative_to(self.driver.resolve()))
                    if other != part and not self.rules[part].get("private"):
                        self.errors.append(f"{path} includes {name}, which is private to {other}")
                elif name in self.hooks:
                    other = part
                elif name in self.owner:
                    other = self.owner[name]
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
        files = [f for part in self.parts for f in
                 sorted(objects.glob(f"{part}/*.o")) + sorted(objects.glob(f"{part}.o"))]
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
        if not needed:
            self.errors.append(f"{objects} has no objects")
        return len(files)

    def statics(self) -> int:
        """A backtrace has names alone: each static function has one of its own."""
        where: dict[str, list[str]] = {}
        for path, part, text in self.sources():
            module = "qhca_ib" if part == "ib" or path.name.startswith("ib_") else "qhca"
            for name in set(STATIC.findall(text)) - {"UVERBS_HANDLER"}:
                where.setdefault(f"{module}:{name}", []).append(str(path))
        for name, paths in where.items():
            if len(paths) > 1:
                self.errors.append(f"static {name} in {' and '.join(paths)}")
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
    sys.exit(main())

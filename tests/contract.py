# SPDX-License-Identifier: GPL-2.0-or-later
"""
The contract header as Python sees it: constants, and structures that decode
bytes.  Names come from the header's text, numbers from the C compiler.

    from contract import CONST, decode
    qpc = decode("qhca_qpc", data)
    qpc.sq.addr, CONST["QHCA_BUF_TREE"]
"""

import functools
import re
import subprocess
import tempfile
import types
from pathlib import Path

UAPI = Path(__file__).resolve().parent.parent / "kernel-driver/include/uapi"
HEADER = UAPI / "rdma/qhca-hw.h"

# big-endian and byte-string fields stay bytes; these become numbers
NUMBERS = {"__u8": 1, "__le16": 2, "__le32": 4, "__le64": 8}


def _parse(text):
    """Names: (constants, {struct: [(type, field, array length or None)]})."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    constants = re.findall(r"^#define[ \t]+(QHCA_\w+)[ \t]+\S", text, re.M)
    structs = {}
    for name, body in re.findall(r"struct (qhca_\w+) \{(.*?)\n\};", text, re.S):
        fields = []
        for kind, field, array in re.findall(
            r"(struct \w+|__\w+)\s+(\w+)(?:\[(\w+)\])?;", body
        ):
            fields.append((kind, field, array or None))
        structs[name] = fields
    return constants, structs


def _compile_and_run(source, include):
    with tempfile.TemporaryDirectory() as tmp:
        c = Path(tmp) / "layout.c"
        c.write_text(source)
        exe = Path(tmp) / "layout"
        subprocess.run(["cc", "-I", str(include), "-o", str(exe), str(c)], check=True)
        return subprocess.run([str(exe)], check=True, capture_output=True, text=True).stdout


@functools.lru_cache(maxsize=None)
def load(header=HEADER, include=UAPI):
    """(constants, structs): {name: value}, {name: (size, {field: (offset, size, type, array)})}."""
    constants, structs = _parse(Path(header).read_text())
    lines = [
        "#include <stdio.h>", "#include <stddef.h>", f'#include "{header}"',
        "int main(void) {",
    ]
    for name in constants:
        lines.append(f'printf("C {name} %llu\\n", (unsigned long long)({name}));')
    for struct, fields in structs.items():
        lines.append(f'printf("S {struct} %zu\\n", sizeof(struct {struct}));')
        for _, field, _ in fields:
            member = f"((struct {struct} *)0)->{field}"
            lines.append(
                f'printf("F {struct} {field} %zu %zu\\n", '
                f"offsetof(struct {struct}, {field}), sizeof({member}));"
            )
    lines.append("return 0; }")
    out = _compile_and_run("\n".join(lines), include)
    values, layouts = {}, {}
    kinds = {(s, f): (k, a) for s, fields in structs.items() for k, f, a in fields}
    for line in out.splitlines():
        what, *rest = line.split()
        if what == "C":
            values[rest[0]] = int(rest[1])
        elif what == "S":
            layouts[rest[0]] = (int(rest[1]), {})
        else:
            struct, field, offset, size = rest
            layouts[struct][1][field] = (int(offset), int(size), *kinds[struct, field])
    return values, layouts


CONST, STRUCTS = load()


def decode(struct, data):
    """Decode the bytes of a contract structure into a namespace."""
    size, fields = STRUCTS[struct]
    if len(data) < size:
        raise ValueError(f"struct {struct} has {size} bytes, got {len(data)}")
    out = types.SimpleNamespace()
    for field, (offset, length, kind, array) in fields.items():
        part = bytes(data[offset:offset + length])
        if kind.startswith("struct "):
            value = decode(kind.split()[1], part)
        elif kind in NUMBERS and array is None:
            value = int.from_bytes(part, "little")
        else:
            value = part
        setattr(out, field, value)
    return out

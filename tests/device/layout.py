# SPDX-License-Identifier: GPL-2.0-or-later
"""The contract's constants and structures, for tests that write them too.

    from layout import C, struct
    C.QHCA_REG_ID                       a constant
    qpc = struct("qhca_qpc")            a ctypes class
    bytes(qpc(type=C.QHCA_QPT_RC))      the bytes as the device sees them
"""

import ctypes
import functools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contract import CONST, STRUCTS  # noqa: E402

C = SimpleNamespace(**CONST)

_TYPES = {
    "__u8": ctypes.c_uint8,
    "__le16": ctypes.c_uint16,
    "__le32": ctypes.c_uint32,
    "__le64": ctypes.c_uint64,
    "__be16": ctypes.c_uint16.__ctype_be__,
    "__be32": ctypes.c_uint32.__ctype_be__,
    "__be64": ctypes.c_uint64.__ctype_be__,
}


@functools.cache
def struct(name: str) -> type:
    """The structure of that name; checked against the C compiler's layout."""
    size, fields = STRUCTS[name]
    members = []
    for field, (_, length, kind, array) in fields.items():
        base = _TYPES.get(kind) or struct(kind.removeprefix("struct "))
        count = length // ctypes.sizeof(base)
        members.append((field, base * count if array else base))
    cls = type(name, (ctypes.LittleEndianStructure,), {"_fields_": members})
    assert ctypes.sizeof(cls) == size, name
    for field, (offset, *_) in fields.items():
        assert getattr(cls, field).offset == offset, f"{name}.{field}"
    return cls


def stat(name: str) -> int:
    """Index of a counter: stat("DOORBELLS") is QHCA_STAT_DOORBELLS."""
    return CONST[f"QHCA_STAT_{name}"]

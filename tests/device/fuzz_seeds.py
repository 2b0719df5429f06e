#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Inputs from which QEMU's generic fuzzer begins: an adapter that is enabled and accepts commands. It
would not find these by chance.

    tests/device/fuzz_seeds.py FOLDER

An input is a sequence of operations with a separator between two of them
(tests/qtest/fuzz/generic_fuzz.c in QEMU): a byte that selects the operation, then its operands.
Memory that the device reads is filled with patterns.
"""

import struct as packed
import sys
from pathlib import Path

from layout import C, struct

SEPARATOR = b"FUZZ"
OP_WRITE, OP_ADD_DMA_PATTERN = 3, 7
LONG, QUAD = 2, 3
RINGS = 0x100000
# The registers are one of the ranges that the fuzzer may write to, and the doorbells
# another: which ones is known only to QEMU.
RANGES = 6
COMMANDS = {
    "create": [C.QHCA_CMD_ALLOC_PD, C.QHCA_CMD_CREATE_EQ, C.QHCA_CMD_CREATE_CQ,
               C.QHCA_CMD_CREATE_QP, C.QHCA_CMD_CREATE_SRQ, C.QHCA_CMD_CREATE_MR],
    "net": [C.QHCA_CMD_CREATE_ETH_SQ, C.QHCA_CMD_CREATE_ETH_RQ, C.QHCA_CMD_CREATE_RQT,
            C.QHCA_CMD_CREATE_FLOW, C.QHCA_CMD_CREATE_SHAPER],
    "query": [C.QHCA_CMD_QUERY_STATS],
}  # fmt: skip


def write(size: int, base: int, offset: int, value: int) -> bytes:
    """A store to an offset of the range BASE."""
    # a C structure with its padding, behind the byte of the operation
    return bytes([OP_WRITE]) + packed.pack("<BBxxIQ", size, base, offset, value)


def pattern(data: bytes) -> bytes:
    """Memory reads as DATA, again and again, with no byte that grows."""
    return bytes([OP_ADD_DMA_PATTERN, 0, 0]) + data


def seed(base: int, opcodes: list[int]) -> bytes:
    def register(offset: int, value: int, size: int = LONG) -> bytes:
        return write(size, base, offset, value)

    operations = [
        register(C.QHCA_REG_ASQ_BASE, RINGS, QUAD),
        register(C.QHCA_REG_ACQ_BASE, RINGS + 0x10000, QUAD),
        register(C.QHCA_REG_AQ_SHIFT, 4),
        register(C.QHCA_REG_CTRL, C.QHCA_CTRL_ENABLE),
    ]
    for number, opcode in enumerate(opcodes, 1):
        command = struct("qhca_aq_cmd")(opcode=opcode, obj=1, in_addr=RINGS + 0x20000, in_len=256,
                                        out_addr=RINGS + 0x30000, out_len=256)
        operations += [pattern(bytes(command)), register(C.QHCA_REG_ASQ_DB, number)]
    # and a doorbell
    operations += [write(QUAD, b, C.QHCA_DB_SQ, 2 | 1 << 32) for b in range(RANGES) if b != base]
    return SEPARATOR.join(operations)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for base in range(RANGES):
        for name, opcodes in COMMANDS.items():
            (folder / f"seed-{name}-{base}").write_bytes(seed(base, opcodes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

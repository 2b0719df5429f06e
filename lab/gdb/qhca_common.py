# SPDX-License-Identifier: GPL-2.0-or-later
"""Code shared by the three sets of gdb commands: names, memory, entries of rings.

Types come from the debugged program's own debug information, names of codes
from the contract header, so nothing is duplicated here.
"""

import os
import re
import struct
from pathlib import Path

import gdb

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QHCA_BUILD") or TOP / "build")
HEADER = TOP / "kernel-driver/include/uapi/rdma/qhca-hw.h"


def _constants():
    found = {}
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    for name, value in re.findall(r"^#define[ \t]+(QHCA_\w+)[ \t]+(.+)$", text, re.M):
        value = value.strip()
        value = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)U?L*\b", r"\1", value)
        if re.fullmatch(r"[0-9a-fA-Fx() <|+-]+", value):
            found[name] = eval(value, {"__builtins__": {}})  # numbers and shifts only
    return found


CONST = _constants()


def name_of(prefix, number):
    """The name with PREFIX that has this NUMBER, without the prefix."""
    for name, value in CONST.items():
        rest = name.removeprefix(prefix)
        if rest != name and value == number and not re.match(r"(F|M|T|L|IS|OP)_", rest):
            return rest
    return f"{prefix}{number:#x}"


def flags_of(prefix, bits):
    """Names of the BITS, or "-"."""
    names = []
    for name, value in CONST.items():
        if name.startswith(prefix) and value & bits and value & (value - 1) == 0:
            names.append(name.removeprefix(prefix))
            bits &= ~value
    if bits:
        names.append(f"{bits:#x}")
    return "|".join(names) or "-"


def form_name(form):
    """Name of a buffer table's FORM, in lower case as everywhere."""
    return name_of("QHCA_BUF_", form).lower()


def read(addr, count):
    """COUNT bytes at ADDR of the debugged program; GdbError if they are not there."""
    # Not by Inferior.read_memory(): for a guest it asks any CPU, but only the
    # selected one has the page table of its process.
    try:
        return gdb.parse_and_eval(f"*(unsigned char (*)[{count}]){int(addr)}").bytes
    except gdb.MemoryError:
        raise gdb.GdbError(f"no memory at {int(addr):#x}") from None


def typed(name, data):
    """Bytes as a value of struct NAME."""
    kind = gdb.lookup_type("struct " + name)
    return gdb.Value(data[:kind.sizeof].ljust(kind.sizeof, b"\0"), kind)


def container_of(pointer, kind, *members):
    """The struct KIND that contains what POINTER points to, through MEMBERS."""
    outer = gdb.lookup_type("struct " + kind)
    # gdb resolves unnamed unions
    offset = int(gdb.parse_and_eval(f"&((struct {kind} *)0)->{'.'.join(members)}"))
    return gdb.Value(int(pointer) - offset).cast(outer.pointer())


def list_entries(head, kind, *members):
    """The structs KIND on the list HEAD (next, prev), which they are linked to by LINK."""
    at, first = head["next"], int(head.address)
    for _ in range(1 << 20):
        if int(at) in (0, first):
            return
        yield container_of(at, kind, *members)
        at = at.dereference()["next"]
    raise gdb.GdbError("the list has no end: it is broken, or being changed")


def send_wqe(data):
    """A send WQE of an RC, UC or XRC QP in a line."""
    wqe = typed("qhca_sq_wqe", data)
    ctrl, remote = wqe["ctrl"], wqe["remote"]
    opcode, flags = int(ctrl["opcode"]), int(ctrl["flags"])
    num = int(ctrl["num_sge"])
    text = (f"{name_of('QHCA_WQE_', opcode)} wr_id={int(ctrl['wr_id']):#x} "
            f"flags={flags_of('QHCA_WQE_F_', flags)}")
    if CONST["QHCA_WQE_RDMA_WRITE"] <= opcode <= CONST["QHCA_WQE_MASKED_FETCH_ADD"]:
        text += f" remote={int(remote['addr']):#x} rkey={int(remote['rkey']):#x}"
    if flags & CONST["QHCA_WQE_F_INLINE"]:
        return text + f" inline={num}"
    masked = (CONST["QHCA_WQE_MASKED_COMP_SWAP"], CONST["QHCA_WQE_MASKED_FETCH_ADD"])
    return text + sges(data, 0x40 if opcode in masked else wqe.type.sizeof, num)


def ud_wqe(data):
    """A send WQE of a UD or GSI QP in a line."""
    wqe = typed("qhca_ud_wqe", data)
    ctrl = wqe["ctrl"]
    flags, num = int(ctrl["flags"]), int(ctrl["num_sge"])
    text = (f"{name_of('QHCA_WQE_', int(ctrl['opcode']))} wr_id={int(ctrl['wr_id']):#x} "
            f"flags={flags_of('QHCA_WQE_F_', flags)} to QPN {int(wqe['dest_qpn'])}")
    if flags & CONST["QHCA_WQE_F_INLINE"]:
        return text + f" inline={num}"
    return text + sges(data, wqe.type.sizeof, num)


def recv_wqe(data):
    """A receive WQE in a line."""
    wqe = typed("qhca_rq_wqe", data)
    return f"RECV wr_id={int(wqe['wr_id']):#x}" + sges(data, wqe.type.sizeof, int(wqe["num_sge"]))


def sges(data, at, count):
    text = ""
    for n in range(count):
        if at + 16 * n + 16 > len(data):
            return text + f" ({count} SGEs do not fit)"
        addr, length, key = struct.unpack_from("<QII", data, at + 16 * n)
        text += f" [{addr:#x} +{length} lkey={key:#x}]"
    return text


def cqe(data):
    """A CQE in a line."""
    e = typed("qhca_cqe", data)
    status, syndrome = int(e["status"]), int(e["syndrome"])
    text = (f"{name_of('QHCA_CQE_OP_', int(e['opcode']))} {name_of('QHCA_WC_', status)} "
            f"QPN {int(e['qpn'])} WQE {int(e['wqe_index'])} wr_id={int(e['wr_id']):#x} "
            f"bytes={int(e['byte_len'])}")
    return text + (f" syndrome={name_of('QHCA_SYN_', syndrome)}" if syndrome else "")


def ring_slots(first, end, shift, most=16):
    """(counter, slot) of the entries FIRST up to END, the last MOST of them."""
    count = (end - first) & 0xFFFFFFFF
    skip = max(0, min(count, 1 << shift) - most)
    for n in range(skip, min(count, 1 << shift)):
        counter = (first + n) & 0xFFFFFFFF
        yield counter, counter & ((1 << shift) - 1)


class Command(gdb.Command):
    """A gdb command: its docstring is the help text, run(words) executes it."""

    name = ""

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA)

    def invoke(self, argument, _from_tty):
        try:
            self.run(gdb.string_to_argv(argument))
        except gdb.GdbError:
            raise
        except (gdb.error, IndexError, ValueError, KeyError) as error:
            raise gdb.GdbError(f"{self.name}: {error}; 'help {self.name}' tells its use") from None

    def number(self, words, at, what):
        """The expression words[at] as a number."""
        if len(words) <= at:
            raise gdb.GdbError(f"{self.name}: {what} is missing; 'help {self.name}' tells its use")
        return int(gdb.parse_and_eval(words[at]))


def register(*commands):
    for command in commands:
        command()

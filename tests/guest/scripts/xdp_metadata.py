# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in a guest: the metadata of received frames for an XDP program.

    xdp_metadata.py NETDEV PORT prints "ready", and as JSON the metadata of the first IPv4 datagram
                                    to PORT

The program changes the EtherType and moves the head first: metadata is about the frame as it
arrived. The guest has no library to load such programs, so this one is handwritten.
"""

import ctypes
import json
import os
import socket
import struct
import sys
import time

SYS_BPF = 321
MAP_CREATE, MAP_LOOKUP, PROG_LOAD, LINK_CREATE = 0, 1, 5, 28
ARRAY, PROG_XDP, ATTACH_XDP, DEV_BOUND_ONLY, DRV_MODE = 2, 6, 37, 1 << 6, 1 << 2
# the program's map: each error before what it is about, except that "seen" is the last written
VALUE = struct.Struct("<iIIiHHIi4xQ")
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    buf = ctypes.create_string_buffer(attr, 128)
    found = libc.syscall(SYS_BPF, command, buf, 128)
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return found


def address(data):
    return ctypes.cast(data, ctypes.c_void_p).value


def functions(*names):
    """BTF numbers of functions of the kernel."""
    with open("/sys/kernel/btf/vmlinux", "rb") as f:
        data = f.read()
    _, _, _, hdr, type_off, type_len, str_off, str_len = struct.unpack_from("<HBB5I", data)
    strings = data[hdr + str_off : hdr + str_off + str_len]
    wanted = {strings.index(b"\0" + n.encode() + b"\0") + 1: n for n in names}
    # bytes after a type of each kind: fixed, and per member
    fixed = {1: 4, 3: 12, 14: 4, 17: 4}
    each = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
    found, number, at = {}, 1, hdr + type_off
    while at < hdr + type_off + type_len:
        name, info, _ = struct.unpack_from("<III", data, at)
        kind = info >> 24 & 0x1F
        if kind == 12 and name in wanted:
            found[wanted[name]] = number
        at += 12 + fixed.get(kind, 0) + each.get(kind, 0) * (info & 0xFFFF)
        number += 1
    return [found[n] for n in names]


def insn(code, dst=0, src=0, off=0, imm=0):
    return struct.pack("<BBhi", code, src << 4 | dst, off, imm)


def program(table, port):
    hash_id, vlan_id, time_id = functions(
        "bpf_xdp_metadata_rx_hash", "bpf_xdp_metadata_rx_vlan_tag",
        "bpf_xdp_metadata_rx_timestamp")
    end = object()  # a jump to the end
    first = [
        insn(0xBF, 6, 1),  # r6 = context
        insn(0x61, 2, 6, 0),  # r2 = data
        insn(0x61, 3, 6, 4),  # r3 = data_end
        insn(0xBF, 4, 2), insn(0x07, 4, imm=42),
    ]  # fmt: skip
    tests = [  # each goes to the end
        (0x2D, 4, 3, 0),  # shorter
        None, (0x55, 5, 0, socket.htons(0x0800)),
        None, (0x55, 5, 0, 17),
        None, (0x55, 5, 0, socket.htons(port)),
    ]  # fmt: skip
    loads = iter([insn(0x69, 5, 2, 12), insn(0x71, 5, 2, 23), insn(0x69, 5, 2, 36)])
    rest = [
        insn(0x6A, 2, off=12, imm=socket.htons(0x86DD)),  # IPv6
        insn(0xBF, 1, 6), insn(0xB7, 2, imm=14),
        insn(0x85, imm=44),  # bpf_xdp_adjust_head
        insn(0x62, 10, off=-4),  # key 0
        insn(0x18, 1, 1, imm=table), insn(0),  # r1 = the map
        insn(0xBF, 2, 10), insn(0x07, 2, imm=-4),
        insn(0x85, imm=1),  # look it up
        insn(0x55, 0, off=1, imm=0), end,  # none
        insn(0xBF, 7, 0),
        insn(0xBF, 1, 6), insn(0xBF, 2, 7), insn(0x07, 2, imm=4),
        insn(0xBF, 3, 7), insn(0x07, 3, imm=8),
        insn(0x85, src=2, imm=hash_id),
        insn(0x63, 7, 0, 0),
        insn(0xBF, 1, 6), insn(0xBF, 2, 7), insn(0x07, 2, imm=16),
        insn(0xBF, 3, 7), insn(0x07, 3, imm=18),
        insn(0x85, src=2, imm=vlan_id),
        insn(0x63, 7, 0, 12),
        insn(0xBF, 1, 6), insn(0xBF, 2, 7), insn(0x07, 2, imm=32),
        insn(0x85, src=2, imm=time_id),
        insn(0x63, 7, 0, 24),
        insn(0x62, 7, off=20, imm=1),  # it is all there
    ]  # fmt: skip
    at = rest.index(end)
    rest[at] = insn(0x05, off=len(rest) - at - 1)
    middle = []
    for number, test in enumerate(tests):
        if test is None:
            middle.append(next(loads))
        else:
            code, dst, src, imm = test
            middle.append(insn(code, dst, src, len(tests) - number - 1 + len(rest), imm))
    return b"".join(first + middle + rest + [insn(0xB7, 0, imm=2), insn(0x95)])


def main():
    index, port = socket.if_nametoindex(sys.argv[1]), int(sys.argv[2])
    table = bpf(MAP_CREATE, struct.pack("<IIII", ARRAY, 4, VALUE.size, 1))
    code = ctypes.create_string_buffer(program(table, port))
    name, log = ctypes.create_string_buffer(b"GPL"), ctypes.create_string_buffer(1 << 16)
    attr = struct.pack("<IIQQIIQII16sII", PROG_XDP, len(code.raw) // 8, address(code),
                       address(name), 1, len(log), address(log), 0, DEV_BOUND_ONLY, b"metadata",
                       index, ATTACH_XDP)  # fmt: skip
    try:
        prog = bpf(PROG_LOAD, attr)
    except OSError:
        print(log.value.decode(), file=sys.stderr)
        raise
    link = bpf(LINK_CREATE, struct.pack("<IIII", prog, index, ATTACH_XDP, DRV_MODE))
    print("ready", flush=True)
    key, value = ctypes.create_string_buffer(4), ctypes.create_string_buffer(VALUE.size)
    seen = 0
    while not seen:
        time.sleep(0.05)
        bpf(MAP_LOOKUP, struct.pack("<IIQQQ", table, 0, address(key), address(value), 0))
        (hash_error, number, kind, vlan_error, protocol, tci, seen, time_error,
         stamp) = VALUE.unpack(value.raw[:VALUE.size])
    print(json.dumps({"hash": None if hash_error else number, "type": kind,
                      "vlan": None if vlan_error else [socket.ntohs(protocol), tci],
                      "time": None if time_error else stamp}), flush=True)
    os.close(link)


main()

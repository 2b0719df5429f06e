# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands for gdb at a guest's kernel: the objects of qhca.ko and qhca_ib.ko.

Loaded by lab/qhca-gdb kernel. They only read memory, so they work wherever
the guest is stopped.
"""

import contextlib
import functools
import struct

import gdb
from qhca_common import (BUILD, CONST, Command, cqe, flags_of, form_name, list_entries, name_of,
                         read, recv_wqe, register, ring_slots, send_wqe, ud_wqe)


# The kernel's struct xa_node: the modules' debug information does not have it.
XA_NODE = struct.Struct("<BBBBxxxxQQ16x64Q")    # shift, ..., parent, array, slots


def xarray(xa):
    """(index, pointer) of all entries of a struct xarray."""
    def walk(entry, index):
        if entry & 3 == 2 and entry > 4096:        # a node
            shift, _, _, _, _, array, *slots = XA_NODE.unpack(read(entry - 2, XA_NODE.size))
            if array != int(xa.address):
                raise gdb.GdbError("xarrays of this kernel are not as they are known here")
            for n, child in enumerate(slots):
                if child:
                    yield from walk(child, index + (n << shift))
        elif entry & 3 == 0 and entry:
            yield index, entry

    yield from walk(int(xa["xa_head"]), 0)


def devices():
    head = gdb.parse_and_eval("&qhca_ib_devices").dereference()
    return [debug["dev"] for debug in list_entries(head, "qhca_ib_debug", "list")]


def objects(array, kind):
    """(device, index, object) of all devices."""
    pointer = gdb.lookup_type("struct " + kind).pointer()
    for dev in devices():
        for index, entry in xarray(dev[array]):
            yield dev, index, gdb.Value(entry).cast(pointer)


def find(array, kind, number, what):
    for _dev, index, found in objects(array, kind):
        if index == number:
            return found
    raise gdb.GdbError(f"no {what} {number}: 'qhca-{array}' lists them")


def table_of(buf):
    """The struct qhca_buf_table of a struct qhca_ib_queue_buf."""
    return buf["table"] if int(buf["umem"]) else buf["kbuf"]["table"]


def describe(table):
    plan = table["plan"]
    form = int(plan["form"])
    text = f"{form_name(form)}, {int(plan['len'])} bytes"
    if form > 1:
        text += f", pages of 2^{int(plan['page_shift'])}: {int(plan['npages'])}, hops {int(plan['hops'])}"
    elif form == 1:
        text += f", {int(plan['npages'])} segments"
    return text


@contextlib.contextmanager
def physical():
    """Make QEMU's stub read guest physical addresses in the block."""
    def mode(on):
        answer = gdb.execute(f"maintenance packet Qqemu.PhyMemMode:{on}", to_string=True)
        if "OK" not in answer:
            raise gdb.GdbError("this target has no physical addresses: is it QEMU's stub?")
        gdb.execute("maintenance flush dcache", to_string=True)

    mode(1)
    try:
        yield
    finally:
        mode(0)


def walk(table, offset):
    """
    From a byte's OFFSET to its DMA address, through the tables in memory. Returns
    (address, lines that describe the path).
    """
    desc = table["desc"]
    form, first = int(desc["form"]), int(desc["first"])
    pos, addr = offset + first, int(desc["addr"])
    lines = []
    if offset >= int(desc["len"]):
        raise gdb.GdbError(f"offset {offset:#x} is beyond the end, {int(desc['len']):#x}")
    if form == CONST["QHCA_BUF_DIRECT"]:
        return addr + pos, [f"direct: {addr:#x} + {pos:#x}"]
    if form == CONST["QHCA_BUF_LIST"]:
        cpu = int(table["mem"][0]["cpu"])
        for n in range(int(desc["entries"])):
            seg, length = (int.from_bytes(read(cpu + 16 * n + at, 8), "little") for at in (0, 8))
            length &= ~CONST["QHCA_BUF_SEG_VALID"]
            if offset < length:
                return seg + offset, [f"segment {n}: {seg:#x} + {offset:#x}"]
            offset -= length
        raise gdb.GdbError("the list ends before that offset")
    page_shift = int(desc["page_shift"])
    page, hops = pos >> page_shift, int(desc["hops"])
    bits = int(desc["table_shift"]) - 3
    for hop in range(hops):
        index = page if form == CONST["QHCA_BUF_FLAT"] else \
            page >> bits * (hops - 1 - hop) & (1 << bits) - 1
        entry = int.from_bytes(read(cpu_address(table, addr + 8 * index), 8), "little")
        lines.append(f"hop {hop}: table {addr:#x} entry {index}: {entry:#x}")
        if not entry & CONST["QHCA_BTE_VALID"]:
            lines.append("not valid: there is no page (on-demand paging), or the table is broken")
            return None, lines
        addr = entry & CONST["QHCA_BTE_ADDR_MASK"]
    return addr + (pos & (1 << page_shift) - 1), lines


def cpu_address(table, dma):
    """The kernel address of a DMA address in a table's own memory."""
    for n in range(int(table["nmem"])):
        mem = table["mem"][n]
        begin = int(mem["dma"])
        if begin <= dma < begin + int(mem["size"]):
            return int(mem["cpu"]) + dma - begin
    raise gdb.GdbError(f"{dma:#x} is in no table of this object")


def ring_bytes(buf, offset, count):
    """Bytes of a ring: by the kernel's address or, for a process, by the page frame."""
    if not int(buf["umem"]):
        kbuf = buf["kbuf"]
        shift = int(kbuf["chunk_shift"])
        return read(int(kbuf["chunk"][offset >> shift]) + (offset & (1 << shift) - 1), count)
    address, _ = walk(buf["table"], offset)
    if address is None:
        raise gdb.GdbError("that page is not there")
    with physical():
        return read(address, count)


class Devices(Command):
    """List the guest's adapters and how many objects each has.

    qhca-devices"""

    name = "qhca-devices"

    def run(self, _words):
        for dev in devices():
            counts = " ".join(f"{what}={sum(1 for _ in xarray(dev[what]))}"
                              for what in ("qps", "cqs", "srqs", "mrs"))
            name = dev["ibdev"]["name"].string()
            net = dev["qdev"]["netdev"]["name"].string()
            print(f"{name} {net} struct qhca_ib_dev * {int(dev):#x} {counts}")


class Qps(Command):
    """List all QPs.

    qhca-qps"""

    name = "qhca-qps"

    def run(self, _words):
        for _dev, qpn, qp in objects("qps", "qhca_ib_qp"):
            state = str(qp["state"]).removeprefix("IB_QPS_")
            cqns = ", ".join(str(int(qp[cq]["cqn"])) for cq in ("scq", "rcq") if int(qp[cq]))
            print(f"QPN {qpn} {name_of('QHCA_QPT_', int(qp['type']))} {state} "
                  f"{'user' if qp['user'] else 'kernel'} CQ {cqns} "
                  f"struct qhca_ib_qp * {int(qp):#x}")


class Qp(Command):
    """Show a QP: its rings, their memory and tables.

    qhca-qp QPN"""

    name = "qhca-qp"

    def run(self, words):
        qp = find("qps", "qhca_ib_qp", self.number(words, 0, "the QPN"), "QP")
        print(f"QPN {int(qp['qpn'])}: {name_of('QHCA_QPT_', int(qp['type']))}, "
              f"{str(qp['state']).removeprefix('IB_QPS_')}, struct qhca_ib_qp * {int(qp):#x}")
        for ring in ("sq", "rq"):
            wq = qp[ring]
            if not int(wq["stride"]):
                print(f"  {ring}: none")
                continue
            print(f"  {ring}: {1 << int(wq['shift'])} WQEs of {1 << int(wq['stride'])} bytes; "
                  f"{describe(table_of(wq['buf']))}")
            umem = wq["buf"]["umem"]
            if int(umem):
                print(f"      of the process: {int(umem['address']):#x} +{int(umem['length'])}, "
                      f"{int(umem['sgt_append']['sgt']['nents'])} DMA segments")
            else:
                print(f"      of the kernel: head {int(wq['head'])}, tail {int(wq['tail'])}")


class Cqs(Command):
    """List all CQs.

    qhca-cqs"""

    name = "qhca-cqs"

    def run(self, _words):
        for _dev, cqn, cq in objects("cqs", "qhca_ib_cq"):
            print(f"CQN {cqn} {'user' if cq['user'] else 'kernel'} depth {1 << int(cq['shift'])} "
                  f"vector {int(cq['core']['comp_vector'])} struct qhca_ib_cq * {int(cq):#x}")


class Cq(Command):
    """Show a CQ and its newest CQEs.

    qhca-cq CQN [COUNT]"""

    name = "qhca-cq"

    def run(self, words):
        cq = find("cqs", "qhca_ib_cq", self.number(words, 0, "the CQN"), "CQ")
        count = self.number(words, 1, "") if len(words) > 1 else 4
        shift = int(cq["shift"])
        print(f"CQN {int(cq['cqn'])}: depth {1 << shift}, {describe(table_of(cq['buf']))}")
        size = gdb.lookup_type("struct qhca_cqe").sizeof

        def entry(slot):
            return ring_bytes(cq["buf"], slot * size, size)

        if not any(entry(0)):
            print("  no CQE yet")
            return
        # This pass around the ring extends as far as the phase of entry 0.
        lap, low, high = entry(0)[-1] & 1, 0, 1 << shift
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if entry(middle)[-1] & 1 == lap else (low, middle)
        for slot in range(max(0, high - count), high):
            print(f"  slot {slot}: {cqe(entry(slot))}")


class Mrs(Command):
    """List all MRs.

    qhca-mrs"""

    name = "qhca-mrs"

    def run(self, _words):
        for _dev, _index, mr in objects("mrs", "qhca_ib_mr"):
            print(f"key {int(mr['key']):#x} {flags_of('QHCA_ACCESS_', int(mr['access']))} "
                  f"{describe(mr['table'])} struct qhca_ib_mr * {int(mr):#x}")


class Mr(Command):
    """Show an MR: memory, rights, table.

    qhca-mr KEY"""

    name = "qhca-mr"

    def run(self, words):
        mr = find_mr(self.number(words, 0, "the key"))
        print(f"key {int(mr['key']):#x}: iova {int(mr['ibmr']['iova']):#x} "
              f"+{int(mr['ibmr']['length'])}, {flags_of('QHCA_ACCESS_', int(mr['access']))}")
        if int(mr["umem"]):
            umem = mr["umem"]
            print(f"  of the process: {int(umem['address']):#x} +{int(umem['length'])}, "
                  f"{int(umem['sgt_append']['sgt']['nents'])} DMA segments")
        print(f"  {describe(mr['table'])}")


def find_mr(key):
    for _dev, _index, mr in objects("mrs", "qhca_ib_mr"):
        if int(mr["key"]) == key:
            return mr
    raise gdb.GdbError(f"no MR with key {key:#x}: 'qhca-mrs' lists them")


class Table(Command):
    """Follow a buffer table from a byte's offset to its DMA address.

    qhca-table qp QPN sq|rq [OFFSET]
    qhca-table cq CQN [OFFSET]
    qhca-table mr KEY [OFFSET]"""

    name = "qhca-table"

    def run(self, words):
        kind = words[0] if words else ""
        number = self.number(words, 1, "the number")
        if kind == "qp":
            qp = find("qps", "qhca_ib_qp", number, "QP")
            if len(words) < 3 or words[2] not in ("sq", "rq"):
                raise gdb.GdbError("qhca-table qp QPN sq|rq [OFFSET]")
            if not int(qp[words[2]]["stride"]):
                raise gdb.GdbError(f"QPN {number} has no {words[2]}")
            table, words = table_of(qp[words[2]]["buf"]), words[3:]
        elif kind == "cq":
            cq = find("cqs", "qhca_ib_cq", number, "CQ")
            table, words = table_of(cq["buf"]), words[2:]
        elif kind == "mr":
            table, words = find_mr(number)["table"], words[2:]
        else:
            raise gdb.GdbError("qhca-table qp|cq|mr NUMBER ...; 'help qhca-table' tells more")
        offset = self.number(words, 0, "") if words else 0
        print(describe(table))
        address, lines = walk(table, offset)
        for line in lines:
            print("  " + line)
        if address is not None:
            print(f"  offset {offset:#x} is at DMA address {address:#x}")


class Wqe(Command):
    """Decode WQEs of a ring, as they are in memory.

    qhca-wqe QPN sq|rq INDEX [COUNT]"""

    name = "qhca-wqe"

    def run(self, words):
        qp = find("qps", "qhca_ib_qp", self.number(words, 0, "the QPN"), "QP")
        if len(words) < 3 or words[1] not in ("sq", "rq"):
            raise gdb.GdbError("qhca-wqe QPN sq|rq INDEX [COUNT]")
        wq, first = qp[words[1]], self.number(words, 2, "the index")
        count = self.number(words, 3, "") if len(words) > 3 else 1
        shift, stride = int(wq["shift"]), int(wq["stride"])
        if not stride:
            raise gdb.GdbError(f"there is no {words[1]}")
        datagram = int(qp["type"]) in (CONST["QHCA_QPT_UD"], CONST["QHCA_QPT_GSI"])
        decode = recv_wqe if words[1] == "rq" else ud_wqe if datagram else send_wqe
        for counter, slot in ring_slots(first, first + count, shift, count):
            data = ring_bytes(wq["buf"], slot << stride, 1 << stride)
            print(f"WQE {counter} (slot {slot}): {decode(data)}")


@functools.lru_cache(maxsize=1)
def provider_code():
    """(path, {address in the file's own terms: a page of code}) of libqhca."""
    path = next(iter(sorted((BUILD / "provider").glob("libqhca-rdmav*.so"))), None)
    if path is None:
        return None, {}
    data = path.read_bytes()
    at, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    pages = {}
    for n in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at + n * size)
        if kind == 1 and flags & 1:     # loaded, executable
            for page in range(0, length, 4096):
                pages[address + page] = data[offset + page:offset + min(page + 4096, length)]
    return path, pages


def provider_base(pc):
    """The load address of libqhca in the process if PC is in it, else None. The code
    itself identifies it: other parts of the file may not be mapped."""
    if pc >> 63:
        return None, None       # in the kernel
    page = pc & ~4095
    try:
        seen = read(page, 4096)
    except gdb.GdbError:
        return None, None
    path, pages = provider_code()
    for address, code in pages.items():
        if seen.startswith(code):
            return page - address, path
    return None, None


class User(Command):
    """Load the symbols of libqhca at its address in the stopped process.

    qhca-user

    Run automatically when the guest is stopped at a doorbell of an application."""

    name = "qhca-user"
    base = None

    def run(self, _words):
        here = gdb.selected_thread()
        for thread in (here, *gdb.selected_inferior().threads()):
            thread.switch()
            pc = int(gdb.parse_and_eval("(unsigned long)$pc"))
            base, path = provider_base(pc)
            if base is not None:
                break
        else:
            here.switch()
            raise gdb.GdbError("no CPU of the guest executes libqhca, or not the one of "
                               "build/provider: qhca-provider in the guest installs it")
        if base != User.base:
            if User.base is not None:
                gdb.execute(f"remove-symbol-file -a {User.base + pc % 4096:#x}", to_string=True)
            gdb.execute(f"add-symbol-file {path} -o {base:#x}", to_string=True)
            User.base = base
        gdb.execute("frame")

    @classmethod
    def stopped(cls, event):
        """At each stop: is it in a provider whose symbols are not loaded yet?"""
        # gdb's breakpoints are known; a SIGTRAP of the stub is a plain event
        if type(event) is not gdb.StopEvent:
            return
        try:
            pc = int(gdb.parse_and_eval("(unsigned long)$pc"))
            base, _path = provider_base(pc)
            if base is not None and base != User.base:
                gdb.execute("qhca-user")
        except gdb.error:
            pass        # the stop itself must be shown in any case


gdb.events.stop.connect(User.stopped)
register(User, Devices, Qps, Qp, Cqs, Cq, Mrs, Mr, Table, Wqe)

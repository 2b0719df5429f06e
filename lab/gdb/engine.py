# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands for gdb at QEMU itself: the engine's own structures.

Loaded by lab/qhca-gdb engine. No function of QEMU is called: it may have been
stopped anywhere, with any lock held.
"""

import gdb
from qhca_common import (CONST, Command, container_of, form_name, list_entries, name_of, read,
                         recv_wqe, register, ring_slots, send_wqe, ud_wqe)


def devices():
    """The QhcaState of each adapter, by the NICs of the net core."""
    # other devices have a NIC of this name, too: the symbol identifies ours
    info = int(gdb.parse_and_eval("&qhca_net_info"))
    client = gdb.parse_and_eval("net_clients.tqh_first")
    while int(client):
        if int(client["info"]) == info:
            nic = gdb.Value(int(client) - int(client["info"]["size"]))
            nic = nic.cast(gdb.lookup_type("NICState").pointer())
            yield nic["opaque"].cast(gdb.lookup_type("QhcaState").pointer())
        client = client["next"]["tqe_next"]


def engine():
    found = [s["engine"] for s in devices() if int(s["engine"])]
    if not found:
        raise gdb.GdbError("this QEMU has no qhca adapter")
    return found[0]


def table(objects, kind):
    """(number, object) of a struct qhca_idr of the engine."""
    pointer = gdb.lookup_type("struct " + kind).pointer()
    end = int(objects["fresh"])
    data = read(objects["slot"], 8 * end) if end else b""
    for number in range(end):
        entry = int.from_bytes(data[8 * number:8 * number + 8], "little")
        if entry:
            yield number, gdb.Value(entry).cast(pointer)


def qps():
    """(QPN, QP) of the engine; WQs share their numbers."""
    for qpn, qp in table(engine()["q"]["qps"], "qhca_qp"):
        if not qp["owner"]["is_wq"]:
            yield qpn, qp


def find_qp(number):
    for qpn, qp in qps():
        if qpn == number:
            return qp
    raise gdb.GdbError(f"no QP {number}: 'qhca-qps' lists them")


def guest(address, count):
    """Guest memory at a physical ADDRESS, in QEMU's own mapping of it."""
    below = None
    block = gdb.parse_and_eval("ram_list.blocks.lh_first")
    while int(block):
        if block["idstr"].string() == "pc.ram":
            below = block
        block = block["next"]["le_next"]
    if below is None or address + count > min(int(below["used_length"]), 2 << 30):
        raise gdb.GdbError(f"{address:#x} is not in the guest's memory below 2 GiB; "
                           "behind an IOMMU use qhca-walk of QMP")
    return read(int(below["host"]) + address, count)


class Engine(Command):
    """Show the adapters of this QEMU and the pending work of their engines.

    qhca-engine"""

    name = "qhca-engine"

    def run(self, _words):
        for state in devices():
            e = state["engine"]
            print(f"QhcaState * {int(state):#x} struct qhca * {int(e):#x}"
                  f"{'' if int(e) else ': not realized'}")
            if not int(e):
                continue
            tables = {"qps": e["q"], "cqs": e["q"], "srqs": e["q"], "mrs": e["mem"]}
            counts = " ".join(f"{t}={int(part[t]['used'])}" for t, part in tables.items())
            print(f"  {counts}")
            for name in ("ready", "blocked"):
                waiting = [str(int(qp["qpn"])) for qp in list_entries(e["q"][name], "qhca_qp", "ready")]
                print(f"  {name}: {', '.join(waiting) or 'none'}")
            xd = e["xd"]
            print(f"  frames to itself {int(xd['loop_head']) - int(xd['loop_tail'])}, "
                  f"wire {'blocked' if e['tx_blocked'] else 'free'}, "
                  f"{'halted by a break' if e['halted'] else 'not halted'}")


class Qps(Command):
    """List the engine's QPs.

    qhca-qps"""

    name = "qhca-qps"

    def run(self, _words):
        for qpn, qp in qps():
            print(f"QPN {qpn} {name_of('QHCA_QPT_', int(qp['type']))} "
                  f"{name_of('QHCA_QPS_', int(qp['state']))} sq {int(qp['sq_tail'])}"
                  f"..{int(qp['sq_next'])}..{int(qp['sq_head'])} rq {int(qp['rq']['tail'])}"
                  f"..{int(qp['rq']['head'])} struct qhca_qp * {int(qp):#x}")


class Qp(Command):
    """Show a QP: ring counters, requester, responder, window.

    qhca-qp QPN"""

    name = "qhca-qp"

    def run(self, words):
        qp = find_qp(self.number(words, 0, "the QPN"))
        xp = qp["xp"]
        print(f"QPN {int(qp['qpn'])}: {name_of('QHCA_QPT_', int(qp['type']))}, "
              f"{name_of('QHCA_QPS_', int(qp['state']))}, peer's QPN {int(qp['dest_qpn'])}, "
              f"struct qhca_qp * {int(qp):#x}")
        print(f"  sq: tail {int(qp['sq_tail'])}, next {int(qp['sq_next'])}, head "
              f"{int(qp['sq_head'])}; rq: tail {int(qp['rq']['tail'])}, "
              f"head {int(qp['rq']['head'])}")
        print(f"  requester: next PSN {int(xp['snd_psn'])}, oldest not acknowledged "
              f"{int(xp['una_psn'])}, retries left {int(xp['retry_left'])}, "
              f"RNR {int(xp['rnr_left'])}")
        print(f"  responder: expects PSN {int(xp['exp_psn'])}, MSN {int(xp['msn'])}, owes "
              f"{int(xp['rspq_head']) - int(xp['rspq_tail'])}")
        window = xp["win"]
        if not int(window):
            print("  window: nothing under way")
            return
        size = window["w"].type.range()[1] + 1
        for counter in range(int(qp["sq_tail"]), int(qp["sq_next"])):
            w = window["w"][counter & size - 1]
            print(f"  window: WQE {counter} {name_of('QHCA_WQE_', int(w['opcode']))} "
                  f"wr_id={int(w['wr_id']):#x} {int(w['len'])} bytes, PSN {int(w['first_psn'])} "
                  f"+{int(w['npkts'])}")


class Timers(Command):
    """List the QPs whose ACK or RNR timer runs, and when it ends.

    qhca-timers"""

    name = "qhca-timers"

    def run(self, _words):
        e, none = engine(), True
        for number in range(e["xd"]["timers"].type.range()[1] + 1):
            if not int(e["xd"]["timer_mask"]) >> number & 1:
                continue
            for xp in list_entries(e["xd"]["timers"][number], "qhca_xport", "timer"):
                what = "RNR" if number >= 32 else "ACK"
                print(f"QPN {int(xp['qp']['qpn'])} {what} at {int(xp['deadline'])} ns")
                none = False
        if none:
            print("no timer runs")
        print(f"the engine's next timer: {deadline(e)}")


def deadline(e):
    when = int(e["ad"]["timer_set"])
    return "none" if when == (1 << 64) - 1 else f"{when} ns"


class Walk(Command):
    """Follow the buffer table of a ring to a WQE, as the engine would, and decode it.

    qhca-walk QPN sq|rq INDEX"""

    name = "qhca-walk"

    def run(self, words):
        qp = find_qp(self.number(words, 0, "the QPN"))
        if len(words) < 3 or words[1] not in ("sq", "rq"):
            raise gdb.GdbError("qhca-walk QPN sq|rq INDEX")
        ring, index = words[1], self.number(words, 2, "the index")
        if ring == "sq":
            m, stride, shift = qp["sq"], int(qp["sq_stride"]), int(qp["sq_shift"])
        else:
            m, stride, shift = (qp["rq"]["buf"], int(qp["rq"]["stride"]),
                                int(qp["rq"]["shift"]))
        if not stride:
            raise gdb.GdbError(f"the QP has no {ring}")
        offset = (index & (1 << shift) - 1) << stride
        form, addr, hops = int(m["form"]), int(m["addr"]), int(m["hops"])
        print(f"{form_name(form)}: WQE {index} is at offset {offset:#x}")
        address = follow(form, addr, hops, m, offset)
        print(f"  DMA address {address:#x}"
              + (", and the engine has that page at hand" if at_hand(m, offset) else ""))
        datagram = int(qp["type"]) in (CONST["QHCA_QPT_UD"], CONST["QHCA_QPT_GSI"])
        decode = recv_wqe if ring == "rq" else ud_wqe if datagram else send_wqe
        print(f"  {decode(guest(address, 1 << stride))}")


def at_hand(m, offset):
    shift = int(m["page_shift"])
    return bool(m["leaf_valid"]) and shift and int(m["leaf_page"]) == offset >> shift


def follow(form, addr, hops, m, offset):
    """The DMA address of byte OFFSET; prints each hop."""
    pos = offset + int(m["first"])
    if form == CONST["QHCA_BUF_DIRECT"]:
        return addr + pos
    if form == CONST["QHCA_BUF_LIST"]:
        for n in range(int(m["entries"])):
            data = guest(addr + 16 * n, 16)
            seg = int.from_bytes(data[:8], "little")
            length = int.from_bytes(data[8:], "little") & ~CONST["QHCA_BUF_SEG_VALID"]
            if offset < length:
                print(f"  segment {n}: {seg:#x} +{length:#x}")
                return seg + offset
            offset -= length
        raise gdb.GdbError("the list ends before that offset")
    shift, bits = int(m["page_shift"]), int(m["table_shift"]) - 3
    for hop in range(hops):
        page = pos >> shift
        index = page if form == CONST["QHCA_BUF_FLAT"] else \
            page >> bits * (hops - 1 - hop) & (1 << bits) - 1
        entry = int.from_bytes(guest(addr + 8 * index, 8), "little")
        print(f"  hop {hop}: table {addr:#x} entry {index}: {entry:#x}")
        if not entry & CONST["QHCA_BTE_VALID"]:
            raise gdb.GdbError("that entry is not valid")
        addr = entry & CONST["QHCA_BTE_ADDR_MASK"]
    return addr + (pos & (1 << shift) - 1)


register(Engine, Qps, Qp, Timers, Walk)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands for gdb at a program that uses libqhca: its rings, entry by entry.

Loaded by lab/qhca-gdb provider. Internal breakpoints record each context that the
program opens, so that QPs can be named by their number.
"""

import gdb
from qhca_common import (CONST, Command, container_of, cqe, name_of, read, recv_wqe, register,
                         ring_slots, send_wqe, ud_wqe)

LEAF = 4096     # QHCA_IDR_SIZE of the provider
contexts = set()


class Remember(gdb.Breakpoint):
    """Records the context that a verb is called with; never stops."""

    def __init__(self, function, argument):
        super().__init__(function, internal=True)
        self.silent = True
        self.argument = argument

    def stop(self):
        value = gdb.selected_frame().read_var(self.argument)
        contexts.add(int(container_of(value, "qhca_context", "vctx", "context")))
        return False


def qps():
    """(QPN, struct qhca_qp *) of all contexts seen."""
    pointer = gdb.lookup_type("struct qhca_qp").pointer()
    for address in sorted(contexts):
        context = gdb.Value(address).cast(gdb.lookup_type("struct qhca_context").pointer())
        leaves = context["qps"]["leaf"]
        for high in range(LEAF):
            leaf = leaves[high]
            if int(leaf):
                # whole pages at once: single reads are slow over a serial line
                data = read(leaf, LEAF * 8)
                for low in range(LEAF):
                    entry = int.from_bytes(data[8 * low:8 * low + 8], "little")
                    if entry:
                        yield high << 12 | low, gdb.Value(entry).cast(pointer)


def find(words):
    """The QP that the first word names: a QPN, or an expression of a pointer."""
    if not words:
        try:
            value = gdb.selected_frame().read_var("ibv_qp")
        except (gdb.error, ValueError):
            raise gdb.GdbError("name the QP: a QPN, or a pointer to it") from None
    else:
        value = gdb.parse_and_eval(words[0])
    if value.type.code == gdb.TYPE_CODE_PTR:
        target = value.type.target().unqualified().name or ""
        if target == "ibv_qp":
            return container_of(value, "qhca_qp", "vqp", "qp")
        if target == "qhca_qp":
            return value
        raise gdb.GdbError(f"{words[0]} points to {target}, not to a QP")
    for qpn, qp in qps():
        if qpn == int(value):
            return qp
    raise gdb.GdbError(f"no QP {int(value)}: 'qhca-qps' lists them")


def kind(qp):
    return str(qp["vqp"]["qp"]["qp_type"]).removeprefix("IBV_QPT_")


class Qps(Command):
    """List the program's QPs.

    qhca-qps"""

    name = "qhca-qps"

    def run(self, _words):
        for qpn, qp in qps():
            sq, rq = qp["sq"], qp["rq"]
            print(f"QPN {qpn} {kind(qp)} {str(qp['vqp']['qp']['state']).removeprefix('IBV_QPS_')} "
                  f"sq {counts(sq)} rq {counts(rq)} struct qhca_qp * {int(qp):#x}")


def counts(ring):
    """The number of entries posted and not completed, and the depth."""
    if not int(ring["ring"]):
        return "none"
    return f"{(int(ring['head']) - tail(ring)) & 0xFFFFFFFF}/{1 << int(ring['shift'])}"


def tail(ring):
    return int(ring["tail"].cast(gdb.lookup_type("unsigned int")))


class Qp(Command):
    """Show a QP: rings with head and tail, and the WQEs between them, decoded.

    qhca-qp [QPN|POINTER]     without argument: the QP of the current function"""

    name = "qhca-qp"

    def run(self, words):
        qp = find(words)
        print(f"QPN {int(qp['qpn'])}: {kind(qp)}, struct qhca_qp * {int(qp):#x}")
        for name in ("sq", "rq"):
            ring = qp[name]
            if not int(ring["ring"]):
                print(f"  {name}: none")
                continue
            head, last = int(ring["head"]), tail(ring)
            shift, stride = int(ring["shift"]), int(ring["stride"])
            print(f"  {name}: ring {int(ring['ring']):#x}, {1 << shift} WQEs of {1 << stride} "
                  f"bytes, head {head}, tail {last}")
            decode = recv_wqe if name == "rq" else ud_wqe if kind(qp) == "UD" else send_wqe
            for counter, slot in ring_slots(last, head, shift, 8):
                data = read(int(ring["ring"]) + (slot << stride), 1 << stride)
                print(f"      WQE {counter}: {decode(data)}")


class Wqe(Command):
    """Decode WQEs of a ring, whether posted or not.

    qhca-wqe QPN|POINTER sq|rq INDEX [COUNT]"""

    name = "qhca-wqe"

    def run(self, words):
        qp = find(words[:1])
        if len(words) < 3 or words[1] not in ("sq", "rq"):
            raise gdb.GdbError("qhca-wqe QPN|POINTER sq|rq INDEX [COUNT]")
        ring, first = qp[words[1]], self.number(words, 2, "the index")
        count = self.number(words, 3, "") if len(words) > 3 else 1
        if not int(ring["ring"]):
            raise gdb.GdbError(f"there is no {words[1]}")
        stride = int(ring["stride"])
        decode = recv_wqe if words[1] == "rq" else ud_wqe if kind(qp) == "UD" else send_wqe
        for counter, slot in ring_slots(first, first + count, int(ring["shift"]), count):
            data = read(int(ring["ring"]) + (slot << stride), 1 << stride)
            print(f"WQE {counter} (slot {slot}): {decode(data)}")


class Cq(Command):
    """Show the CQ of a QP's sends (default) or receives: the CQEs that wait to be polled.

    qhca-cq QPN|POINTER [send|recv]"""

    name = "qhca-cq"

    def run(self, words):
        qp = find(words[:1])
        which = words[1] if len(words) > 1 else "send"
        if which not in ("send", "recv"):
            raise gdb.GdbError("send or recv")
        cq = qp[f"{which}_cq"]
        if not int(cq):
            raise gdb.GdbError(f"the QP has no CQ of its own for {which}")
        shift = int(cq["shift"])
        index = int(cq["ci"].cast(gdb.lookup_type("unsigned int")))
        print(f"CQN {int(cq['cqn'])}: ring {int(cq['ring']):#x}, depth {1 << shift}, "
              f"consumer index {index}")
        size = gdb.lookup_type("struct qhca_cqe").sizeof
        for counter in range(index, index + min(16, 1 << shift)):
            data = read(int(cq["ring"]) + size * (counter & (1 << shift) - 1), size)
            if data[-1] & 1 != ~(counter >> shift) & 1:
                break
            print(f"  CQE {counter}: {cqe(data)}")
        else:
            print("  ...")


register(Qps, Qp, Wqe, Cq)


def loaded(event):
    """The program has loaded the provider: watch it from now on."""
    if "/libqhca-" in event.new_objfile.filename:
        for function in ("qhca_alloc_pd", "qhca_create_cq", "qhca_create_cq_ex"):
            Remember(function, "context")


gdb.execute("set breakpoint pending on")
gdb.events.new_objfile.connect(loaded)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Stops, steps and inspection while a real application uses the adapter."""

import contextlib
import json
import re
import time

import pytest
from qhca_lab.pair import start_server
from test_queue_buffers import Qbuf, context, layout

PAGE = 4096
# general registers by their number in an instruction
REGISTERS = ["RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI",
             "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"]


def look(lab, guest, command, **arguments):
    return lab.qmp(guest.name, command, **arguments)["look"]


def status(qmp):
    return qmp.command("query-status")["status"]


def stopped(qmp):
    """Wait for a stop; returns the data of QHCA_STOP."""
    event = qmp.wait_event("QHCA_STOP", 60)["data"]["stop"]["look"]
    deadline = time.monotonic() + 120
    while status(qmp) != "debug":
        assert time.monotonic() < deadline, "the machine did not stop"
        time.sleep(0.02)
    return event


@contextlib.contextmanager
def debugger(guest):
    """A QMP connection; in the end nothing is watched and the guest runs."""
    with guest.qmp() as qmp:
        try:
            yield qmp
        finally:
            qmp.command("qhca-break-remove")
            if status(qmp) != "running":
                qmp.command("cont")


def registers(qmp, cpu):
    text = qmp.command("human-monitor-command",
                       {"command-line": "info registers", "cpu-index": cpu})
    return {name: int(value, 16) for name, value in
            re.findall(r"\b(R\w\w?|RIP) ?=([0-9a-f]{16})", text)}


def memory(qmp, cpu, addr, count):
    """Bytes at a virtual address, as the CPU sees it; None: not mapped."""
    text = qmp.command("human-monitor-command",
                       {"command-line": f"x /{count}xb 0x{addr:x}", "cpu-index": cpu})
    if "Cannot access" in text:
        return None
    return bytes(int(b, 16) for line in text.splitlines()
                 for b in line.split(":", 1)[1].split())


def store_before(qmp, cpu, regs):
    """(address, value) if the instruction in front of RIP is mov r64, (mem)."""
    code = memory(qmp, cpu, regs["RIP"] - 9, 9)
    for length in range(3, 10) if code else ():
        insn = code[9 - length:]
        rex, op, modrm = insn[:3]
        if rex & 0xF8 != 0x48 or op != 0x89:
            continue
        mod, reg, rm = modrm >> 6, modrm >> 3 & 7 | (rex & 4) << 1, modrm & 7
        sib = rm == 4
        disp = {0: 0, 1: 1, 2: 4}.get(mod)
        if disp is None or (mod == 0 and rm == 5) or length != 3 + sib + disp:
            continue
        if sib and insn[3] & 0x38 != 0x20:
            continue            # an index register: compilers need none here
        base = (insn[3] & 7 if sib else rm) | (rex & 1) << 3
        offset = int.from_bytes(insn[3 + sib:], "little", signed=True)
        return regs[REGISTERS[base]] + offset, regs[REGISTERS[reg]]
    return None


def go(qbuf):
    """
    Let a waiting program continue.  Do not wait for a response: the guest may stop before it can
    send one.
    """
    qbuf.guest.start(f"echo go > {qbuf.fifo}")


def end(qbuf):
    """Wait for a program that go() has let go on; its last line."""
    result = qbuf.job.wait(120)
    assert result.rc == 0, result.err
    return json.loads(qbuf.said().splitlines()[-1])


def test_stop_is_right_behind_the_store(pair, progs):
    """At a doorbell the CPU is stopped after the store that rang it."""
    q = Qbuf(pair, progs, "--depth 64 --messages 500 --nocap")
    qpn = q.first["qpn"]
    with debugger(pair.a) as qmp:
        qmp.command("qhca-break-add", {"condition": {"on": "doorbell", "number": qpn, "code": 0}})
        go(q)
        for _ in range(3):
            stop = stopped(qmp)["event"]
            want = stop["index"] << 32 | qpn
            found = [store_before(qmp, cpu, registers(qmp, cpu))
                     for cpu in range(len(qmp.command("query-cpus-fast")))]
            assert want in [f[1] for f in found if f], (stop, found)
            addr = next(f[0] for f in found if f and f[1] == want)
            assert addr % PAGE == 0 and addr < 1 << 47, "not a doorbell page of a process"
            qp = qmp.command("qhca-inspect", {"object": "qp", "number": qpn})["look"]
            assert qp["context"]["sq_head"] == stop["index"]
            assert qp["context"]["sq_next"] != stop["index"], "the WQE was fetched already"
            qmp.command("cont")
    assert end(q)["moved"] == 500


STEPS = {"wqe": "wqe", "packet-out": "tx", "packet-in": "rx", "recv-wqe": "recv_wqe",
         "cqe": "cqe", "walk": "walk", "hop": "walk_hop", "data": "data", "doorbell": "doorbell"}
COUNTERS = {"wqe": "sq_next", "packet-out": "tx_packets", "packet-in": "rx_packets"}


@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.long("tests/device/test_stops has it"))
    if kind in ("packet-out", "cqe", "walk", "data") else kind for kind in STEPS])
def test_steps_are_exact(pair, progs, kind):
    """n steps are n, in the middle of traffic of two QPs."""
    with layout(pair.a, "tree hops=3 page_shift=12 table_shift=12"):
        q = Qbuf(pair, progs, "--depth 64 --messages 500 --nocap")
    qpn = q.first["qpn"]
    ask = {"object": "qp", "number": qpn}
    with debugger(pair.a) as qmp:
        qmp.command("qhca-break-add", {"condition": {"on": "doorbell", "number": qpn,
                                                     "once": True}})
        go(q)
        stopped(qmp)
        count = (lambda: qmp.command("qhca-inspect", ask)["look"]["context"][COUNTERS[kind]]
                 if kind in COUNTERS else None)
        done = count()
        for n in (1, 2, 5, 1, 9):
            qmp.command("qhca-step", {"on": kind, "count": n})
            event = stopped(qmp)["event"]
            trail = qmp.command("qhca-query-stop")["look"]["trail"]
            steps = [t for t in trail if t["kind"] == STEPS[kind]]
            assert steps[-1] == event and len(trail) <= 64
            assert len(steps) == n or len(trail) == 64
            before, done = done, count()
            if done is not None and len(trail) < 64:
                assert done - before == sum(t["qpn"] == qpn for t in steps)
    assert end(q)["moved"] == 500


def test_the_store_is_not_over(pair, progs):
    """
    While stepping through the effects of a doorbell - fetch, walk, packet - the CPU that rang it
    is stopped right after that store.
    """
    q = Qbuf(pair, progs, "--depth 64 --messages 500 --nocap")
    qpn = q.first["qpn"]
    with debugger(pair.a) as qmp:
        qmp.command("qhca-break-add", {"condition": {"on": "doorbell", "number": qpn,
                                                     "code": 0, "once": True}})
        go(q)
        want = stopped(qmp)["event"]["index"] << 32 | qpn

        def rang():
            """RIP of the CPU that rang."""
            for cpu in range(len(qmp.command("query-cpus-fast"))):
                regs = registers(qmp, cpu)
                store = store_before(qmp, cpu, regs)
                if store and store[1] == want:
                    return regs["RIP"]
            return None

        rip = rang()
        assert rip
        for kind in ("walk", "wqe", "data", "packet-out"):
            qmp.command("qhca-step", {"on": kind})
            assert stopped(qmp)["event"]["qpn" if kind != "walk" else "number"] == qpn
            assert rang() == rip, kind
    assert end(q)["moved"] == 500


def test_context_is_the_drivers(pair, progs):
    """The decoded state is what the driver programmed, as shown by the rdma tool."""
    q = Qbuf(pair, progs, "--depth 64")
    qpc = context(pair.a, "qp", q.first["qpn"])
    seen = look(pair, pair.a, "qhca-inspect", object="qp", number=q.first["qpn"])["context"]
    for field in ("qpn", "type", "state", "pd", "uar", "send_cqn", "recv_cqn", "sq_shift",
                  "sq_stride", "rq_shift", "rq_stride", "rq_dbrec", "dest_qpn", "sq_psn",
                  "rq_psn", "access", "path_mtu", "timeout", "retry_cnt", "rnr_retry"):
        assert seen[field] == getattr(qpc, field), field
    assert seen["av"]["dgid"] == f"::ffff:{pair.a.ip}"
    assert 1 << seen["sq_shift"] == q.first["depth"]
    q.finish()


FEWER = pytest.mark.long("three hops are in the gate, and test_queue_buffers reads the tables")


@pytest.mark.parametrize("form", [
    pytest.param("flat page_shift=12", marks=FEWER),
    pytest.param("tree hops=1 page_shift=12 table_shift=12", marks=FEWER),
    pytest.param("tree hops=2 page_shift=12 table_shift=12", marks=FEWER),
    "tree hops=3 page_shift=12 table_shift=12", "list",
])
def test_walk_is_the_pagemap(pair, progs, form):
    """The walk shown leads to the page frames the application's pagemap has."""
    with layout(pair.a, form):
        q = Qbuf(pair, progs, "--depth 1024 --scatter")
    qpn, pfns = q.first["qpn"], q.first["pfns"]
    for page in range(0, len(pfns), max(1, len(pfns) // 20)):
        seen = look(pair, pair.a, "qhca-walk", object="qp", number=qpn, ring="sq",
                    offset=page * PAGE + 64)
        assert seen["address"] == pfns[page] * PAGE + 64, seen
        assert len(seen["hops"]) == {"flat": 1, "list": 1}.get(form.split()[0]) or int(form[10])
        assert any(e.get("marked") for e in seen["hops"][-1]["entries"])
    q.finish()


def test_frozen_for_longer_than_a_timer(pair, progs):
    """Both guests are stopped together: no timer (1 s) runs out, nothing is sent again."""
    before = {g.name: counters(pair, g) for g in pair}
    program = f"{progs.path('faultpp')} --timeout 18 --iters 6000"
    server = start_server(pair.b, program)
    client = pair.a.start(f"{program} {pair.b.ip}")
    deadline = time.monotonic() + 60
    while counters(pair, pair.a)["roce-tx-packets"] < before["a"]["roce-tx-packets"] + 500:
        assert time.monotonic() < deadline, "no traffic"
        time.sleep(0.02)
    assert sorted(pair.freeze()) == ["a", "b"]
    assert client.running and server.running, "too late"
    at = {g.name: counters(pair, g) for g in pair}
    time.sleep(3)       # of the host's time, as the guests have none: three timeouts
    assert {g.name: counters(pair, g) for g in pair} == at
    assert sorted(pair.thaw()) == ["a", "b"]
    while counters(pair, pair.a)["roce-tx-packets"] < at["a"]["roce-tx-packets"] + 50:
        assert client.running, "it did not go on"
        time.sleep(0.02)
    for guest in pair:
        after = counters(pair, guest)
        for name in ("roce-timeouts", "roce-retransmits"):
            assert after[name] == at[guest.name][name], (guest.name, name)
    assert client.wait(300).rc == 0 and server.wait(300).rc == 0


def counters(lab, guest):
    return look(lab, guest, "qhca-inspect", object="device")["counters"]


def test_json_is_plain(pair):
    """All values of the device fit plain JSON: tools get them unchanged."""
    for kind in ("device", "qp", "cq", "srq", "eq", "mr", "pd", "uar", "xrcd", "gid", "mcg",
                 "eth-sq", "eth-rq", "wq", "rqt", "rss", "flow", "mw", "shaper"):
        seen = look(pair, pair.a, "qhca-inspect", object=kind)
        assert json.loads(json.dumps(seen)) == seen

# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb with the project's commands, at a guest's kernel, its programs, its QEMU."""

import re
import subprocess

import pytest
from labs import LAB_NAME, TOP
from qhca_lab.pair import start_server
from test_queue_buffers import Qbuf, context, layout

PAGE = 4096


def gdb(kind, guest, *commands, program="", status=0):
    """The output of a batch of gdb commands. Its exit status is that of the last one."""
    words = [str(TOP / "lab/qhca-gdb"), "--name", LAB_NAME, kind, guest]
    words += [program] if program else []
    words += ["--", "-batch"] + [w for c in commands for w in ("-ex", c)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL)
    text = done.stdout + done.stderr
    assert done.returncode == status, text
    return text


def find(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    assert match, f"no {pattern!r} in:\n{text}"
    return match


@pytest.fixture
def qbuf(pair, progs):
    """Two QPs that wait, with rings of many scattered pages in tables of two hops."""
    with layout(pair.a, "tree hops=2 page_shift=12 table_shift=12"):
        q = Qbuf(pair, progs, "--depth 1024 --scatter")
    yield q
    q.finish()


@pytest.mark.parametrize("kind, walk", [pytest.param(
                                            "kernel", "qhca-table qp {qpn} sq {offset}",
                                            marks=pytest.mark.long("test_objects has tables")),
                                        pytest.param(
                                            "engine", "qhca-walk {qpn} sq {index}",
                                            marks=pytest.mark.long("test_stops has QEMU's walk"))])
def test_the_walk_is_the_pagemap(qbuf, kind, walk):
    """What gdb finds through the tables is where the application's pages are."""
    qpn, pfns, stride = qbuf.first["qpn"], qbuf.first["pfns"], qbuf.first["stride"]
    pages = range(0, len(pfns), max(1, len(pfns) // 5))
    text = gdb(kind, "a", *[walk.format(qpn=qpn, offset=p * PAGE, index=p * PAGE // stride)
                            for p in pages])
    found = [int(a, 16) for a in re.findall(r"DMA address (0x[0-9a-f]+)", text)]
    assert found == [pfns[p] * PAGE for p in pages], text
    assert len(re.findall("hop 1:", text)) == len(pages)


def test_kernel_objects(pair, qbuf):
    """The driver's objects are those that the device has."""
    qpc = context(pair.a, "qp", qbuf.first["qpn"])
    text = gdb("kernel", "a", "qhca-devices", "qhca-qps", f"qhca-qp {qpc.qpn}", "qhca-cqs",
               f"qhca-cq {qpc.send_cqn}")
    assert pair.a.ibdev in find(r"^(\w+) (\w+) struct qhca_ib_dev", text)[1]
    row = find(rf"^QPN {qpc.qpn} RC RTS user CQ (\d+), (\d+) ", text)
    assert (int(row[1]), int(row[2])) == (qpc.send_cqn, qpc.recv_cqn)
    assert find(r"^  sq: (\d+) WQEs of (\d+) bytes; tree", text).groups() == (
        str(1 << qpc.sq_shift), str(1 << qpc.sq_stride))
    assert "GSI RTS kernel" in text


@pytest.mark.long("test_kernel_objects has QPs and CQs, test_objects has tables")
def test_kernel_regions(pair):
    """The driver's memory regions are those that the device has, by their keys."""
    pair.a.start("ibv_rc_pingpong -d $IBDEV -g $GIDX -s 20000")
    pair.a.wait_listening(18515)
    text = gdb("kernel", "a", "qhca-mrs")
    key = int(find(r"^key (0x[0-9a-f]+) LOCAL_WRITE ", text)[1], 16)
    mr = pair.qmp("a", "qhca-inspect", object="mr", number=key)["look"]["context"]
    text = gdb("kernel", "a", f"qhca-mr {key}", f"qhca-table mr {key} 0x1234")
    assert int(find(r"iova (0x[0-9a-f]+) ", text)[1], 16) == mr["iova"]
    assert find(r" \+(\d+), LOCAL_WRITE", text)[1] == "20000" == str(mr["len"])
    seen = pair.qmp("a", "qhca-walk", object="mr", number=key, offset=0x1234)["look"]
    assert int(find(r"at DMA address (0x[0-9a-f]+)", text)[1], 16) == seen["address"]


def test_break_in_the_driver(pair):
    """A breakpoint in a module hits, with arguments and source lines."""
    # no server listens there: it ends as soon as it has created its QP
    pair.a.start("while :; do ibv_rc_pingpong -d $IBDEV -g $GIDX 127.0.0.1; done")
    text = gdb("kernel", "a", "hbreak qhca_ib_create_qp", "continue", "backtrace 1",
               "print attr->cap.max_send_wr", "print qhca_ib_devices", "delete")
    find(r"^#0 .*qhca_ib_create_qp \(ibqp=0x[0-9a-f]+.*qp\.c:\d+", text)
    assert int(find(r"^\$1 = (\d+)", text)[1]) > 0
    pair.a.run("true")      # it continues when gdb has quit


@pytest.mark.long("gdb reads half a minute of symbols; the driver and the engine stay in the gate")
def test_send_in_the_provider(pair):
    """ibv_post_send: the WQE that the provider writes, by the program's own QP."""
    server = start_server(pair.b, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5")
    text = gdb("provider", "a", "break qhca_post_send", "continue", "print *wr->sg_list",
               "finish", "qhca-qps", "delete", "continue",
               program=f"ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5 {pair.b.ip}")
    sge = {k: int(v) for k, v in re.findall(r"(addr|length|lkey) = (\d+)", text)}
    qpn = find(r"^QPN (\d+) RC RTS sq 1/\d+ rq \d+/\d+ ", text)[1]
    assert "exited normally" in text
    assert server.wait(60).rc == 0
    # The same again, this time looking into the ring.
    server = start_server(pair.b, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5")
    text = gdb("provider", "a", "break qhca_db_ring if offset == 0", "continue", "up",
               "qhca-qp", "delete", "continue",
               program=f"ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5 {pair.b.ip}")
    wqe = find(r"WQE 0: SEND wr_id=0x2 flags=SIGNALED \[(0x[0-9a-f]+) \+(\d+) lkey=(\S+)\]", text)
    assert int(wqe[1], 16) == sge["addr"] and int(wqe[2]) == sge["length"]
    assert int(qpn) > 1
    assert server.wait(60).rc == 0


def test_engine_objects(pair, qbuf):
    """The engine inside QEMU, inspected from outside."""
    qpn = qbuf.first["qpn"]
    qpc = context(pair.a, "qp", qpn)
    text = gdb("engine", "a", "qhca-engine", "qhca-qps", f"qhca-qp {qpn}", "qhca-timers",
               "break qhca_db_write", "info breakpoints")
    assert int(find(r"^  qps=(\d+) ", text)[1]) >= 3
    find(rf"^QPN {qpn} RC RTS sq \d+\.\.\d+\.\.\d+ ", text)
    find(rf"^QPN {qpn}: RC, RTS, peer's QPN {qpc.dest_qpn}, ", text)
    find(r"qemu-hw/engine/|hw/net/qhca/engine/|doorbell\.c:\d+", text)
    pair.a.run("true")


@pytest.mark.parametrize("kind, mistakes", [
    pytest.param("kernel", {
        "qhca-qp": "the QPN is missing",
        "qhca-qp 99999": "no QP 99999",
        "qhca-table mr 0x1": "no MR with key 0x1",
        "qhca-table qp 1 xq": "sq|rq",
        "qhca-table qp 1 sq 0x10000000": "beyond the end",
    }, marks=pytest.mark.long("a second gdb for wrong input; the gate has one")),
    ("engine", {"qhca-qp 99999": "no QP 99999", "qhca-walk 1 sq": "INDEX"}),
], ids=["kernel", "engine"])
def test_mistakes_are_named(pair, kind, mistakes):
    """One after the other: a gdb for each would read all symbols again."""
    text, at = gdb(kind, "a", *mistakes, status=1), 0
    for command, words in mistakes.items():
        at = text.find(words, at) + 1
        assert at, f"{command} does not say {words!r}:\n{text}"


def test_what_is_not_there_is_said(pair):
    for words, said in [(["--name", "nosuchlab", "kernel", "a"], "nosuchlab is not up"),
                        (["--name", LAB_NAME, "kernel", "z"], "no guest 'z'"),
                        (["--name", LAB_NAME, "provider", "a"], "give the program")]:
        done = subprocess.run([str(TOP / "lab/qhca-gdb"), *words], capture_output=True, text=True,
                              timeout=300, stdin=subprocess.DEVNULL)
        assert done.returncode == 125 and said in done.stderr, done.stderr

# SPDX-License-Identifier: GPL-2.0-or-later
"""qhca-scope and the real device: every kind, rings, walks, breaks, steps."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from adapter import Adapter
from machine import Machine
from rdma import BTH, Setup, parse
from test_eth_rq import Queue, flow_of, port, rss
from test_raw import flow

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import paths, process  # noqa: E402
from qhca_scope import cli  # noqa: E402
from qhca_scope.tui.model import Model  # noqa: E402
from qhca_scope.tui import panes  # noqa: E402
from qhca_scope import Scope, render  # noqa: E402

pytestmark = pytest.mark.observe


@pytest.fixture
def rts(monkeypatch):
    """A machine with a QP in RTS, remembered as the lab "qt" with a guest a."""
    base = Path(tempfile.mkdtemp(prefix="qd", dir="/tmp"))
    monkeypatch.setenv("QHCA_RUN", str(base))
    monkeypatch.delenv("QHCA_LAB", raising=False)
    directory = paths.lab_dir("qt")
    (directory / "a").mkdir(parents=True)
    (base / "logs" / "a").mkdir(parents=True)
    sockets = [w for n in range(1, 5)
               for w in ("-qmp", f"unix:{directory}/a/qmp{n},server=on,wait=off")]
    with Machine(*sockets, device="qhca,id=q,addr=4.0,mac=02:00:00:00:00:01") as machine:
        (directory / "lab.json").write_text(json.dumps({
            "name": "qt", "logs": str(base / "logs"), "helpers": [], "options": {}, "guests": {
                "a": {"name": "a", "number": 1, "nic": "qhca", "mac": "", "ip": "10.99.0.1",
                      "ip6": "fd99::1", "process": process.identity(machine.process.pid)}}}))
        adapter = Adapter(machine)
        adapter.start()
        yield Setup(adapter, "rts")
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def scope(rts, capsys):
    """scope(...): its output; the exit status must be STATUS."""
    def run(*argv, status=0):
        got = cli.main([str(a) for a in argv])
        said = capsys.readouterr()
        assert got == status, said.out + said.err
        return said.out + said.err
    return run


@pytest.fixture
def answer(scope):
    def run(*argv, status=0):
        return json.loads(scope("--json", *argv, status=status))
    return run


def post(rts, n):
    for i in range(n):
        rts.qp.write_send(rts.sge(8), wr_id=0x500 + i)
    rts.qp.ring_sq()


def test_every_kind(scope, answer):
    """Everything in the schema of this QEMU, in text and as JSON; each listed object can be
    shown."""
    kinds = scope("nonsense", status=2).split("kinds: ")[1].split(";")[0].split(", ")
    assert len(kinds) >= 13
    shown = 0
    for kind in kinds:
        assert scope(kind).startswith("guest a, ")
        assert answer(kind)["look"]["object"] == kind
        with Scope.of_lab("qt") as tool:
            numbers = tool["a"].numbers(kind) if kind != "device" else []
        for number in numbers:
            assert scope(kind, number)
            shown += 1
    assert shown >= 6


def test_ring_walk_and_tree(rts, scope, answer):
    post(rts, 3)
    qpn = rts.qp.num
    text = scope("ring", "qp", qpn, "sq")
    assert "wr_id" in text and "0x500" in text
    assert next(line for line in text.splitlines() if "P" in line.split(">")[0]).split()[1] == "3"
    seen = answer("walk", "qp", qpn, "sq", 2)["look"]
    assert seen["address"] == rts.qp.sq + 2 * 64
    assert f"DMA address 0x{rts.qp.sq + 2 * 64:x} " in scope("walk", "qp", qpn, "sq", 2)
    rts.mr.fill(b"here they are", 0x123)
    text = scope("walk", "mr", rts.mr.key, "--va", rts.mr.iova + 0x123, "--bytes", 13)
    assert "here they are" in text
    assert scope("tree", "qp", qpn, "sq").splitlines()[1].startswith(f"qp {qpn} sq")


def test_names_are_conditions(rts, scope, answer):
    """Each listed code name is accepted, and listed again."""
    for event in answer("names")["events"]:
        if event["codes"]:
            name = event["codes"][-1]["name"]
            scope("break", event["on"], "--code", name)
            assert f"code {name}" in scope("breaks")
            scope("delete", "--all")


def test_break_step_continue(rts, scope, answer):
    """The ring's mark moves by one with each step; nothing is lost."""
    qpn = rts.qp.num
    scope("break", "doorbell", "--qpn", qpn, "--once")
    post(rts, 5)
    stop = answer("wait", "--timeout", 120)
    assert (stop["run"], stop["look"]["why"]) == ("debug", "break")
    assert answer("ring", "qp", qpn, "sq")["look"]["next"] == 0
    for n in range(1, 4):
        stop = answer("step", "wqe")
        assert stop["look"]["event"]["index"] == n - 1
        assert answer("ring", "qp", qpn, "sq")["look"]["next"] == n
    assert "a step on wqe" in scope("stop")
    scope("continue")
    psns = [parse(rts.adapter.m.receive_frame())[BTH].psn for _ in range(5)]
    assert psns == list(range(psns[0], psns[0] + 5))


def test_a_step_that_does_not_come(rts, scope, answer):
    scope("freeze")
    assert "were cancelled" in scope("step", "cqe", "--timeout", 0.2, status=4)
    assert answer("stop")["run"] == "running"


def test_panes_of_the_real_device(rts, scope):
    """Each pane has what the device shows; a stop moves the cursor."""
    scope("break", "wqe", "--once")
    post(rts, 2)
    scope("wait", "--timeout", 120)
    with Scope.of_lab("qt") as tool:
        model = Model(tool)
        model.refresh()
        view = model.view
        assert (view.trouble, view.kind, view.number) == ("", "qp", rts.qp.num)
        assert view.ring == "sq" and view.cursor("sq") == 0

        def text(lines):
            return render.plain_text(lines)
        assert "break 1 on wqe" in text(panes.stop_lines(view, 100))
        assert "RTS" in text(panes.context_lines(view, 100))
        lines, row = panes.ring_lines(view, "sq", 100)
        assert text(lines[row:row + 1]).split(">")[-1].split()[0] == "0"
        assert f"DMA address 0x{rts.qp.sq:x}" in text(panes.table_lines(view, 100, 40))
        assert "wqe" in text(panes.event_lines(view, 100))
        assert f"cq {rts.cq.num}" in text(panes.completion_lines(view, 100))
        assert str(rts.qp.num) in text(panes.object_lines(view, 30)[0])
        for kind in view.machine.kinds():
            view.choose(kind, None)
            view.follow = False
            model.refresh()
            assert view.trouble == "", kind
    scope("continue")


def test_ethernet(rts, scope):
    """Queues, table, filter and a split frame as the device has them."""
    adapter = rts.adapter
    queues = [Queue(adapter, rts.eq, split) for split in (0, 512)]
    qpn, rqtn = rss(adapter, queues)
    port(adapter, "ETH_QPN", eth_qpn=qpn)
    rule = flow(adapter, qpn, {"l4": 17}, {"l4": 0xFF}, tag=9)
    frame = next(f for f, hashed in map(flow_of, range(5000, 5100)) if hashed & 1)
    adapter.m.send_frame(frame)
    queues[1].receive()
    look = json.loads(scope("eth", "--json"))
    assert look["port"]["eth_qpn"] == qpn
    seen = {q["number"]: q for q in look["queues"]}
    assert seen[queues[0].num]["data"] is None and seen[queues[0].num]["ring"]["tail"] == 0
    assert seen[queues[1].num]["ring"]["tail"] == seen[queues[1].num]["data"]["tail"] == 1
    assert [(s["qpn"], s["rqtn"], s["queues"]) for s in look["spread"]] == [
        (qpn, rqtn, [q.num for q in queues])]
    assert [(f["number"], f["tag"]) for f in look["filters"]] == [(rule, 9)]
    (found,) = json.loads(scope("eth", queues[1].num, "--json"))["frames"]
    assert found["ring"] == [{"index": 0, "addr": queues[1].head.mem, "len": 2048, "bytes": 42}]
    assert found["data"] == [{"index": 0, "addr": queues[1].data.mem, "len": 512,
                              "bytes": len(frame) - 42}]
    assert f"RSS QP {qpn}" in scope("eth") and "l4=17" in scope("eth")

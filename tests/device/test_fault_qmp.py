# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults on demand over QMP, in the monitor and as a property of the device."""

import pytest
from adapter import Adapter
from layout import C
from machine import Machine, until
from rdma import BTH, SEND_ONLY, Setup, ack, packet, parse

pytestmark = pytest.mark.observe

DEVICE = "qhca,id=q,addr=4.0,mac=02:00:00:00:00:01"
RTS_PSN, RTR_PSN = 200, 100


@pytest.fixture
def rts(adapter):
    return Setup(adapter, "rts")


def send(rts, n: int) -> None:
    for i in range(n):
        rts.qp.write_send(rts.sge(8), wr_id=i)
    rts.qp.ring_sq()


def psns(m) -> list[int]:
    """PSNs of the packets on the wire, relative to the first."""
    got = []
    while frame := m.receive_frame(0.2):
        got.append(parse(frame)[BTH].psn - RTS_PSN)
    return got


def refused(m, text: str, **fault) -> None:
    with pytest.raises(RuntimeError, match=text):
        m.qmp("qhca-fault-add", fault=fault)


def test_list(rts):
    """What is added is there, counts, and goes."""
    m = rts.adapter.m
    assert m.qmp("qhca-fault-list")["faults"] == []
    info = m.qmp("qhca-fault-add", fault={"action": "drop", "number": rts.qp.num, "nth": 2})
    assert info == {"id": 1, "matches": 0, "hits": 0,
                    "rule": f"drop number={rts.qp.num} direction=out nth=2"}
    m.qmp("qhca-fault-add", device="q", fault={
        "action": "delay", "psn": 2, "psn-last": 3, "psn-relative": True,
        "opcode": "SEND_ONLY,write", "time": 5000, "probability": 1.0})
    send(rts, 4)
    assert psns(m) == [0]
    listed = m.qmp("qhca-fault-list")
    assert [(f["matches"], f["hits"]) for f in listed["faults"]] == [(4, 1), (2, 2)]
    assert listed["held"] == 2 and listed["device"].endswith("/q")
    m.clock_step(5000)
    assert psns(m) == [2, 3]
    m.qmp("qhca-fault-remove", id=1)
    with pytest.raises(RuntimeError, match="no fault 1"):
        m.qmp("qhca-fault-remove", id=1)
    m.qmp("qhca-fault-remove")
    assert m.qmp("qhca-fault-list")["faults"] == []


def test_wrong(rts):
    """Each mistake is named, and what would be right."""
    m = rts.adapter.m
    refused(m, "24 bits", action="drop", psn=1 << 24)
    refused(m, "psn-last", action="drop", **{"psn-last": 3})
    refused(m, "SEND_ONLY", action="drop", opcode="SEND_NEVER")
    refused(m, "xrc-ini", action="drop", **{"qp-type": "rd"})
    refused(m, "between 0 and 1", action="drop", probability=1.5)
    refused(m, "1 ns", action="delay")
    refused(m, "at a packet", action="drop", index=3)
    refused(m, "leave 'at' out", action="drop", at="dma")
    refused(m, "never", action="drop", count=0)
    refused(m, "does not accept value 'dorp'", action="dorp")
    refused(m, "is unexpected", action="drop", qpn=3)
    for i in range(64):
        m.qmp("qhca-fault-add", fault={"action": "drop", "nth": 1000})
    refused(m, "64 faults", action="drop")
    assert len(m.qmp("qhca-fault-list")["faults"]) == 64


def test_seed(rts):
    """The same seed, the same losses; another one, others."""
    m = rts.adapter.m
    seen = []
    first = 0
    m.qmp("qhca-fault-add", fault={"action": "drop", "opcode": "send", "probability": 0.5})
    for seed in (1, 2, 1):
        m.qmp("qhca-fault-seed", seed=seed)
        assert m.qmp("qhca-fault-list")["seed"] == seed
        send(rts, 16)
        got = [psn - first for psn in psns(m)]
        first += 16
        m.send_frame(ack(rts.qp.num, RTS_PSN + first - 1, msn=first))
        for i in range(16):
            assert rts.cq.take().wr_id == i
        seen.append(got)
    assert seen[0] == seen[2] != seen[1]
    assert all(2 < len(got) < 14 for got in seen)


def test_monitor(rts):
    m = rts.adapter.m

    def hmp(line: str) -> str:
        return m.qmp("human-monitor-command", command_line=line).replace("\r", "")

    assert hmp("qhca_fault seed 9") == ""
    assert hmp("qhca_fault drop opcode=send every=2") == ""
    assert "FIELD=VALUE" in hmp("qhca_fault drop 17")
    send(rts, 4)
    assert psns(m) == [0, 2]
    assert hmp("info qhca faults") == (
        "seed: 9\nheld: 0\n1: drop opcode=send direction=out every=2: 2 hits of 4\n")
    assert hmp("qhca_fault_delete 1") == ""
    assert "no fault 1" in hmp("qhca_fault_delete 1")


def test_stop(rts):
    """A break on a fault, with the event decoded."""
    m = rts.adapter.m
    m.qmp("qhca-fault-add", fault={"action": "drop", "nth": 2})
    m.qmp("qhca-break-add", condition={"on": "injected", "code": 0})
    send(rts, 3)
    event = m.wait_event("QHCA_STOP")["data"]["stop"]["look"]["event"]
    assert (event["kind"], event["action"], event["psn"]) == ("fault_injected", "drop",
                                                              RTS_PSN + 1)
    until(lambda: m.qmp("query-status")["status"] == "debug", "run state debug")
    m.qmp("cont")
    assert psns(m) == [0, 2]


def test_property(tmp_path):
    """Rules from a text, from a file, and a device that will not start."""
    rules = "seed 5; drop nth=1 opcode=send"
    for faults in (rules, rules.replace("; ", "\n") + "\n# the end\n"):
        if "\n" in faults:
            (tmp_path / "rules").write_text(faults)
            faults = str(tmp_path / "rules")
        with Machine(device=f"{DEVICE},faults={faults}") as m:
            adapter = Adapter(m)
            adapter.start()
            rts = Setup(adapter, "rts")
            assert m.qmp("qhca-fault-list")["seed"] == 5
            send(rts, 2)
            assert psns(m) == [1]
            adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
            assert m.qmp("qhca-fault-list")["faults"][0]["hits"] == 1
    for faults, text in (("drop; dorp", "line 1: no action 'dorp'"),
                         (str(tmp_path / "none"), "no action"),
                         (str(tmp_path), "cannot read")):
        with pytest.raises(RuntimeError, match=text):
            Machine(device=f"{DEVICE},faults={faults}")


def test_fatal(rts):
    """It says so, and a reset by the driver brings it back."""
    adapter = rts.adapter
    adapter.m.qmp("qhca-fault-add", fault={"action": "fatal"})
    status = adapter.reg(C.QHCA_REG_STATUS)
    assert status & C.QHCA_STATUS_FATAL and not status & C.QHCA_STATUS_READY
    assert status >> C.QHCA_STATUS_FATAL_SHIFT == C.QHCA_FATAL_INTERNAL
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.start_admin()
    assert adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_READY


def test_reset(rts):
    """It forgets all by itself, in the middle of what it does."""
    adapter = rts.adapter
    adapter.m.qmp("qhca-fault-add", fault={"action": "reset", "at": "packet", "nth": 2})
    send(rts, 3)
    assert psns(adapter.m) == [0]
    assert adapter.reg(C.QHCA_REG_STATUS) == C.QHCA_STATUS_LINK
    assert adapter.reg(C.QHCA_REG_CTRL) == 0
    adapter.start_admin()
    assert Setup(adapter, "rts").qp.query().state == C.QHCA_QPS_RTS


def test_link(rts):
    """The cable is out for a time of the machine's clock."""
    adapter = rts.adapter
    m = adapter.m
    m.qmp("qhca-fault-add", fault={"action": "link-down", "time": 1000000})
    assert not adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK
    send(rts, 1)
    assert psns(m) == []
    m.send_frame(packet(rts.qp.num, SEND_ONLY, RTR_PSN, b"12345678", ackreq=1))
    assert psns(m) == []
    m.qmp("set_link", name="wire", up=False)
    m.clock_step(1000000)
    assert not adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK
    m.qmp("set_link", name="wire", up=True)
    assert adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK


def test_interrupt(rts):
    """Held back until the fault goes."""
    adapter = rts.adapter
    m = adapter.m
    m.qmp("qhca-fault-add", fault={"action": "hold-interrupt", "number": 1})
    rts.eq.arm()
    rts.cq.arm()
    send(rts, 1)
    m.send_frame(ack(rts.qp.num, RTS_PSN))
    assert rts.cq.take().status == C.QHCA_WC_SUCCESS
    assert not adapter.interrupted(1)
    assert m.qmp("qhca-fault-list")["held"] == 1
    m.qmp("qhca-fault-remove")
    assert adapter.interrupted(1)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Injected faults over QMP, in the monitor and as a property of the device."""

import json

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
    """A rule can be added, counts its matches, and can be removed."""
    m = rts.adapter.m
    assert m.qmp("qhca-fault-list")["faults"] == []
    fault = {"action": "drop", "number": rts.qp.num, "nth": 2}
    assert m.qmp("qhca-fault-add", fault=fault) == {
        "id": 1, "matches": 0, "hits": 0, "fault": fault}
    m.qmp("qhca-fault-add", device="q", fault={
        "action": "delay", "psn": 2, "psn-last": 3, "psn-relative": True,
        "opcode": "SEND_ONLY", "time": 5000, "probability": 1.0})
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
    assert [f["id"] for f in m.qmp("qhca-fault-list")["faults"]] == [2]
    assert m.qmp("qhca-fault-add", fault=fault)["id"] == 3
    m.qmp("qhca-fault-remove")
    assert m.qmp("qhca-fault-list")["faults"] == []


def test_wrong(rts):
    """Each error message reports the mistake and the valid values."""
    m = rts.adapter.m
    refused(m, "'psn' has 24 bits", action="drop", psn=1 << 24)
    for range_ in ("psn", "address", "index"):
        refused(m, f"'{range_}-last' needs '{range_}'", action="drop", **{f"{range_}-last": 3})
    refused(m, "'psn-relative' needs 'psn'", action="drop", **{"psn-relative": False})
    refused(m, "'opcode' does not accept value 'SEND_NEVER'.*SEND_ONLY", action="drop",
            opcode="SEND_NEVER")
    refused(m, "'qp-type' does not accept value 'rd'", action="drop", **{"qp-type": "rd"})
    refused(m, "'probability' expects 0 to 1", action="drop", probability=1.5)
    refused(m, "'time' must be 1", action="delay")
    refused(m, "'fault.time'", action="delay", time="1ms")
    refused(m, "'syndrome'", action="drop", syndrome=256)
    refused(m, "'index' exists at a table only", action="drop", index=3)
    refused(m, "'at' can only be packet or frame", action="drop", at="dma")
    refused(m, "'at' must be left out", action="rnr", at="frame")
    refused(m, "'opcode' exists at a packet only", action="drop", at="frame", opcode="ACK")
    refused(m, "'count' must be at least 1", action="drop", count=0)
    refused(m, "'action' does not accept value 'dorp'", action="dorp")
    refused(m, "'fault.action' is missing")
    refused(m, "'fault.qpn' is unexpected", action="drop", qpn=3)
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

    assert hmp("qhca_fault_seed 9") == ""
    assert hmp("qhca_fault drop,opcode=send,every=2") == "fault 1\n"
    send(rts, 4)
    assert psns(m) == [0, 2]
    assert hmp("info qhca faults") == (
        "seed: 9\nheld: 0\n1: drop,every=2,opcode=send: 2 hits of 4\n")
    assert hmp("qhca_fault_delete 1") == ""
    assert "no fault 1" in hmp("qhca_fault_delete 1")
    for rule, text in (("drop,17", "'17'"),
                       ("dorp", "'action' does not accept value 'dorp'"),
                       ("drop,qpn=1", "'qpn' is unexpected"),
                       ("drop,number=x", "'number'"), ("drop,number=-1", "'number'"),
                       ("drop,number=4294967296", "'number'"),
                       ("drop,psn=5-9", "'psn'"), ("drop,psn.0=5", "'psn"),
                       ("drop,psn=1,psn-relative=maybe", "'psn-relative'"),
                       ("drop,probability=nan", "'probability'"),
                       ("nth=2", "'action' is missing"), ("{", "JSON")):
        assert text in hmp(f"qhca_fault {rule}"), rule
    assert m.qmp("qhca-fault-list")["faults"] == []


EVERYTHING = (
    {"action": "delay", "number": 17, "peer": 2, "psn": 0xfffffe, "psn-last": 3,
     "psn-relative": True, "opcode": "SEND_ONLY", "syndrome": 96, "qp-type": "xrc-ini",
     "direction": "both", "skip": 1, "nth": 2, "every": 3, "count": (1 << 64) - 1,
     "probability": 0.5, "time": 1},
    {"action": "dma-error", "kind": "data", "access": "write", "address": 1 << 63,
     "address-last": (1 << 64) - 1},
    {"action": "table-error", "index": 3, "index-last": 7},
    {"action": "garbage", "at": "register", "number": 8},
    {"action": "corrupt", "at": "frame", "number": 0x0806, "direction": "in"},
    {"action": "duplicate", "packets": 2, "opcode": "read-response"},
)


def test_one_notation(rts):
    """The monitor accepts the rules that it shows, and creates the same rules as QMP."""
    m = rts.adapter.m

    def hmp(line: str) -> str:
        return m.qmp("human-monitor-command", command_line=line).replace("\r", "")

    for fault in EVERYTHING:
        m.qmp("qhca-fault-add", fault=fault)
    shown = hmp("info qhca faults").splitlines()[2:]
    for line in shown:
        hmp("qhca_fault " + line.split(": ")[1])
    faults = [f["fault"] for f in m.qmp("qhca-fault-list")["faults"]]
    assert faults == [*EVERYTHING, *EVERYTHING]
    keys = {key for fault in EVERYTHING for key in fault}
    schema = {t["name"]: t for t in m.qmp("query-qmp-schema")}
    add = schema[schema["qhca-fault-add"]["arg-type"]]
    fault = schema[next(f["type"] for f in add["members"] if f["name"] == "fault")]
    assert keys == {f["name"] for f in fault["members"]}


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


def device(faults) -> str:
    return json.dumps({"driver": "qhca", "id": "q", "addr": "4.0", "mac": "02:00:00:00:00:01",
                       "netdev": "wire", "faults": faults})


def test_property():
    """Rules from the start, and a device that will not start."""
    faults = [{"action": "drop", "nth": 1, "opcode": "send"}, {"action": "rnr", "count": 5}]
    with Machine(device=device(faults)) as m:
        adapter = Adapter(m)
        adapter.start()
        rts = Setup(adapter, "rts")
        send(rts, 2)
        assert psns(m) == [1]
        adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
        listed = m.qmp("qhca-fault-list")["faults"]
        assert [f["fault"] for f in listed] == faults and listed[0]["hits"] == 1
        assert m.qmp("qom-get", path="/machine/peripheral/q", property="faults") == faults
        with pytest.raises(RuntimeError, match="qhca-fault-add"):
            m.qmp("qom-set", path="/machine/peripheral/q", property="faults", value=[])
    for faults, text in (([{"action": "drop"}, {"action": "dorp"}],
                          r"'action' does not accept value 'dorp'"),
                         ([{"action": "drop"}, {"action": "delay"}],
                          r"faults\[1\]: 'time' must be 1"),
                         ([{"action": "drop"}] * 65, r"faults\[64\]: there are 64 faults"),
                         ({"action": "drop"}, "'faults', expected: array"),
                         ("drop", "'faults', expected: array")):
        with pytest.raises(RuntimeError, match=text):
            Machine(device=device(faults))
    with pytest.raises(RuntimeError, match="'faults' is a list: give it to -device as JSON"):
        Machine("-global", "qhca.faults=drop")


def test_fatal(rts):
    """It reports this, and a reset by the driver recovers it."""
    adapter = rts.adapter
    adapter.m.qmp("qhca-fault-add", fault={"action": "fatal"})
    status = adapter.reg(C.QHCA_REG_STATUS)
    assert status & C.QHCA_STATUS_FATAL and not status & C.QHCA_STATUS_READY
    assert status >> C.QHCA_STATUS_FATAL_SHIFT == C.QHCA_FATAL_INTERNAL
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.start_admin()
    assert adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_READY


def test_reset(rts):
    """It resets spontaneously, in the middle of its work."""
    adapter = rts.adapter
    adapter.m.qmp("qhca-fault-add", fault={"action": "reset", "at": "packet", "nth": 2})
    send(rts, 3)
    assert psns(adapter.m) == [0]
    assert adapter.reg(C.QHCA_REG_STATUS) == C.QHCA_STATUS_LINK
    assert adapter.reg(C.QHCA_REG_CTRL) == 0
    adapter.start_admin()
    assert Setup(adapter, "rts").qp.query().state == C.QHCA_QPS_RTS


def test_link(rts):
    """The cable is unplugged for a period of virtual time."""
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
    """Held back until the fault is removed."""
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

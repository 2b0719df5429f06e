# SPDX-License-Identifier: GPL-2.0-or-later
"""Breaks and steps over QMP: the machine stops, nothing is lost, it continues."""

import time

import pytest
from layout import C
from machine import until
from rdma import BTH, PEER_QPN, SEND_ONLY, Setup, ack, packet, parse

pytestmark = pytest.mark.observe

RTS_PSN, RTR_PSN = 200, 100


@pytest.fixture
def rts(adapter):
    return Setup(adapter, "rts")


def stopped(m) -> dict:
    """Wait until the machine has stopped; returns the data of QHCA_STOP."""
    event = m.wait_event("QHCA_STOP")["data"]["stop"]
    until(lambda: m.qmp("query-status")["status"] == "debug", "run state debug")
    m.wait_event("STOP")
    return event["look"]


def send(rts, n: int) -> None:
    for i in range(n):
        rts.qp.write_send(rts.sge(8), wr_id=i)
    rts.qp.ring_sq()


def test_doorbell(rts):
    """At the doorbell of one QP: nothing is done yet, and cont does it."""
    m = rts.adapter.m
    info = m.qmp("qhca-break-add", condition={"on": "doorbell", "number": rts.qp.num})
    assert info == {"id": 1, "hits": 0, "condition": {"on": "doorbell", "number": rts.qp.num}}
    rts.cq.arm()                # a doorbell of another object
    assert m.qmp("query-status")["status"] == "running"
    send(rts, 2)
    stop = stopped(m)
    assert (stop["why"], stop["id"]) == ("break", 1)
    assert (stop["event"]["doorbell_name"], stop["event"]["index"]) == ("SQ", 2)
    assert m.no_frame()
    requester = m.qmp("qhca-inspect", object="qp", number=rts.qp.num)["look"]
    assert requester["context"]["sq_head"] == 2 and requester["context"]["sq_next"] == 0
    assert m.qmp("qhca-query-stop")["look"]["trail"][-1]["kind"] == "doorbell"
    m.qmp("cont")
    for psn in (RTS_PSN, RTS_PSN + 1):
        assert parse(m.receive_frame())[BTH].psn == psn
    assert m.qmp("qhca-query-stop")["look"]["stopped"] is False
    assert m.qmp("qhca-break-list")[0]["hits"] == 1
    m.qmp("qhca-break-remove")
    assert m.qmp("qhca-break-list") == []


def test_steps(rts):
    """Steps of n WQEs, then of n packets, are exact."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "doorbell", "number": rts.qp.num, "once": True})
    send(rts, 12)
    stopped(m)
    m.qmp("qhca-step", on="wqe", count=3)
    assert stopped(m)["event"]["index"] == 2
    assert [parse(m.receive_frame())[BTH].psn for _ in range(2)] == [RTS_PSN, RTS_PSN + 1]
    assert m.no_frame()
    for i in range(2, 6):
        m.qmp("qhca-step", on="packet")
        assert stopped(m)["event"]["psn"] == RTS_PSN + i
        assert parse(m.receive_frame())[BTH].psn == RTS_PSN + i
        assert m.no_frame()
    m.qmp("cont")
    for i in range(6, 12):
        assert parse(m.receive_frame())[BTH].psn == RTS_PSN + i


def test_frames_wait(rts):
    """Packets that arrive while it is stopped are not lost: each one is a stop."""
    m = rts.adapter.m
    for i in range(5):
        rts.qp.post_recv(rts.sge(64), wr_id=i)
    m.qmp("qhca-break-add", condition={"on": "packet-in"})
    for i in range(5):
        m.send_frame(bytes(packet(rts.qp.num, SEND_ONLY, RTR_PSN + i, b"frame %d" % i)))
    for i in range(5):
        stop = stopped(m)
        assert (stop["event"]["psn"], stop["event"]["opcode_name"]) == \
            (RTR_PSN + i, "RC SEND_ONLY")
        m.qmp("cont")
    m.qmp("qhca-break-remove", id=1)
    for i in range(5):
        assert rts.cq.take().wr_id == i
    seen = m.qmp("qhca-inspect", object="device")["look"]["counters"]
    assert seen["roce-out-of-sequence"] == seen["roce-duplicate"] == 0


def test_time_stands(rts):
    """A minute spent debugging takes no time for the adapter: no retry."""
    m = rts.adapter.m
    send(rts, 1)
    parse(m.receive_frame())
    m.qmp("qhca-break-add", condition={"on": "doorbell", "once": True})
    send(rts, 1)
    stopped(m)
    time.sleep(0.3)             # the ACK timeout is 67 ms
    assert m.no_frame()
    m.qmp("cont")
    assert parse(m.receive_frame())[BTH].psn == RTS_PSN + 1
    assert m.no_frame()
    assert rts.qp.query().timeouts == 0
    m.send_frame(ack(rts.qp.num, RTS_PSN + 1))
    assert [rts.cq.take().status for _ in range(2)] == [C.QHCA_WC_SUCCESS] * 2


def test_stopped_for_something_else(rts):
    """A break that is met while the machine is being stopped is reported when it continues."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "doorbell", "once": True})
    m.qmp("stop")
    m.wait_event("STOP")
    send(rts, 1)
    assert m.qmp("query-status")["status"] == "paused"
    assert m.qmp("qhca-query-stop")["look"]["stopped"]
    m.qmp("cont")
    assert stopped(m)["event"]["doorbell_name"] == "SQ"
    assert m.no_frame()
    m.qmp("cont")
    assert parse(m.receive_frame())[BTH].psn == RTS_PSN


def test_names(rts):
    """The reported codes and fields are those that conditions accept."""
    m = rts.adapter.m
    events = m.qmp("qhca-query-names")["look"]["events"]
    packets = next(e for e in events if e["on"] == "packet-out")
    code = next(c["code"] for c in packets["codes"] if c["name"] == "RC SEND_ONLY")
    assert code == SEND_ONLY
    for event in events:
        names = [c["name"] for c in event["codes"]]
        assert len(set(names)) == len(names) and (not names or "code" in event["fields"])
        assert not event["syndromes"] or "syndrome" in event["fields"]
        m.qmp("qhca-break-add",
              condition={"on": event["on"], **{f: 1 for f in event["fields"]}})
    m.qmp("qhca-break-remove")


def test_cancelled_step(rts):
    """A step whose event never comes can be cancelled."""
    m = rts.adapter.m
    m.qmp("qhca-step", on="wqe")
    assert m.qmp("qhca-query-stop")["look"]["steps_left"] == 1
    m.qmp("qhca-step-cancel")
    assert "steps_left" not in m.qmp("qhca-query-stop")["look"]
    send(rts, 1)
    assert parse(m.receive_frame())[BTH].psn == RTS_PSN
    assert m.qmp("query-status")["status"] == "running"


def test_step_that_cannot_begin(rts, tmp_path):
    """The machine cannot continue: the step fails, and does not wait for it to do so."""
    m = rts.adapter.m

    def migration() -> str:
        return m.qmp("query-migrate")["status"]

    m.qmp("migrate-set-capabilities",
          capabilities=[{"capability": "pause-before-switchover", "state": True}])
    m.qmp("migrate", uri=f"file:{tmp_path}/state")
    until(lambda: migration() == "pre-switchover", "the end of the migration")
    with pytest.raises(RuntimeError, match="not finalized"):
        m.qmp("qhca-step", on="wqe")
    assert "steps_left" not in m.qmp("qhca-query-stop")["look"]
    m.qmp("migrate_cancel")
    until(lambda: migration() == "cancelled", "the migration to be cancelled")
    until(lambda: m.qmp("query-status")["status"] == "running", "the machine")
    send(rts, 2)
    assert [parse(m.receive_frame())[BTH].psn for _ in range(2)] == [RTS_PSN, RTS_PSN + 1]


@pytest.mark.parametrize("condition, event", [
    ({"on": "wqe", "wr-id": 2}, ("wr_id", 2)),
    ({"on": "wqe", "code": C.QHCA_WQE_SEND, "ignore": 1}, ("index", 1)),
    ({"on": "packet-out", "psn": RTS_PSN + 1}, ("peer", PEER_QPN)),
    ({"on": "walk"}, ("kind", "walk")),
])
def test_conditions(rts, condition, event):
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition=condition)
    send(rts, 4)
    assert stopped(m)["event"][event[0]] == event[1]
    m.qmp("qhca-break-remove")
    m.qmp("cont")
    assert len([m.receive_frame() for _ in range(4)]) == 4


def test_reset_while_stopped(rts):
    """A reset of the machine at a stop, then everything again."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "doorbell"})
    send(rts, 1)
    stopped(m)
    m.qmp("system_reset")
    m.qmp("cont")
    assert m.qmp("qhca-query-stop")["look"]["stopped"] is False
    m.qmp("qhca-break-remove")


@pytest.mark.parametrize("command, arguments, message", [
    ("qhca-break-add", dict(condition={"on": "doorbell", "psn": 1}), "no such field"),
    ("qhca-break-remove", dict(id=77), "no break 77"),
    ("qhca-break-remove", dict(id=0), "no break 0"),
    ("qhca-step", dict(count=0), "at least 1"),
])
def test_errors(rts, command, arguments, message):
    with pytest.raises(RuntimeError, match=message):
        rts.adapter.m.qmp(command, **arguments)


def test_monitor(rts):
    """The same in the human monitor, which is gdb's "monitor", too."""
    m = rts.adapter.m

    def hmp(line):
        return m.qmp("human-monitor-command", command_line=line).replace("\r", "")

    assert "max_qp: " in hmp("info qhca")
    assert f"- qpn: {rts.qp.num}\n" in hmp("info qhca qp")
    assert "  state_name: RTS\n" in hmp(f"info qhca qp {rts.qp.num}")
    assert hmp(f"qhca_break doorbell number={rts.qp.num} code=0") == "break 1\n"
    send(rts, 3)
    stopped(m)
    assert "  doorbell_name: SQ\n" in hmp("info qhca stop")
    hmp("qhca_step wqe 2")
    assert stopped(m)["event"]["index"] == 1
    assert "mark: in-flight\n" in hmp(f"info qhca qp {rts.qp.num} sq")
    hmp("qhca_delete")
    m.qmp("cont")
    assert len([m.receive_frame() for _ in range(3)]) == 3
    assert m.qmp("qhca-break-list") == []
    for line in ("info qhca nonsense", f"info qhca qp {rts.qp.num} eq", "info qhca qp 77777",
                 "qhca_break nonsense", "qhca_break wqe number", "qhca_break doorbell psn=1",
                 "qhca_delete 5", "qhca_step nonsense", "qhca_step wqe 0"):
        assert hmp(line).startswith("Error: "), line


@pytest.mark.parametrize("kind, name", [
    ("walk", "walk"), ("wqe", "wqe"), ("packet-out", "tx"), ("data", "data"), ("cqe", "cqe"),
    ("packet", "tx"),
])
def test_steps_are_exact(rts, kind, name):
    """Steps end in the middle of what one doorbell or packet causes."""
    m = rts.adapter.m

    def trail():
        return m.qmp("qhca-query-stop")["look"]["trail"]

    m.qmp("qhca-break-add", condition={"on": "doorbell", "once": True})
    m.qmp("qhca-break-add", condition={"on": "marker"})
    send(rts, 14)
    stopped(m)
    seen = 0
    if kind == "cqe":           # one acknowledge, 14 completions
        m.qmp("cont")
        frames = [parse(m.receive_frame())[BTH].psn for _ in range(14)]
        m.qmp("qhca-step", on="cqe")
        m.send_frame(ack(rts.qp.num, frames[-1]))
        assert stopped(m)["event"]["wr_id"] == 0
        seen = 1
    for n in (1, 2, 3, 1, 4):
        m.qmp("qhca-step", on=kind, count=n)
        event = stopped(m)["event"]
        assert event["kind"] == name
        steps = [t for t in trail() if t["kind"] == name]
        assert len(steps) == n and steps[-1] == event
        seen += n
        if kind in ("wqe", "cqe"):
            assert event["wr_id"] == seen - 1
        if name == "tx":
            qp = m.qmp("qhca-inspect", object="qp", number=rts.qp.num)["look"]
            assert qp["context"]["tx_packets"] == seen
            assert parse(m.receive_frame())[BTH].psn == RTS_PSN + seen - n
            for _ in range(n - 1):
                m.receive_frame()
            assert m.no_frame()
    m.qmp("qhca-break-remove")
    m.qmp("cont")
    if kind != "cqe":
        psns = []
        while not psns or psns[-1] != RTS_PSN + 13:
            psns.append(parse(m.receive_frame())[BTH].psn)
        m.send_frame(ack(rts.qp.num, RTS_PSN + 13))
    assert [rts.cq.take().wr_id for _ in range(14)] == list(range(14))


def test_stores_wait(rts):
    """Doorbells and register writes during a stop take effect later, in order."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "doorbell", "number": rts.qp.num, "code": 0})
    m.qmp("qhca-break-add", condition={"on": "marker", "code": 77})
    for i in range(4):
        send(rts, 1)
        if i == 1:
            rts.adapter.reg_write(C.QHCA_REG_MARKER, 77, 8)
    for index in (1, 2):
        event = stopped(m)["event"]
        assert (event["kind"], event["index"]) == ("doorbell", index)
        m.qmp("cont")
    assert stopped(m)["event"]["kind"] == "marker"
    m.qmp("cont")
    for index in (3, 4):
        assert stopped(m)["event"]["index"] == index
        m.qmp("cont")
    assert [parse(m.receive_frame())[BTH].psn for _ in range(4)] == \
        [RTS_PSN + i for i in range(4)]


def test_wrong_read(rts):
    """A read of a wrong register: the CPU has its value, then the machine stops."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "guest-error", "once": True})
    assert rts.adapter.reg(C.QHCA_REG_ID) == C.QHCA_ID_MAGIC
    assert m.qmp("query-status")["status"] == "running"
    assert rts.adapter.reg(C.QHCA_REG_ASQ_DB, 8) == 0
    assert stopped(m)["event"]["kind"] == "guest_error"
    assert m.qmp("qhca-break-list") == []
    m.qmp("cont")
    m.qmp("qhca-fault-add", fault={"action": "garbage", "at": "register",
                                   "number": C.QHCA_REG_ID, "count": 1})
    m.qmp("qhca-step", on="injected")
    assert rts.adapter.reg(C.QHCA_REG_ID) != C.QHCA_ID_MAGIC
    assert stopped(m)["why"] == "step"
    assert rts.adapter.reg(C.QHCA_REG_ID) == C.QHCA_ID_MAGIC
    m.qmp("cont")
    assert rts.adapter.reg(C.QHCA_REG_ID) == C.QHCA_ID_MAGIC
    assert m.qmp("query-status")["status"] == "running"


def test_wrong_read_inside(rts):
    """A read of a wrong register while it is stopped does not end the stop, nor meet a break."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "guest-error"})
    m.qmp("qhca-break-add", condition={"on": "walk", "once": True})
    send(rts, 1)
    assert stopped(m)["event"]["kind"] == "walk"
    trail = m.qmp("qhca-query-stop")["look"]["trail"]
    assert rts.adapter.reg(C.QHCA_REG_ASQ_DB, 8) == 0
    seen = m.qmp("qhca-query-stop")["look"]
    assert (seen["stopped"], seen["on"], seen["trail"]) == (True, "walk", trail)
    assert m.qmp("qhca-break-list")[0]["hits"] == 0
    with pytest.raises(RuntimeError, match="resume it first"):
        m.qmp("qhca-fault-add", fault={"action": "reset"})
    m.qmp("qhca-break-remove")
    m.qmp("cont")
    assert parse(m.receive_frame())[BTH].psn == RTS_PSN


def test_command_that_cannot_stop(rts):
    """What a QMP command does to the adapter is no stop: break and step wait for the next event."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "injected", "once": True})
    m.qmp("qhca-step", on="event", count=2)
    m.qmp("qhca-fault-add", fault={"action": "link-down"})
    m.qmp("qhca-fault-remove")          # two events: down and up
    assert m.qmp("query-status")["status"] == "running"
    assert [b["hits"] for b in m.qmp("qhca-break-list")] == [1]
    assert m.qmp("qhca-query-stop")["look"]["steps_left"] == 1
    m.qmp("set_link", name="wire", up=False)
    assert stopped(m)["why"] == "step"
    m.qmp("cont")
    assert [b["hits"] for b in m.qmp("qhca-break-list")] == [1]
    m.qmp("set_link", name="wire", up=True)
    assert m.qmp("query-status")["status"] == "running"
    m.qmp("qhca-fault-add", fault={"action": "drop"})
    send(rts, 1)
    assert stopped(m)["why"] == "break"
    assert m.qmp("qhca-break-list") == []
    m.qmp("cont")
    assert m.no_frame()


def test_reset_inside(rts):
    """A reset while it is stopped in the middle of a walk, with pending doorbells."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "walk"})
    send(rts, 1)
    assert stopped(m)["event"]["kind"] == "walk"
    send(rts, 1)
    m.qmp("system_reset")
    assert m.qmp("qhca-query-stop")["look"]["stopped"] is False
    m.qmp("qhca-break-remove")
    m.qmp("cont")
    assert m.qmp("qhca-inspect", object="device")["look"]["counters"]["doorbells"] == 0


def test_quit_inside(rts):
    """QEMU can exit while the adapter is stopped."""
    m = rts.adapter.m
    m.qmp("qhca-break-add", condition={"on": "walk"})
    send(rts, 1)
    stopped(m)                  # the fixture ends QEMU, and sees that it lives
    m.leaks_count = False       # LeakSanitizer does not search the stack of the call


def test_frozen(rts):
    """The machine alone is stopped in mid traffic, as lab/qhca-lab freeze does: it goes on."""
    m = rts.adapter.m
    for i in range(3):
        rts.qp.post_recv(rts.sge(64), wr_id=100 + i)
    send(rts, 2)
    for psn in (RTS_PSN, RTS_PSN + 1):
        assert parse(m.receive_frame())[BTH].psn == psn
    m.qmp("stop")
    m.send_frame(ack(rts.qp.num, RTS_PSN + 1))
    for i in range(3):
        m.send_frame(bytes(packet(rts.qp.num, SEND_ONLY, RTR_PSN + i, b"frame %d" % i)))
    assert m.no_frame()
    seen = m.qmp("qhca-inspect", object="qp", number=rts.qp.num)["look"]["context"]
    assert (seen["sq_tail"], seen["rx_packets"]) == (0, 0), "a stopped machine works"
    m.qmp("cont")
    assert sorted(rts.cq.take().wr_id for _ in range(5)) == [0, 1, 100, 101, 102]
    seen = m.qmp("qhca-inspect", object="qp", number=rts.qp.num)["look"]["context"]
    assert seen["timeouts"] == seen["retransmits"] == 0

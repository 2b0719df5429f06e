# SPDX-License-Identifier: GPL-2.0-or-later
"""What a developer sees from outside: trace events and the guest-error log."""

import re

import pytest
from adapter import Adapter
from conftest import DEVICE
from layout import C
from machine import Machine
from rdma import Setup, ack


def test_trace_events():
    """The events of one SEND, in order, with QPN, PSN and both clocks alike."""
    with Machine("-trace", "qhca_*", device=DEVICE) as m:
        adapter = Adapter(m)
        adapter.start()
        m.clock_step(123456789)
        s = Setup(adapter, "rts")
        s.qp.post_send(s.sge(8), wr_id=0x77)
        m.receive_frame()
        m.send_frame(ack(s.qp.num, 200))
        s.cq.take()
        adapter.reg_write(C.QHCA_REG_MARKER, 0xABCDEF, 8)
        text = m.log.read_text()
    at = text.index(f"qhca_doorbell num {s.qp.num} offset 0x0 uar 0 index 1 ")
    wqe = f"qhca_wqe qpn {s.qp.num} index 0 addr {s.qp.sq:#x} opcode 0x00 wr_id 0x77 "
    for event in (wqe, f"qhca_tx qpn {s.qp.num} peer {0x123456} psn 200 opcode 0x04 ",
                  f"qhca_rx qpn {s.qp.num} peer {0x123456} psn 200 opcode 0x11 ",
                  f"qhca_cqe cqn {s.cq.num} qpn {s.qp.num} index 0 status 0 ",
                  "qhca_marker value 0xabcdef "):
        assert event in text[at:], f"no {event} where it should be"
        at = text.index(event, at)
    for line in re.findall(r"qhca_.*", text[text.index("opcode 0x18"):]):
        assert re.search(r" time 123456789 dev q$", line), line


@pytest.mark.prints("nothing but the events")
def test_calls_of_the_engine():
    """Which calls held the big lock and for how long, without the cost of the engine's own events."""
    with Machine("-trace", "qhca_call", device=DEVICE) as m:
        adapter = Adapter(m)
        adapter.start()
        s = Setup(adapter, "rts")
        s.qp.post_send(s.sge(8))
        m.receive_frame()
        m.send_frame(ack(s.qp.num, 200))
        s.cq.take()
        lines = m.log.read_text().splitlines()
    called = [re.fullmatch(r".*qhca_call (\S+) ns \d+ cpu \d+ time 0 dev q", line)
              for line in lines]
    assert all(called), lines
    assert {"register", "doorbell", "receive"} <= {match[1] for match in called}


def test_guest_errors_are_logged():
    with Machine("-d", "guest_errors", device=DEVICE) as m:
        adapter = Adapter(m)
        adapter.start()
        adapter.ring(C.QHCA_DB_SQ, 0xABCDE, 1)
        adapter.command(C.QHCA_CMD_NOP)
        assert re.search(r"^q: 0xabcde: \w+", m.log.read_text(), re.M)


@pytest.mark.prints("nothing")
def test_silent_by_default(adapter):
    adapter.ring(C.QHCA_DB_SQ, 0xABCDE, 1)
    adapter.command(C.QHCA_CMD_NOP)
    assert adapter.m.log.read_text() == ""

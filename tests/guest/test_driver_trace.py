# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's trace events, and marks that tie its trace to the device's."""

import re

from ftrace import TRACING, events, so_far
from labs import PATIENCE, TOP
from test_connection_manager import tool
from test_pingpong import pingpong


def documented():
    """Events of docs/reference/driver-diagnostics.md: {"system:name": {fields}}."""
    text = (TOP / "docs" / "reference" / "driver-diagnostics.md").read_text()
    return {m[1]: set(m[2].split())
            for m in re.finditer(r"^\| `(\w+:\w+)` \| `([^`]*)` \|", text, re.MULTILINE)}


def test_events_are_those_documented(pair):
    """The table of the manual page has all events and all their fields."""
    text = pair.a.run(f"cd {TRACING}/events; for f in qhca*/qhca*/format; do"
                      " echo FILE $f; cat $f; done").out
    found = {}
    for part in text.split("FILE ")[1:]:
        system, name, _ = part.split("\n", 1)[0].split("/")
        fields = re.findall(r"^\tfield:(?:__data_loc )?.*?(\w+)(?:\[\d*\])?;", part, re.MULTILINE)
        found[f"{system}:{name}"] = {f for f in fields if not f.startswith("common_")}
    assert found
    assert found == documented()


def test_life_of_a_connection(pair):
    """Objects, commands and completion events of an application, in order."""
    with events(pair.a) as trace:
        pingpong(pair.b, pair.a, "ibv_rc_pingpong", "-s 65536 -n 50 -e")
    a = pair.a
    qp = trace.one("qhca_create_qp", type="RC")
    assert (qp.dev, qp.user) == (a.ibdev, 1) and qp.sq_depth and qp.rq_depth and qp.uar
    states = [(e.to, e.err) for e in trace.of("qhca_modify_qp", qpn=qp.qpn)]
    assert states == [("INIT", 0), ("RTR", 0), ("RTS", 0)]
    rtr = trace.one("qhca_modify_qp", qpn=qp.qpn, to="RTR")
    assert rtr.mtu == 1024 and rtr.dest_qpn
    cq = trace.one("qhca_create_cq", cqn=qp.scqn, user=1)
    assert qp.rcqn == qp.scqn
    mr = trace.one("qhca_reg_mr", length=65536)
    assert mr.pages == 16 and mr.va == mr.iova and mr.pd == qp.pd
    table = trace.one("qhca_table", va=mr.va)
    assert (table.form, table.hops, table.length) == (mr.form, mr.hops, 65536)
    # SQ and RQ, the CQ, the memory
    assert len(trace.of("qhca_table")) == 4
    fired = trace.of("qhca_cq_event", cqn=cq.cqn)
    assert fired
    # One may arrive for a CQ that has been destroyed: it is no longer awaited.
    assert len(trace.of("qhca_eqe", type="CQ", obj=cq.cqn)) - len(fired) in (0, 1)
    gone = [trace.one("qhca_destroy_qp", qpn=qp.qpn), trace.one("qhca_dereg_mr", key=mr.key),
            trace.one("qhca_destroy_cq", cqn=cq.cqn)]
    assert not any(e.err for e in gone)
    times = [e.time for e in [mr, qp, rtr, fired[0], gone[0]]]
    assert times == sorted(times), times


def test_commands_and_their_answers(pair):
    """Each command has one response with its ticket; most complete without an interrupt."""
    with events(pair.a, "qhca") as trace:
        pair.a.run("ibv_devinfo >/dev/null; ip link set $NETDEV mtu 1400; qhca-net")
    open_ones, answered = {}, 0
    for e in trace:
        if e.name == "qhca_aq_cmd":
            assert e.ticket not in open_ones
            open_ones[e.ticket] = e
        elif e.name == "qhca_aq_done":
            cmd = open_ones.pop(e.ticket)
            assert cmd.opcode == e.opcode and e.status == "OK" and e.err == 0
            assert 0 < e.ns < 10e9 and cmd.time <= e.time
            answered += 1
    assert answered > 2 and not open_ones
    doorbells = [e.doorbell for e in trace.of("qhca_aq_cmd")]
    assert doorbells == list(range(doorbells[0], doorbells[0] + len(doorbells)))
    assert len(trace.of("qhca_irq", vector=0)) < answered


def test_kernel_user(pair):
    """The connection manager's MADs: each is posted, rung and polled."""
    def settled():
        """The kernel disconnects from the peer some time after rping has ended."""
        now = so_far(pair.a)
        return len(now.of("qhca_post_send", qpn=1)) == \
            len(now.of("qhca_poll_cq", qpn=1, opcode="SEND")) and \
            len(now.of("qhca_post_recv", num=1)) == \
            len(now.of("qhca_poll_cq", qpn=1, opcode="RECV"))

    with events(pair.a, "qhca_ib") as trace:
        tool(pair.b, pair.a, "rping", pair.b.ip)
        pair.a._until(settled, PATIENCE, "a MAD is under way")
    posted = trace.of("qhca_post_send", qpn=1)
    assert posted and all(e.opcode == "SEND" and e.bytes == 256 for e in posted)
    polled = {e.index: e for e in trace.of("qhca_poll_cq", qpn=1, opcode="SEND")}
    rung = trace.of("qhca_doorbell", reg="SQ", num=1)
    for e in posted:
        done = polled[e.index]
        assert (done.status, done.wr_id) == (0, e.wr_id) and done.time >= e.time
        assert any(r.index == e.index + 1 and r.time >= e.time for r in rung)
    received = trace.of("qhca_poll_cq", qpn=1, opcode="RECV")
    assert received
    # the buffers are returned
    assert len(trace.of("qhca_post_recv", num=1)) == len(received)


def test_markers(pair):
    """A mark is in the driver's trace and in the device's, with the same value."""
    a = pair.a
    marker = f"/sys/kernel/debug/qhca/{a.pci}/marker"
    text = int.from_bytes(b"a longer", "little")
    with pair.trace("a", "qhca_marker") as device, events(a, "qhca") as trace:
        a.run(f"echo 0x123456789abcdef0 > {marker}; echo 'a longer text' > {marker};"
              f" echo now > {marker}")
        assert a.run(f"echo > {marker}", check=False).rc
        assert a.run(f"printf %064d 0 > {marker}", check=False).rc
    marks = trace.of("qhca_marker")
    assert [e.text for e in marks] == ["0x123456789abcdef0", "a longer text", "now"]
    assert [e.value for e in marks[:2]] == [0x123456789abcdef0, text]
    last = 0
    for e in marks:
        assert last < e.before <= e.after
        # the same clock as the trace's own
        assert abs(e.after / 1e9 - e.time) < 1
        last = e.after
    assert 0 < marks[2].before - marks[2].value < 10e9
    found = "\n".join(device.lines)
    for e in marks:
        assert re.search(rf"\b(0x)?{e.value:x}\b|\b{e.value}\b", found), (e, found)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of the port and of sets of QPs, as the rdma tool reports them.

Run in a guest: python3 counters.py NAME
"""

import json
import os
import subprocess
import sys

from rc import LOCAL, OK, PD, REMOTE, SGE, context, e, main, memory, pair
from pyverbs.qp import QPAttr

LINK = f"{os.environ['IBDEV']}/1"
QP_STATS = {"rx_pkts", "tx_pkts", "duplicate_request", "rnr_nak_retry_err", "packet_seq_err",
            "local_ack_timeout_err", "retransmits"}


def rdma(*words):
    """Run the rdma tool; returns its decoded output."""
    text = subprocess.run(["rdma", "-j", *words], check=True, capture_output=True,
                          text=True).stdout
    return json.loads(text) if text.strip() else []


def port():
    """The port's counters."""
    return rdma("statistic", "show", "link", LINK)[0]


def counters():
    """The counters of QPs, by their number."""
    return {entry["cntn"]: entry for entry in rdma("statistic", "qp", "show")}


def bind(end, *cntn):
    rdma("statistic", "qp", "bind", "link", LINK, "lqpn", str(end.qp.qp_num), *cntn)


def writes(a, b, count):
    """@count WRITEs of one packet each, acknowledged one by one."""
    near, far = memory(a.pd, 4096, LOCAL), memory(a.pd, 4096, REMOTE)
    for _ in range(count):
        assert a.write(SGE(near.buf, 100, near.lkey), far.buf, far.rkey) == OK
    near.close()
    far.close()


def grown(before, after, name):
    return after[name] - before[name]


def port_counters():
    """A WRITE and its acknowledgment: two packets out, two in, and their bytes."""
    a, b = pair()
    before = port()
    writes(a, b, 10)
    after = port()
    assert grown(before, after, "tx_pkts") == grown(before, after, "rx_pkts") == 20
    # IPv4: 14 + 20 + 8 + 12 + 16 + 100 + 4; acknowledgment 14 + 20 + 8 + 12 + 4 + 4
    assert grown(before, after, "tx_bytes") == 10 * (174 + 62), grown(before, after, "tx_bytes")
    assert grown(before, after, "tx_acks") == grown(before, after, "rx_acks") == 10
    for name in QP_STATS - {"rx_pkts", "tx_pkts"}:
        assert grown(before, after, name) == 0, name


def bound():
    """A bound QP's events are reported in its counter, and once for the port."""
    a, b = pair()
    writes(a, b, 3)
    start = port()
    bind(a)
    (number, entry), = counters().items()
    assert set(entry) & set(start) - {"ifname", "port", "ifindex"} == QP_STATS, entry
    assert all(entry[name] == 0 for name in QP_STATS), "what was before does not count"
    writes(a, b, 10)
    entry = counters()[number]
    assert (entry["tx_pkts"], entry["rx_pkts"]) == (10, 10), entry
    assert grown(start, port(), "tx_pkts") == 20
    # the other end too, in the same counter
    bind(b, "cntn", str(number))
    writes(a, b, 10)
    assert counters()[number]["tx_pkts"] == 30
    assert grown(start, port(), "tx_pkts") == 40
    # bind and unbind again: nothing is lost, nothing counts twice
    rdma("statistic", "qp", "unbind", "link", LINK, "cntn", str(number), "lqpn",
         str(b.qp.qp_num))
    writes(a, b, 10)
    assert counters()[number]["tx_pkts"] == 40
    assert grown(start, port(), "tx_pkts") == 60
    rdma("statistic", "qp", "unbind", "link", LINK, "cntn", str(number))
    assert counters() == {}
    writes(a, b, 10)
    assert grown(start, port(), "tx_pkts") == 80
    assert grown(start, port(), "rx_pkts") == 80


def destroyed():
    """A QP is reset, then destroyed while bound; its share stays."""
    a, b = pair()
    start = port()
    bind(a)
    writes(a, b, 5)
    number, = counters()
    a.qp.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
    b.qp.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
    assert counters()[number]["tx_pkts"] == 5
    a.connect(b.qp.qp_num)
    b.connect(a.qp.qp_num)
    writes(a, b, 5)
    assert counters()[number]["tx_pkts"] == 10
    assert grown(start, port(), "tx_pkts") == 20
    a.close()
    assert counters() == {}
    assert grown(start, port(), "tx_pkts") == 20


def automatic():
    """Mode auto: one counter for the QPs of a process and a type."""
    rdma("statistic", "qp", "set", "link", LINK, "auto", "type,pid", "on")
    try:
        ctx = context()
        pd = PD(ctx)
        start = port()
        a, b = pair(ctx, pd)
        mine = [c for c in counters().values() if c.get("pid") == os.getpid()]
        assert len(mine) == 1 and mine[0]["qp-type"] == "RC", counters()
        assert {a.qp.qp_num, b.qp.qp_num} <= set(mine[0]["lqpn"]), mine
        writes(a, b, 7)
        assert counters()[mine[0]["cntn"]]["tx_pkts"] == 14
        assert grown(start, port(), "tx_pkts") == 14
        a.close()
        b.close()
        assert mine[0]["cntn"] not in counters()
    finally:
        rdma("statistic", "qp", "set", "link", LINK, "auto", "off")
    a, b = pair()
    assert counters() == {}


def refused():
    """QPs and counters that do not exist; a QP is bound once."""
    a, b = pair()
    bind(a)
    for words in (["lqpn", "999999"], ["lqpn", str(a.qp.qp_num)],
                  ["lqpn", str(b.qp.qp_num), "cntn", "77"]):
        done = subprocess.run(["rdma", "statistic", "qp", "bind", "link", LINK, *words],
                              capture_output=True)
        assert done.returncode != 0, words
    assert len(counters()) == 1
    a.close()
    assert counters() == {}


if __name__ == "__main__":
    main(sys.modules[__name__])

# SPDX-License-Identifier: GPL-2.0-or-later
"""scope eth: queues, RSS tables, filters, and the buffers of split frames."""

import json

import pytest
from test_scope import base, lab, scope  # noqa: F401, I001; it finds the others
from fake_adapter import eth_cqe, eth_rq, eth_sq, flow, rss
from qhca_scope import ethernet


@pytest.fixture
def eth(lab):  # noqa: F811
    """Adapter "a": three queues, of which 1 splits, spread by QP 2."""
    a = lab["a"]
    a.port["eth_qpn"] = 2
    a.eth_rqs = {0: eth_rq(0, False), 1: eth_rq(1, True, dropped=4),
                 2: eth_rq(2, False, flags_names="SUPER|GRO", state=2, state_name="ERR",
                           syndrome=0x24, syndrome_name="DB_INDEX")}
    a.eth_rqs[2]["merging"] = {"packets": 2, "frames": 77, "bytes": 9000}
    a.rss_qps = {2: rss([0, 1, 2, 1] * 32, hash_names="BY_TYPE|SYM_XOR",
                        tcp4="SRC_IP|DST_IP|SRC_PORT|DST_PORT", udp4="SRC_IP|DST_IP", ipv4="",
                        tcp6="", udp6="", ipv6="")}
    a.flows = {5: flow(5, {"dst_port": 7777, "l4": 17}, {"dst_port": 0xFFFF, "l4": 0xFF}, tag=9),
               6: flow(6, {}, {}), 7: flow(7, {"dst_port": 0x1200}, {"dst_port": 0xFF00})}
    return a


@pytest.fixture
def received(eth):
    """Four completions in CQ 1, two of queue 1; its header ring has gone round."""
    cqes = {0: eth_cqe(0, 1, 3, header_len=66, byte_len=1066, data_index=4, num_data=3,
                       gso_segs=2, gso_size=600),
            1: eth_cqe(1, 0, 3), 2: dict(eth_cqe(2, 1, 4), opcode_name="ETH_SEND"),
            3: eth_cqe(3, 1, 4, byte_len=90)}
    eth.eth_rings[("cq", 1, None)] = {"depth": 64, "producer": 4,
                                      "entry": lambda i: cqes.get(i, {})}
    for ring, producer, depth, size in (("rq", 12, 8, 256), ("data", 20, 16, 400)):
        eth.eth_rings[("eth-rq", 1, ring)] = {
            "depth": depth, "producer": producer,
            "entry": lambda i, size=size: {"index": i, "addr": 0x10000 + size * i, "len": size}}
    return eth


def test_overview(eth, scope):  # noqa: F811
    status, text = scope("eth")
    assert status == 0
    assert "frames that no filter takes: spread by RSS QP 2" in text
    rows = {line.split()[0]: line for line in text.splitlines() if line[:1].isdigit()
            or line.lstrip()[:1].isdigit()}
    assert "5..12 (7 of 8)" in rows["0"] and "9..20 (11 of 16)" not in rows["0"]
    assert "9..20 (11 of 16)" in rows["1"] and " 100 " in rows["1"] and " 4 " in rows["1"]
    assert "ERR" in rows["2"] and "DB_INDEX" in rows["2"]
    assert "SUPER|GRO" in rows["2"] and " 77 " in rows["2"] and "HDS" in rows["1"]
    assert "table 0 of 128 entries" in text and "queues 0 1 2 1, 32 times" in text
    assert "tcp4  SRC_IP|DST_IP|SRC_PORT|DST_PORT" in text and "ipv4  -" in text
    assert "dst_port=7777 l4=17" in rows["5"] and "all frames" in rows["6"]
    assert "dst_port=4608/0xff00" in rows["7"]


def test_shapers(eth, scope):  # noqa: F811
    """Rate limits of send queues; without any there is no such table."""
    assert "shapers" not in scope("eth")[1]
    common = {"members": 2, "bytes": 77000, "weight": 9}
    eth.shapers = {1: dict(common, number=1, rate=0, burst=0, parent=0, waits=False),
                   2: dict(common, number=2, rate=8000000, burst=3028, parent=1, waits=True)}
    status, text = scope("eth")
    assert status == 0 and "shapers of send queues" in text
    rows = text.split("shapers of send queues")[1].splitlines()
    assert rows[2].split() == ["1", "-", "0", "port", "9", "2", "77000", "no"]
    assert rows[3].split() == ["2", "8000000", "3028", "1", "9", "2", "77000", "yes"]
    assert scope("eth", "--get", "shapers.1.rate") == (0, "8000000\n")


def test_send_queues(eth, scope):  # noqa: F811
    """With what a large send has sent so far, and the shaper that a queue waits for."""
    eth.eth_sqs = {4: eth_sq(4), 5: eth_sq(5, large_send={"payload": 60000, "sent": 2896,
                                                          "mss": 1448}, held_by=2)}
    status, text = scope("eth")
    assert status == 0
    rows = text.split("send queues")[1].splitlines()
    assert rows[2].split() == ["4", "RDY", "9..12", "(3", "of", "8)", "3"]
    assert "2896 of 60000, mss 1448" in rows[3] and rows[3].split()[-1] == "2"
    assert scope("eth", "--get", "send_queues.1.large_send.sent") == (0, "2896\n")


def test_overview_as_json(eth, scope):  # noqa: F811
    look = json.loads(scope("eth", "--json")[1])
    assert look["guest"] == "a" and look["port"] == {"eth_rqn": None, "eth_qpn": 2}
    assert [q["state"] for q in look["queues"]] == ["RDY", "RDY", "ERR"]
    assert look["queues"][0]["data"] is None
    assert look["queues"][1]["data"] == {"depth": 16, "tail": 9, "head": 20, "posted": 11}
    assert look["spread"][0]["queues"] == [0, 1, 2, 1] * 32
    assert scope("eth", "--get", "queues.1.dropped") == (0, "4\n")


def test_nothing_there(lab, scope):  # noqa: F811
    status, text = scope("eth")
    assert status == 0 and "are dropped" in text and text.count("none") == 3


def test_rss_over_wqs_is_not_shown(eth, scope):  # noqa: F811
    eth.rss_qps[3] = {"context": {}, "rss": {"rqtn": 1, "wqs": [7, 8], "hash_names": ""}}
    look = json.loads(scope("eth", "--json")[1])
    assert [s["qpn"] for s in look["spread"]] == [2]


def test_frames(received, scope):  # noqa: F811
    """Both rings side by side; each buffer holds what is left for it."""
    found = json.loads(scope("eth", "1", "--json")[1])["frames"]
    assert [f["completion"] for f in found] == [0, 3]
    split, whole = found
    assert split["ring"] == [{"index": 3, "reposted": True}]
    assert [(p["index"], p["bytes"], p["addr"]) for p in split["data"]] == [
        (4, 400, 0x10640), (5, 400, 0x107D0), (6, 200, 0x10960)]
    assert whole["data"] == [] and whole["ring"][0]["bytes"] == 90
    status, text = scope("eth", "1")
    assert status == 0
    assert "completion 0: 1066 B, split after 66 B, 2 frames of 600 B, SUCCESS" in text
    assert "completion 3: 90 B, whole, SUCCESS" in text
    assert "  3: posted again  4: 0x10640 400 of 400 B" in text
    assert "  4: 0x10400 90 of 256 B" in text


def test_last_frames(received, scope):  # noqa: F811
    found = json.loads(scope("eth", "1", "--count", "1", "--json")[1])["frames"]
    assert [f["completion"] for f in found] == [3]
    assert "no frame" in scope("eth", "1", "--count", "0")[1]


def test_no_such_queue(eth, scope):  # noqa: F811
    status, text = scope("eth", "9")
    assert status == 3 and "there are: 0, 1, 2" in text
    assert scope("eth", "nine")[0] == 2


@pytest.mark.parametrize("queues, text", [
    ([3], "queue 3"), ([3] * 8, "queue 3, 8 times"), ([0, 1] * 4, "queues 0 1, 4 times"),
    (list(range(16)) * 8, "queues 0-15, 8 times"), ([5, 1, 2, 9], "queues 5 1 2 9"),
    ([0, 0, 0, 1], "entries 0-2 queue 0; entry 3 queue 1"),
])
def test_folded(queues, text):
    assert ethernet.folded(queues) == text

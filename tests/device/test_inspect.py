# SPDX-License-Identifier: GPL-2.0-or-later
"""Inspecting the adapter over QMP, and its counters as QOM properties."""

import ctypes
import re
from pathlib import Path

import pytest
from layout import C, struct
from rdma import OUR_IP, PEER_IP, PEER_QPN, Setup, parse

pytestmark = pytest.mark.observe

TOP = Path(__file__).resolve().parents[2]
HEADER = TOP / "kernel-driver/include/uapi/rdma/qhca-hw.h"
NAMES = TOP / "qemu-hw/engine/observe/decode_names.c"
# Enumerations of the contract; no constant of theirs may lack a name.
PREFIXES = ("FEAT_", "QPT_", "QPS_", "QP_F_", "REQ_", "RSP_", "ACCESS_", "CQ_(?!M_)", "ARM_",
            "SRQ_F_", "MR_F_", "WQE_", "CQE_OP_", "CQE_F_", "WC_", "SYN_", "EV_", "CMD_", "ST_",
            "FATAL_", "STAT_")
NOT_CODES = {"QHCA_ACCESS_MASK", "QHCA_STAT_COUNT"}


@pytest.fixture
def rts(adapter):
    return Setup(adapter, "rts")


@pytest.fixture
def look(rts):
    """look(object, number, ...): the inspection result."""
    def look(kind, number=None, **arguments):
        if number is not None:
            arguments["number"] = number
        return rts.adapter.m.qmp("qhca-inspect", object=kind, **arguments)["look"]
    return look


def same(decoded: dict, context: ctypes.Structure) -> None:
    """Every number of @context is in @decoded."""
    for name, kind in context._fields_:
        value = getattr(context, name)
        if name.startswith("rsvd"):
            continue
        if isinstance(value, ctypes.Structure):
            same(decoded[name], value)
        elif isinstance(value, int):
            assert decoded[name] == value, name


def test_names():
    """Every code of the contract has a readable name."""
    text = NAMES.read_text()
    known = {a + b for a, b in re.findall(r"N\((QHCA_\w*), (\w+)\)", text)}
    known |= set(re.findall(r"{ (QHCA_STAT_\w+)", text))
    pattern = rf"^#define (QHCA_(?:{'|'.join(PREFIXES)})\w+)\s+\S"
    codes = set(re.findall(pattern, HEADER.read_text(), re.M)) - NOT_CODES
    assert len(codes) > 200
    assert not sorted(codes - known), "names missing in decode_names.c"


def test_context(rts, look):
    """The state shown of a QP is that of QUERY_QP, decoded and raw."""
    seen = look("qp", rts.qp.num)
    context = rts.qp.query()
    same(seen["context"], context)
    assert bytes.fromhex(seen["raw"]) == bytes(context)
    assert seen["context"]["state_name"] == "RTS"
    assert seen["context"]["av"]["dgid"] == f"::ffff:{PEER_IP}"
    assert seen["context"]["dest_qpn"] == PEER_QPN
    assert [q["qpn"] for q in look("qp")["objects"]] == [rts.qp.num]


def test_every_kind(rts, look):
    """Each kind of object can be listed, and each object shown."""
    schema = {"device": None, "qp": "qpn", "cq": "cqn", "srq": "srqn", "eq": "eqn", "mr": "key",
              "pd": "number", "uar": "number", "xrcd": "number", "gid": "index",
              "mcg": None, "eth-sq": "number", "eth-rq": "number"}
    seen = 0
    for kind, number in schema.items():
        if kind == "device":
            assert look(kind)["context"]["max_qp"] > 0
            continue
        objects = look(kind)["objects"]
        for entry in objects:
            if number:
                assert look(kind, entry[number])["object"] == kind
                seen += 1
    assert seen >= 6
    assert look("gid")["objects"][0]["gid"] == f"::ffff:{OUR_IP}"


def test_window_and_ring(rts, look):
    """A SEND on the wire, not acknowledged: in the ring and in the window."""
    rts.qp.post_send(rts.sge(100), wr_id=0xFEDCBA9876543210)
    parse(rts.adapter.m.receive_frame())
    walks = rts.adapter.stat("TABLE_WALKS")
    requester = look("qp", rts.qp.num)["requester"]
    assert requester["state_name"] == "WAIT_ACK"
    assert requester["window"][0]["wr_id"] == 0xFEDCBA9876543210
    assert requester["retransmission"]["timer"] == "ack"
    assert 0 < requester["retransmission"]["remaining_ns"] <= 4096 << 14
    ring = rts.adapter.m.qmp("qhca-ring", object="qp", number=rts.qp.num)["look"]
    assert (ring["producer"], ring["consumer"]) == (1, 0)
    first = ring["entries"][0]
    assert (first["mark"], first["opcode_name"], first["address"]) == \
        ("in-flight", "SEND", rts.qp.sq)
    assert first["sges"] == [dict(addr=rts.sge(100)[0], len=100, lkey=rts.sge(100)[2])]
    assert rts.adapter.stat("TABLE_WALKS") == walks


def test_walk(rts):
    """A walk shows where the bytes are, and the bytes."""
    m = rts.adapter.m
    rts.mr.fill(b"here they are", 0x123)
    seen = m.qmp("qhca-walk", object="mr", number=rts.mr.key, va=rts.mr.iova + 0x123,
                 bytes=13)["look"]
    assert seen["address"] == rts.mr.addr + 0x123
    assert bytes.fromhex(seen["bytes"]) == b"here they are"
    seen = m.qmp("qhca-walk", object="qp", number=rts.qp.num, ring="rq", index=3)["look"]
    assert seen["address"] == rts.qp.rq + 3 * 32


@pytest.mark.parametrize("command, arguments, message", [
    ("qhca-inspect", dict(object="qp", number=0x7000), "no such object"),
    ("qhca-inspect", dict(object="qp", device="nobody"), "no qhca device"),
    ("qhca-ring", dict(object="pd", number=1), "no such ring"),
    ("qhca-ring", dict(object="cq", number=0x7000), "no such object"),
    ("qhca-walk", dict(object="cq", number=1), "Give one of"),
    ("qhca-walk", dict(object="mr", number=0, va=1), "no such object"),
])
def test_errors(rts, command, arguments, message):
    """An invalid request gets an error that explains it."""
    with pytest.raises(RuntimeError, match=message):
        rts.adapter.m.qmp(command, **arguments)


def test_counters(rts):
    """Every statistic is a property of the device, and they agree."""
    m = rts.adapter.m
    rts.qp.post_send(rts.sge(8))
    assert m.receive_frame()
    stats = rts.adapter.stats()
    shown = {p["name"]: m.qmp("qom-get", path="q", property=p["name"])
             for p in m.qmp("qom-list", path="q") if p["name"].startswith("counter-")}
    names = re.findall(r"^#define QHCA_STAT_(\w+)\s+(\d+)", HEADER.read_text(), re.M)
    names = [(n, int(i)) for n, i in names if n != "COUNT"]
    assert len(shown) == len(names)
    for name, index in names:
        value = shown[f"counter-{name.lower().replace('_', '-')}"]
        assert value >= stats[index], name
    assert shown["counter-roce-tx-packets"] == 1
    # one more than QUERY_STATS reported: itself
    assert shown["counter-aq-commands"] == stats[C.QHCA_STAT_AQ_COMMANDS] + 1
    assert shown["counter-aq-commands"] == \
        m.qmp("qhca-inspect", object="device")["look"]["counters"]["aq-commands"]


def test_looks_are_bounded(rts):
    """Request as much as possible."""
    m = rts.adapter.m
    seen = m.qmp("qhca-ring", object="cq", number=rts.cq.num, index=0xFFFFFFFF,
                 count=0xFFFFFFFF)["look"]
    assert len(seen["entries"]) == seen["depth"]
    seen = m.qmp("qhca-inspect", object="gid", count=0xFFFFFFFF)["look"]
    assert seen["more"] is False
    assert ctypes.sizeof(struct("qhca_qpc")) * 2 == len(
        m.qmp("qhca-inspect", object="qp", number=rts.qp.num)["look"]["raw"])


def test_all_object_numbers_can_be_inspected():
    """Each kind of object numbers of the engine has a kind of object that lists them."""
    engine = TOP / "qemu-hw/engine"
    headers = "".join(path.read_text() for path in engine.glob("*/*.h"))
    tables = {name.strip() for names in re.findall(r"^    struct qhca_idr ([\w, ]+);", headers, re.M)
              for name in names.split(",")}
    assert {"qps", "mrs", "flow_idr", "rqts", "eth_rqs"} <= tables
    text = (engine / "observe/inspect.c").read_text()
    listed = set(re.findall(r"\.idr = (\w+)", text))
    assert not tables - listed, "objects that qhca-inspect does not show"
    for other in ("gids", "mcg_each", "mc_hash", "dm_size"):
        assert other in text


def test_tree(rts, look):
    """A table as a tree: for a direct buffer its one address."""
    m = rts.adapter.m
    tree = m.qmp("qhca-tree", object="qp", number=rts.qp.num, ring="sq")["look"]
    walk = m.qmp("qhca-walk", object="qp", number=rts.qp.num, ring="sq", index=0)["look"]
    assert tree["address"] == walk["address"] and tree["more"] is False
    for arguments, message in (
        (dict(object="qp", number=77777), "no such object"),
        (dict(object="qp", number=rts.qp.num, ring="eq"), "no such ring"),
        (dict(object="mw", number=5), "look at its region"),
    ):
        with pytest.raises(RuntimeError, match=message):
            m.qmp("qhca-tree", **arguments)
    text = m.qmp("human-monitor-command",
                 command_line=f"info qhca qp {rts.qp.num} tree").replace("\r", "")
    assert f"address: 0x{tree['address']:x}\n" in text

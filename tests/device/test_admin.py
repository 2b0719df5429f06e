# SPDX-License-Identifier: GPL-2.0-or-later
"""The admin queue and every command, with valid and invalid use."""

import ctypes

import pytest
from adapter import CQ, EQ, PAGE, Adapter, AdminError, direct
from layout import C, struct
from machine import Machine, until
from rdma import MR, Setup, array, gid_bytes, mac_bytes, modify_mask, set_gid

REFUSED = pytest.mark.once("what is refused is decided by the engine, where nothing is observed")

COMMANDS = {name: value for name, value in vars(C).items()
            if name.startswith("QHCA_CMD_")}


def status_of(adapter, *args, **kwargs) -> int:
    return adapter.try_command(*args, **kwargs).status


# ---- the queue ----

def test_many_laps(adapter):
    """Three passes around the ring, several commands per doorbell."""
    for _ in range(12):
        for i in range(4):
            adapter.submit(opcode=C.QHCA_CMD_NOP, cmd_id=i)
        adapter.ring_admin()
        assert [adapter.acq.take().cmd_id for _ in range(4)] == [0, 1, 2, 3]
    assert adapter.stat("AQ_COMMANDS") == 48


@pytest.mark.parametrize("shift", [1, 8])
def test_ring_sizes(bare, shift):
    bare.enable_msix()
    bare.start_admin(shift=shift)
    for _ in range(2):
        for i in range(1 << shift):
            bare.submit(opcode=C.QHCA_CMD_NOP, cmd_id=i)
        bare.ring_admin()
        for i in range(1 << shift):
            assert bare.acq.take().cmd_id == i


@pytest.mark.parametrize("ahead", [17, 1000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_index_too_far(adapter, ahead):
    adapter.reg_write(C.QHCA_REG_ASQ_DB, ahead)
    status = adapter.reg(C.QHCA_REG_STATUS)
    assert status & C.QHCA_STATUS_FATAL
    fatal = (status & C.QHCA_STATUS_FATAL_MASK) >> C.QHCA_STATUS_FATAL_SHIFT
    assert fatal == C.QHCA_FATAL_AQ_INDEX
    assert adapter.acq.peek() is None
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.start_admin()
    adapter.command(C.QHCA_CMD_NOP)


@REFUSED
@pytest.mark.parametrize("ring", ["ASQ", "ACQ"])
@pytest.mark.parametrize("addr, reason", [
    (0xFFFFFFFFFFFFF000, C.QHCA_FATAL_AQ_CONFIG),       # wraps
    (0xFFFFFFFFFFFF0000, C.QHCA_FATAL_AQ_DMA),
    (0x800000000000, C.QHCA_FATAL_AQ_DMA),
    (0xC0000000, C.QHCA_FATAL_AQ_DMA),
])
def test_ring_not_in_memory(bare, ring, addr, reason):
    """Rings in unmapped memory, or in the device's own registers: fatal, without other effects."""
    base = {"ASQ": 0x100000, "ACQ": 0x200000, ring: addr}
    bare.reg_write(C.QHCA_REG_ASQ_BASE, base["ASQ"], 8)
    bare.reg_write(C.QHCA_REG_ACQ_BASE, base["ACQ"], 8)
    bare.reg_write(C.QHCA_REG_AQ_SHIFT, 7)
    bare.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_ENABLE)
    bare.reg_write(C.QHCA_REG_ASQ_DB, 2)
    status = until(lambda: bare.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_FATAL_MASK,
                   "the fatal state")
    assert status >> C.QHCA_STATUS_FATAL_SHIFT == reason
    bare.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    bare.enable_msix()
    bare.start_admin()
    bare.command(C.QHCA_CMD_NOP)


def test_disabled_ignores_doorbell(bare):
    bare.reg_write(C.QHCA_REG_ASQ_DB, 1)
    assert bare.reg(C.QHCA_REG_STATUS) == C.QHCA_STATUS_LINK


def test_unknown_opcodes(adapter):
    known = set(COMMANDS.values())
    for opcode in range(256):
        if opcode not in known:
            assert status_of(adapter, opcode) == C.QHCA_ST_BAD_OPCODE, hex(opcode)
    assert adapter.stat("AQ_ERRORS") == 256 - len(known)


@REFUSED
def test_command_flags(adapter):
    for name, opcode in COMMANDS.items():
        assert status_of(adapter, opcode, flags=1) == C.QHCA_ST_BAD_PARAM, name
    assert adapter.stat("AQ_ERRORS") == len(COMMANDS)


IN = {"MODIFY_PORT": "qhca_port", "SET_GID": "qhca_gid", "CREATE_EQ": "qhca_eqc",
      "CREATE_CQ": "qhca_cqc", "MODIFY_CQ": "qhca_cqc", "CREATE_SRQ": "qhca_srqc",
      "MODIFY_SRQ": "qhca_srqc", "CREATE_QP": "qhca_qpc", "MODIFY_QP": "qhca_qpc",
      "CREATE_MR": "qhca_mpt", "CREATE_ETH_SQ": "qhca_eth_qc",
      "CREATE_ETH_RQ": "qhca_eth_qc", "MODIFY_ETH_RQ": "qhca_eth_qc"}
OUT = {"QUERY_DEVICE": "qhca_dev_caps", "QUERY_PORT": "qhca_port",
       "QUERY_GID": "qhca_gid"}


@REFUSED
@pytest.mark.parametrize("name", sorted(IN))
def test_bad_input(adapter, name):
    """Input of the wrong length, unaligned, not in memory, all ones."""
    opcode = COMMANDS[f"QHCA_CMD_{name}"]
    size = ctypes.sizeof(struct(IN[name]))
    at = adapter.scratch
    for length in (0, size - 1, size + 1, 0xFFFFFFFF):
        assert status_of(adapter, opcode, in_addr=at,
                         in_len=length) == C.QHCA_ST_BAD_PARAM
    assert status_of(adapter, opcode, in_addr=at + 8,
                     in_len=size) == C.QHCA_ST_BAD_PARAM
    for addr in (0xFFFFFFFFFFFFFFC0, 0x800000000000, 0xC0000000):
        assert status_of(adapter, opcode, in_addr=addr,
                         in_len=size) == C.QHCA_ST_DMA_ERROR
    assert status_of(adapter, opcode, data=b"\xff" * size,
                     mask=0xFFFFFFFFFFFFFFFF) != C.QHCA_ST_OK
    adapter.command(C.QHCA_CMD_NOP)


@REFUSED
@pytest.mark.parametrize("name", sorted(OUT))
def test_bad_output(adapter, name):
    opcode = COMMANDS[f"QHCA_CMD_{name}"]
    size = ctypes.sizeof(struct(OUT[name]))
    assert status_of(adapter, opcode, out=size - 1) == C.QHCA_ST_BAD_PARAM
    assert status_of(adapter, opcode, out_addr=adapter.scratch + 1,
                     out_len=size) == C.QHCA_ST_BAD_PARAM
    assert status_of(adapter, opcode, out_addr=0x800000000000,
                     out_len=size) == C.QHCA_ST_DMA_ERROR
    assert status_of(adapter, opcode, out=size) == C.QHCA_ST_OK


@REFUSED
@pytest.mark.parametrize("kind", ["EQ", "CQ", "SRQ", "QP", "MR", "ETH_SQ", "ETH_RQ"])
@pytest.mark.parametrize("number", [5, 0xFFFFFF, 0xFFFFFFFF])
def test_no_such_object(adapter, kind, number):
    for verb in ("QUERY", "DESTROY"):
        opcode = COMMANDS[f"QHCA_CMD_{verb}_{kind}"]
        assert status_of(adapter, opcode, number, out=512) == C.QHCA_ST_BAD_OBJ
    for opcode in (C.QHCA_CMD_FREE_PD, C.QHCA_CMD_FREE_UAR, C.QHCA_CMD_DESTROY_RQT):
        assert status_of(adapter, opcode, number) == C.QHCA_ST_BAD_OBJ


# ---- device and port ----

def test_query_device(adapter):
    caps = adapter.query(C.QHCA_CMD_QUERY_DEVICE, 0, "qhca_dev_caps")
    assert caps.features == adapter.reg(C.QHCA_REG_FEATURES, 8)
    assert bytes(caps.node_guid) == bytes.fromhex("000000fffe000001")
    assert caps.max_qp >= 10000 and caps.max_mr >= 100000
    assert caps.max_uar == adapter.reg(C.QHCA_REG_DB_PAGES)
    assert caps.page_size_cap & 1 << 12 and caps.page_size_cap & 1 << 21


def test_port(adapter):
    port = adapter.query(C.QHCA_CMD_QUERY_PORT, 0, "qhca_port")
    assert bytes(port.mac) == bytes(port.perm_mac) == mac_bytes("02:00:00:00:00:01")
    assert port.link == 1 and port.speed > 0 and port.max_mtu == 9216
    assert port.eth_rqn == C.QHCA_ETH_RQ_NONE
    new = struct("qhca_port")(mtu=1500, promisc=1, allmulti=1,
                              mac=array("qhca_port", "mac", b"\x02\0\0\0\0\x77"))
    mask = (C.QHCA_PORT_M_MTU | C.QHCA_PORT_M_PROMISC | C.QHCA_PORT_M_MAC
            | C.QHCA_PORT_M_ALLMULTI)
    adapter.command(C.QHCA_CMD_MODIFY_PORT, data=new, mask=mask)
    port = adapter.query(C.QHCA_CMD_QUERY_PORT, 0, "qhca_port")
    assert (port.mtu, port.promisc, port.allmulti) == (1500, 1, 1)
    assert bytes(port.mac) == b"\x02\0\0\0\0\x77"
    assert bytes(port.perm_mac) == mac_bytes("02:00:00:00:00:01")


@REFUSED
@pytest.mark.parametrize("field, value, mask", [
    ("mtu", 67, "MTU"), ("mtu", 9217, "MTU"), ("promisc", 2, "PROMISC"),
    ("allmulti", 2, "ALLMULTI"), ("eth_rqn", 3, "ETH_RQN"),
    ("eth_qpn", 1, "ETH_QPN"),
    ("mac", b"\x01\0\0\0\0\x01", "MAC"),
])
def test_bad_port(adapter, field, value, mask):
    if isinstance(value, bytes):
        value = array("qhca_port", field, value)
    port = struct("qhca_port")(**{field: value})
    mask = getattr(C, f"QHCA_PORT_M_{mask}")
    assert status_of(adapter, C.QHCA_CMD_MODIFY_PORT, data=port, mask=mask) in (
        C.QHCA_ST_BAD_PARAM, C.QHCA_ST_BAD_OBJ)
    assert status_of(adapter, C.QHCA_CMD_MODIFY_PORT, data=struct("qhca_port")(),
                     mask=1 << 40) == C.QHCA_ST_BAD_PARAM


def test_gid(adapter):
    set_gid(adapter, 3, "10.1.2.3")
    gid = adapter.query(C.QHCA_CMD_QUERY_GID, 3, "qhca_gid")
    assert bytes(gid.gid) == gid_bytes("10.1.2.3")
    assert gid.type == C.QHCA_GID_ROCE_V2 and gid.vlan == C.QHCA_VLAN_NONE
    adapter.command(C.QHCA_CMD_SET_GID, 3, struct("qhca_gid")())
    gid = adapter.query(C.QHCA_CMD_QUERY_GID, 3, "qhca_gid")
    assert gid.type == C.QHCA_GID_NONE


def test_bad_gid(adapter):
    good = struct("qhca_gid")(gid=array("qhca_gid", "gid", gid_bytes("10.0.0.1")),
                              mac=array("qhca_gid", "mac", b"\x02\0\0\0\0\x01"),
                              vlan=C.QHCA_VLAN_NONE, type=C.QHCA_GID_ROCE_V2)
    assert status_of(adapter, C.QHCA_CMD_SET_GID, 0xFFFFFFFF,
                     good) in (C.QHCA_ST_BAD_OBJ, C.QHCA_ST_BAD_PARAM)
    for field, value in (("type", 7), ("vlan", 4095)):
        bad = type(good).from_buffer_copy(bytes(good))
        setattr(bad, field, value)
        cqe = adapter.try_command(C.QHCA_CMD_SET_GID, 0, bad)
        assert cqe.status == C.QHCA_ST_BAD_PARAM
        assert cqe.result == getattr(type(good), field).offset, "names the field"
    assert status_of(adapter, C.QHCA_CMD_SET_GID, 0, good) == C.QHCA_ST_OK


def test_multicast_list(adapter):
    entry = bytes.fromhex("01005e0000010000")
    adapter.command(C.QHCA_CMD_SET_MC_LIST, data=entry * C.QHCA_MC_LIST_MAX)
    adapter.command(C.QHCA_CMD_SET_MC_LIST)
    assert status_of(adapter, C.QHCA_CMD_SET_MC_LIST, in_addr=adapter.scratch,
                     in_len=8 * C.QHCA_MC_LIST_MAX + 8) == C.QHCA_ST_BAD_PARAM
    assert status_of(adapter, C.QHCA_CMD_SET_MC_LIST,
                     data=entry[:7]) == C.QHCA_ST_BAD_PARAM


def test_stats_may_be_cut_short(adapter):
    adapter.m.write_mem(adapter.scratch + PAGE, b"\xee" * 32)
    adapter.command(C.QHCA_CMD_QUERY_STATS, out=16)
    assert adapter.m.read_mem(adapter.scratch + PAGE + 16, 16) == b"\xee" * 16


# ---- objects ----

def test_uar_and_pd(adapter):
    for alloc, free in ((C.QHCA_CMD_ALLOC_UAR, C.QHCA_CMD_FREE_UAR),
                        (C.QHCA_CMD_ALLOC_PD, C.QHCA_CMD_FREE_PD)):
        one, two = adapter.command(alloc).obj, adapter.command(alloc).obj
        assert one and two and one != two
        adapter.command(free, one)
        assert status_of(adapter, free, one) == C.QHCA_ST_BAD_OBJ
        assert adapter.command(alloc).obj != one, "numbers are not reused at once"
    assert status_of(adapter, C.QHCA_CMD_FREE_UAR, 0) == C.QHCA_ST_BAD_OBJ


def test_life_rules(adapter):
    """Objects in use cannot be destroyed."""
    s = Setup(adapter, "rts")
    for opcode, obj in ((C.QHCA_CMD_FREE_PD, s.pd), (C.QHCA_CMD_DESTROY_CQ, s.cq.num),
                        (C.QHCA_CMD_DESTROY_EQ, s.eq.num)):
        assert status_of(adapter, opcode, obj) == C.QHCA_ST_BUSY
    for opcode, obj in ((C.QHCA_CMD_DESTROY_QP, s.qp.num),
                        (C.QHCA_CMD_DESTROY_MR, s.mr.key), (C.QHCA_CMD_FREE_PD, s.pd),
                        (C.QHCA_CMD_DESTROY_CQ, s.cq.num),
                        (C.QHCA_CMD_DESTROY_EQ, s.eq.num)):
        assert status_of(adapter, opcode, obj) == C.QHCA_ST_OK
        assert status_of(adapter, opcode, obj) == C.QHCA_ST_BAD_OBJ


@REFUSED
@pytest.mark.parametrize("fields", [
    {"shift": 0}, {"shift": 17}, {"shift": 255}, {"vector": 0xFFFF}, {"flags": 2},
    {"dbrec": 8}, {"flags": C.QHCA_EQ_F_RECORD, "dbrec": 4},
    {"buf": direct(0x100000, 64)}, {"buf": direct(0x100001, 1024)},
    {"buf": struct("qhca_buf")(addr=0x100000, len=1024, form=9)},
    {"buf": struct("qhca_buf")(addr=0x100000, len=1024, form=C.QHCA_BUF_TREE, hops=4,
                               page_shift=12, table_shift=12)},
    {"buf": struct("qhca_buf")(addr=0x100000, len=1024, form=C.QHCA_BUF_FLAT, hops=1,
                               page_shift=32, entries=1)},
])
def test_bad_eq(adapter, fields):
    good = {"buf": direct(0x100000, 1024), "shift": 6, "vector": 1}
    eqc = struct("qhca_eqc")(**{**good, **fields})
    assert status_of(adapter, C.QHCA_CMD_CREATE_EQ, data=eqc) in (
        C.QHCA_ST_BAD_PARAM, C.QHCA_ST_BAD_TABLE)
    assert status_of(adapter, C.QHCA_CMD_CREATE_EQ,
                     data=struct("qhca_eqc")(**good)) == C.QHCA_ST_OK


def test_query_eq(adapter):
    eq = EQ(adapter, vector=2, shift=5)
    eqc = adapter.query(C.QHCA_CMD_QUERY_EQ, eq.num, "qhca_eqc")
    assert (eqc.shift, eqc.vector, eqc.armed, eqc.prod) == (5, 2, 1, 0)
    assert eqc.buf.addr == eq.addr


@REFUSED
@pytest.mark.parametrize("fields, status", [
    ({"shift": 23}, C.QHCA_ST_BAD_PARAM), ({"eqn": 9}, C.QHCA_ST_BAD_OBJ),
    ({"uar": 77}, C.QHCA_ST_BAD_OBJ), ({"flags": 1}, C.QHCA_ST_BAD_PARAM),
    ({"dbrec": 0x200001}, C.QHCA_ST_BAD_PARAM),
    ({"buf": direct(0x100000, 64)}, C.QHCA_ST_BAD_TABLE),
])
def test_bad_cq(adapter, fields, status):
    EQ(adapter)
    good = {"buf": direct(0x100000, 4096), "shift": 6, "dbrec": 0x200000}
    assert status_of(adapter, C.QHCA_CMD_CREATE_CQ,
                     data=struct("qhca_cqc")(**{**good, **fields})) == status
    assert status_of(adapter, C.QHCA_CMD_CREATE_CQ,
                     data=struct("qhca_cqc")(**good)) == C.QHCA_ST_OK


def test_modify_cq(adapter):
    cq = CQ(adapter, EQ(adapter))
    adapter.command(C.QHCA_CMD_MODIFY_CQ, cq.num,
                    struct("qhca_cqc")(mod_count=8, mod_usec=50),
                    mask=C.QHCA_CQ_M_MODERATION)
    cqc = adapter.query(C.QHCA_CMD_QUERY_CQ, cq.num, "qhca_cqc")
    assert (cqc.mod_count, cqc.mod_usec) == (8, 50)
    assert status_of(adapter, C.QHCA_CMD_MODIFY_CQ, cq.num, struct("qhca_cqc")(),
                     mask=1 << 63) == C.QHCA_ST_BAD_PARAM


def test_srq(adapter):
    pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
    EQ(adapter)
    good = {"buf": direct(0x100000, 512), "idx": direct(0x200000, 64),
            "dbrec": 0x300000, "pd": pd, "shift": 4, "stride": 5}
    for fields in ({"stride": 4}, {"stride": 10}, {"shift": 16}, {"pd": 99},
                   {"flags": 1}, {"dbrec": 4}, {"idx": direct(0x200000, 32)}):
        bad = struct("qhca_srqc")(**{**good, **fields})
        assert status_of(adapter, C.QHCA_CMD_CREATE_SRQ, data=bad) != C.QHCA_ST_OK
    srq = adapter.command(C.QHCA_CMD_CREATE_SRQ, data=struct("qhca_srqc")(**good)).obj
    adapter.m.store(0x300000, 5, 4)     # five posted: the limit is not reached
    adapter.command(C.QHCA_CMD_MODIFY_SRQ, srq, struct("qhca_srqc")(limit=3),
                    mask=C.QHCA_SRQ_M_LIMIT)
    assert adapter.query(C.QHCA_CMD_QUERY_SRQ, srq, "qhca_srqc").limit == 3
    assert status_of(adapter, C.QHCA_CMD_MODIFY_SRQ, srq, struct("qhca_srqc")(),
                     mask=2) == C.QHCA_ST_BAD_PARAM
    assert status_of(adapter, C.QHCA_CMD_FREE_PD, pd) == C.QHCA_ST_BUSY
    adapter.command(C.QHCA_CMD_DESTROY_SRQ, srq)


@REFUSED
@pytest.mark.parametrize("fields", [
    {"type": 9}, {"sq_shift": 16}, {"rq_shift": 200}, {"sq_stride": 5},
    {"sq_stride": 11}, {"rq_stride": 10}, {"pd": 99}, {"send_cqn": 99},
    {"recv_cqn": 99}, {"uar": 99}, {"flags": 0x80}, {"rq_dbrec": 4},
    {"sq": direct(0x100000, 64)}, {"rq": direct(0x100001, 512)},
])
def test_bad_qp(adapter, fields):
    s = Setup(adapter, "reset")
    qpc = s.qp.query()
    for name, value in fields.items():
        setattr(qpc, name, value)
    assert status_of(adapter, C.QHCA_CMD_CREATE_QP, data=qpc) != C.QHCA_ST_OK
    s.qp.to_init()


def test_qp_states(adapter):
    s = Setup(adapter, "reset")
    qp = s.qp
    assert qp.query().state == C.QHCA_QPS_RESET
    with pytest.raises(AdminError):
        qp.to_rtr()
    qp.to_init()
    with pytest.raises(AdminError):
        qp.to_rts()
    qp.to_rtr(psn=0xABCDEF)
    qp.to_rts(psn=0x123456)
    qpc = qp.query()
    assert qpc.state == C.QHCA_QPS_RTS
    assert (qpc.sq_psn, qpc.rq_psn) == (0x123456, 0xABCDEF)
    assert (qpc.snd_psn, qpc.exp_psn) == (0x123456, 0xABCDEF)
    for bad in (C.QHCA_QPS_INIT, C.QHCA_QPS_RTR, 7, 255):
        assert status_of(adapter, C.QHCA_CMD_MODIFY_QP, qp.num,
                         struct("qhca_qpc")(state=bad),
                         mask=modify_mask("STATE")) != C.QHCA_ST_OK
    assert status_of(adapter, C.QHCA_CMD_MODIFY_QP, qp.num, struct("qhca_qpc")(),
                     mask=1 << 62) == C.QHCA_ST_BAD_PARAM
    qp.modify("STATE", state=C.QHCA_QPS_ERR)
    qp.modify("STATE", state=C.QHCA_QPS_RESET)
    assert qp.query().snd_psn == 0


def test_mr(adapter):
    pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
    mr = MR(adapter, pd, 8192, C.QHCA_ACCESS_LOCAL_WRITE | C.QHCA_ACCESS_REMOTE_READ)
    assert mr.key & C.QHCA_KEY_BYTE_MASK == 0x5A and mr.key >> 8
    mpt = adapter.query(C.QHCA_CMD_QUERY_MR, mr.key, "qhca_mpt")
    assert (mpt.iova, mpt.len, mpt.pd) == (mr.iova, 8192, pd)
    assert mpt.state == C.QHCA_MR_VALID
    assert status_of(adapter, C.QHCA_CMD_DESTROY_MR, mr.key ^ 1) == C.QHCA_ST_BAD_OBJ
    adapter.command(C.QHCA_CMD_DESTROY_MR, mr.key)
    assert status_of(adapter, C.QHCA_CMD_DESTROY_MR, mr.key) == C.QHCA_ST_BAD_OBJ


@REFUSED
@pytest.mark.parametrize("fields", [
    {"access": 0x20}, {"flags": 4}, {"len": 4095}, {"pd": 99},
    {"iova": 0xFFFFFFFFFFFFF800}, {"buf": direct(0x100000, 1 << 63), "len": 1 << 63},
    {"buf": struct("qhca_buf")(addr=0x100000, len=4096, form=C.QHCA_BUF_FLAT, hops=1,
                               page_shift=12, entries=0)},
    {"buf": struct("qhca_buf")(addr=0x100000, len=4096, form=C.QHCA_BUF_LIST,
                               entries=C.QHCA_BUF_LIST_MAX + 1)},
])
def test_bad_mr(adapter, fields):
    pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
    good = {"buf": direct(0x100000, 4096), "len": 4096, "pd": pd}
    mpt = struct("qhca_mpt")(**{**good, **fields})
    assert status_of(adapter, C.QHCA_CMD_CREATE_MR, data=mpt) != C.QHCA_ST_OK
    assert status_of(adapter, C.QHCA_CMD_CREATE_MR,
                     data=struct("qhca_mpt")(**good)) == C.QHCA_ST_OK


def test_eth_queues(adapter):
    cq = CQ(adapter, EQ(adapter))
    sq = {"buf": direct(0x100000, 64 * 16), "cqn": cq.num, "shift": 4, "stride": 6}
    rq = {"buf": direct(0x200000, 16 * 16), "cqn": cq.num, "shift": 4, "stride": 4,
          "dbrec": 0x300000}
    for kind, good in (("SQ", sq), ("RQ", rq)):
        create = COMMANDS[f"QHCA_CMD_CREATE_ETH_{kind}"]
        for fields in ({"cqn": 99}, {"shift": 16}, {"stride": 3}, {"stride": 12},
                       {"buf": direct(0x100000, 32)}):
            bad = struct("qhca_eth_qc")(**{**good, **fields})
            assert status_of(adapter, create, data=bad) != C.QHCA_ST_OK
        num = adapter.command(create, data=struct("qhca_eth_qc")(**good)).obj
        assert status_of(adapter, C.QHCA_CMD_DESTROY_CQ, cq.num) == C.QHCA_ST_BUSY
        adapter.command(COMMANDS[f"QHCA_CMD_DESTROY_ETH_{kind}"], num)
    adapter.command(C.QHCA_CMD_DESTROY_CQ, cq.num)


def test_object_limit():
    """The limits of the properties hold, and a freed object makes room."""
    with Machine(device="qhca,addr=4.0,max-pd=16") as m:
        adapter = Adapter(m)
        adapter.start()
        limit = adapter.query(C.QHCA_CMD_QUERY_DEVICE, 0, "qhca_dev_caps").max_pd
        pds = [adapter.command(C.QHCA_CMD_ALLOC_PD).obj for _ in range(limit)]
        assert status_of(adapter, C.QHCA_CMD_ALLOC_PD) == C.QHCA_ST_NO_RESOURCES
        adapter.command(C.QHCA_CMD_FREE_PD, pds[3])
        adapter.command(C.QHCA_CMD_ALLOC_PD)


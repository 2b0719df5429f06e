# SPDX-License-Identifier: GPL-2.0-or-later
"""
Two user contexts of one adapter, each with a doorbell page, a PD and objects of its own.  The
attacker knows all numbers, keys and addresses of the victim, may store anything in its own rings
and doorbell page, and is in league with a peer on the wire.  docs/reference/isolation.md lists what
it might try; here is what the device alone has to refuse.
"""

import struct as pack

import pytest
from adapter import CQ, EQ
from layout import C, struct
from rdma import (AETH, BTH, MR, OUR_IP, OUR_MAC, QP, SEND_ONLY, array, gid_bytes, mac_bytes,
                  packet, parse, set_gid)
from test_tag_matching import TagSetup, headers

pytestmark = pytest.mark.once("what is refused is decided by the engine, where nothing is observed")

ACCESS = (C.QHCA_ACCESS_LOCAL_WRITE | C.QHCA_ACCESS_REMOTE_WRITE | C.QHCA_ACCESS_REMOTE_READ
          | C.QHCA_ACCESS_REMOTE_ATOMIC | C.QHCA_ACCESS_MW_BIND)
SECRET = b"the victim's" * 4
WRITE_ONLY, READ_REQUEST, FETCH_ADD = 0x0A, 0x0C, 0x14
READ_RESPONSE_ONLY, ATOMIC_ACK = 0x10, 0x12
NAK_ACCESS = 0x62
FIRST_PSN = 100
QKEY, PRIVILEGED = 0x11223344, 0x80010000


class UdQP(QP):
    """UD: WQEs of 128 bytes."""

    SHIFT, SQ_STRIDE = 3, 7

    def __init__(self, owner: "Context", qkey: int):
        super().__init__(owner.adapter, owner.cq, owner.pd, owner.uar, type=C.QHCA_QPT_UD)
        self.modify("STATE", "PKEY_INDEX", "QKEY", state=C.QHCA_QPS_INIT, qkey=qkey)
        self.modify("STATE", state=C.QHCA_QPS_RTR)
        self.modify("STATE", "SQ_PSN", state=C.QHCA_QPS_RTS)

    def send_to(self, qpn: int, qkey: int, sge, sgid_index: int = 0, mac: str = OUR_MAC) -> None:
        """One datagram to a QP of this adapter."""
        av = struct("qhca_av")(dgid=array("qhca_av", "dgid", gid_bytes(OUR_IP)),
                               dmac=array("qhca_av", "dmac", mac_bytes(mac)),
                               sgid_index=sgid_index, hop_limit=64)
        wqe = struct("qhca_ud_wqe")(
            ctrl=struct("qhca_wqe_ctrl")(opcode=C.QHCA_WQE_SEND, num_sge=1,
                                         flags=C.QHCA_WQE_F_SIGNALED),
            dest_qpn=qpn, qkey=qkey, av=av)
        slot = self.sq_prod % (1 << self.SHIFT)
        self.adapter.m.write_mem(self.sq + (slot << self.SQ_STRIDE),
                                 bytes(wqe) + bytes(struct("qhca_sge")(*sge)))
        self.sq_prod += 1
        self.ring_sq()


class Context:
    """What a process has."""

    def __init__(self, adapter, eq):
        self.adapter = adapter
        self.uar = adapter.command(C.QHCA_CMD_ALLOC_UAR).obj
        self.pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
        self.cq = CQ(adapter, eq, uar=self.uar)
        self.mr = MR(adapter, self.pd, access=ACCESS)

    def qp(self) -> QP:
        """A connected QP of its own, ready to send."""
        qp = QP(self.adapter, self.cq, self.pd, self.uar)
        qp.to_init(ACCESS & ~(C.QHCA_ACCESS_LOCAL_WRITE | C.QHCA_ACCESS_MW_BIND))
        qp.to_rtr(psn=FIRST_PSN)
        qp.to_rts()
        return qp

    def sge(self, length: int = 8) -> tuple[int, int, int]:
        return self.mr.iova, length, self.mr.key


class Two:
    """Victim and attacker; the victim's memory holds SECRET."""

    def __init__(self, adapter):
        self.adapter = adapter
        set_gid(adapter)
        self.eq = EQ(adapter)
        self.victim, self.attacker = (Context(adapter, self.eq) for _ in range(2))
        self.victim.mr.fill(SECRET)

    def unharmed(self) -> None:
        """The victim's memory is as it was, and its key works for itself."""
        mr = self.victim.mr
        assert mr.data(len(SECRET)) == SECRET
        assert self.adapter.m.no_frame()
        qp = self.victim.qp()
        qp.post_send(self.victim.sge(len(SECRET)))
        assert SECRET in self.adapter.m.receive_frame()

    def keys(self) -> list[int]:
        """The victim's, and others that it may have had or will have."""
        key = self.victim.mr.key
        index = key >> C.QHCA_KEY_INDEX_SHIFT << C.QHCA_KEY_INDEX_SHIFT
        return [key, index, index | 0xFF, key ^ 1, C.QHCA_LKEY_RESERVED]


@pytest.fixture
def two(adapter):
    return Two(adapter)


def test_doorbells(two):
    """Every doorbell with every number, in the attacker's page: nothing of the victim moves."""
    a, victim = two.adapter, two.victim
    qp = victim.qp()
    qp.write_send(victim.sge())
    kinds = (C.QHCA_DB_SQ, C.QHCA_DB_CQ_ARM, C.QHCA_DB_EQ, C.QHCA_DB_ETH_SQ, C.QHCA_DB_RQ,
             C.QHCA_DB_MR_SYNC, C.QHCA_DB_TM)
    numbers = {*range(16), qp.num, victim.cq.num, two.eq.num,
               victim.mr.key >> C.QHCA_KEY_INDEX_SHIFT}
    armed = a.query(C.QHCA_CMD_QUERY_CQ, victim.cq.num, "qhca_cqc").arm
    for kind in kinds:
        for number in numbers:
            a.ring(kind, number, 1, two.attacker.uar)
    assert a.stat("DB_BAD_OWNER") > 0
    assert a.m.no_frame()
    assert (qp.query().state, qp.query().sq_head) == (C.QHCA_QPS_RTS, 0)
    assert a.query(C.QHCA_CMD_QUERY_CQ, victim.cq.num, "qhca_cqc").arm == armed
    qp.ring_sq()
    assert parse(a.m.receive_frame())


def test_keys_as_a_source(two):
    """A region of another PD, as itself or by a key next to it, is no source."""
    for key in two.keys():
        qp = two.attacker.qp()
        qp.post_send((two.victim.mr.iova, 8, key))
        cqe = two.attacker.cq.take()
        assert (cqe.qpn, cqe.status) == (qp.num, C.QHCA_WC_LOC_PROT_ERR), hex(key)
    two.unharmed()


def test_keys_as_a_receive_buffer(two):
    for key in two.keys():
        qp = two.attacker.qp()
        qp.post_recv((two.victim.mr.iova, 64, key))
        two.adapter.m.send_frame(packet(qp.num, SEND_ONLY, FIRST_PSN, b"overwritten!", ackreq=1))
        cqe = two.attacker.cq.take()
        assert (cqe.qpn, cqe.status) == (qp.num, C.QHCA_WC_LOC_PROT_ERR), hex(key)
        assert parse(two.adapter.m.receive_frame())[AETH].syndrome & 0x60 == 0x60
    two.unharmed()


def requests(addr: int, key: int) -> list[tuple[int, bytes]]:
    """A peer's WRITE, READ and FETCH_ADD: opcode, what follows the BTH."""
    reth = pack.pack(">QII", addr, key, 8)
    return [(WRITE_ONLY, reth + b"written!"), (READ_REQUEST, reth),
            (FETCH_ADD, pack.pack(">QIQQ", addr, key, 1, 0))]


@pytest.mark.parametrize("which", range(3), ids=["write", "read", "add"])
def test_keys_from_the_wire(two, which):
    """The PD of the QP that receives decides, whatever key the packet has."""
    for key in two.keys():
        qp = two.attacker.qp()
        opcode, rest = requests(two.victim.mr.iova, key)[which]
        two.adapter.m.send_frame(packet(qp.num, opcode, FIRST_PSN, rest, ackreq=1))
        frame = parse(two.adapter.m.receive_frame())
        assert frame[AETH].syndrome == NAK_ACCESS, hex(key)
    two.unharmed()
    # The same packet is accepted by a QP of the victim: nothing else was wrong with it.
    qp = two.victim.qp()
    opcode, rest = requests(two.victim.mr.iova, two.victim.mr.key)[which]
    two.adapter.m.send_frame(packet(qp.num, opcode, FIRST_PSN, rest, ackreq=1))
    assert parse(two.adapter.m.receive_frame())[BTH].opcode in (
        0x11, READ_RESPONSE_ONLY, ATOMIC_ACK)


def test_work_on_keys(two):
    """The victim's region and window cannot be invalidated, bound or bound to."""
    a, key = two.adapter, two.victim.mr.key
    window = struct("qhca_mpt")(flags=C.QHCA_MR_F_MW2, pd=two.victim.pd)
    its = a.command(C.QHCA_CMD_CREATE_MW, data=window).obj
    window.pd = two.attacker.pd
    own = a.command(C.QHCA_CMD_CREATE_MW, data=window).obj
    before = bytes(a.query(C.QHCA_CMD_QUERY_MR, its, "qhca_mpt"))
    bind = C.QHCA_WQE_BIND_MW
    for opcode, fields, remote in (
            (C.QHCA_WQE_LOCAL_INV, {"imm": int.from_bytes(key.to_bytes(4, "little"), "big")},
             (0, 0)),
            (C.QHCA_WQE_LOCAL_INV, {"imm": int.from_bytes(its.to_bytes(4, "little"), "big")},
             (0, 0)),
            (bind, {"arg0": two.victim.mr.iova, "arg1": 64}, (key, own)),
            (bind, {"arg0": two.attacker.mr.iova, "arg1": 64}, (two.attacker.mr.key, its))):
        qp = two.attacker.qp()
        qp.post_send((0, 0, 0), opcode=opcode, remote=remote, **fields)
        cqe = two.attacker.cq.take()
        assert cqe.qpn == qp.num
        assert cqe.status != C.QHCA_WC_SUCCESS, (opcode, fields, remote)
    # To its own region, it can bind its own window.
    qp = two.attacker.qp()
    qp.post_send((0, 0, 0), opcode=bind, remote=(two.attacker.mr.key, own),
                 arg0=two.attacker.mr.iova, arg1=64)
    assert two.attacker.cq.take().status == C.QHCA_WC_SUCCESS
    assert bytes(a.query(C.QHCA_CMD_QUERY_MR, its, "qhca_mpt")) == before
    two.unharmed()


class Scattered(MR):
    """Pages that are not contiguous, in a table, as of a dma-buf; the next page is another's."""

    PAGES = 3

    def __init__(self, adapter, pd, access):
        pages = [adapter.alloc(8192) for _ in range(self.PAGES)]
        table = adapter.alloc(4096)
        adapter.m.write_mem(table, b"".join((p | C.QHCA_BTE_VALID).to_bytes(8, "little")
                                            for p in pages))
        self.adapter, self.addr, self.size = adapter, pages[0], self.PAGES * 4096
        self.iova = 0x600000000000
        buf = struct("qhca_buf")(addr=table, len=self.size, entries=self.PAGES,
                                 form=C.QHCA_BUF_FLAT, hops=1, page_shift=12)
        mpt = struct("qhca_mpt")(buf=buf, iova=self.iova, len=self.size, key=0x5A, pd=pd,
                                 access=access)
        self.key = adapter.command(C.QHCA_CMD_CREATE_MR, data=mpt).obj


def test_dmabuf(two):
    """A region made of a dma-buf's pages belongs to a PD as any other, and ends where it ends."""
    two.victim.mr = Scattered(two.adapter, two.victim.pd, ACCESS)
    two.victim.mr.fill(SECRET)
    for key in two.keys():
        qp = two.attacker.qp()
        qp.post_send((two.victim.mr.iova, 8, key))
        assert two.attacker.cq.take().status == C.QHCA_WC_LOC_PROT_ERR, hex(key)
    own = Scattered(two.adapter, two.attacker.pd, ACCESS)
    for addr, length in ((own.iova + own.size - 4, 8), (own.iova + own.size, 1),
                         (own.iova - 1, 1)):
        qp = two.attacker.qp()
        qp.post_send((addr, length, own.key))
        assert two.attacker.cq.take().status == C.QHCA_WC_LOC_PROT_ERR, hex(addr)
    two.unharmed()


def test_tag_list(two):
    """
    The list moves only by its own page, and an entry's buffer is a region of the list's PD: a
    message that matches an entry with another's key fails, and stores nothing.
    """
    tm = TagSetup(two.adapter)
    tm.produced += 1
    two.adapter.ring(C.QHCA_DB_TM, tm.srqn, tm.produced, two.attacker.uar)
    assert two.adapter.stat("DB_BAD_OWNER") == 1
    tm.produced -= 1
    mr = two.victim.mr
    tm.operation(C.QHCA_WQE_TAG_ADD, (mr.iova, 256, mr.key), handle=1, tag=5, mask=2**64 - 1,
                 recv_wr_id=1)
    two.adapter.m.send_frame(packet(tm.qp.num, SEND_ONLY, tm.psn,
                                    headers(C.QHCA_TMH_EAGER, 5) + b"overwritten!", ackreq=1))
    frame = parse(two.adapter.m.receive_frame())
    assert frame[AETH].syndrome & 0x60 == 0x60 or frame[AETH].syndrome & 0xE0 == 0x20
    two.unharmed()


def test_datagrams(two):
    """Only the right Q_Key reaches another's QP, and a privileged one is replaced."""
    victim, attacker = UdQP(two.victim, QKEY), UdQP(two.attacker, 0x55555555)
    victim.post_recv((two.victim.mr.iova + 1024, 128, two.victim.mr.key), wr_id=7)
    guesses = (0, 1, QKEY ^ 1, QKEY ^ 0x80000000, PRIVILEGED, 0xFFFFFFFF)
    for guess in guesses:
        attacker.send_to(victim.num, guess, two.attacker.sge())
        assert two.attacker.cq.take().status == C.QHCA_WC_SUCCESS
    assert two.adapter.stat("UD_DROPPED") == len(guesses)
    assert two.victim.cq.peek() is None
    attacker.send_to(victim.num, QKEY, two.attacker.sge())
    cqe = two.victim.cq.take()
    assert (cqe.wr_id, cqe.status, cqe.src_qpn) == (7, C.QHCA_WC_SUCCESS, attacker.num)


def test_address_handles(two):
    """
    An address is data in the WQE; its source is an entry of the adapter's table, which only the
    kernel fills: no other address can be claimed.
    """
    qp = UdQP(two.attacker, QKEY)
    for index in (1, 2, 0x7FFF, 0xFFFF):        # empty, and beyond the table
        qp.send_to(0x123, QKEY, two.attacker.sge(), index, "02:00:00:00:00:02")
        cqe = two.attacker.cq.take()
        assert (cqe.status, cqe.syndrome) == (C.QHCA_WC_LOC_QP_OP_ERR, C.QHCA_SYN_WQE_AV), index
        qp.modify("STATE", state=C.QHCA_QPS_RTS)        # from SQE
    two.unharmed()

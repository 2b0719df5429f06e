# SPDX-License-Identifier: GPL-2.0-or-later
"""Ethernet receive queues: contexts, states, header/data split, merging, RSS over them.

Where a frame is split, and which queue its hash picks, is computed here from
scapy's headers and from the definition of the Toeplitz hash.
"""

import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from adapter import CQ, EQ, direct
from layout import C, struct
from machine import until
from rdma import OUR_MAC, PEER_MAC, array
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

pytestmark = pytest.mark.once("test_ethernet receives in both builds")

SHIFT, SIZE = 3, 2048           # of each ring; bytes of a buffer
KEY = bytes(i * 37 + 11 & 0xFF for i in range(40))
RSS_FIELDS = (C.QHCA_HASH_SRC_IPV4 | C.QHCA_HASH_DST_IPV4
              | C.QHCA_HASH_SRC_PORT_UDP | C.QHCA_HASH_DST_PORT_UDP)


def qc(**fields):
    return struct("qhca_eth_qc")(**fields)


def offset(kind: str, field: str) -> int:
    return getattr(struct(kind), field).offset


class Buffers:
    """A ring of receive WQEs, full of buffers of LEN bytes."""

    def __init__(self, adapter, length: int = SIZE):
        self.m, self.length = adapter.m, length
        self.ring = adapter.alloc(16 << SHIFT)
        self.mem = adapter.alloc(SIZE << SHIFT)
        self.dbrec = adapter.alloc(64)
        for i in range(1 << SHIFT):
            seg = struct("qhca_eth_seg")(addr=self.mem + SIZE * i, len=length)
            self.m.write_mem(self.ring + 16 * i, bytes(seg))

    def post(self, index: int) -> None:
        self.m.store(self.dbrec, index, 4)

    def read(self, index: int, count: int, length: int) -> bytes:
        """LENGTH bytes in COUNT buffers, from the one with this counter on."""
        data = b""
        for i in range(index, index + count):
            at = self.mem + SIZE * (i & (1 << SHIFT) - 1)
            data += self.m.read_mem(at, min(self.length, length - len(data)))
        assert len(data) == length
        return data


class Queue:
    """A receive queue; with SPLIT (bytes of a data buffer) one that splits."""

    def __init__(self, adapter, eq, split: int = 0, **fields):
        self.adapter, self.split = adapter, split
        self.cq = CQ(adapter, eq)
        self.head, self.data = Buffers(adapter), Buffers(adapter, split or SIZE)
        self.num = adapter.command(C.QHCA_CMD_CREATE_ETH_RQ,
                                   data=self.context(split, **fields)).obj
        self.post()

    def context(self, split: int | bool, **fields):
        """A valid context, except for FIELDS."""
        good = {"buf": direct(self.head.ring, 16 << SHIFT), "dbrec": self.head.dbrec,
                "cqn": self.cq.num, "shift": SHIFT, "stride": 4}
        if split:
            good |= {"flags": C.QHCA_ETH_Q_F_HDS, "data_shift": SHIFT,
                     "data_buf": direct(self.data.ring, 16 << SHIFT),
                     "data_dbrec": self.data.dbrec}
        return qc(**{**good, **fields})

    def post(self) -> None:
        """All buffers of both rings, counted from 0."""
        self.head.post(1 << SHIFT)
        self.data.post(1 << SHIFT)

    def try_modify(self, *names: str, context=None, **fields):
        mask = 0
        for name in names:
            mask |= getattr(C, f"QHCA_ETH_RQ_M_{name}")
        return self.adapter.try_command(C.QHCA_CMD_MODIFY_ETH_RQ, self.num,
                                        context or qc(**fields), mask=mask)

    def modify(self, *names: str, **fields) -> None:
        assert self.try_modify(*names, **fields).status == C.QHCA_ST_OK

    def query(self):
        return self.adapter.query(C.QHCA_CMD_QUERY_ETH_RQ, self.num, "qhca_eth_qc")

    def receive(self):
        """The next frame: (completion, what the ring has, what the data ring has)."""
        cqe = struct("qhca_eth_cqe").from_buffer_copy(bytes(self.cq.take()))
        assert (cqe.opcode, cqe.status) == (C.QHCA_CQE_OP_ETH_RECV, C.QHCA_WC_SUCCESS)
        assert cqe.num == self.num
        first = cqe.header_len or cqe.byte_len
        return (cqe, self.head.read(cqe.wqe_index, cqe.num_wqe, first),
                self.data.read(cqe.data_index, cqe.num_data, cqe.byte_len - first))


@pytest.fixture
def eq(adapter):
    return EQ(adapter)


@pytest.fixture
def queue(adapter, eq):
    """Make a queue that receives for the port."""
    def make(split: int = 0, **fields) -> Queue:
        q = Queue(adapter, eq, split, **fields)
        port(adapter, "ETH_RQN", eth_rqn=q.num)
        return q
    return make


def port(adapter, name: str, **fields):
    """MODIFY_PORT with one bit of the mask; the completion."""
    return adapter.try_command(C.QHCA_CMD_MODIFY_PORT, data=struct("qhca_port")(**fields),
                               mask=getattr(C, f"QHCA_PORT_M_{name}"))


def ether():
    return Ether(src=PEER_MAC, dst=OUR_MAC)


def tcp(length: int = 1000, **fields):
    payload = bytes(i * 7 & 0xFF for i in range(length))
    return (ether() / IP(src="10.0.0.2", dst="10.0.0.1")
            / TCP(sport=1000, dport=2000, **fields) / Raw(payload))


# ---- contexts ----

@pytest.mark.parametrize("split, field, value", [
    (False, "flags", 0x10), (True, "flags", 0x81), (True, "data_shift", 16),
    (False, "data_shift", SHIFT), (True, "data_dbrec", 0x100004),
    (False, "data_dbrec", 0x100000), (False, "hds_thresh", 1), (False, "state", 1),
    (True, "stride", 5), (False, "data_buf", direct(0x100000, 16 << SHIFT)),
])
def test_bad_context(adapter, eq, split, field, value):
    """CREATE_ETH_RQ and MODIFY_ETH_RQ report the invalid field."""
    q = Queue(adapter, eq)
    bad = q.context(split, **{field: value})
    cqe = adapter.try_command(C.QHCA_CMD_CREATE_ETH_RQ, data=bad)
    assert (cqe.status, cqe.result) == (C.QHCA_ST_BAD_PARAM, offset("qhca_eth_qc", field))
    if field in ("state", "stride", "hds_thresh"):
        return                  # RINGS does not set these
    q.modify("STATE", state=C.QHCA_WQS_RESET)
    before = bytes(q.query())
    cqe = q.try_modify("RINGS", context=bad)
    assert (cqe.status, cqe.result) == (C.QHCA_ST_BAD_PARAM, offset("qhca_eth_qc", field))
    assert bytes(q.query()) == before


@pytest.mark.parametrize("field, value, status", [
    ("cqn", 99, C.QHCA_ST_BAD_OBJ),
    ("data_buf", direct(0x100000, 16), C.QHCA_ST_BAD_TABLE),
    ("buf", direct(0x100000, 16), C.QHCA_ST_BAD_TABLE),
])
def test_bad_rings(adapter, eq, field, value, status):
    q = Queue(adapter, eq)
    bad = q.context(True, **{field: value})
    assert adapter.try_command(C.QHCA_CMD_CREATE_ETH_RQ, data=bad).status == status
    q.modify("STATE", state=C.QHCA_WQS_RESET)
    before = bytes(q.query())
    assert q.try_modify("RINGS", "STATE", context=bad).status == status
    assert bytes(q.query()) == before


@pytest.mark.parametrize("fields", [
    {"flags": C.QHCA_ETH_Q_F_HDS}, {"flags": C.QHCA_ETH_Q_F_SUPER}, {"data_shift": 1},
    {"data_dbrec": 8}, {"hds_thresh": 1}, {"state": 1},
])
def test_send_queue_has_one_ring(adapter, eq, fields):
    cq, ring = CQ(adapter, eq), adapter.alloc(16 << 7)
    good = {"buf": direct(ring, 16 << 7), "cqn": cq.num, "shift": 4, "stride": 7}
    cqe = adapter.try_command(C.QHCA_CMD_CREATE_ETH_SQ, data=qc(**good, **fields))
    assert (cqe.status, cqe.result) == (C.QHCA_ST_BAD_PARAM,
                                        offset("qhca_eth_qc", *fields))
    num = adapter.command(C.QHCA_CMD_CREATE_ETH_SQ, data=qc(**good)).obj
    seen = adapter.query(C.QHCA_CMD_QUERY_ETH_SQ, num, "qhca_eth_qc")
    assert bytes(seen) == bytes(qc(**good, state=C.QHCA_WQS_RDY))


def test_query_receive_queue(queue):
    """What was set is read back; a frame moves the counters."""
    q = queue(512, hds_thresh=300)
    want = q.context(512, hds_thresh=300, state=C.QHCA_WQS_RDY)
    assert bytes(q.query()) == bytes(want)
    q.adapter.m.send_frame(bytes(tcp(1000)))
    q.receive()
    seen = q.query()
    assert (seen.head, seen.tail, seen.data_head, seen.data_tail) == (8, 1, 8, 2)


# ---- states ----

def test_bad_states(queue):
    q = queue()
    at = offset("qhca_eth_qc", "state")
    assert q.try_modify("STATE", state=C.QHCA_WQS_RDY).status == C.QHCA_ST_BAD_STATE
    assert q.try_modify("RINGS", context=q.context(0)).status == C.QHCA_ST_BAD_STATE
    for state in (C.QHCA_WQS_ERR, 255):
        cqe = q.try_modify("STATE", state=state)
        assert (cqe.status, cqe.result) == (C.QHCA_ST_BAD_PARAM, at)
    cqe = q.try_modify("HDS_THRESH", hds_thresh=1)
    assert (cqe.status, cqe.result) == (C.QHCA_ST_BAD_PARAM,
                                        offset("qhca_eth_qc", "hds_thresh"))
    for mask in (1 << 3, 1 << 63):
        cqe = q.adapter.try_command(C.QHCA_CMD_MODIFY_ETH_RQ, q.num, qc(), mask=mask)
        assert cqe.status == C.QHCA_ST_BAD_PARAM
    assert bytes(q.query()) == bytes(q.context(0, state=C.QHCA_WQS_RDY))


def test_stop_and_start(queue):
    """A stopped queue receives nothing; it restarts with other rings, from 0."""
    q = queue()
    q.adapter.m.send_frame(bytes(tcp()))
    assert q.receive()[1] == bytes(tcp())
    q.modify("STATE", state=C.QHCA_WQS_RESET)
    seen = q.query()
    assert (seen.state, seen.head, seen.tail) == (C.QHCA_WQS_RESET, 0, 0)
    for _ in range(3):
        q.adapter.m.send_frame(bytes(tcp()))
    until(lambda: q.query().dropped == 3, "three frames dropped")
    assert q.cq.peek() is None
    assert q.adapter.stat("ETH_RX_DROPPED") == 3
    q.modify("RINGS", "STATE", "HDS_THRESH",
             context=q.context(True, state=C.QHCA_WQS_RDY, hds_thresh=100))
    q.adapter.m.send_frame(bytes(tcp()))
    cqe, head, payload = q.receive()
    assert (cqe.wqe_index, cqe.data_index) == (0, 0)
    assert (head, payload) == (bytes(tcp())[:54], bytes(tcp())[54:])
    assert q.query().dropped == 3


def test_error_and_revival(queue, eq):
    """A record beyond the ring stops the queue; RESET and RDY start it again."""
    q = queue(512)
    q.data.post(1000)
    q.adapter.m.send_frame(bytes(tcp()))
    event = eq.take()
    assert (event.type, event.obj) == (C.QHCA_EV_ETH_RQ_ERR, q.num)
    seen = q.query()
    assert (seen.state, seen.syndrome) == (C.QHCA_WQS_ERR, C.QHCA_SYN_DB_INDEX)
    assert q.try_modify("STATE", state=C.QHCA_WQS_RDY).status == C.QHCA_ST_BAD_STATE
    q.modify("STATE", state=C.QHCA_WQS_RESET)
    assert q.query().syndrome == C.QHCA_SYN_NONE
    q.post()
    q.modify("STATE", state=C.QHCA_WQS_RDY)
    q.adapter.m.send_frame(bytes(tcp()))
    assert q.receive()[2] == bytes(tcp())[54:]


# ---- header/data split ----

OPTIONS = [("MSS", 1460), ("NOP", None), ("NOP", None), ("Timestamp", (1, 2))]
HEADERS = {
    "tcp": IP(src="10.0.0.2") / TCP(),
    "ip-options": IP(src="10.0.0.2", options=[b"\x01\x01\x01\x00"]) / TCP(),
    "tcp-options": IP(src="10.0.0.2") / TCP(options=OPTIONS),
    "udp": IP(src="10.0.0.2") / UDP(),
    "tcp6": IPv6(src="fd00::2", dst="fd00::1") / TCP(options=OPTIONS),
    "extension": IPv6(src="fd00::2", dst="fd00::1") / IPv6ExtHdrDestOpt() / UDP(),
}


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("name", HEADERS)
def test_split(queue, name, tagged):
    """Headers end where the TCP or UDP header does; the payload fills buffers."""
    q = queue(512)
    payload = bytes(i * 5 & 0xFF for i in range(1100))
    head = len(bytes(ether() / HEADERS[name]))
    whole = bytes(ether() / HEADERS[name] / Raw(payload))
    sent = bytes(ether() / Dot1Q(vlan=5) / HEADERS[name] / Raw(payload)) \
        if tagged else whole
    q.adapter.m.send_frame(sent)
    cqe, first, rest = q.receive()
    assert (cqe.header_len, cqe.num_wqe, cqe.num_data) == (head, 1, 3)
    assert (first, rest) == (whole[:head], payload)
    assert cqe.byte_len == len(whole)
    assert cqe.vlan == (5 if tagged else C.QHCA_VLAN_NONE)
    assert cqe.flags & C.QHCA_CQE_F_L4_OK


def test_whole_frames(queue):
    """A frame that is not TCP or UDP, a fragment, short or without payload stays whole."""
    q = queue(512, hds_thresh=200)
    for frame in (ether() / IP(proto=99) / Raw(bytes(500)),
                  ether() / IP(flags="MF") / UDP() / Raw(bytes(500)),
                  ether() / IP(frag=3, proto=6) / Raw(bytes(500)),
                  tcp(200 - 54), tcp(0)):
        q.adapter.m.send_frame(bytes(frame))
        cqe, first, rest = q.receive()
        assert (cqe.header_len, cqe.num_data, rest) == (0, 0, b"")
        assert first[:len(bytes(frame))] == bytes(frame)
        q.head.post(cqe.wqe_index + 9)
    q.adapter.m.send_frame(bytes(tcp(201 - 54)))
    assert q.receive()[0].header_len == 54


def test_no_data_buffer(queue):
    """A frame without room for its payload is dropped; its header WQE stays."""
    q = queue(512)
    q.data.post(1)
    q.adapter.m.send_frame(bytes(tcp(1000)))
    q.adapter.m.send_frame(bytes(tcp(400)))
    cqe, _, rest = q.receive()
    assert (cqe.wqe_index, cqe.data_index) == (0, 0)
    assert rest == bytes(tcp(400))[54:]
    assert q.query().dropped == 1


# ---- merging ----

@contextmanager
def asleep(machine):
    """QEMU does not run: frames that are sent meanwhile arrive in one go."""
    process = machine.process.pid
    os.kill(process, signal.SIGSTOP)
    stat = Path(f"/proc/{process}/stat")
    until(lambda: stat.read_text().rpartition(")")[2][1] == "T", "QEMU to stop")
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def segment(number: int, count: int = 1, flags: str = "A", size: int = 400, port: int = 20):
    """COUNT segments in one packet, from this one on, of the flow from PORT."""
    payload = bytes((i * 11 ^ i >> 8) & 0xFF for i in range(size * (number + count)))
    return bytes(ether() / IP(src="10.0.0.2", id=7 + number, flags="DF")
                 / TCP(sport=port, flags=flags, ack=5,
                       seq=0xFFFFFF00 + size * number & 0xFFFFFFFF,
                       options=OPTIONS[1:]) / Raw(payload[size * number:]))


@pytest.mark.parametrize("split", [0, 512])
def test_merge(queue, split):
    """Frames that arrive together are received as one packet, up to the frame with PSH."""
    q = queue(split, flags=C.QHCA_ETH_Q_F_GRO | (C.QHCA_ETH_Q_F_HDS if split else 0))
    m = q.adapter.m
    with asleep(m):
        for i in range(6):
            m.send_frame(segment(i, flags="PA" if i == 3 else "A"))
    whole = segment(0, 4, "PA")
    for wanted, count in (whole, 4), (segment(4, 2), 2):
        cqe, first, rest = q.receive()
        assert (cqe.gso_size, cqe.gso_segs) == (400, count)
        assert cqe.flags & C.QHCA_CQE_F_L3_OK and cqe.flags & C.QHCA_CQE_F_L4_OK
        assert first + rest == wanted
        assert cqe.header_len == (66 if split else 0)
    assert q.adapter.stat("ETH_RX_GRO_PACKETS") == 2
    assert q.adapter.stat("ETH_RX_GRO_FRAMES") == q.adapter.stat("ETH_RX_PACKETS") == 6


def test_merge_flows_in_turn(queue):
    """Frames of several flows that arrive in turn: one packet for each."""
    q = queue(flags=C.QHCA_ETH_Q_F_GRO)
    with asleep(q.adapter.m):
        for i in range(3):
            for port in (20, 30, 40):
                q.adapter.m.send_frame(segment(i, port=port))
    for port in (20, 30, 40):
        cqe, first, _ = q.receive()
        assert (cqe.gso_segs, first) == (3, segment(0, 3, port=port))
        assert not cqe.flags & C.QHCA_CQE_F_SAME_ID


def test_merge_waits_for_nothing(queue):
    """A frame is received even if none follows it."""
    q = queue(flags=C.QHCA_ETH_Q_F_GRO)
    for i in range(3):
        q.adapter.m.send_frame(segment(i))
        cqe, first, _ = q.receive()
        assert (cqe.gso_segs, first) == (0, segment(i))


# ---- RSS over them ----

def toeplitz(data: bytes) -> int:
    """XOR of the 32 bits of the key from the position of each bit that is set."""
    key, bits = int.from_bytes(KEY, "big"), 8 * len(data)
    value, hashed = int.from_bytes(data, "big"), 0
    for i in range(bits):
        if value >> (bits - 1 - i) & 1:
            hashed ^= key >> (320 - 32 - i) & 0xFFFFFFFF
    return hashed


def try_table(adapter, numbers, kind: int = C.QHCA_RQT_ETH_RQ):
    data = b"".join(n.to_bytes(4, "little") for n in numbers)
    return adapter.try_command(C.QHCA_CMD_CREATE_RQT, data=data, arg=kind)


def table(adapter, queues) -> int:
    cqe = try_table(adapter, [q.num for q in queues])
    assert cqe.status == C.QHCA_ST_OK
    return cqe.obj


def rss_context(rqtn: int, pd: int = 0, **fields):
    good = {"type": C.QHCA_QPT_RSS, "pd": pd, "rqtn": rqtn, "rx_hash_fields": RSS_FIELDS,
            "rx_hash_func": C.QHCA_HASH_TOEPLITZ,
            "rx_hash_key": array("qhca_qpc", "rx_hash_key", KEY)}
    return struct("qhca_qpc")(**{**good, **fields})


def rss(adapter, queues) -> tuple[int, int]:
    """(QPN of an RSS QP, RQTN of its table)."""
    rqtn = table(adapter, queues)
    pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
    return adapter.command(C.QHCA_CMD_CREATE_QP, data=rss_context(rqtn, pd)).obj, rqtn


def flow_of(sport: int) -> tuple[bytes, int]:
    """A UDP frame and its hash."""
    frame = bytes(ether() / IP(src="10.0.0.2", dst="10.0.0.1")
                  / UDP(sport=sport, dport=7) / Raw(bytes(30)))
    return frame, toeplitz(frame[26:38])


def test_bad_tables(adapter, eq):
    q = Queue(adapter, eq)
    for numbers, kind in (([q.num] * 3, C.QHCA_RQT_ETH_RQ), ([q.num], 2),
                          ([q.num], 1 << 40), ([q.num] * 1024, C.QHCA_RQT_ETH_RQ)):
        assert try_table(adapter, numbers, kind).status == C.QHCA_ST_BAD_PARAM
    for numbers, kind, at in (([q.num, 99], C.QHCA_RQT_ETH_RQ, 4),
                              ([q.num], C.QHCA_RQT_WQ, 0)):
        cqe = try_table(adapter, numbers, kind)
        assert (cqe.status, cqe.result) == (C.QHCA_ST_BAD_OBJ, at)


def test_busy(adapter, eq):
    """Port, QP, table and queue reference each other, in this order."""
    q = Queue(adapter, eq)
    qpn, rqtn = rss(adapter, [q])
    assert port(adapter, "ETH_QPN", eth_qpn=qpn).status == C.QHCA_ST_OK
    ends = ((C.QHCA_CMD_DESTROY_QP, qpn), (C.QHCA_CMD_DESTROY_RQT, rqtn),
            (C.QHCA_CMD_DESTROY_ETH_RQ, q.num))
    for opcode, number in ends:
        assert adapter.try_command(opcode, number).status == C.QHCA_ST_BUSY
    none = port(adapter, "ETH_QPN", eth_qpn=C.QHCA_ETH_QP_NONE)
    assert none.status == C.QHCA_ST_OK
    for opcode, number in ends:
        adapter.command(opcode, number)


def test_bad_port_qp(adapter, eq):
    """eth_qpn takes an RSS QP over Ethernet RQs only."""
    q = Queue(adapter, eq)
    qpn, _ = rss(adapter, [q])
    at = offset("qhca_port", "eth_qpn")
    for number in (0, 1, qpn + 1, 0xFFFFFFFE):
        cqe = port(adapter, "ETH_QPN", eth_qpn=number)
        assert (cqe.status, cqe.result) == (C.QHCA_ST_BAD_OBJ, at)
    seen = adapter.query(C.QHCA_CMD_QUERY_PORT, 0, "qhca_port")
    assert seen.eth_qpn == C.QHCA_ETH_QP_NONE
    assert port(adapter, "ETH_QPN", eth_qpn=qpn).status == C.QHCA_ST_OK
    assert adapter.query(C.QHCA_CMD_QUERY_PORT, 0, "qhca_port").eth_qpn == qpn


def test_spread(adapter, eq):
    """The entry at hash & (entries - 1) receives; eth_rqn does not."""
    queues = [Queue(adapter, eq, 512 * (i & 1)) for i in range(3)]
    spread = [queues[i] for i in (0, 1, 2, 1)]
    qpn, _ = rss(adapter, spread)
    port(adapter, "ETH_RQN", eth_rqn=queues[0].num)
    port(adapter, "ETH_QPN", eth_qpn=qpn)
    used = set()
    for sport in range(5000, 5008):
        frame, hashed = flow_of(sport)
        adapter.m.send_frame(frame)
        cqe, first, rest = spread[hashed & 3].receive()
        assert first + rest == frame
        assert (cqe.rss_hash, cqe.hash_type) == (hashed, C.QHCA_HASH_TYPE_L4)
        used.add(hashed & 3)
    assert used == {0, 1, 2, 3}
    assert not any(q.cq.peek() for q in queues)
    port(adapter, "ETH_QPN", eth_qpn=C.QHCA_ETH_QP_NONE)
    adapter.m.send_frame(flow_of(5000)[0])
    cqe = queues[0].receive()[0]
    assert (cqe.rss_hash, cqe.hash_type) == (0, C.QHCA_HASH_TYPE_NONE)


def test_other_table(adapter, eq):
    """MODIFY_QP exchanges table and hash, or neither."""
    a, b = Queue(adapter, eq), Queue(adapter, eq)
    qpn, _ = rss(adapter, [a])
    port(adapter, "ETH_QPN", eth_qpn=qpn)
    both = C.QHCA_QP_M_RQTN | C.QHCA_QP_M_RX_HASH
    other = table(adapter, [b, b])

    def modify(mask, rqtn=other, **fields):
        return adapter.try_command(C.QHCA_CMD_MODIFY_QP, qpn,
                                   rss_context(rqtn, **fields), mask=mask).status

    assert modify(both, rx_hash_func=9) == C.QHCA_ST_BAD_PARAM
    assert modify(both, rqtn=other + 1) == C.QHCA_ST_BAD_OBJ
    assert modify(both | C.QHCA_QP_M_STATE) == C.QHCA_ST_BAD_STATE
    frame, hashed = flow_of(5000)
    adapter.m.send_frame(frame)
    assert a.receive()[0].rss_hash == hashed
    fields = C.QHCA_HASH_SRC_IPV4 | C.QHCA_HASH_DST_IPV4
    assert modify(both, rx_hash_fields=fields) == C.QHCA_ST_OK
    adapter.m.send_frame(frame)
    cqe = b.receive()[0]
    assert (cqe.rss_hash, cqe.hash_type) == (toeplitz(frame[26:34]),
                                             C.QHCA_HASH_TYPE_L3)


def test_stopped_queue_in_a_table(adapter, eq):
    """A stopped queue keeps its entries; its frames are dropped, others are not."""
    queues = [Queue(adapter, eq), Queue(adapter, eq)]
    qpn, _ = rss(adapter, queues)
    port(adapter, "ETH_QPN", eth_qpn=qpn)
    flows = {}
    for sport in range(5000, 5016):
        frame, hashed = flow_of(sport)
        flows.setdefault(hashed & 1, frame)
    queues[0].modify("STATE", state=C.QHCA_WQS_RESET)
    adapter.m.send_frame(flows[0])
    adapter.m.send_frame(flows[1])
    assert queues[1].receive()[1] == flows[1]
    assert queues[0].query().dropped == 1
    queues[0].post()
    queues[0].modify("STATE", state=C.QHCA_WQS_RDY)
    adapter.m.send_frame(flows[0])
    assert queues[0].receive()[1] == flows[0]


def test_reset(adapter, eq):
    """A reset destroys queues and tables, and resets the port's eth_qpn."""
    q = Queue(adapter, eq, 512)
    qpn, rqtn = rss(adapter, [q])
    port(adapter, "ETH_RQN", eth_rqn=q.num)
    port(adapter, "ETH_QPN", eth_qpn=qpn)
    adapter.reg_write(C.QHCA_REG_CTRL, C.QHCA_CTRL_RESET)
    adapter.start_admin()
    seen = adapter.query(C.QHCA_CMD_QUERY_PORT, 0, "qhca_port")
    assert (seen.eth_rqn, seen.eth_qpn) == (C.QHCA_ETH_RQ_NONE, C.QHCA_ETH_QP_NONE)
    for opcode, number in ((C.QHCA_CMD_DESTROY_QP, qpn), (C.QHCA_CMD_DESTROY_RQT, rqtn),
                           (C.QHCA_CMD_DESTROY_ETH_RQ, q.num)):
        assert adapter.try_command(opcode, number).status == C.QHCA_ST_BAD_OBJ
    adapter.m.send_frame(bytes(tcp()))
    until(lambda: adapter.stat("ETH_RX_DROPPED") == 1, "the frame dropped")
    assert adapter.m.read_mem(q.data.mem, 16) == bytes(16)

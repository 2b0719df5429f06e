# SPDX-License-Identifier: GPL-2.0-or-later
"""The Ethernet function: frames out, frames in, filter, link."""

import pytest
from adapter import CQ, EQ, Adapter, direct
from layout import C, struct
from machine import Machine
from rdma import OUR_MAC, PEER_MAC, array, mac_bytes
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

REFUSED = pytest.mark.once("what is refused is decided by the engine, where nothing is observed")

MULTICAST = "01:00:5e:00:00:01"
POWER_PORT, SLEEP = 0x600, 1 << 13 | 1 << 10    # ACPI: suspend to RAM


class Ethernet:
    """One send queue and one receive queue with 16 buffers of 2 KiB."""

    def __init__(self, adapter):
        self.adapter, self.m = adapter, adapter.m
        self.eq = EQ(adapter)
        self.cq = CQ(adapter, self.eq)
        self.sq, self.rq = adapter.alloc(16 * 128), adapter.alloc(16 * 16)
        self.buffers, self.frame = adapter.alloc(16 * 2048), adapter.alloc(16384)
        self.dbrec = adapter.alloc(64)
        self.prod = 0
        qc = struct("qhca_eth_qc")
        self.sqn = adapter.command(C.QHCA_CMD_CREATE_ETH_SQ, data=qc(
            buf=direct(self.sq, 16 * 128), cqn=self.cq.num, shift=4, stride=7)).obj
        self.rqn = adapter.command(C.QHCA_CMD_CREATE_ETH_RQ, data=qc(
            buf=direct(self.rq, 16 * 16), cqn=self.cq.num, shift=4, stride=4,
            dbrec=self.dbrec)).obj
        for i in range(16):
            seg = struct("qhca_eth_seg")(addr=self.buffers + 2048 * i, len=2048)
            self.m.write_mem(self.rq + 16 * i, bytes(seg))
        self.m.store(self.dbrec, 16, 4)
        self.modify("ETH_RQN", eth_rqn=self.rqn)

    def modify(self, *names, **fields):
        mask = 0
        for name in names:
            mask |= getattr(C, f"QHCA_PORT_M_{name}")
        self.adapter.command(C.QHCA_CMD_MODIFY_PORT, data=struct("qhca_port")(**fields),
                             mask=mask)

    def send(self, frame: bytes, pieces: int = 1, flags: int = 0, **fields) -> None:
        self.m.write_mem(self.frame, frame)
        size = -(-len(frame) // pieces)
        wqe = bytes(struct("qhca_eth_wqe")(
            opcode=C.QHCA_WQE_ETH_SEND, flags=C.QHCA_WQE_F_SIGNALED | flags,
            num_sge=pieces, **fields))
        for at in range(0, len(frame), size):
            wqe += bytes(struct("qhca_eth_seg")(
                addr=self.frame + at, len=min(size, len(frame) - at)))
        self.m.write_mem(self.sq + 128 * (self.prod & 15), wqe)
        self.prod += 1
        self.adapter.ring(C.QHCA_DB_ETH_SQ, self.sqn, self.prod)

    def receive(self):
        """The next received frame: (completion, bytes)."""
        cqe = self.cq.take()
        assert cqe.opcode == C.QHCA_CQE_OP_ETH_RECV
        at = self.buffers + 2048 * (cqe.wqe_index & 15)
        return cqe, self.m.read_mem(at, min(cqe.byte_len, 2048 * cqe.num_wqe))


@pytest.fixture
def eth(adapter):
    return Ethernet(adapter)


def frame_to(mac: str, length: int = 100) -> bytes:
    return bytes(Ether(src=PEER_MAC, dst=mac, type=0x88B5)
                 / Raw(bytes(i & 0xFF for i in range(length))))


@pytest.mark.parametrize("length, pieces", [(60, 1), (61, 3), (1514, 1), (1514, 6),
                                            (9014, 5)])
def test_send(eth, length, pieces):
    frame = frame_to(PEER_MAC, length - 14)
    eth.send(frame, pieces)
    assert eth.m.receive_frame() == frame
    cqe = eth.cq.take()
    assert (cqe.status, cqe.opcode) == (C.QHCA_WC_SUCCESS, C.QHCA_CQE_OP_ETH_SEND)
    assert cqe.qpn == eth.sqn
    stats = eth.adapter.stats()
    assert stats[C.QHCA_STAT_ETH_TX_PACKETS] == 1
    assert stats[C.QHCA_STAT_ETH_TX_BYTES] == length


@pytest.mark.parametrize("proto", [TCP, UDP])
@pytest.mark.parametrize("length", [0, 1, 1000])
def test_checksum_offload(eth, proto, length):
    """The device completes the pseudo-header's sum; scapy computes the expected one."""
    whole = Ether(bytes(Ether(src=OUR_MAC, dst=PEER_MAC)
                        / IP(src="10.0.0.1", dst="10.0.0.2")
                        / proto(sport=1000, dport=2000)
                        / Raw((bytes(range(256)) * 4)[:length])))
    want = whole[proto].chksum
    offset = 16 if proto is TCP else 6
    raw = bytearray(bytes(whole))
    l4 = raw[34:]
    pseudo = raw[26:34] + bytes([0, raw[23]]) + len(l4).to_bytes(2, "big")
    total = sum(int.from_bytes(pseudo[i:i + 2], "big") for i in range(0, 12, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    raw[34 + offset:36 + offset] = total.to_bytes(2, "big")
    eth.send(bytes(raw), 3, C.QHCA_WQE_F_ETH_CSUM, csum_start=34, csum_offset=offset)
    assert Ether(eth.m.receive_frame())[proto].chksum == want


def test_vlan_insert(eth):
    frame = frame_to(PEER_MAC)
    eth.send(frame, 1, C.QHCA_WQE_F_ETH_VLAN, vlan=0x6123)
    got = Ether(eth.m.receive_frame())
    assert (got[Dot1Q].vlan, got[Dot1Q].prio) == (0x123, 3)
    assert bytes(got[Dot1Q].payload) == frame[14:]


@REFUSED
@pytest.mark.parametrize("fields", [
    {"num_sge": 0}, {"num_sge": 0xFFFF}, {"opcode": 0}, {"flags": 0xFF},
    {"flags": 0x11, "csum_start": 0xFFFF}, {"flags": 0x11, "csum_start": 34,
                                            "csum_offset": 0xFFFF},
])
def test_bad_wqe(eth, fields):
    """A bad WQE completes with an error; the next one is sent."""
    wqe = {"opcode": C.QHCA_WQE_ETH_SEND, "flags": C.QHCA_WQE_F_SIGNALED, "num_sge": 1}
    seg = struct("qhca_eth_seg")(addr=eth.frame, len=100)
    eth.m.write_mem(eth.sq, bytes(struct("qhca_eth_wqe")(**{**wqe, **fields}))
                    + bytes(seg))
    eth.prod = 1
    eth.adapter.ring(C.QHCA_DB_ETH_SQ, eth.sqn, 1)
    assert eth.cq.take().status != C.QHCA_WC_SUCCESS
    assert eth.m.no_frame()
    assert eth.adapter.stat("ETH_TX_ERRORS") == 1
    eth.send(frame_to(PEER_MAC))
    assert eth.m.receive_frame() == frame_to(PEER_MAC)


@REFUSED
@pytest.mark.parametrize("addr, length", [(0x800000000000, 100), (0xC0000000, 100),
                                          (0x100000, 0), (0x100000, 13),
                                          (0x100000, 9235), (0x100000, 0xFFFFFFFF)])
def test_bad_segment(eth, addr, length):
    wqe = struct("qhca_eth_wqe")(opcode=C.QHCA_WQE_ETH_SEND,
                                 flags=C.QHCA_WQE_F_SIGNALED, num_sge=1)
    seg = struct("qhca_eth_seg")(addr=addr, len=length)
    eth.m.write_mem(eth.sq, bytes(wqe) + bytes(seg))
    eth.adapter.ring(C.QHCA_DB_ETH_SQ, eth.sqn, 1)
    assert eth.cq.take().status != C.QHCA_WC_SUCCESS
    assert eth.m.no_frame()


@pytest.mark.parametrize("length", [60, 1514, 6014])
def test_receive(eth, length):
    """A frame lands in as many buffers as it needs."""
    frame = frame_to(OUR_MAC, length - 14)
    eth.m.send_frame(frame)
    cqe, data = eth.receive()
    assert data == frame and cqe.byte_len == length
    assert cqe.num_wqe == -(-length // 2048)
    assert cqe.vlan == C.QHCA_VLAN_NONE
    assert eth.adapter.stat("ETH_RX_PACKETS") == 1


@pytest.mark.parametrize("good", [True, False])
def test_receive_checksum(eth, good):
    frame = bytearray(bytes(Ether(src=PEER_MAC, dst=OUR_MAC)
                            / IP(src="10.0.0.2", dst="10.0.0.1")
                            / UDP(sport=5, dport=6) / Raw(b"x" * 51)))
    if not good:
        frame[60] ^= 1
    eth.m.send_frame(bytes(frame))
    cqe, data = eth.receive()
    assert data == frame
    assert bool(cqe.flags & C.QHCA_CQE_F_L4_OK) == good
    assert cqe.flags & C.QHCA_CQE_F_L3_OK
    part = data[14:] + b"\0" * (len(data) & 1)
    total = sum(int.from_bytes(part[i:i + 2], "little") for i in range(0, len(part), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert cqe.csum & 0xFFFF in (total, total ^ 0xFFFF if total in (0, 0xFFFF) else total)


def test_vlan_strip(eth):
    inner = frame_to(OUR_MAC)
    tagged = inner[:12] + bytes.fromhex("81006123") + inner[12:]
    eth.m.send_frame(tagged)
    cqe, data = eth.receive()
    assert cqe.flags & C.QHCA_CQE_F_VLAN and cqe.vlan == 0x6123
    assert data == inner


def test_filter(eth):
    """Our address and broadcast; multicast if requested; all if promiscuous."""
    stranger = "02:00:00:00:00:99"

    def taken(mac):
        before = eth.adapter.stat("ETH_RX_FILTERED")
        eth.m.send_frame(frame_to(mac))
        eth.m.send_frame(frame_to(OUR_MAC, 64))      # behind it
        cqe, data = eth.receive()
        if len(data) == 78:
            assert eth.adapter.stat("ETH_RX_FILTERED") == before + 1
            return False
        eth.receive()
        eth.m.store(eth.dbrec, eth.cq.cons + 16, 4)
        return True

    eth.m.store(eth.dbrec, 16, 4)
    assert taken("ff:ff:ff:ff:ff:ff")
    assert not taken(stranger)
    assert not taken(MULTICAST)
    entry = struct("qhca_mac")(mac=array("qhca_mac", "mac", mac_bytes(MULTICAST)))
    eth.adapter.command(C.QHCA_CMD_SET_MC_LIST, data=entry)
    assert taken(MULTICAST) and not taken("01:00:5e:00:00:02")
    eth.adapter.command(C.QHCA_CMD_SET_MC_LIST)
    assert not taken(MULTICAST)
    eth.modify("ALLMULTI", allmulti=1)
    assert taken(MULTICAST) and not taken(stranger)
    eth.modify("PROMISC", promisc=1)
    assert taken(stranger)


def test_no_buffer(eth):
    """Without buffers frames are dropped and counted; later ones are taken."""
    for i in range(20):
        eth.m.send_frame(frame_to(OUR_MAC, 60 + i))
    for i in range(16):
        assert eth.receive()[0].byte_len == 74 + i
    assert eth.cq.peek() is None
    assert eth.adapter.stat("ETH_RX_DROPPED") == 4
    eth.m.store(eth.dbrec, 17, 4)
    eth.m.send_frame(frame_to(OUR_MAC, 99))
    assert eth.receive()[0].byte_len == 113


def test_mtu(eth):
    eth.modify("MTU", mtu=1500)
    eth.m.send_frame(frame_to(OUR_MAC, 1600))
    eth.m.send_frame(frame_to(OUR_MAC, 1500))
    assert eth.receive()[0].byte_len == 1514
    assert eth.adapter.stat("ETH_RX_ERRORS") == 1


@REFUSED
@pytest.mark.parametrize("index", [17, 0x80000000, 0xFFFFFFFF])
def test_doorbell_too_far(eth, index):
    eth.adapter.ring(C.QHCA_DB_ETH_SQ, eth.sqn, index)
    assert eth.adapter.stat("DB_BAD_INDEX") == 1
    assert eth.m.no_frame()


@REFUSED
@pytest.mark.parametrize("index", [17, 1000, 0x80000000])
def test_receive_record_too_far(eth, index):
    """A record with more buffers than the ring holds is harmless."""
    eth.m.store(eth.dbrec, index, 4)
    for _ in range(40):
        eth.m.send_frame(frame_to(OUR_MAC))
    eth.m.qmp("query-status")
    eth.adapter.command(C.QHCA_CMD_NOP)


def test_link(eth):
    """QMP set_link: status bit, port event, and no frame passes."""
    eth.m.qmp("set_link", name="q", up=False)
    event = eth.eq.take()
    assert (event.type, event.arg) == (C.QHCA_EV_PORT, 0)
    assert not eth.adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK
    eth.m.send_frame(frame_to(OUR_MAC))
    eth.send(frame_to(PEER_MAC))
    assert eth.m.no_frame()
    eth.m.qmp("set_link", name="q", up=True)
    event = eth.eq.take()
    assert (event.type, event.arg) == (C.QHCA_EV_PORT, 1)
    assert eth.adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK
    eth.send(frame_to(PEER_MAC))
    assert eth.m.receive_frame() == frame_to(PEER_MAC)


def test_link_of_a_stopped_machine(eth):
    """Its memory does not change: the event comes when it runs."""
    def seen():
        return eth.m.read_mem(eth.eq.addr, 64 * 16), eth.m.read_mem(eth.adapter.messages, 16)

    eth.m.qmp("stop")
    before = seen()
    eth.m.qmp("set_link", name="q", up=False)
    eth.m.qmp("set_link", name="q", up=True)
    eth.m.qmp("set_link", name="q", up=False)
    assert seen() == before
    eth.m.qmp("cont")
    event = eth.eq.take()
    assert (event.type, event.arg) == (C.QHCA_EV_PORT, 0)
    assert eth.eq.peek() is None
    assert not eth.adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK


def test_link_of_a_suspended_machine(eth):
    """Waking up is no start of the machine to QEMU, but what waited for one is done."""
    m = eth.m
    m.out32(0xCF8, 0x8000F840)          # the place of the power management registers
    m.out32(0xCFC, POWER_PORT | 1)
    m.out32(0xCF8, 0x8000F844)
    m.out32(0xCFC, 0x80)
    m.command("outw", hex(POWER_PORT + 4), hex(SLEEP))
    m.wait_event("SUSPEND")
    m.qmp("set_link", name="q", up=False)
    m.qmp("system_wakeup")
    m.wait_event("WAKEUP")
    eth.adapter.enable_pci()            # it was reset
    assert not eth.adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK


def test_link_of_the_backend(eth):
    """The other end of the wire going down is detected, too."""
    eth.m.qmp("set_link", name="wire", up=False)
    assert eth.eq.take().arg == 0
    eth.m.qmp("set_link", name="wire", up=True)
    assert eth.eq.take().arg == 1


def test_no_wire():
    """Without a netdev the link is down and sending is harmless."""
    with Machine(wire=False) as m:
        adapter = Adapter(m)
        adapter.start()
        assert not adapter.reg(C.QHCA_REG_STATUS) & C.QHCA_STATUS_LINK
        eth = Ethernet(adapter)
        eth.send(frame_to(PEER_MAC))
        adapter.command(C.QHCA_CMD_NOP)


def test_answer_from_within_send():
    """
    The user-mode backend answers an ARP request before sending it returns: the response must wait
    until the engine can take it, and not be lost.
    """
    with Machine("-netdev", "user,id=wire", wire=False,
                 device="qhca,id=q,addr=4.0,mac=02:00:00:00:00:01,netdev=wire") as m:
        adapter = Adapter(m)
        adapter.start()
        eth = Ethernet(adapter)
        for _ in range(40):
            eth.send(bytes(Ether(src=OUR_MAC, dst="ff:ff:ff:ff:ff:ff")
                           / ARP(hwsrc=OUR_MAC, psrc="10.0.2.15", pdst="10.0.2.2")))
            done = {}
            while len(done) < 2:
                cqe = eth.cq.take()
                done[cqe.opcode] = cqe
            assert done[C.QHCA_CQE_OP_ETH_SEND].status == C.QHCA_WC_SUCCESS
            cqe = done[C.QHCA_CQE_OP_ETH_RECV]
            answer = Ether(m.read_mem(eth.buffers + 2048 * (cqe.wqe_index & 15),
                                      cqe.byte_len))
            assert answer[ARP].psrc == "10.0.2.2" and answer[ARP].op == 2
            m.store(eth.dbrec, cqe.wqe_index + 17, 4)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Queue pairs and memory regions on an Adapter, and the peer on the wire.

scapy builds and checks the peer's packets, so the wire format is not verified by the code that
produced it.
"""

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from adapter import CQ, EQ, Adapter, direct
from layout import C, struct

OUR_MAC, PEER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
OUR_IP, PEER_IP = "10.99.0.1", "10.99.0.2"
PEER_QPN = 0x123456
SEND_ONLY, ACKNOWLEDGE = 0x04, 0x11
M = "QHCA_QP_M_"


def mac_bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def gid_bytes(ip: str) -> bytes:
    """The GID of an IPv4 address: ::ffff:a.b.c.d."""
    return bytes(10) + b"\xff\xff" + bytes(map(int, ip.split(".")))


def array(kind: str, field: str, data: bytes):
    """@data as the ctypes array of field @field of @kind."""
    return dict(struct(kind)._fields_)[field](*data)


def set_gid(adapter: Adapter, index: int = 0, ip: str = OUR_IP,
            mac: str = OUR_MAC) -> None:
    gid = struct("qhca_gid")(
        gid=array("qhca_gid", "gid", gid_bytes(ip)),
        mac=array("qhca_gid", "mac", mac_bytes(mac)),
        vlan=C.QHCA_VLAN_NONE, type=C.QHCA_GID_ROCE_V2)
    adapter.command(C.QHCA_CMD_SET_GID, index, gid)


def modify_mask(*names: str) -> int:
    mask = 0
    for name in names:
        mask |= getattr(C, M + name)
    return mask


class MR:
    """A memory region over one block of guest memory."""

    def __init__(self, adapter: Adapter, pd: int, size: int = 4096,
                 access: int = C.QHCA_ACCESS_LOCAL_WRITE):
        self.adapter, self.size = adapter, size
        self.addr = adapter.alloc(size)
        self.iova = 0x7F0000000000 | self.addr
        mpt = struct("qhca_mpt")(buf=direct(self.addr, size), iova=self.iova,
                                 len=size, key=0x5A, pd=pd, access=access)
        self.key = adapter.command(C.QHCA_CMD_CREATE_MR, data=mpt).obj

    def fill(self, data: bytes, at: int = 0) -> None:
        self.adapter.m.write_mem(self.addr + at, data)

    def data(self, length: int, at: int = 0) -> bytes:
        return self.adapter.m.read_mem(self.addr + at, length)


class QP:
    """An RC queue pair; rings of 16 WQEs of 64 (SQ) and 32 (RQ) bytes."""

    SHIFT, SQ_STRIDE, RQ_STRIDE = 4, 6, 5

    def __init__(self, adapter: Adapter, cq: CQ, pd: int, uar: int = 0, **fields):
        self.adapter, self.cq, self.uar = adapter, cq, uar
        self.sq = adapter.alloc(1 << self.SHIFT + self.SQ_STRIDE)
        self.rq = adapter.alloc(1 << self.SHIFT + self.RQ_STRIDE)
        self.dbrec = adapter.alloc(64)
        self.sq_prod = self.rq_prod = 0
        fields.setdefault("sq", direct(self.sq, 1 << self.SHIFT + self.SQ_STRIDE))
        fields.setdefault("rq", direct(self.rq, 1 << self.SHIFT + self.RQ_STRIDE))
        fields.setdefault("rq_dbrec", self.dbrec)
        fields.setdefault("type", C.QHCA_QPT_RC)
        fields.setdefault("sq_shift", self.SHIFT)
        fields.setdefault("sq_stride", self.SQ_STRIDE)
        qpc = struct("qhca_qpc")(
            pd=pd, uar=uar, send_cqn=cq.num, recv_cqn=cq.num, rq_shift=self.SHIFT,
            rq_stride=self.RQ_STRIDE, **fields)
        self.num = adapter.command(C.QHCA_CMD_CREATE_QP, data=qpc).obj

    def modify(self, *names: str, **fields):
        qpc = struct("qhca_qpc")(**fields)
        self.adapter.command(C.QHCA_CMD_MODIFY_QP, self.num, qpc,
                             mask=modify_mask(*names))

    def query(self):
        return self.adapter.query(C.QHCA_CMD_QUERY_QP, self.num, "qhca_qpc")

    def to_init(self, access: int = 0) -> None:
        self.modify("STATE", "PKEY_INDEX", "ACCESS", state=C.QHCA_QPS_INIT,
                    access=access)

    def to_rtr(self, psn: int = 100, dest_qpn: int = PEER_QPN, ip: str = PEER_IP,
               mac: str = PEER_MAC, mtu: int = 3) -> None:
        av = struct("qhca_av")(dgid=array("qhca_av", "dgid", gid_bytes(ip)),
                               dmac=array("qhca_av", "dmac", mac_bytes(mac)),
                               sgid_index=0, hop_limit=64)
        self.modify("STATE", "AV", "PATH_MTU", "DEST_QPN", "RQ_PSN",
                    "MAX_DEST_RD_ATOMIC", "MIN_RNR_TIMER",
                    state=C.QHCA_QPS_RTR, av=av, path_mtu=mtu, dest_qpn=dest_qpn,
                    rq_psn=psn, max_dest_rd_atomic=4, min_rnr_timer=12)

    def to_rts(self, psn: int = 200, timeout: int = 14, retry_cnt: int = 7) -> None:
        self.modify("STATE", "SQ_PSN", "TIMEOUT", "RETRY_CNT", "RNR_RETRY",
                    "MAX_RD_ATOMIC", state=C.QHCA_QPS_RTS, sq_psn=psn,
                    timeout=timeout, retry_cnt=retry_cnt, rnr_retry=7,
                    max_rd_atomic=4)

    def write_send(self, sge: tuple[int, int, int], wr_id: int = 0,
                   opcode: int = C.QHCA_WQE_SEND, flags: int = C.QHCA_WQE_F_SIGNALED,
                   remote: tuple[int, int] = (0, 0), **ctrl) -> None:
        """Write a send WQE with one SGE (addr, len, key), @remote (addr, key); no doorbell."""
        wqe = struct("qhca_sq_wqe")(ctrl=struct("qhca_wqe_ctrl")(
            opcode=opcode, flags=flags, num_sge=1, wr_id=wr_id, **ctrl))
        wqe.remote.addr, wqe.remote.rkey = remote
        data = bytes(wqe) + bytes(struct("qhca_sge")(*sge))
        slot = self.sq_prod & ((1 << self.SHIFT) - 1)
        self.adapter.m.write_mem(self.sq + (slot << self.SQ_STRIDE), data)
        self.sq_prod += 1

    def ring_sq(self) -> None:
        self.adapter.ring(C.QHCA_DB_SQ, self.num, self.sq_prod, self.uar)

    def post_send(self, *args, **kwargs) -> None:
        self.write_send(*args, **kwargs)
        self.ring_sq()

    def post_recv(self, sge: tuple[int, int, int], wr_id: int = 0) -> None:
        data = bytes(struct("qhca_rq_wqe")(wr_id=wr_id, num_sge=1))
        data += bytes(struct("qhca_sge")(*sge))
        slot = self.rq_prod & ((1 << self.SHIFT) - 1)
        self.adapter.m.write_mem(self.rq + (slot << self.RQ_STRIDE), data)
        self.rq_prod += 1
        self.adapter.m.store(self.dbrec, self.rq_prod, 4)


class Setup:
    """An adapter with EQ, CQ, PD, GID and one QP, in state @state."""

    def __init__(self, adapter: Adapter, state: str = "rts", **qp):
        self.adapter = adapter
        self.eq = EQ(adapter, vector=1)
        self.cq = CQ(adapter, self.eq)
        self.pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
        set_gid(adapter)
        self.mr = MR(adapter, self.pd)
        self.qp = QP(adapter, self.cq, self.pd, **qp)
        steps = {"init": self.qp.to_init, "rtr": self.qp.to_rtr, "rts": self.qp.to_rts}
        if state != "reset":
            for name, step in steps.items():
                step()
                if name == state:
                    break

    def sge(self, length: int, at: int = 0) -> tuple[int, int, int]:
        return self.mr.iova + at, length, self.mr.key


def parse(frame: bytes) -> Ether:
    """Decode a RoCEv2 frame and check its ICRC by scapy's own sum."""
    packet = Ether(frame)
    bth = packet[BTH]
    assert packet[UDP].dport == C.QHCA_ROCE_UDP_PORT
    end = 14 + packet[IP].len           # the frame may be padded at its end
    want = bth.compute_icrc(frame[14 + 28:end])
    assert frame[end - 4:end] == want, "ICRC is wrong"
    return packet


def packet(qpn: int, opcode: int, psn: int, payload: bytes = b"", **bth) -> bytes:
    """A RoCEv2 frame from the peer, with a correct ICRC."""
    pad = -len(payload) % 4
    return bytes(
        Ether(src=PEER_MAC, dst=OUR_MAC) / IP(src=PEER_IP, dst=OUR_IP, flags="DF")
        / UDP(sport=0xC123, dport=C.QHCA_ROCE_UDP_PORT, chksum=0)
        / BTH(opcode=opcode, dqpn=qpn, psn=psn, padcount=pad, **bth)
        / Raw(payload + bytes(pad)))


def ack(qpn: int, psn: int, syndrome: int = 0x1F, msn: int = 1) -> bytes:
    """An acknowledgment from the peer."""
    return packet(qpn, ACKNOWLEDGE, psn, bytes([syndrome]) + msn.to_bytes(3, "big"))

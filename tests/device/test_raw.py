# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw packet QPs, flow steering and multicast groups on the bus and the wire."""

import pytest
from layout import C, struct
from rdma import (BTH, OUR_MAC, PEER_IP, PEER_MAC, QP, Setup, array, gid_bytes,
                  mac_bytes)
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from test_ethernet import Ethernet

UD_SEND_ONLY = 0x64
QKEY = 0x11111111


@pytest.fixture
def setup(adapter):
    return Setup(adapter, "reset", type=C.QHCA_QPT_RAW)


def to_rts(qp: QP) -> None:
    for state in (C.QHCA_QPS_INIT, C.QHCA_QPS_RTR, C.QHCA_QPS_RTS):
        qp.modify("STATE", state=state)


def flow(adapter, qpn: int, value: dict, mask: dict, **fields) -> int:
    match = struct("qhca_flow_match")
    data = struct("qhca_flow")(qpn=qpn, value=match(**value), mask=match(**mask), **fields)
    return adapter.command(C.QHCA_CMD_CREATE_FLOW, data=data).obj


@pytest.mark.parametrize("proto", [TCP, UDP])
def test_send_with_checksums(setup, proto):
    """The device computes all checksums; scapy verifies them."""
    to_rts(setup.qp)
    frame = Ether(bytes(Ether(src=OUR_MAC, dst=PEER_MAC)
                        / IP(src="10.0.0.1", dst="10.0.0.2")
                        / proto(sport=1000, dport=2000) / Raw(bytes(range(101)))))
    spoilt = frame.copy()
    spoilt[IP].chksum, spoilt[proto].chksum = 0x1234, 0x4321
    setup.mr.fill(bytes(spoilt))
    setup.qp.post_send(setup.sge(len(frame)), opcode=C.QHCA_WQE_RAW_SEND,
                       flags=C.QHCA_WQE_F_SIGNALED | C.QHCA_WQE_F_ETH_CSUM)
    assert setup.adapter.m.receive_frame() == bytes(frame)
    assert setup.cq.take().status == C.QHCA_WC_SUCCESS


def test_steering(setup):
    """A rule takes its frames; the Ethernet function gets the others."""
    adapter, eth = setup.adapter, Ethernet(setup.adapter)
    to_rts(setup.qp)

    def frame(port):
        return bytes(Ether(src=PEER_MAC, dst=OUR_MAC) / IP(src="10.0.0.1", dst="10.0.0.2")
                     / UDP(sport=5, dport=port) / Raw(b"steered"))

    port = {"dst_port": 7777, "l4": 17}
    rule = flow(adapter, setup.qp.num, port, {"dst_port": 0xFFFF, "l4": 0xFF}, tag=99)
    setup.qp.post_recv(setup.sge(2048), wr_id=3)
    adapter.m.send_frame(frame(7777))
    cqe = setup.cq.take()
    assert (cqe.opcode, cqe.status, cqe.wr_id) == (C.QHCA_CQE_OP_RAW_RECV, 0, 3)
    assert cqe.src_qpn == 99
    assert cqe.flags & C.QHCA_CQE_F_L3_OK and cqe.flags & C.QHCA_CQE_F_L4_OK
    assert setup.mr.data(cqe.byte_len)[:len(frame(7777))] == frame(7777)
    adapter.m.send_frame(frame(7778))
    assert eth.receive()[1][:len(frame(7778))] == frame(7778)
    adapter.command(C.QHCA_CMD_DESTROY_FLOW, rule)
    adapter.m.send_frame(frame(7777))
    assert eth.receive()[1][:len(frame(7777))] == frame(7777)


def test_group(adapter):
    """A datagram to a group, made by scapy, for the UD QP that is attached."""
    setup = Setup(adapter, "reset", type=C.QHCA_QPT_UD, sq_stride=7, sq_shift=3)
    qp, group = setup.qp, "239.1.2.3"
    qp.modify("STATE", "PKEY_INDEX", "QKEY", state=C.QHCA_QPS_INIT, qkey=QKEY)
    qp.modify("STATE", state=C.QHCA_QPS_RTR)
    mcg = struct("qhca_mcg")(mgid=array("qhca_mcg", "mgid", gid_bytes(group)))

    def arrive():
        adapter.m.send_frame(bytes(
            Ether(src=PEER_MAC, dst="01:00:5e:01:02:03")
            / IP(src=PEER_IP, dst=group, flags="DF")
            / UDP(sport=0xC123, dport=C.QHCA_ROCE_UDP_PORT, chksum=0)
            / BTH(opcode=UD_SEND_ONLY, dqpn=C.QHCA_QPN_MULTICAST, psn=1)
            / Raw(QKEY.to_bytes(4, "big") + (0x77).to_bytes(4, "big") + b"to group")))

    qp.post_recv(setup.sge(100), wr_id=1)
    adapter.command(C.QHCA_CMD_ATTACH_MC, qp.num, mcg)
    arrive()
    cqe = setup.cq.take()
    assert (cqe.status, cqe.wr_id, cqe.src_qpn, cqe.byte_len) == (0, 1, 0x77, 48)
    assert bytes(cqe.smac) == mac_bytes(PEER_MAC)
    assert setup.mr.data(8, 40) == b"to group"
    adapter.command(C.QHCA_CMD_DETACH_MC, qp.num, mcg)
    before = adapter.stats()[C.QHCA_STAT_ROCE_RX_PACKETS]
    arrive()
    # a command behind it: the frame has been dealt with
    assert adapter.stats()[C.QHCA_STAT_ROCE_RX_PACKETS] == before

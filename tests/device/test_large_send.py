# SPDX-License-Identifier: GPL-2.0-or-later
"""Large sends in tunnels: the frames equal those that scapy builds for each piece."""

import itertools

import pytest
from adapter import Adapter
from layout import C
from rdma import OUR_MAC, PEER_MAC
from scapy.contrib.geneve import GENEVE
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw
from test_ethernet import Ethernet

pytestmark = pytest.mark.once("test_ethernet sends in both builds; the cuts are the engine's")

MSS = 100
PAYLOAD = bytes(i * 7 & 0xFF for i in range(3 * MSS + 17))

INNER_ETHER = {"src": "02:00:00:00:00:07", "dst": "02:00:00:00:00:08"}


@pytest.fixture
def eth(adapter: Adapter) -> Ethernet:
    return Ethernet(adapter)


def outer_ip(version: int, number: int) -> Packet:
    if version == 4:
        return IP(src="10.0.0.1", dst="10.0.0.2", id=0xFFFE + number & 0xFFFF, flags="DF", ttl=9)
    return IPv6(src="fd00::1", dst="fd00::2", tc=3, fl=0x12345)


# The bytes between the outer and the inner IP header.
TUNNELS = {
    "vxlan": lambda: UDP(sport=50000, dport=4789, chksum=0) / VXLAN(vni=77) / Ether(**INNER_ETHER),
    "vxlan_csum": lambda: UDP(sport=50000, dport=4789) / VXLAN(vni=77) / Ether(**INNER_ETHER),
    "vxlan_vlan": lambda: UDP(sport=50000, dport=4789) / VXLAN(vni=77)
    / Ether(**INNER_ETHER) / Dot1Q(vlan=5),
    "geneve": lambda: UDP(sport=50000, dport=6081) / GENEVE(vni=77) / Ether(**INNER_ETHER),
    "gre": lambda: GRE(),
    "gre_key": lambda: GRE(key_present=1, key=0x1234),
    "gretap": lambda: GRE() / Ether(**INNER_ETHER),
    "ip": lambda: None,
}


def frame(tunnel: str, outer: int, inner: int, proto: type, number: int) -> Packet:
    """Frame NUMBER of the large packet; scapy computes everything in it."""
    first, last = number == 0, (number + 1) * MSS >= len(PAYLOAD)
    packet = Ether(src=OUR_MAC, dst=PEER_MAC) / outer_ip(outer, number)
    if tunnel == "ip" and outer == 6:  # as Linux does
        packet /= IPv6ExtHdrDestOpt(options=[])
    between = TUNNELS[tunnel]()
    if between:
        packet /= between
    if inner == 4:
        packet /= IP(src="192.0.2.1", dst="192.0.2.2", id=0x1000 + number)
    else:
        packet /= IPv6(src="2001:db8::1", dst="2001:db8::2")
    if proto is TCP:
        flags = "A" + ("C" if first else "") + ("PF" if last else "")
        packet /= TCP(sport=1000, dport=2000, seq=0xFFFFFF80 + number * MSS & 0xFFFFFFFF,
                      flags=flags, options=[("Timestamp", (1, 2))])
    else:
        packet /= UDP(sport=1000, dport=2000)
    return packet / Raw(PAYLOAD[number * MSS:(number + 1) * MSS])


def handed_over(tunnel: str, outer: int, inner: int, proto: type) -> tuple[bytes, int, int]:
    """Headers as software has them, hdr_len and inner_l3."""
    packet = frame(tunnel, outer, inner, proto, 0)
    packet[Raw].load = b""
    packet = Ether(bytes(packet))
    layers = [packet.getlayer(i) for i in range(20) if packet.getlayer(i)]
    ips = [layer for layer in layers if isinstance(layer, (IP, IPv6))]
    if proto is TCP:
        packet[TCP].flags = "APFC"
        packet[TCP].chksum = 0x1111
    else:
        layers[-1].chksum = 0x1111
        layers[-1].len = 0x2222
    for layer in ips:
        if isinstance(layer, IP):
            layer.len, layer.chksum = 0x3333, 0x4444
        else:
            layer.plen = 0x5555
    head = bytes(packet)
    inner_l3 = len(head) - len(bytes(ips[1]))
    if TUNNELS[tunnel]() and UDP in TUNNELS[tunnel]() and tunnel != "vxlan":
        at = 14 + (20 if outer == 4 else 40) + 6
        head = head[:at] + b"\x00\x01" + head[at + 2:]  # not 0: it is wanted
    return head, len(head), inner_l3


@pytest.mark.parametrize("outer", [4, 6], ids=["out4", "out6"])
@pytest.mark.parametrize("tunnel", TUNNELS)
def test_tunnel(eth, tunnel, outer):
    sent = 0
    for count, (inner, proto) in enumerate(itertools.product((4, 6), (TCP, UDP)), start=1):
        head, hdr_len, inner_l3 = handed_over(tunnel, outer, inner, proto)
        eth.send(head + PAYLOAD, 3, C.QHCA_WQE_F_ETH_LSO, mss=MSS, hdr_len=hdr_len,
                 inner_l3=inner_l3)
        for number in range(4):
            want = bytes(frame(tunnel, outer, inner, proto, number))
            assert eth.m.receive_frame().hex() == want.hex(), (inner, proto, number)
        assert eth.m.no_frame()
        assert eth.cq.take().status == C.QHCA_WC_SUCCESS
        sent += 4 * hdr_len + len(PAYLOAD)
        stats = eth.adapter.stats()
        assert stats[C.QHCA_STAT_ETH_TX_PACKETS] == 4 * count
        assert stats[C.QHCA_STAT_ETH_TX_BYTES] == sent


@pytest.mark.parametrize("inner_l3", [1, 14, 33, 41, 49, 51, 70, 0xFFFF])
def test_inner_header_elsewhere(eth, inner_l3):
    """Refused, and the next one is sent."""
    head, hdr_len, right = handed_over("vxlan", 4, 4, UDP)
    assert right == 64
    eth.send(head + PAYLOAD, 1, C.QHCA_WQE_F_ETH_LSO, mss=MSS, hdr_len=hdr_len,
             inner_l3=inner_l3)
    cqe = eth.cq.take()
    assert (cqe.status, cqe.syndrome) == (C.QHCA_WC_LOC_QP_OP_ERR, C.QHCA_SYN_WQE_LENGTH)
    assert eth.m.no_frame()
    eth.send(head + PAYLOAD, 1, C.QHCA_WQE_F_ETH_LSO, mss=MSS, hdr_len=hdr_len,
             inner_l3=right)
    assert eth.cq.take().status == C.QHCA_WC_SUCCESS

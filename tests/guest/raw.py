# SPDX-License-Identifier: GPL-2.0-or-later
"""
Raw packet QPs, in a guest, by pyverbs.  One JSON object on standard output.

    raw.py receive DEVICE PORT COUNT a rule for that UDP port; "ready" when it exists raw.py send
    DEVICE SMAC DMAC PORT COUNT raw.py sniff DEVICE COUNT RoCE packets the port sends and receives
    raw.py refused DEVICE what must be refused, and how raw.py create DEVICE just make a QP
"""

import json
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.spec import EthSpec, Ipv4ExtSpec, TcpUdpSpec
from pyverbs.wr import SGE, RecvWR, SendWR

SLOT = 2048


class Side:
    def __init__(self, name, depth):
        self.ctx = Context(name=name)
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 2 * depth)
        self.mr = MR(self.pd, SLOT * depth, e.IBV_ACCESS_LOCAL_WRITE)
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth)
        init = QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=self.cq, rcq=self.cq, cap=cap)
        self.qp = QP(self.pd, init, QPAttr(port_num=1))

    def post(self, slot):
        sge = SGE(self.mr.buf + slot * SLOT, SLOT, self.mr.lkey)
        self.qp.post_recv(RecvWR(wr_id=slot, num_sge=1, sg=[sge]))

    def poll(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            n, wcs = self.cq.poll()
            if n:
                return wcs[0]
            time.sleep(0.002)
        return None


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def frame(smac, dmac, port, n):
    payload = struct.pack("!I", n) * 16
    udp = struct.pack("!HHHH", 5000 + n, port, 8 + len(payload), 0) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), n, 0, 64, 17, 0,
                     b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02")
    return mac(dmac) + mac(smac) + b"\x08\x00" + ip + udp


def receive(name, port, count):
    side = Side(name, 64)
    for slot in range(count):
        side.post(slot)
    attr = FlowAttr(num_of_specs=1, port=1)
    attr.specs.append(TcpUdpSpec(e.IBV_FLOW_SPEC_UDP, dst_port=port))
    with Flow(side.qp, attr):
        print("ready", flush=True)
        got, checked = [], 0
        while len(got) < count:
            wc = side.poll(60)
            if wc is None or wc.status:
                break
            data = side.mr.read(wc.byte_len, wc.wr_id * SLOT)
            got.append(struct.unpack("!I", data[42:46])[0])
            checked += bool(wc.wc_flags & e.IBV_WC_IP_CSUM_OK)
        print(json.dumps({"got": got, "checked": checked}))


def sniff(name, count):
    side = Side(name, 64)
    for slot in range(64):
        side.post(slot)
    with Flow(side.qp, FlowAttr(num_of_specs=0, port=1, flow_type=e.IBV_FLOW_ATTR_SNIFFER)):
        print("ready", flush=True)
        seen = {}
        while sum(seen.values()) < count:
            wc = side.poll(60)
            if wc is None or wc.status:
                break
            data = side.mr.read(wc.byte_len, wc.wr_id * SLOT)
            if data[12:14] == b"\x08\x00" and data[36:38] == struct.pack("!H", 4791):
                source = ".".join(map(str, data[26:30]))
                seen[source] = seen.get(source, 0) + 1
            side.post(wc.wr_id)
        print(json.dumps(seen))


def send(name, smac, dmac, port, count):
    side = Side(name, 64)
    sent = 0
    for n in range(count):
        data = frame(smac, dmac, port, n)
        side.mr.write(data, len(data))
        wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1,
                    send_flags=e.IBV_SEND_SIGNALED | e.IBV_SEND_IP_CSUM,
                    sg=[SGE(side.mr.buf, len(data), side.mr.lkey)])
        side.qp.post_send(wr)
        wc = side.poll(10)
        sent += wc is not None and wc.status == e.IBV_WC_SUCCESS
    print(json.dumps({"sent": sent}))


def error_of(action):
    try:
        action()
    except PyverbsRDMAError as error:
        return error.error_code
    return 0


def refused(name):
    side = Side(name, 8)

    def flow(specs, **kwargs):
        attr = FlowAttr(num_of_specs=len(specs), port=kwargs.pop("port", 1), **kwargs)
        attr.specs.extend(specs)
        Flow(side.qp, attr).close()

    eth = EthSpec(dst_mac="02:00:00:00:00:77")
    ip = Ipv4ExtSpec(dst_ip="10.0.0.1")
    print(json.dumps({
        "good": error_of(lambda: flow([eth, ip])),
        "twice": error_of(lambda: flow([ip, ip])),
        "egress": error_of(lambda: flow([eth], flags=e.IBV_FLOW_ATTR_FLAGS_EGRESS)),
        "no port": error_of(lambda: flow([eth], port=2)),
        "default with headers": error_of(
            lambda: flow([eth], flow_type=e.IBV_FLOW_ATTR_ALL_DEFAULT)),
        "default": error_of(lambda: flow([], flow_type=e.IBV_FLOW_ATTR_ALL_DEFAULT)),
        "sniffer": error_of(lambda: flow([], flow_type=e.IBV_FLOW_ATTR_SNIFFER)),
    }))


def create(name):
    print(json.dumps({"errno": error_of(lambda: Side(name, 8))}))


if __name__ == "__main__":
    command, device, *rest = sys.argv[1:]
    if command == "receive":
        receive(device, *map(int, rest))
    elif command == "send":
        send(device, *rest[:2], *map(int, rest[2:]))
    elif command == "sniff":
        sniff(device, int(rest[0]))
    elif command == "refused":
        refused(device)
    else:
        create(device)

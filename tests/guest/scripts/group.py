# SPDX-License-Identifier: GPL-2.0-or-later
"""Send datagrams to a multicast group of rdma_cm's, and wait until they have been sent.

Run in a guest: python3 group.py GROUP COUNT
"""

import ipaddress
import os
import sys

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.qp import QPAttr
from pyverbs.wr import SendWR

import rc
from rc import CQ, LOCAL, OK, PD, QP, SGE, QPCap, QPInitAttr, keep, memory

QKEY = 0x01234567               # RDMA_UDP_QKEY, of all groups of rdma_cm
EVERYBODY = 0xFFFFFF
SIZE = 100


def main(group, count):
    ctx = rc.context()
    pd = keep(PD(ctx))
    cq = keep(CQ(ctx, count))
    cap = QPCap(max_send_wr=count, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
    attr = QPAttr(port_num=rc.PORT)
    attr.qkey = QKEY
    qp = keep(QP(pd, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=cq, rcq=cq, cap=cap), attr))
    gid = GID(ipaddress.ip_address(f"::ffff:{group}").packed.hex(":", 2))
    route = GlobalRoute(dgid=gid, sgid_index=rc.GID_INDEX)
    ah = keep(AH(pd, attr=AHAttr(port_num=rc.PORT, is_global=1, gr=route)))
    mr = memory(pd, SIZE, LOCAL)
    for number in range(count):
        wr = SendWR(wr_id=number, num_sge=1, sg=[SGE(mr.buf, SIZE, mr.lkey)],
                    opcode=e.IBV_WR_SEND, send_flags=e.IBV_SEND_SIGNALED)
        wr.set_wr_ud(ah, EVERYBODY, QKEY)
        qp.post_send(wr)
    sent = 0
    while sent < count:
        polled, found = cq.poll(1)
        assert not polled or found[0].status == OK, found[0].status
        sent += polled
    print(f"{sent} sent", flush=True)
    os._exit(0)                 # see rc.keep()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

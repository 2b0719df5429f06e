# SPDX-License-Identifier: GPL-2.0-or-later
"""Two mistakes of RDMA programs, to be found out from outside (break-it.md).

    careless.py no-receive             waits for the other; posts no receive
    careless.py no-receive ADDRESS     sends to it
    careless.py bad-key                waits for the other; offers it memory
    careless.py bad-key ADDRESS        writes there twice, the second time with a
                                       key that is one bit off
"""

import json
import os
import socket
import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

PORT = 18600
RNR_RETRY = 3           # 7 would be without a limit
RNR_TIMER = 12          # 0.64 ms; IBA table 45

mistake, *peer = sys.argv[1:]
assert mistake in ("no-receive", "bad-key"), __doc__

context = Context(name=os.environ["IBDEV"])
gid_index = int(os.environ["GIDX"])
rights = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
pd, cq = PD(context), CQ(context, 8)
mr = MR(pd, 4096, rights)
qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, sq_sig_all=1,
                       cap=QPCap(max_send_wr=4, max_recv_wr=4)))

# The two tell each other over TCP how to reach them.
if peer:
    link = socket.create_connection((peer[0], PORT))
else:
    with socket.create_server(("", PORT)) as server:
        link, _ = server.accept()
words = link.makefile("rw")
print(json.dumps({"qpn": qp.qp_num, "gid": str(context.query_gid(1, gid_index)),
                  "key": mr.rkey, "addr": mr.buf}), file=words, flush=True)
other = json.loads(words.readline())

attr = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
attr.qp_access_flags = rights
attr.dest_qp_num = other["qpn"]
attr.timeout, attr.retry_cnt = 14, 7
attr.rnr_retry, attr.min_rnr_timer = RNR_RETRY, RNR_TIMER
attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=GID(other["gid"]), sgid_index=gid_index, hop_limit=64),
                      is_global=1, port_num=1)
qp.to_rts(attr)
print("connected", file=words, flush=True)
words.readline()


def post(opcode, key=0):
    """One work request; the status of its completion (enum ibv_wc_status)."""
    wr = SendWR(num_sge=1, sg=[SGE(mr.buf, 64, mr.lkey)], opcode=opcode)
    wr.set_wr_rdma(key, other["addr"])
    qp.post_send(wr)
    done = []
    while not done:
        _, done = cq.poll()
    return done[0].status


if not peer:
    words.readline()            # until the other has ended
elif mistake == "no-receive":
    print("SEND: status", post(e.IBV_WR_SEND))
else:
    for key in (other["key"], other["key"] ^ 1):
        print(f"RDMA WRITE with key {key:#x}: status", post(e.IBV_WR_RDMA_WRITE, key))

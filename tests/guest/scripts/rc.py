# SPDX-License-Identifier: GPL-2.0-or-later
"""For scripts that run in a guest: RC connections within one process.

    a, b = pair()                       two connected ends, on one adapter
    a.write(sge, remote_addr, rkey)     runs to its completion, returns the status
"""

import os
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

# Time limits are for the default kernel: the factor for this one.
PACE = int(os.environ.get("QHCA_PACE", "1"))

LOCAL = e.IBV_ACCESS_LOCAL_WRITE
REMOTE = (LOCAL | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
          | e.IBV_ACCESS_REMOTE_ATOMIC)
OK = e.IBV_WC_SUCCESS
PORT = 1
GID_INDEX = int(os.environ["GIDX"])


_kept = []


def keep(thing):
    """Keep @thing until the end of the process.

    Without this the interpreter destroys pyverbs objects in any order, and
    some use the context after it has been destroyed.
    """
    _kept.append(thing)
    return thing


def context():
    return keep(Context(name=os.environ["IBDEV"]))


class End:
    """A QP with its own CQ."""

    def __init__(self, ctx, pd):
        self.ctx, self.pd = ctx, keep(pd)
        self.cq = keep(CQ(ctx, 64))
        cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=4, max_recv_sge=4)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap)
        self.qp = keep(QP(pd, init))
        self.number = 0

    def connect(self, peer_qpn, access=REMOTE, timeout=14):
        route = GlobalRoute(dgid=self.ctx.query_gid(PORT, GID_INDEX), sgid_index=GID_INDEX)
        attr = QPAttr(port_num=PORT)
        attr.qp_access_flags = access
        attr.dest_qp_num = peer_qpn
        attr.path_mtu = e.IBV_MTU_1024
        attr.rq_psn = attr.sq_psn = 7
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer = 12
        attr.timeout = timeout
        attr.retry_cnt = attr.rnr_retry = 7
        attr.ah_attr = AHAttr(port_num=PORT, is_global=1, gr=route)
        self.qp.to_rts(attr)

    def completion(self, seconds=30 * PACE):
        """The next completion."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            count, found = self.cq.poll(1)
            if count:
                return found[0]
        raise TimeoutError("no completion")

    def post(self, opcode, sges, addr=0, rkey=0, compare=0, swap=0):
        self.number += 1
        wr = SendWR(wr_id=self.number, num_sge=len(sges), sg=sges, opcode=opcode,
                    send_flags=e.IBV_SEND_SIGNALED)
        if opcode in (e.IBV_WR_ATOMIC_FETCH_AND_ADD, e.IBV_WR_ATOMIC_CMP_AND_SWP):
            wr.set_wr_atomic(rkey, addr, compare, swap)
        elif opcode != e.IBV_WR_SEND:
            wr.set_wr_rdma(rkey, addr)
        self.qp.post_send(wr)

    def do(self, *args, **kwargs):
        """Post, wait; the status."""
        self.post(*args, **kwargs)
        wc = self.completion()
        assert wc.wr_id == self.number, (wc.wr_id, self.number)
        return wc.status

    def write(self, sge, addr, rkey):
        return self.do(e.IBV_WR_RDMA_WRITE, [sge], addr, rkey)

    def read(self, sge, addr, rkey):
        return self.do(e.IBV_WR_RDMA_READ, [sge], addr, rkey)

    def receive(self, sge, number=1000):
        self.qp.post_recv(RecvWR(wr_id=number, num_sge=1, sg=[sge]))

    def close(self):
        self.qp.close()
        self.cq.close()


def pair(ctx=None, pd=None):
    """Two ends connected to each other, in one PD."""
    ctx = ctx or context()
    pd = pd or PD(ctx)
    ends = End(ctx, pd), End(ctx, pd)
    ends[0].connect(ends[1].qp.qp_num)
    ends[1].connect(ends[0].qp.qp_num)
    return ends


def memory(*args, **kwargs):
    """A memory region of its own memory."""
    return keep(MR(*args, **kwargs))


def refused(error, function, *args, **kwargs):
    """@function fails with that errno."""
    from pyverbs.pyverbs_error import PyverbsRDMAError
    try:
        function(*args, **kwargs)
    except PyverbsRDMAError as problem:
        assert problem.error_code == error, (problem.error_code, error, str(problem))
    else:
        raise AssertionError(f"{function} was not refused")


def main(module):
    """Run the functions named on the command line: python3 SCRIPT NAME... If there are several,
    each runs in a separate process, and a failure does not affect the others."""
    names = sys.argv[1:]
    for name in names:
        if len(names) > 1 and os.fork():
            os.wait()
            continue
        getattr(module, name)()
        print(f"{name}: done")
        sys.stdout.flush()
        os._exit(0)         # see keep()

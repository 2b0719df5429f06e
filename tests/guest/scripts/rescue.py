# SPDX-License-Identifier: GPL-2.0-or-later
"""An application that destroys a CQ while its event is rescued.

Run in a guest, with kmod/rescue_race: python3 rescue.py destroy
"""

import sys

import rc
from rc import LOCAL, SGE, e, main, memory
from pyverbs.cq import CQ, CompChannel
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

VECTOR = 1                      # completion vector; its interrupt is lost


def counter(name):
    with open(f"/sys/module/rescue_race/parameters/{name}") as file:
        return int(file.read())


def destroy():
    """A flushed receive causes the event; "callbacks" shows that it is being handled."""
    ctx = rc.context()
    pd = rc.keep(PD(ctx))
    cq = rc.keep(CQ(ctx, 16, None, rc.keep(CompChannel(ctx)), VECTOR))
    cap = QPCap(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
    qp = rc.keep(QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap)))
    qp.to_init(QPAttr(port_num=rc.PORT))
    near = memory(pd, 4096, LOCAL)
    qp.post_recv(rc.RecvWR(wr_id=1, num_sge=1, sg=[SGE(near.buf, 4, near.lkey)]))
    cq.req_notify()
    qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
    qp.close()
    print("event lost", flush=True)
    while not counter("callbacks"):
        pass
    cq.close()


if __name__ == "__main__":
    main(sys.modules[__name__])

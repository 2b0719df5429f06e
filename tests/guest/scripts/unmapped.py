# SPDX-License-Identifier: GPL-2.0-or-later
"""An IOMMU takes a page away from the adapter while a QP uses it: this QP fails, with a clear
error, and the others go on.

Run in a guest with kmod/iommu_unmap: python3 unmapped.py NAME. Each prints the IOVA.
"""

import glob
import re
import sys

import pyverbs.enums as e
from rc import LOCAL, OK, REMOTE, SGE, main, memory, pair

PAGE = 4096


def take(iova):
    """Take the page at @iova away; 0 gives it back."""
    with open("/sys/module/iommu_unmap/parameters/iova", "w") as file:
        file.write(f"{iova:#x}")


def first_address(path, name):
    """The device's address of the buffer @name, in a file of the driver's debugfs."""
    [found] = glob.glob(f"/sys/kernel/debug/qhca/*/{path}")
    with open(found) as file:
        text = file.read()
    return int(re.search(rf"^{name}:\n(?:\t.*\n)*?\tsg: (0x[0-9a-f]+) \+", text, re.M)[1], 16)


def state(end):
    return end.qp.query(e.IBV_QP_STATE)[0].qp_state


class Bystander:
    """Another connection of the process, with its own memory."""

    def __init__(self, of):
        self.end, _ = pair(of.ctx, of.pd)
        self.near = memory(of.pd, PAGE, LOCAL)
        self.far = memory(of.pd, PAGE, REMOTE)

    def works(self):
        return self.end.write(SGE(self.near.buf, 64, self.near.lkey), self.far.buf,
                              self.far.rkey) == OK


def data():
    """A page of a memory region."""
    a, _ = pair()
    near, far = memory(a.pd, PAGE, LOCAL), memory(a.pd, PAGE, REMOTE)
    other = Bystander(a)
    near.write(b"still here", 10)
    sge = SGE(near.buf, 10, near.lkey)
    iova = first_address("mrs", f"mr {near.lkey:#x}")
    take(iova)
    try:
        assert a.write(sge, far.buf, far.rkey) == e.IBV_WC_LOC_PROT_ERR
        assert state(a) == e.IBV_QPS_ERR
        assert other.works()
    finally:
        take(0)
    # the region is as before
    again, _ = pair(a.ctx, a.pd)
    assert again.write(sge, far.buf, far.rkey) == OK
    assert far.read(10, 0) == b"still here"
    print(f"{iova:#x}")


def ring():
    """The first page of a send queue."""
    a, _ = pair()
    near, far = memory(a.pd, PAGE, LOCAL), memory(a.pd, PAGE, REMOTE)
    other = Bystander(a)
    iova = first_address(f"qps/{a.qp.qp_num}", "sq")
    take(iova)
    try:
        a.post(e.IBV_WR_RDMA_WRITE, [SGE(near.buf, 10, near.lkey)], far.buf, far.rkey)
        event = a.ctx.get_async_event()
        assert event.event_type == e.IBV_EVENT_QP_FATAL, event
        event.ack()
        assert state(a) == e.IBV_QPS_ERR
        assert other.works()
    finally:
        take(0)
    print(f"{iova:#x}")


if __name__ == "__main__":
    main(sys.modules[__name__])

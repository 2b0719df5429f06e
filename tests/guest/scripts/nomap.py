# SPDX-License-Identifier: GPL-2.0-or-later
"""On-demand paging where a page cannot be mapped for DMA.

Run in a guest, with kmod/fail_map: python3 nomap.py NAME
"""

import ctypes
import errno
import mmap
import sys

from rc import LOCAL, OK, REMOTE, SGE, context, e, keep, main, memory, pair, refused
from pyverbs.pd import PD

PAGE = mmap.PAGESIZE
PAGES = 16


def fail(nth):
    with open("/sys/module/fail_map/parameters/nth", "w") as file:
        file.write(str(nth))


def armed():
    with open("/sys/module/fail_map/parameters/nth") as file:
        return int(file.read())


def anonymous(text):
    """Memory of its own, page by page full of @text and the page's number."""
    m = mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    fill(m, text)
    return m


def page(text, number):
    return (f"{text}{number:04}".encode() * PAGE)[:PAGE]


def fill(m, text):
    for i in range(PAGES):
        m[i * PAGE:(i + 1) * PAGE] = page(text, i)


def prefetched():
    """Prefetching reports it; when the memory changes, so does the data sent."""
    a, _ = pair()
    m = anonymous("old")
    address = ctypes.addressof(ctypes.c_char.from_buffer(m))
    odp = memory(a.pd, PAGES * PAGE, LOCAL | e.IBV_ACCESS_ON_DEMAND, address=address)
    far = memory(a.pd, PAGES * PAGE, REMOTE)
    fail(PAGES // 2)
    refused(errno.EFAULT, a.pd.advise_mr, e._IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
            e._IBV_ADVISE_MR_FLAG_FLUSH, [SGE(address, PAGES * PAGE, odp.lkey)])
    assert armed() == 0, armed()
    # Other memory uses the freed pages.
    m.madvise(mmap.MADV_DONTNEED)
    keep([anonymous("taken") for _ in range(8)])
    fill(m, "new")
    assert a.write(SGE(address, PAGES * PAGE, odp.lkey), far.buf, far.rkey) == OK
    for i in range(PAGES):
        assert far.read(PAGE, i * PAGE) == page("new", i), (i, far.read(8, i * PAGE))


def faulted():
    """The device asks for such pages: an error, here and for a peer; later they can be had."""
    ctx = context()
    pd = keep(PD(ctx))
    m = anonymous("old")
    address = ctypes.addressof(ctypes.c_char.from_buffer(m))
    odp = memory(pd, PAGES * PAGE, REMOTE | e.IBV_ACCESS_ON_DEMAND, address=address)
    far = memory(pd, PAGES * PAGE, REMOTE)
    fail(-1)
    a, _ = pair(ctx, pd)
    status = a.write(SGE(address, PAGE, odp.lkey), far.buf, far.rkey)
    assert status == e.IBV_WC_LOC_PROT_ERR, status
    a, _ = pair(ctx, pd)
    status = a.write(SGE(far.buf, PAGE, far.lkey), address, odp.rkey)
    assert status == e.IBV_WC_REM_ACCESS_ERR, status
    fail(0)
    a, _ = pair(ctx, pd)
    assert a.write(SGE(address, PAGES * PAGE, odp.lkey), far.buf, far.rkey) == OK
    for i in range(PAGES):
        assert far.read(PAGE, i * PAGE) == page("old", i), (i, far.read(8, i * PAGE))


if __name__ == "__main__":
    main(sys.modules[__name__])

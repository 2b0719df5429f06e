# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory, and import by handle.

Run in a guest: python3 dm.py NAME
"""

import errno
import os
import random
import struct
import subprocess
import sys

from rc import (
    LOCAL, OK, PD, REMOTE, SGE, End, context, e, keep, main, memory, pair, refused,
)
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.mr import DMMR, MR

ZERO = e.IBV_ACCESS_ZERO_BASED
PAGE = os.sysconf("SC_PAGESIZE")


def alloc(ctx, length, align=0):
    return keep(DM(ctx, AllocDmAttr(length, align, 0)))


def region(*args):
    return keep(DMMR(*args))


def total(ctx):
    return ctx.query_device_ex().max_dm_size


def all_of_it():
    """All of it can be allocated, to the last page, and no more."""
    ctx = context()
    size = total(ctx)
    assert size >= 1 << 20
    refused(errno.ENOMEM, alloc, ctx, size + 1)
    with alloc(ctx, size) as dm:
        dm.copy_to_dm(size - 8, b"the end!", 8)
        assert dm.copy_from_dm(size - 8, 8) == b"the end!"
        refused(errno.ENOMEM, alloc, ctx, 4)
    parts = [alloc(ctx, size // 8 - random.randrange(PAGE)) for _ in range(8)]
    refused(errno.ENOMEM, alloc, ctx, 4)
    parts.pop(3).close()
    parts.append(alloc(ctx, size // 8))
    refused(errno.EINVAL, alloc, ctx, 0)
    for part in parts:
        part.close()


def cleared():
    """The data of the previous owner cannot be read."""
    ctx = context()
    size = total(ctx)
    for _ in range(3):
        with alloc(ctx, size) as dm:
            assert dm.copy_from_dm(0, size) == bytes(size)
            dm.copy_to_dm(0, b"\xa5" * size, size)


def separate():
    """Allocations do not overlap."""
    ctx = context()
    sizes = [random.randrange(4, 100000, 4) for _ in range(30)]
    memories = [(alloc(ctx, n, random.randrange(0, 17)), n, random.randbytes(n)) for n in sizes]
    for dm, n, data in memories:
        dm.copy_to_dm(0, data, n)
    for dm, n, data in memories:
        assert dm.copy_from_dm(0, n) == data


def alignment():
    """Addresses are aligned as requested; the kernel reports them for each region."""
    ctx = context()
    pd = PD(ctx)
    for align in (0, 6, 12, 13, 16, 20, 23):
        dm = alloc(ctx, 8, align)
        mr = region(pd, 8, LOCAL | ZERO, dm, 0)
        text = subprocess.run(["rdma", "-dd", "res", "show", "mr"], check=True,
                              capture_output=True, text=True).stdout
        text = text.split(f" rkey {mr.rkey:#x} ")[1]
        offset = int(text.split("dm_offset ")[1].split()[0], 0)
        assert offset % (1 << align) == 0, (align, offset)
    refused(errno.EINVAL, alloc, ctx, 8, 40)
    refused(errno.EINVAL, alloc, ctx, 8, 64)


def part_of_it():
    """A region is a part: its address 0 is at its start, and accesses beyond its end fail."""
    a, b = pair()
    with alloc(a.ctx, 3 * PAGE) as dm:
        dm.copy_to_dm(0, b"\x11" * 3 * PAGE, 3 * PAGE)
        mr = region(a.pd, PAGE, REMOTE | ZERO, dm, PAGE + 100)
        own = memory(a.pd, PAGE, LOCAL)
        own.write(b"x" * PAGE, PAGE)
        assert a.write(SGE(own.buf, PAGE, own.lkey), 0, mr.rkey) == OK
        want = b"\x11" * (PAGE + 100) + b"x" * PAGE + b"\x11" * (PAGE - 100)
        assert dm.copy_from_dm(0, 3 * PAGE) == want
        assert a.write(SGE(own.buf, 1, own.lkey), PAGE, mr.rkey) == e.IBV_WC_REM_ACCESS_ERR
        assert dm.copy_from_dm(0, 3 * PAGE) == want
        for offset, length in ((0, 3 * PAGE + 1), (3 * PAGE, 1), (3 * PAGE + 1, 0)):
            refused(errno.EINVAL, DMMR, a.pd, length, LOCAL | ZERO, dm, offset)
        mr.close()


def permissions():
    """Access flags apply to device memory, too; without ZERO_BASED: refused."""
    for access, opcode, status in (
            (LOCAL, e.IBV_WR_RDMA_WRITE, e.IBV_WC_REM_ACCESS_ERR),
            (LOCAL, e.IBV_WR_RDMA_READ, e.IBV_WC_REM_ACCESS_ERR),
            (LOCAL | e.IBV_ACCESS_REMOTE_WRITE, e.IBV_WR_ATOMIC_FETCH_AND_ADD,
             e.IBV_WC_REM_ACCESS_ERR),
            (LOCAL | e.IBV_ACCESS_REMOTE_WRITE, e.IBV_WR_RDMA_WRITE, OK),
            (e.IBV_ACCESS_REMOTE_READ, e.IBV_WR_RDMA_READ, OK)):
        a, b = pair()
        dm = alloc(a.ctx, PAGE)
        mr = region(a.pd, PAGE, access | ZERO, dm, 0)
        own = memory(a.pd, PAGE, LOCAL)
        got = a.do(opcode, [SGE(own.buf, 8, own.lkey)], 0, mr.rkey, 1)
        assert got == status, (access, opcode, got)
        mr.close()
        dm.close()
    # a READ into memory that may not be written
    a, b = pair()
    dm = alloc(a.ctx, PAGE)
    mr = region(a.pd, PAGE, ZERO, dm, 0)
    far = memory(a.pd, PAGE, REMOTE)
    assert a.read(SGE(0, 8, mr.lkey), far.buf, far.rkey) == e.IBV_WC_LOC_PROT_ERR
    assert dm.copy_from_dm(0, 8) == bytes(8)
    refused(errno.EINVAL, DMMR, a.pd, PAGE, LOCAL, dm, 0)
    refused(errno.EINVAL, DMMR, a.pd, PAGE, e.IBV_ACCESS_REMOTE_WRITE | ZERO, dm, 0)
    flush_persistent = 1 << 9
    refused(errno.EINVAL, DMMR, a.pd, PAGE, LOCAL | ZERO | flush_persistent, dm, 0)
    mr.close()
    dm.close()


def both_ends():
    """From device memory to device memory; atomics; CPU and adapter agree."""
    a, b = pair()
    size = 100000
    near, far = alloc(a.ctx, size), alloc(a.ctx, size)
    mine = region(a.pd, size, LOCAL | ZERO, near, 0)
    theirs = region(a.pd, size, REMOTE | ZERO, far, 0)
    data = random.randbytes(size)
    near.copy_to_dm(0, data, size)
    assert a.write(SGE(0, size, mine.lkey), 0, theirs.rkey) == OK
    assert far.copy_from_dm(0, size) == data
    far.copy_to_dm(8, struct.pack("Q", 40), 8)
    for _ in range(5):
        assert a.do(e.IBV_WR_ATOMIC_FETCH_AND_ADD, [SGE(16, 8, mine.lkey)], 8, theirs.rkey,
                    2) == OK
    assert far.copy_from_dm(8, 8) == struct.pack("Q", 50)
    assert near.copy_from_dm(16, 8) == struct.pack("Q", 48)
    b.receive(SGE(1000, 50000, theirs.lkey))
    assert a.do(e.IBV_WR_SEND, [SGE(3, 50000, mine.lkey)]) == OK
    assert b.completion().byte_len == 50000
    assert far.copy_from_dm(1000, 50000) == near.copy_from_dm(0, 50004)[3:50003]
    for thing in (mine, theirs, near, far):
        thing.close()


def imported():
    """A second context on the same file: its objects are the first one's."""
    a, b = pair()
    second = keep(Context(cmd_fd=os.dup(a.ctx.cmd_fd)))
    pd = keep(PD(second, handle=a.pd.handle))
    target = memory(a.pd, PAGE, REMOTE)
    target.write(b"not yet", 7)
    # Its lkey works for QPs that the importer creates in the imported PD.
    mr = memory(pd, handle=target.handle, address=target.buf)
    assert (mr.lkey, mr.rkey) == (target.lkey, target.rkey)
    ends = End(second, pd), End(a.ctx, a.pd)
    ends[0].connect(ends[1].qp.qp_num)
    ends[1].connect(ends[0].qp.qp_num)
    own = memory(pd, PAGE, LOCAL)
    own.write(b"imported", 8)
    assert ends[0].write(SGE(own.buf, 8, own.lkey), target.buf, mr.rkey) == OK
    assert target.read(8, 0) == b"imported"
    assert ends[1].read(SGE(target.buf + 8, 8, target.lkey), own.buf, own.rkey) \
        == e.IBV_WC_REM_ACCESS_ERR
    for end in ends:
        end.close()
    own.close()
    mr.unimport()
    # imported objects still belong to their owner
    assert a.write(SGE(target.buf, 8, target.lkey), target.buf + 100, target.rkey) == OK
    for handle in (target.handle + 1000, 0xffffffff):
        refused(errno.ENOENT, MR, pd, handle=handle, address=0)
    refused(errno.ENOENT, PD, second, handle=a.pd.handle + 1000)
    # a handle of another kind
    refused(errno.EINVAL, PD, second, handle=target.handle)
    pd.unimport()
    refused(errno.ENOENT, DM, second, handle=12345)


def imported_memory():
    """Device memory stays as long as it is mapped."""
    ctx = context()
    size = total(ctx)
    dm = alloc(ctx, size)
    second = keep(Context(cmd_fd=os.dup(ctx.cmd_fd)))
    other = keep(DM(second, handle=dm.handle))
    other.copy_to_dm(4, b"seen", 4)
    assert dm.copy_from_dm(4, 4) == b"seen"
    dm.close()
    refused(errno.ENOMEM, alloc, ctx, 4)
    assert other.copy_from_dm(4, 4) == b"seen"
    other.unimport()
    with alloc(ctx, size) as again:
        assert again.copy_from_dm(4, 4) == bytes(4)


def killed():
    """All of it is freed when a process ends without cleaning up."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        ctx = context()
        dm = alloc(ctx, total(ctx))
        region(PD(ctx), PAGE, LOCAL | ZERO, dm, 0)
        os.write(write_end, b"x")
        os.kill(os.getpid(), 9)
    assert os.read(read_end, 1) == b"x"
    os.wait()
    ctx = context()
    alloc(ctx, total(ctx)).close()


if __name__ == "__main__":
    main(sys.modules[__name__])

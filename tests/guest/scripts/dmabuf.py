# SPDX-License-Identifier: GPL-2.0-or-later
"""dma-buf memory regions over udmabuf: memory of a memfd as another driver's.

Run in a guest: python3 dmabuf.py NAME
"""

import errno
import fcntl
import mmap
import os
import random
import struct
import sys

from rc import (
    LOCAL, OK, PD, REMOTE, SGE, context, e, keep, main, memory, pair, refused,
)
from pyverbs.mr import DmaBufMR

PAGE = mmap.PAGESIZE
UDMABUF_CREATE, UDMABUF_CREATE_LIST = 0x40187542, 0x40087543
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
MFD_ALLOW_SEALING, MFD_HUGETLB = 2, 4


class Memory:
    """A memfd of @size bytes, with its contents as .view."""

    def __init__(self, size, flags=0):
        self.fd = os.memfd_create("dmabuf", MFD_ALLOW_SEALING | flags)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK)
        self.view = mmap.mmap(self.fd, size)

    def dmabuf(self, offset, size):
        """A dma-buf of part of it; its fd."""
        with open("/dev/udmabuf", "rb") as device:
            request = bytearray(struct.pack("IIQQ", self.fd, 0, offset, size))
            return fcntl.ioctl(device, UDMABUF_CREATE, request)

    def scattered(self, pieces):
        """A dma-buf of many parts, (offset, size) each, in that order."""
        request = struct.pack("II", 0, len(pieces))
        for offset, size in pieces:
            request += struct.pack("IIQQ", self.fd, 0, offset, size)
        with open("/dev/udmabuf", "rb") as device:
            return fcntl.ioctl(device, UDMABUF_CREATE_LIST, bytearray(request))


def region(*args, **kwargs):
    return keep(DmaBufMR(*args, **kwargs))


def plain(size=16 * PAGE):
    """Memory, and a dma-buf of all of it."""
    memfd = Memory(size)
    return memfd, memfd.dmabuf(0, size)


ACCESSES = [0, LOCAL, REMOTE, LOCAL | e.IBV_ACCESS_REMOTE_WRITE, e.IBV_ACCESS_REMOTE_READ,
            LOCAL | e.IBV_ACCESS_REMOTE_ATOMIC, LOCAL | e.IBV_ACCESS_RELAXED_ORDERING]


def reg_mr():
    """Every access, full and partial, aligned and not."""
    pd = PD(context())
    for access in ACCESSES:
        for offset, length in [(0, 16 * PAGE), (0, 1), (PAGE, PAGE), (100, 5000),
                               (16 * PAGE - 1, 1)]:
            _, fd = plain()
            with region(pd, length, access, dmabuf=fd, offset=offset) as mr:
                assert mr.length == length
            os.close(fd)


def dereg_mr():
    """A deregistered region cannot be used, by its owner or by the peer."""
    a, b = pair()
    _, fd = plain()
    mr = region(a.pd, PAGE, REMOTE, dmabuf=fd)
    other = memory(a.pd, PAGE, LOCAL)
    rkey = mr.rkey
    assert a.write(SGE(other.buf, 8, other.lkey), 0, rkey) == OK
    mr.close()
    assert a.write(SGE(other.buf, 8, other.lkey), 0, rkey) == e.IBV_WC_REM_ACCESS_ERR


def dereg_mr_twice():
    pd = PD(context())
    _, fd = plain()
    mr = region(pd, PAGE, LOCAL, dmabuf=fd)
    mr.close()
    mr.close()
    # nothing that references the PD remains
    pd.close()


def lkey():
    """Each region has its own key; it refers to the region's memory and no other."""
    a, b = pair()
    memfd, fd = plain()
    memfd.view[0:8], memfd.view[PAGE:PAGE + 8] = b"first   ", b"second  "
    first = region(a.pd, PAGE, LOCAL, dmabuf=fd)
    second = region(a.pd, PAGE, LOCAL, dmabuf=fd, offset=PAGE)
    assert len({first.lkey, second.lkey, 0}) == 3
    target = memory(a.pd, PAGE, REMOTE)
    for mr, at, text in ((first, 0, b"first   "), (second, PAGE, b"second  ")):
        assert a.write(SGE(at, 8, mr.lkey), target.buf, target.rkey) == OK
        assert target.read(8, 0) == text
    assert a.write(SGE(PAGE, 8, first.lkey), target.buf, target.rkey) == e.IBV_WC_LOC_PROT_ERR


def rkey():
    """The peer can access only the memory of the key, and only as the flags allow."""
    memfd, fd = plain()
    memfd.view[0:4] = b"data"
    for access, write, read in ((LOCAL, False, False), (e.IBV_ACCESS_REMOTE_READ, False, True),
                                (LOCAL | e.IBV_ACCESS_REMOTE_WRITE, True, False)):
        for may, opcode in ((write, e.IBV_WR_RDMA_WRITE), (read, e.IBV_WR_RDMA_READ)):
            a, b = pair()
            mr = region(a.pd, PAGE, access, dmabuf=fd)
            own = memory(a.pd, PAGE, LOCAL)
            status = a.do(opcode, [SGE(own.buf, 4, own.lkey)], 0, mr.rkey)
            assert status == (OK if may else e.IBV_WC_REM_ACCESS_ERR), (access, opcode, status)
            if may and opcode == e.IBV_WR_RDMA_READ:
                assert own.read(4, 0) == b"data"


def write():
    """The adapter reads what the CPU writes through the memfd."""
    a, b = pair()
    memfd, fd = plain()
    mr = region(a.pd, 16 * PAGE, LOCAL, dmabuf=fd)
    target = memory(a.pd, 16 * PAGE, REMOTE)
    for _ in range(10):
        data = random.randbytes(random.randrange(1, 16 * PAGE))
        at = random.randrange(16 * PAGE - len(data) + 1)
        memfd.view[at:at + len(data)] = data
        assert a.write(SGE(at, len(data), mr.lkey), target.buf, target.rkey) == OK
        assert target.read(len(data), 0) == data


def read():
    """The CPU reads what the adapter writes; nothing else changes."""
    a, b = pair()
    memfd, fd = plain()
    mr = region(a.pd, 16 * PAGE, LOCAL, dmabuf=fd)
    source = memory(a.pd, 16 * PAGE, REMOTE)
    mirror = bytearray(16 * PAGE)
    for _ in range(10):
        data = random.randbytes(random.randrange(1, 16 * PAGE))
        at = random.randrange(16 * PAGE - len(data) + 1)
        mirror[at:at + len(data)] = data
        source.write(data, len(data))
        assert a.read(SGE(at, len(data), mr.lkey), source.buf, source.rkey) == OK
        assert memfd.view[:] == bytes(mirror)


def bad_flags():
    """Remote write or atomic without local write; flags no region can have."""
    pd = PD(context())
    _, fd = plain()
    for access in (e.IBV_ACCESS_REMOTE_WRITE, e.IBV_ACCESS_REMOTE_ATOMIC,
                   e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_ATOMIC):
        refused(errno.EINVAL, DmaBufMR, pd, PAGE, access, dmabuf=fd)
    try:
        region(pd, PAGE, LOCAL | e.IBV_ACCESS_ON_DEMAND, dmabuf=fd)
    except Exception as problem:
        assert problem.error_code in (errno.EOPNOTSUPP, errno.EINVAL), problem
    else:
        raise AssertionError("on-demand paging of a dma-buf was not refused")


def send_recv():
    """SEND out of one dma-buf into another, over many packets."""
    a, b = pair()
    out, fd_out = plain()
    into, fd_into = plain()
    source = region(a.pd, 16 * PAGE, LOCAL, dmabuf=fd_out)
    target = region(a.pd, 16 * PAGE, LOCAL, dmabuf=fd_into)
    for length in (1, 1024, 1025, 16 * PAGE):
        data = random.randbytes(length)
        out.view[0:length] = data
        b.receive(SGE(0, length, target.lkey))
        assert a.do(e.IBV_WR_SEND, [SGE(0, length, source.lkey)]) == OK
        wc = b.completion()
        assert (wc.status, wc.byte_len) == (OK, length)
        assert into.view[0:length] == data


def rdma():
    """WRITE, READ and atomics between two dma-bufs."""
    a, b = pair()
    near, fd_near = plain()
    far, fd_far = plain()
    mine = region(a.pd, 16 * PAGE, LOCAL, dmabuf=fd_near)
    theirs = region(a.pd, 16 * PAGE, REMOTE, dmabuf=fd_far)
    data = random.randbytes(16 * PAGE)
    near.view[:] = data
    assert a.write(SGE(0, 16 * PAGE, mine.lkey), 0, theirs.rkey) == OK
    assert far.view[:] == data
    far.view[:] = data[::-1]
    assert a.read(SGE(0, 16 * PAGE, mine.lkey), 0, theirs.rkey) == OK
    assert near.view[:] == data[::-1]
    struct.pack_into("Q", far.view, 8, 40)
    assert a.do(e.IBV_WR_ATOMIC_FETCH_AND_ADD, [SGE(0, 8, mine.lkey)], 8, theirs.rkey, 2) == OK
    assert struct.unpack_from("Q", near.view, 0)[0] == 40
    assert struct.unpack_from("Q", far.view, 8)[0] == 42
    assert a.do(e.IBV_WR_ATOMIC_CMP_AND_SWP, [SGE(0, 8, mine.lkey)], 8, theirs.rkey, 42, 9) == OK
    assert struct.unpack_from("Q", far.view, 8)[0] == 9


def scattered():
    """Pages of a buffer in any order form one region."""
    a, b = pair()
    memfd = Memory(32 * PAGE)
    order = random.sample(range(32), 20)
    fd = memfd.scattered([(page * PAGE, PAGE) for page in order])
    mr = region(a.pd, 20 * PAGE, REMOTE, dmabuf=fd)
    source = memory(a.pd, 20 * PAGE, LOCAL)
    data = random.randbytes(20 * PAGE - 200)
    source.write(data, len(data))
    assert a.write(SGE(source.buf, len(data), source.lkey), 100, mr.rkey) == OK
    seen = b"".join(memfd.view[p * PAGE:(p + 1) * PAGE] for p in order)
    assert seen == bytes(100) + data + bytes(100)
    for page in set(range(32)) - set(order):
        assert not any(memfd.view[page * PAGE:(page + 1) * PAGE])


def huge():
    """Huge pages."""
    size = 4 << 20
    with open("/proc/sys/vm/nr_hugepages", "r+") as knob:
        before = int(knob.read())
        knob.seek(0)
        knob.write(str(before + 2))
    try:
        a, b = pair()
        memfd = Memory(size, MFD_HUGETLB)
        try:
            fd = memfd.dmabuf(0, size)
        except OSError as problem:
            # kernels that do not accept huge pages report that
            assert problem.errno == errno.EBADFD or problem.errno == errno.EINVAL, problem
            print("this kernel's udmabuf has no huge pages")
            return
        mr = region(a.pd, size, REMOTE, dmabuf=fd)
        source = memory(a.pd, PAGE, LOCAL)
        source.write(b"over the edge of a huge page", 28)
        assert a.write(SGE(source.buf, 28, source.lkey), (2 << 20) - 9, mr.rkey) == OK
        assert memfd.view[(2 << 20) - 9:(2 << 20) + 19] == b"over the edge of a huge page"
    finally:
        with open("/proc/sys/vm/nr_hugepages", "w") as knob:
            knob.write(str(before))


def outlives_its_fd():
    """The region keeps the memory when every file of it is closed."""
    a, b = pair()
    memfd, fd = plain()
    mr = region(a.pd, 16 * PAGE, REMOTE, dmabuf=fd)
    own = memory(a.pd, 16 * PAGE, LOCAL)
    data = random.randbytes(16 * PAGE)
    memfd.view[:] = data
    memfd.view.close()
    os.close(memfd.fd)
    os.close(fd)
    assert a.read(SGE(own.buf, 16 * PAGE, own.lkey), 0, mr.rkey) == OK
    assert own.read(16 * PAGE, 0) == data


def out_of_range():
    """Beyond the end of the buffer; length 0; no buffer at all."""
    pd = PD(context())
    memfd, fd = plain()
    for offset, length in ((0, 16 * PAGE + 1), (16 * PAGE, 1), (1, 16 * PAGE), (1 << 62, PAGE),
                           (0, 0)):
        refused(errno.EINVAL, DmaBufMR, pd, length, LOCAL, dmabuf=fd, offset=offset)
    refused(errno.EINVAL, DmaBufMR, pd, PAGE, LOCAL, dmabuf=memfd.fd)
    refused(errno.EBADF, DmaBufMR, pd, PAGE, LOCAL, dmabuf=12345)


if __name__ == "__main__":
    main(sys.modules[__name__])

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Device memory: the CPU reaches it by BAR 4, the peer and the send queue by keys; all see the same
bytes, and none can access memory outside the region.
"""

import pytest
from adapter import BARS, AdminError, Adapter, direct
from conftest import DEVICE
from layout import C, struct
from machine import Machine
from rdma import AETH, SEND_ONLY, Setup, parse
from test_remote import (
    ALL, ATOMIC_ACK, COMPARE_SWAP, FETCH_ADD, NAK_ACCESS, READ_REQUEST,
    READ_RESPONSE_ONLY, WRITE_ONLY, Target,
)

pytestmark = pytest.mark.once("test_remote has keys in both builds, test_pci the BAR")

BASE = BARS[C.QHCA_BAR_DM]
SIZE = 16 << 20


def region(adapter, pd: int, offset: int, size: int = 4096, **fields) -> int:
    """Key of an MR of device memory with addresses from 0 on."""
    fields.setdefault("buf", direct(offset, size))
    mpt = struct("qhca_mpt")(len=size, pd=pd, access=ALL, flags=C.QHCA_MR_F_DM,
                             **fields)
    return adapter.command(C.QHCA_CMD_CREATE_MR, data=mpt).obj


class DeviceTarget(Target):
    """A target whose MR is 4 KiB of device memory at @offset."""

    def __init__(self, adapter, offset: int = 8192):
        super().__init__(adapter)
        self.at = BASE + offset
        self.mr.key, self.mr.iova = region(adapter, self.s.pd, offset), 0


def test_capability(adapter):
    caps = adapter.query(C.QHCA_CMD_QUERY_DEVICE, 0, "qhca_dev_caps")
    assert caps.dm_size == SIZE
    assert caps.features & C.QHCA_FEAT_DM


@pytest.mark.parametrize("offset", [8192, SIZE - 4096])
def test_write(adapter, offset):
    t = DeviceTarget(adapter, offset)
    _, body = t.ask(WRITE_ONLY, t.reth(12, 100) + b"written here")
    assert AETH(body).syndrome & 0x60 == 0
    assert t.m.read_mem(t.at + 99, 14) == b"\0written here\0"
    assert t.m.read_mem(offset + 99, 14) == bytes(14), "not at that DMA address"


def test_read(adapter):
    t = DeviceTarget(adapter)
    t.m.write_mem(t.at + 50, b"read me, please!")
    bth, body = t.ask(READ_REQUEST, t.reth(16, 50))
    assert bth.opcode == READ_RESPONSE_ONLY
    assert body[4:] == b"read me, please!"


@pytest.mark.parametrize("opcode, swap, compare, before, after", [
    (FETCH_ADD, 5, 0, 7, 12), (COMPARE_SWAP, 9, 7, 7, 9), (COMPARE_SWAP, 9, 8, 7, 7),
])
def test_atomic(adapter, opcode, swap, compare, before, after):
    t = DeviceTarget(adapter)
    t.m.store(t.at + 8, before, 8)
    bth, body = t.ask(opcode, t.atomic(swap, compare, at=8))
    assert bth.opcode == ATOMIC_ACK
    assert int.from_bytes(body[4:12], "big") == before
    assert t.m.load(t.at + 8, 8) == after


@pytest.mark.parametrize("at, length", [(4090, 8), (4096, 1), (1 << 40, 1)])
def test_out_of_region(adapter, at, length):
    t = DeviceTarget(adapter)
    t.m.write_mem(t.at + 4090, b"my neigh" + b"bour")
    _, answer = t.ask(WRITE_ONLY, t.reth(length, at) + bytes(length))
    assert AETH(answer).syndrome == NAK_ACCESS
    assert t.m.read_mem(t.at + 4090, 12) == b"my neighbour"


def test_send_from(adapter):
    """A SEND whose data lies in device memory."""
    s = Setup(adapter)
    key = region(adapter, s.pd, 4096)
    adapter.m.write_mem(BASE + 4096 + 10, b"from the device")
    s.qp.post_send((10, 15, key))
    frame = parse(adapter.m.receive_frame())
    assert frame["BTH"].opcode == SEND_ONLY
    assert bytes(frame["BTH"].payload)[:15] == b"from the device"


@pytest.mark.parametrize("fields", [
    {"offset": SIZE}, {"offset": SIZE - 4096, "size": 4097}, {"offset": 1 << 63},
    {"offset": -4096 & (1 << 64) - 1}, {"offset": 0, "size": SIZE + 1},
    {"offset": 0, "buf": struct("qhca_buf")(addr=0x1000, len=4096, page_shift=12, entries=1,
                                            form=C.QHCA_BUF_FLAT, hops=1)},
])
def test_not_in_the_memory(adapter, fields):
    pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
    with pytest.raises(AdminError) as error:
        region(adapter, pd, **fields)
    assert error.value.status == C.QHCA_ST_BAD_TABLE


def test_without():
    """A device without it reports that and refuses."""
    with Machine(device=f"{DEVICE},dm-size=0") as m:
        adapter = Adapter(m)
        adapter.start()
        caps = adapter.query(C.QHCA_CMD_QUERY_DEVICE, 0, "qhca_dev_caps")
        assert (caps.dm_size, caps.features & C.QHCA_FEAT_DM) == (0, 0)
        pd = adapter.command(C.QHCA_CMD_ALLOC_PD).obj
        with pytest.raises(AdminError) as error:
            region(adapter, pd, 0)
        assert error.value.status == C.QHCA_ST_UNSUPPORTED

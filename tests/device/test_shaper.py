# SPDX-License-Identifier: GPL-2.0-or-later
"""Shapers of Ethernet send queues, by the machine's clock."""

import pytest
from layout import C, struct
from rdma import PEER_MAC
from test_ethernet import Ethernet, frame_to

SIZE = 1000                     # of a frame: 8 ms at 1 Mb/s
MS = 10**6


@pytest.fixture
def eth(adapter):
    return Ethernet(adapter)


def shaper(adapter, **fields):
    return adapter.command(C.QHCA_CMD_CREATE_SHAPER,
                           data=struct("qhca_shaperc")(**{"weight": 1, **fields})).obj


def attach(eth, number):
    eth.adapter.command(C.QHCA_CMD_MODIFY_ETH_SQ, eth.sqn,
                        struct("qhca_eth_qc")(shaper=number), mask=C.QHCA_ETH_SQ_M_SHAPER)


def query(eth, number):
    return eth.adapter.query(C.QHCA_CMD_QUERY_SHAPER, number, "qhca_shaperc")


def sent(eth):
    return eth.adapter.stat("ETH_TX_PACKETS")


def test_rate(eth):
    """A frame each 8 ms, and neither sooner nor later."""
    number = shaper(eth.adapter, rate=1000000)
    attach(eth, number)
    for _ in range(10):
        eth.send(frame_to(PEER_MAC, SIZE - 14))
    assert sent(eth) == 1
    for frames in range(2, 11):
        eth.m.clock_step(8 * MS - 1000)
        assert sent(eth) == frames - 1
        assert query(eth, number).waits == 1
        eth.m.clock_step(1000)
        assert sent(eth) == frames
    for _ in range(10):
        assert len(eth.m.receive_frame()) == SIZE
    seen = query(eth, number)
    assert (seen.frames, seen.bytes, seen.held) == (10, 10 * SIZE, 9)
    assert (seen.waits, seen.members, seen.debt) == (0, 1, SIZE)


def test_burst_and_limit_off(eth):
    number = shaper(eth.adapter, rate=8000, burst=3 * SIZE)
    attach(eth, number)
    for _ in range(8):
        eth.send(frame_to(PEER_MAC, SIZE - 14))
    assert sent(eth) == 4
    eth.m.clock_step(999 * MS)
    assert sent(eth) == 4
    eth.adapter.command(C.QHCA_CMD_MODIFY_SHAPER, number, struct("qhca_shaperc")(),
                        mask=C.QHCA_SHAPER_M_RATE)
    assert sent(eth) == 8


@pytest.mark.observe
def test_inspect(eth):
    """How a waiting queue is shown to a developer."""
    outer = shaper(eth.adapter, rate=1000000)
    inner = shaper(eth.adapter, parent=outer, weight=7)
    attach(eth, inner)
    for _ in range(2):
        eth.send(frame_to(PEER_MAC, SIZE - 14))
    look = eth.m.qmp("qhca-inspect", object="eth-sq", number=eth.sqn)
    assert look["look"]["held_by"] == outer
    assert look["look"]["until"] - look["time"] == 8 * MS
    look = eth.m.qmp("qhca-inspect", object="shaper", number=inner)["look"]
    assert look["context"]["weight"] == 7
    assert (look["eth_sqs"], look["held_by"]) == ([eth.sqn], outer)


def test_refused(eth):
    def status(opcode, number, mask=0, **fields):
        return eth.adapter.try_command(
            opcode, number, struct("qhca_shaperc")(**{"weight": 1, **fields}),
            mask=mask).status

    number = shaper(eth.adapter, rate=1)
    attach(eth, number)
    create, modify = C.QHCA_CMD_CREATE_SHAPER, C.QHCA_CMD_MODIFY_SHAPER
    assert status(create, 0, rate=C.QHCA_SHAPER_RATE_MAX + 1) == C.QHCA_ST_BAD_PARAM
    assert status(create, 0, weight=0) == C.QHCA_ST_BAD_PARAM
    assert status(create, 0, parent=99) == C.QHCA_ST_BAD_OBJ
    assert status(modify, number, C.QHCA_SHAPER_M_PARENT,
                  parent=number) == C.QHCA_ST_BAD_PARAM
    assert eth.adapter.try_command(
        C.QHCA_CMD_DESTROY_SHAPER, number).status == C.QHCA_ST_BUSY
    attach(eth, C.QHCA_SHAPER_NONE)
    eth.adapter.command(C.QHCA_CMD_DESTROY_SHAPER, number)

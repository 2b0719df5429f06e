# SPDX-License-Identifier: GPL-2.0-or-later
"""qhca against Soft-RoCE over virtio-net: the proof of the wire format."""

import pytest

from test_pingpong import perftest, pingpong

# Soft-RoCE takes path MTU from its netdev; both sides name the same
PINGPONG = [
    ("ibv_rc_pingpong", "-s 4096 -n 200"),
    ("ibv_rc_pingpong", "-s 65536 -n 30"),
    ("ibv_rc_pingpong", "-s 4096 -n 100 -e"),
    ("ibv_ud_pingpong", "-s 1024 -n 100"),
]

# perftest connects with what the *other* adapter can do at most: Soft-RoCE's 128
# outstanding reads are more than qhca has, which takes it for what it can do
PERFTEST = [
    ("ib_send_bw", "-s 65536 -n 50"),
    ("ib_write_bw", "-s 65536 -n 50"),
    ("ib_read_bw", "-s 65536 -n 50"),
    ("ib_send_lat", "-s 2 -n 200"),
    ("ib_write_lat", "-s 2 -n 200"),
    ("ib_read_lat", "-s 2 -n 200"),
]


def roles(mixed, server):
    """(server, client): the guest with the named adapter serves."""
    if server == "qhca-serves":
        return mixed.a, mixed.b
    return mixed.b, mixed.a


@pytest.mark.parametrize("server", ["qhca-serves", "rxe-serves"])
@pytest.mark.parametrize("program,options", PINGPONG,
                         ids=[f"{p} {o}" for p, o in PINGPONG])
def test_pingpong(mixed, server, program, options):
    assert mixed.a.nic == "qhca" and mixed.b.nic == "rxe"
    pingpong(*roles(mixed, server), program, options)


@pytest.mark.parametrize("server", ["qhca-serves", "rxe-serves"])
@pytest.mark.parametrize("program,options", PERFTEST,
                         ids=[f"{p} {o}" for p, o in PERFTEST])
def test_perftest(mixed, server, program, options):
    perftest(*roles(mixed, server), program, options)


def test_no_icrc_errors(mixed):
    """Neither side ever dropped a packet of the other as damaged."""
    assert mixed.a.ethtool_stat("roce_icrc_errors") == 0
    assert mixed.a.ethtool_stat("roce_rx_malformed") == 0

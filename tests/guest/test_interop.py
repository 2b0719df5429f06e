# SPDX-License-Identifier: GPL-2.0-or-later
"""qhca against Soft-RoCE over virtio-net: the proof of the wire format."""

import json

import pytest

from labs import run_pair
from test_pingpong import perftest, pingpong
from test_semantics import operations

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
    ("ib_send_lat", "-s 2 -n 100"),
    ("ib_send_lat", "-e -s 64 -n 50"),  # one event too many, and one end runs ahead
    ("ib_write_lat", "-s 2 -n 100"),
    ("ib_read_lat", "-s 2 -n 100"),
]


LARGE = pytest.mark.long("test_perftest has messages of that size in the gate")
ROLES = ["qhca-serves", "rxe-serves"]


def roles(mixed, server):
    """(server, client): the guest with the named adapter serves."""
    if server == "qhca-serves":
        return mixed.a, mixed.b
    return mixed.b, mixed.a


@pytest.mark.parametrize("server", ROLES)
@pytest.mark.parametrize("program,options", [
    pytest.param(p, o, id=f"{p} {o}", marks=[LARGE] if "65536" in o else []) for p, o in PINGPONG])
def test_pingpong(mixed, server, program, options):
    assert mixed.a.nic == "qhca" and mixed.b.nic == "rxe"
    pingpong(*roles(mixed, server), program, options)


# In the gate one goes this way, the next one that way; test_pingpong goes both.
OTHER_WAY = pytest.mark.long("the other way round is in the gate")


@pytest.mark.parametrize("program,options,server", [
    pytest.param(*case, server, marks=[OTHER_WAY] if (number + way) % 2 else [])
    for number, case in enumerate(PERFTEST) for way, server in enumerate(ROLES)])
def test_perftest(mixed, program, options, server):
    perftest(*roles(mixed, server), program, options)


ODP_TWICE = pytest.mark.long("a range is in the gate")


@pytest.mark.parametrize("how,server", [
    ("range", "qhca-serves"), pytest.param("range", "rxe-serves", marks=OTHER_WAY),
    pytest.param("implicit", "qhca-serves", marks=OTHER_WAY),
    pytest.param("implicit", "rxe-serves", marks=ODP_TWICE)])
def test_on_demand_paging(mixed, progs, how, server):
    """Our memory comes when it is used: Soft-RoCE sees a delay, no error. Not by
    ibv_rc_pingpong, which ends although the other may have missed the last acknowledge:
    Soft-RoCE takes its seven retries for any number of them and never ends."""
    sides = roles(mixed, server)
    lines = [f"{progs.path('faultpp')} --timeout 14 --len 200000 --iters 20"
             f"{f' --odp {how}' if side.nic == 'qhca' else ''}" for side in sides]
    before = mixed.a.ethtool_stat("page_faults")
    for end in run_pair(*sides, lines[0], f"{lines[1]} {sides[0].ip}"):
        found = json.loads(end.out)
        assert (found["done"], found["status"], found["wrong"]) == (20, 0, 0), found
    assert mixed.a.ethtool_stat("page_faults") > before


def extended(server, client, progs):
    """FLUSH and ATOMIC WRITE from client to server; the client's result."""
    served, result = run_pair(server, client, progs.path("extops"))
    did = json.loads(result.out)
    assert json.loads(served.out) == {"ok": True, "wrong": 0}
    assert did["ok"]
    assert did["persistent"] == "Invalid argument"
    return did


@pytest.mark.parametrize("server", ROLES)
def test_flush_and_atomic_write(mixed, progs, server):
    """Each asks the other to flush and to write words at once; and what was not
    registered to be flushed is refused."""
    did = extended(*roles(mixed, server), progs)
    assert did["forbidden"] == "remote access error"


@pytest.mark.parametrize("server", ROLES)
def test_operations(mixed, progs, server):
    """Every operation of user verbs, successful and failing, in both roles."""
    operations(*roles(mixed, server), progs)


def test_no_icrc_errors(mixed):
    """qhca never dropped a packet of Soft-RoCE as corrupted."""
    assert mixed.a.ethtool_stat("roce_icrc_errors") == 0
    assert mixed.a.ethtool_stat("roce_rx_malformed") == 0


@pytest.mark.parametrize("server", ROLES)
def test_memory_window(mixed, progs, server):
    """A window of one side, used and invalidated by the other (SEND with invalidate)."""
    owner, user = roles(mixed, server)
    for result in run_pair(owner, user, progs.path("mwpeer")):
        assert json.loads(result.out) == {"window": "ok"}

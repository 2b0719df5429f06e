# SPDX-License-Identifier: GPL-2.0-or-later
"""The pingpong and perftest programs of the distribution, between two guests."""

import re

import pytest

from labs import run_pair

RC_CASES = [
    ("4K", "-s 4096 -n 500"),
    ("64K", "-s 65536 -n 100"),
    ("4K-events", "-s 4096 -n 300 -e"),
    ("64K-events", "-s 65536 -n 100 -e"),
    ("odd-size", "-s 12345 -n 100"),
    ("tiny", "-s 1 -n 500"),
    ("1M", "-s 1048576 -n 10"),
]


def pingpong(server, client, program, options, port=18515):
    """Run one pingpong; both ends must succeed and verify their data."""
    line = f"{program} -d $IBDEV -g $GIDX -p {port} -c {options}"
    served, result = run_pair(server, client, line)
    for side in (result, served):
        assert "invalid data" not in side.out + side.err, side.out + side.err
    assert re.search(r"iters in .* usec/iter", result.out), result.out


# Both ways in the gate, as both adapters do both; but not each size.
OTHER_WAY = pytest.mark.long("three of them go both ways in the gate")
WAYS = [pytest.param(direction, *case, id=f"{case[0]}-{direction}",
                     marks=[OTHER_WAY] if number > 2 and direction == "b-to-a" else [])
        for number, case in enumerate(RC_CASES) for direction in ("a-to-b", "b-to-a")]


@pytest.mark.parametrize("direction,name,options", WAYS)
def test_rc_pingpong(pair, direction, name, options):
    server, client = (pair.b, pair.a) if direction == "a-to-b" else (pair.a, pair.b)
    pingpong(server, client, "ibv_rc_pingpong", options)


BETWEEN = pytest.mark.long("the smallest and the largest are in the gate")


@pytest.mark.parametrize("mtu", [256, *(pytest.param(mtu, marks=BETWEEN)
                                        for mtu in (512, 1024, 2048)), 4096])
def test_rc_pingpong_path_mtu(pair, mtu):
    """Every path MTU; the netdev must carry the largest."""
    pair.set_mtu(4500)
    pingpong(pair.b, pair.a, "ibv_rc_pingpong", f"-m {mtu} -s 10000 -n 50")


def test_rc_pingpong_ipv6(pair):
    """The same over an IPv6 GID."""
    server, client = pair.b, pair.a
    gidx = {g.name: g.wait_gid(g.ip6) for g in (server, client)}
    run_pair(server, client, f"ibv_rc_pingpong -d $IBDEV -g {gidx[server.name]} -c -n 100",
             f"ibv_rc_pingpong -d $IBDEV -g {gidx[client.name]} -c -n 100 {server.ip}")


@pytest.mark.parametrize("options", ["-s 1024 -n 300", "-s 16 -n 300 -e"])
def test_ud_pingpong(pair, options):
    pingpong(pair.b, pair.a, "ibv_ud_pingpong", options)


def test_srq_pingpong(pair):
    """Many QPs on one shared receive queue."""
    pingpong(pair.b, pair.a, "ibv_srq_pingpong", "-q 8 -s 4096 -n 400")


def test_loopback_pingpong(pair):
    """Both ends on one adapter."""
    run_pair(pair.a, pair.a, "ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 300")


ALIKE = pytest.mark.long("the same program with other sizes is in the gate")
PERFTEST = [
    ("ib_send_bw", "-s 65536 -n 200"),
    pytest.param("ib_send_bw", "-s 8 -n 2000", marks=ALIKE),
    pytest.param("ib_write_bw", "-s 65536 -n 200", marks=ALIKE),
    ("ib_write_bw", "-s 1048576 -n 20"),
    ("ib_write_bw", "-s 4096 -n 1000 -q 4"),
    ("ib_read_bw", "-s 65536 -n 200"),
    ("ib_send_lat", "-s 2 -n 200"),
    ("ib_write_lat", "-s 2 -n 200"),
    ("ib_read_lat", "-s 2 -n 200"),
    ("ib_send_bw", "-s 4096 -n 500 -b"),
    pytest.param("ib_write_bw", "-s 4096 -n 500 -b", marks=ALIKE),
    ("ib_send_bw", "-s 1024 -n 500 -c UD"),
    ("ib_send_lat", "-s 64 -n 150 -c UD"),
    ("ib_send_bw", "-s 4096 -n 300 -e"),
]


def perftest(server, client, program, options, timeout=180):
    """Run one perftest program and return the figures of its last line.

    On a busy host it finds no frequency of the CPU: with -F that does not end it, and it
    divides by zero."""
    line = f"{program} -d $IBDEV -x $GIDX -F {options}"
    _, result = run_pair(server, client, line, timeout=timeout)
    rows = re.findall(r"^\s*(\d+)\s+(\d+)\s+((?:[\d.]|-?(?:nan|inf)|[ \t])+?)\s*$", result.out, re.M)
    assert rows, f"no result line:\n{result.out}"
    return rows[-1]


@pytest.mark.parametrize("program,options", PERFTEST)
def test_perftest(pair, program, options):
    size = int(re.search(r"-s (\d+)", options).group(1))
    count = int(re.search(r"-n (\d+)", options).group(1))
    row = perftest(pair.b, pair.a, program, options)
    assert int(row[0]) == size
    assert int(row[1]) >= count

# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA over the ordinary wire alone, in frames and in super-frames: other labs with only qhca
adapters use it only while packets are observed."""

import pytest

from labs import run_pair
from test_pingpong import perftest, pingpong


pytestmark = pytest.mark.long("a lab of its own: test_platform and test_interop have no links either")
ALIKE = pytest.mark.long("large messages and small ones are in the gate")


@pytest.mark.parametrize("program,options", [
    ("ibv_rc_pingpong", "-s 1000000 -n 30 -r 20"),
    pytest.param("ibv_uc_pingpong", "-s 65537 -n 100 -e", marks=ALIKE),
    ("ibv_ud_pingpong", "-s 2048 -n 300"),
    pytest.param("ibv_srq_pingpong", "-q 8 -s 10000 -n 300", marks=ALIKE),
])
def test_data(wire_pair, program, options):
    """The data arrives unchanged."""
    pingpong(wire_pair.b, wire_pair.a, program, options)


@pytest.mark.parametrize("program,options", [
    pytest.param("ib_write_bw", "-s 65536 -n 500", marks=ALIKE),
    ("ib_read_bw", "-s 1048576 -n 30"), ("ib_send_bw", "-s 8 -n 5000"),
    pytest.param("ib_atomic_lat", "-n 300", marks=ALIKE),
])
def test_perftest(wire_pair, program, options):
    """Each path of the payload."""
    perftest(wire_pair.b, wire_pair.a, program, options)


def test_operations(wire_pair, progs):
    """All operations, each checked by its program."""
    run_pair(wire_pair.b, wire_pair.a, progs.path("ops"))

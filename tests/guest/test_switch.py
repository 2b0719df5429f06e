# SPDX-License-Identifier: GPL-2.0-or-later
"""More than two guests: an ordinary Ethernet switch between the adapters."""

import itertools

import pytest
from qhca_lab.pair import start_server
from test_pingpong import perftest, pingpong


@pytest.mark.long("test_three_guests has each pair of them")
def test_everybody_reaches_everybody(trio):
    """Three guests, each pair of them: ping and RC traffic with checked data."""
    assert [g.ip for g in trio.guests] == ["10.99.0.1", "10.99.0.2", "10.99.0.3"]
    for one, other in itertools.permutations(trio.guests, 2):
        one.run(f"ping -c 2 -i 0.2 -W 5 {other.ip}")
    for one, other in itertools.combinations(trio.guests, 2):
        pingpong(one, other, "ibv_rc_pingpong", "-s 4096 -n 50 -e")


def test_two_clients_of_one_server(trio):
    """Two adapters write to a third at the same time."""
    a, b, c = trio.guests
    line = "ib_write_bw -d $IBDEV -x $GIDX -F -s 4096 -n 500"
    servers = [start_server(a, f"{line} -p {port}", port=port) for port in (18600, 18601)]
    clients = [b.start(f"{line} -p 18600 {a.ip}"), c.start(f"{line} -p 18601 {a.ip}")]
    for job in clients + servers:
        result = job.wait(120)
        assert result.rc == 0, result.describe()
    perftest(c, b, "ib_read_bw", "-s 4096 -n 100")

# SPDX-License-Identifier: GPL-2.0-or-later
"""XRC, FLUSH, ATOMIC WRITE and UD with shared receive queues, by programs."""

import json

import pytest

from qhca_lab.pair import start_server
from test_interop import extended


@pytest.mark.parametrize(
    "clients,options", [(4, "-n 200"), (2, "-n 100 -s 65536"), (3, "-n 50 -e")]
)
def test_xsrq_pingpong(pair, clients, options):
    """One server, several clients, each with an XRC SRQ."""
    line = f"ibv_xsrq_pingpong -d $IBDEV -g $GIDX {options}"
    job = start_server(pair.b, f"{line} -c {clients}")
    jobs = [pair.a.start(f"{line} {pair.b.ip}") for _ in range(clients)]
    for one in jobs + [job]:
        result = one.wait(120)
        assert result.rc == 0, result.describe()


@pytest.mark.parametrize("orderly", ["", "orderly"])
def test_xrc_domain_of_processes(pair, progs, orderly):
    """A target outlives its creator while another process has it open; an SRQ does not outlive its
    creator."""
    out = pair.a.run(f"rm -f /tmp/xrcd; {progs.path('xrc')} /tmp/xrcd {orderly}").out
    assert json.loads(out) == {
        "sent": 40, "first": 20, "second": 20, "later": 5, "second_later": 5,
        "gone": "remote invalid request error",
        "in_error": True,
    }


def test_flush_and_atomic_write(pair, progs):
    assert extended(pair.b, pair.a, progs)["forbidden"] == "remote access error"


def test_ud_srq(pair, progs):
    assert json.loads(pair.a.run(progs.path("udsrq")).out) == {
        "good": 64, "of": 64, "last": 1, "event": "SRQ limit reached",
    }


def test_masked_atomics(pair, modules):
    """Only the kernel has this verb: a module uses it when it is loaded."""
    pair.a.run(f"insmod {modules('masked_atomics')} netdev=$NETDEV gid_index=$GIDX"
               " || { dmesg | tail -3 >&2; exit 1; }")
    pair.a.run("dmesg | grep 'masked_atomics: 10 cases are right'")
    pair.a.run("rmmod masked_atomics")


def test_nothing_is_left(pair):
    """All domains, SRQs and QPs of the programs above are gone."""
    for guest in pair:
        out = guest.run("rdma resource show").out
        assert "srq 0" in out, out

# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with an adapter that is built without its observers (CONFIG_QHCA_OBSERVE=n)."""

import os
import subprocess

import pytest

from labs import TOP, run_pair
from test_driver import ping

pytestmark = pytest.mark.long("two guests of their own, booted; the device alone is in test-bare")


def pingpong(lab, program, options):
    run_pair(lab.b, lab.a, f"{program} -d $IBDEV -g $GIDX {options}")


@pytest.mark.parametrize("program,options", [
    ("ibv_rc_pingpong", "-c -s 65536 -n 100"),
    ("ibv_rc_pingpong", "-c -s 4096 -n 300 -e"),
    ("ibv_rc_pingpong", "-c -o -s 65536 -n 100"),
    ("ibv_uc_pingpong", "-c -s 4096 -n 300"),
    ("ibv_ud_pingpong", "-c -s 1024 -n 300"),
    ("ibv_srq_pingpong", "-c -q 8 -s 4096 -n 400"),
    ("ibv_xsrq_pingpong", "-n 100"),
])  # fmt: skip
def test_pingpong(bare_pair, program, options):
    pingpong(bare_pair, program, options)


@pytest.mark.parametrize("program", ["ib_write_bw -s 65536 -n 200", "ib_read_bw -s 65536 -n 200",
                                     "ib_send_bw -s 8 -n 2000", "ib_atomic_bw -n 500"])
def test_perftest(bare_pair, program):
    run_pair(bare_pair.b, bare_pair.a, f"{program} -d $IBDEV -x $GIDX -F")


def test_tcp(bare_pair):
    """The Ethernet function, too."""
    ping(bare_pair)
    run_pair(bare_pair.b, bare_pair.a, "iperf3 -s -1", f"iperf3 -c {bare_pair.b.ip} -n 64M")


def test_driver_again(bare_pair):
    """The driver is unloaded and reloaded, health and counters included."""
    for guest in bare_pair:
        guest.run("qhca-unload && qhca-load", 120)
        guest.setup_nic()
        assert guest.health("device")["state"] == "healthy"
    pingpong(bare_pair, "ibv_rc_pingpong", "-n 100")


@pytest.mark.parametrize("words", [
    ["qhca-scope", "qp"], ["qhca-scope", "break", "doorbell"], ["qhca-lab", "fault", "add", "a", "drop"],
])  # fmt: skip
def test_no_observers(bare_pair, words):
    """A request to an observer gets the error that there is none."""
    told = subprocess.run([str(TOP / "lab" / words[0]), *words[1:]], check=False, text=True,
                          capture_output=True, env=os.environ | {"QHCA_LAB": bare_pair.name})
    assert told.returncode
    assert "without qhca, or without its observers" in told.stderr, told.stderr

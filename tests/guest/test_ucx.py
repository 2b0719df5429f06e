# SPDX-License-Identifier: GPL-2.0-or-later
"""
UCX between two guests, and Open MPI over it. UCX's UD transport takes the L3 header type of a
datagram from the completion, and drops all datagrams of an unexpected type; its RC transport is
connected by UD.
"""

import re

import pytest

from labs import TOP
from qhca_lab.pair import start_server

PORT = 13337
# -P 0: the two ends find each other by TCP, without MPI. One run for all tests: they take
# less time than the program's start.
TESTS = TOP / "tests/guest/scripts/ucx.tests"
LINE = f"exec ucx_perftest -P 0 -p {PORT} -n 20 -w 2 -b /tmp/ucx.tests"

TRANSPORTS = ["rc,ud,self",
              pytest.param("ud,self", marks=pytest.mark.long("RC is connected by means of UD"))]


def ucx(guest, address, transports):
    """Makes UCX use this adapter, GID and these transports only. Its module for a GPU comes with a
    compiler for it, 200 MB to load and to relocate at each start."""
    return {
        "UCX_MODULES": "^rocm*",
        "UCX_NET_DEVICES": f"{guest.ibdev}:1",
        "UCX_IB_GID_INDEX": str(guest.wait_gid(address)),
        "UCX_TLS": transports,
    }


@pytest.mark.parametrize("transports", TRANSPORTS)
@pytest.mark.parametrize("family", [
    "ipv4", pytest.param("ipv6", marks=pytest.mark.long("IPv4 is what UCX is particular about")),
])
def test_ucx(pair, family, transports):
    """Each test of ucx_perftest ends, with all its iterations."""
    server, client = pair.b, pair.a
    environments = []
    for guest in (server, client):
        guest.put(TESTS, "/tmp/ucx.tests")
        address = guest.ip if family == "ipv4" else guest.ip6
        environments.append(ucx(guest, address, transports))
    job = start_server(server, LINE, env=environments[0], port=PORT)
    result = client.run(f"{LINE} {server.ip}", env=environments[1], timeout=300)
    served = job.wait()
    assert served.rc == 0, f"server: {served.out}\n{served.err}"
    count = sum(not line.startswith("#") for line in TESTS.read_text().splitlines())
    finals = re.findall(r"^Final:\s+(\d+)", result.out, re.M)
    assert finals == ["20"] * count, f"{result.out}\n{result.err}"


# pml ucx: UCX or nothing. It knows of no transport but these, see ucx().
MPIRUN = (
    "exec mpirun --allow-run-as-root -np 2 --host a:1,b:1 --map-by node"
    " --prtemca plm_ssh_agent 'python3 /tmp/mpi.py agent' --mca pml ucx"
    " -x UCX_NET_DEVICES -x UCX_IB_GID_INDEX -x UCX_TLS -x UCX_MODULES python3 /tmp/mpi.py program"
)


@pytest.mark.long("twenty seconds of starting programs; test_ucx tests what it needs")
def test_open_mpi(pair):
    """Messages of all protocols and a collective operation, over UCX alone."""
    for guest in pair:
        guest.put(TOP / "tests/guest/scripts/mpi.py", "/tmp/mpi.py")
    # mpirun hands one environment to both: the guests are alike
    env = ucx(pair.a, pair.a.ip, "rc,ud,self")
    assert env == ucx(pair.b, pair.b.ip, "rc,ud,self")
    job = start_server(pair.b, "exec python3 /tmp/mpi.py serve", port=13338)
    result = pair.a.run(MPIRUN, env=env, timeout=180)
    assert sorted(result.out.split("\n")) == ["", "rank 0: done", "rank 1: done"], result.out
    assert job.wait().rc == 0

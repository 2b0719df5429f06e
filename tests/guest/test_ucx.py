# SPDX-License-Identifier: GPL-2.0-or-later
"""
UCX between two guests, and Open MPI over it. UCX's UD transport takes the kind
of a datagram's L3 header from the completion, and drops all if that is not what
it expects; its RC transport is connected by means of UD.
"""

import re

import pytest

PORT = 13337
# -P 0: the two ends find each other by TCP, without MPI.
LINE = f"exec ucx_perftest -P 0 -p {PORT} -n 20 -w 2 -t"

# tag matching, and all that UCX does to memory of the peer
TESTS = ["tag_lat", "tag_bw", "ucp_put_bw", "ucp_get", "ucp_fadd"]
TRANSPORTS = ["rc,ud,self", "ud,self"]


def ucx(guest, address, transports):
    """Tells UCX which adapter, GID and transports to use, and no others."""
    return {
        "UCX_NET_DEVICES": f"{guest.ibdev}:1",
        "UCX_IB_GID_INDEX": str(guest.wait_gid(address)),
        "UCX_TLS": transports,
    }


@pytest.mark.parametrize("transports", TRANSPORTS)
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_ucx(pair, family, transports):
    """Each test of ucx_perftest ends, with all its iterations."""
    server, client = pair.b, pair.a
    addresses = {g.name: g.ip if family == "ipv4" else g.ip6 for g in pair}
    for test in TESTS:
        job = server.start(f"{LINE} {test}", env=ucx(server, addresses["b"], transports))
        client.wait_port(server.ip, PORT)
        result = client.run(f"{LINE} {test} {server.ip}",
                            env=ucx(client, addresses["a"], transports), timeout=120)
        served = job.wait(60)
        assert served.rc == 0, f"server, {test}: {served.out}\n{served.err}"
        final = re.search(r"^Final:\s+(\d+)", result.out, re.M)
        assert final and int(final.group(1)) == 20, f"{test}: {result.out}\n{result.err}"

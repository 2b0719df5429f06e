# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest's options, one by one and in pairs: between two qhca guests, over a memory link and over
the wire, and between qhca and Soft-RoCE in both roles. Whatever works between two Soft-RoCE devices
works between qhca and both."""

import perftest_pairs
import pytest

from qhca_lab.errors import CommandTimeout

# One per option that changes what is sent or how it is waited for.
OPTIONS = [
    *(f"{p} -a -n 5" for p in ("ib_send_bw", "ib_write_bw", "ib_read_bw",
                               "ib_send_lat", "ib_write_lat", "ib_read_lat")),
    "ib_send_bw -s 1 -n 100",
    "ib_write_bw -s 4097 -n 100",
    "ib_read_bw -s 65537 -n 20",
    "ib_send_bw -q 8 -n 100",
    "ib_write_bw -q 16 -s 4096 -n 100",
    "ib_read_bw -q 4 -s 10000 -n 50",
    *(f"{p} -e -n 100" for p in ("ib_send_bw", "ib_read_bw", "ib_send_lat", "ib_read_lat")),
    "ib_send_bw -R -n 50",
    "ib_write_bw -R -n 50",
    "ib_read_lat -R -n 50",
    "ib_send_lat -R -c UD -s 512 -n 50",
    "ib_send_bw -t 1 -n 50",
    "ib_write_bw -t 512 -n 1000 -s 1000",
    "ib_send_bw -r 16 -t 16 -n 100",
    "ib_write_bw -l 8 -t 64 -s 500 -n 160",
    "ib_send_bw -l 4 -t 64 -s 500 -n 160",
    "ib_send_lat -I 64 -s 64 -n 100",
    "ib_write_bw -I 128 -s 128 -n 100",
    *(f"{p} -c UC -n 100" for p in ("ib_send_bw", "ib_write_bw", "ib_send_lat", "ib_write_lat")),
    "ib_send_bw -c UD -s 1024 -n 100",
    "ib_send_bw -c UD -s 1024 -q 4 -n 100",
    "ib_send_lat -c UD -e -s 256 -n 50",
    "ib_send_bw --use-srq -q 4 -s 2000 -n 100",
    "ib_send_bw --use-srq -e -s 2000 -n 100",
    "ib_atomic_bw -A FETCH_AND_ADD -n 100",
    "ib_atomic_bw -A CMP_AND_SWAP -q 2 -n 100",
    "ib_atomic_lat -A CMP_AND_SWAP -e -n 50",
    "ib_read_bw -o 1 -n 50",
    *(f"{p} -b -s 5000 -n 100" for p in ("ib_send_bw", "ib_write_bw", "ib_read_bw")),
    *(f"ib_write_bw -m {mtu} -s 20000 -n 20" for mtu in (256, 1024)),
    "ib_write_bw -D 1 -s 4096",
    *perftest_pairs.lines(),
]
LONG = pytest.mark.long(f"{5 * len(OPTIONS)} runs of perftest; test_pingpong and test_interop have "
                        "the usual ones")

# What fails between two guests with Soft-RoCE, and its message.
refused: dict[str, str] = {}


def run(lab, server, client, options):
    """"" or the output of both ends."""
    line = f"{options} -F -d $IBDEV -x $GIDX"
    server, client = lab[server], lab[client]
    job = server.start(line)
    if " -R " in options:
        server.wait_for("rdma res show cm_id | grep -q 'LISTEN.*:18515'")
    else:
        client.wait_port(server.ip, 18515)
    result = client.run(f"timeout {client.seconds(120)} {line} {server.ip}", timeout=150,
                        check=False)
    try:
        # A server whose client has failed may never end.
        served = job.wait(5 if result.rc else 60)
    except CommandTimeout as late:
        served = late.result
    return "\n".join(r.describe() for r in (result, served) if r.rc != 0)


@LONG
@pytest.mark.parametrize("options", OPTIONS)
def test_soft_roce(rxe_pair, options):
    """The reference for the others; what fails here is skipped there."""
    words = run(rxe_pair, "b", "a", options)
    assert not words or options not in perftest_pairs.lines(), words    # they are all right
    if words:
        refused[options] = words
        pytest.skip("Soft-RoCE does not do this with itself")


def measure(lab, server, client, options):
    words = run(lab, server, client, options)
    if words and options in refused:
        pytest.skip("nor does Soft-RoCE with itself")
    assert not words, words


@LONG
@pytest.mark.parametrize("options", OPTIONS)
def test_qhca(pair, options):
    measure(pair, "b", "a", options)


@LONG
@pytest.mark.parametrize("options", OPTIONS)
def test_qhca_over_the_wire(wire_pair, options):
    measure(wire_pair, "b", "a", options)


@LONG
@pytest.mark.parametrize("server,client", [("a", "b"), ("b", "a")],
                         ids=["qhca-serves", "rxe-serves"])
@pytest.mark.parametrize("options", OPTIONS)
def test_mixed(mixed, server, client, options):
    measure(mixed, server, client, options)

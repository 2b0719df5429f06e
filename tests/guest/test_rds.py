# SPDX-License-Identifier: GPL-2.0-or-later
"""
Reliable Datagram Sockets: the interface of RDS over RDMA line by line, traffic
with RDMA in both directions, and MSG_ZEROCOPY, which Linux has for RDS over TCP
only.  The programs are in progs/rds.
"""

import contextlib
import json
import re

import pytest

from labs import run_pair
from test_fault_injection import faults

# 7 retries, not the 1 of RDS: on a busy host an acknowledgment may be late, and
# an RDMA operation is not repeated on a new connection.
RETRIES = 7


RETRY = "rds_ib_retry_count={}"


@contextlib.contextmanager
def rds(*guests, transport="rds_rdma", parameters=RETRY.format(RETRIES)):
    """RDS, freshly loaded."""
    try:
        for guest in guests:
            guest.run(f"modprobe {transport} {parameters}")
        yield
    finally:
        for guest in guests:
            guest.run(f"modprobe -r {transport} rds", timeout=120)


def interface(server, client, progs, groups):
    """rdstest: @client exposes memory, @server accesses it."""
    program = progs.path("rdstest")
    _served, result = run_pair(server, client, f"{program} serve",
                               f"{program} run {server.ip} {groups}", timeout=300)
    plan = int(re.match(r"1\.\.(\d+)\n", result.out)[1])
    assert plan == len(re.findall(r"^ok ", result.out, re.MULTILINE)), result.out


@contextlib.contextmanager
def repaired_soft_roce(guests, modules):
    """
    Linux 6.12's Soft-RoCE does not report flushed receives to a CQ that is armed for
    solicited completions, as RDS arms it: there a connection never ends, and rds_rdma
    cannot be unloaded, whatever the adapter at the other end is.  qhca does report
    them; its end needs no module.
    """
    able = [g for g in guests if g.nic == "rxe"]
    try:
        for guest in able:
            guest.run(f"insmod {modules('rxe_flush')}")
        yield
    finally:
        for guest in able:
            guest.run("rmmod rxe_flush")


@pytest.fixture(name="repaired")
def repaired_mixed(mixed, modules):
    """qhca and Soft-RoCE, for RDS."""
    with repaired_soft_roce(mixed, modules):
        yield mixed


ALL = "first register transfer status refused"


def roles(lab, lender):
    """(server, client) so that guest @lender lends."""
    return (lab.b, lab.a) if lender == "a" else (lab.a, lab.b)


# the entry of a region's table, which what is sent and received does not have
BAD_TABLE = {"action": "table-error", "kind": "data", "count": 50}


def other_error(lab, progs, lender):
    """The lender's adapter fails: the other side gets OTHER_ERROR."""
    with faults(lab, **{lender: [BAD_TABLE]}) as listed:
        interface(*roles(lab, lender), progs, "fault")
        assert listed(lender)[0]["hits"] >= 1


def busy(lab, progs, lender, modules):
    """A region cannot be mapped for DMA: EBUSY, and the next one can."""
    lab[lender].run(f"insmod {modules('fail_map_sg')} nth=1")
    try:
        interface(*roles(lab, lender), progs, "busy")
        assert lab[lender].run("cat /sys/module/fail_map_sg/parameters/nth").out == "0\n"
    finally:
        lab[lender].run("rmmod fail_map_sg")


OTHER_WAY = pytest.mark.long("the other way round is in the gate")


@pytest.mark.parametrize("lender", ["a", pytest.param("b", marks=OTHER_WAY)])
def test_interface(pair, progs, modules, lender):
    with rds(*pair):
        interface(*roles(pair, lender), progs, ALL)
        other_error(pair, progs, lender)
        busy(pair, progs, lender, modules)


@pytest.mark.long("between two of qhca it is in the gate")
@pytest.mark.parametrize("lender", ["a", "b"], ids=["qhca-lends", "rxe-lends"])
def test_interface_with_soft_roce(repaired, progs, modules, lender):
    with rds(*repaired):
        interface(*roles(repaired, lender), progs, ALL)
        if lender == "a":
            other_error(repaired, progs, lender)
            busy(repaired, progs, lender, modules)


@pytest.mark.long("shows what Soft-RoCE does; of qhca all is in the gate")
def test_soft_roce_with_itself(rxe_pair, progs, modules):
    """Without an adapter of ours RDS needs the module, too, and is well with it."""
    mended = "cat /sys/module/rxe_flush/parameters/mended"
    with repaired_soft_roce(rxe_pair, modules):
        with rds(*rxe_pair):
            interface(rxe_pair.b, rxe_pair.a, progs, "first transfer")
        for guest in rxe_pair:
            assert int(guest.run(mended).out) > 0, "Soft-RoCE reports them: no module is needed"


# ------------------------------------------------------------------- stress


def stress(active, passive, progs, options, timeout=240, retries=RETRIES):
    """rdsstress: everything sent has arrived once, in order and correct."""
    program = progs.path("rdsstress")
    with rds(active, passive, parameters=RETRY.format(retries)):
        before = {g: g.ethtool_stat("roce_tx_bytes") for g in (active, passive)
                  if g.nic == "qhca"}
        served, result = run_pair(passive, active, program,
                                  f"{program} -s {passive.ip} -v -z {options}", timeout=timeout)
        print(f"active:\n{result.out}passive:\n{served.out}")
        pattern = r"requests (\d+) out (\d+) in, ACKs (\d+) out (\d+) in, " \
                  r"read (\d+) K, written (\d+) K"
        counts = [[int(n) for n in re.search(pattern, side.out).groups()]
                  for side in (result, served)]
        for guest, sent in before.items():
            assert guest.ethtool_stat("roce_tx_bytes") > sent
    (out, into, acks_out, acks_in, *_), (back, got, *_) = counts
    assert out == got == acks_in > 0 and into == back == acks_out > 0
    return counts


SHORT = "-T 2 -t 2 -d 4 -q 256 -a 256 -D 40000 -M 0"
WITHOUT_RDMA = "-T 2 -t 2 -d 4 -q 9000 -a 100"


@pytest.mark.parametrize("options", [
    SHORT,
    pytest.param(WITHOUT_RDMA, marks=pytest.mark.long("the same with RDMA is in the gate")),
])
def test_stress(pair, progs, options):
    stress(pair.a, pair.b, progs, options)


@pytest.mark.long("READ and WRITE in turn are in the gate")
def test_stress_modes(pair, progs):
    """-M 1 has READs only, -M 2 WRITEs only."""
    for mode, (reads, writes) in {1: (True, False), 2: (False, True)}.items():
        for counts in stress(pair.b, pair.a, progs, f"-T 1 -D 8192 -M {mode}"):
            assert (counts[4] > 0, counts[5] > 0) == (reads, writes)


@pytest.mark.long("ten seconds without a link; a connection that fails is in the gate")
def test_stress_without_a_link(pair, progs):
    """A link that goes and comes back costs the connection and no message: RDS makes another one,
    and sends again what was not acknowledged."""
    def lost():
        return sum(g.ethtool_stat("roce_retry_exceeded") for g in pair)

    before = lost()
    down = {"action": "link-down", "at": "packet", "qp-type": "rc", "nth": 300, "count": 1,
            "time": 10_000_000_000}
    with faults(pair, a=[down]) as listed:
        stress(pair.a, pair.b, progs, WITHOUT_RDMA, timeout=400, retries=1)
        assert listed("a")[0]["hits"] == 1
    assert lost() > before


@pytest.mark.long("between two of qhca it is in the gate")
@pytest.mark.parametrize("active", ["a", "b"], ids=["qhca-active", "rxe-active"])
def test_stress_with_soft_roce(repaired, progs, active):
    stress(*reversed(roles(repaired, active)), progs, SHORT)


@pytest.mark.long("ten minutes; a run of seconds is in the gate")
def test_long_stress(pair, progs):
    stress(pair.a, pair.b, progs, "-T 600 -t 4 -d 8 -q 2000 -a 300 -D 64K -M 0", timeout=1500)


# --------------------------------------------------------------- MSG_ZEROCOPY

TX_BYTES = "cat /sys/class/net/$NETDEV/statistics/tx_bytes"


def zerocopy(server, client, progs, options):
    """rdszcopy over RDS-TCP; the client's result."""
    program = progs.path("rdszcopy")
    served, result = run_pair(server, client, f"{program} serve",
                              f"{program} send {server.ip} {options}")
    sent = json.loads(result.out)
    assert json.loads(served.out) == {"received": sent["sent"], "wrong": 0}
    return sent


@pytest.mark.long("test_zero_copy has TCP's")
def test_zerocopy_over_tcp(pair, progs):
    """
    Each message comes back as a cookie, and RDS copies nothing on its way out.
    It is the interface that does not run over RDMA (test_interface).
    """
    a, b = pair.a, pair.b
    with rds(a, b, transport="rds_tcp", parameters=""):
        before = [a.ethtool_stat("roce_tx_bytes"), a.run(TX_BYTES).out]
        for size, count in ((60000, 200), (1, 20), (1 << 20, 8)):
            assert zerocopy(b, a, progs, f"{count} {size}") == \
                {"sent": count, "completed": count, "copied": 0}
        copied = zerocopy(b, a, progs, "20 60000 copy")
        # RDS also counts what it then has no room for
        assert copied["completed"] == 0 and copied["copied"] >= 20 * 60000
        assert a.ethtool_stat("roce_tx_bytes") == before[0]
        assert int(a.run(TX_BYTES).out) - int(before[1]) > 200 * 60000 + (8 << 20)

# SPDX-License-Identifier: GPL-2.0-or-later
"""
On-demand paging as seen by applications: copy-on-write, memory that is dropped, replaced, moved,
swapped out or slow, and missing memory.
"""

import json

import pytest

from test_bad_input import LOC_PROT, REM_ACCESS, REM_OP
from test_dmabuf import run_script
from test_pingpong import perftest


@pytest.fixture
def odp(pair, progs):
    """Run a case of the program odp on guest a; its result."""

    def run(case, timeout=120):
        return json.loads(pair.a.run(f"{progs.path('odp')} {case}", timeout=timeout).out)

    errors = pair.a.ethtool_stat("table_errors") + pair.a.ethtool_stat("dma_errors")
    yield run
    # the device never used a page that was taken away
    assert pair.a.ethtool_stat("table_errors") + pair.a.ethtool_stat("dma_errors") == errors


@pytest.fixture
def swap(pair):
    """Swap space for the guest."""
    # created once: after use it stays busy for a while
    pair.a.run("modprobe zram; [ $(cat /sys/block/zram0/disksize) -gt 0 ] || "
               "{ echo 256M > /sys/block/zram0/disksize && mkswap /dev/zram0; } && "
               "swapon /dev/zram0")
    yield
    pair.a.run("swapoff /dev/zram0")


def test_fork_and_copy_on_write(odp):
    """After a fork the adapter writes the parent's pages; the child keeps its own."""
    assert odp("fork") == {"read": 1, "parent": 1, "child": 1}


def test_memory_changes_under_traffic(odp, swap):
    """Pages dropped, replaced, moved and swapped out while they are used."""
    result = odp("churn 4")
    assert result["good"] == 1
    assert result["ops"] >= 25
    assert result["churns"] >= 100


SLOW = pytest.mark.long("the emulated IOMMU takes ten times as long; a fork is in the gate")


@pytest.mark.parametrize("case", ["fork"] + [
    pytest.param(case, marks=SLOW) for case in ("churn 4", "implicit")])
def test_behind_an_iommu(iommu_pair, progs, case):
    """The same with an IOMMU that maps each page: no page is used after its removal."""
    guest = iommu_pair.a
    errors = guest.ethtool_stat("dma_errors")
    result = json.loads(guest.run(f"{progs.path('odp')} {case}", timeout=300).out)
    assert result.get("good", result.get("parent")) == 1
    assert guest.ethtool_stat("dma_errors") == errors


@pytest.mark.long("test_memory_changes_under_traffic has pages that are swapped out, too")
def test_swapped_out(odp, swap):
    """A page written only by the adapter is dirty: it survives being swapped out."""
    result = odp("swap 32")
    assert result["swapped"] > result["kib"] // 2
    assert result["good"] == 1


@pytest.mark.long("test_perftest has atomics in the gate")
def test_atomics(odp, swap):
    """Atomics happen once each, wherever their pages are."""
    result = odp("atomics")
    assert result["good"] == 1
    assert result["sum"] == result["n"]


@pytest.mark.long("a disk that takes seconds; the engine's simulation has it in virtual time")
def test_page_fault_stalls_only_its_qp(pair, odp):
    """
    QPs wait seconds for pages from a slow disk, one as requester, one as responder, whose
    peer's timer expires meanwhile; another continues, including its page faults.
    """
    pair.a.run("modprobe null_blk nr_devices=1 gb=1 irqmode=2 completion_nsec=3000000000")
    try:
        result = odp("slow /dev/nullb0")
    finally:
        pair.a.run("rmmod null_blk")
    assert result["status"] == [0, 0]
    assert min(result["slow_ms"]) > 2000
    assert result["ops"] > 10
    assert result["longest_ms"] < min(result["slow_ms"]) / 2


def test_memory_that_is_gone(odp):
    """Unmapped or read-only: the same error as for a key without that right."""
    result = odp("gone")
    # a receive is the responder's own: an operational error for the peer
    assert result == {
        "write_from": LOC_PROT, "read_into": LOC_PROT, "send_from": LOC_PROT,
        "write_to": REM_ACCESS, "read_of": REM_ACCESS, "receive_into": REM_OP,
        "ro_write_from": 0, "ro_read_into": LOC_PROT,
        "ro_write_to": REM_ACCESS, "ro_read_of": 0,
    }


def test_implicit(odp):
    """One MR for all memory; tables for addresses are freed when these are unmapped."""
    result = odp("implicit")
    assert result["good"] == 1
    assert 1 <= result["before"] <= 20
    assert result["most"] < result["before"] + 50  # of 750 used
    assert result["left"] <= result["before"]
    assert result["unmapped"] == REM_ACCESS
    assert result["then"] <= result["before"]




def test_pages_of_a_process_that_is_gone(odp):
    """Its child asks for them: there is no such memory any more."""
    assert odp("orphan | cat")["refused"] > 0   # cat, because the process that was started is gone


ALIKE = pytest.mark.long("RDMA WRITE and atomics are in the gate")


@pytest.mark.parametrize("program", ["ib_write_bw", pytest.param("ib_read_bw", marks=ALIKE),
                                     pytest.param("ib_send_bw", marks=ALIKE), "ib_atomic_bw"])
def test_perftest(pair, program):
    """The distribution's programs, with on-demand paging on both sides."""
    before = [guest.ethtool_stat("page_faults") for guest in (pair.a, pair.b)]
    size = "" if program == "ib_atomic_bw" else "-s 1000000"
    perftest(pair.a, pair.b, program, f"--odp {size} -n 50")
    after = [guest.ethtool_stat("page_faults") for guest in (pair.a, pair.b)]
    assert all(new > old for new, old in zip(after, before))


@pytest.mark.parametrize("really", [0, 1])
def test_prefetch(pair, progs, really):
    """Prefetched memory meets no page fault, other memory does; wrong advice is refused."""
    guest = pair.a
    # The kernel may move pages by itself, which takes them away.
    guest.run("echo 0 > /proc/sys/vm/compaction_proactiveness; "
              "echo 1 > /proc/sys/vm/compact_memory")
    before = guest.ethtool_stat("page_faults")
    guest.run("rm -f /tmp/odp.*; mkfifo /tmp/odp.fifo")
    job = guest.start(f"{progs.path('odp')} prefetch {really} < /tmp/odp.fifo > /tmp/odp.out 2>&1; "
                      "echo $? > /tmp/odp.end")
    keeper = guest.start("exec 3> /tmp/odp.fifo; while [ ! -e /tmp/odp.go ]; do sleep 0.1; done; "
                         "echo >&3")
    try:
        guest.wait_for("grep -q lkey /tmp/odp.out || test -e /tmp/odp.end")
        said = guest.run("cat /tmp/odp.out").out
        assert "lkey" in said, said     # else it has failed and says why
        result = json.loads(said)
        faults = guest.ethtool_stat("page_faults") - before
        shown = json.loads(guest.run("rdma -j statistic show mr").out)
    finally:
        guest.run("touch /tmp/odp.go")
        keeper.wait()
        job.wait()
    einval, enoent, efault, eperm, eopnotsupp = 22, 2, 14, 1, 95
    assert result["errors"] == [einval, enoent, efault, eperm, eperm, eopnotsupp, 0, 0]
    if really:
        assert faults == 0
    else:
        assert faults >= 4  # at most 1 MiB each
    # in the order in which they were made: the target, the source, ...
    source = sorted((mr for mr in shown if "page_faults" in mr), key=lambda mr: mr["mrn"])[1]
    assert source["page_prefetch"] == (1024 if really else 0)
    assert source["page_faults"] == (0 if really else 1024)
    assert source["page_invalidations"] == 0


def test_page_that_cannot_be_mapped(pair, modules):
    """It is an error, and what was mapped before it goes with its memory."""
    pair.a.run(f"insmod {modules('fail_map')}")
    try:
        assert "prefetched: done" in run_script(pair.a, "nomap", "prefetched").out
    finally:
        pair.a.run("rmmod fail_map")


def test_page_fault_that_cannot_be_served(pair, modules):
    """The device asks once for each request, or a little more often if pages move meanwhile."""
    before = pair.a.ethtool_stat("page_faults")
    pair.a.run(f"insmod {modules('fail_map')} comm=kworker/u")
    try:
        assert "faulted: done" in run_script(pair.a, "nomap", "faulted").out
    finally:
        pair.a.run("rmmod fail_map")
    assert 3 <= pair.a.ethtool_stat("page_faults") - before <= 6

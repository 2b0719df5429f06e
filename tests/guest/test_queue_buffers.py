# SPDX-License-Identifier: GPL-2.0-or-later
"""
The queue buffer, point by point: allocation, pinning, the table the device
walks, posting and fetching.  The 25 tests follow the list in
docs/explanation/queue-buffers.md; the number in a test's name is the point's.

Three independent views are compared: the application's (addresses and
/proc/PID/pagemap), the device's (contexts by `rdma res show -r`, trace
events) and memory itself, read from outside through the hypervisor.
"""

import contextlib
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from contract import CONST, decode  # noqa: E402
from labs import PATIENCE, Python, run_pair  # noqa: E402
from qhca_lab.record import Recording  # noqa: E402
from test_capture import tshark  # noqa: E402
from test_dmabuf import run_script  # noqa: E402
from test_pingpong import pingpong  # noqa: E402
from timeline import Trace  # noqa: E402

PAGE = 4096
VALID, TABLE = CONST["QHCA_BTE_VALID"], CONST["QHCA_BTE_TABLE"]
ADDR = CONST["QHCA_BTE_ADDR_MASK"]
FORMS = {CONST[f"QHCA_BUF_{n.upper()}"]: n for n in ("direct", "list", "flat", "tree")}


def context(guest, kind, number):
    """The raw context of an object, by `rdma resource`."""
    key = {"qp": "lqpn", "cq": "cqn", "srq": "srqn", "mr": "mrn"}[kind]
    where = "link $IBDEV/1" if kind == "qp" else "dev $IBDEV"
    out = guest.run(f"rdma -jr res show {kind} {where} {key} {number}").out
    entry = json.loads(out)[0]
    struct = {"qp": "qhca_qpc", "cq": "qhca_cqc", "srq": "qhca_srqc", "mr": "qhca_mpt"}[kind]
    return decode(struct, bytes(entry["data"]))


def read_phys(lab, guest, addr, count):
    """@count 64-bit words of guest-physical memory, read by the hypervisor."""
    text = lab.hmp(guest.name, f"xp /{count}gx 0x{addr:x}")
    words = []
    for line in text.splitlines():
        words += [int(w, 16) for w in line.split(":", 1)[1].split()]
    assert len(words) == count, text
    return words


def pages_of(lab, guest, buf):
    """The page addresses a buffer descriptor leads to; checks every entry on the way."""
    npages = (buf.len + buf.first + (1 << buf.page_shift) - 1) >> buf.page_shift
    if FORMS[buf.form] == "flat":
        entries = read_phys(lab, guest, buf.addr, npages)
    else:
        assert FORMS[buf.form] == "tree"
        per = 1 << (buf.table_shift - 3)
        tables = [buf.addr]
        for level in range(buf.hops - 1):
            below = per ** (buf.hops - 1 - level)
            need = -(-npages // below)
            entries = [e for i, t in enumerate(tables)
                       for e in read_phys(lab, guest, t, min(per, need - i * per))]
            assert all(e & VALID and e & TABLE for e in entries)
            tables = [e & ADDR for e in entries]
        entries = [e for i, t in enumerate(tables)
                   for e in read_phys(lab, guest, t, min(per, npages - i * per))]
    assert all(e & VALID and not e & TABLE for e in entries)
    return [e & ADDR for e in entries]


def segments_of(lab, guest, buf):
    words = read_phys(lab, guest, buf.addr, 2 * buf.entries)
    valid = CONST["QHCA_BUF_SEG_VALID"]
    assert all(w & valid for w in words[1::2])
    return [(a, n & ~valid) for a, n in zip(words[::2], words[1::2])]


def frames(lab, guest, buf):
    """Page frame numbers of a queue, from the device's table."""
    if FORMS[buf.form] == "direct":
        return [(buf.addr >> 12) + i for i in range(buf.len // PAGE)]
    if FORMS[buf.form] == "list":
        return [(a >> 12) + i for a, n in segments_of(lab, guest, buf) for i in range(n // PAGE)]
    small = 1 << (buf.page_shift - 12)
    return [(a >> 12) + i for a in pages_of(lab, guest, buf)
            for i in range(small)][:buf.len // PAGE]


def runs(pfns):
    """Number of physically contiguous runs."""
    return 1 + sum(b != a + 1 for a, b in zip(pfns, pfns[1:]))


@contextlib.contextmanager
def layout(guest, text):
    """Force the form of buffer tables for a while."""
    knob = f"/sys/kernel/debug/qhca/{guest.pci}/layout"
    guest.run(f"echo '{text}' > {knob}")
    try:
        yield
    finally:
        guest.run(f"echo auto > {knob}")


class Qbuf:
    """A qbuf program that waits: what it said, and its end."""

    def __init__(self, lab, progs, options, env=None):
        self.guest = lab.a
        self.fifo = "/tmp/qbuf.fifo"
        self.guest.run(f"rm -f {self.fifo} /tmp/qbuf.out; mkfifo {self.fifo}")
        self.job = self.guest.start(
            f"stdbuf -oL {progs.path('qbuf')} --hold {self.fifo} {options} > /tmp/qbuf.out", env=env)
        self.guest._until(lambda: "\n" in self.said(), PATIENCE, "qbuf is silent")
        self.first = json.loads(self.said().splitlines()[0])
        self.last = None

    def said(self):
        return self.guest.read("/tmp/qbuf.out")

    def finish(self, timeout=120):
        if self.last is None:
            self.guest.run(f"echo go > {self.fifo}")
            result = self.job.wait(timeout)
            assert result.rc == 0, result.err
            self.last = json.loads(self.said().splitlines()[-1])
        return self.last


@contextlib.contextmanager
def open_qbuf(lab, progs, options=""):
    """(first JSON line, QPC) of a program that holds its QPs open."""
    q = Qbuf(lab, progs, options)
    try:
        yield q.first, context(lab.a, "qp", q.first["qpn"])
    finally:
        q.finish()


@contextlib.contextmanager
def open_scattered(lab, progs, options):
    """open_qbuf() with a ring that is not contiguous: memory that has just become free in
    one piece may make one so, whatever the program does."""
    for _ in range(20):
        with open_qbuf(lab, progs, f"{options} --scatter") as (first, qpc):
            if runs(first["pfns"]) > 1:
                yield first, qpc
                return
    pytest.fail("20 rings came out contiguous")


def make_room(guest):
    """Free memory in huge pages, after all that a guest has done."""
    guest.run("sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory")


def run_qbuf(lab, progs, options=""):
    out = lab.a.run(f"{progs.path('qbuf')} {options}", timeout=180).out.splitlines()
    return json.loads(out[0]), json.loads(out[-1])


# ------------------------------------------------------------- control path


def test_01_provider_allocates_at_create(pair, progs):
    """Creating QPs makes memory appear that the application did not ask for."""
    first, last = run_qbuf(pair, progs, "--depth 1024")
    need = 2 * 1024 * (first["stride"] + 32)  # two QPs' SQ and RQ
    assert first["anon_grew"] >= need
    # and it is not a buffer of the application's: only the create calls ran
    assert last["moved"] == 100


def test_02_start_and_size_are_page_multiples(pair, progs):
    for depth in (1, 3, 64, 1000):
        with open_qbuf(pair, progs, f"--depth {depth}") as (first, qpc):
            assert first["sq_aligned"] and first["maps_aligned"]
            assert qpc.sq.first == 0
            assert first["sq"] % PAGE == 0


@pytest.mark.parametrize("depth", [1, 2, 5, 64, 100, 1000, 4096])
def test_03_depth_is_what_fits(pair, progs, depth):
    """The returned depth covers the request and is the real capacity."""
    first, last = run_qbuf(pair, progs, f"--depth {depth}")
    assert first["depth"] >= depth and first["recv_depth"] >= depth
    enomem = 12
    assert (last["recv_fill"], last["recv_errno"]) == (first["recv_depth"], enomem)
    assert (last["send_fill"], last["send_errno"]) == (last["send_cap"], enomem)
    assert first["sq_len"] >= first["depth"] * first["stride"]


def test_04_kernel_gets_address_and_size(pair, progs):
    """Bad values are refused; see also test_bad_input."""
    result = json.loads(pair.a.run(progs.path("rawcreate")).out)
    assert result["cq_good"] == 0 and result["qp_good"] == 0
    assert all(err for case, err in result.items() if not case.endswith("_good")), result


def test_05_pages_are_pinned_and_released(pair, progs):
    first, last = run_qbuf(pair, progs, "--depth 1024")
    rings_kib = 2 * 1024 * (first["stride"] + 32) // 1024
    assert first["pin_grew_kib"] >= rings_kib
    assert last["pin_left_kib"] == 0


def test_05_memlock_limit_is_enforced(pair, progs):
    """Without the capability to lock memory, the limit counts."""
    qbuf = progs.path("qbuf")
    drop = "capsh --drop=cap_ipc_lock -- -c"
    ok = pair.a.run(f"{drop} 'ulimit -l 65536; {qbuf} --depth 64'", check=False)
    assert ok.rc == 0, ok.err
    bad = pair.a.run(f"{drop} 'ulimit -l 64; {qbuf} --depth 4096'", check=False)
    assert bad.rc == 2
    assert re.search("Cannot allocate memory|Resource temporarily", bad.err), bad.err


def test_06_pages_stay_under_pressure(pair, progs):
    """The kernel can swap out a plain page, but not the ring."""
    pair.a.run("test -e /var/swap || (dd if=/dev/zero of=/var/swap bs=1M count=64 status=none; "
               "chmod 600 /var/swap; mkswap /var/swap >/dev/null); swapon /var/swap")
    try:
        _, last = run_qbuf(pair, progs, "--depth 1024 --pageout --messages 3000 --nocap")
    finally:
        pair.a.run("swapoff /var/swap")
    assert last["control_present"] == 0, "nothing was swapped out: this test shows nothing"
    assert last["stable"] is True
    assert last["moved"] == 3000


def umem(guest, number, queue="sq"):
    """What the driver keeps of the memory of a queue of the QP, CQ or SRQ (debugfs): its
    fields, and the (address, length) of each SG entry."""
    kind = "qp" if queue in ("sq", "rq") else queue
    text = guest.run(f"cat /sys/kernel/debug/qhca/{guest.pci}/{kind}s/{number}").out
    part = re.search(rf"^{queue}:?\n((?:[ \t]+.*\n?)+)", text, re.M)
    assert part, text
    rows = re.findall(r"^\s+(\w+):\s*(.*)$", part.group(1), re.M)
    sg = [tuple(int(part, 0) for part in value.split(" + "))
          for name, value in rows if name == "sg"]
    return {name: value for name, value in rows if name != "sg"}, sg


@pytest.mark.parametrize("scatter", ["", "--scatter"], ids=["as-it-comes", "scattered"])
def test_07_umem_records_the_memory(pair, progs, scatter):
    """Length, address, access, and a scatter list that is the pages of the ring."""
    with open_qbuf(pair, progs, f"--depth 1024 {scatter}") as (first, _):
        fields, sg = umem(pair.a, first["qpn"])
        assert int(fields["va"], 0) == first["sq"]
        assert int(fields["length"], 0) == first["sq_len"] == sum(size for _, size in sg)
        assert int(fields["access"], 0) == CONST["QHCA_ACCESS_LOCAL_WRITE"]
        assert int(fields["sg_entries"], 0) == len(sg)
        pages = [(addr + at) >> 12 for addr, size in sg for at in range(0, size, PAGE)]
        assert pages == first["pfns"]


def pagemap(guest, pid, address, length):
    """Page frame numbers of memory of a process."""
    return [int(n) for n in guest.run(Python(f"""
import struct
with open("/proc/{pid}/pagemap", "rb") as file:
    file.seek({address} // {PAGE} * 8)
    data = file.read({length} // {PAGE} * 8)
print(*[n & (1 << 55) - 1 for (n,) in struct.iter_unpack("<Q", data)])
""")).out.split()]


def test_07_all_four_queues_are_pinned(pair, progs):
    """SQ, RQ, CQ and SRQ: the process, the kernel and the device have the same pages, also after
    the kernel has moved all that it may. The device is asked from outside."""
    a = pair.a
    with open_qbuf(pair, progs, "--depth 1024 --scatter") as (first, qpc):
        cq = pair.qmp("a", "qhca-inspect", object="cq", number=qpc.send_cqn)["look"]["raw"]
        # the program's is the only one
        [srqn] = a.run(f"ls /sys/kernel/debug/qhca/{a.pci}/srqs").out.split()
        srq = pair.qmp("a", "qhca-inspect", object="srq", number=int(srqn))["look"]["raw"]
        device = {
            "sq": (qpc.qpn, qpc.sq), "rq": (qpc.qpn, qpc.rq),
            "cq": (qpc.send_cqn, decode("qhca_cqc", bytes.fromhex(cq)).buf),
            "srq": (srqn, decode("qhca_srqc", bytes.fromhex(srq)).buf),
        }  # fmt: skip
        pinned = 0
        for moved in (False, True):
            if moved:
                make_room(a)
            for queue, (number, buf) in device.items():
                fields, sg = umem(a, number, queue)
                length = int(fields["length"], 0)
                assert length == sum(size for _, size in sg) and length % PAGE == 0
                pages = [addr + at >> 12 for addr, size in sg for at in range(0, size, PAGE)]
                seen = frames(pair, a, buf)
                assert seen and seen == pages[:len(seen)], queue
                assert pages == pagemap(a, first["pid"], int(fields["va"], 0), length), queue
                pinned += length * (not moved)
        assert first["pin_grew_kib"] >= pinned // 1024


def test_08_dma_address_is_not_the_virtual_one(pair, progs):
    """Without an IOMMU it is the physical address (with one: test_platform)."""
    with open_qbuf(pair, progs, "--depth 1024") as (first, qpc):
        assert frames(pair, pair.a, qpc.sq) == first["pfns"]
        assert qpc.sq.addr != first["sq"]


def test_09_scattered_pages(pair, progs):
    with open_scattered(pair, progs, "--depth 4096 --messages 9000") as (first, qpc):
        assert frames(pair, pair.a, qpc.sq) == first["pfns"]


def test_10_adjacent_pages_are_merged(pair, progs):
    """The SG list has an entry for each contiguous run, not for each page."""
    with open_qbuf(pair, progs, "--depth 4096 --scatter") as (first, _):
        fields, text = umem(pair.a, first["qpn"])
        assert int(fields["sg_entries"], 0) == runs(first["pfns"]), text


def test_11_device_walks_a_table_the_driver_built(pair, progs):
    """The QPC points to a table; its content, read in memory, is the ring."""
    with layout(pair.a, "flat page_shift=12"):
        with open_qbuf(pair, progs, "--depth 1024") as (first, qpc):
            assert FORMS[qpc.sq.form] == "flat"
            table = pages_of(pair, pair.a, qpc.sq)
            assert [a >> 12 for a in table] == first["pfns"]
            assert (qpc.sq.addr >> 12) not in first["pfns"]


def test_12_list_form(pair, progs):
    with layout(pair.a, "list"):
        with open_qbuf(pair, progs, "--depth 1024 --scatter --messages 3000") as (first, qpc):
            assert FORMS[qpc.sq.form] == "list"
            segments = segments_of(pair, pair.a, qpc.sq)
            assert sum(n for _, n in segments) == first["sq_len"]
            assert frames(pair, pair.a, qpc.sq) == first["pfns"]


PAGES = pytest.mark.long("tables of the other points have buffers of 4K")
BETWEEN = pytest.mark.long("the largest is in the gate, and the smallest in the other points")


@pytest.mark.parametrize("shift", [pytest.param(12, marks=PAGES), pytest.param(13, marks=BETWEEN),
                                   pytest.param(16, marks=BETWEEN), 21])
def test_13_equal_size_buffers(pair, progs, shift):
    """4K, 8K, 64K and 2M buffers: the size is in the QPC once, no lengths."""
    # rings in huge pages are contiguous enough for all of them
    make_room(pair.a)
    with layout(pair.a, f"flat page_shift={shift}"):
        q = Qbuf(pair, progs, "--depth 32768 --nocap --messages 500",
                 env={"QHCA_HUGE_PAGES": "1"})
    # MRs made from here on need not be contiguous
    qpc = context(pair.a, "qp", q.first["qpn"])
    assert FORMS[qpc.sq.form] == "flat" and qpc.sq.page_shift == shift
    assert frames(pair, pair.a, qpc.sq) == q.first["pfns"]
    assert q.finish()["moved"] == 500


FEWER = pytest.mark.long("three hops are in the gate")


@pytest.mark.parametrize("hops", [pytest.param(1, marks=FEWER), pytest.param(2, marks=FEWER), 3])
def test_14_multi_level_table(pair, progs, hops):
    with layout(pair.a, f"tree hops={hops} page_shift=12 table_shift=12"):
        with open_qbuf(pair, progs, "--depth 4096 --scatter --messages 5000") as (first, qpc):
            assert FORMS[qpc.sq.form] == "tree" and qpc.sq.hops == hops
            assert frames(pair, pair.a, qpc.sq) == first["pfns"]


def test_14_no_hop(pair, progs):
    """A contiguous ring needs no table at all."""
    make_room(pair.a)
    with layout(pair.a, "direct"):
        q = Qbuf(pair, progs, "--depth 64 --nocap", env={"QHCA_HUGE_PAGES": "1"})
    qpc = context(pair.a, "qp", q.first["qpn"])
    assert FORMS[qpc.sq.form] == "direct" and qpc.sq.hops == 0
    assert qpc.sq.addr == q.first["pfns"][0] << 12
    assert q.finish()["moved"] == 100


def test_14_impossible_layout_is_refused(pair, progs):
    """4096 WQEs over single pages do not fit one contiguous block."""
    with layout(pair.a, "direct"):
        result = pair.a.run(f"{progs.path('qbuf')} --depth 16384 --scatter", check=False)
        assert result.rc == 2 and "Invalid argument" in result.err


def test_15_qpc_holds_the_queue(pair, progs):
    with layout(pair.a, "tree hops=2 page_shift=12 table_shift=12"):
        with open_qbuf(pair, progs, "--depth 1024") as (first, qpc):
            assert qpc.qpn == first["qpn"]
            assert 1 << qpc.sq_shift == first["depth"]
            assert 1 << qpc.sq_stride == first["stride"]
            assert qpc.sq.len >= first["depth"] * first["stride"]
            assert (qpc.sq.hops, qpc.sq.page_shift, qpc.sq.table_shift) == (2, 12, 12)
            assert qpc.dest_qpn == first["peer"]
            assert qpc.av.dgid[10:] == b"\xff\xff" + bytes(map(int, pair.a.ip.split(".")))
            assert qpc.state == CONST["QHCA_QPS_RTS"]


# ---------------------------------------------------------------- data path


def test_16_rings_wrap(pair, progs):
    """Many laps of a small ring, each message checked; overfill: test_03."""
    first, last = run_qbuf(pair, progs, "--depth 16 --messages 5000 --nocap")
    assert last["moved"] == 5000
    assert 5000 > 50 * first["depth"]


def wqe_events(trace, qpn):
    """(index, addr, opcode, wr_id) of each WQE the device fetched for a QP."""
    out = []
    for line in trace.lines:
        m = re.search(r"qhca_wqe qpn (0x[0-9a-f]+|\d+) index (0x[0-9a-f]+|\d+) "
                      r"addr (0x[0-9a-f]+) opcode (0x[0-9a-f]+|\d+) wr_id (0x[0-9a-f]+|\d+)", line)
        if m and int(m.group(1), 0) == qpn:
            out.append(tuple(int(g, 0) for g in m.groups()[1:]))
    return out


def test_17_wqe_address(pair, progs):
    """Address of WQE n = base + stride * (n mod depth), through the page frames."""
    q = Qbuf(pair, progs, "--depth 128 --messages 300 --nocap")
    with pair.trace("a", "qhca_wqe") as trace:
        q.finish()
    f = q.first
    events = wqe_events(trace, f["qpn"])
    assert len(events) >= 300
    for index, addr, _, _ in events:
        off = f["stride"] * (index % f["depth"])
        assert addr == (f["pfns"][off // PAGE] << 12) + off % PAGE


def test_18_wqe_is_complete_before_the_doorbell(pair, progs):
    """Every WQE the device fetched had the opcode and wr_id that were posted."""
    q = Qbuf(pair, progs, "--depth 128 --messages 2000 --nocap")
    with pair.trace("a", "qhca_wqe") as trace:
        q.finish()
    events = wqe_events(trace, q.first["qpn"])[-2000:]
    assert [e[3] for e in events] == list(range(2000))
    assert {e[2] for e in events} == {CONST["QHCA_WQE_SEND"]}


def test_19_no_system_call(pair, progs):
    """strace sees none between the marks around posting and polling."""
    pair.a.run(f"strace -f -o /tmp/strace.out {progs.path('datapath')} 500")
    text = pair.a.run("cat /tmp/strace.out").out
    inside = re.search(r'BEGIN-DATAPATH.*?\n(.*?)[^\n]*END-DATAPATH', text, re.S)
    assert inside, "marks not found"
    assert inside.group(1).strip() == ""


def doorbells(trace, qpn):
    out = []
    for line in trace.lines:
        m = re.search(r"qhca_doorbell num (0x[0-9a-f]+|\d+) offset (0x[0-9a-f]+|\d+) "
                      r"uar (0x[0-9a-f]+|\d+) index (0x[0-9a-f]+|\d+)", line)
        if m and int(m.group(1), 0) == qpn and int(m.group(2), 0) == CONST["QHCA_DB_SQ"]:
            out.append(int(m.group(4), 0))
    return out


def test_20_doorbell_covers_several_wqes(pair, progs):
    """A list of 5 WRs rings once, with QPN and head."""
    with pair.trace("a", "qhca_doorbell") as trace:
        out = json.loads(pair.a.run(f"{progs.path('datapath')} 10 5").out)
    heads = doorbells(trace, out["qpn"])
    # behind them come the two WRs by which the program finds its ring
    assert heads == [5 * (i + 1) for i in range(10)] + [51, 52]


def test_21_every_step_can_be_traced(pair, progs):
    """Doorbell -> QPC -> walk -> fetch -> packet -> completion, in this order."""
    with layout(pair.a, "tree hops=2 page_shift=12 table_shift=12"):
        with pair.trace("a", "qhca_*") as trace:
            out = json.loads(pair.a.run(f"{progs.path('datapath')} 1").out)
    qpn = out["qpn"]
    names = ["qhca_doorbell", "qhca_walk_hop", "qhca_walk", "qhca_wqe", "qhca_tx", "qhca_cqe"]
    at = 0
    lines = trace.lines
    start = next(i for i, line in enumerate(lines)
                 if re.search(rf"qhca_doorbell num {qpn:#x} |qhca_doorbell num {qpn} ", line))
    for name in names:
        following = [i for i in range(start + at, len(lines)) if f"{name} " in lines[i]]
        assert following, f"no {name} after {lines[start + at]}"
        at = following[0] - start


def test_22_wqe_at_a_buffer_boundary(pair, progs):
    """The last WQE of a page and the first of the next come from their pages."""
    for _ in range(20):     # a ring of few pages may come out contiguous all the same
        q = Qbuf(pair, progs, "--depth 256 --scatter --messages 300 --nocap")
        if runs(q.first["pfns"][:3]) > 1:
            break
        q.finish()
    with pair.trace("a", "qhca_wqe") as trace:
        q.finish()
    f = q.first
    per_page = PAGE // f["stride"]
    by_index = {e[0]: e[1] for e in wqe_events(trace, f["qpn"])}
    for index in (per_page - 1, per_page, 2 * per_page - 1, 2 * per_page):
        page, slot = divmod(index, per_page)
        assert by_index[index] == (f["pfns"][page] << 12) + slot * f["stride"]
    assert runs(f["pfns"][:3]) > 1


def run_peers(lab, progs):
    """One message on each of two QPs, from a to b; what a's program prints."""
    def line(guest):
        return f"{progs.path('peers')} {guest.wait_gid(guest.ip)} {guest.wait_gid(guest.ip6)}"

    _, result = run_pair(lab.b, lab.a, line(lab.b), f"{line(lab.a)} {lab.b.ip}")
    return json.loads(result.out)


def test_23_peer_comes_from_the_qpc(pair, progs, tmp_path):
    """The same WQE, byte for byte, on two QPs: each packet goes to the GID and the
    QPN in its QPC."""
    path = tmp_path / "peers.pcapng"
    with pair.capture(path):
        first, second = run_peers(pair, progs)
    assert first["wqe"] == second["wqe"]
    assert [first["gid"], second["gid"]] == [f"::ffff:{pair.b.ip}", pair.b.ip6]
    send_only = 4
    rows = {tuple(filter(None, row.split("\t"))) for row in tshark(
        path, "-Y", f"infiniband.bth.opcode == {send_only}", "-T", "fields",
        "-e", "ip.dst", "-e", "ipv6.dst", "-e", "infiniband.bth.destqp")}
    assert rows == {(pair.b.ip, f"{first['peer']:#08x}"), (pair.b.ip6, f"{second['peer']:#08x}")}


def test_24_bad_qpn(pair, progs):
    """A doorbell for no QP is counted, and nothing else happens to anyone."""
    before = pair.a.ethtool_stat("db_bad_object")
    out = json.loads(pair.a.run(f"{progs.path('badinput')} bad_qpn").out)
    assert pair.a.ethtool_stat("db_bad_object") == before + 1
    assert out["local"] == 0 and out["bystander"] == 1


@pytest.mark.expects_dmesg
@pytest.mark.long("a boot: the kernel reports each fault; tests/device/test_iommu is in the gate")
@pytest.mark.parametrize("what", ["data", "ring"])
def test_24_unmapped_iova(iommu_pair, modules, what):
    """The IOMMU blocks an access: this QP fails with a clear error, the others go on."""
    a = iommu_pair.a
    before = a.ethtool_stat("dma_errors")
    a.run(f"insmod {modules('iommu_unmap')} pci={a.pci}")
    try:
        iova = run_script(a, "unmapped", what).out.split()[0]
    finally:
        a.run("rmmod iommu_unmap")
    assert a.ethtool_stat("dma_errors") > before
    a.wait_for(f"dmesg | grep -q 'DMAR: .*DMA Read.* fault addr {iova} '")
    pingpong(iommu_pair.b, a, "ibv_rc_pingpong", "-n 100")


def test_25_swim_lanes(pair, progs, tmp_path):
    """One recording shows user, kernel driver and device in order: the QP's creation
    through the driver, then a message past it."""
    with Recording(pair, tmp_path) as recording:
        sender, _ = run_peers(pair, progs)
    assert recording.result.problems == []
    trace = Trace(json.loads((tmp_path / "trace.json").read_text()))
    qpn = sender["qpn"]
    life = [e for e in trace.events if e["cat"] == "driver" and e["pid"] == 1
            and e["args"].get("qpn") == qpn]
    assert [e["args"]["event"] for e in life] == ["create_qp"] + ["modify_qp"] * 3 + ["destroy_qp"]
    steps = next(steps for _, _, _, steps in trace.flow("message") if steps[0]["pid"] == 1
                 and (steps[0]["args"]["qpn"], steps[0]["args"]["opcode_name"]) == (qpn, "SEND"))
    assert [(e["pid"], e["cat"], e["args"]["event"]) for e in steps] == [
        (1, "provider", "wqe"), (1, "provider", "doorbell"), (1, "device", "doorbell"),
        (1, "device", "qpc"), (1, "device", "wqe"), (1, "device", "tx"),
        (2, "device", "rx"), (2, "device", "cqe"), (2, "provider", "poll")]
    times = [e["ts"] for e in life[:-1] + steps + life[-1:]]
    assert times == sorted(times)

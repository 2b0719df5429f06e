# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter with an IOMMU, with bounce buffers, and on a lossy wire."""

import errno
import os

import pytest

from labs import run_pair
from test_fault_injection import pingpong as faultpp
from test_fault_injection import well
from test_pingpong import perftest, pingpong

ALIKE = pytest.mark.long("long and short messages, both ways of a QP, are in the gate")
PERFTESTS = [
    ("ib_send_bw", "-s 65536 -n 100"),
    pytest.param("ib_write_bw", "-s 65536 -n 100", marks=ALIKE),
    ("ib_read_bw", "-s 65536 -n 100"),
    pytest.param("ib_send_lat", "-s 2 -n 200", marks=ALIKE),
    ("ib_write_lat", "-s 2 -n 200"),
    pytest.param("ib_read_lat", "-s 2 -n 200", marks=ALIKE),
]


def everything(lab):
    pingpong(lab.b, lab.a, "ibv_rc_pingpong", "-s 65536 -n 50")
    pingpong(lab.b, lab.a, "ibv_rc_pingpong", "-s 4096 -n 100 -e")
    pingpong(lab.b, lab.a, "ibv_ud_pingpong", "-s 1024 -n 100")
    perftest(lab.b, lab.a, "ib_write_bw", "-s 65536 -n 50")
    perftest(lab.b, lab.a, "ib_read_bw", "-s 65536 -n 50")
    lab.a.run(f"ping -c 3 -i 0.2 -s 1400 {lab.b.ip}")


def test_intel_iommu(iommu_pair):
    dmesg = iommu_pair.a.run("dmesg").out
    assert "DMAR: IOMMU enabled" in dmesg or "Intel-IOMMU" in dmesg, "no IOMMU in this guest"
    everything(iommu_pair)
    for guest in iommu_pair.guests:
        faults = guest.run("dmesg | grep -c 'DMAR:.*fault' || true").out
        assert int(faults) == 0


def test_iommu_addresses_are_iovas(iommu_pair, progs):
    """With an IOMMU the device's addresses are not the page frames."""
    from test_queue_buffers import open_qbuf
    with open_qbuf(iommu_pair, progs, "--depth 1024") as (first, qpc):
        assert qpc.sq_leaf not in [p << 12 for p in first["pfns"]]


def forced_to_bounce(lab):
    return "swiotlb=force" in lab.a.run("cat /proc/cmdline").out


@pytest.mark.long("a pair of its own; either of the two has one in the gate")
def test_swiotlb_behind_iommu(swiotlb_iommu_pair):
    """An IOMMU maps the memory itself: nothing is bounced, everything works."""
    assert forced_to_bounce(swiotlb_iommu_pair)
    everything(swiotlb_iommu_pair)


BOUNCED = pytest.mark.long("a boot of its own; with an IOMMU the driver's DMA is in the gate")

# a TCP stream, and the digest of what went in and of what came out
SEND = """
import hashlib, os, socket, sys
data = os.urandom(8 << 20)
socket.create_connection((sys.argv[1], 7070)).sendall(data)
print(hashlib.sha256(data).hexdigest())
"""
RECEIVE = """
import hashlib, socket
digest, peer = hashlib.sha256(), socket.create_server(("", 7070)).accept()[0]
while data := peer.recv(1 << 16):
    digest.update(data)
print(digest.hexdigest())
"""


@BOUNCED
def test_swiotlb_net_device(swiotlb_pair):
    """Every frame goes through bounce buffers, and comes out as it went in."""
    pair = swiotlb_pair
    assert forced_to_bounce(pair)
    for size in (0, 56, 1472, 8000):
        pair.a.run(f"ping -c 3 -i 0.2 -W 5 -s {size} {pair.b.ip}")
    served, sent = run_pair(pair.b, pair.a, f"python3 -c '{RECEIVE}'",
                            f"python3 -c '{SEND}' {pair.b.ip}")
    assert served.out == sent.out


# ibv_reg_mr() of one page, and the errno it leaves
REG_MR = """
import ctypes as c
v = c.CDLL("libibverbs.so.1", use_errno=True)
def call(name, *args):
    getattr(v, name).restype = c.c_void_p
    return c.c_void_p(getattr(v, name)(*args))
devices = c.cast(call("ibv_get_device_list", None), c.POINTER(c.c_void_p))
context = call("ibv_open_device", c.c_void_p(devices[0]))
pd = call("ibv_alloc_pd", context)
assert context and pd, c.get_errno()
mr = call("ibv_reg_mr", pd, c.create_string_buffer(4096), c.c_size_t(4096), 1)
print("registered" if mr else c.get_errno())
"""


@BOUNCED
def test_swiotlb_refuses_applications(swiotlb_pair, progs):
    """
    An application's memory would be a copy that nothing keeps up to date: memory regions and
    queues are refused with EOPNOTSUPP, and the kernel log gives the reason.
    """
    a = swiotlb_pair.a
    assert a.run("ibv_devinfo -d $IBDEV | grep -c PORT_ACTIVE").out.strip() == "1"
    assert a.run(f"python3 -c '{REG_MR}'").out.strip() == str(errno.EOPNOTSUPP)
    queue = a.run(progs.path("qbuf"), check=False)
    assert queue.rc == 2
    assert queue.err.strip() == f"ibv_create_cq: {os.strerror(errno.EOPNOTSUPP)}"
    assert a.run("dmesg | grep -c 'RDMA for kernel users only'").out.strip() == "1"


# a hundred messages over Reliable Datagram Sockets (21 is AF_RDS), and their digest
RDS_SEND = """
import errno, hashlib, os, socket, sys, time
s, digest = socket.socket(21, socket.SOCK_SEQPACKET), hashlib.sha256()
s.bind((sys.argv[1], 7001))
for i in range(100):
    data = os.urandom(50 + 300 * i)
    digest.update(data)
    while True:
        try:
            s.sendto(data, (sys.argv[2], 7000))
            break
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            time.sleep(0.01)
print(digest.hexdigest())
"""
RDS_RECEIVE = """
import hashlib, socket, sys
s, digest = socket.socket(21, socket.SOCK_SEQPACKET), hashlib.sha256()
s.bind((sys.argv[1], 7000))
s.settimeout(100)
open("/tmp/rds.bound", "w").close()
for _ in range(100):
    digest.update(s.recv(1 << 16))
print(digest.hexdigest())
"""


@BOUNCED
def test_swiotlb_kernel_users(swiotlb_pair):
    """Kernel users can sync their memory: RDMA works for them."""
    a, b = swiotlb_pair.a, swiotlb_pair.b
    for guest in (a, b):
        guest.run("modprobe rds_rdma")
    try:
        before = a.ethtool_stat("roce_tx_bytes")
        receiver = b.start(f"python3 -c '{RDS_RECEIVE}' {b.ip}")
        b.wait_for("test -e /tmp/rds.bound")
        sent = a.run(f"python3 -c '{RDS_SEND}' {a.ip} {b.ip}").out
        assert receiver.wait().out == sent
        assert a.ethtool_stat("roce_tx_bytes") > before + 50 * 100 + 300 * 4950
    finally:
        for guest in (a, b):
            guest.run("modprobe -r rds_rdma rds")


@pytest.mark.parametrize("program,options", PERFTESTS)
def test_loss_perftest(loss_pair, program, options):
    """1 % of all frames vanish: every run ends with all its messages."""
    row = perftest(loss_pair.b, loss_pair.a, program, options, timeout=400)
    assert int(row[1]) >= int(options.split("-n ")[1])


def test_loss_pingpong(loss_pair, progs):
    """One message at a time. ibv_rc_pingpong would not do: whose last acknowledge is
    lost repeats it to a peer that has ended."""
    ends = faultpp(loss_pair, progs, "--timeout 14 --iters 50 --len 65536", timeout=400)
    well(*ends)
    assert [end["done"] for end in ends] == [50, 50]


def test_loss_is_explained(loss_pair):
    """The counters show that packets were lost and retransmitted."""
    sent_again = sum(g.ethtool_stat("roce_retransmits") for g in loss_pair.guests)
    why = sum(g.ethtool_stat(s) for g in loss_pair.guests
              for s in ("roce_seq_nak_rx", "roce_timeouts"))
    gaps = sum(g.ethtool_stat("roce_out_of_sequence") for g in loss_pair.guests)
    assert sent_again > 0 and why > 0 and gaps > 0

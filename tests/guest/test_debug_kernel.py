# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with the kernel "debug": KASAN, lockdep and similar tools check the driver while it
works, and while allocations fail. Whatever they report fails a test."""

import json
import re
from pathlib import Path

import pytest
from labs import PATIENCE, TOP, run_pair
from qhca_lab import LabError, kernels
from test_connection_manager import tool

FAULTS = "/sys/kernel/debug"
FAIL_EACH = Path(__file__).with_name("scripts") / "fail-each"


# The driver's KUnit suites.
SUITES = sorted(name for path in (TOP / "kernel-driver/kunit").glob("*_kunit.c")
                for name in re.findall(r'\.name = "(qhca_\w+)"', path.read_text()))


def not_built():
    try:
        kernels.kernel("debug").check()
    except LabError as error:
        return str(error)
    return ""


pytestmark = [
    pytest.mark.long("boots guests with a kernel that is ten times slower"),
    pytest.mark.skipif(bool(not_built()), reason="'make kernel KERNEL=debug' was not run: it "
                       "builds a kernel, which takes half an hour or more"),
]


def debug_module(name):
    return f"/qhca/build/kernels/debug/driver/guest/{name}.ko"


def functions(guest):
    """(name, module, address) of all functions of the kernel."""
    for line in guest.run("cat /proc/kallsyms").out.splitlines():
        address, kind, name, *module = line.split()
        if kind in "tT":
            yield name, module[0][1:-1] if module else "", int(address, 16)


@pytest.fixture
def failing(debug_pair):
    """Guest a, where allocations can be made to fail in tasks that request it: those of the
    driver, and of the core above it if its code lies between the modules."""
    guest = debug_pair.a
    text = list(functions(guest))
    ours = [at for _, module, at in text if module in ("qhca", "qhca_ib")]
    start, end = min(ours), max(ours) + 0x1000
    # kmemleak allocates with each allocation, and tolerates failures.
    (leak_start,) = (at for name, _, at in text if name == "kmemleak_alloc")
    leak_end = leak_start + 0x1000
    alloc = {"ignore-gfp-wait": "N", "verbose": 0, "times": 10**9, "stacktrace-depth": 32,
             "require-start": hex(start), "require-end": hex(end),
             "reject-start": hex(leak_start), "reject-end": hex(leak_end)}
    settings = {
        "failslab": alloc,
        "fail_page_alloc": alloc | {"min-order": 0, "ignore-gfp-highmem": "N"},
        # Copies from and to applications do not fail, and do not count.
        "fail_usercopy": {"require-start": 1, "require-end": 2},
    }
    guest.run("set -e\n" + "".join(f"echo {value} >{FAULTS}/{kind}/{name}\n"
                                   for kind, values in settings.items()
                                   for name, value in values.items()))
    return guest


def fail_each(guest, command, undo):
    """How many allocations of COMMAND failed, one after the other; see the script."""
    done = guest.run(["/bin/bash", "-c", FAIL_EACH.read_text(), "fail-each", command, undo],
                     20 * PATIENCE)
    return int(done.out.split()[-2])


def test_kunit(debug_pair):
    """The driver's own tests, in the kernel."""
    a = debug_pair.a
    a.run(f"modprobe kunit && insmod {debug_module('qhca_kunit')}", 6 * PATIENCE)
    try:
        kunit_passed(a)
    finally:
        a.run("rmmod qhca_kunit")


def kunit_passed(a):
    for suite in SUITES:
        told = a.run(f"cat {FAULTS}/kunit/{suite}/results").out
        assert re.search(rf"^ok \d+ {suite}", told, re.M) and "not ok" not in told, told


@pytest.mark.parametrize("line", [
    "ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 200",
    "ibv_rc_pingpong -d $IBDEV -g $GIDX -o -n 100",
    "ibv_uc_pingpong -d $IBDEV -g $GIDX -n 200",
    "ibv_ud_pingpong -d $IBDEV -g $GIDX -s 1024 -n 200",
    "ibv_srq_pingpong -d $IBDEV -g $GIDX -n 200",
    "ibv_xsrq_pingpong -d $IBDEV -g $GIDX -n 200",
])
def test_pingpong(debug_pair, line):
    run_pair(debug_pair.a, debug_pair.b, line)


def test_connection_manager(debug_pair):
    tool(debug_pair.a, debug_pair.b, "rping", debug_pair.a.ip)


def test_traffic_of_the_net_device(debug_pair):
    a, b = debug_pair.a, debug_pair.b
    run_pair(b, a, "iperf3 -s -1", f"iperf3 -c {b.ip} -t 5")


def test_failed_allocations_of_objects(failing, progs):
    """Each kind of object, while each allocation of its creation and its destruction fails in
    turn: ENOMEM or a fallback, and nothing remains that prevents another attempt."""
    failing.run("test -c /dev/udmabuf || modprobe udmabuf")
    told = json.loads(failing.run(progs.path("fail_alloc"), 6 * PATIENCE).out)
    assert told["why"] == "" and told["failed"] > 100, told


def test_failed_allocations_of_counters(failing, progs):
    """Statistics per QP: bound by hand, which fails or succeeds, and automatically, which does not
    disturb the QP."""
    link = "$IBDEV/1"
    holder = failing.start("exec ibv_rc_pingpong -d $IBDEV -g $GIDX")
    try:
        failing.wait_for("rdma resource show qp | grep -q 'comm ibv_rc_pingpong'")
        (qpn,) = (qp["lqpn"] for qp in json.loads(failing.run("rdma -j resource show qp").out)
                  if qp.get("comm") == "ibv_rc_pingpong")
        number = (f"$(rdma statistic qp show link {link} | "
                  "sed -n 's/.* cntn \\([0-9]*\\) .*/\\1/p')")
        assert fail_each(failing, f"rdma statistic qp bind link {link} lqpn {qpn}",
                         f"rdma statistic qp unbind link {link} cntn {number}") >= 2
    finally:
        holder.kill()
    failing.run(f"rdma statistic qp set link {link} auto type on")
    try:
        told = json.loads(failing.run([progs.path("fail_alloc"), "connected"], 6 * PATIENCE).out)
        assert told["why"] == "" and told["failed"] >= 2, told
    finally:
        failing.run(f"rdma statistic qp set link {link} auto off")
    leaves_nothing(failing)


def test_failed_allocations_of_a_dump(failing):
    """What devlink shows of the adapter's health."""
    reporter = f"pci/{failing.pci} reporter device"
    failing.run(f"devlink health dump clear {reporter}", check=False)
    assert fail_each(failing, f"devlink health dump show {reporter}",
                     f"devlink health dump clear {reporter}") >= 20
    leaves_nothing(failing)


# Each buffer of a ring is an allocation.
SMALL = "ethtool -L $NETDEV combined 1; ethtool -G $NETDEV rx 64 tx 64"
NET = {
    # what: (before, command, undo, allocations at least)
    "up": ("ip link set $NETDEV down", "ip link set $NETDEV up", "ip link set $NETDEV down", 20),
    "channels": ("", "ethtool -L $NETDEV combined 2", "ethtool -L $NETDEV combined 1", 20),
    "mtu": ("", "ip link set $NETDEV mtu 4000", "ip link set $NETDEV mtu 1500", 1),
    "split": ("", "ethtool -G $NETDEV tcp-data-split on",
              "ethtool -G $NETDEV tcp-data-split off", 20),
    "rings": ("", "ethtool -G $NETDEV rx 128 tx 128", "ethtool -G $NETDEV rx 64 tx 64", 20),
    # The first filter to a queue also needs a QP for that.
    "filter": ("ethtool -L $NETDEV combined 2",
               "ethtool -N $NETDEV flow-type udp4 dst-port 7 action 1 loc 5",
               "ethtool -N $NETDEV delete 5", 1),
    "table": ("ethtool -L $NETDEV combined 2", "ethtool -X $NETDEV equal 1",
              "ethtool -X $NETDEV default", 1),
    # The lowest ID that is free; the default context has 0.
    "context": ("", "ethtool -X $NETDEV context new equal 1", "ethtool -X $NETDEV context 1 delete",
                1),
    # The new plan, and a copy of the old one.
    "limit": ("", "echo 100 >/sys/class/net/$NETDEV/queues/tx-0/tx_maxrate",
              "echo 0 >/sys/class/net/$NETDEV/queues/tx-0/tx_maxrate", 2),
    "xdp": ("", "ip link set $NETDEV xdpdrv obj XDP sec xdp", "ip link set $NETDEV xdpdrv off", 20),
    # A zero-copy socket. The driver gets the queue back some time after the program's end, and
    # refuses to change the rings until then.
    "socket": ("", "XSK $NETDEV 0 </dev/null", "until ethtool -G $NETDEV rx 128; do sleep 0.1; done; "
               "ethtool -G $NETDEV rx 64", 20),
}


@pytest.mark.parametrize("what", NET)
def test_failed_allocations_of_the_net_device(failing, progs, what):
    before, command, undo, least = NET[what]
    failing.run(f"{SMALL}; {before}")
    try:
        command = command.replace("XDP", progs.path("xdp.bpf.o"))
        command = command.replace("XSK", progs.path("xsk"))
        assert fail_each(failing, command, undo) >= least
    finally:
        failing.run("ip link set $NETDEV up; ethtool -G $NETDEV rx 1024 tx 1024; qhca-net")
    leaves_nothing(failing)


def test_failed_allocations_of_kernel_objects(failing):
    """Objects of kernel users: an error when one is created, and no trace of the others. The
    program insmod also allocates, but not by the driver."""
    module = f"{failing.build}/guest-modules/verbs_objects.ko"
    assert fail_each(failing, f"insmod {module} netdev=$NETDEV", "rmmod verbs_objects") >= 50
    leaves_nothing(failing)


def test_failed_allocations_of_a_probe(failing):
    """qhca.ko binds to the adapter, or does not, with the same error, and then binds."""
    pci, driver = failing.pci, "/sys/bus/pci/drivers/qhca"
    failing.run(f"rmmod qhca_ib && echo {pci} >{driver}/unbind")
    try:
        assert fail_each(failing, f"echo {pci} >{driver}/bind", f"echo {pci} >{driver}/unbind") >= 100
    finally:
        failing.run(f"[ -d {driver}/{pci} ] || echo {pci} >{driver}/bind")
    leaves_nothing(failing)


def test_failed_allocations_of_the_rdma_device(failing):
    """The same for qhca_ib.ko. The net device, which is below it, stays."""
    driver = "/sys/bus/auxiliary/drivers/qhca_ib.rdma"
    (device,) = failing.run(f"basename -a {driver}/qhca.ib.*").out.split()
    failing.run(f"echo {device} >{driver}/unbind")
    try:
        assert fail_each(failing, f"echo {device} >{driver}/bind",
                         f"echo {device} >{driver}/unbind") >= 50
    finally:
        failing.run(f"[ -e {driver}/{device} ] || echo {device} >{driver}/bind")
    leaves_nothing(failing)


# How the adapter is reset, and what is to be done before and after.
RESETS = {
    # It stays off if the driver cannot start it; the next reset starts it.
    "function": ("echo 1 >/sys/bus/pci/devices/PCI/reset", "true"),
    # It is dead, and stays so until an attempt succeeds.
    "recovery": ("devlink health recover pci/PCI reporter device",
                 "devlink health test pci/PCI reporter device; until devlink health show pci/PCI "
                 "reporter device | grep -q 'state error'; do sleep 0.1; done"),
}


@pytest.mark.parametrize("what", RESETS)
def test_failed_allocations_of_a_reset(failing, what):
    """A net device that is up gets its queues back, and filters and contexts, or the adapter
    does not start, and another attempt succeeds."""
    command, undo = (text.replace("PCI", failing.pci) for text in RESETS[what])
    # without the RDMA device, which the test above has, and which takes longest
    failing.run(f"rmmod qhca_ib && {SMALL} && ethtool -X $NETDEV context new equal 1 && "
                "ethtool -N $NETDEV flow-type udp4 dst-port 7 context 1 loc 5")
    with failing.health_set("device", auto_recover=False):
        failing.run(undo)
        assert fail_each(failing, command, undo) >= 50
        failing.run(command)
    failing.run("ethtool -n $NETDEV | grep -q 'Direct to RSS Context 1' && "
                "ethtool -N $NETDEV delete 5 && ethtool -X $NETDEV context 1 delete")
    leaves_nothing(failing)


def leaves_nothing(guest):
    """The driver is unloaded: nothing that it has allocated remains. Then it is loaded again."""
    guest.run("qhca-unload")
    try:
        assert not leaked(guest)
    finally:
        guest.run(f"echo clear >{FAULTS}/kmemleak")
        guest.load_driver()
        guest.setup_nic()


def leaked(guest):
    """What kmemleak reports: the text of each object, by its address. It reports an object
    that is five seconds old, and had the same contents in two scans."""
    guest.run(f"sleep 6; for i in 1 2; do echo scan >{FAULTS}/kmemleak; done", 20 * PATIENCE)
    told = guest.run(f"cat {FAULTS}/kmemleak").out
    return {text.split()[0]: text for text in told.split("unreferenced object ")[1:]}


def test_unloaded_driver_leaves_no_memory(debug_pair):
    """Whatever the tests above did with it, failed allocations included."""
    a = debug_pair.a
    run_pair(a, debug_pair.b, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 200")
    a.run("qhca-unload")
    try:
        assert not leaked(a)
        # It finds what a module loses.
        a.run(f"insmod {a.build}/guest-modules/leak.ko && rmmod leak")
        lost = leaked(a)
        assert len(lost) == 1 and "insmod" in str(lost), lost
        a.run(f"echo clear >{FAULTS}/kmemleak")
    finally:
        a.load_driver()
        a.setup_nic()

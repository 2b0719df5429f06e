# SPDX-License-Identifier: GPL-2.0-or-later
"""
The driver and the device are removed in mid-traffic: applications get errors, the kernel does not
oops, nothing leaks, QEMU survives, and everything can start again.
"""

import re

import pytest

from labs import PATIENCE
from qhca_lab.pair import start_server
from test_dmabuf import run_script, scripts
from test_pingpong import pingpong

DRIVER = "/sys/bus/pci/drivers/qhca"
AGAIN = pytest.mark.long("more of the same")


def traffic(pair):
    """Endless RDMA traffic from a to b; both ends as background jobs.

    The adapter may run out of work while the program waits for a CPU: it must nevertheless end
    when the device goes away."""
    line = "ib_write_bw -d $IBDEV -x $GIDX -F -D 120 -s 4096"
    server = start_server(pair.b, line)
    client = pair.a.start(f"{line} {pair.b.ip}")
    before = pair.a.ethtool_stat("roce_tx_packets")
    pair.a.wait_for(
        f"test $(ethtool -S {pair.a.netdev} | awk '/roce_tx_packets:/ {{print $2}}') "
        f"-gt {before + 100}")
    return server, client


def stop(*jobs):
    for job in jobs:
        job.kill()


def restore(pair, guest):
    """Addresses are lost with the netdev: set the guest up as at boot."""
    guest.setup_nic()
    pair.a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
    pingpong(pair.b, pair.a, "ibv_rc_pingpong", "-s 4096 -n 50")


@pytest.mark.long("test_unbind_rebind_in_traffic takes the same away, and more")
def test_unload_in_traffic(pair):
    """rmmod qhca_ib while applications use it: they get errors and do not hang."""
    server, client = traffic(pair)
    pair.a.run("rmmod qhca_ib")
    assert client.wait(90).rc != 0
    stop(server)
    pair.a.run("rmmod qhca")
    assert pair.a.run("lsmod | grep -c ^qhca || true").out.strip() == "0"
    pair.a.load_driver()
    restore(pair, pair.a)


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=AGAIN)])
def test_unbind_rebind_in_traffic(pair, rounds):
    pci = pair.a.pci
    for _ in range(rounds):
        server, client = traffic(pair)
        pair.a.run(f"echo {pci} > {DRIVER}/unbind")
        assert client.wait(90).rc != 0
        stop(server)
        pair.a.run(f"echo {pci} > {DRIVER}/bind")
        restore(pair, pair.a)
        # A small number, not derived from the PCI address, which has more bits than an ID.
        auxiliary = pair.a.run("ls /sys/bus/auxiliary/devices").out
        assert re.search(r"^qhca\.ib\.\d$", auxiliary, re.M), auxiliary


def test_flr_in_traffic(pair):
    """A function-level reset through sysfs."""
    server, client = traffic(pair)
    assert "flr" in pair.a.run(f"cat /sys/bus/pci/devices/{pair.a.pci}/reset_method").out
    pair.a.run(f"echo 1 > /sys/bus/pci/devices/{pair.a.pci}/reset")
    assert client.wait(90).rc != 0
    stop(server)
    restore(pair, pair.a)


@pytest.mark.parametrize("recovers", [
    1, pytest.param(0, marks=pytest.mark.long("test_driver unbinds a device that is dead")),
], ids=["comes-back", "given-up"])
def test_bus_error(pair, modules, recovers):
    """The kernel's error recovery, as started by AER; a device that is given up is removed."""
    a, pci = pair.a, pair.a.pci
    server, client = traffic(pair)
    told = a.run(f"insmod {modules('bus_error')} function={pci} recovers={recovers}",
                 check=False)
    assert "Resource temporarily unavailable" in told.err, told.describe()  # all went well
    assert client.wait(90).rc != 0
    stop(server)
    if not recovers:
        for step in ("unbind", "bind"):
            a.run(f"echo {pci} > {DRIVER}/{step}")
    restore(pair, a)


@pytest.mark.long("a leak of a round is small; the other tests here load and unload in the gate")
@pytest.mark.parametrize("rounds", [3, 10])
def test_load_unload_loop(pair, rounds):
    """Loading and unloading repeatedly leaks no kernel memory."""
    def unload():
        pair.a.run("rmmod qhca_ib qhca")

    def free_kib():
        # free pages that wait in the CPUs' own lists count as free, too
        pair.a.run("sync; echo 3 > /proc/sys/vm/drop_caches")
        return sum(int(n) for n in pair.a.run(
            "awk '/MemAvailable/ {print $2}' /proc/meminfo; "
            "awk '/ count:/ {s += $2} END {print 4 * s}' /proc/zoneinfo").out.split())

    def again(times):
        for _ in range(times):
            pair.a.load_driver()
            unload()

    unload()
    again(3)  # what is allocated once and kept
    first = free_kib()
    again(rounds)
    # some memory comes back late; what is lost does not come back
    pair.a._until(lambda: first - free_kib() < 8 * 1024, PATIENCE,
                  f"more than 8 MiB are gone after {rounds} rounds")
    pair.a.load_driver()
    restore(pair, pair.a)


def test_killed_application(pair):
    """SIGKILL in mid-traffic: everything of the process is destroyed."""
    before = pair.a.run("rdma res show").out
    server, client = traffic(pair)
    assert pair.a.run("rdma res show").out != before
    pair.a.run("pkill -KILL ib_write_bw")
    client.wait()
    stop(server)
    pair.a.wait_for(f"test \"$(rdma res show | tr -d '\\n')\" = \"{before.rstrip(chr(10))}\"")


ROUNDS = [1, pytest.param(100, marks=pytest.mark.long("ten minutes of the same"))]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_hot_unplug_in_traffic(rough_pair, rounds):
    """The device is unplugged while busy, then plugged in again."""
    pair = rough_pair
    for _ in range(rounds):
        server, client = traffic(pair)
        pair.unplug("a")
        assert client.wait(120).rc != 0
        stop(server)
        assert pair.a.run("ls /sys/class/infiniband", check=False).out.strip() == ""
        assert pair.qmp("a", "query-status")["running"]
        pair.plug("a")
        restore(pair, pair.a)


IDLE = ["idle_busy", "idle_event"]


def idle_applications(guest):
    """Programs that wait in different ways for something that does not come."""
    jobs = {name: guest.start(f"python3 -u {scripts(guest)}/gone.py {name}") for name in IDLE}
    for job in jobs.values():
        job.wait_for("ready", timeout=120)
    return jobs


def told(jobs):
    """All have ended, as each got an error."""
    for name, job in jobs.items():
        result = job.wait(90)
        assert result.rc == 0 and f"{name}: done" in result.out, f"{name}: {result.describe()}"


@pytest.mark.long("hot unplug in traffic and the idle at a death are in the gate")
@pytest.mark.parametrize("rounds", ROUNDS)
def test_hot_unplug_of_the_idle(rough_pair, rounds):
    """Applications with nothing in flight are notified, too."""
    pair = rough_pair
    for _ in range(rounds):
        jobs = idle_applications(pair.a)
        pair.unplug("a")
        told(jobs)
        pair.plug("a")
        restore(pair, pair.a)


@pytest.mark.long("the idle at a death are in the gate, and who is unbound in traffic")
def test_unbind_under_the_idle(pair):
    pci = pair.a.pci
    jobs = idle_applications(pair.a)
    pair.a.run(f"echo {pci} > {DRIVER}/unbind")
    try:
        told(jobs)
    finally:
        pair.a.run(f"echo {pci} > {DRIVER}/bind")
    restore(pair, pair.a)


def test_death_under_the_idle(pair):
    """The device dies, but is not removed: sleeping applications are woken, too."""
    a = pair.a
    jobs = idle_applications(a)
    with a.health_set("device", auto_recover=False, grace_period=0):
        a.run(f"devlink health test pci/{a.pci} reporter device")
        try:
            told(jobs)
        finally:
            a.wait_for(f"devlink health show pci/{a.pci} reporter device | grep -q 'state error'")
            a.run(f"devlink health recover pci/{a.pci} reporter device")
    restore(pair, a)


LIKE_UNBOUND = pytest.mark.long("unbound is in the gate, test_flr_in_traffic resets")


@pytest.mark.parametrize("name", [pytest.param("reset", marks=LIKE_UNBOUND),
                                  pytest.param("dead", marks=LIKE_UNBOUND),
                                  pytest.param("exits_late", marks=LIKE_UNBOUND), "unbound"])
def test_verbs_of_a_device_that_goes(pair, name):
    """An application with one of everything: the event, the errors, the end."""
    try:
        assert f"{name}: done" in run_script(pair.a, "gone", name, timeout=120).out
    finally:
        restore(pair, pair.a)


def test_another_network_namespace(rough_pair):
    """The RDMA device moves to a network namespace and comes back, while the adapter works:
    applications that have it open lose it, as if it had been removed; later ones can use it."""
    a = rough_pair.a
    name = a.ibdev
    jobs = {}
    try:
        # Refused while there is a namespace.
        a.run("rdma system set netns exclusive && ip netns add elsewhere && "
              "ip netns attach home 1")
        jobs = idle_applications(a)
        a.run(f"rdma dev set {name} netns elsewhere")
        told(jobs)
        assert name not in a.run("rdma dev show").out
        assert name in a.run("ip netns exec elsewhere rdma dev show").out
        a.run(f"ip netns exec elsewhere rdma dev set {name} netns home")
        a.wait_for(f"rdma dev show {name}")
        assert "works_again: done" in run_script(a, "gone", "works_again", timeout=120).out
    finally:
        stop(*jobs.values())
        # If the device is still there, it comes back by itself, but later.
        a.run("ip netns del elsewhere; ip netns del home", check=False)
        a.wait_for(f"rdma system set netns shared && rdma dev show {name}")
    pingpong(rough_pair.b, a, "ibv_rc_pingpong", "-s 4096 -n 50")

# SPDX-License-Identifier: GPL-2.0-or-later
"""devlink health: what the driver reports, shows, and recovers."""

import contextlib
import json
import re
import sys
from pathlib import Path

import pytest

from physmem import _stub
from labs import PATIENCE
from qhca_lab import fault
from qhca_lab.pair import start_server
from test_dmabuf import scripts
from test_driver import debugfs, function_reset, known_neighbours, ping, set_command
from test_lifecycle import restore

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from contract import CONST  # noqa: E402

REPORTERS = ["device", "eq", "tx", "rx"]


def devlink(guest, verb, reporter):
    """diagnose, or dump show, as a dictionary."""
    out = guest.run(f"devlink -j health {verb} pci/{guest.pci} reporter {reporter}").out
    return json.loads(out)


def act(guest, verb, reporter, check=True):
    """test, recover, or dump clear."""
    return guest.run(f"devlink health {verb} pci/{guest.pci} reporter {reporter}", check=check)


def counts(guest, reporter):
    h = guest.health(reporter)
    return h["state"], h["error"], h["recover"]


def wait_counts(guest, reporter, *want):
    guest._until(lambda: counts(guest, reporter) == want, PATIENCE,
                 f"reporter {reporter}: not {want}, but {counts(guest, reporter)}")


@pytest.fixture
def dying(pair):
    """Guest a, whose adapter may die often; clean at the end."""
    a = pair.a
    with a.health_set("device", grace_period=0):
        yield a
        if counts(a, "device")[0] != "healthy":
            act(a, "recover", "device")
        for reporter in REPORTERS:
            act(a, "dump clear", reporter)
    restore(pair, a)


def test_what_is_shown(pair):
    """All reporters are well; what they show is what debugfs and ethtool show."""
    a = pair.a
    ping(pair)
    out = a.run(f"devlink -j health show pci/{a.pci}").out
    (shown,) = json.loads(out)["health"].values()
    assert [h["reporter"] for h in shown] == REPORTERS
    assert all(h["state"] == "healthy" and h["auto_recover"] for h in shown)
    (info,) = json.loads(a.run(f"devlink -j dev info pci/{a.pci}").out)["info"].values()
    assert info["driver"] == "qhca"
    fw = a.run("cat /sys/class/infiniband/$IBDEV/fw_ver").out.strip()
    assert info["versions"]["running"]["fw"] == fw

    device = devlink(a, "diagnose", "device")
    assert device["state"] == "works" and device["link"]
    assert int(device["status"], 0) & CONST["QHCA_STATUS_READY"]
    queues = a.run(f"cat {debugfs(a)}/queues").out
    # A background frame may be in flight in one of them.
    def quiet():
        eqs = devlink(a, "diagnose", "eq")["eqs"]
        return all(e["armed"] and e["device prod"] == e["cons"] for e in eqs) and eqs
    eqs = a._until(quiet, PATIENCE, "EQs are not empty")
    assert [str(e["eqn"]) for e in eqs] == re.findall(r"^eq (\d+)", queues, re.MULTILINE)
    for eq in eqs:
        assert eq["armed"] and not eq["waiting"]
        assert eq["record"] and eq["device prod"] == eq["cons"], eq
    sq = re.search(r"^tx_sq (\d+) prod (\d+)", queues, re.MULTILINE)
    tx = devlink(a, "diagnose", "tx")
    assert tx["up"] and str(tx["queues"][0]["queue"]) == sq[1]
    assert tx["queues"][0]["prod"] >= int(sq[2])
    assert all(q["prod"] == q["rung"] for q in tx["queues"])
    rx = devlink(a, "diagnose", "rx")
    assert rx["up"] and len(rx["queues"]) == len(tx["queues"])
    assert all(q["prod"] - q["cons"] <= q["depth"] for q in rx["queues"])

    dump = devlink(a, "dump show", "device")
    assert int(dump["registers"]["id"], 0) == CONST["QHCA_ID_MAGIC"]
    assert dump["aq"]["prod"] >= dump["aq"]["cons"] > 0
    assert len(dump["aq"]["commands"]) == len(dump["aq"]["answers"]) == 32
    names = {line.split(":")[0].strip() for line in a.run("ethtool -S $NETDEV").out.splitlines()}
    assert len(dump["statistics"]) > 40 and set(dump["statistics"]) <= names
    assert dump["eqs"][0]["addr"] != "0"
    for reporter in REPORTERS:
        act(a, "dump clear", reporter)


def test_recovers_by_itself(pair, dying):
    """A device that dies is recovered; RDMA users are notified, and can start again."""
    a = dying
    _, errors, recoveries = counts(a, "device")
    watch = a.start("stdbuf -oL ibv_asyncwatch -d $IBDEV")
    watch.wait_for("async event FD")
    act(a, "test", "device")
    wait_counts(a, "device", "healthy", errors + 1, recoveries + 1)
    watch.wait_for("IBV_EVENT_DEVICE_FATAL")
    assert devlink(a, "diagnose", "device")["last death"] == "test by devlink"
    dump = devlink(a, "dump show", "device")
    assert int(dump["registers at the last death"]["status"], 0) & CONST["QHCA_STATUS_READY"]
    assert dump["state"] == "dead" and "statistics" not in dump
    watch.kill()
    a.setup_nic()
    ping(pair)


def test_dump_of_a_real_death(pair, dying):
    """DMA fails: the dump, taken before the recovery, shows what was in progress."""
    a = dying
    _, errors, recoveries = counts(a, "device")
    # In one go: a frame in between would fail first, and elsewhere.
    a.run(f"setpci -s {a.pci} COMMAND=0:4; ethtool -S {a.netdev}", check=False)
    # recovering makes it bus master again
    wait_counts(a, "device", "healthy", errors + 1, recoveries + 1)
    dump = devlink(a, "dump show", "device")
    assert dump["last death"] == "it reports a fatal error"
    assert dump["fatal"] == "an admin ring could not be accessed"
    status = int(dump["registers at the last death"]["status"], 0)
    assert status & CONST["QHCA_STATUS_FATAL"]
    assert status >> CONST["QHCA_STATUS_FATAL_SHIFT"] & 0xFF == CONST["QHCA_FATAL_AQ_DMA"]
    aq = dump["aq"]
    assert aq["prod"] == aq["cons"] + 1
    assert int(aq["commands"][-1]["opcode"], 0) == CONST["QHCA_CMD_QUERY_STATS"]


@pytest.mark.long("test_death_under_the_idle has it, with applications")
def test_stays_dead_when_told(pair, dying):
    """Without auto_recover it waits for the administrator."""
    a = dying
    _, errors, recoveries = counts(a, "device")
    with a.health_set("device", auto_recover=False):
        act(a, "test", "device")
        wait_counts(a, "device", "error", errors + 1, recoveries)
        assert devlink(a, "diagnose", "device")["state"] == "dead"
        assert a.run("ethtool -S $NETDEV", check=False).rc
        act(a, "recover", "device")
    assert counts(a, "device") == ("healthy", errors + 1, recoveries + 1)
    a.setup_nic()
    ping(pair)


@pytest.mark.long("test_death_under_the_idle has a device that is left dead")
def test_dies_too_often(pair, dying):
    """Within the grace period of the last recovery it stays dead."""
    a = dying
    _, errors, recoveries = counts(a, "device")
    act(a, "test", "device")
    wait_counts(a, "device", "healthy", errors + 1, recoveries + 1)
    with a.health_set("device", grace_period=600000):
        act(a, "test", "device")
        wait_counts(a, "device", "error", errors + 2, recoveries + 1)
        assert devlink(a, "diagnose", "device")["state"] == "dead"
        # a function-level reset repairs it as well, and is not a recovery
        function_reset(a)
        assert counts(a, "device") == ("healthy", errors + 2, recoveries + 1)
    a.setup_nic()
    ping(pair)


@pytest.mark.long("test_driver has a device that does not answer")
def test_absent_registers(pair, dying):
    """No recovery is attempted if the device does not respond; the error says so."""
    a = dying
    _, errors, recoveries = counts(a, "device")
    set_command(a, 2, False)
    try:
        a.run(f"ethtool -S {a.netdev}", check=False)
        wait_counts(a, "device", "error", errors + 1, recoveries)
        refused = act(a, "recover", "device", check=False)
        assert refused.rc and "registers do not answer" in refused.err, refused.describe()
    finally:
        set_command(a, 2, True)
    act(a, "recover", "device")
    assert counts(a, "device") == ("healthy", errors + 1, recoveries + 1)
    a.setup_nic()
    ping(pair)


@pytest.mark.long("test_dump_of_a_real_death has a device that fails by itself")
def test_reset_behind_the_drivers_back(pair, dying):
    """The device loses all state in the middle of a packet, without notice."""
    a = dying
    _, errors, recoveries = counts(a, "device")
    play = "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 1000"
    fault.add(a, {"action": "reset", "at": "packet", "qp-type": "rc", "nth": 9})
    jobs = [start_server(pair.b, play), a.start(f"{play} {pair.b.ip}")]
    a._until(lambda: fault.listed(a)["faults"][0]["hits"], PATIENCE, "no reset")
    a.run(f"ethtool -S {a.netdev}", check=False)    # a command without a response
    wait_counts(a, "device", "healthy", errors + 1, recoveries + 1)
    for job in jobs:
        job.kill()
    fault.remove(a)
    a.setup_nic()
    ping(pair)


@pytest.mark.long("it takes a minute; tests/engine has late commands")
def test_slow_commands(pair, dying):
    """A device that answers each command just in time does not hold rtnl for minutes: the driver
    gives up on it, and works with it again once it is quick."""
    with dying.health_set("device", auto_recover=False):
        fault.add(dying, {"action": "delay", "at": "command", "time": 8_000_000_000})
        try:
            # some fifty commands
            dying.run("ethtool -L $NETDEV combined 1; ethtool -L $NETDEV combined 2",
                      6 * PATIENCE, check=False)
            hits = fault.listed(dying)["faults"][0]["hits"]
        finally:
            fault.remove(dying)
        dying._until(lambda: counts(dying, "device")[0] == "error", PATIENCE,
                     "the driver still uses the device")
        # about a minute
        assert 4 <= hits <= 10
        act(dying, "recover", "device")
    ping(pair)


@pytest.mark.parametrize("reporter", [
    pytest.param("tx", marks=pytest.mark.long("the other direction is in the gate")), "rx"])
def test_queues_are_remade(pair, reporter):
    """A stopped queue is replaced, automatically or on request."""
    a = pair.a
    _, errors, recoveries = counts(a, reporter)
    act(a, "test", reporter)
    wait_counts(a, reporter, "healthy", errors + 1, recoveries + 1)
    ping(pair)
    with a.health_set(reporter, auto_recover=False):
        act(a, "test", reporter)
        wait_counts(a, reporter, "error", errors + 2, recoveries + 1)
        ping(pair)      # nothing was really wrong
        act(a, "recover", reporter)
    assert counts(a, reporter) == ("healthy", errors + 2, recoveries + 2)
    ping(pair)
    dump = devlink(a, "dump show", reporter)
    assert dump["up"] and all(q["addr"] != "0" for q in dump["queues"])
    act(a, "dump clear", reporter)


def test_queues_that_could_not_be_made(pair):
    """No memory for new queues: the next recovery creates them nevertheless."""
    a = pair.a
    _, errors, recoveries = counts(a, "tx")
    try:
        # no kernel has that much contiguous memory
        a.run(f"echo 'flat page_shift=28 scope=kernel' > {debugfs(a)}/layout")
        act(a, "test", "tx")
        wait_counts(a, "tx", "error", errors + 1, recoveries)
        assert not devlink(a, "diagnose", "tx")["up"]
        refused = act(a, "recover", "tx", check=False)
        assert refused.rc and "queues not remade" in refused.err
    finally:
        a.run(f"echo auto > {debugfs(a)}/layout")
    act(a, "recover", "tx")
    assert counts(a, "tx") == ("healthy", errors + 1, recoveries + 1)
    ping(pair)


@pytest.mark.long("test_queues_are_remade has other ways to end an error")
def test_error_ends_with_new_queues(pair):
    """After the queues were replaced, their reporters are well: the next error is
    recovered from."""
    a, dev = pair.a, pair.a.netdev
    _, errors, recoveries = counts(a, "tx")
    try:
        with a.health_set("tx", auto_recover=False):
            act(a, "test", "tx")
            wait_counts(a, "tx", "error", errors + 1, recoveries)
            a.run(f"ethtool -G {dev} rx 512")
            assert counts(a, "tx") == ("healthy", errors + 1, recoveries)
    finally:
        a.run(f"ethtool -G {dev} rx 1024")
    act(a, "test", "tx")
    wait_counts(a, "tx", "healthy", errors + 2, recoveries + 1)
    ping(pair)


@pytest.mark.long("test_queues_are_remade has errors at other times")
def test_queue_that_fails_while_the_device_recovers(pair, dying):
    """The recovery does not clear the error of a queue that it has just created."""
    a = dying
    _, errors, recoveries = counts(a, "device")
    _, stopped, _ = counts(a, "rx")
    flood = ("python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
             f"while True: s.sendto(b'x', ('{a.ip}', 9))\"")
    with (known_neighbours(pair), a.health_set("device", auto_recover=False),
          a.health_set("rx", auto_recover=False), a.health_set("tx", auto_recover=False)):
        act(a, "test", "device")
        wait_counts(a, "device", "error", errors + 1, recoveries)
        # No queue can read a WQE.
        fault.add(a, {"action": "dma-error", "kind": "ethernet", "access": "read"})
        job = pair.b.start(flood)
        try:
            act(a, "recover", "device")
            a._until(lambda: counts(a, "rx")[:2] == ("error", stopped + 1), PATIENCE,
                     "no error of the receive queue")
        finally:
            job.kill()
            fault.remove(a)
        assert counts(a, "device") == ("healthy", errors + 1, recoveries + 1)
        for reporter in ("rx", "tx"):
            if counts(a, reporter)[0] != "healthy":
                act(a, "recover", reporter)
    a.setup_nic()
    ping(pair)


@contextlib.contextmanager
def masked(lab, guest, vector):
    """The device's MSI-X vector does not get through."""
    text = guest.run(f"lspci -s {guest.pci} -vv").out
    bar, offset = re.search(r"Vector table: BAR=(\d) offset=([0-9a-f]+)", text).groups()
    start = int(guest.run("sed -n %dp /sys/bus/pci/devices/%s/resource"
                          % (int(bar) + 1, guest.pci)).out.split()[0], 0)
    control = start + int(offset, 16) + 16 * vector + 12

    def store(value):
        with _stub(lab, guest.name) as stub:
            stub.write(control, value.to_bytes(4, "little"))

    store(1)
    try:
        yield
    finally:
        store(0)


def wait_mended(guest, errors, recoveries):
    """Since the count was taken: some interrupts were lost, and each was recovered. The last
    recovery may still be in progress."""
    def mended():
        _, now, then = counts(guest, "eq")
        return now - errors == then - recoveries > 0
    guest._until(mended, PATIENCE, "an interrupt that is lost stays lost")


def test_lost_interrupt(pair):
    """Events whose interrupt does not arrive are found and processed."""
    a = pair.a
    _, errors, recoveries = counts(a, "eq")

    def lost():
        return sum(eq["lost interrupts"] for eq in devlink(a, "diagnose", "eq")["eqs"][1:])

    before = lost()
    # those of the net_device's channels: which of them has the ping is the hash's choice
    channels = int(re.findall(r"Combined:\s+(\d+)", a.run(f"ethtool -l {a.netdev}").out)[1])
    with known_neighbours(pair), contextlib.ExitStack() as stack:
        for vector in range(1, 1 + channels):
            stack.enter_context(masked(pair, a, vector))
        job = pair.b.start(f"ping -c 1 -W 60 {a.ip}")
        assert job.wait(90).rc == 0
    wait_mended(a, errors, recoveries)
    assert lost() > before
    ping(pair)


@contextlib.contextmanager
def one_channel(guest):
    """All that the net_device receives comes over its first channel, vector 1."""
    guest.run(f"ethtool -X {guest.netdev} equal 1")
    try:
        yield
    finally:
        guest.run(f"ethtool -X {guest.netdev} default")


@pytest.mark.long("test_lost_interrupt masks it, and the rescue is the same")
def test_lost_interrupt_by_a_fault(pair):
    """The same where the adapter does not send it, and nothing is masked."""
    a = pair.a
    _, errors, recoveries = counts(a, "eq")
    with known_neighbours(pair), one_channel(a):
        fault.add(a, {"action": "lose-interrupt", "number": 1, "nth": 1})
        try:
            job = pair.b.start(f"ping -c 1 -W 60 {a.ip}")
            assert job.wait(90).rc == 0
            assert fault.listed(a)["faults"][0]["hits"] == 1
        finally:
            fault.remove(a)
    # the lost interrupt may have been that of a sent frame, which the ping does not need
    wait_mended(a, errors, recoveries)
    ping(pair)


@pytest.mark.long("a rare race; test_lost_interrupt has the rescue")
def test_cq_destroyed_while_its_event_is_rescued(pair, modules):
    """A CQ is not freed while its callback runs, in whatever context."""
    a = pair.a
    # One CPU for commands and the application, the other for the rescue, which
    # holds interrupts off.
    irq = a.run("sed -n 's/^ *\\([0-9]*\\):.*qhca-async@.*/\\1/p' /proc/interrupts").out.strip()
    a.run(f"echo 0 > /proc/irq/{irq}/smp_affinity_list")
    a.run(f"insmod {modules('rescue_race')}")
    # The net device has vector 2, too: no frame may come in between.
    with known_neighbours(pair), a.health_set("eq", auto_recover=False):
        act(a, "test", "eq")    # devlink recovers only reporters in the error state
        fault.add(a, {"action": "lose-interrupt", "number": 2, "nth": 1})
        try:
            job = a.start(f"taskset -c 0 python3 -u {scripts(a)}/rescue.py destroy")
            job.wait_for("event lost")
            a._until(lambda: counts(a, "eq")[0] == "error", PATIENCE, "no error to recover from")
            a.run(f"taskset -c 1 devlink health recover pci/{a.pci} reporter eq")
            assert "destroy: done" in job.wait().out
        finally:
            fault.remove(a)
            seen = a.run("cd /sys/module/rescue_race/parameters && "
                         "grep . callbacks entered early && rmmod rescue_race").out.split()
    assert seen == ["callbacks:1", "entered:1", "early:0"], seen
    ping(pair)


@pytest.mark.long("test_dump_of_a_real_death has a command that the device refuses so")
def test_refused_coalescing_is_not_kept(pair, dying):
    """A moderation that the device refused is not applied to later queues."""
    a = dying
    def shown():
        return re.findall(r"^(?:Adaptive|[rt]x-(?:usecs|frames):).*",
                          a.run("ethtool -c $NETDEV").out, re.M)
    before = shown()
    _, errors, recoveries = counts(a, "device")
    # Without DMA no command is carried out; recovering makes it bus master again.
    refused = a.run(f"setpci -s {a.pci} COMMAND=0:4; "
                    f"ethtool -C {a.netdev} adaptive-rx off rx-usecs 77 tx-usecs 78", check=False)
    assert refused.rc, refused.describe()
    wait_counts(a, "device", "healthy", errors + 1, recoveries + 1)
    assert shown() == before


@pytest.mark.long("each of these is in the gate by itself")
@pytest.mark.parametrize("rounds", [2, 10])
def test_all_at_once(pair, dying, rounds):
    """Deaths, recoveries and function resets, each at any time."""
    a, pci = dying, dying.pci
    jobs = [a.start(f"while :; do {line}; done >/dev/null 2>&1") for line in (
        f"devlink health test pci/{pci} reporter device; sleep 0.3",
        f"devlink health recover pci/{pci} reporter device; sleep 0.1",
        f"devlink health test pci/{pci} reporter tx; devlink health diagnose pci/{pci} reporter eq;"
        f" devlink health dump show pci/{pci} reporter rx",
        "ibv_devinfo; rdma res show",
    )]
    for _ in range(rounds):
        function_reset(a)
        ended = a.run("sleep 0.4")
        assert ended.rc == 0
    for job in jobs:
        job.kill()
    a._until(lambda: not a.run("pgrep devlink", check=False).out, PATIENCE, "devlink hangs")

    def well():
        """A death may not have been reported yet."""
        if counts(a, "device")[0] != "healthy":
            act(a, "recover", "device")
        return devlink(a, "diagnose", "device")["state"] == "works"
    a._until(well, PATIENCE, "the device does not recover")
    for reporter in ("tx", "rx", "eq"):
        act(a, "recover", reporter)
    a.setup_nic()
    ping(pair)

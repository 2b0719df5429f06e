# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA through the guests' memory, as in all labs with only qhca adapters, and the return to the
wire."""

import re
import time

import pytest
from labs import PATIENCE, run_pair
from qhca_lab.pair import start_server
from test_fault_injection import faults
from test_pingpong import perftest, pingpong

WRITE = "ib_write_bw -d $IBDEV -x $GIDX -F -s 65536 -n"


def memlinks(guest):
    """The links of GUEST's adapter, as its device shows them."""
    return guest.lab.qmp(guest.name, "qhca-inspect", object="device")["look"]["memlinks"]


def sent(guest):
    return sum(link["sent"] for link in memlinks(guest))


def flow(guest, records):
    """Wait until GUEST has sent RECORDS more."""
    begin = sent(guest)
    deadline = time.monotonic() + PATIENCE
    while sent(guest) < begin + records:
        assert time.monotonic() < deadline, memlinks(guest)


def wait_linked(lab):
    """Each adapter has a link to each other one."""
    deadline = time.monotonic() + PATIENCE
    while any(len(memlinks(g)) < len(lab.guests) - 1 for g in lab.guests):
        assert time.monotonic() < deadline, [memlinks(g) for g in lab.guests]
        time.sleep(0.05)


def states(one, other):
    """The states of the links between two guests, one for each direction."""
    return [link["state"] for guest, peer in ((one, other), (other, one))
            for link in memlinks(guest) if link["peer"] == peer.state["mac"]]


def go_over(server, client):
    """Generate traffic until it uses the links."""
    deadline = time.monotonic() + PATIENCE
    while states(server, client) != ["up", "up"]:
        assert time.monotonic() < deadline, (memlinks(server), memlinks(client))
        pingpong(server, client, "ibv_rc_pingpong", "-n 100")


@pytest.fixture
def linked(pair):
    wait_linked(pair)
    go_over(pair.b, pair.a)
    return pair


@pytest.mark.parametrize("program,options", [
    ("ib_write_bw", "-s 1048576 -n 100"), ("ib_send_bw", "-s 65536 -n 200"),
    ("ib_read_bw", "-s 1048576 -n 100"),
])
def test_payload_is_named(linked, program, options):
    """Long messages are sent as records that refer to their payload."""
    teller = linked.b if program == "ib_read_bw" else linked.a
    before = memlinks(teller)[0]
    perftest(linked.b, linked.a, program, options)
    after = memlinks(teller)[0]
    assert after["state"] == "up"
    size, count = (int(word) for word in re.findall(r"-[sn] (\d+)", options))
    # 256 packets at most in each record.
    least = count * size / 4096 / 256
    assert after["named"] - before["named"] >= least


CROSSED = pytest.mark.long("each of the two values is in the gate, with another partner")


@pytest.mark.parametrize("program,options", [
    pytest.param("ibv_rc_pingpong", "-s 4097 -n 200", marks=CROSSED),
    ("ibv_rc_pingpong", "-s 1000000 -n 30 -r 20"),
    ("ibv_uc_pingpong", "-s 4097 -n 200"),
    pytest.param("ibv_uc_pingpong", "-s 1000000 -n 30 -r 20", marks=CROSSED),
])
def test_data(linked, program, options):
    """The data arrives unchanged."""
    before = sent(linked.a)
    pingpong(linked.b, linked.a, program, options)
    assert sent(linked.a) > before


@pytest.mark.parametrize("program", [
    pytest.param("ops", marks=pytest.mark.long("test_semantics has it, on linked adapters, too")),
    "mwpeer",
    pytest.param("extops", marks=pytest.mark.long("the simulation has them, too")),
])
def test_operations(linked, progs, program):
    """All operations, each checked by its program, with rights that end meanwhile."""
    before = sent(linked.a)
    run_pair(linked.b, linked.a, progs.path(program))
    assert sent(linked.a) > before


@pytest.mark.long("tests/device/test_memlink captures at either side")
def test_capture(linked, tmp_path):
    """A capture has all packets; before and after it there are none on the wire."""
    path = tmp_path / "run.pcapng"
    with linked.capture(path):
        before = [sent(g) for g in linked.guests]
        pingpong(linked.b, linked.a, "ibv_rc_pingpong", "-s 10000 -n 50")
        assert [sent(g) for g in linked.guests] == before
    assert path.stat().st_size > 2 * 50 * 10000
    go_over(linked.b, linked.a)
    before = sent(linked.a)
    pingpong(linked.b, linked.a, "ibv_rc_pingpong", "-s 10000 -n 50")
    assert sent(linked.a) > before


@pytest.mark.long("tests/device/test_memlink has a rule at either side")
def test_fault_rule(linked):
    """A rule for packets matches them on the wire; afterwards the link is used again."""
    with faults(linked, a=[{"action": "drop", "opcode": "WRITE_MIDDLE", "nth": 20}]) as listed:
        before = [sent(g) for g in linked.guests]
        perftest(linked.b, linked.a, "ib_write_bw", "-s 65536 -n 50")
        assert [sent(g) for g in linked.guests] == before
        assert listed("a")[0]["hits"]
    go_over(linked.b, linked.a)


@pytest.mark.long("tests/device/test_memlink resets either side in traffic")
def test_reset_in_traffic(linked):
    """An adapter that is reset in traffic comes back, and its link with it."""
    server = start_server(linked.b, f"{WRITE} 1000000")
    client = linked.a.start(f"{WRITE} 1000000 {linked.b.ip}")
    flow(linked.a, 1000)
    linked.b.run("echo 1 >/sys/class/net/$NETDEV/device/reset")
    for job in (client, server):
        assert job.wait().rc != 0
    linked.b.setup_nic()
    for guest in linked.guests:
        guest.wait_gid(guest.ip)
    go_over(linked.b, linked.a)


def test_three_guests(trio):
    """On a switch, too, each has links to both others."""
    wait_linked(trio)
    for server, client in (("a", "b"), ("b", "c"), ("c", "a")):
        go_over(trio[server], trio[client])
        pingpong(trio[server], trio[client], "ibv_rc_pingpong", "-s 100000 -n 50")

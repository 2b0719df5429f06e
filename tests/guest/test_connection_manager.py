# SPDX-License-Identifier: GPL-2.0-or-later
"""
The tools of librdmacm: connections by IP address, over QP 1.  Between two qhca
adapters and with Soft-RoCE in both roles, IPv4 and IPv6, over a VLAN, with many
GIDs, and a thousand connections at once.  mckey is in test_multicast.py.
"""

import contextlib
import ipaddress
import json
import re

import pytest

from labs import check_rping, run_pair
from qhca_lab.pair import start_server
from test_capture import tshark
from test_pingpong import pingpong

# tool: (server, client, port, pattern that the client's output shows so often)
TOOLS = {
    "rping": ("rping -s -a {ip} -V -C 20", "rping -c -a {ip} -V -v -C 20", 7174,
              "ping data: ", 20),
    "ucmatose": ("ucmatose -b {ip} -c 4 -C 10 -S 3000", "ucmatose -s {ip} -c 4 -C 10 -S 3000",
                 7471, "return status 0", 1),
    "udaddy": ("udaddy -b {ip} -c 4 -C 10", "udaddy -s {ip} -c 4 -C 10", 7174,
               "return status 0", 1),
    "rstream": ("rstream -b {ip} -S 65536 -I 10 -C 10 -T v",
                "rstream -s {ip} -S 65536 -I 10 -C 10 -T v", 7471, r"Gb/sec[^\n]*\n\S", 1),
}
# A port of librdmacm is not a TCP socket.
LISTENS = "rdma res show cm_id | grep -q 'LISTEN.*:{}'"


def tool(server, client, name, address):
    """One tool, with the server at @address; both sides report success."""
    serve, ask, port, pattern, times = TOOLS[name]
    limit = int(120 * server.pace)
    job = start_server(server, f"timeout {limit} " + serve.format(ip=address),
                       ready=LISTENS.format(port))
    result = client.run(f"timeout {limit} " + ask.format(ip=address), timeout=140,
                        check=name != "rping")
    if name == "rping":
        check_rping(result)
    served = job.wait(140)
    if name == "rping":
        check_rping(served)
    else:
        assert served.rc == 0, served.describe()
    assert len(re.findall(pattern, result.out)) == times, result.out


def rcopy(server, client):
    """A file, to a server of any address; rcopy knows no IPv6."""
    path = "/tmp/rcopy"
    client.run(f"dd if=/dev/urandom of={path} bs=1000 count=3001 status=none")
    job = start_server(server, f"rm -f {path}; rcopy", ready=LISTENS.format(7427))
    client.run(f"timeout {client.seconds(120)} rcopy {path} {server.ip}:{path}", timeout=140)
    want = client.run(f"sha256sum < {path}; rm {path}").out
    assert server.run(f"sha256sum < {path}; rm {path}").out == want
    job.kill()


def address(guest, family):
    return guest.ip if family == "IPv4" else guest.ip6


# The address is only in the messages that connect: one tool is enough for IPv6.
IPV6 = pytest.mark.long("rping has IPv6 in the gate")
CASES = [pytest.param(name, "IPv4") for name in TOOLS] + [
    pytest.param(name, "IPv6", marks=[] if name == "rping" else [IPV6])
    for name in reversed(TOOLS)]


@pytest.mark.parametrize("name,family", CASES)
def test_tool(pair, name, family):
    tool(pair.b, pair.a, name, address(pair.b, family))


def test_rcopy(pair):
    rcopy(pair.b, pair.a)


OTHER_WAY = pytest.mark.long("the other way round is in the gate")
ROLES = ("qhca-serves", "rxe-serves")


# In the gate one goes this way, the next one that way.
@pytest.mark.parametrize("role,name,family", [
    pytest.param(role, *case.values, marks=case.marks or [OTHER_WAY] * ((number + way) % 2))
    for number, case in enumerate(CASES) for way, role in enumerate(ROLES)])
def test_tool_with_soft_roce(mixed, role, name, family):
    server, client = (mixed.a, mixed.b) if role == "qhca-serves" else (mixed.b, mixed.a)
    tool(server, client, name, address(server, family))


@pytest.mark.parametrize("role", [ROLES[0], pytest.param(ROLES[1], marks=OTHER_WAY)])
def test_rcopy_with_soft_roce(mixed, role):
    rcopy(*((mixed.a, mixed.b) if role == "qhca-serves" else (mixed.b, mixed.a)))


# ------------------------------------------------------------------- VLANs


VLAN = 7


@contextlib.contextmanager
def vlan(lab):
    """An interface with a VLAN tag in each guest, as 10.98.7.N and fd98::N."""
    try:
        for n, guest in enumerate(lab.guests, 1):
            guest.run(
                f"ip link add link $NETDEV name tagged type vlan id {VLAN} && "
                f"ip addr add 10.98.7.{n}/24 dev tagged && "
                f"ip -6 addr add fd98::{n}/64 dev tagged nodad && ip link set tagged up")
        for n, guest in enumerate(lab.guests, 1):
            guest.wait_gid(f"10.98.7.{n}")
            guest.wait_gid(f"fd98::{n}")
        yield
    finally:
        for guest in lab.guests:
            guest.run("ip link del tagged", check=False)


def tagged_frames(path):
    """(RoCE frames with our tag, without any tag)"""
    return (len(tshark(path, "-Y", f"vlan.id == {VLAN} && udp.dstport == 4791")),
            len(tshark(path, "-Y", "!vlan && udp.dstport == 4791")))


@pytest.mark.long("four tools, one after the other; the same with Soft-RoCE stays in the gate")
def test_vlan(pair, tmp_path):
    """Connections by tools, datagrams, and all frames with the tag."""
    path = tmp_path / "vlan.pcapng"
    with vlan(pair):
        with pair.capture(path):
            tool(pair.b, pair.a, "rping", "10.98.7.2")
            tool(pair.a, pair.b, "rping", "fd98::1")
            tool(pair.b, pair.a, "udaddy", "10.98.7.2")
            tool(pair.b, pair.a, "rstream", "fd98::2")
        tagged, plain = tagged_frames(path)
        assert tagged > 100 and not plain
    for n, guest in enumerate(pair.guests, 1):
        guest.wait_no_gid(f"10.98.7.{n}")
    tool(pair.b, pair.a, "rping", pair.b.ip)


@pytest.mark.parametrize("role", [pytest.param("qhca-serves", marks=OTHER_WAY), "rxe-serves"])
def test_vlan_with_soft_roce(mixed, role, tmp_path):
    path = tmp_path / "vlan.pcapng"
    with vlan(mixed), mixed.capture(path):
        if role == "qhca-serves":
            tool(mixed.a, mixed.b, "rping", "10.98.7.1")
            tool(mixed.a, mixed.b, "udaddy", "10.98.7.1")
        else:
            tool(mixed.b, mixed.a, "rping", "10.98.7.2")
            tool(mixed.b, mixed.a, "udaddy", "10.98.7.2")
    tagged, plain = tagged_frames(path)
    assert tagged > 50 and not plain


# ------------------------------------------------------------ many addresses


def gids(guest):
    """RoCE v2 GIDs of IPv4 addresses: {address: index}."""
    out = guest.run("cd /sys/class/infiniband/$IBDEV/ports/1;"
                    " grep -s . gids/* gid_attrs/types/* || true").out
    rows = [line.split(":", 1) for line in out.splitlines()]
    kinds = {path.split("/")[-1]: text for path, text in rows if "types" in path}
    table = {}
    for path, text in rows:
        ip = ipaddress.ip_address(text).ipv4_mapped if path.startswith("gids/") else None
        if ip and kinds.get(path.split("/")[-1]) == "RoCE v2":
            table[str(ip)] = int(path.split("/")[-1])
    return table


@pytest.mark.long("waits for forty addresses; test_netdev has GIDs that follow addresses")
def test_many_gids(pair):
    """Each address of a port has its own GID, for connections and for verbs."""
    ends, last = range(20, 40), 39
    change = f"for i in $(seq {ends[0]} {last}); do ip addr %s 10.97.%d.$i/16 dev $NETDEV; done"
    try:
        for n, guest in enumerate(pair.guests, 1):
            guest.run(change % ("add", n))
        for n, guest in enumerate(pair.guests, 1):
            guest.wait_gid(f"10.97.{n}.{last}")
        tables = [gids(guest) for guest in pair.guests]
        where = [{end: table[f"10.97.{n}.{end}"] for end in ends}
                 for n, table in enumerate(tables, 1)]
        assert all(len(set(w.values())) == len(ends) for w in where)
        for end in (20, 31, last):
            tool(pair.b, pair.a, "rping", f"10.97.2.{end}")
            line = "ibv_rc_pingpong -d $IBDEV -c -n 20 -s 2000 -g "
            run_pair(pair.b, pair.a, line + str(where[1][end]),
                     line + f"{where[0][end]} {pair.b.ip}")
    finally:
        for n, guest in enumerate(pair.guests, 1):
            guest.run(change % ("del", n), check=False)
    for n, guest in enumerate(pair.guests, 1):
        guest.wait_no_gid(f"10.97.{n}.{last}")  # they go in order
        assert not any(ip.startswith("10.97.") for ip in gids(guest))
    pingpong(pair.b, pair.a, "ibv_rc_pingpong", "-s 4096 -n 20")


# ------------------------------------------------------------ many connections


@pytest.mark.long("test_scale has many objects, the tools one connection each")
@pytest.mark.parametrize("count", [200, 1000])
def test_many_connections(pair, progs, count):
    """All at once, with a QP each and verified data; then all are destroyed."""
    before = [guest.run("rdma res show").out for guest in pair.guests]
    server = start_server(pair.b, f"{progs.path('connections')} {count}",
                          ready=LISTENS.format(7471))
    client = pair.a.run(f"{progs.path('connections')} {count} {pair.b.ip}", timeout=150)
    served = server.wait(60)
    assert served.rc == 0, served.describe()
    for side in (client, served):
        out = json.loads(side.out)
        assert (out["up"], out["good"]) == (count, count), out
        assert out["ms"] < 120_000
        # rings, a doorbell record and librdmacm's own objects, for each
        assert out["grown_kib"] < 32 * count, out
    for guest, was in zip(pair.guests, before):
        guest.wait_for(f"test \"$(rdma res show)\" = '{was.rstrip(chr(10))}'")

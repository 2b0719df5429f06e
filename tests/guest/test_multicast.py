# SPDX-License-Identifier: GPL-2.0-or-later
"""
Multicast groups: joined by rdma_cm, used by mckey, between guests and with
Soft-RoCE.  Linux joins IPv4 groups only on RoCEv2 (else ENOTSUPP).
"""

import json

import pytest

from test_dmabuf import run_script


def mckey_sends(sender, group, count):
    result = sender.run(f"timeout {sender.seconds(100)} "
                        f"mckey -s -m {group} -b {sender.ip} -C {count}")
    assert "return status 0" in result.out, result.out


def mckey(receivers, sender, group, count=10, send=mckey_sends):
    """The sender's datagrams reach each of the receivers."""
    jobs = [
        guest.start(f"stdbuf -oL timeout {guest.seconds(120)} mckey -m {group} -b {guest.ip} -C {count}")
        for guest in receivers
    ]
    for job in jobs:
        job.wait_for("joined dgid")
    send(sender, group, count)
    for job in jobs:
        assert job.wait().rc == 0, job.out_so_far()
        assert "return status 0" in job.out_so_far()


@pytest.mark.long("test_members_on_both_sides has a receiver beyond the wire, too")
@pytest.mark.parametrize("direction", ["a-to-b", "b-to-a"])
def test_mckey(pair, direction):
    sender, receiver = (pair.a, pair.b) if direction == "a-to-b" else (pair.b, pair.a)
    before = receiver.ethtool_stat("roce_rx_multicast")
    mckey([receiver], sender, "239.77.0.1")
    assert receiver.ethtool_stat("roce_rx_multicast") - before == 10


def test_members_on_both_sides(pair):
    """A member next to the sender also gets what is sent to the wire."""
    mckey(list(pair), pair.a, "239.77.0.2")


def test_nobody_joined(pair):
    """The RDMA engine ignores packets of a group without members."""
    before = pair.b.ethtool_stat("roce_rx_packets")
    result = pair.a.run(f"timeout {pair.a.seconds(100)} "
                        f"mckey -s -m 239.77.0.9 -b {pair.a.ip} -C 10")
    assert "return status 0" in result.out
    assert pair.b.ethtool_stat("roce_rx_packets") == before


def group_sends(sender, group, count):
    assert f"{count} sent" in run_script(sender, "group", group, str(count)).out


@pytest.mark.parametrize("sender", ["qhca-sends", "rxe-sends"])
def test_with_soft_roce(mixed, sender):
    """
    Soft-RoCE and qhca name a group alike on the wire. mckey does not wait for its sends,
    and Soft-RoCE drops what its thread has not come to when the QP goes: there a program
    sends that waits.
    """
    source, receiver = (mixed.a, mixed.b) if sender == "qhca-sends" else (mixed.b, mixed.a)
    if source is mixed.a:
        mckey([receiver], source, "239.77.0.3")
    else:
        mckey([receiver], source, "239.77.0.3", send=group_sends)


@pytest.mark.parametrize("family", [
    pytest.param("4", marks=pytest.mark.long("mckey has groups of IPv4")), "6"])
def test_by_plain_verbs(pair, progs, family):
    """Members get it, the sender too unless it asked not to; bad requests fail."""
    guest = pair.a
    gid = guest.wait_gid(guest.ip if family == "4" else guest.ip6)
    out = guest.run(f"GIDX={gid} {progs.path('mcgroup')} {family}").out
    assert json.loads(out) == {"members": 0b111, "blocked": 0b110, "refused": ""}
    # Members that exit leave nothing.
    assert "mcgroup" not in guest.run("rdma resource show qp").out

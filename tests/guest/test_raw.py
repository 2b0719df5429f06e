# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw packet QPs and flow steering between two guests, and beside the kernel."""

import errno
import json
from pathlib import Path

import pytest

from labs import run_pair

SOURCE = Path(__file__).parent / "raw.py"


@pytest.fixture
def raw(pair):
    """Runs raw.py in a guest: raw(guest, arguments) -> what it says."""
    for guest in pair:
        guest.run("cat > /tmp/raw.py", input=SOURCE.read_bytes())

    def run(guest, arguments, **kwargs):
        out = guest.run(f"python3 /tmp/raw.py {arguments}", **kwargs).out
        return json.loads(out.splitlines()[-1])

    return run


def start(guest, arguments):
    """Start raw.py and wait until its rule is there."""
    job = guest.start(f"timeout {guest.seconds(180)} python3 -u /tmp/raw.py {arguments}")
    job.wait_for("ready", 60)
    return job


def mac(guest):
    return guest.run("cat /sys/class/net/$NETDEV/address").out.strip()


def test_a_port_is_steered_away_from_the_kernel(pair, raw):
    """A rule takes its frames, checksums right; all other traffic goes on."""
    a, b = pair.a, pair.b
    job = start(b, "receive $IBDEV 7777 20")
    before = b.ethtool_stat("eth_rx_packets")
    assert raw(a, f"send $IBDEV {mac(a)} {mac(b)} 7777 20") == {"sent": 20}
    assert job.wait().rc == 0
    said = json.loads(job.out_so_far().splitlines()[-1])
    assert said == {"got": list(range(20)), "checked": 20}
    assert b.ethtool_stat("eth_rx_packets") - before < 20
    a.run(f"ping -c 3 -i 0.1 -W 2 {b.ip}")
    # without the rule they are the kernel's again
    before = b.ethtool_stat("eth_rx_packets")
    assert raw(a, f"send $IBDEV {mac(a)} {mac(b)} 7777 20") == {"sent": 20}
    b.wait_for(f"test $(ethtool -S $NETDEV | awk '/eth_rx_packets/ {{print $2}}')"
               f" -ge {before + 20}")


@pytest.mark.long("the kernel's core asks for it, not the driver")
def test_needs_a_privilege(pair, raw):
    """Without CAP_NET_RAW a process cannot send handmade frames."""
    guest = pair.a
    assert raw(guest, "create $IBDEV") == {"errno": 0}
    guest.run("chmod 666 /dev/infiniband/uverbs*")
    assert raw(guest, "create $IBDEV", user="nobody") == {"errno": errno.EPERM}


def test_what_is_refused(pair, raw):
    assert raw(pair.a, "refused $IBDEV") == {
        "good": 0,
        "twice": errno.EINVAL,
        "egress": errno.EOPNOTSUPP,
        "no port": errno.EINVAL,
        "default with headers": errno.EINVAL,
        "default": 0,
        "sniffer": 0,
    }


def test_sniffer(pair, raw):
    """A sniffer sees RoCE packets both ways, which no network interface does."""
    a, b = pair.a, pair.b
    job = start(a, "sniff $IBDEV 40")
    run_pair(b, a, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 50 -s 1024")
    assert job.wait().rc == 0
    seen = json.loads(job.out_so_far().splitlines()[-1])
    assert set(seen) == {a.ip, b.ip} and min(seen.values()) > 5, seen


WQ_FATAL = 19   # enum ibv_event_type


def test_event_of_a_wq(pair, progs):
    """The application hears that a WQ of its RSS QP has failed."""
    out = pair.a.run(progs.path("wqfatal")).out
    assert json.loads(out) == {"event": WQ_FATAL, "wq": 1}


def test_actions(pair, progs):
    """Tags and drops, VLAN tags taken out, tunnels refused."""
    out = pair.a.run(progs.path("flows")).out
    assert json.loads(out) == {
        "tag": 0xABCDEF, "cvlan": 0x6007, "len": 64, "dropped": True, "refused": "",
    }

# SPDX-License-Identifier: GPL-2.0-or-later
"""Hardware timestamps and the PTP clock."""

import json
import re
from pathlib import Path

import pytest

from test_driver import function_reset, ping

SCRIPT = Path(__file__).parent / "scripts" / "stamps.py"
# linux/net_tstamp.h
TX_OFF, TX_ON, TX_ONESTEP = 0, 1, 2
RX_NONE, RX_ALL, RX_PTP_V2_EVENT = 0, 1, 12


def stamps(guest, *args):
    """What a function of scripts/stamps.py prints last."""
    return json.loads(guest.run(f"python3 /tmp/stamps.py {' '.join(map(str, args))}").out)


@pytest.fixture
def stamping(pair):
    """Both guests with the script; without stamps at the end."""
    for g in pair:
        g.put(SCRIPT, "/tmp/stamps.py")
    ping(pair)
    yield pair
    for g in pair:
        stamps(g, "configure", TX_OFF, RX_NONE)


def exchange(pair, wanted=True):
    """Send a datagram from a to b: [clock before, stamp, clock after] of each."""
    job = pair.b.start("python3 /tmp/stamps.py receive")
    job.wait_for("ready")
    sent = stamps(pair.a, "send", pair.b.ip, int(wanted))
    result = job.wait()
    assert result.rc == 0, result.describe()
    return sent, json.loads(result.out.splitlines()[-1])


def test_stamps(stamping):
    """A frame's timestamps lie between the clock's values before and after, only while enabled."""
    a, b = stamping.a, stamping.b
    shown = a.run(f"ethtool -T {a.netdev}").out
    for word in ("hardware-transmit", "hardware-receive", "hardware-raw-clock",
                 "software-transmit", "on", "all"):
        assert re.search(rf"^\s+{word}\b", shown, re.MULTILINE), shown
    index = re.search(r"(?:PTP Hardware Clock|Hardware timestamp provider index): (\d+)", shown)[1]
    assert a.run(f"cat /sys/class/ptp/ptp{index}/clock_name").out == "qhca\n"
    sent, received = exchange(stamping, wanted=False)
    assert received[1] == 0
    assert stamps(a, "configure", TX_ON, RX_NONE) == [0, TX_ON, RX_NONE]
    # who wants some frames stamped gets all
    assert stamps(b, "configure", TX_OFF, RX_PTP_V2_EVENT) == [0, TX_OFF, RX_ALL]
    assert stamps(b, "config") == [0, TX_OFF, RX_ALL]
    assert a.run(f"python3 /tmp/stamps.py configure {TX_ONESTEP} 0", check=False).rc
    for before, stamp, after in exchange(stamping):
        assert before <= stamp <= after


@pytest.mark.long("quick for the adapter, slow to reset twice")
def test_stamps_after_reset(stamping):
    """Settings and clock survive a reset of the adapter."""
    for g in stamping:
        stamps(g, "configure", TX_ON, RX_ALL)
        function_reset(g)
        g.setup_nic()
    ping(stamping)
    for before, stamp, after in exchange(stamping):
        assert before <= stamp <= after


def test_clock(stamping):
    """The clock can be set, moved and steered."""
    found = stamps(stamping.a, "steer")
    assert abs(found["plain"] - 1) < 0.005
    assert abs(found["fast"] - 1.05) < 0.005
    assert abs(found["slow"] - 0.95) < 0.005
    assert 4900 * 10**9 < found["back"] < 5000 * 10**9
    assert 0 <= found["set"] < 10**11
    assert found["refused"] == 34


@pytest.mark.long("PTP takes its time: one message a second")
def test_linuxptp(stamping):
    """phc2sys synchronizes a's adapter, ptp4l synchronizes b's to it."""
    a, b = stamping.a, stamping.b
    a.run("systemctl stop ptp4l phc2sys", check=False)
    second = 10**9
    for g, wrong in ((a, -5000), (b, 7000)):
        stamps(g, "step", wrong)
        stamps(g, "configure", TX_ON, RX_ALL)
    sent, received = (s[1] for s in exchange(stamping))
    assert abs(received - sent) > 9000 * second
    common = "--tx_timestamp_timeout 20000 --summary_interval -4 -2 -m -q -i $NETDEV"
    jobs = [
        a.start("exec phc2sys -s CLOCK_REALTIME -c $NETDEV -O 0 -m -q"),
        a.start(f"exec ptp4l {common} --serverOnly 1 --priority1 1"),
        b.start(f"exec ptp4l {common} --clientOnly 1 --step_threshold 1"),
    ]
    try:
        # clocks that are steered (s2), and no more than 10 ms apart
        jobs[0].wait_for(r"offset +-?\d{1,7} s2 ", 120)
        jobs[2].wait_for(r"master offset +-?\d{1,7} s2 ", 120)
        sent, received = (s[1] for s in exchange(stamping))
    finally:
        for job in jobs:
            job.kill()
    assert abs(received - sent) < 10 * second, (sent, received)
    before, now, after = a.run("date +%s%N; python3 /tmp/stamps.py now; date +%s%N").out.split()
    assert int(before) - 10 * second < int(now) < int(after) + 10 * second

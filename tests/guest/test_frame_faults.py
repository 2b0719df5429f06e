# SPDX-License-Identifier: GPL-2.0-or-later
"""Injected faults and stops at frames of the network interface."""

import re

from labs import PATIENCE, Python
from test_fault_injection import faults
from test_net_queues import transfer
from test_stops import debugger, stopped

IPV4 = {"at": "frame", "number": 0x0800}
SEND = """
import socket
with socket.create_connection(({dst!r}, {port})) as s:
    s.sendall(bytes({size}))
    s.shutdown(socket.SHUT_WR)
    print(s.recv(16).decode())
"""
COUNT = """
import socket
s = socket.create_server(("", {port}))
print("ready", flush=True)
c, _ = s.accept()
n = 0
while data := c.recv(1 << 16):
    n += len(data)
c.sendall(str(n).encode())
"""


def test_pings(pair):
    """Of ten pings one is lost, one is late, and one arrives twice."""
    pair.a.run(f"ping -c 1 -W {PATIENCE} {pair.b.ip}")
    with faults(pair, a=[{"action": "drop", "nth": 3, **IPV4},
                         {"action": "delay", "nth": 5, "time": 300_000_000, **IPV4}],
                b=[{"action": "duplicate", "direction": "in", "nth": 6, **IPV4}]) as listed:
        out = pair.a.run(f"ping -c 10 -i 0.1 -W {PATIENCE} {pair.b.ip}").out
        assert [f["hits"] for f in listed("a") + listed("b")] == [1, 1, 1]
    assert "10 packets transmitted, 9 received, +1 duplicates" in out, out
    late = float(re.search(r"icmp_seq=5 .* time=([0-9.]+) ms", out)[1])
    assert late >= 300, out


def test_tcp(pair):
    """TCP repairs what is lost, out of order, or damaged, which its checksum detects."""
    errors = "nstat -az | awk '/InCsumErrors|IpInHdrErrors/ {s += $2} END {print s + 0}'"
    before = int(pair.b.run(errors).out)
    rules = [{"action": action, "direction": "in", "every": every, "count": 10, **more, **IPV4}
             for action, every, more in (("drop", 50, {}), ("corrupt", 40, {}),
                                         ("reorder", 30, {"packets": 3, "time": 10_000_000}))]
    with faults(pair, b=rules) as listed:
        transfer(pair.a, pair.b, pair.b.ip, 5307)
        assert all(f["hits"] > 3 for f in listed("b")), listed("b")
    assert int(pair.b.run(errors).out) > before


def test_steps(pair):
    """In the middle of a large send, n steps are n frames."""
    port, size = 5308, 200_000
    job = pair.b.start(Python(COUNT.format(port=port)))
    job.wait_for("ready")
    with debugger(pair.a) as qmp:
        qmp.command("qhca-break-add", {"condition": {"on": "frame", "ignore": 20, "once": True}})
        sender = pair.a.start(Python(SEND.format(dst=pair.b.ip, port=port, size=size)))
        stopped(qmp)
        for n in (1, 3, 7):
            qmp.command("qhca-step", {"on": "frame", "count": n})
            event = stopped(qmp)["event"]
            trail = qmp.command("qhca-query-stop")["look"]["trail"]
            steps = [t for t in trail if t["kind"] in ("eth_tx", "eth_rx")]
            assert steps[-1] == event and len(steps) == n, trail
    done = sender.wait(120)
    assert done.rc == 0 and done.out.strip() == str(size), done.describe()
    assert job.wait(120).rc == 0

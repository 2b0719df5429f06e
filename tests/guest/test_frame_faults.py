# SPDX-License-Identifier: GPL-2.0-or-later
"""Injected faults and stops at frames of the network interface."""

from labs import PATIENCE, Python
from test_fault_injection import faults
from test_net_queues import transfer
from test_stops import debugger, stopped

IPV4 = {"at": "frame", "number": 0x0800}
# A type for local experiments; the adapters use the other one.
TYPE = 0x88B6
LISTEN = """
import os, socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons({type}))
s.bind((os.environ["NETDEV"], {type}))
print("ready", flush=True)
print([s.recv(2000)[14] for _ in range({count})], flush=True)
"""
FRAMES = """
import os, socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((os.environ["NETDEV"], {type}))
head = b"\\xff" * 6 + s.getsockname()[4] + bytes([{type} >> 8, {type} & 255])
for number in range(1, {count} + 1):
    s.send(head + bytes([number]) * 100)
"""
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


def test_one_by_one(pair):
    """Of ten frames one is lost, one is late, and one arrives twice."""
    a, b = pair.a, pair.b
    ours = {"at": "frame", "number": TYPE}
    job = b.start(Python(LISTEN.format(type=TYPE, count=10)))
    job.wait_for("ready")
    with faults(pair, a=[{"action": "drop", "nth": 3, **ours},
                         {"action": "delay", "nth": 5, "time": 1_000_000_000, **ours}],
                b=[{"action": "duplicate", "direction": "in", "nth": 6, **ours}]) as listed:
        a.run(Python(FRAMES.format(type=TYPE, count=10)))
        result = job.wait(PATIENCE)
        assert [f["hits"] for f in listed("a") + listed("b")] == [1, 1, 1]
    # that of b counts what arrives there: 1 2 4 6 7 8
    assert result.out.splitlines()[-1] == "[1, 2, 4, 6, 7, 8, 8, 9, 10, 5]", result.describe()


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

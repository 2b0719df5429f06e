# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of real runs: complete, in causal order, arrows where they belong."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labs import LAB_NAME, TOP

sys.path.insert(0, str(TOP / "tests"))

from qhca_lab import LabError  # noqa: E402
from qhca_lab.record import Recording, ftrace  # noqa: E402
from qhca_lab.pair import run as run_pair  # noqa: E402
from qhca_lab.pair import start_server  # noqa: E402
from timeline import Trace, has_perfetto, kinds, seen_by_perfetto  # noqa: E402

SEND = ["wqe", "doorbell", "doorbell", "qpc", "wqe", "tx", "rx"]


def record(lab, folder, command, client="", **options):
    """Record COMMAND in b and, with b's address and CLIENT behind it, in a."""
    recording = Recording(lab, folder, **options)
    with recording:
        both = list(run_pair(lab, ("b", command), ("a", f"{command} {client} $PEER")))
        assert not any(r.rc for r in both), "\n".join(r.describe() for r in both)
    return recording.result, Trace(json.loads((folder / "trace.json").read_text()))


def in_order(trace, error_ns=100_000):
    """No event is earlier than its cause."""
    for name, clock in trace.other["clocks"].items():
        assert clock["guest_disorder_ns"] == clock["adapter_disorder_ns"] == 0, (name, clock)
        assert clock["guest_error_ns"] < error_ns, (name, clock)
    for kind, name, _, steps in trace.flows:
        times = [s["ts"] for s in steps]
        assert times == sorted(times), (kind, name)


def nothing_left(lab):
    for guest in lab.guests:
        out = guest.run("cat /sys/kernel/tracing/uprobe_events; "
                        "ls /sys/kernel/tracing/instances /sys/kernel/tracing/events").out
        assert "libqhca" not in out and "qhca-record" not in out


def tshark(path, *args):
    return subprocess.run(["tshark", "-n", "-r", str(path), *args], check=True,
                          capture_output=True, text=True, timeout=120).stdout.splitlines()


OTHERS = pytest.mark.long("others of the same kind are in the gate")


@pytest.mark.parametrize("events", ["", pytest.param("-e", marks=OTHERS)],
                         ids=["polling", "events"])
def test_pingpong(pair, tmp_path, events):
    """Every message, from its store to the peer's poll, and its acknowledge back."""
    n = 20
    merged, trace = record(pair, tmp_path,
                           f"ibv_rc_pingpong -d $IBDEV -g $GIDX -n {n} -s 3000 -m 1024 {events}")
    assert merged.problems == []
    in_order(trace)
    if has_perfetto():
        seen_by_perfetto(tmp_path / "trace.json", trace)
    messages, completions = trace.flow("message"), trace.flow("completion")
    assert len(messages) == len(completions) == 2 * n
    for _, name, args, steps in messages:
        assert kinds(steps)[:9] == [*SEND, "rx", "cqe"] and kinds(steps)[-1] == "poll"
        sender = steps[0]["pid"]
        assert [s["pid"] for s in steps] == [sender] * 6 + [3 - sender] * (len(steps) - 6)
        wqe, _, rung, _, fetched, out, first, last, cqe = (s["args"] for s in steps[:9])
        assert wqe["index"] == fetched["index"] == args["index"] and rung["index"] > args["index"]
        assert out["psn"] == first["psn"] == fetched["psn"]
        assert last["psn"] == (fetched["psn"] + 2) & 0xFFFFFF
        polled = steps[-1]["args"]
        assert (polled["cqn"], polled["index"]) == (cqe["cqn"], cqe["index"])
        assert (polled["bytes"], polled["status_name"]) == (3000, "SUCCESS")
    for _, name, args, steps in completions:
        assert kinds(steps)[:4] == ["rx", "tx", "rx", "cqe"] and kinds(steps)[-1] == "poll"
        assert steps[3]["args"]["wqe"] == args["index"]
    slept = [s for _, _, _, s in messages + completions if "irq" in kinds(s)]
    assert bool(slept) == bool(events)
    full = ["cqe", "eqe", "msix", "irq", "eqe", "cq_event", "poll"]
    ways = [kinds(steps)[kinds(steps).index("cqe"):] for steps in slept]
    assert not events or full in ways
    for way in ways:
        # Who arms the CQ and polls it may find the CQE before its event is handled.
        assert way[-1] == "poll" and way[:-1] == full[: len(way) - 1]
    # The driver's side of the same QPs, in the order of a life.
    for pid in (1, 2):
        qpn = next(f[3][0]["args"]["qpn"] for f in messages if f[3][0]["pid"] == pid)
        life = [e["args"]["event"] for e in trace.events
                if e["pid"] == pid and e["cat"] == "driver" and e["args"].get("qpn") == qpn]
        assert life == ["create_qp"] + ["modify_qp"] * 3 + ["destroy_qp"]
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    nothing_left(pair)


@pytest.mark.long("tests/lab/test_record has Wireshark read the packets of a recording")
def test_packets(pair, tmp_path):
    """wire.pcapng has the same packets at the same times, and says whose they are."""
    merged, trace = record(pair, tmp_path, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 10 -s 3000")
    path = tmp_path / "wire.pcapng"
    assert not tshark(path, "-Y", "_ws.malformed")
    rows = [r.split("\t") for r in tshark(
        path, "-Y", "infiniband.bth", "-T", "fields", "-e", "frame.time_epoch",
        "-e", "frame.interface_name", "-e", "infiniband.bth.psn", "-e", "frame.comment")]
    sent = sorted(trace.of("device", "tx"), key=lambda e: e["ts"])
    assert len(rows) == len(sent)
    wqes = {(e["pid"], e["args"]["qpn"], e["args"]["index"]): e["args"]["psn"]
            for e in trace.of("device", "wqe")}
    for (epoch, interface, psn, comment), event in zip(rows, sent):
        seconds, nanos = epoch.split(".")
        # The three packets of a super-frame went at one time, and are drawn 1 ns apart.
        assert abs(int(seconds) * 10**9 + int(nanos[:9]) - event["ts"] * 1000) < 4
        assert interface == f"guest {'ab'[event['pid'] - 1]}" and int(psn) == event["args"]["psn"]
        assert f"psn {psn}" in comment and event["args"]["opcode_name"] in comment
        found = re.match(r"qp (\d+) sq wqe (\d+) ", comment)
        if "SEND" in comment:
            first = wqes[event["pid"], int(found[1]), int(found[2])]
            assert 0 <= (int(psn) - first) & 0xFFFFFF < 3


@pytest.mark.long("test_pingpong has the way of a message; others differ in their opcode")
@pytest.mark.parametrize("command,opcode", [
    ("ib_write_bw -s 5000 -n 8", "RDMA_WRITE"),
    ("ib_read_bw -s 5000 -n 8", "RDMA_READ"),
    ("ib_atomic_bw -n 8", "FETCH_ADD"),
    ("ib_send_bw -c UD -s 1000 -n 8", "SEND")])
def test_operations(pair, tmp_path, command, opcode):
    """perftest: all that was posted is there and crosses to the peer."""
    merged, trace = record(pair, tmp_path, f"{command} -d $IBDEV -x $GIDX -F")
    assert merged.problems == []
    in_order(trace)
    posted = [e for e in trace.of("provider", "wqe", opcode_name=opcode) if e["pid"] == 1]
    assert len(posted) >= 8
    ways = {id(f[3][0]): kinds(f[3]) for f in trace.flow("message")}
    for event in posted:
        assert ways[id(event)][: len(SEND)] == SEND
    assert [f for f in trace.flow("completion") if f[3][-1]["args"]["event"] == "poll"]


@pytest.mark.long("tests/lab has recordings of packets that are lost")
def test_loss(loss_pair, progs, tmp_path):
    """Packets lost on the wire are reported, and arrows connect those that arrived."""
    merged, trace = record(loss_pair, tmp_path,
                           f"{progs.path('faultpp')} --timeout 14 --iters 400 --len 16384")
    in_order(trace)
    assert len(trace.flow("message")) == 800
    lost = [p for p in merged.packets if p.comment.endswith("did not arrive")]
    assert lost and trace.of("device", "retransmit")
    assert any(" again " in p.comment for p in merged.packets)
    # A packet that its QP drops came in first; one for no QP any more did not.
    came = len(trace.of("device", "rx"))
    came += len(trace.of("device", "rx_drop", counter_name="roce-rx-no-qp"))
    assert len(trace.of("device", "tx")) == came + len(lost)
    for _, _, _, steps in trace.flow("message"):
        assert kinds(steps)[-1] == "poll"


@pytest.mark.long("2000 messages; tests/lab/test_record_parts has clocks over a standstill")
def test_standstill(pair, tmp_path):
    """A freeze in mid-run is not in the trace, and tears nothing apart."""
    recording = Recording(pair, tmp_path)
    with recording:
        line = "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 1000 -s 64"
        job = start_server(pair.b, line)
        client = pair.a.start(f"{line} {pair.b.ip}")
        def runs():
            return int(pair.a.run("ls /dev/infiniband/uverbs* >/dev/null; rdma res show qp "
                                  "| grep -c RTS || true").out or 0)
        while client.running and not runs():
            pass
        pair.freeze()
        pair.thaw()
        assert client.wait().rc == 0 and job.wait().rc == 0
    assert recording.result.problems == []
    trace = Trace(json.loads((tmp_path / "trace.json").read_text()))
    in_order(trace)
    assert len(trace.flow("message")) == len(trace.flow("completion")) == 2000
    assert all(kinds(f[3])[-1] == "poll" for f in trace.flow("message"))


@pytest.mark.long("tests/lab/test_record_parts has traces with losses")
def test_little_room(pair, tmp_path):
    """What does not fit is counted and reported; the rest is correct."""
    merged, trace = record(pair, tmp_path,
                           "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 1500 -s 64",
                           buffer_mb=0.1, limit_mb=0.2)
    lost = trace.other["lost"]
    for name in "ab":
        assert lost[name]["device"] > 0 and lost[name]["guest"] > 0
        assert sum(p.startswith(f"guest {name}: ") and "events are missing at its end" in p
                   for p in merged.problems) == 2, merged.problems
    # Also what came after the begin, whose end is missing: so the further from it,
    # the less exact.
    in_order(trace, 1_000_000)


@pytest.mark.long("test_pingpong has all sources; this is one less")
def test_without_provider(pair, tmp_path):
    merged, trace = record(pair, tmp_path, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5",
                           provider=False)
    assert merged.problems == []
    assert {e["cat"] for e in trace.events} == {"driver", "device"}
    assert len(trace.flow("message")) == 10


@pytest.mark.long("recordings that are refused or killed; the gate has those that end well")
def test_one_at_a_time(pair, tmp_path):
    """A second recording is refused and harmless; --clean helps after a kill."""
    first = Recording(pair, tmp_path / "one")
    first.start()
    with pytest.raises(LabError, match="already running"):
        Recording(pair, tmp_path / "two").start()
    first.stop()
    # As one that is killed leaves it:
    first.start()
    done = lab("record", "--clean")
    assert done.returncode == 0
    nothing_left(pair)
    with Recording(pair, tmp_path / "three"):
        pass


def lab(*args, **kwargs):
    return subprocess.run([str(TOP / "lab/qhca-lab"), "--name", LAB_NAME, *args],
                          capture_output=True, text=True, timeout=180, **kwargs)


@pytest.mark.long("docs/how-to/record-a-run.md has the command; its errors alone are here")
def test_command_line(pair, tmp_path):
    """Output and exit status of what runs pass through; errors are told."""
    script = tmp_path / "script"
    script.write_text(f'"{TOP}/lab/qhca-lab" exec a -- sh -c "echo in \\$NODE"; exit 7\n')
    done = lab("record", "-o", str(tmp_path / "run"), "--", "sh", str(script))
    assert (done.returncode, done.stdout) == (7, "in a\n"), done.stderr
    assert {"trace.json", "wire.pcapng"} <= set(os.listdir(tmp_path / "run"))
    done = lab("record", "-o", str(tmp_path / "run"),
               "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 3")
    assert done.returncode == 0 and "a: 3 iters" in done.stdout, done.stderr
    assert "12 packets" in done.stderr or "packets in" in done.stderr
    done = lab("record", "-o", str(tmp_path / "run"), "false")
    assert done.returncode != 0 and "ended with status 1" in done.stderr
    done = lab("record", "-o", str(tmp_path / "run"), "--", "/nonexistent")
    assert done.returncode == 125 and "cannot run" in done.stderr
    done = lab("record", "x", "--seconds", "1")
    assert done.returncode == 125 and "give one of" in done.stderr
    nothing_left(pair)


def test_rxe_peer(mixed, tmp_path):
    """A guest without our adapter is only seen through its packets."""
    merged, trace = record(mixed, tmp_path, "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5")
    assert [p for p in merged.problems if p.startswith("guest b: nothing is recorded")]
    assert {e["pid"] for e in trace.events} == {1}
    assert len(trace.flow("message")) == len(trace.flow("completion")) == 5
    assert {p.out for p in merged.packets} == {True, False}
    assert not tshark(tmp_path / "wire.pcapng", "-Y", "_ws.malformed")


@pytest.mark.long("test_pingpong has two; the third is one more of the same")
def test_three_guests(trio, tmp_path):
    """Over a switch; every pair of adapters is brought together."""
    recording = Recording(trio, tmp_path)
    with recording:
        for server, client in (("a", "b"), ("b", "c"), ("c", "a")):
            line = "ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5"
            for result in run_pair(trio, (server, line), (client, f"{line} $PEER")):
                assert result.rc == 0, result.describe()
    assert recording.result.problems == []
    trace = Trace(json.loads((tmp_path / "trace.json").read_text()))
    in_order(trace)
    assert len(trace.flow("message")) == len(trace.flow("completion")) == 30
    ends = {(f[3][0]["pid"], f[3][-1]["pid"]) for f in trace.flow("message")}
    assert ends == {(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b}


def test_points_are_found(pair):
    """The library in the guest has all points that are wanted."""
    data = ftrace.library(pair.a)
    assert data == Path(TOP / "build/provider/libqhca-rdmav34.so").read_bytes()

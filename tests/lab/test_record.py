# SPDX-License-Identifier: GPL-2.0-or-later
"""Merging recordings: a real one of two guests (recording/raw: ibv_rc_pingpong with
events, two messages of two packets each way), and made-up ones."""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "lab"), str(TOP / "tests")]

from qhca_lab import pcapng  # noqa: E402
from qhca_lab.errors import LabError  # noqa: E402
from qhca_lab.record import causes, device_log, ftrace  # noqa: E402
from qhca_lab.record.merge import Source, merge  # noqa: E402
from qhca_lab.record.session import merge_folder  # noqa: E402
from timeline import Trace, has_perfetto, seen_by_perfetto  # noqa: E402

RAW = Path(__file__).parent / "recording" / "raw"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    shutil.copytree(RAW, folder / "raw")
    return folder


@pytest.fixture(scope="module")
def merged(folder):
    return merge_folder(folder, [])


@pytest.fixture(scope="module")
def trace(merged, folder):
    return Trace(json.loads((folder / "trace.json").read_text()))


def test_whole(merged, trace):
    assert merged.problems == []
    names = {(e["pid"], e["name"]): e["args"]["name"] for e in trace.trace["traceEvents"]
             if e["ph"] == "M" and e["name"] == "process_name"}
    assert list(names.values()) == ["guest a 10.99.0.1", "guest b 10.99.0.2"]
    layers = {(e["pid"], e["cat"]) for e in trace.events}
    assert layers == {(g, x) for g in (1, 2) for x in ("provider", "driver", "device")}
    assert trace.trace["otherData"]["command"].startswith("ibv_rc_pingpong")
    assert trace.trace["otherData"]["lost"] == {
        "a": {"device": 0, "guest": 0}, "b": {"device": 0, "guest": 0}}
    assert (trace.events[0]["ts"] >= 0)


needs_perfetto = pytest.mark.skipif(
    not has_perfetto(), reason="no trace processor of Perfetto's: lab/perfetto/fetch-perfetto gets it")


@needs_perfetto
def test_perfetto_sees_the_same(merged, trace, folder):
    seen_by_perfetto(folder / "trace.json", trace)


@needs_perfetto
@pytest.mark.parametrize("spoil", ["arrow", "length", "text"])
def test_perfetto_sees_what_is_wrong(trace, tmp_path, spoil):
    """The checker is useful only if it can fail."""
    wrong = json.loads(json.dumps(trace.trace))
    events = wrong["traceEvents"]
    if spoil == "arrow":
        events.remove(next(e for e in events if e["ph"] == "f"))
    elif spoil == "length":
        next(e for e in events if e["ph"] == "X")["dur"] += 1
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(wrong)[:-20 if spoil == "text" else None])
    with pytest.raises(LabError if spoil == "text" else AssertionError):
        seen_by_perfetto(path, trace)


@needs_perfetto
def test_sql(folder, merged):
    run = [str(TOP / "lab/qhca-lab"), "record", "-o", str(folder), "--sql"]
    query = "SELECT name, count(*) AS n FROM slice GROUP BY name"
    done = subprocess.run([*run, query], capture_output=True, text=True, check=True)
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header == ["name", "n"] and rows and all(int(n) > 0 for _, n in rows)
    done = subprocess.run([*run, "SELECT nonsense FROM slice"], capture_output=True, text=True,
                          check=False)
    assert done.returncode and "no such column: nonsense" in done.stderr


def test_nothing_is_lost_in_merging(trace):
    """As many events as were recorded, but for frames, which are packets."""
    for pid, name in ((1, "a"), (2, "b")):
        device = [json.loads(x) for x in (RAW / f"{name}.device").read_text().splitlines()]
        device = [x for x in device
                  if x["kind"] not in ("start", "sync", "end", "frame_in", "frame_out")]
        guest = [x for x in (RAW / f"{name}.guest").read_text().splitlines() if x[0] != "#"]
        here = [e for e in trace.events if e["pid"] == pid]
        assert len([e for e in here if e["cat"] == "device"]) == len(device)
        assert len([e for e in here if e["cat"] != "device"]) == len(guest)


def test_messages(trace):
    """Each message's arrow goes through its own events, from the store to the poll."""
    flows = trace.flow("message")
    assert len(flows) == 4
    for _, name, args, steps in flows:
        sender, qpn, index = steps[0]["pid"], args["qpn"], args["index"]
        peer = 3 - sender
        kinds = [(s["pid"], s["cat"], s["args"]["event"]) for s in steps]
        assert kinds[:8] == [
            (sender, "provider", "wqe"), (sender, "provider", "doorbell"),
            (sender, "device", "doorbell"), (sender, "device", "qpc"), (sender, "device", "wqe"),
            (sender, "device", "tx"), (peer, "device", "rx"), (peer, "device", "rx")]
        assert kinds[8] == (peer, "device", "cqe") and kinds[-1] == (peer, "provider", "poll")
        assert name == f"qp {qpn} sq {index}"
        wqe, store, rung, qpc, fetched, out, first, last, cqe = (s["args"] for s in steps[:9])
        for a in (wqe, fetched):
            assert (a["qpn"], a["index"], a["wr_id"]) == (qpn, index, wqe["wr_id"])
        assert wqe["bytes"] == fetched["bytes"] == 2000
        assert store["number"] == rung["number"] == qpc["qpn"] == qpn
        # Any number of WQEs can be behind one doorbell: it must cover this one.
        assert store["index"] == rung["index"] == index + 1
        assert out["psn"] == first["psn"] == fetched["psn"]
        assert out["opcode_name"] == first["opcode_name"] == "RC SEND_FIRST"
        assert (last["psn"], last["opcode_name"]) == ((out["psn"] + 1) & 0xFFFFFF, "RC SEND_LAST")
        assert (out["qpn"], out["peer"]) == (qpn, first["qpn"])
        assert cqe["qpn"] == first["qpn"] and cqe["opcode_name"] == "RECV"
        polled = steps[-1]["args"]
        assert (polled["cqn"], polled["index"], polled["wr_id"], polled["wqe"]) == (
            cqe["cqn"], cqe["index"], cqe["wr_id"], cqe["wqe"])


def test_completions(trace):
    """And the acknowledge's, back to the sender's poll."""
    flows = trace.flow("completion")
    assert len(flows) == 4
    for _, _, args, steps in flows:
        sender = steps[-1]["pid"]
        peer = 3 - sender
        request, out, into, cqe = steps[:4]
        assert [(s["pid"], s["args"]["event"]) for s in steps[:4]] == [
            (peer, "rx"), (peer, "tx"), (sender, "rx"), (sender, "cqe")]
        assert out["args"]["opcode_name"] == "RC ACK"
        assert request["args"]["psn"] == out["args"]["psn"] == into["args"]["psn"]
        assert (cqe["args"]["qpn"], cqe["args"]["wqe"]) == (args["qpn"], args["index"])
        assert steps[-1]["args"]["wr_id"] == cqe["args"]["wr_id"]


def test_interrupts(trace):
    """Where the application slept, the way goes by EQE, MSI-X and the driver."""
    whole = [[s["args"]["event"] for s in f[3]] for f in trace.flows
             if f[0] in ("message", "completion")]
    long = [k for k in whole if "irq" in k]
    assert long
    for kinds in long:
        assert kinds[kinds.index("cqe"):] == [
            "cqe", "eqe", "msix", "irq", "eqe", "cq_event", "poll"]


def test_commands(trace):
    flows = trace.flow("command")
    assert len(flows) == len(trace.of("driver", "aq_cmd")) > 0
    for _, name, _, steps in flows:
        posted, done, answer = (s["args"] for s in steps)
        assert posted["opcode"] == done["opcode"] == answer["opcode"]
        assert posted["ticket"] == answer["ticket"] and name.endswith(done["opcode_name"])


def test_every_packet_has_an_arrow(trace):
    """Nothing was lost on that wire."""
    crossing = {(id(a), id(b)) for _, _, _, steps in trace.flows
                for a, b in zip(steps, steps[1:])
                if (a["args"]["event"], b["args"]["event"]) == ("tx", "rx")}
    assert len(crossing) == len(trace.of("device", "tx")) == len(trace.of("device", "rx"))


def test_causal_order(merged, trace):
    """No effect before its cause, within a guest and between both."""
    for clock in trace.trace["otherData"]["clocks"].values():
        assert clock["guest_disorder_ns"] == clock["adapter_disorder_ns"] == 0
        assert clock["guest_error_ns"] < 20_000
        assert abs(clock["adapter_shift_ns"]) <= 2 * clock["adapter_error_ns"] + 100
    for _, name, _, steps in trace.flows:
        times = [s["ts"] for s in steps]
        assert times == sorted(times), name
    polled = {(e["pid"], e["args"]["cqn"], e["args"]["index"]): e["ts"]
              for e in trace.of("provider", "poll")}
    written = {(e["pid"], e["args"]["cqn"], e["args"]["index"]): e["ts"]
               for e in trace.of("device", "cqe") if e["args"]["opcode"] & 0x40 == 0}
    assert polled and all(polled[k] >= written[k] for k in polled)


def tshark(path, *fields):
    args = ["tshark", "-r", str(path), "-T", "fields"]
    for field in fields:
        args += ["-e", field]
    out = subprocess.run(args, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in out.splitlines()]


def test_wireshark_reads_the_packets(folder, merged, trace):
    rows = tshark(folder / "wire.pcapng", "frame.time_epoch", "frame.interface_name",
                  "frame.comment", "infiniband.bth.psn", "infiniband.bth.destqp",
                  "_ws.malformed", "frame.len")
    assert len(rows) == len(merged.packets)
    assert not any(r[5] for r in rows)
    roce = [r for r in rows if r[3]]
    assert len(roce) == len(trace.of("device", "tx"))
    times = {round(e["ts"] * 1000): e for e in trace.of("device", "tx")}
    for epoch, interface, comment, psn, _qpn, _, length in roce:
        seconds, nanos = epoch.split(".")
        event = times[int(seconds) * 10**9 + int(nanos[:9])]
        a = event["args"]
        assert interface == ("guest a", "guest b")[event["pid"] - 1]
        assert a["psn"] == int(psn) and a["bytes"] == int(length)
        if "SEND" in a["opcode_name"]:
            assert comment == (f"qp {a['qpn']} sq wqe {(a['psn'] - first(trace, event)) // 2} "
                               f"{a['opcode_name']} psn {a['psn']} wr_id 0x2")
        else:
            assert comment == f"qp {a['qpn']} RC ACK psn {a['psn']}"


def first(trace, event):
    """The first PSN of the QP that EVENT is of."""
    return min(e["args"]["psn"] for e in trace.of("device", "wqe") if e["pid"] == event["pid"])


# ------------------------------------------------------------- damaged recordings


def sources(change=lambda name, what, text: text):
    made = []
    for name in "ab":
        device = device_log.parse(change(name, "device", (RAW / f"{name}.device").read_text()))
        guest = ftrace.parse(change(name, "guest", (RAW / f"{name}.guest").read_text()))
        made.append(Source(name, device, guest))
    return made


def test_without_one_guests_trace():
    both = sources()
    both[1].guest = None
    trace = Trace(merge(both).trace)
    assert not [e for e in trace.events if e["pid"] == 2 and e["cat"] != "device"]
    assert len(trace.flow("message")) == 4


def test_with_a_peer_that_is_not_recorded():
    """Of it one sees what came from it, in the packet file."""
    both = sources()
    both[1].guest = both[1].device = None
    merged = merge(both)
    trace = Trace(merged.trace)
    assert "guest b: nothing is recorded" in merged.problems[0]
    assert not [e for e in trace.events if e["pid"] == 2]
    assert {p.out for p in merged.packets} == {True, False}
    assert not any("arrive" in p.comment for p in merged.packets)


def test_without_marks():
    """Then there is no common clock, and this is reported."""
    both = sources(lambda name, what, text: text.replace("qhca_marker_begin", "other")
                   if what == "guest" and name == "a" else text)
    merged = merge(both)
    assert any("guest a: driver and provider are missing" in p for p in merged.problems)
    assert not [e for e in Trace(merged.trace).events if e["pid"] == 1 and e["cat"] == "driver"]


def test_marks_of_one_value():
    """A program may write what it likes to the marker file, also the same twice."""
    one = {"device": (r'("kind":"marker".*"value":)\d+', r"\g<1>7"),
           "guest": (r"(qhca_marker.*value=)\S+ \(\d+\)", r"\g<1>0x7 (7)")}
    both = sources(lambda name, what, text: re.sub(*one[what], text))
    merged = merge(both)
    assert not merged.problems
    clocks = Trace(merged.trace).other["clocks"]
    assert all(c["guest_disorder_ns"] == 0 for c in clocks.values())


def test_nothing_recorded():
    with pytest.raises(LabError, match="no guest"):
        merge([Source("a", None, None)])
    with pytest.raises(LabError, match="holds no recording"):
        merge_folder(Path("/nonexistent"), [])


@pytest.mark.parametrize("seed", range(12))
def test_cut_short(seed):
    """Files that end anywhere give a good trace of what is there."""
    rng = random.Random(seed)

    def cut(name, what, text):
        keep = rng.randrange(2000, len(text)) if rng.random() < 0.7 else len(text)
        return text[:keep] if what == "device" else "# clock x86-tsc\n" + text[:keep]

    Trace(merge(sources(cut)).trace)


@pytest.mark.parametrize("seed", range(25))
def test_hostile(seed):
    """A guest can write what it likes into its trace: numbers changed, lines gone,
    twice, or in another order give a good trace or an error."""
    rng = random.Random(seed)

    def spoil(name, what, text):
        lines = text.splitlines()
        head = 3 if what == "device" else 1
        for _ in range(rng.randrange(1, 60)):
            n = rng.randrange(head, len(lines))
            match rng.randrange(4):
                case 0:
                    del lines[n]
                case 1:
                    lines.insert(rng.randrange(head, len(lines)), lines[n])
                case 2:
                    digit = rng.choice("0123456789")
                    lines[n] = lines[n].replace(digit, rng.choice(("0", "9", "99999", "-1")), 2)
                case 3:
                    lines[n] = lines[n][: rng.randrange(len(lines[n]))]
        return "\n".join(lines) + "\n"

    try:
        merged = merge(sources(spoil))
    except LabError:
        return
    Trace(merged.trace)


# ------------------------------------------------------------ made-up recordings


class Made:
    """An adapter's recording line by line; the virtual clock is the host's."""

    def __init__(self, offset=0):
        self.lines = []
        self.offset = offset
        self.add("start", None, version=1, device="q", mac="", frame_bytes=256)
        self.sync(0)

    def add(self, kind, time, **fields):
        line = {"kind": kind, **fields}
        if time is not None:
            line["time"] = time - self.offset
        self.lines.append(json.dumps(line))

    def sync(self, time, running=True, width=100):
        self.add("sync", time, host=time, width=width, running=running)

    def frame(self, out, time, opcode, qpn, psn):
        bth = bytes([opcode, 0, 255, 255]) + qpn.to_bytes(4, "big") + psn.to_bytes(4, "big")
        ip = bytes.fromhex("45000040000040004011aaaa0a6300010a630002")
        data = bytes(12) + b"\x08\x00" + ip + bytes.fromhex("c00012b700280000") + bth + bytes(8)
        self.add("frame_out" if out else "frame_in", time, bytes=len(data), data=data.hex())

    def packet(self, out, time, opcode, qpn, peer, psn, name="RC SEND_ONLY"):
        self.frame(out, time, opcode, peer if out else qpn, psn)
        self.add("tx" if out else "rx", time + 1, qpn=qpn, peer=peer, psn=psn, opcode=opcode,
                 opcode_name=name, bytes=62)

    def log(self):
        self.sync(10**9)
        self.add("end", None, events=0, lost=0)
        return device_log.parse("\n".join(self.lines) + "\n")


SEND, ACK = 0x04, 0x11


def wqe(made, time, index, psn):
    made.add("wqe", time, qpn=5, index=index, wr_id=index, opcode=0, opcode_name="SEND", psn=psn)


def test_a_packet_that_is_sent_again():
    """The arrow leads to the one that arrived; the lost one is reported as lost."""
    a, b = Made(), Made(offset=777)
    wqe(a, 1000, 0, 0xFFFFFF)
    a.packet(True, 2000, SEND, 5, 6, 0xFFFFFF)
    wqe(a, 2500, 1, 0)
    a.packet(True, 3000, SEND, 5, 6, 0)
    a.add("retransmit", 50_000, qpn=5, psn=0xFFFFFF, reason=1)
    a.packet(True, 60_000, SEND, 5, 6, 0xFFFFFF)
    a.packet(True, 61_000, SEND, 5, 6, 0)
    b.packet(False, 9000, SEND, 6, 5, 0)        # out of order: dropped by the QP
    b.packet(False, 70_000, SEND, 6, 5, 0xFFFFFF)
    b.add("cqe", 70_100, cqn=1, qpn=6, index=0, opcode=0x80, wqe=0, wr_id=9)
    b.packet(False, 71_000, SEND, 6, 5, 0)
    b.add("cqe", 71_100, cqn=1, qpn=6, index=1, opcode=0x80, wqe=1, wr_id=9)
    merged = merge([Source("a", a.log(), None), Source("b", b.log(), None)])
    trace = Trace(merged.trace)
    ways = {f[2]["index"]: [(s["args"]["event"], s["ts"]) for s in f[3]]
            for f in trace.flow("message")}
    assert ways[0] == [("wqe", 1.0), ("tx", 2.0), ("tx", 60.0), ("rx", 70.001), ("cqe", 70.1)]
    assert ways[1] == [("wqe", 2.5), ("tx", 3.0), ("rx", 9.001), ("rx", 71.001), ("cqe", 71.1)]
    assert [p.comment for p in merged.packets] == [
        "qp 5 sq wqe 0 RC SEND_ONLY psn 16777215 wr_id 0x0, did not arrive",
        "qp 5 sq wqe 1 RC SEND_ONLY psn 0 wr_id 0x1",
        "qp 5 sq wqe 0 RC SEND_ONLY psn 16777215 again wr_id 0x0",
        "qp 5 sq wqe 1 RC SEND_ONLY psn 0 again wr_id 0x1",
    ]


def test_packets_of_a_super_frame():
    """Their frames are recorded together, before the first packet is traced; the peer
    may have executed them by then."""
    a, b = Made(), Made()
    wqe(a, 1000, 0, 1)
    for psn in (1, 2, 3):
        a.frame(True, 2000, SEND, 6, psn)
    for psn in (1, 2, 3):
        a.add("tx", 2000 + 20_000 * psn, qpn=5, peer=6, psn=psn, opcode=SEND,
              opcode_name="RC SEND_ONLY", bytes=62)
        b.packet(False, 3000, SEND, 6, 5, psn)
    merged = merge([Source("a", a.log(), None), Source("b", b.log(), None)])
    assert merged.problems == []
    crossings = [(x["args"]["psn"], y["args"]["psn"]) for f in Trace(merged.trace).flows
                 for x, y in zip(f[3], f[3][1:])
                 if (x["args"]["event"], y["args"]["event"]) == ("tx", "rx")]
    assert sorted(crossings) == [(1, 1), (2, 2), (3, 3)]


def test_a_packet_sent_again_in_the_moment_it_came():
    """It is the first one that came: the second went a moment too late for it."""
    a, b = Made(), Made()
    wqe(a, 1000, 0, 1)
    a.packet(True, 2000, SEND, 5, 6, 1)
    b.packet(False, 50_000, SEND, 6, 5, 1)
    a.packet(True, 53_000, SEND, 5, 6, 1)
    b.packet(False, 60_000, SEND, 6, 5, 1)
    merged = merge([Source("a", a.log(), None), Source("b", b.log(), None)])
    assert merged.problems == []
    trace = Trace(merged.trace)
    crossings = sorted((x["ts"], y["ts"]) for f in trace.flows for x, y in zip(f[3], f[3][1:])
                       if (x["args"]["event"], y["args"]["event"]) == ("tx", "rx"))
    assert crossings == [(2.0, 50.001), (53.0, 60.001)]


def test_a_burst_of_equal_packets():
    """As many are reported lost as did not arrive, and arrows do not cross."""
    a, b = Made(), Made()
    for n in range(60):
        a.packet(True, 10_000 + 10 * n, ACK, 5, 6, 1, "RC ACKNOWLEDGE")
        if n % 10:
            b.packet(False, 20_000 + 10 * n, ACK, 6, 5, 1, "RC ACKNOWLEDGE")
    merged = merge([Source("a", a.log(), None), Source("b", b.log(), None)])
    assert sum(p.comment.endswith("did not arrive") for p in merged.packets) == 6
    crossings = sorted((f[3][0]["ts"], f[3][1]["ts"]) for f in Trace(merged.trace).flow("packet"))
    assert len(crossings) == 54
    assert [y for _, y in crossings] == sorted(y for _, y in crossings)


@pytest.mark.parametrize("seed", range(20))
def test_equal_packets_over_a_wire_that_loses(seed):
    """Each that came has one of its own that went before, in the order they went."""
    rng = random.Random(seed)
    a, b = Made(), Made()
    now, wire, lost = 1000, [], 0
    while now < 200_000:
        now += rng.choice((1, 10, 200, 5000))
        if rng.random() < 0.6:
            a.frame(True, now, ACK, 6, 1)
            if rng.random() < 0.3:
                lost += 1
            else:
                wire.append(now)
        elif wire:
            wire.pop(0)
            b.frame(False, now + 200, ACK, 6, 1)
    devices = [causes.Device(name, made.log().records) for name, made in (("a", a), ("b", b))]
    pairs = causes.pair_frames(devices, lambda d, n: d.records[n].time, 100)
    times = sorted((devices[1].records[i].time, devices[0].records[o].time)
                   for (_, i), (_, o) in pairs.items())
    went = [o for _, o in times]
    assert len(went) == len(set(went)) == sum(r.kind == "frame_in" for r in devices[1].records)
    assert len(devices[0].records) - len(went) == lost + len(wire)
    assert went == sorted(went) and all(o <= i + 100 for i, o in times)


def test_faults_on_demand():
    """A packet that is dropped, one that is kept back, one that goes twice."""
    a, b = Made(), Made()
    wqe(a, 1000, 0, 1)
    a.add("tx", 2000, qpn=5, peer=6, psn=1, opcode=SEND, opcode_name="RC SEND_ONLY", bytes=62)
    a.packet(True, 9000, SEND, 5, 6, 1)
    b.packet(False, 9500, SEND, 6, 5, 1)
    wqe(a, 10_000, 1, 2)
    a.add("tx", 11_000, qpn=5, peer=6, psn=2, opcode=SEND, opcode_name="RC SEND_ONLY", bytes=62)
    a.add("msix", 12_000, vector=1)
    a.frame(True, 15_000, SEND, 6, 2)
    b.packet(False, 16_000, SEND, 6, 5, 2)
    wqe(a, 20_000, 2, 3)
    a.packet(True, 21_000, SEND, 5, 6, 3)
    a.frame(True, 21_100, SEND, 6, 3)
    b.packet(False, 22_000, SEND, 6, 5, 3)
    b.packet(False, 22_500, SEND, 6, 5, 3)
    merged = merge([Source("a", a.log(), None), Source("b", b.log(), None)])
    trace = Trace(merged.trace)
    ways = {f[2]["index"]: [(s["args"]["event"], s["ts"]) for s in f[3]]
            for f in trace.flow("message")}
    assert ways[0] == [("wqe", 1.0), ("tx", 2.0), ("tx", 9.0), ("rx", 9.501)]
    assert ways[1] == [("wqe", 10.0), ("tx", 11.0), ("rx", 16.001)]
    assert ways[2][:3] == [("wqe", 20.0), ("tx", 21.0), ("rx", 22.001)]
    assert len(merged.packets) == 4
    assert not any("arrive" in p.comment for p in merged.packets)


def test_clocks_are_moved_no_further_than_they_can_be_wrong():
    for early, shift, disorder in ((50, 51, 0), (1000, 200, 801)):
        a, b = Made(), Made()
        wqe(a, 1000, 0, 1)
        a.packet(True, 2000, SEND, 5, 6, 1)
        for n in range(200):    # something else in between, on the other's side
            b.add("msix", 1000 + n, vector=1)
        b.packet(False, 2000 - early, SEND, 6, 5, 1)
        b.sync(5000, width=300)
        merged = merge([Source("a", a.log(), None), Source("b", b.log(), None)])
        clock = merged.trace["otherData"]["clocks"]["b"]
        # 50 ns one process, 150 ns the other
        assert clock["adapter_shift_ns"] == shift
        assert clock["adapter_disorder_ns"] == disorder
        assert bool(merged.problems) == bool(disorder)
        Trace(merged.trace)


def test_numbers_that_are_used_again():
    """A second life of a QPN is not taken for the first."""
    a = Made()
    for life in (0, 100_000):
        a.add("doorbell", life + 500, doorbell=0, doorbell_name="SQ", number=5, index=1)
        wqe(a, life + 1000, 0, 7)
        a.packet(True, life + 2000, SEND, 5, 6, 7)
        a.packet(False, life + 3000, ACK, 5, 6, 7, "RC ACK")
        a.add("cqe", life + 3500, cqn=1, qpn=5, index=0, opcode=0, wqe=0, wr_id=0)
    trace = Trace(merge([Source("a", a.log(), None)]).trace)
    for kind, times in (("message", [[0.5, 1, 2], [100.5, 101, 102]]),
                        ("completion", [[3.001, 3.5], [103.001, 103.5]])):
        assert [[s["ts"] for s in f[3]] for f in trace.flow(kind)] == times


def test_standstill():
    """Time in which both guests were stopped is not in the trace."""
    a, b = Made(), Made()
    a.packet(True, 2000, SEND, 5, 6, 1)
    for made in (a, b):
        made.add("sync", 5000, host=5000, width=100, running=False)
        made.add("sync", 5000, host=10**8 + 5000, width=100, running=True)
    b.add("frame_in", 6000, bytes=62, data=json.loads(a.lines[2])["data"])
    b.add("rx", 6001, qpn=6, peer=5, psn=1, opcode=SEND, opcode_name="RC SEND_ONLY", bytes=62)
    logs = []
    for made in (a, b):
        made.add("end", None, events=0, lost=0)
        logs.append(device_log.parse("\n".join(made.lines) + "\n"))
    trace = Trace(merge([Source("a", logs[0], None), Source("b", logs[1], None)]).trace)
    assert [s["ts"] for s in trace.flow("packet")[0][3]] == [2.0, 6.001]


def test_pcapng_of_any_comment(tmp_path):
    """Comments of every length, and none."""
    made = [pcapng.Packet(10**18 + n, 0, bool(n & 1), 60, bytes(60), "ü" * n) for n in range(9)]
    assert pcapng.write(tmp_path / "x.pcapng", ["one"], made, "all") == 9
    rows = tshark(tmp_path / "x.pcapng", "frame.comment", "frame.time_epoch")
    assert [r[0] for r in rows] == ["ü" * n for n in range(9)]
    assert rows[8][1] == "1000000000.000000008"

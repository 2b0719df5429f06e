# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of lab/bench/measure: the output of programs, comparisons, and storage."""

import json
import os
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError  # noqa: E402
from qhca_lab import machine  # noqa: E402
from qhca_lab.bench import (  # noqa: E402
    aims, cpu, net, perftest, results, revisions, scale, softroce)

# Output of iperf3 3.18, without the unused parts.
IPERF = {
    "start": {"version": "iperf 3.18"},
    "end": {
        "sum_sent": {"seconds": 3.0, "bytes": 700 << 20},
        "sum_received": {"seconds": 3.5, "bytes": 350 << 20},
        "cpu_utilization_percent": {"host_total": 50.0, "remote_total": 60.0},
    },
}


def test_iperf():
    """Only data that has arrived counts."""
    run = net.iperf_result(json.dumps(IPERF))
    assert run == net.Run(350 << 20, 3.5) and run.speed == 100


@pytest.mark.parametrize("text, why", [
    ('{"start": {}, "error": "unable to connect to server: Connection refused"}',
     "iperf3: unable to connect to server: Connection refused"),
    ("iperf3: parameter error\n", "iperf3 reports no result: iperf3: parameter error"),
    ("", "iperf3 reports no result: "),
    ('{"end": {"sum_received": {"seconds": 3.0, "bytes": 0}}}', "iperf3: nothing was received"),
])
def test_iperf_that_fails(text, why):
    with pytest.raises(LabError) as error:
        net.iperf_result(text)
    assert str(error.value) == why


def test_seconds_of_a_guest():
    """Everything but waiting; steal and guest time are not the guest's work."""
    stat = "cpu  100 20 300 9999 8888 4 5 777 666 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"
    assert cpu.guest_seconds(stat, 100) == pytest.approx(4.29)


def test_seconds_of_loops(tmp_path):
    """The first thread is the main loop, whatever its name; vCPUs do not count."""
    for tid, name, ns in (("42", "qemu-system-x86", 3), ("43", "CPU 0/TCG", 70),
                          ("44", cpu.BELLS, 2)):
        task = tmp_path / "42/task" / tid
        task.mkdir(parents=True)
        (task / "comm").write_text(name + "\n")
        (task / "schedstat").write_text(f"{ns * 10**9} 5 6\n")
    assert cpu.loop_seconds(tmp_path / "42/task") == 5.0


def test_bells_thread_has_that_name():
    assert f'"{cpu.BELLS}"' in (TOP / "qemu-hw/qhca-bell.c").read_text()


def test_price_is_that_of_the_run():
    before, after = net.Cpu(1.0, 2.0, 3.0), net.Cpu(2.5, 4.0, 3.25)
    assert after.since(before) == net.Cpu(1.5, 2.0, 0.25)


def figures(speed):
    return {"speed": speed, "guest": 1.0, "qemu": 2.0, "loop": 0.5}


def test_entry():
    entry = net.entry_of("TCP, 1 stream", {"qhca": [figures(500), figures(700)],
                                           "virtio": [figures(200), figures(100)]}, {})
    assert entry["qhca"]["speed"] == 600 and entry["virtio"]["speed"] == 150
    assert entry["ratio"] == 4
    assert net.row(entry).split() == \
        "TCP, 1 stream 600 150 MiB/s 4.0 x 1.00 / 1.00 2.00 / 2.00 0.50 / 0.50".split()


def test_entry_of_one_adapter_alone():
    entry = net.entry_of("ncdevmem", {"qhca": [figures(50)], "virtio": []},
                         {"virtio": "not possible: 2 queues"})
    assert entry["virtio"] is None and "ratio" not in entry
    assert net.row(entry).split()[:4] == ["ncdevmem", "50", "-", "MiB/s"]


def test_earlier_figures(tmp_path):
    entry = net.entry_of("tcp_mmap", {"qhca": [figures(300)], "virtio": [figures(150)]}, {})
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({"net": {"results": [entry]}}))
    before = net.earlier(str(file))
    now = net.entry_of("tcp_mmap", {"qhca": [figures(450)], "virtio": [figures(150)]}, {})
    text = net.against_row(now, before["tcp_mmap"])
    assert text.split()[:6] == ["tcp_mmap", "450", "300", "MiB/s", "1.50", "x"]
    assert "against virtio 3.0 x, before 2.0 x" in text
    # a case that was not measured then is not a failure
    assert net.against_row(now, None).split() == ["tcp_mmap", "-"]


def test_earlier_qhca():
    entry = net.entry_of("TCP, 1 stream", {"qhca": [figures(600)], "virtio": [figures(150)],
                                           "before": [figures(150)]}, {})
    assert net.before_row(entry).split()[3:8] == ["600", "150", "MiB/s", "4.00", "x"]
    told = [net.aim_row("TCP", *aim) for aim in net.aims(entry, "9add8dd1")]
    assert [text.split(":")[1] for text in told] == [" reached", " MISSED"]
    assert "4.00 x virtio-net, aim 3 x" in told[0] and "4.00 x 9add8dd1, aim 5 x" in told[1]
    # there are no goals beside another revision
    assert len(net.aims(entry, "1234567")) == 1
    entry = net.entry_of("ncdevmem", {"qhca": [figures(50)], "virtio": [], "before": []},
                         {"virtio": "not possible: 1 queues\nmore"})
    assert net.why_rows(entry) == [f"{'ncdevmem':22} not measured, virtio: not possible: 1 queues"]
    assert net.before_row(entry).split() == ["ncdevmem", "-"] and net.aims(entry, "9add8dd1") == []


@pytest.mark.parametrize("state, can", [("off", True), ("on", True), ("n/a", False)])
def test_header_data_split(state, can):
    rings = f"Pre-set maximums:\nTX push buff len:\tn/a\nTCP data split:\t{state}\n"
    assert net.can_split(rings) is can and not net.can_split("RX: 1024\n")


def test_what_against_means(tmp_path):
    qemu, file = tmp_path / "qemu", tmp_path / "figures"
    for path in (qemu, file):
        path.touch()
    qemu.chmod(0o755)
    assert revisions.is_qemu(str(qemu)) and not revisions.is_file(str(qemu))
    assert revisions.is_file(str(file)) and not revisions.is_qemu(str(file))
    assert revisions.is_file("no-such.json")        # a mistyped name is no revision
    for revision in ("HEAD", str(tmp_path)):
        assert not revisions.is_file(revision) and not revisions.is_qemu(revision)


@pytest.mark.parametrize("text", ["", "[]", '{"results": []}'])
def test_file_without_earlier_figures(tmp_path, text):
    file = tmp_path / "bench.json"
    file.write_text(text)
    with pytest.raises(LabError, match="bench.json"):
        net.earlier(str(file))
    with pytest.raises(LabError, match="no-such-file"):
        net.earlier(str(tmp_path / "no-such-file"))


def test_one_part_of_the_file_keeps_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "BUILD", tmp_path)
    results.keep("net", {"results": [1]})
    target = results.keep(None, {"when": "now", "results": [2]})
    assert json.loads(target.read_text()) == \
        {"when": "now", "results": [2], "net": {"results": [1]}}
    results.keep("net", {"results": [3]})
    assert json.loads(target.read_text()) == \
        {"when": "now", "results": [2], "net": {"results": [3]}}


HOST = {"memcpy_64k_mib_s": 10000, "unix_dgram_64b_frames_s": 1000000}


@pytest.mark.parametrize("case, unit, qhca, words", [
    ("write 64 KiB", "MiB/s", 3999.0, "0.40 of memcpy_64k_mib_s aim: at least 0.4, MISSED"),
    ("write 64 KiB", "MiB/s", 4000.0, "0.40 of memcpy_64k_mib_s aim: at least 0.4, reached"),
    ("send 8 B rate", "msg/s", 90000.0,
     "0.09 of unix_dgram_64b_frames_s aim: at least 0.4, MISSED"),
    ("send 2 B latency", "us", 20.0, "20.0 us aim: at most 20 us, reached"),
    ("send 2 B latency", "us", 20.1, "20.1 us aim: at most 20 us, MISSED"),
])
def test_aims_beside_the_host(case, unit, qhca, words):
    entry = {"case": case, "unit": unit, "qhca": qhca}
    entry["host"] = softroce.beside_host(entry, HOST)
    assert softroce.host_row(entry).split() == [*case.split(), *words.split()]


def test_no_aim_beside_the_host():
    """No limit of that kind, or not measured."""
    assert softroce.beside_host({"case": "register 256 MiB, huge pages", "qhca": 1.0}, HOST) is None
    assert softroce.beside_host({"case": "write 64 KiB", "qhca": None}, HOST) is None


def test_every_case_of_perftest_has_an_aim():
    titles = {case[0] for case in perftest.CASES if case[4] is not None}
    assert titles == set(softroce.HOST_AIMS)


# ------------------------------------------------------------- against a revision


@pytest.mark.parametrize("revision, title, link, peer, aim", [
    ("9add8dd", "send 2 B latency", "dgram, memory", "qhca", 2.0),
    ("9add8dd", "send 64 KiB", "dgram, memory", "qhca", None),
    ("9add8dd01", "send 64 KiB", "dgram", "qhca", 2.0),
    ("9add8dd", "send 2 B latency", "dgram", "qhca", None),
    ("9add8dd", "write 1 MiB", "switch", "qhca", 1.0),
    ("9add8dd", "write 1 MiB", "dgram", "rxe", 1.0),
    ("178bd75", "write 1 MiB", "switch", "qhca", None),
    ("", "write 1 MiB", "switch", "qhca", None),
])
def test_aims_against_a_revision(revision, title, link, peer, aim):
    assert revisions.aim_against(revision, title, link, peer) == aim


@pytest.mark.parametrize("ratio, most, told", [
    (2.0, 2.1, "reached"), (1.9, 2.1, "reached in some rounds"), (1.8, 1.9, "MISSED"),
])
def test_verdict_against_a_revision(ratio, most, told):
    entry = {"case": "send 64 KiB", "unit": "MiB/s", "now": 20.0, "before": 10.0,
             "ratio": ratio, "least": 1.0, "most": most, "aim": 2.0}
    assert revisions.ratio_row(entry).endswith(f"  (aim 2 x: {told})")
    assert "aim" not in revisions.ratio_row(entry | {"aim": None})


@pytest.mark.parametrize("arguments", [["--link", "dgram"], ["--net", "--peer", "rxe"]])
def test_options_of_a_comparison_alone(arguments):
    done = subprocess.run([TOP / "lab" / "bench" / "measure", *arguments], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "need --against" in done.stderr


# ----------------------------------------------------------------------- all goals


def on_host(case, unit, value):
    entry = {"case": case, "unit": unit, "qhca": value}
    return entry | {"host": softroce.beside_host(entry, HOST)}


def beside_old(case, ratio):
    return {"case": case, "unit": "MiB/s", "now": 10 * ratio, "before": 10.0, "ratio": ratio,
            "least": ratio - 0.1, "most": ratio + 0.1}


def told(place, case, measured, why=""):
    """The line about a goal, without its beginning, if only MEASURED, an entry, was."""
    (aim,) = [a for a in aims.all_aims() if (a.place, a.case) == (place, case)]
    entries = {case: measured} if measured else {}
    row = aims.judge(aim, {place: aims.Place(entries=entries, why=why)})
    return " ".join(aims.line(row).split()).split(case + " ", 1)[1]


def test_aims_are_those_of_the_list():
    found = {(aim.place, aim.case): aim.aim for aim in aims.all_aims()}
    assert len(found) == len(aims.all_aims())
    verbs = ("write", "read", "send")
    for verb in verbs:
        assert [found["host", f"{verb} {size}"] for size in ("4 KiB", "64 KiB", "1 MiB")] == \
            [0.12, 0.4, 0.6]
        assert found["host", f"{verb} 2 B latency"] == 20.0
        assert found["memory", f"{verb} 2 B latency"] == found["dgram", f"{verb} 64 KiB"] == 2.0
    assert found["host", "write 8 B rate"] == found["host", "send 8 B rate"] == 0.4
    for place in ("switch", "rxe"):
        assert {case: aim for (at, case), aim in found.items() if at == place} == \
            dict.fromkeys(softroce.HOST_AIMS, 1.0)
    assert {at for at, _case in found} == {"host", *aims.WIRES}


@pytest.mark.parametrize("place, case, entry, words", [
    ("host", "write 64 KiB", on_host("write 64 KiB", "MiB/s", 4000.0),
     "4,000.0 MiB/s 0.40 of memcpy_64k_mib_s, aim 0.4: reached"),
    ("host", "send 8 B rate", on_host("send 8 B rate", "msg/s", 399999.0),
     "399,999.0 msg/s 0.40 of unix_dgram_64b_frames_s, aim 0.4: MISSED"),
    ("host", "read 2 B latency", on_host("read 2 B latency", "us", 20.5),
     "20.5 us aim: at most 20 us: MISSED"),
    ("memory", "send 2 B latency", beside_old("send 2 B latency", 2.0),
     "20.0 MiB/s 2.00 x 10.0 before (1.90 to 2.10), aim 2 x: reached"),
    ("switch", "read 1 MiB", beside_old("read 1 MiB", 0.99),
     "9.9 MiB/s 0.99 x 10.0 before (0.89 to 1.09), aim 1 x: MISSED"),
])
def test_aim_that_was_measured(place, case, entry, words):
    assert told(place, case, entry) == words


def test_aim_that_was_not_measured():
    assert told("rxe", "send 4 KiB", None, "no --against") == "not measured: no --against"
    assert told("host", "send 4 KiB", None) == "not measured: left out by --only"
    aim = aims.Aim("host", "send 4 KiB", 0.12)
    place = aims.Place(errors={"send 4 KiB": "no result line"})
    assert aims.judge(aim, {"host": place})["why"] == "no result line"
    assert aims.judge(aim, {})["why"] == "not tried"


def small_aims(monkeypatch, tmp_path, host, wire):
    """aims.compare() for one case, with measurements by functions HOST and WIRE."""
    monkeypatch.setattr(aims, "BUILD", tmp_path)
    monkeypatch.setattr(aims, "on_host", lambda _args, _cases: host())
    monkeypatch.setattr(aims, "on_wire", lambda _args, at, _cases, _before: wire(at))
    monkeypatch.setattr(revisions, "what_before",
                        lambda against, _software: revisions.Before(against))
    case = next(c for c in perftest.CASES if c[0] == "send 64 KiB")

    def run(**options):
        args = types.SimpleNamespace(**{"against": None, "rounds": 1, "seconds": 1, "property": [],
                                        "strict": False, "software": False} | options)
        status = aims.compare(args, [case])
        rows = json.loads((tmp_path / "bench-aims.json").read_text())["aims"]
        return status, {row["place"]: row for row in rows if row["case"] == case[0]}

    return run


def test_table_of_aims(monkeypatch, tmp_path, capsys):
    """A wire that fails does not keep the others from being judged."""
    def host():
        return aims.Place({"send 64 KiB": on_host("send 64 KiB", "MiB/s", 5000.0)}), {
            "host": HOST, "accel": "tcg", "link": "dgram, memory"}

    def wire(at):
        if at.title == "switch":
            raise LabError("no bridge\nfor the switch")
        return aims.Place({"send 64 KiB": beside_old("send 64 KiB", 1.5)})

    run = small_aims(monkeypatch, tmp_path, host, wire)
    status, rows = run(against="old", property=["a=b"])
    said = capsys.readouterr().out
    assert status == 1 and "before: old" in said and "adapters with a=b" in said
    assert rows["host"]["reached"] and rows["rxe"]["reached"] and not rows["dgram"]["reached"]
    assert rows["switch"]["why"] == "no bridge" and "memory" not in rows
    total = len(aims.all_aims())
    assert f"{total} aims: 2 reached, 1 missed, {total - 3} not measured" in said

    status, rows = run()
    assert status == 0 and rows["host"]["reached"]
    assert rows["dgram"]["why"] == rows["rxe"]["why"] == "no --against"


def test_strict_table_of_aims(monkeypatch, tmp_path):
    """Exit status 1 if a goal is missed; not for one that needs --against."""
    speed = 3000.0
    run = small_aims(monkeypatch, tmp_path, lambda: (
        aims.Place({"send 64 KiB": on_host("send 64 KiB", "MiB/s", speed)}), {}), None)
    assert run()[0] == 0 and run(strict=True)[0] == 1
    speed = 5000.0
    assert run(strict=True)[0] == 0


def test_aims_without_a_host(monkeypatch, tmp_path):
    def host():
        raise LabError("guest a did not start")

    status, rows = small_aims(monkeypatch, tmp_path, host, None)()
    assert status == 1 and rows["host"]["why"] == "guest a did not start"


def test_link_that_is_another(monkeypatch):
    """Without memory links a goal for them is not judged."""
    class Both(dict):
        def __enter__(self):
            return self

        def __exit__(self, *_exc):
            pass

    both = Both(now=types.SimpleNamespace(state={"link": "dgram"}))
    monkeypatch.setattr(revisions, "labs", lambda *_args: both)
    place = aims.on_wire(None, aims.WIRES["memory"], [], "")
    assert place.why == "the link is dgram, not dgram, memory" and not place.entries


@pytest.mark.parametrize("words", [["--net"], ["--no-qhca"], ["--scale"], ["--link", "dgram"]])
def test_aims_alone(words):
    done = subprocess.run([TOP / "lab/bench/measure", "--aims", *words], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 2, done.stderr


# ---------------------------------------------------------------------- properties


HELP = """qhca options:
  addr=<int32>           - Slot and optional function number (default: -1)
  memlink-thread=<OnOffAuto> - on/off/auto (default: "auto")
  x-pcie-lnksta-dllla=<bool> - on/off (default: true)
"""


@pytest.fixture
def adapter(tmp_path, monkeypatch):
    """A QEMU that only knows its adapter's properties."""
    qemu = tmp_path / "qemu"
    qemu.write_text(f"#!/bin/sh\n[ \"$*\" = '-device qhca,help' ] || exit 1\n"
                    f"cat <<END\n{HELP}END\n")
    qemu.chmod(0o755)
    monkeypatch.setattr(machine, "QEMU", qemu)


def test_properties(adapter):
    assert machine.adapter_properties() == {"addr", "memlink-thread", "x-pcie-lnksta-dllla"}
    perftest.check_properties([])
    perftest.check_properties(["memlink-thread=on", "addr=4.0"])
    assert perftest.nics(["qhca", "rxe", "none"], ["a=1", "b=2"]) == ["qhca:a=1:b=2", "rxe", "none"]
    assert perftest.nics(["qhca"], []) == ["qhca"]
    assert perftest.given(["a=1", "b=2"]) == ", adapters with a=1 b=2" and not perftest.given([])


@pytest.mark.parametrize("text, why", [
    ("memlink-tread=on", "no property memlink-tread: it has addr, memlink-thread"),
    ("memlink=on", "no property memlink:"), ("addr", "give NAME=VALUE"), ("addr=", "NAME=VALUE"),
    ("addr=4,romfile=x", "without commas and colons"), ("addr=4:b=1", "without commas and colons"),
])
def test_wrong_property(adapter, text, why):
    with pytest.raises(LabError, match=why):
        perftest.check_properties(["memlink-thread=on", text])


def test_properties_of_no_qemu(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "QEMU", tmp_path / "none")
    with pytest.raises(LabError, match="no QEMU"):
        perftest.check_properties(["addr=4.0"])


# --------------------------------------------------------------------- many of all


def of_two(rate, a=1e-5, b=2e-5):
    return {"rate": rate, "qemu": {"a": a, "b": b}, "loop": {"a": a / 2, "b": b / 2}}


def test_row_of_many():
    """Ratios are those of neighbours: other load comes and goes."""
    row = scale.entry_of("1,000 QPs, 1,000 active", 8, [
        (of_two(80000), of_two(100000)), (of_two(9000), of_two(10000)),
        (of_two(70000), of_two(100000))])
    assert row["ratio"] == 0.8 and row["rate"] == 70000
    assert scale.line(row).split() == (
        "1,000 QPs, 1,000 active 8 B 70,000 msg/s 0.80 per msg: a 10.0 (5.0) b 20.0 (10.0) "
        "(aim 0.8: reached)").split()
    row["ratio"] = 0.79
    assert scale.line(row).endswith("(aim 0.8: MISSED)")


def test_rows_of_the_one_beside():
    rows = [scale.entry_of("10 MRs", size, [(of_two(1), of_two(rate, 3e-6))] * 2)
            for size, rate in ((8, 100), (65536, 7), (8, 300), (8, 500))]
    small, large = scale.one_qp(rows)
    assert (small["size"], small["rate"], small["ratio"]) == (8, 300, 1.0)
    assert large["rate"] == 7 and large["qemu"]["a"] == 3e-6
    assert scale.line(small).split()[:2] == ["1", "QP"]


def test_row_of_large_writes():
    """Reported in MiB: 16 writes of 64 KiB each."""
    row = scale.entry_of("4 guests", 65536, [(of_two(1600, 1e-4, 2e-4), of_two(3200))])
    assert scale.line(row).split() == (
        "4 guests 64 KiB 100 MiB/s 0.50 per MiB: a 1,600.0 (800.0) b 3,200.0 (1,600.0)").split()


def test_cpu_time_of_a_process():
    """All of its threads, and the first one."""
    def work():
        begin = time.thread_time()
        while time.thread_time() - begin < 0.05:
            pass

    guest = types.SimpleNamespace(state={"process": {"pid": os.getpid()}})
    before, first = scale.qemu_seconds(guest)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    after, _ = scale.qemu_seconds(guest)
    assert after - before >= 0.05
    work()
    assert scale.qemu_seconds(guest)[0] - after >= 0.05
    assert scale.qemu_seconds(guest)[1] > first


def test_memory_of_a_qemu():
    """Everything except guests' memory, its own and a peer's."""
    def mapping(size, rss):
        return f"7f00-7f01 rw-p 00:00 0 /a: b\nSize: {size} kB\nRss: {rss} kB\nPss: 1 kB\n"

    text = "".join(mapping(*sizes) for sizes in
                   ((64, 60), (1048576, 500000), (20, 4), (1048576, 7000)))
    assert scale.qemu_memory(text) == 64 << 10


def test_memory_of_a_qp():
    took = {"qemu": 1536.0, "guest": 10240.0}
    rows = [{"qps": 100, "memory": took}, {"qps": 100, "memory": took}, {"case": "10 MRs"}]
    assert scale.memory_lines(rows) == [
        "memory of each of 100 QPs: 1.5 KiB in QEMU, 10.0 KiB in the guest"]


def test_life_of_a_qp():
    """The medians of the rounds; QPs that did not become ready are an error."""
    def told(create, rts=1000):
        text = json.dumps({"qps": 1000, "threads": 4, "rts": rts, "create": create,
                           "connect": 300.0, "destroy": 50.5})
        return types.SimpleNamespace(out=text, describe=lambda: text)

    def run(*rounds):
        answers = iter(rounds)
        guest = types.SimpleNamespace(run=lambda command, timeout: next(answers))
        args = types.SimpleNamespace(rounds=len(rounds))
        return scale.life({"a": guest}, "life of 1,000 QPs, 4 threads",
                          scale.CASES["life of 1,000 QPs, 4 threads"], args)

    row = run(told(100.0), told(900.0), told(200.0))
    assert scale.life_line(row).split() == \
        "life of 1,000 QPs, 4 threads 200.0 300.0 50.5 550.5".split()
    assert len(scale.life_line(row)) == len(scale.LIFE_HEAD)
    with pytest.raises(LabError, match="not all QPs are connected"):
        run(told(100.0), told(100.0, rts=999))


def test_cases_of_each_kind():
    """--only selects among the measured cases, and names them."""
    def refused(*words):
        done = subprocess.run([TOP / "lab/bench/measure", "--only", "nonsense", *words],
                              check=False, capture_output=True, text=True)
        assert done.returncode == 2
        return done.stderr

    assert "write 64 KiB" in refused()
    said = refused("--net")
    assert "TCP, 4 streams, zero copy" in said and "ncdevmem" in said
    assert "write 64 KiB" not in said
    said = refused("--scale")
    assert "10,000 QPs" in said and "100,000 MRs" in said and "4 guests" in said
    assert "life of 1,000 QPs, 1 thread," in said and "life of 10,000 QPs, 4 threads" in said
    assert "alone" in refused("--scale", "--net") and "alone" in refused("--scale", "--tracing")

# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of lab/bench/measure: what programs tell, what is compared, what is kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError  # noqa: E402
from qhca_lab.bench import net, results  # noqa: E402

# As iperf3 3.18 writes it, with what is not looked at left out.
IPERF = {
    "start": {"version": "iperf 3.18"},
    "end": {
        "sum_sent": {"seconds": 3.0, "bytes": 700 << 20},
        "sum_received": {"seconds": 3.5, "bytes": 350 << 20},
        "cpu_utilization_percent": {"host_total": 50.0, "remote_total": 60.0},
    },
}


def test_iperf():
    """What counts is what has arrived."""
    run = net.iperf_result(json.dumps(IPERF))
    assert run == net.Run(350 << 20, 3.5) and run.speed == 100


@pytest.mark.parametrize("text, why", [
    ('{"start": {}, "error": "unable to connect to server: Connection refused"}',
     "iperf3: unable to connect to server: Connection refused"),
    ("iperf3: parameter error\n", "iperf3 tells no result: iperf3: parameter error"),
    ("", "iperf3 tells no result: "),
    ('{"end": {"sum_received": {"seconds": 3.0, "bytes": 0}}}', "iperf3: nothing was received"),
])
def test_iperf_that_fails(text, why):
    with pytest.raises(LabError) as error:
        net.iperf_result(text)
    assert str(error.value) == why


def test_seconds_of_a_guest():
    """Everything but waiting; steal and guest time are not the guest's work."""
    stat = "cpu  100 20 300 9999 8888 4 5 777 666 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"
    assert net.guest_seconds(stat, 100) == pytest.approx(4.29)


def test_seconds_of_a_process():
    """Its name may look like fields."""
    stat = "42 (qhca-a) 1 2) S 1 42 42 0 -1 4194560 5 6 7 8 250 150 99 98 20 0 7 0 12345"
    assert net.process_seconds(stat, 100) == 4.0


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
    # what was not measured then is no failure
    assert net.against_row(now, None).split() == ["tcp_mmap", "-"]


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


def test_cases_of_each_kind():
    """--only chooses among the cases of what is measured, and names them."""
    def refused(*words):
        done = subprocess.run([TOP / "lab/bench/measure", "--only", "nonsense", *words],
                              check=False, capture_output=True, text=True)
        assert done.returncode == 2
        return done.stderr

    assert "write 64 KiB" in refused()
    said = refused("--net")
    assert "TCP, 4 streams, zero copy" in said and "ncdevmem" in said
    assert "write 64 KiB" not in said

# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/bench/measure and profile work: a short run of each kind. The figures are not checked."""

import json
import os
import shutil
import subprocess
import types

import pytest

from labs import TOP, LabError
from qhca_lab.bench import scale
from qhca_lab.paths import BUILD, QEMU

long = pytest.mark.long("measures for a minute or more")

SHORT = ["--rounds", "1", "--seconds", "1"]
CASE = ["--only", "^write 64 KiB", *SHORT]


@pytest.fixture
def bench(pair, tmp_path):
    """Run lab/bench/measure without the kept pair; its results, and its output in `said`."""
    pair.freeze()

    def run(name, *options):
        target = BUILD / name
        kept = target.read_bytes() if target.exists() else None
        target.unlink(missing_ok=True)
        try:
            words = options if "--only" in options else [*CASE, *options]
            done = subprocess.run([TOP / "lab/bench/measure", *words], check=True, timeout=900,
                                  stdout=subprocess.PIPE, text=True)
            run.said = done.stdout
            return json.loads(target.read_text())
        finally:
            if kept is None:
                target.unlink(missing_ok=True)
            else:
                target.write_bytes(kept)

    yield run
    pair.thaw()


@long
def test_against_soft_roce(bench):
    told = bench("bench.json")
    (case,) = told["results"]
    assert case["case"] == "write 64 KiB" and not case["errors"]
    assert case["qhca"] > 0 and case["rxe"] > 0
    assert case["ratio"] == case["qhca"] / case["rxe"]
    assert told["host"] and told["cpus"] == os.cpu_count()


@long
def test_against_a_qemu(bench):
    """The same QEMU, so that only the procedure is tested."""
    (case,) = bench("bench-against.json", "--against", str(QEMU))["results"]
    assert case["now"] > 0 and case["before"] > 0
    assert case["ratio"] == case["now"] / case["before"]


@long
def test_net(bench, tmp_path):
    """Speed and cost of each adapter, and a comparison with an earlier run."""
    only = ["--net", "--only", "^TCP, 4 streams$|^ncdevmem$", *SHORT]
    told = bench("bench.json", *only)["net"]
    tcp, devmem = told["results"]
    assert not tcp["errors"]
    for adapter in ("qhca", "virtio"):
        assert tcp[adapter]["speed"] > 0
        assert tcp[adapter]["qemu"] > tcp[adapter]["loop"] > 0 and tcp[adapter]["guest"] > 0
    assert tcp["ratio"] == tcp["qhca"]["speed"] / tcp["virtio"]["speed"]
    assert devmem["qhca"]["speed"] > 0
    assert devmem["virtio"] is None and list(devmem["errors"]) == ["virtio"]
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps({"net": told}))
    bench("bench.json", *only, "--against", str(earlier))
    assert f"with the run of {earlier}" in bench.said and "against virtio" in bench.said


@long
def test_tracing(bench):
    (case,) = bench("bench-tracing.json", "--tracing")["results"]
    assert all(case[way] > 0 for way in ("off", "break", "device", "guests", "record"))


@long
def test_scale(bench):
    told = bench("bench.json", "--scale", "--only", "^100 QPs$", *SHORT)["scale"]
    assert [row["case"] for row in told["results"]] == \
        ["1 QP"] * 2 + ["100 QPs, 100 active"] * 2 + ["100 QPs, 1 active"] * 2
    assert "memory of each of 100 QPs" in bench.said


@long
def test_life_of_qps(bench):
    told = bench("bench.json", "--scale", "--only", "^life of 1,000 QPs", *SHORT)["scale"]
    assert [(row["qps"], row["threads"]) for row in told["lives"]] == [(1000, 1), (1000, 4)]
    assert not told["results"] and "us per QP" in bench.said


def scaled(lab, case, way):
    """A short measurement of CASE; each row is complete."""
    args = types.SimpleNamespace(rounds=2, seconds=0.1)
    rows = scale.measure(lab, {"case": case}, args, way)
    for row in rows:
        assert len(row["samples"]) == 2 and row["rate"] > 0 and row["ratio"] > 0
        assert set(row["qemu"]) == {guest.name for guest in lab}
        assert sum(row["qemu"].values()) > sum(row["loop"].values()) > 0
        assert scale.line(row)
    return rows


@pytest.mark.long("a measurement; test_scale has thousands of objects")
def test_many_qps(pair, progs):
    """All of 200 QPs write, and two of them."""
    rows = scaled(pair, scale.Case(qps=200, active=(200, 2)), scale.two_guests)
    assert [(row["case"], row["size"]) for row in rows] == [
        (f"case, {active} active", size) for active in (200, 2) for size in scale.SIZES]
    assert all(set(row["memory"]) == {"qemu", "guest"} for row in rows)


@pytest.mark.long("a measurement; test_scale has thousands of objects")
def test_many_mrs(pair, progs):
    rows = scaled(pair, scale.Case(mrs=3000), scale.two_guests)
    assert [row["case"] for row in rows] == ["case"] * 2 and "memory" not in rows[0]


@pytest.mark.long("a measurement; test_switch has three guests that reach each other")
def test_all_to_all(trio, progs):
    """Each of three guests writes to both others."""
    rows = scaled(trio, scale.Case(guests=3), scale.all_to_all)
    assert [row["size"] for row in rows] == list(scale.SIZES)


def test_traffic_that_fails(pair, progs):
    """The program's exit status is shown."""
    with scale.Traffic(pair.a, pair.b, scale.FIRST_PORT, [(scale.LARGE, 1)], ms=600000) as flow:
        flow.begin()
        pair.a.run("pkill -KILL traffic")
        with pytest.raises(LabError, match="status 137"):
            flow.finish()


@long
@pytest.mark.skipif(not shutil.which("perf"), reason="perf is missing: 'make profile' installs it")
def test_profile(pair):
    """Graphs of both QEMUs, which contain the device's functions."""
    pair.freeze()
    try:
        subprocess.run([TOP / "lab/bench/profile", "--only", "write-64k", "--seconds", "2"],
                       check=True, timeout=900)
    finally:
        pair.thaw()
    run, = json.loads((BUILD / "profile/profile.json").read_text())["runs"].values()
    for guest in "ab":
        assert sum(run["us"][guest]["others"].values()) > 0
        assert "qhca_" in (BUILD / f"profile/write-64k-{guest}.txt").read_text()
        assert "qhca_" in (BUILD / f"profile/write-64k-{guest}.svg").read_text()


def test_nonsense():
    done = subprocess.run([TOP / "lab/bench/measure", "--only", "nonsense"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "write 64 KiB" in done.stderr
    done = subprocess.run([TOP / "lab/bench/measure", "--against", "no-such-revision"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "no such revision: no-such-revision" in done.stderr

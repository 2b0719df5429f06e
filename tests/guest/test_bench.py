# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/bench/measure measures what it says: a short run of each kind. No figure is judged."""

import json
import os
import subprocess

import pytest

from labs import TOP
from qhca_lab.paths import BUILD

pytestmark = pytest.mark.long("measures for a minute or more")

CASE = ["--only", "^write 64 KiB", "--rounds", "1", "--seconds", "1"]


@pytest.fixture
def bench(pair, tmp_path):
    """Run lab/bench/measure with the kept pair out of its way; its results."""
    pair.freeze()

    def run(name, *options):
        target = BUILD / name
        kept = target.read_bytes() if target.exists() else None
        target.unlink(missing_ok=True)
        try:
            subprocess.run([TOP / "lab/bench/measure", *CASE, *options], check=True, timeout=900)
            return json.loads(target.read_text())
        finally:
            if kept is None:
                target.unlink(missing_ok=True)
            else:
                target.write_bytes(kept)

    yield run
    pair.thaw()


def test_against_soft_roce(bench):
    told = bench("bench.json")
    (case,) = told["results"]
    assert case["case"] == "write 64 KiB" and not case["errors"]
    assert case["qhca"] > 0 and case["rxe"] > 0
    assert case["ratio"] == case["qhca"] / case["rxe"]
    assert told["host"] and told["cpus"] == os.cpu_count()


def test_tracing(bench):
    (case,) = bench("bench-tracing.json", "--tracing")["results"]
    assert all(case[way] > 0 for way in ("off", "break", "device", "guests", "record"))


def test_nonsense():
    done = subprocess.run([TOP / "lab/bench/measure", "--only", "nonsense"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "write 64 KiB" in done.stderr
    done = subprocess.run([TOP / "lab/bench/measure", "--against", "no-such-revision"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "no such revision: no-such-revision" in done.stderr

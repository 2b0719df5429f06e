# SPDX-License-Identifier: GPL-2.0-or-later
"""Many objects at once, and none left afterwards."""

import json

import pytest


@pytest.mark.parametrize("qps, mrs", [
    (2000, 20000), pytest.param(10000, 100000, marks=pytest.mark.long("the same with more"))])
def test_many_objects(pair, progs, qps, mrs):
    """The last ones still work."""
    before = pair.a.run("rdma res show").out
    out = json.loads(pair.a.run(f"{progs.path('scale')} {qps} {mrs}", timeout=300).out)
    assert (out["qps"], out["mrs"], out["moved"]) == (qps, mrs, 4096), out
    assert pair.a.run("rdma res show").out == before


@pytest.mark.parametrize("threads", [
    4, pytest.param(1, marks=pytest.mark.long("the same, one command at a time"))])
def test_life_of_qps(pair, progs, threads):
    """Commands of several threads reach the device together: each takes effect once."""
    before = pair.a.run("rdma res show").out
    out = json.loads(pair.a.run(f"{progs.path('qps')} 1001 {threads}", timeout=300).out)
    assert (out["qps"], out["threads"], out["rts"]) == (1001, threads, 1001), out
    assert all(out[step] > 0 for step in ("create", "connect", "destroy")), out
    assert pair.a.run("rdma res show").out == before


@pytest.mark.long("test_lifecycle has a process that is killed in traffic")
def test_many_objects_of_a_killed_process(pair, progs):
    """The kernel destroys what a process leaves behind."""
    before = pair.a.run("rdma res show").out
    job = pair.a.start(f"{progs.path('scale')} 500 100000")
    pair.a.wait_for("rdma res show | grep -q ' mr [0-9]\\{4,\\}'")
    pair.a.run("pkill -KILL scale")
    assert job.wait().rc != 0
    pair.a.wait_for(f"test \"$(rdma res show)\" = '{before.rstrip(chr(10))}'")

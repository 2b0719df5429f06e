# SPDX-License-Identifier: GPL-2.0-or-later
"""
The semantics of verbs: rights, retries, the state machine, and the mistakes that
other emulated adapters are known for.  Each program tries its cases on loopback.
"""

import json

import pytest

from labs import run_pair

SUCCESS, FLUSH, RETRY_EXCEEDED, RNR_EXCEEDED = 0, 5, 12, 13
RTS, ERR = 3, 6


def run(guest, progs, line):
    name, _, arguments = line.partition(" ")
    return json.loads(guest.run(f"{progs.path(name)} {arguments}", timeout=90).out)


@pytest.mark.long("hundreds of combinations; tests/engine and test_bad_input have what is refused")
def test_rights(pair, progs):
    """Each operation with each set of rights, of the region and of the QP."""
    out = run(pair.a, progs, "rights")
    assert not out["wrong"], "\n".join(out["wrong"])
    assert out["tried"] > 8 * 8 * 5


@pytest.mark.long("tests/engine has every transition, each other test here the legal ones")
def test_states(pair, progs):
    """All transitions, legal and illegal, with what each requires and allows."""
    out = run(pair.a, progs, "states")
    assert not out["wrong"], "\n".join(out["wrong"])
    assert out["tried"] > 1000


@pytest.mark.long("the times in milliseconds; tests/engine has them in virtual time")
def test_retries(pair, progs):
    """RNR and retry exhaustion come not before the times the QPs' own values say.
    Not too late either: tests/engine looks at that, where no host is busy."""
    out = run(pair.a, progs, "retries")

    def took(case, status, least):
        got = out.pop(case)
        assert (got["status"], got["next"], got["state"]) == (status, FLUSH, ERR), (case, got)
        assert least <= got["ms"] + 1, (case, got)

    # IBA table 45: code 12 is 0.64 ms, 24 is 40.96, 28 is 163.84; N retries wait N times
    took("rnr 28 0", RNR_EXCEEDED, 0)
    took("rnr 12 2", RNR_EXCEEDED, 1.28)
    took("rnr 24 2", RNR_EXCEEDED, 81.9)
    took("rnr 28 2", RNR_EXCEEDED, 327.6)
    took("rnr 28 5", RNR_EXCEEDED, 819.2)
    # 4.096 us * 2 ** timeout; the first try and N more
    for timeout, retries in ((10, 1), (14, 1), (14, 5), (16, 2)):
        ms = 0.004096 * 2 ** timeout * (retries + 1)
        took(f"gone {timeout} {retries}", RETRY_EXCEEDED, ms)
    late = out.pop("rnr late")
    assert (late["status"], late["next"], late["state"]) == (SUCCESS, SUCCESS, RTS), late
    assert late["ms"] >= 1000
    assert not out


@pytest.mark.parametrize("case", [
    "send_without_receive", "immediate_without_receive", "flush", "reset", "key_reuse",
    "cq_overflow", "srq_limit", "any_alignment", "busy",
])
def test_mistakes_of_others(pair, progs, case):
    """Known mistakes of emulated adapters."""
    assert run(pair.a, progs, f"mistakes {case}") == {case: "ok"}


@pytest.mark.long("sixty at once; test_scale has as many objects of one")
def test_many_processes_at_once(pair, progs):
    """Sixty programs with a context each; all data is right."""
    program = progs.path("mistakes")
    before = pair.a.run("rdma res show").out
    out = pair.a.run(f"for i in $(seq 60); do {program} any_alignment & done; wait",
                     timeout=150).out
    assert out.count('{"any_alignment": "ok"') == 60, out
    assert pair.a.run("rdma res show").out == before


def test_time_stamps(pair, progs):
    """Completions carry the device's clock, and the wall clock if requested."""
    out = run(pair.a, progs, "clocks")
    assert out["between"] == out["looked_at"] == 40, out
    # the kernel reads both clocks one after the other, at a moment it may be interrupted in
    assert out["outside"] < 5_000_000, out
    assert out["khz"] == 1_000_000 and out["mask"] == 2 ** 64 - 1


def test_refused(pair, progs):
    """Whatever docs/reference/verbs.md lists as not supported is refused with the proper error."""
    out = run(pair.a, progs, "refused")
    # Linux itself refuses alternate paths on RoCE ports, in its own way
    assert out.pop("IBV_QP_ALT_PATH") == "EINVAL"
    assert {what: err for what, err in out.items() if err != "EOPNOTSUPP"} == {}
    assert len(out) > 20


def test_operations(pair, progs):
    """Every operation of user verbs between two adapters, in both roles."""
    operations(pair.b, pair.a, progs)


def operations(server, client, progs):
    """Both sides of the program ops, and all they saw must be ok."""
    served, result = run_pair(server, client, progs.path("ops"))
    seen = {"client": json.loads(result.out), "server": json.loads(served.out)}
    wrong = [f"{side}: {case}: {said}" for side, cases in seen.items()
             for case, said in cases.items() if said != "ok"]
    assert not wrong, "\n".join(wrong)
    assert len(seen["client"]) == len(seen["server"]) >= 60

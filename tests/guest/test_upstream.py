# SPDX-License-Identifier: GPL-2.0-or-later
"""
The test-suite of rdma-core itself (pyverbs), on one guest: client and server
share the adapter, so all traffic goes through its loopback.

Every test must pass or be skipped for a reason that stands in SKIPS, which is
what this adapter does not have.  How many pass is fixed, so that none can
turn into a skip unseen.
"""

import re

import pytest

SUITE = "/tmp/rdma-core-tests"

# Of other vendors' devices, or of hardware no guest has.
NOT_OURS = re.compile(r"test_(mlx5|efa|cuda)")

# What the suite says when the device lacks something.
SKIPS = re.compile(
    "|".join(
        [
            "Device memory is not supported",
            "/dev/dri/renderD128 is not present",
            "Rereg MR is not supported",
            "MW access is not supported|memory window of type",
            "Create XRCD is not supported",
            r"Resize CQ is not supported|SRQ resize is not supported",
            r"Raw Packet QP .* is not supported|Create QP type 8 is not supported",
            "no huge pages of size 2M",
            "ODP is not supported",
            "Multicast is not supported",
            # FLUSH and ATOMIC_WRITE
            r"additional access flags (18|258) is not supported",
            "Extended QP is not supported on this device",
            # tag matching; RSS
            "Extended CQ is not supported",
            "Create player of RssRes is not supported",
            # sharing a PD between processes
            "Importing a device is not supported",
        ]
    )
)

# Tests that pass, by module; a module not named here has none.
PASSES = {
    "test_addr": 3,
    "test_atomic": 7,
    "test_cq": 3,
    "test_cq_events": 2,
    "test_cqex": 4,
    "test_device": 14,
    "test_fork": 1,
    "test_mr": 1,
    "test_parent_domain": 6,
    "test_pd": 4,
    "test_qp": 21,
    "test_qpex": 16,
    "test_rdmacm": 7,
    "test_relaxed_ordering": 2,
    "test_srq": 2,
}
NONE_PASS = ["test_flow", "test_odp", "test_rss_traffic", "test_shared_pd", "test_tag_matching"]


@pytest.fixture(scope="module")
def prepared():
    """Guests that have a copy of the suite, and its tests."""
    return {}


def suite(guest, prepared):
    """Copy the suite once per guest; {module: [test]}."""
    if guest.name not in prepared:
        guest.run(
            f"rm -rf {SUITE} && mkdir {SUITE} && cp -r /qhca/build/provider/src/tests {SUITE}/ && "
            f"cd {SUITE}/tests && rm -f test_mlx5* test_efa* test_cuda* && "
            "echo 16 > /proc/sys/vm/nr_hugepages"
        )
        listed = guest.run(f"cd {SUITE} && python3 tests/run_tests.py --list-tests 2>&1; true", timeout=120)
        names = re.findall(r"^tests\.(\w+)\.(\w+\.\w+)$", listed.out, re.M)
        modules = {}
        for module, name in names:
            if not NOT_OURS.match(module):
                modules.setdefault(module, []).append(name)
        prepared[guest.name] = modules
    return prepared[guest.name]


def verdicts(module, text):
    """{test: "ok" or "skipped ..."} of those that ended so, from the suite's output."""
    found = {}
    head = re.compile(rf"^test_\w+ \(tests\.{module}\.(\w+\.\w+)\)", re.M)
    starts = list(head.finditer(text))
    for i, start in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(text)
        verdict = re.search(
            r"\b(ok|skipped '.*'|skipped \".*\"|FAIL|ERROR)$", text[start.end():end], re.M
        )
        if verdict and verdict[1] not in ("FAIL", "ERROR"):
            found[start[1]] = verdict[1]
    return found


def run(guest, module, tests):
    """
    Outcome by test: "ok", "skipped ...", or the output of a failure.  First
    all in one process, which is quick; then each that has no good end alone,
    as a test that is skipped half-way can take the interpreter down.
    """

    def suite_run(names, seconds):
        return guest.run(
            f"cd {SUITE} && timeout {seconds} python3 tests/run_tests.py --dev $IBDEV --gid $GIDX "
            f"--port 1 -v {names} 2>&1",
            timeout=seconds + 30,
            check=False,
        )

    together = suite_run(module, 150)
    outcomes = verdicts(module, together.out)
    if together.rc in (0, 5):
        # 5: every test was skipped
        return outcomes
    for test in tests:
        if test not in outcomes:
            alone = suite_run(f"{module}.{test}", 60)
            good = verdicts(module, alone.out).get(test) if alone.rc in (0, 5) else None
            outcomes[test] = good or f"status {alone.rc}\n{alone.out}"
    return outcomes


@pytest.mark.parametrize("module", sorted([*PASSES, *NONE_PASS]))
def test_pyverbs(pair, prepared, module):
    guest = pair.a
    tests = suite(guest, prepared)[module]
    outcomes = run(guest, module, tests)
    assert sorted(outcomes) == sorted(tests)
    failed = {t: o for t, o in outcomes.items() if o != "ok" and not o.startswith("skipped")}
    assert not failed, "\n".join(f"{t}: {o}" for t, o in failed.items())
    unknown = {t: o for t, o in outcomes.items() if o.startswith("skipped") and not SKIPS.search(o)}
    assert not unknown
    passed = sum(o == "ok" for o in outcomes.values())
    assert passed == PASSES.get(module, 0), outcomes


def test_no_module_is_left_out(pair, prepared):
    assert sorted(suite(pair.a, prepared)) == sorted([*PASSES, *NONE_PASS])

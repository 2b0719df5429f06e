# SPDX-License-Identifier: GPL-2.0-or-later
"""
Bad input from user space: each mistake causes the error that the InfiniBand specification
requires, on the right side, and the adapter continues to serve others.

The statuses are those of enum ibv_wc_status, the events of enum
ibv_event_type, the states of enum ibv_qp_state.
"""

import json

import pytest
from qhca_lab.pair import start_server

SUCCESS, LOC_LEN, LOC_QP_OP, LOC_PROT, FLUSH = 0, 1, 2, 4, 5
REM_INV_REQ, REM_ACCESS, REM_OP = 9, 10, 11
NOTHING = -1
EVENT_QP_FATAL, EVENT_QP_REQ, EVENT_QP_ACCESS = 1, 2, 3
RTS, ERR = 3, 6

# case: (local, remote, request after it, event, state of the sender)
CASES = {
    # the doorbell has an unknown QPN; the correct one after it works
    "bad_qpn": (SUCCESS, NOTHING, NOTHING, NOTHING, RTS),
    # nothing happens to the victim: no completion, no event
    "foreign_qpn": (NOTHING, NOTHING, NOTHING, NOTHING, RTS),
    # local work queue catastrophic error
    "beyond_ring": (NOTHING, NOTHING, NOTHING, EVENT_QP_FATAL, ERR),
    "bad_opcode": (LOC_QP_OP, NOTHING, NOTHING, NOTHING, ERR),
    "too_many_sges": (LOC_QP_OP, NOTHING, NOTHING, NOTHING, ERR),
    "bad_lkey": (LOC_PROT, NOTHING, FLUSH, NOTHING, ERR),
    "lkey_bounds": (LOC_PROT, NOTHING, FLUSH, NOTHING, ERR),
    # the responder gets an event, the requester a status
    "bad_rkey": (REM_ACCESS, NOTHING, FLUSH, EVENT_QP_ACCESS, ERR),
    "rkey_bounds": (REM_ACCESS, NOTHING, FLUSH, EVENT_QP_ACCESS, ERR),
    "short_receive": (REM_INV_REQ, LOC_LEN, FLUSH, None, ERR),
    "receive_bad_lkey": (REM_OP, LOC_PROT, FLUSH, None, ERR),
}

# the device counter that counts it
COUNTERS = {
    "bad_qpn": "db_bad_object",
    "foreign_qpn": "db_bad_owner",
    "beyond_ring": "db_bad_index",
}


def check(got, expected):
    names = ("local", "remote", "flushed", "event", "state")
    for name, want in zip(names, expected):
        if want is not None:
            assert got[name] == want, f"{name}: {got[name]}, expected {want}: {got}"
    assert got["bystander"] == 1, f"the other QPs were disturbed: {got}"


@pytest.mark.parametrize("case", CASES)
def test_bad_input(pair, progs, case):
    guest = pair.a
    counter = COUNTERS.get(case)
    before = guest.ethtool_stat(counter) if counter else 0
    out = guest.run(f"{progs.path('badinput')} {case}").out
    check(json.loads(out), CASES[case])
    if counter:
        # badinput itself finally rings beyond a ring, to wait for that event
        assert guest.ethtool_stat(counter) == before + (2 if case == "beyond_ring" else 1)


@pytest.mark.long("each of them is in the gate, with another QP beside it")
def test_all_cases_at_once(pair, progs):
    """Many misbehaving processes and one honest pingpong at the same time."""
    bad = " & ".join(f"{progs.path('badinput')} {c} >/dev/null" for c in CASES)
    job = start_server(pair.b, "ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 2000")
    noise = pair.a.start(f"{bad} & wait")
    pair.a.run(f"ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 2000 {pair.b.ip}", timeout=180)
    assert job.wait().rc == 0
    assert noise.wait(120).rc == 0


def test_bad_requests_are_rejected(pair, progs):
    """Queue buffers that are short, unaligned or unmapped, values in reserved fields, and unknown
    comp_mask bits are refused."""
    result = json.loads(pair.a.run(progs.path("rawcreate")).out)
    for case, err in result.items():
        if case.endswith("_good"):
            assert err == 0, f"{case}: errno {err}"
        else:
            assert err in (14, 22, 12, 95), f"{case}: errno {err}"  # EFAULT EINVAL ENOMEM EOPNOTSUPP
    assert sum(c.endswith("_good") for c in result) == 6

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Tables broken from outside: invalid entries, missing pages.  The application gets the error, the
adapter continues.
"""

import json
import re

import pytest

from physmem import write64
from test_bad_input import ERR, EVENT_QP_FATAL, FLUSH, LOC_PROT, LOC_QP_OP, REM_OP
from test_queue_buffers import FORMS, VALID, context, layout

BROKEN_PAGE = 8  # of badinput.c
NOWHERE = 0x7F_FFFF_F000 | VALID  # far above the guest's memory


class Paused:
    """A badinput case that waits on stdin for its table to be broken."""

    def __init__(self, lab, progs, case):
        self.guest = lab.a
        self.guest.run("rm -f /tmp/bad.*; mkfifo /tmp/bad.fifo")
        self.job = self.guest.start(
            f"{progs.path('badinput')} {case} < /tmp/bad.fifo > /tmp/bad.out 2> /tmp/bad.err")
        # a FIFO opens when both ends do: keep it open until the end
        self.keeper = self.guest.start("exec 3> /tmp/bad.fifo; while [ ! -e /tmp/bad.go ]; "
                                       "do sleep 0.1; done; echo go >&3")
        self.guest.wait_for("grep -q ready /tmp/bad.err")
        text = self.guest.run("cat /tmp/bad.err").out
        self.numbers = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", text)}

    def go(self):
        self.guest.run("touch /tmp/bad.go")
        assert self.job.wait().rc == 0
        self.keeper.wait()
        return json.loads(self.guest.run("cat /tmp/bad.out").out)


def mr_context(guest, key):
    for entry in json.loads(guest.run("rdma -j res show mr dev $IBDEV -d").out):
        number = entry.get("lkey", entry.get("rkey"))
        if number is not None and int(str(number), 16) == key:
            return context(guest, "mr", entry["mrn"])
    raise AssertionError(f"no MR with key {key:#x}")


CROSSED = pytest.mark.long("each of the two values is in the gate, with another partner")


@pytest.mark.parametrize("side,expected,entry", [
    pytest.param("lkey", (LOC_PROT, FLUSH), 0, id="lkey-invalid-entry"),
    pytest.param("lkey", (LOC_PROT, FLUSH), NOWHERE, id="lkey-unmapped-address", marks=CROSSED),
    pytest.param("rkey", (REM_OP, FLUSH), 0, id="rkey-invalid-entry", marks=CROSSED),
    pytest.param("rkey", (REM_OP, FLUSH), NOWHERE, id="rkey-unmapped-address"),
])
def test_broken_mr(pair, progs, side, expected, entry):
    """The memory of an MR cannot be reached: local or remote error by side."""
    with layout(pair.a, "flat page_shift=12"):
        case = Paused(pair, progs, "broken_mr")
        mpt = mr_context(pair.a, case.numbers[side])
        assert FORMS[mpt.buf.form] == "flat"
        write64(pair, "a", mpt.buf.addr, entry)
        out = case.go()
    assert (out["local"], out["flushed"]) == expected, out
    assert out["bystander"] == 1
    assert out["state"] == ERR


@pytest.mark.parametrize("entry", [
    0, pytest.param(NOWHERE, marks=pytest.mark.long("regions have it in the gate")),
], ids=["invalid-entry", "unmapped-address"])
def test_broken_sq(pair, progs, entry):
    """A WQE cannot be fetched: local work queue catastrophic error."""
    with layout(pair.a, "flat page_shift=12"):
        case = Paused(pair, progs, "broken_sq")
        qpc = context(pair.a, "qp", case.numbers["qpn"])
        assert FORMS[qpc.sq.form] == "flat"
        write64(pair, "a", qpc.sq.addr + 8 * BROKEN_PAGE, entry)
        out = case.go()
    assert out["event"] == EVENT_QP_FATAL and out["state"] == ERR, out
    assert out["local"] == LOC_QP_OP
    assert out["bystander"] == 1

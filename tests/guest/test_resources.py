# SPDX-License-Identifier: GPL-2.0-or-later
"""
What the rdma tool shows: resources, in detail and raw, as the device has
them; counters of the port and of QPs.
"""

import json
import sys

import pytest

from labs import TOP
from test_dmabuf import said_by_each, scripts

sys.path.insert(0, str(TOP / "tests"))

from contract import CONST, decode  # noqa: E402

# An application that has one of everything until it is told to end.
ONE_OF_ALL = """
from rc import *
from pyverbs.mr import MR
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
a, b = pair()
mr = MR(a.pd, 8192, REMOTE)
srq = SRQ(a.pd, SrqInitAttr(SrqAttr(max_wr=10, max_sge=2)))
print(a.qp.qp_num, b.qp.qp_num, mr.rkey, mr.buf, flush=True)
import sys
sys.stdin.read()
os._exit(0)
"""


def rdma(guest, *words):
    return json.loads(guest.run(["rdma", "-j", *words]).out)


@pytest.fixture
def application(pair):
    """Job and numbers of an application in guest a."""
    guest = pair.a
    job = guest.start(f"cd {scripts(guest)}; mkfifo hold 2>/dev/null; exec 3<>hold; "
                      f"python3 -c '{ONE_OF_ALL}' <&3 > numbers")
    guest.wait_for("test -s /tmp/scripts/numbers")
    numbers = [int(n) for n in guest.run("cat /tmp/scripts/numbers").out.split()]
    yield numbers
    job.kill()
    guest.run("rm -f /tmp/scripts/hold /tmp/scripts/numbers")


def of_python(entries):
    return [entry for entry in entries if entry.get("comm") == "python3"]


def test_resources(pair, application):
    """Each object, its owner, and how its memory is described."""
    a_qpn, b_qpn, rkey, _ = application
    guest = pair.a
    qps = {q["lqpn"]: q for q in of_python(rdma(guest, "-dd", "res", "show", "qp"))}
    assert set(qps) == {a_qpn, b_qpn}
    assert qps[a_qpn]["rqpn"] == b_qpn and qps[a_qpn]["state"] == "RTS"
    assert qps[a_qpn]["drv_sq_depth"] >= 16
    assert len(of_python(rdma(guest, "-dd", "res", "show", "cq"))) == 2
    mr, = of_python(rdma(guest, "-dd", "res", "show", "mr"))
    assert (int(mr["rkey"], 16), mr["mrlen"]) == (rkey, 8192)
    assert mr["drv_form"] in ("direct", "flat", "tree")
    srq, = of_python(rdma(guest, "-dd", "res", "show", "srq"))
    assert srq["drv_srqn"] > 0
    for kind in ("pd", "ctx"):
        assert len(of_python(rdma(guest, "res", "show", kind))) == 1, kind


def raw(guest, kind, structure):
    """All raw dumps of a kind, decoded by the contract."""
    # The tool prints each object on a line, not as one JSON document.
    text = guest.run(["rdma", "-r", "-j", "res", "show", kind]).out
    found = []
    for part in text.split('"data":[')[1:]:
        data = bytes(int(n) for n in part.split("]")[0].split(","))
        found.append(decode(structure, data))
    return found


@pytest.mark.long("test_objects has raw dumps in the gate")
def test_raw_resources(pair, application):
    """Raw dumps are the device's own contexts."""
    a_qpn, b_qpn, rkey, addr = application
    guest = pair.a
    qps = {q.qpn: q for q in raw(guest, "qp", "qhca_qpc")}
    assert qps[a_qpn].dest_qpn == b_qpn and qps[b_qpn].dest_qpn == a_qpn
    assert qps[a_qpn].state == CONST["QHCA_QPS_RTS"]
    assert qps[a_qpn].type == CONST["QHCA_QPT_RC"]
    cqs = {c.cqn: c for c in raw(guest, "cq", "qhca_cqc")}
    assert qps[a_qpn].send_cqn in cqs and cqs[qps[a_qpn].send_cqn].uar == qps[a_qpn].uar
    mrs = {m.key: m for m in raw(guest, "mr", "qhca_mpt")}
    assert (mrs[rkey].iova, mrs[rkey].len) == (addr, 8192)
    assert mrs[rkey].access == CONST["QHCA_ACCESS_MASK"] & mrs[rkey].access != 0
    srqs = raw(guest, "srq", "qhca_srqc")
    assert any(s.pd == qps[a_qpn].pd and 1 << s.shift >= 10 for s in srqs)


COUNTERS = ["port_counters", "bound", "destroyed", "automatic", "refused"]


@pytest.mark.parametrize("name", COUNTERS)
def test_counters(pair, name):
    said = said_by_each(pair.a, "counters", *COUNTERS)
    assert f"{name}: done" in said, said

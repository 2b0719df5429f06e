# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects as the guest's tools show them: rdma res -dd and -r, and the tables in debugfs; all of
it agrees with the device's view over QMP."""

import contextlib
import json
import sys
from pathlib import Path

import pytest

from test_driver import debugfs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from contract import decode  # noqa: E402

KINDS = {"qp": ("qhca_qpc", "qpn"), "cq": ("qhca_cqc", "cqn"),
         "srq": ("qhca_srqc", "srqn"), "mr": ("qhca_mpt", "key")}
OTHERS = pytest.mark.long("what the driver chooses and two hops are in the gate")
LAYOUTS = ["auto", pytest.param("flat page_shift=12", marks=OTHERS), "tree hops=2 page_shift=12",
           pytest.param("list", marks=OTHERS)]


def number(value):
    return int(value, 0) if isinstance(value, str) else value


def look(pair, command, **arguments):
    answer = pair.qmp("a", command, **arguments)
    return answer["look"]


def res(guest, options, kind):
    where = "link $IBDEV/1" if kind == "qp" else "dev $IBDEV"
    return json.loads(guest.run(f"rdma -j{options} res show {kind} {where}").out)


@contextlib.contextmanager
def application(pair, layout):
    """One that waits for its peer, with one of everything; its process id."""
    a = pair.a
    a.run(f"echo '{layout}' > {debugfs(a)}/layout")
    try:
        job = a.start("ibv_srq_pingpong -d $IBDEV -g $GIDX -q 2 -r 100 -s 100000 & "
                      "ibv_rc_pingpong -d $IBDEV -g $GIDX -p 18600 -r 400 -s 300000 & wait")
        a.wait_port(a.ip, 18600)
        a.wait_port(a.ip, 18515)
        yield int(a.run("pgrep ibv_rc_pingpong").out)
        job.kill()
    finally:
        a.run(f"echo auto > {debugfs(a)}/layout; pkill ibv_rc_pingpong; pkill ibv_srq",
              check=False)
        a.wait_for("! pgrep 'ibv_(rc|srq)_ping'")   # with all their objects


def mine(guest, kind, pid):
    return [e for e in res(guest, "dd", kind) if e.get("pid") == pid]


def test_raw_is_what_the_device_has(pair):
    """rdma res -r and qhca-inspect show the same bytes of every object."""
    with application(pair, "auto"):
        for kind, (struct, name) in KINDS.items():
            entries = res(pair.a, "r", kind)
            assert entries, kind
            for entry in entries:
                raw = bytes(entry["data"])
                num = getattr(decode(struct, raw), name)
                outside = look(pair, "qhca-inspect", object=kind, number=num)["raw"]
                assert raw.hex() == outside, (kind, num)


def test_details_are_those_of_the_context(pair):
    """rdma res -dd: rings, counters and PSNs are those of the raw context."""
    with application(pair, "auto") as pid:
        raw = {k: {} for k in KINDS}
        for kind, (struct, name) in KINDS.items():
            for entry in res(pair.a, "r", kind):
                context = decode(struct, bytes(entry["data"]))
                raw[kind][getattr(context, name)] = context
        (qp,) = mine(pair.a, "qp", pid)
        c = raw["qp"][qp["lqpn"]]
        for queue, buf in (("sq", c.sq), ("rq", c.rq)):
            assert qp[f"drv_{queue}_depth"] == 1 << getattr(c, f"{queue}_shift")
            assert qp[f"drv_{queue}_stride"] == 1 << getattr(c, f"{queue}_stride")
            assert number(qp[f"drv_{queue}_addr"]) == buf.addr
            assert number(qp[f"drv_{queue}_len"]) == buf.len
            assert qp[f"drv_{queue}_hops"] == buf.hops
            assert qp[f"drv_{queue}_page_shift"] == buf.page_shift
            assert number(qp[f"drv_{queue}_va"]) % 4096 == 0
        assert qp["drv_uar"] == c.uar and number(qp["drv_rq_dbrec"]) == c.rq_dbrec
        for name in ("sq_head", "sq_next", "sq_tail", "rq_head", "rq_tail", "snd_psn", "una_psn",
                     "exp_psn", "msn", "retry_left", "rnr_left", "req_state", "rsp_state",
                     "rd_outstanding", "syndrome"):
            assert qp[f"drv_{name}"] == getattr(c, name), name
        (cq,) = mine(pair.a, "cq", pid)
        c = raw["cq"][cq["drv_cqn"]]
        assert (cq["drv_depth"], number(cq["drv_addr"])) == (1 << c.shift, c.buf.addr)
        for name in ("uar", "eqn", "prod", "cons", "arm", "state"):
            assert cq[f"drv_{name}"] == getattr(c, name), name
        assert number(cq["drv_dbrec"]) == c.dbrec
        (mr,) = mine(pair.a, "mr", pid)
        c = raw["mr"][int(str(mr["rkey"]), 16)]
        assert number(mr["drv_addr"]) == c.buf.addr and number(mr["drv_len"]) == c.len == 300000
        assert number(mr["drv_access"]) == c.access
        srq = next(e for e in res(pair.a, "dd", "srq") if e.get("comm") == "ibv_srq_pingpon")
        c = raw["srq"][srq["drv_srqn"]]
        assert number(srq["drv_addr"]) == c.buf.addr
        assert number(srq["drv_index_addr"]) == c.idx.addr
        for name in ("uar", "head", "tail", "limit", "state"):
            assert srq[f"drv_{name}"] == getattr(c, name), name
        assert srq["drv_depth"] == 1 << c.shift


def entries(text, name):
    """The head line and {(level, table, index): [values]} of one buffer."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{name}: "))
    words = lines[at].split(": ", 1)[1].split()
    head = dict(zip(words[::2], words[1::2]))
    found = {}
    for line in lines[at + 1:]:
        if ": " in line:
            break
        level, table, index, *values = (int(w, 0) for w in line.split())
        found[level, table, index] = values
    return head, found


def check_walk(pair, kind, num, head, found, places):
    """Each hop of the device's walk is an entry the driver shows."""
    hops = int(head["hops"]) if head["form"] != "list" else 1
    for place in places:
        walk = look(pair, "qhca-walk", object=kind, number=num, entries=0, **place)
        assert "error" not in walk, walk
        if head["form"] == "direct":
            assert not walk["hops"] and not found
            continue
        assert len(walk["hops"]) == hops
        for hop in walk["hops"]:
            values = found[hop["level"], number(hop["table"]), hop["index"]]
            want = hop["address"] if head["form"] == "list" else hop["entry"]
            assert values[0] == number(want), (hop, values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_are_what_the_device_walks(pair, layout):
    """debugfs tables/: the tables that the driver built are those that the device walks."""
    a, top = pair.a, f"{debugfs(pair.a)}/tables"
    with application(pair, layout) as pid:
        (qp,), (cq,), (mr,) = (mine(a, kind, pid) for kind in ("qp", "cq", "mr"))
        qpn, cqn, key = qp["lqpn"], cq["drv_cqn"], int(str(mr["rkey"]), 16)
        for ring in ("sq", "rq"):
            head, found = entries(a.run(f"cat {top}/qp/{qpn}").out, ring)
            depth = qp[f"drv_{ring}_depth"]
            check_walk(pair, "qp", qpn, head, found,
                       [{"ring": ring, "index": i} for i in (0, depth // 2, depth - 1)])
            if head["form"] in ("flat", "tree"):
                leaf = max(level for level, _, _ in found)
                assert sum(level == leaf for level, _, _ in found) == int(head["pages"])
        head, found = entries(a.run(f"cat {top}/cq/{cqn}").out, "cq")
        check_walk(pair, "cq", cqn, head, found, [{"index": 0}, {"index": cq["drv_depth"] - 1}])
        a.run(f"echo {key:#x} > {top}/mr")
        head, found = entries(a.run(f"cat {top}/mr").out, f"mr {key:#x}")
        assert layout == "auto" or head["form"] == layout.split()[0]
        check_walk(pair, "mr", key, head, found, [{"offset": o} for o in (0, 4096, 299999)])
    # objects go, and their files
    assert a.run(f"ls {top}/qp/{qpn} {top}/cq/{cqn}", check=False).rc
    assert "No such file" in a.run(f"cat {top}/mr", check=False).err
    assert a.run(f"echo nonsense > {top}/mr", check=False).rc

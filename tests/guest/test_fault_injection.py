# SPDX-License-Identifier: GPL-2.0-or-later
"""
Injected faults: the effect of each on an application, the counters and the wire; and the same
seed gives the same packets.
"""

import contextlib
import hashlib
import json
import struct
import time

import pytest
from labs import PATIENCE, run_pair, wire_capture
from qhca_lab import fault, roce, scenario
from qhca_lab.pair import start_server

# ibv_wc_status
SUCCESS, LOC_QP_OP, LOC_PROT, FLUSH, REM_ACCESS, REM_OP, RETRY_EXC, RNR_EXC = (
    0, 2, 4, 5, 10, 11, 12, 13)
ERR = 6  # ibv_qp_state


@contextlib.contextmanager
def faults(lab, **rules):
    """Faults by guest, of those with qhca, in the block; yields a function that lists them."""
    able = [guest for guest in lab if guest.nic == "qhca"]
    for guest in able:
        fault.remove(guest)
        fault.seed(guest, 1)
    for name, some in rules.items():
        for rule in some:
            fault.add(lab[name], rule)
    try:
        yield lambda name: fault.listed(lab[name])["faults"]
    finally:
        for guest in able:
            fault.remove(guest)


def pingpong(lab, progs, options="", server="", timeout=120):
    """Run faultpp in both guests; what a and b print."""
    program = f"{progs.path('faultpp')} {options}"
    b, a = run_pair(lab.b, lab.a, f"{program} {server}", f"{program} {lab.b.ip}", timeout)
    return [json.loads(end.out) for end in (a, b)]


def well(*ends):
    for end in ends:
        assert (end["status"], end["wrong"], end["events"]) == (SUCCESS, 0, []), end


@contextlib.contextmanager
def counted(lab):
    """The increase of the adapters' counters in the block: [guest][name]."""
    before = {g.name: fault.counters(g) for g in lab}
    found = {}
    yield found
    for g in lab:
        after = fault.counters(g)
        found[g.name] = {k: after[k] - before[g.name][k] for k in after}


# ------------------------------------------------------------------- packets


def test_lost_request_and_acknowledge(pair, progs):
    """The timer expires once for each, and no message arrives twice."""
    with faults(pair, a=[{"action": "drop", "opcode": "SEND_ONLY", "qp-type": "rc", "nth": 3}],
                b=[{"action": "drop", "opcode": "ACK", "qp-type": "rc", "nth": 6}]) as listed:
        with counted(pair) as up:
            a, b = pingpong(pair, progs, "--timeout 16")
        assert [f["hits"] for f in listed("a") + listed("b")] == [1, 1]
    well(a, b)
    assert a["done"] == b["done"] == 10
    assert up["a"]["roce-timeouts"] >= 2 and up["b"]["roce-duplicate"] >= 1


def test_lost_in_the_middle(pair, progs):
    """A gap is detected at once: a sequence NAK, no timeout."""
    with faults(pair, a=[{"action": "drop", "opcode": "SEND_MIDDLE", "psn": 5,
                          "psn-relative": True, "count": 1}]):
        with counted(pair) as up:
            a, b = pingpong(pair, progs, "--len 16384 --iters 3 --timeout 20")
    well(a, b)
    assert up["a"]["roce-seq-nak-rx"] == up["b"]["roce-seq-nak-tx"] == 1
    assert up["a"]["roce-timeouts"] == 0 and up["a"]["roce-retransmits"] > 0


@pytest.mark.parametrize("side, rule", [
    ("a", {"action": "drop", "opcode": "request", "qp-type": "rc", "skip": 4}),
    pytest.param("b", {"action": "no-ack", "qp-type": "rc", "skip": 4},
                 marks=pytest.mark.long("the other direction is in the gate")),
    pytest.param("b", {"action": "drop", "direction": "in", "qp-type": "rc", "skip": 10},
                 marks=pytest.mark.long("to a, it is as if b did not answer")),
])
def test_silence(pair, progs, side, rule):
    """Retries run out: exactly as many as the QP has."""
    with faults(pair, **{side: [rule]}):
        with counted(pair) as up:
            a, b = pingpong(pair, progs, "--timeout 16 --retry 2 --wait 15000")
    assert a["status"] == RETRY_EXC and a["state"] == ERR, a
    assert up["a"]["roce-timeouts"] >= 3 and up["a"]["roce-retry-exceeded"] == 1
    assert b["status"] in (-1, RETRY_EXC), b


def test_spoilt(pair, progs):
    """The ICRC detects a bad packet; the application detects what the ICRC does not."""
    for action in ("corrupt", "corrupt-icrc"):
        with faults(pair, a=[{"action": action, "qp-type": "rc", "nth": 3}]):
            with counted(pair) as up:
                a, b = pingpong(pair, progs, "--timeout 16")
        well(a, b)
        assert up["b"]["roce-icrc-errors"] == 1, action
    with faults(pair, a=[{"action": "corrupt-payload", "qp-type": "rc", "nth": 3}]):
        with counted(pair) as up:
            a, b = pingpong(pair, progs)
    well(a)
    assert b["wrong"] == 1 and b["status"] == SUCCESS
    assert up["b"]["roce-icrc-errors"] == 0


@pytest.mark.long("tests/engine has these faults in virtual time")
def test_late_twice_and_out_of_order(pair, progs):
    rules = [
        {"action": "delay", "time": 20_000_000, "opcode": "request", "every": 3},
        {"action": "duplicate", "opcode": "request", "every": 2},
        {"action": "reorder", "opcode": "request", "skip": 3, "every": 5, "time": 10_000_000},
    ]
    for rule in rules:
        rule["qp-type"] = "rc"
        with faults(pair, a=[rule]) as listed:
            with counted(pair) as up:
                a, b = pingpong(pair, progs, "--len 8192 --iters 6 --timeout 18")
            assert listed("a")[0]["hits"] > 3
        well(a, b)
        if rule["action"] == "duplicate":
            assert up["b"]["roce-duplicate"] > 3
        if rule["action"] == "reorder":
            assert up["b"]["roce-out-of-sequence"] > 0


# --------------------------------------------------------------- other places


def test_rnr(pair, progs):
    """Receiver not ready: retried, or given up after the configured number of retries."""
    with faults(pair, b=[{"action": "rnr", "qp-type": "rc", "count": 5}]):
        with counted(pair) as up:
            a, b = pingpong(pair, progs)
    well(a, b)
    assert up["a"]["roce-rnr-nak-rx"] == up["b"]["roce-rnr-nak-tx"] == 5
    with faults(pair, b=[{"action": "rnr", "qp-type": "rc"}]):
        with counted(pair) as up:
            a, b = pingpong(pair, progs, "--rnr-retry 2 --wait 10000")
    assert a["status"] == RNR_EXC and a["state"] == ERR and a["done"] == 0
    assert up["a"]["roce-rnr-nak-rx"] == 3 and up["a"]["roce-rnr-exceeded"] == 1
    assert b["status"] == -1


@pytest.mark.parametrize("side, rule, mine, others", [
    # a fetches a send, a receive, a send: this is the third
    ("a", {"kind": "wqe", "skip": 2}, LOC_QP_OP, -1),
    ("a", {"kind": "data", "access": "read", "skip": 3}, LOC_PROT, -1),
    ("b", {"kind": "data", "access": "write", "skip": 3}, REM_OP, LOC_PROT),
])
def test_dma_error(pair, progs, side, rule, mine, others):
    """An access to memory fails: the errors on both sides."""
    rule = {"action": "dma-error", "qp-type": "rc", "count": 1, **rule}
    with faults(pair, **{side: [rule]}):
        with counted(pair) as up:
            a, b = pingpong(pair, progs, "--wait 10000")
    assert (a["status"], b["status"]) == (mine, others), (a, b)
    assert up[side]["dma-errors"] == 1
    assert a["state"] == ERR


def test_bad_rkey(pair, progs):
    """Not a fault but a mistake: a wrong key of the peer."""
    with counted(pair) as up:
        a, b = pingpong(pair, progs, "--op write --iters 5 --rkey 0x100")
    assert a["status"] == REM_ACCESS and a["done"] == 0
    assert up["b"]["roce-access-errors"] == 1
    assert b["events"] and b["state"] == ERR, b


@pytest.mark.long("test_semantics has a CQ that overflows, in a fifth of a second")
def test_cq_overflow(pair, progs):
    """The CQ is lost, with an event; so is the QP."""
    with faults(pair, a=[{"action": "cq-overflow", "qp-type": "rc", "nth": 4, "count": 1}]):
        with counted(pair) as up:
            a, b = pingpong(pair, progs, "--wait 10000")
    assert up["a"]["cq-overflows"] == 1
    assert a["status"] == -1 and a["state"] == ERR
    assert any("CQ" in event for event in a["events"]), a


def test_late_interrupts(pair, progs):
    """An application that sleeps wakes up later, and nothing is lost."""
    with faults(pair, a=[{"action": "hold-interrupt", "time": 30_000_000}]) as listed:
        a, b = pingpong(pair, progs, "--events --iters 5")
        assert listed("a")[0]["hits"] >= 5
    well(a, b)
    with faults(pair, a=[{"action": "stall-events", "skip": 4}]):
        program = progs.path("faultpp")
        job_b = start_server(pair.b, f"{program} --events --iters 5")
        job_a = pair.a.start(f"{program} --events --iters 5 {pair.b.ip}")
        deadline = time.monotonic() + 60
        while not fault.listed(pair.a)["faults"][0]["hits"]:
            assert time.monotonic() < deadline, "no event was stalled"
            time.sleep(0.05)
    # now the events come, all of them
    for job in (job_a, job_b):
        result = job.wait()
        assert result.rc == 0, result.describe()
        well(json.loads(result.out))


def test_link_down(pair, progs):
    """The cable is unplugged for a while: the driver notices, and the QP survives."""
    def changes():
        return int(pair.a.run("cat /sys/class/net/$NETDEV/carrier_changes").out)

    before = changes()
    with faults(pair, a=[{"action": "link-down", "at": "packet", "qp-type": "rc", "nth": 7,
                          "time": 2_000_000_000}]):
        with counted(pair) as up:
            a, b = pingpong(pair, progs, "--timeout 17")
    well(dict(a, events=[]), dict(b, events=[]))
    assert up["a"]["roce-timeouts"] >= 1
    pair.a._until(lambda: changes() >= before + 2, PATIENCE, "the carrier does not come back")


# -------------------------------------------------------------- determinism

SCRIPT = {
    "a": [
        {"action": "drop", "opcode": "request", "probability": 0.06},
        {"action": "corrupt", "opcode": "SEND_ONLY", "probability": 0.04},
        {"action": "corrupt-payload", "opcode": "SEND_ONLY", "probability": 0.2},
        {"action": "duplicate", "opcode": "ACK", "every": 5},
        {"action": "delay", "time": 1_000_000, "opcode": "SEND_ONLY", "every": 4},
    ],
    "b": [
        {"action": "drop", "opcode": "ACK", "probability": 0.06},
        {"action": "rnr", "every": 4},
        {"action": "corrupt-icrc", "opcode": "SEND_ONLY", "nth": 7},
    ],
}
for _rule in SCRIPT["a"] + SCRIPT["b"]:
    _rule["qp-type"] = "rc"


def frames(path):
    """The frames of a pcapng file."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            kept = struct.unpack_from("<I", data, at + 20)[0]
            yield data[at + 28 : at + 28 + kept]
        at += length


def packet_log(path):
    """Each RoCEv2 packet of RC as one line, by sender, in order.

    The whole packet is compared, except the numbers that differ in each run: QPN and
    UDP port, which is computed from the QPNs, and therefore the ICRC. The receiver's
    counter shows that the ICRC is correct.
    """
    log = {}
    for frame in frames(path):
        headers = roce.find(frame)
        if not headers or headers.six:
            continue
        bth = frame[headers.bth:]
        if bth[0] >> 5:
            continue
        sender = ".".join(map(str, frame[headers.ip + 12 : headers.ip + 16]))
        rest = hashlib.sha256(bth[12:-4]).hexdigest()[:16]
        log.setdefault(sender, []).append(
            f"op {bth[0]:#04x} flags {bth[1]:#04x} ack {bth[8] >> 7} "
            f"psn {int.from_bytes(bth[9:12], 'big')} bytes {len(bth)} {rest}")
    return log


@pytest.mark.long("hundreds of runs; tests/engine has the same in virtual time")
def test_same_seed_same_packets(pair, progs, tmp_path):
    """
    Ten runs with one seed: the same packets on the wire, byte by byte, the same
    faults, counters and result. Another seed: others.

    One message at a time, and timers (2 s, 4 s) much longer than any delay of the
    host. They differ, because both ends may wait for them at the same time. Only
    the faults then determine what is sent.
    """
    def run(seed):
        for guest in pair:
            fault.remove(guest)
            fault.seed(guest, seed)
            for rule in SCRIPT[guest.name]:
                fault.add(guest, rule)
        path = tmp_path / "log.pcapng"
        wire_capture.start(pair)
        try:
            with counted(pair) as up:
                a, b = pingpong(pair, progs, "--iters 10 --timeout 19", "--timeout 20",
                                timeout=300)
        finally:
            wire_capture.stop(pair, path)
            hits = {g.name: [(f["fault"], f["matches"], f["hits"])
                             for f in fault.listed(g)["faults"]] for g in pair}
            for guest in pair:
                fault.remove(guest)
        counts = {name: {k: n for k, n in found.items() if k.startswith("roce-")}
                  for name, found in up.items()}
        for end in (a, b):
            assert end.pop("qpn")
        return {"packets": packet_log(path), "faults": hits, "counters": counts, "a": a, "b": b}

    first = run(7)
    log = first["packets"]
    assert set(log) == {pair.a.ip, pair.b.ip}
    assert all(len(lines) >= 18 for lines in log.values())
    assert sum(h for _rule, _m, h in first["faults"]["a"] + first["faults"]["b"]) >= 8
    assert first["a"]["done"] == first["b"]["done"] == 10
    for again in range(9):
        assert run(7) == first, f"run {again + 2} differs"
    assert run(8)["packets"] != log


# ---------------------------------------------------------------- scenarios


gives_up = pytest.mark.long("a server waits until it gives up")


@pytest.mark.parametrize("name, side, counter", [
    ("lost-ack", "a", "roce-timeouts"),
    ("lost-packet", "a", "roce-seq-nak-rx"),
    ("rnr-storm", "a", "roce-rnr-nak-rx"),
    pytest.param("bad-table", "a", "table-errors", marks=gives_up),
    ("bad-dma", "b", "dma-errors"),
    ("bad-region", "b", "table-errors"),
    pytest.param("dead-peer", "a", "roce-retry-exceeded", marks=gives_up),
    ("link-flap", "", "roce-timeouts"),  # of the sender while the cable is unplugged
    pytest.param("cq-overflow", "a", "cq-overflows", marks=gives_up),
    pytest.param("random-loss", "a", "roce-retransmits",
                 marks=pytest.mark.long("test_platform has a wire that loses")),
])
def test_scenario(pair, name, side, counter):
    """Each does what it describes, and leaves nothing behind."""
    found = scenario.load(name)
    outcome = scenario.run(pair, found)
    assert all(f["hits"] for f in outcome.faults), outcome
    assert any(c.get(counter) for end, c in outcome.counters.items() if end == side or not side), outcome
    good = name in ("lost-ack", "lost-packet", "rnr-storm", "link-flap", "random-loss")
    assert (outcome.status["a"] == 0) == good, outcome
    assert [fault.listed(g)["faults"] for g in pair] == [[], []]


@pytest.mark.expects_dmesg
def test_fatal(rough_pair, progs):
    """The device fails under load; reloading the driver recovers it."""
    lab = rough_pair
    with faults(lab, a=[{"action": "fatal", "at": "packet", "qp-type": "rc", "nth": 9}]):
        a, _b = pingpong(lab, progs, "--wait 10000 --timeout 18 --retry 1")
    assert any("catastrophic" in event or "fatal" in event for event in a["events"]), a
    lab.a.run("qhca-unload", 60)
    lab.a.load_driver()
    lab.a.setup_nic()
    well(*pingpong(lab, progs))

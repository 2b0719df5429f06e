# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording: every event, every frame, the clocks; bounded, and it reports losses."""

import json

import pytest
from adapter import Adapter
from conftest import DEVICE
from layout import C
from machine import Machine
from rdma import Setup, ack

pytestmark = pytest.mark.observe


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def of(records: list[dict], kind: str, **fields) -> list[dict]:
    return [r for r in records if r["kind"] == kind
            and all(r.get(k) == v for k, v in fields.items())]


def test_one_send(adapter, tmp_path):
    """The events of a SEND in their order, decoded, with its frames and QPC."""
    m, path = adapter.m, tmp_path / "record"
    s = Setup(adapter, "rts")
    m.clock_step(5000)
    m.qmp("qhca-record-start", file=str(path))
    s.qp.post_send(s.sge(8), wr_id=0x77)
    frame = m.receive_frame()
    m.clock_step(1000)
    m.send_frame(ack(s.qp.num, 200))
    s.cq.take()
    info = m.qmp("qhca-record-stop")
    found = lines(path)
    assert found[0]["kind"] == "start" and found[0]["mac"] == "020000000001"
    assert found[0]["device"].endswith("/q") and found[0]["version"] == 1
    assert found[-1] == {"kind": "end", "events": info["events"], "lost": 0}
    events = [r for r in found if r["kind"] not in ("start", "sync", "end")]
    assert info == {"file": str(path), "events": len(events), "lost": 0}
    kinds = [r["kind"] for r in events]
    order = ["doorbell", "qpc", "wqe", "frame_out", "tx", "frame_in", "rx", "cqe"]
    at = -1
    for kind in order:
        at = kinds.index(kind, at + 1)
    doorbell = of(found, "doorbell")[0]
    assert (doorbell["number"], doorbell["index"], doorbell["doorbell_name"]) == (s.qp.num, 1, "SQ")
    # The context is that before the doorbell, which has not been processed yet.
    qpc = of(found, "qpc")[0]
    assert (qpc["qpn"], qpc["state_name"], qpc["sq_head"], qpc["snd_psn"]) == (
        s.qp.num, "RTS", 0, 200)
    wqe = of(found, "wqe")[0]
    assert (wqe["wr_id"], wqe["psn"], wqe["bytes"], wqe["opcode_name"]) == (0x77, 200, 8, "SEND")
    out = of(found, "frame_out")[0]
    assert bytes.fromhex(out["data"]) == frame and out["bytes"] == len(frame)
    cqe = of(found, "cqe")[0]
    assert (cqe["wqe"], cqe["opcode_name"], cqe["status_name"], cqe["wr_id"]) == (
        0, "SEND", "SUCCESS", 0x77)
    assert cqe["time"] - wqe["time"] == 1000


def test_state_changes_show_the_whole_context(adapter, tmp_path):
    path = tmp_path / "record"
    adapter.m.qmp("qhca-record-start", file=str(path))
    s = Setup(adapter, "rts")
    adapter.m.qmp("qhca-record-stop")
    contexts = [r["context"] for r in of(lines(path), "qpc", qpn=s.qp.num)]
    assert [c["state_name"] for c in contexts] == ["INIT", "RTR", "RTS"]
    assert contexts[-1]["dest_qpn"] == 0x123456 and contexts[-1]["sq"]["addr"] == s.qp.sq


def test_marker_and_clocks(adapter, tmp_path):
    """Pairs of clocks at begin, end, stop and cont; host time continues alone."""
    m, path = adapter.m, tmp_path / "record"
    m.qmp("qhca-record-start", file=str(path))
    adapter.reg_write(C.QHCA_REG_MARKER, 0xABCDEF, 8)
    m.qmp("stop")
    m.qmp("cont")
    m.clock_step(300_000_000)
    adapter.reg_write(C.QHCA_REG_MARKER, 0xFFFFFFFFFFFFFFFF, 8)
    m.qmp("qhca-record-stop")
    found = lines(path)
    assert [r["value"] for r in of(found, "marker")] == [0xABCDEF, (1 << 64) - 1]
    syncs = of(found, "sync")
    assert [s["running"] for s in syncs] == [True, False, True, True, True]
    times, hosts = ([s[k] for s in syncs] for k in ("time", "host"))
    assert hosts == sorted(hosts) and times == sorted(times)
    assert times[3] - times[2] == 300_000_000  # none for this long: before the marker
    assert all(s["width"] < 10_000_000 for s in syncs)


def test_frames_are_cut(adapter, tmp_path):
    m, path = adapter.m, tmp_path / "record"
    s = Setup(adapter, "rts")
    m.qmp("qhca-record-start", file=str(path), frame_bytes=20)
    s.qp.post_send(s.sge(100))
    frame = m.receive_frame()
    m.qmp("qhca-record-stop")
    out = of(lines(path), "frame_out")[0]
    assert bytes.fromhex(out["data"]) == frame[:20] and out["bytes"] == len(frame)


def test_limit(adapter, tmp_path):
    """The file respects the limit, its beginning is complete, and what is missing is counted."""
    m, path = adapter.m, tmp_path / "record"
    m.qmp("qhca-record-start", file=str(path), limit=65536)
    for value in range(2000):
        adapter.reg_write(C.QHCA_REG_MARKER, value, 8)
    info = m.qmp("qhca-record-stop")
    found = lines(path)
    values = [r["value"] for r in of(found, "marker")]
    assert values == list(range(len(values)))
    assert info["events"] + info["lost"] >= 2000 and info["lost"] > 0
    assert found[-1]["lost"] == info["lost"]
    # The last pair of clocks and the end are always there.
    assert path.stat().st_size < 65536 + 500


def test_disk_full(adapter):
    """Nothing stops; the response gives the reason, and reports the loss."""
    m = adapter.m
    m.qmp("qhca-record-start", file="/dev/full")
    for value in range(20_000):     # more than the recorder buffers
        adapter.reg_write(C.QHCA_REG_MARKER, value, 8)
    info = m.qmp("qhca-record-stop")
    assert info["error"] == "No space left on device"
    assert info["events"] == 0 and info["lost"] >= 20_000
    adapter.command(C.QHCA_CMD_NOP)


def test_refused(adapter, tmp_path):
    m = adapter.m
    for arguments, text in (
        ({"file": str(tmp_path / "no" / "record")}, "No such file"),
        ({"file": str(tmp_path)}, "Is a directory"),
        ({"file": str(tmp_path / "r"), "limit": 100}, "'limit' must be at least 65536"),
        ({"file": str(tmp_path / "r"), "frame_bytes": 65537}, "'frame-bytes' must be at most"),
        ({"file": str(tmp_path / "r"), "device": "none"}, "no qhca device"),
    ):
        with pytest.raises(RuntimeError, match=text):
            m.qmp("qhca-record-start", **arguments)
    with pytest.raises(RuntimeError, match="No recording runs"):
        m.qmp("qhca-record-stop")
    m.qmp("qhca-record-start", file=str(tmp_path / "r"))
    with pytest.raises(RuntimeError, match="already running"):
        m.qmp("qhca-record-start", file=str(tmp_path / "s"))
    m.qmp("qhca-record-stop")
    m.qmp("qhca-record-start", file=str(tmp_path / "r"))  # and again


def test_reset_and_hostile_guest(adapter, tmp_path):
    """Guest errors are recorded; a reset does not end the recording."""
    m, path = adapter.m, tmp_path / "record"
    m.qmp("qhca-record-start", file=str(path))
    adapter.ring(C.QHCA_DB_SQ, 0xABCDE, 1)
    adapter.ring(C.QHCA_DB_SQ, 0xFFFFFF, 0xFFFFFFFF)
    m.qmp("system_reset")
    m.wait_event("RESET")
    again = Adapter(m)
    again.start()
    again.reg_write(C.QHCA_REG_MARKER, 7, 8)
    m.qmp("qhca-record-stop")
    found = lines(path)
    assert of(found, "guest_error", number=0xABCDE)
    assert of(found, "marker", value=7) and found[-1]["kind"] == "end"


def test_end_of_qemu(tmp_path):
    """When QEMU ends, the file is complete."""
    path = tmp_path / "record"
    with Machine(device=DEVICE) as m:
        adapter = Adapter(m)
        adapter.start()
        m.qmp("qhca-record-start", file=str(path))
        adapter.reg_write(C.QHCA_REG_MARKER, 7, 8)
    found = lines(path)
    assert of(found, "marker", value=7) and found[-1]["kind"] == "end"

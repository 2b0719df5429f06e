# SPDX-License-Identifier: GPL-2.0-or-later
"""Super-frames of RoCEv2 on the real wire: they contain the packets that an adapter without them
sends, whether the peer, a recording or a capture splits them."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))

from adapter import Adapter  # noqa: E402
from conftest import DEVICE  # noqa: E402
from layout import C  # noqa: E402
from machine import Machine  # noqa: E402
from qhca_lab import capture, super_frame  # noqa: E402
from rdma import BTH, MR, Setup, ack, packet, parse  # noqa: E402

pytestmark = pytest.mark.once("test_rc sends in both builds")

RTS_PSN, RTR_PSN = 200, 100
READ_REQUEST = 0x0C
DATA = bytes(i * 31 + (i >> 8) & 0xFF for i in range(4096))
KINDS = {
    "send": (C.QHCA_WQE_SEND, 0, 4096),
    "send with immediate data": (C.QHCA_WQE_SEND_IMM, C.QHCA_WQE_F_SOLICITED, 3001),
    "send and invalidate": (C.QHCA_WQE_SEND_INV, 0, 2049),
    "write": (C.QHCA_WQE_RDMA_WRITE, 0, 4095),
    "write with immediate data": (C.QHCA_WQE_RDMA_WRITE_IMM, 0, 1025),
}


@pytest.fixture
def both():
    """An adapter with super-frames and one without, in the same state."""
    with Machine(device=DEVICE + ",super-frames=on") as m, Machine(device=DEVICE) as plain:
        setups = []
        for machine in (m, plain):
            adapter = Adapter(machine)
            adapter.start()
            s = Setup(adapter, "rts")
            s.mr.fill(DATA)
            setups.append(s)
        yield setups


def packets(frames: list[bytes]) -> list[bytes]:
    """Packets without AckReq: each is decoded, its ICRC checked."""
    seen = []
    for frame in frames:
        parse(frame)
        seen.append(frame[:50] + bytes([frame[50] & 0x7F]) + frame[51:-4])
    return seen


def frames_of(s: Setup, last_psn: int) -> list[bytes]:
    """The packets from the wire, up to the one with LAST_PSN."""
    got = []
    while True:
        frame = s.adapter.m.receive_frame()
        got.append(frame)
        if parse(super_frame.cut(frame)[-1])[BTH].psn == last_psn:
            return got


@pytest.mark.parametrize("kind", KINDS)
def test_sent_packets(both, kind):
    opcode, flags, length = KINDS[kind]
    last = RTS_PSN + (length - 1) // 1024
    seen = []
    for s in both:
        s.qp.post_send(s.sge(length), opcode=opcode, flags=C.QHCA_WQE_F_SIGNALED | flags,
                       imm=0x01020304)
        frames = frames_of(s, last)
        seen.append((len(frames), packets([p for f in frames for p in super_frame.cut(f)])))
        s.adapter.m.send_frame(ack(s.qp.num, last))
        assert s.cq.take().status == C.QHCA_WC_SUCCESS
    assert seen[0][0] == 1 and seen[1][0] == len(seen[1][1])
    assert seen[0][1] == seen[1][1]


def test_read_responses(both):
    seen = []
    for s in both:
        s.qp.modify("ACCESS", access=C.QHCA_ACCESS_REMOTE_READ)
        mr = MR(s.adapter, s.pd, access=C.QHCA_ACCESS_REMOTE_READ)
        mr.fill(DATA)
        reth = mr.iova.to_bytes(8, "big") + mr.key.to_bytes(4, "big")
        reth += (4000).to_bytes(4, "big")
        s.adapter.m.send_frame(packet(s.qp.num, READ_REQUEST, RTR_PSN, reth, ackreq=1))
        frames = frames_of(s, RTR_PSN + 3)
        seen.append(packets([p for f in frames for p in super_frame.cut(f)]))
    assert seen[0] == seen[1]


@pytest.mark.observe
def test_a_recording_has_the_packets(both, tmp_path):
    s = both[0]
    s.adapter.m.qmp("qhca-record-start", file=str(tmp_path / "record"), **{"frame-bytes": 2000})
    s.qp.post_send(s.sge(4096))
    (frame,) = frames_of(s, RTS_PSN + 3)
    s.adapter.m.qmp("qhca-record-stop")
    records = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    recorded = [bytes.fromhex(r["data"]) for r in records if r["kind"] == "frame_out"]
    assert recorded == super_frame.cut(frame) and len(recorded) == 4
    assert [r["psn"] for r in records if r["kind"] == "tx"] == [RTS_PSN + i for i in range(4)]


def test_a_capture_has_the_packets(both, tmp_path):
    s, path = both[0], tmp_path / "pcap"
    s.adapter.m.qmp("object-add", **{"qom-type": "filter-dump", "id": "f", "netdev": "wire",
                                     "file": str(path), "maxlen": 65536})
    s.qp.post_send(s.sge(4096))
    (frame,) = frames_of(s, RTS_PSN + 3)
    s.adapter.m.qmp("object-del", id="f")
    assert [p.data for p in capture.read_pcap(path, 0)] == super_frame.cut(frame)


def test_what_is_no_super_frame_is_left_alone(both):
    s = both[0]
    s.qp.post_send(s.sge(4096))
    (frame,) = frames_of(s, RTS_PSN + 3)
    assert len(super_frame.cut(frame)) == 4
    damaged = [frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1:]
               for at in (12, 14, 16, 23, 24, 36, 38, 42, 43, 50, 60, 4140, *range(-12, 0))]
    for other in [*damaged, *(frame[:length] for length in range(len(frame)))]:
        assert super_frame.cut(other) == [other]


def test_short_frames_that_look_like_one():
    """Any host can send them: no length in them ends a capture."""
    six = bytes.fromhex("86dd60") + bytes(5) + b"\x11\x40" + bytes(32)
    four = bytes.fromhex("080045") + bytes(8) + b"\x11" + bytes(10)
    for ip in (six, four):
        for tag in (b"", b"\x81\x00\x00\x05"):
            start = bytes(12) + tag + ip + b"\xc0\x00\x12\xb7" + bytes(4) + b"\x04"
            for length in range(120):
                frame = start[:length].ljust(length, b"\0")
                for trailer in (b"QSFG\x01\x00\x00\x02", b"QSFG\x00\x00\xff\xff"):
                    assert super_frame.cut(frame + trailer) == [frame + trailer]

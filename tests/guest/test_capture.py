# SPDX-License-Identifier: GPL-2.0-or-later
"""The frames on the wire, decoded by Wireshark."""

import subprocess

from test_pingpong import perftest, pingpong


def tshark(path, *args):
    return subprocess.run(
        ["tshark", "-n", "-r", str(path), *args],
        check=True, capture_output=True, text=True, timeout=120,
    ).stdout.splitlines()


def test_capture_decodes(pair, tmp_path):
    """RC and UD traffic: every frame is RoCEv2 that tshark finds well formed."""
    path = tmp_path / "run.pcapng"
    with pair.capture(path):
        pingpong(pair.b, pair.a, "ibv_rc_pingpong", "-s 10000 -n 20")
        pingpong(pair.b, pair.a, "ibv_ud_pingpong", "-s 512 -n 10")
        perftest(pair.b, pair.a, "ib_write_bw", "-s 65536 -n 5")
        perftest(pair.b, pair.a, "ib_read_bw", "-s 65536 -n 5")
    frames = tshark(path, "-Y", "udp.dstport == 4791", "-T", "fields",
                    "-e", "infiniband.bth.opcode", "-e", "ip.len", "-e", "udp.length")
    assert len(frames) > 200
    opcodes = {int(f.split("\t")[0].split(",")[0]) for f in frames}
    # SEND first/middle/last/only, WRITE first..., READ request and responses, ACK, UD SEND
    assert {0, 2, 6, 7, 8, 12, 13, 14, 15, 17, 100} <= opcodes, sorted(opcodes)
    # The programs' TCP links may have a port that tshark takes for another protocol's.
    assert not tshark(path, "-Y", "udp.dstport == 4791 && _ws.malformed")
    assert not tshark(path, "-o", "ip.check_checksum:TRUE", "-Y",
                      "ip.checksum.status == Bad")


def test_psn_are_consecutive(pair, tmp_path):
    """Requests of one RC QP carry consecutive PSNs when nothing is lost (-u: nor
    takes longer than the timer, 4 s)."""
    path = tmp_path / "psn.pcapng"
    with pair.capture(path):
        perftest(pair.b, pair.a, "ib_write_bw", "-s 65536 -n 20 -u 20")
    rows = tshark(path, "-Y", "infiniband.bth.opcode >= 6 && infiniband.bth.opcode <= 11",
                  "-T", "fields", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn")
    last = {}
    for row in rows:
        qpn, psn = row.split("\t")
        psn = int(psn)
        if qpn in last:
            assert psn == (last[qpn] + 1) % (1 << 24)
        last[qpn] = psn
    assert last

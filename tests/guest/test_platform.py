# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter behind an IOMMU, with bounce buffers, and on a wire that loses."""

import pytest

from test_pingpong import perftest, pingpong

PERFTESTS = [
    ("ib_send_bw", "-s 65536 -n 100"),
    ("ib_write_bw", "-s 65536 -n 100"),
    ("ib_read_bw", "-s 65536 -n 100"),
    ("ib_send_lat", "-s 2 -n 200"),
    ("ib_write_lat", "-s 2 -n 200"),
    ("ib_read_lat", "-s 2 -n 200"),
]


def everything(lab):
    pingpong(lab.b, lab.a, "ibv_rc_pingpong", "-s 65536 -n 50")
    pingpong(lab.b, lab.a, "ibv_rc_pingpong", "-s 4096 -n 100 -e")
    pingpong(lab.b, lab.a, "ibv_ud_pingpong", "-s 1024 -n 100")
    perftest(lab.b, lab.a, "ib_write_bw", "-s 65536 -n 50")
    perftest(lab.b, lab.a, "ib_read_bw", "-s 65536 -n 50")
    lab.a.run(f"ping -c 3 -i 0.2 -s 1400 {lab.b.ip}")


def test_intel_iommu(iommu_pair):
    dmesg = iommu_pair.a.run("dmesg").out
    assert "DMAR: IOMMU enabled" in dmesg or "Intel-IOMMU" in dmesg, "no IOMMU in this guest"
    everything(iommu_pair)
    for guest in iommu_pair.guests:
        faults = guest.run("dmesg | grep -c 'DMAR:.*fault' || true").out
        assert int(faults) == 0


def test_iommu_addresses_are_iovas(iommu_pair, progs):
    """Behind an IOMMU the device's addresses are not the page frames."""
    from test_queue_buffers import open_qbuf
    with open_qbuf(iommu_pair, progs, "--depth 1024") as (first, qpc):
        assert qpc.sq_leaf not in [p << 12 for p in first["pfns"]]


def test_swiotlb(swiotlb_pair):
    assert "swiotlb=force" in swiotlb_pair.a.run("cat /proc/cmdline").out
    everything(swiotlb_pair)


@pytest.mark.parametrize("program,options", PERFTESTS,
                         ids=[f"{p} {o}" for p, o in PERFTESTS])
def test_loss_perftest(loss_pair, program, options):
    """1 % of all frames vanish: every run ends with all its messages."""
    row = perftest(loss_pair.b, loss_pair.a, program, options, timeout=400)
    assert int(row[1]) >= int(options.split("-n ")[1])


def test_loss_pingpong(loss_pair):
    pingpong(loss_pair.b, loss_pair.a, "ibv_rc_pingpong", "-s 65536 -n 50")


def test_loss_is_explained(loss_pair):
    """The counters say that packets were lost and sent again."""
    sent_again = sum(g.ethtool_stat("roce_retransmits") for g in loss_pair.guests)
    why = sum(g.ethtool_stat(s) for g in loss_pair.guests
              for s in ("roce_seq_nak_rx", "roce_timeouts"))
    gaps = sum(g.ethtool_stat("roce_out_of_sequence") for g in loss_pair.guests)
    assert sent_again > 0 and why > 0 and gaps > 0

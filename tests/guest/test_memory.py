# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory regions that change, memory windows, queues that change their size."""

import json

import pytest

# Soft-RoCE beside qhca in one guest, on the same net_device: for what needs no wire.
ADD_RXE = "modprobe rdma_rxe && rdma link add rxe9 type rxe netdev $NETDEV"
DROP_RXE = "rdma link delete rxe9"


@pytest.mark.parametrize("case", [
    "windows", "window_owner", "zero_based", "rereg", "cq_resize", "srq_resize",
])
def test_memory(pair, progs, case):
    out = pair.a.run(f"{progs.path('memory')} {case}", timeout=90).out
    assert json.loads(out) == {case: "ok"}


@pytest.mark.parametrize("pages", ["huge", "small"])
def test_registration_is_quicker_than_soft_roce(big, progs, pages):
    """1 GiB, in one guest, in turns: the best of each counts."""
    guest = big.a
    program = progs.path("memory")
    times = {}
    guest.run(ADD_RXE)
    try:
        for _ in range(2):
            for device, name in (("$IBDEV", "qhca"), ("rxe9", "rxe")):
                line = f"IBDEV={device} GIDX=0 {program} register 1024 {pages}"
                took = json.loads(guest.run(line, timeout=120).out)["register"]
                times[name] = min(took, times.get(name, took))
    finally:
        guest.run(DROP_RXE)
    assert times["qhca"] < times["rxe"], times

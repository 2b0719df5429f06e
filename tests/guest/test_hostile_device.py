# SPDX-License-Identifier: GPL-2.0-or-later
"""A hostile adapter: what it writes into memory, and its register values, are sometimes garbage.
Driver and applications may fail, but neither crash nor hang, the kernel is unharmed, and
everything works again with a healthy adapter."""

from pathlib import Path

import pytest
from labs import PATIENCE, run_pair
from qhca_lab import fault

# What is hit depends on the order in which the guest does things, and a number of more
# than 24 bits that CREATE_QP returns still makes the core complain.
pytestmark = pytest.mark.long("it can meet a mistake of the driver's that is known")

HOSTILE = Path(__file__).with_name("scripts") / "hostile"

LIES = {
    "completions": {"kind": "cqe", "probability": 0.05},
    "events": {"kind": "eqe", "probability": 0.2},
    "commands": {"kind": "command", "probability": 0.05},
    "records": {"kind": "record", "probability": 0.3},
    "net": {"kind": "ethernet", "probability": 0.05},
    "registers": {"at": "register", "probability": 0.5},
    "all": {},
}


def well(pair):
    """The driver of guest a comes back, and so does traffic."""
    a, b = pair.a, pair.b
    # udev, or a recovery, may be doing it
    a.wait_for("qhca-unload", 5 * PATIENCE)
    a.load_driver()
    a.setup_nic()
    a.run(f"ping -c 3 -i 0.2 -W 5 {b.ip}")
    run_pair(a, b, "ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 100")


@pytest.mark.parametrize("what, seed", [(w, s) for w in LIES for s in (1, 2, 3)])
def test_lies(rough_pair, what, seed):
    a, b = rough_pair.a, rough_pair.b
    lies = [LIES[what]] if LIES[what] else [rule for rule in LIES.values() if rule]
    environment = dict(a.environment(), IP=a.ip, PCI=a.pci)
    fault.remove(a)
    fault.seed(a, seed)
    for rule in lies:
        fault.add(a, {"action": "garbage", **rule})
    try:
        said = a.run(["/bin/bash", "-c", HOSTILE.read_text(), "hostile", b.ip],
                     10 * PATIENCE, env=environment)
        hits = sum(rule["hits"] for rule in fault.listed(a)["faults"])
    finally:
        fault.remove(a)
        well(rough_pair)
    assert hits, said.out

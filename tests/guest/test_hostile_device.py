# SPDX-License-Identifier: GPL-2.0-or-later
"""A hostile adapter: what it writes into memory, and its register values, are sometimes garbage.
Driver and applications may fail, but neither crash nor hang, the kernel is unharmed, and
everything works again with a healthy adapter."""

from pathlib import Path

import pytest
from labs import PATIENCE, run_pair
from qhca_lab import fault

LONG = pytest.mark.long("programs that hang are given time; one seed is in the gate")

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


def use(pair, lies, seed, **environment):
    """Use guest a's adapter, which lies like that; afterwards it is well."""
    a, b = pair.a, pair.b
    environment |= a.environment() | {"IP": a.ip, "PCI": a.pci}
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
        well(pair)
    assert hits, said.out


@LONG
@pytest.mark.parametrize("what, seed", [(w, s) for w in LIES for s in (1, 2, 3)])
def test_lies(rough_pair, what, seed):
    use(rough_pair, [LIES[what]] if LIES[what] else [rule for rule in LIES.values() if rule], seed)


def test_lies_in_short(rough_pair):
    """Wrong completions of both kinds of queues, for few programs."""
    use(rough_pair, [LIES["completions"], LIES["net"]], 1, SHORT="1")

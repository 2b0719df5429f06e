# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of the selftests: kept in a file, and written as a document.

The document outlives the files, which a clean build deletes: what these do not have is
taken from the document as it was.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from ..paths import BUILD
from .ktap import FAIL, PASS, Case

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-or-later -->
# Selftests

The kernel has selftests for network drivers, which its maintainers run on real adapters: `tools/testing/selftests/drivers/net`, `drivers/net/hw`, and
programs in `net` that need an adapter. The lab runs them between two guests, with the adapter as their `NETIF`
([hardware mode](https://docs.kernel.org/dev-tools/testing-devices.html)). They come from Debian's source of the guests' kernel.

<!-- not run: it takes a quarter of an hour -->
```
make test-selftests                                  # qhca
make test-selftests-newest                           # the same with the newest kernel
lab/run/selftests --nic virtio-net                   # the same list on virtio-net
lab/run/selftests --only 'rss_ctx|tcp_mmap' --show   # some of them, with all that they print
lab/run/selftests --write                            # put the last runs into this document
```

`xfail` is the result that the test itself expects from an adapter without the feature, or from a slow machine.
`–` means that the last run on this adapter omitted the case. A test that was not run again keeps its last result.
Some cases have time limits for real machines, and fail on a busy host: `rss_ctx.py` allows five seconds for 20 000 packets and 0.2 seconds for a new key,
`gro.py` 0.2 ms for packets that belong together. If the new key takes up to ten times as long, the result is `xfail`. Others have longer limits for slow machines,
which the lab requests (`KSFT_MACHINE_SLOW`). In the guests iperf3 has a low priority, so that it does not delay the test itself, and `net.core.rmem_max` is 4 MiB:
`csum.py` requests that for the 100 frames that it receives, which have a page each. IPv6 addresses stay when a link goes down (`keep_addr_on_down`), as on the machines of netdev's CI. For `gro.py` and `gro_hw.py` qhca holds frames back for 70 ms and 1 s (`gro-hold`), because an emulated
CPU sends one every 0.1 ms, and `gro_hw.py` expects interleaved frames of 512 flows to be merged.
Tests for other hardware that do not skip themselves are run only with `--all`. The tests run unmodified, with these exceptions. `csum.py` of 6.12 requires an
attribute that its own `env.py` does not set; the lab adds it. `toeplitz.py` may take 20 seconds instead of four for ten packets: for each it starts a program in the other guest. bpftrace may take 200 seconds instead of 20 to start.
`rss_ctx.py` of 7.3 replaces a filter, and then deletes both: the lab omits the second deletion if they have the same number.
`msg_zerocopy` may wait a minute instead of half a second for its last notifications. In the guests `/bin/sh` is bash, as some scripts expect, and `sudo` runs the command.
Tests of later kernels get a later ethtool, because they need its JSON output, and a later liburing. With 6.12, `ethtool_rmon.sh` does not find the histograms, which Debian 13's
ethtool omits from JSON; with the later kernel it passes.

qhca skips tests for these reasons:

- It has one port, no embedded switch and no cryptography: `devlink_port_split.py`, `devlink_rate_*`, `hw_stats_l3*`, `macsec.py`, `ipsec_vxlan.py`, `psp.py`.
- Its wire is a QEMU socket, not a PHY: no speed negotiation, no FEC, no frame preemption, no collisions and no corrupted frames to count
  (`ethtool.sh`, `ethtool_extended_state.sh`, `ethtool_mm.sh`, `check_fec`, most of the skipped `eth-mac` counters).
- Its indirection tables do not grow with the number of queues (`resize_*`): they always have 128 entries, eight for each of at most 16 queues. The kernel requires four
  (`indir_size_4x`), and a table that never changes its size need not be replaced, rejected or unfolded when queues are added.
- It has 16 queues: `test_rss_context32` uses 66.
- It runs no BPF programs itself (`test_xdp_offload`).
- Debian's kernel is built without a feature that the test needs: function error injection (`pp_alloc_fail.py`), netdevsim, PSP.

In `ring_reconfig.py`, `reconfig_tx_stall` is `xfail`: the adapter sends each packet before the doorbell's store returns, so the test cannot build a backlog.
"""
# Known reasons for failures of qhca, by test.
UNDERSTOOD = {
    "drivers/net/hw/toeplitz.py":
        "all received packets were correct, but on a busy host too few arrive in its twenty seconds",
}
HOW = {"pass": "pass", "fail": "**fail**", "skip": "skip", "xfail": "xfail"}
NICS = ("qhca", "virtio-net")
OMITTED = "–"
# Cells of a table, by test and case.
Cells = dict[str, dict[str, str]]


def results_file(nic: str, release: str) -> Path:
    return BUILD / "selftests" / f"results-{nic}-{release}.json"


def save(nic: str, release: str, results: dict[str, list[Case]]) -> None:
    """Save RESULTS, by test; existing ones of other tests are kept."""
    path = results_file(nic, release)
    kept = load(path) if path.exists() else {}
    kept.update(results)
    text = {name: [vars(c) for c in cases] for name, cases in sorted(kept.items())}
    path.write_text(json.dumps(text, indent=1) + "\n")


def load(path: Path) -> dict[str, list[Case]]:
    text = json.loads(path.read_text())
    return {name: [Case(**c) for c in cases] for name, cases in text.items()}


def counts(cells: Cells) -> str:
    """How many passed, ...: "12 pass, 1 skip"."""
    verdicts = {shown: word for word, shown in HOW.items()}
    number = Counter(verdicts[cell.partition(":")[0]]
                     for cases in cells.values() for cell in cases.values())
    return ", ".join(f"{number[word]} {word}" for word in HOW if number[word])


def _cell(case: Case, understood: str = "") -> str:
    # A reason may contain characters that are special in Markdown.
    reason = case.reason.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    text = HOW[case.verdict] + (f": {reason[:160]}" if reason and case.verdict != PASS else "")
    return text + (f" ({understood})" if understood and case.verdict == FAIL else "")


def _short(release: str) -> str:
    """The version in what `uname -r` says."""
    return re.split(r"[-+]", release)[0]


def _written(text: str) -> dict[str, dict[str, Cells]]:
    """The tables of a document, by version and adapter."""
    found: dict[str, dict[str, Cells]] = {}
    for part in text.split("\n## Linux ")[1:]:
        version, *lines = part.splitlines()
        rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
        if not rows:
            continue
        nics = rows[0][2:]
        tables: dict[str, Cells] = {nic: {} for nic in nics}
        test = ""
        for name, case, *cells in rows[1:]:
            test = name.strip("`") or test
            for nic, cell in zip(nics, cells):
                if cell != OMITTED:
                    tables[nic].setdefault(test, {})[case] = cell
        found[version] = tables
    return found


def document(before: str = "") -> str:
    """All saved results, as Markdown; newest kernel last. A test without one has its row of
    BEFORE, the previous document."""
    kept = _written(before)
    for path in sorted((BUILD / "selftests").glob("results-*.json")):
        for nic in NICS:
            release = path.stem.removeprefix(f"results-{nic}-")
            if release == path.stem:
                continue
            cells = kept.setdefault(_short(release), {}).setdefault(nic, {})
            for name, cases in load(path).items():
                why = UNDERSTOOD.get(name, "") if nic == "qhca" else ""
                cells[name] = {c.name: _cell(c, why) for c in cases}
    text = HEAD
    for version in sorted(kept, key=lambda v: [int(n) for n in v.split(".")]):
        nics = {nic: kept[version][nic] for nic in NICS if nic in kept[version]}
        text += f"\n## Linux {version}\n\n"
        text += "; ".join(f"{nic}: {counts(found)}" for nic, found in nics.items()) + ".\n\n"
        text += f"| test | case | {' | '.join(nics)} |\n|---|---|{'---|' * len(nics)}\n"
        for name in sorted({n for found in nics.values() for n in found}):
            by_nic = [found.get(name, {}) for found in nics.values()]
            for number, case in enumerate(dict.fromkeys(c for cells in by_nic for c in cells)):
                cells = " | ".join(found.get(case, OMITTED) for found in by_nic)
                text += f"| {f'`{name}`' if number == 0 else ''} | {case} | {cells} |\n"
    return text

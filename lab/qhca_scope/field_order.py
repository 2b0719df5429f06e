# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of fields for people: JSON from QEMU has none.

Fields of a structure of the contract are in the header's order; identifying fields
come first, all others last, by name. Unknown fields are shown, too.
"""

from __future__ import annotations

import functools
import re

from qhca_lab import paths

HEADER = paths.TOP / "kernel-driver/include/uapi/rdma/qhca-hw.h"

EARLY = {name: at for at, name in enumerate("""
    object ring index slot entry level mark number qpn cqn srqn eqn wqn rqtn key lkey rkey kind
    doorbell opcode type gid state status syndrome stopped why on wr_id old new peer uar vector
    psn bytes aeth table used at valid address offset length len addr depth stride shift producer
    head next consumer tail prod cons armed arm flags access
    """.split())}
# The order of a look's parts, which is not that of a structure's fields.
LATE = {name: at for at, name in enumerate("""
    context objects registers port requester responder retransmission window responses_owed
    atomics_kept doorbell_record buffer wqe_buffer index_buffer sq_buffer rq_buffer entries hops
    counters raw inline bytes
    """.split())}


@functools.lru_cache(maxsize=1)
def structures() -> list[dict[str, int]]:
    """The position of each field in the structures of the contract."""
    try:
        text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    except OSError:
        return []
    bodies = re.findall(r"struct qhca_\w+ \{(.*?)\n\};", text, re.S)
    found = []
    for body in bodies:
        names = re.findall(r"(?:struct \w+|__\w+)\s+(\w+)(?:\[\w+\])?;", body)
        found.append({name: at for at, name in enumerate(names)})
    return found


@functools.lru_cache(maxsize=1024)
def ranks(names: frozenset[str]) -> dict[str, tuple]:
    """A key to sort each of NAMES by."""
    best = max(structures(), key=lambda s: len(names & s.keys()), default={})
    # A structure, if most of its fields are present; else they only share names.
    if len(names & best.keys()) < max(3, len(best) // 2):
        best = {}
    out = {}
    for name in names:
        if name in best:
            out[name] = (1, best[name], name)
        elif name in LATE:
            out[name] = (3, LATE[name], name)
        elif name in EARLY:
            out[name] = (0, EARLY[name], name)
        else:
            out[name] = (2, 0, name)
    return out


def ordered(item: dict) -> dict:
    """ITEM with its fields as people read them: plain ones before nested."""
    rank = ranks(frozenset(item))
    deep = {k: isinstance(v, (dict, list)) + isinstance(v, list) for k, v in item.items()}
    return {k: item[k] for k in sorted(item, key=lambda k: (deep[k], rank[k]))}

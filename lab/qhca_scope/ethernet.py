# SPDX-License-Identifier: GPL-2.0-or-later
"""The Ethernet function of an adapter: receive queues, how frames are spread
over them, filters, shapers, and the buffers of frames that were split."""

from __future__ import annotations

from . import render
from .machine import Machine

NONE = 0xFFFFFFFF               # QHCA_ETH_RQ_NONE, QHCA_ETH_QP_NONE
TYPES = ("tcp4", "udp4", "ipv4", "tcp6", "udp6", "ipv6")


# -------------------------------------------------------------- the overview


def queue_entry(machine: Machine, number: int) -> dict:
    """A receive queue with both rings."""
    look = machine.inspect("eth-rq", number)
    context = look["context"]
    entry = {"number": number, "state": context["state_name"],
             "ring": ring_entry(context, ""), "data": None,
             "dropped": context["dropped"], "cqn": context["cqn"], "flags": context["flags_names"],
             "port": look["port"], "rqts": look["rqts"]}
    if "merging" in look:
        entry["merging"] = look["merging"]["frames"]
    if "data_ring" in look:
        entry["data"] = ring_entry(context, "data_")
        entry["hds_thresh"] = context["hds_thresh"]
    if context["syndrome"]:
        entry["syndrome"] = context["syndrome_name"]
    return entry


def ring_entry(context: dict, prefix: str) -> dict:
    head, tail = context[prefix + "head"], context[prefix + "tail"]
    return {"depth": 1 << context[prefix + "shift"], "tail": tail, "head": head,
            "posted": (head - tail) & 0xFFFFFFFF}


def send_queue_entry(machine: Machine, number: int) -> dict:
    """A send queue, with the large send in progress."""
    look = machine.inspect("eth-sq", number)
    context = look["context"]
    entry = {"number": number, "state": context["state_name"],
             "ring": ring_entry(context, ""), "cqn": context["cqn"]}
    if "large_send" in look:
        entry["large_send"] = {name: look["large_send"][name]
                               for name in ("sent", "payload", "mss")}
    if "held_by" in look:
        entry["shaper"] = look["held_by"]
    if context["syndrome"]:
        entry["syndrome"] = context["syndrome_name"]
    return entry


def spread_entry(machine: Machine, number: int) -> dict | None:
    """An RSS QP over Ethernet RQs; None if it uses WQs."""
    rss = machine.inspect("rss", number)["rss"]
    if "eth_rqs" not in rss:
        return None
    by_type = {t: rss[t] for t in TYPES if t in rss}
    return {"qpn": number, "rqtn": rss["rqtn"], "queues": rss["eth_rqs"],
            "hash": rss["hash_names"], "fields": by_type, "key": rss["hash_key"]}


def overview(machine: Machine) -> dict:
    """Everything that determines which queue receives a frame."""
    port = machine.inspect("device")["port"]
    spread = [spread_entry(machine, n) for n in machine.numbers("rss")]
    return {
        "port": {name: None if port[name] == NONE else port[name]
                 for name in ("eth_rqn", "eth_qpn")},
        "queues": [queue_entry(machine, n) for n in machine.numbers("eth-rq")],
        "send_queues": [send_queue_entry(machine, n) for n in machine.numbers("eth-sq")],
        "spread": [s for s in spread if s],
        "filters": machine.all("flow")["look"]["objects"],
        "shapers": machine.all("shaper")["look"]["objects"],
    }


def folded(queues: list[int]) -> str:
    """A table's queues, entry by entry, in short form."""
    count = len(queues)
    for period in (p for p in range(1, count // 2 + 1) if count % p == 0):
        if queues == queues[:period] * (count // period):
            return f"{listed(queues[:period])}, {count // period} times"
    runs: list[list[int]] = []          # first entry, last entry, queue
    for at, queue in enumerate(queues):
        if runs and runs[-1][2] == queue:
            runs[-1][1] = at
        else:
            runs.append([at, at, queue])
    if len(runs) == count:
        return listed(queues)
    return "; ".join(f"entry {a} queue {q}" if a == b else f"entries {a}-{b} queue {q}"
                     for a, b, q in runs)


def listed(queues: list[int]) -> str:
    first = queues[0]
    if len(queues) > 2 and queues == list(range(first, first + len(queues))):
        return f"queues {first}-{queues[-1]}"
    return ("queue " if len(queues) == 1 else "queues ") + " ".join(map(str, queues))


def match_text(flow: dict) -> str:
    """The match fields of a filter: those whose mask is not 0."""
    said = []
    for name, mask in flow["mask"].items():
        if render.nothing(mask) or (isinstance(mask, str) and not mask.strip("0:")):
            continue
        value = flow["value"][name]
        whole = (isinstance(mask, str) and not mask.strip("f:")) or \
            (isinstance(mask, int) and mask & (mask + 1) == 0)
        said.append(f"{name}={value}" + ("" if whole else f"/{render.scalar('mask', mask)}"))
    return " ".join(sorted(said)) or "all frames"


def port_text(port: dict) -> str:
    if port["eth_qpn"] is not None:
        return f"frames that no filter takes: spread by RSS QP {port['eth_qpn']}"
    if port["eth_rqn"] is not None:
        return f"frames that no filter takes: queue {port['eth_rqn']}"
    return "frames that no filter takes are dropped"


def ring_text(ring: dict | None) -> str:
    return "-" if ring is None else \
        f"{ring['tail']}..{ring['head']} ({ring['posted']} of {ring['depth']})"


def large_text(queue: dict) -> str:
    large = queue.get("large_send")
    return f"{large['sent']} of {large['payload']}, mss {large['mss']}" if large else ""


def overview_lines(look: dict, width: int = 0) -> list[render.Line]:
    lines: list[render.Line] = [[("number", port_text(look["port"]))]]
    lines.append([("title", "receive queues")])
    rows = [{"number": str(q["number"]), "state": q["state"], "ring": ring_text(q["ring"]),
             "data": ring_text(q["data"]), "thresh": q.get("hds_thresh", ""),
             "dropped": q["dropped"], "cqn": q["cqn"], "flags": q["flags"],
             "merging": q.get("merging", ""), "tables": " ".join(map(str, q["rqts"])),
             "why": q.get("syndrome", "")} for q in look["queues"]]
    lines += render.table(rows, width, keep=True) if rows else [[("dim", "none")]]
    lines.append([("title", "send queues")])
    rows = [{"number": str(q["number"]), "state": q["state"], "ring": ring_text(q["ring"]),
             "cqn": q["cqn"], "large send": large_text(q), "shaper": q.get("shaper", ""),
             "why": q.get("syndrome", "")} for q in look["send_queues"]]
    lines += render.table(rows, width, keep=True) if rows else [[("dim", "none")]]
    for s in look["spread"]:
        lines.append([("title", f"RSS QP {s['qpn']}"),
                      ("number", f", table {s['rqtn']} of {len(s['queues'])} entries")])
        lines.append([("key", "table   "), ("number", folded(s["queues"]))])
        lines.append([("key", "hash    "), ("number", s["hash"] or "-")])
        for kind, fields in s["fields"].items():
            lines.append([("key", f"  {kind}  "), ("number", fields or "-")])
    lines.append([("title", "filters")])
    rows = [{"number": str(f["number"]), "type": f["type_name"], "priority": f["priority"],
             "match": match_text(f), "qpn": f["qpn"], "tag": f["tag"],
             "flags": f["flags_names"]} for f in look["filters"]]
    lines += render.table(rows, width, keep=True) if rows else [[("dim", "none")]]
    if look["shapers"]:
        lines.append([("title", "shapers of send queues")])
        rows = [{"number": str(s["number"]), "rate": s["rate"] or "-", "burst": s["burst"],
                 "parent": s["parent"] or "port", "weight": s["weight"], "members": s["members"],
                 "bytes": s["bytes"], "waits": "yes" if s["waits"] else "no"}
                for s in look["shapers"]]
        lines += render.table(rows, width, keep=True)
    return lines


# -------------------------------------------------- the buffers of a split frame


def pieces(machine: Machine, queue: int, ring: str, index: int, count: int,
           length: int) -> list[dict]:
    """The COUNT buffers from INDEX on that hold LENGTH bytes. A buffer whose
    slot has been posted again is no longer known."""
    if not count:
        return []
    look = machine.look("qhca-ring", object="eth-rq", number=queue, ring=ring,
                        index=index, count=count)["look"]
    found = []
    for at, wqe in enumerate(look["entries"]):
        where = index + at & NONE
        if (look["producer"] - where & NONE) > look["depth"]:
            found.append({"index": where, "reposted": True})
            continue
        held = min(wqe["len"], length)
        length -= held
        found.append({"index": where, "addr": wqe["addr"], "len": wqe["len"], "bytes": held})
    return found


def frames(machine: Machine, queue: int, count: int) -> list[dict]:
    """The frames among the last COUNT completions of a receive queue's CQ, with
    the buffers they are in."""
    context = machine.inspect("eth-rq", queue)["context"]
    cqn = context["cqn"]
    look = machine.look("qhca-ring", object="cq", number=cqn, count=1)["look"]
    count = min(count, look["producer"], look["depth"])
    if not count:
        return []
    look = machine.look("qhca-ring", object="cq", number=cqn, count=count,
                        index=look["producer"] - count)["look"]
    return [frame(machine, queue, cqe) for cqe in look["entries"]
            if cqe.get("opcode_name") == "ETH_RECV" and cqe["num"] == queue]


def frame(machine: Machine, queue: int, cqe: dict) -> dict:
    head = cqe["header_len"] or cqe["byte_len"]
    return {
        "completion": cqe["index"], "status": cqe["status_name"], "bytes": cqe["byte_len"],
        "header_len": cqe["header_len"], "rss_hash": cqe["rss_hash"],
        "gso_segs": cqe["gso_segs"], "gso_size": cqe["gso_size"],
        "ring": pieces(machine, queue, "rq", cqe["wqe_index"], cqe["num_wqe"], head),
        "data": pieces(machine, queue, "data", cqe["data_index"], cqe["num_data"],
                       cqe["byte_len"] - head),
    }


def piece_text(piece: dict | None) -> str:
    if piece is None:
        return ""
    if "reposted" in piece:
        return f"{piece['index']}: posted again"
    return f"{piece['index']}: 0x{piece['addr']:x} {piece['bytes']} of {piece['len']} B"


def frame_lines(found: list[dict]) -> list[render.Line]:
    """Each frame with its header buffers next to its payload buffers."""
    if not found:
        return [[("dim", "no frame among the last completions")]]
    lines: list[render.Line] = []
    for f in found:
        what = f"split after {f['header_len']} B" if f["header_len"] else "whole"
        if f["gso_segs"]:
            what += f", {f['gso_segs']} frames of {f['gso_size']} B"
        lines.append([("title", f"completion {f['completion']}"),
                      ("number", f": {f['bytes']} B, {what}, {f['status']}")])
        rows = max(len(f["ring"]), len(f["data"]))
        left = [piece_text(p) for p in f["ring"]] + [""] * (rows - len(f["ring"]))
        right = [piece_text(p) for p in f["data"]] + [""] * (rows - len(f["data"]))
        width = max(map(len, ["ring", *left]))
        lines.append([("key", f"  {'ring':<{width}}  "), ("key", "data" if f["data"] else "")])
        lines += [[("number", f"  {a:<{width}}  {b}")] for a, b in zip(left, right)]
    return lines

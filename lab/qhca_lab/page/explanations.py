# SPDX-License-Identifier: GPL-2.0-or-later
"""Explanations of steps, for readers who are new to them."""

from __future__ import annotations

from .stories import Step

# (layer, kind): explanation. Events have their names from the recording: record/names.py.
_MEANINGS = {
    ("provider", "wqe"): (
        "ibv_post_send() of the provider writes the work request into the ring as a WQE: base + "
        "stride × (index mod depth). Plain stores, no system call."),
    ("provider", "recv_wqe"): (
        "ibv_post_recv() puts an empty buffer into the receive ring. The adapter learns of it from "
        "the doorbell record in memory; nothing leaves the guest."),
    ("provider", "doorbell"): (
        "After a barrier, one 64-bit store with QPN and new head index into the doorbell page. "
        "This is the only moment at which the data path leaves the guest."),
    ("provider", "poll"): (
        "ibv_poll_cq() finds a CQE with the expected phase bit, reads it and moves the consumer "
        "index in the doorbell record. No system call."),
    ("device", "doorbell"): (
        "The store arrives at the adapter: page, QPN, head. The adapter checks that the "
        "page belongs to the QP's context, so no process can ring another's queue."),
    ("device", "qpc"): (
        "The QPN leads to the queue pair's context: state, ring, buffer table, peer. A WQE of a "
        "connected QP does not name its peer; the QPC does."),
    ("device", "walk_hop"): (
        "One level of the buffer table: an 8-byte entry is read from guest memory. It names the "
        "next table, or the page."),
    ("device", "walk"): (
        "The offset in the buffer has become a DMA address. The adapter caches the page, so the next "
        "entry in the same page needs no walk."),
    ("device", "wqe"): (
        "The adapter reads the WQE by DMA, once, and checks it. Its first packet gets the next "
        "packet sequence number (PSN)."),
    ("device", "recv_wqe"): (
        "A SEND needs a place for its data: the oldest receive WQE is taken from the ring."),
    ("device", "data"): "DMA between guest memory and a packet: the only copy on this side.",
    ("device", "tx"): "A RoCEv2 packet with this PSN leaves: Ethernet, IP, UDP 4791, BTH, ICRC.",
    ("device", "rx"): (
        "A packet for this QP has arrived with a correct ICRC. Its PSN is compared with the "
        "expected one, then keys and rights are checked."),
    ("device", "rx_drop"): (
        "A packet was dropped; a counter gives the reason. The peer will retransmit it."),
    ("device", "cqe"): (
        "The completion is written into the ring of the CQ, the phase bit last: that is how "
        "software sees that it is new."),
    ("device", "eqe"): "Software has armed the CQ, so an entry is written to the event queue.",
    ("device", "msix"): "An MSI-X message: a write that makes a CPU run the driver's handler.",
    ("device", "retransmit"): "A packet was lost: the requester retransmits from this PSN on.",
    ("device", "timer"): "Packets are retransmitted if nothing arrives before it expires.",
    ("device", "qp_state"): "A queue pair went from one state to another.",
    ("device", "page_fault"): "On-demand paging: the page is missing; the driver must provide it.",
    ("device", "resume"): "The page is present now, and the access is repeated.",
    ("device", "guest_error"): "Software violated a rule of the manual; a counter counts it.",
    ("device", "frame_out"): "The Ethernet frame leaves the adapter.",
    ("device", "frame_in"): "An Ethernet frame has reached the adapter.",
    ("device", "fault"): "A rule has dropped, held or changed something.",
    ("device", "command"): "A command of the driver's admin queue was executed.",
    ("driver", "irq"): "The kernel runs the driver's interrupt handler.",
    ("driver", "eqe"): "The driver takes the entry from the event queue.",
    ("driver", "cq_event"): "The driver wakes waiters in ibv_get_cq_event() or poll().",
    ("driver", "aq_cmd"): "A request of the driver to the adapter, on the control path.",
    ("driver", "aq_done"): "The adapter's answer.",
    ("driver", "create_qp"): (
        "The queue pair is in the adapter: its rings are pinned, its buffer table is built."),
    ("driver", "table"): (
        "The driver has built the table of DMA addresses by which the adapter finds the pages."),
    ("driver", "reg_mr"): "Pages are pinned, their table is built, and the adapter knows the key.",
    ("driver", "modify_qp"): "A state change: RESET, INIT, RTR, RTS.",
    ("provider", "post_send"): "A kernel user posts; the driver writes the WQE.",
    ("driver", "post_send"): "A kernel user posts; the driver writes the WQE.",
    ("driver", "poll_cq"): "A kernel user takes the completion.",
    ("driver", "doorbell"): "A kernel user's doorbell: the same 64-bit store.",
    ("wire", "frame"): "An ordinary Ethernet frame between the guests, as Wireshark shows it.",
}
_MEANINGS["wire", "frame_out"] = _MEANINGS["wire", "frame"]
_MEANINGS["wire", "frame_in"] = "The frame has reached the other adapter."
_MEANINGS["wire", "tx"] = _MEANINGS["device", "tx"]
_MEANINGS["wire", "rx"] = _MEANINGS["device", "rx"]

LANES = {
    "provider": ("application", "libibverbs + libqhca"),
    "driver": ("driver", "kernel"),
    "device": ("adapter", "QEMU"),
    "wire": ("wire", "RoCEv2"),
}
HUES = {"provider": "blue", "driver": "green", "device": "orange", "wire": "purple"}
_FORMS = ("DIRECT", "LIST", "FLAT", "TREE")
_TROUBLE = {"retransmit", "fault", "rx_drop", "guest_error", "page_fault"}


def meaning(step: Step) -> str:
    """A sentence or two; "" for events that are not known here."""
    return _MEANINGS.get((step.layer, step.kind.removeprefix("qhca_")), "")


def trouble(step: Step) -> bool:
    """Is this step an error, or caused by one?"""
    if step.kind in _TROUBLE:
        return True
    status = step.args.get("status_name", step.args.get("status"))
    if step.kind in ("cqe", "poll") and status is not None:
        return status not in (0, "0", "SUCCESS", "success", "0x0")
    opcode = str(step.args.get("opcode_name", ""))
    return "NAK" in opcode


def say(args: dict, *keys: str) -> str:
    """The first of KEYS in ARGS, as text; "" if there is none."""
    for key in keys:
        if args.get(key) not in (None, ""):
            return str(args[key])
    return ""


def summary(step: Step) -> str:
    """The distinguishing fields of a step, very short."""
    a, kind = step.args, step.kind.removeprefix("qhca_")
    if kind in ("tx", "rx", "rx_drop", "frame", "frame_out", "frame_in"):
        name = say(a, "opcode_name", "packet", "opcode").removeprefix("RC ")
        psn, size = say(a, "psn"), say(a, "bytes")
        parts = [name, psn and f"PSN {psn}", size and not name and f"{size} bytes"]
    elif kind in ("wqe", "recv_wqe"):
        index = say(a, "index")
        name = "" if kind == "recv_wqe" else say(a, "opcode_name", "opcode")
        size = say(a, "bytes")
        parts = [name, size and f"{size} B", index and f"WQE {index}"]
    elif kind == "doorbell":
        number, index = say(a, "number", "qpn"), say(a, "index")
        which = say(a, "doorbell_name", "doorbell", "offset") or "SQ"
        parts = [f"QP {number}", f"head {index}"] if which in ("SQ", "0", "0x0") else [
            which, number, index]
    elif kind == "qpc":
        peer = say(a, "dest_qpn", "peer")
        parts = [f"QP {say(a, 'qpn', 'number')}", say(a, "state_name"), peer and f"peer {peer}"]
    elif kind == "walk_hop":
        parts = [f"level {say(a, 'level')}", f"→ {say(a, 'entry')}"]
    elif kind == "walk":
        parts = [f"→ {say(a, 'address')}"]
    elif kind == "data":
        parts = [f"{say(a, 'bytes')} B", say(a, "address")]
    elif kind in ("cqe", "poll"):
        parts = [f"CQ {say(a, 'cqn')}", say(a, "status_name", "status")]
    elif kind == "eqe":
        parts = [f"EQ {say(a, 'eqn')}", say(a, "type_name", "type")]
    elif kind in ("aq_cmd", "aq_done", "command"):
        status = say(a, "status_name")
        parts = [say(a, "opcode_name", "opcode"), status]
    elif kind == "table":
        form = say(a, "form")
        hops = say(a, "hops")
        parts = [dict(zip("0123", _FORMS, strict=True)).get(form, form), hops and f"hops {hops}"]
    elif kind in ("create_qp", "modify_qp", "destroy_qp"):
        parts = [f"QP {say(a, 'qpn')}"]
    elif kind in ("create_cq", "destroy_cq", "cq_event"):
        parts = [f"CQ {say(a, 'cqn')}"]
    elif kind in ("reg_mr", "dereg_mr"):
        pages = say(a, "pages")
        parts = [f"key {say(a, 'key')}", pages and f"pages {pages}"]
    elif kind == "fault":
        parts = [say(a, "action"), f"rule {say(a, 'rule')}"]
    elif kind == "timer":
        parts = [say(a, "timer", "kind")]
    elif kind == "retransmit":
        parts = [say(a, "reason_name", "reason"), f"PSN {say(a, 'psn')}"]
    elif kind in ("msix", "irq"):
        parts = [f"vector {say(a, 'vector')}"]
    else:
        parts = [f"{k} {v}" for k, v in a.items()
                 if k not in ("event", "time", "cpu", "pci", "dev") and not isinstance(v, (dict, list))][:2]
    return " · ".join(str(p) for p in parts if p)


def duration(us: float) -> str:
    """A time difference for people."""
    size = abs(us)
    if size < 1:
        return f"{us * 1000:.0f} ns"
    if size < 1000:
        return f"{us:.3g} µs" if size >= 100 else f"{us:.2f} µs"
    if size < 1e6:
        return f"{us / 1000:.2f} ms"
    return f"{us / 1e6:.2f} s"

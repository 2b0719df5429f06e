# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of events and codes. The timeline and the page of swim lanes show the same
names. Those of codes come from the adapters' recordings, where the adapter's own decoder
has put them next to the numbers."""

from __future__ import annotations

from .causes import Device

_DEVICE = {
    "reg_write": "register written", "marker": "marker", "command": "admin command",
    "guest_error": "guest error", "qp_state": "QP state", "qpc": "QPC",
    "walk_hop": "table hop", "walk": "table walk", "wqe": "WQE fetched",
    "recv_wqe": "receive WQE taken", "tx": "packet out", "rx": "packet in",
    "rx_drop": "packet dropped", "retransmit": "retransmission", "timer": "timer started",
    "cqe": "CQE written", "eqe": "EQE written", "page_fault": "page fault",
    "resume": "page fault resolved", "msix": "MSI-X", "eth_tx": "Ethernet frame out",
    "eth_rx": "Ethernet frame in", "fault": "injected fault",
}  # fmt: skip
_SILENT = ("frame_out", "frame_in")
_GUEST = {
    "wqe": "WQE written", "recv_wqe": "receive WQE written", "poll": "CQE polled",
    "post_send": "WQE written", "post_recv": "receive WQE written",
    "post_srq_recv": "receive WQE written", "poll_cq": "CQE polled", "irq": "interrupt",
    "eqe": "EQE taken", "cq_event": "completion event", "async_event": "asynchronous event",
    "aq_cmd": "command posted", "aq_done": "command done", "create_qp": "QP created",
    "modify_qp": "QP modified", "destroy_qp": "QP destroyed", "create_cq": "CQ created",
    "destroy_cq": "CQ destroyed", "create_srq": "SRQ created", "destroy_srq": "SRQ destroyed",
    "reg_mr": "MR registered", "dereg_mr": "MR deregistered", "table": "buffer table built",
    "page_fault": "page fault handled", "invalidate": "pages invalidated", "marker": "marker",
    "marker_begin": "marker begins", "flush_wr": "WR flushed",
}  # fmt: skip
_DOORBELLS = {0x00: "SQ", 0x08: "CQ_ARM", 0x10: "EQ", 0x18: "ETH_SQ", 0x20: "RQ",
              0x28: "MR_SYNC", 0x30: "TM"}  # fmt: skip
# Hexadecimal is easier to read, and JavaScript has no 64-bit integers.
_HEX = {"address", "addr", "wr_id", "entry", "at", "va", "offset", "iova", "key", "value", "mask",
        "arg", "result", "sq_leaf", "rq_leaf", "flags", "access", "deadline"}  # fmt: skip
# For an event of a guest: field, and the device's event and field that have its names.
_CODES = {
    "wqe": [("opcode", "wqe", "opcode")],
    "poll": [("opcode", "cqe", "opcode"), ("status", "cqe", "status")],
    "poll_cq": [("opcode", "cqe", "opcode"), ("status", "cqe", "status")],
    "post_send": [("opcode", "wqe", "opcode")],
    "aq_cmd": [("opcode", "command", "opcode")],
    "aq_done": [("opcode", "command", "opcode"), ("status", "command", "status")],
    "eqe": [("type", "eqe", "type")],
    "modify_qp": [("from", "qp_state", "new"), ("to", "qp_state", "new")],
}


def device_event(kind: str, fields: dict) -> str | None:
    """The name of an adapter's event; None if it is not shown."""
    if kind in _SILENT:
        return None
    if kind == "doorbell":
        return f"doorbell {fields.get('doorbell_name', '')}".rstrip()
    if kind == "data":
        return "data written" if fields.get("write") else "data read"
    if kind == "eth_data":
        return "frame data written" if fields.get("write") else "frame data read"
    return _DEVICE.get(kind, kind)


def guest_event(kind: str, fields: dict) -> str:
    """The name of a driver or provider event."""
    if kind == "doorbell":
        offset = fields.get("offset", fields.get("reg"))
        return f"doorbell {_DOORBELLS.get(offset, offset)}"
    return _GUEST.get(kind, kind.replace("_", " "))


class Names:
    """Names of codes, as the recordings of DEVICES have them."""

    def __init__(self, devices: list[Device]):
        self._names: dict[tuple, str] = {}
        for device in devices:
            for record in device.records:
                fields = record.fields
                for name, value in fields.items():
                    if name.endswith("_name"):
                        code = fields.get(name[:-5])
                        self._names[record.kind, name[:-5], code] = value

    def decode(self, kind: str, fields: dict) -> dict:
        """FIELDS of an event of a guest with the names of its codes."""
        for field, event, of in _CODES.get(kind, ()):
            name = self._names.get((event, of, fields.get(field)))
            if name:
                fields = fields | {f"{field}_name": name}
        return fields

    @staticmethod
    def args(fields: dict) -> dict:
        """FIELDS as they go into the trace."""
        args = {}
        for name, value in fields.items():
            if name in ("kind", "time"):
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                if name in _HEX or abs(value) >= 1 << 53:
                    value = hex(value)
            elif isinstance(value, dict):
                value = Names.args(value)
            args[name] = value
        return args

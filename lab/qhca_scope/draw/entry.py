# SPDX-License-Identifier: GPL-2.0-or-later
"""Entries of rings in words: WQEs, CQEs, EQEs as qhca-ring decodes them."""

from __future__ import annotations

# (field, text) in order of importance
_WORDS = (
    ("wr_id", "wr_id {:#x}"), ("recv_wr_id", "recv wr_id {:#x}"), ("wqe", "WQE {}"),
    ("status_name", "{}"), ("qpn", "QP {}"), ("wqe_index", "WQE {}"), ("byte_len", "{} bytes"),
    ("dest_qpn", "to QP {}"), ("srqn", "SRQ {}"), ("obj", "object {}"), ("tag", "tag {:#x}"),
    ("addr", "at {:#x}"), ("len", "{} bytes"), ("imm", "imm {}"),
)  # fmt: skip
_SILENT_ZERO = {"imm", "srqn", "tag", "addr", "len"}


def kind(entry: dict) -> str:
    """The kind of an entry: opcode or event type."""
    for key in ("opcode_name", "type_name", "opcode", "type"):
        if key in entry:
            return str(entry[key])
    return "receive" if "sges" in entry else ""


def untouched(entry: dict) -> bool:
    """Are all its bytes zero, as in memory that has never been written?"""
    raw = entry.get("raw", "")
    return bool(raw) and not raw.strip("0")


def words(entry: dict) -> str:
    """An entry in a few words, without its kind."""
    if "error" in entry:
        return str(entry["error"])
    parts = []
    for key, form in _WORDS:
        value = entry.get(key)
        if value is None or (not value and key in _SILENT_ZERO):
            continue
        if isinstance(value, int) or "#" not in form:
            parts.append(form.format(value))
    sges = entry.get("sges") or entry.get("segs") or ()
    if sges:
        total = sum(int(s.get("len", 0)) for s in sges)
        parts.append(f"{len(sges)} SGE{'s' if len(sges) > 1 else ''}, {total} bytes")
    if entry.get("inline"):
        parts.append(f"{len(entry['inline']) // 2} bytes inline")
    remote = entry.get("remote") or {}
    if remote.get("rkey") or remote.get("addr"):
        parts.append(f"remote {remote.get('addr', 0):#x} key {remote.get('rkey', 0):#x}")
    return " · ".join(parts)


def details(entry: dict) -> list[tuple[str, str]]:
    """(name, value) of the fields worth a line each."""
    out = [("kind", kind(entry))] if kind(entry) else []
    for key in ("flags_names", "wr_id", "status_name", "qpn", "wqe_index", "byte_len", "imm",
                "dest_qpn", "wqe", "obj", "inline"):
        value = entry.get(key)
        if value in (None, "", 0) and key != "wr_id":
            continue
        if value is not None:
            text = f"{value:#x}" if key == "wr_id" and isinstance(value, int) else str(value)
            out.append((key.removesuffix("_names").removesuffix("_name"), text))
    remote = entry.get("remote") or {}
    if remote.get("rkey") or remote.get("addr"):
        out.append(("remote", f"{remote.get('addr', 0):#x}, rkey {remote.get('rkey', 0):#x}"))
    for i, sge in enumerate(entry.get("sges") or ()):
        if i == 4:
            out.append(("sges", f"… {len(entry['sges']) - 4} more"))
            break
        out.append((f"sge[{i}]", f"{sge.get('addr', 0):#x} + {sge.get('len', 0)}, "
                                 f"lkey {sge.get('lkey', 0):#x}"))
    return out

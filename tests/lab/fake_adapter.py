# SPDX-License-Identifier: GPL-2.0-or-later
"""An adapter with a QP, a CQ and an MR in a FakeQemu that responds like the device; and a
lab of two such guests."""

from __future__ import annotations

import json
import os
from pathlib import Path

from fake_qemu import FakeQemu, Refuse

KINDS = ["device", "qp", "cq", "srq", "eq", "mr", "gid", "mcg", "eth-sq", "eth-rq", "rss",
         "flow", "shaper", "novelty"]
EVENTS = [
    {"on": "doorbell", "fields": ["number", "peer", "index", "code"],
     "codes": [{"code": 0, "name": "SQ"}, {"code": 8, "name": "CQ_ARM"}], "syndromes": []},
    {"on": "wqe", "fields": ["number", "index", "code", "wr-id", "syndrome"],
     "codes": [{"code": 0, "name": "SEND"}, {"code": 4, "name": "RDMA_READ"}],
     "syndromes": [{"code": 2, "name": "KEY_PD"}]},
    {"on": "packet-in", "fields": ["number", "peer", "psn", "code", "syndrome"],
     "codes": [{"code": 4, "name": "RC SEND_ONLY"}, {"code": 36, "name": "UC SEND_ONLY"},
               {"code": 17, "name": "RC ACK"}], "syndromes": []},
    {"on": "walk", "fields": ["number"], "codes": [], "syndromes": []},
    {"on": "cqe", "fields": ["number", "peer", "index", "code"],
     "codes": [{"code": 12, "name": "RETRY_EXC_ERR"}], "syndromes": []},
]
QPC = {"qpn": 17, "type": 0, "type_name": "RC", "state": 3, "state_name": "RTS", "access": 7,
       "access_names": "LOCAL_WRITE|REMOTE_WRITE", "send_cqn": 2, "recv_cqn": 2, "dest_qpn": 18,
       "av": {"dgid": "::ffff:10.99.0.2", "sgid_index": 1}, "sq_head": 12, "sq_next": 10,
       "sq_tail": 9, "rq_head": 0, "rq_tail": 0, "rq_stride": 5, "sq_stride": 6}
BUFFER = {"addr": 0x10000, "len": 65536, "first": 0, "entries": 16, "form": 3,
          "form_name": "TREE", "hops": 2, "page_shift": 12, "table_shift": 12}


def entry(index: int) -> dict:
    mark = "in-flight" if index == 9 else "posted" if index < 12 else "free"
    return {"index": index, "slot": index % 64, "mark": mark, "address": 0x5000 + 64 * index,
            "opcode": 0, "opcode_name": "SEND", "flags": 1, "flags_names": "SIGNALED",
            "wr_id": 0x100 + index, "sges": [{"addr": 0x7F00, "len": 64, "lkey": 0x1A02}],
            "raw": "00" * 64}


# ------------------------------------------------------------ the Ethernet function

def eth_rq(number: int, split: bool, dropped: int = 0, **context) -> dict:
    """An inspection result of a receive queue of 8 WQEs (data ring: 16), of table 0."""
    both = {"head": 12, "tail": 5, "shift": 3, "data_head": 0, "data_tail": 0, "data_shift": 0,
            "hds_thresh": 0, "state": 1, "state_name": "RDY", "syndrome": 0,
            "syndrome_name": "NONE", "cqn": 1, "dropped": dropped, "flags_names": ""}
    if split:
        both.update(data_head=20, data_tail=9, data_shift=4, hds_thresh=100, flags_names="HDS")
    look = {"context": dict(both, **context), "port": False, "rqts": [0]}
    return dict(look, data_ring={"buffer": BUFFER}) if split else look


def rss(queues: list[int], **hashed) -> dict:
    return {"context": {"qpn": 2}, "rss": {
        "rqtn": 0, "size": len(queues), "kind": 1, "kind_name": "ETH_RQ", "eth_rqs": queues,
        "hash_key": "6d" * 40, **hashed}}


def eth_sq(number: int, **more) -> dict:
    """An inspection result of a send queue of 8 WQEs."""
    return {"context": {"head": 12, "tail": 9, "shift": 3, "state": 1, "state_name": "RDY",
                        "syndrome": 0, "syndrome_name": "NONE", "cqn": 3}, **more}


def flow(number: int, value: dict, mask: dict, **fields) -> dict:
    nothing = {"dmac": "00:00:00:00:00:00", "src_ip": "0" * 32, "l4": 0, "dst_port": 0}
    return {"number": number, "type": 0, "type_name": "NORMAL", "priority": 0, "tag": 0,
            "flags": 0, "flags_names": "", "qpn": 2, "value": dict(nothing, **value),
            "mask": dict(nothing, **mask), **fields}


def eth_cqe(index: int, queue: int, wqe: int, **fields) -> dict:
    return {"index": index, "mark": "consumed", "opcode": 192, "opcode_name": "ETH_RECV",
            "status": 0, "status_name": "SUCCESS", "num": queue, "wqe_index": wqe, "num_wqe": 1,
            "byte_len": 60, "header_len": 0, "data_index": 0, "num_data": 0, "rss_hash": 7,
            "gso_segs": 0, "gso_size": 0,
            **fields}


class FakeAdapter(FakeQemu):
    """The parts of the adapter that tests need; meet() sets `stopped`."""

    def __init__(self, directory: Path, names=("qmp", "qmp1", "qmp2", "qmp3", "qmp4")):
        super().__init__(directory, names)
        self.breaks: list[dict] = []
        self.next_id = 1
        self.stopped: dict | None = None
        self.steps: tuple | None = None
        self.trail: list[dict] = []
        self.qps = {17: QPC, 18: dict(QPC, qpn=18, dest_qpn=17)}
        self.port = {"eth_rqn": 0xFFFFFFFF, "eth_qpn": 0xFFFFFFFF}
        self.eth_sqs: dict[int, dict] = {}
        self.eth_rqs: dict[int, dict] = {}
        self.rss_qps: dict[int, dict] = {}
        self.flows: dict[int, dict] = {}
        self.shapers: dict[int, dict] = {}
        self.eth_rings: dict[tuple, dict] = {}  # (object, number, ring): depth, entries, ...
        self.answers.update({
            "query-qmp-schema": SCHEMA,
            "qhca-query-names": lambda _a: self.look({"events": EVENTS}),
            "qhca-inspect": self.inspect, "qhca-ring": self.ring, "qhca-walk": self.walk,
            "qhca-tree": self.tree,
            "qhca-break-add": self.add, "qhca-break-list": lambda _a: self.breaks,
            "qhca-break-remove": self.remove, "qhca-step": self.step,
            "qhca-step-cancel": lambda _a: self.cancel(),
            "qhca-query-stop": lambda _a: self.look(self.stop_look(True)),
        })

    @staticmethod
    def look(look: dict) -> dict:
        return {"device": "/machine/peripheral/nic0/", "time": 123456789, "look": look}

    # ---- looks

    def inspect(self, a: dict) -> dict:
        kind = a["object"]
        if kind == "device":
            return self.look({"object": "device", "context": {"max_qp": 4096},
                              "objects": {"qp": len(self.qps), "cq": 1}, "clock": 99,
                              "port": self.port,
                              "counters": {"roce-tx-packets": 5, "roce-rx-packets": 0,
                                           "doorbells": 3}})
        if kind == "mcg" and "number" in a:
            raise Refuse("objects of this kind are only shown all at once")
        numbers = {"eth-sq": self.eth_sqs, "eth-rq": self.eth_rqs, "rss": self.rss_qps,
                   "flow": self.flows, "shaper": self.shapers,
                   "qp": self.qps, "novelty": {1: {"shine": 3}, 2: {"shine": 4}}}.get(kind, {})
        if "number" not in a:
            some = sorted(n for n in numbers if n >= a.get("from", 0))
            count = a.get("count", 64)
            name = "qpn" if kind == "qp" else "number"
            if kind in ("flow", "shaper"):
                return self.look({"object": kind, "more": len(some) > count,
                                  "objects": [numbers[n] for n in some[:count]]})
            return self.look({"object": kind, "more": len(some) > count,
                              "objects": [{name: n, "state": 3, "state_name": "RTS"}
                                          for n in some[:count]]})
        if a["number"] not in numbers:
            raise Refuse("no such object")
        if kind in ("eth-sq", "eth-rq", "rss"):
            return self.look({"object": kind, "number": a["number"], **numbers[a["number"]]})
        return self.look({"object": kind, "number": a["number"],
                          "context": numbers[a["number"]], "raw": "0102"})

    def ring(self, a: dict) -> dict:
        own = self.eth_rings.get((a["object"], a["number"], a.get("ring")))
        if own:
            first = a.get("index", own["producer"])
            every = [own["entry"](first + i) for i in range(a.get("count", 8))]
            return self.look({**a, "depth": own["depth"], "producer": own["producer"],
                              "entries": every})
        if a["object"] not in ("qp", "cq"):
            raise Refuse("the object has no such ring")
        if a["number"] not in self.qps:
            raise Refuse("no such object")
        first = a.get("index", 8)
        return self.look({
            "object": a["object"], "number": a["number"], "ring": a.get("ring", "sq"),
            "depth": 64, "stride": 64, "producer": 12, "next": 10, "consumer": 9,
            "buffer": BUFFER, "entries": [entry(first + i) for i in range(a.get("count", 8))]})

    def walk(self, a: dict) -> dict:
        if a["number"] not in self.qps and a["object"] == "qp":
            raise Refuse("no such object")
        slot = a.get("index", 0) % 64
        hop = {"level": 0, "table": 0x10000, "used": 1, "index": 0, "at": 0x10000,
               "entry": 0x11003, "valid": True, "kind": "table", "address": 0x11000}
        leaf = {"index": 1, "at": 0x11008, "entry": 0x22001, "valid": True, "kind": "page",
                "address": 0x22000}
        hops = [dict(hop, entries=[dict(hop, marked=True)]),
                dict(leaf, level=1, table=0x11000, used=16,
                     entries=[dict(leaf, index=0, address=0x21000), dict(leaf, marked=True)])]
        where = {"va": a["va"]} if "va" in a else {"ring": a.get("ring", "sq"), "slot": slot}
        return self.look({"object": a["object"], "number": a["number"], **where, "offset": slot << 6,
                          "buffer": BUFFER, "hops": hops, "address": 0x22000 + (slot << 6),
                          "contiguous": 4096, "bytes": "68656c6c6f"})

    def tree(self, a: dict) -> dict:
        page = {"index": 0, "at": 0x11000, "entry": 0x21001, "valid": True, "kind": "page",
                "address": 0x21000, "page": 0}
        pages = [page, dict(page, index=1, address=0x22000, page=1),
                 {"index": 2, "at": 0x11010, "entry": 0, "valid": False, "page": 2}]
        table = dict(page, kind="table", address=0x11000, entries=pages[: a.get("count", 64)])
        return self.look({"object": a["object"], "number": a["number"], "ring": "sq",
                          "buffer": BUFFER, "pages": 3, "page_size": 4096, "entries": [table],
                          "more": a.get("count", 64) < 3})

    # ---- breaks and steps

    def add(self, a: dict) -> dict:
        info = {"id": self.next_id, "hits": 0, "condition": a["condition"]}
        self.next_id += 1
        self.breaks.append(info)
        return info

    def remove(self, a: dict) -> dict:
        left = [b for b in self.breaks if b["id"] != a.get("id", b["id"])]
        if a.get("id") and len(left) == len(self.breaks):
            raise Refuse(f"There is no break {a['id']}")
        self.breaks = left
        return {}

    def cancel(self) -> dict:
        self.steps = None
        return {}

    def step(self, a: dict) -> dict:
        self.steps = (a.get("on", "wqe"), a.get("count", 1))
        if self.state != "running":
            self.run()
        return {}

    def run(self) -> dict:
        self.stopped = None
        return super().run()

    def stop_look(self, trail: bool) -> dict:
        look: dict = {"stopped": self.stopped is not None}
        if self.stopped:
            look.update(self.stopped)
        elif self.steps:
            look.update(stepping=self.steps[0], steps_left=self.steps[1])
        if trail:
            look["trail"] = self.trail
        return look

    def meet(self, on: str = "doorbell", **event) -> None:
        """The adapter hits a break, or ends its steps: it and the machine stop."""
        why = {"why": "step"} if self.steps else {"why": "break", "id": 1, "hits": 1}
        self.steps = None
        event = {"kind": on, "time": 5000, **event}
        if on == "doorbell":
            event.update(doorbell=0, doorbell_name="SQ")
        self.trail = [dict(event, time=4000), event]
        self.stopped = {**why, "on": on, "event": event}
        self.event("QHCA_STOP", {"stop": self.look(self.stop_look(False))})
        self.stop("debug")


def enum(name: str, values: list[str]) -> dict:
    return {"name": name, "meta-type": "enum", "values": values,
            "members": [{"name": v} for v in values]}


SCHEMA = [
    {"name": "qhca-inspect", "meta-type": "command", "arg-type": "1"},
    {"name": "1", "meta-type": "object", "members": [{"name": "object", "type": "2"}]},
    enum("2", KINDS),
    {"name": "qhca-ring", "meta-type": "command", "arg-type": "3"},
    {"name": "3", "meta-type": "object", "members": [{"name": "ring", "type": "4"}]},
    enum("4", ["sq", "rq", "cq"]),
    {"name": "qhca-step", "meta-type": "command", "arg-type": "5"},
    {"name": "5", "meta-type": "object", "members": [{"name": "on", "type": "6"}]},
    enum("6", [e["on"] for e in EVENTS]),
]


def make_lab(name: str, base: Path, nics=("qhca", "qhca")) -> dict[str, FakeAdapter]:
    """A lab as recorded by qhca_lab, below BASE (QHCA_RUN); its adapters."""
    from qhca_lab import paths, process

    directory = paths.lab_dir(name)
    logs = base / f"logs-{name}"
    me = process.identity(os.getpid())
    guests, adapters = {}, {}
    for number, nic in enumerate(nics, 1):
        letter = "abcdefghi"[number - 1]
        (logs / letter).mkdir(parents=True)
        adapters[letter] = FakeAdapter(directory / letter)
        guests[letter] = {"name": letter, "number": number, "nic": nic, "mac": "",
                          "ip": f"10.99.0.{number}", "ip6": f"fd99::{number}", "process": me}
    (directory / "lab.json").write_text(json.dumps(
        {"name": name, "logs": str(logs), "helpers": [], "options": {}, "guests": guests}))
    return adapters

# SPDX-License-Identifier: GPL-2.0-or-later
"""`scope draw`: the figures, from a model of an adapter that answers like a real one."""

import argparse
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import svg  # noqa: E402
from qhca_scope import draw  # noqa: E402
from qhca_scope.draw import model  # noqa: E402

NS = "{http://www.w3.org/2000/svg}"
FORMS = ["DIRECT", "LIST", "FLAT", "TREE1", "TREE2", "TREE3"]


class Adapter:
    """One QP's send queue of 64-byte WQEs over pages of 4 KiB at given addresses."""

    TABLE = 0x7F000000

    def __init__(self, form="TREE2", pages=None, head=2, taken=2, done=2, opcode="SEND",
                 wr_id=0x51):
        self.hops = int(form[4:]) if form.startswith("TREE") else int(form == "FLAT")
        self.form = "TREE" if form.startswith("TREE") else form
        self.pages = pages or [0x10000000 + 0x5000 * ((i * 7) % 64) for i in range(64)]
        if form == "DIRECT":
            self.pages = [self.pages[0] + 4096 * i for i in range(len(self.pages))]
        self.depth = len(self.pages) * 64
        self.pointers = {"producer": head, "next": taken, "consumer": done}
        self.opcode, self.wr_id = opcode, wr_id
        self.calls = 0
        self.guest = None

    def command(self, name, arguments):
        self.calls += 1
        return {"device": "/machine/peripheral/nic0", "time": 123456789,
                "look": getattr(self, name.replace("-", "_"))(**arguments)}

    def buffer(self):
        code = ["DIRECT", "LIST", "FLAT", "TREE"].index(self.form)
        table = self.pages[0] if self.form == "DIRECT" else self.TABLE
        count = len(self.pages) if self.form in ("LIST", "FLAT") else 0
        return {"form": code, "form_name": self.form, "len": 4096 * len(self.pages), "first": 0,
                "addr": table, "hops": self.hops, "entries": count,
                "page_shift": 12 if self.hops else 0,
                "table_shift": 12 if self.form == "TREE" else 0}

    def address(self, offset):
        return self.pages[offset >> 12] + (offset & 4095)

    def entry(self, level, table, index):
        """Entry INDEX of a table of LEVEL."""
        leaf = level == self.hops - 1 or self.form == "LIST"
        if not leaf:
            address = self.TABLE + 0x100000 * (level + 1) + 4096 * index
            return {"index": index, "at": table + 8 * index, "entry": address | 3, "valid": True,
                    "kind": "table", "address": address}
        address = self.pages[index] if index < len(self.pages) else None
        if self.form == "LIST":
            return {"index": index, "at": table + 16 * index, "valid": True, "address": address,
                    "length": 4096}
        if address is None:
            return {"index": index, "at": table + 8 * index, "entry": 0, "valid": False}
        return {"index": index, "at": table + 8 * index, "entry": address | 1, "valid": True,
                "kind": "page", "address": address}

    def qhca_walk(self, object, number, ring="", index=None, offset=None, entries=8, bytes=64):
        assert (object, number, ring) == ("qp", 17, "sq")
        if offset is None:
            offset = index % self.depth * 64
        hops, table = [], self.TABLE
        for level in range(1 if self.form == "LIST" else self.hops):
            at = (offset >> 12 >> 9 * (max(self.hops, 1) - 1 - level)) & 511
            used = len(self.pages) if level >= self.hops - 1 else 1
            begin = max(0, min(at - entries // 2, used - entries))
            hop = dict(self.entry(level, table, at), level=level, table=table, used=used)
            hop["entries"] = [
                dict(self.entry(level, table, i), **({"marked": True} if i == at else {}))
                for i in range(begin, min(used, begin + entries))
            ]
            table = hop.get("address")
            hops.append(hop)
        look = {"object": object, "number": number, "ring": ring, "slot": offset // 64,
                "offset": offset, "buffer": self.buffer(), "hops": hops}
        if hops and not hops[-1]["valid"]:
            return look | {"error": "the entry is not valid"}
        return look | {"address": self.address(offset), "contiguous": 4096, "bytes": "00" * 64}

    def qhca_ring(self, object, number, ring="", index=None, count=None):
        if index is None:
            index, count = max(0, self.pointers["producer"] - 8), 8
        entries = []
        for i in range(index, index + min(count, self.depth)):
            done, taken, head = (self.pointers[k] for k in ("consumer", "next", "producer"))
            mark = "free" if not done <= i < head else "in-flight" if i < taken else "posted"
            entries.append({
                "index": i, "slot": i % self.depth, "mark": mark, "raw": "01" * 64,
                "address": self.address(i % self.depth * 64), "opcode": 0,
                "opcode_name": self.opcode, "wr_id": self.wr_id + i, "flags_names": "SIGNALED",
                "num_sge": 1, "sges": [{"addr": 0x7F0000001000, "len": 375, "lkey": 0x1111}],
            })
        return {"object": object, "number": number, "ring": ring, "depth": self.depth,
                "stride": 64, "buffer": self.buffer(), "entries": entries, **self.pointers}

    def query_status(self):
        raise AssertionError("there is no guest to ask")


def drawn(adapter, *words):
    """{figure: parsed SVG} for the words of a command line."""
    parser = argparse.ArgumentParser()
    draw.add_arguments(parser)
    return {name: ET.fromstring(text) for name, text in
            draw.figures(adapter, parser.parse_args(words)).items()}


def texts(root):
    """The text that a reader sees, line by line, without tooltips and styles."""
    out = []
    for e in root.iter(NS + "text"):
        parts = [e.text or ""] + [(c.text or "") if c.tag == NS + "tspan" else "" for c in e]
        parts += [c.tail or "" for c in e]
        out.append("".join(parts))
    return out


def sizes(root):
    return float(root.get("width")), float(root.get("height"))


@pytest.mark.parametrize("form", FORMS)
def test_every_figure_of_every_form(form):
    """Well-formed, with a title, a description, no script, nothing from elsewhere."""
    adapter = Adapter(form)
    for name, root in drawn(adapter, "all", "qp", "17").items():
        assert root.tag == NS + "svg" and root.get("role") == "img"
        assert root.find(NS + "title").text and len(root.find(NS + "desc").text) > 20
        assert root.get("aria-labelledby") == "title desc"
        text = ET.tostring(root, encoding="unicode")
        assert "script" not in text and "href" not in text and "url(" not in text
        assert not re.search(r"\bon[a-z]+=", text)
        assert "QP 17" in " ".join(texts(root)), name
        assert "None" not in text and "nan" not in text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("index", [0, 63, 64, 1000, 4095, 5096])
def test_table_shows_the_way(form, index):
    """The picture shows the address of each hop, and the arithmetic."""
    adapter = Adapter(form)
    seen = texts(drawn(adapter, "table", "qp", "17", "--index", str(index))["table"])
    want = adapter.address(index % 4096 * 64)
    assert f"= {want:#x}" in seen
    look = adapter.qhca_walk("qp", 17, "sq", index=index)
    for hop in look["hops"]:
        assert any(f"at {hop['table']:#x}" in line for line in seen)
        assert any(line.startswith(f"{hop['address']:#x}") for line in seen)
    assert any(f"{index} mod 4096 = {index % 4096}" in line for line in seen)
    assert f"slot {index % 4096}" in seen
    assert "SEND" in seen and f"{0x51 + index:#x}" in seen


def test_a_table_that_is_broken_says_so():
    adapter = Adapter("FLAT")
    look = adapter.qhca_walk("qp", 17, "sq", index=70, entries=8)
    look["hops"][-1].update(valid=False)
    for entry in look["hops"][-1]["entries"]:
        entry.pop("address", None)
        entry.update(valid=False)
    look.pop("address")
    look["error"] = "page fault: the entry is not valid"
    who = model.find(lambda command, **a: adapter.command(command, a), "qp", 17)
    root = ET.fromstring(draw.table.draw(who, look))
    assert any("not valid" in t for t in texts(root))
    assert any(t.startswith("page fault") for t in texts(root))


@pytest.mark.parametrize("form", FORMS)
def test_va_dma_joins_each_page_to_its_address(form):
    adapter = Adapter(form, pages=[0x30000000, 0x10000000, 0x10001000, 0x20000000])
    root = drawn(adapter, "va-dma", "qp", "17", "--index", "70")["va-dma"]
    seen = texts(root)
    for n, address in enumerate(adapter.pages):
        assert f"+{n * 4096:#x}" in seen and f"{address:#x}" in seen
    assert seen.count("entry 70") == 2  # in both views
    pieces = 1 if form == "DIRECT" else 3
    assert any(f"in {pieces} piece" in t for t in seen)
    # adjacent pages have the same colour on both sides
    tips = {g.find(NS + "title").text: g.find(NS + "rect").get("class")
            for g in root.iter(NS + "g")}
    one, two = (tips[f"page {n} at DMA address {adapter.pages[n]:#x}"] for n in (1, 2))
    zero = tips[f"page 0 at DMA address {adapter.pages[0]:#x}"]
    assert one == two and (zero == one) == (form == "DIRECT")


@pytest.mark.parametrize("form", ["LIST", "FLAT", "TREE1"])
def test_big_counts_are_elided(form):
    """However large the buffer, the figure stays small, and shows what is left out."""
    adapter = Adapter(form, pages=[0x100000000 + 8192 * i for i in range(512)])
    for name, root in drawn(adapter, "all", "qp", "17", "--index", "20000").items():
        w, h = sizes(root)
        assert w == 960 and h < 1100, name
        # only the active part of a ring is queried
        assert name == "ring" or any(re.search(r"… \d+ more", t) for t in texts(root)), name
    small = len(ET.tostring(drawn(Adapter(form), "va-dma", "qp", "17")["va-dma"]))
    large = len(ET.tostring(drawn(adapter, "va-dma", "qp", "17")["va-dma"]))
    assert large < 1.5 * small


def test_a_table_of_more_than_one_look():
    """Pages beyond the first response are found, too."""
    pages = [0x100000000 + 8192 * i for i in range(3000)]
    adapter = Adapter("FLAT", pages=pages)
    adapter.address = lambda offset: pages[offset >> 12] + (offset & 4095)

    def entry(level, table, index):
        return {"index": index, "at": table + 8 * index, "entry": pages[index] | 1, "valid": True,
                "kind": "page", "address": pages[index]}

    adapter.entry = entry
    walk = adapter.qhca_walk

    def flat_walk(object, number, ring="", index=None, offset=None, entries=8, bytes=64):
        look = walk(object, number, ring, index=index, offset=offset, entries=1)
        at = look["offset"] >> 12
        begin = max(0, min(at - entries // 2, 3000 - entries))
        look["hops"] = [dict(entry(0, adapter.TABLE, at), level=0, used=3000, table=adapter.TABLE,
                             entries=[entry(0, adapter.TABLE, i)
                                      for i in range(begin, min(3000, begin + entries))])]
        return look | {"address": adapter.address(look["offset"])}

    adapter.qhca_walk = flat_walk
    who = model.find(lambda command, **a: adapter.command(command, a), "qp", 17)
    runs = model.memory(lambda command, **a: adapter.command(command, a), who)
    assert [r.address for r in runs] == pages
    assert runs[-1].offset + runs[-1].length == who.length


def test_ring_shows_marks_and_entries():
    adapter = Adapter(head=4130, taken=4110, done=4090)
    root = drawn(adapter, "ring", "qp", "17")["ring"]
    seen = texts(root)
    for text in ("producer 4130", "next 4110", "consumer 4090", "4096 slots", "40 in use",
                 "the next to be written", "20 in flight: fetched, not completed",
                 "20 posted: not fetched yet"):  # fmt: skip
        assert text in seen
    assert any(t.startswith(f"wr_id {0x51 + 4129:#x}") for t in seen)


def test_what_was_never_written_is_not_decoded():
    adapter = Adapter(head=0, taken=0, done=0)
    ring = adapter.qhca_ring

    def blank(*words, **more):
        look = ring(*words, **more)
        for entry in look["entries"]:
            entry.update(raw="00" * 64, wr_id=0)
        return look

    adapter.qhca_ring = blank
    drawing = drawn(adapter, "all", "qp", "17", "--index", "3")
    assert any("all zero" in t for t in texts(drawing["table"]))
    assert "never written" in texts(drawing["ring"])
    assert not any("SEND" in t for n in ("table", "ring") for t in texts(drawing[n]))


@pytest.mark.parametrize("head,done,text", [(0, 0, "empty"), (4096, 0, "full")])
def test_ring_empty_and_full_differ(head, done, text):
    root = drawn(Adapter(head=head, taken=done, done=done), "ring", "qp", "17")["ring"]
    assert text in texts(root)


def test_counters_wrap():
    """Counters are of 32 bits and wrap; the numbers of entries do not."""
    adapter = Adapter(head=3, taken=1, done=(1 << 32) - 4)
    adapter.address = lambda offset: 0x1000
    look = adapter.qhca_ring("qp", 17, "sq", index=0, count=8)
    numbers = draw.ring.Ring.of(look)
    assert numbers.count("in-flight") == 5 and numbers.count("posted") == 2


def test_what_a_guest_says_is_escaped():
    """Names and texts cannot become markup, nor break the document."""
    evil = '</text><script>alert("x")</script>&\x00\x1b]\u202e\ud800'
    adapter = Adapter(opcode=evil)
    for root in drawn(adapter, "all", "qp", "17").values():  # ET has parsed it: well-formed
        assert not list(root.iter(NS + "script"))
    seen = texts(drawn(adapter, "table", "qp", "17")["table"])
    assert any('</text><script>alert("x")</script>' in t for t in seen)
    assert not any(c in "".join(seen) for c in "\x00\x1b\u202e")


def test_the_same_look_gives_the_same_bytes():
    def once():
        parser = argparse.ArgumentParser()
        draw.add_arguments(parser)
        return draw.figures(Adapter("TREE3"), parser.parse_args(["all", "qp", "17"]))

    assert once() == once()


@pytest.mark.parametrize("width", [640, 960, 1600])
def test_text_stays_inside(width):
    """Nothing begins or ends outside of the paper, by a generous measure of text."""
    for form in FORMS:
        for name, root in drawn(Adapter(form, head=4130, taken=4110, done=4090), "all", "qp", "17",
                                "--width", str(width)).items():
            for element in root.iter(NS + "text"):
                x = float(element.get("x"))
                # the measure is for wide fonts; labels are of 11 px
                wide = len("".join(element.itertext())) * 5.5 if element.find(NS + "title") is None \
                    else 0
                anchor = element.get("text-anchor", "start")
                left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
                assert left >= 0 and left + wide <= width, (name, form, element.text)


@pytest.mark.parametrize("words,message", [
    (["table", "mr", "17", "--index", "1"], "use --offset or --va"),
    (["ring", "mr", "17"], "not a ring"),
    (["table", "qp", "17", "--width", "10"], "--width 10"),
])
def test_what_cannot_be_drawn_is_said(words, message):
    class Mr(Adapter):
        def qhca_walk(self, object, number, offset=0, **more):
            return {"buffer": self.buffer(), "hops": [], "offset": offset, "va": 0x7000,
                    "address": 0x1000}

    adapter = Mr("DIRECT") if words[1] == "mr" else Adapter()
    with pytest.raises(draw.DrawError, match=message):
        drawn(adapter, *words)


def test_all_wants_a_folder(tmp_path):
    parser = argparse.ArgumentParser()
    draw.add_arguments(parser)
    with pytest.raises(draw.DrawError, match="folder"):
        draw.run(parser.parse_args(["all", "qp", "17"]), Adapter())
    assert draw.run(parser.parse_args(["all", "qp", "17", "-o", str(tmp_path / "f")]), Adapter()) == 0
    assert sorted(p.name for p in (tmp_path / "f").iterdir()) == [
        "qp17-ring.svg", "qp17-sgl.svg", "qp17-table.svg", "qp17-va-dma.svg"]


def test_what_is_not_there_is_named():
    def refuse(command, **arguments):
        raise model.LabError("guest a: no such object")

    with pytest.raises(draw.DrawError, match="there is no MR 0x1111: `scope mr` lists all"):
        model.find(refuse, "mr", 0x1111)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    parser = argparse.ArgumentParser()
    draw.add_arguments(parser)
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file" / "x.svg", tmp_path):
        with pytest.raises(draw.DrawError, match=f"{output} cannot be written"):
            draw.run(parser.parse_args(["table", "qp", "17", "-o", str(output)]), Adapter())


# ------------------------------------------------------------- the driver's words

DEBUGFS = """\
qpn: 0x11
sq:
\tva: 0x7f6e520fd000
\tlength: 0x40000
\taccess: 0x1
\tsg_entries: 2
\tsg: 0x10000000 + 0x1000
\tsg: 0x10023000 + 0x3f000
\tform: tree
\taddr: 0x7f000000
rq:
\tva: 0x7f6e520f5000
\tsg_entries: 1
\tsg: 0x2169000 + 0x8000
\taddr: 0x262c000
"""


class Guest:
    name = "a"

    def __init__(self, out):
        self.out = out

    def run(self, command, timeout=0, check=True):
        assert "qps/17" in command
        return argparse.Namespace(rc=0, out=self.out)


@pytest.fixture
def told():
    """An adapter whose guest's driver can be asked."""
    adapter = Adapter()
    adapter.guest = Guest(DEBUGFS)
    command = adapter.command
    adapter.command = lambda name, arguments: (
        {"running": True} if name == "query-status" else command(name, arguments))
    return adapter


def test_virtual_addresses_come_from_the_driver(told):
    seen = texts(drawn(told, "va-dma", "qp", "17")["va-dma"])
    assert "0x7f6e520fd000" in seen and "0x7f6e520fe000" in seen
    assert any("guest a" in t for t in seen)


def test_scatter_list_is_the_drivers(told):
    seen = texts(drawn(told, "sgl", "qp", "17")["sgl"])
    assert "0x10023000" in seen and "+0x3f000" in seen
    assert any("63 pages merged" in t for t in seen)
    assert any("debugfs" in t for t in seen)


def test_a_guest_that_stands_still_is_not_asked(told):
    command = told.command
    told.command = lambda name, arguments: (
        {"running": False} if name == "query-status" else command(name, arguments))
    told.guest.run = None
    assert any("could not be asked" in t for t in texts(drawn(told, "sgl", "qp", "17")["sgl"]))


def test_another_adapters_ring_is_not_taken():
    """The driver's data is used only if it refers to the device's table."""
    other = DEBUGFS.replace("addr: 0x7f000000", "addr: 0x7f111000")
    who = model.Subject("qp", 17, "sq", Adapter().buffer())
    assert model.driver_section([other], who) is None
    assert model.driver_section([other, DEBUGFS], who)["va"] == 0x7F6E520FD000


@pytest.mark.parametrize("text", ["", "\x00\xff", "sq:\n\tva: 0xzz\n\tsg: 1 + \n" * 1000,
                                  "sq:\n\tsg: 0x" + "f" * 99 + " + 0x1\n"])
def test_strange_words_of_a_driver_do_no_harm(text):
    for section in model.parse_driver(text).values():
        assert section["sg"] == []


# -------------------------------------------------------------------- the canvas


@pytest.mark.parametrize("count,keep,limit", [(0, 0, 5), (1, 0, 5), (5, 4, 5), (4096, 17, 7),
                                              (4096, [1, 2000, 4095], 9), (100, [], 6)])
def test_elide_shows_each_item_once(count, keep, limit):
    shown = svg.elide(count, keep, limit)
    whole = [i for item in shown for i in ([item] if isinstance(item, int) else item)]
    assert whole == list(range(count))
    assert sum(isinstance(i, int) for i in shown) <= max(limit, 1) + 2
    assert all(len(r) > 1 for r in shown if isinstance(r, range))
    for k in [keep] if isinstance(keep, int) else keep:
        assert k >= count or k in shown


def test_clip_and_wrap_keep_to_their_room():
    for text in ("", "x", "word " * 40, "w" * 300):
        assert svg.width_of(svg.clip(text, 100, 12), 12) <= 100
        assert all(svg.width_of(line, 11) <= 100 for line in svg.wrap(text, 100, 12))

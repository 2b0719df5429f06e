# SPDX-License-Identifier: GPL-2.0-or-later
"""
`scope draw` on real queue pairs: every form of a buffer table. The addresses in
the figures are those of the application's own /proc/PID/pagemap.
"""

import argparse
import re
import sys
import xml.etree.ElementTree as ET

import pytest
from labs import TOP
from test_queue_buffers import PAGE, Qbuf, layout, make_room

sys.path.insert(0, str(TOP / "lab"))

from qhca_scope import draw  # noqa: E402

NS = "{http://www.w3.org/2000/svg}"

# (name, layout, options of qbuf, environment)
FORMS = [
    ("DIRECT", "direct", "--depth 64", {"QHCA_HUGE_PAGES": "1"}),
    ("LIST", "list", "--depth 1024 --scatter", {}),
    ("FLAT", "flat page_shift=12", "--depth 1024 --scatter", {}),
    ("FLAT 64K", "flat page_shift=16", "--depth 32768", {"QHCA_HUGE_PAGES": "1"}),
    ("TREE 1", "tree hops=1 page_shift=12 table_shift=12", "--depth 4096 --scatter", {}),
    ("TREE 2", "tree hops=2 page_shift=12 table_shift=12", "--depth 4096 --scatter", {}),
    ("TREE 3", "tree hops=3 page_shift=12 table_shift=12", "--depth 4096 --scatter", {}),
]


class Connection:
    """What `scope draw` needs from a guest."""

    def __init__(self, lab, guest):
        self.lab, self.guest = lab, guest

    def command(self, name, arguments):
        with self.guest.qmp() as qmp:
            return qmp.command(name, arguments)


def figures(connection, *words):
    parser = argparse.ArgumentParser()
    draw.add_arguments(parser)
    return {name: ET.fromstring(text) for name, text in
            draw.figures(connection, parser.parse_args([str(w) for w in words])).items()}


def texts(root):
    return ["".join(t for e in element.iter() if e.tag != NS + "title"
                    for t in ([e.text or ""] if e is element or e.tag == NS + "tspan" else []))
            or "".join(c.tail or "" for c in element)
            for element in root.iter(NS + "text")]


def pages_shown(root):
    """{page: DMA address} of a va-dma figure, by the tips of its right side."""
    tips = (g.findtext(NS + "title") or "" for g in root.iter(NS + "g"))
    found = (re.fullmatch(r"page (\d+) at DMA address (0x[0-9a-f]+)", t) for t in tips)
    return {int(m.group(1)): int(m.group(2), 0) for m in found if m}


OTHERS = pytest.mark.long("one form is in the gate; tests/lab/test_draw has all")


@pytest.mark.parametrize("form,text,options,env", [
    pytest.param(*f, id=f[0], marks=[] if f[0] == "TREE 2" else [OTHERS])
    for f in FORMS])
def test_figures_of_each_form(pair, progs, tmp_path, form, text, options, env):
    if env:
        make_room(pair.a)
    with layout(pair.a, text):
        q = Qbuf(pair, progs, f"{options} --nocap --messages 20", env=env)
    try:
        first = q.first
        index = first["depth"] * 3 // 4 + 7
        out = figures(Connection(pair, pair.a), "all", "qp", first["qpn"], "sq", "--index", index)
        # the two views: virtual addresses and page frames of the application
        shown = pages_shown(out["va-dma"])
        assert shown == {n: first["pfns"][n] * PAGE for n in shown}
        assert len(shown) >= min(len(first["pfns"]), 10)
        seen = texts(out["va-dma"])
        assert all(f"{first['sq'] + n * PAGE:#x}" in seen for n in shown)
        # the path to one WQE ends at its bytes
        offset = index * first["stride"]
        address = first["pfns"][offset // PAGE] * PAGE + offset % PAGE
        seen = texts(out["table"])
        assert f"= {address:#x}" in seen and form.split()[0] in seen
        # the scatter list is the kernel's
        seen = texts(out["sgl"])
        assert f"{first['pfns'][0] * PAGE:#x}" in seen
        assert any("debugfs" in t for t in seen)
        # the two WRs by which the program found its ring are done
        seen = texts(out["ring"])
        assert "producer 2" in seen and "consumer 2" in seen and "empty" in seen
    finally:
        assert q.finish()["moved"] == 20


def test_memory_region(pair, progs):
    """An MR is drawn by its key; its virtual addresses are the device's own."""
    q = Qbuf(pair, progs, "--depth 64 --nocap --messages 2000000")  # longer than one query
    connection = Connection(pair, pair.a)
    q.guest.start(f"echo go > {q.fifo}")
    try:
        keys = []
        while not keys:
            look = connection.command("qhca-inspect", {"object": "mr"})["look"]
            keys = [m["key"] for m in look["objects"] if m["len"] == 8192]
            assert q.job.running, "the program ended before its MRs were seen"
        out = figures(connection, "all", "mr", keys[0])
        assert set(out) == {"va-dma", "sgl", "table"}
        iova = next(m["iova"] for m in look["objects"] if m["key"] == keys[0])
        assert f"{iova:#x}" in texts(out["va-dma"])
        assert q.job.running
    finally:
        q.job.kill()
        q.guest.wait_for("! pgrep qbuf")

# SPDX-License-Identifier: GPL-2.0-or-later
"""Man pages list every existing command and option, and no others; the provider's lists its
environment variables, its interfaces for applications, and the parts of libibverbs it supports."""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import cli as lab_cli  # noqa: E402
from qhca_scope import cli as scope_cli  # noqa: E402

MAN = TOP / "lab" / "man"
PROVIDER = TOP / "rdma-core-provider" / "qhca"
CONTRACT = TOP / "kernel-driver/include/uapi/rdma/qhca-hw.h"
LIBQHCA = PROVIDER / "man" / "libqhca.7"
PAGES = [*sorted(MAN.glob("*.1")), LIBQHCA]


def words(path):
    """Text of a page, without its font changes."""
    text = path.read_text().replace("\\-", "-")
    return re.sub(r"\\f[A-Z]", "", text)


def commands(parser):
    (sub,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {n: p for n, p in sub.choices.items() if not n.startswith("_")}


def options(parser):
    """Long options of PARSER itself; of several names for the same the first one."""
    found = ([o for o in a.option_strings if o.startswith("--")] for a in parser._actions)
    return {names[0] for names in found if names} - {"--help"}


def entries(text):
    """{command: text} of a page's entries; commands may share one."""
    found = {}
    for entry in re.split(r"^\.TP\n|^\.S[HS] .*\n", text, flags=re.MULTILINE):
        tag = re.sub(r"^\.\w+ |\"", "", entry.split("\n")[0])
        names = re.match(r"[a-z-]+( *, *[a-z-]+)*", tag)
        found.update(dict.fromkeys(re.split(" *, *", names[0]), entry) if names else {})
    return found


def test_lab():
    text = words(MAN / "qhca-lab.1")
    known = {"--help"}
    for name, parser in commands(lab_cli.parser()).items():
        assert re.search(rf"\b{name}\b", text), name
        known |= options(parser)
        if name == "fault":
            assert all(re.search(rf"fault {what}\b", text) for what in commands(parser))
        for option in options(parser) - {"--name", "--output"}:
            assert option in text, f"{name} {option}"
    assert not set(re.findall(r"--[a-z-]+", text)) - known


def test_scope():
    text = words(MAN / "qhca-scope.1")
    parser = scope_cli.parser()[0]
    common, described = options(parser), entries(text)
    known = set(common)
    assert all(option in text for option in common)
    for name, command in commands(parser).items():
        if name == "cont":
            continue
        assert name in described, name
        known |= options(command)
        for option in options(command) - common:
            assert re.search(rf"{option}(?![\w-])", described[name]), f"{name} {option}"
    assert not set(re.findall(r"--[a-z-]+", text)) - known


# Operations of the provider, and what libqhca(7) calls them. Without a word of it: those that
# every provider has, and those that only undo, ask or belong to another one.
OPERATIONS = {
    "create_qp_ex": "extended queue pairs", "create_cq_ex": "ibv_create_cq_ex",
    "alloc_td": "thread domains", "alloc_parent_domain": "parent domains",
    "open_xrcd": "XRC domains", "create_srq": "shared receive queues",
    "reg_dmabuf_mr": "dma-buf", "rereg_mr": "ibv_rereg_mr", "advise_mr": "ibv_advise_mr",
    "alloc_mw": "memory windows", "resize_cq": "resizing of CQs", "alloc_dm": "ibv_alloc_dm",
    "import_pd": "ibv_import_device", "post_srq_ops": "ibv_post_srq_ops",
    "create_wq": "work queues", "create_rwq_ind_table": "indirection tables",
    "create_flow": "flow steering", "attach_mcast": "Multicast groups",
    "modify_cq": "ibv_modify_cq", "query_rt_values": "ibv_query_rt_values_ex",
}
WITHOUT = """
    alloc_pd dealloc_pd reg_mr dereg_mr create_cq destroy_cq poll_cq req_notify_cq create_qp
    modify_qp query_qp destroy_qp post_send post_recv create_ah destroy_ah query_device_ex
    query_port free_context
    create_srq_ex modify_srq query_srq destroy_srq post_srq_recv get_srq_num close_xrcd open_qp
    dealloc_td bind_mw dealloc_mw free_dm reg_dm_mr import_mr import_dm unimport_pd unimport_mr
    unimport_dm modify_wq destroy_wq destroy_rwq_ind_table destroy_flow detach_mcast
""".split()


def test_provider():
    page = words(LIBQHCA)
    text = re.sub(r"\s+", " ", re.sub(r"^\.[A-Z]+ ", "", page, flags=re.MULTILINE))
    code = {path.name: path.read_text() for path in sorted(PROVIDER.glob("*.[ch]"))}
    vendor, device = re.findall(r"QHCA_PCI_(?:VENDOR|DEVICE)_ID\s+0x(\w+)", CONTRACT.read_text())
    assert f"PCI ID {vendor}:{device}." in text

    operations = re.search(r"qhca_context_ops = \{(.*?)\n\};", code["qhca.c"], re.DOTALL)[1]
    operations = set(re.findall(r"^\t\.(\w+) =", operations, re.MULTILINE))
    assert operations == set(OPERATIONS) | set(WITHOUT)
    assert not [name for name, word in OPERATIONS.items() if word not in text]

    taken = {name for one in code.values()
             for name in re.findall(r'qhca_env_is_set\("(\w+)"\)', one)}
    described = page[page.index(".SH ENVIRONMENT"):page.index(".SH FILES")]
    assert set(re.findall(r"^\.B (\w+)$", described, re.MULTILINE)) == taken

    kinds = re.search(r"enum qhca_resource \{(.*?)\}", "".join(code.values()), re.DOTALL)[1]
    kinds = re.findall(r"QHCA_RES_(\w+)", kinds)
    numbers = re.search(r"resource_type (1 .*?)\. ", text)[1]
    assert re.findall(r"\d", numbers) == [str(n + 1) for n in range(len(kinds))]
    assert kinds == ["SQ", "RQ", "CQ", "SRQ", "SRQ_INDEX", "SRQ_OPS"], "and so is the page's list"


@pytest.mark.skipif(not shutil.which("man"), reason="no man on this host")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_it_renders(page):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", str(page)],
                          capture_output=True, text=True, env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0 and not done.stderr, done.stderr

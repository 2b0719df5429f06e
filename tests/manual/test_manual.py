# SPDX-License-Identifier: GPL-2.0-or-later
"""
docs/hardware.md against the contract header, both ways: every constant, every
structure and every field, with its number as the C compiler sees it.
"""

import re
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import contract  # noqa: E402
import manual  # noqa: E402

TEXT = manual.MANUAL.read_text()
HEADER = contract.HEADER.read_text()


def test_manual_and_header_agree():
    assert manual.compare(contract.CONST, contract.STRUCTS, TEXT) == []


def test_nothing_was_overlooked():
    """The parsers themselves: an empty result would compare equal, too."""
    parsed = manual.parse(TEXT)
    assert len(parsed.constants) == len(contract.CONST) > 300
    assert len(parsed.structs) == len(contract.STRUCTS) > 20
    # every #define with a value and every structure that the text has
    defines = re.findall(r"^#define (QHCA_\w+)[ \t]+\S", HEADER, re.M)
    assert len(defines) == len(contract.CONST)
    structs = re.findall(r"^struct (qhca_\w+) \{", HEADER, re.M)
    assert sorted(structs) == sorted(contract.STRUCTS)


def test_fields_fill_their_structures():
    """No gap, no overlap: so no field can be missing on both sides."""
    for name, (size, fields) in manual.parse(TEXT).structs.items():
        end = 0
        for field, (offset, length) in fields.items():
            assert offset == end, f"struct {name}, {field}"
            end = offset + length
        assert end == size, f"struct {name}"


def test_registers():
    """Width and access are in the header's comments."""
    comments = dict(
        (name, (bits, access))
        for name, access, bits in re.findall(
            r"^#define (QHCA_REG_\w+)\s+\S+\s+/\* (RO|RW|WO) (32|64):", HEADER, re.M
        )
    )
    registers = {
        name: tuple(cells[:2])
        for name, cells in manual.parse(TEXT).registers.items()
        if name.startswith("QHCA_REG_")
    }
    assert registers == comments
    assert len(registers) == 15


def test_reset_values_of_identity():
    cells = manual.parse(TEXT).registers
    c = contract.CONST
    assert manual.number(cells["QHCA_REG_ID"][2]) == c["QHCA_ID_MAGIC"]
    version = c["QHCA_VERSION_MAJOR"] << 16 | c["QHCA_VERSION_MINOR"]
    assert manual.number(cells["QHCA_REG_VERSION"][2]) == version
    assert manual.number(cells["QHCA_REG_DB_PAGES"][2]) == c["QHCA_BAR_DB_SIZE"] >> 12


# ---- the worked examples of section 6.2, computed anew ----


def tree(off, first, hops, page_shift, table_shift):
    """Indices from the root on, and the offset in the page."""
    pos = off + first
    page, bits = pos >> page_shift, table_shift - 3
    index = [(page >> (bits * (hops - 1 - i))) & ((1 << bits) - 1) for i in range(hops)]
    return index, pos & ((1 << page_shift) - 1)


def example(n):
    return re.search(rf"\*\*Example {n}:.*?(?=\*\*Example|\n## )", TEXT, re.S)[0]


def test_example_flat():
    text = example(1)
    pages = [int(a, 16) for a in re.findall(r"\| \d+ \| 0x\w+ \| (0x\w+) \|", text)]
    entries = [int(a, 16) for a in re.findall(r"\| \d+ \| (0x\w+) \| 0x\w+ \|", text)]
    assert entries == [p | contract.CONST["QHCA_BTE_VALID"] for p in pages]
    off = 2500 * 64
    assert f"Address = 0x100020000 + 0x7100 = {pages[off >> 16] + (off & 0xffff):#x}" in text


def test_example_two_hops():
    text = example(2)
    (root, second), rest = tree(20001 * 128, 0, 2, 12, 12)
    assert f"Root index = 625 >> 9 = {root}:" in text
    assert f"Second index = 625 & 511 = {second}:" in text
    assert f"Address = page + {rest:#05x}" in text
    assert (32768 << 7) >> 12 == 1024 and "1024 pages" in text


def test_example_three_hops():
    text = example(3)
    (a, b, c), rest = tree(0x240000000, 0x234, 3, 12, 12)
    assert f"0x240000 >> 18 = {a}, (0x240000 >> 9) & 511 = {b}, 0x240000 & 511 = {c}" in text
    assert f"page + {rest:#x}" in text
    (a, b), _ = tree(0x240000000, 0x234, 2, 21, 12)
    assert f"indices 0x1200 >> 9 = {a} and {b}" in text
    assert 16 << 30 >> 21 == 8192 and "8192 pages" in text


def test_example_list():
    text = example(4)
    off = 10000
    for addr, length in re.findall(r"\((0x\w+), (\d+)\)", text):
        if off < int(length):
            break
        off -= int(length)
    assert f"Address = {addr} + {off} = {int(addr, 16) + off:#x}" in text


# ---- the test can fail: copies with one change each ----


def problems(tmp_path, header=HEADER, text=TEXT):
    copy = tmp_path / "qhca-hw.h"
    copy.write_text(header)
    return manual.compare(*contract.load(copy, contract.UAPI), text)


def changed(text, old, new):
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    "old, new, expect",
    [
        ("#define QHCA_CMD_CREATE_CQ\t\t0x20", "#define QHCA_CMD_CREATE_CQ\t\t0x24",
         "constant QHCA_CMD_CREATE_CQ: header 36, manual 32"),
        ("#define QHCA_ARM_NONE", "#define QHCA_ARM_NEW 7\n#define QHCA_ARM_NONE",
         "constant QHCA_ARM_NEW is missing in the manual"),
        ("#define QHCA_ARM_SOLICITED\t\t2\n", "",
         "constant QHCA_ARM_SOLICITED is not in the header"),
        ("__le32\tsrc_qpn;", "__le32\tsrc_qp;",
         "struct qhca_cqe field src_qpn is not in the header"),
        ("__le16\tpkey_index;\t/* 0x22", "__u8\tpkey_index;\t/* 0x22",
         "struct qhca_cqe field pkey_index: header (34, 1), manual (34, 2)"),
        ("struct qhca_rq_wqe {", "struct qhca_rq_wqe {\n\t__le64\tnew;",
         "structure qhca_rq_wqe: header 24, manual 16"),
        ("struct qhca_mac {", "struct qhca_new {\n\t__le64\tx;\n};\n\nstruct qhca_mac {",
         "structure qhca_new is missing in the manual"),
    ],
)
def test_drift_of_the_header_is_found(tmp_path, old, new, expect):
    assert expect in problems(tmp_path, header=changed(HEADER, old, new))


@pytest.mark.parametrize(
    "old, new, expect",
    [
        ("| `QHCA_ST_BUSY` | 6 |", "| `QHCA_ST_BUSY` | 5 |",
         "constant QHCA_ST_BUSY: header 6, manual 5"),
        ("| 0x0018 | `QHCA_REG_DB_SHIFT`", "| 0x001c | `QHCA_REG_DB_SHIFT`",
         "constant QHCA_REG_DB_SHIFT: header 24, manual 28"),
        ("| 0x008 | `QHCA_DB_CQ_ARM`", "| 0x010 | `QHCA_DB_CQ_ARM`",
         "constant QHCA_DB_CQ_ARM: header 8, manual 16"),
        ("| 0x0c | 4 | `wqe_index`", "| 0x0c | 2 | `wqe_index`",
         "struct qhca_cqe field wqe_index: header (12, 4), manual (12, 2)"),
        ("`struct qhca_mpt`, 128 bytes", "`struct qhca_mpt`, 136 bytes",
         "structure qhca_mpt: header 128, manual 136"),
        ("| `QHCA_QPT_UD` |", "| `QHCA_QPT_XX` |",
         "constant QHCA_QPT_UD is missing in the manual"),
        ("| `QHCA_QPT_UD` | 2 |", "| `QHCA_QPT_UD` | two |",
         "constant QHCA_QPT_UD is missing in the manual"),
        ("## 19 Life", "`QHCA_SYN_NO_SUCH`\n\n## 19 Life",
         "the text names QHCA_SYN_NO_SUCH, which is not in the header"),
    ],
)
def test_drift_of_the_manual_is_found(tmp_path, old, new, expect):
    assert expect in problems(tmp_path, text=changed(TEXT, old, new))


def test_a_faithful_copy_has_no_problems(tmp_path):
    assert problems(tmp_path) == []

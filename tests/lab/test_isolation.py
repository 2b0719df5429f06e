# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/reference/isolation.md: each row has a check and a test, and they exist."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TEXT = (TOP / "docs/reference/isolation.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT.splitlines() if line.startswith("| ") and "Shown by" not in line]
FOLDERS = ("qemu-hw", "kernel-driver", "rdma-core-provider/qhca")


def defined(test: str, text: str) -> bool:
    """Is there a function of this name, of Python or of C?"""
    return bool(re.search(rf"^def {test}\(|^static void {test}\(", text, re.M))


def test_rows_are_well_formed():
    assert len(ROWS) > 25
    for row in ROWS:
        assert len(row) == 4 and all(row), row


def test_tests_exist():
    """And each row has one."""
    for attempt, _, _, shown in ROWS:
        named = re.findall(r"`([\w-]+\.(?:py|c))::(\w+)`", shown)
        assert named, f"{attempt}: no test"
        for file, test in named:
            found = list((TOP / "tests").glob(f"*/{file}"))
            assert any(defined(test, f.read_text()) for f in found), f"{attempt}: {file}::{test}"


def test_places_exist():
    """Files that contain a check, and the functions in brackets after them."""
    for attempt, _, where, _ in ROWS:
        for path, function in re.findall(r"`([\w./]+)`(?: \(`(\w+)`\))?", where):
            found = [TOP / folder / path for folder in FOLDERS if (TOP / folder / path).exists()]
            assert found, f"{attempt}: {path}"
            assert not function or f"{function}(" in found[0].read_text(), f"{attempt}: {function}"

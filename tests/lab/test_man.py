# SPDX-License-Identifier: GPL-2.0-or-later
"""Man pages name every command, and qhca-lab's every option of it."""

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


def words(name):
    """Text of a page, without its font changes."""
    text = (MAN / f"{name}.1").read_text().replace("\\-", "-")
    return re.sub(r"\\f[A-Z]", "", text)


def commands(parser):
    (sub,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {n: p for n, p in sub.choices.items() if not n.startswith("_")}


def test_lab():
    text = words("qhca-lab")
    for name, parser in commands(lab_cli.parser()).items():
        assert re.search(rf"\b{name}\b", text), name
        if name == "fault":
            assert all(re.search(rf"fault {what}\b", text) for what in commands(parser))
        for action in parser._actions:
            for option in action.option_strings:
                if option.startswith("--") and option not in ("--help", "--name", "--output"):
                    assert option in text, f"{name} {option}"


def test_scope():
    text = words("qhca-scope")
    for name in set(commands(scope_cli.parser()[0])) - {"cont"}:
        assert re.search(rf"\b{name}\b", text), name


@pytest.mark.skipif(not shutil.which("man"), reason="no man on this host")
@pytest.mark.parametrize("page", sorted(MAN.glob("*.1")), ids=lambda p: p.name)
def test_it_renders(page):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", str(page)],
                          capture_output=True, text=True, env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0 and not done.stderr, done.stderr

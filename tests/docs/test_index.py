# SPDX-License-Identifier: GPL-2.0-or-later
"""Indexes: each one lists everything, in plain words."""

import re
import subprocess

import pytest
from documents import TOP, documents

TRACKED = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP,
                         capture_output=True, text=True, check=True).stdout.splitlines()
# Words that readers stumble over, and what to write.
RIDDLES = {
    r"\bstands?\b|\bstood\b": "is stopped, is in, is",
    r"many-th\b": "ordinal, every Nth",
    r"\bof one maker\b|\bone maker's\b": "vendor-specific",
    r"\b[Ww]ho only\b": "a subject and a verb",
}


def test_readme_is_short():
    assert len((TOP / "README.md").read_text().splitlines()) <= 80


def test_documents_are_in_the_index():
    index = (TOP / "docs" / "README.md").read_text()
    missing = [path for path in (TOP / "docs").rglob("*.md")
               if f"]({path.relative_to(TOP / 'docs')})" not in index and path.name != "README.md"]
    assert not missing


def test_titles_are_file_names():
    """docs/FOLDER/some-words.md begins with "# Some words"."""
    for folder in ("tutorials", "how-to", "reference", "explanation"):
        for path in (TOP / "docs" / folder).glob("*.md"):
            title = re.search(r"^# (.*)$", path.read_text(), re.MULTILINE)[1]
            assert re.sub(r"[^a-z]+", "-", title.lower()).strip("-") == path.stem


def test_lab_is_described():
    """lab/README.md names each command, folder, module and package."""
    text = (TOP / "lab" / "README.md").read_text()
    names = set()
    for file in TRACKED:
        parts = file.split("/")
        if parts[0] == "lab":
            names.add(parts[1] + "/" * (len(parts) > 2))
            if parts[1].startswith("qhca_"):
                names.add(parts[2] + "/" * (len(parts) > 3))
    missing = {n for n in names if f"`{n}`" not in text} - {"__init__.py", "README.md"}
    missing -= {n for n in missing if f"`{n} " in text}
    assert not missing


def test_suites_are_described():
    text = (TOP / "tests" / "README.md").read_text()
    folders = {f.split("/")[1] for f in TRACKED if f.startswith("tests/") and f.count("/") > 1}
    assert not {n for n in folders if f"`{n}/`" not in text}


@pytest.mark.parametrize("path", documents(), ids=lambda p: str(p.relative_to(TOP)))
def test_plain_words(path):
    text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
    for riddle, better in RIDDLES.items():
        found = re.search(f".*({riddle}).*", text)
        assert not found, f"{found[0].strip()!r}: write {better}"

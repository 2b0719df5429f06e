# SPDX-License-Identifier: GPL-2.0-or-later
"""Indexes list everything; documents and sources are in plain words."""

import io
import re
import subprocess
import tokenize

import pytest
from documents import TOP, documents

TRACKED = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP,
                         capture_output=True, text=True, check=True).stdout.splitlines()
# Words that readers stumble over, and what to write.
RIDDLES = {
    r"\b[Ss]tands?\b|\bstood\b": "is stopped, is in, is",
    r"many-th\b": "ordinal, every Nth",
    r"\bof one maker\b|\bone maker's\b": "vendor-specific",
    r"\b[Ww]ho only\b": "a subject and a verb",
    r"\b[Ss]o many\b": "this many, the number",
    r"\b[Ff]or ever\b": "permanently, without a limit",
    r"\b[Nn]obody\b": "no program, no guest; the passive",
    r"\b[Ss]omebody\b": "a program, a user, another guest",
    r"\b[Ww]hoever\b": "the program, the reader",
    r"\bnone that\b": "not one that",
    r"\b[Rr]eckon": "compute",
}
ANY_RIDDLE = re.compile("|".join(RIDDLES))
# Programs and files whose comments and messages are checked, too. The test has the words itself.
SOURCES = [f for f in TRACKED if f != "tests/docs/test_index.py" and "/corpus/" not in f and
           re.search(r"\.(c|h|py|sh|toml|1|js)$|(^|/)[^./]+$", f)]
# Of C: comments and strings.
C_TEXT = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'""", re.DOTALL)


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
    assert not riddles(text)


def test_plain_words_in_sources():
    """Comments and messages: names and strings of one word are not text."""
    found = []
    for file in SOURCES:
        try:
            text = (TOP / file).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        found += [f"{file}: {riddle}" for riddle in riddles("\n".join(texts(file, text)))]
    assert not found, "\n".join(found)


def riddles(text):
    """The lines of TEXT with a riddle, and what to write."""
    lines = [line for line in text.splitlines() if ANY_RIDDLE.search(line)]
    return [f"{line.strip()!r}: write {better}" for line in lines
            for riddle, better in RIDDLES.items() if re.search(riddle, line)]


def texts(file, text):
    """What people read of FILE: comments, and strings of more than one word."""
    if file.endswith((".c", ".h", ".js")):
        parts = C_TEXT.findall(text)
    elif file.endswith(".py") or text.startswith("#!/usr/bin/python3"):
        parts = [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline)
                 if token.type in (tokenize.COMMENT, tokenize.STRING)]
    elif file.endswith((".toml", ".1")):
        parts = text.splitlines()
    else:
        parts = re.findall(r"(?:^|\s)#.*", text)
    return [part for part in parts if re.search(r"\s", part.strip("\"' "))]

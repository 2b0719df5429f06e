# SPDX-License-Identifier: GPL-2.0-or-later
"""Each file states its license."""

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LICENSE = r"(?:[\w.-]+|\([\w.-]+ WITH [\w.-]+\))"
LINE = re.compile(
    rf'SPDX-License-Identifier: (\(?)({LICENSE}(?: OR {LICENSE})?)(\)?)(?=\s|"|$)')
# Files without the line, and why.
WITHOUT = {
    "LICENSES/*.txt": "the licenses themselves, as they are published",
    "*/MAINTAINERS": "an entry that is put into a file of QEMU or Linux",
    "qemu-hw/patches/*.patch": "mails, whose text is to become that of a commit",
    "tests/*/corpus/*": "inputs of fuzzers: every byte is one",
    "tests/lab/recording/raw/*": "a recording, as device and driver write it",
}


def texts():
    """{file: text} of those in git that are text."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True,
                           check=True).stdout.split("\0")
    found = {}
    for name in filter(None, names):
        path = TOP / name
        data = b"" if path.is_symlink() or not path.exists() else path.read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        if text and "\0" not in text:
            found[name] = text
    return found


def test_each_file_has_a_license():
    """In one of its first lines, and one that LICENSES/README.md lists."""
    listed = set(re.findall(r"^\| `([^`]+)` \|", (TOP / "LICENSES/README.md").read_text(), re.M))
    used, without, wrong = set(), set(), []
    for name, text in texts().items():
        reasons = {pattern for pattern in WITHOUT if fnmatch(name, pattern)}
        without |= reasons
        found = LINE.search("\n".join(text.split("\n", 3)[:3]))
        if found:
            used.add(found[2])
        if bool(found) == bool(reasons) or found and found[2] not in listed:
            wrong.append(name)
    assert not wrong, "no license, one that is not listed, or one in spite of WITHOUT"
    assert used == listed, "LICENSES/README.md lists what no file has"
    assert without == set(WITHOUT), "a pattern that no file has"

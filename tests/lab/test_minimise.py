# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/minimise: which inputs of a fuzz target remain, with a fake target."""

import hashlib
import subprocess
from pathlib import Path

import pytest

MINIMISE = Path(__file__).resolve().parents[1] / "minimise"
# Merges as libFuzzer does: lists inputs and what each reached. An input consists of the numbers
# of its features; "crash" has none, since it ends the target.
TARGET = """#!/usr/bin/python3
import sys
from pathlib import Path

control = next(a.split("=")[1] for a in sys.argv if a.startswith("-merge_control_file="))
folders = [Path(a) for a in sys.argv[1:] if not a.startswith("-")]
files = [f for folder in folders for f in sorted(folder.iterdir()) if f.stat().st_size]
lines = [len(files), 0, *files]
for number, file in enumerate(files):
    text = file.read_text().strip(".")
    lines.append(f"STARTED {number} {file.stat().st_size}")
    if text != "crash":
        lines += [f"FT {number} {text}", f"COV {number}"]
Path(control).write_text("".join(f"{line}\\n" for line in lines))
"""


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    return tmp_path / "corpus"


@pytest.fixture
def minimise(tmp_path, corpus):
    """What remains of inputs in the corpus, {name: text}, and of texts that were found."""
    target = tmp_path / "fuzz_it"
    target.write_text(TARGET)
    target.chmod(0o755)

    def run(old, found):
        (tmp_path / "found").mkdir(exist_ok=True)
        for name, text in old.items():
            (corpus / name).write_text(text)
        for number, text in enumerate(found):
            (tmp_path / "found" / f"{number}").write_text(text)
        done = subprocess.run([MINIMISE, target, tmp_path / "found", corpus, "-max_len=4096"],
                              capture_output=True, text=True)
        return done, {file.name: file.read_text() for file in corpus.iterdir()}
    return run


def sha1(text):
    return hashlib.sha1(text.encode()).hexdigest()


def test_the_fewest_and_smallest_that_reach_all(minimise):
    done, left = minimise({}, ["8", "16", "8 16 24.", "8 16 24", "32"])
    assert left == {sha1(text): text for text in ("8 16 24", "32")}
    assert done.stdout == ("fuzz_it: before 0 inputs, 0 bytes, 0 edges, 0 features; "
                           "with what was found 5 inputs, 20 bytes, 4 edges, 4 features; "
                           "after 2 inputs, 9 bytes, 4 edges, 4 features\n")


def test_named_inputs_remain(minimise):
    """Also one that is empty, which libFuzzer does not list."""
    old = {"a-bug": "8", "nothing": "", sha1("8 16"): "8 16", sha1("8"): "8"}
    _, left = minimise(old, ["8"])
    assert left == {"a-bug": "8", "nothing": "", sha1("8 16"): "8 16"}


def test_again_changes_nothing(minimise):
    found = [f"{a} {b}" for a in range(40) for b in range(a)]
    _, left = minimise({}, found)
    _, again = minimise({}, [])
    assert left == again


def test_others_that_are_as_good(minimise):
    old = {sha1(text): text for text in ("8 16 24", "32 40 48")}
    _, left = minimise(old, ["24 32 40", "8 16 48"])
    assert left == old


def test_others_that_are_much_smaller(minimise):
    long = "8 16 24" + "." * 1000
    _, left = minimise({sha1(long): long}, ["8 16 24"])
    assert left == {sha1("8 16 24"): "8 16 24"}


def test_limit_of_inputs(minimise):
    """New code comes before edges that are taken more often, even if it needs longer inputs."""
    all_once = " ".join(str(8 * n) for n in range(400))
    more_often = [str(8 * n + 1) for n in range(400)]
    new_code = [str(8 * n) + "." * 500 for n in range(1000, 1100)]
    _, left = minimise({}, [all_once, *more_often, *new_code])
    assert len(left) == 300
    assert {all_once, *new_code} <= set(left.values())


def test_limit_of_bytes(minimise):
    _, left = minimise({}, [f"{8 * n}" + "." * 50000 for n in range(10)])
    assert len(left) == 5


def test_input_that_fails(minimise, tmp_path):
    """The corpus remains as it is: the bug comes first."""
    done, left = minimise({sha1("8"): "8"}, ["8 16", "crash"])
    assert done.returncode and str(tmp_path / "found/1") in done.stderr
    assert left == {sha1("8"): "8"}

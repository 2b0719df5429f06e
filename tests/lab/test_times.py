# SPDX-License-Identifier: GPL-2.0-or-later
"""Times are defined once, in lab/gate/times.env; help and documents show the same."""

import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TIMES = dict(re.findall(r"^(\w+)=(.*)$", (TOP / "lab/gate/times.env").read_text(), re.MULTILINE))
SHOWN = re.compile(r"<!-- time: (\w+) -->(.*?)<!-- /time -->", re.DOTALL)
# Minutes or seconds next to a make target that are not from times.env.
LOOSE = re.compile(r"`make [a-z-]+`[^.|]*?\b(\d+|an?|several|some) (minutes?|seconds?|hours?)\b")


@pytest.mark.parametrize("name", ["README.md", "docs/architecture.md", "docs/how-to/use-the-lab.md"])
def test_documents(name):
    text = (TOP / name).read_text()
    shown = SHOWN.findall(text)
    assert shown, f"{name} tells no times"
    for key, words in shown:
        assert " ".join(words.split()) == TIMES[key], f"{name}: {key}"
    assert not LOOSE.findall(SHOWN.sub("", text))


def test_help():
    said = subprocess.run(["make", "-s", "help"], cwd=TOP, capture_output=True, text=True, check=True)
    assert "@" not in said.stdout
    assert f"({TIMES['test']})" in said.stdout and f"({TIMES['test_all']})" in said.stdout

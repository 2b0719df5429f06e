# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory regions that change, memory windows, queues that change their size."""

import json

import pytest

@pytest.mark.parametrize("case", [
    "windows", "window_owner", "zero_based", "rereg", "cq_resize", "srq_resize",
])
def test_memory(pair, progs, case):
    out = pair.a.run(f"{progs.path('memory')} {case}", timeout=90).out
    assert json.loads(out) == {case: "ok"}


@pytest.mark.parametrize("pages", ["huge", "small"])
def test_registration(pair, progs, pages):
    """Five times each; lab/bench measures how long it takes."""
    out = pair.a.run(f"{progs.path('memory')} register 16 {pages}", timeout=240).out
    assert json.loads(out)["register"] > 0


@pytest.mark.long("a guest of 2 GiB; test_registration has 16 MiB")
@pytest.mark.parametrize("pages", ["huge", "small"])
def test_registration_of_a_gigabyte(big, progs, pages):
    out = big.a.run(f"{progs.path('memory')} register 1024 {pages}", timeout=240).out
    assert json.loads(out)["register"] > 0

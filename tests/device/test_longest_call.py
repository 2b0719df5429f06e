# SPDX-License-Identifier: GPL-2.0-or-later
"""
The scenes of longest_call.py end, and QEMU with them in good order. How long a call takes depends
on the host, so it is only printed.
"""

import pytest
from longest_call import SCENES, measure

pytestmark = [pytest.mark.once("it measures the adapter without an observer"), pytest.mark.long(
    "to prepare the scenes takes minutes; test_cost*.c have the limits")]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_longest_call(scene):
    calls, ns, what = measure(scene)
    print(f"{calls} calls, the longest {ns / 1e6:.3f} ms, for {what}")
    assert calls and ns

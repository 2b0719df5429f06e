# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory as applications use it, and import by handle."""

import pytest

from test_dmabuf import said_by_each

TESTS = ["all_of_it", "cleared", "separate", "alignment", "part_of_it", "permissions",
         "both_ends", "imported", "imported_memory", "killed"]


@pytest.mark.parametrize("name", TESTS)
def test_device_memory(pair, name):
    said = said_by_each(pair.a, "dm", *TESTS)
    assert f"{name}: done" in said, said

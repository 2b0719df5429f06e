# SPDX-License-Identifier: GPL-2.0-or-later
"""
dma-buf regions. rdma-core's ten tests of them require a GPU; these test the same, and more, with
memory that udmabuf exports.
"""

import functools
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"

# the ten of rdma-core's suite: test_dmabuf_* of DmaBufMRTest and DmaBufTest
LIKE_THE_SUITE = ["reg_mr", "dereg_mr", "dereg_mr_twice", "lkey", "rkey", "write", "read",
                  "bad_flags", "send_recv", "rdma"]
MORE = ["scattered", "huge", "outlives_its_fd", "out_of_range"]


@functools.cache
def scripts(guest):
    """Where a guest has the scripts."""
    guest.put(SCRIPTS, "/tmp/scripts")
    return "/tmp/scripts"


def run_script(guest, script, *names, **kwargs):
    """Run functions of scripts/SCRIPT.py in the guest, a process of its own."""
    return guest.run(["python3", f"{scripts(guest)}/{script}.py", *names], **kwargs)


@functools.cache
def said_by_each(guest, script, *names):
    """The results of several functions, each in a separate process. Python and pyverbs are started
    once for all of them: that takes longer than most functions do."""
    result = run_script(guest, script, *names, timeout=300, check=False)
    return result.out + result.err


@pytest.mark.parametrize("name", LIKE_THE_SUITE + MORE)
def test_dmabuf(pair, name):
    assert pair.a.run("test -c /dev/udmabuf", check=False).rc == 0, "no /dev/udmabuf"
    said = said_by_each(pair.a, "dmabuf", *LIKE_THE_SUITE, *MORE)
    assert f"{name}: done" in said, said

# SPDX-License-Identifier: GPL-2.0-or-later
"""
dma-buf regions. rdma-core's ten tests of them want a GPU; these ask the same
of memory that udmabuf exports, and more.
"""

from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"

# the ten of rdma-core's suite: test_dmabuf_* of DmaBufMRTest and DmaBufTest
LIKE_THE_SUITE = ["reg_mr", "dereg_mr", "dereg_mr_twice", "lkey", "rkey", "write", "read",
                  "bad_flags", "send_recv", "rdma"]
MORE = ["scattered", "huge", "outlives_its_fd", "out_of_range"]


def run_script(guest, script, *names, **kwargs):
    """Run functions of scripts/SCRIPT.py in the guest, a process of its own."""
    guest.run("mkdir -p /tmp/scripts")
    for file in ("rc.py", f"{script}.py"):
        guest.put(SCRIPTS / file, f"/tmp/scripts/{file}")
    return guest.run(["python3", f"/tmp/scripts/{script}.py", *names], **kwargs)


@pytest.mark.parametrize("name", LIKE_THE_SUITE + MORE)
def test_dmabuf(pair, name):
    assert pair.a.run("test -c /dev/udmabuf", check=False).rc == 0, "no /dev/udmabuf"
    assert f"{name}: done" in run_script(pair.a, "dmabuf", name).out

# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with another kernel: the newest of the backports, and that of a build tree."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import debian_tree
import pytest
from labs import LAB_NAME, PATIENCE, TOP, TestLab, build_kernel, run_pair

from qhca_lab import LabError, Options, kernels, saved_guest
from qhca_lab.elf import build_id
from test_dmabuf import said_by_each
from test_resources import COUNTERS

pytestmark = pytest.mark.long("builds the driver for another kernel and boots guests with it")


def ping(guest, peer):
    guest.run(f"ping -c 3 -i 0.2 -W 5 {peer.ip}")
    guest.run(f"ping -6 -c 3 -i 0.2 -W 5 {peer.ip6}")


def works(lab, kernel):
    """The lab's guests run KERNEL with the driver that was built for it: frames and
    messages pass, both ways."""
    for guest, peer in ((lab.a, lab.b), (lab.b, lab.a)):
        assert guest.run("uname -r").out.strip() == kernel.version
        for module in ("qhca", "qhca_ib"):
            note = build_id(kernel.driver / f"{module}.ko")[1].hex()
            assert guest.run(f"od -An -v -tx1 /sys/module/{module}/notes/.note.gnu.build-id | "
                             "tr -d ' \\n'").out == note
        ping(guest, peer)
        _, client = run_pair(guest, peer, "ibv_rc_pingpong -d $IBDEV -g $GIDX -c -n 200")
        assert "200 iters in" in client.out
    # A module that no guest has loaded, from the disk that came with the kernel.
    assert lab.a.run("findmnt -no SOURCE /usr/lib/modules").out.strip() == "/dev/vdb"
    lab.a.run("modprobe rdma_rxe && grep -q ^rdma_rxe /proc/modules")


def test_newest(newest_pair):
    kernel = kernels.kernel("newest")
    default = (kernels.kernel("default").image / "version").read_text()
    newer = [[int(n) for n in v.split("-")[0].split("+")[0].split(".")[:2]]
             for v in (kernel.version, default)]
    assert newer[0] > newer[1]
    works(newest_pair, kernel)


def test_newest_starts_from_its_own_copy(newest_pair):
    """A lab with the other kernel starts from a saved guest with that kernel."""
    def booted(what):
        return saved_guest.HOME / saved_guest._key(Options(kernel=what, accel="tcg"))

    assert (booted("newest") / "memory").exists()
    assert booted("newest") != booted("default")


def test_newest_counters(newest_pair):
    """The port's counters and those of QPs, whose operations the core calls differently."""
    said = said_by_each(newest_pair.a, "counters", *COUNTERS)
    for name in COUNTERS:
        assert f"{name}: done" in said, said


def test_newest_port_events(newest_pair):
    """Consumers get one event for each change of the port: the core, which could send them itself,
    leaves them to the driver. A second one of a change would have come by the next."""
    a = newest_pair.a
    state = "cat /sys/class/infiniband/$IBDEV/ports/1/state"
    assert "ACTIVE" in a.run(state).out
    watch = a.start("stdbuf -oL ibv_asyncwatch -d $IBDEV")

    def seen():
        out = watch.out_so_far()
        return [out.count(f"IBV_EVENT_PORT_{kind}") for kind in ("ERR", "ACTIVE")]

    @contextlib.contextmanager
    def cable():
        try:
            newest_pair.set_link("a", False)
            yield
        finally:
            newest_pair.set_link("a", True)

    @contextlib.contextmanager
    def interface():
        try:
            a.run("ip link set $NETDEV down")
            yield
        finally:
            a.run("ip link set $NETDEV up")
            a.setup_nic()

    try:
        watch.wait_for("async event FD")
        for count, change in enumerate((cable, interface, cable), 1):
            with change():
                # The stack takes its time, and says nothing of what is over by then.
                a._until(lambda n=count: seen()[0] >= n, PATIENCE, "no PORT_ERR")
                assert "DOWN" in a.run(state).out
            a._until(lambda n=count: seen()[1] >= n, PATIENCE, "no PORT_ACTIVE")
            assert "ACTIVE" in a.run(state).out
        assert seen() == [3, 3], watch.out_so_far()
    finally:
        watch.kill()
    ping(a, newest_pair.b)


def test_newest_driver_comes_and_goes(newest_pair):
    """qhca-load finds the driver for the guest's kernel."""
    a = newest_pair.a
    a.run("qhca-unload && ! grep -q ^qhca /proc/modules")
    a.load_driver()
    a.setup_nic()
    ping(a, newest_pair.b)


def test_newest_in_gdb(newest_pair):
    """gdb's commands read the driver's objects in that kernel."""
    done = subprocess.run([TOP / "lab/qhca-gdb", "--name", LAB_NAME, "kernel", "a", "--",
                           "-batch", "-ex", "qhca-devices", "-ex", "qhca-qps"],
                          capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    text = done.stdout + done.stderr
    assert done.returncode == 0 and newest_pair.a.ibdev in text and "GSI RTS kernel" in text, text


def test_newest_is_shown(newest_pair):
    assert newest_pair.status()["kernel"] == "newest"
    said = subprocess.run([TOP / "lab/qhca-lab", "--name", LAB_NAME, "status"],
                          capture_output=True, text=True, check=True).stdout
    assert "kernel newest, link" in said


@pytest.fixture(scope="module")
def tree():
    """A build tree, at a place that the build root does not know."""
    home = Path(tempfile.mkdtemp(prefix="qhca-tree-", dir="/var/tmp"))
    folder = home / "linux"
    debian_tree.make(folder)
    yield folder
    shutil.rmtree(kernels.kernel(str(folder)).folder, ignore_errors=True)
    shutil.rmtree(home)


def test_a_build_tree(manager, tree):
    manager.drop()
    options = Options(tied=True, kernel=str(tree))
    with pytest.raises(LabError, match="is missing: run 'make kernel KERNEL="):
        TestLab.up(LAB_NAME, ["qhca", "qhca"], options, replace=True)
    kernel = build_kernel(str(tree))
    with TestLab.up(LAB_NAME, ["qhca", "qhca"], options, replace=True) as lab:
        works(lab, kernel)
        # Modules that are not in the tree are not in the guest.
        assert lab.a.run("modprobe dummy", check=False).rc != 0
    before = kernel.image
    os.utime(tree / kernels.BZIMAGE)
    with pytest.raises(LabError, match="was rebuilt: run 'make kernel KERNEL="):
        TestLab.up(LAB_NAME, ["qhca", "qhca"], options, replace=True)
    build_kernel(str(tree))
    assert kernel.image != before
    kernel.check()

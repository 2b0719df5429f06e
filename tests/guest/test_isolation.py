# SPDX-License-Identifier: GPL-2.0-or-later
"""
Two processes that share an adapter: neither can access the other's objects, whether they belong to
one user or to two. docs/reference/isolation.md describes what is checked where.
"""

import contextlib
import errno
import json

import pytest

from test_driver import debugfs

ROOT, NOBODY = 0, 65534

# enum ibv_wc_status
LOC_QP_OP, LOC_PROT, MW_BIND, REM_INV_REQ, REM_ACCESS = 2, 4, 6, 9, 10

# The result of each attempt, for any user.
REFUSED = {
    "write to its region": REM_ACCESS,
    "write to its window": REM_ACCESS,
    "read its window": REM_ACCESS,
    "read its region": REM_ACCESS,
    "atomic in its region": REM_ACCESS,
    "send from its region": LOC_PROT,
    "send from all memory": LOC_PROT,
    "read into all memory": LOC_PROT,
    "read into its region": LOC_PROT,
    "receive into its region": LOC_PROT,
    "invalidate its window": LOC_QP_OP,
    "have its window invalidated": REM_ACCESS,
    "bind a window to its region": MW_BIND,
    "register its address": errno.EFAULT,
    "doorbell pages": 1,
    "more than a page": 0,
    "status: map writable": errno.EPERM,
    "status: mprotect": errno.EACCES,
    "status: register": errno.EFAULT,
    "status: /proc/self/mem": errno.EIO,
    "status: written in a private mapping": 0,
    "send to its SRQ": REM_INV_REQ,
    "open its target": errno.EINVAL,
    "commands by its handles": 0,
    "imports by its handles": 0,
    "a command by one's own handle": 0,
    "an import by one's own handle": 1,
    "bytes of device memory": 0,
}

# The same user may debug the other process, but cannot open its files again.
SAME_USER = {
    "a privileged Q_Key": 0,
    "open its domain": 0,
    "open its file": 0,
    "import its context": errno.EINVAL,
}

# Of another user, without a right.
OTHER_USER = {
    "a privileged Q_Key": errno.EPERM,
    "open its domain": errno.EACCES,
    "open its file": errno.EACCES,
    "a raw packet QP": errno.EPERM,
    "a flow": errno.EPERM,
    "BARs by sysfs": 0,
    "files of debugfs": 0,
}


@contextlib.contextmanager
def for_all_users(guest):
    """Users other than root may open the device, as with the rules of udev."""
    device = guest.run("ls /dev/infiniband/uverbs*").out.strip()
    mode = guest.run(f"stat -c %a {device}").out.strip()
    guest.run(f"chmod 666 {device}")
    try:
        yield
    finally:
        guest.run(f"chmod {mode} {device}")


@pytest.mark.parametrize("user", [ROOT, NOBODY], ids=["same-user", "other-user"])
def test_another_process(pair, progs, user):
    """It knows all numbers, keys and addresses, and has no access."""
    guest = pair.a
    counters = ("db_bad_owner", "ud_dropped")
    before = [guest.ethtool_stat(name) for name in counters]
    with for_all_users(guest):
        out = guest.run(f"{progs.path('isolation')} {user}", timeout=120).out
    attempts, victim = (json.loads(line) for line in out.splitlines())
    assert victim == {"victim": ""}
    assert attempts == REFUSED | (OTHER_USER if user else SAME_USER)
    # its QPs, by SQ and RQ; the kernel's own; its CQs, and those of others
    owner, dropped = (guest.ethtool_stat(name) - old for name, old in zip(counters, before))
    assert owner >= 3 * 2 + 3 + 4
    # for its UD QP, and for the kernel's; the third is one that it sends to itself
    assert dropped == 3


# An application, of which others may know that it is there.
APPLICATION = "ibv_rc_pingpong -d $IBDEV -g $GIDX -p 18700 -r 400 -s 300000"


def test_dumps(pair):
    """Users without a right see which objects there are, but no key and no address."""
    guest = pair.a
    job = guest.start(APPLICATION)
    guest.wait_port(guest.ip, 18700)

    def shown(kind, user):
        where = "link $IBDEV/1" if kind == "qp" else "dev $IBDEV"
        out = guest.run(f"rdma -j -dd res show {kind} {where}", user=user).out
        return [e for e in json.loads(out) if e.get("comm") == "ibv_rc_pingpong"]

    try:
        pid = int(guest.run("pgrep ibv_rc_pingpong").out)
        for kind, secrets in (("mr", ("rkey", "lkey", "drv_addr", "drv_va")),
                              ("qp", ("drv_sq_addr", "drv_sq_va", "drv_rq_dbrec")),
                              ("cq", ("drv_addr", "drv_va", "drv_dbrec"))):
            (full,) = [e for e in shown(kind, "root") if e.get("pid") == pid]
            assert set(secrets) <= set(full), kind
            (part,) = shown(kind, "nobody")
            assert not [name for name in part if name in secrets or name.endswith(
                ("_addr", "_va", "_dbrec", "_psn"))], part
            assert {"mr": "mrlen", "qp": "lqpn", "cq": "cqe"}[kind] in part
            raw = guest.run(f"rdma -j -r res show {kind}", user="nobody", check=False)
            assert raw.rc or "data" not in raw.out, raw.out
    finally:
        job.kill()


@pytest.mark.parametrize("command", [
    "ethtool -d $NETDEV",
    "devlink health dump show pci/$PCI reporter device",
    "rdma statistic qp set link $IBDEV/1 auto type on",
])
def test_needs_the_right_to_administer(pair, command):
    """Registers, contexts of a dead device, counters: only with CAP_NET_ADMIN."""
    guest = pair.a
    pci = guest.run("basename $(readlink /sys/class/net/$NETDEV/device)").out.strip()
    done = guest.run(f"PCI={pci} sh -c '{command}'", user="nobody", check=False)
    assert done.rc and "not permitted" in done.err + done.out, done


def test_debugfs_is_root_s(pair):
    """No folder on the path to the driver's files is accessible to others."""
    guest = pair.a
    listed = guest.run(f"ls {debugfs(guest)}", user="nobody", check=False)
    assert listed.rc and "Permission denied" in listed.err
    # nor are the files, even if the folder were accessible
    assert not guest.run(f"find {debugfs(guest)} -type f -perm /077").out

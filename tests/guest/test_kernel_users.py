# SPDX-License-Identifier: GPL-2.0-or-later
"""
Protocols of the kernel that run on RDMA: NVMe, NFS, SRP and SMC-R, each with
verified data.  RDS is in test_platform.py, NVMe's life in test_kernel_verbs.py.
"""

import contextlib
import json

import pytest

from labs import PATIENCE, lacks
from test_kernel_verbs import nvme

# write at random, read all of it back, compare the checksums in it
FIO = ("fio --name=v --size=16M --rw=randwrite --verify=crc32c --verify_fatal=1 --direct=1"
       " --output-format=json ")


def fio(guest, options):
    """fio with verification; all data written was read back correctly."""
    result = guest.run(FIO + options, timeout=120)
    job = json.loads(result.out[result.out.index("{"):])["jobs"][0]
    assert job["error"] == 0
    # random blocks of any size do not cover everything
    assert job["write"]["io_bytes"] == job["read"]["io_bytes"] > 10 << 20, job


def verified_nvme(target, host):
    with nvme(target, host):
        fio(host, "--filename=/dev/nvme0n1 --bs=4k-128k --ioengine=libaio --iodepth=8")


OTHER_WAY = pytest.mark.long("the other way round is in the gate")


@pytest.mark.parametrize("direction", ["a-to-b", pytest.param("b-to-a", marks=OTHER_WAY)])
def test_nvme(pair, direction):
    verified_nvme(*((pair.b, pair.a) if direction == "a-to-b" else (pair.a, pair.b)))


@pytest.mark.long("between two of qhca it is in the gate")
@pytest.mark.parametrize("role", ["qhca-target", "rxe-target"])
def test_nvme_with_soft_roce(mixed, role):
    """Fast registration on one side, SEND with invalidate from the other."""
    verified_nvme(*((mixed.a, mixed.b) if role == "qhca-target" else (mixed.b, mixed.a)))


# --------------------------------------------------------------------- NFS


NFS_SERVER = """
set -e
modprobe -a nfsd rpcrdma
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /srv/x
mount -t tmpfs none /srv/x
exportfs -o rw,no_root_squash,insecure,fsid=0 "*:/srv/x"
rpc.mountd -N 2 -N 3
rpc.nfsd -N 3 -V 4 -U --rdma=20049 -G 10 4
"""

NO_NFS_SERVER = """
rpc.nfsd 0
pkill -x rpc.mountd
exportfs -ua
umount /srv/x
umount /proc/fs/nfsd
modprobe -r rpcrdma nfsd
"""


@contextlib.contextmanager
def nfs(server, client):
    """A file system of @server, as /mnt/n of @client."""
    try:
        server.run(NFS_SERVER)
        client.run(f"mkdir -p /mnt/n; mount -t nfs -o vers=4.2,proto=rdma,port=20049,sec=sys"
                   f" {server.ip}:/ /mnt/n")
        yield
    finally:
        client.run("umount -f /mnt/n; modprobe -r rpcrdma", check=False)
        server.run(NO_NFS_SERVER, check=False)


def verified_nfs(server, client):
    with nfs(server, client):
        assert "proto=rdma" in client.run("grep /mnt/n /proc/mounts").out
        fio(client, "--directory=/mnt/n --bs=64k --ioengine=psync")


@pytest.mark.long("a server starts and a file is verified; NVMe over RDMA stays in the gate")
def test_nfs(pair):
    verified_nfs(pair.b, pair.a)


@pytest.mark.long("a server starts and a file is verified; NVMe over RDMA stays in the gate")
@pytest.mark.parametrize("role", ["qhca-server", "rxe-server"])
def test_nfs_with_soft_roce(mixed, role):
    verified_nfs(*((mixed.a, mixed.b) if role == "qhca-server" else (mixed.b, mixed.a)))


def cq_moderation(pair, guest):
    """{number: (CQEs, us)} of all CQs, as the device has them."""
    def inspect(**what):
        return pair.qmp(guest.name, "qhca-inspect", object="cq", **what)["look"]
    contexts = {cq["cqn"]: inspect(number=cq["cqn"])["context"]
                for cq in inspect()["objects"]}
    return {number: (c["mod_count"], c["mod_usec"]) for number, c in contexts.items()}


@pytest.mark.long("the kernel's algorithm; test_moderation has what it sets")
def test_adaptive_moderation(pair):
    """The moderation of kernel CQs follows their load, which changes all the time, because the
    kernel adapts to changes only; it can be switched off. NFS has CQs for each connection, where
    NVMe uses old ones again."""
    a, b = pair.a, pair.b
    others = cq_moderation(pair, b)

    def moderated():
        return {m for number, m in cq_moderation(pair, b).items() if number not in others}

    with nfs(b, a):
        job = a.start("while :; do for depth in 1 32; do "
                      "fio --name=r --size=16M --rw=randread --direct=1 --bs=4k --iodepth=$depth "
                      "--directory=/mnt/n --ioengine=libaio --time_based --runtime=3; done; done")
        try:
            b._until(lambda: moderated() - {(0, 0)}, PATIENCE, "nothing was adapted")
        finally:
            job.kill()
    b.run("rdma dev set $IBDEV adaptive-moderation off")
    try:
        with nfs(b, a):
            fio(a, "--directory=/mnt/n --bs=64k --ioengine=psync")
            assert moderated() == {(0, 0)}
    finally:
        b.run("rdma dev set $IBDEV adaptive-moderation on")


# --------------------------------------------------------------------- SRP


SRP_PORT = 5000
SRP_TARGET = """
set -e
modprobe -a target_core_mod target_core_file ib_srpt
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
T=/sys/kernel/config/target
truncate -s 64M /tmp/srp.disk
mkdir -p $T/core/fileio_0/d
echo -n fd_dev_name=/tmp/srp.disk,fd_dev_size=67108864 > $T/core/fileio_0/d/control
echo 1 > $T/core/fileio_0/d/enable
mkdir -p $T/srpt
echo $PORT > $T/srpt/discovery_auth/rdma_cm_port
P=$T/srpt/$GUID/$GUID
mkdir -p $P/lun/lun_0
ln -s $T/core/fileio_0/d $P/lun/lun_0/d
for who in $INITIATORS; do
    mkdir -p $P/acls/$who/lun_0
    ln -s $P/lun/lun_0 $P/acls/$who/lun_0/d
done
echo 1 > $P/enable
"""
NO_SRP_TARGET = """
T=/sys/kernel/config/target
P=$T/srpt/$GUID/$GUID
echo 0 > $P/enable
for acl in $P/acls/*; do
    rm -f $acl/lun_0/d
    rmdir $acl/lun_0 $acl
done
rm -f $P/lun/lun_0/d
rmdir $P/lun/lun_0 $P $T/srpt/$GUID $T/srpt $T/core/fileio_0/d $T/core/fileio_0
rm -f /tmp/srp.disk
modprobe -r ib_srpt target_core_file target_core_mod
"""
SRP_DISK = "grep -l LIO-ORG /sys/block/sd*/device/vendor"


def node_guid(guest):
    return guest.run("cat /sys/class/infiniband/$IBDEV/node_guid").out.strip()


@contextlib.contextmanager
def srp(target, initiator):
    """A disk of @target, as a SCSI disk of @initiator; its path."""
    guid = node_guid(target)
    number = guid.replace(":", "")
    env = {"PORT": str(SRP_PORT), "GUID": guid,
           # the address of either end, as versions of Linux see it
           "INITIATORS": f"{initiator.ip} {target.ip}"}
    try:
        target.run(SRP_TARGET, env=env)
        initiator.run("modprobe -a ib_srp sd_mod")
        initiator.run(f"echo id_ext={number},ioc_guid={number},dest={target.ip}:{SRP_PORT}"
                      " > /sys/class/infiniband_srp/srp-$IBDEV-1/add_target")
        initiator.wait_for(SRP_DISK)
        yield "/dev/" + initiator.run(SRP_DISK).out.split("/")[3]
    finally:
        initiator.run("for r in /sys/class/srp_remote_ports/*; do [ ! -e $r/delete ] ||"
                      " echo 1 > $r/delete; done; modprobe -r ib_srp", check=False)
        target.run(NO_SRP_TARGET, env=env, check=False)


@pytest.mark.long("a target is set up and a disk verified; NVMe over RDMA stays in the gate")
@pytest.mark.parametrize("direction", ["a-to-b", "b-to-a"])
def test_srp(pair, direction):
    target, initiator = (pair.b, pair.a) if direction == "a-to-b" else (pair.a, pair.b)
    with srp(target, initiator) as disk:
        fio(initiator, f"--filename={disk} --bs=4k-128k --ioengine=libaio --iodepth=8")


# -------------------------------------------------------------------- SMC-R


@contextlib.contextmanager
def routed(server, client):
    """
    Each guest reaches the other through a router, which is the other guest itself.

    Linux 6.12 leaves the client's MAC address out of its proposal when a port
    has no RoCE v1 GID, and uses it nevertheless - but not where a router is in
    between: then it takes the router's.
    """
    pairs = ((server, client.ip), (client, server.ip))
    try:
        for guest, ip in pairs:
            guest.run(f"ip route add {ip}/32 via {ip} dev $NETDEV onlink")
        yield
    finally:
        for guest, ip in pairs:
            guest.run(f"ip route del {ip}/32 via {ip}", check=False)


# Reasons for a fallback (SMC_CLC_DECL_*): no answer in time, and the peer's refusal for that.
LATE = {"0x2010000", "0x2020000", "0x5000000"}


def verified_smc(server, client, progs):
    """A stream over SMC sockets, which did not fall back to TCP. Linux gives up its handshake after
    a few seconds, which cannot be set: on a busy host it is tried again."""
    for _ in range(5):
        reasons = smc_stream(server, client, progs)
        assert reasons <= LATE, f"fallen back to TCP: {reasons}"
        if not reasons:
            return
    pytest.fail(f"fallen back to TCP each time: {reasons}")


def smc_stream(server, client, progs):
    """A stream, and why it has fallen back to TCP, if it has."""
    size, port = 4_000_000, 7700
    with routed(server, client):
        try:
            for guest in (server, client):
                guest.run("modprobe -a smc smc_diag")
                guest.run(f"{progs.path('smc')} eid QHCA-TEST")
            before = client.ethtool_stat("roce_tx_bytes") if client.nic == "qhca" else 0
            job = server.start(f"{progs.path('smc')} serve {port}")
            client.wait_port(server.ip, port)
            sent = json.loads(client.run(f"{progs.path('smc')} send {server.ip} {port} {size}").out)
            assert json.loads(job.wait().out) == sent
            assert sent["bytes"] == size
            reasons = {why for guest in (server, client)
                       for why in guest.run(f"{progs.path('smc')} why").out.split()}
            # the link group stays for a while, with QPs of its own
            for guest in () if reasons else (server, client):
                qps = guest.run("rdma res show qp").out
                assert "type RC state RTS" in qps, qps
            if client.nic == "qhca" and not reasons:
                assert client.ethtool_stat("roce_tx_bytes") - before > size
            return reasons
        finally:
            for guest in (server, client):
                guest.run("modprobe -r smc_diag smc", check=False)


needs_smc = pytest.mark.skipif(lacks("CONFIG_SMC"), reason="this kernel is built without SMC")


@needs_smc
def test_smc(pair, progs):
    verified_smc(pair.b, pair.a, progs)


@needs_smc
@pytest.mark.long("between two of qhca it is in the gate")
@pytest.mark.parametrize("role", ["qhca-serves", "rxe-serves"])
def test_smc_with_soft_roce(mixed, progs, role):
    verified_smc(*((mixed.a, mixed.b) if role == "qhca-serves" else (mixed.b, mixed.a)), progs)

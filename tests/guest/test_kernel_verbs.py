# SPDX-License-Identifier: GPL-2.0-or-later
"""
Users of RDMA in the kernel: the connection manager (QP 1) and NVMe over RDMA,
which needs kernel QPs and CQs, fast registration and draining.
"""

import contextlib

import pytest
from labs import PATIENCE
from qhca_lab import fault
from qhca_lab.pair import start_server
from test_connection_manager import tool

PORT = 4420
NQN = "qhca-test"

TARGET = f"""
set -e
modprobe -a nvmet nvmet-rdma
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
truncate -s 64M /tmp/nvme.disk
cd /sys/kernel/config/nvmet
mkdir subsystems/{NQN}
echo 1 > subsystems/{NQN}/attr_allow_any_host
mkdir subsystems/{NQN}/namespaces/1
echo -n /tmp/nvme.disk > subsystems/{NQN}/namespaces/1/device_path
echo 1 > subsystems/{NQN}/namespaces/1/enable
mkdir ports/1
cd ports/1
echo rdma > addr_trtype
echo ipv4 > addr_adrfam
echo $ADDRESS > addr_traddr
echo {PORT} > addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/{NQN} subsystems/
"""

NO_TARGET = f"""
cd /sys/kernel/config/nvmet || exit 0
rm -f ports/1/subsystems/{NQN}
rmdir ports/1 subsystems/{NQN}/namespaces/1 subsystems/{NQN}
rm -f /tmp/nvme.disk
modprobe -r nvmet-rdma
"""

DISCONNECT = """
for c in /sys/class/nvme/nvme*; do
    [ ! -e $c/delete_controller ] || echo 1 > $c/delete_controller
done
# Who has the disk open keeps the module: a reader that has just got an error, or udev,
# which looks at a disk that was written to.
until modprobe -r nvme-rdma; do sleep 0.1; done
"""

# Without bus mastering the next admin command is fatal: its ring cannot be read.
BREAK_DEVICE = "setpci -s {pci} COMMAND=0:4; rdma statistic show"


@contextlib.contextmanager
def nvme(target, host):
    """A disk of @target, as /dev/nvme0n1 of @host."""
    target.run(TARGET, env={"ADDRESS": target.ip})
    try:
        host.run("modprobe nvme-rdma")
        host.run(f"echo transport=rdma,traddr={target.ip},trsvcid={PORT},nqn={NQN},"
                 "nr_io_queues=2 > /dev/nvme-fabrics")
        host.wait_for("test -b /dev/nvme0n1")
        yield
    finally:
        host.run(DISCONNECT)
        target.run(NO_TARGET)


@pytest.mark.parametrize("direction", ["a-to-b", "b-to-a"])
def test_connection_manager(pair, direction):
    """rping: connect and disconnect by MADs over QP 1, then verified data."""
    server, client = (pair.b, pair.a) if direction == "a-to-b" else (pair.a, pair.b)
    tool(server, client, "rping", server.ip)


def test_datagrams_by_connection_manager(pair):
    """udaddy: service resolution by SIDR, address handles from completions."""
    job = start_server(pair.b, "udaddy",
                       ready="rdma res show cm_id | grep -q 'LISTEN.*comm udaddy'")
    result = pair.a.run(f"udaddy -s {pair.b.ip}")
    assert job.wait().rc == 0
    assert "return status 0" in result.out


@pytest.mark.long("test_kernel_users has NVMe, with fio")
@pytest.mark.parametrize("direction", ["a-to-b", "b-to-a"])
def test_nvme_over_rdma(pair, direction):
    """Data written is read back, in large requests and in small ones."""
    target, host = (pair.b, pair.a) if direction == "a-to-b" else (pair.a, pair.b)
    with nvme(target, host):
        host.run("dd if=/dev/urandom of=/tmp/nvme.data bs=1M count=16 status=none")
        host.run("dd if=/tmp/nvme.data of=/dev/nvme0n1 bs=1M oflag=direct status=none")
        host.run("dd if=/dev/nvme0n1 bs=1M count=16 iflag=direct status=none"
                 " | cmp - /tmp/nvme.data", timeout=120)
        host.run("dd if=/dev/nvme0n1 bs=4k count=500 iflag=direct status=none"
                 " | cmp -n 2048000 - /tmp/nvme.data", timeout=120)
        # one QP of the controller's admin queue, two of its I/O queues
        kernel_qps = host.run("rdma res show qp").out
        assert kernel_qps.count("type RC state RTS") == 3, kernel_qps


@pytest.mark.long("test_health has a device that dies, test_kernel_users NVMe")
def test_nvme_device_dies(rough_pair):
    """The adapter stops under a kernel user: its requests end, nothing hangs."""
    pair = rough_pair
    with nvme(pair.b, pair.a):
        reader = pair.a.start("dd if=/dev/nvme0n1 of=/dev/null bs=64k iflag=direct")
        before = pair.a.ethtool_stat("roce_rx_packets")
        pair.a.wait_for(f"test $(ethtool -S {pair.a.netdev} | awk '/roce_rx_packets/ {{print $2}}')"
                        f" -gt {before + 100}")
        pair.a.run(f"devlink health set pci/{pair.a.pci} reporter device auto_recover false")
        pair.a.run(BREAK_DEVICE.format(pci=pair.a.pci), check=False)
        pair.a.run(DISCONNECT)
        assert reader.wait(60).rc != 0
    pair.a.run("rmmod qhca_ib")
    pair.a.run("rmmod qhca")
    pair.a.load_driver()
    pair.a.setup_nic()
    test_connection_manager(pair, "a-to-b")


@pytest.mark.long("takes the half minute that the driver gives the device")
def test_completions_that_never_come(rough_pair):
    """A kernel user drains its QP, and the device does not flush it: the driver declares
    the device dead, and so the user gets its WRs back and nothing hangs."""
    a = rough_pair.a
    with nvme(rough_pair.b, a):
        a.run(f"devlink health set pci/{a.pci} reporter device auto_recover false")
        # A CQ that has overflowed gets no more completions, not even flushed ones.
        fault.add(a, {"action": "cq-overflow", "qp-type": "rc", "count": 1})
        try:
            reader = a.start("dd if=/dev/nvme0n1 of=/dev/null bs=64k count=100 iflag=direct")
            a._until(lambda: fault.listed(a)["faults"][0]["hits"], PATIENCE, "no completion")
        finally:
            fault.remove(a)
        assert "does not flush a QP" not in a.run("dmesg").out
        a.run(DISCONNECT, 2 * PATIENCE)
        assert "it does not flush a QP" in a.run("dmesg").out
        assert reader.wait().rc != 0
    a.run("qhca-unload")
    a.load_driver()
    a.setup_nic()
    test_connection_manager(rough_pair, "a-to-b")


def test_port_events(pair):
    """The port follows the wire, and consumers are notified."""
    state = "cat /sys/class/infiniband/$IBDEV/ports/1/state"
    assert "ACTIVE" in pair.a.run(state).out
    watch = pair.a.start("stdbuf -oL ibv_asyncwatch -d $IBDEV")
    watch.wait_for("async event FD")
    try:
        pair.set_link("a", False)
        pair.a.wait_for(f"{state} | grep -q DOWN")
    finally:
        pair.set_link("a", True)
    pair.a.wait_for(f"{state} | grep -q ACTIVE")
    pair.a.wait_for(f"ping -c 1 -W 1 {pair.b.ip}")
    watch.wait_for("IBV_EVENT_PORT_ERR")
    watch.wait_for("IBV_EVENT_PORT_ACTIVE")
    watch.kill()

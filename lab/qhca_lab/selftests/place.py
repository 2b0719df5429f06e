# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests as required by the "hardware mode" of the selftests.

Tests run in guest a, on the adapter of the lab's wire; guest b is the remote end.
Commands reach it by ssh over a second wire, so that a test may take the adapter
down. Guest a has four more adapters of the same kind, p1 wired to p2 and p3 to
p4, for the tests that look at both ends of a cable (net/forwarding/lib.sh).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from ..errors import LabError
from ..guest import Guest, kernel_trouble
from ..lab import Lab, Options
from ..paths import BUILD, TOP

# The user's name of an adapter, its kind in a lab, and QEMU's device.
NICS = {"qhca": ("qhca", "qhca"), "virtio-net": ("rxe", "virtio-net-pci")}
TREE = "/var/tmp/selftests"
TESTS = f"{TREE}/tools/testing/selftests"
PORTS = 4
# Properties of guest a's adapter that a test needs, by test and adapter. An emulated CPU
# sends the frames that are to be merged one by one. One test sends bursts 0.1 s apart,
# which must not be merged; the other interleaves 512 flows.
PROPERTIES = {
    "drivers/net/gro.py": {"qhca": "gro-hold=70000"},
    "drivers/net/hw/gro_hw.py": {"qhca": "gro-hold=1000000"},
}
# CPUs of both guests, for tests that need more than the usual two. RPS is tested with
# two CPUs that handle no interrupt of the four receive queues.
CPUS = {"drivers/net/hw/toeplitz.py": 6}
USUAL_CPUS = 2
# Addresses of namespaces reached through guest a's adapter.
BEHIND = "fd98::/64"

# Guest b's end of the second wire: sshd with keys made now.
SERVE = """\
set -e
dev=$(basename $(dirname $(grep -l 52:54:00:51:cb:02 /sys/class/net/*/address)))
ip link set $dev up && ip address replace 10.98.0.2/24 dev $dev
install -d -m 700 /run/sshd /run/qhca-ssh
ssh-keygen -q -t ed25519 -N '' -f /run/qhca-ssh/host <<<y >/dev/null
cat >/run/qhca-ssh/authorized
cat >/run/qhca-ssh/config <<END
HostKey /run/qhca-ssh/host
AuthorizedKeysFile /run/qhca-ssh/authorized
PermitRootLogin prohibit-password
UsePAM no
MaxSessions 1000
SetEnv PATH=$PATH
END
/usr/sbin/sshd -f /run/qhca-ssh/config
"""
# Guest a's key; its public half is printed.
KEY = """\
set -e
dev=$(basename $(dirname $(grep -l 52:54:00:51:cb:01 /sys/class/net/*/address)))
ip link set $dev up && ip address replace 10.98.0.1/24 dev $dev
install -d -m 700 /run/qhca-ssh ~/.ssh
ssh-keygen -q -t ed25519 -N '' -f /run/qhca-ssh/key <<<y >/dev/null
cat >~/.ssh/config <<END
Host 10.98.0.2
User root
IdentityFile /run/qhca-ssh/key
ControlPath /run/qhca-ssh/master
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
END
cat /run/qhca-ssh/key.pub
"""
# One connection for all commands: the handshake is slow on an emulated CPU.
CONNECT = "ssh -f -N -o ControlMaster=yes 10.98.0.2 </dev/null >/dev/null 2>&1 && ssh 10.98.0.2 true"
# ethtool_lib.sh looks for link modes in a header. csum.py of 6.12 asks for
# cfg.remote_ifname, which only later kernels' env.py sets. gro.py expects PPPoE in the
# kernel, where Debian has a module. Killing a command of the test library kills its
# shell: bash has become the command by exec, dash waits for it. csum queues 100 frames
# of a page each in a socket, in a buffer that Debian's limit makes too small. iperf3
# yields to the test: rss_ctx.py allows ethtool 0.2 s while 16 streams are running.
# toeplitz.py allows 4 s for ten frames, each from a program that it starts in the peer;
# the library 20 s for bpftrace to start, which compiles its program with LLVM.
# rss_ctx.py of 7.x deletes a rule twice, if a later one has replaced it as the test expects.
# Tests that set the adapter down expect its IPv6 addresses to stay, as on the machines
# of netdev's CI.
UNPACK = f"""\
set -e
mkdir -p {TREE} && tar -x -C {TREE} -f /qhca/build/$1/guest.tar
ln -sf bash /bin/sh
install -D -m 644 {TREE}/include/uapi/linux/ethtool.h /usr/include/linux/ethtool.h
[ ! -e {TREE}/later/usr/sbin/ethtool ] || install {TREE}/later/usr/sbin/ethtool /usr/local/sbin
cp /qhca/lab/selftests/remote_lab.py {TESTS}/drivers/net/lib/py/
env={TESTS}/drivers/net/lib/py/env.py
grep -q remote_ifname $env ||
    sed -i 's/^\\( *\\)self.ifname = .*/&\\n\\1self.remote_ifname = self.env.get("REMOTE_IFNAME")/' $env
sysctl -qw net.core.optmem_max=1000000 net.core.rmem_max=4194304
sysctl -qw net.ipv6.conf.all.keep_addr_on_down=1
sed -i 's/"-T", "4000"/"-T", "20000"/' {TESTS}/drivers/net/hw/toeplitz.py || true
sed -i 's/\\btimeout += 20$/timeout += 200/' {TESTS}/net/lib/py/utils.py
sed -i 's/^ \\{{8\\}}defer(.*delete {{ntuple2}}.*/        if ntuple2 != ntuple: &/' {TESTS}/drivers/net/hw/rss_ctx.py
printf '#!/bin/sh\\nexec nice -n 19 /usr/bin/iperf3 "$@"\\n' >/usr/local/bin/iperf3
chmod 755 /usr/local/bin/iperf3
modprobe -q pppoe || true
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
"""
# The adapters of both ends must have different names.
RENAME = "ip link set $NETDEV down && ip link set $NETDEV name remote0 && qhca-net"
# Undo what a test may have left running, or removed.
TIDY = "pkill -x 'iperf3|socat|nc|csum|tcp_mmap|msg_zerocopy|ncdevmem|toeplitz'; qhca-net; true"


def build(release: str) -> Path:
    """Build the selftests of the kernel that calls itself RELEASE: the tree, on the host."""
    script = str(TOP / "lab" / "build" / "build-selftests")
    built = subprocess.run([script, release], check=False, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        raise LabError(f"the selftests of Linux {release} do not build")
    return Path(built.stdout.strip())


def shared(release: str) -> str:
    """Build them; returns the guest's path of tools/testing/selftests of the tree."""
    return f"/qhca/build/{build(release).relative_to(BUILD)}/tools/testing/selftests"


def wires(nic: str) -> list[str]:
    """QEMU's arguments for the second wire and the further adapters. The second wire's
    has no RSS: rss_ctx.py checks all adapters that have it, and needs a table of each."""
    device = NICS[nic][1]
    args = [
        "-netdev", "dgram,id=ssh,local.type=unix,local.path={dir}/ssh-{name},"
        "remote.type=unix,remote.path={dir}/ssh-{peer}",
        "-device", "e1000e,netdev=ssh,mac=52:54:00:51:cb:0{n},romfile=",
    ]  # fmt: skip
    for port in range(1, PORTS + 1):
        # 1 and 2, 3 and 4
        peer = (port - 1 ^ 1) + 1
        args += [
            "-netdev", f"dgram,id=p{port},local.type=unix,local.path={{dir}}/{{name}}-p{port},"
            f"remote.type=unix,remote.path={{dir}}/{{name}}-p{peer}",
            "-device", f"{device},netdev=p{port},mac={port_mac(port)}",
        ]  # fmt: skip
    return args


def port_mac(port: int) -> str:
    return f"52:54:00:51:cc:0{port}"


class Place:
    """The lab, up and prepared, in a with statement; `release` is the kernel's."""

    def __init__(self, nic: str, say: Callable[[str], None], name: str = "selftests", **options):
        self.nic = nic
        self.say = say
        self.name = name
        self.options = options
        self.lab: Lab | None = None
        self.release = ""
        self.tests: Path | None = None
        self.env: dict[str, str] = {}
        self.ports: list[str] = []
        self.properties = ""
        self.cpus = USUAL_CPUS
        self._marks: dict[str, int] = {}

    @property
    def a(self) -> Guest:
        return self.lab["a"]

    @property
    def b(self) -> Guest:
        return self.lab["b"]

    def __enter__(self) -> Place:
        self.boot()
        return self

    def __exit__(self, *_exc) -> None:
        if self.lab:
            self.lab.down()

    def prepare(self, test: str) -> None:
        """Restart the lab if TEST needs another adapter, or more CPUs."""
        wanted = PROPERTIES.get(test, {}).get(self.nic, ""), CPUS.get(test, USUAL_CPUS)
        if wanted != (self.properties, self.cpus):
            self.properties, self.cpus = wanted
            self.boot()

    def boot(self) -> None:
        """Start the lab, or restart it."""
        if self.lab:
            self.lab.down()
        options = Options(mtu=1500, mem="2G", smp=self.cpus, tied=True, qemu=wires(self.nic),
                          **self.options)
        kind = NICS[self.nic][0]
        nics = [f"{kind}:{self.properties}" if self.properties else kind, kind]
        self.lab = Lab.up(self.name, nics, options, progress=self.say, replace=True)
        self.release = self.a.run("uname -r").out.strip()
        tree = build(self.release)
        self.tests = tree / "tools/testing/selftests"
        where = str(tree.relative_to(BUILD))
        for guest in (self.a, self.b):
            guest.run(["/bin/bash", "-c", UNPACK, "unpack", where], 300)
        self.b.run(RENAME)
        public = self.a.run(KEY).out
        self.b.run(SERVE, 120, input=public)
        self.a.run(CONNECT, 120)
        find = "; ".join(f"grep -l {port_mac(p)} /sys/class/net/*/address"
                         for p in range(1, PORTS + 1))
        self.ports = [line.split("/")[-2] for line in self.a.run(find).out.split()]
        self.env = {
            "NETIF": self.a.environment()["NETDEV"],
            "LOCAL_V4": self.a.ip, "LOCAL_V6": self.a.ip6,
            "REMOTE_V4": self.b.ip, "REMOTE_V6": self.b.ip6,
            "REMOTE_TYPE": "lab", "REMOTE_ARGS": "10.98.0.2",
            "REMOTE_IFNAME": self.b.environment()["NETDEV"],
            "LOCAL_PREFIX_V6": BEHIND,
            # The ports exist: lib.sh need not create any.
            "NETIF_CREATE": "no", "PYTHONUNBUFFERED": "1",
            # An emulated CPU: tests with time limits have longer ones for that.
            "KSFT_MACHINE_SLOW": "yes",
        }  # fmt: skip
        self._mark()
        self.tidy()

    def _mark(self) -> None:
        self._marks = {g.name: len(g.console()) for g in self.lab.guests}

    def tidy(self) -> list[str]:
        """Make the guests ready for the next test; returns the errors of their kernels since
        the last time."""
        for guest in (self.a, self.b):
            guest.run(TIDY, 120)
        self.b.run(f"ip -6 route replace {BEHIND} via {self.a.ip6}")
        # Tests of RSS need more queues than two CPUs get, if the adapter has them.
        self.a.run("ethtool -L $NETDEV combined 4", 120, check=False)
        found = [f"guest {g.name}: {line}" for g in self.lab.guests
                 for line in kernel_trouble(g.console()[self._marks[g.name]:])]
        self._mark()
        return found

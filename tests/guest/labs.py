# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs and guests for the tests: those of qhca_lab, with helpers for tests."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import json
import os
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import Background, Guest, Lab, LabError, Options, Python, Result  # noqa: E402, F401
from qhca_lab import capture as wire_capture  # noqa: E402
from qhca_lab import kernels, machine  # noqa: E402
from qhca_lab import pair as programs  # noqa: E402
from qhca_lab.guest import kernel_trouble  # noqa: E402, F401
from qhca_lab.paths import BUILD  # noqa: E402

# Parallel test runs need different names.
LAB_NAME = os.environ.get("QHCA_TEST_LAB", "test")
# Timeout in seconds for anything that takes a few seconds on an idle host: another host may be ten
# times slower, and busy. Only failures wait that long.
PATIENCE = 120.0


class TestJob(Background):
    """A background command."""

    __test__ = False

    def wait(self, timeout: float = PATIENCE, check: bool = False) -> Result:
        return super().wait(timeout * self.guest.pace, check)

    def wait_for(self, pattern: str, timeout: float = PATIENCE):
        return super().wait_for(pattern, timeout * self.guest.pace)

    def out_so_far(self) -> str:
        return self.stdout


class TestGuest(Guest):
    """A guest with helpers for tests."""

    __test__ = False

    def __init__(self, *args):
        super().__init__(*args)
        self.lab: TestLab | None = None
        self.jobs: list[Background] = []
        self.share = "/qhca/build"
        # The kind alone, without device properties.
        self.nic = self.nic.split(":")[0]
        self._console_at = 0

    def start(self, command, input=b"", env=None, cwd=None, user=None) -> TestJob:
        if isinstance(input, str):
            input = input.encode()
        # for programs and scripts with time limits of their own
        env = {"QHCA_PACE": str(int(self.pace))} | (env or {})
        job = TestJob(self, command, input, {"env": env, "cwd": cwd, "user": user})
        self.jobs = [j for j in self.jobs if j.running] + [job]
        return job

    def run(self, command, timeout=PATIENCE, check=True, **kwargs) -> Result:
        """Run to the end. A failure is an AssertionError with all helpful information."""
        result = self.start(command, **kwargs).wait(timeout)
        if check:
            assert result.rc == 0, (
                f"guest {self.name}: {result.describe()}\n{self.evidence(15)}"
            )
        return result

    @property
    def kernel(self) -> str:
        """Its kernel, as given to `up`."""
        return self.lab.kernel if self.lab else kernels.DEFAULT

    @property
    def pace(self) -> float:
        """Limits apply to the default kernel: the factor for this one."""
        return kernels.kernel(self.kernel).pace

    def seconds(self, limit: int) -> int:
        """LIMIT, which is for the default kernel, as `timeout` takes it."""
        return int(limit * self.pace)

    def _ask(self, what, timeout: float = 60.0) -> str:
        return super()._ask(what, timeout * self.pace)

    def end_jobs(self) -> None:
        """Kill what a test left running."""
        for job in self.jobs:
            job.kill()
        self.jobs = []

    # -------------------------------------------------------------- the adapter

    @property
    def netdev(self) -> str:
        return self.environment()["NETDEV"]

    @property
    def ibdev(self) -> str:
        return self.environment()["IBDEV"]

    @functools.cached_property
    def pci(self) -> str:
        """PCI address of the adapter, as in sysfs. It is unchanged when the adapter is plugged
        again, as the slot is the same."""
        line = "basename $(readlink -f /sys/class/net/$NETDEV/device)"
        if self.nic == "rxe":
            line = "basename $(readlink -f /sys/class/net/$NETDEV/device/..)"
        return self.run(line).out.strip()

    def ethtool_stat(self, name: str) -> int:
        """One counter of `ethtool -S`; KeyError if there is none of that name."""
        for line in self.run("ethtool -S $NETDEV").out.splitlines():
            key, colon, value = line.strip().rpartition(":")
            if colon and key == name:
                return int(value)
        raise KeyError(f"no counter {name} at guest {self.name}")

    def gid_index(self, address: str) -> int | None:
        """Index of the RoCE v2 GID for an IPv4 or IPv6 address, or None."""
        ip = ipaddress.ip_address(address)
        if ip.version == 4:
            ip = ipaddress.ip_address(f"::ffff:{address}")
        gid = ip.packed.hex(":", 2)
        # No program except the shell: starting 64 would take seconds.
        script = (
            "cd /sys/class/infiniband/$IBDEV/ports/1; for i in {0..63}; do "
            f"gid=; read -r gid 2>/dev/null <gids/$i; [ \"$gid\" = {gid} ] || continue; "
            "type=; read -r type 2>/dev/null <gid_attrs/types/$i; "
            '[ "$type" != "RoCE v2" ] || { echo $i; break; }; done'
        )
        text = self.run(script).out.strip()
        return int(text) if text else None

    def wait_gid(self, address: str, timeout: float = PATIENCE) -> int:
        """Wait for the GID of ADDRESS, return its index."""
        return self._until(
            lambda: self.gid_index(address), timeout, f"no GID for {address}", some=True
        )

    def wait_no_gid(self, address: str, timeout: float = PATIENCE) -> None:
        """Wait until ADDRESS has no GID."""
        self._until(
            lambda: self.gid_index(address) is None, timeout, f"GID of {address} stays"
        )

    def setup_nic(self, timeout: float = PATIENCE) -> None:
        """Restore addresses and MTU of the boot, after the interface was recreated."""
        self._until(
            lambda: "NETDEV" in self.environment(), timeout, "no network interface"
        )
        self.run("qhca-net", timeout)
        self.wait_gid(self.ip)

    def health(self, reporter: str) -> dict:
        """The state of one devlink health reporter."""
        out = self.run(f"devlink -j health show pci/{self.pci} reporter {reporter}").out
        (entries,) = json.loads(out)["health"].values()
        return entries[0]

    @contextlib.contextmanager
    def health_set(self, reporter: str, **settings):
        """Settings of devlink health, restored after the block."""
        before = self.health(reporter)

        def put(values):
            for name, value in values.items():
                text = str(value).lower()
                self.run(f"devlink health set pci/{self.pci} reporter {reporter} {name} {text}")

        put(settings)
        try:
            yield
        finally:
            put({name: before[name] for name in settings})

    @property
    def build(self) -> str:
        """The guest's path of what is built for its kernel: driver/, guest-modules/."""
        return f"/qhca/build/{self.driver.parent.relative_to(BUILD)}"

    def load_driver(self, *parameters: str) -> None:
        """Load qhca.ko and qhca_ib.ko; parameters as MODULE.NAME=VALUE."""
        self.run(["/qhca/lab/bin/qhca-load", *parameters])

    # ------------------------------------------------------------------ waiting

    def _until(self, question, timeout: float, complaint: str, some: bool = False):
        deadline = time.monotonic() + timeout * self.pace
        while True:
            answer = question()
            if answer if not some else answer is not None:
                return answer
            assert time.monotonic() < deadline, (
                f"guest {self.name}: {complaint} within {timeout} s\n{self.evidence()}"
            )
            time.sleep(0.1)

    def wait_for(self, command: str, timeout: float = PATIENCE) -> None:
        """Wait until a shell command succeeds."""
        loop = f"until ( {command} ) >/dev/null 2>&1; do sleep 0.1; done"
        self.run(loop, timeout)

    def wait_port(self, ip: str, port: int, timeout: float = PATIENCE) -> None:
        """Wait until a server listens on PORT at the guest with address IP."""
        guests = self.lab.guests if self.lab else [self]
        owner = next((g for g in guests if ip in (g.ip, g.ip6)), self)
        owner.wait_listening(port, timeout)

    # ------------------------------------------------------------------- kernel

    def checkers_off(self) -> list[str]:
        """The checkers of the kernel "debug" that no longer work, as after a report."""
        if self.pace == 1:
            return []
        try:
            return self.run("\n".join(f"( {works} ) >/dev/null 2>&1 || echo {name}"
                                      for name, works in CHECKERS.items())).out.split()
        except (AssertionError, LabError):
            return ["all of it"]

    def dmesg_mark(self) -> None:
        """Set the start for dmesg_since_mark()."""
        self._console_at = len(self.console())

    def dmesg_since_mark(self) -> str:
        """Kernel messages on the console (warnings and worse)."""
        return self.console()[self._console_at :]


def run_pair(server: TestGuest, client: TestGuest, line: str, client_line: str | None = None,
             timeout: float = 120) -> tuple[Result, Result]:
    """Run a server and its client, by default LINE followed by the server's address. Both
    must succeed; returns their results."""
    return programs.run_checked(server.lab, (server.name, line),
                                (client.name, client_line or f"{line} {server.ip}"),
                                timeout * server.pace)


def check_rping(result: Result) -> None:
    """rping has succeeded up to its end, which is a race (rdma-core 56.1): its thread for
    events ends it with -1 if it asks for another one after main() has closed the channel."""
    late = result.rc == 255 and result.err.endswith("rdma_get_cm_event: Bad file descriptor\n")
    assert result.rc == 0 or late, result.describe()


@contextlib.contextmanager
def vlan(pair, family: int = 4, net: int = 98, protocol: str = "802.1Q"):
    """VLAN 42 over both netdevs, v42, with addresses in the network @net; b's address."""
    prefix = f"10.{net}.0." if family == 4 else f"fd{net}::"
    length = "24" if family == 4 else "64 nodad"
    try:
        for number, guest in enumerate((pair.a, pair.b), 1):
            guest.run(f"ip link add link {guest.netdev} name v42 type vlan "
                      f"protocol {protocol} id 42 && "
                      f"ip addr add {prefix}{number}/{length} dev v42 && ip link set v42 up")
        yield f"{prefix}2"
    finally:
        for guest in (pair.a, pair.b):
            guest.run("ip link del v42", check=False)


class Trace:
    """Lines of trace events, filled when the with block ends."""

    def __init__(self):
        self.lines: list[str] = []


class TestLab(Lab):
    """A lab with .a, .b and shared helpers for tests."""

    __test__ = False
    guest_class = TestGuest

    def __init__(self, state, directory):
        super().__init__(state, directory)
        self.mtu_was_set = False
        for guest in self.guests:
            guest.lab = self
            setattr(self, guest.name, guest)

    def __iter__(self):
        return iter(self.guests)

    def qmp(self, guest: str, command: str, **arguments):
        """Run a QMP command at a guest's QEMU."""
        arguments = {k.replace("_", "-"): v for k, v in arguments.items()}
        with self[guest].qmp() as qmp:
            return qmp.command(command, arguments)

    def hmp(self, guest: str, line: str) -> str:
        """Run a line of QEMU's human monitor."""
        return self.qmp(guest, "human-monitor-command", command_line=line)

    def set_link(self, guest: str, up: bool) -> None:
        """Plug or pull the cable of a guest."""
        self.qmp(guest, "set_link", name="nic0", up=up)

    def set_mtu(self, mtu: int) -> None:
        """Set the MTU of all interfaces, until the test ends."""
        self.mtu_was_set = True
        jobs = [guest.start(f"ip link set $NETDEV mtu {mtu}") for guest in self.guests]
        for job in jobs:
            job.wait(check=True)

    def reset_mtu(self) -> None:
        """Restore the interfaces' MTU of the boot, if a test has changed it."""
        if self.mtu_was_set:
            self.set_mtu(Options().mtu)
            self.mtu_was_set = False

    def unplug(self, guest: str, timeout: float = PATIENCE) -> None:
        """Pull the adapter out of a running guest; waits until it is gone."""
        with self[guest].qmp() as qmp:
            qmp.command("device_del", {"id": "nic0"})
            qmp.wait_event("DEVICE_DELETED", timeout)

    def plug(self, guest: str) -> None:
        """Put the adapter back."""
        with self[guest].qmp() as qmp:
            machine.plug(qmp, self[guest].state)

    @contextlib.contextmanager
    def trace(self, guest: str, pattern: str = "qhca_*"):
        """Trace events of a guest's QEMU while the block runs."""
        target = self[guest]
        trace = Trace()
        at = len(target.qemu_log())
        state = {"name": pattern}
        with target.qmp() as qmp:
            qmp.command("trace-event-set-state", dict(state, enable=True))
        try:
            yield trace
        finally:
            with target.qmp() as qmp:
                qmp.command("trace-event-set-state", dict(state, enable=False))
            trace.lines += target.qemu_log()[at:].splitlines()

    @contextlib.contextmanager
    def capture(self, path):
        """Capture the wire's frames in the block to a pcapng file."""
        wire_capture.start(self)
        try:
            yield
        finally:
            wire_capture.stop(self, Path(path))

    def healthy(self) -> bool:
        """Do all guests respond, with their adapter in place?"""
        try:
            for guest in self.guests:
                if guest.nic == "none":
                    guest.run("true", 60)
                elif "GIDX" not in guest.environment(60):
                    return False
            return True
        except (AssertionError, LabError):
            return False


# QEMU without the device's observers: lab/build/build-qemu-bare.
BARE = BUILD / "bin" / "qemu-system-x86_64-bare"

RECIPES = {
    # name: (adapters, options); in the order in which the tests run
    "rxe_pair": (["rxe", "rxe"], {}),
    "pair": (["qhca", "qhca"], {}),
    "mixed": (["qhca", "rxe"], {}),
    "iommu_pair": (["qhca", "qhca"], {"iommu": True}),
    "swiotlb_iommu_pair": (["qhca", "qhca"], {"iommu": True, "append": ["swiotlb=force"]}),
    "swiotlb_pair": (["qhca", "qhca"], {"append": ["swiotlb=force"]}),
    "loss_pair": (["qhca", "qhca"], {"loss": 1.0, "seed": 7}),
    "big": (["qhca"], {"mem": "2G"}),
    "trio": (["qhca", "qhca", "qhca"], {}),
    # Without memory links.
    "wire_pair": (["qhca", "qhca"], {"link": "dgram"}),
    # For tests that unplug or break the adapter: they leave a working one, but if one fails, tests
    # of "pair" are not affected.
    "rough_pair": (["qhca", "qhca"], {}),
    "newest_pair": (["qhca", "qhca"], {"kernel": "newest"}),
    "bare_pair": (["qhca", "qhca"], {"binary": str(BARE)}),
    "debug_pair": (["qhca", "qhca"], {"kernel": "debug", "mem": "2G"}),
}


def lacks(option: str) -> bool:
    """Was the kernel that labs boot built without OPTION ("CONFIG_...")? Then a test
    that needs it is skipped. Always False for the default kernel, where tests fail."""
    kernel = kernels.kernel(kernels.usual())
    if not kernel.name:
        return False
    config = (kernel.folder / "headers" / ".config").read_text().splitlines()
    return f"{option}=y" not in config and f"{option}=m" not in config


def build(*command: str) -> None:
    """Run a COMMAND of the checkout that builds something; quick if that exists already."""
    done = subprocess.run(command, cwd=TOP, check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")


def build_bare() -> None:
    """Link the built QEMU without the observers, which takes seconds."""
    build("lab/build/build-qemu-bare")


def build_nodebug(kernel: str) -> None:
    """The driver for KERNEL without debugging code, in the folder nodebug of its build."""
    what = [] if kernel == kernels.DEFAULT else ["--kernel", kernel]
    build("lab/build/build-driver", *what, "--nodebug")


def build_kernel(what: str) -> kernels.Kernel:
    """`make kernel` for WHAT, quick if it is built."""
    build("make", "-s", "kernel", f"KERNEL={what}")
    return kernels.kernel(what)


# Checkers of the kernel "debug" that can turn themselves off, and what succeeds while they work.
CHECKERS = {
    "lockdep": "grep 'debug_locks: *1' /proc/lockdep_stats",
    "dma-api": "grep N /sys/kernel/debug/dma-api/disabled",
    # as it is already; refused once it is off
    "kmemleak": "echo stack=on >/sys/kernel/debug/kmemleak",
}


class Manager:
    """Keeps one lab up, and replaces it if a test needs another."""

    def __init__(self, say):
        self.say = say
        self.kind: str | None = None
        self.lab: TestLab | None = None
        self.failed: dict[str, str] = {}
        # What kernels have reported while their labs ended.
        self.late: list[str] = []

    def get(self, kind: str) -> TestLab:
        """The lab of KIND, booted when it is not the one that is up. What kernels report from
        now on, or while they boot, belongs to the next test."""
        if self.lab and self.kind != kind:
            self.drop()
        if self.lab and not all(g.alive for g in self.lab):
            self.say(f"lab {kind}: a guest has died; starting anew")
            self.drop(check=False)
        if not self.lab:
            if kind in self.failed:
                raise LabError(f"the lab {kind} did not boot before: {self.failed[kind]}")
            nics, options = RECIPES[kind]
            if kernels.kernel(options.get("kernel", kernels.usual())).pace > 1:
                options = {"mem": "2G"} | options       # its checkers need memory
            self.say(f"lab {kind}: booting {' and '.join(nics)} ...")
            begin = time.monotonic()
            try:
                if "kernel" in options:
                    build_kernel(options["kernel"])
                if options.get("binary") == str(BARE):
                    build_bare()
                self.lab = TestLab.up(LAB_NAME, nics, Options(tied=True, **options), replace=True)
            except LabError as error:
                self.failed[kind] = str(error).splitlines()[0]
                raise
            self.kind = kind
            for guest in self.lab if self.lab.a.pace > 1 else ():
                # By default only the first error is reported, and that may be a false alarm.
                guest.run("echo 1 >/sys/kernel/debug/dma-api/all_errors")
            self.say(f"lab {kind}: up after {time.monotonic() - begin:.0f} s")
        elif self.lab.a.pace == 1:
            # The end of what a test may have provoked; such tests are rare with "debug".
            for guest in self.lab:
                guest.dmesg_mark()
        return self.lab

    def after_failure(self) -> None:
        """A test has failed: is the lab still usable for the next one?"""
        if self.lab and not self.lab.healthy():
            self.say(f"lab {self.kind}: not well after a failure; starting anew")
            self.drop(check=False)

    def drop(self, check: bool = True) -> None:
        """Take the lab down. With CHECK, what its kernels report until then goes to `late`: with
        "debug" also about the driver's end."""
        kind, lab, self.lab, self.kind = self.kind, self.lab, None, None
        if not lab:
            return
        try:
            for guest in lab if check and lab.a.pace > 1 else ():
                if guest.nic == "qhca":
                    guest.run("qhca-unload")
                self.late += [f"lab {kind}, guest {guest.name}, at its end: {line}"
                              for line in kernel_trouble(guest.dmesg_since_mark())]
        except (AssertionError, LabError) as error:
            self.late.append(f"lab {kind}, at its end: {str(error).splitlines()[0]}")
        finally:
            lab.down()

# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMU command line of a guest."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from . import kernels, tsc
from .channel import PORTS
from .errors import LabError
from .memory import size_of
from .paths import BUILD, GUEST, QEMU, TOP
from .qmp import SPARE, Qmp

# Kernel arguments: no mitigations, no hooks of security modules, no accounting of
# memory, pages that are not cleared twice and expedited grace periods because an
# emulated CPU pays dearly for them; warnings reach the console.
KERNEL_ARGS = (
    "console=ttyS0 root=/dev/vda rw net.ifnames=0 loglevel=5 mitigations=off "
    "rcupdate.rcu_expedited=1 tsc=reliable no_timer_check audit=0 "
    "lsm=capability cgroup_disable=memory init_on_alloc=0 "
    "systemd.show_status=0 panic=0"
)


# All features of TCG, except those that make it slow: a kernel and a libc that detect
# fast string instructions copy and clear by them, and TCG executes these byte by byte
# (a pipe: 175 MiB/s instead of 650). Tables of five levels take longer to walk.
TCG_CPU = "max,la57=off,svm=off,erms=off,fsrm=off,fzrm=off,fsrs=off,fsrc=off"
MACHINE = "q35,usb=off,sata=off,smbus=off,hpet=off"


def mac_of(number: int) -> str:
    """MAC address of guest NUMBER (1, 2, ...); locally administered."""
    return f"52:54:00:51:ca:{number:02x}"


def accelerator(accel: str) -> list[str]:
    """QEMU's arguments for ACCEL, as chosen by accel.py."""
    if accel == "tcg":
        return ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", TCG_CPU]
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", accel]


def split_nic(spec: str) -> tuple[str, list[str]]:
    """'qhca:prop=value:prop=value' -> ('qhca', ['prop=value', ...])."""
    kind, *properties = spec.split(":")
    return kind, properties


def settings(guest: dict, options) -> dict[str, str]:
    """The parameters of a guest."""
    told = {
        "name": guest["name"],
        "nic": split_nic(guest["nic"])[0],
        "mac": guest["mac"],
        "ip": guest["ip"],
        "ip6": guest["ip6"],
        "mtu": str(options.mtu),
    }
    kernel = kernels.kernel(options.kernel)
    # The guest's paths, in which it looks.
    if options.software:
        other = f"/qhca/build/{Path(options.software).relative_to(BUILD)}"
        told |= {"driver": f"{other}/driver", "provider": f"{other}/provider"}
    elif kernel.name:
        told["driver"] = f"/qhca/build/{kernel.driver.relative_to(BUILD)}"
    if options.load:
        told["load"] = ",".join(options.load)
    return told


def kernel_arguments(guest: dict, options) -> str:
    """The whole kernel command line of a guest."""
    words = [KERNEL_ARGS]
    # With -icount a guest's counter counts instructions.
    if options.accel.split(",")[0] == "tcg" and "icount" not in {word.lstrip("-") for word in options.qemu}:
        frequency = tsc.khz()
        words += [f"tsc_early_khz={frequency}"] if frequency else []
    if options.iommu:
        words.append("intel_iommu=on iommu.passthrough=0 iommu.strict=1")
    words += [f"qhcalab.{k}={v}" for k, v in settings(guest, options).items()]
    words += options.append
    return " ".join(words)


def share(tag: str, path: Path, readonly: bool) -> list[str]:
    """A 9p share; the guest mounts it at /qhca/TAG."""
    options = f"local,id=fs-{tag},path={path},security_model=none,multidevs=remap"
    if readonly:
        options += ",readonly=on"
    return [
        "-fsdev",
        options,
        "-device",
        f"virtio-9p-pci,fsdev=fs-{tag},mount_tag=qhca-{tag}",
    ]


def adapter_properties(binary: str | None = None) -> set[str]:
    """The names of the properties that the qhca of this tree's QEMU, or of BINARY, has;
    none if it has no qhca. OSError if it cannot be started."""
    done = subprocess.run([binary or str(QEMU), "-device", "qhca,help"], check=False,
                          capture_output=True, text=True)
    return set(re.findall(r"^ +([\w.-]+)=", done.stdout, re.M))


def nic_device(guest: dict) -> list[str]:
    """The adapter on the lab's wire, as an argument of QEMU's."""
    kind, properties = split_nic(guest["nic"])
    if kind == "none":
        return []
    device = {"qhca": "qhca", "rxe": "virtio-net-pci"}[kind]
    parts = [device, "id=nic0", "netdev=net0", f"mac={guest['mac']}", "bus=rp0"]
    if kind == "rxe":
        parts.append("romfile=")
    patience = os.environ.get("QHCA_MIN_ACK_TIMEOUT")
    if kind == "qhca" and patience:
        parts.append(f"min-ack-timeout={patience}")
    if kind == "qhca" and guest.get("super_frames"):
        parts.append("super-frames=on")
    if kind == "qhca" and guest.get("memlink"):
        parts.append(f"memlink={guest['memlink']}")
    return ["-device", ",".join(parts + properties)]


def plug(qmp: Qmp, guest: dict) -> None:
    """Plug the adapter of GUEST, if any, into its machine. By the human monitor, which
    accepts properties in the form of the command line."""
    for device in nic_device(guest)[1:]:
        said = qmp.command("human-monitor-command", {"command-line": f"device_add {device}"})
        if said.strip():
            raise LabError(f"guest {guest['name']}: {said.strip()}")


# At this port the adapter can be unplugged, and be plugged into a guest that
# booted without one: the firmware leaves room for its BARs.
PORT = "pcie-root-port,id=rp0,chassis=1,slot=1,mem-reserve=2M,pref32-reserve=512M"


def drive(saved: Path | None, disk: Path | None) -> str:
    """The guest's disk: its writes are discarded, unless DISK is given."""
    common = "if=none,id=root,cache=unsafe"
    if disk:
        return f"file={disk},format=qcow2,{common}"
    if saved:
        return f"file={saved},format=qcow2,{common},snapshot=on"
    return f"file={(GUEST / 'root.img').resolve()},format=raw,{common},snapshot=on"


def memory(guest: dict, size: str, fd: int | None) -> list[str]:
    """The guest's memory: the file FD, for a guest that is saved, or starts from a saved
    one. Peers of a memory link map it."""
    if fd is not None:
        backend = f"memory-backend-file,mem-path=/proc/self/fd/{fd}"
    elif guest.get("memlink"):
        backend = "memory-backend-memfd"
    else:
        return ["-m", size]
    # Without a unit "-m" means MiB, but "size" bytes.
    return ["-object", f"{backend},id=pc.ram,size={size_of(size) or size},share=on",
            "-machine", "memory-backend=pc.ram", "-m", size]


def command_line(
    guest: dict, netdev: list[str], directory: Path, logs: Path, options,
    saved: Path | None = None, disk: Path | None = None, memory_fd: int | None = None,
) -> list[str]:  # fmt: skip
    """All of QEMU's arguments for GUEST (a state dictionary). With SAVED, the
    disk of a saved guest, it waits for that guest's state, and has no adapter
    yet. With DISK it writes to that image. MEMORY_FD is a file for its memory."""
    machine = MACHINE
    if options.iommu and options.accel == "kvm":
        machine += ",kernel-irqchip=split"
    args = [options.binary or str(QEMU),
            # Threads have names for sched.py, gdb and top.
            "-name", f"qhca-{guest['name']},debug-threads=on", "-machine", machine]
    args += accelerator(options.accel)
    args += ["-smp", str(options.smp)] + memory(guest, str(options.mem), memory_fd)
    args += ["-nodefaults", "-no-user-config", "-display", "none"]
    kernel = kernels.kernel(options.kernel)
    args += ["-kernel", str(kernel.vmlinuz), "-initrd", str(kernel.initrd)]
    args += ["-append", kernel_arguments(guest, options)]
    if options.iommu:
        args += ["-device", "intel-iommu,intremap=on"]
    args += [
        "-drive",
        drive(saved, disk),
        "-device",
        "virtio-blk-pci,drive=root",
        "-chardev",
        f"file,id=console,path={logs / 'console.log'}",
        "-serial",
        "chardev:console",
        "-qmp",
        f"unix:{directory / 'qmp'},server=on,wait=off",
        "-device",
        "virtio-rng-pci",
        "-device",
        f"virtio-serial-pci,max_ports={PORTS + 1}",
    ]
    for number in range(1, SPARE + 1):
        args += ["-qmp", f"unix:{directory / f'qmp{number}'},server=on,wait=off"]
    for number in range(PORTS):
        args += [
            "-chardev",
            f"socket,id=port{number},path={directory / f'port{number}'},"
            "server=on,wait=off",
            "-device",
            f"virtserialport,chardev=port{number},name=qhca.{number}",
        ]
    args += share("lab", TOP / "lab" / "guest", True)
    args += share("build", BUILD.resolve(), True)
    args += share("share", Path(options.share or directory / "share").resolve(), False)
    if kernel.modules:
        # All other devices keep the slots that they have without it.
        args += ["-drive", f"file={kernel.modules},format=raw,if=none,id=modules,readonly=on",
                 "-device", "virtio-blk-pci,drive=modules,addr=1d"]
    args += netdev + ["-device", PORT]
    args += ["-incoming", "defer", "-S"] if saved else nic_device(guest)
    words = {"name": guest["name"], "n": str(guest["number"]), "dir": str(directory.parent)}
    # The other one of two guests, for a second wire between them.
    words["peer"] = {"a": "b", "b": "a"}.get(guest["name"], "nobody")
    for word in options.qemu:
        for key, value in words.items():
            word = word.replace("{" + key + "}", value)
        args.append(word)
    return args

# SPDX-License-Identifier: GPL-2.0-or-later
"""What executes the guests' instructions: KVM where it works, else TCG.

An openable /dev/kvm is not enough: under some hypervisors a KVM guest stops in its
first instructions. So a trial guest is booted: the lab's kernel and initramfs, with
busybox as init, which prints a word on the console. The result is cached until the
host reboots, for this kernel, QEMU and CPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from . import kernels, machine, per_boot, process
from .paths import BUILD, QEMU

AUTO = "auto"
KVM = Path("/dev/kvm")
CPUINFO = Path("/proc/cpuinfo")
KEPT = BUILD / "accel.json"

# What the trial guest prints when its first process runs.
WORD = "qhca-lab: user space"
# Init is busybox with the arguments "echo WORD"; then init exits, and the kernel panics.
TRIAL_ARGS = f'loglevel=7 panic=-1 rdinit=/bin/busybox -- echo "{WORD}"'
# A trial guest hangs if its console is silent for this many seconds; limit for the whole
# trial. Where KVM works, a guest takes one second.
SILENCE = 10.0
LIMIT = 60.0
# QEMU stops such a guest, but keeps running.
BROKEN = re.compile(r"KVM internal error.*|KVM: entry failed.*|error: kvm run failed.*")
# A line of the console without its time stamp.
STAMP = re.compile(r"^\[ *\d+\.\d+\] *")


@dataclasses.dataclass(frozen=True)
class Choice:
    """The accelerator NAME, as for QEMU's -accel, and why it was chosen."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name.split(',')[0].upper()} ({self.why})"


def wanted() -> str:
    """The accelerator that $QHCA_ACCEL requests; without it, test."""
    return os.environ.get("QHCA_ACCEL") or AUTO


def choose(options, say=lambda _text: None) -> Choice:
    """The accelerator for a lab with OPTIONS. SAY is called if this takes a while."""
    if options.accel != AUTO:
        return Choice(options.accel, "QHCA_ACCEL")
    why = _closed()
    if not why:
        why = _tried(options, say)
    return Choice("tcg", f"KVM: {why}") if why else Choice("kvm", "a trial guest booted")


def _closed() -> str:
    """Why /dev/kvm cannot even be opened, or ""."""
    try:
        os.close(os.open(KVM, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{KVM}: {error.strerror}"
    return ""


def _tried(options, say) -> str:
    """The cached or new result of trial() for OPTIONS and this boot of the host: "" or why not."""
    qemu = Path(options.binary or QEMU)
    kernel = kernels.kernel(options.kernel)
    key = _key(qemu, kernel)
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    # A second program waits for the first one's result.
    with open(KEPT.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = _kept()
        if key not in kept:
            say("testing whether a guest boots under KVM (once per boot of this host)")
            kept[key] = trial(qemu, kernel)
            per_boot.store(KEPT, answers=kept)
        return kept[key]


def _kept() -> dict[str, str]:
    """The cached results of this boot of the host."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return dict(per_boot.load(KEPT)["answers"])
    return {}


def _key(qemu: Path, kernel: kernels.Kernel) -> str:
    """What the result depends on, besides the boot of the host."""
    cpu = next((line for line in CPUINFO.read_text().splitlines()
                if line.startswith("model name")), "")
    # If it is our wrapper, what that runs. None of them is read: that takes too long.
    real = qemu.with_name(qemu.name + ".real")
    files = []
    for path in (real if real.exists() else qemu, kernel.vmlinuz, kernel.initrd):
        info = path.stat()
        files.append(f"{path.resolve()} {info.st_size} {info.st_mtime_ns}")
    return hashlib.sha256("\n".join([cpu, *files]).encode()).hexdigest()[:16]


def command_line(qemu: Path, kernel: kernels.Kernel, console: Path) -> list[str]:
    """QEMU's arguments for a trial guest: a smaller version of a lab's guest."""
    return [
        str(qemu), "-name", "qhca-trial", "-machine", machine.MACHINE,
        *machine.accelerator("kvm"), "-smp", "2", "-m", "256M",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(kernel.vmlinuz), "-initrd", str(kernel.initrd),
        "-append", f"{machine.KERNEL_ARGS} {TRIAL_ARGS}",
        "-chardev", f"file,id=console,path={console}", "-serial", "chardev:console",
    ]  # fmt: skip


def trial(qemu: Path, kernel: kernels.Kernel) -> str:
    """Boot a guest under KVM: "" if it booted, otherwise why it did not."""
    with tempfile.TemporaryDirectory(prefix="qhca-trial-") as name:
        console, log = Path(name, "console"), Path(name, "qemu.log")
        with open(log, "wb") as f:
            child = process.spawn(command_line(qemu, kernel, console), True, stdout=f, stderr=f)
        try:
            return _watch(child, console, log)
        finally:
            child.kill()
            child.wait()


def _watch(child: subprocess.Popen, console: Path, log: Path) -> str:
    """Until the guest has printed its word, QEMU or the guest has ended, or the console
    is silent."""
    begin = heard = time.monotonic()
    size = 0
    while True:
        # Checked first: then all output of a QEMU that has ended is there.
        ended = child.poll() is not None
        said, complaint = _text(console), _text(log)
        # The kernel shows its command line, too, but not at the start of a line.
        if re.search(f"^{re.escape(WORD)}", said, re.MULTILINE):
            return ""
        now = time.monotonic()
        if len(said) > size:
            size, heard = len(said), now
        broken = BROKEN.search(complaint)
        if broken:
            return f"the trial guest did not boot: {broken[0].strip()}"
        if ended:
            return f"the trial guest did not boot: {_last(complaint) or 'QEMU ended'}"
        if now - heard > SILENCE or now - begin > LIMIT:
            last = STAMP.sub("", _last(said))
            return ("the trial guest did not boot: it hung " +
                    (f"after '{last}'" if last else "before its kernel printed anything"))
        time.sleep(0.02)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _last(text: str) -> str:
    """The last line of TEXT, shortened to fit a line of output."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else ""

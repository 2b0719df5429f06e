# SPDX-License-Identifier: GPL-2.0-or-later
"""Booted guests kept in files, so that a lab starts in seconds.

One guest without an adapter and without a name is booted once and stopped, and
its memory, devices and disk are saved. Each guest of a lab starts as a copy of
it: its memory is filled in, QEMU loads the devices' state, the adapter is
plugged in, and the guest gets its own name, addresses, time and random numbers.
Only then is the driver loaded, so a new build of driver or provider needs no
new boot.

A saved guest is used only if its inputs are unchanged: its folder's name is a
hash of the build of QEMU, the image, the command line, the guest's own programs
and this recipe. The folders below build/saved may be removed at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from pathlib import Path

from . import elf, initrd, machine, memory, process, qcow2
from .errors import LabError
from .guest import Guest
from .memory import Memory, size_of
from .paths import BUILD, GUEST, QEMU, TOP

HOME = BUILD / "saved"
# How many different ones are kept; each takes some 300 MB.
KEEP = 6
# Seconds for QEMU to write or to load a guest's state, on a very slow host.
PATIENCE = 120.0

# The state of a guest that is saved: it is idle, and no folder of the host is mounted,
# because QEMU refuses to save such a guest. The modules that every adapter's driver
# needs are loaded.
SETTLE = """\
set -e
modprobe -a ib_uverbs rdma_ucm
until systemctl list-jobs | grep -q '^No jobs'; do sleep 0.1; done
udevadm settle
umount /qhca/lab /qhca/build /qhca/share
rm /run/qhca-boot.log
sync
"""


def usable(options) -> bool:
    """May a lab with these options start from a saved guest? Not with further
    arguments for QEMU, which may be anything, or a memory that is more than a
    size; and only under TCG: a guest boots in a second or two under KVM."""
    return not (
        options.cold
        or options.qemu
        or options.binary
        or options.software
        or options.accel != "tcg"
        or not size_of(str(options.mem))
    )


def _qemu_build() -> str:
    """The build ID of QEMU: it identifies source, compiler and options."""
    real = QEMU.with_name(QEMU.name + ".real")
    _address, note = elf.build_id(real if real.exists() else QEMU)
    if not note:
        raise LabError(f"{real} has no build ID: build QEMU with 'make qemu'")
    return note.hex()


def _recipe() -> bytes:
    """Our files in the guest's memory, and the code that puts them there."""
    files = sorted(initrd.tree(TOP / "lab" / "guest", "lab").values())
    files += [Path(__file__), Path(machine.__file__), Path(memory.__file__)]
    return b"".join(p.name.encode() + b"\0" + p.read_bytes() for p in files)


def _blank() -> dict:
    """The state of a guest that has no identity yet."""
    return {
        "name": "saved", "number": 0, "nic": "none", "mac": machine.mac_of(0),
        "ip": "", "ip6": "",
    }  # fmt: skip


class Saved:
    """A saved guest, for one lab with OPTIONS: the files "memory", "state" and "disk.qcow2"
    in DIRECTORY."""

    def __init__(self, directory: Path, options):
        self.dir = directory
        self._options = options
        self._memories: dict[str, Memory] = {}

    def files(self, guest: Guest) -> dict:
        """Disk and memory of GUEST, which starts from it, for machine.command_line()."""
        with _told(f"guest {guest.name} has no memory"):
            own = self._memories[guest.name] = Memory(size_of(str(self._options.mem)))
        return {"saved": self.dir / "disk.qcow2", "memory_fd": own.fd}

    def close(self) -> None:
        """Close the guests' memories, which their QEMUs have opened."""
        while self._memories:
            self._memories.popitem()[1].close()

    def load(self, guests: list[Guest]) -> None:
        """Turn GUESTS, whose QEMUs wait for a guest's state, into running guests of the lab;
        the caller must still wait for boot's verdict."""
        deadline = time.monotonic() + PATIENCE
        with contextlib.ExitStack() as stack:
            monitors = [stack.enter_context(g.qmp(PATIENCE)) for g in guests]
            for guest, qmp in zip(guests, monitors):
                # QEMU has made the machine and does not write to its memory any more.
                with _told(f"guest {guest.name} could not be loaded"):
                    self._memories[guest.name].fill_from(self.dir / "memory")
                _leave_memory(qmp, True)
                qmp.command("migrate-incoming", {"uri": f"file:{self.dir / 'state'}"})
            for guest, qmp in zip(guests, monitors):
                _wait_migrated(qmp, deadline, f"guest {guest.name} could not be loaded")
                _leave_memory(qmp, False)
                machine.plug(qmp, guest.state)
                qmp.command("cont")
                self._resume(guest, self._options)

    @staticmethod
    def _resume(guest: Guest, options) -> None:
        guest.resume({
            "settings": machine.settings(guest.state, options),
            "entropy": secrets.token_hex(64),
            "now": time.time(),
        })  # fmt: skip


def _leave_memory(qmp, yes: bool) -> None:
    """Shall QEMU neither save nor load memory that is a shared file?"""
    state = {"capability": "x-ignore-shared", "state": yes}
    qmp.command("migrate-set-capabilities", {"capabilities": [state]})


@contextlib.contextmanager
def _told(complaint: str):
    """An error of the host's files as one of the lab's."""
    try:
        yield
    except OSError as error:
        raise LabError(f"{complaint}: {error}") from error


def _wait_migrated(qmp, deadline: float, complaint: str) -> None:
    while True:
        info = qmp.command("query-migrate")
        if info.get("status") == "completed":
            return
        if info.get("status") in ("failed", "cancelled") or time.monotonic() > deadline:
            raise LabError(f"{complaint}: {info.get('error-desc', info.get('status'))}")
        time.sleep(0.005)


@contextlib.contextmanager
def _lock(how: int):
    HOME.mkdir(parents=True, exist_ok=True)
    with open(HOME / ".lock", "w") as f:
        fcntl.flock(f, how)
        yield


@contextlib.contextmanager
def guest_for(options, boot, say):
    """In a with statement: the saved guest for a lab with OPTIONS, None if such
    a lab has to boot. If none fits, one is made: then BOOT(options, state,
    disk=..., memory_fd=...) has to boot a guest. SAY is called with a message
    about it."""
    if not usable(options):
        yield None
        return
    # Settings that a guest gets only when it resumes.
    plain = dataclasses.replace(options, mtu=9000, load=[], share=None, tied=True)
    directory = HOME / _key(plain)
    if not (directory / "memory").exists():
        with _lock(fcntl.LOCK_EX):
            if not (directory / "memory").exists():
                _make(directory, plain, boot, say)
                _evict(directory)
    # The lock keeps it from being removed while it is being loaded.
    with _lock(fcntl.LOCK_SH):
        os.utime(directory)
        saved = Saved(directory, options)
        try:
            yield saved
        finally:
            saved.close()


def _key(options) -> str:
    place = Path("/")
    args = machine.command_line(_blank(), [], place, place, options)
    image = [f"{p}:{(GUEST / p).resolve()}" for p in ("vmlinuz", "initrd", "root.img")]
    # The arguments contain another kernel by a name that identifies its contents.
    text = json.dumps([args, image, _qemu_build()]).encode()
    return hashlib.sha256(text + _recipe()).hexdigest()[:16]


def _make(directory: Path, options, boot, say) -> None:
    """Boot a guest and save it as DIRECTORY."""
    begin = time.monotonic()
    say("booting the guest from which labs start (once, until its contents change)")
    new = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    own = None
    try:
        with _told("the guest has no memory"):
            own = Memory(size_of(str(options.mem)))
        disk = new / "disk.qcow2"
        qcow2.create(disk, (GUEST / "root.img").resolve())
        guest = boot(options, _blank(), disk=disk, memory_fd=own.fd)
        try:
            guest.run(SETTLE, PATIENCE)
            with guest.qmp(PATIENCE) as qmp:
                qmp.command("stop")
                _leave_memory(qmp, True)
                qmp.command("migrate", {"uri": f"file:{new / 'state'}"})
                _wait_migrated(qmp, time.monotonic() + PATIENCE, "the guest could not be saved")
                with _told("the guest could not be saved"):
                    own.write_to(new / "memory")
                qmp.quit()
        finally:
            process.end(guest.state["process"])
        new.rename(directory)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    finally:
        if own:
            own.close()
    say(f"saved after {time.monotonic() - begin:.1f} s")


def _evict(keep: Path) -> None:
    """Remove the least recently used ones, and remains of a crash."""
    found = [p for p in HOME.iterdir() if p.is_dir() and p != keep]
    found.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    whole = [p for p in found if not p.name.endswith(".new")]
    for path in set(found) - set(whole[: KEEP - 1]):
        shutil.rmtree(path, ignore_errors=True)

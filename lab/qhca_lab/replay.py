# SPDX-License-Identifier: GPL-2.0-or-later
"""Record what guests do, and replay it bit by bit.

A recording is a folder: run.json says what was recorded; each guest has a
folder with its disk (an overlay, which also holds the snapshots), QEMU's log
of all external input (rr.bin) and its console.

A recorded machine has only what QEMU can replay: one CPU, no shared folder, no
agent. Its initramfs has everything that the guest needs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from . import initrd, machine, process, qcow2
from .errors import LabError
from .paths import BUILD, GUEST, QEMU, TOP

# Virtual nanoseconds per instruction, as a power of two.
SHIFT = 1
# The snapshot with which a recording begins.
FIRST = "init"
NAMES = "abcd"
# Recorded guests pause for longer than an adapter's usual ACK timeout.
PATIENT = ["min-ack-timeout=18"]

# The default command: a pingpong between the two guests, or of one guest with itself.
# There the client does not start too early, so the server has the first QPN and the
# client the second.
ALONE = """\
ibv_rc_pingpong -d $IBDEV -g $GIDX -c -e -n 100 &
until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.1; done
ibv_rc_pingpong -d $IBDEV -g $GIDX -c -e -n 100 127.0.0.1
wait
"""
PAIR = """\
if [ $NODE = a ]; then
    ibv_rc_pingpong -d $IBDEV -g $GIDX -c -e -n 100
else
    until ibv_rc_pingpong -d $IBDEV -g $GIDX -c -e -n 100 10.99.0.1; do sleep 0.1; done
fi
"""


def qemu_id() -> str:
    """The identity of this QEMU: only the same build can replay."""
    real = QEMU.with_name(QEMU.name + ".real")
    path = real if real.exists() else QEMU
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclasses.dataclass
class RecordedRun:
    """A recording in the folder `dir`; `state` is the contents of run.json."""

    dir: Path
    state: dict

    @classmethod
    def load(cls, directory: Path) -> RecordedRun:
        try:
            state = json.loads((directory / "run.json").read_text())
        except (OSError, ValueError):
            raise LabError(
                f"{directory} holds no recording: make one with 'qhca-lab rr-record {directory}'"
            ) from None
        return cls(directory, state)

    @property
    def guests(self) -> list[str]:
        return list(self.state["guests"])

    def guest_dir(self, name: str) -> Path:
        if name not in self.state["guests"]:
            raise LabError(
                f"no guest {name!r} in {self.dir}: it has {', '.join(self.guests)}"
            )
        return self.dir / name

    def check(self) -> None:
        """LabError if this cannot be replayed."""
        for path in (Path(self.state["kernel"]), Path(self.state["image"])):
            if not path.exists():
                raise LabError(f"{path}, which {self.dir} was recorded with, is gone: record again")
        if self.state["qemu"] != qemu_id():
            raise LabError(
                f"{self.dir} was recorded with another build of QEMU, and only that can "
                "replay it: record again"
            )


# --------------------------------------------------------------- command line


def command_line(recorded: RecordedRun, name: str, mode: str, console: Path,
                 netdev: str) -> list[str]:
    """QEMU's arguments for guest NAME; MODE is record or replay, or "live" for
    the same machine without either. The modes differ only in the back ends."""
    guest = recorded.state["guests"][name]
    folder = recorded.guest_dir(name)
    args = [str(QEMU), "-name", f"qhca-{name}"]
    args += ["-machine", "q35,usb=off,sata=off,smbus=off,hpet=off"]
    args += ["-accel", "tcg,tb-size=256", "-cpu", machine.TCG_CPU]
    # Loading a snapshot of a vapic would deadlock with the CPU.
    args += ["-global", "apic-common.vapic=off"]
    args += ["-smp", "1", "-m", recorded.state["mem"]]
    if mode != "live":
        args += [
            "-icount",
            f"shift={SHIFT},rr={mode},rrfile={folder / 'rr.bin'},rrsnapshot={FIRST}",
        ]
    args += ["-nodefaults", "-no-user-config", "-display", "none"]
    args += ["-kernel", recorded.state["kernel"], "-initrd", str(recorded.dir / "initrd")]
    args += ["-append", guest["append"]]
    args += [
        "-drive", f"file={folder / 'disk.qcow2'},format=qcow2,if=none,id=disk,cache=unsafe",
        "-drive", "driver=blkreplay,if=none,image=disk,id=root",
        "-device", "virtio-blk-pci,drive=root",
        "-chardev", f"file,id=console,path={console}", "-serial", "chardev:console",
        "-netdev", netdev, "-object", "filter-replay,id=replay,netdev=net0",
        "-device", "pcie-root-port,id=rp0,chassis=1,slot=1",
        "-device", ",".join(["qhca,id=nic0,netdev=net0,bus=rp0", f"mac={guest['mac']}",
                             *recorded.state["properties"]]),
    ]  # fmt: skip
    return args


def payload(command: str) -> dict[str, Path | bytes]:
    """The contents of a recorded guest's /qhca."""
    files: dict[str, Path | bytes] = dict(initrd.tree(TOP / "lab" / "guest", "qhca/lab"))
    files["init"] = (TOP / "lab" / "guest" / "replay-initramfs").read_bytes()
    files["qhca/share/command"] = command.encode()
    for pattern in ("provider/*.so", "driver/guest/*.ko"):
        found = list(BUILD.glob(pattern))
        if not found:
            raise LabError(f"{BUILD / pattern} is missing: run 'make build' first")
        for path in found:
            files[f"qhca/build/{path.relative_to(BUILD)}"] = path
    programs = BUILD / "guest-progs"
    if programs.is_dir():
        files.update(initrd.tree(programs, "qhca/build/guest-progs"))
    return files


# -------------------------------------------------------------------- running


@dataclasses.dataclass
class Run:
    """A guest's QEMU while it runs."""

    name: str
    child: subprocess.Popen
    console: Path
    log: Path

    def evidence(self) -> str:
        text = ""
        for path in (self.log, self.console):
            lines = path.read_text(errors="replace").splitlines()[-15:] if path.exists() else []
            text += f"--- {path}\n" + "\n".join(lines) + "\n"
        return text


def start(name: str, args: list[str], console: Path, log: Path, fds=()) -> Run:
    console.unlink(missing_ok=True)
    with open(log, "wb") as f:
        f.write((" ".join(args) + "\n").encode())
        f.flush()
        child = process.spawn(args, True, stdout=f, stderr=f, pass_fds=fds)
    return Run(name, child, console, log)


def finish(runs: list[Run], timeout: float) -> None:
    """Wait until all guests have ended on their own."""
    deadline = time.monotonic() + timeout
    try:
        for run in runs:
            try:
                status = run.child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise LabError(
                    f"guest {run.name} did not end within {timeout} s\n{run.evidence()}"
                ) from None
            if status:
                raise LabError(
                    f"QEMU of guest {run.name} ended with status {status}\n{run.evidence()}"
                )
    finally:
        for run in runs:
            if run.child.poll() is None:
                run.child.send_signal(signal.SIGKILL)
                run.child.wait()


def command_status(console: Path) -> int:
    """The exit status of the recorded command, from the guest's console."""
    for line in reversed(console.read_text(errors="replace").splitlines()):
        if line.startswith("--- status "):
            return int(line.split()[2])
    raise LabError(f"the guest ended before its command did; see {console}")


# --------------------------------------------------------------------- record


def record(directory: Path, guests: int = 1, command: str | None = None, mem: str = "512M",
           properties: list[str] | None = None, append: list[str] | None = None,
           mtu: int = 9000, timeout: float = 300.0, say=lambda _text: None) -> RecordedRun:  # fmt: skip
    """Boot GUESTS guests, run COMMAND (for sh; NODE tells a guest who it is) in
    each, end them, and keep everything in DIRECTORY, which must not exist."""
    recorded = prepare(directory, guests, command, mem, properties, append, mtu)
    try:
        runs = launch(recorded, "record")
        say(f"recording {len(runs)} guest(s)")
        finish(runs, timeout)
        recorded.state["status"] = {r.name: command_status(r.console) for r in runs}
        (recorded.dir / "run.json").write_text(json.dumps(recorded.state, indent=1))
    except BaseException:
        say(f"nothing was recorded; partial files stay in {recorded.dir}")
        raise
    return recorded


def prepare(directory: Path, guests: int = 1, command: str | None = None, mem: str = "512M",
            properties: list[str] | None = None, append: list[str] | None = None,
            mtu: int = 9000) -> RecordedRun:  # fmt: skip
    """A new folder with everything that the guests' machines need; see record()."""
    if guests not in (1, 2):
        raise LabError("1 or 2 guests can be recorded")
    directory = directory.resolve()
    if directory.exists():
        raise LabError(f"{directory} exists: a recording needs a new folder")
    for path in (QEMU, GUEST / "vmlinuz", GUEST / "root.img"):
        if not path.exists():
            raise LabError(f"{path} is missing: run 'make build' first")
    if "," in str(directory):
        raise LabError("the folder's path must not contain a comma")
    state = {
        "kernel": str((GUEST / "vmlinuz").resolve()),
        "image": str((GUEST / "root.img").resolve()),
        "qemu": qemu_id(),
        "mem": mem,
        "properties": [*(PATIENT if guests == 2 else []), *(properties or [])],
        "command": command or (PAIR if guests == 2 else ALONE),
        "guests": {},
    }
    for number, name in enumerate(NAMES[:guests], 1):
        settings = {
            "name": name, "nic": "qhca", "mac": machine.mac_of(number),
            "ip": f"10.99.0.{number}", "ip6": f"fd99::{number:x}", "mtu": str(mtu),
        }  # fmt: skip
        words = [machine.KERNEL_ARGS, *(f"qhcalab.{k}={v}" for k, v in settings.items())]
        state["guests"][name] = {
            "mac": settings["mac"],
            "append": " ".join(words + (append or [])),
        }
    recorded = RecordedRun(directory, state)
    directory.mkdir(parents=True)
    initrd.build(GUEST / "initrd", payload(state["command"]), directory / "initrd")
    for name in recorded.guests:
        (directory / name).mkdir()
        qcow2.create(directory / name / "disk.qcow2", Path(state["image"]))
    return recorded


def launch(recorded: RecordedRun, mode: str, extra=lambda _folder: []) -> list[Run]:
    """Start all guests, each at its end of the wire; EXTRA gives more arguments
    for the guest with that folder."""
    runs: list[Run] = []
    ends = wires(len(recorded.guests))
    try:
        for name, fd in zip(recorded.guests, ends):
            folder = recorded.dir / name
            netdev = "hubport,id=net0,hubid=0"
            if fd is not None:
                netdev = f"dgram,id=net0,local.type=fd,local.str={fd}"
            console = folder / "console.log"
            args = command_line(recorded, name, mode, console, netdev) + extra(folder)
            fds = () if fd is None else (fd,)
            runs.append(start(name, args, console, folder / "qemu.log", fds))
    except BaseException:
        for run in runs:
            run.child.kill()
            run.child.wait()
        raise
    finally:
        for fd in ends:
            if fd is not None:
                os.close(fd)
    return runs


def wires(guests: int) -> list[int | None]:
    """The ends of the wire: connected sockets for two guests, none for one."""
    if guests == 1:
        return [None]
    return [s.detach() for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)]


# --------------------------------------------------------------------- replay


def replay_run(recorded: RecordedRun, name: str, extra: list[str] | None = None) -> Run:
    """Begin to replay guest NAME. Its console goes to replay.log; EXTRA are
    more arguments that do not change the machine (monitors, -S)."""
    recorded.check()
    folder = recorded.guest_dir(name)
    console = folder / "replay.log"
    args = command_line(recorded, name, "replay", console, "hubport,id=net0,hubid=0")
    return start(name, args + (extra or []), console, folder / "replay-qemu.log")


def difference(recorded: Path, replayed: Path) -> str | None:
    """The first difference of two consoles, or None."""
    a, b = recorded.read_bytes(), replayed.read_bytes()
    if a == b:
        return None
    for number, (x, y) in enumerate(
        itertools.zip_longest(a.split(b"\n"), b.split(b"\n")), 1
    ):
        if x != y:
            return f"line {number} was {x!r} and is {y!r}"
    return "the files differ"


def replay(recorded: RecordedRun, name: str, timeout: float = 300.0) -> None:
    """Replay guest NAME to its end; LabError if its console differs from the recorded one
    in any byte."""
    run = replay_run(recorded, name)
    finish([run], timeout)
    wrong = difference(recorded.guest_dir(name) / "console.log", run.console)
    if wrong:
        raise LabError(f"guest {name} replays differently: {wrong}")


def forget(recorded: RecordedRun) -> None:
    """Remove the recording."""
    shutil.rmtree(recorded.dir)

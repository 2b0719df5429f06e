# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab: guests on one wire. A folder keeps its state across program runs."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import time
from pathlib import Path

from . import accel, freeze, kernels, machine, paths, process, saved_guest, sched
from .errors import LabError
from .guest import Guest, build_ids, sections
from .link import Link

LETTERS = "abcdefghi"
NICS = ("qhca", "rxe", "none")


# Wait for the end of boot.py's log, without a program that the guest would have to
# start repeatedly; then show it.
WAIT_BOOTED = """\
exec 3<> <(:)
until [[ $last == ready || $last == failed:* ]]; do
    read -r -t 0.05 -u 3
    [ ! -e /run/qhca-boot.log ] || while read -r line; do last=$line; done </run/qhca-boot.log
done
cat /run/qhca-boot.log
"""


def usual_boot_timeout() -> float:
    """Seconds for a lab's boot: $QHCA_BOOT_TIMEOUT, for hosts that are slow."""
    text = os.environ.get("QHCA_BOOT_TIMEOUT", "180")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86400:
        raise LabError(f"QHCA_BOOT_TIMEOUT={text}: give seconds, 1 to 86400")
    return seconds


def boot_limit(options: Options) -> float:
    """Seconds for a boot with the kernel of @options."""
    return options.boot_timeout * kernels.kernel(options.kernel).pace


@dataclasses.dataclass
class Options:
    """The options of `up`. Sizes as for QEMU, times in seconds."""

    link: str = "auto"
    mtu: int = 9000
    mem: str = "1G"
    smp: int = 2
    iommu: bool = False
    loss: float = 0.0
    loss_match: str = "all"
    seed: int = 1
    share: str | None = None
    load: list[str] = dataclasses.field(default_factory=list)
    append: list[str] = dataclasses.field(default_factory=list)
    qemu: list[str] = dataclasses.field(default_factory=list)
    boot_timeout: float = dataclasses.field(default_factory=usual_boot_timeout)
    # Boot each guest, even if it could start from a saved one.
    cold: bool = False
    # default, newest, debug or the folder of a build tree; see kernels.py.
    kernel: str = dataclasses.field(default_factory=kernels.usual)
    # tcg, kvm or another accelerator of QEMU; auto: the best that works, see accel.py.
    accel: str = dataclasses.field(default_factory=accel.wanted)
    # A QEMU other than the built one.
    binary: str | None = None
    # A folder below build/ with the driver and the provider of another revision.
    software: str | None = None
    # The lab ends with the program that starts it, even when that is killed.
    tied: bool = False


class Lab:
    """Guests by letter: lab["a"]. Made by Lab.up() or Lab.load(). A subclass
    may name a class of its own for its guests."""

    guest_class = Guest

    def __init__(self, state: dict, directory: Path):
        self.state = state
        self.dir = directory
        self.name: str = state["name"]
        self.logs = Path(state["logs"])
        self.nodes = {
            name: self.guest_class(name, guest, directory / name, self.logs / name)
            for name, guest in state["guests"].items()
        }

    def __getitem__(self, name: str) -> Guest:
        try:
            return self.nodes[name]
        except KeyError:
            known = ", ".join(self.nodes)
            raise LabError(f"no guest {name!r} in lab {self.name}: it has {known}") from None

    @property
    def guests(self) -> list[Guest]:
        """All guests, in the order of their letters."""
        return list(self.nodes.values())

    # ---------------------------------------------------------------- state

    @classmethod
    def load(cls, name: str = "lab") -> Lab:
        """The lab NAME that is up; LabError when there is none."""
        directory = paths.lab_dir(name)
        try:
            state = json.loads((directory / "lab.json").read_text())
        except (OSError, ValueError):
            raise LabError(f"lab {name} is not up: start it with 'qhca-lab up'") from None
        return cls(state, directory)

    def save(self) -> None:
        temporary = self.dir / "lab.json.new"
        temporary.write_text(json.dumps(self.state, indent=1))
        temporary.replace(self.dir / "lab.json")

    def processes(self) -> list[dict]:
        found = [g["process"] for g in self.state["guests"].values() if g.get("process")]
        return found + self.state["helpers"]

    # --------------------------------------------------------------- up/down

    @classmethod
    def up(
        cls,
        name: str = "lab",
        nics: list[str] | None = None,
        options: Options | None = None,
        progress=None,
        replace: bool = False,
        reuse: bool = False,
    ) -> Lab:
        """Boot a guest per entry of NICS and wait until all are ready.

        Remains of a dead lab of that name are removed; a running lab is an error. With
        REPLACE it is taken down first; with REUSE it is returned if it is as requested,
        otherwise LabError describes the difference. When a guest fails, all are taken down and LabError shows its
        console.
        PROGRESS is called with lines of text.
        """
        nics = nics or ["qhca", "qhca"]
        options = options or Options()
        say = progress or (lambda _text: None)
        check_request(nics, options)
        directory = paths.lab_dir(name)
        with lock(directory):
            old = load_if_any(name)
            if reuse and not replace and old and is_up(old):
                check_usable(old)
                check_same(old, nics, options)
                say(f"lab {name} is already up, and used as it is")
                return old
            clear_predecessor(old, directory, replace, say)
            choice = accel.choose(options, say)
            share = options.share and str(Path(options.share).resolve())
            options = dataclasses.replace(options, accel=choice.name, share=share)
            directory.mkdir(mode=0o700)
            logs = paths.BUILD / "log" / f"lab-{name}"
            shutil.rmtree(logs, ignore_errors=True)
            logs.mkdir(parents=True)
            state = {
                "name": name,
                "top": str(paths.TOP),
                "logs": str(logs),
                "options": dataclasses.asdict(options),
                "accel": str(choice),
                "guests": {},
                "helpers": [],
                "up": time.time(),
            }
            for number, nic in enumerate(nics, 1):
                letter = LETTERS[number - 1]
                (directory / letter / "share").mkdir(parents=True)
                (logs / letter).mkdir()
                state["guests"][letter] = {
                    "name": letter,
                    "number": number,
                    "nic": nic,
                    "mac": machine.mac_of(number),
                    "ip": f"10.99.0.{number}",
                    "ip6": f"fd99::{number:x}",
                    "driver": str(kernels.kernel(options.kernel).driver),
                    "process": None,
                }
            lab = cls(state, directory)
            lab.save()
            try:
                lab._start(options, say)
            except BaseException:
                lab._stop()
                raise
            lab.state["ready"] = True
            lab.save()
        return lab

    def _start(self, options: Options, say) -> None:
        begin = time.monotonic()
        link = Link(self, options)
        link.start()
        for guest in self.guests:
            guest.state["super_frames"] = link.takes_super_frames()
            guest.state["memlink"] = str(link.memory) if link.memory else None
        with saved_guest.guest_for(options, self._boot_blank, say) as base:
            # Making a saved guest, or waiting for it, has its own time limit.
            deadline = time.monotonic() + boot_limit(options)
            for guest in self.guests:
                netdev, fds = link.netdev(guest.name)
                self._launch(guest, netdev, fds, options, **(base.files(guest) if base else {}))
            how = "start from the saved one" if base else "boot"
            say(f"lab {self.name}: {len(self.guests)} guest(s) {how}, link {self.state['link']}, "
                f"under {self.state['accel']}")
            if base:
                for guest in self.guests:
                    self._wait_sockets(guest, deadline)
                base.load(self.guests)
        for guest in self.guests:
            self._wait_ready(guest, deadline)
            sched.prefer_threads(guest.state["process"]["pid"])
            self.save()
            say(f"guest {guest.name} ({guest.nic}) is ready at {guest.ip} "
                f"after {time.monotonic() - begin:.1f} s")

    def _launch(self, guest: Guest, netdev, fds, options: Options, **files) -> None:
        """Start the QEMU of GUEST with a network backend that uses FDS, which it takes, and
        with FILES, see machine.command_line()."""
        args = machine.command_line(guest.state, netdev, guest.dir, guest.logs, options, **files)
        memory = [files["memory_fd"]] if "memory_fd" in files else []
        with open(guest.logs / "qemu.log", "wb") as log:
            log.write((" ".join(args) + "\n").encode())
            log.flush()
            child = process.spawn(args, options.tied, stdout=log, stderr=log,
                                  pass_fds=[*fds, *memory])
        for fd in fds:
            os.close(fd)
        guest.state["process"] = process.identity(child.pid)
        guest.state["main_loop"] = sched.prefer(child.pid)
        self.save()

    def _boot_blank(self, options: Options, state: dict, **files) -> Guest:
        """Boot a guest outside of any lab, for saved_guest.py, with FILES as disk and memory."""
        directory = self.dir / state["name"]
        (directory / "share").mkdir(parents=True)
        logs = self.logs / state["name"]
        logs.mkdir()
        guest = self.guest_class(state["name"], state, directory, logs)
        self._launch(guest, [], [], options, **files)
        try:
            self._wait_ready(guest, time.monotonic() + boot_limit(options))
        except BaseException:
            process.end(state["process"])
            raise
        return guest

    @staticmethod
    def _wait_sockets(guest: Guest, deadline: float) -> None:
        """Wait until QEMU has made its sockets."""
        while not (guest.dir / "port0").exists():
            if not guest.alive:
                raise LabError(f"QEMU of guest {guest.name} ended\n{guest.evidence()}")
            if time.monotonic() > deadline:
                raise LabError(f"QEMU of guest {guest.name} opens no socket")
            time.sleep(0.02)

    @classmethod
    def _wait_ready(cls, guest: Guest, deadline: float) -> None:
        """Wait for the boot script's verdict: "ready", or why not."""
        cls._wait_sockets(guest, deadline)
        job = guest.start(WAIT_BOOTED)
        try:
            result = job.wait(max(1.0, deadline - time.monotonic()), check=True)
        except LabError as error:
            raise LabError(f"guest {guest.name} did not boot: {error}") from error
        guest.state["sections"] = sections(result.out)
        guest.state["build_ids"] = build_ids(result.out)
        last = (result.out.splitlines() or [""])[-1]
        if last != "ready":
            raise LabError(
                f"guest {guest.name}: {last}\n{result.out}\n{guest.evidence()}"
            )

    def _stop(self) -> None:
        for who in self.processes():
            process.end(who)
        shutil.rmtree(self.dir, ignore_errors=True)

    def down(self) -> None:
        """End all processes of the lab and remove its folder; logs stay."""
        with lock(self.dir):
            self._stop()

    def freeze(self) -> list[str]:
        """Stop all guests together; the names of those that ran. After an
        error all run that did."""
        return freeze.freeze(self)

    def thaw(self) -> list[str]:
        """Resume all guests together, also those at a break; the names of
        those that were stopped."""
        return freeze.thaw(self)

    @property
    def kernel(self) -> str:
        """The kernel of its guests, as given to `up`."""
        return self.state["options"].get("kernel", kernels.DEFAULT)

    def status(self) -> dict:
        """A description for people and scripts. "run" is QEMU's run state, as
        in freeze.run_state(); "frozen" says that virtual time is stopped."""
        run = {g.name: freeze.run_state(g) for g in self.guests}
        return {
            "name": self.name,
            "logs": str(self.logs),
            "link": self.state.get("link"),
            "accel": self.state.get("accel"),
            "kernel": self.kernel,
            "guests": {
                g.name: {
                    "alive": g.alive,
                    "run": run[g.name],
                    "frozen": run[g.name] in freeze.STOPPED,
                    "pid": g.state["process"]["pid"],
                    "nic": g.nic,
                    "ip": g.ip,
                    "ip6": g.ip6,
                    "mac": g.state["mac"],
                    "qmp": str(g.dir / "qmp"),
                    "console": str(g.logs / "console.log"),
                }
                for g in self.guests
            },
        }

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_exc) -> None:
        self.down()


def check_request(nics: list[str], options: Options) -> None:
    """Reject invalid options immediately."""
    if not 1 <= len(nics) <= len(LETTERS):
        raise LabError(f"a lab has 1 to {len(LETTERS)} guests, not {len(nics)}")
    for nic in nics:
        if machine.split_nic(nic)[0] not in NICS:
            raise LabError(f"unknown adapter {nic!r}: use one of {', '.join(NICS)}")
    if options.link not in ("auto", "dgram", "switch", "memory"):
        raise LabError(f"unknown link {options.link!r}: dgram, switch or memory")
    if options.link == "memory" and any(machine.split_nic(nic)[0] == "rxe" for nic in nics):
        raise LabError("a memory link connects only qhcas; Soft-RoCE needs --link dgram or switch")
    if options.link == "dgram" and len(nics) > 2:
        raise LabError("a dgram link connects two guests; use --link switch for more")
    if not 0 <= options.loss <= 100:
        raise LabError("--loss is a percentage, 0 to 100")
    if options.loss and (len(nics) != 2 or options.link in ("switch", "memory")):
        raise LabError("--loss needs a dgram link between two guests")
    if not 68 <= options.mtu <= 9000:
        raise LabError("--mtu is 68 to 9000")
    if options.share and not Path(options.share).is_dir():
        raise LabError(f"{options.share}: no such folder to share")
    kernel = kernels.kernel(options.kernel)
    for path in (paths.QEMU, paths.GUEST / "root.img"):
        if not path.exists():
            raise LabError(f"{path} is missing: run 'make build' first")
    kernel.check()


@contextlib.contextmanager
def lock(directory: Path):
    """Only one program at a time starts or ends the lab of DIRECTORY."""
    with open(f"{directory}.lock", "w") as f:
        deadline = time.monotonic() + 300
        while True:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError("another program is repeatedly starting this lab") from None
                time.sleep(0.1)
        yield


def running_guests(lab: Lab) -> list[Guest]:
    """A guest without a process: the program that was starting it has ended."""
    return [g for g in lab.guests if g.state["process"] and g.alive]


def load_if_any(name: str) -> Lab | None:
    """The lab NAME, whether its guests run or not."""
    try:
        return Lab.load(name)
    except LabError:
        return None


def is_up(lab: Lab) -> bool:
    """Do all its guests run?"""
    return len(running_guests(lab)) == len(lab.guests)


def clear_predecessor(old: Lab | None, directory: Path, replace: bool, say) -> None:
    """Make room for a new lab in DIRECTORY, where OLD was; LabError if that is up."""
    if old is None:
        shutil.rmtree(directory, ignore_errors=True)
        return
    if is_up(old) and not replace:
        raise LabError(
            f"lab {old.name} is already up: use it, take it down with 'qhca-lab down', "
            "or choose another --name"
        )
    if running_guests(old):
        say(f"lab {old.name}: cleaning up after an earlier run")
    old._stop()


def check_usable(lab: Lab) -> None:
    """LabError if LAB runs, but its boot was not completed or a helper of its wire has ended."""
    wrong = None
    if not lab.state.get("ready"):
        wrong = "its guests never became ready"
    elif not all(process.alive(who) for who in lab.processes()):
        wrong = "a process of its wire has died"
    if wrong:
        raise LabError(f"lab {lab.name} is up, but {wrong}: replace it by --replace")


# Options that have no visible effect on a running lab.
PASSING = {"boot_timeout", "cold", "tied"}


def check_same(lab: Lab, nics: list[str], options: Options) -> None:
    """LabError if LAB is not as NICS and OPTIONS request; it names the difference."""
    has = dict(dataclasses.asdict(Options()), **lab.state["options"])
    asked = dataclasses.asdict(options)
    asked["share"] = options.share and str(Path(options.share).resolve())
    for told in (has, asked):
        told["kernel"] = kernels.kernel(told["kernel"]).what
    if options.accel == accel.AUTO:
        asked["accel"] = has["accel"]
    if not has["loss"] and not options.loss:
        asked["seed"], asked["loss_match"] = has["seed"], has["loss_match"]
    has["nic"], asked["nic"] = ",".join(g.nic for g in lab.guests), ",".join(nics)
    if (has["nic"], has["loss"]) == (asked["nic"], asked["loss"]):
        # The meaning of "auto" depends on these.
        has["link"], asked["link"] = lab.state["link"], str(Link(lab, options))
    different = [f"{option_name(key)} {option_text(has[key])} instead of "
                 f"{option_text(asked[key])}" for key in sorted(asked.keys() - PASSING)
                 if has[key] != asked[key]]
    if different:
        raise LabError(
            f"lab {lab.name} is already up with {'; '.join(different)}: take it down with "
            "'qhca-lab down', replace it by --replace, or choose another --name"
        )


def option_name(key: str) -> str:
    """The option's name in `up`; QEMU's own options have none."""
    return {"qemu": "--", "accel": "QHCA_ACCEL"}.get(key, "--" + key.replace("_", "-"))


def option_text(value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return " ".join(value) or "nothing"
    return "nothing" if value is None else str(value)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The wire between guests.

dgram   two guests, a pair of unix datagram sockets: no frame is lost. They are
        connected before QEMU starts (socketpair), which halves the cost per frame
        of sockets that are connected by path
        with --loss a relay (lab/qhca_lab/relay.py) is between them
switch  any number, a Linux bridge with a tap per guest, in a network
        namespace of its own: it does not affect the host's network and needs no
        privileges
memory  one of these, and RDMA between the adapters passes through their guests'
        memory (qemu-hw/engine/memlink) as long as no packets are captured
auto    memory if all adapters support it and the wire is lossless; QHCA_LINK=wire
        disables memory links
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import machine, process, sched
from .errors import LabError

HERE = Path(__file__).resolve().parent


class Link:
    """Starts the link's helpers and gives each guest its -netdev."""

    def __init__(self, lab, options):
        self.lab = lab
        self.options = options
        kind = options.link
        if kind in ("auto", "memory"):
            kind = "dgram" if len(lab.guests) <= 2 else "switch"
        self.kind = kind
        # Where the adapters find each other for memory links, if these are enabled.
        wanted = options.link == "memory" or (
            options.link == "auto" and self.takes_memory_links()
            and os.environ.get("QHCA_LINK") != "wire"
        )
        self.memory = lab.dir / "memlink" if wanted else None
        self._holder = None
        self._ends: list[int] = []  # ends of the socket pair that no guest has yet

    def __str__(self) -> str:
        """As `status` shows it."""
        if self.memory:
            return f"{self.kind}, memory"
        return f"{self.kind}, {self.options.loss} % loss" if self.options.loss else self.kind

    def start(self) -> None:
        self.lab.state["link"] = str(self)
        if self.memory:
            self.memory.mkdir(mode=0o700)
        if self.kind == "switch":
            self._start_bridge()
        elif self.options.loss:
            self._start_relay()
        elif len(self.lab.guests) == 2:
            self._ends = [
                s.detach() for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            ]
        self.lab.save()

    def _adapter_has(self, name: str) -> bool:
        """Has the adapter of this lab's QEMU the property NAME? Another QEMU may be older."""
        if not self.options.binary:
            return True
        try:
            return name in machine.adapter_properties(self.options.binary)
        except OSError:
            return False                # starting the guests reports it

    def takes_memory_links(self) -> bool:
        """May RDMA bypass this wire? Not if the wire is lossy."""
        nics = [machine.split_nic(guest.state["nic"])[0] for guest in self.lab.guests]
        return (
            nics.count("qhca") > 1
            and "rxe" not in nics
            and self._adapter_has("memlink")
            and not self.options.loss
        )

    def takes_super_frames(self) -> bool:
        """May large sends pass this wire whole? Only if all adapters on it are the lab's own,
        of this build, and not over a bridge, which has an MTU. If the user sets this for
        any adapter, the defaults of the others stay."""
        nics = [machine.split_nic(guest.state["nic"]) for guest in self.lab.guests]
        return (
            self.kind == "dgram"
            and self._adapter_has("super-frames")
            and all(kind in ("qhca", "none") for kind, _properties in nics)
            and not any(p.startswith("super-frames=") for _kind, props in nics for p in props)
        )

    def _helper(self, what: str, args: list[str], **kwargs) -> subprocess.Popen:
        """Start a helper process that the lab ends when it goes down."""
        with open(self.lab.logs / f"{what}.log", "wb") as log:
            child = process.spawn(args, self.options.tied, stderr=log, **kwargs)
        sched.prefer(child.pid)
        self.lab.state["helpers"].append(process.identity(child.pid))
        self.lab.save()
        return child

    def _socket(self, name: str) -> Path:
        return self.lab.dir / f"{name}.net"

    def _start_relay(self) -> None:
        args = [sys.executable, str(HERE / "relay.py")]
        for name in self.lab.nodes:
            args += ["--end", f"{self.lab.dir / name}.wire", str(self._socket(name))]
        args += [
            "--loss", str(self.options.loss), "--seed", str(self.options.seed),
            "--match", self.options.loss_match,
            "--report", str(self.lab.logs / "wire.json"),
        ]  # fmt: skip
        self._helper("wire", args, stdout=subprocess.DEVNULL)
        for name in self.lab.nodes:
            wait_path(Path(f"{self.lab.dir / name}.wire"), "the wire's relay")

    def _start_bridge(self) -> None:
        """A process that only keeps a network namespace with a bridge."""
        unshare = ["unshare", "--net"]
        if os.getuid() != 0:
            unshare += ["--user", "--map-root-user"]
        script = (
            "ip link add br0 type bridge stp_state 0 forward_delay 0 && "
            "ip link set br0 mtu 9000 up && echo up && exec sleep infinity"
        )
        child = self._helper(
            "switch",
            unshare + ["sh", "-c", script],
            stdout=subprocess.PIPE,
            env=dict(os.environ, PATH="/usr/sbin:/usr/bin:/sbin:/bin"),
        )
        if child.stdout.readline() != b"up\n":
            text = (self.lab.logs / "switch.log").read_text()
            raise LabError(f"no bridge for the switch: {text.strip() or 'it ended'}")
        self._holder = child.pid

    def _tap(self, name: str) -> int:
        """A tap of guest NAME on the bridge, made inside the namespace."""
        ours, theirs = socket.socketpair()
        enter = ["nsenter", f"--target={self._holder}", "--net"]
        if os.getuid() != 0:
            enter += ["--user", "--preserve-credentials"]
        child = subprocess.run(
            enter
            + [sys.executable, str(HERE / "tap.py"), f"tap-{name}", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            timeout=30,
            env=dict(os.environ, PATH="/usr/sbin:/usr/bin:/sbin:/bin"),
        )
        theirs.close()
        if child.returncode != 0:
            raise LabError(f"no tap for guest {name}: {child.stderr.strip()}")
        _data, fds, _flags, _address = socket.recv_fds(ours, 16, 1)
        ours.close()
        return fds[0]

    def netdev(self, name: str) -> tuple[list[str], list[int]]:
        """QEMU's -netdev of guest NAME, and the files it must inherit."""
        if self.kind == "switch":
            fd = self._tap(name)
            return ["-netdev", f"tap,id=net0,fd={fd}"], [fd]
        if self._ends:
            fd = self._ends.pop()
            return ["-netdev", f"dgram,id=net0,local.type=fd,local.str={fd}"], [fd]
        if self.options.loss:
            remote = Path(f"{self.lab.dir / name}.wire")
        else:
            # The only guest of a lab has no peer.
            remote = self._socket("nobody")
        return [
            "-netdev",
            f"dgram,id=net0,local.type=unix,local.path={self._socket(name)},"
            f"remote.type=unix,remote.path={remote}",
        ], []


def wait_path(path: Path, what: str, timeout: float = 10.0) -> None:
    """Wait until PATH exists; LabError names WHAT when it does not."""
    deadline = time.monotonic() + timeout
    while not path.exists():
        if time.monotonic() > deadline:
            raise LabError(f"{what} did not start: no {path}")
        time.sleep(0.01)

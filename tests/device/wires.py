# SPDX-License-Identifier: GPL-2.0-or-later
"""
The other end of each kind of network backend: a peer that does not read, reads
slowly, ends in the middle of a frame, and comes back.
"""

import fcntl
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from machine import TIMEOUT, until

SMALL = 4096                    # of a buffer: a frame and a part of another
TUN = "/dev/net/tun"
TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_UP = 0x400454CA, 2, 0x1000, 1
SIOCSIFFLAGS, SIOCSIFMTU, SIOCBRADDBR, SIOCBRADDIF = 0x8914, 0x8922, 0x89A0, 0x89A2
ETH_P_ALL, SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 3, 263, 1, 1


def need_namespaces() -> None:
    """Skip the test where the host denies user namespaces, in which anybody may have networks."""
    if subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode:
        pytest.skip("the host denies user namespaces")


class Wire:
    """
    One kind of backend.  netdev() is for Machine; connect() returns when the wire
    carries frames; kill() ends the peer, another connect() starts the next one.
    """

    whole = True                # a frame arrives whole or not at all
    again = True                # there can be another peer after the first
    blocks = True               # frames wait until the peer reads

    def netdev(self, machine) -> tuple[str, list[int]]:
        raise NotImplementedError

    def connect(self) -> None:
        self.sock.settimeout(TIMEOUT)

    def frame(self) -> bytes:
        """The next frame."""
        return self.sock.recv(65536)

    def kill(self) -> None:
        self.sock.close()

    def discard(self) -> None:
        """Read all pending frames, if more are lost while the peer does not read."""
        if self.blocks:
            return
        self.sock.setblocking(False)
        try:
            while self.frame():
                pass
        except BlockingIOError:
            pass
        self.sock.settimeout(TIMEOUT)

    def end(self) -> None:
        """The test is over."""


class DgramPath(Wire):
    """dgram with addresses: QEMU's socket is not connected."""

    def netdev(self, machine):
        machine.wire.close()
        self.path = machine.dir / "peer"
        return (f"dgram,id=wire,local.type=unix,local.path={machine.dir}/qemu"
                f",remote.type=unix,remote.path={self.path}"), []

    def connect(self):
        self.path.unlink(missing_ok=True)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(self.path))
        super().connect()


class DgramPair(Wire):
    """dgram with a socket pair, as in the lab."""

    again = False

    def netdev(self, machine):
        self.sock, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        return f"dgram,id=wire,local.type=fd,local.str={ours.fileno()}", [ours.detach()]


def own_host() -> str:
    """An address that depends on the process: no other listens there."""
    pid = os.getpid()
    return f"127.{pid >> 16 & 255}.{pid >> 8 & 255}.{pid & 255 or 1}"


class Udp(Wire):
    """dgram over UDP.  The kernel takes every frame, and drops it if the peer's buffer is full."""

    blocks = False
    OURS, THEIRS = 4792, 4793

    def netdev(self, machine):
        host = own_host()
        return (f"dgram,id=wire,local.type=inet,local.host={host},local.port={self.THEIRS}"
                f",remote.type=inet,remote.host={host},remote.port={self.OURS}"), []

    def connect(self):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((own_host(), self.OURS))
        super().connect()


class SocketUdp(Udp):
    """socket over UDP."""

    def netdev(self, machine):
        host = own_host()
        return (f"socket,id=wire,udp={host}:{self.OURS},localaddr={host}:{self.THEIRS}"), []


class StreamFrames(Wire):
    """Frames with their length in front."""

    whole = False

    def _bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.sock.recv(count - len(data))
            assert more, "the wire is cut"
            data += more
        return data

    def _pair(self) -> int:
        """QEMU's end of a pair with so small a buffer that parts of frames are sent."""
        self.sock, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        return ours.detach()

    def _reach(self, make: Callable[[], socket.socket], address) -> None:
        """Connect a socket that @make makes to QEMU, once it listens at @address."""
        def reach():
            self.sock = make()
            try:
                self.sock.connect(address)
            except OSError:
                self.sock.close()
                return False
            return True

        until(reach, "QEMU to listen")

    def frame(self):
        length = int.from_bytes(self._bytes(4), "big")
        assert length < 9216, "QEMU has sent something else than a frame"
        return self._bytes(length)


class StreamClient(StreamFrames):
    """stream, and QEMU connects."""

    def _listen(self):
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.listener.settimeout(TIMEOUT)

    def netdev(self, machine):
        self.path = machine.dir / "peer-stream"
        self._listen()
        return (f"stream,id=wire,server=off,addr.type=unix,addr.path={self.path}"
                ",reconnect-ms=100"), []

    def connect(self):
        if self.listener.fileno() < 0:
            self._listen()
        self.sock, _ = self.listener.accept()
        super().connect()

    def kill(self):
        self.listener.close()
        super().kill()


class UnixServer(StreamFrames):
    """stream, and QEMU listens on a path."""

    def netdev(self, machine):
        self.path = machine.dir / "qemu-stream"
        return f"stream,id=wire,server=on,addr.type=unix,addr.path={self.path}", []

    def connect(self):
        self._reach(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), str(self.path))
        super().connect()


def small_tcp() -> socket.socket:
    """Small segments and a small window: then QEMU's buffer is small, too."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 512)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    return sock


class TcpServer(StreamFrames):
    """QEMU listens, on TCP, which takes parts of frames."""

    def _address(self) -> tuple[str, int]:
        return own_host(), 4791

    def connect(self):
        self._reach(small_tcp, self._address())
        super().connect()


class StreamServer(TcpServer):
    """stream, and QEMU listens."""

    def netdev(self, machine):
        host, port = self._address()
        return (f"stream,id=wire,server=on,addr.type=inet,addr.host={host}"
                f",addr.port={port}"), []


class SocketPair(StreamFrames):
    """socket with a stream socket that it is given."""

    again = False

    def netdev(self, machine):
        fd = self._pair()
        return f"socket,id=wire,fd={fd}", [fd]


class StreamPair(StreamFrames):
    """stream with a socket that it is given."""

    again = False

    def netdev(self, machine):
        fd = self._pair()
        return f"stream,id=wire,server=off,addr.type=fd,addr.str={fd}", [fd]


class SocketServer(TcpServer):
    """socket, and QEMU listens."""

    def netdev(self, machine):
        host, port = self._address()
        return f"socket,id=wire,listen={host}:{port}", []


class SocketClient(StreamFrames):
    """socket, and QEMU connects, once."""

    again = False

    def netdev(self, machine):
        self.listener = small_tcp()
        self.listener.bind((own_host(), 0))
        self.listener.listen()
        self.listener.settimeout(TIMEOUT)
        host, port = self.listener.getsockname()
        return f"socket,id=wire,connect={host}:{port}", []

    def connect(self):
        self.sock, _ = self.listener.accept()
        self.listener.close()
        super().connect()


class Tap(Wire):
    """
    tap, as in the lab's switch, in a network namespace of its own.  The kernel
    takes every frame; its peer is gone when the interface is down.
    """

    PORT = "tap0"
    blocks = False

    def netdev(self, machine):
        if os.geteuid():
            need_namespaces()
        if not os.access(TUN, os.R_OK | os.W_OK):
            pytest.skip(f"the host does not let this user open {TUN}")
        ours, theirs = socket.socketpair()
        child = os.fork()
        if not child:
            try:
                os.unshare(os.CLONE_NEWNET | (os.CLONE_NEWUSER if os.geteuid() else 0))
                socket.send_fds(theirs, [b"ok"], self._make())
            except OSError as e:
                theirs.send(str(e).encode())
            finally:
                os._exit(0)
        theirs.close()
        why, fds, _, _ = socket.recv_fds(ours, 200, 2)
        os.waitpid(child, 0)
        ours.close()
        if why != b"ok":
            self._cannot(why.decode())
        self.sock = socket.socket(fileno=fds[1])
        return f"tap,id=wire,fd={fds[0]}", [fds[0]]

    def _cannot(self, why: str) -> None:
        pytest.fail(f"no tap: {why}")

    def _make(self) -> list[int]:
        """In the new namespace: QEMU's file, and the peer's socket."""
        tap = os.open(TUN, os.O_RDWR)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"tap0", IFF_TAP | IFF_NO_PI))
        peer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        peer.bind((self.PORT, ETH_P_ALL))
        return [tap, peer.detach()]

    def _up(self, up: bool) -> None:
        fcntl.ioctl(self.sock, SIOCSIFFLAGS,
                    struct.pack("16sH22x", self.PORT.encode(), IFF_UP if up else 0))
        # The next read reports that it was down, unless it is queried.
        self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def connect(self):
        self._up(True)
        super().connect()

    def frame(self):
        while True:
            data, (_, _, kind, *_) = self.sock.recvfrom(65536)
            if kind != socket.PACKET_OUTGOING:
                return data

    def kill(self):
        self._up(False)
        self.discard()          # what was sent to the first peer


class Switch(Tap):
    """A tap on a bridge, as in a lab with a switch.  The bridge's own port is the peer."""

    PORT = "br0"

    def _cannot(self, why):
        pytest.skip(f"this host's kernel has no bridge: {why}")

    def _make(self):
        control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        fcntl.ioctl(control, SIOCBRADDBR, b"br0\0")
        tap = os.open(TUN, os.O_RDWR)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"tap0", IFF_TAP | IFF_NO_PI))
        fcntl.ioctl(control, SIOCBRADDIF,
                    struct.pack("16si20x", b"br0", socket.if_nametoindex("tap0")))
        for name in (b"tap0", b"br0"):
            fcntl.ioctl(control, SIOCSIFMTU, struct.pack("16si20x", name, 9000))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", b"tap0", IFF_UP))
        peer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        peer.bind((self.PORT, ETH_P_ALL))
        # Frames for any address.
        peer.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                        struct.pack("iHH8x", socket.if_nametoindex("br0"), PACKET_MR_PROMISC, 0))
        return [tap, peer.detach()]


class Passt(Wire):
    """
    stream, and QEMU connects to passt, in a network namespace of its own.  Its frames are those
    of its packet capture.  It runs only while frame() waits.
    """

    GATEWAY = "169.254.2.2"     # what it responds to without a network

    def netdev(self, machine):
        need_namespaces()
        self.machine = machine
        self.path = machine.dir / "passt"
        self.capture = machine.dir / "passt.pcap"
        self.process = None
        return (f"stream,id=wire,server=off,addr.type=unix,addr.path={self.path}"
                ",reconnect-ms=100"), []

    def connect(self):
        self.capture.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--net", "passt", "--foreground",
             "--quiet", "--ipv4-only", "--socket", self.path, "--pcap", self.capture],
            stdin=subprocess.DEVNULL)
        self.at = 24                    # after the file's header
        self.machine.wait_event("NETDEV_STREAM_CONNECTED")
        until(self.capture.exists, "passt")
        self.process.send_signal(signal.SIGSTOP)

    def _captured(self) -> bytes | None:
        with open(self.capture, "rb") as file:
            file.seek(self.at)
            header = file.read(16)
            if len(header) < 16:
                return None
            length = int.from_bytes(header[8:12], "little")
            frame = file.read(length)
        if len(frame) < length:
            return None
        self.at += 16 + length
        return frame

    def frame(self):
        frame = self._captured()
        if frame is None:
            self.process.send_signal(signal.SIGCONT)
            frame = until(self._captured, "a frame at passt")
            self.process.send_signal(signal.SIGSTOP)
        return frame

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process:
            self.kill()


WIRES = [DgramPath, DgramPair, Udp, SocketUdp, StreamClient, StreamServer, UnixServer,
         StreamPair, SocketServer, SocketClient, SocketPair, Tap, Switch, Passt]

# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU without a guest: the test is the guest.

Machine speaks the qtest protocol (memory, ports, clock), QMP, and holds the other end of the
network wire.  Virtual time advances only by clock_step.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QHCA_BUILD", TOP / "build"))
QEMU = Path(os.environ.get("QHCA_QEMU", BUILD / "bin/qemu-system-x86_64"))
DEVICE = "qhca,id=q,addr=4.0,mac=02:00:00:00:00:01"
TIMEOUT = 120.0
# With a cache, small freed pieces are put there without being overwritten.
OVERWRITE_FREED = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"
CPUCLOCK_SCHED = 2              # <linux/posix-timers.h>: the clock of a process


class Lines:
    """A connected socket read line by line, with a time limit."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.sock.settimeout(TIMEOUT)
        self.file = sock.makefile("r")

    def send(self, text: str) -> None:
        self.sock.sendall(text.encode())

    def line(self) -> str:
        line = self.file.readline()
        if not line:
            raise EOFError("QEMU closed the connection: did it die?")
        return line.rstrip("\n")


class Machine:
    """
    One QEMU process; use as a context manager.

    @netdev, called with the machine, returns -netdev options of another wire (its id is wire) and
    the files that QEMU inherits for it.  @device as JSON names its own netdev.
    @overwrite_freed: detect uses of freed memory by overwriting it; starting takes half as long
    again.
    """

    def __init__(self, *options: str, device: str | None = "qhca,id=q,addr=4.0",
                 machine: str = "q35", wire: bool = True, netdev=None,
                 overwrite_freed: bool = False):
        self.dir = Path(tempfile.mkdtemp(prefix="qhca-qt."))
        self.log = self.dir / "qemu.log"
        self.events: list[dict] = []
        self.leaks_count = True
        listeners = {n: self._listen(n) for n in ("qtest", "qmp")}
        self.wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.wire.bind(str(self.dir / "peer"))
        args = [
            str(QEMU), "-nodefaults", "-display", "none", "-machine", machine,
            "-accel", "qtest", "-m", "256M",
            "-qtest", f"unix:{self.dir}/qtest", "-qtest-log", "none",
            "-qmp", f"unix:{self.dir}/qmp", "-serial", "none", "-monitor", "none",
        ]
        fds: list[int] = []
        if netdev:
            text, fds = netdev(self)
            args += ["-netdev", text]
        elif wire:
            args += ["-netdev", f"dgram,id=wire,local.type=unix,local.path={self.dir}/qemu"
                     f",remote.type=unix,remote.path={self.dir}/peer"]
        args += options
        if device:
            args += ["-device", device + (",netdev=wire" if wire and device[0] != "{" else "")]
        self.args = args
        with open(self.log, "w") as log:
            env = dict(os.environ)
            # Without AddressSanitizer it means nothing; lab/build/build-qemu's wrapper
            # looks for no leaks.
            env["ASAN_OPTIONS"] = f"{env.get('ASAN_OPTIONS', '')}:detect_leaks=1:exitcode=0"
            if overwrite_freed:
                env["GLIBC_TUNABLES"] = OVERWRITE_FREED
            self.process = subprocess.Popen(
                args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=fds,
                env=env)
        try:
            self.qtest = self._accept(listeners["qtest"])
            self.qmp_socket = self._accept(listeners["qmp"])
            json.loads(self.qmp_socket.line())
            self.qmp("qmp_capabilities")
        except Exception:
            self.close(check=False)
            raise RuntimeError(f"QEMU did not start: {self.output}") from None

    def _listen(self, name: str) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(self.dir / name))
        sock.listen(1)
        return sock

    def _accept(self, listener: socket.socket) -> Lines:
        limit = time.monotonic() + TIMEOUT
        while not select.select([listener], [], [], 0.05)[0]:
            if self.process.poll() is not None or time.monotonic() > limit:
                raise EOFError
        conn, _ = listener.accept()
        listener.close()
        return Lines(conn)

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self, check: bool = True) -> None:
        """
        End QEMU; every test checks that it was still alive, has made no error at its end, and
        has lost no memory.
        """
        alive = self.process.poll() is None
        if alive:
            self.process.terminate()
            try:
                self.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.wire.close()
        self.output = self.log.read_text()
        shutil.rmtree(self.dir, ignore_errors=True)
        if check and not alive:
            raise AssertionError(
                f"QEMU died with {self.process.returncode}:\n{self.output}")
        if "ERROR: AddressSanitizer" in self.output:
            raise AssertionError(self.output)
        # A QEMU that refuses a state ends at once, and need not free anything.
        if check and self.leaks_count and "ERROR: LeakSanitizer" in self.output:
            raise AssertionError(self.output)

    # ---- the process ----

    def cpu_time(self) -> int:
        """CPU time that QEMU has used, in nanoseconds."""
        return time.clock_gettime_ns(~self.process.pid << 3 | CPUCLOCK_SCHED)

    def sleeps(self) -> bool:
        """
        Does QEMU wait for something to happen?  It is seen sleeping after 100 ms
        of which it used less than 1 %: a polling loop is running or runnable, even on
        a busy host.
        """
        before = self.cpu_time()
        time.sleep(0.1)
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return self.cpu_time() - before < 1_000_000 and stat.rpartition(")")[2][1] == "S"

    # ---- qtest ----

    def command(self, *words: object) -> str:
        """One qtest command; the words of its response after OK."""
        self.qtest.send(" ".join(map(str, words)) + "\n")
        while True:
            answer = self.qtest.line()
            if answer.startswith("IRQ"):
                continue
            if not answer.startswith("OK"):
                raise RuntimeError(f"qtest {words}: {answer}")
            return answer[2:].strip()

    def read_mem(self, addr: int, size: int) -> bytes:
        return bytes.fromhex(self.command("read", hex(addr), size)[2:])

    def write_mem(self, addr: int, data: bytes) -> None:
        if data:
            self.command("write", hex(addr), len(data), "0x" + data.hex())

    def load(self, addr: int, size: int) -> int:
        """One read of 1, 2, 4 or 8 bytes."""
        return int(self.command("read" + "bwlq"[size.bit_length() - 1], hex(addr)), 0)

    def store(self, addr: int, value: int, size: int) -> None:
        """One write of 1, 2, 4 or 8 bytes."""
        self.command("write" + "bwlq"[size.bit_length() - 1], hex(addr), hex(value))

    def out32(self, port: int, value: int) -> None:
        self.command("outl", hex(port), hex(value))

    def in32(self, port: int) -> int:
        return int(self.command("inl", hex(port)), 0)

    def clock_step(self, ns: int) -> None:
        """Advance virtual time by @ns nanoseconds; timers fire."""
        self.command("clock_step", ns)

    # ---- QMP ----

    def qmp(self, command: str, /, **arguments):
        message = {"execute": command}
        if arguments:
            message["arguments"] = {
                k.replace("_", "-"): v for k, v in arguments.items()}
        self.qmp_socket.send(json.dumps(message) + "\n")
        while True:
            answer = json.loads(self.qmp_socket.line())
            if "event" in answer:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            else:
                return answer["return"]

    def wait_event(self, name: str) -> dict:
        """The next QMP event of that name, which may have arrived already."""
        limit = time.monotonic() + TIMEOUT
        while time.monotonic() < limit:
            for event in self.events:
                if event["event"] == name:
                    self.events.remove(event)
                    return event
            self.qmp("query-status")
            time.sleep(0.01)
        raise TimeoutError(f"no event {name}")

    # ---- the wire ----

    def send_frame(self, frame: bytes) -> None:
        """Put a frame on the wire, as the peer."""
        self.wire.settimeout(TIMEOUT)
        self.wire.sendto(frame, str(self.dir / "qemu"))

    def receive_frame(self, timeout: float = TIMEOUT) -> bytes | None:
        """The next frame that QEMU sent; None if none comes in time."""
        self.wire.settimeout(timeout)
        try:
            return self.wire.recv(65536)
        except (TimeoutError, BlockingIOError):
            return None

    def no_frame(self) -> bool:
        """Is the wire idle after all pending work is done?"""
        self.qmp("query-status")    # a turn of the main loop or two
        return self.receive_frame(0.05) is None


def until(condition, what: str = "condition", timeout: float = TIMEOUT):
    """Call @condition until it returns something true; return that."""
    limit = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > limit:
            raise TimeoutError(f"waited {timeout} s for {what}")
        time.sleep(0.002)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's end of lab/qhca-lab: runs commands that the host asks for.

Each virtio-serial port named qhca.N carries one command at a time, so several
can run in parallel. A message is one byte of type, four bytes of length (big
endian) and that many bytes. The host begins a session with MAGIC, so that the
guest skips what an earlier host program left half sent; the guest answers
with MAGIC and the session's own id, so that the host can do the same.

host to guest   R JSON {id, argv, cwd, env, user, tty, rows, cols}
                  or {id, python, cwd, env}: run the Python program on stdin, like
                     "python3 -", but in a copy of the agent, which has loaded Python:
                     that takes an emulated CPU half a second
                  or {id, ask}: "environment", or a list of files to read; no process
                  or {id, resume}: become a guest of a lab, see boot.py
                I bytes for stdin, none = end of file
                S JSON {signal}     W JSON {rows, cols}
                K kill the command and all its children
guest to host   O bytes of stdout   E bytes of stderr
                X JSON {status} or {signal} or {error}; the last message

When the host disconnects during a command, the command and all its children are
killed (by control group, so that a child cannot escape into its own session).
"""

import errno
import fcntl
import glob
import json
import os
import pwd
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback

MAGIC = bytes.fromhex("f1716863615f73796e63ff0d0a1a00c5")
HEADER = struct.Struct(">cI")
CHUNK = 32768
PIPE = 65536  # capacity of a pipe, pipe(7)
CGROUP = "/sys/fs/cgroup/qhca"
# Debian's Python packages, which the agent itself does not use.
PACKAGES = "/usr/lib/python3/dist-packages"
# Signals that Python ignores, but that other programs do not expect to be ignored.
RESTORED = [signal.SIGPIPE, signal.SIGXFSZ]
# How long output may still arrive from children after a command has ended.
GRACE = 0.3
# A host that seems to have gone may have closed a connection and opened the next one
# already: its messages arrive before the kernel's notifications of both, long before
# where CPUs are scarce.
AWAY = 10.0

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import boot  # noqa: E402
import guestenv  # noqa: E402

sel = selectors.DefaultSelector()
home = None  # the agent's own Cgroup


class Booting:
    """The child that sets the adapter up, if there is one."""

    pid = None

    @classmethod
    def start(cls, *call):
        cls.pid = boot.background(*call)

    @classmethod
    def going_on(cls):
        if cls.pid is not None and os.waitpid(cls.pid, os.WNOHANG)[0] == cls.pid:
            cls.pid = None
        return cls.pid is not None


class Cgroup:
    """A control group for the processes of one command. Empty ones are reused, because
    creating and removing them takes longer than starting the command.

    The agent enters it to start the command, and leaves it at once. Everything that the
    command starts is then in it, without a fork() of the agent, which a function called
    in the child would need."""

    free = []
    left = []
    count = 0

    def __init__(self):
        Cgroup.count += 1
        self.path = f"{CGROUP}/s{Cgroup.count}"
        os.makedirs(self.path, exist_ok=True)
        self.procs = os.open(f"{self.path}/cgroup.procs", os.O_RDWR)

    @classmethod
    def take(cls):
        """One without processes."""
        if not cls.free:
            cls.free = [c for c in cls.left if c.empty()]
            cls.left = [c for c in cls.left if c not in cls.free]
        return cls.free.pop() if cls.free else cls()

    def empty(self):
        return not os.pread(self.procs, 64, 0)

    def give_back(self):
        """The command has ended, but processes that it started may still run."""
        (Cgroup.free if self.empty() else Cgroup.left).append(self)

    def __enter__(self):
        os.write(self.procs, b"0")

    def __exit__(self, *_exc):
        os.write(home.procs, b"0")

    def kill(self):
        with open(f"{self.path}/cgroup.kill", "w") as f:
            f.write("1")


def spawn(argv, env, streams):
    """Start a program in a session of its own, with three STREAMS; its process id."""
    os.environ["PATH"] = env["PATH"]  # the PATH that posix_spawnp() uses
    actions = [(os.POSIX_SPAWN_DUP2, fd, n) for n, fd in enumerate(streams)]
    return os.posix_spawnp(
        argv[0], argv, env, setsid=True, setsigdef=RESTORED, file_actions=actions
    )


def fork_python(env, streams):
    """Run the Python program on stdin in a child like that."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        for n, fd in enumerate(streams):
            os.dup2(fd, n)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        status = run_python(env)
    finally:
        os._exit(status)


def run_python(env):
    """Run the program on stdin as one of its own; its exit status."""
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["-"]
    sys.path.append(PACKAGES)
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, encoding="utf-8", closefd=False) for fd, mode in enumerate("rww")
    )
    status = 0
    try:
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"__name__": "__main__"})
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if status and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    return status & 0xFF


class Session:
    """One command and its three streams."""

    def __init__(self, port, request):
        self.port = port
        self.stdin = None
        self.pending = bytearray()
        self.eof = False
        self.outputs = {}
        self.paused = False
        self.ended = None
        self.tty = bool(request.get("tty"))
        self.cgroup = Cgroup.take()
        try:
            self.start(request)
        except BaseException:
            self.cgroup.give_back()
            raise
        for fd in (self.stdin, *self.outputs):
            os.set_blocking(fd, False)
        for fd in self.outputs:
            self.watch(fd)
        self.pidfd = os.pidfd_open(self.pid)
        sel.register(self.pidfd, selectors.EVENT_READ, self.on_exit)

    def start(self, request):
        """Start the command; sets pid, stdin and outputs."""
        user = request.get("user") or "root"
        env = guestenv.environment(user)
        env.update(request.get("env") or {})
        folder = request.get("cwd") or env["HOME"]
        if self.tty or user != "root":
            self.start_slowly(request, user, env, folder)
            return
        stdin, self.stdin = os.pipe()
        out, stdout = os.pipe()
        err, stderr = os.pipe()
        theirs = stdin, stdout, stderr
        try:
            os.chdir(folder)
            with self.cgroup:
                if "python" in request:
                    self.pid = fork_python(env, theirs)
                else:
                    self.pid = spawn(request["argv"], env, theirs)
        except BaseException:
            for fd in (self.stdin, out, err):
                os.close(fd)
            raise
        finally:
            os.chdir("/")
            for fd in theirs:
                os.close(fd)
        self.outputs = {out: b"O", err: b"E"}

    def start_slowly(self, request, user, env, folder):
        """The same for a terminal or another user, which posix_spawn() cannot do."""
        kwargs = {}
        if user != "root":
            entry = pwd.getpwnam(user)
            kwargs = dict(user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])
        if self.tty:
            master, slave = os.openpty()
            self.resize(master, request)
            env["TERM"] = request.get("term") or "vt100"
            ours, theirs = (master,), (slave, slave, slave)
            kwargs["preexec_fn"] = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        else:
            pipes = os.pipe(), os.pipe(), os.pipe()
            ours = pipes[0][1], pipes[1][0], pipes[2][0]
            theirs = pipes[0][0], pipes[1][1], pipes[2][1]
        try:
            with self.cgroup:
                child = subprocess.Popen(
                    request["argv"], cwd=folder, env=env, start_new_session=True,
                    stdin=theirs[0], stdout=theirs[1], stderr=theirs[2], **kwargs,
                )  # fmt: skip
            child.returncode = 0  # only reap() waits for it
            self.pid = child.pid
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in set(theirs):
                os.close(fd)
        self.stdin = ours[0]
        self.outputs = {master: b"O"} if self.tty else {ours[1]: b"O", ours[2]: b"E"}

    @staticmethod
    def resize(fd, request):
        rows, cols = int(request.get("rows") or 24), int(request.get("cols") or 80)
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def watch(self, fd):
        """(Re)register FD for the events that this session currently wants."""
        events = 0
        if fd in self.outputs and not self.paused:
            events |= selectors.EVENT_READ
        if fd == self.stdin and self.pending:
            events |= selectors.EVENT_WRITE
        known = fd in sel.get_map()
        if events and known:
            sel.modify(fd, events, self.on_stream)
        elif events:
            sel.register(fd, events, self.on_stream)
        elif known:
            sel.unregister(fd)

    def on_stream(self, fd, events):
        if events & selectors.EVENT_WRITE and fd == self.stdin:
            self.feed(b"")
        if events & selectors.EVENT_READ and fd in self.outputs:
            try:
                data = os.read(fd, CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""  # the end of a pseudo terminal is EIO
            if data:
                self.port.send(self.outputs[fd], data)
            else:
                self.outputs.pop(fd)
                self.watch(fd)
                if fd != self.stdin:
                    os.close(fd)
                self.maybe_finish()

    def feed(self, data):
        """Write DATA to the command's stdin; what does not fit is kept for later."""
        if self.stdin is None:
            return
        self.pending += data
        try:
            while self.pending:
                n = os.write(self.stdin, self.pending[:CHUNK])
                del self.pending[:n]
        except BlockingIOError:
            pass
        except OSError:
            self.pending.clear()  # the command no longer reads
            self.eof = True
        fd = self.stdin
        if self.eof and not self.pending and not self.tty:
            self.stdin = None
            self.watch(fd)
            os.close(fd)
        else:
            self.watch(fd)

    def end_input(self):
        self.eof = True
        if self.tty:
            self.feed(b"\x04")
        else:
            self.feed(b"")

    def pause(self, on):
        """Pause or resume reading output, depending on whether the port is full."""
        if self.paused != on:
            self.paused = on
            for fd in list(self.outputs):
                self.watch(fd)

    def on_exit(self, _fd, _events):
        sel.unregister(self.pidfd)
        os.close(self.pidfd)
        self.pidfd = None
        self.reap()
        self.ended = time.monotonic()
        self.maybe_finish()

    def reap(self):
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def maybe_finish(self):
        """Report the end once the command has ended and its output is sent."""
        if self.ended is None:
            return
        late = time.monotonic() - self.ended > GRACE
        if self.outputs and (self.paused or not late):
            return
        self.drain()
        if self.port.session is not self:
            return  # the host has gone away
        result = {"status": self.code} if self.code >= 0 else {"signal": -self.code}
        self.port.send(b"X", json.dumps(result).encode())
        self.close(kill=False)

    def drain(self):
        """Pass on what is still in the pipes of a command that has ended. Processes
        that it left running may keep writing: one pipe's capacity is enough."""
        for fd, kind in self.outputs.items():
            left = PIPE
            try:
                while left > 0 and self.port.session is self:
                    data = os.read(fd, CHUNK)
                    if not data:
                        break
                    self.port.send(kind, data)
                    left -= len(data)
            except OSError:
                pass  # empty, or a pseudo terminal's end

    def signal(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        try:
            self.cgroup.kill()
        except OSError:
            self.signal(signal.SIGKILL)

    def close(self, kill):
        if kill:
            self.kill()
        for fd in set(self.outputs) | ({self.stdin} - {None}):
            if fd in sel.get_map():
                sel.unregister(fd)
            os.close(fd)
        self.outputs = {}
        self.stdin = None
        if self.pidfd is not None:
            sel.unregister(self.pidfd)
            os.close(self.pidfd)
            self.pidfd = None
            self.reap()
        self.cgroup.give_back()
        self.port.session = None


def whole(path):
    """The contents of a file, or nothing."""
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


class Port:
    """One virtio-serial port: parses messages, owns at most one session."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        # The kernel signals when the host opens or closes its end.
        fcntl.fcntl(self.fd, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(self.fd, fcntl.F_GETFL)
        fcntl.fcntl(self.fd, fcntl.F_SETFL, flags | os.O_ASYNC)
        self.inbuf = bytearray()
        self.out = bytearray()
        self.session = None
        self.attached = False
        self.synced = False
        self.away = None  # since when the host seems to be
        self.check()

    def check(self):
        """Check whether the host is connected. A port without a host is not polled,
        because it would always be ready."""
        if self.attached and self.away is None:
            return
        try:
            data = os.read(self.fd, CHUNK)
        except BlockingIOError:
            data = None
        except OSError:
            data = b""
        if data == b"":
            if self.attached and time.monotonic() - self.away > AWAY:
                self.detach()
            return
        self.attached = True
        self.away = None
        sel.register(self.fd, selectors.EVENT_READ, self.on_event)
        if data:
            self.receive(data)
        self.flush()

    def look_again(self):
        """The host seems to have disconnected."""
        if self.away is None:
            sel.unregister(self.fd)
            if self.session or self.inbuf or self.out:
                self.away = time.monotonic()
            else:
                self.detach()

    def detach(self):
        self.attached = self.synced = False
        self.away = None
        self.inbuf.clear()
        self.out.clear()
        if self.session:
            self.session.close(kill=True)

    def on_event(self, _fd, events):
        if events & selectors.EVENT_READ:
            try:
                data = os.read(self.fd, CHUNK)
            except BlockingIOError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                self.look_again()
                return
            if data:
                self.receive(data)
        if self.away is None and events & selectors.EVENT_WRITE:
            self.flush()

    def receive(self, data):
        self.inbuf += data
        at = self.inbuf.rfind(MAGIC)
        if at >= 0:
            if self.session:
                self.session.close(kill=True)
            self.out.clear()
            del self.inbuf[: at + len(MAGIC)]
            self.synced = True
        if not self.synced:
            del self.inbuf[: -len(MAGIC)]
            return
        while len(self.inbuf) >= HEADER.size:
            kind, length = HEADER.unpack_from(self.inbuf)
            if len(self.inbuf) < HEADER.size + length:
                break
            payload = bytes(self.inbuf[HEADER.size : HEADER.size + length])
            del self.inbuf[: HEADER.size + length]
            self.handle(kind, payload)

    def handle(self, kind, payload):
        if kind == b"R" and not self.session:
            request = json.loads(payload)
            self.out += MAGIC + bytes.fromhex(request["id"])
            if "resume" in request:
                Booting.start(boot.resume, request["resume"])
                self.send(b"X", json.dumps({"status": 0}).encode())
                return
            if "ask" in request:
                self.answer(request["ask"])
                return
            try:
                self.session = Session(self, request)
            except (OSError, KeyError, subprocess.SubprocessError) as error:
                missing = isinstance(error, OSError) and error.errno == errno.ENOENT
                reply = {"error": str(error), "status": 127 if missing else 126}
                self.session = None
                self.send(b"X", json.dumps(reply).encode())
            self.flush()
        elif not self.session:
            return  # late input for a command that has ended
        elif kind == b"I":
            if payload:
                self.session.feed(payload)
            else:
                self.session.end_input()
        elif kind == b"K":
            self.session.kill()
        elif kind == b"S":
            self.session.signal(int(json.loads(payload)["signal"]))
        elif kind == b"W" and self.session.tty:
            self.session.resize(self.session.stdin, json.loads(payload))

    def answer(self, question):
        """Questions that the agent answers without a process."""
        if question == "environment":
            env = guestenv.environment()
            told = "".join(f"{key}={value}\n" for key, value in env.items())
        else:
            told = "".join(map(whole, question))
        for at in range(0, len(told), CHUNK):
            self.send(b"O", told[at : at + CHUNK].encode())
        self.send(b"X", json.dumps({"status": 0}).encode())

    def send(self, kind, data):
        self.out += HEADER.pack(kind, len(data)) + data
        self.flush()

    def flush(self):
        try:
            while self.out:
                n = os.write(self.fd, self.out[:CHUNK])
                del self.out[:n]
        except BlockingIOError:
            pass
        except OSError:
            self.look_again()
            return
        if self.attached and self.away is None:
            want = selectors.EVENT_READ
            if self.out:
                want |= selectors.EVENT_WRITE
            sel.modify(self.fd, want, self.on_event)
        if self.session:
            self.session.pause(len(self.out) > 4 * CHUNK)


def main():
    global home
    # The SIGIO of a port wakes the loop through this pair.
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGIO, lambda *_: None)

    def drain(_fd, _events):
        nonlocal called
        called = True
        try:
            while ours.recv(4096):
                pass
        except BlockingIOError:
            pass

    sel.register(ours, selectors.EVENT_READ, drain)
    home = Cgroup()
    with home:
        pass  # it stays there
    # The adapter is set up beside us: the host looks at the log.
    Booting.start(boot.main)
    ports = []
    known = set()
    scan_until = time.monotonic() + 60
    called = idle = True
    while True:
        if idle and time.monotonic() < scan_until:
            for path in glob.glob("/dev/virtio-ports/qhca.*"):
                if path not in known:
                    known.add(path)
                    ports.append(Port(path))
        busy = any(p.session and p.session.ended is not None for p in ports)
        booting = Booting.going_on() or len(ports) == 0
        away = any(p.away is not None for p in ports)
        ready = sel.select(0.1 if busy or booting or away else 2.0)
        idle = not ready
        for key, events in ready:
            # A callback may have closed what a later event is about.
            if key.fd in sel.get_map() and sel.get_map()[key.fd].data == key.data:
                key.data(key.fd, events)
        for port in ports:
            if called or idle or port.away is not None:
                port.check()
            if port.session:
                port.session.maybe_finish()
        called = False


if __name__ == "__main__":
    main()

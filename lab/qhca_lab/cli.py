# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of lab/qhca-lab."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import select
import shlex
import signal
import struct
import sys
import termios
import time
import tty
from pathlib import Path

from . import capture, fault_cli, kernels, pair, replay
from .channel import CHUNK, Channel
from .errors import CommandFailed, LabError
from .guest import Guest, exit_status
from .lab import Lab, Options
from .record import cli as record

DESCRIPTION = """\
Boot guests with RDMA adapters on one wire, and run programs in them.

Guests are named a, b, c, ... and have the addresses 10.99.0.1, .2, .3 (and
fd99::1, ...) on the adapter's interface. In a guest's commands IBDEV is its
RDMA device and GIDX the index of its RoCEv2 GID for that address."""

EXAMPLES = """\
examples:
  qhca-lab up                               two guests with qhca
  qhca-lab up --nic qhca,rxe                qhca in a, Soft-RoCE in b
  qhca-lab up --kernel newest               on the newest backports kernel
  qhca-lab up --nic qhca --append swiotlb=force -- -gdb tcp::123{n}
  qhca-lab exec a -- sh -c 'ibv_devinfo -d $IBDEV'
  qhca-lab pair 'ibv_rc_pingpong -d $IBDEV -g $GIDX'
  qhca-lab capture run.pcapng --seconds 10
  qhca-lab record -o run 'ibv_rc_pingpong -d $IBDEV -g $GIDX -n 5'
  qhca-lab down"""

PAIR = """\
Run a program in two guests: a server and its client.

PROGRAM starts in guest b. When it waits for clients (it listens on a TCP port, or
has slept for two seconds), PROGRAM ADDRESS-OF-B starts in guest a. Each line of
output begins with the guest's name; the server's output is shown after it ends. A
command after -- runs on the host instead of the client, with the server's address
in PEER.

The exit status is the client's, or if that is 0 the server's."""

PAIR_EXAMPLES = """\
examples:
  qhca-lab pair 'ibv_rc_pingpong -d $IBDEV -g $GIDX'
  qhca-lab pair 'ib_write_bw -d $IBDEV -x $GIDX' --server a --client c
  qhca-lab pair ucmatose --client-command 'ucmatose -s $PEER'
  qhca-lab pair 'ibv_rc_pingpong -d $IBDEV -g $GIDX' -- qhca-gdb kernel b"""


def say(text: str) -> None:
    print(f"qhca-lab: {text}", file=sys.stderr, flush=True)


# ------------------------------------------------------------------ commands


def cmd_up(args) -> int:
    nics = args.nic.split(",")
    if args.guests is not None:
        if len(nics) == 1:
            nics *= args.guests
        elif len(nics) != args.guests:
            raise LabError(f"--nic lists {len(nics)} adapters, but --guests is {args.guests}")
    elif len(nics) == 1:
        nics *= 2
    options = Options(
        link=args.link, mtu=args.mtu, mem=args.mem, smp=args.smp, iommu=args.iommu,
        loss=args.loss, loss_match=args.loss_match, seed=args.seed, share=args.share,
        load=args.load, append=args.append, qemu=args.rest,
        cold=args.cold, kernel=kernels.kernel(args.kernel or kernels.usual()).what,
        **({} if args.timeout is None else {"boot_timeout": args.timeout}),
    )  # fmt: skip
    Lab.up(args.name, nics, options, progress=say, replace=args.replace, reuse=True)
    return 0


def cmd_exec(args) -> int:
    if not args.rest:
        raise LabError("no command: qhca-lab exec GUEST -- COMMAND")
    guest = Lab.load(args.name)[args.guest]
    env = dict(pair.split("=", 1) for pair in args.env)
    request = {"argv": args.rest, "env": env, "cwd": args.cwd, "user": args.user}
    return pass_through(guest, request, args.timeout)


def cmd_shell(args) -> int:
    guest = Lab.load(args.name)[args.guest]
    if not sys.stdin.isatty():
        raise LabError("shell needs a terminal; use exec in scripts")
    size = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    request = {
        "argv": args.rest or ["/bin/bash", "-l"],
        "tty": True,
        "rows": size[0],
        "cols": size[1],
        "term": os.environ.get("TERM", "vt100"),
    }
    before = termios.tcgetattr(0)
    try:
        # Keep input that was typed ahead: setraw discards it by default.
        tty.setraw(0, termios.TCSADRAIN)
        return pass_through(guest, request, None, raw=True)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def pass_through(guest: Guest, request: dict, timeout, raw: bool = False) -> int:
    """Run REQUEST with our standard streams; returns the exit status.

    124 after TIMEOUT seconds (as timeout(1) does), with the console's end.
    """
    channel = Channel(guest.dir, request)
    wake_r, wake_w = os.pipe()
    for fd in (wake_r, wake_w):
        os.set_blocking(fd, False)
    got: list[int] = []

    def on_signal(number, _frame):
        got.append(number)
        os.write(wake_w, b"x")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH):
        signal.signal(number, on_signal)
    deadline = None if timeout is None else time.monotonic() + timeout
    reading = True
    try:
        while True:
            poll = select.poll()
            want = select.POLLIN | (select.POLLOUT if channel.wants_write else 0)
            poll.register(channel.fileno(), want)
            poll.register(wake_r, select.POLLIN)
            # Read no more input than the guest accepts.
            if reading and channel.backlog < 8 * CHUNK:
                poll.register(0, select.POLLIN)
            left = None
            if deadline is not None:
                left = max(0.0, deadline - time.monotonic()) * 1000
            ready = dict(poll.poll(left))
            if deadline is not None and time.monotonic() >= deadline:
                say(f"killed after {timeout} s: {' '.join(request['argv'])}")
                print(guest.evidence(), file=sys.stderr)
                return 124
            if wake_r in ready:
                os.read(wake_r, 64)
                for number in got:
                    forward_signal(channel, number)
                got.clear()
            if 0 in ready:
                try:
                    data = os.read(0, CHUNK)
                except OSError:
                    data = b""
                channel.send(b"I", data)
                reading = bool(data)
            channel.flush()
            for kind, data in channel.messages():
                if kind in (b"O", b"E"):
                    write_all(1 if kind == b"O" else 2, data)
                elif kind == b"X":
                    reply = json.loads(data)
                    if "error" in reply:
                        say(f"guest {guest.name}: {reply['error']}")
                    return exit_status(reply)
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    finally:
        channel.close()


def forward_signal(channel: Channel, number: int) -> None:
    if number == signal.SIGWINCH:
        if sys.stdin.isatty():
            size = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
            text = json.dumps({"rows": size[0], "cols": size[1]})
            channel.send(b"W", text.encode())
    else:
        channel.send(b"S", json.dumps({"signal": int(number)}).encode())


def write_all(fd: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            select.select([], [fd], [])


def cmd_pair(args) -> int:
    return pair.Asked.of(args).run(Lab.load(args.name), say)


def cmd_copy(args) -> int:
    lab = Lab.load(args.name)
    source, target = remote(lab, args.source), remote(lab, args.target)
    if (source is None) == (target is None):
        raise LabError("one side must be GUEST:PATH, the other a path on the host")
    if target:
        target[0].put(args.source, target[1])
    else:
        source[0].get(source[1], args.target)
    return 0


def remote(lab: Lab, text: str):
    """(guest, path) when TEXT is GUEST:PATH."""
    name, colon, path = text.partition(":")
    if colon and name in lab.nodes:
        return lab[name], path
    return None


def cmd_capture(args) -> int:
    lab = Lab.load(args.name)
    if args.stop:
        if not args.file:
            raise LabError("specify the file: qhca-lab capture --stop FILE.pcapng")
        say(f"{capture.stop(lab, Path(args.file))} frames in {args.file}")
        return 0
    if args.start:
        capture.start(lab)
        return 0
    if not args.file:
        raise LabError("specify the file: qhca-lab capture FILE.pcapng")
    capture.start(lab)
    stop = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.append(1))
    try:
        deadline = None if args.seconds is None else time.monotonic() + args.seconds
        if deadline is None:
            say("capturing; press Ctrl-C to stop")
        while not stop and (deadline is None or time.monotonic() < deadline):
            time.sleep(0.1)
    finally:
        say(f"{capture.stop(lab, Path(args.file))} frames in {args.file}")
    return 0


def cmd_status(args) -> int:
    try:
        status = Lab.load(args.name).status()
    except LabError as error:
        if args.json:
            print(json.dumps({"name": args.name, "guests": {}}))
        else:
            print(error)
        return 1
    if args.json:
        print(json.dumps(status, indent=1))
    else:
        kernel = status["kernel"]
        told = "" if kernel == kernels.DEFAULT else f"kernel {kernel}, "
        print(f"lab {status['name']}, {told}link {status['link']}, logs in {status['logs']}")
        if status["accel"]:
            print(f"  guests run under {status['accel']}")
        for name, g in status["guests"].items():
            state = "up" if g["alive"] else "DEAD"
            if g["frozen"]:
                state = "at a break" if g["run"] == "debug" else "frozen"
            elif g["alive"] and g["run"] != "running":
                state = g["run"]
            print(f"  {name}  {state}  {g['nic']:6} {g['ip']}  {g['mac']}  pid {g['pid']}")
    return 0 if all(g["alive"] for g in status["guests"].values()) else 1


def cmd_down(args) -> int:
    try:
        lab = Lab.load(args.name)
    except LabError:
        return 0
    lab.down()
    return 0


def cmd_qmp(args) -> int:
    arguments = json.loads(args.arguments) if args.arguments else None
    with Lab.load(args.name)[args.guest].tool_qmp() as qmp:
        print(json.dumps(qmp.command(args.command, arguments), indent=1))
    return 0


def cmd_log(args) -> int:
    guest = Lab.load(args.name)[args.guest]
    print(guest.qemu_log() if args.qemu else guest.console(), end="")
    return 0


def cmd_rr_record(args) -> int:
    made = replay.record(
        Path(args.dir), args.guests, shlex.join(args.rest) if args.rest else None,
        mem=args.mem, properties=args.property, append=args.append, mtu=args.mtu,
        timeout=args.timeout, say=say,
    )  # fmt: skip
    for name, status in made.state["status"].items():
        say(f"guest {name}: status {status}, console in {made.dir / name / 'console.log'}")
    return max(made.state["status"].values())


def cmd_rr_replay(args) -> int:
    made = replay.RecordedRun.load(Path(args.dir).resolve())
    names = [args.guest] if args.guest else made.guests
    if not args.gdb:
        for name in names:
            replay.replay(made, name, args.timeout)
            say(f"guest {name}: the console is the same, byte by byte")
        return 0
    name = names[0]
    run = replay.replay_run(made, name, ["-S", "-gdb", args.gdb])
    where = args.gdb.removeprefix("tcp:").removeprefix("unix:").split(",")[0]
    say(f"guest {name} is stopped before its first instruction; in gdb: target remote {where}")
    try:
        return run.child.wait()
    except KeyboardInterrupt:
        return 130
    finally:
        if run.child.poll() is None:
            run.child.kill()
            run.child.wait()


# ------------------------------------------------------------------- parser


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="qhca-lab",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--name", default=os.environ.get("QHCA_LAB", "lab"),
                     help="name of the lab (default: $QHCA_LAB or 'lab')")
    # Also accepted after the command.
    name = argparse.ArgumentParser(add_help=False)
    name.add_argument("--name", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    sub = top.add_subparsers(dest="cmd", required=True, metavar="COMMAND")

    def command(word, run, text, **kwargs):
        p = sub.add_parser(word, help=text, description=text, parents=[name], **kwargs)
        p.set_defaults(run=run)
        return p

    p = command("up", cmd_up, "boot a lab and wait until its guests are ready. "
                "A running lab with the same options is used as it is. "
                "Options after -- are passed to every QEMU; {n}, {name} and {dir} (the "
                "lab's folder) in them are replaced")
    p.add_argument("--guests", type=int, metavar="N", help="number of guests (default 2)")
    p.add_argument("--nic", default="qhca", metavar="NIC[,NIC...]",
                   help="adapter of all guests, or of each: qhca, rxe (Soft-RoCE over "
                   "virtio-net) or none; device properties as qhca:PROP=VALUE; on a dgram "
                   "link with only qhcas, large messages cross the wire as super-frames unless "
                   "qhca:super-frames=off is given")
    p.add_argument("--link", default="auto", choices=("auto", "dgram", "switch", "memory"),
                   help="dgram connects two guests, switch (a bridge) any number; with "
                   "memory, RDMA also passes through the guests' memory: much faster, but "
                   "the QEMUs can read each other's guests; auto (default) is memory if all "
                   "adapters are qhcas and the wire is lossless")
    p.add_argument("--mtu", type=int, default=9000, help="MTU of the interfaces (default 9000)")
    p.add_argument("--mem", default="1G", help="memory of a guest (default 1G)")
    p.add_argument("--smp", type=int, default=2, help="CPUs of a guest (default 2)")
    p.add_argument("--iommu", action="store_true", help="add an Intel IOMMU and enable it")
    p.add_argument("--loss", type=float, default=0.0, metavar="PERCENT",
                   help="drop this share of the frames (two guests only)")
    p.add_argument("--loss-match", choices=("all", "roce"), default="all",
                   help="which frames are dropped (default: all)")
    p.add_argument("--seed", type=int, default=1, help="seed of the losses (default 1)")
    p.add_argument("--share", metavar="DIR", help="host folder that guests see as /qhca/share")
    p.add_argument("--load", action="append", default=[], metavar="MODULE.PARAM=VALUE",
                   help="module parameter of the driver; may be repeated")
    p.add_argument("--append", action="append", default=[], metavar="KERNELARGS",
                   help="additional kernel arguments")
    p.add_argument("--kernel", metavar="KERNEL",
                   help="default (Debian 13's), newest (from the backports), debug (KASAN, "
                   "lockdep, kmemleak), or the folder of a kernel build tree; 'make kernel KERNEL=...' builds what it needs (default: "
                   "$QHCA_KERNEL or 'default')")
    p.add_argument("--cold", action="store_true",
                   help="boot each guest (default: start copies of a booted one)")
    p.add_argument("--timeout", type=float, metavar="SECONDS",
                   help="time limit for booting (default $QHCA_BOOT_TIMEOUT or 180)")
    p.add_argument("--replace", action="store_true", help="first shut down a running lab of that name")

    p = command("exec", cmd_exec, "run a command in a guest, with its streams and exit status")
    p.add_argument("guest")
    p.add_argument("--timeout", type=float, metavar="SECONDS",
                   help="kill it after this time: status 124, and the end of the console is shown")
    p.add_argument("--user", help="user to run it as (default root)")
    p.add_argument("--cwd", help="working directory")
    p.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")

    p = command("pair", cmd_pair, "run a server in one guest and its client in another",
                epilog=PAIR_EXAMPLES,
                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.description = PAIR
    pair.add_arguments(p)

    p = command("shell", cmd_shell, "open a shell in a guest, or run another program after --")
    p.add_argument("guest", nargs="?", default="a")

    p = command("copy", cmd_copy, "copy a file or folder: SRC GUEST:DST, or GUEST:SRC DST")
    p.add_argument("source")
    p.add_argument("target")

    p = command("capture", cmd_capture, "write the frames on the wire to a pcapng file")
    p.add_argument("file", nargs="?")
    p.add_argument("--seconds", type=float, help="how long (default: until Ctrl-C)")
    group = p.add_mutually_exclusive_group()
    group.add_argument("--start", action="store_true", help="start and return immediately")
    group.add_argument("--stop", action="store_true", help="stop, and write FILE")

    record.add(command)

    p = command("status", cmd_status, "show the guests; exit status 0 if all are up")
    p.add_argument("--json", action="store_true")

    command("down", cmd_down, "shut a lab down; its logs stay in build/log")

    p = command("qmp", cmd_qmp, "send a QMP command to a guest's QEMU")
    p.add_argument("guest")
    p.add_argument("command")
    p.add_argument("arguments", nargs="?", metavar="JSON")

    fault_cli.add_parser(command)
    p = command("rr-record", cmd_rr_record, "record guests, instruction by instruction, while they run the "
                "command after -- (default: a ping-pong), with its exit status. Needs no "
                "running lab")
    p.add_argument("dir", help="a new folder for the recording")
    p.add_argument("--guests", type=int, default=1, choices=(1, 2), help="1 (default) or 2")
    p.add_argument("--mem", default="512M", help="memory of a guest (default 512M)")
    p.add_argument("--mtu", type=int, default=9000, help="MTU of the interfaces (default 9000)")
    p.add_argument("--property", action="append", default=[], metavar="NAME=VALUE",
                   help="property of the adapter")
    p.add_argument("--append", action="append", default=[], metavar="KERNELARGS",
                   help="additional kernel arguments")
    p.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS",
                   help="time limit for all of it (default 300)")

    p = command("rr-replay", cmd_rr_replay, "replay a recording and compare its consoles; "
                "or stop before the first instruction, for gdb")
    p.add_argument("dir", help="the recording")
    p.add_argument("guest", nargs="?", help="one guest (default: all, one after the other)")
    p.add_argument("--gdb", nargs="?", const="tcp:127.0.0.1:1234", metavar="WHERE",
                   help="open a gdbstub there, as for QEMU's -gdb (default tcp:127.0.0.1:1234)")
    p.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS",
                   help="time limit for each guest (default 300)")

    p = command("log", cmd_log, "show a guest's console (or --qemu: QEMU's own log)")
    p.add_argument("guest")
    p.add_argument("--qemu", action="store_true")
    return top


def main(argv: list[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    rest: list[str] = []
    if "--" in argv:
        at = argv.index("--")
        argv, rest = argv[:at], argv[at + 1 :]
    top = parser()
    args = top.parse_args(argv)
    takes = ("up", "exec", "pair", "shell", "record", "rr-record")
    if rest and args.cmd not in takes and getattr(args, "fault", None) != "run":
        top.error(f"{args.cmd} takes nothing after --")
    args.rest = rest
    try:
        return args.run(args)
    except CommandFailed as error:
        say(str(error))
        return error.result.rc or 1
    except (LabError, ValueError) as error:
        say(f"error: {error}")
        return 125
    except KeyboardInterrupt:
        return 130

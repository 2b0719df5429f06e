# SPDX-License-Identifier: GPL-2.0-or-later
"""Implements lab/qhca-gdb: gdb of the build root, with symbols and commands loaded."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from . import paths
from .elf import build_id
from .errors import LabError
from .guest import build_ids, sections
from .lab import Lab

DESCRIPTION = """\
Debug with gdb, with the project's symbols and commands loaded ('help qhca-qps',
... in gdb; docs/how-to/debug-with-gdb.md).

kernel GUEST            the guest's kernel, over QEMU's gdbstub. The guest is
                        stopped while gdb is attached
provider GUEST COMMAND  a program in the guest (one shell command line; $IBDEV and
                        $GIDX are set); gdb stops before its first instruction
engine GUEST            QEMU itself: the engine inside the device

Arguments after -- are passed to gdb: qhca-gdb engine a -- -batch -ex qhca-qps"""

EXAMPLES = """\
examples:
  qhca-gdb kernel a
  qhca-gdb provider a 'ibv_rc_pingpong -d $IBDEV -g $GIDX 10.99.0.2' -- -ex 'break qhca_post_send'
  qhca-gdb engine b -- -batch -ex qhca-engine"""


def other_build(force: bool, text: str) -> None:
    """Report that gdb would show lines and values of another build: TEXT says of what, and
    what to do. An error, or with FORCE a warning."""
    if not force:
        raise LabError(f"{text}; with --force gdb starts anyway, but what it shows may "
                       "be wrong")
    print(f"qhca-gdb: warning: {text}", file=sys.stderr)


def check_modules(guest, loaded: dict[str, str], force: bool, running: bool = True) -> None:
    """Are the modules with the build IDs LOADED those of the build folder? Unknown ones
    pass. RUNNING: the guest runs, so LOADED is up to date."""
    for module, there in loaded.items():
        ko = guest.driver / f"{module}.ko"
        here = build_id(ko)[1].hex()
        if there and here and there != here:
            other_build(force, (
                f"the driver in guest {guest.name} is from a different build than {ko}: "
                + ("" if running else "let the guest continue first (lab/qhca-scope continue), "
                   "as it is not known what it has loaded since it booted; then ")
                + f"lab/qhca-lab exec {guest.name} -- sh -c 'qhca-unload && qhca-load && "
                "qhca-net' loads this one, or restart the lab"))
            return


PROVIDER = """\
for f in /qhca/build/provider/libqhca-rdmav*.so; do
    there=/usr/lib/x86_64-linux-gnu/libibverbs/${f##*/}
    [ ! -e "$there" ] || cmp -s "$f" "$there" || exit 17
done
"""


def check_provider(guest, force: bool) -> None:
    """Is the guest's libqhca that of the build folder?"""
    if guest.run(PROVIDER, 20, check=False).rc == 17:
        other_build(force, (
            f"libqhca in guest {guest.name} is from a different build than that in "
            f"{paths.BUILD / 'provider'}: lab/qhca-lab exec {guest.name} -- qhca-provider "
            "installs this one"))


def check_process(pid: int, base: int, binary: Path, force: bool) -> None:
    """Does process PID run this build of BINARY, loaded at BASE?"""
    address, note = build_id(binary)
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(base + address)
            running = memory.read(len(note))
    except PermissionError:
        return                  # gdb will get the same error, and report it
    except OSError:
        running = b""           # nothing is mapped there
    if running != note:
        other_build(force, (
            f"QEMU was rebuilt: process {pid} does not run the current {binary}. Restart "
            "the lab with lab/qhca-lab up --replace"))


def module_lines(guest, found: dict[str, dict[str, str]]) -> list[str]:
    """gdb's commands that load the modules' symbols; copies go to the guest's folder."""
    lines = []
    for module, addresses in found.items():
        addresses = dict(addresses)
        text = addresses.pop(".text")
        ko = guest.dir / f"{module}.ko"
        # The kernel's linker script gives some sections an address. gdb then uses
        # the symbols of one section for another.
        command = [
            str(paths.TOP / "lab" / "in-root"), "objcopy", "--change-section-address", "*=0",
            str(guest.driver / f"{module}.ko"), str(ko),
        ]  # fmt: skip
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"no symbols for {module}: {done.stderr.strip()}")
        rest = " ".join(f"-s {name} {address}" for name, address in addresses.items())
        lines.append(f"add-symbol-file {ko} {text} {rest}")
    return lines


def environment() -> dict[str, str]:
    """For lab/in-root: the labs' folders must be visible inside, too."""
    binds = f"{paths.run_base()} {os.environ.get('QHCA_BIND', '')}"
    return dict(os.environ, QHCA_BIND=binds)


def kernel(guest, _command: str, force: bool) -> list[str]:
    """The guest's stub, opened now if necessary, and the addresses of the modules."""
    with guest.tool_qmp() as qmp:
        running = qmp.command("query-status")["status"] == "running"
    found, builds = {}, {}
    if running:
        try:
            said = guest.run("qhca-sections", 20).out
            found, builds = sections(said), build_ids(said)
        except LabError:
            running = False     # it has been stopped meanwhile
    if not running:
        found, builds = guest.state.get("sections", {}), guest.state.get("build_ids", {})
    if "qhca_ib" not in found:
        raise LabError(
            f"guest {guest.name} has no qhca driver in its kernel: is it an rxe guest? "
            "Or was the driver unloaded? 'qhca-load' in the guest loads it"
        )
    check_modules(guest, builds, force, running)
    stub = guest.dir / "gdb"
    with guest.tool_qmp() as qmp:
        answer = qmp.command(
            "human-monitor-command",
            {"command-line": f"gdbserver unix:{stub},server=on,wait=off"},
        )
    if not stub.exists():
        raise LabError(f"QEMU of guest {guest.name} opens no gdbstub: {answer.strip()}")
    return [
        f"target remote {stub}",
        # Quitting would resume the guest. One that was stopped before stays stopped.
        *([] if running else
          ["python gdb.events.gdb_exiting.connect(lambda _event: gdb.execute('disconnect'))"]),
        *module_lines(guest, found),
        f"source {paths.TOP}/lab/gdb/kernel.py",
    ]


def provider(guest, command: str, force: bool) -> list[str]:
    """A program of the guest under gdbserver, its protocol through the agent."""
    if not command:
        raise LabError("give the program: qhca-gdb provider GUEST 'COMMAND'")
    have = guest.run("command -v gdbserver", 20, check=False)
    if have.rc != 0:
        raise LabError("the guests have no gdbserver: run 'make image' and reboot them")
    check_provider(guest, force)
    words = [
        str(paths.TOP / "lab" / "qhca-lab"), "--name", guest.lab_name, "exec", guest.name,
        "--", "bash", "-c", f"exec gdbserver --once - {command}",
    ]  # fmt: skip
    return [
        f"set sysroot {paths.in_root(paths.BUILD / 'root-guest')}",
        f"set solib-search-path {paths.BUILD / 'provider'}",
        f"source {paths.TOP}/lab/gdb/provider.py",
        f"target remote | {shlex.join(words)}",
    ]


def engine(guest, _command: str, force: bool) -> list[str]:
    """QEMU's process. Its executable is run by the build root's loader, so gdb needs its
    load address."""
    pid = guest.state["process"]["pid"]
    binary = Path(f"{paths.QEMU}.real")
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.removesuffix(" (deleted)").split(maxsplit=5)
        if len(fields) > 5 and fields[5].endswith(binary.name) and fields[2] == "00000000":
            base = "0x" + fields[0].split("-")[0]
            break
    else:
        raise LabError(f"process {pid} does not run {binary}: the lab was started with "
                       "another QEMU. Restart it with the QEMU in the build folder")
    check_process(pid, int(base, 16), binary, force)
    return [
        "handle SIGUSR1 nostop noprint pass",
        f"attach {pid}",
        f"add-symbol-file {binary} -o {base}",
        f"source {paths.TOP}/lab/gdb/engine.py",
    ]


KINDS = {"kernel": kernel, "provider": provider, "engine": engine}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="qhca-gdb", description=DESCRIPTION, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    top.add_argument("--name", default=os.environ.get("QHCA_LAB", "lab"),
                     help="which lab (default: $QHCA_LAB or 'lab')")
    top.add_argument("--force", action="store_true",
                     help="start even if running programs and symbols are from different builds")
    top.add_argument("kind", choices=KINDS)
    top.add_argument("guest")
    top.add_argument("command", nargs="?", default="", help="provider: the program")
    return top


def script(lab: Lab, kind: str, guest_name: str, command: str, force: bool) -> list[str]:
    """The lines that gdb executes first."""
    guest = lab[guest_name]
    if not guest.alive:
        raise LabError(f"QEMU of guest {guest.name} has ended: 'qhca-lab up' boots a lab")
    if guest.nic.split(":")[0] != "qhca" and kind != "provider":
        raise LabError(f"guest {guest.name} has {guest.nic}, not a qhca adapter")
    guest.lab_name = lab.name
    return [
        "set confirm off",
        "set print pretty on",
        "set debuginfod enabled off",
        "set architecture i386:x86-64",
        f"python import sys; sys.path.insert(0, '{paths.TOP}/lab/gdb')",
        *KINDS[kind](guest, command, force),
    ]


def main(argv: list[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    rest: list[str] = []
    if "--" in argv:
        at = argv.index("--")
        argv, rest = argv[:at], argv[at + 1:]
    args = parser().parse_args(argv)
    try:
        lab = Lab.load(args.name)
        lines = script(lab, args.kind, args.guest, args.command, args.force)
    except (LabError, OSError) as error:
        print(f"qhca-gdb: error: {error}", file=sys.stderr)
        return 125
    # In the lab's folder, so that it is removed with the lab.
    start = lab.dir / f"gdb-{args.kind}-{args.guest}-{os.getpid()}"
    start.write_text("\n".join(lines) + "\n")
    # A batch must not continue when its start has failed.
    check = f"python exec(open('{paths.TOP}/lab/gdb/start.py').read())"
    os.execve(
        str(paths.TOP / "lab" / "in-root"),
        ["in-root", "gdb", "-q", "-nx", "-iex", f"set $qhca_start = \"{start}\"",
         "-ex", check, *rest],
        environment(),
    )  # fmt: skip
    return 1

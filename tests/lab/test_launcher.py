# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher's parts that need no guest: state, wire, capture files."""

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import (  # noqa: E402
    Lab, LabError, Options, capture, lab, machine, paths, pcapng, process, roce)
from qhca_lab.channel import HEADER, MAGIC, Channel  # noqa: E402
from qhca_lab.guest import kernel_trouble  # noqa: E402
from qhca_lab.link import Link  # noqa: E402


@pytest.fixture
def run_dir(tmp_path, monkeypatch):
    """A short private place for state, as run_base() wants it."""
    base = Path("/tmp") / f"qt{os.getpid()}"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("QHCA_RUN", str(base))
    yield base
    subprocess.run(["rm", "-rf", str(base)], check=True)


# ---------------------------------------------------------------- state


def test_long_runtime_dir_is_passed_over(monkeypatch):
    """Socket paths are short whatever XDG_RUNTIME_DIR is."""
    monkeypatch.delenv("QHCA_RUN", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp/" + "x" * 90)
    assert len(str(paths.lab_dir("n" * 20) / "a" / "port11.lock")) < 107


def test_foreign_folder_is_refused(run_dir, monkeypatch):
    """A folder of another user is not used."""
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    try:
        with pytest.raises(LabError, match="no private folder"):
            paths.run_base()
    finally:
        Path("/tmp/qhca-54321").rmdir()


@pytest.mark.parametrize("name", ["", "a/b", "../x", "n" * 21, "a b"])
def test_bad_lab_names(name):
    with pytest.raises(LabError, match="bad lab name"):
        paths.lab_dir(name)


@pytest.mark.parametrize(
    "nics,options,complaint",
    [
        (["nosuch"], {}, "unknown adapter"),
        (["none"] * 10, {}, "1 to 9 guests"),
        (["none"] * 3, {"link": "dgram"}, "two guests"),
        (["none"] * 3, {"loss": 1.0}, "two guests"),
        (["none"] * 2, {"loss": 101.0}, "percentage"),
        (["none"] * 2, {"mtu": 10000}, "mtu"),
        (["none"] * 2, {"share": "/no/such"}, "no such folder"),
        (["none"] * 2, {"link": "carrier-pigeon"}, "unknown link"),
        (["qhca", "rxe"], {"link": "memory"}, "only qhcas"),
        (["qhca"] * 2, {"link": "memory", "loss": 1.0}, "--loss"),
    ],
)
def test_what_cannot_work_is_said_at_once(nics, options, complaint):
    with pytest.raises(LabError, match=complaint):
        lab.check_request(nics, Options(**options))


def test_boot_timeout_of_a_slow_host(monkeypatch):
    monkeypatch.delenv("QHCA_BOOT_TIMEOUT", raising=False)
    assert Options().boot_timeout == 180
    monkeypatch.setenv("QHCA_BOOT_TIMEOUT", "400.5")
    assert Options().boot_timeout == 400.5
    for bad in ("", "soon", "-1", "nan"):
        monkeypatch.setenv("QHCA_BOOT_TIMEOUT", bad)
        with pytest.raises(LabError, match="give seconds"):
            Options()


def test_recycled_pid_is_not_taken_for_ours():
    """A process is identified by its start time, too."""
    ours = process.identity(os.getpid())
    assert process.alive(ours)
    assert not process.alive(dict(ours, start=ours["start"] + 1))


def test_tied_process_dies_with_its_starter():
    script = (
        f"import sys; sys.path.insert(0, {str(TOP / 'lab')!r})\n"
        "from qhca_lab import process\n"
        "child = process.spawn(['sleep', '600'], True)\n"
        "print(child.pid, flush=True); import time; time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    who = process.identity(int(starter.stdout.readline()))
    assert process.alive(who)
    starter.kill()
    starter.wait()
    deadline = time.monotonic() + 60
    while process.alive(who):
        assert time.monotonic() < deadline, "it outlived its starter"
        time.sleep(0.02)


def state_of(directory, guests):
    return {
        "name": "old", "logs": str(directory / "logs"), "helpers": [], "options": {},
        "guests": {
            name: {"name": name, "nic": "none", "ip": "10.99.0.1", "ip6": "fd99::1",
                   "mac": "", "process": who}
            for name, who in guests.items()
        },
    }  # fmt: skip


def test_remains_of_a_killed_predecessor_are_cleared(run_dir):
    """One guest still runs, the other's process is gone: both are removed."""
    directory = paths.lab_dir("old")
    directory.mkdir()
    child = process.spawn(["sleep", "600"], True)
    running, gone = process.identity(child.pid), {"pid": child.pid, "start": 1}
    (directory / "lab.json").write_text(
        json.dumps(state_of(directory, {"a": running, "b": gone}))
    )
    lab.clear_predecessor(Lab.load("old"), directory, False, print)
    assert not directory.exists() and not process.alive(running)


def test_running_lab_is_left_alone(run_dir):
    directory = paths.lab_dir("old")
    directory.mkdir()
    child = process.spawn(["sleep", "600"], True)
    running = process.identity(child.pid)
    (directory / "lab.json").write_text(json.dumps(state_of(directory, {"a": running})))
    with pytest.raises(LabError, match="already up"):
        lab.clear_predecessor(Lab.load("old"), directory, False, print)
    assert process.alive(running)
    lab.clear_predecessor(Lab.load("old"), directory, True, print)
    assert not process.alive(running)


@pytest.fixture
def running_pair(run_dir, monkeypatch):
    """A lab of two guests, as `up` leaves it, without the processes."""
    monkeypatch.setattr(lab, "check_request", lambda *_: None)
    for name in ("QHCA_ACCEL", "QHCA_KERNEL", "QHCA_LINK"):
        monkeypatch.delenv(name, raising=False)
    directory = paths.lab_dir("old")
    directory.mkdir()
    children = [process.spawn(["sleep", "600"], True) for _ in "ab"]
    guests = {name: process.identity(child.pid) for name, child in zip("ab", children)}
    options = vars(Options(accel="tcg", tied=True, share=str(TOP / "docs")))
    state = dict(state_of(directory, guests), options=options, link="dgram, memory",
                 ready=True)
    for guest in state["guests"].values():
        guest["nic"] = "qhca"
    (directory / "lab.json").write_text(json.dumps(state))
    yield state
    for child in children:
        child.kill()
        child.wait()


@pytest.mark.parametrize("options", [{}, {"cold": True, "boot_timeout": 600, "seed": 5},
                                     {"link": "memory"}, {"accel": "tcg"}, {"kernel": ""}])
def test_running_lab_is_used_if_it_is_what_was_asked_for(running_pair, monkeypatch, options):
    monkeypatch.chdir(TOP)
    said = []
    found = Lab.up("old", ["qhca"] * 2, Options(share="docs", **options), said.append, reuse=True)
    assert found.state == running_pair and all(guest.alive for guest in found.guests)
    assert said == ["lab old is already up, and used as it is"]


@pytest.mark.parametrize(
    "nics, options, complaint",
    [
        (["qhca", "rxe"], {}, "with --nic qhca,qhca instead of qhca,rxe: take it down"),
        (["qhca"] * 3, {}, "--nic qhca,qhca instead of qhca,qhca,qhca:"),
        (["qhca"] * 2, {"iommu": True, "mtu": 1500},
         "--iommu off instead of on; --mtu 9000 instead of 1500:"),
        (["qhca"] * 2, {"link": "dgram"}, "--link dgram, memory instead of dgram:"),
        (["qhca"] * 2, {"loss": 1.0}, "--loss 0.0 instead of 1.0:"),
        (["qhca"] * 2, {"append": ["quiet"]}, "--append nothing instead of quiet:"),
        (["qhca"] * 2, {"accel": "kvm"}, "QHCA_ACCEL tcg instead of kvm:"),
        (["qhca"] * 2, {"share": None}, "--share /.*/docs instead of nothing:"),
        (["qhca"] * 2, {"kernel": "newest"}, "--kernel default instead of newest:"),
    ],
)
def test_running_lab_with_other_options_is_refused(running_pair, nics, options, complaint):
    options = Options(**dict({"share": str(TOP / "docs")}, **options))
    with pytest.raises(LabError, match=complaint):
        Lab.up("old", nics, options, reuse=True)
    assert all(guest.alive for guest in Lab.load("old").guests)


@pytest.mark.parametrize("lost, complaint", [
    ({"ready": False}, "its guests never became ready"),
    ({"helpers": [{"pid": 1, "start": 12345}]}, "a process of its wire has died"),
])
def test_running_lab_that_does_not_work_is_refused(running_pair, lost, complaint):
    (paths.lab_dir("old") / "lab.json").write_text(json.dumps(running_pair | lost))
    with pytest.raises(LabError, match=f"lab old is up, but {complaint}: replace it"):
        Lab.up("old", ["qhca"] * 2, Options(share=str(TOP / "docs")), reuse=True)
    assert all(guest.alive for guest in Lab.load("old").guests)


def test_no_lab_is_said_so(run_dir):
    with pytest.raises(LabError, match="not up"):
        Lab.load("nothing")


# ---------------------------------------------------------------- command line


def test_kernel_arguments_carry_the_settings():
    guest = {"name": "b", "nic": "qhca:vectors=4", "mac": machine.mac_of(2),
             "ip": "10.99.0.2", "ip6": "fd99::2"}  # fmt: skip
    text = machine.kernel_arguments(guest, Options(iommu=True, append=["swiotlb=force"]))
    words = text.split()
    assert "qhcalab.nic=qhca" in words and "qhcalab.ip=10.99.0.2" in words
    assert "intel_iommu=on" in words and "swiotlb=force" in words
    assert "vectors=4" in machine.nic_device(guest)[-1]
    assert "super-frames" not in machine.nic_device(guest)[-1]
    guest["super_frames"] = True
    assert "super-frames=on" in machine.nic_device(guest)[-1]


@pytest.fixture
def qemus(tmp_path):
    """Options in which the QEMU named OLD or NEW is one whose adapter has few or all
    properties."""
    def with_binary(options):
        name = options.get("binary")
        if name not in ("OLD", "NEW"):
            return options
        has = "vectors memlink super-frames" if name == "NEW" else "vectors"
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n[ \"$*\" = '-device qhca,help' ] || exit 1\n"
                        f"printf '  %s=<str>\\n' {has}\n")
        path.chmod(0o755)
        return {**options, "binary": str(path)}
    return with_binary


@pytest.mark.parametrize(
    "nics, options, want",
    [
        (["qhca", "qhca"], {}, True),
        (["qhca:vectors=4", "none"], {}, True),
        (["qhca", "qhca"], {"loss": 1.0}, True),
        (["qhca", "rxe"], {}, False),
        (["qhca", "qhca"], {"link": "switch"}, False),
        (["qhca", "qhca", "qhca"], {}, False),
        (["qhca", "qhca:super-frames=off"], {}, False),
        (["qhca:super-frames=on", "qhca"], {}, False),
        (["qhca", "qhca"], {"binary": "OLD"}, False),
        (["qhca", "qhca"], {"binary": "NEW"}, True),
        (["qhca", "qhca"], {"binary": "/no/qemu"}, False),
    ],
)
def test_super_frames_only_among_equals(tmp_path, qemus, nics, options, want):
    """One adapter that does not know them would lose them all."""
    options = qemus(options)
    guests = [types.SimpleNamespace(state={"nic": nic}) for nic in nics]
    link = Link(types.SimpleNamespace(guests=guests, dir=tmp_path), Options(**options))
    assert link.takes_super_frames() is want


@pytest.mark.parametrize(
    "nics, options, want",
    [
        (["qhca", "qhca"], {}, True),
        (["qhca", "none", "qhca"], {"iommu": True}, True),
        (["qhca", "none"], {}, False),
        (["qhca", "rxe", "qhca"], {}, False),
        (["qhca", "qhca"], {"loss": 1.0}, False),
        (["qhca", "qhca"], {"binary": "OLD"}, False),
        (["qhca", "qhca"], {"binary": "NEW"}, True),
        (["qhca", "qhca"], {"binary": "/no/qemu"}, False),
    ],
)
def test_memory_links_only_among_equals(monkeypatch, tmp_path, qemus, nics, options, want):
    """Where all can take part, unless the user wants a wire alone."""
    options = qemus(options)
    guests = [types.SimpleNamespace(state={"nic": nic}) for nic in nics]
    lab = types.SimpleNamespace(guests=guests, dir=tmp_path)
    monkeypatch.delenv("QHCA_LINK", raising=False)
    link = Link(lab, Options(**options))
    assert link.takes_memory_links() is want and bool(link.memory) is want
    assert Link(lab, Options(link="switch", **options)).memory is None
    monkeypatch.setenv("QHCA_LINK", "wire")
    assert Link(lab, Options(**options)).memory is None


def test_memory_link_on_the_command_line(tmp_path):
    """The adapter gets the folder, and the guest memory that others can map: the file of
    a guest that starts from a saved one, if there is one."""
    guest = {"name": "a", "number": 1, "nic": "qhca", "mac": "52:54:00:00:00:01",
             "ip": "10.0.0.1", "ip6": "fd99::1", "memlink": None}
    plain = " ".join(machine.command_line(guest, [], tmp_path, tmp_path, Options()))
    assert "memlink" not in plain and "memory-backend" not in plain
    guest["memlink"] = "/run/lab/memlink"
    line = " ".join(machine.command_line(guest, [], tmp_path, tmp_path, Options(link="memory")))
    assert "memlink=/run/lab/memlink" in line
    assert "memory-backend-memfd,id=pc.ram,size=1073741824,share=on" in line
    line = " ".join(machine.command_line(guest, [], tmp_path, tmp_path, Options(mem="768"),
                                         memory_fd=7))
    assert ("memory-backend-file,mem-path=/proc/self/fd/7,id=pc.ram,size=805306368,share=on "
            "-machine memory-backend=pc.ram -m 768") in line


def test_help_and_wrong_use():
    launcher = str(TOP / "lab" / "qhca-lab")
    for command in ("up", "exec", "copy", "shell", "capture", "status", "down"):
        done = subprocess.run([launcher, command, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and command in done.stdout
    done = subprocess.run([launcher, "--name", "nobody", "exec", "a", "--", "true"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 125 and "not up" in done.stderr


# ---------------------------------------------------------------- the channel


def test_channel_skips_what_an_earlier_session_left(run_dir):
    """Old bytes before the response are not taken for messages."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(run_dir / "port0"))
    server.listen()
    channel = Channel(run_dir, {"argv": ["true"]})
    agent, _address = server.accept()
    got = agent.recv(65536)
    assert got.startswith(MAGIC)
    kind, length = HEADER.unpack_from(got, len(MAGIC))
    request = json.loads(got[len(MAGIC) + HEADER.size :])
    assert kind == b"R" and request["argv"] == ["true"]
    agent.sendall(HEADER.pack(b"O", 5) + b"stale" + MAGIC + b"\1" * 8)
    agent.sendall(MAGIC + bytes.fromhex(request["id"]) + HEADER.pack(b"O", 3) + b"ne")
    time.sleep(0.05)
    assert channel.messages() == []
    agent.sendall(b"w" + HEADER.pack(b"X", 2) + b"{}")
    time.sleep(0.05)
    assert channel.messages() == [(b"O", b"new"), (b"X", b"{}")]
    agent.close()
    with pytest.raises(LabError, match="gone"):
        channel.messages()
    channel.close()
    server.close()


# ------------------------------------------------------------------- the wire


END = b"end of the frames" * 8


def frames(count):
    return [struct.pack(">I", n) * 30 for n in range(count)]


def relayed(base, seed, loss, count=400):
    """Which of COUNT frames get through from end 0 to end 1."""
    ends = [(base / f"in{n}", base / f"peer{n}") for n in (0, 1)]
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    peer.bind(str(ends[1][1]))
    args = [sys.executable, str(TOP / "lab/qhca_lab/relay.py"), "--seed", str(seed)]
    for path, target in ends:
        args += ["--end", str(path), str(target)]
    relay = subprocess.Popen(args + ["--loss", str(loss)])
    try:
        while not ends[1][0].exists():
            time.sleep(0.01)
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        got = []
        peer.setblocking(False)

        def take():
            with contextlib.suppress(BlockingIOError):
                while True:
                    got.append(peer.recv(4096))

        for frame in frames(count):
            sender.sendto(frame, str(ends[0][0]))
            take()
        # The end mark is sent until it comes through: all others are before it.
        deadline = time.monotonic() + 60
        while END not in got:
            assert time.monotonic() < deadline, "the end mark does not come"
            sender.sendto(END, str(ends[0][0]))
            select.select([peer], [], [], 0.1)
            take()
        return [struct.unpack_from(">I", f)[0] for f in got[: got.index(END)]]
    finally:
        relay.kill()
        relay.wait()
        peer.close()
        for path in [p for end in ends for p in end]:
            path.unlink(missing_ok=True)


def test_wire_without_loss_is_lossless_and_in_order(run_dir):
    assert relayed(run_dir, 1, 0) == list(range(400))


def test_losses_are_those_of_the_seed(run_dir):
    first = relayed(run_dir, 5, 10)
    assert 320 < len(first) < 395 and first == sorted(first)
    assert relayed(run_dir, 5, 10) == first
    assert relayed(run_dir, 6, 10) != first


def udp(port, ipv6=False, vlan=False):
    ports = struct.pack(">HHHH", 1234, port, 20, 0)
    tag = b"\x81\x00\x00\x2a" if vlan else b""
    if ipv6:
        ip = b"\x86\xdd" + b"\x60" + b"\0" * 5 + b"\x11" + b"\0" * 33
    else:
        ip = b"\x08\x00" + b"\x45" + b"\0" * 8 + b"\x11" + b"\0" * 10
    return b"\0" * 12 + tag + ip + ports + b"\0" * 20


@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("vlan", [False, True])
def test_roce_is_recognised(ipv6, vlan):
    assert roce.find(udp(4791, ipv6, vlan))
    assert not roce.find(udp(4792, ipv6, vlan))
    assert not roce.find(udp(4791, ipv6, vlan)[:20])


# ------------------------------------------------------------------ captures


def test_pcapng_is_read_by_wireshark(tmp_path):
    """Names, times and bytes survive; a frame cut short is left out."""
    pcap = tmp_path / "a.pcap"
    sent = [udp(4790 + n) for n in range(3)]
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65536, 1)
    for n, frame in enumerate(sent):
        data += struct.pack("<IIII", 100, n * 10, len(frame), len(frame)) + frame
    data += struct.pack("<IIII", 101, 0, 60, 60) + b"cut short"
    pcap.write_bytes(data)
    records = capture.read_pcap(pcap, 0)
    assert [r.data for r in records] == sent
    assert [r.time - records[0].time for r in records] == [0, 10_000, 20_000]
    assert abs(records[-1].time / 1e9 - time.time()) < 60
    target = tmp_path / "a.pcapng"
    pcapng.write(target, ["guest a"], records)
    shown = subprocess.run(
        ["tshark", "-n", "-r", str(target), "-T", "fields", "-e", "frame.interface_name",
         "-e", "udp.dstport", "-e", "frame.time_relative"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert [line.split("\t")[:2] for line in shown] == [
        ["guest a", str(4790 + n)] for n in range(3)
    ]
    assert float(shown[2].split("\t")[2]) == pytest.approx(20e-6)


WARNING = """\
[   10.1] ------------[ cut here ]------------
[   10.2] WARNING: CPU: 1 PID: 239 at {where}+0x4e/0x60 [rds_rdma]
[   10.3] Call Trace:
[   10.4] ---[ end trace 0000000000000000 ]---
"""


def test_warnings_of_others_are_no_trouble():
    known = WARNING.format(where="net/rds/ib_rdma.c:642 rds_ib_destroy_mr_pool")
    other = WARNING.format(where="net/rds/ib_rdma.c:99 rds_ib_flush_mr_pool")
    assert kernel_trouble(known) == []
    assert len(kernel_trouble(known + other + known)) == len(kernel_trouble(other)) > 0

# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab itself: the basis of all other tests."""

import os
import re
import subprocess
import time

import pytest

from labs import LAB_NAME, TOP, LabError, run_pair
from qhca_lab import CommandTimeout


def test_status_and_streams_pass_through(mixed):
    result = mixed.a.run("echo out; echo err >&2; exit 7", check=False)
    assert (result.rc, result.out, result.err) == (7, "out\n", "err\n")
    assert mixed.a.run("kill -9 $$", check=False).rc == 137
    assert mixed.a.run(["/no/such/program"], check=False).rc == 127


def test_accelerator(mixed):
    """QEMU runs as described by the lab."""
    told = mixed.status()["accel"]
    assert told.startswith(("KVM (", "TCG (")), told
    assert mixed.qmp("a", "query-kvm")["enabled"] is told.startswith("KVM"), told


def test_guests_keep_time(mixed):
    """
    A guest's second is as long as the host's, even if it booted on a busy host: it is told
    the frequency of its time stamp counter, and does not measure it.
    """
    asks = "cut -d' ' -f1 /proc/uptime"
    for guest in mixed:
        readings = []
        for _ in range(2):
            before = time.monotonic()
            readings.append((before, float(guest.run(asks).out), time.monotonic()))
            time.sleep(1)
        (early, first, late), (before, second, after) = readings
        # It is read somewhere between; its clock has 10 ms.
        assert 0.98 * (before - late) - 0.02 < second - first < 1.02 * (after - early) + 0.02
        told = re.search(r"tsc_early_khz=(\d+)", guest.run("cat /proc/cmdline").out)
        if told:
            log = guest.run("dmesg | grep tsc:").out
            assert f"tsc: Detected {int(told[1]) / 1000:.3f} MHz" in log
        else:
            assert mixed.status()["accel"].startswith("KVM")


def test_environment(mixed):
    """IBDEV and GIDX specify the adapter and its RoCEv2 IPv4 GID."""
    for guest in mixed:
        text = guest.run("ibv_devinfo -v -d $IBDEV | grep 'GID\\['").out
        index = guest.run("echo $GIDX").out.strip()
        line = next(t for t in text.splitlines() if f"GID[{index:>3}]" in t)
        assert f"::ffff:{guest.ip}" in line and "RoCE v2" in line


def test_input_of_a_mebibyte(mixed):
    data = os.urandom(1 << 20)
    out = mixed.a.run("md5sum", input=data).out
    local = subprocess.run(["md5sum"], input=data, capture_output=True, check=True)
    assert out == local.stdout.decode()


def test_many_commands_at_once(mixed):
    jobs = [mixed.a.start(f"sleep 0.5; echo {n}") for n in range(8)]
    assert [job.wait().out for job in jobs] == [f"{n}\n" for n in range(8)]


def test_copy_both_ways(mixed, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "data").write_bytes(os.urandom(300000))
    mixed.a.put(folder, "/tmp/copied")
    mixed.a.get("/tmp/copied", tmp_path / "back")
    assert (tmp_path / "back" / "data").read_bytes() == (folder / "data").read_bytes()


def test_hanging_command_is_killed(mixed):
    """With its children, also those in a session of their own."""
    job = mixed.a.start("echo begun; setsid sleep 4242 & sleep 4242")
    mixed.a.wait_for("test $(pgrep -c -x -f 'sleep 4242') = 2")
    with pytest.raises(CommandTimeout) as caught:
        job.wait(0.1)
    for words in ("begun", "processes of guest a", "hrtimer_nanosleep", "console"):
        assert words in str(caught.value)
    deadline = time.monotonic() + 120
    while mixed.a.run("pgrep -x -f 'sleep 4242'", check=False).rc == 0:
        assert time.monotonic() < deadline, "the command still runs"


def test_second_lab_of_that_name_is_refused(mixed):
    with pytest.raises(LabError, match="already up"):
        type(mixed).up(mixed.name, ["rxe"])


@pytest.mark.parametrize("nics, status, told", [
    ("qhca,rxe", 0, "is already up, and used as it is"),
    ("rxe", 125, "is already up with --nic qhca,rxe instead of rxe,rxe: take it down"),
])
def test_up_with_a_lab_that_is_up(mixed, nics, status, told):
    done = subprocess.run([TOP / "lab" / "qhca-lab", "--name", LAB_NAME, "up", "--nic", nics],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == status and told in done.stderr, done.stderr
    assert mixed.a.run("echo up").out == "up\n"


# Takes a function that nothing needs off the bus and puts it back, on CPU 1.
FLIP_DECODING = """
import glob, os, sys, time
os.sched_setaffinity(0, {1})
driver = "/sys/bus/virtio/drivers/virtio_rng/virtio*"
pci = os.path.dirname(os.path.realpath(glob.glob(driver)[0]))
name = os.path.basename(pci)
flips = 0
open(pci + "/driver/unbind", "w").write(name)
config = os.open(pci + "/config", os.O_RDWR)
command = os.pread(config, 1, 4)[0]
end = time.monotonic() + 8
while time.monotonic() < end:
    os.pwrite(config, bytes([command & ~2]), 4)
    os.pwrite(config, bytes([command | 2]), 4)
    flips += 1
open("/sys/bus/pci/drivers/virtio-pci/bind", "w").write(name)
print(flips)
"""

# CPU 0 sleeps for 50 us at a time; prints how often, and the longest in seconds.
SLEEP_SHORTLY = """
import os, time
os.sched_setaffinity(0, {0})
sleeps, worst = 0, 0
end = time.monotonic() + 8
while (begin := time.monotonic()) < end:
    time.sleep(5e-5)
    sleeps, worst = sleeps + 1, max(worst, time.monotonic() - begin)
print(sleeps, worst)
"""


@pytest.mark.long("judges how long a CPU was stalled, which a busy host may do as well")
def test_a_cpu_keeps_its_timer_while_another_maps_memory(rxe_pair):
    """
    Whatever one CPU does to a PCI function, other CPUs reach their devices.

    QEMU 10.0 as it is sends a store to the local APIC elsewhere when another
    CPU has just changed the memory map, or gives up: see qemu-hw/apply-overlay.
    """
    flipper = rxe_pair.a.start(["python3", "-c", FLIP_DECODING])
    sleeper = rxe_pair.a.start(["python3", "-c", SLEEP_SHORTLY])
    result = sleeper.wait(60, check=True)
    sleeps, worst = result.out.split()
    assert int(flipper.wait(60, check=True).out) > 500
    assert int(sleeps) > 500 and float(worst) < 4, result.out


@pytest.mark.long("a pair of its own, without our adapter; mixed has a Soft-RoCE")
@pytest.mark.parametrize("options", ["-s 4096 -n 200", "-s 65536 -n 20", "-s 4096 -n 100 -e"])
def test_rc_pingpong_over_rxe(rxe_pair, options):
    line = f"ibv_rc_pingpong -d $IBDEV -g $GIDX -c {options}"
    run_pair(rxe_pair.b, rxe_pair.a, line)


def pair_command(*words):
    return subprocess.run([TOP / "lab" / "qhca-lab", "--name", LAB_NAME, "pair", *words],
                          capture_output=True, text=True, timeout=150)


@pytest.mark.parametrize("words", [
    ["ibv_rc_pingpong -d $IBDEV -g $GIDX -n 10"],
    # listens on no TCP port
    ["ucmatose", "--client-command", "ucmatose -s $PEER"],
], ids=["listens", "waits"])
def test_pair_command(mixed, words):
    done = pair_command(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    labels = [line[:3] for line in done.stdout.splitlines()]
    assert labels == sorted(labels) and set(labels) == {"a: ", "b: "}


def test_pair_command_that_hangs(mixed):
    done = pair_command("ibv_rc_pingpong -d $IBDEV -g $GIDX", "--timeout", "3",
                        "--client-command", "echo begun; sleep 4242")
    assert done.returncode == 124 and "a: begun" in done.stdout
    for words in ("processes of guest a", "hrtimer_nanosleep", "processes of guest b"):
        assert words in done.stderr
    # killed processes take a while to end
    mixed.a.wait_for("! pgrep -x -f 'sleep 4242'")
    mixed.b.wait_for("! pgrep ibv_rc_pingpong")


def test_capture(mixed, tmp_path):
    path = tmp_path / "ping.pcapng"
    with mixed.capture(path):
        mixed.a.run(f"ping -c 3 -i 0.2 {mixed.b.ip}")
    lines = subprocess.run(
        ["tshark", "-n", "-r", str(path), "-Y", "icmp"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert len(lines) == 6, lines

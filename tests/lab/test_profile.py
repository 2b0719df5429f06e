# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles: perf's samples as stacks, flame graphs, and what a message costs."""

import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError, flame  # noqa: E402
from qhca_lab.bench import profile  # noqa: E402
from qhca_lab.bench.perftest import CASES  # noqa: E402

# As perf 6.1 writes it with -F comm,pid,tid,ip,sym,dso.
SCRIPT = """\
CPU 0/TCG    4242/4250  
	    7f8a4c0012ab [unknown] ([unknown])
	    7f8a4c0f0000 [unknown] (/tmp/perf-4242.map)
	          5d1e21 cpu_tb_exec (/build/bin/qemu-system-x86_64.real)
	           8b9f4 start_thread (/usr/lib/x86_64-linux-gnu/libc.so.6)

qhca-a 4242/4242 
	ffffffff81a02b10 copyin+0x20 ([kernel.kallsyms])
	ffffffff81c40f6e unix_dgram_sendmsg ([kernel.kallsyms])
	          7a1b2c qhca_adapter_run (/build/bin/qemu-system-x86_64.real)

qhca-a 4242/4242 
	ffffffff81a02b30 copyin+0x40 ([kernel.kallsyms])
	ffffffff81c40f6e unix_dgram_sendmsg ([kernel.kallsyms])
	          7a1b2c qhca_adapter_run (/build/bin/qemu-system-x86_64.real)

qhca-b 4300/4300 
	          172503 [unknown] (/usr/lib/libfoo.so.1)
"""
CPU = ("CPU 0/TCG", "start_thread", "cpu_tb_exec", flame.GUEST_CODE)
LOOP = (flame.MAIN, "qhca_adapter_run", "unix_dgram_sendmsg_[k]", "copyin_[k]")


def test_stacks():
    """From the root to the leaf; equal ones are counted, code in no file is one frame."""
    assert flame.fold(SCRIPT.splitlines()) == {
        4242: {CPU: 1, LOOP: 2}, 4300: {(flame.MAIN, "[libfoo.so.1]"): 1}}
    assert flame.fold([]) == {}


NS = "{http://www.w3.org/2000/svg}"


def rectangles(text):
    """{name of a frame: [x, y, width]} of a flame graph."""
    found = {}
    for group in ET.fromstring(text).iter(f"{NS}g"):
        name = group.find(f"{NS}title").text.rpartition(":")[0]
        box = group.find(f"{NS}rect")
        found[name] = [float(box.get(key)) for key in ("x", "y", "width")]
    return found


def test_flame_graph():
    """Width is the share of samples; a frame lies on its caller, inside of it."""
    text = flame.draw({CPU: 1, LOOP: 2, (*LOOP[:2], "qhca_icrc"): 1}, "a <title>", "b & c")
    found = rectangles(text)
    whole = flame.WIDTH - 2 * flame.MARGIN
    for name, share in (("CPU 0/TCG", 1 / 4), (flame.MAIN, 3 / 4), ("copyin_[k]", 2 / 4),
                        ("qhca_icrc", 1 / 4)):
        assert found[name][2] == pytest.approx(whole * share, abs=0.1), name
    for stack in (CPU, LOOP):
        for below, above in zip(stack, stack[1:]):
            assert found[above][1] == found[below][1] - flame.ROW
            assert found[above][0] >= found[below][0]
            assert sum(found[above][::2]) <= sum(found[below][::2]) + 0.1
    assert "a &lt;title&gt;" in text and "25.0%" in text


def test_flame_graph_of_nothing():
    assert rectangles(flame.draw({}, "t", "s")) == {}


def test_what_cannot_be_seen_is_left_out():
    found = rectangles(flame.draw({("a", "rare"): 1, ("a", "often"): 100000}, "t", "s"))
    assert set(found) == {"a", "often"}


def test_costs_of_a_message():
    """4 samples of 499 a second, while 1,000 messages were sent."""
    told = profile.costs({CPU: 3, LOOP: 1}, 1000)
    assert told["vCPUs"] == {"guest's code": pytest.approx(3e3 / profile.HERTZ)}
    assert sum(told["others"].values()) == pytest.approx(1e3 / profile.HERTZ)


@pytest.mark.parametrize("frames, why", [
    (CPU, "guest's code"),
    (LOOP[:2], "engine"), ((*LOOP[:2], "rspq_respond"), "engine"),
    ((*LOOP[:2], "qhca_op_send", "net_dgram_receive", "__send", "_copy_from_iter_[k]"),
     "host's sockets: copies"),
    ((*LOOP[:2], "qhca_op_send", "net_dgram_receive", "__send", "schedule_[k]"),
     "host's sockets: sending"),
    ((flame.MAIN, "main_loop_wait", "bql_lock_impl", "futex_wait_[k]"), "QEMU's big lock"),
    ((flame.MAIN, "main_loop_wait", "qemu_poll_ns", "do_sys_poll_[k]"), "main loop: ppoll"),
    ((flame.MAIN, "main_loop_wait", "g_main_context_check"), "main loop: all else"),
    ((*CPU, "helper_lookup_tb_ptr"), "TCG"),
    ((*CPU, "helper_stq_mmu", "do_st_mmio_leN"), "way from a store to the device"),
    ((*CPU, "cpu_stq_mmu", "qhca_db_write", "walk", "flatview_read", "[libc.so.6]"),
     "engine: DMA, walks of tables"),
    ((*LOOP[:2], "qhca_op_memlink_bell", "__send", "sock_sendmsg_[k]"), "memory link: bells"),
    ((*LOOP[:2], "qhca_fds_recv", "__recv", "unix_dgram_recvmsg_[k]"), "memory link: bells"),
    (("start_thread", "qhca_bells_thread", "epoll_wait", "do_epoll_wait_[k]"),
     "memory link: bells"),
    (("start_thread", "qhca_bells_thread", "qhca_memlink_rung", "qhca_run"), "engine"),
    ((flame.MAIN, "qhca_memlink_rung", "qhca_call", "qhca_rx", "qhca_memlink_next"),
     "memory link: rings"),
    ((flame.MAIN, "main", "strange"), "other"),
])
def test_purpose(frames, why):
    """The innermost known frame decides."""
    assert profile.purpose(frames[1:]) == why


@pytest.mark.parametrize("title, value, messages", [
    ("write 64 KiB", 500.0, 8000), ("send 8 B rate", 90000.0, 90000),
    ("send 2 B latency", 40.0, 25000)])
def test_messages_of_a_figure(title, value, messages):
    case, = (c for c in CASES if c[0] == title)
    assert profile.messages_per_second(case, value) == messages


def test_every_run_is_a_case():
    assert set(profile.RUNS.values()) <= {case[0] for case in CASES}


def test_perf_that_fails(tmp_path, monkeypatch):
    """Its output is shown."""
    perf = tmp_path / "perf"
    perf.write_text("#!/bin/sh\necho \"$1: No permission\" >&2\nexit 1\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(LabError, match="perf script: script: No permission"):
        profile.stacks_of(tmp_path / "data")
    perf.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="make profile"):
        profile.profile(types.SimpleNamespace(), list(profile.RUNS))


def test_files_of_a_profile(tmp_path, monkeypatch):
    """Folded stacks as flamegraph.pl reads them, and a graph."""
    monkeypatch.setattr(profile, "FOLDER", tmp_path)
    profile.write("send-8-a", {LOOP: 2, CPU: 1}, "t", "s")
    assert (tmp_path / "send-8-a.txt").read_text().splitlines() == [
        ";".join(CPU) + " 1", ";".join(LOOP) + " 2"]
    assert "copyin_[k]" in rectangles((tmp_path / "send-8-a.svg").read_text())


def test_no_such_run():
    done = subprocess.run([TOP / "lab/bench/profile", "--only", "nonsense"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "write-64k" in done.stderr

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Record, replay, reverse: a recorded pingpong is the same when it is replayed,
and gdb goes from a completion back to the doorbell that asked for it.
"""

import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError, replay  # noqa: E402
from qhca_lab.qmp import Qmp  # noqa: E402

MINUTES = 60

pytestmark = pytest.mark.long("records whole boots and replays them, one CPU, instruction by instruction")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A recording of one guest that plays with itself."""
    folder = tmp_path_factory.mktemp("run") / "alone"
    made = replay.record(folder, timeout=8 * MINUTES)
    yield made
    shutil.rmtree(folder)


def console(made, name):
    return (made.guest_dir(name) / "console.log").read_text(errors="replace")


def test_replay(alone):
    """The console of the replay is that of the recording, to the byte."""
    assert alone.state["status"] == {"a": 0}
    assert console(alone, "a").count("100 iters") == 2
    replay.replay(alone, "a", 8 * MINUTES)
    # and the comparison is one that can fail
    log = alone.guest_dir("a") / "replay.log"
    log.write_bytes(log.read_bytes().replace(b"100 iters", b"101 iters", 1))
    assert "iters" in replay.difference(alone.guest_dir("a") / "console.log", log)


def test_refused(alone, tmp_path):
    """Another QEMU cannot replay it, and a folder without a recording is none."""
    other = replay.RecordedRun(alone.dir, dict(alone.state, qemu="another"))
    with pytest.raises(LabError, match="another build of QEMU"):
        other.check()
    with pytest.raises(LabError, match="holds no recording"):
        replay.RecordedRun.load(tmp_path)
    with pytest.raises(LabError, match="exists"):
        replay.record(alone.dir)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def gdb(made, commands):
    """Replay guest a under gdb with @commands; what gdb wrote."""
    port = free_port()
    run = replay.replay_run(made, "a", ["-S", "-gdb", f"tcp:127.0.0.1:{port}"])
    args = [str(TOP / "lab/in-root"), "gdb", "-nx", "-batch",
            "-iex", "set architecture i386:x86-64", "-iex", "set pagination off",
            "-iex", "set tcp connect-timeout 60", "-ex", f"target remote 127.0.0.1:{port}"]
    for command in commands:
        args += ["-ex", command]
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=10 * MINUTES)
    finally:
        run.child.kill()
        run.child.wait()
    assert done.returncode == 0, done.stdout + done.stderr + run.evidence()
    return done.stdout + done.stderr        # "monitor" answers on the latter


def test_reverse_to_the_doorbell(alone):
    """Forward to a completion, and back: to the store that rang, exactly."""
    qpn = min(int(n, 16) for n in re.findall(r"local address:.*QPN (0x[0-9a-f]+)",
                                             console(alone, "a")))
    where = ["monitor info replay", "p/x $pc", "x/i $pc-3"]
    out = gdb(alone, [
        f"monitor qhca_break state number={qpn} code=3", "continue",
        "monitor savevm ready", "monitor qhca_delete",
        f"monitor qhca_break doorbell number={qpn} code=0", "continue", *where,
        "monitor qhca_delete", f"monitor qhca_break cqe peer={qpn} index=2", "continue",
        "monitor info replay", "monitor qhca_delete",
        f"monitor qhca_break doorbell number={qpn} code=0", "reverse-continue", *where,
        "monitor qhca_delete", "reverse-stepi", *where, "stepi", *where,
        "kill",
    ])
    counts = [int(n) for n in re.findall(r"instruction count = (\d+)", out)]
    pcs = re.findall(r"^\$\d+ = (0x[0-9a-f]+)", out, re.M)
    assert len(counts) == 5 and len(pcs) == 4, out
    rang, completed, back, before, again = counts
    assert rang < completed
    assert (back, pcs[1]) == (rang, pcs[0]), "not back at the doorbell"
    # The previous instruction is the store, and one step back stops before it.
    store = re.findall(r"mov +%r\w+,\(%r\w+\)", out)
    assert store, out
    assert before == rang - 1 and int(pcs[2], 16) == int(pcs[0], 16) - 3
    assert (again, pcs[3]) == (rang, pcs[0])


def test_pair(tmp_path):
    """Two guests play with each other; each is replayed without the other."""
    made = replay.record(tmp_path / "pair", guests=2, timeout=10 * MINUTES)
    assert made.state["status"] == {"a": 0, "b": 0}
    for name in made.guests:
        assert "100 iters" in console(made, name)
        replay.replay(made, name, 10 * MINUTES)


MANY = 20000
TRAFFIC = f"""\
play() {{ ibv_rc_pingpong -d $IBDEV -g $GIDX -c -e -n {MANY} "$@"; }}
case $NODE in
a)  if [ $ALONE = 1 ]; then
        play & until play 10.99.0.1; do sleep 0.1; done; wait $!
    else
        play
    fi ;;
b)  until play 10.99.0.1; do sleep 0.1; done ;;
esac
"""


def packets(qmp):
    """RoCE packets that the adapter has sent."""
    return int(qmp.command("qom-get", {"path": "nic0", "property": "counter-roce-tx-packets"}))


def wait_packets(qmps, run, count):
    """Wait until each adapter has sent COUNT packets."""
    limit = time.monotonic() + 8 * MINUTES
    while min(packets(qmp) for qmp in qmps) < count:
        assert all(r.child.poll() is None for r in run), run[0].evidence()
        assert time.monotonic() < limit, run[0].evidence()
        time.sleep(0.05)


def monitor(qmp, line):
    said = qmp.command("human-monitor-command", {"command-line": line})
    assert not said.strip(), said


@pytest.mark.parametrize("guests", [1, 2])
def test_snapshot_in_mid_traffic(tmp_path, guests):
    """
    savevm while messages are under way, more of them, loadvm: the traffic of the
    snapshot's time goes on to its end, and each message is what was sent. Of
    two guests both are stopped, saved and loaded together.
    """
    command = f"ALONE={int(guests == 1)}\n{TRAFFIC}"
    made = replay.prepare(tmp_path / "live", guests, command)
    runs = replay.launch(
        made, "live", lambda folder: ["-qmp", f"unix:{folder}/qmp,server=on,wait=off"])
    try:
        for run in runs:
            path = made.dir / run.name / "qmp"
            while not path.exists():
                assert run.child.poll() is None, run.evidence()
                time.sleep(0.02)
        qmps = [Qmp(made.dir / run.name / "qmp", 120) for run in runs]

        def all_do(*lines):
            for line in lines:
                for qmp in qmps:
                    monitor(qmp, line)

        wait_packets(qmps, runs, MANY // 10)
        all_do("stop", "savevm here")
        saved = [packets(qmp) for qmp in qmps]
        all_do("cont")
        wait_packets(qmps, runs, max(saved) + MANY // 10)
        all_do("stop", "loadvm here")
        assert [packets(qmp) for qmp in qmps] == saved
        all_do("cont")
        for qmp in qmps:
            qmp.close()
        replay.finish(runs, 8 * MINUTES)
    finally:
        for run in runs:
            if run.child.poll() is None:
                run.child.kill()
                run.child.wait()
    for run in runs:
        assert replay.command_status(run.console) == 0, run.evidence()
        assert f"{MANY} iters" in console(made, run.name)

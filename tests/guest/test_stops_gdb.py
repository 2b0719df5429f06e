# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb at QEMU's stub: a break of the adapter is a stop as any other."""

import contextlib
import queue
import re
import subprocess
import threading
import time

import pytest
from labs import TOP
from test_queue_buffers import Qbuf
from test_stops import debugger, end, go, memory, registers, store_before


class Gdb:
    """The build root's gdb, spoken to in its machine interface."""

    def __init__(self):
        self.process = subprocess.Popen(
            [str(TOP / "lab/in-root"), "gdb", "-nx", "-q", "--interpreter=mi3"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines, self.seen = queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def wait(self, pattern, timeout=60.0):
        """The match of the next line like PATTERN."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"gdb did not say {pattern!r}:\n" + "\n".join(self.seen)
            self.seen.append(line)
            found = re.match(pattern, line)
            if found:
                return found
            assert not line.startswith("^error"), "\n".join(self.seen[-20:])

    def command(self, text, answer=r"\^(done|running|connected)", timeout=60.0):
        """Give a command; its console output."""
        at = len(self.seen)
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        self.wait(answer, timeout)
        return "".join(line[2:-1].encode().decode("unicode_escape")
                       for line in self.seen[at:] if line[:2] in ('~"', '@"'))

    def monitor(self, text):
        return self.command(f'-interpreter-exec console "monitor {text}"')

    def stopped(self):
        """(signal, thread, address of the program counter) of the next stop."""
        found = self.wait(r'\*stopped,(.*)')
        fields = dict(re.findall(r'([\w-]+)="([^"]*)"', found.group(1)))
        return fields["signal-name"], int(fields["thread-id"]), int(fields["addr"], 16)


@pytest.fixture
def gdb(pair):
    """gdb with a's stub; in the end it is detached, and the guest runs."""
    stub = pair.a.dir / "gdb"
    with debugger(pair.a) as qmp:
        hmp = {"command-line": f"gdbserver unix:{stub},server=on,wait=off"}
        qmp.command("human-monitor-command", hmp)
        gdb = Gdb()
        try:
            gdb.command("-gdb-set confirm off")
            gdb.command("-gdb-set mi-async on")
            gdb.command(f"-target-select remote {stub}", r"\^connected")
            gdb.qmp = qmp
            yield gdb
            gdb.monitor("qhca_delete")
            gdb.command("-target-detach")
            gdb.command("-gdb-exit", r"\^exit")
        finally:
            gdb.process.kill()
            gdb.process.wait()
            with contextlib.suppress(Exception):
                qmp.command("human-monitor-command", {"command-line": "gdbserver none"})


def test_gdb_sees_the_doorbell(pair, progs, gdb):
    """
    `monitor qhca_break doorbell`, `continue`: SIGTRAP in the thread of the CPU
    that rang, right behind the store; steps; and on it goes.
    """
    q = None
    gdb.command("-exec-continue", r"\^running")
    q = Qbuf(pair, progs, "--depth 64 --messages 500 --nocap")
    qpn = q.first["qpn"]
    gdb.command("-exec-interrupt")
    gdb.stopped()
    # other tests on this pair have set breaks before: the number goes on from there
    said = gdb.monitor(f"qhca_break doorbell number={qpn} code=0").strip()
    assert re.fullmatch(r"break [1-9]\d*", said), said
    gdb.command("-exec-continue", r"\^running")
    go(q)
    index = 0
    for _ in range(3):
        signal, thread, addr = gdb.stopped()
        assert signal == "SIGTRAP"
        text = gdb.monitor("info qhca stop")
        stop = dict(re.findall(r"^ *(\w+): (.*?)\r?$", text, re.M))
        assert (stop["stopped"], stop["why"]) == ("yes", "break")
        event = dict(re.findall(r"^ +(\w+): (.*?)\r?$",
                                text.split("event:")[1].split("trail:")[0], re.M))
        assert event["doorbell_name"] == "SQ" and int(event["number"]) == qpn
        assert int(event["index"]) > index
        index = int(event["index"])
        # the thread of gdb is the CPU; its instruction before is the store
        regs = registers(gdb.qmp, thread - 1)
        assert regs["RIP"] == addr and memory(gdb.qmp, thread - 1, addr, 1)
        store = store_before(gdb.qmp, thread - 1, regs)
        assert store and store[1] == index << 32 | qpn
        gdb.command("-exec-continue", r"\^running")
    # a step from gdb: the CPU stays where it is
    signal, thread, addr = gdb.stopped()
    gdb.monitor("qhca_delete")
    gdb.monitor("qhca_break wqe")
    gdb.command("-exec-continue", r"\^running")
    assert gdb.stopped() == ("SIGTRAP", thread, addr)
    assert "opcode_name: SEND" in gdb.monitor("info qhca stop")
    gdb.monitor("qhca_delete")
    gdb.command("-exec-continue", r"\^running")
    assert end(q)["moved"] == 500
    gdb.command("-exec-interrupt")
    gdb.stopped()

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Live migration of booted guests: while two of them exchange messages, they move from one QEMU
process to another. Both programs check that each message arrives once, that each request
completes once, and that each atomic operation is executed once.
"""

import json
import os
import sys
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import replay  # noqa: E402
from qhca_lab.qmp import Qmp  # noqa: E402
from qhca_lab.unix_socket import connect  # noqa: E402

LIMIT = 600.0           # seconds for what takes a few on an idle host
STEADY = "/qhca/build/guest-progs/steady 7000"
COMMAND = f"""\
case $NODE in
a)  {STEADY} </dev/ttyS1 ;;
b)  until {STEADY} 10.99.0.1; do sleep 0.1; done ;;
esac
"""

pytestmark = pytest.mark.long("test_live_migration.py moves adapters without guests, in less time")


class Place:
    """The QEMU in which a guest runs, or to which it moves."""

    def __init__(self, made, name, wire, number, *more):
        self.folder = made.guest_dir(name)
        self.paths = [self.folder / f"{what}{number}" for what in ("qmp", "word", "moves")]
        qmp, word, _moves = self.paths
        console = self.folder / f"console{number}.log"
        args = replay.command_line(made, name, "live", console,
                                   f"dgram,id=net0,local.type=fd,local.str={wire}")
        args += ["-qmp", f"unix:{qmp},server=on,wait=off",
                 "-chardev", f"socket,id=word,path={word},server=on,wait=off",
                 "-serial", "chardev:word", *more]
        self.run = replay.start(name, args, console, self.folder / f"qemu{number}.log", (wire,))
        self.until(qmp.exists, "no QMP socket")
        self.qmp = Qmp(qmp, LIMIT)
        # A recording's, which keeps packets on the wire.
        self.qmp.command("object-del", {"id": "replay"})

    def until(self, condition, what):
        limit = time.monotonic() + LIMIT
        while not condition():
            assert self.run.child.poll() is None, f"QEMU has ended\n{self.run.evidence()}"
            assert time.monotonic() < limit, f"{what}\n{self.run.evidence()}"
            time.sleep(0.02)

    def packets(self):
        """RoCE packets that the adapter has sent, wherever the guest was."""
        return int(self.qmp.command("qom-get", {"path": "nic0",
                                                "property": "counter-roce-tx-packets"}))

    def has_link(self):
        """Do packets take a memory link?"""
        look = self.qmp.command("qhca-inspect", {"device": "nic0", "object": "device"})["look"]
        return [link["state"] for link in look["memlinks"]] == ["up"]

    def move_to(self, other):
        """Until the guest runs there, and this QEMU has ended."""
        uri = {"uri": f"unix:{other.paths[2]}"}
        other.qmp.command("migrate-incoming", uri)
        self.qmp.command("migrate-set-parameters", {"max-bandwidth": 1 << 40})
        self.qmp.command("migrate", uri)

        def moved():
            info = self.qmp.command("query-migrate")
            assert info["status"] not in ("failed", "cancelled"), (info, other.run.evidence())
            return info["status"] == "completed"

        self.until(moved, "the migration does not end")
        other.until(lambda: other.qmp.command("query-status")["running"], "it does not run")
        self.qmp.quit()
        self.qmp.close()
        assert self.run.child.wait(LIMIT) == 0, self.run.evidence()

    def say(self, word):
        """Write a line to the guest's second serial port."""
        with connect(self.paths[1]) as s:
            s.sendall(word.encode() + b"\n")

    def end(self):
        if self.run.child.poll() is None:
            self.run.child.kill()
            self.run.child.wait()


def report(place):
    """What steady has printed at its end."""
    text = place.run.console.read_text(errors="replace")
    assert replay.command_status(place.run.console) == 0, text[-2000:]
    return json.loads(text[text.rindex('{"sent"'):].splitlines()[0])


@pytest.mark.parametrize("link, moves", [("wire", 100), ("memory", 20)])
def test_moves(tmp_path, progs, link, moves):
    """The guests in turn, with a hundred packets or more between two moves, and in the end over
    the memory link if they have one."""
    folder = tmp_path / "links"
    folder.mkdir()
    linked, memory, properties = link == "memory", [], None
    if linked:
        memory = ["-object", "memory-backend-memfd,id=ram,size=512M,share=on",
                  "-machine", "memory-backend=ram"]
        properties = [f"memlink={folder}"]
    made = replay.prepare(tmp_path / "live", 2, COMMAND, mem="512M", properties=properties)
    wires = dict(zip(made.guests, replay.wires(2)))
    places = {}
    try:
        for name, wire in wires.items():
            places[name] = Place(made, name, wire, 0, *memory)
        for place in places.values():
            place.until(lambda: place.packets() > 100, "no messages")
        for number in range(1, moves + 1):
            name = made.guests[number % 2]
            old = places[name]
            new = Place(made, name, wires[name], number, *memory, "-incoming", "defer")
            try:
                sent = old.packets()
                old.move_to(new)
            except BaseException:
                new.end()
                raise
            places[name] = new
            new.until(lambda: new.packets() > sent + 100, "no messages after the move")
            if linked:
                new.until(new.has_link, "no memory link after the move")
        places["a"].say("stop")
        replay.finish([place.run for place in places.values()], LIMIT)
    finally:
        for place in places.values():
            place.end()
        for fd in wires.values():
            os.close(fd)
    a, b = (report(places[name]) for name in made.guests)
    assert (a["sent"], b["sent"]) == (b["received"], a["received"])
    assert min(a["sent"], b["sent"]) > 1000 and a["wrong"] == b["wrong"] == ""
    assert (a["adds"], b["adds"]) == (a["sent"] // 4, b["sent"] // 4)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a recording, tested separately: notes, traces, clocks, packets, the format."""

import json
import random
import re
import struct
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import roce  # noqa: E402
from qhca_lab.errors import LabError  # noqa: E402
from qhca_lab.record import clocks, device_log, ftrace, trace_format, usdt  # noqa: E402

# ----------------------------------------------------------------- probe points


# Kinds of sections.
PROGBITS, STRTAB, NOTE = 1, 3, 7


def library(notes: bytes, base: int = 0x2000) -> bytes:
    """An ELF file with text at 0x1000 (file offset 0x400), counters at 0x3000
    (0x800) and NOTES."""
    names = b"\0.note.stapsdt\0.stapsdt.base\0.shstrtab\0"
    body = bytearray(0x1000)
    at = {"notes": 0xA00, "names": 0xF00, "sections": 0x1000}
    body[0xA00 : 0xA00 + len(notes)] = notes
    body[0xF00 : 0xF00 + len(names)] = names
    body[:16] = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    struct.pack_into("<QQ", body, 32, 64, at["sections"])
    struct.pack_into("<HHHHH", body, 54, 56, 2, 64, 4, 3)
    struct.pack_into("<IIQQQQ", body, 64, 1, 5, 0x400, 0x1000, 0, 0x200)
    struct.pack_into("<IIQQQQ", body, 64 + 56, 1, 6, 0x800, 0x3000, 0, 0x100)
    sections = [
        (0, 0, 0, 0, 0),
        (names.index(b".note"), NOTE, 0, at["notes"], len(notes)),
        (names.index(b".stapsdt.base"), PROGBITS, base, 0, 1),
        (names.index(b".shstrtab"), STRTAB, 0, at["names"], len(names)),
    ]
    for name, kind, address, offset, size in sections:
        body += struct.pack("<IIQQQQ", name, kind, 0, address, offset, size).ljust(64, b"\0")
    return bytes(body)


def note(name: str, arguments: str, pc: int = 0x1010, counter: int = 0x3004,
         base: int = 0x2000, provider: str = "qhca") -> bytes:
    body = struct.pack("<QQQ", pc, base, counter)
    body += b"".join(t.encode() + b"\0" for t in (provider, name, arguments))
    return struct.pack("<III", 8, len(body), 3) + b"stapsdt\0" + body + b"\0" * (-len(body) % 4)


def test_probe_points():
    data = library(
        note("wqe", "4@%edi -8@%r10 8@(%rdx) 4@-12(%rbp) 2@$7 1@%r8b")
        + note("other", "4@%edi", provider="somebody")
        + note("bare", "", pc=0x1020, counter=0)
    )
    found = usdt.probes(data, "qhca")
    assert set(found) == {"wqe", "bare"}
    wqe = found["wqe"]
    assert (wqe.offset, wqe.counter) == (0x410, 0x804)
    assert wqe.arguments == ("%di:u32", "%r10:s64", "+0(%dx):u64", "-12(%bp):u32", "\\7:u16",
                             "%r8:u8")
    assert wqe.event("g", "/l.so", ("qpn", "index")) == (
        "p:g/wqe /l.so:0x410(0x804) qpn=%di:u32 index=%r10:s64")
    assert found["bare"].event("g", "/l.so", ()) == "p:g/bare /l.so:0x420"


def test_probe_points_of_a_library_that_was_moved():
    """Prelinking changes addresses, but not those in the notes."""
    found = usdt.probes(library(note("wqe", "", pc=0x1010 - 0x100, counter=0x3004 - 0x100,
                                     base=0x1F00)), "qhca")
    assert (found["wqe"].offset, found["wqe"].counter) == (0x410, 0x804)


@pytest.mark.parametrize("text", ["4@%xmm0", "4@8(%rax,%rbx,4)", "16@%rax", "4@", "%eax", "4@$x",
                                  "4@symbol(%rip)", "4@%cs"])
def test_argument_that_cannot_be_watched(text):
    with pytest.raises(LabError, match="cannot watch"):
        usdt.argument(text)


def test_probe_points_wrong():
    with pytest.raises(LabError, match="not a 64-bit"):
        usdt.probes(b"\x7fELF\x01\x01" + bytes(60), "qhca")
    with pytest.raises(LabError, match="more than once"):
        usdt.probes(library(note("a", "") + note("a", "")), "qhca")
    with pytest.raises(LabError, match="not in the file"):
        usdt.probes(library(note("a", "", pc=0x9000)), "qhca")
    with pytest.raises(LabError, match="2 are wanted"):
        usdt.probes(library(note("a", "4@%edi")), "qhca")["a"].event("g", "/l", ("x", "y"))
    assert usdt.probes(library(b""), "qhca") == {}


def test_probe_points_of_damaged_libraries():
    """Any corruption results in probe points or a LabError."""
    whole = library(note("wqe", "4@%edi 8@(%rdx)") + note("poll", "4@%esi"))
    rng = random.Random(4)
    for _ in range(3000):
        data = bytearray(whole[: rng.choice((len(whole), rng.randrange(len(whole))))])
        for _ in range(rng.randrange(1, 6)):
            if data:
                data[rng.randrange(len(data))] = rng.choice((0, 255, rng.randrange(256)))
        try:
            usdt.probes(bytes(data), "qhca")
        except LabError:
            pass


def test_points_of_the_provider():
    """The requested points are those of the provider, in that order."""
    text = (TOP / "rdma-core-provider/qhca/trace.c").read_text()


    there = {}
    for count, body in re.findall(r"STAP_PROBE(\d+)\(qhca, ([^;]*)\);", text):
        name, *arguments = re.split(r",\s*", body)
        assert len(arguments) == int(count)
        there[name] = tuple(arguments)
    renamed = {"offset": "offset", "num": "number", "ci": "index"}
    assert {n: tuple(renamed.get(a, a) for a in args) for n, args in there.items()} == ftrace.POINTS


# --------------------------------------------------------------- a guest's trace

TRACE = """\
# clock x86-tsc
# tracer: nop
            bash-374     (    374) [000] d....  89387574250: qhca_marker: pci=0000:01:00.0 value=0x1 (1) text=a b before=0x7 (7) after=0x8 (8)
 my prog-a-3-379     (    378) [001] d..1.  89862278298: qhca_aq_cmd: pci=0000:01:00.0 opcode=\x10(16) ticket=0x0 (0) obj=0x0 (0) doorbell=0x23 (35)
          <idle>-0       (-------) [000] d.h2.  89864441681: qhca_aq_done: opcode=' '(32) status=(0) err=0xfffffffb (-5)
 prog-381     (    381) [001] DNZff  92307828757: poll: __probe_ip=0x7f13cc8d19f0 (139723012905456) cqn=0x5 (5) wr_id=0xffffffffffffffff (18446744073709551615)
"""


def test_trace():
    log = ftrace.parse(TRACE)
    assert (log.clock, log.lost, log.problems) == ("x86-tsc", 0, [])
    marker, command, done, poll = log.events
    assert (marker.name, marker.clock, marker.pid, marker.cpu) == ("qhca_marker", 89387574250, 374, 0)
    assert marker.fields["value"] == 1 and marker.fields["after"] == 8
    assert (command.comm, command.pid, command.tgid, command.cpu) == ("my prog-a-3", 379, 378, 1)
    assert command.fields["opcode"] == 16 and command.fields["doorbell"] == 35
    assert (done.tgid, done.fields) == (0, {"opcode": 32, "status": 0, "err": -5})
    assert poll.fields["cqn"] == 5 and poll.fields["wr_id"] == (1 << 64) - 1


def test_trace_in_nanoseconds_and_with_losses():
    log = ftrace.parse(
        "# clock mono\n p-1 (1) [000] d.... 12.000345: poll: cqn=0x5 (5)\n"
        "# stats per_cpu/cpu0/stats entries: 1 overrun: 3 commit overrun: 100 dropped events: 4 \n")
    assert log.events[0].clock == 12_000_345_000
    assert log.lost == 7 and "7 events are missing" in log.problems[0]


def test_trace_hostile():
    with pytest.raises(LabError, match="not a recording"):
        ftrace.parse("nothing of the kind")
    log = ftrace.parse("# clock x86-tsc\n" + "garbage\n" * 10 + TRACE.splitlines()[2])
    assert len(log.events) == 1 and "10 lines in all" in log.problems[-1]
    rng = random.Random(1)
    for _ in range(500):
        data = bytearray(TRACE.encode())
        for _ in range(rng.randrange(1, 20)):
            data[rng.randrange(16, len(data))] = rng.randrange(256)
        ftrace.parse(data.decode("latin-1"))


# ------------------------------------------------------------ an adapter's record

START = '{"kind":"start","version":1,"device":"q","mac":"525400000001","frame_bytes":256}\n'
SYNC = '{"kind":"sync","time":100,"host":1100,"width":50,"running":true}\n'


def test_device_log():
    log = device_log.parse(START + SYNC + '{"kind":"msix","time":105,"vector":1}\n' + SYNC
                       + '{"kind":"end","events":1,"lost":0}\n')
    assert log.problems == [] and log.lost == 0
    assert [(r.kind, r.time, r.segment) for r in log.records] == [("msix", 105, 1)]


def test_device_log_cut_short():
    log = device_log.parse(START + SYNC + '{"kind":"msix","time":105,"vector":1}\n{"kind":"msi')
    assert len(log.records) == 1 and log.lost is None
    assert "in the middle of a line" in log.problems[0] and "has no end" in log.problems[1]


def test_device_log_hostile():
    bad = ["[]", "null", "7", '{"kind":"x"}', '{"kind":"x","time":-1}', '{"kind":"x","time":1.5}',
           '{"kind":"x","time":true}', '{"time":1}', "{", '{"kind":"sync","time":1}',
           '{"kind":"x","time":99999999999999999999}']
    log = device_log.parse(START + SYNC + "".join(b + "\n" for b in bad)
                       + '{"kind":"end","events":0,"lost":3}\n')
    assert log.records == [] and len(log.syncs) == 1
    assert f"{len(bad)} lines in all" in log.problems[3] and "3 events are missing" in log.problems[4]
    for text in ("", "{}\n", START, SYNC):
        with pytest.raises(LabError, match="not the recording"):
            device_log.parse(text)
    with pytest.raises(LabError, match="version 2"):
        device_log.parse(START.replace('1,"device', '2,"device'))


# ------------------------------------------------------------------------ clocks


def syncs(*values):
    return [device_log.Sync(t, h, w, r) for t, h, w, r in values]


def test_host_clock_over_a_standstill():
    clock = clocks.HostClock(syncs((100, 1100, 10, True), (200, 1200, 30, False),
                                   (200, 9200, 10, True), (300, 9300, 10, True)))
    assert clock.host(150, 1) == 1150 and clock.host(250, 3) == 9250
    assert clock.host(200, 1) == 1200 and clock.host(200, 3) == 9200
    assert clock.host(150) == 1150 and clock.host(250) == 9250
    assert clock.host(50, 1) == 1050 and clock.host(400, 4) == 9400
    assert clock.still() == [(1200, 9200)] and clock.error == 15
    lab = clocks.LabClock(1000, clock.still())
    assert lab.time(1150) == 150 and lab.time(9250) == 250
    # Readings taken some time after the clock stopped, and after it went on.
    late = clocks.HostClock(syncs((100, 1100, 10, True), (200, 1250, 30, False),
                                  (240, 9240, 10, True), (300, 9300, 10, True)))
    assert late.host(150, 1) == 1150 and late.host(200, 1) == 1200
    assert late.host(210, 2) == 9210 and late.host(250, 3) == 9250
    assert late.still() == [(1200, 9200)]
    # Another guest that stops a moment later: no time goes backwards.
    assert lab.time(1200) == lab.time(5000) == lab.time(9200) == 200


def test_host_clock_hostile():
    with pytest.raises(LabError, match="backwards"):
        clocks.HostClock(syncs((200, 1, 1, True), (100, 2, 1, True)))
    with pytest.raises(LabError, match="backwards"):
        clocks.HostClock(syncs((100, 2, 1, True), (200, 1, 1, True)))
    with pytest.raises(LabError, match="no pair"):
        clocks.HostClock([])


def guest_clock(rate, offset, rng, marks=16, seconds=2.0):
    """Marks at begin and end, as they come from a guest whose ticks are (time -
    offset) / rate, with delays of some microseconds."""
    made = []
    for begin in (0, seconds * 1e9):
        for n in range(marks):
            time = begin + n * 50_000
            before = time - rng.uniform(1000, 40_000)
            after = time + rng.uniform(1000, 40_000)
            made.append((int((before - offset) / rate), time, int((after - offset) / rate)))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_fit(seed):
    """The true line is within the reported error, and the order is kept."""
    rng = random.Random(seed)
    rate, offset = rng.uniform(0.2, 2), rng.uniform(-1e12, 1e12)
    orders = []
    for _ in range(300):
        time = rng.uniform(0, 2e9)
        first = rng.random() < 0.5
        guest = time - rng.uniform(500, 90_000) * (1 if first else -1)
        orders.append(clocks.Order(int((guest - offset) / rate), time, first))
    line = clocks.fit(guest_clock(rate, offset, rng), orders)
    for time in (0, 5e8, 1e9, 2e9):
        ticks = int((time - offset) / rate)
        assert abs(line.time(ticks) - time) <= line.error + 1
    assert line.worst == 0 and line.error < 10_000
    for o in orders:
        at = line.time(o.ticks)
        assert at <= o.time + 1 if o.guest_first else at >= o.time - 1


def test_fit_does_not_hide_what_cannot_be():
    """An effect a millisecond before its cause is reported, not moved."""
    rng = random.Random(1)
    marks = guest_clock(1.0, 0, rng)
    line = clocks.fit(marks, [clocks.Order(int(1e9 - 1e6), 1e9, False)])
    assert line.worst > 4e5
    good = clocks.fit(marks, [])
    assert good.worst == 0


def test_fit_wrong():
    with pytest.raises(LabError, match="2 are needed"):
        clocks.fit([(1, 1, 2)], [])
    with pytest.raises(LabError, match="the same time"):
        clocks.fit([(1, 1, 2), (1, 1, 2)], [])
    with pytest.raises(LabError, match="factor"):
        clocks.fit([(1, 1, 2), (3, 10**9, 4)], [])


def test_shift():
    assert clocks.shift(-100, 100, 50) == clocks.Shift(0, 0)
    assert clocks.shift(20, 100, 50) == clocks.Shift(20, 0)
    assert clocks.shift(-100, -20, 50) == clocks.Shift(-20, 0)
    # More than the clocks can explain stays as it is, and is told.
    assert clocks.shift(80, 100, 50) == clocks.Shift(50, 30)
    assert clocks.shift(30, 10, 50) == clocks.Shift(20, 10)


# ----------------------------------------------------------------------- packets

ROCE = bytes.fromhex(
    "5254005100025254005100010800" "4500003c000040004011aaaa0a6300010a630002" "c00012b700280000"
    "04000000" "00000011" "80000105" + "00" * 20)


def test_bth():
    contract = (TOP / "kernel-driver/include/uapi/rdma/qhca-hw.h").read_text()
    assert re.search(r"QHCA_ROCE_UDP_PORT\s+(\d+)", contract)[1] == str(roce.PORT)
    assert roce.bth(ROCE) == roce.Bth(4, 0x11, 0x105)
    tagged = ROCE[:12] + b"\x81\x00\x00\x07" + ROCE[12:]
    assert roce.bth(tagged) == roce.Bth(4, 0x11, 0x105)
    ip6 = (ROCE[:12] + b"\x86\xdd" + b"\x60\0\0\0\0\x28\x11\x40" + bytes(32) + ROCE[34:])
    assert roce.bth(ip6) == roce.Bth(4, 0x11, 0x105)
    for length in range(54):
        assert roce.bth(ROCE[:length]) is None
    assert roce.bth(ROCE.replace(b"\x12\xb7", b"\x12\xb6")) is None


# -------------------------------------------------------------------- the format


def good():
    return json.loads(json.dumps({"traceEvents": [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "guest a"}},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 1.5, "dur": 1, "name": "a", "cat": "c", "args": {}},
        {"ph": "s", "pid": 1, "tid": 1, "ts": 1.5, "name": "f", "cat": "c", "id": 1},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 3, "dur": 1, "name": "b", "cat": "c"},
        {"ph": "f", "bp": "e", "pid": 1, "tid": 1, "ts": 3, "name": "f", "cat": "c", "id": 1},
    ]}))


def test_check_of_the_format():
    assert trace_format.check(good()) == []
    for change, wrong in (
        (lambda e: e[1].update(dur=-1), "negative"),
        (lambda e: e[1].update(ts="1"), "no good ts"),
        (lambda e: e[1].pop("tid"), "no good tid"),
        (lambda e: e[1].update(ph="Q"), "phase"),
        (lambda e: e[1].update(dur=2), "overlap"),
        (lambda e: e[2].update(ts=1.0), "no slice"),
        (lambda e: e[4].update(ts=9), "no slice"),
        (lambda e: e[4].update(tid=2), "no slice"),
        (lambda e: e[2].update(ts=3.5), "back in time"),
        (lambda e: e.pop(4), "has the phases"),
        (lambda e: e.pop(2), "has the phases"),
        (lambda e: e[4].pop("id"), "no id"),
        (lambda e: e.append(7), "no object"),
    ):
        trace = good()
        change(trace["traceEvents"])
        assert any(wrong in w for w in trace_format.check(trace)), (wrong, trace_format.check(trace))
    assert trace_format.check([]) and trace_format.check({"traceEvents": 1})

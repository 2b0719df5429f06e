# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's side of a recording: the kernel's trace buffer.

The driver's trace events and the provider's probe points (as uprobes) go to one
buffer, an ftrace instance of its own, so they have one clock and one order. The
guest needs nothing but its kernel.
"""

from __future__ import annotations

import base64
import dataclasses
import re

from ..errors import LabError
from . import usdt

PROVIDER = "qhca"
GROUP = "libqhca"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libibverbs/libqhca-rdmav34.so"
# Probe points and the names of their arguments: see trace.c of the provider.
POINTS = {
    "wqe": ("qpn", "index", "opcode", "flags", "wr_id", "bytes"),
    "recv_wqe": ("number", "index", "wr_id", "bytes"),
    "doorbell": ("offset", "number", "index"),
    "poll": ("cqn", "index", "qpn", "wqe", "opcode", "status", "wr_id", "bytes"),
}
MARKS = 16

# Marks have their own buffer, so that there is room for those at the end.
_START = r"""
set -eu
t=/sys/kernel/tracing i=$t/instances/qhca-record
[ -d $t/instances ] || mount -t tracefs none $t
if ! mkdir $i 2>/dev/null; then
    echo "a recording runs already in this guest; 'qhca-lab record --clean' ends it" >&2
    exit 3
fi
mkdir -p $i-marks
while read -r line; do
    [ -z "$line" ] || echo "$line" >>$t/uprobe_events
done
for d in $i-marks $i; do
    cd $d
    echo 0 >tracing_on
    # Raw cycles, so that the text has the clock's full resolution.
    echo x86-tsc >trace_clock 2>/dev/null || echo mono >trace_clock
    echo 1 >options/fields
    echo 0 >options/overwrite
    echo 1 >options/record-tgid
done
echo "$1" >buffer_size_kb
for e in events/libqhca events/qhca events/qhca_ib; do
    [ ! -d $e ] || echo 1 >$e/enable
done
for e in qhca_marker qhca_marker_begin; do
    [ ! -d events/qhca/$e ] || { echo 0 >events/qhca/$e/enable
        echo 1 >$i-marks/events/qhca/$e/enable; }
done
echo 1 >$i-marks/tracing_on
echo 1 >tracing_on
"""
_MARKS = r"""
for f in /sys/kernel/debug/qhca/*/marker; do
    [ ! -e $f ] || for n in $(seq $2 $3); do echo $n >$f; done
    break
done
"""
_STOP = r"""
t=/sys/kernel/tracing i=$t/instances/qhca-record
cd $i || exit 3
echo 0 >tracing_on
""" + _MARKS + r"""
echo 0 >$i-marks/tracing_on
echo "# clock $(sed 's/.*\[\(.*\)\].*/\1/' trace_clock)"
cat trace $i-marks/trace
for s in per_cpu/cpu*/stats; do
    echo "# stats $s $(tr '\n' ' ' <$s)"
done
"""
_CLEAN = r"""
t=/sys/kernel/tracing i=$t/instances/qhca-record
for d in $i $i-marks; do
    [ ! -d $d ] || for e in $d/events/libqhca $d/events/qhca $d/events/qhca_ib; do
        [ ! -d $e ] || echo 0 >$e/enable
    done
done
for e in $t/events/libqhca/*/; do
    [ ! -d "$e" ] || echo "-:libqhca/$(basename $e)" >>$t/uprobe_events
done
for d in $i $i-marks; do
    [ ! -d $d ] || rmdir $d
done
"""


@dataclasses.dataclass
class Event:
    """A line of the buffer. `clock` is in units of the trace clock."""

    name: str
    clock: int
    cpu: int
    pid: int
    tgid: int
    comm: str
    fields: dict


@dataclasses.dataclass
class GuestLog:
    """`lost`: events for which the buffer had no room."""

    clock: str
    events: list[Event]
    lost: int
    problems: list[str]


def start(guest, buffer_kb: int, provider: bool = True) -> str | None:
    """Switch tracing on in GUEST, with BUFFER_KB for each of its CPUs; returns
    why the provider is not traced, or None."""
    lines, why = "", None
    if provider:
        data = library(guest)
        points = usdt.probes(data, PROVIDER) if data else {}
        missing = sorted(set(POINTS) - set(points))
        if not data:
            why = "the guest has no provider"
        elif missing:
            why = (f"the provider has no probe points ({', '.join(missing)}): "
                   "build it with <sys/sdt.h>")
        else:
            lines = "".join(
                points[n].event(GROUP, LIBRARY, names) + "\n" for n, names in POINTS.items()
            )
    script = _START + _MARKS
    guest.run(["/bin/bash", "-c", script, "record", str(buffer_kb), "1", str(MARKS)], 60,
              input=lines + "\n")
    return why


def library(guest) -> bytes:
    """The provider's library in GUEST; empty if it has none."""
    job = guest.start(["/bin/bash", "-c", f"[ ! -e {LIBRARY} ] || base64 {LIBRARY}"])
    return base64.b64decode(job.wait(30, check=True).out)


def stop(guest) -> str:
    """Switch tracing off; the text of the buffer."""
    script = "set -e\n" + _STOP
    text = guest.run(["/bin/bash", "-c", script, "record", "0", str(MARKS + 1), str(2 * MARKS)],
                     600).out
    clean(guest)
    return text


def clean(guest) -> None:
    """Remove everything of a recording from GUEST; harmless if there is none."""
    guest.run(["/bin/bash", "-c", _CLEAN], 60)


# --------------------------------------------------------------------- parsing

_LINE = re.compile(
    r"\s*(?P<comm>.*)-(?P<pid>\d+)\s+\(\s*(?P<tgid>[\d-]+)\)\s+\[(?P<cpu>\d+)\]\s+\S+\s+"
    r"(?:(?P<seconds>\d+)\.(?P<micros>\d{6})|(?P<ticks>\d+)):\s+(?P<name>\w+):\s(?P<rest>.*)$"
)
# name=0x12 (18), name=(18), name='0'(48), name=text
_FIELD = re.compile(
    r"(\w+)=(?:0x[0-9a-f]+ \((-?\d+)\)|(?:'.'|[^\s(]?)?\((-?\d+)\)|(\S*))(?=\s|$)", re.DOTALL
)


def parse_fields(text: str) -> dict:
    """The fields of an event as the option "fields" prints them."""
    fields = {}
    for name, number, byte, word in _FIELD.findall(text):
        value = number or byte
        fields[name] = int(value) if value else word
    return fields


def parse(text: str, name: str = "the guest's trace") -> GuestLog:
    """Parse the result of stop(); unparsable lines are listed in `problems`."""
    log = GuestLog("", [], 0, [])
    bad = 0
    for line in text.split("\n"):
        if line.startswith("# clock "):
            log.clock = line[8:].strip()
        elif line.startswith("# stats "):
            for word in ("overrun", "dropped events"):
                found = re.search(rf"(?<!commit ){word}: (\d+)", line)
                log.lost += int(found[1]) if found else 0
        elif line.startswith("#") or not line.strip():
            continue
        else:
            found = _LINE.match(line)
            if not found:
                bad += 1
                if bad <= 3:
                    log.problems.append(f"{name}: a line makes no sense: {line[:80]!r}")
                continue
            if found["ticks"] is not None:
                clock = int(found["ticks"])
            else:
                clock = int(found["seconds"]) * 10**9 + int(found["micros"]) * 1000
            pid = int(found["pid"])
            tgid = int(found["tgid"]) if found["tgid"].isdigit() else pid
            log.events.append(
                Event(found["name"], clock, int(found["cpu"]), pid, tgid,
                      found["comm"].strip(), parse_fields(found["rest"]))
            )
    log.events.sort(key=lambda e: e.clock)  # of two buffers, each in order
    if bad > 3:
        log.problems.append(f"{name}: {bad} lines in all make no sense")
    if not log.clock:
        raise LabError(f"{name} is not a recording of a guest")
    if log.lost:
        log.problems.append(f"{name}: {log.lost} events are missing at its end; "
                            "'--buffer' gives it more room")
    return log

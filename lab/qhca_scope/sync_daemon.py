# SPDX-License-Identifier: GPL-2.0-or-later
"""The sync daemon: a background process that stops and resumes the guests of a lab
together, as long as one of them has a break.

When a guest stops at a break, its adapter's or gdb's, the daemon stops the others;
when that guest resumes, by any means (gdb's continue, QMP's cont), it resumes them. It ends when no break is set and no guest is stopped at one, and with the lab.

Until it acts, running adapters wait for a stopped one and use up their retries, so
it has a real-time priority if that is permitted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import subprocess
import sys
from pathlib import Path

from qhca_lab import LabError, sched
from qhca_lab.qmp import wait_any

from .errors import ScopeError
from .machine import AT_BREAK

PROGRAM = Path(__file__).resolve().parents[1] / "qhca-scope"
IDLE = 2.0                      # seconds between checks whether it is still needed


def lock_of(lab) -> Path:
    return lab.dir / "scope-sync.lock"


def alive(lab) -> bool:
    """Is there a sync daemon?"""
    with open(lock_of(lab), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def ensure(lab) -> None:
    """Start a sync daemon if there is none, and wait until it sees all guests. The
    caller holds the lab's lock, so none ends meanwhile."""
    if alive(lab):
        return
    with open(lab.logs / "scope-sync.log", "ab") as log:
        child = subprocess.Popen(
            [str(PROGRAM), "--lab", lab.name, "_keep"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=log, start_new_session=True, cwd="/",
        )
    ready, _, _ = select.select([child.stdout], [], [], 30)
    said = child.stdout.readline() if ready else b""
    child.stdout.close()
    if said != b"ready\n":
        child.kill()
        child.wait()
        raise ScopeError(
            "the process that stops a lab's guests together did not start",
            f"see {lab.logs / 'scope-sync.log'}",
        )


def keep(scope) -> int:
    """Run the sync daemon; returns when it is no longer needed."""
    with open(lock_of(scope.lab), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("ready", flush=True)
            return 0
        machines = [m for m in scope.adapters if m.guest.alive]
        for machine in machines:
            machine.qmp.poll_events()
        print("ready", flush=True)
        sched.prefer(os.getpid())     # a delay lets peers' timers run
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)                # no reader is left
        for machine in machines:        # a break may have been met already
            with contextlib.suppress(LabError):
                if machine.state() == AT_BREAK:
                    handle(scope, machine, [{"event": "QHCA_STOP"}])
        while machines:
            ready = wait_any([m.qmp for m in machines], IDLE)
            for machine in list(machines):
                try:
                    events = machine.qmp.poll_events()
                except LabError:
                    machines.remove(machine)
                    continue
                handle(scope, machine, events)
            if not ready and ended(scope, machines, lock):
                return 0
    return 0


def last_change(events: list[dict]) -> str | None:
    """The last of EVENTS that stopped or resumed a machine."""
    changes = [e["event"] for e in events if e["event"] in ("STOP", "QHCA_STOP", "RESUME")]
    return changes[-1] if changes else None


def resumed(events: list[dict]) -> bool:
    """Has a stopped machine resumed since, by EVENTS?"""
    return last_change(events) == "RESUME"


def stopped(events: list[dict]) -> bool:
    """Has a machine stopped and not resumed since, by EVENTS?"""
    return last_change(events) in ("STOP", "QHCA_STOP")


def handle(scope, machine, events: list[dict]) -> None:
    """Act on EVENTS of MACHINE; errors go to the log."""
    names = [e["event"] for e in events]
    try:
        if "QHCA_STOP" in names and not resumed(events):
            scope.peers_follow(machine)
        elif ("STOP" in names and not resumed(events)
                and machine.state() in scope.stops_of_peers
                and not scope.stopped_with_another(machine)):
            scope.peers_follow(machine)
        if "RESUME" in names:
            scope.peers_go()
    except LabError as error:
        print(f"sync daemon of lab {scope.lab.name}: {error}", file=sys.stderr, flush=True)


def ended(scope, machines, lock) -> bool:
    """Is the sync daemon no longer needed? Then release the lock, too."""
    try:
        with scope.lock():
            # A machine without a break is stopped by gdb: its peers wait.
            if not (scope.attended or AT_BREAK in scope.states().values()
                    or any(needed(m) for m in machines)):
                scope.peers_go()        # one may just have resumed
                fcntl.flock(lock, fcntl.LOCK_UN)
                return True
    except LabError as error:
        print(f"sync daemon of lab {scope.lab.name}: {error}", file=sys.stderr)
        return not scope.lab.dir.exists()
    return False


def needed(machine) -> bool:
    """Does MACHINE have a break or a pending step, or is it stopped at one?"""
    look = machine.stop_look()["look"]
    return bool(look["stopped"] or look.get("steps_left") or machine.breaks())

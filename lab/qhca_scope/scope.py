# SPDX-License-Identifier: GPL-2.0-or-later
"""All adapters of a lab: stop and resume them together.

When a guest stops at a break, the others of its lab must stop, too, or their adapters
would run out of retries. The first process that notices does this: the command that
waits, or the sync daemon, which runs as long as a break is set. All hold the lab's
lock while they check and act, so none undoes what another did.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import time

from qhca_lab import Lab, LabError, freeze, paths, sched
from qhca_lab.qmp import wait_any

from . import sync_daemon
from .machine import AT_BREAK, PAUSED, RUNNING, Machine
from .errors import ScopeError, TookTooLong, Usage

# Seconds that a guest may step while its peers are stopped: much shorter than their
# timeouts for retransmission.
ALONE = 0.01


def find_lab(name: str | None) -> Lab:
    """The lab NAME, else that of $QHCA_LAB, else the only one that is up."""
    name = name or os.environ.get("QHCA_LAB")
    if name:
        try:
            return Lab.load(name)
        except LabError as error:
            others = paths.labs()
            raise ScopeError(
                f"lab {name} is not up" if "not up" in str(error) else str(error),
                f"lab/qhca-lab --name {name} up starts it"
                + (f"; up are: {', '.join(others)}" if others else ""),
            ) from None
    up = [lab for lab in map(load_or_none, paths.labs()) if lab and any_alive(lab)]
    if len(up) == 1:
        return up[0]
    if not up:
        raise ScopeError("no lab is up", "lab/qhca-lab up starts one")
    raise ScopeError(
        "several labs are up: " + ", ".join(sorted(lab.name for lab in up)),
        "choose one with --lab NAME or QHCA_LAB=NAME",
    )


def load_or_none(name: str) -> Lab | None:
    try:
        return Lab.load(name)
    except LabError:
        return None


def any_alive(lab: Lab) -> bool:
    return any(g.state.get("process") and g.alive for g in lab.guests)


class Scope:
    """A lab and its machines by the guests' letters; for a with statement."""

    def __init__(self, lab, timeout: float = 20.0):
        self.lab = lab
        self.machines = {g.name: Machine(g, timeout) for g in lab.guests}
        self._held = 0

    @classmethod
    def of_lab(cls, name: str | None = None) -> Scope:
        """Of the lab NAME, or the one that is up."""
        return cls(find_lab(name))

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

    def close(self) -> None:
        for machine in self.machines.values():
            machine.close()

    def __getitem__(self, name: str) -> Machine:
        try:
            return self.machines[name]
        except KeyError:
            raise ScopeError(
                f"no guest {name!r} in lab {self.lab.name}",
                "it has " + ", ".join(self.machines),
            ) from None

    @property
    def adapters(self) -> list[Machine]:
        """The machines with a qhca."""
        return [m for m in self.machines.values() if m.has_adapter]

    def default(self) -> Machine:
        """The guest of a command that names none: the one that is stopped at a
        break, if there is just one; otherwise the first with a qhca."""
        if not self.adapters:
            raise ScopeError(
                f"no guest of lab {self.lab.name} has a qhca adapter",
                "lab/qhca-lab up --replace starts a lab with two",
            )
        stopped = [m for m in self.adapters if m.guest.alive and m.state() == AT_BREAK]
        return stopped[0] if len(stopped) == 1 else self.adapters[0]

    # ---------------------------------------------------- what tools share

    @contextlib.contextmanager
    def lock(self):
        """Hold the lab's lock: no other tool checks or changes run states meanwhile."""
        if self._held:
            yield
            return
        try:
            file = open(self.lab.dir / "scope.lock", "w")
        except OSError:
            raise ScopeError(f"lab {self.lab.name} is no longer up") from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._held = 1
            try:
                yield
            finally:
                self._held = 0

    def _shared(self) -> dict:
        try:
            return json.loads((self.lab.dir / "scope.json").read_text())
        except (OSError, ValueError):
            return {}

    def _share(self, **values) -> None:
        new = self.lab.dir / "scope.json.new"
        new.write_text(json.dumps(dict(self._shared(), **values)))
        new.replace(self.lab.dir / "scope.json")

    @property
    def together(self) -> bool:
        """Does a guest's stop at a break stop the others?"""
        return self._shared().get("together", True)

    def set_together(self, on: bool) -> None:
        with self.lock():
            self._share(together=on)

    @property
    def attended(self) -> bool:
        """See attend()."""
        return self._shared().get("attended", False)

    @property
    def stops_of_peers(self) -> tuple[str, ...]:
        """The run states in which a guest stops the others."""
        return (AT_BREAK, PAUSED) if self.attended else (AT_BREAK,)

    def attend(self) -> None:
        """From now on, as long as the lab is up, a guest that stops for any
        reason, a debugger's Ctrl-C too, stops the others, and none runs while
        another is stopped at a break."""
        with self.lock():
            self._share(attended=True)
            sync_daemon.ensure(self.lab)

    # ------------------------------------------------------ run states

    def states(self) -> dict[str, str | None]:
        """Run states by guest; None of one whose QEMU has ended."""
        return {m.name: m.state() if m.guest.alive else None for m in self.machines.values()}

    def alive(self) -> list[Machine]:
        return [m for m in self.machines.values() if m.guest.alive]

    def peers_follow(self, machine: Machine, patience: float = 5.0) -> list[str]:
        """MACHINE stopped at a break: stop the others. If it has resumed meanwhile, or guests
        stop one by one, the others keep running. Returns the names of those stopped."""
        deadline = time.monotonic() + patience
        with self.lock():
            if not self.together or sync_daemon.resumed(machine.qmp.peek_events()):
                return []
            # Their timers run until they are stopped, so stop them before asking anything.
            stopped = freeze.stop_running(
                {m.name: m.qmp for m in self.alive() if m is not machine})
            try:
                # QHCA_STOP comes before the machine has stopped.
                while machine.stop_look()["look"]["stopped"] and machine.state() == RUNNING:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.005)
                at_stop = machine.state() in self.stops_of_peers
            except LabError:
                freeze.together({n: self[n].qmp for n in stopped}, "cont")
                raise
            if not at_stop:
                freeze.together({n: self[n].qmp for n in stopped}, "cont")
                return []
            if stopped:
                self._share(frozen=sorted({*self._shared().get("frozen", []), *stopped}))
            return stopped

    def peers_go(self) -> list[str]:
        """A guest that was stopped at a break has been resumed, by any tool: resume those
        stopped with it, unless another is stopped at a break. Returns their names."""
        with self.lock():
            frozen = self._shared().get("frozen", [])
            attended = self.attended
            if not (frozen or attended):
                return []
            states = self.states()
            at_break = [n for n, state in states.items() if state == AT_BREAK]
            if at_break:
                if attended:
                    self.peers_follow(self[at_break[0]])
                return []
            if RUNNING not in states.values():
                return []       # it has stopped again
            for name, state in states.items():
                if (attended and state == PAUSED and name not in frozen
                        and sync_daemon.stopped(self[name].qmp.peek_events())):
                    self.peers_follow(self[name])       # Ctrl-C in gdb, just now
                    return []
            self._share(frozen=[])
            waiting = {n: self[n].qmp for n, state in states.items()
                       if state == PAUSED and (attended or n in frozen)}
            freeze.together(waiting, "cont")
            return list(waiting)

    def stopped_with_another(self, machine: Machine) -> bool:
        """Is MACHINE stopped because another is?"""
        return machine.name in self._shared().get("frozen", [])

    def freeze(self) -> list[str]:
        """Stop all guests; the names of those that ran."""
        with self.lock():
            everyone = {m.name: m.qmp for m in self.alive()}
            # They stay frozen until thaw; if attended, until one of them resumes.
            self._share(frozen=sorted(everyone) if self.attended else [])
            return freeze.stop_running(everyone)

    def go(self) -> list[str]:
        """Resume all guests and cancel pending steps; the names of
        those that were stopped."""
        with self.lock():
            for machine in self.adapters:
                if machine.guest.alive:
                    machine.cancel_step()
            self._share(frozen=[])
            return freeze.go_on({m.name: m.qmp for m in self.alive()})

    # ---------------------------------------------------- breaks and steps

    def add_break(self, machine: Machine, condition: dict) -> dict:
        """Set a break; from now on the sync daemon looks after the peers."""
        with self.lock():
            info = machine.add_break(condition)
            try:
                sync_daemon.ensure(self.lab)
            except ScopeError:
                machine.remove_break(info["id"])
                raise
            return info

    def step(self, machine: Machine, on: str = "wqe", count: int = 1) -> None:
        """Resume all guests, MACHINE to the COUNT-th event of the kind ON. See
        wait_stop()."""
        if count < 1:
            raise Usage("the number of steps must be at least 1")
        with self.lock():
            known = machine.choices("qhca-step", "on")
            if on not in known:
                raise Usage(f"no event is called {on!r}", "there are: " + ", ".join(known))
            if machine.state() == RUNNING:
                raise ScopeError(
                    f"guest {machine.name} is running: it must be stopped to step",
                    f"stop it first: scope break {on} --once, or scope freeze",
                )
            sync_daemon.ensure(self.lab)
            states = self.states()
            others = {n: self[n].qmp for n, s in states.items()
                      if n != machine.name and s in (PAUSED, AT_BREAK)}
            for each in self.alive():
                each.qmp.poll_events()
            frozen = self._shared().get("frozen", [])
            self._share(frozen=[])
            with sched.preferred():
                try:
                    machine.command("qhca-step", {"on": on, "count": count})
                except LabError:
                    self._share(frozen=frozen)  # they are still to resume with it
                    raise
                try:
                    alone = not others or self._stops_within(machine, ALONE)
                except LabError:
                    freeze.together(others, "cont")
                    raise
                if not alone:
                    freeze.together(others, "cont")
                    return
            # The step ended without the others, for whom no time has passed.
            paused = [n for n in others if states[n] == PAUSED]
            if paused:
                self._share(frozen=sorted(paused))

    @staticmethod
    def _stops_within(machine: Machine, seconds: float) -> bool:
        """Has MACHINE reported a stop within this time?"""
        deadline = time.monotonic() + seconds
        while True:
            if any(e["event"] == "QHCA_STOP" for e in machine.qmp.peek_events()):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            select.select([machine.qmp], [], [], left)

    def wait_stop(self, machines: list[Machine] | None = None,
                  timeout: float | None = None) -> Machine:
        """Wait until one of MACHINES (all with an adapter) stops at a break or
        at the end of its steps, and its peers with it. TookTooLong after
        TIMEOUT seconds; None waits without a limit."""
        machines = machines or [m for m in self.adapters if m.guest.alive]
        deadline = None if timeout is None else time.monotonic() + timeout
        for machine in machines:        # connected before checking, so that none is missed
            machine.qmp.poll_events()
        while True:
            for machine in machines:
                if machine.state() == AT_BREAK:
                    self.peers_follow(machine)
                    return machine
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TookTooLong(f"no stop within {timeout:g} s")
            self._wait_event(machines, left)

    @staticmethod
    def _wait_event(machines: list[Machine], left: float | None) -> None:
        """Wait until one of MACHINES reports a stop, or LEFT seconds."""
        deadline = None if left is None else time.monotonic() + left
        while True:
            for machine in machines:
                names = {e["event"] for e in machine.qmp.poll_events()}
                if names & {"STOP", "QHCA_STOP", "SHUTDOWN"}:
                    return
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            if wait == 0.0:
                return
            wait_any([m.qmp for m in machines], wait)

    def wait_running_stop(self, machine: Machine, timeout: float | None) -> None:
        """Wait for the end of steps that have begun; cancel the rest if it takes too long."""
        try:
            self.wait_stop([machine], timeout)
        except (TookTooLong, KeyboardInterrupt):
            with contextlib.suppress(LabError):
                machine.cancel_step()
            raise

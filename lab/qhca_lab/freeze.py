# SPDX-License-Identifier: GPL-2.0-or-later
"""Stop and resume all guests of a lab together. Virtual time stops in all of them,
so no peer runs out of retries."""

from __future__ import annotations

import contextlib

from . import sched
from .errors import LabError

RUNNING = "running"
# Run states in which virtual time is stopped, until cont.
STOPPED = ("paused", "debug")


def run_state(guest, timeout: float = 5.0) -> str | None:
    """QEMU's run state of a guest: "running", "paused", "debug" at a break,
    ...; None when QEMU is gone, "unknown" when it does not answer."""
    if not guest.alive:
        return None
    try:
        with guest.tool_qmp(timeout) as qmp:
            return qmp.command("query-status")["status"]
    except LabError:
        return "unknown"


def together(connections: dict, command: str) -> None:
    """Send COMMAND to all, and only then wait for answers, so that the guests execute it as
    simultaneously as possible. Errors do not stop this; the first one is raised at the
    end."""
    errors, sent = [], []
    with sched.preferred():
        for name, qmp in connections.items():
            try:
                qmp.send(command)
                sent.append(name)
            except LabError as error:
                errors.append(f"guest {name}: {error}")
    for name in sent:
        try:
            connections[name].reply(command)
        except LabError as error:
            errors.append(f"guest {name}: {error}")
    if errors:
        raise LabError("; ".join(errors))


def stop_running(connections: dict) -> list[str]:
    """Stop the guests that run; returns their names. Guests that are stopped already are
    not changed. After an error those stopped here are resumed, and LabError describes
    the error and names the guest, whose state is unknown."""
    stopped, asked, errors = {}, [], []
    # All at once: waiting for each answer would cost the guests' time. A guest may
    # meet a break in between, and is then not one that we stopped.
    with sched.preferred():
        for name, qmp in connections.items():
            try:
                for command in ("query-status", "stop", "query-status"):
                    qmp.send(command)
                asked.append(name)
            except LabError as error:
                errors.append(f"guest {name}: {error}")
    for name in asked:
        qmp = connections[name]
        said = []
        for command in ("query-status", "stop", "query-status"):
            try:
                said.append(qmp.reply(command))
            except LabError as error:
                said.append(None)
                errors.append(f"guest {name}: {error}")
        before, _, after = said
        if before and after and (before["status"], after["status"]) == (RUNNING, STOPPED[0]):
            stopped[name] = qmp
    if errors:
        for qmp in stopped.values():
            with contextlib.suppress(LabError):
                qmp.command("cont")
        raise LabError("not frozen: " + "; ".join(errors) + "; the others run, these may be "
                       "stopped: qhca-scope thaw")
    return list(stopped)


def go_on(connections: dict) -> list[str]:
    """Resume all guests that are stopped, also at a break; returns their names.
    Every guest is tried; their errors are raised at the end."""
    stopped, errors = {}, []
    for name, qmp in connections.items():
        try:
            if qmp.command("query-status")["status"] != RUNNING:
                stopped[name] = qmp
        except LabError as error:
            errors.append(f"guest {name}: {error}")
    try:
        together(stopped, "cont")
    except LabError as error:
        errors.append(str(error))
    if errors:
        raise LabError("; ".join(errors))
    return list(stopped)


@contextlib.contextmanager
def connected(lab, timeout: float = 20.0):
    """QMP connections to all guests of LAB, by name."""
    with contextlib.ExitStack() as stack:
        found = {}
        for guest in lab.guests:
            if not guest.alive:
                raise LabError(
                    f"QEMU of guest {guest.name} has ended: qhca-lab down, and up again"
                )
            found[guest.name] = stack.enter_context(guest.tool_qmp(timeout))
        yield found


def freeze(lab) -> list[str]:
    """Stop all guests of LAB together; the names of those that ran."""
    with connected(lab) as connections:
        return stop_running(connections)


def thaw(lab) -> list[str]:
    """Resume all guests of LAB together; the names of those that were stopped."""
    with connected(lab) as connections:
        return go_on(connections)

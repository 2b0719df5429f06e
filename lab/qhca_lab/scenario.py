# SPDX-License-Identifier: GPL-2.0-or-later
"""Fault scenarios: a TOML file of rules for the guests of a lab, a seed, and the
commands to run with them. See docs/how-to/inject-faults.md for the format."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
import subprocess
import time
import tomllib
from pathlib import Path

from . import fault, pair
from .errors import CommandTimeout, LabError
from .paths import TOP

HOME = TOP / "lab" / "scenarios"

KEYS = {
    "": ("about", "seed", "fault", "trigger", "run"),
    "trigger": ("guest", "counter", "at-least", "timeout"),
    "run": ("listen", "timeout"),  # and guests
}
TIMEOUT = 120.0


@dataclasses.dataclass
class Trigger:
    """Faults are added when this counter of this guest has increased by this much."""

    guest: str
    counter: str
    at_least: int
    timeout: float


@dataclasses.dataclass
class Scenario:
    """A scenario as read; `faults` are (guest, rule, the line of each key) in order,
    `run` are (guest, command) in the order in which they are started."""

    path: Path
    about: str
    seed: int
    faults: list[tuple[str, dict, dict[str, int]]]
    trigger: Trigger | None
    run: list[tuple[str, str]]
    listen: int | None
    timeout: float

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def guests(self) -> list[str]:
        found = [guest for guest, _rule, _lines in self.faults]
        found += [guest for guest, _command in self.run]
        return sorted(set(found))


class ScenarioError(LabError):
    """The file has an error: the text has its location and the valid values."""

    def __init__(self, path: Path, line: int, text: str):
        super().__init__(f"{path}:{line}: {text}")


def find(name: str) -> Path:
    """The file NAME, or that of the scenario of that name."""
    path = Path(name)
    if path.suffix == ".toml" or "/" in name:
        if not path.is_file():
            raise LabError(f"no file {name}")
        return path
    path = HOME / f"{name}.toml"
    if not path.is_file():
        raise LabError(f"no scenario {name!r}: there are {', '.join(names())}, "
                       "or give a file that ends in .toml")
    return path


def names() -> list[str]:
    return sorted(path.stem for path in HOME.glob("*.toml"))


class _Reader:
    """Finds the line of a key for messages: tomllib does not report it."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise LabError(f"{path}: cannot be read: {error}") from None
        try:
            self.data = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            match = re.search(r"\(at line (\d+)", str(error))
            line = int(match[1]) if match else self.text.count("\n") + 1
            raise ScenarioError(path, line, f"not TOML: {error}") from None

    def line(self, table: str, key: str = "", nth: int = 0) -> int:
        """The line of KEY in the NTH table called TABLE ("": the top level), or of its header."""
        now, seen, found = "", -1, 1
        for number, line in enumerate(self.text.splitlines(), 1):
            head = re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", line)
            if head:
                now = head[1]
                seen += now == table
                if now == table and seen == nth:
                    found = number
            elif now == table and (not table or seen == nth) and key:
                if re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
                    return number
        return found

    def wrong(self, text: str, table: str = "", key: str = "", nth: int = 0):
        return ScenarioError(self.path, self.line(table, key, nth), text)

    def take(self, table: dict, where: str, key: str, kind, default=None):
        """A value of KIND; it is required unless there is a DEFAULT."""
        if key not in table:
            if default is None:
                raise self.wrong(f"[{where}] has no {key}", where)
            return default
        value = table[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if isinstance(value, bool) or not isinstance(value, kinds):
            wanted = {str: "a text", int: "a number", float: "a number"}[kinds[0]]
            raise self.wrong(f"{key}: {wanted} is wanted, not {value!r}", where, key)
        return value


def _known(reader: _Reader, table: dict, where: str, more=()) -> None:
    for key in table:
        if key not in KEYS[where] and key not in more:
            raise reader.wrong(
                f"{key}: no such field; there are {', '.join((*KEYS[where], *more))}", where, key)


def _faults(reader: _Reader) -> list[tuple[str, dict, dict[str, int]]]:
    """QEMU checks the rules when they are added; this checks that they can be sent to it."""
    tables = reader.data.get("fault", [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise reader.wrong("faults are written as [[fault]], each with guest and action",
                           "fault")
    found = []
    for nth, table in enumerate(tables):
        rule = dict(table)
        guest = rule.pop("guest", None)
        if not isinstance(guest, str):
            raise reader.wrong("guest: which guest's adapter is meant (a, b, ...) is missing",
                               "fault", "guest", nth)
        for key, value in rule.items():
            if not isinstance(value, (str, int)) and not (
                    isinstance(value, float) and math.isfinite(value)):
                raise reader.wrong(f"{key}: a word, a number, true or false is wanted, "
                                   f"not {value!r}", "fault", key, nth)
        found.append((guest, rule, {key: reader.line("fault", key, nth) for key in
                                    ("action", *rule)}))
    return found


def _trigger(reader: _Reader) -> Trigger | None:
    table = reader.data.get("trigger")
    if table is None:
        return None
    if not isinstance(table, dict):
        raise reader.wrong("a trigger is written as [trigger]", "", "trigger")
    _known(reader, table, "trigger")
    return Trigger(
        reader.take(table, "trigger", "guest", str),
        reader.take(table, "trigger", "counter", str),
        reader.take(table, "trigger", "at-least", int),
        float(reader.take(table, "trigger", "timeout", (int, float), 60)),
    )


def load(name: str) -> Scenario:
    """Read the scenario NAME; ScenarioError gives file, line and field."""
    reader = _Reader(find(name))
    data = reader.data
    _known(reader, data, "")
    run = data.get("run", {})
    if not isinstance(run, dict):
        raise reader.wrong("commands are written as [run] with a line for each guest", "", "run")
    guests = [key for key in run if key not in KEYS["run"]]
    for guest in guests:
        if not re.fullmatch("[a-z]", guest):
            raise reader.wrong(f"{guest}: no guest; there are a, b, ..., and "
                               f"{', '.join(KEYS['run'])}", "run", guest)
    listen = reader.take(run, "run", "listen", int, 0)
    return Scenario(
        path=reader.path,
        about=reader.take(data, "", "about", str, "-"),
        seed=reader.take(data, "", "seed", int, 1),
        faults=_faults(reader),
        trigger=_trigger(reader),
        run=[(guest, reader.take(run, "run", guest, str)) for guest in guests],
        listen=listen or None,
        timeout=float(reader.take(run, "run", "timeout", (int, float), TIMEOUT)),
    )


# ------------------------------------------------------------------- running


@dataclasses.dataclass
class Outcome:
    """The result of a run: exit status by guest (or "command"), their output, the faults
    with their hits, the counters that increased."""

    scenario: str
    seed: int
    status: dict[str, int | None]
    output: dict[str, str]
    faults: list[dict]
    counters: dict[str, dict[str, int]]


def set_up(lab, scenario: Scenario) -> None:
    """Check that the scenario fits the lab, and set the seed."""
    for name in scenario.guests:
        guest = lab[name]
        if any(g == name for g, _rule, _lines in scenario.faults):
            if fault.listed(guest)["faults"]:
                raise LabError(f"guest {name} has faults already: 'qhca-lab fault list' shows "
                               f"them, 'qhca-lab fault remove {name}' removes them")
            fault.seed(guest, scenario.seed)
    if scenario.trigger:
        trigger = scenario.trigger
        known = fault.counters(lab[trigger.guest])
        if trigger.counter not in known:
            raise LabError(f"{scenario.path}: no counter {trigger.counter!r}; there are "
                           f"{', '.join(sorted(known))}")


def set_faults(lab, scenario: Scenario) -> None:
    for name, rule, lines in scenario.faults:
        try:
            fault.add(lab[name], rule)
        except fault.FaultError as error:
            line = lines.get(error.key, lines["action"])
            raise ScenarioError(scenario.path, line, str(error)) from None


def clear(lab, scenario: Scenario) -> list[dict]:
    """Remove its faults; returns what they did."""
    done = []
    for name in sorted({g for g, _rule, _lines in scenario.faults}):
        with contextlib.suppress(LabError):
            done += [dict(f, guest=name) for f in fault.listed(lab[name])["faults"]]
            fault.remove(lab[name])
    return done


def _wait_counter(lab, trigger: Trigger, before: int, running) -> None:
    deadline = time.monotonic() + trigger.timeout
    while fault.counters(lab[trigger.guest])[trigger.counter] - before < trigger.at_least:
        if not running():
            raise LabError(f"all programs ended before {trigger.counter} of guest {trigger.guest} "
                           f"went up by {trigger.at_least}: run more, or lower at-least")
        if time.monotonic() > deadline:
            raise LabError(f"{trigger.counter} of guest {trigger.guest} did not go up by "
                           f"{trigger.at_least} within {trigger.timeout:g} s")
        time.sleep(0.01)


def _start_guests(lab, scenario: Scenario) -> dict:
    jobs = {}
    for name, command in scenario.run:
        if not jobs and scenario.listen:
            jobs[name] = pair.start_server(lab[name], command, port=scenario.listen)
        else:
            jobs[name] = lab[name].start(command)
    return jobs


def run(lab, scenario: Scenario, command: list[str] | None = None) -> Outcome:
    """Run COMMAND (of the host) or the scenario's own commands with its faults, and remove
    these at the end in any case."""
    if not command and not scenario.run:
        raise LabError(f"{scenario.path} has no [run]: give a command after --")
    set_up(lab, scenario)
    guests = [g for g in lab.guests if g.nic.split(":")[0] == "qhca"]
    before = {g.name: fault.counters(g) for g in guests}
    status: dict[str, int | None] = {}
    output: dict[str, str] = {}
    jobs: dict = {}
    process = None
    try:
        if not scenario.trigger:
            set_faults(lab, scenario)
        if command:
            try:
                process = subprocess.Popen(command, env=dict(os.environ, QHCA_LAB=lab.name))
            except OSError as error:
                raise LabError(f"{command[0]}: {error.strerror}") from None
        else:
            jobs = _start_guests(lab, scenario)
        if scenario.trigger:
            trigger = scenario.trigger
            _wait_counter(lab, trigger, before[trigger.guest][trigger.counter],
                          lambda: process.poll() is None if process
                          else any(job.running for job in jobs.values()))
            set_faults(lab, scenario)
        if process:
            status["command"] = process.wait()
        deadline = time.monotonic() + scenario.timeout
        for name, job in reversed(jobs.items()):
            try:
                result = job.wait(max(1.0, deadline - time.monotonic()))
            except CommandTimeout as error:
                result = error.result
            status[name], output[name] = result.rc, result.out + result.err
    finally:
        if process and process.poll() is None:
            process.terminate()
            process.wait()
        for job in jobs.values():
            job.kill()
        done = clear(lab, scenario)
    after = {g.name: fault.counters(g) for g in guests}
    changed = {
        name: {c: n - before[name].get(c, 0) for c, n in found.items()
               if n > before[name].get(c, 0)}
        for name, found in after.items()
    }
    return Outcome(scenario.name, scenario.seed, status, output, done, changed)

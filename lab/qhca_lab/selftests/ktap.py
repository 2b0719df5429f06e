# SPDX-License-Identifier: GPL-2.0-or-later
"""The output of selftests: KTAP, or the lines of net/forwarding/lib.sh."""

from __future__ import annotations

import dataclasses
import re

PASS, FAIL, SKIP, XFAIL = "pass", "fail", "skip", "xfail"
# The exit status of a test that skips itself as a whole.
STATUS_SKIP = 4

_KTAP = re.compile(r"^(not )?ok \d+ (?:- )?(\S+)(?:\s+# ?(SKIP|XFAIL)?\s*(.*))?$")
_SHELL = re.compile(r"^(TEST|SKIP|INFO): (.*?)\s+\[\s*(OK|FAIL|SKIP|XFAIL)\s*\]$")
_SHELL_WORDS = {"OK": PASS, "FAIL": FAIL, "SKIP": SKIP, "XFAIL": XFAIL}
# A test that cannot start: it is skipped before ksft_run() can report it.
_SKIPPED = re.compile(r"KsftSkipEx: (.*)$|YnlException: (Family \S+ not supported by the kernel)$")
_WHY = re.compile(r"^# (?:Check failed|Exception\|\s+(?!File|\^|at )\S+(?:Error|Exception|Ex|Failure)\b)")


@dataclasses.dataclass
class Case:
    """One case of a test: VERDICT is one of the words above, REASON says why it
    did not pass."""

    name: str
    verdict: str
    reason: str = ""


def _last(lines: list[str], word: str) -> int:
    """Index of the last line with WORD; the length if there is none."""
    found = [i for i, line in enumerate(lines) if word in line]
    return found[-1] if found else len(lines)


def _reason(lines: list[str]) -> str:
    """Why a case failed, from the diagnostics before its result."""
    told = [line for line in lines if _WHY.match(line)]
    text = re.sub(r"^# (Exception\| )?", "", (told or lines[-1:] or [""])[-1])
    # The last output of a command that failed. Linux 7 prints it in separate lines.
    command = re.search(r"^# Exception\| CMD: (.+)$", "\n".join(lines), re.MULTILINE)
    if told and command and "Command failed" in text:
        wrote = [re.sub(r"^# Exception\|\s*(STDERR: )?", "", line)
                 for line in lines[_last(lines, "STDERR: "):]]
        wrote = [line.strip() for line in wrote if line.strip()]
        return f"{wrote[-1]} ({command[1]})" if wrote else f"{text.strip()} ({command[1]})"
    said = re.search(r"^# Exception\| STDERR: b['\"](.+)['\"]$", "\n".join(lines), re.MULTILINE)
    if told and "Command failed" in text and said:
        command = text.partition("Command failed: ")[2]
        last = [part for part in said[1].split("\\n") if part.strip()][-1:]
        text = f"{' '.join(last)} ({command})"
    return text.strip()


def _short(name: str, test: str) -> str:
    """The name of a case without the name of its test."""
    return name.removeprefix(f"{test}.")


def parse(test: str, output: str, status: int | None) -> list[Case]:
    """The cases of TEST (a file's name) that wrote OUTPUT and ended with STATUS, None
    if it had to be killed. At least one: a test that reports none is itself the case."""
    stem = test.rpartition("/")[2].rpartition(".")[0]
    cases: list[Case] = []
    before: list[str] = []
    planned = None
    for line in output.splitlines():
        plan = re.match(r"^1\.\.(\d+)", line)
        ktap, shell = _KTAP.match(line), _SHELL.match(line)
        if plan:
            planned = int(plan[1])
        elif ktap:
            bad, name, word, text = ktap.groups()
            verdict = {"SKIP": SKIP, "XFAIL": XFAIL}.get(word, FAIL if bad else PASS)
            reason = text or "" if word else _reason(before) if bad else ""
            cases.append(Case(_short(name, stem), verdict, reason))
            before = []
        elif shell:
            if shell[2].startswith("SKIP: "):
                # of loopback.sh, which says that this is OK
                cases.append(Case("", SKIP, shell[2].removeprefix("SKIP: ")))
            else:
                cases.append(Case(shell[2], _SHELL_WORDS[shell[3]]))
            before = []
        elif cases and line.startswith("\t") and cases[-1].verdict != PASS:
            # the words that lib.sh writes below a result
            cases[-1].reason = f"{cases[-1].reason} {line.strip()}".strip()
        else:
            before.append(line)
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "no output")
    last = re.sub(r"^(# )?(SKIP:?)?\s*", "", last)
    if status is None:
        cases.append(Case("", FAIL, f"did not end; its last words: {last}"))
    elif planned is not None and len(cases) < planned:
        cases.append(Case("", FAIL, f"{planned - len(cases)} cases were not run: {last}"))
    elif status not in (0, STATUS_SKIP) and not cases and (skipped := _SKIPPED.search(last)):
        cases.append(Case("", SKIP, skipped[1] or skipped[2]))
    elif status == STATUS_SKIP and not cases:
        cases.append(Case("", SKIP, last))
    elif status not in (0, STATUS_SKIP) and all(c.verdict != FAIL for c in cases):
        cases.append(Case("", FAIL, f"exit status {status}: {last}"))
    elif not cases:
        cases.append(Case("", PASS))
    return cases

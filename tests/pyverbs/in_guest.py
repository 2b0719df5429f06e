# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs rdma-core's own tests in a guest, each in a process of its own.

    in_guest.py SUITE [--list] [--only REGEX] --dev DEVICE --gid INDEX --port 1

SUITE is the `tests` folder of rdma-core's source. One JSON object per test goes
to standard output as soon as it has ended:

    {"test": ..., "verdict": "passed" | "failed" | "skipped", "reason": ...,
     "seconds": ...}

The modules are loaded once; a child is forked for each test, so that none
sees what another left behind, and one that crashes or hangs takes nothing
with it.
"""

import argparse
import faulthandler
import importlib
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
import types
import unittest

# Tests for other vendors' devices, or for hardware no guest has.
NOT_OURS = re.compile(r"^test_(mlx5|efa|cuda)")
SECONDS = 90  # for one test


def load(suite):
    """All tests for any device, by name without the leading "tests."."""
    sys.path[:0] = [suite, os.path.dirname(suite)]
    args_parser = importlib.import_module("args_parser")
    args_parser.parser.parse_args()
    # The suite imports itself as "tests.MODULE", its helpers in either way.
    # Its own __init__ would load what is for other vendors' devices too.
    package = types.ModuleType("tests")
    package.__path__ = [suite]
    sys.modules["tests"] = package
    sys.modules["tests.args_parser"] = args_parser
    found = {}
    for name in sorted(os.listdir(suite)):
        if not re.match(r"test_\w+\.py$", name) or NOT_OURS.match(name):
            continue
        module = importlib.import_module("tests." + name[:-3])
        for group in unittest.defaultTestLoader.loadTestsFromModule(module):
            for test in group:
                found[test.id().removeprefix("tests.")] = test
    return found


def outcome(test):
    """Run TEST here; (verdict, reason)."""
    result = unittest.TestResult()
    test.run(result)
    bad = result.errors + result.failures
    if bad:
        return "failed", "\n".join(text for _, text in bad)
    if result.unexpectedSuccesses:
        return "failed", "it was expected to fail"
    if result.skipped:
        return "skipped", result.skipped[0][1]
    return "passed", ""


def child(test, pipe, log):
    """The forked process; does not return."""
    os.setsid()
    for fd in (1, 2):
        os.dup2(log.fileno(), fd)
    faulthandler.enable()
    verdict = json.dumps(outcome(test)).encode()
    sys.stdout.flush()
    with os.fdopen(pipe, "wb") as out:
        out.write(verdict)
    # No interpreter shutdown: a skipped test leaves objects half made.
    os._exit(0)


def one(test):
    """Run TEST in a child; (verdict, reason)."""
    with tempfile.TemporaryFile() as log:
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            child(test, write_end, log)
        os.close(write_end)
        poll = select.poll()
        poll.register(read_end, select.POLLIN)
        hung = not poll.poll(SECONDS * 1000)
        text = b""
        if not hung:
            with os.fdopen(read_end, "rb") as pipe:
                text = pipe.read()
        else:
            os.close(read_end)
        # Its helpers too: some tests fork.
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status = os.waitpid(pid, 0)
        if text:
            verdict, reason = json.loads(text)
        else:
            verdict = "failed"
            reason = f"no end after {SECONDS} s" if hung else f"process ended: status {status}"
        if verdict == "failed":
            log.seek(0)
            reason += "\n" + log.read().decode(errors="replace")
        return verdict, reason.strip()


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("suite")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    args, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    for name, test in load(os.path.realpath(args.suite)).items():
        if not re.search(args.only, name):
            continue
        if args.list:
            print(name)
            continue
        begin = time.monotonic()
        verdict, reason = one(test)
        line = {
            "test": name,
            "verdict": verdict,
            "reason": reason,
            "seconds": round(time.monotonic() - begin, 1),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

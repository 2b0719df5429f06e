# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by all tests that pytest runs."""

import hashlib
import os
import time
from pathlib import Path

import pytest


_report = os.environ.get("QHCA_TEST_REPORT")
_times = _report and os.path.splitext(_report)[0] + ".times"
_failures = _report and os.path.splitext(_report)[0] + ".failed"
_begun = {}
# A folder of claims: runs that are told of the same one share the tests.
_claims = os.environ.get("QHCA_TESTS_CLAIMED")


def pytest_addoption(parser):
    parser.addoption("--shared", choices=("first", "last"),
                     help="share the tests with another run, each once: which files first")


def _claimed(items, folder):
    """Those of ITEMS that no other run has claimed; each is claimed as late as possible."""
    for item in items:
        name = hashlib.sha1(item.nodeid.encode()).hexdigest()
        try:
            os.close(os.open(Path(folder, name), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        yield item


def _files_backwards(items):
    """The files in the opposite order, the tests of each in their own."""
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    return [item for path in reversed(files) for item in files[path]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Two runs with --shared meet in the middle: so both end at the same time, however
    long their tests take."""
    how = session.config.getoption("--shared")
    if not how or not _claims or session.config.option.collectonly or session.testsfailed:
        return None
    order = session.items if how == "first" else _files_backwards(session.items)
    mine = _claimed(order, _claims)
    item = next(mine, None)
    while item:
        following = next(mine, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """lab/gate/run-tests needs the number of tests found and their duration."""
    if _report and not config.option.xmlpath:
        config.option.xmlpath = _report
        open(_times, "w").close()
        open(_failures, "w").close()


def pytest_collection_modifyitems(items):
    """A test that is excluded from the gate must have a reason next to it."""
    for item in items:
        for mark in item.iter_markers("long"):
            if not (mark.args and isinstance(mark.args[0], str) and mark.args[0]):
                raise pytest.UsageError(f"{item.nodeid}: long() without a reason")


def pytest_runtest_logreport(report):
    """Report failures immediately: a run of an hour would report them only at its end."""
    if _failures and report.failed:
        with open(_failures, "a") as f:
            f.write(f"==== {report.nodeid} ({report.when})\n{report.longreprtext}\n")


def pytest_runtest_logstart(nodeid):
    _begun[nodeid] = time.monotonic()


def pytest_runtest_logfinish(nodeid):
    """Report the duration of each test, fixtures included, as soon as it has ended: a run that is
    killed writes no report."""
    if _times:
        with open(_times, "a") as f:
            f.write(f"{time.monotonic() - _begun.pop(nodeid):8.1f} {nodeid}\n")

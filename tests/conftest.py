# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests that pytest runs have in common."""

import os
import time

import pytest


_report = os.environ.get("QHCA_TEST_REPORT")
_times = _report and os.path.splitext(_report)[0] + ".times"
_begun = {}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """lab/gate/run-tests wants to know what was found and how long it took."""
    if _report and not config.option.xmlpath:
        config.option.xmlpath = _report
        open(_times, "w").close()


def pytest_collection_modifyitems(items):
    """Who leaves a test out of the gate says why, beside it."""
    for item in items:
        for mark in item.iter_markers("long"):
            if not (mark.args and isinstance(mark.args[0], str) and mark.args[0]):
                raise pytest.UsageError(f"{item.nodeid}: long() without a reason")


def pytest_runtest_logstart(nodeid):
    _begun[nodeid] = time.monotonic()


def pytest_runtest_logfinish(nodeid):
    """How long each took, fixtures included, as soon as it has ended: of a run
    that is killed there is no report."""
    if _times:
        with open(_times, "a") as f:
            f.write(f"{time.monotonic() - _begun.pop(nodeid):8.1f} {nodeid}\n")

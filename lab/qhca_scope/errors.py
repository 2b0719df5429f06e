# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors, each with a hint and an exit status."""

from __future__ import annotations

from qhca_lab import LabError


class ScopeError(LabError):
    """An error with a hint: `hint` says what to do, or is empty. `status`
    is the exit status of a command that ends with it."""

    status = 1

    def __init__(self, text: str, hint: str = ""):
        super().__init__(text)
        self.hint = hint


class Usage(ScopeError):
    """The command line is invalid."""

    status = 2


class NoSuchObject(ScopeError):
    """There is no object with that number; the hint lists some that exist."""

    status = 3


class TookTooLong(ScopeError):
    """The expected event did not happen in time."""

    status = 4

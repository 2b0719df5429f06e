# SPDX-License-Identifier: GPL-2.0-or-later
"""What can go wrong, each with what to do about it and an exit status."""

from __future__ import annotations

from qhca_lab import LabError


class ScopeError(LabError):
    """An error with a way out: `hint` says what to do, or is empty. `status`
    is the exit status of a command that ends with it."""

    status = 1

    def __init__(self, text: str, hint: str = ""):
        super().__init__(text)
        self.hint = hint


class Usage(ScopeError):
    """The command line does not make sense."""

    status = 2


class NoSuchObject(ScopeError):
    """There is no object of that number; the hint names some there are."""

    status = 3


class TookTooLong(ScopeError):
    """What was waited for did not come in time."""

    status = 4

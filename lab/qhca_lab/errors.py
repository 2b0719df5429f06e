# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of a lab; their text suggests what to do."""

from __future__ import annotations


class LabError(Exception):
    """Something about the lab itself: not up, not built, QEMU died."""


class CommandFailed(LabError):
    """A guest's command ended with a status other than zero.

    `result` is the guest.Result of the command.
    """

    def __init__(self, text: str, result):
        super().__init__(text)
        self.result = result


class CommandTimeout(LabError):
    """A guest's command was killed because it took too long.

    `result` holds the output until then; its rc is None.
    """

    def __init__(self, text: str, result):
        super().__init__(text)
        self.result = result

# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher behind lab/qhca-lab, as a library for the tests.

    from qhca_lab import Lab
    lab = Lab.up("mine", nics=["qhca", "rxe"])
    lab["a"].run("ibv_devinfo -d $IBDEV")
    lab.down()
"""

from .errors import CommandFailed, CommandTimeout, LabError
from .guest import Background, Guest, Python, Result
from .lab import Lab, Options

__all__ = [
    "Background",
    "CommandFailed",
    "CommandTimeout",
    "Guest",
    "Lab",
    "LabError",
    "Options",
    "Python",
    "Result",
]

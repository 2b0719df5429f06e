# SPDX-License-Identifier: GPL-2.0-or-later
"""The debugging tool lab/qhca-scope: inspects, stops and steps the adapters of a lab, by
commands or in a terminal interface.

    from qhca_scope import Scope
    with Scope.of_lab("lab") as scope:
        scope["a"].inspect("qp", 17)["context"]["state_name"]
"""

from .machine import Machine
from .scope import Scope
from .errors import NoSuchObject, ScopeError, TookTooLong

__all__ = ["Machine", "NoSuchObject", "Scope", "ScopeError", "TookTooLong"]

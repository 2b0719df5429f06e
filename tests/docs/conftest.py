# SPDX-License-Identifier: GPL-2.0-or-later
"""The labs of the documents, and the lab that several of them share."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))


class Labs:
    """Labs that documents start: in a private place, and always ended."""

    # Not "lab": a reader's own may be up.
    NAME = "docs"

    def __init__(self, base):
        self.base = base
        self.shared = False

    def environment(self):
        # Outputs list each packet: none must be sent twice because the host was busy.
        return {"QHCA_RUN": str(self.base), "QHCA_LAB": self.NAME, "QHCA_MIN_ACK_TIMEOUT": "17"}

    def share(self):
        """A running pair for documents that share one: their own `up` uses it."""
        from qhca_lab import Lab, Options

        if not self.shared:
            Lab.up(self.NAME, options=Options(tied=True), replace=True)
            self.shared = True

    def end(self):
        """End every lab; the names of those that were up."""
        from qhca_lab import Lab, LabError

        found = []
        for state in sorted(self.base.glob("*/lab.json")):
            name = state.parent.name.split("-", 1)[1]
            try:
                Lab.load(name).down()
                found.append(name)
            except LabError:
                pass
        self.shared = False
        return found


@pytest.fixture(scope="session")
def labs():
    base = Path(tempfile.mkdtemp(prefix="qd", dir="/tmp"))
    labs = Labs(base)
    with pytest.MonkeyPatch.context() as patch:
        # for share(), too, which starts one from here
        for name, value in labs.environment().items():
            patch.setenv(name, value)
        try:
            yield labs
        finally:
            labs.end()
    shutil.rmtree(base, ignore_errors=True)

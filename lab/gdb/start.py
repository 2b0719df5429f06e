# SPDX-License-Identifier: GPL-2.0-or-later
"""Executes the commands of the file $qhca_start, quietly; ends gdb when one fails."""

import os

import gdb

_file = gdb.convenience_variable("qhca_start").string()
with open(_file) as _lines:
    for _line in _lines.read().splitlines():
        try:
            gdb.execute(_line, to_string=not _line.startswith("source"))
        except gdb.error as _error:
            print(f"qhca-gdb: error: {_line}: {_error}")
            os.unlink(_file)
            gdb.execute("quit 1")
os.unlink(_file)

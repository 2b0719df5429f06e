# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal interface: model.py has the contents, panes.py their layout, app.py keys
and screen, cleanup.py what to undo when it dies."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal interface: model.py knows what is seen, panes.py how it looks,
app.py the keys and the screen, cleanup.py what happens when it dies."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own selftests of network drivers, run between two guests.

ktap      what the tests print, as results
programs  which tests there are, and how each is run
two_ends  the programs that run in both guests
place     the guests they run in
table     the results as a document
"""

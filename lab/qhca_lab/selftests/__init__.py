# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own selftests of network drivers, run between two guests.

ktap      parsing the output of the tests
programs  the list of tests, and how each is run
two_ends  the programs that run in both guests
place     the guests they run in
table     the results as a document
"""

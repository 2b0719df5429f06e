# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings: everything that happens in a lab, on one clock.

usdt      the provider's static probe points, as the kernel's uprobes want them
ftrace    a guest's side: driver events and provider points in its trace buffer
devlog    the adapter's side: what QEMU wrote
clocks    from a guest's trace clock and an adapter's to the clock of the lab
causes    which event is the cause of which
chrome    trace.json, for Perfetto
packets   wire.pcapng, for Wireshark
merge     all of it together
perfetto  a recording in Perfetto's own trace processor
session   starting and stopping a recording in a lab
"""

from .merge import merge
from .session import Recording

__all__ = ["Recording", "merge"]

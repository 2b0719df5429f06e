# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings: everything that happens in a lab, on one clock.

usdt          the provider's static probe points, as the kernel's uprobes want them
ftrace        a guest's side: driver events and provider points in its trace buffer
device_log    the adapter's side: what QEMU wrote
clocks        converting clocks of guests and adapters to the clock of the lab
causes        which event causes which
roce          the RoCEv2 header of a frame
trace_format  trace.json, for Perfetto
merge         merging all of it
perfetto      a recording in Perfetto's own trace processor
session       starting and stopping a recording in a lab
"""

from .merge import merge
from .session import Recording

__all__ = ["Recording", "merge"]

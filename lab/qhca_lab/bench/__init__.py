# SPDX-License-Identifier: GPL-2.0-or-later
"""The measurements of lab/bench/measure and lab/bench/profile.

profile    where both QEMUs spend their time
perftest   the cases, and one measurement by perftest
softroce   qhca and Soft-RoCE in the same two guests; the limits of the host
revisions  the device of this tree and that of another revision
aims       all goals, and whether this run reaches them
net        the net device and virtio-net, alternately
scale      many QPs, MRs and guests, compared with one QP
results    the file that keeps the figures
tracing    the cost of active breaks and recordings
"""

# SPDX-License-Identifier: GPL-2.0-or-later
"""What lab/bench/measure measures, and lab/bench/profile looks at.

profile    where both QEMUs spend their time
perftest   the cases, and one measurement by perftest
softroce   qhca and Soft-RoCE in the same two guests; what the host can do
revisions  the device of this tree and that of another revision
net        the net device and virtio-net, in turns
scale      many QPs, MRs and guests, beside one QP
results    the file that keeps the figures
tracing    what breaks and recordings cost while they are on
"""

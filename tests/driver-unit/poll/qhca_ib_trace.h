/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trace events, not in user space. */
#define trace_qhca_poll_cq(...)     ((void)0)
#define trace_qhca_flush_wr(...)    ((void)0)

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels we build for, 6.12 to 7.x.  The sources use
 * the newer names; this is the only file with conditions on the version.
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "qhca needs Linux 6.12 or newer"
#endif

/* the DMA block iterator has moved out of rdma/ib_umem.h, also in 6.12.y */
#if __has_include(<rdma/iter.h>)
#include <rdma/iter.h>
#else
#include <rdma/ib_umem.h>
#endif

#endif /* QHCA_COMPAT_H */

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

/*
 * The DMA block iterator has moved out of the rdma headers that all include,
 * also in 6.12.y: ib/Kbuild looks where it is.
 */
#ifdef QHCA_HAVE_RDMA_ITER_H
#include <rdma/iter.h>
#endif

#endif /* QHCA_COMPAT_H */

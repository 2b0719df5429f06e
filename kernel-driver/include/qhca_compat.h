/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels we build for, 6.12 to 7.x.  The sources use
 * the newer names; this is the only file with conditions on the version.
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#include <linux/device.h>
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

/* 6.17: user MRs may come with a DMA handle, which we do not have */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define QHCA_DMAH_PARAM		struct ib_dmah *dmah,
#define QHCA_DMAH_GIVEN		(dmah)
#else
#define QHCA_DMAH_PARAM
#define QHCA_DMAH_GIVEN		false
#endif

/* 7.2: user memory may also come from a buffer descriptor */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define ib_umem_get_va(device, addr, size, access) \
	ib_umem_get(device, addr, size, access)
#endif

/* 7.2: flags of struct device have accessors */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
static inline bool dev_dma_iommu(struct device *dev)
{
#ifdef CONFIG_IOMMU_DMA
	return dev->dma_iommu;
#else
	return false;
#endif
}
#endif

#endif /* QHCA_COMPAT_H */

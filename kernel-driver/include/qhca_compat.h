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
 * also in 6.12.y: Kbuild looks where it is.
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

/* 6.18: the grace period has moved to the operations; see Kbuild */
#ifdef QHCA_HAVE_HEALTH_OPS_GRACE
#define QHCA_HEALTH_GRACE(ms)	.default_graceful_period = (ms),
#define qhca_health_create(devlink, ops, grace, priv) \
	devlink_health_reporter_create(devlink, ops, priv)
#else
#define QHCA_HEALTH_GRACE(ms)
#define qhca_health_create	devlink_health_reporter_create
#endif

/* 7.2: user memory may also come from a buffer descriptor */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define ib_umem_get_va(device, addr, size, access) \
	ib_umem_get(device, addr, size, access)
#endif

/*
 * 6.15: counters are told the port of a QP, and the core allocates what the
 * driver has beside struct rdma_counter: nothing here
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define QHCA_COUNTER_PORT_PARAM	, u32 port
#define QHCA_COUNTER_OBJ_SIZE	.size_rdma_counter = sizeof(struct rdma_counter),
#else
#define QHCA_COUNTER_PORT_PARAM
#define QHCA_COUNTER_OBJ_SIZE
#endif

/*
 * Page @page of an on-demand paging umem, after ib_umem_odp_map_dma_and_lock():
 * 1, or 0 if it is not there, or -EFAULT if it could not be mapped for DMA.
 * *@write is true if the caller's table has the page as writable already, and
 * gets whether it may be. Under umem_mutex.
 */
#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
#include <rdma/ib_umem_odp.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
/* 6.16: the driver maps for DMA */
#include <linux/hmm.h>
#include <linux/pci-p2pdma.h>
#define ODP_READ_ALLOWED_BIT	0
#define ODP_WRITE_ALLOWED_BIT	HMM_PFN_WRITE
/* its lists count pages of the CPU, whatever the size of the umem's pages */
#define QHCA_ODP_HUGE		false
static inline int qhca_odp_page(struct ib_umem_odp *umem, unsigned long page,
				bool *write, dma_addr_t *addr)
{
	unsigned long pfn = umem->map.pfn_list[page];
	struct pci_p2pdma_map_state p2p = {};

	if (!(pfn & HMM_PFN_VALID))
		return 0;
	*addr = hmm_dma_map_pfn(umem->umem.ibdev->dma_device, &umem->map, page,
				&p2p);
	if (ib_dma_mapping_error(umem->umem.ibdev, *addr))
		return -EFAULT;
	if (!(pfn & HMM_PFN_DMA_MAPPED))
		umem->npages++;
	*write = pfn & HMM_PFN_WRITE;
	return 1;
}

/* what the CPU may write stays so until it is taken away */
static inline void qhca_odp_page_dirty(struct ib_umem_odp *umem,
				       unsigned long page)
{
}
#else
#define QHCA_ODP_HUGE		true
static inline int qhca_odp_page(struct ib_umem_odp *umem, unsigned long page,
				bool *write, dma_addr_t *addr)
{
	dma_addr_t dma = umem->dma_list[page];

	if (!dma)
		return 0;
	/*
	 * Mapping a page again, to read, takes back the right to write; but it
	 * may have been written, and must become dirty when it goes.
	 */
	if (*write)
		umem->dma_list[page] |= ODP_WRITE_ALLOWED_BIT;
	*addr = dma & ODP_DMA_ADDR_MASK;
	*write |= !!(dma & ODP_WRITE_ALLOWED_BIT);
	return 1;
}

/*
 * Page @page goes, and may have been written: so when a mapping to read failed
 * at a later page, before qhca_odp_page() could give the right back.
 */
static inline void qhca_odp_page_dirty(struct ib_umem_odp *umem,
				       unsigned long page)
{
	if (umem->dma_list[page])
		umem->dma_list[page] |= ODP_WRITE_ALLOWED_BIT;
}
#endif
#endif

/*
 * Later only applications resize CQs, and the depth has no sign: Kbuild
 * looks which it is.
 */
#ifdef QHCA_HAVE_RESIZE_USER_CQ
#define QHCA_RESIZE_CQ_OP	resize_user_cq
#define QHCA_RESIZE_CQE		unsigned int
#else
#define QHCA_RESIZE_CQ_OP	resize_cq
#define QHCA_RESIZE_CQE		int
#endif

#endif /* QHCA_COMPAT_H */

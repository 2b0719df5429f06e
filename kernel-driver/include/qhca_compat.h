/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the supported kernels, 6.12 to 7.x.  The sources use the
 * newer names.  Kbuild checks the headers for what a kernel has: a release
 * named here is the first one with a feature, and updates of older ones may
 * have it, too.
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#include <linux/device.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "qhca needs Linux 6.12 or newer"
#endif

/* The DMA block iterator has moved out of the common rdma headers. */
#ifdef QHCA_HAVE_RDMA_ITER_H
#include <rdma/iter.h>
#endif

/* 6.17: user MRs may come with a DMA handle, which is not supported */
#ifdef QHCA_HAVE_DMAH
#define QHCA_DMAH_PARAM		struct ib_dmah *dmah,
#define QHCA_DMAH_GIVEN		(dmah)
#else
#define QHCA_DMAH_PARAM
#define QHCA_DMAH_GIVEN		false
#endif

/* 6.18: the grace period has moved to the operations */
#ifdef QHCA_HAVE_HEALTH_OPS_GRACE
#define QHCA_HEALTH_GRACE(ms)	.default_graceful_period = (ms),
#define qhca_health_create(devlink, ops, grace, priv) \
	devlink_health_reporter_create(devlink, ops, priv)
#else
#define QHCA_HEALTH_GRACE(ms)
#define qhca_health_create	devlink_health_reporter_create
#endif

/* 7.2: user memory may also come from a buffer descriptor */
#ifndef QHCA_HAVE_UMEM_GET_VA
#define ib_umem_get_va(device, addr, size, access) \
	ib_umem_get(device, addr, size, access)
#endif

/*
 * 6.15: counter operations get the port of a QP, and the core allocates the
 * driver's part of struct rdma_counter: empty here
 */
#ifdef QHCA_HAVE_SIZE_RDMA_COUNTER
#define QHCA_COUNTER_PORT_PARAM	, u32 port
#define QHCA_COUNTER_OBJ_SIZE	.size_rdma_counter = sizeof(struct rdma_counter),
#else
#define QHCA_COUNTER_PORT_PARAM
#define QHCA_COUNTER_OBJ_SIZE
#endif

/* 6.15: the core has the driver initialize its part, even if that is empty */
#ifdef QHCA_HAVE_COUNTER_INIT
#define QHCA_COUNTER_INIT_BY_DRIVER
#define QHCA_COUNTER_INIT	.counter_init = qhca_ib_counter_init,
#else
#define QHCA_COUNTER_INIT
#endif

/*
 * 6.14: the core sends the port's events when the net_device's state changes,
 * unless a driver does. As the core does, the driver then reports that the port
 * is down once it is, and no longer when it begins to go down.
 */
#ifdef QHCA_HAVE_REPORT_PORT_EVENT
#define QHCA_PORT_EVENTS_BY_DRIVER
#define QHCA_REPORT_PORT_EVENT	.report_port_event = qhca_ib_report_port_event,
#define QHCA_PORT_GOES_DOWN(type)	false
#else
#define QHCA_REPORT_PORT_EVENT
#define QHCA_PORT_GOES_DOWN(type)	((type) == NETDEV_GOING_DOWN)
#endif

/*
 * Page @page of an on-demand paging umem, after ib_umem_odp_map_dma_and_lock():
 * 1, 0 if it is not present, or -EFAULT if it could not be mapped for DMA.
 * *@write says whether the page is writable in the caller's table already, and
 * returns whether it may be. Under umem_mutex.
 */
#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
#include <rdma/ib_umem_odp.h>
#ifdef QHCA_HAVE_ODP_HMM_MAP
/* 6.16: the driver maps for DMA */
#include <linux/hmm.h>
#include <linux/pci-p2pdma.h>
#define ODP_READ_ALLOWED_BIT	0
#define ODP_WRITE_ALLOWED_BIT	HMM_PFN_WRITE
/* its lists count CPU pages, whatever the size of the umem's pages */
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

/* a page that the CPU may write stays writable until it is unmapped */
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
	 * Mapping a page again for reading revokes write access; but it may
	 * have been written, and must be marked dirty when it is unmapped.
	 */
	if (*write)
		umem->dma_list[page] |= ODP_WRITE_ALLOWED_BIT;
	*addr = dma & ODP_DMA_ADDR_MASK;
	*write |= !!(dma & ODP_WRITE_ALLOWED_BIT);
	return 1;
}

/*
 * Page @page is unmapped, and may have been written: for example when mapping
 * for reading failed at a later page, before qhca_odp_page() could restore
 * write access.
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
 * GSO: accurate ECN sets CWR in all segments. 6.18: outer and inner
 * identifications are distinguished; before, only the inner one counted.
 */
#ifdef QHCA_HAVE_GSO_ACCECN
#define QHCA_GSO_CWR		SKB_GSO_TCP_ACCECN
#else
#define QHCA_GSO_CWR		SKB_GSO_TCP_ECN
#endif
#ifdef QHCA_HAVE_GSO_FIXEDID_INNER
#define QHCA_GSO_FIXEDID_OUTER	SKB_GSO_TCP_FIXEDID
#define QHCA_GSO_FIXEDID_INNER	SKB_GSO_TCP_FIXEDID_INNER
#else
#define QHCA_GSO_FIXEDID_OUTER	0
#define QHCA_GSO_FIXEDID_INNER	SKB_GSO_TCP_FIXEDID
#endif

/* Later only applications resize CQs, and the depth is unsigned. */
#ifdef QHCA_HAVE_RESIZE_USER_CQ
#define QHCA_RESIZE_CQ_OP	resize_user_cq
#define QHCA_RESIZE_CQE		unsigned int
#else
#define QHCA_RESIZE_CQ_OP	resize_cq
#define QHCA_RESIZE_CQE		int
#endif

/*
 * 6.15: a net_device has its own lock, which the core takes around all
 * operations if the driver asks for it; NAPI instances get a number, which lets
 * their settings persist.
 */
#ifdef QHCA_HAVE_NETDEV_OPS_LOCK
#include <net/netdev_lock.h>
static inline void qhca_netdev_request_lock(struct net_device *netdev)
{
	netdev->request_ops_lock = true;
}

#define qhca_netdev_lock_ops	netdev_lock_ops
#define qhca_netdev_unlock_ops	netdev_unlock_ops
#define qhca_napi_add		netif_napi_add_config_locked
#define qhca_napi_del		netif_napi_del_locked
#define qhca_napi_set_irq	netif_napi_set_irq_locked
#define qhca_napi_enable	napi_enable_locked
#define qhca_napi_disable	napi_disable_locked
#else
static inline void qhca_netdev_request_lock(struct net_device *netdev)
{
}

static inline void qhca_netdev_lock_ops(struct net_device *netdev)
{
}

static inline void qhca_netdev_unlock_ops(struct net_device *netdev)
{
}

#define qhca_napi_add(netdev, napi, poll, index) \
	netif_napi_add(netdev, napi, poll)
#define qhca_napi_del		netif_napi_del
#define qhca_napi_set_irq	netif_napi_set_irq
#define qhca_napi_enable	napi_enable
#define qhca_napi_disable	napi_disable
#endif

/*
 * 6.13: the stack's shapers, whose operations run under the lock that the
 * others have taken since 6.15.
 */
#ifdef QHCA_HAVE_NET_SHAPERS
#define QHCA_NETDEV_SHAPER_OPS	.net_shaper_ops = &qhca_shaper_ops,
#else
#define QHCA_NETDEV_SHAPER_OPS
#endif

/*
 * 6.16: the stack may send memory that is not the kernel's, mapped for the
 * device by its owner. Later a net_device may also support this without DMA.
 */
static inline void qhca_netdev_send_netmem(struct net_device *netdev)
{
#ifdef QHCA_HAVE_NETMEM_TX_MODE
	netdev->netmem_tx = NETMEM_TX_DMA;
#elif defined(QHCA_HAVE_NETMEM_TX)
	netdev->netmem_tx = true;
#endif
}

/*
 * 7.3: the receive filter of such a net_device is set in a context that may
 * sleep, and its ethtool operations hold rtnl only if it asks for that.
 */
#ifdef QHCA_HAVE_RX_MODE_ASYNC
#define QHCA_RX_MODE_OP		ndo_set_rx_mode_async
#define QHCA_RX_MODE_RETURNS	int
#define QHCA_RX_MODE_PARAMS	, struct netdev_hw_addr_list *uc, \
				struct netdev_hw_addr_list *mc
#define QHCA_RX_MODE_OK		0
#else
#define QHCA_RX_MODE_OP		ndo_set_rx_mode
#define QHCA_RX_MODE_RETURNS	void
#define QHCA_RX_MODE_PARAMS
#define QHCA_RX_MODE_OK
#endif

#ifdef QHCA_HAVE_OP_NEEDS_RTNL
#define QHCA_ETHTOOL_NEEDS_RTNL						\
	.op_needs_rtnl = ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM |		\
			 ETHTOOL_OP_NEEDS_RTNL_SCHANNELS |		\
			 ETHTOOL_OP_NEEDS_RTNL_GLINK,
#else
#define QHCA_ETHTOOL_NEEDS_RTNL
#endif

/*
 * 6.17: RSS hash fields have their own operations, and may differ between
 * contexts; before, they were part of the filter operations. 6.15: the second
 * symmetric transformation.
 */
#include <linux/ethtool.h>
#ifndef RXH_IP6_FL	/* the IPv6 flow label */
#define RXH_IP6_FL	BIT(9)
#endif
#ifdef QHCA_HAVE_RXFH_FIELDS
#define QHCA_RXH_XFRM_SUPPORTED	(RXH_XFRM_SYM_XOR | RXH_XFRM_SYM_OR_XOR)
#define QHCA_RXH_XFRM_OR_XOR	RXH_XFRM_SYM_OR_XOR
#ifdef QHCA_HAVE_RX_RING_COUNT
#define QHCA_ETHTOOL_RING_COUNT	.get_rx_ring_count = qhca_get_rx_ring_count,
#else
#define QHCA_ETHTOOL_RING_COUNT
#endif
#define QHCA_ETHTOOL_RSS						\
	QHCA_ETHTOOL_RING_COUNT						\
	.supported_input_xfrm = QHCA_RXH_XFRM_SUPPORTED,		\
	.rxfh_per_ctx_fields = 1,					\
	.get_rxfh_fields = qhca_get_rxfh_fields,			\
	.set_rxfh_fields = qhca_set_rxfh_fields,
#else
#define QHCA_RXH_XFRM_SUPPORTED	RXH_XFRM_SYM_XOR
#define QHCA_RXH_XFRM_OR_XOR	0
#define QHCA_RXFH_FIELDS_BY_RXNFC
#define QHCA_ETHTOOL_RSS						\
	.cap_rss_sym_xor_supported = 1,
struct ethtool_rxfh_fields {
	u32 data;
	u32 flow_type;
	u32 rss_context;
};

static inline struct ethtool_rxfh_fields
qhca_rxfh_fields(const struct ethtool_rxnfc *nfc)
{
	bool ctx = nfc->flow_type & FLOW_RSS;

	return (struct ethtool_rxfh_fields) {
		.data = nfc->data,
		.flow_type = nfc->flow_type & ~FLOW_RSS,
		.rss_context = ctx ? nfc->rss_context : 0,
	};
}
#endif

/*
 * 6.13: a driver declares that it adds the queue of a filter to the entries of
 * the filter's context; before, all were to do that.
 */
#ifdef QHCA_HAVE_RSS_RXNFC_ADDS
#define QHCA_ETHTOOL_RXNFC_ADDS	.cap_rss_rxnfc_adds = 1,
#else
#define QHCA_ETHTOOL_RXNFC_ADDS
#endif

/*
 * 6.17: a function assigns a page pool to a NAPI instance. The instance is off,
 * and the pool is unassigned.
 */
#include <net/page_pool/types.h>
#ifdef QHCA_HAVE_POOL_DIRECT_RECYCLING
#define qhca_pool_use_napi	page_pool_enable_direct_recycling
#else
static inline void qhca_pool_use_napi(struct page_pool *pool,
				      struct napi_struct *napi)
{
	WRITE_ONCE(pool->p.napi, napi);
}
#endif

/* 6.15: the function that recycles a whole buffer has another name. */
#ifdef QHCA_HAVE_POOL_ALLOC_NETMEMS
#define qhca_pool_alloc_netmem	page_pool_alloc_netmems
#else
#define qhca_pool_alloc_netmem	page_pool_alloc_netmem
#endif

/* Later a sample is passed by reference. */
#ifdef QHCA_HAVE_NET_DIM_BY_REFERENCE
#define qhca_net_dim(dim, sample)	net_dim(dim, sample)
#else
#define qhca_net_dim(dim, sample)	net_dim(dim, *(sample))
#endif

/* Later each queue may be configured separately, with its own page size. */
#ifdef QHCA_HAVE_QUEUE_CONFIG
#define QHCA_QCFG_PARAM		struct netdev_queue_config *qcfg,
#else
#define QHCA_QCFG_PARAM
#endif

#ifdef QHCA_HAVE_QUEUE_PAGE_SIZE
#define QHCA_PAGE_SIZE_BY_QUEUE
#include <net/netdev_queues.h>
static inline u32 qhca_queue_page_size(struct net_device *netdev, u32 index)
{
	struct netdev_queue_config qcfg;

	netdev_queue_config(netdev, index, &qcfg);
	return qcfg.rx_page_size;
}
#else
static inline u32 qhca_queue_page_size(struct net_device *netdev, u32 index)
{
	return PAGE_SIZE;
}
#endif

/* Before 6.14, either all frames are split or none. */
#ifdef QHCA_HAVE_HDS_THRESH
#define QHCA_ETHTOOL_HDS_THRS	ETHTOOL_RING_USE_HDS_THRS
static inline void
qhca_set_hds_thresh(struct kernel_ethtool_ringparam *kring, u32 thresh, u32 max)
{
	kring->hds_thresh = thresh;
	kring->hds_thresh_max = max;
}

static inline u32
qhca_get_hds_thresh(const struct kernel_ethtool_ringparam *kring)
{
	return kring->hds_thresh;
}
#else
#define QHCA_ETHTOOL_HDS_THRS	0
static inline void
qhca_set_hds_thresh(struct kernel_ethtool_ringparam *kring, u32 thresh, u32 max)
{
}

static inline u32
qhca_get_hds_thresh(const struct kernel_ethtool_ringparam *kring)
{
	return 0;
}
#endif

/*
 * Later an XDP frame's flags describe its fragments, and an operation of the
 * net_device may set its XDP features under the net_device's own lock.
 */
#include <net/xdp.h>
static inline void qhca_xdp_skb_frags(struct sk_buff *skb, u8 nr_frags,
				      u32 size, u32 truesize,
				      struct xdp_buff *xdp)
{
#ifdef QHCA_HAVE_XDP_FRAGS_INFO
	xdp_update_skb_frags_info(skb, nr_frags, size, truesize,
				  xdp_buff_get_skb_flags(xdp));
#else
	xdp_update_skb_shared_info(skb, nr_frags, size, truesize,
				   xdp_buff_is_frag_pfmemalloc(xdp));
#endif
}

#ifdef QHCA_HAVE_XDP_FEATURES_LOCKED
#define qhca_xdp_set_features	xdp_set_features_flag_locked
#else
#define qhca_xdp_set_features	xdp_set_features_flag
#endif

/*
 * Tell @rxq its NAPI instance, which an AF_XDP socket may poll. Later the stack
 * finds it by itself.
 */
static inline void qhca_xdp_set_napi(struct xdp_rxq_info *rxq,
				     const struct napi_struct *napi)
{
#ifdef QHCA_HAVE_XDP_RXQ_NAPI_ID
	rxq->napi_id = napi->napi_id;
#endif
}

/*
 * AF_XDP. Later a buffer is added to a frame in one step, and the metadata of
 * each frame is read only once. Updates of older kernels have some of this.
 */
#if IS_ENABLED(CONFIG_XDP_SOCKETS)
#include <linux/vmalloc.h>
#include <net/xdp_sock_drv.h>
#ifdef QHCA_HAVE_XSK_FRAG_STEP
#define qhca_xsk_frag_step	xsk_pool_get_rx_frag_step
#else
#define qhca_xsk_frag_step	xsk_pool_get_rx_frame_size
#endif

/* False if the frame has the maximum number of buffers. */
static inline bool qhca_xsk_add_frag(struct xdp_buff *xdp,
				     struct xdp_buff *frag)
{
#ifdef QHCA_HAVE_XSK_ADD_FRAG_TO_LIST
	struct skb_shared_info *info = xdp_get_shared_info_from_buff(xdp);
	u32 len = frag->data_end - frag->data;

	if (!xdp_buff_has_frags(xdp)) {
		info->nr_frags = 0;
		info->xdp_frags_size = 0;
		xdp_buff_set_frags_flag(xdp);
	}
	if (info->nr_frags == MAX_SKB_FRAGS)
		return false;
	__skb_fill_page_desc_noacc(info, info->nr_frags++,
				   vmalloc_to_page(frag->data),
				   offset_in_page(frag->data), len);
	info->xdp_frags_size += len;
	xsk_buff_add_frag(frag);
	return true;
#else
	return xsk_buff_add_frag(xdp, frag);
#endif
}

/*
 * Let @ops store in @priv the metadata requests of the frame that begins with
 * @desc, and record in @compl what to report on completion.
 */
static inline void
qhca_xsk_tx_metadata(struct xsk_buff_pool *pool, const struct xdp_desc *desc,
		     const struct xsk_tx_metadata_ops *ops, void *priv,
		     struct xsk_tx_metadata_compl *compl)
{
	struct xsk_tx_metadata *meta;

#ifdef QHCA_HAVE_XSK_METADATA_OPTIONS
	meta = xsk_buff_get_metadata(pool, desc->addr, desc->options);
#else
	meta = xsk_buff_get_metadata(pool, desc->addr);
#endif
#ifdef QHCA_HAVE_XSK_METADATA_POOL
	xsk_tx_metadata_request(pool, &meta, ops, priv);
#else
	xsk_tx_metadata_request(meta, ops, priv);
#endif
	compl->tx_timestamp = NULL;
	xsk_tx_metadata_to_compl(meta, compl);
}
#endif

/* The locks that the core holds when calling a net_device operation. Sleeps. */
static inline void qhca_netdev_lock(struct net_device *netdev)
{
	rtnl_lock();
	qhca_netdev_lock_ops(netdev);
}

static inline void qhca_netdev_unlock(struct net_device *netdev)
{
	qhca_netdev_unlock_ops(netdev);
	rtnl_unlock();
}

#endif /* QHCA_COMPAT_H */

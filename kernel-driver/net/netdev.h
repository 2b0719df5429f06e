/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The net_device: private to this folder, and to debug/.
 *
 * A channel is a NAPI instance on a completion vector, with a send queue and a
 * receive queue. Queues have their own life cycle: memory is allocated first,
 * then the queue is started, which creates the device's objects; stopping
 * undoes that, and when it has returned, the device does no DMA for the queue.
 * So a queue can be replaced while the others run, and allocation failures
 * occur before anything is stopped.
 */
#ifndef QHCA_NETDEV_H
#define QHCA_NETDEV_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/u64_stats_sync.h>
#include <net/netmem.h>
#include <net/xdp.h>
#include <net/xdp_sock.h>

#include "dim.h"
#include "ntuple.h"
#include "ptp.h"
#include "qhca_compat.h"
#include "qhca_core.h"
#include "rss.h"

struct bpf_prog;
struct page_pool;
struct qhca_channel;
struct qhca_netdev;
struct qhca_shapers;
struct xsk_buff_pool;

#define QHCA_MAX_CHANNELS	16U

#define QHCA_WATCHDOG_TIMEOUT	(10 * HZ)

#define QHCA_ETH_SQ_NONE	QHCA_ETH_RQ_NONE

#define QHCA_TX_DEPTH_DEF	512U
#define QHCA_RX_DEPTH_DEF	1024U
#define QHCA_RING_MIN		64U
#define QHCA_RING_MAX		8192U

#define QHCA_TX_STRIDE		9	/* header and QHCA_ETH_MAX_SGE segments */
#define QHCA_RX_STRIDE		4	/* one segment; of both rings */

/* Event moderation, for struct qhca_cqc. */
struct qhca_coalesce {
	u16 count;
	u16 usec;
	bool adaptive;		/* the two above are unused */
};

/* What the administrator sets, and queues are created with. */
struct qhca_net_params {
	u32 channels;
	u32 tx_depth;
	u32 rx_depth;
	u32 rx_size;		/* of a receive buffer, with headroom and tail */
	bool large;		/* packets that hold many frames */
	bool xdp;		/* buffers for XDP programs */
	bool split;		/* headers from data */
	u32 hds_thresh;		/* longer frames are split, bytes */
	struct qhca_coalesce tx_coalesce[QHCA_MAX_CHANNELS];
	struct qhca_coalesce rx_coalesce[QHCA_MAX_CHANNELS];
};

/* The doorbell records of one queue: a page. */
struct qhca_net_dbrecs {
	struct qhca_dbrec *recs;
	dma_addr_t dma;
};

/* records are a cache line apart */
enum {
	QHCA_DBREC_CQ = 0,
	QHCA_DBREC_RQ = 8,
	QHCA_DBREC_DATA = 16,
};

static inline dma_addr_t qhca_net_dbrec_dma(const struct qhca_net_dbrecs *d,
					    int index)
{
	return d->dma + index * sizeof(*d->recs);
}

/* A CQ of an Ethernet queue. */
struct qhca_net_cq {
	struct qhca_core_cq cq;
	struct qhca_channel *ch;
	struct qhca_queue_buf buf;
	struct qhca_dbrec *dbrec;
	dma_addr_t dbrec_dma;
	u32 cons;
	u16 events;		/* so far, modulo 2^16 */
	u32 armed_cons;		/* cons when it was armed */
	u8 shift;
	bool armed;		/* an event was requested and has not come */
	bool made;		/* the device knows it */
	bool live;		/* its completions schedule NAPI */
};

/* ---------------------------------------------------------- statistics -- */

/* Of a queue number, over all queues that have used it. */
struct qhca_tx_stats {
	struct u64_stats_sync sync;	/* under the lock of the stack's queue */
	u64_stats_t stop;		/* queue stopped: ring full */
	u64_stats_t linearized;
	u64_stats_t dropped;		/* no memory, no mapping */
	u64_stats_t csum_none;
	u64_stats_t needs_csum;
	u64_stats_t gso_packets;	/* large sends, and their frames */
	u64_stats_t gso_bytes;
	u64_stats_t gso_wire_packets;
	u64_stats_t gso_wire_bytes;
	u64_stats_t xdp_xmit;		/* frames without an skb */
	u64_stats_t xdp_drops;		/* no room, no mapping */
	u64_stats_t xsk_packets;	/* out of an application's pool */
	u64_stats_t packets;
	u64_stats_t bytes;
	u64_stats_t errors;		/* completed with an error */
	u64_stats_t wake;
	u64_stats_t stamped;		/* sent, with their times */
	u64_stats_t unstamped;		/* timestamp requested, but not sent */
};

struct qhca_rx_stats {
	struct u64_stats_sync sync;	/* by NAPI */
	u64_stats_t packets;
	u64_stats_t bytes;
	u64_stats_t alloc_failed;
	u64_stats_t dropped;		/* no memory for the skb */
	u64_stats_t errors;		/* invalid completions */
	u64_stats_t split;		/* headers from data */
	u64_stats_t large_packets;	/* that hold many frames */
	u64_stats_t large_bytes;
	u64_stats_t large_wire_packets;	/* these frames */
	u64_stats_t large_wire_bytes;
	u64_stats_t csum_unnecessary;
	u64_stats_t csum_none;
	u64_stats_t xdp_packets;	/* that a program has seen */
	u64_stats_t xdp_drops;
	u64_stats_t xdp_tx;		/* sent back */
	u64_stats_t xdp_redirects;
	u64_stats_t xsk_packets;	/* into an application's pool */
	u64_stats_t xsk_starved;	/* pool and ring are empty */
};

/* ------------------------------------------------------------- queues -- */

/*
 * A mapped segment; kept separately, as the device can write into WQEs. A @lent
 * one stays mapped: its memory is its owner's, not the kernel's.
 */
struct qhca_tx_seg {
	dma_addr_t addr;
	u32 len;
	bool lent;
};

enum qhca_tx_kind {
	QHCA_TX_SKB,
	QHCA_TX_FRAME,		/* of XDP, mapped for this */
	QHCA_TX_OWN_FRAME,	/* of XDP, in buffers of the channel's pool */
	QHCA_TX_XSK,		/* descriptors of AF_XDP */
	QHCA_TX_XSK_BUFF,	/* of XDP, in buffers of AF_XDP */
};

struct qhca_tx_buf {
	union {
		struct sk_buff *skb;
		struct xdp_frame *frame;
		struct xdp_buff *xdp;
		struct xsk_tx_metadata_compl compl;
	};
	u32 bytes;		/* on the wire; of an skb, as reported to BQL */
	u16 packets;
	u16 descs;		/* of AF_XDP, that complete with it */
	u8 nsegs;
	u8 kind;
	bool stamp;		/* the sender wants to know when it left */
};

/* A frame of AF_XDP while its descriptors are taken. */
struct qhca_xsk_part {
	struct qhca_tx_seg segs[QHCA_ETH_MAX_SGE];
	struct qhca_eth_wqe offloads;
	struct xsk_tx_metadata_compl compl;
	u32 bytes;
	u16 descs;
	u8 nsegs;
	bool begin;		/* the next descriptor begins a frame */
};

/**
 * struct qhca_tx_queue - a send queue
 * @cq: its CQ
 * @priv: net_device
 * @txq: the stack's queue
 * @stats: of this queue number
 * @dbrecs: doorbell records
 * @buf: ring
 * @bufs: what each WQE sends
 * @segs: QHCA_ETH_MAX_SGE per WQE
 * @xsk: pool of AF_XDP, or NULL
 * @xsk_part: the part of a frame taken from it so far
 * @num: the device's number
 * @shaper: its shaper in the device, or QHCA_SHAPER_NONE
 * @prod: next WQE to write
 * @rung: @prod at the last doorbell
 * @cons: oldest WQE not completed; as @rung, also read without the lock of @txq
 * @shift: log2 of the depth
 * @index: queue number
 * @made: the device knows it
 */
struct qhca_tx_queue {
	struct qhca_net_cq cq;
	struct qhca_netdev *priv;
	struct netdev_queue *txq;
	struct qhca_tx_stats *stats;
	struct qhca_net_dbrecs dbrecs;
	struct qhca_queue_buf buf;
	struct qhca_tx_buf *bufs;
	struct qhca_tx_seg *segs;
	struct xsk_buff_pool *xsk;
	struct qhca_xsk_part xsk_part;
	u32 num;
	u32 shaper;
	u32 prod;
	u32 rung;
	u32 cons;
	u8 shift;
	u8 index;
	bool made;
};

/**
 * struct qhca_rx_data - the data ring of a receive queue that splits frames
 * @buf: ring; empty if the queue does not split
 * @pool: source of buffers: whole pages, or memory of a provider, which the CPU
 *	may be unable to read
 * @bufs: the buffer of each WQE
 * @dbrec: the ring's record
 * @provider: that memory provider, or NULL
 * @hds_thresh: longer frames are split, bytes
 * @buf_len: bytes of a buffer, a power-of-two number of pages
 * @need: buffers that must be posted for the largest frame
 * @prod: next WQE to write
 * @cons: oldest WQE not completed
 * @shift: log2 of the depth
 */
struct qhca_rx_data {
	struct qhca_queue_buf buf;
	struct page_pool *pool;
	netmem_ref *bufs;
	struct qhca_dbrec *dbrec;
	void *provider;
	u32 hds_thresh;
	u32 buf_len;
	u32 need;
	u32 prod;
	u32 cons;
	u8 shift;
};

/**
 * struct qhca_rx_queue - a receive queue
 * @cq: its CQ
 * @priv: net_device
 * @ch: channel
 * @stats: of this queue number
 * @dbrecs: doorbell records
 * @buf: ring
 * @pool: where buffers come from
 * @pages: the buffer of each WQE
 * @xsk: pool of AF_XDP as the source instead, or NULL
 * @xsk_bufs: the buffer of each WQE then
 * @data: if it splits frames, the ring of payload buffers
 * @dbrec: the ring's record
 * @xdp_rxq: the queue as seen by programs and by redirected frames
 * @prod: next WQE to write
 * @cons: oldest WQE not completed
 * @headroom: bytes before a frame in its first buffer, and in all others
 * @buf_len: bytes of a frame in one buffer
 * @buf_size: of one buffer; pages in a row
 * @shift: log2 of the depth
 * @index: queue number
 * @xdp: programs can work on its buffers
 * @large: it takes packets that hold many frames
 * @split: it splits headers from data
 * @made: the device knows it
 * @broken: the device sent an invalid completion for it: it is no longer polled
 */
struct qhca_rx_queue {
	struct qhca_net_cq cq;
	struct qhca_netdev *priv;
	struct qhca_channel *ch;
	struct qhca_rx_stats *stats;
	struct qhca_net_dbrecs dbrecs;
	struct qhca_queue_buf buf;
	struct page_pool *pool;
	struct xsk_buff_pool *xsk;
	union {
		struct page **pages;
		struct xdp_buff **xsk_bufs;
	};
	struct qhca_rx_data data;
	struct qhca_dbrec *dbrec;
	struct xdp_rxq_info xdp_rxq;
	u32 prod;
	u32 cons;
	u16 headroom;
	u16 buf_len;
	u32 buf_size;
	u8 shift;
	u8 index;
	bool xdp;
	bool large;
	bool split;
	bool made;
	bool broken;
};

/**
 * struct qhca_channel - a NAPI instance and its queues
 * @napi: polls both queues
 * @refill: polls again where buffers are short
 * @priv: net_device
 * @tx: send queue; replaced under the locks of the net_device, with NAPI off
 * @rx: receive queue; the same
 * @xsk_pool: pool of AF_XDP for its queues, or NULL; under qhca_netdev_lock()
 * @xsk_rxq: queue information of its buffers; the pool may keep it longer than
 *	any receive queue of the channel lives
 * @rqn: the device's number of the receive queue, or QHCA_ETH_RQ_NONE; it stays
 *	when a single receive queue is replaced; read without a lock, too
 * @sqn: that of the send queue, or QHCA_ETH_SQ_NONE; the same
 * @rx_dim: adaptive moderation of the receive queue
 * @tx_dim: the same for the send queue
 * @rx_adaptive: NAPI runs it; written under qhca_netdev_lock()
 * @tx_adaptive: the same for the send queue
 * @direct: RSS QP over this receive queue alone, created on demand
 * @index: its index, and that of its queues
 * @vector: completion vector; channels share them if there are more channels
 */
struct qhca_channel {
	struct napi_struct napi;
	struct timer_list refill;
	struct qhca_netdev *priv;
	struct qhca_tx_queue *tx;
	struct qhca_rx_queue *rx;
	struct xsk_buff_pool *xsk_pool;
	struct xdp_rxq_info xsk_rxq;
	u32 rqn;
	u32 sqn;
	struct dim rx_dim;
	struct dim tx_dim;
	bool rx_adaptive;
	bool tx_adaptive;
	struct qhca_rss_qp direct;
	u16 index;
	u16 vector;
};

/* Counters of the device that the stack's statistics show. */
enum {
	QHCA_NETDEV_RX_MISSED,
	QHCA_NETDEV_RX_ERRORS,
	QHCA_NETDEV_MULTICAST,
	QHCA_NETDEV_HW_STATS
};

struct qhca_netdev {
	struct qhca_dev *dev;
	struct net_device *netdev;
	struct qhca_channel ch[QHCA_MAX_CHANNELS];
	u32 num_ch;			/* that have queues: up */
	u32 num_napi;			/* that have a NAPI instance */
	u32 max_ch;
	bool up;			/* under qhca_netdev_lock() */
	struct bpf_prog *xdp_prog;	/* written under the same */
	struct qhca_net_params params;	/* for the next time it comes up */
	struct qhca_rss_ctx rss;		/* the default context */
	struct list_head rss_list;	/* the others */
	u32 pdn;			/* of RSS QPs; if have_pd */
	bool have_pd;
	struct qhca_ntuple *ntuple[QHCA_NTUPLE_MAX];	/* by location */
	u32 speed;			/* Mb/s */
	struct qhca_shapers *shapers;	/* under the lock of the net_device */
	bool rx_pause;			/* the device obeys PAUSE frames */
	unsigned long reported;		/* of these queues; QHCA_NETDEV_REPORT_* */
	struct work_struct rx_mode_work;
	struct work_struct link_work;
	struct work_struct stats_work;
	struct mutex stats_lock;	/* protects hw_last */
	u64 hw_last[QHCA_NETDEV_HW_STATS];	/* as last read from the device */
	atomic64_t hw_total[QHCA_NETDEV_HW_STATS];	/* over all its resets */
	struct qhca_ptp ptp;
	struct qhca_tx_stats tx_stats[QHCA_MAX_CHANNELS];
	struct qhca_rx_stats rx_stats[QHCA_MAX_CHANNELS];
};

/* netdev.c */
int qhca_netdev_change(struct qhca_netdev *priv,
		       const struct qhca_net_params *params);
void qhca_netdev_down(struct qhca_netdev *priv);
u32 qhca_netdev_ring_limit(struct qhca_dev *dev);
void qhca_netdev_report(struct qhca_netdev *priv, unsigned int what);
int qhca_netdev_remake(struct qhca_dev *dev);

/* channel.c */
void qhca_channel_init(struct qhca_netdev *priv, u32 index);
void qhca_channel_add(struct qhca_channel *ch);
void qhca_channel_del(struct qhca_channel *ch);
void qhca_channel_set_vector(struct qhca_channel *ch);
void qhca_channel_look(struct qhca_channel *ch);
void qhca_channel_enable(struct qhca_channel *ch);
void qhca_channel_disable(struct qhca_channel *ch);

/* cq.c */
int qhca_net_dbrecs_alloc(struct qhca_netdev *priv, struct qhca_net_dbrecs *d);
void qhca_net_dbrecs_free(struct qhca_netdev *priv, struct qhca_net_dbrecs *d);
int qhca_net_cq_alloc(struct qhca_net_cq *cq, struct qhca_channel *ch,
		      u8 shift, const struct qhca_net_dbrecs *dbrecs);
void qhca_net_cq_free(struct qhca_net_cq *cq);
int qhca_net_cq_start(struct qhca_net_cq *cq,
		      const struct qhca_coalesce *coalesce);
void qhca_net_cq_quiesce(struct qhca_net_cq *cq);
void qhca_net_cq_stop(struct qhca_net_cq *cq);
bool qhca_net_cq_next(struct qhca_net_cq *cq, struct qhca_eth_cqe *cqe);
void qhca_net_cq_publish(struct qhca_net_cq *cq);
void qhca_net_cq_arm(struct qhca_net_cq *cq);
int qhca_net_cq_moderate(struct qhca_net_cq *cq,
			 const struct qhca_coalesce *coalesce);

/* tx.c */
netdev_tx_t qhca_xmit(struct sk_buff *skb, struct net_device *netdev);
netdev_features_t qhca_features_check(struct sk_buff *skb,
				      struct net_device *netdev,
				      netdev_features_t features);
bool qhca_tx_poll(struct qhca_tx_queue *q, int budget);
void qhca_tx_arm(struct qhca_tx_queue *q);
void qhca_tx_drop_all(struct qhca_tx_queue *q);

/* tx_ring.c */
struct qhca_tx_queue *qhca_tx_alloc(struct qhca_channel *ch,
				    const struct qhca_net_params *params);
void qhca_tx_free(struct qhca_tx_queue *q);
int qhca_tx_start(struct qhca_tx_queue *q, const struct qhca_coalesce *c);
void qhca_tx_stop(struct qhca_tx_queue *q);

/* rx.c */
int qhca_rx_poll(struct qhca_rx_queue *q, int budget);

/* rx_ring.c */
struct qhca_rx_queue *qhca_rx_alloc(struct qhca_channel *ch,
				    const struct qhca_net_params *params);
void qhca_rx_free(struct qhca_rx_queue *q);
int qhca_rx_start(struct qhca_rx_queue *q, const struct qhca_coalesce *c);
int qhca_rx_suspend(struct qhca_rx_queue *q);
void qhca_rx_stop(struct qhca_rx_queue *q);
void qhca_rx_fill(struct qhca_rx_queue *q);
void qhca_rx_write(struct qhca_queue_buf *ring, u32 slot, dma_addr_t addr,
		   u32 len);
void qhca_rx_publish(struct qhca_dbrec *dbrec, u32 prod);

static inline u32 qhca_rx_room(const struct qhca_rx_queue *q)
{
	return BIT(q->shift) - (q->prod - q->cons);
}

static inline struct page **qhca_rx_page(struct qhca_rx_queue *q, u32 index)
{
	return &q->pages[index & (BIT(q->shift) - 1)];
}

/* without XDP */
#define QHCA_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
/* bytes of a frame in one buffer: the tailroom holds struct skb_shared_info */
#define QHCA_RX_BUF_LEN(size, headroom)	\
	((u16)(SKB_WITH_OVERHEAD(size) - (headroom)))
/* the largest: the length must fit in a u16 */
#define QHCA_RX_SIZE_MAX	32768U

/* the most that a frame needs: its first one becomes the head of the skb */
#define QHCA_RX_MAX_BUFS	(1 + MAX_SKB_FRAGS)

/* rx_large.c */
u32 qhca_rx_large(struct sk_buff *skb, const struct qhca_eth_cqe *cqe);

/* rx_data.c */
int qhca_rx_data_alloc(struct qhca_rx_queue *q,
		       const struct qhca_net_params *params);
void qhca_rx_data_free(struct qhca_rx_queue *q);
void qhca_rx_data_describe(const struct qhca_rx_queue *q,
			   struct qhca_eth_qc *qc);
void qhca_rx_data_reset(struct qhca_rx_queue *q);
int qhca_rx_data_check(struct qhca_rx_queue *q, const struct qhca_rx_queue *old);
bool qhca_rx_data_ready(const struct qhca_rx_queue *q);
void qhca_rx_data_fill(struct qhca_rx_queue *q);
void qhca_rx_data_drop(struct qhca_rx_queue *q, u32 n);
void qhca_rx_data_drop_all(struct qhca_rx_queue *q);
void qhca_rx_data_add(struct qhca_rx_queue *q, struct sk_buff *skb, u32 n,
		      u32 len);
bool qhca_rx_data_provided(struct net_device *netdev, u32 index);

static inline u32 qhca_rx_data_posted(const struct qhca_rx_queue *q)
{
	return q->data.prod - q->data.cons;
}

/* False if it could not be restarted, or is waiting for that. */
static inline bool qhca_rx_works(const struct qhca_rx_queue *q)
{
	return q->made && !q->broken;
}

/*
 * Does it lack buffers for a frame? Then no frame may complete and cause
 * another poll.
 */
static inline bool qhca_rx_short(const struct qhca_rx_queue *q)
{
	return qhca_rx_works(q) && !q->xsk &&
	       (q->prod - q->cons < QHCA_RX_MAX_BUFS ||
		(q->split && qhca_rx_data_posted(q) < q->data.need));
}

/* rx_mode.c */
QHCA_RX_MODE_RETURNS
qhca_set_rx_mode(struct net_device *netdev QHCA_RX_MODE_PARAMS);
void qhca_rx_mode_work(struct work_struct *work);

/* stats.c */
void qhca_netdev_stats_feed(struct qhca_netdev *priv, const __le64 *hw,
			    bool count);
void qhca_netdev_stats_read(struct qhca_netdev *priv, bool count);
void qhca_netdev_stats_restart(struct qhca_netdev *priv);
void qhca_netdev_stats_work(struct work_struct *work);
void qhca_netdev_get_stats64(struct net_device *netdev,
			     struct rtnl_link_stats64 *stats);

/* queue_mgmt.c */
struct netdev_queue_mgmt_ops;
extern const struct netdev_queue_mgmt_ops qhca_queue_mgmt_ops;

/* queue_stats.c */
struct netdev_queue_stats_rx;
struct netdev_queue_stats_tx;
struct netdev_stat_ops;
extern const struct netdev_stat_ops qhca_netdev_stat_ops;
void qhca_queue_stats_init(struct qhca_netdev *priv);

/* Increment a statistic of a queue. */
static inline void qhca_stat_inc(struct u64_stats_sync *sync, u64_stats_t *what)
{
	u64_stats_update_begin(sync);
	u64_stats_inc(what);
	u64_stats_update_end(sync);
}

/* reporters of the net_device */
enum {
	QHCA_NETDEV_REPORT_TX = QHCA_REPORT_CLIENT,
	QHCA_NETDEV_REPORT_RX,
	QHCA_NETDEV_REPORTERS = 2
};

/* health.c */
extern const struct qhca_reporter qhca_netdev_reporters[QHCA_NETDEV_REPORTERS];

/* ethtool.c */
extern const struct ethtool_ops qhca_ethtool_ops;

#endif /* QHCA_NETDEV_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2: requester, responder, acknowledgments, datagrams, timers, page
 * faults, GIDs and multicast groups.  Internals are in roce.h (packets) and
 * rc.h (a QP's transport).
 */
#ifndef QHCA_TRANSPORT_H
#define QHCA_TRANSPORT_H

#include "base/base.h"
#include "queues/queues.h"

/* Most send WQEs of one RC QP in flight, a power of two. */
#define QHCA_WINDOW_WQES    128
/*
 * Most request packets of an RC QP that may be unacknowledged, and most READ
 * responses that may be outstanding (see send_window.c).  Maximum: 1 MiB at the
 * largest path MTU.  Initially: a message of 64 KiB at the path MTU that fits
 * 1500-byte Ethernet frames.
 */
#define QHCA_WINDOW_PKTS    256
#define QHCA_WINDOW_START   64
/* What the largest window counts as over a memory link: two full records. */
#define QHCA_WINDOW_LINK    512
/*
 * Each timeout without progress in between doubles the next, up to a factor of
 * 1 << this: IBA 9.9.2.1 requires expiry between T and 4 T.
 */
#define QHCA_BACKOFF_MAX    2
/* Most packets between two with AckReq. */
#define QHCA_ACK_INTERVAL   32
/* Free window blocks kept for reuse (12 KiB each). */
#define QHCA_WINDOWS_KEPT   1024
/* Most responses owed by one QP; power of two, more than twice max reads. */
#define QHCA_RSPQ           32
/* Largest RoCEv2 frame: VLAN, IPv6, BTH, XRCETH, RETH, ImmDt, 4 KiB, ICRC. */
#define QHCA_FRAME_MAX      4352
/* Largest super-frame: VLAN, an IP packet of the greatest length, trailer. */
#define QHCA_SUPER_FRAME_MAX (QHCA_ETH_HLEN + QHCA_VLAN_HLEN + \
                              QHCA_ETH_SUPER_IP_MAX + QHCA_SUPER_TRAILER)
#define QHCA_LOOP_SLOTS     64
/* Atomic results kept for duplicates: as many as can be in progress. */
#define QHCA_ATOMICS_KEPT   16
/* QPs handled per call of qhca_xport_timer(). */
#define QHCA_TIMER_BATCH    256

/* A send WQE in flight, as the requester remembers it. */
struct qhca_swqe {
    uint64_t wr_id;
    uint64_t raddr;             /* remote address */
    uint64_t laddr;             /* of the only SGE, if num is 1 */
    uint64_t arg0, arg1;        /* atomics */
    uint32_t rkey, lkey;
    uint32_t len;               /* message bytes */
    uint32_t first_psn;
    uint32_t npkts;             /* PSNs covered; 0: local operation */
    uint32_t imm;               /* as in the WQE */
    uint32_t srqn;              /* XRC */
    uint16_t num;               /* number of SGEs, or inline bytes */
    uint8_t opcode, flags;
    uint8_t status, syndrome;   /* QHCA_WC_*: fails once it is oldest */
    uint8_t marks;              /* QHCA_SW_* */
    uint8_t chunk;              /* READ: log2 of PSNs per request */
};

#define QHCA_SW_STARTED     1   /* its first packet was sent */
#define QHCA_SW_RD          2   /* counted in rd_out */
#define QHCA_SW_DONE        4   /* local operation executed */
#define QHCA_SW_SPLIT       8   /* READ: split into several requests */
#define QHCA_SW_ALONE       16  /* memory failed: packets are sent alone */

/*
 * The WQEs of one QP in flight.  An idle QP has none; unused blocks are on a
 * free list of the adapter.
 */
struct qhca_send_window {
    struct qhca_send_window *next;           /* free list */
    struct qhca_swqe w[QHCA_WINDOW_WQES];
    bool snd_valid, rd_valid;
    uint32_t snd_index, rd_index;       /* WQE counters of these copies */
    _Alignas(16) uint8_t snd_wqe[1024]; /* WQE being sent */
    _Alignas(16) uint8_t rd_wqe[1024];  /* READ being answered */
};

/* A response owed. */
struct qhca_resp {
    uint8_t kind;               /* QHCA_RESP_* */
    uint8_t syndrome;           /* ACK: AETH syndrome */
    bool started;               /* READ: a packet of it has been sent */
    bool uncounted;             /* not in rd_pending: duplicate, FLUSH */
    uint32_t psn;               /* of the next response packet */
    uint32_t left;              /* READ: bytes not sent yet */
    uint32_t rkey;
    uint64_t va;                /* READ: next address; ATOMIC: old value */
    uint32_t ack_psn;           /* if ack: acknowledge this afterwards */
    uint32_t ack:1;
    uint32_t rnr:1;             /* READ waiting for a page: RNR NAK first */
    uint32_t alone:1;           /* READ: as QHCA_SW_ALONE */
    uint32_t srqn:24;           /* XRC READ: SRQ that provides the PD */
};

#define QHCA_RESP_ACK       0   /* also NAKs */
#define QHCA_RESP_READ      1   /* also FLUSH, ATOMIC WRITE: no data */
#define QHCA_RESP_ATOMIC    2

struct qhca_atomic_res {        /* kept for duplicates */
    uint32_t psn;
    bool valid;
    uint64_t old;
};

struct qhca_odp;                /* odp.c */
struct qhca_rx;                 /* roce.h */
struct qhca_super_packet;

/* The transport state of a QP. */
struct qhca_xport {
    struct qhca_qp *qp;
    /* requester */
    uint32_t snd_psn;           /* next PSN to send */
    uint32_t una_psn;           /* oldest PSN not acknowledged */
    uint32_t max_psn;           /* PSN after the last one ever sent */
    uint32_t cur;               /* counter of the WQE at the cursor */
    uint32_t cur_pkt;           /* packets of it before the cursor */
    uint32_t rd_psns;           /* outstanding READ PSNs in [una, snd) */
    uint16_t rd_reqs;           /* requests that cover these PSNs */
    uint16_t wnd;               /* window, packets */
    uint16_t wnd_slow;          /* below this, the window grows fast */
    uint16_t wnd_acked;         /* PSNs ACKed since it last grew */
    uint32_t rtt_psn;           /* PSN whose round trip is measured */
    uint64_t rtt_start;         /* start time, ns; 0: not measuring */
    uint32_t since_ack;         /* packets since AckReq was last set */
    uint32_t back_psn;          /* PSN a NAK made us go back to */
    bool back_valid;
    bool ask;                   /* set AckReq in each packet ... */
    uint32_t ask_psn;           /* ... until this one is acknowledged */
    uint8_t retry_left, rnr_left;
    uint8_t backoff;            /* log2, of the ACK timeout */
    uint8_t rd_out;             /* READs and atomics in flight */
    uint8_t req_state;          /* QHCA_REQ_* */
    uint8_t credits;            /* latest AETH credit code */
    uint8_t recv_ahead;         /* receives used by sq_tail .. cur - 1 */
    uint16_t recv_limit;        /* messages from sq_tail that may be sent */
    bool crc_twice;             /* use Soft-RoCE's ICRC for FLUSH */
    bool took_back;             /* what was sent last is lost by our doing */
    bool sq_flush, rq_flush;    /* flush.c has work to do */
    uint32_t flush_end;         /* SQ, in RTS: where flushing ends */
    bool drain;                 /* SQ_DRAINED is due */
    bool wqe_told;              /* a debugger has seen WQE sq_next */
    struct qhca_sgpos snd_pos, rd_pos;
    struct qhca_send_window *win;    /* NULL: nothing in flight */
    struct qhca_odp *odp;       /* page faults; NULL: none so far */
    uint8_t odp_waits;          /* waiting sides: bit per QHCA_PAGE_FAULT_* */
    /* timer (timer.c) */
    struct qhca_list timer;
    uint64_t deadline;          /* ns; 0: not running */
    uint8_t timer_class;        /* 0..31 ACK timeout, 32..63 RNR code */
    /* responder */
    uint32_t exp_psn, msn;
    uint8_t rsp_op;             /* QHCA_RSPOP_*: current message */
    bool naked;                 /* a NAK was sent for exp_psn */
    bool fatal_nak;             /* send the last response even in ERR */
    bool comm_est;              /* event sent */
    uint8_t rd_pending;         /* new READs and atomics queued */
    uint8_t atomic_next;        /* next slot of atomics[] */
    uint32_t rspq_head, rspq_tail;
    uint64_t wr_va;             /* WRITE: address of the next byte */
    uint32_t wr_rkey, wr_left, wr_len;
    struct qhca_recv recv;
    struct qhca_resp rspq[QHCA_RSPQ];
    struct qhca_atomic_res atomics[QHCA_ATOMICS_KEPT];
};

#define QHCA_RSPOP_NONE     0
#define QHCA_RSPOP_SEND     1
#define QHCA_RSPOP_WRITE    2
#define QHCA_RSPOP_SKIP     3   /* UC: skip rest of a broken message */

#define QHCA_TIMER_CLASSES  64
#define QHCA_TIMER_RNR      32

struct qhca_loop_frame {
    uint32_t len;
    uint8_t data[QHCA_FRAME_MAX];
};

/* An ACK, NAK or atomic result of a QP that no longer sends: last_acks.c. */
#define QHCA_LAST_ACKS      64
struct qhca_last_ack {
    uint32_t len;
    uint8_t data[124];          /* VLAN, IPv6, AETH, AtomicAckETH and more */
};

/* The adapter's transport state. */
struct qhca_xport_dev {
    struct qhca_send_window *free_windows;   /* at most QHCA_WINDOWS_KEPT */
    uint32_t free_count;
    /* One list per duration, each sorted by deadline. */
    struct qhca_list timers[QHCA_TIMER_CLASSES];
    uint64_t timer_mask;        /* non-empty lists */
    struct qhca_loop_frame *loop;       /* QHCA_LOOP_SLOTS */
    uint32_t loop_head, loop_tail;
    bool loop_full;             /* a QP found no free slot */
    bool looping;               /* current packet is looped back */
    bool parting;               /* keep responses while the wire is blocked */
    uint32_t last_ack_head, last_ack_tail;
    struct qhca_last_ack last_ack[QHCA_LAST_ACKS];
    struct qhca_gid *gids;      /* cfg.max_gid entries */
    int16_t gid_hash[QHCA_HASH_SLOTS];      /* index of the GID; -1: none */
    struct qhca_mcg_group **mcgs;   /* hash of groups; NULL: never used */
    uint32_t mc_groups;         /* number of groups */
    _Alignas(64) uint8_t frame[QHCA_SUPER_FRAME_MAX];
    uint8_t piece[QHCA_FRAME_MAX];      /* cut out of a super-frame */
    uint8_t bounce[QHCA_FRAME_MAX];     /* payload of one of its packets */
    _Alignas(16) uint8_t wqe[1024];     /* UD WQE being sent */
};

/* ---- QP types: RC, XRC, UC, UD, GSI ---- */
extern const struct qhca_qp_ops qhca_connected_qp_ops, qhca_ud_qp_ops;
/* The same operations, for QP types of the layers above. */
bool qhca_xport_init(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_qpc *in);
void qhca_xport_free(struct qhca *e, struct qhca_qp *qp);
void qhca_xport_error(struct qhca *e, struct qhca_qp *qp);
void qhca_xport_query(struct qhca *e, struct qhca_qp *qp,
                      struct qhca_qpc *out);
/* Flush and respond; then send requests by @send, if the state allows. */
bool qhca_xport_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget,
                    bool (*send)(struct qhca *e, struct qhca_qp *qp,
                                 unsigned *budget));

bool qhca_xport_dev_init(struct qhca *e);   /* false: out of memory */
/* Free the transport state of the adapter; all QPs must be gone. */
void qhca_xport_dev_free(struct qhca *e);
/** Adapter reset: discard looped back frames and kept responses. */
void qhca_xport_dev_reset(struct qhca *e);

/**
 * A command moved the QP from @old to qp->state and set its attributes: start,
 * stop or clear its transport.
 */
void qhca_xport_state(struct qhca *e, struct qhca_qp *qp, uint8_t old);
/** Doorbell: qp->sq_head advanced (checked).  In ERR: flush. */
void qhca_xport_sq_doorbell(struct qhca *e, struct qhca_qp *qp);
/** QHCA_DB_RQ: in ERR, flush the receives posted since. */
void qhca_xport_rq_doorbell(struct qhca *e, struct qhca_qp *qp);
/**
 * Handle a frame with the headers @h from the wire or loopback.  True: a RoCEv2
 * packet for one of our GIDs, delivered or dropped; false: leave it to the
 * Ethernet function.
 */
bool qhca_roce_rx(struct qhca *e, const uint8_t *frame, size_t len,
                  const struct qhca_headers *h);
/**
 * The same for the super-frame @s: delivers its packets.  *@done gets how many:
 * fewer than all if a fault rule for packets was activated meanwhile, and the
 * rest must be cut.  False: leave it to the Ethernet function, as frames.
 */
bool qhca_roce_rx_super(struct qhca *e, const struct qhca_super_packet *s,
                        size_t len, const struct qhca_headers *h,
                        uint32_t *done);
/**
 * Handle @s, whose payload its sender has revoked: have it resent, if its QP
 * waits for it.
 */
void qhca_roce_lost(struct qhca *e, const struct qhca_super_packet *s,
                    size_t len, const struct qhca_headers *h);
/**
 * Requests of QP @qpn that are under way were revoked.  The peer will ask for
 * them again; that is no retry, since nothing has failed.
 */
void qhca_xport_took_back(struct qhca *e, uint32_t qpn);
/** Deliver at most @budget looped-back frames; returns how many. */
unsigned qhca_loopback_run(struct qhca *e, unsigned budget);
/* Are there frames in the loopback ring? */
bool qhca_loopback_pending(struct qhca *e);
/** Earliest deadline of any QP, ns; UINT64_MAX: none. */
uint64_t qhca_xport_deadline(struct qhca *e);
/** Handle a bounded batch of QPs whose deadline has passed. */
void qhca_xport_timer(struct qhca *e, uint64_t now);

/* ---- last_acks.c ---- */
/* The wire is ready: send the ACKs of QPs that no longer exist. */
void qhca_last_acks_send(struct qhca *e);

/* ---- odp.c: page faults of on-demand paging ---- */
#define QHCA_ODP_SEND   (1u << QHCA_PAGE_FAULT_SEND)
#define QHCA_ODP_LAND   (1u << QHCA_PAGE_FAULT_LAND)
#define QHCA_ODP_RECV   (1u << QHCA_PAGE_FAULT_RECV)
#define QHCA_ODP_READ   (1u << QHCA_PAGE_FAULT_READ)
#define QHCA_ODP_ALL    0x0fu

/* Is one of @sides (QHCA_ODP_*) waiting for a page? */
static inline bool qhca_odp_waits(const struct qhca_qp *qp, unsigned sides)
{
    return qp->xp->odp_waits & sides;
}
/*
 * An access of @side (QHCA_PAGE_FAULT_*) returned QHCA_SYN_PAGE_FAULT; see
 * e->mem->page_fault.  True: software is notified, and the side waits and is
 * resumed later.  False: an error, as software already failed to provide the
 * page.
 */
bool qhca_odp_stall(struct qhca *e, struct qhca_qp *qp, unsigned side);
/* The same for a packet, which is executed (again) on resume. */
bool qhca_odp_stall_rx(struct qhca *e, struct qhca_qp *qp, unsigned side,
                       const struct qhca_rx *rx);
/* Keep @rx for the resume, replacing any packet kept earlier. */
void qhca_odp_keep(struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx);
/* Drop @rx, since the side waits; on resume the peer is asked to resend. */
void qhca_odp_drop(struct qhca *e, struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx);
/* The same for a packet whose data the peer has revoked. */
void qhca_odp_missed(struct qhca_qp *qp, unsigned side);
/*
 * The peer resent what is waiting.  True if it did so before: its timer has
 * expired more than once, and it should get an RNR NAK, lest it give up long
 * before the page is read from disk.
 */
bool qhca_odp_impatient(struct qhca_qp *qp, unsigned side);
/* The side made progress: the next page fault is that of another request. */
void qhca_odp_progress(struct qhca_qp *qp, unsigned side);
/* The same, for a QP that may never have had a page fault. */
static inline void qhca_odp_passed(struct qhca_qp *qp, unsigned side)
{
    if (qp->xp->odp) {
        qhca_odp_progress(qp, side);
    }
}
/* @sides stop waiting and are not resumed. */
void qhca_odp_cancel(struct qhca_qp *qp, unsigned sides);
/* Cancel all sides and free the page fault state. */
void qhca_odp_free(struct qhca_qp *qp);

/* ---- qp_receive.c ---- */
/*
 * Ensure that a receive WQE is held.  Returns QHCA_SYN_NONE, QHCA_SYN_RNR, or
 * what is wrong with the WQE.
 */
uint8_t qhca_recv_take(struct qhca *e, struct qhca_qp *qp);
/* Append @len bytes to the receive WQE held.  Returns QHCA_SYN_*. */
uint8_t qhca_recv_data(struct qhca *e, struct qhca_qp *qp, const void *buf,
                       uint32_t len);
/* Complete the receive WQE held; the caller has set its fields in @cqe. */
bool qhca_recv_complete(struct qhca *e, struct qhca_qp *qp,
                        struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                        uint8_t syndrome, bool solicited);
/* Complete it with an error. */
void qhca_recv_error(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                     uint8_t syndrome);

/* ---- ud.c ---- */
/* Complete the WQE in e->xd->wqe (if @fetched); errors lead to SQE or ERR. */
void qhca_dgram_done(struct qhca *e, struct qhca_qp *qp, uint32_t len,
                     uint8_t status, uint8_t syndrome, bool fetched);
/* Trace the fetch of the WQE in e->xd->wqe from @addr. */
void qhca_dgram_trace(struct qhca *e, struct qhca_qp *qp, uint64_t addr);

/* ---- requester.c ---- */
/* Raise SQ_DRAINED if it is due and the queue has drained. */
void qhca_req_drained(struct qhca *e, struct qhca_qp *qp);

/* ---- mcast.c ---- */
/* Call @fn for each group. */
void qhca_mcg_each(struct qhca *e,
                   void (*fn)(void *opaque, const uint8_t gid[16],
                              struct qhca_qp *const *qp, unsigned n),
                   void *opaque);
#define QHCA_MCG_SLOTS      1024
/* The slot of the hash, of QHCA_MCG_SLOTS, that group @gid belongs to. */
unsigned qhca_mcg_slot(const uint8_t gid[16]);
/*
 * Free the multicast groups of @slot; false: there are none.  Some group must
 * exist.
 */
bool qhca_mcg_discard(struct qhca *e, uint32_t slot);

/* ---- gid.c ---- */
/* Of IPv6, or of IPv4. */
bool qhca_gid_is_multicast(const uint8_t gid[16]);
/* Validate a used entry: 1 + offset of the field that is wrong, or 0. */
size_t qhca_gid_bad(const struct qhca_gid *in);
/* Rebuild the hash after a change of the table. */
void qhca_gid_rehash(struct qhca *e);
/*
 * Index of the GID table entry with @gid (RoCEv2) on @vlan (QHCA_VLAN_NONE:
 * untagged), or -1.  O(1).
 */
int qhca_gid_find(struct qhca *e, const uint8_t gid[16], uint16_t vlan);

/* Clear the table. */
void qhca_gids_reset(struct qhca *e);

/* ---- qp_modify.c, save_qp_check.c ---- */
/* Could MODIFY_QP have set these attributes? */
bool qhca_qp_attributes_ok(struct qhca *e, const struct qhca_qp *qp);
/*
 * Describe an inconsistency of @qp with its state (static text), or NULL.
 * Ignores the PSNs of WQEs in flight.
 */
const char *qhca_qp_impossible(const struct qhca_qp *qp);

/* ---- commands ---- */
qhca_cmd_fn qhca_cmd_modify_qp;
/* gid.c */
qhca_cmd_fn qhca_cmd_set_gid, qhca_cmd_query_gid;
/* odp.c */
qhca_cmd_fn qhca_cmd_query_page_fault, qhca_cmd_resume_page_fault;
/* mcast.c */
qhca_cmd_fn qhca_cmd_attach_mc, qhca_cmd_detach_mc;

/* ---- saved state ---- */
void qhca_io_qps(struct qhca_io *io);       /* all but RSS QPs */
void qhca_io_rss_qps(struct qhca_io *io);
void qhca_io_xport(struct qhca_io *io, struct qhca_qp *qp);
void qhca_io_mcgs(struct qhca_io *io);

#endif /* QHCA_TRANSPORT_H */

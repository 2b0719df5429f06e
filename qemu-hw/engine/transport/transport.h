/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2: requester, completer, responder, datagrams, timers, page faults,
 * GIDs and multicast groups.  What only this floor's own files need is in
 * roce.h (packets) and rc.h (the machines of a QP).
 */
#ifndef QHCA_TRANSPORT_H
#define QHCA_TRANSPORT_H

#include "queues/queues.h"

/* Send WQEs of one RC QP that may be under way, a power of two. */
#define QHCA_WINDOW_WQES    128
/*
 * The window of one RC QP: request packets that may be unacknowledged, and as
 * many responses to READs that may be awaited (see window.c).  At most 1 MiB
 * with the greatest path MTU; at the beginning a message of 64 KiB with that
 * of an Ethernet frame of 1500 bytes.
 */
#define QHCA_WINDOW_PKTS    256
#define QHCA_WINDOW_START   64
/*
 * A timeout that follows another without progress lasts twice as long, at most
 * 1 << this times: IBA 9.9.2.1 has a timer fire between T and 4 T.
 */
#define QHCA_BACKOFF_MAX    2
/* An acknowledge is asked for at least after so many packets. */
#define QHCA_ACK_INTERVAL   32
/* Window blocks kept for the next QP that needs one (12 KiB each). */
#define QHCA_WINDOWS_KEPT   1024
/* Responses owed by one QP, a power of two and more than twice max reads. */
#define QHCA_RSPQ           32
/* Greatest RoCEv2 frame: VLAN, IPv6, BTH, XRCETH, RETH, ImmDt, 4 KiB, ICRC. */
#define QHCA_FRAME_MAX      4352
#define QHCA_LOOP_SLOTS     64
/* Results of atomics kept for duplicates: as many as can be in progress. */
#define QHCA_ATOMICS_KEPT   16
/* QPs whose timer is handled in one qhca_xport_timer(). */
#define QHCA_TIMER_BATCH    256

/* A send WQE under way: what the requester remembers of it. */
struct qhca_swqe {
    uint64_t wr_id;
    uint64_t raddr;             /* remote address */
    uint64_t laddr;             /* the only SGE, when num is 1 */
    uint64_t arg0, arg1;        /* atomics */
    uint32_t rkey, lkey;
    uint32_t len;               /* message bytes */
    uint32_t first_psn;
    uint32_t npkts;             /* PSNs it takes, 0 for local operations */
    uint32_t imm;               /* as in the WQE */
    uint32_t srqn;              /* XRC */
    uint16_t num;               /* SGEs, or inline bytes */
    uint8_t opcode, flags;
    uint8_t status, syndrome;   /* QHCA_WC_*: fails when it is the oldest */
    uint8_t marks;              /* QHCA_SW_* */
    uint8_t chunk;              /* READ: log2 of the PSNs of one request */
};

#define QHCA_SW_STARTED     1   /* its first packet went out */
#define QHCA_SW_RD          2   /* counted in rd_out */
#define QHCA_SW_DONE        4   /* local operation carried out */
#define QHCA_SW_SPLIT       8   /* READ: asked for by more than one request */

/*
 * The WQEs under way of one QP.  Blocks are kept in a free list of the
 * adapter; an idle QP has none.
 */
struct qhca_window {
    struct qhca_window *next;           /* free list */
    struct qhca_swqe w[QHCA_WINDOW_WQES];
    bool snd_valid, rd_valid;
    uint32_t snd_index, rd_index;       /* WQE counters of the copies below */
    _Alignas(16) uint8_t snd_wqe[1024]; /* being sent */
    _Alignas(16) uint8_t rd_wqe[1024];  /* READ whose responses arrive */
};

/* A response owed. */
struct qhca_resp {
    uint8_t kind;               /* QHCA_RESP_* */
    uint8_t syndrome;           /* ACK: AETH syndrome */
    bool started;               /* READ: a packet of it has been sent */
    bool uncounted;             /* not in rd_pending: of a duplicate, FLUSH */
    uint32_t psn;               /* of the (next) response packet */
    uint32_t left;              /* READ: bytes not sent yet */
    uint32_t rkey;
    uint64_t va;                /* READ: of the next byte; ATOMIC: old value */
    uint32_t ack_psn;           /* with ack: acknowledge this when sent */
    uint32_t ack:1;
    uint32_t rnr:1;             /* READ that waits for a page: RNR NAK first */
    uint32_t srqn:24;           /* XRC, READ: SRQ whose PD counts */
};

#define QHCA_RESP_ACK       0   /* also all NAKs */
#define QHCA_RESP_READ      1   /* also, without data, FLUSH, ATOMIC WRITE */
#define QHCA_RESP_ATOMIC    2

struct qhca_atomic_res {        /* for replay */
    uint32_t psn;
    bool valid;
    uint64_t old;
};

struct qhca_odp;                /* odp.c */

/* The transport's part of a QP. */
struct qhca_xport {
    struct qhca_qp *qp;
    /* requester */
    uint32_t snd_psn;           /* next PSN to send */
    uint32_t una_psn;           /* oldest PSN not acknowledged */
    uint32_t max_psn;           /* one behind the last PSN ever sent */
    uint32_t cur;               /* counter of the WQE being sent */
    uint32_t cur_pkt;           /* packets of it behind the cursor */
    uint32_t rd_psns;           /* response PSNs awaited in [una, snd) */
    uint16_t rd_reqs;           /* by so many requests */
    uint16_t wnd;               /* the window, packets */
    uint16_t wnd_slow;          /* up to here it grows quickly */
    uint16_t wnd_acked;         /* acknowledged since it grew last */
    uint32_t rtt_psn;           /* how long its acknowledge takes is measured */
    uint64_t rtt_start;         /* since then; 0: nothing is measured */
    uint32_t since_ack;         /* packets since AckReq was last set */
    uint32_t back_psn;          /* a NAK already made us go back to it */
    bool back_valid;
    bool ask;                   /* ask for an acknowledge of each packet ... */
    uint32_t ask_psn;           /* ... until this one is acknowledged */
    uint8_t retry_left, rnr_left;
    uint8_t backoff;            /* log2, of the ACK timeout */
    uint8_t rd_out;             /* READs and atomics in flight */
    uint8_t req_state;          /* QHCA_REQ_* */
    uint8_t credits;            /* last AETH credit code */
    uint8_t recv_ahead;         /* of WQEs sq_tail .. cur - 1: take a receive */
    uint16_t recv_limit;        /* so many from sq_tail on may be sent */
    bool crc_twice;             /* FLUSH goes out with Soft-RoCE's ICRC */
    bool sq_flush, rq_flush;    /* work for flush.c */
    uint32_t flush_end;         /* SQ: in RTS flush only what is before it */
    bool drain;                 /* SQ_DRAINED is owed */
    bool wqe_told;              /* a debugger knows the WQE at sq_next */
    struct qhca_sgpos snd_pos, rd_pos;
    struct qhca_window *win;    /* NULL: nothing under way */
    struct qhca_odp *odp;       /* page faults; NULL: there was none */
    uint8_t odp_waits;          /* sides that wait: bit per QHCA_FAULT_* */
    /* timer (timer.c) */
    struct qhca_list timer;
    uint64_t deadline;          /* 0: not running */
    uint8_t timer_class;        /* 0..31 ack timeout, 32..63 RNR code */
    /* responder */
    uint32_t exp_psn, msn;
    uint8_t rsp_op;             /* QHCA_RSPOP_*: message being received */
    bool naked;                 /* a NAK is out for exp_psn */
    bool fatal_nak;             /* the last response is sent even in ERR */
    bool comm_est;              /* event sent */
    uint8_t rd_pending;         /* new READs and atomics in the queue */
    uint8_t atomic_next;        /* next slot of atomics[] */
    uint32_t rspq_head, rspq_tail;
    uint64_t wr_va;             /* WRITE: address of the next byte */
    uint32_t wr_rkey, wr_left, wr_len;
    bool recv_held;             /* recv[] holds a WQE not completed */
    uint32_t recv_index, recv_len, recv_cap, recv_sges;
    struct qhca_sgpos recv_pos;
    uint8_t recv[512];
    struct qhca_resp rspq[QHCA_RSPQ];
    struct qhca_atomic_res atomics[QHCA_ATOMICS_KEPT];
};

#define QHCA_RSPOP_NONE     0
#define QHCA_RSPOP_SEND     1
#define QHCA_RSPOP_WRITE    2
#define QHCA_RSPOP_SKIP     3   /* UC: rest of a broken message */

#define QHCA_TIMER_CLASSES  64
#define QHCA_TIMER_RNR      32

struct qhca_loop_frame {
    uint32_t len;
    uint8_t data[QHCA_FRAME_MAX];
};

/* An acknowledge of a QP that is gone: last_acks.c. */
#define QHCA_LAST_ACKS      64
struct qhca_last_ack {
    uint32_t len;
    uint8_t data[124];          /* VLAN, IPv6, AETH, AtomicAckETH and more */
};

/* The transport's part of the adapter. */
struct qhca_xport_dev {
    struct qhca_window *free_windows;   /* at most QHCA_WINDOWS_KEPT */
    uint32_t free_count;
    /* One list per duration: each in order of deadlines. */
    struct qhca_list timers[QHCA_TIMER_CLASSES];
    uint64_t timer_mask;        /* lists that are not empty */
    struct qhca_loop_frame *loop;       /* QHCA_LOOP_SLOTS */
    uint32_t loop_head, loop_tail;
    bool loop_full;             /* somebody found no slot */
    bool looping;               /* the packet being received is our own */
    bool parting;               /* a busy wire keeps what is sent now */
    uint32_t last_ack_head, last_ack_tail;
    struct qhca_last_ack last_ack[QHCA_LAST_ACKS];
    struct qhca_gid *gids;      /* cfg.max_gid entries */
    int16_t gid_hash[QHCA_HASH_SLOTS];      /* index of the GID, -1: none */
    struct qhca_mcg_group **mcgs;   /* hash of groups; NULL: never used */
    uint32_t mc_groups;         /* groups with a member */
    _Alignas(64) uint8_t frame[QHCA_FRAME_MAX];
    _Alignas(16) uint8_t wqe[1024];     /* UD: being sent */
};

/* ---- QP types of this floor: RC, XRC, UC, UD, GSI ---- */
extern const struct qhca_qp_ops qhca_connected_qp_ops, qhca_ud_qp_ops;
/* The same in parts, for the types of the floor above. */
bool qhca_xport_init(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_qpc *in);
void qhca_xport_free(struct qhca *e, struct qhca_qp *qp);
void qhca_xport_error(struct qhca *e, struct qhca_qp *qp);
void qhca_xport_query(struct qhca *e, struct qhca_qp *qp,
                      struct qhca_qpc *out);
/* Flush and respond; then requests go out by @send, where the state allows. */
bool qhca_xport_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget,
                    bool (*send)(struct qhca *e, struct qhca_qp *qp,
                                 unsigned *budget));

bool qhca_xport_dev_init(struct qhca *e);   /* false: no memory */
void qhca_xport_dev_free(struct qhca *e);
/** Forget all frames under way, timers, loopback (adapter reset). */
void qhca_xport_dev_reset(struct qhca *e);

/**
 * The QP went from @old to qp->state by a command, attributes are in place:
 * start, stop or clear the machines.
 */
void qhca_xport_state(struct qhca *e, struct qhca_qp *qp, uint8_t old);
/** Doorbell: qp->sq_head moved (checked). QP may be in ERR: flush. */
void qhca_xport_sq_doorbell(struct qhca *e, struct qhca_qp *qp);
/** QHCA_DB_RQ: in ERR flush the receives posted since. */
void qhca_xport_rq_doorbell(struct qhca *e, struct qhca_qp *qp);
/**
 * A frame from the wire or from loopback: true if it was a RoCEv2 packet for a
 * GID of ours and has been dealt with (also if dropped); false: it is the
 * Ethernet function's.
 */
bool qhca_roce_rx(struct qhca *e, const uint8_t *frame, size_t len);
/** Deliver frames sent to ourselves, at most @budget; returns how many. */
unsigned qhca_loopback_run(struct qhca *e, unsigned budget);
bool qhca_loopback_pending(struct qhca *e);
/** Earliest deadline of any QP, UINT64_MAX: none. */
uint64_t qhca_xport_deadline(struct qhca *e);
/** Handle QPs whose deadline has passed, a bounded batch. */
void qhca_xport_timer(struct qhca *e, uint64_t now);

/* ---- last_acks.c ---- */
/* The wire is ready: send the acknowledges of QPs that are gone. */
void qhca_last_acks_send(struct qhca *e);

/* ---- odp.c: page faults of on-demand paging ---- */
#define QHCA_ODP_SEND   (1u << QHCA_FAULT_SEND)
#define QHCA_ODP_LAND   (1u << QHCA_FAULT_LAND)
#define QHCA_ODP_RECV   (1u << QHCA_FAULT_RECV)
#define QHCA_ODP_READ   (1u << QHCA_FAULT_READ)
#define QHCA_ODP_ALL    0x0fu

/* Does one of @sides (QHCA_ODP_*) wait for a page? */
static inline bool qhca_odp_waits(const struct qhca_qp *qp, unsigned sides)
{
    return qp->xp->odp_waits & sides;
}
/*
 * An access of @side (QHCA_FAULT_*) gave QHCA_SYN_PAGE_FAULT, see
 * e->mem->fault.  True: the side waits now, software is told; it runs again
 * at the end.  False: it is an error, since software could not provide the
 * page.
 */
bool qhca_odp_stall(struct qhca *e, struct qhca_qp *qp, unsigned side);
/* The same with a packet that is executed (again) at the end. */
bool qhca_odp_stall_rx(struct qhca *e, struct qhca_qp *qp, unsigned side,
                       const struct qhca_rx *rx);
/* Keep @rx for the end instead of what was kept. */
void qhca_odp_keep(struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx);
/* Drop @rx, as the side waits; it is asked for again at the end. */
void qhca_odp_drop(struct qhca *e, struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx);
/*
 * The peer asks again for what waits: true if that was not the first time.
 * Then its timer has run out more than once, and it shall have an RNR NAK:
 * it might give up else, long before a page has come from the disk.
 */
bool qhca_odp_impatient(struct qhca_qp *qp, unsigned side);
/* The side got on: the next page fault is a new one. */
void qhca_odp_clear_failed(struct qhca_qp *qp, unsigned side);
static inline void qhca_odp_passed(struct qhca_qp *qp, unsigned side)
{
    if (qp->xp->odp) {
        qhca_odp_clear_failed(qp, side);
    }
}
/* @sides wait no more and are not resumed. */
void qhca_odp_cancel(struct qhca_qp *qp, unsigned sides);
void qhca_odp_free(struct qhca_qp *qp);

/* ---- recv.c: receive WQEs ---- */
/*
 * Make sure a receive WQE is held.  QHCA_SYN_NONE, QHCA_SYN_RNR, or what is
 * wrong with it.
 */
uint8_t qhca_recv_take(struct qhca *e, struct qhca_qp *qp);
/* Scatter @len bytes behind what was received so far. */
uint8_t qhca_recv_data(struct qhca *e, struct qhca_qp *qp, const void *buf,
                       uint32_t len);
/* Complete the held receive WQE; @cqe has the caller's own fields. */
bool qhca_recv_complete(struct qhca *e, struct qhca_qp *qp,
                        struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                        uint8_t syndrome, bool solicited);
/* The same with an error. */
void qhca_recv_error(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                     uint8_t syndrome);

/* ---- ud.c ---- */
/* The WQE in e->xd->wqe (if it was @fetched) is done: CQE, and SQE or ERR. */
void qhca_dgram_done(struct qhca *e, struct qhca_qp *qp, uint32_t len,
                     uint8_t status, uint8_t syndrome, bool fetched);
/* Trace that the WQE in e->xd->wqe was taken from @addr. */
void qhca_dgram_trace(struct qhca *e, struct qhca_qp *qp, uint64_t addr);

/* ---- requester.c ---- */
/* SQ_DRAINED if it is owed and due. */
void qhca_req_drained(struct qhca *e, struct qhca_qp *qp);

/* ---- mcast.c ---- */
/* Call @fn for each group. */
void qhca_mcg_each(struct qhca *e,
                   void (*fn)(void *opaque, const uint8_t gid[16],
                              struct qhca_qp *const *qp, unsigned n),
                   void *opaque);
void qhca_mcgs_free(struct qhca *e);

/* ---- gid.c ---- */
/* Where @in, an entry in use, is wrong: offset of the field + 1, or 0. */
size_t qhca_gid_bad(const struct qhca_gid *in);
/* The table changed: make the hash anew. */
void qhca_gid_rehash(struct qhca *e);
/*
 * Index of the GID table entry with @gid (RoCE v2) on @vlan (QHCA_VLAN_NONE:
 * untagged), or -1. O(1).
 */
int qhca_gid_find(struct qhca *e, const uint8_t gid[16], uint16_t vlan);

/* Does the address filter let a frame to @dmac pass? */
bool qhca_mac_accept(struct qhca *e, const uint8_t *dmac);
/* Forget all entries. */
void qhca_gids_reset(struct qhca *e);

/* ---- qp_modify.c, qp_valid.c ---- */
/* Could MODIFY_QP have left it with its attributes? */
bool qhca_qp_attributes_ok(struct qhca *e, const struct qhca_qp *qp);
/*
 * What is impossible in the state of @qp, or NULL.  Not about the PSNs of what
 * is under way.
 */
const char *qhca_qp_impossible(const struct qhca_qp *qp);

/* ---- commands ---- */
qhca_cmd_fn qhca_cmd_modify_qp;
/* gid.c */
qhca_cmd_fn qhca_cmd_set_gid, qhca_cmd_query_gid;
/* odp.c */
qhca_cmd_fn qhca_cmd_query_fault, qhca_cmd_resume_fault;
/* mcast.c */
qhca_cmd_fn qhca_cmd_attach_mc, qhca_cmd_detach_mc;

/* ---- saved state ---- */
/* QPs of type RSS, or the others. */
void qhca_io_qps(struct qhca_io *io, bool rss);
void qhca_io_xport(struct qhca_io *io, struct qhca_qp *qp);
void qhca_io_mcgs(struct qhca_io *io);

#endif /* QHCA_TRANSPORT_H */

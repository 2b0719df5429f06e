/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues: event queues, completion queues, WQE rings, shared receive queues,
 * and the QP as an object.
 */
#ifndef QHCA_QUEUES_H
#define QHCA_QUEUES_H

#include "memory/memory.h"
#include "queues/tags.h"

struct qhca_event_src {         /* an object that can have pending events */
    struct qhca_list link;      /* in eq->pending */
    uint32_t pending;           /* bit per type, see eq.c */
    uint32_t obj;
    uint8_t syndrome;           /* of the pending error event */
};

struct qhca_srq;
struct qhca_qp;
struct qhca_tm;
struct qhca_tm_qp;
struct qhca_rss;
struct qhca_xport;

struct qhca_eq {
    uint32_t eqn;
    struct qhca_buf_table buf;
    uint64_t dbrec;             /* with QHCA_EQ_F_RECORD; else 0 */
    uint8_t shift, flags;
    uint16_t vector;
    uint32_t prod, cons;
    bool armed;                 /* never with QHCA_EQ_F_RECORD */
    bool notify;                /* QHCA_DBREC_NOTIFY is set in the record */
    bool failed;                /* its memory: the reason of the fatal state */
    uint32_t stalled;           /* by this fault: treat as full; 0: no */
    uint32_t refs;              /* number of CQs on it */
    struct qhca_list pending;   /* struct qhca_event_src waiting for room */
    struct qhca_list work;      /* in e->q->eq_work: pending, and has room */
};

struct qhca_cq {
    uint32_t cqn;
    struct qhca_event_src ev;   /* errors, on the asynchronous EQ */
    struct qhca_event_src comp; /* completion events, on eq */
    struct qhca_eq *eq;
    uint32_t uar;
    struct qhca_buf_table buf;
    uint64_t dbrec;
    uint8_t shift;
    uint8_t state, arm;
    uint16_t mod_count, mod_usec;
    uint32_t prod, cons;
    uint32_t last_solicited;    /* prod after the last solicited or error CQE */
    uint32_t since_event;       /* CQEs not covered by an event; saturates */
    uint32_t refs;              /* number of queues on it */
    /* moderation */
    uint32_t unreported;
    uint64_t mod_deadline;
    uint32_t mod_pos;           /* in mod_heap; QHCA_MOD_NONE: not in it */
};

#define QHCA_MOD_NONE       UINT32_MAX

/* A MODIFY_CQ in progress, copying CQEs (cq_resize.c). */
struct qhca_cq_resize {
    struct qhca_buf_table from, to;
    uint8_t shift;              /* of the new ring */
    uint32_t cons;              /* consumer index when the command began */
    uint32_t pos;               /* counter of the next CQE to copy */
};

struct qhca_xrcd {              /* XRC domain */
    uint32_t xrcd;
    uint32_t refs;              /* number of SRQs and QPs in it */
    struct qhca_list targets;   /* its XRC_TGT QPs */
    uint32_t sweep;             /* incremented when one begins, see xrc.c */
};

struct qhca_srq {
    uint32_t srqn;
    struct qhca_cq *cq;         /* for its receives; NULL: the QP's CQ */
    struct qhca_tm *tm;         /* tag matching (tags.h), or NULL */
    struct qhca_event_src ev;
    uint32_t pd, uar;
    struct qhca_xrcd *xrcd;     /* XRC SRQs; else NULL */
    struct qhca_buf_table buf, idx;
    uint64_t dbrec;
    uint8_t shift, stride, flags, state;
    bool going;                 /* XRC: being destroyed */
    uint32_t limit;
    uint32_t head, tail;
    uint32_t refs;
};

/* A ring of WQEs, and its counters. */
struct qhca_wqe_ring {
    struct qhca_buf_table buf;
    uint64_t dbrec;             /* of receive queues */
    uint8_t shift, stride;      /* log2: WQEs, bytes of one; stride 0: none */
    uint32_t head, tail;
};

/* ---- QP ---- */

/* QPs and WQs share their numbers; each has this as its first member. */
struct qhca_qpn_owner {
    bool is_wq;
};

/* In states of older releases: a WQ, converted to struct qhca_wq on loading. */
#define QHCA_QPT_SAVED_WQ   0x80

/*
 * Operations of a QP type, supplied by the layers above.  This layer knows
 * nothing about packets.
 */
struct qhca_qp_ops {
    /* CREATE_QP: validate @in; returns QHCA_ST_*.  NULL: default check. */
    uint8_t (*check)(struct qhca *e, struct qhca_cmd *c,
                     const struct qhca_qpc *in);
    /*
     * Loading: could a command have made this QP?  The state that save() loads
     * is not there yet.  NULL: use the check of CREATE_QP.
     */
    bool (*valid)(struct qhca *e, const struct qhca_qp *qp);
    /* Set up its state; @in: NULL when loading.  False: out of memory. */
    bool (*init)(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_qpc *in);
    /*
     * DESTROY_QP, each part of it: abort work in flight, with CQEs, and go to
     * RESET.  NULL for types that bind no windows.
     */
    void (*give_up)(struct qhca *e, struct qhca_qp *qp);
    /* The QP is being destroyed: release everything. */
    void (*free)(struct qhca *e, struct qhca_qp *qp);
    /* qp->state became ERR or SQE: stop timers, start flushing. */
    void (*error)(struct qhca *e, struct qhca_qp *qp);
    /*
     * Do work of one QP: flush, then owed ACKs and READ responses, then
     * requests.  Takes 1 off *@budget for each unit of work (packet sent, WQE
     * flushed or executed) and stops at 0.  Returns true if more can be done
     * now (stay on the ready list); true without using budget while
     * e->tx_blocked or e->tx_wait is set means that it only waits for the wire,
     * or on that list.
     */
    bool (*run)(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
    /*
     * MODIFY_QP for a type that has no states to go through; returns QHCA_ST_*.
     * NULL: by the tables of states.
     */
    uint8_t (*modify)(struct qhca *e, struct qhca_cmd *c,
                      struct qhca_qp *qp);
    /* XRC targets: @srq is about to be destroyed. */
    void (*forget_srq)(struct qhca_qp *qp, const struct qhca_srq *srq);
    /* Fill in the fields of the context that this type maintains. */
    void (*query)(struct qhca *e, struct qhca_qp *qp, struct qhca_qpc *out);
    /* Save or load the state of this type. */
    void (*save)(struct qhca_io *io, struct qhca_qp *qp);
};

struct qhca_qp {
    struct qhca_qpn_owner owner;
    uint32_t qpn;
    const struct qhca_qp_ops *ops;
    struct qhca_event_src ev;
    uint8_t type, state, flags;
    uint32_t pd, uar;
    /*
     * NULL: none.  For an XRC target, pd and srq are those of the message being
     * received, or received last; see xrc.c.
     */
    struct qhca_cq *scq, *rcq;
    struct qhca_srq *srq;
    struct qhca_tm_qp *tm;      /* on a TM SRQ (tag_qp.h), or NULL */
    struct qhca_wqe_ring rq;
    uint8_t sq_shift, sq_stride;
    struct qhca_buf_table sq;
    uint64_t sq_dbrec, cookie;
    /* attributes in CPU order, except av, which is as in memory */
    struct qhca_av av;
    uint32_t dest_qpn, qkey, sq_psn, rq_psn, access;
    uint16_t pkey_index;
    uint8_t path_mtu, timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic, en_sqd_event;
    uint8_t syndrome;
    /* ring counters */
    uint32_t sq_head, sq_next, sq_tail;
    bool sq_awake;              /* software need not ring: sq_dbrec.c */
    /* per-QP statistics, as in struct qhca_qpc */
    uint64_t tx_packets, rx_packets, retransmits, timeouts;
    uint64_t rnr_naks_rx, seq_naks_rx, duplicates;
    uint32_t users;             /* groups, flows, RQTs, the port using it */
    struct qhca_rss *rss;       /* RSS: table and hash; else NULL */
    /* scheduling */
    struct qhca_list ready;     /* in e->q->ready while it has work */
    struct qhca_xrcd *xrcd;     /* XRC target */
    struct qhca_list xrc_link;  /* in xrcd->targets */
    uint32_t xrc_sweep;         /* xrcd->sweep when it was last swept */
    struct qhca_list windows;   /* type 2 windows bound by it */
    struct qhca_xport *xp;      /* the transport's state */
};

/* PD of the L_Keys in send and READ WQEs of @qp. */
static inline uint32_t qhca_sq_pd(const struct qhca_qp *qp)
{
    return qp->tm ? qp->srq->pd : qp->pd;
}

/* CQ for the receives of @qp. */
static inline struct qhca_cq *qhca_recv_cq(const struct qhca_qp *qp)
{
    return qp->srq && qp->srq->cq ? qp->srq->cq : qp->rcq;
}

/* The transport's state follows the QP in the same allocation. */
#define QHCA_XPORT_OFF ((sizeof(struct qhca_qp) + 15) & ~(size_t)15)

/* The adapter's queue state. */
struct qhca_queues {
    struct qhca_idr eqs, cqs;
    struct qhca_idr qps;        /* struct qhca_qpn_owner */
    struct qhca_idr srqs;
    struct qhca_idr xrcds;
    const struct qhca_qp_ops *qp_ops[QHCA_QPT_RSS + 1];     /* by type */
    const struct qhca_qp_ops *saved_wq_ops;
    size_t xport_size;          /* sizeof(struct qhca_xport) */
    struct qhca_event_src port_ev;
    uint32_t tm_tags;           /* total of all TM SRQs */
    struct qhca_cq_resize resize;       /* while a MODIFY_CQ is in progress */
    struct qhca_list ready;     /* QPs with work to do */
    struct qhca_list blocked;   /* QPs that only wait for the wire */
    struct qhca_list tm_work;   /* TM SRQs with operations to execute */
    struct qhca_list eq_work;   /* EQs with pending events and room */
    struct qhca_cq **mod_heap;  /* by mod_deadline, earliest first */
    uint32_t mod_used;
};

/*
 * Loading: could a command have made this object?  Buffers are checked when
 * their tables are set up, indices by the functions that load them.
 */
bool qhca_eq_valid(struct qhca *e, const struct qhca_eq *eq);
bool qhca_cq_valid(struct qhca *e, const struct qhca_cq *cq);
bool qhca_srq_valid(struct qhca *e, const struct qhca_srq *srq);

/* ---- interrupt.c ---- */
/* Raise @vector: count, trace and, unless a fault suppresses it, send it. */
void qhca_msix(struct qhca *e, uint32_t vector);

/* ---- cq.c, eq.c ---- */
/*
 * Append a CQE.  @cqe is complete except for timestamp and phase.  @solicited:
 * meets the condition of a solicited-only arm (error CQEs always do).  A full
 * CQ goes to QHCA_CQ_ERR with an event; each of its QPs goes to ERR with
 * QHCA_EV_QP_FATAL at its next completion.  Returns false if the CQE could not
 * be delivered.
 */
bool qhca_cq_push(struct qhca *e, struct qhca_cq *cq, struct qhca_cqe *cqe,
                  bool solicited);
/* Does the CQE belong to an Ethernet queue? */
static inline bool qhca_cqe_is_eth(const struct qhca_cqe *cqe)
{
    return cqe->opcode == QHCA_CQE_OP_ETH_SEND ||
           cqe->opcode == QHCA_CQE_OP_ETH_RECV;
}
void qhca_cq_timer(struct qhca *e, uint64_t now); /* moderation */
uint64_t qhca_cq_deadline(struct qhca *e);        /* ns; UINT64_MAX: none */
/* Heap of moderation deadlines (cq_moderation.c), in ns; O(log n). */
void qhca_mod_add(struct qhca *e, struct qhca_cq *cq, uint64_t deadline);
void qhca_mod_del(struct qhca *e, struct qhca_cq *cq);
/* QHCA_DB_CQ_ARM; counts invalid indices. */
void qhca_cq_arm(struct qhca *e, struct qhca_cq *cq, uint32_t cons,
                 bool solicited);
/*
 * QHCA_DB_EQ: set the consumer index and, with @arm, arm the EQ.  If the EQ has
 * a record, its index counts, not @cons, and @arm raises the vector if there
 * are entries.
 */
void qhca_eq_doorbell(struct qhca *e, struct qhca_eq *eq, uint32_t cons,
                      bool arm);
/* Write a batch of the events that were waiting for room. */
void qhca_eq_run(struct qhca *e);
/* Release the EQs that the injected fault @rule has stalled. */
void qhca_eqs_go_on(struct qhca *e, uint32_t rule);
/*
 * Release all after loading: the fault is not saved.  Returns true if there is
 * work for qhca_eq_run().
 */
bool qhca_eqs_loaded(struct qhca *e);
/*
 * The pending bits in use: by completion events (@comp), or by all other
 * events.
 */
uint32_t qhca_event_bits(bool comp);
/* Initialize @src for object @obj; discard its pending events. */
void qhca_event_init(struct qhca_event_src *src, uint32_t obj);
void qhca_event_forget(struct qhca_event_src *src);
/* Report event @type of @src on @eq; if @eq is full, it stays pending. */
void qhca_event(struct qhca *e, struct qhca_eq *eq,
                struct qhca_event_src *src, uint8_t type, uint8_t syndrome);
/* Report an event of @src on the async EQ; never lost, one per type. */
void qhca_async_event(struct qhca *e, struct qhca_event_src *src,
                      uint8_t type, uint8_t syndrome);
/*
 * The same for what has changed by loading, during which nothing is written:
 * before qhca_eqs_loaded().
 */
void qhca_async_event_loaded(struct qhca *e, struct qhca_event_src *src,
                             uint8_t type);
/* Stop everything until reset and report @reason (QHCA_FATAL_*). */
void qhca_fatal(struct qhca *e, uint8_t reason);
/* MODIFY_CQ: resize (cq_resize.c).  QHCA_ST_*, or QHCA_ST_AGAIN: unfinished. */
uint8_t qhca_cq_resize(struct qhca *e, struct qhca_cmd *c,
                       struct qhca_cq *cq);
/* Destroy @cq, without asking for references. */
void qhca_cq_free(struct qhca *e, struct qhca_cq *cq);

/* ---- schedule.c ---- */
/*
 * Put @qp on the ready list, if it is not there; it runs before the current
 * entry point returns, or after a kick().
 */
void qhca_qp_schedule(struct qhca *e, struct qhca_qp *qp);
/* QPs that wait for the wire try again; if it is still busy, they wait anew. */
void qhca_qps_unblock(struct qhca *e);

/* ---- srq.c ---- */
/* Put the SRQ in the error state; returns @syn. */
uint8_t qhca_srq_fail(struct qhca *e, struct qhca_srq *srq, uint8_t syn);
/* Raise QHCA_EV_SRQ_LIMIT if fewer WQEs are left than the armed limit. */
void qhca_srq_check_limit(struct qhca *e, struct qhca_srq *srq);
/* qhca_rq_take() of the SRQ of @qp. */
uint8_t qhca_srq_take(struct qhca *e, struct qhca_qp *qp, void *wqe,
                      uint32_t *len, uint32_t *index);

/* ---- xrc.c ---- */
/* Target @qp is in the domain qp->xrcd from now on. */
void qhca_xrc_join(struct qhca_qp *qp);
/* SRQ @srqn if XRC target @qp may receive from it, else NULL. */
struct qhca_srq *qhca_xrc_srq(struct qhca *e, const struct qhca_qp *qp,
                              uint32_t srqn);
/* A message for @srq begins: target @qp uses its PD and SRQ until unbound. */
void qhca_xrc_bind(struct qhca_qp *qp, struct qhca_srq *srq);
void qhca_xrc_unbind(struct qhca_qp *qp);
/*
 * XRC SRQ @srq is to be destroyed: detach it from all targets.  False: the
 * command's budget is used up, and not all are done.
 */
bool qhca_xrc_srq_going(struct qhca *e, struct qhca_srq *srq);
/* PD for a request to @srqn on @qp (XRC target or other); 0: none. */
static inline uint32_t qhca_qp_pd(struct qhca *e, const struct qhca_qp *qp,
                                  uint32_t srqn)
{
    const struct qhca_srq *srq;

    if (qp->type != QHCA_QPT_XRC_TGT) {
        return qp->pd;
    }
    srq = qhca_xrc_srq(e, qp, srqn);
    return srq ? srq->pd : 0;
}

/* ---- wqe_fetch.c ---- */
/*
 * Software has produced WQEs up to @index.  Returns true if some are new; an
 * index beyond the ring moves the QP to ERR.
 */
bool qhca_sq_produced(struct qhca *e, struct qhca_qp *qp, uint32_t index);
/*
 * Fetch send WQE @index (whole stride, 1 << sq_stride bytes) into @wqe.  *@addr
 * gets its DMA address for the trace.  Returns QHCA_SYN_*.
 */
uint8_t qhca_sq_fetch(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                      void *wqe, uint64_t *addr);
/*
 * Read @len bytes at @off of ring @m of queue @num: a WQE, or the number of
 * one.  *@addr gets their DMA address.  Returns QHCA_SYN_*.
 */
uint8_t qhca_wqe_read(struct qhca *e, struct qhca_buf_table *m, uint64_t off,
                      uint32_t num, void *buf, size_t len, uint64_t *addr);
/*
 * Update *@head from the doorbell record at @dbrec.  The ring of queue @num
 * holds @tail .. *@head; an index beyond @depth is a guest error.  Returns
 * QHCA_SYN_*.
 */
uint8_t qhca_ring_head(struct qhca *e, uint64_t dbrec, uint32_t depth,
                       uint32_t tail, uint32_t num, uint32_t *head);
/*
 * Take the next receive WQE of the ring of queue @num: see qhca_rq_take().
 */
uint8_t qhca_ring_take(struct qhca *e, struct qhca_wqe_ring *r, uint32_t num,
                       void *wqe, uint32_t *len, uint32_t *index);
/* Back to the start of the ring. */
static inline void qhca_ring_clear(struct qhca_wqe_ring *r)
{
    qhca_buf_table_forget(&r->buf);
    r->head = r->tail = 0;
}
/*
 * Take the next receive WQE of the QP's RQ or SRQ into @wqe (whole stride, up
 * to QHCA_MAX_RQ_WQE bytes; *@len gets it).  *@index gets the counter (RQ) or
 * the WQE number (SRQ).  Returns QHCA_SYN_NONE, QHCA_SYN_RNR if there is none,
 * or another syndrome (then the QP must go to ERR).  Raises the SRQ limit
 * event.
 */
uint8_t qhca_rq_take(struct qhca *e, struct qhca_qp *qp, void *wqe,
                     uint32_t *len, uint32_t *index);
/* Trace that a receive WQE, or a tag entry in that form, was taken. */
void qhca_recv_trace(struct qhca *e, uint32_t qpn, uint32_t index,
                     uint64_t addr, const void *wqe);

/* ---- wqe_check.c: send WQEs of all QP types ---- */
/* The fields of a send WQE that are checked. */
struct qhca_wqe_head {
    uint8_t opcode, flags;
    uint16_t num;               /* SGEs, or inline bytes */
    uint32_t len;               /* bytes of data; UINT32_MAX: or more */
};
/* An atomic with masks in its header? */
static inline bool qhca_wqe_is_masked(uint8_t opcode)
{
    return opcode == QHCA_WQE_MASKED_COMP_SWAP ||
           opcode == QHCA_WQE_MASKED_FETCH_ADD;
}
/* Header size of a send WQE of @qp, in bytes. */
uint32_t qhca_wqe_header(const struct qhca_qp *qp, uint8_t opcode);
/* Unpack @wqe; if it has no room for its SGEs or inline bytes, len is 0. */
void qhca_wqe_unpack(const struct qhca_qp *qp, const uint8_t *wqe,
                     struct qhca_wqe_head *h);
/*
 * May @qp send a WQE with @h?  Returns QHCA_SYN_*, and in *@status the
 * QHCA_WC_* to fail with.
 */
uint8_t qhca_wqe_check(const struct qhca_qp *qp, const struct qhca_wqe_head *h,
                       uint8_t *status);

/* ---- sgl.c: moving data between packets and scatter-gather lists ---- */
/* The position of byte "off" of the message in a scatter-gather list. */
struct qhca_sgpos {
    uint32_t off;
    uint32_t sge;
    uint32_t sge_off;
};
/* On whose behalf memory is accessed. */
struct qhca_sgl_user {
    uint32_t num;               /* QPN or WQN */
    uint32_t pd;                /* of the keys */
    bool privileged;            /* see QHCA_QP_F_PRIVILEGED */
};
/* @qp, by keys of @pd: its own, or that of its SRQ. */
static inline struct qhca_sgl_user qhca_sgl_qp(const struct qhca_qp *qp,
                                               uint32_t pd)
{
    return (struct qhca_sgl_user){
        .num = qp->qpn, .pd = pd,
        .privileged = qp->flags & QHCA_QP_F_PRIVILEGED,
    };
}
/* @qp, by the keys in its receive WQEs: an SRQ has a PD of its own. */
static inline struct qhca_sgl_user qhca_sgl_recv(const struct qhca_qp *qp)
{
    return qhca_sgl_qp(qp, qp->srq ? qp->srq->pd : qp->pd);
}
/* Sum of the lengths of @num SGEs at @sges. */
uint64_t qhca_sgl_len(const uint8_t *sges, uint32_t num);
/*
 * Copy @len bytes at byte @off of the @num SGEs at @sges to @buf, or with
 * @write from it.  @pos caches the position for the next call.  The caller has
 * checked that off + len is in range.  Returns QHCA_SYN_*.
 */
uint8_t qhca_sgl_copy(struct qhca *e, struct qhca_sgl_user user,
                      const uint8_t *sges, uint32_t num,
                      struct qhca_sgpos *pos, uint32_t off, void *buf,
                      uint32_t len, bool write);
/* The same, but describe the bytes for a memory link: see qhca_mr_share(). */
uint8_t qhca_sgl_share(struct qhca *e, struct qhca_sgl_user user,
                       const uint8_t *sges, uint32_t num,
                       struct qhca_sgpos *pos, uint32_t off, uint32_t len);

/* ---- recv_wqe.c ---- */
/* A receive WQE, from the first packet of a message to the completion. */
struct qhca_recv {
    bool held;                  /* @wqe is not completed */
    uint32_t index;             /* as qhca_rq_take() gives it */
    uint32_t len, cap;          /* bytes received, and that fit */
    uint32_t sges;
    struct qhca_sgpos pos;
    uint8_t wqe[QHCA_MAX_RQ_WQE];
};
/* A message begins: nothing of it is stored. */
static inline void qhca_recv_begin(struct qhca_recv *r)
{
    r->len = 0;
    memset(&r->pos, 0, sizeof(r->pos));
}
/*
 * The @len bytes of r->wqe were fetched: hold them.  Returns QHCA_SYN_NONE, or
 * QHCA_SYN_WQE_SGE if the WQE is invalid; it is held all the same.
 */
uint8_t qhca_recv_hold(struct qhca_recv *r, uint32_t len);
/* Append @len bytes to the WQE held.  Returns QHCA_SYN_*. */
uint8_t qhca_recv_store(struct qhca *e, struct qhca_recv *r,
                        struct qhca_sgl_user user, const void *buf,
                        uint32_t len);
/* Fill in the fields of @cqe that all receives of queue @num share. */
void qhca_recv_cqe(const struct qhca_recv *r, uint32_t num,
                   struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                   uint8_t syndrome);

/* ---- qp.c ---- */
/* RC and XRC: messages are acknowledged. */
static inline bool qhca_qp_reliable(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_RC || qp->type == QHCA_QPT_XRC_INI ||
           qp->type == QHCA_QPT_XRC_TGT;
}
/* RC, XRC and UC: one peer. */
static inline bool qhca_qp_connected(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_UC || qhca_qp_reliable(qp);
}
/* The QP with number @qpn, or NULL. */
static inline struct qhca_qp *qhca_qp_get(struct qhca *e, uint32_t qpn)
{
    struct qhca_qpn_owner *o = qhca_idr_get(&e->q->qps, qpn);

    return o && !o->is_wq ? qhca_container(o, struct qhca_qp, owner) : NULL;
}
/*
 * Move a QP to ERR (or SQE), with trace and event; there is no other way.
 * @event is a QHCA_EV_* or 0.  The type's error() then flushes.
 */
void qhca_qp_error(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome,
                   uint8_t event);
/* Trace the change from @old to qp->state. */
void qhca_qp_trace_state(struct qhca *e, struct qhca_qp *qp, uint8_t old);
/* Allocate a zeroed QP of @type, not yet linked anywhere; NULL: no memory. */
struct qhca_qp *qhca_qp_alloc(struct qhca *e, uint8_t type);
/* Set the QP's type and ops; qp->ops is NULL if the type is unknown. */
void qhca_qp_set_type(struct qhca *e, struct qhca_qp *qp, uint8_t type);
/* Destroy the QP, without asking for references. */
void qhca_qp_free(struct qhca *e, struct qhca_qp *qp);
/* Validate a context for CREATE_QP; returns QHCA_ST_*. */
uint8_t qhca_qp_check_create(struct qhca *e, struct qhca_cmd *c,
                             const struct qhca_qpc *in);
/* Fill in the context fields that CREATE_QP and MODIFY_QP set. */
void qhca_qp_describe(const struct qhca_qp *qp, struct qhca_qpc *out);
/* Reset the QP to what CREATE_QP set; it goes to RESET. */
void qhca_qp_clear(struct qhca_qp *qp);
/* Move the QP from RTS or SQD to SQE because of @syndrome. */
void qhca_qp_sqe(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome);
/* Software need not ring for receives from now on; false: DMA failed. */
bool qhca_qp_clear_notify(struct qhca *e, const struct qhca_qp *qp);

/* ---- sq_dbrec.c ---- */
/*
 * qhca_sq_produced() with the index in the SQ's doorbell record; if that cannot
 * be read, the QP goes to ERR.
 */
bool qhca_sq_poll_dbrec(struct qhca *e, struct qhca_qp *qp);
/*
 * Make software ring for each WQE it posts from now on (@notify), or no longer,
 * since the device will read the record without a doorbell.  With @notify, the
 * caller must read the record once more.  False: the record cannot be written.
 */
bool qhca_sq_notify(struct qhca *e, struct qhca_qp *qp, bool notify);

/* ---- commands ---- */
/* xrc.c */
qhca_cmd_fn qhca_cmd_alloc_xrcd, qhca_cmd_free_xrcd;
/* eq.c */
qhca_cmd_fn qhca_cmd_create_eq, qhca_cmd_destroy_eq, qhca_cmd_query_eq;
/* cq.c */
qhca_cmd_fn qhca_cmd_create_cq, qhca_cmd_destroy_cq;
qhca_cmd_fn qhca_cmd_modify_cq;
qhca_cmd_fn qhca_cmd_query_cq;
/* srq.c */
qhca_cmd_fn qhca_cmd_create_srq, qhca_cmd_modify_srq, qhca_cmd_destroy_srq;
qhca_cmd_fn qhca_cmd_query_srq;
/* qp.c */
qhca_cmd_fn qhca_cmd_create_qp, qhca_cmd_destroy_qp;
qhca_cmd_fn qhca_cmd_query_qp;

/* Destroy object @num, which nothing refers to; false: there is none. */
bool qhca_qp_discard(struct qhca *e, uint32_t num);
bool qhca_srq_discard(struct qhca *e, uint32_t num);
bool qhca_xrcd_discard(struct qhca *e, uint32_t num);
bool qhca_cq_discard(struct qhca *e, uint32_t num);
bool qhca_eq_discard(struct qhca *e, uint32_t num);

/* ---- save or load all objects of a kind: save_queues.c, save_tags.c ---- */
/* A ring of WQEs; @is: there is one. */
void qhca_io_ring(struct qhca_io *io, struct qhca_wqe_ring *r, bool is);
/* A receive WQE: whether it is held, and its bytes; the rest is recomputed. */
void qhca_io_recv(struct qhca_io *io, struct qhca_recv *r);
/*
 * An optional reference to a QP: saves that there is one, and its number.
 * Returns the QP, or NULL if there is none or loading failed with @why.
 */
struct qhca_qp *qhca_io_qp(struct qhca_io *io, const struct qhca_qp *qp,
                           const char *why);
/* The same if there always is one: see qhca_io_must_ref(). */
struct qhca_qp *qhca_io_must_qp(struct qhca_io *io, const struct qhca_qp *qp,
                                const char *why);
void qhca_io_eqs(struct qhca_io *io);
void qhca_io_cqs(struct qhca_io *io);
void qhca_io_cq_resize(struct qhca_io *io, const struct qhca_cq *cq);
void qhca_io_srqs(struct qhca_io *io);
void qhca_io_mws(struct qhca_io *io);
void qhca_io_tm(struct qhca_io *io, struct qhca_srq *srq);

#endif /* QHCA_QUEUES_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues: event queues, completion queues, rings of work, shared receive
 * queues, and the QP as an object.
 */
#ifndef QHCA_QUEUES_H
#define QHCA_QUEUES_H

#include "memory/memory.h"

struct qhca_event_src {         /* an object that can have events pending */
    struct qhca_list link;      /* in eq->pending */
    uint32_t pending;           /* bit per kind, see eq.c */
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
    struct qhca_table buf;
    uint8_t shift;
    uint16_t vector;
    uint32_t prod, cons;
    bool armed;
    bool stalled;               /* a fault on demand: as if it were full */
    uint32_t refs;              /* CQs that name it */
    struct qhca_list pending;   /* of struct qhca_event_src: no room yet */
    struct qhca_list work;      /* in e->q->eq_work: pending, and room again */
};

struct qhca_cq {
    uint32_t cqn;
    struct qhca_event_src ev;   /* errors, on the asynchronous EQ */
    struct qhca_event_src comp; /* completion events, on eq */
    struct qhca_eq *eq;
    uint32_t uar;
    struct qhca_table buf;
    uint64_t dbrec;
    uint8_t shift;
    uint8_t state, arm;
    uint16_t mod_count, mod_usec;
    uint32_t prod, cons;
    uint32_t last_solicited;    /* prod behind the last such or error CQE */
    uint32_t since_event;       /* CQEs that no event told of; saturates */
    uint32_t refs;              /* queues that name it */
    /* moderation */
    uint32_t unreported;
    uint64_t mod_deadline;
    uint32_t mod_pos;           /* in mod_heap; QHCA_MOD_NONE: not there */
};

#define QHCA_MOD_NONE       UINT32_MAX

/* MODIFY_CQ at work, which copies CQEs (cq_resize.c). */
struct qhca_cq_resize {
    struct qhca_table from, to;
    uint8_t shift;              /* of the new ring */
    uint32_t cons;              /* as software said when it asked */
    uint32_t pos;               /* counter of the next CQE to be copied */
};

struct qhca_xrcd {              /* XRC domain */
    uint32_t xrcd;
    uint32_t refs;              /* SRQs and QPs that name it */
    struct qhca_list targets;   /* its XRC_TGT QPs */
};

struct qhca_srq {
    uint32_t srqn;
    struct qhca_cq *cq;         /* of its receives; NULL: the QP's */
    struct qhca_tm *tm;         /* tag matching (tm.h), or NULL */
    struct qhca_event_src ev;
    uint32_t pd, uar;
    struct qhca_xrcd *xrcd;     /* XRC SRQs; else NULL */
    struct qhca_table buf, idx;
    uint64_t dbrec;
    uint8_t shift, stride, flags, state;
    uint32_t limit;
    uint32_t head, tail;
    uint32_t refs;
};

/* ---- QP ---- */

/* A WQ is a struct qhca_qp of this type, with a receive queue alone. */
#define QHCA_QPT_WQ         0x80

/*
 * What the floors above make of a QP of one type.  The QP as an object knows
 * nothing of packets.
 */
struct qhca_qp_ops {
    /* CREATE_QP: is what it asks for possible?  NULL: the usual check. */
    uint8_t (*check)(struct qhca *e, struct qhca_cmd *c,
                     const struct qhca_qpc *in);
    /* Its machines begin; @in: NULL when it is loaded.  False: no memory. */
    bool (*init)(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_qpc *in);
    /* DESTROY_QP: give up what is under way, and say so.  May be NULL. */
    void (*give_up)(struct qhca *e, struct qhca_qp *qp);
    /* It vanishes: give back everything. */
    void (*free)(struct qhca *e, struct qhca_qp *qp);
    /* qp->state became ERR or SQE: stop timers, flush what must be flushed. */
    void (*error)(struct qhca *e, struct qhca_qp *qp);
    /*
     * Do work of one QP: flush, owed ACKs and READ responses first, then
     * requests.  Takes 1 off *@budget for each unit of work (packet sent, WQE
     * flushed or carried out) and stops at 0.  Returns true if there is more to
     * do right now (stay on the ready list); true with nothing taken while
     * e->tx_blocked is set: it only waits for the wire.
     */
    bool (*run)(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
    /* XRC targets: @srq is about to vanish. */
    void (*forget_srq)(struct qhca_qp *qp, const struct qhca_srq *srq);
    /* Fill what the context says of the machines. */
    void (*query)(struct qhca *e, struct qhca_qp *qp, struct qhca_qpc *out);
    /* The machines' saved state. */
    void (*save)(struct qhca_io *io, struct qhca_qp *qp);
};

struct qhca_qp {
    uint32_t qpn;
    const struct qhca_qp_ops *ops;
    struct qhca_event_src ev;
    uint8_t type, state, flags;
    uint32_t pd, uar;
    /*
     * NULL: there is none.  pd and srq of an XRC target are those of the
     * message it receives, or received last; see xrc.c.
     */
    struct qhca_cq *scq, *rcq;
    struct qhca_srq *srq;
    struct qhca_tm_qp *tm;      /* on a TM SRQ (tm.h), or NULL */
    uint8_t sq_shift, sq_stride, rq_shift, rq_stride;
    struct qhca_table sq, rq;
    uint64_t rq_dbrec, cookie;
    /* attributes, CPU order but for av, which is as in memory */
    struct qhca_av av;
    uint32_t dest_qpn, qkey, sq_psn, rq_psn, access;
    uint16_t pkey_index;
    uint8_t path_mtu, timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic, en_sqd_event;
    uint8_t syndrome;
    /* ring counters */
    uint32_t sq_head, sq_next, sq_tail, rq_head, rq_tail;
    /* per QP statistics, as in struct qhca_qpc */
    uint64_t tx_packets, rx_packets, retransmits, timeouts;
    uint64_t rnr_naks_rx, seq_naks_rx, duplicates;
    uint32_t users;             /* groups, flows, RQTs that name it */
    struct qhca_rss *rss;       /* RSS: table and hash; else NULL */
    /* scheduling */
    struct qhca_list ready;     /* in e->q->ready when it has work */
    struct qhca_xrcd *xrcd;     /* XRC target */
    struct qhca_list xrc_link;  /* in xrcd->targets */
    struct qhca_list windows;   /* type 2 windows it has bound */
    struct qhca_xport *xp;      /* the transport's part of it */
};

/* The PD of the local keys of what @qp sends and READs. */
static inline uint32_t qhca_sq_pd(const struct qhca_qp *qp)
{
    return qp->tm ? qp->srq->pd : qp->pd;
}

/* The CQ of the receives of @qp. */
static inline struct qhca_cq *qhca_recv_cq(const struct qhca_qp *qp)
{
    return qp->srq && qp->srq->cq ? qp->srq->cq : qp->rcq;
}

/* This floor's part of the adapter. */
struct qhca_queues {
    struct qhca_idr xrcds, eqs, cqs, srqs, qps;
    const struct qhca_qp_ops *qp_ops[QHCA_QPT_RSS + 1];     /* by type */
    const struct qhca_qp_ops *wq_ops;
    size_t xport_size;          /* bytes of struct qhca_xport */
    struct qhca_event_src port_ev;
    uint32_t tm_tags;           /* of all TM SRQs */
    struct qhca_cq_resize resize;       /* while a MODIFY_CQ is at work */
    struct qhca_list ready;     /* QPs with something to do */
    struct qhca_list blocked;   /* QPs that wait for the wire only */
    struct qhca_list tm_work;   /* TM SRQs with operations to execute */
    struct qhca_list eq_work;   /* EQs with pending events and room */
    struct qhca_cq **mod_heap;  /* by mod_deadline, earliest first */
    uint32_t mod_used;
};

/* ---- interrupt.c ---- */
/* Raise @vector: counted and traced, and sent if nothing keeps it back. */
void qhca_msix(struct qhca *e, uint32_t vector);

/* ---- cq.c, eq.c ---- */
/*
 * Append a CQE.  @cqe is complete but for timestamp and phase.  @solicited:
 * the event condition of a solicited-only arm (errors count as such by
 * themselves).  A full CQ goes to QHCA_CQ_ERR with an event, and all QPs
 * attached to it go to ERR with QHCA_EV_QP_FATAL when they next complete.
 * Returns false if the CQE could not be delivered.
 */
bool qhca_cq_push(struct qhca *e, struct qhca_cq *cq, struct qhca_cqe *cqe,
                  bool solicited);
/* Of an Ethernet queue? */
static inline bool qhca_cqe_is_eth(const struct qhca_cqe *cqe)
{
    return cqe->opcode == QHCA_CQE_OP_ETH_SEND ||
           cqe->opcode == QHCA_CQE_OP_ETH_RECV;
}
void qhca_cq_timer(struct qhca *e, uint64_t now); /* moderation */
uint64_t qhca_cq_deadline(struct qhca *e);        /* UINT64_MAX: none */
/* The heap of moderation deadlines (cq_mod.c): O(log n) each. */
void qhca_mod_add(struct qhca *e, struct qhca_cq *cq, uint64_t deadline);
void qhca_mod_del(struct qhca *e, struct qhca_cq *cq);
/* QHCA_DB_CQ_ARM; bad indices are counted here. */
void qhca_cq_arm(struct qhca *e, struct qhca_cq *cq, uint32_t cons,
                 bool solicited);
/* QHCA_DB_EQ. */
void qhca_eq_doorbell(struct qhca *e, struct qhca_eq *eq, uint32_t cons,
                      bool arm);
/* Tell a batch of the events that waited for room. */
void qhca_eq_run(struct qhca *e);
/* No EQ is stalled any more. */
void qhca_eqs_go_on(struct qhca *e);
/*
 * What bits of pending there are: of a CQ's completion events, or of all other
 * sources.
 */
uint32_t qhca_event_bits(bool comp);
/* Make @src an object without events; forget those that still wait. */
void qhca_event_init(struct qhca_event_src *src, uint32_t obj);
void qhca_event_forget(struct qhca_event_src *src);
/* Report @type of @src on @eq; when @eq is full it waits. */
void qhca_event(struct qhca *e, struct qhca_eq *eq,
                struct qhca_event_src *src, uint8_t type, uint8_t syndrome);
/* Report an event of @src on the async EQ; never lost, one per kind. */
void qhca_async_event(struct qhca *e, struct qhca_event_src *src,
                      uint8_t type, uint8_t syndrome);
/* Only a reset helps: stop everything, tell @reason (QHCA_FATAL_*). */
void qhca_fatal(struct qhca *e, uint8_t reason);
/* cq_resize.c: status of a resize, or QHCA_ST_AGAIN. */
uint8_t qhca_cq_resize(struct qhca *e, struct qhca_cmd *c,
                       struct qhca_cq *cq);
void qhca_cq_free(struct qhca *e, struct qhca_cq *cq);

/* ---- schedule.c ---- */
/*
 * Put @qp on the ready list (once); it runs before the present entry point
 * returns, or after a kick().
 */
void qhca_qp_schedule(struct qhca *e, struct qhca_qp *qp);

/* ---- SRQs: wqe_fetch.c ---- */
/* The SRQ takes no more part; returns @syn. */
uint8_t qhca_srq_fail(struct qhca *e, struct qhca_srq *srq, uint8_t syn);
/* Raise QHCA_EV_SRQ_LIMIT if fewer are left than armed for. */
void qhca_srq_check_limit(struct qhca *e, struct qhca_srq *srq);

/* ---- xrc.c ---- */
/*
 * The SRQ @srqn if XRC target @qp may receive into it, else NULL.
 */
struct qhca_srq *qhca_xrc_srq(struct qhca *e, const struct qhca_qp *qp,
                              uint32_t srqn);
/* A message for @srq begins: pd and srq of target @qp are its own. */
void qhca_xrc_bind(struct qhca_qp *qp, struct qhca_srq *srq);
void qhca_xrc_unbind(struct qhca_qp *qp);
/* XRC SRQ @srq is about to vanish: its targets must forget it. */
void qhca_xrc_srq_gone(struct qhca *e, struct qhca_srq *srq);
/* PD by which target or other QP @qp serves a request for @srqn; 0: none. */
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
 * Fetch send WQE @index (whole stride, 1 << sq_stride bytes) into @wqe.
 * *@addr gets its DMA address for the trace.  QHCA_SYN_*.
 */
uint8_t qhca_sq_fetch(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                      void *wqe, uint64_t *addr);
/*
 * Take the next receive WQE of the QP's RQ or SRQ into @wqe (whole stride,
 * up to QHCA_MAX_RQ_WQE bytes; *@len gets it).  *@index gets the counter
 * (RQ) or the WQE number (SRQ).  Returns QHCA_SYN_NONE, QHCA_SYN_RNR when
 * there is none, or another syndrome (then the QP must go to ERR).
 * Raises the SRQ limit event.
 */
uint8_t qhca_rq_take(struct qhca *e, struct qhca_qp *qp, void *wqe,
                     uint32_t *len, uint32_t *index);
/* Trace that a receive WQE (or an entry of its form) was taken. */
void qhca_recv_trace(struct qhca *e, uint32_t qpn, uint32_t index,
                     uint64_t addr, const void *wqe);

/* ---- sgl.c: moving data between packets and scatter-gather lists ---- */
/* Where in a scatter-gather list byte "off" of the message lies. */
struct qhca_sgpos {
    uint32_t off;
    uint32_t sge;
    uint32_t sge_off;
};
/*
 * Copy @len bytes from byte @off of the list of @num SGEs at @sges on, to @buf
 * or (@write) from it.  @pos remembers the place for the next call.
 * Caller has checked that off + len lies inside.  QHCA_SYN_*.
 */
uint8_t qhca_sgl_copy(struct qhca *e, struct qhca_qp *qp, uint32_t pd,
                      const uint8_t *sges, uint32_t num,
                      struct qhca_sgpos *pos, uint32_t off, void *buf,
                      uint32_t len, bool write);

/* ---- qp.c ---- */
/* RC and XRC: what is sent is acknowledged. */
static inline bool qhca_qp_reliable(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_RC || qp->type == QHCA_QPT_XRC_INI ||
           qp->type == QHCA_QPT_XRC_TGT;
}
/* RC, XRC and UC: has one peer. */
static inline bool qhca_qp_connected(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_UC || qhca_qp_reliable(qp);
}
static inline struct qhca_qp *qhca_qp_get(struct qhca *e, uint32_t qpn)
{
    return qhca_idr_get(&e->q->qps, qpn);
}
/*
 * The one way into ERR (or SQE): state change, trace, event.  @event is a
 * QHCA_EV_* or 0.  The type's error() then flushes.
 */
void qhca_qp_error(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome,
                   uint8_t event);
/* Trace a change from @old to qp->state. */
void qhca_qp_trace_state(struct qhca *e, struct qhca_qp *qp, uint8_t old);
/* A QP of @type that is nowhere yet, all zero, lists empty; NULL: no memory. */
struct qhca_qp *qhca_qp_alloc(struct qhca *e, uint8_t type);
/* Make it one of @type; qp->ops is NULL when there is none such. */
void qhca_qp_set_type(struct qhca *e, struct qhca_qp *qp, uint8_t type);
/* Destroy without asking whether somebody refers to it. */
void qhca_qp_free(struct qhca *e, struct qhca_qp *qp);
/* May CREATE_QP make that? */
uint8_t qhca_qp_check_create(struct qhca *e, struct qhca_cmd *c,
                             const struct qhca_qpc *in);
/* What CREATE_QP and MODIFY_QP gave it. */
void qhca_qp_describe(const struct qhca_qp *qp, struct qhca_qpc *out);
/* All but what CREATE_QP set is forgotten: the QP goes to RESET. */
void qhca_qp_clear(struct qhca_qp *qp);
/* From now on nobody has to ring for receives; false: no access. */
bool qhca_qp_clear_notify(struct qhca *e, const struct qhca_qp *qp);
void qhca_qp_sqe(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome);

/* ---- commands ---- */
/* xrc.c */
qhca_cmd_fn qhca_cmd_alloc_xrcd, qhca_cmd_free_xrcd;
/* eq.c */
qhca_cmd_fn qhca_cmd_create_eq, qhca_cmd_destroy_eq, qhca_cmd_query_eq;
/* cq.c */
qhca_cmd_fn qhca_cmd_create_cq, qhca_cmd_modify_cq, qhca_cmd_destroy_cq;
qhca_cmd_fn qhca_cmd_query_cq;
/* srq.c */
qhca_cmd_fn qhca_cmd_create_srq, qhca_cmd_modify_srq, qhca_cmd_destroy_srq;
qhca_cmd_fn qhca_cmd_query_srq;
/* qp.c */
qhca_cmd_fn qhca_cmd_create_qp, qhca_cmd_destroy_qp;
qhca_cmd_fn qhca_cmd_query_qp;

/* Destroy all objects of a kind; nothing refers to them any more. */
void qhca_qps_free(struct qhca *e);
void qhca_srqs_free(struct qhca *e);
void qhca_xrcds_free(struct qhca *e);
void qhca_cqs_free(struct qhca *e);
void qhca_eqs_free(struct qhca *e);

/* ---- save_queues.c, save_tags.c ---- */
void qhca_io_eqs(struct qhca_io *io);
void qhca_io_cqs(struct qhca_io *io);
void qhca_io_cq_resize(struct qhca_io *io, const struct qhca_cq *cq);
void qhca_io_srqs(struct qhca_io *io);
void qhca_io_mws(struct qhca_io *io);
void qhca_io_tm(struct qhca_io *io, struct qhca_srq *srq);

#endif /* QHCA_QUEUES_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A minimal driver and verbs library, written only against the hardware header.
 * It proves that the header suffices, and the tests use it.  Little-endian
 * hosts only (the fields are stored as they are).
 */
#ifndef QHCA_TEST_GUEST_H
#define QHCA_TEST_GUEST_H

#include "gbuf.h"
#include "world.h"

#define GUEST_EQS 4             /* EQ 0 is for asynchronous events */
#define GUEST_GIDS 4            /* see guest_start() */
#define GUEST_MAX_SGE 30

struct guest;

struct geq {
    struct guest *g;
    uint32_t eqn;
    struct gbuf buf;
    uint8_t shift;
    uint32_t cons;
    uint64_t dbrec;             /* 0: the EQ has none */
    bool scheduled;             /* its interrupt handler will run */
    bool armed;                 /* an interrupt is requested */
    uint64_t events;
};

struct gwait;                   /* a command under way */

struct guest {
    struct node *n;
    struct gmem *m;
    struct rng rng;
    struct qhca_dev_caps caps;
    uint32_t db_shift, aq_shift;
    uint64_t asq, acq;
    uint32_t asq_prod, acq_cons;
    uint64_t in, out;           /* mailboxes of 4 KiB */
    uint64_t second_in, second_out;     /* of a second command, 0: not yet */
    uint32_t uar, pd;
    struct geq eq[GUEST_EQS];
    unsigned eqs;
    uint64_t irq_ns;            /* maximum interrupt latency */
    bool irqs_held;             /* an injected fault delays interrupts */
    bool sq_records;            /* as configured */
    /* event handlers; called outside of the engine */
    void (*on_cq_event)(struct guest *g, uint32_t cqn);
    void (*on_async)(struct guest *g, const struct qhca_eqe *eqe);
    void *opaque;
    uint64_t async_count[256];  /* by type */
    bool up;
    struct gwait *wait;         /* in guest_cmd() */
};

/* Configuration of the device; with NULL guest_start() uses a random one. */
struct guest_config {
    uint32_t db_shift, aq_shift, eqs, eq_shift;
    bool shapes;                /* random buffer tables for the EQs */
    uint64_t irq_ns;
    uint32_t records;           /* bit i: EQ i has a doorbell record */
    bool sq_records;            /* so have SQs, if their QPs can */
};

/*
 * Bring up the adapter: admin queue, EQs, a UAR, a PD, and four GIDs: 0 IPv4
 * 10.99.0.N, 1 IPv6 fd99::N, 2 and 3 the same in VLAN 5 as 10.98.0.N and
 * fd98::N.  N is the node's number + 1.
 */
void guest_start(struct guest *g, struct node *n, uint64_t seed,
                 const struct guest_config *cfg);
/* Take it down command by command; each must succeed. */
void guest_stop(struct guest *g);
/* Forget the adapter without touching it (after a reset). */
void guest_drop(struct guest *g);

/* GID @index of node @node, as guest_start() sets it. */
void guest_gid(unsigned node, unsigned index, uint8_t gid[16]);
/* An address vector from this guest's GID @index to @peer's. */
void guest_av(const struct guest *g, const struct node *peer,
              unsigned index, struct qhca_av *av);

/* An admin command with all its parameters. */
struct gcmd {
    uint8_t op;
    uint32_t obj;
    const void *in;
    uint32_t in_len;
    void *out;
    uint32_t out_len;
    uint64_t mask, arg;
    /* results */
    uint32_t robj;
    uint64_t result;
};
/*
 * Execute it and wait.  An event handler that is called meanwhile may do the
 * same, as guest_can_command() says.  Returns QHCA_ST_*.
 */
uint8_t guest_cmd(struct guest *g, struct gcmd *c);
/* Is there room for a command?  At most two at a time. */
bool guest_can_command(const struct guest *g);
/* Execute it; ends the test unless it succeeds.  Returns the object number. */
uint32_t guest_must(struct guest *g, struct gcmd *c);
/* obj -> status, for commands without structures */
uint8_t guest_simple(struct guest *g, uint8_t op, uint32_t obj);
/** The context of an RSS QP over table @rqtn, with a key of 0. */
struct qhca_qpc guest_rss_context(const struct guest *g, uint32_t rqtn,
                                  uint32_t fields);
uint32_t guest_create(struct guest *g, uint8_t op, const void *in,
                      uint32_t in_len);
void guest_query(struct guest *g, uint8_t op, uint32_t obj, void *out,
                 uint32_t out_len);
/* All statistics, read by command. */
void guest_stats(struct guest *g, uint64_t stats[QHCA_STAT_COUNT]);
/* Ring a doorbell through the page of @uar. */
void guest_doorbell(struct guest *g, uint32_t uar, unsigned off,
                    uint64_t val);
/* Handle the pending events of queue @i; returns how many. */
unsigned guest_poll_eq(struct guest *g, unsigned i);
/* Its next entry, if there is one. */
bool geq_peek(const struct geq *eq, struct qhca_eqe *eqe);
/*
 * Of an EQ with a record: store the consumer index, and ring if the device has
 * asked for that.  Then there may be an entry.
 */
void geq_tell(struct geq *eq);

/* A doorbell record: 8 bytes; the device may read it and write its flags. */
uint64_t guest_dbrec(struct guest *g, bool flags);
void guest_dbrec_free(struct guest *g, uint64_t addr);
void guest_dbrec_set(struct guest *g, uint64_t addr, uint32_t index);
uint32_t guest_dbrec_flags(struct guest *g, uint64_t addr);

/* ---- completion queues (gqueue.c) ---- */

struct gcq {
    struct guest *g;
    uint32_t cqn, uar;
    struct gbuf buf;
    uint64_t dbrec;
    uint8_t shift;
    uint32_t cons, told;
    unsigned lazy;              /* CQEs between updates of the record */
};

void gcq_create(struct gcq *cq, struct guest *g, uint8_t shift,
                const struct gbuf_shape *shape, uint32_t eqn);
/* Status of MODIFY_CQ; the CQ has 1 << @shift entries after QHCA_ST_OK. */
uint8_t gcq_resize(struct gcq *cq, uint8_t shift,
                   const struct gbuf_shape *shape);
/* Status of DESTROY_CQ; frees everything on success. */
uint8_t gcq_destroy(struct gcq *cq);
/* Take the next CQE; false when there is none. */
bool gcq_poll(struct gcq *cq, struct qhca_cqe *cqe);
/* Request an event, after reporting what was polled. */
void gcq_arm(struct gcq *cq, bool solicited);

/* ---- memory regions ---- */

struct gmr {
    struct guest *g;
    uint32_t key, pd, access;
    uint64_t iova, len;
    struct gbuf buf;
};

/* @iova: the address of byte 0 in SGEs */
void gmr_create(struct gmr *mr, struct guest *g, uint64_t len,
                uint64_t iova, uint32_t access,
                const struct gbuf_shape *shape);
/* The same in device memory, starting anywhere in a page. */
void gmr_create_dm(struct gmr *mr, struct guest *g, uint64_t len,
                   uint64_t iova, uint32_t access);
uint8_t gmr_destroy(struct gmr *mr);
/* Free the memory after the device has forgotten the region. */
void gmr_drop(struct gmr *mr);

/* ---- shared receive queues ---- */

struct gsrq {
    struct guest *g;
    uint32_t srqn, pd;
    struct gbuf buf, idx;
    uint64_t dbrec;
    uint8_t shift, stride;
    uint32_t prod, used;
    uint16_t *free;             /* numbers of free WQEs */
    uint32_t nfree;
    /* tag matching */
    struct gbuf ops;
    uint8_t ops_shift, ops_stride;
    uint32_t ops_prod, ops_cons;
};

/* Of a TM SRQ. */
struct gtm_init {
    struct gcq *cq;
    uint32_t max_tags;
    uint8_t ops_shift, ops_stride;
    const struct gbuf_shape *ops;       /* NULL: DIRECT */
};

struct gtm_op {
    uint8_t opcode, flags;      /* QHCA_WQE_TAG_* */
    uint32_t unexp, handle;
    uint64_t wr_id, recv_wr_id, tag, mask;
    unsigned num_sge;
    struct qhca_sge sge[QHCA_TM_MAX_SGE];
};

void gsrq_create(struct gsrq *s, struct guest *g, uint8_t shift,
                 uint8_t stride, const struct gbuf_shape *buf,
                 const struct gbuf_shape *idx);
/* The same as an XRC SRQ in PD @pd: its receives complete in @cq. */
void gsrq_create_xrc(struct gsrq *s, struct guest *g, uint8_t shift,
                     uint8_t stride, uint32_t pd, uint32_t xrcd,
                     const struct gcq *cq);
/* Status of MODIFY_SRQ; the SRQ has 1 << @shift WQEs after QHCA_ST_OK. */
uint8_t gsrq_grow(struct gsrq *s, uint8_t shift, const struct gbuf_shape *buf,
                  const struct gbuf_shape *idx);
uint8_t gsrq_destroy(struct gsrq *s);
/* The same with tag matching. */
void gsrq_create_tm(struct gsrq *s, struct guest *g, uint8_t shift,
                    uint8_t stride, const struct gbuf_shape *buf,
                    const struct gbuf_shape *idx, const struct gtm_init *tm);
/*
 * Write an operation; *@counter (may be NULL) gets its number.  False if the
 * slot's previous operation has not been executed.
 */
bool gtm_post(struct gsrq *s, const struct gtm_op *op, uint32_t *counter);
void gtm_ring(struct gsrq *s);
/* The result the device wrote for an operation. */
uint32_t gtm_result(struct gsrq *s, uint32_t counter);
/* Post; *@wqe gets the WQE's number.  False: full. */
bool gsrq_post(struct gsrq *s, uint64_t wr_id, const struct qhca_sge *sge,
               unsigned n, uint32_t *wqe);
/* The CQE with wqe_index @wqe has arrived: free its slot. */
void gsrq_release(struct gsrq *s, uint32_t wqe);

/* ---- queue pairs ---- */

struct gqp {
    struct guest *g;
    uint32_t qpn, uar;
    uint8_t type, state;
    uint8_t sq_shift, sq_stride, rq_shift, rq_stride;
    struct gbuf sq, rq;
    uint64_t dbrec, sq_dbrec;   /* 0: none */
    struct gcq *scq, *rcq;
    struct gsrq *srq;
    uint32_t sq_prod, sq_rung, sq_cons, rq_prod, rq_cons;
    unsigned max_send_sge, max_recv_sge, max_inline;
};

/* Parameters of a QP; shapes may be NULL for DIRECT. */
struct gqp_init {
    uint8_t type, flags;        /* QHCA_QPT_*, QHCA_QP_F_* */
    uint8_t sq_shift, sq_stride, rq_shift, rq_stride;
    const struct gbuf_shape *sq, *rq;
    struct gcq *scq, *rcq;      /* rcq not with XRC, scq not with XRC_TGT */
    struct gsrq *srq;           /* or NULL */
    uint32_t xrcd;              /* XRC_TGT */
};

void gqp_create(struct gqp *qp, struct guest *g, const struct gqp_init *i);
uint8_t gqp_destroy(struct gqp *qp);

/* Connection attributes; gqp_attr_default() fills in sane values. */
struct gqp_attr {
    uint32_t dest_qpn, sq_psn, rq_psn, qkey, access;
    unsigned gid_index;
    uint8_t path_mtu, timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
};

void gqp_attr_default(struct gqp_attr *a);
uint8_t gqp_modify(struct gqp *qp, struct qhca_qpc *c, uint64_t mask);
/* Change only the state. */
uint8_t gqp_state(struct gqp *qp, uint8_t state);
/* RESET -> INIT; @peer NULL for UD */
void gqp_to_init(struct gqp *qp, const struct gqp_attr *a);
void gqp_to_rtr(struct gqp *qp, const struct node *peer,
                const struct gqp_attr *a);
void gqp_to_rts(struct gqp *qp, const struct gqp_attr *a);
/* Update software's view after a change to RESET: the rings are empty. */
void gqp_clear(struct gqp *qp);

struct gwr {
    uint8_t opcode, flags;      /* QHCA_WQE_*, QHCA_WQE_F_* */
    uint64_t wr_id;
    uint32_t imm;               /* stored as it is */
    unsigned num_sge;
    struct qhca_sge sge[GUEST_MAX_SGE];
    const void *inl;            /* with QHCA_WQE_F_INLINE */
    unsigned inl_len;
    uint64_t remote_addr, arg0, arg1;
    uint32_t rkey, rarg;
    uint64_t mask, swap_mask;   /* masked atomics */
    uint32_t srqn;              /* XRC */
    /* UD */
    struct qhca_av av;
    uint32_t dest_qpn, qkey;
};

/*
 * Put a WQE into the send ring; false if full.  The device does not know of it
 * until gqp_ring().
 */
bool gqp_post_send(struct gqp *qp, const struct gwr *wr);
void gqp_ring(struct gqp *qp);
bool gqp_post_recv(struct gqp *qp, uint64_t wr_id,
                   const struct qhca_sge *sge, unsigned n);
/* Address of send WQE @index in the ring, for tests that corrupt one. */
void gqp_sq_poke(struct gqp *qp, uint32_t index, unsigned off,
                 const void *src, unsigned len);
void gqp_rq_poke(struct gqp *qp, uint32_t index, unsigned off,
                 const void *src, unsigned len);

#endif

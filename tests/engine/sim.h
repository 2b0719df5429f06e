/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network simulation: adapters with random work on a faulty wire, in
 * virtual time, and what must hold for the result.
 */
#ifndef QHCA_TEST_SIM_H
#define QHCA_TEST_SIM_H

#include "die.h"
#include "godp.h"

struct outcome;
struct sim;
struct ep;

/* How software learns of completions of a CQ. */
enum cq_mode { CQ_POLL, CQ_EVENT, CQ_SOLICITED };

struct cqx {
    struct gcq cq;
    struct sim *s;
    struct guest *g;
    enum cq_mode mode;
    uint32_t room;              /* CQEs no queue has claimed */
    uint64_t seen;
    uint64_t resize_at;         /* number seen */
    uint8_t least;              /* log2 of its initial depth */
    uint64_t empty;             /* time when it was last empty, ns */
    bool ticking;
    struct ep *owner;           /* of a CQ for Ethernet; NULL: see the QPN */
};

/* A ring allocator of ranges of a region, with red zones between them. */
#define SPAN_MAX 4096
struct spans {
    uint64_t size, head, tail;
    uint32_t first, next;
    struct {
        uint64_t end;
        bool freed;
    } e[SPAN_MAX];
};

void spans_init(struct spans *s, uint64_t size);
bool spans_alloc(struct spans *s, uint64_t len, uint64_t gap, uint64_t *off,
                 uint32_t *handle);
void spans_free(struct spans *s, uint32_t handle);
bool spans_empty(const struct spans *s);

/* A region and the users of its parts. */
struct area {
    struct gmr mr;
    struct godp *odp;           /* NULL unless paged on demand */
    struct spans spans;
};

/* Part of a buffer: a range of an area. */
struct piece {
    uint64_t off;
    uint32_t len, handle;
};

/* A QP with an application: sim_rc.c, sim_ud.c, sim_err.c fill it. */
struct ep {
    struct sim *s;
    struct guest *g;
    struct gqp qp;
    struct cqx *scq, *rcq;
    void (*on_cqe)(struct ep *ep, const struct qhca_cqe *cqe);
    void (*pump)(struct ep *ep);        /* post as much as possible */
    void (*finish)(struct ep *ep);      /* check, then destroy */
    void (*dump)(struct ep *ep);
    void (*on_async)(struct ep *ep, const struct qhca_eqe *eqe);
    bool (*idle)(struct ep *ep);        /* is its work complete? */
    /* its memory; NULL: the work depends on time */
    void (*record)(struct ep *ep, struct outcome *o);
    unsigned number;
    bool ticking, dirty;
    void *app;
};

struct sim {
    struct world w;
    struct guest g[WORLD_NODES];
    struct rng rng;
    uint64_t seed;
    struct ep **ep;
    unsigned eps;
    struct cqx **cq;
    unsigned cqs;
    struct ep **by_qpn[WORLD_NODES];
    uint32_t by_qpn_len[WORLD_NODES];
    uint64_t next_id;           /* of payload streams */
    bool lossy;                 /* the wire loses or corrupts frames */
    uint64_t deaths;            /* of memory links */
    bool no_deaths;             /* a late marker would be a strange frame */
    bool corrupts;
    bool injects;               /* fault injection: more is sent than counted */
    uint32_t frame_faults;      /* bit per QHCA_FLT_*: of Ethernet frames */
    uint64_t limit_ns;          /* virtual time by which all must be done */
    uint64_t messages, bytes;
    bool ending;
    uint8_t timeout;            /* ACK timeout code of RC QPs; 0: safe */
    bool no_rnr;                /* no receive is ever late */
    bool hostile;               /* software does invalid things */
    bool attackable;            /* a hostile peer may be there */
    struct hostile *peer;       /* it is */
    unsigned odp_pct;           /* percentage of regions paged on demand */
    struct godp **odp;          /* these regions */
    unsigned odps;
    struct outcome *outcome;    /* NULL: not recorded */
};

struct sim_workload {
    const char *name;
    const char *help;
    void (*build)(struct sim *s);
    /* may be NULL: runs while the endpoints work, and advances time */
    void (*script)(struct sim *s);
    bool wire_only;             /* it observes the wire: no memory links */
};

extern const struct sim_workload sim_workloads[];

/* Bring up the software of adapter @i (again). */
void sim_start_guest(struct sim *s, unsigned i);
/* Make a CQ that holds @need entries. */
struct cqx *sim_cq(struct sim *s, struct guest *g, enum cq_mode mode,
                   uint32_t need);
/* Register an endpoint whose QP exists. */
struct ep *sim_ep(struct sim *s, struct guest *g);
void sim_ep_bind(struct ep *ep);
void sim_ep_unbind(struct ep *ep);
/* Call ep->pump() @ns from now or a bit later. */
void sim_tick(struct ep *ep, uint64_t ns);
/* Take all completions of a CQ now. */
void sim_drain(struct cqx *c);
uint64_t sim_area(struct area *a, struct guest *g, uint64_t size,
                  uint32_t access, bool plain);
/* The same, perhaps with on-demand paging. */
uint64_t sim_area_odp(struct area *a, struct guest *g, uint64_t size,
                      uint32_t access, bool plain);
void sim_area_free(struct area *a);

/* sim_rc.c */
struct rc_profile {
    uint8_t type;               /* QHCA_QPT_RC, QHCA_QPT_UC */
    unsigned messages;          /* to send by each end */
    uint64_t max_msg;           /* bytes */
    bool eager_recv;            /* receives are posted before their sends */
    bool plain;                 /* DIRECT buffers only */
};
void rc_pair(struct sim *s, struct guest *a, struct guest *b,
             const struct rc_profile *p);
/* @n ends share one SRQ of guest @b. */
void rc_srq_group(struct sim *s, struct guest *a, struct guest *b,
                  unsigned n, const struct rc_profile *p);
/* @n initiators of @a and their targets of @b, which share SRQs. */
void rc_xrc_group(struct sim *s, struct guest *a, struct guest *b,
                  unsigned n, const struct rc_profile *p);
/* sim_ud.c */
void ud_group(struct sim *s, unsigned per_node, unsigned messages,
              bool enough_receives);
/* sim_eth.c: on every adapter, on a wire without faults */
void eth_group(struct sim *s, unsigned frames);
/* sim_odp.c */
struct godp *odp_add(struct sim *s);
void odp_remove(struct sim *s, struct godp *o);
/* QHCA_EV_PAGE_FAULT: serve it some time later. */
void odp_fault(struct guest *g, uint32_t qpn);
/* Start removing pages at random. */
void odp_start(struct sim *s);
/* sim_raw.c */
void raw_script(struct sim *s);
/* sim_plan.c: @pairs of QPs whose work does not depend on time */
void plan_pairs(struct sim *s, unsigned pairs);
/* sim_err.c */
void err_script(struct sim *s);
void chaos_script(struct sim *s);
/* sim_tm.c */
void tm_script(struct sim *s);
/* sim_extra.c: more cases for err_script() */
extern void (*const sim_extras[])(struct sim *s);
extern const unsigned sim_extras_n;

/* ---- send WQEs ---- */

static inline bool sim_takes_recv(uint8_t op)
{
    return op == QHCA_WQE_SEND || op == QHCA_WQE_SEND_IMM ||
           op == QHCA_WQE_RDMA_WRITE_IMM;
}

static inline bool sim_is_write(uint8_t op)
{
    return op == QHCA_WQE_RDMA_WRITE || op == QHCA_WQE_RDMA_WRITE_IMM;
}

static inline bool sim_is_atomic(uint8_t op)
{
    return op == QHCA_WQE_COMP_SWAP || op == QHCA_WQE_FETCH_ADD ||
           op == QHCA_WQE_MASKED_COMP_SWAP ||
           op == QHCA_WQE_MASKED_FETCH_ADD;
}

const char *sim_wc_name(unsigned status);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saving an adapter, and continuing with another that has loaded the state.
 * Both are compared twice: as bytes (the loaded state is saved again), and
 * object by object in memory, so that an unsaved field is found as soon as its
 * value matters.
 */
#include <stdlib.h>

#include "die.h"
#include "adapter/adapter.h"
#include "base/save.h"
#include "transport/rc.h"
#include "ethernet/flow.h"
#include "reborn.h"

/* Wipe what may differ before copies are compared. */
#define WIPE(x) memset(&(x), 0, sizeof(x))

static void wipe_map(struct qhca_buf_table *m)
{
    struct qhca_buf_table keep = *m;

    memset(m, 0, sizeof(*m));
    m->addr = keep.addr;
    m->len = keep.len;
    m->first = keep.first;
    m->entries = keep.entries;
    m->form = keep.form;
    m->hops = keep.hops;
    m->page_shift = keep.page_shift;
    m->table_shift = keep.table_shift;
    m->queue = keep.queue;
    m->odp = keep.odp;
    m->kind = keep.kind;
}

static void wipe_src(struct qhca_event_src *s)
{
    WIPE(s->link);
    if (!s->pending) {
        s->syndrome = 0;
    }
}

static void wipe_eq(struct qhca_eq *q)
{
    wipe_map(&q->buf);
    WIPE(q->pending);
    q->stalled = 0;
    q->failed = false;
    WIPE(q->work);
}

static void wipe_cq(struct qhca_cq *c)
{
    wipe_src(&c->ev);
    wipe_src(&c->comp);
    wipe_map(&c->buf);
    c->eq = NULL;
    if (c->mod_pos == QHCA_MOD_NONE) {
        c->mod_deadline = 0;
    }
}

static void wipe_srq(struct qhca_srq *s)
{
    wipe_src(&s->ev);
    wipe_map(&s->buf);
    wipe_map(&s->idx);
    s->cq = NULL;
    s->tm = NULL;
    s->xrcd = NULL;
}

static void wipe_mr(struct qhca_mr *m)
{
    wipe_map(&m->buf);
}

static void wipe_eth_q(struct qhca_eth_q *q)
{
    wipe_src(&q->ev);
    wipe_map(&q->ring.buf);
    wipe_map(&q->data.buf);
    q->cq = NULL;
    WIPE(q->turn.ready);
    q->turn.up = NULL;          /* compared in saved form */
    if (!q->lso.active) {
        WIPE(q->lso);           /* an earlier one */
    }
}

static void wipe_shaper(struct qhca_shaper *s)
{
    WIPE(s->turn.ready);
    WIPE(s->ready);
    s->turn.up = NULL;
    s->wait_pos = s->wait_pos != QHCA_SHAPER_AWAKE;
    if (!s->wait_pos) {
        s->until = 0;
    }
}

static void wipe_recv(struct qhca_recv *r)
{
    WIPE(r->pos);
    if (!r->held) {
        WIPE(r->wqe);
        r->index = r->len = r->cap = r->sges = 0;
    }
}

static void wipe_wq(struct qhca_wq *q)
{
    wipe_src(&q->ev);
    wipe_map(&q->ring.buf);
    wipe_recv(&q->recv);
    WIPE(q->flush);
    q->cq = NULL;
}

static void wipe_xport(struct qhca_xport *xp)
{
    unsigned i;

    xp->qp = NULL;
    WIPE(xp->snd_pos);
    WIPE(xp->rd_pos);
    wipe_recv(&xp->recv);
    WIPE(xp->timer);
    WIPE(xp->rspq);             /* a ring: compared in saved form */
    xp->rspq_head -= xp->rspq_tail;
    xp->rspq_tail = 0;
    xp->win = NULL;
    xp->odp = NULL;
    xp->wqe_told = false;
    xp->took_back = false;      /* by a link, which is not saved */
    if (!xp->deadline) {
        xp->timer_class = 0;
    }
    for (i = 0; i < QHCA_ATOMICS_KEPT; i++) {
        WIPE(xp->atomics[i]);   /* has padding: compared in saved form */
    }
}

static void wipe_qp(struct qhca_qp *q)
{
    wipe_src(&q->ev);
    wipe_map(&q->sq);
    wipe_map(&q->rq.buf);
    q->xp = NULL;               /* see compare_xport() */
    WIPE(q->ready);
    WIPE(q->xrc_link);
    WIPE(q->windows);
    q->scq = q->rcq = NULL;
    q->srq = NULL;
    q->tm = NULL;
    q->rss = NULL;
    q->xrcd = NULL;
}

static void differ(const char *what, uint32_t num, const void *a,
                   const void *b, size_t len)
{
    const uint8_t *x = a, *y = b;
    size_t i;

    for (i = 0; i < len; i++) {
        CHECK(x[i] == y[i], "%s %u: byte %zu of the structure was %#x and is "
              "%#x: a field is not saved", what, num, i, x[i], y[i]);
    }
}

#define COMPARE(type, table, wipe)                                          \
    COMPARE_IF(type, table, wipe, always)

static bool always(const void *obj)
{
    (void)obj;
    return true;
}

/* QPs and WQs have their numbers in one table. */
static bool is_wq(const void *obj)
{
    return ((const struct qhca_qpn_owner *)obj)->is_wq;
}

static bool is_qp(const void *obj)
{
    return !is_wq(obj);
}

#define COMPARE_IF(type, table, wipe, is) do {                                     \
    uint32_t n_;                                                            \
    CHECK(a->table.used == b->table.used, "%u " #table " became %u",        \
          a->table.used, b->table.used);                                    \
    for (n_ = 0; n_ < qhca_idr_end(&a->table); n_++) {                    \
        const struct type *x_ = qhca_idr_get(&a->table, n_);              \
        const struct type *y_ = qhca_idr_get(&b->table, n_);              \
        struct type s_, t_;                                                 \
        if (!x_ || !is(x_)) {                                               \
            continue;                                                       \
        }                                                                   \
        CHECK(y_ && is(y_), #type " %u is lost", n_);                       \
        memcpy(&s_, x_, sizeof(s_));                                        \
        memcpy(&t_, y_, sizeof(t_));                                        \
        wipe(&s_);                                                          \
        wipe(&t_);                                                          \
        differ(#type, n_, &s_, &t_, sizeof(s_));                            \
    }                                                                       \
} while (0)

/* Compare the transport state of QP @x and its successor. */
static void compare_xport(const struct qhca_qp *x, const struct qhca_qp *y)
{
    struct qhca_xport s, t;

    memcpy(&s, x->xp, sizeof(s));
    memcpy(&t, y->xp, sizeof(t));
    wipe_xport(&s);
    wipe_xport(&t);
    differ("qhca_xport", x->qpn, &s, &t, sizeof(s));
}

static void compare(struct qhca *a, struct qhca *b)
{
    uint32_t n;

    COMPARE(qhca_eq, q->eqs, wipe_eq);
    COMPARE(qhca_cq, q->cqs, wipe_cq);
    COMPARE(qhca_srq, q->srqs, wipe_srq);
    COMPARE(qhca_mr, mem->mrs, wipe_mr);
    COMPARE_IF(qhca_qp, q->qps, wipe_qp, is_qp);
    COMPARE_IF(qhca_wq, q->qps, wipe_wq, is_wq);
    COMPARE(qhca_shaper, eth->shapers, wipe_shaper);
    COMPARE(qhca_eth_q, eth->eth_sqs, wipe_eth_q);
    COMPARE(qhca_eth_q, eth->eth_rqs, wipe_eth_q);
    for (n = 0; n < qhca_idr_end(&a->q->qps); n++) {
        if (qhca_qp_get(a, n)) {
            compare_xport(qhca_qp_get(a, n), qhca_qp_get(b, n));
        }
    }
    CHECK(!memcmp(a->mem->uar_refs, b->mem->uar_refs,
                  qhca_idr_end(&a->mem->uars) * sizeof(uint32_t)) &&
          !memcmp(a->mem->pd_refs, b->mem->pd_refs,
                  qhca_idr_end(&a->mem->pds) * sizeof(uint32_t)),
          "references are counted wrong");
}

void node_reborn(struct node *n, const struct qhca_ops *ops)
{
    bool blocked = !qhca_list_empty(&n->e->q->blocked), link = n->e->link;
    bool kicked = n->e->kicked;
    void *state, *again;
    size_t len, len2, i;
    struct qhca *e;
    char why[160];
    const char *err;

    if (n->e->faults) {
        return;                 /* the developer's: not saved */
    }
    CHECK(qhca_save(n->e, &state, &len), "saving: no memory");
    e = qhca_new(&n->e->cfg, ops, n, &err);
    CHECK(e, "qhca_new: %s", err);
    CHECK(qhca_load(e, state, len, why, sizeof(why)), "loading what was "
          "saved: %s", why);
    CHECK(e->link == link, "the link changed");
    compare(n->e, e);
    CHECK(qhca_save(e, &again, &len2), "saving: no memory");
    if (!blocked && e->kicked == kicked) {
        CHECK(len == len2, "%zu bytes became %zu", len, len2);
        for (i = 0; i < len; i++) {
            CHECK(((uint8_t *)state)[i] == ((uint8_t *)again)[i],
                  "byte %zu of %zu saved is another when saved again", i,
                  len);
        }
    }
    free(state);
    free(again);
    qhca_free(n->e);
    n->e = e;
}

const char *node_loads_state(struct node *n, const struct qhca_config *cfg,
                             const void *state, size_t len)
{
    static char why[160];
    const char *err;
    struct qhca *e;
    bool ok;

    e = qhca_new(cfg, &n->e->ops, n, &err);
    CHECK(e, "qhca_new: %s", err);
    why[0] = 0;
    ok = qhca_load(e, state, len, why, sizeof(why));
    CHECK(ok == !why[0], "%s, and says \"%s\"", ok ? "loaded" : "refused",
          why);
    CHECK(ok || !(qhca_reg_read(e, QHCA_REG_CTRL, 4) | e->q->cqs.used |
                  e->q->srqs.used | e->mem->mrs.used | e->q->eqs.used |
                  e->q->qps.used | e->eth->eth_sqs.used),
          "refused, but not as after a reset");
    qhca_free(e);
    return why;
}

const char *node_loads(struct node *n, const struct qhca_config *cfg)
{
    const char *why;
    void *state;
    size_t len;

    CHECK(qhca_save(n->e, &state, &len), "saving: no memory");
    why = node_loads_state(n, cfg, state, len);
    free(state);
    return why;
}

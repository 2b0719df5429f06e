/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet receive queues for tests: rings, buffers and their contents.  Each
 * queue has a CQ of its own.
 */
#ifndef QHCA_TEST_ETHFIX_H
#define QHCA_TEST_ETHFIX_H

#include <string.h>

#include "die.h"
#include "unit.h"

#define ERQ_SHIFT 4
#define ERQ_DEPTH (1u << ERQ_SHIFT)
#define ERQ_MEM 131072          /* bytes of buffers per ring */
#ifndef ERQ_CQ_SHIFT
#define ERQ_CQ_SHIFT 6
#endif

/* A ring of receive WQEs; buffers are taken from its memory in order. */
struct erq_ring {
    struct gbuf buf;
    uint64_t dbrec, mem;
    uint32_t prod, used;        /* WQEs; bytes of mem */
    struct qhca_eth_seg seg[ERQ_DEPTH];     /* by slot */
};

struct erq {
    struct unit *u;
    struct gcq cq;
    struct erq_ring ring, data;
    uint32_t num;
};

static inline void erq_ring_make(struct unit *u, struct erq_ring *r)
{
    memset(r, 0, sizeof(*r));
    gbuf_make(&r->buf, u->m, ERQ_DEPTH * 16, &gbuf_direct, true, 0,
              &u->g.rng);
    gbuf_allow(&r->buf, 0, r->buf.len, GMEM_R);
    r->dbrec = guest_dbrec(&u->g, false);
    r->mem = gmem_alloc(u->m, ERQ_MEM, 12, 0);
}

static inline void erq_ring_free(struct unit *u, struct erq_ring *r)
{
    gbuf_free(&r->buf);
    guest_dbrec_free(&u->g, r->dbrec);
    gmem_release(u->m, r->mem, ERQ_MEM);
}

/* Memory and CQ, but no queue. */
static inline void erq_prepare(struct unit *u, struct erq *q)
{
    memset(q, 0, sizeof(*q));
    q->u = u;
    gcq_create(&q->cq, &u->g, ERQ_CQ_SHIFT, NULL, 1);
    erq_ring_make(u, &q->ring);
    erq_ring_make(u, &q->data);
}

static inline struct qhca_eth_qc erq_context(const struct erq *q, uint8_t flags)
{
    struct qhca_eth_qc c;

    memset(&c, 0, sizeof(c));
    c.buf = q->ring.buf.d;
    c.dbrec = q->ring.dbrec;
    c.cqn = q->cq.cqn;
    c.shift = ERQ_SHIFT;
    c.stride = 4;
    c.flags = flags;
    if (flags & QHCA_ETH_Q_F_HDS) {
        c.data_buf = q->data.buf.d;
        c.data_dbrec = q->data.dbrec;
        c.data_shift = ERQ_SHIFT;
    }
    return c;
}

static inline void erq_make(struct unit *u, struct erq *q, uint8_t flags)
{
    struct qhca_eth_qc c;

    erq_prepare(u, q);
    c = erq_context(q, flags);
    q->num = guest_create(&u->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
}

/* Memory and CQ of a queue that is destroyed. */
static inline void erq_release(struct erq *q)
{
    erq_ring_free(q->u, &q->ring);
    erq_ring_free(q->u, &q->data);
    assert_int_equal(gcq_destroy(&q->cq), QHCA_ST_OK);
}

static inline void erq_free(struct erq *q)
{
    assert_int_equal(guest_simple(&q->u->g, QHCA_CMD_DESTROY_ETH_RQ, q->num),
                     QHCA_ST_OK);
    erq_release(q);
}

/* Start again with an empty ring; the queue is in RESET. */
static inline void erq_rewind(struct unit *u, struct erq_ring *r)
{
    gmem_deny(u->m, r->mem, ERQ_MEM, GMEM_W);
    r->prod = r->used = 0;
    guest_dbrec_set(&u->g, r->dbrec, 0);
}

/* Post a buffer of @len bytes that begins @gap bytes after the last one. */
static inline void erq_post(struct unit *u, struct erq_ring *r, uint32_t len,
                            uint32_t gap)
{
    struct qhca_eth_seg seg = { .len = len };

    if (r->used + gap + len > ERQ_MEM) {
        r->used = 0;
    }
    seg.addr = r->mem + r->used + gap;
    r->used += gap + len;
    gmem_allow(u->m, seg.addr, len, GMEM_W);
    r->seg[r->prod % ERQ_DEPTH] = seg;
    gbuf_write(&r->buf, (r->prod++ % ERQ_DEPTH) * 16, &seg, 16);
    guest_dbrec_set(&u->g, r->dbrec, r->prod);
}

/* Take ring, record and buffers away from the device. */
static inline void erq_ring_close(struct unit *u, struct erq_ring *r)
{
    gbuf_deny(&r->buf, 0, r->buf.len, GMEM_R);
    gmem_deny(u->m, r->dbrec, 8, GMEM_R);
    gmem_deny(u->m, r->mem, ERQ_MEM, GMEM_W);
}

/* Give them back, but for the buffers, which erq_post() will give. */
static inline void erq_ring_open(struct unit *u, struct erq_ring *r)
{
    gbuf_allow(&r->buf, 0, r->buf.len, GMEM_R);
    gmem_allow(u->m, r->dbrec, 8, GMEM_R);
}

static inline bool erq_poll(struct erq *q, struct qhca_eth_cqe *cqe)
{
    struct qhca_cqe any;

    if (!gcq_poll(&q->cq, &any)) {
        return false;
    }
    memcpy(cqe, &any, sizeof(*cqe));
    return true;
}

/* Copy @len bytes out of the @n buffers from counter @index on. */
static inline void erq_read(struct unit *u, const struct erq_ring *r,
                            uint32_t index, unsigned n, uint8_t *to, size_t len)
{
    const struct qhca_eth_seg *seg;
    size_t part;

    for (; n--; index++) {
        seg = &r->seg[index % ERQ_DEPTH];
        part = seg->len < len ? seg->len : len;
        assert_true(part);
        memcpy(to, gmem_ptr(u->m, seg->addr, part), part);
        gmem_deny(u->m, seg->addr, seg->len, GMEM_W);
        to += part;
        len -= part;
    }
    assert_int_equal(len, 0);
}

static inline uint8_t erq_modify(struct erq *q, const struct qhca_eth_qc *c,
                                 uint64_t mask, uint64_t *at)
{
    return unit_cmd(q->u, QHCA_CMD_MODIFY_ETH_RQ, q->num, mask, c, sizeof(*c),
                    at);
}

static inline uint8_t erq_state(struct erq *q, uint8_t state)
{
    struct qhca_eth_qc c = { .state = state };
    uint8_t st = erq_modify(q, &c, QHCA_ETH_RQ_M_STATE, NULL);

    if (st == QHCA_ST_OK && state == QHCA_WQS_RESET) {
        erq_rewind(q->u, &q->ring);
        erq_rewind(q->u, &q->data);
    }
    return st;
}

static inline struct qhca_eth_qc erq_query(struct erq *q)
{
    struct qhca_eth_qc c;

    guest_query(&q->u->g, QHCA_CMD_QUERY_ETH_RQ, q->num, &c, sizeof(c));
    return c;
}

/* MODIFY_PORT with one bit, for eth_rqn or eth_qpn. */
static inline uint8_t erq_port(struct unit *u, uint64_t mask, uint32_t num)
{
    struct qhca_port p = { .eth_rqn = num, .eth_qpn = num };

    return unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, mask, &p, sizeof(p), NULL);
}

/* The adapter as it is after its state was saved and loaded. */
static inline void save_and_load(struct unit *u)
{
    char why[160] = "";
    void *saved;
    size_t len;

    assert_true(qhca_save(u->e, &saved, &len));
    CHECK(qhca_load(u->e, saved, len, why, sizeof(why)), "%s", why);
    free(saved);
}

/* ---- RSS over them ---- */

/* RSS QP @qpn over table @rqtn. */
struct erss {
    struct unit *u;
    uint32_t rqtn, qpn;
};

static inline uint8_t rqt_try(struct unit *u, uint64_t kind,
                              const uint32_t *num, unsigned n, struct gcmd *c)
{
    *c = (struct gcmd){
        .op = QHCA_CMD_CREATE_RQT, .arg = kind, .in = num, .in_len = 4 * n,
    };
    return guest_cmd(&u->g, c);
}

static inline uint32_t rqt_of(struct unit *u, const uint32_t *num, unsigned n)
{
    struct gcmd c;

    assert_int_equal(rqt_try(u, QHCA_RQT_ETH_RQ, num, n, &c), QHCA_ST_OK);
    return c.robj;
}

static inline struct qhca_qpc erss_context(struct unit *u, uint32_t rqtn,
                                           uint32_t fields)
{
    struct qhca_qpc c = guest_rss_context(&u->g, rqtn, fields);
    unsigned i;

    for (i = 0; i < sizeof(c.rx_hash_key); i++) {
        c.rx_hash_key[i] = (uint8_t)(i * 37 + 11);
    }
    return c;
}

/* Entry i of the table, of 1 << shift, is queue i % n. */
static inline void erss_make(struct unit *u, struct erss *r,
                             const struct erq *q, unsigned n, unsigned shift,
                             uint32_t fields)
{
    uint32_t num[QHCA_RQT_WQS_MAX];
    struct qhca_qpc c;
    unsigned i;

    for (i = 0; i < 1u << shift; i++) {
        num[i] = q[i % n].num;
    }
    r->u = u;
    r->rqtn = rqt_of(u, num, 1u << shift);
    c = erss_context(u, r->rqtn, fields);
    r->qpn = guest_create(&u->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
}

static inline void erss_free(struct erss *r)
{
    assert_int_equal(guest_simple(&r->u->g, QHCA_CMD_DESTROY_QP, r->qpn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&r->u->g, QHCA_CMD_DESTROY_RQT, r->rqtn),
                     QHCA_ST_OK);
}

#endif

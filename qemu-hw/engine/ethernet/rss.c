/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive side scaling: indirection tables of WQs, and the QPs that select a WQ
 * by the hash of a frame.
 */
#include <stdlib.h>

#include "ethernet/flow.h"
#include "base/save.h"


struct rqt {
    uint32_t num, refs;
    uint32_t size;              /* a power of two */
    struct qhca_qp *wq[];
};

struct qhca_rss {
    struct rqt *rqt;
    uint32_t fields;
    uint8_t key[40];
};

uint32_t qhca_toeplitz(const uint8_t key[40], const uint8_t *in, size_t len)
{
    uint64_t window = qhca_get_be32(key);
    uint32_t hash = 0;
    unsigned bit;
    size_t i;

    /* The window holds the 32 bits of the key in use, then the next 8. */
    for (i = 0; i < len; i++) {
        window = window << 8 | key[i + 4];
        for (bit = 0; bit < 8; bit++) {
            if (in[i] & (0x80 >> bit)) {
                hash ^= (uint32_t)(window >> (8 - bit));
            }
        }
    }
    return hash;
}

static size_t rss_put(uint8_t *in, size_t n, bool wanted, const void *from,
                      size_t len)
{
    if (wanted) {
        memcpy(in + n, from, len);
        n += len;
    }
    return n;
}

struct qhca_qp *qhca_rss_pick(const struct qhca_qp *qp,
                              const struct qhca_flow_match *k)
{
    const struct qhca_rss *rss = qp->rss;
    uint32_t f = rss->fields, hash;
    uint8_t in[36];
    size_t n = 0;

    if (k->l3 == 4) {
        n = rss_put(in, n, f & QHCA_HASH_SRC_IPV4, k->src_ip + 12, 4);
        n = rss_put(in, n, f & QHCA_HASH_DST_IPV4, k->dst_ip + 12, 4);
    } else if (k->l3 == 6) {
        n = rss_put(in, n, f & QHCA_HASH_SRC_IPV6, k->src_ip, 16);
        n = rss_put(in, n, f & QHCA_HASH_DST_IPV6, k->dst_ip, 16);
    }
    if (k->l4 == QHCA_PROTO_TCP) {
        n = rss_put(in, n, f & QHCA_HASH_SRC_PORT_TCP, &k->src_port, 2);
        n = rss_put(in, n, f & QHCA_HASH_DST_PORT_TCP, &k->dst_port, 2);
    } else if (k->l4 == QHCA_PROTO_UDP) {
        n = rss_put(in, n, f & QHCA_HASH_SRC_PORT_UDP, &k->src_port, 2);
        n = rss_put(in, n, f & QHCA_HASH_DST_PORT_UDP, &k->dst_port, 2);
    }
    hash = qhca_toeplitz(rss->key, in, n);
    return rss->rqt->wq[hash & (rss->rqt->size - 1)];
}

/* ---- RSS QPs ---- */

static uint8_t rss_check(struct qhca *e, struct qhca_cmd *c,
                         const struct qhca_qpc *in)
{
    if (!qhca_idr_get(&e->mem->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, pd));
    }
    if (in->sq_stride) {
        return qhca_bad(c, offsetof(struct qhca_qpc, sq_stride));
    }
    if (in->rq_stride) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rq_stride));
    }
    if (!qhca_idr_get(&e->eth->rqts, qhca_le32(in->rqtn))) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, rqtn));
    }
    if (qhca_le32(in->rx_hash_fields) & ~QHCA_HASH_MASK) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rx_hash_fields));
    }
    if (in->rx_hash_func != QHCA_HASH_TOEPLITZ) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rx_hash_func));
    }
    return QHCA_ST_OK;
}

static bool rss_init(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_qpc *in)
{
    struct qhca_rss *rss;

    qhca_xport_init(e, qp, in);
    if (!in) {
        return true;            /* see io_rss() */
    }
    rss = calloc(1, sizeof(*rss));
    if (!rss) {
        return false;
    }
    rss->rqt = qhca_idr_get(&e->eth->rqts, qhca_le32(in->rqtn));
    rss->rqt->refs++;
    rss->fields = qhca_le32(in->rx_hash_fields);
    memcpy(rss->key, in->rx_hash_key, sizeof(rss->key));
    qp->rss = rss;
    return true;
}

static void rss_free(struct qhca *e, struct qhca_qp *qp)
{
    if (qp->rss) {
        qp->rss->rqt->refs--;
        free(qp->rss);
        qp->rss = NULL;
    }
    qhca_xport_free(e, qp);
}

void qhca_rss_query(const struct qhca_qp *qp, struct qhca_qpc *out)
{
    const struct qhca_rss *rss = qp->rss;

    if (rss) {
        out->rqtn = qhca_le32(rss->rqt->num);
        out->rx_hash_fields = qhca_le32(rss->fields);
        out->rx_hash_func = QHCA_HASH_TOEPLITZ;
        memcpy(out->rx_hash_key, rss->key, sizeof(rss->key));
    }
}

static void rss_query(struct qhca *e, struct qhca_qp *qp,
                      struct qhca_qpc *out)
{
    qhca_rss_query(qp, out);
    qhca_xport_query(e, qp, out);
}

/* An RSS QP has no work of its own: its WQs receive. */
static bool rss_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    (void)e;
    (void)qp;
    (void)budget;
    return false;
}

const void *qhca_rss_rqt(const struct qhca_qp *qp)
{
    return qp->rss->rqt;
}

/* ---- indirection tables ---- */

uint32_t qhca_rqt_size(const void *rqt, uint32_t *num, uint32_t *users)
{
    const struct rqt *t = rqt;

    *num = t->num;
    *users = t->refs;
    return t->size;
}

const struct qhca_qp *qhca_rqt_wq(const void *rqt, uint32_t i)
{
    const struct rqt *t = rqt;

    return t->wq[i];
}

/* The WQ named by entry @i of the input, or NULL. */
static struct qhca_qp *named_wq(struct qhca *e, const struct qhca_cmd *c,
                                uint32_t i)
{
    uint32_t wqn = qhca_get_le32((const uint8_t *)c->in + 4 * i);
    struct qhca_qp *wq = qhca_qp_get(e, wqn);

    return wq && wq->type == QHCA_QPT_WQ ? wq : NULL;
}

uint8_t qhca_cmd_create_rqt(struct qhca *e, struct qhca_cmd *c)
{
    uint32_t n = c->in_len / 4, i;
    struct rqt *t;

    if (!n || (n & (n - 1)) || n > QHCA_RQT_WQS_MAX || c->in_len % 4) {
        return QHCA_ST_BAD_PARAM;
    }
    for (i = 0; i < n; i++) {
        if (!named_wq(e, c, i)) {
            return qhca_bad_obj(c, 4 * i);
        }
    }
    t = calloc(1, sizeof(*t) + n * sizeof(t->wq[0]));
    if (!t || !qhca_idr_add(&e->eth->rqts, t, &t->num)) {
        free(t);
        return QHCA_ST_NO_RESOURCES;
    }
    t->size = n;
    for (i = 0; i < n; i++) {
        t->wq[i] = named_wq(e, c, i);
        t->wq[i]->users++;
    }
    c->obj = t->num;
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_destroy_rqt(struct qhca *e, struct qhca_cmd *c)
{
    struct rqt *t = qhca_idr_get(&e->eth->rqts, c->obj);
    uint32_t i;

    if (!t) {
        return QHCA_ST_BAD_OBJ;
    }
    if (t->refs) {
        return QHCA_ST_BUSY;
    }
    for (i = 0; i < t->size; i++) {
        t->wq[i]->users--;
    }
    qhca_idr_del(&e->eth->rqts, t->num);
    free(t);
    return QHCA_ST_OK;
}

void qhca_rqts_free(struct qhca *e)
{
    uint32_t n;

    /* The WQs are gone already. */
    for (n = 0; n < qhca_idr_end(&e->eth->rqts); n++) {
        free(qhca_idr_get(&e->eth->rqts, n));
    }
}

/* ---- saved state ---- */

SAVED_SIZE(struct rqt, 16);
SAVED_SIZE(struct qhca_rss, 56);

static void io_rqt(struct qhca_io *io, void *obj)
{
    struct rqt *t = obj;
    uint32_t num = t ? t->num : 0, size = t ? t->size : 0, i;
    struct qhca_qp *wq;

    IO(io, num);
    qhca_io_about(io, "RQ table", num);
    IO(io, size);
    if (!NEED(io, size && !(size & (size - 1)) && size <= QHCA_RQT_WQS_MAX,
              "its size is out of range")) {
        return;
    }
    if (!io->saving) {
        t = calloc(1, sizeof(*t) + size * sizeof(t->wq[0]));
        if (!NEED(io, t, "out of memory")) {
            return;
        }
        t->num = num;
        if (!qhca_io_place(io, &io->e->eth->rqts, t, num)) {
            free(t);
            return;
        }
    }
    for (i = 0; i < size && !io->failed; i++) {
        wq = qhca_io_ref(io, &io->e->q->qps, true, io->saving ? t->wq[i]->qpn :
                         0, "a WQ of it does not exist");
        if (NEED(io, wq && wq->type == QHCA_QPT_WQ, "it names no WQ") &&
            !io->saving) {
            t->wq[t->size++] = wq;
            wq->users++;
        }
    }
}

void qhca_io_rqts(struct qhca_io *io)
{
    qhca_io_section(io, "rqt", 1);
    qhca_io_table(io, &io->e->eth->rqts);
    qhca_io_each(io, &io->e->eth->rqts, NULL, io_rqt);
    qhca_io_table_end(io, &io->e->eth->rqts);
}

static void io_rss(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca_rss *rss = qp->rss;
    struct rqt *t;

    if (!io->saving) {
        rss = calloc(1, sizeof(*rss));
        if (!NEED(io, rss, "out of memory")) {
            free(rss);
            return;
        }
    }
    t = qhca_io_ref(io, &io->e->eth->rqts, true, rss->rqt ? rss->rqt->num : 0,
                    "its RQ table does not exist");
    IO(io, rss->fields);
    qhca_io_bytes(io, rss->key, sizeof(rss->key));
    NEED(io, t && !(rss->fields & ~QHCA_HASH_MASK),
         "its hash is unknown");
    if (io->saving) {
        return;
    }
    if (!t) {
        free(rss);
        return;
    }
    rss->rqt = t;
    t->refs++;
    qp->rss = rss;
}

const struct qhca_qp_ops qhca_rss_qp_ops = {
    .check = rss_check,
    .init = rss_init,
    .free = rss_free,
    .error = qhca_xport_error,
    .run = rss_run,
    .query = rss_query,
    .save = io_rss,
};

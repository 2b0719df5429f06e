/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive side scaling: indirection tables of WQs or Ethernet RQs, and the QPs
 * that select a queue by the hash of a frame.
 */
#include <stdlib.h>

#include "ethernet/flow.h"

#define HASH_INPUT_MAX      40  /* two IPv6 addresses, two ports, a label */

struct rqt {
    uint32_t num, refs;
    uint32_t size;              /* a power of two */
    uint8_t kind;               /* QHCA_RQT_* */
    union {
        struct qhca_wq *wq;
        struct qhca_eth_q *rq;
    } queue[];
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

    /*
     * The window holds the 32 bits of the key in use, then the next 8.  Only a
     * flow label needs more bits than the key has: then the key repeats.
     */
    for (i = 0; i < len; i++) {
        window = window << 8 | key[(i + 4) % 40];
        for (bit = 0; bit < 8; bit++) {
            if (in[i] & (0x80 >> bit)) {
                hash ^= (uint32_t)(window >> (8 - bit));
            }
        }
    }
    return hash;
}

/* ---- what is hashed ---- */

struct hash_input {
    uint8_t b[HASH_INPUT_MAX];
    size_t len;
    uint8_t type;               /* QHCA_HASH_TYPE_* */
};

static void rss_put(struct hash_input *in, bool wanted, const void *from,
                    size_t len, uint8_t type)
{
    if (wanted) {
        memcpy(in->b + in->len, from, len);
        in->len += len;
        in->type = type;
    }
}

/* The addresses of a frame with an IP header; *@len gets the size of each. */
static void rss_addresses(const struct qhca_flow_match *k,
                          const uint8_t **src, const uint8_t **dst,
                          size_t *len)
{
    size_t skip = k->l3 == 4 ? 12 : 0;

    *src = k->src_ip + skip;
    *dst = k->dst_ip + skip;
    *len = 16 - skip;
}

/* The fields that the verbs' bits select. */
static void rss_by_verbs(uint32_t f, const struct qhca_eth_frame *fr,
                         struct hash_input *in)
{
    const struct qhca_flow_match *k = &fr->k;
    bool v4 = k->l3 == 4, tcp = k->l4 == QHCA_PROTO_TCP;
    const uint8_t *src, *dst;
    size_t len;

    if (k->l3) {
        rss_addresses(k, &src, &dst, &len);
        rss_put(in, f & (v4 ? QHCA_HASH_SRC_IPV4 : QHCA_HASH_SRC_IPV6), src,
                len, QHCA_HASH_TYPE_L3);
        rss_put(in, f & (v4 ? QHCA_HASH_DST_IPV4 : QHCA_HASH_DST_IPV6), dst,
                len, QHCA_HASH_TYPE_L3);
    }
    if (k->l4) {
        rss_put(in, f & (tcp ? QHCA_HASH_SRC_PORT_TCP :
                               QHCA_HASH_SRC_PORT_UDP), &k->src_port, 2,
                QHCA_HASH_TYPE_L4);
        rss_put(in, f & (tcp ? QHCA_HASH_DST_PORT_TCP :
                               QHCA_HASH_DST_PORT_UDP), &k->dst_port, 2,
                QHCA_HASH_TYPE_L4);
    }
}

/* The QHCA_HASH_BY_* for a frame of this type. */
static uint32_t rss_selected(uint32_t f, const struct qhca_eth_frame *fr)
{
    bool v4 = fr->k.l3 == 4;
    unsigned shift;

    if (!fr->k.l3) {
        return 0;
    }
    if (fr->h.fragment || !fr->k.l4) {
        shift = v4 ? QHCA_HASH_IPV4_SHIFT : QHCA_HASH_IPV6_SHIFT;
    } else if (fr->k.l4 == QHCA_PROTO_TCP) {
        shift = v4 ? QHCA_HASH_TCP4_SHIFT : QHCA_HASH_TCP6_SHIFT;
    } else {
        shift = v4 ? QHCA_HASH_UDP4_SHIFT : QHCA_HASH_UDP6_SHIFT;
    }
    return f >> shift & QHCA_HASH_BY_MASK;
}

/* Is the flow label of a frame of this type hashed? */
static bool rss_label_wanted(uint32_t f, const struct qhca_eth_frame *fr)
{
    if (fr->k.l3 != 6) {
        return false;
    }
    if (fr->h.fragment || !fr->k.l4) {
        return f & QHCA_HASH_LABEL_IPV6;
    }
    return f & (fr->k.l4 == QHCA_PROTO_TCP ? QHCA_HASH_LABEL_TCP6 :
                                             QHCA_HASH_LABEL_UDP6);
}

/* Add source and destination, mixed if the hash is to be symmetric. */
static void rss_put_pair(uint32_t f, struct hash_input *in, bool by_src,
                         bool by_dst, const uint8_t *src, const uint8_t *dst,
                         size_t len, uint8_t type)
{
    uint8_t s[16], d[16];
    size_t i;

    for (i = 0; i < len; i++) {
        s[i] = f & QHCA_HASH_SYM_XOR ? src[i] ^ dst[i] :
               f & QHCA_HASH_SYM_OR_XOR ? src[i] | dst[i] : src[i];
        d[i] = f & (QHCA_HASH_SYM_XOR | QHCA_HASH_SYM_OR_XOR) ?
               src[i] ^ dst[i] : dst[i];
    }
    rss_put(in, by_src, s, len, type);
    rss_put(in, by_dst, d, len, type);
}

/* The fields selected for the type of frame. */
static void rss_by_type(uint32_t f, const struct qhca_eth_frame *fr,
                        struct hash_input *in)
{
    uint32_t by = rss_selected(f, fr);
    const uint8_t *src, *dst;
    size_t len;

    rss_addresses(&fr->k, &src, &dst, &len);
    rss_put_pair(f, in, by & QHCA_HASH_BY_SRC_IP, by & QHCA_HASH_BY_DST_IP,
                 src, dst, len, QHCA_HASH_TYPE_L3);
    rss_put_pair(f, in, by & QHCA_HASH_BY_SRC_PORT,
                 by & QHCA_HASH_BY_DST_PORT,
                 (const uint8_t *)&fr->k.src_port,
                 (const uint8_t *)&fr->k.dst_port, 2, QHCA_HASH_TYPE_L4);
    /* the hash of a label alone is of type L3 */
    rss_put(in, rss_label_wanted(f, fr), &fr->k.flow_label, 4,
            in->type ? in->type : QHCA_HASH_TYPE_L3);
}

struct qhca_wq *qhca_rss_pick(const struct qhca_qp *qp,
                              const struct qhca_eth_frame *f,
                              struct qhca_eth_q **rq, struct qhca_steer *s)
{
    const struct qhca_rss *rss = qp->rss;
    struct hash_input in = { .len = 0 };
    uint32_t entry;

    if (rss->fields & QHCA_HASH_BY_TYPE) {
        rss_by_type(rss->fields, f, &in);
    } else {
        rss_by_verbs(rss->fields, f, &in);
    }
    s->hash = qhca_toeplitz(rss->key, in.b, in.len);
    s->hash_type = in.type;
    entry = s->hash & (rss->rqt->size - 1);
    if (rss->rqt->kind == QHCA_RQT_WQ) {
        return rss->rqt->queue[entry].wq;
    }
    *rq = rss->rqt->queue[entry].rq;
    return NULL;
}

/* ---- RSS QPs ---- */

/* Could a command have set these QHCA_HASH_*? */
static bool rss_fields_ok(uint32_t f)
{
    const uint32_t syms = QHCA_HASH_SYM_XOR | QHCA_HASH_SYM_OR_XOR;
    const uint32_t labels = QHCA_HASH_LABEL_TCP6 | QHCA_HASH_LABEL_UDP6 |
        QHCA_HASH_LABEL_IPV6;
    const uint32_t ports = QHCA_HASH_BY_SRC_PORT | QHCA_HASH_BY_DST_PORT;
    /* bit 0 of each type's four */
    const uint32_t each = 1u << QHCA_HASH_TCP4_SHIFT |
        1u << QHCA_HASH_UDP4_SHIFT | 1u << QHCA_HASH_IPV4_SHIFT |
        1u << QHCA_HASH_TCP6_SHIFT | 1u << QHCA_HASH_UDP6_SHIFT |
        1u << QHCA_HASH_IPV6_SHIFT;

    if (!(f & QHCA_HASH_BY_TYPE)) {
        return !(f & ~QHCA_HASH_MASK);
    }
    if (f & ~(QHCA_HASH_BY_TYPE | syms | labels | each * QHCA_HASH_BY_MASK) ||
        f & (ports << QHCA_HASH_IPV4_SHIFT | ports << QHCA_HASH_IPV6_SHIFT) ||
        (f & syms) == syms) {
        return false;
    }
    /*
     * Source and destination of a symmetric hash go together; each direction
     * has a label of its own.
     */
    return !(f & syms) ||
           (!(f & labels) && !((f ^ f >> 1) & each * (QHCA_HASH_BY_SRC_IP |
                                                      QHCA_HASH_BY_SRC_PORT)));
}

static uint8_t rss_check_hash(struct qhca_cmd *c, const struct qhca_qpc *in)
{
    if (!rss_fields_ok(qhca_le32(in->rx_hash_fields))) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rx_hash_fields));
    }
    if (in->rx_hash_func != QHCA_HASH_TOEPLITZ) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rx_hash_func));
    }
    return QHCA_ST_OK;
}

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
    return rss_check_hash(c, in);
}

static void rss_set_hash(struct qhca_rss *rss, const struct qhca_qpc *in)
{
    rss->fields = qhca_le32(in->rx_hash_fields);
    memcpy(rss->key, in->rx_hash_key, sizeof(rss->key));
}

#define RSS_MASK (QHCA_QP_M_RX_HASH | QHCA_QP_M_RQTN)

static uint8_t rss_modify(struct qhca *e, struct qhca_cmd *c,
                          struct qhca_qp *qp)
{
    const struct qhca_qpc *in = c->in;
    struct qhca_rss *rss = qp->rss;
    struct rqt *t = rss->rqt;
    uint8_t st;

    if (c->mask & ~QHCA_QP_M_ALL) {
        return QHCA_ST_BAD_PARAM;
    }
    if (c->mask & ~RSS_MASK) {
        return QHCA_ST_BAD_STATE;       /* it has no other attributes */
    }
    if (c->mask & QHCA_QP_M_RQTN) {
        t = qhca_idr_get(&e->eth->rqts, qhca_le32(in->rqtn));
        if (!t) {
            return qhca_bad_obj(c, offsetof(struct qhca_qpc, rqtn));
        }
        if (t->kind != rss->rqt->kind) {
            return qhca_bad(c, offsetof(struct qhca_qpc, rqtn));
        }
    }
    if (c->mask & QHCA_QP_M_RX_HASH) {
        st = rss_check_hash(c, in);
        if (st) {
            return st;
        }
        rss_set_hash(rss, in);
    }
    rss->rqt->refs--;
    rss->rqt = t;
    t->refs++;
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
    rss_set_hash(rss, in);
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

/* An RSS QP has no work of its own: its queues receive. */
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

bool qhca_rss_is_eth(const struct qhca_qp *qp)
{
    return qp->rss->rqt->kind == QHCA_RQT_ETH_RQ;
}

/* ---- indirection tables ---- */

void qhca_rqt_describe(const void *rqt, struct qhca_rqt_info *info)
{
    const struct rqt *t = rqt;

    *info = (struct qhca_rqt_info){
        .num = t->num, .size = t->size, .users = t->refs, .kind = t->kind,
    };
}

uint32_t qhca_rqt_queue(const void *rqt, uint32_t i)
{
    const struct rqt *t = rqt;

    return t->kind == QHCA_RQT_WQ ? t->queue[i].wq->wqn : t->queue[i].rq->num;
}

/* Is there a queue @num of this kind? */
static bool rqt_named(struct qhca *e, uint8_t kind, uint32_t num)
{
    return kind == QHCA_RQT_ETH_RQ ?
           qhca_idr_get(&e->eth->eth_rqs, num) != NULL :
           qhca_wq_get(e, num) != NULL;
}

/* Append queue @num, for which rqt_named() holds. */
static void rqt_append(struct qhca *e, struct rqt *t, uint32_t num)
{
    uint32_t i = t->size++;

    if (t->kind == QHCA_RQT_WQ) {
        t->queue[i].wq = qhca_wq_get(e, num);
        t->queue[i].wq->users++;
    } else {
        t->queue[i].rq = qhca_idr_get(&e->eth->eth_rqs, num);
        t->queue[i].rq->users++;
    }
}

/* Can there be a table of @n queues of that kind? */
static bool rqt_ok(uint64_t kind, uint32_t n)
{
    return kind <= QHCA_RQT_ETH_RQ && n && !(n & (n - 1)) &&
           n <= QHCA_RQT_WQS_MAX;
}

/* An empty table with room for @n entries; NULL: no memory. */
static struct rqt *rqt_alloc(uint8_t kind, uint32_t n)
{
    struct rqt *t = calloc(1, sizeof(*t) + n * sizeof(t->queue[0]));

    if (t) {
        t->kind = kind;
    }
    return t;
}

static uint32_t rqt_queue_num(const struct qhca_cmd *c, uint32_t i)
{
    return qhca_get_le32((const uint8_t *)c->in + 4 * i);
}

uint8_t qhca_cmd_create_rqt(struct qhca *e, struct qhca_cmd *c)
{
    uint32_t n = c->in_len / 4, i;
    uint8_t kind = (uint8_t)c->arg;
    struct rqt *t;

    if (!rqt_ok(c->arg, n) || c->in_len % 4) {
        return QHCA_ST_BAD_PARAM;
    }
    qhca_cost(e, n);
    for (i = 0; i < n; i++) {
        if (!rqt_named(e, kind, rqt_queue_num(c, i))) {
            return qhca_bad_obj(c, 4 * i);
        }
    }
    t = rqt_alloc(kind, n);
    if (!t || !qhca_idr_add(&e->eth->rqts, t, &t->num)) {
        free(t);
        return QHCA_ST_NO_RESOURCES;
    }
    for (i = 0; i < n; i++) {
        rqt_append(e, t, rqt_queue_num(c, i));
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
    qhca_cost(e, t->size);
    for (i = 0; i < t->size; i++) {
        if (t->kind == QHCA_RQT_WQ) {
            t->queue[i].wq->users--;
        } else {
            t->queue[i].rq->users--;
        }
    }
    qhca_idr_del(&e->eth->rqts, t->num);
    free(t);
    return QHCA_ST_OK;
}

bool qhca_rqt_discard(struct qhca *e, uint32_t num)
{
    struct rqt *t = qhca_idr_del(&e->eth->rqts, num);

    /* The WQs are gone already, and the Ethernet RQs are next. */
    free(t);
    return t;
}

/* ---- saved state ---- */

SAVED_SIZE(struct rqt, 16, rqt, 2);
SAVED_SIZE(struct qhca_rss, 56, rss, 3);

static void io_rqt(struct qhca_io *io, void *obj)
{
    struct rqt *t = obj;
    uint32_t num = t ? t->num : 0, size = t ? t->size : 0, i, queue;
    uint8_t kind = t ? t->kind : 0;

    IO(io, num);
    qhca_io_about(io, "RQ table", num);
    IO(io, size);
    IO(io, kind);
    if (!NEED(io, rqt_ok(kind, size), "its size or kind is out of range")) {
        return;
    }
    if (!io->saving) {
        t = rqt_alloc(kind, size);
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
        queue = io->saving ? qhca_rqt_queue(t, i) : 0;
        IO(io, queue);
        if (NEED(io, rqt_named(io->e, kind, queue),
                 "a queue of it does not exist") && !io->saving) {
            rqt_append(io->e, t, queue);
        }
    }
}

void qhca_io_rqts(struct qhca_io *io)
{
    qhca_io_numbers(io, &io->e->eth->rqts);
    qhca_io_each(io, &io->e->eth->rqts, NULL, io_rqt);
    qhca_io_numbers_end(io, &io->e->eth->rqts);
}

/* Check the state before its table is loaded; io_rss() checks the rest. */
static bool rss_valid(struct qhca *e, const struct qhca_qp *qp)
{
    return qp->state == QHCA_QPS_RTR && !qp->scq && !qp->rcq && !qp->srq &&
           !qp->xrcd && !qp->sq_stride && !qp->rq.stride &&
           qhca_idr_get(&e->mem->uars, qp->uar) &&
           qhca_idr_get(&e->mem->pds, qp->pd);
}

/* Could CREATE_QP and MODIFY_QP have made this RSS QP? */
static bool rss_could_be(struct qhca *e, const struct qhca_qp *qp)
{
    struct qhca_cmd c = { 0 };
    struct qhca_qpc in;

    qhca_qp_describe(qp, &in);
    qhca_rss_query(qp, &in);
    in.state = QHCA_QPS_RESET;
    return qhca_qp_check_create(e, &c, &in) == QHCA_ST_OK;
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
    t = qhca_io_must_ref(io, &io->e->eth->rqts, rss->rqt ? rss->rqt->num : 0,
                         "its RQ table does not exist");
    IO(io, rss->fields);
    qhca_io_bytes(io, rss->key, sizeof(rss->key));
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
    NEED(io, rss_could_be(io->e, qp), "no command could have created it");
}

const struct qhca_qp_ops qhca_rss_qp_ops = {
    .check = rss_check,
    .valid = rss_valid,
    .init = rss_init,
    .free = rss_free,
    .error = qhca_xport_error,
    .run = rss_run,
    .modify = rss_modify,
    .query = rss_query,
    .save = io_rss,
};

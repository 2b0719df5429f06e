/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "guest.h"

/* ---- CQ ---- */

void gcq_create(struct gcq *cq, struct guest *g, uint8_t shift,
                const struct gbuf_shape *shape, uint32_t eqn)
{
    uint64_t len = sizeof(struct qhca_cqe) << shift;
    struct qhca_cqc c;

    memset(cq, 0, sizeof(*cq));
    cq->g = g;
    cq->shift = shift;
    cq->uar = g->uar;
    cq->lazy = 1;
    gbuf_make(&cq->buf, g->m, len, shape ? shape : &gbuf_direct, true, 0,
              &g->rng);
    gbuf_allow(&cq->buf, 0, len, GMEM_W);
    cq->dbrec = guest_dbrec(g, false);
    memset(&c, 0, sizeof(c));
    c.buf = cq->buf.d;
    c.dbrec = cq->dbrec;
    c.eqn = eqn;
    c.uar = cq->uar;
    c.shift = shift;
    cq->cqn = guest_create(g, QHCA_CMD_CREATE_CQ, &c, sizeof(c));
}

uint8_t gcq_resize(struct gcq *cq, uint8_t shift,
                   const struct gbuf_shape *shape)
{
    uint64_t len = sizeof(struct qhca_cqe) << shift;
    struct gbuf buf, *gone = &buf;
    struct qhca_cqc c;
    uint32_t i, slot;
    uint8_t phase, s;

    gbuf_make(&buf, cq->g->m, len, shape ? shape : &gbuf_direct, true, 0,
              &cq->g->rng);
    gbuf_allow(&buf, 0, len, GMEM_W);
    for (i = cq->cons; i != cq->cons + (1u << shift); i++) {
        slot = i & ((1u << shift) - 1);
        phase = i >> shift & 1;
        gbuf_write(&buf, slot * sizeof(struct qhca_cqe) +
                   offsetof(struct qhca_cqe, phase), &phase, 1);
    }
    cq->told = cq->cons;
    guest_dbrec_set(cq->g, cq->dbrec, cq->cons);
    /* may read the old ring during the command only */
    gbuf_allow(&cq->buf, 0, cq->buf.len, GMEM_R);
    memset(&c, 0, sizeof(c));
    c.buf = buf.d;
    c.shift = shift;
    s = guest_cmd(cq->g, &(struct gcmd){ .op = QHCA_CMD_MODIFY_CQ,
                  .obj = cq->cqn, .in = &c, .in_len = sizeof(c),
                  .mask = QHCA_CQ_M_RESIZE });
    gbuf_deny(&cq->buf, 0, cq->buf.len, GMEM_R);
    if (s == QHCA_ST_OK) {
        struct gbuf old = cq->buf;

        cq->buf = buf;
        cq->shift = shift;
        buf = old;
    }
    gbuf_free(gone);
    return s;
}

uint8_t gcq_destroy(struct gcq *cq)
{
    uint8_t s = guest_simple(cq->g, QHCA_CMD_DESTROY_CQ, cq->cqn);

    if (s == QHCA_ST_OK) {
        gbuf_free(&cq->buf);
        guest_dbrec_free(cq->g, cq->dbrec);
    }
    return s;
}

bool gcq_poll(struct gcq *cq, struct qhca_cqe *cqe)
{
    uint32_t slot = cq->cons & ((1u << cq->shift) - 1);

    gbuf_read(&cq->buf, slot * sizeof(*cqe), cqe, sizeof(*cqe));
    if ((cqe->phase & 1) == (cq->cons >> cq->shift & 1)) {
        return false;
    }
    cq->cons++;
    if (cq->cons - cq->told >= cq->lazy) {
        cq->told = cq->cons;
        guest_dbrec_set(cq->g, cq->dbrec, cq->cons);
    }
    return true;
}

void gcq_arm(struct gcq *cq, bool solicited)
{
    cq->told = cq->cons;
    guest_dbrec_set(cq->g, cq->dbrec, cq->cons);
    guest_doorbell(cq->g, cq->uar, QHCA_DB_CQ_ARM, cq->cqn |
                   (solicited ? QHCA_DB_SOLICITED : 0) |
                   (uint64_t)cq->cons << QHCA_DB_INDEX_SHIFT);
}

/* ---- MR ---- */

static void mr_create(struct gmr *mr, struct guest *g, uint64_t len,
                      uint64_t iova, uint32_t access,
                      const struct gbuf_shape *shape, uint8_t flags)
{
    struct qhca_mpt c;
    uint8_t byte = (uint8_t)rng_u32(&g->rng);

    memset(mr, 0, sizeof(*mr));
    mr->g = g;
    mr->len = len;
    mr->iova = iova;
    mr->access = access;
    mr->pd = g->pd;
    gbuf_make(&mr->buf, g->m, len, shape ? shape : &gbuf_direct, false,
              iova, &g->rng);
    memset(&c, 0, sizeof(c));
    c.buf = mr->buf.d;
    c.iova = iova;
    c.len = len;
    c.key = byte;
    c.pd = g->pd;
    c.access = access;
    c.flags = flags;
    if (flags & QHCA_MR_F_DM) {
        c.buf.addr = node_dm_off(g->n, c.buf.addr);
    }
    mr->key = guest_create(g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    CHECK((mr->key & 0xff) == byte, "key %#x, asked for byte %#x", mr->key,
          byte);
}

void gmr_create(struct gmr *mr, struct guest *g, uint64_t len,
                uint64_t iova, uint32_t access,
                const struct gbuf_shape *shape)
{
    mr_create(mr, g, len, iova, access, shape, 0);
}

void gmr_create_dm(struct gmr *mr, struct guest *g, uint64_t len,
                   uint64_t iova, uint32_t access)
{
    mr_create(mr, g, len, iova, access, &gbuf_direct, QHCA_MR_F_DM);
}

uint8_t gmr_destroy(struct gmr *mr)
{
    uint8_t s = guest_simple(mr->g, QHCA_CMD_DESTROY_MR, mr->key);

    if (s == QHCA_ST_OK) {
        gmr_drop(mr);
    }
    return s;
}

void gmr_drop(struct gmr *mr)
{
    gbuf_free(&mr->buf);
}

/* ---- SRQ ---- */

static void srq_make(struct gsrq *s, struct guest *g, uint8_t shift,
                     uint8_t stride, const struct gbuf_shape *buf,
                     const struct gbuf_shape *idx, struct qhca_srqc c)
{
    uint64_t depth = 1ULL << shift;
    uint32_t i;

    memset(s, 0, sizeof(*s));
    s->g = g;
    s->shift = shift;
    s->stride = stride;
    gbuf_make(&s->buf, g->m, depth << stride, buf ? buf : &gbuf_direct,
              true, 0, &g->rng);
    gbuf_allow(&s->buf, 0, depth << stride, GMEM_R);
    gbuf_make(&s->idx, g->m, depth * 4, idx ? idx : &gbuf_direct, true, 0,
              &g->rng);
    gbuf_allow(&s->idx, 0, depth * 4, GMEM_R);
    s->dbrec = guest_dbrec(g, true);
    s->free = malloc(depth * sizeof(*s->free));
    CHECK(s->free, "no memory");
    for (i = 0; i < depth; i++) {
        s->free[i] = (uint16_t)i;
    }
    s->nfree = (uint32_t)depth;
    s->pd = c.pd;
    c.buf = s->buf.d;
    c.idx = s->idx.d;
    c.dbrec = s->dbrec;
    c.uar = g->uar;
    c.shift = shift;
    c.stride = stride;
    s->srqn = guest_create(g, QHCA_CMD_CREATE_SRQ, &c, sizeof(c));
}

void gsrq_create(struct gsrq *s, struct guest *g, uint8_t shift,
                 uint8_t stride, const struct gbuf_shape *buf,
                 const struct gbuf_shape *idx)
{
    srq_make(s, g, shift, stride, buf, idx, (struct qhca_srqc){
        .pd = g->pd,
    });
}

void gsrq_create_xrc(struct gsrq *s, struct guest *g, uint8_t shift,
                     uint8_t stride, uint32_t pd, uint32_t xrcd,
                     const struct gcq *cq)
{
    srq_make(s, g, shift, stride, NULL, NULL, (struct qhca_srqc){
        .pd = pd, .flags = QHCA_SRQ_F_XRC, .xrcd = xrcd, .cqn = cq->cqn,
    });
}

void gsrq_create_tm(struct gsrq *s, struct guest *g, uint8_t shift,
                    uint8_t stride, const struct gbuf_shape *buf,
                    const struct gbuf_shape *idx, const struct gtm_init *tm)
{
    struct gbuf ops;

    gbuf_make(&ops, g->m, 1ULL << (tm->ops_shift + tm->ops_stride),
              tm->ops ? tm->ops : &gbuf_direct, true, 0, &g->rng);
    gbuf_allow(&ops, 0, ops.len, GMEM_RW);
    srq_make(s, g, shift, stride, buf, idx, (struct qhca_srqc){
        .pd = g->pd, .flags = QHCA_SRQ_F_TM, .cqn = tm->cq->cqn,
        .max_tags = tm->max_tags, .ops = ops.d, .ops_shift = tm->ops_shift,
        .ops_stride = tm->ops_stride,
    });
    s->ops = ops;
    s->ops_shift = tm->ops_shift;
    s->ops_stride = tm->ops_stride;
}

uint8_t gsrq_grow(struct gsrq *s, uint8_t shift, const struct gbuf_shape *buf,
                  const struct gbuf_shape *idx)
{
    uint32_t depth = 1u << s->shift, to = 1u << shift, i, num;
    struct gbuf b, x;
    uint8_t wqe[512], st;
    struct qhca_srqc c;

    gbuf_make(&b, s->g->m, (uint64_t)to << s->stride,
              buf ? buf : &gbuf_direct, true, 0, &s->g->rng);
    gbuf_allow(&b, 0, (uint64_t)to << s->stride, GMEM_R);
    gbuf_make(&x, s->g->m, to * 4ULL, idx ? idx : &gbuf_direct, true, 0,
              &s->g->rng);
    gbuf_allow(&x, 0, to * 4ULL, GMEM_R);
    for (i = 0; i < depth && i < to; i++) {
        gbuf_read(&s->buf, (uint64_t)i << s->stride, wqe, 1u << s->stride);
        gbuf_write(&b, (uint64_t)i << s->stride, wqe, 1u << s->stride);
    }
    for (i = s->prod - depth; i != s->prod; i++) {
        gbuf_read(&s->idx, 4ULL * (i & (depth - 1)), &num, 4);
        gbuf_write(&x, 4ULL * (i & (to - 1)), &num, 4);
    }
    memset(&c, 0, sizeof(c));
    c.buf = b.d;
    c.idx = x.d;
    c.shift = shift;
    st = guest_cmd(s->g, &(struct gcmd){ .op = QHCA_CMD_MODIFY_SRQ,
                   .obj = s->srqn, .in = &c, .in_len = sizeof(c),
                   .mask = QHCA_SRQ_M_RESIZE });
    if (st == QHCA_ST_OK) {
        gbuf_free(&s->buf);
        gbuf_free(&s->idx);
        s->buf = b;
        s->idx = x;
        s->free = realloc(s->free, to * sizeof(*s->free));
        CHECK(s->free, "no memory");
        for (i = depth; i < to; i++) {
            s->free[s->nfree++] = (uint16_t)i;
        }
        s->shift = shift;
    } else {
        gbuf_free(&b);
        gbuf_free(&x);
    }
    return st;
}

uint8_t gsrq_destroy(struct gsrq *s)
{
    uint8_t st = guest_simple(s->g, QHCA_CMD_DESTROY_SRQ, s->srqn);

    if (st == QHCA_ST_OK) {
        gbuf_free(&s->buf);
        gbuf_free(&s->idx);
        if (s->ops_stride) {
            gbuf_free(&s->ops);
        }
        guest_dbrec_free(s->g, s->dbrec);
        free(s->free);
        s->free = NULL;
    }
    return st;
}

static void put_recv(struct gbuf *b, uint64_t at, uint64_t wr_id,
                     const struct qhca_sge *sge, unsigned n)
{
    struct qhca_rq_wqe h;

    memset(&h, 0, sizeof(h));
    h.wr_id = wr_id;
    h.num_sge = (uint16_t)n;
    gbuf_write(b, at, &h, sizeof(h));
    gbuf_write(b, at + sizeof(h), sge, n * sizeof(*sge));
}

bool gsrq_post(struct gsrq *s, uint64_t wr_id, const struct qhca_sge *sge,
               unsigned n, uint32_t *wqe)
{
    uint32_t depth = 1u << s->shift, num, k;

    if (!s->nfree) {
        return false;
    }
    /* take any free one, in random order */
    k = (uint32_t)rng_below(&s->g->rng, s->nfree);
    num = s->free[k];
    s->free[k] = s->free[--s->nfree];
    put_recv(&s->buf, (uint64_t)num << s->stride, wr_id, sge, n);
    gbuf_write(&s->idx, 4ULL * (s->prod & (depth - 1)), &num, 4);
    s->prod++;
    guest_dbrec_set(s->g, s->dbrec, s->prod);
    *wqe = num;
    return true;
}

void gsrq_release(struct gsrq *s, uint32_t wqe)
{
    CHECK(wqe < 1u << s->shift && s->nfree < 1u << s->shift,
          "a completion for SRQ WQE %u", wqe);
    s->free[s->nfree++] = (uint16_t)wqe;
}

static uint64_t op_at(const struct gsrq *s, uint32_t counter)
{
    return (uint64_t)(counter & ((1u << s->ops_shift) - 1)) << s->ops_stride;
}

uint32_t gtm_result(struct gsrq *s, uint32_t counter)
{
    uint32_t v;

    gbuf_read(&s->ops, op_at(s, counter) +
              offsetof(struct qhca_tm_wqe, result), &v, sizeof(v));
    return v;
}

bool gtm_post(struct gsrq *s, const struct gtm_op *op, uint32_t *counter)
{
    uint64_t at = op_at(s, s->ops_prod);
    struct qhca_tm_wqe w;

    while (s->ops_cons != s->ops_prod &&
           gtm_result(s, s->ops_cons) & QHCA_TM_DONE) {
        s->ops_cons++;
    }
    if (s->ops_prod - s->ops_cons == 1u << s->ops_shift) {
        return false;
    }
    memset(&w, 0, sizeof(w));
    w.opcode = op->opcode;
    w.flags = op->flags;
    w.num_sge = (uint16_t)op->num_sge;
    w.unexp = op->unexp;
    w.wr_id = op->wr_id;
    w.recv_wr_id = op->recv_wr_id;
    w.tag = op->tag;
    w.mask = op->mask;
    w.handle = op->handle;
    gbuf_write(&s->ops, at, &w, sizeof(w));
    gbuf_write(&s->ops, at + sizeof(w), op->sge,
               op->num_sge * sizeof(op->sge[0]));
    if (counter) {
        *counter = s->ops_prod;
    }
    s->ops_prod++;
    return true;
}

void gtm_ring(struct gsrq *s)
{
    guest_doorbell(s->g, s->g->uar, QHCA_DB_TM,
                   s->srqn | (uint64_t)s->ops_prod << QHCA_DB_INDEX_SHIFT);
}

/* ---- QP ---- */

void gqp_create(struct gqp *qp, struct guest *g, const struct gqp_init *i)
{
    bool ud = i->type == QHCA_QPT_UD || i->type == QHCA_QPT_GSI;
    bool target = i->type == QHCA_QPT_XRC_TGT;
    unsigned head = ud ? sizeof(struct qhca_ud_wqe) :
                    i->type == QHCA_QPT_XRC_INI ?
                    sizeof(struct qhca_xrc_wqe) : sizeof(struct qhca_sq_wqe);
    struct qhca_qpc c;

    memset(qp, 0, sizeof(*qp));
    qp->g = g;
    qp->type = i->type;
    qp->state = QHCA_QPS_RESET;
    /* UAR 0 and the privilege belong to the kernel */
    qp->uar = i->flags & QHCA_QP_F_PRIVILEGED || target ? 0 : g->uar;
    qp->scq = i->scq;
    qp->rcq = i->rcq;
    qp->srq = i->srq;
    memset(&c, 0, sizeof(c));
    c.type = i->type;
    c.flags = i->flags | (i->srq ? QHCA_QP_F_SRQ : 0);
    c.pd = target ? 0 : g->pd;
    c.uar = qp->uar;
    c.send_cqn = i->scq ? i->scq->cqn : 0;
    c.recv_cqn = i->rcq ? i->rcq->cqn : 0;
    c.xrcd = i->xrcd;
    c.cookie = (uint64_t)(uintptr_t)g->n->id << 32 | 0x5eed;
    if (i->sq_stride) {
        qp->sq_shift = c.sq_shift = i->sq_shift;
        qp->sq_stride = c.sq_stride = i->sq_stride;
        gbuf_make(&qp->sq, g->m, 1ULL << (i->sq_shift + i->sq_stride),
                  i->sq ? i->sq : &gbuf_direct, true, 0, &g->rng);
        gbuf_allow(&qp->sq, 0, qp->sq.len, GMEM_R);
        c.sq = qp->sq.d;
        if (g->sq_records && (i->type == QHCA_QPT_RC ||
                              i->type == QHCA_QPT_XRC_INI)) {
            c.flags |= QHCA_QP_F_SQ_RECORD;
        }
        if (c.flags & QHCA_QP_F_SQ_RECORD) {
            qp->sq_dbrec = c.sq_dbrec = guest_dbrec(g, true);
        }
        qp->max_inline = (1u << i->sq_stride) - head;
        qp->max_send_sge = qp->max_inline / sizeof(struct qhca_sge);
        if (qp->max_inline > g->caps.max_inline) {
            qp->max_inline = g->caps.max_inline;
        }
        if (qp->max_send_sge > g->caps.max_sge) {
            qp->max_send_sge = g->caps.max_sge;
        }
    }
    if (i->srq) {
        c.srqn = i->srq->srqn;
    } else if (i->rq_stride) {
        qp->rq_shift = c.rq_shift = i->rq_shift;
        qp->rq_stride = c.rq_stride = i->rq_stride;
        gbuf_make(&qp->rq, g->m, 1ULL << (i->rq_shift + i->rq_stride),
                  i->rq ? i->rq : &gbuf_direct, true, 0, &g->rng);
        gbuf_allow(&qp->rq, 0, qp->rq.len, GMEM_R);
        c.rq = qp->rq.d;
        qp->dbrec = c.rq_dbrec = guest_dbrec(g, true);
        qp->max_recv_sge = ((1u << i->rq_stride) - 16) / 16;
        if (qp->max_recv_sge > g->caps.max_sge) {
            qp->max_recv_sge = g->caps.max_sge;
        }
    }
    qp->qpn = guest_create(g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
}

uint8_t gqp_destroy(struct gqp *qp)
{
    uint8_t s = guest_simple(qp->g, QHCA_CMD_DESTROY_QP, qp->qpn);

    if (s == QHCA_ST_OK) {
        if (qp->sq_stride) {
            gbuf_free(&qp->sq);
        }
        if (qp->sq_dbrec) {
            guest_dbrec_free(qp->g, qp->sq_dbrec);
        }
        if (qp->dbrec) {
            gbuf_free(&qp->rq);
            guest_dbrec_free(qp->g, qp->dbrec);
        }
    }
    return s;
}

void gqp_attr_default(struct gqp_attr *a)
{
    memset(a, 0, sizeof(*a));
    a->path_mtu = 3;
    a->timeout = 10;            /* 4 ms */
    a->retry_cnt = 7;
    a->rnr_retry = 7;
    a->min_rnr_timer = 1;       /* 10 us */
    a->max_rd_atomic = a->max_dest_rd_atomic = 4;
    a->access = QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ |
                QHCA_ACCESS_REMOTE_ATOMIC | QHCA_ACCESS_FLUSH_GLOBAL;
    a->qkey = 0x11111111;
}

uint8_t gqp_modify(struct gqp *qp, struct qhca_qpc *c, uint64_t mask)
{
    struct gcmd cmd = { .op = QHCA_CMD_MODIFY_QP, .obj = qp->qpn, .in = c,
                        .in_len = sizeof(*c), .mask = mask };
    uint8_t s = guest_cmd(qp->g, &cmd);

    if (s == QHCA_ST_OK && mask & QHCA_QP_M_STATE) {
        qp->state = c->state;
        if (c->state == QHCA_QPS_RESET) {
            gqp_clear(qp);
        }
    }
    return s;
}

uint8_t gqp_state(struct gqp *qp, uint8_t state)
{
    struct qhca_qpc c;

    memset(&c, 0, sizeof(c));
    c.state = state;
    return gqp_modify(qp, &c, QHCA_QP_M_STATE);
}

static bool connected(const struct gqp *qp)
{
    return qp->type != QHCA_QPT_UD && qp->type != QHCA_QPT_GSI;
}

/* Does the QP send reliable requests, or answer them? */
static bool initiates(const struct gqp *qp)
{
    return qp->type == QHCA_QPT_RC || qp->type == QHCA_QPT_XRC_INI;
}

static bool responds(const struct gqp *qp)
{
    return qp->type == QHCA_QPT_RC || qp->type == QHCA_QPT_XRC_TGT;
}

void gqp_to_init(struct gqp *qp, const struct gqp_attr *a)
{
    struct qhca_qpc c;
    uint64_t mask = QHCA_QP_M_STATE | QHCA_QP_M_PKEY_INDEX;
    uint8_t s;

    memset(&c, 0, sizeof(c));
    c.state = QHCA_QPS_INIT;
    if (connected(qp)) {
        mask |= QHCA_QP_M_ACCESS;
        c.access = a->access;
        if (qp->type == QHCA_QPT_UC) {
            c.access &= QHCA_ACCESS_REMOTE_WRITE;
        }
    } else {
        mask |= QHCA_QP_M_QKEY;
        c.qkey = a->qkey;
    }
    s = gqp_modify(qp, &c, mask);
    CHECK(s == QHCA_ST_OK, "QP %#x to INIT: status %u", qp->qpn, s);
}

void gqp_to_rtr(struct gqp *qp, const struct node *peer,
                const struct gqp_attr *a)
{
    struct qhca_qpc c;
    uint64_t mask = QHCA_QP_M_STATE;
    uint8_t s;

    memset(&c, 0, sizeof(c));
    c.state = QHCA_QPS_RTR;
    if (connected(qp)) {
        mask |= QHCA_QP_M_AV | QHCA_QP_M_PATH_MTU | QHCA_QP_M_DEST_QPN |
                QHCA_QP_M_RQ_PSN;
        guest_av(qp->g, peer, a->gid_index, &c.av);
        c.path_mtu = a->path_mtu;
        c.dest_qpn = a->dest_qpn;
        c.rq_psn = a->rq_psn;
    }
    if (responds(qp)) {
        mask |= QHCA_QP_M_MAX_DEST_RD_ATOMIC | QHCA_QP_M_MIN_RNR_TIMER;
        c.max_dest_rd_atomic = a->max_dest_rd_atomic;
        c.min_rnr_timer = a->min_rnr_timer;
    }
    s = gqp_modify(qp, &c, mask);
    CHECK(s == QHCA_ST_OK, "QP %#x to RTR: status %u", qp->qpn, s);
}

void gqp_to_rts(struct gqp *qp, const struct gqp_attr *a)
{
    struct qhca_qpc c;
    uint64_t mask = QHCA_QP_M_STATE | QHCA_QP_M_SQ_PSN;
    uint8_t s;

    memset(&c, 0, sizeof(c));
    c.state = QHCA_QPS_RTS;
    c.sq_psn = a->sq_psn;
    if (qp->type == QHCA_QPT_XRC_TGT) {
        mask |= QHCA_QP_M_TIMEOUT;
        c.timeout = a->timeout;
    }
    if (initiates(qp)) {
        mask |= QHCA_QP_M_TIMEOUT | QHCA_QP_M_RETRY_CNT |
                QHCA_QP_M_RNR_RETRY | QHCA_QP_M_MAX_RD_ATOMIC;
        c.timeout = a->timeout;
        c.retry_cnt = a->retry_cnt;
        c.rnr_retry = a->rnr_retry;
        c.max_rd_atomic = a->max_rd_atomic;
    }
    s = gqp_modify(qp, &c, mask);
    CHECK(s == QHCA_ST_OK, "QP %#x to RTS: status %u", qp->qpn, s);
}

void gqp_clear(struct gqp *qp)
{
    qp->sq_prod = qp->sq_rung = qp->sq_cons = 0;
    qp->rq_prod = qp->rq_cons = 0;
    if (qp->dbrec) {
        guest_dbrec_set(qp->g, qp->dbrec, 0);
    }
    if (qp->sq_dbrec) {
        guest_dbrec_set(qp->g, qp->sq_dbrec, 0);
    }
}

bool gqp_post_send(struct gqp *qp, const struct gwr *wr)
{
    bool ud = qp->type == QHCA_QPT_UD || qp->type == QHCA_QPT_GSI;
    uint64_t at;
    unsigned head;
    union {
        struct qhca_sq_wqe rc;
        struct qhca_xrc_wqe xrc;
        struct qhca_masked_wqe masked;
        struct qhca_ud_wqe ud;
    } w;

    if ((qp->sq_prod - qp->sq_cons) >> qp->sq_shift) {
        return false;
    }
    at = (uint64_t)(qp->sq_prod & ((1u << qp->sq_shift) - 1))
         << qp->sq_stride;
    memset(&w, 0, sizeof(w));
    w.rc.ctrl.opcode = wr->opcode;
    w.rc.ctrl.flags = wr->flags;
    w.rc.ctrl.num_sge = (uint16_t)(wr->flags & QHCA_WQE_F_INLINE ?
                                   wr->inl_len : wr->num_sge);
    w.rc.ctrl.imm = wr->imm;
    w.rc.ctrl.wr_id = wr->wr_id;
    w.rc.ctrl.arg0 = wr->arg0;
    w.rc.ctrl.arg1 = wr->arg1;
    if (ud) {
        w.ud.dest_qpn = wr->dest_qpn;
        w.ud.qkey = wr->qkey;
        w.ud.av = wr->av;
        head = sizeof(w.ud);
    } else {
        w.rc.remote.addr = wr->remote_addr;
        w.rc.remote.rkey = wr->rkey;
        w.rc.remote.arg = wr->rarg;
        head = sizeof(w.rc);
        if (qp->type == QHCA_QPT_XRC_INI) {
            w.xrc.srqn = wr->srqn;
            head = sizeof(w.xrc);
        } else if (wr->opcode == QHCA_WQE_MASKED_COMP_SWAP ||
                   wr->opcode == QHCA_WQE_MASKED_FETCH_ADD) {
            w.masked.mask = wr->mask;
            w.masked.swap_mask = wr->swap_mask;
            head = sizeof(w.masked);
        }
    }
    gbuf_write(&qp->sq, at, &w, head);
    if (wr->flags & QHCA_WQE_F_INLINE) {
        CHECK(wr->inl_len <= (1u << qp->sq_stride) - head, "too long");
        gbuf_write(&qp->sq, at + head, wr->inl, wr->inl_len);
    } else {
        CHECK(wr->num_sge * 16 <= (1u << qp->sq_stride) - head, "too many");
        gbuf_write(&qp->sq, at + head, wr->sge, wr->num_sge * 16);
    }
    qp->sq_prod++;
    return true;
}

void gqp_ring(struct gqp *qp)
{
    qp->sq_rung = qp->sq_prod;
    if (qp->sq_dbrec) {
        guest_dbrec_set(qp->g, qp->sq_dbrec, qp->sq_prod);
        if (!(guest_dbrec_flags(qp->g, qp->sq_dbrec) & QHCA_DBREC_NOTIFY)) {
            return;
        }
    }
    guest_doorbell(qp->g, qp->uar, QHCA_DB_SQ, qp->qpn |
                   (uint64_t)qp->sq_prod << QHCA_DB_INDEX_SHIFT);
}

bool gqp_post_recv(struct gqp *qp, uint64_t wr_id,
                   const struct qhca_sge *sge, unsigned n)
{
    if ((qp->rq_prod - qp->rq_cons) >> qp->rq_shift) {
        return false;
    }
    put_recv(&qp->rq, (uint64_t)(qp->rq_prod & ((1u << qp->rq_shift) - 1))
             << qp->rq_stride, wr_id, sge, n);
    qp->rq_prod++;
    guest_dbrec_set(qp->g, qp->dbrec, qp->rq_prod);
    if (guest_dbrec_flags(qp->g, qp->dbrec) & QHCA_DBREC_NOTIFY) {
        guest_doorbell(qp->g, qp->uar, QHCA_DB_RQ, qp->qpn |
                       (uint64_t)qp->rq_prod << QHCA_DB_INDEX_SHIFT);
    }
    return true;
}

void gqp_sq_poke(struct gqp *qp, uint32_t index, unsigned off,
                 const void *src, unsigned len)
{
    gbuf_write(&qp->sq, ((uint64_t)(index & ((1u << qp->sq_shift) - 1))
                         << qp->sq_stride) + off, src, len);
}

void gqp_rq_poke(struct gqp *qp, uint32_t index, unsigned off,
                 const void *src, unsigned len)
{
    gbuf_write(&qp->rq, ((uint64_t)(index & ((1u << qp->rq_shift) - 1))
                         << qp->rq_stride) + off, src, len);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: admin commands.  Each starts as a valid one (so that objects are
 * created, used and destroyed) and is corrupted by the input.  Doorbells ring
 * and frames arrive in between, so that the objects are active.
 */
#include "ethframe.h"
#include "fuzz.h"

#define ARENA (1u << 20)
#define ETH_DBREC (base + 0x88000)      /* says that all buffers are posted */

static uint64_t base;

static void buffer(struct fz *f, struct qhca_buf *b, uint64_t len)
{
    static const struct qhca_buf forms[] = {
        { .form = QHCA_BUF_DIRECT },
        { .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
          .entries = 512 },
        { .form = QHCA_BUF_TREE, .hops = 3, .page_shift = 12,
          .table_shift = 12 },
        { .form = QHCA_BUF_LIST, .entries = 4 },
    };

    *b = forms[fz_u8(f) & 3];
    b->len = len;
    /* the first quarter of the arena holds plausible tables */
    b->addr = base + (fz_u8(f) & 0x3f) * 4096u;
}

/* The second ring of an Ethernet RQ. */
static void split(struct fz *f, struct qhca_eth_qc *eth)
{
    eth->flags = QHCA_ETH_Q_F_HDS;
    buffer(f, &eth->data_buf, 16u << 3);
    eth->data_dbrec = ETH_DBREC + 8;
    eth->data_shift = 3;
    eth->hds_thresh = fz_u8(f);
}

static void rss(struct qhca_qpc *qp, uint8_t k)
{
    qp->rqtn = k >> 3 & 3;
    qp->rx_hash_func = QHCA_HASH_TOEPLITZ;
    qp->rx_hash_fields = k & 0x80 ? QHCA_HASH_BY_TYPE | QHCA_HASH_SYM_XOR |
                         0x3ff3ff : QHCA_HASH_MASK;
    memset(qp->rx_hash_key, k + 1, sizeof(qp->rx_hash_key));
}

static uint32_t template(struct fz *f, uint8_t op, uint8_t *in)
{
    struct qhca_eqc *eq = (void *)in;
    struct qhca_cqc *cq = (void *)in;
    struct qhca_srqc *srq = (void *)in;
    struct qhca_qpc *qp = (void *)in;
    struct qhca_mpt *mr = (void *)in;
    struct qhca_eth_qc *eth = (void *)in;
    struct qhca_shaperc *shaper = (void *)in;
    struct qhca_wqc *wq = (void *)in;
    struct qhca_flow *flow = (void *)in;
    struct qhca_port *port = (void *)in;
    uint8_t k = fz_u8(f);

    switch (op) {
    case QHCA_CMD_CREATE_EQ:
        buffer(f, &eq->buf, 16u << 4);
        eq->shift = 4;
        eq->vector = k & 7;
        return sizeof(*eq);
    case QHCA_CMD_CREATE_CQ:
        buffer(f, &cq->buf, 64u << 4);
        cq->shift = 4;
        cq->dbrec = base + 0x80000 + k * 8u;
        cq->eqn = k & 1;
        cq->uar = 1;
        /* fall through */
    case QHCA_CMD_MODIFY_CQ:
        if (op == QHCA_CMD_MODIFY_CQ && (k & 4)) {
            cq->shift = 3 + (k & 3);
            buffer(f, &cq->buf, 64u << cq->shift);
        }
        cq->mod_count = k & 3;
        cq->mod_usec = k >> 4;
        return sizeof(*cq);
    case QHCA_CMD_CREATE_SRQ:
        buffer(f, &srq->buf, 64u << 3);
        buffer(f, &srq->idx, 4u << 3);
        srq->dbrec = base + 0x80000 + k * 8u;
        srq->shift = 3;
        srq->stride = 6;
        srq->pd = srq->uar = 1;
        if (k & 4) {
            srq->flags = QHCA_SRQ_F_TM;
            srq->cqn = 1 + (k >> 7);
            buffer(f, &srq->ops, 128u << 3);
            srq->ops_shift = 3;
            srq->ops_stride = 7;
            srq->max_tags = 1u << (k >> 4);
        }
        /* fall through */
    case QHCA_CMD_MODIFY_SRQ:
        if (op == QHCA_CMD_MODIFY_SRQ && (k & 4)) {
            srq->shift = 3 + (k & 1);
            buffer(f, &srq->buf, 64u << srq->shift);
            buffer(f, &srq->idx, 4u << srq->shift);
        }
        srq->limit = k & 3;
        return sizeof(*srq);
    case QHCA_CMD_CREATE_QP:
        buffer(f, &qp->sq, 128u << 3);
        buffer(f, &qp->rq, 64u << 3);
        qp->type = k & 7;
        qp->pd = qp->uar = 1;
        qp->send_cqn = qp->recv_cqn = 1 + (k >> 7);
        qp->sq_shift = qp->rq_shift = 3;
        qp->sq_stride = 7;
        qp->rq_stride = 6;
        qp->rq_dbrec = base + 0x80000 + k * 8u;
        if (qp->type == QHCA_QPT_RSS) {
            qp->sq_stride = qp->rq_stride = 0;
            rss(qp, k);
        }
        return sizeof(*qp);
    case QHCA_CMD_MODIFY_QP:
        rss(qp, k);
        qp->state = k & 7;
        qp->path_mtu = 3;
        qp->dest_qpn = k >> 4;
        qp->timeout = 10;
        qp->retry_cnt = qp->rnr_retry = 2;
        qp->max_rd_atomic = qp->max_dest_rd_atomic = 2;
        qp->access = 15;
        qp->qkey = 1;
        guest_gid(0, 0, qp->av.dgid);
        memcpy(qp->av.dmac, "\x52\x54\x00\x9a\x00\x01", 6);
        return sizeof(*qp);
    case QHCA_CMD_CREATE_MW:
        mr->flags = k & 1 ? QHCA_MR_F_MW1 : QHCA_MR_F_MW2;
        mr->pd = 1;
        return sizeof(*mr);
    case QHCA_CMD_CREATE_MR:
    case QHCA_CMD_MODIFY_MR:
        buffer(f, &mr->buf, 0x10000);
        mr->iova = 0x1000;
        mr->len = 0x10000;
        mr->key = k;
        mr->pd = 1;
        mr->access = 15;
        return sizeof(*mr);
    case QHCA_CMD_CREATE_ETH_SQ:
    case QHCA_CMD_CREATE_ETH_RQ:
        buffer(f, &eth->buf, (op == QHCA_CMD_CREATE_ETH_SQ ? 64u : 16u) << 3);
        eth->dbrec = op == QHCA_CMD_CREATE_ETH_SQ ? 0 : ETH_DBREC;
        eth->cqn = 1;
        eth->shift = 3;
        eth->stride = op == QHCA_CMD_CREATE_ETH_SQ ? 6 : 4;
        if (op == QHCA_CMD_CREATE_ETH_RQ && (k & 1)) {
            split(f, eth);
        }
        return sizeof(*eth);
    case QHCA_CMD_MODIFY_ETH_RQ:
        buffer(f, &eth->buf, 16u << 3);
        eth->dbrec = ETH_DBREC;
        eth->cqn = 1;
        eth->shift = 3;
        eth->state = k & 1;
        if (k & 2) {
            split(f, eth);
        }
        return sizeof(*eth);
    case QHCA_CMD_MODIFY_ETH_SQ:
        eth->shaper = k & 3;
        return sizeof(*eth);
    case QHCA_CMD_CREATE_SHAPER:
    case QHCA_CMD_MODIFY_SHAPER:
        shaper->rate = (uint64_t)k << 20;
        shaper->burst = k;
        shaper->parent = k >> 2 & 3;
        shaper->weight = 1 | k;
        return sizeof(*shaper);
    case QHCA_CMD_ATTACH_MC:
    case QHCA_CMD_DETACH_MC:
        memcpy(in, "\xff\x0e", 2);
        in[15] = k & 1;
        return sizeof(struct qhca_mcg);
    case QHCA_CMD_CREATE_WQ:
        buffer(f, &wq->buf, 64u << 3);
        wq->dbrec = base + 0x80000 + k * 8u;
        wq->pd = wq->uar = wq->cqn = 1;
        wq->shift = 3;
        wq->stride = 6;
        return sizeof(*wq);
    case QHCA_CMD_MODIFY_WQ:
        wq->state = k & 3;
        return sizeof(*wq);
    case QHCA_CMD_CREATE_RQT:
        in[0] = k >> 1 & 7;
        in[4] = k >> 4;
        return k & 1 ? 4 : 8;
    case QHCA_CMD_CREATE_FLOW:
        flow->qpn = k & 15;
        flow->type = k >> 6;
        return sizeof(*flow);
    case QHCA_CMD_MODIFY_PORT:
        memcpy(port->mac, "\x52\x54\x00\x9a\x00\x01", 6);
        port->mtu = 9216;
        port->eth_rqn = k & 3;
        port->eth_qpn = k & 4 ? k >> 3 : QHCA_ETH_QP_NONE;
        return sizeof(*port);
    case QHCA_CMD_SET_GID:
        guest_gid(k & 7, k & 3, in);
        ((struct qhca_gid *)(void *)in)->type = 1;
        return sizeof(struct qhca_gid);
    case QHCA_CMD_SET_MC_LIST:
        return k * 8u;
    default:
        return 0;
    }
}

/* A frame for the Ethernet function, which may be any kind that it knows. */
static void frame(struct world *w, struct fz *f)
{
    uint8_t k = fz_u8(f);
    static struct made m;
    struct rng r;

    rng_init(&r, fz_u8(f));
    made_frame(&m, &r, w->node[0].mac, k % ODDS);
    world_inject(w, 0, m.b, m.len);
}

/* Tables whose entries lead to pages of the arena, in all forms. */
static void plant(struct gmem *m)
{
    uint64_t *t = gmem_ptr(m, base, ARENA / 4);
    uint64_t *dbrec = gmem_ptr(m, ETH_DBREC, 16);
    unsigned i;

    dbrec[0] = dbrec[1] = 8;

    for (i = 0; i < ARENA / 4 / 8; i++) {
        if (i / 512 % 4 == 3) { /* lists */
            t[i] = i & 1 ? 0x10000 | QHCA_BUF_SEG_VALID :
                   base + ARENA / 2 + (i & 63) * 4096u;
        } else if (i / 512 % 4) {       /* tables of pages */
            t[i] = (base + ARENA / 2 + (i & 127) * 4096u) | QHCA_BTE_VALID;
        } else {                /* tables of tables */
            t[i] = (base + (i & 63) * 4096u) | QHCA_BTE_VALID |
                   (i & 7 ? QHCA_BTE_TABLE : 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    struct qhca_config cfg;
    uint64_t out[128];
    struct guest g;
    struct world w;
    unsigned i;

    die_aborts = true;
    fuzz_config(&cfg);
    world_init(&w, 1, 1, &cfg);
    w.wire.filter = fuzz_swallow;
    w.node[0].mem.unchecked = true;
    guest_start(&g, &w.node[0], 1, &fuzz_guest);
    base = gmem_alloc(g.m, ARENA, 12, 0);
    plant(g.m);
    for (i = 0; fz_more(&f) && i < 1000; i++) {
        uint8_t in[2048] = { 0 }, op, what = fz_u8(&f), k;
        struct gcmd c;

        if (what & 0x80) {      /* a doorbell */
            guest_doorbell(&g, what >> 4 & 1, (what & 7) * 8,
                           fz_u8(&f) % 40 | (uint64_t)fz_u8(&f) << 32);
            continue;
        }
        if (what == 0x7f) {
            world_run(&w, (uint64_t)fz_u16(&f) << 8);
            continue;
        }
        if (what == 0x7e) {
            frame(&w, &f);
            continue;
        }
        op = what % 0x52;
        if (op >= 0x08 && op <= 0x0b) {     /* no commands: the last ones */
            op += QHCA_CMD_CREATE_SHAPER - 0x08;
        }
        memset(&c, 0, sizeof(c));
        c.op = op;
        k = fz_u8(&f);
        c.obj = k & 15;
        if (op >= QHCA_CMD_DESTROY_MR && op <= QHCA_CMD_MODIFY_MR) {
            c.obj = c.obj << 8 | fz_u8(&f);
        }
        c.in_len = template(&f, op, in);
        fz_spoil(&f, in, c.in_len ? c.in_len : 64);
        c.mask = op == QHCA_CMD_MODIFY_QP ?
                 fz_u16(&f) | (uint64_t)(k >> 4) << 16 : fz_u8(&f);
        if (op == QHCA_CMD_MODIFY_ETH_RQ && k < 0xe0) {
            c.mask &= 7;
        }
        if (op == QHCA_CMD_CREATE_RQT) {
            c.arg = k >> 4 & 3;
        }
        if (c.in_len) {
            c.in = in;
        }
        c.out = out;
        c.out_len = sizeof(out);
        guest_cmd(&g, &c);
        /* the commands under test may have destroyed what guest.c needs */
        if (node_reg_read(&w.node[0], QHCA_REG_STATUS, 4) &
            QHCA_STATUS_FATAL) {
            break;
        }
    }
    CHECK(world_settle(&w, 100000000000ULL), "the adapter never rests");
    node_reg_write(&w.node[0], QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    guest_drop(&g);
    w.node[0].mem.unchecked = false;
    guest_start(&g, &w.node[0], 1, &fuzz_guest);
    guest_stop(&g);
    gmem_release(&w.node[0].mem, base, ARENA);
    world_fini(&w);
    return 0;
}

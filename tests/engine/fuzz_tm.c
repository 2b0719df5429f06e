/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: tag matching.  Arbitrary messages to QPs on a TM SRQ, arbitrary
 * operations in its ring, memory that comes and goes, QPs that are reset and
 * destroyed meanwhile.  Memory permissions are on.
 */
#include "fuzz.h"
#include "godp.h"

#define MR_LEN 16384u
#define IOVA 0x100000u
#define PAIRS 2
#define TAGS 8

struct ft {
    struct world w;
    struct guest g;
    struct gcq cq, tmcq;
    struct gsrq srq;
    struct gmr mr;
    struct godp odp;
    struct gqp tx[PAIRS], rx[PAIRS];
};

static void connect(struct ft *t, struct gqp *qp, const struct gqp *peer)
{
    struct gqp_attr a;

    gqp_attr_default(&a);
    a.path_mtu = 1;
    a.timeout = 6;
    a.retry_cnt = a.rnr_retry = 2;
    a.max_rd_atomic = 2;
    a.dest_qpn = peer->qpn;
    gqp_to_init(qp, &a);
    gqp_to_rtr(qp, &t->w.node[0], &a);
    gqp_to_rts(qp, &a);
}

static void make_rx(struct ft *t, unsigned i)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .scq = &t->cq, .rcq = &t->cq, .srq = &t->srq,
    };

    gqp_create(&t->rx[i], &t->g, &in);
}

static void open(struct ft *t)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 4, .sq_stride = 7, .rq_shift = 4,
        .rq_stride = 5, .scq = &t->cq, .rcq = &t->cq,
    };
    struct gtm_init ti = {
        .cq = &t->tmcq, .max_tags = TAGS, .ops_shift = 3, .ops_stride = 7,
        .ops = &gbuf_flat4k,
    };
    struct gbuf_shape tree = { QHCA_BUF_TREE, 2, 12, 12 };
    unsigned i;

    memset(t, 0, sizeof(*t));
    fuzz_open(&t->w, &t->g, NULL);
    gcq_create(&t->cq, &t->g, 8, NULL, t->g.eq[1].eqn);
    gcq_create(&t->tmcq, &t->g, 8, NULL, t->g.eq[1].eqn);
    gsrq_create_tm(&t->srq, &t->g, 3, 6, NULL, NULL, &ti);
    godp_create(&t->odp, &t->mr, &t->g, MR_LEN, IOVA, QHCA_ACCESS_MASK,
                &tree);
    godp_in(&t->odp, 0, MR_LEN, true);
    gbuf_allow(&t->mr.buf, 0, MR_LEN, GMEM_RW);
    for (i = 0; i < PAIRS; i++) {
        gqp_create(&t->tx[i], &t->g, &in);
        make_rx(t, i);
        connect(t, &t->tx[i], &t->rx[i]);
        connect(t, &t->rx[i], &t->tx[i]);
    }
}

/* A message with a more or less valid header. */
static void message(struct ft *t, struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_SEND, QHCA_WQE_SEND_IMM, QHCA_WQE_SEND_INV,
        QHCA_WQE_RDMA_WRITE_IMM, QHCA_WQE_SEND, QHCA_WQE_SEND, QHCA_WQE_SEND,
    };
    uint8_t k = fz_u8(f), h[64] = { 0 };
    uint64_t at = fz_u8(f) * 32u;
    struct gwr w = {
        .opcode = ops[k & 7], .num_sge = 1, .remote_addr = IOVA + at,
        .rkey = t->mr.key, .flags = k >> 6, .imm = t->mr.key,
    };
    uint32_t len = fz_u16(f) & 1023, rkey = __builtin_bswap32(t->mr.key);

    h[0] = k >> 3 & 3;
    h[15] = fz_u8(f) & 7;                       /* the tag */
    h[21] = 0x10;                               /* IOVA, big-endian */
    h[22] = fz_u8(f) & 0x3f;
    memcpy(h + 24, &rkey, 4);
    h[30] = fz_u8(f) & 7;                       /* length */
    h[31] = fz_u8(f);
    if (k & 0x20) {
        fz_spoil(f, h, sizeof(h));
    }
    if (h[0] == QHCA_TMH_RNDV && !(k & 0x40)) {
        len = 32 + (len & 31);
    }
    gbuf_write(&t->mr.buf, at, h, sizeof(h));
    w.sge[0] = (struct qhca_sge){ IOVA + at, len, t->mr.key };
    if (gqp_post_send(&t->tx[k & 1], &w)) {
        gqp_ring(&t->tx[k & 1]);
    }
}

static void operation(struct ft *t, struct fz *f)
{
    uint8_t k = fz_u8(f), bytes[128];
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD + (k & 3) % 3, .flags = fz_u8(f) & 0x11,
        .unexp = fz_u8(f), .handle = fz_u8(f) & (TAGS * 2 - 1),
        .tag = fz_u8(f) & 7, .mask = k & 4 ? 7 : k & 8 ? 0 : UINT64_MAX,
        .num_sge = k >> 4 & 3, .wr_id = 1, .recv_wr_id = 2,
    };
    uint32_t n = t->srq.ops_prod;
    unsigned i;

    for (i = 0; i < o.num_sge; i++) {
        o.sge[i] = (struct qhca_sge){ IOVA + 8192 + fz_u8(f) * 8u,
                                      fz_u16(f) & 0x7ff, t->mr.key };
    }
    if (!gtm_post(&t->srq, &o, NULL)) {
        return;
    }
    if (k & 0x40) {
        uint64_t at = (uint64_t)(n & 7) << 7;

        gbuf_read(&t->srq.ops, at, bytes, sizeof(bytes));
        fz_spoil(f, bytes, sizeof(bytes));
        gbuf_write(&t->srq.ops, at, bytes, sizeof(bytes));
    }
    if (k & 0x80) {
        gtm_ring(&t->srq);
    }
    if (fz_u8(f) == 0x5a) {                     /* nonsense */
        guest_doorbell(&t->g, t->g.uar, QHCA_DB_TM, t->srq.srqn |
                       (uint64_t)fz_u32(f) << QHCA_DB_INDEX_SHIFT);
    }
}

static void receive(struct ft *t, struct fz *f)
{
    struct qhca_sge sge = { IOVA + 4096 + fz_u8(f) * 8u, fz_u16(f) & 0x3ff,
                            t->mr.key };
    uint8_t k = fz_u8(f);
    uint32_t wqe;

    if (k & 1) {
        gsrq_post(&t->srq, k, &sge, 1, &wqe);
    } else {
        gqp_post_recv(&t->tx[k >> 1 & 1], k, &sge, 1);
    }
}

static void move(struct ft *t, struct fz *f)
{
    uint8_t k = fz_u8(f);
    struct gqp *rx = &t->rx[k & 1], *tx = &t->tx[k & 1];

    switch (k >> 1 & 7) {
    case 0:
        CHECK(gqp_destroy(rx) == QHCA_ST_OK, "DESTROY_QP");
        make_rx(t, k & 1);
        break;
    case 1:
        gqp_state(rx, QHCA_QPS_ERR);
        return;
    case 2:
        gqp_state(rx, QHCA_QPS_SQD);
        return;
    case 3:
        gqp_state(rx, QHCA_QPS_RTS);
        return;
    case 4:
        gqp_state(tx, QHCA_QPS_ERR);
        return;
    default:
        gqp_state(rx, QHCA_QPS_RESET);
        break;
    }
    gqp_state(tx, QHCA_QPS_RESET);
    connect(t, tx, rx);
    connect(t, rx, tx);
}

static void serve(struct ft *t, uint32_t qpn, uint8_t how)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    unsigned k;

    guest_faults(&t->g, qpn, f);
    for (k = 0; k < QHCA_PAGE_FAULT_SIDES; k++) {
        if (!(f[k].flags & QHCA_PAGE_FAULT_VALID)) {
            continue;
        }
        if (how & 1) {
            godp_in(&t->odp, f[k].addr - IOVA, f[k].len,
                    f[k].flags & QHCA_PAGE_FAULT_WRITE);
        }
        guest_resume(&t->g, qpn, k, f[k].token, how & 2);
    }
}

static void memory(struct ft *t, struct fz *f)
{
    uint8_t k = fz_u8(f);
    unsigned i;

    if (k & 1) {
        godp_out(&t->odp, (k >> 4 & 3) * 4096u, 4096);
        return;
    }
    for (i = 0; i < PAIRS; i++) {
        serve(t, t->rx[i].qpn, k >> 1 | (k & 0x80 ? 0 : 1));
        serve(t, t->tx[i].qpn, k >> 3 | (k & 0x80 ? 0 : 1));
    }
}

static void take(struct ft *t)
{
    struct qhca_cqe c;

    while (gcq_poll(&t->tmcq, &c)) {
        if (c.flags & QHCA_CQE_F_SRQ && c.wqe_index < 8 && t->srq.nfree < 8) {
            gsrq_release(&t->srq, c.wqe_index);
        }
    }
    while (gcq_poll(&t->cq, &c)) {
        unsigned i;

        for (i = 0; i < PAIRS; i++) {
            if (c.qpn == t->tx[i].qpn && c.opcode & 0x80) {
                t->tx[i].rq_cons = c.wqe_index + 1;
            } else if (c.qpn == t->tx[i].qpn) {
                t->tx[i].sq_cons = c.wqe_index + 1;
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    struct ft t;
    unsigned i;

    open(&t);
    for (i = 0; fz_more(&f) && i < 1000; i++) {
        uint8_t what = fz_u8(&f);

        switch (what & 15) {
        case 0:
            move(&t, &f);
            break;
        case 1:
            world_run(&t.w, (uint64_t)fz_u8(&f) << (what >> 3 & 0x1e));
            break;
        case 2:
        case 3:
            receive(&t, &f);
            break;
        case 4:
            take(&t);
            break;
        case 5:
        case 6:
            memory(&t, &f);
            break;
        case 7:
        case 8:
        case 9:
        case 10:
            operation(&t, &f);
            break;
        default:
            message(&t, &f);
        }
    }
    take(&t);
    for (i = 0; i < PAIRS; i++) {
        serve(&t, t.rx[i].qpn, 2);
        serve(&t, t.tx[i].qpn, 2);
    }
    CHECK(world_settle(&t.w, 100000000000ULL), "the adapter never rests");
    for (i = 0; i < PAIRS; i++) {
        CHECK(gqp_destroy(&t.tx[i]) == QHCA_ST_OK &&
              gqp_destroy(&t.rx[i]) == QHCA_ST_OK, "DESTROY_QP");
    }
    CHECK(gsrq_destroy(&t.srq) == QHCA_ST_OK, "DESTROY_SRQ");
    CHECK(gcq_destroy(&t.cq) == QHCA_ST_OK &&
          gcq_destroy(&t.tmcq) == QHCA_ST_OK, "DESTROY_CQ");
    CHECK(godp_destroy(&t.odp) == QHCA_ST_OK, "DESTROY_MR");
    guest_stop(&t.g);
    world_fini(&t.w);
    return 0;
}

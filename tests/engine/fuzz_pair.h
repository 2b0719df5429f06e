/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One adapter with a few active QPs, for the packet and WQE fuzzers. */
#ifndef QHCA_TEST_FUZZ_PAIR_H
#define QHCA_TEST_FUZZ_PAIR_H

#include "fuzz.h"
#include "godp.h"

#define FQ_MR 16384u
#define FQ_IOVA 0x100000u
#define FQ_QPS 8

struct fq {
    struct world w;
    struct guest g;
    struct node peer;           /* pretended: just a MAC and a number */
    struct gcq cq;
    struct gsrq srq, xsrq;
    uint32_t xrcd;
    struct gmr mr;              /* its pages can be removed */
    struct godp odp;
    uint32_t mw[2];             /* windows of types 1 and 2B */
    struct gqp qp[FQ_QPS];
};

/* The peer of QP @i in the same adapter; QPNs are consecutive. */
static inline uint32_t fq_other(const struct fq *q, unsigned i)
{
    return i < 2 ? q->qp[0].qpn + !i : i >= 6 ? q->qp[6].qpn + (i == 6) :
                                       q->qp[i].qpn;
}

/*
 * QPs: 0 RC and 1 RC, connected to each other if @self (otherwise to the
 * pretended peer), 2 UC, 3 UD, 4 RC on an SRQ, 5 GSI, 6 XRC initiator, 7 its
 * target if @self.  All in RTS; keys as in FQ_*.
 */
static inline void fq_open(struct fq *q, bool self)
{
    struct gqp_init in = {
        .sq_shift = 4, .sq_stride = 8, .rq_shift = 4, .rq_stride = 6,
        .scq = &q->cq, .rcq = &q->cq,
    };
    static const uint8_t types[FQ_QPS] = {
        QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_UD, QHCA_QPT_RC,
        QHCA_QPT_GSI, QHCA_QPT_XRC_INI, QHCA_QPT_XRC_TGT
    };
    struct gbuf_shape tree = { QHCA_BUF_TREE, 2, 12, 12 };
    struct qhca_config cfg;
    struct node *peer;
    unsigned i, k;

    die_aborts = true;
    memset(q, 0, sizeof(*q));
    fuzz_config(&cfg);
    cfg.super_frames = true;
    world_init(&q->w, 1, 1, &cfg);
    q->w.wire.filter = fuzz_swallow;
    guest_start(&q->g, &q->w.node[0], 1, &fuzz_guest);
    q->peer.id = 1;
    memcpy(q->peer.mac, "\x52\x54\x00\x9a\x00\x02", 6);
    peer = self ? &q->w.node[0] : &q->peer;
    gcq_create(&q->cq, &q->g, 8, &gbuf_flat4k, q->g.eq[1].eqn);
    gsrq_create(&q->srq, &q->g, 3, 6, NULL, NULL);
    q->xrcd = guest_create(&q->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    gsrq_create_xrc(&q->xsrq, &q->g, 3, 6, q->g.pd, q->xrcd, &q->cq);
    godp_create(&q->odp, &q->mr, &q->g, FQ_MR, FQ_IOVA, QHCA_ACCESS_MASK,
                &tree);
    godp_in(&q->odp, 0, FQ_MR, true);
    gbuf_allow(&q->mr.buf, 0, FQ_MR, GMEM_RW);
    for (i = 0; i < 2; i++) {
        struct qhca_mpt m = { .pd = q->g.pd, .flags = QHCA_MR_F_MW1 << i };

        q->mw[i] = guest_create(&q->g, QHCA_CMD_CREATE_MW, &m, sizeof(m));
    }
    for (i = 0; i < FQ_QPS; i++) {
        struct gqp_attr a;

        in.type = types[i];
        in.srq = i == 4 ? &q->srq : NULL;
        in.sq = i & 1 ? &gbuf_flat4k : NULL;
        if (i >= 6) {
            in.rcq = NULL;
            in.rq_shift = in.rq_stride = 0;
        }
        if (i == 7) {
            in.scq = NULL;
            in.sq_shift = in.sq_stride = 0;
            in.xrcd = q->xrcd;
        }
        gqp_create(&q->qp[i], &q->g, &in);
        gqp_attr_default(&a);
        a.path_mtu = 1 + (i & 1);
        a.dest_qpn = self ? fq_other(q, i) : 0x77;
        if (self && (i < 2 || i >= 6)) {
            a.path_mtu = 1;
        }
        a.sq_psn = a.rq_psn = 0xfffffc;
        a.timeout = 6;
        a.retry_cnt = 2;
        a.rnr_retry = 2;
        gqp_to_init(&q->qp[i], &a);
        for (k = 0; k < 4; k++) {
            struct qhca_sge sge = { .addr = FQ_IOVA + 4096 + 600 * k,
                                    .len = 500, .lkey = q->mr.key };
            uint32_t wqe;

            if (i == 4 || i == 7) {
                gsrq_post(i == 4 ? &q->srq : &q->xsrq, k, &sge, 1, &wqe);
            } else if (i != 6) {
                gqp_post_recv(&q->qp[i], k, &sge, 1);
            }
        }
        gqp_to_rtr(&q->qp[i], peer, &a);
        gqp_to_rts(&q->qp[i], &a);
    }
}

/* Answer the page faults of QP @i; @how: bring in, fail, 0: neither. */
static inline void fq_serve(struct fq *q, unsigned i, uint8_t how)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    unsigned k;

    guest_faults(&q->g, q->qp[i].qpn, f);
    for (k = 0; k < QHCA_PAGE_FAULT_SIDES; k++) {
        if (!(f[k].flags & QHCA_PAGE_FAULT_VALID)) {
            continue;
        }
        CHECK(f[k].addr >= FQ_IOVA && f[k].len && f[k].len <= FQ_MR &&
              f[k].addr - FQ_IOVA <= FQ_MR - f[k].len, "a strange fault");
        if (how & 1) {
            godp_in(&q->odp, f[k].addr - FQ_IOVA, f[k].len,
                    f[k].flags & QHCA_PAGE_FAULT_WRITE);
        }
        guest_resume(&q->g, q->qp[i].qpn, k, f[k].token + (how & 8),
                     how & 2);
    }
}

/* Destroy the XRC SRQ of the target and recreate it with @n WQEs. */
static inline void fq_new_xsrq(struct fq *q, unsigned n)
{
    struct qhca_sge sge = { .addr = FQ_IOVA + 4096, .len = 500,
                            .lkey = q->mr.key };
    uint32_t wqe;

    CHECK(gsrq_destroy(&q->xsrq) == QHCA_ST_OK, "DESTROY_SRQ");
    gsrq_create_xrc(&q->xsrq, &q->g, 3, 6, q->g.pd, q->xrcd, &q->cq);
    while (n--) {
        gsrq_post(&q->xsrq, n, &sge, 1, &wqe);
    }
}

/* It must be possible to destroy every object, whatever happened to it. */
static inline void fq_close(struct fq *q)
{
    struct qhca_cqe c;
    unsigned i;

    while (gcq_poll(&q->cq, &c)) {
    }
    CHECK(world_settle(&q->w, 100000000000ULL), "the adapter never rests");
    for (i = 0; i < FQ_QPS; i++) {
        CHECK(gqp_destroy(&q->qp[i]) == QHCA_ST_OK, "DESTROY_QP");
    }
    CHECK(gsrq_destroy(&q->srq) == QHCA_ST_OK, "DESTROY_SRQ");
    CHECK(gsrq_destroy(&q->xsrq) == QHCA_ST_OK, "DESTROY_SRQ");
    CHECK(guest_simple(&q->g, QHCA_CMD_FREE_XRCD, q->xrcd) == QHCA_ST_OK,
          "FREE_XRCD");
    CHECK(gcq_destroy(&q->cq) == QHCA_ST_OK, "DESTROY_CQ");
    for (i = 0; i < 2; i++) {
        CHECK(guest_simple(&q->g, QHCA_CMD_DESTROY_MR, q->mw[i]) ==
              QHCA_ST_OK, "DESTROY_MR of a window");
    }
    CHECK(godp_destroy(&q->odp) == QHCA_ST_OK, "DESTROY_MR");
    guest_stop(&q->g);
    CHECK(!q->w.node[0].mem.mapped_pages, "the test leaks");
    world_fini(&q->w);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One adapter with a few QPs at work, for the packet and WQE fuzzers. */
#ifndef QHCA_TEST_FUZZ_PAIR_H
#define QHCA_TEST_FUZZ_PAIR_H

#include "fuzz.h"

#define FQ_MR 16384u
#define FQ_IOVA 0x100000u
#define FQ_QPS 6

struct fq {
    struct world w;
    struct guest g;
    struct node peer;           /* pretended: a MAC and a number */
    struct gcq cq;
    struct gsrq srq;
    struct gmr mr;
    struct gqp qp[FQ_QPS];
};

/*
 * QPs: 0 RC and 1 RC of each other when @self (else of the pretended peer),
 * 2 UC, 3 UD, 4 RC on an SRQ, 5 GSI.  All in RTS; keys as in FQ_*.
 */
static inline void fq_open(struct fq *q, bool self)
{
    struct gqp_init in = {
        .sq_shift = 4, .sq_stride = 8, .rq_shift = 4, .rq_stride = 6,
        .scq = &q->cq, .rcq = &q->cq,
    };
    static const uint8_t types[FQ_QPS] = {
        QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_UD, QHCA_QPT_RC,
        QHCA_QPT_GSI
    };
    struct gbuf_shape tree = { QHCA_BUF_TREE, 2, 12, 12 };
    struct qhca_config cfg;
    struct node *peer;
    unsigned i, k;

    die_aborts = true;
    memset(q, 0, sizeof(*q));
    fuzz_config(&cfg);
    world_init(&q->w, 1, 1, &cfg);
    q->w.wire.filter = fuzz_swallow;
    guest_start(&q->g, &q->w.node[0], 1, &fuzz_guest);
    q->peer.id = 1;
    memcpy(q->peer.mac, "\x52\x54\x00\x9a\x00\x02", 6);
    peer = self ? &q->w.node[0] : &q->peer;
    gcq_create(&q->cq, &q->g, 8, &gbuf_flat4k, q->g.eq[1].eqn);
    gsrq_create(&q->srq, &q->g, 3, 6, NULL, NULL);
    gmr_create(&q->mr, &q->g, FQ_MR, FQ_IOVA, QHCA_ACCESS_MASK, &tree);
    gbuf_allow(&q->mr.buf, 0, FQ_MR, GMEM_RW);
    for (i = 0; i < FQ_QPS; i++) {
        struct gqp_attr a;

        in.type = types[i];
        in.srq = i == 4 ? &q->srq : NULL;
        in.sq = i & 1 ? &gbuf_flat4k : NULL;
        gqp_create(&q->qp[i], &q->g, &in);
        gqp_attr_default(&a);
        a.path_mtu = 1 + (i & 1);
        a.dest_qpn = self && i < 2 ? q->qp[0].qpn + !i : 0x77;
        if (self && i < 2) {
            a.path_mtu = 1;
        } else if (self) {
            a.dest_qpn = q->qp[i].qpn;
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

            if (i == 4) {
                gsrq_post(&q->srq, k, &sge, 1, &wqe);
            } else {
                gqp_post_recv(&q->qp[i], k, &sge, 1);
            }
        }
        gqp_to_rtr(&q->qp[i], peer, &a);
        gqp_to_rts(&q->qp[i], &a);
    }
}

/* Every object must go, whatever was done to it. */
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
    CHECK(gcq_destroy(&q->cq) == QHCA_ST_OK, "DESTROY_CQ");
    CHECK(gmr_destroy(&q->mr) == QHCA_ST_OK, "DESTROY_MR");
    guest_stop(&q->g);
    CHECK(!q->w.node[0].mem.mapped_pages, "the test leaks");
    world_fini(&q->w);
}

#endif

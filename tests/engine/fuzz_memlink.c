/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the peer of a memory link (memlinkpeer.h).  It also rings bells,
 * answers markers, and receives what the adapter sends, or does not.  Meanwhile
 * memory is revoked, QPs come and go, links are cut and attached again.
 */
#include "fuzz_pair.h"
#include "memlinkpeer.h"

#define TM_QP FQ_QPS            /* after those of fuzz_pair.h */
#define QPS (FQ_QPS + 1)

struct fm {
    struct fq q;
    struct gsrq tm;
    struct gqp tmqp;
    struct mlpeer p;
};

/*
 * Data that the adapter sends and receives; too large to be made for each
 * input.
 */
static struct qhca_shring *ring[2];

static struct qhca *engine(struct fm *m)
{
    return m->q.g.n->e;
}

static struct gqp *qp_of(struct fm *m, unsigned i)
{
    return i == TM_QP ? &m->tmqp : &m->q.qp[i];
}

static void make_tm_qp(struct fm *m)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .scq = &m->q.cq, .rcq = &m->q.cq,
        .srq = &m->tm,
    };

    gqp_create(&m->tmqp, &m->q.g, &in);
    mlp_connect(&m->tmqp, &m->q.peer);
}

static void open(struct fm *m)
{
    struct gtm_init ti = {
        .cq = &m->q.cq, .max_tags = 4, .ops_shift = 3, .ops_stride = 7,
    };
    struct gtm_op op = {
        .opcode = QHCA_WQE_TAG_ADD, .tag = 1, .mask = 7, .num_sge = 1,
    };
    struct qhca_sge sge;
    unsigned i;
    uint32_t n;

    memset(&m->p, 0, sizeof(m->p));
    for (i = 0; i < 2; i++) {
        if (!ring[i]) {
            ring[i] = mlp_ring();
        }
        m->p.ring[i] = ring[i];
    }
    mlp_regions(&m->p);
    memset(&m->tm, 0, sizeof(m->tm));
    fq_open(&m->q, false);
    gsrq_create_tm(&m->tm, &m->q.g, 3, 6, NULL, NULL, &ti);
    sge = (struct qhca_sge){ FQ_IOVA + 4096, 500, m->q.mr.key };
    op.sge[0] = sge;
    gtm_post(&m->tm, &op, &n);
    gtm_ring(&m->tm);
    gsrq_post(&m->tm, 1, &sge, 1, &n);
    gsrq_post(&m->tm, 2, &sge, 1, &n);
    make_tm_qp(m);
    m->p.victim = m->q.g.n;
    m->p.self = m->q.peer;
    for (i = 0; i < QPS; i++) {
        m->p.qp[i] = qp_of(m, i);
    }
    m->p.qps = QPS;
    m->p.key = m->q.mr.key;
    m->p.iova = FQ_IOVA;
    m->p.srqn = m->q.xsrq.srqn;
    mlp_attach(&m->p, 1);
    node_memlinks_allow(m->q.g.n, true);
}

static void close(struct fm *m)
{
    unsigned i;

    /* it comes to rest with the link as it is, and without it */
    CHECK(world_settle(&m->q.w, 100000000000ULL), "the adapter never rests");
    qhca_memlink_detach(engine(m), m->p.id);
    CHECK(world_settle(&m->q.w, 100000000000ULL), "the adapter never rests");
    CHECK(gqp_destroy(&m->tmqp) == QHCA_ST_OK, "DESTROY_QP");
    CHECK(gsrq_destroy(&m->tm) == QHCA_ST_OK, "DESTROY_SRQ");
    fq_close(&m->q);
    for (i = 0; i < 2; i++) {
        free(m->p.region[i]);
    }
}

static void marker(struct fm *m, struct fz *f)
{
    uint8_t b[60] = { 0 };

    memcpy(b, m->q.g.n->mac, 6);
    memcpy(b + 6, m->q.peer.mac, 6);
    memcpy(b + 12, "\x88\xb5qhML", 6);
    b[25] = fz_u8(f) & 3;
    b[29] = fz_u8(f);
    if (b[29] & 7) {
        memcpy(b + 30, m->q.peer.mac, 6);
        memcpy(b + 36, m->q.g.n->mac, 6);
    }
    world_inject(&m->q.w, 0, b, sizeof(b) - (b[29] == 255));
}

static void post_work(struct fm *m, struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_READ,
        QHCA_WQE_RDMA_WRITE, QHCA_WQE_FETCH_ADD, QHCA_WQE_SEND,
        QHCA_WQE_SEND_IMM, QHCA_WQE_RDMA_WRITE_IMM
    };
    static const uint8_t qps[8] = { 0, 1, 4, 2, 3, 4, 0, 6 };
    uint8_t k = fz_u8(f);
    struct gqp *qp = qp_of(m, qps[k & 7]);
    struct gwr w = {
        .opcode = ops[k >> 5], .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
        .sge[0] = { .addr = FQ_IOVA, .len = fz_u16(f) % 3000,
                    .lkey = m->q.mr.key },
        .remote_addr = FQ_IOVA, .rkey = m->q.mr.key, .srqn = 1,
        .dest_qpn = 0x77, .qkey = 1,
    };

    if (qp->type == QHCA_QPT_UD) {
        w.opcode = QHCA_WQE_SEND;
        w.sge[0].len %= 512;
        guest_av(&m->q.g, &m->q.peer, 0, &w.av);
    }
    if (w.opcode == QHCA_WQE_FETCH_ADD) {
        w.sge[0].len = 8;
    }
    if (k & 8) {
        w.num_sge = 2;
        w.sge[1] = w.sge[0];
    }
    if (gqp_post_send(qp, &w)) {
        gqp_ring(qp);
    }
}

static void take_back(struct fm *m, struct fz *f, uint8_t k)
{
    struct qhca_mpt mpt = { .access = QHCA_ACCESS_MASK };
    struct gcmd c = {
        .op = QHCA_CMD_MODIFY_MR, .obj = m->q.mr.key, .in = &mpt,
        .in_len = sizeof(mpt), .mask = QHCA_MR_M_ACCESS,
    };

    switch (k & 3) {
    case 0:
        godp_out(&m->q.odp, fz_u16(f) % FQ_MR, 1);
        break;
    case 1:
        guest_cmd(&m->q.g, &c);
        break;
    case 2:
        gqp_state(qp_of(m, fz_u8(f) % QPS), k & 4 ? QHCA_QPS_ERR :
                                                    QHCA_QPS_RESET);
        break;
    case 3:
        CHECK(gqp_destroy(&m->tmqp) == QHCA_ST_OK, "DESTROY_QP");
        make_tm_qp(m);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    struct fm m;
    unsigned i;

    open(&m);
    for (i = 0; fz_more(&f) && i < 1000; i++) {
        uint8_t what = fz_u8(&f);

        switch (what & 15) {
        case 0:                 /* anything, where the adapter reads next */
            fz_bytes(&f, &ring[1]->data[(ring[1]->cons + (what >> 4) * 16) &
                                        0xffff], fz_u8(&f));
            break;
        case 1:
            world_run(&m.q.w, (uint64_t)fz_u8(&f) << (what >> 3 & 0x1e));
            break;
        case 2:
        case 3:
            post_work(&m, &f);
            break;
        case 4:
        case 5:
            mlp_other_end(&m.p, &f, what >> 4);
            break;
        case 6:
            marker(&m, &f);
            break;
        case 7:
            node_memlinks_allow(m.q.g.n, what >> 4);
            break;
        case 8:
            qhca_memlink_detach(engine(&m), m.p.id);
            mlp_attach(&m.p, 1);
            break;
        case 9:
            take_back(&m, &f, what >> 4);
            break;
        case 10:
            fq_serve(&m.q, (what >> 4) % FQ_QPS, fz_u8(&f));
            break;
        case 11:
            node_memlink_bell(m.q.g.n, m.p.id);
            node_drain(m.q.g.n);
            break;
        default:
            mlp_record(&m.p, &f);
            break;
        }
    }
    close(&m);
    return 0;
}

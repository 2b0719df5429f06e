/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the peer of a memory link.  The input owns rings and regions: it
 * writes records, more or less correct ones and to the PSNs that QPs expect,
 * indices, flags and the states of records; it rings bells, answers markers,
 * and receives what the adapter sends, or does not.  Meanwhile memory is
 * revoked, QPs come and go, links are cut and attached again.
 */
#include <stdlib.h>

#include "fuzz_pair.h"
#include "adapter/adapter.h"
#include "transport/rc.h"

#define TM_QP FQ_QPS            /* after those of fuzz_pair.h */
#define QPS (FQ_QPS + 1)
#define REGION 8192u
#define SMALL 100u

struct fm {
    struct fq q;
    struct gsrq tm;
    struct gqp tmqp;
    unsigned id;
    uint8_t *region[2];
    struct qhca_shring_rx rx;   /* of a peer that receives */
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

static void attach(struct fm *m)
{
    struct qhca_memlink_region r[2] = {
        { m->region[0], REGION }, { m->region[1], SMALL },
    };
    struct qhca_memlink_config c = {
        .token = 1, .tx = ring[0], .rx = ring[1], .region = r, .regions = 2,
    };

    memset(ring[0], 0, sizeof(*ring[0]));
    memset(ring[1], 0, sizeof(*ring[1]));
    memcpy(c.mac, m->q.peer.mac, 6);
    m->id = qhca_memlink_attach(engine(m), &c);
    CHECK(m->id, "qhca_memlink_attach");
    memset(&m->rx, 0, sizeof(m->rx));
    m->rx.ring = ring[0];
}

static struct qhca_memlink *link_of(struct fm *m)
{
    struct qhca_list *all = &engine(m)->ml->all;

    return qhca_list_empty(all) ? NULL :
           qhca_container(all->next, struct qhca_memlink, link);
}

static void make_tm_qp(struct fm *m)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .scq = &m->q.cq, .rcq = &m->q.cq,
        .srq = &m->tm,
    };
    struct gqp_attr a;

    gqp_create(&m->tmqp, &m->q.g, &in);
    gqp_attr_default(&a);
    a.path_mtu = 1;
    a.dest_qpn = 0x77;
    a.sq_psn = a.rq_psn = 0xfffffc;
    a.timeout = 6;
    a.retry_cnt = a.rnr_retry = 2;
    gqp_to_init(&m->tmqp, &a);
    gqp_to_rtr(&m->tmqp, &m->q.peer, &a);
    gqp_to_rts(&m->tmqp, &a);
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

    for (i = 0; i < 2; i++) {
        if (!ring[i]) {
            ring[i] = aligned_alloc(4096, sizeof(*ring[i]));
            memset(ring[i], 0, sizeof(*ring[i]));
        }
        m->region[i] = malloc(i ? SMALL : REGION);
        memset(m->region[i], 0x11 * (i + 1), i ? SMALL : REGION);
    }
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
    attach(m);
    node_memlinks_allow(m->q.g.n, true);
}

static void close(struct fm *m)
{
    unsigned i;

    /* it comes to rest with the link as it is, and without it */
    CHECK(world_settle(&m->q.w, 100000000000ULL), "the adapter never rests");
    qhca_memlink_detach(engine(m), m->id);
    CHECK(world_settle(&m->q.w, 100000000000ULL), "the adapter never rests");
    CHECK(gqp_destroy(&m->tmqp) == QHCA_ST_OK, "DESTROY_QP");
    CHECK(gsrq_destroy(&m->tm) == QHCA_ST_OK, "DESTROY_SRQ");
    fq_close(&m->q);
    for (i = 0; i < 2; i++) {
        free(m->region[i]);
    }
}

/* ---- records ---- */

/* A packet's headers, for @payload bytes; returns their length. */
static uint32_t headers(struct fm *m, struct fz *f, uint8_t how, uint8_t op,
                        uint32_t payload, uint8_t *b)
{
    uint8_t *ip = b + 14, *udp = ip + 20, *bth = udp + 8, *ext = bth + 12;
    struct gqp *qp = qp_of(m, (how & 15) % QPS);
    struct qhca_op_info info = qhca_op_info(op);
    int8_t delta = (int8_t)fz_u8(f);
    uint32_t psn = 0, len;
    struct qhca_qpc c;
    uint8_t x[16];

    if (qhca_query_qp(engine(m), qp->qpn, &c)) {
        psn = info.flags & QHCA_OPF_RESP ? c.una_psn : c.exp_psn;
    }
    memset(b, 0, QHCA_SHRING_HEAD_MAX);
    memcpy(b, m->q.g.n->mac, 6);
    memcpy(b + 6, m->q.peer.mac, 6);
    b[12] = 0x08;
    ip[0] = 0x45;
    ip[8] = 64;
    ip[9] = 17;
    guest_gid(1, 0, x);
    memcpy(ip + 12, x + 12, 4);
    guest_gid(0, 0, x);
    memcpy(ip + 16, x + 12, 4);
    udp[0] = 0xc0;
    udp[2] = QHCA_ROCE_UDP_PORT >> 8;
    udp[3] = QHCA_ROCE_UDP_PORT & 0xff;
    bth[0] = op;
    bth[1] = (uint8_t)((fz_u8(f) & 0x80) | (-payload & 3) << 4);
    bth[2] = bth[3] = 0xff;
    qhca_put_be32(bth + 4, qp->qpn);
    qhca_put_be32(bth + 8, ((psn + (uint32_t)(delta >> 4)) & 0xffffff) |
                           (delta & 8 ? 0x80000000u : 0));
    fz_bytes(f, ext, info.ext < 64 ? info.ext : 64);
    if (info.flags & QHCA_OPF_XRCETH) {
        qhca_put_be32(ext, m->q.xsrq.srqn);
        ext += QHCA_XRCETH_LEN;
    }
    if (info.flags & QHCA_OPF_RETH) {
        qhca_put_be64(ext, FQ_IOVA + (ext[7] & 0x3f) * 8u);
        qhca_put_be32(ext + 8, m->q.mr.key);
        qhca_put_be32(ext + 12, how & 0x40 ? payload :
                      (uint32_t)ext[14] << 5 & 0x1fff);
    } else if (info.flags & QHCA_OPF_ATOMIC && !(info.flags & QHCA_OPF_RESP)) {
        qhca_put_be64(ext, FQ_IOVA + (ext[7] & 0x3f) * 4u);
        qhca_put_be32(ext + 8, m->q.mr.key);
    } else if (info.flags & QHCA_OPF_DETH) {
        qhca_put_be32(ext, qp->type == QHCA_QPT_GSI ? QHCA_GSI_QKEY :
                                                      0x11111111);
    }
    len = 20 + 8 + 12 + info.ext + 4;
    qhca_put_be16(ip + 2, (uint16_t)len);
    qhca_put_be16(udp + 4, (uint16_t)(len - 20));
    return 14 + len - 4;
}

/* Refer to @payload bytes of the regions; returns the number of segments. */
static uint32_t segments(struct fz *f, uint32_t payload,
                         struct qhca_shring_seg *s)
{
    uint32_t n, len;

    for (n = 0; payload && n < QHCA_MEMLINK_SEGS; n++) {
        uint8_t k = fz_u8(f);
        uint32_t most = k & 1 ? SMALL : REGION;

        len = k & 2 ? 1u + k % SMALL : most;
        len = len < payload ? len : payload;
        s[n] = (struct qhca_shring_seg){
            .off = k & 4 ? most - len : 0, .len = len, .region = k & 1,
        };
        payload -= len;
    }
    return n;
}

static void record(struct fm *m, struct fz *f)
{
    static const uint32_t states[] = {
        QHCA_SHRING_INLINE, QHCA_SHRING_REFS, QHCA_SHRING_REVOKED,
        QHCA_SHRING_COPYING,
    };
    struct {
        struct qhca_shring_record r;
        union {
            struct qhca_shring_seg s[QHCA_MEMLINK_SEGS];
            uint8_t b[5120];
        };
    } x;
    uint8_t how = fz_u8(f), size = fz_u8(f), op = fz_u8(f);
    uint32_t at = ring[1]->prod, left, body;

    memset(&x, 0, sizeof(x));
    x.r.packets = 1 + (size & 15) * (size >> 7);
    x.r.mtu = 256 << (size >> 4 & 3);
    x.r.payload = (x.r.packets - 1u) * x.r.mtu + fz_u8(f);
    x.r.state = states[how >> 4 & 3];
    x.r.head = (uint16_t)headers(m, f, how, op, x.r.payload, x.r.heads);
    if (x.r.state == QHCA_SHRING_INLINE) {
        body = x.r.payload;
        memset(x.b, how, sizeof(x.b));
        fz_bytes(f, x.b, 32);
    } else {
        x.r.segs = (uint16_t)segments(f, x.r.payload, x.s);
        body = x.r.segs * sizeof(x.s[0]);
    }
    body = ((uint32_t)sizeof(x.r) + body + 63) & ~63u;
    x.r.len = body;
    if (how & 0x80) {
        fz_spoil(f, &x, body < sizeof(x) ? body : sizeof(x));
    }
    left = QHCA_SHRING_DATA - at % QHCA_SHRING_DATA;
    if (left >= sizeof(x)) {
        memcpy(&ring[1]->data[at % QHCA_SHRING_DATA], &x, sizeof(x));
    }
    ring[1]->prod += body;
}

/* ---- the ring that the adapter fills ---- */

static void other_end(struct fm *m, struct fz *f, uint8_t k)
{
    struct qhca_memlink *l = link_of(m);
    uint32_t v = fz_u8(f);

    switch (k & 7) {
    case 0:
        ring[0]->cons = v & 1 ? ring[0]->prod : fz_u32(f);
        break;
    case 1:
        ring[0]->sleeps = v;
        ring[1]->wants_room = v >> 1;
        break;
    case 2:
        ring[0]->refuses = v & 1;
        break;
    case 3:                     /* the state of what it has sent */
        if (l && l->ref_head != l->ref_tail) {
            uint32_t pos = l->ref[(l->ref_tail + (v >> 3)) %
                                  QHCA_MEMLINK_REFS].pos;
            struct qhca_shring_record *r;

            r = (void *)&ring[0]->data[pos % QHCA_SHRING_DATA];
            r->state = v & 7;
        }
        break;
    case 4:                     /* receive */
        m->rx.cons = ring[0]->cons;
        if (m->rx.cons % 64 == 0 &&
            qhca_shring_next(&m->rx) == QHCA_SHRING_OK && v & 1) {
            qhca_shring_done(&m->rx);
        }
        break;
    case 5:                     /* all markers arrive */
    case 6:
        if (l) {
            ring[0]->marker = l->marker + (v >> 7);
        }
        break;
    case 7:
        ring[1]->prod = v & 1 ? ring[1]->cons : fz_u32(f);
        break;
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
            other_end(&m, &f, what >> 4);
            break;
        case 6:
            marker(&m, &f);
            break;
        case 7:
            node_memlinks_allow(m.q.g.n, what >> 4);
            break;
        case 8:
            qhca_memlink_detach(engine(&m), m.id);
            attach(&m);
            break;
        case 9:
            take_back(&m, &f, what >> 4);
            break;
        case 10:
            fq_serve(&m.q, (what >> 4) % FQ_QPS, fz_u8(&f));
            break;
        case 11:
            node_memlink_bell(m.q.g.n, m.id);
            node_drain(m.q.g.n);
            break;
        default:
            record(&m, &f);
            break;
        }
    }
    close(&m);
    return 0;
}

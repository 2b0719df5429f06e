/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile peer of a memory link, without an adapter of its own: it owns rings
 * and regions, and writes records, more or less correct ones and to the PSNs
 * that QPs expect, indices, flags and the states of records.  What it does
 * comes from a string of bytes: a fuzzer's input, or random numbers.
 */
#ifndef QHCA_TEST_MEMLINKPEER_H
#define QHCA_TEST_MEMLINKPEER_H

#include <stdlib.h>

#include "fuzz.h"
#include "adapter/adapter.h"
#include "base/csum.h"
#include "transport/rc.h"

#define MLP_REGION 8192u
#define MLP_SMALL 100u
#define MLP_QPS 64u

struct mlpeer {
    const struct node *victim;
    struct node self;           /* pretended: just a MAC and a number */
    /* what the victim sends and receives */
    struct qhca_shring *ring[2];
    uint8_t *region[2];
    unsigned id;                /* of the link */
    struct qhca_shring_rx rx;   /* of a peer that receives */
    /* targets: QPs, and a region and an XRC SRQ that packets name */
    const struct gqp *qp[MLP_QPS];
    unsigned qps;
    uint32_t key, srqn;
    uint64_t iova;
    /* Never claim to be another peer, which would be able to do harm. */
    bool own_source;
    bool impostor;              /* always claim to be the QP's own peer */
};

/* Connect @qp to a QP of @peer that does not exist. */
static inline void mlp_connect(struct gqp *qp, const struct node *peer)
{
    struct gqp_attr a;

    gqp_attr_default(&a);
    a.path_mtu = 1;
    a.dest_qpn = 0x77;
    a.sq_psn = a.rq_psn = 0xfffffc;
    a.timeout = 6;
    a.retry_cnt = a.rnr_retry = 2;
    gqp_to_init(qp, &a);
    gqp_to_rtr(qp, peer, &a);
    gqp_to_rts(qp, &a);
}

/* Memory of exactly its size, so that a sanitizer knows its end. */
static inline void mlp_regions(struct mlpeer *m)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        uint32_t len = i ? MLP_SMALL : MLP_REGION;

        m->region[i] = malloc(len);
        CHECK(m->region[i], "no memory");
        memset(m->region[i], 0x11 * (i + 1), len);
    }
}

static inline struct qhca_shring *mlp_ring(void)
{
    struct qhca_shring *r = aligned_alloc(4096, sizeof(*r));

    CHECK(r, "no memory");
    memset(r, 0, sizeof(*r));
    return r;
}

static inline void mlp_attach(struct mlpeer *m, uint64_t token)
{
    struct qhca_memlink_region r[2] = {
        { m->region[0], MLP_REGION }, { m->region[1], MLP_SMALL },
    };
    struct qhca_memlink_config c = {
        .token = token, .tx = m->ring[0], .rx = m->ring[1], .region = r,
        .regions = 2,
    };

    memset(m->ring[0], 0, sizeof(*m->ring[0]));
    memset(m->ring[1], 0, sizeof(*m->ring[1]));
    memcpy(c.mac, m->self.mac, 6);
    m->id = qhca_memlink_attach(m->victim->e, &c);
    CHECK(m->id, "qhca_memlink_attach");
    memset(&m->rx, 0, sizeof(m->rx));
    m->rx.ring = m->ring[0];
}

/* The victim's end; NULL: there is none. */
static inline struct qhca_memlink *mlp_link(const struct mlpeer *m)
{
    struct qhca_list *all = &m->victim->e->ml->all, *i;

    for (i = all->next; i != all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->id == m->id) {
            return l;
        }
    }
    return NULL;
}

/* ---- records ---- */

/* A packet's headers, for @payload bytes; returns their length. */
static inline uint32_t mlp_headers(struct mlpeer *m, struct fz *f,
                                   uint8_t how, uint8_t op, uint32_t payload,
                                   uint8_t *b)
{
    uint8_t *ip = b + 14, *udp = ip + 20, *bth = udp + 8, *ext = bth + 12;
    const struct gqp *qp = m->qp[(how & 15) % m->qps];
    struct qhca_op_info info = qhca_op_info(op);
    int8_t delta = (int8_t)fz_u8(f);
    uint32_t psn = 0, len;
    struct qhca_qpc c;
    uint8_t x[16];

    memset(&c, 0, sizeof(c));
    if (qhca_query_qp(m->victim->e, qp->qpn, &c)) {
        psn = info.flags & QHCA_OPF_RESP ? c.una_psn : c.exp_psn;
    }
    memset(b, 0, QHCA_SHRING_HEAD_MAX);
    memcpy(b, m->victim->mac, 6);
    memcpy(b + 6, m->self.mac, 6);
    b[12] = 0x08;
    ip[0] = 0x45;
    ip[8] = 64;
    ip[9] = 17;
    guest_gid(m->self.id, 0, x);
    memcpy(ip + 12, m->impostor ? c.av.dgid + 12 : x + 12, 4);
    guest_gid(m->victim->id, 0, x);
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
        qhca_put_be32(ext, m->srqn);
        ext += QHCA_XRCETH_LEN;
    }
    if (info.flags & QHCA_OPF_RETH) {
        qhca_put_be64(ext, m->iova + (ext[7] & 0x3f) * 8u);
        qhca_put_be32(ext + 8, m->key);
        qhca_put_be32(ext + 12, how & 0x40 ? payload :
                      (uint32_t)ext[14] << 5 & 0x1fff);
    } else if (info.flags & QHCA_OPF_ATOMIC && !(info.flags & QHCA_OPF_RESP)) {
        qhca_put_be64(ext, m->iova + (ext[7] & 0x3f) * 4u);
        qhca_put_be32(ext + 8, m->key);
    } else if (info.flags & QHCA_OPF_DETH) {
        qhca_put_be32(ext, qp->type == QHCA_QPT_GSI ? QHCA_GSI_QKEY :
                                                      0x11111111);
    }
    len = 20 + 8 + 12 + info.ext + 4;
    qhca_put_be16(ip + 2, (uint16_t)len);
    qhca_put_be16(udp + 4, (uint16_t)(len - 20));
    qhca_csum_fill_ip(ip, 4, QHCA_IP4_HLEN);
    return 14 + len - 4;
}

/* Refer to @payload bytes of the regions; returns the number of segments. */
static inline uint32_t mlp_segments(struct fz *f, uint32_t payload,
                                    struct qhca_shring_seg *s)
{
    uint32_t n, len;

    for (n = 0; payload && n < QHCA_MEMLINK_SEGS; n++) {
        uint8_t k = fz_u8(f);
        uint32_t most = k & 1 ? MLP_SMALL : MLP_REGION;

        len = k & 2 ? 1u + k % MLP_SMALL : most;
        len = len < payload ? len : payload;
        s[n] = (struct qhca_shring_seg){
            .off = k & 4 ? most - len : 0, .len = len, .region = k & 1,
        };
        payload -= len;
    }
    return n;
}

static inline void mlp_record(struct mlpeer *m, struct fz *f)
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
    uint8_t how = fz_u8(f), size = fz_u8(f), op = fz_u8(f), source[4];
    uint32_t at = m->ring[1]->prod, left, body;

    memset(&x, 0, sizeof(x));
    x.r.packets = 1 + (size & 15) * (size >> 7);
    x.r.mtu = 256 << (size >> 4 & 3);
    x.r.payload = (x.r.packets - 1u) * x.r.mtu + fz_u8(f);
    x.r.state = states[how >> 4 & 3];
    x.r.head = (uint16_t)mlp_headers(m, f, how, op, x.r.payload, x.r.heads);
    memcpy(source, x.r.heads + 26, 4);
    if (x.r.state == QHCA_SHRING_INLINE) {
        body = x.r.payload;
        memset(x.b, how, sizeof(x.b));
        fz_bytes(f, x.b, 32);
    } else {
        x.r.segs = (uint16_t)mlp_segments(f, x.r.payload, x.s);
        body = x.r.segs * sizeof(x.s[0]);
    }
    body = ((uint32_t)sizeof(x.r) + body + 63) & ~63u;
    x.r.len = body;
    if (how & 0x80) {
        fz_spoil(f, &x, body < sizeof(x) ? body : sizeof(x));
    }
    if (m->own_source) {
        memcpy(x.r.heads + 26, source, 4);
    }
    left = QHCA_SHRING_DATA - at % QHCA_SHRING_DATA;
    if (left >= sizeof(x)) {
        memcpy(&m->ring[1]->data[at % QHCA_SHRING_DATA], &x, sizeof(x));
    }
    m->ring[1]->prod += body;
}

/* ---- the ring that the adapter fills ---- */

static inline void mlp_other_end(struct mlpeer *m, struct fz *f, uint8_t k)
{
    struct qhca_memlink *l = mlp_link(m);
    uint32_t v = fz_u8(f);

    switch (k & 7) {
    case 0:
        m->ring[0]->cons = v & 1 ? m->ring[0]->prod : fz_u32(f);
        break;
    case 1:
        m->ring[0]->sleeps = v;
        m->ring[1]->wants_room = v >> 1;
        break;
    case 2:
        m->ring[0]->refuses = v & 1;
        break;
    case 3:                     /* the state of what it has sent */
        if (l && l->ref_head != l->ref_tail) {
            uint32_t pos = l->ref[(l->ref_tail + (v >> 3)) %
                                  QHCA_MEMLINK_REFS].pos;
            struct qhca_shring_record *r;

            r = (void *)&m->ring[0]->data[pos % QHCA_SHRING_DATA];
            r->state = v & 7;
        }
        break;
    case 4:                     /* receive */
        m->rx.cons = m->ring[0]->cons;
        if (m->rx.cons % 64 == 0 &&
            qhca_shring_next(&m->rx) == QHCA_SHRING_OK && v & 1) {
            qhca_shring_done(&m->rx);
        }
        break;
    case 5:                     /* all markers arrive */
    case 6:
        if (l) {
            m->ring[0]->marker = l->marker + (v >> 7);
        }
        break;
    case 7:
        m->ring[1]->prod = v & 1 ? m->ring[1]->cons : fz_u32(f);
        break;
    }
}

#endif /* QHCA_TEST_MEMLINKPEER_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fixture of the tests of memory links: three adapters on a perfect wire, all
 * of them linked, with a QP on each of the first two.
 */
#ifndef QHCA_TEST_MEMLINKFIX_H
#define QHCA_TEST_MEMLINKFIX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest.h"
#include "adapter/adapter.h"

#define NODES 3u
#define IOVA 0x500000000000ull
#define BUF (1u << 20)
#define MTU 1024u
#define SIG QHCA_WQE_F_SIGNALED
#define MS 1000000ull
#define US 1000ull
#define GARBAGE 0xba

struct side {
    struct node *n;
    struct qhca *e;
    struct guest g;
    struct gcq cq;
    struct gmr mr;              /* all access rights, at IOVA */
    struct gqp qp;              /* of nodes 0 and 1 */
    bool (*dma_read)(void *opaque, uint64_t addr, void *buf, size_t len);
    uint64_t read;              /* bytes of the region read by DMA */
};

struct fix {
    struct world w;             /* must be first, for the filter */
    struct side s[NODES];
    /* sent on the wire */
    unsigned packets, markers;
    unsigned lose_marker;       /* bits: the first, second, ... get lost */
    unsigned last_marker;
    struct {
        uint32_t value;
        unsigned count;         /* of different ones */
    } marker[NODES][NODES];     /* from, to */
    struct qhca_cqe cqe;
};

static inline unsigned fix_be32(const uint8_t *p)
{
    return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 |
           (unsigned)p[2] << 8 | p[3];
}

static inline bool fix_filter(struct world *w, unsigned src, uint8_t *frame,
                              size_t *len)
{
    struct fix *f = (struct fix *)w;
    unsigned dst = 0, value;

    if (frame[12] != 0x88 || frame[13] != 0xb5) {
        f->packets++;
        return true;
    }
    assert_true(*len >= 60);
    f->markers++;
    value = fix_be32(frame + 26);
    while (memcmp(frame, f->s[dst].n->mac, 6)) {
        dst++;
        assert_true(dst < NODES);
    }
    if (f->marker[src][dst].value != value) {
        f->marker[src][dst].value = value;
        f->marker[src][dst].count++;
    }
    f->last_marker = f->marker[src][dst].count;
    return !(f->lose_marker & 1u << (f->last_marker & 31));
}

/* Count the bytes of the region that are read. */
static inline bool fix_dma_read(void *opaque, uint64_t addr, void *buf,
                                size_t len)
{
    struct node *n = opaque;
    struct side *s = &((struct fix *)n->w)->s[n->id];
    size_t i;

    for (i = 0; i < s->mr.buf.chunks; i++) {
        struct gbuf_chunk *c = &s->mr.buf.chunk[i];

        if (addr - c->addr < c->len) {
            s->read += len;
        }
    }
    return s->dma_read(opaque, addr, buf, len);
}

/* One end of a link. */
static inline struct qhca_memlink *fix_link(struct fix *f, unsigned i,
                                            unsigned peer)
{
    struct qhca_list *head = &f->s[i].e->ml->all, *at;

    for (at = head->next; at != head; at = at->next) {
        struct qhca_memlink *l = qhca_container(at, struct qhca_memlink,
                                                link);

        if (!memcmp(l->mac, f->s[peer].n->mac, 6)) {
            return l;
        }
    }
    return NULL;
}

static inline void fix_region(struct fix *f, unsigned i,
                              const struct gbuf_shape *shape)
{
    struct side *s = &f->s[i];

    gmr_create(&s->mr, &s->g, BUF, IOVA, QHCA_ACCESS_MASK, shape);
    gbuf_allow(&s->mr.buf, 0, BUF, GMEM_RW);
    gbuf_fill(&s->mr.buf, 0, i + 1, 0, BUF);
}

static inline void fix_attr(struct gqp_attr *a)
{
    gqp_attr_default(a);
    a->timeout = 14;            /* 67 ms: only PATIENCE_NS is longer */
    a->sq_psn = a->rq_psn = 0xfffff0;
}

/* Connect QP @a of side @i to @b of side @j. */
static inline void fix_connect(struct fix *f, unsigned i, struct gqp *a,
                               unsigned j, struct gqp *b)
{
    struct gqp_attr at;
    unsigned k;

    fix_attr(&at);
    for (k = 0; k < 2; k++) {
        struct gqp *qp = k ? b : a;

        at.dest_qpn = k ? a->qpn : b->qpn;
        gqp_to_init(qp, &at);
        gqp_to_rtr(qp, f->s[k ? i : j].n, &at);
        gqp_to_rts(qp, &at);
    }
}

static inline void fix_qp(struct fix *f, unsigned i, uint8_t type,
                          struct gqp *qp)
{
    struct gqp_init in = {
        .type = type, .sq_shift = 11, .sq_stride = 9, .rq_shift = 6,
        .rq_stride = 7, .scq = &f->s[i].cq, .rcq = &f->s[i].cq,
    };

    gqp_create(qp, &f->s[i].g, &in);
}

/* @linked: all of them, and they may use it. */
static inline struct fix *fix_new(uint8_t type, bool linked)
{
    static const struct guest_config gc = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct fix *f = calloc(1, sizeof(*f));
    struct qhca_config cfg;
    unsigned i;

    memset(&cfg, 0, sizeof(cfg));
    qhca_config_default(&cfg);
    cfg.num_vectors = WORLD_VECTORS;
    cfg.dm_size = GMEM_SPAN;
    world_init(&f->w, NODES, 1, &cfg);
    wire_perfect(&f->w.wire);
    f->w.wire.filter = fix_filter;
    for (i = 0; i < NODES; i++) {
        struct side *s = &f->s[i];

        s->n = &f->w.node[i];
        s->e = s->n->e;
        s->dma_read = s->e->ops.dma_read;
        s->e->ops.dma_read = fix_dma_read;
        guest_start(&s->g, s->n, 1, &gc);
        gcq_create(&s->cq, &s->g, 12, NULL, 1);
        fix_region(f, i, NULL);
        if (i < 2) {
            fix_qp(f, i, type, &s->qp);
        }
    }
    fix_connect(f, 0, &f->s[0].qp, 1, &f->s[1].qp);
    if (linked) {
        world_memlinks(&f->w);
    }
    return f;
}

/* Free a world whose adapters may have been reset, or have broken QPs. */
static inline void fix_drop(struct fix *f)
{
    unsigned i;

    for (i = 0; i < NODES; i++) {
        struct side *s = &f->s[i];

        qhca_reset(s->e);
        if (s->qp.qpn) {
            gbuf_free(&s->qp.sq);
            gbuf_free(&s->qp.rq);
        }
        gbuf_free(&s->cq.buf);
        if (s->mr.key) {
            gmr_drop(&s->mr);
        }
        guest_drop(&s->g);
    }
    world_fini(&f->w);
    free(f);
}

static inline void fix_free(struct fix *f)
{
    unsigned i;

    for (i = 0; i < NODES; i++) {
        struct side *s = &f->s[i];

        if (s->qp.qpn) {
            assert_int_equal(gqp_destroy(&s->qp), QHCA_ST_OK);
        }
        if (s->mr.key) {
            assert_int_equal(gmr_destroy(&s->mr), QHCA_ST_OK);
        }
        assert_int_equal(gcq_destroy(&s->cq), QHCA_ST_OK);
        guest_stop(&s->g);
    }
    world_fini(&f->w);
    free(f);
}

static inline void fix_run(struct fix *f, uint64_t ns)
{
    world_run(&f->w, ns);
}

/* Post one send WR of QP @qp of side @i over bytes @off .. of its region. */
static inline void fix_post_on(struct fix *f, unsigned i, struct gqp *qp,
                               struct gwr wr, uint64_t off, uint32_t len)
{
    struct side *s = &f->s[i];

    if (!wr.num_sge && len && !(wr.flags & QHCA_WQE_F_INLINE)) {
        wr.num_sge = 1;
        wr.sge[0] = (struct qhca_sge){ IOVA + off, len, s->mr.key };
    }
    if (!wr.remote_addr) {
        wr.remote_addr = IOVA + off;
        wr.rkey = f->s[!i].mr.key;
    }
    wr.flags |= SIG;
    assert_true(gqp_post_send(qp, &wr));
    gqp_ring(qp);
}

static inline void fix_post(struct fix *f, unsigned i, struct gwr wr,
                            uint64_t off, uint32_t len)
{
    fix_post_on(f, i, &f->s[i].qp, wr, off, len);
}

static inline void fix_write(struct fix *f, unsigned i, uint64_t wr_id,
                             uint64_t off, uint32_t len)
{
    fix_post(f, i, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE,
                                 .wr_id = wr_id }, off, len);
}

static inline void fix_recv(struct fix *f, unsigned i, uint64_t wr_id,
                            uint64_t off, uint32_t len)
{
    struct qhca_sge sge = { IOVA + off, len, f->s[i].mr.key };

    assert_true(gqp_post_recv(&f->s[i].qp, wr_id, &sge, 1));
}

/* The next CQE of side @i is this one. */
#define fix_cqe(f, i, id, st) do { \
    assert_true(gcq_poll(&(f)->s[i].cq, &(f)->cqe)); \
    assert_int_equal((f)->cqe.wr_id, id); \
    assert_int_equal((f)->cqe.status, st); \
} while (0)

static inline void fix_no_cqe(struct fix *f, unsigned i)
{
    assert_false(gcq_poll(&f->s[i].cq, &f->cqe));
}

/* Bytes @off .. of side @i are those that side @from began with. */
static inline void fix_has(struct fix *f, unsigned i, unsigned from,
                           uint64_t off, uint64_t len)
{
    assert_int_equal(gbuf_verify(&f->s[i].mr.buf, off, from + 1, off, len),
                     len);
}

static inline void fix_spoil(struct fix *f, unsigned i, uint64_t off,
                             uint32_t len)
{
    uint8_t *b = malloc(len);

    memset(b, GARBAGE, len);
    gbuf_write(&f->s[i].mr.buf, off, b, len);
    free(b);
}

static inline uint64_t fix_stat(struct fix *f, unsigned i, unsigned stat)
{
    return qhca_stat(f->s[i].e, stat);
}

/* Let messages pass both ways until both ends use the link. */
static inline void fix_go_up(struct fix *f)
{
    unsigned i, tries;

    for (tries = 0; fix_link(f, 0, 1)->state != QHCA_MEMLINK_UP ||
                    fix_link(f, 1, 0)->state != QHCA_MEMLINK_UP; tries++) {
        assert_true(tries < 4);
        for (i = 0; i < 2; i++) {
            fix_write(f, i, 0, BUF - 4, 4);
            fix_run(f, 50 * US);
            fix_cqe(f, i, 0, QHCA_WC_SUCCESS);
        }
    }
    for (i = 0; i < 2; i++) {
        gbuf_fill(&f->s[i].mr.buf, BUF - 4, i + 1, BUF - 4, 4);
    }
    f->packets = f->markers = 0;
}

/*
 * Side @i does not receive what side @from sends: as if it were busy, it has
 * not asked for a bell.
 */
static inline void fix_doze(struct fix *f, unsigned i, unsigned from)
{
    world_memlink_ring(&f->w, from, i)->sleeps = 0;
}

/* Now it receives. */
static inline void fix_look(struct fix *f, unsigned i, unsigned from)
{
    node_memlink_bell(f->s[i].n, fix_link(f, i, from)->id);
    fix_run(f, 100 * US);
}

/* ---- a record that has not been received yet ---- */

#define LATE_LEN 40960u              /* of the message */

/* QPs of both sides, each connected to the one with its number. */
enum { CROWD_QPS = 10, CROWD_EACH = 30, CROWD_APART = 3072 };
typedef struct gqp fix_crowd[2][CROWD_QPS];

/*
 * Side @from sends more WRITEs to the other side, which dozes, than records may
 * refer to memory; returns the link at side @from.
 */
static inline struct qhca_memlink *fix_crowded(struct fix *f, unsigned from,
                                               fix_crowd qp)
{
    struct qhca_memlink *l;
    unsigned i, k;

    for (k = 0; k < CROWD_QPS; k++) {
        fix_qp(f, 0, QHCA_QPT_RC, &qp[0][k]);
        fix_qp(f, 1, QHCA_QPT_RC, &qp[1][k]);
        fix_connect(f, 0, &qp[0][k], 1, &qp[1][k]);
    }
    fix_go_up(f);
    l = fix_link(f, from, !from);
    fix_doze(f, !from, from);
    for (k = 0; k < CROWD_QPS; k++) {
        for (i = 0; i < CROWD_EACH; i++) {
            fix_post_on(f, from, &qp[from][k], (struct gwr){
                            .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = i },
                        CROWD_APART * (k * CROWD_EACH + i), 2 * MTU);
        }
    }
    fix_run(f, 1000 * US);
    return l;
}

/*
 * A message from side @from whose record has been sent, but not received yet.
 */
struct late {
    struct fix *f;
    unsigned from;
    struct qhca_memlink *l;     /* at the sender */
    struct qhca_shring_record *rec;
};

static inline struct qhca_shring_record *late_record(struct qhca_memlink *l, unsigned back)
{
    uint32_t pos = l->ref[(l->ref_head - 1 - back) % QHCA_MEMLINK_REFS].pos;

    return (void *)&l->tx.ring->data[pos % QHCA_SHRING_DATA];
}

static inline void late_sent(struct late *t)
{
    fix_run(t->f, 100 * US);
    t->l = fix_link(t->f, t->from, !t->from);
    assert_true(t->l->ref_head != t->l->ref_tail);
    t->rec = late_record(t->l, 0);
    assert_int_equal(t->rec->state, QHCA_SHRING_REFS);
}

/* A WRITE from side 0 to side 1, or side 0's READ of side 1's memory. */
static inline void late_begin(struct late *t, bool reads)
{
    t->f = fix_new(QHCA_QPT_RC, true);
    t->from = reads;
    fix_go_up(t->f);
    fix_doze(t->f, !t->from, t->from);
    fix_post(t->f, 0, (struct gwr){
                 .opcode = reads ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE,
                 .wr_id = 1 }, 0, LATE_LEN);
    late_sent(t);
}

#endif /* QHCA_TEST_MEMLINKFIX_H */

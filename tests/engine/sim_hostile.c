/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a hostile peer may break: its own connections.  It has a memory link to
 * each adapter, and two QPs in a protection domain of their own with it.  It
 * writes records for these and for the QPs of others, with the PSNs that they
 * expect, spoils indices, flags and states, and rings bells.  An adapter cuts it
 * off; it then comes back.  It does not claim to be another peer, which could do
 * harm on the wire as well (docs/explanation/memory-links.md, Isolation); only an
 * impostor does, so that the simulation can show that it would notice.
 *
 * All its random numbers are its own.  The workload checks that honest traffic
 * does not notice, and check_counters() that no access leaves the memory that
 * was granted; the peer's memory has its exact size, which a sanitizer checks.
 */
#include <stdlib.h>
#include <string.h>

#include "memlinkpeer.h"
#include "sim_hostile.h"

#define AREA 16384u
#define IOVA 0x100000u
#define OWN_QPS 2u
#define TURNS 4000u             /* in a run, which may last for long */
#define INPUT 128u              /* bytes that an action uses up at most */

struct victim {
    struct hostile *h;
    struct guest *g;
    struct mlpeer p;
    uint32_t pd;
    struct gcq cq;
    struct gmr mr;
    struct gqp qp[OWN_QPS];
    uint64_t records;           /* taken from links that are gone */
};

struct hostile {
    struct sim *s;
    struct rng r;
    struct victim v[WORLD_NODES];
    unsigned victims, turns;
    uint64_t cuts;
    bool over;
};

/* ---- what the victim's software does ---- */

static void connect(struct victim *v, struct gqp *qp)
{
    struct qhca_sge sge = { IOVA + 8192, 1024, v->mr.key };
    unsigned i;

    mlp_connect(qp, &v->p.self);
    for (i = 0; i < 8; i++) {
        gqp_post_recv(qp, i, &sge, 1);
    }
}

/* A QP that has failed is connected anew. */
static void revive(struct victim *v, struct gqp *qp)
{
    struct qhca_cqe c;

    if (v->g->wait || v->h->s->ending) {
        return;
    }
    while (gcq_poll(&v->cq, &c)) {
    }
    CHECK(gqp_state(qp, QHCA_QPS_RESET) == QHCA_ST_OK, "QP to RESET");
    connect(v, qp);
}

static void post_work(struct victim *v, struct gqp *qp, struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_WRITE_IMM,
        QHCA_WQE_RDMA_READ, QHCA_WQE_FETCH_ADD,
    };
    uint8_t op = ops[fz_u8(f) % (qp->type == QHCA_QPT_UC ? 3 : 5)];
    struct gwr w = {
        .opcode = op, .num_sge = 1,
        .sge[0] = { IOVA, op == QHCA_WQE_FETCH_ADD ? 8 : fz_u16(f) % 4096,
                    v->mr.key },
        .remote_addr = IOVA, .rkey = v->mr.key,
        .flags = QHCA_WQE_F_SIGNALED,
    };
    struct qhca_cqe c;

    while (gcq_poll(&v->cq, &c)) {
        if (!(c.opcode & 0x80)) {
            v->qp[c.qpn == v->qp[1].qpn].sq_cons = c.wqe_index + 1;
        }
    }
    if (gqp_post_send(qp, &w)) {
        gqp_ring(qp);
    }
}

/* ---- what the peer does ---- */

/* Fields of records where the victim reads next; headers stay its own. */
static void overwrite(struct victim *v, struct fz *f)
{
    uint32_t at = (v->p.ring[1]->cons + (fz_u8(f) & 7) * 64u) & ~63u;
    unsigned off = fz_u8(f) % offsetof(struct qhca_shring_record, heads);
    size_t len = fz_u8(f) % 8u;

    len = len < 32 - off ? len : 32 - off;
    fz_bytes(f, &v->p.ring[1]->data[at % QHCA_SHRING_DATA] + off, len);
}

static void come_back(struct victim *v)
{
    struct qhca_memlink *l = mlp_link(&v->p);

    v->records += l ? l->received : 0;
    qhca_memlink_detach(v->g->n->e, v->p.id);
    mlp_attach(&v->p, rng_u64(&v->h->r));
}

/*
 * Most records break no rule of the ring, so that the link lasts; and most of
 * their packets are good enough to reach a QP.
 */
static void send_record(struct victim *v, uint8_t *input)
{
    struct fz f = { input, input + INPUT };
    struct rng *r = &v->h->r;

    if (rng_pct(r, 85)) {
        input[0] &= 0x5f;       /* unspoiled, INLINE or REFS */
        input[2] = (uint8_t)rng_below(r, QHCA_OP_FETCH_ADD + 1) |
                   (rng_pct(r, 25) ? 0x20 : 0);     /* RC or UC */
    }
    if (rng_pct(r, 70)) {
        input[1] &= 0x7f;       /* one packet */
        input[4] &= 0x0f;       /* with the PSN that is expected */
        if ((input[2] & QHCA_OP_MASK) >= QHCA_OP_ACK ||
            (input[2] & QHCA_OP_MASK) == QHCA_OP_READ_REQUEST) {
            input[0] &= 0x4f;   /* without payload */
            input[3] = 0;
        }
    }
    mlp_record(&v->p, &f);
    node_memlink_bell(v->g->n, v->p.id);
}

static void act(struct victim *v)
{
    struct rng *r = &v->h->r;
    struct gqp *qp = &v->qp[rng_below(r, OWN_QPS)];
    uint8_t input[INPUT];
    struct fz f = { input, input + INPUT };
    size_t i;

    for (i = 0; i < INPUT; i += 8) {
        uint64_t x = rng_u64(r);

        memcpy(input + i, &x, 8);
    }
    switch (rng_below(r, 40)) {
    case 0:
        overwrite(v, &f);
        break;
    case 1:
        mlp_other_end(&v->p, &f, (uint8_t)rng_below(r, 8));
        break;
    case 2:
    case 3:
        revive(v, qp);
        break;
    case 4:
    case 5:                     /* markers arrive */
        mlp_other_end(&v->p, &f, 5);
        break;
    case 6:
    case 7:
    case 8:                     /* it receives */
        mlp_other_end(&v->p, &f, 4);
        break;
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
        post_work(v, qp, &f);
        break;
    default:
        send_record(v, input);
        break;
    }
}

static void turn(void *opaque, uint64_t arg)
{
    struct hostile *h = opaque;
    struct rng *r = &h->r;
    struct victim *v = &h->v[rng_below(r, h->victims)];
    unsigned n = 1 + (unsigned)rng_log(r, 8);
    struct qhca_memlink *l = mlp_link(&v->p);

    (void)arg;
    if (h->over) {
        return;
    }
    if (l && l->dead) {
        h->cuts++;
        come_back(v);
    } else if (rng_pct(r, 1)) {
        come_back(v);           /* it dies without notice */
    }
    while (n--) {
        act(v);
    }
    if (h->turns++ < TURNS) {
        world_call(&h->s->w, h->s->w.now + 1 + rng_log(r, 30000), turn, h, 0);
    }
}

/* ---- life ---- */

static void open_victim(struct hostile *h, struct victim *v, struct guest *g,
                        bool impostor)
{
    static const uint8_t types[OWN_QPS] = { QHCA_QPT_RC, QHCA_QPT_UC };
    struct gqp_init in = {
        .sq_shift = 4, .sq_stride = 8, .rq_shift = 4, .rq_stride = 6,
        .scq = &v->cq, .rcq = &v->cq,
    };
    uint32_t pd = g->pd;
    unsigned i;

    v->h = h;
    v->g = g;
    v->p.victim = g->n;
    v->p.self.id = 0x60;
    memcpy(v->p.self.mac, "\x52\x54\x00\x9a\x00\x61", 6);
    v->p.own_source = true;
    v->p.impostor = impostor;
    v->pd = guest_create(g, QHCA_CMD_ALLOC_PD, NULL, 0);
    g->pd = v->pd;              /* of what is made next */
    gcq_create(&v->cq, g, 8, &gbuf_flat4k, g->eq[1].eqn);
    gmr_create(&v->mr, g, AREA, IOVA, QHCA_ACCESS_MASK, &gbuf_direct);
    gbuf_allow(&v->mr.buf, 0, AREA, GMEM_RW);
    for (i = 0; i < OWN_QPS; i++) {
        in.type = types[i];
        gqp_create(&v->qp[i], g, &in);
        connect(v, &v->qp[i]);
        v->p.qp[v->p.qps++] = &v->qp[i];
    }
    g->pd = pd;
    for (i = 0; i < h->s->eps && v->p.qps < MLP_QPS; i++) {
        if (h->s->ep[i]->g == g && h->s->ep[i]->qp.qpn) {
            v->p.qp[v->p.qps++] = &h->s->ep[i]->qp;
        }
    }
    v->p.key = v->mr.key;
    v->p.iova = IOVA;
    mlp_regions(&v->p);
    v->p.ring[0] = mlp_ring();
    v->p.ring[1] = mlp_ring();
    mlp_attach(&v->p, rng_u64(&h->r));
}

struct hostile *hostile_open(struct sim *s, bool impostor)
{
    struct hostile *h = calloc(1, sizeof(*h));
    unsigned i;

    CHECK(h, "no memory");
    h->s = s;
    rng_init(&h->r, s->seed ^ 0x686f7374696c65);
    h->victims = s->w.nodes;
    for (i = 0; i < h->victims; i++) {
        open_victim(h, &h->v[i], &s->g[i], impostor);
    }
    turn(h, 0);
    return h;
}

static void close_victim(struct victim *v)
{
    struct qhca_memlink *l = mlp_link(&v->p);
    unsigned i;

    v->h->cuts += l && l->dead;
    v->records += l ? l->received : 0;
    qhca_memlink_detach(v->g->n->e, v->p.id);
    for (i = 0; i < OWN_QPS; i++) {
        CHECK(gqp_destroy(&v->qp[i]) == QHCA_ST_OK, "DESTROY_QP");
    }
    CHECK(gcq_destroy(&v->cq) == QHCA_ST_OK, "DESTROY_CQ");
    CHECK(gmr_destroy(&v->mr) == QHCA_ST_OK, "DESTROY_MR");
    CHECK(guest_simple(v->g, QHCA_CMD_FREE_PD, v->pd) == QHCA_ST_OK,
          "FREE_PD");
    for (i = 0; i < 2; i++) {
        free(v->p.region[i]);
        free(v->p.ring[i]);
    }
}

void hostile_close(struct hostile *h)
{
    unsigned i;

    h->over = true;
    for (i = 0; i < h->victims; i++) {
        close_victim(&h->v[i]);
    }
}

uint64_t hostile_records(const struct hostile *h)
{
    uint64_t n = 0;
    unsigned i;

    for (i = 0; i < h->victims; i++) {
        n += h->v[i].records;
    }
    return n;
}

uint64_t hostile_cuts(const struct hostile *h)
{
    return h->cuts;
}

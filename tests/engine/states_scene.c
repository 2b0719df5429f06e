/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A scene: its wire, its end and its outcome. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "godp.h"
#include "states.h"
#include "transport/rc.h"

#define STEP_NS 2000u           /* for an adapter to do what is due */
#define LIMIT_NS 60000000000ull

/* Never change this: an adapter loads only states of its own configuration. */
static void configure(struct qhca_config *c)
{
    memset(c, 0, sizeof(*c));
    qhca_config_default(c);
    c->num_vectors = 8;
    c->max_qp = c->max_cq = c->max_srq = c->max_mr = c->max_pd = 16;
    c->max_eq = 4;
    c->max_gid = 8;
    c->max_eth_queues = 4;
    c->speed = 100000;
    c->dm_size = 4096;
    c->super_frames = false;
}

void scene_put(struct scene *s, unsigned src, const void *frame, uint32_t len)
{
    struct scene_frame *f = malloc(sizeof(*f) + len);

    CHECK(f, "no memory");
    f->next = NULL;
    f->src = src;
    f->len = len;
    memcpy(f->b, frame, len);
    *s->last = f;
    s->last = &f->next;
}

static bool on_wire(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    struct scene *s = (struct scene *)w;

    s->sent_at[src] = w->now;
    if (++s->sent != s->lose) {
        scene_put(s, src, frame, (uint32_t)*len);
    }
    return false;               /* it is ours now */
}

void scene_open(struct scene *s)
{
    struct qhca_config c;
    unsigned i;

    memset(s, 0, sizeof(*s));
    s->last = &s->first;
    configure(&c);
    world_init(&s->w, SCENE_NODES, 1, &c);
    s->w.wire.filter = on_wire;
    for (i = 0; i < SCENE_NODES; i++) {
        s->w.node[i].mem.unchecked = true;
    }
}

void scene_close(struct scene *s)
{
    struct scene_frame *f;
    unsigned i, k;

    for (i = 0; i < SCENE_NODES; i++) {
        for (k = 0; k < s->g[i].eqs; k++) {
            gbuf_free(&s->g[i].eq[k].buf);
            if (s->g[i].eq[k].dbrec) {
                guest_dbrec_free(&s->g[i], s->g[i].eq[k].dbrec);
            }
        }
    }
    while ((f = s->first)) {
        s->first = f->next;
        free(f);
    }
    world_fini(&s->w);
}

bool scene_deliver(struct scene *s)
{
    struct scene_frame *f = s->first;
    unsigned i;

    if (!f) {
        return false;
    }
    s->first = f->next;
    if (!s->first) {
        s->last = &s->first;
    }
    for (i = 0; i < SCENE_NODES; i++) {
        if (i != f->src && (f->b[0] & 1 ||
                            !memcmp(f->b, s->w.node[i].mac, 6))) {
            world_inject(&s->w, i, f->b, f->len);
        }
    }
    free(f);
    return true;
}

bool scene_step(struct scene *s)
{
    if (!scene_deliver(s)) {
        return false;
    }
    world_run(&s->w, STEP_NS);
    return true;
}

/* ---- pages that are missing ---- */

static uint64_t *entry(struct gmem *m, uint64_t table, uint64_t page)
{
    return gmem_ptr(m, table + 8 * page, 8);
}

/*
 * Bring in the pages that @f specifies, of a region with a FLAT table, zeroed.
 */
static void bring_in(struct guest *g, const struct qhca_page_fault *f)
{
    struct qhca_mpt mr;
    uint64_t page, last;

    guest_query(g, QHCA_CMD_QUERY_MR, f->key, &mr, sizeof(mr));
    CHECK(mr.buf.form == QHCA_BUF_FLAT && mr.buf.page_shift == 12 &&
          f->len && f->addr - mr.iova <= mr.len - f->len, "a strange fault");
    page = (f->addr - mr.iova) >> 12;
    last = (f->addr - mr.iova + f->len - 1) >> 12;
    for (; page <= last; page++) {
        if (!(*entry(g->m, mr.buf.addr, page) & QHCA_BTE_VALID)) {
            *entry(g->m, mr.buf.addr, page) =
                gmem_alloc(g->m, GMEM_PAGE, 12, 0) | QHCA_BTE_VALID |
                QHCA_BTE_WRITE;
        }
    }
}

/* Serve all page faults; false: there is none. */
static bool serve(struct guest *g)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct qhca *e = g->n->e;
    const struct qhca_qp *qp;
    bool any = false;
    uint32_t n;
    unsigned k;

    for (n = 0; n < qhca_idr_end(&e->q->qps); n++) {
        qp = qhca_qp_get(e, n);
        if (!qp || qp->type == QHCA_QPT_RSS || !qp->xp->odp_waits) {
            continue;
        }
        guest_faults(g, n, f);
        for (k = 0; k < QHCA_PAGE_FAULT_SIDES; k++) {
            if (f[k].flags & QHCA_PAGE_FAULT_VALID) {
                bring_in(g, &f[k]);
                CHECK(guest_resume(g, n, k, f[k].token, false) == QHCA_ST_OK,
                      "RESUME_PAGE_FAULT");
                any = true;
            }
        }
    }
    return any;
}

void scene_finish(struct scene *s)
{
    uint64_t end = s->w.now + LIMIT_NS;
    bool more = true;
    unsigned i, turns;

    s->w.wire.refuse = 0;
    for (turns = 0; more; turns++) {
        CHECK(turns < 100000, "the scene never ends");
        more = scene_step(s);
        for (i = 0; i < SCENE_NODES; i++) {
            more |= serve(&s->g[i]);
        }
        while (!s->first && world_step(&s->w)) {
            CHECK(s->w.now < end, "the adapters never rest");
        }
        more |= s->first != NULL;
    }
    for (i = 0; i < SCENE_NODES; i++) {
        CHECK(!s->w.node[i].e->fatal, "adapter %u has failed", i);
    }
}

/* ---- the outcome ---- */

static struct qhca_cqe cqe_at(const struct scene *s, const struct scene_cq *q,
                              uint32_t i)
{
    struct qhca_cqe c;
    struct gmem *m = (struct gmem *)&s->w.node[q->node].mem;

    memcpy(&c, gmem_ptr(m, q->addr + i * sizeof(c), sizeof(c)), sizeof(c));
    return c;
}

/* All CQEs, by QP or queue: between these the order is undefined. */
static void put_cqes(FILE *to, const struct scene *s, unsigned which)
{
    const struct scene_cq *q = &s->cq[which];
    uint32_t i, qpn, all = 1u << q->shift;
    struct qhca_cqe c;
    const uint8_t *b = (const uint8_t *)&c;
    size_t k;

    for (qpn = 0; qpn < 64; qpn++) {
        for (i = 0; i < all; i++) {
            c = cqe_at(s, q, i);
            if (!(c.phase & 1) || c.qpn != qpn) {
                continue;
            }
            fprintf(to, "cq %u qp %u: wr_id %#" PRIx64 " opcode %#x status "
                    "%u len %u all ", which, qpn, (uint64_t)c.wr_id,
                    c.opcode, c.status, c.byte_len);
            for (k = 0; k < offsetof(struct qhca_cqe, timestamp); k++) {
                fprintf(to, "%02x", b[k]);
            }
            fputc('\n', to);
        }
    }
}

static void put_area(FILE *to, const struct scene *s, unsigned which)
{
    const struct scene_area *a = &s->area[which];
    struct gmem *m = (struct gmem *)&s->w.node[a->node].mem;
    uint64_t hash = 0xcbf29ce484222325ull, at;
    uint32_t i;
    uint8_t v;

    for (i = 0; i < a->len; i++) {
        at = a->addr + i;
        v = 0;
        if (a->paged) {
            at = *entry(m, a->addr, i >> 12);
            at = at & QHCA_BTE_VALID ? (at & QHCA_BTE_ADDR_MASK) + i % 4096 :
                                       0;
        }
        if (at) {
            v = *(uint8_t *)gmem_ptr(m, at, 1);
        }
        hash = (hash ^ v) * 0x100000001b3ull;
        if (i % 512 == 511 || i + 1 == a->len) {
            fprintf(to, "area %u to %u: %016" PRIx64 "\n", which, i + 1,
                    hash);
        }
    }
}

char *scene_outcome(const struct scene *s)
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    unsigned i;

    CHECK(to, "no memory");
    for (i = 0; i < s->cqs; i++) {
        put_cqes(to, s, i);
    }
    for (i = 0; i < s->areas; i++) {
        put_area(to, s, i);
    }
    CHECK(!fclose(to) && text, "no memory");
    return text;
}

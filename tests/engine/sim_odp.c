/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging in the simulation: software that serves page faults, late
 * and sometimes badly, and removes pages under traffic.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct godp *odp_add(struct sim *s)
{
    struct godp *o = calloc(1, sizeof(*o));

    s->odp = realloc(s->odp, (s->odps + 1) * sizeof(*s->odp));
    CHECK(o && s->odp, "no memory");
    s->odp[s->odps++] = o;
    return o;
}

void odp_remove(struct sim *s, struct godp *o)
{
    unsigned i;

    for (i = 0; s->odp[i] != o; i++) {
    }
    s->odp[i] = s->odp[--s->odps];
}

static struct godp *find(struct sim *s, struct guest *g, uint32_t key)
{
    unsigned i;

    for (i = 0; i < s->odps; i++) {
        if (s->odp[i]->mr->g == g && s->odp[i]->mr->key == key) {
            return s->odp[i];
        }
    }
    die("%s: a page fault in region %#x, which does not exist", g->m->name,
        key);
}

static void serve_one(struct sim *s, struct guest *g,
                      const struct qhca_page_fault *f)
{
    struct godp *o = find(s, g, f->key);
    uint64_t off = f->addr - o->mr->iova;
    bool write = f->flags & QHCA_PAGE_FAULT_WRITE;

    CHECK(f->addr >= o->mr->iova && f->len && off < o->mr->len &&
          f->len <= o->mr->len - off, "%s: a page fault outside the region",
          g->m->name);
    CHECK(!write || o->mr->access & QHCA_ACCESS_LOCAL_WRITE,
          "%s: a page fault to write what may not be written", g->m->name);
    switch (rng_below(&g->rng, 10)) {
    case 0:                     /* nothing: the device will fault again */
        break;
    case 1:                     /* the minimum */
        godp_in(o, off, 1, write);
        break;
    default:
        godp_in(o, off, f->len, write || (rng_pct(&g->rng, 20) &&
                o->mr->access & QHCA_ACCESS_LOCAL_WRITE));
    }
}

static void serve(void *opaque, uint64_t qpn)
{
    struct guest *g = opaque;
    struct sim *s = g->opaque;
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct gcmd c = {
        .op = QHCA_CMD_QUERY_PAGE_FAULT, .obj = (uint32_t)qpn, .out = f,
        .out_len = sizeof(f),
    };
    unsigned i;
    uint8_t st;

    if (!g->up || s->ending) {
        return;
    }
    if (!guest_can_command(g)) {
        world_call(g->n->w, g->n->w->now + 1000, serve, g, qpn);
        return;
    }
    if (guest_cmd(g, &c)) {
        return;                 /* destroyed in the meantime */
    }
    for (i = 0; i < QHCA_PAGE_FAULT_SIDES; i++) {
        if (!(f[i].flags & QHCA_PAGE_FAULT_VALID)) {
            continue;
        }
        serve_one(s, g, &f[i]);
        st = guest_resume(g, (uint32_t)qpn, i, f[i].token, false);
        CHECK(st == QHCA_ST_OK, "%s: RESUME_PAGE_FAULT of QP %#x, side %u: %u",
              g->m->name, (unsigned)qpn, i, st);
    }
}

void odp_fault(struct guest *g, uint32_t qpn)
{
    world_call(g->n->w, g->n->w->now + 1 + rng_log(&g->rng, 200000), serve, g,
               qpn);
}

/* The operating system reclaims memory, or reads ahead. */
static void reclaim(void *opaque, uint64_t arg)
{
    struct sim *s = opaque;
    struct rng *r = &s->rng;
    struct godp *o;
    uint64_t off, len;

    (void)arg;
    if (s->ending) {
        return;
    }
    if (s->odps) {
        o = s->odp[rng_below(r, s->odps)];
        off = rng_below(r, o->mr->len);
        len = 1 + rng_log(r, o->mr->len - off - 1);
        switch (rng_below(r, 8)) {
        case 0:
            godp_in(o, off, len, o->mr->access & QHCA_ACCESS_LOCAL_WRITE);
            break;
        case 1:
            godp_out_table(o, off);
            break;
        default:
            godp_out(o, off, len);
        }
    }
    world_call(&s->w, s->w.now + 1 + rng_log(r, 300000), reclaim, s, 0);
}

void odp_start(struct sim *s)
{
    world_call(&s->w, 1 + rng_log(&s->rng, 100000), reclaim, s, 0);
}

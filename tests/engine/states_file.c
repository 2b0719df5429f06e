/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A saved scene as bytes: numbers of 64 bits, little-endian, and blocks with
 * their length before them.  This does not change: releases share it.
 */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "states.h"

#define MAGIC 0x3173657461747371ull     /* "qstates1" */

static void put(struct blob *to, const void *p, size_t len)
{
    to->b = realloc(to->b, to->len + len + 1);
    CHECK(to->b, "no memory");
    if (len) {
        memcpy(to->b + to->len, p, len);
    }
    to->len += len;
}

static void put_u64(struct blob *to, uint64_t v)
{
    put(to, &v, sizeof(v));
}

static void put_block(struct blob *to, const void *p, size_t len)
{
    put_u64(to, len);
    put(to, p, len);
}

static const void *get(struct blob *from, size_t len)
{
    const void *p = from->b + from->at;

    CHECK(len <= from->len - from->at, "the file ends too early");
    from->at += len;
    return p;
}

static uint64_t get_u64(struct blob *from)
{
    uint64_t v;

    memcpy(&v, get(from, sizeof(v)), sizeof(v));
    return v;
}

/* A copy of a block, and a 0 behind it. */
static struct blob get_block(struct blob *from)
{
    struct blob block = { .len = get_u64(from) };
    const void *p = get(from, block.len);

    block.b = malloc(block.len + 1);
    CHECK(block.b, "no memory");
    memcpy(block.b, p, block.len);
    block.b[block.len] = 0;
    return block;
}

/* ---- what the driver of an adapter knows ---- */

static void put_guest(struct blob *to, const struct guest *g)
{
    put_u64(to, g->db_shift);
    put_u64(to, g->aq_shift);
    put_u64(to, g->asq);
    put_u64(to, g->acq);
    put_u64(to, g->asq_prod);
    put_u64(to, g->acq_cons);
    put_u64(to, g->in);
    put_u64(to, g->out);
}

static void get_guest(struct blob *from, struct guest *g, struct node *n)
{
    memset(g, 0, sizeof(*g));
    rng_init(&g->rng, 1);
    g->n = n;
    g->m = &n->mem;
    g->db_shift = (uint32_t)get_u64(from);
    g->aq_shift = (uint32_t)get_u64(from);
    g->asq = get_u64(from);
    g->acq = get_u64(from);
    g->asq_prod = (uint32_t)get_u64(from);
    g->acq_cons = (uint32_t)get_u64(from);
    g->in = get_u64(from);
    g->out = get_u64(from);
}

static void put_memory(struct blob *to, struct gmem *m)
{
    uint64_t addr;

    put_u64(to, m->mapped_pages);
    for (addr = m->base; gmem_next_page(m, &addr); addr += GMEM_PAGE) {
        put_u64(to, addr);
        put(to, gmem_ptr(m, addr, GMEM_PAGE), GMEM_PAGE);
    }
}

static void get_memory(struct blob *from, struct gmem *m)
{
    uint64_t n = get_u64(from), addr;

    while (n--) {
        addr = get_u64(from);
        gmem_map_page(m, addr);
        memcpy(gmem_ptr(m, addr, GMEM_PAGE), get(from, GMEM_PAGE), GMEM_PAGE);
    }
}

/* ---- the whole ---- */

/* A scene whose work fails shows little. */
static void all_well(const char *outcome)
{
    static const char mark[] = " status ";
    const char *p;

    for (p = outcome; (p = strstr(p, mark)); p += sizeof(mark)) {
        CHECK(p[sizeof(mark) - 1] == '0', "some work has failed:\n%s",
              outcome);
    }
}

struct blob scene_save(struct scene *s)
{
    struct blob to = { .b = NULL };
    const struct scene_frame *f;
    uint64_t n = 0;
    void *state;
    size_t len;
    char *text;
    unsigned i;

    put_u64(&to, MAGIC);
    put_u64(&to, s->w.now);
    for (i = 0; i < SCENE_NODES; i++) {
        put_guest(&to, &s->g[i]);
        put_memory(&to, &s->w.node[i].mem);
        CHECK(qhca_save(s->w.node[i].e, &state, &len), "no memory");
        put_block(&to, state, len);
        free(state);
    }
    for (f = s->first; f; f = f->next) {
        n++;
    }
    put_u64(&to, n);
    for (f = s->first; f; f = f->next) {
        put_u64(&to, f->src);
        put_block(&to, f->b, f->len);
    }
    put_u64(&to, s->cqs);
    for (i = 0; i < s->cqs; i++) {
        put_u64(&to, s->cq[i].node);
        put_u64(&to, s->cq[i].addr);
        put_u64(&to, s->cq[i].shift);
    }
    put_u64(&to, s->areas);
    for (i = 0; i < s->areas; i++) {
        put_u64(&to, s->area[i].node);
        put_u64(&to, s->area[i].paged);
        put_u64(&to, s->area[i].addr);
        put_u64(&to, s->area[i].len);
    }
    scene_finish(s);
    text = scene_outcome(s);
    all_well(text);
    put_block(&to, text, strlen(text));
    free(text);
    return to;
}

char *scene_load(struct scene *s, struct blob *from,
                 struct blob state[SCENE_NODES])
{
    uint64_t n, src;
    struct blob f;
    unsigned i;

    scene_open(s);
    CHECK(get_u64(from) == MAGIC, "no saved scene");
    s->w.now = get_u64(from);
    for (i = 0; i < SCENE_NODES; i++) {
        get_guest(from, &s->g[i], &s->w.node[i]);
        get_memory(from, &s->w.node[i].mem);
        state[i] = get_block(from);
    }
    for (n = get_u64(from); n; n--) {
        src = get_u64(from);
        f = get_block(from);
        scene_put(s, (unsigned)src, f.b, (uint32_t)f.len);
        free(f.b);
    }
    s->cqs = (unsigned)get_u64(from);
    CHECK(s->cqs <= SCENE_CQS, "%u CQs", s->cqs);
    for (i = 0; i < s->cqs; i++) {
        s->cq[i].node = (unsigned)get_u64(from);
        s->cq[i].addr = get_u64(from);
        s->cq[i].shift = (uint32_t)get_u64(from);
    }
    s->areas = (unsigned)get_u64(from);
    CHECK(s->areas <= SCENE_AREAS, "%u areas", s->areas);
    for (i = 0; i < s->areas; i++) {
        s->area[i].node = (unsigned)get_u64(from);
        s->area[i].paged = get_u64(from);
        s->area[i].addr = get_u64(from);
        s->area[i].len = (uint32_t)get_u64(from);
    }
    f = get_block(from);
    CHECK(from->at == from->len, "there is more than a scene");
    return (char *)f.b;
}

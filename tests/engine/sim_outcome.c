/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "sim_outcome.h"

#define CQE sizeof(struct qhca_cqe)

int outcome_spoil_named(const char *name)
{
    static const char *const names[] = {
        [SPOIL_MEMORY] = "memory", [SPOIL_COMPLETION] = "completion",
        [SPOIL_ORDER] = "order", [SPOIL_LOSS] = "loss",
    };
    int i;

    for (i = SPOIL_MEMORY; i <= SPOIL_LOSS; i++) {
        if (!strcmp(name, names[i])) {
            return i;
        }
    }
    return -1;
}

/* ---- recording ---- */

static struct outcome_part *find(struct outcome *o, const char *name)
{
    unsigned i;

    for (i = 0; i < o->parts; i++) {
        if (!strcmp(o->part[i].name, name)) {
            return &o->part[i];
        }
    }
    return NULL;
}

static struct outcome_part *part_of(struct outcome *o, const char *name,
                                    bool memory)
{
    struct outcome_part *p = find(o, name);

    if (!p) {
        o->part = realloc(o->part, (o->parts + 1) * sizeof(*o->part));
        CHECK(o->part, "no memory");
        p = &o->part[o->parts++];
        memset(p, 0, sizeof(*p));
        p->memory = memory;
        snprintf(p->name, sizeof(p->name), "%s", name);
    }
    return p;
}

/* Room for @len bytes behind those that are there. */
static uint8_t *extend(struct outcome_part *p, size_t len)
{
    if (p->cap - p->len < len) {
        p->cap = 2 * p->cap + len;
        p->data = realloc(p->data, p->cap);
        CHECK(p->data, "no memory");
    }
    p->len += len;
    return p->data + p->len - len;
}

/* Once in a run: where there are two different completions. */
static bool spoil_order(struct outcome_part *p)
{
    uint8_t a[CQE], *last = p->data + p->len - CQE;

    if (p->len < 2 * CQE || !memcmp(last - CQE, last, CQE)) {
        return false;
    }
    memcpy(a, last, CQE);
    memcpy(last, last - CQE, CQE);
    memcpy(last - CQE, a, CQE);
    return true;
}

void outcome_cqe(struct outcome *o, const char *name,
                 const struct qhca_cqe *cqe)
{
    struct outcome_part *p;
    struct qhca_cqe c = *cqe;

    if (o->spoil == SPOIL_LOSS) {
        o->spoil = SPOIL_NOTHING;
        return;
    }
    p = part_of(o, name, false);
    /* Time and the place in a shared queue are no part of the outcome. */
    c.timestamp = 0;
    c.phase = 0;
    if (c.opcode & 0x80 && c.flags & QHCA_CQE_F_SRQ) {
        c.wqe_index = 0;
    }
    if (o->spoil == SPOIL_COMPLETION) {
        c.imm ^= 0x100;
        o->spoil = SPOIL_NOTHING;
    }
    memcpy(extend(p, CQE), &c, CQE);
    o->cqes++;
    if (o->spoil == SPOIL_ORDER && spoil_order(p)) {
        o->spoil = SPOIL_NOTHING;
    }
}

void outcome_memory(struct outcome *o, const char *name, struct gbuf *b)
{
    struct outcome_part *p = part_of(o, name, true);
    uint8_t last;

    CHECK(!p->len, "%s recorded twice", name);
    if (o->spoil == SPOIL_MEMORY) {
        gbuf_read(b, b->len - 1, &last, 1);
        last ^= 0x10;
        gbuf_write(b, b->len - 1, &last, 1);
        o->spoil = SPOIL_NOTHING;
    }
    gbuf_read(b, 0, extend(p, b->len), b->len);
    o->bytes += b->len;
}

void outcome_free(struct outcome *o)
{
    unsigned i;

    for (i = 0; i < o->parts; i++) {
        free(o->part[i].data);
    }
    free(o->part);
    memset(o, 0, sizeof(*o));
}

/* ---- comparing ---- */

static void print_cqe(const char *where, const struct outcome_part *p,
                      size_t i)
{
    struct qhca_cqe c;

    if (i * CQE >= p->len) {
        fprintf(stderr, "  %s: none\n", where);
        return;
    }
    memcpy(&c, p->data + i * CQE, CQE);
    fprintf(stderr, "  %s: %s, opcode %#x, wr_id %#" PRIx64 ", WQE %u, %u "
            "bytes, immediate %#x, flags %#x, syndrome %#x, from %#x\n",
            where, sim_wc_name(c.status), c.opcode, (uint64_t)c.wr_id,
            c.wqe_index, c.byte_len, c.imm, c.flags, c.syndrome, c.src_qpn);
}

static void print_bytes(const char *where, const struct outcome_part *p,
                        size_t at)
{
    size_t i;

    fprintf(stderr, "  %s:", where);
    for (i = at; i < at + 16 && i < p->len; i++) {
        fprintf(stderr, " %02x", p->data[i]);
    }
    fprintf(stderr, "\n");
}

static void compare_part(const struct outcome_part *a,
                         const struct outcome_part *b)
{
    size_t i = 0, n = a->len < b->len ? a->len : b->len;

    if (a->len == b->len && (!n || !memcmp(a->data, b->data, n))) {
        return;
    }
    while (i < n && a->data[i] == b->data[i]) {
        i++;
    }
    fflush(stdout);
    if (a->memory) {
        print_bytes("wire ", a, i);
        print_bytes("links", b, i);
        die("different memory, %s: byte %zu of %zu", a->name, i, a->len);
    }
    print_cqe("wire ", a, i / CQE);
    print_cqe("links", b, i / CQE);
    die("different completions, %s: number %zu; %zu over the wire, %zu with "
        "links", a->name, i / CQE, a->len / CQE, b->len / CQE);
}

void outcome_compare(struct outcome *wire, struct outcome *linked)
{
    unsigned i;

    /* each queue and buffer of one run is in the other, perhaps empty */
    for (i = 0; i < wire->parts; i++) {
        part_of(linked, wire->part[i].name, wire->part[i].memory);
    }
    for (i = 0; i < linked->parts; i++) {
        compare_part(part_of(wire, linked->part[i].name,
                             linked->part[i].memory), &linked->part[i]);
    }
}

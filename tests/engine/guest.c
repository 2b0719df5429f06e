/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "guest.h"

#define MAILBOX 4096

static const char *status_name(uint8_t s)
{
    static const char *const names[] = {
        "OK", "BAD_OPCODE", "UNSUPPORTED", "BAD_PARAM", "BAD_OBJ",
        "BAD_STATE", "BUSY", "NO_RESOURCES", "DMA_ERROR", "BAD_TABLE"
    };

    return s < sizeof(names) / sizeof(names[0]) ? names[s] : "?";
}

/* ---- admin queue ---- */

struct gwait {
    struct gwait *first;        /* given earlier, or NULL */
    uint16_t id;
    bool done;
    struct qhca_aq_cqe cqe;
};

bool guest_can_command(const struct guest *g)
{
    return !g->wait || (!g->wait->first && g->aq_shift > 0);
}

/* Take the next answer, if it is there, for the command that waits for it. */
static bool take_answer(struct guest *g)
{
    uint32_t slot = g->acq_cons & ((1u << g->aq_shift) - 1);
    struct qhca_aq_cqe cqe;
    struct gwait *w;

    memcpy(&cqe, gmem_ptr(g->m, g->acq + 16 * slot, 16), 16);
    if ((cqe.phase & 1) == (g->acq_cons >> g->aq_shift & 1)) {
        return false;
    }
    /* they come in order: the first that is not done */
    for (w = g->wait; w->first && !w->first->done; w = w->first) {
    }
    CHECK(cqe.cmd_id == w->id, "answer to another command: %#x, not %#x",
          cqe.cmd_id, w->id);
    g->acq_cons++;
    w->cqe = cqe;
    w->done = true;
    return true;
}

/* The mailboxes of the command that is given now. */
static void mailboxes(struct guest *g, uint64_t *in, uint64_t *out)
{
    *in = g->in;
    *out = g->out;
    if (g->wait) {
        if (!g->second_in) {
            g->second_in = gmem_alloc(g->m, MAILBOX, 12, 0);
            g->second_out = gmem_alloc(g->m, MAILBOX, 12, 0);
        }
        *in = g->second_in;
        *out = g->second_out;
    }
}

uint8_t guest_cmd(struct guest *g, struct gcmd *c)
{
    uint32_t depth = 1u << g->aq_shift;
    uint32_t slot = g->asq_prod & (depth - 1);
    struct gwait w = { .first = g->wait, .id = (uint16_t)rng_u32(&g->rng) };
    struct qhca_aq_cmd cmd;
    uint64_t in, out;
    unsigned i;

    CHECK(guest_can_command(g),
          "the test gives a command while others are under way");
    mailboxes(g, &in, &out);
    g->wait = &w;
    memset(&cmd, 0, sizeof(cmd));
    cmd.opcode = c->op;
    cmd.cmd_id = w.id;
    cmd.obj = c->obj;
    cmd.mask = c->mask;
    cmd.arg = c->arg;
    if (c->in) {
        CHECK(c->in_len <= MAILBOX, "too long");
        memcpy(gmem_ptr(g->m, in, c->in_len), c->in, c->in_len);
        gmem_allow(g->m, in, c->in_len, GMEM_R);
        cmd.in_addr = in;
        cmd.in_len = c->in_len;
    }
    if (c->out) {
        CHECK(c->out_len <= MAILBOX, "too long");
        memset(gmem_ptr(g->m, out, c->out_len), 0xa5, c->out_len);
        gmem_allow(g->m, out, c->out_len, GMEM_W);
        cmd.out_addr = out;
        cmd.out_len = c->out_len;
    }
    memcpy(gmem_ptr(g->m, g->asq + 64 * slot, 64), &cmd, 64);
    g->asq_prod++;
    node_reg_write(g->n, QHCA_REG_ASQ_DB, g->asq_prod, 4);
    for (i = 0; !w.done; i++) {
        if (take_answer(g)) {
            continue;
        }
        /* A blocked wire or other work may delay it; a peer's copy, 1 s. */
        CHECK(i < 2000 || g->n->w->wait,
              "%s: command %#x on %#x is not answered", g->m->name, c->op,
              c->obj);
        if (g->n->kicked) {
            node_drain(g->n);
        } else if (g->n->w->wait) {
            g->n->w->wait(g->n->w);
        } else {
            world_run(g->n->w, i < 500 ? 1000 : 1000000);
        }
    }
    if (c->in) {
        gmem_deny(g->m, in, c->in_len, GMEM_R);
    }
    if (c->out) {
        gmem_deny(g->m, out, c->out_len, GMEM_W);
        memcpy(c->out, gmem_ptr(g->m, out, c->out_len), c->out_len);
    }
    c->robj = w.cqe.obj;
    c->result = w.cqe.result;
    g->wait = w.first;
    return w.cqe.status;
}

uint32_t guest_must(struct guest *g, struct gcmd *c)
{
    uint8_t s = guest_cmd(g, c);

    CHECK(s == QHCA_ST_OK, "%s: command %#x on %#x: %s (%u), result %#"
          PRIx64, g->m->name, c->op, c->obj, status_name(s), s, c->result);
    return c->robj;
}

uint8_t guest_simple(struct guest *g, uint8_t op, uint32_t obj)
{
    struct gcmd c = { .op = op, .obj = obj };

    return guest_cmd(g, &c);
}

struct qhca_qpc guest_rss_context(const struct guest *g, uint32_t rqtn,
                                  uint32_t fields)
{
    struct qhca_qpc c;

    memset(&c, 0, sizeof(c));
    c.type = QHCA_QPT_RSS;
    c.pd = g->pd;
    c.uar = g->uar;
    c.rqtn = rqtn;
    c.rx_hash_fields = fields;
    c.rx_hash_func = QHCA_HASH_TOEPLITZ;
    return c;
}

uint32_t guest_create(struct guest *g, uint8_t op, const void *in,
                      uint32_t in_len)
{
    struct gcmd c = { .op = op, .in = in, .in_len = in_len };

    return guest_must(g, &c);
}

void guest_query(struct guest *g, uint8_t op, uint32_t obj, void *out,
                 uint32_t out_len)
{
    struct gcmd c = { .op = op, .obj = obj, .out = out, .out_len = out_len };

    guest_must(g, &c);
}

void guest_stats(struct guest *g, uint64_t stats[QHCA_STAT_COUNT])
{
    guest_query(g, QHCA_CMD_QUERY_STATS, 0, stats,
                QHCA_STAT_COUNT * sizeof(stats[0]));
}

void guest_doorbell(struct guest *g, uint32_t uar, unsigned off,
                    uint64_t val)
{
    struct geq *eq = NULL;
    unsigned i;

    for (i = 0; uar == 0 && off == QHCA_DB_EQ && i < g->eqs; i++) {
        if (g->eq[i].eqn == (val & QHCA_DB_NUM_MASK) &&
            val & QHCA_DB_EQ_ARM) {
            eq = &g->eq[i];
            eq->armed = true;
        }
    }
    node_db_write(g->n, ((uint64_t)uar << g->db_shift) + off, val, 8);
    if (eq && eq->dbrec) {
        eq->armed = false;      /* the interrupt was raised, or is not due */
    }
}

/* ---- doorbell records ---- */

uint64_t guest_dbrec(struct guest *g, bool flags)
{
    uint64_t a = gmem_alloc(g->m, 8, 12, rng_below(&g->rng, 512) * 8);

    gmem_allow(g->m, a, 8, GMEM_R);
    if (flags) {
        gmem_allow(g->m, a + 4, 4, GMEM_W);
    }
    return a;
}

void guest_dbrec_free(struct guest *g, uint64_t addr)
{
    gmem_release(g->m, addr, 8);
}

void guest_dbrec_set(struct guest *g, uint64_t addr, uint32_t index)
{
    memcpy(gmem_ptr(g->m, addr, 4), &index, 4);
}

uint32_t guest_dbrec_flags(struct guest *g, uint64_t addr)
{
    uint32_t v;

    memcpy(&v, gmem_ptr(g->m, addr + 4, 4), 4);
    return v;
}

/* ---- events ---- */

/* The entry at @index; false: it is not there. */
static bool eq_entry(const struct geq *eq, uint32_t index,
                     struct qhca_eqe *eqe)
{
    uint32_t slot = index & ((1u << eq->shift) - 1);

    gbuf_read(&eq->buf, slot * sizeof(*eqe), eqe, sizeof(*eqe));
    return (eqe->phase & 1) != (index >> eq->shift & 1);
}

bool geq_peek(const struct geq *eq, struct qhca_eqe *eqe)
{
    return eq_entry(eq, eq->cons, eqe);
}

void geq_tell(struct geq *eq)
{
    struct guest *g = eq->g;

    guest_dbrec_set(g, eq->dbrec, eq->cons);
    /* here a full barrier */
    if (guest_dbrec_flags(g, eq->dbrec) & QHCA_DBREC_NOTIFY) {
        guest_doorbell(g, 0, QHCA_DB_EQ, eq->eqn);
    }
}

static void eq_ring(struct geq *eq, bool arm)
{
    guest_doorbell(eq->g, 0, QHCA_DB_EQ, eq->eqn | (arm ? QHCA_DB_EQ_ARM : 0) |
                   (uint64_t)eq->cons << QHCA_DB_INDEX_SHIFT);
}

/* @lazy: if it has a record, perhaps not all of them. */
static unsigned poll_eq(struct guest *g, unsigned i, bool lazy)
{
    struct geq *eq = &g->eq[i];
    struct qhca_eqe e;
    unsigned n = 0;

    for (;;) {
        if (!geq_peek(eq, &e)) {
            if (!eq->dbrec) {
                break;
            }
            geq_tell(eq);
            if (!geq_peek(eq, &e)) {
                return n;
            }
        }
        eq->cons++;
        eq->events++;
        n++;
        if (e.type == QHCA_EV_CQ) {
            if (g->on_cq_event) {
                g->on_cq_event(g, e.obj);
            }
        } else {
            CHECK(eq->eqn == QHCA_EQN_ASYNC, "event %#x on EQ %u", e.type,
                  eq->eqn);
            g->async_count[e.type]++;
            if (g->on_async) {
                g->on_async(g, &e);
            }
        }
        if (!g->up) {
            return n;
        }
        /* a small EQ must be emptied before it can continue */
        if (rng_pct(&g->rng, 10)) {
            if (!eq->dbrec) {
                eq_ring(eq, false);
            } else {
                geq_tell(eq);
                if (lazy && n & 1 && geq_peek(eq, &e)) {
                    break;      /* its budget is used up: the rest later */
                }
            }
        }
    }
    eq_ring(eq, true);
    return n;
}

unsigned guest_poll_eq(struct guest *g, unsigned i)
{
    return poll_eq(g, i, false);
}

static void interrupt(void *opaque, uint64_t vector)
{
    struct guest *g = opaque;
    unsigned i;

    for (i = 0; g->up && i < g->eqs; i++) {
        if (g->eq[i].scheduled && vector == i + 1) {
            g->eq[i].scheduled = false;
            poll_eq(g, i, true);
        }
    }
}

/*
 * With a record: there is an entry, and it is the only one that software has
 * not consumed, unless software asked for an interrupt at once.
 */
static bool asked_by_record(const struct geq *eq)
{
    struct qhca_eqe e;
    uint32_t index;

    memcpy(&index, gmem_ptr(eq->g->m, eq->dbrec, 4), 4);
    return eq_entry(eq, index, &e) &&
           (eq->armed || !eq_entry(eq, index + 1, &e));
}

static void on_msix(struct node *n, unsigned vector)
{
    struct guest *g = n->opaque;

    if (!g->up || vector < 1 || vector > g->eqs) {
        return;
    }
    if (!g->m->unchecked && !g->irqs_held) {    /* a sane driver gets what it asked for */
        CHECK(g->eq[vector - 1].dbrec ? asked_by_record(&g->eq[vector - 1]) :
              g->eq[vector - 1].armed, "%s: an interrupt of EQ %u, which is "
              "not armed", g->m->name, g->eq[vector - 1].eqn);
    }
    g->eq[vector - 1].armed = false;
    if (!g->eq[vector - 1].scheduled) {
        g->eq[vector - 1].scheduled = true;
        world_call(n->w, n->w->now + rng_below(&g->rng, g->irq_ns + 1),
                   interrupt, g, vector);
    }
}

/* ---- life ---- */

void guest_gid(unsigned node, unsigned index, uint8_t gid[16])
{
    memset(gid, 0, 16);
    if (index & 1) {
        gid[0] = 0xfd;
        gid[1] = index & 2 ? 0x98 : 0x99;
    } else {
        gid[10] = gid[11] = 0xff;
        gid[12] = 10;
        gid[13] = index & 2 ? 98 : 99;
    }
    gid[15] = (uint8_t)(node + 1);
}

void guest_av(const struct guest *g, const struct node *peer,
              unsigned index, struct qhca_av *av)
{
    (void)g;
    memset(av, 0, sizeof(*av));
    guest_gid(peer->id, index, av->dgid);
    memcpy(av->dmac, peer->mac, 6);
    av->sgid_index = (uint16_t)index;
    av->hop_limit = 64;
}

static void set_gids(struct guest *g)
{
    unsigned i;

    for (i = 0; i < GUEST_GIDS; i++) {
        struct qhca_gid gid;
        struct gcmd c = { .op = QHCA_CMD_SET_GID, .obj = i, .in = &gid,
                          .in_len = sizeof(gid) };

        memset(&gid, 0, sizeof(gid));
        guest_gid(g->n->id, i, gid.gid);
        memcpy(gid.mac, g->n->mac, 6);
        gid.vlan = i & 2 ? 5 : QHCA_VLAN_NONE;
        gid.type = QHCA_GID_ROCE_V2;
        guest_must(g, &c);
    }
}

static void make_eq(struct guest *g, unsigned i,
                    const struct guest_config *cfg)
{
    struct geq *eq = &g->eq[i];
    struct gbuf_shape s = gbuf_direct;
    uint8_t shift = (uint8_t)cfg->eq_shift;
    struct qhca_eqc c;
    uint64_t len = sizeof(struct qhca_eqe) << shift;

    if (cfg->shapes) {
        gbuf_shape_random(&s, &g->rng, len);
    }
    eq->g = g;
    eq->shift = shift;
    eq->cons = 0;
    eq->armed = false;
    gbuf_make(&eq->buf, g->m, len, &s, true, 0, &g->rng);
    gbuf_allow(&eq->buf, 0, len, GMEM_W);
    memset(&c, 0, sizeof(c));
    c.buf = eq->buf.d;
    c.shift = shift;
    c.vector = (uint16_t)(i + 1);
    if (cfg->records >> i & 1) {
        eq->dbrec = gmem_alloc(g->m, 8, 12, i * 64);
        gmem_allow(g->m, eq->dbrec, 8, GMEM_R);
        gmem_allow(g->m, eq->dbrec + 4, 4, GMEM_W);
        c.flags = QHCA_EQ_F_RECORD;
        c.dbrec = eq->dbrec;
    }
    eq->eqn = guest_create(g, QHCA_CMD_CREATE_EQ, &c, sizeof(c));
    CHECK(i || eq->eqn == QHCA_EQN_ASYNC, "the first EQ is number %u",
          eq->eqn);
}

void guest_start(struct guest *g, struct node *n, uint64_t seed,
                 const struct guest_config *cfg)
{
    struct guest_config c;
    uint64_t ring;
    unsigned i;

    memset(g, 0, sizeof(*g));
    rng_init(&g->rng, seed);
    if (cfg) {
        c = *cfg;
    } else {
        c.db_shift = (uint32_t)rng_range(&g->rng, 12, 16);
        c.aq_shift = (uint32_t)rng_range(&g->rng, 1, 8);
        c.eqs = (uint32_t)rng_range(&g->rng, 2, GUEST_EQS);
        c.eq_shift = (uint32_t)rng_range(&g->rng, 1, 8);
        c.shapes = true;
        c.irq_ns = rng_log(&g->rng, 20000);
        /*
         * not drawn, so that seeds give the same runs as before there were
         * records
         */
        c.records = seed & 2 ? UINT32_MAX : 0;
        c.sq_records = seed & 1;
    }
    g->n = n;
    g->m = &n->mem;
    g->irq_ns = c.irq_ns;
    g->sq_records = c.sq_records;
    g->db_shift = c.db_shift;
    g->aq_shift = c.aq_shift;

    CHECK(node_reg_read(n, QHCA_REG_ID, 4) == QHCA_ID_MAGIC, "no device");
    CHECK(node_reg_read(n, QHCA_REG_VERSION, 4) >> 16 == QHCA_VERSION_MAJOR,
          "another version");
    ring = 1ULL << c.aq_shift;
    g->asq = gmem_alloc(g->m, ring * sizeof(struct qhca_aq_cmd), 12, 0);
    gmem_allow(g->m, g->asq, ring * sizeof(struct qhca_aq_cmd), GMEM_R);
    g->acq = gmem_alloc(g->m, ring * sizeof(struct qhca_aq_cqe), 12, 0);
    gmem_allow(g->m, g->acq, ring * sizeof(struct qhca_aq_cqe), GMEM_W);
    g->in = gmem_alloc(g->m, MAILBOX, 12, 0);
    g->out = gmem_alloc(g->m, MAILBOX, 12, 0);
    node_reg_write(n, QHCA_REG_DB_SHIFT, c.db_shift, 4);
    node_reg_write(n, QHCA_REG_ASQ_BASE, g->asq, 8);
    node_reg_write(n, QHCA_REG_ACQ_BASE, g->acq, 8);
    node_reg_write(n, QHCA_REG_AQ_SHIFT, c.aq_shift, 4);
    node_reg_write(n, QHCA_REG_CTRL, QHCA_CTRL_ENABLE, 4);
    CHECK(node_reg_read(n, QHCA_REG_STATUS, 4) & QHCA_STATUS_READY,
          "not ready: status %#" PRIx64,
          node_reg_read(n, QHCA_REG_STATUS, 4));
    guest_query(g, QHCA_CMD_QUERY_DEVICE, 0, &g->caps, sizeof(g->caps));
    n->on_msix = on_msix;
    n->opaque = g;
    g->up = true;
    for (i = 0; i < c.eqs; i++) {
        make_eq(g, i, &c);
        g->eqs = i + 1;
        if (!g->eq[i].dbrec) {
            eq_ring(&g->eq[i], true);
        }
    }
    g->uar = guest_create(g, QHCA_CMD_ALLOC_UAR, NULL, 0);
    CHECK(g->uar, "UAR 0 is the kernel's");
    g->pd = guest_create(g, QHCA_CMD_ALLOC_PD, NULL, 0);
    set_gids(g);
}

static void release(struct guest *g)
{
    uint64_t ring = 1ULL << g->aq_shift;
    unsigned i;

    g->up = false;
    g->n->on_msix = NULL;
    for (i = 0; i < g->eqs; i++) {
        gbuf_free(&g->eq[i].buf);
        if (g->eq[i].dbrec) {
            guest_dbrec_free(g, g->eq[i].dbrec);
        }
    }
    gmem_release(g->m, g->asq, ring * sizeof(struct qhca_aq_cmd));
    gmem_release(g->m, g->acq, ring * sizeof(struct qhca_aq_cqe));
    gmem_release(g->m, g->in, MAILBOX);
    gmem_release(g->m, g->out, MAILBOX);
    if (g->second_in) {
        gmem_release(g->m, g->second_in, MAILBOX);
        gmem_release(g->m, g->second_out, MAILBOX);
        g->second_in = g->second_out = 0;
    }
}

void guest_stop(struct guest *g)
{
    unsigned i;
    uint8_t s;

    s = guest_simple(g, QHCA_CMD_FREE_PD, g->pd);
    CHECK(s == QHCA_ST_OK, "FREE_PD: %s", status_name(s));
    s = guest_simple(g, QHCA_CMD_FREE_UAR, g->uar);
    CHECK(s == QHCA_ST_OK, "FREE_UAR: %s", status_name(s));
    for (i = g->eqs; i--; ) {
        s = guest_simple(g, QHCA_CMD_DESTROY_EQ, g->eq[i].eqn);
        CHECK(s == QHCA_ST_OK, "DESTROY_EQ: %s", status_name(s));
    }
    node_reg_write(g->n, QHCA_REG_CTRL, 0, 4);
    CHECK(!(node_reg_read(g->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_READY),
          "still ready");
    release(g);
}

void guest_drop(struct guest *g)
{
    release(g);
}

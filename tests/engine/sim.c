/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Main program of the simulation: seeds, workloads, one run. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/rc.h"
#include "sim_hostile.h"
#include "sim_outcome.h"

#define WORKLOADS_MAX   64

static const char *program;
static struct sim *current;
static bool sabotage;
static unsigned reborn;
/* Runs with memory links: chosen by seed, none, all. */
static enum { LINKS_BY_SEED, LINKS_NEVER, LINKS_ALWAYS } memlinks;
/* The same for a hostile peer, where there are memory links. */
static enum { HOSTILE_BY_SEED, HOSTILE_NEVER, HOSTILE_ALWAYS } hostility;
static bool impostor;
static bool compares;
static int spoils;              /* enum outcome_spoil */

const char *sim_wc_name(unsigned status)
{
    static const char *const names[] = {
        [QHCA_WC_SUCCESS] = "SUCCESS",
        [QHCA_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [QHCA_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
        [QHCA_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [QHCA_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
        [QHCA_WC_MW_BIND_ERR] = "MW_BIND_ERR",
        [QHCA_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
        [QHCA_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
        [QHCA_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
        [QHCA_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [QHCA_WC_REM_OP_ERR] = "REM_OP_ERR",
        [QHCA_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
        [QHCA_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
        [QHCA_WC_FATAL_ERR] = "FATAL_ERR",
        [QHCA_WC_GENERAL_ERR] = "GENERAL_ERR",
    };

    return status < sizeof(names) / sizeof(names[0]) && names[status] ?
           names[status] : "?";
}

/* ---- ranges ---- */

void spans_init(struct spans *s, uint64_t size)
{
    s->size = size;
    s->head = s->tail = 0;
    s->first = s->next = 0;
}

bool spans_empty(const struct spans *s)
{
    return s->first == s->next;
}

bool spans_alloc(struct spans *s, uint64_t len, uint64_t gap, uint64_t *off,
                 uint32_t *handle)
{
    uint64_t start;

    if (spans_empty(s)) {
        s->head = s->tail = 0;
    }
    start = s->head;
    if (start % s->size + len > s->size) {
        start += s->size - start % s->size;
    }
    if (start + len - s->tail > s->size || s->next - s->first == SPAN_MAX) {
        return false;
    }
    *off = start % s->size;
    *handle = s->next;
    s->head = start + len;
    if (s->head + gap - s->tail <= s->size) {
        s->head += gap;
    }
    s->e[s->next % SPAN_MAX].end = s->head;
    s->e[s->next % SPAN_MAX].freed = false;
    s->next++;
    return true;
}

void spans_free(struct spans *s, uint32_t handle)
{
    CHECK(handle - s->first < s->next - s->first &&
          !s->e[handle % SPAN_MAX].freed, "the test frees a range twice");
    s->e[handle % SPAN_MAX].freed = true;
    while (s->first != s->next && s->e[s->first % SPAN_MAX].freed) {
        s->tail = s->e[s->first % SPAN_MAX].end;
        s->first++;
    }
}

uint64_t sim_area(struct area *a, struct guest *g, uint64_t size,
                  uint32_t access, bool plain)
{
    struct gbuf_shape shape = gbuf_direct;
    uint64_t iova = rng_u64(&g->rng) >> rng_range(&g->rng, 1, 40);

    if (!plain) {
        gbuf_shape_random(&shape, &g->rng, size);
    }
    if (rng_pct(&g->rng, 15)) {
        gmr_create_dm(&a->mr, g, size, iova, access);
    } else {
        gmr_create(&a->mr, g, size, iova, access, &shape);
    }
    spans_init(&a->spans, size);
    return iova;
}

uint64_t sim_area_odp(struct area *a, struct guest *g, uint64_t size,
                      uint32_t access, bool plain)
{
    struct sim *s = g->opaque;
    struct gbuf_shape shape;
    uint64_t iova;

    if (!rng_pct(&g->rng, s->odp_pct)) {
        return sim_area(a, g, size, access, plain);
    }
    iova = rng_u64(&g->rng) >> rng_range(&g->rng, 1, 40);
    godp_shape_random(&shape, &g->rng);
    a->odp = odp_add(s);
    godp_create(a->odp, &a->mr, g, size, iova, access, &shape);
    spans_init(&a->spans, size);
    return iova;
}

void sim_area_free(struct area *a)
{
    uint8_t s;

    if (a->odp) {
        odp_remove(a->mr.g->opaque, a->odp);
        s = godp_destroy(a->odp);
        free(a->odp);
    } else {
        s = gmr_destroy(&a->mr);
    }

    CHECK(s == QHCA_ST_OK, "DESTROY_MR: status %u", s);
}

/* ---- completion queues ---- */

struct cqx *sim_cq(struct sim *s, struct guest *g, enum cq_mode mode,
                   uint32_t need)
{
    struct cqx *c = calloc(1, sizeof(*c));
    struct rng *r = &g->rng;
    unsigned lazy = rng_pct(r, 50) ? 1 : (unsigned)rng_range(r, 1, 20);
    struct gbuf_shape shape;
    uint8_t shift = 0;

    CHECK(c, "no memory");
    c->s = s;
    c->g = g;
    c->mode = mode;
    while (1u << shift < need + lazy - 1) {
        shift++;
    }
    c->room = (1u << shift) - (lazy - 1);
    c->least = shift;
    gbuf_shape_random(&shape, r, sizeof(struct qhca_cqe) << shift);
    gcq_create(&c->cq, g, shift, &shape,
               g->eq[rng_range(r, 1, g->eqs - 1)].eqn);
    c->cq.lazy = lazy;
    if (rng_pct(r, 30)) {
        struct qhca_cqc m = { .mod_count = (uint16_t)rng_log(r, 60),
                              .mod_usec = (uint16_t)rng_log(r, 100) };
        struct gcmd cmd = { .op = QHCA_CMD_MODIFY_CQ, .obj = c->cq.cqn,
                            .in = &m, .in_len = sizeof(m),
                            .mask = QHCA_CQ_M_MODERATION };

        guest_must(g, &cmd);
    }
    s->cq = realloc(s->cq, (s->cqs + 1) * sizeof(*s->cq));
    CHECK(s->cq, "no memory");
    s->cq[s->cqs++] = c;
    return c;
}

static void pump_dirty(struct sim *s, struct guest *g)
{
    unsigned i;

    if (s->ending) {
        return;
    }
    for (i = 0; i < s->eps; i++) {
        if (s->ep[i]->g == g && s->ep[i]->dirty) {
            s->ep[i]->dirty = false;
            s->ep[i]->pump(s->ep[i]);
        }
    }
}

/*
 * In one run of eight CQs are resized while in use, never to less than their
 * queues need, unless the guest waits for another command.  (No random number
 * is drawn, so other runs stay the same.)
 */
static void maybe_resize(struct cqx *c)
{
    uint64_t h = (c->s->seed + c->cq.cqn * 0x51ULL) * 0x9e3779b97f4a7c15ULL;
    struct gbuf_shape shape;
    uint8_t shift;

    if (h >> 61 || c->s->ending || c->g->wait || c->seen < c->resize_at) {
        return;
    }
    c->resize_at = c->seen + 1 + (h >> 40) % 37;
    shift = c->least + (c->seen + (h >> 32)) % 3;
    gbuf_shape_random(&shape, &c->g->rng, sizeof(struct qhca_cqe) << shift);
    CHECK(gcq_resize(&c->cq, shift, &shape) == QHCA_ST_OK || c->s->hostile,
          "CQ %u: not resized to %u", c->cq.cqn, shift);
}

static void record_cqe(struct ep *ep, const struct qhca_cqe *cqe)
{
    char name[OUTCOME_NAME];

    if (ep->s->outcome) {
        snprintf(name, sizeof(name), "end %u, QP %s/%#x, %s", ep->number,
                 ep->g->m->name, ep->qp.qpn,
                 cqe->opcode & 0x80 ? "receives" : "sends");
        outcome_cqe(ep->s->outcome, name, cqe);
    }
}

void sim_drain(struct cqx *c)
{
    struct qhca_cqe cqe;
    struct sim *s = c->s;
    unsigned node = c->g->n->id;
    struct ep *ep;

    while (gcq_poll(&c->cq, &cqe)) {
        c->seen++;
        ep = cqe.qpn < s->by_qpn_len[node] ? s->by_qpn[node][cqe.qpn] : NULL;
        if (c->owner) {
            ep = c->owner;
        }
        CHECK(ep, "%s: a completion for QP %#x, status %s", c->g->m->name,
              cqe.qpn, sim_wc_name(cqe.status));
        /*
         * the time of a frame is that of its arrival; it may then have been
         * held
         */
        CHECK(cqe.timestamp <= s->w.now &&
              (cqe.timestamp >= c->empty ||
               cqe.opcode == QHCA_CQE_OP_ETH_RECV),
              "a completion of %" PRIu64 ", now is %" PRIu64 ", and there "
              "was none at %" PRIu64, (uint64_t)cqe.timestamp, s->w.now,
              c->empty);
        CHECK((cqe.opcode & 0x80 ? ep->rcq : ep->scq) == c,
              "QP %#x: a completion in the wrong CQ", cqe.qpn);
        ep->on_cqe(ep, &cqe);
        record_cqe(ep, &cqe);
        ep->dirty = true;
    }
    c->empty = s->w.now;
    maybe_resize(c);
}

static void cq_tick(void *opaque, uint64_t arg)
{
    struct cqx *c = opaque;

    (void)arg;
    c->ticking = false;
    if (c->s->ending) {
        return;
    }
    sim_drain(c);
    pump_dirty(c->s, c->g);
    c->ticking = true;
    world_call(&c->s->w, c->s->w.now + 1 + rng_log(&c->g->rng,
               c->mode == CQ_POLL ? 30000 : 300000), cq_tick, c, 0);
}

static void on_cq_event(struct guest *g, uint32_t cqn)
{
    struct sim *s = g->opaque;
    unsigned i;

    for (i = 0; i < s->cqs; i++) {
        struct cqx *c = s->cq[i];

        if (c->g == g && c->cq.cqn == cqn) {
            CHECK(c->mode != CQ_POLL, "an event that was not requested");
            sim_drain(c);
            gcq_arm(&c->cq, c->mode == CQ_SOLICITED);
            if (rng_pct(&g->rng, 50)) {
                sim_drain(c);
            }
            pump_dirty(s, g);
            return;
        }
    }
    die("an event of CQ %#x, which does not exist", cqn);
}

static void on_async(struct guest *g, const struct qhca_eqe *eqe)
{
    struct sim *s = g->opaque;
    struct ep *ep;

    switch (eqe->type) {
    case QHCA_EV_PORT:
    case QHCA_EV_SRQ_LIMIT:
    case QHCA_EV_SRQ_ERR:
    case QHCA_EV_CQ_ERR:        /* a test that provokes one checks the count */
        return;
    case QHCA_EV_PAGE_FAULT:
        odp_fault(g, eqe->obj);
        return;
    case QHCA_EV_QP_FATAL:
    case QHCA_EV_QP_REQ_ERR:
    case QHCA_EV_QP_ACCESS_ERR:
    case QHCA_EV_COMM_EST:
    case QHCA_EV_SQ_DRAINED:
    case QHCA_EV_LAST_WQE:
        ep = eqe->obj < s->by_qpn_len[g->n->id] ?
             s->by_qpn[g->n->id][eqe->obj] : NULL;
        if (ep && ep->on_async) {
            ep->on_async(ep, eqe);
            return;
        }
        if (!ep || eqe->type == QHCA_EV_COMM_EST ||
            eqe->type == QHCA_EV_LAST_WQE) {
            return;             /* the QP may be gone by now */
        }
        break;
    }
    die("%s: event %#x, object %#x, syndrome %#x", g->m->name, eqe->type,
        eqe->obj, eqe->syndrome);
}

/* ---- endpoints ---- */

struct ep *sim_ep(struct sim *s, struct guest *g)
{
    struct ep *ep = calloc(1, sizeof(*ep));

    CHECK(ep, "no memory");
    ep->s = s;
    ep->g = g;
    ep->number = s->eps;
    s->ep = realloc(s->ep, (s->eps + 1) * sizeof(*s->ep));
    CHECK(s->ep, "no memory");
    s->ep[s->eps++] = ep;
    return ep;
}

void sim_ep_bind(struct ep *ep)
{
    struct sim *s = ep->s;
    unsigned n = ep->g->n->id;
    uint32_t i = s->by_qpn_len[n];

    if (ep->qp.qpn >= i) {
        s->by_qpn_len[n] = ep->qp.qpn + 64;
        s->by_qpn[n] = realloc(s->by_qpn[n], s->by_qpn_len[n] *
                               sizeof(*s->by_qpn[n]));
        CHECK(s->by_qpn[n], "no memory");
        for (; i < s->by_qpn_len[n]; i++) {
            s->by_qpn[n][i] = NULL;
        }
    }
    CHECK(!s->by_qpn[n][ep->qp.qpn], "QPN %#x given twice", ep->qp.qpn);
    s->by_qpn[n][ep->qp.qpn] = ep;
}

void sim_ep_unbind(struct ep *ep)
{
    ep->s->by_qpn[ep->g->n->id][ep->qp.qpn] = NULL;
}

static void ep_tick(void *opaque, uint64_t arg)
{
    struct ep *ep = opaque;

    (void)arg;
    ep->ticking = false;
    if (!ep->s->ending) {
        ep->pump(ep);
    }
}

void sim_tick(struct ep *ep, uint64_t ns)
{
    if (!ep->ticking) {
        ep->ticking = true;
        world_call(&ep->s->w, ep->s->w.now + ns, ep_tick, ep, 0);
    }
}

/* ---- one run ---- */

static void dump(void)
{
    struct sim *s = current;
    unsigned i;

    if (!s) {
        return;
    }
    fprintf(stderr, "virtual time %.3f us, %" PRIu64 " frames, %" PRIu64
            " lost, %" PRIu64 " duplicated, %" PRIu64 " corrupted\n",
            (double)s->w.now / 1000, s->w.frames, s->w.dropped,
            s->w.duplicated, s->w.corrupted);
    for (i = 0; i < s->eps; i++) {
        if (s->ep[i]->app && s->ep[i]->dump &&
            !s->ep[i]->idle(s->ep[i])) {
            s->ep[i]->dump(s->ep[i]);
        }
    }
    if (s->w.log) {
        fflush(s->w.log);
    }
    if (s->w.pcap) {
        fflush(s->w.pcap);
    }
}

void sim_start_guest(struct sim *s, unsigned i)
{
    guest_start(&s->g[i], &s->w.node[i], rng_u64(&s->rng), NULL);
    s->g[i].opaque = s;
    s->g[i].on_cq_event = on_cq_event;
    s->g[i].on_async = on_async;
}

static bool all_idle(struct sim *s)
{
    unsigned i;

    for (i = 0; i < s->eps; i++) {
        if (!s->ep[i]->idle(s->ep[i])) {
            return false;
        }
    }
    return true;
}

static void check_counters(struct sim *s)
{
    unsigned i;

    CHECK(!s->w.cuts, "%" PRIu64 " memory links cut off", s->w.cuts);
    for (i = 0; i < s->w.nodes; i++) {
        uint64_t st[QHCA_STAT_COUNT];
        struct world *w = &s->w;

        guest_stats(&s->g[i], st);
        CHECK(s->injects || s->hostile ||   /* a reset clears them */
              st[QHCA_STAT_ROCE_TX_PACKETS] +
              st[QHCA_STAT_ETH_TX_PACKETS] +
              st[QHCA_STAT_RAW_TX_PACKETS] + w->node[i].markers >=
              w->node[i].tx_frames,
              "%" PRIu64 " + %" PRIu64 " packets counted, %" PRIu64
              " frames sent", st[QHCA_STAT_ROCE_TX_PACKETS],
              st[QHCA_STAT_ETH_TX_PACKETS], w->node[i].tx_frames);
        CHECK(st[QHCA_STAT_AQ_COMMANDS] > 0, "counters do not change");
        if (!s->corrupts && !s->injects && !s->peer) {
            CHECK(!st[QHCA_STAT_ROCE_ICRC_ERRORS] &&
                  !st[QHCA_STAT_ROCE_RX_MALFORMED],
                  "%" PRIu64 " ICRC errors, %" PRIu64 " malformed",
                  st[QHCA_STAT_ROCE_ICRC_ERRORS],
                  st[QHCA_STAT_ROCE_RX_MALFORMED]);
        }
        if (s->no_rnr && !s->peer) {
            CHECK(!st[QHCA_STAT_ROCE_RNR_NAK_TX], "%" PRIu64 " RNR NAKs",
                  st[QHCA_STAT_ROCE_RNR_NAK_TX]);
            /* on a good wire nothing is retransmitted */
            CHECK(!st[QHCA_STAT_ROCE_RETRANSMITS] &&
                  !st[QHCA_STAT_ROCE_DUPLICATE] &&
                  !st[QHCA_STAT_ROCE_OUT_OF_SEQUENCE] &&
                  !st[QHCA_STAT_ROCE_TIMEOUTS], "%" PRIu64 " packets sent "
                  "again, %" PRIu64 " duplicates, %" PRIu64 " out of "
                  "sequence, %" PRIu64 " timeouts",
                  st[QHCA_STAT_ROCE_RETRANSMITS],
                  st[QHCA_STAT_ROCE_DUPLICATE],
                  st[QHCA_STAT_ROCE_OUT_OF_SEQUENCE],
                  st[QHCA_STAT_ROCE_TIMEOUTS]);
        }
        if (!s->hostile) {
            CHECK(!w->node[i].mem.faults, "%s: %" PRIu64 " accesses of the "
                  "device to memory that is not there", w->node[i].mem.name,
                  w->node[i].mem.faults);
            CHECK(!st[QHCA_STAT_DMA_ERRORS], "%" PRIu64 " DMA errors",
                  st[QHCA_STAT_DMA_ERRORS]);
        }
    }
}

/*
 * A lying wire: now and then it changes a byte of payload and corrects the
 * ICRC.  A simulation that does not notice is worthless.
 */
static bool lie(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    size_t l3 = frame[12] == 0x81 ? 18 : 14;
    bool v6 = frame[l3 - 2] == 0x86;
    size_t bth = l3 + (v6 ? 40 : 20) + 8, at;
    uint32_t crc;

    (void)src;
    /* a middle packet of a message is all payload */
    if (*len > bth + 200 && (frame[bth] == 0x01 || frame[bth] == 0x07 ||
                             frame[bth] == 0x0e)) {
        at = bth + 12 + rng_below(&w->rng, 100);
        frame[at] ^= 0x20;
        crc = qhca_icrc(frame + l3, v6, *len - l3 - 4);
        qhca_put_le32(frame + *len - 4, crc);
    }
    return true;
}

static void memlink_returns(void *opaque, uint64_t arg)
{
    struct sim *s = opaque;
    unsigned a = (unsigned)arg >> 8, b = (unsigned)arg & 0xff;

    if (!s->w.memlink[a][b].up) {
        world_memlink_up(&s->w, a, b);
    }
}

/* A link dies, with all that is in its rings; later there is a new one. */
static void memlink_dies(struct sim *s)
{
    struct rng *r = &s->w.memlink_rng;
    unsigned a = (unsigned)rng_below(r, s->w.nodes - 1);
    unsigned b = (unsigned)rng_range(r, a + 1, s->w.nodes - 1);

    if (s->w.memlink[a][b].up) {
        world_memlink_down(&s->w, a, b);
        s->deaths++;
        world_call(&s->w, s->w.now + 1 + rng_log(r, 1000000),
                   memlink_returns, s, a << 8 | b);
    }
}

/*
 * Now and then an adapter no longer wants to use its links, or does again: all
 * packets switch to the wire and back, in order.  Where frames get lost, links
 * do as well.
 */
static void toggle_memlinks(void *opaque, uint64_t arg)
{
    struct sim *s = opaque;
    struct rng *r = &s->w.memlink_rng;
    struct node *n = &s->w.node[rng_below(r, s->w.nodes)];

    if (arg) {
        node_memlinks_allow(n, rng_pct(r, 80));
        if (s->lossy && !s->no_deaths && rng_pct(r, 4)) {
            memlink_dies(s);
        }
    }
    if (!s->ending) {
        world_call(&s->w, s->w.now + 1000 + rng_log(r, 2000000),
                   toggle_memlinks, s, 1);
    }
}

struct totals {
    uint64_t records, named, revoked, deaths;
    uint64_t runs, frames, messages, bytes, virtual_ns;
    uint64_t attacks, attacked, cuts;   /* by a hostile peer */
    uint64_t same_cqes, same_bytes;     /* compared */
    double seconds;
};
_Static_assert(sizeof(struct totals) == 15 * 8, "totals_add() adds them all");

static void totals_add(struct totals *sum, const struct totals *t)
{
    sum->records += t->records;
    sum->named += t->named;
    sum->revoked += t->revoked;
    sum->deaths += t->deaths;
    sum->runs += t->runs;
    sum->frames += t->frames;
    sum->messages += t->messages;
    sum->bytes += t->bytes;
    sum->virtual_ns += t->virtual_ns;
    sum->attacks += t->attacks;
    sum->attacked += t->attacked;
    sum->cuts += t->cuts;
    sum->same_cqes += t->same_cqes;
    sum->same_bytes += t->same_bytes;
    sum->seconds += t->seconds;
}

/* Count what has passed by memory links. */
static void count_records(const struct qhca *e, struct totals *t)
{
    struct qhca_list *i;

    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        t->records += l->sent;
        t->named += l->sent_refs;
        t->revoked += l->revoked;
    }
}

static bool uses_memlinks(const struct sim_workload *wl, uint64_t seed)
{
    return (memlinks == LINKS_BY_SEED ? seed & 2 : memlinks == LINKS_ALWAYS) &&
           !wl->wire_only && !reborn && !sabotage;
}

static bool has_hostile_peer(const struct sim *s)
{
    return s->w.memlinks && s->attackable &&
           (hostility == HOSTILE_BY_SEED ? s->seed % 5 == 3 :
                                           hostility == HOSTILE_ALWAYS);
}

/* Work is over: record the contents of memory, before the ends go. */
static void record_memory(struct sim *s)
{
    unsigned i;

    for (i = 0; s->outcome && i < s->eps; i++) {
        CHECK(s->ep[i]->record, "the work of this workload depends on time");
        s->ep[i]->record(s->ep[i], s->outcome);
    }
    s->outcome = NULL;
}

/* @o: record the outcome, unless NULL. */
static void run_one(const struct sim_workload *wl, uint64_t seed,
                    FILE *log, bool trace, const char *pcap,
                    struct totals *t, struct outcome *o)
{
    struct sim sim, *s = &sim;
    struct qhca_config cfg;
    unsigned nodes, i;

    memset(s, 0, sizeof(*s));
    s->seed = seed;
    s->outcome = o;
    rng_init(&s->rng, seed);
    s->limit_ns = 300ULL * 1000000000;
    snprintf(die_replay, sizeof(die_replay), "%s --workload %s --seed %"
             PRIu64 " --reborn %u%s%s --log", program, wl->name, seed, reborn,
             impostor ? " --impostor" :
             hostility == HOSTILE_ALWAYS ? " --hostile" : "",
             compares ? " --compare" :
             memlinks == LINKS_ALWAYS ? " --memlinks" : "");
    current = s;
    die_hook = dump;
    nodes = (unsigned)rng_range(&s->rng, 2, WORLD_NODES);
    memset(&cfg, 0, sizeof(cfg));
    qhca_config_default(&cfg);
    cfg.num_vectors = WORLD_VECTORS;
    cfg.dm_size = GMEM_SPAN;
    cfg.super_frames = seed % 2;
    cfg.gro_hold = seed % 3 ? 0 : 20;
    cfg.reset_budget = seed % 2 ? 0 : 1;
    if (reborn) {
        /* tables for more than a run has: zeroing larger ones is half the time */
        cfg.max_qp = cfg.max_cq = cfg.max_srq = cfg.max_mr = 1u << 12;
    }
    world_init(&s->w, nodes, rng_u64(&s->rng), &cfg);
    s->w.log = log;
    s->w.trace = trace;
    s->w.reborn = reborn;
    if (pcap) {
        s->w.pcap = fopen(pcap, "wb");
        CHECK(s->w.pcap, "%s: %s", pcap, strerror(errno));
        pcap_header(s->w.pcap);
    }
    for (i = 0; i < s->w.nodes; i++) {
        s->w.node[i].kick_ns = rng_log(&s->rng, 3000);
        sim_start_guest(s, i);
    }
    /* (No random number of the wire or the workload is drawn for it.) */
    if (uses_memlinks(wl, seed)) {
        world_memlinks(&s->w);
        s->w.bell_ns = rng_log(&s->w.memlink_rng, 50000);
        toggle_memlinks(s, 0);
    }
    wl->build(s);
    if (has_hostile_peer(s)) {
        s->peer = hostile_open(s, impostor);
    }
    if (sabotage) {
        s->w.wire.filter = lie;
    }
    CHECK(s->eps || wl->script, "a workload without work");
    s->corrupts = s->w.wire.corrupt || s->w.wire.truncate;
    for (i = 0; i < s->cqs; i++) {
        if (s->cq[i]->mode != CQ_POLL) {
            gcq_arm(&s->cq[i]->cq, s->cq[i]->mode == CQ_SOLICITED);
        }
        if (s->cq[i]->mode != CQ_EVENT) {
            cq_tick(s->cq[i], 0);
        }
    }
    for (i = 0; i < s->eps; i++) {
        sim_tick(s->ep[i], rng_log(&s->rng, 100000));
    }
    if (wl->script) {
        wl->script(s);
    }
    while (!all_idle(s)) {
        CHECK(world_step(&s->w), "nothing happens any more, but there is "
              "work left");
        CHECK(s->w.now < s->limit_ns, "no end in sight");
    }
    /* whatever is still on the wire must do no harm */
    world_run(&s->w, rng_log(&s->rng, 200000));
    record_memory(s);
    s->ending = true;
    for (i = 0; i < s->eps; i++) {
        s->ep[i]->finish(s->ep[i]);
    }
    for (i = 0; i < s->w.nodes; i++) {
        if (!s->w.node[i].mem.fail_64k) {
            guest_poll_eq(&s->g[i], 0);
        }
    }
    if (s->peer) {
        hostile_close(s->peer);
        t->attacked++;
        t->attacks += hostile_records(s->peer);
        t->cuts += hostile_cuts(s->peer);
    }
    check_counters(s);
    for (i = 0; i < s->cqs; i++) {
        uint8_t st = gcq_destroy(&s->cq[i]->cq);

        CHECK(st == QHCA_ST_OK, "DESTROY_CQ: status %u", st);
        free(s->cq[i]);
    }
    for (i = 0; i < s->w.nodes; i++) {
        guest_stop(&s->g[i]);
        CHECK(s->w.node[i].mem.mapped_pages == 0,
              "%" PRIu64 " pages of the guest still mapped: the test leaks",
              s->w.node[i].mem.mapped_pages);
    }
    for (i = 0; i < s->w.nodes; i++) {
        count_records(s->w.node[i].e, t);
    }
    t->runs++;
    t->deaths += s->deaths;
    t->frames += s->w.frames;
    t->messages += s->messages;
    t->bytes += s->bytes;
    t->virtual_ns += s->w.now;
    for (i = 0; i < s->eps; i++) {
        free(s->ep[i]);
    }
    for (i = 0; i < WORLD_NODES; i++) {
        free(s->by_qpn[i]);
    }
    free(s->ep);
    free(s->cq);
    free(s->odp);
    current = NULL;
    if (s->w.pcap) {
        fclose(s->w.pcap);
    }
    world_fini(&s->w);
    free(s->peer);
}

/* Run a seed twice: over the wire, then with memory links. */
static void compare_seed(const struct sim_workload *wl, uint64_t seed,
                         FILE *log, bool trace, const char *pcap,
                         struct totals *t)
{
    struct outcome wire = { 0 }, linked = { 0 };
    uint64_t records = t->records;

    memlinks = LINKS_NEVER;
    run_one(wl, seed, log, trace, NULL, t, &wire);
    CHECK(t->records == records, "memory links that should not exist");
    if (log) {
        fprintf(log, "---- the same with memory links\n");
    }
    memlinks = LINKS_ALWAYS;
    linked.spoil = (enum outcome_spoil)spoils;
    run_one(wl, seed, log, trace, pcap, t, &linked);
    outcome_compare(&wire, &linked);
    t->same_cqes += linked.cqes;
    t->same_bytes += linked.bytes;
    outcome_free(&wire);
    outcome_free(&linked);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_seed(const struct sim_workload *wl, uint64_t seed,
                     FILE *log, bool trace, const char *pcap,
                     struct totals *t)
{
    double start = now_s();

    if (compares) {
        compare_seed(wl, seed, log, trace, pcap, t);
    } else {
        run_one(wl, seed, log, trace, pcap, t, NULL);
    }
    t->seconds += now_s() - start;
}

/* ---- command line ---- */

static const struct sim_workload *find_workload(const char *name)
{
    const struct sim_workload *w;

    for (w = sim_workloads; w->name; w++) {
        if (!strcmp(w->name, name)) {
            return w;
        }
    }
    fprintf(stderr, "%s: no workload %s\n", program, name);
    exit(2);
}

static void usage(FILE *f)
{
    const struct sim_workload *w;

    fprintf(f,
            "usage: sim [--seed N | --seeds FROM..TO | --time SECONDS | "
            "--seeds-file FILE]\n"
            "           [--workload NAME|all] [--log] [--trace] "
            "[--pcap FILE] [--reborn N]\n"
            "           [--memlinks] [--hostile] [--impostor] "
            "[--sabotage]\n           [--compare [--spoil WHAT]]\n\n"
            "  --seed N        one run\n"
            "  --seeds A..B    one run per seed\n"
            "  --time SECONDS  new seeds until the time is over; with "
            "--seed N from N on\n"
            "  --seeds-file F  lines of: workload seed (# comments)\n"
            "  --log           a line per packet on standard output\n"
            "  --trace         and the engines' trace events\n"
            "  --pcap FILE     the frames as they arrive (one seed)\n"
            "  --reborn N      one event in N finds its adapter saved, and "
            "loaded into a new one\n"
            "  --memlinks      memory links in all runs, not in every other "
            "pair of seeds\n"
            "  --hostile       the same, and a hostile peer of the links in "
            "all workloads that\n"
            "                  can have one, not in one run of ten\n"
            "  --impostor      the same, and it claims to be the peers of the "
            "others: must fail\n"
            "  --sabotage      the wire spoils payload and repairs the ICRC: "
            "must fail\n"
            "  --compare       run each seed over the wire, then with memory "
            "links: the same\n"
            "                  completions in each queue, the same memory "
            "(workload plan)\n"
            "  --spoil WHAT    make a difference, which must be found: memory, "
            "completion,\n"
            "                  order, loss\n\n"
            "workloads:\n");
    for (w = sim_workloads; w->name; w++) {
        fprintf(f, "  %-10s %s\n", w->name, w->help);
    }
}

static void run_file(const char *path, struct totals *t)
{
    FILE *f = fopen(path, "r");
    char line[256], name[64];
    uint64_t seed;

    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    while (fgets(line, sizeof(line), f)) {
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        if (sscanf(line, "%63s %" SCNu64, name, &seed) != 2) {
            fprintf(stderr, "%s: bad line: %s", path, line);
            exit(2);
        }
        run_seed(find_workload(name), seed, NULL, false, NULL, t);
    }
    fclose(f);
}

static void report(const char *what, const struct totals *t)
{
    printf("%-10s %6" PRIu64 " runs, %9" PRIu64 " frames, %8" PRIu64
           " records (%" PRIu64 " named, %" PRIu64 " revoked, %" PRIu64
           " links lost), %8" PRIu64
           " messages, %7.1f MiB, %8.3f s virtual, %6.1f s, %.0f frames/s\n",
           what, t->runs, t->frames, t->records, t->named, t->revoked,
           t->deaths, t->messages,
           (double)t->bytes / 1048576, (double)t->virtual_ns / 1e9,
           t->seconds, t->seconds > 0 ? (double)t->frames / t->seconds : 0);
    if (t->attacked) {
        printf("%-10s %" PRIu64 " runs with a hostile peer: %" PRIu64
               " records of it, cut off %" PRIu64 " times\n", what,
               t->attacked, t->attacks, t->cuts);
        CHECK((t->attacks && t->cuts) || t->attacked < 10,
              "the hostile peer did no harm");
    }
    if (compares) {
        printf("%-10s the same with links as without: %" PRIu64
               " completions, %.1f MiB of memory\n", what, t->same_cqes,
               (double)t->same_bytes / 1048576);
        CHECK(t->named || t->runs < 10, "no record with the location of its "
              "payload was sent, so nothing was compared");
    }
    fflush(stdout);
}

static bool selected(const struct sim_workload *w, const char *workload)
{
    return !strcmp(workload, "all") || !strcmp(workload, w->name);
}

/* Workloads in turn, for each seed from @from on, until @limit seconds have passed. */
static void run_timed(const char *workload, uint64_t from, double limit,
                      FILE *log, bool trace)
{
    double end = now_s() + limit;
    struct totals of[WORKLOADS_MAX], all;
    const struct sim_workload *w;
    uint64_t seed;

    memset(of, 0, sizeof(of));
    memset(&all, 0, sizeof(all));
    for (seed = from; now_s() < end; seed++) {
        for (w = sim_workloads; w->name; w++) {
            CHECK(w < sim_workloads + WORKLOADS_MAX, "too many workloads");
            if (selected(w, workload)) {
                run_seed(w, seed, log, trace, NULL, &of[w - sim_workloads]);
            }
        }
    }
    for (w = sim_workloads; w->name; w++) {
        if (selected(w, workload)) {
            report(w->name, &of[w - sim_workloads]);
            totals_add(&all, &of[w - sim_workloads]);
        }
    }
    if (!strcmp(workload, "all")) {
        report("all", &all);
    }
}

/* The sanitizers have a better one; this is for builds without. */
static void crash(int sig)
{
    signal(sig, SIG_DFL);
    die("signal %d", sig);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "seed", 1, NULL, 's' }, { "seeds", 1, NULL, 'r' },
        { "time", 1, NULL, 't' }, { "workload", 1, NULL, 'w' },
        { "log", 0, NULL, 'l' }, { "trace", 0, NULL, 'T' },
        { "pcap", 1, NULL, 'p' }, { "seeds-file", 1, NULL, 'f' },
        { "sabotage", 0, NULL, 'S' }, { "reborn", 1, NULL, 'R' },
        { "memlinks", 0, NULL, 'M' }, { "help", 0, NULL, 'h' },
        { "hostile", 0, NULL, 'H' }, { "compare", 0, NULL, 'c' },
        { "spoil", 1, NULL, 'P' }, { "impostor", 0, NULL, 'I' },
        { NULL, 0, NULL, 0 }
    };
    const char *pcap = NULL, *workload = NULL, *file = NULL;
    uint64_t from = 1, to = 1;
    const struct sim_workload *w;
    struct totals all;
    FILE *log = NULL;
    bool trace = false, given = false;
    double limit = 0;
    uint64_t seed;
    int c;

    program = argv[0];
#ifndef SANITIZED
    signal(SIGSEGV, crash);
    signal(SIGBUS, crash);
    signal(SIGFPE, crash);
    signal(SIGABRT, crash);
    signal(SIGTERM, crash);
#else
    (void)crash;
#endif
    memset(&all, 0, sizeof(all));
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 's':
            from = to = strtoull(optarg, NULL, 0);
            given = true;
            break;
        case 'r':
            if (sscanf(optarg, "%" SCNu64 "..%" SCNu64, &from, &to) != 2) {
                usage(stderr);
                return 2;
            }
            break;
        case 't':
            limit = strtod(optarg, NULL);
            break;
        case 'w':
            workload = optarg;
            break;
        case 'T':
            trace = true;
            /* fall through */
        case 'l':
            log = stdout;
            break;
        case 'p':
            pcap = optarg;
            break;
        case 'f':
            file = optarg;
            break;
        case 'R':
            reborn = (unsigned)atoi(optarg);
            break;
        case 'S':
            sabotage = true;
            break;
        case 'M':
            memlinks = LINKS_ALWAYS;
            break;
        case 'I':
            impostor = true;
            /* fall through */
        case 'H':
            memlinks = LINKS_ALWAYS;
            hostility = HOSTILE_ALWAYS;
            break;
        case 'c':
            compares = true;
            break;
        case 'P':
            spoils = outcome_spoil_named(optarg);
            if (spoils < 0) {
                usage(stderr);
                return 2;
            }
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (compares && (reborn || sabotage)) {
        fprintf(stderr, "%s: these have no memory links to compare\n",
                program);
        return 2;
    }
    if (!workload) {
        workload = compares ? "plan" : "all";
    }
    if (file) {
        if (hostility == HOSTILE_BY_SEED) {
            hostility = HOSTILE_NEVER;  /* as when these seeds were found */
        }
        run_file(file, &all);
        report("seeds file", &all);
        return 0;
    }
    if (strcmp(workload, "all")) {
        find_workload(workload);
    }
    if (limit > 0) {
        from = given ? from : (uint64_t)time(NULL) * 1000000;
        printf("seeds from %" PRIu64 "\n", from);
        fflush(stdout);
        run_timed(workload, from, limit, log, trace);
        return 0;
    }
    for (w = sim_workloads; w->name; w++) {
        struct totals t;

        if (!selected(w, workload)) {
            continue;
        }
        memset(&t, 0, sizeof(t));
        for (seed = from; seed <= to; seed++) {
            run_seed(w, seed, log, trace, pcap, &t);
        }
        report(w->name, &t);
    }
    return 0;
}

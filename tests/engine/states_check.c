/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading a scene that this release or an earlier one has saved. */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "nomem.h"
#include "states.h"
#include "adapter/adapter.h"
#include "transport/rc.h"

#define HEAD 19                 /* bytes of a section before its fields */
#define NAME 8
#define AT_VERSION 10
#define AT_LEN 15

/* ---- saved again ---- */

static uint32_t number(const uint8_t *b)
{
    return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
}

/* The section at @at; NULL: the state ends. */
static const uint8_t *next(const struct blob *state, const uint8_t *at)
{
    const uint8_t *end = state->b + state->len;

    if (at == end) {
        return NULL;
    }
    CHECK(end - at >= HEAD && *at == 'S' &&
          number(at + AT_LEN) <= (size_t)(end - at - HEAD), "no section");
    return at;
}

static const uint8_t *behind(const uint8_t *section)
{
    return section + HEAD + number(section + AT_LEN);
}

static const uint8_t *find(const struct blob *state, const uint8_t *name)
{
    const uint8_t *s;

    for (s = state->b; (s = next(state, s)); s = behind(s)) {
        if (!memcmp(s + 1, name, NAME)) {
            return s;
        }
    }
    return NULL;
}

#define SECTIONS_MAX 64

static struct {
    uint8_t name[NAME];
    uint32_t version;
    bool kept;                  /* in a file of the corpus */
} written[SECTIONS_MAX];
static unsigned written_n;

/* Section @s is written now; @kept: a file has it in the same version. */
static void note(const uint8_t *s, bool kept)
{
    unsigned i;

    for (i = 0; i < written_n && memcmp(written[i].name, s + 1, NAME); i++) {
    }
    if (i == written_n) {
        CHECK(i < SECTIONS_MAX, "too many sections");
        memcpy(written[i].name, s + 1, NAME);
        written[i].version = number(s + AT_VERSION);
        written_n++;
    }
    written[i].kept |= kept;
}

void sections_check(void)
{
    unsigned i;

    for (i = 0; i < written_n; i++) {
        CHECK(written[i].kept, "no file has section %.8s in version %u: "
              "make -f tests/engine/Makefile states",
              (const char *)written[i].name, written[i].version);
    }
}

/*
 * A section that is written in the version in which it was saved has the same
 * bytes.  The exception is "work": QPs that waited for the wire wait for a run
 * instead.
 */
static void same_sections(const struct blob *was, const struct blob *is,
                          bool kept)
{
    const uint8_t *s, *old;
    bool same;

    for (s = is->b; (s = next(is, s)); s = behind(s)) {
        old = find(was, s + 1);
        same = old && number(old + AT_VERSION) == number(s + AT_VERSION);
        note(s, kept && same);
        if (!same || !memcmp(s + 1, "work", 5)) {
            continue;
        }
        CHECK(number(s + AT_LEN) == number(old + AT_LEN) &&
              !memcmp(s, old, behind(s) - s), "section %.8s is another when "
              "saved again", (const char *)s + 1);
    }
}

static struct blob save(struct qhca *e)
{
    struct blob b = { .at = 0 };
    void *state;

    CHECK(qhca_save(e, &state, &b.len), "no memory");
    b.b = state;
    return b;
}

static void load(struct qhca *e, const struct blob *state)
{
    char why[160] = "";

    CHECK(qhca_load(e, state->b, state->len, why, sizeof(why)), "%s", why);
}

static void no_kick(void *opaque)
{
    (void)opaque;
}

static void no_timer(void *opaque, uint64_t deadline)
{
    (void)opaque;
    (void)deadline;
}

/* Each allocation of a load fails in turn: the state is refused. */
static void load_without_memory(struct qhca *e, const struct blob *state)
{
    struct qhca_ops ops = e->ops;
    char why[160];
    unsigned n;
    bool ok;

    e->ops.kick = no_kick;      /* which the world would note in its queue */
    e->ops.set_timer = no_timer;
    for (n = 1;; n++) {
        why[0] = 0;
        nomem_at(n);
        ok = qhca_load(e, state->b, state->len, why, sizeof(why));
        if (!nomem_end()) {
            break;
        }
        CHECK(!ok && strstr(why, "out of memory"), "allocation %u fails: %s",
              n, ok ? "loaded" : why);
        CHECK(!(e->q->qps.used | e->q->cqs.used | e->q->eqs.used |
                e->mem->mrs.used | e->mem->pds.used), "allocation %u fails: "
              "objects are left", n);
    }
    CHECK(ok && n > 1, "%s", why);
    qhca_reset(e);
    e->ops = ops;
}

/* Load @state, which saved again is the same, and again the same. */
static void load_and_save(struct qhca *e, const struct blob *state, bool kept)
{
    struct blob once, twice;

    load_without_memory(e, state);
    load(e, state);
    once = save(e);
    same_sections(state, &once, kept);
    load(e, &once);
    twice = save(e);
    CHECK(once.len == twice.len && !memcmp(once.b, twice.b, once.len),
          "loaded and saved, the state is another");
    free(once.b);
    free(twice.b);
    load(e, state);
}

/* ---- what goes on ---- */

/* A shaper that holds frames back when its state is loaded. */
struct paced {
    uint32_t num;               /* 0: there is none */
    uint64_t at, bytes, rate;   /* when it was loaded */
};

#define FRAME_MAX 1518          /* bytes a shaper may be in debt */

static struct paced find_paced(const struct world *w, struct qhca *e)
{
    struct qhca_idr *t = &e->eth->shapers;
    const struct qhca_shaper *s;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(t); n++) {
        s = qhca_idr_get(t, n);
        if (s && s->rate && s->wait_pos != QHCA_SHAPER_AWAKE) {
            return (struct paced){ n, w->now, s->bytes, s->rate };
        }
    }
    return (struct paced){ .num = 0 };
}

/*
 * The last frame of node @i cannot leave before the rate of @p has paid for
 * all that went before it: the time is the wire's, not the shaper's.
 */
static void check_paced(const struct scene *sc, unsigned i,
                        const struct paced *p)
{
    struct qhca_shaper *s = qhca_idr_get(&sc->w.node[i].e->eth->shapers,
                                         p->num);
    uint64_t bytes = s->bytes - p->bytes, free = s->burst + FRAME_MAX;

    CHECK(bytes > free, "the shaper had only %llu bytes to pass",
          (unsigned long long)bytes);
    CHECK((sc->sent_at[i] - p->at) * p->rate >=
          (bytes - free) * (uint64_t)QHCA_SHAPER_BYTE,
          "%llu bytes have passed in %llu ns, at %llu bits/s",
          (unsigned long long)bytes,
          (unsigned long long)(sc->sent_at[i] - p->at),
          (unsigned long long)p->rate);
}

/* Finish the scene.  All that was half done must then have been done. */
static void finish(struct scene *s)
{
    struct paced p[SCENE_NODES];
    unsigned i;

    for (i = 0; i < SCENE_NODES; i++) {
        p[i] = find_paced(&s->w, s->w.node[i].e);
    }
    scene_finish(s);
    for (i = 0; i < SCENE_NODES; i++) {
        CHECK(!s->w.node[i].e->ad->job.busy, "a command is not finished");
        if (p[i].num) {
            check_paced(s, i, &p[i]);
        }
    }
}

/* ---- the end of all objects ---- */

static void must(struct guest *g, uint8_t op, uint32_t obj, uint64_t mask,
                 const void *in, uint32_t len)
{
    struct gcmd c = { .op = op, .obj = obj, .mask = mask, .in = in,
                      .in_len = len };

    guest_must(g, &c);
}

static void destroy(struct guest *g, uint8_t op, uint32_t obj)
{
    must(g, op, obj, 0, NULL, 0);
}

/* Destroy by @op all objects of @t for which @is holds (NULL: all). */
static void destroy_all(struct guest *g, struct qhca_idr *t, uint8_t op,
                        bool (*is)(const void *obj))
{
    uint32_t n = qhca_idr_end(t);

    while (n--) {               /* EQ 0 and UAR 0 last */
        if (t->slot[n] && (!is || is(t->slot[n])) &&
            (op != QHCA_CMD_FREE_UAR || n)) {
            destroy(g, op, n);
        }
    }
}

struct detach {
    struct qhca_mcg in;
    uint32_t qpn;
};

static void note_group(void *opaque, const uint8_t gid[16],
                       struct qhca_qp *const *qp, unsigned n)
{
    struct detach *d = opaque;

    if (n) {
        memcpy(d->in.mgid, gid, 16);
        d->qpn = qp[0]->qpn;
    }
}

static void detach_all(struct guest *g)
{
    struct detach d;

    for (;;) {
        memset(&d, 0, sizeof(d));
        qhca_mcg_each(g->n->e, note_group, &d);
        if (!d.qpn) {
            return;
        }
        must(g, QHCA_CMD_DETACH_MC, d.qpn, 0, &d.in, sizeof(d.in));
    }
}

static bool is_wq(const void *obj)
{
    return ((const struct qhca_qpn_owner *)obj)->is_wq;
}

static bool is_rss(const void *obj)
{
    return !is_wq(obj) &&
           ((const struct qhca_qp *)obj)->type == QHCA_QPT_RSS;
}

/* QPs go to the error state first: what they were doing is flushed. */
static void end_qps(struct guest *g)
{
    struct qhca *e = g->n->e;
    struct qhca_qpc c;
    struct qhca_qp *qp;
    uint32_t n;

    memset(&c, 0, sizeof(c));
    c.state = QHCA_QPS_ERR;
    for (n = 0; n < qhca_idr_end(&e->q->qps); n++) {
        qp = qhca_qp_get(e, n);
        if (qp) {
            must(g, QHCA_CMD_MODIFY_QP, n, QHCA_QP_M_STATE, &c, sizeof(c));
            world_run(g->n->w, 100000);
            CHECK(qp->state == QHCA_QPS_ERR, "QP %u has state %u", n,
                  qp->state);
        }
    }
    destroy_all(g, &e->q->qps, QHCA_CMD_DESTROY_WQ, is_wq);
    destroy_all(g, &e->q->qps, QHCA_CMD_DESTROY_QP, NULL);
}

static bool is_window(const void *obj)
{
    return ((const struct qhca_mr *)obj)->flags & QHCA_MR_F_MW;
}

static void end_keys(struct guest *g)
{
    struct qhca_idr *t = &g->n->e->mem->mrs;
    const struct qhca_mr *m;
    unsigned windows;
    uint32_t n;

    for (windows = 2; windows--; ) {
        for (n = 0; n < qhca_idr_end(t); n++) {
            m = qhca_idr_get(t, n);
            if (m && is_window(m) == windows) {
                destroy(g, QHCA_CMD_DESTROY_MR, m->key);
            }
        }
    }
}

static void end_all(struct guest *g)
{
    struct qhca_port port = { .eth_rqn = QHCA_ETH_RQ_NONE,
                              .eth_qpn = QHCA_ETH_QP_NONE };
    struct qhca *e = g->n->e;

    must(g, QHCA_CMD_MODIFY_PORT, 0,
         QHCA_PORT_M_ETH_RQN | QHCA_PORT_M_ETH_QPN, &port, sizeof(port));
    destroy_all(g, &e->eth->flow_idr, QHCA_CMD_DESTROY_FLOW, NULL);
    detach_all(g);
    destroy_all(g, &e->q->qps, QHCA_CMD_DESTROY_QP, is_rss);
    destroy_all(g, &e->eth->rqts, QHCA_CMD_DESTROY_RQT, NULL);
    end_qps(g);
    end_keys(g);
    destroy_all(g, &e->q->srqs, QHCA_CMD_DESTROY_SRQ, NULL);
    destroy_all(g, &e->q->xrcds, QHCA_CMD_FREE_XRCD, NULL);
    destroy_all(g, &e->eth->eth_sqs, QHCA_CMD_DESTROY_ETH_SQ, NULL);
    destroy_all(g, &e->eth->eth_rqs, QHCA_CMD_DESTROY_ETH_RQ, NULL);
    destroy_all(g, &e->eth->shapers, QHCA_CMD_DESTROY_SHAPER, NULL);
    destroy_all(g, &e->q->cqs, QHCA_CMD_DESTROY_CQ, NULL);
    destroy_all(g, &e->q->eqs, QHCA_CMD_DESTROY_EQ, NULL);
    destroy_all(g, &e->mem->pds, QHCA_CMD_FREE_PD, NULL);
    destroy_all(g, &e->mem->uars, QHCA_CMD_FREE_UAR, NULL);
    node_reg_write(g->n, QHCA_REG_CTRL, 0, 4);
    CHECK(!(node_reg_read(g->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_READY),
          "still ready");
}

/* ---- the whole ---- */

/* The first line in which @a and @b differ is not the same. */
static void same_text(const char *a, const char *b)
{
    size_t n, m;

    for (; *a || *b; a += n + !!a[n], b += m + !!b[m]) {
        n = strcspn(a, "\n");
        m = strcspn(b, "\n");
        CHECK(n == m && !memcmp(a, b, n), "it became\n    %.*s\nand was to "
              "become\n    %.*s", (int)n, a, (int)m, b);
    }
}

void scene_check(struct blob *from, bool kept)
{
    struct blob state[SCENE_NODES];
    char *outcome, *want;
    struct scene s;
    unsigned i;

    want = scene_load(&s, from, state);
    for (i = 0; i < SCENE_NODES; i++) {
        load_and_save(s.w.node[i].e, &state[i], kept);
        free(state[i].b);
    }
    finish(&s);
    outcome = scene_outcome(&s);
    same_text(outcome, want);
    for (i = 0; i < SCENE_NODES; i++) {
        end_all(&s.g[i]);
    }
    free(outcome);
    free(want);
    free(from->b);
    scene_close(&s);
}

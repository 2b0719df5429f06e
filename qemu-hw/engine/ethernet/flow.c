/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow steering: rules, and the QPs that receive a frame.
 *
 * Rules with the same mask form a group.  For each group a frame is masked once
 * and looked up in a hash table, so the cost depends on the number of different
 * masks, not on the number of rules.
 */
#include <stdlib.h>

#include "ethernet/flow.h"

#define BUCKETS             1024

struct rule {
    struct rule *next;          /* in its bucket or list, sorted by order */
    struct rule **place;        /* what points to it; before, the list's head */
    uint64_t order;             /* priority, then age */
    struct qhca_flow_match value;       /* masked */
    struct group *group;        /* for NORMAL rules */
    struct qhca_qp *qp;
    uint32_t num, tag;
    uint8_t type, flags;
};

struct group {
    struct qhca_flow_match mask;
    unsigned rules;             /* 0: free */
};

struct qhca_flows {
    struct group group[QHCA_FLOW_MASKS_MAX];
    unsigned groups;            /* index of the last group in use, plus one */
    struct rule *bucket[BUCKETS];
    struct rule *special[QHCA_FLOW_SNIFFER + 1];        /* lists by type */
    unsigned rules;
    uint64_t age;
};

_Static_assert(sizeof(struct qhca_flow_match) % 8 == 0, "words");
#define WORDS (sizeof(struct qhca_flow_match) / 8)

static void mask_match(const struct qhca_flow_match *v,
                       const struct qhca_flow_match *mask,
                       struct qhca_flow_match *out)
{
    const uint8_t *a = (const uint8_t *)v, *m = (const uint8_t *)mask;
    uint8_t *o = (uint8_t *)out;
    unsigned i;

    for (i = 0; i < sizeof(*out); i++) {
        o[i] = a[i] & m[i];
    }
}

static struct rule **bucket_of(struct qhca_flows *f, const struct group *g,
                               const struct qhca_flow_match *masked)
{
    uint64_t h = (uint64_t)(g - f->group) + 1;
    unsigned i;

    for (i = 0; i < WORDS; i++) {
        h = (h ^ qhca_get_le64((const uint8_t *)masked + 8 * i)) *
            0x9e3779b97f4a7c15ULL;
        h ^= h >> 32;
    }
    return &f->bucket[h % BUCKETS];
}

static bool flow_same(const struct rule *r, const struct group *g,
                      const struct qhca_flow_match *masked)
{
    return r->group == g && !memcmp(&r->value, masked, sizeof(*masked));
}

/*
 * Does the rule apply to a frame that the address filter has @accepted or not?
 */
static bool flow_applies(const struct rule *r, bool accepted)
{
    return accepted || !(r->flags & QHCA_FLOW_F_ADDR_FILTER);
}

/* Account for one more rule; false: this call has reached its cost limit. */
static bool flow_step(struct qhca *e)
{
    qhca_cost(e, 1);
    return !qhca_call_exhausted(e);
}

/*
 * The first NORMAL rule after order @after that @k matches; with @full, the
 * first that takes the frame, as there are no more copies.  A guest can give
 * all its rules the same hash, so each rule compared has a cost; *@lost is set
 * if the limit is reached.
 */
static struct rule *flow_next_rule(struct qhca *e,
                                   const struct qhca_flow_match *k,
                                   uint64_t after, bool accepted, bool full,
                                   bool *lost)
{
    uint8_t not = full ? QHCA_FLOW_F_DONT_TRAP : 0;
    struct qhca_flows *f = e->eth->flows;
    struct rule *best = NULL, *r;
    struct qhca_flow_match masked;
    unsigned i;

    for (i = 0; i < f->groups && !*lost; i++) {
        struct group *g = &f->group[i];

        if (!g->rules) {
            continue;
        }
        mask_match(k, &g->mask, &masked);
        *lost = !flow_step(e);
        for (r = *bucket_of(f, g, &masked); r && !*lost; r = r->next) {
            if (r->order > after && flow_same(r, g, &masked) &&
                flow_applies(r, accepted) && !(r->flags & not)) {
                if (!best || r->order < best->order) {
                    best = r;
                }
                break;          /* sorted by order */
            }
            *lost = !flow_step(e);
        }
    }
    return *lost ? NULL : best;
}

/* A receiver, perhaps one of several, does not get @f. */
static void flow_drop(struct qhca *e, const struct qhca_eth_frame *f)
{
    e->stats[QHCA_STAT_RAW_RX_DROPPED] += qhca_eth_frames(f);
}

static void flow_give(struct qhca *e, struct rule *r,
                      const struct qhca_eth_frame *f)
{
    if (r->flags & QHCA_FLOW_F_DROP) {
        return;
    }
    if (qhca_call_exhausted(e)) {
        flow_drop(e, f);
        return;
    }
    qhca_cost(e, 1);            /* also if the QP receives nothing */
    qhca_raw_rx(e, r->qp, f, r->tag);
}

/* Deliver to the QPs of rules with the match and priority of @r. */
static void flow_give_twins(struct qhca *e, struct rule *r,
                            const struct qhca_eth_frame *f, bool accepted,
                            unsigned copies)
{
    struct rule *twin;

    for (twin = r->next; twin && copies < QHCA_FLOW_COPIES_MAX;
         twin = twin->next) {
        if (!flow_step(e)) {
            flow_drop(e, f);
            break;
        }
        if (twin->order >> 48 == r->order >> 48 &&
            flow_same(twin, r->group, &r->value) &&
            flow_applies(twin, accepted)) {
            flow_give(e, twin, f);
            copies++;
        }
    }
}

/*
 * Deliver to the QP of the best rule and to those of equivalent rules (same
 * match and priority).  After a DONT_TRAP rule, continue with the next best:
 * also after the last copy, since a later rule may have to take the frame.
 * Returns true if a rule consumed the frame.
 */
static bool flow_by_rules(struct qhca *e, const struct qhca_eth_frame *f,
                          bool accepted)
{
    unsigned copies = 0;
    uint64_t after = 0;
    bool lost = false;
    struct rule *r;

    while ((r = flow_next_rule(e, &f->k, after, accepted,
                               copies == QHCA_FLOW_COPIES_MAX, &lost))) {
        if (copies < QHCA_FLOW_COPIES_MAX) {
            flow_give(e, r, f);
            copies++;
        }
        after = r->order;
        if (!(r->flags & QHCA_FLOW_F_DONT_TRAP)) {
            flow_give_twins(e, r, f, accepted, copies);
            return true;
        }
    }
    if (lost) {
        /* its receiver remains unknown */
        flow_drop(e, f);
    }
    return lost;
}

static bool flow_by_default(struct qhca *e, uint8_t type,
                            const struct qhca_eth_frame *f)
{
    struct rule *r = e->eth->flows->special[type];
    unsigned copies = 0;

    for (; r && copies < QHCA_FLOW_COPIES_MAX; r = r->next) {
        flow_give(e, r, f);
        copies++;
    }
    return copies;
}

bool qhca_flow_rx(struct qhca *e, const struct qhca_eth_frame *f, bool own)
{
    bool accepted = qhca_mac_accept(e, f->data);

    if (flow_by_rules(e, f, accepted)) {
        return true;
    }
    /* Default rules get what the Ethernet function would not accept. */
    if (!own && accepted) {
        return false;
    }
    if (f->data[0] & 1 && flow_by_default(e, QHCA_FLOW_MC_DEFAULT, f)) {
        return true;
    }
    return flow_by_default(e, QHCA_FLOW_ALL_DEFAULT, f);
}

static void flow_sniff(struct qhca *e, const void *frame, size_t len)
{
    struct qhca_eth_frame f;

    if (e->eth->flows->special[QHCA_FLOW_SNIFFER] && len >= QHCA_ETH_HLEN) {
        qhca_eth_frame_parse(e, &f, frame, len);
        qhca_eth_frame_key(&f);
        flow_by_default(e, QHCA_FLOW_SNIFFER, &f);
    }
}

/* Prepare for the first rule; false if out of memory. */
static bool flows_begin(struct qhca *e)
{
    if (!e->eth->flows) {
        e->eth->flows = calloc(1, sizeof(*e->eth->flows));
    }
    if (!e->eth->flows) {
        return false;
    }
    e->sniff = flow_sniff;
    return true;
}

/* Free everything: the last rule is gone. */
static void flows_end(struct qhca *e)
{
    e->sniff = NULL;
    free(e->eth->flows);
    e->eth->flows = NULL;
}

/* ---- commands ---- */

static uint8_t flow_check(struct qhca *e, struct qhca_cmd *c,
                          const struct qhca_flow *in, struct qhca_qp **qp)
{
    uint8_t flags = in->flags;

    *qp = qhca_qp_get(e, qhca_le32(in->qpn));
    if (!*qp) {
        return qhca_bad_obj(c, offsetof(struct qhca_flow, qpn));
    }
    if ((*qp)->type != QHCA_QPT_RAW && (*qp)->type != QHCA_QPT_RSS) {
        return QHCA_ST_BAD_STATE;
    }
    if (in->type > QHCA_FLOW_SNIFFER) {
        return qhca_bad(c, offsetof(struct qhca_flow, type));
    }
    if (flags & ~(QHCA_FLOW_F_DONT_TRAP | QHCA_FLOW_F_DROP |
                  QHCA_FLOW_F_ADDR_FILTER) ||
        (flags && in->type != QHCA_FLOW_NORMAL) ||
        (flags & QHCA_FLOW_F_DONT_TRAP && flags & QHCA_FLOW_F_DROP)) {
        return qhca_bad(c, offsetof(struct qhca_flow, flags));
    }
    return QHCA_ST_OK;
}

/* The group of rules with @mask, created if necessary; NULL if too many. */
static struct group *flow_get_group(struct qhca_flows *f,
                                    const struct qhca_flow_match *mask)
{
    struct group *spare = NULL;
    unsigned i;

    for (i = 0; i < f->groups; i++) {
        if (!f->group[i].rules) {
            spare = &f->group[i];
        } else if (!memcmp(&f->group[i].mask, mask, sizeof(*mask))) {
            return &f->group[i];
        }
    }
    if (!spare) {
        if (f->groups == QHCA_FLOW_MASKS_MAX) {
            return NULL;
        }
        spare = &f->group[f->groups++];
    }
    spare->mask = *mask;
    return spare;
}

/* Find the list @r belongs to; false if there is no free group. */
static bool flow_place(struct qhca_flows *f, const struct qhca_flow *in,
                       struct rule *r)
{
    struct qhca_flow_match mask = in->mask;

    if (r->type != QHCA_FLOW_NORMAL) {
        r->place = &f->special[r->type];
        r->order = ++f->age;
        return true;
    }
    mask.rsvd = 0;
    r->group = flow_get_group(f, &mask);
    if (!r->group) {
        return false;
    }
    mask_match(&in->value, &mask, &r->value);
    r->place = bucket_of(f, r->group, &r->value);
    r->order = (uint64_t)qhca_le16(in->priority) << 48 | ++f->age;
    r->group->rules++;
    return true;
}

static void flow_insert(struct qhca *e, struct rule *r)
{
    struct rule **p = r->place;

    while (*p && (*p)->order < r->order) {
        qhca_cost(e, 1);
        p = &(*p)->next;
    }
    r->next = *p;
    r->place = p;
    if (r->next) {
        r->next->place = &r->next;
    }
    *p = r;
}

/* There is no room for @r; without other rules, nothing may be left. */
static uint8_t flow_refuse(struct qhca *e, struct rule *r)
{
    free(r);
    if (e->eth->flows && !e->eth->flows->rules) {
        flows_end(e);
    }
    return QHCA_ST_NO_RESOURCES;
}

uint8_t qhca_cmd_create_flow(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_flow *in = c->in;
    struct qhca_qp *qp;
    uint8_t st = flow_check(e, c, in, &qp);
    struct rule *r;

    if (st) {
        return st;
    }
    r = calloc(1, sizeof(*r));
    if (!flows_begin(e) || !r ||
        !qhca_idr_add(&e->eth->flow_idr, r, &r->num)) {
        return flow_refuse(e, r);
    }
    r->type = in->type;
    r->flags = in->flags;
    r->tag = qhca_le32(in->tag);
    r->qp = qp;
    if (!flow_place(e->eth->flows, in, r)) {
        qhca_idr_del(&e->eth->flow_idr, r->num);
        return flow_refuse(e, r);
    }
    flow_insert(e, r);
    qp->users++;
    e->eth->flows->rules++;
    c->obj = r->num;
    return QHCA_ST_OK;
}

void qhca_flow_get(const void *rule, struct qhca_flow *out, uint32_t *num)
{
    const struct rule *r = rule;

    memset(out, 0, sizeof(*out));
    out->qpn = qhca_le32(r->qp->qpn);
    out->type = r->type;
    out->flags = r->flags;
    out->tag = qhca_le32(r->tag);
    if (r->group) {
        out->priority = qhca_le16((uint16_t)(r->order >> 48));
        out->value = r->value;
        out->mask = r->group->mask;
    }
    *num = r->num;
}

static void rule_free(struct qhca *e, struct rule *r)
{
    *r->place = r->next;
    if (r->next) {
        r->next->place = r->place;
    }
    if (r->group) {
        r->group->rules--;
    }
    r->qp->users--;
    qhca_idr_del(&e->eth->flow_idr, r->num);
    free(r);
    if (!--e->eth->flows->rules) {
        flows_end(e);
    }
}

uint8_t qhca_cmd_destroy_flow(struct qhca *e, struct qhca_cmd *c)
{
    struct rule *r = qhca_idr_get(&e->eth->flow_idr, c->obj);

    if (!r) {
        return QHCA_ST_BAD_OBJ;
    }
    rule_free(e, r);
    return QHCA_ST_OK;
}

bool qhca_flow_discard(struct qhca *e, uint32_t num)
{
    struct rule *r = qhca_idr_get(&e->eth->flow_idr, num);

    if (r) {
        rule_free(e, r);
    }
    return r;
}

/* ---- saved state ---- */

SAVED_SIZE(struct rule, 120, flow, 1);
SAVED_SIZE(struct group, 68, flow, 1);
SAVED_SIZE(struct qhca_flows, 12600, flow, 1);

static void save_rule(struct qhca_io *io, void *obj)
{
    struct rule tmp = { .next = NULL }, *r = obj ? obj : &tmp;
    struct qhca *e = io->e;
    struct qhca_flow in;

    memset(&in, 0, sizeof(in));
    IO(io, r->num);
    qhca_io_about(io, "flow", r->num);
    r->qp = qhca_io_must_qp(io, r->qp, "its QP does not exist");
    IO(io, r->tag);
    IO(io, r->type);
    IO(io, r->flags);
    IO(io, r->order);
    if (r->group) {
        in.mask = r->group->mask;
        in.value = r->value;
    }
    qhca_io_bytes(io, &in.mask, sizeof(in.mask));
    qhca_io_bytes(io, &in.value, sizeof(in.value));
    if (io->saving || io->failed) {
        return;
    }
    in.qpn = qhca_le32(r->qp->qpn);
    in.type = r->type;
    in.flags = r->flags;
    if (!NEED(io, flow_check(e, &(struct qhca_cmd){ 0 }, &in, &r->qp) ==
              QHCA_ST_OK, "no command could have created it")) {
        return;
    }
    r = malloc(sizeof(*r));
    if (!NEED(io, r, "out of memory")) {
        return;
    }
    *r = tmp;
    if (!qhca_io_place(io, &e->eth->flow_idr, r, r->num)) {
        free(r);
        return;
    }
    if (!NEED(io, flow_place(e->eth->flows, &in, r),
              "there are too many masks")) {
        qhca_idr_del(&e->eth->flow_idr, r->num);
        free(r);
        return;
    }
    r->order = tmp.order;
    flow_insert(e, r);
    r->qp->users++;
    e->eth->flows->rules++;
}

void qhca_io_flows(struct qhca_io *io)
{
    struct qhca *e = io->e;
    uint64_t age = e->eth->flows ? e->eth->flows->age : 0;
    bool is = e->eth->flows;

    qhca_io_numbers(io, &e->eth->flow_idr);
    IO(io, is);
    IO(io, age);
    if (!io->saving && is && !io->failed) {
        NEED(io, flows_begin(e), "out of memory");
    }
    if (is && !io->failed) {
        qhca_io_each(io, &e->eth->flow_idr, NULL, save_rule);
    }
    if (!io->saving && e->eth->flows) {
        e->eth->flows->age = age;
        if (!e->eth->flows->rules) {
            flows_end(e);
            NEED(io, false, "flow state without a rule");
        }
    }
    qhca_io_numbers_end(io, &e->eth->flow_idr);
}

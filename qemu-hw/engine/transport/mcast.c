/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast (IBA 10.5): groups and the UD QPs attached to them.
 *
 * Groups are found in a hash of the GID.  A group exists while it has members,
 * the table from the first group on: unused multicast costs nothing.
 */
#include <stdlib.h>

#include "transport/rc.h"

/* Most groups that a packet is compared with, whatever a guest creates. */
#define SLOT_GROUPS_MAX     64

struct qhca_mcg_group {
    struct qhca_mcg_group *next;        /* next in the hash slot */
    uint8_t gid[16];
    unsigned members;
    struct qhca_qp *qp[QHCA_MC_QPS_MAX];
};

unsigned qhca_mcg_slot(const uint8_t gid[16])
{
    uint64_t h = qhca_get_le64(gid) ^
                 qhca_get_le64(gid + 8) * 0x9e3779b97f4a7c15ULL;

    return (unsigned)((h * 0x9e3779b97f4a7c15ULL) >> 54) & (QHCA_MCG_SLOTS - 1);
}

/* MAC address of a group: RFC 1112 6.4, RFC 2464 7. */
static void group_mac(const uint8_t gid[16], uint8_t mac[6])
{
    if (qhca_ip6_is_ip4(gid)) {
        mac[0] = 0x01;
        mac[1] = 0x00;
        mac[2] = 0x5e;
        mac[3] = gid[13] & 0x7f;
    } else {
        mac[0] = 0x33;
        mac[1] = 0x33;
        mac[2] = gid[12];
        mac[3] = gid[13];
    }
    mac[4] = gid[14];
    mac[5] = gid[15];
}

static struct qhca_mcg_group **mcg_find(struct qhca *e, const uint8_t gid[16])
{
    struct qhca_mcg_group **p = &e->xd->mcgs[qhca_mcg_slot(gid)];

    while (*p && memcmp((*p)->gid, gid, 16)) {
        qhca_cost(e, 1);
        p = &(*p)->next;
    }
    return p;
}

struct qhca_mcg_group *qhca_mcg_find(struct qhca *e, const uint8_t gid[16],
                                     const uint8_t *dmac)
{
    struct qhca_mcg_group *g = e->xd->mc_groups ? *mcg_find(e, gid) : NULL;
    uint8_t mac[6];

    if (!g) {
        return NULL;
    }
    group_mac(gid, mac);
    return memcmp(mac, dmac, 6) ? NULL : g;
}

void qhca_mcg_rx(struct qhca *e, const struct qhca_rx *rx)
{
    struct qhca_mcg_group *g = rx->mcg;
    uint32_t src;
    unsigned i;

    if (rx->qpn != QHCA_QPN_MULTICAST || !(rx->flags & QHCA_OPF_DETH)) {
        qhca_rx_drop(e, rx, QHCA_STAT_ROCE_RX_MALFORMED);
        return;
    }
    qhca_count(e, QHCA_STAT_ROCE_RX_MULTICAST);
    src = qhca_get_be32(rx->ext + 4) & QHCA_PSN_MASK;
    for (i = 0; i < g->members && qhca_active(e); i++) {
        struct qhca_qp *qp = g->qp[i];

        if (!qhca_state_receives(qp, rx) ||
            ((qp->flags & QHCA_QP_F_BLOCK_MC_LOOP) && e->xd->looping &&
             src == qp->qpn)) {
            continue;
        }
        qhca_rx_note(e, qp, rx);
        if (qhca_call_exhausted(e)) {
            qhca_rx_drop(e, rx, QHCA_STAT_UD_DROPPED);
        } else {
            qhca_ud_rx(e, qp, rx);
        }
    }
}

/* Index of @qp in @g, or g->members if it is not a member. */
static unsigned mcg_place(const struct qhca_mcg_group *g,
                          const struct qhca_qp *qp)
{
    unsigned i = 0;

    while (i < g->members && g->qp[i] != qp) {
        i++;
    }
    return i;
}

bool qhca_mcg_has(const struct qhca_mcg_group *g, const struct qhca_qp *qp)
{
    return mcg_place(g, qp) < g->members;
}

static void remove_group(struct qhca *e, struct qhca_mcg_group **p)
{
    struct qhca_mcg_group *g = *p;

    *p = g->next;
    e->xd->mc_groups--;
    free(g);
}

/* Groups that share slot @slot. */
static unsigned mcg_sharing(const struct qhca *e, unsigned slot)
{
    const struct qhca_mcg_group *g;
    unsigned n = 0;

    for (g = e->xd->mcgs[slot]; g; g = g->next) {
        n++;
    }
    return n;
}

/* Find or create group @gid; NULL: out of memory, or too many groups. */
static struct qhca_mcg_group **mcg_get_group(struct qhca *e,
                                             const uint8_t gid[16])
{
    struct qhca_mcg_group **p;

    if (!e->xd->mcgs) {
        e->xd->mcgs = calloc(QHCA_MCG_SLOTS, sizeof(*e->xd->mcgs));
        if (!e->xd->mcgs) {
            return NULL;
        }
    }
    p = mcg_find(e, gid);
    if (*p) {
        return p;
    }
    if (e->xd->mc_groups == QHCA_MC_GROUPS_MAX ||
        mcg_sharing(e, qhca_mcg_slot(gid)) == SLOT_GROUPS_MAX) {
        return NULL;
    }
    *p = calloc(1, sizeof(**p));
    if (!*p) {
        return NULL;
    }
    memcpy((*p)->gid, gid, 16);
    e->xd->mc_groups++;
    return p;
}

void qhca_mcg_each(struct qhca *e,
                   void (*fn)(void *opaque, const uint8_t gid[16],
                              struct qhca_qp *const *qp, unsigned n),
                   void *opaque)
{
    const struct qhca_mcg_group *g;
    unsigned i;

    for (i = 0; e->xd->mcgs && i < QHCA_MCG_SLOTS; i++) {
        for (g = e->xd->mcgs[i]; g; g = g->next) {
            fn(opaque, g->gid, g->qp, g->members);
        }
    }
}

/*
 * Make @qp a member of group @gid, which may be new; *@again: it was one.
 * Returns QHCA_ST_*.
 */
static uint8_t mcg_join(struct qhca *e, const uint8_t gid[16],
                        struct qhca_qp *qp, bool *again)
{
    struct qhca_mcg_group **p, *g;

    *again = false;
    if (qp->type != QHCA_QPT_UD) {
        return QHCA_ST_BAD_STATE;
    }
    if (!qhca_gid_is_multicast(gid)) {
        return QHCA_ST_BAD_PARAM;
    }
    p = mcg_get_group(e, gid);
    if (!p) {
        return QHCA_ST_NO_RESOURCES;
    }
    g = *p;
    *again = qhca_mcg_has(g, qp);
    if (*again) {
        return QHCA_ST_OK;
    }
    if (g->members == QHCA_MC_QPS_MAX) {
        return QHCA_ST_NO_RESOURCES;
    }
    g->qp[g->members++] = qp;
    qp->users++;
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_attach_mc(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_mcg *in = c->in;
    struct qhca_qp *qp = qhca_qp_get(e, c->obj);
    uint8_t status;
    bool again;

    if (!qp) {
        return QHCA_ST_BAD_OBJ;
    }
    status = mcg_join(e, in->mgid, qp, &again);
    return status == QHCA_ST_BAD_PARAM ?
           qhca_bad(c, offsetof(struct qhca_mcg, mgid)) : status;
}

uint8_t qhca_cmd_detach_mc(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_mcg *in = c->in;
    struct qhca_qp *qp = qhca_qp_get(e, c->obj);
    struct qhca_mcg_group **p, *g;
    unsigned i;

    if (!qp || !e->xd->mcgs) {
        return QHCA_ST_BAD_OBJ;
    }
    p = mcg_find(e, in->mgid);
    g = *p;
    if (!g) {
        return QHCA_ST_BAD_OBJ;
    }
    i = mcg_place(g, qp);
    if (i == g->members) {
        return QHCA_ST_BAD_OBJ;
    }
    g->qp[i] = g->qp[--g->members];
    qp->users--;
    if (!g->members) {
        remove_group(e, p);
    }
    return QHCA_ST_OK;
}

bool qhca_mcg_discard(struct qhca *e, uint32_t slot)
{
    bool any = e->xd->mcgs[slot];

    while (e->xd->mcgs[slot]) {
        remove_group(e, &e->xd->mcgs[slot]);
    }
    return any;
}

/* ---- saved state ---- */

SAVED_SIZE(struct qhca_mcg_group, 544, mcg, 1);

static void io_group(struct qhca_io *io, struct qhca_mcg_group *g)
{
    uint32_t n = g ? g->members : 0, i;
    struct qhca *e = io->e;
    struct qhca_qp *qp;
    uint8_t gid[16], status;
    bool again;

    if (g) {
        memcpy(gid, g->gid, sizeof(gid));
    }
    qhca_io_bytes(io, gid, sizeof(gid));
    IO(io, n);
    NEED(io, n, "a multicast group is empty");
    NEED(io, io->saving || !e->xd->mcgs || !*mcg_find(e, gid),
         "a multicast group is duplicate");
    for (i = 0; i < n && !io->failed; i++) {
        qp = qhca_io_must_qp(io, g ? g->qp[i] : NULL,
                             "a multicast group member does not exist");
        if (io->saving || !qp) {
            continue;
        }
        status = mcg_join(e, gid, qp, &again);
        NEED(io, status != QHCA_ST_NO_RESOURCES,
             "out of memory, or too many multicast groups or members");
        NEED(io, !status && !again,
             "a multicast group or a member of it is invalid");
    }
}

void qhca_io_mcgs(struct qhca_io *io)
{
    struct qhca_mcg_group *g;
    uint32_t n = io->e->xd->mc_groups, i;

    IO(io, n);
    NEED(io, n <= QHCA_MC_GROUPS_MAX, "too many multicast groups");
    if (!io->saving) {
        for (i = 0; i < n && !io->failed; i++) {
            io_group(io, NULL);
        }
        return;
    }
    for (i = 0; io->e->xd->mcgs && i < QHCA_MCG_SLOTS; i++) {
        for (g = io->e->xd->mcgs[i]; g; g = g->next) {
            io_group(io, g);
        }
    }
}

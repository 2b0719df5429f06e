/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GID table.  Destination GIDs of received packets are looked up in a hash,
 * which is rebuilt on each change; changes are rare and the table is bounded.
 */
#include "transport/rc.h"

static unsigned gid_slot(const uint8_t gid[16])
{
    uint64_t h = qhca_get_le64(gid) * 0x9e3779b97f4a7c15ULL;

    h = (h ^ qhca_get_le64(gid + 8)) * 0x9e3779b97f4a7c15ULL;
    return (unsigned)(h >> 55) & (QHCA_HASH_SLOTS - 1);
}

void qhca_gid_rehash(struct qhca *e)
{
    unsigned i, slot;

    qhca_cost(e, e->cfg.max_gid);
    for (i = 0; i < QHCA_HASH_SLOTS; i++) {
        e->xd->gid_hash[i] = -1;
    }
    for (i = 0; i < e->cfg.max_gid; i++) {
        if (e->xd->gids[i].type == QHCA_GID_NONE) {
            continue;
        }
        /* Terminates: at most half of the slots are in use. */
        slot = gid_slot(e->xd->gids[i].gid);
        while (e->xd->gid_hash[slot] >= 0) {
            slot = (slot + 1) & (QHCA_HASH_SLOTS - 1);
        }
        e->xd->gid_hash[slot] = (int16_t)i;
    }
}

void qhca_gids_reset(struct qhca *e)
{
    memset(e->xd->gids, 0, e->cfg.max_gid * sizeof(*e->xd->gids));
    qhca_gid_rehash(e);
}

int qhca_gid_find(struct qhca *e, const uint8_t gid[16], uint16_t vlan)
{
    unsigned slot = gid_slot(gid);
    int index;

    /* Link-local GIDs are the same on all VLANs of an interface. */
    while ((index = e->xd->gid_hash[slot]) >= 0) {
        if (e->xd->gids[index].vlan == qhca_le16(vlan) &&
            !memcmp(e->xd->gids[index].gid, gid, 16)) {
            return index;
        }
        slot = (slot + 1) & (QHCA_HASH_SLOTS - 1);
    }
    return -1;
}

static bool gid_all_zero(const uint8_t *p, size_t len)
{
    while (len--) {
        if (*p++) {
            return false;
        }
    }
    return true;
}

bool qhca_gid_is_multicast(const uint8_t gid[16])
{
    return qhca_ip6_is_ip4(gid) ? gid[12] >> 4 == 0xe : gid[0] == 0xff;
}

/* The unspecified address, of IPv6 or IPv4. */
static bool gid_is_none(const uint8_t gid[16])
{
    return qhca_ip6_is_ip4(gid) ? gid_all_zero(gid + 12, 4) :
                                  gid_all_zero(gid, 16);
}

size_t qhca_gid_bad(const struct qhca_gid *in)
{
    uint16_t vlan = qhca_le16(in->vlan);

    if (in->type != QHCA_GID_ROCE_V2) {
        return offsetof(struct qhca_gid, type) + 1;
    }
    if (gid_is_none(in->gid) || qhca_gid_is_multicast(in->gid)) {
        return offsetof(struct qhca_gid, gid) + 1;
    }
    if (gid_all_zero(in->mac, sizeof(in->mac)) || (in->mac[0] & 1)) {
        return offsetof(struct qhca_gid, mac) + 1;
    }
    return vlan > 4094 && vlan != QHCA_VLAN_NONE ?
           offsetof(struct qhca_gid, vlan) + 1 : 0;
}

uint8_t qhca_cmd_set_gid(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_gid *in = c->in;
    size_t bad;

    if (c->obj >= e->cfg.max_gid) {
        return QHCA_ST_BAD_OBJ;
    }
    if (in->type == QHCA_GID_NONE) {
        memset(&e->xd->gids[c->obj], 0, sizeof(*in));
        qhca_gid_rehash(e);
        return QHCA_ST_OK;
    }
    bad = qhca_gid_bad(in);
    if (bad) {
        return qhca_bad(c, bad - 1);
    }
    memset(&e->xd->gids[c->obj], 0, sizeof(*in));
    memcpy(&e->xd->gids[c->obj], in, offsetof(struct qhca_gid, rsvd));
    qhca_gid_rehash(e);
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_query_gid(struct qhca *e, struct qhca_cmd *c)
{
    if (c->obj >= e->cfg.max_gid) {
        return QHCA_ST_BAD_OBJ;
    }
    memcpy(c->out, &e->xd->gids[c->obj], sizeof(struct qhca_gid));
    return QHCA_ST_OK;
}

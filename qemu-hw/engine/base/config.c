/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits and features, which are fixed for the lifetime of an adapter. */
#include "base/base.h"

#define DM_MIN              (1ULL << 12)
#define DM_MAX              (1ULL << 36)
#define GRO_HOLD_MAX        1000000     /* us */

void qhca_config_default(struct qhca_config *cfg)
{
    cfg->num_vectors = 32;
    cfg->max_qp = 1u << 15;
    cfg->max_cq = 1u << 15;
    cfg->max_srq = 1u << 13;
    cfg->max_mr = 1u << 18;
    cfg->max_pd = 1u << 14;
    cfg->max_eq = 64;
    cfg->max_gid = 128;
    cfg->max_eth_queues = 64;
    cfg->speed = 100000;
    cfg->run_budget = 0;
    cfg->reset_budget = 0;
    cfg->min_ack_timeout = 0;
    cfg->dm_size = 16 << 20;
    cfg->super_frames = false;
    cfg->gro_hold = 0;
}

static bool pow2_in(uint32_t v, uint32_t min, uint32_t max)
{
    return v >= min && v <= max && !(v & (v - 1));
}

bool qhca_mac_ok(const uint8_t mac[6])
{
    static const uint8_t none[6];

    return !(mac[0] & 1) && memcmp(mac, none, 6);
}

const char *qhca_config_bad(const struct qhca_config *cfg)
{
    if (!qhca_mac_ok(cfg->mac)) {
        return "the MAC address must be a unicast address";
    }
    if (cfg->num_vectors < 1 || cfg->num_vectors > 2048) {
        return "the number of vectors must be 1 to 2048";
    }
    if (!pow2_in(cfg->max_qp, 16, 1u << 20) ||
        !pow2_in(cfg->max_cq, 16, 1u << 20) ||
        !pow2_in(cfg->max_srq, 16, 1u << 20) ||
        !pow2_in(cfg->max_mr, 16, 1u << 20) ||
        !pow2_in(cfg->max_pd, 16, 1u << 20)) {
        return "limits of QPs, CQs, SRQs, MRs and PDs must be powers of two "
               "from 16 to 1048576";
    }
    if (!pow2_in(cfg->max_eq, 2, 1u << 12)) {
        return "the limit of EQs must be a power of two from 2 to 4096";
    }
    if (cfg->max_gid < 1 || cfg->max_gid > 256) {
        return "the limit of GIDs must be 1 to 256";
    }
    if (cfg->dm_size && (cfg->dm_size < DM_MIN || cfg->dm_size > DM_MAX ||
                         (cfg->dm_size & (cfg->dm_size - 1)))) {
        return "dm-size must be 0 or a power of two from 4 KiB to 64 GiB";
    }
    if (cfg->min_ack_timeout > 31) {
        return "min-ack-timeout must be 0 to 31";
    }
    if (cfg->gro_hold > GRO_HOLD_MAX) {
        return "gro-hold must be 0 to 1000000";
    }
    if (!pow2_in(cfg->max_eth_queues, 1, 256)) {
        return "the limit of Ethernet queues must be a power of two from 1 "
               "to 256";
    }
    return NULL;
}

/* The features that every adapter has. */
static const uint64_t always[] = {
    QHCA_FEAT_RC,
    QHCA_FEAT_UC,
    QHCA_FEAT_UD,
    QHCA_FEAT_XRC,
    QHCA_FEAT_ATOMIC,
    QHCA_FEAT_FLUSH,
    QHCA_FEAT_ATOMIC_WRITE,
    QHCA_FEAT_MASKED_ATOMIC,
    QHCA_FEAT_MCAST,
    QHCA_FEAT_RAW_PACKET,
    QHCA_FEAT_FLOW,
    QHCA_FEAT_RSS,
    QHCA_FEAT_SRQ,
    QHCA_FEAT_FAST_REG,
    QHCA_FEAT_LIST_FORM,
    QHCA_FEAT_ODP,
    QHCA_FEAT_TAG_MATCHING,
    QHCA_FEAT_MW,
    QHCA_FEAT_REREG,
    QHCA_FEAT_CQ_RESIZE,
    QHCA_FEAT_SRQ_RESIZE,
    QHCA_FEAT_EQ_RECORD,
    QHCA_FEAT_SQ_RECORD,
    QHCA_FEAT_ETH_CSUM,
    QHCA_FEAT_ETH_LSO,
    QHCA_FEAT_ETH_RSS,
    QHCA_FEAT_ETH_HDS,
    QHCA_FEAT_ETH_GRO,
    QHCA_FEAT_ETH_TUNNEL,
    QHCA_FEAT_ETH_SHAPER,
    QHCA_FEAT_ETH_HASH_LABEL,
    QHCA_FEAT_ETH_LOOPBACK,
    QHCA_FEAT_ETH_UNPAD,
    QHCA_FEAT_PORT_STATS,
    QHCA_FEAT_PAUSE,
};

uint64_t qhca_features(const struct qhca *e)
{
    uint64_t features = 0;
    unsigned i;

    for (i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        features |= always[i];
    }
    if (e->cfg.dm_size) {
        features |= QHCA_FEAT_DM;
    }
    if (e->cfg.super_frames) {
        features |= QHCA_FEAT_ETH_SUPER;
    }
    return features;
}

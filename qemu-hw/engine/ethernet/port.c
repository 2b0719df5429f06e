/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port: attributes, and the address filter of the Ethernet function. */
#include "ethernet/flow.h"

void qhca_port_reset(struct qhca *e)
{
    memcpy(e->mac, e->cfg.mac, sizeof(e->mac));
    e->eth->promisc = false;
    e->eth->allmulti = false;
    e->eth->loopback = false;
    e->eth->pause_rx = false;
    e->tx_paused = 0;
    e->mtu = QHCA_MAX_MTU;
    e->eth->eth_rqn = QHCA_ETH_RQ_NONE;
    e->eth->eth_qp = NULL;
    memset(e->eth->mc_hash, 0, sizeof(e->eth->mc_hash));
    qhca_gids_reset(e);
}

static uint64_t mac_key(const uint8_t *mac)
{
    return ((uint64_t)qhca_get_be16(mac) << 32) | qhca_get_be32(mac + 2);
}

static unsigned mac_slot(uint64_t key)
{
    return (unsigned)((key * 0x9e3779b97f4a7c15ULL) >> 55) &
           (QHCA_HASH_SLOTS - 1);
}

static bool mc_find(const struct qhca *e, uint64_t key)
{
    unsigned slot = mac_slot(key);

    while (e->eth->mc_hash[slot]) {
        if (e->eth->mc_hash[slot] == key) {
            return true;
        }
        slot = (slot + 1) & (QHCA_HASH_SLOTS - 1);
    }
    return false;
}

bool qhca_mac_accept(struct qhca *e, const uint8_t *dmac)
{
    uint64_t key;

    if (e->eth->promisc) {
        return true;
    }
    if (!(dmac[0] & 1)) {
        return !memcmp(dmac, e->mac, 6);
    }
    key = mac_key(dmac);
    return e->eth->allmulti || key == 0xffffffffffffULL || mc_find(e, key);
}

void qhca_mc_set(struct qhca *e, const struct qhca_mac *in, unsigned n)
{
    unsigned i, slot;
    uint64_t key;

    memset(e->eth->mc_hash, 0, sizeof(e->eth->mc_hash));
    for (i = 0; i < n; i++) {
        key = mac_key(in[i].mac);
        if (mc_find(e, key)) {
            continue;
        }
        slot = mac_slot(key);
        while (e->eth->mc_hash[slot]) {
            slot = (slot + 1) & (QHCA_HASH_SLOTS - 1);
        }
        e->eth->mc_hash[slot] = key;
    }
}

uint8_t qhca_cmd_set_mc_list(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_mac *in = c->in;
    unsigned i, n = c->in_len / sizeof(*in);

    if (c->in_len % sizeof(*in)) {
        return QHCA_ST_BAD_PARAM;
    }
    for (i = 0; i < n; i++) {
        if (!(in[i].mac[0] & 1)) {
            return qhca_bad(c, i * sizeof(*in));
        }
    }
    qhca_mc_set(e, in, n);
    qhca_cost(e, n);
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_query_port(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_port *out = c->out;

    memcpy(out->mac, e->mac, 6);
    memcpy(out->perm_mac, e->cfg.mac, 6);
    out->link = e->link;
    out->promisc = e->eth->promisc;
    out->allmulti = e->eth->allmulti;
    out->loopback = e->eth->loopback;
    out->pause_rx = e->eth->pause_rx;
    out->mtu = qhca_le32(e->mtu);
    out->eth_rqn = qhca_le32(e->eth->eth_rqn);
    out->eth_qpn = qhca_le32(e->eth->eth_qp ? e->eth->eth_qp->qpn :
                             QHCA_ETH_QP_NONE);
    out->speed = qhca_le32(e->cfg.speed);
    out->max_mtu = qhca_le32(QHCA_MAX_MTU);
    return QHCA_ST_OK;
}

#define PORT_MASK (QHCA_PORT_M_MAC | QHCA_PORT_M_PROMISC |              \
                   QHCA_PORT_M_ALLMULTI | QHCA_PORT_M_MTU |             \
                   QHCA_PORT_M_ETH_RQN | QHCA_PORT_M_ETH_QPN |      \
                   QHCA_PORT_M_LOOPBACK | QHCA_PORT_M_PAUSE)

bool qhca_port_rq_ok(const struct qhca *e, uint32_t rqn)
{
    return rqn == QHCA_ETH_RQ_NONE || qhca_idr_get(&e->eth->eth_rqs, rqn);
}

bool qhca_port_qp_ok(const struct qhca_qp *qp)
{
    return qp && qp->type == QHCA_QPT_RSS && qhca_rss_is_eth(qp);
}

static uint8_t check_port(struct qhca *e, struct qhca_cmd *c,
                          const struct qhca_port *in)
{
    uint32_t mtu = qhca_le32(in->mtu), rqn = qhca_le32(in->eth_rqn);
    uint32_t qpn = qhca_le32(in->eth_qpn);

    if (c->mask & ~PORT_MASK) {
        return QHCA_ST_BAD_PARAM;
    }
    if ((c->mask & QHCA_PORT_M_MAC) &&
        !qhca_mac_ok(in->mac)) {
        return qhca_bad(c, offsetof(struct qhca_port, mac));
    }
    if ((c->mask & QHCA_PORT_M_PROMISC) && in->promisc > 1) {
        return qhca_bad(c, offsetof(struct qhca_port, promisc));
    }
    if ((c->mask & QHCA_PORT_M_ALLMULTI) && in->allmulti > 1) {
        return qhca_bad(c, offsetof(struct qhca_port, allmulti));
    }
    if ((c->mask & QHCA_PORT_M_LOOPBACK) && in->loopback > 1) {
        return qhca_bad(c, offsetof(struct qhca_port, loopback));
    }
    if ((c->mask & QHCA_PORT_M_PAUSE) && in->pause_rx > 1) {
        return qhca_bad(c, offsetof(struct qhca_port, pause_rx));
    }
    if ((c->mask & QHCA_PORT_M_MTU) &&
        !qhca_mtu_ok(mtu)) {
        return qhca_bad(c, offsetof(struct qhca_port, mtu));
    }
    if ((c->mask & QHCA_PORT_M_ETH_RQN) && !qhca_port_rq_ok(e, rqn)) {
        return qhca_bad_obj(c, offsetof(struct qhca_port, eth_rqn));
    }
    if ((c->mask & QHCA_PORT_M_ETH_QPN) && qpn != QHCA_ETH_QP_NONE &&
        !qhca_port_qp_ok(qhca_qp_get(e, qpn))) {
        return qhca_bad_obj(c, offsetof(struct qhca_port, eth_qpn));
    }
    return QHCA_ST_OK;
}

void qhca_port_set_qp(struct qhca *e, struct qhca_qp *qp)
{
    if (e->eth->eth_qp) {
        e->eth->eth_qp->users--;
    }
    e->eth->eth_qp = qp;
    if (qp) {
        qp->users++;
    }
}

/* In loopback, raw packet QPs need not wait for the wire. */
static void port_set_loopback(struct qhca *e, bool on)
{
    e->eth->loopback = on;
    if (on) {
        qhca_qps_unblock(e);
    }
}

uint8_t qhca_cmd_modify_port(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_port *in = c->in;
    uint8_t st = check_port(e, c, in);

    if (st) {
        return st;
    }
    if (c->mask & QHCA_PORT_M_MAC) {
        memcpy(e->mac, in->mac, 6);
    }
    if (c->mask & QHCA_PORT_M_PROMISC) {
        e->eth->promisc = in->promisc;
    }
    if (c->mask & QHCA_PORT_M_ALLMULTI) {
        e->eth->allmulti = in->allmulti;
    }
    if (c->mask & QHCA_PORT_M_LOOPBACK) {
        port_set_loopback(e, in->loopback);
    }
    if (c->mask & QHCA_PORT_M_PAUSE) {
        e->eth->pause_rx = in->pause_rx;
        if (!in->pause_rx && e->tx_paused) {
            e->tx_paused = qhca_now(e);     /* over */
        }
    }
    if (c->mask & QHCA_PORT_M_MTU) {
        e->mtu = qhca_le32(in->mtu);
    }
    if (c->mask & QHCA_PORT_M_ETH_RQN) {
        e->eth->eth_rqn = qhca_le32(in->eth_rqn);
    }
    if (c->mask & QHCA_PORT_M_ETH_QPN) {
        /* QHCA_ETH_QP_NONE is beyond all numbers */
        qhca_port_set_qp(e, qhca_qp_get(e, qhca_le32(in->eth_qpn)));
    }
    return QHCA_ST_OK;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identity, limits, statistics. */
#include "adapter/adapter.h"

uint8_t qhca_cmd_nop(struct qhca *e, struct qhca_cmd *c)
{
    (void)e;
    (void)c;
    return QHCA_ST_OK;
}

static uint64_t page_sizes(void)
{
    unsigned shift;
    uint64_t cap = 0;

    for (shift = QHCA_BUF_PAGE_SHIFT_MIN; shift <= QHCA_BUF_PAGE_SHIFT_MAX;
         shift++) {
        cap |= 1ULL << shift;
    }
    return cap;
}

/* EUI-64 of the MAC address (IBA 4.1.1, RFC 4291 appendix A). */
static void node_guid(const struct qhca *e, uint8_t guid[8])
{
    const uint8_t *mac = e->cfg.mac;

    memcpy(guid, mac, 3);
    guid[0] ^= 2;
    guid[3] = 0xff;
    guid[4] = 0xfe;
    memcpy(guid + 5, mac + 3, 3);
}

/* How many objects a table can hold, not counting those with fixed numbers. */
static uint32_t dev_room(const struct qhca_idr *t)
{
    return qhca_le32(t->max - t->first);
}

uint8_t qhca_cmd_query_device(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_dev_caps *out = c->out;

    out->features = qhca_le64(qhca_features(e));
    node_guid(e, out->node_guid);
    out->max_mr_size = qhca_le64(QHCA_MAX_MR_SIZE);
    out->page_size_cap = qhca_le64(page_sizes());
    out->max_qp = dev_room(&e->q->qps);
    out->max_cq = dev_room(&e->q->cqs);
    out->max_srq = dev_room(&e->q->srqs);
    out->max_mr = dev_room(&e->mem->mrs);
    out->max_pd = dev_room(&e->mem->pds);
    out->max_uar = qhca_le32(e->mem->uars.max);
    out->max_eq = qhca_le32(e->q->eqs.max);
    out->max_qp_wr = qhca_le32(QHCA_MAX_QP_WR);
    out->max_cqe = qhca_le32(QHCA_MAX_CQE);
    out->max_srq_wr = qhca_le32(QHCA_MAX_QP_WR);
    out->max_sge = qhca_le32(QHCA_MAX_SGE);
    out->max_inline = qhca_le32(QHCA_MAX_INLINE);
    out->max_gid = qhca_le32(e->cfg.max_gid);
    out->max_eth_queues = qhca_le32(e->cfg.max_eth_queues);
    out->max_eq_depth = qhca_le32(1u << QHCA_MAX_EQ_SHIFT);
    out->max_rd_atomic = qhca_le32(QHCA_MAX_RD_ATOMIC);
    out->max_msg_size = qhca_le32(QHCA_MAX_MSG_SIZE);
    out->dm_size = qhca_le64(e->cfg.dm_size);
    out->fw_version = qhca_le32(QHCA_FW_VERSION);
    out->max_xrcd = dev_room(&e->q->xrcds);
    out->max_shapers = dev_room(&e->eth->shapers);
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_query_stats(struct qhca *e, struct qhca_cmd *c)
{
    uint64_t *out = c->out;
    unsigned i;

    for (i = 0; i < QHCA_STAT_COUNT; i++) {
        out[i] = qhca_le64(e->stats[i]);
    }
    return QHCA_ST_OK;
}

uint64_t qhca_stat(struct qhca *e, unsigned index)
{
    return index < QHCA_STAT_COUNT ? e->stats[index] : 0;
}

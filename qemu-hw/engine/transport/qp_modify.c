/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MODIFY_QP: the valid transitions, the attributes that each requires and
 * allows (IBA 10.3.1 and 11.2.5.2), and the ranges of the attributes.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

#define M(name)             QHCA_QP_M_ ## name

enum { RC, UC, UD, XRC_INI, XRC_TGT, RAW, SERVICES };

struct transition {
    bool allowed;
    uint32_t required[SERVICES];
    uint32_t optional[SERVICES];
};

#define SQD_RC (M(ACCESS) | M(PKEY_INDEX) | M(AV) | M(TIMEOUT) |        \
                M(RETRY_CNT) | M(RNR_RETRY) | M(MAX_RD_ATOMIC) |        \
                M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER))
#define SQD_INI (M(ACCESS) | M(PKEY_INDEX) | M(AV) | M(TIMEOUT) |       \
                 M(RETRY_CNT) | M(RNR_RETRY) | M(MAX_RD_ATOMIC))
#define SQD_TGT (M(ACCESS) | M(PKEY_INDEX) | M(AV) | M(TIMEOUT) |       \
                 M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER))

/* From the state of the row to that of the column. */
static const struct transition transitions[][QHCA_QPS_ERR + 1] = {
    [QHCA_QPS_RESET] = {
        [QHCA_QPS_RESET] = { .allowed = true },
        [QHCA_QPS_INIT] = {
            .allowed = true,
            .required = {
                [RC] = M(PKEY_INDEX) | M(ACCESS),
                [UC] = M(PKEY_INDEX) | M(ACCESS),
                [UD] = M(PKEY_INDEX) | M(QKEY),
                [XRC_INI] = M(PKEY_INDEX) | M(ACCESS),
                [XRC_TGT] = M(PKEY_INDEX) | M(ACCESS),
            },
        },
    },
    [QHCA_QPS_INIT] = {
        [QHCA_QPS_RESET] = { .allowed = true },
        [QHCA_QPS_ERR] = { .allowed = true },
        [QHCA_QPS_INIT] = {
            .allowed = true,
            .optional = {
                [RC] = M(PKEY_INDEX) | M(ACCESS),
                [UC] = M(PKEY_INDEX) | M(ACCESS),
                [UD] = M(PKEY_INDEX) | M(QKEY),
                [XRC_INI] = M(PKEY_INDEX) | M(ACCESS),
                [XRC_TGT] = M(PKEY_INDEX) | M(ACCESS),
            },
        },
        [QHCA_QPS_RTR] = {
            .allowed = true,
            .required = {
                [RC] = M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN) |
                       M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER),
                [UC] = M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN),
                [XRC_INI] = M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN),
                [XRC_TGT] = M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN) |
                            M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER),
            },
            .optional = {
                [RC] = M(PKEY_INDEX) | M(ACCESS),
                [UC] = M(PKEY_INDEX) | M(ACCESS),
                [UD] = M(PKEY_INDEX) | M(QKEY),
                [XRC_INI] = M(PKEY_INDEX) | M(ACCESS),
                [XRC_TGT] = M(PKEY_INDEX) | M(ACCESS),
            },
        },
    },
    [QHCA_QPS_RTR] = {
        [QHCA_QPS_RESET] = { .allowed = true },
        [QHCA_QPS_ERR] = { .allowed = true },
        [QHCA_QPS_RTS] = {
            .allowed = true,
            .required = {
                [RC] = M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) |
                       M(SQ_PSN) | M(MAX_RD_ATOMIC),
                [UC] = M(SQ_PSN),
                [UD] = M(SQ_PSN),
                [XRC_INI] = M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) |
                            M(SQ_PSN) | M(MAX_RD_ATOMIC),
                [XRC_TGT] = M(TIMEOUT) | M(SQ_PSN),
            },
            .optional = {
                [RC] = M(ACCESS) | M(MIN_RNR_TIMER),
                [UC] = M(ACCESS),
                [UD] = M(QKEY),
                [XRC_INI] = M(ACCESS),
                [XRC_TGT] = M(ACCESS) | M(MIN_RNR_TIMER),
            },
        },
    },
    [QHCA_QPS_RTS] = {
        [QHCA_QPS_RESET] = { .allowed = true },
        [QHCA_QPS_ERR] = { .allowed = true },
        [QHCA_QPS_RTS] = {
            .allowed = true,
            .optional = {
                [RC] = M(ACCESS) | M(MIN_RNR_TIMER),
                [UC] = M(ACCESS),
                [UD] = M(QKEY),
                [XRC_INI] = M(ACCESS),
                [XRC_TGT] = M(ACCESS) | M(MIN_RNR_TIMER),
            },
        },
        [QHCA_QPS_SQD] = {
            .allowed = true,
            .optional = {
                [RC] = M(SQD_EVENT), [UC] = M(SQD_EVENT), [UD] = M(SQD_EVENT),
                [XRC_INI] = M(SQD_EVENT), [XRC_TGT] = M(SQD_EVENT),
                [RAW] = M(SQD_EVENT),
            },
        },
    },
    [QHCA_QPS_SQD] = {
        [QHCA_QPS_RESET] = { .allowed = true },
        [QHCA_QPS_ERR] = { .allowed = true },
        [QHCA_QPS_RTS] = {
            .allowed = true,
            .optional = {
                [RC] = M(ACCESS) | M(MIN_RNR_TIMER),
                [UC] = M(ACCESS),
                [UD] = M(QKEY),
                [XRC_INI] = M(ACCESS),
                [XRC_TGT] = M(ACCESS) | M(MIN_RNR_TIMER),
            },
        },
        [QHCA_QPS_SQD] = {
            .allowed = true,
            .optional = {
                [RC] = SQD_RC,
                [UC] = M(ACCESS) | M(PKEY_INDEX) | M(AV),
                [UD] = M(PKEY_INDEX) | M(QKEY),
                [XRC_INI] = SQD_INI,
                [XRC_TGT] = SQD_TGT,
            },
        },
    },
    [QHCA_QPS_SQE] = {
        [QHCA_QPS_RESET] = { .allowed = true },
        [QHCA_QPS_ERR] = { .allowed = true },
        [QHCA_QPS_RTS] = {
            .allowed = true,
            .optional = { [UC] = M(ACCESS), [UD] = M(QKEY) },
        },
    },
    [QHCA_QPS_ERR] = {
        [QHCA_QPS_RESET] = { .allowed = true },
        [QHCA_QPS_ERR] = { .allowed = true },
    },
};

/* Field offset for each mask bit. */
static const uint16_t field[] = {
    offsetof(struct qhca_qpc, state),
    offsetof(struct qhca_qpc, access),
    offsetof(struct qhca_qpc, pkey_index),
    offsetof(struct qhca_qpc, qkey),
    offsetof(struct qhca_qpc, av),
    offsetof(struct qhca_qpc, path_mtu),
    offsetof(struct qhca_qpc, timeout),
    offsetof(struct qhca_qpc, retry_cnt),
    offsetof(struct qhca_qpc, rnr_retry),
    offsetof(struct qhca_qpc, rq_psn),
    offsetof(struct qhca_qpc, sq_psn),
    offsetof(struct qhca_qpc, max_rd_atomic),
    offsetof(struct qhca_qpc, max_dest_rd_atomic),
    offsetof(struct qhca_qpc, min_rnr_timer),
    offsetof(struct qhca_qpc, dest_qpn),
    offsetof(struct qhca_qpc, en_sqd_event),
    offsetof(struct qhca_qpc, rx_hash_fields),
    offsetof(struct qhca_qpc, rqtn),
};

_Static_assert(QHCA_QP_M_ALL >> sizeof(field) / sizeof(field[0]) == 0,
               "a field for each bit");

static uint8_t qp_attr_bad_bit(struct qhca_cmd *c, uint64_t bits)
{
    return qhca_bad(c, field[__builtin_ctzll(bits)]);
}

static unsigned qp_service(const struct qhca_qp *qp)
{
    switch (qp->type) {
    case QHCA_QPT_RC:
        return RC;
    case QHCA_QPT_UC:
        return UC;
    case QHCA_QPT_XRC_INI:
        return XRC_INI;
    case QHCA_QPT_XRC_TGT:
        return XRC_TGT;
    case QHCA_QPT_RAW:
        return RAW;
    default:
        return UD;
    }
}

/* Offset of an address vector field that is out of range, or 0. */
static uint8_t qp_check_av(struct qhca *e, const struct qhca_qpc *in)
{
    const struct qhca_av *av = &in->av;

    if (qhca_le16(av->sgid_index) >= e->cfg.max_gid) {
        return offsetof(struct qhca_qpc, av.sgid_index);
    }
    if (av->flags) {
        return offsetof(struct qhca_qpc, av.flags);
    }
    if (qhca_le32(av->flow_label) > 0xfffff) {
        return offsetof(struct qhca_qpc, av.flow_label);
    }
    if (av->sl > 7) {
        return offsetof(struct qhca_qpc, av.sl);
    }
    /* A connected QP has one peer: no multicast. */
    return av->dgid[0] == 0xff ? offsetof(struct qhca_qpc, av.dgid) : 0;
}

/* Mask bits of the attributes in @mask that are out of range. */
static uint64_t qp_attr_out_of_range(const struct qhca_qpc *in, uint64_t mask)
{
    uint64_t bad = 0;

    bad |= qhca_le32(in->access) & ~QHCA_ACCESS_MASK ? M(ACCESS) : 0;
    bad |= in->pkey_index ? M(PKEY_INDEX) : 0;
    bad |= in->path_mtu < 1 || in->path_mtu > 5 ? M(PATH_MTU) : 0;
    bad |= in->timeout > 31 ? M(TIMEOUT) : 0;
    bad |= in->retry_cnt > 7 ? M(RETRY_CNT) : 0;
    bad |= in->rnr_retry > 7 ? M(RNR_RETRY) : 0;
    bad |= qhca_le32(in->rq_psn) > 0xffffff ? M(RQ_PSN) : 0;
    bad |= qhca_le32(in->sq_psn) > 0xffffff ? M(SQ_PSN) : 0;
    bad |= in->max_rd_atomic > QHCA_MAX_RD_ATOMIC ? M(MAX_RD_ATOMIC) : 0;
    bad |= in->max_dest_rd_atomic > QHCA_MAX_RD_ATOMIC ?
           M(MAX_DEST_RD_ATOMIC) : 0;
    bad |= in->min_rnr_timer > 31 ? M(MIN_RNR_TIMER) : 0;
    bad |= qhca_le32(in->dest_qpn) > 0xffffff ? M(DEST_QPN) : 0;
    bad |= in->en_sqd_event > 1 ? M(SQD_EVENT) : 0;
    return bad & mask;
}

/* Attributes that a QP of @svc must have been given to reach @state. */
static uint64_t attributes_got(unsigned svc, uint8_t state)
{
    uint64_t got = 0;

    switch (state) {
    case QHCA_QPS_RTS:
    case QHCA_QPS_SQD:
    case QHCA_QPS_SQE:
        got |= transitions[QHCA_QPS_RTR][QHCA_QPS_RTS].required[svc];
        /* fall through */
    case QHCA_QPS_RTR:
        got |= transitions[QHCA_QPS_INIT][QHCA_QPS_RTR].required[svc];
        /* fall through */
    case QHCA_QPS_INIT:
        got |= transitions[QHCA_QPS_RESET][QHCA_QPS_INIT].required[svc];
        /* fall through */
    default:                    /* ERR: reachable from every state */
        return got;
    }
}

bool qhca_qp_attributes_ok(struct qhca *e, const struct qhca_qp *qp)
{
    uint64_t mask = QHCA_QP_M_ALL & ~M(STATE);
    struct qhca_qpc c;

    qhca_qp_describe(qp, &c);
    /* The only attribute whose value after reset is not a valid one. */
    if (!c.path_mtu &&
        !(attributes_got(qp_service(qp), qp->state) & M(PATH_MTU))) {
        mask &= ~M(PATH_MTU);
    }
    return !qp_attr_out_of_range(&c, mask) && !qp_check_av(e, &c);
}

static uint8_t modify_check(struct qhca *e, struct qhca_cmd *c,
                            const struct qhca_qp *qp, const struct qhca_qpc *in,
                            uint8_t next)
{
    const struct transition *t;
    unsigned svc = qp_service(qp);
    uint64_t attrs = c->mask & ~M(STATE), bits;
    uint8_t off;

    if (c->mask & ~QHCA_QP_M_ALL) {
        return QHCA_ST_BAD_PARAM;
    }
    if (next > QHCA_QPS_ERR) {
        return qp_attr_bad_bit(c, M(STATE));
    }
    t = &transitions[qp->state][next];
    if (!t->allowed) {
        return QHCA_ST_BAD_STATE;
    }
    bits = t->required[svc] & ~attrs;
    if (bits) {
        return qp_attr_bad_bit(c, bits);
    }
    bits = attrs & ~(uint64_t)(t->required[svc] | t->optional[svc]);
    if (bits) {
        return qp_attr_bad_bit(c, bits);
    }
    bits = qp_attr_out_of_range(in, attrs);
    if (bits) {
        return qp_attr_bad_bit(c, bits);
    }
    if (attrs & M(AV)) {
        off = qp_check_av(e, in);
        /* The entry may be cleared later, but must exist now. */
        if (!off && e->xd->gids[qhca_le16(in->av.sgid_index)].type !=
            QHCA_GID_ROCE_V2) {
            off = offsetof(struct qhca_qpc, av.sgid_index);
        }
        if (off) {
            return qhca_bad(c, off);
        }
    }
    return QHCA_ST_OK;
}

static void qp_set_attributes(struct qhca_qp *qp, const struct qhca_qpc *in,
                              uint64_t mask)
{
    if (mask & M(ACCESS)) {
        qp->access = qhca_le32(in->access);
    }
    if (mask & M(PKEY_INDEX)) {
        qp->pkey_index = qhca_le16(in->pkey_index);
    }
    if (mask & M(QKEY)) {
        qp->qkey = qhca_le32(in->qkey);
    }
    if (mask & M(AV)) {
        qp->av = in->av;
    }
    if (mask & M(PATH_MTU)) {
        qp->path_mtu = in->path_mtu;
    }
    if (mask & M(TIMEOUT)) {
        qp->timeout = in->timeout;
    }
    if (mask & M(RETRY_CNT)) {
        qp->retry_cnt = in->retry_cnt;
    }
    if (mask & M(RNR_RETRY)) {
        qp->rnr_retry = in->rnr_retry;
    }
    if (mask & M(RQ_PSN)) {
        qp->rq_psn = qhca_le32(in->rq_psn);
    }
    if (mask & M(SQ_PSN)) {
        qp->sq_psn = qhca_le32(in->sq_psn);
    }
    if (mask & M(MAX_RD_ATOMIC)) {
        qp->max_rd_atomic = in->max_rd_atomic;
    }
    if (mask & M(MAX_DEST_RD_ATOMIC)) {
        qp->max_dest_rd_atomic = in->max_dest_rd_atomic;
    }
    if (mask & M(MIN_RNR_TIMER)) {
        qp->min_rnr_timer = in->min_rnr_timer;
    }
    if (mask & M(DEST_QPN)) {
        qp->dest_qpn = qhca_le32(in->dest_qpn);
    }
    if (mask & M(SQD_EVENT)) {
        qp->en_sqd_event = in->en_sqd_event;
    }
}

uint8_t qhca_cmd_modify_qp(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_qp *qp = qhca_qp_get(e, c->obj);
    const struct qhca_qpc *in = c->in;
    uint8_t old, next, st;

    if (!qp) {
        return QHCA_ST_BAD_OBJ;
    }
    if (qp->ops->modify) {
        return qp->ops->modify(e, c, qp);
    }
    old = qp->state;
    next = c->mask & M(STATE) ? in->state : old;
    st = modify_check(e, c, qp, in, next);
    if (st) {
        return st;
    }
    if (old == QHCA_QPS_RESET && next == QHCA_QPS_INIT &&
        (!qhca_qp_clear_notify(e, qp) ||
         ((qp->flags & QHCA_QP_F_SQ_RECORD) &&
          !qhca_sq_notify(e, qp, true)))) {
        return QHCA_ST_DMA_ERROR;
    }
    if (next == QHCA_QPS_SQD && old != QHCA_QPS_SQD) {
        qp->en_sqd_event = 0;
    }
    qp_set_attributes(qp, in, c->mask);
    if (c->mask & M(MAX_RD_ATOMIC)) {
        qhca_qp_schedule(e, qp);        /* a READ may be waiting for this */
    }
    /* Of messages in flight, too: how often, and after which time to retry. */
    if (c->mask & M(RETRY_CNT)) {
        qp->xp->retry_left = qp->retry_cnt;
    }
    if (c->mask & M(RNR_RETRY)) {
        qp->xp->rnr_left = qp->rnr_retry;
    }
    if (c->mask & M(TIMEOUT)) {
        qhca_ack_new_timeout(e, qp);
    }
    if (!(c->mask & M(STATE))) {
        return QHCA_ST_OK;
    }
    if (next == QHCA_QPS_RESET || next == QHCA_QPS_ERR) {
        qhca_rsp_send_last(e, qp);
    }
    if (next == QHCA_QPS_RESET) {
        if (qp->tm) {
            qhca_tm_qp_drop(e, qp, true);
        }
        qhca_qp_clear(qp);
        qhca_xrc_unbind(qp);
    }
    qp->state = next;
    qhca_qp_trace_state(e, qp, old);
    qhca_xport_state(e, qp, old);
    return QHCA_ST_OK;
}

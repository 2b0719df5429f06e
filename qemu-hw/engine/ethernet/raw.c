/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw packet QPs: a message is a whole Ethernet frame, without FCS.
 *
 * A multicast frame goes to the wire and to our own flows; one sent to the
 * port's own address stays inside, as no switch would send it back, and so does
 * every frame while the port is in loopback.
 */
#include "ethernet/flow.h"

/* ---- send ---- */

/* Gather the frame of the checked WQE into e->eth->eth_frame. */
static uint8_t raw_gather(struct qhca *e, struct qhca_qp *qp, uint16_t num,
                          uint32_t len, uint8_t *status)
{
    const uint8_t *p = e->xd->wqe, *data = p + qhca_wqe_header(qp, p[0]);
    uint8_t *frame = e->eth->eth_frame, syn;
    struct qhca_sgpos pos = { 0 };
    uint32_t header = QHCA_ETH_HLEN;
    uint16_t type;

    if (p[1] & QHCA_WQE_F_INLINE) {
        memcpy(frame, data, len);
    } else {
        syn = qhca_sgl_copy(e, qhca_sgl_qp(qp, qp->pd), data, num, &pos, 0,
                            frame, len, false);
        if (syn) {
            *status = QHCA_WC_LOC_PROT_ERR;
            return syn;
        }
    }
    /* as in qhca_eth_fits() */
    type = qhca_get_be16(frame + 12);
    if (type == QHCA_ETHERTYPE_VLAN || type == QHCA_ETHERTYPE_SERVICE_VLAN) {
        header += QHCA_VLAN_HLEN;
    }
    if (len > header + e->mtu) {
        *status = QHCA_WC_LOC_LEN_ERR;
        return QHCA_SYN_WQE_LENGTH;
    }
    if (p[1] & QHCA_WQE_F_ETH_CSUM) {
        qhca_csum_fill(frame, len);
    }
    return QHCA_SYN_NONE;
}

void qhca_raw_loop_group(struct qhca *e, const uint8_t *frame, size_t len)
{
    struct qhca_eth_frame f;

    qhca_eth_frame_parse(e, &f, frame, len);
    if (qhca_headers_cut(&f.h)) {
        qhca_count(e, QHCA_STAT_ETH_RX_ERRORS);     /* as from the wire */
    } else {
        qhca_eth_rx_own(e, &f);
    }
}

/* Send the frame in e->eth->eth_frame; false if the wire is busy. */
static bool raw_transmit(struct qhca *e, uint32_t len)
{
    const uint8_t *frame = e->eth->eth_frame;
    bool own = e->eth->loopback || !memcmp(frame, e->mac, 6);
    bool group = !own && (frame[0] & 1);

    if (qhca_faulty(e, QHCA_FLT_AT_FRAME)) {
        e->hooks->frame_tx(e, frame, len, own, group);
    } else if (own) {
        qhca_eth_loop(e, frame, len);
    } else if (!qhca_tx(e, frame, len)) {
        return false;
    } else if (group) {
        qhca_raw_loop_group(e, frame, len);
    }
    qhca_count(e, QHCA_STAT_RAW_TX_PACKETS);
    e->stats[QHCA_STAT_RAW_TX_BYTES] += len;
    return true;
}

static bool raw_send(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    struct qhca_xport *xp = qp->xp;
    uint8_t syn, status = QHCA_WC_SUCCESS;
    struct qhca_wqe_head h;
    uint64_t addr = 0;
    uint32_t len;

    while (qp->state == QHCA_QPS_RTS && qp->sq_next != qp->sq_head &&
           !qhca_odp_waits(qp, QHCA_ODP_SEND)) {
        if (!*budget || qhca_eth_blocked(e) || qhca_call_spent(e) ||
            !qhca_active(e)) {
            return true;
        }
        len = 0;
        syn = qhca_sq_fetch(e, qp, qp->sq_next, e->xd->wqe, &addr);
        if (syn) {
            --*budget;
            qhca_dgram_done(e, qp, 0, QHCA_WC_LOC_QP_OP_ERR, syn, false);
            continue;
        }
        qhca_dgram_trace(e, qp, addr);
        qhca_wqe_unpack(qp, e->xd->wqe, &h);
        syn = qhca_wqe_check(qp, &h, &status);
        if (!syn) {
            len = h.len;
            syn = raw_gather(e, qp, h.num, len, &status);
        }
        if (syn == QHCA_SYN_PAGE_FAULT &&
            qhca_odp_stall(e, qp, QHCA_PAGE_FAULT_SEND)) {
            break;              /* fetched again once the page is present */
        }
        if (!syn) {
            if (!raw_transmit(e, len)) {
                return true;
            }
            qp->tx_packets++;
            qhca_odp_passed(qp, QHCA_PAGE_FAULT_SEND);
        }
        --*budget;
        /* Receiving our own frame may have moved the QP to ERR. */
        qhca_dgram_done(e, qp, len, syn ? status : QHCA_WC_SUCCESS, syn,
                        true);
    }
    xp->req_state = QHCA_REQ_IDLE;
    qhca_req_drained(e, qp);
    return xp->sq_flush || xp->rq_flush;
}

/* ---- receive ---- */

static bool raw_receives(const struct qhca_qp *qp)
{
    return qp->state >= QHCA_QPS_RTR && qp->state <= QHCA_QPS_SQE;
}

/* Bytes after the addresses that are not stored. */
static size_t raw_skipped(const struct qhca_raw_recv *r)
{
    return r->strip && r->f->h.tagged ? QHCA_VLAN_HLEN : 0;
}

bool qhca_raw_too_long(const struct qhca_raw_recv *r)
{
    return r->f->len - raw_skipped(r) > r->recv->cap;
}

uint8_t qhca_raw_store(struct qhca *e, const struct qhca_raw_recv *r)
{
    const struct qhca_eth_frame *f = r->f;
    size_t skip = raw_skipped(r);
    uint8_t syn;

    if (!skip) {
        return qhca_recv_store(e, r->recv, r->user, f->data,
                               (uint32_t)f->len);
    }
    syn = qhca_recv_store(e, r->recv, r->user, f->data, 12);
    return syn ? syn : qhca_recv_store(e, r->recv, r->user,
                                       f->data + 12 + skip,
                                       (uint32_t)(f->len - 12 - skip));
}

void qhca_raw_stored(struct qhca *e, const struct qhca_raw_recv *r,
                     uint32_t tag, struct qhca_cqe *cqe)
{
    const struct qhca_eth_frame *f = r->f;
    struct qhca_csum_verdict v;
    uint16_t flags = 0;

    qhca_count(e, QHCA_STAT_RAW_RX_PACKETS);
    e->stats[QHCA_STAT_RAW_RX_BYTES] += f->len;
    qhca_csum_verdict(&f->h, f->h.l3_len, &v);
    flags |= v.l3_ok ? QHCA_CQE_F_L3_OK : 0;
    flags |= v.l4_ok ? QHCA_CQE_F_L4_OK : 0;
    cqe->vlan = qhca_le16(QHCA_VLAN_NONE);
    if (raw_skipped(r)) {
        cqe->vlan = qhca_le16(f->h.tci);
        flags |= QHCA_CQE_F_VLAN;
    }
    cqe->flags = qhca_le16(flags);
    cqe->src_qpn = qhca_le32(tag);
    cqe->byte_len = qhca_le32(r->recv->len);
}

static void raw_receive(struct qhca *e, void *to,
                        const struct qhca_eth_frame *f,
                        const struct qhca_steer *s)
{
    struct qhca_qp *qp = to;
    struct qhca_raw_recv r = {
        .f = f, .recv = &qp->xp->recv, .user = qhca_sgl_recv(qp),
        .strip = qp->flags & QHCA_QP_F_STRIP_VLAN,
    };
    struct qhca_cqe cqe = { 0 };
    uint8_t syn;

    if (!raw_receives(qp) || qhca_odp_waits(qp, QHCA_ODP_RECV)) {
        qhca_count(e, QHCA_STAT_RAW_RX_DROPPED);
        return;
    }
    syn = qhca_recv_take(e, qp);
    if (syn == QHCA_SYN_RNR || (!syn && qhca_raw_too_long(&r))) {
        qhca_count(e, QHCA_STAT_RAW_RX_DROPPED);
        return;
    }
    if (!syn) {
        syn = qhca_raw_store(e, &r);
    }
    if (syn == QHCA_SYN_PAGE_FAULT &&
        qhca_odp_stall(e, qp, QHCA_PAGE_FAULT_RECV)) {
        qhca_count(e, QHCA_STAT_RAW_RX_DROPPED);
        return;
    }
    if (syn) {
        bool held = r.recv->held;

        qhca_recv_error(e, qp, syn == QHCA_SYN_WQE_SGE ?
                        QHCA_WC_LOC_QP_OP_ERR : QHCA_WC_LOC_PROT_ERR, syn);
        qhca_qp_error(e, qp, syn, held ? 0 : QHCA_EV_QP_FATAL);
        return;
    }
    qhca_odp_passed(qp, QHCA_PAGE_FAULT_RECV);
    qp->rx_packets++;
    qhca_raw_stored(e, &r, s->tag, &cqe);
    qhca_recv_complete(e, qp, &cqe, QHCA_CQE_OP_RAW_RECV, QHCA_WC_SUCCESS,
                       QHCA_SYN_NONE, false);
}

static void raw_deliver(struct qhca *e, qhca_eth_deliver *deliver, void *to,
                        const struct qhca_eth_frame *f,
                        const struct qhca_steer *s)
{
    uint32_t lost = 0;

    if (!f->super.segs) {
        deliver(e, to, f, s);
    } else if (qhca_super_intact(e, f)) {
        lost = qhca_super_deliver(e, f, deliver, to, s);
    } else {
        lost = f->super.segs;
    }
    e->stats[QHCA_STAT_RAW_RX_DROPPED] += lost;
}

void qhca_raw_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_eth_frame *f, uint32_t tag)
{
    struct qhca_steer s = { .tag = tag };
    struct qhca_eth_q *rq;
    struct qhca_wq *wq;

    if (!qhca_active(e)) {
        return;                 /* since another copy */
    }
    if (qp->type != QHCA_QPT_RSS) {
        raw_deliver(e, raw_receive, qp, f, &s);
        return;
    }
    qp->rx_packets += qhca_eth_frames(f);
    wq = qhca_rss_pick(qp, f, &rq, &s);
    if (wq) {
        raw_deliver(e, qhca_wq_rx, wq, f, &s);
    } else {
        qhca_eth_rq_rx(e, rq, f, &s);
    }
}

static bool raw_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    return qhca_xport_run(e, qp, budget, raw_send);
}

const struct qhca_qp_ops qhca_raw_qp_ops = {
    .init = qhca_xport_init,
    .free = qhca_xport_free,
    .error = qhca_xport_error,
    .run = raw_run,
    .query = qhca_xport_query,
    .save = qhca_io_xport,
};

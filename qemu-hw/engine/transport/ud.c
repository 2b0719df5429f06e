/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unreliable datagrams, and the GSI QP, which is UD with QPN 1 (IBA 9.8.3).  A
 * message is one packet and completes when it is sent.
 */
#include "transport/rc.h"

/* Upper bound for the headers, as Linux uses for the active MTU. */
#define UD_OVERHEAD     96
#define QKEY_OWN        0x80000000U

/* Largest IB MTU that fits the port's MTU. */
static uint32_t port_mtu(const struct qhca *e)
{
    uint32_t room = e->mtu > UD_OVERHEAD ? e->mtu - UD_OVERHEAD : 0;
    uint8_t code = 5;

    while (code > 1 && qhca_mtu_bytes(code) > room) {
        code--;
    }
    return qhca_mtu_bytes(code);
}

static uint32_t own_qkey(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_GSI ? QHCA_GSI_QKEY : qp->qkey;
}

/* Unpack the WQE in e->xd->wqe to @h and check it. */
static uint8_t ud_check_wqe(struct qhca *e, const struct qhca_qp *qp,
                            struct qhca_wqe_head *h, uint8_t *status)
{
    uint8_t syn;

    qhca_wqe_unpack(qp, e->xd->wqe, h);
    syn = qhca_wqe_check(qp, h, status);
    if (!syn && h->len > port_mtu(e)) {
        *status = QHCA_WC_LOC_LEN_ERR;
        return QHCA_SYN_WQE_LENGTH;
    }
    return syn;
}

/* Send the valid WQE in e->xd->wqe. */
static enum qhca_send ud_send_packet(struct qhca *e, struct qhca_qp *qp,
                                     const struct qhca_wqe_head *h,
                                     uint8_t *syn)
{
    const uint8_t *p = e->xd->wqe, *data = p + qhca_wqe_header(qp, p[0]);
    bool imm = p[0] == QHCA_WQE_SEND_IMM;
    uint32_t dest = qhca_get_le32(p + 0x20) & QHCA_PSN_MASK;
    uint32_t qkey = qhca_get_le32(p + 0x24), ext = QHCA_DETH_LEN;
    struct qhca_sgpos pos = { 0 };
    struct qhca_frame f;
    struct qhca_av av;
    enum qhca_send sent;
    uint8_t *deth;

    memcpy(&av, p + 0x30, sizeof(av));
    *syn = QHCA_SYN_NONE;
    sent = qhca_frame_begin(e, &av, qp->qpn, dest, &f);
    if (sent != QHCA_SENT) {
        *syn = sent == QHCA_BAD_AV ? QHCA_SYN_WQE_AV : QHCA_SYN_NONE;
        return sent;
    }
    qhca_frame_bth(&f, QHCA_CLASS_UD | (imm ? QHCA_OP_SEND_ONLY_IMM :
                                        QHCA_OP_SEND_ONLY),
                   p[1] & QHCA_WQE_F_SOLICITED, false, h->len, dest,
                   qp->xp->snd_psn);
    deth = f.bth + QHCA_BTH_LEN;
    qhca_put_be32(deth, qkey & QKEY_OWN ? own_qkey(qp) : qkey);
    qhca_put_be32(deth + 4, qp->qpn);
    if (imm) {
        memcpy(deth + ext, p + 4, QHCA_IMM_LEN);
        ext += QHCA_IMM_LEN;
    }
    if (p[1] & QHCA_WQE_F_INLINE) {
        memcpy(qhca_frame_payload(&f, ext), data, h->len);
    } else {
        *syn = qhca_sgl_copy(e, qhca_sgl_qp(qp, qp->pd), data, h->num, &pos,
                             0, qhca_frame_payload(&f, ext), h->len, false);
        if (*syn) {
            return QHCA_SENT;
        }
    }
    return qhca_frame_end(e, &f, qp->qpn, ext, h->len);
}

void qhca_dgram_done(struct qhca *e, struct qhca_qp *qp, uint32_t len,
                     uint8_t status, uint8_t syndrome, bool fetched)
{
    const uint8_t *p = e->xd->wqe;
    uint64_t wr_id = fetched ? qhca_get_le64(p + 8) : 0;
    uint8_t opcode = fetched ? p[0] : QHCA_WQE_SEND;
    uint32_t index = qp->sq_tail;

    qp->sq_tail++;
    qp->sq_next = qp->sq_tail;
    qp->xp->cur = qp->sq_tail;
    qp->xp->wqe_told = false;
    if ((status || (p[1] & QHCA_WQE_F_SIGNALED)) &&
        !qhca_send_cqe(e, qp, wr_id, index, opcode, len, status, syndrome)) {
        qhca_qp_error(e, qp, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
    } else if (qhca_wqe_lost(status, syndrome)) {
        qhca_qp_error(e, qp, syndrome, QHCA_EV_QP_FATAL);
    } else if (status) {
        qhca_qp_sqe(e, qp, syndrome);
    }
}

void qhca_dgram_trace(struct qhca *e, struct qhca_qp *qp, uint64_t addr)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_WQE,
        .num = qp->qpn,
        .index = qp->sq_next,
        .psn = qp->xp->snd_psn,
        .addr = addr,
        .a = e->xd->wqe[0],
        .b = qhca_get_le64(e->xd->wqe + 8),
        .again = qp->xp->wqe_told,
    };

    if (qhca_tracing(e)) {
        qp->xp->wqe_told = e->debugging;
        qhca_trace_emit(e, &t);
    }
}

bool qhca_ud_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_wqe_head h;
    uint8_t syn, status;
    uint64_t addr = 0;

    while (qp->state == QHCA_QPS_RTS && qp->sq_next != qp->sq_head &&
           !qhca_odp_waits(qp, QHCA_ODP_SEND)) {
        /* The WQE determines whether a datagram takes the wire. */
        if (!*budget || !qhca_active(e)) {
            return true;
        }
        syn = qhca_sq_fetch(e, qp, qp->sq_next, e->xd->wqe, &addr);
        if (syn) {
            --*budget;
            qhca_dgram_done(e, qp, 0, QHCA_WC_LOC_QP_OP_ERR, syn, false);
            continue;
        }
        qhca_dgram_trace(e, qp, addr);
        syn = ud_check_wqe(e, qp, &h, &status);
        if (!syn) {
            if (ud_send_packet(e, qp, &h, &syn) == QHCA_BLOCKED) {
                return true;    /* refetched when the wire is free */
            }
            if (syn == QHCA_SYN_PAGE_FAULT &&
                qhca_odp_stall(e, qp, QHCA_PAGE_FAULT_SEND)) {
                break;          /* refetched when the page is there */
            }
            status = syn == QHCA_SYN_WQE_AV ? QHCA_WC_LOC_QP_OP_ERR :
                                              QHCA_WC_LOC_PROT_ERR;
        }
        --*budget;
        if (syn) {
            qhca_dgram_done(e, qp, 0, status, syn, true);
        } else {
            qp->tx_packets++;
            qhca_odp_passed(qp, QHCA_PAGE_FAULT_SEND);
            xp->snd_psn = qhca_psn_add(xp->snd_psn, 1);
            xp->una_psn = xp->snd_psn;
            xp->max_psn = xp->snd_psn;
            qhca_dgram_done(e, qp, h.len, QHCA_WC_SUCCESS, QHCA_SYN_NONE, true);
        }
        qhca_break_point(e);
    }
    xp->req_state = QHCA_REQ_IDLE;
    qhca_req_drained(e, qp);
    return xp->sq_flush || xp->rq_flush;
}

/* Store the 40-byte GRH, or its RoCEv2 equivalent (annex A17.4.5). */
static uint8_t store_grh(struct qhca *e, struct qhca_qp *qp,
                         const struct qhca_rx *rx)
{
    uint8_t grh[QHCA_GRH_LEN] = { 0 };
    uint8_t *ip4 = grh + QHCA_GRH_LEN - QHCA_IP4_HLEN;
    uint16_t len = (uint16_t)(rx->frame_len - (uint32_t)(rx->ip - rx->eth));

    if (rx->v6) {
        memcpy(grh, rx->ip, QHCA_IP6_HLEN);
    } else {
        memcpy(ip4, rx->ip, QHCA_IP4_HLEN);
    }
    /* Over a memory link, the headers' lengths do not include the payload. */
    if (rx->super && rx->v6) {
        qhca_put_be16(grh + 4, (uint16_t)(len - QHCA_IP6_HLEN));
    } else if (rx->super) {
        qhca_put_be16(ip4 + 2, len);
        qhca_csum_fill_ip(ip4, 4, QHCA_IP4_HLEN);
    }
    return qhca_recv_data(e, qp, grh, sizeof(grh));
}

void qhca_ud_rx(struct qhca *e, struct qhca_qp *qp,
                const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_cqe cqe = { 0 };
    uint16_t flags = QHCA_CQE_F_GRH | QHCA_CQE_F_SMAC;
    uint8_t syn;

    if (qhca_get_be32(rx->ext) != own_qkey(qp) ||
        rx->payload_len > port_mtu(e)) {
        qhca_rx_drop(e, rx, QHCA_STAT_UD_DROPPED);
        return;
    }
    if (qhca_odp_waits(qp, QHCA_ODP_RECV)) {
        qhca_odp_drop(e, qp, QHCA_PAGE_FAULT_RECV, rx);
        return;
    }
    syn = qhca_recv_take(e, qp);
    if (syn == QHCA_SYN_RNR ||
        (!syn && QHCA_GRH_LEN + rx->payload_len > xp->recv.cap)) {
        qhca_rx_drop(e, rx, QHCA_STAT_UD_DROPPED);
        return;
    }
    if (!syn) {
        syn = store_grh(e, qp, rx);
    }
    if (!syn) {
        syn = qhca_recv_data(e, qp, rx->payload, rx->payload_len);
    }
    if (syn == QHCA_SYN_PAGE_FAULT &&
        qhca_odp_stall_rx(e, qp, QHCA_PAGE_FAULT_RECV, rx)) {
        return;
    }
    if (syn) {
        bool held = xp->recv.held;

        qhca_recv_error(e, qp, syn == QHCA_SYN_WQE_SGE ?
                        QHCA_WC_LOC_QP_OP_ERR : QHCA_WC_LOC_PROT_ERR, syn);
        qhca_qp_error(e, qp, syn, held ? 0 : QHCA_EV_QP_FATAL);
        return;
    }
    qhca_odp_passed(qp, QHCA_PAGE_FAULT_RECV);
    cqe.src_qpn = qhca_le32(qhca_get_be32(rx->ext + 4) & QHCA_PSN_MASK);
    cqe.byte_len = qhca_le32(xp->recv.len);
    if (rx->flags & QHCA_OPF_IMM) {
        memcpy(&cqe.imm, rx->ext + QHCA_DETH_LEN, QHCA_IMM_LEN);
        flags |= QHCA_CQE_F_IMM;
    }
    memcpy(cqe.smac, rx->eth + 6, 6);
    cqe.vlan = qhca_le16(QHCA_VLAN_NONE);
    if (rx->tci != QHCA_VLAN_NONE) {
        cqe.sl = (uint8_t)(rx->tci >> 13);
        /*
         * VID 0 is a priority tag, unless the GID has that VLAN; groups are not
         * in the GID table.
         */
        if (rx->mcg ? rx->tci & 0xfff :
            e->xd->gids[rx->gid].vlan != qhca_le16(QHCA_VLAN_NONE)) {
            cqe.vlan = qhca_le16(rx->tci);
            flags |= QHCA_CQE_F_VLAN;
        }
    }
    cqe.net_type = rx->v6 ? QHCA_NET_IPV6 : QHCA_NET_IPV4;
    cqe.flags = qhca_le16(flags);
    qhca_recv_complete(e, qp, &cqe, QHCA_CQE_OP_RECV, QHCA_WC_SUCCESS,
                       QHCA_SYN_NONE, rx->se);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault injection at packets.  A fault acts as if on the wire: the sender has
 * counted the packet already, the receiver has not seen it yet.
 */
#include "observe/fault_state.h"

static bool fault_dropped(const struct qhca_fault_hits *h)
{
    return qhca_fault_has(h, QHCA_FLT_DROP) ||
           qhca_fault_has(h, QHCA_FLT_NO_ACK);
}

/*
 * Make the PSN relative to the first one of its direction: responses use the
 * PSN of the request.
 */
static void fault_relative(struct qhca *e, struct qhca_fault_site *s, bool resp)
{
    const struct qhca_qp *qp = qhca_qp_get(e, s->number);
    bool mine = (s->direction == QHCA_FLT_OUT) != resp;

    if (!qp) {
        return;
    }
    s->has_qp = true;
    s->qp_type = qp->type;
    s->has_rel = qhca_qp_connected(qp);
    s->rel = qhca_psn_dist(s->psn, mine ? qp->sq_psn : qp->rq_psn);
}

/* ---- packets to send ---- */

static void spoil_out(struct qhca_frame *f, const struct qhca_fault_hits *h,
                      uint32_t ext, uint32_t payload, uint32_t len)
{
    uint8_t *icrc = f->data + len - QHCA_ICRC_LEN;
    uint32_t body = (uint32_t)(icrc - f->bth);
    uint32_t at = (uint32_t)(h->draw % UINT32_MAX);

    if (qhca_fault_has(h, QHCA_FLT_CORRUPT_PAYLOAD)) {
        f->bth[QHCA_BTH_LEN + ext + at % payload] ^= 1u << (h->draw >> 61);
        /* not qhca_icrc_twice(): a FLUSH has no payload */
        qhca_put_le32(icrc, qhca_icrc(f->ip, f->v6, (size_t)(icrc - f->ip)));
    }
    if (qhca_fault_has(h, QHCA_FLT_CORRUPT)) {
        /* Spare the BTH: it names the QP, and is covered only in part. */
        f->bth[QHCA_BTH_LEN + at % (body - QHCA_BTH_LEN + QHCA_ICRC_LEN)] ^=
            1u << (h->draw >> 61);
    }
    if (qhca_fault_has(h, QHCA_FLT_CORRUPT_ICRC)) {
        icrc[at % QHCA_ICRC_LEN] ^= 1u << (h->draw >> 61);
    }
}

void qhca_fault_tx(struct qhca *e, struct qhca_frame *f, uint32_t num,
                   uint32_t ext, uint32_t payload, uint32_t len)
{
    struct qhca_op_info info = qhca_op_info(f->bth[0]);
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_PACKET, .direction = QHCA_FLT_OUT, .number = num,
        .peer = qhca_get_be32(f->bth + 4) & QHCA_PSN_MASK,
        .psn = qhca_get_be32(f->bth + 8) & QHCA_PSN_MASK,
        .opcode = f->bth[0], .has_payload = payload,
        .syndrome = info.flags & QHCA_OPF_AETH ? f->bth[QHCA_BTH_LEN] : 0,
    };
    struct qhca_fault_frame what = {
        .qpn = num, .wire = f->wire, .loop = f->loop,
    };
    struct qhca_fault_hits h;

    fault_relative(e, &s, info.flags & QHCA_OPF_RESP);
    qhca_fault_ask(e, &s, &h);
    if (!qhca_active(e) || fault_dropped(&h)) {
        return;
    }
    spoil_out(f, &h, ext, payload, len);
    qhca_fault_send(e, &h, &what, f->data, len);
}

/* ---- received packets ---- */

/* Change a byte of the packet's payload and correct its ICRC. */
static bool spoil_in(struct qhca *e, const struct qhca_fault_hits *h,
                     struct qhca_rx *rx)
{
    uint8_t *data = e->faults->spoilt, *icrc;
    const uint8_t *eth = rx->eth;
    uint32_t crc;

    memcpy(data, eth, rx->frame_len);
    icrc = data + (rx->payload + rx->payload_len + rx->pad - eth);
    data[(rx->payload - eth) + h->draw % rx->payload_len] ^=
        1u << (h->draw >> 61);
    crc = qhca_icrc(data + (rx->ip - eth), rx->v6,
                    (size_t)(icrc - data) - (size_t)(rx->ip - eth));
    qhca_put_le32(icrc, crc);
    return qhca_parse(e, data, rx->frame_len, rx) == QHCA_PARSE_OK;
}

static uint32_t fault_sender(struct qhca *e, const struct qhca_rx *rx)
{
    const struct qhca_qp *qp = qhca_qp_get(e, rx->qpn);

    if (rx->flags & QHCA_OPF_DETH) {
        return qhca_get_be32(rx->ext + 4) & QHCA_PSN_MASK;
    }
    return qp ? qp->dest_qpn : 0;
}

void qhca_fault_rx(struct qhca *e, const struct qhca_rx *rxp)
{
    struct qhca_rx rx = *rxp;
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_PACKET, .direction = QHCA_FLT_IN,
        .number = rx.qpn, .peer = fault_sender(e, rxp), .psn = rx.psn,
        .opcode = rx.opcode, .has_payload = rx.payload_len,
        .syndrome = rx.flags & QHCA_OPF_AETH ? rx.ext[0] : 0,
    };
    struct qhca_fault_frame what = {
        .qpn = rx.qpn, .in = true, .looping = e->xd->looping,
    };
    struct qhca_fault_hits h;
    uint64_t before = e->faults->seq;

    fault_relative(e, &s, rx.flags & QHCA_OPF_RESP);
    qhca_fault_ask(e, &s, &h);
    if (!qhca_active(e) || !e->link || fault_dropped(&h)) {
        return;                 /* as if it had never arrived */
    }
    if (qhca_fault_has(&h, QHCA_FLT_CORRUPT) ||
        qhca_fault_has(&h, QHCA_FLT_CORRUPT_ICRC)) {
        qhca_rx_drop(e, &rx, QHCA_STAT_ROCE_ICRC_ERRORS);
        return;
    }
    if (qhca_fault_has(&h, QHCA_FLT_CORRUPT_PAYLOAD) &&
        !spoil_in(e, &h, &rx)) {
        return; /* GCOVR_EXCL_LINE: only the payload differs, it parses again */
    }
    if (!qhca_fault_holds_back(e, &h, &what, rx.eth, rx.frame_len)) {
        qhca_rx_deliver(e, &rx);
    }
    qhca_fault_behind(e, &h, &what, rx.eth, rx.frame_len, before);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault injection at packets.  A fault acts as if on the wire: the sender has
 * counted the packet already, the receiver has not seen it yet.
 */
#include "observe/fault_state.h"

/* ---- held packets ---- */

static void fault_keep(struct qhca *e, struct qhca_fault_frame *what,
                       const uint8_t *data, uint32_t len)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_frame *fr;

    if (fs->frames == QHCA_FAULT_FRAMES || len > sizeof(fr->data)) {
        fs->lost++;             /* as in a switch that is out of memory */
        return;
    }
    fr = fs->frame;
    while (fr->used) {
        fr++;
    }
    what->used = true;
    what->seq = fs->seq++;
    what->len = len;
    memcpy(fr, what, offsetof(struct qhca_fault_frame, data));
    memcpy(fr->data, data, len);
    fs->frames++;
}

/* The first packet that is due, or NULL. */
static struct qhca_fault_frame *fault_first_due(struct qhca_faults *fs)
{
    struct qhca_fault_frame *fr, *best = NULL;
    unsigned i, seen = 0;

    for (i = 0; i < QHCA_FAULT_FRAMES && seen < fs->frames; i++) {
        fr = &fs->frame[i];
        if (!fr->used) {
            continue;
        }
        seen++;
        if (!fr->deadline && (!best || fr->seq < best->seq)) {
            best = fr;
        }
    }
    return best;
}

/* Send to the wire and to ourselves; false: not now. */
static bool fault_send(struct qhca *e, struct qhca_fault_frame *fr)
{
    uint8_t *slot;

    if (fr->wire) {
        if (!qhca_tx(e, fr->data, fr->len)) {
            return false;
        }
        fr->wire = false;
    }
    if (fr->loop) {
        slot = qhca_loop_slot(e);
        if (!slot) {
            qhca_kick(e);
            return false;
        }
        memcpy(slot, fr->data, fr->len);
        qhca_loop_commit(e, fr->len);
    }
    return true;
}

static void fault_deliver(struct qhca *e, const uint8_t *frame, uint32_t len,
                          bool looping)
{
    bool was = e->xd->looping;
    struct qhca_rx rx;

    e->xd->looping = looping;
    /* The address may have been removed in the meantime. */
    if (qhca_parse(e, frame, len, &rx) == QHCA_PARSE_OK) {
        qhca_rx_deliver(e, &rx);
    }
    e->xd->looping = was;
}

void qhca_fault_flush(struct qhca *e)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_frame *fr;

    if (fs->flushing || !fs->frames) {
        return;
    }
    fs->flushing = true;
    while (qhca_active(e) && (fr = fault_first_due(fs)) != NULL) {
        if (fr->in) {
            /* Keep the slot until done: delivery may hold more packets. */
            fault_deliver(e, fr->data, fr->len, fr->looping);
        } else if (!fault_send(e, fr)) {
            break;
        }
        fr->used = false;
        fs->frames--;
    }
    fs->flushing = false;
    if (!fs->frames) {
        qhca_fault_sites(e);
    }
}

/* A packet of the QP has passed: update those it had to overtake. */
static void fault_passed(struct qhca *e, uint32_t qpn, bool in, uint64_t before)
{
    struct qhca_faults *fs = e->faults;
    unsigned i, seen = 0;

    for (i = 0; i < QHCA_FAULT_FRAMES && seen < fs->frames; i++) {
        struct qhca_fault_frame *fr = &fs->frame[i];

        if (!fr->used) {
            continue;
        }
        seen++;
        if (fr->after && fr->in == in && fr->qpn == qpn &&
            fr->seq < before && !--fr->after) {
            fr->deadline = 0;
        }
    }
}

void qhca_fault_release(struct qhca *e, uint32_t rule)
{
    struct qhca_faults *fs = e->faults;
    unsigned i, seen = 0;

    for (i = 0; i < QHCA_FAULT_FRAMES && seen < fs->frames; i++) {
        struct qhca_fault_frame *fr = &fs->frame[i];

        seen += fr->used;
        if (fr->used && (!rule || fr->rule == rule)) {
            fr->deadline = 0;
            fr->after = 0;
        }
    }
}

void qhca_fault_drop_frames(struct qhca *e)
{
    struct qhca_faults *fs = e->faults;
    unsigned i;

    for (i = 0; i < QHCA_FAULT_FRAMES && fs->frames; i++) {
        fs->frames -= fs->frame[i].used;
        fs->frame[i].used = false;
    }
    qhca_fault_sites(e);
}

uint64_t qhca_fault_frames_deadline(const struct qhca *e)
{
    const struct qhca_faults *fs = e->faults;
    uint64_t min = UINT64_MAX;
    unsigned i, seen = 0;

    for (i = 0; i < QHCA_FAULT_FRAMES && seen < fs->frames; i++) {
        const struct qhca_fault_frame *fr = &fs->frame[i];

        seen += fr->used;
        /* A packet that is due waits for the wire, not for a timer. */
        if (fr->used && fr->deadline && fr->deadline < min) {
            min = fr->deadline;
        }
    }
    return min;
}

void qhca_fault_frames_due(struct qhca *e, uint64_t now)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_frame *fr, *best;
    unsigned i;

    /* In order of deadline: due packets go out by seq. */
    do {
        best = NULL;
        for (i = 0; i < QHCA_FAULT_FRAMES && fs->frames; i++) {
            fr = &fs->frame[i];
            if (fr->used && fr->deadline && fr->deadline <= now &&
                (!best || fr->deadline < best->deadline ||
                 (fr->deadline == best->deadline && fr->seq < best->seq))) {
                best = fr;
            }
        }
        if (best) {
            best->deadline = 0;
            best->after = 0;
            best->seq = fs->seq++;
        }
    } while (best);
}

/* Is a packet of the same QP and direction already held for reordering? */
static bool fault_reordering(const struct qhca_faults *fs,
                             const struct qhca_fault_frame *what)
{
    unsigned i, seen = 0;

    for (i = 0; i < QHCA_FAULT_FRAMES && seen < fs->frames; i++) {
        const struct qhca_fault_frame *fr = &fs->frame[i];

        seen += fr->used;
        if (fr->used && fr->after && fr->in == what->in &&
            fr->qpn == what->qpn) {
            return true;
        }
    }
    return false;
}

/* Hold back a packet if the faults @h delay or reorder it. */
static bool fault_holds_back(struct qhca *e, const struct qhca_fault_hits *h,
                             struct qhca_fault_frame *what, const uint8_t *data,
                             uint32_t len)
{
    bool late = qhca_fault_has(h, QHCA_FLT_DELAY);
    bool after = qhca_fault_has(h, QHCA_FLT_REORDER);
    uint64_t ns = late ? h->ns : h->hold_ns;

    if (!late && (!after || fault_reordering(e->faults, what))) {
        return false;
    }
    what->rule = h->rule[late ? QHCA_FLT_DELAY : QHCA_FLT_REORDER];
    what->after = late ? 0 : h->after;
    what->deadline = ns ? qhca_now(e) + ns : UINT64_MAX;
    fault_keep(e, what, data, len);
    return true;
}

/* The extra copies, which follow at once. */
static void fault_copies(struct qhca *e, const struct qhca_fault_hits *h,
                         struct qhca_fault_frame *what, const uint8_t *data,
                         uint32_t len)
{
    uint32_t i;

    for (i = 0; i < h->copies; i++) {
        what->rule = h->rule[QHCA_FLT_DUPLICATE];
        what->after = 0;
        what->deadline = 0;
        fault_keep(e, what, data, len);
    }
}

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
    struct qhca_faults *fs = e->faults;
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
    uint64_t before = fs->seq;

    fault_relative(e, &s, info.flags & QHCA_OPF_RESP);
    qhca_fault_ask(e, &s, &h);
    if (!qhca_active(e) || fault_dropped(&h)) {
        return;
    }
    spoil_out(f, &h, ext, payload, len);
    if (!fault_holds_back(e, &h, &what, f->data, len)) {
        /* Queue it behind packets that are due, or if the wire is busy. */
        if (f->wire && (fault_first_due(fs) || !qhca_tx(e, f->data, len))) {
            what.loop = false;
            what.deadline = 0;
            fault_keep(e, &what, f->data, len);
            what.loop = f->loop;
        }
        fault_copies(e, &h, &what, f->data, len);
        if (f->loop) {
            qhca_loop_commit(e, len);
        }
    } else {
        fault_copies(e, &h, &what, f->data, len);
    }
    fault_passed(e, num, false, before);
    qhca_fault_flush(e);
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
    struct qhca_faults *fs = e->faults;
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
    uint64_t before = fs->seq;

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
    if (!fault_holds_back(e, &h, &what, rx.eth, rx.frame_len)) {
        qhca_rx_deliver(e, &rx);
    }
    fault_copies(e, &h, &what, rx.eth, rx.frame_len);
    fault_passed(e, what.qpn, true, before);
    qhca_fault_flush(e);
}

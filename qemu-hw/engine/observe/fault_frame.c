/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault injection at frames of the Ethernet function: what its queues and raw
 * packet QPs send, and what arrives and is neither RoCE nor flow control.
 * Frames are told apart by EtherType and direction, since nothing else of them
 * is the same in each run.
 */
#include "observe/fault_state.h"

#define KEY     (UINT32_C(1) << 31)     /* no QPN is that large */

static const uint8_t *frame_copy(struct qhca *e, const uint8_t *frame,
                                 size_t len)
{
    return memcpy(e->faults->spoilt, frame, len);
}

/*
 * Change one bit behind the EtherType of the copy, with the headers @h.  There
 * is no FCS to reveal that: only the checksums of IP, TCP and UDP do.
 */
static void frame_spoil(struct qhca *e, const struct qhca_headers *h,
                        uint64_t draw)
{
    uint8_t *data = e->faults->spoilt;

    if (h->l3_len) {
        data[h->l3 - data + (ptrdiff_t)(draw % UINT32_MAX % h->l3_len)] ^=
            1u << (draw >> 61);
    }
}

void qhca_fault_frame_tx(struct qhca *e, const uint8_t *frame, size_t len,
                         bool own, bool group)
{
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_FRAME, .direction = QHCA_FLT_OUT,
    };
    struct qhca_fault_frame what = {
        .ethernet = true, .wire = !own, .loop = own || group, .group = group,
    };
    struct qhca_headers headers;
    struct qhca_fault_hits h;

    qhca_headers_parse(frame, len, &headers);
    s.number = headers.ethertype;
    what.qpn = KEY | s.number;
    qhca_fault_ask(e, &s, &h);
    if (!qhca_active(e) || qhca_fault_has(&h, QHCA_FLT_DROP)) {
        return;
    }
    if (qhca_fault_has(&h, QHCA_FLT_CORRUPT)) {
        frame = frame_copy(e, frame, len);
        qhca_headers_parse(frame, len, &headers);
        frame_spoil(e, &headers, h.draw);
    }
    qhca_fault_send(e, &h, &what, frame, (uint32_t)len);
}

void qhca_fault_frame_rx(struct qhca *e, struct qhca_eth_frame *f)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_FRAME, .direction = QHCA_FLT_IN,
        .number = f->h.ethertype,
    };
    struct qhca_fault_frame what = {
        .ethernet = true, .qpn = KEY | s.number, .in = true,
    };
    uint32_t n = (uint32_t)f->len;
    struct qhca_fault_hits h;
    uint64_t before = fs->seq;
    bool spoil;

    qhca_fault_ask(e, &s, &h);
    if (!qhca_active(e) || !e->link || qhca_fault_has(&h, QHCA_FLT_DROP)) {
        return;                 /* as if it had never arrived */
    }
    /* Merging, which may follow, cuts other packets in the same buffer. */
    spoil = qhca_fault_has(&h, QHCA_FLT_CORRUPT);
    if (spoil || f->data == e->eth->cut) {
        qhca_eth_frame_parse(e, f, frame_copy(e, f->data, n), n);
    }
    if (spoil) {
        frame_spoil(e, &f->h, h.draw);
        qhca_eth_frame_parse(e, f, fs->spoilt, n);
    }
    if (!qhca_fault_holds_back(e, &h, &what, f->data, n)) {
        qhca_eth_arrived(e, f);
    }
    qhca_fault_behind(e, &h, &what, f->data, n, before);
}

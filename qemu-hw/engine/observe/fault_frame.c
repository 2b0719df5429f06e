/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault injection at frames of the Ethernet function: what its queues and raw
 * packet QPs send, and what arrives and is neither RoCE nor flow control.
 * Frames are told apart by EtherType and direction, since nothing else of them
 * is the same in each run.
 */
#include "observe/fault_state.h"

#define KEY     (UINT32_C(1) << 31)     /* no QPN is that large */

static uint32_t frame_type(const uint8_t *frame, size_t len)
{
    struct qhca_headers h;

    qhca_headers_parse(frame, len, &h);
    return h.ethertype;
}

/*
 * Change one bit behind the addresses and the type.  Not even a wrong FCS would
 * reveal that, as there is none here: only the checksums of IP, TCP and UDP.
 */
static const uint8_t *frame_spoil(struct qhca *e, const uint8_t *frame,
                                  size_t len, uint64_t draw)
{
    uint8_t *data = e->faults->spoilt;

    memcpy(data, frame, len);
    if (len > QHCA_ETH_HLEN) {
        data[QHCA_ETH_HLEN + draw % UINT32_MAX % (len - QHCA_ETH_HLEN)] ^=
            1u << (draw >> 61);
    }
    return data;
}

void qhca_fault_frame_loop(struct qhca *e, const uint8_t *frame, size_t len,
                           bool group)
{
    if (group) {
        qhca_raw_loop_group(e, frame, len);
    } else {
        qhca_eth_loop(e, frame, len);
    }
}

void qhca_fault_frame_tx(struct qhca *e, const uint8_t *frame, size_t len,
                         bool own, bool group)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_FRAME, .direction = QHCA_FLT_OUT,
        .number = frame_type(frame, len),
    };
    struct qhca_fault_frame what = {
        .ethernet = true, .qpn = KEY | s.number, .wire = !own,
        .loop = own || group, .group = group,
    };
    bool loop = what.loop;
    uint32_t n = (uint32_t)len;
    struct qhca_fault_hits h;
    uint64_t before = fs->seq;

    qhca_fault_ask(e, &s, &h);
    if (!qhca_active(e) || qhca_fault_has(&h, QHCA_FLT_DROP)) {
        return;
    }
    if (qhca_fault_has(&h, QHCA_FLT_CORRUPT)) {
        frame = frame_spoil(e, frame, len, h.draw);
    }
    if (!qhca_fault_holds_back(e, &h, &what, frame, n)) {
        /* Queue it behind frames that are due, or if the wire is busy. */
        if (!own && (qhca_fault_first_due(fs) || !qhca_tx(e, frame, len))) {
            what.loop = false;
            what.deadline = 0;
            qhca_fault_keep(e, &what, frame, n);
            what.loop = loop;
        }
        qhca_fault_copies(e, &h, &what, frame, n);
        if (loop) {
            qhca_fault_frame_loop(e, frame, len, group);
        }
    } else {
        qhca_fault_copies(e, &h, &what, frame, n);
    }
    qhca_fault_passed(e, what.qpn, false, before);
    qhca_fault_flush(e);
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

    qhca_fault_ask(e, &s, &h);
    if (!qhca_active(e) || !e->link || qhca_fault_has(&h, QHCA_FLT_DROP)) {
        return;                 /* as if it had never arrived */
    }
    if (qhca_fault_has(&h, QHCA_FLT_CORRUPT)) {
        qhca_eth_frame_parse(e, f, frame_spoil(e, f->data, n, h.draw), n);
    }
    if (!qhca_fault_holds_back(e, &h, &what, f->data, n)) {
        qhca_eth_arrived(e, f);
    }
    qhca_fault_copies(e, &h, &what, f->data, n);
    qhca_fault_passed(e, what.qpn, true, before);
    qhca_fault_flush(e);
}

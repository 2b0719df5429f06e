/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cutting super-frames for receivers that do not accept them. */
#include "ethernet/flow.h"

bool qhca_super_intact(struct qhca *e, const struct qhca_eth_frame *f)
{
    qhca_cost_bytes(e, f->len);
    return qhca_large_sum_ok(&f->super.l, f->data, f->len);
}

uint32_t qhca_super_deliver(struct qhca *e, const struct qhca_eth_frame *f,
                            qhca_eth_deliver *deliver, void *to,
                            const struct qhca_steer *s)
{
    const struct qhca_super *super = &f->super;
    uint8_t *frame = e->eth->cut;
    struct qhca_large_part p = {
        .total = super->len - super->l.hdr_len,
    };
    struct qhca_eth_frame piece;

    for (; p.from < p.total && !qhca_call_exhausted(e) && qhca_active(e);
         p.from += p.len, p.number++) {
        p.len = p.total - p.from < super->size ? p.total - p.from :
                                                 super->size;
        memcpy(frame, f->data, super->l.hdr_len);
        memcpy(frame + super->l.hdr_len,
               f->data + super->l.hdr_len + p.from, p.len);
        qhca_large_finish(&super->l, frame, &p);
        qhca_cost_bytes(e, super->l.hdr_len + p.len);
        qhca_eth_frame_parse(e, &piece, frame, super->l.hdr_len + p.len);
        piece.came = f->came;
        deliver(e, to, &piece, s);
    }
    return super->segs - p.number;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames an adapter sends to itself.  They are built in a bounded ring and
 * received by the same code as frames from the wire.
 */
#include "transport/rc.h"

/* Slots kept free for the last responses of QPs: see last_acks.c. */
#define LAST_SLOTS      16

uint8_t *qhca_loop_slot(struct qhca *e)
{
    struct qhca_xport_dev *xd = e->xd;
    uint32_t slots = xd->parting ? QHCA_LOOP_SLOTS :
                                   QHCA_LOOP_SLOTS - LAST_SLOTS;

    if (xd->loop_head - xd->loop_tail >= slots) {
        xd->loop_full = true;
        return NULL;
    }
    return xd->loop[xd->loop_head % QHCA_LOOP_SLOTS].data;
}

void qhca_loop_commit(struct qhca *e, uint32_t len)
{
    struct qhca_xport_dev *xd = e->xd;

    xd->loop[xd->loop_head % QHCA_LOOP_SLOTS].len = len;
    xd->loop_head++;
    qhca_kick(e);
}

bool qhca_loopback_pending(struct qhca *e)
{
    return e->xd->loop_head != e->xd->loop_tail;
}

unsigned qhca_loopback_run(struct qhca *e, unsigned budget)
{
    struct qhca_xport_dev *xd = e->xd;
    struct qhca_headers h;
    unsigned done = 0;

    while (done < budget && xd->loop_head != xd->loop_tail &&
           !qhca_call_spent(e) && qhca_active(e)) {
        struct qhca_loop_frame *f =
            &xd->loop[xd->loop_tail % QHCA_LOOP_SLOTS];

        /* If the GID was cleared meanwhile, the frame is lost. */
        /* Multicast was captured when it was sent on the wire. */
        if (e->sniff && !(f->data[0] & 1)) {
            e->sniff(e, f->data, f->len);
            if (!qhca_active(e)) {
                break;
            }
        }
        xd->looping = true;
        qhca_headers_parse(f->data, f->len, &h);
        qhca_roce_rx(e, f->data, f->len, &h);
        xd->looping = false;
        xd->loop_tail++;
        done++;
    }
    return done;
}

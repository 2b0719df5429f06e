/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deadlines of event moderation: a binary heap, so that no search is needed
 * however many CQs moderate.  e->q->mod_heap has room for every possible CQ.
 */
#include "queues/queues.h"

static void mod_put(struct qhca *e, uint32_t pos, struct qhca_cq *cq)
{
    e->q->mod_heap[pos] = cq;
    cq->mod_pos = pos;
}

static void sift_up(struct qhca *e, uint32_t pos, struct qhca_cq *cq)
{
    uint32_t up;

    while (pos) {
        up = (pos - 1) / 2;
        if (e->q->mod_heap[up]->mod_deadline <= cq->mod_deadline) {
            break;
        }
        mod_put(e, pos, e->q->mod_heap[up]);
        pos = up;
    }
    mod_put(e, pos, cq);
}

static void sift_down(struct qhca *e, uint32_t pos, struct qhca_cq *cq)
{
    struct qhca_cq **heap = e->q->mod_heap;
    uint32_t down;

    while ((down = 2 * pos + 1) < e->q->mod_used) {
        if (down + 1 < e->q->mod_used &&
            heap[down + 1]->mod_deadline < heap[down]->mod_deadline) {
            down++;
        }
        if (cq->mod_deadline <= heap[down]->mod_deadline) {
            break;
        }
        mod_put(e, pos, heap[down]);
        pos = down;
    }
    mod_put(e, pos, cq);
}

void qhca_mod_add(struct qhca *e, struct qhca_cq *cq, uint64_t deadline)
{
    cq->mod_deadline = deadline;
    sift_up(e, e->q->mod_used++, cq);
}

void qhca_mod_del(struct qhca *e, struct qhca_cq *cq)
{
    uint32_t pos = cq->mod_pos;
    struct qhca_cq *last;

    if (pos == QHCA_MOD_NONE) {
        return;
    }
    cq->mod_pos = QHCA_MOD_NONE;
    last = e->q->mod_heap[--e->q->mod_used];
    if (last == cq) {
        return;
    }
    if (last->mod_deadline < cq->mod_deadline) {
        sift_up(e, pos, last);
    } else {
        sift_down(e, pos, last);
    }
}

uint64_t qhca_cq_deadline(struct qhca *e)
{
    return e->q->mod_used ? e->q->mod_heap[0]->mod_deadline : UINT64_MAX;
}

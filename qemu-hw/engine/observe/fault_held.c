/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets and frames that faults hold back or repeat: kept until they are due,
 * then sent or delivered as if they had come from the wire just now.
 */
#include <stdlib.h>

#include "observe/fault_state.h"
#include "adapter/adapter.h"

/* Hold a copy of a packet, described by @what; without room it is lost. */
static void fault_keep(struct qhca *e, const struct qhca_fault_frame *what,
                       const uint8_t *data, uint32_t len)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_frame *fr;
    uint8_t *copy = fs->frames < QHCA_FAULT_FRAMES ? malloc(len) : NULL;

    if (!copy) {
        fs->lost++;             /* as in a switch that is out of memory */
        return;
    }
    fr = fs->frame;
    while (fr->used) {
        fr++;
    }
    memcpy(copy, data, len);
    *fr = *what;
    fr->used = true;
    fr->seq = fs->seq++;
    fr->len = len;
    fr->data = copy;
    fs->frames++;
}

/* The first due packet of those directions (QHCA_FLT_IN, _OUT), or NULL. */
static struct qhca_fault_frame *fault_first_due(struct qhca_faults *fs,
                                                unsigned directions)
{
    struct qhca_fault_frame *fr, *best = NULL;
    unsigned i, seen = 0;

    for (i = 0; i < QHCA_FAULT_FRAMES && seen < fs->frames; i++) {
        fr = &fs->frame[i];
        if (!fr->used) {
            continue;
        }
        seen++;
        if (!fr->deadline &&
            directions & (fr->in ? QHCA_FLT_IN : QHCA_FLT_OUT) &&
            (!best || fr->seq < best->seq)) {
            best = fr;
        }
    }
    return best;
}

/* Receive a frame that we have sent, to a group or to ourselves. */
static void fault_frame_loop(struct qhca *e, const struct qhca_fault_frame *fr,
                             const uint8_t *data, uint32_t len)
{
    if (fr->group) {
        qhca_raw_loop_group(e, data, len);
    } else {
        qhca_eth_loop(e, data, len);
    }
}

/* Send @fr to the wire and to ourselves; false: not now. */
static bool fault_let_out(struct qhca *e, struct qhca_fault_frame *fr)
{
    uint8_t *slot;

    if (fr->wire) {
        if (!qhca_tx(e, fr->data, fr->len)) {
            return false;
        }
        fr->wire = false;
    }
    if (fr->loop && fr->ethernet) {
        fault_frame_loop(e, fr, fr->data, fr->len);
    } else if (fr->loop) {
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

static void fault_deliver(struct qhca *e, const struct qhca_fault_frame *fr)
{
    bool was = e->xd->looping;
    struct qhca_eth_frame f;
    struct qhca_rx rx;

    if (fr->ethernet) {
        qhca_eth_frame_parse(e, &f, fr->data, fr->len);
        qhca_eth_arrived(e, &f);
        return;
    }
    e->xd->looping = fr->looping;
    /* The address may have been removed in the meantime. */
    if (qhca_parse(e, fr->data, fr->len, &rx) == QHCA_PARSE_OK) {
        qhca_rx_deliver(e, &rx);
    }
    e->xd->looping = was;
}

/*
 * Send or deliver @fr; false: not now.  Its slot stays in use meanwhile, since
 * more packets may be held by it; a reset empties it only after the call.
 */
static bool fault_let_pass(struct qhca *e, struct qhca_fault_frame *fr)
{
    if (fr->in) {
        fault_deliver(e, fr);
    } else if (!fault_let_out(e, fr)) {
        return false;
    }
    free(fr->data);
    fr->data = NULL;
    fr->used = false;
    e->faults->frames--;
    return true;
}

/* Send or deliver what is due of these directions. */
static void fault_flush(struct qhca *e, unsigned directions)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_frame *fr;

    if (fs->flushing || !fs->frames) {
        return;
    }
    fs->flushing = true;
    while (qhca_active(e) && (fr = fault_first_due(fs, directions)) != NULL) {
        if (qhca_call_spent(e)) {
            qhca_kick(e);       /* the next run goes on */
            break;
        }
        if (!fault_let_pass(e, fr)) {
            directions &= ~QHCA_FLT_OUT;    /* the wire is busy */
        }
    }
    fs->flushing = false;
    if (!fs->frames) {
        qhca_fault_sites(e);
    }
}

void qhca_fault_flush(struct qhca *e)
{
    fault_flush(e, QHCA_FLT_IN | QHCA_FLT_OUT);
}

/* @what has passed: update those held @before that it had to overtake. */
static void fault_passed(struct qhca *e, const struct qhca_fault_frame *what,
                         uint64_t before)
{
    struct qhca_faults *fs = e->faults;
    unsigned i, seen = 0;

    for (i = 0; i < QHCA_FAULT_FRAMES && seen < fs->frames; i++) {
        struct qhca_fault_frame *fr = &fs->frame[i];

        if (!fr->used) {
            continue;
        }
        seen++;
        if (fr->after && fr->in == what->in && fr->qpn == what->qpn &&
            fr->seq < before && !--fr->after) {
            fr->deadline = 0;
            fr->seq = fs->seq++;    /* behind what overtook it */
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
        free(fs->frame[i].data);
        fs->frame[i].data = NULL;
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

bool qhca_fault_holds_back(struct qhca *e, const struct qhca_fault_hits *h,
                           struct qhca_fault_frame *what, const uint8_t *data,
                           uint32_t len)
{
    struct qhca_faults *fs = e->faults;
    bool late = qhca_fault_has(h, QHCA_FLT_DELAY);
    bool after = qhca_fault_has(h, QHCA_FLT_REORDER);
    uint64_t ns = late ? h->ns : h->hold_ns;

    if (!late && (!after || fault_reordering(fs, what))) {
        /* Earlier ones may be due, if a call could not deliver them all. */
        if (!what->in || fs->flushing || !fault_first_due(fs, QHCA_FLT_IN)) {
            return false;
        }
        fault_keep(e, what, data, len);
        return true;
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

void qhca_fault_behind(struct qhca *e, const struct qhca_fault_hits *h,
                       struct qhca_fault_frame *what, const uint8_t *data,
                       uint32_t len, uint64_t before)
{
    fault_copies(e, h, what, data, len);
    fault_passed(e, what, before);
    qhca_fault_flush(e);
}

void qhca_fault_send(struct qhca *e, const struct qhca_fault_hits *h,
                     struct qhca_fault_frame *what, const uint8_t *data,
                     uint32_t len)
{
    struct qhca_faults *fs = e->faults;
    uint64_t before = fs->seq;
    bool held = qhca_fault_holds_back(e, h, what, data, len);
    bool loop = what->loop;

    if (!held && what->wire &&
        (fault_first_due(fs, QHCA_FLT_OUT) || !qhca_tx(e, data, len))) {
        /* behind packets that are due, or until the wire is free */
        what->loop = false;
        fault_keep(e, what, data, len);
        what->loop = loop;
    }
    fault_copies(e, h, what, data, len);
    if (!held && loop && what->ethernet) {
        fault_frame_loop(e, what, data, len);
    } else if (!held && loop) {
        qhca_loop_commit(e, len);
    }
    fault_passed(e, what, before);
    /*
     * None that was received: it could change the QP that is sending this one.
     * If any is due, the run that will deliver it is requested already.
     */
    fault_flush(e, QHCA_FLT_OUT);
}

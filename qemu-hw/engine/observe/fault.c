/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault injection: the rules, matching, and all places except packets. */
#include <stdlib.h>

#include "observe/fault_state.h"
#include "observe/breakpoint_internal.h"
#include "observe/decode.h"

#define SEED            1
#define NS_MAX          (3600 * UINT64_C(1000000000))
#define PACKETS_MAX     256
#define STOPPED         "the adapter is stopped in the middle of its work: " \
                        "resume it first"

/* In the order of their numbers. */
const struct qhca_name qhca_names_fault_action[] = {
    { QHCA_FLT_DROP, "drop" },
    { QHCA_FLT_DELAY, "delay" },
    { QHCA_FLT_DUPLICATE, "duplicate" },
    { QHCA_FLT_REORDER, "reorder" },
    { QHCA_FLT_CORRUPT, "corrupt" },
    { QHCA_FLT_CORRUPT_ICRC, "corrupt-icrc" },
    { QHCA_FLT_CORRUPT_PAYLOAD, "corrupt-payload" },
    { QHCA_FLT_NO_ACK, "no-ack" },
    { QHCA_FLT_RNR, "rnr" },
    { QHCA_FLT_DMA_ERROR, "dma-error" },
    { QHCA_FLT_TABLE_ERROR, "table-error" },
    { QHCA_FLT_CQ_OVERFLOW, "cq-overflow" },
    { QHCA_FLT_STALL_EVENTS, "stall-events" },
    { QHCA_FLT_HOLD_INTERRUPT, "hold-interrupt" },
    { QHCA_FLT_LOSE_INTERRUPT, "lose-interrupt" },
    { QHCA_FLT_FATAL, "fatal" },
    { QHCA_FLT_RESET, "reset" },
    { QHCA_FLT_LINK_DOWN, "link-down" },
    { QHCA_FLT_GARBAGE, "garbage" },
    { 0, NULL }
};

const char *qhca_fault_action_name(unsigned action)
{
    return action < QHCA_FLT_ACTIONS ?
           qhca_names_fault_action[action].name : NULL;
}

static bool fault_anywhere(uint8_t action)
{
    return action == QHCA_FLT_FATAL || action == QHCA_FLT_RESET ||
           action == QHCA_FLT_LINK_DOWN;
}

/* Where a rule with this action is evaluated by default. */
static uint8_t default_at(uint8_t action)
{
    switch (action) {
    case QHCA_FLT_RNR:
        return QHCA_FLT_AT_RECV;
    case QHCA_FLT_DMA_ERROR:
    case QHCA_FLT_GARBAGE:
        return QHCA_FLT_AT_DMA;
    case QHCA_FLT_TABLE_ERROR:
        return QHCA_FLT_AT_TABLE;
    case QHCA_FLT_CQ_OVERFLOW:
        return QHCA_FLT_AT_CQE;
    case QHCA_FLT_STALL_EVENTS:
        return QHCA_FLT_AT_EVENT;
    case QHCA_FLT_HOLD_INTERRUPT:
    case QHCA_FLT_LOSE_INTERRUPT:
        return QHCA_FLT_AT_INTERRUPT;
    default:
        return fault_anywhere(action) ? QHCA_FLT_AT_NOW : QHCA_FLT_AT_PACKET;
    }
}

#define AT(where)       (1u << QHCA_FLT_AT_##where)

/* The places at which a rule with this action can be evaluated. */
static uint32_t places_of(uint8_t action)
{
    switch (action) {
    case QHCA_FLT_DROP:
    case QHCA_FLT_DUPLICATE:
    case QHCA_FLT_REORDER:
    case QHCA_FLT_CORRUPT:
        return AT(PACKET) | AT(FRAME);
    case QHCA_FLT_DELAY:
        return AT(PACKET) | AT(FRAME) | AT(COMMAND);
    case QHCA_FLT_GARBAGE:
        return AT(DMA) | AT(REGISTER);
    default:
        return fault_anywhere(action) ? ~AT(REGISTER) :
                                        1u << default_at(action);
    }
}

/* What to say if such a rule is to be evaluated elsewhere. */
static const char *wrong_place(uint8_t action)
{
    uint32_t places = places_of(action);

    if (fault_anywhere(action)) {
        return "'at' can be register for garbage only";
    }
    if (places & AT(COMMAND)) {
        return "'at' can only be packet, frame or command for this action";
    }
    if (places & AT(FRAME)) {
        return "'at' can only be packet or frame for this action";
    }
    if (places & AT(REGISTER)) {
        return "'at' must be left out or register: garbage is written by "
               "DMA or read from a register";
    }
    return "'at' must be left out: this action happens at its own place "
           "only; fatal, reset and link-down can happen anywhere";
}

/* ---- does a rule hit? ---- */

/* Mix the bits of @x well (the finalizer of splitmix64). */
static uint64_t fault_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool psn_fits(const struct qhca_fault_rule *f,
                     const struct qhca_fault_site *s)
{
    uint32_t psn = f->psn_relative ? s->rel : s->psn;

    return (!f->psn_relative || s->has_rel) &&
           qhca_psn_dist(psn, f->psn) <= qhca_psn_dist(f->psn_last, f->psn);
}

static bool fault_matches(const struct qhca_fault_rule *f,
                          const struct qhca_fault_site *s)
{
    uint32_t has = f->fields;

    return f->at == s->at &&
           (!s->spared || (has & (QHCA_FLT_NUMBER | QHCA_FLT_KIND |
                                  QHCA_FLT_ADDR))) &&
           (!(has & QHCA_FLT_NUMBER) || f->number == s->number) &&
           (!(has & QHCA_FLT_PEER) || f->peer == s->peer) &&
           (!(has & QHCA_FLT_DIRECTION) || (f->direction & s->direction)) &&
           (!(has & QHCA_FLT_QP_TYPE) ||
            (s->has_qp && f->qp_type == s->qp_type)) &&
           (!(has & QHCA_FLT_OPCODE) ||
            (f->opcode[s->opcode / 32] >> s->opcode % 32 & 1)) &&
           (!(has & QHCA_FLT_SYNDROME) ||
            ((qhca_op_info(s->opcode).flags & QHCA_OPF_AETH) &&
             f->syndrome == s->syndrome)) &&
           (!(has & QHCA_FLT_PSN) || psn_fits(f, s)) &&
           (!(has & QHCA_FLT_KIND) || f->kind == s->kind) &&
           (!(has & QHCA_FLT_ACCESS) || (f->access & s->access)) &&
           (!(has & QHCA_FLT_ADDR) ||
            (s->addr <= f->addr_last && s->addr + (s->len - 1) >= f->addr)) &&
           (!(has & QHCA_FLT_INDEX) ||
            (s->index >= f->index && s->index <= f->index_last)) &&
           (f->action != QHCA_FLT_CORRUPT_PAYLOAD || s->has_payload) &&
           (f->action != QHCA_FLT_GARBAGE || s->can_be_garbage);
}

/*
 * The count of rule @id for the object @key.  If the table is full, further
 * objects share one count: a guest may keep creating QPs.
 */
static struct qhca_fault_stream *stream_of(struct qhca_faults *fs,
                                           uint32_t id, uint64_t key)
{
    uint32_t mask = QHCA_FAULT_STREAMS - 1, slot, seen = 0, i;
    struct qhca_fault_stream *st;

    slot = (uint32_t)fault_mix(key ^ (uint64_t)id << 40) & mask;
    while (fs->stream[slot].rule) {
        st = &fs->stream[slot];
        if (st->rule == id && st->key == key) {
            return st;
        }
        slot = (slot + 1) & mask;
    }
    if (fs->streams >= QHCA_FAULT_STREAMS / 4 * 3) {
        if (key == UINT64_MAX) {
            /* One such count per rule, at most 64: there is room. */
            goto add;
        }
        return stream_of(fs, id, UINT64_MAX);
    }
add:
    for (i = 0; i < QHCA_FAULT_STREAMS; i++) {
        seen += fs->stream[i].rule == id;
    }
    st = &fs->stream[slot];
    *st = (struct qhca_fault_stream){
        .rule = id, .key = key, .ordinal = seen,
    };
    fs->streams++;
    return st;
}

/* Forget the counts of rule @id (0: all rules). */
static void streams_forget(struct qhca_faults *fs, uint32_t id)
{
    struct qhca_fault_stream *old;
    uint32_t i;

    if (!id || !fs->rules) {
        memset(fs->stream, 0, sizeof(fs->stream));
        fs->streams = 0;
        return;
    }
    /* Removing in place would break hash chains: insert the others anew. */
    old = malloc(sizeof(fs->stream));
    if (!old) {
        return;                 /* harmless leftovers: ids are not reused */
    }
    memcpy(old, fs->stream, sizeof(fs->stream));
    memset(fs->stream, 0, sizeof(fs->stream));
    fs->streams = 0;
    for (i = 0; i < QHCA_FAULT_STREAMS; i++) {
        if (old[i].rule && old[i].rule != id) {
            struct qhca_fault_stream *st = stream_of(fs, old[i].rule,
                                                     old[i].key);

            st->ordinal = old[i].ordinal;
            st->count = old[i].count;
        }
    }
    free(old);
}

/* Does this match of the rule hit?  *@draw gets a random number. */
static bool fault_chosen(struct qhca_faults *fs, struct qhca_fault_rule *f,
                         const struct qhca_fault_site *s, uint64_t *draw)
{
    struct qhca_fault_stream *st;
    uint64_t key = (uint64_t)(s->kind << 2 | s->direction) << 32 | s->number;
    uint64_t n;

    st = stream_of(fs, f->id, key);
    f->matches++;
    n = ++st->count;
    if ((f->fields & QHCA_FLT_COUNT) && f->hits >= f->count) {
        return false;
    }
    if (n <= f->skip) {
        return false;
    }
    n -= f->skip;
    if ((f->nth && n != f->nth) || (f->every && n % f->every)) {
        return false;
    }
    *draw = fault_mix(fault_mix(fault_mix(fs->seed ^ fault_mix(f->order)) ^
                                st->ordinal) ^ st->count);
    return !(f->fields & QHCA_FLT_CHANCE) ||
           (*draw >> 32) * QHCA_FAULT_PPM >> 32 < f->chance;
}

static void fault_trace_hit(struct qhca *e, const struct qhca_fault_rule *f,
                            const struct qhca_fault_site *s)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_FAULT, .num = s->number, .peer = s->peer,
        .psn = s->psn, .index = f->id, .a = f->action, .b = f->hits,
        .addr = s->at == QHCA_FLT_AT_PACKET ? s->opcode : s->addr,
        .text = qhca_fault_action_name(f->action),
    };

    qhca_trace_emit(e, &t);
}

static void pull_link(struct qhca *e, const struct qhca_fault_rule *f)
{
    struct qhca_faults *fs = e->faults;

    if (!fs->link_rule) {
        fs->link_wire = e->link;
    }
    fs->link_rule = f->id;
    fs->link_until = f->fields & QHCA_FLT_NS ? qhca_now(e) + f->ns :
                                               UINT64_MAX;
    if (e->link) {
        e->link = false;
        if (qhca_active(e)) {
            qhca_async_event(e, &e->q->port_ev, QHCA_EV_PORT, 0);
        }
    }
}

static void fault_hit(struct qhca *e, struct qhca_fault_rule *f,
                const struct qhca_fault_site *s, struct qhca_fault_hits *h,
                      uint64_t draw)
{
    f->hits++;
    if (qhca_tracing(e)) {
        fault_trace_hit(e, f, s);
    }
    if (!qhca_fault_has(h, f->action)) {
        h->actions |= 1u << f->action;
        h->rule[f->action] = f->id;
        h->draw ^= draw;
    }
    switch (f->action) {
    case QHCA_FLT_DELAY:
        h->ns = h->ns > f->ns ? h->ns : f->ns;
        break;
    case QHCA_FLT_DUPLICATE:
        h->copies += f->packets;
        break;
    case QHCA_FLT_REORDER:
        h->after = f->packets;
        h->hold_ns = f->ns;
        break;
    case QHCA_FLT_HOLD_INTERRUPT:
        h->hold_ns = f->ns;
        break;
    case QHCA_FLT_FATAL:
        qhca_fatal(e, QHCA_FATAL_INTERNAL);
        break;
    case QHCA_FLT_RESET:
        /* Stop all work now; the reset follows at the end of this call. */
        e->ready_flag = false;
        e->faults->reset_wanted = true;
        break;
    case QHCA_FLT_LINK_DOWN:
        pull_link(e, f);
        break;
    default:
        break;
    }
}

bool qhca_fault_ask(struct qhca *e, const struct qhca_fault_site *s,
                    struct qhca_fault_hits *h)
{
    struct qhca_faults *fs = e->faults;
    uint32_t hits[QHCA_FAULTS_MAX];
    uint64_t draw[QHCA_FAULTS_MAX];
    unsigned i, n = 0;

    memset(h, 0, sizeof(*h));
    /* Count all before acting: an action may lead here again. */
    for (i = 0; i < fs->rules; i++) {
        struct qhca_fault_rule *f = &fs->rule[i];

        if (fault_matches(f, s) && fault_chosen(fs, f, s, &draw[n])) {
            hits[n++] = i;
        }
    }
    for (i = 0; i < n; i++) {
        fault_hit(e, &fs->rule[hits[i]], s, h, draw[i]);
    }
    return n;
}

/* ---- all places except packets ---- */

static const struct qhca_qp *know_qp(struct qhca *e, struct qhca_fault_site *s,
                                     uint32_t qpn)
{
    const struct qhca_qp *qp = qhca_qp_get(e, qpn);

    if (qp) {
        s->has_qp = true;
        s->qp_type = qp->type;
    }
    return qp;
}

/* RDMA traffic; not the driver's commands and events, nor Ethernet. */
static bool fault_of_rdma(uint8_t kind)
{
    return kind != QHCA_DMA_COMMAND && kind != QHCA_DMA_EQE &&
           kind != QHCA_DMA_ETH;
}

/*
 * Spoil @len bytes: one of them or a word at random, or all by zeros, ones or
 * at random. What is nearly right gets further, so that is more likely.
 */
static void fault_garble(uint8_t *p, size_t len, uint64_t draw)
{
    static const uint8_t fill[] = { 0x00, 0xff };
    unsigned how = draw % 8;
    size_t i = 0, end = len;

    if (how < 3) {
        i = (draw >> 8) % len;
        end = i + 1;
    } else if (how < 5) {
        i = (draw >> 8) % len & ~(size_t)3;
        end = i + 4 < len ? i + 4 : len;
    } else if (how < 7) {
        memset(p, fill[how - 5], len);
        return;
    }
    for (; i < end; i++) {
        draw = fault_mix(draw);
        p[i] ^= 1 + draw % UINT8_MAX;   /* never what it was */
    }
}

bool qhca_fault_dma(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    size_t len, bool write, const void **data)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_DMA, .kind = kind, .number = num, .addr = addr,
        .len = len, .access = write ? QHCA_FLT_WRITE : QHCA_FLT_READ,
        .spared = !fault_of_rdma(kind),
        .can_be_garbage = data && len <= sizeof(fs->garbage),
    };
    struct qhca_fault_hits h;

    if (kind == QHCA_DMA_WQE || kind == QHCA_DMA_DATA) {
        know_qp(e, &s, num);
    }
    if (!len || !qhca_fault_ask(e, &s, &h)) {
        return false;
    }
    if (qhca_fault_has(&h, QHCA_FLT_GARBAGE)) {
        memcpy(fs->garbage, *data, len);
        fault_garble(fs->garbage, len, h.draw);
        *data = fs->garbage;
    }
    return qhca_fault_has(&h, QHCA_FLT_DMA_ERROR);
}

uint64_t qhca_fault_register(struct qhca *e, uint64_t off, unsigned size,
                             uint64_t val)
{
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_REGISTER, .number = (uint32_t)off,
        .can_be_garbage = true,
    };
    struct qhca_fault_hits h;
    uint64_t le = qhca_le64(val);

    if (qhca_fault_ask(e, &s, &h)) {
        fault_garble((uint8_t *)&le, size, h.draw);
    }
    return qhca_le64(le);
}

bool qhca_fault_table(struct qhca *e, const struct qhca_buf_table *m,
                      uint32_t num, uint64_t index)
{
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_TABLE, .kind = m->kind, .number = num,
        .index = index, .addr = m->addr, .spared = !fault_of_rdma(m->kind),
    };
    struct qhca_fault_hits h;

    if (m->kind == QHCA_DMA_WQE) {
        know_qp(e, &s, num);
    }
    return qhca_fault_ask(e, &s, &h) &&
           qhca_fault_has(&h, QHCA_FLT_TABLE_ERROR);
}

bool qhca_fault_recv(struct qhca *e, uint32_t num)
{
    struct qhca_fault_site s = { .at = QHCA_FLT_AT_RECV, .number = num };
    const struct qhca_qp *qp = know_qp(e, &s, num);
    struct qhca_fault_hits h;

    s.peer = qp ? qp->dest_qpn : 0;
    return qhca_fault_ask(e, &s, &h) && qhca_fault_has(&h, QHCA_FLT_RNR);
}

bool qhca_fault_cqe(struct qhca *e, const struct qhca_cq *cq,
                    const struct qhca_cqe *cqe)
{
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_CQE, .number = cq->cqn,
        .peer = qhca_le32(cqe->qpn),
    };
    struct qhca_fault_hits h;

    if (qhca_cqe_is_eth(cqe)) {
        s.spared = true;
    } else {
        know_qp(e, &s, s.peer);
    }
    return qhca_fault_ask(e, &s, &h) &&
           qhca_fault_has(&h, QHCA_FLT_CQ_OVERFLOW);
}

void qhca_fault_event(struct qhca *e, struct qhca_eq *eq, uint32_t obj)
{
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_EVENT, .number = eq->eqn, .peer = obj,
    };
    struct qhca_fault_hits h;

    if (qhca_fault_ask(e, &s, &h) && !eq->stalled) {
        eq->stalled = h.rule[QHCA_FLT_STALL_EVENTS];
    }
}

bool qhca_fault_command_waits(struct qhca *e)
{
    struct qhca_faults *fs = e->faults;

    return fs->command_asked && qhca_now(e) < fs->command_until;
}

bool qhca_fault_command(struct qhca *e, uint8_t opcode)
{
    struct qhca_faults *fs = e->faults;
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_COMMAND, .number = opcode,
    };
    struct qhca_fault_hits h;

    if (fs->command_asked) {
        fs->command_asked = false;      /* it was late enough */
        return false;
    }
    if (!qhca_fault_ask(e, &s, &h)) {
        return false;
    }
    if (qhca_fault_has(&h, QHCA_FLT_DELAY)) {
        fs->command_asked = true;
        fs->command_rule = h.rule[QHCA_FLT_DELAY];
        fs->command_until = qhca_now(e) + h.ns;
        return true;
    }
    return !qhca_active(e);
}

/* ---- interrupts ---- */

static void irq_hold(struct qhca *e, uint32_t v,
                     const struct qhca_fault_hits *h)
{
    struct qhca_faults *fs = e->faults;

    if (!(fs->irq[v / 64] >> v % 64 & 1)) {
        fs->irq[v / 64] |= UINT64_C(1) << v % 64;
        fs->irqs++;
    }
    fs->irq_rule[v] = h->rule[QHCA_FLT_HOLD_INTERRUPT];
    fs->irq_until[v] = h->hold_ns ? qhca_now(e) + h->hold_ns : UINT64_MAX;
}

/* Send the held interrupts of @rule (0: any) with deadlines up to @now. */
static void irqs_release(struct qhca *e, uint32_t rule, uint64_t now)
{
    struct qhca_faults *fs = e->faults;
    uint32_t v;

    for (v = 0; fs->irqs && v < e->cfg.num_vectors; v++) {
        if (!(fs->irq[v / 64] >> v % 64 & 1) ||
            (rule && fs->irq_rule[v] != rule) || fs->irq_until[v] > now) {
            continue;
        }
        fs->irq[v / 64] &= ~(UINT64_C(1) << v % 64);
        fs->irqs--;
        e->ops.msix(e->opaque, v);
    }
}

bool qhca_fault_irq(struct qhca *e, uint32_t vector)
{
    struct qhca_fault_site s = {
        .at = QHCA_FLT_AT_INTERRUPT, .number = vector,
    };
    struct qhca_fault_hits h;

    if (!qhca_fault_ask(e, &s, &h)) {
        return false;
    }
    if (qhca_fault_has(&h, QHCA_FLT_LOSE_INTERRUPT)) {
        return true;
    }
    if (qhca_fault_has(&h, QHCA_FLT_HOLD_INTERRUPT)) {
        irq_hold(e, vector, &h);
        return true;
    }
    return false;
}

/* ---- link, reset, time ---- */

static void fault_link_back(struct qhca *e)
{
    struct qhca_faults *fs = e->faults;

    fs->link_rule = 0;
    if (fs->link_wire && !e->link) {
        e->link = true;
        if (qhca_active(e)) {
            qhca_async_event(e, &e->q->port_ev, QHCA_EV_PORT, 0);
        }
    }
}

bool qhca_fault_set_link(struct qhca *e, bool up)
{
    e->faults->link_wire = up;
    return !e->faults->link_rule;
}

void qhca_fault_reset(struct qhca *e)
{
    struct qhca_faults *fs = e->faults;

    qhca_fault_drop_frames(e);
    memset(fs->irq, 0, sizeof(fs->irq));
    fs->irqs = 0;
    fs->command_asked = false;
    fs->reset_wanted = false;
}

void qhca_fault_finish(struct qhca *e)
{
    if (e->faults->reset_wanted) {
        qhca_reset(e);
    }
}

uint64_t qhca_fault_deadline(const struct qhca *e)
{
    const struct qhca_faults *fs = e->faults;
    uint64_t min = fs->link_rule ? fs->link_until : UINT64_MAX, at;
    uint32_t v;

    at = qhca_fault_frames_deadline(e);
    min = at < min ? at : min;
    if (fs->command_asked && fs->command_until && fs->command_until < min) {
        min = fs->command_until;
    }
    for (v = 0; fs->irqs && v < e->cfg.num_vectors; v++) {
        if (fs->irq[v / 64] >> v % 64 & 1 && fs->irq_until[v] < min) {
            min = fs->irq_until[v];
        }
    }
    return min;
}

void qhca_fault_timer(struct qhca *e, uint64_t now)
{
    if (e->faults->link_rule && e->faults->link_until <= now) {
        fault_link_back(e);
    }
    if (e->faults->command_until <= now) {
        e->faults->command_until = 0;
    }
    irqs_release(e, 0, now);
    qhca_fault_frames_due(e, now);
    qhca_fault_flush(e);
}

/* ---- the list of rules ---- */

/* Which fields are valid at which place. */
static const uint32_t at_fields[QHCA_FLT_ATS] = {
    [QHCA_FLT_AT_NOW] = 0,
    [QHCA_FLT_AT_PACKET] = QHCA_FLT_NUMBER | QHCA_FLT_PEER | QHCA_FLT_PSN |
                           QHCA_FLT_OPCODE | QHCA_FLT_SYNDROME |
                           QHCA_FLT_QP_TYPE | QHCA_FLT_DIRECTION,
    [QHCA_FLT_AT_RECV] = QHCA_FLT_NUMBER | QHCA_FLT_PEER | QHCA_FLT_QP_TYPE,
    [QHCA_FLT_AT_DMA] = QHCA_FLT_NUMBER | QHCA_FLT_KIND | QHCA_FLT_ADDR |
                        QHCA_FLT_ACCESS | QHCA_FLT_QP_TYPE,
    [QHCA_FLT_AT_TABLE] = QHCA_FLT_NUMBER | QHCA_FLT_KIND | QHCA_FLT_INDEX |
                          QHCA_FLT_QP_TYPE,
    [QHCA_FLT_AT_CQE] = QHCA_FLT_NUMBER | QHCA_FLT_PEER | QHCA_FLT_QP_TYPE,
    [QHCA_FLT_AT_EVENT] = QHCA_FLT_NUMBER | QHCA_FLT_PEER,
    [QHCA_FLT_AT_INTERRUPT] = QHCA_FLT_NUMBER,
    [QHCA_FLT_AT_REGISTER] = QHCA_FLT_NUMBER,
    [QHCA_FLT_AT_FRAME] = QHCA_FLT_NUMBER | QHCA_FLT_DIRECTION,
    [QHCA_FLT_AT_COMMAND] = QHCA_FLT_NUMBER,
};

/* What to say if such a field is given elsewhere. */
static const struct {
    uint32_t field;
    const char *wrong;
} match_fields[] = {
    { QHCA_FLT_PEER,
      "'peer' exists at a packet, a receive, a CQE or an event" },
    { QHCA_FLT_PSN, "'psn' exists at a packet only" },
    { QHCA_FLT_OPCODE, "'opcode' exists at a packet only" },
    { QHCA_FLT_SYNDROME, "'syndrome' exists at a packet only" },
    { QHCA_FLT_DIRECTION, "'direction' exists at a packet or a frame" },
    { QHCA_FLT_QP_TYPE,
      "'qp-type' exists at a packet, a receive, a DMA access, a table or a "
      "CQE" },
    { QHCA_FLT_KIND, "'kind' exists at a DMA access or a table" },
    { QHCA_FLT_ACCESS, "'access' exists at a DMA access only" },
    { QHCA_FLT_ADDR, "'address' exists at a DMA access only" },
    { QHCA_FLT_INDEX, "'index' exists at a table only" },
};

static const char *fault_check_match(const struct qhca_fault_rule *f)
{
    static const uint32_t none[8];
    uint32_t wrong = f->fields & ~at_fields[f->at];
    unsigned i;

    if (f->at == QHCA_FLT_AT_NOW &&
        (f->skip || f->nth || f->every ||
         (f->fields & ~(QHCA_FLT_AT | QHCA_FLT_COUNT | QHCA_FLT_NS |
                        QHCA_FLT_PACKETS)))) {
        return "what happens at once has no match; give 'at' (packet, recv, "
               "dma, table, cqe, event, interrupt, frame or command) to wait "
               "for something";
    }
    for (i = 0; i < sizeof(match_fields) / sizeof(match_fields[0]); i++) {
        if (wrong & match_fields[i].field) {
            return match_fields[i].wrong;
        }
    }
    if ((f->fields & QHCA_FLT_OPCODE) &&
        !memcmp(f->opcode, none, sizeof(none))) {
        return "'opcode' has no opcode";
    }
    if ((f->fields & QHCA_FLT_PSN) &&
        ((f->psn | f->psn_last) & ~QHCA_PSN_MASK)) {
        return f->psn & ~QHCA_PSN_MASK ?
               "'psn' has 24 bits: 0 to 16777215" :
               "'psn-last' has 24 bits: 0 to 16777215";
    }
    if ((f->fields & QHCA_FLT_ADDR) && f->addr > f->addr_last) {
        return "'address-last' is before 'address'";
    }
    if ((f->fields & QHCA_FLT_INDEX) && f->index > f->index_last) {
        return "'index-last' is before 'index'";
    }
    if ((f->fields & QHCA_FLT_KIND) && f->kind >= QHCA_DMAS) {
        return "'kind' is not a kind of DMA";
    }
    if ((f->fields & QHCA_FLT_DIRECTION) &&
        (!f->direction || f->direction > (QHCA_FLT_OUT | QHCA_FLT_IN))) {
        return "'direction' is out, in or both";
    }
    if ((f->fields & QHCA_FLT_ACCESS) &&
        (!f->access || f->access > (QHCA_FLT_READ | QHCA_FLT_WRITE))) {
        return "'access' is read, write or both";
    }
    return NULL;
}

static const char *fault_check(const struct qhca_fault_rule *f)
{
    uint32_t times = f->action == QHCA_FLT_DELAY ||
                     f->action == QHCA_FLT_REORDER ||
                     f->action == QHCA_FLT_HOLD_INTERRUPT ||
                     f->action == QHCA_FLT_LINK_DOWN ? QHCA_FLT_NS : 0;
    uint32_t number = f->action == QHCA_FLT_DUPLICATE ||
                      f->action == QHCA_FLT_REORDER ? QHCA_FLT_PACKETS : 0;

    if (f->at >= QHCA_FLT_ATS) {
        return "'at' is not a place";
    }
    if (!(places_of(f->action) & 1u << f->at)) {
        return wrong_place(f->action);
    }
    if (f->fields & QHCA_FLT_NS & ~times) {
        return "'time' is only for delay, reorder, hold-interrupt and "
               "link-down";
    }
    if ((times && (f->fields & QHCA_FLT_NS) && (!f->ns || f->ns > NS_MAX)) ||
        (f->action == QHCA_FLT_DELAY && !(f->fields & QHCA_FLT_NS))) {
        return "'time' must be 1 to 3600000000000 ns";
    }
    if (f->fields & QHCA_FLT_PACKETS & ~number) {
        return "'packets' is only for duplicate and reorder";
    }
    if (number && (!f->packets || f->packets > PACKETS_MAX)) {
        return "'packets' must be 1 to 256";
    }
    if (f->action == QHCA_FLT_GARBAGE && (f->fields & QHCA_FLT_ACCESS) &&
        f->access != QHCA_FLT_WRITE) {
        return "'access' must be left out: garbage is what the adapter writes";
    }
    if (f->action == QHCA_FLT_GARBAGE && (f->fields & QHCA_FLT_KIND) &&
        f->kind == QHCA_DMA_TABLE) {
        return "'kind' cannot be table: the adapter writes none";
    }
    if ((f->fields & QHCA_FLT_CHANCE) && f->chance > QHCA_FAULT_PPM) {
        return "'probability' must be 0 to 1";
    }
    if ((f->fields & QHCA_FLT_COUNT) && !f->count) {
        return "'count' must be at least 1: the rule would never hit";
    }
    return fault_check_match(f);
}

static void fault_fill_in(struct qhca_fault_rule *f)
{
    if (!(f->fields & QHCA_FLT_AT)) {
        f->at = default_at(f->action);
    }
    if ((f->at == QHCA_FLT_AT_PACKET || f->at == QHCA_FLT_AT_FRAME) &&
        !(f->fields & QHCA_FLT_DIRECTION)) {
        f->fields |= QHCA_FLT_DIRECTION;
        f->direction = QHCA_FLT_OUT;
    }
    if (f->action == QHCA_FLT_NO_ACK && !(f->fields & QHCA_FLT_OPCODE)) {
        f->fields |= QHCA_FLT_OPCODE;
        memset(f->opcode, 0, sizeof(f->opcode));
        qhca_fault_opcode("response", f->opcode);
    }
    if (f->action == QHCA_FLT_GARBAGE && f->at == QHCA_FLT_AT_DMA &&
        !(f->fields & QHCA_FLT_ACCESS)) {
        f->fields |= QHCA_FLT_ACCESS;
        f->access = QHCA_FLT_WRITE;
    }
    if (fault_anywhere(f->action) && !(f->fields & QHCA_FLT_COUNT)) {
        f->fields |= QHCA_FLT_COUNT;
        f->count = 1;
    }
    if ((f->action == QHCA_FLT_DUPLICATE || f->action == QHCA_FLT_REORDER) &&
        !(f->fields & QHCA_FLT_PACKETS)) {
        f->fields |= QHCA_FLT_PACKETS;
        f->packets = 1;
    }
    f->matches = 0;
    f->hits = 0;
}

const char *qhca_fault_check(struct qhca_fault_rule *f)
{
    if (f->action >= QHCA_FLT_ACTIONS) {
        return "'action' does not exist";
    }
    fault_fill_in(f);
    return fault_check(f);
}

void qhca_fault_sites(struct qhca *e)
{
    struct qhca_faults *fs = e->faults;
    unsigned i;

    e->fault_sites = 0;
    for (i = 0; i < fs->rules; i++) {
        e->fault_sites |= 1u << fs->rule[i].at;
    }
    if (!qhca_faulty(e, QHCA_FLT_AT_COMMAND)) {
        fs->command_asked = false;
    }
    /*
     * Held packets stay in order with those that arrive: the packet hooks must
     * run as long as there are any.
     */
    if (fs->frames) {
        e->fault_sites |= 1u << QHCA_FLT_AT_PACKET | 1u << QHCA_FLT_AT_FRAME;
    }
}

static struct qhca_faults *fault_get(struct qhca *e)
{
    if (!e->faults) {
        e->faults = calloc(1, sizeof(*e->faults));
        if (e->faults) {
            e->faults->seed = SEED;
            e->faults->link_wire = e->link;
            qhca_observe(e);
        }
    }
    return e->faults;
}

const char *qhca_fault_add(struct qhca *e, struct qhca_fault_rule *f)
{
    struct qhca_fault_site now = { .at = QHCA_FLT_AT_NOW };
    struct qhca_faults *fs = fault_get(e);
    struct qhca_fault_hits h;
    const char *wrong;

    if (!fs) {
        return "out of memory";
    }
    wrong = qhca_fault_check(f);
    if (wrong) {
        return wrong;
    }
    if (e->halted && f->at == QHCA_FLT_AT_NOW) {
        return STOPPED;
    }
    if (fs->rules == QHCA_FAULTS_MAX) {
        return "there are 64 faults already: remove one";
    }
    if (!fs->rules) {
        fs->order = 0;
        fs->last_id = 0;
    }
    f->id = ++fs->last_id;
    f->order = fs->order++;
    fs->rule[fs->rules++] = *f;
    qhca_fault_sites(e);
    if (f->at == QHCA_FLT_AT_NOW) {
        memset(&h, 0, sizeof(h));
        fs->rule[fs->rules - 1].matches = 1;
        fault_hit(e, &fs->rule[fs->rules - 1], &now, &h, 0);
        *f = fs->rule[fs->rules - 1];
        qhca_finish(e);
    }
    return NULL;
}

/* A rule is being removed: undo its effects. */
static void fault_let_go(struct qhca *e, const struct qhca_fault_rule *f)
{
    if (e->faults->link_rule == f->id) {
        fault_link_back(e);
    }
    if (f->action == QHCA_FLT_STALL_EVENTS) {
        qhca_eqs_go_on(e, f->id);
    }
    if (e->faults->command_rule == f->id) {
        e->faults->command_until = 0;
    }
    irqs_release(e, f->id, UINT64_MAX);
    qhca_fault_release(e, f->id);
}

bool qhca_fault_remove(struct qhca *e, uint32_t id)
{
    struct qhca_faults *fs = e->faults;
    bool found = !id;
    struct qhca_fault_rule f;
    unsigned i = 0;

    if (e->halted) {
        return false;
    }
    while (fs && i < fs->rules) {
        if (id && fs->rule[i].id != id) {
            i++;
            continue;
        }
        found = true;
        f = fs->rule[i];
        fs->rules--;
        memmove(&fs->rule[i], &fs->rule[i + 1],
                (fs->rules - i) * sizeof(fs->rule[0]));
        streams_forget(fs, f.id);
        fault_let_go(e, &f);
    }
    if (fs) {
        qhca_fault_sites(e);
        qhca_fault_flush(e);
        qhca_finish(e);
    }
    return found;
}

const struct qhca_fault_rule *qhca_fault_next(struct qhca *e, uint32_t id)
{
    struct qhca_faults *fs = e->faults;
    unsigned i;

    for (i = 0; fs && i < fs->rules; i++) {
        if (fs->rule[i].id > id) {
            return &fs->rule[i];
        }
    }
    return NULL;
}

const char *qhca_fault_seed(struct qhca *e, uint64_t seed)
{
    struct qhca_faults *fs = fault_get(e);
    unsigned i;

    if (!fs) {
        return "out of memory";
    }
    if (e->halted) {
        return STOPPED;
    }
    fs->seed = seed;
    streams_forget(fs, 0);
    for (i = 0; i < fs->rules; i++) {
        fs->rule[i].order = i;
        fs->rule[i].matches = 0;
        fs->rule[i].hits = 0;
    }
    fs->order = fs->rules;
    return NULL;
}

uint64_t qhca_fault_get_seed(const struct qhca *e)
{
    return e->faults ? e->faults->seed : SEED;
}

unsigned qhca_fault_held(const struct qhca *e)
{
    return e->faults ? e->faults->frames + e->faults->irqs : 0;
}

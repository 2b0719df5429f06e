/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "observe/breakpoint.h"
#include "reborn.h"
#include "world.h"

struct frame {
    struct frame *next;
    size_t len;
    uint8_t b[WORLD_SUPER_MAX];
};

enum kind { EV_RX, EV_RUN, EV_TIMER, EV_TX_READY, EV_BELL, EV_CALL };

struct world_event {
    uint64_t t, seq;
    enum kind kind;
    unsigned node;
    struct frame *frame;
    void (*fn)(void *opaque, uint64_t arg);
    void *opaque;
    uint64_t arg;
};

/* ---- the queue: a heap ordered by time, then by age ---- */

static bool before(const struct world_event *a, const struct world_event *b)
{
    return a->t != b->t ? a->t < b->t : a->seq < b->seq;
}

static void push(struct world *w, struct world_event ev)
{
    size_t i;

    if (w->heap_len == w->heap_cap) {
        w->heap_cap = w->heap_cap ? 2 * w->heap_cap : 256;
        w->heap = realloc(w->heap, w->heap_cap * sizeof(*w->heap));
        CHECK(w->heap, "no memory");
    }
    ev.seq = w->seq++;
    CHECK(ev.t >= w->now, "an event in the past");
    for (i = w->heap_len++; i; i = (i - 1) / 2) {
        if (!before(&ev, &w->heap[(i - 1) / 2])) {
            break;
        }
        w->heap[i] = w->heap[(i - 1) / 2];
    }
    w->heap[i] = ev;
}

static struct world_event pop(struct world *w)
{
    struct world_event top = w->heap[0];
    struct world_event last = w->heap[--w->heap_len];
    size_t i = 0, c;

    for (;;) {
        c = 2 * i + 1;
        if (c >= w->heap_len) {
            break;
        }
        if (c + 1 < w->heap_len && before(&w->heap[c + 1], &w->heap[c])) {
            c++;
        }
        if (!before(&w->heap[c], &last)) {
            break;
        }
        w->heap[i] = w->heap[c];
        i = c;
    }
    w->heap[i] = last;
    return top;
}

/* ---- frames ---- */

static struct frame *frame_get(struct world *w, const void *b, size_t len)
{
    struct frame *f = w->free_frames;

    CHECK(len <= WORLD_SUPER_MAX, "a frame of %zu bytes", len);
    if (f) {
        w->free_frames = f->next;
    } else {
        f = malloc(sizeof(*f));
        CHECK(f, "no memory");
    }
    f->len = len;
    memcpy(f->b, b, len);
    return f;
}

static void frame_put(struct world *w, struct frame *f)
{
    f->next = w->free_frames;
    w->free_frames = f;
}

/* ---- the wire ---- */

static void log_frame(struct world *w, unsigned src, int dst,
                      const uint8_t *b, size_t len, const char *verdict)
{
    char text[256];

    if (w->log) {
        pkt_describe(text, sizeof(text), b, len);
        fprintf(w->log, "%12.3f us  %c>%c  %s  %s\n", (double)w->now / 1000,
                'a' + (int)src, dst < 0 ? '*' : 'a' + dst, text, verdict);
    }
    if (w->pcap) {
        pcap_frame(w->pcap, w->now, b, len);
    }
}

static void deliver(struct world *w, unsigned src, unsigned dst,
                    const struct frame *f, uint64_t sent)
{
    const struct wire *c = &w->wire;
    uint64_t t = sent + c->latency_ns + rng_below(&w->rng, c->jitter_ns + 1);
    struct frame *copy = frame_get(w, f->b, f->len);
    const char *verdict = "";

    if (c->pad && copy->len < 60) {
        memset(copy->b + copy->len, 0, 60 - copy->len);
        copy->len = 60;
    }
    if (rng_64k(&w->rng, c->corrupt) && copy->len) {
        /* a short burst, as a bad link causes: a CRC always detects that */
        unsigned bit = (unsigned)rng_below(&w->rng, copy->len * 8);
        unsigned n = (unsigned)rng_range(&w->rng, 1, 8);

        copy->b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        while (--n && ++bit < copy->len * 8) {
            copy->b[bit / 8] ^= (uint8_t)((rng_u64(&w->rng) & 1)
                                          << bit % 8);
        }
        w->corrupted++;
        verdict = "corrupted";
    }
    if (rng_64k(&w->rng, c->truncate) && copy->len > 1) {
        copy->len = rng_range(&w->rng, 1, copy->len - 1);
        w->truncated++;
        verdict = "truncated";
    }
    if (rng_64k(&w->rng, c->reorder)) {
        t += rng_below(&w->rng, c->reorder_ns + 1);
        w->reordered++;
        verdict = verdict[0] ? verdict : "delayed";
    } else {
        if (t < w->last_arrival[src][dst]) {
            t = w->last_arrival[src][dst];
        }
        w->last_arrival[src][dst] = t;
    }
    log_frame(w, src, (int)dst, copy->b, copy->len, verdict);
    push(w, (struct world_event){ .t = t, .kind = EV_RX, .node = dst,
                                  .frame = copy });
}

static void switch_frame(struct world *w, unsigned src,
                         const struct frame *f, uint64_t sent)
{
    unsigned i;

    for (i = 0; i < w->nodes; i++) {
        if (i == src || (!(f->b[0] & 1) && memcmp(f->b, w->node[i].mac, 6))) {
            continue;
        }
        if (rng_64k(&w->rng, w->wire.drop)) {
            w->dropped++;
            log_frame(w, src, (int)i, f->b, f->len, "LOST");
            continue;
        }
        deliver(w, src, i, f, sent);
        if (rng_64k(&w->rng, w->wire.dup)) {
            w->duplicated++;
            deliver(w, src, i, f, sent);
        }
    }
}

/* ---- the engine's operations ---- */

static bool op_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct node *n = opaque;

    return gmem_dev_read(&n->mem, addr, buf, len);
}

static bool op_dma_write(void *opaque, uint64_t addr, const void *buf,
                         size_t len)
{
    struct node *n = opaque;

    return gmem_dev_write(&n->mem, addr, buf, len);
}

static bool op_dma_store64(void *opaque, uint64_t addr, uint64_t val)
{
    struct node *n = opaque;

    CHECK(addr % 8 == 0, "a 64-bit store at %#" PRIx64, addr);
    return gmem_dev_write(&n->mem, addr, &val, 8);
}

static void op_dma_fence(void *opaque)
{
    struct node *n = opaque;

    /* one thread: program order suffices */
    if (n->on_fence) {
        n->on_fence(n);
    }
}

static bool op_dma_cas64(void *opaque, uint64_t addr, uint64_t cmp,
                         uint64_t swap, uint64_t *old)
{
    struct node *n = opaque;

    return gmem_dev_cas64(&n->mem, addr, cmp, swap, old);
}

/*
 * Device memory is a second view of the fake guest's memory, so that its
 * permissions and red zones apply here too; shifted, so that an offset is never
 * a DMA address.
 */
uint64_t node_dm_off(const struct node *n, uint64_t addr)
{
    return (addr - n->mem.base + GMEM_SPAN / 2) % GMEM_SPAN;
}

static uint64_t dm_addr(const struct node *n, uint64_t off, size_t len)
{
    CHECK(len <= GMEM_SPAN && off <= GMEM_SPAN - len,
          "%zu bytes at %#" PRIx64 " of device memory", len, off);
    return n->mem.base + (off + GMEM_SPAN / 2) % GMEM_SPAN;
}

static bool op_dm_read(void *opaque, uint64_t off, void *buf, size_t len)
{
    struct node *n = opaque;

    return gmem_dev_read(&n->mem, dm_addr(n, off, len), buf, len);
}

static bool op_dm_write(void *opaque, uint64_t off, const void *buf,
                        size_t len)
{
    struct node *n = opaque;

    return gmem_dev_write(&n->mem, dm_addr(n, off, len), buf, len);
}

static bool op_dm_cas64(void *opaque, uint64_t off, uint64_t cmp,
                        uint64_t swap, uint64_t *old)
{
    struct node *n = opaque;

    return gmem_dev_cas64(&n->mem, dm_addr(n, off, 8), cmp, swap, old);
}

static void op_msix(void *opaque, unsigned vector)
{
    struct node *n = opaque;

    CHECK(vector < WORLD_VECTORS, "vector %u raised", vector);
    n->msix[vector]++;
    if (n->on_msix) {
        n->on_msix(n, vector);
    }
}

/* The wire is full until @t. */
static void tx_wait(struct node *n, uint64_t t)
{
    if (!n->tx_waiting) {
        n->tx_waiting = true;
        push(n->w, (struct world_event){ .t = t, .kind = EV_TX_READY,
                                         .node = n->id });
    }
}

static enum qhca_wire tx_refuse(struct node *n, uint64_t t)
{
    n->refused++;
    tx_wait(n, t);
    return QHCA_WIRE_BUSY;
}

static unsigned f_type(const uint8_t *frame)
{
    return frame[12] << 8 | frame[13];
}

static enum qhca_wire op_send(void *opaque, const void *frame, size_t len)
{
    struct node *n = opaque;
    struct world *w = n->w;
    struct wire *c = &w->wire;
    struct frame *f;
    uint64_t sent = w->now;

    CHECK(len >= 14 && len <= w->frame_max, "a frame of %zu bytes", len);
    if (n->tx_waiting) {
        return tx_refuse(n, 0);
    }
    if (rng_64k(&w->rng, c->refuse)) {
        return tx_refuse(n, w->now + rng_below(&w->rng, 20000));
    }
    if (c->speed_mbps) {
        if (n->wire_free < w->now) {
            n->wire_free = w->now;
        }
        if (c->queue_ns && n->wire_free - w->now > c->queue_ns) {
            return tx_refuse(n, n->wire_free - c->queue_ns / 2);
        }
        n->wire_free += (len + 24) * 8000 / c->speed_mbps;
        sent = n->wire_free;
    }
    if (n->frame_ns) {
        if (n->wire_free < w->now) {
            n->wire_free = w->now;
        }
        if (n->wire_free - w->now > 8 * n->frame_ns) {
            return tx_refuse(n, n->wire_free - 4 * n->frame_ns);
        }
        n->wire_free += n->frame_ns;
        sent = n->wire_free;
    }
    if (c->tells && c->speed_mbps && c->queue_ns &&
        n->wire_free - w->now > c->queue_ns) {
        n->filled++;
        tx_wait(n, n->wire_free - c->queue_ns / 2);
    }
    n->tx_frames++;
    n->tx_bytes += len;
    n->markers += f_type(frame) == 0x88b5;
    w->frames++;
    f = frame_get(w, frame, len);
    if (c->filter && !c->filter(w, n->id, f->b, &f->len)) {
        w->filtered++;
        log_frame(w, n->id, -1, f->b, f->len, "FILTERED");
    } else {
        switch_frame(w, n->id, f, sent);
    }
    frame_put(w, f);
    return n->tx_waiting ? QHCA_WIRE_FULL : QHCA_WIRE_READY;
}

static uint64_t op_clock(void *opaque)
{
    struct node *n = opaque;

    return n->w->now;
}

static void op_set_timer(void *opaque, uint64_t deadline)
{
    struct node *n = opaque;

    n->deadline = deadline;
    if (deadline < n->timer_at) {
        n->timer_at = deadline < n->w->now ? n->w->now : deadline;
        push(n->w, (struct world_event){ .t = n->timer_at,
                                         .kind = EV_TIMER, .node = n->id });
    }
}

static void op_kick(void *opaque)
{
    struct node *n = opaque;

    if (!n->kicked) {
        n->kicked = true;
        push(n->w, (struct world_event){
                 .t = n->w->now + rng_below(&n->w->rng, n->kick_ns + 1),
                 .kind = EV_RUN, .node = n->id });
    }
}

/* ---- memory links ---- */

static bool op_dma_share(void *opaque, uint64_t addr, size_t len,
                         uint32_t *region, uint64_t *off)
{
    struct node *n = opaque;

    *region = 0;
    return gmem_dev_share(&n->mem, addr, len, off);
}

/* The link that node @n knows as @id, and the node at its other end. */
static struct world_memlink *memlink_of(struct node *n, unsigned id,
                                        unsigned *peer)
{
    struct world *w = n->w;
    unsigned i, a, b;

    for (i = 0; i < w->nodes; i++) {
        a = i < n->id ? i : n->id;
        b = i < n->id ? n->id : i;
        if (a != b && w->memlink[a][b].up &&
            w->memlink[a][b].id[n->id == b] == id) {
            *peer = i;
            return &w->memlink[a][b];
        }
    }
    return NULL;
}

static void op_memlink_bell(void *opaque, unsigned id)
{
    struct node *n = opaque;
    struct world *w = n->w;
    struct world_memlink *l;
    unsigned peer;

    l = memlink_of(n, id, &peer);
    if (l) {
        w->bells++;
        push(w, (struct world_event){
                 .t = w->now + rng_below(&w->memlink_rng, w->bell_ns),
                 .kind = EV_BELL, .node = peer,
                 .arg = l->id[peer > n->id] });
    }
}

/* An acknowledgment may wait for another bell for up to 100 us; not each. */
static bool op_memlink_bell_soon(void *opaque, unsigned id)
{
    struct node *n = opaque;
    struct world *w = n->w;
    struct world_memlink *l;
    unsigned peer;

    l = memlink_of(n, id, &peer);
    if (!l || w->bells_soon++ % 200 == 199) {
        return false;
    }
    push(w, (struct world_event){
             .t = w->now + rng_below(&w->memlink_rng, 100000),
             .kind = EV_BELL, .node = peer, .arg = l->id[peer > n->id] });
    return true;
}

/* One thread: a node that is copying is stopped, and will not finish. */
static bool op_memlink_wait(void *opaque, unsigned id)
{
    (void)opaque;
    (void)id;
    return false;
}

static void memlink_lost(void *opaque, uint64_t arg)
{
    struct world *w = opaque;

    world_memlink_down(w, (unsigned)arg >> 8, (unsigned)arg & 0xff);
}

static void op_memlink_cut(void *opaque, unsigned id, const char *why)
{
    struct node *n = opaque;
    unsigned peer;

    if (memlink_of(n, id, &peer)) {
        n->w->cuts++;
        if (n->w->log) {
            fprintf(n->w->log, "%12.3f us  %c    cuts the link to %c: %s\n",
                    (double)n->w->now / 1000, 'a' + (int)n->id,
                    'a' + (int)peer, why);
        }
        world_call(n->w, n->w->now, memlink_lost, n->w, n->id << 8 | peer);
    }
}

static void op_trace(void *opaque, const struct qhca_trace *t)
{
    struct node *n = opaque;

    if (n->traced) {
        n->traced[t->kind]++;
    }
    if (n->on_trace) {
        n->on_trace(n, t);
    }
    if (!n->w->log || !n->w->trace) {
        return;
    }
    fprintf(n->w->log, "%12.3f us  %c    %-12s num %#x peer %#x psn %u "
            "index %u addr %#" PRIx64 " a %#" PRIx64 " b %#" PRIx64
            " syn %#x %s\n", (double)n->w->now / 1000, 'a' + (int)n->id,
            qhca_trace_name(t->kind), t->num, t->peer, t->psn, t->index,
            t->addr, t->a, t->b, t->syndrome, t->text ? t->text : "");
}

static void op_stop(void *opaque);
static bool op_can_stop(void *opaque);

static const struct qhca_ops ops = {
    .dma_read = op_dma_read,
    .dma_write = op_dma_write,
    .dma_store64 = op_dma_store64,
    .dma_fence = op_dma_fence,
    .dma_cas64 = op_dma_cas64,
    .dm_read = op_dm_read,
    .dm_write = op_dm_write,
    .dm_cas64 = op_dm_cas64,
    .msix = op_msix,
    .send = op_send,
    .clock = op_clock,
    .set_timer = op_set_timer,
    .kick = op_kick,
    .dma_share = op_dma_share,
    .memlink_bell = op_memlink_bell,
    .memlink_bell_soon = op_memlink_bell_soon,
    .memlink_wait = op_memlink_wait,
    .memlink_cut = op_memlink_cut,
    .trace = op_trace,
    .stop = op_stop,
    .can_stop = op_can_stop,
};

/* ---- calls into the engine ---- */

enum call { CALL_REG, CALL_READ, CALL_DB, CALL_LINK, CALL_RX, CALL_RUN,
            CALL_TIMER, CALL_TX_READY, CALL_BELL, CALL_ALLOW, CALL_DETACH };

/*
 * A call that may be stopped has a thread of its own, which waits inside
 * ops.stop(); only one of the threads runs at a time.
 */
struct node_call {
    struct node_call *next;
    struct node *n;
    enum call kind;
    uint64_t off, v;
    uint64_t *result;           /* CALL_READ */
    unsigned size;
    struct frame *frame;        /* CALL_RX: ours */
    pthread_t thread;
    sem_t go, back;
    bool runs;                  /* its thread, not ours */
    bool over;
};

static void enter(struct node *n)
{
    CHECK(n->depth == 0, "the engine is called from within itself");
    n->depth++;
}

static void leave(struct node *n)
{
    n->depth--;
}

static void do_call(struct node_call *c)
{
    struct node *n = c->n;

    switch (c->kind) {
    case CALL_REG:
        qhca_reg_write(n->e, c->off, c->v, c->size);
        break;
    case CALL_READ:
        *c->result = qhca_reg_read(n->e, c->off, c->size);
        qhca_break_take(n->e);
        break;
    case CALL_DB:
        qhca_db_write(n->e, c->off, c->v, c->size);
        break;
    case CALL_LINK:
        qhca_set_link(n->e, c->v);
        break;
    case CALL_RX:
        qhca_receive(n->e, c->frame->b, c->frame->len);
        frame_put(n->w, c->frame);
        break;
    case CALL_RUN:
        n->runs++;
        qhca_run(n->e);
        break;
    case CALL_TIMER:
        n->timers++;
        qhca_timer(n->e);
        break;
    case CALL_TX_READY:
        qhca_tx_ready(n->e);
        break;
    case CALL_BELL:
        qhca_memlink_bell(n->e, (unsigned)c->v);
        break;
    case CALL_ALLOW:
        qhca_memlinks_allow(n->e, c->v);
        break;
    case CALL_DETACH:
        qhca_memlink_detach(n->e, (unsigned)c->v);
        break;
    }
    if (n->on_call) {
        n->on_call(n);
    }
}

static bool op_can_stop(void *opaque)
{
    struct node *n = opaque;

    return n->stopped && n->stopped->runs;
}

static void op_stop(void *opaque)
{
    struct node *n = opaque;
    struct node_call *c = n->stopped;

    c->runs = false;
    sem_post(&c->back);
    while (sem_wait(&c->go)) {
        continue;               /* a signal */
    }
    c->runs = true;
}

static void *call_thread(void *opaque)
{
    struct node_call *c = opaque;

    do_call(c);
    c->over = true;
    sem_post(&c->back);
    return NULL;
}

/* Wait until the call is over, or stopped again. */
static void call_wait(struct node *n)
{
    struct node_call *c = n->stopped;

    for (;;) {
        while (sem_wait(&c->back)) {
            continue;
        }
        if (c->over) {
            break;
        }
        n->stops++;
        n->go_at_once = false;
        if (n->on_stop) {
            n->on_stop(n);
        }
        if (!n->go_at_once) {
            return;
        }
        sem_post(&c->go);
    }
    pthread_join(c->thread, NULL);
    sem_destroy(&c->go);
    sem_destroy(&c->back);
    n->stopped = NULL;
    free(c);
    leave(n);
}

static void call(struct node *n, struct node_call c)
{
    struct node_call *own;

    c.n = n;
    if (!n->stopped && !qhca_debugging(n->e)) {
        enter(n);
        do_call(&c);
        leave(n);
        return;
    }
    own = calloc(1, sizeof(*own));
    CHECK(own, "no memory");
    *own = c;
    if (n->stopped) {
        if (!n->later) {
            n->later_end = &n->later;
        }
        *n->later_end = own;
        n->later_end = &own->next;
        return;
    }
    enter(n);
    n->stopped = own;
    own->runs = true;
    sem_init(&own->go, 0, 0);
    sem_init(&own->back, 0, 0);
    CHECK(!pthread_create(&own->thread, NULL, call_thread, own),
          "no thread");
    call_wait(n);
}

void node_continue(struct node *n)
{
    struct node_call *c;

    if (n->stopped) {
        sem_post(&n->stopped->go);
        call_wait(n);
    }
    while (n->later && !n->stopped) {
        c = n->later;
        n->later = c->next;
        c->next = NULL;
        call(n, *c);
        free(c);
    }
}

uint64_t node_reg_read(struct node *n, uint64_t off, unsigned size)
{
    uint64_t v;

    if (n->stopped) {
        return qhca_reg_read(n->e, off, size);
    }
    call(n, (struct node_call){ .kind = CALL_READ, .off = off, .size = size,
                                .result = &v });
    return v;
}

void node_reg_write(struct node *n, uint64_t off, uint64_t v, unsigned size)
{
    call(n, (struct node_call){ .kind = CALL_REG, .off = off, .v = v,
                                .size = size });
}

void node_db_write(struct node *n, uint64_t off, uint64_t v, unsigned size)
{
    call(n, (struct node_call){ .kind = CALL_DB, .off = off, .v = v,
                                .size = size });
}

void node_set_link(struct node *n, bool up)
{
    call(n, (struct node_call){ .kind = CALL_LINK, .v = up });
}

/* Run the stopped call to its end, drop queued ones. */
static void call_abandon(struct node *n)
{
    struct node_call *c;

    while ((c = n->later)) {
        n->later = c->next;
        if (c->kind == CALL_RX) {
            frame_put(n->w, c->frame);
        }
        free(c);
    }
    if (n->stopped) {
        qhca_break_release(n->e, true);
        sem_post(&n->stopped->go);
        call_wait(n);
        CHECK(!n->stopped, "a stop in spite of all");
        qhca_break_release(n->e, false);
    }
}

void node_flr(struct node *n)
{
    call_abandon(n);
    enter(n);
    qhca_reset(n->e);
    leave(n);
}

void node_drain(struct node *n)
{
    unsigned i;

    /* the queued EV_RUN will find nothing to do, which is harmless */
    for (i = 0; n->kicked && !n->stopped; i++) {
        CHECK(i < 1000000, "the engine never stops requesting to run");
        n->kicked = false;
        call(n, (struct node_call){ .kind = CALL_RUN });
        if (n->tx_waiting) {
            break;
        }
    }
}

/*
 * A frame has reached a slow adapter, which handles it later; @arg is 1 for one
 * that has waited long enough.  False: later, or never.
 */
static bool slow_rx(struct world *w, struct node *n, struct world_event *ev)
{
    if (ev->arg) {
        n->rx_waiting--;
        return true;
    }
    if (n->rx_room && n->rx_waiting == n->rx_room) {
        w->overrun++;
        log_frame(w, n->id, (int)n->id, ev->frame->b, ev->frame->len,
                  "OVERRUN");
        frame_put(w, ev->frame);
        return false;
    }
    n->rx_waiting++;
    if (n->rx_free < w->now) {
        n->rx_free = w->now;
    }
    n->rx_free += n->frame_ns;
    push(w, (struct world_event){ .t = n->rx_free, .kind = EV_RX,
                                  .node = n->id, .frame = ev->frame,
                                  .arg = 1 });
    return false;
}

static void handle(struct world *w, struct world_event *ev)
{
    struct node *n = &w->node[ev->node];

    switch (ev->kind) {
    case EV_RX:
        if (n->frame_ns && !slow_rx(w, n, ev)) {
            break;
        }
        n->rx_frames++;
        n->rx_bytes += ev->frame->len;
        w->delivered++;
        call(n, (struct node_call){ .kind = CALL_RX, .frame = ev->frame });
        break;
    case EV_RUN:
        if (n->kicked) {
            n->kicked = false;
            call(n, (struct node_call){ .kind = CALL_RUN });
        }
        break;
    case EV_TIMER:
        if (ev->t != n->timer_at) {
            break;              /* replaced by a later one */
        }
        n->timer_at = UINT64_MAX;
        if (n->deadline <= w->now) {
            n->deadline = UINT64_MAX;
            call(n, (struct node_call){ .kind = CALL_TIMER });
        } else if (n->deadline != UINT64_MAX) {
            op_set_timer(n, n->deadline);
        }
        break;
    case EV_TX_READY:
        n->tx_waiting = false;
        call(n, (struct node_call){ .kind = CALL_TX_READY });
        break;
    case EV_BELL:
        call(n, (struct node_call){ .kind = CALL_BELL, .v = ev->arg });
        break;
    case EV_CALL:
        ev->fn(ev->opaque, ev->arg);
        break;
    }
}

uint64_t world_next(const struct world *w)
{
    return w->heap_len ? w->heap[0].t : UINT64_MAX;
}

bool world_step(struct world *w)
{
    struct world_event ev;

    if (!w->heap_len) {
        return false;
    }
    ev = pop(w);
    w->now = ev.t;
    w->events++;
    if (w->reborn && !w->node[ev.node].depth &&
        !qhca_break_stopped(w->node[ev.node].e) && !w->node[ev.node].mem.fail_64k &&
        !rng_below(&w->reborn_rng, w->reborn)) {
        node_reborn(&w->node[ev.node], &ops);
        w->births++;
    }
    handle(w, &ev);
    return true;
}

void world_run_until(struct world *w, uint64_t t)
{
    while (w->heap_len && w->heap[0].t <= t) {
        world_step(w);
    }
    if (w->now < t) {
        w->now = t;
    }
}

bool world_settle(struct world *w, uint64_t ns)
{
    uint64_t end = w->now + ns;

    while (w->heap_len && w->heap[0].t <= end) {
        world_step(w);
    }
    return w->heap_len == 0;
}

void world_call(struct world *w, uint64_t t,
                void (*fn)(void *opaque, uint64_t arg), void *opaque,
                uint64_t arg)
{
    push(w, (struct world_event){ .t = t, .kind = EV_CALL, .fn = fn,
                                  .opaque = opaque, .arg = arg });
}

void world_inject(struct world *w, unsigned node, const void *frame,
                  size_t len)
{
    struct node *n = &w->node[node];

    log_frame(w, node, (int)node, frame, len, "injected");
    n->rx_frames++;
    n->rx_bytes += len;
    if (n->stopped || qhca_debugging(n->e)) {
        call(n, (struct node_call){ .kind = CALL_RX,
                                    .frame = frame_get(w, frame, len) });
        return;
    }
    enter(n);
    qhca_receive(n->e, frame, len);     /* so that a sanitizer knows its end */
    if (n->on_call) {
        n->on_call(n);
    }
    leave(n);
}

/* ---- memory links ---- */

void node_memlinks_allow(struct node *n, bool allowed)
{
    call(n, (struct node_call){ .kind = CALL_ALLOW, .v = allowed });
}

void node_memlink_bell(struct node *n, unsigned id)
{
    call(n, (struct node_call){ .kind = CALL_BELL, .v = id });
}

void *world_ring(void **memory)
{
    uint8_t *p = *memory = calloc(1, QHCA_MEMLINK_RING_BYTES + 4095);

    CHECK(p, "no memory");
    return p + (-(uintptr_t)p & 4095);
}

void world_memlink_up(struct world *w, unsigned a, unsigned b)
{
    struct world_memlink *l = &w->memlink[a < b ? a : b][a < b ? b : a];
    unsigned i, node[2] = { a < b ? a : b, a < b ? b : a };
    uint64_t token = rng_u64(&w->memlink_rng);

    CHECK(!l->up && a != b, "nodes %u and %u are linked already", a, b);
    for (i = 0; i < 2; i++) {
        l->ring[i] = world_ring(&l->ring_memory[i]);
    }
    l->up = true;
    for (i = 0; i < 2; i++) {
        struct node *peer = &w->node[node[!i]];
        struct qhca_memlink_region region = {
            .base = peer->mem.data, .len = GMEM_SPAN,
        };
        struct qhca_memlink_config c = {
            .token = token, .secret = token + i,
            .tx = l->ring[i], .rx = l->ring[!i],
            .region = &region, .regions = 1,
        };

        memcpy(c.mac, peer->mac, 6);
        l->id[i] = qhca_memlink_attach(w->node[node[i]].e, &c);
        CHECK(l->id[i], "qhca_memlink_attach");
    }
}

struct qhca_shring *world_memlink_ring(struct world *w, unsigned from,
                                       unsigned to)
{
    return from < to ? w->memlink[from][to].ring[0] :
                       w->memlink[to][from].ring[1];
}

void world_memlink_down(struct world *w, unsigned a, unsigned b)
{
    struct world_memlink *l = &w->memlink[a < b ? a : b][a < b ? b : a];

    if (!l->up) {
        return;
    }
    if (w->node[a].stopped || w->node[b].stopped) {
        /* Not while a call is stopped, which may use the rings. */
        world_call(w, w->now + 1000, memlink_lost, w, a << 8 | b);
        return;
    }
    call(&w->node[a], (struct node_call){ .kind = CALL_DETACH,
                                          .v = l->id[a > b] });
    call(&w->node[b], (struct node_call){ .kind = CALL_DETACH,
                                          .v = l->id[a < b] });
    l->up = false;
    free(l->ring_memory[0]);
    free(l->ring_memory[1]);
}

void world_memlinks(struct world *w)
{
    unsigned i, j;

    w->memlinks = true;
    w->bell_ns = 3000;
    for (i = 0; i < w->nodes; i++) {
        for (j = i + 1; j < w->nodes; j++) {
            world_memlink_up(w, i, j);
        }
        node_memlinks_allow(&w->node[i], true);
    }
}

/* ---- life ---- */

void wire_perfect(struct wire *wire)
{
    memset(wire, 0, sizeof(*wire));
    wire->latency_ns = 1000;
}

void wire_random(struct wire *wire, struct rng *r, bool loss)
{
    static const uint64_t speeds[] = { 0, 1000, 10000, 100000, 400000 };

    memset(wire, 0, sizeof(*wire));
    wire->latency_ns = rng_log(r, 20000);
    wire->jitter_ns = rng_pct(r, 50) ? rng_log(r, 20000) : 0;
    wire->speed_mbps = speeds[rng_below(r, 5)];
    wire->queue_ns = rng_range(r, 2000, 50000);
    wire->tells = wire->queue_ns & 1;
    wire->pad = rng_pct(r, 50);
    if (rng_pct(r, 40)) {
        wire->refuse = (unsigned)rng_log(r, 6000);
    }
    if (!loss) {
        return;
    }
    if (rng_pct(r, 70)) {
        wire->drop = (unsigned)rng_log(r, 65536 * 5 / 100);
    }
    if (rng_pct(r, 50)) {
        wire->dup = (unsigned)rng_log(r, 65536 * 10 / 100);
    }
    if (rng_pct(r, 50)) {
        wire->reorder = (unsigned)rng_log(r, 65536 * 10 / 100);
        wire->reorder_ns = rng_log(r, 60000);
    }
    if (rng_pct(r, 40)) {
        wire->corrupt = (unsigned)rng_log(r, 65536 * 2 / 100);
    }
    if (rng_pct(r, 30)) {
        wire->truncate = (unsigned)rng_log(r, 65536 * 1 / 100);
    }
}

void world_init(struct world *w, unsigned nodes, uint64_t seed,
                const struct qhca_config *cfg)
{
    static const uint64_t bases[WORLD_NODES] = {
        0, 1ULL << 32, 1ULL << 44, (1ULL << 52) - GMEM_SPAN
    };
    static const char *names[WORLD_NODES] = { "a", "b", "c", "d" };
    struct qhca_config c;
    const char *err;
    unsigned i;

    memset(w, 0, sizeof(*w));
    rng_init(&w->rng, seed);
    rng_init(&w->reborn_rng, ~seed);
    rng_init(&w->memlink_rng, seed ^ 0x6d656d6c696e6b);
    wire_perfect(&w->wire);
    w->nodes = nodes;
    memset(&c, 0, sizeof(c));
    if (cfg) {
        c = *cfg;
    } else {
        qhca_config_default(&c);
        c.num_vectors = WORLD_VECTORS;
        c.dm_size = GMEM_SPAN;
        c.max_mr = 1u << 17;    /* more is memory to poison, of each adapter */
    }
    w->frame_max = c.super_frames ? WORLD_SUPER_MAX : WORLD_FRAME_MAX;
    for (i = 0; i < nodes; i++) {
        struct node *n = &w->node[i];

        n->w = w;
        n->id = i;
        n->timer_at = n->deadline = UINT64_MAX;
        memcpy(n->mac, "\x52\x54\x00\x9a\x00\x00", 6);
        n->mac[5] = (uint8_t)(i + 1);
        memcpy(c.mac, n->mac, 6);
        gmem_init(&n->mem, bases[i], seed + i, names[i]);
        n->e = qhca_new(&c, &ops, n, &err);
        CHECK(n->e, "qhca_new: %s", err);
        qhca_set_link(n->e, true);
    }
}

void world_fini(struct world *w)
{
    unsigned i;

    for (i = 0; i < w->nodes; i++) {
        call_abandon(&w->node[i]);
        qhca_free(w->node[i].e);
        gmem_fini(&w->node[i].mem);
    }
    for (i = 0; i < WORLD_NODES * WORLD_NODES; i++) {
        struct world_memlink *l = &w->memlink[0][0] + i;

        if (l->up) {
            free(l->ring_memory[0]);
            free(l->ring_memory[1]);
        }
    }
    while (w->heap_len) {
        struct world_event ev = pop(w);

        free(ev.frame);
    }
    free(w->heap);
    while (w->free_frames) {
        struct frame *f = w->free_frames;

        w->free_frames = f->next;
        free(f);
    }
    memset(w, 0, sizeof(*w));
}

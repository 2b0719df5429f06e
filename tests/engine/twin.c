/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What QEMU and the host do for two adapters, in one process. */
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "die.h"
#include "twin.h"

#define load(p) atomic_load_explicit(p, memory_order_relaxed)
#define store(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define take(p) atomic_exchange_explicit(p, 0, memory_order_relaxed)
#define add(p, v) atomic_fetch_add_explicit(p, v, memory_order_relaxed)
#define sub(p, v) atomic_fetch_sub_explicit(p, v, memory_order_relaxed)

struct twin_rings {
    void *ring[2];              /* written by the first, by the second */
    void *memory[2];            /* to be freed */
    uint64_t token;
    _Atomic unsigned users;
};

/* A frame; HELLO: a new link, BYE: it is no longer used, nor copied from. */
enum mail_kind { MAIL_FRAME, MAIL_HELLO, MAIL_BYE };

struct twin_mail {
    struct twin_mail *next;
    enum mail_kind kind;
    struct twin_rings *rings;
    size_t len;
    uint8_t b[];
};

static _Atomic uint64_t now;    /* ns */
/* Threads that work, and pokes that they have not looked at. */
static _Atomic uint32_t busy;

/* ---- between the threads ---- */

/* Wake it if it sleeps.  ThreadSanitizer knows no order by a system call. */
static void poke(struct twin *t)
{
    add(&busy, 1);
    if (add(&t->pokes, 1) == 0) {
        syscall(SYS_futex, &t->pokes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

static void send_mail(struct twin *to, enum mail_kind kind,
                      struct twin_rings *rings, const void *b, size_t len)
{
    struct twin_mail *m = malloc(sizeof(*m) + len);

    CHECK(m, "no memory");
    m->next = NULL;
    m->kind = kind;
    m->rings = rings;
    m->len = len;
    if (len) {
        memcpy(m->b, b, len);
    }
    pthread_mutex_lock(&to->lock);
    *to->mail_end = m;
    to->mail_end = &m->next;
    pthread_mutex_unlock(&to->lock);
    add(&to->mails, 1);
    poke(to);
}

static struct twin_mail *next_mail(struct twin *t)
{
    struct twin_mail *m;

    if (!load(&t->mails)) {
        return NULL;            /* without the lock, which would be order */
    }
    pthread_mutex_lock(&t->lock);
    m = t->mail;
    t->mail = m->next;
    if (!t->mail) {
        t->mail_end = &t->mail;
    }
    pthread_mutex_unlock(&t->lock);
    sub(&t->mails, 1);
    return m;
}

void twin_say(struct twin *t, unsigned word, uint32_t value)
{
    store(&t->word[word], (uint64_t)t->round << 32 | value);
    poke(t->peer);
}

bool twin_hears(const struct twin *t, unsigned word)
{
    return load(&t->peer->word[word]) >> 32 == t->round;
}

uint32_t twin_heard(const struct twin *t, unsigned word)
{
    return (uint32_t)load(&t->peer->word[word]);
}

/* ---- the life of a link ---- */

struct qhca_memlink *twin_memlink(const struct twin *t)
{
    struct qhca_list *all = &t->n->e->ml->all;
    struct qhca_memlink *l;

    if (qhca_list_empty(all)) {
        return NULL;
    }
    l = qhca_container(all->next, struct qhca_memlink, link);
    return l->dead ? NULL : l;
}

static void attach(struct twin *t, struct twin_rings *r)
{
    struct qhca_memlink_region region = {
        .base = t->peer->n->mem.data, .len = GMEM_SPAN,
    };
    struct qhca_memlink_config c = {
        .token = r->token, .secret = r->token + t->me,
        .tx = r->ring[t->me], .rx = r->ring[!t->me],
        .region = &region, .regions = 1,
    };

    memcpy(c.mac, t->peer->n->mac, 6);
    t->rings = r;
    t->gone = t->parted = false;
    t->links++;
    t->id = qhca_memlink_attach(t->n->e, &c);
    CHECK(t->id, "qhca_memlink_attach");
}

void twin_link(struct twin *t)
{
    struct twin_rings *r = calloc(1, sizeof(*r));
    unsigned i;

    CHECK(r, "no memory");
    for (i = 0; i < 2; i++) {
        r->ring[i] = world_ring(&r->memory[i]);
    }
    r->token = rng_u64(&t->w.memlink_rng);
    r->users = 2;
    send_mail(t->peer, MAIL_HELLO, r, NULL, 0);
    attach(t, r);
}

static void put_rings(struct twin_rings *r)
{
    if (atomic_fetch_sub(&r->users, 1) == 1) {
        free(r->memory[0]);
        free(r->memory[1]);
        free(r);
    }
}

/* Each end says so once, between two calls of its engine. */
static void part(struct twin *t)
{
    if (!t->parted) {
        t->parted = true;
        send_mail(t->peer, MAIL_BYE, NULL, NULL, 0);
    }
}

static void detach(struct twin *t)
{
    part(t);
    qhca_memlink_detach(t->n->e, t->id);
    put_rings(t->rings);
    t->rings = NULL;
    t->id = 0;
    t->cut = false;
}

static void handle_mail(struct twin *t, const struct twin_mail *m)
{
    switch (m->kind) {
    case MAIL_FRAME:
        world_inject(&t->w, t->me, m->b, m->len);
        break;
    case MAIL_HELLO:
        CHECK(!t->id, "a second link");
        attach(t, m->rings);
        break;
    case MAIL_BYE:
        t->gone = true;
        if (t->id) {
            detach(t);
        }
        break;
    }
}

/* ---- working ---- */

static void run_due(struct twin *t)
{
    uint64_t at = load(&now);

    world_run_until(&t->w, at > t->w.now ? at : t->w.now);
}

/* The ring comes first: what a link that has ended still holds is seen. */
static void turn(struct twin *t)
{
    struct twin_mail *m;

    sub(&busy, take(&t->pokes));
    if (t->cut) {
        part(t);                /* and wait for the peer's */
    }
    if (take(&t->rung) && t->id) {
        node_memlink_bell(t->n, t->id);
    }
    run_due(t);
    while ((m = next_mail(t))) {
        handle_mail(t, m);
        free(m);
    }
    if (t->me == 0 && t->gone && !t->id) {
        twin_link(t);
    }
    run_due(t);
}

/*
 * Sleep until there is something to do.  The last of both lets time pass
 * instead: if a bell were lost, a timer would expire that must not.
 */
static void rest(struct twin *t)
{
    uint64_t next = world_next(&t->w), at;

    if ((t->cut && !t->parted) || next <= t->w.now) {
        return;
    }
    store(&t->next, next);
    if (sub(&busy, 1) == 1) {
        at = load(&t->peer->next);
        at = at < next ? at : next;
        CHECK(at != UINT64_MAX, "both guests wait, and nothing will happen");
        if (at > load(&now)) {
            store(&now, at);
        }
        add(&busy, 1);
        poke(t->peer);
        return;
    }
    while (!load(&t->pokes)) {
        syscall(SYS_futex, &t->pokes, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    add(&busy, 1);
}

void twin_until(struct twin *t, bool (*cond)(struct twin *t))
{
    for (;;) {
        turn(t);
        if (cond(t)) {
            return;
        }
        rest(t);
    }
}

/* ---- the engine's operations ---- */

static struct twin *twin_of(void *opaque)
{
    return (struct twin *)((struct node *)opaque)->w;
}

static enum qhca_wire op_send(void *opaque, const void *frame, size_t len)
{
    send_mail(twin_of(opaque)->peer, MAIL_FRAME, NULL, frame, len);
    return QHCA_WIRE_READY;
}

static void op_bell(void *opaque, unsigned id)
{
    struct twin *t = twin_of(opaque);

    if (id == t->id) {
        store(&t->peer->rung, true);
        poke(t->peer);
    }
}

/* A peer that is copying always finishes, however long it takes. */
static void wait_for_copy(struct twin *t)
{
    add(&t->waits, 1);
    sched_yield();
}

/* No time passes while a command waits. */
static void command_waits(struct world *w)
{
    struct twin *t = (struct twin *)w;

    wait_for_copy(t);
    turn(t);
}

/* The engine itself waits, if a QP fails meanwhile. */
static bool op_wait(void *opaque, unsigned id)
{
    (void)id;
    wait_for_copy(twin_of(opaque));
    return true;
}

static void op_cut(void *opaque, unsigned id, const char *why)
{
    struct twin *t = twin_of(opaque);

    (void)why;
    CHECK(id == t->id, "another link is cut");
    t->cut = true;
    t->cuts++;
}

/*
 * No copy is exempted, although a guest may change what is being sent: the
 * guests here do not, and so the engine's order is all that separates the
 * peer's copy from what the owner writes next.
 */
static bool op_dma_write(void *opaque, uint64_t addr, const void *buf,
                         size_t len)
{
    struct twin *t = twin_of(opaque);

    if ((uintptr_t)buf - (uintptr_t)t->peer->n->mem.data < GMEM_SPAN) {
        t->copies++;
        if (t->on_copy) {
            t->on_copy(t);
        }
    }
    return t->dma_write(opaque, addr, buf, len);
}

void twin_init(struct twin *t[2])
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct qhca_ops *ops;

        world_init(&t[i]->w, 2, i + 1, NULL);
        t[i]->me = i;
        t[i]->w.wait = command_waits;
        t[i]->n = &t[i]->w.node[i];
        t[i]->peer = t[!i];
        t[i]->mail_end = &t[i]->mail;
        t[i]->next = UINT64_MAX;
        pthread_mutex_init(&t[i]->lock, NULL);
        ops = &t[i]->n->e->ops;
        t[i]->dma_write = ops->dma_write;
        ops->dma_write = op_dma_write;
        ops->send = op_send;
        ops->memlink_bell = op_bell;
        ops->memlink_wait = op_wait;
        ops->memlink_cut = op_cut;
        node_memlinks_allow(t[i]->n, true);
    }
    now = 0;
    busy = 2;
}

void twin_fini(struct twin *t[2])
{
    struct twin_mail *m;
    unsigned i;

    for (i = 0; i < 2; i++) {
        if (t[i]->id) {
            qhca_memlink_detach(t[i]->n->e, t[i]->id);
            put_rings(t[i]->rings);
        }
    }
    for (i = 0; i < 2; i++) {
        while ((m = next_mail(t[i]))) {
            free(m);
        }
        world_fini(&t[i]->w);
        pthread_mutex_destroy(&t[i]->lock);
    }
}

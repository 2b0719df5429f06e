/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: a thread that answers the bells of memory links. */
#include "qemu/osdep.h"
#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include "qemu/bitmap.h"
#include "qemu/event_notifier.h"
#include "qemu/main-loop.h"
#include "qemu/lockable.h"
#include "qemu/rcu.h"
#include "qemu/thread.h"
#include "qhca-bell.h"

/* Most sockets that one wakeup reads from. */
#define QHCA_BELLS_AT_ONCE      16
/*
 * How long messages gather, in microseconds.  Half of the time that a wakeup
 * takes is enough for those that arrive as fast as they are answered; a stream
 * of small ones gains most if the peer can fill its window meanwhile.
 */
#define QHCA_BELLS_PAUSE_US     12
#define QHCA_BELLS_LONG_US      50
/* A pause was worth its while if this many came; many ask for a long one. */
#define QHCA_BELLS_WORTH        4
#define QHCA_BELLS_MANY         20
/* Wakeups until a pause is tried again. */
#define QHCA_BELLS_TRY          64
/* Wakeups in a row without a message, after which there is a long one. */
#define QHCA_BELLS_EMPTY        16
/* Most sockets that are rung later, and most that are rung soon. */
#define QHCA_BELLS_LATER        64
/*
 * What is to be rung soon waits for one to two periods of a timer, in
 * milliseconds: enough for a program in a guest under TCG to answer a message.
 * To set a timer, and to handle it, may cost as much as a wakeup in a host that
 * is a guest itself, so one serves many messages.
 */
#define QHCA_BELLS_SOON_MS      1
/*
 * To wake a thread on another CPU takes longer than to answer a small message,
 * and costs the thread that rings more.  So ours moves to the CPU where it is
 * rung, after this number of bells from there in a row, while an answer takes
 * less than this time in microseconds on average, and leaves it when it takes
 * more than that.  If that is after fewer answers, it needs twice as many bells
 * to move the next time, but half of them again for each interval since then:
 * what a stream has taught does not hold for the messages that follow it.
 */
#define QHCA_BELLS_SURE         4
#define QHCA_BELLS_SURE_MAX     65536
#define QHCA_BELLS_SHORT_US     15
#define QHCA_BELLS_TOO_LONG_US  30
#define QHCA_BELLS_EARLY        1000
#define QHCA_BELLS_DOUBT_US     1000000
/* Answers of which there is an average. */
#define QHCA_BELLS_ANSWERS      8
/* No socket has these numbers. */
#define QHCA_BELLS_END          0
#define QHCA_BELLS_TIMER        UINT64_MAX

/* A socket to be rung. */
typedef struct QhcaBellsDue {
    int fd;
    uint64_t id;
    /* if soon */
    unsigned fired;             /* how often the timer has, since */
    bool *late;
} QhcaBellsDue;

typedef struct QhcaBellsList {
    QhcaBellsDue due[QHCA_BELLS_LATER];
    unsigned n;
} QhcaBellsList;

struct QhcaBells {
    Object *owner;
    const QhcaBellFns *fn;
    void *opaque;
    int epoll;
    EventNotifier end;
    /* protected by the BQL */
    bool over;
    bool answering;             /* the thread is in a call of @fn */
    /*
     * Written with the BQL held.  The thread reads them without it, but with
     * this mutex; to remove a socket both are needed.
     */
    QemuMutex ringing;
    QhcaBellsList later;
    /* protected by the mutex; but see qhca_bells_soon() */
    QhcaBellsList soon;
    int timer;
    bool timed;                 /* it will fire */
    /* the thread's */
    int64_t work;               /* time of QHCA_BELLS_ANSWERS answers, us */
    unsigned rung_at;           /* the CPU of the last bells */
    unsigned same;              /* how many */
    unsigned sure;              /* how many are needed */
    int64_t doubted;            /* since when, us */
    unsigned answers;           /* since it moved */
    QemuThread self;
    int at;                     /* the CPU it has moved to, or -1 */
    unsigned long *allowed;     /* where it may run; valid if at >= 0 */
    unsigned long cpus;         /* its bits */
    bool stays;                 /* it cannot move */
};

/* Call for what has happened; returns the number of messages. */
static uint64_t qhca_bells_answer(QhcaBells *b, const struct epoll_event *ev,
                                  int n)
{
    uint64_t messages = 0;
    int i;

    for (i = 0; i < n && !b->over; i++) {
        if (ev[i].data.u64 != QHCA_BELLS_END) {
            messages += b->fn->ring(b->opaque, ev[i].data.u64);
        }
    }
    return messages;
}

/* The index of @fd, or the number of sockets if it is none of them. */
static unsigned qhca_bells_find(const QhcaBellsList *l, int fd)
{
    unsigned i = 0;

    while (i < l->n && l->due[i].fd != fd) {
        i++;
    }
    return i;
}

/* Add @fd, unless it is there already; false: there is no room. */
static bool qhca_bells_put(QhcaBellsList *l, int fd, uint64_t id, bool *late)
{
    unsigned i = qhca_bells_find(l, fd);

    if (i == l->n && i < QHCA_BELLS_LATER) {
        l->due[i] = (QhcaBellsDue) { .fd = fd, .id = id, .late = late };
        qatomic_set(&l->n, i + 1);
    }
    return i < QHCA_BELLS_LATER;
}

/* Do not ring @fd.  Was that intended? */
static bool qhca_bells_forget(QhcaBellsList *l, int fd)
{
    unsigned i = qhca_bells_find(l, fd);

    if (i == l->n) {
        return false;
    }
    l->due[i] = l->due[l->n - 1];
    qatomic_set(&l->n, l->n - 1);
    return true;
}

bool qhca_bells_ring_later(QhcaBells *b, int fd, uint64_t id)
{
    if (!b->answering || !qhca_bells_put(&b->later, fd, id, NULL)) {
        return false;
    }
    qhca_bells_rung(b, fd);
    return true;
}

/* Are there any?  Without the mutex, it may be true for a moment too long. */
static bool qhca_bells_soon(const QhcaBells *b)
{
    return qatomic_read(&b->soon.n);
}

/* With the mutex held. */
static void qhca_bells_set_timer(QhcaBells *b)
{
    struct itimerspec in = {
        .it_value.tv_nsec = QHCA_BELLS_SOON_MS * SCALE_MS,
    };

    b->timed = !timerfd_settime(b->timer, 0, &in, NULL);
}

bool qhca_bells_ring_soon(QhcaBells *b, int fd, uint64_t id, bool *late)
{
    QEMU_LOCK_GUARD(&b->ringing);
    if (!b->timed) {
        qhca_bells_set_timer(b);
    }
    return b->timed && qhca_bells_put(&b->soon, fd, id, late);
}

void qhca_bells_rung(QhcaBells *b, int fd)
{
    if (qhca_bells_soon(b)) {
        QEMU_LOCK_GUARD(&b->ringing);
        qhca_bells_forget(&b->soon, fd);
    }
}

bool qhca_bells_answering(const QhcaBells *b)
{
    return b->answering;
}

static void qhca_bells_lock(QhcaBells *b)
{
    bql_lock();
    b->answering = true;
}

bool qhca_bells_send(int fd)
{
    QhcaBell bell = { .cpu = sched_getcpu() };

    /* If there is no room, enough bells are pending. */
    return send(fd, &bell, sizeof(bell), MSG_DONTWAIT | MSG_NOSIGNAL) > 0 ||
           errno == EAGAIN || errno == EINTR;
}

void qhca_bells_rung_at(QhcaBells *b, unsigned cpu)
{
    b->same = cpu == b->rung_at ? b->same + 1 : 1;
    b->rung_at = cpu;
}

/* Move the thread to @cpu; -1: to where it was before. */
static void qhca_bells_move(QhcaBells *b, int cpu)
{
    g_autofree unsigned long *now = NULL, *only = NULL;
    unsigned long cpus;

    if (qemu_thread_get_affinity(&b->self, &now, &cpus)) {
        b->stays = true;
        return;
    }
    if (b->at < 0 || !test_bit(b->at, now) ||
        bitmap_count_one(now, cpus) != 1) {
        g_free(b->allowed);     /* another program has set this */
        b->allowed = g_steal_pointer(&now);
        b->cpus = cpus;
        b->at = -1;
    }
    if (cpu < 0 && b->at >= 0) {
        b->stays = qemu_thread_set_affinity(&b->self, b->allowed, b->cpus);
        b->at = -1;
    } else if (cpu >= 0 && cpu < b->cpus && test_bit(cpu, b->allowed)) {
        only = bitmap_new(b->cpus);
        set_bit(cpu, only);
        b->stays = qemu_thread_set_affinity(&b->self, only, b->cpus);
        b->at = b->stays ? b->at : cpu;
    }
}

/* The last answer was given from @begin to @end: is the CPU the right one? */
static void qhca_bells_choose_cpu(QhcaBells *b, int64_t begin, int64_t end)
{
    b->work += end - begin - b->work / QHCA_BELLS_ANSWERS;
    b->answers++;
    while (b->sure > QHCA_BELLS_SURE &&
           end - b->doubted >= QHCA_BELLS_DOUBT_US) {
        b->sure /= 2;
        b->doubted += QHCA_BELLS_DOUBT_US;
    }
    if (b->at >= 0 &&
        b->work > QHCA_BELLS_TOO_LONG_US * QHCA_BELLS_ANSWERS) {
        b->sure = b->answers >= QHCA_BELLS_EARLY ? QHCA_BELLS_SURE :
                  MIN(2 * b->sure, QHCA_BELLS_SURE_MAX);
        b->doubted = end;
        qhca_bells_move(b, -1);
    } else if (b->same >= b->sure && (int)b->rung_at != b->at && !b->stays &&
               b->work < QHCA_BELLS_SHORT_US * QHCA_BELLS_ANSWERS) {
        b->same = 0;            /* if it may not move there: later */
        b->answers = 0;
        qhca_bells_move(b, b->rung_at);
    }
}

/* Without the BQL: the sockets with these numbers are broken. */
static void qhca_bells_lost(QhcaBells *b, const uint64_t *lost, unsigned n)
{
    unsigned i;

    if (n) {
        bql_lock();
        for (i = 0; i < n && !b->over; i++) {
            b->fn->lost(b->opaque, lost[i]);
        }
        bql_unlock();
    }
}

/* Release the BQL, and ring what was left for then. */
static void qhca_bells_unlock(QhcaBells *b)
{
    uint64_t lost[QHCA_BELLS_LATER];
    unsigned i, n = 0;

    b->answering = false;
    if (!b->later.n) {
        bql_unlock();
        return;
    }
    qemu_mutex_lock(&b->ringing);
    bql_unlock();
    for (i = 0; i < b->later.n; i++) {
        if (!qhca_bells_send(b->later.due[i].fd)) {
            lost[n++] = b->later.due[i].id;
        }
    }
    b->later.n = 0;
    qemu_mutex_unlock(&b->ringing);
    qhca_bells_lost(b, lost, n);
}

/* Ring one of those that are due; false: there are none. */
static bool qhca_bells_ring_due(QhcaBells *b, uint64_t *lost, unsigned *n)
{
    QhcaBellsList *l = &b->soon;
    unsigned i = 0;

    /* Not for all of them: a vCPU may wait for the mutex, with the BQL held. */
    QEMU_LOCK_GUARD(&b->ringing);
    while (i < l->n && l->due[i].fired < 2) {
        i++;
    }
    if (i == l->n) {
        b->timed = false;
        if (l->n) {
            qhca_bells_set_timer(b);
        }
        return false;
    }
    qatomic_set(l->due[i].late, true);
    if (!qhca_bells_send(l->due[i].fd)) {
        lost[(*n)++] = l->due[i].id;
    }
    return qhca_bells_forget(l, l->due[i].fd);
}

/* The timer has fired. */
static void qhca_bells_timer(QhcaBells *b)
{
    uint64_t lost[QHCA_BELLS_LATER], times;
    unsigned i, n = 0;

    if (read(b->timer, &times, sizeof(times)) < 0) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&b->ringing) {
        for (i = 0; i < b->soon.n; i++) {
            b->soon.due[i].fired++;
        }
    }
    /* While it is @timed no more become due, so there are at most that many. */
    while (qhca_bells_ring_due(b, lost, &n)) {
        continue;
    }
    qhca_bells_lost(b, lost, n);
}

/* Remove the timer's event, if it is among them; returns how many are left. */
static int qhca_bells_look_at_timer(QhcaBells *b, struct epoll_event *ev, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        if (ev[i].data.u64 == QHCA_BELLS_TIMER) {
            ev[i] = ev[--n];
            qhca_bells_timer(b);
            break;
        }
    }
    return n;
}

static void *qhca_bells_thread(void *opaque)
{
    QhcaBells *b = opaque;
    struct epoll_event ev[QHCA_BELLS_AT_ONCE];
    unsigned wakeups = 0;       /* since the last pause */
    unsigned empty = 0;         /* in a row, without a message */
    unsigned pause = 0;         /* us, before this wakeup */
    bool over = false, more = false;
    uint64_t messages = 0;
    int64_t begin;
    int n, had;

    rcu_register_thread();
    qemu_thread_get_self(&b->self);
    while (!over) {
        had = epoll_wait(b->epoll, ev, ARRAY_SIZE(ev), more ? 0 : -1);
        n = qhca_bells_look_at_timer(b, ev, had);
        if (had > 0 && !n && !more) {
            continue;
        }
        qhca_bells_lock(b);
        begin = g_get_monotonic_time();
        if (n) {
            messages = qhca_bells_answer(b, ev, n);
        }
        /* Work that was left is done when those bells have been rung. */
        more = !b->over && b->fn->more(b->opaque, !n);
        over = b->over;
        qhca_bells_unlock(b);
        qhca_bells_choose_cpu(b, begin, g_get_monotonic_time());
        if (more) {
            continue;
        }
        empty = messages ? 0 : empty + 1;
        if (messages >= QHCA_BELLS_MANY || empty >= QHCA_BELLS_EMPTY) {
            pause = QHCA_BELLS_LONG_US;
        } else if ((pause && messages >= QHCA_BELLS_WORTH) ||
                   ++wakeups >= QHCA_BELLS_TRY) {
            pause = QHCA_BELLS_PAUSE_US;
        } else {
            pause = 0;
        }
        if (pause && !over) {
            wakeups = 0;
            g_usleep(pause);
        }
    }
    close(b->timer);
    close(b->epoll);
    event_notifier_cleanup(&b->end);
    bql_lock();
    object_unref(b->owner);
    bql_unlock();
    qemu_mutex_destroy(&b->ringing);
    g_free(b->allowed);
    g_free(b);
    rcu_unregister_thread();
    return NULL;
}

QhcaBells *qhca_bells_new(Object *owner, const QhcaBellFns *fn, void *opaque)
{
    QhcaBells *b = g_new0(QhcaBells, 1);
    QemuThread thread;
    int err;

    b->fn = fn;
    b->opaque = opaque;
    b->at = -1;
    b->sure = QHCA_BELLS_SURE;
    qemu_mutex_init(&b->ringing);
    b->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (b->epoll < 0) {
        err = errno;
        goto err_free;
    }
    err = -event_notifier_init(&b->end, false);
    if (err) {
        goto err_close;
    }
    b->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (b->timer < 0) {
        err = errno;
        goto err_notifier;
    }
    if (!qhca_bells_add(b, b->timer, QHCA_BELLS_TIMER) ||
        !qhca_bells_add(b, event_notifier_get_fd(&b->end), QHCA_BELLS_END)) {
        err = errno;
        goto err_timer;
    }
    b->owner = object_ref(owner);
    qemu_thread_create(&thread, "qhca-bell", qhca_bells_thread, b,
                       QEMU_THREAD_DETACHED);
    return b;

err_timer:
    close(b->timer);
err_notifier:
    event_notifier_cleanup(&b->end);
err_close:
    close(b->epoll);
err_free:
    qemu_mutex_destroy(&b->ringing);
    g_free(b);
    errno = err;
    return NULL;
}

bool qhca_bells_add(QhcaBells *b, int fd, uint64_t id)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.u64 = id };

    return !epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &ev);
}

void qhca_bells_remove(QhcaBells *b, int fd)
{
    bool ring;

    epoll_ctl(b->epoll, EPOLL_CTL_DEL, fd, NULL);
    /* The number may soon be that of another file. */
    qemu_mutex_lock(&b->ringing);
    ring = qhca_bells_forget(&b->later, fd);
    ring |= qhca_bells_forget(&b->soon, fd);
    qemu_mutex_unlock(&b->ringing);
    /* The peer must see what was sent before the link ends. */
    if (ring) {
        qhca_bells_send(fd);
    }
}

void qhca_bells_free(QhcaBells *b)
{
    b->over = true;
    event_notifier_set(&b->end);
}

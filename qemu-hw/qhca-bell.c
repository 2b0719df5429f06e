/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: a thread that answers the bells of memory links. */
#include "qemu/osdep.h"
#include <sys/epoll.h>
#include "qemu/event_notifier.h"
#include "qemu/main-loop.h"
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
/* Most sockets that are rung later. */
#define QHCA_BELLS_LATER        64

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
    struct {
        int fd;
        uint64_t id;
    } later[QHCA_BELLS_LATER];
    unsigned n;
};

/* Call for what has happened; returns the number of messages. */
static uint64_t qhca_bells_answer(QhcaBells *b, const struct epoll_event *ev,
                                  int n)
{
    uint64_t messages = 0;
    int i;

    for (i = 0; i < n && !b->over; i++) {
        if (ev[i].data.u64) {
            messages += b->fn->ring(b->opaque, ev[i].data.u64);
        }
    }
    return messages;
}

bool qhca_bells_ring_later(QhcaBells *b, int fd, uint64_t id)
{
    unsigned i = 0;

    while (i < b->n && b->later[i].fd != fd) {
        i++;
    }
    if (!b->answering || i == QHCA_BELLS_LATER) {
        return false;
    }
    b->later[i].fd = fd;
    b->later[i].id = id;
    b->n = MAX(b->n, i + 1);
    return true;
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
    /* If there is no room, enough bells are pending. */
    return send(fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ||
           errno == EAGAIN || errno == EINTR;
}

/* Release the BQL, and ring what was left for then. */
static void qhca_bells_unlock(QhcaBells *b)
{
    uint64_t lost[QHCA_BELLS_LATER];
    unsigned i, n = 0;

    b->answering = false;
    if (!b->n) {
        bql_unlock();
        return;
    }
    qemu_mutex_lock(&b->ringing);
    bql_unlock();
    for (i = 0; i < b->n; i++) {
        if (!qhca_bells_send(b->later[i].fd)) {
            lost[n++] = b->later[i].id;
        }
    }
    b->n = 0;
    qemu_mutex_unlock(&b->ringing);
    if (n) {
        bql_lock();
        for (i = 0; i < n && !b->over; i++) {
            b->fn->lost(b->opaque, lost[i]);
        }
        bql_unlock();
    }
}

static void *qhca_bells_thread(void *opaque)
{
    QhcaBells *b = opaque;
    struct epoll_event ev[QHCA_BELLS_AT_ONCE];
    unsigned wakeups = 0;       /* since the last pause */
    unsigned pause = 0;         /* us, before this wakeup */
    bool over = false, more = false;
    uint64_t messages = 0;
    int n;

    rcu_register_thread();
    while (!over) {
        n = epoll_wait(b->epoll, ev, ARRAY_SIZE(ev), more ? 0 : -1);
        qhca_bells_lock(b);
        if (n) {
            messages = qhca_bells_answer(b, ev, n);
        }
        /* Work that was left is done when those bells have been rung. */
        more = !b->over && b->fn->more(b->opaque, !n);
        over = b->over;
        qhca_bells_unlock(b);
        if (more) {
            continue;
        }
        if (messages >= QHCA_BELLS_MANY) {
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
    close(b->epoll);
    event_notifier_cleanup(&b->end);
    bql_lock();
    object_unref(b->owner);
    bql_unlock();
    qemu_mutex_destroy(&b->ringing);
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
    if (!qhca_bells_add(b, event_notifier_get_fd(&b->end), 0)) {
        err = errno;
        goto err_notifier;
    }
    b->owner = object_ref(owner);
    qemu_thread_create(&thread, "qhca-bell", qhca_bells_thread, b,
                       QEMU_THREAD_DETACHED);
    return b;

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
    unsigned i, n = 0;

    epoll_ctl(b->epoll, EPOLL_CTL_DEL, fd, NULL);
    /* The number may soon be that of another file. */
    qemu_mutex_lock(&b->ringing);
    for (i = 0; i < b->n; i++) {
        if (b->later[i].fd != fd) {
            b->later[n++] = b->later[i];
        }
    }
    b->n = n;
    qemu_mutex_unlock(&b->ringing);
}

void qhca_bells_free(QhcaBells *b)
{
    b->over = true;
    event_notifier_set(&b->end);
}

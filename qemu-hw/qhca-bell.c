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
/* Most sockets that are rung at the end of a wakeup. */
#define QHCA_BELLS_LATER        16

struct QhcaBells {
    Object *owner;
    QhcaBellFn *ring;
    QhcaBellMoreFn *more;
    void *opaque;
    int epoll;
    EventNotifier end;
    /* protected by the BQL */
    bool over;
    bool answering;             /* the thread is in a call of these two */
    QemuMutex ringing;          /* held, without the BQL, while it rings: */
    int later[QHCA_BELLS_LATER];
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
            messages += b->ring(b->opaque, ev[i].data.u64);
        }
    }
    return messages;
}

bool qhca_bells_ring_later(QhcaBells *b, int fd)
{
    if (!b->answering || b->n == QHCA_BELLS_LATER) {
        return false;
    }
    b->later[b->n++] = fd;
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

/* And ring.  If that fails, the socket has something to read: its end. */
static void qhca_bells_unlock(QhcaBells *b)
{
    b->answering = false;
    qemu_mutex_lock(&b->ringing);
    bql_unlock();
    while (b->n) {
        send(b->later[--b->n], "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    qemu_mutex_unlock(&b->ringing);
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
        messages = more ? messages : 0;
        qhca_bells_lock(b);
        messages += qhca_bells_answer(b, ev, n);
        more = !b->over && b->more(b->opaque);
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

QhcaBells *qhca_bells_new(Object *owner, QhcaBellFn *ring,
                          QhcaBellMoreFn *more, void *opaque)
{
    QhcaBells *b = g_new0(QhcaBells, 1);
    QemuThread thread;
    int err;

    b->ring = ring;
    b->more = more;
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
        if (b->later[i] != fd) {
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

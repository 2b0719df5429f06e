/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: descriptors that another process passes over a socket. */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include "qemu/atomic.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qhca-fds.h"

/* Files that wait to be closed before no more peers are accepted. */
#define QHCA_FDS_CLOSING        32
/* How much is unmapped at a time: others wait for the memory map meanwhile. */
#define QHCA_FDS_UNMAP          (64 * MiB)
/* When a thread is tried again. */
#define QHCA_FDS_RETRY_MS       1000

/* What a thread releases. */
typedef struct QhcaFdsJob QhcaFdsJob;

struct QhcaFdsJob {
    QSIMPLEQ_ENTRY(QhcaFdsJob) next;
    struct iovec *map;
    int *fd;
    unsigned maps, n;
};

static unsigned qhca_fds_closing;
/* What the main loop starts threads for; protected by the BQL. */
static QSIMPLEQ_HEAD(, QhcaFdsJob) qhca_fds_left =
    QSIMPLEQ_HEAD_INITIALIZER(qhca_fds_left);
static QEMUTimer *qhca_fds_timer;

static void qhca_fds_unmap(const struct iovec *map)
{
    size_t at, len;

    for (at = 0; at < map->iov_len; at += len) {
        len = MIN(map->iov_len - at, QHCA_FDS_UNMAP);
        munmap(map->iov_base + at, len);
    }
}

static void *qhca_fds_closer(void *opaque)
{
    QhcaFdsJob *job = opaque;
    unsigned i;

    for (i = 0; i < job->maps; i++) {
        qhca_fds_unmap(&job->map[i]);
    }
    for (i = 0; i < job->n; i++) {
        close(job->fd[i]);
        qatomic_dec(&qhca_fds_closing);
    }
    g_free(job->map);
    g_free(job->fd);
    g_free(job);
    return NULL;
}

/* Not by qemu_thread_create(), which aborts if there can be no more threads. */
static bool qhca_fds_start(QhcaFdsJob *job)
{
    sigset_t all, before;
    GThread *thread;

    sigfillset(&all);           /* signals are for the main loop */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread = g_thread_try_new("qhca-close", qhca_fds_closer, job, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (thread) {
        g_thread_unref(thread);
    }
    return thread;
}

static void qhca_fds_start_in(int64_t ms)
{
    timer_mod(qhca_fds_timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + ms);
}

static void qhca_fds_start_all(void *opaque)
{
    QhcaFdsJob *job;

    while ((job = QSIMPLEQ_FIRST(&qhca_fds_left))) {
        QSIMPLEQ_REMOVE_HEAD(&qhca_fds_left, next);
        if (!qhca_fds_start(job)) {
            QSIMPLEQ_INSERT_HEAD(&qhca_fds_left, job, next);
            qhca_fds_start_in(QHCA_FDS_RETRY_MS);
            break;
        }
    }
}

void qhca_fds_release(const int *fd, unsigned n, const struct iovec *map,
                      unsigned maps)
{
    QhcaFdsJob *job;

    if (!n) {
        return;
    }
    /* Not a thread for each: there may be no more than some thousands. */
    job = g_new0(QhcaFdsJob, 1);
    job->fd = g_memdup2(fd, n * sizeof(*fd));
    job->n = n;
    job->map = g_memdup2(map, maps * sizeof(*map));
    job->maps = maps;
    qatomic_add(&qhca_fds_closing, n);
    if (!qhca_fds_timer) {
        qhca_fds_timer = timer_new_ms(QEMU_CLOCK_REALTIME,
                                      qhca_fds_start_all, NULL);
    }
    /*
     * Not here: a thread begins with the priority and the CPUs of the one that
     * starts it, which may answer bells (qhca-bell.c).
     */
    if (QSIMPLEQ_EMPTY(&qhca_fds_left)) {
        qhca_fds_start_in(0);
    }
    QSIMPLEQ_INSERT_TAIL(&qhca_fds_left, job, next);
}

void qhca_fds_close(const int *fd, unsigned n)
{
    qhca_fds_release(fd, n, NULL, 0);
}

bool qhca_fds_full(void)
{
    return qatomic_read(&qhca_fds_closing) >= QHCA_FDS_CLOSING;
}

ssize_t qhca_fds_receive(int sock, void *buf, size_t len, int *fd, unsigned *n,
                         bool *cut)
{
    union {
        struct cmsghdr hdr;
        char buf[CMSG_SPACE(QHCA_FDS_MESSAGE * sizeof(int))];
    } control;
    struct iovec iov = { .iov_base = buf, .iov_len = len };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control.buf, .msg_controllen = sizeof(control.buf),
    };
    ssize_t got = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = got >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

    *n = 0;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        *n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fd, CMSG_DATA(c), *n * sizeof(int));
    }
    *cut = got >= 0 && (msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC));
    return got;
}

/* Has the next message descriptors?  It stays in the socket. */
static bool qhca_fds_waiting(int sock)
{
    char buf[1];
    struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    return recvmsg(sock, &msg, MSG_DONTWAIT | MSG_PEEK) >= 0 &&
           (msg.msg_flags & MSG_CTRUNC);
}

ssize_t qhca_fds_recv(int sock, void *buf, size_t len)
{
    int fd[QHCA_FDS_MESSAGE];
    unsigned n = 0;
    bool cut, refuse = qhca_fds_full() && qhca_fds_waiting(sock);
    ssize_t got = refuse ? -1 :
                  qhca_fds_receive(sock, buf, len, fd, &n, &cut);

    if (refuse || n) {
        qhca_fds_close(fd, n);
        errno = EPROTO;
        return -1;
    }
    return got;
}

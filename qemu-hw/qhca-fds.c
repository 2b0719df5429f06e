/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: descriptors that another process passes over a socket. */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include "qemu/atomic.h"
#include "qemu/thread.h"
#include "qemu/units.h"
#include "qhca-fds.h"

/* Files that wait to be closed before no more peers are accepted. */
#define QHCA_FDS_CLOSING        32
/* How much is unmapped at a time: others wait for the memory map meanwhile. */
#define QHCA_FDS_UNMAP          (64 * MiB)

/* What a thread releases. */
typedef struct QhcaFdsJob {
    struct iovec *map;
    int *fd;
    unsigned maps, n;
} QhcaFdsJob;

static unsigned qhca_fds_closing;

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

void qhca_fds_release(const int *fd, unsigned n, const struct iovec *map,
                      unsigned maps)
{
    QhcaFdsJob *job;
    QemuThread thread;

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
    qemu_thread_create(&thread, "qhca-close", qhca_fds_closer, job,
                       QEMU_THREAD_DETACHED);
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: descriptors that another process passes over a socket. */
#include "qemu/osdep.h"
#include <sys/socket.h>
#include "qemu/atomic.h"
#include "qemu/thread.h"
#include "qhca-fds.h"

/* Files that wait to be closed before no more peers are accepted. */
#define QHCA_FDS_CLOSING        32

/* What a thread closes. */
typedef struct QhcaFdsClosing {
    unsigned n;
    int fd[];
} QhcaFdsClosing;

static unsigned qhca_fds_closing;

static void *qhca_fds_closer(void *opaque)
{
    QhcaFdsClosing *c = opaque;
    unsigned i;

    for (i = 0; i < c->n; i++) {
        close(c->fd[i]);
        qatomic_dec(&qhca_fds_closing);
    }
    g_free(c);
    return NULL;
}

void qhca_fds_close(const int *fd, unsigned n)
{
    QhcaFdsClosing *c;
    QemuThread thread;

    if (!n) {
        return;
    }
    /* Not a thread for each: there may be no more than some thousands. */
    c = g_malloc(sizeof(*c) + n * sizeof(*fd));
    c->n = n;
    memcpy(c->fd, fd, n * sizeof(*fd));
    qatomic_add(&qhca_fds_closing, n);
    qemu_thread_create(&thread, "qhca-close", qhca_fds_closer, c,
                       QEMU_THREAD_DETACHED);
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

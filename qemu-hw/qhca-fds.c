/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: descriptors that another process passes over a socket. */
#include "qemu/osdep.h"
#include <sys/socket.h>
#include "qemu/atomic.h"
#include "qemu/thread.h"
#include "qhca-fds.h"

/* Threads that wait in close() before no more peers are accepted. */
#define QHCA_FDS_CLOSING        32
/* More messages than a socket holds (net.unix.max_dgram_qlen). */
#define QHCA_FDS_UNREAD         1000

static unsigned qhca_fds_closing;

static void *qhca_fds_closer(void *fd)
{
    close(GPOINTER_TO_INT(fd));
    qatomic_dec(&qhca_fds_closing);
    return NULL;
}

void qhca_fds_close(int fd)
{
    QemuThread thread;

    /* A memory file: nothing can delay that. */
    if (fcntl(fd, F_GET_SEALS) >= 0) {
        close(fd);
        return;
    }
    qatomic_inc(&qhca_fds_closing);
    qemu_thread_create(&thread, "qhca-close", qhca_fds_closer,
                       GINT_TO_POINTER(fd), QEMU_THREAD_DETACHED);
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

ssize_t qhca_fds_recv(int sock, void *buf, size_t len)
{
    int fd[QHCA_FDS_MESSAGE];
    unsigned n, i;
    bool cut;
    ssize_t got = qhca_fds_receive(sock, buf, len, fd, &n, &cut);
    int error = errno;

    for (i = 0; i < n; i++) {
        qhca_fds_close(fd[i]);
    }
    errno = error;
    return got;
}

void qhca_fds_close_socket(int sock)
{
    char buf[8];
    unsigned i;

    /* No more messages come.  Of those that have, some may be empty. */
    shutdown(sock, SHUT_RDWR);
    for (i = 0; i < QHCA_FDS_UNREAD; i++) {
        if (qhca_fds_recv(sock, buf, sizeof(buf)) < 0) {
            break;
        }
    }
    close(sock);
}

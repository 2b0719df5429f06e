/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptors that another process passes over a socket, wanted or not.  The
 * last close() of a file takes as long as its owner likes: a TCP socket may
 * linger, a file system in user space is asked first, and the pages of a memory
 * file have to be freed.  So a thread closes them, and none is left to the
 * kernel, which would close it in recvmsg().  The thread closes the socket,
 * too, since that closes the descriptors of messages that were not read.
 */
#ifndef QHCA_FDS_H
#define QHCA_FDS_H

/* As many as one message can have (SCM_MAX_FD of Linux). */
#define QHCA_FDS_MESSAGE        253

/**
 * Close the @n descriptors of a message, or a socket, in a thread: if there can
 * be no more threads, as soon as there can.  What is mapped as well may be
 * closed as usual.  With the BQL held.
 */
void qhca_fds_close(const int *fd, unsigned n);

/**
 * The same, and unmap memory of @maps files first.  If it is the last reference
 * to such a file, this frees it, too.
 * @n: not 0
 */
void qhca_fds_release(const int *fd, unsigned n, const struct iovec *map,
                      unsigned maps);

/**
 * Receive a message and its descriptors, without blocking.
 * @sock: a unix socket with message boundaries
 * @buf: result: the message
 * @len: size of @buf
 * @fd: result: QHCA_FDS_MESSAGE descriptors at most, for the caller to close
 * @n: result: how many
 * @cut: result: the message was longer
 *
 * Return: bytes, 0 at the end, -1 with errno.
 */
ssize_t qhca_fds_receive(int sock, void *buf, size_t len, int *fd, unsigned *n,
                         bool *cut);

/**
 * The same for a message that must have no descriptors: else they are closed,
 * or stay in the socket, and the error is EPROTO.  Read no more then.
 */
ssize_t qhca_fds_recv(int sock, void *buf, size_t len);

/**
 * Is the number that are still being closed a reason to accept no more?  Each
 * takes part of a limit, of descriptors or of threads.
 */
bool qhca_fds_full(void);

#endif /* QHCA_FDS_H */

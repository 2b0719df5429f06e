/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The other end of a test: a process in the other guest that executes one
 * command at a time, which it gets over a TCP connection.  It has one RDS
 * socket, and an arena of memory for RDMA.
 */
#ifndef QHCA_TEST_RDS_REMOTE_H
#define QHCA_TEST_RDS_REMOTE_H

#include "rds.h"

#define ARENA		(4u << 20)
#define MAX_PIECES	1024

/* Where local memory of an RDMA operation is: pieces in the arena. */
struct pieces {
	uint32_t nr;
	uint32_t misalign;		/* bytes between them */
	uint32_t len[MAX_PIECES];
};

enum remote_what {
	REMOTE_OPEN,			/* a new RDS socket: .port */
	REMOTE_SEND,			/* a message of .len bytes to .port */
	REMOTE_RECEIVE,			/* a message: .len, .cookie */
	REMOTE_RDMA,			/* an RDMA operation with its message */
	REMOTE_NOTE,			/* a notification: .token, .status */
	REMOTE_QUIET,			/* none comes within .len ms */
	REMOTE_CHECK,			/* the arena's pieces: .wrong */
	REMOTE_RECVERR,			/* RDS_RECVERR: .len */
};

struct remote_command {
	uint32_t what;
	uint32_t seed;
	uint32_t len;
	uint32_t flags;			/* of the RDMA operation */
	uint16_t port;			/* network order */
	uint64_t cookie;
	uint64_t token;
	uint64_t remote_offset;
	uint64_t remote_bytes;		/* 0: as many as local ones */
	struct pieces local;
};

struct remote_answer {
	int32_t err;
	uint32_t len;
	uint16_t port;
	uint8_t has_cookie;
	int32_t status;
	uint64_t cookie;
	uint64_t token;
	uint64_t wrong;
};

/* Bytes of all pieces together. */
size_t pieces_bytes(const struct pieces *p);

/* Serve one client on TCP port @port; returns when it has disconnected. */
void remote_serve(in_port_t port);

/* Connect to @address; a socket.  Ends the program if that fails. */
int remote_connect(const char *address, in_port_t port);

/* Read or write all of @data; ends the program if the other end is gone. */
void remote_put(int fd, const void *data, size_t len);
bool remote_get(int fd, void *data, size_t len);

/* Execute @c at the other end of @fd. */
void remote_call(int fd, const struct remote_command *c,
		 struct remote_answer *a);

#endif

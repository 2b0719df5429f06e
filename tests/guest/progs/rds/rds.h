/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the programs of this folder: an RDS socket with its control
 * messages, patterns in memory, time.
 *
 * Functions that return int return 0 or a negative errno, unless stated
 * otherwise.  Times are in milliseconds.
 */
#ifndef QHCA_TEST_RDS_H
#define QHCA_TEST_RDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <linux/rds.h>

/* How long to wait for an expected event: a host may be ten times slower. */
#define PATIENCE	60000

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY	0x4000000
#endif
#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY	60
#endif

/* ------------------------------------------------------------------ socket */

/* An RDS socket.  Notifications that arrive before a message are kept. */
struct endpoint {
	int fd;
	struct sockaddr_in self;
	struct rds_rdma_notify notes[64];
	unsigned int nr_notes;
};

/* Control messages for one sendmsg(). */
struct control {
	size_t len;
	_Alignas(struct cmsghdr) char data[512];
};

/* What came with one message. */
struct message {
	size_t len;
	struct sockaddr_in from;
	bool has_cookie;
	uint64_t cookie;
};

/*
 * Open a socket and bind it to @address and @port (0: any that is free), over
 * @transport, RDS_TRANS_IB or RDS_TRANS_TCP.
 */
int endpoint_open(struct endpoint *e, struct in_addr address, in_port_t port,
		  int transport);
void endpoint_close(struct endpoint *e);

/* Append a control message of SOL_RDS; @data is copied. */
void control_add(struct control *c, int type, const void *data, size_t len);

/*
 * Send @len bytes to @to; @c may be NULL.  -EAGAIN if it would block.
 *
 * Over TCP the first message to @to must be one of endpoint_send_first(): Linux
 * sends what comes before it knows the connection's number of paths over path 0,
 * and what comes after that over the socket's own path, which may overtake it.
 */
int endpoint_send(const struct endpoint *e, const struct sockaddr_in *to,
		  const void *data, size_t len, const struct control *c,
		  int flags);

/* The same, but wait until the connection is up. */
int endpoint_send_first(const struct endpoint *e, const struct sockaddr_in *to,
			const void *data, size_t len, const struct control *c,
			int flags);

/* Wait @ms for a message and put up to @size bytes of it into @data. */
int endpoint_receive(struct endpoint *e, void *data, size_t size,
		     struct message *m, int ms);

/* Wait @ms for a notification (RDS_CMSG_RDMA_STATUS). */
int endpoint_note(struct endpoint *e, struct rds_rdma_notify *note, int ms);

/* setsockopt() of SOL_RDS with an int. */
int endpoint_set(const struct endpoint *e, int option, int value);

/* RDS_FREE_MR */
int endpoint_free_mr(const struct endpoint *e, uint64_t cookie,
		     uint64_t flags);

/* The value of a counter of the kernel's RDS, of those with this name the sum. */
uint64_t endpoint_counter(const struct endpoint *e, const char *name);

/* ------------------------------------------------------------------ memory */

/* Memory that is not huge pages: bytes, rounded up to pages; ends if none. */
void *memory(size_t bytes);

/* The bytes of a pattern from @from on; another @seed, another pattern. */
void pattern_fill(void *data, size_t len, uint64_t from, uint32_t seed);

/* How many bytes are not those of the pattern. */
size_t pattern_wrong(const void *data, size_t len, uint64_t from,
		     uint32_t seed);

#define UNTOUCHED	0xee

/* How many bytes are not UNTOUCHED. */
size_t touched(const void *data, size_t len);

/* -------------------------------------------------------------------- time */

int64_t now_ms(void);

/* Print what and errno, and end with status 2. */
void die(const char *what) __attribute__((noreturn));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rdsstress: options, and tasks that send to all tasks of the other side. */
#ifndef QHCA_TEST_RDS_STRESS_H
#define QHCA_TEST_RDS_STRESS_H

#include <pthread.h>
#include <stdatomic.h>

#include "rds.h"

#define MAX_TASKS	64
#define MAX_DEPTH	256

/* What both sides must agree on: the active one sends it. */
struct options {
	uint32_t version;
	uint32_t tasks;			/* -t */
	uint32_t depth;			/* -d */
	uint32_t request_bytes;		/* -q */
	uint32_t ack_bytes;		/* -a */
	uint32_t rdma_bytes;		/* -D */
	uint32_t mode;			/* -M */
	uint32_t seconds;		/* -T */
	uint32_t verify;		/* -v */
};

enum { MODE_BOTH, MODE_READ, MODE_WRITE };

/* What a side counts. */
struct counts {
	uint64_t requests_sent, requests_received;
	uint64_t acks_sent, acks_received;
	uint64_t message_bytes;		/* sent and received */
	uint64_t read_bytes, written_bytes;	/* that this side executed */
	uint64_t send_us, rtt_us;	/* sums */
};

enum message_op { OP_REQUEST = 1, OP_ACK };
enum rdma_op { RDMA_NONE, RDMA_READ, RDMA_WRITE };

/* The head of each message; a pattern follows. */
struct header {
	uint32_t seq;
	uint32_t len;
	uint16_t from, to;		/* tasks */
	uint16_t slot;
	uint8_t op, rdma;
};

/* A request of ours that waits for its ACK. */
struct request {
	bool busy;
	uint32_t seq;
	enum rdma_op rdma;
	bool once;			/* the kernel releases the region */
	uint64_t cookie;
	uint8_t *region;
	int64_t sent_us;
};

/* A request of the other side that we answer. */
struct service {
	bool pending;			/* not yet answered */
	bool busy;			/* the RDMA operation is under way */
	struct header request;
	struct header done;		/* what the operation under way is for */
	uint64_t cookie;
	uint8_t *local;
	struct rds_iovec iovec;		/* of local, for the kernel to read */
};

struct task {
	const struct options *o;
	uint16_t id;
	in_port_t port;			/* of the first task */
	struct in_addr there;
	struct endpoint end;
	struct request *request;	/* [task of the other side][depth] */
	struct service *service;
	uint32_t next_seq[MAX_TASKS], expect_seq[MAX_TASKS];
	uint8_t *data;			/* one message */
	pthread_t thread;
	pthread_mutex_t lock;		/* of counts */
	struct counts counts;
};

/* Set by the main thread: no new requests; stop when nothing is under way. */
extern atomic_bool stress_drain, stress_stop;
/* Tasks with no request in flight. */
extern atomic_uint stress_idle;

/* Open the socket of task @id of ours. */
void task_open(struct task *t, const struct options *o, uint16_t id,
	       struct in_addr self, struct in_addr there, in_port_t port);
void *task_run(void *task);

int64_t now_us(void);

/* The seed of the pattern that belongs to @h; @rdma: of the region. */
uint32_t stress_seed(const struct header *h, bool rdma);

/* End the program: a check has failed. */
void wrong(const struct task *t, const char *what, const struct header *h)
	__attribute__((noreturn));

/* -------------------------------------------------------- RDMA, stress_rdma.c */

/* Choose the operation for request @r of header @h, and prepare its region. */
void rdma_prepare(struct task *t, struct request *r, struct header *h);

/* Add what lends the region to the control messages of the request. */
void rdma_lend(const struct task *t, struct request *r, struct control *c);

/* The ACK of @r has come: check the region and take it back. */
void rdma_return(struct task *t, struct request *r, const struct header *h);

/* Add the operation that @s asks for to the control messages of its ACK. */
void rdma_serve(struct task *t, struct service *s, struct control *c);

/* The operation has ended with @status. */
void rdma_served(struct task *t, struct service *s, int status);

#endif

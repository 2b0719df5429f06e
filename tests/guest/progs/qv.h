/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Helpers of the guest test programs: a pair of connected QPs on one adapter,
 * and the raw view below libibverbs (ring memory, doorbell page) that a test
 * of bad input needs.
 *
 * Every program prints one JSON object on stdout; a failure of a helper ends
 * the program with status 2 and a message with the failed call.
 */
#ifndef QV_H
#define QV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <infiniband/verbs.h>

#include "rdma/qhca-hw.h"

struct qv_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint8_t gid_index;
	union ibv_gid gid;
	volatile uint64_t *db;		/* the context's doorbell page, or NULL */
};

/* The path of a QP, and its timeouts and retries. */
struct qv_path {
	union ibv_gid gid;
	uint32_t qpn;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;	/* RC */
	enum ibv_mtu mtu;		/* 0: 1024 */
};

struct qv_qp {
	struct ibv_qp *qp;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp_init_attr init;	/* caps as returned */
	uint8_t *sq;			/* ring memory, once found */
	uint32_t sq_stride, sq_depth;
	uint32_t posted;		/* SQ producer index of raw posts */
};

/** Open the device named by $IBDEV with the GID index $GIDX. */
void qv_open(struct qv_dev *d);
/** End the program with status 2: "what: strerror". */
void qv_die(const char *what, int err) __attribute__((noreturn));

#define QV_QKEY	0x11111111	/* of all UD QPs */

/** Make a QP with its own CQs; caps go in and come back in q->init.cap. */
void qv_qp_create(struct qv_dev *d, struct qv_qp *q, enum ibv_qp_type type,
		  const struct ibv_qp_cap *cap);
/** The same with a shared receive queue, or NULL. */
void qv_qp_create_srq(struct qv_dev *d, struct qv_qp *q, enum ibv_qp_type type,
		      const struct ibv_qp_cap *cap, struct ibv_srq *srq);
void qv_qp_destroy(struct qv_qp *q);
/** RESET or later -> INIT with all remote rights, or those of @access. */
void qv_qp_init(struct qv_qp *q, int access);
/** INIT -> RTR -> RTS towards @dqpn on our own adapter. */
void qv_qp_connect(struct qv_dev *d, struct qv_qp *q, uint32_t dqpn);
/** The path to @dqpn on our own adapter, with patience. */
struct qv_path qv_path_to(struct qv_dev *d, uint32_t dqpn);
/** INIT -> RTR -> RTS along a path; for a UD QP the path is ignored. */
void qv_qp_connect_path(struct qv_dev *d, struct qv_qp *q,
			const struct qv_path *path);
/** Two RC QPs of this process, connected to each other. */
void qv_rc_pair(struct qv_dev *d, struct qv_qp *a, struct qv_qp *b,
		const struct ibv_qp_cap *cap);

/** One signalled WR; returns what ibv_post_send returns. */
int qv_send(struct qv_qp *q, enum ibv_wr_opcode op, uint64_t wr_id,
	    struct ibv_sge *sge, int num_sge, uint64_t raddr, uint32_t rkey);
int qv_recv(struct qv_qp *q, uint64_t wr_id, struct ibv_sge *sge, int num);
/** Poll one completion; false when none came in @ms milliseconds. */
/* Time limits are for the default kernel: the factor for this one. */
int qv_pace(void);
bool qv_wait(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
/* qv_wait() found that the device is gone: no more completions. */
extern bool qv_gone;
/** The first error found; "" if there was none. */
extern char qv_why[200];
/** Record an error in qv_why, unless there is one already. */
void qv_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** The next completion of @cq must have this status; else qv_wrong(). */
void qv_next_is(struct ibv_cq *cq, int status, const char *what);
/**
 * A TCP connection to the same program in the other guest, to exchange data and
 * to synchronize. @server: the address (IPv4) of the one that waits for it on
 * @port; NULL: be that one. Does not return when that fails.
 */
int qv_link(const char *server, unsigned short port);
/** Write @n bytes to the other end, or do not return. */
void qv_tell(int fd, const void *p, size_t n);
/** Read @n bytes of the other end, or do not return. */
void qv_hear(int fd, void *p, size_t n);
/** One byte each way: a barrier. */
void qv_meet(int fd);

/** Milliseconds of a monotonic clock. */
long qv_now(void);
/** Take one asynchronous event; -1 when none came in @ms milliseconds. */
int qv_async(struct qv_dev *d, int ms);

/**
 * Find the SQ ring of @q in this process's memory: posts marker WRs (RDMA
 * writes of no bytes, peer must be connected) and looks for their wr_id in the
 * anonymous mappings.  Fills sq, sq_stride, sq_depth and posted.
 */
void qv_find_sq(struct qv_qp *q);
/** Slot of SQ index @n. */
void *qv_sq_slot(struct qv_qp *q, uint32_t n);
/** Ring the SQ doorbell by hand; with QHCA_ALWAYS_RING its index counts. */
void qv_ring(struct qv_dev *d, uint32_t qpn, uint32_t head);

/** Page-aligned memory, touched; an MR with the given access over it. */
struct ibv_mr *qv_mr(struct qv_dev *d, size_t len, int access);

/** One line of /proc/self/maps. */
struct qv_map {
	uintptr_t start, end;
	bool read, write;
	char path[256];			/* "" for anonymous memory */
};

/** Start to read the mappings of this process; fclose() ends it. */
FILE *qv_maps_open(void);
/** The next mapping; false after the last one. */
bool qv_maps_next(FILE *maps, struct qv_map *m);

/** Physical page frame of @va by /proc/self/pagemap; 0: not present. */
uint64_t qv_pfn(const void *va);
/** A "Vm..." line of /proc/self/status, in KiB. */
long qv_vm(const char *name);

#endif /* QV_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two QPs for a scripted test within a simulation: explicit requests, and
 * results compared with the expected ones.
 */
#ifndef QHCA_TEST_SIM_FX_H
#define QHCA_TEST_SIM_FX_H

#include "sim.h"

#define FX_AREA 32768
#define FX_DEPTH_SHIFT 5
#define FX_DEPTH (1u << FX_DEPTH_SHIFT)
#define FX_RECV_CAP 8192

/* How long to wait for an expected result, ns. */
#define FX_LONG 20000000000ULL

/* Two connected QPs, each with CQs and regions of its own. */
struct side {
    struct guest *g;
    struct gcq scq, rcq;
    struct gqp qp;
    struct gmr src, dst, rem;
    bool destroyed;
    uint32_t flushed, received, failed;     /* of receives */
};

struct fx {
    struct sim *s;
    struct rng *r;
    struct side a, b;           /* requester, responder */
    struct gqp_attr attr, battr;
    struct {
        uint64_t wr_id;
        uint8_t flags;
        bool recv;              /* consumes a receive at b */
    } wr[FX_DEPTH];
    uint32_t recvs;             /* posted at b */
    bool drop;                  /* the wire drops everything between the two */
};

/* A random adapter. */
struct guest *fx_guest(struct sim *s);
/* Open two QPs with all they need; change attributes before fx_connect(). */
void fx_open(struct fx *f, struct sim *s);
void fx_connect(struct fx *f);
/* Destroy everything; the requester's CQ must be empty. */
void fx_close(struct fx *f);
void fx_destroy_qp(struct side *x);
/* A receive of @cap bytes at b, in its region "dst" named by @lkey. */
void fx_post_recv(struct fx *f, uint32_t cap, uint32_t lkey);
/* A valid request; the caller may corrupt it. */
struct gwr fx_good_wr(struct fx *f, uint8_t op, uint32_t len);
void fx_post(struct fx *f, const struct gwr *w);
uint8_t fx_some_op(struct fx *f);
void fx_post_good(struct fx *f, unsigned n);
/* Wait for the next CQE, at most @ns. */
bool fx_wait(struct fx *f, struct gcq *cq, struct qhca_cqe *c, uint64_t ns);
uint8_t fx_state(struct side *x);
/*
 * Read completions at the requester until all WQEs are accounted for: those
 * before @bad succeed, @bad has @status, the rest is flushed.
 */
void fx_expect_sends(struct fx *f, const char *name, uint32_t bad,
                     uint8_t status);
/*
 * Receives at the responder: @ok succeed, then (if any) @status, then, if
 * @err, the rest is flushed.
 */
void fx_expect_recvs(struct fx *f, const char *name, uint32_t ok,
                     uint8_t status, bool err);
/* Number of events of this type at this adapter. */
uint32_t fx_async(struct side *x, uint8_t type);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The environment of the provider in these tests: libibverbs's command
 * functions, implemented here, and the device, simulated by the test, which
 * writes CQEs and reads WQEs, doorbells and doorbell records.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "qhca-abi-cmd.h"
#include "qhca-context.h"
#include "qhca-cq.h"
#include "qhca-doorbell.h"
#include "qhca-pd.h"
#include "qhca-poll.h"
#include "qhca-post.h"
#include "qhca-qp.h"
#include "qhca-srq.h"
#include "qhca-tm.h"
#include "qhca-verbs.h"

struct fake {
    const struct verbs_device_ops *device_ops;
    const struct verbs_context_ops *ops;
    struct ibv_context *context;
    volatile uint64_t *db;      /* the doorbell page, as the device sees it */
    struct qhca_status_page *status;    /* the kernel's page */
    bool no_status;             /* a driver that has none; for the next context */
    uint64_t features;          /* to offer to the next context */
    bool old_driver;            /* which knows nothing of SQ records */
    uint32_t max_inline;
    uint32_t limit;             /* of entries and SGEs; 0: what is usual */
    int fail;                   /* error of the next command; then 0 */
    int mapped;                 /* ranges marked dontfork and not yet dofork */
    uint32_t next_qpn;          /* number of the next QP */
    uint32_t next_srqn;         /* of the next XRC SRQ */
    struct qhca_create_qp_req qp;       /* the last requests */
    struct qhca_create_cq_req cq;
    struct qhca_create_srq_req srq;
    struct ibv_srq_init_attr_ex srq_attr;   /* of an extended one */
    struct qhca_resize_cq_req resize;
    void (*on_resize)(struct qhca_cq *cq);      /* the device's part of it */
    struct qhca_modify_srq_req grow;
    int srq_mask;                       /* of the last ibv_cmd_modify_srq() */
    struct ibv_qp_cap qp_cap;
    struct qhca_create_wq_req wq;
    struct qhca_create_rss_qp_req rss;
    uint32_t cq_cqe;
    uint64_t dm_length;         /* last one requested */
};

#define FAKE_DM_PAGES 4         /* device memory */
#define FAKE_HANDLE 0x77        /* the one that can be imported */

extern struct fake fake;

/* Opens and closes a context of the fake device. */
void fake_open(void);
void fake_close(void);

/*
 * The device's side of a CQ: writes @cqe as entry @prod, phase last.
 * The number of the CQE's own fields is the caller's.
 */
void fake_cqe(struct qhca_cq *cq, uint32_t prod, struct qhca_cqe cqe);

/* Makes a PD, CQ or QP by the provider; asserts success. */
struct ibv_pd *fake_pd(void);
struct qhca_cq *fake_cq(uint32_t cqe);
struct qhca_qp *fake_qp(struct ibv_pd *pd, struct qhca_cq *cq,
                        struct ibv_srq *srq, enum ibv_qp_type type);
/* Sets libibverbs' view of the state, as ibv_modify_qp() would. */
void fake_qp_state(struct qhca_qp *qp, enum ibv_qp_state state);

#endif

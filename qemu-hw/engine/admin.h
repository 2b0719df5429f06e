/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands: what admin.c hands to the file of the object.
 *
 * A command checks everything before it changes anything: one that fails has
 * no effect.
 */
#ifndef QHCA_ADMIN_H
#define QHCA_ADMIN_H

#include "internal.h"

#define QHCA_MAX_EQ_SHIFT   16
#define QHCA_MAX_CQ_SHIFT   22
#define QHCA_MAX_WQ_SHIFT   15
#define QHCA_MAX_MR_SIZE    (1ULL << 48)
#define QHCA_FW_VERSION     0x01000000U
#define QHCA_MAX_MTU        9216
#define QHCA_MIN_MTU        68

/*
 * No status of the wire: the command has done its share and is not finished.
 * It is called again with the same input and c->again set, perhaps by another
 * adapter that has loaded this one's state.
 */
#define QHCA_ST_AGAIN       0xff

struct qhca_cmd {
    bool again;
    uint32_t obj;               /* of the command; may be set by it */
    uint64_t mask, arg;
    const void *in;             /* a private copy of the input */
    uint32_t in_len;
    void *out;                  /* zeroed, of the structure's size */
    uint64_t result;
};

/* The field at @off of the input is out of range. */
static inline uint8_t qhca_bad(struct qhca_cmd *c, size_t off)
{
    c->result = off;
    return QHCA_ST_BAD_PARAM;
}

/* The field at @off of the input names no object. */
static inline uint8_t qhca_bad_obj(struct qhca_cmd *c, size_t off)
{
    c->result = off;
    return QHCA_ST_BAD_OBJ;
}

typedef uint8_t qhca_cmd_fn(struct qhca *e, struct qhca_cmd *c);

/* admin.c: has the command done what may be done at once? */
bool qhca_admin_spent(const struct qhca *e);
/* cq_resize.c: status of a resize, or QHCA_ST_AGAIN */
uint8_t qhca_cq_resize(struct qhca *e, struct qhca_cmd *c,
                       struct qhca_cq *cq);

/* qp.c: may CREATE_QP make that? */
uint8_t qhca_qp_check_create(struct qhca *e, struct qhca_cmd *c,
                             const struct qhca_qpc *in);
/* What CREATE_QP and MODIFY_QP gave it. */
void qhca_qp_describe(const struct qhca_qp *qp, struct qhca_qpc *out);
/* qp_modify.c: could MODIFY_QP have left it with its attributes? */
bool qhca_qp_attributes_ok(struct qhca *e, const struct qhca_qp *qp);
/*
 * qp_valid.c: what is impossible in the state of @qp, or NULL.  Not about the
 * PSNs of what is under way.
 */
const char *qhca_qp_impossible(const struct qhca_qp *qp);

/* device.c */
qhca_cmd_fn qhca_cmd_nop, qhca_cmd_query_device, qhca_cmd_query_stats;
/* port.c */
qhca_cmd_fn qhca_cmd_query_port, qhca_cmd_modify_port, qhca_cmd_set_mc_list;
/* gid.c */
qhca_cmd_fn qhca_cmd_set_gid, qhca_cmd_query_gid;
/* pd.c */
qhca_cmd_fn qhca_cmd_alloc_uar, qhca_cmd_free_uar;
qhca_cmd_fn qhca_cmd_alloc_pd, qhca_cmd_free_pd;
/* xrc.c */
qhca_cmd_fn qhca_cmd_alloc_xrcd, qhca_cmd_free_xrcd;
/* eq.c */
qhca_cmd_fn qhca_cmd_create_eq, qhca_cmd_destroy_eq, qhca_cmd_query_eq;
/* cq.c */
qhca_cmd_fn qhca_cmd_create_cq, qhca_cmd_modify_cq, qhca_cmd_destroy_cq;
qhca_cmd_fn qhca_cmd_query_cq;
/* srq.c */
qhca_cmd_fn qhca_cmd_create_srq, qhca_cmd_modify_srq, qhca_cmd_destroy_srq;
qhca_cmd_fn qhca_cmd_query_srq;
/* qp.c, qp_modify.c */
qhca_cmd_fn qhca_cmd_create_qp, qhca_cmd_modify_qp, qhca_cmd_destroy_qp;
qhca_cmd_fn qhca_cmd_query_qp;
/* odp.c */
qhca_cmd_fn qhca_cmd_query_fault, qhca_cmd_resume_fault;
/* flow.c */
qhca_cmd_fn qhca_cmd_create_flow, qhca_cmd_destroy_flow;
/* rss.c, rwq.c */
qhca_cmd_fn qhca_cmd_create_rqt, qhca_cmd_destroy_rqt;
qhca_cmd_fn qhca_cmd_create_wq, qhca_cmd_modify_wq, qhca_cmd_destroy_wq;
qhca_cmd_fn qhca_cmd_query_wq;
/* mcast.c */
qhca_cmd_fn qhca_cmd_attach_mc, qhca_cmd_detach_mc;
/* mr.c */
qhca_cmd_fn qhca_cmd_create_mr, qhca_cmd_destroy_mr, qhca_cmd_query_mr;
qhca_cmd_fn qhca_cmd_modify_mr;
/* mw.c */
qhca_cmd_fn qhca_cmd_create_mw;
/* eth_q.c */
qhca_cmd_fn qhca_cmd_create_eth_sq, qhca_cmd_destroy_eth_sq;
qhca_cmd_fn qhca_cmd_create_eth_rq, qhca_cmd_destroy_eth_rq;

/* Destroy all objects of a kind; nothing refers to them any more. */
void qhca_mcgs_free(struct qhca *e);
void qhca_flows_free(struct qhca *e);
void qhca_rqts_free(struct qhca *e);
void qhca_qps_free(struct qhca *e);
void qhca_eth_qs_free(struct qhca *e);
void qhca_srqs_free(struct qhca *e);
void qhca_xrcds_free(struct qhca *e);
void qhca_mrs_free(struct qhca *e);
void qhca_eqs_free(struct qhca *e);

#endif /* QHCA_ADMIN_H */

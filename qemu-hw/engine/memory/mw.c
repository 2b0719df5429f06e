/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows (IBA 10.6.7): keys that let a peer use part of a region, bound
 * and invalidated by work requests.  Types 1 and 2B; an adapter has either 2A
 * or 2B, and 2B is the stricter.
 */
#include <stdlib.h>

#include "memory/memory.h"

void qhca_mw_unbind(struct qhca *e, struct qhca_mw *mw)
{
    if (!mw->bound) {
        return;
    }
    qhca_memlink_revoke_key(e, mw->mr.key >> QHCA_KEY_INDEX_SHIFT);
    mw->bound->windows--;
    mw->bound = NULL;
    mw->mr.state = QHCA_MR_FREE;
    if (mw->qpn) {
        qhca_list_del(&mw->link);
        mw->qpn = 0;
    }
}

bool qhca_mw_unbind_all(struct qhca *e, struct qhca_list *windows)
{
    while (!qhca_list_empty(windows)) {
        if (qhca_command_spent(e)) {
            return false;
        }
        qhca_mw_unbind(e, qhca_container(windows->next, struct qhca_mw,
                                         link));
        qhca_cost(e, 1);
    }
    return true;
}

/* Find the window for the new key @key, if a QP of @pd may bind it. */
static uint8_t mw_find(struct qhca *e, uint32_t pd, uint32_t key,
                       struct qhca_mw **mwp)
{
    struct qhca_mr *mr = qhca_idr_get(&e->mem->mrs,
                                      key >> QHCA_KEY_INDEX_SHIFT);

    if (!mr || !(mr->flags & QHCA_MR_F_MW)) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != pd) {
        return QHCA_SYN_KEY_PD;
    }
    *mwp = qhca_mr_mw(mr);
    return (mr->flags & QHCA_MR_F_MW2) && (*mwp)->bound ? QHCA_SYN_MW_BOUND :
                                                          QHCA_SYN_NONE;
}

uint8_t qhca_mw_check(const struct qhca_mw *mw, const struct qhca_mr *mr,
                      uint64_t addr, uint64_t len, uint32_t flags)
{
    bool type2 = mw->mr.flags & QHCA_MR_F_MW2;
    uint64_t off;

    if ((flags & ~(QHCA_BIND_ACCESS | QHCA_BIND_ZERO_BASED)) ||
        ((flags & QHCA_BIND_ZERO_BASED) && !type2)) {
        return QHCA_SYN_KEY_ACCESS;
    }
    if (!len) {
        return type2 ? QHCA_SYN_KEY_BOUNDS : QHCA_SYN_NONE;
    }
    if (!mr || mr->state != QHCA_MR_VALID || (mr->flags & QHCA_MR_F_MW)) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != mw->mr.pd) {
        return QHCA_SYN_KEY_PD;
    }
    if (!(mr->access & QHCA_ACCESS_MW_BIND) ||
        ((flags & (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_ATOMIC)) &&
         !(mr->access & QHCA_ACCESS_LOCAL_WRITE))) {
        return QHCA_SYN_KEY_ACCESS;
    }
    off = addr - mr->iova;
    return addr < mr->iova || off > mr->len || len > mr->len - off ||
           addr + (len - 1) < addr ? QHCA_SYN_KEY_BOUNDS : QHCA_SYN_NONE;
}

uint8_t qhca_mw_bind(struct qhca *e, uint32_t pd, uint32_t qpn,
                     struct qhca_list *windows, const struct qhca_sq_wqe *wqe)
{
    uint32_t key = qhca_le32(wqe->remote.rkey);
    uint32_t flags = qhca_le32(wqe->remote.arg);
    uint64_t addr = qhca_le64(wqe->ctrl.arg0);
    uint64_t len = qhca_le64(wqe->ctrl.arg1);
    struct qhca_mr *mr = qhca_mr_get(e, (uint32_t)qhca_le64(wqe->remote.addr));
    struct qhca_mw *mw = NULL;
    uint8_t syn = mw_find(e, pd, key, &mw);

    syn = syn ? syn : qhca_mw_check(mw, mr, addr, len, flags);
    if (syn) {
        return syn;
    }
    qhca_mw_unbind(e, mw);
    mw->mr.key = key;
    if (!len) {
        return QHCA_SYN_NONE;
    }
    mw->bound = mr;
    mr->windows++;
    mw->off = addr - mr->iova;
    mw->mr.access = flags & QHCA_BIND_ACCESS;
    mw->mr.iova = flags & QHCA_BIND_ZERO_BASED ? 0 : addr;
    mw->mr.len = len;
    mw->mr.state = QHCA_MR_VALID;
    if (mw->mr.flags & QHCA_MR_F_MW2) {
        mw->qpn = qpn;
        qhca_list_add_tail(windows, &mw->link);
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_cmd_create_mw(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_mpt *in = c->in;
    struct qhca_mw *mw;
    uint32_t index;

    if (in->flags != QHCA_MR_F_MW1 && in->flags != QHCA_MR_F_MW2) {
        return qhca_bad(c, offsetof(struct qhca_mpt, flags));
    }
    if (in->access) {
        return qhca_bad(c, offsetof(struct qhca_mpt, access));
    }
    if (!qhca_idr_get(&e->mem->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_mpt, pd));
    }
    mw = calloc(1, sizeof(*mw));
    if (!mw) {
        return QHCA_ST_NO_RESOURCES;
    }
    if (!qhca_idr_add(&e->mem->mrs, &mw->mr, &index)) {
        free(mw);
        return QHCA_ST_NO_RESOURCES;
    }
    mw->mr.flags = in->flags;
    mw->mr.state = QHCA_MR_FREE;
    mw->mr.pd = qhca_le32(in->pd);
    e->mem->pd_refs[mw->mr.pd]++;
    mw->mr.key = index << QHCA_KEY_INDEX_SHIFT |
                 (qhca_le32(in->key) & QHCA_KEY_BYTE_MASK);
    qhca_list_init(&mw->link);
    c->obj = mw->mr.key;
    return QHCA_ST_OK;
}

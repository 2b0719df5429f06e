/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kernel-driver/ib/poll.c needs from the kernel and the driver, for user
 * space: one thread, no interrupts, and locks that only record whether they are
 * held.
 */
#ifndef POLL_QHCA_IB_H
#define POLL_QHCA_IB_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cq_ring_user.h"
#include <rdma/qhca-hw.h>

typedef uint16_t u16;
typedef uint64_t u64;

#define __force
#define likely(x)               (x)
#define unlikely(x)             (x)
#define min(a, b)               ((a) < (b) ? (a) : (b))
#define le16_to_cpu(x)          le16toh(x)
#define le64_to_cpu(x)          le64toh(x)
#define cpu_to_le32(x)          htole32(x)
#define mb()                    __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define WRITE_ONCE(x, v)        (*(volatile __typeof__(x) *)&(x) = (v))
#define smp_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define smp_load_acquire(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define container_of(p, type, member) \
    ((type *)((char *)(p) - offsetof(type, member)))

typedef struct { bool held; } spinlock_t;

void unlocked(spinlock_t *lock);    /* the test's: others may go on now */

static inline void spin_lock(spinlock_t *lock)
{
    if (lock->held) {
        abort();
    }
    lock->held = true;
}

static inline void spin_unlock(spinlock_t *lock)
{
    if (!lock->held) {
        abort();
    }
    lock->held = false;
    unlocked(lock);
}

#define spin_lock_irqsave(lock, flags)          ((flags) = 0, spin_lock(lock))
#define spin_unlock_irqrestore(lock, flags)     ((void)(flags), spin_unlock(lock))

struct list_head {
    struct list_head *next, *prev;
};

#define list_for_each_entry(pos, head, member)                              \
    for (pos = container_of((head)->next, __typeof__(*pos), member);        \
         &pos->member != (head);                                            \
         pos = container_of(pos->member.next, __typeof__(*pos), member))

/* ------------------------------------------------- verbs of the kernel */

enum ib_wc_status {
    IB_WC_SUCCESS, IB_WC_LOC_QP_OP_ERR = 2, IB_WC_WR_FLUSH_ERR = 5,
    IB_WC_GENERAL_ERR = 21,
};

enum ib_wc_opcode {
    IB_WC_SEND, IB_WC_RDMA_WRITE, IB_WC_RDMA_READ, IB_WC_COMP_SWAP,
    IB_WC_FETCH_ADD, IB_WC_LOCAL_INV, IB_WC_REG_MR, IB_WC_FLUSH,
    IB_WC_ATOMIC_WRITE, IB_WC_MASKED_COMP_SWAP, IB_WC_MASKED_FETCH_ADD,
    IB_WC_RECV, IB_WC_RECV_RDMA_WITH_IMM,
};

enum {
    IB_WC_GRH = 1, IB_WC_WITH_IMM = 2, IB_WC_WITH_INVALIDATE = 4,
    IB_WC_WITH_SMAC = 16, IB_WC_WITH_VLAN = 32, IB_WC_WITH_NETWORK_HDR_TYPE = 64,
};

enum { RDMA_NETWORK_IPV4 = 2, RDMA_NETWORK_IPV6 = 3 };

struct ib_grh {
    u8 bytes[40];
};

struct ib_device {
    int unused;
};

#define ibdev_err_ratelimited(ibdev, ...)   ((void)(ibdev))

struct ib_qp {
    struct ib_device *device;
};

struct ib_cq {
    struct ib_device *device;
};

struct ib_wc {
    u64 wr_id;
    enum ib_wc_status status;
    enum ib_wc_opcode opcode;
    u32 vendor_err;
    u32 byte_len;
    struct ib_qp *qp;
    union {
        __be32 imm_data;
        u32 invalidate_rkey;
    } ex;
    u32 src_qp;
    int wc_flags;
    u16 pkey_index;
    u8 sl;
    u32 port_num;
    u8 smac[6];
    u16 vlan_id;
    u8 network_hdr_type;
};

/* ---------------------------------------------------------- the driver */

#define QHCA_IB_PORT    1
#define QPS_MAX         4

struct qhca_ib_qp;

struct qhca_queue_buf {
    char *mem;
};

struct xarray {
    struct qhca_ib_qp *qp[QPS_MAX];
};

static inline struct qhca_ib_qp *xa_load(struct xarray *xa, u32 index)
{
    return index < QPS_MAX ? xa->qp[index] : NULL;
}

struct qhca_ib_cq {
    struct ib_cq ibcq;
    struct {
        struct qhca_queue_buf kbuf;
    } buf;
    struct {
        struct qhca_dbrec *rec;
    } dbrec;
    u32 cqn;
    u8 shift;
    struct xarray qps;
    spinlock_t lock;
    u32 ci;
    struct list_head send_qps;
    struct list_head recv_qps;
};

struct qhca_ib_wr {
    u64 wr_id;
    u32 len;
};

struct qhca_ib_ring {
    struct qhca_ib_wr *wr;
    spinlock_t lock;
    u32 head;
    u32 tail;
    u8 shift;
};

struct qhca_ib_srq {
    spinlock_t lock;
};

struct qhca_ib_qp {
    struct ib_qp ibqp;
    struct qhca_ib_cq *scq;
    struct qhca_ib_cq *rcq;
    struct qhca_ib_srq *srq;
    struct qhca_ib_ring sq;
    struct qhca_ib_ring rq;
    u32 qpn;
    u8 type;
    struct list_head scq_entry;
    struct list_head rcq_entry;
};

struct qhca_ib_dev {
    struct ib_device ibdev;
    bool *qdev;                 /* is the device dead? */
};

static inline bool qhca_dev_dead(bool *dead)
{
    return *dead;
}

static inline void *qhca_queue_buf_ptr(struct qhca_queue_buf *kbuf,
                                       size_t offset)
{
    return kbuf->mem + offset;
}

static inline struct qhca_ib_dev *to_qdev(struct ib_device *ibdev)
{
    return container_of(ibdev, struct qhca_ib_dev, ibdev);
}

static inline struct qhca_ib_cq *to_qcq(struct ib_cq *ibcq)
{
    return container_of(ibcq, struct qhca_ib_cq, ibcq);
}

static inline bool qhca_ib_qp_is_ud(const struct qhca_ib_qp *qp)
{
    return qp->type == QHCA_QPT_UD || qp->type == QHCA_QPT_GSI;
}

/* The test's. */
void qhca_dev_kill(bool *dead, const char *why);
bool qhca_ib_srq_take_wqe(struct qhca_ib_srq *srq, u32 index,
                          struct qhca_ib_wr *wr);
void qhca_ib_srq_free_wqe(struct qhca_ib_srq *srq, u32 index);
void qhca_ib_srq_free_wqe_locked(struct qhca_ib_srq *srq, u32 index);

/* poll.c's. */
int qhca_ib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
bool qhca_ib_cq_has_cqe(struct qhca_ib_cq *cq);
bool qhca_ib_cq_has_flush(struct qhca_ib_cq *cq);
void qhca_ib_cq_clean(struct qhca_ib_cq *cq, u32 qpn, struct qhca_ib_srq *srq);

#endif /* POLL_QHCA_IB_H */

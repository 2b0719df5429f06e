/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instead of kernel-driver/ib/qhca_ib.h: what flow.c and contexts.c use of it and
 * of the kernel's rdma/ib_verbs.h, with the same names and values.
 */
#ifndef QHCA_IB_H
#define QHCA_IB_H

#include "kernel_user.h"
#include "qhca_core.h"
#include <rdma/qhca-abi.h>

#define QHCA_IB_PORT    1
#define ERR_PTR(err)    ((void *)(long)(err))
#define PTR_ERR(p)      ((long)(p))
#define IS_ERR(p)       ((unsigned long)(p) >= (unsigned long)-4095)

enum ib_flow_attr_type {
    IB_FLOW_ATTR_NORMAL,
    IB_FLOW_ATTR_ALL_DEFAULT,
    IB_FLOW_ATTR_MC_DEFAULT,
    IB_FLOW_ATTR_SNIFFER,
};

enum {
    IB_FLOW_SPEC_ETH = 0x20,
    IB_FLOW_SPEC_IPV4 = 0x30,
    IB_FLOW_SPEC_IPV6 = 0x31,
    IB_FLOW_SPEC_ESP = 0x34,
    IB_FLOW_SPEC_TCP = 0x40,
    IB_FLOW_SPEC_UDP = 0x41,
    IB_FLOW_SPEC_INNER = 0x100,
    IB_FLOW_SPEC_ACTION_TAG = 0x1000,
    IB_FLOW_SPEC_ACTION_DROP = 0x1001,
    IB_FLOW_SPEC_ACTION_COUNT = 0x1003,
};

#define IB_FLOW_ATTR_FLAGS_DONT_TRAP    2UL
#define IB_FLOW_ATTR_FLAGS_EGRESS       4UL
#define IB_IPV4_DONT_FRAG               2
#define IB_IPV4_MORE_FRAG               4

struct ib_flow_eth_filter {
    u8 dst_mac[6];
    u8 src_mac[6];
    __be16 ether_type;
    __be16 vlan_tag;
};

struct ib_flow_ipv4_filter {
    __be32 src_ip;
    __be32 dst_ip;
    u8 proto;
    u8 tos;
    u8 ttl;
    u8 flags;
};

struct ib_flow_ipv6_filter {
    u8 src_ip[16];
    u8 dst_ip[16];
    __be32 flow_label;
    u8 next_hdr;
    u8 traffic_class;
    u8 hop_limit;
} __attribute__((packed));

struct ib_flow_tcp_udp_filter {
    __be16 dst_port;
    __be16 src_port;
};

#define IB_FLOW_SPEC(name)                                                  \
    struct ib_flow_spec_##name {                                            \
        u32 type;                                                           \
        u16 size;                                                           \
        struct ib_flow_##name##_filter val;                                 \
        struct ib_flow_##name##_filter mask;                                \
    }

IB_FLOW_SPEC(eth);
IB_FLOW_SPEC(ipv4);
IB_FLOW_SPEC(ipv6);
IB_FLOW_SPEC(tcp_udp);

struct ib_flow_spec_action_tag {
    u32 type;
    u16 size;
    u32 tag_id;
};

union ib_flow_spec {
    struct {
        u32 type;
        u16 size;
    };
    struct ib_flow_spec_eth eth;
    struct ib_flow_spec_ipv4 ipv4;
    struct ib_flow_spec_tcp_udp tcp_udp;
    struct ib_flow_spec_ipv6 ipv6;
    struct ib_flow_spec_action_tag flow_tag;
};

struct ib_flow_attr {
    enum ib_flow_attr_type type;
    u16 size;
    u16 priority;
    u32 flags;
    u8 num_of_specs;
    u32 port;
    union ib_flow_spec flows[];
};

/* Shared receive queues. */

enum ib_srq_type {
    IB_SRQT_BASIC,
    IB_SRQT_XRC,
    IB_SRQT_TM,
};

struct ib_srq_attr {
    u32 max_wr;
    u32 max_sge;
    u32 srq_limit;
};

struct ib_srq_init_attr {
    struct ib_srq_attr attr;
    enum ib_srq_type srq_type;
    struct {
        struct ib_cq *cq;
        union {
            struct { struct ib_xrcd *xrcd; } xrc;
            struct { u32 max_num_tags; } tag_matching;
        };
    } ext;
};

static inline bool ib_srq_has_cq(enum ib_srq_type type)
{
    return type == IB_SRQT_XRC || type == IB_SRQT_TM;
}

struct ib_udata;
struct ib_umem;
struct ib_cq { int unused; };
struct ib_xrcd { int unused; };
struct ib_device { int unused; };
struct ib_qp { struct ib_device *device; };
struct ib_flow { struct ib_device *device; };

struct qhca_ib_dev {
    struct ib_device ibdev;
    struct qhca_dev *qdev;
};

struct qhca_buf_table { struct qhca_buf desc; };
struct qhca_queue_buf { struct qhca_buf_table table; };

struct qhca_ib_queue_buf {
    struct ib_umem *umem;
    struct qhca_buf_table table;
    struct qhca_queue_buf kbuf;
};

struct qhca_ib_dbrec {
    struct qhca_dbrec *rec;
    dma_addr_t dma;
    struct qhca_ib_dbrec_page *page;
};

struct qhca_ib_cq {
    struct ib_cq ibcq;
    struct qhca_ib_queue_buf buf;
    struct qhca_ib_dbrec dbrec;
    u32 cqn;
    u8 shift;
};

struct qhca_ib_srq {
    struct qhca_ib_queue_buf buf;
    struct qhca_ib_queue_buf idx;
    struct qhca_ib_queue_buf ops;
    u8 ops_shift;
    u8 ops_stride;
    struct qhca_ib_dbrec dbrec;
    u32 srqn;
    u8 shift;
    u8 stride;
};

struct qhca_ib_ring {
    struct qhca_ib_queue_buf buf;
    u8 shift;
    u8 stride;
};

struct qhca_ib_qp {
    struct ib_qp ibqp;
    struct qhca_ib_cq *scq;
    struct qhca_ib_cq *rcq;
    struct qhca_ib_srq *srq;
    struct qhca_ib_ring sq;
    struct qhca_ib_ring rq;
    struct qhca_ib_dbrec rq_dbrec;
    struct qhca_ib_dbrec sq_dbrec;
    u32 qpn;
    u8 type;
    bool user;
    bool block_mc_loop;
    bool strip_vlan;
};

struct qhca_ib_wq {
    struct qhca_ib_queue_buf buf;
    struct qhca_ib_dbrec dbrec;
    u32 wqn;
};

struct qhca_ib_xrcd {
    struct ib_xrcd ibxrcd;
    u32 xrcd;
};

struct qhca_ib_flow {
    struct ib_flow ibflow;
    u32 num;
};

static inline struct qhca_ib_dev *to_qdev(struct ib_device *ibdev)
{
    return container_of(ibdev, struct qhca_ib_dev, ibdev);
}

static inline struct qhca_ib_qp *to_qqp(struct ib_qp *ibqp)
{
    return container_of(ibqp, struct qhca_ib_qp, ibqp);
}

static inline struct qhca_ib_cq *to_qcq(struct ib_cq *ibcq)
{
    return container_of(ibcq, struct qhca_ib_cq, ibcq);
}

static inline struct qhca_ib_xrcd *to_qxrcd(struct ib_xrcd *ibxrcd)
{
    return container_of(ibxrcd, struct qhca_ib_xrcd, ibxrcd);
}

static inline struct qhca_buf
qhca_ib_queue_buf_desc(const struct qhca_ib_queue_buf *buf)
{
    return buf->umem ? buf->table.desc : buf->kbuf.table.desc;
}

int qhca_ib_udata_none(struct ib_udata *udata);
int qhca_ib_destroy(struct qhca_ib_dev *dev, u8 opcode, u32 obj);

#endif /* QHCA_IB_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instead of kernel-driver/ib/qhca_ib.h: what flow.c uses of it and of the
 * kernel's rdma/ib_verbs.h, with the same names and values.
 */
#ifndef QHCA_IB_H
#define QHCA_IB_H

#include "kernel_user.h"
#include "qhca_core.h"

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

struct ib_udata;
struct ib_device { int unused; };
struct ib_qp { struct ib_device *device; };
struct ib_flow { struct ib_device *device; };

struct qhca_ib_dev {
    struct ib_device ibdev;
    struct qhca_dev *qdev;
};

struct qhca_ib_qp {
    struct ib_qp ibqp;
    u32 qpn;
    u8 type;
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

int qhca_ib_udata_none(struct ib_udata *udata);
int qhca_ib_destroy(struct qhca_ib_dev *dev, u8 opcode, u32 obj);

#endif /* QHCA_IB_H */

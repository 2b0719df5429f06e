// SPDX-License-Identifier: GPL-2.0
/* Flow steering: converts the verbs' lists of headers to the device's match. */
#include <linux/if_ether.h>
#include <linux/in.h>

#include "qhca_ib.h"

static_assert(QHCA_FLOW_NORMAL == (int)IB_FLOW_ATTR_NORMAL);
static_assert(QHCA_FLOW_ALL_DEFAULT == (int)IB_FLOW_ATTR_ALL_DEFAULT);
static_assert(QHCA_FLOW_MC_DEFAULT == (int)IB_FLOW_ATTR_MC_DEFAULT);
static_assert(QHCA_FLOW_SNIFFER == (int)IB_FLOW_ATTR_SNIFFER);

/* One side of a rule: the value, or its mask. */
static void flow_put_eth(struct qhca_flow_match *m,
			 const struct ib_flow_eth_filter *f)
{
	memcpy(m->dmac, f->dst_mac, ETH_ALEN);
	memcpy(m->smac, f->src_mac, ETH_ALEN);
	m->ethertype = f->ether_type;
	m->vlan = f->vlan_tag;
}

/* The verbs order the flags differently. */
static u8 flow_ip_flags(u8 flags)
{
	return (flags & IB_IPV4_DONT_FRAG ? 2 : 0) |
	       (flags & IB_IPV4_MORE_FRAG ? 1 : 0);
}

static void flow_put_ipv4(struct qhca_flow_match *m,
			  const struct ib_flow_ipv4_filter *f)
{
	memcpy(m->src_ip + 12, &f->src_ip, 4);
	memcpy(m->dst_ip + 12, &f->dst_ip, 4);
	m->proto = f->proto;
	m->tos = f->tos;
	m->ttl = f->ttl;
	m->ip_flags = flow_ip_flags(f->flags);
}

static void flow_put_ipv6(struct qhca_flow_match *m,
			  const struct ib_flow_ipv6_filter *f)
{
	memcpy(m->src_ip, f->src_ip, 16);
	memcpy(m->dst_ip, f->dst_ip, 16);
	m->proto = f->next_hdr;
	m->tos = f->traffic_class;
	m->ttl = f->hop_limit;
	m->flow_label = f->flow_label & cpu_to_be32(0xfffff);
}

static void flow_put_ports(struct qhca_flow_match *m,
			   const struct ib_flow_tcp_udp_filter *f)
{
	m->src_port = f->src_port;
	m->dst_port = f->dst_port;
}

/* Layers that a rule may match at most once. */
enum { SEEN_ETH = 1, SEEN_L3 = 2, SEEN_L4 = 4, SEEN_TAG = 8 };

static int flow_add_spec(struct qhca_flow *flow, const union ib_flow_spec *spec,
			 int *seen)
{
	int layer;

	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		layer = SEEN_ETH;
		flow_put_eth(&flow->value, &spec->eth.val);
		flow_put_eth(&flow->mask, &spec->eth.mask);
		if (flow->mask.vlan) {
			flow->value.tagged = 1;
			flow->mask.tagged = 1;
		}
		break;
	case IB_FLOW_SPEC_IPV4:
		layer = SEEN_L3;
		if (spec->ipv4.mask.flags &
		    ~(IB_IPV4_DONT_FRAG | IB_IPV4_MORE_FRAG))
			return -EINVAL;
		flow_put_ipv4(&flow->value, &spec->ipv4.val);
		flow_put_ipv4(&flow->mask, &spec->ipv4.mask);
		flow->value.l3 = 4;
		flow->mask.l3 = 0xff;
		break;
	case IB_FLOW_SPEC_IPV6:
		layer = SEEN_L3;
		flow_put_ipv6(&flow->value, &spec->ipv6.val);
		flow_put_ipv6(&flow->mask, &spec->ipv6.mask);
		flow->value.l3 = 6;
		flow->mask.l3 = 0xff;
		break;
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP:
		layer = SEEN_L4;
		flow_put_ports(&flow->value, &spec->tcp_udp.val);
		flow_put_ports(&flow->mask, &spec->tcp_udp.mask);
		flow->value.l4 = spec->type == IB_FLOW_SPEC_TCP ? IPPROTO_TCP :
								  IPPROTO_UDP;
		flow->mask.l4 = 0xff;
		break;
	case IB_FLOW_SPEC_ACTION_TAG:
		layer = SEEN_TAG;
		flow->tag = cpu_to_le32(spec->flow_tag.tag_id);
		break;
	case IB_FLOW_SPEC_ACTION_DROP:
		flow->flags |= QHCA_FLOW_F_DROP;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
	if (*seen & layer)
		return -EINVAL;
	*seen |= layer;
	return 0;
}

static int flow_fill(struct qhca_flow *flow, const struct ib_flow_attr *attr)
{
	const void *p = attr->flows;
	int i, err, seen = 0;

	if (attr->port != QHCA_IB_PORT || attr->type > IB_FLOW_ATTR_SNIFFER)
		return -EINVAL;
	if (attr->flags & ~IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	flow->type = attr->type;
	flow->priority = cpu_to_le16(attr->priority);
	if (attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		flow->flags |= QHCA_FLOW_F_DONT_TRAP;
	for (i = 0; i < attr->num_of_specs; i++) {
		const union ib_flow_spec *spec = p;

		err = flow_add_spec(flow, spec, &seen);
		if (err)
			return err;
		p += spec->size;
	}
	/* the other types do not match by headers */
	if (seen & ~SEEN_TAG && attr->type != IB_FLOW_ATTR_NORMAL)
		return -EINVAL;
	return 0;
}

/**
 * qhca_ib_create_flow - ib_device_ops.create_flow
 * @ibqp: raw packet QP, with queues or an indirection table
 * @attr: the rule; the core has checked its sizes
 * @udata: must be empty
 *
 * Return: the flow, or -EINVAL (contradictions), -EOPNOTSUPP (headers, actions
 * and QP types that the device does not support), -ENOMEM (too many rules, or
 * too many different masks), -EIO.
 */
struct ib_flow *qhca_ib_create_flow(struct ib_qp *ibqp,
				    struct ib_flow_attr *attr,
				    struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_flow flow = {};
	struct qhca_ib_flow *f;
	int err;

	if (qhca_ib_udata_none(udata))
		return ERR_PTR(-EOPNOTSUPP);
	if (qp->type != QHCA_QPT_RAW && qp->type != QHCA_QPT_RSS)
		return ERR_PTR(-EOPNOTSUPP);
	flow.qpn = cpu_to_le32(qp->qpn);
	err = flow_fill(&flow, attr);
	if (err)
		return ERR_PTR(err);
	f = kzalloc(sizeof(*f), GFP_KERNEL);
	if (!f)
		return ERR_PTR(-ENOMEM);
	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_FLOW, &flow,
			     sizeof(flow), &f->num);
	if (err) {
		kfree(f);
		return ERR_PTR(err);
	}
	return &f->ibflow;
}

/* ib_device_ops.destroy_flow */
int qhca_ib_destroy_flow(struct ib_flow *ibflow)
{
	struct qhca_ib_flow *f = container_of(ibflow, struct qhca_ib_flow,
					      ibflow);
	int err;

	err = qhca_ib_destroy(to_qdev(ibflow->device), QHCA_CMD_DESTROY_FLOW,
			      f->num);
	if (!err)
		kfree(f);
	return err;
}

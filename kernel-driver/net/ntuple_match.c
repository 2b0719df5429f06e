// SPDX-License-Identifier: GPL-2.0
/* From ethtool's description of frames to the device's match. */
#include <linux/errno.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/string.h>

#include "ntuple_match.h"

/* One side of a rule: the value, or its mask. */
static void qhca_match_ether(struct qhca_flow_match *m, const struct ethhdr *h)
{
	memcpy(m->dmac, h->h_dest, ETH_ALEN);
	memcpy(m->smac, h->h_source, ETH_ALEN);
	m->ethertype = h->h_proto;
}

static void qhca_match_ports4(struct qhca_flow_match *m,
			      const struct ethtool_tcpip4_spec *s)
{
	memcpy(m->src_ip + 12, &s->ip4src, 4);
	memcpy(m->dst_ip + 12, &s->ip4dst, 4);
	m->src_port = s->psrc;
	m->dst_port = s->pdst;
	m->tos = s->tos;
}

static void qhca_match_ports6(struct qhca_flow_match *m,
			      const struct ethtool_tcpip6_spec *s)
{
	memcpy(m->src_ip, s->ip6src, 16);
	memcpy(m->dst_ip, s->ip6dst, 16);
	m->src_port = s->psrc;
	m->dst_port = s->pdst;
	m->tos = s->tclass;
}

/* The first four bytes behind the IP header: for TCP and UDP, the ports. */
static void qhca_match_l4_bytes(struct qhca_flow_match *m, __be32 bytes)
{
	u32 v = be32_to_cpu(bytes);

	m->src_port = cpu_to_be16(v >> 16);
	m->dst_port = cpu_to_be16(v & 0xffff);
}

static void qhca_match_ip4(struct qhca_flow_match *m,
			   const struct ethtool_usrip4_spec *s)
{
	memcpy(m->src_ip + 12, &s->ip4src, 4);
	memcpy(m->dst_ip + 12, &s->ip4dst, 4);
	qhca_match_l4_bytes(m, s->l4_4_bytes);
	m->tos = s->tos;
	m->proto = s->proto;
}

static void qhca_match_ip6(struct qhca_flow_match *m,
			   const struct ethtool_usrip6_spec *s)
{
	memcpy(m->src_ip, s->ip6src, 16);
	memcpy(m->dst_ip, s->ip6dst, 16);
	qhca_match_l4_bytes(m, s->l4_4_bytes);
	m->tos = s->tclass;
	m->proto = s->l4_proto;
}

static void qhca_match_l3(struct qhca_flow_match *value,
			  struct qhca_flow_match *mask, u8 l3)
{
	value->l3 = l3;
	mask->l3 = 0xff;
}

/* l4 identifies TCP and UDP, also behind extension headers. */
static void qhca_match_l4(struct qhca_flow_match *value,
			  struct qhca_flow_match *mask, u8 proto)
{
	value->l4 = proto;
	mask->l4 = 0xff;
}

/* The device finds ports of TCP and UDP only. */
static int qhca_match_other_l4(struct qhca_flow_match *value,
			       struct qhca_flow_match *mask, u8 proto)
{
	if (mask->src_port || mask->dst_port)
		return -EOPNOTSUPP;
	value->proto = proto;
	mask->proto = 0xff;
	return 0;
}

static int qhca_match_user_ip(struct qhca_flow_match *value,
			      struct qhca_flow_match *mask)
{
	if (!mask->src_port && !mask->dst_port)
		return 0;
	if (mask->proto != 0xff ||
	    (value->proto != IPPROTO_TCP && value->proto != IPPROTO_UDP))
		return -EOPNOTSUPP;
	qhca_match_l4(value, mask, value->proto);
	return 0;
}

static int qhca_match_ext(const struct ethtool_rx_flow_spec *fs,
			  struct qhca_flow_match *value,
			  struct qhca_flow_match *mask)
{
	if (fs->flow_type & FLOW_EXT) {
		if (fs->m_ext.data[0] || fs->m_ext.data[1])
			return -EOPNOTSUPP;
		/* the device strips tags of one type */
		if (fs->m_ext.vlan_etype &&
		    (fs->m_ext.vlan_etype != htons(0xffff) ||
		     fs->h_ext.vlan_etype != htons(ETH_P_8021Q)))
			return -EOPNOTSUPP;
		if (fs->m_ext.vlan_etype || fs->m_ext.vlan_tci) {
			value->tagged = 1;
			mask->tagged = 1;
		}
		value->vlan = fs->h_ext.vlan_tci;
		mask->vlan = fs->m_ext.vlan_tci;
	}
	if (fs->flow_type & FLOW_MAC_EXT) {
		memcpy(value->dmac, fs->h_ext.h_dest, ETH_ALEN);
		memcpy(mask->dmac, fs->m_ext.h_dest, ETH_ALEN);
	}
	return 0;
}

/**
 * qhca_ntuple_match - convert a rule to a match of the device
 * @fs: the rule
 * @value: filled in with the value
 * @mask: filled in with its mask
 *
 * Return: 0, -EINVAL (contradiction), -EOPNOTSUPP (a field that the device does
 * not match).
 */
int qhca_ntuple_match(const struct ethtool_rx_flow_spec *fs,
		      struct qhca_flow_match *value,
		      struct qhca_flow_match *mask)
{
	u32 type = fs->flow_type & ~(FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS);
	int err = 0;

	memset(value, 0, sizeof(*value));
	memset(mask, 0, sizeof(*mask));
	switch (type) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case SCTP_V4_FLOW:
		qhca_match_ports4(value, &fs->h_u.tcp_ip4_spec);
		qhca_match_ports4(mask, &fs->m_u.tcp_ip4_spec);
		qhca_match_l3(value, mask, 4);
		break;
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
	case SCTP_V6_FLOW:
		qhca_match_ports6(value, &fs->h_u.tcp_ip6_spec);
		qhca_match_ports6(mask, &fs->m_u.tcp_ip6_spec);
		qhca_match_l3(value, mask, 6);
		break;
	case IP_USER_FLOW:
		if (fs->m_u.usr_ip4_spec.ip_ver ||
		    fs->h_u.usr_ip4_spec.ip_ver != ETH_RX_NFC_IP4)
			return -EINVAL;
		qhca_match_ip4(value, &fs->h_u.usr_ip4_spec);
		qhca_match_ip4(mask, &fs->m_u.usr_ip4_spec);
		qhca_match_l3(value, mask, 4);
		err = qhca_match_user_ip(value, mask);
		break;
	case IPV6_USER_FLOW:
		qhca_match_ip6(value, &fs->h_u.usr_ip6_spec);
		qhca_match_ip6(mask, &fs->m_u.usr_ip6_spec);
		qhca_match_l3(value, mask, 6);
		err = qhca_match_user_ip(value, mask);
		break;
	case ETHER_FLOW:
		qhca_match_ether(value, &fs->h_u.ether_spec);
		qhca_match_ether(mask, &fs->m_u.ether_spec);
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (err)
		return err;
	switch (type) {
	case TCP_V4_FLOW:
	case TCP_V6_FLOW:
		qhca_match_l4(value, mask, IPPROTO_TCP);
		break;
	case UDP_V4_FLOW:
	case UDP_V6_FLOW:
		qhca_match_l4(value, mask, IPPROTO_UDP);
		break;
	case SCTP_V4_FLOW:
	case SCTP_V6_FLOW:
		err = qhca_match_other_l4(value, mask, IPPROTO_SCTP);
		break;
	}
	return err ?: qhca_match_ext(fs, value, mask);
}

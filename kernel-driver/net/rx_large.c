// SPDX-License-Identifier: GPL-2.0
/*
 * Received packets that hold many frames. The stack gets them as its own GRO
 * would have built them: segmentation can restore the frames, for a socket that
 * wants single datagrams or for the next hop.
 */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include <net/udp.h>

#include "netdev.h"

/* Where the headers are, from the start of the frame. */
struct large {
	u32 l3;
	u32 l4;
	u32 payload;
	u8 proto;
	bool v6;
	/* the segment is in an IP packet inside another one */
	bool tunnel;
	bool outer_v6;
};

static const void *large_at(const struct sk_buff *skb, u32 at, u32 len)
{
	return skb_headlen(skb) < at + len ? NULL : skb->data + at;
}

static bool large_ip4(const struct sk_buff *skb, struct large *l)
{
	const struct iphdr *ip = large_at(skb, l->l3, sizeof(*ip));

	if (!ip || ip->version != 4 || ip->ihl < 5 || ip_is_fragment(ip) ||
	    l->l3 + ntohs(ip->tot_len) != skb->len)
		return false;
	l->l4 = l->l3 + ip->ihl * 4;
	l->proto = ip->protocol;
	return true;
}

static bool large_ip6(const struct sk_buff *skb, struct large *l)
{
	const struct ipv6hdr *ip = large_at(skb, l->l3, sizeof(*ip));
	__be16 frag;
	int l4;

	if (!ip || ip->version != 6 ||
	    l->l3 + sizeof(*ip) + ntohs(ip->payload_len) != skb->len)
		return false;
	l->proto = ip->nexthdr;
	l4 = ipv6_skip_exthdr(skb, l->l3 + sizeof(*ip), &l->proto, &frag);
	if (l4 < 0 || frag)
		return false;
	l->l4 = l4;
	return true;
}

static bool large_ip(const struct sk_buff *skb, struct large *l)
{
	return l->v6 ? large_ip6(skb, l) : large_ip4(skb, l);
}

/* Parse the inner packet, if there is one. */
static bool large_tunnel(const struct sk_buff *skb, struct large *l)
{
	if (l->proto != IPPROTO_IPIP && l->proto != IPPROTO_IPV6)
		return true;
	l->tunnel = true;
	l->outer_v6 = l->v6;
	l->v6 = l->proto == IPPROTO_IPV6;
	l->l3 = l->l4;
	return large_ip(skb, l) && l->proto == IPPROTO_TCP;
}

static bool large_l4(const struct sk_buff *skb, struct large *l)
{
	const struct tcphdr *th = (const void *)(skb->data + l->l4);
	u32 end;

	if (l->proto == IPPROTO_TCP) {
		if (skb_headlen(skb) < l->l4 + sizeof(*th) || th->doff < 5)
			return false;
		end = l->l4 + th->doff * 4;
	} else if (l->proto == IPPROTO_UDP) {
		end = l->l4 + sizeof(struct udphdr);
	} else {
		return false;
	}
	if (skb_headlen(skb) < end || skb->len <= end)
		return false;
	l->payload = skb->len - end;
	return true;
}

static bool large_parse(const struct sk_buff *skb, struct large *l)
{
	__be16 type = ((const struct ethhdr *)skb->data)->h_proto;

	*l = (struct large){ .l3 = ETH_HLEN, .v6 = type == htons(ETH_P_IPV6) };
	return (l->v6 || type == htons(ETH_P_IP)) && large_ip(skb, l) &&
	       large_tunnel(skb, l) && large_l4(skb, l);
}

/* The value that CHECKSUM_PARTIAL expects in the field. */
static __sum16 large_pseudo_sum(const struct sk_buff *skb,
				const struct large *l)
{
	u32 len = skb->len - l->l4;

	if (l->v6) {
		const struct ipv6hdr *ip = (void *)(skb->data + l->l3);

		return ~csum_ipv6_magic(&ip->saddr, &ip->daddr, len, l->proto,
					0);
	} else {
		const struct iphdr *ip = (void *)(skb->data + l->l3);

		return ~csum_tcpudp_magic(ip->saddr, ip->daddr, len, l->proto,
					  0);
	}
}

/*
 * Segmentation repeats the identification of an IPv4 header only if the packet
 * must not be fragmented, and fails otherwise.
 */
static bool large_df(const struct sk_buff *skb, u32 at)
{
	const struct iphdr *ip = (const void *)(skb->data + at);

	return ip->version == 4 && ip->frag_off & htons(IP_DF);
}

/* Describe how the frames differ, for segmentation. */
static u32 large_tcp_type(const struct sk_buff *skb, const struct large *l,
			  u16 flags)
{
	const struct tcphdr *th = (const void *)(skb->data + l->l4);
	u32 type = l->v6 ? SKB_GSO_TCPV6 : SKB_GSO_TCPV4;

	/* only the first frame had it, unless the device says otherwise */
	if (th->cwr)
		type |= flags & QHCA_CQE_F_CWR ? QHCA_GSO_CWR : SKB_GSO_TCP_ECN;
	if (!l->tunnel) {
		if (flags & QHCA_CQE_F_SAME_ID && large_df(skb, l->l3))
			type |= SKB_GSO_TCP_FIXEDID;
		return type;
	}
	type |= l->outer_v6 ? SKB_GSO_IPXIP6 : SKB_GSO_IPXIP4;
	if (flags & QHCA_CQE_F_SAME_ID && large_df(skb, ETH_HLEN))
		type |= QHCA_GSO_FIXEDID_OUTER;
	if (flags & QHCA_CQE_F_SAME_INNER_ID && large_df(skb, l->l3))
		type |= QHCA_GSO_FIXEDID_INNER;
	return type;
}

/* Tell segmentation where the inner headers are. */
static void large_inner(struct sk_buff *skb, const struct large *l)
{
	skb->encapsulation = 1;
	skb_set_inner_protocol(skb, htons(l->v6 ? ETH_P_IPV6 : ETH_P_IP));
	skb_set_inner_network_header(skb, l->l3);
	skb_set_inner_transport_header(skb, l->l4);
}

/**
 * qhca_rx_large - turn a packet that holds many frames into a GSO packet
 * @skb: the packet, from the Ethernet header on; the device has verified its
 *	checksums
 * @cqe: what the device says about it
 *
 * Return: bytes of the headers, which each of its frames had; 0 if the packet
 * does not match the device's description.
 */
u32 qhca_rx_large(struct sk_buff *skb, const struct qhca_eth_cqe *cqe)
{
	u32 size = le16_to_cpu(cqe->gso_size), segs = cqe->gso_segs;
	struct skb_shared_info *info = skb_shinfo(skb);
	struct large l;

	if (!large_parse(skb, &l) || segs < 2 || !size ||
	    DIV_ROUND_UP(l.payload, size) != segs)
		return 0;
	if (l.proto == IPPROTO_TCP) {
		struct tcphdr *th = (void *)(skb->data + l.l4);

		th->check = large_pseudo_sum(skb, &l);
		skb->csum_offset = offsetof(struct tcphdr, check);
		info->gso_type = large_tcp_type(skb, &l,
						le16_to_cpu(cqe->flags));
		if (l.tunnel)
			large_inner(skb, &l);
	} else {
		struct udphdr *uh = (void *)(skb->data + l.l4);

		uh->check = large_pseudo_sum(skb, &l);
		skb->csum_offset = offsetof(struct udphdr, check);
		info->gso_type = SKB_GSO_UDP_L4;
	}
	/* those of the outer packet: it may be redirected before the stack looks */
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, l.tunnel ? l.l3 : l.l4);
	skb->csum_start = skb_headroom(skb) + l.l4;
	skb->ip_summed = CHECKSUM_PARTIAL;
	info->gso_size = size;
	info->gso_segs = segs;
	return skb->len - l.payload;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Received packets that hold many frames. The stack gets them as its own GRO
 * would have made them: segmentation can make the frames again, for a socket that
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
	u32 l4;
	u32 payload;
	u8 proto;
	bool v6;
};

static bool large_ip4(const struct sk_buff *skb, struct large *l)
{
	const struct iphdr *ip = (const void *)(skb->data + ETH_HLEN);

	if (skb_headlen(skb) < ETH_HLEN + sizeof(*ip) || ip->version != 4 ||
	    ip->ihl < 5 || ip_is_fragment(ip) ||
	    ETH_HLEN + ntohs(ip->tot_len) != skb->len)
		return false;
	l->l4 = ETH_HLEN + ip->ihl * 4;
	l->proto = ip->protocol;
	l->v6 = false;
	return true;
}

static bool large_ip6(const struct sk_buff *skb, struct large *l)
{
	const struct ipv6hdr *ip = (const void *)(skb->data + ETH_HLEN);
	__be16 frag;
	int l4;

	if (skb_headlen(skb) < ETH_HLEN + sizeof(*ip) || ip->version != 6 ||
	    ETH_HLEN + sizeof(*ip) + ntohs(ip->payload_len) != skb->len)
		return false;
	l->proto = ip->nexthdr;
	l4 = ipv6_skip_exthdr(skb, ETH_HLEN + sizeof(*ip), &l->proto, &frag);
	if (l4 < 0 || frag)
		return false;
	l->l4 = l4;
	l->v6 = true;
	return true;
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
	switch (((const struct ethhdr *)skb->data)->h_proto) {
	case htons(ETH_P_IP):
		return large_ip4(skb, l) && large_l4(skb, l);
	case htons(ETH_P_IPV6):
		return large_ip6(skb, l) && large_l4(skb, l);
	default:
		return false;
	}
}

/* What CHECKSUM_PARTIAL wants to find in the field. */
static __sum16 large_pseudo_sum(const struct sk_buff *skb,
				const struct large *l)
{
	u32 len = skb->len - l->l4;

	if (l->v6) {
		const struct ipv6hdr *ip = (void *)(skb->data + ETH_HLEN);

		return ~csum_ipv6_magic(&ip->saddr, &ip->daddr, len, l->proto,
					0);
	} else {
		const struct iphdr *ip = (void *)(skb->data + ETH_HLEN);

		return ~csum_tcpudp_magic(ip->saddr, ip->daddr, len, l->proto,
					  0);
	}
}

/**
 * qhca_rx_large - make a GSO packet of one that holds many frames
 * @skb: it, from the Ethernet header on; the device found its checksums right
 * @size: bytes of payload in each frame but the last
 * @segs: number of frames
 *
 * Return: bytes of the headers, which each of its frames had; 0 if the packet is
 * not what the device says.
 */
u32 qhca_rx_large(struct sk_buff *skb, u32 size, u32 segs)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	struct large l;

	if (!large_parse(skb, &l) || segs < 2 || !size ||
	    DIV_ROUND_UP(l.payload, size) != segs)
		return 0;
	if (l.proto == IPPROTO_TCP) {
		struct tcphdr *th = (void *)(skb->data + l.l4);

		th->check = large_pseudo_sum(skb, &l);
		skb->csum_offset = offsetof(struct tcphdr, check);
		info->gso_type = l.v6 ? SKB_GSO_TCPV6 : SKB_GSO_TCPV4;
		/* the first frame only had it */
		if (th->cwr)
			info->gso_type |= SKB_GSO_TCP_ECN;
	} else {
		struct udphdr *uh = (void *)(skb->data + l.l4);

		uh->check = large_pseudo_sum(skb, &l);
		skb->csum_offset = offsetof(struct udphdr, check);
		info->gso_type = SKB_GSO_UDP_L4;
	}
	skb->csum_start = skb_headroom(skb) + l.l4;
	skb->ip_summed = CHECKSUM_PARTIAL;
	info->gso_size = size;
	info->gso_segs = segs;
	return skb->len - l.payload;
}

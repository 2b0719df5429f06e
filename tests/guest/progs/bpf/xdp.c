/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * XDP programs of the tests, for frames in one buffer and in several. The
 * destination port of an IPv4 datagram determines the action; all else passes.
 *
 *   7101  dropped			7102  sent back
 *   7103  sent back, by redirection	7104  aborted
 *   7105  cut to 100 bytes of payload, sent back
 *   7106  64 bytes of zeroes longer, sent back
 *   7107  passed with metadata, its head moved to and fro
 *   7500 + N  redirected to the net device with number N, below 100
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#define SEC(name) __attribute__((section(name), used))
#define inline_ static inline __attribute__((always_inline))
#define SWAP16(x) __builtin_bswap16(x)

static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_xdp_adjust_head)(struct xdp_md *, int) = (void *)BPF_FUNC_xdp_adjust_head;
static long (*bpf_xdp_adjust_tail)(struct xdp_md *, int) = (void *)BPF_FUNC_xdp_adjust_tail;
static long (*bpf_xdp_adjust_meta)(struct xdp_md *, int) = (void *)BPF_FUNC_xdp_adjust_meta;

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

/* The frame's headers, or 0 if it is not a datagram over IPv4. */
inline_ struct frame *headers(struct xdp_md *ctx)
{
	struct frame *f = (void *)(long)ctx->data;

	if ((void *)(f + 1) > (void *)(long)ctx->data_end ||
	    f->eth.h_proto != SWAP16(ETH_P_IP) || f->ip.ihl != 5 ||
	    f->ip.protocol != IPPROTO_UDP)
		return 0;
	return f;
}

/* Back to the sender; swapping does not change the checksums. */
inline_ void turn(struct frame *f)
{
	__u32 ip = f->ip.saddr;
	__u16 port = f->udp.source;
	struct ethhdr eth = f->eth;

	__builtin_memcpy(f->eth.h_dest, eth.h_source, ETH_ALEN);
	__builtin_memcpy(f->eth.h_source, eth.h_dest, ETH_ALEN);
	f->ip.saddr = f->ip.daddr;
	f->ip.daddr = ip;
	f->udp.source = f->udp.dest;
	f->udp.dest = port;
}

/* Another length; the datagram goes without a checksum. */
inline_ int resize(struct xdp_md *ctx, struct frame *f, int by)
{
	__u16 *half;
	__u32 sum = 0;
	int i;

	f->ip.tot_len = SWAP16((__u16)(SWAP16(f->ip.tot_len) + by));
	f->udp.len = SWAP16((__u16)(SWAP16(f->udp.len) + by));
	f->udp.check = 0;
	f->ip.check = 0;
	half = (void *)((char *)f + sizeof(f->eth));
#pragma unroll
	for (i = 0; i < 10; i++)
		sum += half[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	f->ip.check = (__u16)~sum;
	turn(f);
	return bpf_xdp_adjust_tail(ctx, by) ? XDP_ABORTED : XDP_TX;
}

/* The counters that must not change in the kernel's stack. */
inline_ int pass(struct xdp_md *ctx)
{
	__u32 *meta;

	if (bpf_xdp_adjust_head(ctx, -64) || bpf_xdp_adjust_head(ctx, 64) ||
	    bpf_xdp_adjust_meta(ctx, -4))
		return XDP_ABORTED;
	meta = (void *)(long)ctx->data_meta;
	if ((void *)(meta + 1) > (void *)(long)ctx->data)
		return XDP_ABORTED;
	*meta = 7107;
	return XDP_PASS;
}

inline_ int act(struct xdp_md *ctx)
{
	struct frame *f = headers(ctx);
	__u16 port;

	if (!f)
		return XDP_PASS;
	port = SWAP16(f->udp.dest);
	if (port >= 7500 && port < 7600)
		return (int)bpf_redirect(port - 7500, 0);
	switch (port) {
	case 7101:
		return XDP_DROP;
	case 7102:
		turn(f);
		return XDP_TX;
	case 7103:
		turn(f);
		return (int)bpf_redirect(ctx->ingress_ifindex, 0);
	case 7104:
		return XDP_ABORTED;
	case 7105:
		return resize(ctx, f, 108 - (int)SWAP16(f->udp.len));
	case 7106:
		return resize(ctx, f, 64);
	case 7107:
		return pass(ctx);
	default:
		return XDP_PASS;
	}
}

SEC("xdp") int single(struct xdp_md *ctx)
{
	return act(ctx);
}

SEC("xdp.frags") int several(struct xdp_md *ctx)
{
	return act(ctx);
}

char program_license[] SEC("license") = "GPL";

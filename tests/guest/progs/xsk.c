/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AF_XDP sockets, by the kernel's interface alone: no library for them is in the guest.
 *
 *   xsk [-c] [-s] [-m] [-n] [-H BYTES] [-k BYTES] [-r ENTRIES] NETDEV QUEUE[,QUEUE...] [PORT]
 *
 * Binds a socket with a pool of its own to each queue: XDP_ZEROCOPY, or XDP_COPY (-c);
 * for frames of several buffers (-s), with metadata of frames sent (-m), without
 * XDP_USE_NEED_WAKEUP (-n), with so much headroom (-H), chunks (-k) and entries of each
 * ring (-r). With a PORT it attaches a program that redirects datagrams over IPv4 for it.
 * Prints an answer in JSON to each command that it reads:
 *
 *   fill N            offer N more buffers to each queue
 *   wait MS           sleep until a frame is there
 *   recv N MS         receive N frames, offering each buffer again; look at the payload
 *   take N MS         the same, but keep the buffers until the next fill
 *   echo N MS         the same, but send them back
 *   send N BYTES FROM TO PORT WHAT...  send N datagrams of BYTES of payload from the first
 *                     queue: MAC,IP FROM and TO; WHAT: "csum", "stamp", "bad"
 *   state             how the first socket was bound, and what it counts
 *   pages             page frames of the first socket's buffers
 *   quit
 *
 * The payload of a datagram: each byte is by one greater than that before it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qv.h"

#define QUEUES		4
#define FRAMES		2048U	/* of a pool: half for each direction */
#define DATA		256U	/* where a frame that is sent begins in its chunk */
#define HEADERS		(sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define MAX_FRAME	9216U
#define PATIENCE	60000	/* ms, for what comes at once on an idle host */

struct ring {
	uint32_t *producer, *consumer, *flags;
	void *desc;
	uint32_t size;
};

struct xsk {
	int fd;
	uint8_t *umem;
	struct ring fill, comp, rx, tx;
	uint64_t spare[FRAMES];		/* chunks that are ours */
	uint32_t nspare;
	uint32_t sending;		/* descriptors not completed */
};

static struct xsk socks[QUEUES];
static unsigned nsocks, queue_of[QUEUES];
static uint32_t chunk = 4096, headroom, entries = 512;
static uint16_t bind_flags = XDP_ZEROCOPY | XDP_USE_NEED_WAKEUP;
static bool metadata;

/* ---------------------------------------------------------------- rings -- */

static uint32_t load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static bool asks(const struct ring *r)
{
	return load(r->flags) & XDP_RING_NEED_WAKEUP;
}

static void map_ring(struct xsk *s, struct ring *r, const struct xdp_ring_offset *off,
		     size_t entry, uint64_t where)
{
	uint8_t *p = mmap(NULL, off->desc + entries * entry, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, s->fd, (off_t)where);

	if (p == MAP_FAILED)
		qv_die("mmap of a ring", errno);
	r->producer = (void *)(p + off->producer);
	r->consumer = (void *)(p + off->consumer);
	r->flags = (void *)(p + off->flags);
	r->desc = p + off->desc;
	r->size = entries;
}

static void option(struct xsk *s, int name, const void *value, socklen_t len)
{
	if (setsockopt(s->fd, SOL_XDP, name, value, len))
		qv_die("setsockopt", errno);
}

static void open_socket(struct xsk *s, const char *dev, unsigned queue)
{
	struct sockaddr_xdp addr = {
		.sxdp_family = AF_XDP, .sxdp_flags = bind_flags,
		.sxdp_ifindex = if_nametoindex(dev), .sxdp_queue_id = queue,
	};
	struct xdp_umem_reg reg = {
		.len = (uint64_t)FRAMES * chunk, .chunk_size = chunk, .headroom = headroom,
	};
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);
	uint32_t i;

	s->fd = socket(AF_XDP, SOCK_RAW, 0);
	if (s->fd < 0)
		qv_die("socket", errno);
	s->umem = mmap(NULL, reg.len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s->umem == MAP_FAILED)
		qv_die("memory", errno);
	reg.addr = (uintptr_t)s->umem;
	if (metadata) {
		reg.flags = XDP_UMEM_TX_METADATA_LEN;
		reg.tx_metadata_len = sizeof(struct xsk_tx_metadata);
	}
	option(s, XDP_UMEM_REG, &reg, sizeof(reg));
	option(s, XDP_UMEM_FILL_RING, &entries, sizeof(entries));
	option(s, XDP_UMEM_COMPLETION_RING, &entries, sizeof(entries));
	option(s, XDP_RX_RING, &entries, sizeof(entries));
	option(s, XDP_TX_RING, &entries, sizeof(entries));
	if (getsockopt(s->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len))
		qv_die("XDP_MMAP_OFFSETS", errno);
	map_ring(s, &s->fill, &off.fr, sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING);
	map_ring(s, &s->comp, &off.cr, sizeof(uint64_t), XDP_UMEM_PGOFF_COMPLETION_RING);
	map_ring(s, &s->rx, &off.rx, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
	map_ring(s, &s->tx, &off.tx, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING);
	for (i = 0; i < FRAMES; i++)
		s->spare[s->nspare++] = (uint64_t)i * chunk;
	if (bind(s->fd, (void *)&addr, sizeof(addr))) {
		printf("{\"errno\": %d}\n", errno);
		exit(1);
	}
}

/* --------------------------------------------------------- the program -- */

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define LOAD(size, d, s, o)	INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)

/* Redirect datagrams over IPv4 for @port to the socket of their queue. */
static void attach(const char *dev, uint16_t port)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4,
		.max_entries = 64,
	};
	int map = bpf(BPF_MAP_CREATE, &attr), prog;
	struct bpf_insn insns[] = {
		LOAD(BPF_W, 2, 1, offsetof(struct xdp_md, data)),
		LOAD(BPF_W, 3, 1, offsetof(struct xdp_md, data_end)),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, HEADERS),
		INSN(BPF_JMP | BPF_JGT | BPF_X, 4, 3, 12, 0),
		LOAD(BPF_H, 5, 2, 12),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 10, htons(ETH_P_IP)),
		LOAD(BPF_B, 5, 2, 23),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 8, IPPROTO_UDP),
		LOAD(BPF_H, 5, 2, 36),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 6, htons(port)),
		LOAD(BPF_W, 2, 1, offsetof(struct xdp_md, rx_queue_index)),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	uint32_t i;

	if (map < 0)
		qv_die("XSKMAP", errno);
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = sizeof(insns) / sizeof(insns[0]);
	attr.license = (uintptr_t)"GPL";
	if (bind_flags & XDP_USE_SG)
		attr.prog_flags = BPF_F_XDP_HAS_FRAGS;
	prog = bpf(BPF_PROG_LOAD, &attr);
	if (prog < 0)
		qv_die("BPF_PROG_LOAD", errno);
	for (i = 0; i < nsocks; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = (uint32_t)map;
		attr.key = (uintptr_t)&queue_of[i];
		attr.value = (uintptr_t)&socks[i].fd;
		if (bpf(BPF_MAP_UPDATE_ELEM, &attr))
			qv_die("BPF_MAP_UPDATE_ELEM", errno);
	}
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)prog;
	attr.link_create.target_ifindex = if_nametoindex(dev);
	attr.link_create.attach_type = BPF_XDP;
	attr.link_create.flags = XDP_FLAGS_DRV_MODE;
	if (bpf(BPF_LINK_CREATE, &attr) < 0)	/* it goes with us */
		qv_die("BPF_LINK_CREATE", errno);
}

/* ---------------------------------------------------------- data path -- */

static void fill(struct xsk *s, uint32_t n)
{
	uint32_t at = *s->fill.producer, room = s->fill.size - (at - load(s->fill.consumer));

	if (n > s->nspare || n > room)
		qv_die("no room for buffers", EINVAL);
	while (n--)
		((uint64_t *)s->fill.desc)[at++ & (s->fill.size - 1)] = s->spare[--s->nspare];
	store(s->fill.producer, at);
}

/* Take completions of sent frames. */
static void reap(struct xsk *s)
{
	uint32_t at = *s->comp.consumer, end = load(s->comp.producer);

	for (; at != end; at++, s->sending--)
		s->spare[s->nspare++] =
			((uint64_t *)s->comp.desc)[at & (s->comp.size - 1)] & ~(uint64_t)(chunk - 1);
	store(s->comp.consumer, at);
}

static void wake(struct xsk *s)
{
	if ((!(bind_flags & XDP_USE_NEED_WAKEUP) || asks(&s->tx)) &&
	    sendto(s->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN &&
	    errno != EBUSY && errno != ENOBUFS)
		qv_die("sendto", errno);
}

/* Put the @n bytes that begin at @addr of a chunk, or @rest of them, into the ring. */
static void post(struct xsk *s, const struct xdp_desc *descs, uint32_t n)
{
	uint32_t at = *s->tx.producer, i;

	while (s->tx.size - (at - load(s->tx.consumer)) < n || s->sending + n > s->comp.size) {
		wake(s);
		reap(s);
	}
	for (i = 0; i < n; i++)
		((struct xdp_desc *)s->tx.desc)[at++ & (s->tx.size - 1)] = descs[i];
	s->sending += n;
	store(s->tx.producer, at);
}

/* Wait until all that was sent is completed; false if it was not. */
static bool drain(struct xsk *s)
{
	long end = qv_now() + PATIENCE * qv_pace();

	for (reap(s); s->sending && qv_now() < end; reap(s)) {
		wake(s);
		usleep(100);
	}
	return !s->sending;
}

struct got {
	unsigned frames, buffers, wrong, per_queue[QUEUES];
	size_t bytes;
};

/* Is it a datagram whose payload is as it must be? */
static bool right(const uint8_t *frame, size_t len)
{
	const struct udphdr *udp = (const void *)(frame + HEADERS - sizeof(*udp));
	size_t i, payload;

	if (len < HEADERS)
		return false;
	payload = ntohs(udp->len) - sizeof(*udp);	/* a short frame is padded */
	if (payload > len - HEADERS)
		return false;
	for (i = 1; i < payload; i++)
		if (frame[HEADERS + i] != (uint8_t)(frame[HEADERS] + i))
			return false;
	return true;
}

/* Back to its sender; the checksums do not depend on the order. */
static void turn(uint8_t *frame)
{
	uint8_t mac[ETH_ALEN], ip[4], port[2];

	memcpy(mac, frame, sizeof(mac));
	memcpy(frame, frame + 6, sizeof(mac));
	memcpy(frame + 6, mac, sizeof(mac));
	memcpy(ip, frame + 26, sizeof(ip));
	memcpy(frame + 26, frame + 30, sizeof(ip));
	memcpy(frame + 30, ip, sizeof(ip));
	memcpy(port, frame + 34, sizeof(port));
	memcpy(frame + 34, frame + 36, sizeof(port));
	memcpy(frame + 36, port, sizeof(port));
}

/* One frame of the receive ring, if there is one: a whole one always is. */
static bool receive(struct xsk *s, struct got *got, const char *how)
{
	static uint8_t frame[MAX_FRAME + 65536];
	struct xdp_desc d, descs[32];
	uint32_t at = *s->rx.consumer, n = 0;
	size_t len = 0;

	if (at == load(s->rx.producer))
		return false;
	do {
		d = ((struct xdp_desc *)s->rx.desc)[at++ & (s->rx.size - 1)];
		if (n == 32 || len + d.len > sizeof(frame))
			qv_die("a frame without end", EMSGSIZE);
		memcpy(frame + len, s->umem + d.addr, d.len);
		len += d.len;
		descs[n++] = d;
	} while (d.options & XDP_PKT_CONTD);
	store(s->rx.consumer, at);
	got->frames++;
	got->buffers += n;
	got->bytes += len;
	got->wrong += !right(frame, len);
	got->per_queue[s - socks]++;
	if (*how == 'e') {
		turn(s->umem + descs[0].addr);
		post(s, descs, n);
		wake(s);
		reap(s);
		fill(s, n);
		return true;
	}
	while (n--)
		s->spare[s->nspare++] = descs[n].addr & ~(uint64_t)(chunk - 1);
	if (*how == 'r')
		fill(s, got->buffers), got->buffers = 0;
	return true;
}

/* Sleep until a socket has a frame; how many have one. The kernel wakes the driver. */
static int wait_frame(int ms)
{
	struct pollfd fds[QUEUES];
	unsigned i;

	for (i = 0; i < nsocks; i++)
		fds[i] = (struct pollfd){ .fd = socks[i].fd, .events = POLLIN };
	return poll(fds, nsocks, ms);
}

/* recv, take, echo */
static void take_frames(const char *how, unsigned n, int ms)
{
	struct got got = { 0 };
	long end = qv_now() + (long)ms * qv_pace();
	unsigned i, buffers = 0;
	bool sent = true;

	while (got.frames < n && qv_now() < end) {
		for (i = 0; i < nsocks && got.frames < n; i++) {
			while (got.frames < n && receive(&socks[i], &got, how)) {
				buffers += got.buffers;
				got.buffers = 0;
			}
			reap(&socks[i]);
		}
		if (got.frames < n)
			wait_frame(20);
	}
	for (i = 0; i < nsocks; i++)
		sent &= drain(&socks[i]);
	printf("{\"frames\": %u, \"bytes\": %zu, \"wrong\": %u, \"completed\": %s, \"queues\": [",
	       got.frames, got.bytes, got.wrong, sent ? "true" : "false");
	for (i = 0; i < nsocks; i++)
		printf("%s%u", i ? ", " : "", got.per_queue[i]);
	printf("]}\n");
}

static uint32_t sum(const void *data, size_t len, uint32_t s)
{
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		s += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static void end_point(char *text, uint8_t *mac, uint8_t *ip)
{
	char *comma = strchr(text, ',');

	if (!comma || sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2],
			     &mac[3], &mac[4], &mac[5]) != 6 ||
	    inet_pton(AF_INET, comma + 1, ip) != 1)
		qv_die("no MAC,IP", EINVAL);
}

/* Build a datagram of @size bytes of payload, which begins with byte @first. */
static size_t build(uint8_t *frame, size_t size, uint8_t first, char *from, char *to,
		    uint16_t port, bool csum)
{
	struct iphdr ip = {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.tot_len = htons((uint16_t)(size + HEADERS - sizeof(struct ethhdr))),
	};
	struct udphdr udp = {
		.source = htons(port), .dest = htons(port),
		.len = htons((uint16_t)(size + sizeof(udp))),
	};
	struct ethhdr eth = { .h_proto = htons(ETH_P_IP) };
	size_t i;

	end_point(from, eth.h_source, (void *)&ip.saddr);
	end_point(to, eth.h_dest, (void *)&ip.daddr);
	ip.check = htons((uint16_t)~sum(&ip, sizeof(ip), 0));
	if (csum)	/* of the pseudo header: the adapter adds the rest */
		udp.check = htons((uint16_t)sum(&ip.saddr, 8, IPPROTO_UDP + ntohs(udp.len)));
	memcpy(frame, &eth, sizeof(eth));
	memcpy(frame + sizeof(eth), &ip, sizeof(ip));
	memcpy(frame + sizeof(eth) + sizeof(ip), &udp, sizeof(udp));
	for (i = 0; i < size; i++)
		frame[HEADERS + i] = (uint8_t)(first + i);
	return size + HEADERS;
}

/* Cut a frame into chunks. Returns how many; the first has the metadata asked for. */
static uint32_t cut(struct xsk *s, const uint8_t *frame, size_t len, struct xdp_desc *descs,
		    uint64_t flags, bool bad)
{
	struct xsk_tx_metadata *meta;
	uint32_t n = 0, part;

	do {
		while (!s->nspare) {
			wake(s);
			reap(s);
		}
		part = len < chunk - DATA ? (uint32_t)len : chunk - DATA;
		descs[n] = (struct xdp_desc){ .addr = s->spare[--s->nspare] + DATA, .len = part };
		memcpy(s->umem + descs[n].addr, frame, part);
		if (!n && flags) {
			meta = (void *)(s->umem + descs[0].addr - sizeof(*meta));
			memset(meta, 0, sizeof(*meta));
			meta->flags = flags;
			meta->request.csum_start = bad ? 60000 : 34;
			meta->request.csum_offset = 6;
			descs[0].options = XDP_TX_METADATA;
		}
		frame += part;
		len -= part;
		if (len)
			descs[n].options |= XDP_PKT_CONTD;
		n++;
	} while (len);
	return n;
}

static void send_frames(unsigned n, unsigned size, char *from, char *to, uint16_t port,
			const char *what)
{
	struct xsk *s = &socks[0];
	bool csum = strstr(what, "csum"), stamp = strstr(what, "stamp"), bad = strstr(what, "bad");
	uint64_t flags = (csum ? XDP_TXMD_FLAGS_CHECKSUM : 0) |
			 (stamp ? XDP_TXMD_FLAGS_TIMESTAMP : 0);
	static uint8_t frame[MAX_FRAME + 65536];
	struct xdp_desc descs[64];
	uint64_t stamp_addr = 0;
	unsigned i;
	size_t len;
	uint32_t k;

	if (size > 65000)
		qv_die("too long", EINVAL);
	for (i = 0; i < n; i++) {
		len = build(frame, size, (uint8_t)i, from, to, port, csum);
		k = cut(s, frame, len, descs, flags, bad);
		stamp_addr = descs[0].addr;
		post(s, descs, k);
		wake(s);
		reap(s);
	}
	printf("{\"completed\": %s", drain(s) ? "true" : "false");
	if (stamp)
		printf(", \"stamp\": %llu", (unsigned long long)
		       ((struct xsk_tx_metadata *)(s->umem + stamp_addr -
		       sizeof(struct xsk_tx_metadata)))->completion.tx_timestamp);
	printf("}\n");
}

static void state(void)
{
	struct xsk *s = &socks[0];
	struct xdp_statistics stats;
	struct xdp_options options;
	socklen_t n = sizeof(options), m = sizeof(stats);

	if (getsockopt(s->fd, SOL_XDP, XDP_OPTIONS, &options, &n) ||
	    getsockopt(s->fd, SOL_XDP, XDP_STATISTICS, &stats, &m))
		qv_die("getsockopt", errno);
	printf("{\"zerocopy\": %s, \"rx_wakeup\": %s, \"tx_wakeup\": %s, \"spare\": %u, "
	       "\"dropped\": %llu, \"full\": %llu, \"invalid\": %llu}\n",
	       options.flags & XDP_OPTIONS_ZEROCOPY ? "true" : "false",
	       asks(&s->fill) ? "true" : "false", asks(&s->tx) ? "true" : "false", s->nspare,
	       stats.rx_dropped, stats.rx_ring_full,
	       stats.rx_invalid_descs + stats.tx_invalid_descs);
}

static void pages(void)
{
	size_t at;

	printf("{\"pfns\": [");
	for (at = 0; at < (size_t)FRAMES * chunk; at += 4096)
		printf("%s%llu", at ? ", " : "",
		       (unsigned long long)qv_pfn(socks[0].umem + at));
	printf("]}\n");
}

static void obey(char *line)
{
	char how[8], from[64], to[64], what[64] = "";
	unsigned i, n, size, port;

	if (sscanf(line, "fill %u", &n) == 1) {
		for (i = 0; i < nsocks; i++) {
			fill(&socks[i], n);
			if (asks(&socks[i].fill))
				recvfrom(socks[i].fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		}
		printf("{\"filled\": %u}\n", n);
	} else if (sscanf(line, "send %u %u %63s %63s %u %63[^\n]", &n, &size, from, to, &port,
			  what) >= 5) {
		send_frames(n, size, from, to, (uint16_t)port, what);
	} else if (sscanf(line, "wait %u", &n) == 1) {
		printf("{\"ready\": %d}\n", wait_frame((int)n * qv_pace()));
	} else if (sscanf(line, "%7s %u %u", how, &n, &size) == 3) {
		take_frames(how, n, (int)size);
	} else if (!strncmp(line, "state", 5)) {
		state();
	} else if (!strncmp(line, "pages", 5)) {
		pages();
	} else if (!strncmp(line, "quit", 4)) {
		exit(0);
	} else {
		qv_die(line, EINVAL);
	}
}

int main(int argc, char **argv)
{
	char line[256], *queue;
	int c;

	while ((c = getopt(argc, argv, "csmnH:k:r:")) > 0) {
		switch (c) {
		case 'c':
			bind_flags = XDP_COPY | (bind_flags & ~XDP_ZEROCOPY);
			break;
		case 's':
			bind_flags |= XDP_USE_SG;
			break;
		case 'm':
			metadata = true;
			break;
		case 'n':
			bind_flags &= ~XDP_USE_NEED_WAKEUP;
			break;
		case 'H':
			headroom = (uint32_t)atoi(optarg);
			break;
		case 'k':
			chunk = (uint32_t)atoi(optarg);
			break;
		case 'r':
			entries = (uint32_t)atoi(optarg);
			break;
		default:
			qv_die("unknown option", EINVAL);
		}
	}
	if (argc - optind < 2)
		qv_die("usage: xsk [OPTIONS] NETDEV QUEUE[,QUEUE...] [PORT]", EINVAL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (queue = strtok(argv[optind + 1], ","); queue && nsocks < QUEUES;
	     queue = strtok(NULL, ",")) {
		queue_of[nsocks] = (unsigned)atoi(queue);
		open_socket(&socks[nsocks], argv[optind], queue_of[nsocks]);
		nsocks++;
	}
	if (argc - optind > 2)
		attach(argv[optind], (uint16_t)atoi(argv[optind + 2]));
	printf("{\"bound\": %u}\n", nsocks);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qbuf: the life cycle of queue buffers as seen by an application.
 *
 *   qbuf [--depth N] [--sge N] [--messages N] [--scatter] [--pageout]
 *        [--hold FIFO] [--nocap]
 *
 * Makes an RC pair in loopback and an SRQ, prints what appeared in the address
 * space (first JSON line), waits for a line in FIFO if asked, moves messages
 * through the rings with every byte checked, destroys all and prints what is
 * left (second JSON line).
 *
 *   --scatter  chop up physical memory first, so that rings get scattered pages
 *   --pageout  ask the kernel to swap out the ring and a control page
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qv.h"

#define MAX_MAPS 4096

static struct qv_map before[MAX_MAPS], after[MAX_MAPS];

static unsigned read_maps(struct qv_map *m)
{
	FILE *maps = qv_maps_open();
	unsigned n = 0;

	while (n < MAX_MAPS && qv_maps_next(maps, &m[n]))
		n++;
	fclose(maps);
	return n;
}

/* Bytes of anonymous memory mapped in total. */
static unsigned long anon_bytes(const struct qv_map *m, unsigned n)
{
	unsigned long sum = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		if (!m[i].path[0])
			sum += m[i].end - m[i].start;
	return sum;
}

/*
 * Leave only single free pages: touch a lot of memory, then give back every
 * other page.  What is mapped next comes from these holes.
 */
static void scatter_memory(size_t bytes)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	if (p == MAP_FAILED)
		qv_die("mmap", errno);
	madvise(p, bytes, MADV_NOHUGEPAGE);
	for (i = 0; i < bytes; i += page)
		p[i] = 1;
	for (i = 0; i < bytes; i += 2 * page)
		madvise(p + i, page, MADV_DONTNEED);
}

static void print_pfns(const uint8_t *base, size_t len)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t i;

	printf("[");
	for (i = 0; i < len; i += page)
		printf("%s%llu", i ? ", " : "",
		       (unsigned long long)qv_pfn(base + i));
	printf("]");
}

/* Move @count messages from a to b; every byte of each is checked. */
static long exchange(struct qv_dev *dev, struct qv_qp *a, struct qv_qp *b,
		     unsigned count)
{
	const size_t size = 512;
	const unsigned window = 16;
	struct ibv_mr *src = qv_mr(dev, size * window, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *dst = qv_mr(dev, size * window, IBV_ACCESS_LOCAL_WRITE);
	unsigned sent = 0, got = 0, done = 0;
	struct ibv_wc wc;

	while (got < count || done < count) {
		while (sent < count && sent - done < window &&
		       sent - got < window) {
			size_t at = sent % window * size, i;
			uint32_t len = 1 + sent * 37 % size;
			struct ibv_sge s = {
				(uintptr_t)src->addr + at, len, src->lkey };
			struct ibv_sge r = {
				(uintptr_t)dst->addr + at, size, dst->lkey };

			for (i = 0; i < len; i++)
				((uint8_t *)src->addr)[at + i] = sent * 31 + i;
			if (qv_recv(b, sent, &r, 1) ||
			    qv_send(a, IBV_WR_SEND, sent, &s, 1, 0, 0))
				return -1;
			sent++;
		}
		if (!qv_wait(b->rcq, &wc, 20000) || wc.status ||
		    wc.wr_id != got || wc.byte_len != 1 + got * 37 % size)
			return -2;
		if (memcmp((uint8_t *)src->addr + got % window * size,
			   (uint8_t *)dst->addr + got % window * size,
			   wc.byte_len))
			return -3;
		got++;
		if (!qv_wait(a->scq, &wc, 20000) || wc.status ||
		    wc.wr_id != done)
			return -4;
		done++;
	}
	ibv_dereg_mr(src);
	ibv_dereg_mr(dst);
	return got;
}

/* How many receives fit before ENOMEM; other errors are negative. */
static int fill_recv(struct qv_qp *q, int *err)
{
	int n = 0;

	while (n < 1000000) {
		*err = qv_recv(q, n, NULL, 0);
		if (*err)
			return n;
		n++;
	}
	return -1;
}

/* How many sends fit towards a peer that never answers. */
static int fill_send(struct qv_dev *dev, const struct ibv_qp_cap *cap,
		     int *err, struct ibv_qp_cap *got)
{
	struct qv_qp q;
	int n = 0;

	qv_qp_create(dev, &q, IBV_QPT_RC, cap);
	qv_qp_init(&q, 0);
	qv_qp_connect(dev, &q, 0xfffffd);
	*got = q.init.cap;
	while (n < 1000000) {
		*err = qv_send(&q, IBV_WR_SEND, n, NULL, 0, 0, 0);
		if (*err)
			break;
		n++;
	}
	qv_qp_destroy(&q);
	return n;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "depth", 1, NULL, 'd' }, { "sge", 1, NULL, 's' },
		{ "messages", 1, NULL, 'm' }, { "scatter", 0, NULL, 'S' },
		{ "pageout", 0, NULL, 'p' }, { "hold", 1, NULL, 'h' },
		{ "nocap", 0, NULL, 'n' }, { NULL, 0, NULL, 0 },
	};
	struct ibv_qp_cap cap = {
		.max_send_wr = 64, .max_recv_wr = 64,
		.max_send_sge = 1, .max_recv_sge = 1,
	};
	unsigned messages = 100, nb, na, nd, i;
	bool scatter = false, pageout = false, nocap = false, stable = true;
	const char *hold = NULL;
	long page = sysconf(_SC_PAGESIZE);
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 100,
						     .max_sge = 2 } };
	struct ibv_qp_cap sendcap = { 0 };
	struct qv_dev dev;
	struct qv_qp a, b, full;
	struct ibv_srq *srq;
	uint64_t *pfn;
	size_t ring_len, pages;
	int c, rfill = 0, sfill = 0, rerr = 0, serr = 0;
	long pin0, pin1, pin2, moved, control = -1;
	bool aligned = true;
	uint8_t *ctl;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (c) {
		case 'd':
			cap.max_send_wr = cap.max_recv_wr = atoi(optarg);
			break;
		case 's':
			cap.max_send_sge = cap.max_recv_sge = atoi(optarg);
			break;
		case 'm':
			messages = atoi(optarg);
			break;
		case 'S':
			scatter = true;
			break;
		case 'p':
			pageout = true;
			break;
		case 'h':
			hold = optarg;
			break;
		case 'n':
			nocap = true;
			break;
		default:
			return 1;
		}
	}
	qv_open(&dev);
	if (scatter)
		scatter_memory(48UL << 20);
	pin0 = qv_vm("VmPin");
	nb = read_maps(before);
	qv_rc_pair(&dev, &a, &b, &cap);
	srq = ibv_create_srq(dev.pd, &sattr);
	if (!srq)
		qv_die("ibv_create_srq", errno);
	na = read_maps(after);
	pin1 = qv_vm("VmPin");
	for (i = 0; i < na; i++)
		if (after[i].start % page || after[i].end % page)
			aligned = false;
	qv_find_sq(&a);
	ring_len = ((size_t)a.sq_depth * a.sq_stride + page - 1) / page * page;
	pages = ring_len / page;
	pfn = calloc(pages, sizeof(*pfn));
	for (i = 0; i < pages; i++)
		pfn[i] = qv_pfn(a.sq + i * page);

	printf("{\"pid\": %d, \"qpn\": %u, \"peer\": %u, \"sq\": %llu, "
	       "\"sq_aligned\": %s, \"sq_len\": %zu, \"stride\": %u, "
	       "\"depth\": %u, \"recv_depth\": %u, \"anon_grew\": %ld, "
	       "\"maps_aligned\": %s, \"pin_grew_kib\": %ld, \"pfns\": ",
	       getpid(), a.qp->qp_num, b.qp->qp_num, (unsigned long long)a.sq,
	       (uintptr_t)a.sq % page ? "false" : "true", ring_len,
	       a.sq_stride, a.sq_depth, a.init.cap.max_recv_wr,
	       (long)(anon_bytes(after, na) - anon_bytes(before, nb)),
	       aligned ? "true" : "false", pin1 - pin0);
	print_pfns(a.sq, ring_len);
	printf("}\n");
	fflush(stdout);
	if (hold) {
		char line[16];
		FILE *f = fopen(hold, "r");

		if (!f || !fgets(line, sizeof(line), f))
			qv_die(hold, errno);
		fclose(f);
	}

	ctl = mmap(NULL, page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ctl == MAP_FAILED)
		qv_die("mmap", errno);
	memset(ctl, 0x5a, page);
	if (pageout) {
		madvise(ctl, page, MADV_PAGEOUT);
		madvise(a.sq, ring_len, MADV_PAGEOUT);
		control = qv_pfn(ctl) != 0;
	}
	for (i = 0; i < pages; i++)
		if (qv_pfn(a.sq + i * page) != pfn[i])
			stable = false;
	moved = exchange(&dev, &a, &b, messages);

	if (!nocap) {
		/* a QP in INIT accepts receives but nothing consumes them */
		qv_qp_create(&dev, &full, IBV_QPT_RC, &cap);
		qv_qp_init(&full, 0);
		rfill = fill_recv(&full, &rerr);
		qv_qp_destroy(&full);
		sfill = fill_send(&dev, &cap, &serr, &sendcap);
	}
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	if (ibv_destroy_srq(srq))
		qv_die("ibv_destroy_srq", errno);
	munmap(ctl, page);
	pin2 = qv_vm("VmPin");
	nd = read_maps(after);
	printf("{\"moved\": %ld, \"stable\": %s, \"control_present\": %ld, "
	       "\"recv_fill\": %d, \"recv_errno\": %d, \"send_fill\": %d, "
	       "\"send_errno\": %d, \"send_cap\": %u, "
	       "\"pin_left_kib\": %ld, \"anon_left\": %ld}\n",
	       moved, stable ? "true" : "false", control, rfill, rerr, sfill,
	       serr, sendcap.max_send_wr, pin2 - pin0,
	       (long)(anon_bytes(after, nd) - anon_bytes(before, nb)));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rawcreate: ask the kernel for CQs and QPs with bad queue buffers, without
 * libqhca in between.  One JSON object: case name -> errno (0: accepted).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>

#include "qv.h"
#include "rdma/qhca-abi.h"

#define PAGE 4096
#define LEN (16 * PAGE)

static struct qv_dev dev;
static uint8_t *buf;

struct cq_cmd {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_create_cq core;
	struct qhca_create_cq_req drv;
};

struct cq_resp {
	struct ib_uverbs_create_cq_resp core;
	struct qhca_create_cq_resp drv;
};

static int create_cq(uint32_t cqe, const struct qhca_create_cq_req *req,
		     uint32_t *handle)
{
	struct cq_resp resp = { 0 };
	struct cq_cmd cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_CREATE_CQ,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.core = {
			.response = (uintptr_t)&resp,
			.cqe = cqe,
			.comp_channel = -1,
		},
		.drv = *req,
	};

	if (write(dev.ctx->cmd_fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		return errno;
	*handle = resp.core.cq_handle;
	return 0;
}

struct qp_cmd {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_create_qp core;
	struct qhca_create_qp_req drv;
};

struct qp_resp {
	struct ib_uverbs_create_qp_resp core;
	struct qhca_create_qp_resp drv;
};

static int create_qp(uint32_t cq, const struct qhca_create_qp_req *req)
{
	struct qp_resp resp = { 0 };
	struct qp_cmd cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_CREATE_QP,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.core = {
			.response = (uintptr_t)&resp,
			.pd_handle = dev.pd->handle,
			.send_cq_handle = cq,
			.recv_cq_handle = cq,
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.qp_type = IB_UVERBS_QPT_RC,
		},
		.drv = *req,
	};

	return write(dev.ctx->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ?
		0 : errno;
}

static int first = 1;

static void report(const char *name, int err)
{
	printf("%s\"%s\": %d", first ? "{" : ", ", name, err);
	first = 0;
}

int main(void)
{
	const struct qhca_create_cq_req cq_good = {
		.buf_len = PAGE, .shift = 6,
	};
	const struct qhca_create_qp_req qp_good = {
		.sq_len = PAGE, .rq_len = PAGE,
		.sq_shift = 6, .sq_stride = 6, .rq_shift = 6, .rq_stride = 5,
	};
	struct qhca_create_cq_req c, c0;
	struct qhca_create_qp_req q, q0;
	uint32_t cq = 0, dummy;
	uint8_t *hole;

	qv_open(&dev);
	buf = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED || hole == MAP_FAILED)
		qv_die("mmap", errno);
	munmap(hole, PAGE);
	c0 = cq_good;
	c0.buf_addr = (uintptr_t)buf;
	c0.dbrec_addr = (uintptr_t)buf + 8 * PAGE;

#define CQ(name, change) do { c = c0; change; \
	report("cq_" name, create_cq(64, &c, &dummy)); } while (0)
	CQ("unaligned_address", c.buf_addr += 64);
	CQ("no_address", c.buf_addr = 0);
	CQ("short_buffer", c.shift = 7);
	CQ("zero_length", c.buf_len = 0);
	CQ("odd_length", c.buf_len = PAGE - 64);
	CQ("huge_shift", c.shift = 63);
	CQ("unmapped_buffer", c.buf_addr = (uintptr_t)hole);
	CQ("kernel_address", c.buf_addr = 0xffff888000000000ULL);
	CQ("wrapping_length", c.buf_len = ~0ULL << 12);
	CQ("unaligned_record", c.dbrec_addr += 4);
	CQ("unmapped_record", c.dbrec_addr = (uintptr_t)hole);
	CQ("unknown_comp_mask", c.comp_mask = 0x80000000);
	report("cq_good", create_cq(64, &c0, &cq));

	q0 = qp_good;
	q0.sq_addr = (uintptr_t)buf + 2 * PAGE;
	q0.rq_addr = (uintptr_t)buf + 4 * PAGE;
	q0.dbrec_addr = (uintptr_t)buf + 8 * PAGE + 8;
#define QP(name, change) do { q = q0; change; \
	report("qp_" name, create_qp(cq, &q)); } while (0)
	QP("unaligned_sq", q.sq_addr += 64);
	QP("unaligned_rq", q.rq_addr += 64);
	QP("short_sq", q.sq_shift = 7);
	QP("short_rq", q.rq_shift = 8);
	QP("zero_sq_length", q.sq_len = 0);
	QP("huge_sq_shift", q.sq_shift = 200);
	QP("bad_sq_stride", q.sq_stride = 11);
	QP("bad_rq_stride", q.rq_stride = 4);
	QP("unmapped_sq", q.sq_addr = (uintptr_t)hole);
	QP("unmapped_rq", q.rq_addr = (uintptr_t)hole);
	QP("wrapping_sq", q.sq_len = ~0ULL << 12);
	QP("unaligned_record", q.dbrec_addr += 4);
	QP("unknown_comp_mask", q.comp_mask = 1);
	QP("good", (void)0);
	printf("}\n");
	return 0;
}

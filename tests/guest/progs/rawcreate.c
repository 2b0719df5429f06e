// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rawcreate: ask the kernel for CQs, QPs and WQs with bad queue buffers and
 * unknown requests, without libqhca in between.  One JSON object: case name ->
 * errno (0: accepted).
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

/*
 * An extended command: @in is the core's part and the driver's, @core and @drv
 * their sizes; so for @out.  Returns 0 or errno.
 */
static int extended(uint32_t number, const void *in, size_t core, size_t drv,
		    void *out, size_t core_out, size_t drv_out)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint8_t data[256];
	} cmd = {
		.hdr = {
			.command = number | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			.in_words = core / 8,
			.out_words = core_out / 8,
		},
		.ex = {
			.response = (uintptr_t)out,
			.provider_in_words = drv / 8,
			.provider_out_words = drv_out / 8,
		},
	};
	ssize_t len = sizeof(cmd.hdr) + sizeof(cmd.ex) + core + drv;

	memcpy(cmd.data, in, core + drv);
	return write(dev.ctx->cmd_fd, &cmd, len) == len ? 0 : errno;
}

static int create_wq(uint32_t cq, const struct qhca_create_wq_req *req,
		     uint32_t *handle)
{
	struct {
		struct ib_uverbs_ex_create_wq core;
		struct qhca_create_wq_req drv;
	} cmd = {
		.core = {
			.wq_type = IBV_WQT_RQ,
			.pd_handle = dev.pd->handle,
			.cq_handle = cq,
			.max_wr = 64,
			.max_sge = 1,
		},
		.drv = *req,
	};
	struct {
		struct ib_uverbs_ex_create_wq_resp core;
		struct qhca_create_wq_resp drv;
	} resp = { 0 };
	int err;

	err = extended(IB_USER_VERBS_EX_CMD_CREATE_WQ, &cmd, sizeof(cmd.core),
		       sizeof(cmd.drv), &resp, sizeof(resp.core),
		       sizeof(resp.drv));
	*handle = resp.core.wq_handle;
	return err;
}

static int create_table(uint32_t wq, uint32_t *handle)
{
	struct {
		struct ib_uverbs_ex_create_rwq_ind_table core;
		uint32_t wq[2];
	} cmd = { .wq = { wq } };
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = { 0 };
	int err;

	err = extended(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, &cmd,
		       sizeof(cmd), 0, &resp, sizeof(resp), 0);
	*handle = resp.ind_tbl_handle;
	return err;
}

static int create_rss(uint32_t table, const struct qhca_create_rss_qp_req *req)
{
	struct {
		struct ib_uverbs_ex_create_qp core;
		struct qhca_create_rss_qp_req drv;
	} cmd = {
		.core = {
			.pd_handle = dev.pd->handle,
			.qp_type = IB_UVERBS_QPT_RAW_PACKET,
			.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
			.rwq_ind_tbl_handle = table,
		},
		.drv = *req,
	};
	struct {
		struct ib_uverbs_ex_create_qp_resp core;
		struct qhca_create_qp_resp drv;
	} resp = { 0 };

	return extended(IB_USER_VERBS_EX_CMD_CREATE_QP, &cmd, sizeof(cmd.core),
			sizeof(cmd.drv), &resp, sizeof(resp.core),
			sizeof(resp.drv));
}

/* A newer library, which passes @drv to the driver and expects a response. */
static int query_device(uint64_t drv)
{
	struct {
		struct ib_uverbs_ex_query_device core;
		uint64_t drv;
	} cmd = { .drv = drv };
	struct {
		struct ib_uverbs_ex_query_device_resp core;
		uint64_t drv[2];
	} resp = { 0 };

	return extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &cmd,
			sizeof(cmd.core), sizeof(cmd.drv), &resp,
			sizeof(resp.core), sizeof(resp.drv));
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
	const struct qhca_create_wq_req wq_good = {
		.buf_len = PAGE, .shift = 6, .stride = 5,
	};
	const struct qhca_create_rss_qp_req rss_good = {
		.rx_hash_fields = QHCA_HASH_MASK,
		.rx_hash_func = QHCA_HASH_TOEPLITZ,
	};
	struct qhca_create_wq_req w, w0;
	struct qhca_create_rss_qp_req r;
	uint32_t cq = 0, wq = 0, table = 0, dummy;
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

	w0 = wq_good;
	w0.buf_addr = (uintptr_t)buf + 6 * PAGE;
	w0.dbrec_addr = (uintptr_t)buf + 8 * PAGE + 16;
#define WQ(name, change) do { w = w0; change; \
	report("wq_" name, create_wq(cq, &w, &dummy)); } while (0)
	WQ("unaligned_address", w.buf_addr += 64);
	WQ("short_buffer", w.shift = 8);
	WQ("unknown_comp_mask", w.comp_mask = 1);
	WQ("reserved", w.rsvd[0] = 1);
	WQ("reserved_last", w.rsvd[1] = 0x80);
	report("wq_good", create_wq(cq, &w0, &wq));
	report("table_good", create_table(wq, &table));

#define RSS(name, change) do { r = rss_good; change; \
	report("rss_" name, create_rss(table, &r)); } while (0)
	RSS("unknown_comp_mask", r.comp_mask = 1);
	RSS("unknown_field", r.rx_hash_fields |= 1U << 30);
	RSS("unknown_function", r.rx_hash_func = 77);
	RSS("reserved", r.rsvd[0] = 1);
	RSS("reserved_last", r.rsvd[6] = 1);
	RSS("good", (void)0);

	report("device_good", query_device(0));
	report("device_unknown_request", query_device(1));
	printf("}\n");
	return 0;
}

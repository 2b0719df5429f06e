// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the contexts with which queues are created, byte for byte as in the
 * manual: each field has its place, and all else is zero.
 */
#include <kunit/test.h>

/* Included, not linked, as the driver exports nothing for tests. */
#include "../ib/contexts.c"

#define CX_PDN		0x00c1c2c3
#define CX_UAR		0x51
#define CX_COOKIE	0x8182838485868788
#define CX_EQN		0x77

/* The largest context. */
#define CX_BYTES	sizeof(struct qhca_qpc)

/* A length: the descriptor of buffer number @value, as cx_buf() makes it. */
#define CX_DESC		0

/* A field of a context: little endian. */
struct cx_field {
	u32 offset;
	u32 len;
	u64 value;
};

static void cx_put(u8 *want, u32 offset, u32 len, u64 value)
{
	__le64 bytes = cpu_to_le64(value);

	memcpy(want + offset, &bytes, len);
}

static void cx_put_all(u8 *want, const struct cx_field *f, u32 n)
{
	for (; n--; f++) {
		if (f->len == CX_DESC) {
			cx_put(want, f->offset, 8, 0x1000000000ULL * f->value);
			cx_put(want, f->offset + 8, 8, 0x4000 + f->value);
		} else {
			cx_put(want, f->offset, f->len, f->value);
		}
	}
}

/* @context has these fields, and those of @more; all else is zero. */
static void cx_expect_both(struct kunit *test, const void *context, size_t size,
			   const struct cx_field *fields, u32 n,
			   const struct cx_field *more, u32 n_more)
{
	u8 *want = kunit_kzalloc(test, CX_BYTES, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, want);
	cx_put_all(want, fields, n);
	cx_put_all(want, more, n_more);
	KUNIT_EXPECT_MEMEQ(test, context, want, size);
}

static void cx_expect(struct kunit *test, const void *context, size_t size,
		      const struct cx_field *fields, u32 n)
{
	cx_expect_both(test, context, size, fields, n, NULL, 0);
}

/* A buffer of an application if @user, else of the kernel, with number @n. */
static void cx_buf(struct qhca_ib_queue_buf *buf, bool user, u32 n)
{
	struct qhca_buf *desc = user ? &buf->table.desc : &buf->kbuf.table.desc;

	/* only compared with NULL */
	buf->umem = user ? ERR_PTR(-ENODEV) : NULL;
	desc->addr = cpu_to_le64(0x1000000000ULL * n);
	desc->len = cpu_to_le64(0x4000 + n);
}

static void cx_test_cq(struct kunit *test)
{
	static const struct cx_field fields[] = {
		{ 0x00, CX_DESC, 1 }, { 0x20, 8, 0x9192939495969798 },
		{ 0x2c, 4, CX_EQN }, { 0x30, 4, CX_UAR }, { 0x34, 1, 11 },
	};
	struct qhca_ib_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	struct qhca_cqc cqc = {};

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cx_buf(&cq->buf, true, 1);
	cq->dbrec.dma = 0x9192939495969798;
	cq->shift = 11;
	cq->cqn = 0xbad;
	qhca_ib_fill_cqc(&cqc, cq, CX_EQN, CX_UAR);
	cx_expect(test, &cqc, sizeof(cqc), fields, ARRAY_SIZE(fields));

	/* the kernel's */
	cx_buf(&cq->buf, false, 1);
	memset(&cqc, 0, sizeof(cqc));
	qhca_ib_fill_cqc(&cqc, cq, CX_EQN, CX_UAR);
	cx_expect(test, &cqc, sizeof(cqc), fields, ARRAY_SIZE(fields));
}

/* What a QP refers to. */
struct cx_qp {
	struct qhca_ib_qp qp;
	struct qhca_ib_cq scq, rcq;
	struct qhca_ib_srq srq;
};

/* An RC QP with both queues, of an application. */
static struct cx_qp *cx_qp_new(struct kunit *test)
{
	struct cx_qp *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->scq.cqn = 0x00a1a2a3;
	c->rcq.cqn = 0x00b1b2b3;
	c->srq.srqn = 0x00d1d2d3;
	c->qp.type = QHCA_QPT_RC;
	c->qp.user = true;
	c->qp.qpn = 0xbad;
	c->qp.scq = &c->scq;
	c->qp.rcq = &c->rcq;
	cx_buf(&c->qp.sq.buf, true, 1);
	c->qp.sq.shift = 7;
	c->qp.sq.stride = 8;
	cx_buf(&c->qp.rq.buf, true, 2);
	c->qp.rq.shift = 9;
	c->qp.rq.stride = 6;
	c->qp.rq_dbrec.dma = 0x6162636465666768;
	return c;
}

static void cx_test_qp(struct kunit *test)
{
	static const struct cx_field fields[] = {
		{ 0x08, 4, CX_PDN }, { 0x0c, 4, CX_UAR },
		{ 0x10, 4, 0x00a1a2a3 }, { 0x14, 4, 0x00b1b2b3 },
		{ 0x1c, 4, 0x06090807 }, { 0x20, CX_DESC, 1 },
		{ 0x40, CX_DESC, 2 },
		{ 0x60, 8, 0x6162636465666768 }, { 0x68, 8, CX_COOKIE },
	};
	struct cx_qp *c = cx_qp_new(test);
	struct qhca_qpc qpc = {};

	qhca_ib_fill_qpc(&qpc, &c->qp, CX_PDN, CX_UAR, CX_COOKIE);
	cx_expect(test, &qpc, sizeof(qpc), fields, ARRAY_SIZE(fields));
}

/* The kernel's, with an SRQ and a doorbell record of its SQ. */
static void cx_test_qp_kernel(struct kunit *test)
{
	static const struct cx_field fields[] = {
		/* QHCA_QP_F_SRQ, _PRIVILEGED, _SQ_RECORD */
		{ 0x06, 1, 0x13 }, { 0x08, 4, CX_PDN },
		{ 0x10, 4, 0x00a1a2a3 }, { 0x14, 4, 0x00b1b2b3 },
		{ 0x18, 4, 0x00d1d2d3 }, { 0x1c, 2, 0x0807 },
		{ 0x20, CX_DESC, 3 }, { 0x180, 8, 0x7172737475767778 },
	};
	struct cx_qp *c = cx_qp_new(test);
	struct qhca_qpc qpc = {};
	struct qhca_dbrec rec;

	c->qp.user = false;
	c->qp.srq = &c->srq;
	c->qp.rq.stride = 0;
	cx_buf(&c->qp.sq.buf, false, 3);
	c->qp.sq_dbrec.rec = &rec;
	c->qp.sq_dbrec.dma = 0x7172737475767778;
	qhca_ib_fill_qpc(&qpc, &c->qp, CX_PDN, 0, 0);
	cx_expect(test, &qpc, sizeof(qpc), fields, ARRAY_SIZE(fields));
}

/* What only some types have. */
static void cx_test_qp_types(struct kunit *test)
{
	static const struct cx_field raw[] = {
		/* QHCA_QP_F_BLOCK_MC_LOOP, _STRIP_VLAN */
		{ 0x04, 1, 6 }, { 0x06, 1, 0x0c }, { 0x08, 4, CX_PDN },
		{ 0x0c, 4, CX_UAR }, { 0x10, 4, 0x00a1a2a3 },
		{ 0x14, 4, 0x00b1b2b3 }, { 0x1c, 4, 0x06090807 },
		{ 0x20, CX_DESC, 1 }, { 0x40, CX_DESC, 2 },
		{ 0x60, 8, 0x6162636465666768 },
	};
	static const struct cx_field target[] = { { 0x04, 1, 5 } };
	struct cx_qp *c = cx_qp_new(test);
	struct qhca_qpc qpc = {};

	c->qp.type = QHCA_QPT_RAW;
	c->qp.block_mc_loop = true;
	c->qp.strip_vlan = true;
	qhca_ib_fill_qpc(&qpc, &c->qp, CX_PDN, CX_UAR, 0);
	cx_expect(test, &qpc, sizeof(qpc), raw, ARRAY_SIZE(raw));

	/* no queue, no CQ, no PD */
	memset(&c->qp, 0, sizeof(c->qp));
	c->qp.type = QHCA_QPT_XRC_TGT;
	c->qp.user = true;
	memset(&qpc, 0, sizeof(qpc));
	qhca_ib_fill_qpc(&qpc, &c->qp, 0, 0, 0);
	cx_expect(test, &qpc, sizeof(qpc), target, ARRAY_SIZE(target));
}

static void cx_test_srq(struct kunit *test)
{
	static const struct cx_field basic[] = {
		{ 0x00, CX_DESC, 1 }, { 0x20, CX_DESC, 2 },
		{ 0x40, 8, 0x3132333435363738 }, { 0x4c, 4, CX_PDN },
		{ 0x50, 4, CX_UAR }, { 0x54, 2, 0x0509 },
	};
	static const struct cx_field xrc[] = {
		{ 0x56, 1, 1 }, { 0x64, 4, 0x00e1e2e3 },
		{ 0x68, 4, 0x00a1a2a3 },
	};
	static const struct cx_field tm[] = {
		{ 0x56, 1, 2 }, { 0x68, 4, 0x00a1a2a3 },
		{ 0x6c, 2, 0x0704 }, { 0x70, 4, 1000 },
		{ 0x80, CX_DESC, 3 },
	};
	struct qhca_ib_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);
	struct qhca_ib_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	struct qhca_ib_xrcd xrcd = { .xrcd = 0x00e1e2e3 };
	/* the limit is not for CREATE_SRQ */
	struct ib_srq_init_attr attr = { .attr.srq_limit = 5 };
	struct qhca_srqc srqc = {};

	KUNIT_ASSERT_NOT_NULL(test, srq);
	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->cqn = 0x00a1a2a3;
	cx_buf(&srq->buf, true, 1);
	cx_buf(&srq->idx, true, 2);
	cx_buf(&srq->ops, true, 3);
	srq->ops_shift = 4;
	srq->ops_stride = 7;
	srq->dbrec.dma = 0x3132333435363738;
	srq->srqn = 0xbad;
	srq->shift = 9;
	srq->stride = 5;
	attr.ext.cq = &cq->ibcq;

	attr.srq_type = IB_SRQT_BASIC;
	qhca_ib_fill_srqc(&srqc, srq, &attr, CX_PDN, CX_UAR);
	cx_expect(test, &srqc, sizeof(srqc), basic, ARRAY_SIZE(basic));

	attr.srq_type = IB_SRQT_XRC;
	attr.ext.xrc.xrcd = &xrcd.ibxrcd;
	memset(&srqc, 0, sizeof(srqc));
	qhca_ib_fill_srqc(&srqc, srq, &attr, CX_PDN, CX_UAR);
	cx_expect_both(test, &srqc, sizeof(srqc), basic, ARRAY_SIZE(basic),
		       xrc, ARRAY_SIZE(xrc));

	attr.srq_type = IB_SRQT_TM;
	attr.ext.tag_matching.max_num_tags = 1000;
	memset(&srqc, 0, sizeof(srqc));
	qhca_ib_fill_srqc(&srqc, srq, &attr, CX_PDN, CX_UAR);
	cx_expect_both(test, &srqc, sizeof(srqc), basic, ARRAY_SIZE(basic),
		       tm, ARRAY_SIZE(tm));
}

static void cx_test_wq(struct kunit *test)
{
	static const struct cx_field fields[] = {
		{ 0x00, CX_DESC, 1 }, { 0x20, 8, 0x4142434445464748 },
		{ 0x28, 8, CX_COOKIE }, { 0x34, 4, CX_PDN },
		{ 0x38, 4, CX_UAR }, { 0x3c, 4, 0x00a1a2a3 },
		{ 0x40, 3, 0x01060a },
	};
	static const struct qhca_create_wq_req req = {
		.cookie = CX_COOKIE, .shift = 10, .stride = 6,
	};
	struct qhca_ib_wq *wq = kunit_kzalloc(test, sizeof(*wq), GFP_KERNEL);
	struct qhca_wqc wqc = {};

	KUNIT_ASSERT_NOT_NULL(test, wq);
	cx_buf(&wq->buf, true, 1);
	wq->dbrec.dma = 0x4142434445464748;
	wq->wqn = 0xbad;
	qhca_ib_fill_wqc(&wqc, wq, &req, CX_PDN, CX_UAR, 0x00a1a2a3,
			 QHCA_WQ_F_STRIP_VLAN);
	cx_expect(test, &wqc, sizeof(wqc), fields, ARRAY_SIZE(fields));
}

static struct kunit_case cx_cases[] = {
	KUNIT_CASE(cx_test_cq),
	KUNIT_CASE(cx_test_qp),
	KUNIT_CASE(cx_test_qp_kernel),
	KUNIT_CASE(cx_test_qp_types),
	KUNIT_CASE(cx_test_srq),
	KUNIT_CASE(cx_test_wq),
	{}
};

static struct kunit_suite cx_suite = {
	.name = "qhca_contexts",
	.test_cases = cx_cases,
};

kunit_test_suite(cx_suite);

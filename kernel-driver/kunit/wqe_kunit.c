// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the WQEs that kernel users post, byte for byte as in the manual: a
 * handwritten one for each work request that a QP accepts, and what is
 * rejected.
 */
#include <kunit/test.h>

/* Included, not linked, as the driver exports nothing for tests. */
#include "../ib/post.c"

#define WQ_SHIFT	2
#define WQ_DEPTH	BIT(WQ_SHIFT)
#define WQ_STRIDE	7	/* 128 bytes: masked WQE and 4 SGEs */

/* What post.c uses from other files of the driver. */
void qhca_ib_wake_if_dead(struct qhca_ib_dev *dev)
{
}

struct wq_rig {
	struct qhca_dev qdev;
	struct qhca_ib_dev dev;
	struct qhca_ib_qp qp;
	struct qhca_dbrec sq_rec, rq_rec;
	void *sq_chunk, *rq_chunk;
	struct qhca_ib_wr sq_wr[WQ_DEPTH], rq_wr[WQ_DEPTH];
	u8 sq[WQ_DEPTH << WQ_STRIDE];
	u8 rq[WQ_DEPTH << WQ_STRIDE];
};

static void wq_ring_init(struct qhca_ib_ring *ring, void **chunk,
			 struct qhca_ib_wr *wr)
{
	spin_lock_init(&ring->lock);
	ring->wr = wr;
	ring->shift = WQ_SHIFT;
	ring->stride = WQ_STRIDE;
	ring->max_sge = 4;
	ring->buf.kbuf.chunk = chunk;
	ring->buf.kbuf.nchunks = 1;
	ring->buf.kbuf.chunk_shift = WQ_SHIFT + WQ_STRIDE;
	ring->buf.kbuf.len = WQ_DEPTH << WQ_STRIDE;
}

/* An RC QP with rings full of garbage, which rings no doorbell. */
static struct wq_rig *wq_rig_new(struct kunit *test, u8 type)
{
	struct wq_rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	memset(r->sq, 0xa5, sizeof(r->sq));
	memset(r->rq, 0xa5, sizeof(r->rq));
	r->sq_chunk = r->sq;
	r->rq_chunk = r->rq;
	r->qdev.caps.features = QHCA_FEAT_FAST_REG | QHCA_FEAT_ATOMIC |
				QHCA_FEAT_MASKED_ATOMIC;
	r->dev.qdev = &r->qdev;
	r->qp.ibqp.device = &r->dev.ibdev;
	r->qp.type = type;
	r->qp.state = IB_QPS_RTS;
	r->qp.sq_dbrec.rec = &r->sq_rec;
	r->qp.rq_dbrec.rec = &r->rq_rec;
	wq_ring_init(&r->qp.sq, &r->sq_chunk, r->sq_wr);
	wq_ring_init(&r->qp.rq, &r->rq_chunk, r->rq_wr);
	r->qp.sq.max_inline = 32;
	return r;
}

static int wq_post(struct wq_rig *r, const struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad = NULL;
	int err = qhca_ib_post_send(&r->qp.ibqp, wr, &bad);

	return err && bad != wr ? -EBADE : err;
}

/* Get the WQE posted last, and check that the device is told about it. */
static void *wq_last(struct kunit *test, struct wq_rig *r)
{
	u32 head = r->qp.sq.head;

	KUNIT_EXPECT_EQ(test, le32_to_cpu(r->sq_rec.index), head);
	return r->sq + (((head - 1) & (WQ_DEPTH - 1)) << WQ_STRIDE);
}

/* The WQE of a WR that must be accepted. */
static void *wq_posted(struct kunit *test, struct wq_rig *r,
		       const struct ib_send_wr *wr)
{
	KUNIT_ASSERT_EQ(test, wq_post(r, wr), 0);
	return wq_last(test, r);
}

static const struct ib_sge wq_sges[] = {
	{ 0x1122334455667788, 0x01020304, 0xa0b0c0d0 },
	{ 0x99aabbccddeeff00, 0x11121314, 0xe0f00010 },
	{ 0x42, 0x43, 0x44 }, { 0x45, 0x46, 0x47 }, { 0x48, 0x49, 0x4a },
};

/* The first two of wq_sges in the device's format. */
static const u8 wq_sge_bytes[] = {
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x04, 0x03, 0x02, 0x01, 0xd0, 0xc0, 0xb0, 0xa0,
	0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99,
	0x14, 0x13, 0x12, 0x11, 0x10, 0x00, 0xf0, 0xe0,
};

static void wq_test_send(struct kunit *test)
{
	static const u8 head[48] = {
		0x01, 0x07, 2, 0, 0xde, 0xad, 0xbe, 0xef,
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	};
	struct ib_send_wr wr = {
		.wr_id = 0x0102030405060708, .opcode = IB_WR_SEND_WITH_IMM,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_SOLICITED |
			      IB_SEND_FENCE,
		.sg_list = (struct ib_sge *)wq_sges, .num_sge = 2,
		.ex.imm_data = cpu_to_be32(0xdeadbeef),
	};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	u8 *wqe;

	wqe = wq_posted(test, r, &wr);
	KUNIT_EXPECT_MEMEQ(test, wqe, head, sizeof(head));
	KUNIT_EXPECT_MEMEQ(test, wqe + 48, wq_sge_bytes, sizeof(wq_sge_bytes));
	KUNIT_EXPECT_EQ(test, r->sq_wr[0].wr_id, wr.wr_id);
	/* nothing else was written */
	KUNIT_EXPECT_EQ(test, wqe[48 + 32], 0xa5);

	/* sq_sig_all has the same effect as the flag */
	wr.send_flags = 0;
	wqe = wq_posted(test, r, &wr);
	KUNIT_EXPECT_EQ(test, wqe[1], 0);
	r->qp.sig_all = true;
	wqe = wq_posted(test, r, &wr);
	KUNIT_EXPECT_EQ(test, wqe[1], 1);
}

static void wq_test_send_inv(struct kunit *test)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_INV,
		.ex.invalidate_rkey = 0x11223344,
	};
	static const u8 key[] = { 0x44, 0x33, 0x22, 0x11 };
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	u8 *wqe;

	wqe = wq_posted(test, r, &wr);
	KUNIT_EXPECT_EQ(test, wqe[0], 0x02);
	KUNIT_EXPECT_MEMEQ(test, wqe + 4, key, 4);
	wr.opcode = IB_WR_LOCAL_INV;
	wqe = wq_posted(test, r, &wr);
	KUNIT_EXPECT_EQ(test, wqe[0], 0x20);
	KUNIT_EXPECT_MEMEQ(test, wqe + 4, key, 4);
}

static void wq_test_rdma(struct kunit *test)
{
	static const struct {
		enum ib_wr_opcode from;
		u8 to;
	} ops[] = {
		{ IB_WR_RDMA_WRITE, 0x08 }, { IB_WR_RDMA_WRITE_WITH_IMM, 0x09 },
		{ IB_WR_RDMA_READ, 0x10 },
	};
	static const u8 remote[] = {
		0xf1, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12,
		0x0d, 0xd0, 0xfe, 0xca, 0, 0, 0, 0,
	};
	struct ib_rdma_wr wr = {
		.wr.sg_list = (struct ib_sge *)wq_sges, .wr.num_sge = 1,
		.remote_addr = 0x123456789abcdef1, .rkey = 0xcafed00d,
	};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	unsigned int i;
	u8 *wqe;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		wr.wr.opcode = ops[i].from;
		wqe = wq_posted(test, r, &wr.wr);
		KUNIT_EXPECT_EQ(test, wqe[0], ops[i].to);
		KUNIT_EXPECT_MEMEQ(test, wqe + 32, remote, sizeof(remote));
		KUNIT_EXPECT_MEMEQ(test, wqe + 48, wq_sge_bytes, 16);
	}
}

static void wq_test_atomics(struct kunit *test)
{
	struct ib_atomic_wr wr = {
		.wr.sg_list = (struct ib_sge *)wq_sges, .wr.num_sge = 1,
		.remote_addr = 0x1000, .rkey = 0x77,
		.compare_add = 0x0102030405060708, .swap = 0x1112131415161718,
		.compare_add_mask = 0x2122232425262728,
		.swap_mask = 0x3132333435363738,
	};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	const __le64 *word;
	u8 *wqe;

	wr.wr.opcode = IB_WR_ATOMIC_CMP_AND_SWP;
	wqe = wq_posted(test, r, &wr.wr);
	word = (const __le64 *)wqe;
	KUNIT_EXPECT_EQ(test, wqe[0], 0x18);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[2]), wr.compare_add);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[3]), wr.swap);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[4]), 0x1000);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[5]), 0x77);
	KUNIT_EXPECT_MEMEQ(test, wqe + 48, wq_sge_bytes, 16);

	wr.wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
	wqe = wq_posted(test, r, &wr.wr);
	word = (const __le64 *)wqe;
	KUNIT_EXPECT_EQ(test, wqe[0], 0x19);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[2]), wr.compare_add);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[3]), 0);

	wr.wr.opcode = IB_WR_MASKED_ATOMIC_CMP_AND_SWP;
	wqe = wq_posted(test, r, &wr.wr);
	word = (const __le64 *)wqe;
	KUNIT_EXPECT_EQ(test, wqe[0], 0x1a);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[3]), wr.swap);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[6]), wr.compare_add_mask);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[7]), wr.swap_mask);
	KUNIT_EXPECT_MEMEQ(test, wqe + 64, wq_sge_bytes, 16);

	wr.wr.opcode = IB_WR_MASKED_ATOMIC_FETCH_AND_ADD;
	wqe = wq_posted(test, r, &wr.wr);
	word = (const __le64 *)wqe;
	KUNIT_EXPECT_EQ(test, wqe[0], 0x1b);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[2]), wr.compare_add);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[6]), wr.compare_add_mask);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[7]), 0);
}

static void wq_test_reg_mr(struct kunit *test)
{
	struct qhca_ib_mr *mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .key = 0x55,
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	const __le64 *word;
	__le64 page = 0;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	wr.mr = &mr->ibmr;
	/* no pages: ib_map_mr_sg() was not called */
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	mr->pages = &page;
	mr->npages = 3;
	mr->pages_dma = 0x123000;
	mr->ibmr.iova = 0x7f0000001234;
	mr->ibmr.length = 0x2345;
	mr->ibmr.page_size = 4096;
	wr.access |= IB_ACCESS_MW_BIND;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, r->qp.sq.head, 0);
	wr.access = IB_ACCESS_LOCAL_WRITE;
	word = wq_posted(test, r, &wr.wr);
	KUNIT_EXPECT_EQ(test, *(u8 *)word, 0x21);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[2]), 0x7f0000001234);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[3]), 0x2345);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[4]), 0x123000);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(word[5]),
			0x55 | (u64)(QHCA_ACCESS_LOCAL_WRITE | 12 << 8 |
				     3 << 16) << 32);
}

static void wq_test_ud(struct kunit *test)
{
	struct qhca_ib_ah *ah = kunit_kzalloc(test, sizeof(*ah), GFP_KERNEL);
	struct ib_ud_wr wr = {
		.wr.opcode = IB_WR_SEND, .wr.num_sge = 1,
		.wr.sg_list = (struct ib_sge *)wq_sges,
		.remote_qpn = 0xff123456, .remote_qkey = 0x80010000,
	};
	static const u8 dest[16] = { 0x56, 0x34, 0x12, 0, 0, 0, 1, 0x80 };
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_UD);
	u8 *wqe;

	KUNIT_ASSERT_NOT_NULL(test, ah);
	/* no address handle, another P_Key */
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	wr.ah = &ah->ibah;
	wr.pkey_index = 1;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	wr.pkey_index = 0;
	memset(&ah->av, 0x3c, sizeof(ah->av));
	wqe = wq_posted(test, r, &wr.wr);
	KUNIT_EXPECT_EQ(test, wqe[0], 0x00);
	KUNIT_EXPECT_MEMEQ(test, wqe + 32, dest, sizeof(dest));
	KUNIT_EXPECT_MEMEQ(test, wqe + 48, &ah->av, 48);
	KUNIT_EXPECT_MEMEQ(test, wqe + 96, wq_sge_bytes, 16);
	/* what only connected QPs have */
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EOPNOTSUPP);
}

static void wq_test_inline(struct kunit *test)
{
	static const char data[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	struct ib_sge sges[] = {
		{ (uintptr_t)data, 10, 0 }, { (uintptr_t)data + 10, 22, 0 },
	};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_INLINE,
		.sg_list = sges, .num_sge = 2,
	};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	u8 *wqe;

	wqe = wq_posted(test, r, &wr);
	KUNIT_EXPECT_EQ(test, wqe[1], QHCA_WQE_F_INLINE);
	KUNIT_EXPECT_EQ(test, wqe[2], 32);
	KUNIT_EXPECT_MEMEQ(test, wqe + 48, data, 32);
	KUNIT_EXPECT_EQ(test, wqe[48 + 32], 0xa5);
	/* one byte more than fits, also where the sum would wrap */
	sges[1].length++;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr), -EINVAL);
	sges[1].length = U32_MAX - 5;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr), -EINVAL);
}

static void wq_test_refusals(struct kunit *test)
{
	struct ib_atomic_wr wr = {
		.wr.opcode = IB_WR_SEND, .wr.num_sge = 5,
		.wr.sg_list = (struct ib_sge *)wq_sges,
	};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);

	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	wr.wr.num_sge = -1;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	wr.wr.num_sge = 1;
	wr.wr.send_flags = IB_SEND_IP_CSUM;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EOPNOTSUPP);
	wr.wr.send_flags = 0;
	wr.wr.opcode = IB_WR_LOCAL_INV;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	wr.wr.opcode = IB_WR_MASKED_ATOMIC_FETCH_AND_ADD;
	wr.wr.num_sge = 2;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	wr.wr.opcode = IB_WR_LSO;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EOPNOTSUPP);

	/* what the device does not support */
	r->qdev.caps.features = 0;
	wr.wr.num_sge = 1;
	wr.wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EOPNOTSUPP);
	wr.wr.opcode = IB_WR_SEND_WITH_INV;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EOPNOTSUPP);

	/* a QP that cannot send yet */
	wr.wr.opcode = IB_WR_SEND;
	r->qp.state = IB_QPS_RTR;
	KUNIT_EXPECT_EQ(test, wq_post(r, &wr.wr), -EINVAL);
	KUNIT_EXPECT_EQ(test, r->qp.sq.head, 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(r->sq_rec.index), 0);
}

/* A chain is accepted up to the first WR that does not fit; counters wrap. */
static void wq_test_full(struct kunit *test)
{
	struct ib_send_wr wr[WQ_DEPTH + 1] = {};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	const struct ib_send_wr *bad = NULL;
	u32 start = 0 - 2, end = start + WQ_DEPTH, i;

	r->qp.sq.head = start;
	r->qp.sq.tail = start;
	for (i = 0; i < ARRAY_SIZE(wr); i++) {
		wr[i].opcode = IB_WR_SEND;
		wr[i].wr_id = i;
		wr[i].next = i < WQ_DEPTH ? &wr[i + 1] : NULL;
	}
	KUNIT_EXPECT_EQ(test, qhca_ib_post_send(&r->qp.ibqp, wr, &bad),
			-ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr[WQ_DEPTH]);
	KUNIT_EXPECT_EQ(test, r->qp.sq.head, end);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(r->sq_rec.index), end);
	for (i = 0; i < WQ_DEPTH; i++) {
		u32 slot = (start + i) & (WQ_DEPTH - 1);

		KUNIT_EXPECT_EQ(test, r->sq[(slot << WQ_STRIDE) + 8], i);
		KUNIT_EXPECT_EQ(test, r->sq_wr[slot].wr_id, i);
	}
	/* one completion makes room for one WR */
	r->qp.sq.tail++;
	KUNIT_EXPECT_EQ(test, qhca_ib_post_send(&r->qp.ibqp, bad, &bad), 0);
	KUNIT_EXPECT_EQ(test, r->sq_wr[start & (WQ_DEPTH - 1)].wr_id, WQ_DEPTH);
}

/* What is saved of a receive: the room of all SGEs, which may exceed 4 GB. */
static void wq_test_recv_room(struct kunit *test)
{
	struct ib_sge sges[2] = { { 0, 100, 0 }, { 0, U32_MAX, 0 } };
	struct ib_recv_wr wr = { .wr_id = 8, .sg_list = sges };
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	const struct ib_recv_wr *bad = NULL;
	int i;

	for (i = 0; i <= 2; i++) {
		wr.num_sge = i;
		KUNIT_ASSERT_EQ(test, qhca_ib_post_recv(&r->qp.ibqp, &wr, &bad),
				0);
		KUNIT_EXPECT_EQ(test, r->rq_wr[i].wr_id, 8);
	}
	KUNIT_EXPECT_EQ(test, r->rq_wr[0].len, 0);
	KUNIT_EXPECT_EQ(test, r->rq_wr[1].len, 100);
	KUNIT_EXPECT_EQ(test, r->rq_wr[2].len, U32_MAX);
}

static void wq_test_recv(struct kunit *test)
{
	struct ib_recv_wr wr = {
		.wr_id = 0x0102030405060708, .num_sge = 2,
		.sg_list = (struct ib_sge *)wq_sges,
	};
	struct wq_rig *r = wq_rig_new(test, QHCA_QPT_RC);
	const struct ib_recv_wr *bad = NULL;
	struct qhca_rq_wqe *wqe = (void *)r->rq;

	KUNIT_ASSERT_EQ(test, qhca_ib_post_recv(&r->qp.ibqp, &wr, &bad), 0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(wqe->wr_id), wr.wr_id);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(wqe->num_sge), 2);
	KUNIT_EXPECT_MEMEQ(test, r->rq + sizeof(*wqe), wq_sge_bytes,
			   sizeof(wq_sge_bytes));
	KUNIT_EXPECT_EQ(test, le32_to_cpu(r->rq_rec.index), 1);
	KUNIT_EXPECT_EQ(test, r->rq_wr[0].wr_id, wr.wr_id);
	KUNIT_EXPECT_EQ(test, r->rq_wr[0].len, 0x12141618);

	wr.num_sge = 5;
	KUNIT_EXPECT_EQ(test, qhca_ib_post_recv(&r->qp.ibqp, &wr, &bad),
			-EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
	wr.num_sge = 0;
	r->qp.state = IB_QPS_RESET;
	KUNIT_EXPECT_EQ(test, qhca_ib_post_recv(&r->qp.ibqp, &wr, &bad),
			-EINVAL);
	r->qp.state = IB_QPS_INIT;
	r->qp.rq.head = r->qp.rq.tail + WQ_DEPTH;
	KUNIT_EXPECT_EQ(test, qhca_ib_post_recv(&r->qp.ibqp, &wr, &bad),
			-ENOMEM);
	r->qp.rq.stride = 0;
	KUNIT_EXPECT_EQ(test, qhca_ib_post_recv(&r->qp.ibqp, &wr, &bad),
			-EINVAL);
}

static struct kunit_case wq_cases[] = {
	KUNIT_CASE(wq_test_send),
	KUNIT_CASE(wq_test_send_inv),
	KUNIT_CASE(wq_test_rdma),
	KUNIT_CASE(wq_test_atomics),
	KUNIT_CASE(wq_test_reg_mr),
	KUNIT_CASE(wq_test_ud),
	KUNIT_CASE(wq_test_inline),
	KUNIT_CASE(wq_test_refusals),
	KUNIT_CASE(wq_test_full),
	KUNIT_CASE(wq_test_recv),
	KUNIT_CASE(wq_test_recv_room),
	{}
};

static struct kunit_suite wq_suite = {
	.name = "qhca_wqe",
	.test_cases = wq_cases,
};

kunit_test_suite(wq_suite);

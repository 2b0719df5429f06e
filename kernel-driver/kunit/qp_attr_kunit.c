// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the QPC that MODIFY_QP gets for the attributes of the verbs, byte for
 * byte as in the manual, what is rejected, and what QUERY_QP's is read as.
 */
#include <kunit/test.h>

/* Included, not linked, as the driver exports nothing for tests. */
#include "../ib/qp_attr.c"
#include "../ib/ah.c"

/* What ah.c uses from other files of the driver. */
int qhca_ib_udata_none(struct ib_udata *udata)
{
	return 0;
}

int qhca_ib_udata_out(struct ib_udata *udata, void *resp, size_t size)
{
	return 0;
}

#define QA_POISON 0xa5

static const struct qhca_caps qa_caps = { .max_rd_atomic = 16 };

/* A RoCEv2 address, as the core resolves it. */
static void qa_address(struct rdma_ah_attr *ah)
{
	static u8 gid[16] = {
		0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	};
	static const u8 mac[] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };

	memset(ah, 0, sizeof(*ah));
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_grh(ah, NULL, 0x12345, 3, 17, 0x28);
	rdma_ah_set_dgid_raw(ah, gid);
	rdma_ah_set_sl(ah, 5);
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_ah_flags(ah, IB_AH_GRH);
	memcpy(ah->roce.dmac, mac, sizeof(mac));
}

static const struct qa_field {
	int mask;
	u64 dev_mask;
	u32 offset;
	u32 len;
	u8 bytes[4];
} qa_fields[] = {
	{ IB_QP_DEST_QPN, BIT(14), 0xa0, 4, { 0x33, 0x22, 0x11 } },
	{ IB_QP_QKEY, BIT(3), 0xa4, 4, { 0x44, 0x33, 0x22, 0x81 } },
	/* only 24 bits of a PSN count */
	{ IB_QP_SQ_PSN, BIT(10), 0xa8, 4, { 0x03, 0x02, 0x01 } },
	{ IB_QP_RQ_PSN, BIT(9), 0xac, 4, { 0x06, 0x05, 0x04 } },
	/* local rights are no rights of a QP */
	{ IB_QP_ACCESS_FLAGS, BIT(1), 0xb0, 4, { 0x0e } },
	{ IB_QP_PATH_MTU, BIT(5), 0xb6, 1, { 5 } },
	{ IB_QP_TIMEOUT, BIT(6), 0xb7, 1, { 14 } },
	{ IB_QP_RETRY_CNT, BIT(7), 0xb8, 1, { 6 } },
	{ IB_QP_RNR_RETRY, BIT(8), 0xb9, 1, { 7 } },
	{ IB_QP_MIN_RNR_TIMER, BIT(13), 0xba, 1, { 12 } },
	/* as requester it is reduced to what the device can do */
	{ IB_QP_MAX_QP_RD_ATOMIC, BIT(11), 0xbb, 1, { 16 } },
	{ IB_QP_MAX_DEST_RD_ATOMIC, BIT(12), 0xbc, 1, { 15 } },
	{ IB_QP_EN_SQD_ASYNC_NOTIFY, BIT(15), 0xbd, 1, { 1 } },
	/* always 0, like the field; the device checks it */
	{ IB_QP_PKEY_INDEX, BIT(2), 0, 0, { } },
	/* there is no other port */
	{ IB_QP_PORT, 0, 0, 0, { } },
	/* for the caller */
	{ IB_QP_STATE | IB_QP_CUR_STATE, 0, 0, 0, { } },
};

static void qa_attr(struct ib_qp_attr *attr)
{
	*attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_4096, .qkey = 0x81223344,
		.rq_psn = 0x99040506, .sq_psn = 0x99010203,
		.dest_qp_num = 0x112233,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE |
				   IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_ATOMIC |
				   IB_ACCESS_RELAXED_ORDERING,
		.en_sqd_async_notify = 1, .max_rd_atomic = 128,
		.max_dest_rd_atomic = 15, .min_rnr_timer = 12, .port_num = 1,
		.timeout = 14, .retry_cnt = 6, .rnr_retry = 7,
	};
	qa_address(&attr->ah_attr);
}

/* Each attribute alone: its field is set, and nothing else is touched. */
static void qa_test_fields(struct kunit *test)
{
	static struct qhca_qpc qpc, want;	/* large */
	struct ib_qp_attr attr;
	u64 dev_mask;
	int i;

	qa_attr(&attr);
	for (i = 0; i < ARRAY_SIZE(qa_fields); i++) {
		const struct qa_field *f = &qa_fields[i];

		memset(&qpc, QA_POISON, sizeof(qpc));
		memset(&want, QA_POISON, sizeof(want));
		memcpy((u8 *)&want + f->offset, f->bytes, f->len);
		dev_mask = U64_MAX;
		KUNIT_ASSERT_EQ_MSG(test, 0,
				    qhca_ib_qp_attr_fill(&qa_caps, &qpc, &dev_mask,
							 &attr, f->mask),
				    "mask %#x", f->mask);
		KUNIT_EXPECT_EQ_MSG(test, dev_mask, f->dev_mask, "mask %#x",
				    f->mask);
		KUNIT_EXPECT_MEMEQ_MSG(test, &qpc, &want, sizeof(qpc),
				       "mask %#x", f->mask);
	}
}

/* All attributes at once, and what a query returns afterwards. */
static void qa_test_round_trip(struct kunit *test)
{
	struct ib_qp_attr attr, got = {};
	struct qhca_qpc qpc = {};
	int mask = IB_QP_AV, i;
	u64 dev_mask;

	qa_attr(&attr);
	for (i = 0; i < ARRAY_SIZE(qa_fields); i++)
		mask |= qa_fields[i].mask;
	KUNIT_ASSERT_EQ(test, 0, qhca_ib_qp_attr_fill(&qa_caps, &qpc, &dev_mask,
						      &attr, mask));
	KUNIT_EXPECT_EQ(test, dev_mask, 0xfffe);
	qpc.state = 4;
	qpc.sq_tail = cpu_to_le32(7);
	qhca_ib_qp_attr_read(&qpc, &got);
	qhca_ib_av_read(&qpc.av, &got.ah_attr);

	KUNIT_EXPECT_EQ(test, got.qp_state, IB_QPS_SQD);
	KUNIT_EXPECT_EQ(test, got.cur_qp_state, IB_QPS_SQD);
	KUNIT_EXPECT_EQ(test, got.path_mtu, IB_MTU_4096);
	KUNIT_EXPECT_EQ(test, got.path_mig_state, IB_MIG_MIGRATED);
	KUNIT_EXPECT_EQ(test, got.qkey, 0x81223344);
	KUNIT_EXPECT_EQ(test, got.rq_psn, 0x040506);
	KUNIT_EXPECT_EQ(test, got.sq_psn, 0x010203);
	KUNIT_EXPECT_EQ(test, got.dest_qp_num, 0x112233);
	KUNIT_EXPECT_EQ(test, got.qp_access_flags,
			IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			IB_ACCESS_REMOTE_ATOMIC);
	KUNIT_EXPECT_EQ(test, got.pkey_index, 0);
	KUNIT_EXPECT_EQ(test, got.en_sqd_async_notify, 1);
	KUNIT_EXPECT_EQ(test, got.max_rd_atomic, 16);
	KUNIT_EXPECT_EQ(test, got.max_dest_rd_atomic, 15);
	KUNIT_EXPECT_EQ(test, got.min_rnr_timer, 12);
	KUNIT_EXPECT_EQ(test, got.port_num, 1);
	KUNIT_EXPECT_EQ(test, got.timeout, 14);
	KUNIT_EXPECT_EQ(test, got.retry_cnt, 6);
	KUNIT_EXPECT_EQ(test, got.rnr_retry, 7);
	KUNIT_EXPECT_MEMEQ(test, &got.ah_attr, &attr.ah_attr,
			   sizeof(attr.ah_attr));

	/* draining ends when the last WQE is done */
	KUNIT_EXPECT_EQ(test, got.sq_draining, 1);
	qpc.sq_next = qpc.sq_tail;
	qhca_ib_qp_attr_read(&qpc, &got);
	KUNIT_EXPECT_EQ(test, got.sq_draining, 0);
}

/* A value out of range is rejected, if its attribute is selected. */
static void qa_test_refused(struct kunit *test)
{
	static const struct {
		int mask;
		int err;
		struct ib_qp_attr attr;
	} refused[] = {
		{ IB_QP_PORT, -EINVAL, { .port_num = 2 } },
		{ IB_QP_PORT, -EINVAL, { .port_num = 0 } },
		{ IB_QP_PKEY_INDEX, -EINVAL, { .pkey_index = 1 } },
		{ IB_QP_PATH_MTU, -EINVAL, { .path_mtu = 0 } },
		{ IB_QP_PATH_MTU, -EINVAL, { .path_mtu = 6 } },
		{ IB_QP_TIMEOUT, -EINVAL, { .timeout = 32 } },
		{ IB_QP_RETRY_CNT, -EINVAL, { .retry_cnt = 8 } },
		{ IB_QP_RNR_RETRY, -EINVAL, { .rnr_retry = 8 } },
		{ IB_QP_MIN_RNR_TIMER, -EINVAL, { .min_rnr_timer = 32 } },
		{ IB_QP_MAX_DEST_RD_ATOMIC, -EINVAL,
		  { .max_dest_rd_atomic = 17 } },
		{ IB_QP_DEST_QPN, -EINVAL, { .dest_qp_num = 0x1000000 } },
		{ IB_QP_ACCESS_FLAGS, -EOPNOTSUPP,
		  { .qp_access_flags = IB_ACCESS_HUGETLB } },
		{ IB_QP_AV, -EINVAL, { } },
	};
	struct ib_qp_attr good;
	struct qhca_qpc qpc = {};
	u64 dev_mask;
	int i;

	qa_attr(&good);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		int mask = refused[i].mask;

		KUNIT_EXPECT_EQ_MSG(test, refused[i].err,
				    qhca_ib_qp_attr_fill(&qa_caps, &qpc, &dev_mask,
							 &refused[i].attr, mask),
				    "case %d", i);
		/* an attribute that is not selected may have any value */
		if (mask != IB_QP_QKEY)
			KUNIT_EXPECT_EQ_MSG(test, 0,
					    qhca_ib_qp_attr_fill(&qa_caps, &qpc,
								 &dev_mask,
								 &refused[i].attr,
								 IB_QP_QKEY),
					    "case %d", i);
		KUNIT_EXPECT_EQ(test, 0,
				qhca_ib_qp_attr_fill(&qa_caps, &qpc, &dev_mask,
						     &good, mask));
	}
}

static void qa_test_address(struct kunit *test)
{
	static const u8 want[48] = {
		0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		0x52, 0x54, 0, 0x12, 0x34, 0x56, 3, 0,
		/* flow label, class, hop limit, SL */
		0x45, 0x23, 0x01, 0, 0x28, 17, 5, 0,
	};
	struct rdma_ah_attr ah;
	struct qhca_av av;
	u8 bytes[48];

	qa_address(&ah);
	memset(&av, QA_POISON, sizeof(av));
	KUNIT_ASSERT_EQ(test, 0, qhca_ib_av_fill(&av, &ah));
	memcpy(bytes, want, sizeof(bytes));
	/* 0xc000 | the label, folded to 14 bits */
	bytes[32] = 0x41;
	bytes[33] = 0xe3;
	KUNIT_EXPECT_MEMEQ(test, &av, bytes, sizeof(bytes));

	/* without a flow label the device chooses the port */
	rdma_ah_retrieve_grh(&ah)->flow_label = 0;
	rdma_ah_retrieve_grh(&ah)->hop_limit = 0;
	KUNIT_ASSERT_EQ(test, 0, qhca_ib_av_fill(&av, &ah));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(av.udp_sport), 0);
	KUNIT_EXPECT_EQ(test, av.hop_limit, 64);

	rdma_ah_set_port_num(&ah, 2);
	KUNIT_EXPECT_EQ(test, -EINVAL, qhca_ib_av_fill(&av, &ah));
	qa_address(&ah);
	rdma_ah_set_ah_flags(&ah, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, qhca_ib_av_fill(&av, &ah));
	qa_address(&ah);
	ah.type = RDMA_AH_ATTR_TYPE_IB;
	KUNIT_EXPECT_EQ(test, -EINVAL, qhca_ib_av_fill(&av, &ah));
}

static struct kunit_case qa_cases[] = {
	KUNIT_CASE(qa_test_fields),
	KUNIT_CASE(qa_test_round_trip),
	KUNIT_CASE(qa_test_refused),
	KUNIT_CASE(qa_test_address),
	{}
};

static struct kunit_suite qa_suite = {
	.name = "qhca_qp_attr",
	.test_cases = qa_cases,
};

kunit_test_suite(qa_suite);

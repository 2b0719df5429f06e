// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the removal of a QP's CQEs from a ring against a simple model: whatever
 * the ring holds and whatever its indices are, the CQEs polled afterwards are
 * those from before without that QP's, in the same order.
 */
#include <kunit/test.h>

/* Included, not linked, as the driver exports nothing for tests. */
#include "../ib/cq_ring.c"

#define CR_SHIFT_MAX	4
#define CR_DEPTH_MAX	BIT(CR_SHIFT_MAX)

struct cr_cq {
	struct qhca_cq_ring ring;
	struct kunit *test;
	struct qhca_cqe cqe[CR_DEPTH_MAX];
	u32 num_dropped;
	u32 rng;		/* not 0: the device writes all the time */
};

/* A device that violates the contract, between any two reads of the driver. */
static void cr_scribble(struct cr_cq *cq)
{
	struct qhca_cqe *cqe;

	cq->rng = cq->rng * 1103515245 + 12345;
	cqe = &cq->cqe[(cq->rng >> 16) & (BIT(cq->ring.shift) - 1)];
	cqe->phase = cq->rng >> 24;
	cqe->qpn = cpu_to_le32(cq->rng & BIT(20) ? 7 : 8);
}

static struct qhca_cqe *cr_at(struct qhca_cq_ring *ring, u32 slot)
{
	struct cr_cq *cq = container_of(ring, struct cr_cq, ring);

	KUNIT_ASSERT_LT(cq->test, slot, BIT(ring->shift));
	if (cq->rng)
		cr_scribble(cq);
	return &cq->cqe[slot];
}

static void cr_dropped(struct qhca_cq_ring *ring, const struct qhca_cqe *cqe)
{
	struct cr_cq *cq = container_of(ring, struct cr_cq, ring);

	KUNIT_ASSERT_EQ(cq->test, le32_to_cpu(cqe->qpn), 7);
	cq->num_dropped++;
}

/* As the device writes it: the phase is 1 in the first lap. */
static void cr_push(struct cr_cq *cq, u32 prod, u32 qpn, u32 wr_id)
{
	struct qhca_cqe *cqe = &cq->cqe[prod & (BIT(cq->ring.shift) - 1)];

	memset(cqe, 0, sizeof(*cqe));
	cqe->wr_id = cpu_to_le64(wr_id);
	cqe->qpn = cpu_to_le32(qpn);
	cqe->phase = !((prod >> cq->ring.shift) & 1);
}

static bool cr_valid(struct cr_cq *cq, u32 index)
{
	return qhca_phase_ok(cq->cqe[index & (BIT(cq->ring.shift) - 1)].phase,
			     index, cq->ring.shift);
}

/* A ring that has run up to @ci and holds @n CQEs; bit i of @mine: our QP. */
static void cr_one(struct kunit *test, struct cr_cq *cq, u8 shift, u32 ci,
		   u32 n, u32 mine)
{
	u32 depth = BIT(shift), freed, expect_freed = 0, i, index;

	memset(cq, 0, sizeof(*cq));
	cq->ring = (struct qhca_cq_ring){ cr_at, cr_dropped, shift };
	cq->test = test;
	/* from the lap before, polled long ago */
	for (i = depth; i > 0; i--) {
		if (ci >= i)
			cr_push(cq, ci - i, 7, 999);
	}
	for (i = 0; i < n; i++) {
		bool ours = mine & BIT(i);

		cr_push(cq, ci + i, ours ? 7 : 8 + i, i);
		expect_freed += ours;
	}

	freed = qhca_cq_ring_clean(&cq->ring, ci, 7);
	KUNIT_ASSERT_EQ(test, freed, expect_freed);
	KUNIT_ASSERT_EQ(test, cq->num_dropped, expect_freed);

	index = ci + freed;
	for (i = 0; i < n; i++) {
		struct qhca_cqe *cqe;

		if (mine & BIT(i))
			continue;
		KUNIT_ASSERT_TRUE(test, cr_valid(cq, index));
		cqe = &cq->cqe[index & (depth - 1)];
		KUNIT_ASSERT_EQ(test, le64_to_cpu(cqe->wr_id), i);
		KUNIT_ASSERT_EQ(test, le32_to_cpu(cqe->qpn), 8 + i);
		index++;
	}
	KUNIT_ASSERT_EQ(test, index, ci + n);
	/* no later entry became valid, and the device continues as before */
	if (n < depth) {
		KUNIT_ASSERT_FALSE(test, cr_valid(cq, index));
		cr_push(cq, index, 9, 77);
		KUNIT_ASSERT_TRUE(test, cr_valid(cq, index));
	}
}

static struct cr_cq *cr_alloc(struct kunit *test)
{
	struct cr_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	return cq;
}

/* every number of CQEs, every pattern, at positions across two laps */
static void cr_test_every_pattern(struct kunit *test)
{
	struct cr_cq *cq = cr_alloc(test);
	u32 ci, n, mine;
	u8 shift;

	for (shift = 0; shift <= 3; shift++)
		for (ci = 0; ci < 4 << shift; ci++)
			for (n = 0; n <= BIT(shift); n++)
				for (mine = 0; mine < BIT(n); mine++)
					cr_one(test, cq, shift, ci, n, mine);
}

/* the counters wrap at 2^32 */
static void cr_test_wrap_of_counters(struct kunit *test)
{
	struct cr_cq *cq = cr_alloc(test);
	u32 back, mine;

	for (back = 0; back <= 2 * CR_DEPTH_MAX; back++)
		for (mine = 0; mine < BIT(10); mine++)
			cr_one(test, cq, CR_SHIFT_MAX, 0 - back, 10, mine);
}

/*
 * Whatever the device does: cleaning ends, stays in the ring, and counts right.
 */
static void cr_test_scribbled(struct kunit *test)
{
	struct cr_cq *cq = cr_alloc(test);
	u32 seed, ci, freed;

	for (seed = 1; seed < 5000; seed++) {
		memset(cq, 0, sizeof(*cq));
		cq->ring = (struct qhca_cq_ring){ cr_at, cr_dropped, seed % 5 };
		cq->test = test;
		ci = seed * 77;
		for (freed = 0; freed < BIT(cq->ring.shift); freed++)
			cr_push(cq, ci + freed, 7 + freed % 2, freed);
		cq->rng = seed;
		freed = qhca_cq_ring_clean(&cq->ring, ci, 7);
		KUNIT_ASSERT_EQ(test, freed, cq->num_dropped);
		KUNIT_ASSERT_LT(test, freed, BIT(cq->ring.shift) + 1);
	}
}

/* The phase bit alone, set by hand. */
static void cr_test_phase(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, qhca_phase_ok(1, 0, 3));
	KUNIT_EXPECT_TRUE(test, qhca_phase_ok(1, 7, 3));
	KUNIT_EXPECT_FALSE(test, qhca_phase_ok(0, 7, 3));
	KUNIT_EXPECT_TRUE(test, qhca_phase_ok(0, 8, 3));
	KUNIT_EXPECT_FALSE(test, qhca_phase_ok(1, 15, 3));
	KUNIT_EXPECT_TRUE(test, qhca_phase_ok(0xfe, 8, 3));
}

static struct kunit_case cr_cases[] = {
	KUNIT_CASE(cr_test_phase),
	KUNIT_CASE(cr_test_every_pattern),
	KUNIT_CASE(cr_test_wrap_of_counters),
	KUNIT_CASE(cr_test_scribbled),
	{}
};

static struct kunit_suite cr_suite = {
	.name = "qhca_cq_ring",
	.test_cases = cr_cases,
};

kunit_test_suite(cr_suite);

// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the arithmetic of the PTP clock: no bit is lost, however long ago the
 * last change was, and however fast the clock runs.
 */
#include <kunit/test.h>

/* Included, not linked, as the driver exports nothing for tests. */
#include "../net/ptp.c"

/* The registers up to the device's clock. */
#define PT_REGS		(QHCA_REG_CLOCK + sizeof(u64))

struct pt_rig {
	struct qhca_dev dev;
	struct qhca_netdev *priv;
	struct qhca_ptp *ptp;
	u8 *regs;
};

static void pt_clock(struct pt_rig *r, u64 cycles)
{
	*(u64 *)(r->regs + QHCA_REG_CLOCK) = cycles;
}

static struct pt_rig *pt_rig_new(struct kunit *test)
{
	struct pt_rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->priv = kunit_kzalloc(test, sizeof(*r->priv), GFP_KERNEL);
	r->regs = kunit_kzalloc(test, PT_REGS, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->priv);
	KUNIT_ASSERT_NOT_NULL(test, r->regs);
	r->dev.regs = (void __iomem *)r->regs;
	r->priv->dev = &r->dev;
	r->ptp = &r->priv->ptp;
	seqlock_init(&r->ptp->lock);
	r->ptp->rate = RATE_ONE;
	return r;
}

/* What the PTP clock shows, or -1. */
static s64 pt_now(struct pt_rig *r)
{
	struct timespec64 ts;

	if (ptp_gettimex64(&r->ptp->info, &ts, NULL))
		return -1;
	return timespec64_to_ns(&ts);
}

static void pt_test_set_and_adjust(struct kunit *test)
{
	struct pt_rig *r = pt_rig_new(test);
	struct timespec64 ts = { .tv_sec = 1700000000, .tv_nsec = 999999999 };
	s64 base = timespec64_to_ns(&ts);

	pt_clock(r, 5000);
	KUNIT_ASSERT_EQ(test, ptp_settime64(&r->ptp->info, &ts), 0);
	KUNIT_EXPECT_EQ(test, pt_now(r), base);
	pt_clock(r, 5001);
	KUNIT_EXPECT_EQ(test, pt_now(r), base + 1);
	/* a frame that was stamped before */
	KUNIT_EXPECT_EQ(test, ktime_to_ns(qhca_ptp_time(r->ptp, 4000)),
			base - 1000);
	KUNIT_EXPECT_EQ(test, ptp_adjtime(&r->ptp->info, -77), 0);
	KUNIT_EXPECT_EQ(test, pt_now(r), base + 1 - 77);
	KUNIT_EXPECT_EQ(test, ptp_adjtime(&r->ptp->info, NSEC_PER_SEC), 0);
	KUNIT_EXPECT_EQ(test, pt_now(r), base + 1 - 77 + NSEC_PER_SEC);
}

/* A year later, at each rate that may be set: exact to the nanosecond. */
static void pt_test_rates(struct kunit *test)
{
	static const s64 ppb[] = {
		0, 1, -1, 1000, -1000, MAX_ADJ, -MAX_ADJ,
	};
	const s64 year = 31536000LL * NSEC_PER_SEC;
	struct pt_rig *r = pt_rig_new(test);
	struct timespec64 ts = {};
	u64 at = 1234567;
	int i;

	for (i = 0; i < ARRAY_SIZE(ppb); i++) {
		/* steps of 10^-12 lose less than this in a year */
		s64 want = year + div_s64(year, NSEC_PER_SEC) * ppb[i];
		s64 slack = year >> (RATE_SHIFT - 1), got;

		r->ptp->rate = RATE_ONE;
		pt_clock(r, at);
		KUNIT_ASSERT_EQ(test, ptp_settime64(&r->ptp->info, &ts), 0);
		/* millionths, with 16 bits behind the point */
		KUNIT_ASSERT_EQ(test,
				ptp_adjfine(&r->ptp->info,
					    div_s64(ppb[i] * 65536, 1000)), 0);
		KUNIT_EXPECT_EQ(test, pt_now(r), 0);
		at += year;
		pt_clock(r, at);
		got = pt_now(r);
		/* as precise as the parameter */
		slack += year >> 25;
		KUNIT_EXPECT_GE(test, got, want - slack);
		KUNIT_EXPECT_LE(test, got, want + slack);
		/* time does not jump when the rate changes */
		KUNIT_ASSERT_EQ(test, ptp_adjfine(&r->ptp->info, 0), 0);
		KUNIT_EXPECT_EQ(test, pt_now(r), got);
	}
}

/* The device's clock wraps only once in 584 years; it may begin there. */
static void pt_test_wrap(struct kunit *test)
{
	struct pt_rig *r = pt_rig_new(test);
	struct timespec64 ts = { .tv_sec = 100 };

	pt_clock(r, U64_MAX - 10);
	KUNIT_ASSERT_EQ(test, ptp_settime64(&r->ptp->info, &ts), 0);
	pt_clock(r, 9);
	KUNIT_EXPECT_EQ(test, pt_now(r), 100 * NSEC_PER_SEC + 20);
}

/* Reads of a device that is gone are all ones: nothing is changed. */
static void pt_test_gone(struct kunit *test)
{
	struct pt_rig *r = pt_rig_new(test);
	struct timespec64 ts = { .tv_sec = 9 };

	pt_clock(r, U64_MAX);
	KUNIT_EXPECT_EQ(test, ptp_settime64(&r->ptp->info, &ts), -EIO);
	KUNIT_EXPECT_EQ(test, ptp_adjfine(&r->ptp->info, 65536), -EIO);
	KUNIT_EXPECT_EQ(test, pt_now(r), -1);
	KUNIT_EXPECT_EQ(test, r->ptp->rate, RATE_ONE);
	KUNIT_EXPECT_EQ(test, r->ptp->base_ns, 0);
	KUNIT_EXPECT_EQ(test, r->ptp->base_cycles, 0);
}

static struct kunit_case pt_cases[] = {
	KUNIT_CASE(pt_test_set_and_adjust),
	KUNIT_CASE(pt_test_rates),
	KUNIT_CASE(pt_test_wrap),
	KUNIT_CASE(pt_test_gone),
	{}
};

static struct kunit_suite pt_suite = {
	.name = "qhca_ptp",
	.test_cases = pt_cases,
};

kunit_test_suite(pt_suite);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Taking the CQEs of one QP out of a ring, against a simple model: whatever
 * the ring holds and wherever it stands, what is polled afterwards is what was
 * there before without that QP's, in the same order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../kernel-driver/ib/cq_ring.h"

#define SHIFT_MAX   4
#define DEPTH_MAX   (1 << SHIFT_MAX)

struct cq {
    struct qhca_cq_ring ring;       /* first: the callbacks cast */
    struct qhca_cqe cqe[DEPTH_MAX];
    u32 dropped[DEPTH_MAX];         /* their wr_id */
    u32 num_dropped;
};

static struct qhca_cqe *at(struct qhca_cq_ring *ring, u32 slot)
{
    assert_true(slot < BIT(ring->shift));
    return &((struct cq *)ring)->cqe[slot];
}

static void dropped(struct qhca_cq_ring *ring, const struct qhca_cqe *cqe)
{
    struct cq *cq = (struct cq *)ring;

    assert_true(cq->num_dropped < DEPTH_MAX);
    cq->dropped[cq->num_dropped++] = (u32)le64toh(cqe->wr_id);
}

/* As the device writes it: the phase is 1 in the first lap. */
static void push(struct cq *cq, u32 prod, u32 qpn, u32 wr_id)
{
    struct qhca_cqe *cqe = &cq->cqe[prod & (BIT(cq->ring.shift) - 1)];

    memset(cqe, 0, sizeof(*cqe));
    cqe->wr_id = htole64(wr_id);
    cqe->qpn = htole32(qpn);
    cqe->phase = !((prod >> cq->ring.shift) & 1);
}

static bool valid(struct cq *cq, u32 index)
{
    return qhca_phase_ok(cq->cqe[index & (BIT(cq->ring.shift) - 1)].phase,
                         index, cq->ring.shift);
}

/* A ring that has run up to @ci and holds @n CQEs; bit i of @mine: our QP. */
static void one(u8 shift, u32 ci, u32 n, u32 mine)
{
    struct cq cq = {
        .ring = { .at = at, .dropped = dropped, .shift = shift },
    };
    u32 depth = 1u << shift, freed, expect_freed = 0, i, index;

    /* the lap before, long polled */
    for (i = depth; i > 0; i--) {
        if (ci >= i) {
            push(&cq, ci - i, 7, 999);
        }
    }
    for (i = 0; i < n; i++) {
        bool ours = mine & (1u << i);

        push(&cq, ci + i, ours ? 7 : 8 + i, i);
        expect_freed += ours;
    }

    freed = qhca_cq_ring_clean(&cq.ring, ci, 7);
    assert_int_equal(freed, expect_freed);
    assert_int_equal(cq.num_dropped, expect_freed);

    index = ci + freed;
    for (i = 0; i < n; i++) {
        struct qhca_cqe *cqe;

        if (mine & (1u << i)) {
            continue;
        }
        assert_true(valid(&cq, index));
        cqe = &cq.cqe[index & (depth - 1)];
        assert_int_equal(le64toh(cqe->wr_id), i);
        assert_int_equal(le32toh(cqe->qpn), 8 + i);
        index++;
    }
    assert_int_equal(index, ci + n);
    /* nothing behind became valid, and the device goes on as before */
    if (n < depth) {
        assert_false(valid(&cq, index));
        push(&cq, index, 9, 77);
        assert_true(valid(&cq, index));
    }
}

/* every number of CQEs, every pattern, at places all around two laps */
static void test_every_pattern(void **state)
{
    u32 ci, n, mine;
    u8 shift;

    for (shift = 0; shift <= 3; shift++) {
        for (ci = 0; ci < 4u << shift; ci++) {
            for (n = 0; n <= 1u << shift; n++) {
                for (mine = 0; mine < 1u << n; mine++) {
                    one(shift, ci, n, mine);
                }
            }
        }
    }
}

/* the counters wrap at 2^32 */
static void test_wrap_of_counters(void **state)
{
    u32 back, mine;

    for (back = 0; back <= 2 * DEPTH_MAX; back++) {
        for (mine = 0; mine < 1u << 10; mine++) {
            one(SHIFT_MAX, 0u - back, 10, mine);
        }
    }
}

/* The phase bit alone, by hand. */
static void test_phase(void **state)
{
    assert_true(qhca_phase_ok(1, 0, 3));
    assert_true(qhca_phase_ok(1, 7, 3));
    assert_false(qhca_phase_ok(0, 7, 3));
    assert_true(qhca_phase_ok(0, 8, 3));
    assert_false(qhca_phase_ok(1, 15, 3));
    assert_true(qhca_phase_ok(0xfe, 8, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phase),
        cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_wrap_of_counters),
    };

    return cmocka_run_group_tests_name("ring of a CQ", tests, NULL, NULL);
}

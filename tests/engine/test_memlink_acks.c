/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: acknowledgments that wait for the bell of the next request,
 * where both ends send in turn, and only there.
 */
#include "memlinkfix.h"

#define TURNS   8u              /* until one waits */

/* The environment: it accepts to ring soon, and never does. */
static unsigned asked;
static bool refused;

static bool op_soon(void *opaque, unsigned id)
{
    (void)opaque;
    (void)id;
    asked++;
    return !refused;
}

static struct fix *begin(void)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    unsigned i;

    asked = 0;
    refused = false;
    fix_go_up(f);
    for (i = 0; i < 2; i++) {
        f->s[i].e->ops.memlink_bell_soon = op_soon;
        fix_link(f, i, !i)->turns = 0;
        fix_link(f, i, !i)->acks = 0;
    }
    return f;
}

/* Side @i sends one message; returns how many bells were rung. */
static uint64_t message(struct fix *f, unsigned i, uint64_t id)
{
    uint64_t bells = f->w.bells;

    fix_write(f, i, id, 64, 8);
    fix_run(f, 50 * US);
    return f->w.bells - bells;
}

/* Both sides send in turn, and no acknowledgment waits. */
static void turns(struct fix *f, unsigned n)
{
    unsigned i, k;

    for (k = 0; k < n; k++) {
        for (i = 0; i < 2; i++) {
            /* that of the message, and that of its acknowledgment */
            assert_int_equal(message(f, i, k), 2);
            fix_cqe(f, i, k, QHCA_WC_SUCCESS);
        }
    }
    assert_int_equal(asked, 0);
}

static void end(struct fix *f)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        fix_look(f, i, !i);
    }
    while (gcq_poll(&f->s[0].cq, &f->cqe) || gcq_poll(&f->s[1].cq, &f->cqe)) {
        assert_int_equal(f->cqe.status, QHCA_WC_SUCCESS);
    }
    fix_free(f);
}

/* One bell for each message instead of two. */
static void waits_for_the_answer(void **state)
{
    struct fix *f = begin();
    unsigned k;

    (void)state;
    turns(f, TURNS);
    for (k = 0; k < 10; k++) {
        assert_int_equal(message(f, 0, 2 * k), 1);
        fix_no_cqe(f, 0);
        /* the answer brings the acknowledgment, and so does the next message */
        assert_int_equal(message(f, 1, 2 * k + 1), 1);
        fix_cqe(f, 0, 2 * k, QHCA_WC_SUCCESS);
        if (k) {
            fix_cqe(f, 1, 2 * k - 1, QHCA_WC_SUCCESS);
        }
        fix_no_cqe(f, 1);
    }
    assert_int_equal(asked, 20);
    end(f);
}

/* A side that only receives acknowledges at once. */
static void one_way(void **state)
{
    struct fix *f = begin();

    (void)state;
    for (unsigned k = 0; k < 3 * TURNS; k++) {
        assert_int_equal(message(f, 0, k), 2);
        fix_cqe(f, 0, k, QHCA_WC_SUCCESS);
    }
    assert_int_equal(asked, 0);
    end(f);
}

/* And so does one that has not answered for a while. */
static void answers_end(void **state)
{
    struct fix *f = begin();
    unsigned k;

    (void)state;
    turns(f, TURNS);
    for (k = 0; k < 4; k++) {
        assert_int_equal(message(f, 0, k), 1);
    }
    fix_no_cqe(f, 0);
    assert_int_equal(asked, 4);
    assert_int_equal(message(f, 0, 4), 2);
    for (k = 0; k < 5; k++) {
        fix_cqe(f, 0, k, QHCA_WC_SUCCESS);
    }
    assert_int_equal(asked, 4);
    end(f);
}

/* One that waited in vain: after twice as many turns the next does. */
static void in_vain(void **state)
{
    struct fix *f = begin();

    (void)state;
    turns(f, TURNS);
    refused = true;
    for (unsigned n = 2 * TURNS; n <= 8 * TURNS; n *= 2) {
        assert_int_equal(message(f, 0, 100), 2);
        fix_cqe(f, 0, 100, QHCA_WC_SUCCESS);
        assert_int_equal(asked, 1);
        asked = 0;
        f->s[0].e->ops.memlink_bell_soon = NULL;        /* side 1 decides */
        assert_int_equal(message(f, 1, 100), 2);
        fix_cqe(f, 1, 100, QHCA_WC_SUCCESS);
        turns(f, n - 1);
    }
    end(f);
}

/* If a hundred others were worth it, it does not count. */
static void seldom_in_vain(void **state)
{
    struct fix *f = begin();
    unsigned k, times;

    (void)state;
    f->s[0].e->ops.memlink_bell_soon = NULL;
    for (times = 0; times < 2; times++) {
        turns(f, TURNS);
        for (k = 0; k < 100; k++) {
            assert_int_equal(message(f, 0, k), 1);
            assert_int_equal(message(f, 1, k), 2);
            fix_cqe(f, 0, k, QHCA_WC_SUCCESS);
            fix_cqe(f, 1, k, QHCA_WC_SUCCESS);
        }
        assert_int_equal(asked, 100);
        refused = true;
        assert_int_equal(message(f, 0, 0), 2);
        fix_cqe(f, 0, 0, QHCA_WC_SUCCESS);
        refused = false;
        asked = 0;
    }
    end(f);
}

/* An answer to more than four messages is none. */
static void many_messages(void **state)
{
    (void)state;
    for (unsigned each = 4; each <= 5; each++) {
        struct fix *f = begin();
        unsigned k, i;

        for (k = 0; k < 2 * TURNS; k++) {
            for (i = 0; i < each; i++) {
                message(f, 0, 0);
            }
            message(f, 1, 0);
        }
        assert_int_equal(asked > 0, each == 4);
        end(f);
    }
}

/* The response to a READ is no request of the guest's. */
static void responses(void **state)
{
    struct fix *f = begin();

    (void)state;
    for (unsigned k = 0; k < 3 * TURNS; k++) {
        assert_int_equal(message(f, 0, k), 2);
        fix_cqe(f, 0, k, QHCA_WC_SUCCESS);
        fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ,
                                     .wr_id = k }, 128, 8);
        fix_run(f, 50 * US);
        fix_cqe(f, 0, k, QHCA_WC_SUCCESS);
    }
    assert_int_equal(asked, 0);
    end(f);
}

/* A negative acknowledgment waits for nothing. */
static void refusals(void **state)
{
    struct fix *f = begin();

    (void)state;
    turns(f, TURNS);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 7,
                                 .rkey = 0xdead00, .remote_addr = IOVA },
             64, 8);
    fix_run(f, 50 * US);
    fix_cqe(f, 0, 7, QHCA_WC_REM_ACCESS_ERR);
    assert_int_equal(asked, 0);
    fix_drop(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_the_answer),
        cmocka_unit_test(one_way),
        cmocka_unit_test(answers_end),
        cmocka_unit_test(in_vain),
        cmocka_unit_test(seldom_in_vain),
        cmocka_unit_test(many_messages),
        cmocka_unit_test(responses),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

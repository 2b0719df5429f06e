/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared receive queues: the limit, and commands that are refused. */
#include "unit.h"

static uint8_t modify(struct unit *u, const struct gsrq *s, uint64_t mask,
                      uint32_t limit)
{
    struct qhca_srqc c = { .limit = limit };

    return unit_cmd(u, QHCA_CMD_MODIFY_SRQ, s->srqn, mask, &c, sizeof(c),
                    NULL);
}

static struct qhca_srqc query(struct unit *u, const struct gsrq *s)
{
    struct qhca_srqc c;

    guest_query(&u->g, QHCA_CMD_QUERY_SRQ, s->srqn, &c, sizeof(c));
    return c;
}

/* A bit that does not exist: nothing is modified. */
static void unknown_bits(void **state)
{
    struct unit *u = *state;
    struct gsrq s;

    gsrq_create(&s, &u->g, 3, 6, NULL, NULL);
    assert_int_equal(modify(u, &s, QHCA_SRQ_M_LIMIT | 1ULL << 2, 4),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(modify(u, &s, 1ULL << 63, 4), QHCA_ST_BAD_PARAM);
    world_settle(&u->w, 1000000);
    assert_int_equal(query(u, &s).limit, 0);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_LIMIT], 0);
    assert_int_equal(gsrq_destroy(&s), QHCA_ST_OK);
}

static bool is_it(void *opaque, uint64_t addr)
{
    return addr == *(uint64_t *)opaque;
}

/* To compare with the limit, the record is read, which fails. */
static void limit_without_record(void **state)
{
    struct unit *u = *state;
    struct gsrq s;

    gsrq_create(&s, &u->g, 3, 6, NULL, NULL);
    u->m->may_fail = is_it;
    u->m->may_fail_opaque = &s.dbrec;
    u->m->fail_64k = 65536;
    assert_int_equal(modify(u, &s, QHCA_SRQ_M_LIMIT, 4), QHCA_ST_OK);
    u->m->fail_64k = 0;
    world_settle(&u->w, 1000000);
    assert_int_equal(query(u, &s).state, QHCA_SRQ_ERR);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_ERR], 1);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_LIMIT], 0);
    assert_int_equal(modify(u, &s, QHCA_SRQ_M_LIMIT, 4), QHCA_ST_BAD_STATE);
    assert_int_equal(gsrq_destroy(&s), QHCA_ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(unknown_bits),
        UNIT(limit_without_record),
    };

    return cmocka_run_group_tests_name("srq", tests, NULL, NULL);
}

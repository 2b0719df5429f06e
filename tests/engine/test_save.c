/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saving and loading: cases the simulation does not cover. */
#include "peer.h"
#include "observe/breakpoint.h"
#include "die.h"

#define SIG QHCA_WQE_F_SIGNALED

static const struct qhca_config *config(struct peer *p)
{
    static struct qhca_config cfg;

    memset(&cfg, 0, sizeof(cfg));
    qhca_config_default(&cfg);
    cfg.num_vectors = WORLD_VECTORS;
    cfg.dm_size = GMEM_SPAN;
    memcpy(cfg.mac, p->n->mac, 6);
    return &cfg;
}

static void post(struct peer *p, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        struct gwr wr = {
            .opcode = QHCA_WQE_SEND, .wr_id = i, .flags = SIG, .num_sge = 1,
        };

        wr.sge[0].addr = PEER_IOVA;
        wr.sge[0].len = 10;
        wr.sge[0].lkey = p->mr.key;
        assert_true(gqp_post_send(&p->qp, &wr));
    }
    gqp_ring(&p->qp);
}

/* Load the state into @p's own adapter, as a snapshot does. */
static void load(struct peer *p, void *state, size_t len)
{
    char why[160];

    CHECK(qhca_load(p->e, state, len, why, sizeof(why)), "%s", why);
}

/* Back to before two ACKs: they arrive again, and count again. */
static void back_in_time(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qpc c;
    size_t len;
    void *s;

    (void)state;
    post(p, 2);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    assert_true(qhca_save(p->e, &s, &len));
    peer_ack(p, p->a.sq_psn + 1, 0x1f);
    assert_true(qhca_query_qp(p->e, p->qp.qpn, &c));
    assert_int_equal(c.sq_tail, 2);
    load(p, s, len);
    assert_true(qhca_query_qp(p->e, p->qp.qpn, &c));
    assert_int_equal(c.sq_tail, 0);
    assert_int_equal(c.sq_next, 2);
    assert_int_equal(c.una_psn, p->a.sq_psn);
    free(s);
    peer_ack(p, p->a.sq_psn + 1, 0x1f);
    peer_free(p);
}

/* Breaks belong to the developer: they stay. */
static void breaks_stay(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_break b = { .on = QHCA_ON_DOORBELL };
    size_t len;
    void *s;

    (void)state;
    assert_true(qhca_save(p->e, &s, &len));
    assert_null(qhca_break_add(p->e, &b));
    load(p, s, len);
    free(s);
    assert_non_null(qhca_break_next(p->e, 0));
    assert_true(qhca_break_remove(p->e, 0));
    peer_free(p);
}

static unsigned stops;

static void count_stop(struct node *n)
{
    stops++;
    n->go_at_once = true;       /* as in a replayed machine */
}

/* Watch-only mode: a stop is reported, and the adapter continues. */
static void watch_only(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_break b = { .on = QHCA_ON_DOORBELL,
                            .fields = QHCA_BRK_NUMBER | QHCA_BRK_CODE,
                            .number = p->qp.qpn };

    (void)state;
    stops = 0;
    p->n->on_stop = count_stop;
    qhca_break_watch_only(p->e);
    assert_null(qhca_break_add(p->e, &b));
    post(p, 3);
    assert_int_equal(stops, 1);
    assert_false(qhca_break_stopped(p->e));
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 2);
    qhca_break_gone_on(p->e);
    assert_null(qhca_break_step(p->e, QHCA_ON_PACKET_IN, 1));
    peer_ack(p, p->a.sq_psn + 2, 0x1f);
    assert_int_equal(stops, 2);
    assert_false(qhca_break_stopped(p->e));
    peer_free(p);
}

/* Only a complete state is accepted, and the reason is reported. */
static void refused(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_config cfg = *config(p);
    char why[160] = "";
    size_t len, i;
    void *s;

    (void)state;
    post(p, 2);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    assert_true(qhca_save(p->e, &s, &len));
    for (i = 0; i < len; i += 1 + i / 16) {
        assert_false(qhca_load(p->e, s, i, why, sizeof(why)));
        assert_non_null(strstr(why, "ends too early"));
    }
    load(p, s, len);
    s = realloc(s, len + 1);
    assert_non_null(s);
    ((uint8_t *)s)[len] = 0;
    assert_false(qhca_load(p->e, s, len + 1, why, sizeof(why)));
    assert_string_equal(why, "end: there is more than a state");
    assert_int_equal(qhca_reg_read(p->e, QHCA_REG_CTRL, 4), 0);
    cfg.max_qp = 16;
    {
        const char *err;
        struct qhca *small;

        small = qhca_new(&cfg, &(struct qhca_ops){ 0 }, NULL, &err);
        assert_non_null(small);
        assert_false(qhca_load(small, s, len, why, sizeof(why)));
        assert_non_null(strstr(why, "max-qp"));
        qhca_free(small);
    }
    load(p, s, len);
    free(s);
    peer_ack(p, p->a.sq_psn + 1, 0x1f);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(back_in_time),
        cmocka_unit_test(breaks_stay),
        cmocka_unit_test(watch_only),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

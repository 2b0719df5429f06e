/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saved states of an adapter with work to do: what waited continues in the
 * adapter that loads the state, and lists that name the wrong objects are
 * refused.
 */
#include "unit.h"
#include "peer.h"
#include "reborn.h"
#include "transport/tag_qp.h"

#define QKEY 0x11111111u
#define MANY 40u                /* more than a doorbell executes at once */
#define IOVA 0x500000000000ull

static void reborn(struct node *n)
{
    const struct qhca_ops ops = n->e->ops;

    node_reborn(n, &ops);
}

/* Tag operations of an SRQ whose doorbell was rung are executed later. */
static void tag_operations(void **state)
{
    struct unit *u = *state;
    struct gtm_init ti = { .max_tags = 64, .ops_shift = 6, .ops_stride = 7 };
    struct gtm_op op = {
        .opcode = QHCA_WQE_TAG_ADD, .tag = 7, .num_sge = 1,
        .sge[0] = { IOVA, 64, 0 },
    };
    struct gsrq plain, tm;
    struct gmr mr;
    struct gcq cq;
    uint32_t n[MANY];
    unsigned i;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    gmr_create(&mr, &u->g, 8192, IOVA, QHCA_ACCESS_MASK, NULL);
    op.sge[0].lkey = mr.key;
    ti.cq = &cq;
    gsrq_create(&plain, &u->g, 3, 6, NULL, NULL);
    gsrq_create_tm(&tm, &u->g, 3, 6, NULL, NULL, &ti);
    for (i = 0; i < MANY; i++) {
        op.handle = i;
        assert_true(gtm_post(&tm, &op, &n[i]));
    }
    gtm_ring(&tm);
    assert_false(qhca_list_empty(&u->e->q->tm_work));
    reborn(u->n);
    u->e = u->n->e;
    world_settle(&u->w, 1000000);
    for (i = 0; i < MANY; i++) {
        assert_int_equal(gtm_result(&tm, n[i]), QHCA_TM_DONE);
    }
    assert_true(qhca_list_empty(&u->e->q->tm_work));
    assert_int_equal(gsrq_destroy(&tm), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&plain), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* EQs with room for events that wait: their turn comes later. */
static void event_queues(void **state)
{
    struct unit *u = *state;
    struct qhca_eq *eq;
    unsigned i;

    for (i = 2; i--;) {
        eq = qhca_idr_get(&u->e->q->eqs, i);
        qhca_list_add_tail(&u->e->q->eq_work, &eq->work);
    }
    qhca_kick(u->e);
    reborn(u->n);
    u->e = u->n->e;
    eq = qhca_container(u->e->q->eq_work.next, struct qhca_eq, work);
    assert_int_equal(eq->eqn, 1);
    eq = qhca_container(eq->work.next, struct qhca_eq, work);
    assert_int_equal(eq->eqn, 0);
    assert_ptr_equal(eq->work.next, &u->e->q->eq_work);
    world_settle(&u->w, 1000000);
    assert_true(qhca_list_empty(&u->e->q->eq_work));
}

/* Packets to itself that have been sent, but not received. */
static void loopback(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    const struct qhca_config cfg = p->e->cfg;
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .dest_qpn = p->qp.qpn, .qkey = QKEY,
        .num_sge = 1, .sge[0] = { PEER_IOVA, 32, p->mr.key },
    };
    struct qhca_xport_dev *xd;
    uint32_t keep;
    unsigned i;

    (void)state;
    guest_av(&p->g, p->n, 0, &wr.av);
    for (i = 0; i < MANY; i++) {
        peer_recv(p, i, 4096 * (i + 1), 256);
        wr.sge[0].addr = PEER_IOVA + 64 * i;
        assert_true(gqp_post_send(&p->qp, &wr));
    }
    gqp_ring(&p->qp);
    assert_int_not_equal(p->e->xd->loop_head, p->e->xd->loop_tail);
    assert_string_equal(node_loads(p->n, &cfg), "");
    xd = p->e->xd;
    keep = xd->loop[xd->loop_tail % QHCA_LOOP_SLOTS].len;
    xd->loop[xd->loop_tail % QHCA_LOOP_SLOTS].len = QHCA_ETH_HLEN - 1;
    assert_string_equal(node_loads(p->n, &cfg),
                        "work: a loopback frame has a wrong length");
    xd->loop[xd->loop_tail % QHCA_LOOP_SLOTS].len = keep;
    reborn(p->n);
    p->e = p->n->e;
    for (i = 0; i < MANY; i++) {
        peer_cqe(p, rcq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        assert_int_equal(gbuf_verify(&p->mr.buf, 4096 * (i + 1) + 40, 7,
                                     64 * i, 32), 32);
    }
    peer_free(p);
}

/* ---- states that are refused ---- */

static void domains(void **state)
{
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    uint32_t num[2];
    struct qhca_xrcd *x;
    unsigned i;

    for (i = 0; i < 2; i++) {
        num[i] = guest_create(&u->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    }
    assert_string_equal(node_loads(u->n, &cfg), "");
    x = qhca_idr_get(&u->e->q->xrcds, num[1]);
    x->xrcd = num[0];
    assert_non_null(strstr(node_loads(u->n, &cfg), "xrcd: an object's number "
                           "is taken or out of range"));
    x->xrcd = num[1];
    for (i = 0; i < 2; i++) {
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_XRCD, num[i]),
                         QHCA_ST_OK);
    }
}

/* Events that wait for room in an EQ. */
static void events(void **state)
{
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    struct qhca_event_src *port = &u->e->q->port_ev;
    struct qhca_event_src other = { .pending = 1, .obj = 0x4444 };
    struct qhca_eq *eq = qhca_idr_get(&u->e->q->eqs, QHCA_EQN_ASYNC);

    port->pending = qhca_event_bits(false);
    qhca_list_add_tail(&eq->pending, &port->link);
    assert_string_equal(node_loads(u->n, &cfg), "");
    port->pending = 0;
    assert_non_null(strstr(node_loads(u->n, &cfg),
                           "events: a pending event is unknown"));
    port->pending = qhca_event_bits(true);      /* those of a CQ */
    assert_non_null(strstr(node_loads(u->n, &cfg),
                           "events: a pending event is unknown"));
    port->pending = 0;
    qhca_list_del(&port->link);
    /* of nothing */
    qhca_list_add_tail(&eq->pending, &other.link);
    assert_non_null(strstr(node_loads(u->n, &cfg), "events: a pending event "
                           "has no object, or is there twice"));
    qhca_list_del(&other.link);
    assert_string_equal(node_loads(u->n, &cfg), "");
}

/* The list of QPs with work: those of releases that had WQs in it, too. */
static void queue_pairs(void **state)
{
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    struct qhca_wqc wqc = { .shift = 3, .stride = 5, .uar = u->g.uar,
                            .pd = u->g.pd };
    struct qhca_qp listed = { .qpn = 0 };
    uint64_t dbrec = guest_dbrec(&u->g, false);
    struct gbuf ring;
    struct gcq cq;
    uint32_t wqn;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    gbuf_make(&ring, u->m, 32 << 3, &gbuf_direct, true, 0, &u->g.rng);
    wqc.buf = ring.d;
    wqc.cqn = cq.cqn;
    wqc.dbrec = dbrec;
    wqn = guest_create(&u->g, QHCA_CMD_CREATE_WQ, &wqc, sizeof(wqc));
    qhca_list_add_tail(&u->e->q->ready, &listed.ready);
    listed.qpn = wqn;
    assert_string_equal(node_loads(u->n, &cfg), "");
    listed.qpn = wqn + 1;
    assert_string_equal(node_loads(u->n, &cfg), "work: the work list has a "
                        "wrong object, or one twice");
    qhca_list_del(&listed.ready);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_WQ, wqn),
                     QHCA_ST_OK);
    guest_dbrec_free(&u->g, dbrec);
    gbuf_free(&ring);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* Only some commands can be unfinished. */
static void commands(void **state)
{
    static const struct {
        uint8_t op;
        bool ok;
    } ops[] = {
        { QHCA_CMD_DESTROY_EQ, true }, { QHCA_CMD_DESTROY_QP, true },
        { QHCA_CMD_DESTROY_SRQ, true }, { QHCA_CMD_DESTROY_CQ, false },
        { QHCA_CMD_MODIFY_CQ, false }, { 0xff, false },
    };
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    struct qhca_aq_job *job = &u->e->ad->job;
    unsigned i;

    u->e->ad->asq_prod++;
    job->busy = true;
    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        job->cmd = (struct qhca_aq_cmd){ .opcode = ops[i].op };
        assert_string_equal(node_loads(u->n, &cfg), ops[i].ok ? "" :
                            "admin: an unfinished command is invalid");
    }
    job->busy = false;
    u->e->ad->asq_prod--;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(tag_operations),
        UNIT(event_queues),
        cmocka_unit_test(loopback),
        UNIT(domains),
        UNIT(events),
        UNIT(queue_pairs),
        UNIT(commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Header/data split: what is split and where, that nothing is lost, and what
 * happens if one of the two rings has no buffer or a bad one.
 */
#include "ethfix.h"
#include "ethframe.h"
#include "base/csum.h"
#include "emit.h"
#include "observe/decode.h"

static void attach(struct unit *u, struct erq *q)
{
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q->num), QHCA_ST_OK);
}

/* Empty rings, then buffers of @len bytes, or of random sizes if that is 0. */
static void restart(struct erq *q, unsigned headers, unsigned data,
                    uint32_t len)
{
    struct rng *r = &q->u->g.rng;
    unsigned i;

    assert_int_equal(erq_state(q, QHCA_WQS_RESET), QHCA_ST_OK);
    assert_int_equal(erq_state(q, QHCA_WQS_RDY), QHCA_ST_OK);
    for (i = 0; i < headers; i++) {
        erq_post(q->u, &q->ring, len ? len : 1 + rng_log(r, 2000),
                 rng_below(r, 20));
    }
    for (i = 0; i < data; i++) {
        erq_post(q->u, &q->data, len ? len : 1 + rng_log(r, 2000),
                 rng_below(r, 20));
    }
}

/*
 * Deliver the frame and check what arrived, byte by byte; false: it was
 * dropped for want of buffers.
 */
static bool arrives(struct erq *q, const struct made *m, bool split)
{
    struct qhca_eth_qc before = erq_query(q), after;
    uint8_t want[MADE_MAX], head[MADE_MAX], data[MADE_MAX];
    size_t tag = m->tagged ? 4 : 0, all = made_untagged(m, want), len;
    uint64_t bytes = unit_stat(q->u, QHCA_STAT_ETH_RX_BYTES);
    struct qhca_eth_cqe c;

    world_inject(&q->u->w, 0, m->b, m->len);
    after = erq_query(q);
    assert_int_equal(after.state, QHCA_WQS_RDY);
    if (!erq_poll(q, &c)) {
        assert_int_equal(after.dropped, before.dropped + 1);
        assert_int_equal(after.tail, before.tail);
        assert_int_equal(after.data_tail, before.data_tail);
        return false;
    }
    assert_int_equal(c.status, QHCA_WC_SUCCESS);
    assert_int_equal(c.wqe_index, before.tail);
    assert_int_equal(c.wqe_index + c.num_wqe, after.tail);
    assert_int_equal(unit_stat(q->u, QHCA_STAT_ETH_RX_BYTES), bytes + m->len);
    if (!split) {
        assert_int_equal(c.header_len, 0);
        assert_int_equal(c.num_data, 0);
        assert_int_equal(c.data_index, 0);
        assert_int_equal(after.data_tail, before.data_tail);
        assert_int_equal(c.byte_len, all);
        erq_read(q->u, &q->ring, c.wqe_index, c.num_wqe, head, all);
        assert_memory_equal(head, want, all);
        len = all;
    } else {
        len = m->packet - tag;
        assert_int_equal(c.header_len, m->split - tag);
        assert_int_equal(c.byte_len, len);
        assert_int_equal(c.data_index, before.data_tail);
        assert_int_equal(c.data_index + c.num_data, after.data_tail);
        erq_read(q->u, &q->ring, c.wqe_index, c.num_wqe, head, m->split - tag);
        erq_read(q->u, &q->data, c.data_index, c.num_data, data,
                 m->packet - m->split);
        assert_memory_equal(head, want, m->split - tag);
        assert_memory_equal(data, want + m->split - tag,
                            m->packet - m->split);
    }
    assert_int_equal(c.csum, qhca_csum(want + 14, len - 14, 0));
    assert_int_equal(!!(c.flags & QHCA_CQE_F_VLAN), m->tagged);
    assert_false(erq_poll(q, &c));
    return true;
}

/* Random frames into random buffers: nothing lost, split where expected. */
static void property(void **state)
{
    struct unit *u = *state;
    unsigned i, stored[2] = { 0 }, dropped = 0;
    struct made m;
    struct erq q;

    erq_make(u, &q, QHCA_ETH_Q_F_HDS);
    attach(u, &q);
    for (i = 0; i < 4000; i++) {
        enum odd odd = rng_u32(&u->g.rng) & 1 ? NOTHING :
                       rng_below(&u->g.rng, ODDS);

        made_frame(&m, &u->g.rng, u->n->mac, odd);
        restart(&q, ERQ_DEPTH, ERQ_DEPTH, 0);
        if (m.len < 14) {
            continue;
        }
        if (arrives(&q, &m, m.split)) {
            stored[m.split != 0]++;
        } else {
            dropped++;
        }
    }
    /* few are dropped: most random buffers are together long enough */
    assert_in_range(stored[0], 800, 4000);
    assert_in_range(stored[1], 1000, 4000);
    assert_in_range(dropped, 0, 800);
    erq_free(&q);
}

/* Without the flag the same frames are never split. */
static void property_off(void **state)
{
    struct unit *u = *state;
    unsigned i, n = 0;
    struct made m;
    struct erq q;

    erq_make(u, &q, 0);
    attach(u, &q);
    for (i = 0; i < 300; i++) {
        made_frame(&m, &u->g.rng, u->n->mac, NOTHING);
        restart(&q, ERQ_DEPTH, 0, 0);
        n += arrives(&q, &m, false);
    }
    assert_in_range(n, 200, 300);
    erq_free(&q);
}

/* The threshold counts the frame's bytes without the tag. */
static void threshold(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc c = { .hds_thresh = 0 };
    struct made m;
    struct erq q;
    unsigned i;
    size_t len;

    erq_make(u, &q, QHCA_ETH_Q_F_HDS);
    attach(u, &q);
    for (i = 0; i < 60; i++) {
        made_frame(&m, &u->g.rng, u->n->mac, NOTHING);
        len = m.len - (m.tagged ? 4 : 0);
        restart(&q, 3, 3, MADE_MAX);
        /* while it runs */
        c.hds_thresh = (uint32_t)len - 1;
        assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_HDS_THRESH, NULL),
                         QHCA_ST_OK);
        assert_int_equal(erq_query(&q).hds_thresh, len - 1);
        assert_true(arrives(&q, &m, true));
        c.hds_thresh = (uint32_t)len;
        assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_HDS_THRESH, NULL),
                         QHCA_ST_OK);
        assert_true(arrives(&q, &m, false));
        save_and_load(u);
        c.hds_thresh = UINT32_MAX;
        assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_HDS_THRESH, NULL),
                         QHCA_ST_OK);
        assert_true(arrives(&q, &m, false));
    }
    erq_free(&q);
}

/* Each ring may run dry; neither loses a buffer for it. */
static void dry(void **state)
{
    struct unit *u = *state;
    struct made m, ack;
    struct erq q;

    erq_make(u, &q, QHCA_ETH_Q_F_HDS);
    attach(u, &q);
    do {
        made_frame(&m, &u->g.rng, u->n->mac, NOTHING);
    } while (m.packet - m.split < 100);
    do {
        made_frame(&ack, &u->g.rng, u->n->mac, NO_PAYLOAD);
    } while (ack.len > 200);
    restart(&q, 0, 1, 2000);
    assert_false(arrives(&q, &m, true));
    erq_post(u, &q.ring, 512, 0);
    assert_true(arrives(&q, &m, true));
    restart(&q, 2, 0, 512);
    assert_false(arrives(&q, &m, true));
    assert_true(arrives(&q, &ack, false));      /* it needs no data buffer */
    erq_post(u, &q.data, (uint32_t)(m.packet - m.split) - 1, 0);
    assert_false(arrives(&q, &m, true));
    erq_post(u, &q.data, 1, 0);
    assert_true(arrives(&q, &m, true));
    erq_free(&q);
}

/* Bad buffers and broken rings, of headers or of data. */
static void hostile(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_seg seg;
    struct qhca_eth_cqe c;
    struct made m;
    struct erq q;
    unsigned i;

    erq_make(u, &q, QHCA_ETH_Q_F_HDS);
    attach(u, &q);
    do {
        made_frame(&m, &u->g.rng, u->n->mac, NOTHING);
    } while (m.packet - m.split < 100);
    for (i = 0; i < 4; i++) {
        struct erq_ring *bad = i & 1 ? &q.data : &q.ring;

        /* a buffer of no length, or one that is not memory */
        restart(&q, 1, 1, 2048);
        seg = (struct qhca_eth_seg){
            .addr = i & 2 ? gmem_unmapped(u->m, 2048) : bad->mem,
            .len = i & 2 ? 2048 : 0,
        };
        gbuf_write(&bad->buf, 0, &seg, sizeof(seg));
        world_inject(&u->w, 0, m.b, m.len);
        assert_true(erq_poll(&q, &c));
        assert_int_equal(c.status, i & 2 ? QHCA_WC_LOC_PROT_ERR :
                         QHCA_WC_LOC_LEN_ERR);
        assert_int_equal(c.syndrome, i & 2 ? QHCA_SYN_DATA_DMA :
                         QHCA_SYN_WQE_SGE);
        assert_int_equal(c.byte_len, 0);
        assert_int_equal(c.header_len, 0);
        assert_int_equal(c.num_wqe, 1);
        assert_int_equal(c.num_data, i != 0);
        assert_int_equal(c.data_index, 0);
        assert_int_equal(erq_query(&q).tail, 1);
        assert_int_equal(erq_query(&q).data_tail, i != 0);
        assert_int_equal(erq_query(&q).state, QHCA_WQS_RDY);
    }
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 4);
    /* an index beyond the ring stops the queue, whichever ring it is */
    for (i = 0; i < 2; i++) {
        restart(&q, 1, 1, 2048);
        guest_dbrec_set(&u->g, (i ? &q.data : &q.ring)->dbrec, 100);
        world_inject(&u->w, 0, m.b, m.len);
        assert_int_equal(erq_query(&q).state, QHCA_WQS_ERR);
        assert_int_equal(erq_query(&q).syndrome, QHCA_SYN_DB_INDEX);
        assert_false(erq_poll(&q, &c));
    }
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_ETH_RQ_ERR], 2);
    erq_free(&q);
}

/* The requirements for the data ring, which comes and goes with the flag. */
static void contexts(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc ok, c;
    struct made m;
    struct erq q;
    uint64_t at;

    erq_prepare(u, &q);
    ok = erq_context(&q, QHCA_ETH_Q_F_HDS);
    ok.hds_thresh = 77;
#define NO(change, want, field) do {                                      \
        c = ok;                                                           \
        c.change;                                                         \
        assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_ETH_RQ, 0, 0, &c,    \
                                  sizeof(c), &at), want);                 \
        assert_int_equal(at, offsetof(struct qhca_eth_qc, field));        \
    } while (0)
    NO(data_shift = 16, QHCA_ST_BAD_PARAM, data_shift);
    NO(data_dbrec += 4, QHCA_ST_BAD_PARAM, data_dbrec);
    NO(data_buf.len = 0, QHCA_ST_BAD_TABLE, buf);
    NO(data_shift = 15, QHCA_ST_BAD_TABLE, buf);
    NO(flags = 0, QHCA_ST_BAD_PARAM, data_shift);
#undef NO
    q.num = guest_create(&u->g, QHCA_CMD_CREATE_ETH_RQ, &ok, sizeof(ok));
    ok.state = QHCA_WQS_RDY;
    c = erq_query(&q);
    assert_memory_equal(&c, &ok, sizeof(c));
    attach(u, &q);
    do {
        made_frame(&m, &u->g.rng, u->n->mac, NOTHING);
    } while (m.len < 100);
    restart(&q, 2, 2, MADE_MAX);
    assert_true(arrives(&q, &m, true));
    /* the threshold goes with the split */
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
    c = erq_context(&q, 0);
    assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_RINGS, &at),
                     QHCA_ST_OK);
    assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_HDS_THRESH, &at),
                     QHCA_ST_OK);
    restart(&q, 2, 0, MADE_MAX);
    assert_true(arrives(&q, &m, false));
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
    c = erq_context(&q, QHCA_ETH_Q_F_HDS);
    c.state = QHCA_WQS_RDY;
    c.hds_thresh = 5;
    assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_RINGS |
                                QHCA_ETH_RQ_M_STATE |
                                QHCA_ETH_RQ_M_HDS_THRESH, &at), QHCA_ST_OK);
    assert_int_equal(erq_query(&q).hds_thresh, 5);
    save_and_load(u);
    restart(&q, 2, 2, MADE_MAX);
    assert_true(arrives(&q, &m, true));
    erq_free(&q);
}

static struct qhca_trace stored;

static void keep_trace(struct node *n, const struct qhca_trace *t)
{
    (void)n;
    if (t->kind == QHCA_TR_ETH_RX) {
        stored = *t;
    }
}

/* Both rings can be inspected, and a trace shows where a frame was split. */
static void looks(void **state)
{
    struct unit *u = *state;
    struct qhca_ring_query l = {
        .object = QHCA_OBJ_ETH_RQ, .ring = QHCA_RING_DATA,
    };
    struct seen s = { 0 };
    char want[24];
    struct made m;
    struct erq q, plain;

    erq_make(u, &q, QHCA_ETH_Q_F_HDS);
    erq_make(u, &plain, 0);
    attach(u, &q);
    do {
        made_frame(&m, &u->g.rng, u->n->mac, NOTHING);
    } while (m.packet - m.split < 100);
    restart(&q, 2, 3, MADE_MAX);
    u->n->on_trace = keep_trace;
    qhca_set_tracing(u->e, true);
    assert_true(arrives(&q, &m, true));
    qhca_set_tracing(u->e, false);
    u->n->on_trace = NULL;
    assert_int_equal(stored.num, q.num);
    assert_int_equal(stored.index, 0);
    assert_int_equal(stored.wqe, 0);
    assert_int_equal(stored.a, m.split - (m.tagged ? 4 : 0));
    assert_int_equal(stored.b, m.packet - (m.tagged ? 4 : 0));
    seen_start(&s);
    s.em.begin(s.em.opaque, NULL, false);
    qhca_emit_trace(&s.em, &stored);
    s.em.end(s.em.opaque);
    snprintf(want, sizeof(want), "%u", (unsigned)stored.a);
    SEEN(&s, "header_bytes", want);
    SEEN(&s, "data_index", "0");
    assert_null(seen_get(&s, "hash"));

    u->m->unchecked = true;
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_RQ, q.num, seen_start(&s)));
    SEEN(&s, "context.flags_names", "HDS");
    SEEN(&s, "context.state_name", "RDY");
    SEEN(&s, "context.data_head", "3");
    SEEN(&s, "context.data_tail", "1");
    SEEN(&s, "data_ring.doorbell_record.index", "3");
    SEEN(&s, "data_ring.buffer.form_name", "DIRECT");
    SEEN(&s, "port", "true");
    l.number = q.num;
    assert_null(qhca_inspect_ring(u->e, &l, seen_start(&s)));
    SEEN(&s, "producer", "3");
    SEEN(&s, "consumer", "1");
    snprintf(want, sizeof(want), "%u", MADE_MAX);
    SEEN(&s, "entries.1.len", want);
    l.number = plain.num;
    assert_non_null(qhca_inspect_ring(u->e, &l, seen_start(&s)));
    assert_null(qhca_inspect_all(u->e, QHCA_OBJ_ETH_RQ, 0, 9,
                                 seen_start(&s)));
    SEEN(&s, "objects.0.split", "true");
    SEEN(&s, "objects.0.dropped", "0");
    SEEN(&s, "objects.1.split", "false");
    u->m->unchecked = false;
    seen_start(&s);
    free(s.text);
    erq_free(&q);
    erq_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(property), UNIT(property_off), UNIT(threshold), UNIT(dry),
        UNIT(hostile), UNIT(contexts),
        UNIT(looks),
    };

    return cmocka_run_group_tests_name("hds", tests, NULL, NULL);
}

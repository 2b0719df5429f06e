/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that represent several packets, when these have to be received one by
 * one, or not at all: super-frames, and records of memory links.
 */
#include "memlinkfix.h"
#include "peer.h"
#include "emit.h"
#include "observe/inspect.h"

#define PACKETS (LATE_LEN / MTU)

static struct {
    unsigned n;
    size_t most;
} sniffed;

static void sniff(struct qhca *e, const void *frame, size_t len)
{
    (void)e;
    (void)frame;
    sniffed.n++;
    sniffed.most = len > sniffed.most ? len : sniffed.most;
}

/*
 * A super-frame of RoCE for another adapter: the Ethernet function gets its
 * packets.  If it is damaged, there is nothing to get.
 */
static void for_another(void **state)
{
    struct qhca_config cfg = { .mac = { 0 } };
    struct peer *p;
    uint8_t b[4400];
    uint64_t errors;
    size_t len;

    (void)state;
    qhca_config_default(&cfg);
    cfg.num_vectors = WORLD_VECTORS;
    cfg.dm_size = GMEM_SPAN;
    cfg.super_frames = true;
    p = peer_new_as(QHCA_QPT_RC, NULL, &cfg);
    len = peer_build(p, &(struct pkt){ .op = SEND_ONLY, .psn = p->a.rq_psn,
                                       .data = peer_data(0, 1024),
                                       .len = 1024 }, b);
    memcpy(b + len, "QSFG\1\0\0\4", 8);         /* 4 packets of 256 bytes */
    memcpy(b, p->w.node[1].mac, 6);
    world_inject(&p->w, 0, b, len + 8);
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ETH_RX_FILTERED), 4);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RX_PACKETS), 0);
    errors = qhca_stat(p->e, QHCA_STAT_ETH_RX_ERRORS);
    b[500] ^= 1;
    world_inject(&p->w, 0, b, len + 8);
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ETH_RX_FILTERED), 4);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ETH_RX_ERRORS), errors + 4);
    peer_free(p);
}

/* A record arrives that was sent before sniffers began: they see packets. */
static void sniffed_record(void **state)
{
    struct late t;
    struct fix *f;

    (void)state;
    late_begin(&t, false);
    f = t.f;
    memset(&sniffed, 0, sizeof(sniffed));
    f->s[1].e->sniff = sniff;
    fix_look(f, 1, 0);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    fix_has(f, 1, 0, 0, LATE_LEN);
    /* and the acknowledge */
    assert_in_range(sniffed.n, PACKETS, PACKETS + 1);
    assert_in_range(sniffed.most, MTU + 58, MTU + 58 + 16);
    f->s[1].e->sniff = NULL;
    fix_free(f);
}

/* The packets of a record are longer than the port takes: as on the wire. */
static void too_long(void **state)
{
    struct qhca_port port = { .mtu = MTU };     /* without room for headers */
    struct gcmd c = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_MTU,
    };
    struct late t;
    struct fix *f;

    (void)state;
    late_begin(&t, false);
    f = t.f;
    guest_must(&f->s[1].g, &c);
    fix_look(f, 1, 0);
    assert_int_equal(fix_stat(f, 1, QHCA_STAT_PORT_RX_OVERSIZE), PACKETS);
    assert_int_equal(fix_stat(f, 1, QHCA_STAT_ETH_RX_ERRORS), PACKETS);
    fix_no_cqe(f, 0);
    fix_has(f, 1, 1, 0, LATE_LEN);
    /* what gets lost is sent again */
    port.mtu = 1500;
    guest_must(&f->s[1].g, &c);
    fix_run(f, 200 * MS);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    fix_has(f, 1, 0, 0, LATE_LEN);
    fix_free(f);
}

#define ROUNDS 2u
#define WRITES 1100u            /* in each, of each of two senders */

/* Side @i writes to side @to @n times, and all of that has been sent. */
static void write_many(struct fix *f, unsigned i, unsigned to, struct gqp *qp,
                       unsigned n)
{
    unsigned j;

    for (j = 0; j < n; j++) {
        fix_post_on(f, i, qp, (struct gwr){
                        .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = j,
                        .remote_addr = IOVA, .rkey = f->s[to].mr.key }, 0, 4);
    }
    fix_run(f, 1 * MS);
    for (j = 0; j < n; j++) {
        fix_cqe(f, i, j, QHCA_WC_SUCCESS);
    }
    qp->sq_cons = qp->sq_prod;
}

/*
 * After a reset, an adapter drops what has arrived meanwhile: in more than one
 * call, if it is very much.
 */
static void dropped(void **state)
{
    static const unsigned from[] = { 0, 2 };
    struct fix *f = fix_new(QHCA_QPT_UC, true);
    struct gqp to, qp;
    uint64_t before[2], runs;
    uint8_t b[4];
    unsigned i;

    (void)state;
    fix_qp(f, 1, QHCA_QPT_UC, &to);
    fix_qp(f, 2, QHCA_QPT_UC, &qp);
    fix_connect(f, 2, &qp, 1, &to);
    fix_go_up(f);
    while (fix_link(f, 2, 1)->state != QHCA_MEMLINK_UP) {
        write_many(f, 2, 1, &qp, 1);
        write_many(f, 1, 2, &to, 1);
    }
    fix_run(f, 1 * MS);
    f->packets = 0;
    fix_spoil(f, 1, 0, 4);
    for (i = 0; i < 2; i++) {
        fix_doze(f, 1, from[i]);
        before[i] = fix_link(f, 1, from[i])->received;
    }
    for (i = 0; i < ROUNDS; i++) {
        write_many(f, 0, 1, &f->s[0].qp, WRITES);
        write_many(f, 2, 1, &qp, WRITES);
    }
    assert_int_equal(f->packets, 0);
    node_reg_write(f->s[1].n, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    runs = f->s[1].n->runs;
    for (i = 0; i < 2; i++) {
        assert_int_equal(fix_link(f, 1, from[i])->received, before[i]);
        node_memlink_bell(f->s[1].n, fix_link(f, 1, from[i])->id);
    }
    fix_run(f, 100 * US);
    assert_true(f->s[1].n->runs > runs + 1);
    for (i = 0; i < 2; i++) {
        assert_int_equal(fix_link(f, 1, from[i])->received,
                         before[i] + ROUNDS * WRITES);
        assert_int_equal(fix_link(f, from[i], 1)->sent,
                         fix_link(f, 1, from[i])->received);
    }
    assert_int_equal(f->w.cuts, 0);
    gbuf_read(&f->s[1].mr.buf, 0, b, 4);
    assert_memory_equal(b, "\xba\xba\xba\xba", 4);
    gbuf_free(&to.sq);
    gbuf_free(&to.rq);
    gbuf_free(&qp.sq);
    gbuf_free(&qp.rq);
    fix_drop(f);
}

/* Links are shown, with what has passed them. */
static void shown(void **state)
{
    struct seen s = { 0 };
    char want[32];
    struct late t;
    struct fix *f;
    const struct qhca_memlink *l;
    unsigned i, at;
    char path[32];

    (void)state;
    late_begin(&t, false);
    f = t.f;
    for (i = 0; i < 2; i++) {
        const uint8_t *mac = f->s[!i].n->mac;

        assert_null(qhca_inspect(f->s[i].e, QHCA_OBJ_DEVICE, 0,
                                 seen_start(&s)));
        snprintf(want, sizeof(want), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0],
                 mac[1], mac[2], mac[3], mac[4], mac[5]);
        snprintf(path, sizeof(path), "memlinks.0.peer");
        at = strcmp(seen_get(&s, path), want) != 0;
        snprintf(path, sizeof(path), "memlinks.%u.peer", at);
        SEEN(&s, path, want);
        snprintf(path, sizeof(path), "memlinks.%u.state", at);
        SEEN(&s, path, "up");
        l = fix_link(f, i, !i);
        assert_true(l->sent > 0);
        snprintf(path, sizeof(path), "memlinks.%u.sent", at);
        snprintf(want, sizeof(want), "%u", (unsigned)l->sent);
        SEEN(&s, path, want);
        snprintf(path, sizeof(path), "memlinks.%u.named", at);
        snprintf(want, sizeof(want), "%u", (unsigned)l->sent_refs);
        SEEN(&s, path, want);
        snprintf(path, sizeof(path), "memlinks.%u.received", at);
        snprintf(want, sizeof(want), "%u", (unsigned)l->received);
        SEEN(&s, path, want);
        snprintf(path, sizeof(path), "memlinks.%u.lost", at);
        SEEN(&s, path, "0");
        snprintf(path, sizeof(path), "memlinks.%u.state", !at);
        SEEN(&s, path, "wire");         /* nothing was sent to that one */
        assert_null(seen_get(&s, "memlinks.2.peer"));
    }
    fix_look(f, 1, 0);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    seen_start(&s);
    free(s.text);
    fix_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_another),
        cmocka_unit_test(sniffed_record),
        cmocka_unit_test(too_long),
        cmocka_unit_test(dropped),
        cmocka_unit_test(shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

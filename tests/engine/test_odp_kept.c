/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging: how much is asked for, and packets that are kept until a
 * page is there, when they do not fit any more.
 */
#include "peer.h"
#include "adapter/adapter.h"
#include "godp.h"
#include "reborn.h"
#include "transport/rc.h"

#define MTU 256
#define LEN (4ull << 20)
#define IOVA 0x700000000000ull
#define MOST (1u << 20)         /* asked for at once */

struct t {
    struct peer *p;
    struct godp o;
    struct gmr mr;
};

static void begin_as(struct t *t, uint8_t type)
{
    t->p = peer_new(type, NULL);
    godp_create(&t->o, &t->mr, &t->p->g, LEN, IOVA, QHCA_ACCESS_MASK,
                &gbuf_flat4k);
    gbuf_allow(&t->mr.buf, 0, LEN, GMEM_RW);
}

static void begin(struct t *t)
{
    begin_as(t, QHCA_QPT_RC);
}

static void end(struct t *t)
{
    if (t->p->qp.qpn) {
        assert_int_equal(gqp_destroy(&t->p->qp), QHCA_ST_OK);
        t->p->qp.qpn = 0;
    }
    assert_int_equal(godp_destroy(&t->o), QHCA_ST_OK);
    peer_free(t->p);
}

static struct qhca_page_fault fault(struct t *t, unsigned side)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];

    peer_run(t->p);
    guest_faults(&t->p->g, t->p->qp.qpn, f);
    assert_true(f[side].flags & QHCA_PAGE_FAULT_VALID);
    return f[side];
}

static void provide(struct t *t, unsigned side,
                    const struct qhca_page_fault *f)
{
    godp_in(&t->o, f->addr - IOVA, f->len, f->flags & QHCA_PAGE_FAULT_WRITE);
    assert_int_equal(guest_resume(&t->p->g, t->p->qp.qpn, side, f->token,
                                  false), QHCA_ST_OK);
}

/* The adapter's address on another VLAN, too, or no more. */
static void set_gid(struct t *t, bool is)
{
    struct qhca_gid gid = { .vlan = 7,
                            .type = is ? QHCA_GID_ROCE_V2 : QHCA_GID_NONE };
    struct gcmd c = { .op = QHCA_CMD_SET_GID, .obj = GUEST_GIDS, .in = &gid,
                      .in_len = sizeof(gid) };

    guest_gid(0, t->p->a.gid_index, gid.gid);
    memcpy(gid.mac, t->p->n->mac, 6);
    assert_int_equal(guest_cmd(&t->p->g, &c), QHCA_ST_OK);
}

/* No more than a bounded part of a message, nor than there is of the region. */
static void asked_for(void **state)
{
    struct qhca_sge sge = { .len = LEN };
    struct qhca_page_fault f;
    struct t t;

    (void)state;
    begin(&t);
    peer_post(t.p, (struct gwr){
                  .opcode = QHCA_WQE_RDMA_WRITE, .rkey = 1, .num_sge = 1,
                  .remote_addr = 64, .sge[0] = { IOVA + 5, 3 * MOST,
                                                 t.mr.key } }, 0, 0);
    f = fault(&t, QHCA_PAGE_FAULT_SEND);
    assert_int_equal(f.addr, IOVA + 5);
    assert_int_equal(f.len, MOST);
    provide(&t, QHCA_PAGE_FAULT_SEND, &f);
    peer_expect(t.p, WRITE_FIRST, t.p->a.sq_psn);
    t.p->tail = t.p->head;
    /* a receive that is longer than what is left of the region */
    sge.addr = IOVA + LEN - 300;
    sge.lkey = t.mr.key;
    assert_true(gqp_post_recv(&t.p->qp, 1, &sge, 1));
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.p->a.rq_psn,
            .data = peer_data(0, MTU), .len = MTU);
    f = fault(&t, QHCA_PAGE_FAULT_RECV);
    assert_int_equal(f.addr, IOVA + LEN - 300);
    assert_int_equal(f.len, 300);
    end(&t);
}

/*
 * The address that it came to is removed meanwhile: the packet is lost, and
 * asked for again.
 */
static void address_gone(void **state)
{
    struct qhca_page_fault f;
    struct pkt k = { .op = WRITE_ONLY, .va = IOVA, .dmalen = 4, .data = "data",
                     .len = 4, .ackreq = true };
    uint8_t b[4400];
    struct t t;
    size_t len;

    (void)state;
    begin(&t);
    set_gid(&t, true);
    k.psn = t.p->a.rq_psn;
    k.rkey = t.mr.key;
    len = peer_build(t.p, &k, b);
    memmove(b + 18, b + 14, len - 14);
    memcpy(b + 12, "\x81\0\0\x07\x08\0", 6);
    world_inject(&t.p->w, 0, b, len + 4);
    f = fault(&t, QHCA_PAGE_FAULT_RECV);
    set_gid(&t, false);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_expect_aeth(t.p, 0x60, k.psn);
    peer_expect_nothing(t.p);
    peer_send(t.p, k);
    peer_expect_aeth(t.p, 0x1f, k.psn);
    end(&t);
}

/*
 * A loaded state can claim that a response is kept where requests are, even if
 * nothing has been requested yet.  It has no effect.
 */
static void a_response_instead(void **state)
{
    struct qhca_page_fault f;
    struct qhca_qp *qp;
    struct qhca_rx rx;
    uint8_t b[4400];
    struct t t;
    uint32_t s;
    size_t len;

    (void)state;
    begin(&t);
    assert_int_equal(gqp_state(&t.p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    gqp_clear(&t.p->qp);
    gqp_to_init(&t.p->qp, &t.p->a);
    gqp_to_rtr(&t.p->qp, &t.p->w.node[1], &t.p->a);
    s = t.p->a.rq_psn;
    peer_tx(t.p, .op = WRITE_ONLY, .psn = s, .va = IOVA, .rkey = t.mr.key,
            .dmalen = 4, .data = "data", .len = 4, .ackreq = true);
    f = fault(&t, QHCA_PAGE_FAULT_RECV);
    len = peer_build(t.p, &(struct pkt){ .op = ACK, .psn = t.p->a.sq_psn,
                                         .syn = 0x1f }, b);
    assert_int_equal(qhca_parse(t.p->e, b, len, &rx), QHCA_PARSE_OK);
    qhca_odp_keep(qhca_qp_get(t.p->e, t.p->qp.qpn), QHCA_PAGE_FAULT_RECV,
                  &rx);
    node_reborn(t.p->n, &t.p->e->ops);
    t.p->e = t.p->n->e;
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    qp = qhca_qp_get(t.p->e, t.p->qp.qpn);
    assert_int_equal(qp->state, QHCA_QPS_RTR);
    assert_int_equal(qhca_stat(t.p->e, QHCA_STAT_ROCE_ACK_RX), 0);
    assert_int_equal(qp->xp->exp_psn, s);
    peer_tx(t.p, .op = WRITE_ONLY, .psn = s, .va = IOVA, .rkey = t.mr.key,
            .dmalen = 4, .data = "data", .len = 4, .ackreq = true);
    peer_expect_aeth(t.p, 0x1f, s);
    end(&t);
}

#define QKEY 0x11111111u

/* A datagram to the group 239.129.2.3. */
static void to_group(struct t *t, const char *data)
{
    uint32_t qpn = t->p->qp.qpn, crc, sum = 0;
    uint8_t b[4400], *ip = b + 14;
    size_t len, i;

    t->p->qp.qpn = QHCA_QPN_MULTICAST;
    len = peer_build(t->p, &(struct pkt){ .op = UD_ONLY, .rkey = QKEY,
                                          .data = data, .len = 4 }, b);
    t->p->qp.qpn = qpn;
    memcpy(b, "\x01\x00\x5e\x01\x02\x03", 6);
    memcpy(ip + 16, "\xef\x81\x02\x03", 4);
    peer_put16(ip + 10, 0);
    for (i = 0; i < 20; i += 2) {
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    peer_put16(ip + 10, ~(sum + (sum >> 16)) & 0xffff);
    crc = peer_icrc(ip, len - 14 - 4);
    for (i = 0; i < 4; i++) {
        b[len - 4 + i] = (uint8_t)(crc >> (8 * i));
    }
    world_inject(&t->p->w, 0, b, len);
    peer_run(t->p);
}

static void member(struct t *t, uint8_t op, uint32_t qpn)
{
    struct qhca_mcg in = { .mgid = { [10] = 0xff, 0xff, 239, 129, 2, 3 } };
    struct gcmd c = { .op = op, .obj = qpn, .in = &in, .in_len = sizeof(in) };

    assert_int_equal(guest_cmd(&t->p->g, &c), QHCA_ST_OK);
}

/* A packet to a group is for those who are members when it is executed. */
static void member_gone(void **state)
{
    struct qhca_sge sge = { .addr = IOVA, .len = 64 };
    struct qhca_page_fault f;
    struct gqp_init in = { .type = QHCA_QPT_UD };
    struct gqp other;
    char got[4];
    struct t t;

    (void)state;
    begin_as(&t, QHCA_QPT_UD);
    sge.lkey = t.mr.key;
    in.scq = in.rcq = &t.p->scq;
    gqp_create(&other, &t.p->g, &in);
    member(&t, QHCA_CMD_ATTACH_MC, t.p->qp.qpn);
    member(&t, QHCA_CMD_ATTACH_MC, other.qpn);
    assert_true(gqp_post_recv(&t.p->qp, 1, &sge, 1));
    to_group(&t, "one ");
    f = fault(&t, QHCA_PAGE_FAULT_RECV);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_cqe(t.p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    gbuf_read(&t.mr.buf, 40, got, 4);
    assert_memory_equal(got, "one ", 4);
    /* the group stays, since the other one is in it */
    godp_out(&t.o, 0, 4096);
    assert_true(gqp_post_recv(&t.p->qp, 2, &sge, 1));
    to_group(&t, "two ");
    f = fault(&t, QHCA_PAGE_FAULT_RECV);
    member(&t, QHCA_CMD_DETACH_MC, t.p->qp.qpn);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_no_cqe(t.p, rcq);
    gbuf_read(&t.mr.buf, 40, got, 4);
    assert_memory_equal(got, "one ", 4);
    member(&t, QHCA_CMD_ATTACH_MC, t.p->qp.qpn);
    to_group(&t, "more");
    peer_cqe(t.p, rcq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    gbuf_read(&t.mr.buf, 40, got, 4);
    assert_memory_equal(got, "more", 4);
    member(&t, QHCA_CMD_DETACH_MC, t.p->qp.qpn);
    member(&t, QHCA_CMD_DETACH_MC, other.qpn);
    assert_int_equal(gqp_destroy(&other), QHCA_ST_OK);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_for),
        cmocka_unit_test(address_gone),
        cmocka_unit_test(member_gone),
        cmocka_unit_test(a_response_instead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

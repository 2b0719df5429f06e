/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspection of transport state: what is shown of a QP in the middle of an
 * operation, and of objects that others use.
 */
#include "peer.h"
#include "emit.h"
#include "godp.h"
#include "adapter/adapter.h"
#include "observe/inspect.h"

#define MTU 256
#define SIG QHCA_WQE_F_SIGNALED

static struct seen s;

/* Inspection may read anything: the red zones are for the device's work. */
static void look(struct peer *p, enum qhca_object object, uint32_t number)
{
    p->n->mem.unchecked = true;
    assert_null(qhca_inspect(p->e, object, number, seen_start(&s)));
    p->n->mem.unchecked = false;
    assert_int_equal(s.depth, 0);
}

static void look_qp(struct peer *p)
{
    look(p, QHCA_OBJ_QP, p->qp.qpn);
}

static void ring(struct peer *p, enum qhca_object object, uint32_t number,
                 enum qhca_ring which)
{
    struct qhca_ring_query l = {
        .object = object, .number = number, .ring = which,
    };

    p->n->mem.unchecked = true;
    assert_null(qhca_inspect_ring(p->e, &l, seen_start(&s)));
    p->n->mem.unchecked = false;
    assert_int_equal(s.depth, 0);
}

static void all(struct peer *p, enum qhca_object object, uint32_t from,
                uint32_t max)
{
    assert_null(qhca_inspect_all(p->e, object, from, max, seen_start(&s)));
    assert_int_equal(s.depth, 0);
}

static int forget(void **state)
{
    (void)state;
    seen_start(&s);
    free(s.text);
    s.text = NULL;
    return 0;
}

/* A partial message: its receive, and its progress. */
static void half_a_send(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.rq_psn;

    (void)state;
    look_qp(p);
    SEEN(&s, "responder.message_name", "NONE");
    UNSEEN(&s, "responder.receive.index");
    peer_recv(p, 0xbeef, 4096, 1000);
    peer_tx(p, .op = SEND_FIRST, .psn = psn, .data = peer_data(0, MTU),
            .len = MTU);
    peer_tx(p, .op = SEND_MIDDLE, .psn = psn + 1,
            .data = peer_data(0, MTU), .len = MTU);
    look_qp(p);
    SEEN(&s, "responder.message_name", "SEND");
    SEEN_NUM(&s, "responder.exp_psn", psn + 2);
    SEEN(&s, "responder.receive.index", "0");
    SEEN_NUM(&s, "responder.receive.received", 2 * MTU);
    SEEN(&s, "responder.receive.capacity", "1000");
    SEEN(&s, "responder.receive.wr_id", "0xbeef");
    SEEN_HEX(&s, "responder.receive.sges.0.addr", PEER_IOVA + 4096);
    UNSEEN(&s, "responder.write.va");
    peer_tx(p, .op = SEND_LAST, .psn = psn + 2, .data = peer_data(0, 8),
            .len = 8, .ackreq = true);
    peer_expect_aeth(p, 0x1f, psn + 2);
    peer_cqe(p, rcq, 0xbeef, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    look_qp(p);
    SEEN(&s, "responder.message_name", "NONE");
    SEEN(&s, "responder.msn", "1");
    UNSEEN(&s, "responder.receive.index");
    peer_free(p);
}

static void half_a_write(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.rq_psn;

    (void)state;
    peer_tx(p, .op = WRITE_FIRST, .psn = psn, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .dmalen = 600, .data = peer_data(0, MTU),
            .len = MTU);
    look_qp(p);
    SEEN(&s, "responder.message_name", "WRITE");
    SEEN_HEX(&s, "responder.write.rkey", p->mr.key);
    SEEN(&s, "responder.write.len", "600");
    SEEN_NUM(&s, "responder.write.left", 600 - MTU);
    UNSEEN(&s, "responder.receive.index");
    /* a packet is lost: we request it, once */
    SEEN(&s, "responder.nak_sent", "false");
    peer_tx(p, .op = WRITE_LAST, .psn = psn + 2, .data = peer_data(0, 88),
            .len = 88);
    peer_expect_aeth(p, 0x60, psn + 1);
    look_qp(p);
    SEEN(&s, "responder.nak_sent", "true");
    SEEN_NUM(&s, "responder.exp_psn", psn + 1);
    peer_free(p);
}

/* Responses owed to the peer while the wire is busy. */
static void owed(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.rq_psn;
    uint64_t word = 0x1122334455667788;

    (void)state;
    gbuf_write(&p->mr.buf, 128, &word, 8);
    p->w.wire.refuse = 65536;
    peer_tx(p, .op = WRITE_ONLY, .psn = psn, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 4, .data = "abcd", .len = 4,
            .ackreq = true);
    peer_tx(p, .op = READ_REQ, .psn = psn + 1, .va = PEER_IOVA + 8192,
            .rkey = p->mr.key, .dmalen = 3 * MTU);
    peer_tx(p, .op = FETCH_ADD, .psn = psn + 4, .va = PEER_IOVA + 128,
            .rkey = p->mr.key, .swap = 1);
    look_qp(p);
    SEEN(&s, "responder.responses_owed.0.kind_name", "ACK");
    SEEN_NUM(&s, "responder.responses_owed.0.psn", psn);
    SEEN(&s, "responder.responses_owed.1.kind_name", "READ");
    SEEN_NUM(&s, "responder.responses_owed.1.psn", psn + 1);
    SEEN_HEX(&s, "responder.responses_owed.1.va", PEER_IOVA + 8192);
    SEEN_HEX(&s, "responder.responses_owed.1.rkey", p->mr.key);
    SEEN_NUM(&s, "responder.responses_owed.1.left", 3 * MTU);
    SEEN(&s, "responder.responses_owed.1.started", "false");
    SEEN(&s, "responder.responses_owed.2.kind_name", "ATOMIC");
    SEEN_HEX(&s, "responder.responses_owed.2.value", word);
    UNSEEN(&s, "responder.responses_owed.3.kind_name");
    SEEN_NUM(&s, "responder.atomics_kept.0.psn", psn + 4);
    SEEN_HEX(&s, "responder.atomics_kept.0.value", word);
    UNSEEN(&s, "responder.atomics_kept.1.psn");
    look(p, QHCA_OBJ_DEVICE, 0);
    SEEN(&s, "wire_blocked", "true");
    SEEN(&s, "registers.ready", "true");

    p->w.wire.refuse = 0;
    world_run(&p->w, 10000000);
    peer_expect_aeth(p, 0x1f, psn);
    peer_expect(p, RESP_FIRST, psn + 1);
    peer_expect(p, RESP_MIDDLE, psn + 2);
    peer_expect(p, RESP_LAST, psn + 3);
    peer_expect(p, ATOMIC_ACK, psn + 4);
    look_qp(p);
    UNSEEN(&s, "responder.responses_owed.0.kind_name");
    SEEN(&s, "responder.reads_pending", "0");
    look(p, QHCA_OBJ_DEVICE, 0);
    SEEN(&s, "wire_blocked", "false");
    peer_free(p);
}

/* The peer has no receive: we wait, and the reason is shown. */
static void receiver_not_ready(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 16);
    peer_expect(p, SEND_ONLY, psn);
    peer_tx(p, .op = ACK, .psn = psn, .syn = 0x20 | 20);
    look_qp(p);
    SEEN(&s, "requester.state_name", "WAIT_RNR");
    SEEN(&s, "requester.retransmission.timer", "rnr");
    SEEN(&s, "requester.retransmission.timer_code", "20");
    SEEN(&s, "requester.retransmission.rnr_left", "2");
    SEEN(&s, "requester.retransmission.retry_left", "3");
    assert_string_not_equal(seen_get(&s, "requester.retransmission."
                                     "remaining_ns"), "0");
    world_run(&p->w, 20000000);
    peer_expect(p, SEND_ONLY, psn);
    peer_ack(p, psn, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    look_qp(p);
    SEEN(&s, "requester.state_name", "IDLE");
    SEEN(&s, "requester.retransmission.timer_running", "false");
    UNSEEN(&s, "requester.retransmission.timer");
    peer_free(p);
}

/* A READ with one packet of three received. */
static void part_of_a_read(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 7,
                               .flags = SIG, .remote_addr = 0x1000,
                               .rkey = 77 }, 0, 3 * MTU);
    peer_expect(p, READ_REQ, psn);
    look_qp(p);
    SEEN(&s, "requester.reads.0.responses_awaited", "3");
    SEEN(&s, "requester.reads.0.received", "0");
    SEEN(&s, "requester.window.0.marks", "STARTED|READ_OR_ATOMIC");
    peer_tx(p, .op = RESP_FIRST, .psn = psn, .syn = 0x1f,
            .data = peer_data(0, MTU), .len = MTU);
    look_qp(p);
    SEEN(&s, "requester.reads.0.opcode_name", "RDMA_READ");
    SEEN(&s, "requester.reads.0.remote_addr", "0x1000");
    SEEN(&s, "requester.reads.0.rkey", "0x4d");
    SEEN(&s, "requester.reads.0.responses_awaited", "2");
    SEEN_NUM(&s, "requester.reads.0.received", MTU);
    SEEN_NUM(&s, "requester.reads.0.len", 3 * MTU);
    SEEN_NUM(&s, "requester.una_psn", psn + 1);
    peer_free(p);
}

/* An XRC initiator's window shows the SRQ. */
static void initiator(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_XRC_INI, NULL);

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG, .srqn = 4711 }, 0, 16);
    peer_expect(p, CLASS_XRC | SEND_ONLY, p->a.sq_psn);
    look_qp(p);
    SEEN(&s, "context.type_name", "XRC_INI");
    SEEN(&s, "requester.window.0.srqn", "4711");
    SEEN(&s, "requester.window.0.opcode_name", "SEND");
    UNSEEN(&s, "rq_buffer.len");
    ring(p, QHCA_OBJ_QP, p->qp.qpn, QHCA_RING_SQ);
    SEEN(&s, "entries.0.srqn", "4711");
    SEEN(&s, "entries.0.mark", "in-flight");
    peer_free(p);
}

/* A domain and its members. */
static void domain(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t x = guest_create(&p->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    struct gqp_init qi = { .type = QHCA_QPT_XRC_TGT, .xrcd = x };
    struct gsrq srq;
    struct gqp tgt;

    (void)state;
    look(p, QHCA_OBJ_XRCD, x);
    SEEN(&s, "users", "0");
    UNSEEN(&s, "targets.0");
    gsrq_create_xrc(&srq, &p->g, 4, 6, p->g.pd, x, &p->rcq);
    gqp_create(&tgt, &p->g, &qi);
    look(p, QHCA_OBJ_XRCD, x);
    SEEN(&s, "users", "2");
    SEEN_NUM(&s, "targets.0", tgt.qpn);
    UNSEEN(&s, "targets.1");
    look(p, QHCA_OBJ_SRQ, srq.srqn);
    SEEN_NUM(&s, "context.xrcd", x);
    SEEN_NUM(&s, "context.cqn", p->rcq.cqn);
    UNSEEN(&s, "tag_matching.tags.0.tag");
    all(p, QHCA_OBJ_XRCD, 0, 10);
    SEEN_NUM(&s, "objects.0.number", x);
    UNSEEN(&s, "objects.1.number");
    all(p, QHCA_OBJ_SRQ, 0, 10);
    SEEN_NUM(&s, "objects.0.srqn", srq.srqn);
    SEEN(&s, "objects.0.depth", "16");
    SEEN(&s, "objects.0.head", "0");
    SEEN_NUM(&s, "objects.0.pd", p->g.pd);
    assert_int_equal(gqp_destroy(&tgt), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_FREE_XRCD, x), QHCA_ST_OK);
    peer_free(p);
}

/* A missing page: the bytes that each side waits for. */
static void page_fault(void **state)
{
    static const struct gbuf_shape flat = {
        .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
    };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint64_t iova = 0x700000000000;
    struct godp odp;
    struct gmr mr;

    (void)state;
    godp_create(&odp, &mr, &p->g, 1 << 16, iova, QHCA_ACCESS_MASK, &flat);
    peer_post(p, (struct gwr){
        .opcode = QHCA_WQE_SEND, .wr_id = 1, .flags = SIG, .num_sge = 1,
        .sge[0] = { iova + 4096, 100, mr.key },
    }, 0, 0);
    peer_expect_nothing(p);
    peer_tx(p, .op = READ_REQ, .psn = p->a.rq_psn, .va = iova + 8192,
            .rkey = mr.key, .dmalen = 200);
    peer_expect_nothing(p);
    look_qp(p);
    SEEN(&s, "context.req_state_name", "WAIT_PAGE");
    SEEN_HEX(&s, "page_faults.send.addr", iova + 4096);
    SEEN(&s, "page_faults.send.len", "100");
    SEEN_HEX(&s, "page_faults.send.key", mr.key);
    SEEN_HEX(&s, "page_faults.read.addr", iova + 8192);
    SEEN(&s, "page_faults.read.len", "200");
    UNSEEN(&s, "page_faults.recv.addr");
    UNSEEN(&s, "page_faults.land.addr");
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    look_qp(p);
    UNSEEN(&s, "page_faults.send.addr");
    UNSEEN(&s, "page_faults.read.addr");
    UNSEEN(&s, "path.mtu_bytes");
    assert_int_equal(godp_destroy(&odp), QHCA_ST_OK);
    peer_free(p);
}

/* An invalid WQE waits for those before it, and its error is known. */
static void invalid_wqe(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 16);
    peer_post(p, (struct gwr){ .opcode = 99, .wr_id = 2, .flags = SIG }, 0,
              16);
    peer_expect(p, SEND_ONLY, psn);
    look_qp(p);
    SEEN(&s, "context.state_name", "RTS");
    UNSEEN(&s, "requester.window.0.status");
    SEEN(&s, "requester.window.1.wr_id", "0x2");
    SEEN(&s, "requester.window.1.status_name", "LOC_QP_OP_ERR");
    SEEN(&s, "requester.window.1.syndrome_name", "WQE_OPCODE");
    peer_ack(p, psn, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, scq, 2, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE);
    look_qp(p);
    UNSEEN(&s, "requester.window.0.wr_id");
    peer_free(p);
}

/* After a NAK: which PSN it went back to. */
static void went_back(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = i,
                                   .flags = SIG }, 0, 16);
        peer_expect(p, SEND_ONLY, psn + i);
    }
    look_qp(p);
    SEEN(&s, "requester.retransmission.went_back", "false");
    UNSEEN(&s, "requester.retransmission.back_psn");
    peer_ack(p, psn + 1, 0x60);
    peer_expect(p, SEND_ONLY, psn + 1);
    look_qp(p);
    SEEN(&s, "requester.retransmission.went_back", "true");
    SEEN_NUM(&s, "requester.retransmission.back_psn", psn + 1);
    peer_ack(p, psn + 1, 0x1f);
    look_qp(p);
    SEEN(&s, "requester.retransmission.went_back", "false");
    peer_free(p);
}

/* An acknowledge waits behind a READ response. */
static void ack_behind_response(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.rq_psn;

    (void)state;
    p->w.wire.refuse = 65536;
    peer_tx(p, .op = READ_REQ, .psn = psn, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 16);
    look_qp(p);
    UNSEEN(&s, "responder.responses_owed.0.then_ack_psn");
    peer_tx(p, .op = WRITE_ONLY, .psn = psn + 1, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 4, .data = "abcd", .len = 4,
            .ackreq = true);
    look_qp(p);
    SEEN(&s, "responder.responses_owed.0.kind_name", "READ");
    SEEN_NUM(&s, "responder.responses_owed.0.then_ack_psn", psn + 1);
    UNSEEN(&s, "responder.responses_owed.1.psn");
    p->w.wire.refuse = 0;
    world_run(&p->w, 10000000);
    peer_expect(p, RESP_ONLY, psn);
    peer_expect_aeth(p, 0x1f, psn + 1);
    peer_free(p);
}

/* An address that cannot be is shown as such. */
static void no_path(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    uint16_t was = qp->av.sgid_index;

    (void)state;
    qp->av.sgid_index = (uint16_t)p->e->cfg.max_gid;
    look_qp(p);
    SEEN(&s, "path.error", "there is no such GID index");
    UNSEEN(&s, "path.source.type_name");
    SEEN(&s, "path.mtu_bytes", "256");
    qp->av.sgid_index = was;
    look_qp(p);
    UNSEEN(&s, "path.error");
    SEEN(&s, "path.source.type_name", "ROCE_V2");
    peer_free(p);
}

/* The tag list in search order, and the operations after it. */
static void tags(void **state)
{
    static const uint64_t tag[] = { 0x1234, 0x77, 0x1234 };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gtm_init ti = {
        .cq = &p->rcq, .max_tags = 8, .ops_shift = 4, .ops_stride = 7,
    };
    struct gqp_init qi = { .type = QHCA_QPT_RC, .scq = &p->scq,
                           .rcq = &p->scq };
    struct gsrq srq;
    struct gqp qp;
    uint32_t i, n;

    (void)state;
    gsrq_create_tm(&srq, &p->g, 6, 6, NULL, NULL, &ti);
    qi.srq = &srq;
    gqp_create(&qp, &p->g, &qi);
    for (i = 0; i < 3; i++) {
        struct gtm_op o = {
            .opcode = QHCA_WQE_TAG_ADD, .handle = 5 - i, .tag = tag[i],
            .mask = UINT64_MAX, .recv_wr_id = 0x100 + i, .num_sge = 1,
            .sge[0] = { PEER_IOVA + 4096 * i, 512 + i, p->mr.key },
        };

        assert_true(gtm_post(&srq, &o, &n));
        gtm_ring(&srq);
        peer_run(p);
        assert_int_equal(gtm_result(&srq, n), QHCA_TM_DONE);
    }
    look(p, QHCA_OBJ_SRQ, srq.srqn);
    SEEN(&s, "context.tags", "3");
    SEEN(&s, "tag_matching.tags.0.tag", "0x1234");
    SEEN(&s, "tag_matching.tags.0.entry", "5");
    SEEN(&s, "tag_matching.tags.1.tag", "0x77");
    SEEN(&s, "tag_matching.tags.1.wr_id", "0x101");
    SEEN(&s, "tag_matching.tags.1.capacity", "513");
    SEEN(&s, "tag_matching.tags.2.entry", "3");
    SEEN(&s, "tag_matching.tags.2.active", "true");
    SEEN_HEX(&s, "tag_matching.tags.2.mask", UINT64_MAX);
    UNSEEN(&s, "tag_matching.tags.3.tag");
    ring(p, QHCA_OBJ_SRQ, srq.srqn, QHCA_RING_OPS);
    SEEN(&s, "ring", "ops");
    SEEN(&s, "stride", "128");
    SEEN(&s, "producer", "3");
    SEEN(&s, "consumer", "3");
    SEEN(&s, "entries.1.opcode_name", "TAG_ADD");
    SEEN(&s, "entries.1.tag", "0x77");
    SEEN_HEX(&s, "entries.2.sges.0.addr", PEER_IOVA + 8192);
    look(p, QHCA_OBJ_QP, qp.qpn);
    SEEN(&s, "tag_matching.rendezvous_reads", "0");
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    peer_free(p);
}

/* All objects of a kind, a few at a time, and whether there are more. */
static void lists(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    all(p, QHCA_OBJ_CQ, 0, 10);
    SEEN_NUM(&s, "objects.0.cqn", p->scq.cqn);
    SEEN(&s, "objects.0.depth", "1024");
    SEEN_NUM(&s, "objects.1.cqn", p->rcq.cqn);
    SEEN(&s, "objects.1.depth", "256");
    SEEN(&s, "objects.1.eqn", "1");
    SEEN(&s, "more", "false");
    all(p, QHCA_OBJ_CQ, 0, 1);
    SEEN_NUM(&s, "objects.0.cqn", p->scq.cqn);
    UNSEEN(&s, "objects.1.cqn");
    SEEN(&s, "more", "true");
    all(p, QHCA_OBJ_CQ, p->scq.cqn + 1, 1);
    SEEN_NUM(&s, "objects.0.cqn", p->rcq.cqn);
    SEEN(&s, "more", "false");
    all(p, QHCA_OBJ_EQ, 0, 10);
    SEEN(&s, "objects.1.eqn", "1");
    SEEN(&s, "objects.1.depth", "64");
    UNSEEN(&s, "objects.2.eqn");
    all(p, QHCA_OBJ_MR, 0, 10);
    SEEN_HEX(&s, "objects.0.key", p->mr.key);
    SEEN_HEX(&s, "objects.0.iova", PEER_IOVA);
    SEEN_HEX(&s, "objects.0.len", PEER_BUF);
    all(p, QHCA_OBJ_PD, 0, 10);
    SEEN_NUM(&s, "objects.0.number", p->g.pd);
    all(p, QHCA_OBJ_GID, 0, 1);
    SEEN(&s, "objects.0.index", "0");
    UNSEEN(&s, "objects.1.index");
    SEEN(&s, "more", "true");
    all(p, QHCA_OBJ_GID, 1, 100);
    SEEN(&s, "objects.0.index", "1");
    SEEN(&s, "objects.0.type_name", "ROCE_V2");
    SEEN(&s, "more", "false");
    assert_non_null(qhca_inspect_all(p->e, QHCA_OBJ_DEVICE, 0, 1,
                                     seen_start(&s)));
    assert_non_null(qhca_inspect_all(p->e, QHCA_OBJECTS, 0, 1,
                                     seen_start(&s)));
    assert_non_null(qhca_inspect(p->e, QHCA_OBJECTS, 0, seen_start(&s)));
    assert_string_equal(s.text, "");
    peer_free(p);
}

#define LOOK(f) cmocka_unit_test_teardown(f, forget)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        LOOK(half_a_send), LOOK(half_a_write), LOOK(owed),
        LOOK(receiver_not_ready), LOOK(part_of_a_read), LOOK(initiator),
        LOOK(domain), LOOK(page_fault), LOOK(invalid_wqe), LOOK(went_back),
        LOOK(ack_behind_response), LOOK(no_path), LOOK(tags), LOOK(lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

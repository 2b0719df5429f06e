/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile device: the input determines what it writes into the memory that it
 * shares with an application - CQEs, rings, doorbell records, the results of
 * tag operations - and the numbers that the kernel passes on from it. Whatever
 * they are, an application that uses the verbs correctly must not access memory
 * outside its queues or freed memory, or leak.
 *
 * The input is a list of actions: those of the application, with legal
 * arguments, and those of the device, with arbitrary arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "fake-kernel.h"

#define CQS 3                   /* the last is an extended one */
#define QPS 6
#define SRQS 3                  /* basic, XRC, with tag matching */

extern unsigned short qhca_wqe_semaphore, qhca_recv_wqe_semaphore,
                      qhca_doorbell_semaphore, qhca_poll_semaphore;

static struct {
    const uint8_t *p, *end;     /* the input */
    struct ibv_pd *protection;
    struct ibv_pd *pd;          /* a parent domain, see ring_alloc() */
    struct ibv_xrcd *xrcd;
    struct ibv_ah *ah;
    struct ibv_mw *mw;
    struct qhca_cq *cq[CQS];
    struct qhca_srq *srq[SRQS];
    struct qhca_qp *qp[QPS];
    struct ibv_wq *wq;
    uint32_t prod[CQS];         /* what a device would write next */
} s;

static char data[1024];         /* of inline sends */

/* ---- the input ---- */

static uint8_t u8(void)
{
    return s.p < s.end ? *s.p++ : 0;
}

static uint32_t u32(void)
{
    uint32_t v = 0;
    int i;

    for (i = 0; i < 4; i++) {
        v = v << 8 | u8();
    }
    return v;
}

/* A number; small ones are as likely as all others. */
static uint32_t number(void)
{
    uint8_t kind = u8();

    return kind < 128 ? kind & 15 : kind < 192 ? u8() : u32();
}

/* ---- objects ---- */

/* Rings come from the heap: AddressSanitizer sees where one ends. */
static void *ring_alloc(struct ibv_pd *pd, void *context, size_t size,
                        size_t alignment, uint64_t type)
{
    return aligned_alloc(alignment, size);
}

static void ring_free(struct ibv_pd *pd, void *context, void *ring,
                      uint64_t type)
{
    free(ring);
}

static void make_pd(void)
{
    struct ibv_parent_domain_init_attr attr = {
        .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
        .alloc = ring_alloc, .free = ring_free,
    };

    s.protection = attr.pd = fake_pd();
    s.pd = qhca_alloc_parent_domain(fake.context, &attr);
    assert_non_null(s.pd);
}

static struct qhca_cq *any_cq(void)
{
    return s.cq[u8() % CQS];
}

static void make_cq(unsigned int i)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 1 + u8() % 128,
        .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = s.pd,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN |
                    IBV_WC_EX_WITH_TM_INFO | IBV_WC_EX_WITH_FLOW_TAG |
                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
    };
    struct ibv_cq_ex *ex = qhca_create_cq_ex(fake.context, &attr);

    if (!ex) {                  /* the device reports less room */
        attr.cqe = 1;
        ex = qhca_create_cq_ex(fake.context, &attr);
        assert_non_null(ex);
    }
    s.cq[i] = to_qcq_ex(ex);
    s.prod[i] = 0;
}

static void make_srq(unsigned int i)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = { .max_wr = 1 + u8() % 128, .max_sge = u8() % 4 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .pd = s.pd,
    };
    struct ibv_srq *srq;

    if (i) {
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
        attr.cq = &any_cq()->vcq.cq;
    }
    if (i == 1) {
        attr.srq_type = IBV_SRQT_XRC;
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
        attr.xrcd = s.xrcd;
    } else if (i == 2) {
        attr.srq_type = IBV_SRQT_TM;
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
        attr.tm_cap.max_num_tags = 1 + u8() % 16;
        attr.tm_cap.max_ops = 1 + u8() % 64;
    }
    fake.next_srqn = number();
    srq = qhca_create_srq_ex(fake.context, &attr);
    s.srq[i] = srq ? to_qsrq(srq) : NULL;
}

static void make_qp(unsigned int i)
{
    static const enum ibv_qp_type types[] = {
        IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
        IBV_QPT_RAW_PACKET, IBV_QPT_UC,
    };
    static const uint64_t ops[] = {
        IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
        IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH,
        IBV_QP_EX_WITH_SEND, IBV_QP_EX_WITH_SEND, IBV_QP_EX_WITH_SEND,
        IBV_QP_EX_WITH_SEND,
        IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
    };
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = types[i], .pd = s.pd,
        .send_cq = &any_cq()->vcq.cq, .recv_cq = &any_cq()->vcq.cq,
        .cap = {
            .max_send_wr = 1 + u8() % 64, .max_send_sge = u8() % 4,
            .max_recv_wr = 1 + u8() % 64, .max_recv_sge = u8() % 4,
            .max_inline_data = u8(),
        },
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = ops[i],
    };
    uint8_t srq = u8() % 4;
    struct ibv_qp *qp;

    if (i == 1 && srq < SRQS && srq != 1 && s.srq[srq]) {
        attr.srq = &s.srq[srq]->vsrq.srq;
        if (srq == 2) {         /* the device uses its send side */
            attr.cap.max_send_wr = attr.cap.max_inline_data = 0;
            attr.comp_mask &= ~IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        }
    }
    fake.next_qpn = number();
    qp = qhca_create_qp_ex(fake.context, &attr);
    s.qp[i] = qp ? to_qqp(qp) : NULL;
    if (qp) {
        fake_qp_state(s.qp[i], IBV_QPS_RTS);
    }
}

static void make_wq(void)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1 + u8() % 64, .max_sge = u8() % 4,
        .pd = s.pd, .cq = &any_cq()->vcq.cq,
    };

    fake.next_qpn = number();
    s.wq = qhca_create_wq(fake.context, &attr);
    if (s.wq) {
        s.wq->state = IBV_WQS_RDY;
    }
}

static void destroy_qp(unsigned int i)
{
    if (s.qp[i]) {
        assert_int_equal(qhca_destroy_qp(&s.qp[i]->vqp.qp), 0);
        s.qp[i] = NULL;
    }
}

static void destroy_wq(void)
{
    if (s.wq) {
        assert_int_equal(qhca_destroy_wq(s.wq), 0);
        s.wq = NULL;
    }
}

/* The kernel destroys no SRQ and no CQ that a QP uses. */
static void destroy_srq(unsigned int i)
{
    unsigned int q;

    if (!s.srq[i]) {
        return;
    }
    for (q = 0; q < QPS; q++) {
        if (s.qp[q] && s.qp[q]->srq == s.srq[i]) {
            destroy_qp(q);
        }
    }
    assert_int_equal(qhca_destroy_srq(&s.srq[i]->vsrq.srq), 0);
    s.srq[i] = NULL;
}

static void destroy_cq(unsigned int i)
{
    struct qhca_cq *cq = s.cq[i];
    unsigned int n;

    for (n = 0; n < QPS; n++) {
        if (s.qp[n] && (s.qp[n]->send_cq == cq || s.qp[n]->recv_cq == cq)) {
            destroy_qp(n);
        }
    }
    for (n = 0; n < SRQS; n++) {
        if (s.srq[n] && s.srq[n]->cq == cq) {
            destroy_srq(n);
        }
    }
    if (s.wq && s.wq->cq == &cq->vcq.cq) {
        destroy_wq();
    }
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    s.cq[i] = NULL;
}

static void replace(void)
{
    uint8_t what = u8() % (CQS + SRQS + QPS + 1);

    if (what < CQS) {
        destroy_cq(what);
        make_cq(what);
    } else if (what < CQS + SRQS) {
        destroy_srq(what - CQS);
        make_srq(what - CQS);
    } else if (what < CQS + SRQS + QPS) {
        destroy_qp(what - CQS - SRQS);
        make_qp(what - CQS - SRQS);
    } else {
        destroy_wq();
        make_wq();
    }
}

/* ---- the device ---- */

/* The number of the object, of another one, or of none. */
static uint32_t any_number(void)
{
    uint8_t n = u8() % 16;

    if (n < QPS) {
        return s.qp[n] ? s.qp[n]->qpn : 0;
    }
    if (n < QPS + SRQS) {
        return s.srq[n - QPS] ? s.srq[n - QPS]->srqn : 0;
    }
    return n == 15 ? u32() : s.wq ? s.wq->wq_num : 0;
}

/* A plausible CQE, in the slot of the next one or in any other. */
static void write_cqe(void)
{
    static const uint8_t opcodes[] = {
        QHCA_CQE_OP_SEND, QHCA_CQE_OP_RECV, QHCA_CQE_OP_RDMA_READ,
        QHCA_CQE_OP_RAW_RECV, QHCA_CQE_OP_TM_RECV, QHCA_CQE_OP_TM_NO_TAG,
        QHCA_CQE_OP_TM_ADD,
    };
    static const uint8_t syndromes[] = {
        0, QHCA_SYN_WQE_DMA, QHCA_SYN_TABLE_DMA, QHCA_SYN_DB_INDEX,
    };
    unsigned int i = u8() % CQS;
    struct qhca_cqe cqe = {
        .qpn = htole32(any_number()), .src_qpn = htole32(any_number()),
        .wqe_index = htole32(number()), .byte_len = htole32(number()),
    };
    uint8_t n = u8() % 8;

    cqe.opcode = n < sizeof(opcodes) ? opcodes[n] : u8();
    cqe.status = n & 1 ? 0 : u8() % 24;
    cqe.syndrome = syndromes[u8() % 4];
    cqe.flags = htole16(u8() | u8() << 8);
    cqe.net_type = u8();
    if (u8() < 192) {
        fake_cqe(s.cq[i], s.prod[i]++, cqe);
    } else {
        cqe.phase = u8();
        s.cq[i]->ring[qhca_slot(u32(), s.cq[i]->shift)] = cqe;
    }
}

static void scribble_on(void *mem, size_t len)
{
    size_t at, n;

    if (!mem) {
        return;
    }
    at = u32() % len;
    n = 1 + u8() % 32;
    for (; n && at < len; n--) {
        ((uint8_t *)mem)[at++] = u8();
    }
}

/* Anywhere in its memory: it can write what it should only read. */
static void scribble(void)
{
    unsigned int i = u8();
    struct qhca_qp *qp = s.qp[i % QPS];
    struct qhca_srq *srq = s.srq[i % SRQS];
    struct qhca_cq *cq = s.cq[i % CQS];

    switch (u8() % 8) {
    case 0:
        scribble_on(cq->buf.addr, cq->buf.len);
        break;
    case 1:
        scribble_on(cq->dbrec, sizeof(*cq->dbrec));
        break;
    case 2:
        if (srq) {
            scribble_on(srq->buf.addr, srq->buf.len);
        }
        break;
    case 3:
        if (srq) {
            scribble_on(srq->index_buf.addr, srq->index_buf.len);
        }
        break;
    case 4:
        if (srq && srq->tm) {
            scribble_on(srq->tm->buf.addr, srq->tm->buf.len);
        }
        break;
    case 5:
        if (qp) {
            scribble_on(qp->rq.buf.addr, qp->rq.buf.len);
        }
        break;
    case 6:
        if (qp && qp->rq.dbrec) {
            scribble_on(qp->rq.dbrec, sizeof(*qp->rq.dbrec));
        }
        break;
    default:
        if (qp) {
            scribble_on(qp->sq.buf.addr, qp->sq.buf.len);
        }
    }
}

/* It executes operations, and reports an arbitrary result for each. */
static void execute(void)
{
    struct qhca_tm *tm = s.srq[2] ? s.srq[2]->tm : NULL;
    struct qhca_tm_wqe *wqe;

    if (tm) {
        wqe = (void *)(tm->ring + ((size_t)qhca_slot(tm->tail + u8() % 4,
                                                     tm->shift) <<
                                   tm->stride));
        wqe->result = htole32(QHCA_TM_DONE | (u8() & 1));
        wqe->handle = htole32(number() | u8() << 16);
    }
}

/* Between two steps of the application, or in none. */
static void device(void)
{
    uint8_t n = u8() % 8;

    if (n == 0) {
        write_cqe();
    } else if (n == 1) {
        scribble();
    } else if (n == 2) {
        /* the WQE that is being written, at its beginning */
        struct qhca_qp *qp = s.qp[u8() % QPS];

        if (qp && qp->sq.ring) {
            scribble_on(qp->sq.ring + ((size_t)qhca_slot(qp->sq.head,
                                                         qp->sq.shift) <<
                                       qp->sq.stride), 16);
        }
    }
}

/* ---- the application ---- */

static void poll_cq(void)
{
    struct ibv_wc wc[16];
    int n = qhca_poll_cq(&any_cq()->vcq.cq, 1 + u8() % 16, wc);

    assert_true(n <= 16);
}

static void poll_ex(void)
{
    struct ibv_cq_ex *cq = &s.cq[CQS - 1]->vcq.cq_ex;
    struct ibv_poll_cq_attr attr = {};
    struct ibv_wc_tm_info info;
    unsigned int n = u8() % 16;

    if (cq->start_poll(cq, &attr)) {
        return;
    }
    do {
        device();
        cq->read_opcode(cq);
        cq->read_vendor_err(cq);
        cq->read_wc_flags(cq);
        cq->read_byte_len(cq);
        cq->read_imm_data(cq);
        cq->read_qp_num(cq);
        cq->read_src_qp(cq);
        cq->read_sl(cq);
        cq->read_cvlan(cq);
        cq->read_flow_tag(cq);
        cq->read_completion_ts(cq);
        cq->read_tm_info(cq, &info);
    } while (n-- && !cq->next_poll(cq));
    cq->end_poll(cq);
}

static void post_send(void)
{
    struct qhca_qp *qp = s.qp[u8() % QPS];
    struct ibv_sge sge[4] = {};
    struct ibv_send_wr wr = {
        .sg_list = sge, .num_sge = u8() % 5, .opcode = u8() % 16,
        .send_flags = u8() & (IBV_SEND_INLINE | IBV_SEND_SIGNALED),
    }, *bad;
    int i;

    if (!qp) {
        return;
    }
    for (i = 0; i < 4; i++) {
        sge[i].addr = (uintptr_t)data;
        sge[i].length = u8();
    }
    if (wr.opcode == IBV_WR_BIND_MW) {
        wr.bind_mw.mw = s.mw;
    } else if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
        wr.wr.ud.ah = s.ah;
    }
    qhca_post_send(&qp->vqp.qp, &wr, &bad);
}

static void post_ex(void)
{
    struct qhca_qp *qp = s.qp[u8() % QPS];
    struct ibv_data_buf bufs[3] = {
        { data, u8() }, { data, u8() }, { data, u8() },
    };
    struct ibv_sge sge[4] = {};
    struct ibv_qp_ex *ex;
    unsigned int n = u8() % 4;

    if (!qp || !(qp->vqp.comp_mask & VERBS_QP_EX)) {
        return;
    }
    ex = &qp->vqp.qp_ex;
    ex->wr_start(ex);
    do {
        uint8_t op = u8() % 4;

        ex->wr_flags = u8() & IBV_SEND_SIGNALED;
        if (op == 0 && ex->wr_rdma_write) {
            ex->wr_rdma_write(ex, 1, 2);
        } else if (op == 1 && ex->wr_atomic_write) {
            ex->wr_atomic_write(ex, 1, 8, data);
            continue;
        } else if (op == 2 && ex->wr_flush) {
            ex->wr_flush(ex, 1, 2, 3, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
            continue;
        } else {
            ex->wr_send(ex);
        }
        device();
        if (ex->wr_set_ud_addr) {
            ex->wr_set_ud_addr(ex, s.ah, 1, 2);
        }
        if (ex->wr_set_xrc_srqn) {
            ex->wr_set_xrc_srqn(ex, 1);
        }
        device();
        if (u8() & 1) {
            ex->wr_set_inline_data_list(ex, u8() % 4, bufs);
            device();
            if (u8() & 1) {
                ex->wr_set_inline_data(ex, data, u8());
            }
        } else {
            ex->wr_set_sge_list(ex, u8() % 5, sge);
        }
        device();
    } while (n--);
    if (u8() < 32) {
        ex->wr_abort(ex);
    } else {
        ex->wr_complete(ex);
    }
}

static void post_recv(void)
{
    struct ibv_sge sge[4] = {};
    struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = u8() % 5 }, *bad;
    struct qhca_srq *srq = s.srq[u8() % SRQS];
    struct qhca_qp *qp = s.qp[u8() % QPS];

    switch (u8() % 3) {
    case 0:
        if (srq) {
            qhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad);
        }
        break;
    case 1:
        if (s.wq) {
            s.wq->post_recv(s.wq, &wr, &bad);
        }
        break;
    default:
        if (qp) {
            qhca_post_recv(&qp->vqp.qp, &wr, &bad);
        }
    }
}

static void post_ops(void)
{
    struct ibv_sge sge = {};
    struct ibv_ops_wr wr = {
        .opcode = IBV_WR_TAG_ADD + u8() % 3,
        .flags = u8() & IBV_OPS_SIGNALED,
    }, *bad;

    wr.tm.add.sg_list = &sge;
    wr.tm.add.num_sge = u8() & 1;
    wr.tm.handle = number();
    if (s.srq[2]) {
        qhca_post_srq_ops(&s.srq[2]->vsrq.srq, &wr, &bad);
    }
}

static void resize(void)
{
    struct ibv_srq_attr attr = { .max_wr = 1 + u8() };
    struct qhca_srq *srq = s.srq[u8() % SRQS];
    unsigned int i = u8() % CQS;

    if (u8() & 1) {
        qhca_resize_cq(&s.cq[i]->vcq.cq, 1 + u8());
    } else if (srq && !srq->tm) {
        qhca_modify_srq(&srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR);
    }
}

static void reset(void)
{
    struct qhca_qp *qp = s.qp[u8() % QPS];

    if (qp) {
        fake_qp_state(qp, IBV_QPS_RESET);
        fake_qp_state(qp, IBV_QPS_RTS);
    }
}

static void watch(void)
{
    unsigned short on = u8() & 1;

    qhca_wqe_semaphore = qhca_recv_wqe_semaphore = on;
    qhca_doorbell_semaphore = qhca_poll_semaphore = on;
}

static void act(void)
{
    static void (*const actions[])(void) = {
        write_cqe, write_cqe, write_cqe, scribble, scribble, execute,
        poll_cq, poll_cq, poll_ex, poll_ex, post_send, post_ex, post_ex,
        post_recv, post_recv, post_ops, post_ops, resize, reset, replace,
        replace, watch,
    };
    uint8_t n = u8();

    if (n == 255) {
        fake.status->works = u8() & 1;
    } else {
        actions[n % (sizeof(actions) / sizeof(actions[0]))]();
    }
}

/* ---- one run ---- */

static void begin(void)
{
    struct ibv_xrcd_init_attr xattr = {};
    struct ibv_ah_attr aattr = { .is_global = 1 };
    unsigned int i;

    fake.features |= QHCA_FEAT_TAG_MATCHING;
    fake.limit = number();
    fake.max_inline = u8() & 1 ? number() : 512;
    fake_open();
    make_pd();
    s.xrcd = qhca_open_xrcd(fake.context, &xattr);
    s.ah = qhca_create_ah(s.pd, &aattr);
    s.mw = qhca_alloc_mw(s.pd, IBV_MW_TYPE_2);
    assert_true(s.xrcd && s.ah && s.mw);
    for (i = 0; i < CQS; i++) {
        make_cq(i);
    }
    for (i = 0; i < SRQS; i++) {
        make_srq(i);
    }
    for (i = 0; i < QPS; i++) {
        make_qp(i);
    }
    make_wq();
}

static void end(void)
{
    unsigned int i;

    qhca_wqe_semaphore = qhca_recv_wqe_semaphore = 0;
    qhca_doorbell_semaphore = qhca_poll_semaphore = 0;
    for (i = 0; i < CQS; i++) {
        destroy_cq(i);
    }
    for (i = 0; i < QPS; i++) {
        destroy_qp(i);
    }
    for (i = 0; i < SRQS; i++) {
        destroy_srq(i);
    }
    destroy_wq();
    assert_int_equal(qhca_dealloc_mw(s.mw), 0);
    assert_int_equal(qhca_destroy_ah(s.ah), 0);
    assert_int_equal(qhca_close_xrcd(s.xrcd), 0);
    assert_int_equal(qhca_dealloc_pd(s.pd), 0);
    assert_int_equal(qhca_dealloc_pd(s.protection), 0);
    fake_close();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    s.p = input;
    s.end = input + size;
    begin();
    while (s.p < s.end) {
        act();
    }
    end();
    return 0;
}

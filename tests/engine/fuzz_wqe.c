/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: work queue entries.  The QPs talk to each other in one adapter;
 * each WQE starts as a valid one and is corrupted by the input, in the ring,
 * also after the doorbell.  Memory permissions are on.
 */
#include "fuzz_pair.h"

static void send(struct fq *q, struct fz *f)
{
    uint8_t k = fz_u8(f), how = fz_u8(f), bytes[256];
    struct gqp *qp = &q->qp[k % FQ_QPS];
    uint32_t index = qp->sq_prod;
    struct gwr w;
    unsigned i;

    memset(&w, 0, sizeof(w));
    w.opcode = fz_u8(f) & 0x3b;
    w.flags = how & 15;
    w.wr_id = index;
    w.num_sge = how >> 4 & 3;
    w.inl = bytes;
    w.inl_len = how >> 4 & 15;
    memset(bytes, k, sizeof(bytes));
    for (i = 0; i < w.num_sge; i++) {
        w.sge[i].addr = FQ_IOVA + fz_u8(f) * 8u;
        w.sge[i].len = fz_u16(f) & 0xfff;
        w.sge[i].lkey = q->mr.key;
    }
    w.remote_addr = FQ_IOVA + fz_u8(f) * 8u;
    w.rkey = q->mr.key;
    if (w.opcode == QHCA_WQE_BIND_MW) {
        w.remote_addr = q->mr.key;
        w.rkey = q->mw[how & 1] | (k & 3);
        w.arg0 = FQ_IOVA + fz_u8(f) * 8u;
        w.arg1 = fz_u16(f);
        w.rarg = fz_u8(f) & 0x2e;
    } else if ((how & 0xc0) == 0xc0) {
        w.rkey = q->mw[how & 1] | (k & 3);      /* perhaps bound */
        w.imm = w.rkey;
    }
    w.dest_qpn = q->qp[3].qpn;
    w.qkey = 0x11111111;
    w.srqn = q->xsrq.srqn;
    guest_av(&q->g, &q->w.node[0], how & 3, &w.av);
    if (!qp->sq_stride || !gqp_post_send(qp, &w)) {
        return;
    }
    if (k & 0x80) {
        gbuf_read(&qp->sq, (uint64_t)(index & 15) << 8, bytes, 256);
        fz_spoil(f, bytes, 256);
        gqp_sq_poke(qp, index, 0, bytes, 256);
    }
    if (k & 0x40) {
        gqp_ring(qp);
    }
    if (k & 0x20) {             /* change it while it is in progress */
        fz_spoil(f, bytes, 256);
        gqp_sq_poke(qp, index, 0, bytes, 256);
    }
}

static void receive(struct fq *q, struct fz *f)
{
    uint8_t k = fz_u8(f), bytes[64];
    struct gqp *qp = &q->qp[k % 4];
    uint32_t index = qp->rq_prod;
    struct qhca_sge sge = { .addr = FQ_IOVA + 4096 + fz_u8(f) * 8u,
                            .len = fz_u16(f) & 0xfff, .lkey = q->mr.key };

    if (k == 0xff) {
        fq_new_xsrq(q, sge.len & 7);
        return;
    }
    if (gqp_post_recv(qp, k, &sge, 1) && k & 0x80) {
        gbuf_read(&qp->rq, (uint64_t)(index & 15) << 6, bytes, 64);
        fz_spoil(f, bytes, 64);
        gqp_rq_poke(qp, index, 0, bytes, 64);
    }
}

/* Go through all states, and back to RTS if possible. */
static void move(struct fq *q, struct fz *f)
{
    uint8_t k = fz_u8(f);
    struct gqp *qp = &q->qp[k % FQ_QPS];

    gqp_state(qp, k >> 4 & 7);
    if (qp->state == QHCA_QPS_RESET) {
        struct gqp_attr a;

        gqp_attr_default(&a);
        a.dest_qpn = fq_other(q, k % FQ_QPS);
        a.timeout = 6;
        a.retry_cnt = a.rnr_retry = 2;
        gqp_to_init(qp, &a);
        gqp_to_rtr(qp, &q->w.node[0], &a);
        gqp_to_rts(qp, &a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    struct qhca_cqe c;
    struct fq q;
    unsigned i;

    fq_open(&q, true);
    for (i = 0; fz_more(&f) && i < 1000; i++) {
        uint8_t what = fz_u8(&f);

        switch (what & 15) {
        case 0:
            move(&q, &f);
            break;
        case 1:
            world_run(&q.w, (uint64_t)fz_u8(&f) << (what >> 3 & 0x1e));
            break;
        case 2:
        case 3:
            receive(&q, &f);
            break;
        case 4:                 /* pretend the ring was emptied */
            q.qp[(what >> 4) % FQ_QPS].sq_cons =
                q.qp[(what >> 4) % FQ_QPS].sq_rung;
            while (gcq_poll(&q.cq, &c)) {
            }
            break;
        default:
            send(&q, &f);
        }
    }
    fq_close(&q);
    return 0;
}

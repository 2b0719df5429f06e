/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: fault injection by arbitrary rules, while QPs of one adapter
 * talk to each other.  Whatever is injected, the device accesses nothing but
 * its buffers, and all recovers once the rules are removed.
 */
#include <inttypes.h>

#include "observe/fault.h"
#include "fuzz_pair.h"

/* These can kill the adapter, which is correct and ends the run. */
static bool deadly(const struct qhca_fault_rule *f)
{
    return f->action == QHCA_FLT_FATAL || f->action == QHCA_FLT_RESET ||
           (f->action == QHCA_FLT_GARBAGE && f->at == QHCA_FLT_AT_DMA &&
            (!(f->fields & QHCA_FLT_KIND) || f->kind != QHCA_DMA_DATA)) ||
           ((f->action == QHCA_FLT_DMA_ERROR ||
             f->action == QHCA_FLT_TABLE_ERROR) &&
            (!(f->fields & QHCA_FLT_KIND) || f->kind == QHCA_DMA_COMMAND ||
             f->kind == QHCA_DMA_EQE || f->kind == QHCA_DMA_TABLE));
}

static void add(struct fq *q, struct qhca_fault_rule *f)
{
    struct qhca_fault_rule again = *f;

    if (!qhca_fault_check(f) && !deadly(f)) {
        CHECK(!qhca_fault_add(q->g.n->e, f) ||
              qhca_fault_next(q->g.n->e, QHCA_FAULTS_MAX - 1),
              "a good rule is not taken");
    } else if (!deadly(f)) {
        CHECK(qhca_fault_add(q->g.n->e, &again), "a bad rule is taken");
    }
}

static void some_rule(struct fq *q, struct fz *f)
{
    struct qhca_fault_rule r = {
        .action = fz_u8(f) % (QHCA_FLT_ACTIONS + 1), .fields = fz_u16(f),
    };
    uint8_t k = fz_u8(f);

    r.at = k % (QHCA_FLT_ATS + 1);
    r.number = q->qp[k >> 5].qpn + (k == 7);
    r.peer = q->qp[fz_u8(f) % FQ_QPS].qpn;
    r.psn = (0xfffffc + fz_u8(f) % 16) & 0xffffff;
    r.psn_last = k & 1 ? r.psn : fz_u32(f) & 0x1ffffff;
    r.psn_relative = k & 2;
    r.opcode[0] = fz_u32(f);
    r.opcode[k & 7] |= fz_u32(f);
    r.kind = fz_u8(f) % (QHCA_DMAS + 1);
    r.direction = fz_u8(f) & 7;
    r.access = fz_u8(f) & 3;
    r.index_last = fz_u8(f) & 7;
    r.addr_last = UINT64_MAX;
    r.nth = k & 4 ? fz_u8(f) : 0;
    r.every = k & 8 ? fz_u8(f) & 7 : 0;
    r.skip = fz_u8(f) & 3;
    r.chance = fz_u16(f) << 5;
    r.count = fz_u8(f);
    r.ns = fz_u16(f);
    r.packets = fz_u8(f) & 7;
    add(q, &r);
}

static void post_work(struct fq *q, struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_READ,
        QHCA_WQE_SEND, QHCA_WQE_FETCH_ADD, QHCA_WQE_SEND_IMM,
        QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_WRITE_IMM
    };
    uint8_t k = fz_u8(f);
    unsigned i = k & 7;
    struct gqp *qp = &q->qp[i == 7 ? 0 : i];
    struct gwr w = {
        .opcode = ops[k >> 5], .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
        .sge[0] = { .addr = FQ_IOVA, .len = fz_u16(f) % 3000,
                    .lkey = q->mr.key },
        .remote_addr = FQ_IOVA, .rkey = q->mr.key, .srqn = q->xsrq.srqn,
    };

    if (i == 3 || i == 5) {     /* datagrams need an address */
        return;
    }
    if (w.opcode == QHCA_WQE_FETCH_ADD) {
        w.sge[0].len = 8;
    }
    if (gqp_post_send(qp, &w)) {
        gqp_ring(qp);
    }
    gqp_post_recv(&q->qp[i & 1], 9,
                  &(struct qhca_sge){ .addr = FQ_IOVA + 8192, .len = 3000,
                                      .lkey = q->mr.key }, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    struct qhca_cqe c;
    struct fq q;
    unsigned i;

    fq_open(&q, true);
    q.g.irqs_held = true;
    for (i = 0; fz_more(&f) && i < 300; i++) {
        uint8_t what = fz_u8(&f);

        switch (what & 7) {
        case 0:
        case 1:
        case 2:
            some_rule(&q, &f);
            break;
        case 3:
            qhca_fault_remove(q.g.n->e, what >> 3);
            break;
        case 4:
            world_run(&q.w, (uint64_t)fz_u8(&f) << (what >> 3 & 0x0e));
            break;
        case 5:
            qhca_fault_seed(q.g.n->e, what >> 3);
            while (gcq_poll(&q.cq, &c)) {
            }
            gcq_arm(&q.cq, what & 8);
            break;
        default:
            post_work(&q, &f);
            break;
        }
    }
    qhca_fault_remove(q.g.n->e, 0);
    fq_close(&q);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happens to the QPs of a loaded state: states, work, packets.  Some of it is
 * random; in live() each QP goes through all of its states, and works in each.
 */
#ifndef QHCA_TEST_FUZZ_SAVE_QP_H
#define QHCA_TEST_FUZZ_SAVE_QP_H

#include "ethframe.h"
#include "fuzz_arena.h"
#include "transport/rc.h"

static void eth_frame(struct qhca *e, struct fz *f)
{
    static struct made m;
    uint8_t k = fz_u8(f);
    struct rng r;

    rng_init(&r, fz_u8(f));
    made_frame(&m, &r, e->mac, k % ODDS);
    qhca_receive(e, m.b, m.len);
}

/*
 * MODIFY_QP to @state, with all that the transition may need; is it accepted?
 */
static bool modify(struct qhca *e, struct arena *a, struct qhca_qp *qp,
                   uint8_t state, struct fz *f)
{
    /* Required in the transition from the current state: see qp_modify.c. */
    static const uint64_t rtr = QHCA_QP_M_AV | QHCA_QP_M_PATH_MTU |
                                QHCA_QP_M_DEST_QPN | QHCA_QP_M_RQ_PSN;
    static const uint64_t dest = QHCA_QP_M_MAX_DEST_RD_ATOMIC |
                                 QHCA_QP_M_MIN_RNR_TIMER;
    static const uint64_t rts = QHCA_QP_M_TIMEOUT | QHCA_QP_M_RETRY_CNT |
                                QHCA_QP_M_RNR_RETRY |
                                QHCA_QP_M_MAX_RD_ATOMIC;
    bool connected = qhca_qp_connected(qp), uc = qp->type == QHCA_QPT_UC;
    uint64_t mask = QHCA_QP_M_STATE;
    struct qhca_qpc c;

    qhca_qp_describe(qp, &c);
    c.state = state;
    if (state == QHCA_QPS_INIT && qp->type != QHCA_QPT_RAW) {
        mask |= QHCA_QP_M_PKEY_INDEX |
                (connected ? QHCA_QP_M_ACCESS : QHCA_QP_M_QKEY);
        c.access = QHCA_ACCESS_MASK;
        c.pkey_index = 0;
    } else if (state == QHCA_QPS_RTR && connected) {
        mask |= rtr | (uc || qp->type == QHCA_QPT_XRC_INI ? 0 : dest);
        c.path_mtu = 1 + (fz_u8(f) & 3);
        c.rq_psn = 0xfffffc;
        c.dest_qpn = fz_u8(f) & 15;
        c.max_dest_rd_atomic = 4;
        c.min_rnr_timer = 1;
        c.av.sgid_index = 0;
        c.av.flags = 0;
        guest_gid(fz_u8(f) & 1, 0, c.av.dgid);  /* itself, or the other */
    } else if (state == QHCA_QPS_RTS && qp->state == QHCA_QPS_RTR &&
               qp->type != QHCA_QPT_RAW) {
        mask |= QHCA_QP_M_SQ_PSN;
        if (connected && !uc) {
            mask |= qp->type == QHCA_QPT_XRC_TGT ? QHCA_QP_M_TIMEOUT : rts;
        }
        c.sq_psn = 0xfffffc;
        c.timeout = 4;
        c.retry_cnt = c.rnr_retry = 1;
        c.max_rd_atomic = fz_u8(f) & 7;
    } else if (state == QHCA_QPS_SQD) {
        mask |= QHCA_QP_M_SQD_EVENT;
        c.en_sqd_event = 1;
    }
    return command(e, a, QHCA_CMD_MODIFY_QP, qp->qpn, mask, &c, sizeof(c));
}

/* A packet that @qp has to process. */
static void packet(struct qhca *e, struct qhca_qp *qp, struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_OP_SEND_FIRST, QHCA_OP_SEND_MIDDLE, QHCA_OP_SEND_LAST,
        QHCA_OP_SEND_ONLY, QHCA_OP_SEND_ONLY_IMM, QHCA_OP_WRITE_FIRST,
        QHCA_OP_WRITE_LAST, QHCA_OP_WRITE_ONLY_IMM, QHCA_OP_READ_REQUEST,
        QHCA_OP_FETCH_ADD, QHCA_OP_FLUSH, QHCA_OP_ATOMIC_WRITE,
        QHCA_OP_READ_RESP_ONLY, QHCA_OP_READ_RESP_MIDDLE, QHCA_OP_ACK,
        QHCA_OP_ATOMIC_ACK,
    };
    uint8_t pick = fz_u8(f), how = fz_u8(f), b[WORLD_FRAME_MAX] = { 0 };
    const struct qhca_gid *g = &e->xd->gids[0];
    struct qhca_op_info info;
    uint8_t *ip = b + 14, *bth = ip + 28, op;
    uint32_t len, psn, pad, sum = 0, i;

    if (qp->type == QHCA_QPT_RSS || qp->type == QHCA_QPT_RAW ||
        g->type != QHCA_GID_ROCE_V2) {
        return;
    }
    op = qhca_qp_connected(qp) ? ops[pick & 15] : QHCA_OP_SEND_ONLY;
    op |= qhca_qp_class(qp);
    info = qhca_op_info(op);
    len = !(info.flags & QHCA_OPF_PAYLOAD) ? 0 :
          info.flags & QHCA_OPF_END ? (uint32_t)(pick >> 4) * 8 :
          qhca_mtu_bytes(qp->path_mtu);
    pad = -len & 3;
    psn = info.flags & QHCA_OPF_RESP ?
          qhca_psn_add(qp->xp->una_psn, how & 3) :
          qhca_psn_add(qp->xp->exp_psn, (how & 7) == 7 ? -1 : how & 1);
    memcpy(b, g->mac, 6);
    b[12] = 8;
    qhca_put_be32(bth, (uint32_t)op << 24 | pad << 20 | 0xffff);
    qhca_put_be32(bth + 4, qp->qpn);
    qhca_put_be32(bth + 8, 0x80000000u | psn);
    fz_bytes(f, bth + 12, info.ext);
    if (info.flags & QHCA_OPF_XRCETH) {
        qhca_put_be32(bth + 12, how >> 4);
    }
    if (info.flags & QHCA_OPF_DETH) {
        qhca_put_be32(bth + 12, qp->type == QHCA_QPT_GSI ? QHCA_GSI_QKEY :
                                                          qp->qkey);
    }
    if (info.flags & QHCA_OPF_AETH) {
        bth[12] = how & 8 ? QHCA_ACK_UNLIMITED : how & 0x60;
    }
    len += pad + info.ext + 12;
    ip[0] = 0x45;
    qhca_put_be16(ip + 2, (uint16_t)(len + 4 + 28));
    ip[8] = 64;
    ip[9] = 17;
    memcpy(ip + 12, qp->av.dgid + 12, 4);
    memcpy(ip + 16, g->gid + 12, 4);
    for (i = 0; i < 20; i += 2) {
        sum += qhca_get_be16(ip + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    qhca_put_be16(ip + 10, (uint16_t)~((sum & 0xffff) + (sum >> 16)));
    qhca_put_be16(ip + 22, QHCA_ROCE_UDP_PORT);
    qhca_put_be16(ip + 24, (uint16_t)(len + 4 + 8));
    qhca_put_le32(bth + len, qhca_icrc(ip, false, 28 + len));
    qhca_receive(e, b, (size_t)(bth - b) + len + 4);
}

/* ---- work ---- */

/* Where entry @index of a ring is; false: its table has no such entry. */
static bool ring_at(struct qhca *e, const struct qhca_buf_table *ring,
                    uint32_t index, uint8_t shift, uint8_t stride,
                    uint32_t qpn, uint64_t *addr)
{
    uint64_t off = (uint64_t)(index & ((1u << shift) - 1)) << stride, run;
    struct qhca_buf_table t = *ring;    /* what the ring caches stays */

    return stride && off < t.len &&
           !qhca_buf_table_walk(e, &t, off, qpn, addr, &run) &&
           run >= 1u << stride;
}

/* 40 bytes in the region with the lowest number; without one, a wrong key. */
static struct qhca_sge some_sge(struct qhca *e, uint8_t pick)
{
    struct qhca_sge sge = { .addr = pick, .len = 40, .lkey = 1 };
    const struct qhca_mr *m;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&e->mem->mrs); n++) {
        m = qhca_idr_get(&e->mem->mrs, n);
        if (m && !(m->flags & QHCA_MR_F_MW) && m->len > 4096) {
            sge.addr = m->iova + pick * 8;
            sge.lkey = m->key;
            break;
        }
    }
    return sge;
}

/* A send WQE, if the ring has room for it; the doorbell rings anyway. */
static void post_send(struct qhca *e, struct arena *a, struct qhca_qp *qp,
                      struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_READ,
        QHCA_WQE_SEND_IMM, QHCA_WQE_FETCH_ADD, QHCA_WQE_RDMA_WRITE_IMM,
        QHCA_WQE_SEND_INV, QHCA_WQE_LOCAL_INV,
    };
    uint8_t pick = fz_u8(f), b[256] = { 0 };
    struct qhca_sge sge = some_sge(e, pick);
    struct qhca_ud_wqe *ud = (struct qhca_ud_wqe *)b;
    struct qhca_xrc_wqe *w = (struct qhca_xrc_wqe *)b;
    uint32_t head = sizeof(struct qhca_sq_wqe), size;
    uint32_t index = qp->sq_head, rung;
    uint64_t addr;

    w->ctrl.flags = QHCA_WQE_F_SIGNALED;
    w->ctrl.num_sge = 1;
    w->ctrl.wr_id = pick;
    if (qhca_qp_connected(qp)) {
        w->ctrl.opcode = ops[pick & 7];
        w->remote.addr = sge.addr & ~7ull;
        w->remote.rkey = sge.lkey;
        if (w->ctrl.opcode == QHCA_WQE_FETCH_ADD) {
            sge.len = 8;
        }
        if (qp->type == QHCA_QPT_XRC_INI) {
            w->srqn = pick >> 4;
            head = sizeof(*w);
        }
    } else if (qp->type == QHCA_QPT_RAW) {
        w->ctrl.opcode = QHCA_WQE_RAW_SEND;
    } else {
        ud->dest_qpn = pick & 15;
        ud->qkey = qp->qkey;
        guest_gid(pick >> 4 & 1, 0, ud->av.dgid);
        memcpy(ud->av.dmac, e->mac, 6);
        head = sizeof(*ud);
    }
    memcpy(b + head, &sge, sizeof(sge));
    size = qp->sq_stride < 8 ? 1u << qp->sq_stride : sizeof(b);
    if (index - qp->sq_tail < 1u << qp->sq_shift &&
        ring_at(e, &qp->sq, index, qp->sq_shift, qp->sq_stride, qp->qpn,
                &addr)) {
        a_write(a, addr, b, size);
    }
    rung = index + 1;
    if (qp->flags & QHCA_QP_F_SQ_RECORD) {
        a_write(a, qp->sq_dbrec, &rung, sizeof(rung));
    }
    qhca_db_write(e, ((uint64_t)qp->uar << e->ad->db_shift) + QHCA_DB_SQ,
                  qp->qpn | (uint64_t)rung << QHCA_DB_INDEX_SHIFT, 8);
}

/* The same in its receive ring; those of SRQs have receives already. */
static void post_recv(struct qhca *e, struct arena *a, struct qhca_qp *qp,
                      struct fz *f)
{
    uint8_t pick = fz_u8(f), b[64] = { 0 };
    struct qhca_rq_wqe *w = (struct qhca_rq_wqe *)b;
    struct qhca_sge sge = some_sge(e, pick);
    uint32_t index;
    uint64_t addr;

    if (!qp->rq.stride || !a_read(a, qp->rq.dbrec, &index, sizeof(index))) {
        return;
    }
    sge.len = 500;
    w->wr_id = pick;
    w->num_sge = 1;
    memcpy(b + sizeof(*w), &sge, sizeof(sge));
    if (index - qp->rq.tail < 1u << qp->rq.shift &&
        ring_at(e, &qp->rq.buf, index, qp->rq.shift, qp->rq.stride, qp->qpn,
                &addr)) {
        a_write(a, addr, b, qp->rq.stride < 6 ? 1u << qp->rq.stride :
                            sizeof(b));
        index++;
        a_write(a, qp->rq.dbrec, &index, sizeof(index));
    }
    qhca_db_write(e, ((uint64_t)qp->uar << e->ad->db_shift) + QHCA_DB_RQ,
                  qp->qpn, 8);
}

/* Work for @qp in both directions, and packets for it. */
static void traffic(struct qhca *e, struct arena *a, struct qhca_qp *qp,
                    struct fz *f)
{
    post_recv(e, a, qp, f);
    post_send(e, a, qp, f);
    qhca_run(e);
    if (qp->type == QHCA_QPT_RAW) {
        eth_frame(e, f);
    } else {
        packet(e, qp, f);
        packet(e, qp, f);
    }
    a->now += 1ULL << (fz_u8(f) & 31);
    qhca_timer(e);
    qhca_run(e);
}

/* ---- all states ---- */

/* A state that cannot follow each state. */
static const uint8_t forbidden[] = {
    [QHCA_QPS_RESET] = QHCA_QPS_RTR, [QHCA_QPS_INIT] = QHCA_QPS_RTS,
    [QHCA_QPS_RTR] = QHCA_QPS_SQD, [QHCA_QPS_RTS] = QHCA_QPS_INIT,
    [QHCA_QPS_SQD] = QHCA_QPS_RTR, [QHCA_QPS_SQE] = QHCA_QPS_SQD,
    [QHCA_QPS_ERR] = QHCA_QPS_RTS,
};

/* Commands that @qp must refuse, whatever it has been through. */
static void refused(struct qhca *e, struct arena *a, struct qhca_qp *qp,
                    struct fz *f)
{
    const struct {
        uint8_t state;
        uint64_t mask;
    } bad[] = {
        { QHCA_QPS_ERR + 1, QHCA_QP_M_STATE },
        { QHCA_QPS_ERR, QHCA_QP_M_STATE | (QHCA_QP_M_ALL + 1) },
        { QHCA_QPS_ERR, QHCA_QP_M_STATE | QHCA_QP_M_RQTN },
        { QHCA_QPS_RESET, QHCA_QP_M_STATE | QHCA_QP_M_AV },
        /* required attributes are missing */
        { QHCA_QPS_INIT, QHCA_QP_M_STATE },
        { QHCA_QPS_RTR, QHCA_QP_M_STATE },
    };
    struct qhca_qpc c;
    uint8_t was;
    unsigned i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (i > 3 && (qp->type == QHCA_QPT_RAW ||
                      qp->state == bad[i].state ||
                      (i == 5 && !qhca_qp_connected(qp)))) {
            continue;           /* nothing is required */
        }
        qhca_qp_describe(qp, &c);
        c.state = bad[i].state;
        CHECK(!command(e, a, QHCA_CMD_MODIFY_QP, qp->qpn, bad[i].mask, &c,
                       sizeof(c)), "MODIFY_QP %u of QP %u is accepted", i,
              qp->qpn);
    }
    was = qp->state;
    CHECK(!modify(e, a, qp, forbidden[was], f) || qp->state != was ||
          !qhca_active(e), "QP %u went from state %u to %u", qp->qpn, was,
          forbidden[was]);
}

/* A transition that must be accepted, unless the QP fails on its own. */
static void step(struct qhca *e, struct arena *a, struct qhca_qp *qp,
                 uint8_t state, struct fz *f)
{
    uint64_t dma = e->stats[QHCA_STAT_DMA_ERRORS];
    /* bit n: from state n */
    static const uint8_t from[] = {
        [QHCA_QPS_RESET] = 0xff, [QHCA_QPS_ERR] = 0xff,
        [QHCA_QPS_INIT] = 1 << QHCA_QPS_RESET | 1 << QHCA_QPS_INIT,
        [QHCA_QPS_RTR] = 1 << QHCA_QPS_INIT,
        [QHCA_QPS_RTS] = 1 << QHCA_QPS_RTR | 1 << QHCA_QPS_RTS |
                         1 << QHCA_QPS_SQD | 1 << QHCA_QPS_SQE,
        [QHCA_QPS_SQD] = 1 << QHCA_QPS_RTS | 1 << QHCA_QPS_SQD,
    };
    uint8_t was;

    commands_end(e);
    was = qp->state;
    if (!(from[state] & (1 << was))) {
        return;                 /* the step before has failed like that */
    }
    CHECK(modify(e, a, qp, state, f) || !qhca_active(e) || qp->state != was ||
          dma != e->stats[QHCA_STAT_DMA_ERRORS] ||      /* of its record */
          e->xd->gids[0].type != QHCA_GID_ROCE_V2,
          "QP %u, type %u: no transition from state %u to %u", qp->qpn,
          qp->type, was, state);
}

static void live(struct qhca *e, struct arena *a, struct qhca_qp *qp,
                 struct fz *f)
{
    static const uint8_t path[] = {
        QHCA_QPS_ERR, QHCA_QPS_RESET, QHCA_QPS_INIT, QHCA_QPS_INIT,
        QHCA_QPS_RTR, QHCA_QPS_RTS, QHCA_QPS_SQD, QHCA_QPS_RTS,
    };
    /* The last state is random, as is all that is under way in it. */
    unsigned i, end = 1 + fz_u8(f) % 16;

    traffic(e, a, qp, f);       /* as it was loaded */
    refused(e, a, qp, f);
    if (qp->state == QHCA_QPS_RTS) {
        step(e, a, qp, QHCA_QPS_SQD, f);
        traffic(e, a, qp, f);
    }
    if (qp->state == QHCA_QPS_SQD || qp->state == QHCA_QPS_SQE) {
        step(e, a, qp, QHCA_QPS_RTS, f);
        traffic(e, a, qp, f);
    }
    for (i = 0; i < 2 * sizeof(path) && qhca_active(e); i++) {
        if (i >= sizeof(path) && i - sizeof(path) >= end) {
            break;
        }
        /* a failure on the way leaves it in ERR, from where it starts again */
        if (path[i % sizeof(path)] == QHCA_QPS_ERR ?
            qp->state != QHCA_QPS_RESET :
            path[i % sizeof(path)] == QHCA_QPS_RESET ||
            (qp->state != QHCA_QPS_ERR && qp->state != QHCA_QPS_SQE)) {
            step(e, a, qp, path[i % sizeof(path)], f);
        }
        traffic(e, a, qp, f);
        refused(e, a, qp, f);
    }
}

/*
 * Each QP that is loaded: at most as many as the adapter can have, so there is no
 * other limit.
 */
static void live_all(struct qhca *e, struct arena *a, struct fz *f)
{
    struct qhca_qp *qp;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&e->q->qps) && qhca_active(e); n++) {
        qp = qhca_qp_get(e, n);
        if (qp && qp->type != QHCA_QPT_RSS) {
            live(e, a, qp, f);
        }
    }
}

#endif

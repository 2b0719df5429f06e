/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: packets from a hostile peer, to QPs with work in progress.
 * Headers up to UDP and the ICRC are valid unless the input says otherwise, and
 * PSNs are close to the expected ones, so that the input reaches the state
 * machines.  Memory permissions are on: only the region and the rings may be
 * accessed.
 */
#include "fuzz_pair.h"
#include "base/super_trailer.h"
#include "transport/rc.h"

static void post_work(struct fq *q, struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_READ,
        QHCA_WQE_RDMA_READ, QHCA_WQE_FETCH_ADD, QHCA_WQE_COMP_SWAP,
        QHCA_WQE_SEND_IMM, QHCA_WQE_RDMA_WRITE_IMM
    };
    static const uint8_t qps[8] = { 0, 1, 4, 0, 1, 4, 0, 6 };
    uint8_t k = fz_u8(f);
    struct gqp *qp = &q->qp[qps[k & 7]];
    struct gwr w = {
        .opcode = ops[k >> 5], .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
        .sge[0] = { .addr = FQ_IOVA, .len = fz_u16(f) % 3000,
                    .lkey = q->mr.key },
        .remote_addr = FQ_IOVA, .rkey = q->mr.key, .srqn = 1,
    };

    if (w.opcode == QHCA_WQE_FETCH_ADD || w.opcode == QHCA_WQE_COMP_SWAP) {
        w.sge[0].len = 8;
    }
    if (k & 8 && k & 16) {      /* others instead */
        w.opcode = k & 32 ? QHCA_WQE_FLUSH : QHCA_WQE_ATOMIC_WRITE;
        w.num_sge = !(k & 32);
        w.sge[0].len = 8;
        w.arg1 = k & 32 ? QHCA_FLUSH_T_GLOBAL : 0;
    }
    if (gqp_post_send(qp, &w)) {
        gqp_ring(qp);
    }
}

/* Make the packet a super-frame, more or less; returns the trailer's length. */
static size_t add_trailer(uint8_t *to, unsigned kind, size_t payload)
{
    uint16_t size = (uint16_t)(256u << (kind & 1));

    qhca_super_trailer(to, size, (uint16_t)((payload + size - 1) / size +
                                            (kind & 4 ? 1 : 0)));
    return QHCA_SUPER_TRAILER;
}

/* @kind 1..5: as a super-frame. */
static void packet(struct fq *q, struct fz *f, unsigned kind)
{
    uint8_t b[4096] = { 0 }, *ip = b + 14, *udp = ip + 20, *bth = udp + 8;
    uint8_t how = fz_u8(f), op = fz_u8(f), x[16], *ext = bth + 12;
    struct gqp *qp = &q->qp[(how & 7) % FQ_QPS];
    struct qhca_op_info info = qhca_op_info(op);
    int8_t delta = (int8_t)fz_u8(f);
    size_t body, len;
    struct qhca_qpc c;
    uint32_t psn = 0;

    if (qhca_query_qp(q->g.n->e, qp->qpn, &c)) {
        psn = info.flags & QHCA_OPF_RESP ? c.una_psn : c.exp_psn;
    }
    memcpy(b, q->g.n->mac, 6);
    memcpy(b + 6, q->peer.mac, 6);
    b[12] = 0x08;
    ip[0] = 0x45;
    ip[8] = 64;
    ip[9] = 17;
    guest_gid(1, 0, x);
    memcpy(ip + 12, x + 12, 4);
    guest_gid(0, 0, x);
    memcpy(ip + 16, x + 12, 4);
    udp[0] = 0xc0;
    udp[2] = QHCA_ROCE_UDP_PORT >> 8;
    udp[3] = QHCA_ROCE_UDP_PORT & 0xff;
    bth[0] = op;
    bth[1] = fz_u8(f) & 0xb0;
    bth[2] = bth[3] = 0xff;
    qhca_put_be32(bth + 4, qp->qpn);
    qhca_put_be32(bth + 8, ((psn + (uint32_t)(delta >> (how >> 4 & 3))) &
                            0xffffff) | (how & 8 ? 0x80000000u : 0));
    /* extended headers and payload from the input; keys mostly valid */
    body = how & 0x40 ? fz_u16(f) % 1500 : info.ext + fz_u8(f) % 3 * 256u +
           fz_u8(f) % 8;
    if (kind - 1 < 5) {
        body += 256u * (kind + 1);
    }
    fz_bytes(f, bth + 12, body < 64 ? body : 64);
    if (!(how & 0x80)) {
        if (info.flags & QHCA_OPF_XRCETH) {
            qhca_put_be32(ext, q->xsrq.srqn - (ext[3] > 0xf0));
            ext += QHCA_XRCETH_LEN;
        }
        if (info.flags & QHCA_OPF_FLUSH) {
            qhca_put_be32(ext, ext[3] & 0x33);
            ext += QHCA_FETH_LEN;
        }
        if (info.flags & (QHCA_OPF_RETH | QHCA_OPF_FLUSH)) {
            qhca_put_be64(ext, FQ_IOVA + (ext[7] & 0x3f) * 8u);
            qhca_put_be32(ext + 8, q->mr.key);
            qhca_put_be32(ext + 12, info.flags & QHCA_OPF_AWRITE ? 8 :
                          (uint32_t)ext[14] << 5 & 0x1fff);
        } else if (info.flags & QHCA_OPF_ATOMIC &&
                   !(info.flags & QHCA_OPF_RESP)) {
            qhca_put_be64(ext, FQ_IOVA + (ext[7] & 0x3f) * 4u);
            qhca_put_be32(ext + 8, q->mr.key);
        } else if (info.flags & QHCA_OPF_DETH) {
            qhca_put_be32(bth + 12, qp->type == QHCA_QPT_GSI ?
                          QHCA_GSI_QKEY : 0x11111111);
        }
    }
    len = 20 + 8 + 12 + body + 4;
    qhca_put_be16(ip + 2, (uint16_t)len);
    qhca_put_be16(udp + 4, (uint16_t)(len - 20));
    {                           /* IPv4 header checksum */
        uint32_t sum = 0, i;

        for (i = 0; i < 20; i += 2) {
            sum += qhca_get_be16(ip + i);
        }
        sum = (sum & 0xffff) + (sum >> 16);
        qhca_put_be16(ip + 10, (uint16_t)~((sum & 0xffff) + (sum >> 16)));
    }
    qhca_put_le32(bth + 12 + body, qhca_icrc(ip, false, len - 4));
    if (kind - 1 < 5 && body >= info.ext) {
        len += add_trailer(b + 14 + len, kind, body - info.ext);
    }
    if (how == 0xff) {          /* sometimes corrupt the packet as a whole */
        fz_spoil(f, b, 14 + len);
    }
    world_inject(&q->w, 0, b, 14 + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    uint8_t raw[2048];
    struct fq q;
    unsigned i;
    size_t n;

    fq_open(&q, false);
    for (i = 0; fz_more(&f) && i < 1000; i++) {
        uint8_t what = fz_u8(&f);

        switch (what & 15) {
        case 0:
            n = fz_bytes(&f, raw, fz_u16(&f) & 0x7ff);
            world_inject(&q.w, 0, raw, n);
            break;
        case 1:
            world_run(&q.w, (uint64_t)fz_u8(&f) << (what >> 3 & 0x1e));
            break;
        case 2:
        case 3:
            post_work(&q, &f);
            break;
        case 4:                 /* one more receive */
            gqp_post_recv(&q.qp[(what >> 4) % 4], 9,
                          &(struct qhca_sge){ .addr = FQ_IOVA + 8192,
                                              .len = fz_u8(&f) * 4u,
                                              .lkey = q.mr.key }, 1);
            break;
        case 15:
            fq_new_xsrq(&q, what >> 4 & 7);
            break;
        case 5:                 /* a page returns at another address */
            godp_out(&q.odp, fz_u16(&f) % FQ_MR, 1);
            break;
        case 6:
            fq_serve(&q, (what >> 4) % FQ_QPS, fz_u8(&f));
            break;
        default:
            packet(&q, &f, what >> 4);
        }
    }
    fq_close(&q);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: raw packet QPs, flow steering, WQs and RSS, multicast groups.
 * Rules and groups come and go while hostile frames arrive and frames are sent
 * to others, to groups and to the adapter itself.
 */
#include "fuzz.h"
#include "transport/rc.h"

#define RAWS 2
#define WQS 2
#define MR 16384u
#define IOVA 0x100000u
#define NUMBERS 24              /* QPNs and WQNs are below this */

struct raw {
    struct world w;
    struct guest g;
    struct gcq cq;
    struct gmr mr;
    struct gqp qp[RAWS], ud;
    struct gbuf ring[WQS];      /* of WQs */
    uint64_t dbrec[WQS];
    uint32_t prod[WQS];
};

static const uint8_t groups[3][16] = {
    { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1 },
    { 0xff, 0x0e, [15] = 1 },
    { [10] = 0xff, [11] = 0xff, [12] = 224, [15] = 2 },
};

static uint8_t cmd(struct raw *r, uint8_t op, uint32_t obj, const void *in,
                   uint32_t len, uint64_t mask)
{
    struct gcmd c = {
        .op = op, .obj = obj, .in = len ? in : NULL, .in_len = len,
        .mask = mask,
    };

    return guest_cmd(&r->g, &c);
}

static void open_all(struct raw *r)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 3, .sq_stride = 8, .rq_shift = 3,
        .rq_stride = 6, .scq = &r->cq, .rcq = &r->cq,
    };
    struct gqp_attr a;
    unsigned i;

    memset(r, 0, sizeof(*r));
    fuzz_open(&r->w, &r->g, NULL);
    gcq_create(&r->cq, &r->g, 8, NULL, r->g.eq[1].eqn);
    gmr_create(&r->mr, &r->g, MR, IOVA, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&r->mr.buf, 0, MR, GMEM_RW);
    for (i = 0; i < RAWS; i++) {
        in.flags = i ? QHCA_QP_F_STRIP_VLAN : 0;
        gqp_create(&r->qp[i], &r->g, &in);
        gqp_state(&r->qp[i], QHCA_QPS_INIT);
        gqp_state(&r->qp[i], QHCA_QPS_RTR);
        gqp_state(&r->qp[i], QHCA_QPS_RTS);
    }
    in.type = QHCA_QPT_UD;
    in.flags = 0;
    gqp_attr_default(&a);
    gqp_create(&r->ud, &r->g, &in);
    gqp_to_init(&r->ud, &a);
    gqp_to_rtr(&r->ud, NULL, &a);
    gqp_to_rts(&r->ud, &a);
    for (i = 0; i < WQS; i++) {
        gbuf_make(&r->ring[i], r->g.m, 32u << 3, &gbuf_direct, true, 0,
                  &r->g.rng);
        gbuf_allow(&r->ring[i], 0, r->ring[i].len, GMEM_R);
        r->dbrec[i] = guest_dbrec(&r->g, true);
    }
}

static void wq_create(struct raw *r, struct fz *f)
{
    uint8_t i = fz_u8(f) % WQS;
    struct qhca_wqc c;

    memset(&c, 0, sizeof(c));
    c.buf = r->ring[i].d;
    c.dbrec = r->dbrec[i];
    c.pd = r->g.pd;
    c.uar = r->g.uar;
    c.cqn = r->cq.cqn;
    c.shift = 3;
    c.stride = 5;
    c.flags = fz_u8(f) & 1;
    cmd(r, QHCA_CMD_CREATE_WQ, 0, &c, sizeof(c), 0);
}

static void wq_post(struct raw *r, struct fz *f)
{
    uint8_t i = fz_u8(f) % WQS;
    struct {
        struct qhca_rq_wqe h;
        struct qhca_sge sge;
    } wqe = {
        .h = { .wr_id = 1, .num_sge = 1 },
        .sge = { .addr = IOVA + 8192, .len = fz_u8(f) * 8u,
                 .lkey = r->mr.key },
    };

    fz_spoil(f, &wqe, sizeof(wqe));
    gbuf_write(&r->ring[i], (r->prod[i]++ & 7) * 32, &wqe, sizeof(wqe));
    guest_dbrec_set(&r->g, r->dbrec[i], r->prod[i]);
}

static void rqt_create(struct raw *r, struct fz *f)
{
    uint32_t wqn[8], i, n = 1u << (fz_u8(f) & 3);

    for (i = 0; i < n; i++) {
        wqn[i] = fz_u8(f) % NUMBERS;
    }
    cmd(r, QHCA_CMD_CREATE_RQT, 0, wqn, 4 * n, 0);
}

static void rss_create(struct raw *r, struct fz *f)
{
    struct qhca_qpc c;

    memset(&c, 0, sizeof(c));
    c.type = QHCA_QPT_RSS;
    c.pd = r->g.pd;
    c.uar = r->g.uar;
    c.rqtn = fz_u8(f) & 3;
    c.rx_hash_fields = fz_u8(f);
    c.rx_hash_func = 1;
    fz_bytes(f, c.rx_hash_key, 8);
    fz_spoil(f, &c, sizeof(c));
    cmd(r, QHCA_CMD_CREATE_QP, 0, &c, sizeof(c), 0);
}

static void flow_create(struct raw *r, struct fz *f)
{
    struct qhca_flow c;
    uint8_t *mask = (uint8_t *)&c.mask, at = fz_u8(f);
    unsigned n = fz_u8(f) & 7;

    memset(&c, 0, sizeof(c));
    c.qpn = fz_u8(f) % NUMBERS;
    c.type = fz_u8(f) & 3;
    c.flags = c.type ? 0 : fz_u8(f) & 3;
    c.priority = fz_u8(f) & 3;
    while (n--) {
        mask[(at + n) & 63] = n & 1 ? 0xff : fz_u8(f);
        ((uint8_t *)&c.value)[(at + n) & 63] = fz_u8(f);
    }
    fz_spoil(f, &c, sizeof(c));
    cmd(r, QHCA_CMD_CREATE_FLOW, 0, &c, sizeof(c), 0);
}

static void group(struct raw *r, struct fz *f, uint8_t op)
{
    uint8_t k = fz_u8(f);
    struct qhca_mcg c;

    memset(&c, 0, sizeof(c));
    memcpy(c.mgid, groups[k % 3], 16);
    if (k & 0x80) {
        fz_spoil(f, &c, sizeof(c));
    }
    cmd(r, op, k & 0x40 ? k % NUMBERS : r->ud.qpn, &c, sizeof(c), 0);
}

/* A frame of some kind, corrupted and cut; returns its length. */
static size_t make_frame(struct raw *r, struct fz *f, uint8_t *b, size_t max)
{
    uint8_t k = fz_u8(f), *ip = b + 14;
    size_t len = 14 + fz_u16(f) % 200;

    memset(b, 0, max);
    memcpy(b, k & 1 ? r->w.node[0].mac :
           (const uint8_t *)"\x01\x00\x5e\x00\x00\x01", 6);
    if (k & 2) {
        qhca_put_be16(b + 12, 0x8100);
        qhca_put_be16(b + 14, fz_u16(f));
        ip += 4;
    }
    if (k & 4) {
        qhca_put_be16(ip - 2, 0x86dd);
        ip[0] = 0x60;
        qhca_put_be16(ip + 4, fz_u8(f));
        ip[6] = k & 8 ? 6 : 17;
        memcpy(ip + 24, groups[1], 16);
        if (k & 16) {
            memcpy(b, "\x33\x33\0\0\0\x01", 6);
        }
        qhca_put_be16(ip + 42, k & 32 ? QHCA_ROCE_UDP_PORT : fz_u8(f));
    } else {
        qhca_put_be16(ip - 2, 0x0800);
        ip[0] = 0x45;
        qhca_put_be16(ip + 2, (uint16_t)(fz_u8(f) + 20));
        ip[9] = k & 8 ? 6 : 17;
        memcpy(ip + 16, groups[0] + 12, 4);
        qhca_put_be16(ip + 22, k & 32 ? QHCA_ROCE_UDP_PORT : fz_u8(f));
    }
    fz_spoil(f, b, 96);
    return len;
}

/* A valid packet to a group, apart from what the input changes. */
static void mc_packet(struct raw *r, struct fz *f)
{
    uint8_t b[160] = { 0 }, k = fz_u8(f), *ip = b + 14, *bth = b + 42;
    const uint8_t *gid = groups[k & 1 ? 2 : 0];
    size_t body = 8 + (k & 0x3c), len = 20 + 8 + 12 + body + 4;
    uint32_t sum = 0, i;

    memcpy(b, "\x01\x00\x5e", 3);
    memcpy(b + 3, gid + 13, 3);
    qhca_put_be16(b + 12, 0x0800);
    ip[0] = 0x45;
    qhca_put_be16(ip + 2, (uint16_t)len);
    ip[8] = 1;
    ip[9] = 17;
    memcpy(ip + 12, "\x0a\x63\0\x02", 4);
    memcpy(ip + 16, gid + 12, 4);
    for (i = 0; i < 20; i += 2) {
        sum += qhca_get_be16(ip + i);
    }
    qhca_put_be16(ip + 10, (uint16_t)~((sum & 0xffff) + (sum >> 16)));
    qhca_put_be16(ip + 22, QHCA_ROCE_UDP_PORT);
    qhca_put_be16(ip + 24, (uint16_t)(len - 20));
    bth[0] = QHCA_CLASS_UD | QHCA_OP_SEND_ONLY;
    qhca_put_be16(bth + 2, 0xffff);
    qhca_put_be32(bth + 4, QHCA_QPN_MULTICAST);
    qhca_put_be32(bth + 12, 0x11111111);
    if (k & 0x80) {
        fz_spoil(f, bth, 12 + body);
    }
    qhca_put_le32(bth + 12 + body, qhca_icrc(ip, false, len - 4));
    world_inject(&r->w, 0, b, 14 + len);
}

static void send(struct raw *r, struct fz *f)
{
    struct gqp *qp = &r->qp[fz_u8(f) % RAWS];
    uint8_t how = fz_u8(f), b[256];
    uint32_t len = (uint32_t)make_frame(r, f, b, sizeof(b));
    uint32_t index = qp->sq_prod;
    struct gwr w;

    memset(&w, 0, sizeof(w));
    w.opcode = QHCA_WQE_RAW_SEND;
    w.flags = how & 0x1f;
    w.inl = b;
    w.inl_len = how & 0x20 ? 60 : 200;
    w.num_sge = 1;
    w.sge[0] = (struct qhca_sge){ IOVA, len, r->mr.key };
    gbuf_write(&r->mr.buf, 0, b, sizeof(b));
    if (gqp_post_send(qp, &w)) {
        if (how & 0x80) {
            uint8_t raw[256];

            gbuf_read(&qp->sq, (uint64_t)(index & 7) << 8, raw, 256);
            fz_spoil(f, raw, 64);
            gqp_sq_poke(qp, index, 0, raw, 256);
        }
        gqp_ring(qp);
    }
}

static void receive(struct raw *r, struct fz *f)
{
    uint8_t k = fz_u8(f);
    struct gqp *qp = k & 4 ? &r->ud : &r->qp[k % RAWS];
    struct qhca_sge sge = { .addr = IOVA + 4096, .len = fz_u16(f) & 0xfff,
                            .lkey = r->mr.key + (k == 0xff) };

    gqp_post_recv(qp, k, &sge, 1);
}

/* Recover after an error; the rings are empty again. */
static void heal(struct raw *r, struct fz *f)
{
    struct gqp *qp = &r->qp[fz_u8(f) % RAWS];
    struct qhca_cqe c;
    uint8_t s;

    while (gcq_poll(&r->cq, &c)) {
    }
    qp->sq_cons = qp->sq_rung;
    if (gqp_state(qp, QHCA_QPS_RESET) == QHCA_ST_OK) {
        gqp_clear(qp);
        for (s = QHCA_QPS_INIT; s <= QHCA_QPS_RTS; s++) {
            gqp_state(qp, s);
        }
    }
}

/* A reset has removed it from the adapter. */
static void drop_qp(struct raw *r, struct gqp *qp)
{
    gbuf_free(&qp->sq);
    gbuf_free(&qp->rq);
    guest_dbrec_free(&r->g, qp->dbrec);
}

/* If it is not one of ours, it is an RSS QP. */
static void rss_destroy(struct raw *r, struct fz *f)
{
    uint32_t n = fz_u8(f) % NUMBERS;

    if (n != r->ud.qpn && n != r->qp[0].qpn && n != r->qp[1].qpn) {
        cmd(r, QHCA_CMD_DESTROY_QP, n, NULL, 0, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    struct qhca_wqc wqc;
    uint8_t b[256];
    struct raw r;
    unsigned i;

    open_all(&r);
    for (i = 0; fz_more(&f) && i < 1000; i++) {
        uint8_t what = fz_u8(&f);

        switch (what & 15) {
        case 0:
            flow_create(&r, &f);
            break;
        case 1:
            cmd(&r, QHCA_CMD_DESTROY_FLOW, fz_u8(&f) & 15, NULL, 0, 0);
            break;
        case 2:
            group(&r, &f, what & 16 ? QHCA_CMD_ATTACH_MC :
                                      QHCA_CMD_DETACH_MC);
            break;
        case 3:
            wq_create(&r, &f);
            break;
        case 4:
            memset(&wqc, 0, sizeof(wqc));
            wqc.state = fz_u8(&f) & 3;
            wqc.flags = what >> 7;
            cmd(&r, QHCA_CMD_MODIFY_WQ, fz_u8(&f) % NUMBERS, &wqc,
                sizeof(wqc), what >> 4 & 3);
            break;
        case 5:
            if (what & 32) {
                rss_destroy(&r, &f);
                break;
            }
            cmd(&r, what & 16 ? QHCA_CMD_DESTROY_WQ : QHCA_CMD_DESTROY_RQT,
                fz_u8(&f) % NUMBERS, NULL, 0, 0);
            break;
        case 6:
            rqt_create(&r, &f);
            break;
        case 7:
            rss_create(&r, &f);
            break;
        case 8:
            wq_post(&r, &f);
            break;
        case 9:
            receive(&r, &f);
            break;
        case 10:
            heal(&r, &f);
            break;
        case 11:
            world_run(&r.w, (uint64_t)fz_u8(&f) << 8);
            break;
        case 12:
        case 13:
            send(&r, &f);
            break;
        case 14:
            if (what & 16) {
                mc_packet(&r, &f);
                break;
            }
            /* fall through */
        default:
            world_inject(&r.w, 0, b, make_frame(&r, &f, b, sizeof(b)));
        }
    }
    CHECK(world_settle(&r.w, 100000000000ULL), "the adapter never rests");
    node_reg_write(&r.w.node[0], QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    for (i = 0; i < WQS; i++) {
        gbuf_free(&r.ring[i]);
        guest_dbrec_free(&r.g, r.dbrec[i]);
    }
    for (i = 0; i < RAWS; i++) {
        drop_qp(&r, &r.qp[i]);
    }
    drop_qp(&r, &r.ud);
    gbuf_free(&r.cq.buf);
    guest_dbrec_free(&r.g, r.cq.dbrec);
    gmr_drop(&r.mr);
    guest_drop(&r.g);
    world_fini(&r.w);
    return 0;
}

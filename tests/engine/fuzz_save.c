/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: hostile saved states.  The state of an adapter with work in
 * progress is saved, corrupted, field by field or in its structure, and loaded
 * into another adapter.  That adapter either refuses it with a reason and is as
 * after a reset, or accepts it: then all references are right and counted, and
 * it must survive everything it is told to do.
 */
#include <stdlib.h>

#include "ethframe.h"
#include "fuzz_pair.h"
#include "fuzz_save_qp.h"
#include "fuzz_save_end.h"
#include "fuzz_save_edit.h"
#include "refs.h"

#define FIELDS_MAX 20000
#define FRAMES 16
#define EDITS 0xe0              /* from this value on: see corrupt() */

/* ---- a state worth corrupting ---- */

static struct {
    uint8_t b[WORLD_FRAME_MAX];
    size_t len;
} seen[FRAMES];
static unsigned seen_n;

static bool keep_frames(struct world *w, unsigned src, uint8_t *frame,
                        size_t *len)
{
    (void)w;
    (void)src;
    memcpy(seen[seen_n % FRAMES].b, frame, *len);
    seen[seen_n++ % FRAMES].len = *len;
    return false;
}

static void busy(struct fq *q, struct fz *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_READ,
        QHCA_WQE_FETCH_ADD, QHCA_WQE_SEND_IMM, QHCA_WQE_LOCAL_INV,
    };
    unsigned i, n = fz_u8(f) & 15;

    for (i = 0; i < n; i++) {
        uint8_t k = fz_u8(f);
        struct gqp *qp = &q->qp[k % 7];
        struct gwr wr = {
            .opcode = ops[(k >> 3) % 6], .wr_id = i, .num_sge = 1,
            .flags = QHCA_WQE_F_SIGNALED, .rkey = q->mr.key,
            .remote_addr = FQ_IOVA + 8192,
        };

        wr.sge[0].addr = FQ_IOVA + 64;
        wr.sge[0].len = k & 1 ? 8 : 1500;
        wr.sge[0].lkey = q->mr.key;
        if (k % 7 == 3 || k % 7 == 5) {
            wr.opcode = QHCA_WQE_SEND;
            wr.sge[0].len = 100;
            wr.dest_qpn = q->qp[3].qpn;
            wr.qkey = 0x11111111;
            guest_av(&q->g, &q->w.node[0], 0, &wr.av);
        }
        if (gqp_post_send(qp, &wr) && !(k & 0x80)) {
            gqp_ring(qp);
        }
        if (k == 0x7f) {
            godp_out(&q->odp, 0, 4096);
        }
        world_run(&q->w, k & 0x40 ? 0 : 300);
    }
}

/*
 * The Ethernet function: queues that split and one that does not, a table of
 * them, spread by port and by a rule; frames in them, a large send half done.
 */

#define ETH_RQS 3
#define ETH_SHIFT 3             /* log2 of the depth of all rings */
#define ETH_BUF 512u            /* bytes of a receive buffer */
#define ETH_PAGES 32u

/* Offsets in its memory, pages. */
#define AT_SQ 0u
#define AT_DATA 1u              /* of the large send */
#define AT_RQ 3u                /* rings and records; a page for each queue */
#define AT_BUF (AT_RQ + ETH_RQS)        /* two pages for each queue */

struct ethernet {
    uint64_t mem;
    uint32_t sqn, rqn[ETH_RQS], rqtn, qpn, rule;
    struct gqp raw;             /* gets UDP */
    uint32_t raw_rule;
    uint32_t shaper[2];         /* the SQ's, and its parent */
};

static uint64_t eth_at(const struct ethernet *x, unsigned page)
{
    return x->mem + page * 4096u;
}

static struct qhca_buf eth_ring(uint64_t at, unsigned stride)
{
    return (struct qhca_buf){ .form = QHCA_BUF_DIRECT, .addr = at,
                              .len = 1u << (ETH_SHIFT + stride) };
}

/* Buffers for both rings of queue @i, all posted; bit i of @split: it splits. */
static void eth_rq(struct fq *q, struct ethernet *x, unsigned i, uint8_t split)
{
    uint64_t at = eth_at(x, AT_RQ + i), buf = eth_at(x, AT_BUF + 2 * i);
    struct qhca_eth_seg *seg = gmem_ptr(q->g.m, at, 4096);
    struct qhca_eth_qc c;
    uint32_t *dbrec = gmem_ptr(q->g.m, at + 2048, 16);
    unsigned n;

    for (n = 0; n < 2u << ETH_SHIFT; n++) {
        seg[n] = (struct qhca_eth_seg){ .addr = buf + n * ETH_BUF,
                                        .len = ETH_BUF };
    }
    dbrec[0] = dbrec[2] = 1u << ETH_SHIFT;
    memset(&c, 0, sizeof(c));
    c.buf = eth_ring(at, 4);
    c.dbrec = at + 2048;
    c.cqn = q->cq.cqn;
    c.shift = ETH_SHIFT;
    c.stride = 4;
    if (split >> i & 1) {
        c.flags = QHCA_ETH_Q_F_HDS;
        c.data_buf = eth_ring(at + (16u << ETH_SHIFT), 4);
        c.data_dbrec = at + 2056;
        c.data_shift = ETH_SHIFT;
        c.hds_thresh = 100 * i;
    }
    x->rqn[i] = guest_create(&q->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
}

static void eth_spread(struct fq *q, struct ethernet *x)
{
    uint32_t num[4] = { x->rqn[0], x->rqn[1], x->rqn[2], x->rqn[1] };
    struct gcmd table = {
        .op = QHCA_CMD_CREATE_RQT, .in = num, .in_len = sizeof(num),
        .arg = QHCA_RQT_ETH_RQ,
    };
    struct qhca_port port = { .eth_qpn = 0 };
    struct gcmd set = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_ETH_QPN,
    };
    struct qhca_flow rule;
    struct qhca_qpc c;
    unsigned i;

    guest_must(&q->g, &table);
    x->rqtn = table.robj;
    memset(&c, 0, sizeof(c));
    c.type = QHCA_QPT_RSS;
    c.pd = q->g.pd;
    c.uar = q->g.uar;
    c.rqtn = x->rqtn;
    c.rx_hash_fields = QHCA_HASH_BY_TYPE | QHCA_HASH_SYM_XOR | 0x3ff3ff;
    c.rx_hash_func = QHCA_HASH_TOEPLITZ;
    for (i = 0; i < sizeof(c.rx_hash_key); i++) {
        c.rx_hash_key[i] = (uint8_t)(i * 37 + 11);
    }
    x->qpn = guest_create(&q->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
    memset(&rule, 0, sizeof(rule));
    rule.qpn = x->qpn;
    rule.tag = 7;
    rule.value.l4 = 6;
    rule.mask.l4 = 0xff;
    x->rule = guest_create(&q->g, QHCA_CMD_CREATE_FLOW, &rule, sizeof(rule));
    port.eth_qpn = x->qpn;
    guest_must(&q->g, &set);
}

/* A raw packet QP that sends, and receives what is sent by UDP. */
static void eth_raw(struct fq *q, struct ethernet *x)
{
    struct qhca_sge sge = { .addr = FQ_IOVA + 4096, .len = 2000,
                            .lkey = q->mr.key };
    struct qhca_flow rule;
    struct gwr wr = { .opcode = QHCA_WQE_RAW_SEND, .num_sge = 1, .sge = { sge },
                      .flags = QHCA_WQE_F_SIGNALED };
    unsigned i;

    gqp_create(&x->raw, &q->g, &(struct gqp_init){
        .type = QHCA_QPT_RAW, .sq_shift = 3, .sq_stride = 7, .rq_shift = 3,
        .rq_stride = 5, .scq = &q->cq, .rcq = &q->cq, .rq = &gbuf_flat4k,
    });
    for (i = QHCA_QPS_INIT; i <= QHCA_QPS_RTS; i++) {
        CHECK(gqp_state(&x->raw, (uint8_t)i) == QHCA_ST_OK, "MODIFY_QP");
    }
    for (i = 0; i < 4; i++) {
        gqp_post_recv(&x->raw, i, &sge, 1);
    }
    memset(&rule, 0, sizeof(rule));
    rule.qpn = x->raw.qpn;
    rule.priority = 1;
    rule.value.l4 = QHCA_PROTO_UDP;
    rule.mask.l4 = 0xff;
    x->raw_rule = guest_create(&q->g, QHCA_CMD_CREATE_FLOW, &rule,
                               sizeof(rule));
    wr.sge[0].len = 100;
    gqp_post_send(&x->raw, &wr);
    gqp_ring(&x->raw);
}

static void eth_ip4(uint8_t *ip, uint8_t proto)
{
    ip[0] = 0x45;
    ip[8] = 64;
    ip[9] = proto;
}

/*
 * A large send of @len bytes, perhaps in a tunnel; the wire is busy before it
 * ends, mostly.
 */
static void eth_large(struct fq *q, struct ethernet *x, uint32_t len,
                      bool tunnel)
{
    uint8_t *f = gmem_ptr(q->g.m, eth_at(x, AT_DATA), 8192);
    uint16_t l3 = tunnel ? 34 : 14;
    struct {
        struct qhca_eth_wqe h;
        struct qhca_eth_seg seg;
    } w;

    memset(f, 0, l3 + 40);
    memcpy(f, q->peer.mac, 6);
    memcpy(f + 6, q->w.node[0].mac, 6);
    qhca_put_be16(f + 12, 0x0800);
    eth_ip4(f + 14, QHCA_PROTO_IP4);
    eth_ip4(f + l3, QHCA_PROTO_TCP);
    f[l3 + 32] = 0x50;
    memset(&w, 0, sizeof(w));
    w.h.opcode = QHCA_WQE_ETH_SEND;
    w.h.flags = QHCA_WQE_F_ETH_LSO | QHCA_WQE_F_SIGNALED;
    w.h.num_sge = 1;
    w.h.mss = 100;
    w.h.hdr_len = l3 + 40;
    w.h.inner_l3 = tunnel ? l3 : 0;
    w.seg = (struct qhca_eth_seg){ .addr = eth_at(x, AT_DATA),
                                   .len = w.h.hdr_len + len };
    memcpy(gmem_ptr(q->g.m, eth_at(x, AT_SQ), sizeof(w)), &w, sizeof(w));
    q->w.wire.refuse = 16384;   /* a frame in four */
    guest_doorbell(&q->g, 0, QHCA_DB_ETH_SQ,
                   x->sqn | 1ULL << QHCA_DB_INDEX_SHIFT);
    node_drain(&q->w.node[0]);
}

/*
 * They let a frame through now and then; the first may wait, but not for so long
 * that the timer, which is never set to a later time, outlives the test.
 */
static void eth_shapers(struct fq *q, struct ethernet *x, uint8_t k)
{
    struct qhca_shaperc c = { .weight = 3, .burst = k };

    c.rate = k & 1 ? 100000 : 0;
    x->shaper[1] = guest_create(&q->g, QHCA_CMD_CREATE_SHAPER, &c, sizeof(c));
    c.rate = k & 2 ? 1000000 : 0;
    c.parent = x->shaper[1];
    x->shaper[0] = guest_create(&q->g, QHCA_CMD_CREATE_SHAPER, &c, sizeof(c));
}

static void eth_open(struct fq *q, struct ethernet *x, struct fz *f)
{
    struct qhca_eth_qc c;
    uint8_t k = fz_u8(f);
    static struct made m;
    unsigned i;
    struct rng r;

    x->mem = gmem_alloc(q->g.m, ETH_PAGES * 4096u, 12, 0);
    gmem_allow(q->g.m, x->mem, ETH_PAGES * 4096u, GMEM_RW);
    memset(&c, 0, sizeof(c));
    c.buf = eth_ring(x->mem, 7);
    c.cqn = q->cq.cqn;
    c.shift = ETH_SHIFT;
    c.stride = 7;
    eth_shapers(q, x, k);
    c.shaper = x->shaper[0];
    x->sqn = guest_create(&q->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    for (i = 0; i < ETH_RQS; i++) {
        eth_rq(q, x, i, k | 2);
    }
    eth_spread(q, x);
    eth_raw(q, x);
    rng_init(&r, k);
    for (i = 0; i < (k >> 3 & 7); i++) {
        made_frame(&m, &r, q->w.node[0].mac, NOTHING);
        world_inject(&q->w, 0, m.b, m.len);
    }
    if (k >= 0xc0) {            /* a queue that is stopped */
        struct gcmd stop = {
            .op = QHCA_CMD_MODIFY_ETH_RQ, .obj = x->rqn[k % ETH_RQS],
            .in = &c, .in_len = sizeof(c), .mask = QHCA_ETH_RQ_M_STATE,
        };

        c.state = QHCA_WQS_RESET;
        guest_must(&q->g, &stop);
    }
    eth_large(q, x, 1 + k * 16u, k & 1);
}

static void eth_close(struct fq *q, struct ethernet *x)
{
    struct qhca_port port = { .eth_qpn = QHCA_ETH_QP_NONE };
    struct gcmd set = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_ETH_QPN,
    };
    const struct {
        uint8_t op;
        uint32_t num;
    } end[] = {
        { QHCA_CMD_DESTROY_FLOW, x->rule }, { QHCA_CMD_DESTROY_QP, x->qpn },
        { QHCA_CMD_DESTROY_RQT, x->rqtn }, { QHCA_CMD_DESTROY_ETH_SQ, x->sqn },
        { QHCA_CMD_DESTROY_ETH_RQ, x->rqn[0] },
        { QHCA_CMD_DESTROY_ETH_RQ, x->rqn[1] },
        { QHCA_CMD_DESTROY_ETH_RQ, x->rqn[2] },
        { QHCA_CMD_DESTROY_SHAPER, x->shaper[0] },
        { QHCA_CMD_DESTROY_SHAPER, x->shaper[1] },
    };
    unsigned i;

    q->w.wire.refuse = 0;
    guest_must(&q->g, &set);
    for (i = 0; i < sizeof(end) / sizeof(end[0]); i++) {
        CHECK(guest_simple(&q->g, end[i].op, end[i].num) == QHCA_ST_OK,
              "command %#x", end[i].op);
    }
    CHECK(guest_simple(&q->g, QHCA_CMD_DESTROY_FLOW, x->raw_rule) ==
          QHCA_ST_OK, "DESTROY_FLOW");
    CHECK(gqp_destroy(&x->raw) == QHCA_ST_OK, "DESTROY_QP");
    gmem_release(q->g.m, x->mem, ETH_PAGES * 4096u);
}

/* ---- corrupting it ---- */

struct field {
    uint32_t at;
    uint8_t size;
};

/* The integer fields of the state, which describes itself. */
static unsigned find_fields(const uint8_t *b, size_t len, struct field *f)
{
    unsigned n = 0;
    size_t at = 0;

    while (at < len && n < FIELDS_MAX) {
        uint8_t type = b[at++];

        switch (type) {
        case 1:
        case 2:
        case 4:
        case 8:
        case 'b':
            f[n].at = (uint32_t)at;
            f[n].size = type == 'b' ? 1 : type;
            at += f[n++].size;
            break;
        case 'S':
            at += 8;
            break;
        case 'B':
            f[n].at = (uint32_t)at + 5;
            f[n++].size = 8;
            at += 5 + (b[at + 1] | b[at + 2] << 8 | b[at + 3] << 16);
            break;
        default:
            CHECK(false, "byte %zu of the state is of no type: %u", at,
                  type);
        }
    }
    return n;
}

/* Change @k fields. */
static void spoil(struct fz *f, uint8_t *b, size_t len, unsigned k)
{
    static struct field fields[FIELDS_MAX];
    unsigned n = find_fields(b, len, fields);

    while (k--) {
        uint32_t pick = fz_u32(f);
        const struct field *x = &fields[pick % n];
        uint64_t v = 0;

        memcpy(&v, b + x->at, x->size);
        switch (pick >> 28) {
        case 0:
            b[pick % len] = fz_u8(f);
            continue;
        case 1:
            v = 0;
            break;
        case 2:
            v = UINT64_MAX;
            break;
        case 3:
        case 4:
            v++;
            break;
        case 5:
        case 6:
            v--;
            break;
        case 7:
            v = fz_u64(f);
            break;
        case 8:
            v ^= 1ULL << (pick >> 20 & 63);
            break;
        default:
            v = fz_u8(f);
        }
        memcpy(b + x->at, &v, x->size);
    }
}

/* Fields are changed or, seldom, the structure is; then perhaps one field. */
static void corrupt(struct fz *f, struct saved *s, uint32_t qpn)
{
    uint8_t how = fz_u8(f);
    unsigned i;

    if (how < EDITS) {
        spoil(f, s->b, s->len, how & 0xc0 ? 1 : 1 + (how & 3));
        return;                 /* with more, few load */
    }
    saved_find(s);
    for (i = 0; i <= (how & 3); i++) {
        edit(f, s, qpn);
    }
    if (how & 4) {
        spoil(f, s->b, s->len, 1);
    }
}

/* ---- using it ---- */

static void use(struct qhca *e, struct arena *a, struct fz *f)
{
    struct qhca_qpc qpc;
    uint8_t frame[WORLD_FRAME_MAX];
    unsigned i, n;

    for (i = 0; i < 40; i++) {
        uint8_t k = fz_u8(f);

        switch (k & 7) {
        case 0:
        case 1:
            qhca_run(e);
            break;
        case 2:
            a->now += 1ULL << (k >> 3);
            qhca_timer(e);
            break;
        case 3:
            qhca_db_write(e, (uint64_t)(k >> 5) << 12 | (fz_u8(f) & 0x38),
                          fz_u16(f) % 40 | (uint64_t)fz_u8(f) << 32, 8);
            break;
        case 4:
            if (k & 0x80) {
                eth_frame(e, f);
            } else if (seen_n) {
                n = (k >> 3) % (seen_n < FRAMES ? seen_n : FRAMES);
                memcpy(frame, seen[n].b, seen[n].len);
                qhca_receive(e, frame, seen[n].len);
            }
            break;
        case 5:
            qhca_tx_ready(e);
            break;
        case 6:
            qhca_reg_write(e, QHCA_REG_ASQ_DB, fz_u8(f), 4);
            break;
        default:
            qhca_query_qp(e, fz_u8(f) % 32, &qpc);
        }
    }
}

/* Shapers: other rates and parents; some go. */
static void drive_shapers(struct qhca *e, struct arena *a, struct fz *f)
{
    struct qhca_shaperc c;
    struct qhca_shaper *s;
    unsigned n;
    uint8_t k;

    for (n = 0; n < 8 && qhca_active(e); n++) {
        s = qhca_idr_get(&e->eth->shapers, n);
        if (!s) {
            continue;
        }
        k = fz_u8(f);
        memset(&c, 0, sizeof(c));
        c.rate = k & 8 ? 0 : k;
        c.parent = k >> 4 & 3;
        c.weight = k;
        command(e, a, QHCA_CMD_MODIFY_SHAPER, n, k & 7, &c, sizeof(c));
        if (k & 0x80) {
            command(e, a, QHCA_CMD_DESTROY_SHAPER, n, 0, NULL, 0);
        }
        qhca_timer(e);
    }
}

/* Ethernet queues: frames, doorbells, other states, rings and thresholds. */
static void drive_eth(struct qhca *e, struct arena *a, struct fz *f)
{
    struct qhca_eth_qc c;
    struct qhca_eth_q *q;
    unsigned i, n;
    uint8_t k;

    drive_shapers(e, a, f);
    for (n = 0; n < 8 && qhca_active(e); n++) {
        for (i = 0; i < 4; i++) {
            eth_frame(e, f);
        }
        q = qhca_idr_get(&e->eth->eth_sqs, n);
        if (q) {
            qhca_db_write(e, QHCA_DB_ETH_SQ, n | (uint64_t)(q->ring.head + 1)
                          << QHCA_DB_INDEX_SHIFT, 8);
            qhca_run(e);
        }
        for (i = 0; i < 3 && (q = qhca_idr_get(&e->eth->eth_rqs, n)); i++) {
            k = fz_u8(f);
            memset(&c, 0, sizeof(c));
            qhca_eth_q_query(q, &c);
            c.state = k >> 3 & 1;
            c.hds_thresh = k & 16 ? k : 0;
            command(e, a, QHCA_CMD_MODIFY_ETH_RQ, n, k & 7, &c, sizeof(c));
            eth_frame(e, f);
        }
    }
}

/* All that can happen to a QP: states, doorbells, packets, time, its end. */
static void drive(struct qhca *e, struct arena *a, struct fz *f)
{
    struct qhca_qp *qp;
    unsigned i, n;

    for (n = 0; n < 32 && qhca_active(e); n++) {
        for (i = 0; i < 8 && (qp = qhca_qp_get(e, n)); i++) {
            uint8_t k = fz_u8(f);

            switch (k & 7) {
            case 0:
            case 1:
                modify(e, a, qp, (k >> 3) % 7, f);
                break;
            case 2:         /* one step nearer to sending */
                modify(e, a, qp, qp->state == QHCA_QPS_ERR ? QHCA_QPS_RESET :
                       qp->state < QHCA_QPS_RTS ? qp->state + 1 :
                                                  QHCA_QPS_RTS, f);
                break;
            case 3:
                qhca_db_write(e, ((uint64_t)qp->uar << e->ad->db_shift) +
                              QHCA_DB_SQ, qp->qpn |
                              (uint64_t)(qp->sq_head + 1 + (k >> 5)) << 32,
                              8);
                break;
            case 4:
            case 5:
                packet(e, qp, f);
                break;
            case 6:
                a->now += 1ULL << (k >> 3);
                qhca_timer(e);
                break;
            default:
                qhca_run(e);
            }
        }
    }
    for (i = 0; i < 50; i++) {
        qhca_run(e);
    }
}

/*
 * The input, extended to the most a run can use by data derived from it: a
 * short input must not end in a run of zeros.
 */
static struct fz longer(const uint8_t *data, size_t size)
{
    static uint8_t b[16384];
    uint64_t seed = 1;
    struct rng r;
    size_t i;

    size = size < sizeof(b) ? size : sizeof(b);
    for (i = 0; i < size; i++) {
        b[i] = data[i];
        seed = (seed ^ data[i]) * 0x100000001b3ull;
    }
    rng_init(&r, seed);
    for (; i < sizeof(b); i++) {
        b[i] = (uint8_t)rng_u32(&r);
    }
    return (struct fz){ b, b + sizeof(b) };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct arena a;
    static struct saved s;
    struct fz f = longer(data, size);
    char why[160] = "";
    const char *err;
    void *state, *again;
    size_t len, len2;
    struct qhca *e;
    struct ethernet eth;
    struct fq q;
    unsigned n;

    fq_open(&q, fz_u8(&f) & 1);
    seen_n = 0;
    q.w.wire.filter = keep_frames;
    eth_open(&q, &eth, &f);
    busy(&q, &f);
    CHECK(qhca_save(q.w.node[0].e, &state, &len), "no memory");
    arena_open(&a, q.w.now);
    fz_bytes(&f, a.mem, 64);
    for (len2 = 64; len2 < MEM; len2++) {
        a.mem[len2] = (uint8_t)(a.mem[len2 - 64] * 5 + (len2 >> 6));
    }
    if (fz_u8(&f) & 3) {        /* else its tables and rings hold anything */
        arena_keep(&a, &q.w.node[0].mem);
    }
    {
        struct qhca_config cfg;

        fuzz_config(&cfg);
        cfg.super_frames = true;        /* as fq_open() */
        memcpy(cfg.mac, q.w.node[0].mac, 6);
        e = qhca_new(&cfg, &arena_ops, &a, &err);
        CHECK(e, "qhca_new: %s", err);
    }
    CHECK(qhca_load(e, state, len, why, sizeof(why)),
          "what was saved is not loaded: %s", why);
    s = (struct saved){ .e = q.w.node[0].e, .b = state, .len = len };
    corrupt(&f, &s, eth.raw.qpn);
    state = s.b;
    len = s.len;
    if (fz_u8(&f) == 1) {
        len = len * fz_u8(&f) / 256;
    }
    if (qhca_load(e, state, len, why, sizeof(why))) {
        refs_check(e);
        if (fz_u8(&f) & 1) {    /* else the QPs are still as loaded */
            drive(e, &a, &f);
            drive_eth(e, &a, &f);
            refs_check(e);
            CHECK(qhca_save(e, &again, &len2), "no memory");
            CHECK(qhca_load(e, again, len2, why, sizeof(why)), "what was "
                  "loaded and used cannot be saved and loaded again: %s", why);
            free(again);
        }
        live_all(e, &a, &f);
        drive_eth(e, &a, &f);
        refs_check(e);
        end_all(e, &a);
        use(e, &a, &f);     /* it may end in the fatal state */
    } else {
        CHECK(why[0] && qhca_reg_read(e, QHCA_REG_CTRL, 4) == 0,
              "a broken state leaves something behind");
    }
    qhca_free(e);
    free(state);
    q.w.wire.filter = fuzz_swallow;
    godp_in(&q.odp, 0, FQ_MR, true);
    for (n = 0; n < FQ_QPS; n++) {
        fq_serve(&q, n, 2);
    }
    eth_close(&q, &eth);
    fq_close(&q);
    return 0;
}

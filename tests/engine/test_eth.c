/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Ethernet function: send with offloads, filter, receive and scatter. */
#include <string.h>

#include "ethfix.h"
#include "unit.h"
#include "base/csum.h"
#include "emit.h"
#include "observe/inspect.h"

#define SHIFT 4
#define DEPTH (1u << SHIFT)

struct eth {
    struct gcq scq, rcq;
    struct gbuf sq, rq;
    uint64_t dbrec, mem;        /* 64 KiB for frames */
    uint32_t sqn, rqn, sq_prod, rq_prod;
};

/* The last frame sent. */
static uint8_t wire[WORLD_FRAME_MAX];
static size_t wire_len;
static unsigned wire_frames;
static uint64_t wire_at;

static bool tap(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    (void)src;
    memcpy(wire, frame, *len);
    wire_len = *len;
    wire_at = w->now;
    wire_frames++;
    return true;
}

static void make(struct unit *u, struct eth *t, uint8_t stride)
{
    struct qhca_eth_qc c;
    struct qhca_port port;

    memset(t, 0, sizeof(*t));
    gcq_create(&t->scq, &u->g, 6, NULL, 1);
    gcq_create(&t->rcq, &u->g, 6, NULL, 1);
    gbuf_make(&t->sq, u->m, (uint64_t)DEPTH << stride, &gbuf_flat4k, true, 0,
              &u->g.rng);
    gbuf_allow(&t->sq, 0, t->sq.len, GMEM_R);
    gbuf_make(&t->rq, u->m, DEPTH * 16, &gbuf_direct, true, 0, &u->g.rng);
    gbuf_allow(&t->rq, 0, t->rq.len, GMEM_R);
    t->dbrec = guest_dbrec(&u->g, false);
    t->mem = gmem_alloc(u->m, 65536, 12, 0);
    memset(&c, 0, sizeof(c));
    c.buf = t->sq.d;
    c.cqn = t->scq.cqn;
    c.shift = SHIFT;
    c.stride = stride;
    t->sqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    c.buf = t->rq.d;
    c.cqn = t->rcq.cqn;
    c.stride = 4;
    c.dbrec = t->dbrec;
    t->rqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    memset(&port, 0, sizeof(port));
    port.eth_rqn = t->rqn;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0,
                              QHCA_PORT_M_ETH_RQN, &port, sizeof(port),
                              NULL), QHCA_ST_OK);
    u->w.wire.filter = tap;
    wire_frames = 0;
}

static void unmake(struct unit *u, struct eth *t)
{
    assert_int_equal(gcq_destroy(&t->scq), QHCA_ST_BUSY);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_SQ, t->sqn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_RQ, t->rqn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_RQ, t->rqn),
                     QHCA_ST_BAD_OBJ);
    assert_int_equal(gcq_destroy(&t->scq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&t->rcq), QHCA_ST_OK);
    gbuf_free(&t->sq);
    gbuf_free(&t->rq);
    guest_dbrec_free(&u->g, t->dbrec);
    gmem_release(u->m, t->mem, 65536);
}

/* Put bytes at @off of the frame memory, readable by the device. */
static void put(struct unit *u, struct eth *t, uint64_t off, const void *src,
                size_t len)
{
    memcpy(gmem_ptr(u->m, t->mem + off, len), src, len);
    gmem_allow(u->m, t->mem + off, len, GMEM_R);
}

static void post_send(struct eth *t, const struct qhca_eth_wqe *h,
                      const struct qhca_eth_seg *seg, unsigned n)
{
    uint32_t stride = (uint32_t)(t->sq.len / DEPTH);
    uint64_t off = (t->sq_prod++ & (DEPTH - 1)) * (uint64_t)stride;

    gbuf_write(&t->sq, off, h, sizeof(*h));
    gbuf_write(&t->sq, off + sizeof(*h), seg, n * sizeof(*seg));
}

static void ring(struct unit *u, struct eth *t)
{
    guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ, t->sqn |
                   (uint64_t)t->sq_prod << QHCA_DB_INDEX_SHIFT);
    world_settle(&u->w, 1000000);
}

static void post_recv(struct unit *u, struct eth *t, uint64_t off,
                      uint32_t len)
{
    struct qhca_eth_seg seg = { .addr = t->mem + off, .len = len };

    gmem_allow(u->m, t->mem + off, len, GMEM_W);
    gbuf_write(&t->rq, (t->rq_prod++ & (DEPTH - 1)) * 16, &seg, 16);
    guest_dbrec_set(&u->g, t->dbrec, t->rq_prod);
}

/* An untagged IPv4 UDP frame of @len bytes with correct checksums. */
static void udp_frame(uint8_t *f, size_t len, const uint8_t *dmac)
{
    uint16_t sum;
    uint8_t pseudo[12];
    size_t i;

    memset(f, 0, 42);
    memcpy(f, dmac, 6);
    f[6] = 2;
    f[12] = 8;
    f[14] = 0x45;
    qhca_put_be16(f + 16, (uint16_t)(len - 14));
    f[22] = 64;
    f[23] = 17;
    memcpy(f + 26, "\x0a\x63\x00\x01\x0a\x63\x00\x02", 8);
    sum = (uint16_t)~qhca_csum(f + 14, 20, 0);
    memcpy(f + 24, &sum, 2);
    qhca_put_be16(f + 34, 1000);
    qhca_put_be16(f + 36, 2000);
    qhca_put_be16(f + 38, (uint16_t)(len - 34));
    for (i = 42; i < len; i++) {
        f[i] = (uint8_t)(i * 7);
    }
    memcpy(pseudo, f + 26, 8);
    pseudo[8] = 0;
    pseudo[9] = 17;
    qhca_put_be16(pseudo + 10, (uint16_t)(len - 34));
    sum = (uint16_t)~qhca_csum(f + 34, len - 34, qhca_csum(pseudo, 12, 0));
    memcpy(f + 40, &sum, 2);
}

static struct qhca_trace seen[16];
static unsigned n_seen;

static void keep_data(struct node *n, const struct qhca_trace *t)
{
    (void)n;
    if (t->kind == QHCA_TR_ETH_DATA) {
        assert_true(n_seen < sizeof(seen) / sizeof(seen[0]));
        seen[n_seen++] = *t;
    }
}

/* The next DMA of a frame's bytes that was traced. */
static void was_traced(unsigned *at, uint32_t queue, uint32_t index,
                       uint64_t addr, uint64_t len, bool write)
{
    assert_true(*at < n_seen);
    assert_int_equal(seen[*at].num, queue);
    assert_int_equal(seen[*at].index, index);
    assert_int_equal(seen[*at].addr, addr);
    assert_int_equal(seen[*at].a, len);
    assert_int_equal(seen[*at].b, write);
    (*at)++;
}

/* Known answers: RFC 1071 section 3, and sums computed by hand. */
static void checksum(void **state)
{
    static const uint8_t rfc[] = { 0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7 };
    static const uint8_t ip[] = {
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
        0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
    };
    static uint8_t ones[9234];
    uint32_t slow;
    size_t len, i;

    (void)state;
    /* the words' sum is 0xddf2 as big-endian numbers */
    assert_int_equal(qhca_csum(rfc, 8, 0), 0xf2dd);
    assert_int_equal((uint16_t)~qhca_csum(ip, 20, 0), 0x61b8);
    assert_int_equal(qhca_csum(rfc, 0, 0), 0);
    assert_int_equal(qhca_csum(rfc, 0, 0xffff), 0xffff);
    memset(ones, 0xff, sizeof(ones));
    assert_int_equal(qhca_csum(ones, sizeof(ones), 0xffff), 0xffff);
    for (len = 0; len < 200; len++) {
        for (slow = 0, i = 0; i < len; i++) {
            ones[i] = (uint8_t)(i * 37 + len);
            slow += i & 1 ? ones[i] << 8 : ones[i];
        }
        while (slow >> 16) {
            slow = (slow & 0xffff) + (slow >> 16);
        }
        assert_int_equal(qhca_csum(ones, len, 0), slow);
    }
}

static void send_gather(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = QHCA_WQE_F_SIGNALED,
    };
    struct qhca_eth_seg seg[30];
    static uint8_t frame[9234];
    struct qhca_cqe cqe;
    struct eth t;
    size_t len, part, off;
    unsigned n, i;

    make(u, &t, 9);
    for (i = 0; i < 200; i++) {
        len = 14 + rng_log(&u->g.rng, sizeof(frame) - 14);
        pattern_bytes(i, 0, frame, len);
        memcpy(frame, "\x02\0\0\0\0\x77", 6);
        put(u, &t, 0, frame, len);
        for (n = 0, off = 0; off < len; n++, off += part) {
            part = n == 29 ? len - off : rng_log(&u->g.rng, len - off);
            seg[n] = (struct qhca_eth_seg){ .addr = t.mem + off,
                                            .len = (uint32_t)part };
        }
        h.num_sge = (uint16_t)n;
        post_send(&t, &h, seg, n);
        ring(u, &t);
        assert_int_equal(wire_frames, i + 1);
        assert_int_equal(wire_len, len);
        assert_memory_equal(wire, frame, len);
        assert_true(gcq_poll(&t.scq, &cqe));
        assert_int_equal(cqe.status, QHCA_WC_SUCCESS);
        assert_int_equal(cqe.opcode, QHCA_CQE_OP_ETH_SEND);
        assert_int_equal(cqe.qpn, t.sqn);
        assert_int_equal(cqe.wqe_index, i);
        gmem_deny(u->m, t.mem, len, GMEM_R);
    }
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_PACKETS), 200);
    assert_int_equal(unit_stat(u, QHCA_STAT_WQES), 200);
    unmake(u, &t);
}

/* Traces show where the bytes of a frame are. */
static void traced_data(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 3 };
    uint8_t frame[300];
    struct qhca_eth_seg seg[3];
    unsigned at = 0;
    struct eth t;

    make(u, &t, 7);
    udp_frame(frame, sizeof(frame), u->n->mac);
    put(u, &t, 0, frame, sizeof(frame));
    seg[0] = (struct qhca_eth_seg){ .addr = t.mem, .len = 42 };
    seg[1] = (struct qhca_eth_seg){ .addr = t.mem + 50 };
    seg[2] = (struct qhca_eth_seg){ .addr = t.mem + 42, .len = 258 };
    post_send(&t, &h, seg, 3);
    post_recv(u, &t, 4096, 100);
    post_recv(u, &t, 8192, 4096);
    n_seen = 0;
    u->n->on_trace = keep_data;
    qhca_set_tracing(u->n->e, true);
    ring(u, &t);
    world_inject(&u->w, 0, frame, sizeof(frame));
    qhca_set_tracing(u->n->e, false);
    u->n->on_trace = NULL;
    was_traced(&at, t.sqn, 0, t.mem, 42, false);
    was_traced(&at, t.sqn, 0, t.mem + 42, 258, false);
    was_traced(&at, t.rqn, 0, t.mem + 4096, 100, true);
    was_traced(&at, t.rqn, 0, t.mem + 8192, 200, true);
    assert_int_equal(at, n_seen);
    unmake(u, &t);
}

static void send_offloads(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1, .csum_start = 34,
        .csum_offset = 6,
        .flags = QHCA_WQE_F_ETH_CSUM | QHCA_WQE_F_ETH_VLAN, .vlan = 0x2005,
    };
    uint8_t frame[100], want[100];
    struct qhca_eth_seg seg;
    struct qhca_cqe cqe;
    uint16_t sum;
    struct eth t;

    make(u, &t, 6);
    udp_frame(want, 100, (const uint8_t *)"\x02\0\0\0\0\x09");
    memcpy(frame, want, 100);
    /* as the kernel leaves it: the pseudo header's sum is in the field */
    sum = qhca_csum(frame + 26, 8, 0);
    sum = qhca_csum("\0\x11\0\x42", 4, sum);
    memcpy(frame + 40, &sum, 2);
    put(u, &t, 0, frame, 100);
    seg = (struct qhca_eth_seg){ .addr = t.mem, .len = 100 };
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    assert_int_equal(wire_len, 104);
    assert_memory_equal(wire, want, 12);
    assert_memory_equal(wire + 12, "\x81\x00\x20\x05", 4);
    assert_memory_equal(wire + 16, want + 12, 88);
    assert_false(gcq_poll(&t.scq, &cqe));       /* not signalled */
    unmake(u, &t);
}

static void send_refused(void **state)
{
    struct unit *u = *state;
    static const struct {
        struct qhca_eth_wqe h;
        uint32_t len;
        uint8_t status, syndrome;
    } bad[] = {
        { { .opcode = 0, .num_sge = 1 }, 60, QHCA_WC_LOC_QP_OP_ERR,
          QHCA_SYN_WQE_OPCODE },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1, .flags = 0x80 }, 60,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_FLAGS },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 0 }, 60,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 4 }, 60,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 0xffff }, 60,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 }, 13,
          QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 }, 9235,
          QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 }, UINT32_MAX,
          QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1,
            .flags = QHCA_WQE_F_ETH_VLAN }, 9231,
          QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1, .csum_start = 60,
            .flags = QHCA_WQE_F_ETH_CSUM }, 60, QHCA_WC_LOC_QP_OP_ERR,
          QHCA_SYN_WQE_LENGTH },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1, .csum_start = 40,
            .csum_offset = 19, .flags = QHCA_WQE_F_ETH_CSUM }, 60,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH },
        { { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1, .csum_start = 0xffff,
            .csum_offset = 0xffff, .flags = QHCA_WQE_F_ETH_CSUM }, 60,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH },
    };
    struct qhca_eth_seg seg;
    struct qhca_cqe cqe;
    uint8_t zero[9300] = { 0 };
    struct eth t;
    unsigned i;

    make(u, &t, 6);
    put(u, &t, 0, zero, sizeof(zero));
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        seg = (struct qhca_eth_seg){ .addr = t.mem, .len = bad[i].len };
        post_send(&t, &bad[i].h, &seg, 1);
        ring(u, &t);
        assert_true(gcq_poll(&t.scq, &cqe));    /* though not signalled */
        assert_int_equal(cqe.status, bad[i].status);
        assert_int_equal(cqe.syndrome, bad[i].syndrome);
        assert_int_equal(cqe.wqe_index, i);
    }
    assert_int_equal(wire_frames, 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_ERRORS), i);
    /* unmapped memory, then a valid frame: the queue survives */
    seg = (struct qhca_eth_seg){ .addr = gmem_unmapped(u->m, 60),
                                 .len = 60 };
    post_send(&t, &(struct qhca_eth_wqe){ .opcode = QHCA_WQE_ETH_SEND,
                                          .num_sge = 1 }, &seg, 1);
    seg.addr = t.mem;
    post_send(&t, &(struct qhca_eth_wqe){ .opcode = QHCA_WQE_ETH_SEND,
                                          .num_sge = 1 }, &seg, 1);
    ring(u, &t);
    assert_true(gcq_poll(&t.scq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_LOC_PROT_ERR);
    assert_int_equal(wire_frames, 1);
    /* invalid doorbells */
    guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ, t.sqn |
                   (uint64_t)(t.sq_prod + DEPTH + 1) << QHCA_DB_INDEX_SHIFT);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 1);
    guest_doorbell(&u->g, u->g.uar, QHCA_DB_ETH_SQ, t.sqn);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OWNER), 1);
    guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ, 99);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OBJECT), 1);
    assert_int_equal(wire_frames, 1);
    unmake(u, &t);
}

/* A wire that refuses: every frame is sent once, in order. */
static void send_blocked(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 };
    struct qhca_eth_seg seg = { .len = 60 };
    uint8_t frame[60] = { 2 };
    struct eth t;
    unsigned i, n;

    make(u, &t, 6);
    u->w.wire.refuse = 30000;
    for (n = 0; n < 20; n++) {
        u->w.reborn = n >= 10;  /* later with save and load, too */
        for (i = 0; i < 8; i++) {
            frame[20] = (uint8_t)(n * 8 + i);
            put(u, &t, i * 64, frame, 60);
            seg.addr = t.mem + i * 64;
            post_send(&t, &h, &seg, 1);
        }
        ring(u, &t);
        assert_int_equal(wire_frames, (n + 1) * 8);
        assert_int_equal(wire[20], n * 8 + 7);
    }
    u->w.reborn = 0;
    u->e = u->n->e;
    assert_true(u->n->refused > 20);
    assert_true(u->w.births > 10);
    unmake(u, &t);
}

static unsigned payload_reads;
static struct qhca_ops ops;

static bool count_payload(void *opaque, uint64_t addr, void *buf, size_t len)
{
    payload_reads += len == 1000;
    return ops.dma_read(opaque, addr, buf, len);
}

static unsigned stores;

/* Of the first CQE's event. */
static bool second_store_fails(void *opaque, uint64_t addr, uint64_t val)
{
    return ++stores != 2 && ops.dma_store64(opaque, addr, val);
}

/* The device becomes fatal: the queue sends nothing more. */
static void send_until_fatal(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1,
        .flags = QHCA_WQE_F_SIGNALED,
    };
    struct qhca_eth_seg seg = { .len = 60 };
    uint8_t frame[60] = { 2 };
    struct eth t;
    unsigned i;

    make(u, &t, 6);
    put(u, &t, 0, frame, 60);
    seg.addr = t.mem;
    for (i = 0; i < 8; i++) {
        post_send(&t, &h, &seg, 1);
    }
    gcq_arm(&t.scq, false);
    ops = u->e->ops;
    u->e->ops.dma_store64 = second_store_fails;
    stores = 0;
    ring(u, &t);
    u->e->ops = ops;
    assert_int_equal(u->e->fatal, QHCA_FATAL_EQ);
    assert_int_equal(wire_frames, 1);
    qhca_reset(u->e);
    gbuf_free(&t.sq);
    gbuf_free(&t.rq);
    gbuf_free(&t.scq.buf);
    gbuf_free(&t.rcq.buf);
}

/* A full wire says so with the last frame it takes: none is built in vain. */
static void send_full(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 };
    struct qhca_eth_seg seg = { .len = 1000 };
    uint8_t frame[1000] = { 2 };
    struct eth t;
    unsigned i;

    make(u, &t, 6);
    ops = u->e->ops;
    u->e->ops.dma_read = count_payload;
    payload_reads = 0;
    u->w.wire.speed_mbps = 1000;
    u->w.wire.queue_ns = 10000;         /* some eight microseconds a frame */
    u->w.wire.tells = true;
    put(u, &t, 0, frame, sizeof(frame));
    seg.addr = t.mem;
    for (i = 0; i < 8; i++) {
        post_send(&t, &h, &seg, 1);
    }
    ring(u, &t);
    assert_int_equal(wire_frames, 8);
    assert_int_equal(payload_reads, 8);
    assert_int_equal(u->n->refused, 0);
    assert_true(u->n->filled > 2);
    unmake(u, &t);
}

static void set_port(struct unit *u, uint64_t mask, struct qhca_port *p,
                     uint8_t want)
{
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, mask, p,
                              sizeof(*p), NULL), want);
}

/* Both queues and the filter can be inspected, rings and contexts. */
static void looks(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .num_sge = 2, .vlan = 42,
        .flags = QHCA_WQE_F_ETH_VLAN,
    };
    struct qhca_eth_seg seg[2] = { { .len = 60 }, { .len = 7 } };
    struct qhca_mac list = { .mac = "\x33\x33\0\0\0\x01" };
    struct qhca_port port = { .promisc = 1 };
    struct qhca_ring_query l = { .ring = QHCA_RING_SQ };
    uint8_t frame[67] = { 2 };
    struct seen s = { 0 };
    char want[24];
    struct eth t;

    make(u, &t, 6);
    put(u, &t, 0, frame, 67);
    seg[0].addr = t.mem;
    seg[1].addr = t.mem + 60;
    post_send(&t, &h, seg, 2);
    ring(u, &t);
    assert_int_equal(wire_frames, 1);
    post_recv(u, &t, 4096, 1500);
    set_port(u, QHCA_PORT_M_PROMISC, &port, QHCA_ST_OK);
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_MC_LIST, 0, 0, &list,
                              sizeof(list), NULL), QHCA_ST_OK);
    u->m->unchecked = true;

    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_SQ, t.sqn, seen_start(&s)));
    SEEN(&s, "context.shift", "4");
    SEEN(&s, "context.stride", "6");
    snprintf(want, sizeof(want), "%u", t.scq.cqn);
    SEEN(&s, "context.cqn", want);
    SEEN(&s, "head", "1");
    SEEN(&s, "tail", "1");
    SEEN(&s, "dead", "false");
    SEEN(&s, "buffer.form_name", "FLAT");
    assert_null(seen_get(&s, "doorbell_record.address"));
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_RQ, t.rqn, seen_start(&s)));
    snprintf(want, sizeof(want), "0x%llx", (unsigned long long)t.dbrec);
    SEEN(&s, "doorbell_record.address", want);
    SEEN(&s, "doorbell_record.index", "1");
    assert_non_null(qhca_inspect(u->e, QHCA_OBJ_ETH_RQ, 99, seen_start(&s)));
    assert_null(qhca_inspect_all(u->e, QHCA_OBJ_ETH_SQ, 0, 9,
                                 seen_start(&s)));
    SEEN(&s, "objects.0.depth", "16");
    SEEN(&s, "objects.0.head", "1");
    assert_null(seen_get(&s, "objects.1.depth"));

    l.object = QHCA_OBJ_ETH_SQ;
    l.number = t.sqn;
    assert_null(qhca_inspect_ring(u->e, &l, seen_start(&s)));
    SEEN(&s, "entries.0.opcode_name", "ETH_SEND");
    SEEN(&s, "entries.0.vlan", "42");
    SEEN(&s, "entries.0.segs.0.len", "60");
    SEEN(&s, "entries.0.segs.1.len", "7");
    SEEN(&s, "entries.0.mark", "free");
    l.object = QHCA_OBJ_ETH_RQ;
    l.number = t.rqn;
    l.ring = QHCA_RING_RQ;
    assert_null(qhca_inspect_ring(u->e, &l, seen_start(&s)));
    snprintf(want, sizeof(want), "0x%llx",
             (unsigned long long)(t.mem + 4096));
    SEEN(&s, "entries.0.addr", want);
    SEEN(&s, "entries.0.len", "1500");

    assert_null(qhca_inspect(u->e, QHCA_OBJ_DEVICE, 0, seen_start(&s)));
    SEEN(&s, "filter.promiscuous", "true");
    SEEN(&s, "filter.all_multicast", "false");
    SEEN(&s, "filter.loopback", "false");
    SEEN(&s, "filter.multicast.0", "33:33:00:00:00:01");
    assert_null(seen_get(&s, "filter.multicast.1"));
    SEEN(&s, "objects.eth-sq", "1");
    u->m->unchecked = false;
    seen_start(&s);
    free(s.text);
    unmake(u, &t);
}

/*
 * A reset while the wire is blocked and work is pending: an environment that
 * forgets both must not stop the adapter permanently.
 */
static void reset_while_blocked(void **state)
{
    struct unit *u = *state;
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 };
    struct qhca_eth_seg seg = { .len = 60 };
    uint8_t frame[60] = { 2 };
    struct eth t;

    make(u, &t, 6);
    put(u, &t, 0, frame, 60);
    seg.addr = t.mem;
    u->w.wire.refuse = 65536;
    post_send(&t, &h, &seg, 1);
    guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ, t.sqn |
                   1ULL << QHCA_DB_INDEX_SHIFT);
    assert_true(u->e->tx_blocked);
    qhca_kick(u->e);
    qhca_reset(u->e);
    assert_false(u->e->tx_blocked);
    u->w.wire.refuse = 0;
    u->n->tx_waiting = false;
    u->n->kicked = false;               /* forgotten, as a device reset may */
    guest_drop(&u->g);
    gbuf_free(&t.scq.buf);
    gbuf_free(&t.rcq.buf);
    gbuf_free(&t.sq);
    gbuf_free(&t.rq);
    guest_start(&u->g, u->n, 1, &cfg);
    make(u, &t, 6);
    put(u, &t, 0, frame, 60);
    seg.addr = t.mem;
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    assert_int_equal(wire_frames, 1);
    qhca_kick(u->e);
    assert_true(u->n->kicked);
    world_settle(&u->w, 1000000);
    unmake(u, &t);
}

static void receive_scatter(void **state)
{
    struct unit *u = *state;
    static uint8_t frame[9018];
    static const uint32_t sizes[][6] = {
        { 9018 }, { 16384 }, { 4096, 4096, 4096 }, { 1, 2, 3, 4, 9008 },
        { 3000, 3000, 3018 },
    };
    struct qhca_cqe cqe;
    uint64_t off;
    struct eth t;
    unsigned i, j;

    make(u, &t, 6);
    udp_frame(frame, sizeof(frame), u->n->mac);
    /* no buffer: dropped; too small: dropped, and nothing is consumed */
    world_inject(&u->w, 0, frame, sizeof(frame));
    post_recv(u, &t, 0, 4096);
    world_inject(&u->w, 0, frame, sizeof(frame));
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 2);
    assert_false(gcq_poll(&t.rcq, &cqe));
    world_inject(&u->w, 0, frame, 60);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.byte_len, 60);
    assert_int_equal(cqe.num_wqe, 1);
    for (i = 0; i < 5; i++) {
        for (off = 0, j = 0; j < 6 && sizes[i][j]; j++) {
            post_recv(u, &t, off, sizes[i][j]);
            off += sizes[i][j];
        }
        world_inject(&u->w, 0, frame, sizeof(frame));
        assert_true(gcq_poll(&t.rcq, &cqe));
        assert_int_equal(cqe.status, 0);
        assert_int_equal(cqe.opcode, QHCA_CQE_OP_ETH_RECV);
        assert_int_equal(cqe.qpn, t.rqn);
        assert_int_equal(cqe.byte_len, sizeof(frame));
        assert_int_equal(cqe.num_wqe, j);
        assert_int_equal(cqe.wqe_index, t.rq_prod - j);
        assert_int_equal(cqe.flags, QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK);
        assert_int_equal(cqe.csum, qhca_csum(frame + 14,
                                             sizeof(frame) - 14, 0));
        assert_memory_equal(gmem_ptr(u->m, t.mem, sizeof(frame)), frame,
                            sizeof(frame));
    }
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_PACKETS), 6);
    unmake(u, &t);
}

static void one(struct unit *u, struct eth *t, const uint8_t *frame,
                size_t len, struct qhca_cqe *cqe)
{
    post_recv(u, t, 0, 10000);
    world_inject(&u->w, 0, frame, len);
    assert_true(gcq_poll(&t->rcq, cqe));
}

static void receive_verdict(void **state)
{
    struct unit *u = *state;
    uint8_t f[200], tagged[204];
    struct qhca_cqe cqe;
    struct eth t;

    make(u, &t, 6);
    udp_frame(f, 200, u->n->mac);
    one(u, &t, f, 200, &cqe);
    assert_int_equal(cqe.flags, QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK);
    assert_int_equal(cqe.vlan, QHCA_VLAN_NONE);
    f[150] ^= 1;                        /* payload */
    one(u, &t, f, 200, &cqe);
    assert_int_equal(cqe.flags, QHCA_CQE_F_L3_OK);
    f[150] ^= 1;
    f[22]--;                            /* TTL */
    one(u, &t, f, 200, &cqe);
    assert_int_equal(cqe.flags, 0);
    f[22]++;
    /* the tag is removed and reported */
    memcpy(tagged, f, 12);
    memcpy(tagged + 12, "\x81\x00\x60\x07", 4);
    memcpy(tagged + 16, f + 12, 188);
    one(u, &t, tagged, 204, &cqe);
    assert_int_equal(cqe.flags, QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK |
                     QHCA_CQE_F_VLAN);
    assert_int_equal(cqe.vlan, 0x6007);
    assert_int_equal(cqe.byte_len, 200);
    assert_memory_equal(gmem_ptr(u->m, t.mem, 200), f, 200);
    /* padding after the packet does not count */
    udp_frame(f, 50, u->n->mac);
    memset(f + 50, 0xee, 10);
    one(u, &t, f, 60, &cqe);
    assert_int_equal(cqe.flags, QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK);
    /* wrong lengths */
    udp_frame(f, 100, u->n->mac);
    qhca_put_be16(f + 16, 2000);
    one(u, &t, f, 100, &cqe);
    assert_int_equal(cqe.flags, 0);
    udp_frame(f, 100, u->n->mac);
    f[14] = 0x4f;
    one(u, &t, f, 40, &cqe);
    assert_int_equal(cqe.flags, 0);
    unmake(u, &t);
}

static unsigned filtered(struct unit *u, struct eth *t, const char *dmac)
{
    uint64_t before = unit_stat(u, QHCA_STAT_ETH_RX_FILTERED);
    uint8_t f[60];
    struct qhca_cqe cqe;

    udp_frame(f, 60, (const uint8_t *)dmac);
    post_recv(u, t, 0, 10000);
    world_inject(&u->w, 0, f, 60);
    gcq_poll(&t->rcq, &cqe);
    return (unsigned)(unit_stat(u, QHCA_STAT_ETH_RX_FILTERED) - before);
}

static void filter(void **state)
{
    struct unit *u = *state;
    struct qhca_mac list[3] = {
        { .mac = "\x33\x33\0\0\0\x01" }, { .mac = "\x01\0\x5e\0\0\x01" },
        { .mac = "\x33\x33\0\0\0\x01" },
    };
    struct qhca_port p = { .promisc = 1, .allmulti = 1, .mac = { 2, 9 } };
    struct eth t;

    make(u, &t, 6);
    assert_int_equal(filtered(u, &t, (char *)u->n->mac), 0);
    assert_int_equal(filtered(u, &t, "\xff\xff\xff\xff\xff\xff"), 0);
    assert_int_equal(filtered(u, &t, "\x02\0\0\0\0\x09"), 1);
    assert_int_equal(filtered(u, &t, "\x33\x33\0\0\0\x01"), 1);
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_MC_LIST, 0, 0, list,
                              sizeof(list), NULL), QHCA_ST_OK);
    assert_int_equal(filtered(u, &t, "\x33\x33\0\0\0\x01"), 0);
    assert_int_equal(filtered(u, &t, "\x01\0\x5e\0\0\x01"), 0);
    assert_int_equal(filtered(u, &t, "\x33\x33\0\0\0\x02"), 1);
    set_port(u, QHCA_PORT_M_ALLMULTI, &p, QHCA_ST_OK);
    assert_int_equal(filtered(u, &t, "\x33\x33\0\0\0\x02"), 0);
    assert_int_equal(filtered(u, &t, "\x02\0\0\0\0\x09"), 1);
    set_port(u, QHCA_PORT_M_PROMISC, &p, QHCA_ST_OK);
    assert_int_equal(filtered(u, &t, "\x02\0\0\0\0\x09"), 0);
    p.promisc = p.allmulti = 0;
    set_port(u, QHCA_PORT_M_PROMISC | QHCA_PORT_M_ALLMULTI |
             QHCA_PORT_M_MAC, &p, QHCA_ST_OK);
    assert_int_equal(filtered(u, &t, "\x02\x09\0\0\0\0"), 0);
    assert_int_equal(filtered(u, &t, (char *)u->n->mac), 1);
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_MC_LIST, 0, 0, NULL, 0, NULL),
                     QHCA_ST_OK);
    assert_int_equal(filtered(u, &t, "\x33\x33\0\0\0\x01"), 1);
    /* nonsense */
    list[0].mac[0] = 2;
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_MC_LIST, 0, 0, list,
                              sizeof(list), NULL), QHCA_ST_BAD_PARAM);
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_MC_LIST, 0, 0, list, 12, NULL),
                     QHCA_ST_BAD_PARAM);
    p.promisc = 2;
    set_port(u, QHCA_PORT_M_PROMISC, &p, QHCA_ST_BAD_PARAM);
    p.mac[0] = 1;
    set_port(u, QHCA_PORT_M_MAC, &p, QHCA_ST_BAD_PARAM);
    p.mtu = 67;
    set_port(u, QHCA_PORT_M_MTU, &p, QHCA_ST_BAD_PARAM);
    p.mtu = 9217;
    set_port(u, QHCA_PORT_M_MTU, &p, QHCA_ST_BAD_PARAM);
    p.eth_rqn = 5;
    set_port(u, QHCA_PORT_M_ETH_RQN, &p, QHCA_ST_BAD_OBJ);
    set_port(u, QHCA_PORT_M_ETH_QPN, &p, QHCA_ST_BAD_OBJ);
    p.loopback = 2;
    set_port(u, QHCA_PORT_M_LOOPBACK, &p, QHCA_ST_BAD_PARAM);
    set_port(u, 1 << 8, &p, QHCA_ST_BAD_PARAM);
    unmake(u, &t);
}

/* Send what is at the start of the frame memory, and receive it. */
static void looped(struct unit *u, struct eth *t, const struct qhca_eth_wqe *h,
                   size_t len, struct qhca_cqe *cqe)
{
    struct qhca_eth_seg seg = { .addr = t->mem, .len = (uint32_t)len };

    post_recv(u, t, 4096, 4096);
    post_send(t, h, &seg, 1);
    ring(u, t);
    assert_true(gcq_poll(&t->scq, cqe));
    assert_int_equal(cqe->status, QHCA_WC_SUCCESS);
    assert_true(gcq_poll(&t->rcq, cqe));
    assert_int_equal(cqe->status, QHCA_WC_SUCCESS);
}

/* In loopback nothing leaves and nothing arrives, whatever the link does. */
static void loopback(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1, .vlan = 42,
        .flags = QHCA_WQE_F_SIGNALED | QHCA_WQE_F_ETH_VLAN,
    };
    struct qhca_port p = { .loopback = 1 }, got;
    uint64_t sent = unit_stat(u, QHCA_STAT_PORT_TX_FRAMES);
    struct qhca_eth_seg seg = { .len = 200 };
    struct qhca_cqe cqe;
    uint8_t f[200];
    struct eth t;

    make(u, &t, 6);
    set_port(u, QHCA_PORT_M_LOOPBACK, &p, QHCA_ST_OK);
    save_and_load(u);
    guest_query(&u->g, QHCA_CMD_QUERY_PORT, 0, &got, sizeof(got));
    assert_int_equal(got.loopback, 1);
    node_set_link(u->n, false);
    u->e->tx_blocked = true;            /* nor does it wait for the wire */
    udp_frame(f, 200, u->n->mac);
    put(u, &t, 0, f, 200);
    looped(u, &t, &h, 200, &cqe);
    assert_true(u->e->tx_blocked);
    u->e->tx_blocked = false;
    assert_int_equal(cqe.flags, QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK |
                     QHCA_CQE_F_VLAN);
    assert_int_equal(cqe.vlan, 42);
    assert_int_equal(cqe.byte_len, 200);
    assert_memory_equal(gmem_ptr(u->m, t.mem + 4096, 200), f, 200);
    node_set_link(u->n, true);
    /* the address filter holds */
    assert_int_equal(filtered(u, &t, (char *)u->n->mac), 1);
    memcpy(f, "\x02\0\0\0\0\x09", 6);
    put(u, &t, 0, f, 6);
    seg.addr = t.mem;
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_FILTERED), 2);
    /* and so does the MTU: 200 bytes and a tag */
    memcpy(f, u->n->mac, 6);
    put(u, &t, 0, f, 6);
    p.mtu = 185;
    set_port(u, QHCA_PORT_M_MTU, &p, QHCA_ST_OK);
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 1);
    p.mtu = 1500;
    set_port(u, QHCA_PORT_M_MTU, &p, QHCA_ST_OK);
    assert_int_equal(wire_frames, 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_FRAMES), sent);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_PACKETS), 3);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_PACKETS), 1);
    p.loopback = 0;
    set_port(u, QHCA_PORT_M_LOOPBACK, &p, QHCA_ST_OK);
    assert_int_equal(filtered(u, &t, (char *)u->n->mac), 0);
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    assert_int_equal(wire_frames, 1);
    unmake(u, &t);
}

/* A large send comes back as its frames. */
static void loopback_large(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1, .mss = 60, .hdr_len = 42,
        .flags = QHCA_WQE_F_SIGNALED | QHCA_WQE_F_ETH_LSO,
    };
    struct qhca_port p = { .loopback = 1 };
    struct qhca_cqe cqe;
    uint8_t f[200];
    struct eth t;

    make(u, &t, 6);
    set_port(u, QHCA_PORT_M_LOOPBACK, &p, QHCA_ST_OK);
    udp_frame(f, 200, u->n->mac);
    put(u, &t, 0, f, 200);
    post_recv(u, &t, 8192, 4096);
    post_recv(u, &t, 12288, 4096);
    looped(u, &t, &h, 200, &cqe);       /* 60, 60 and 38 bytes */
    assert_int_equal(cqe.byte_len, 102);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.byte_len, 102);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.byte_len, 80);
    assert_int_equal(cqe.flags, QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK);
    assert_memory_equal(gmem_ptr(u->m, t.mem + 8192 + 42, 60), f + 42, 60);
    assert_memory_equal(gmem_ptr(u->m, t.mem + 12288 + 42, 60), f + 102, 60);
    assert_memory_equal(gmem_ptr(u->m, t.mem + 4096 + 42, 38), f + 162, 38);
    assert_int_equal(wire_frames, 0);
    unmake(u, &t);
}

/* A PAUSE frame of @quanta, to @dmac. */
static void pause_frame(uint8_t f[60], const uint8_t *dmac, uint16_t quanta)
{
    memset(f, 0, 60);
    memcpy(f, dmac, 6);
    f[6] = 2;
    qhca_put_be16(f + 12, 0x8808);
    qhca_put_be16(f + 14, 1);
    qhca_put_be16(f + 16, quanta);
}

/* Send one frame; how long it takes until it leaves, in ns. */
static uint64_t paused(struct unit *u, struct eth *t)
{
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 };
    struct qhca_eth_seg seg = { .addr = t->mem, .len = 60 };
    uint64_t begin = u->w.now;
    unsigned sent = wire_frames;

    post_send(t, &h, &seg, 1);
    ring(u, t);
    assert_int_equal(wire_frames, sent + 1);
    return wire_at - begin;
}

/* A clock that is later each time it is read. */
static uint64_t (*ticking_clock)(void *opaque);

static uint64_t ticking(void *opaque)
{
    static uint64_t n;

    return ticking_clock(opaque) + ++n;
}

/* Nothing is sent while a peer wants a pause, if the port obeys. */
static void flow_control(void **state)
{
    static const uint8_t group[6] = { 1, 0x80, 0xc2, 0, 0, 1 };
    struct unit *u = *state;
    struct qhca_port p = { .pause_rx = 1 }, got;
    /* 1000 quanta of 512 bits at u->e->cfg.speed Mb/s */
    uint64_t ns = 1000ULL * 512 * 1000 / u->e->cfg.speed, took;
    uint8_t f[60], zero[60] = { 0 };
    struct qhca_cqe cqe;
    struct eth t;

    ticking_clock = u->e->ops.clock;
    make(u, &t, 6);
    put(u, &t, 0, zero, 60);
    pause_frame(f, group, 1000);
    world_inject(&u->w, 0, f, 60);
    assert_in_range(paused(u, &t), 0, ns / 2);  /* not asked to obey */
    set_port(u, QHCA_PORT_M_PAUSE, &p, QHCA_ST_OK);
    guest_query(&u->g, QHCA_CMD_QUERY_PORT, 0, &got, sizeof(got));
    assert_int_equal(got.pause_rx, 1);
    world_inject(&u->w, 0, f, 60);
    took = paused(u, &t);
    assert_in_range(took, ns, ns + ns / 2);
    assert_in_range(paused(u, &t), 0, ns / 2);  /* over */
    /* to the port's own address, and across a saved state */
    pause_frame(f, u->n->mac, 1000);
    world_inject(&u->w, 0, f, 60);
    save_and_load(u);
    assert_in_range(paused(u, &t), ns, ns + ns / 2);
    /* a pause ends by 0, or when the port no longer obeys */
    world_inject(&u->w, 0, f, 60);
    pause_frame(f, group, 0);
    world_inject(&u->w, 0, f, 60);
    assert_in_range(paused(u, &t), 0, ns / 2);
    pause_frame(f, group, 65535);
    world_inject(&u->w, 0, f, 60);
    p.pause_rx = 0;
    set_port(u, QHCA_PORT_M_PAUSE, &p, QHCA_ST_OK);
    assert_in_range(paused(u, &t), 0, ns / 2);
    /* no PAUSE: another opcode, another address, tagged, cut off */
    p.pause_rx = 1;
    set_port(u, QHCA_PORT_M_PAUSE, &p, QHCA_ST_OK);
    pause_frame(f, group, 65535);
    f[15] = 2;
    world_inject(&u->w, 0, f, 60);
    pause_frame(f, (const uint8_t *)"\1\0\x5e\0\0\1", 65535);
    world_inject(&u->w, 0, f, 60);
    pause_frame(f, group, 65535);
    world_inject(&u->w, 0, f, 17);
    memmove(f + 16, f + 12, 44);
    qhca_put_be16(f + 12, 0x8100);
    world_inject(&u->w, 0, f, 60);
    assert_in_range(paused(u, &t), 0, ns / 2);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_CONTROL), 9);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_PAUSE), 8);
    /* a state whose clock was ahead; the clock advances when it is read */
    u->e->ops.clock = ticking;
    u->e->tx_paused = u->w.now + (1ULL << 40);
    assert_in_range(paused(u, &t), 0, ns / 2);
    u->e->ops.clock = ticking_clock;
    /* a PAUSE of software is sent, and counted */
    pause_frame(f, group, 5);
    put(u, &t, 0, f, 60);
    paused(u, &t);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_CONTROL), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_PAUSE), 1);
    p.pause_rx = 2;
    set_port(u, QHCA_PORT_M_PAUSE, &p, QHCA_ST_BAD_PARAM);
    /* none was passed on */
    assert_false(gcq_poll(&t.rcq, &cqe));
    unmake(u, &t);
}

static void receive_mtu(void **state)
{
    struct unit *u = *state;
    struct qhca_port p = { .mtu = 1500 };
    static uint8_t f[2000];
    struct qhca_cqe cqe;
    struct eth t;

    make(u, &t, 6);
    set_port(u, QHCA_PORT_M_MTU, &p, QHCA_ST_OK);
    udp_frame(f, 1514, u->n->mac);
    one(u, &t, f, 1514, &cqe);
    post_recv(u, &t, 0, 4096);
    world_inject(&u->w, 0, f, 1515);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 1);
    memcpy(f + 12, "\x81\x00\x00\x05\x08\x00", 6);
    world_inject(&u->w, 0, f, 1519);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 2);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_OVERSIZE), 2);
    world_inject(&u->w, 0, f, 17);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 3);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_UNDERSIZE), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_FRAMES), 1);
    assert_false(gcq_poll(&t.rcq, &cqe));
    world_inject(&u->w, 0, f, 1518);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.byte_len, 1514);
    /* so does one of 802.1ad, but not another tag in it */
    memcpy(f + 12, "\x88\xa8\x00\x05\x08\x00", 6);
    one(u, &t, f, 1518, &cqe);
    assert_int_equal(cqe.byte_len, 1518);
    world_inject(&u->w, 0, f, 1519);
    memcpy(f + 12, "\x81\x00\x00\x05\x88\xa8\x00\x05\x08\x00", 10);
    world_inject(&u->w, 0, f, 1522);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_OVERSIZE), 4);
    unmake(u, &t);
}

static void receive_hostile(void **state)
{
    struct unit *u = *state;
    uint8_t f[200];
    struct qhca_cqe cqe;
    struct qhca_eth_seg seg = { 0 };
    struct eth t;
    unsigned i;

    make(u, &t, 6);
    udp_frame(f, 200, u->n->mac);
    /* an empty buffer: reported and consumed, and the queue continues */
    post_recv(u, &t, 0, 100);
    gbuf_write(&t.rq, (t.rq_prod & (DEPTH - 1)) * 16, &seg, 16);
    guest_dbrec_set(&u->g, t.dbrec, ++t.rq_prod);
    world_inject(&u->w, 0, f, 200);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_LOC_LEN_ERR);
    assert_int_equal(cqe.num_wqe, 2);
    /* unmapped memory */
    seg = (struct qhca_eth_seg){ .addr = gmem_unmapped(u->m, 4096),
                                 .len = 4096 };
    gbuf_write(&t.rq, (t.rq_prod & (DEPTH - 1)) * 16, &seg, 16);
    guest_dbrec_set(&u->g, t.dbrec, ++t.rq_prod);
    world_inject(&u->w, 0, f, 200);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_LOC_PROT_ERR);
    assert_int_equal(cqe.num_wqe, 1);
    one(u, &t, f, 200, &cqe);
    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.wqe_index, 3);
    /* more buffers than a frame may have: 200 bytes in 16 of one byte */
    for (i = 0; i < DEPTH; i++) {
        post_recv(u, &t, i, 1);
    }
    world_inject(&u->w, 0, f, 200);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 1);
    /* an invalid record: the queue fails, the adapter does not */
    guest_dbrec_set(&u->g, t.dbrec, t.rq_prod + 17);
    world_inject(&u->w, 0, f, 200);
    world_inject(&u->w, 0, f, 200);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 1);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_NOP, 0), QHCA_ST_OK);
    unmake(u, &t);
}

static struct qhca_eqe last_event;

static void keep_event(struct guest *g, const struct qhca_eqe *eqe)
{
    (void)g;
    last_event = *eqe;
}

static void is_told(struct unit *u, uint8_t type, uint32_t num,
                    uint8_t syndrome)
{
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[type], 1);
    assert_int_equal(last_event.type, type);
    assert_int_equal(last_event.obj, num);
    assert_int_equal(last_event.syndrome, syndrome);
    u->g.async_count[type] = 0;
}

/* A queue that fails reports it, once. */
static void dead_queues(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1,
                              .flags = QHCA_WQE_F_SIGNALED };
    struct qhca_eth_seg seg = { .len = 200 };
    uint64_t none = 0;
    uint8_t f[200];
    struct eth t;
    unsigned i;

    u->g.on_async = keep_event;
    udp_frame(f, 200, u->n->mac);
    /* SQ: its table */
    make(u, &t, 6);
    memcpy(gmem_ptr(u->m, t.sq.d.addr, 8), &none, 8);
    put(u, &t, 0, f, 200);
    seg.addr = t.mem;
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    is_told(u, QHCA_EV_ETH_SQ_ERR, t.sqn, QHCA_SYN_TABLE_INVALID);
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    assert_int_equal(u->g.async_count[QHCA_EV_ETH_SQ_ERR], 0);
    assert_int_equal(wire_frames, 0);
    /* RQ: a record beyond the ring */
    guest_dbrec_set(&u->g, t.dbrec, 17);
    for (i = 0; i < 2; i++) {
        world_inject(&u->w, 0, f, 200);
    }
    is_told(u, QHCA_EV_ETH_RQ_ERR, t.rqn, QHCA_SYN_DB_INDEX);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 1);
    unmake(u, &t);
    /* both: the CQ of 64 CQEs is not polled */
    make(u, &t, 6);
    put(u, &t, 0, f, 200);
    seg.addr = t.mem;
    for (i = 0; i < 66; i++) {
        post_send(&t, &h, &seg, 1);
        ring(u, &t);
        post_recv(u, &t, 256, 200);
        world_inject(&u->w, 0, f, 200);
    }
    is_told(u, QHCA_EV_ETH_RQ_ERR, t.rqn, QHCA_SYN_CQ_OVERFLOW);
    assert_int_equal(u->g.async_count[QHCA_EV_ETH_SQ_ERR], 1);
    assert_int_equal(u->g.async_count[QHCA_EV_CQ_ERR], 2);
    assert_int_equal(wire_frames, 65);
    unmake(u, &t);
}

/*
 * Timestamps: a received frame has the time when it arrived, a sent one the
 * time when it left, however long it was in the ring before.
 */
static void stamps(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1,
                              .flags = QHCA_WQE_F_SIGNALED };
    struct qhca_eth_seg seg = { .len = 60 };
    struct qhca_cqe cqe;
    uint64_t posted, came;
    uint8_t f[200];
    struct eth t;

    udp_frame(f, 200, u->n->mac);
    make(u, &t, 6);
    put(u, &t, 0, f, 60);
    seg.addr = t.mem;
    u->w.wire.refuse = 65536;
    post_send(&t, &h, &seg, 1);
    posted = u->w.now;
    ring(u, &t);
    assert_int_equal(wire_frames, 0);
    u->w.wire.refuse = 0;
    world_settle(&u->w, 1000000);
    assert_true(gcq_poll(&t.scq, &cqe));
    assert_true(wire_at > posted);
    assert_int_equal(cqe.timestamp, wire_at);
    post_recv(u, &t, 256, 200);
    world_run(&u->w, 777);
    came = u->w.now;
    world_inject(&u->w, 0, f, 200);
    world_run(&u->w, 1000);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.timestamp, came);
    unmake(u, &t);
}

/* Frames by size, with FCS and padding, received and sent. */
static void port_counters(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 };
    /* lengths without FCS: two of each size */
    static const uint16_t len[] = {
        14, 60, 61, 123, 124, 251, 252, 507, 508, 1019, 1020, 1514, 1515, 9230,
    };
    struct qhca_eth_seg seg;
    static uint8_t f[9230];
    uint64_t octets = 0;
    struct eth t;
    unsigned i;

    make(u, &t, 6);
    seg.addr = t.mem;
    for (i = 0; i < 14; i++) {
        memcpy(f, i == 1 ? "\xff\xff\xff\xff\xff\xff" :
               i == 2 ? "\x01\0\x5e\0\0\1" : "\x02\0\0\0\0\x09", 6);
        world_inject(&u->w, 0, f, len[i]);
        seg.len = len[i];
        put(u, &t, 0, f, len[i]);
        post_send(&t, &h, &seg, 1);
        ring(u, &t);
        octets += len[i] < 60 ? 64 : len[i] + 4;
    }
    for (i = 0; i < 7; i++) {
        assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_64 + i), 2);
        assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_64 + i), 2);
    }
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_FRAMES), 14);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_FRAMES), 14);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_OCTETS), octets);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_OCTETS), octets);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_BROADCAST), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_BROADCAST), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_MULTICAST), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_MULTICAST), 1);
    /* without a link nothing is sent */
    node_set_link(u->n, false);
    post_send(&t, &h, &seg, 1);
    ring(u, &t);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_PACKETS), 15);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_FRAMES), 14);
    node_set_link(u->n, true);
    unmake(u, &t);
}

static void bad_contexts(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc ok = {
        .buf = { .addr = 0x1000, .len = 4096 }, .shift = 4, .stride = 6,
    }, c;
    struct gcq cq;

#define NO(op, set, want) do {                                          \
        c = ok;                                                         \
        set;                                                            \
        assert_int_equal(unit_cmd(u, op, 0, 0, &c, sizeof(c), NULL),    \
                         want);                                         \
    } while (0)
    gcq_create(&cq, &u->g, 2, NULL, 1);
    ok.cqn = cq.cqn;
    NO(QHCA_CMD_CREATE_ETH_SQ, c.shift = 16, QHCA_ST_BAD_PARAM);
    NO(QHCA_CMD_CREATE_ETH_SQ, c.stride = 5, QHCA_ST_BAD_PARAM);
    NO(QHCA_CMD_CREATE_ETH_SQ, c.stride = 10, QHCA_ST_BAD_PARAM);
    NO(QHCA_CMD_CREATE_ETH_SQ, c.cqn = 0, QHCA_ST_BAD_OBJ);
    NO(QHCA_CMD_CREATE_ETH_SQ, c.shift = 7, QHCA_ST_BAD_TABLE);
    NO(QHCA_CMD_CREATE_ETH_RQ, c.stride = 6, QHCA_ST_BAD_PARAM);
    NO(QHCA_CMD_CREATE_ETH_RQ, c.stride = 4; c.dbrec = 4,
       QHCA_ST_BAD_PARAM);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum),
        UNIT(send_gather),
        UNIT(traced_data),
        UNIT(send_offloads),
        UNIT(send_refused),
        UNIT(send_blocked),
        UNIT(send_full),
        UNIT_HOSTILE(send_until_fatal),
        UNIT(looks),
        UNIT(reset_while_blocked),
        UNIT(receive_scatter),
        UNIT(receive_verdict),
        UNIT(filter),
        UNIT(loopback),
        UNIT(loopback_large),
        UNIT(flow_control),
        UNIT(receive_mtu),
        UNIT(receive_hostile),
        UNIT(dead_queues),
        UNIT(stamps),
        UNIT(port_counters),
        UNIT(bad_contexts),
    };

    return cmocka_run_group_tests_name("eth", tests, NULL, NULL);
}

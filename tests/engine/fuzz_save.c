/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: hostile saved states.  An adapter with work under way is saved,
 * what was saved is spoilt, mostly field by field, and loaded into another
 * adapter.  That refuses it, with words, and is as after a reset; or it takes
 * it and must survive whatever it is then told to do.
 */
#include <stdlib.h>

#include "fuzz_pair.h"

#define MEM 65536u
#define FIELDS_MAX 20000
#define FRAMES 16

struct arena {                  /* what the second adapter lives in */
    uint8_t mem[MEM];
    uint64_t now;
    unsigned sent;
};

static bool a_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct arena *a = opaque;
    size_t i;

    for (i = 0; i < len; i++) {
        ((uint8_t *)buf)[i] = a->mem[(addr + i) % MEM];
    }
    return addr >> 60 != 15;
}

static bool a_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    struct arena *a = opaque;
    size_t i;

    for (i = 0; i < len; i++) {
        a->mem[(addr + i) % MEM] = ((const uint8_t *)buf)[i];
    }
    return addr >> 60 != 15;
}

static bool a_store64(void *opaque, uint64_t addr, uint64_t val)
{
    return a_write(opaque, addr, &val, 8);
}

static void a_fence(void *opaque)
{
    (void)opaque;
}

static bool a_cas64(void *opaque, uint64_t addr, uint64_t cmp, uint64_t swap,
                    uint64_t *old)
{
    if (!a_read(opaque, addr, old, 8)) {
        return false;
    }
    return *old != cmp || a_write(opaque, addr, &swap, 8);
}

static bool d_read(void *opaque, uint64_t off, void *buf, size_t len)
{
    CHECK(len <= GMEM_SPAN && off <= GMEM_SPAN - len, "beyond device memory");
    return a_read(opaque, off, buf, len);
}

static bool d_write(void *opaque, uint64_t off, const void *buf, size_t len)
{
    CHECK(len <= GMEM_SPAN && off <= GMEM_SPAN - len, "beyond device memory");
    return a_write(opaque, off, buf, len);
}

static bool d_cas64(void *opaque, uint64_t off, uint64_t cmp, uint64_t swap,
                    uint64_t *old)
{
    CHECK(off <= GMEM_SPAN - 8, "beyond device memory");
    return a_cas64(opaque, off, cmp, swap, old);
}

static void a_msix(void *opaque, unsigned vector)
{
    (void)opaque;
    CHECK(vector < WORLD_VECTORS, "vector %u raised", vector);
}

static bool a_send(void *opaque, const void *frame, size_t len)
{
    struct arena *a = opaque;

    (void)frame;
    CHECK(len >= 14 && len <= WORLD_FRAME_MAX, "a frame of %zu bytes", len);
    return ++a->sent % 13;
}

static uint64_t a_clock(void *opaque)
{
    struct arena *a = opaque;

    return a->now;
}

static void a_timer(void *opaque, uint64_t deadline)
{
    (void)opaque;
    (void)deadline;
}

static const struct qhca_ops arena_ops = {
    .dma_read = a_read, .dma_write = a_write, .dma_store64 = a_store64,
    .dma_fence = a_fence, .dma_cas64 = a_cas64, .dm_read = d_read,
    .dm_write = d_write, .dm_cas64 = d_cas64, .msix = a_msix,
    .send = a_send, .clock = a_clock, .set_timer = a_timer, .kick = a_fence,
};

/* ---- a state worth spoiling ---- */

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

/* ---- spoiling ---- */

struct field {
    uint32_t at;
    uint8_t size;
};

/* The integers of the state: it says itself where they are. */
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

static void spoil(struct fz *f, uint8_t *b, size_t len,
                  const struct field *fields, unsigned n)
{
    unsigned k = 1 + (fz_u8(f) & 3);

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

/* ---- life with it ---- */

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
            if (seen_n) {
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct field fields[FIELDS_MAX];
    static struct arena a;
    struct fz f = { data, data + size };
    char why[160] = "";
    const char *err;
    void *state, *again;
    size_t len, len2;
    struct qhca *e;
    struct fq q;
    unsigned n;

    fq_open(&q, fz_u8(&f) & 1);
    seen_n = 0;
    q.w.wire.filter = keep_frames;
    busy(&q, &f);
    CHECK(qhca_save(q.w.node[0].e, &state, &len), "no memory");
    n = find_fields(state, len, fields);
    memset(&a, 0, sizeof(a));
    a.now = q.w.now;
    fz_bytes(&f, a.mem, 64);
    for (len2 = 64; len2 < MEM; len2++) {
        a.mem[len2] = (uint8_t)(a.mem[len2 - 64] * 5 + (len2 >> 6));
    }
    {
        struct qhca_config cfg;

        fuzz_config(&cfg);
        memcpy(cfg.mac, q.w.node[0].mac, 6);
        e = qhca_new(&cfg, &arena_ops, &a, &err);
        CHECK(e, "qhca_new: %s", err);
    }
    CHECK(qhca_load(e, state, len, why, sizeof(why)),
          "what was saved is not loaded: %s", why);
    spoil(&f, state, len, fields, n);
    if (fz_u8(&f) == 1) {
        len = len * fz_u8(&f) / 256;
    }
    if (qhca_load(e, state, len, why, sizeof(why))) {
        use(e, &a, &f);
        CHECK(qhca_save(e, &again, &len2), "no memory");
        CHECK(qhca_load(e, again, len2, why, sizeof(why)), "what was loaded "
              "and used cannot be saved and loaded again: %s", why);
        free(again);
        use(e, &a, &f);
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
    fq_close(&q);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Speed of the engine alone: two adapters in one thread, a wire that is a copy,
 * guest memory that is plain memory.  The figures include both ends, polling
 * and posting, so an adapter in a QEMU of its own achieves about twice as much.
 * Slowness is never a failure here.
 *
 * Without an argument the two exchange frames; with "link" they use a memory
 * link.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "die.h"
#include "footprint.h"
#include "guest.h"

#define RING 4096u
#define SQ_SHIFT 7
#define MEM (8u << 20)

struct frames {
    uint32_t head, tail;
    uint32_t len[RING];
    uint8_t *data;              /* RING * 8 KiB */
};

static struct world w;
static struct frames wire[2];   /* to node i */
static uint64_t ticks;
static void *rings[2];          /* of the memory link, from node i */
static unsigned bell[2];        /* for node i: the number of its link, or 0 */
static unsigned link_id[2];

static bool fast_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct node *n = opaque;
    uint64_t off = addr - n->mem.base;

    if (off >= GMEM_SPAN || len > GMEM_SPAN - off) {
        return false;
    }
    memcpy(buf, n->mem.data + off, len);
    return true;
}

static bool fast_write(void *opaque, uint64_t addr, const void *buf,
                       size_t len)
{
    struct node *n = opaque;
    uint64_t off = addr - n->mem.base;

    if (off >= GMEM_SPAN || len > GMEM_SPAN - off) {
        return false;
    }
    memcpy(n->mem.data + off, buf, len);
    return true;
}

static bool fast_store64(void *opaque, uint64_t addr, uint64_t val)
{
    return fast_write(opaque, addr, &val, 8);
}

static void fast_fence(void *opaque)
{
    (void)opaque;
}

static bool fast_cas64(void *opaque, uint64_t addr, uint64_t cmp,
                       uint64_t swap, uint64_t *old)
{
    if (!fast_read(opaque, addr, old, 8)) {
        return false;
    }
    return *old != cmp || fast_write(opaque, addr, &swap, 8);
}

static void fast_msix(void *opaque, unsigned vector)
{
    struct node *n = opaque;

    n->msix[vector]++;
}

static enum qhca_wire fast_send(void *opaque, const void *frame, size_t len)
{
    struct node *n = opaque;
    struct frames *to = &wire[!n->id];

    if (to->head - to->tail == RING) {
        n->tx_waiting = true;
        return QHCA_WIRE_BUSY;
    }
    memcpy(to->data + (size_t)(to->head % RING) * 8192, frame, len);
    to->len[to->head++ % RING] = (uint32_t)len;
    n->tx_frames++;
    return QHCA_WIRE_READY;
}

static uint64_t fast_clock(void *opaque)
{
    (void)opaque;
    return ticks;
}

static void fast_timer(void *opaque, uint64_t deadline)
{
    struct node *n = opaque;

    n->deadline = deadline;
}

static void fast_kick(void *opaque)
{
    struct node *n = opaque;

    n->kicked = true;
}

static bool fast_share(void *opaque, uint64_t addr, size_t len,
                       uint32_t *region, uint64_t *off)
{
    struct node *n = opaque;

    *region = 0;
    *off = addr - n->mem.base;
    return *off < GMEM_SPAN && len <= GMEM_SPAN - *off;
}

static void fast_bell(void *opaque, unsigned id)
{
    struct node *n = opaque;

    (void)id;
    bell[!n->id] = link_id[!n->id];
}

static bool fast_wait(void *opaque, unsigned id)
{
    (void)opaque;
    (void)id;
    return false;
}

static void fast_cut(void *opaque, unsigned id, const char *why)
{
    (void)opaque;
    die("link %u was cut: %s", id, why);
}

static const struct qhca_ops ops = {
    .dma_read = fast_read, .dma_write = fast_write,
    .dma_store64 = fast_store64, .dma_fence = fast_fence,
    .dma_cas64 = fast_cas64, .msix = fast_msix, .send = fast_send,
    .clock = fast_clock, .set_timer = fast_timer, .kick = fast_kick,
    .dma_share = fast_share, .memlink_bell = fast_bell,
    .memlink_wait = fast_wait, .memlink_cut = fast_cut,
};

/* One round: all pending work at both ends. */
static void pump(void)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct node *n = &w.node[i];
        struct frames *f = &wire[i];

        while (f->tail != f->head) {
            qhca_receive(n->e, f->data + (size_t)(f->tail % RING) * 8192,
                         f->len[f->tail % RING]);
            f->tail++;
        }
        if (w.node[!i].tx_waiting) {
            w.node[!i].tx_waiting = false;
            qhca_tx_ready(w.node[!i].e);
        }
        if (bell[i]) {
            qhca_memlink_bell(n->e, bell[i]);
            bell[i] = 0;
        }
        if (n->kicked) {
            n->kicked = false;
            qhca_run(n->e);
        }
    }
    ticks += 100;
}

/* CPU time, as other processes may be running. */
static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct end {
    struct guest g;
    struct gcq cq;
    struct gqp qp;
    struct gmr mr;
};

static struct end end[2];

/* Link the two; they switch to the link automatically. */
static void link_up(void)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        rings[i] = aligned_alloc(4096, QHCA_MEMLINK_RING_BYTES);
        CHECK(rings[i], "no memory");
        memset(rings[i], 0, QHCA_MEMLINK_RING_BYTES);
    }
    for (i = 0; i < 2; i++) {
        struct qhca_memlink_region region = {
            .base = w.node[!i].mem.data, .len = GMEM_SPAN,
        };
        struct qhca_memlink_config c = {
            .tx = rings[i], .rx = rings[!i], .region = &region, .regions = 1,
        };

        memcpy(c.mac, w.node[!i].mac, 6);
        link_id[i] = qhca_memlink_attach(w.node[i].e, &c);
        CHECK(link_id[i], "qhca_memlink_attach");
        qhca_memlinks_allow(w.node[i].e, true);
    }
}

static void setup(uint8_t mtu, bool linked)
{
    static const struct gbuf_shape big = { QHCA_BUF_TREE, 2, 12, 12 };
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 8,
    };
    struct gqp_attr a[2];
    struct qhca_config c;
    const char *err;
    unsigned i;

    memset(&w, 0, sizeof(w));
    qhca_config_default(&c);
    c.num_vectors = WORLD_VECTORS;
    c.dm_size = 0;
    w.nodes = 2;
    for (i = 0; i < 2; i++) {
        struct node *n = &w.node[i];
        struct gqp_init in = {
            .type = QHCA_QPT_RC, .sq_shift = SQ_SHIFT, .sq_stride = 6,
            .rq_shift = SQ_SHIFT, .rq_stride = 5, .sq = &gbuf_flat4k,
            .rq = &gbuf_flat4k, .scq = &end[i].cq, .rcq = &end[i].cq,
        };

        n->w = &w;
        n->id = i;
        n->deadline = UINT64_MAX;
        memcpy(n->mac, "\x52\x54\x00\x9a\x00\x01", 6);
        n->mac[5] = (uint8_t)(i + 1);
        memcpy(c.mac, n->mac, 6);
        gmem_init(&n->mem, (uint64_t)i << 40, i, i ? "b" : "a");
        n->e = qhca_new(&c, &ops, n, &err);
        CHECK(n->e, "%s", err);
        qhca_set_link(n->e, true);
        guest_start(&end[i].g, n, i, &cfg);
        gcq_create(&end[i].cq, &end[i].g, SQ_SHIFT + 2, &gbuf_flat4k,
                   end[i].g.eq[1].eqn);
        end[i].cq.lazy = 32;
        gqp_create(&end[i].qp, &end[i].g, &in);
        gmr_create(&end[i].mr, &end[i].g, MEM, 0x10000000, QHCA_ACCESS_MASK,
                   &big);
    }
    for (i = 0; i < 2; i++) {
        gqp_attr_default(&a[i]);
        a[i].path_mtu = mtu;
        a[i].timeout = 0;       /* this wire loses nothing */
        a[i].max_rd_atomic = a[i].max_dest_rd_atomic = 16;
        a[i].dest_qpn = end[!i].qp.qpn;
        gqp_to_init(&end[i].qp, &a[i]);
        gqp_to_rtr(&end[i].qp, &w.node[!i], &a[i]);
        gqp_to_rts(&end[i].qp, &a[i]);
    }
    if (linked) {
        link_up();
    }
}

static void teardown(void)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        CHECK(gqp_destroy(&end[i].qp) == QHCA_ST_OK &&
              gcq_destroy(&end[i].cq) == QHCA_ST_OK &&
              gmr_destroy(&end[i].mr) == QHCA_ST_OK, "destroy");
        guest_stop(&end[i].g);
        qhca_free(w.node[i].e);
        gmem_fini(&w.node[i].mem);
    }
    for (i = 0; i < 2; i++) {
        free(rings[i]);
        rings[i] = NULL;
    }
}

static void refill(uint32_t len)
{
    struct gqp *qp = &end[1].qp;
    struct qhca_sge sge = { .addr = end[1].mr.iova, .len = len,
                            .lkey = end[1].mr.key };

    while (gqp_post_recv(qp, 0, &sge, 1)) {
    }
}

static void run(const char *name, uint8_t op, uint32_t len, double seconds)
{
    bool recv = op == QHCA_WQE_SEND;
    uint64_t done = 0, frames = w.node[0].tx_frames + w.node[1].tx_frames;
    struct gwr wr = {
        .opcode = op, .num_sge = 1,
        .sge[0] = { end[0].mr.iova, len, end[0].mr.key },
        .remote_addr = recv ? 0 : end[1].mr.iova,
        .rkey = recv ? 0 : end[1].mr.key,
    };
    struct gqp *qp = &end[0].qp;
    double t0 = now_s(), t;
    struct qhca_cqe c;
    unsigned k;

    do {
        for (k = 0; k < 64; k++) {
            bool posted = false;

            if (recv) {
                refill(1 << 20);
            }
            /* signal every 16th, ring once per batch, as perftest does */
            while (qp->sq_prod - qp->sq_cons < 1u << SQ_SHIFT) {
                wr.flags = qp->sq_prod % 16 == 15 ? QHCA_WQE_F_SIGNALED : 0;
                gqp_post_send(qp, &wr);
                posted = true;
                if (qp->sq_prod % 16 == 0) {
                    break;
                }
            }
            if (posted) {
                gqp_ring(qp);
            }
            pump();
            while (gcq_poll(&end[0].cq, &c)) {
                CHECK(c.status == QHCA_WC_SUCCESS, "status %u syndrome %#x",
                      c.status, c.syndrome);
                done += c.wqe_index + 1 - qp->sq_cons;
                qp->sq_cons = c.wqe_index + 1;
            }
            while (gcq_poll(&end[1].cq, &c)) {
                CHECK(c.status == QHCA_WC_SUCCESS, "status %u", c.status);
                end[1].qp.rq_cons++;
            }
        }
        t = now_s() - t0;
    } while (t < seconds);
    /* wait for all completions */
    while (qp->sq_prod != qp->sq_cons) {
        pump();
        while (gcq_poll(&end[0].cq, &c)) {
            qp->sq_cons = c.wqe_index + 1;
        }
        if (qp->sq_prod % 16 && qp->sq_prod - qp->sq_cons < 16) {
            wr.flags = QHCA_WQE_F_SIGNALED;
            if (recv) {
                refill(1 << 20);
            }
            gqp_post_send(qp, &wr);
            gqp_ring(qp);
        }
    }
    while (gcq_poll(&end[1].cq, &c)) {
        end[1].qp.rq_cons++;
    }
    frames = w.node[0].tx_frames + w.node[1].tx_frames - frames;
    printf("%-10s %8u bytes  %9.3f M messages/s  %9.1f MiB/s  %8.3f M "
           "frames/s\n", name, len, (double)done / t / 1e6,
           (double)done * len / t / 1048576, (double)frames / t / 1e6);
    fflush(stdout);
}

static void host_memcpy(void)
{
    uint8_t *a = malloc(MEM), *b = malloc(MEM);
    double t0, t;
    uint64_t n = 0;

    CHECK(a && b, "no memory");
    memset(a, 1, MEM);
    memset(b, 2, MEM);
    t0 = now_s();
    do {
        memcpy(a, b, MEM);
        __asm__ volatile("" : : "r"(a) : "memory");
        n++;
    } while ((t = now_s() - t0) < 0.5);
    printf("%-10s %8u bytes  %36.1f MiB/s\n", "memcpy", MEM,
           (double)n * MEM / t / 1048576);
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = { 8, 256, 4096, 65536, 1 << 20 };
    bool linked = argc > 1 && !strcmp(argv[argc - 1], "link");
    double seconds = argc > 1 + linked ? strtod(argv[1], NULL) : 0.5;
    unsigned i;

    for (i = 0; i < 2; i++) {
        wire[i].data = malloc((size_t)RING * 8192);
        CHECK(wire[i].data, "no memory");
        memset(wire[i].data, 0, (size_t)RING * 8192);
    }
    printf("idle QP: %zu bytes\n", qp_footprint());
    host_memcpy();
    setup(5, linked);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        run("WRITE", QHCA_WQE_RDMA_WRITE, sizes[i], seconds);
        run("READ", QHCA_WQE_RDMA_READ, sizes[i], seconds);
        run("SEND", QHCA_WQE_SEND, sizes[i], seconds);
    }
    teardown();
    setup(3, linked);
    run("WRITE/1024", QHCA_WQE_RDMA_WRITE, 65536, seconds);
    teardown();
    free(wire[0].data);
    free(wire[1].data);
    return 0;
}

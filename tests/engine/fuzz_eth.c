/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: Ethernet send queues.  Large sends that are valid, or nearly so,
 * are posted; their headers and WQEs change before and while they are sent, on
 * a wire that is busy at times or in loopback, where they are received and
 * merged; the adapter is saved and loaded on the way.
 */
#include "bigpkt.h"
#include "fuzz.h"
#include "reborn.h"

#define SHIFT 3
#define DEPTH (1u << SHIFT)
#define STRIDE 9
#define SLOT 8192u              /* data of a WQE */

struct eth {
    struct world w;
    struct guest g;
    struct gcq cq;
    struct gbuf ring;
    uint64_t mem;
    uint32_t sqn, prod, done;
    /* what comes back in loopback */
    struct gcq rcq;
    struct gbuf rring;
    uint64_t dbrec, rmem;
    uint32_t rqn, posted;
};

static bool check_frame(struct world *w, unsigned src, uint8_t *frame,
                        size_t *len)
{
    (void)w;
    (void)src;
    (void)frame;
    CHECK(*len <= QHCA_ETH_MAX_FRAME, "a frame of %zu bytes", *len);
    return false;
}

static void open_sq(struct eth *t)
{
    struct qhca_eth_qc c;

    memset(&c, 0, sizeof(c));
    c.buf = t->ring.d;
    c.cqn = t->cq.cqn;
    c.shift = SHIFT;
    c.stride = STRIDE;
    t->sqn = guest_create(&t->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    t->prod = t->done = 0;
}

/* Take what has arrived; its buffers are free again. */
static void receive(struct eth *t)
{
    struct qhca_eth_cqe c;
    struct qhca_cqe any;

    while (gcq_poll(&t->rcq, &any)) {
        memcpy(&c, &any, sizeof(c));
        CHECK(c.num == t->rqn && c.num_wqe <= DEPTH, "%u buffers of queue %u",
              c.num_wqe, c.num);
        t->posted += c.num_wqe;
    }
    guest_dbrec_set(&t->g, t->dbrec, t->posted);
}

static void open_rq(struct eth *t)
{
    struct qhca_port port = { .promisc = 1 };
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_ETH_RQN | QHCA_PORT_M_PROMISC,
    };
    struct qhca_eth_qc c;
    struct qhca_eth_seg seg;
    unsigned i;

    gcq_create(&t->rcq, &t->g, 8, NULL, t->g.eq[1].eqn);
    gbuf_make(&t->rring, t->g.m, DEPTH << 4, &gbuf_direct, true, 0,
              &t->g.rng);
    t->dbrec = guest_dbrec(&t->g, false);
    t->rmem = gmem_alloc(t->g.m, SLOT * DEPTH, 12, 0);
    for (i = 0; i < DEPTH; i++) {
        seg = (struct qhca_eth_seg){ .addr = t->rmem + i * SLOT, .len = SLOT };
        gbuf_write(&t->rring, i << 4, &seg, sizeof(seg));
    }
    t->posted = DEPTH;
    guest_dbrec_set(&t->g, t->dbrec, t->posted);
    memset(&c, 0, sizeof(c));
    c.buf = t->rring.d;
    c.dbrec = t->dbrec;
    c.cqn = t->rcq.cqn;
    c.shift = SHIFT;
    c.stride = 4;
    c.flags = QHCA_ETH_Q_F_GRO | QHCA_ETH_Q_F_UNPAD;
    t->rqn = guest_create(&t->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    port.eth_rqn = t->rqn;
    guest_must(&t->g, &m);
}

static void close_rq(struct eth *t)
{
    struct qhca_port port = { .eth_rqn = QHCA_ETH_RQ_NONE };
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_ETH_RQN,
    };

    guest_must(&t->g, &m);
    CHECK(guest_simple(&t->g, QHCA_CMD_DESTROY_ETH_RQ, t->rqn) ==
          QHCA_ST_OK, "DESTROY_ETH_RQ");
    receive(t);
    CHECK(gcq_destroy(&t->rcq) == QHCA_ST_OK, "DESTROY_CQ");
    gbuf_free(&t->rring);
    guest_dbrec_free(&t->g, t->dbrec);
    gmem_release(t->g.m, t->rmem, SLOT * DEPTH);
}

static void loopback(struct eth *t, bool on)
{
    struct qhca_port port = { .loopback = on };
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_LOOPBACK,
    };

    guest_must(&t->g, &m);
}

static void open_all(struct eth *t)
{
    struct qhca_config cfg;

    die_aborts = true;
    memset(t, 0, sizeof(*t));
    fuzz_config(&cfg);
    world_init(&t->w, 1, 1, &cfg);
    t->w.wire.filter = check_frame;
    guest_start(&t->g, &t->w.node[0], 1, &fuzz_guest);
    gcq_create(&t->cq, &t->g, 8, NULL, t->g.eq[1].eqn);
    gbuf_make(&t->ring, t->g.m, DEPTH << STRIDE, &gbuf_direct, true, 0,
              &t->g.rng);
    t->mem = gmem_alloc(t->g.m, SLOT * DEPTH, 12, 0);
    t->g.m->unchecked = true;
    open_sq(t);
    open_rq(t);
}

static void poll(struct eth *t)
{
    struct qhca_cqe c;

    while (gcq_poll(&t->cq, &c)) {
        if (c.qpn == t->sqn) {
            CHECK(c.wqe_index - t->done < t->prod - t->done,
                  "completion of WQE %u, %u to %u are out", c.wqe_index,
                  t->done, t->prod);
            t->done = c.wqe_index + 1;
        }
    }
}

static void close_sq(struct eth *t)
{
    CHECK(guest_simple(&t->g, QHCA_CMD_DESTROY_ETH_SQ, t->sqn) ==
          QHCA_ST_OK, "DESTROY_ETH_SQ");
    poll(t);
}

static void send(struct eth *t, struct fz *f)
{
    uint32_t slot = t->prod & (DEPTH - 1), n = fz_u8(f) % 5 + 1, i, len, part;
    uint64_t at = t->mem + slot * SLOT;
    uint8_t *data = gmem_ptr(t->g.m, at, SLOT);
    static struct big b;
    struct {
        struct qhca_eth_wqe h;
        struct qhca_eth_seg seg[31];
    } w;
    struct rng r;

    if (t->prod - t->done == DEPTH) {
        return;
    }
    rng_init(&r, fz_u16(f));
    big_random(&b, &r, fz_u16(f) % 6000);
    if (rng_pct(&r, 40)) {
        big_tunnel(&b, &r);
    }
    memset(&w, 0, sizeof(w));
    w.h.opcode = QHCA_WQE_ETH_SEND;
    w.h.flags = QHCA_WQE_F_ETH_LSO | QHCA_WQE_F_SIGNALED |
                (b.tagged ? 0 : fz_u8(f) & QHCA_WQE_F_ETH_VLAN);
    w.h.mss = (uint16_t)(b.len / 100 + fz_u8(f) * 8);
    w.h.hdr_len = (uint16_t)big_headers(&b, data, &r);
    w.h.inner_l3 = big_inner_l3(&b);
    memcpy(data + w.h.hdr_len, b.payload, b.len);
    fz_spoil(f, data, w.h.hdr_len);
    len = w.h.hdr_len + b.len;
    for (i = 0; i < n; i++, len -= part, at += part) {
        part = i == n - 1 ? len : fz_u16(f) % (len + 1);
        w.seg[i].addr = at;
        w.seg[i].len = part;
    }
    w.h.num_sge = (uint16_t)n;
    fz_spoil(f, &w, sizeof(w.h) + n * sizeof(w.seg[0]));
    gbuf_write(&t->ring, (uint64_t)slot << STRIDE, &w, sizeof(w));
    t->prod++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    static struct eth t;
    uint8_t *mem, ring[DEPTH << STRIDE], k;
    unsigned i;

    open_all(&t);
    mem = gmem_ptr(t.g.m, t.mem, SLOT * DEPTH);
    for (i = 0; fz_more(&f) && i < 400; i++) {
        k = fz_u8(&f);
        switch (k & 7) {
        case 0:
        case 1:
        case 2:
            send(&t, &f);
            break;
        case 3:
            guest_doorbell(&t.g, 0, QHCA_DB_ETH_SQ, t.sqn |
                           (uint64_t)t.prod << QHCA_DB_INDEX_SHIFT);
            break;
        case 4:                 /* while it is being sent */
            fz_spoil(&f, mem + (k >> 3 & (DEPTH - 1)) * SLOT, 256);
            gbuf_read(&t.ring, 0, ring, sizeof(ring));
            fz_spoil(&f, ring, sizeof(ring));
            gbuf_write(&t.ring, 0, ring, sizeof(ring));
            break;
        case 5:
            t.w.wire.refuse = (k >> 3) * 2000u;
            t.w.reborn = fz_u8(&f) & 3;
            break;
        case 6:
            world_run(&t.w, 1u << (k >> 3));
            poll(&t);
            receive(&t);
            break;
        default:
            if (k & 16 && k & 32) {
                loopback(&t, k & 64);
            } else if (k >> 3 == 9) {
                close_sq(&t);
                open_sq(&t);
            } else {
                node_set_link(&t.w.node[0], k & 8);
            }
        }
    }
    t.w.wire.refuse = 0;
    CHECK(world_settle(&t.w, 100000000000ULL), "the adapter never rests");
    close_sq(&t);
    close_rq(&t);
    CHECK(gcq_destroy(&t.cq) == QHCA_ST_OK, "DESTROY_CQ");
    gbuf_free(&t.ring);
    gmem_release(t.g.m, t.mem, SLOT * DEPTH);
    guest_stop(&t.g);
    CHECK(!t.w.node[0].mem.mapped_pages, "the test leaks");
    world_fini(&t.w);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The world of an adapter that has loaded a state: memory at each address, a wire,
 * and a driver that gives commands.
 */
#ifndef QHCA_TEST_FUZZ_ARENA_H
#define QHCA_TEST_FUZZ_ARENA_H

#include "fuzz.h"
#include "adapter/adapter.h"

#define MEM 65536u
#define ARENA_PAGES 512u
#define ARENA_SLOTS 2048u
#define ARENA_NO_PAGE UINT16_MAX
#define ARENA_IN (14ULL << 60)  /* where commands have their input */

struct arena {
    uint8_t mem[MEM];           /* repeats, where no page is kept */
    /* pages as they were when the state was saved */
    uint8_t page[ARENA_PAGES][GMEM_PAGE];
    uint64_t addr[ARENA_PAGES];
    uint16_t slot[ARENA_SLOTS]; /* hash of addr */
    unsigned pages;
    /*
     * The command that is given, and its input.  They are not in this memory,
     * where whatever the adapter does might overwrite them.
     */
    bool commands;
    struct qhca_aq_cmd cmd;
    uint64_t cmd_at;
    const uint8_t *in;
    uint64_t now;
    unsigned sent;
};

static inline uint32_t arena_slot(uint64_t addr)
{
    return (uint32_t)((addr >> 12) * 0x9e3779b97f4a7c15ull >> 40) %
           ARENA_SLOTS;
}

/* What is at @addr, up to the end of its page. */
static inline uint8_t *arena_at(struct arena *a, uint64_t addr)
{
    uint64_t page = addr & ~(uint64_t)(GMEM_PAGE - 1);
    uint32_t i = arena_slot(page);

    for (; a->slot[i] != ARENA_NO_PAGE; i = (i + 1) % ARENA_SLOTS) {
        if (a->addr[a->slot[i]] == page) {
            return &a->page[a->slot[i]][addr % GMEM_PAGE];
        }
    }
    return &a->mem[addr % MEM];
}

/* Start without pages. */
static inline void arena_open(struct arena *a, uint64_t now)
{
    memset(a->slot, 0xff, sizeof(a->slot));
    a->pages = a->sent = 0;
    a->commands = false;
    a->now = now;
}

/* Keep all that is mapped in @m. */
static inline void arena_keep(struct arena *a, struct gmem *m)
{
    uint64_t addr;
    uint32_t i;

    for (addr = m->base; gmem_next_page(m, &addr); addr += GMEM_PAGE) {
        CHECK(a->pages < ARENA_PAGES, "too many pages");
        for (i = arena_slot(addr); a->slot[i] != ARENA_NO_PAGE; ) {
            i = (i + 1) % ARENA_SLOTS;
        }
        a->slot[i] = (uint16_t)a->pages;
        a->addr[a->pages] = addr;
        memcpy(a->page[a->pages++], gmem_ptr(m, addr, GMEM_PAGE), GMEM_PAGE);
    }
}

static inline bool arena_copy(struct arena *a, uint64_t addr, void *to,
                              const void *from, size_t len)
{
    uint64_t at = addr;
    size_t done, n;
    uint8_t *p;

    for (done = 0; done < len; done += n, at += n) {
        n = GMEM_PAGE - at % GMEM_PAGE;
        n = n < len - done ? n : len - done;
        p = arena_at(a, at);
        if (to) {
            memcpy((uint8_t *)to + done, p, n);
        } else {
            memcpy(p, (const uint8_t *)from + done, n);
        }
    }
    return addr >> 60 != 15;
}

static inline bool a_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct arena *a = opaque;

    if (a->commands && addr == a->cmd_at && len == sizeof(a->cmd)) {
        memcpy(buf, &a->cmd, len);
        return true;
    }
    if (a->commands && addr >= ARENA_IN &&
        addr - ARENA_IN + len <= a->cmd.in_len) {
        memcpy(buf, a->in + (addr - ARENA_IN), len);
        return true;
    }
    return arena_copy(a, addr, buf, NULL, len);
}

static inline bool a_write(void *opaque, uint64_t addr, const void *buf,
                           size_t len)
{
    return arena_copy(opaque, addr, NULL, buf, len);
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

static enum qhca_wire a_send(void *opaque, const void *frame, size_t len)
{
    struct arena *a = opaque;

    (void)frame;
    CHECK(len >= 14 && len <= WORLD_FRAME_MAX, "a frame of %zu bytes", len);
    a->sent++;
    return a->sent % 13 ? QHCA_WIRE_READY : a->sent % 2 ? QHCA_WIRE_BUSY : QHCA_WIRE_FULL;
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

/* All commands given so far are answered. */
static inline void commands_end(struct qhca *e)
{
    unsigned n;

    for (n = 0; e->ad->asq_prod != e->ad->asq_cons && qhca_active(e); n++) {
        CHECK(n < 1000, "a command is not answered");
        qhca_run(e);
    }
}

/*
 * Give a command through the admin queue, as a driver does; was it executed
 * without an error?
 */
static inline bool command(struct qhca *e, struct arena *a, uint8_t op,
                           uint32_t obj, uint64_t mask, const void *in,
                           uint32_t len)
{
    uint64_t errors;

    commands_end(e);
    if (!qhca_active(e)) {
        return false;
    }
    errors = e->stats[QHCA_STAT_AQ_ERRORS];
    a->cmd = (struct qhca_aq_cmd){
        .opcode = op, .obj = obj, .mask = mask, .in_addr = ARENA_IN,
        .in_len = len,
    };
    a->cmd_at = e->ad->asq_base + sizeof(a->cmd) *
                (e->ad->asq_prod & ((1u << e->ad->aq_shift) - 1));
    a->in = in;
    a->commands = true;
    qhca_reg_write(e, QHCA_REG_ASQ_DB, e->ad->asq_prod + 1, 4);
    commands_end(e);
    a->commands = false;
    return qhca_active(e) && errors == e->stats[QHCA_STAT_AQ_ERRORS];
}

#endif

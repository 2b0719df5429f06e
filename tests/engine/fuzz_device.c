/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: registers, doorbells and guest memory, without a sane driver.
 * The memory holds rings and contexts that point at each other at random.  The
 * only checks are that the engine survives, comes to rest, and still works
 * after a reset.
 */
#include "fuzz.h"

#define ARENA (1u << 18)

static void write_reg(struct world *w, struct fz *f, uint64_t base)
{
    static const uint16_t regs[] = {
        QHCA_REG_CTRL, QHCA_REG_DB_SHIFT, QHCA_REG_ASQ_BASE,
        QHCA_REG_ACQ_BASE, QHCA_REG_AQ_SHIFT, QHCA_REG_ASQ_DB,
        QHCA_REG_AQ_CTRL, QHCA_REG_MARKER, QHCA_REG_STATUS, QHCA_REG_CLOCK,
    };
    uint8_t k = fz_u8(f), size = k & 0x80 ? 8 : 4;
    uint64_t off = k & 0x40 ? fz_u16(f) : regs[(k & 0x3f) % 10];
    uint64_t v;

    if (off == QHCA_REG_ASQ_BASE || off == QHCA_REG_ACQ_BASE) {
        v = fz_addr(f, base, ARENA) & ~0xfffULL;
        size = 8;
    } else {
        v = k & 0x80 ? fz_u64(f) : fz_u8(f);
    }
    if (k & 0x20) {
        node_reg_read(&w->node[0], off, size);
    } else {
        node_reg_write(&w->node[0], off, v, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    struct qhca_config cfg;
    struct guest g;
    struct world w;
    uint64_t base;
    uint8_t *mem;
    unsigned i;

    die_aborts = true;
    fuzz_config(&cfg);
    world_init(&w, 1, 1, &cfg);
    w.wire.filter = fuzz_swallow;
    w.node[0].mem.unchecked = true;
    base = gmem_alloc(&w.node[0].mem, ARENA, 12, 0);
    mem = gmem_ptr(&w.node[0].mem, base, ARENA);
    for (i = 0; fz_more(&f) && i < 3000; i++) {
        struct qhca_aq_cmd cmd;
        uint32_t at;

        switch (fz_u8(&f) % 8) {
        case 0:
            write_reg(&w, &f, base);
            break;
        case 1:                 /* bring it up */
            node_reg_write(&w.node[0], QHCA_REG_ASQ_BASE, base, 8);
            node_reg_write(&w.node[0], QHCA_REG_ACQ_BASE, base + 0x4000, 8);
            node_reg_write(&w.node[0], QHCA_REG_AQ_SHIFT, 1 + fz_u8(&f) % 9,
                           4);
            node_reg_write(&w.node[0], QHCA_REG_CTRL, QHCA_CTRL_ENABLE, 4);
            break;
        case 2:                 /* a doorbell */
            node_db_write(&w.node[0], (uint64_t)(fz_u8(&f) % 5) << 12 |
                          (fz_u8(&f) & 0x2f), fz_u8(&f) % 40 |
                          (uint64_t)fz_u8(&f) << 32 |
                          (uint64_t)(fz_u8(&f) & 1) << 24, 8);
            break;
        case 3:                 /* a wild doorbell */
            node_db_write(&w.node[0], fz_u32(&f) % (QHCA_BAR_DB_SIZE + 8),
                          fz_u64(&f), 1u << fz_u8(&f) % 5);
            break;
        case 4:                 /* memory */
            at = fz_u32(&f) % ARENA;
            fz_bytes(&f, mem + at, fz_u8(&f) < ARENA - at ? 64 < ARENA - at ?
                     64 : ARENA - at : 0);
            break;
        case 5:                 /* a nearly valid command */
            memset(&cmd, 0, sizeof(cmd));
            cmd.opcode = fz_u8(&f) % 0x48;
            cmd.obj = fz_u8(&f);
            cmd.in_addr = fz_addr(&f, base, ARENA);
            cmd.out_addr = fz_addr(&f, base, ARENA);
            cmd.in_len = fz_u16(&f) & 0x3ff;
            cmd.out_len = fz_u16(&f) & 0x3ff;
            cmd.mask = fz_u16(&f);
            memcpy(mem + (fz_u8(&f) & 15) * 64, &cmd, 64);
            node_reg_write(&w.node[0], QHCA_REG_ASQ_DB, fz_u8(&f), 4);
            break;
        case 6:
            world_run(&w, (uint64_t)fz_u16(&f) << (fz_u8(&f) & 15));
            break;
        default:
            at = fz_u8(&f);
            world_inject(&w, 0, mem + fz_u16(&f), at + 14);
            break;
        }
    }
    CHECK(world_settle(&w, 10000000000ULL), "the adapter never rests");
    /* whatever happened, a reset must restore it */
    node_reg_write(&w.node[0], QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    w.node[0].mem.unchecked = false;
    guest_start(&g, &w.node[0], 1, &fuzz_guest);
    guest_stop(&g);
    gmem_release(&w.node[0].mem, base, ARENA);
    world_fini(&w);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers (BAR 0). */
#include "adapter/adapter.h"

#define AQ_SHIFT_MIN        1
#define AQ_SHIFT_MAX        8
#define DB_SHIFT_MIN        12
#define DB_SHIFT_MAX        16

uint32_t qhca_db_pages(const struct qhca *e)
{
    if (e->ad->db_shift < DB_SHIFT_MIN || e->ad->db_shift > DB_SHIFT_MAX) {
        return 0;
    }
    return QHCA_BAR_DB_SIZE >> e->ad->db_shift;
}

static uint32_t reg_status(const struct qhca *e)
{
    uint32_t s = (uint32_t)e->fatal << QHCA_STATUS_FATAL_SHIFT;

    s |= qhca_active(e) ? QHCA_STATUS_READY : 0;
    s |= e->fatal ? QHCA_STATUS_FATAL : 0;
    s |= e->link ? QHCA_STATUS_LINK : 0;
    return s;
}

static bool reg_is_64(uint64_t off)
{
    switch (off) {
    case QHCA_REG_FEATURES:
    case QHCA_REG_CLOCK:
    case QHCA_REG_MARKER:
    case QHCA_REG_ASQ_BASE:
    case QHCA_REG_ACQ_BASE:
        return true;
    default:
        return false;
    }
}

static uint64_t reg_read64(struct qhca *e, uint64_t off)
{
    switch (off) {
    case QHCA_REG_FEATURES:
        return qhca_features(e);
    case QHCA_REG_CLOCK:
        return qhca_now(e);
    case QHCA_REG_ASQ_BASE:
        return e->ad->asq_base;
    case QHCA_REG_ACQ_BASE:
        return e->ad->acq_base;
    default:
        return 0;               /* MARKER */
    }
}

static bool reg_read32(struct qhca *e, uint64_t off, uint32_t *val)
{
    switch (off) {
    case QHCA_REG_ID:
        *val = QHCA_ID_MAGIC;
        return true;
    case QHCA_REG_VERSION:
        *val = QHCA_VERSION_MAJOR << 16 | QHCA_VERSION_MINOR;
        return true;
    case QHCA_REG_CTRL:
        *val = e->ad->ctrl;
        return true;
    case QHCA_REG_STATUS:
        *val = reg_status(e);
        return true;
    case QHCA_REG_DB_SHIFT:
        *val = e->ad->db_shift;
        return true;
    case QHCA_REG_DB_PAGES:
        *val = qhca_db_pages(e);
        return true;
    case QHCA_REG_AQ_SHIFT:
        *val = e->ad->aq_shift;
        return true;
    case QHCA_REG_ASQ_DB:
        *val = 0;
        return true;
    case QHCA_REG_AQ_CTRL:
        *val = e->ad->aq_ctrl;
        return true;
    case QHCA_REG_VECTORS:
        *val = e->cfg.num_vectors;
        return true;
    default:
        return false;
    }
}

static void reg_bad_access(struct qhca *e, uint64_t off)
{
    qhca_guest_error(e, QHCA_STAT_DB_BAD_ACCESS, (uint32_t)off,
                     "register access of a wrong size, place or time");
}

static uint64_t reg_read(struct qhca *e, uint64_t off, unsigned size)
{
    uint64_t val;
    uint32_t val32;

    if (size == 8 && reg_is_64(off)) {
        return reg_read64(e, off);
    }
    if (size == 4 && reg_is_64(off)) {
        val = reg_read64(e, off);
        e->ad->latch_read = (uint32_t)(val >> 32);
        e->ad->latch_read_off = off;
        return (uint32_t)val;
    }
    if (size == 4 && off >= 4 && reg_is_64(off - 4)) {
        if (e->ad->latch_read_off == off - 4) {
            e->ad->latch_read_off = 0;
            return e->ad->latch_read;
        }
        return reg_read64(e, off - 4) >> 32;
    }
    if (size == 4 && reg_read32(e, off, &val32)) {
        return val32;
    }
    reg_bad_access(e, off);
    return 0;
}

uint64_t qhca_reg_read(struct qhca *e, uint64_t off, unsigned size)
{
    uint64_t val;

    e->in_read = true;
    val = reg_read(e, off, size);
    /* A debugger that stopped the adapter sees what is there. */
    if (qhca_faulty(e, QHCA_FLT_AT_REGISTER) && !e->halted) {
        val = e->hooks->reg_value(e, off, size, val);
    }
    e->in_read = false;
    return val;
}

static void trace_write(struct qhca *e, uint64_t off, uint64_t val)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_REG_WRITE, .addr = off, .a = val,
    };

    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
}

static void reg_write64(struct qhca *e, uint64_t off, uint64_t val)
{
    struct qhca_trace marker = { .kind = QHCA_TR_MARKER, .a = val };

    trace_write(e, off, val);
    switch (off) {
    case QHCA_REG_MARKER:
        if (qhca_tracing(e)) {
            qhca_trace_emit(e, &marker);
        }
        return;
    case QHCA_REG_ASQ_BASE:
    case QHCA_REG_ACQ_BASE:
        if (e->ad->ctrl & QHCA_CTRL_ENABLE) {
            break;
        }
        if (off == QHCA_REG_ASQ_BASE) {
            e->ad->asq_base = val;
        } else {
            e->ad->acq_base = val;
        }
        return;
    }
    reg_bad_access(e, off);
}

bool qhca_enable_ok(const struct qhca *e)
{
    uint64_t low = 4095, ring = 64ULL << AQ_SHIFT_MAX;

    return e->ad->aq_shift >= AQ_SHIFT_MIN && e->ad->aq_shift <= AQ_SHIFT_MAX &&
           qhca_db_pages(e) && !((e->ad->asq_base | e->ad->acq_base) & low) &&
           e->ad->asq_base + ring >= ring && e->ad->acq_base + ring >= ring;
}

static void reg_enable(struct qhca *e)
{
    e->ad->ctrl |= QHCA_CTRL_ENABLE;
    if (!qhca_enable_ok(e)) {
        qhca_fatal(e, QHCA_FATAL_AQ_CONFIG);
        return;
    }
    qhca_idr_reset(&e->mem->uars, qhca_db_pages(e));
    /* UAR 0 belongs to the kernel and always exists. */
    qhca_idr_add_at(&e->mem->uars, &e->mem->uar_refs[0], 0);
    e->ready_flag = true;
}

static void write_ctrl(struct qhca *e, uint32_t val)
{
    bool enabled = e->ad->ctrl & QHCA_CTRL_ENABLE;

    if ((val & QHCA_CTRL_RESET) || (enabled && !(val & QHCA_CTRL_ENABLE))) {
        qhca_reset(e);
    } else if (!enabled && (val & QHCA_CTRL_ENABLE)) {
        reg_enable(e);
    }
}

static void write_asq_db(struct qhca *e, uint32_t val)
{
    if (!qhca_active(e)) {
        reg_bad_access(e, QHCA_REG_ASQ_DB);
        return;
    }
    if (val - e->ad->asq_prod > (1u << e->ad->aq_shift) -
                                (e->ad->asq_prod - e->ad->asq_cons)) {
        qhca_fatal(e, QHCA_FATAL_AQ_INDEX);
        return;
    }
    e->ad->asq_prod = val;
    qhca_admin_run(e);
}

static void reg_write32(struct qhca *e, uint64_t off, uint32_t val)
{
    trace_write(e, off, val);
    switch (off) {
    case QHCA_REG_CTRL:
        write_ctrl(e, val);
        return;
    case QHCA_REG_DB_SHIFT:
    case QHCA_REG_AQ_SHIFT:
        if (e->ad->ctrl & QHCA_CTRL_ENABLE) {
            break;
        }
        if (off == QHCA_REG_DB_SHIFT) {
            e->ad->db_shift = val;
        } else {
            e->ad->aq_shift = val;
        }
        return;
    case QHCA_REG_ASQ_DB:
        write_asq_db(e, val);
        return;
    case QHCA_REG_AQ_CTRL:
        e->ad->aq_ctrl = val & QHCA_AQ_CTRL_IRQ;
        return;
    }
    reg_bad_access(e, off);
}

void qhca_reg_write(struct qhca *e, uint64_t off, uint64_t val, unsigned size)
{
    qhca_call_begins(e);
    if (size == 8 && reg_is_64(off)) {
        reg_write64(e, off, val);
    } else if (size == 4 && reg_is_64(off)) {
        e->ad->latch_write = (uint32_t)val;
        e->ad->latch_write_off = off;
    } else if (size == 4 && off >= 4 && reg_is_64(off - 4)) {
        /* Without a preceding write of the low half, that half is 0. */
        val = val << 32;
        val |= e->ad->latch_write_off == off - 4 ? e->ad->latch_write : 0;
        e->ad->latch_write_off = 0;
        reg_write64(e, off - 4, val);
    } else if (size == 4 && !(off & 3)) {
        reg_write32(e, off, (uint32_t)val);
    } else {
        reg_bad_access(e, off);
    }
    qhca_finish(e);
}

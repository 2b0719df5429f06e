/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maximum cost of one call of the engine: expensive admin commands are done
 * in parts.  The adapter runs alone here, on memory that counts accesses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "die.h"
#include "engine.h"
#include "adapter/adapter.h"
#include "adapter/adapter.h"

#define RAM (16u << 20)
#define ASQ 0x10000u
#define ACQ 0x20000u
#define DBREC 0x30000u
#define LIST 0x40000u           /* 4096 segments take 64 KiB */
#define IN 0x80000u             /* inputs, 4 KiB each */
#define OLD (4u << 20)
#define NEW (8u << 20)
#define FAR (1ull << 36)        /* memory that is never read */
#define SHIFT 8                 /* of the admin queue */

/* The maximum for one call of the engine. */
#define CALLS_MAX 2048
#define BYTES_MAX (2u << 20)

static struct {
    uint8_t ram[RAM];
    uint64_t calls, bytes;      /* in this call of the engine */
    uint64_t most_calls, most_bytes;    /* in the most expensive call */
    unsigned answers;           /* completions in this call */
    bool kicked;
    struct qhca *e;
    uint32_t prod, done, cqn;
} t;

static bool count(uint64_t addr, size_t len)
{
    t.calls++;
    t.bytes += len;
    t.answers += len == 8 && addr >= ACQ && addr < ACQ + (16 << SHIFT) &&
                 (addr & 8);
    return addr < RAM;
}

static bool ram_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    (void)opaque;
    if (count(addr, len)) {
        memcpy(buf, t.ram + addr, len);
    } else {
        memset(buf, 0, len);
    }
    return true;
}

static bool ram_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    (void)opaque;
    if (count(addr, len)) {
        memcpy(t.ram + addr, buf, len);
    }
    return true;
}

static bool ram_store64(void *opaque, uint64_t addr, uint64_t val)
{
    return ram_write(opaque, addr, &val, sizeof(val));
}

static bool ram_cas64(void *opaque, uint64_t addr, uint64_t cmp,
                      uint64_t swap, uint64_t *old)
{
    (void)opaque;
    (void)addr;
    (void)cmp;
    (void)swap;
    *old = 0;
    return true;
}

static void nothing(void *opaque)
{
    (void)opaque;
}

static void no_msix(void *opaque, unsigned vector)
{
    (void)opaque;
    (void)vector;
}

static enum qhca_wire no_wire(void *opaque, const void *frame, size_t len)
{
    (void)opaque;
    (void)frame;
    (void)len;
    return QHCA_WIRE_READY;
}

static uint64_t no_clock(void *opaque)
{
    (void)opaque;
    return 1;
}

static void no_timer(void *opaque, uint64_t deadline)
{
    (void)opaque;
    (void)deadline;
}

static void kicked(void *opaque)
{
    (void)opaque;
    t.kicked = true;
}

static const struct qhca_ops ops = {
    .dma_read = ram_read, .dma_write = ram_write, .dma_store64 = ram_store64,
    .dma_fence = nothing, .dma_cas64 = ram_cas64, .dm_read = ram_read,
    .dm_write = ram_write, .dm_cas64 = ram_cas64, .msix = no_msix,
    .send = no_wire, .clock = no_clock, .set_timer = no_timer, .kick = kicked,
};

/* ---- calls of the engine, each measured ---- */

static void called(void)
{
    t.most_calls = t.calls > t.most_calls ? t.calls : t.most_calls;
    t.most_bytes = t.bytes > t.most_bytes ? t.bytes : t.most_bytes;
    t.calls = t.bytes = 0;
}

static void ring(void)
{
    t.answers = 0;
    qhca_reg_write(t.e, QHCA_REG_ASQ_DB, t.prod, 4);
    called();
}

/* Do what the environment does after a kick(); false if there was none. */
static bool run(void)
{
    if (!t.kicked) {
        return false;
    }
    t.kicked = false;
    t.answers = 0;
    qhca_run(t.e);
    called();
    return true;
}

static void run_all(void)
{
    unsigned n = 0;

    while (run()) {
        assert_true(++n < 1000000);
    }
}

/* Put a command into the ring without a doorbell. */
static void command(uint8_t op, uint32_t obj, uint64_t mask, const void *in,
                    uint32_t len)
{
    uint32_t slot = t.prod & ((1u << SHIFT) - 1), at = IN + 4096 * slot;
    struct qhca_aq_cmd cmd = {
        .opcode = op, .obj = obj, .mask = mask, .in_addr = in ? at : 0,
        .in_len = len, .cmd_id = (uint16_t)t.prod,
    };

    if (in) {
        memcpy(t.ram + at, in, len);
    }
    memcpy(t.ram + ASQ + 64 * slot, &cmd, sizeof(cmd));
    t.prod++;
}

/* The next completion, if there is one; commands complete in order. */
static bool answer(struct qhca_aq_cqe *cqe)
{
    memcpy(cqe, t.ram + ACQ + 16 * (t.done & ((1u << SHIFT) - 1)), 16);
    if ((cqe->phase & 1) == (t.done >> SHIFT & 1)) {
        return false;
    }
    assert_int_equal(cqe->cmd_id, t.done & 0xffff);
    t.done++;
    return true;
}

static struct qhca_aq_cqe must_answer(uint8_t status)
{
    struct qhca_aq_cqe cqe;

    assert_true(answer(&cqe));
    assert_int_equal(cqe.status, status);
    return cqe;
}

static void no_answer(void)
{
    struct qhca_aq_cqe cqe;

    assert_false(answer(&cqe));
}

static uint32_t create(uint8_t op, const void *in, uint32_t len)
{
    command(op, 0, 0, in, len);
    ring();
    run_all();
    return must_answer(QHCA_ST_OK).obj;
}

static void enable(void)
{
    qhca_reg_write(t.e, QHCA_REG_ASQ_BASE, ASQ, 8);
    qhca_reg_write(t.e, QHCA_REG_ACQ_BASE, ACQ, 8);
    qhca_reg_write(t.e, QHCA_REG_AQ_SHIFT, SHIFT, 4);
    qhca_reg_write(t.e, QHCA_REG_CTRL, QHCA_CTRL_ENABLE, 4);
    assert_true(qhca_active(t.e));
}

static struct qhca *adapter(void)
{
    struct qhca_config cfg = { 0 };
    const char *err;
    struct qhca *e;

    qhca_config_default(&cfg);
    memcpy(cfg.mac, "\x52\x54\0\0\0\1", 6);
    e = qhca_new(&cfg, &ops, NULL, &err);
    assert_non_null(e);
    return e;
}

static struct qhca_cqc cqc(uint64_t addr, uint8_t shift)
{
    return (struct qhca_cqc){
        .buf = { .addr = addr, .len = 64ull << shift }, .shift = shift,
        .dbrec = DBREC,
    };
}

static struct qhca_cq *cq_of(struct qhca *e)
{
    return qhca_idr_get(&e->q->cqs, t.cqn);
}

/* An adapter with a CQ of 1 << @shift at @addr, with its counters at @at. */
static void begin(uint64_t addr, uint8_t shift, uint32_t at)
{
    struct qhca_eqc eqc = { .buf = { .addr = FAR, .len = 64 * 16 },
                            .shift = 4 };
    struct qhca_cqc c = cqc(addr, shift);

    memset(&t, 0, sizeof(t));
    t.e = adapter();
    enable();
    eqc.buf.len = sizeof(struct qhca_eqe) << 4;
    c.eqn = create(QHCA_CMD_CREATE_EQ, &eqc, sizeof(eqc));
    t.cqn = create(QHCA_CMD_CREATE_CQ, &c, sizeof(c));
    cq_of(t.e)->prod = cq_of(t.e)->cons = at;
    memcpy(t.ram + DBREC, &at, 4);
    t.most_calls = t.most_bytes = 0;
}

static void end(void)
{
    qhca_free(t.e);
}

/* Push completions whose wr_id is their index. */
static void push(unsigned n)
{
    while (n--) {
        struct qhca_cqe cqe = { .wr_id = cq_of(t.e)->prod };

        qhca_cq_push(t.e, cq_of(t.e), &cqe, false);
    }
    t.calls = t.bytes = 0;
}

static void resize(uint64_t addr, uint8_t shift)
{
    struct qhca_cqc c = cqc(addr, shift);

    command(QHCA_CMD_MODIFY_CQ, t.cqn, QHCA_CQ_M_RESIZE, &c, sizeof(c));
}

/* Check that the ring of 1 << @shift at @addr has CQEs @cons to @prod. */
static void check_ring(uint64_t addr, uint8_t shift, uint32_t cons,
                       uint32_t prod)
{
    struct qhca_cqe cqe;
    uint32_t i;

    for (i = cons; i != prod; i++) {
        memcpy(&cqe, t.ram + addr + 64 * (i & ((1u << shift) - 1)), 64);
        assert_int_equal(cqe.wr_id, i);
        assert_int_equal(cqe.phase & 1, !(i >> shift & 1));
    }
}

static void check_cost(void)
{
    assert_in_range(t.most_calls, 1, CALLS_MAX);
    assert_in_range(t.most_bytes, 1, BYTES_MAX);
}

/* ---- tests ---- */

/* The largest possible CQ, full, again and again, by one doorbell. */
static void costliest_batch(void **state)
{
    unsigned i, n = 6;

    (void)state;
    begin(FAR, QHCA_MAX_CQ_SHIFT, 7);
    cq_of(t.e)->prod += 1u << QHCA_MAX_CQ_SHIFT;
    for (i = 0; i < n; i++) {
        resize(FAR * (i + 2), QHCA_MAX_CQ_SHIFT);
    }
    ring();
    check_cost();
    no_answer();
    run_all();
    check_cost();
    for (i = 0; i < n; i++) {
        must_answer(QHCA_ST_OK);
    }
    no_answer();
    assert_int_equal(cq_of(t.e)->prod, 7 + (1u << QHCA_MAX_CQ_SHIFT));
    end();
}

/* A list is searched from its start: the most expensive table. */
static void costliest_table(void **state)
{
    struct qhca_buf_seg seg = { .len = 65536 | QHCA_BUF_SEG_VALID };
    struct qhca_cqc c = cqc(LIST, QHCA_MAX_CQ_SHIFT);
    uint32_t i;

    (void)state;
    begin(FAR, QHCA_MAX_CQ_SHIFT, (1u << QHCA_MAX_CQ_SHIFT) - 1000);
    for (i = 0; i < QHCA_BUF_LIST_MAX; i++) {
        seg.addr = FAR + 65536 * i;
        memcpy(t.ram + LIST + sizeof(seg) * i, &seg, sizeof(seg));
    }
    c.buf.form = QHCA_BUF_LIST;
    c.buf.entries = QHCA_BUF_LIST_MAX;
    cq_of(t.e)->prod += 1u << 18;
    for (i = 0; i < 4; i++) {
        command(QHCA_CMD_MODIFY_CQ, t.cqn, QHCA_CQ_M_RESIZE, &c, sizeof(c));
    }
    ring();
    run_all();
    check_cost();
    for (i = 0; i < 4; i++) {
        must_answer(QHCA_ST_OK);
    }
    end();
}

/* Commands that work on the device's own memory count, too. */
static void costly_filter(void **state)
{
    struct qhca_mac mac[QHCA_MC_LIST_MAX] = { 0 };
    unsigned i, n = 100;

    (void)state;
    begin(FAR, 4, 0);
    for (i = 0; i < QHCA_MC_LIST_MAX; i++) {
        mac[i].mac[0] = 1;
        mac[i].mac[5] = (uint8_t)i;
    }
    for (i = 0; i < n; i++) {
        command(QHCA_CMD_SET_MC_LIST, 0, 0, mac, sizeof(mac));
    }
    ring();
    assert_in_range(t.answers, 1, 8);
    while (run()) {
        assert_in_range(t.answers, 1, 8);
    }
    for (i = 0; i < n; i++) {
        must_answer(QHCA_ST_OK);
    }
    end();
}

/* Cheap commands complete within one doorbell: software waits for them. */
static void cheap_batch(void **state)
{
    unsigned i;

    (void)state;
    begin(FAR, 4, 0);
    for (i = 0; i < 32; i++) {
        command(QHCA_CMD_NOP, 0, 0, NULL, 0);
    }
    ring();
    assert_int_equal(t.answers, 32);
    end();
}

#define AT 0xfffff123u          /* the counters wrap during the copy */

/* CQEs arrive while others are copied, and the state is saved meanwhile. */
static void entries_on_the_way(void **state)
{
    struct qhca *other;
    unsigned n = 0, late = 0;
    char why[160];
    uint32_t prod;
    size_t len;
    void *s;

    (void)state;
    begin(OLD, 15, AT);
    push(30000);
    resize(NEW, 16);
    command(QHCA_CMD_NOP, 0, 0, NULL, 0);
    ring();
    no_answer();
    assert_int_equal(t.e->ad->asq_cons, t.prod - 2);
    while (run()) {
        n++;
        if (t.e->ad->asq_cons == t.prod - 2) {
            push(30);
            late += 30;
            assert_true(qhca_save(t.e, &s, &len));
            other = adapter();
            if (!qhca_load(other, s, len, why, sizeof(why))) {
                fail_msg("%s", why);
            }
            free(s);
            qhca_free(t.e);
            t.e = other;
        }
    }
    check_cost();
    assert_true(n > 2 && late);
    must_answer(QHCA_ST_OK);
    must_answer(QHCA_ST_OK);
    no_answer();
    prod = AT + 30000 + late;
    assert_int_equal(cq_of(t.e)->prod, prod);
    assert_int_equal(cq_of(t.e)->shift, 16);
    check_ring(NEW, 16, AT, prod);
    push(100);
    check_ring(NEW, 16, prod, prod + 100);
    end();
}

/* The CQ overflows before the copy is done: the command fails. */
static void overflow_meanwhile(void **state)
{
    (void)state;
    begin(OLD, 13, AT);
    push(8000);
    resize(NEW, 14);
    ring();
    no_answer();
    push(193);
    assert_int_equal(cq_of(t.e)->state, QHCA_CQ_ERR);
    run_all();
    must_answer(QHCA_ST_BAD_STATE);
    assert_int_equal(cq_of(t.e)->shift, 13);
    assert_int_equal(cq_of(t.e)->buf.addr, OLD);
    end();
}

/* More CQEs than the new ring can hold arrive: it is not resized. */
static void too_small_meanwhile(void **state)
{
    struct qhca_aq_cqe cqe;

    (void)state;
    begin(OLD, 14, AT);
    push(8000);
    resize(NEW, 13);
    ring();
    no_answer();
    push(193);
    run_all();
    cqe = must_answer(QHCA_ST_BAD_PARAM);
    assert_int_equal(cqe.result, offsetof(struct qhca_cqc, shift));
    assert_int_equal(cq_of(t.e)->shift, 14);
    push(10);
    check_ring(OLD, 14, AT, AT + 8203);
    end();
}

/* Software keeps consuming, against the rules, and the ring laps the copy. */
static void consumed_meanwhile(void **state)
{
    uint32_t cons = AT + 8000;

    (void)state;
    begin(OLD, 13, AT);
    push(8000);
    resize(NEW, 14);
    ring();
    no_answer();
    memcpy(t.ram + DBREC, &cons, 4);
    push(1000);
    assert_int_equal(cq_of(t.e)->state, QHCA_CQ_OK);
    run_all();
    must_answer(QHCA_ST_BAD_STATE);
    assert_int_equal(cq_of(t.e)->shift, 13);
    check_ring(OLD, 13, cons, cons + 1000);
    end();
}

/* Destroying the CQ waits for the resize. */
static void destroyed_behind(void **state)
{
    (void)state;
    begin(OLD, 13, AT);
    push(8000);
    resize(NEW, 14);
    command(QHCA_CMD_DESTROY_CQ, t.cqn, 0, NULL, 0);
    resize(NEW, 14);
    ring();
    assert_non_null(cq_of(t.e));
    run_all();
    must_answer(QHCA_ST_OK);
    must_answer(QHCA_ST_OK);
    must_answer(QHCA_ST_BAD_OBJ);
    assert_null(cq_of(t.e));
    end();
}

/* A reset aborts it: no memory access after that, and a fresh start. */
static void reset_meanwhile(void **state)
{
    struct qhca_eqc eqc = { .shift = 4, .buf = {
        .addr = FAR, .len = sizeof(struct qhca_eqe) << 4 } };

    (void)state;
    begin(OLD, 13, AT);
    push(8000);
    resize(NEW, 14);
    ring();
    no_answer();
    qhca_reg_write(t.e, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    called();
    t.most_calls = 0;
    run_all();
    assert_int_equal(t.most_calls, 0);
    t.prod = t.done = 0;
    memset(t.ram + ACQ, 0, 16 << SHIFT);
    enable();
    create(QHCA_CMD_CREATE_EQ, &eqc, sizeof(eqc));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costliest_batch),
        cmocka_unit_test(costliest_table),
        cmocka_unit_test(costly_filter),
        cmocka_unit_test(cheap_batch),
        cmocka_unit_test(entries_on_the_way),
        cmocka_unit_test(overflow_meanwhile),
        cmocka_unit_test(too_small_meanwhile),
        cmocka_unit_test(consumed_meanwhile),
        cmocka_unit_test(destroyed_behind),
        cmocka_unit_test(reset_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

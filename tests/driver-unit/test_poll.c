/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Polling of kernel CQs, with the test as the device. A WQE is free for who
 * posts only after its CQE's place is free for the device; else a CQ with an
 * entry for each WQE overflows.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "poll/qhca_ib.h"

#define SHIFT   4
#define DEPTH   (1 << SHIFT)
#define STRIDE  6

static struct {
    struct qhca_ib_dev dev;
    struct qhca_ib_qp *table[QPS_MAX];
    bool dead;
    struct qhca_ib_qp qp[QPS_MAX];
    struct qhca_ib_srq srq;
    u32 srq_freed;
    struct qhca_ib_cq cq;
    struct qhca_dbrec dbrec;
    struct qhca_cqe cqe[DEPTH];
    char wqe[QPS_MAX][DEPTH << STRIDE];
    u32 prod;
} t;

static int setup(void **state)
{
    int i;

    memset(&t, 0, sizeof(t));
    t.dev.qps = t.table;
    t.dev.qdev = &t.dead;
    t.cq.ibcq.device = &t.dev.ibdev;
    t.cq.buf.kbuf.mem = (char *)t.cqe;
    t.cq.dbrec.rec = &t.dbrec;
    t.cq.shift = SHIFT;
    t.cq.send_qps = (struct list_head){ &t.cq.send_qps, &t.cq.send_qps };
    t.cq.recv_qps = (struct list_head){ &t.cq.recv_qps, &t.cq.recv_qps };
    for (i = 0; i < QPS_MAX; i++) {
        t.table[i] = &t.qp[i];
        t.qp[i].qpn = i;
        t.qp[i].type = QHCA_QPT_RC;
        t.qp[i].ibqp.device = &t.dev.ibdev;
        t.qp[i].srq = &t.srq;
        t.qp[i].sq.shift = SHIFT;
        t.qp[i].sq.stride = STRIDE;
        t.qp[i].sq.buf.kbuf.mem = t.wqe[i];
    }
    return 0;
}

static u32 published(void)
{
    return le32toh(t.dbrec.index);
}

/* WQEs that are free again: the tails begin at 0. */
static u32 released(void)
{
    return t.qp[0].sq.tail + t.qp[0].rq.tail + t.qp[1].sq.tail +
           t.qp[1].rq.tail + t.srq_freed;
}

void unlocked(spinlock_t *lock)
{
    assert_true(released() <= published());
}

void qhca_ib_srq_free_wqe_locked(struct qhca_ib_srq *srq, u32 index)
{
    assert_true(srq->lock.held);
    t.srq_freed++;
}

void qhca_ib_srq_free_wqe(struct qhca_ib_srq *srq, u32 index)
{
    spin_lock(&srq->lock);
    qhca_ib_srq_free_wqe_locked(srq, index);
    spin_unlock(&srq->lock);
}

/* The device completes WQE @index of QP @qpn. */
static void complete(u32 qpn, u32 index, u8 opcode, u16 flags)
{
    struct qhca_cqe *cqe = &t.cqe[t.prod & (DEPTH - 1)];

    memset(cqe, 0, sizeof(*cqe));
    cqe->qpn = htole32(qpn);
    cqe->wqe_index = htole32(index);
    cqe->wr_id = htole64(1000 + index);
    cqe->opcode = opcode;
    cqe->flags = htole16(flags);
    cqe->phase = !((t.prod++ >> SHIFT) & 1);
}

/*
 * The place of the completion that is due lies in a page that cannot be
 * written yet: there the test looks what has been released.
 */
static struct {
    char *page;
    size_t size;
    int looks;
    u32 released, published;
} mid;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    if (info->si_addr < (void *)mid.page ||
        info->si_addr >= (void *)(mid.page + mid.size)) {
        abort();
    }
    mid.looks++;
    mid.released = released();
    mid.published = published();
    mprotect(mid.page, mid.size, PROT_READ | PROT_WRITE);
}

/* Polls all of @num, and looks when number @stop is due. */
static void poll_and_look(int num, int stop)
{
    struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    size_t page = sysconf(_SC_PAGESIZE);
    struct sigaction old;
    struct ib_wc *wc;
    char *mem;

    mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED);
    mid.page = mem + page;
    mid.size = page;
    mid.looks = 0;
    wc = (struct ib_wc *)mid.page - stop;
    assert_int_equal(mprotect(mid.page, page, PROT_NONE), 0);
    sigaction(SIGSEGV, &act, &old);
    assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, num, wc), num);
    sigaction(SIGSEGV, &old, NULL);
    munmap(mem, 2 * page);
    assert_int_equal(mid.looks, 1);
    assert_true(mid.released <= mid.published);
    assert_int_equal(released(), t.prod);
    assert_int_equal(published(), t.prod);
}

static void test_sends(void **state)
{
    u32 i;

    for (i = 0; i < DEPTH; i++) {
        complete(0, i, QHCA_CQE_OP_SEND, 0);
    }
    poll_and_look(DEPTH, DEPTH - 1);
}

/* Sends and receives of two QPs and an SRQ, in all orders. */
static void test_mixed(void **state)
{
    u32 next[5] = { 0 };
    u32 round, i, kind;
    unsigned rng = 1;

    for (round = 0; round < 2000; round++) {
        for (i = 0; i < DEPTH; i++) {
            rng = rng * 1103515245 + 12345;
            kind = (rng >> 16) % 5;
            if (kind == 4) {
                complete(rng >> 30 & 1, next[kind]++ % DEPTH,
                         QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ);
            } else {
                complete(kind >> 1, next[kind]++,
                         kind & 1 ? QHCA_CQE_OP_RECV : QHCA_CQE_OP_SEND, 0);
            }
        }
        poll_and_look(DEPTH, 1 + round % (DEPTH - 1));
    }
}

/* A QP goes: its receives come back with their SRQ's lock held throughout. */
static void test_clean(void **state)
{
    u32 i;

    for (i = 0; i < DEPTH; i++) {
        complete(i & 1, i, QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ);
    }
    qhca_ib_cq_clean(&t.cq, 1, &t.srq);
    assert_int_equal(t.srq_freed, DEPTH / 2);
    assert_int_equal(published(), DEPTH / 2);
    assert_false(t.srq.lock.held);
    assert_false(t.cq.lock.held);
}

/* The device could not read the WQE: it does not know whose it was. */
static void test_wqe_lost(void **state)
{
    static const struct {
        u8 opcode, status, syndrome;
        bool found;
    } cases[] = {
        { QHCA_CQE_OP_SEND, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_DMA, true },
        { QHCA_CQE_OP_SEND, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_TABLE_DMA, true },
        { QHCA_CQE_OP_SEND, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_TABLE_INVALID, true },
        { QHCA_CQE_OP_SEND, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH, false },
        { QHCA_CQE_OP_SEND, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_TABLE_DMA, false },
        { QHCA_CQE_OP_RECV, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_WQE_DMA, false },
    };
    struct qhca_wqe_ctrl *ctrl;
    struct qhca_cqe *cqe;
    struct ib_wc wc;
    u32 next[2] = { 0 };        /* of SQ and RQ; the SQ wraps */
    u32 i, lap;

    for (lap = 0; lap < 4; lap++) {
        for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            u32 index = next[cases[i].opcode == QHCA_CQE_OP_RECV]++;

            ctrl = (void *)(t.wqe[1] + ((index & (DEPTH - 1)) << STRIDE));
            ctrl->wr_id = htole64(0xabc0000 + index);
            cqe = &t.cqe[t.prod & (DEPTH - 1)];
            complete(1, index, cases[i].opcode, 0);
            cqe->status = cases[i].status;
            cqe->syndrome = cases[i].syndrome;
            if (cases[i].found) {
                cqe->wr_id = 0;
            }
            assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, 1, &wc), 1);
            assert_int_equal(wc.status, cases[i].status);
            assert_int_equal(wc.wr_id, cases[i].found ? 0xabc0000 + index
                                                      : 1000 + index);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sends),
        TEST(test_mixed),
        TEST(test_clean),
        TEST(test_wqe_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Polling of kernel CQs, with the test as the device. A WQE may be reused only
 * after the slot of its CQE is free for the device; otherwise a CQ with an
 * entry for each WQE overflows. Whatever the device writes, polling returns WRs
 * that were posted, each once.
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
#define SRQ_LEN 4096
#define GARBAGE 0xdeadbeefdeadbeef

/*
 * QPs 0 and 1 have RQs, 2 and 3 an SRQ. Bit i of srq_posted: the device has WQE i.
 */
static struct {
    struct qhca_ib_dev dev;
    bool dead;
    int kills;
    struct qhca_ib_qp qp[QPS_MAX];
    struct qhca_ib_wr sq_wr[QPS_MAX][DEPTH], rq_wr[QPS_MAX][DEPTH];
    struct qhca_ib_srq srq;
    u32 srq_posted, srq_taken;
    u32 srq_freed;
    struct qhca_ib_cq cq;
    struct qhca_dbrec dbrec;
    struct qhca_cqe cqe[DEPTH];
    u32 prod;
    bool rewrites;          /* it keeps completing while it is polled */
    bool unsignalled;       /* not every WQE has a CQE */
} t;

static void list_add(struct list_head *entry, struct list_head *head)
{
    entry->next = head;
    entry->prev = head->prev;
    head->prev->next = entry;
    head->prev = entry;
}

static int setup(void **state)
{
    int i;

    memset(&t, 0, sizeof(t));
    t.dev.qdev = &t.dead;
    t.cq.ibcq.device = &t.dev.ibdev;
    t.cq.buf.kbuf.mem = (char *)t.cqe;
    t.cq.dbrec.rec = &t.dbrec;
    t.cq.shift = SHIFT;
    t.cq.send_qps = (struct list_head){ &t.cq.send_qps, &t.cq.send_qps };
    t.cq.recv_qps = (struct list_head){ &t.cq.recv_qps, &t.cq.recv_qps };
    for (i = 0; i < QPS_MAX; i++) {
        t.cq.qps.qp[i] = &t.qp[i];
        t.qp[i].qpn = i;
        t.qp[i].type = QHCA_QPT_RC;
        t.qp[i].ibqp.device = &t.dev.ibdev;
        t.qp[i].scq = &t.cq;
        t.qp[i].rcq = &t.cq;
        t.qp[i].sq.shift = SHIFT;
        t.qp[i].sq.wr = t.sq_wr[i];
        list_add(&t.qp[i].scq_entry, &t.cq.send_qps);
        list_add(&t.qp[i].rcq_entry, &t.cq.recv_qps);
        if (i < 2) {
            t.qp[i].rq.shift = SHIFT;
            t.qp[i].rq.wr = t.rq_wr[i];
        } else {
            t.qp[i].srq = &t.srq;
        }
    }
    return 0;
}

static u32 published(void)
{
    return le32toh(t.dbrec.index);
}

/* Number of WQEs that are free again: the tails begin at 0. */
static u32 released(void)
{
    u32 i, sum = t.srq_freed;

    for (i = 0; i < QPS_MAX; i++) {
        sum += t.qp[i].sq.tail + t.qp[i].rq.tail;
    }
    return sum;
}

static void complete_more(void);

void unlocked(spinlock_t *lock)
{
    if (!t.dead && !t.unsignalled) {
        assert_true(released() <= published());
    }
}

void qhca_dev_kill(bool *dead, const char *why)
{
    assert_true(t.cq.lock.held);
    *dead = true;
    t.kills++;
}

bool qhca_ib_srq_take_wqe(struct qhca_ib_srq *srq, u32 index,
                          struct qhca_ib_wr *wr)
{
    if (t.rewrites) {
        complete_more();
    }
    if (index >= DEPTH || !(t.srq_posted & 1u << index)) {
        return false;
    }
    t.srq_posted &= ~(1u << index);
    t.srq_taken |= 1u << index;
    *wr = (struct qhca_ib_wr){ 3000 + index, SRQ_LEN };
    return true;
}

void qhca_ib_srq_free_wqe_locked(struct qhca_ib_srq *srq, u32 index)
{
    assert_true(srq->lock.held);
    assert_true(t.srq_taken & 1u << index);
    t.srq_taken &= ~(1u << index);
    t.srq_freed++;
}

void qhca_ib_srq_free_wqe(struct qhca_ib_srq *srq, u32 index)
{
    spin_lock(&srq->lock);
    qhca_ib_srq_free_wqe_locked(srq, index);
    spin_unlock(&srq->lock);
}

/* Post the next WR of a ring; its number is returned as wr_id. */
static void post(struct qhca_ib_ring *ring, u64 wr_id, u32 len)
{
    ring->wr[ring->head++ & (DEPTH - 1)] = (struct qhca_ib_wr){ wr_id, len };
}

/* The device completes WQE @index of QP @qpn, right or wrong. */
static struct qhca_cqe *complete(u32 qpn, u32 index, u8 opcode, u16 flags)
{
    struct qhca_cqe *cqe = &t.cqe[t.prod & (DEPTH - 1)];

    memset(cqe, 0, sizeof(*cqe));
    cqe->qpn = htole32(qpn);
    cqe->wqe_index = htole32(index);
    cqe->wr_id = htole64(GARBAGE);
    cqe->opcode = opcode;
    cqe->flags = htole16(flags);
    cqe->phase = !((t.prod++ >> SHIFT) & 1);
    return cqe;
}

static void complete_srq(u32 qpn, u32 index)
{
    complete(qpn, index, QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ);
}

static void complete_more(void)
{
    t.srq_posted = -1;
    complete_srq(2, t.prod % DEPTH);
}

/*
 * The slot of the next completion lies in a page that is not writable yet: on
 * the fault the test checks what has been released.
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

/* Polls all of @num, and checks when number @stop is due. */
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
        post(&t.qp[0].sq, i, 0);
        complete(0, i, QHCA_CQE_OP_SEND, 0);
    }
    poll_and_look(DEPTH, DEPTH - 1);
}

/* Sends and receives of QPs with and without an SRQ, in all orders. */
static void test_mixed(void **state)
{
    u32 next[6] = { 0 };
    u32 round, i, kind;
    unsigned rng = 1;

    for (round = 0; round < 2000; round++) {
        t.srq_posted = -1;
        for (i = 0; i < DEPTH; i++) {
            rng = rng * 1103515245 + 12345;
            kind = (rng >> 16) % 6;
            if (kind == 5) {
                complete_srq(2 + (rng >> 30 & 1), next[kind]++ % DEPTH);
            } else if (kind & 1) {
                post(&t.qp[kind >> 1].rq, i, 0);
                complete(kind >> 1, next[kind]++, QHCA_CQE_OP_RECV, 0);
            } else {
                post(&t.qp[kind >> 1].sq, i, 0);
                complete(kind >> 1, next[kind]++, QHCA_CQE_OP_SEND, 0);
            }
        }
        poll_and_look(DEPTH, 1 + round % (DEPTH - 1));
        assert_int_equal(t.srq_taken, 0);
    }
    assert_int_equal(t.kills, 0);
}

/*
 * A QP is destroyed: its receives are returned with the SRQ's lock held
 * throughout.
 */
static void test_clean(void **state)
{
    u32 i;

    t.srq_posted = -1;
    for (i = 0; i < DEPTH; i++) {
        complete_srq(2 + (i & 1), i);
    }
    qhca_ib_cq_clean(&t.cq, 3, &t.srq);
    assert_int_equal(t.srq_freed, DEPTH / 2);
    assert_int_equal(published(), DEPTH / 2);
    assert_false(t.srq.lock.held);
    assert_false(t.cq.lock.held);
    assert_int_equal(t.kills, 0);
}

/* A QP is destroyed after the device has completed a receive of it twice. */
static void test_clean_twice(void **state)
{
    t.srq_posted = 1u << 5;
    complete_srq(3, 5);
    complete_srq(3, 5);
    complete_srq(3, DEPTH);
    /* not a receive of the SRQ, whatever it claims */
    complete(3, 5, QHCA_CQE_OP_SEND, QHCA_CQE_F_SRQ);
    qhca_ib_cq_clean(&t.cq, 3, &t.srq);
    assert_int_equal(t.srq_freed, 1);
    assert_int_equal(published(), 4);
    assert_int_equal(t.kills, 1);
}

/* Polls one; -1: none. */
static long poll_one(void)
{
    struct ib_wc wc;

    return qhca_ib_poll_cq(&t.cq.ibcq, 1, &wc) ? (long)wc.wr_id : -1;
}

/* Polling returns what was posted, not what the device claims. */
static void test_wr_id(void **state)
{
    u32 i;

    t.srq_posted = 1u << 3;
    for (i = 0; i < 2 * DEPTH; i++) {
        post(&t.qp[0].sq, 1000 + i, 0);
        post(&t.qp[0].rq, 2000 + i, 0);
        complete(0, i, QHCA_CQE_OP_RDMA_READ, 0);
        complete(0, i, QHCA_CQE_OP_RECV, 0);
        assert_int_equal(poll_one(), 1000 + i);
        assert_int_equal(poll_one(), 2000 + i);
    }
    complete_srq(3, 3);
    assert_int_equal(poll_one(), 3003);
    /* the device could not read the WQE: it does not know whose it was */
    post(&t.qp[0].sq, 77, 0);
    complete(0, i, QHCA_CQE_OP_SEND, 0)->status = QHCA_WC_LOC_QP_OP_ERR;
    assert_int_equal(poll_one(), 77);
    assert_int_equal(t.kills, 0);
}

/* A send completes earlier ones that requested no completion. */
static void test_unsignalled(void **state)
{
    struct ib_wc wc[DEPTH];
    u32 start = -5, i;

    t.unsignalled = true;
    t.qp[0].sq.head = t.qp[0].sq.tail = start;
    for (i = 0; i < 10; i++) {
        post(&t.qp[0].sq, i, 0);
    }
    complete(0, start + 3, QHCA_CQE_OP_SEND, 0);
    assert_int_equal(poll_one(), 3);
    assert_int_equal(t.qp[0].sq.tail, start + 4);
    assert_int_equal(t.kills, 0);
    /* the tail that counts is the one that is not yet written back */
    complete(0, start + 8, QHCA_CQE_OP_SEND, 0);
    complete(0, start + 6, QHCA_CQE_OP_SEND, 0);
    complete(0, start + 9, QHCA_CQE_OP_SEND, 0);
    assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, DEPTH, wc), 2);
    assert_int_equal(wc[0].wr_id, 8);
    assert_int_equal(wc[1].wr_id, 9);
    assert_int_equal(t.qp[0].sq.tail, start + 10);
    assert_int_equal(t.kills, 1);
}

/*
 * Invalid CQEs among valid ones: alone, and with valid ones in one call. QPs 0
 * and 1 have posted 4 WRs in each ring and the device has completed the first;
 * WQEs 2 and 3 of the SRQ are posted.
 */
static const struct nonsense {
    const char *name;
    u32 qpn, index;
    u8 opcode;
    u16 flags;
    u32 len;
    u8 type;                /* of QP 0; 0: RC */
} nonsense[] = {
    { "send again", 0, 0, QHCA_CQE_OP_SEND },
    { "send not posted", 0, 4, QHCA_CQE_OP_SEND },
    { "send far ahead", 0, 1 + DEPTH, QHCA_CQE_OP_SEND },
    { "send far behind", 0, -1, QHCA_CQE_OP_SEND },
    { "receive again", 0, 0, QHCA_CQE_OP_RECV },
    { "receive out of order", 0, 2, QHCA_CQE_OP_RECV },
    { "receive far ahead", 0, 1 + DEPTH, QHCA_CQE_OP_RECV },
    { "receive too long", 0, 1, QHCA_CQE_OP_RECV, 0, 101 },
    { "receive far too long", 0, 1, QHCA_CQE_OP_RECV, 0, -1 },
    { "UD without GRH", 0, 1, QHCA_CQE_OP_RECV, 0, 39, QHCA_QPT_UD },
    { "UD with RDMA", 0, 1, QHCA_CQE_OP_RECV_RDMA_IMM, 0, 0, QHCA_QPT_UD },
    { "unknown receive", 0, 1, QHCA_CQE_OP_RAW_RECV },
    { "unknown QP", QPS_MAX, 1, QHCA_CQE_OP_SEND },
    { "no QP at all", -1, -1, 0xff, -1, -1 },
    { "SRQ of a QP with an RQ", 0, 2, QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ },
    { "RQ of a QP with an SRQ", 2, 0, QHCA_CQE_OP_RECV },
    { "SRQ again", 2, 1, QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ },
    { "SRQ not posted", 2, 4, QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ },
    { "SRQ out of range", 2, DEPTH, QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ },
    { "SRQ too long", 2, 2, QHCA_CQE_OP_RECV, QHCA_CQE_F_SRQ, SRQ_LEN + 1 },
};

/* Each WR posted to a ring is returned once: bit per wr_id. */
static void see(u32 *seen, const struct ib_wc *wc)
{
    assert_true(wc->wr_id < 16);
    assert_false(*seen & 1u << wc->wr_id);
    *seen |= 1u << wc->wr_id;
}

static void one_nonsense(const struct nonsense *x, u32 before, u32 behind)
{
    struct ib_wc wc[DEPTH];
    u32 i, seen = 0;
    int n, good = 0;

    setup(NULL);
    if (x->type) {
        t.qp[0].type = x->type;
    }
    t.srq_posted = 1u << 2 | 1u << 3;
    for (i = 0; i < 4; i++) {
        post(&t.qp[0].sq, i, 0);
        post(&t.qp[0].rq, 4 + i, 100);
        post(&t.qp[1].sq, 8 + i, 0);
        post(&t.qp[1].rq, 12 + i, 100);
    }
    complete(0, 0, QHCA_CQE_OP_SEND, 0);
    complete(0, 0, QHCA_CQE_OP_RECV, 0)->byte_len = htole32(100);
    for (i = 0; i < before; i++) {
        complete(1, i, QHCA_CQE_OP_SEND, 0);
    }
    complete(x->qpn, x->index, x->opcode, x->flags)->byte_len = htole32(x->len);
    for (i = before; i < before + behind; i++) {
        complete(1, i, QHCA_CQE_OP_SEND, 0);
    }

    n = qhca_ib_poll_cq(&t.cq.ibcq, DEPTH, wc);
    for (i = 0; i < n; i++) {
        assert_int_equal(wc[i].status, IB_WC_SUCCESS);
        see(&seen, &wc[i]);
        good++;
    }
    assert_int_equal(good, 2 + before + behind);
    assert_int_equal(t.kills, 1);
    assert_int_equal(published(), t.prod);
    assert_true(qhca_ib_cq_has_flush(&t.cq));

    while ((n = qhca_ib_poll_cq(&t.cq.ibcq, 3, wc)) > 0) {
        for (i = 0; i < n; i++) {
            assert_int_equal(wc[i].status, IB_WC_WR_FLUSH_ERR);
            see(&seen, &wc[i]);
        }
    }
    assert_int_equal(seen, 0xffff);
    assert_false(qhca_ib_cq_has_flush(&t.cq));
    /* a dead device is not killed again */
    complete(x->qpn, x->index, x->opcode, x->flags);
    complete(1, before, QHCA_CQE_OP_SEND, 0);
    assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, DEPTH, wc), 0);
    assert_int_equal(t.kills, 1);
}

static void test_nonsense(void **state)
{
    u32 i;

    for (i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        print_message("%s\n", nonsense[i].name);
        one_nonsense(&nonsense[i], 0, 0);
        one_nonsense(&nonsense[i], 2, 1);
    }
}

/* The same receive of an SRQ twice in one call. */
static void test_srq_twice(void **state)
{
    struct ib_wc wc[DEPTH];

    t.srq_posted = 1u << 7;
    complete_srq(2, 7);
    complete_srq(3, 7);
    assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, DEPTH, wc), 1);
    assert_int_equal(wc[0].wr_id, 3007);
    assert_int_equal(t.srq_freed, 1);
    assert_int_equal(t.kills, 1);
}

/* QPs that exist in the device, but do not belong to this CQ. */
static void test_foreign_qp(void **state)
{
    static struct qhca_ib_cq other;
    struct ib_wc wc;

    /* a user QP is in no table, its rings are not kernel memory */
    t.cq.qps.qp[3] = NULL;
    complete(3, 0, QHCA_CQE_OP_SEND, 0);
    assert_int_equal(poll_one(), -1);
    assert_int_equal(t.kills, 1);

    /* only its receives complete here, and it has posted sends */
    setup(NULL);
    t.qp[0].scq = &other;
    post(&t.qp[0].sq, 5, 0);
    complete(0, 0, QHCA_CQE_OP_SEND, 0);
    assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, 1, &wc), 0);
    assert_int_equal(t.kills, 1);
    assert_int_equal(t.qp[0].sq.tail, 0);

    /* it has no receive queue at all */
    setup(NULL);
    t.qp[0].rq.wr = NULL;
    complete(0, 0, QHCA_CQE_OP_RECV, 0);
    assert_int_equal(poll_one(), -1);
    assert_int_equal(t.kills, 1);
}

/* An RDMA write with immediate data may be longer than the receive it takes. */
static void test_rdma_imm(void **state)
{
    post(&t.qp[0].rq, 11, 0);
    complete(0, 0, QHCA_CQE_OP_RECV_RDMA_IMM, QHCA_CQE_F_IMM)->byte_len =
        htole32(1 << 20);
    assert_int_equal(poll_one(), 11);
    /* and the length of a failed one is meaningless */
    post(&t.qp[0].rq, 12, 0);
    complete(0, 1, QHCA_CQE_OP_RECV, 0);
    t.cqe[1].byte_len = htole32(1);
    t.cqe[1].status = QHCA_WC_LOC_LEN_ERR;
    assert_int_equal(poll_one(), 12);
    assert_int_equal(t.kills, 0);
}

/* The device writes as fast as it is polled: polling ends nevertheless. */
static void test_rewritten(void **state)
{
    static struct ib_wc wc[4 * DEPTH];
    u32 i;

    t.rewrites = true;
    t.srq_posted = -1;
    for (i = 0; i < DEPTH; i++) {
        complete_srq(2, i);
    }
    assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, 4 * DEPTH, wc), DEPTH);
    assert_int_equal(published(), DEPTH);

    /* the same with invalid CQEs, which use no room in wc */
    setup(NULL);
    t.rewrites = true;
    for (i = 0; i < DEPTH; i++) {
        complete_srq(2, DEPTH);
    }
    assert_int_equal(qhca_ib_poll_cq(&t.cq.ibcq, 4 * DEPTH, wc), 0);
    assert_int_equal(t.kills, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sends),
        TEST(test_mixed),
        TEST(test_clean),
        TEST(test_clean_twice),
        TEST(test_wr_id),
        TEST(test_unsignalled),
        TEST(test_nonsense),
        TEST(test_srq_twice),
        TEST(test_foreign_qp),
        TEST(test_rdma_imm),
        TEST(test_rewritten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

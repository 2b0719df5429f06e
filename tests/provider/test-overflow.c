/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A CQ with as many entries as its queues can have work requests: posting one
 * request for each polled completion must never overflow it.  So a slot is free
 * for a new request only after the CQE's slot is free for the device.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-kernel.h"

#define DEPTH 64

static int setup(void **state)
{
    fake_open();
    return 0;
}

static int teardown(void **state)
{
    fake_close();
    return 0;
}

static struct qhca_cqe send_cqe(struct qhca_qp *qp, uint32_t index)
{
    return (struct qhca_cqe) {
        .wr_id = htole64(1000ULL + index),
        .qpn = htole32(qp->qpn),
        .wqe_index = htole32(index),
        .opcode = QHCA_CQE_OP_SEND,
    };
}

static struct qhca_cqe recv_cqe(struct qhca_qp *qp, uint32_t index,
                                uint16_t flags)
{
    return (struct qhca_cqe) {
        .wr_id = htole64(1000ULL + index),
        .qpn = htole32(qp->qpn),
        .wqe_index = htole32(index),
        .opcode = QHCA_CQE_OP_RECV,
        .flags = htole16(flags),
    };
}

static int post_send(struct qhca_qp *qp)
{
    struct ibv_send_wr *bad, wr = {
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };

    return qhca_post_send(&qp->vqp.qp, &wr, &bad);
}

static int post_recv(struct qhca_qp *qp)
{
    struct ibv_recv_wr wr = {}, *bad;

    return qhca_post_recv(&qp->vqp.qp, &wr, &bad);
}

static int post_srq(struct ibv_srq *srq)
{
    struct ibv_recv_wr wr = {}, *bad;

    return qhca_post_srq_recv(srq, &wr, &bad);
}

/* The CQ entries that the device knows to be free, counted from 0. */
static uint32_t published(struct qhca_cq *cq)
{
    return le32toh(cq->dbrec->index);
}

static uint32_t sq_tail(struct qhca_qp *qp)
{
    return atomic_load(&qp->sq.tail);
}

static uint32_t rq_tail(struct qhca_qp *qp)
{
    return atomic_load(&qp->rq.tail);
}

static uint32_t srq_free(struct ibv_srq *ibv_srq)
{
    struct qhca_srq *srq = to_qsrq(ibv_srq);
    uint32_t n, num = 0;

    for (n = srq->first_free; n != QHCA_SRQ_END; n = srq->next[n]) {
        num++;
    }
    return num;
}

/*
 * Checks the provider between two completions of one ibv_poll_cq(), when it has
 * written one and is about to write the next: that one lies in a page that is
 * not writable yet.
 */
static struct {
    char *page;                 /* that page, behind one that can be written */
    size_t size;
    struct qhca_cq *cq;
    uint32_t (*released)(void);
    int looks;
    uint32_t seen_released;
    uint32_t seen_published;
} mid;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    if (info->si_addr < (void *)mid.page ||
        info->si_addr >= (void *)(mid.page + mid.size)) {
        abort();
    }
    mid.looks++;
    mid.seen_released = mid.released();
    mid.seen_published = published(mid.cq);
    mprotect(mid.page, mid.size, PROT_READ | PROT_WRITE);
}

/* Polls @num completions, and checks when the one with number @stop is due. */
static void poll_and_look(struct qhca_cq *cq, int num, int stop,
                          uint32_t (*released)(void))
{
    struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    size_t page = sysconf(_SC_PAGESIZE);
    struct sigaction segv, bus;
    struct ibv_wc *wc;
    char *mem;

    assert_true((stop + 1) * sizeof(*wc) <= page);
    mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED);
    mid.page = mem + page;
    mid.size = page;
    mid.cq = cq;
    mid.released = released;
    mid.looks = 0;
    wc = (struct ibv_wc *)mid.page - stop;
    assert_int_equal(mprotect(mid.page, page, PROT_NONE), 0);
    sigaction(SIGSEGV, &act, &segv);
    sigaction(SIGBUS, &act, &bus);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, num, wc), num);
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    assert_int_equal(mid.looks, 1);
    munmap(mem, 2 * page);
}

static struct {
    struct qhca_qp *qp[2];
    struct ibv_srq *srq;
} objs;

/* The objects of a test: two QPs on one CQ, with an SRQ if @srq. */
static struct ibv_pd *make(struct qhca_cq **cq, bool srq)
{
    struct ibv_srq_init_attr attr = { .attr.max_wr = DEPTH };
    struct ibv_pd *pd = fake_pd();
    int i;

    *cq = fake_cq(DEPTH);
    assert_int_equal((*cq)->vcq.cq.cqe, DEPTH);
    objs.srq = srq ? qhca_create_srq(pd, &attr) : NULL;
    for (i = 0; i < 2; i++) {
        objs.qp[i] = fake_qp(pd, *cq, objs.srq, IBV_QPT_RC);
        fake_qp_state(objs.qp[i], IBV_QPS_RTS);
    }
    return pd;
}

static void unmake(struct qhca_cq *cq, struct ibv_pd *pd)
{
    int i;

    for (i = 0; i < 2; i++) {
        assert_int_equal(qhca_destroy_qp(&objs.qp[i]->vqp.qp), 0);
    }
    if (objs.srq) {
        assert_int_equal(qhca_destroy_srq(objs.srq), 0);
    }
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

static uint32_t sends_released(void)
{
    return sq_tail(objs.qp[0]) + sq_tail(objs.qp[1]);
}

static uint32_t recvs_released(void)
{
    return rq_tail(objs.qp[0]) + rq_tail(objs.qp[1]);
}

static uint32_t srq_released(void)
{
    return srq_free(objs.srq) - ((1U << to_qsrq(objs.srq)->shift) - 8);
}

/* Another thread may post whatever is free while this one still polls. */
static void test_poll_sends(void **state)
{
    struct qhca_cq *cq;
    struct ibv_pd *pd = make(&cq, false);
    uint32_t i;

    for (i = 0; i < 8; i++) {
        assert_int_equal(post_send(objs.qp[0]), 0);
        fake_cqe(cq, i, send_cqe(objs.qp[0], i));
    }
    poll_and_look(cq, 8, 5, sends_released);
    assert_true(mid.seen_released <= mid.seen_published);
    assert_int_equal(sends_released(), 8);
    assert_int_equal(published(cq), 8);
    unmake(cq, pd);
}

/* The same with completions of two QPs, in turn. */
static void test_poll_two_qps(void **state)
{
    struct qhca_cq *cq;
    struct ibv_pd *pd = make(&cq, false);
    int stop;
    uint32_t i, prod = 0, done = 0;

    for (stop = 1; stop < 8; stop++) {
        for (i = 0; i < 8; i++) {
            assert_int_equal(post_send(objs.qp[i & 1]), 0);
            fake_cqe(cq, prod++, send_cqe(objs.qp[i & 1], done / 2 + i / 2));
        }
        poll_and_look(cq, 8, stop, sends_released);
        assert_true(mid.seen_released <= mid.seen_published);
        done += 8;
        assert_int_equal(sends_released(), done);
        assert_int_equal(published(cq), done);
    }
    unmake(cq, pd);
}

/* Receives and sends of the same QP, then of the other one. */
static void test_poll_recvs(void **state)
{
    struct qhca_cq *cq;
    struct ibv_pd *pd = make(&cq, false);
    uint32_t i;

    for (i = 0; i < 4; i++) {
        assert_int_equal(post_recv(objs.qp[0]), 0);
        assert_int_equal(post_send(objs.qp[0]), 0);
        assert_int_equal(post_recv(objs.qp[1]), 0);
        fake_cqe(cq, 3 * i, recv_cqe(objs.qp[0], i, 0));
        fake_cqe(cq, 3 * i + 1, send_cqe(objs.qp[0], i));
        fake_cqe(cq, 3 * i + 2, recv_cqe(objs.qp[1], i, 0));
    }
    poll_and_look(cq, 12, 9, recvs_released);
    assert_true(mid.seen_released <= mid.seen_published);
    assert_int_equal(recvs_released(), 8);
    assert_int_equal(sends_released(), 4);
    assert_int_equal(published(cq), 12);
    unmake(cq, pd);
}

static void test_poll_srq(void **state)
{
    struct qhca_cq *cq;
    struct ibv_pd *pd = make(&cq, true);
    uint32_t i;

    for (i = 0; i < 8; i++) {
        assert_int_equal(post_srq(objs.srq), 0);
        fake_cqe(cq, i, recv_cqe(objs.qp[i & 1], i, QHCA_CQE_F_SRQ));
    }
    poll_and_look(cq, 8, 5, srq_released);
    assert_true(mid.seen_released <= mid.seen_published);
    assert_int_equal(srq_released(), 8);
    assert_int_equal(published(cq), 8);
    unmake(cq, pd);
}

/*
 * Polls, and posts one for each, within one ibv_start_poll().  The device,
 * played here, completes what is posted at once, as long as there is room.
 */
static void test_extended(void **state)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = DEPTH, .wc_flags = IBV_WC_STANDARD_FLAGS,
    };
    struct ibv_cq_ex *ex = qhca_create_cq_ex(fake.context, &attr);
    struct qhca_cq *cq = to_qcq_ex(ex);
    struct ibv_poll_cq_attr poll = {};
    struct ibv_pd *pd = fake_pd();
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct qhca_cqe cqe;
    uint32_t i, prod;

    assert_int_equal(ex->cqe, DEPTH);
    fake_qp_state(qp, IBV_QPS_RTS);
    for (prod = 0; prod < DEPTH; prod++) {
        assert_int_equal(post_send(qp), 0);
        cqe = send_cqe(qp, prod);
        cqe.byte_len = htole32(prod);
        fake_cqe(cq, prod, cqe);
    }
    assert_int_equal(ex->start_poll(ex, &poll), 0);
    for (i = 0; i < 3 * DEPTH; i++) {
        assert_int_equal(post_send(qp), 0);
        assert_true(prod - published(cq) < DEPTH);
        cqe = send_cqe(qp, prod);
        cqe.byte_len = htole32(prod);
        cqe.opcode = prod & 1 ? QHCA_CQE_OP_SEND : QHCA_CQE_OP_RDMA_WRITE;
        fake_cqe(cq, prod++, cqe);
        /* this one stays valid until the next is requested */
        assert_int_equal(ex->wr_id, 1000 + i);
        assert_int_equal(ex->read_byte_len(ex), i);
        assert_int_equal(ex->read_opcode(ex), i < DEPTH || i & 1 ?
                         IBV_WC_SEND : IBV_WC_RDMA_WRITE);
        assert_int_equal(ex->next_poll(ex), 0);
    }
    ex->end_poll(ex);
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

#define THREAD_SENDS 20000

static struct {
    struct qhca_qp *qp;
    struct qhca_cq *cq;
    atomic_bool overflow;
} race;

/* Posts whatever fits, and completes it as the device would. */
static void *post_what_fits(void *arg)
{
    uint32_t prod = 0;

    while (prod < THREAD_SENDS) {
        if (post_send(race.qp)) {
            continue;
        }
        if (prod - published(race.cq) >= DEPTH) {
            atomic_store(&race.overflow, true);
            break;
        }
        fake_cqe(race.cq, prod, send_cqe(race.qp, prod));
        prod++;
    }
    return NULL;
}

static void test_two_threads(void **state)
{
    struct qhca_cq *cq;
    struct ibv_pd *pd = make(&cq, false);
    struct ibv_wc wc[DEPTH];
    pthread_t thread;
    int n = 0;

    race.qp = objs.qp[0];
    race.cq = cq;
    atomic_store(&race.overflow, false);
    assert_int_equal(pthread_create(&thread, NULL, post_what_fits, NULL), 0);
    while (n < THREAD_SENDS && !atomic_load(&race.overflow)) {
        n += qhca_poll_cq(&cq->vcq.cq, DEPTH, wc);
    }
    pthread_join(thread, NULL);
    assert_false(atomic_load(&race.overflow));
    unmake(cq, pd);
}

/*
 * The receives of a destroyed QP are returned to their SRQ, which others post
 * to: enough of them that another thread runs meanwhile.
 */
#define MANY 16384

static struct {
    struct qhca_srq *srq;
    struct qhca_cq *cq;
    atomic_bool runs;
    uint32_t published;         /* when the first WQE was free */
} gone;

static void *wait_for_free(void *arg)
{
    bool free;

    do {
        qhca_lock(&gone.srq->lock);
        free = gone.srq->first_free != QHCA_SRQ_END;
        if (free) {
            gone.published = published(gone.cq);
        }
        qhca_unlock(&gone.srq->lock);
        atomic_store(&gone.runs, true);
    } while (!free);
    return NULL;
}

static void test_destroy(void **state)
{
    struct ibv_srq_init_attr attr = { .attr.max_wr = MANY };
    struct ibv_pd *pd = fake_pd();
    struct ibv_srq *srq = qhca_create_srq(pd, &attr);
    struct qhca_cq *cq = fake_cq(MANY);
    struct qhca_qp *qp = fake_qp(pd, cq, srq, IBV_QPT_RC);
    uint32_t i;
    pthread_t thread;

    for (i = 0; i < MANY; i++) {
        assert_int_equal(post_srq(srq), 0);
        fake_cqe(cq, i, recv_cqe(qp, i, QHCA_CQE_F_SRQ));
    }
    assert_int_equal(post_srq(srq), ENOMEM);
    gone.srq = to_qsrq(srq);
    gone.cq = cq;
    atomic_store(&gone.runs, false);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_free, NULL), 0);
    while (!atomic_load(&gone.runs)) {
        sched_yield();
    }
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    pthread_join(thread, NULL);
    assert_int_equal(gone.published, MANY);
    assert_int_equal(qhca_destroy_srq(srq), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_poll_sends),
        TEST(test_poll_two_qps),
        TEST(test_poll_recvs),
        TEST(test_poll_srq),
        TEST(test_extended),
        TEST(test_two_threads),
        TEST(test_destroy),
    };

    /* A wait that never ends is a failure. */
    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

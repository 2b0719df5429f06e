/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers and their objects, while threads create and destroy them. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "qhca-idr.h"

#define THREADS 4
#define ROUNDS 20000
/* Of the simulated kernel: so few that they are reused at once. */
#define NUMBERS 3

static struct qhca_idr idr;
static _Atomic int owned[NUMBERS];
static _Atomic int wrong;

static void *create_and_destroy(void *arg)
{
    char objects[7];                /* their addresses count */
    unsigned int i, n;
    int none;

    for (i = 0; i < ROUNDS; i++) {
        void *obj = &objects[i % sizeof(objects)];

        for (n = i % NUMBERS;; n = (n + 1) % NUMBERS) {
            none = 0;
            if (atomic_compare_exchange_strong(&owned[n], &none, 1)) {
                break;
            }
        }
        wrong += qhca_idr_add(&idr, n << 12, obj) != 0;
        wrong += qhca_idr_find(&idr, n << 12) != obj;
        qhca_idr_leave(&idr);
        atomic_store(&owned[n], 0);     /* the kernel gives it to another */
        wrong += qhca_idr_find(&idr, n << 12) != obj;
        qhca_idr_left(&idr, n << 12, obj);
    }
    return NULL;
}

/* The next owner of a number does not meet the former one. */
static void test_threads(void **state)
{
    pthread_t thread[THREADS];
    unsigned int i;

    qhca_idr_init(&idr);
    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, create_and_destroy, NULL), 0);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(idr.leaving, 0);
    for (i = 0; i < NUMBERS; i++) {
        assert_null(qhca_idr_find(&idr, i << 12));
    }
    qhca_idr_free(&idr);
}

/* What a poller has found, with the tables it went through. */
static struct object {
    int ready;
} late[NUMBERS];
static _Atomic bool done;

static void *poll_all(void *arg)
{
    struct object *obj;
    unsigned int i;

    while (!atomic_load(&done)) {
        for (i = 0; i < NUMBERS; i++) {
            obj = qhca_idr_find(&idr, i << 12);
            wrong += obj && !obj->ready;
        }
    }
    return NULL;
}

/*
 * A poller looks a number up while its object, and the table for it, are made:
 * it finds nothing, or all of it. ThreadSanitizer sees if that is a matter of
 * luck.
 */
static void test_poll_while_made(void **state)
{
    pthread_t thread;
    unsigned int i, round;

    for (round = 0; round < 100; round++) {
        memset(&idr, 0, sizeof(idr));
        memset(late, 0, sizeof(late));
        qhca_idr_init(&idr);
        atomic_store(&done, false);
        assert_int_equal(pthread_create(&thread, NULL, poll_all, NULL), 0);
        for (i = 0; i < NUMBERS; i++) {
            late[i].ready = 1;
            assert_int_equal(qhca_idr_add(&idr, i << 12, &late[i]), 0);
        }
        atomic_store(&done, true);
        pthread_join(thread, NULL);
        assert_int_equal(wrong, 0);
        qhca_idr_free(&idr);
    }
}

static void test_alone(void **state)
{
    static struct qhca_idr one;
    int a, b;

    qhca_idr_init(&one);
    assert_null(qhca_idr_find(&one, 0xffffff));
    assert_int_equal(qhca_idr_add(&one, 0xffffff, &a), 0);
    assert_ptr_equal(qhca_idr_find(&one, 0xffffff), &a);
    /* its owner does not leave: the device has used the number twice */
    assert_int_equal(qhca_idr_add(&one, 0xffffff, &b), EIO);
    /* an object outside of the table that has the same number */
    qhca_idr_leave(&one);
    qhca_idr_left(&one, 0xffffff, &b);
    assert_ptr_equal(qhca_idr_find(&one, 0xffffff), &a);
    /* it could not be destroyed */
    qhca_idr_leave(&one);
    qhca_idr_left(&one, 0xffffff, NULL);
    assert_ptr_equal(qhca_idr_find(&one, 0xffffff), &a);
    qhca_idr_leave(&one);
    qhca_idr_left(&one, 0xffffff, &a);
    assert_null(qhca_idr_find(&one, 0xffffff));
    /* a number that never was */
    qhca_idr_leave(&one);
    qhca_idr_left(&one, 0x5000, &a);
    assert_null(qhca_idr_find(&one, 0x5000));
    qhca_idr_free(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_poll_while_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

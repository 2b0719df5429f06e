/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fixture of the engine's unit tests for objects: one enabled adapter, its
 * guest, and access to its internals.
 */
#ifndef QHCA_TEST_UNIT_H
#define QHCA_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "guest.h"
#include "adapter/adapter.h"

struct unit {
    struct world w;
    struct guest g;
    struct node *n;
    struct qhca *e;
    struct gmem *m;
};

/* @adapter: NULL for the default. */
static inline int unit_setup_with(void **state,
                                  const struct qhca_config *adapter,
                                  const struct guest_config *cfg)
{
    struct unit *u = calloc(1, sizeof(*u));

    world_init(&u->w, 1, 1, adapter);
    u->n = &u->w.node[0];
    u->e = u->n->e;
    u->m = &u->n->mem;
    guest_start(&u->g, u->n, 1, cfg);
    *state = u;
    return 0;
}

static inline int unit_setup_as(void **state,
                                const struct qhca_config *adapter)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };

    return unit_setup_with(state, adapter, &cfg);
}

static inline int unit_setup(void **state)
{
    return unit_setup_as(state, NULL);
}

/* For tests that clean up: nothing may be left. */
static inline int unit_teardown(void **state)
{
    struct unit *u = *state;

    guest_stop(&u->g);
    world_fini(&u->w);
    free(u);
    return 0;
}

/* For tests that leave the adapter unusable. */
static inline int unit_abandon(void **state)
{
    struct unit *u = *state;

    qhca_reset(u->e);
    guest_drop(&u->g);
    world_fini(&u->w);
    free(u);
    return 0;
}

/* Check that a statistic went up by @n since the last call with that index. */
static inline uint64_t unit_stat(struct unit *u, unsigned index)
{
    return qhca_stat(u->e, index);
}

static inline uint8_t unit_cmd(struct unit *u, uint8_t op, uint32_t obj,
                               uint64_t mask, const void *in,
                               uint32_t in_len, uint64_t *result)
{
    struct gcmd c = {
        .op = op, .obj = obj, .in = in, .in_len = in_len, .mask = mask,
    };
    uint8_t status = guest_cmd(&u->g, &c);

    if (result) {
        *result = c.result;
    }
    return status;
}

/* The result of BIND_MW of QP @qpn for window @key; QHCA_SYN_*. */
static inline uint8_t unit_bind(struct unit *u, uint32_t qpn, uint32_t key,
                                uint32_t mr, uint64_t addr, uint64_t len,
                                uint32_t flags)
{
    struct qhca_sq_wqe wqe = {
        .ctrl = { .opcode = QHCA_WQE_BIND_MW, .arg0 = addr, .arg1 = len },
        .remote = { .addr = mr, .rkey = key, .arg = flags },
    };
    struct qhca_qp *by = qhca_qp_get(u->e, qpn);

    return qhca_mw_bind(u->e, by->pd, by->qpn, &by->windows, &wqe);
}

#define UNIT(f) \
    cmocka_unit_test_setup_teardown(f, unit_setup, unit_teardown)
#define UNIT_HOSTILE(f) \
    cmocka_unit_test_setup_teardown(f, unit_setup, unit_abandon)

#endif

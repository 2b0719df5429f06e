/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef QHCA_TEST_REBORN_H
#define QHCA_TEST_REBORN_H

#include "world.h"

/*
 * Save the node's adapter, load the state into a new one, compare the two, and
 * continue with the new one.  Not within a call of the engine.
 */
void node_reborn(struct node *n, const struct qhca_ops *ops);

/*
 * Load the state of the node's adapter into another of configuration @cfg,
 * which is then freed.  Returns "" or why it is refused, valid until the next
 * call.
 */
const char *node_loads(struct node *n, const struct qhca_config *cfg);

/* The same with @len bytes of another state at @state. */
const char *node_loads_state(struct node *n, const struct qhca_config *cfg,
                             const void *state, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile peer in the simulation: at the other end of one more memory link of
 * each adapter.
 */
#ifndef QHCA_TEST_SIM_HOSTILE_H
#define QHCA_TEST_SIM_HOSTILE_H

#include "sim.h"

struct hostile;

/* After the workload is built: its QPs are targets, too. */
struct hostile *hostile_open(struct sim *s, bool impostor);
/* It does nothing any more; everything it has is destroyed. */
void hostile_close(struct hostile *h);
/* Records that adapters took from it, and how often they cut it off. */
uint64_t hostile_records(const struct hostile *h);
uint64_t hostile_cuts(const struct hostile *h);

#endif

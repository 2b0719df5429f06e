/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef QHCA_TEST_SIM_MW_H
#define QHCA_TEST_SIM_MW_H

#include "sim_fx.h"

/* Cases for sim_extras[]. */
void sim_windows(struct sim *s);
void sim_bad_bind(struct sim *s);
void sim_rereg(struct sim *s);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* The layout of buffer tables as text; pure, see layout.c. */
#ifndef QHCA_DEBUG_LAYOUT_H
#define QHCA_DEBUG_LAYOUT_H

#include "qhca_buf_table.h"

int qhca_layout_parse(const char *text, struct qhca_layout *l);
int qhca_layout_print(const struct qhca_layout *l, char *buf, size_t size);
int qhca_layout_check(const struct qhca_layout *l);

#endif /* QHCA_DEBUG_LAYOUT_H */

// SPDX-License-Identifier: GPL-2.0
/* The trace points of qhca_ib.ko. */
#include "../ib/qhca_ib.h"
#include "names.h"

#define CREATE_TRACE_POINTS
#include "qhca_ib_trace.h"

// SPDX-License-Identifier: GPL-2.0
/* The trace points of qhca.ko. */
#include "../core/core.h"
#include "names.h"

#define CREATE_TRACE_POINTS
#include "qhca_trace.h"

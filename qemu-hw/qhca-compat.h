/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only place that deals with differences between QEMU versions, 10.0 to
 * 11.x.  QEMU moved headers, and class_init takes a const pointer since 10.1.
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#if __has_include("system/memory.h")
#include "system/memory.h"
#include "system/address-spaces.h"
typedef const void QhcaClassData;
#else
#include "exec/memory.h"
#include "exec/address-spaces.h"
typedef void QhcaClassData;
#endif

#if __has_include("system/memory_cached.h")
#include "system/memory_cached.h"
#endif

#if __has_include("system/ramblock.h")
#include "system/ramblock.h"
#include "system/ramlist.h"
#else
#include "exec/cpu-common.h"
#include "exec/ramblock.h"
#include "exec/ramlist.h"
#endif

#if __has_include("hw/core/qdev-properties.h")
#include "hw/core/qdev-properties.h"
#else
#include "hw/qdev-properties.h"
#endif

#endif /* QHCA_COMPAT_H */

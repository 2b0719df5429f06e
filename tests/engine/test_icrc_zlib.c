/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ICRC of a QEMU without ISA-L: the same tests. */
#undef QHCA_ISAL
#define qhca_icrc qhca_icrc_zlib
#define qhca_icrc_twice qhca_icrc_twice_zlib

#include "transport/icrc.c"
#include "test_icrc.c"

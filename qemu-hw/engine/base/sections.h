/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sections of a saved state and their versions.  Each release loads the
 * states that earlier releases have saved.  To change what a section holds:
 *
 * - Add fields, at any place, by IO_SINCE() with the version written from now
 *   on, and raise that version here.
 * - Leave fields that are no longer needed in their place: they are saved as
 *   something that older states hold, too, and ignored when loaded.
 *
 * A new section is in none of the older states: its oldest version is NEW.  If
 * the section is missing, its function is not called, and its part of the state
 * remains as after a reset.
 *
 * Raise a version only once for each release, however many fields are added.  A
 * state with a higher version or with an unknown section is refused.
 */
#ifndef QHCA_SECTIONS_H
#define QHCA_SECTIONS_H

#include <stdint.h>

#define QHCA_SECTION_NEW    0

/* Of each section, by its name (at most 8 characters): see above. */
enum qhca_section_version {
    /* the version written,  the oldest read */
    QHCA_WRITES_config = 3,     QHCA_READS_config = 3,
    QHCA_WRITES_regs = 3,       QHCA_READS_regs = 3,
    QHCA_WRITES_numbers = 1,    QHCA_READS_numbers = 1,
    QHCA_WRITES_gid = 1,        QHCA_READS_gid = 1,
    QHCA_WRITES_xrcd = 1,       QHCA_READS_xrcd = 1,
    QHCA_WRITES_eq = 2,         QHCA_READS_eq = 1,
    QHCA_WRITES_cq = 2,         QHCA_READS_cq = 2,
    QHCA_WRITES_admin = 2,      QHCA_READS_admin = 1,
    QHCA_WRITES_srq = 1,        QHCA_READS_srq = 1,
    QHCA_WRITES_mr = 1,         QHCA_READS_mr = 1,
    QHCA_WRITES_qp = 3,         QHCA_READS_qp = 2,
    QHCA_WRITES_wq = 1,         QHCA_READS_wq = QHCA_SECTION_NEW,
    QHCA_WRITES_mw = 1,         QHCA_READS_mw = 1,
    QHCA_WRITES_ethq = 3,       QHCA_READS_ethq = 2,
    QHCA_WRITES_shaper = 1,     QHCA_READS_shaper = QHCA_SECTION_NEW,
    QHCA_WRITES_rqt = 2,        QHCA_READS_rqt = 2,
    QHCA_WRITES_rss = 3,        QHCA_READS_rss = 2,
    QHCA_WRITES_port = 2,       QHCA_READS_port = 1,
    QHCA_WRITES_mcg = 1,        QHCA_READS_mcg = 1,
    QHCA_WRITES_flow = 1,       QHCA_READS_flow = 1,
    QHCA_WRITES_events = 1,     QHCA_READS_events = 1,
    QHCA_WRITES_work = 3,       QHCA_READS_work = 3,
    QHCA_WRITES_gro = 2,        QHCA_READS_gro = 2,
    QHCA_WRITES_end = 1,        QHCA_READS_end = 1,
};

/* The same functions save what their objects have in common. */
_Static_assert(QHCA_WRITES_qp == QHCA_WRITES_rss &&
               QHCA_WRITES_mr == QHCA_WRITES_mw,
               "sections qp and rss, mr and mw are raised together");

struct qhca_io;

struct qhca_section {
    const char *name;
    uint32_t writes;
    uint32_t reads;             /* QHCA_SECTION_NEW: may be missing */
    void (*fn)(struct qhca_io *io);
};

/* The section whose fields @function saves and loads. */
#define QHCA_SECTION(section, function)                                     \
    { .name = #section, .writes = QHCA_WRITES_##section,                    \
      .reads = QHCA_READS_##section, .fn = (function) }

#endif /* QHCA_SECTIONS_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking into the adapter: any object, its rings, its tables, decoded.
 *
 * A look changes nothing: no counter, nothing that is cached.  It reads guest
 * memory (rings and tables) by the ordinary DMA operation, so with an IOMMU
 * an address that is not mapped gives a fault there as any access would.
 *
 * What is seen goes to an emitter, so one decoder serves JSON, text and tests.
 */
#ifndef QHCA_INSPECT_H
#define QHCA_INSPECT_H

#include "../engine.h"

/*
 * Who takes what is seen.  Names are static; NULL inside a list.  Texts are on
 * loan.  begin() and end() go in pairs.
 */
struct qhca_emit {
    void *opaque;
    /* An object (or @list) begins. */
    void (*begin)(void *opaque, const char *name, bool list);
    void (*end)(void *opaque);
    /* A number; @hex: for people better in hexadecimal (addresses, keys). */
    void (*num)(void *opaque, const char *name, uint64_t val, bool hex);
    void (*flag)(void *opaque, const char *name, bool val);
    void (*text)(void *opaque, const char *name, const char *text);
};

enum qhca_object {
    QHCA_OBJ_DEVICE,
    QHCA_OBJ_QP,
    QHCA_OBJ_CQ,
    QHCA_OBJ_SRQ,
    QHCA_OBJ_EQ,
    QHCA_OBJ_MR,                /* number: key */
    QHCA_OBJ_PD,
    QHCA_OBJ_UAR,
    QHCA_OBJ_XRCD,
    QHCA_OBJ_GID,
    QHCA_OBJ_MCG,               /* no numbers: only all of them */
    QHCA_OBJ_ETH_SQ,
    QHCA_OBJ_ETH_RQ,
    QHCA_OBJ_WQ,                /* receive WQ */
    QHCA_OBJ_RQT,               /* indirection table of WQs */
    QHCA_OBJ_RSS,               /* QP that spreads; number: QPN */
    QHCA_OBJ_FLOW,              /* steering rule */
    QHCA_OBJ_MW,                /* memory window; number: key */
    QHCA_OBJECTS
};

enum qhca_ring {
    QHCA_RING_SQ,               /* QP; also the only ring of an Ethernet SQ */
    QHCA_RING_RQ,               /* QP; the only ring of WQ and Ethernet RQ */
    QHCA_RING_CQ,
    QHCA_RING_EQ,
    QHCA_RING_SRQ,              /* SRQ: WQEs by number */
    QHCA_RING_INDEX,            /* SRQ: index ring */
    QHCA_RING_OPS,              /* SRQ with tag matching */
    QHCA_RING_MR,               /* MR: not a ring, for walks only */
    QHCA_RINGS
};

#define QHCA_LOOK_MAX   1024    /* entries in one look, at most */

/** The name as in commands: "qp", "eth-sq"; static, NULL past the end. */
const char *qhca_object_name(enum qhca_object object);
const char *qhca_ring_name(enum qhca_ring ring);
/** The ring of @object if it has only one, else QHCA_RING_SQ or _SRQ. */
enum qhca_ring qhca_ring_default(enum qhca_object object);
/** Name of QHCA_STAT_*: "roce-tx-packets"; static, NULL: none. */
const char *qhca_stat_name(unsigned index);

/**
 * Show one object: its context decoded, the same raw, what the device keeps
 * beside it.  Returns NULL, or a static text that says what is wrong; then
 * nothing was emitted.
 */
const char *qhca_inspect(struct qhca *e, enum qhca_object object,
                         uint32_t number, const struct qhca_emit *em);
/**
 * Show all objects of a kind, a line each: an object with a list "objects", at
 * most @max of them from number @from on; "more" says whether there are more.
 */
const char *qhca_inspect_all(struct qhca *e, enum qhca_object object,
                             uint32_t from, uint32_t max,
                             const struct qhca_emit *em);

/*
 * Which entries of a ring.  Without @ranged the entries from consumer to
 * producer, but at least eight and at most sixty-four.
 */
struct qhca_ring_look {
    enum qhca_object object;
    uint32_t number;
    enum qhca_ring ring;
    bool ranged;
    uint32_t index;             /* counter of the first entry */
    uint32_t count;             /* at most QHCA_LOOK_MAX and the depth */
};

/** Show entries of a ring with marks; errors as above. */
const char *qhca_inspect_ring(struct qhca *e,
                              const struct qhca_ring_look *look,
                              const struct qhca_emit *em);

enum qhca_walk_by {
    QHCA_WALK_OFFSET,           /* at is a byte offset in the buffer */
    QHCA_WALK_INDEX,            /* at is the counter of an entry */
    QHCA_WALK_VA                /* MR: at is an address as SGEs name it */
};

struct qhca_walk_look {
    enum qhca_object object;
    uint32_t number;
    enum qhca_ring ring;
    enum qhca_walk_by by;
    uint64_t at;
    uint32_t entries;           /* of each table on the way, round the path */
    uint32_t bytes;             /* shown of what lies there, at most 256 */
};

/**
 * Walk a buffer table from the guest's memory alone, nothing cached, and show
 * each hop and the tables around them; errors as above.  What is wrong with
 * the table itself is part of what is shown ("fault").
 */
const char *qhca_inspect_walk(struct qhca *e,
                              const struct qhca_walk_look *look,
                              const struct qhca_emit *em);

struct qhca_tree_look {
    enum qhca_object object;
    uint32_t number;
    enum qhca_ring ring;
    uint64_t from;              /* the first page (LIST: segment) of interest */
    uint32_t max;               /* entries, of all tables together */
};

/**
 * Show a buffer table as a tree, from the guest's memory alone: each table with
 * its entries, those that name tables with the entries of these; "more" says
 * whether there are more pages behind the last one shown.  Errors as above;
 * what is wrong with the table is shown where it is ("fault").
 */
const char *qhca_inspect_tree(struct qhca *e,
                              const struct qhca_tree_look *look,
                              const struct qhca_emit *em);

#endif /* QHCA_INSPECT_H */

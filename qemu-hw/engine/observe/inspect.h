/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspecting the adapter: any object, its rings and its tables, decoded.
 *
 * Inspection changes nothing: no counter, no cache.  It reads guest memory
 * (rings and tables) by ordinary DMA, so with an IOMMU an unmapped address
 * raises a fault there, as any access would.
 *
 * The result goes to an emitter, so one decoder serves JSON, text and tests.
 */
#ifndef QHCA_INSPECT_H
#define QHCA_INSPECT_H

#include "../engine.h"

/*
 * Consumer of the output.  Names are static, and NULL inside a list.  Texts are
 * valid during the call.  Calls of begin() and end() are paired.
 */
struct qhca_emit {
    void *opaque;
    /* Begin an object or a list (@list). */
    void (*begin)(void *opaque, const char *name, bool list);
    void (*end)(void *opaque);
    /* A number; @hex: best shown in hexadecimal (addresses, keys). */
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
    QHCA_OBJ_MCG,               /* has no numbers: only all at once */
    QHCA_OBJ_ETH_SQ,
    QHCA_OBJ_ETH_RQ,
    QHCA_OBJ_WQ,                /* receive WQ */
    QHCA_OBJ_RQT,               /* indirection table */
    QHCA_OBJ_RSS,               /* RSS QP; number: QPN */
    QHCA_OBJ_FLOW,              /* steering rule */
    QHCA_OBJ_MW,                /* memory window; number: key */
    QHCA_OBJ_SHAPER,
    QHCA_OBJECTS
};

enum qhca_ring {
    QHCA_RING_SQ,               /* QP; also the only ring of an Ethernet SQ */
    QHCA_RING_RQ,               /* QP, WQ, Ethernet RQ */
    QHCA_RING_CQ,
    QHCA_RING_EQ,
    QHCA_RING_SRQ,              /* SRQ: WQEs by number */
    QHCA_RING_INDEX,            /* SRQ: index ring */
    QHCA_RING_OPS,              /* SRQ with tag matching */
    QHCA_RING_DATA,             /* Ethernet RQ that splits: payload */
    QHCA_RING_MR,               /* MR: not a ring, for walks only */
    QHCA_RINGS
};

#define QHCA_LOOK_MAX   1024    /* maximum number of entries shown */

/** Name used in commands: "qp", "eth-sq"; static, NULL past the end. */
const char *qhca_object_name(enum qhca_object object);
const char *qhca_ring_name(enum qhca_ring ring);
/** The ring of @object if it has only one, else QHCA_RING_SQ or _SRQ. */
enum qhca_ring qhca_ring_default(enum qhca_object object);
/** Name of QHCA_STAT_*: "roce-tx-packets"; static, NULL if there is none. */
const char *qhca_stat_name(unsigned index);

/**
 * Emit one object: its context, decoded and raw, and what the device keeps in
 * addition.  Returns NULL, or a static error text; nothing was emitted then.
 */
const char *qhca_inspect(struct qhca *e, enum qhca_object object,
                         uint32_t number, const struct qhca_emit *em);
/**
 * Emit a summary of all objects of a kind: an object with a list "objects", at
 * most @max of them from number @from on; "more" is true if there are more.
 * Errors as above.
 */
const char *qhca_inspect_all(struct qhca *e, enum qhca_object object,
                             uint32_t from, uint32_t max,
                             const struct qhca_emit *em);

/*
 * Which entries of a ring.  Without @ranged, those from consumer to producer,
 * but at least 8 and at most 64.
 */
struct qhca_ring_query {
    enum qhca_object object;
    uint32_t number;
    enum qhca_ring ring;
    bool ranged;
    uint32_t index;             /* free-running index of the first entry */
    uint32_t count;             /* at most QHCA_LOOK_MAX and the depth */
};

/** Emit entries of a ring and the state of each; errors as above. */
const char *qhca_inspect_ring(struct qhca *e,
                              const struct qhca_ring_query *look,
                              const struct qhca_emit *em);

enum qhca_walk_by {
    QHCA_WALK_OFFSET,           /* at is a byte offset in the buffer */
    QHCA_WALK_INDEX,            /* at is the free-running index of an entry */
    QHCA_WALK_VA                /* MR: at is an address as SGEs use it */
};

struct qhca_walk_look {
    enum qhca_object object;
    uint32_t number;
    enum qhca_ring ring;
    enum qhca_walk_by by;
    uint64_t at;
    uint32_t entries;           /* shown of each table on the path */
    uint32_t bytes;             /* of the data shown, at most 256 */
};

/**
 * Walk a buffer table from guest memory alone, without caches, and emit each
 * hop and its neighbours; errors as above.  An error in the table itself is
 * part of what is emitted ("error").
 */
const char *qhca_inspect_walk(struct qhca *e,
                              const struct qhca_walk_look *look,
                              const struct qhca_emit *em);

struct qhca_tree_look {
    enum qhca_object object;
    uint32_t number;
    enum qhca_ring ring;
    uint64_t from;              /* first page (LIST: segment) to show */
    uint32_t max;               /* maximum number of entries, in all */
};

/**
 * Emit a buffer table as a tree, from guest memory alone: each table with its
 * entries, and below each entry that points to a table, the entries of that
 * table; "more" is true if there are pages after the last one shown.  Errors as
 * above; an error in the table is emitted where it is ("error").
 */
const char *qhca_inspect_tree(struct qhca *e,
                              const struct qhca_tree_look *look,
                              const struct qhca_emit *em);

#endif /* QHCA_INSPECT_H */

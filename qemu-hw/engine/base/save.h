/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of an adapter as a stream of bytes, for snapshots and migration.
 *
 * A structure is written down once, as a function that hands each field to
 * IO(): the same function saves and loads, so the two cannot differ.  Each
 * field carries its type, each section its name and version.
 *
 * A saved state is as hostile as a packet: what is loaded must pass NEED() in
 * the same function before anybody uses it.  Pointers are saved as numbers of
 * objects.  What can be found again is not saved: counts of references,
 * caches of buffer tables, copies of WQEs that still lie in their rings.
 *
 * The debugger's state (breaks, steps) belongs to the developer, not to the
 * adapter, and is not saved.
 */
#ifndef QHCA_SAVE_H
#define QHCA_SAVE_H

#include "engine.h"
#include "base/idr.h"

struct qhca_io {
    struct qhca *e;
    bool saving;
    bool failed;
    /* the stream */
    uint8_t *out;               /* saving: grows */
    size_t room;
    const uint8_t *in;          /* loading */
    size_t len, pos;
    /* for the message: what is being done, and what is wrong */
    const char *what;
    uint32_t num;
    const char *why;
};

/* save_io.c: one field.  After a failure a field loads as 0. */
void qhca_io_bool(struct qhca_io *io, bool *v);
void qhca_io_u8(struct qhca_io *io, uint8_t *v);
void qhca_io_u16(struct qhca_io *io, uint16_t *v);
void qhca_io_u32(struct qhca_io *io, uint32_t *v);
void qhca_io_u64(struct qhca_io *io, uint64_t *v);
void qhca_io_bytes(struct qhca_io *io, void *p, size_t len);

#define IO(io, field) _Generic((field), bool : qhca_io_bool,            \
    uint8_t : qhca_io_u8, uint16_t : qhca_io_u16,                       \
    uint32_t : qhca_io_u32, uint64_t : qhca_io_u64)(io, &(field))

/* A section begins; on loading it must be this one, in this version. */
void qhca_io_section(struct qhca_io *io, const char *name, uint32_t version);
bool qhca_io_need(struct qhca_io *io, bool ok, const char *why);
/*
 * Loading: fail with @why unless @ok, which is not looked at when something
 * failed before.  Is whether all is well so far.
 */
#define NEED(io, ok, why) ((io)->saving || (io)->failed ?                   \
                           !(io)->failed : qhca_io_need(io, ok, why))
/* Which object the next message is about. */
static inline void qhca_io_about(struct qhca_io *io, const char *what,
                                 uint32_t num)
{
    if (!io->failed) {
        io->what = what;
        io->num = num;
    }
}
/*
 * An object by number, or none: saves whether it is there and @num.  Returns
 * the object of table @t, or NULL: none, or failed.
 */
void *qhca_io_ref(struct qhca_io *io, struct qhca_idr *t, bool is,
                  uint32_t num, const char *why);
/*
 * The numbers of a table, before its objects: which were never given out, and
 * in what order freed ones will be.
 */
void qhca_io_table(struct qhca_io *io, struct qhca_idr *t);
/* Loading: object @obj gets number @num; false: failed. */
bool qhca_io_place(struct qhca_io *io, struct qhca_idr *t, void *obj,
                   uint32_t num);
/* Loading: is every number that was given out either used or free? */
void qhca_io_table_end(struct qhca_io *io, const struct qhca_idr *t);
/*
 * All objects of @t that @is(obj), or all: fn(io, obj), on loading with NULL.
 */
void qhca_io_each(struct qhca_io *io, struct qhca_idr *t,
                  bool (*is)(const void *obj),
                  void (*fn)(struct qhca_io *io, void *obj));

/*
 * Who adds a field to a structure finds out here: it must be handed to IO()
 * where the others of the structure are, or be such that a loaded adapter can
 * do without it.  Then put the new size there.
 */
#if UINTPTR_MAX == UINT64_MAX
#define SAVED_SIZE(type, size) _Static_assert(sizeof(type) == (size),   \
    #type " has changed: save the new field, too; see save.h")
#else
#define SAVED_SIZE(type, size) _Static_assert(1, "")
#endif

#endif /* QHCA_SAVE_H */

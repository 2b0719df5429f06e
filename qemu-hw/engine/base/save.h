/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of an adapter as a byte stream, for snapshots and migration.
 *
 * Each structure is described once, by a function that passes each field to
 * IO(): the same function saves and loads, so the two cannot diverge.  Each
 * field carries its type, each section its name, version and length.
 *
 * A state that an earlier release saved is loaded, too: see sections.h.
 *
 * Saved state is as untrusted as a packet: each loaded value must pass NEED()
 * in the same function before it is used.  Pointers are saved as object
 * numbers.  Anything that can be recomputed is not saved: reference counts,
 * buffer table caches, copies of WQEs that are still in their rings.
 *
 * The debugger's state (breaks, steps) belongs to the developer, not to the
 * adapter, and is not saved.
 */
#ifndef QHCA_SAVE_H
#define QHCA_SAVE_H

#include "engine.h"
#include "base/idr.h"
#include "base/sections.h"

struct qhca_io {
    struct qhca *e;
    bool saving;
    bool failed;
    /* the stream */
    uint8_t *out;               /* saving: grows */
    size_t room;
    const uint8_t *in;          /* loading */
    size_t len, pos;            /* @len: to the end of the section */
    uint32_t version;           /* of the section */
    /* for the error message: the object being processed, and what is wrong */
    const char *what;
    uint32_t num;
    const char *why;
    char text[128];             /* of a message with numbers */
};

/* Save or load one field.  After a failure, fields load as 0. */
void qhca_io_bool(struct qhca_io *io, bool *v);
void qhca_io_u8(struct qhca_io *io, uint8_t *v);
void qhca_io_u16(struct qhca_io *io, uint16_t *v);
void qhca_io_u32(struct qhca_io *io, uint32_t *v);
void qhca_io_u64(struct qhca_io *io, uint64_t *v);
void qhca_io_bytes(struct qhca_io *io, void *p, size_t len);

#define IO(io, field) _Generic((field), bool : qhca_io_bool,            \
    uint8_t : qhca_io_u8, uint16_t : qhca_io_u16,                       \
    uint32_t : qhca_io_u32, uint64_t : qhca_io_u64)(io, &(field))

/*
 * A field that the section has since @since (see sections.h).  From an older
 * state it is not loaded: it keeps its value, which is what a reset or the
 * creation of the object gives, 0 unless set before.
 */
#define IO_SINCE(io, since, field) do {                                     \
    if ((io)->version >= (since)) {                                         \
        IO(io, field);                                                      \
    }                                                                       \
} while (0)

/*
 * Save or load the @n sections @s, in this order, up to a failure.  Loading
 * fails, with the names and the versions, at a section that is not in @s, is of
 * a version that is not read, or is missing; and if a function has not consumed
 * exactly the length of its section.  Sections do not nest.
 */
void qhca_io_sections(struct qhca_io *io, const struct qhca_section *s,
                      unsigned n);
/* Use NEED(), which skips evaluating @ok after a failure. */
bool qhca_io_need(struct qhca_io *io, bool ok, const char *why);
/*
 * Loading: fail with @why (static text) unless @ok.  @ok is not evaluated after
 * an earlier failure.  Evaluates to true if nothing has failed so far.
 */
#define NEED(io, ok, why) ((io)->saving || (io)->failed ?                   \
                           !(io)->failed : qhca_io_need(io, ok, why))
/* Name the object that the next error message is about. */
static inline void qhca_io_about(struct qhca_io *io, const char *what,
                                 uint32_t num)
{
    if (!io->failed) {
        io->what = what;
        io->num = num;
    }
}
/*
 * An optional reference: saves @is and @num.  Returns the object of @t, or NULL
 * if there is none or loading failed with @why.
 */
void *qhca_io_ref(struct qhca_io *io, struct qhca_idr *t, bool is,
                  uint32_t num, const char *why);
/*
 * The same for a reference that there always is.  Without it, loading fails
 * with @why; NULL: loading has failed.
 */
void *qhca_io_must_ref(struct qhca_io *io, struct qhca_idr *t, uint32_t num,
                       const char *why);
/*
 * The numbers of a table, saved before its objects: which were never handed
 * out, and in which order freed ones will be reused.
 */
void qhca_io_numbers(struct qhca_io *io, struct qhca_idr *t);
/* Loading: assign number @num to @obj; false: failed. */
bool qhca_io_place(struct qhca_io *io, struct qhca_idr *t, void *obj,
                   uint32_t num);
/*
 * The same, but @num may also be below the first that is handed out: UAR 0, EQ
 * 0, and the GSI QP, which the caller has checked.  In other tables such a
 * number means that there is no object.
 */
bool qhca_io_place_low(struct qhca_io *io, struct qhca_idr *t, void *obj,
                       uint32_t num);
/* Loading: check that each number handed out is either in use or free. */
void qhca_io_numbers_end(struct qhca_io *io, const struct qhca_idr *t);
/*
 * Save or load all objects of @t for which @is(obj) holds (NULL: all) by fn(io,
 * obj); when loading, obj is NULL.
 */
void qhca_io_each(struct qhca_io *io, struct qhca_idr *t,
                  bool (*is)(const void *obj),
                  void (*fn)(struct qhca_io *io, void *obj));

/*
 * Fails the build when a field is added to a structure that is saved in
 * @section, which is in @version now.  Pass the new field to IO_SINCE() with
 * the other fields of the structure, and raise the section's version in
 * sections.h; a field that a loaded adapter can do without needs neither.  Then
 * update size and version.
 */
#define SAVED_SIZE(type, size, section, version) _Static_assert(            \
    QHCA_IS_SIZE(type, size) && QHCA_WRITES_##section == (version),         \
    #type " has changed, or section " #section ", which had version "       \
    #version ": pass a new field to IO_SINCE(), raise the version of "      \
    "section " #section " in sections.h, then state both here")
/* The same for a structure with fields in several sections. */
#define SAVED_SIZE_OF_MANY(type, size) _Static_assert(                      \
    QHCA_IS_SIZE(type, size), #type " has changed: pass a new field to "    \
    "IO_SINCE(), raise the version of its section in sections.h, then "     \
    "state the size here")

#if UINTPTR_MAX == UINT64_MAX
#define QHCA_IS_SIZE(type, size) (sizeof(type) == (size))
#else
#define QHCA_IS_SIZE(type, size) true
#endif

#endif /* QHCA_SAVE_H */

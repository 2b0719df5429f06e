/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state, the encoding: fields, sections, object numbers. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/save.h"

/* Field types; an integer's type is its size. */
#define TYPE_BOOL           'b'
#define TYPE_BYTES          'B'
#define TYPE_SECTION        'S'

#define NAME_LEN            8       /* of a section, padded by zeros */

bool qhca_io_need(struct qhca_io *io, bool ok, const char *why)
{
    if (!io->saving && !io->failed && !ok) {
        io->failed = true;
        io->why = why;
    }
    return !io->failed;
}

static void io_put(struct qhca_io *io, const void *p, size_t len)
{
    size_t room = io->room ? io->room : 4096;
    uint8_t *out;

    if (io->failed) {
        return;
    }
    if (len > io->room - io->len) {
        while (room - io->len < len) {
            room *= 2;
        }
        out = realloc(io->out, room);
        if (!out) {
            io->failed = true;
            io->why = "out of memory";
            return;
        }
        io->out = out;
        io->room = room;
    }
    memcpy(io->out + io->len, p, len);
    io->len += len;
}

/* Yields zeros if fewer than @len bytes are left. */
static void io_get(struct qhca_io *io, void *p, size_t len)
{
    if (NEED(io, len <= io->len - io->pos, io->version ?
             "the section ends too early" : "the state ends too early")) {
        memcpy(p, io->in + io->pos, len);
        io->pos += len;
    } else {
        memset(p, 0, len);
    }
}

/* Write a type byte, or check that it is @is. */
static void io_mark(struct qhca_io *io, uint8_t is)
{
    uint8_t seen;

    if (io->saving) {
        io_put(io, &is, 1);
    } else {
        io_get(io, &seen, 1);
        NEED(io, seen == is, "a field has the wrong type");
    }
}

static void io_number(struct qhca_io *io, uint64_t *v, unsigned size)
{
    uint8_t b[8];
    unsigned i;

    io_mark(io, (uint8_t)size);
    if (io->saving) {
        for (i = 0; i < size; i++) {
            b[i] = (uint8_t)(*v >> 8 * i);
        }
        io_put(io, b, size);
        return;
    }
    io_get(io, b, size);
    for (*v = 0, i = 0; i < size; i++) {
        *v |= (uint64_t)b[i] << 8 * i;
    }
    if (io->failed) {
        *v = 0;
    }
}

void qhca_io_bool(struct qhca_io *io, bool *v)
{
    uint8_t b = *v;

    io_mark(io, TYPE_BOOL);
    if (io->saving) {
        io_put(io, &b, 1);
        return;
    }
    io_get(io, &b, 1);
    *v = NEED(io, b <= 1, "a flag is neither 0 nor 1") && b;
}

void qhca_io_u8(struct qhca_io *io, uint8_t *v)
{
    uint64_t n = *v;

    io_number(io, &n, 1);
    *v = (uint8_t)n;
}

void qhca_io_u16(struct qhca_io *io, uint16_t *v)
{
    uint64_t n = *v;

    io_number(io, &n, 2);
    *v = (uint16_t)n;
}

void qhca_io_u32(struct qhca_io *io, uint32_t *v)
{
    uint64_t n = *v;

    io_number(io, &n, 4);
    *v = (uint32_t)n;
}

void qhca_io_u64(struct qhca_io *io, uint64_t *v)
{
    io_number(io, v, 8);
}

void qhca_io_bytes(struct qhca_io *io, void *p, size_t len)
{
    uint64_t n = len;

    io_mark(io, TYPE_BYTES);
    io_number(io, &n, 4);
    if (io->saving) {
        io_put(io, p, len);
    } else {
        NEED(io, n == len, "a byte block has the wrong size");
        io_get(io, p, len);
    }
}

/* ---- sections ---- */

/* Loading has failed with this text, which is formatted. */
static void io_refuse(struct qhca_io *io, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void io_refuse(struct qhca_io *io, const char *format, ...)
{
    va_list args;

    if (!io->failed) {
        va_start(args, format);
        vsnprintf(io->text, sizeof(io->text), format, args);
        va_end(args);
        qhca_io_need(io, false, io->text);
    }
}

static void save_section(struct qhca_io *io, const struct qhca_section *s)
{
    char name[NAME_LEN] = "";
    uint32_t len = 0;
    size_t start;
    unsigned i;

    for (i = 0; i < sizeof(name) && s->name[i]; i++) {
        name[i] = s->name[i];
    }
    io->version = s->writes;
    io_mark(io, TYPE_SECTION);
    io_put(io, name, sizeof(name));
    IO(io, io->version);
    IO(io, len);
    start = io->len;
    s->fn(io);
    if (io->failed) {
        return;
    }
    if (io->len - start > UINT32_MAX) {
        io->failed = true;
        return;
    }
    for (i = 0; i < 4; i++) {
        io->out[start - 4 + i] = (uint8_t)((io->len - start) >> 8 * i);
    }
}

/* Loading: the next section's name, ended by a 0. */
static void load_name(struct qhca_io *io, char name[NAME_LEN + 1])
{
    io_mark(io, TYPE_SECTION);
    io_get(io, name, NAME_LEN);
    name[NAME_LEN] = 0;
}

/* Load what follows the name of section @s. */
static void load_section(struct qhca_io *io, const struct qhca_section *s)
{
    size_t end = io->len;
    uint32_t version = 0, len = 0;

    IO(io, version);
    if (!version || version < s->reads || version > s->writes) {
        io_refuse(io, "the section has version %" PRIu32 ", and this release "
                  "reads %" PRIu32 " to %" PRIu32 ": the state is of %s",
                  version, s->reads ? s->reads : 1, s->writes,
                  version > s->writes ? "a newer release" : "one too old");
    }
    IO(io, len);
    if (!NEED(io, len <= io->len - io->pos, "the state ends too early")) {
        return;
    }
    io->version = version;
    io->len = io->pos + len;
    s->fn(io);
    NEED(io, io->pos == io->len, "the section is longer than its fields");
    io->len = end;
    io->version = 0;
}

/* Section @name comes where another was expected; @s: all sections. */
static void wrong_section(struct qhca_io *io, const struct qhca_section *s,
                          unsigned n, char *name)
{
    uint32_t version = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        if (!strcmp(s[i].name, name)) {
            io_refuse(io, "another section comes here: %s", name);
        }
    }
    IO(io, version);
    for (i = 0; name[i]; i++) {
        name[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '?';
    }
    io_refuse(io, "an unknown section comes here: %s, version %" PRIu32
              ": the state is of a newer release", name, version);
}

void qhca_io_sections(struct qhca_io *io, const struct qhca_section *s,
                      unsigned n)
{
    char name[NAME_LEN + 1] = "";
    bool named = false;         /* of the section that is next */
    unsigned i;

    for (i = 0; i < n && !io->failed; i++) {
        qhca_io_about(io, s[i].name, 0);
        if (io->saving) {
            save_section(io, &s[i]);
            continue;
        }
        if (!named && (s[i].reads || io->pos != io->len)) {
            load_name(io, name);
            named = true;
        }
        if (named && !strcmp(s[i].name, name)) {
            load_section(io, &s[i]);
            named = false;
        } else if (s[i].reads) {
            wrong_section(io, s, n, name);
        }
    }
    if (named) {
        wrong_section(io, s, n, name);
    }
}

/* ---- object numbers ---- */

void *qhca_io_ref(struct qhca_io *io, struct qhca_idr *t, bool is,
                  uint32_t num, const char *why)
{
    void *obj = NULL;

    IO(io, is);
    if (is) {
        IO(io, num);
        obj = qhca_idr_get(t, num);
        NEED(io, obj, why);
    }
    return obj;
}

void *qhca_io_must_ref(struct qhca_io *io, struct qhca_idr *t, uint32_t num,
                       const char *why)
{
    void *obj = NULL;
    bool is = true;

    IO(io, is);
    if (NEED(io, is, why)) {
        IO(io, num);
        obj = qhca_idr_get(t, num);
        NEED(io, obj, why);
    }
    return obj;
}

void qhca_io_numbers(struct qhca_io *io, struct qhca_idr *t)
{
    uint8_t *seen = NULL;
    uint32_t i, n, at, max = t->max, fresh = t->fresh, count = t->count;

    IO(io, max);
    IO(io, fresh);
    IO(io, count);
    if (!NEED(io, max <= t->size && t->first <= max && fresh >= t->first &&
              fresh <= max && count <= fresh - t->first,
              "the object numbers do not fit the table")) {
        return;
    }
    if (!io->saving) {
        t->max = max;
        t->fresh = fresh;
        t->count = count;
        t->head = 0;
        seen = calloc(t->max / 8 + 1, 1);
        NEED(io, seen, "out of memory");
    }
    for (i = 0; i < t->count && !io->failed; i++) {
        at = t->head + i;
        at = at >= t->size ? at - t->size : at;
        n = t->fifo[at];
        IO(io, n);
        if (io->saving) {
            continue;
        }
        if (NEED(io, n >= t->first && n < t->fresh &&
                 !(seen[n / 8] & 1 << n % 8),
                 "a free number is out of range or duplicate")) {
            seen[n / 8] |= (uint8_t)(1 << n % 8);
            t->fifo[at] = n;
        }
    }
    free(seen);
    if (io->failed) {
        t->count = 0;
    }
}

bool qhca_io_place_low(struct qhca_io *io, struct qhca_idr *t, void *obj,
                       uint32_t num)
{
    if (!NEED(io, num < t->max && (num < t->first || num < t->fresh) &&
              !t->slot[num], "an object's number is taken or out of range")) {
        return false;
    }
    t->slot[num] = obj;
    t->used++;
    return true;
}

bool qhca_io_place(struct qhca_io *io, struct qhca_idr *t, void *obj,
                   uint32_t num)
{
    return NEED(io, num >= t->first, "an object's number is reserved") &&
           qhca_io_place_low(io, t, obj, num);
}

void qhca_io_numbers_end(struct qhca_io *io, const struct qhca_idr *t)
{
    uint32_t n, given = t->fresh - t->first, low = 0;

    for (n = 0; n < t->first; n++) {
        low += t->slot[n] != NULL;
    }
    NEED(io, t->used - low + t->count == given, "an object number is missing");
    for (n = 0; n < t->count && !io->failed; n++) {
        NEED(io, !t->slot[t->fifo[n]], "an object's number is marked free");
    }
}

void qhca_io_each(struct qhca_io *io, struct qhca_idr *t,
                  bool (*is)(const void *obj),
                  void (*fn)(struct qhca_io *io, void *obj))
{
    uint32_t i, n = 0;

    for (i = 0; io->saving && i < qhca_idr_end(t); i++) {
        n += t->slot[i] && (!is || is(t->slot[i]));
    }
    IO(io, n);
    if (io->saving) {
        for (i = 0; i < qhca_idr_end(t); i++) {
            if (t->slot[i] && (!is || is(t->slot[i]))) {
                fn(io, t->slot[i]);
            }
        }
        return;
    }
    NEED(io, n <= t->max, "too many objects");
    for (i = 0; i < n && !io->failed; i++) {
        fn(io, NULL);
    }
}

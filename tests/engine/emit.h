/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An emitter for tests: output as lines "path = value", with numbered list
 * entries: "window.0.opcode_name = SEND".
 */
#ifndef QHCA_TEST_EMIT_H
#define QHCA_TEST_EMIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "observe/inspect.h"

#define EMIT_DEPTH 16

struct seen {
    char *text;                 /* lines */
    size_t len;
    unsigned depth;
    char prefix[EMIT_DEPTH][256];
    bool list[EMIT_DEPTH];
    unsigned count[EMIT_DEPTH];
    struct qhca_emit em;
};

static inline void seen_path(struct seen *s, const char *name, char *out,
                             size_t size)
{
    size_t n = 0;
    unsigned i;

    out[0] = 0;
    for (i = 1; i < s->depth; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s.", s->prefix[i]);
    }
    if (s->depth && s->list[s->depth - 1]) {
        CHECK(!name, "a name in a list: %s", name);
        snprintf(out + n, size - n, "%u", s->count[s->depth - 1]++);
    } else {
        CHECK(name || !s->depth, "no name in an object");
        snprintf(out + n, size - n, "%s", name ? name : "");
    }
}

static inline void seen_line(struct seen *s, const char *name,
                             const char *val)
{
    char path[256];
    size_t n;

    CHECK(s->depth, "a value outside of everything");
    seen_path(s, name, path, sizeof(path));
    n = strlen(path) + strlen(val) + 8;
    s->text = realloc(s->text, s->len + n);
    s->len += (size_t)snprintf(s->text + s->len, n, "\n%s = %s\n", path, val);
    s->text[s->len] = 0;
}

static inline void seen_begin(void *opaque, const char *name, bool list)
{
    struct seen *s = opaque;
    char path[256];
    char *last;

    CHECK(s->depth < EMIT_DEPTH, "too deep");
    seen_path(s, name, path, sizeof(path));
    last = strrchr(path, '.');
    snprintf(s->prefix[s->depth], sizeof(s->prefix[0]), "%s",
             last ? last + 1 : path);
    s->list[s->depth] = list;
    s->count[s->depth] = 0;
    s->depth++;
}

static inline void seen_end(void *opaque)
{
    struct seen *s = opaque;

    CHECK(s->depth, "an end too many");
    s->depth--;
}

static inline void seen_num(void *opaque, const char *name, uint64_t val,
                            bool hex)
{
    char text[32];

    snprintf(text, sizeof(text), hex ? "0x%llx" : "%llu",
             (unsigned long long)val);
    seen_line(opaque, name, text);
}

static inline void seen_flag(void *opaque, const char *name, bool val)
{
    seen_line(opaque, name, val ? "true" : "false");
}

static inline void seen_text(void *opaque, const char *name,
                             const char *text)
{
    seen_line(opaque, name, text);
}

/* Empty @s; pass &s->em to an inspection function. */
static inline const struct qhca_emit *seen_start(struct seen *s)
{
    free(s->text);
    memset(s, 0, sizeof(*s));
    s->text = calloc(1, 1);
    s->em = (struct qhca_emit){
        .opaque = s, .begin = seen_begin, .end = seen_end, .num = seen_num,
        .flag = seen_flag, .text = seen_text,
    };
    return &s->em;
}

/* The value at @path, or NULL; valid until the next call. */
static inline const char *seen_get(const struct seen *s, const char *path)
{
    static char val[4096];
    char key[256];
    const char *p, *end;

    snprintf(key, sizeof(key), "\n%s = ", path);
    p = strstr(s->text, key);
    if (!p) {
        return NULL;
    }
    p += strlen(key);
    end = strchr(p, '\n');
    snprintf(val, sizeof(val), "%.*s", (int)(end - p), p);
    return val;
}

/* Check that the value at @path is @want. */
#define SEEN(s, path, want) do { \
        const char *got_ = seen_get(s, path); \
        CHECK(got_, "%s is not shown:%s", path, (s)->text); \
        CHECK(!strcmp(got_, want), "%s is %s, not %s", path, got_, want); \
    } while (0)
#define SEEN_NUM(s, path, val) do { \
        char want_[24]; \
        snprintf(want_, sizeof(want_), "%llu", (unsigned long long)(val)); \
        SEEN(s, path, want_); \
    } while (0)
#define SEEN_HEX(s, path, val) do { \
        char want_[24]; \
        snprintf(want_, sizeof(want_), "0x%llx", \
                 (unsigned long long)(val)); \
        SEEN(s, path, want_); \
    } while (0)
#define UNSEEN(s, path) assert_null(seen_get(s, path))

#endif

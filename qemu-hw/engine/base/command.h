/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands, as adapter/admin.c passes them to their handlers.
 *
 * A command checks everything before it changes anything: a command that fails
 * has no effect.
 */
#ifndef QHCA_COMMAND_H
#define QHCA_COMMAND_H

#include "engine.h"

/*
 * Internal status, never sent to software: the command used up its share and is
 * unfinished.  It is called again with the same input and c->again set,
 * possibly by another adapter that has loaded this one's state.
 */
#define QHCA_ST_AGAIN       0xff

struct qhca_cmd {
    bool again;
    uint32_t obj;               /* of the command; a handler may set it */
    uint64_t mask, arg;
    const void *in;             /* a private copy of the input */
    uint32_t in_len;
    void *out;                  /* zeroed, as large as the structure */
    uint64_t result;
};

/* Fail: the input field at @off is out of range. */
static inline uint8_t qhca_bad(struct qhca_cmd *c, size_t off)
{
    c->result = off;
    return QHCA_ST_BAD_PARAM;
}

/* Fail: the object that the input field at @off specifies does not exist. */
static inline uint8_t qhca_bad_obj(struct qhca_cmd *c, size_t off)
{
    c->result = off;
    return QHCA_ST_BAD_OBJ;
}

typedef uint8_t qhca_cmd_fn(struct qhca *e, struct qhca_cmd *c);

#endif /* QHCA_COMMAND_H */

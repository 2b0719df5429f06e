/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands, as adapter/admin.c hands them to the file of the object.
 *
 * A command checks everything before it changes anything: one that fails has
 * no effect.
 */
#ifndef QHCA_COMMAND_H
#define QHCA_COMMAND_H

#include "engine.h"

/*
 * No status of the wire: the command has done its share and is not finished.
 * It is called again with the same input and c->again set, perhaps by another
 * adapter that has loaded this one's state.
 */
#define QHCA_ST_AGAIN       0xff

struct qhca_cmd {
    bool again;
    uint32_t obj;               /* of the command; may be set by it */
    uint64_t mask, arg;
    const void *in;             /* a private copy of the input */
    uint32_t in_len;
    void *out;                  /* zeroed, of the structure's size */
    uint64_t result;
};

/* The field at @off of the input is out of range. */
static inline uint8_t qhca_bad(struct qhca_cmd *c, size_t off)
{
    c->result = off;
    return QHCA_ST_BAD_PARAM;
}

/* The field at @off of the input names no object. */
static inline uint8_t qhca_bad_obj(struct qhca_cmd *c, size_t off)
{
    c->result = off;
    return QHCA_ST_BAD_OBJ;
}

typedef uint8_t qhca_cmd_fn(struct qhca *e, struct qhca_cmd *c);

#endif /* QHCA_COMMAND_H */

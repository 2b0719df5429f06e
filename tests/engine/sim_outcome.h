/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a run of the simulation has brought: the completions of each queue, in
 * order, and the contents of memory at the end.  Two runs of one seed whose
 * work does not depend on time must bring the same, whatever carried packets.
 */
#ifndef QHCA_TEST_SIM_OUTCOME_H
#define QHCA_TEST_SIM_OUTCOME_H

#include "guest.h"

#define OUTCOME_NAME 48

/* A queue: CQEs, without what may differ; or a buffer: bytes. */
struct outcome_part {
    char name[OUTCOME_NAME];
    bool memory;
    size_t len, cap;
    uint8_t *data;
};

/* Differences to make, which a comparison must find. */
enum outcome_spoil {
    SPOIL_NOTHING, SPOIL_MEMORY, SPOIL_COMPLETION, SPOIL_ORDER, SPOIL_LOSS,
};

struct outcome {
    struct outcome_part *part;
    unsigned parts;
    enum outcome_spoil spoil;
    uint64_t cqes, bytes;       /* completions, bytes of memory */
};

/* The number of this name; -1: there is none. */
int outcome_spoil_named(const char *name);
/* @name must be unique for the queue, and the same in each run. */
void outcome_cqe(struct outcome *o, const char *name,
                 const struct qhca_cqe *cqe);
void outcome_memory(struct outcome *o, const char *name, struct gbuf *b);
/* Die with the first difference between the runs, if there is one. */
void outcome_compare(struct outcome *wire, struct outcome *linked);
void outcome_free(struct outcome *o);

#endif

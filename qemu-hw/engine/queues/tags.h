/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tag matching: an SRQ with QHCA_SRQ_F_TM has a list of tags with buffers
 * (tag_list.c), changed by operations from a ring (tag_ops.c).
 */
#ifndef QHCA_TAGS_H
#define QHCA_TAGS_H

#include "memory/memory.h"

struct qhca_srq;

/* Limit on the entries of all lists together, as guests decide their number. */
#define QHCA_TM_TOTAL_TAGS  262144
#define QHCA_TM_NONE        0xffff

#define QHCA_TM_HEADERS     (sizeof(struct qhca_tmh) + \
                             sizeof(struct qhca_rvh))

enum qhca_tag_state {
    QHCA_TAG_FREE,
    QHCA_TAG_LISTED,
    QHCA_TAG_TAKEN              /* a message is being received into it */
};

struct qhca_tag {
    uint64_t tag, mask, wr_id;
    uint32_t handle;
    uint32_t cap;               /* bytes of the buffer, at most UINT32_MAX */
    uint16_t prev, next;        /* in the list, or QHCA_TM_NONE */
    uint8_t state;              /* enum qhca_tag_state */
    uint8_t num_sge;
    struct qhca_sge sge[QHCA_TM_MAX_SGE];   /* as in memory */
};

/* Tag matching state of an SRQ. */
struct qhca_tm {
    struct qhca_srq *srq;
    struct qhca_list work;      /* in e->q->tm_work: has operations */
    struct qhca_buf_table ops;
    uint8_t ops_shift, ops_stride;
    uint32_t ops_head, ops_tail;
    uint32_t max_tags, count;   /* count: entries in the list */
    uint16_t first, last;
    uint16_t inactive;          /* first inactive entry; all after it are too */
    uint32_t seen, told;        /* counters of unexpected messages */
    struct qhca_tag tags[];
};
/* ---- tag_list.c ---- */
/*
 * Create the tag list of @srq as @in requests.  Returns QHCA_ST_*; *@bad gets
 * the offset of an invalid field.
 */
uint8_t qhca_tm_create(struct qhca *e, struct qhca_srq *srq,
                       const struct qhca_srqc *in, size_t *bad);
/* Free the tag list of @srq. */
void qhca_tm_free(struct qhca *e, struct qhca_srq *srq);
/* Fill in the tag matching fields; @srq must be a TM SRQ. */
void qhca_tm_query(const struct qhca_srq *srq, struct qhca_srqc *out);
/* Append entry number @num, which is free and filled in. */
void qhca_tm_append(struct qhca_tm *tm, uint16_t num);
/* Remove an entry from the list. */
void qhca_tm_unlink(struct qhca_tm *tm, struct qhca_tag *t);
/* The oldest active entry that matches @tag, or NULL. */
struct qhca_tag *qhca_tm_match(struct qhca *e, struct qhca_tm *tm,
                               uint64_t tag);
/* A counter changed: activate all entries if the counters are now equal. */
static inline void qhca_tm_sync(struct qhca_tm *tm)
{
    if (tm->seen == tm->told) {
        tm->inactive = QHCA_TM_NONE;
    }
}

/* ---- tag_ops.c ---- */
/* Does an operation have room for a tag with @n segments? */
bool qhca_tag_fits(const struct qhca_tm *tm, uint32_t n);
/* Set @t->cap, once the segments are filled in. */
void qhca_tag_measure(struct qhca_tag *t);
/* QHCA_DB_TM: @index is the producer index of the operation ring. */
void qhca_tm_doorbell(struct qhca *e, struct qhca_srq *srq, uint32_t index);
/* Execute up to @budget pending operations; returns how many. */
unsigned qhca_tm_run(struct qhca *e, unsigned budget);

/* ---- save_tags.c ---- */
/* Save or load entry @num, as it was added. */
void qhca_io_tag(struct qhca_io *io, struct qhca_tm *tm, uint32_t num);

#endif /* QHCA_TAGS_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains and user access regions: just numbers with a reference
 * count, to which the slot points.
 */
#include "memory/memory.h"

static uint8_t number_alloc(struct qhca_idr *t, uint32_t *refs,
                            struct qhca_cmd *c)
{
    if (!qhca_idr_add(t, refs, &c->obj)) {
        return QHCA_ST_NO_RESOURCES;
    }
    t->slot[c->obj] = &refs[c->obj];
    refs[c->obj] = 0;
    return QHCA_ST_OK;
}

static uint8_t number_free(struct qhca_idr *t, struct qhca_cmd *c)
{
    const uint32_t *refs = qhca_idr_get(t, c->obj);

    if (!refs) {
        return QHCA_ST_BAD_OBJ;
    }
    if (*refs) {
        return QHCA_ST_BUSY;
    }
    qhca_idr_del(t, c->obj);
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_alloc_uar(struct qhca *e, struct qhca_cmd *c)
{
    return number_alloc(&e->mem->uars, e->mem->uar_refs, c);
}

uint8_t qhca_cmd_free_uar(struct qhca *e, struct qhca_cmd *c)
{
    /* UAR 0 belongs to the kernel: it is never allocated nor freed. */
    return c->obj ? number_free(&e->mem->uars, c) : QHCA_ST_BAD_OBJ;
}

uint8_t qhca_cmd_alloc_pd(struct qhca *e, struct qhca_cmd *c)
{
    return number_alloc(&e->mem->pds, e->mem->pd_refs, c);
}

uint8_t qhca_cmd_free_pd(struct qhca *e, struct qhca_cmd *c)
{
    return number_free(&e->mem->pds, c);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state: buffer tables and memory regions. */
#include <stdlib.h>

#include "memory/memory.h"

void qhca_io_buf(struct qhca_io *io, struct qhca_buf_table *m, uint64_t need,
                 bool queue)
{
    struct qhca_buf d;
    uint8_t kind = m->kind;
    bool is = m->len;

    IO(io, kind);
    IO(io, is);
    NEED(io, kind < QHCA_DMAS, "a buffer has an unknown kind");
    if (io->saving && is) {
        qhca_buf_table_describe(m, &d);
    }
    if (!io->saving) {
        memset(m, 0, sizeof(*m));
    }
    if (is) {
        qhca_io_bytes(io, &d, sizeof(d));
        NEED(io, io->saving || io->failed ||
             qhca_buf_table_init(m, &d, need, queue) == QHCA_ST_OK,
             "a buffer table is not allowed");
    }
    m->kind = kind;
}

static bool saved_is_region(const void *obj)
{
    return !(((const struct qhca_mr *)obj)->flags & QHCA_MR_F_MW);
}

void qhca_io_key(struct qhca_io *io, struct qhca_mr *m)
{
    IO(io, m->key);
    qhca_io_about(io, "MR", m->key >> QHCA_KEY_INDEX_SHIFT);
    IO(io, m->pd);
    IO(io, m->access);
    IO(io, m->flags);
    IO(io, m->state);
    IO(io, m->iova);
    IO(io, m->len);
    NEED(io, qhca_idr_get(&io->e->mem->pds, m->pd), "its PD does not exist");
    NEED(io, m->state == QHCA_MR_VALID || m->state == QHCA_MR_FREE,
         "its state is unknown");
}

static void save_mr(struct qhca_io *io, void *obj)
{
    struct qhca_mr tmp = { 0 }, *m = obj ? obj : &tmp;

    qhca_io_key(io, m);
    IO(io, m->max_entries);
    qhca_io_buf(io, &m->buf, 0, false);
    if (io->saving || !NEED(io, qhca_mr_valid(io->e, m),
                            "no command could have created it")) {
        return;
    }
    m = malloc(sizeof(*m));
    if (!NEED(io, m, "out of memory")) {
        return;
    }
    *m = tmp;
    m->buf.odp = m->flags & QHCA_MR_F_ODP;
    if (qhca_io_place(io, &io->e->mem->mrs, m,
                      m->key >> QHCA_KEY_INDEX_SHIFT)) {
        io->e->mem->pd_refs[m->pd]++;
    } else {
        free(m);
    }
}

void qhca_io_mrs(struct qhca_io *io)
{
    qhca_io_numbers(io, &io->e->mem->mrs);
    qhca_io_each(io, &io->e->mem->mrs, saved_is_region, save_mr);
}

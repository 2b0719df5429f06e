/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting a whole buffer table, as a tree. */
#include "observe/inspect_internal.h"

struct tree {
    struct qhca *e;
    const struct qhca_emit *em;
    const struct qhca_buf_table *m;
    uint64_t from;              /* first page to show */
    uint64_t last;              /* page of the buffer's last byte */
    uint32_t left;              /* entries that may still be shown */
    bool more;
};

/* Show an entry and what is below it; @first: the page of its first leaf. */
static void show_table(struct tree *t, uint64_t table, unsigned level,
                       uint64_t first);

static void show_node(struct tree *t, uint64_t table, unsigned level,
                      uint64_t index, uint64_t first)
{
    bool leaf = level + 1 == t->m->hops;
    const char *error;
    uint64_t entry;

    qhca_emit_begin(t->em, NULL);
    if (!qhca_peek(t->e, false, table + index * 8, &entry, 8)) {
        qhca_emit_dec(t->em, "index", index);
        qhca_emit_text(t->em, "error", "the table cannot be read");
        qhca_emit_end(t->em);
        return;
    }
    entry = qhca_le64(entry);
    qhca_inspect_entry(t->em, t->m, table, index, entry, 0);
    qhca_emit_dec(t->em, "page", first);
    error = qhca_inspect_entry_error(t->m, entry, leaf);
    if (error) {
        qhca_emit_text(t->em, "error", error);
    } else if (!leaf) {
        show_table(t, entry & QHCA_BTE_ADDR_MASK, level + 1, first);
    }
    qhca_emit_end(t->em);
}

static void show_table(struct tree *t, uint64_t table, unsigned level,
                       uint64_t first)
{
    unsigned bits = t->m->form == QHCA_BUF_TREE ? t->m->table_shift - 3u : 0;
    unsigned up = bits * (t->m->hops - 1 - level);
    uint64_t size = t->m->form == QHCA_BUF_TREE ? 1ULL << bits :
                                                  t->m->entries;
    uint64_t i = first < t->from ? (t->from - first) >> up : 0;

    qhca_emit_list(t->em, "entries");
    for (; i < size && first + (i << up) <= t->last; i++) {
        if (!t->left) {
            t->more = true;
            break;
        }
        t->left--;
        show_node(t, table, level, i, first + (i << up));
    }
    qhca_emit_end(t->em);
}

static void show_list(struct tree *t)
{
    struct qhca_buf_seg seg;
    uint64_t i;

    qhca_emit_list(t->em, "entries");
    for (i = t->from; i < t->m->entries; i++) {
        if (!t->left) {
            t->more = true;
            break;
        }
        t->left--;
        if (!qhca_peek(t->e, false, t->m->addr + i * sizeof(seg), &seg,
                       sizeof(seg))) {
            break;
        }
        qhca_emit_begin(t->em, NULL);
        qhca_inspect_entry(t->em, t->m, t->m->addr, i, qhca_le64(seg.addr),
                           qhca_le64(seg.len));
        qhca_emit_end(t->em);
    }
    qhca_emit_end(t->em);
}

const char *qhca_inspect_tree(struct qhca *e,
                              const struct qhca_tree_look *look,
                              const struct qhca_emit *em)
{
    struct tree t = {
        .e = e, .em = em, .from = look->from,
        .left = look->max < QHCA_LOOK_MAX ? look->max : QHCA_LOOK_MAX,
    };
    const struct qhca_mr *mr;
    struct qhca_ring_info r;
    struct qhca_buf_table phys;
    const char *wrong = qhca_inspect_find(e, look->object, look->number,
                                          look->ring, &r, &phys, &mr);

    if (wrong) {
        return wrong;
    }
    t.m = r.map;
    qhca_emit_begin(em, NULL);
    qhca_emit_text(em, "object", qhca_object_name(look->object));
    qhca_emit_dec(em, "number", look->number);
    if (!mr) {
        qhca_emit_text(em, "ring", qhca_ring_name(look->ring));
    }
    qhca_inspect_map(t.m, "buffer", em);
    switch (t.m->form) {
    case QHCA_BUF_DIRECT:
        qhca_emit_hex(em, "address", t.m->addr + t.m->first);
        break;
    case QHCA_BUF_LIST:
        show_list(&t);
        break;
    default:
        t.last = (t.m->len - 1 + t.m->first) >> t.m->page_shift;
        qhca_emit_dec(em, "pages", t.last + 1);
        qhca_emit_hex(em, "page_size", 1ULL << t.m->page_shift);
        show_table(&t, t.m->addr, 0, 0);
        break;
    }
    qhca_emit_flag(em, "more", t.more);
    qhca_emit_end(em);
    return NULL;
}

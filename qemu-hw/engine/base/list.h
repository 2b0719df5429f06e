/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An intrusive, doubly linked circular list; linking needs no allocation. */
#ifndef QHCA_LIST_H
#define QHCA_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct qhca_list {
    struct qhca_list *next, *prev;
};

#define qhca_container(ptr, type, member) \
    ((type *)((char *)(ptr) - offsetof(type, member)))

/** Initialize an empty head, or an element that is in no list. */
static inline void qhca_list_init(struct qhca_list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool qhca_list_empty(const struct qhca_list *l)
{
    return l->next == l;
}

/** Append @n to the list @head; @n must not be in a list. */
static inline void qhca_list_add_tail(struct qhca_list *head,
                                      struct qhca_list *n)
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

/** Remove @n from its list, if it is in one. */
static inline void qhca_list_del(struct qhca_list *n)
{
    n->next->prev = n->prev;
    n->prev->next = n->next;
    qhca_list_init(n);
}

/** Append all elements of the list @from to the list @head. */
static inline void qhca_list_splice_tail(struct qhca_list *head,
                                         struct qhca_list *from)
{
    if (!qhca_list_empty(from)) {
        from->next->prev = head->prev;
        from->prev->next = head;
        head->prev->next = from->next;
        head->prev = from->prev;
        qhca_list_init(from);
    }
}

#endif /* QHCA_LIST_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of flows of receive coalescing.  A packet is found by the hash of
 * its flow.  Chains are short, since a peer that knows the hash can fill one.
 */
#include <stdlib.h>

#include "ethernet/gro.h"
#include "rdma/qhca-hw.h"

_Static_assert(sizeof(struct qhca_gro_key) % 4 == 0, "hashed in words");
_Static_assert(QHCA_GRO_PIECE >= QHCA_ETH_LSO_HDR_MAX, "headers in one piece");

void qhca_gro_init(struct qhca_gro *g)
{
    g->held = 0;
    qhca_list_init(&g->oldest);
    memset(g->chain, 0, sizeof(g->chain));
    g->packets_free = g->packets_new = 0;
    g->pieces_free = g->pieces_new = 0;
    g->pieces_left = QHCA_GRO_PIECES;
}

void qhca_gro_free(struct qhca_gro *g)
{
    free(g->store);
    g->store = NULL;
}

static uint16_t gro_key_chain(const struct qhca_gro_key *key)
{
    const uint8_t *p = (const uint8_t *)key;
    uint64_t h = 0;
    size_t i;

    for (i = 0; i < sizeof(*key); i += 4) {
        h = (h ^ qhca_get_be32(p + i)) * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 29;
    }
    return (uint16_t)(h % QHCA_GRO_CHAINS);
}

struct qhca_gro_packet *qhca_gro_find(struct qhca_gro *g,
                                      const struct qhca_gro_key *key)
{
    struct qhca_gro_packet *p;
    uint16_t i;

    for (i = g->held ? g->chain[gro_key_chain(key)] : 0; i; i = p->next) {
        p = &g->store->packet[i - 1];
        if (!memcmp(&p->key, key, sizeof(*key))) {
            return p;
        }
    }
    return NULL;
}

struct qhca_gro_packet *qhca_gro_oldest(const struct qhca_gro *g)
{
    return g->held ? qhca_container(g->oldest.next, struct qhca_gro_packet,
                                    age) : NULL;
}

struct qhca_gro_packet *qhca_gro_in_the_way(struct qhca_gro *g,
                                            const struct qhca_gro_key *key)
{
    struct qhca_gro_packet *p, *last = NULL;
    unsigned n = 0;
    uint16_t i;

    if (g->held == QHCA_GRO_PACKETS) {
        return qhca_gro_oldest(g);
    }
    /* the newest is the first */
    for (i = g->chain[gro_key_chain(key)]; i; i = p->next) {
        p = &g->store->packet[i - 1];
        last = p;
        n++;
    }
    return n < QHCA_GRO_CHAIN_MAX ? NULL : last;
}

struct qhca_gro_packet *qhca_gro_new(struct qhca_gro *g,
                                     const struct qhca_gro_key *key)
{
    uint16_t i = g->packets_free;
    struct qhca_gro_packet *p;

    if (!g->store) {
        g->store = calloc(1, sizeof(*g->store));
        if (!g->store) {
            return NULL;
        }
    }
    if (i) {
        g->packets_free = g->store->packet[i - 1].next;
    } else {
        i = ++g->packets_new;
    }
    p = &g->store->packet[i - 1];
    *p = (struct qhca_gro_packet){ .key = *key, .chain = gro_key_chain(key) };
    p->next = g->chain[p->chain];
    g->chain[p->chain] = i;
    qhca_list_add_tail(&g->oldest, &p->age);
    g->held++;
    return p;
}

/* Pieces that @len bytes take. */
static uint32_t gro_pieces(uint32_t len)
{
    return (len + QHCA_GRO_PIECE - 1) / QHCA_GRO_PIECE;
}

bool qhca_gro_room(const struct qhca_gro *g, const struct qhca_gro_packet *p,
                   uint32_t len)
{
    uint32_t has = p ? p->super.len : 0;

    return gro_pieces(has + len) - gro_pieces(has) <= g->pieces_left;
}

static void gro_add_piece(struct qhca_gro *g, struct qhca_gro_packet *p)
{
    uint16_t i = g->pieces_free;

    if (i) {
        g->pieces_free = g->store->piece_next[i - 1];
    } else {
        i = ++g->pieces_new;
    }
    g->pieces_left--;
    g->store->piece_next[i - 1] = 0;
    if (p->last) {
        g->store->piece_next[p->last - 1] = i;
    } else {
        p->first = i;
    }
    p->last = i;
}

void qhca_gro_append(struct qhca_gro *g, struct qhca_gro_packet *p,
                     const uint8_t *data, uint32_t len)
{
    uint32_t at, part;

    for (; len; len -= part, data += part, p->super.len += part) {
        at = p->super.len % QHCA_GRO_PIECE;
        if (!at) {
            gro_add_piece(g, p);
        }
        part = QHCA_GRO_PIECE - at < len ? QHCA_GRO_PIECE - at : len;
        memcpy(g->store->piece[p->last - 1] + at, data, part);
    }
}

uint8_t *qhca_gro_headers(struct qhca_gro *g, const struct qhca_gro_packet *p)
{
    return g->store->piece[p->first - 1];
}

void qhca_gro_gather(const struct qhca_gro *g, const struct qhca_gro_packet *p,
                     uint8_t *to)
{
    uint32_t left = p->super.len, part;
    uint16_t i;

    for (i = p->first; i; i = g->store->piece_next[i - 1]) {
        part = left < QHCA_GRO_PIECE ? left : QHCA_GRO_PIECE;
        memcpy(to, g->store->piece[i - 1], part);
        to += part;
        left -= part;
    }
}

void qhca_gro_remove(struct qhca_gro *g, struct qhca_gro_packet *p)
{
    uint16_t i = (uint16_t)(p - g->store->packet + 1);
    uint16_t *link = &g->chain[p->chain];

    while (*link != i) {
        link = &g->store->packet[*link - 1].next;
    }
    *link = p->next;
    if (p->first) {
        g->pieces_left += gro_pieces(p->super.len);
        g->store->piece_next[p->last - 1] = g->pieces_free;
        g->pieces_free = p->first;
    }
    qhca_list_del(&p->age);
    p->q = NULL;
    p->next = g->packets_free;
    g->packets_free = i;
    g->held--;
}

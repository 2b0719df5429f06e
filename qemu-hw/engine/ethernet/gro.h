/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The packets that receive coalescing holds: a table of flows, of fixed size.
 * Its memory is allocated with the first packet, as most adapters never have
 * one.
 */
#ifndef QHCA_GRO_H
#define QHCA_GRO_H

#include "base/base.h"
#include "ethernet/steer.h"
#include "ethernet/super_frame.h"

struct qhca_eth_q;

/* Limits: packets; pieces of memory, and bytes of each; chains, their length */
#define QHCA_GRO_PACKETS    1024
#define QHCA_GRO_PIECES     1024
#define QHCA_GRO_PIECE      2048
#define QHCA_GRO_CHAINS     2048
#define QHCA_GRO_CHAIN_MAX  8

/** The key of a flow.  Unused fields are 0. */
struct qhca_gro_key {
    uint8_t rqn[4];
    uint8_t ports[4];
    uint8_t version, outer_version; /* of IP; outer: of the tunnel, or 0 */
    uint8_t rsvd[2];
    uint8_t addr[32], outer_addr[32];
};

/** Frames that are being merged: a packet of one or more frames so far. */
struct qhca_gro_packet {
    struct qhca_eth_q *q;       /* NULL: this one is free */
    struct qhca_list age;       /* in qhca_gro.oldest */
    struct qhca_gro_key key;
    struct qhca_steer steer;    /* of each frame */
    struct qhca_super super;
    uint64_t since;             /* ns: when the first frame came */
    uint16_t chain;             /* the one it is in */
    uint16_t next;              /* in the chain, or free; 1 more, 0: none */
    uint16_t first, last;       /* pieces of its memory; 1 more */
};

/** Packets and their bytes.  None of it is touched before it is used. */
struct qhca_gro_store {
    uint16_t piece_next[QHCA_GRO_PIECES];
    struct qhca_gro_packet packet[QHCA_GRO_PACKETS];
    /*
     * The bytes of a packet: headers of its first frame, except for PSH, then
     * the payload of all.  The headers are in its first piece.
     */
    uint8_t piece[QHCA_GRO_PIECES][QHCA_GRO_PIECE];
};

struct qhca_gro {
    uint32_t held;              /* packets */
    struct qhca_list oldest;    /* all that are held, in the order of since */
    uint16_t chain[QHCA_GRO_CHAINS];    /* the first packet; 1 more, 0: none */
    /* free ones: a list, and those from _new on, which were never used */
    uint16_t packets_free, packets_new;
    uint16_t pieces_free, pieces_new;
    uint32_t pieces_left;
    struct qhca_gro_store *store;       /* NULL: there was no packet yet */
};

/** Make @g empty.  It keeps its memory; a new one is zeroed. */
void qhca_gro_init(struct qhca_gro *g);

/** Free the memory of @g. */
void qhca_gro_free(struct qhca_gro *g);

/** The packet of the flow @key, or NULL. */
struct qhca_gro_packet *qhca_gro_find(struct qhca_gro *g,
                                      const struct qhca_gro_key *key);

/** The packet held for the longest time, or NULL. */
struct qhca_gro_packet *qhca_gro_oldest(const struct qhca_gro *g);

/**
 * The packet that must be removed before @key, which has none, can have a
 * packet: the oldest, or the oldest of its chain.  NULL: there is room.
 */
struct qhca_gro_packet *qhca_gro_in_the_way(struct qhca_gro *g,
                                            const struct qhca_gro_key *key);

/**
 * A new packet for @key, without bytes; nothing may be in the way.  NULL: out
 * of memory, which can happen for the first only.
 */
struct qhca_gro_packet *qhca_gro_new(struct qhca_gro *g,
                                     const struct qhca_gro_key *key);

/** Is there memory for @len more bytes of @p, or (NULL) of a new packet? */
bool qhca_gro_room(const struct qhca_gro *g, const struct qhca_gro_packet *p,
                   uint32_t len);

/** Add bytes to @p, for which there is room; super.len grows by them. */
void qhca_gro_append(struct qhca_gro *g, struct qhca_gro_packet *p,
                     const uint8_t *data, uint32_t len);

/** The headers of @p: its first bytes, which are in one piece. */
uint8_t *qhca_gro_headers(struct qhca_gro *g, const struct qhca_gro_packet *p);

/** Copy the super.len bytes of @p to @to. */
void qhca_gro_gather(const struct qhca_gro *g, const struct qhca_gro_packet *p,
                     uint8_t *to);

/** Take @p out of the table, with its memory. */
void qhca_gro_remove(struct qhca_gro *g, struct qhca_gro_packet *p);

#endif /* QHCA_GRO_H */

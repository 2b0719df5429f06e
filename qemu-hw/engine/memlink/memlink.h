/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: RoCEv2 between two adapters of one host, without the wire.
 *
 * Each direction is a ring (shared_ring.h).  A record has the headers of a
 * packet, or of up to QHCA_MEMLINK_PACKETS packets of one message.  Its payload
 * follows, or is described by its location in the sender's memory.  The
 * receiver can read this memory and copies the payload to its destination: the
 * only copy on the way.  Short payload follows, as two copies of it take less
 * time than finding, describing and checking its location.
 *
 * Packets between two adapters go either over the link or over the wire, never
 * over both at a time, so that their order is kept.  To switch to the link, the
 * sender puts a marker on the wire and waits until the peer has seen it: then
 * all that was sent earlier has arrived.  (A first marker, for which nothing
 * waits, finds out whether the wire leads to the peer at all.)  To switch back,
 * it waits until the ring is empty.
 */
#ifndef QHCA_MEMLINK_H
#define QHCA_MEMLINK_H

#include "base/base.h"
#include "memlink/shared_ring.h"

/* Most packets in a record; with the largest path MTU these are 1 MiB. */
#define QHCA_MEMLINK_PACKETS    256
/* Least payload of a record that refers to it, bytes. */
#define QHCA_MEMLINK_REFS_MIN   2048
/* Most pieces of the sender's memory in a record. */
#define QHCA_MEMLINK_SEGS       (QHCA_MEMLINK_PACKETS + 32)
/* Room that a record needs, and a reserve for packets that cannot wait. */
#define QHCA_MEMLINK_ROOM       (sizeof(struct qhca_shring_record) + 0x10000 + \
                                 0x4000)
/* Most records that refer to memory, not yet consumed, for each link. */
#define QHCA_MEMLINK_REFS       256
/* Most memory regions and windows that a record refers to. */
#define QHCA_MEMLINK_KEYS       8
/*
 * How long a peer may do nothing while something waits for it; also the time
 * between two markers.
 */
#define QHCA_MEMLINK_PATIENCE_NS    1000000000ULL
/* The same for a copy, while a command waits that has nothing to do with it. */
#define QHCA_MEMLINK_HURRY_NS       20000000ULL

/* Where the payload of a record is, in the sender's memory. */
struct qhca_memlink_refs {
    bool unfit;                 /* cannot be described: copy it */
    bool asks;                  /* of requests, not of responses */
    uint32_t segs, keys;
    uint32_t qpn;
    uint32_t key[QHCA_MEMLINK_KEYS];    /* indices */
    struct qhca_shring_seg seg[QHCA_MEMLINK_SEGS];
};

/* A piece of a received payload, in this process's address space. */
struct qhca_piece {
    const uint8_t *data;
    uint32_t len;
};

/* A record that was received and checked. */
struct qhca_memlink_frame {
    /*
     * The frame's headers, a copy, followed by zeros in place of the ICRC; as
     * if it had no payload.
     */
    const uint8_t *head;
    uint32_t len;
    uint32_t payload;           /* bytes, of all packets */
    uint16_t mtu, packets;
    bool lost;                  /* the payload was revoked */
    const struct qhca_piece *piece;
    uint32_t pieces;
};

enum qhca_memlink_state {
    QHCA_MEMLINK_WIRE,          /* the wire is used */
    QHCA_MEMLINK_PROBE,         /* the wire is used, a marker was sent */
    QHCA_MEMLINK_HOLD,          /* waiting for the second marker */
    QHCA_MEMLINK_UP,            /* the link is used */
    QHCA_MEMLINK_DRAIN          /* waiting for the ring to be empty */
};

struct qhca_memlink {
    struct qhca_list link;      /* all links of the adapter */
    struct qhca_list same_hash;
    struct qhca_list waiting;   /* of QPs, by qhca_qp.ready */
    unsigned id;
    uint8_t mac[6];
    uint8_t state;              /* enum qhca_memlink_state */
    bool dead;                  /* cut: no longer used */
    bool pending;               /* the ring may hold something for us */
    uint64_t token;
    uint64_t secret;            /* of which the next marker is made */
    uint32_t marker;            /* the last one sent */
    unsigned tries;             /* HOLD: how often it is sent again */
    uint64_t retry_at;          /* no marker before this time, ns */
    uint64_t deadline;          /* for what QPs wait for, ns; 0: none */
    uint32_t seen_cons;         /* cons when that was set */
    bool unsettled;             /* a record was revoked during its copy */
    bool settling;              /* the same in revoke_matching(), for now */
    uint32_t settle_pos;        /* the last of these, to be consumed */
    uint64_t settle_deadline;   /* ns */
    struct qhca_shring_tx tx;
    struct qhca_shring_rx rx;
    struct qhca_shring_record *rec;       /* reserved, to be sent next */
    struct qhca_memlink_ref {
        uint32_t pos, qpn, keys, key[QHCA_MEMLINK_KEYS];
        bool asks;
    } ref[QHCA_MEMLINK_REFS];
    uint32_t ref_head, ref_tail;
    uint64_t sent, sent_refs, received, lost, revoked;  /* records */
    uint32_t acks;              /* sent since our last request */
    uint32_t turns;             /* requests in a row that each followed some */
    uint32_t waits;             /* since one waited in vain */
    unsigned doubts;            /* how often it was not worth it, in a row */
    unsigned regions;
    struct qhca_memlink_region region[];
};

#define QHCA_MEMLINK_HASH   64

/* The links of an adapter. */
struct qhca_memlinks {
    unsigned n, last_id;
    bool allowed;               /* by the environment */
    bool usable;                /* as told to the peers */
    bool pending;               /* a ring may hold something for us */
    bool waiting;               /* something waits for a link */
    bool refs;                  /* a record may still refer to memory */
    bool defer;                 /* do not wait for copies ... */
    bool deferred;              /* ... as was done */
    bool unsettled;             /* a link may be */
    struct qhca_list all;
    struct qhca_list hash[QHCA_MEMLINK_HASH];
    struct qhca_list woken;     /* QPs that waited and should be run */
    /* requests of QP @qpn were revoked, and it has to send them again */
    void (*took_back)(struct qhca *e, uint32_t qpn);
    struct qhca_memlink_refs out;       /* of the record being made */
    struct qhca_piece piece[QHCA_MEMLINK_SEGS];
    uint8_t head[QHCA_SHRING_HEAD_MAX + 4];
};

void qhca_memlinks_init(struct qhca *e,
                        void (*took_back)(struct qhca *e, uint32_t qpn));
/* Detach all links without notifying the environment. */
void qhca_memlinks_free(struct qhca *e);
/* The adapter was reset; the links stay. */
void qhca_memlinks_reset(struct qhca *e);
/* Tell the peers if packets may not use the links for now, or again. */
void qhca_memlinks_update(struct qhca *e);
/* The earliest deadline, ns; UINT64_MAX: none. */
uint64_t qhca_memlinks_deadline(const struct qhca *e);
/* Handle deadlines that have passed. */
void qhca_memlinks_timer(struct qhca *e, uint64_t now);
/* Make all QPs that wait for a link run. */
void qhca_memlinks_wake(struct qhca *e);

/* ---- sending ---- */

enum qhca_memlink_way {
    QHCA_WAY_WIRE,              /* use the wire */
    QHCA_WAY_LINK,              /* *@l has room for a record at l->rec */
    QHCA_WAY_WAIT               /* for *@l: see e->tx_wait */
};

/*
 * Which way does the next packet to the MAC address @mac take?  @parting: it is
 * the last of its QP and cannot wait.
 */
enum qhca_memlink_way qhca_memlink_way(struct qhca *e, const uint8_t mac[6],
                                       bool parting, struct qhca_memlink **l);
/*
 * Would qhca_memlink_way() choose a link now, if it has room?  Only a guess, as
 * the peer can change that at any time.
 */
bool qhca_memlink_is_up(struct qhca *e, const uint8_t mac[6]);
/* Where the payload of the record is written, unless it is referred to. */
static inline uint8_t *qhca_memlink_payload(const struct qhca_memlink *l)
{
    return (uint8_t *)(l->rec + 1);
}
/*
 * Begin to describe memory of QP @qpn for a record to @l, with requests of that
 * QP if it @asks, or else with responses; false: not now.
 */
bool qhca_memlink_refs_begin(struct qhca *e, struct qhca_memlink *l,
                             uint32_t qpn, bool asks);
/* Add the @len bytes at DMA address @addr, or find that it is unfit. */
void qhca_memlink_refs_add(struct qhca *e, uint64_t addr, uint32_t len);
/* The memory belongs to the region or window with this index. */
void qhca_memlink_refs_key(struct qhca *e, uint32_t index);
enum qhca_memlink_kind {
    QHCA_MEMLINK_REQUEST,
    QHCA_MEMLINK_RESPONSE,
    QHCA_MEMLINK_ACK,           /* only that: the peer may see it later */
};
/*
 * Send the record: @len bytes of headers at @head, and @payload bytes, which
 * have been written or, with @refs, described.
 */
void qhca_memlink_send(struct qhca *e, struct qhca_memlink *l,
                       const uint8_t *head, uint32_t len, uint32_t payload,
                       uint16_t mtu, uint16_t packets, bool refs,
                       enum qhca_memlink_kind kind);

/*
 * Revoke records that refer to a region or window, to memory on behalf of a QP,
 * or to any memory: on return no peer reads it.  A peer that does not stop is
 * cut off.  With e->ml->defer it may still be copying, until
 * qhca_memlinks_settled(), and sets e->ml->deferred.
 */
void qhca_memlink_revoke_key(struct qhca *e, uint32_t index);
void qhca_memlink_revoke_qp(struct qhca *e, uint32_t qpn);
void qhca_memlink_revoke_all(struct qhca *e);
/*
 * Have the copies ended that were in progress when records were revoked?  If
 * not, qhca_run() is called when they have, or when a peer was cut off.
 */
bool qhca_memlinks_settled(struct qhca *e);
/**
 * More than the command that is held waits for the peers that are copying: they
 * have only QHCA_MEMLINK_HURRY_NS left.
 */
void qhca_memlinks_hurry(struct qhca *e);
/*
 * The same for copies on behalf of QP @qpn, which is being run.  False: it
 * waits, see e->tx_wait.
 */
bool qhca_memlinks_settled_for_qp(struct qhca *e, uint32_t qpn);
/* Revoke all records of a link that ends. */
void qhca_memlink_abandon(struct qhca *e, struct qhca_memlink *l);
/* Is a record of @l that refers to memory of QP @qpn being copied? */
bool qhca_memlink_copies(struct qhca_memlink *l, uint32_t qpn);
/* Is the copy over that an unsettled link waits for?  Else ask for the bell. */
bool qhca_memlink_settle(struct qhca *e, struct qhca_memlink *l);
/* Do not wait for it any longer: cut the link. */
void qhca_memlink_give_up(struct qhca *e, struct qhca_memlink *l);

/* ---- receiving ---- */

/*
 * The next record of @l; false: none, or the peer has broken the rules and was
 * cut off.  The frame is valid until qhca_memlink_done().
 */
bool qhca_memlink_next(struct qhca *e, struct qhca_memlink *l,
                       struct qhca_memlink_frame *f);
void qhca_memlink_done(struct qhca *e, struct qhca_memlink *l);
/*
 * Stop receiving for now: ask for a bell, and ring the peer if it wants room.
 */
void qhca_memlink_pause(struct qhca *e, struct qhca_memlink *l);
/* Is it a marker for one of our links?  If so, handles it. */
bool qhca_memlink_marker(struct qhca *e, const uint8_t *frame, size_t len);
/* Cut @l off: it is no longer used.  @why: for the log, static. */
void qhca_memlink_cut(struct qhca *e, struct qhca_memlink *l,
                      const char *why);

#endif /* QHCA_MEMLINK_H */

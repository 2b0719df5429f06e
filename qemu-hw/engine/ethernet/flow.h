/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by flow steering, raw packet QPs, WQs and RSS.  In an adapter without
 * rules e->eth->flows is NULL, and steering has no other cost.
 */
#ifndef QHCA_FLOW_H
#define QHCA_FLOW_H

#include "ethernet/ethernet.h"

struct qhca_rss;

/* A frame and its parsed headers. */
struct qhca_eth_frame {
    const uint8_t *data;
    size_t len;                 /* at least 14 */
    struct qhca_headers h;
    struct qhca_flow_match k;   /* what rules match on and RSS hashes */
    struct qhca_super super;    /* if super.segs */
    bool merged;                /* eth_gro.c made the super-frame */
    uint64_t came;              /* ns: when, if it was held; else 0 */
};

/* The frames that @f represents. */
static inline uint32_t qhca_eth_frames(const struct qhca_eth_frame *f)
{
    return f->super.segs ? f->super.segs : 1;
}

/* ---- receive.c ---- */
/** A frame that is neither RoCE nor flow control has arrived: receive it. */
void qhca_eth_arrived(struct qhca *e, struct qhca_eth_frame *f);

/* ---- pause.c ---- */
/**
 * Obey @f and return true, if it is a PAUSE frame and the port obeys these.
 * Such a frame must not be passed on.
 */
bool qhca_pause_rx(struct qhca *e, const struct qhca_eth_frame *f);

/* ---- flow_key.c ---- */
/**
 * Parse the @len >= 14 bytes at @data, which must outlive @f; leaves f->k
 * alone.  The trailer of a super-frame is not part of @f.
 */
void qhca_eth_frame_parse(const struct qhca *e, struct qhca_eth_frame *f,
                          const uint8_t *data, size_t len);
/** Does the frame fit the port's MTU, or do those that it represents? */
bool qhca_eth_fits(const struct qhca *e, const struct qhca_eth_frame *f);
/** Fill in f->k: before rules or RSS see the frame. */
void qhca_eth_frame_key(struct qhca_eth_frame *f);

/* ---- flow.c ---- */
/**
 * Steer a non-RoCE frame, from the wire or (@own) sent to a group by one of our
 * QPs, to the QPs that the rules specify.  Returns true if a rule took it,
 * false if it goes to the Ethernet function.  Requires e->eth->flows.
 */
bool qhca_flow_rx(struct qhca *e, const struct qhca_eth_frame *f, bool own);
/** Rule @rule, of e->eth->flow_idr, as created; *@num gets its number. */
void qhca_flow_get(const void *rule, struct qhca_flow *out, uint32_t *num);

/* ---- raw.c ---- */
/** Deliver a frame to a QP of type RAW or RSS; @tag: of the flow, or 0. */
void qhca_raw_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_eth_frame *f, uint32_t tag);
/* A frame and the receive WQE that gets it, of a raw packet QP or a WQ. */
struct qhca_raw_recv {
    const struct qhca_eth_frame *f;
    struct qhca_recv *recv;     /* held */
    struct qhca_sgl_user user;
    bool strip;                 /* the VLAN tag goes into the CQE */
};
/** Receive, by our own rules only, a frame to a group that we have sent. */
void qhca_raw_loop_group(struct qhca *e, const uint8_t *frame, size_t len);
/** Is the frame too long for the WQE? */
bool qhca_raw_too_long(const struct qhca_raw_recv *r);
/** Store the frame, which is not too long.  Returns QHCA_SYN_*. */
uint8_t qhca_raw_store(struct qhca *e, const struct qhca_raw_recv *r);
/** The frame is stored: count it, and fill in the rest of @cqe. */
void qhca_raw_stored(struct qhca *e, const struct qhca_raw_recv *r,
                     uint32_t tag, struct qhca_cqe *cqe);

/* ---- eth_rx.c ---- */
/** Deliver a frame to an Ethernet RQ, whatever its state. */
void qhca_eth_rq_rx(struct qhca *e, struct qhca_eth_q *q,
                    const struct qhca_eth_frame *f, const struct qhca_steer *s);
/** The same without merging it with others. */
void qhca_eth_rq_put(struct qhca *e, struct qhca_eth_q *q,
                     const struct qhca_eth_frame *f,
                     const struct qhca_steer *s);

/** Count @frames as dropped by @q. */
void qhca_eth_rq_drop(struct qhca *e, struct qhca_eth_q *q, uint32_t frames);

/* ---- gro_frame.c ---- */
/* The held frames that a frame must not overtake. */
enum qhca_gro_order {
    QHCA_GRO_NONE,
    QHCA_GRO_FLOW,              /* those of its flow */
    QHCA_GRO_ALL,               /* any: its flow is unknown */
};

/* The properties of a frame that matter for merging. */
struct qhca_gro_frame {
    enum qhca_gro_order order;
    struct qhca_gro_key key;    /* if QHCA_GRO_FLOW */
    bool suits;                 /* may be merged; if so: */
    bool push, padded;
    uint32_t len;               /* without padding */
    struct qhca_large l;
};

/** Describe @f, which arrived for @q. */
void qhca_gro_look(const struct qhca_eth_q *q, const struct qhca_eth_frame *f,
                   struct qhca_gro_frame *x);
/**
 * Is @f, described by @x, the next frame after those in @p?  If so, may note in
 * p->super.l how their headers differ.
 */
bool qhca_gro_follows(struct qhca_gro *g, struct qhca_gro_packet *p,
                      const struct qhca_eth_frame *f,
                      const struct qhca_gro_frame *x);
/** Bytes of payload that are held. */
uint32_t qhca_gro_payload(const struct qhca_gro_packet *p);
/** Is there no room for another byte? */
bool qhca_gro_full(const struct qhca_gro_packet *p);

/* ---- eth_gro.c ---- */
/**
 * Merge @f into the held packet of its flow, or begin a packet with it.  False:
 * deliver @f as it is; the frames that it must not overtake were delivered.
 */
bool qhca_gro_take(struct qhca *e, struct qhca_eth_q *q,
                   const struct qhca_eth_frame *f, const struct qhca_steer *s);

/* ---- eth_super.c ---- */
typedef void qhca_eth_deliver(struct qhca *e, void *to,
                              const struct qhca_eth_frame *f,
                              const struct qhca_steer *s);
/**
 * May the super-frame @f be cut?  Not if a checksum is wrong: those of its
 * frames would be right.
 */
bool qhca_super_intact(struct qhca *e, const struct qhca_eth_frame *f);
/**
 * Cut the super-frame @f, which is intact, and @deliver each frame to @to.
 * Returns how many are lost, as the call has reached its cost limit or the
 * adapter is fatal.
 */
uint32_t qhca_super_deliver(struct qhca *e, const struct qhca_eth_frame *f,
                            qhca_eth_deliver *deliver, void *to,
                            const struct qhca_steer *s);

/* ---- wq.c ---- */
/** Deliver a frame to the WQ @to. */
void qhca_wq_rx(struct qhca *e, void *to, const struct qhca_eth_frame *f,
                const struct qhca_steer *s);

/* ---- rss.c ---- */
/** Fill in the RSS fields of the context of @qp, of type RSS. */
void qhca_rss_query(const struct qhca_qp *qp, struct qhca_qpc *out);
/* The properties of an indirection table. */
struct qhca_rqt_info {
    uint32_t num;
    uint32_t size;              /* entries */
    uint32_t users;             /* RSS QPs */
    uint8_t kind;               /* QHCA_RQT_* */
};
/** Describe indirection table @rqt, of e->eth->rqts. */
void qhca_rqt_describe(const void *rqt, struct qhca_rqt_info *info);
/** The number of the WQ or Ethernet RQ in entry @i < size. */
uint32_t qhca_rqt_queue(const void *rqt, uint32_t i);
/** The indirection table of @qp, of type RSS. */
const void *qhca_rss_rqt(const struct qhca_qp *qp);
/** Does @qp spread frames over Ethernet RQs? */
bool qhca_rss_is_eth(const struct qhca_qp *qp);
/**
 * The queue that receives a frame: a WQ, or NULL and in *@rq an Ethernet RQ.
 * @s gets the hash.
 */
struct qhca_wq *qhca_rss_pick(const struct qhca_qp *qp,
                              const struct qhca_eth_frame *f,
                              struct qhca_eth_q **rq, struct qhca_steer *s);
/** Toeplitz hash of @len <= 36 bytes. */
uint32_t qhca_toeplitz(const uint8_t key[40], const uint8_t *in, size_t len);

#endif /* QHCA_FLOW_H */

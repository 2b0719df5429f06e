/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 on the wire: Ethernet, IPv4 or IPv6, UDP, BTH (IBA 9.2), extended
 * headers (IBA 9.3), payload, pad, ICRC (annex A17).
 */
#ifndef QHCA_ROCE_H
#define QHCA_ROCE_H

#include "transport/transport.h"

/* ---- sizes of headers, bytes ---- */
#define QHCA_UDP_HLEN       8
#define QHCA_BTH_LEN        12
#define QHCA_RETH_LEN       16
#define QHCA_AETH_LEN       4
#define QHCA_DETH_LEN       8
#define QHCA_IMM_LEN        4
#define QHCA_IETH_LEN       4
#define QHCA_ATETH_LEN      28
#define QHCA_MASKS_LEN      16  /* after the AtomicETH of masked atomics */
#define QHCA_XRCETH_LEN     4
#define QHCA_FETH_LEN       4
#define QHCA_ATACK_LEN      8
#define QHCA_ICRC_LEN       4
#define QHCA_GRH_LEN        40
/* Upper bound for the extended headers of a packet. */
#define QHCA_EXT_MAX        64

/* ---- opcodes (IBA table 35): class in 7:5, operation in 4:0 ---- */
#define QHCA_CLASS_RC       0x00
#define QHCA_CLASS_UC       0x20
#define QHCA_CLASS_UD       0x60
#define QHCA_CLASS_XRC      0xa0
/*
 * Manufacturer opcodes.  Here: masked atomics, which the specification lacks,
 * with the operation codes of the plain ones; RC only.
 */
#define QHCA_CLASS_OWN      0xc0
#define QHCA_CLASS_MASK     0xe0

#define QHCA_OP_MASK                0x1f
#define QHCA_OP_SEND_FIRST          0x00
#define QHCA_OP_SEND_MIDDLE         0x01
#define QHCA_OP_SEND_LAST           0x02
#define QHCA_OP_SEND_LAST_IMM       0x03
#define QHCA_OP_SEND_ONLY           0x04
#define QHCA_OP_SEND_ONLY_IMM       0x05
#define QHCA_OP_WRITE_FIRST         0x06
#define QHCA_OP_WRITE_MIDDLE        0x07
#define QHCA_OP_WRITE_LAST          0x08
#define QHCA_OP_WRITE_LAST_IMM      0x09
#define QHCA_OP_WRITE_ONLY          0x0a
#define QHCA_OP_WRITE_ONLY_IMM      0x0b
#define QHCA_OP_READ_REQUEST        0x0c
#define QHCA_OP_READ_RESP_FIRST     0x0d
#define QHCA_OP_READ_RESP_MIDDLE    0x0e
#define QHCA_OP_READ_RESP_LAST      0x0f
#define QHCA_OP_READ_RESP_ONLY      0x10
#define QHCA_OP_ACK                 0x11
#define QHCA_OP_ATOMIC_ACK          0x12
#define QHCA_OP_COMP_SWAP           0x13
#define QHCA_OP_FETCH_ADD           0x14
#define QHCA_OP_SEND_LAST_INV       0x16
#define QHCA_OP_SEND_ONLY_INV       0x17
#define QHCA_OP_FLUSH               0x1c
#define QHCA_OP_ATOMIC_WRITE        0x1d

/* Properties of an opcode. */
#define QHCA_OPF_VALID      0x0001
#define QHCA_OPF_START      0x0002  /* first packet of a message */
#define QHCA_OPF_END        0x0004  /* last packet of a message */
#define QHCA_OPF_SEND       0x0008
#define QHCA_OPF_WRITE      0x0010
#define QHCA_OPF_READ       0x0020
#define QHCA_OPF_ATOMIC     0x0040
#define QHCA_OPF_RESP       0x0080  /* from responder to requester */
#define QHCA_OPF_IMM        0x0100
#define QHCA_OPF_INV        0x0200
#define QHCA_OPF_RETH       0x0400
#define QHCA_OPF_AETH       0x0800
#define QHCA_OPF_DETH       0x1000
#define QHCA_OPF_ATACK      0x2000
#define QHCA_OPF_PAYLOAD    0x4000
#define QHCA_OPF_FLUSH      0x8000
#define QHCA_OPF_AWRITE     0x10000 /* ATOMIC WRITE */
#define QHCA_OPF_MASKED     0x20000 /* masked atomic */
#define QHCA_OPF_XRCETH     0x40000

struct qhca_op_info {
    uint32_t flags;             /* QHCA_OPF_* */
    uint8_t ext;                /* bytes of extended headers */
};

/** Properties of BTH opcode @op; flags 0: unsupported. */
struct qhca_op_info qhca_op_info(uint8_t op);

/* ---- AETH syndromes (IBA 9.3.5.2) ---- */
#define QHCA_AETH_TYPE      0xe0
#define QHCA_AETH_ACK       0x00
#define QHCA_AETH_RNR       0x20
#define QHCA_AETH_NAK       0x60
#define QHCA_AETH_CREDITS   0x1f    /* 31: no limit */
#define QHCA_ACK_UNLIMITED  0x1f
#define QHCA_NAK_SEQ        0x60
#define QHCA_NAK_INV_REQ    0x61
#define QHCA_NAK_ACCESS     0x62
#define QHCA_NAK_OP         0x63

#define QHCA_GSI_QKEY       0x80010000U

/* ---- PSNs: 24 bits, modulo 2^24 ---- */
#define QHCA_PSN_MASK       0xffffffU

/* The PSN @n after @a. */
static inline uint32_t qhca_psn_add(uint32_t a, uint32_t n)
{
    return (a + n) & QHCA_PSN_MASK;
}

/* Distance forward from @b to @a: 0 .. 2^24 - 1. */
static inline uint32_t qhca_psn_dist(uint32_t a, uint32_t b)
{
    return (a - b) & QHCA_PSN_MASK;
}

/* Signed distance a - b: -2^23 .. 2^23 - 1. */
static inline int32_t qhca_psn_diff(uint32_t a, uint32_t b)
{
    uint32_t d = (a - b) & QHCA_PSN_MASK;

    return d & 0x800000 ? (int32_t)d - 0x1000000 : (int32_t)d;
}

/* Bytes for a path MTU code; 0: invalid code. */
static inline uint32_t qhca_mtu_bytes(uint8_t code)
{
    return code >= 1 && code <= 5 ? 128U << code : 0;
}

/* Number of packets for a message of @len bytes. */
static inline uint32_t qhca_packets(uint32_t len, uint8_t mtu_code)
{
    uint32_t mtu = qhca_mtu_bytes(mtu_code);

    return len ? (uint32_t)(((uint64_t)len + mtu - 1) >> (7 + mtu_code)) : 1;
}

/* ---- icrc.c ---- */
/**
 * ICRC of the packet whose IP header begins at @ip and whose ICRC field begins
 * @len bytes after that (annex A17.3.3).  @len covers at least IP, UDP and BTH.
 * The result is stored least significant byte first.
 */
uint32_t qhca_icrc(const uint8_t *ip, bool v6, size_t len);
/**
 * The ICRC that Soft-RoCE uses for a FLUSH: continues @crc, the correct one,
 * over the @len unmasked bytes from the BTH to the ICRC field.
 */
uint32_t qhca_icrc_twice(uint32_t crc, const uint8_t *bth, size_t len);

/* ---- super_packet.c: packets of a message that pass the wire as one ---- */
/* A payload in several pieces, which others may change at any time. */
struct qhca_payload {
    const struct qhca_piece *piece;
    uint32_t pieces;
    uint32_t i, at;             /* the piece used last, and where it begins */
    uint8_t *bounce;            /* where packets that straddle pieces go */
};

struct qhca_super_packet {
    const uint8_t *eth, *ip, *bth;
    const uint8_t *payload;     /* or NULL: see shared */
    struct qhca_payload *shared;        /* by a memory link, else NULL */
    uint32_t payload_len;       /* of all its packets, without pad */
    uint16_t size;              /* path MTU */
    uint16_t n;                 /* packets: 2 .. QHCA_ETH_SUPER_SEGS_MAX; */
                                /* over a memory link: from 1 on */
};

/* One of its packets. */
struct qhca_part {
    uint8_t hdr[QHCA_BTH_LEN + QHCA_EXT_MAX];   /* BTH, extended headers */
    uint32_t hdr_len;
    const uint8_t *data;        /* payload, inside the super-frame */
    uint32_t len;               /* without pad */
    uint32_t frame_len;         /* of its frame, from Ethernet to ICRC */
    struct qhca_op_info info;
};

/**
 * Is the frame of @len bytes, with the headers @h, a super-frame of RoCEv2?
 * Then fills in *@s, which points into @frame.  Checks only its form, not the
 * ICRC nor whether it is for us.
 */
bool qhca_super_packet_find(const uint8_t *frame, size_t len,
                            const struct qhca_headers *h,
                            struct qhca_super_packet *s);
/**
 * The same for the record @f of a memory link, with the headers @h and the
 * payload @p, which is filled in, too.  It may represent a single packet.
 */
bool qhca_super_packet_shared(struct qhca *e,
                              const struct qhca_memlink_frame *f,
                              const struct qhca_headers *h,
                              struct qhca_payload *p,
                              struct qhca_super_packet *s);
/** Are its ICRC and the checksum of IPv4 right? */
bool qhca_super_packet_intact(const struct qhca_super_packet *s);
/** Describe packet number @k, 0 .. s->n - 1, except for its payload. */
void qhca_super_packet_head(const struct qhca_super_packet *s, uint32_t k,
                            struct qhca_part *p);
/** Describe packet number @k, with its payload. */
void qhca_super_packet_part(const struct qhca_super_packet *s, uint32_t k,
                            struct qhca_part *p);
/**
 * Write packet number @k as a frame, with its own ICRC, to @to, which has room
 * for QHCA_FRAME_MAX bytes.  Returns the length.
 */
uint32_t qhca_super_packet_cut(const struct qhca_super_packet *s, uint32_t k,
                               uint8_t *to);
/** The lengths of the frames that it represents. */
void qhca_super_packet_frames(const struct qhca_super_packet *s,
                              struct qhca_wire_frames *as);
/** Write @p, a packet out of the super-frame with these headers, as a frame. */
uint32_t qhca_part_frame(const uint8_t *eth, const uint8_t *ip,
                         const uint8_t *bth, const struct qhca_part *p,
                         uint8_t *to);

/* ---- packet.c: received packets ---- */
struct qhca_rx {
    const uint8_t *eth;         /* frame */
    const uint8_t *ip;          /* IP header */
    const uint8_t *bth;
    const uint8_t *ext;         /* extended headers, after any XRCETH */
    const uint8_t *ext_end;
    const uint8_t *payload;
    /*
     * Its super-frame, and which packet of it; or NULL.  Then eth and ip are
     * those of the super-frame; bth and ext are in @part.
     */
    const struct qhca_super_packet *super;
    const struct qhca_part *part;
    uint32_t frame_len, payload_len;
    uint32_t flags;             /* QHCA_OPF_* */
    uint32_t srqn;              /* from the XRCETH, else 0 */
    uint16_t tci;               /* VLAN TCI or QHCA_VLAN_NONE */
    uint16_t pkey;
    uint8_t opcode, pad;
    bool v6, se, ackreq;
    bool crc_twice;             /* has Soft-RoCE's ICRC of a FLUSH */
    uint32_t qpn, psn;
    int gid;                    /* index of our destination GID; -1: mcg */
    struct qhca_mcg_group *mcg; /* destination group, or NULL */
    uint8_t sgid[16];
};

enum qhca_parse {
    QHCA_PARSE_NOT_OURS,        /* not RoCEv2, or not for one of our GIDs */
    QHCA_PARSE_BAD,             /* RoCEv2 for us, but malformed */
    QHCA_PARSE_ICRC,            /* RoCEv2 for us, but bad ICRC */
    QHCA_PARSE_OK
};

/** Copy the frame of @rx, of rx->frame_len bytes, to @to. */
void qhca_rx_frame(const struct qhca_rx *rx, uint8_t *to);
/** Validate and parse a frame; @rx gets pointers into @frame. */
enum qhca_parse qhca_parse(struct qhca *e, const uint8_t *frame, size_t len,
                           struct qhca_rx *rx);
/** Does the packet belong to the service type of @qp? */
bool qhca_class_fits(const struct qhca_qp *qp, const struct qhca_rx *rx);
/** Does the QP's state allow it to receive this packet? */
bool qhca_state_receives(const struct qhca_qp *qp, const struct qhca_rx *rx);
/** Count and trace a packet received by @qp. */
void qhca_rx_note(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx);
/** Deliver the valid packet @rx to its QP or multicast group. */
void qhca_rx_deliver(struct qhca *e, const struct qhca_rx *rx);
/** Count @stat and trace the packet as dropped. */
void qhca_rx_drop(struct qhca *e, const struct qhca_rx *rx, unsigned stat);

/** Opcode class of requests sent by @qp. */
static inline uint8_t qhca_qp_class(const struct qhca_qp *qp)
{
    switch (qp->type) {
    case QHCA_QPT_RC:
        return QHCA_CLASS_RC;
    case QHCA_QPT_UC:
        return QHCA_CLASS_UC;
    case QHCA_QPT_XRC_INI:
    case QHCA_QPT_XRC_TGT:
        return QHCA_CLASS_XRC;
    default:
        return QHCA_CLASS_UD;
    }
}

/* ---- packet.c: packets to send ---- */
struct qhca_frame {
    uint8_t *data;              /* frame buffer: QHCA_FRAME_MAX bytes, or if */
                                /* it is for the wire, SUPER_FRAME_MAX */
    uint8_t *ip;
    uint8_t *bth;               /* extended headers are at bth + 12 */
    bool v6;
    bool loop;                  /* deliver to ourselves ... */
    bool wire;                  /* ... and, multicast, to the wire as well */
    bool crc_twice;             /* use Soft-RoCE's ICRC of a FLUSH */
    uint16_t packets;           /* > 1: packets in this super-frame ... */
    uint16_t mtu;               /* ... with this path MTU */
    struct qhca_memlink *ml;    /* not for the wire but for this link ... */
    bool refs;                  /* ... and refers to its payload */
    bool ack_waits;             /* ... or an ACK, which may come later */
};

/** Where its payload goes, after @ext bytes of extended headers. */
static inline uint8_t *qhca_frame_payload(const struct qhca_frame *f,
                                          uint32_t ext)
{
    return f->ml ? qhca_memlink_payload(f->ml) : f->bth + QHCA_BTH_LEN + ext;
}

enum qhca_send {
    QHCA_SENT,
    QHCA_BLOCKED,               /* wire or loopback ring full for now */
    QHCA_BAD_AV                 /* no such source GID, or IP versions differ */
};

/**
 * Begin a frame to @av: fill in Ethernet, IP and UDP except for lengths.  @qpn,
 * @peer: determine the UDP source port if the AV does not.
 */
enum qhca_send qhca_frame_begin(struct qhca *e, const struct qhca_av *av,
                                uint32_t qpn, uint32_t peer,
                                struct qhca_frame *f);
/** Fill in the BTH.  @payload: bytes without pad, for the pad count. */
void qhca_frame_bth(struct qhca_frame *f, uint8_t opcode, bool se,
                    bool ackreq, uint32_t payload, uint32_t qpn,
                    uint32_t psn);
/**
 * How many packets of @mtu bytes may leave as one frame like @f?  At least 1.
 * If more, sets f->mtu; then f->packets may be set to up to that many.  @refs:
 * their payload is referred to, not copied.
 */
uint32_t qhca_super_packet_most(struct qhca *e, struct qhca_frame *f,
                                uint32_t mtu, bool refs);
/**
 * Write the lengths and the IPv4 checksum of a packet whose BTH, extended
 * headers, payload and pad are the @body bytes at @bth.  Returns the ICRC.
 */
uint32_t qhca_frame_seal(uint8_t *ip, bool v6, uint8_t *bth, uint32_t body);
/**
 * Complete and send the frame, with @ext bytes of extended headers and @payload
 * bytes of payload.  @num: our QPN, for the trace.
 */
enum qhca_send qhca_frame_end(struct qhca *e, struct qhca_frame *f,
                              uint32_t num, uint32_t ext, uint32_t payload);

/* ---- loopback.c ---- */
/* Buffer for the next frame to ourselves; NULL: ring full. */
uint8_t *qhca_loop_slot(struct qhca *e);
/* The frame in that buffer is complete, with @len bytes. */
void qhca_loop_commit(struct qhca *e, uint32_t len);

#endif /* QHCA_ROCE_H */

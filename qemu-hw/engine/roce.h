/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 on the wire: Ethernet, IPv4 or IPv6, UDP, BTH (IBA 9.2), extended
 * headers (IBA 9.3), payload, pad, ICRC (annex A17), and what the files of the
 * transport share.
 */
#ifndef QHCA_ROCE_H
#define QHCA_ROCE_H

#include "internal.h"

/* ---- sizes of headers, bytes ---- */
#define QHCA_ETH_HLEN       14
#define QHCA_VLAN_HLEN      4
#define QHCA_IP4_HLEN       20
#define QHCA_IP6_HLEN       40
#define QHCA_UDP_HLEN       8
#define QHCA_BTH_LEN        12
#define QHCA_RETH_LEN       16
#define QHCA_AETH_LEN       4
#define QHCA_DETH_LEN       8
#define QHCA_IMM_LEN        4
#define QHCA_IETH_LEN       4
#define QHCA_ATETH_LEN      28
#define QHCA_MASKS_LEN      16  /* behind the AtomicETH of masked atomics */
#define QHCA_XRCETH_LEN     4
#define QHCA_FETH_LEN       4
#define QHCA_ATACK_LEN      8
#define QHCA_ICRC_LEN       4
#define QHCA_GRH_LEN        40

/* ---- opcodes (IBA table 35): class in 7:5, operation in 4:0 ---- */
#define QHCA_CLASS_RC       0x00
#define QHCA_CLASS_UC       0x20
#define QHCA_CLASS_UD       0x60
#define QHCA_CLASS_XRC      0xa0
/*
 * For manufacturers.  Here: masked atomics, which the specification does not
 * have, with the operations of the plain ones; RC only.
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

/* What an opcode means. */
#define QHCA_OPF_VALID      0x0001
#define QHCA_OPF_START      0x0002  /* first packet of a message */
#define QHCA_OPF_END        0x0004  /* last packet of a message */
#define QHCA_OPF_SEND       0x0008
#define QHCA_OPF_WRITE      0x0010
#define QHCA_OPF_READ       0x0020
#define QHCA_OPF_ATOMIC     0x0040
#define QHCA_OPF_RESP       0x0080  /* goes to the requester */
#define QHCA_OPF_IMM        0x0100
#define QHCA_OPF_INV        0x0200
#define QHCA_OPF_RETH       0x0400
#define QHCA_OPF_AETH       0x0800
#define QHCA_OPF_DETH       0x1000
#define QHCA_OPF_ATACK      0x2000
#define QHCA_OPF_PAYLOAD    0x4000
#define QHCA_OPF_FLUSH      0x8000
#define QHCA_OPF_AWRITE     0x10000 /* ATOMIC WRITE */
#define QHCA_OPF_MASKED     0x20000 /* atomic with masks */
#define QHCA_OPF_XRCETH     0x40000

struct qhca_op_info {
    uint32_t flags;             /* QHCA_OPF_* */
    uint8_t ext;                /* bytes of extended headers */
};

/** What BTH opcode @op means; flags 0: not one of ours. */
struct qhca_op_info qhca_op_info(uint8_t op);

/* ---- AETH syndromes (IBA 9.3.5.2) ---- */
#define QHCA_AETH_TYPE      0xe0
#define QHCA_AETH_ACK       0x00
#define QHCA_AETH_RNR       0x20
#define QHCA_AETH_NAK       0x60
#define QHCA_AETH_CREDITS   0x1f    /* 31: no limit told */
#define QHCA_ACK_UNLIMITED  0x1f
#define QHCA_NAK_SEQ        0x60
#define QHCA_NAK_INV_REQ    0x61
#define QHCA_NAK_ACCESS     0x62
#define QHCA_NAK_OP         0x63

#define QHCA_GSI_QKEY       0x80010000U

/* ---- PSNs: 24 bits, compared modulo 2^24 ---- */
#define QHCA_PSN_MASK       0xffffffU

static inline uint32_t qhca_psn_add(uint32_t a, uint32_t n)
{
    return (a + n) & QHCA_PSN_MASK;
}

/* How far @a is behind @b's position: 0 .. 2^24 - 1. */
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

/* Bytes of a path MTU code, 0 for a bad one. */
static inline uint32_t qhca_mtu_bytes(uint8_t code)
{
    return code >= 1 && code <= 5 ? 128U << code : 0;
}

/* Packets that @len bytes take. */
static inline uint32_t qhca_packets(uint32_t len, uint8_t mtu_code)
{
    uint32_t mtu = qhca_mtu_bytes(mtu_code);

    return len ? (uint32_t)(((uint64_t)len + mtu - 1) >> (7 + mtu_code)) : 1;
}

/* ---- icrc.c ---- */
/**
 * ICRC of the packet whose IP header begins at @ip and whose ICRC field, not
 * counted in, begins @len bytes behind it (annex A17.3.3).  @len covers at
 * least IP, UDP and BTH.  The result is stored least significant byte first.
 */
uint32_t qhca_icrc(const uint8_t *ip, bool v6, size_t len);
/**
 * What Soft-RoCE takes for the ICRC of a FLUSH: @crc, the right one, goes on
 * over the @len bytes from the BTH to the ICRC field as they are.
 */
uint32_t qhca_icrc_twice(uint32_t crc, const uint8_t *bth, size_t len);

/* ---- packet.c: received packets ---- */
struct qhca_rx {
    const uint8_t *eth;         /* frame */
    const uint8_t *ip;          /* IP header */
    const uint8_t *bth;
    const uint8_t *ext;         /* extended headers, behind an XRCETH */
    const uint8_t *payload;
    uint32_t frame_len, payload_len;
    uint32_t flags;             /* QHCA_OPF_* */
    uint32_t srqn;              /* of the XRCETH, else 0 */
    uint16_t tci;               /* VLAN TCI or QHCA_VLAN_NONE */
    uint16_t pkey;
    uint8_t opcode, pad;
    bool v6, se, ackreq;
    bool crc_twice;             /* Soft-RoCE's ICRC of a FLUSH */
    uint32_t qpn, psn;
    int gid;                    /* our GID it was sent to, -1: mcg */
    struct qhca_mcg_group *mcg; /* the group it was sent to, or NULL */
    uint8_t sgid[16];
};

enum qhca_parse {
    QHCA_PARSE_NOT_OURS,        /* not RoCEv2, or not for one of our GIDs */
    QHCA_PARSE_BAD,             /* RoCEv2 for us, but malformed */
    QHCA_PARSE_ICRC,            /* RoCEv2 for us, but ICRC wrong */
    QHCA_PARSE_OK
};

/** Check a frame and find its parts; *@rx points into @frame. */
enum qhca_parse qhca_parse(struct qhca *e, const uint8_t *frame, size_t len,
                           struct qhca_rx *rx);
/** Does the QP's state let it take this packet? */
/* Is the packet of the service of @qp? */
bool qhca_class_fits(const struct qhca_qp *qp, const struct qhca_rx *rx);
bool qhca_state_receives(const struct qhca_qp *qp, const struct qhca_rx *rx);
/** Count a packet that @qp gets, and trace it. */
void qhca_rx_note(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx);
/** Give the packet @rx, which is right so far, to its QP or group. */
void qhca_rx_deliver(struct qhca *e, const struct qhca_rx *rx);
/** Count @stat and trace the packet as dropped. */
void qhca_rx_drop(struct qhca *e, const struct qhca_rx *rx, unsigned stat);

/** Class of the opcodes that @qp sends. */
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
    uint8_t *data;              /* frame buffer, QHCA_FRAME_MAX bytes */
    uint8_t *ip;
    uint8_t *bth;               /* extended headers follow at bth + 12 */
    bool v6;
    bool loop;                  /* to ourselves ... */
    bool wire;                  /* ... and (a group) to the wire as well */
    bool crc_twice;             /* Soft-RoCE's ICRC of a FLUSH */
};

enum qhca_send {
    QHCA_SENT,
    QHCA_BLOCKED,               /* wire or loopback takes nothing now */
    QHCA_BAD_AV                 /* no such source GID, or families differ */
};

/**
 * Begin a frame towards @av: fill Ethernet, IP and UDP but for lengths.
 * @qpn, @peer: for the UDP source port, when the AV names none.
 */
enum qhca_send qhca_frame_begin(struct qhca *e, const struct qhca_av *av,
                                uint32_t qpn, uint32_t peer,
                                struct qhca_frame *f);
/** Fill the BTH. @payload: bytes without pad, for the pad count. */
void qhca_frame_bth(struct qhca_frame *f, uint8_t opcode, bool se,
                    bool ackreq, uint32_t payload, uint32_t qpn,
                    uint32_t psn);
/**
 * Finish the frame, whose extended headers take @ext and payload @payload
 * bytes, and send it.  @num: our QPN, for the trace.
 */
enum qhca_send qhca_frame_end(struct qhca *e, struct qhca_frame *f,
                              uint32_t num, uint32_t ext, uint32_t payload);

/* ---- fault_packet.c: packets that meet faults on demand ---- */
/*
 * Send a finished frame of @num as the rules have it.  It counts as sent
 * whatever happens to it.
 */
void qhca_fault_tx(struct qhca *e, struct qhca_frame *f, uint32_t num,
                   uint32_t ext, uint32_t payload, uint32_t len);
/* A packet came: drop, spoil, keep or deliver it. */
void qhca_fault_rx(struct qhca *e, const struct qhca_rx *rx);

/* ---- send_wqe.c ---- */
static inline bool qhca_wqe_is_masked(uint8_t opcode)
{
    return opcode == QHCA_WQE_MASKED_COMP_SWAP ||
           opcode == QHCA_WQE_MASKED_FETCH_ADD;
}

/* Brings a value back from the peer. */
static inline bool qhca_wqe_is_atomic(uint8_t opcode)
{
    return opcode == QHCA_WQE_COMP_SWAP || opcode == QHCA_WQE_FETCH_ADD ||
           qhca_wqe_is_masked(opcode);
}

/* READs and atomics, and what is answered like them: not by an ACK. */
static inline bool qhca_wqe_is_rd(uint8_t opcode)
{
    return opcode == QHCA_WQE_RDMA_READ || qhca_wqe_is_atomic(opcode) ||
           opcode == QHCA_WQE_FLUSH || opcode == QHCA_WQE_ATOMIC_WRITE;
}

/* Takes a receive at the peer. */
static inline bool qhca_wqe_takes_recv(uint8_t opcode)
{
    return opcode == QHCA_WQE_SEND || opcode == QHCA_WQE_SEND_IMM ||
           opcode == QHCA_WQE_SEND_INV || opcode == QHCA_WQE_RDMA_WRITE_IMM;
}

static inline bool qhca_wqe_is_local(uint8_t opcode)
{
    return opcode == QHCA_WQE_LOCAL_INV || opcode == QHCA_WQE_REG_MR ||
           opcode == QHCA_WQE_BIND_MW;
}

/* The WQE fails, when it is the oldest, with this; returns @syndrome. */
static inline uint8_t qhca_swqe_fail(struct qhca_swqe *w, uint8_t status,
                                     uint8_t syndrome)
{
    w->status = status;
    w->syndrome = syndrome;
    return syndrome;
}

/*
 * Fetch WQE sq_next into the window.  False: not now; there was no memory and
 * the QP is in ERR, or a debugger stopped the adapter.
 */
bool qhca_req_load(struct qhca *e, struct qhca_qp *qp);
/*
 * The SGEs of @w, WQE counter @index, from the cached copy @reading (READ
 * responses) or the one being sent; fetched again if need be.  NULL: it
 * cannot be read or has changed; *@syn says why.
 */
const uint8_t *qhca_req_wqe(struct qhca *e, struct qhca_qp *qp,
                            struct qhca_swqe *w, uint32_t index,
                            bool reading, uint8_t *syn);
void qhca_window_put(struct qhca *e, struct qhca_qp *qp);
/* Give @qp, which has none, a window; false: no memory. */
bool qhca_window_get(struct qhca *e, struct qhca_qp *qp);
/* May a connected QP such as @qp send that? */
bool qhca_send_opcode_ok(const struct qhca_qp *qp, uint8_t opcode);
static inline struct qhca_swqe *qhca_swqe(struct qhca_qp *qp, uint32_t index)
{
    return &qp->xp.win->w[index & (QHCA_WINDOW_WQES - 1)];
}
/*
 * Is this what comes of a WQE that could not be read?  That is the queue's own
 * failure: a local work queue catastrophic error (IBA 11.6.3.2).
 */
static inline bool qhca_wqe_lost(uint8_t status, uint8_t syndrome)
{
    return status == QHCA_WC_LOC_QP_OP_ERR && QHCA_SYN_IS_WQE_LOST(syndrome);
}
/* Bytes of a send WQE of a connected QP before SGEs or data. */
static inline uint32_t qhca_wqe_header(const struct qhca_qp *qp,
                                       uint8_t opcode)
{
    if (qp->type == QHCA_QPT_XRC_INI) {
        return sizeof(struct qhca_xrc_wqe);
    }
    return qhca_wqe_is_masked(opcode) ? sizeof(struct qhca_masked_wqe) :
                                        sizeof(struct qhca_sq_wqe);
}
/* QHCA_CQE_OP_* of a send WQE's opcode. */
uint8_t qhca_cqe_op(uint8_t wqe_opcode);
/* Send CQE with a status; true: delivered. */
bool qhca_send_cqe(struct qhca *e, struct qhca_qp *qp, uint64_t wr_id,
                   uint32_t index, uint8_t opcode, uint32_t len,
                   uint8_t status, uint8_t syndrome);

/* ---- requester.c ---- */
/* Send requests of an RC or UC QP; true: more to do right now. */
bool qhca_req_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
/* Point the cursor at una_psn: send from there again. */
void qhca_req_cursor(struct qhca_qp *qp);
/* Go back to una_psn because of @why (QHCA_SYN_*). */
void qhca_req_go_back(struct qhca *e, struct qhca_qp *qp, uint8_t why);
/*
 * Complete what is finished at the tail: local operations, and a WQE that
 * failed, which ends the QP.
 */
void qhca_req_reap(struct qhca *e, struct qhca_qp *qp);
/* The oldest WQE succeeded. */
void qhca_req_complete(struct qhca *e, struct qhca_qp *qp);
/* The oldest WQE failed: CQE, then ERR (SQE on UC and UD). */
void qhca_req_fail(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                   uint8_t syndrome);
/* SQ_DRAINED if it is owed and due. */
void qhca_req_drained(struct qhca *e, struct qhca_qp *qp);

/* ---- odp.c: page faults of on-demand paging ---- */
#define QHCA_ODP_SEND   (1u << QHCA_FAULT_SEND)
#define QHCA_ODP_LAND   (1u << QHCA_FAULT_LAND)
#define QHCA_ODP_RECV   (1u << QHCA_FAULT_RECV)
#define QHCA_ODP_READ   (1u << QHCA_FAULT_READ)
#define QHCA_ODP_ALL    0x0fu

/* Does one of @sides (QHCA_ODP_*) wait for a page? */
static inline bool qhca_odp_waits(const struct qhca_qp *qp, unsigned sides)
{
    return qp->xp.odp_waits & sides;
}
/*
 * An access of @side (QHCA_FAULT_*) gave QHCA_SYN_PAGE_FAULT, see e->fault.
 * True: the side waits now, software is told; it runs again at the end.
 * False: it is an error, since software could not provide the page.
 */
bool qhca_odp_stall(struct qhca *e, struct qhca_qp *qp, unsigned side);
/* The same with a packet that is executed (again) at the end. */
bool qhca_odp_stall_rx(struct qhca *e, struct qhca_qp *qp, unsigned side,
                       const struct qhca_rx *rx);
/* Keep @rx for the end instead of what was kept. */
void qhca_odp_keep(struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx);
/* Drop @rx, as the side waits; it is asked for again at the end. */
void qhca_odp_drop(struct qhca *e, struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx);
/*
 * The peer asks again for what waits: true if that was not the first time.
 * Then its timer has run out more than once, and it shall have an RNR NAK:
 * it might give up else, long before a page has come from the disk.
 */
bool qhca_odp_impatient(struct qhca_qp *qp, unsigned side);
/* The side got on: the next page fault is a new one. */
void qhca_odp_clear_failed(struct qhca_qp *qp, unsigned side);
static inline void qhca_odp_passed(struct qhca_qp *qp, unsigned side)
{
    if (qp->xp.odp) {
        qhca_odp_clear_failed(qp, side);
    }
}
/* @sides wait no more and are not resumed. */
void qhca_odp_cancel(struct qhca_qp *qp, unsigned sides);
void qhca_odp_free(struct qhca_qp *qp);

/* ---- sgl.c: moving data between packets and scatter-gather lists ---- */
/*
 * Copy @len bytes from byte @off of the list of @num SGEs at @sges on, to @buf
 * or (@write) from it.  @pos remembers the place for the next call.
 * Caller has checked that off + len lies inside.  QHCA_SYN_*.
 */
uint8_t qhca_sgl_copy(struct qhca *e, struct qhca_qp *qp, uint32_t pd,
                      const uint8_t *sges, uint32_t num,
                      struct qhca_sgpos *pos, uint32_t off, void *buf,
                      uint32_t len, bool write);

/* @xp as a new QP has it, but for the list of its timer. */
void qhca_xport_fresh(struct qhca_xport *xp);
/* What is behind una_psn counts as never sent. */
void qhca_xport_unsend(struct qhca_xport *xp);

/* ---- window.c: how much of a QP may be under way ---- */
void qhca_wnd_start(struct qhca_xport *xp);
/* @n PSNs were acknowledged, of @out that were outstanding. */
void qhca_wnd_grow(struct qhca_xport *xp, uint32_t n, uint32_t out);
/* The peer lost packets: as it says, or as its silence does (@timeout). */
void qhca_wnd_shrink(struct qhca_xport *xp, bool timeout);
/* A packet that goes up to PSN @last goes out, and asks for an acknowledge. */
void qhca_wnd_sent(struct qhca *e, struct qhca_qp *qp, uint32_t last);
/* Something was acknowledged: did it take so long that the window shrank? */
bool qhca_wnd_late(struct qhca *e, struct qhca_qp *qp);
/* Ask for an acknowledge at least after so many packets. */
uint32_t qhca_wnd_ack_interval(const struct qhca_xport *xp);
/* May the next request of the READ or atomic under the cursor go out? */
bool qhca_wnd_rd_ready(const struct qhca_qp *qp, const struct qhca_swqe *w);
/* How many PSNs the next request of @w, a READ, asks for. */
uint32_t qhca_wnd_rd_psns(const struct qhca_xport *xp, struct qhca_swqe *w);
/* Is PSN number @n of @w the last that a request has asked for? */
static inline bool qhca_wnd_rd_end(const struct qhca_swqe *w, uint32_t n)
{
    return n + 1 == w->npkts || !((n + 1) & ((1u << w->chunk) - 1));
}
/* An acknowledge of all before una_psn has the AETH credit code @code. */
void qhca_wnd_credits(struct qhca_xport *xp, uint8_t code);
/* The peer had no receive for the message at una_psn. */
void qhca_wnd_rnr(struct qhca_xport *xp);
/*
 * Has the peer told of no receive for message @w, which is under the cursor?
 * Then *@probe says whether its next packet may go out nevertheless.
 */
bool qhca_wnd_limited(const struct qhca_xport *xp, const struct qhca_swqe *w,
                      bool *probe);
/* Requests that ask for the PSNs @from .. @to - 1 of @w. */
uint32_t qhca_wnd_rd_reqs(const struct qhca_swqe *w, uint32_t from,
                          uint32_t to);

/* ---- completer.c ---- */
void qhca_comp_rx(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx);
/* The QP's timer fired. */
void qhca_comp_timeout(struct qhca *e, struct qhca_qp *qp);
void qhca_comp_rnr_over(struct qhca *e, struct qhca_qp *qp);
/*
 * The requester waits for a page no more: its timer runs again.  @again:
 * responses were dropped on purpose, ask for them; that is no retry.
 */
void qhca_comp_resume(struct qhca *e, struct qhca_qp *qp, bool again);

/* ---- responder.c ---- */
void qhca_rsp_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_rx *rx);
/* Requests were dropped on purpose: tell the peer to go back at once. */
void qhca_rsp_ask_again(struct qhca *e, struct qhca_qp *qp);

/* ---- response.c ---- */
static inline struct qhca_resp *qhca_rspq_at(struct qhca_xport *xp,
                                             uint32_t index)
{
    return &xp->rspq[index & (QHCA_RSPQ - 1)];
}
/* A zeroed entry at the end of the queue, or NULL: full. */
struct qhca_resp *qhca_rspq_push(struct qhca *e, struct qhca_qp *qp);
bool qhca_rspq_full(const struct qhca_xport *xp);
/* Owe an acknowledge up to @psn; with the queue full the peer asks again. */
void qhca_owe_ack(struct qhca *e, struct qhca_qp *qp, uint32_t psn);
/* Owe a NAK with AETH @syndrome; false: the queue is full, none will go. */
bool qhca_owe_nak(struct qhca *e, struct qhca_qp *qp, uint32_t psn,
                  uint8_t syndrome);
/* Send owed responses. QHCA_SENT: none to send now or budget used up. */
enum qhca_send qhca_rsp_run(struct qhca *e, struct qhca_qp *qp,
                            unsigned *budget);
/* Are there responses that could be sent now? */
static inline bool qhca_rsp_owed(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = &qp->xp;

    return xp->rspq_head != xp->rspq_tail &&
           (!qhca_odp_waits(qp, QHCA_ODP_READ) ||
            xp->rspq[xp->rspq_tail & (QHCA_RSPQ - 1)].rnr);
}

/* ---- recv.c: receive WQEs ---- */
/*
 * Make sure a receive WQE is held.  QHCA_SYN_NONE, QHCA_SYN_RNR, or what is
 * wrong with it.
 */
uint8_t qhca_recv_take(struct qhca *e, struct qhca_qp *qp);
/* Scatter @len bytes behind what was received so far. */
uint8_t qhca_recv_data(struct qhca *e, struct qhca_qp *qp, const void *buf,
                       uint32_t len);
/* Complete the held receive WQE; @cqe has the caller's own fields. */
bool qhca_recv_complete(struct qhca *e, struct qhca_qp *qp,
                        struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                        uint8_t syndrome, bool solicited);
/* The same with an error. */
void qhca_recv_error(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                     uint8_t syndrome);

/* ---- ud.c ---- */
bool qhca_ud_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
void qhca_ud_rx(struct qhca *e, struct qhca_qp *qp,
                const struct qhca_rx *rx);

/* ---- mcast.c ---- */
/*
 * The multicast group of @gid that has members, for a frame to @dmac; NULL:
 * none, or the MAC address is not the one that belongs to the group.
 */
struct qhca_mcg_group *qhca_mcg_find(struct qhca *e, const uint8_t gid[16],
                                     const uint8_t *dmac);
/* A packet for rx->mcg: to each member that can receive it. */
void qhca_mcg_rx(struct qhca *e, const struct qhca_rx *rx);
/* Call @fn for each group. */
void qhca_mcg_each(struct qhca *e,
                   void (*fn)(void *opaque, const uint8_t gid[16],
                              struct qhca_qp *const *qp, unsigned n),
                   void *opaque);

/* The WQE in e->xd.wqe (if it was @fetched) is done: CQE, and SQE or ERR. */
void qhca_dgram_done(struct qhca *e, struct qhca_qp *qp, uint32_t len,
                     uint8_t status, uint8_t syndrome, bool fetched);
/* Trace that the WQE in e->xd.wqe was taken from @addr. */
void qhca_dgram_trace(struct qhca *e, struct qhca_qp *qp, uint64_t addr);

/* ---- raw.c ---- */
bool qhca_raw_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);

/* ---- flush.c ---- */
/* Flush while the budget lasts; true: there is more. */
bool qhca_flush_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);

/* ---- timer.c ---- */
/* (Re)start the QP's timer in a class: 0..31, or QHCA_TIMER_RNR + code. */
void qhca_timer_start(struct qhca *e, struct qhca_qp *qp, uint8_t cls);
/* The same, for the QP's local ACK timeout; it must have one. */
void qhca_timer_start_ack(struct qhca *e, struct qhca_qp *qp);
void qhca_timer_stop(struct qhca *e, struct qhca_qp *qp);
/* Code of the QP's ACK timeout, without back-off. */
uint8_t qhca_timer_ack_code(const struct qhca *e, const struct qhca_qp *qp);
/* Nanoseconds of an RNR timer code (IBA table 45). */
uint64_t qhca_rnr_ns(uint8_t code);

/* ---- loopback.c ---- */
/* Buffer for the next frame to ourselves, NULL: ring full. */
uint8_t *qhca_loop_slot(struct qhca *e);
/* The frame in the slot is complete. */
void qhca_loop_commit(struct qhca *e, uint32_t len);

#endif /* QHCA_ROCE_H */

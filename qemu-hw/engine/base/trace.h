/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace events of the engine: they let a developer follow a doorbell through
 * the device.  Each event names its object, so that events can be correlated.
 */
#ifndef QHCA_TRACE_H
#define QHCA_TRACE_H

#include <stdint.h>

enum qhca_trace_kind {
    /* addr = offset, a = value */
    QHCA_TR_REG_WRITE,
    /* a = value */
    QHCA_TR_MARKER,
    /* num = obj, a = opcode, b = status */
    QHCA_TR_COMMAND,
    /* num = object, addr = offset in page, a = page (UAR), index */
    QHCA_TR_DOORBELL,
    /* num, a = QHCA_STAT_* counted, text */
    QHCA_TR_GUEST_ERROR,
    /* num = qpn, a = old, b = new, syndrome */
    QHCA_TR_QP_STATE,
    /* num, addr = entry's address, a = entry, b = level */
    QHCA_TR_WALK_HOP,
    /* num, a = offset, addr = DMA address found */
    QHCA_TR_WALK,
    /*
     * num = qpn, index, addr = DMA address, a = opcode, b = wr_id, psn = of its
     * first packet, len = message bytes if known at fetch time
     */
    QHCA_TR_WQE,
    /*
     * num = qpn, index (SRQ: number of the WQE), addr, b = wr_id; for an entry
     * of a matching list index = handle, addr = 0
     */
    QHCA_TR_RECV_WQE,
    /*
     * num = local qpn, peer, psn, a = BTH opcode, b = frame bytes,
     * syndrome = AETH
     */
    QHCA_TR_TX,
    /* the same for a received packet */
    QHCA_TR_RX,
    /* num = dest qpn, psn, a = opcode, b = QHCA_STAT_* counted */
    QHCA_TR_RX_DROP,
    /*
     * num = qpn, addr = DMA address, or offset in device memory for its MRs,
     * a = length, b = 1 write 0 read
     */
    QHCA_TR_DATA,
    /* num = qpn, psn = first one resent, a = QHCA_SYN_*, the reason */
    QHCA_TR_RETRANSMIT,
    /* num = qpn, a = deadline, b = 0 ack 1 rnr */
    QHCA_TR_TIMER,
    /*
     * num = cqn, peer = qpn, index = producer index, a = status, b = wr_id,
     * syndrome, op = QHCA_CQE_OP_*, wqe = WQE counter (SRQ: its number), len =
     * bytes received or read
     */
    QHCA_TR_CQE,
    /* num = eqn, peer = obj, a = type, index = producer index */
    QHCA_TR_EQE,
    /*
     * num = qpn, peer = key, index = QHCA_PAGE_FAULT_* side, addr = address in
     * the MR, a = bytes wanted, b = 1 write 0 read
     */
    QHCA_TR_PAGE_FAULT,
    /* the same when the side resumes; b = 1: software could not help */
    QHCA_TR_RESUME,
    /* num = vector */
    QHCA_TR_MSIX,
    /*
     * num = queue, index, b = frame bytes, len = frames that a super-frame
     * or a merged packet represents; else 0
     */
    QHCA_TR_ETH_TX,
    /*
     * num = queue, index, b = bytes stored; if split a = bytes of the headers,
     * wqe = index in the data ring; psn = hash, op = QHCA_HASH_TYPE_*;
     * len as above
     */
    QHCA_TR_ETH_RX,
    /* num = queue, index, addr = DMA address, a = length, b = 1 write 0 read */
    QHCA_TR_ETH_DATA,
    /*
     * A fault was injected (fault.h): num = object, index = id of the rule, a =
     * enum qhca_fault_action, b = hits of the rule; packets: peer, psn, addr =
     * BTH opcode; DMA: addr
     */
    QHCA_TR_FAULT,
    QHCA_TR_KINDS
};

struct qhca_trace {
    enum qhca_trace_kind kind;
    uint64_t time;              /* device clock, ns */
    uint32_t num;
    uint32_t peer;
    uint32_t psn;
    uint32_t index;
    uint64_t addr;
    uint64_t a;
    uint64_t b;
    uint32_t wqe;
    uint32_t len;
    uint8_t syndrome;
    uint8_t op;
    bool again;                 /* WQE whose fetch already caused a stop */
    const char *text;           /* static, or NULL */
};

/** Name of a kind, e.g. "doorbell"; static. */
const char *qhca_trace_name(enum qhca_trace_kind kind);

#endif /* QHCA_TRACE_H */

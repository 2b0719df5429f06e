/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding WQEs and CQEs, which may be invalid or incomplete. */
#include "observe/decode.h"
#include "transport/rc.h"
#include "transport/tag_qp.h"

/* Decode @num SGEs, as far as they fit, at @off of an entry of @len bytes. */
static void decode_sges(const struct qhca_emit *em, const uint8_t *p,
                        size_t len,
                        size_t off, uint32_t num)
{
    uint32_t i;

    qhca_emit_list(em, "sges");
    for (i = 0; i < num && off + sizeof(struct qhca_sge) <= len; i++) {
        qhca_decode_as(em, NULL, qhca_fields_sge, p + off);
        off += sizeof(struct qhca_sge);
    }
    qhca_emit_end(em);
    if (i < num) {
        qhca_emit_text(em, "wrong", "more SGEs than the entry holds");
    }
}

/* Offset of the SGEs or the inline data. */
static size_t data_off(uint8_t qp_type, uint8_t opcode)
{
    switch (qp_type) {
    case QHCA_QPT_UD:
    case QHCA_QPT_GSI:
        return sizeof(struct qhca_ud_wqe);
    case QHCA_QPT_XRC_INI:
        return sizeof(struct qhca_xrc_wqe);
    default:
        return opcode == QHCA_WQE_MASKED_COMP_SWAP ||
               opcode == QHCA_WQE_MASKED_FETCH_ADD ?
               sizeof(struct qhca_masked_wqe) : sizeof(struct qhca_sq_wqe);
    }
}

void qhca_decode_send_wqe(const struct qhca_emit *em, uint8_t qp_type,
                          const void *p, size_t len)
{
    const uint8_t *b = p;
    uint32_t num = b[2] | b[3] << 8;
    size_t off = data_off(qp_type, b[0]);

    qhca_decode(em, qhca_fields_ctrl, p);
    if (off > len) {
        qhca_emit_text(em, "wrong", "the entry is too short for its header");
        return;
    }
    switch (off) {
    case sizeof(struct qhca_ud_wqe):
        qhca_emit_dec(em, "dest_qpn", qhca_get_le32(b + 0x20));
        qhca_emit_hex(em, "qkey", qhca_get_le32(b + 0x24));
        qhca_decode_as(em, "av", qhca_fields_av, b + 0x30);
        break;
    case sizeof(struct qhca_sq_wqe):
        qhca_decode_as(em, "remote", qhca_fields_remote, b + 0x20);
        break;
    default:                    /* xrc and masked have the same size */
        qhca_decode_as(em, "remote", qhca_fields_remote, b + 0x20);
        if (qp_type == QHCA_QPT_XRC_INI) {
            qhca_emit_dec(em, "srqn", qhca_get_le32(b + 0x30));
        } else {
            qhca_emit_hex(em, "mask", qhca_get_le64(b + 0x30));
            qhca_emit_hex(em, "swap_mask", qhca_get_le64(b + 0x38));
        }
        break;
    }
    if (b[1] & QHCA_WQE_F_INLINE) {
        if (num > len - off) {
            qhca_emit_text(em, "wrong", "more bytes than the entry holds");
            num = (uint32_t)(len - off);
        }
        qhca_emit_bytes(em, "inline", b + off, num);
    } else {
        decode_sges(em, p, len, off, num);
    }
}

void qhca_decode_recv_wqe(const struct qhca_emit *em, const void *p,
                          size_t len)
{
    const uint8_t *b = p;

    qhca_decode(em, qhca_fields_rq_wqe, p);
    decode_sges(em, p, len, sizeof(struct qhca_rq_wqe), b[8] | b[9] << 8);
}

void qhca_decode_eth_wqe(const struct qhca_emit *em, const void *p,
                         size_t len)
{
    const uint8_t *b = p;
    uint32_t num = b[2] | b[3] << 8, i;
    size_t off = sizeof(struct qhca_eth_wqe);

    qhca_decode(em, qhca_fields_eth_wqe, p);
    qhca_emit_list(em, "segs");
    for (i = 0; i < num && off + sizeof(struct qhca_eth_seg) <= len; i++) {
        qhca_decode_as(em, NULL, qhca_fields_eth_seg, b + off);
        off += sizeof(struct qhca_eth_seg);
    }
    qhca_emit_end(em);
}

void qhca_decode_tm_wqe(const struct qhca_emit *em, const void *p,
                        size_t len)
{
    const uint8_t *b = p;

    qhca_decode(em, qhca_fields_tm_wqe, p);
    if (b[0] == QHCA_WQE_TAG_ADD) {
        decode_sges(em, p, len, sizeof(struct qhca_tm_wqe), b[2] | b[3] << 8);
    }
}

static bool decode_is_tm(uint8_t opcode)
{
    return opcode >= QHCA_CQE_OP_TM_RECV && opcode <= QHCA_CQE_OP_TM_SYNC;
}

static bool decode_is_eth(uint8_t opcode)
{
    return opcode == QHCA_CQE_OP_ETH_SEND || opcode == QHCA_CQE_OP_ETH_RECV;
}

void qhca_decode_cqe(const struct qhca_emit *em, const void *p)
{
    uint8_t opcode = ((const uint8_t *)p)[offsetof(struct qhca_cqe, opcode)];

    qhca_decode(em, decode_is_tm(opcode) ? qhca_fields_tm_cqe :
                decode_is_eth(opcode) ? qhca_fields_eth_cqe : qhca_fields_cqe,
                p);
}

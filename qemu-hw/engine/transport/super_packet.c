/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Super-frames of RoCEv2: packets of one message that pass the wire as one.
 *
 * It is one packet with the payload of all.  Opcode and extended headers are
 * those of a packet that begins like the first and ends like the last; the PSN
 * is that of the first, AckReq and the solicited event bit are those of the
 * last.  The ICRC covers it like any packet; the trailer that follows contains
 * the path MTU and the number of packets.
 *
 * Cutting it yields exactly the packets that would have been sent one by one.
 */
#include "transport/rc.h"

#define ACKREQ          0x80    /* of bth[8] */
#define SOLICITED       0x80    /* of bth[1] */
#define PAD_MASK        0x30

/* Can packets of this kind be sent together? */
static bool op_suits(uint32_t flags)
{
    return (flags & QHCA_OPF_PAYLOAD) && !(flags & QHCA_OPF_DETH) &&
           (flags & (QHCA_OPF_SEND | QHCA_OPF_WRITE | QHCA_OPF_READ));
}

/* The operation of a packet out of the super-frame with operation @op. */
static uint8_t part_op(uint8_t op, bool first, bool last)
{
    uint32_t flags = qhca_op_info(op).flags;
    uint8_t class = op & QHCA_CLASS_MASK;

    if (flags & QHCA_OPF_READ) {
        return class | (first ? QHCA_OP_READ_RESP_FIRST :
                        last ? QHCA_OP_READ_RESP_LAST :
                               QHCA_OP_READ_RESP_MIDDLE);
    }
    if (flags & QHCA_OPF_WRITE) {
        return class | (first ? QHCA_OP_WRITE_FIRST :
                        !last ? QHCA_OP_WRITE_MIDDLE :
                        flags & QHCA_OPF_IMM ? QHCA_OP_WRITE_LAST_IMM :
                                               QHCA_OP_WRITE_LAST);
    }
    return class | (first ? QHCA_OP_SEND_FIRST :
                    !last ? QHCA_OP_SEND_MIDDLE :
                    flags & QHCA_OPF_IMM ? QHCA_OP_SEND_LAST_IMM :
                    flags & QHCA_OPF_INV ? QHCA_OP_SEND_LAST_INV :
                                           QHCA_OP_SEND_LAST);
}

/* The header of @len bytes at *@from, if the packet has it, too. */
static uint32_t part_ext(uint8_t *to, const uint8_t **from, uint32_t whole,
                         uint32_t part, uint32_t flag, uint32_t len)
{
    const uint8_t *p = *from;

    if (!(whole & flag)) {
        return 0;
    }
    *from += len;
    if (!(part & flag)) {
        return 0;
    }
    memcpy(to, p, len);
    return len;
}

/* The @len bytes at @off of a payload that is shared, in one piece. */
static const uint8_t *shared_at(struct qhca_payload *p, uint32_t off,
                                uint32_t len)
{
    uint32_t done, n, from;

    if (off < p->at) {
        p->i = 0;
        p->at = 0;
    }
    while (off - p->at >= p->piece[p->i].len && p->i + 1 < p->pieces) {
        p->at += p->piece[p->i++].len;
    }
    from = off - p->at;
    if (len <= p->piece[p->i].len - from) {
        return p->piece[p->i].data + from;
    }
    for (done = 0; done < len; done += n) {
        n = p->piece[p->i].len - from;
        n = n < len - done ? n : len - done;
        memcpy(p->bounce + done, p->piece[p->i].data + from, n);
        if (done + n < len) {
            p->at += p->piece[p->i++].len;
            from = 0;
        }
    }
    return p->bounce;
}

void qhca_super_packet_head(const struct qhca_super_packet *s, uint32_t k,
                            struct qhca_part *p)
{
    uint32_t whole = qhca_op_info(s->bth[0]).flags, flags, psn;
    bool end = k + 1 == s->n;
    const uint8_t *ext = s->bth + QHCA_BTH_LEN;
    uint8_t *to = p->hdr + QHCA_BTH_LEN;

    p->len = end ? s->payload_len - k * s->size : s->size;
    p->data = NULL;
    memcpy(p->hdr, s->bth, QHCA_BTH_LEN);
    if (s->n > 1) {
        p->hdr[0] = part_op(s->bth[0], !k && (whole & QHCA_OPF_START),
                            end && (whole & QHCA_OPF_END));
    }
    p->info = qhca_op_info(p->hdr[0]);
    flags = p->info.flags;
    psn = qhca_psn_add(qhca_get_be32(s->bth + 8) & QHCA_PSN_MASK, k);
    qhca_put_be32(p->hdr + 8, psn);
    if (end) {
        p->hdr[8] |= s->bth[8] & ACKREQ;
    } else {
        p->hdr[1] &= (uint8_t)~(SOLICITED | PAD_MASK);
    }
    to += part_ext(to, &ext, whole, flags, QHCA_OPF_XRCETH, QHCA_XRCETH_LEN);
    to += part_ext(to, &ext, whole, flags, QHCA_OPF_RETH, QHCA_RETH_LEN);
    to += part_ext(to, &ext, whole, flags, QHCA_OPF_AETH, QHCA_AETH_LEN);
    to += part_ext(to, &ext, whole, flags, QHCA_OPF_IMM, QHCA_IMM_LEN);
    part_ext(to, &ext, whole, flags, QHCA_OPF_INV, QHCA_IETH_LEN);
    if (s->n == 1) {
        /* Of any kind. */
        memcpy(p->hdr + QHCA_BTH_LEN, s->bth + QHCA_BTH_LEN, p->info.ext);
    }
    p->hdr_len = QHCA_BTH_LEN + p->info.ext;
    p->frame_len = (uint32_t)(s->bth - s->eth) + p->hdr_len + p->len +
                   (-p->len & 3) + QHCA_ICRC_LEN;
}

void qhca_super_packet_part(const struct qhca_super_packet *s, uint32_t k,
                            struct qhca_part *p)
{
    qhca_super_packet_head(s, k, p);
    p->data = s->shared ? shared_at(s->shared, k * s->size, p->len) :
                          s->payload + (size_t)k * s->size;
}

uint32_t qhca_part_frame(const uint8_t *eth, const uint8_t *ip,
                         const uint8_t *bth, const struct qhca_part *p,
                         uint8_t *to)
{
    size_t head = (size_t)(bth - eth);
    uint32_t body = p->hdr_len + p->len, pad = -p->len & 3;
    uint8_t *at = to + head;
    uint32_t crc;

    memcpy(to, eth, head);
    memcpy(at, p->hdr, p->hdr_len);
    memcpy(at + p->hdr_len, p->data, p->len);
    memset(at + body, 0, pad);
    crc = qhca_frame_seal(to + (ip - eth), ip[0] >> 4 == 6, at, body + pad);
    qhca_put_le32(at + body + pad, crc);
    return p->frame_len;
}

uint32_t qhca_super_packet_cut(const struct qhca_super_packet *s, uint32_t k,
                               uint8_t *to)
{
    struct qhca_part p;

    qhca_super_packet_part(s, k, &p);
    return qhca_part_frame(s->eth, s->ip, s->bth, &p, to);
}

void qhca_super_packet_frames(const struct qhca_super_packet *s,
                              struct qhca_wire_frames *as)
{
    struct qhca_part p;

    as->n = s->n;
    as->len = 0;
    as->first = 0;
    if (s->n > 1) {
        qhca_super_packet_head(s, 0, &p);
        as->first = p.frame_len;
    }
    qhca_super_packet_head(s, s->n - 1u, &p);
    as->last = p.frame_len;
    if (s->n > 2) {
        qhca_super_packet_head(s, 1, &p);
        as->len = p.frame_len;
    }
}

/* Do size and number of packets agree with the payload of @body bytes? */
static bool sizes_ok(const struct qhca_super_packet *s, uint32_t body)
{
    uint32_t before = (s->n - 1u) * s->size;

    return s->size >= qhca_mtu_bytes(1) && s->size <= qhca_mtu_bytes(5) &&
           !(s->size & (s->size - 1)) && body > before &&
           body - before <= s->size && s->payload_len > before;
}

bool qhca_super_packet_find(const uint8_t *frame, size_t len,
                            const struct qhca_headers *h,
                            struct qhca_super_packet *s)
{
    struct qhca_op_info info;
    const uint8_t *end;
    uint32_t body, pad;
    size_t head;

    if (h->l4_proto != QHCA_PROTO_UDP || !h->l4_hlen ||
        qhca_get_be16(h->l4 + 2) != QHCA_ROCE_UDP_PORT) {
        return false;
    }
    /* No IP options or extension headers: cut packets have no room for them. */
    if (h->l4 != h->l3 + (h->version == 4 ? QHCA_IP4_HLEN : QHCA_IP6_HLEN)) {
        return false;
    }
    end = h->l4 + h->l4_len;
    if ((size_t)(end - frame) + QHCA_SUPER_TRAILER != len ||
        !qhca_super_read(end, &s->size, &s->n)) {
        return false;
    }
    head = QHCA_UDP_HLEN + QHCA_BTH_LEN + QHCA_ICRC_LEN;
    if (h->l4_len < head) {
        return false;
    }
    s->eth = frame;
    s->ip = h->l3;
    s->bth = h->l4 + QHCA_UDP_HLEN;
    info = qhca_op_info(s->bth[0]);
    body = (uint32_t)(h->l4_len - head);
    if (!op_suits(info.flags) || body < info.ext) {
        return false;
    }
    body -= info.ext;
    pad = (s->bth[1] & PAD_MASK) >> 4;
    if (body < pad || (body & 3)) {
        return false;
    }
    s->payload = s->bth + QHCA_BTH_LEN + info.ext;
    s->shared = NULL;
    s->payload_len = body - pad;
    return sizes_ok(s, body);
}

bool qhca_super_packet_shared(struct qhca *e,
                              const struct qhca_memlink_frame *f,
                              const struct qhca_headers *h,
                              struct qhca_payload *p,
                              struct qhca_super_packet *s)
{
    uint32_t head = QHCA_UDP_HLEN + QHCA_BTH_LEN + QHCA_ICRC_LEN, pad;
    struct qhca_op_info info;

    if (h->l4_proto != QHCA_PROTO_UDP || !h->l4_hlen ||
        qhca_get_be16(h->l4 + 2) != QHCA_ROCE_UDP_PORT ||
        h->l4 != h->l3 + (h->version == 4 ? QHCA_IP4_HLEN : QHCA_IP6_HLEN) ||
        h->l4 + h->l4_len != f->head + f->len || h->l4_len < head) {
        return false;
    }
    *p = (struct qhca_payload) {
        .piece = f->piece, .pieces = f->pieces, .bounce = e->xd->bounce,
    };
    *s = (struct qhca_super_packet) {
        .eth = f->head, .ip = h->l3, .bth = h->l4 + QHCA_UDP_HLEN,
        .shared = p, .payload_len = f->payload, .size = f->mtu,
        .n = f->packets,
    };
    info = qhca_op_info(s->bth[0]);
    pad = (s->bth[1] & PAD_MASK) >> 4;
    if (!info.flags || h->l4_len != head + info.ext ||
        pad != (-f->payload & 3)) {
        return false;
    }
    if (s->n > 1) {
        return op_suits(info.flags) && sizes_ok(s, f->payload + pad);
    }
    return info.flags & QHCA_OPF_PAYLOAD ? f->payload <= qhca_mtu_bytes(5) :
                                           !f->payload;
}

bool qhca_super_packet_intact(const struct qhca_super_packet *s)
{
    const uint8_t *crc = s->payload + s->payload_len + (-s->payload_len & 3);

    bool v6 = s->ip[0] >> 4 == 6;

    return qhca_csum_ip_ok(s->ip, v6 ? 6 : 4, QHCA_IP4_HLEN) &&
           qhca_icrc(s->ip, v6, (size_t)(crc - s->ip)) == qhca_get_le32(crc);
}

uint32_t qhca_super_packet_most(struct qhca *e, struct qhca_frame *f,
                                uint32_t mtu, bool refs)
{
    uint32_t n = (QHCA_ETH_SUPER_IP_MAX - QHCA_IP6_HLEN - QHCA_UDP_HLEN -
                  QHCA_BTH_LEN - QHCA_EXT_MAX - QHCA_ICRC_LEN) / mtu;

    /*
     * Faults, steps and sniffers work on single packets, so these are sent
     * while any of them is active.
     */
    if (f->ml) {
        f->mtu = (uint16_t)mtu;
        return refs || n > QHCA_MEMLINK_PACKETS ? QHCA_MEMLINK_PACKETS : n;
    }
    if (!e->cfg.super_frames || !f->wire || f->loop || e->fault_sites ||
        e->debugging || e->sniff) {
        return 1;
    }
    f->mtu = (uint16_t)mtu;
    return n < QHCA_ETH_SUPER_SEGS_MAX ? n : QHCA_ETH_SUPER_SEGS_MAX;
}

void qhca_each_packet(const void *frame, size_t len,
                      void (*fn)(void *opaque, const void *frame, size_t len),
                      void *opaque)
{
    uint8_t piece[QHCA_FRAME_MAX];
    struct qhca_super_packet s;
    struct qhca_headers h;
    uint32_t k;

    if (len >= QHCA_ETH_HLEN) {
        qhca_headers_parse(frame, len, &h);
        /* Cutting a damaged one would produce correct ICRCs. */
        if (qhca_super_packet_find(frame, len, &h, &s) &&
            qhca_super_packet_intact(&s)) {
            for (k = 0; k < s.n; k++) {
                fn(opaque, piece, qhca_super_packet_cut(&s, k, piece));
            }
            return;
        }
    }
    fn(opaque, frame, len);
}

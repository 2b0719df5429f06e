/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RoCEv2 frames: parsing and building. */
#include "transport/rc.h"

#define IP4_DF          0x4000
#define DEFAULT_HOPS    64
#define VLAN_VID        0x0fff
#define DEFAULT_PKEY    0xffff
/* Including pad: the largest MTU there is, whatever the link allows. */
#define PAYLOAD_MAX     4096
/* Received packets are kept (odp.c) and saved whole. */
_Static_assert(QHCA_ETH_HLEN + QHCA_VLAN_HLEN + QHCA_IP6_HLEN +
               QHCA_UDP_HLEN + QHCA_BTH_LEN + QHCA_EXT_MAX + PAYLOAD_MAX +
               QHCA_ICRC_LEN <= QHCA_FRAME_MAX,
               "a received packet may be too long to be loaded");
_Static_assert(QHCA_XRCETH_LEN + QHCA_ATETH_LEN + QHCA_MASKS_LEN <=
               QHCA_EXT_MAX,
               "extended headers");
_Static_assert(QHCA_ETH_HLEN + QHCA_VLAN_HLEN + QHCA_IP6_HLEN +
               QHCA_UDP_HLEN + QHCA_BTH_LEN + QHCA_EXT_MAX <=
               QHCA_SHRING_HEAD_MAX,
               "a record has too little room for headers");

#define RC_REQ(f, ext) { QHCA_OPF_VALID | (f), (ext) }
#define RESP(f, ext)   { QHCA_OPF_VALID | QHCA_OPF_RESP | (f), (ext) }
#define START   QHCA_OPF_START
#define END     QHCA_OPF_END
#define ONLY    (QHCA_OPF_START | QHCA_OPF_END)
#define SEND    (QHCA_OPF_SEND | QHCA_OPF_PAYLOAD)
#define WRITE   (QHCA_OPF_WRITE | QHCA_OPF_PAYLOAD)
#define RETH    QHCA_OPF_RETH
#define IMM     QHCA_OPF_IMM
#define INV     QHCA_OPF_INV
#define AETH    QHCA_OPF_AETH

/* Indexed by the operation, opcode bits 4:0. */
static const struct qhca_op_info ops_rc[32] = {
    [QHCA_OP_SEND_FIRST] = RC_REQ(SEND | START, 0),
    [QHCA_OP_SEND_MIDDLE] = RC_REQ(SEND, 0),
    [QHCA_OP_SEND_LAST] = RC_REQ(SEND | END, 0),
    [QHCA_OP_SEND_LAST_IMM] = RC_REQ(SEND | END | IMM, QHCA_IMM_LEN),
    [QHCA_OP_SEND_ONLY] = RC_REQ(SEND | ONLY, 0),
    [QHCA_OP_SEND_ONLY_IMM] = RC_REQ(SEND | ONLY | IMM, QHCA_IMM_LEN),
    [QHCA_OP_WRITE_FIRST] = RC_REQ(WRITE | START | RETH, QHCA_RETH_LEN),
    [QHCA_OP_WRITE_MIDDLE] = RC_REQ(WRITE, 0),
    [QHCA_OP_WRITE_LAST] = RC_REQ(WRITE | END, 0),
    [QHCA_OP_WRITE_LAST_IMM] = RC_REQ(WRITE | END | IMM, QHCA_IMM_LEN),
    [QHCA_OP_WRITE_ONLY] = RC_REQ(WRITE | ONLY | RETH, QHCA_RETH_LEN),
    [QHCA_OP_WRITE_ONLY_IMM] = RC_REQ(WRITE | ONLY | RETH | IMM,
                                      QHCA_RETH_LEN + QHCA_IMM_LEN),
    [QHCA_OP_READ_REQUEST] = RC_REQ(QHCA_OPF_READ | ONLY | RETH,
                                    QHCA_RETH_LEN),
    [QHCA_OP_READ_RESP_FIRST] = RESP(QHCA_OPF_READ | QHCA_OPF_PAYLOAD |
                                     START | AETH, QHCA_AETH_LEN),
    [QHCA_OP_READ_RESP_MIDDLE] = RESP(QHCA_OPF_READ | QHCA_OPF_PAYLOAD, 0),
    [QHCA_OP_READ_RESP_LAST] = RESP(QHCA_OPF_READ | QHCA_OPF_PAYLOAD | END |
                                    AETH, QHCA_AETH_LEN),
    [QHCA_OP_READ_RESP_ONLY] = RESP(QHCA_OPF_READ | QHCA_OPF_PAYLOAD | ONLY |
                                    AETH, QHCA_AETH_LEN),
    [QHCA_OP_ACK] = RESP(ONLY | AETH, QHCA_AETH_LEN),
    [QHCA_OP_ATOMIC_ACK] = RESP(QHCA_OPF_ATOMIC | ONLY | AETH |
                                QHCA_OPF_ATACK,
                                QHCA_AETH_LEN + QHCA_ATACK_LEN),
    [QHCA_OP_COMP_SWAP] = RC_REQ(QHCA_OPF_ATOMIC | ONLY, QHCA_ATETH_LEN),
    [QHCA_OP_FETCH_ADD] = RC_REQ(QHCA_OPF_ATOMIC | ONLY, QHCA_ATETH_LEN),
    [QHCA_OP_SEND_LAST_INV] = RC_REQ(SEND | END | INV, QHCA_IETH_LEN),
    [QHCA_OP_SEND_ONLY_INV] = RC_REQ(SEND | ONLY | INV, QHCA_IETH_LEN),
    [QHCA_OP_FLUSH] = RC_REQ(QHCA_OPF_FLUSH | ONLY,
                             QHCA_FETH_LEN + QHCA_RETH_LEN),
    [QHCA_OP_ATOMIC_WRITE] = RC_REQ(QHCA_OPF_AWRITE | QHCA_OPF_PAYLOAD |
                                    ONLY | RETH, QHCA_RETH_LEN),
};

struct qhca_op_info qhca_op_info(uint8_t op)
{
    static const struct qhca_op_info none;
    struct qhca_op_info info;

    switch (op & QHCA_CLASS_MASK) {
    case QHCA_CLASS_RC:
        return ops_rc[op];
    case QHCA_CLASS_UC:
        op &= 0x1f;
        return op <= QHCA_OP_WRITE_ONLY_IMM ? ops_rc[op] : none;
    case QHCA_CLASS_UD:
        op &= 0x1f;
        if (op != QHCA_OP_SEND_ONLY && op != QHCA_OP_SEND_ONLY_IMM) {
            return none;
        }
        info = ops_rc[op];
        info.flags |= QHCA_OPF_DETH;
        info.ext += QHCA_DETH_LEN;
        return info;
    case QHCA_CLASS_XRC:
        info = ops_rc[op & QHCA_OP_MASK];
        if (info.flags && !(info.flags & QHCA_OPF_RESP)) {
            info.flags |= QHCA_OPF_XRCETH;
            info.ext += QHCA_XRCETH_LEN;
        }
        return info;
    case QHCA_CLASS_OWN:
        info = ops_rc[op & QHCA_OP_MASK];
        if (!(info.flags & QHCA_OPF_ATOMIC) || (info.flags & QHCA_OPF_RESP)) {
            return none;
        }
        info.flags |= QHCA_OPF_MASKED;
        info.ext += QHCA_MASKS_LEN;
        return info;
    default:
        return none;
    }
}

static void gid_from_ip4(uint8_t gid[16], const uint8_t *addr)
{
    memset(gid, 0, 10);
    gid[10] = 0xff;
    gid[11] = 0xff;
    memcpy(gid + 12, addr, 4);
}

static void packet_trace(struct qhca *e, enum qhca_trace_kind kind,
                         uint32_t num, uint32_t peer, const uint8_t *bth,
                         uint64_t b)
{
    struct qhca_op_info info = qhca_op_info(bth[0]);
    struct qhca_trace t = {
        .kind = kind,
        .num = num,
        .peer = peer,
        .psn = qhca_get_be32(bth + 8) & QHCA_PSN_MASK,
        .a = bth[0],
        .b = b,
    };

    if (kind == QHCA_TR_RX && (info.flags & QHCA_OPF_DETH)) {
        /* Datagrams carry the source QP in the DETH (IBA 9.3.1). */
        t.peer = qhca_get_be32(bth + QHCA_BTH_LEN + 4) & QHCA_PSN_MASK;
    }
    if (info.flags & QHCA_OPF_AETH) {
        t.syndrome = bth[QHCA_BTH_LEN];
    }
    qhca_trace_emit(e, &t);
}

void qhca_rx_drop(struct qhca *e, const struct qhca_rx *rx, unsigned stat)
{
    qhca_count(e, stat);
    if (qhca_tracing(e)) {
        struct qhca_trace t = {
            .kind = QHCA_TR_RX_DROP,
            .num = rx->qpn,
            .psn = rx->psn,
            .a = rx->opcode,
            .b = stat,
        };

        qhca_trace_emit(e, &t);
    }
}

/* Index of our GID @gid on the VLAN of @tci; -1: none. */
static int own_gid(struct qhca *e, const uint8_t gid[16], uint16_t tci)
{
    /* VID 0 is a priority tag, not a VLAN. */
    uint16_t vlan = tci == QHCA_VLAN_NONE || !(tci & VLAN_VID) ?
                    QHCA_VLAN_NONE : tci & VLAN_VID;
    int index = qhca_gid_find(e, gid, vlan);

    if (index < 0 && tci != vlan) {
        index = qhca_gid_find(e, gid, tci & VLAN_VID);
    }
    return index;
}

/* Soft-RoCE computes the ICRC of FLUSH requests differently. */
static bool packet_check_icrc(struct qhca_rx *rx, const uint8_t *bth,
                              uint32_t body)
{
    size_t len = QHCA_BTH_LEN + body;
    uint32_t crc = qhca_icrc(rx->ip, rx->v6, (size_t)(bth - rx->ip) + len);
    uint32_t got = qhca_get_le32(bth + len);

    rx->crc_twice = crc != got && rx->opcode == QHCA_OP_FLUSH &&
                    qhca_icrc_twice(crc, bth, len) == got;
    return crc == got || rx->crc_twice;
}

/* Take the XRCETH, which is the first extended header. */
static void packet_take_xrceth(struct qhca_rx *rx)
{
    rx->srqn = 0;
    if (rx->flags & QHCA_OPF_XRCETH) {
        rx->srqn = qhca_get_be32(rx->ext) & QHCA_PSN_MASK;
        rx->ext += QHCA_XRCETH_LEN;
    }
}

/*
 * qhca_parse() of a frame of @len bytes whose headers have been parsed; @s: the
 * super-frame that it is, or NULL.
 */
static enum qhca_parse packet_parse(struct qhca *e, const uint8_t *frame,
                                    size_t len, const struct qhca_headers *h,
                                    const struct qhca_super_packet *s,
                                    struct qhca_rx *rx)
{
    /* Of a memory link: no payload here, no ICRC. */
    bool super = s, shared = s && s->shared;
    const uint8_t *ip, *udp, *bth;
    size_t l3, udp_len;
    uint8_t gid[16];
    struct qhca_op_info info;
    uint32_t body;

    if ((len > QHCA_ETH_MAX_FRAME && !super) ||
        ((frame[0] & 1) && !e->xd->mc_groups)) {
        return QHCA_PARSE_NOT_OURS;
    }
    if (!h->version || !h->whole || h->proto != QHCA_PROTO_UDP) {
        return QHCA_PARSE_NOT_OURS;
    }
    /* QHCA_VLAN_NONE is all ones; VID 4095 is reserved */
    if (h->tagged && (h->tci & VLAN_VID) == VLAN_VID) {
        return QHCA_PARSE_NOT_OURS;
    }
    rx->tci = h->tagged ? h->tci : QHCA_VLAN_NONE;
    rx->v6 = h->version == 6;
    ip = h->l3;
    udp = ip + h->ip_len;
    l3 = h->payload;
    if (rx->v6) {
        memcpy(gid, ip + 24, 16);
        memcpy(rx->sgid, ip + 8, 16);
        if (qhca_ip6_is_ip4(gid)) {
            return QHCA_PARSE_NOT_OURS; /* not a valid address on the wire */
        }
    } else {
        /* RoCEv2 uses no IP options and is never fragmented. */
        if (h->ip_len != QHCA_IP4_HLEN || (h->frag & QHCA_IP4_FRAGMENT)) {
            return QHCA_PARSE_NOT_OURS;
        }
        gid_from_ip4(gid, ip + 16);
        gid_from_ip4(rx->sgid, ip + 12);
    }
    if (l3 < QHCA_UDP_HLEN ||
        qhca_get_be16(udp + 2) != QHCA_ROCE_UDP_PORT) {
        return QHCA_PARSE_NOT_OURS;
    }
    if (frame[0] & 1) {
        /* Groups are joined per port: the VLAN does not matter. */
        rx->mcg = qhca_mcg_find(e, gid, frame);
        rx->gid = -1;
        if (!rx->mcg) {
            return QHCA_PARSE_NOT_OURS;
        }
    } else {
        rx->mcg = NULL;
        rx->gid = own_gid(e, gid, rx->tci);
        if (rx->gid < 0 || (memcmp(frame, e->xd->gids[rx->gid].mac, 6) &&
                            memcmp(frame, e->mac, 6))) {
            return QHCA_PARSE_NOT_OURS;
        }
    }

    /* From here on the packet is RoCEv2 for us; errors make it malformed. */
    rx->eth = frame;
    rx->ip = ip;
    /* Exclude padding added by Ethernet. */
    rx->frame_len = (uint32_t)(udp + l3 - frame);
    rx->super = NULL;
    rx->qpn = 0;
    rx->psn = 0;
    rx->opcode = 0;
    udp_len = qhca_get_be16(udp + 4);
    if (udp_len != l3 ||
        l3 < QHCA_UDP_HLEN + QHCA_BTH_LEN + QHCA_ICRC_LEN) {
        return QHCA_PARSE_BAD;
    }
    if (!qhca_csum_ip_ok(ip, rx->v6 ? 6 : 4, QHCA_IP4_HLEN)) {
        return QHCA_PARSE_BAD;
    }
    bth = udp + QHCA_UDP_HLEN;
    rx->opcode = bth[0];
    rx->se = bth[1] & 0x80;
    rx->pad = (bth[1] >> 4) & 3;
    rx->pkey = qhca_get_be16(bth + 2);
    rx->qpn = qhca_get_be32(bth + 4) & QHCA_PSN_MASK;
    rx->ackreq = bth[8] & 0x80;
    rx->psn = qhca_get_be32(bth + 8) & QHCA_PSN_MASK;
    info = qhca_op_info(rx->opcode);
    rx->flags = info.flags;
    body = (uint32_t)(l3 - QHCA_UDP_HLEN - QHCA_BTH_LEN - QHCA_ICRC_LEN);
    rx->crc_twice = false;
    if (!shared && !packet_check_icrc(rx, bth, body)) {
        return QHCA_PARSE_ICRC;
    }
    if ((bth[1] & 0x0f) != 0 || !info.flags || body < info.ext) {
        return QHCA_PARSE_BAD;  /* transport version must be 0 */
    }
    body -= info.ext;
    if (shared) {
        body = rx->pad;         /* checked by qhca_super_packet_shared() */
    }
    if (body < rx->pad || ((body & 3) && !shared) ||
        (body > PAYLOAD_MAX && !super) ||
        (!(info.flags & QHCA_OPF_PAYLOAD) && body)) {
        return QHCA_PARSE_BAD;
    }
    /* P_Key: default partition only, full or limited member */
    if ((rx->pkey | 0x8000) != DEFAULT_PKEY) {
        return QHCA_PARSE_BAD;
    }
    rx->bth = bth;
    rx->ext = bth + QHCA_BTH_LEN;
    rx->ext_end = rx->ext + info.ext;
    rx->payload = rx->ext_end;
    rx->payload_len = body - rx->pad;
    packet_take_xrceth(rx);
    return QHCA_PARSE_OK;
}

enum qhca_parse qhca_parse(struct qhca *e, const uint8_t *frame, size_t len,
                           struct qhca_rx *rx)
{
    struct qhca_headers h;

    if (len < QHCA_ETH_HLEN) {
        return QHCA_PARSE_NOT_OURS;
    }
    qhca_headers_parse(frame, len, &h);
    return packet_parse(e, frame, len, &h, NULL, rx);
}

void qhca_rx_frame(const struct qhca_rx *rx, uint8_t *to)
{
    if (rx->super) {
        qhca_part_frame(rx->eth, rx->ip, rx->super->bth, rx->part, to);
    } else {
        memcpy(to, rx->eth, rx->frame_len);
    }
}

enum qhca_send qhca_frame_begin(struct qhca *e, const struct qhca_av *av,
                                uint32_t qpn, uint32_t peer,
                                struct qhca_frame *f)
{
    uint16_t index = qhca_le16(av->sgid_index), vlan, sport;
    uint8_t *p, hops = av->hop_limit ? av->hop_limit : DEFAULT_HOPS;
    const struct qhca_gid *g;
    int own;

    if (index >= e->cfg.max_gid) {
        return QHCA_BAD_AV;
    }
    g = &e->xd->gids[index];
    f->v6 = !qhca_ip6_is_ip4(av->dgid);
    if (g->type != QHCA_GID_ROCE_V2 || f->v6 == qhca_ip6_is_ip4(g->gid)) {
        return QHCA_BAD_AV;
    }
    /* Our own GID on the same VLAN?  A loopback route has no MAC address. */
    vlan = qhca_le16(g->vlan);
    own = qhca_gid_find(e, av->dgid, vlan);
    f->loop = own >= 0 &&
              (!memcmp(av->dmac, e->xd->gids[own].mac, 6) ||
               !memcmp(av->dmac, e->mac, 6) ||
               !memcmp(av->dmac, "\0\0\0\0\0\0", 6));
    f->wire = !f->loop;
    f->packets = 1;
    f->mtu = 0;
    f->ml = NULL;
    f->refs = false;
    f->ack_waits = false;
    f->crc_twice = false;
    if ((av->dmac[0] & 1) && e->xd->mc_groups &&
        qhca_mcg_find(e, av->dgid, av->dmac)) {
        f->loop = true;         /* local members get a copy */
    }
    if (f->wire && !f->loop) {
        switch (qhca_memlink_way(e, av->dmac, e->xd->parting, &f->ml)) {
        case QHCA_WAY_WAIT:
            return QHCA_BLOCKED;
        case QHCA_WAY_LINK:
            f->wire = false;
            break;
        case QHCA_WAY_WIRE:
            f->ml = NULL;
            break;
        }
    }
    if (f->wire && e->tx_blocked && !e->xd->parting) {
        return QHCA_BLOCKED;
    }
    f->data = f->loop ? qhca_loop_slot(e) : e->xd->frame;
    if (!f->data) {
        return QHCA_BLOCKED;
    }

    p = f->data;
    memcpy(p, f->wire || f->ml ? av->dmac : e->xd->gids[own].mac, 6);
    memcpy(p + 6, g->mac, 6);
    p += 12;
    if (vlan != QHCA_VLAN_NONE) {
        qhca_put_be16(p, QHCA_ETHERTYPE_VLAN);
        qhca_put_be16(p + 2, (uint16_t)((av->sl & 7) << 13) |
                      (vlan & VLAN_VID));
        p += QHCA_VLAN_HLEN;
    }
    qhca_put_be16(p, f->v6 ? QHCA_ETHERTYPE_IP6 : QHCA_ETHERTYPE_IP4);
    p += 2;
    f->ip = p;
    if (f->v6) {
        qhca_put_be32(p, 6U << 28 | (uint32_t)av->traffic_class << 20 |
                      (qhca_le32(av->flow_label) & 0xfffff));
        p[6] = QHCA_PROTO_UDP;
        p[7] = hops;
        memcpy(p + 8, g->gid, 16);
        memcpy(p + 24, av->dgid, 16);
        p += QHCA_IP6_HLEN;
    } else {
        p[0] = 0x45;
        p[1] = av->traffic_class;
        /* never fragmented, so the ID may be 0 (RFC 6864) */
        qhca_put_be16(p + 4, 0);
        qhca_put_be16(p + 6, IP4_DF);
        p[8] = hops;
        p[9] = QHCA_PROTO_UDP;
        memcpy(p + 12, g->gid + 12, 4);
        memcpy(p + 16, av->dgid + 12, 4);
        p += QHCA_IP4_HLEN;
    }
    sport = qhca_le16(av->udp_sport);
    if (!sport) {
        uint32_t h = (qpn ^ peer) * 0x9e3779b1U;

        sport = (uint16_t)(0xc000 | h >> 18);
    }
    qhca_put_be16(p, sport);
    qhca_put_be16(p + 2, QHCA_ROCE_UDP_PORT);
    qhca_put_be16(p + 6, 0);    /* no UDP checksum: the ICRC is stronger */
    f->bth = p + QHCA_UDP_HLEN;
    return QHCA_SENT;
}

void qhca_frame_bth(struct qhca_frame *f, uint8_t opcode, bool se,
                    bool ackreq, uint32_t payload, uint32_t qpn,
                    uint32_t psn)
{
    f->bth[0] = opcode;
    f->bth[1] = (uint8_t)((se ? 0x80 : 0) | 0x40 | (-payload & 3) << 4);
    qhca_put_be16(f->bth + 2, DEFAULT_PKEY);
    qhca_put_be32(f->bth + 4, qpn & QHCA_PSN_MASK);
    qhca_put_be32(f->bth + 8, (ackreq ? 0x80000000U : 0) |
                  (psn & QHCA_PSN_MASK));
}

/* Write the lengths and the IPv4 checksum: see qhca_frame_seal(). */
static void frame_lengths(uint8_t *ip, bool v6, uint8_t *bth, uint32_t body)
{
    uint16_t udp_len = (uint16_t)(QHCA_UDP_HLEN + body + QHCA_ICRC_LEN);

    qhca_put_be16(bth - QHCA_UDP_HLEN + 4, udp_len);
    if (v6) {
        qhca_put_be16(ip + 4, udp_len);
    } else {
        qhca_put_be16(ip + 2, (uint16_t)(QHCA_IP4_HLEN + udp_len));
        qhca_csum_fill_ip(ip, 4, QHCA_IP4_HLEN);
    }
}

uint32_t qhca_frame_seal(uint8_t *ip, bool v6, uint8_t *bth, uint32_t body)
{
    frame_lengths(ip, v6, bth, body);
    return qhca_icrc(ip, v6, (size_t)(bth + body - ip));
}

/* Count and trace a packet that has been sent, whose frame has @len bytes. */
static void packet_sent(struct qhca *e, uint32_t num, const uint8_t *bth,
                        size_t len)
{
    e->stats[QHCA_STAT_ROCE_TX_PACKETS]++;
    e->stats[QHCA_STAT_ROCE_TX_BYTES] += len;
    if (qhca_tracing(e)) {
        packet_trace(e, QHCA_TR_TX, num,
                     qhca_get_be32(bth + 4) & QHCA_PSN_MASK, bth, len);
    }
}

/* Count and trace the packets of @s, whose frames are @as. */
static void super_sent(struct qhca *e, uint32_t num,
                       const struct qhca_super_packet *s,
                       const struct qhca_wire_frames *as)
{
    struct qhca_part p;
    uint32_t k;

    if (!qhca_tracing(e)) {
        e->stats[QHCA_STAT_ROCE_TX_PACKETS] += as->n;
        e->stats[QHCA_STAT_ROCE_TX_BYTES] +=
            as->last + (as->n > 1 ? as->first + (as->n - 2) * as->len : 0);
        return;
    }
    for (k = 0; k < s->n; k++) {
        qhca_super_packet_head(s, k, &p);
        packet_sent(e, num, p.hdr, p.frame_len);
    }
}

/* Send a finished frame as a super-frame. */
static enum qhca_send super_end(struct qhca *e, const struct qhca_frame *f,
                                uint32_t num, uint32_t ext, uint32_t payload,
                                size_t len)
{
    const struct qhca_super_packet s = {
        .eth = f->data, .ip = f->ip, .bth = f->bth,
        .payload = f->bth + QHCA_BTH_LEN + ext, .payload_len = payload,
        .size = f->mtu, .n = f->packets,
    };
    struct qhca_wire_frames as;

    qhca_super_trailer(f->data + len, f->mtu, f->packets);
    qhca_super_packet_frames(&s, &as);
    if (!qhca_tx_super(e, f->data, len + QHCA_SUPER_TRAILER, &as)) {
        return QHCA_BLOCKED;
    }
    super_sent(e, num, &s, &as);
    return QHCA_SENT;
}

/* Send a finished frame over its memory link, which has room for it. */
static void memlink_end(struct qhca *e, const struct qhca_frame *f,
                        uint32_t num, uint32_t ext, uint32_t payload)
{
    const struct qhca_super_packet s = {
        .eth = f->data, .ip = f->ip, .bth = f->bth,
        .payload_len = payload, .size = f->mtu, .n = f->packets,
    };
    uint32_t len = (uint32_t)(f->bth + QHCA_BTH_LEN + ext - f->data);
    enum qhca_memlink_kind kind = QHCA_MEMLINK_REQUEST;
    struct qhca_wire_frames as;

    if (f->ack_waits) {
        kind = QHCA_MEMLINK_ACK;
    } else if (qhca_op_info(f->bth[0]).flags & QHCA_OPF_RESP) {
        kind = QHCA_MEMLINK_RESPONSE;
    }
    frame_lengths(f->ip, f->v6, f->bth, QHCA_BTH_LEN + ext);
    qhca_memlink_send(e, f->ml, f->data, len, payload, f->mtu, f->packets,
                      f->refs, kind);
    qhca_super_packet_frames(&s, &as);
    qhca_wire_count_tx(e, f->data, &as);
    super_sent(e, num, &s, &as);
}

enum qhca_send qhca_frame_end(struct qhca *e, struct qhca_frame *f,
                              uint32_t num, uint32_t ext, uint32_t payload)
{
    uint32_t pad = -payload & 3;
    uint32_t body = QHCA_BTH_LEN + ext + payload + pad;
    uint8_t *end = f->bth + body;
    size_t len = (size_t)(end + QHCA_ICRC_LEN - f->data);
    uint32_t crc;

    if (f->ml) {
        memlink_end(e, f, num, ext, payload);
        return QHCA_SENT;
    }
    memset(end - pad, 0, pad);
    crc = qhca_frame_seal(f->ip, f->v6, f->bth, body);
    qhca_put_le32(end, f->crc_twice ? qhca_icrc_twice(crc, f->bth, body) :
                                      crc);
    if (f->packets > 1) {
        return super_end(e, f, num, ext, payload, len);
    }
    if (qhca_faulty(e, QHCA_FLT_AT_PACKET)) {
        e->hooks->tx(e, f, num, ext, payload, (uint32_t)len);
    } else {
        if (f->wire && !qhca_tx(e, f->data, len) &&
            !(e->xd->parting && qhca_last_ack_keep(e, f->data, len))) {
            return QHCA_BLOCKED;
        }
        if (f->loop) {
            qhca_loop_commit(e, (uint32_t)len);
        }
    }
    packet_sent(e, num, f->bth, len);
    return QHCA_SENT;
}

bool qhca_class_fits(const struct qhca_qp *qp, const struct qhca_rx *rx)
{
    uint8_t class = rx->opcode & QHCA_CLASS_MASK;

    switch (qp->type) {
    case QHCA_QPT_RC:
        return class == QHCA_CLASS_RC || class == QHCA_CLASS_OWN;
    case QHCA_QPT_XRC_INI:
        return class == QHCA_CLASS_XRC && (rx->flags & QHCA_OPF_RESP);
    case QHCA_QPT_XRC_TGT:
        return class == QHCA_CLASS_XRC && !(rx->flags & QHCA_OPF_RESP);
    case QHCA_QPT_UC:
    case QHCA_QPT_UD:
    case QHCA_QPT_GSI:
        return class == qhca_qp_class(qp);
    default:
        return false;           /* raw packets are not RoCE */
    }
}

bool qhca_state_receives(const struct qhca_qp *qp, const struct qhca_rx *rx)
{
    switch (qp->state) {
    case QHCA_QPS_RTR:
        return !(rx->flags & QHCA_OPF_RESP);
    case QHCA_QPS_RTS:
    case QHCA_QPS_SQD:
        return true;
    case QHCA_QPS_SQE:
        return !(rx->flags & QHCA_OPF_RESP);
    default:
        return false;
    }
}

/* Packets of a connection must come from its peer, to its own address. */
static bool peer_fits(struct qhca *e, const struct qhca_qp *qp,
                      const struct qhca_rx *rx)
{
    uint16_t index = qhca_le16(qp->av.sgid_index);

    if (!qhca_qp_connected(qp)) {
        return true;
    }
    return !memcmp(qp->av.dgid, rx->sgid, 16) && index < e->cfg.max_gid &&
           (index == rx->gid ||
            !memcmp(e->xd->gids[index].gid, e->xd->gids[rx->gid].gid, 16));
}

void qhca_rx_note(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx)
{
    qp->rx_packets++;
    if (qhca_tracing(e)) {
        packet_trace(e, QHCA_TR_RX, qp->qpn, qp->dest_qpn,
                     rx->bth, rx->frame_len);
    }
}

void qhca_roce_lost(struct qhca *e, const struct qhca_super_packet *s,
                    size_t len, const struct qhca_headers *h)
{
    struct qhca_qp *qp;
    struct qhca_rx rx;

    if (packet_parse(e, s->eth, len, h, s, &rx) != QHCA_PARSE_OK || rx.mcg) {
        return;
    }
    qp = qhca_qp_get(e, rx.qpn);
    if (!qp || !qhca_qp_reliable(qp) || !qhca_state_receives(qp, &rx) ||
        !qhca_class_fits(qp, &rx) || !peer_fits(e, qp, &rx)) {
        return;
    }
    if (rx.flags & QHCA_OPF_RESP) {
        qhca_ack_lost(e, qp, rx.psn);
    } else {
        qhca_rsp_lost(e, qp, rx.psn, s->n);
    }
}

void qhca_rx_deliver(struct qhca *e, const struct qhca_rx *rx)
{
    struct qhca_qp *qp;

    e->stats[QHCA_STAT_ROCE_RX_PACKETS]++;
    e->stats[QHCA_STAT_ROCE_RX_BYTES] += rx->frame_len;
    if (rx->mcg) {
        qhca_mcg_rx(e, rx);
        return;
    }
    qp = qhca_qp_get(e, rx->qpn);
    if (!qp || !qhca_state_receives(qp, rx)) {
        qhca_rx_drop(e, rx, QHCA_STAT_ROCE_RX_NO_QP);
        return;
    }
    if (!qhca_class_fits(qp, rx) || !peer_fits(e, qp, rx)) {
        qhca_rx_drop(e, rx, QHCA_STAT_ROCE_RX_MALFORMED);
        return;
    }
    qhca_rx_note(e, qp, rx);
    if (rx->flags & QHCA_OPF_DETH) {
        qhca_ud_rx(e, qp, rx);
    } else if (rx->flags & QHCA_OPF_RESP) {
        qhca_ack_rx(e, qp, rx);
    } else {
        qhca_rsp_rx(e, qp, rx);
    }
}

/* Count a packet that cannot be delivered; true: it was for us. */
static bool rx_bad(struct qhca *e, const struct qhca_rx *rx,
                   enum qhca_parse why)
{
    switch (why) {
    case QHCA_PARSE_BAD:
        qhca_rx_drop(e, rx, QHCA_STAT_ROCE_RX_MALFORMED);
        return true;
    case QHCA_PARSE_ICRC:
        qhca_rx_drop(e, rx, QHCA_STAT_ROCE_ICRC_ERRORS);
        return true;
    default:
        return false;
    }
}

bool qhca_roce_rx(struct qhca *e, const uint8_t *frame, size_t len,
                  const struct qhca_headers *h)
{
    struct qhca_rx rx;
    enum qhca_parse got = packet_parse(e, frame, len, h, NULL, &rx);

    if (got != QHCA_PARSE_OK) {
        return rx_bad(e, &rx, got);
    }
    if (qhca_faulty(e, QHCA_FLT_AT_PACKET)) {
        e->hooks->rx(e, &rx);
    } else {
        qhca_rx_deliver(e, &rx);
    }
    return true;
}

/* Turn the super-frame @rx into its packet @p. */
static void rx_part(struct qhca_rx *rx, const struct qhca_part *p)
{
    rx->part = p;
    rx->bth = p->hdr;
    rx->ext = p->hdr + QHCA_BTH_LEN;
    rx->ext_end = p->hdr + p->hdr_len;
    rx->payload = p->data;
    rx->payload_len = p->len;
    rx->frame_len = p->frame_len;
    rx->flags = p->info.flags;
    rx->opcode = p->hdr[0];
    rx->se = p->hdr[1] & 0x80;
    rx->pad = (p->hdr[1] >> 4) & 3;
    rx->ackreq = p->hdr[8] & 0x80;
    rx->psn = qhca_get_be32(p->hdr + 8) & QHCA_PSN_MASK;
    packet_take_xrceth(rx);
}

bool qhca_roce_rx_super(struct qhca *e, const struct qhca_super_packet *s,
                        size_t len, const struct qhca_headers *h,
                        uint32_t *done)
{
    struct qhca_rx rx;
    struct qhca_part p;
    enum qhca_parse got = packet_parse(e, s->eth, len, h, s, &rx);

    *done = s->n;
    if (got != QHCA_PARSE_OK) {
        return rx_bad(e, &rx, got);
    }
    rx.super = s;
    for (*done = 0; *done < s->n && qhca_active(e) &&
         !qhca_faulty(e, QHCA_FLT_AT_PACKET); ++*done) {
        qhca_super_packet_part(s, *done, &p);
        if (p.data == e->xd->bounce) {
            qhca_cost_bytes(e, p.len);
        }
        rx_part(&rx, &p);
        qhca_rx_deliver(e, &rx);
    }
    return true;
}

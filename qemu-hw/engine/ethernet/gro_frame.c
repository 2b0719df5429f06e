/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which frames can be merged.  A frame joins only if cutting the packet would
 * give back exactly this frame, up to the padding of Ethernet.  Thus large.c
 * alone defines what its headers must be.
 */
#include "ethernet/flow.h"

#define TCP_FLAGS           13
#define TCP_SUM             16
#define TCP_PSH             0x08
#define TCP_ACK             0x10
#define TCP_ECE             0x40
#define TCP_CWR             0x80
#define TCP_RESERVED        0x0f    /* of the byte before the flags */
#define IP4_ID              4
#define IP4_SUM             10

/*
 * A checksum of 0xffff is as valid as 0, but only 0 is ever computed: cutting
 * could not reproduce the frame.
 */
static bool odd_sums(const struct qhca_large *l, const uint8_t *frame)
{
    return qhca_get_be16(frame + l->l4 + TCP_SUM) == 0xffff ||
           (l->version == 4 &&
            qhca_get_be16(frame + l->l3 + IP4_SUM) == 0xffff) ||
           (l->outer_version == 4 &&
            qhca_get_be16(frame + l->outer + IP4_SUM) == 0xffff);
}

/* Is it a segment of data?  Other flags must reach the stack at once. */
static bool gro_is_data(const struct qhca_headers *h)
{
    const uint8_t *tcp = h->l4;

    /* after a routing header the checksum is for another destination */
    return h->l4_hlen && h->l4_len > h->l4_hlen && !h->routed &&
           (tcp[TCP_FLAGS] & ~(TCP_PSH | TCP_ECE | TCP_CWR)) == TCP_ACK &&
           !(tcp[TCP_FLAGS - 1] & TCP_RESERVED);
}

/* The bytes of @h have no IPv4 options; @to: what follows the IP header. */
static bool gro_no_options(const struct qhca_headers *h, const uint8_t *to)
{
    return h->version == 6 || h->l3 + QHCA_IP4_HLEN == to;
}

/* May @f, with the segment @h, be merged?  If so, fills in the rest of @x. */
static bool gro_suits(const struct qhca_eth_q *q,
                      const struct qhca_eth_frame *f,
                      const struct qhca_headers *h, struct qhca_gro_frame *x)
{
    struct qhca_large *l = &x->l;
    bool tunnel = h != &f->h;
    size_t end;

    if (!(q->flags & QHCA_ETH_Q_F_GRO) || q->state != QHCA_WQS_RDY ||
        f->super.segs || !gro_is_data(h) || !qhca_large_from(f->data, h, l) ||
        l->hdr_len > QHCA_ETH_LSO_HDR_MAX || !gro_no_options(h, h->l4)) {
        return false;
    }
    end = l->l4 + h->l4_len;
    if (tunnel) {
        if (!gro_no_options(&f->h, h->l3)) {
            return false;
        }
        l->outer = (uint16_t)(f->h.l3 - f->data);
        l->outer_version = f->h.version;
        l->outer_l4 = l->l3;
    }
    x->padded = f->len != end;
    if (x->padded && f->len > QHCA_ETH_SHORTEST +
                              (f->h.tagged ? QHCA_VLAN_HLEN : 0)) {
        return false;
    }
    l->cwr = h->l4[TCP_FLAGS] & TCP_CWR;
    x->push = h->l4[TCP_FLAGS] & TCP_PSH;
    x->len = (uint32_t)end;
    return !odd_sums(l, f->data) && qhca_large_sum_ok(l, f->data, end);
}

static void gro_copy_addr(uint8_t *to, const struct qhca_headers *h)
{
    memcpy(to, h->l3 + (h->version == 4 ? 12 : 8), h->version == 4 ? 8 : 32);
}

/* The flow of the segment @h, in the tunnel @outer or NULL. */
static void gro_key(const struct qhca_eth_q *q, const struct qhca_headers *h,
                    const struct qhca_headers *outer, struct qhca_gro_key *key)
{
    memset(key, 0, sizeof(*key));
    qhca_put_be32(key->rqn, q->num);
    memcpy(key->ports, h->l4, sizeof(key->ports));
    key->version = h->version;
    gro_copy_addr(key->addr, h);
    if (outer) {
        key->outer_version = outer->version;
        gro_copy_addr(key->outer_addr, outer);
    }
}

/*
 * Could a packet whose ports were not found be TCP all the same?  If so, what
 * follows its headers says it, or else, where their end was not found, the
 * first of them.  @inner: it is in a tunnel; packets of a tunnel in a tunnel
 * are never held.
 */
static bool perhaps_tcp(const struct qhca_headers *h, bool inner)
{
    switch (h->upper_at ? h->upper : h->proto) {
    case QHCA_PROTO_TCP:
        return true;
    case QHCA_PROTO_IP4:
    case QHCA_PROTO_IP6:
        return !inner;
    case QHCA_PROTO_UDP:
        return false;
    default:
        return !h->upper_at && h->version == 6 &&
               qhca_headers_is_ext(h->proto);
    }
}

static enum qhca_gro_order gro_order(const struct qhca_headers *h, bool inner)
{
    if (!h->version || h->l4_proto == QHCA_PROTO_UDP) {
        return QHCA_GRO_NONE;
    }
    if (!h->fragment && h->l4_proto == QHCA_PROTO_TCP) {
        return QHCA_GRO_FLOW;
    }
    return perhaps_tcp(h, inner) ? QHCA_GRO_ALL : QHCA_GRO_NONE;
}

void qhca_gro_look(const struct qhca_eth_q *q, const struct qhca_eth_frame *f,
                   struct qhca_gro_frame *x)
{
    struct qhca_headers inner;
    bool tunnel = qhca_headers_parse_inner(&f->h, &inner);
    const struct qhca_headers *h = tunnel ? &inner : &f->h;

    x->suits = false;
    x->order = gro_order(h, tunnel);
    if (x->order == QHCA_GRO_FLOW) {
        gro_key(q, h, tunnel ? &f->h : NULL, &x->key);
        x->suits = gro_suits(q, f, h, x);
    }
}

uint32_t qhca_gro_payload(const struct qhca_gro_packet *p)
{
    return p->super.len - p->super.l.hdr_len;
}

/* The total number of payload bytes that fit. */
static uint32_t payload_max(const struct qhca_large *l)
{
    return QHCA_ETH_SUPER_IP_MAX - (l->hdr_len - qhca_large_ip(l));
}

bool qhca_gro_full(const struct qhca_gro_packet *p)
{
    return p->super.segs >= QHCA_ETH_SUPER_SEGS_MAX ||
           qhca_gro_payload(p) >= payload_max(&p->super.l);
}

static bool gro_same_id(uint8_t version, const uint8_t *a, const uint8_t *b)
{
    return version == 4 && !memcmp(a + IP4_ID, b + IP4_ID, 2);
}

bool qhca_gro_follows(struct qhca_gro *g, struct qhca_gro_packet *p,
                      const struct qhca_eth_frame *f,
                      const struct qhca_gro_frame *x)
{
    const uint8_t *first = qhca_gro_headers(g, p), *data = f->data;
    const struct qhca_super *s = &p->super;
    struct qhca_large l = s->l;
    struct qhca_large_part part = {
        .number = s->segs, .from = qhca_gro_payload(p),
        .len = x->len - x->l.hdr_len, .total = UINT32_MAX,
    };
    uint8_t want[QHCA_ETH_LSO_HDR_MAX];

    if (x->l.hdr_len != l.hdr_len || part.len > s->size ||
        part.from + part.len > payload_max(&l)) {
        return false;
    }
    if (s->segs == 1) {         /* the second frame shows the ID scheme */
        l.same_id = gro_same_id(l.version, first + l.l3, data + l.l3);
        l.same_outer_id = gro_same_id(l.outer_version, first + l.outer,
                                      data + l.outer);
    }
    memcpy(want, first, l.hdr_len);
    qhca_large_headers(&l, want, &part);
    /* the sums are right; PSH may end the packet */
    want[l.l4 + TCP_FLAGS] |= data[l.l4 + TCP_FLAGS] & TCP_PSH;
    memcpy(want + l.l4 + TCP_SUM, data + l.l4 + TCP_SUM, 2);
    if (l.version == 4) {
        memcpy(want + l.l3 + IP4_SUM, data + l.l3 + IP4_SUM, 2);
    }
    if (l.outer_version == 4) {
        memcpy(want + l.outer + IP4_SUM, data + l.outer + IP4_SUM, 2);
    }
    if (memcmp(want, data, l.hdr_len)) {
        return false;
    }
    p->super.l = l;
    return true;
}

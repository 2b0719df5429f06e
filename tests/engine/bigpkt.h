/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Large packets for tests of segmentation: a random TCP segment or UDP datagram
 * of any size, perhaps in a tunnel, and each of the frames that it must be cut
 * into.  Written from the protocols, byte by byte, without the engine's code.
 */
#ifndef QHCA_TEST_BIGPKT_H
#define QHCA_TEST_BIGPKT_H

#include <stddef.h>
#include <string.h>

#include "die.h"
#include "rng.h"

#define BIG_PAYLOAD_MAX 65536u
#define BIG_HDR_MAX 300u

/* The headers around a packet in a tunnel. */
struct big_outer {
    bool is;                    /* it is in one */
    bool v6;
    unsigned opts;              /* bytes of IPv4 options */
    unsigned ext[2], exts;      /* IPv6 extension headers: bytes of each */
    uint8_t proto;              /* after IP */
    bool sum;                   /* UDP: with a checksum */
    unsigned more;              /* bytes between that and the inner IP header */
    uint16_t id;
};

struct big {
    uint8_t dmac[6], smac[6];
    bool tagged, v6, tcp;
    uint16_t tci;
    unsigned opts;              /* bytes of IPv4 options */
    unsigned ext[9], exts;      /* IPv6 extension headers: bytes of each */
    unsigned tcp_opts;          /* bytes of TCP options */
    uint16_t id, ports[2];
    uint32_t seq;
    uint8_t flags;              /* of TCP */
    struct big_outer outer;     /* the tag is before it */
    uint8_t junk[BIG_HDR_MAX];  /* content of all unchecked fields */
    uint8_t payload[BIG_PAYLOAD_MAX];
    uint32_t len;               /* of the payload */
};

static inline void big_put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void big_put32(uint8_t *p, uint32_t v)
{
    big_put16(p, v >> 16);
    big_put16(p + 2, v);
}

static inline uint32_t big_sum(const uint8_t *p, size_t len, uint32_t sum)
{
    size_t i;

    for (i = 0; i < len; i++) {
        sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

/* Any headers; the payload's length is @len. */
static inline void big_random(struct big *b, struct rng *r, uint32_t len)
{
    unsigned i;

    CHECK(len <= BIG_PAYLOAD_MAX, "%u bytes of payload", len);
    memset(b, 0, offsetof(struct big, junk));
    for (i = 0; i < sizeof(b->junk); i++) {
        b->junk[i] = (uint8_t)rng_u32(r);
    }
    for (i = 0; i < len; i++) {
        b->payload[i] = (uint8_t)(rng_mix(i + b->junk[0]) >> 7);
    }
    memcpy(b->smac, "\x02\x11\x22\x33\x44\x55", 6);
    memcpy(b->dmac, "\x02\x66\x77\x88\x99\xaa", 6);
    b->tagged = rng_pct(r, 30);
    b->v6 = rng_pct(r, 50);
    b->tcp = rng_pct(r, 60);
    b->tci = (uint16_t)rng_u32(r);
    b->opts = rng_pct(r, 40) ? 4 * (unsigned)rng_below(r, 11) : 0;
    b->tcp_opts = 4 * (unsigned)rng_below(r, 11);
    b->exts = rng_pct(r, 40) ? (unsigned)rng_below(r, 4) : 0;
    for (i = 0; i < b->exts; i++) {
        b->ext[i] = 8 * (unsigned)rng_range(r, 1, 4);
    }
    b->id = (uint16_t)rng_u32(r);
    b->ports[0] = (uint16_t)rng_u32(r);
    b->ports[1] = (uint16_t)rng_range(r, 1, 4000);      /* not RoCE */
    b->seq = rng_u32(r);
    b->flags = (uint8_t)rng_u32(r);
    b->len = len;
}

/* The outermost IP header. */
static inline unsigned big_ip(const struct big *b)
{
    return b->tagged ? 18 : 14;
}

static inline unsigned big_ip_len(bool v6, unsigned opts, const unsigned *ext,
                                  unsigned exts)
{
    unsigned len = v6 ? 40 : 20 + opts, i;

    for (i = 0; v6 && i < exts; i++) {
        len += ext[i];
    }
    return len;
}

/* In a tunnel: what follows the outer IP header. */
static inline unsigned big_outer_l4(const struct big *b)
{
    const struct big_outer *o = &b->outer;

    return big_ip(b) + big_ip_len(o->v6, o->opts, o->ext, o->exts);
}

static inline unsigned big_l3(const struct big *b)
{
    return !b->outer.is ? big_ip(b) : big_outer_l4(b) + b->outer.more +
                                      (b->outer.proto == 17 ? 8 : 0);
}

/* The field inner_l3 of its WQE. */
static inline uint16_t big_inner_l3(const struct big *b)
{
    return (uint16_t)(b->outer.is ? big_l3(b) : 0);
}

static inline unsigned big_l4(const struct big *b)
{
    return big_l3(b) + big_ip_len(b->v6, b->opts, b->ext, b->exts);
}

static inline unsigned big_hdr_len(const struct big *b)
{
    return big_l4(b) + (b->tcp ? 20 + b->tcp_opts : 8);
}

/* Put @b into any tunnel, and shorten options until a device accepts it. */
static inline void big_tunnel(struct big *b, struct rng *r)
{
    static const uint8_t proto[] = { 17, 17, 17, 47, 4, 41, 50 };
    struct big_outer *o = &b->outer;
    unsigned i;

    *o = (struct big_outer){
        .is = true, .v6 = rng_pct(r, 50), .sum = rng_pct(r, 50),
        .opts = rng_pct(r, 30) ? 4 * (unsigned)rng_below(r, 11) : 0,
        .exts = rng_pct(r, 30) ? (unsigned)rng_below(r, 3) : 0,
        .proto = proto[rng_below(r, sizeof(proto))],
        .more = (unsigned)rng_log(r, 40), .id = (uint16_t)rng_u32(r),
    };
    for (i = 0; i < o->exts; i++) {
        o->ext[i] = 8 * (unsigned)rng_range(r, 1, 4);
    }
    if (big_hdr_len(b) > 256) {
        o->opts = o->exts = 0;
    }
    if (big_hdr_len(b) > 256) {
        b->opts = b->exts = 0;
    }
}

/*
 * Write the IP header of a packet of @bytes at @ip, which contains its junk;
 * returns the sum of its addresses.
 */
static inline uint32_t big_put_ip(uint8_t *ip, bool v6, unsigned opts,
                                  const unsigned *exts_len, unsigned exts,
                                  uint8_t proto, uint32_t id, size_t bytes)
{
    static const uint8_t ext_type[9] = { 0, 60, 43, 60, 60, 60, 60, 60, 60 };
    unsigned at, i;

    if (v6) {
        ip[0] = (uint8_t)(0x60 | (ip[0] & 15));
        big_put16(ip + 4, (uint32_t)bytes - 40);
        ip[6] = exts ? ext_type[0] : proto;
        ip[7] = 64;
        for (at = 40, i = 0; i < exts; i++) {
            ip[at] = i + 1 < exts ? ext_type[i + 1] : proto;
            ip[at + 1] = (uint8_t)(exts_len[i] / 8 - 1);
            at += exts_len[i];
        }
        return big_sum(ip + 8, 32, 0);
    }
    ip[0] = (uint8_t)(0x45 + opts / 4);
    big_put16(ip + 2, (uint32_t)bytes);
    big_put16(ip + 4, id);
    big_put16(ip + 6, 0x4000);
    ip[8] = 64;
    ip[9] = proto;
    big_put16(ip + 10, 0);
    big_put16(ip + 10, ~big_sum(ip, 20 + opts, 0));
    return big_sum(ip + 12, 8, 0);
}

/* Write the outer headers of a frame of @n bytes whose inner ones are right. */
static inline void big_put_outer(const struct big *b, uint8_t *f,
                                 unsigned number, size_t n)
{
    const struct big_outer *o = &b->outer;
    unsigned l3 = big_ip(b), l4 = big_outer_l4(b);
    uint32_t sum = big_put_ip(f + l3, o->v6, o->opts, o->ext, o->exts,
                              o->proto, o->id + number, n - l3);
    uint32_t bytes = (uint32_t)n - l4;

    if (o->proto == 17) {
        big_put16(f + l4 + 4, bytes);
        big_put16(f + l4 + 6, 0);
        sum = ~big_sum(f + l4, bytes, sum + 17 + bytes) & 0xffff;
        if (o->sum) {
            big_put16(f + l4 + 6, sum ? sum : 0xffff);
        }
    }
}

/*
 * Write a frame with @len bytes of the payload from @from on, which has @number
 * frames before it; returns its length.
 */
static inline size_t big_frame(const struct big *b, uint8_t *f, unsigned number,
                               uint32_t from, uint32_t len)
{
    unsigned l3 = big_l3(b), l4 = big_l4(b), hdr = big_hdr_len(b), at;
    bool v6 = b->outer.is ? b->outer.v6 : b->v6;
    uint8_t *t = f + l4, proto = b->tcp ? 6 : 17;
    uint32_t sum, l4_len = hdr - l4 + len;

    memcpy(f, b->junk, hdr);
    memcpy(f, b->dmac, 6);
    memcpy(f + 6, b->smac, 6);
    if (b->tagged) {
        big_put16(f + 12, 0x8100);
        big_put16(f + 14, b->tci);
    }
    big_put16(f + big_ip(b) - 2, v6 ? 0x86dd : 0x0800);
    sum = proto + big_put_ip(f + l3, b->v6, b->opts, b->ext, b->exts, proto,
                             b->id + number, hdr - l3 + len);
    big_put16(t, b->ports[0]);
    big_put16(t + 2, b->ports[1]);
    memcpy(t + (b->tcp ? 20 + b->tcp_opts : 8), b->payload + from, len);
    sum += l4_len;
    at = b->tcp ? 16 : 6;
    if (b->tcp) {
        big_put32(t + 4, b->seq + from);
        t[12] = (uint8_t)((5 + b->tcp_opts / 4) << 4);
        t[13] = b->flags;
        if (from) {
            t[13] &= 0x7f;      /* CWR */
        }
        if (from + len != b->len) {
            t[13] &= 0xf6;      /* PSH, FIN */
        }
    } else {
        big_put16(t + 4, l4_len);
    }
    big_put16(t + at, 0);
    sum = ~big_sum(t, l4_len, sum) & 0xffff;
    big_put16(t + at, !sum && !b->tcp ? 0xffff : sum);
    if (b->outer.is) {
        big_put_outer(b, f, number, hdr + len);
    }
    return hdr + len;
}

/*
 * Put the untagged frame of @n bytes into an IPv4 or (@v6) IPv6 packet, whose
 * header has @junk in unchecked fields and the identification @id; returns its
 * new length.
 */
static inline size_t big_wrap(uint8_t *f, size_t n, bool v6,
                              const uint8_t *junk, uint32_t id)
{
    unsigned hdr = v6 ? 40 : 20;
    uint8_t *ip = f + 14, proto = ip[0] >> 4 == 4 ? 4 : 41;

    memmove(ip + hdr, ip, n - 14);
    memcpy(ip, junk, hdr);
    big_put16(ip - 2, v6 ? 0x86dd : 0x0800);
    if (v6) {
        ip[0] = (uint8_t)(0x60 | (ip[0] & 15));
        big_put16(ip + 4, (uint32_t)n - 14);
        ip[6] = proto;
    } else {
        ip[0] = 0x45;
        big_put16(ip + 2, (uint32_t)n - 14 + hdr);
        big_put16(ip + 4, id);
        big_put16(ip + 6, 0);
        ip[9] = proto;
        big_put16(ip + 10, 0);
        big_put16(ip + 10, ~big_sum(ip, hdr, 0));
    }
    return n + hdr;
}

/* Give any value to the fields that the device sets in the header at @ip. */
static inline void big_any_ip(uint8_t *ip, bool v6, struct rng *r)
{
    big_put16(ip + (v6 ? 4 : 2), rng_u32(r));
    if (!v6) {
        big_put16(ip + 10, rng_u32(r));
    }
}

/*
 * Write the headers as software passes them: fields that the device sets have
 * any value.  Returns their length.
 */
static inline unsigned big_headers(const struct big *b, uint8_t *f,
                                   struct rng *r)
{
    unsigned l3 = big_l3(b), l4 = big_l4(b), hdr = big_hdr_len(b);
    static uint8_t whole[BIG_HDR_MAX];
    static struct big empty;

    empty = *b;
    empty.len = 0;
    big_frame(&empty, whole, 0, 0, 0);
    big_any_ip(whole + l3, b->v6, r);
    big_put16(whole + l4 + (b->tcp ? 16 : 6), rng_u32(r));
    if (!b->tcp) {
        big_put16(whole + l4 + 4, rng_u32(r));
    }
    if (b->outer.is) {
        big_any_ip(whole + big_ip(b), b->outer.v6, r);
    }
    if (b->outer.is && b->outer.proto == 17) {
        big_put16(whole + big_outer_l4(b) + 4, rng_u32(r));
        big_put16(whole + big_outer_l4(b) + 6,
                  b->outer.sum ? (uint32_t)rng_range(r, 1, 0xffff) : 0);
    }
    memcpy(f, whole, hdr);
    return hdr;
}

#endif

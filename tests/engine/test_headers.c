/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parser of headers, down to TCP and UDP, and what builds on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "die.h"
#include "rng.h"
#include "base/bytes.h"
#include "base/headers.h"
#include "verdict.h"

/* Builds a frame from its front; l3 and l4 are offsets. */
struct pkt {
    uint8_t b[2048];
    size_t len, l3, l4;
};

static void start(struct pkt *p, bool tagged, uint16_t ethertype)
{
    memset(p, 0, sizeof(*p));
    p->len = 12;
    if (tagged) {
        qhca_put_be16(p->b + 12, 0x8100);
        qhca_put_be16(p->b + 14, 0x6123);
        p->len = 16;
    }
    qhca_put_be16(p->b + p->len, ethertype);
    p->len += 2;
    p->l3 = p->len;
}

static void start_ip4(struct pkt *p, bool tagged, unsigned options,
                      uint8_t proto)
{
    start(p, tagged, 0x0800);
    p->b[p->l3] = (uint8_t)(0x45 + options);
    p->b[p->l3 + 9] = proto;
    memset(p->b + p->l3 + 20, 1, 4 * options);
    p->len += 20 + 4 * options;
}

static void start_ip6(struct pkt *p, bool tagged, uint8_t next)
{
    start(p, tagged, 0x86dd);
    p->b[p->l3] = 0x60;
    p->b[p->l3 + 6] = next;
    memset(p->b + p->l3 + 8, 0x5a, 32);
    p->len += 40;
}

/* An extension header of 8 + 8 * @more bytes. */
static uint8_t *ext(struct pkt *p, uint8_t next, uint8_t more)
{
    uint8_t *at = p->b + p->len;

    at[0] = next;
    at[1] = more;
    p->len += 8 + 8u * more;
    return at;
}

static void tcp(struct pkt *p, unsigned options, size_t payload)
{
    uint8_t *t = p->b + p->len;

    p->l4 = p->len;
    qhca_put_be16(t, 1000);
    qhca_put_be16(t + 2, 2000);
    t[12] = (uint8_t)((5 + options) << 4);
    p->len += 20 + 4 * options + payload;
}

static void udp(struct pkt *p, size_t payload)
{
    uint8_t *u = p->b + p->len;

    p->l4 = p->len;
    qhca_put_be16(u, 1000);
    qhca_put_be16(u + 2, 2000);
    qhca_put_be16(u + 4, (uint16_t)(8 + payload));
    p->len += 8 + payload;
}

/* Set the IP length to what is there, and append @padding. */
static void finish(struct pkt *p, size_t padding)
{
    size_t ip = p->len - p->l3;

    if (p->b[p->l3] >> 4 == 4) {
        qhca_put_be16(p->b + p->l3 + 2, (uint16_t)ip);
    } else {
        qhca_put_be16(p->b + p->l3 + 4, (uint16_t)(ip - 40));
    }
    memset(p->b + p->len, 0xee, padding);
    p->len += padding;
}

/* Parse a copy whose end the sanitizer watches; pointers go into @p. */
static struct qhca_headers parse(const struct pkt *p)
{
    uint8_t *copy = malloc(p->len);
    struct qhca_headers h;

    memcpy(copy, p->b, p->len);
    qhca_headers_parse(copy, p->len, &h);
    h.l3 = p->b + (h.l3 - copy);
    if (h.l4_proto) {
        h.l4 = p->b + (h.l4 - copy);
    }
    free(copy);
    return h;
}

static void is_l4(const struct pkt *p, uint8_t proto, size_t len, size_t hlen,
                  bool fragment)
{
    struct qhca_headers h = parse(p);

    assert_int_equal(h.l4_proto, proto);
    assert_int_equal(h.fragment, fragment);
    if (proto) {
        assert_int_equal(h.l4 - p->b, p->l4);
        assert_int_equal(h.l4_len, len);
        assert_int_equal(h.l4_hlen, hlen);
    }
}

static void ip4(void **state)
{
    struct pkt p;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        start_ip4(&p, i, 0, 6);
        tcp(&p, 0, 100);
        finish(&p, 0);
        is_l4(&p, 6, 120, 20, false);
        start_ip4(&p, i, 10, 6);
        tcp(&p, 10, 1);
        finish(&p, 17);
        is_l4(&p, 6, 61, 60, false);
        start_ip4(&p, i, 3, 17);
        udp(&p, 0);
        finish(&p, 30);
        is_l4(&p, 17, 8, 8, false);
        start_ip4(&p, i, 0, 1);
        udp(&p, 10);
        finish(&p, 0);
        is_l4(&p, 0, 0, 0, false);
    }
    /* fragments: the first has ports, none has an exact header */
    start_ip4(&p, false, 0, 6);
    tcp(&p, 0, 80);
    finish(&p, 0);
    p.b[p.l3 + 6] = 0x20;
    is_l4(&p, 6, 100, 0, true);
    qhca_put_be16(p.b + p.l3 + 6, 0x2001);
    is_l4(&p, 0, 0, 0, true);
    qhca_put_be16(p.b + p.l3 + 6, 0x0001);
    is_l4(&p, 0, 0, 0, true);
    qhca_put_be16(p.b + p.l3 + 6, 0x4000);
    is_l4(&p, 6, 100, 20, false);
}

/* Lengths that do not fit each other. */
static void lengths(void **state)
{
    struct pkt p;
    size_t len, i;

    (void)state;
    start_ip4(&p, false, 0, 6);
    tcp(&p, 3, 10);
    finish(&p, 0);
    len = p.len;
    for (i = 0; i < 16; i++) {          /* data offset */
        p.b[p.l4 + 12] = (uint8_t)(i << 4 | 15);
        is_l4(&p, 6, 42, i >= 5 && i <= 10 ? 4 * i : 0, false);
    }
    p.b[p.l4 + 12] = 0x80;
    for (p.len = p.l4; p.len < len; p.len++) {          /* cut off */
        is_l4(&p, p.len < p.l4 + 4 ? 0 : 6, p.len - p.l4, 0, false);
    }
    for (i = 0; i <= len - p.l3 + 1; i++) {     /* IP length */
        size_t l4 = i < 20 || i > len - p.l3 ? 42 : i - 20;

        p.len = len;
        qhca_put_be16(p.b + p.l3 + 2, (uint16_t)i);
        is_l4(&p, l4 < 4 ? 0 : 6, l4,
              i >= 20 + 32 && i <= len - p.l3 ? 32 : 0, false);
    }
    start_ip4(&p, false, 0, 17);
    udp(&p, 10);
    finish(&p, 4);
    for (i = 0; i < 30; i++) {          /* UDP length */
        qhca_put_be16(p.b + p.l4 + 4, (uint16_t)i);
        is_l4(&p, 17, 18, i == 18 ? 8 : 0, false);
    }
    start_ip4(&p, false, 0, 17);        /* ports, but no UDP header */
    p.l4 = p.len;
    p.len += 4;
    finish(&p, 20);
    is_l4(&p, 17, 4, 0, false);
    start_ip4(&p, false, 0, 17);        /* padding is no port */
    p.len += 3;
    finish(&p, 20);
    is_l4(&p, 0, 0, 0, false);
}

static void ip6(void **state)
{
    static const uint8_t kind[] = { 0, 43, 60 };
    struct pkt p;
    unsigned n, i;

    (void)state;
    for (n = 0; n <= QHCA_IP6_EXT_MAX + 1; n++) {
        uint8_t last = n & 1 ? 17 : 6;

        start_ip6(&p, n & 2, n ? kind[0] : last);
        for (i = 0; i < n; i++) {
            ext(&p, i + 1 < n ? kind[(i + 1) % 3] : last, (uint8_t)(i % 3));
        }
        if (last == 17) {
            udp(&p, 5);
        } else {
            tcp(&p, 2, 5);
        }
        finish(&p, n);
        if (n <= QHCA_IP6_EXT_MAX) {
            is_l4(&p, last, last == 17 ? 13 : 33, last == 17 ? 8 : 28, false);
        } else {
            is_l4(&p, 0, 0, 0, false);
        }
        assert_false(parse(&p).routed);
    }
    /* others are not followed: AH, no next header, ICMPv6 */
    for (i = 0; i < 3; i++) {
        start_ip6(&p, false, i == 0 ? 51 : i == 1 ? 59 : 58);
        ext(&p, 6, 0);
        tcp(&p, 0, 5);
        finish(&p, 0);
        is_l4(&p, 0, 0, 0, false);
    }
    /* a routing header that still names other stations */
    start_ip6(&p, false, 43);
    ext(&p, 6, 2)[3] = 1;
    tcp(&p, 0, 5);
    finish(&p, 0);
    assert_true(parse(&p).routed);
    is_l4(&p, 6, 25, 20, false);
}

static void ip6_fragments(void **state)
{
    static const struct {
        uint16_t offset;
        bool first;
    } cases[] = { { 0, true }, { 1, true }, { 6, true }, { 8, false },
                  { 0xfff9, false } };
    struct pkt p;
    unsigned i, before;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (before = 0; before < 2; before++) {
            start_ip6(&p, false, before ? 60 : 44);
            if (before) {
                ext(&p, 44, 1);
            }
            qhca_put_be16(ext(&p, 60, 0) + 2, cases[i].offset);
            ext(&p, 6, 0);
            tcp(&p, 0, 50);
            finish(&p, 0);
            is_l4(&p, cases[i].first ? 6 : 0, 70, 0, true);
        }
    }
}

/* Extension headers that go past the end of the packet or the frame. */
static void ip6_cut(void **state)
{
    struct pkt p;
    size_t len, i;

    (void)state;
    start_ip6(&p, true, 0);
    ext(&p, 60, 1);
    ext(&p, 6, 0);
    tcp(&p, 0, 20);
    finish(&p, 0);
    len = p.len;
    for (p.len = p.l3; p.len <= len; p.len++) {
        is_l4(&p, p.len < p.l4 + 4 ? 0 : 6, p.len - p.l4,
              p.len == len ? 20 : 0, false);
    }
    p.len = len;
    for (i = 0; i <= len - p.l3 - 40; i++) {    /* payload length */
        size_t end = p.l3 + 40 + i;

        qhca_put_be16(p.b + p.l3 + 4, (uint16_t)i);
        is_l4(&p, end < p.l4 + 4 ? 0 : 6, end - p.l4,
              end < p.l4 + 20 ? 0 : 20, false);
    }
    qhca_put_be16(p.b + p.l3 + 4, (uint16_t)(len - p.l3 - 40));
    for (i = 0; i < 256; i++) {                 /* a header's length */
        p.b[p.l3 + 41] = (uint8_t)i;
        parse(&p);
        if (i > 8) {
            is_l4(&p, 0, 0, 0, false);
        }
    }
}

/* A TCP or UDP checksum behind extension headers is filled in and judged. */
static void checksums(void **state)
{
    struct qhca_csum_verdict v;
    struct pkt p;
    unsigned i, j;

    (void)state;
    for (i = 0; i < 2; i++) {
        start_ip6(&p, false, 60);
        ext(&p, 0, 2);
        ext(&p, i ? 17 : 6, 0);
        if (i) {
            udp(&p, 33);
        } else {
            tcp(&p, 4, 33);
        }
        finish(&p, 9);
        verdict(p.b, p.len, &v);
        assert_false(v.l4_ok);
        qhca_csum_fill(p.b, p.len);
        verdict(p.b, p.len, &v);
        assert_true(v.l3_ok && v.l4_ok);
        for (j = 0; j < 33; j++) {
            p.b[p.len - 10 - j] ^= 1;
            verdict(p.b, p.len, &v);
            assert_false(v.l4_ok);
            p.b[p.len - 10 - j] ^= 1;
        }
        p.b[p.len - 1] ^= 1;                    /* padding */
        verdict(p.b, p.len, &v);
        assert_true(v.l4_ok);
    }
    /* its pseudo header has an address that only the last station knows */
    start_ip6(&p, false, 43);
    ext(&p, 6, 2)[3] = 1;
    tcp(&p, 0, 5);
    finish(&p, 0);
    qhca_csum_fill(p.b, p.len);
    assert_int_equal(qhca_get_be16(p.b + p.l4 + 16), 0);
    verdict(p.b, p.len, &v);
    assert_false(v.l4_ok);
}

/* Whatever the bytes are, what is reported lies in the frame. */
static void random_bytes(void **state)
{
    static const uint8_t next[] = { 0, 43, 44, 60, 6, 17, 51, 59 };
    static const uint8_t byte[] = { 0, 0, 1, 2, 0x50 };
    struct rng r;
    struct pkt p;
    unsigned i, k, n[2] = { 0 };

    (void)state;
    rng_init(&r, 7);
    for (i = 0; i < 200000; i++) {
        struct qhca_headers h;

        start_ip6(&p, rng_u32(&r) & 1, next[rng_below(&r, 6)]);
        p.len += rng_below(&r, 120);
        for (k = (unsigned)p.l3 + 40; k < p.len; k++) {
            p.b[k] = k & 7 ? byte[rng_below(&r, 5)] : next[rng_below(&r, 8)];
        }
        qhca_put_be16(p.b + p.l3 + 4, (uint16_t)(p.len - p.l3 - 40 -
                                                 rng_below(&r, 3)));
        if (!rng_below(&r, 4)) {
            start(&p, false, 0x0800);
            p.len = 14 + rng_below(&r, 100);
            for (k = 14; k < p.len; k++) {
                p.b[k] = (uint8_t)rng_u32(&r);
            }
            p.b[14] = (uint8_t)(0x45 + rng_below(&r, 4));
            p.b[16] = 0;
            p.b[23] = next[rng_below(&r, 8)];
        }
        h = parse(&p);
        if (h.l4_proto) {
            assert_true(h.version && h.l4_len >= 4);
            assert_in_range(h.l4 - p.b + h.l4_len, p.l3 + 24, p.len);
            assert_true(h.l4_hlen <= h.l4_len);
            assert_true(!h.l4_hlen || (h.whole && !h.fragment));
            n[h.l4_hlen != 0]++;
        }
    }
    assert_in_range(n[0], 1000, 200000);
    assert_in_range(n[1], 1000, 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ip4), cmocka_unit_test(lengths),
        cmocka_unit_test(ip6), cmocka_unit_test(ip6_fragments),
        cmocka_unit_test(ip6_cut), cmocka_unit_test(checksums),
        cmocka_unit_test(random_bytes),
    };

    return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}

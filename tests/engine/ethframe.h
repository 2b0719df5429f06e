/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of random shape, and where they are to be split. */
#ifndef QHCA_TEST_ETHFRAME_H
#define QHCA_TEST_ETHFRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rng.h"

#define MADE_MAX 4096

struct made {
    uint8_t b[MADE_MAX];       /* as on the wire */
    size_t len;
    bool tagged;
    size_t packet;              /* to the end of the IP packet */
    size_t split;               /* bytes of the headers; 0: not to be split */
};

static inline void made_byte(struct made *m, unsigned v)
{
    m->b[m->len++] = (uint8_t)v;
}

static inline void made_be16(struct made *m, unsigned v)
{
    made_byte(m, v >> 8);
    made_byte(m, v);
}

static inline void made_noise(struct made *m, struct rng *r, size_t n)
{
    while (n--) {
        made_byte(m, rng_u32(r));
    }
}

/* Properties of a frame that may be unusual. */
enum odd { NOTHING, FRAGMENT, OTHER_PROTO, BAD_DOFF, BAD_UDP_LEN, TRUNCATED,
           NO_PAYLOAD, BAD_IP_LEN, NOT_IP, ODDS };

/*
 * A frame of random shape to @dmac.  All lengths are chosen first and written
 * then, so that the split is known without parsing.
 */
static inline void made_frame(struct made *m, struct rng *r,
                              const uint8_t *dmac, enum odd odd)
{
    bool v6 = rng_u32(r) & 1, tcp = odd == BAD_DOFF ||
         (odd != BAD_UDP_LEN && rng_u32(r) & 1);
    unsigned ip_options = v6 ? 0 : 4 * rng_below(r, 11), i;
    unsigned exts = v6 ? rng_below(r, 4) : 0, ext_len[5], ext_all = 0;
    unsigned frag_at = odd == FRAGMENT && v6 ? exts++ : 99;
    unsigned l4 = tcp ? 20 + 4 * rng_below(r, 11) : 8;
    size_t payload = odd == NO_PAYLOAD ? 0 : 1 + rng_log(r, 2000);
    uint8_t proto = odd == OTHER_PROTO ? 132 : tcp ? 6 : 17;
    size_t start, ip_len;

    m->len = 0;
    for (i = 0; i < 6; i++) {
        made_byte(m, dmac[i]);
    }
    made_noise(m, r, 6);
    m->b[6] &= 0xfe;
    m->tagged = rng_u32(r) & 1;
    if (m->tagged) {
        made_be16(m, 0x8100);
        made_be16(m, rng_u32(r));
    }
    made_be16(m, odd == NOT_IP ? 0x88b5 : v6 ? 0x86dd : 0x0800);
    start = m->len;
    for (i = 0; i < exts; i++) {
        ext_len[i] = i == frag_at ? 8 : 8 + 8 * rng_below(r, 5);
        ext_all += ext_len[i];
    }
    ip_len = (v6 ? 40 + ext_all : 20 + ip_options) + l4 + payload;
    m->packet = start + ip_len;
    m->split = m->packet - payload;
    if (odd == BAD_IP_LEN) {
        ip_len += 1 + rng_below(r, 9000);
    }
    if (v6) {
        static const uint8_t kinds[] = { 0, 43, 60 };

        made_be16(m, 0x6000 | (rng_u32(r) & 0xfff));
        made_be16(m, rng_u32(r));
        made_be16(m, (unsigned)ip_len - 40);
        made_byte(m, !exts ? proto : frag_at == 0 ? 44 :
                  kinds[rng_below(r, 3)]);
        made_noise(m, r, 33);
        for (i = 0; i < exts; i++) {
            made_byte(m, i + 1 == exts ? proto : frag_at == i + 1 ? 44 :
                      kinds[rng_below(r, 3)]);
            made_byte(m, i == frag_at ? 0 : ext_len[i] / 8 - 1);
            if (i == frag_at) {
                made_be16(m, rng_below(r, 2) ? 1 : 8 * (1 + rng_below(r, 100)));
                made_noise(m, r, 4);
            } else {
                made_noise(m, r, ext_len[i] - 2);
            }
        }
    } else {
        made_byte(m, 0x45 + ip_options / 4);
        made_byte(m, rng_u32(r));
        made_be16(m, (unsigned)ip_len);
        made_be16(m, rng_u32(r));
        made_be16(m, odd != FRAGMENT ? rng_below(r, 2) << 14 :
                  rng_below(r, 2) ? 0x2000 : 1 + rng_below(r, 0x1fff));
        made_byte(m, rng_u32(r));
        made_byte(m, proto);
        made_noise(m, r, 10 + ip_options);
    }
    made_be16(m, 1 + rng_below(r, 4000));       /* not RoCE */
    made_be16(m, 1 + rng_below(r, 4000));
    if (tcp) {
        made_noise(m, r, 8);
        made_byte(m, (odd != BAD_DOFF ? l4 / 4 : rng_below(r, 5)) << 4 |
                  rng_below(r, 16));
        made_noise(m, r, l4 - 13);
    } else {
        made_be16(m, (unsigned)(8 + payload + (odd == BAD_UDP_LEN)));
        made_noise(m, r, 2);
    }
    made_noise(m, r, payload);
    if (odd == TRUNCATED) {             /* of a packet that says it is longer */
        m->len -= 1 + rng_below(r, (uint32_t)(m->len - start));
    } else if (odd != BAD_IP_LEN) {
        made_noise(m, r, rng_below(r, 40));  /* padding */
    }
    if (odd != NOTHING) {
        m->split = 0;
    }
}

/* The frame as it is stored if it is whole: without its tag. */
static inline size_t made_untagged(const struct made *m, uint8_t *to)
{
    size_t skip = m->tagged ? 4 : 0;

    memcpy(to, m->b, 12);
    memcpy(to + 12, m->b + 12 + skip, m->len - 12 - skip);
    return m->len - skip;
}

#endif

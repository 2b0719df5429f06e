/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ICRC against frames whose ICRC was computed by other programs (the IPv4
 * ones by Scapy's RoCE layer), and which fields it covers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/rc.h"

/* SEND_ONLY with a pad of one byte, from the IP header on, with its ICRC. */
static const uint8_t v4_send[] = {
    0x45, 0x88, 0x00, 0x34, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x25, 0x69,
    0x0a, 0x63, 0x00, 0x01, 0x0a, 0x63, 0x00, 0x02, 0xc1, 0x23, 0x12, 0xb7,
    0x00, 0x20, 0x00, 0x00, 0x04, 0x50, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11,
    0x80, 0xab, 0xcd, 0xef, 0x72, 0x6f, 0x63, 0x65, 0x01, 0x02, 0x03, 0x00,
    0xcf, 0xb6, 0xde, 0x04,
};

/* ACK, with an identification, a UDP checksum and congestion bits. */
static const uint8_t v4_ack[] = {
    0x45, 0x02, 0x00, 0x30, 0x12, 0x34, 0x00, 0x00, 0x01, 0x11, 0x24, 0x27,
    0xc0, 0xa8, 0x01, 0x07, 0xc0, 0xa8, 0x01, 0x09, 0xc0, 0x00, 0x12, 0xb7,
    0x00, 0x1c, 0xbe, 0xef, 0x11, 0x40, 0xff, 0xff, 0xc0, 0xff, 0xff, 0xff,
    0x00, 0x00, 0x00, 0x00, 0x1f, 0x00, 0x00, 0x07, 0xfa, 0x96, 0x99, 0x45,
};

static const uint8_t v6_send[] = {
    0x65, 0xa1, 0x23, 0x45, 0x00, 0x28, 0x11, 0x21, 0xfe, 0x80, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x00, 0x00, 0x01,
    0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff,
    0xfe, 0x00, 0x00, 0x02, 0xd0, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00,
    0x04, 0x40, 0xff, 0xff, 0x00, 0x00, 0x02, 0x22, 0x80, 0x00, 0x00, 0x05,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62,
    0x63, 0x64, 0x65, 0x66, 0x7d, 0x27, 0x3e, 0xff,
};

static void known_answers(void **state)
{
    (void)state;
    assert_int_equal(qhca_icrc(v4_send, false, sizeof(v4_send) - 4),
                     qhca_get_le32(v4_send + sizeof(v4_send) - 4));
    assert_int_equal(qhca_icrc(v4_ack, false, sizeof(v4_ack) - 4),
                     qhca_get_le32(v4_ack + sizeof(v4_ack) - 4));
    assert_int_equal(qhca_icrc(v6_send, true, sizeof(v6_send) - 4),
                     qhca_get_le32(v6_send + sizeof(v6_send) - 4));
}

/* Bits a router may change: @mask of byte @i; 0 means all are covered. */
static uint8_t variant_v4(size_t i)
{
    switch (i) {
    case 1: case 8: case 10: case 11:   /* TOS, TTL, header checksum */
    case 26: case 27:                   /* UDP checksum */
    case 32:                            /* BTH: FECN, BECN, reserved */
        return 0xff;
    default:
        return 0;
    }
}

static uint8_t variant_v6(size_t i)
{
    switch (i) {
    case 0:
        return 0x0f;
    case 1: case 2: case 3: case 7: case 46: case 47: case 52:
        return 0xff;
    default:
        return 0;
    }
}

static void coverage(const uint8_t *frame, size_t len, bool v6)
{
    uint32_t good = qhca_icrc(frame, v6, len);
    uint8_t b[128];
    size_t i;
    int bit;

    for (i = 0; i < len; i++) {
        for (bit = 0; bit < 8; bit++) {
            uint8_t m = v6 ? variant_v6(i) : variant_v4(i);

            memcpy(b, frame, len);
            b[i] ^= (uint8_t)(1 << bit);
            if (m >> bit & 1) {
                assert_int_equal(qhca_icrc(b, v6, len), good);
            } else {
                assert_int_not_equal(qhca_icrc(b, v6, len), good);
            }
        }
    }
}

static void covered_bits(void **state)
{
    (void)state;
    coverage(v4_send, sizeof(v4_send) - 4, false);
    coverage(v4_ack, sizeof(v4_ack) - 4, false);
    coverage(v6_send, sizeof(v6_send) - 4, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(covered_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing a packet in one line, and pcap files.  Decodes packets from the
 * specification, without the engine's code.
 */
#include <inttypes.h>
#include <string.h>

#include "world.h"

static const char *const base_names[] = {
    "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_ONLY",
    "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST",
    "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST",
    "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST",
    "READ_RESP_ONLY", "ACK", "ATOMIC_ACK", "COMP_SWAP", "FETCH_ADD", "0x15",
    "SEND_LAST_INV", "SEND_ONLY_INV", "0x18", "0x19", "0x1a", "0x1b",
    "FLUSH", "ATOMIC_WRITE",
};

static uint32_t be(const uint8_t *p, unsigned n)
{
    uint32_t v = 0;

    while (n--) {
        v = v << 8 | *p++;
    }
    return v;
}

static void bth(char *out, size_t size, const uint8_t *b, size_t len)
{
    static const char *const types[] = {
        "RC", "UC", "RD", "UD", "CNP", "XRC", "masked", "??",
    };
    unsigned op, base;
    const char *name = "?";
    int n;

    if (len < 16) {
        snprintf(out, size, "RoCE, too short");
        return;
    }
    op = b[0];
    base = op & 0x1f;
    if (base < sizeof(base_names) / sizeof(base_names[0])) {
        name = base_names[base];
    }
    n = snprintf(out, size, "%s %s qpn %#x psn %u%s%s %zu bytes",
                 types[op >> 5], name, be(b + 5, 3),
                 be(b + 9, 3), b[8] & 0x80 ? " ackreq" : "",
                 b[1] & 0x80 ? " solicited" : "", len - 16);
    if (n < 0 || (size_t)n >= size) {
        return;
    }
    out += n;
    size -= (size_t)n;
    if ((op == 0x11 || op == 0x12 || op == 0x0d || op == 0x0f ||
         op == 0x10) && len >= 20) {
        static const char *const kinds[] = { "ack", "rnr-nak", "?", "nak" };

        snprintf(out, size, " %s %u msn %u", kinds[b[12] >> 5 & 3],
                 b[12] & 0x1f, be(b + 13, 3));
    } else if ((op == 0x06 || op == 0x0a || op == 0x0b || op == 0x0c) &&
               len >= 32) {
        snprintf(out, size, " va %#x%08x rkey %#x len %u", be(b + 12, 4),
                 be(b + 16, 4), be(b + 20, 4), be(b + 24, 4));
    } else if ((op == 0x64 || op == 0x65) && len >= 24) {
        snprintf(out, size, " qkey %#x src %#x", be(b + 12, 4),
                 be(b + 17, 3));
    }
}

void pkt_describe(char *out, size_t size, const uint8_t *f, size_t len)
{
    size_t l3 = 14, udp;
    uint32_t type;

    if (len < 14) {
        snprintf(out, size, "%zu bytes", len);
        return;
    }
    type = be(f + 12, 2);
    if (type == 0x8100 && len >= 18) {
        type = be(f + 16, 2);
        l3 = 18;
    }
    if (type == 0x0800 && len >= l3 + 28 && f[l3 + 9] == 17) {
        udp = l3 + (f[l3] & 0xf) * 4u;
    } else if (type == 0x86dd && len >= l3 + 48 && f[l3 + 6] == 17) {
        udp = l3 + 40;
    } else {
        snprintf(out, size, "Ethernet type %#x %zu bytes", type, len);
        return;
    }
    if (len < udp + 8 || be(f + udp + 2, 2) != QHCA_ROCE_UDP_PORT) {
        snprintf(out, size, "UDP, other port, %zu bytes", len);
        return;
    }
    bth(out, size, f + udp + 8, len - udp - 8);
}

static void put32(FILE *f, uint32_t v)
{
    uint8_t b[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                     (uint8_t)(v >> 24) };

    fwrite(b, 4, 1, f);
}

void pcap_header(FILE *f)
{
    put32(f, 0xa1b23c4d);       /* times in nanoseconds */
    put32(f, 2 | 4 << 16);      /* version 2.4 */
    put32(f, 0);
    put32(f, 0);
    put32(f, 1 << 17);          /* more than any frame has */
    put32(f, 1);                /* Ethernet */
}

void pcap_frame(FILE *f, uint64_t ns, const uint8_t *frame, size_t len)
{
    put32(f, (uint32_t)(ns / 1000000000));
    put32(f, (uint32_t)(ns % 1000000000));
    put32(f, (uint32_t)len);
    put32(f, (uint32_t)len);
    fwrite(frame, len, 1, f);
}

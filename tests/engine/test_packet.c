/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Received frames: which are RoCEv2 packets for us, which are malformed, and
 * that nothing a peer sends does harm.
 */
#include "peer.h"
#include "transport/rc.h"

static uint64_t stat(struct peer *p, unsigned i)
{
    return qhca_stat(p->e, i);
}

static void rewrite_icrc(uint8_t *b, size_t len)
{
    uint32_t crc = peer_icrc(b + 14, len - 18);
    size_t i;

    for (i = 0; i < 4; i++) {
        b[len - 4 + i] = (uint8_t)(crc >> (8 * i));
    }
}

static void fix_ip_checksum(uint8_t *b)
{
    uint32_t sum = 0;
    size_t i;

    b[24] = b[25] = 0;
    for (i = 14; i < 34; i += 2) {
        sum += (uint32_t)b[i] << 8 | b[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    peer_put16(b + 24, ~(sum + (sum >> 16)) & 0xffff);
}

/* Inject @b with a fresh ICRC; exactly statistic @i goes up. */
static void dropped(struct peer *p, uint8_t *b, size_t len, unsigned i)
{
    uint64_t before = stat(p, i);

    rewrite_icrc(b, len);
    world_inject(&p->w, 0, b, len);
    peer_run(p);
    assert_int_equal(stat(p, i), before + 1);
    assert_int_equal(peer_waiting(p), 0);
}

static size_t good(struct peer *p, uint8_t *b)
{
    struct pkt k = {
        .op = SEND_ONLY, .psn = p->a.rq_psn, .ackreq = true,
        .data = "hello", .len = 5,
    };

    return peer_build(p, &k, b);
}

static void malformed(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint8_t b[4400];
    size_t len;

    (void)state;
    peer_recv(p, 1, 0, 4096);
    /* transport version */
    len = good(p, b);
    b[43] |= 1;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    /* unknown opcodes, of RC and of an unsupported class */
    len = good(p, b);
    b[42] = 0x15;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    b[42] = 0x44;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    /* an opcode of another QP type */
    b[42] = 0x24;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    /* partition */
    len = good(p, b);
    b[44] = 0x12;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    /* UDP length and IP length disagree */
    len = good(p, b);
    b[39] -= 4;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    /* IP header checksum */
    len = good(p, b);
    b[24] ^= 0x55;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    /* a foreign address */
    len = good(p, b);
    b[29] = 77;
    fix_ip_checksum(b);
    dropped(p, b, len, QHCA_STAT_ROCE_RX_MALFORMED);
    /* no such QP */
    len = good(p, b);
    b[47] = 0x99;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_NO_QP);
    /* QPN 0 and the multicast QPN */
    len = good(p, b);
    b[49] = 0;
    b[48] = 0;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_NO_QP);
    b[47] = b[48] = b[49] = 0xff;
    dropped(p, b, len, QHCA_STAT_ROCE_RX_NO_QP);
    peer_no_cqe(p, rcq);
    /* limited member of the default partition, then the valid packet */
    len = good(p, b);
    b[44] = 0x7f;
    rewrite_icrc(b, len);
    world_inject(&p->w, 0, b, len);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 5);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    peer_free(p);
}

/* Flip every covered bit: never accepted. */
static void flipped_bits(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint8_t b[4400];
    size_t len, i;
    int bit;

    (void)state;
    peer_recv(p, 1, 0, 4096);
    len = good(p, b);
    for (i = 0; i < len; i++) {
        for (bit = 0; bit < 8; bit++) {
            size_t o = i - 14;

            if (i < 14 || o == 1 || o == 8 || o == 26 || o == 27 ||
                o == 32) {
                continue;       /* Ethernet, and what routers may change */
            }
            b[i] ^= (uint8_t)(1 << bit);
            world_inject(&p->w, 0, b, len);
            b[i] ^= (uint8_t)(1 << bit);
        }
    }
    peer_no_cqe(p, rcq);
    assert_int_equal(peer_waiting(p), 0);
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    peer_free(p);
}

/* Every length below the correct one, with correct checksums if possible. */
static void truncated(void **state)
{
    static const uint8_t ops[] = {
        SEND_ONLY, SEND_ONLY_IMM, WRITE_ONLY, WRITE_ONLY_IMM, READ_REQ,
        CMP_SWAP, SEND_ONLY_INV, ACK, ATOMIC_ACK, RESP_ONLY, UD_ONLY,
        UD_ONLY_IMM,
    };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint8_t b[4400];
    size_t len, n, i;

    (void)state;
    for (i = 0; i < sizeof(ops); i++) {
        for (n = 14; ; n++) {
            struct pkt k = { .op = ops[i], .psn = p->a.rq_psn + 100 };

            len = peer_build(p, &k, b);
            if (n >= len) {
                break;
            }
            /* the headers still claim the full length */
            world_inject(&p->w, 0, b, n);
            /* or agree with the frame */
            if (n >= 34 + 8) {
                peer_put16(b + 16, (unsigned)(n - 14));
                peer_put16(b + 38, (unsigned)(n - 34));
                fix_ip_checksum(b);
                if (n >= 58) {
                    rewrite_icrc(b, n);
                }
                world_inject(&p->w, 0, b, n);
            }
        }
    }
    peer_run(p);
    /* none of them was a packet, so the QP was not even out of sequence */
    assert_int_equal(stat(p, QHCA_STAT_ROCE_OUT_OF_SEQUENCE), 0);
    assert_int_equal(peer_waiting(p), 0);
    peer_free(p);
}

/* Frames for the Ethernet function. */
static void not_ours(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint64_t roce;
    uint8_t b[4400];
    size_t len;

    (void)state;
    peer_recv(p, 1, 0, 4096);
    roce = stat(p, QHCA_STAT_ROCE_RX_PACKETS) +
           stat(p, QHCA_STAT_ROCE_RX_MALFORMED) +
           stat(p, QHCA_STAT_ROCE_ICRC_ERRORS);
    /* another port */
    len = good(p, b);
    b[37]++;
    rewrite_icrc(b, len);
    world_inject(&p->w, 0, b, len);
    /* a fragment */
    len = good(p, b);
    b[20] |= 0x20;
    fix_ip_checksum(b);
    rewrite_icrc(b, len);
    world_inject(&p->w, 0, b, len);
    /* an address that is not a GID */
    len = good(p, b);
    b[33] = 99;
    fix_ip_checksum(b);
    rewrite_icrc(b, len);
    world_inject(&p->w, 0, b, len);
    /* another MAC */
    len = good(p, b);
    b[5] ^= 0x40;
    world_inject(&p->w, 0, b, len);
    /* a VLAN the GID is not in */
    len = good(p, b);
    memmove(b + 18, b + 14, len - 14);
    memcpy(b + 12, "\x81\0\0\x07\x08\0", 6);
    world_inject(&p->w, 0, b, len + 4);
    peer_no_cqe(p, rcq);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_RX_PACKETS) +
                     stat(p, QHCA_STAT_ROCE_RX_MALFORMED) +
                     stat(p, QHCA_STAT_ROCE_ICRC_ERRORS), roce);
    /* a priority tag is not a VLAN */
    len = good(p, b);
    memmove(b + 18, b + 14, len - 14);
    memcpy(b + 12, "\x81\0\xe0\0\x08\0", 6);
    world_inject(&p->w, 0, b, len + 4);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    peer_free(p);
}

/* Frames that no VLAN and no GID can be for. */
static void for_none(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint8_t b[4400], six[4400] = { 0 };
    struct qhca_rx rx;
    size_t len = good(p, b);

    (void)state;
    peer_recv(p, 1, 0, 4096);
    assert_int_equal(qhca_parse(p->e, b, len, &rx), QHCA_PARSE_OK);
    assert_int_equal(qhca_parse(p->e, b, 13, &rx), QHCA_PARSE_NOT_OURS);
    /* VID 4095 is reserved: it must not be taken for "untagged" */
    memmove(b + 18, b + 14, len - 14);
    memcpy(b + 12, "\x81\0\x0f\xff\x08\0", 6);
    assert_int_equal(qhca_parse(p->e, b, len + 4, &rx), QHCA_PARSE_NOT_OURS);
    b[14] = 0xff;
    assert_int_equal(qhca_parse(p->e, b, len + 4, &rx), QHCA_PARSE_NOT_OURS);
    b[14] = b[15] = 0;
    assert_int_equal(qhca_parse(p->e, b, len + 4, &rx), QHCA_PARSE_OK);
    /* the GID of an IPv4 address, as an address of IPv6 */
    len = good(p, b);
    memcpy(six, b, 12);
    memcpy(six + 12, "\x86\xdd\x60\0\0\0", 6);
    memcpy(six + 18, b + 38, 2);
    memcpy(six + 20, "\x11\x40", 2);
    six[32] = six[33] = six[48] = six[49] = 0xff;
    memcpy(six + 34, b + 26, 4);
    memcpy(six + 50, b + 30, 4);
    memcpy(six + 54, b + 34, len - 34);
    assert_int_equal(qhca_parse(p->e, six, len + 20, &rx),
                     QHCA_PARSE_NOT_OURS);
    world_inject(&p->w, 0, six, len + 20);
    peer_no_cqe(p, rcq);
    peer_expect_nothing(p);
    peer_free(p);
}

/*
 * The same address may be on several VLANs, as link-local ones are: a packet of
 * another VLAN is for the same connection.  Another address is not.
 */
static void gid_on_two_vlans(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_gid gid = { .vlan = 7, .type = QHCA_GID_ROCE_V2 };
    struct gcmd c = { .op = QHCA_CMD_SET_GID, .obj = GUEST_GIDS, .in = &gid,
                      .in_len = sizeof(gid) };
    uint8_t b[4400];
    size_t len;
    unsigned i;

    (void)state;
    peer_recv(p, 1, 0, 4096);
    memcpy(gid.mac, p->n->mac, 6);
    for (i = 0; i < 2; i++) {
        guest_gid(0, 0, gid.gid);
        gid.gid[14] = (uint8_t)!i;
        assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_OK);
        len = good(p, b);
        b[32] = (uint8_t)!i;            /* the destination */
        fix_ip_checksum(b);
        rewrite_icrc(b, len);
        memmove(b + 18, b + 14, len - 14);
        memcpy(b + 12, "\x81\0\0\x07\x08\0", 6);
        world_inject(&p->w, 0, b, len + 4);
        if (i) {
            peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
            peer_expect_aeth(p, 0x1f, p->a.rq_psn);
        } else {
            peer_no_cqe(p, rcq);
            assert_int_equal(stat(p, QHCA_STAT_ROCE_RX_MALFORMED), 1);
            assert_int_equal(peer_waiting(p), 0);
        }
    }
    peer_free(p);
}

/* Header fields of packets we send. */
static void sent_headers(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    const struct pframe *f;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = QHCA_WQE_F_SOLICITED }, 0, 6);
    f = peer_expect(p, SEND_ONLY, p->a.sq_psn);
    assert_memory_equal(f->b, p->w.node[1].mac, 6);
    assert_memory_equal(f->b + 6, p->w.node[0].mac, 6);
    assert_int_equal(f->b[14], 0x45);
    assert_int_equal(f->b[16] << 8 | f->b[17], f->len - 14);
    assert_int_equal(f->b[20] << 8 | f->b[21], 0x4000);    /* DF */
    assert_int_equal(f->b[22], 64);
    assert_memory_equal(f->b + 26, "\x0a\x63\0\x01\x0a\x63\0\x02", 8);
    assert_true(f->b[34] >= 0xc0);              /* UDP source port */
    assert_int_equal(f->b[36] << 8 | f->b[37], 4791);
    assert_int_equal(f->b[38] << 8 | f->b[39], f->len - 34);
    assert_int_equal(f->b[40] << 8 | f->b[41], 0);
    assert_int_equal(f->b[43], 0x80 | 0x40 | 2 << 4);   /* SE, MigReq, pad */
    assert_int_equal(f->b[44] << 8 | f->b[45], 0xffff);
    assert_true(f->ackreq);
    assert_int_equal(f->body, 8);
    assert_memory_equal(f->ext, peer_data(0, 6), 6);
    assert_memory_equal(f->ext + 6, "\0\0", 2);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(truncated),
        cmocka_unit_test(not_ours),
        cmocka_unit_test(for_none),
        cmocka_unit_test(gid_on_two_vlans),
        cmocka_unit_test(sent_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

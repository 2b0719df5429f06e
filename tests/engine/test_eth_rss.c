/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RSS over Ethernet RQs: tables, the port's QP, flows, the hash by type of
 * frame.
 */
#include "ethfix.h"
#include "emit.h"
#include "ethernet/flow.h"

#define QUEUES 4
#define ENTRIES_SHIFT 3
#define LEN 100

#define ALL_FIELDS (QHCA_HASH_BY_TYPE |                                     \
                    QHCA_HASH_BY_MASK << QHCA_HASH_TCP4_SHIFT |             \
                    QHCA_HASH_BY_MASK << QHCA_HASH_UDP4_SHIFT |             \
                    IPS << QHCA_HASH_IPV4_SHIFT |                           \
                    QHCA_HASH_BY_MASK << QHCA_HASH_TCP6_SHIFT |             \
                    QHCA_HASH_BY_MASK << QHCA_HASH_UDP6_SHIFT |             \
                    IPS << QHCA_HASH_IPV6_SHIFT)
#define IPS (QHCA_HASH_BY_SRC_IP | QHCA_HASH_BY_DST_IP)
#define PORTS (QHCA_HASH_BY_SRC_PORT | QHCA_HASH_BY_DST_PORT)

struct fix {
    struct unit *u;
    struct erq q[QUEUES];
    struct erss rss;
};

static void make(struct fix *f, struct unit *u, uint32_t fields)
{
    unsigned i;

    f->u = u;
    for (i = 0; i < QUEUES; i++) {
        erq_make(u, &f->q[i], 0);
    }
    erss_make(u, &f->rss, f->q, QUEUES, ENTRIES_SHIFT, fields);
}

static void unmake(struct fix *f)
{
    unsigned i;

    erss_free(&f->rss);
    for (i = 0; i < QUEUES; i++) {
        erq_free(&f->q[i]);
    }
}

/* The kinds of frame that a hash by type knows, and one it does not. */
enum kind { TCP4, UDP4, OTHER4, FIRST4, LATER4, TCP6, UDP6, OTHER6, FRAG6, ARP,
            KINDS };

static uint32_t fields_of(enum kind k)
{
    static const uint8_t shift[] = {
        [TCP4] = QHCA_HASH_TCP4_SHIFT, [UDP4] = QHCA_HASH_UDP4_SHIFT,
        [OTHER4] = QHCA_HASH_IPV4_SHIFT, [FIRST4] = QHCA_HASH_IPV4_SHIFT,
        [LATER4] = QHCA_HASH_IPV4_SHIFT, [TCP6] = QHCA_HASH_TCP6_SHIFT,
        [UDP6] = QHCA_HASH_UDP6_SHIFT, [OTHER6] = QHCA_HASH_IPV6_SHIFT,
        [FRAG6] = QHCA_HASH_IPV6_SHIFT,
    };

    return shift[k];
}

/* A frame of this kind of flow @n; with @back in the other direction. */
static void make_frame(uint8_t *b, const uint8_t *dmac, enum kind k,
                       unsigned n, bool back)
{
    uint8_t *ip = b + 14, *l4 = ip + (k >= TCP6 ? 40 : 20), *a, *z;
    size_t size = k >= TCP6 ? 16 : 4;
    unsigned i;

    for (i = 0; i < LEN; i++) {
        b[i] = (uint8_t)(i * 3);
    }
    memcpy(b, dmac, 6);
    if (k == ARP) {
        qhca_put_be16(b + 12, 0x0806);
        return;
    }
    if (k < TCP6) {
        qhca_put_be16(b + 12, 0x0800);
        ip[0] = 0x45;
        qhca_put_be16(ip + 2, LEN - 14);
        qhca_put_be16(ip + 6, k == FIRST4 ? 0x2000 : k == LATER4 ? 5 : 0);
        ip[9] = k == UDP4 ? 17 : k == OTHER4 ? 1 : 6;
        a = ip + 12;
    } else {
        qhca_put_be16(b + 12, 0x86dd);
        ip[0] = 0x60;
        ip[3] = (uint8_t)(n * 53);      /* of the flow label */
        qhca_put_be16(ip + 4, LEN - 54);
        ip[6] = k == UDP6 ? 17 : k == OTHER6 ? 58 : k == FRAG6 ? 44 : 6;
        a = ip + 8;
        if (k == FRAG6) {
            memcpy(l4, "\x06\0\0\x01\0\0\0\x07", 8);
        }
    }
    z = a + size;
    for (i = 0; i < size; i++) {
        (back ? z : a)[i] = (uint8_t)(n * 5 + i);
        (back ? a : z)[i] = (uint8_t)(n * 91 + 3 * i);
    }
    if (k != FRAG6) {
        qhca_put_be16(back ? l4 + 2 : l4, (uint16_t)(1000 + n));
        qhca_put_be16(back ? l4 : l4 + 2, (uint16_t)(80 + n * 77));
        if (k == UDP4 || k == UDP6) {
            qhca_put_be16(l4 + 4, (uint16_t)(b + LEN - l4));
        }
    }
}

#define LABELS (QHCA_HASH_LABEL_TCP6 | QHCA_HASH_LABEL_UDP6 |               \
                QHCA_HASH_LABEL_IPV6)

/* The bit of the flow label of this kind of frame, or 0. */
static uint32_t label_of(enum kind k)
{
    return k < TCP6 || k == ARP ? 0 : k == TCP6 ? QHCA_HASH_LABEL_TCP6 :
           k == UDP6 ? QHCA_HASH_LABEL_UDP6 : QHCA_HASH_LABEL_IPV6;
}

/* Toeplitz as its definition has it, bit by bit; the key is a ring. */
static uint32_t by_definition(const uint8_t key[40], const uint8_t *in,
                              size_t len)
{
    uint32_t hash = 0;
    size_t i, k;

    for (i = 0; i < len * 8; i++) {
        for (k = 0; k < 32 && in[i / 8] & 0x80 >> i % 8; k++) {
            size_t bit = (i + k) % 320;

            hash ^= (key[bit / 8] & 0x80 >> bit % 8 ? 0x80000000u : 0) >> k;
        }
    }
    return hash;
}

/*
 * The hash, from the frame's bytes and the manual alone; *@type gets
 * QHCA_HASH_TYPE_*.
 */
static uint32_t expect(const struct qhca_qpc *c, const uint8_t *b, enum kind k,
                       uint8_t *type)
{
    uint32_t by = k == ARP ? 0 : c->rx_hash_fields >> fields_of(k) & 15;
    const uint8_t *a = b + (k >= TCP6 ? 22 : 26);
    const uint8_t *l4 = b + (k >= TCP6 ? 54 : 34);
    size_t size = k >= TCP6 ? 16 : 4, n = 0, i, at[5];
    bool label = c->rx_hash_fields & label_of(k);
    uint8_t pair[2][36], in[40];

    at[0] = 0;
    at[1] = size;
    at[2] = 2 * size;
    at[3] = at[2] + 2;
    at[4] = at[3] + 2;
    memcpy(pair[0], a, 2 * size);
    memcpy(pair[0] + at[2], l4, 4);
    memcpy(pair[1], pair[0], sizeof(pair[0]));
    for (i = 0; i < at[4]; i++) {
        size_t w = i < at[2] ? size : 2;
        bool first = i < at[1] || (i >= at[2] && i < at[3]);
        uint8_t s = pair[0][first ? i : i - w], d = pair[0][first ? i + w : i];

        if (c->rx_hash_fields & QHCA_HASH_SYM_XOR) {
            pair[1][i] = s ^ d;
        } else if (c->rx_hash_fields & QHCA_HASH_SYM_OR_XOR) {
            pair[1][i] = first ? s | d : s ^ d;
        }
    }
    for (i = 0; i < 4; i++) {
        if (by & 1u << i) {
            memcpy(in + n, pair[1] + at[i], at[i + 1] - at[i]);
            n += at[i + 1] - at[i];
        }
    }
    if (label) {
        qhca_put_be32(in + n, qhca_get_be32(b + 14) & 0xfffff);
        n += 4;
    }
    *type = by & PORTS ? QHCA_HASH_TYPE_L4 :
            by || label ? QHCA_HASH_TYPE_L3 : QHCA_HASH_TYPE_NONE;
    return by_definition(c->rx_hash_key, in, n);
}

/* The queue that @frame goes to, with its CQE; it is as it was sent. */
static unsigned arrive(struct fix *f, const uint8_t *frame, size_t len,
                       struct qhca_eth_cqe *cqe)
{
    unsigned i, got = QUEUES;
    uint8_t b[2 * LEN];

    for (i = 0; i < QUEUES; i++) {
        erq_post(f->u, &f->q[i].ring, 256, 0);
    }
    world_inject(&f->u->w, 0, frame, len);
    for (i = 0; i < QUEUES; i++) {
        struct qhca_eth_cqe c;

        if (!erq_poll(&f->q[i], &c)) {
            continue;
        }
        assert_int_equal(got, QUEUES);
        got = i;
        *cqe = c;
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        assert_int_equal(c.num, f->q[i].num);
        assert_int_equal(c.byte_len, len);
        erq_read(f->u, &f->q[i].ring, c.wqe_index, c.num_wqe, b, len);
        assert_memory_equal(b, frame, len);
    }
    for (i = 0; i < QUEUES; i++) {      /* start again with empty rings */
        assert_int_equal(erq_state(&f->q[i], QHCA_WQS_RESET), QHCA_ST_OK);
        assert_int_equal(erq_state(&f->q[i], QHCA_WQS_RDY), QHCA_ST_OK);
    }
    return got;
}

static uint8_t modify(struct fix *f, const struct qhca_qpc *c, uint64_t mask,
                      uint64_t *at)
{
    return unit_cmd(f->u, QHCA_CMD_MODIFY_QP, f->rss.qpn, mask, c, sizeof(*c),
                    at);
}

/* Each kind of frame by each kind of hash; changed between two frames. */
static void by_type(void **state)
{
    struct unit *u = *state;
    static const uint32_t fields[] = {
        ALL_FIELDS, ALL_FIELDS | QHCA_HASH_SYM_XOR,
        ALL_FIELDS | QHCA_HASH_SYM_OR_XOR, QHCA_HASH_BY_TYPE,
        QHCA_HASH_BY_TYPE | QHCA_HASH_BY_SRC_IP << QHCA_HASH_TCP4_SHIFT |
        QHCA_HASH_BY_DST_PORT << QHCA_HASH_UDP6_SHIFT,
        QHCA_HASH_BY_TYPE | PORTS << QHCA_HASH_TCP6_SHIFT |
        QHCA_HASH_BY_DST_IP << QHCA_HASH_IPV6_SHIFT,
        ALL_FIELDS | LABELS, QHCA_HASH_BY_TYPE | LABELS,
        ALL_FIELDS | QHCA_HASH_LABEL_TCP6, ALL_FIELDS | QHCA_HASH_LABEL_UDP6,
        ALL_FIELDS | QHCA_HASH_LABEL_IPV6,
    };
    struct qhca_eth_cqe cqe;
    uint8_t frame[LEN], type;
    struct qhca_qpc c, got;
    unsigned i, k, n, seen;
    uint32_t hash, there;
    struct fix f;
    uint64_t at;

    make(&f, u, QHCA_HASH_MASK);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        c = erss_context(u, 0, fields[i]);
        c.rx_hash_key[0] ^= (uint8_t)i;
        assert_int_equal(modify(&f, &c, QHCA_QP_M_RX_HASH, &at), QHCA_ST_OK);
        guest_query(&u->g, QHCA_CMD_QUERY_QP, f.rss.qpn, &got, sizeof(got));
        assert_int_equal(got.rx_hash_fields, fields[i]);
        assert_int_equal(got.rqtn, f.rss.rqtn);
        assert_memory_equal(got.rx_hash_key, c.rx_hash_key, 40);
        for (seen = 0, k = 0; k < KINDS; k++) {
            for (n = 0; n < 6; n++) {
                make_frame(frame, u->n->mac, k, n, false);
                hash = expect(&c, frame, k, &type);
                assert_int_equal(arrive(&f, frame, LEN, &cqe),
                                 (hash & 7) % QUEUES);
                assert_int_equal(cqe.rss_hash, hash);
                assert_int_equal(cqe.hash_type, type);
                assert_int_equal(cqe.flow_tag, 0);
                seen |= 1u << (hash & 7) % QUEUES;
                there = hash;
                make_frame(frame, u->n->mac, k, n, true);
                hash = expect(&c, frame, k, &type);
                arrive(&f, frame, LEN, &cqe);
                assert_int_equal(cqe.rss_hash, hash);
                /* FIRST4 has ports, which are not hashed */
                if (i == 1 || i == 2) {
                    assert_int_equal(hash, there);
                }
            }
        }
        assert_int_equal(seen, i == 3 ? 1 : 15);
    }
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    unmake(&f);
}

/* The bits of the verbs mean the same over Ethernet RQs. */
static void by_verbs(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_cqe cqe;
    struct qhca_qpc c;
    uint8_t frame[LEN];
    struct fix f;

    make(&f, u, QHCA_HASH_SRC_IPV4 | QHCA_HASH_DST_PORT_TCP);
    c = erss_context(u, 0, 0);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    make_frame(frame, u->n->mac, TCP4, 3, false);
    arrive(&f, frame, LEN, &cqe);
    {
        uint8_t in[6];

        memcpy(in, frame + 26, 4);
        memcpy(in + 4, frame + 36, 2);
        assert_int_equal(cqe.rss_hash, qhca_toeplitz(c.rx_hash_key, in, 6));
    }
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_L4);
    make_frame(frame, u->n->mac, UDP4, 3, false);
    arrive(&f, frame, LEN, &cqe);
    assert_int_equal(cqe.rss_hash,
                     qhca_toeplitz(c.rx_hash_key, frame + 26, 4));
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_L3);
    make_frame(frame, u->n->mac, UDP6, 3, false);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 0);
    assert_int_equal(cqe.rss_hash, 0);
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_NONE);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    unmake(&f);
}

/* The port's QP comes before the port's RQ, behind the address filter. */
static void port(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_cqe cqe;
    struct qhca_port p;
    uint8_t frame[LEN];
    struct fix f;

    make(&f, u, QHCA_HASH_BY_TYPE);
    make_frame(frame, u->n->mac, TCP4, 1, false);
    guest_query(&u->g, QHCA_CMD_QUERY_PORT, 0, &p, sizeof(p));
    assert_int_equal(p.eth_qpn, QHCA_ETH_QP_NONE);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, f.q[3].num),
                     QHCA_ST_OK);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 3);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    guest_query(&u->g, QHCA_CMD_QUERY_PORT, 0, &p, sizeof(p));
    assert_int_equal(p.eth_qpn, f.rss.qpn);
    assert_int_equal(p.eth_rqn, f.q[3].num);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 0);
    frame[5] ^= 1;
    assert_int_equal(arrive(&f, frame, LEN, &cqe), QUEUES);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_FILTERED), 1);
    frame[5] ^= 1;
    /* in use */
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_QP, f.rss.qpn),
                     QHCA_ST_BUSY);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_RQT, f.rss.rqtn),
                     QHCA_ST_BUSY);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_RQ,
                                  f.q[3].num), QHCA_ST_BUSY);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, 9999), QHCA_ST_BAD_OBJ);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 3);
    unmake(&f);
    /* the port's RQ is gone as well */
    world_inject(&u->w, 0, frame, LEN);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 1);
}

/* Another table between two frames; a stopped queue drops, others continue. */
static void other_table(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_cqe cqe;
    struct qhca_qpc c;
    uint8_t frame[LEN];
    uint32_t one, wide[QHCA_RQT_WQS_MAX], i, rqtn;
    struct fix f;
    uint64_t at;

    make(&f, u, QHCA_HASH_BY_TYPE);     /* all to the first entry */
    make_frame(frame, u->n->mac, TCP4, 1, false);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 0);
    for (i = 0; i < QHCA_RQT_WQS_MAX; i++) {
        wide[i] = f.q[2].num;
    }
    rqtn = rqt_of(u, wide, QHCA_RQT_WQS_MAX);
    one = rqt_of(u, &f.q[1].num, 1);
    c = erss_context(u, rqtn, 0);
    assert_int_equal(modify(&f, &c, QHCA_QP_M_RQTN, &at), QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_BUSY);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 2);
    c = erss_context(u, one, ALL_FIELDS);
    assert_int_equal(modify(&f, &c, QHCA_QP_M_RQTN | QHCA_QP_M_RX_HASH, &at),
                     QHCA_ST_OK);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 1);
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_L4);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_OK);
    /* its only queue is stopped */
    assert_int_equal(erq_state(&f.q[1], QHCA_WQS_RESET), QHCA_ST_OK);
    world_inject(&u->w, 0, frame, LEN);
    assert_int_equal(erq_query(&f.q[1]).dropped, 1);
    c = erss_context(u, f.rss.rqtn, QHCA_HASH_BY_TYPE);
    assert_int_equal(modify(&f, &c, QHCA_QP_M_RQTN | QHCA_QP_M_RX_HASH, &at),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_RQT, one),
                     QHCA_ST_OK);
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 0);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    unmake(&f);
}

/* Rules for the QP, with the port's filter or without. */
static void flows(void **state)
{
    struct unit *u = *state;
    struct qhca_flow r = { .tag = 0xabcde }, all;
    struct qhca_eth_cqe cqe;
    uint8_t frame[LEN + 4];
    struct erss one;
    struct fix f;
    uint32_t num, low;

    make(&f, u, ALL_FIELDS);
    erss_make(u, &one, &f.q[1], 1, 0, QHCA_HASH_BY_TYPE);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    make_frame(frame, u->n->mac, TCP4, 1, false);
    memset(&r.mask.dst_port, 0xff, 2);
    memcpy(&r.value.dst_port, frame + 36, 2);
    r.qpn = one.qpn;
    num = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 1);
    assert_int_equal(cqe.flow_tag, 0xabcde);
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_NONE);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_QP, one.qpn),
                     QHCA_ST_BUSY);
    frame[5] ^= 1;                      /* to another station */
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_PACKETS), 2);
    guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, num);
    r.flags = QHCA_FLOW_F_ADDR_FILTER;
    num = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    assert_int_equal(arrive(&f, frame, LEN, &cqe), QUEUES);
    /* one that does not apply hides no other in the same place */
    all = r;
    all.flags = 0;
    all.qpn = f.rss.qpn;
    all.tag = 5;
    low = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &all, sizeof(all));
    arrive(&f, frame, LEN, &cqe);
    assert_int_equal(cqe.flow_tag, 5);
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_L4);
    guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, low);
    frame[5] ^= 1;
    assert_int_equal(arrive(&f, frame, LEN, &cqe), 1);
    /* dropped if it is ours */
    guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, num);
    r.flags |= QHCA_FLOW_F_DROP;
    num = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    assert_int_equal(arrive(&f, frame, LEN, &cqe), QUEUES);
    guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, num);
    arrive(&f, frame, LEN, &cqe);
    assert_int_equal(cqe.flow_tag, 0);
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_L4);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    erss_free(&one);
    unmake(&f);
}

/* Copies of a frame with a tag: each queue strips it for itself. */
static void tagged_copies(void **state)
{
    struct unit *u = *state;
    struct qhca_flow r = { .flags = QHCA_FLOW_F_DONT_TRAP };
    struct qhca_eth_cqe cqe;
    uint8_t frame[LEN], tagged[LEN + 4], b[LEN];
    static const uint32_t cuts[] = { 1, 5, 12, 13, 60 };
    struct erss one;
    uint32_t num, i, k;
    struct fix f;

    make(&f, u, QHCA_HASH_BY_TYPE);
    erss_make(u, &one, &f.q[1], 1, 0, QHCA_HASH_BY_TYPE);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    r.qpn = one.qpn;
    num = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    make_frame(frame, u->n->mac, TCP4, 1, false);
    memcpy(tagged, frame, 12);
    memcpy(tagged + 12, "\x81\x00\x60\x07", 4);
    memcpy(tagged + 16, frame + 12, LEN - 12);
    for (k = 0; k < sizeof(cuts) / sizeof(cuts[0]); k++) {
        for (i = 0; i < 2; i++) {
            erq_post(u, &f.q[i].ring, cuts[k], 3);
            erq_post(u, &f.q[i].ring, 7, 3);
            erq_post(u, &f.q[i].ring, LEN, 3);
        }
        world_inject(&u->w, 0, tagged, sizeof(tagged));
        for (i = 0; i < 2; i++) {
            assert_true(erq_poll(&f.q[i], &cqe));
            assert_int_equal(cqe.status, QHCA_WC_SUCCESS);
            assert_int_equal(cqe.byte_len, LEN);
            assert_int_equal(cqe.vlan, 0x6007);
            assert_true(cqe.flags & QHCA_CQE_F_VLAN);
            assert_int_equal(cqe.num_wqe, 3);
            erq_read(u, &f.q[i].ring, cqe.wqe_index, 3, b, LEN);
            assert_memory_equal(b, frame, LEN);
        }
    }
    guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, num);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    erss_free(&one);
    unmake(&f);
}

/* What CREATE_RQT, MODIFY_QP and MODIFY_PORT refuse. */
static void refused(void **state)
{
    struct unit *u = *state;
    static const uint32_t bad_fields[] = {
        1u << 8, 1u << 24, 1u << 26, QHCA_HASH_BY_TYPE | 1u << 29,
        QHCA_HASH_BY_TYPE | PORTS << QHCA_HASH_IPV4_SHIFT,
        QHCA_HASH_BY_TYPE | PORTS << QHCA_HASH_IPV6_SHIFT,
        ALL_FIELDS | QHCA_HASH_SYM_XOR | QHCA_HASH_SYM_OR_XOR,
        QHCA_HASH_BY_TYPE | QHCA_HASH_SYM_XOR | QHCA_HASH_BY_SRC_IP,
        QHCA_HASH_BY_TYPE | QHCA_HASH_SYM_XOR |
        QHCA_HASH_BY_DST_PORT << QHCA_HASH_UDP6_SHIFT,
        QHCA_HASH_BY_TYPE | QHCA_HASH_SYM_OR_XOR |
        QHCA_HASH_BY_DST_IP << QHCA_HASH_IPV6_SHIFT,
        ALL_FIELDS | QHCA_HASH_SYM_XOR | QHCA_HASH_LABEL_TCP6,
        ALL_FIELDS | QHCA_HASH_SYM_OR_XOR | QHCA_HASH_LABEL_IPV6,
    };
    struct qhca_wqc w = { .shift = 1, .stride = 5 };
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 1, .sq_stride = 7,
    };
    struct gqp ud;
    struct gbuf ring;
    struct qhca_qpc c;
    uint32_t num[3], wqn, rqtn;
    struct gcmd m;
    struct fix f;
    unsigned i;
    uint64_t at;

    make(&f, u, ALL_FIELDS | QHCA_HASH_SYM_XOR);
    num[0] = num[1] = num[2] = f.q[0].num;
    assert_int_equal(rqt_try(u, 2, num, 1, &m), QHCA_ST_BAD_PARAM);
    assert_int_equal(rqt_try(u, 1ULL << 32, num, 1, &m), QHCA_ST_BAD_PARAM);
    assert_int_equal(rqt_try(u, QHCA_RQT_ETH_RQ, num, 3, &m),
                     QHCA_ST_BAD_PARAM);
    num[1] = 9999;
    assert_int_equal(rqt_try(u, QHCA_RQT_ETH_RQ, num, 2, &m),
                     QHCA_ST_BAD_OBJ);
    assert_int_equal(m.result, 4);
    assert_int_equal(rqt_try(u, QHCA_RQT_WQ, num, 1, &m), QHCA_ST_BAD_OBJ);
    /* a table of WQs is none for this QP */
    gbuf_make(&ring, u->m, 64, &gbuf_direct, true, 0, &u->g.rng);
    w.buf = ring.d;
    w.pd = u->g.pd;
    w.uar = u->g.uar;
    w.cqn = f.q[0].cq.cqn;
    wqn = guest_create(&u->g, QHCA_CMD_CREATE_WQ, &w, sizeof(w));
    assert_int_equal(rqt_try(u, QHCA_RQT_WQ, &wqn, 1, &m), QHCA_ST_OK);
    rqtn = m.robj;
    c = erss_context(u, rqtn, ALL_FIELDS);
    assert_int_equal(modify(&f, &c, QHCA_QP_M_RQTN, &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_qpc, rqtn));
    c.rqtn = 9999;
    assert_int_equal(modify(&f, &c, QHCA_QP_M_RQTN, &at), QHCA_ST_BAD_OBJ);
    assert_int_equal(at, offsetof(struct qhca_qpc, rqtn));
    for (i = 0; i < sizeof(bad_fields) / sizeof(bad_fields[0]); i++) {
        c.rx_hash_fields = bad_fields[i];
        assert_int_equal(modify(&f, &c, QHCA_QP_M_RX_HASH, &at),
                         QHCA_ST_BAD_PARAM);
        assert_int_equal(at, offsetof(struct qhca_qpc, rx_hash_fields));
    }
    c.rx_hash_fields = 0;
    c.rx_hash_func = 2;
    assert_int_equal(modify(&f, &c, QHCA_QP_M_RX_HASH, &at),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_qpc, rx_hash_func));
    assert_int_equal(modify(&f, &c, 1ULL << 18, &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(modify(&f, &c, QHCA_QP_M_STATE, &at), QHCA_ST_BAD_STATE);
    assert_int_equal(modify(&f, &c, 0, &at), QHCA_ST_OK);
    guest_query(&u->g, QHCA_CMD_QUERY_QP, f.rss.qpn, &c, sizeof(c));
    assert_int_equal(c.rqtn, f.rss.rqtn);
    assert_int_equal(c.rx_hash_fields, ALL_FIELDS | QHCA_HASH_SYM_XOR);
    /* the port takes neither this kind of RSS QP nor one that is none */
    c = erss_context(u, rqtn, 0);
    num[0] = guest_create(&u->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, num[0]),
                     QHCA_ST_BAD_OBJ);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_QP, num[0]),
                     QHCA_ST_OK);
    in.scq = in.rcq = &f.q[0].cq;
    gqp_create(&ud, &u->g, &in);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, ud.qpn),
                     QHCA_ST_BAD_OBJ);
    /* nor has another QP these attributes */
    assert_int_equal(gqp_state(&ud, QHCA_QPS_INIT), QHCA_ST_BAD_PARAM);
    c.state = QHCA_QPS_RESET;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_QP, ud.qpn,
                              QHCA_QP_M_STATE | QHCA_QP_M_RX_HASH, &c,
                              sizeof(c), &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_qpc, rx_hash_fields));
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_QP, ud.qpn,
                              QHCA_QP_M_STATE | QHCA_QP_M_RQTN, &c,
                              sizeof(c), &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_qpc, rqtn));
    assert_int_equal(gqp_destroy(&ud), QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_WQ, wqn),
                     QHCA_ST_OK);
    gbuf_free(&ring);
    unmake(&f);
}

/* All of it survives save and load; references are not trusted. */
static void saved(void **state)
{
    struct unit *u = *state;
    struct qhca_flow r = { .tag = 7, .flags = QHCA_FLOW_F_ADDR_FILTER };
    uint8_t port[11] = { [0] = 4, [5] = 'b', [6] = 1, [7] = 4 }, *at;
    struct qhca_eth_cqe cqe;
    uint8_t frame[LEN];
    char why[160] = "";
    struct fix f;
    uint32_t num, other = 9999;
    void *state_of;
    unsigned i;
    size_t len;

    make(&f, u, ALL_FIELDS);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    r.qpn = f.rss.qpn;
    r.mask.tos = 0xff;
    r.value.tos = 45;                   /* make_frame() */
    num = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    make_frame(frame, u->n->mac, TCP4, 1, false);
    for (i = 0; i < 3; i++) {
        arrive(&f, frame, LEN, &cqe);
        assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_L4);
        assert_int_equal(cqe.flow_tag, 7);
        save_and_load(u);
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_QP, f.rss.qpn),
                         QHCA_ST_BUSY);
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_RQ,
                                      f.q[0].num), QHCA_ST_BUSY);
    }
    assert_true(qhca_save(u->e, &state_of, &len));
    /* the port: RQN, whether it has a QP, QPN */
    memset(port + 1, 0xff, 4);
    memcpy(port + 8, &f.rss.qpn, 3);
    at = memmem(state_of, len, port, sizeof(port));
    assert_non_null(at);
    memcpy(at + 8, &other, 4);
    assert_false(qhca_load(u->e, state_of, len, why, sizeof(why)));
    assert_string_equal(why, "port: its RSS QP does not exist");
    memcpy(at + 8, &f.rss.qpn, 4);
    assert_true(qhca_load(u->e, state_of, len, why, sizeof(why)));
    free(state_of);
    guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, num);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_QP, f.rss.qpn),
                     QHCA_ST_BUSY);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    unmake(&f);
}

/* A reset with all of it in use. */
static void reset(void **state)
{
    struct unit *u = *state;
    struct qhca_flow r = { .tag = 7 };
    struct fix f;
    unsigned i;

    make(&f, u, ALL_FIELDS);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    r.qpn = f.rss.qpn;
    guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    qhca_reset(u->e);
    assert_null(u->e->eth->eth_qp);
    assert_null(u->e->eth->flows);
    for (i = 0; i < QUEUES; i++) {
        erq_ring_free(u, &f.q[i].ring);
        erq_ring_free(u, &f.q[i].data);
        gbuf_free(&f.q[i].cq.buf);
    }
}

/* Queue, table and QP can be inspected, each with those at its other end. */
static void looks(void **state)
{
    struct unit *u = *state;
    struct seen s = { 0 };
    char want[24];
    struct fix f;

    make(&f, u, ALL_FIELDS | QHCA_HASH_SYM_XOR);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, f.rss.qpn), QHCA_ST_OK);
    u->m->unchecked = true;
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_RQ, f.q[2].num,
                             seen_start(&s)));
    snprintf(want, sizeof(want), "%u", f.rss.rqtn);
    SEEN(&s, "rqts.0", want);
    assert_null(seen_get(&s, "rqts.1"));
    SEEN(&s, "port", "false");
    assert_null(qhca_inspect(u->e, QHCA_OBJ_RQT, f.rss.rqtn, seen_start(&s)));
    SEEN(&s, "kind_name", "ETH_RQ");
    SEEN(&s, "size", "8");
    snprintf(want, sizeof(want), "%u", f.q[3].num);
    SEEN(&s, "eth_rqs.7", want);
    snprintf(want, sizeof(want), "%u", f.rss.qpn);
    SEEN(&s, "rss_qps.0", want);
    assert_null(seen_get(&s, "rss_qps.1"));
    assert_null(qhca_inspect(u->e, QHCA_OBJ_DEVICE, 0, seen_start(&s)));
    SEEN(&s, "port.eth_qpn", want);
    assert_null(qhca_inspect(u->e, QHCA_OBJ_RSS, f.rss.qpn, seen_start(&s)));
    SEEN(&s, "rss.hash_names", "BY_TYPE|SYM_XOR");
    SEEN(&s, "rss.tcp4", "SRC_IP|DST_IP|SRC_PORT|DST_PORT");
    SEEN(&s, "rss.ipv6", "SRC_IP|DST_IP");
    SEEN(&s, "rss.eth_rqs.0", "0");
    assert_null(qhca_inspect_all(u->e, QHCA_OBJ_RSS, 0, 9, seen_start(&s)));
    SEEN(&s, "objects.0.udp6", "SRC_IP|DST_IP|SRC_PORT|DST_PORT");
    u->m->unchecked = false;
    seen_start(&s);
    free(s.text);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    unmake(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(by_type), UNIT(by_verbs), UNIT(port), UNIT(other_table),
        UNIT(flows), UNIT(tagged_copies), UNIT(refused), UNIT(saved),
        UNIT(looks),
        UNIT_HOSTILE(reset),
    };

    return cmocka_run_group_tests_name("eth_rss", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Tests what filters of ethtool become: the device's match, field by field, of
 * each type of rule, and which rules are refused.
 */
#include <kunit/test.h>

/* Included, not linked, as the driver exports nothing for tests. */
#include "../net/ntuple_match.c"

static const u8 nm_mac[ETH_ALEN] = { 0x52, 0x54, 0, 1, 2, 3 };
static const u8 nm_ip6[16] = { 0xfd, 1, 2, 3, [15] = 9 };

static struct ethtool_rx_flow_spec nm_rule(u32 type)
{
	struct ethtool_rx_flow_spec fs;

	memset(&fs, 0, sizeof(fs));
	fs.flow_type = type;
	return fs;
}

static int nm_match(const struct ethtool_rx_flow_spec *fs,
		    struct qhca_flow_match *value, struct qhca_flow_match *mask)
{
	memset(value, 0xa5, sizeof(*value));
	memset(mask, 0xa5, sizeof(*mask));
	return qhca_ntuple_match(fs, value, mask);
}

/* Those of IPv4 with ports: only the protocol differs. */
static void nm_test_ports4(struct kunit *test)
{
	static const struct {
		u32 type;
		u8 l4;
	} kinds[] = {
		{ TCP_V4_FLOW, IPPROTO_TCP }, { UDP_V4_FLOW, IPPROTO_UDP },
	};
	struct qhca_flow_match want_value, want_mask, value, mask;
	struct ethtool_rx_flow_spec fs;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		fs = nm_rule(kinds[i].type);
		fs.h_u.tcp_ip4_spec.ip4src = cpu_to_be32(0x0a000001);
		fs.m_u.tcp_ip4_spec.ip4src = cpu_to_be32(0xffffff00);
		fs.h_u.tcp_ip4_spec.pdst = cpu_to_be16(4791);
		fs.m_u.tcp_ip4_spec.pdst = cpu_to_be16(0xffff);
		fs.h_u.tcp_ip4_spec.tos = 0x28;
		fs.m_u.tcp_ip4_spec.tos = 0xfc;
		KUNIT_ASSERT_EQ(test, nm_match(&fs, &value, &mask), 0);
		memset(&want_value, 0, sizeof(want_value));
		memset(&want_mask, 0, sizeof(want_mask));
		memcpy(want_value.src_ip + 12, "\x0a\x00\x00\x01", 4);
		memcpy(want_mask.src_ip + 12, "\xff\xff\xff\x00", 4);
		want_value.dst_port = cpu_to_be16(4791);
		want_mask.dst_port = cpu_to_be16(0xffff);
		want_value.tos = 0x28;
		want_mask.tos = 0xfc;
		want_value.l3 = 4;
		want_mask.l3 = 0xff;
		want_value.l4 = kinds[i].l4;
		want_mask.l4 = 0xff;
		KUNIT_EXPECT_MEMEQ(test, &value, &want_value, sizeof(value));
		KUNIT_EXPECT_MEMEQ(test, &mask, &want_mask, sizeof(mask));
	}
}

static void nm_test_ports6(struct kunit *test)
{
	struct ethtool_rx_flow_spec fs = nm_rule(UDP_V6_FLOW);
	struct qhca_flow_match value, mask;

	memcpy(fs.h_u.tcp_ip6_spec.ip6dst, nm_ip6, sizeof(nm_ip6));
	memset(fs.m_u.tcp_ip6_spec.ip6dst, 0xff, 16);
	fs.h_u.tcp_ip6_spec.psrc = cpu_to_be16(53);
	fs.m_u.tcp_ip6_spec.psrc = cpu_to_be16(0xffff);
	fs.h_u.tcp_ip6_spec.tclass = 3;
	fs.m_u.tcp_ip6_spec.tclass = 0xff;
	KUNIT_ASSERT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_MEMEQ(test, value.dst_ip, nm_ip6, sizeof(nm_ip6));
	KUNIT_EXPECT_EQ(test, mask.dst_ip[0] & mask.dst_ip[15], 0xff);
	KUNIT_EXPECT_EQ(test, value.src_port, cpu_to_be16(53));
	KUNIT_EXPECT_EQ(test, value.tos, 3);
	KUNIT_EXPECT_EQ(test, value.l3, 6);
	KUNIT_EXPECT_EQ(test, value.l4, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, mask.proto, 0);
	KUNIT_EXPECT_EQ(test, mask.src_ip[0], 0);
}

/* The device finds no ports of SCTP. */
static void nm_test_sctp(struct kunit *test)
{
	static const u32 types[] = { SCTP_V4_FLOW, SCTP_V6_FLOW };
	struct qhca_flow_match value, mask;
	struct ethtool_rx_flow_spec fs;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		fs = nm_rule(types[i]);
		KUNIT_ASSERT_EQ(test, nm_match(&fs, &value, &mask), 0);
		KUNIT_EXPECT_EQ(test, value.proto, IPPROTO_SCTP);
		KUNIT_EXPECT_EQ(test, mask.proto, 0xff);
		KUNIT_EXPECT_EQ(test, mask.l4, 0);
		if (i)
			fs.m_u.tcp_ip6_spec.pdst = cpu_to_be16(1);
		else
			fs.m_u.tcp_ip4_spec.pdst = cpu_to_be16(1);
		KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask),
				-EOPNOTSUPP);
	}
}

static void nm_test_user_ip(struct kunit *test)
{
	struct ethtool_rx_flow_spec fs = nm_rule(IP_USER_FLOW);
	struct ethtool_usrip4_spec *h = &fs.h_u.usr_ip4_spec;
	struct ethtool_usrip4_spec *m = &fs.m_u.usr_ip4_spec;
	struct qhca_flow_match value, mask;

	/* the version is part of the rule, and not masked */
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EINVAL);
	h->ip_ver = ETH_RX_NFC_IP4;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_EQ(test, value.l3, 4);
	KUNIT_EXPECT_EQ(test, mask.l4, 0);
	m->ip_ver = 1;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EINVAL);
	m->ip_ver = 0;
	/* bytes behind the header are ports, if the protocol has some */
	h->l4_4_bytes = cpu_to_be32(0x00351f90);
	m->l4_4_bytes = cpu_to_be32(0xffffffff);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
	h->proto = IPPROTO_UDP;
	m->proto = 0x7f;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
	m->proto = 0xff;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_EQ(test, value.src_port, cpu_to_be16(0x35));
	KUNIT_EXPECT_EQ(test, value.dst_port, cpu_to_be16(0x1f90));
	KUNIT_EXPECT_EQ(test, value.l4, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, mask.l4, 0xff);
	h->proto = IPPROTO_ICMP;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
	m->l4_4_bytes = 0;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_EQ(test, value.proto, IPPROTO_ICMP);

	fs = nm_rule(IPV6_USER_FLOW);
	fs.h_u.usr_ip6_spec.l4_proto = IPPROTO_TCP;
	fs.m_u.usr_ip6_spec.l4_proto = 0xff;
	fs.m_u.usr_ip6_spec.l4_4_bytes = cpu_to_be32(0xffff);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_EQ(test, value.l3, 6);
	KUNIT_EXPECT_EQ(test, value.l4, IPPROTO_TCP);
	KUNIT_EXPECT_EQ(test, mask.src_port, 0);
	KUNIT_EXPECT_EQ(test, mask.dst_port, cpu_to_be16(0xffff));
}

static void nm_test_ether_and_vlan(struct kunit *test)
{
	struct ethtool_rx_flow_spec fs = nm_rule(ETHER_FLOW);
	struct qhca_flow_match value, mask;

	memcpy(fs.h_u.ether_spec.h_dest, nm_mac, ETH_ALEN);
	memset(fs.m_u.ether_spec.h_dest, 0xff, ETH_ALEN);
	fs.h_u.ether_spec.h_proto = cpu_to_be16(ETH_P_ARP);
	fs.m_u.ether_spec.h_proto = cpu_to_be16(0xffff);
	KUNIT_ASSERT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_MEMEQ(test, value.dmac, nm_mac, ETH_ALEN);
	KUNIT_EXPECT_EQ(test, value.ethertype, cpu_to_be16(ETH_P_ARP));
	KUNIT_EXPECT_EQ(test, mask.l3 | mask.l4 | mask.tagged, 0);

	/* without FLOW_EXT these fields mean nothing */
	fs.h_ext.vlan_tci = cpu_to_be16(42);
	fs.m_ext.vlan_tci = cpu_to_be16(0xfff);
	fs.m_ext.data[0] = cpu_to_be32(1);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_EQ(test, mask.tagged, 0);
	fs.flow_type |= FLOW_EXT;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
	fs.m_ext.data[0] = 0;
	fs.m_ext.data[1] = cpu_to_be32(0x80000000);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
	fs.m_ext.data[1] = 0;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_EQ(test, value.tagged & mask.tagged, 1);
	KUNIT_EXPECT_EQ(test, value.vlan, cpu_to_be16(42));
	KUNIT_EXPECT_EQ(test, mask.vlan, cpu_to_be16(0xfff));

	/* the type of the tag: all of it, and only this one */
	fs.h_ext.vlan_etype = cpu_to_be16(ETH_P_8021Q);
	fs.m_ext.vlan_etype = cpu_to_be16(0xff00);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
	fs.m_ext.vlan_etype = cpu_to_be16(0xffff);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	fs.m_ext.vlan_tci = 0;
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_EQ(test, mask.tagged, 1);
	fs.h_ext.vlan_etype = cpu_to_be16(ETH_P_8021AD);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
}

/* The destination address as an extra of other types. */
static void nm_test_mac_ext(struct kunit *test)
{
	struct ethtool_rx_flow_spec fs = nm_rule(TCP_V4_FLOW | FLOW_MAC_EXT |
						 FLOW_RSS);
	struct qhca_flow_match value, mask;

	memcpy(fs.h_ext.h_dest, nm_mac, ETH_ALEN);
	memset(fs.m_ext.h_dest, 0xff, ETH_ALEN);
	KUNIT_ASSERT_EQ(test, nm_match(&fs, &value, &mask), 0);
	KUNIT_EXPECT_MEMEQ(test, value.dmac, nm_mac, ETH_ALEN);
	KUNIT_EXPECT_EQ(test, mask.dmac[5], 0xff);
	KUNIT_EXPECT_EQ(test, value.l4, IPPROTO_TCP);
}

/* All types that there may be, known or not: no other is accepted. */
static void nm_test_types(struct kunit *test)
{
	struct qhca_flow_match value, mask;
	struct ethtool_rx_flow_spec fs;
	u32 type, good = 0;

	for (type = 0; type < 256; type++) {
		fs = nm_rule(type);
		if (type == IP_USER_FLOW)
			fs.h_u.usr_ip4_spec.ip_ver = ETH_RX_NFC_IP4;
		if (!nm_match(&fs, &value, &mask))
			good++;
	}
	KUNIT_EXPECT_EQ(test, good, 9);
	fs = nm_rule(TCP_V4_FLOW | 0x10000000);
	KUNIT_EXPECT_EQ(test, nm_match(&fs, &value, &mask), -EOPNOTSUPP);
}

static struct kunit_case nm_cases[] = {
	KUNIT_CASE(nm_test_ports4),
	KUNIT_CASE(nm_test_ports6),
	KUNIT_CASE(nm_test_sctp),
	KUNIT_CASE(nm_test_user_ip),
	KUNIT_CASE(nm_test_ether_and_vlan),
	KUNIT_CASE(nm_test_mac_ext),
	KUNIT_CASE(nm_test_types),
	{}
};

static struct kunit_suite nm_suite = {
	.name = "qhca_ntuple_match",
	.test_cases = nm_cases,
};

kunit_test_suite(nm_suite);

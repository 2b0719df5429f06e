// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the planner and encoder of buffer tables against a walker written from
 * the contract's text: whatever layout is requested, each byte of the buffer
 * must be found where the blocks have it.
 */
#include <kunit/test.h>

/* Included, not linked, as the driver exports nothing for tests. */
#include "../core/buf_table_plan.c"
#include "../debug/layout.c"

/* ------------------------------------- iterating over a list of blocks --- */

struct bt_list {
	struct qhca_blocks blocks;
	const u64 *addr;
	u64 n, pos;
};

static void bt_list_begin(struct qhca_blocks *b)
{
	container_of(b, struct bt_list, blocks)->pos = 0;
}

static bool bt_list_next(struct qhca_blocks *b, u64 *addr)
{
	struct bt_list *l = container_of(b, struct bt_list, blocks);

	if (l->pos == l->n)
		return false;
	*addr = l->addr[l->pos++];
	return true;
}

static struct bt_list bt_list_of(const u64 *addr, u64 n, u8 shift)
{
	return (struct bt_list) {
		.blocks = { bt_list_begin, bt_list_next, shift },
		.addr = addr, .n = n,
	};
}

/* n blocks of 1 << shift bytes, none adjacent, in no particular order */
static u64 *bt_scattered(struct kunit *test, u64 n, u8 shift)
{
	u64 *a = kunit_kcalloc(test, n, sizeof(*a), GFP_KERNEL);
	u64 i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	for (i = 0; i < n; i++)
		a[i] = (1 + 2 * ((i * 7919 + 13) % (4 * n + 1))) << shift;
	return a;
}

static u64 *bt_adjacent(struct kunit *test, u64 n, u8 shift, u64 start)
{
	u64 *a = kunit_kcalloc(test, n, sizeof(*a), GFP_KERNEL);
	u64 i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	for (i = 0; i < n; i++)
		a[i] = start + (i << shift);
	return a;
}

/* ---------------- tables in memory with made-up DMA addresses, a walker -- */

#define BT_ROOT	0x7000000000ULL

struct bt_mem {
	struct kunit *test;
	struct qhca_plan plan;
	struct qhca_buf desc;
	u64 count, size;	/* tables, bytes of each */
	__le64 **table;
	u64 *dma;
};

static void bt_alloc(struct bt_mem *m)
{
	struct kunit *test = m->test;
	u64 i;

	m->table = kunit_kcalloc(test, m->count + 1, sizeof(*m->table),
				 GFP_KERNEL);
	m->dma = kunit_kcalloc(test, m->count + 1, sizeof(*m->dma), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->table);
	KUNIT_ASSERT_NOT_NULL(test, m->dma);
	for (i = 0; i < m->count; i++) {
		m->table[i] = kunit_kzalloc(test, m->size, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, m->table[i]);
		m->dma[i] = BT_ROOT + i * (m->size > 4096 ? 2 * m->size : 8192);
		if (m->plan.form == QHCA_BUF_TREE)
			m->dma[i] &= ~(m->size - 1);
	}
}

static int bt_build(struct kunit *test, struct bt_mem *m, struct bt_list *l,
		    u64 first, u64 len, const struct qhca_layout *want,
		    u64 flat_max)
{
	u64 start[QHCA_BUF_HOPS_MAX] = { 0 };
	int h, err;

	memset(m, 0, sizeof(*m));
	m->test = test;
	err = qhca_plan_make(&m->plan, &l->blocks, first, len, want, flat_max);
	if (err)
		return err;
	if (m->plan.form == QHCA_BUF_TREE) {
		for (h = 0; h < m->plan.hops; h++) {
			start[h] = m->count;
			m->count += m->plan.ntables[h];
		}
		m->size = BIT_ULL(m->plan.table_shift);
	} else if (m->plan.form != QHCA_BUF_DIRECT) {
		m->count = 1;
		m->size = qhca_plan_bytes(&m->plan);
	}
	KUNIT_ASSERT_EQ(test, qhca_plan_bytes(&m->plan), m->count * m->size);
	bt_alloc(m);
	if (m->plan.form == QHCA_BUF_LIST) {
		err = qhca_plan_fill_list(&m->plan, &l->blocks,
					  (struct qhca_buf_seg *)m->table[0]);
	} else if (m->plan.form != QHCA_BUF_DIRECT) {
		for (h = 1; h < m->plan.hops; h++)
			qhca_plan_fill_links(&m->plan, m->table + start[h - 1],
					     m->dma + start[h],
					     m->plan.ntables[h]);
		h = m->plan.hops ? m->plan.hops - 1 : 0;
		err = qhca_plan_fill_pages(&m->plan, &l->blocks,
					   m->table + start[h]);
	}
	if (!err)
		qhca_plan_describe(&m->plan, m->count ? m->dma[0] : 0,
				   &m->desc);
	return err;
}

static void bt_forget(struct bt_mem *m)
{
	u64 i;

	for (i = 0; i < m->count; i++)
		kunit_kfree(m->test, m->table[i]);
	kunit_kfree(m->test, m->table);
	kunit_kfree(m->test, m->dma);
}

static u64 bt_load(const struct bt_mem *m, u64 dma)
{
	u64 i;

	for (i = 0; i < m->count; i++) {
		if (dma >= m->dma[i] && dma < m->dma[i] + m->size)
			return le64_to_cpu(m->table[i][(dma - m->dma[i]) / 8]);
	}
	KUNIT_FAIL(m->test, "read of %#llx, which is not in a table", dma);
	return 0;
}

/* The address in segment after segment. */
static u64 bt_walk_list(const struct bt_mem *m, u64 off)
{
	u64 at = le64_to_cpu(m->desc.addr), addr, len;
	u32 i;

	KUNIT_EXPECT_EQ(m->test, m->desc.first, 0);
	for (i = 0; i < le32_to_cpu(m->desc.entries); i++) {
		addr = bt_load(m, at + i * 16ULL);
		len = bt_load(m, at + i * 16ULL + 8);
		KUNIT_EXPECT_TRUE(m->test, len & QHCA_BUF_SEG_VALID);
		len &= ~QHCA_BUF_SEG_VALID;
		if (off < len)
			return addr + off;
		off -= len;
	}
	KUNIT_FAIL(m->test, "offset past the end of the list");
	return 0;
}

/* The entry of page @page of a TREE. */
static u64 bt_walk_tree(const struct bt_mem *m, u64 page)
{
	const struct qhca_buf *d = &m->desc;
	unsigned int bits = d->table_shift - 3, i;
	u64 e = le64_to_cpu(d->addr) | QHCA_BTE_TABLE, at;

	for (i = 0; i < d->hops; i++) {
		KUNIT_EXPECT_TRUE(m->test, e & QHCA_BTE_TABLE);
		at = e & QHCA_BTE_ADDR_MASK;
		KUNIT_EXPECT_EQ(m->test, at & (BIT_ULL(d->table_shift) - 1), 0);
		e = bt_load(m, at + ((page >> (bits * (d->hops - 1 - i))) &
				     (BIT_ULL(bits) - 1)) * 8);
		KUNIT_EXPECT_TRUE(m->test, e & QHCA_BTE_VALID);
	}
	return e;
}

/* The contract's rules, literally. */
static u64 bt_walk(const struct bt_mem *m, u64 off)
{
	const struct qhca_buf *d = &m->desc;
	u64 pos = off + le32_to_cpu(d->first), e;

	KUNIT_EXPECT_LT(m->test, off, le64_to_cpu(d->len));
	switch (d->form) {
	case QHCA_BUF_DIRECT:
		KUNIT_EXPECT_EQ(m->test, d->hops, 0);
		return le64_to_cpu(d->addr) + pos;
	case QHCA_BUF_LIST:
		return bt_walk_list(m, off);
	case QHCA_BUF_FLAT:
		KUNIT_EXPECT_EQ(m->test, d->hops, 1);
		KUNIT_EXPECT_LT(m->test, pos >> d->page_shift,
				le32_to_cpu(d->entries));
		e = bt_load(m, le64_to_cpu(d->addr) +
			       (pos >> d->page_shift) * 8);
		break;
	default:
		KUNIT_ASSERT_EQ(m->test, d->form, QHCA_BUF_TREE);
		e = bt_walk_tree(m, pos >> d->page_shift);
	}
	KUNIT_EXPECT_TRUE(m->test, e & QHCA_BTE_VALID);
	KUNIT_EXPECT_FALSE(m->test, e & QHCA_BTE_TABLE);
	e &= QHCA_BTE_ADDR_MASK;
	KUNIT_EXPECT_EQ(m->test, e & (BIT_ULL(d->page_shift) - 1), 0);
	return e + (pos & (BIT_ULL(d->page_shift) - 1));
}

/* First and last byte of each block, and some in between. */
static void bt_check(const struct bt_mem *m, const u64 *addr, u8 shift,
		     u64 first, u64 len)
{
	u64 size = BIT_ULL(shift), off = 0, pos, in;

	while (off < len) {
		pos = off + first;
		in = pos & (size - 1);
		KUNIT_EXPECT_EQ(m->test, bt_walk(m, off),
				addr[pos >> shift] + in);
		if (!in && (pos >> shift) % 3 == 0 && off + size / 2 < len)
			off += size / 2;
		else if (in < size - 1)
			off += size - 1 - in;
		else
			off++;
	}
	pos = first + len - 1;
	KUNIT_EXPECT_EQ(m->test, bt_walk(m, len - 1),
			addr[pos >> shift] + (pos & (size - 1)));
}

/* ------------------------------------------------------------- the tests -- */

static const struct {
	struct qhca_layout layout;
	u64 pages;
} bt_wishes[] = {
	{ { QHCA_BUF_LIST, 0, 0, 0, 1 }, 1 },
	{ { QHCA_BUF_LIST, 0, 0, 0, 1 }, 100 },
	{ { QHCA_BUF_FLAT, 1, 0, 0, 1 }, 1 },
	{ { QHCA_BUF_FLAT, 0, 0, 0, 1 }, 513 },
	{ { QHCA_BUF_TREE, 1, 0, 12, 1 }, 512 },
	{ { QHCA_BUF_TREE, 0, 0, 0, 1 }, 1 },
	{ { QHCA_BUF_TREE, 2, 0, 0, 1 }, 1 },
	{ { QHCA_BUF_TREE, 2, 0, 12, 1 }, 1025 },
	{ { QHCA_BUF_TREE, 3, 0, 12, 1 }, 3 },
	{ { QHCA_BUF_TREE, 3, 0, 12, 1 }, 512 * 2 + 7 },
	{ { QHCA_BUF_TREE, 3, 0, 13, 1 }, 5000 },
	{ { QHCA_BUF_TREE, 1, 0, 21, 1 }, 5000 },
	{ { QHCA_BUF_TREE, 0, 0, 14, 1 }, 5000 },
	{ { QHCA_LAYOUT_AUTO, 0, 0, 0, 1 }, 77 },
};

static void bt_test_forms(struct kunit *test)
{
	static const u8 shifts[] = { 12, 13, 16, 21, 31 };
	unsigned int w, s, f;

	for (w = 0; w < ARRAY_SIZE(bt_wishes); w++) {
		for (s = 0; s < ARRAY_SIZE(shifts); s++) {
			u64 n = bt_wishes[w].pages, size = BIT_ULL(shifts[s]);
			u64 *addr = bt_scattered(test, n, shifts[s]);
			u64 firsts[] = { 0, 1, size - 1 };

			for (f = 0; f < ARRAY_SIZE(firsts); f++) {
				struct bt_list l = bt_list_of(addr, n,
							      shifts[s]);
				u64 len = n * size - firsts[f];
				struct bt_mem m;

				KUNIT_ASSERT_EQ(test, bt_build(test, &m, &l,
							       firsts[f], len,
							       &bt_wishes[w].layout,
							       1 << 20), 0);
				if (bt_wishes[w].layout.hops)
					KUNIT_EXPECT_EQ(test, m.desc.hops,
							bt_wishes[w].layout.hops);
				bt_check(&m, addr, shifts[s], firsts[f], len);
				bt_forget(&m);
			}
			kunit_kfree(test, addr);
		}
	}
}

static void bt_test_auto_choice(struct kunit *test)
{
	u64 *adj = bt_adjacent(test, 64, 12, 0x10000);
	u64 *sc = bt_scattered(test, 64, 12);
	struct bt_list l = bt_list_of(adj, 64, 12);
	u64 len = 64 * 4096;
	struct bt_mem m;

	KUNIT_ASSERT_EQ(test, bt_build(test, &m, &l, 5, len - 5, NULL, 4096), 0);
	KUNIT_EXPECT_EQ(test, m.desc.form, QHCA_BUF_DIRECT);
	bt_check(&m, adj, 12, 5, len - 5);

	l = bt_list_of(sc, 64, 12);
	KUNIT_ASSERT_EQ(test, bt_build(test, &m, &l, 0, len, NULL, 64 * 8), 0);
	KUNIT_EXPECT_EQ(test, m.desc.form, QHCA_BUF_FLAT);

	KUNIT_ASSERT_EQ(test, bt_build(test, &m, &l, 0, len, NULL, 63 * 8), 0);
	KUNIT_EXPECT_EQ(test, m.desc.form, QHCA_BUF_TREE);
	KUNIT_EXPECT_EQ(test, m.desc.hops, 1);
	bt_check(&m, sc, 12, 0, len);
}

/* As few hops as possible, and tables no larger than needed for that. */
static void bt_test_tree_choice(struct kunit *test)
{
	static const struct {
		u64 pages;
		u8 hops, table_shift;
	} t[] = {
		{ 1, 1, 12 }, { 512, 1, 12 }, { 513, 2, 12 },
		{ BIT_ULL(18), 2, 12 }, { BIT_ULL(18) + 1, 2, 13 },
		{ BIT_ULL(22), 2, 14 }, { BIT_ULL(36), 2, 21 },
		{ BIT_ULL(36) + 1, 3, 16 }, { BIT_ULL(54), 3, 21 },
	};
	struct qhca_plan p;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		memset(&p, 0, sizeof(p));
		p.npages = t[i].pages;
		KUNIT_EXPECT_EQ(test, qhca_plan_tree(&p, NULL), 0);
		KUNIT_EXPECT_EQ(test, p.hops, t[i].hops);
		KUNIT_EXPECT_EQ(test, p.table_shift, t[i].table_shift);
		KUNIT_EXPECT_EQ(test, p.ntables[0], 1);
	}
	p.npages = BIT_ULL(54) + 1;
	KUNIT_EXPECT_EQ(test, qhca_plan_tree(&p, NULL), -EINVAL);
}

static void bt_test_list_merges(struct kunit *test)
{
	u64 addr[] = { 0x1000, 0x2000, 0x9000, 0xa000, 0xb000, 0x5000 };
	struct qhca_layout want = { .form = QHCA_BUF_LIST, .scope = 1 };
	struct bt_list l = bt_list_of(addr, 6, 12);
	u64 len = 6 * 4096 - 0x10;
	struct bt_mem m;

	KUNIT_ASSERT_EQ(test, bt_build(test, &m, &l, 0x10, len, &want, 0), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(m.desc.entries), 3);
	KUNIT_EXPECT_EQ(test, bt_load(&m, BT_ROOT), 0x1010);
	KUNIT_EXPECT_EQ(test, bt_load(&m, BT_ROOT + 8),
			QHCA_BUF_SEG_VALID | 0x1ff0);
	bt_check(&m, addr, 12, 0x10, len);

	/* each segment of a queue is a whole number of pages */
	KUNIT_ASSERT_EQ(test, bt_build(test, &m, &l, 0, 64, &want, 0), 0);
	KUNIT_EXPECT_EQ(test, bt_load(&m, BT_ROOT + 8),
			QHCA_BUF_SEG_VALID | 0x1000);
}

struct bt_demand {
	u8 form, hops, page_shift, table_shift;
	u64 n, first, len;
	int result;
};

static void bt_test_refusals(struct kunit *test)
{
	/* each differs from the first one in what is refused */
	static const struct bt_demand demands[] = {
		{ QHCA_BUF_FLAT, 1, 12, 0, 4, 0, 16384, 0 },
		/* fragments are not one block */
		{ QHCA_BUF_DIRECT, 0, 0, 0, 4, 0, 16384, -EINVAL },
		/* another page size than that of the blocks */
		{ QHCA_BUF_FLAT, 1, 13, 0, 4, 0, 16384, -EINVAL },
		/*
		 * too few blocks, zero length, first outside page 0, overflow
		 */
		{ QHCA_BUF_FLAT, 1, 12, 0, 4, 0, 16385, -EINVAL },
		{ QHCA_BUF_FLAT, 1, 12, 0, 4, 1, 16384, -EINVAL },
		{ QHCA_BUF_FLAT, 1, 12, 0, 4, 0, 0, -EINVAL },
		{ QHCA_BUF_FLAT, 1, 12, 0, 4, 4096, 4096, -EINVAL },
		{ QHCA_BUF_FLAT, 1, 12, 0, 4, 4095, U64_MAX, -EINVAL },
		/* more than the hops can address */
		{ QHCA_BUF_TREE, 1, 0, 12, 512, 0, 512 * 4096, 0 },
		{ QHCA_BUF_TREE, 1, 0, 12, 513, 0, 513 * 4096, -EINVAL },
		/* more segments than a list may have */
		{ QHCA_BUF_LIST, 0, 0, 0, 4096, 0, 4096 * 4096, 0 },
		{ QHCA_BUF_LIST, 0, 0, 0, 4097, 0, 4097 * 4096, -EINVAL },
	};
	static const u64 crooked[] = { 0x1800 };
	u64 *sc = bt_scattered(test, 5000, 12);
	struct bt_list l;
	struct qhca_plan p;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(demands); i++) {
		const struct bt_demand *d = &demands[i];
		struct qhca_layout want = {
			d->form, d->hops, d->page_shift, d->table_shift, 1,
		};

		l = bt_list_of(sc, d->n, 12);
		KUNIT_EXPECT_EQ_MSG(test, qhca_plan_make(&p, &l.blocks,
							 d->first, d->len,
							 &want, 1 << 20),
				    d->result, "demand %u", i);
	}
	/* a block that is not aligned to its size */
	l = bt_list_of(crooked, 1, 12);
	KUNIT_EXPECT_EQ(test, qhca_plan_make(&p, &l.blocks, 0, 64, NULL, 4096),
			-EINVAL);
}

static void bt_test_layout_text(struct kunit *test)
{
	static const char * const bad[] = {
		"tre", "tree hops=4", "direct hops=1", "flat hops=2",
		"list hops=1", "tree page_shift=11", "flat page_shift=32",
		"tree table_shift=22", "tree table_shift=11",
		"flat table_shift=12", "auto hops=1", "tree hops=",
		"tree hops=1x", "tree hops=256", "hops", "scope=none",
		"tree scope=", "tree  bogus=1",
	};
	static const char good[] =
		" tree\thops=2 page_shift=13 table_shift=14 scope=all\n";
	struct qhca_layout l, again;
	char text[96];
	unsigned int i;

	KUNIT_ASSERT_EQ(test, qhca_layout_parse("", &l), 0);
	KUNIT_EXPECT_EQ(test, l.form, QHCA_LAYOUT_AUTO);
	KUNIT_EXPECT_EQ(test, l.scope, QHCA_SCOPE_USER);
	KUNIT_ASSERT_EQ(test, qhca_layout_parse(good, &l), 0);
	KUNIT_EXPECT_EQ(test, l.form, QHCA_BUF_TREE);
	KUNIT_EXPECT_EQ(test, l.hops, 2);
	KUNIT_EXPECT_EQ(test, l.page_shift, 13);
	KUNIT_EXPECT_EQ(test, l.table_shift, 14);
	KUNIT_EXPECT_EQ(test, l.scope, QHCA_SCOPE_USER | QHCA_SCOPE_KERNEL);
	KUNIT_EXPECT_LT(test, qhca_layout_print(&l, text, sizeof(text)),
			(int)sizeof(text));
	KUNIT_ASSERT_EQ(test, qhca_layout_parse(text, &again), 0);
	KUNIT_EXPECT_MEMEQ(test, &l, &again, sizeof(l));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, qhca_layout_parse(bad[i], &again),
				    -EINVAL, "\"%s\" was taken", bad[i]);
	/* a rejected text changes nothing */
	KUNIT_EXPECT_MEMEQ(test, &l, &again, sizeof(l));
}

static struct kunit_case bt_cases[] = {
	KUNIT_CASE(bt_test_forms),
	KUNIT_CASE(bt_test_auto_choice),
	KUNIT_CASE(bt_test_tree_choice),
	KUNIT_CASE(bt_test_list_merges),
	KUNIT_CASE(bt_test_refusals),
	KUNIT_CASE(bt_test_layout_text),
	{}
};

static struct kunit_suite bt_suite = {
	.name = "qhca_buf_table",
	.test_cases = bt_cases,
};

kunit_test_suite(bt_suite);

MODULE_DESCRIPTION("KUnit tests of the qhca drivers");
MODULE_LICENSE("GPL");

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device for tests of files that issue admin commands: it keeps the objects
 * that they create, insists on the order in which they may be created and
 * destroyed, and lets any command or allocation fail. Include this before the
 * driver's headers and what is tested.
 */
#ifndef QHCA_FAKE_DEVICE_H
#define QHCA_FAKE_DEVICE_H

#include <kunit/test.h>
#include <linux/slab.h>

/* From now on allocation @nth fails, counted from 1; 0: none. */
void qhca_fake_fail_alloc(u32 nth);
void *qhca_fake_kzalloc(size_t size, gfp_t gfp);
void *qhca_fake_kmemdup(const void *from, size_t size, gfp_t gfp);

/* What is included from here on calls these. */
#define qhca_aq_exec		qhca_fake_aq_exec
#define qhca_aq_create_arg	qhca_fake_aq_create_arg
#define qhca_aq_destroy_sure	qhca_fake_aq_destroy_sure
#undef kzalloc
#define kzalloc			qhca_fake_kzalloc
#undef kmemdup
#define kmemdup			qhca_fake_kmemdup

#include "qhca_core.h"

#define QHCA_FAKE_OBJS		96
#define QHCA_FAKE_STATE		512	/* bytes of a command's input */

enum qhca_fake_kind {
	QHCA_FAKE_NONE,
	QHCA_FAKE_PD,
	QHCA_FAKE_RQT,
	QHCA_FAKE_QP,
	QHCA_FAKE_FLOW,
	QHCA_FAKE_SHAPER,
	QHCA_FAKE_SQ,
	QHCA_FAKE_KINDS
};

/**
 * struct qhca_fake_obj - an object of the device
 * @kind: QHCA_FAKE_NONE: this entry is free
 * @num: its number; none is used twice
 * @uses: objects that must exist as long as it does, or 0; which kind they are
 *	depends on its own
 * @len: bytes at @state
 * @state: what it was created with, and then modified to
 */
struct qhca_fake_obj {
	enum qhca_fake_kind kind;
	u32 num;
	u32 uses[2];
	u32 len;
	u8 state[QHCA_FAKE_STATE] __aligned(8);
};

/**
 * struct qhca_fake - the device
 * @dev: as the driver knows it
 * @commands: how many it has received
 * @fail_at: the command that fails, counted from 1, or 0
 * @fail_err: how; -EIO is the death of the device: all later ones fail, too
 * @wrong: commands that a real device would have refused: a mistake
 * @last: the last number of an object
 * @obj: the objects
 */
struct qhca_fake {
	struct qhca_dev dev;
	u32 commands;
	u32 fail_at;
	int fail_err;
	u32 wrong;
	u32 last;
	struct qhca_fake_obj obj[QHCA_FAKE_OBJS];
};

struct qhca_fake *qhca_fake_new(struct kunit *test);
void qhca_fake_fail(struct qhca_fake *fake, u32 nth, int err);
u32 qhca_fake_count(const struct qhca_fake *fake, enum qhca_fake_kind kind);
struct qhca_fake_obj *qhca_fake_find(struct qhca_fake *fake,
				     enum qhca_fake_kind kind, u32 num);
struct qhca_fake_obj *qhca_fake_add(struct qhca_fake *fake,
				    enum qhca_fake_kind kind, u32 num);

#endif /* QHCA_FAKE_DEVICE_H */

// SPDX-License-Identifier: GPL-2.0
/* A device for tests: see fake_device.h. */
#include <kunit/test.h>
#include <linux/slab.h>

/* Before fake_device.h, which gives these names to the ones below. */
static void *fake_real_kzalloc(size_t size, gfp_t gfp)
{
	return kzalloc(size, gfp);
}

static void *fake_real_kmemdup(const void *from, size_t size, gfp_t gfp)
{
	return kmemdup(from, size, gfp);
}

#include "fake_device.h"

/* As the tests run one after the other, there is only one. */
static u32 fake_fail_alloc;

static const struct {
	u8 create, modify, destroy;
} fake_commands[QHCA_FAKE_KINDS] = {
	[QHCA_FAKE_PD] = { QHCA_CMD_ALLOC_PD, 0, QHCA_CMD_FREE_PD },
	[QHCA_FAKE_RQT] = { QHCA_CMD_CREATE_RQT, 0, QHCA_CMD_DESTROY_RQT },
	[QHCA_FAKE_QP] = { QHCA_CMD_CREATE_QP, QHCA_CMD_MODIFY_QP,
			   QHCA_CMD_DESTROY_QP },
	[QHCA_FAKE_FLOW] = { QHCA_CMD_CREATE_FLOW, 0, QHCA_CMD_DESTROY_FLOW },
	[QHCA_FAKE_SHAPER] = { QHCA_CMD_CREATE_SHAPER, QHCA_CMD_MODIFY_SHAPER,
			       QHCA_CMD_DESTROY_SHAPER },
	[QHCA_FAKE_SQ] = { 0, QHCA_CMD_MODIFY_ETH_SQ, 0 },
};

/* The kinds of what an object's @uses names. */
static const enum qhca_fake_kind fake_uses[QHCA_FAKE_KINDS][2] = {
	[QHCA_FAKE_QP] = { QHCA_FAKE_RQT, QHCA_FAKE_PD },
	[QHCA_FAKE_FLOW] = { QHCA_FAKE_QP },
	[QHCA_FAKE_SHAPER] = { QHCA_FAKE_SHAPER },
	[QHCA_FAKE_SQ] = { QHCA_FAKE_SHAPER },
};

static bool fake_alloc_fails(void)
{
	return fake_fail_alloc && !--fake_fail_alloc;
}

void qhca_fake_fail_alloc(u32 nth)
{
	fake_fail_alloc = nth;
}

void *qhca_fake_kzalloc(size_t size, gfp_t gfp)
{
	return fake_alloc_fails() ? NULL : fake_real_kzalloc(size, gfp);
}

void *qhca_fake_kmemdup(const void *from, size_t size, gfp_t gfp)
{
	return fake_alloc_fails() ? NULL : fake_real_kmemdup(from, size, gfp);
}

struct qhca_fake *qhca_fake_new(struct kunit *test)
{
	struct qhca_fake *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->dev.caps.features = ~0ULL;
	qhca_fake_fail_alloc(0);
	return fake;
}

/* From now on command @nth fails with @err, counted from 1; 0: none. */
void qhca_fake_fail(struct qhca_fake *fake, u32 nth, int err)
{
	fake->commands = 0;
	fake->fail_at = nth;
	fake->fail_err = err;
}

u32 qhca_fake_count(const struct qhca_fake *fake, enum qhca_fake_kind kind)
{
	u32 i, n = 0;

	for (i = 0; i < QHCA_FAKE_OBJS; i++)
		n += fake->obj[i].kind == kind;
	return n;
}

struct qhca_fake_obj *qhca_fake_find(struct qhca_fake *fake,
				     enum qhca_fake_kind kind, u32 num)
{
	u32 i;

	for (i = 0; i < QHCA_FAKE_OBJS; i++) {
		if (fake->obj[i].kind == kind && fake->obj[i].num == num)
			return &fake->obj[i];
	}
	return NULL;
}

/* A new object with number @num; NULL if there are too many. */
struct qhca_fake_obj *qhca_fake_add(struct qhca_fake *fake,
				    enum qhca_fake_kind kind, u32 num)
{
	u32 i;

	for (i = 0; i < QHCA_FAKE_OBJS; i++) {
		struct qhca_fake_obj *obj = &fake->obj[i];

		if (obj->kind)
			continue;
		memset(obj, 0, sizeof(*obj));
		obj->kind = kind;
		obj->num = num;
		return obj;
	}
	return NULL;
}

/* Which objects does the input of this command name? */
static void fake_named(enum qhca_fake_kind kind, const void *in, u32 uses[2])
{
	uses[0] = 0;
	uses[1] = 0;
	switch (kind) {
	case QHCA_FAKE_QP: {
		const struct qhca_qpc *qpc = in;

		uses[0] = le32_to_cpu(qpc->rqtn);
		uses[1] = le32_to_cpu(qpc->pd);
		break;
	}
	case QHCA_FAKE_FLOW:
		uses[0] = le32_to_cpu(((const struct qhca_flow *)in)->qpn);
		break;
	case QHCA_FAKE_SHAPER:
		uses[0] = le32_to_cpu(((const struct qhca_shaperc *)in)->parent);
		break;
	case QHCA_FAKE_SQ:
		uses[0] = le32_to_cpu(((const struct qhca_eth_qc *)in)->shaper);
		break;
	default:
		break;
	}
}

static bool fake_exists(struct qhca_fake *fake, enum qhca_fake_kind kind,
			const u32 uses[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		if (uses[i] && !qhca_fake_find(fake, fake_uses[kind][i], uses[i]))
			return false;
	}
	return true;
}

static bool fake_used(const struct qhca_fake *fake,
		      const struct qhca_fake_obj *obj)
{
	u32 i;
	int k;

	for (i = 0; i < QHCA_FAKE_OBJS; i++) {
		const struct qhca_fake_obj *user = &fake->obj[i];

		for (k = 0; user->kind && k < 2; k++) {
			if (fake_uses[user->kind][k] == obj->kind &&
			    user->uses[k] == obj->num)
				return true;
		}
	}
	return false;
}

static void fake_take(struct qhca_fake_obj *obj, const struct qhca_aq_req *req)
{
	u32 uses[2];
	int i;

	obj->len = min_t(u32, req->in_len, QHCA_FAKE_STATE);
	if (obj->len)
		memcpy(obj->state, req->in, obj->len);
	if (!req->in)
		return;
	fake_named(obj->kind, req->in, uses);
	for (i = 0; i < 2; i++) {
		/* a QP keeps what MODIFY_QP does not name */
		if (uses[i] || obj->kind != QHCA_FAKE_QP)
			obj->uses[i] = uses[i];
	}
}

static int fake_create(struct qhca_fake *fake, enum qhca_fake_kind kind,
		       struct qhca_aq_req *req)
{
	struct qhca_fake_obj *obj = qhca_fake_add(fake, kind, fake->last + 1);

	if (!obj)
		return -ENOMEM;
	fake_take(obj, req);
	req->obj = ++fake->last;
	return 0;
}

static int fake_run(struct qhca_fake *fake, struct qhca_aq_req *req)
{
	struct qhca_fake_obj *obj;
	u32 uses[2] = { 0 };
	int kind;

	for (kind = 1; kind < QHCA_FAKE_KINDS; kind++) {
		bool create = fake_commands[kind].create &&
			      req->opcode == fake_commands[kind].create;
		bool modify = fake_commands[kind].modify &&
			      req->opcode == fake_commands[kind].modify;

		if (create || modify) {
			if (req->in)
				fake_named(kind, req->in, uses);
			if (!fake_exists(fake, kind, uses))
				return -ENOENT;
		}
		if (create)
			return fake_create(fake, kind, req);
		obj = qhca_fake_find(fake, kind, req->obj);
		if (modify) {
			if (!obj)
				return -ENOENT;
			fake_take(obj, req);
			return 0;
		}
		if (!fake_commands[kind].destroy ||
		    req->opcode != fake_commands[kind].destroy)
			continue;
		if (!obj)
			return -ENOENT;
		if (fake_used(fake, obj))
			return -EBUSY;
		memset(obj, 0, sizeof(*obj));
		return 0;
	}
	return -EOPNOTSUPP;
}

int qhca_fake_aq_exec(struct qhca_dev *dev, struct qhca_aq_req *req)
{
	struct qhca_fake *fake = container_of(dev, struct qhca_fake, dev);
	int err;

	fake->commands++;
	if (fake->fail_at && fake->fail_err == -EIO &&
	    fake->commands >= fake->fail_at) {
		/* dead: it was reset, and forgot everything */
		memset(fake->obj, 0, sizeof(fake->obj));
		return -EIO;
	}
	if (fake->fail_at && fake->commands == fake->fail_at)
		return fake->fail_err;
	err = fake_run(fake, req);
	fake->wrong += !!err;
	return err;
}

int qhca_fake_aq_create_arg(struct qhca_dev *dev, u8 opcode, u64 arg,
			    const void *in, u32 in_len, u32 *obj)
{
	struct qhca_aq_req req = {
		.opcode = opcode, .arg = arg, .in = in, .in_len = in_len,
	};
	int err = qhca_fake_aq_exec(dev, &req);

	if (!err)
		*obj = req.obj;
	return err;
}

/* One that is refused kills the real device, and this one's objects. */
void qhca_fake_aq_destroy_sure(struct qhca_dev *dev, u8 opcode, u32 num)
{
	struct qhca_fake *fake = container_of(dev, struct qhca_fake, dev);
	struct qhca_aq_req req = { .opcode = opcode, .obj = num };

	if (!qhca_fake_aq_exec(dev, &req))
		return;
	qhca_fake_fail(fake, 1, -EIO);
	memset(fake->obj, 0, sizeof(fake->obj));
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the device's clock, which stamps CQEs, together with the wall clock.
 * Without the kernel, applications cannot read both at the same time.
 */
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/timekeeping.h>

#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

#define CLOCK_TRIES	3	/* the pair read fastest counts */

/*
 * Read both clocks at the same moment. The wall clock is taken at the middle of
 * the register read, so its error is at most half of the duration of the read.
 */
static int clock_read_both(struct qhca_dev *qdev, struct qhca_clocks *clocks)
{
	u64 before, after, device, best = U64_MAX;
	unsigned long irq;
	int i;

	for (i = 0; i < CLOCK_TRIES; i++) {
		local_irq_save(irq);
		before = ktime_get_real_ns();
		device = readq(qdev->regs + QHCA_REG_CLOCK);
		after = ktime_get_real_ns();
		local_irq_restore(irq);
		/* reads return all ones if the device is gone */
		if (device == U64_MAX)
			return -EIO;
		if (after - before < best) {
			best = after - before;
			clocks->device = device;
			clocks->real = before + best / 2;
		}
	}
	return 0;
}

static int UVERBS_HANDLER(QHCA_METHOD_DEVICE_CLOCKS)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuc = ib_uverbs_get_ucontext(attrs);
	struct qhca_clocks clocks = {};
	int err;

	if (IS_ERR(ibuc))
		return PTR_ERR(ibuc);
	err = clock_read_both(to_qdev(ibuc->device)->qdev, &clocks);
	if (err)
		return err;
	return uverbs_copy_to_struct_or_zero(attrs,
					     QHCA_ATTR_DEVICE_CLOCKS_RESP,
					     &clocks, sizeof(clocks));
}

DECLARE_UVERBS_NAMED_METHOD(QHCA_METHOD_DEVICE_CLOCKS,
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_DEVICE_CLOCKS_RESP,
						UVERBS_ATTR_STRUCT(struct qhca_clocks, real),
						UA_MANDATORY));

ADD_UVERBS_METHODS(qhca_ib_clock, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(QHCA_METHOD_DEVICE_CLOCKS));

const struct uapi_definition qhca_ib_clock_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_ib_clock),
	{}
};

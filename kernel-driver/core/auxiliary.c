// SPDX-License-Identifier: GPL-2.0
/*
 * The auxiliary device that qhca_ib.ko binds to; exists while the adapter
 * works.
 */
#include <linux/idr.h>
#include <linux/slab.h>

#include "core.h"

/* A PCI address has more bits than the ID of an auxiliary device. */
static DEFINE_IDA(adev_ids);

static void adev_release(struct device *d)
{
	struct qhca_adev *a = container_of(d, struct qhca_adev, adev.dev);

	ida_free(&adev_ids, a->adev.id);
	kfree(a);
}

int qhca_adev_add(struct qhca_core *core)
{
	struct qhca_adev *a;
	int id, err;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	id = ida_alloc(&adev_ids, GFP_KERNEL);
	if (id < 0) {
		kfree(a);
		return id;
	}
	a->dev = &core->dev;
	a->adev.name = QHCA_ADEV_NAME_IB;
	a->adev.id = id;
	a->adev.dev.parent = qhca_dma_dev(&core->dev);
	a->adev.dev.release = adev_release;
	err = auxiliary_device_init(&a->adev);
	if (err) {
		ida_free(&adev_ids, id);
		kfree(a);
		return err;
	}
	err = auxiliary_device_add(&a->adev);
	if (err) {
		auxiliary_device_uninit(&a->adev);
		return err;
	}
	core->adev = a;
	return 0;
}

void qhca_adev_del(struct qhca_core *core)
{
	struct qhca_adev *a = core->adev;

	if (!a)
		return;
	core->adev = NULL;
	auxiliary_device_delete(&a->adev);
	auxiliary_device_uninit(&a->adev);
}

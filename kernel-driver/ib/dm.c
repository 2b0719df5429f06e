// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: whole pages of BAR 4, which applications can map and register.
 * A page has one owner at a time and is cleared before it gets one; it is free
 * again when both the object and the last mapping are gone.
 */
#include <linux/bitmap.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

/* struct ib_dm has 32 bits for the length */
u64 qhca_ib_max_dm_size(const struct qhca_ib_dev *dev)
{
	return min_t(u64, dev->qdev->caps.dm_size, SZ_2G);
}

/* Take @npages in a row, the first a multiple of @align, a power of two. */
static int dm_take_pages(struct qhca_ib_dev *dev, unsigned long npages,
			 unsigned long align, unsigned long *first)
{
	unsigned long total = dev->qdev->caps.dm_size >> PAGE_SHIFT;
	int err = -ENOMEM;

	mutex_lock(&dev->dm_lock);
	*first = bitmap_find_next_zero_area(dev->dm_pages, total, 0, npages,
					    align - 1);
	if (*first < total) {
		bitmap_set(dev->dm_pages, *first, npages);
		err = 0;
	}
	mutex_unlock(&dev->dm_lock);
	return err;
}

static void dm_give_pages(struct qhca_ib_dev *dev, unsigned long first,
			  unsigned long npages)
{
	mutex_lock(&dev->dm_lock);
	bitmap_clear(dev->dm_pages, first, npages);
	mutex_unlock(&dev->dm_lock);
}

/* Do not leak data of the previous owner. */
static int dm_clear(struct qhca_ib_dev *dev, phys_addr_t phys, size_t len)
{
	void __iomem *p;

	if (qhca_dev_dead(dev->qdev))
		return -EIO;
	p = ioremap_wc(phys, len);
	if (!p)
		return -ENOMEM;
	memset_io(p, 0, len);
	iounmap(p);
	return 0;
}

/**
 * qhca_ib_alloc_dm - ib_device_ops.alloc_dm
 * @ibdev: device
 * @ibuc: context, which can map the memory
 * @attr: length, bytes; alignment, log2 of bytes
 * @attrs: out: QHCA_ATTR_ALLOC_DM_RESP_MMAP_KEY and _MMAP_SIZE
 *
 * Return: the memory, cleared; or -EINVAL (length 0, alignment greater than all
 * memory), -ENOMEM (not enough free memory), -EOPNOTSUPP (flags), -EIO.
 */
struct ib_dm *qhca_ib_alloc_dm(struct ib_device *ibdev,
			       struct ib_ucontext *ibuc,
			       struct ib_dm_alloc_attr *attr,
			       struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qdev(ibdev);
	u64 key, size, max = qhca_ib_max_dm_size(dev);
	struct qhca_ib_mmap *map;
	struct qhca_ib_dm *dm;
	int err;

	if (attr->flags)
		return ERR_PTR(-EOPNOTSUPP);
	if (!attr->length || attr->alignment >= 64 ||
	    BIT_ULL(attr->alignment) > max)
		return ERR_PTR(-EINVAL);
	if (attr->length > max)
		return ERR_PTR(-ENOMEM);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL);
	map = kzalloc(sizeof(*map), GFP_KERNEL);
	err = -ENOMEM;
	if (!dm || !map)
		goto err_free;

	map->dev = dev;
	map->kind = QHCA_IB_MMAP_DM;
	map->npages = PFN_UP(attr->length);
	err = dm_take_pages(dev, map->npages,
			    max_t(u64, BIT_ULL(attr->alignment) >> PAGE_SHIFT,
				  1), &map->first_page);
	if (err)
		goto err_free;
	dm->map = map;
	dm->offset = (u64)map->first_page << PAGE_SHIFT;
	size = (u64)map->npages << PAGE_SHIFT;
	map->phys = dev->qdev->dm_phys + dm->offset;
	err = dm_clear(dev, map->phys, size);
	if (err)
		goto err_pages;
	err = rdma_user_mmap_entry_insert(ibuc, &map->entry, size);
	if (err)
		goto err_pages;

	key = rdma_user_mmap_get_offset(&map->entry);
	err = uverbs_copy_to(attrs, QHCA_ATTR_ALLOC_DM_RESP_MMAP_KEY, &key,
			     sizeof(key));
	if (!err)
		err = uverbs_copy_to(attrs, QHCA_ATTR_ALLOC_DM_RESP_MMAP_SIZE,
				     &size, sizeof(size));
	if (!err)
		return &dm->ibdm;

	rdma_user_mmap_entry_remove(&map->entry);
	kfree(dm);
	return ERR_PTR(err);

err_pages:
	dm_give_pages(dev, map->first_page, map->npages);
err_free:
	kfree(map);
	kfree(dm);
	return ERR_PTR(err);
}

/* ib_device_ops.dealloc_dm; no MR of it is left, mappings may be */
int qhca_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dm *dm = to_qdm(ibdm);

	rdma_user_mmap_entry_remove(&dm->map->entry);
	kfree(dm);
	return 0;
}

/* No object and no mapping is left. */
void qhca_ib_dm_mmap_free(struct qhca_ib_mmap *map)
{
	dm_give_pages(map->dev, map->first_page, map->npages);
}

/* How an imported context maps the memory. */
static int UVERBS_HANDLER(QHCA_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs,
						 QHCA_ATTR_DM_QUERY_HANDLE);
	struct qhca_ib_mmap *map;
	u64 key, size, len;
	int err;

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	map = to_qdm(ibdm)->map;
	key = rdma_user_mmap_get_offset(&map->entry);
	size = (u64)map->npages << PAGE_SHIFT;
	len = ibdm->length;
	err = uverbs_copy_to(attrs, QHCA_ATTR_DM_QUERY_RESP_MMAP_KEY, &key,
			     sizeof(key));
	if (!err)
		err = uverbs_copy_to(attrs, QHCA_ATTR_DM_QUERY_RESP_MMAP_SIZE,
				     &size, sizeof(size));
	if (!err)
		err = uverbs_copy_to(attrs, QHCA_ATTR_DM_QUERY_RESP_LENGTH,
				     &len, sizeof(len));
	return err;
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(qhca_ib_dm_alloc,
			     UVERBS_OBJECT_DM,
			     UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(QHCA_ATTR_ALLOC_DM_RESP_MMAP_KEY,
						 UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
			     UVERBS_ATTR_PTR_OUT(QHCA_ATTR_ALLOC_DM_RESP_MMAP_SIZE,
						 UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(QHCA_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(QHCA_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_DM_QUERY_RESP_MMAP_KEY,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_DM_QUERY_RESP_MMAP_SIZE,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_DM_QUERY_RESP_LENGTH,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DM,
			      &UVERBS_METHOD(QHCA_METHOD_DM_QUERY));

const struct uapi_definition qhca_ib_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &qhca_ib_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM,
				&UVERBS_OBJECT(UVERBS_OBJECT_DM)),
	{}
};

/* Set up the allocator; it has no pages without QHCA_FEAT_DM. */
int qhca_ib_dm_init(struct qhca_ib_dev *dev)
{
	unsigned long total = dev->qdev->caps.dm_size >> PAGE_SHIFT;

	mutex_init(&dev->dm_lock);
	if (!total)
		return 0;
	dev->dm_pages = kvcalloc(BITS_TO_LONGS(total), sizeof(long),
				 GFP_KERNEL);
	return dev->dm_pages ? 0 : -ENOMEM;
}

void qhca_ib_dm_exit(struct qhca_ib_dev *dev)
{
	unsigned long total = dev->qdev->caps.dm_size >> PAGE_SHIFT;

	WARN_ON(dev->dm_pages && !bitmap_empty(dev->dm_pages, total));
	kvfree(dev->dm_pages);
	mutex_destroy(&dev->dm_lock);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * User contexts. Each maps its own doorbell page (UAR); the device ignores
 * doorbells of one context for the queues of another. Each also maps a status
 * page, read-only: its own, as the core can take a working device away from the
 * present contexts and give it to later ones, when it moves to another network
 * namespace. Also has the helpers that all objects use to read an application's
 * request and to answer it.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

/* Give the context a doorbell page and an offset to mmap() it. */
static int ucontext_add_doorbell(struct qhca_ib_ucontext *uc,
				 struct qhca_ib_dev *dev)
{
	struct qhca_dev *qdev = dev->qdev;
	struct qhca_ib_mmap *db;
	int err;

	db = kzalloc(sizeof(*db), GFP_KERNEL);
	if (!db)
		return -ENOMEM;
	err = qhca_uar_alloc(qdev, &db->uar, &db->phys);
	if (err)
		goto err_free;
	db->dev = dev;
	db->kind = QHCA_IB_MMAP_DB;
	err = rdma_user_mmap_entry_insert(&uc->ibuc, &db->entry,
					  BIT(qdev->db_shift));
	if (err)
		goto err_uar;
	uc->db = db;
	uc->uar = db->uar;
	return 0;

err_uar:
	qhca_uar_free(qdev, db->uar);
err_free:
	kfree(db);
	return err;
}

static void ucontext_status_free(struct qhca_ib_mmap *map)
{
	mutex_lock(&map->dev->status_lock);
	list_del(&map->status_entry);
	mutex_unlock(&map->dev->status_lock);
	/* processes that have it mapped keep it */
	free_page((unsigned long)map->status);
}

/* Give the context a status page and an offset to mmap() it. */
static int ucontext_add_status(struct qhca_ib_ucontext *uc,
			       struct qhca_ib_dev *dev)
{
	struct qhca_ib_mmap *map;
	int err;

	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	map->dev = dev;
	map->kind = QHCA_IB_MMAP_STATUS;
	map->status = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!map->status) {
		err = -ENOMEM;
		goto err_free;
	}
	mutex_lock(&dev->status_lock);
	map->status->works = !dev->gone;
	list_add_tail(&map->status_entry, &dev->status_maps);
	mutex_unlock(&dev->status_lock);
	err = rdma_user_mmap_entry_insert(&uc->ibuc, &map->entry, PAGE_SIZE);
	if (err)
		goto err_status;
	uc->status = map;
	return 0;

err_status:
	ucontext_status_free(map);
err_free:
	kfree(map);
	return err;
}

/* What the provider must know about its context. */
static void ucontext_fill_resp(struct qhca_ib_ucontext *uc,
			       struct qhca_alloc_ucontext_resp *resp)
{
	struct qhca_dev *qdev = to_qdev(uc->ibuc.device)->qdev;

	memset(resp, 0, sizeof(*resp));
	resp->comp_mask = QHCA_UCONTEXT_RESP_STATUS |
			  QHCA_UCONTEXT_RESP_SQ_RECORD;
	resp->db_mmap_key = rdma_user_mmap_get_offset(&uc->db->entry);
	resp->db_mmap_size = BIT(qdev->db_shift);
	resp->max_qp_wr = qdev->caps.max_qp_wr;
	resp->max_cqe = qdev->caps.max_cqe;
	resp->max_srq_wr = qdev->caps.max_srq_wr;
	resp->max_sge = qdev->caps.max_sge;
	resp->max_inline = qdev->caps.max_inline;
	resp->features = qdev->caps.features;
	resp->status_mmap_key = rdma_user_mmap_get_offset(&uc->status->entry);
	resp->status_mmap_size = PAGE_SIZE;
}

/* ib_device_ops.alloc_ucontext */
int qhca_ib_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct qhca_ib_ucontext *uc = to_quc(ibuc);
	struct qhca_alloc_ucontext_resp resp;
	struct qhca_alloc_ucontext_req req;
	int err;

	err = qhca_ib_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask)
		return -EOPNOTSUPP;

	mutex_init(&uc->dbrec_lock);
	INIT_LIST_HEAD(&uc->dbrec_pages);
	err = ucontext_add_doorbell(uc, to_qdev(ibuc->device));
	if (err)
		return err;
	err = ucontext_add_status(uc, to_qdev(ibuc->device));
	if (err)
		goto err_doorbell;

	ucontext_fill_resp(uc, &resp);
	err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_status;
	return 0;

err_status:
	rdma_user_mmap_entry_remove(&uc->status->entry);
err_doorbell:
	rdma_user_mmap_entry_remove(&uc->db->entry);
	return err;
}

/*
 * ib_device_ops.query_ucontext: repeats the response of alloc_ucontext for a
 * process that imports the context
 */
int qhca_ib_query_ucontext(struct ib_ucontext *ibuc,
			   struct uverbs_attr_bundle *attrs)
{
	struct qhca_alloc_ucontext_resp resp;

	ucontext_fill_resp(to_quc(ibuc), &resp);
	return uverbs_copy_to_struct_or_zero(attrs,
					     QHCA_ATTR_QUERY_CONTEXT_RESP,
					     &resp, sizeof(resp));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(qhca_ib_query_context,
			     UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(QHCA_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct qhca_alloc_ucontext_resp,
								    features),
						 UA_MANDATORY));

const struct uapi_definition qhca_ib_ucontext_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_ib_query_context),
	{}
};

/* ib_device_ops.dealloc_ucontext; all objects of the context are gone */
void qhca_ib_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	struct qhca_ib_ucontext *uc = to_quc(ibuc);

	WARN_ON(!list_empty(&uc->dbrec_pages));
	rdma_user_mmap_entry_remove(&uc->status->entry);
	rdma_user_mmap_entry_remove(&uc->db->entry);
}

/*
 * Memory of the kernel, not of the device: the mapping holds a reference to the
 * page, and the process keeps it when the device goes away.
 */
static int ucontext_mmap_status(struct qhca_ib_mmap *map,
				struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYWRITE);
	return vm_insert_page(vma, vma->vm_start, virt_to_page(map->status));
}

/*
 * ib_device_ops.mmap: the doorbell page, the status page or an allocation of
 * device memory, always as a whole
 */
int qhca_ib_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct qhca_ib_mmap *map;
	pgprot_t prot;
	int err;

	entry = rdma_user_mmap_entry_get(ibuc, vma);
	if (!entry)
		return -EINVAL;
	map = container_of(entry, struct qhca_ib_mmap, entry);
	if (map->kind == QHCA_IB_MMAP_STATUS) {
		err = ucontext_mmap_status(map, vma);
		goto out;
	}
	if (map->kind == QHCA_IB_MMAP_DM)
		prot = pgprot_writecombine(vma->vm_page_prot);
	else
		prot = pgprot_noncached(vma->vm_page_prot);
	err = rdma_user_mmap_io(ibuc, vma, PHYS_PFN(map->phys),
				entry->npages << PAGE_SHIFT, prot, entry);
out:
	rdma_user_mmap_entry_put(entry);
	return err;
}

/* ib_device_ops.mmap_free: no mapping is left, pages can be used again */
void qhca_ib_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct qhca_ib_mmap *map = container_of(entry, struct qhca_ib_mmap,
						entry);

	if (map->kind == QHCA_IB_MMAP_DM)
		qhca_ib_dm_mmap_free(map);
	else if (map->kind == QHCA_IB_MMAP_DB)
		qhca_uar_free(map->dev->qdev, map->uar);
	else
		ucontext_status_free(map);
	kfree(map);
}

/*
 * Tell a context, permanently, that the device is gone. What it has completed
 * can still be polled.
 */
static void ucontext_status_gone(struct qhca_ib_mmap *map)
{
	/* earlier CQEs, by the device or its reset, are visible first */
	smp_store_release(&map->status->works, 0);
}

/* The device is dead: tell all contexts, also those to come. Sleeps. */
void qhca_ib_status_gone(struct qhca_ib_dev *dev)
{
	struct qhca_ib_mmap *map;

	mutex_lock(&dev->status_lock);
	dev->gone = true;
	list_for_each_entry(map, &dev->status_maps, status_entry)
		ucontext_status_gone(map);
	mutex_unlock(&dev->status_lock);
}

/*
 * ib_device_ops.disassociate_ucontext: the core has taken the doorbell pages
 * out of the processes. The objects of the context are gone, so no more CQEs
 * come. Other contexts are told in their turn, or may come later.
 */
void qhca_ib_disassociate_ucontext(struct ib_ucontext *ibuc)
{
	ucontext_status_gone(to_quc(ibuc)->status);
}

/* --------------------------------------- requests of applications ------ */

/**
 * qhca_ib_udata_in - take the driver's part of a request
 * @udata: from the application
 * @req: result
 * @size: bytes of @req
 *
 * Return: 0, -EINVAL if it is too short, -EOPNOTSUPP if it is longer and the
 * rest is not zero (a newer provider uses a feature unknown here), -EFAULT.
 */
int qhca_ib_udata_in(struct ib_udata *udata, void *req, size_t size)
{
	return qhca_ib_udata_in_min(udata, req, size, size);
}

/*
 * The same for a request that has grown: an older provider passes at least
 * @least bytes, and the rest is 0.
 */
int qhca_ib_udata_in_min(struct ib_udata *udata, void *req, size_t least,
			 size_t size)
{
	if (udata->inlen < least)
		return -EINVAL;
	if (udata->inlen > size &&
	    !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	memset(req, 0, size);
	return ib_copy_from_udata(req, udata, min(size, udata->inlen));
}

/* Check that a verb has no driver-specific request. 0, or -EOPNOTSUPP. */
int qhca_ib_udata_none(struct ib_udata *udata)
{
	if (udata && udata->inlen &&
	    !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EOPNOTSUPP;
	return 0;
}

/*
 * Answer with as much of @resp as the application has room for; what a later
 * driver would write is zero. 0 or -EFAULT.
 */
int qhca_ib_udata_out(struct ib_udata *udata, void *resp, size_t size)
{
	size_t n = min(size, udata->outlen);

	if (ib_copy_to_udata(udata, resp, n) ||
	    clear_user(udata->outbuf + n, udata->outlen - n))
		return -EFAULT;
	return 0;
}

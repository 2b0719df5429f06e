// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: memory of applications, dma-bufs, all of memory (kernel
 * users), and fast registration.
 */
#include <linux/dma-mapping.h>
#include <linux/ioport.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "qhca_ib.h"
#include "qhca_ib_trace.h"

/* huge pages need no hint: the page size comes from the memory itself */
#define MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
		   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
		   IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT | \
		   IB_ACCESS_MW_BIND | IB_ZERO_BASED | \
		   IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

static_assert(QHCA_ACCESS_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert(QHCA_ACCESS_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert(QHCA_ACCESS_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert(QHCA_ACCESS_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);
static_assert(QHCA_ACCESS_MW_BIND == IB_ACCESS_MW_BIND);
static_assert(QHCA_ACCESS_FLUSH_GLOBAL == IB_ACCESS_FLUSH_GLOBAL);
static_assert(QHCA_ACCESS_FLUSH_PERSISTENT == IB_ACCESS_FLUSH_PERSISTENT);

static struct qhca_ib_mr *mr_new(struct ib_pd *ibpd, int access)
{
	struct qhca_ib_mr *mr;

	if (access & ~MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.device = ibpd->device;
	mr->ibmr.pd = ibpd;
	mr->access = qhca_ib_access(access);
	mr->zero_based = access & IB_ZERO_BASED;
	return mr;
}

/* Enter the MR into the device's table; sets the keys. */
static int mr_create(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr,
		     struct qhca_mpt *mpt)
{
	u32 byte = atomic_inc_return(&dev->next_key) & QHCA_KEY_BYTE_MASK;
	int err;

	mpt->key = cpu_to_le32(byte);
	mpt->pd = cpu_to_le32(to_qpd(mr->ibmr.pd)->pdn);
	mpt->access = cpu_to_le32(mr->access);
	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_MR, mpt, sizeof(*mpt),
			     &mr->key);
	if (err)
		return err;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	trace_qhca_reg_mr(dev, mr, mpt);
	qhca_ib_odp_set_key(mr);
	err = xa_err(xa_store(&dev->mrs, mr->key >> QHCA_KEY_INDEX_SHIFT, mr,
			      GFP_KERNEL));
	if (err) {
		qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_MR, mr->key);
		trace_qhca_dereg_mr(dev, mr->key, 0);
	}
	return err;
}

/* ib_device_ops.get_dma_mr: the key of all DMA addresses; kernel users only */
struct ib_mr *qhca_ib_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct qhca_mpt mpt = {
		.len = cpu_to_le64(U64_MAX),
		.flags = QHCA_MR_F_PHYS,
	};
	struct qhca_ib_mr *mr;
	int err;

	mr = mr_new(ibpd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = mr_create(to_qdev(ibpd->device), mr, &mpt);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/*
 * Is this memory persistent? If so, a globally visible write is as durable as
 * the CPU's own writes: the device need not do anything else.
 */
static bool mr_umem_persists(struct ib_umem *umem)
{
	struct scatterlist *sg;
	unsigned int i;

	if (umem->is_dmabuf)
		return false;
	for_each_sgtable_sg(&umem->sgt_append.sgt, sg, i) {
		if (region_intersects(sg_phys(sg), sg->length, IORESOURCE_MEM,
				      IORES_DESC_PERSISTENT_MEMORY) !=
		    REGION_INTERSECTS)
			return false;
	}
	return true;
}

/*
 * Describe all of @umem to the device: its table, and the address fields of
 * @mpt. @zero_based: byte 0 has address 0, else @iova.
 */
static int mr_describe_umem(struct qhca_ib_dev *dev,
			    struct qhca_buf_table *table, struct ib_umem *umem,
			    u64 length, u64 iova, bool zero_based,
			    struct qhca_mpt *mpt)
{
	int err;

	/* offset of byte 0 in its page */
	err = qhca_ib_buf_table_build(dev, table, umem,
				      zero_based ? umem->address : iova,
				      length);
	if (err)
		return err;
	mpt->buf = table->desc;
	mpt->iova = cpu_to_le64(zero_based ? 0 : iova);
	mpt->len = cpu_to_le64(length);
	return 0;
}

/* Register pinned memory; takes ownership of @umem, also on error. */
static struct ib_mr *mr_reg_umem(struct ib_pd *ibpd, struct ib_umem *umem,
				 u64 length, u64 iova, int access)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_mpt mpt = {};
	struct qhca_ib_mr *mr;
	int err;

	mr = mr_new(ibpd, access);
	if (IS_ERR(mr)) {
		err = PTR_ERR(mr);
		goto err_umem;
	}
	err = -EINVAL;
	if ((access & IB_ACCESS_FLUSH_PERSISTENT) && !mr_umem_persists(umem))
		goto err_free;
	err = mr_describe_umem(dev, &mr->table, umem, length, iova,
			       mr->zero_based, &mpt);
	if (err)
		goto err_free;
	mr->umem = umem;
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	mr->ibmr.page_size = BIT(mr->table.plan.page_shift);
	err = mr_create(dev, mr, &mpt);
	if (!err)
		return &mr->ibmr;

	qhca_buf_table_free(dev->qdev, &mr->table);
err_free:
	kfree(mr);
err_umem:
	ib_umem_release(umem);
	return ERR_PTR(err);
}

static int mr_check_range(struct qhca_ib_dev *dev, u64 length, u64 iova,
			  int access)
{
	if (access & ~MR_ACCESS)
		return -EOPNOTSUPP;
	if (!length || length > dev->qdev->caps.max_mr_size ||
	    iova + length - 1 < iova)
		return -EINVAL;
	return 0;
}

/* Register memory that is not pinned: on-demand paging. */
static struct ib_mr *mr_reg_odp(struct ib_pd *ibpd, u64 start, u64 length,
				u64 iova, int access)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_mpt mpt = {};
	struct qhca_ib_mr *mr;
	int err;

	if (!qhca_ib_has_odp(dev))
		return ERR_PTR(-EOPNOTSUPP);
	/* the pages behind it can change at any time */
	if (access & IB_ACCESS_FLUSH_PERSISTENT)
		return ERR_PTR(-EOPNOTSUPP);
	/* 0, U64_MAX: all of the process */
	err = !start && length == U64_MAX ? 0 :
	      mr_check_range(dev, length, iova, access & ~IB_ACCESS_ON_DEMAND);
	if (err)
		return ERR_PTR(err);
	mr = mr_new(ibpd, access & ~IB_ACCESS_ON_DEMAND);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	if (mr->zero_based)
		iova = 0;
	err = qhca_ib_odp_init(mr, start, length, iova, access, &mpt);
	if (err)
		goto err_free;
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	err = mr_create(dev, mr, &mpt);
	if (!err)
		return &mr->ibmr;
	qhca_ib_odp_exit(mr);
	qhca_buf_table_free(dev->qdev, &mr->table);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

/**
 * qhca_ib_reg_user_mr - ib_device_ops.reg_user_mr
 * @ibpd: PD
 * @start: user address, any alignment
 * @length: bytes, up to max_mr_size; on-demand paging: with @start 0 and
 *	U64_MAX the whole address space
 * @iova: address in SGEs and remote requests; its offset in a page must be
 *	that of @start
 * @access: IB_ACCESS_*
 * @udata: must be empty
 *
 * Return: the MR, or -EINVAL (also when @access allows flushing to persistence,
 * but the memory is not persistent), -EOPNOTSUPP (access flags), -ENOMEM, or as
 * qhca_ib_umem_get().
 */
struct ib_mr *qhca_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				  u64 iova, int access, QHCA_DMAH_PARAM
				  struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct ib_umem *umem;
	int err;

	if (QHCA_DMAH_GIVEN || qhca_ib_udata_none(udata))
		return ERR_PTR(-EOPNOTSUPP);
	if (access & IB_ACCESS_ON_DEMAND)
		return mr_reg_odp(ibpd, start, length, iova, access);
	err = mr_check_range(dev, length, iova, access);
	if (err)
		return ERR_PTR(err);
	umem = qhca_ib_umem_get(dev, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return mr_reg_umem(ibpd, umem, length, iova, access);
}

/* Swap the memory: the MR gets @umem and @table, the caller the old ones. */
static void mr_swap(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr,
		    struct ib_umem **umem, struct qhca_buf_table *table,
		    u64 length, u64 iova)
{
	mutex_lock(&dev->mr_lock);	/* debugfs and restrack read it */
	swap(mr->umem, *umem);
	swap(mr->table, *table);
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	mr->ibmr.page_size = BIT(mr->table.plan.page_shift);
	mutex_unlock(&dev->mr_lock);
}

/**
 * qhca_ib_rereg_user_mr - ib_device_ops.rereg_user_mr
 * @ibmr: the MR; it keeps its key
 * @flags: IB_MR_REREG_*: what changes
 * @start: IB_MR_REREG_TRANS: as for qhca_ib_reg_user_mr()
 * @length: the same
 * @iova: the same
 * @access: IB_MR_REREG_ACCESS: IB_ACCESS_*
 * @ibpd: IB_MR_REREG_PD: the new one
 * @udata: must be empty
 *
 * The device changes everything in one step; on an error nothing has changed.
 * Adding write access to memory that was pinned for reading pins it again.
 *
 * Return: NULL: changed in place; -EBUSY (memory windows are bound), -EINVAL,
 * -EOPNOTSUPP (on-demand paging; write access to a dma-buf, or to memory of
 * another process), -ENOMEM, or as qhca_ib_umem_get().
 */
struct ib_mr *qhca_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				    u64 length, u64 iova, int access,
				    struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibmr->device);
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	bool zero_based = mr->zero_based;
	struct qhca_buf_table table = {};
	struct ib_umem *umem = NULL;
	struct qhca_mpt mpt = {};
	u64 mask = 0;
	int err;

	if (!mr->umem || qhca_ib_udata_none(udata))
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	else if (access & ~MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	else if (flags & IB_MR_REREG_TRANS)
		zero_based = access & IB_ZERO_BASED;
	else if (!!(access & IB_ZERO_BASED) != zero_based)
		return ERR_PTR(-EOPNOTSUPP);

	if (!(flags & IB_MR_REREG_TRANS) && ib_access_writable(access) &&
	    !mr->umem->writable) {
		/* the address means something else in another process */
		if (mr->umem->is_dmabuf || mr->umem->owning_mm != current->mm)
			return ERR_PTR(-EOPNOTSUPP);
		flags |= IB_MR_REREG_TRANS;
		start = mr->umem->address;
		length = mr->ibmr.length;
		iova = mr->ibmr.iova;
	}
	if (flags & IB_MR_REREG_TRANS) {
		err = mr_check_range(dev, length, iova, access);
		if (err)
			return ERR_PTR(err);
		umem = qhca_ib_umem_get(dev, start, length, access);
		if (IS_ERR(umem))
			return ERR_CAST(umem);
		err = mr_describe_umem(dev, &table, umem, length, iova,
				       zero_based, &mpt);
		if (err)
			goto out;
		mask |= QHCA_MR_M_TRANS;
	}
	err = -EINVAL;
	if ((access & IB_ACCESS_FLUSH_PERSISTENT) &&
	    !mr_umem_persists(umem ? umem : mr->umem))
		goto out;
	if (flags & IB_MR_REREG_ACCESS) {
		mpt.access = cpu_to_le32(qhca_ib_access(access));
		mask |= QHCA_MR_M_ACCESS;
	}
	if (flags & IB_MR_REREG_PD) {
		mpt.pd = cpu_to_le32(to_qpd(ibpd)->pdn);
		mask |= QHCA_MR_M_PD;
	}
	err = qhca_aq_modify(dev->qdev, QHCA_CMD_MODIFY_MR, mr->key, mask, &mpt,
			     sizeof(mpt));
	if (err)
		goto out;
	mr->access = qhca_ib_access(access);
	mr->zero_based = zero_based;
	if (umem)
		mr_swap(dev, mr, &umem, &table, length, iova);
out:
	/* the old ones, or the new ones on failure */
	qhca_buf_table_free(dev->qdev, &table);
	ib_umem_release(umem);
	return ERR_PTR(err);
}

/* ib_device_ops.reg_user_mr_dmabuf: the dma-buf is pinned */
struct ib_mr *qhca_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
					 u64 length, u64 iova, int fd,
					 int access, QHCA_DMAH_PARAM
					 struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct ib_umem_dmabuf *dmabuf;
	int err;

	if (QHCA_DMAH_GIVEN)
		return ERR_PTR(-EOPNOTSUPP);
	err = mr_check_range(dev, length, iova, access);
	if (err)
		return ERR_PTR(err);
	dmabuf = ib_umem_dmabuf_get_pinned(&dev->ibdev, offset, length, fd,
					   access);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	return mr_reg_umem(ibpd, &dmabuf->umem, length, iova, access);
}

/**
 * qhca_ib_reg_dm_mr - ib_device_ops.reg_dm_mr
 * @ibpd: PD
 * @ibdm: device memory
 * @attr: part of it, which the core has checked; access flags with
 *	IB_ZERO_BASED
 * @attrs: unused
 *
 * Return: the MR, whose addresses begin at 0; or -EOPNOTSUPP (access flags),
 * -EINVAL (persistence), -ENOMEM.
 */
struct ib_mr *qhca_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				struct ib_dm_mr_attr *attr,
				struct uverbs_attr_bundle *attrs)
{
	struct qhca_mpt mpt = { .flags = QHCA_MR_F_DM };
	struct qhca_ib_mr *mr;
	int err;

	/* its contents do not survive a power cycle */
	if (attr->access_flags & IB_ACCESS_FLUSH_PERSISTENT)
		return ERR_PTR(-EINVAL);
	mr = mr_new(ibpd, attr->access_flags);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->dm_offset = to_qdm(ibdm)->offset + attr->offset;
	mr->dm = true;
	mr->ibmr.length = attr->length;
	mpt.buf.addr = cpu_to_le64(mr->dm_offset);
	mpt.buf.len = cpu_to_le64(attr->length);
	mpt.buf.form = QHCA_BUF_DIRECT;
	mpt.len = cpu_to_le64(attr->length);
	err = mr_create(to_qdev(ibpd->device), mr, &mpt);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

static void mr_free_page_list(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr)
{
	if (mr->pages)
		dma_free_coherent(&dev->qdev->pdev->dev,
				  mr->max_pages * sizeof(*mr->pages),
				  mr->pages, mr->pages_dma);
}

/**
 * qhca_ib_alloc_mr - ib_device_ops.alloc_mr: an MR for REG_MR work requests
 * @ibpd: PD
 * @type: IB_MR_TYPE_MEM_REG
 * @max_num_sg: greatest number of pages
 *
 * Return: the MR, or -EOPNOTSUPP (type), -EINVAL (too many pages), -ENOMEM.
 */
struct ib_mr *qhca_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			       u32 max_num_sg)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_mpt mpt = { .flags = QHCA_MR_F_FAST_REG };
	struct qhca_ib_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > QHCA_IB_MAX_FAST_REG)
		return ERR_PTR(-EINVAL);
	mr = mr_new(ibpd, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->max_pages = max_num_sg;
	mr->pages = dma_alloc_coherent(&dev->qdev->pdev->dev,
				       max_num_sg * sizeof(*mr->pages),
				       &mr->pages_dma, GFP_KERNEL);
	err = -ENOMEM;
	if (!mr->pages)
		goto err_free;

	mpt.buf.addr = cpu_to_le64(mr->pages_dma);
	mpt.buf.entries = cpu_to_le32(max_num_sg);
	mpt.buf.form = QHCA_BUF_FLAT;
	mpt.buf.hops = 1;
	mpt.buf.page_shift = PAGE_SHIFT;
	mpt.max_entries = cpu_to_le32(max_num_sg);
	err = mr_create(dev, mr, &mpt);
	if (!err)
		return &mr->ibmr;
	mr_free_page_list(dev, mr);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

static int mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct qhca_ib_mr *mr = to_qmr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->npages++] = cpu_to_le64(addr | QHCA_BTE_VALID);
	return 0;
}

/* ib_device_ops.map_mr_sg: number of SG entries that fit, or an error */
int qhca_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		      unsigned int *offset)
{
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	u64 sizes = to_qdev(ibmr->device)->qdev->caps.page_size_cap;

	if (!mr->pages || !is_power_of_2(ibmr->page_size) ||
	    !(sizes & ibmr->page_size))
		return -EINVAL;
	mr->npages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, mr_set_page);
}

/* ib_device_ops.dereg_mr; no DMA through the MR when it returns */
int qhca_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibmr->device);
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	int err;

	/* the low byte of a fast registration MR's key changes with use */
	err = qhca_ib_destroy(dev, QHCA_CMD_DESTROY_MR, ibmr->rkey);
	trace_qhca_dereg_mr(dev, ibmr->rkey, err);
	if (err)
		return err;
	mutex_lock(&dev->mr_lock);
	/* its index may belong to a new MR already */
	xa_cmpxchg(&dev->mrs, mr->key >> QHCA_KEY_INDEX_SHIFT, mr, NULL,
		   GFP_KERNEL);
	mutex_unlock(&dev->mr_lock);
	qhca_ib_odp_exit(mr);
	ib_umem_release(mr->umem);
	qhca_buf_table_free(dev->qdev, &mr->table);
	mr_free_page_list(dev, mr);
	kfree(mr);
	return 0;
}

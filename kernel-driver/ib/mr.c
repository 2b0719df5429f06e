// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: of applications, of dma-buf exporters, of all memory (kernel
 * users), and those for fast registration.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "qhca_ib.h"

/* huge pages need no hint: the page size comes from the memory itself */
#define MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
		   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
		   IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

static_assert(QHCA_ACCESS_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert(QHCA_ACCESS_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert(QHCA_ACCESS_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert(QHCA_ACCESS_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);

/* IB_ACCESS_* to QHCA_ACCESS_*: the same bits; optional ones fall away. */
u32 qhca_ib_access(int access)
{
	return access & QHCA_ACCESS_MASK;
}

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
	err = xa_err(xa_store(&dev->mrs, mr->key >> QHCA_KEY_INDEX_SHIFT, mr,
			      GFP_KERNEL));
	if (err)
		qhca_ib_destroy(dev, QHCA_CMD_DESTROY_MR, mr->key);
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

/* Register pinned memory; takes @umem over, also on error. */
static struct ib_mr *reg_umem(struct ib_pd *ibpd, struct ib_umem *umem,
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
	err = qhca_ib_table_build(dev, &mr->table, umem, iova, length);
	if (err)
		goto err_free;
	mr->umem = umem;
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	mr->ibmr.page_size = BIT(mr->table.plan.page_shift);
	mpt.buf = mr->table.desc;
	mpt.iova = cpu_to_le64(iova);
	mpt.len = cpu_to_le64(length);
	err = mr_create(dev, mr, &mpt);
	if (!err)
		return &mr->ibmr;

	qhca_table_free(dev->qdev, &mr->table);
err_free:
	kfree(mr);
err_umem:
	ib_umem_release(umem);
	return ERR_PTR(err);
}

static int check_range(struct qhca_ib_dev *dev, u64 length, u64 iova,
		       int access)
{
	if (access & ~MR_ACCESS)
		return -EOPNOTSUPP;
	if (!length || length > dev->qdev->caps.max_mr_size ||
	    iova + length - 1 < iova)
		return -EINVAL;
	return 0;
}

/**
 * qhca_ib_reg_user_mr - ib_device_ops.reg_user_mr
 * @ibpd: PD
 * @start: user address, any alignment
 * @length: bytes, up to max_mr_size
 * @iova: address in SGEs and remote requests; its offset in a page must be
 *	that of @start
 * @access: IB_ACCESS_*
 * @udata: unused
 *
 * Return: the MR, or -EINVAL, -EOPNOTSUPP (access flags), -ENOMEM, or as
 * ib_umem_get_va().
 */
struct ib_mr *qhca_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				  u64 iova, int access, QHCA_DMAH_PARAM
				  struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct ib_umem *umem;
	int err;

	if (QHCA_DMAH_GIVEN)
		return ERR_PTR(-EOPNOTSUPP);
	err = check_range(dev, length, iova, access);
	if (err)
		return ERR_PTR(err);
	umem = ib_umem_get_va(&dev->ibdev, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return reg_umem(ibpd, umem, length, iova, access);
}

/* ib_device_ops.reg_user_mr_dmabuf: the exporter's memory stays where it is */
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
	err = check_range(dev, length, iova, access);
	if (err)
		return ERR_PTR(err);
	dmabuf = ib_umem_dmabuf_get_pinned(&dev->ibdev, offset, length, fd,
					   access);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	return reg_umem(ibpd, &dmabuf->umem, length, iova, access);
}

static void free_pages_list(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr)
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
	free_pages_list(dev, mr);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

static int set_page(struct ib_mr *ibmr, u64 addr)
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
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
}

/* ib_device_ops.dereg_mr; no DMA through the MR when it returns */
int qhca_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibmr->device);
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	int err;

	/* the low byte of a fast registration MR's key changes with use */
	err = qhca_ib_destroy(dev, QHCA_CMD_DESTROY_MR, ibmr->rkey);
	if (err)
		return err;
	mutex_lock(&dev->mr_lock);
	/* its index may belong to a new MR already */
	xa_cmpxchg(&dev->mrs, mr->key >> QHCA_KEY_INDEX_SHIFT, mr, NULL,
		   GFP_KERNEL);
	mutex_unlock(&dev->mr_lock);
	ib_umem_release(mr->umem);
	qhca_table_free(dev->qdev, &mr->table);
	free_pages_list(dev, mr);
	kfree(mr);
	return 0;
}

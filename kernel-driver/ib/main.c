// SPDX-License-Identifier: GPL-2.0
/* The auxiliary driver: from the device "qhca.ib" to an ib_device. */
#include <linux/cc_platform.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/swiotlb.h>

#include "qhca_ib.h"

MODULE_DESCRIPTION("RDMA driver for the qhca adapter");
MODULE_LICENSE("GPL");

static const struct ib_device_ops qhca_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = QHCA_UVERBS_ABI_VERSION,

	.add_gid = qhca_ib_add_gid,
	.alloc_hw_port_stats = qhca_ib_alloc_hw_port_stats,
	.alloc_pd = qhca_ib_alloc_pd,
	.alloc_ucontext = qhca_ib_alloc_ucontext,
	.create_ah = qhca_ib_create_ah,
	.create_cq = qhca_ib_create_cq,
	.create_qp = qhca_ib_create_qp,
	.create_user_ah = qhca_ib_create_ah,
	.dealloc_pd = qhca_ib_dealloc_pd,
	.dealloc_ucontext = qhca_ib_dealloc_ucontext,
	.del_gid = qhca_ib_del_gid,
	.dereg_mr = qhca_ib_dereg_mr,
	.destroy_ah = qhca_ib_destroy_ah,
	.destroy_cq = qhca_ib_destroy_cq,
	.destroy_qp = qhca_ib_destroy_qp,
	.disassociate_ucontext = qhca_ib_disassociate_ucontext,
	.fill_res_cq_entry = qhca_ib_fill_res_cq_entry,
	.fill_res_cq_entry_raw = qhca_ib_fill_res_cq_entry_raw,
	.fill_res_mr_entry = qhca_ib_fill_res_mr_entry,
	.fill_res_mr_entry_raw = qhca_ib_fill_res_mr_entry_raw,
	.fill_res_qp_entry = qhca_ib_fill_res_qp_entry,
	.fill_res_qp_entry_raw = qhca_ib_fill_res_qp_entry_raw,
	.get_dev_fw_str = qhca_ib_get_dev_fw_str,
	.get_dma_mr = qhca_ib_get_dma_mr,
	.get_hw_stats = qhca_ib_get_hw_stats,
	.get_link_layer = qhca_ib_get_link_layer,
	.get_port_immutable = qhca_ib_get_port_immutable,
	.mmap = qhca_ib_mmap,
	.mmap_free = qhca_ib_mmap_free,
	.modify_cq = qhca_ib_modify_cq,
	.modify_qp = qhca_ib_modify_qp,
	.poll_cq = qhca_ib_poll_cq,
	.post_recv = qhca_ib_post_recv,
	.post_send = qhca_ib_post_send,
	.query_ah = qhca_ib_query_ah,
	.query_device = qhca_ib_query_device,
	.query_pkey = qhca_ib_query_pkey,
	.query_port = qhca_ib_query_port,
	.query_qp = qhca_ib_query_qp,
	.reg_user_mr = qhca_ib_reg_user_mr,
	.reg_user_mr_dmabuf = qhca_ib_reg_user_mr_dmabuf,
	.req_notify_cq = qhca_ib_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, qhca_ib_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, qhca_ib_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, qhca_ib_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, qhca_ib_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, qhca_ib_ucontext, ibuc),
};

/* set when the device has QHCA_FEAT_SRQ */
static const struct ib_device_ops qhca_ib_srq_ops = {
	.create_srq = qhca_ib_create_srq,
	.destroy_srq = qhca_ib_destroy_srq,
	.fill_res_srq_entry = qhca_ib_fill_res_srq_entry,
	.fill_res_srq_entry_raw = qhca_ib_fill_res_srq_entry_raw,
	.modify_srq = qhca_ib_modify_srq,
	.post_srq_recv = qhca_ib_post_srq_recv,
	.query_srq = qhca_ib_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, qhca_ib_srq, ibsrq),
};

/* set when the device has QHCA_FEAT_FAST_REG */
static const struct ib_device_ops qhca_ib_fast_reg_ops = {
	.alloc_mr = qhca_ib_alloc_mr,
	.map_mr_sg = qhca_ib_map_mr_sg,
};

/*
 * The device that maps memory for RDMA: the PCI function, but for one case.
 *
 * With swiotlb=force every mapping of the function goes through a bounce
 * buffer, and is only copied when its owner synchronises it. Nobody can do
 * that for memory that an application and the adapter use at the same time.
 * So where the function has no IOMMU and memory is not encrypted, RDMA maps by
 * the auxiliary device, set up for 64-bit DMA without bouncing. The rest of
 * the driver goes on with the function and its bounce buffers.
 */
static struct device *rdma_dma_device(struct auxiliary_device *adev)
{
	struct device *pci = &qhca_adev_to_dev(adev)->pdev->dev;
#ifdef CONFIG_SWIOTLB
	struct device *dev = &adev->dev;

	if (!is_swiotlb_force_bounce(pci) || dev_dma_iommu(pci) || get_dma_ops(pci) ||
	    cc_platform_has(CC_ATTR_MEM_ENCRYPT))
		return pci;
	dev->dma_io_tlb_mem = NULL;
	dev->coherent_dma_mask = DMA_BIT_MASK(64);
	dev->dma_mask = &dev->coherent_dma_mask;
	dev->bus_dma_limit = pci->bus_dma_limit;
	dev->dma_range_map = pci->dma_range_map;
	dev->dma_parms = pci->dma_parms;
	set_dev_node(dev, dev_to_node(pci));
	return dev;
#else
	return pci;
#endif
}

static int init_maps(struct qhca_ib_dev *dev)
{
	struct device *pci = &dev->qdev->pdev->dev;

	xa_init(&dev->qps);
	xa_init(&dev->cqs);
	xa_init(&dev->srqs);
	xa_init(&dev->mrs);
	mutex_init(&dev->qp_mutex);
	mutex_init(&dev->mr_lock);
	INIT_WORK(&dev->flush_work, qhca_ib_flush_work);
	/* a cache line each: kernel queues do not disturb each other */
	dev->dbrecs = dma_pool_create("qhca_dbrec", pci, 64, 64, 0);
	return dev->dbrecs ? 0 : -ENOMEM;
}

static void free_maps(struct qhca_ib_dev *dev)
{
	cancel_work_sync(&dev->flush_work);
	WARN_ON(!xa_empty(&dev->qps) || !xa_empty(&dev->cqs) ||
		!xa_empty(&dev->srqs) || !xa_empty(&dev->mrs));
	xa_destroy(&dev->qps);
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->mrs);
	dma_pool_destroy(dev->dbrecs);
}

static int qhca_ib_probe(struct auxiliary_device *adev,
			 const struct auxiliary_device_id *id)
{
	struct qhca_dev *qdev = qhca_adev_to_dev(adev);
	struct device *pci = &qdev->pdev->dev;
	struct qhca_ib_dev *dev;
	int err;

	dev = ib_alloc_device(qhca_ib_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->qdev = qdev;
	err = init_maps(dev);
	if (err)
		goto err_dealloc;

	/* one SG entry can describe any contiguous memory */
	dma_set_max_seg_size(pci, UINT_MAX);
	qhca_ib_init_attrs(dev);
	ib_set_device_ops(&dev->ibdev, &qhca_ib_ops);
	if (qdev->caps.features & QHCA_FEAT_SRQ)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_srq_ops);
	if (qdev->caps.features & QHCA_FEAT_FAST_REG)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_fast_reg_ops);

	/* before registering, or no GID is ever added */
	err = ib_device_set_netdev(&dev->ibdev, qdev->netdev, QHCA_IB_PORT);
	if (err)
		goto err_maps;
	qhca_ib_debugfs_init(dev);
	err = qhca_ib_events_init(dev);
	if (err)
		goto err_debugfs;
	err = ib_register_device(&dev->ibdev, "qhca%d",
				 rdma_dma_device(adev));
	if (err)
		goto err_events;
	WRITE_ONCE(dev->registered, true);
	auxiliary_set_drvdata(adev, dev);
	return 0;

err_events:
	qhca_ib_events_exit(dev);
err_debugfs:
	qhca_ib_debugfs_exit(dev);
err_maps:
	free_maps(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return dev_err_probe(&adev->dev, err, "no RDMA device\n");
}

static void qhca_ib_remove(struct auxiliary_device *adev)
{
	struct qhca_ib_dev *dev = auxiliary_get_drvdata(adev);

	qhca_ib_flush_users(dev);
	/*
	 * Going, the notifier hears once more of a net_device that goes down.
	 * The work this queues is flushed by ib_unregister_device().
	 */
	unregister_netdevice_notifier(&dev->netdev_nb);
	WRITE_ONCE(dev->registered, false);
	/* applications are cut off and kernel users leave in here */
	ib_unregister_device(&dev->ibdev);
	qhca_event_unregister(dev->qdev, &dev->events);
	qhca_ib_debugfs_exit(dev);
	free_maps(dev);
	ib_dealloc_device(&dev->ibdev);
}

static const struct auxiliary_device_id qhca_ib_ids[] = {
	{ .name = "qhca." QHCA_ADEV_NAME_IB },
	{}
};
MODULE_DEVICE_TABLE(auxiliary, qhca_ib_ids);

static struct auxiliary_driver qhca_ib_driver = {
	.name = "rdma",
	.probe = qhca_ib_probe,
	.remove = qhca_ib_remove,
	.id_table = qhca_ib_ids,
};
module_auxiliary_driver(qhca_ib_driver);

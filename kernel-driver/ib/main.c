// SPDX-License-Identifier: GPL-2.0
/* The auxiliary driver: from the device "qhca.ib" to an ib_device. */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/module.h>

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
	.counter_alloc_stats = qhca_ib_counter_alloc_stats,
	.counter_bind_qp = qhca_ib_counter_bind_qp,
	.counter_dealloc = qhca_ib_counter_dealloc,
	QHCA_COUNTER_INIT
	.counter_unbind_qp = qhca_ib_counter_unbind_qp,
	.counter_update_stats = qhca_ib_counter_update_stats,
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
	.drain_rq = qhca_ib_drain_rq,
	.drain_sq = qhca_ib_drain_sq,
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
	.query_ucontext = qhca_ib_query_ucontext,
	.reg_user_mr = qhca_ib_reg_user_mr,
	.reg_user_mr_dmabuf = qhca_ib_reg_user_mr_dmabuf,
	QHCA_REPORT_PORT_EVENT
	.req_notify_cq = qhca_ib_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, qhca_ib_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, qhca_ib_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, qhca_ib_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, qhca_ib_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, qhca_ib_ucontext, ibuc),
	QHCA_COUNTER_OBJ_SIZE
};

/* set when the device has QHCA_FEAT_SRQ */
static const struct ib_device_ops qhca_ib_srq_ops = {
	.create_srq = qhca_ib_create_srq,
	.destroy_srq = qhca_ib_destroy_srq,
	.modify_srq = qhca_ib_modify_srq,
	.post_srq_recv = qhca_ib_post_srq_recv,
	.query_srq = qhca_ib_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, qhca_ib_srq, ibsrq),
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
/* set when the device has QHCA_FEAT_ODP */
static const struct ib_device_ops qhca_ib_odp_ops = {
	.advise_mr = qhca_ib_advise_mr,
	.fill_stat_mr_entry = qhca_ib_fill_stat_mr_entry,
};
#endif

/* set when the device has QHCA_FEAT_XRC */
static const struct ib_device_ops qhca_ib_xrc_ops = {
	.alloc_xrcd = qhca_ib_alloc_xrcd,
	.dealloc_xrcd = qhca_ib_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, qhca_ib_xrcd, ibxrcd),
};

/* set when the device has QHCA_FEAT_MW */
static const struct ib_device_ops qhca_ib_mw_ops = {
	.alloc_mw = qhca_ib_alloc_mw,
	.dealloc_mw = qhca_ib_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, qhca_ib_mw, ibmw),
};

/* set when the device has QHCA_FEAT_REREG */
static const struct ib_device_ops qhca_ib_rereg_ops = {
	.rereg_user_mr = qhca_ib_rereg_user_mr,
};

/* set when the device has QHCA_FEAT_CQ_RESIZE */
static const struct ib_device_ops qhca_ib_resize_ops = {
	.QHCA_RESIZE_CQ_OP = qhca_ib_resize_cq,
};

/* set when the device has QHCA_FEAT_FAST_REG */
static const struct ib_device_ops qhca_ib_fast_reg_ops = {
	.alloc_mr = qhca_ib_alloc_mr,
	.map_mr_sg = qhca_ib_map_mr_sg,
};

/* set when the device has QHCA_FEAT_MCAST */
static const struct ib_device_ops qhca_ib_mcast_ops = {
	.attach_mcast = qhca_ib_attach_mcast,
	.detach_mcast = qhca_ib_detach_mcast,
};

/* set when the device has QHCA_FEAT_FLOW */
static const struct ib_device_ops qhca_ib_flow_ops = {
	.create_flow = qhca_ib_create_flow,
	.destroy_flow = qhca_ib_destroy_flow,
};

/* set when the device has QHCA_FEAT_RSS */
static const struct ib_device_ops qhca_ib_rss_ops = {
	.create_rwq_ind_table = qhca_ib_create_rwq_ind_table,
	.create_wq = qhca_ib_create_wq,
	.destroy_rwq_ind_table = qhca_ib_destroy_rwq_ind_table,
	.destroy_wq = qhca_ib_destroy_wq,
	.modify_wq = qhca_ib_modify_wq,

	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, qhca_ib_rqt, ibtbl),
};

/* set when the device has QHCA_FEAT_DM */
static const struct ib_device_ops qhca_ib_dm_ops = {
	.alloc_dm = qhca_ib_alloc_dm,
	.dealloc_dm = qhca_ib_dealloc_dm,
	.reg_dm_mr = qhca_ib_reg_dm_mr,
};

/* methods of the provider beyond the verbs */
static const struct uapi_definition qhca_ib_defs[] = {
	UAPI_DEF_CHAIN(qhca_ib_ucontext_defs),
	UAPI_DEF_CHAIN(qhca_ib_pd_defs),
	UAPI_DEF_CHAIN(qhca_ib_dm_defs),
	UAPI_DEF_CHAIN(qhca_ib_clock_defs),
	{}
};

/*
 * May applications' memory be used? Not where DMA mappings need syncing (bounce
 * buffers as with swiotlb=force or encrypted memory, non-coherent caches):
 * application and adapter use the memory at the same time, and nothing would
 * sync it. Testing one page is enough, as the answer depends on the platform.
 * True also if the test fails: each mapping is checked, see umem.c.
 */
static bool main_user_memory_ok(struct device *pci)
{
	struct page *page = alloc_page(GFP_KERNEL);
	dma_addr_t addr;
	bool ok = true;

	if (!page)
		return ok;
	addr = dma_map_page(pci, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(pci, addr)) {
		ok = !dma_need_sync(pci, addr);
		dma_unmap_page(pci, addr, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	__free_page(page);
	return ok;
}

static int qhca_ib_init_dev(struct qhca_ib_dev *dev)
{
	int err;

	xa_init(&dev->qps);
	xa_init(&dev->cqs);
	xa_init(&dev->srqs);
	xa_init(&dev->mrs);
	xa_init(&dev->wqs);
	atomic_set(&dev->qpn_leaving, 0);
	init_waitqueue_head(&dev->qpn_wait);
	mutex_init(&dev->mr_lock);
	mutex_init(&dev->status_lock);
	INIT_LIST_HEAD(&dev->status_maps);
	mutex_init(&dev->dbrec_lock);
	INIT_LIST_HEAD(&dev->dbrec_chunks);
	mutex_init(&dev->fatal_lock);
	qhca_ib_counters_init(dev);
	INIT_WORK(&dev->flush_work, qhca_ib_flush_work);
	err = qhca_ib_dm_init(dev);
	if (err)
		return err;
	err = -ENOMEM;
	dev->flush_wq = alloc_workqueue("qhca_flush",
					WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!dev->flush_wq)
		goto err_dm;
	dev->odp_wq = alloc_workqueue("qhca_odp", WQ_UNBOUND | WQ_HIGHPRI,
				      WQ_MAX_ACTIVE);
	if (!dev->odp_wq)
		goto err_flush_wq;
	return 0;

err_flush_wq:
	destroy_workqueue(dev->flush_wq);
err_dm:
	qhca_ib_dm_exit(dev);
	return err;
}

static void qhca_ib_free_dev(struct qhca_ib_dev *dev)
{
	cancel_work_sync(&dev->flush_work);
	destroy_workqueue(dev->flush_wq);
	destroy_workqueue(dev->odp_wq);
	WARN_ON(!xa_empty(&dev->qps) || !xa_empty(&dev->cqs) ||
		!xa_empty(&dev->srqs) || !xa_empty(&dev->mrs) ||
		!xa_empty(&dev->wqs));
	xa_destroy(&dev->qps);
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->wqs);
	WARN_ON(!list_empty(&dev->dbrec_chunks));
	mutex_destroy(&dev->dbrec_lock);
	mutex_destroy(&dev->fatal_lock);
	WARN_ON(!list_empty(&dev->status_maps));
	mutex_destroy(&dev->status_lock);
	qhca_ib_dm_exit(dev);
	qhca_ib_counters_exit(dev);
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
	err = qhca_ib_init_dev(dev);
	if (err)
		goto err_dealloc;

	dev->user_memory = main_user_memory_ok(pci);
	if (!dev->user_memory)
		dev_warn(&adev->dev,
			 "mappings are bounced or not coherent: RDMA for kernel users only\n");
	qhca_ib_init_attrs(dev);
	ib_set_device_ops(&dev->ibdev, &qhca_ib_ops);
	dev->ibdev.use_cq_dim = true;
	if (qdev->caps.features & QHCA_FEAT_SRQ)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_srq_ops);
	if (qdev->caps.features & QHCA_FEAT_XRC)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_xrc_ops);
	if (qdev->caps.features & QHCA_FEAT_MW)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_mw_ops);
	if (qdev->caps.features & QHCA_FEAT_REREG)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_rereg_ops);
	if (qdev->caps.features & QHCA_FEAT_CQ_RESIZE)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_resize_ops);
	if (qdev->caps.features & QHCA_FEAT_FAST_REG)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_fast_reg_ops);
	if (qdev->caps.features & QHCA_FEAT_MCAST)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_mcast_ops);
	if (qdev->caps.features & QHCA_FEAT_FLOW)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_flow_ops);
	if (qdev->caps.features & QHCA_FEAT_RSS)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_rss_ops);
	if (qdev->caps.features & QHCA_FEAT_DM)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_dm_ops);
	dev->ibdev.driver_def = qhca_ib_defs;
#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
	if (qhca_ib_has_odp(dev))
		ib_set_device_ops(&dev->ibdev, &qhca_ib_odp_ops);
#endif

	/* before registering, or no GID will ever be added */
	err = ib_device_set_netdev(&dev->ibdev, qdev->netdev, QHCA_IB_PORT);
	if (err)
		goto err_maps;
	qhca_ib_debug_create(dev);
	err = qhca_ib_events_init(dev);
	if (err)
		goto err_debug;
	err = ib_register_device(&dev->ibdev, "qhca%d", pci);
	if (err)
		goto err_events;
	qhca_ib_events_start(dev);
	auxiliary_set_drvdata(adev, dev);
	return 0;

err_events:
	qhca_ib_events_exit_netdev(dev);
	qhca_ib_events_exit_device(dev);
err_debug:
	qhca_ib_debug_destroy(dev);
err_maps:
	qhca_ib_free_dev(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return dev_err_probe(&adev->dev, err, "no RDMA device\n");
}

static void qhca_ib_remove(struct auxiliary_device *adev)
{
	struct qhca_ib_dev *dev = auxiliary_get_drvdata(adev);

	qhca_ib_flush_users(dev);
	/* work queued by a last event is flushed below */
	qhca_ib_events_exit_netdev(dev);
	/* this disassociates applications and removes kernel users */
	ib_unregister_device(&dev->ibdev);
	qhca_ib_events_exit_device(dev);
	qhca_ib_debug_destroy(dev);
	qhca_ib_free_dev(dev);
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

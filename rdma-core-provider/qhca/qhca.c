// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* libqhca: the device, its context, and the table of verbs. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ccan/container_of.h>
#include <ccan/list.h>
#include <infiniband/cmd_ioctl.h>
#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-abi-cmd.h"
#include "qhca-clock.h"
#include "qhca-context.h"
#include "qhca-idr.h"
#include "qhca-pd.h"
#include "qhca-poll.h"
#include "qhca-post.h"
#include "qhca-tm.h"
#include "qhca-verbs.h"

struct qhca_device {
	struct verbs_device	vdev;
};

static void qhca_free_context(struct ibv_context *context);

static int qhca_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr,
				size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp,
				       &resp_size);
	if (ret)
		return ret;
	/* Not known to the kernel, which sees no hash. */
	if (attr_size >= offsetof(struct ibv_device_attr_ex, rss_caps) +
			 sizeof(attr->rss_caps) &&
	    (to_qctx(context)->features & QHCA_FEAT_RSS)) {
		attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
		attr->rss_caps.rx_hash_fields_mask = QHCA_HASH_MASK;
	}
	fw = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u.%u", (unsigned int)(fw >> 24 & 0xff),
		 (unsigned int)(fw >> 16 & 0xff), (unsigned int)(fw & 0xffff));
	return 0;
}

static int qhca_query_port(struct ibv_context *context, uint8_t port,
			   struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

static const struct verbs_context_ops qhca_context_ops = {
	.advise_mr = qhca_advise_mr,
	.alloc_dm = qhca_alloc_dm,
	.alloc_parent_domain = qhca_alloc_parent_domain,
	.alloc_mw = qhca_alloc_mw,
	.alloc_pd = qhca_alloc_pd,
	.alloc_td = qhca_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.close_xrcd = qhca_close_xrcd,
	.bind_mw = qhca_bind_mw,
	.create_ah = qhca_create_ah,
	.create_cq = qhca_create_cq,
	.create_cq_ex = qhca_create_cq_ex,
	.create_flow = qhca_create_flow,
	.create_qp = qhca_create_qp,
	.create_qp_ex = qhca_create_qp_ex,
	.create_rwq_ind_table = qhca_create_rwq_ind_table,
	.create_srq = qhca_create_srq,
	.create_srq_ex = qhca_create_srq_ex,
	.create_wq = qhca_create_wq,
	.dealloc_mw = qhca_dealloc_mw,
	.dealloc_pd = qhca_dealloc_pd,
	.dealloc_td = qhca_dealloc_td,
	.dereg_mr = qhca_dereg_mr,
	.destroy_ah = qhca_destroy_ah,
	.destroy_cq = qhca_destroy_cq,
	.destroy_flow = qhca_destroy_flow,
	.destroy_qp = qhca_destroy_qp,
	.destroy_rwq_ind_table = qhca_destroy_rwq_ind_table,
	.destroy_srq = qhca_destroy_srq,
	.destroy_wq = qhca_destroy_wq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = qhca_free_context,
	.free_dm = qhca_free_dm,
	.get_srq_num = qhca_get_srq_num,
	.import_dm = qhca_import_dm,
	.import_mr = qhca_import_mr,
	.import_pd = qhca_import_pd,
	.modify_cq = qhca_modify_cq,
	.modify_qp = qhca_modify_qp,
	.modify_srq = qhca_modify_srq,
	.modify_wq = qhca_modify_wq,
	.open_qp = qhca_open_qp,
	.open_xrcd = qhca_open_xrcd,
	.poll_cq = qhca_poll_cq,
	.post_recv = qhca_post_recv,
	.post_send = qhca_post_send,
	.post_srq_ops = qhca_post_srq_ops,
	.post_srq_recv = qhca_post_srq_recv,
	.query_device_ex = qhca_query_device_ex,
	.query_port = qhca_query_port,
	.query_qp = qhca_query_qp,
	.query_rt_values = qhca_query_rt_values,
	.query_srq = qhca_query_srq,
	.reg_dm_mr = qhca_reg_dm_mr,
	.reg_dmabuf_mr = qhca_reg_dmabuf_mr,
	.reg_mr = qhca_reg_mr,
	.req_notify_cq = qhca_req_notify_cq,
	.rereg_mr = qhca_rereg_mr,
	.resize_cq = qhca_resize_cq,
	.unimport_dm = qhca_unimport_dm,
	.unimport_mr = qhca_unimport_mr,
	.unimport_pd = qhca_unimport_pd,
};

/* Returns true if the environment variable @name is set, and not to 0. */
static bool qhca_env_is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0");
}

/* Fills in @ctx from the kernel's @resp, and maps its pages. */
static int qhca_init_context(struct qhca_context *ctx, int cmd_fd,
			     const struct qhca_alloc_ucontext_resp *resp)
{
	bool status = resp->comp_mask & QHCA_UCONTEXT_RESP_STATUS;
	int ret;

	ctx->page_size = sysconf(_SC_PAGESIZE);
	ctx->features = resp->features;
	/* An older driver may not support all features of the device. */
	if (!(resp->comp_mask & QHCA_UCONTEXT_RESP_SQ_RECORD) ||
	    qhca_env_is_set("QHCA_ALWAYS_RING"))
		ctx->features &= ~QHCA_FEAT_SQ_RECORD;
	ctx->max_qp_wr = resp->max_qp_wr;
	ctx->max_cqe = resp->max_cqe;
	ctx->max_srq_wr = resp->max_srq_wr;
	ctx->max_sge = resp->max_sge;
	ctx->max_inline = resp->max_inline;
	ctx->huge = qhca_env_is_set("QHCA_HUGE_PAGES");
	ctx->db_len = resp->db_mmap_size;
	if (ctx->db_len < QHCA_DB_TM + sizeof(uint64_t)) {
		errno = EPROTO;
		return errno;
	}
	ctx->db = mmap(NULL, ctx->db_len, PROT_WRITE, MAP_SHARED, cmd_fd,
		       resp->db_mmap_key);
	if (ctx->db == MAP_FAILED)
		return errno;
	ret = qhca_status_map(ctx, cmd_fd, resp->status_mmap_key,
			      status ? resp->status_mmap_size : 0);
	if (ret) {
		munmap(ctx->db, ctx->db_len);
		errno = ret;
		return ret;
	}

	qhca_idr_init(&ctx->qps);
	qhca_idr_init(&ctx->srqs);
	pthread_mutex_init(&ctx->dbrec_mutex, NULL);
	list_head_init(&ctx->dbrec_pages);
	verbs_set_ops(&ctx->vctx, &qhca_context_ops);
	return 0;
}

static struct verbs_context *qhca_alloc_context(struct ibv_device *device,
						int cmd_fd, void *private_data)
{
	struct qhca_get_context_resp resp = {};
	struct qhca_get_context cmd = {};
	struct qhca_context *ctx;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	if (ibv_cmd_get_context(&ctx->vctx, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp)) ||
	    qhca_init_context(ctx, cmd_fd, &resp.drv_payload))
		goto err;
	return &ctx->vctx;

err:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	return NULL;
}

/* The kernel's context exists already: @cmd_fd refers to it. */
static struct verbs_context *qhca_import_context(struct ibv_device *device,
						 int cmd_fd)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE,
			       UVERBS_METHOD_QUERY_CONTEXT, 1);
	struct qhca_alloc_ucontext_resp resp = {};
	struct qhca_context *ctx;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	fill_attr_out(cmd, QHCA_ATTR_QUERY_CONTEXT_RESP, &resp, sizeof(resp));
	if (ibv_cmd_query_context(&ctx->vctx.context, cmd) ||
	    qhca_init_context(ctx, cmd_fd, &resp))
		goto err;
	return &ctx->vctx;

err:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	return NULL;
}

static void qhca_free_context(struct ibv_context *context)
{
	struct qhca_context *ctx = to_qctx(context);

	qhca_status_unmap(ctx);
	munmap(ctx->db, ctx->db_len);
	qhca_idr_free(&ctx->srqs);
	qhca_idr_free(&ctx->qps);
	pthread_mutex_destroy(&ctx->dbrec_mutex);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static struct verbs_device *qhca_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct qhca_device *dev;

	dev = calloc(1, sizeof(*dev));
	return dev ? &dev->vdev : NULL;
}

static void qhca_uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct qhca_device, vdev));
}

/* The kernel has no driver id for this device: match by PCI id. */
static const struct verbs_match_ent qhca_match_table[] = {
	VERBS_PCI_MATCH(QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID, NULL),
	{}
};

static const struct verbs_device_ops qhca_device_ops = {
	.name = "qhca",
	.match_min_abi_version = QHCA_UVERBS_ABI_VERSION,
	.match_max_abi_version = QHCA_UVERBS_ABI_VERSION,
	.match_table = qhca_match_table,
	.alloc_device = qhca_alloc_device,
	.uninit_device = qhca_uninit_device,
	.alloc_context = qhca_alloc_context,
	.import_context = qhca_import_context,
};

PROVIDER_DRIVER(qhca, qhca_device_ops);

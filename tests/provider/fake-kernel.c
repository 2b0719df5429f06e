/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See fake-kernel.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-kernel.h"

struct fake fake = {
    .features = QHCA_FEAT_RC | QHCA_FEAT_UC | QHCA_FEAT_UD | QHCA_FEAT_SRQ |
                QHCA_FEAT_ATOMIC | QHCA_FEAT_FAST_REG,
    .max_inline = 512,
    .next_qpn = 2,
};

static struct verbs_device *device;
static int db_fd;
static uint32_t next_cqn = 1;

static int fake_error(void)
{
    int ret = fake.fail;

    fake.fail = 0;
    return ret;
}

/* libibverbs */

void verbs_register_driver(const struct verbs_device_ops *ops)
{
    fake.device_ops = ops;
}

void *_verbs_init_and_alloc_context(struct ibv_device *dev, int cmd_fd,
                                    size_t size, struct verbs_context *offset,
                                    uint32_t driver_id)
{
    char *ctx = calloc(1, size);

    assert_int_equal(driver_id, RDMA_DRIVER_UNKNOWN);
    ((struct verbs_context *)(ctx + (uintptr_t)offset))->context.cmd_fd =
        cmd_fd;
    return ctx;
}

void verbs_uninit_context(struct verbs_context *ctx)
{
}

void verbs_set_ops(struct verbs_context *ctx,
                   const struct verbs_context_ops *ops)
{
    fake.ops = ops;
}

int ibv_dontfork_range(void *base, size_t size)
{
    assert_int_equal((uintptr_t)base % sysconf(_SC_PAGESIZE), 0);
    assert_int_equal(size % sysconf(_SC_PAGESIZE), 0);
    fake.mapped++;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    fake.mapped--;
    return 0;
}

/* The commands: only what the provider's own part depends on. */

int ibv_cmd_get_context(struct verbs_context *ctx, struct ibv_get_context *cmd,
                        size_t cmd_size,
                        struct ib_uverbs_get_context_resp *resp,
                        size_t resp_size)
{
    struct qhca_get_context_resp *r = (void *)resp;
    int err = fake_error();

    if (err) {
        errno = err;
        return err;
    }
    assert_int_equal(resp_size, sizeof(*r));
    r->db_mmap_key = 0;
    r->db_mmap_size = sysconf(_SC_PAGESIZE);
    r->max_qp_wr = 32768;
    r->max_cqe = 1 << 22;
    r->max_srq_wr = 32768;
    r->max_sge = 30;
    r->max_inline = fake.max_inline;
    r->features = fake.features;
    return 0;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
                     struct ibv_alloc_pd *cmd, size_t cmd_size,
                     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
    pd->context = context;
    pd->handle = 7;
    return fake_error();
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
    return fake_error();
}

int ibv_cmd_create_cq_ex(struct ibv_context *context,
                         const struct ibv_cq_init_attr_ex *attr,
                         struct verbs_cq *cq, struct ibv_create_cq_ex *cmd,
                         size_t cmd_size,
                         struct ib_uverbs_ex_create_cq_resp *resp,
                         size_t resp_size, uint32_t flags)
{
    struct qhca_cmd_create_cq_ex *c = (void *)cmd;
    struct qhca_cmd_create_cq_ex_resp *r = (void *)resp;
    int err = fake_error();

    if (err) {
        return err;
    }
    fake.cq = c->drv_payload;
    fake.cq_cqe = attr->cqe;
    cq->cq.context = context;
    r->cqn = next_cqn++;
    return 0;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
                      struct ibv_modify_cq *cmd, size_t cmd_size)
{
    return fake_error();
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
    return fake_error();
}

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq,
                       struct ibv_srq_init_attr *attr,
                       struct ibv_create_srq *cmd, size_t cmd_size,
                       struct ib_uverbs_create_srq_resp *resp,
                       size_t resp_size)
{
    struct qhca_cmd_create_srq *c = (void *)cmd;
    struct qhca_cmd_create_srq_resp *r = (void *)resp;
    int err = fake_error();

    if (err) {
        return err;
    }
    fake.srq = c->drv_payload;
    srq->context = pd->context;
    r->srqn = 1;
    return 0;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
                       int mask, struct ibv_modify_srq *cmd, size_t cmd_size)
{
    return fake_error();
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
                      struct ibv_query_srq *cmd, size_t cmd_size)
{
    return fake_error();
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
    return fake_error();
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
                         struct ibv_qp_init_attr_ex *attr,
                         struct ibv_create_qp *cmd, size_t cmd_size,
                         struct ib_uverbs_create_qp_resp *resp,
                         size_t resp_size)
{
    struct qhca_cmd_create_qp *c = (void *)cmd;
    struct qhca_cmd_create_qp_resp *r = (void *)resp;
    int err = fake_error();

    if (err) {
        return err;
    }
    fake.qp = c->drv_payload;
    fake.qp_cap = attr->cap;
    /* A kernel that answers less must not confuse the provider. */
    memset(&attr->cap, 0, sizeof(attr->cap));
    r->qpn = fake.next_qpn++;
    qp->qp.context = context;
    qp->qp.qp_num = r->qpn;
    qp->qp.qp_type = attr->qp_type;
    qp->qp.state = IBV_QPS_RESET;
    qp->comp_mask = 0;          /* as the real one does */
    return 0;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                      struct ibv_modify_qp *cmd, size_t cmd_size)
{
    return fake_error();
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                     struct ibv_qp_init_attr *init_attr,
                     struct ibv_query_qp *cmd, size_t cmd_size)
{
    return fake_error();
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
    return fake_error();
}

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah,
                      struct ibv_ah_attr *attr,
                      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
    struct qhca_cmd_create_ah_resp *r = (void *)resp;

    assert_int_equal(resp_size, sizeof(*r));
    memcpy(r->dmac, "\x02\x11\x22\x33\x44\x55", 6);
    return fake_error();
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
    return fake_error();
}

int ibv_cmd_query_device_any(struct ibv_context *context,
                             const struct ibv_query_device_ex_input *input,
                             struct ibv_device_attr_ex *attr, size_t attr_size,
                             struct ib_uverbs_ex_query_device_resp *resp,
                             size_t *resp_size)
{
    resp->base.fw_ver = 0x01020003;
    return fake_error();
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port,
                       struct ibv_port_attr *attr, struct ibv_query_port *cmd,
                       size_t cmd_size)
{
    return fake_error();
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t va,
                   int access, struct verbs_mr *vmr, struct ibv_reg_mr *cmd,
                   size_t cmd_size, struct ib_uverbs_reg_mr_resp *resp,
                   size_t resp_size)
{
    return fake_error();
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                          uint64_t iova, int fd, int access,
                          struct verbs_mr *vmr, struct ibv_command_buffer *drv)
{
    return fake_error();
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
    return fake_error();
}

/* Helpers of the tests */

void fake_open(void)
{
    struct verbs_context *ctx;
    long page = sysconf(_SC_PAGESIZE);

    fake.mapped = 0;
    db_fd = memfd_create("doorbells", 0);
    assert_int_not_equal(db_fd, -1);
    assert_int_equal(ftruncate(db_fd, page), 0);
    fake.db = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, db_fd, 0);
    assert_ptr_not_equal(fake.db, MAP_FAILED);
    device = fake.device_ops->alloc_device(NULL);
    assert_non_null(device);
    ctx = fake.device_ops->alloc_context(&device->device, db_fd, NULL);
    assert_non_null(ctx);
    fake.context = &ctx->context;
}

void fake_close(void)
{
    fake.ops->free_context(fake.context);
    fake.device_ops->uninit_device(device);
    munmap((void *)fake.db, sysconf(_SC_PAGESIZE));
    close(db_fd);
    /* Every ring and every page of doorbell records was given back. */
    assert_int_equal(fake.mapped, 0);
}

void fake_cqe(struct qhca_cq *cq, uint32_t prod, struct qhca_cqe cqe)
{
    struct qhca_cqe *slot = &cq->ring[prod % (1U << cq->shift)];

    cqe.phase = !((prod / (1U << cq->shift)) & 1);
    *slot = cqe;
}

struct ibv_pd *fake_pd(void)
{
    struct ibv_pd *pd = qhca_alloc_pd(fake.context);

    assert_non_null(pd);
    return pd;
}

struct qhca_cq *fake_cq(uint32_t cqe)
{
    struct ibv_cq *cq = qhca_create_cq(fake.context, cqe, NULL, 0);

    assert_non_null(cq);
    return to_qcq(cq);
}

struct qhca_qp *fake_qp(struct ibv_pd *pd, struct qhca_cq *cq,
                        struct ibv_srq *srq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = &cq->vcq.cq,
        .recv_cq = &cq->vcq.cq,
        .srq = srq,
        .cap = {
            .max_send_wr = 64,
            .max_recv_wr = 64,
            .max_send_sge = 1,
            .max_recv_sge = 1,
        },
        .qp_type = type,
    };
    struct ibv_qp *qp = qhca_create_qp(pd, &attr);

    assert_non_null(qp);
    return to_qqp(qp);
}

void fake_qp_state(struct qhca_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };

    assert_int_equal(qhca_modify_qp(&qp->vqp.qp, &attr, IBV_QP_STATE), 0);
    qp->vqp.qp.state = state;
}

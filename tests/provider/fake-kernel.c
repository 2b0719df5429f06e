/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See fake-kernel.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>

#include "fake-kernel.h"

struct fake fake = {
    .features = QHCA_FEAT_RC | QHCA_FEAT_UC | QHCA_FEAT_UD | QHCA_FEAT_SRQ |
                QHCA_FEAT_ATOMIC | QHCA_FEAT_FAST_REG | QHCA_FEAT_XRC |
                QHCA_FEAT_FLUSH | QHCA_FEAT_ATOMIC_WRITE |
                QHCA_FEAT_MW | QHCA_FEAT_REREG | QHCA_FEAT_CQ_RESIZE |
                QHCA_FEAT_FLOW | QHCA_FEAT_RAW_PACKET | QHCA_FEAT_RSS |
                QHCA_FEAT_SRQ_RESIZE,
    .max_inline = 512,
    .next_qpn = 2,
    .next_srqn = 70,
};

/* in the file of what can be mapped: doorbells, device memory, status */
#define STATUS_PAGE (1 + FAKE_DM_PAGES)
#define FILE_PAGES (STATUS_PAGE + 1)

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
    if (!fake.no_status) {
        r->comp_mask = QHCA_UCONTEXT_RESP_STATUS;
        r->status_mmap_key = STATUS_PAGE * sysconf(_SC_PAGESIZE);
        r->status_mmap_size = sysconf(_SC_PAGESIZE);
    }
    r->db_mmap_key = 0;
    r->db_mmap_size = sysconf(_SC_PAGESIZE);
    r->max_qp_wr = fake.limit ? fake.limit : 32768;
    r->max_cqe = fake.limit ? fake.limit : 1 << 22;
    r->max_srq_wr = fake.limit ? fake.limit : 32768;
    r->max_sge = fake.limit ? fake.limit : 30;
    r->max_inline = fake.max_inline;
    r->features = fake.features;
    if (!fake.old_driver) {
        r->comp_mask |= QHCA_UCONTEXT_RESP_SQ_RECORD;
    }
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

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd,
                      size_t cmd_size, struct ib_uverbs_resize_cq_resp *resp,
                      size_t resp_size)
{
    struct qhca_cmd_resize_cq *c = (void *)cmd;
    int err = fake_error();

    fake.resize = c->drv_payload;
    if (!err && fake.on_resize) {
        fake.on_resize(to_qcq(cq));
    }
    cq->cqe = err ? cq->cqe : cqe;
    return err;
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

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
                          struct ibv_srq_init_attr_ex *attr,
                          struct ibv_create_xsrq *cmd, size_t cmd_size,
                          struct ib_uverbs_create_srq_resp *resp,
                          size_t resp_size)
{
    struct qhca_cmd_create_srq_ex *c = (void *)cmd;
    struct qhca_cmd_create_srq_ex_resp *r = (void *)resp;
    int err = fake_error();

    if (err) {
        return err;
    }
    fake.srq = c->drv_payload;
    fake.srq_attr = *attr;
    srq->srq.context = context;
    srq->srq_type = attr->srq_type;
    srq->cq = attr->cq;
    srq->srq_num = fake.next_srqn;
    r->srqn = fake.next_srqn++;
    return 0;
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd,
                      int size, struct ibv_xrcd_init_attr *attr,
                      struct ibv_open_xrcd *cmd, size_t cmd_size,
                      struct ib_uverbs_open_xrcd_resp *resp,
                      size_t resp_size)
{
    int err = fake_error();

    if (!err) {
        xrcd->xrcd.context = context;
    }
    return err;
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
    return fake_error();
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp,
                    int size, struct ibv_qp_open_attr *attr,
                    struct ibv_open_qp *cmd, size_t cmd_size,
                    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
    int err = fake_error();

    if (!err) {
        qp->qp.context = context;
        qp->qp.qp_num = attr->qp_num;
        qp->qp.qp_type = attr->qp_type;
    }
    return err;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
                       int mask, struct ibv_modify_srq *cmd, size_t cmd_size)
{
    struct qhca_cmd_modify_srq *c = (void *)cmd;

    if (mask & IBV_SRQ_MAX_WR) {
        assert_int_equal(cmd_size, sizeof(*c));
        fake.grow = c->drv_payload;
    }
    fake.srq_mask = mask;
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

int ibv_cmd_create_qp_ex2(struct ibv_context *context, struct verbs_qp *qp,
                          struct ibv_qp_init_attr_ex *attr,
                          struct ibv_create_qp_ex *cmd, size_t cmd_size,
                          struct ib_uverbs_ex_create_qp_resp *resp,
                          size_t resp_size)
{
    struct qhca_cmd_create_qp_ex *c = (void *)cmd;
    struct qhca_cmd_create_qp_ex_resp *r = (void *)resp;
    int err = fake_error();

    if (err) {
        return err;
    }
    if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) {
        fake.rss = ((struct qhca_cmd_create_rss_qp *)cmd)->drv_payload;
    } else {
        fake.qp = c->drv_payload;
    }
    fake.qp_cap = attr->cap;
    /* A kernel with a shorter response must not confuse the provider. */
    memset(&attr->cap, 0, sizeof(attr->cap));
    qp->qp.context = context;
    qp->qp.qp_num = fake.next_qpn++;
    /* the driver does not know the opener of a target */
    if (attr->qp_type != IBV_QPT_XRC_RECV) {
        r->qpn = qp->qp.qp_num;
    }
    qp->qp.qp_type = attr->qp_type;
    qp->qp.state = IBV_QPS_RESET;
    qp->comp_mask = 0;          /* as the real one does */
    return 0;
}

int ibv_cmd_create_wq(struct ibv_context *context,
                      struct ibv_wq_init_attr *attr, struct ibv_wq *wq,
                      struct ibv_create_wq *cmd, size_t cmd_size,
                      struct ib_uverbs_ex_create_wq_resp *resp,
                      size_t resp_size)
{
    struct qhca_cmd_create_wq *c = (void *)cmd;
    struct qhca_cmd_create_wq_resp *r = (void *)resp;
    int err = fake_error();

    if (err) {
        return err;
    }
    fake.wq = c->drv_payload;
    r->wqn = fake.next_qpn++;
    wq->context = context;
    wq->wq_num = r->wqn;
    return 0;
}

int ibv_cmd_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr,
                      struct ibv_modify_wq *cmd, size_t cmd_size)
{
    int err = fake_error();

    if (!err && (attr->attr_mask & IBV_WQ_ATTR_STATE)) {
        wq->state = attr->wq_state;     /* as the real one does */
    }
    return err;
}

int ibv_cmd_destroy_wq(struct ibv_wq *wq)
{
    return fake_error();
}

int ibv_cmd_create_rwq_ind_table(struct ibv_context *context,
                                 struct ibv_rwq_ind_table_init_attr *attr,
                                 struct ibv_rwq_ind_table *table,
                                 struct ib_uverbs_ex_create_rwq_ind_table_resp
                                 *resp, size_t resp_size)
{
    table->context = context;
    return fake_error();
}

int ibv_cmd_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
    return fake_error();
}

int ibv_cmd_create_flow(struct ibv_qp *qp, struct ibv_flow *flow,
                        struct ibv_flow_attr *attr, void *ucmd, size_t size)
{
    flow->context = qp->context;
    return fake_error();
}

int ibv_cmd_destroy_flow(struct ibv_flow *flow)
{
    return fake_error();
}

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
                         uint16_t lid)
{
    return fake_error();
}

int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
                         uint16_t lid)
{
    return fake_error();
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

int ibv_cmd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
                      uint32_t flags, struct ibv_sge *sges, uint32_t num)
{
    return fake_error();
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr,
                     size_t length, uint64_t va, int access,
                     struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
                     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp,
                     size_t resp_size)
{
    assert_int_equal(va, (uintptr_t)addr);
    return fake_error();
}

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type,
                     struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
                     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp,
                     size_t resp_size)
{
    mw->context = pd->context;
    mw->pd = pd;
    mw->type = type;
    mw->rkey = 0x1234ff;
    return fake_error();
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
    return fake_error();
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
    return fake_error();
}

/* The ioctl interface: finds the attribute and stores @val there. */
static void attr_out(struct ibv_command_buffer *cmd, uint16_t id, uint64_t val)
{
    struct ib_uverbs_attr *attr;

    for (attr = cmd->hdr.attrs; attr < cmd->next_attr; attr++) {
        if (attr->attr_id == id) {
            assert_true(attr->len == 4 || attr->len == 8);
            memcpy((void *)(uintptr_t)attr->data, &val, attr->len);
            return;
        }
    }
    fail_msg("no attribute %#x", id);
}

static int set_errno(int err)
{
    if (err) {
        errno = err;
    }
    return err;
}

int ibv_cmd_alloc_dm(struct ibv_context *ctx,
                     const struct ibv_alloc_dm_attr *attr, struct verbs_dm *dm,
                     struct ibv_command_buffer *link)
{
    long page = sysconf(_SC_PAGESIZE);
    int err = fake_error();

    if (!err && attr->length > FAKE_DM_PAGES * page) {
        err = ENOMEM;
    }
    if (err) {
        return set_errno(err);
    }
    fake.dm_length = attr->length;
    attr_out(link, QHCA_ATTR_ALLOC_DM_RESP_MMAP_KEY, page);
    attr_out(link, QHCA_ATTR_ALLOC_DM_RESP_MMAP_SIZE,
             (attr->length + page - 1) / page * page);
    dm->handle = dm->dm.handle = FAKE_HANDLE;
    return 0;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
    assert_int_equal(dm->handle, FAKE_HANDLE);
    return fake_error();
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset,
                      size_t length, unsigned int access,
                      struct verbs_mr *vmr, struct ibv_command_buffer *link)
{
    assert_int_equal(dm->handle, FAKE_HANDLE);
    return set_errno(fake_error());
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t handle)
{
    vmr->ibv_mr.handle = handle;
    return set_errno(handle == FAKE_HANDLE ? 0 : ENOENT);
}

int ibv_cmd_query_context(struct ibv_context *ctx,
                          struct ibv_command_buffer *driver)
{
    return set_errno(EOPNOTSUPP);
}

/* Provider-specific methods: on an object whose handle comes first. */
int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
    long page = sysconf(_SC_PAGESIZE);

    if (cmd->hdr.attrs[0].data != FAKE_HANDLE) {
        return set_errno(ENOENT);
    }
    if (cmd->hdr.object_id == UVERBS_OBJECT_PD &&
        cmd->hdr.method_id == QHCA_METHOD_PD_QUERY) {
        attr_out(cmd, QHCA_ATTR_PD_QUERY_RESP_PDN, 1);
        return 0;
    }
    assert_int_equal(cmd->hdr.object_id, UVERBS_OBJECT_DM);
    assert_int_equal(cmd->hdr.method_id, QHCA_METHOD_DM_QUERY);
    attr_out(cmd, QHCA_ATTR_DM_QUERY_RESP_MMAP_KEY, page);
    attr_out(cmd, QHCA_ATTR_DM_QUERY_RESP_MMAP_SIZE,
             (fake.dm_length + page - 1) / page * page);
    attr_out(cmd, QHCA_ATTR_DM_QUERY_RESP_LENGTH, fake.dm_length);
    return 0;
}

/* Helpers of the tests */

void fake_open(void)
{
    struct verbs_context *ctx;
    long page = sysconf(_SC_PAGESIZE);

    fake.mapped = 0;
    db_fd = memfd_create("doorbells", 0);
    assert_int_not_equal(db_fd, -1);
    assert_int_equal(ftruncate(db_fd, FILE_PAGES * page), 0);
    fake.db = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, db_fd, 0);
    assert_ptr_not_equal(fake.db, MAP_FAILED);
    fake.status = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, db_fd,
                       STATUS_PAGE * page);
    assert_ptr_not_equal(fake.status, MAP_FAILED);
    fake.status->works = 1;
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
    munmap(fake.status, sysconf(_SC_PAGESIZE));
    close(db_fd);
    /* Every ring and every page of doorbell records was freed. */
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The admin queue: each command is copied once, checked against the table
 * below, and completed in order.
 *
 * A guest may fill the ring with the most expensive commands, so each call is
 * limited by cost, not by the number of commands.  A single command that
 * exceeds the limit is done in parts (QHCA_ST_AGAIN).
 */
#include "adapter/adapter.h"

#define ADMIN_BATCH         32
#define ADMIN_COST          1024    /* memory accesses; see qhca_cost() */
#define ADMIN_MAX_IN        (QHCA_MC_LIST_MAX * sizeof(struct qhca_mac))
#define ADMIN_MAX_OUT       768

#define F_IN_ANY            1   /* input of any length from 0 to in bytes */
#define F_OUT_SHORT         2   /* output may be truncated */
#define F_REVOKES           4   /* it is completed when peers' copies end */

struct command {
    qhca_cmd_fn *fn;            /* NULL: no such command */
    uint16_t in, out;           /* bytes */
    uint8_t flags;
};

static const struct command commands[] = {
    [QHCA_CMD_NOP] = { qhca_cmd_nop, 0, 0, 0 },
    [QHCA_CMD_QUERY_DEVICE] = {
        qhca_cmd_query_device, 0, sizeof(struct qhca_dev_caps), 0 },
    [QHCA_CMD_QUERY_PORT] = {
        qhca_cmd_query_port, 0, sizeof(struct qhca_port), 0 },
    [QHCA_CMD_MODIFY_PORT] = {
        qhca_cmd_modify_port, sizeof(struct qhca_port), 0, 0 },
    [QHCA_CMD_QUERY_STATS] = {
        qhca_cmd_query_stats, 0, QHCA_STAT_COUNT * 8, F_OUT_SHORT },
    [QHCA_CMD_SET_GID] = {
        qhca_cmd_set_gid, sizeof(struct qhca_gid), 0, 0 },
    [QHCA_CMD_QUERY_GID] = {
        qhca_cmd_query_gid, 0, sizeof(struct qhca_gid), 0 },
    [QHCA_CMD_SET_MC_LIST] = {
        qhca_cmd_set_mc_list, ADMIN_MAX_IN, 0, F_IN_ANY },
    [QHCA_CMD_ALLOC_UAR] = { qhca_cmd_alloc_uar, 0, 0, 0 },
    [QHCA_CMD_FREE_UAR] = { qhca_cmd_free_uar, 0, 0, 0 },
    [QHCA_CMD_ALLOC_PD] = { qhca_cmd_alloc_pd, 0, 0, 0 },
    [QHCA_CMD_FREE_PD] = { qhca_cmd_free_pd, 0, 0, 0 },
    [QHCA_CMD_ALLOC_XRCD] = { qhca_cmd_alloc_xrcd, 0, 0, 0 },
    [QHCA_CMD_FREE_XRCD] = { qhca_cmd_free_xrcd, 0, 0, 0 },
    [QHCA_CMD_CREATE_EQ] = {
        qhca_cmd_create_eq, sizeof(struct qhca_eqc), 0, 0 },
    [QHCA_CMD_DESTROY_EQ] = { qhca_cmd_destroy_eq, 0, 0, 0 },
    [QHCA_CMD_QUERY_EQ] = {
        qhca_cmd_query_eq, 0, sizeof(struct qhca_eqc), 0 },
    [QHCA_CMD_CREATE_CQ] = {
        qhca_cmd_create_cq, sizeof(struct qhca_cqc), 0, 0 },
    [QHCA_CMD_MODIFY_CQ] = {
        qhca_cmd_modify_cq, sizeof(struct qhca_cqc), 0, 0 },
    [QHCA_CMD_DESTROY_CQ] = { qhca_cmd_destroy_cq, 0, 0, 0 },
    [QHCA_CMD_QUERY_CQ] = {
        qhca_cmd_query_cq, 0, sizeof(struct qhca_cqc), 0 },
    [QHCA_CMD_CREATE_SRQ] = {
        qhca_cmd_create_srq, sizeof(struct qhca_srqc), 0, 0 },
    [QHCA_CMD_MODIFY_SRQ] = {
        qhca_cmd_modify_srq, sizeof(struct qhca_srqc), 0, 0 },
    [QHCA_CMD_DESTROY_SRQ] = { qhca_cmd_destroy_srq, 0, 0, 0 },
    [QHCA_CMD_QUERY_SRQ] = {
        qhca_cmd_query_srq, 0, sizeof(struct qhca_srqc), 0 },
    [QHCA_CMD_CREATE_QP] = {
        qhca_cmd_create_qp, sizeof(struct qhca_qpc), 0, 0 },
    [QHCA_CMD_MODIFY_QP] = {
        qhca_cmd_modify_qp, sizeof(struct qhca_qpc), 0, F_REVOKES },
    [QHCA_CMD_DESTROY_QP] = { qhca_cmd_destroy_qp, 0, 0, F_REVOKES },
    [QHCA_CMD_QUERY_QP] = {
        qhca_cmd_query_qp, 0, sizeof(struct qhca_qpc), 0 },
    [QHCA_CMD_QUERY_PAGE_FAULT] = {
        qhca_cmd_query_page_fault, 0,
        QHCA_PAGE_FAULT_SIDES * sizeof(struct qhca_page_fault), 0 },
    [QHCA_CMD_RESUME_PAGE_FAULT] = { qhca_cmd_resume_page_fault, 0, 0, 0 },
    [QHCA_CMD_ATTACH_MC] = {
        qhca_cmd_attach_mc, sizeof(struct qhca_mcg), 0, 0 },
    [QHCA_CMD_DETACH_MC] = {
        qhca_cmd_detach_mc, sizeof(struct qhca_mcg), 0, 0 },
    [QHCA_CMD_CREATE_MR] = {
        qhca_cmd_create_mr, sizeof(struct qhca_mpt), 0, 0 },
    [QHCA_CMD_DESTROY_MR] = { qhca_cmd_destroy_mr, 0, 0, F_REVOKES },
    [QHCA_CMD_QUERY_MR] = {
        qhca_cmd_query_mr, 0, sizeof(struct qhca_mpt), 0 },
    [QHCA_CMD_MODIFY_MR] = {
        qhca_cmd_modify_mr, sizeof(struct qhca_mpt), 0, F_REVOKES },
    [QHCA_CMD_CREATE_MW] = {
        qhca_cmd_create_mw, sizeof(struct qhca_mpt), 0, 0 },
    [QHCA_CMD_CREATE_ETH_SQ] = {
        qhca_cmd_create_eth_sq, sizeof(struct qhca_eth_qc), 0, 0 },
    [QHCA_CMD_DESTROY_ETH_SQ] = { qhca_cmd_destroy_eth_sq, 0, 0, 0 },
    [QHCA_CMD_QUERY_ETH_SQ] = {
        qhca_cmd_query_eth_sq, 0, sizeof(struct qhca_eth_qc), 0 },
    [QHCA_CMD_MODIFY_ETH_SQ] = {
        qhca_cmd_modify_eth_sq, sizeof(struct qhca_eth_qc), 0, 0 },
    [QHCA_CMD_CREATE_ETH_RQ] = {
        qhca_cmd_create_eth_rq, sizeof(struct qhca_eth_qc), 0, 0 },
    [QHCA_CMD_MODIFY_ETH_RQ] = {
        qhca_cmd_modify_eth_rq, sizeof(struct qhca_eth_qc), 0, 0 },
    [QHCA_CMD_DESTROY_ETH_RQ] = { qhca_cmd_destroy_eth_rq, 0, 0, 0 },
    [QHCA_CMD_QUERY_ETH_RQ] = {
        qhca_cmd_query_eth_rq, 0, sizeof(struct qhca_eth_qc), 0 },
    [QHCA_CMD_CREATE_WQ] = {
        qhca_cmd_create_wq, sizeof(struct qhca_wqc), 0, 0 },
    [QHCA_CMD_MODIFY_WQ] = {
        qhca_cmd_modify_wq, sizeof(struct qhca_wqc), 0, 0 },
    [QHCA_CMD_DESTROY_WQ] = { qhca_cmd_destroy_wq, 0, 0, 0 },
    [QHCA_CMD_QUERY_WQ] = {
        qhca_cmd_query_wq, 0, sizeof(struct qhca_wqc), 0 },
    [QHCA_CMD_CREATE_RQT] = {
        qhca_cmd_create_rqt, QHCA_RQT_WQS_MAX * 4, 0, F_IN_ANY },
    [QHCA_CMD_DESTROY_RQT] = { qhca_cmd_destroy_rqt, 0, 0, 0 },
    [QHCA_CMD_CREATE_FLOW] = {
        qhca_cmd_create_flow, sizeof(struct qhca_flow), 0, 0 },
    [QHCA_CMD_DESTROY_FLOW] = { qhca_cmd_destroy_flow, 0, 0, 0 },
    [QHCA_CMD_CREATE_SHAPER] = {
        qhca_cmd_create_shaper, sizeof(struct qhca_shaperc), 0, 0 },
    [QHCA_CMD_DESTROY_SHAPER] = { qhca_cmd_destroy_shaper, 0, 0, 0 },
    [QHCA_CMD_MODIFY_SHAPER] = {
        qhca_cmd_modify_shaper, sizeof(struct qhca_shaperc), 0, 0 },
    [QHCA_CMD_QUERY_SHAPER] = {
        qhca_cmd_query_shaper, 0, sizeof(struct qhca_shaperc), 0 },
};

_Static_assert(sizeof(struct qhca_qpc) <= ADMIN_MAX_OUT &&
               QHCA_STAT_COUNT * 8 <= ADMIN_MAX_OUT, "output buffer");
_Static_assert(QHCA_RQT_WQS_MAX * 4 <= ADMIN_MAX_IN, "input buffer");
_Static_assert(sizeof(struct qhca_qpc) <= ADMIN_MAX_IN, "input buffer");
_Static_assert(sizeof(struct qhca_cqc) <= ADMIN_MAX_IN, "input buffer");

static uint8_t cmd_call(struct qhca *e, const struct command *d,
                        struct qhca_cmd *c)
{
    uint8_t st;

    e->ml->defer = d->flags & F_REVOKES;
    st = d->fn(e, c);
    e->ml->defer = false;
    return st;
}

/* Fetch and check the input, to @in, run the command, write the output. */
static uint8_t admin_execute(struct qhca *e, const struct qhca_aq_cmd *cmd,
                             struct qhca_cmd *c, uint8_t *in)
{
    uint64_t in_addr = qhca_le64(cmd->in_addr);
    uint64_t out_addr = qhca_le64(cmd->out_addr);
    uint32_t out_len = qhca_le32(cmd->out_len);
    const struct command *d;
    uint8_t st;

    if (cmd->opcode >= sizeof(commands) / sizeof(commands[0]) ||
        !commands[cmd->opcode].fn) {
        return QHCA_ST_BAD_OPCODE;
    }
    d = &commands[cmd->opcode];
    if (cmd->flags) {
        return QHCA_ST_BAD_PARAM;
    }
    c->in_len = qhca_le32(cmd->in_len);
    if (d->in) {
        if (c->in_len > d->in ||
            (c->in_len != d->in && !(d->flags & F_IN_ANY)) ||
            (in_addr & 63)) {
            return QHCA_ST_BAD_PARAM;
        }
        if (c->in_len && !qhca_dma_read(e, QHCA_DMA_COMMAND, c->obj, in_addr,
                                        in, c->in_len)) {
            return QHCA_ST_DMA_ERROR;
        }
    }
    if (d->out) {
        if ((out_len < d->out && !(d->flags & F_OUT_SHORT)) ||
            (out_addr & 63)) {
            return QHCA_ST_BAD_PARAM;
        }
        out_len = out_len < d->out ? out_len : d->out;
        memset(c->out, 0, d->out);
    }
    st = cmd_call(e, d, c);
    if (st == QHCA_ST_OK && d->out && out_len &&
        !qhca_dma_write(e, QHCA_DMA_COMMAND, c->obj, out_addr, c->out,
                        out_len)) {
        return QHCA_ST_DMA_ERROR;
    }
    return st;
}

static void trace_command(struct qhca *e, const struct qhca_aq_cmd *cmd,
                          const struct qhca_cmd *c, uint8_t status)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_COMMAND, .num = c->obj, .a = cmd->opcode,
        .b = status,
    };

    qhca_trace_emit(e, &t);
}

/* Complete the command at asq_cons; false: this has failed. */
static bool admin_complete(struct qhca *e, const struct qhca_aq_cmd *cmd,
                           const struct qhca_cmd *c, uint8_t status)
{
    uint32_t index = e->ad->asq_cons++;
    uint32_t slot = index & ((1u << e->ad->aq_shift) - 1);
    uint64_t addr = e->ad->acq_base + slot * sizeof(struct qhca_aq_cqe);
    struct qhca_aq_cqe cqe = {
        .result = qhca_le64(c->result),
        .obj = qhca_le32(c->obj),
        .cmd_id = cmd->cmd_id,
        .status = status,
        .phase = !((index >> e->ad->aq_shift) & 1),
    };

    e->ad->job.busy = false;
    e->ml->deferred = false;
    qhca_count(e, QHCA_STAT_AQ_COMMANDS);
    if (status) {
        qhca_count(e, QHCA_STAT_AQ_ERRORS);
    }
    if (qhca_tracing(e)) {
        trace_command(e, cmd, c, status);
    }
    if (!qhca_dma_write(e, QHCA_DMA_COMMAND, c->obj, addr, &cqe, 8) ||
        !qhca_dma_store64(e, QHCA_DMA_COMMAND, c->obj, addr + 8,
                          qhca_get_le64((uint8_t *)&cqe + 8))) {
        qhca_fatal(e, QHCA_FATAL_AQ_DMA);
        return false;
    }
    if (e->ad->aq_ctrl & QHCA_AQ_CTRL_IRQ) {
        qhca_msix(e, 0);
    }
    return true;
}

/* Keep what an unfinished command needs to continue. */
static void admin_interrupted(struct qhca *e, const struct qhca_aq_cmd *cmd,
                              const struct qhca_cmd *c)
{
    struct qhca_aq_job *job = &e->ad->job;

    if (!job->busy) {
        memset(job, 0, sizeof(*job));
        job->busy = true;
        job->cmd = *cmd;
        if (commands[cmd->opcode].in) {
            memcpy(&job->in, c->in, sizeof(job->in));
        }
    }
}

/* Continue the command of e->ad->job. */
static uint8_t cmd_continue(struct qhca *e, struct qhca_cmd *c)
{
    c->in = &e->ad->job.in;
    c->in_len = sizeof(e->ad->job.in);
    c->again = true;
    return cmd_call(e, &commands[e->ad->job.cmd.opcode], c);
}

/* A peer is copying from memory that the command has revoked. */
static void admin_hold(struct qhca *e, const struct qhca_aq_cmd *cmd,
                       const struct qhca_cmd *c, uint8_t status)
{
    struct qhca_aq_job *job = &e->ad->job;

    job->busy = false;
    job->held = true;
    job->cmd = *cmd;
    job->cmd.obj = qhca_le32(c->obj);
    job->status = status;
    job->result = c->result;
}

/* Complete the command that is held, if no peer is copying any more. */
static bool admin_release(struct qhca *e)
{
    const struct qhca_aq_job *job = &e->ad->job;
    const struct qhca_aq_cmd cmd = job->cmd;
    const struct qhca_cmd c = {
        .obj = qhca_le32(cmd.obj), .result = job->result,
    };

    if (!qhca_memlinks_settled(e)) {
        return false;
    }
    e->ad->job.held = false;
    return admin_complete(e, &cmd, &c, job->status);
}

/* Run one command, or a part of one; false: stop for now. */
static bool cmd_run(struct qhca *e)
{
    uint32_t slot = e->ad->asq_cons & ((1u << e->ad->aq_shift) - 1);
    _Alignas(8) uint8_t in[ADMIN_MAX_IN];
    _Alignas(8) uint8_t out[ADMIN_MAX_OUT];
    struct qhca_aq_cmd cmd;
    struct qhca_cmd c;
    uint8_t status;

    if (e->faults && e->hooks->command_waits(e)) {
        return false;
    }
    if (e->ad->job.held) {
        return admin_release(e);
    }
    if (e->ad->job.busy) {
        cmd = e->ad->job.cmd;
    } else if (!qhca_dma_read(e, QHCA_DMA_COMMAND, 0,
                              e->ad->asq_base + slot * sizeof(cmd), &cmd,
                              sizeof(cmd))) {
        qhca_fatal(e, QHCA_FATAL_AQ_DMA);
        return false;
    }
    /*
     * A command may stop the queue of held packets, so these are delivered
     * first.  MODIFY_CQ cannot, and software with adaptive moderation issues it
     * while frames arrive.
     */
    if (cmd.opcode != QHCA_CMD_MODIFY_CQ &&
        (!qhca_gro_flush(e) || !qhca_active(e))) {
        return false;           /* more is held, or cannot be delivered */
    }
    if (qhca_faulty(e, QHCA_FLT_AT_COMMAND) && !e->ad->job.busy &&
        e->hooks->command_late(e, cmd.opcode)) {
        return false;
    }
    memset(&c, 0, sizeof(c));
    c.obj = qhca_le32(cmd.obj);
    c.mask = qhca_le64(cmd.mask);
    c.arg = qhca_le64(cmd.arg);
    c.in = in;
    c.out = out;
    status = e->ad->job.busy ? cmd_continue(e, &c) :
                               admin_execute(e, &cmd, &c, in);
    if (status == QHCA_ST_AGAIN) {
        admin_interrupted(e, &cmd, &c);
        return false;
    }
    if (e->ml->deferred && !qhca_memlinks_settled(e)) {
        admin_hold(e, &cmd, &c, status);
        return false;
    }
    return admin_complete(e, &cmd, &c, status);
}

bool qhca_admin_pending(struct qhca *e)
{
    if (e->ad->asq_cons == e->ad->asq_prod ||
        (e->faults && e->hooks->command_waits(e))) {
        return false;
    }
    if (!e->ad->job.held || qhca_memlinks_settled(e)) {
        return true;
    }
    if (e->ad->asq_prod - e->ad->asq_cons > 1) {
        qhca_memlinks_hurry(e);         /* others wait for it */
    }
    return false;
}

void qhca_admin_run(struct qhca *e)
{
    unsigned n;

    /* Free objects faster than a guest can create them, reset by reset. */
    qhca_remains_free(e, 8 * ADMIN_BATCH);
    e->command_end = e->cost + ADMIN_COST;
    for (n = 0; n < ADMIN_BATCH && e->ad->asq_cons != e->ad->asq_prod; n++) {
        if (!qhca_active(e) || (n && qhca_command_spent(e)) || !cmd_run(e)) {
            return;
        }
    }
}

/* ---- saved state ---- */

/* The commands that are done in parts. */
static bool cmd_can_be_unfinished(const struct qhca_aq_cmd *cmd)
{
    return (cmd->opcode == QHCA_CMD_MODIFY_CQ &&
            (qhca_le64(cmd->mask) & QHCA_CQ_M_RESIZE)) ||
           cmd->opcode == QHCA_CMD_DESTROY_EQ ||
           cmd->opcode == QHCA_CMD_DESTROY_QP ||
           cmd->opcode == QHCA_CMD_DESTROY_SRQ;
}

static void save_unfinished_command(struct qhca_io *io)
{
    struct qhca *e = io->e;
    struct qhca_aq_job *job = &e->ad->job;
    const struct qhca_cq *cq;
    bool resize;

    qhca_io_bytes(io, &job->cmd, sizeof(job->cmd));
    qhca_io_bytes(io, &job->in, sizeof(job->in));
    resize = job->cmd.opcode == QHCA_CMD_MODIFY_CQ;
    cq = qhca_idr_get(&e->q->cqs, qhca_le32(job->cmd.obj));
    if (NEED(io, cmd_can_be_unfinished(&job->cmd) && (cq || !resize),
             "an unfinished command is invalid") && resize) {
        qhca_io_cq_resize(io, cq);
    }
}

static void save_held_command(struct qhca_io *io)
{
    struct qhca_aq_job *job = &io->e->ad->job;

    qhca_io_bytes(io, &job->cmd, sizeof(job->cmd));
    IO(io, job->status);
    IO(io, job->result);
    NEED(io, job->cmd.opcode < sizeof(commands) / sizeof(commands[0]) &&
         (commands[job->cmd.opcode].flags & F_REVOKES) &&
         job->status <= QHCA_ST_BAD_TABLE, "a command that is held is invalid");
}

void qhca_io_admin(struct qhca_io *io)
{
    struct qhca_adapter *ad = io->e->ad;
    struct qhca_aq_job *job = &ad->job;

    IO(io, job->busy);
    if (job->busy) {
        save_unfinished_command(io);
    }
    IO_SINCE(io, 2, job->held);
    if (job->held) {
        save_held_command(io);
    }
    NEED(io, (!job->busy && !job->held) ||
         (io->e->ready_flag && ad->asq_cons != ad->asq_prod &&
          job->busy != job->held),
         "a command is unfinished, but there is none");
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: identity, registers, commands, a message, reset.  The device's own
 * project tests all commands, queues and packets.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/pci.h"
#include "libqos/pci-pc.h"
#include "hw/pci/pci_regs.h"
#include "../../hw/net/qhca/include/rdma/qhca-hw.h"

static void test_identity(void)
{
    QTestState *qts = qtest_init("-M q35 -device qhca,addr=4.0");
    QPCIBus *bus = qpci_new_pc(qts, NULL);
    QPCIDevice *dev = qpci_device_find(bus, QPCI_DEVFN(4, 0));
    QPCIBar regs;

    g_assert_nonnull(dev);
    g_assert_cmphex(qpci_config_readw(dev, PCI_VENDOR_ID), ==,
                    QHCA_PCI_VENDOR_ID);
    g_assert_cmphex(qpci_config_readw(dev, PCI_DEVICE_ID), ==,
                    QHCA_PCI_DEVICE_ID);
    qpci_device_enable(dev);
    regs = qpci_iomap(dev, QHCA_BAR_REGS, NULL);
    g_assert_cmphex(qpci_io_readl(dev, regs, QHCA_REG_ID), ==,
                    QHCA_ID_MAGIC);
    g_assert_cmphex(qpci_io_readl(dev, regs, QHCA_REG_VERSION), ==,
                    QHCA_VERSION_MAJOR << 16 | QHCA_VERSION_MINOR);
    g_free(dev);
    qpci_free_pc(bus);
    qtest_quit(qts);
}

static void test_reset(void)
{
    QTestState *qts = qtest_init("-M q35 -device qhca,addr=4.0");
    QPCIBus *bus = qpci_new_pc(qts, NULL);
    QPCIDevice *dev = qpci_device_find(bus, QPCI_DEVFN(4, 0));
    QPCIBar regs;

    g_assert_nonnull(dev);
    qpci_device_enable(dev);
    regs = qpci_iomap(dev, QHCA_BAR_REGS, NULL);

    qpci_io_writeq(dev, regs, QHCA_REG_ASQ_BASE, 0x123456000);
    g_assert_cmphex(qpci_io_readq(dev, regs, QHCA_REG_ASQ_BASE), ==,
                    0x123456000);
    qpci_io_writel(dev, regs, QHCA_REG_CTRL, QHCA_CTRL_RESET);
    g_assert_cmphex(qpci_io_readq(dev, regs, QHCA_REG_ASQ_BASE), ==, 0);
    g_assert_cmphex(qpci_io_readl(dev, regs, QHCA_REG_CTRL), ==, 0);
    g_free(dev);
    qpci_free_pc(bus);
    qtest_quit(qts);
}

/* where the admin queue is, input and output of commands; its depth */
#define ASQ         0x100000
#define ACQ         0x101000
#define ANSWER      0x102000
#define INPUT       0x103000
#define DEPTH_SHIFT 2
/* the objects that a message needs */
#define EQ          0x104000
#define CQ          0x105000
#define SQ          0x106000
#define RQ          0x107000
#define CQ_RECORD   0x108000
#define RQ_RECORD   0x108040
#define OUT         0x109000
#define IN          0x10a000
#define MEMORY_END  0x10b000

struct queue {
    QTestState *qts;
    QPCIBus *bus;
    QPCIDevice *dev;
    QPCIBar regs;
    uint32_t index;
};

static void adapter_start(struct queue *q)
{
    *q = (struct queue) {
        .qts = qtest_init("-M q35 -device qhca,addr=4.0"),
    };
    q->bus = qpci_new_pc(q->qts, NULL);
    q->dev = qpci_device_find(q->bus, QPCI_DEVFN(4, 0));
    g_assert_nonnull(q->dev);
    qpci_device_enable(q->dev);
    q->regs = qpci_iomap(q->dev, QHCA_BAR_REGS, NULL);
    qtest_memset(q->qts, ASQ, 0, MEMORY_END - ASQ);
    qpci_io_writeq(q->dev, q->regs, QHCA_REG_ASQ_BASE, ASQ);
    qpci_io_writeq(q->dev, q->regs, QHCA_REG_ACQ_BASE, ACQ);
    qpci_io_writel(q->dev, q->regs, QHCA_REG_AQ_SHIFT, DEPTH_SHIFT);
    qpci_io_writel(q->dev, q->regs, QHCA_REG_CTRL, QHCA_CTRL_ENABLE);
    g_assert_cmphex(qpci_io_readl(q->dev, q->regs, QHCA_REG_STATUS) &
                    QHCA_STATUS_READY, ==, QHCA_STATUS_READY);
}

static void adapter_stop(struct queue *q)
{
    g_free(q->dev);
    qpci_free_pc(q->bus);
    qtest_quit(q->qts);
}

/* Execute a command, and return its completion. */
static struct qhca_aq_cqe command(struct queue *q, struct qhca_aq_cmd cmd)
{
    uint32_t slot = q->index & ((1 << DEPTH_SHIFT) - 1);
    uint64_t cqe_at = ACQ + slot * sizeof(struct qhca_aq_cqe);
    uint8_t phase = !((q->index >> DEPTH_SHIFT) & 1);
    struct qhca_aq_cqe cqe;

    cmd.cmd_id = cpu_to_le16(0x1000 + q->index);
    qtest_memwrite(q->qts, ASQ + slot * sizeof(cmd), &cmd, sizeof(cmd));
    qpci_io_writel(q->dev, q->regs, QHCA_REG_ASQ_DB, ++q->index);
    for (int i = 0; i < 1000; i++) {
        qtest_memread(q->qts, cqe_at, &cqe, sizeof(cqe));
        if ((cqe.phase & 1) == phase) {
            g_assert_cmphex(le16_to_cpu(cqe.cmd_id), ==,
                            0x1000 + q->index - 1);
            return cqe;
        }
        qtest_clock_step(q->qts, 1000);
    }
    g_assert_not_reached();
}

/* Execute a command that succeeds, with an input; returns its object. */
static uint32_t command_in(struct queue *q, uint8_t opcode, uint32_t obj,
                           uint64_t mask, const void *in, size_t len)
{
    struct qhca_aq_cqe cqe;

    qtest_memwrite(q->qts, INPUT, in, len);
    cqe = command(q, (struct qhca_aq_cmd) {
        .opcode = opcode, .obj = cpu_to_le32(obj), .mask = cpu_to_le64(mask),
        .in_addr = cpu_to_le64(INPUT), .in_len = cpu_to_le32(len),
    });
    g_assert_cmpint(cqe.status, ==, QHCA_ST_OK);
    return le32_to_cpu(cqe.obj);
}

static struct qhca_buf buffer(uint64_t addr, uint64_t len)
{
    return (struct qhca_buf) {
        .addr = cpu_to_le64(addr), .len = cpu_to_le64(len),
        .form = QHCA_BUF_DIRECT,
    };
}

/* An RC QP that is connected to itself; returns its number. */
static uint32_t make_qp(struct queue *q)
{
    struct qhca_gid gid = {
        .gid = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
        .mac = { 0x52, 0x54, 0, 0, 0, 1 }, .type = QHCA_GID_ROCE_V2,
        .vlan = cpu_to_le16(QHCA_VLAN_NONE),
    };
    struct qhca_eqc eqc = { .buf = buffer(EQ, 256), .shift = 4 };
    struct qhca_cqc cqc = {
        .buf = buffer(CQ, 256), .dbrec = cpu_to_le64(CQ_RECORD), .shift = 2,
    };
    struct qhca_qpc qpc = {
        .type = QHCA_QPT_RC, .flags = QHCA_QP_F_PRIVILEGED,
        .sq_shift = 1, .sq_stride = 6, .sq = buffer(SQ, 128),
        .rq_shift = 1, .rq_stride = 5, .rq = buffer(RQ, 64),
        .rq_dbrec = cpu_to_le64(RQ_RECORD),
    };
    struct qhca_aq_cqe pd = command(q, (struct qhca_aq_cmd) {
        .opcode = QHCA_CMD_ALLOC_PD,
    });
    uint32_t qpn;

    g_assert_cmpint(pd.status, ==, QHCA_ST_OK);
    command_in(q, QHCA_CMD_SET_GID, 0, 0, &gid, sizeof(gid));
    cqc.eqn = cpu_to_le32(command_in(q, QHCA_CMD_CREATE_EQ, 0, 0, &eqc,
                                     sizeof(eqc)));
    qpc.pd = pd.obj;
    qpc.send_cqn = cpu_to_le32(command_in(q, QHCA_CMD_CREATE_CQ, 0, 0, &cqc,
                                          sizeof(cqc)));
    qpc.recv_cqn = qpc.send_cqn;
    qpn = command_in(q, QHCA_CMD_CREATE_QP, 0, 0, &qpc, sizeof(qpc));

    qpc.dest_qpn = cpu_to_le32(qpn);
    qpc.path_mtu = 3;
    qpc.timeout = 14;
    qpc.retry_cnt = 7;
    memcpy(qpc.av.dgid, gid.gid, sizeof(qpc.av.dgid));
    memcpy(qpc.av.dmac, gid.mac, sizeof(qpc.av.dmac));
    qpc.state = QHCA_QPS_INIT;
    command_in(q, QHCA_CMD_MODIFY_QP, qpn, QHCA_QP_M_STATE |
               QHCA_QP_M_PKEY_INDEX | QHCA_QP_M_ACCESS, &qpc, sizeof(qpc));
    qpc.state = QHCA_QPS_RTR;
    command_in(q, QHCA_CMD_MODIFY_QP, qpn, QHCA_QP_M_STATE | QHCA_QP_M_AV |
               QHCA_QP_M_PATH_MTU | QHCA_QP_M_DEST_QPN | QHCA_QP_M_RQ_PSN |
               QHCA_QP_M_MAX_DEST_RD_ATOMIC | QHCA_QP_M_MIN_RNR_TIMER,
               &qpc, sizeof(qpc));
    qpc.state = QHCA_QPS_RTS;
    command_in(q, QHCA_CMD_MODIFY_QP, qpn, QHCA_QP_M_STATE |
               QHCA_QP_M_TIMEOUT | QHCA_QP_M_RETRY_CNT |
               QHCA_QP_M_RNR_RETRY | QHCA_QP_M_SQ_PSN |
               QHCA_QP_M_MAX_RD_ATOMIC, &qpc, sizeof(qpc));
    return qpn;
}

/* Wait for the completion number @n. */
static struct qhca_cqe completion(struct queue *q, unsigned n)
{
    struct qhca_cqe cqe;

    for (int i = 0; i < 1000; i++) {
        qtest_memread(q->qts, CQ + n * sizeof(cqe), &cqe, sizeof(cqe));
        if (cqe.phase & 1) {
            return cqe;
        }
        qtest_clock_step(q->qts, 1000);
    }
    g_assert_not_reached();
}

static void test_message(void)
{
    static const char text[] = "through the device";
    struct {
        struct qhca_rq_wqe h;
        struct qhca_sge sge;
    } recv = {
        .h = { .wr_id = cpu_to_le64(7), .num_sge = cpu_to_le16(1) },
        .sge = { .addr = cpu_to_le64(IN), .len = cpu_to_le32(256) },
    };
    struct {
        struct qhca_sq_wqe h;
        struct qhca_sge sge;
    } send = {
        .h.ctrl = {
            .opcode = QHCA_WQE_SEND, .flags = QHCA_WQE_F_SIGNALED,
            .num_sge = cpu_to_le16(1), .wr_id = cpu_to_le64(8),
        },
        .sge = { .addr = cpu_to_le64(OUT), .len = cpu_to_le32(sizeof(text)) },
    };
    struct qhca_dbrec posted = { .index = cpu_to_le32(1) };
    bool received = false, sent = false;
    char got[sizeof(text)];
    struct qhca_cqe cqe;
    struct queue q;
    QPCIBar db;
    uint32_t qpn;

    adapter_start(&q);
    db = qpci_iomap(q.dev, QHCA_BAR_DB, NULL);
    qpn = make_qp(&q);
    qtest_memwrite(q.qts, OUT, text, sizeof(text));
    qtest_memwrite(q.qts, RQ, &recv, sizeof(recv));
    qtest_memwrite(q.qts, RQ_RECORD, &posted, sizeof(posted));
    qtest_memwrite(q.qts, SQ, &send, sizeof(send));
    qpci_io_writeq(q.dev, db, QHCA_DB_SQ,
                   qpn | 1ULL << QHCA_DB_INDEX_SHIFT);

    for (unsigned n = 0; n < 2; n++) {
        cqe = completion(&q, n);
        g_assert_cmpint(cqe.status, ==, QHCA_WC_SUCCESS);
        g_assert_cmpint(le32_to_cpu(cqe.qpn), ==, qpn);
        if (cqe.opcode == QHCA_CQE_OP_RECV) {
            g_assert_cmpint(le64_to_cpu(cqe.wr_id), ==, 7);
            g_assert_cmpint(le32_to_cpu(cqe.byte_len), ==, sizeof(text));
            received = true;
        } else {
            g_assert_cmpint(cqe.opcode, ==, QHCA_CQE_OP_SEND);
            g_assert_cmpint(le64_to_cpu(cqe.wr_id), ==, 8);
            sent = true;
        }
    }
    g_assert_true(received && sent);
    qtest_memread(q.qts, IN, got, sizeof(got));
    g_assert_cmpstr(got, ==, text);
    adapter_stop(&q);
}

static void test_commands(void)
{
    struct qhca_dev_caps caps;
    struct qhca_aq_cqe cqe;
    struct queue q;
    uint32_t pd;

    adapter_start(&q);
    /* more than a lap of the ring */
    for (int i = 0; i < 2 << DEPTH_SHIFT; i++) {
        cqe = command(&q, (struct qhca_aq_cmd) { .opcode = QHCA_CMD_NOP });
        g_assert_cmpint(cqe.status, ==, QHCA_ST_OK);
    }
    cqe = command(&q, (struct qhca_aq_cmd) {
        .opcode = QHCA_CMD_QUERY_DEVICE,
        .out_addr = cpu_to_le64(ANSWER),
        .out_len = cpu_to_le32(sizeof(caps)),
    });
    g_assert_cmpint(cqe.status, ==, QHCA_ST_OK);
    qtest_memread(q.qts, ANSWER, &caps, sizeof(caps));
    g_assert_cmphex(le64_to_cpu(caps.features), ==,
                    qpci_io_readq(q.dev, q.regs, QHCA_REG_FEATURES));

    cqe = command(&q, (struct qhca_aq_cmd) { .opcode = QHCA_CMD_ALLOC_PD });
    g_assert_cmpint(cqe.status, ==, QHCA_ST_OK);
    pd = le32_to_cpu(cqe.obj);
    cqe = command(&q, (struct qhca_aq_cmd) {
        .opcode = QHCA_CMD_FREE_PD, .obj = cpu_to_le32(pd),
    });
    g_assert_cmpint(cqe.status, ==, QHCA_ST_OK);
    /* it is gone */
    cqe = command(&q, (struct qhca_aq_cmd) {
        .opcode = QHCA_CMD_FREE_PD, .obj = cpu_to_le32(pd),
    });
    g_assert_cmpint(cqe.status, ==, QHCA_ST_BAD_OBJ);
    cqe = command(&q, (struct qhca_aq_cmd) { .opcode = 0xfe });
    g_assert_cmpint(cqe.status, ==, QHCA_ST_BAD_OPCODE);
    adapter_stop(&q);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/qhca/identity", test_identity);
    qtest_add_func("/qhca/reset", test_reset);
    qtest_add_func("/qhca/commands", test_commands);
    qtest_add_func("/qhca/message", test_message);
    return g_test_run();
}

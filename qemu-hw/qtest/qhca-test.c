/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: identity, registers, commands, reset.  The device's own project has the
 * tests of all commands, queues and packets.
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

/* where the rings are, and an answer; their depth */
#define ASQ         0x100000
#define ACQ         0x101000
#define ANSWER      0x102000
#define DEPTH_SHIFT 2

struct queue {
    QTestState *qts;
    QPCIDevice *dev;
    QPCIBar regs;
    uint32_t index;
};

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

static void test_commands(void)
{
    QTestState *qts = qtest_init("-M q35 -device qhca,addr=4.0");
    QPCIBus *bus = qpci_new_pc(qts, NULL);
    QPCIDevice *dev = qpci_device_find(bus, QPCI_DEVFN(4, 0));
    struct queue q = { .qts = qts, .dev = dev };
    struct qhca_dev_caps caps;
    struct qhca_aq_cqe cqe;
    uint32_t pd;

    g_assert_nonnull(dev);
    qpci_device_enable(dev);
    q.regs = qpci_iomap(dev, QHCA_BAR_REGS, NULL);
    qtest_memset(qts, ASQ, 0, ANSWER - ASQ);
    qpci_io_writeq(dev, q.regs, QHCA_REG_ASQ_BASE, ASQ);
    qpci_io_writeq(dev, q.regs, QHCA_REG_ACQ_BASE, ACQ);
    qpci_io_writel(dev, q.regs, QHCA_REG_AQ_SHIFT, DEPTH_SHIFT);
    qpci_io_writel(dev, q.regs, QHCA_REG_CTRL, QHCA_CTRL_ENABLE);
    g_assert_cmphex(qpci_io_readl(dev, q.regs, QHCA_REG_STATUS) &
                    QHCA_STATUS_READY, ==, QHCA_STATUS_READY);

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
    qtest_memread(qts, ANSWER, &caps, sizeof(caps));
    g_assert_cmphex(le64_to_cpu(caps.features), ==,
                    qpci_io_readq(dev, q.regs, QHCA_REG_FEATURES));

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
    g_free(dev);
    qpci_free_pc(bus);
    qtest_quit(qts);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/qhca/identity", test_identity);
    qtest_add_func("/qhca/reset", test_reset);
    qtest_add_func("/qhca/commands", test_commands);
    return g_test_run();
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: identity, reset values, reset of the registers.  The device's own
 * project has the tests of all commands, queues and packets.
 */
#include "qemu/osdep.h"
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/qhca/identity", test_identity);
    qtest_add_func("/qhca/reset", test_reset);
    return g_test_run();
}

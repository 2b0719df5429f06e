/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: the PCI Express function: configuration space, BARs, properties,
 * realize and exit.  The programming manual describes the registers.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/host-utils.h"
#include "qemu/module.h"
#include "qemu/range.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "qhca-compat.h"
#include "qhca.h"

/* Offsets of the capabilities in configuration space */
#define QHCA_CAP_PM     0x40
#define QHCA_CAP_EXP    0x60
#define QHCA_CAP_MSIX   0xa0

static uint64_t qhca_regs_read(void *opaque, hwaddr addr, unsigned size)
{
    QhcaState *s = opaque;
    uint64_t val = 0;

    if (unlikely(s->stopped) && !qhca_stop_ready(s)) {
        return qhca_reg_read(s->engine, addr, size);
    }
    qhca_call(s, &(QhcaCall) {
        .kind = QHCA_CALL_READ, .addr = addr, .size = size, .result = &val,
        .cpu = current_cpu,
    });
    return val;
}

static void qhca_regs_write(void *opaque, hwaddr addr, uint64_t val,
                            unsigned size)
{
    qhca_call(opaque, &(QhcaCall) {
        .kind = QHCA_CALL_REG, .addr = addr, .val = val, .size = size,
        .cpu = current_cpu,
    });
}

/* Every access reaches the engine as it is: it counts the invalid ones. */
static const MemoryRegionOps qhca_regs_ops = {
    .read = qhca_regs_read,
    .write = qhca_regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 1,
    .valid.max_access_size = 8,
    .valid.unaligned = true,
    .impl.min_access_size = 1,
    .impl.max_access_size = 8,
    .impl.unaligned = true,
};

static uint64_t qhca_doorbell_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void qhca_doorbell_write(void *opaque, hwaddr addr, uint64_t val,
                                unsigned size)
{
    qhca_call(opaque, &(QhcaCall) {
        .kind = QHCA_CALL_DB, .addr = addr, .val = val, .size = size,
        .cpu = current_cpu,
    });
}

/* The same with stores; there is nothing to read. */
static const MemoryRegionOps qhca_doorbell_ops = {
    .read = qhca_doorbell_read,
    .write = qhca_doorbell_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 1,
    .valid.max_access_size = 8,
    .valid.unaligned = true,
    .impl.min_access_size = 1,
    .impl.max_access_size = 8,
    .impl.unaligned = true,
};

static void qhca_pci_config_write(PCIDevice *dev, uint32_t addr, uint32_t val,
                                  int len)
{
    pci_default_write_config(dev, addr, val, len);
    if (range_covers_byte(addr, len, PCI_COMMAND) &&
        !(pci_get_word(dev->config + PCI_COMMAND) & PCI_COMMAND_MASTER)) {
        qhca_memlink_no_dma(QHCA(dev));
    }
    pcie_cap_flr_write_config(dev, addr, val, len);
}

static bool qhca_pci_caps_init(PCIDevice *dev, Error **errp)
{
    int pos = pci_pm_init(dev, QHCA_CAP_PM, errp);

    if (pos < 0) {
        return false;
    }
    pci_set_word(dev->config + pos + PCI_PM_PMC, PCI_PM_CAP_VER_1_1);
    pci_set_word(dev->config + pos + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(dev->wmask + pos + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);

    if (pcie_endpoint_cap_init(dev, QHCA_CAP_EXP) < 0) {
        error_setg(errp, "qhca: no room for the PCI Express capability");
        return false;
    }
    pcie_cap_flr_init(dev);
    return true;
}

QEMU_BUILD_BUG_ON(QHCA_MSIX_TABLE +
                  (PCI_MSIX_FLAGS_QSIZE + 1) * PCI_MSIX_ENTRY_SIZE >
                  QHCA_BAR_REGS_SIZE);

/* MSI-X shares BAR 0 with the 64 KiB of registers: BARs are scarce. */
static bool qhca_pci_msix_init(QhcaState *s, Error **errp)
{
    PCIDevice *dev = PCI_DEVICE(s);
    uint32_t v;

    if (s->cfg.num_vectors < 1 ||
        s->cfg.num_vectors > PCI_MSIX_FLAGS_QSIZE + 1) {
        error_setg(errp, "qhca: vectors must be 1 to %d",
                   PCI_MSIX_FLAGS_QSIZE + 1);
        return false;
    }
    if (msix_init(dev, s->cfg.num_vectors, &s->regs, QHCA_BAR_REGS,
                  QHCA_MSIX_TABLE, &s->regs, QHCA_BAR_REGS, QHCA_MSIX_PBA,
                  QHCA_CAP_MSIX, errp) < 0) {
        return false;
    }
    for (v = 0; v < s->cfg.num_vectors; v++) {
        msix_vector_use(dev, v);
    }
    return true;
}

static void qhca_pci_realize(PCIDevice *dev, Error **errp)
{
    QhcaState *s = QHCA(dev);

    if (!pci_bus_is_express(pci_get_bus(dev))) {
        error_setg(errp, "qhca: needs a PCI Express slot; use machine q35 "
                   "or a pcie-root-port");
        return;
    }
    qemu_macaddr_default_if_unset(&s->conf.macaddr);
    memcpy(s->cfg.mac, s->conf.macaddr.a, sizeof(s->cfg.mac));

    memory_region_init_io(&s->regs, OBJECT(s), &qhca_regs_ops, s,
                          "qhca-regs", QHCA_BAR_REGS_SIZE);
    if (!qhca_pci_caps_init(dev, errp)) {
        return;
    }
    if (!qhca_pci_msix_init(s, errp)) {
        goto err_caps;
    }
    if (!qhca_glue_init(s, errp)) {
        goto err_msix;
    }
    if (!qhca_faults_load(s, errp)) {
        goto err_glue;
    }
    if (s->cfg.dm_size &&
        !memory_region_init_ram(&s->dm, OBJECT(s), "qhca-dm", s->cfg.dm_size,
                                errp)) {
        goto err_glue;
    }
    memory_region_init_io(&s->db, OBJECT(s), &qhca_doorbell_ops, s,
                          "qhca-doorbells", QHCA_BAR_DB_SIZE);
    pci_register_bar(dev, QHCA_BAR_REGS, PCI_BASE_ADDRESS_MEM_TYPE_64,
                     &s->regs);
    /*
     * Prefetchable, since reading a doorbell has no side effect: without it, 64
     * MiB cannot be placed above 4 GiB behind a bridge.
     */
    pci_register_bar(dev, QHCA_BAR_DB, PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->db);
    if (s->cfg.dm_size) {
        pci_register_bar(dev, QHCA_BAR_DM, PCI_BASE_ADDRESS_MEM_TYPE_64 |
                         PCI_BASE_ADDRESS_MEM_PREFETCH, &s->dm);
    }
    if (!qhca_memlink_init(s, errp)) {
        goto err_glue;
    }
    dev->config_write = qhca_pci_config_write;
    qhca_net_init(s);
    return;

err_glue:
    qhca_glue_exit(s);
err_msix:
    msix_uninit(dev, &s->regs, &s->regs);
err_caps:
    pcie_cap_exit(dev);
}

static void qhca_pci_exit(PCIDevice *dev)
{
    QhcaState *s = QHCA(dev);

    qhca_memlink_exit(s);
    /* The engine first, or it might send through a NIC being deleted. */
    qhca_glue_exit(s);
    qhca_net_exit(s);
    msix_uninit(dev, &s->regs, &s->regs);
    pcie_cap_exit(dev);
}

static void qhca_pci_finalize(Object *obj)
{
    qhca_memlink_finalize(QHCA(obj));
}

static void qhca_pci_reset_hold(Object *obj, ResetType type)
{
    QhcaState *s = QHCA(obj);

    qhca_glue_reset(s);
    qhca_net_reset(s);
}

/* The engine sets the defaults: see qhca_class_defaults(). */
static const Property qhca_properties[] = {
    DEFINE_NIC_PROPERTIES(QhcaState, conf),
#define QHCA_PROP(name, field) \
    DEFINE_PROP_UNSIGNED_NODEFAULT(name, QhcaState, cfg.field, \
                                   qdev_prop_uint32, uint32_t)
    QHCA_PROP("vectors", num_vectors),
    QHCA_PROP("max-qp", max_qp),
    QHCA_PROP("max-cq", max_cq),
    QHCA_PROP("max-srq", max_srq),
    QHCA_PROP("max-mr", max_mr),
    QHCA_PROP("max-pd", max_pd),
    QHCA_PROP("max-eq", max_eq),
    QHCA_PROP("max-gid", max_gid),
    QHCA_PROP("max-eth-queues", max_eth_queues),
    QHCA_PROP("speed", speed),
    QHCA_PROP("min-ack-timeout", min_ack_timeout),
    QHCA_PROP("gro-hold", gro_hold),
    QHCA_PROP("x-run-budget", run_budget),
    DEFINE_PROP_BOOL("super-frames", QhcaState, cfg.super_frames, false),
    DEFINE_PROP_STRING("memlink", QhcaState, memlink_dir),
    DEFINE_PROP_ON_OFF_AUTO("memlink-thread", QhcaState, memlink_thread,
                            ON_OFF_AUTO_AUTO),
    DEFINE_PROP_UNSIGNED_NODEFAULT("dm-size", QhcaState, cfg.dm_size,
                                   qdev_prop_size, uint64_t),
};

static void qhca_class_property(ObjectClass *klass, const char *name,
                                uint64_t value, const char *text)
{
    object_property_set_default_uint(object_class_property_find(klass, name),
                                     value);
    object_class_property_set_description(klass, name, text);
}

static void qhca_class_defaults(ObjectClass *klass)
{
    struct qhca_config cfg = { };

    qhca_config_default(&cfg);
    qhca_class_property(klass, "vectors", cfg.num_vectors,
                        "MSI-X vectors, 1 to 2048");
    qhca_class_property(klass, "max-qp", cfg.max_qp,
                        "queue pairs, a power of two, 16 to 1048576");
    qhca_class_property(klass, "max-cq", cfg.max_cq,
                        "completion queues, a power of two");
    qhca_class_property(klass, "max-srq", cfg.max_srq,
                        "shared receive queues, a power of two");
    qhca_class_property(klass, "max-mr", cfg.max_mr,
                        "memory regions, a power of two");
    qhca_class_property(klass, "max-pd", cfg.max_pd,
                        "protection domains, a power of two");
    qhca_class_property(klass, "max-eq", cfg.max_eq,
                        "event queues, a power of two");
    qhca_class_property(klass, "max-gid", cfg.max_gid,
                        "GID table entries, 1 to 256");
    qhca_class_property(klass, "max-eth-queues", cfg.max_eth_queues,
                        "Ethernet send queues, and as many receive queues");
    qhca_class_property(klass, "speed", cfg.speed,
                        "link speed reported to the guest, Mb/s");
    qhca_class_property(klass, "min-ack-timeout", cfg.min_ack_timeout,
                        "the shortest local ACK timeout as its code, 0 to 31: "
                        "4.096 us << code");
    qhca_class_property(klass, "gro-hold", cfg.gro_hold,
                        "how long received frames are held to be merged with "
                        "later ones, in microseconds; 0: not at all");
    qhca_class_property(klass, "x-run-budget", cfg.run_budget,
                        "packets sent per run, but at least one frame; "
                        "0: the engine's default");
    object_class_property_set_description(klass, "super-frames",
                        "large sends and RDMA messages pass the wire whole; "
                        "on only if every adapter on the wire is a qhca with "
                        "it on");
    object_class_property_set_description(klass, "memlink",
                        "a directory where adapters of this host find each "
                        "other: RDMA between them then passes through their "
                        "guests' memory, which must be shared");
    object_class_property_set_description(klass, "memlink-thread",
                        "a thread answers what comes over memory links, "
                        "sooner than the main loop can (auto: on)");
    qhca_class_property(klass, "dm-size", cfg.dm_size,
                        "bytes of device memory (BAR 4), a power of two; "
                        "0: none");
}

static void qhca_class_init(ObjectClass *klass, QhcaClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    pc->realize = qhca_pci_realize;
    pc->exit = qhca_pci_exit;
    pc->vendor_id = QHCA_PCI_VENDOR_ID;
    pc->device_id = QHCA_PCI_DEVICE_ID;
    pc->revision = QHCA_PCI_REVISION;
    pc->class_id = PCI_CLASS_NETWORK_ETHERNET;
    rc->phases.hold = qhca_pci_reset_hold;
    dc->desc = "RDMA (RoCEv2) and Ethernet adapter";
    dc->vmsd = &qhca_vmstate;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    device_class_set_props(dc, qhca_properties);
    qhca_class_defaults(klass);
    qhca_class_counters(klass);
    qhca_class_faults(klass);
}

static const TypeInfo qhca_types[] = {
    {
        .name = TYPE_QHCA,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(QhcaState),
        .instance_finalize = qhca_pci_finalize,
        .class_init = qhca_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { }
        },
    },
};

DEFINE_TYPES(qhca_types)

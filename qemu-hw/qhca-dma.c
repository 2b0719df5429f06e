/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: DMA.
 *
 * All DMA goes through the PCI function's own address space and is thus subject
 * to the bus master bit and a vIOMMU.  Only memory can be its target: with
 * attrs.memory the memory core refuses accesses to the registers of any device,
 * including our own, so DMA has no side effects.
 *
 * Order, as seen by the guest's CPUs: reads are not moved before earlier reads
 * (a ring index, then the entry), and a store64 comes after all earlier writes.
 * PCI guarantees this and drivers rely on it.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/rcu.h"
#include "qhca-compat.h"
#include "qhca.h"

static inline MemTxAttrs qhca_attrs(void)
{
    return (MemTxAttrs) { .memory = 1 };
}

bool qhca_op_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    QhcaState *s = opaque;
    MemoryRegionCache *map;
    hwaddr off;

    if (unlikely(s->gone)) {
        return false;
    }
    smp_rmb();      /* after earlier reads, as on the bus */
    map = qhca_dma_cached(s, addr, len, &off);
    if (likely(map)) {
        return address_space_read_cached(map, off, buf, len) == MEMTX_OK;
    }
    return address_space_read(pci_get_address_space(PCI_DEVICE(s)), addr,
                              qhca_attrs(), buf, len) == MEMTX_OK;
}

bool qhca_op_dma_write(void *opaque, uint64_t addr, const void *buf,
                       size_t len)
{
    QhcaState *s = opaque;
    MemoryRegionCache *map;
    hwaddr off;

    if (unlikely(s->gone)) {
        return false;
    }
    map = qhca_dma_cached(s, addr, len, &off);
    if (likely(map)) {
        address_space_write_cached(map, off, buf, len);
        address_space_cache_invalidate(map, off, len);
        return true;
    }
    return address_space_write(pci_get_address_space(PCI_DEVICE(s)), addr,
                               qhca_attrs(), buf, len) == MEMTX_OK;
}

/* Are the 8 bytes at @addr guest memory?  Called under RCU. */
static bool qhca_is_ram64(AddressSpace *as, uint64_t addr)
{
    MemTxAttrs attrs = qhca_attrs();
    hwaddr xlat, len = 8;
    MemoryRegion *mr = address_space_translate(as, addr, &xlat, &len, true,
                                               attrs);

    return len == 8 && memory_access_is_direct(mr, true, attrs);
}

bool qhca_op_dma_store64(void *opaque, uint64_t addr, uint64_t val)
{
    QhcaState *s = opaque;
    MemoryRegionCache *map;
    AddressSpace *as;
    MemTxResult res;
    hwaddr off;

    if (unlikely(s->gone)) {
        return false;
    }
    as = pci_get_address_space(PCI_DEVICE(s));
    smp_wmb();      /* after all earlier dma_write()s */
    map = qhca_dma_cached(s, addr, 8, &off);
    if (likely(map)) {
        qatomic_set__nocheck((uint64_t *)(map->ptr + off), cpu_to_le64(val));
        address_space_cache_invalidate(map, off, 8);
        return true;
    }
    WITH_RCU_READ_LOCK_GUARD() {
        /* This kind of store ignores attrs.memory: check here. */
        if (!qhca_is_ram64(as, addr)) {
            return false;
        }
        address_space_stq_le(as, addr, val, qhca_attrs(), &res);
    }
    return res == MEMTX_OK;
}

void qhca_op_dma_fence(void *opaque)
{
    smp_mb();       /* pairs with the barrier of software that posts receives */
}

/*
 * Device memory is RAM: the guest's CPUs access it by its BAR, the engine here.
 * It is ordered like DMA.
 */
bool qhca_op_dm_read(void *opaque, uint64_t off, void *buf, size_t len)
{
    QhcaState *s = opaque;

    if (unlikely(s->gone)) {
        return false;
    }
    /* See what the guest wrote before it rang the doorbell. */
    smp_rmb();
    memcpy(buf, (uint8_t *)memory_region_get_ram_ptr(&s->dm) + off, len);
    return true;
}

bool qhca_op_dm_write(void *opaque, uint64_t off, const void *buf,
                      size_t len)
{
    QhcaState *s = opaque;

    if (unlikely(s->gone)) {
        return false;
    }
    memcpy((uint8_t *)memory_region_get_ram_ptr(&s->dm) + off, buf, len);
    memory_region_set_dirty(&s->dm, off, len);
    return true;
}

bool qhca_op_dm_cas64(void *opaque, uint64_t off, uint64_t cmp,
                      uint64_t swap, uint64_t *old)
{
    QhcaState *s = opaque;
    uint64_t *p;

    if (unlikely(s->gone || (off & 7))) {
        return false;
    }
    p = (uint64_t *)((uint8_t *)memory_region_get_ram_ptr(&s->dm) + off);
    *old = le64_to_cpu(qatomic_cmpxchg__nocheck(p, cpu_to_le64(cmp),
                                                cpu_to_le64(swap)));
    memory_region_set_dirty(&s->dm, off, sizeof(*p));
    return true;
}

bool qhca_op_dma_cas64(void *opaque, uint64_t addr, uint64_t cmp,
                       uint64_t swap, uint64_t *old)
{
    QhcaState *s = opaque;
    AddressSpace *as;
    hwaddr len = 8;
    uint64_t *p;

    if (unlikely(s->gone || (addr & 7))) {
        return false;
    }
    as = pci_get_address_space(PCI_DEVICE(s));
    WITH_RCU_READ_LOCK_GUARD() {
        /* Outside of RAM this would be a bounce buffer, which is not atomic. */
        if (!qhca_is_ram64(as, addr)) {
            return false;
        }
        p = address_space_map(as, addr, &len, true, qhca_attrs());
        if (!p) {
            return false;
        }
        if (len < 8) {
            address_space_unmap(as, p, len, true, 0);
            return false;
        }
        /* vCPUs use the host's atomics too, with TCG as with KVM. */
        *old = le64_to_cpu(qatomic_cmpxchg__nocheck(p, cpu_to_le64(cmp),
                                                    cpu_to_le64(swap)));
        address_space_unmap(as, p, len, true, 8);
    }
    return true;
}

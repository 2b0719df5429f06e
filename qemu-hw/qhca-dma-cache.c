/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: mappings of guest memory that DMA uses again and again: rings, doorbell
 * records, buffer tables, payload.
 *
 * A mapping covers a window of the function's address space, as far as it is
 * one piece of RAM that starts with the window.  Any change of a memory map
 * discards all of them; switching bus mastering or a vIOMMU is such a change.
 * Behind a vIOMMU that translates nothing is mapped, since the guest may end a
 * translation without a change of the map.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qhca-compat.h"
#include "qhca.h"

#define QHCA_DMA_WINDOW     (2 * MiB)
#define QHCA_DMA_WINDOWS    512

typedef struct QhcaDmaWindow {
    uint64_t addr;
    bool used;
    MemoryRegionCache map;      /* map.ptr is NULL if it is not RAM */
} QhcaDmaWindow;

struct QhcaDmaCache {
    MemoryListener listener;
    unsigned used;
    QhcaDmaWindow window[QHCA_DMA_WINDOWS];
};

static void qhca_dma_window_drop(QhcaDmaCache *c, QhcaDmaWindow *w)
{
    if (w->used) {
        address_space_cache_destroy(&w->map);
        w->used = false;
        c->used--;
    }
}

static void qhca_dma_cache_drop(QhcaDmaCache *c)
{
    unsigned i;

    for (i = 0; c->used && i < QHCA_DMA_WINDOWS; i++) {
        qhca_dma_window_drop(c, &c->window[i]);
    }
}

static void qhca_dma_cache_commit(MemoryListener *listener)
{
    qhca_dma_cache_drop(container_of(listener, QhcaDmaCache, listener));
}

void qhca_dma_cache_init(QhcaState *s)
{
    QhcaDmaCache *c = g_new0(QhcaDmaCache, 1);

    c->listener.commit = qhca_dma_cache_commit;
    c->listener.name = "qhca";
    memory_listener_register(&c->listener,
                             pci_get_address_space(PCI_DEVICE(s)));
    s->dma_cache = c;
}

void qhca_dma_cache_exit(QhcaState *s)
{
    memory_listener_unregister(&s->dma_cache->listener);
    qhca_dma_cache_drop(s->dma_cache);
    g_free(s->dma_cache);
    s->dma_cache = NULL;
}

MemoryRegionCache *qhca_dma_cached(QhcaState *s, uint64_t addr, size_t len,
                                   hwaddr *off)
{
    QhcaDmaCache *c = s->dma_cache;
    uint64_t n = addr / QHCA_DMA_WINDOW;
    QhcaDmaWindow *w;

    *off = addr % QHCA_DMA_WINDOW;
    addr -= *off;
    /* Rings and payload may be any number of GiB apart. */
    w = &c->window[(n ^ n / QHCA_DMA_WINDOWS) % QHCA_DMA_WINDOWS];
    if (unlikely(!w->used || w->addr != addr)) {
        qhca_dma_window_drop(c, w);
        address_space_cache_init(&w->map,
                                 pci_get_address_space(PCI_DEVICE(s)), addr,
                                 QHCA_DMA_WINDOW, true);
        w->addr = addr;
        w->used = true;
        c->used++;
    }
    return w->map.ptr && *off < w->map.len && len <= w->map.len - *off ?
           &w->map : NULL;
}

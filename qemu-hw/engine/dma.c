/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guest and device memory, with accounting of what could not be accessed. */
#include "internal.h"

bool qhca_dma_read(struct qhca *e, uint64_t addr, void *buf, size_t len)
{
    if (addr + len < addr || !e->ops.dma_read(e->opaque, addr, buf, len)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dma_write(struct qhca *e, uint64_t addr, const void *buf,
                    size_t len)
{
    if (addr + len < addr || !e->ops.dma_write(e->opaque, addr, buf, len)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dm_read(struct qhca *e, uint64_t off, void *buf, size_t len)
{
    if (off + len < off || off + len > e->cfg.dm_size ||
        !e->ops.dm_read(e->opaque, off, buf, len)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dm_write(struct qhca *e, uint64_t off, const void *buf, size_t len)
{
    if (off + len < off || off + len > e->cfg.dm_size ||
        !e->ops.dm_write(e->opaque, off, buf, len)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dma_store64(struct qhca *e, uint64_t addr, uint64_t val)
{
    if (!e->ops.dma_store64(e->opaque, addr, val)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dbrec_read(struct qhca *e, uint64_t addr, uint32_t *index)
{
    uint32_t v;

    if (!qhca_dma_read(e, addr + offsetof(struct qhca_dbrec, index), &v,
                       sizeof(v))) {
        return false;
    }
    *index = qhca_le32(v);
    return true;
}

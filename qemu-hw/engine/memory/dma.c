/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DMA to guest memory and access to device memory; failures are counted. */
#include "memory/memory.h"

/*
 * Does an injected fault make the access fail?  It may also replace *@data, the
 * bytes to be written.  @data: NULL for a read.
 */
static bool dma_hit(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    size_t len, const void **data)
{
    return qhca_faulty(e, QHCA_FLT_AT_DMA) &&
           e->hooks->dma_fails(e, kind, num, addr, len, data != NULL,
                               data);
}

/* A failed access counts once, even if tried before; see e->trying. */
static bool dma_read_failed(struct qhca *e)
{
    if (!e->trying) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
    }
    return false;
}

bool qhca_dma_read(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                   void *buf, size_t len)
{
    qhca_cost_bytes(e, len);
    if (addr + len < addr || dma_hit(e, kind, num, addr, len, NULL) ||
        !e->ops.dma_read(e->opaque, addr, buf, len)) {
        return dma_read_failed(e);
    }
    return true;
}

bool qhca_dma_write(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    const void *buf, size_t len)
{
    qhca_cost_bytes(e, len);
    if (addr + len < addr || dma_hit(e, kind, num, addr, len, &buf) ||
        !e->ops.dma_write(e->opaque, addr, buf, len)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dm_read(struct qhca *e, uint64_t off, void *buf, size_t len)
{
    qhca_cost_bytes(e, len);
    if (off + len < off || off + len > e->cfg.dm_size ||
        !e->ops.dm_read(e->opaque, off, buf, len)) {
        return dma_read_failed(e);
    }
    return true;
}

bool qhca_dm_write(struct qhca *e, uint64_t off, const void *buf, size_t len)
{
    qhca_cost_bytes(e, len);
    if (off + len < off || off + len > e->cfg.dm_size ||
        !e->ops.dm_write(e->opaque, off, buf, len)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dma_store64(struct qhca *e, uint8_t kind, uint32_t num,
                      uint64_t addr, uint64_t val)
{
    uint64_t word = qhca_le64(val);
    const void *data = &word;

    qhca_cost_bytes(e, sizeof(word));
    if (dma_hit(e, kind, num, addr, sizeof(word), &data) ||
        !e->ops.dma_store64(e->opaque, addr, qhca_get_le64(data))) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return false;
    }
    return true;
}

bool qhca_dbrec_read(struct qhca *e, uint8_t kind, uint32_t num,
                     uint64_t addr, uint32_t *index)
{
    uint32_t v;

    if (!qhca_dma_read(e, kind, num,
                       addr + offsetof(struct qhca_dbrec, index), &v,
                       sizeof(v))) {
        return false;
    }
    *index = qhca_le32(v);
    return true;
}

bool qhca_dbrec_notify(struct qhca *e, uint8_t kind, uint32_t num,
                       uint64_t addr, bool notify)
{
    uint32_t flags = notify ? qhca_le32(QHCA_DBREC_NOTIFY) : 0;

    return qhca_dma_write(e, kind, num,
                          addr + offsetof(struct qhca_dbrec, flags), &flags,
                          sizeof(flags));
}

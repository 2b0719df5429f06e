/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copying between a packet buffer and the memory of a scatter-gather list. */
#include "queues/queues.h"

uint64_t qhca_sgl_len(const uint8_t *sges, uint32_t num)
{
    uint64_t total = 0;
    uint32_t i;

    for (i = 0; i < num; i++) {
        total += qhca_get_le32(sges + i * sizeof(struct qhca_sge) +
                               offsetof(struct qhca_sge, len));
    }
    return total;
}

enum sgl_what { SGL_READ, SGL_WRITE, SGL_SHARE };

/* Copy or share @len bytes of one SGE. */
static uint8_t sgl_part(struct qhca *e, struct qhca_sgl_user user,
                        uint32_t lkey, uint64_t addr, uint8_t *p,
                        uint32_t len, enum sgl_what what)
{
    switch (what) {
    case SGL_WRITE:
        return qhca_mr_write(e, user.pd, user.privileged, lkey, addr, p, len,
                             QHCA_ACCESS_LOCAL_WRITE, user.num);
    case SGL_SHARE:
        return qhca_mr_share(e, user.pd, user.privileged, lkey, addr, len, 0,
                             user.num);
    default:
        return qhca_mr_read(e, user.pd, user.privileged, lkey, addr, p, len,
                            0, user.num);
    }
}

static uint8_t sgl_walk(struct qhca *e, struct qhca_sgl_user user,
                        const uint8_t *sges, uint32_t num,
                        struct qhca_sgpos *pos, uint32_t off, uint8_t *p,
                        uint32_t len, enum sgl_what what)
{
    if (pos->off != off) {
        if (off < pos->off) {
            memset(pos, 0, sizeof(*pos));
        }
        /* at most num iterations */
        while (pos->sge < num && pos->off < off) {
            struct qhca_sge s;
            uint32_t n;

            memcpy(&s, sges + pos->sge * sizeof(s), sizeof(s));
            n = qhca_le32(s.len) - pos->sge_off;
            if (off - pos->off < n) {
                pos->sge_off += off - pos->off;
                pos->off = off;
            } else {
                pos->off += n;
                pos->sge++;
                pos->sge_off = 0;
            }
        }
    }
    while (len) {
        struct qhca_sge s;
        uint64_t addr;
        uint32_t n;
        uint8_t syn;

        if (pos->sge >= num) {
            return QHCA_SYN_WQE_LENGTH;
        }
        memcpy(&s, sges + pos->sge * sizeof(s), sizeof(s));
        n = qhca_le32(s.len) - pos->sge_off;
        if (!n) {
            pos->sge++;
            pos->sge_off = 0;
            continue;
        }
        if (n > len) {
            n = len;
        }
        addr = qhca_le64(s.addr) + pos->sge_off;
        syn = sgl_part(e, user, qhca_le32(s.lkey), addr, p, n, what);
        if (syn == QHCA_SYN_PAGE_FAULT) {
            /* the rest of the SGE will be needed too */
            e->mem->page_fault.len += qhca_le32(s.len) - pos->sge_off - n;
        }
        if (syn) {
            return syn;
        }
        if (p) {
            p += n;
        }
        len -= n;
        pos->off += n;
        pos->sge_off += n;
        if (pos->sge_off == qhca_le32(s.len)) {
            pos->sge++;
            pos->sge_off = 0;
        }
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_sgl_copy(struct qhca *e, struct qhca_sgl_user user,
                      const uint8_t *sges, uint32_t num,
                      struct qhca_sgpos *pos, uint32_t off, void *buf,
                      uint32_t len, bool write)
{
    return sgl_walk(e, user, sges, num, pos, off, buf, len,
                    write ? SGL_WRITE : SGL_READ);
}

uint8_t qhca_sgl_share(struct qhca *e, struct qhca_sgl_user user,
                       const uint8_t *sges, uint32_t num,
                       struct qhca_sgpos *pos, uint32_t off, uint32_t len)
{
    return sgl_walk(e, user, sges, num, pos, off, NULL, len, SGL_SHARE);
}

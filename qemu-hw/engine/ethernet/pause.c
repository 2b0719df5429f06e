/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Link flow control: received PAUSE frames (IEEE 802.3, annex 31B).  None are
 * sent, as the adapter has no buffers of its own that could fill up.
 */
#include "ethernet/flow.h"

#define PAUSE_LEN           4   /* bytes after the ethertype: opcode, quanta */

static const uint8_t pause_group[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };

bool qhca_pause_rx(struct qhca *e, const struct qhca_eth_frame *f)
{
    const struct qhca_headers *h = &f->h;

    if (!e->eth->pause_rx || h->tagged ||
        h->ethertype != QHCA_ETHERTYPE_CONTROL || h->l3_len < PAUSE_LEN ||
        qhca_get_be16(h->l3) != QHCA_CONTROL_PAUSE ||
        (memcmp(f->data, pause_group, 6) && memcmp(f->data, e->mac, 6))) {
        return false;
    }
    qhca_tx_pause(e, qhca_get_be16(h->l3 + 2));
    return true;
}

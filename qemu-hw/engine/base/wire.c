/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface to the environment: sending frames, requesting a run; the
 * port's counters.
 */
#include "base/base.h"
#include "base/bytes.h"
#include "base/headers.h"

void qhca_kick(struct qhca *e)
{
    if (!e->kicked) {
        e->kicked = true;
        e->ops.kick(e->opaque);
    }
}

/* ---- flow control ---- */

#define PAUSE_BITS          512 /* bit times of a quantum of pause */

/* ns that @quanta last; cfg.speed is in Mb/s. */
static uint64_t pause_ns(const struct qhca *e, uint16_t quanta)
{
    return quanta * (uint64_t)PAUSE_BITS * 1000 /
           (e->cfg.speed ? e->cfg.speed : 1);
}

void qhca_tx_pause(struct qhca *e, uint16_t quanta)
{
    e->tx_paused = qhca_now(e) + pause_ns(e, quanta);
}

uint64_t qhca_tx_pause_deadline(const struct qhca *e, uint64_t now)
{
    /* no pause is longer: the clock was set back */
    return e->tx_paused > now + pause_ns(e, UINT16_MAX) ? now : e->tx_paused;
}

static bool wire_paused(struct qhca *e)
{
    uint64_t now = e->tx_paused ? qhca_now(e) : 0;

    return e->tx_paused && now < qhca_tx_pause_deadline(e, now);
}

/* ---- the port's counters, as those of an Ethernet MAC ---- */

#define FCS                 4

/* The counters of one direction, in the order of QHCA_STAT_PORT_RX_*. */
enum { FRAMES, OCTETS, MULTICAST, BROADCAST, SIZES,
       CONTROL = QHCA_STAT_PORT_RX_CONTROL - QHCA_STAT_PORT_RX_FRAMES,
       PAUSE = QHCA_STAT_PORT_RX_PAUSE - QHCA_STAT_PORT_RX_FRAMES };

_Static_assert(QHCA_STAT_PORT_RX_FRAMES + SIZES == QHCA_STAT_PORT_RX_64 &&
               QHCA_STAT_PORT_TX_FRAMES + SIZES == QHCA_STAT_PORT_TX_64 &&
               QHCA_STAT_PORT_RX_64 + 6 == QHCA_STAT_PORT_RX_LARGE &&
               QHCA_STAT_PORT_TX_64 + 6 == QHCA_STAT_PORT_TX_LARGE &&
               QHCA_STAT_PORT_TX_FRAMES + CONTROL ==
               QHCA_STAT_PORT_TX_CONTROL &&
               QHCA_STAT_PORT_TX_FRAMES + PAUSE == QHCA_STAT_PORT_TX_PAUSE,
               "the order of the counters");

static void count_size(uint64_t *stat, uint32_t n, size_t len)
{
    static const uint16_t most[] = { 64, 127, 255, 511, 1023, 1518 };
    size_t octets = (len < QHCA_ETH_SHORTEST ? QHCA_ETH_SHORTEST : len) + FCS;
    unsigned i = 0;

    while (i < sizeof(most) / sizeof(most[0]) && octets > most[i]) {
        i++;
    }
    stat[SIZES + i] += n;
    stat[OCTETS] += (uint64_t)n * octets;
}

static void count_frames(uint64_t *stat, const uint8_t *frame,
                         const struct qhca_wire_frames *as)
{
    static const uint8_t broadcast[] = { 255, 255, 255, 255, 255, 255 };

    stat[FRAMES] += as->n;
    if (frame[0] & 1) {
        stat[memcmp(frame, broadcast, 6) ? MULTICAST : BROADCAST] += as->n;
    }
    if (as->n > 1) {
        count_size(stat, 1, as->first);
        count_size(stat, as->n - 2, as->len);
    } else if (qhca_get_be16(frame + 12) == QHCA_ETHERTYPE_CONTROL) {
        stat[CONTROL]++;
        stat[PAUSE] += as->last >= QHCA_ETH_HLEN + 2 &&
                       qhca_get_be16(frame + QHCA_ETH_HLEN) ==
                       QHCA_CONTROL_PAUSE;
    }
    count_size(stat, 1, as->last);
}

void qhca_wire_count_rx(struct qhca *e, const void *frame,
                        const struct qhca_wire_frames *as)
{
    count_frames(&e->stats[QHCA_STAT_PORT_RX_FRAMES], frame, as);
}

void qhca_wire_count_tx(struct qhca *e, const void *frame,
                        const struct qhca_wire_frames *as)
{
    count_frames(&e->stats[QHCA_STAT_PORT_TX_FRAMES], frame, as);
}

/* ---- sending ---- */

bool qhca_tx(struct qhca *e, const void *frame, size_t len)
{
    const struct qhca_wire_frames one = { .n = 1, .last = len };

    return qhca_tx_super(e, frame, len, &one);
}

bool qhca_tx_super(struct qhca *e, const void *frame, size_t len,
                   const struct qhca_wire_frames *as)
{
    enum qhca_wire wire = QHCA_WIRE_BUSY;

    if (!e->link) {
        return true;            /* link down: the frame is lost */
    }
    if (e->tx_blocked) {
        return false;
    }
    if (!wire_paused(e)) {
        wire = e->ops.send(e->opaque, frame, len);
    }
    e->tx_blocked = wire != QHCA_WIRE_READY;
    if (wire == QHCA_WIRE_BUSY) {
        return false;
    }
    qhca_wire_count_tx(e, frame, as);
    if (e->sniff) {
        e->sniff(e, frame, len);
    }
    return true;
}

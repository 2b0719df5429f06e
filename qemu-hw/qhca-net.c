/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: the wire, which is a QEMU network backend.
 *
 * The net core accepts every frame: if the backend is busy, it queues the frame
 * without limit and calls back when it has been sent.  To bound that queue, we
 * give it at most one frame; the engine builds no other until the callback.
 */
#include "qemu/osdep.h"
#include "block/aio.h"
#include "qemu/main-loop.h"
#include "qhca.h"

/*
 * A single frame is answered at once, for latency.  If frames arrive closer
 * together than this, a BH answers the later ones together: fewer ACKs and
 * fewer main loop iterations.
 */
#define QHCA_RX_ALONE_NS    10000

static void qhca_net_sent(NetClientState *nc, ssize_t ret);

enum qhca_wire qhca_op_send(void *opaque, const void *frame, size_t len)
{
    QhcaState *s = opaque;
    uint64_t now = s->record ? qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) : 0;

    if (unlikely(s->gone)) {
        return QHCA_WIRE_READY;       /* lost, as on a cut wire */
    }
    /* The backend's state must not influence a recorded guest. */
    if (qhca_replayed()) {
        qemu_send_packet(qemu_get_queue(s->nic), frame, len);
        if (s->record) {
            qhca_record_frame(s, true, frame, len, now);
        }
        return QHCA_WIRE_READY;
    }
    /* A stopped machine's net core drops its queue: keep the frame. */
    if (unlikely(s->tx_queued || !runstate_is_running())) {
        s->tx_waits = true;
        return QHCA_WIRE_BUSY;
    }
    if (qemu_send_packet_async(qemu_get_queue(s->nic), frame, len,
                               qhca_net_sent) == 0) {
        s->tx_queued = true;
        s->tx_waits = true;
    }
    if (s->record) {
        qhca_record_frame(s, true, frame, len, now);
    }
    return s->tx_queued ? QHCA_WIRE_FULL : QHCA_WIRE_READY;
}

static void qhca_net_tx_ready(QhcaState *s)
{
    if (s->tx_waits && !s->tx_queued && runstate_is_running() &&
        s->engine && !s->in_engine) {
        s->tx_waits = false;
        qhca_call(s, &(QhcaCall) { .kind = QHCA_CALL_TX_READY });
    }
}

/*
 * Bracket work that is done within a call of the net core.  The guest may
 * unplug the device meanwhile: keep it alive until the end.
 */
static void qhca_net_begin(QhcaState *s)
{
    object_ref(OBJECT(s));
    s->in_net = true;
}

static void qhca_net_end(QhcaState *s)
{
    s->in_net = false;
    object_unref(OBJECT(s));
}

static void qhca_net_sent(NetClientState *nc, ssize_t ret)
{
    QhcaState *s = qemu_get_nic_opaque(nc);

    s->tx_queued = false;
    if (s->tx_waits && s->engine && !s->gone) {
        if (s->in_engine) {
            qhca_later(s);
        } else {
            qhca_net_begin(s);
            qhca_net_tx_ready(s);
            qhca_net_end(s);
        }
    }
}

/*
 * The link is up if there is a peer and the link was not set down.  If this
 * changes within a call of the engine, such as its own send, report it later.
 */
static void qhca_net_update_link(QhcaState *s)
{
    NetClientState *nc = qemu_get_queue(s->nic);

    if (s->engine && !s->in_engine) {
        s->link_changed = false;
        qhca_net_begin(s);
        qhca_call(s, &(QhcaCall) {
            .kind = QHCA_CALL_LINK, .val = nc->peer && !nc->link_down,
        });
        qhca_net_end(s);
    } else if (s->engine && !s->gone) {
        s->link_changed = true;
        qhca_later(s);
    }
}

void qhca_net_resume(QhcaState *s)
{
    if (s->link_changed) {
        qhca_net_update_link(s);
    }
    qhca_net_tx_ready(s);
    if (s->engine && s->rx_refused) {
        s->rx_refused = false;
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}

/* A backend may reply within our own send: refuse for now, see rx_refused. */
static bool qhca_net_can_receive(NetClientState *nc)
{
    QhcaState *s = qemu_get_nic_opaque(nc);

    if (s->in_engine && !s->stopped && !s->gone) {
        s->rx_refused = true;
        qhca_later(s);
        return false;
    }
    return true;
}

static ssize_t qhca_net_receive(NetClientState *nc, const uint8_t *buf,
                                size_t size)
{
    QhcaState *s = qemu_get_nic_opaque(nc);
    uint64_t now;

    if (!qhca_net_can_receive(nc)) {
        return 0;
    }
    if (s->engine && !s->gone) {
        qhca_net_begin(s);
        if (!s->stopped) {
            now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
            s->run_at_once = now - s->last_rx > QHCA_RX_ALONE_NS;
            s->last_rx = now;
        }
        qhca_call(s, &(QhcaCall) {
            .kind = QHCA_CALL_RX, .data = buf, .size = size,
        });
        qhca_net_end(s);
    }
    return size;
}

static void qhca_net_link_changed(NetClientState *nc)
{
    QhcaState *s = qemu_get_nic_opaque(nc);

    if (nc->link_down) {
        bool waits = s->tx_waits;

        /* What is queued is lost; the engine goes on after it knows why. */
        s->tx_waits = false;
        qemu_purge_queued_packets(nc);
        s->tx_queued = false;   /* a deleted backend does not call back */
        s->tx_waits = waits;
    }
    if (runstate_is_running() || qhca_replayed()) {
        qhca_net_update_link(s);
    } else {
        /*
         * Its event changes memory, so it waits for qhca_vm_change(). That
         * schedules nothing in record and replay, where the machine is stopped
         * at the same times, so there the event does not wait.
         */
        s->link_changed = true;
    }
    if (s->engine && s->tx_waits && !s->gone) {
        qhca_later(s);
    }
}

static NetClientInfo qhca_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = qhca_net_can_receive,
    .receive = qhca_net_receive,
    .link_status_changed = qhca_net_link_changed,
};

void qhca_net_init(QhcaState *s)
{
    DeviceState *dev = DEVICE(s);

    s->nic = qemu_new_nic(&qhca_net_info, &s->conf,
                          object_get_typename(OBJECT(s)), dev->id,
                          &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
    qhca_net_update_link(s);
}

static void qhca_net_delete(void *opaque)
{
    QhcaState *s = opaque;

    if (s->in_net || s->in_engine) {
        qhca_net_exit(s);       /* in a nested event loop: later */
    } else {
        /*
         * qemu_del_nic() only purges frames to us; one queued at the backend
         * would call qhca_net_sent() with a deleted NIC.
         */
        qemu_purge_queued_packets(qemu_get_queue(s->nic));
        qemu_del_nic(s->nic);
        s->nic = NULL;
    }
    object_unref(OBJECT(s));
}

void qhca_net_exit(QhcaState *s)
{
    object_ref(OBJECT(s));
    if (s->in_net || s->in_engine) {
        /* The net core may still use the NIC: delete it from a BH. */
        aio_bh_schedule_oneshot(qemu_get_aio_context(), qhca_net_delete, s);
    } else {
        qhca_net_delete(s);
    }
}

void qhca_net_reset(QhcaState *s)
{
    /* A frame that the net core has queued is still sent. */
    s->tx_waits = false;
}

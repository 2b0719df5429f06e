/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: snapshots and migration.  The engine writes and checks the adapter's
 * state, a stream of bytes (base/save.h); the device adds pending interrupts
 * and timers.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/error-report.h"
#include "hw/pci/msix.h"
#include "migration/qemu-file-types.h"
#include "qhca.h"

/* Read this much before allocating more memory. */
#define QHCA_VM_PIECE       (64 * 1024)

static int qhca_vm_read(QEMUFile *f, GByteArray *to, uint64_t len)
{
    uint64_t have = 0, n;

    while (have < len) {
        n = MIN(len - have, QHCA_VM_PIECE);
        g_byte_array_set_size(to, have + n);
        if (qemu_get_buffer(f, to->data + have, n) != n) {
            error_report("qhca: the state is truncated");
            return -EINVAL;
        }
        have += n;
    }
    return 0;
}

void qhca_vm_forget(QhcaState *s)
{
    g_clear_pointer(&s->incoming, g_byte_array_unref);
}

/* ---- the engine ---- */

static int qhca_vm_put_engine(QEMUFile *f, void *pv, size_t size,
                              const VMStateField *field, JSONWriter *desc)
{
    QhcaState *s = container_of(pv, QhcaState, incoming);
    size_t len;
    void *buf;

    if (!qhca_save(s->engine, &buf, &len)) {
        error_report("qhca: out of memory for the state");
        return -ENOMEM;
    }
    qemu_put_be64(f, len);
    qemu_put_buffer(f, buf, len);
    free(buf);
    return 0;
}

static int qhca_vm_get_engine(QEMUFile *f, void *pv, size_t size,
                              const VMStateField *field)
{
    QhcaState *s = container_of(pv, QhcaState, incoming);
    uint64_t len = qemu_get_be64(f);

    if (len > G_MAXUINT) {
        error_report("qhca: a state of %" PRIu64 " bytes is too long", len);
        return -EINVAL;
    }
    qhca_vm_forget(s);
    s->incoming = g_byte_array_new();
    return qhca_vm_read(f, s->incoming, len);
}

static const VMStateInfo qhca_vm_engine = {
    .name = "qhca-engine",
    .get = qhca_vm_get_engine,
    .put = qhca_vm_put_engine,
};

/* ---- vectors raised but not sent ---- */

static int qhca_vm_put_raised(QEMUFile *f, void *pv, size_t size,
                              const VMStateField *field, JSONWriter *desc)
{
    QhcaState *s = container_of(pv, QhcaState, raised);
    unsigned long v, n = s->cfg.num_vectors;

    qemu_put_be32(f, bitmap_count_one(s->raised, n));
    for (v = find_first_bit(s->raised, n); v < n;
         v = find_next_bit(s->raised, n, v + 1)) {
        qemu_put_be32(f, v);
    }
    return 0;
}

static int qhca_vm_get_raised(QEMUFile *f, void *pv, size_t size,
                              const VMStateField *field)
{
    QhcaState *s = container_of(pv, QhcaState, raised);
    uint32_t n = qemu_get_be32(f), v;

    bitmap_zero(s->raised, s->cfg.num_vectors);
    if (n > s->cfg.num_vectors) {
        error_report("qhca: more vectors raised than exist");
        return -EINVAL;
    }
    s->any_raised = n;
    while (n--) {
        v = qemu_get_be32(f);
        if (v >= s->cfg.num_vectors) {
            error_report("qhca: raised vector %u does not exist", v);
            return -EINVAL;
        }
        set_bit(v, s->raised);
    }
    return 0;
}

static const VMStateInfo qhca_vm_raised = {
    .name = "qhca-raised",
    .get = qhca_vm_get_raised,
    .put = qhca_vm_put_raised,
};

/* ---- the whole ---- */

static int qhca_vm_pre_save(void *opaque)
{
    QhcaState *s = opaque;

    if (s->in_engine) {
        error_report("qhca: a break or step has stopped the adapter in the "
                     "middle of its work, which cannot be saved: let it go "
                     "on first");
        return -EBUSY;
    }
    s->soon_at = timer_pending(s->soon) ? timer_expire_time_ns(s->soon) :
                 UINT64_MAX;
    return 0;
}

static int qhca_vm_pre_load(void *opaque)
{
    QhcaState *s = opaque;

    /* A pending reset from a nested call would undo the load. */
    return s->in_engine || !s->engine ? -EBUSY : 0;
}

static void qhca_vm_timers(QhcaState *s, uint64_t timer_at)
{
    timer_del(s->timer);
    timer_del(s->soon);
    s->deadline = UINT64_MAX;
    s->timer_at = timer_at;
    if (timer_at != UINT64_MAX) {
        timer_mod_ns(s->timer, MIN(timer_at, INT64_MAX));
    }
    if (s->soon_at != UINT64_MAX && qhca_replayed()) {
        timer_mod_ns(s->soon, MIN(s->soon_at, INT64_MAX));
    }
}

static int qhca_vm_post_load(void *opaque, int version_id)
{
    QhcaState *s = opaque;
    char why[160] = "";
    bool ok;

    s->reset_wanted = false;
    s->run_wanted = false;
    s->run_at_once = false;
    s->tx_waits = false;
    qhca_vm_timers(s, s->timer_at);
    if (!qhca_enter(s)) {
        return -EBUSY;
    }
    ok = qhca_load(s->engine, s->incoming->data, s->incoming->len, why,
                   sizeof(why));
    s->in_engine = false;       /* no interrupts before the machine runs */
    qhca_vm_forget(s);
    if (!ok) {
        error_report("qhca: the saved state cannot be loaded: %s", why);
        return -EINVAL;
    }
    if (!qhca_replayed()) {
        /* The link state here may be different. */
        s->link_changed = true;
        qhca_later(s);
    }
    return 0;
}

const VMStateDescription qhca_vmstate = {
    .name = TYPE_QHCA,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = qhca_vm_pre_save,
    .pre_load = qhca_vm_pre_load,
    .post_load = qhca_vm_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, QhcaState),
        VMSTATE_MSIX(parent_obj, QhcaState),
        VMSTATE_UINT64(last_rx, QhcaState),
        VMSTATE_UINT64(timer_at, QhcaState),
        VMSTATE_UINT64(soon_at, QhcaState),
        VMSTATE_SINGLE(raised, QhcaState, 1, qhca_vm_raised, unsigned long *),
        VMSTATE_SINGLE(incoming, QhcaState, 1, qhca_vm_engine, GByteArray *),
        VMSTATE_END_OF_LIST()
    },
};

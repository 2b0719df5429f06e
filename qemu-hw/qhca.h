/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: the adapter as a QEMU device.
 *
 * The adapter itself is the engine (engine/engine.h).  These files connect it
 * to QEMU: the PCI function (qhca-pci.c), calls into and out of the engine
 * (qhca-glue.c), its DMA (qhca-dma.c), the wire (qhca-net.c) and its trace
 * (qhca-trace.c).  The engine runs under the big QEMU lock.
 */
#ifndef HW_NET_QHCA_H
#define HW_NET_QHCA_H

#include "hw/pci/pci_device.h"
#include "net/net.h"
#include "qemu/coroutine.h"
#include "qemu/timer.h"
#include "qom/object.h"
#include "migration/vmstate.h"
#include "system/runstate.h"
#include "engine/engine.h"

#define TYPE_QHCA "qhca"
OBJECT_DECLARE_SIMPLE_TYPE(QhcaState, QHCA)

typedef struct QhcaDmaCache QhcaDmaCache;
typedef struct QhcaMemlink QhcaMemlink;
typedef struct QhcaRecorder QhcaRecorder;

struct QhcaState {
    PCIDevice parent_obj;

    MemoryRegion regs;          /* BAR 0 */
    MemoryRegion db;            /* BAR 2 */
    MemoryRegion dm;            /* BAR 4: RAM; none if cfg.dm_size is 0 */
    NICState *nic;
    NICConf conf;
    struct qhca_config cfg;     /* the properties; constant after realize */

    QhcaDmaCache *dma_cache;    /* NULL unless realized */
    struct qhca *engine;        /* NULL unless realized */
    bool in_engine;             /* a call of the engine is on the stack */
    bool reset_wanted;          /* reset requested during a call */
    bool revoke_wanted;         /* no more DMA, said during a call */
    bool gone;                  /* unplugged during a call */

    /*
     * Interrupts are sent after the call that raised them, not within it; and
     * from a BH if the net core made the call, since it still uses the NIC.
     */
    unsigned long *raised;      /* a bit for each vector */
    bool any_raised;
    bool notifying;
    bool in_net;                /* called by the net core: do not send yet */

    QEMUBH *bh;
    QEMUTimer *soon;            /* record and replay: instead of the BH */
    uint64_t soon_at;           /* in a snapshot: when, UINT64_MAX: never */
    bool run_wanted;            /* the engine asked for qhca_run() */
    bool run_at_once;           /* the caller will run it: no BH needed */
    uint64_t last_rx;           /* time of the last frame received */

    QEMUTimer *timer;
    uint64_t deadline;          /* set by the engine, UINT64_MAX: none */
    uint64_t timer_at;          /* what the timer is set to: no later */

    bool tx_queued;             /* the net core has queued a frame of ours */
    bool tx_waits;              /* the engine waits for qhca_tx_ready() */
    bool rx_refused;            /* the backend waits for a flush */
    bool link_changed;          /* not reported to the engine yet */
    char *memlink_dir;          /* property: where other adapters are */
    OnOffAuto memlink_thread;   /* property: for their bells */
    QhcaMemlink *memlink;       /* or NULL */
    struct QhcaFaultList *faults;       /* property */
    struct QhcaFaultInfoList *injected; /* the engine's rules, as given */
    VMChangeStateEntry *vm_change;
    Notifier wakeup;
    QhcaRecorder *record;       /* or NULL */
    GByteArray *incoming;       /* the engine's state during a load */

    /* A debugger's stop: see qhca-stop.c. */
    Coroutine *co;              /* the call that may be stopped, or NULL */
    bool stopped;                /* ... and is stopped */
    bool told;                  /* ... and the stop was reported */
    bool go_on;                 /* the machine runs again: resume the call */
    CPUState *owner;            /* the vCPU that made the call, or NULL */
    GQueue *later;              /* QhcaCall: calls made meanwhile, or NULL */
    QEMUBH *stop_bh;
};

/* A call of the engine that may be stopped. */
typedef struct QhcaCall {
    enum {
        QHCA_CALL_REG,          /* register written: addr, val, size */
        QHCA_CALL_READ,         /* register read: addr, size, result */
        QHCA_CALL_DB,           /* doorbell: addr, val, size */
        QHCA_CALL_RX,           /* frame received: data, size */
        QHCA_CALL_RUN,
        QHCA_CALL_TIMER,
        QHCA_CALL_LINK,         /* val: up? */
        QHCA_CALL_TX_READY,
        QHCA_CALL_BELL,         /* val: number of the memory link */
    } kind;
    uint64_t addr, val;
    uint64_t *result;           /* valid until the call is over or stopped */
    size_t size;
    const uint8_t *data;
    CPUState *cpu;              /* the vCPU that made it, or NULL */
} QhcaCall;

/* ---- qhca-glue.c ---- */

/**
 * Every call of the engine is made between these two.
 *
 * qhca_enter() returns false if there is no engine or a call is in progress:
 * then the engine must not be called.  qhca_leave() does what was deferred to
 * the end of the call: interrupts, a reset, an unplug; the device may be gone
 * when it returns.
 */
bool qhca_enter(QhcaState *s);
void qhca_leave(QhcaState *s);
/**
 * Enter, make the call, leave.  Does nothing if the engine cannot be entered.
 * If a debugger has stopped the engine, the call is made later, and the vCPU
 * that made it stops after it.  The caller keeps @c.
 */
void qhca_call(QhcaState *s, const QhcaCall *c);
/** Make the call itself; for qhca-stop.c. */
void qhca_do_call(QhcaState *s, const QhcaCall *c);
/** Within a call: do the remaining work at once, not in a BH. */
void qhca_run_now(QhcaState *s);

/** The engine's operations; their opaque is QhcaState. */
extern const struct qhca_ops qhca_glue_ops;

/** Create BH, timer and engine; false with *errp set on error. */
bool qhca_glue_init(QhcaState *s, Error **errp);
/** Undo qhca_glue_init(); deferred if within a call of the engine. */
void qhca_glue_exit(QhcaState *s);
/** Reset the engine; deferred if within a call of it. */
void qhca_glue_reset(QhcaState *s);

/**
 * Do pending work later, in a BH.  In record and replay at this point of
 * virtual time instead: a BH of the main loop runs at an arbitrary time.
 */
void qhca_later(QhcaState *s);
/** Is this machine being recorded or replayed? */
bool qhca_replayed(void);

/* ---- qhca-vmstate.c ---- */
extern const VMStateDescription qhca_vmstate;
/** Free what a load has left that failed before its end. */
void qhca_vm_forget(QhcaState *s);

/* ---- qhca-dma.c: the DMA operations; see struct qhca_ops ---- */
bool qhca_op_dma_read(void *opaque, uint64_t addr, void *buf, size_t len);
bool qhca_op_dma_write(void *opaque, uint64_t addr, const void *buf,
                       size_t len);
bool qhca_op_dma_store64(void *opaque, uint64_t addr, uint64_t val);
void qhca_op_dma_fence(void *opaque);
bool qhca_op_dma_cas64(void *opaque, uint64_t addr, uint64_t cmp,
                       uint64_t swap, uint64_t *old);
/* The same for device memory; @off and @len are in range. */
bool qhca_op_dm_read(void *opaque, uint64_t off, void *buf, size_t len);
bool qhca_op_dm_write(void *opaque, uint64_t off, const void *buf,
                      size_t len);
bool qhca_op_dm_cas64(void *opaque, uint64_t off, uint64_t cmp,
                      uint64_t swap, uint64_t *old);

/* ---- qhca-dma-cache.c ---- */
void qhca_dma_cache_init(QhcaState *s);
/** Discard all mappings: no DMA from now on. */
void qhca_dma_cache_exit(QhcaState *s);
/**
 * A mapping that contains the @len bytes at DMA address @addr, from *@off on;
 * NULL if they are not mapped RAM: use the address space.  Valid until the
 * next call.
 */
MemoryRegionCache *qhca_dma_cached(QhcaState *s, uint64_t addr, size_t len,
                                   hwaddr *off);

/* ---- qhca-net.c ---- */
void qhca_net_init(QhcaState *s);
/**
 * Delete the NIC; deferred if within a call of the net core or the engine.
 * Call qhca_glue_exit() first.
 */
void qhca_net_exit(QhcaState *s);
/** The engine was reset and holds no frame. */
void qhca_net_reset(QhcaState *s);
/** Handle what was deferred: link changes, frames refused either way. */
void qhca_net_resume(QhcaState *s);
enum qhca_wire qhca_op_send(void *opaque, const void *frame, size_t len);

/* ---- qhca-memlink.c: links to adapters of other processes ---- */
/** If the property is set, listen and look for others; false: *@errp is set. */
bool qhca_memlink_init(QhcaState *s, Error **errp);
/** Disconnect; call before qhca_glue_exit(). */
void qhca_memlink_exit(QhcaState *s);
/** Free what a call of the engine may have used since qhca_memlink_exit(). */
void qhca_memlink_finalize(QhcaState *s);
/** Within a call: tell the engine if it may use links now. */
void qhca_memlink_update(QhcaState *s);
/** The guest has switched off bus mastering. */
void qhca_memlink_no_dma(QhcaState *s);
/** The machine starts or stops. */
void qhca_memlink_vm_change(QhcaState *s);
/** Is the thread that answers bells in a call?  It then runs the engine. */
bool qhca_memlink_runs(const QhcaState *s);
/** Handle bells that rang while the engine could not be called. */
void qhca_memlink_resume(QhcaState *s);
bool qhca_op_dma_share(void *opaque, uint64_t addr, size_t len,
                       uint32_t *region, uint64_t *off);
void qhca_op_memlink_bell(void *opaque, unsigned id);
bool qhca_op_memlink_bell_soon(void *opaque, unsigned id);
bool qhca_op_memlink_wait(void *opaque, unsigned id);
void qhca_op_memlink_cut(void *opaque, unsigned id, const char *why);

/*
 * ---- Observers: qhca-observe-stub.c has these functions instead for a device
 * that is built without them ----
 */

/* ---- qhca-stop.c ---- */
/** After the engine was made. */
void qhca_stop_init(QhcaState *s);
void qhca_stop_exit(QhcaState *s);
void qhca_op_stop(void *opaque);
bool qhca_op_can_stop(void *opaque);
/** Within a call: a register was read, which may be a reason to stop. */
void qhca_stop_take(QhcaState *s);
/** Does a debugger wait for an event, so that a call may be stopped? */
bool qhca_stop_wanted(const QhcaState *s);
/** Make a call, already entered, that may be stopped; leaves at its end. */
void qhca_stop_call(QhcaState *s, const QhcaCall *c);
/** Queue a call until the stopped one is over. */
void qhca_stop_later(QhcaState *s, const QhcaCall *c);
/**
 * Resume a stopped call if the machine runs.  True: no call is stopped (any
 * more), so the engine may be called.
 */
bool qhca_stop_ready(QhcaState *s);
/** The machine starts or stops. */
void qhca_stop_vm_change(QhcaState *s, bool running);
/**
 * Before a reset or unplug: run the stopped call to its end, without further
 * stops, and drop queued calls.
 */
void qhca_stop_abandon(QhcaState *s);

/* ---- qhca-fault.c ---- */
/** Add the property "faults". */
void qhca_class_faults(ObjectClass *klass);
/** Inject what the property says; false with *@errp set if invalid. */
bool qhca_faults_load(QhcaState *s, Error **errp);

/* ---- qhca-qmp.c ---- */
/** Add the counters as QOM properties. */
void qhca_class_counters(ObjectClass *klass);

/* ---- qhca-trace.c ---- */
/** When a call of the engine began, in ns; 0: not measured. */
typedef struct QhcaCallTime {
    int64_t host, cpu;
} QhcaCallTime;

void qhca_op_trace(void *opaque, const struct qhca_trace *t);
/** Is the trace used by a recording, a trace event or the error log? */
bool qhca_trace_wanted(const QhcaState *s);
/** For the trace event of a call of the engine: it begins; it has ended. */
QhcaCallTime qhca_trace_call_begins(void);
void qhca_trace_call_ended(QhcaState *s, const char *what,
                           const QhcaCallTime *begin);
/* The same of device @dev, which may be gone. */
void qhca_trace_call_done(const char *dev, const char *what,
                          const QhcaCallTime *begin);

/* ---- qhca-record.c: only while s->record is set ---- */
/** Record a trace event. */
void qhca_record_event(QhcaState *s, const struct qhca_trace *t);
/** Record a frame sent or received at @time (virtual clock, ns). */
void qhca_record_frame(QhcaState *s, bool out, const void *frame, size_t len,
                       uint64_t time);
/** The machine starts or stops, so virtual and host time diverge. */
void qhca_record_sync(QhcaState *s, bool running);
/** End the recording, if there is one. */
void qhca_record_end(QhcaState *s);

#endif /* HW_NET_QHCA_H */

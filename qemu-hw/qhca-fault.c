/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: injected faults, over QMP and as a property. */
#include "qemu/osdep.h"
#include "qapi/clone-visitor.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"
#include "qapi/qapi-visit-qhca.h"
#include "qapi/visitor-impl.h"
#include "engine/observe/breakpoint.h"
#include "engine/observe/fault.h"
#include "qhca-inspect.h"

/* The enumerations of the schema must match those of the engine. */
QEMU_BUILD_BUG_ON((int)QHCA_FAULT_ACTION__MAX != QHCA_FLT_ACTIONS);
QEMU_BUILD_BUG_ON((int)QHCA_FAULT_ACTION_RNR != QHCA_FLT_RNR);
QEMU_BUILD_BUG_ON((int)QHCA_FAULT_ACTION_FATAL != QHCA_FLT_FATAL);
QEMU_BUILD_BUG_ON((int)QHCA_FAULT_AT__MAX != QHCA_FLT_ATS);
QEMU_BUILD_BUG_ON((int)QHCA_FAULT_AT_CQE != QHCA_FLT_AT_CQE);
QEMU_BUILD_BUG_ON((int)QHCA_DMA_KIND__MAX != QHCA_DMAS);
QEMU_BUILD_BUG_ON((int)QHCA_DMA_KIND_RECORD != QHCA_DMA_RECORD);
QEMU_BUILD_BUG_ON((int)QHCA_QP_TYPE__MAX != QHCA_QPT_RAW + 1);
QEMU_BUILD_BUG_ON((int)QHCA_QP_TYPE_GSI != QHCA_QPT_GSI);
QEMU_BUILD_BUG_ON(QHCA_FAULT_DIRECTION_IN + 1 != QHCA_FLT_IN);
QEMU_BUILD_BUG_ON(QHCA_FAULT_ACCESS_WRITE + 1 != QHCA_FLT_WRITE);

/* Ranges have their first in a member of their own. */
static bool qhca_fault_range(const QhcaFault *q, struct qhca_fault_rule *f,
                             Error **errp)
{
    const char *alone = !q->has_psn && q->has_psn_last ? "psn-last" :
                        !q->has_psn && q->has_psn_relative ? "psn-relative" :
                        !q->has_address && q->has_address_last ?
                        "address-last" :
                        !q->has_index && q->has_index_last ? "index-last" :
                        NULL;

    if (alone) {
        error_setg(errp, "Parameter '%s' needs '%.*s'", alone,
                   (int)strcspn(alone, "-"), alone);
        return false;
    }
    f->psn = q->psn;
    f->psn_last = q->has_psn_last ? q->psn_last : q->psn;
    f->psn_relative = q->psn_relative;
    f->addr = q->address;
    f->addr_last = q->has_address_last ? q->address_last : q->address;
    f->index = q->index;
    f->index_last = q->has_index_last ? q->index_last : q->index;
    return true;
}

/* Convert a rule of the schema to the engine's; false with *@errp set. */
static bool qhca_fault_convert(const QhcaFault *q, struct qhca_fault_rule *f,
                               Error **errp)
{
    *f = (struct qhca_fault_rule) {
        .action = q->action,
        .at = q->at,
        .fields = (q->has_at ? QHCA_FLT_AT : 0) |
                  (q->has_number ? QHCA_FLT_NUMBER : 0) |
                  (q->has_peer ? QHCA_FLT_PEER : 0) |
                  (q->has_psn ? QHCA_FLT_PSN : 0) |
                  (q->opcode ? QHCA_FLT_OPCODE : 0) |
                  (q->has_syndrome ? QHCA_FLT_SYNDROME : 0) |
                  (q->has_qp_type ? QHCA_FLT_QP_TYPE : 0) |
                  (q->has_direction ? QHCA_FLT_DIRECTION : 0) |
                  (q->has_kind ? QHCA_FLT_KIND : 0) |
                  (q->has_access ? QHCA_FLT_ACCESS : 0) |
                  (q->has_address ? QHCA_FLT_ADDR : 0) |
                  (q->has_index ? QHCA_FLT_INDEX : 0) |
                  (q->has_count ? QHCA_FLT_COUNT : 0) |
                  (q->has_probability ? QHCA_FLT_CHANCE : 0) |
                  (q->has_time ? QHCA_FLT_NS : 0) |
                  (q->has_packets ? QHCA_FLT_PACKETS : 0),
        .number = q->number,
        .peer = q->peer,
        .syndrome = q->syndrome,
        .qp_type = q->qp_type,
        .direction = q->direction + 1,
        .kind = q->kind,
        .access = q->access + 1,
        .skip = q->skip,
        .nth = q->nth,
        .every = q->every,
        .count = q->count,
        .ns = q->time,
        .packets = q->packets,
    };
    if (q->opcode && !qhca_fault_opcode(q->opcode, f->opcode)) {
        error_setg(errp, "Parameter 'opcode' does not accept value '%s': give "
                   "a name like SEND_ONLY or ACK, or a group (request, "
                   "response, send, write, read, read-response, atomic)",
                   q->opcode);
        return false;
    }
    if (q->has_probability) {
        if (!(q->probability >= 0 && q->probability <= 1)) {
            error_setg(errp, "Parameter 'probability' expects 0 to 1");
            return false;
        }
        f->chance = (uint32_t)(q->probability * QHCA_FAULT_PPM + 0.5);
    }
    return qhca_fault_range(q, f, errp);
}

/* Inject and list a fault; what is listed, or NULL with *@errp set. */
static QhcaFaultInfo *qhca_fault_inject(QhcaState *s, QhcaFault *fault,
                                        Error **errp)
{
    QhcaFaultInfoList **tail = &s->injected;
    struct qhca_fault_rule f;
    QhcaFaultInfo *info;
    const char *wrong;

    if (!qhca_fault_convert(fault, &f, errp)) {
        return NULL;
    }
    wrong = qhca_fault_add(s->engine, &f);
    if (wrong) {
        error_setg(errp, "%s", wrong);
        return NULL;
    }
    info = g_new0(QhcaFaultInfo, 1);
    info->id = f.id;
    info->matches = f.matches;
    info->hits = f.hits;
    info->fault = QAPI_CLONE(QhcaFault, fault);
    while (*tail) {
        tail = &(*tail)->next;
    }
    QAPI_LIST_APPEND(tail, info);
    return info;
}

QhcaFaultInfo *qmp_qhca_fault_add(const char *device, QhcaFault *fault,
                                  Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    QhcaFaultInfo *info;

    if (!s) {
        return NULL;
    }
    info = qhca_fault_inject(s, fault, errp);
    if (info) {
        info = QAPI_CLONE(QhcaFaultInfo, info);
    }
    qhca_find_end(s);
    return info;
}

/* Forget the fault @id, or all if 0. */
static void qhca_fault_unlist(QhcaState *s, uint32_t id)
{
    QhcaFaultInfoList **at = &s->injected, *gone;

    while (*at) {
        if (id && (*at)->value->id != id) {
            at = &(*at)->next;
            continue;
        }
        gone = *at;
        *at = gone->next;
        gone->next = NULL;
        qapi_free_QhcaFaultInfoList(gone);
    }
}

void qmp_qhca_fault_remove(const char *device, bool has_id, uint32_t id,
                           Error **errp)
{
    QhcaState *s = qhca_find(device, errp);

    if (!s) {
        return;
    }
    if (qhca_break_stopped(s->engine)) {
        error_setg(errp, "The adapter is stopped in the middle of its work: "
                   "resume it first");
    } else if ((has_id && !id) ||
               !qhca_fault_remove(s->engine, has_id ? id : 0)) {
        error_setg(errp, "There is no fault %u", id);
    } else {
        qhca_fault_unlist(s, has_id ? id : 0);
    }
    qhca_find_end(s);
}

QhcaFaults *qmp_qhca_fault_list(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    const struct qhca_fault_rule *f;
    QhcaFaultInfoList *l;
    QhcaFaults *all;

    if (!s) {
        return NULL;
    }
    all = g_new0(QhcaFaults, 1);
    all->device = object_get_canonical_path(OBJECT(s));
    all->seed = qhca_fault_get_seed(s->engine);
    all->held = qhca_fault_held(s->engine);
    for (l = s->injected; l; l = l->next) {
        f = qhca_fault_next(s->engine, l->value->id - 1);
        l->value->matches = f->matches;
        l->value->hits = f->hits;
    }
    all->faults = QAPI_CLONE(QhcaFaultInfoList, s->injected);
    qhca_find_end(s);
    return all;
}

void qmp_qhca_fault_seed(const char *device, uint64_t seed, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    const char *wrong;

    if (!s) {
        return;
    }
    wrong = qhca_fault_seed(s->engine, seed);
    if (wrong) {
        error_setg(errp, "%s", wrong);
    }
    qhca_find_end(s);
}

/* ---- the property ---- */

static void qhca_faults_get(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    visit_type_QhcaFaultList(v, name, &QHCA(obj)->faults, errp);
}

static void qhca_faults_set(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    QhcaState *s = QHCA(obj);
    QhcaFaultList *faults;

    if (DEVICE(obj)->realized) {
        error_setg(errp, "'%s' can only be set before the device starts; use "
                   "qhca-fault-add", name);
    } else if (!v->start_struct) {
        /* the visitor of -global has no structures, and no error for them */
        error_setg(errp, "'%s' is a list: give it to -device as JSON", name);
    } else if (visit_type_QhcaFaultList(v, name, &faults, errp)) {
        qapi_free_QhcaFaultList(s->faults);
        s->faults = faults;
    }
}

static void qhca_faults_release(Object *obj, const char *name, void *opaque)
{
    qapi_free_QhcaFaultList(QHCA(obj)->faults);
    qapi_free_QhcaFaultInfoList(QHCA(obj)->injected);
}

void qhca_class_faults(ObjectClass *klass)
{
    object_class_property_add(klass, "faults", "QhcaFaultList",
                              qhca_faults_get, qhca_faults_set,
                              qhca_faults_release, NULL);
    object_class_property_set_description(klass, "faults",
                        "injected faults, a list as JSON: see QMP's "
                        "qhca-fault-add");
}

bool qhca_faults_load(QhcaState *s, Error **errp)
{
    ERRP_GUARD();
    QhcaFaultList *l;
    unsigned n = 0;

    for (l = s->faults; l; l = l->next, n++) {
        if (!qhca_fault_inject(s, l->value, errp)) {
            error_prepend(errp, "faults[%u]: ", n);
            return false;
        }
    }
    return true;
}

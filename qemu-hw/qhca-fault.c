/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: faults on demand, over QMP and as a property. */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"
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
QEMU_BUILD_BUG_ON(QHCA_FAULT_DIRECTION_IN + 1 != QHCA_FLT_IN);
QEMU_BUILD_BUG_ON(QHCA_FAULT_ACCESS_WRITE + 1 != QHCA_FLT_WRITE);

static void qhca_fault_range(QhcaFault *q, struct qhca_fault_rule *f,
                             Error **errp)
{
    if ((q->has_psn_last || q->has_psn_relative) && !q->has_psn) {
        error_setg(errp, "Give 'psn' with 'psn-last' and 'psn-relative'");
    } else if (q->has_address_last && !q->has_address) {
        error_setg(errp, "Give 'address' with 'address-last'");
    } else if (q->has_index_last && !q->has_index) {
        error_setg(errp, "Give 'index' with 'index-last'");
    }
    f->psn = q->psn;
    f->psn_last = q->has_psn_last ? q->psn_last : q->psn;
    f->psn_relative = q->has_psn_relative && q->psn_relative;
    f->addr = q->address;
    f->addr_last = q->has_address_last ? q->address_last : q->address;
    f->index = q->index;
    f->index_last = q->has_index_last ? q->index_last : q->index;
}

/* Convert a rule of the schema to the engine's; false with *@errp set. */
static bool qhca_fault_convert(QhcaFault *q, struct qhca_fault_rule *f,
                               Error **errp)
{
    Error *err = NULL;

    *f = (struct qhca_fault_rule) {
        .action = q->action,
        .at = q->at,
        .fields = (q->has_at ? QHCA_FLT_AT : 0) |
                  (q->has_number ? QHCA_FLT_NUMBER : 0) |
                  (q->has_peer ? QHCA_FLT_PEER : 0) |
                  (q->has_psn ? QHCA_FLT_PSN : 0) |
                  (q->opcode ? QHCA_FLT_OPCODE : 0) |
                  (q->has_syndrome ? QHCA_FLT_SYNDROME : 0) |
                  (q->qp_type ? QHCA_FLT_QP_TYPE : 0) |
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
    qhca_fault_range(q, f, &err);
    if (err) {
        error_propagate(errp, err);
        return false;
    }
    if (q->opcode && !qhca_fault_opcode(q->opcode, f->opcode)) {
        error_setg(errp, "No such opcode '%s'; give names like SEND_ONLY "
                   "or ACK, groups (request, response, send, write, read, "
                   "read-response, atomic) or numbers 0 to 255", q->opcode);
        return false;
    }
    if (q->qp_type && !qhca_fault_qp_type(q->qp_type, &f->qp_type)) {
        error_setg(errp, "No such QP type '%s'; give rc, uc, ud, gsi, "
                   "xrc-ini, xrc-tgt or raw", q->qp_type);
        return false;
    }
    if (q->has_probability) {
        if (!(q->probability >= 0 && q->probability <= 1)) {
            error_setg(errp, "The probability must be between 0 and 1");
            return false;
        }
        f->chance = (uint32_t)(q->probability * QHCA_FAULT_PPM + 0.5);
    }
    return true;
}

static QhcaFaultInfo *qhca_fault_info(const struct qhca_fault_rule *f)
{
    QhcaFaultInfo *info = g_new0(QhcaFaultInfo, 1);
    char rule[QHCA_FAULT_TEXT];

    qhca_fault_format(f, rule, sizeof(rule));
    info->id = f->id;
    info->matches = f->matches;
    info->hits = f->hits;
    info->rule = g_strdup(rule);
    return info;
}

QhcaFaultInfo *qmp_qhca_fault_add(const char *device, QhcaFault *fault,
                                  Error **errp)
{
    struct qhca_fault_rule f;
    QhcaFaultInfo *info = NULL;
    const char *wrong;
    QhcaState *s;

    if (!qhca_fault_convert(fault, &f, errp)) {
        return NULL;
    }
    s = qhca_find(device, errp);
    if (!s) {
        return NULL;
    }
    wrong = qhca_fault_add(s->engine, &f);
    if (wrong) {
        error_setg(errp, "%s", wrong);
    } else {
        info = qhca_fault_info(&f);
    }
    qhca_find_end(s);
    return info;
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
    }
    qhca_find_end(s);
}

QhcaFaults *qmp_qhca_fault_list(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    const struct qhca_fault_rule *f;
    QhcaFaultInfoList **tail;
    QhcaFaults *all;

    if (!s) {
        return NULL;
    }
    all = g_new0(QhcaFaults, 1);
    all->device = object_get_canonical_path(OBJECT(s));
    all->seed = qhca_fault_get_seed(s->engine);
    all->held = qhca_fault_held(s->engine);
    tail = &all->faults;
    for (f = qhca_fault_next(s->engine, 0); f;
         f = qhca_fault_next(s->engine, f->id)) {
        QAPI_LIST_APPEND(tail, qhca_fault_info(f));
    }
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

bool qhca_faults_load(QhcaState *s, Error **errp)
{
    g_autofree char *text = NULL;
    char wrong[1024];

    if (!s->faults) {
        return true;
    }
    if (g_file_test(s->faults, G_FILE_TEST_EXISTS) &&
        !g_file_get_contents(s->faults, &text, NULL, NULL)) {
        error_setg(errp, "qhca: cannot read the file of faults '%s'",
                   s->faults);
        return false;
    }
    if (!qhca_fault_parse_all(s->engine, text ?: s->faults, wrong,
                              sizeof(wrong))) {
        error_setg(errp, "qhca: faults: %s", wrong);
        error_append_hint(errp, text ? "In the file '%s'.\n" :
                          "'%s' is no file, so it was read as rules.\n",
                          s->faults);
        return false;
    }
    return true;
}

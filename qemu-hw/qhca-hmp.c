/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: inspection and stops in the human monitor, and thus in gdb ("monitor
 * info qhca qp 17").
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"
#include "qapi/qapi-visit-qhca.h"
#include "qapi/qobject-input-visitor.h"
#include "qapi/qobject-output-visitor.h"
#include "qobject/qbool.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qobject/qstring.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "qemu/cutils.h"
#include "engine/observe/breakpoint.h"
#include "qhca-inspect.h"

/* ---- an emitter that prints ---- */

typedef struct QhcaText {
    Monitor *mon;
    unsigned depth;
    bool item;                  /* the next value begins a list entry */
} QhcaText;

static void qhca_text_name(QhcaText *t, const char *name)
{
    unsigned n = t->depth ? 2 * (t->depth - 1) : 0;

    if (t->item && n >= 2) {
        monitor_printf(t->mon, "%*s- ", n - 2, "");
    } else {
        monitor_printf(t->mon, "%*s", n, "");
    }
    t->item = false;
    if (name) {
        monitor_printf(t->mon, "%s: ", name);
    }
}

static void qhca_text_begin(void *opaque, const char *name, bool list)
{
    QhcaText *t = opaque;

    if (name) {
        qhca_text_name(t, name);
        monitor_printf(t->mon, "\n");
    } else {
        t->item = t->depth;
    }
    t->depth++;
}

static void qhca_text_end(void *opaque)
{
    QhcaText *t = opaque;

    t->depth--;
    t->item = false;
}

static void qhca_text_num(void *opaque, const char *name, uint64_t val,
                          bool hex)
{
    QhcaText *t = opaque;

    qhca_text_name(t, name);
    monitor_printf(t->mon, hex ? "0x%" PRIx64 "\n" : "%" PRIu64 "\n", val);
}

static void qhca_text_flag(void *opaque, const char *name, bool val)
{
    QhcaText *t = opaque;

    qhca_text_name(t, name);
    monitor_printf(t->mon, "%s\n", val ? "yes" : "no");
}

static void qhca_text_text(void *opaque, const char *name, const char *text)
{
    QhcaText *t = opaque;

    qhca_text_name(t, name);
    monitor_printf(t->mon, "%s\n", text);
}

static struct qhca_emit qhca_text_emit(QhcaText *t, Monitor *mon)
{
    *t = (QhcaText) { .mon = mon };
    return (struct qhca_emit) {
        .opaque = t,
        .begin = qhca_text_begin,
        .end = qhca_text_end,
        .num = qhca_text_num,
        .flag = qhca_text_flag,
        .text = qhca_text_text,
    };
}

/* ---- commands ---- */

static int qhca_lookup(const char *(*name)(unsigned i), const char *text)
{
    unsigned i;

    for (i = 0; name(i); i++) {
        if (!strcmp(name(i), text)) {
            return i;
        }
    }
    return -1;
}

static const char *object_name(unsigned i)
{
    return qhca_object_name(i);
}

static const char *ring_name(unsigned i)
{
    return qhca_ring_name(i);
}

static const char *on_name(unsigned i)
{
    return qhca_on_name(i);
}

/* Print a fault as qhca_fault takes it: the action, then KEY=VALUE. */
static void qhca_print_fault(Monitor *mon, QhcaFault *fault)
{
    g_autoptr(GList) keys = NULL;
    const QDictEntry *entry;
    QObject *rule;
    QDict *dict;
    Visitor *v;
    GList *l;

    v = qobject_output_visitor_new(&rule);
    visit_type_QhcaFault(v, NULL, &fault, &error_abort);
    visit_complete(v, &rule);
    visit_free(v);
    dict = qobject_to(QDict, rule);
    monitor_printf(mon, "%s", qdict_get_str(dict, "action"));
    qdict_del(dict, "action");
    for (entry = qdict_first(dict); entry; entry = qdict_next(dict, entry)) {
        keys = g_list_insert_sorted(keys, (void *)qdict_entry_key(entry),
                                    (GCompareFunc)strcmp);
    }
    for (l = keys; l; l = l->next) {
        QObject *val = qdict_get(dict, l->data);
        QString *word = qobject_to(QString, val);
        QBool *flag = qobject_to(QBool, val);
        g_autoptr(GString) json = qobject_to_json(val);

        monitor_printf(mon, ",%s=%s", (char *)l->data,
                       word ? qstring_get_str(word) :
                       flag ? (qbool_get_bool(flag) ? "on" : "off") :
                       json->str);
    }
    qobject_unref(dict);
}

static void qhca_info_faults(Monitor *mon)
{
    Error *err = NULL;
    QhcaFaults *all = qmp_qhca_fault_list(NULL, &err);
    QhcaFaultInfoList *l;

    if (!all) {
        hmp_handle_error(mon, err);
        return;
    }
    monitor_printf(mon, "seed: %" PRIu64 "\nheld: %u\n", all->seed,
                   all->held);
    for (l = all->faults; l; l = l->next) {
        monitor_printf(mon, "%u: ", l->value->id);
        qhca_print_fault(mon, l->value->fault);
        monitor_printf(mon, ": %" PRIu64 " hits of %" PRIu64 "\n",
                       l->value->hits, l->value->matches);
    }
    qapi_free_QhcaFaults(all);
}

static void hmp_info_qhca(Monitor *mon, const QDict *qdict)
{
    const char *what = qdict_get_try_str(qdict, "what") ?: "device";
    const char *ring = qdict_get_try_str(qdict, "ring");
    bool one = qdict_haskey(qdict, "number");
    uint32_t number = qdict_get_try_int(qdict, "number", 0);
    int object = qhca_lookup(object_name, what), which;
    struct qhca_ring_query look = { .object = object, .number = number };
    struct qhca_tree_look tree = {
        .object = object, .number = number, .max = QHCA_LOOK_MAX,
    };
    const char *wrong = NULL;
    Error *err = NULL;
    QhcaState *s;
    QhcaText t;
    struct qhca_emit em = qhca_text_emit(&t, mon);

    if (!strcmp(what, "faults")) {
        qhca_info_faults(mon);
        return;
    }
    s = qhca_find(NULL, &err);
    if (!s) {
        hmp_handle_error(mon, err);
        return;
    }
    if (!strcmp(what, "stop")) {
        qhca_break_show(s->engine, true, &em);
    } else if (object < 0) {
        wrong = "no such kind of object; try device, qp, cq, srq, eq, mr, "
                "pd, uar, xrcd, gid, mcg, eth-sq, eth-rq, wq, rqt, rss, "
                "flow, mw, shaper, stop, or faults";
    } else if (ring && !strcmp(ring, "tree")) {
        tree.ring = qhca_ring_default(object);
        wrong = qhca_inspect_tree(s->engine, &tree, &em);
    } else if (ring) {
        which = qhca_lookup(ring_name, ring);
        look.ring = which;
        wrong = which < 0 ? "no such ring" :
                qhca_inspect_ring(s->engine, &look, &em);
    } else if (one || object == QHCA_OBJ_DEVICE) {
        wrong = qhca_inspect(s->engine, object, number, &em);
    } else {
        wrong = qhca_inspect_all(s->engine, object, 0, QHCA_LOOK_MAX, &em);
    }
    qhca_find_end(s);
    if (wrong) {
        monitor_printf(mon, "Error: %s\n", wrong);
    }
}

/* Parse one "field=value" of a condition; false if invalid. */
static bool qhca_parse_field(struct qhca_break *b, const char *text)
{
    static const struct {
        const char *name;
        uint8_t bit;
    } fields[] = {
        { "number=", QHCA_BRK_NUMBER }, { "peer=", QHCA_BRK_PEER },
        { "index=", QHCA_BRK_INDEX }, { "psn=", QHCA_BRK_PSN },
        { "code=", QHCA_BRK_CODE }, { "wr-id=", QHCA_BRK_WR_ID },
        { "syndrome=", QHCA_BRK_SYNDROME }, { "ignore=", 0 },
    };
    const char *val;
    uint64_t num;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(fields); i++) {
        if (strstart(text, fields[i].name, &val) &&
            !qemu_strtou64(val, NULL, 0, &num)) {
            break;
        }
    }
    if (i == ARRAY_SIZE(fields)) {
        return false;
    }
    b->fields |= fields[i].bit;
    switch (fields[i].bit) {
    case QHCA_BRK_NUMBER:
        b->number = num;
        break;
    case QHCA_BRK_PEER:
        b->peer = num;
        break;
    case QHCA_BRK_INDEX:
        b->index = num;
        break;
    case QHCA_BRK_PSN:
        b->psn = num;
        break;
    case QHCA_BRK_CODE:
        b->code = num;
        break;
    case QHCA_BRK_WR_ID:
        b->wr_id = num;
        break;
    case QHCA_BRK_SYNDROME:
        b->syndrome = num;
        break;
    default:
        b->ignore = num;
        break;
    }
    return true;
}

static void hmp_qhca_break(Monitor *mon, const QDict *qdict)
{
    g_auto(GStrv) words = g_strsplit(qdict_get_str(qdict, "condition"), " ",
                                     0);
    int on = words[0] ? qhca_lookup(on_name, words[0]) : -1;
    struct qhca_break b = { .on = on };
    const char *wrong;
    Error *err = NULL;
    QhcaState *s;
    unsigned i;

    if (on < 0) {
        monitor_printf(mon, "Error: no such kind of event\n");
        return;
    }
    for (i = 1; words[i]; i++) {
        if (*words[i] && !qhca_parse_field(&b, words[i])) {
            monitor_printf(mon, "Error: '%s' is not FIELD=NUMBER\n",
                           words[i]);
            return;
        }
    }
    s = qhca_find(NULL, &err);
    if (!s) {
        hmp_handle_error(mon, err);
        return;
    }
    wrong = qhca_break_add(s->engine, &b);
    qhca_find_end(s);
    if (wrong) {
        monitor_printf(mon, "Error: %s\n", wrong);
    } else {
        monitor_printf(mon, "break %u\n", b.id);
    }
}

static void hmp_qhca_delete(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    qmp_qhca_break_remove(NULL, qdict_haskey(qdict, "id"),
                          qdict_get_try_int(qdict, "id", 0), &err);
    hmp_handle_error(mon, err);
}

static void hmp_qhca_step(Monitor *mon, const QDict *qdict)
{
    const char *text = qdict_get_try_str(qdict, "on");
    int on = text ? qhca_lookup(on_name, text) : QHCA_ON_WQE;
    Error *err = NULL;

    if (on < 0) {
        monitor_printf(mon, "Error: no such kind of event\n");
        return;
    }
    qmp_qhca_step(NULL, true, on, true, qdict_get_try_int(qdict, "count", 1),
                  &err);
    hmp_handle_error(mon, err);
}

static void hmp_qhca_fault(Monitor *mon, const QDict *qdict)
{
    QhcaFaultInfo *info = NULL;
    QhcaFault *fault = NULL;
    Error *err = NULL;
    Visitor *v = qobject_input_visitor_new_str(qdict_get_str(qdict, "rule"),
                                               "action", &err);

    if (v && visit_type_QhcaFault(v, NULL, &fault, &err)) {
        info = qmp_qhca_fault_add(NULL, fault, &err);
    }
    if (info) {
        monitor_printf(mon, "fault %u\n", info->id);
    }
    hmp_handle_error(mon, err);
    visit_free(v);
    qapi_free_QhcaFault(fault);
    qapi_free_QhcaFaultInfo(info);
}

static void hmp_qhca_fault_seed(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    qmp_qhca_fault_seed(NULL, qdict_get_int(qdict, "seed"), &err);
    hmp_handle_error(mon, err);
}

static void hmp_qhca_fault_delete(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    qmp_qhca_fault_remove(NULL, qdict_haskey(qdict, "id"),
                          qdict_get_try_int(qdict, "id", 0), &err);
    hmp_handle_error(mon, err);
}

static void qhca_hmp_register(void)
{
    monitor_register_hmp("qhca", true, hmp_info_qhca);
    monitor_register_hmp("qhca_break", false, hmp_qhca_break);
    monitor_register_hmp("qhca_delete", false, hmp_qhca_delete);
    monitor_register_hmp("qhca_step", false, hmp_qhca_step);
    monitor_register_hmp("qhca_fault", false, hmp_qhca_fault);
    monitor_register_hmp("qhca_fault_seed", false, hmp_qhca_fault_seed);
    monitor_register_hmp("qhca_fault_delete", false, hmp_qhca_fault_delete);
}

type_init(qhca_hmp_register)

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: inspection over QMP, as JSON, and the counters as QOM properties. */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"
#include "qapi/visitor.h"
#include "qobject/qbool.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "qobject/qstring.h"
#include "qhca-inspect.h"

#define QHCA_LIST_DEFAULT   64
#define QHCA_ENTRIES        8
#define QHCA_BYTES          64

/* The enumerations of the schema must match those of the engine. */
QEMU_BUILD_BUG_ON((int)QHCA_OBJECT_QP != QHCA_OBJ_QP);
QEMU_BUILD_BUG_ON((int)QHCA_OBJECT_ETH_RQ != QHCA_OBJ_ETH_RQ);
QEMU_BUILD_BUG_ON((int)QHCA_OBJECT_MW != QHCA_OBJ_MW);
QEMU_BUILD_BUG_ON((int)QHCA_OBJECT__MAX != QHCA_OBJECTS);
QEMU_BUILD_BUG_ON((int)QHCA_RING_NAME_DATA != QHCA_RING_DATA);
QEMU_BUILD_BUG_ON((int)QHCA_RING_NAME__MAX != QHCA_RING_MR);

/* ---- an emitter that makes JSON ---- */

static void qhca_json_add(QhcaJson *j, const char *name, QObject *val)
{
    QObject *in = j->depth ? j->stack[j->depth - 1] : NULL;

    if (!in) {
        qobject_unref(j->root);
        j->root = val;
    } else if (name) {
        qdict_put_obj(qobject_to(QDict, in), name, val);
    } else {
        qlist_append_obj(qobject_to(QList, in), val);
    }
}

static void qhca_json_begin(void *opaque, const char *name, bool list)
{
    QhcaJson *j = opaque;
    QObject *val = list ? QOBJECT(qlist_new()) : QOBJECT(qdict_new());

    qhca_json_add(j, name, val);
    g_assert(j->depth < QHCA_JSON_DEPTH);
    j->stack[j->depth++] = val;
}

static void qhca_json_end(void *opaque)
{
    QhcaJson *j = opaque;

    j->depth--;
}

static void qhca_json_num(void *opaque, const char *name, uint64_t val,
                          bool hex)
{
    qhca_json_add(opaque, name, QOBJECT(qnum_from_uint(val)));
}

static void qhca_json_flag(void *opaque, const char *name, bool val)
{
    qhca_json_add(opaque, name, QOBJECT(qbool_from_bool(val)));
}

static void qhca_json_text(void *opaque, const char *name, const char *text)
{
    qhca_json_add(opaque, name, QOBJECT(qstring_from_str(text)));
}

struct qhca_emit qhca_json_emit(QhcaJson *j)
{
    memset(j, 0, sizeof(*j));
    return (struct qhca_emit) {
        .opaque = j,
        .begin = qhca_json_begin,
        .end = qhca_json_end,
        .num = qhca_json_num,
        .flag = qhca_json_flag,
        .text = qhca_json_text,
    };
}

/* ---- commands ---- */

QhcaState *qhca_find(const char *device, Error **errp)
{
    bool ambiguous = false;
    Object *obj = object_resolve_path_type(device ?: "", TYPE_QHCA,
                                           &ambiguous);

    if (ambiguous) {
        error_setg(errp, "There is more than one qhca device: specify one");
    } else if (!obj) {
        error_setg(errp, device ? "There is no qhca device '%s'" :
                                  "There is no qhca device%s", device ?: "");
    } else if (!QHCA(obj)->engine ||
               (!QHCA(obj)->stopped && !qhca_enter(QHCA(obj)))) {
        error_setg(errp, "The device is busy or gone");
    } else {
        return QHCA(obj);
    }
    return NULL;
}

void qhca_find_end(QhcaState *s)
{
    if (!s->stopped) {
        qhca_leave(s);
    }
}

/* Wrap the output @j about @s in a QhcaLook; leaves the engine. */
static QhcaLook *qhca_inspect_end(QhcaState *s, QhcaJson *j, const char *wrong,
                                  Error **errp)
{
    QhcaLook *look = NULL;

    if (wrong) {
        error_setg(errp, "%s", wrong);
        qobject_unref(j->root);
    } else {
        look = g_new0(QhcaLook, 1);
        look->device = object_get_canonical_path(OBJECT(s));
        look->time = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
        look->look = j->root;
    }
    qhca_find_end(s);
    return look;
}

QhcaLook *qmp_qhca_inspect(const char *device, QhcaObject object,
                           bool has_number, uint32_t number, bool has_from,
                           uint32_t from, bool has_count, uint32_t count,
                           Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    const char *wrong;
    QhcaJson j;
    struct qhca_emit em = qhca_json_emit(&j);

    if (!s) {
        return NULL;
    }
    if (has_number || object == QHCA_OBJECT_DEVICE) {
        wrong = qhca_inspect(s->engine, object, has_number ? number : 0, &em);
    } else {
        wrong = qhca_inspect_all(s->engine, object, has_from ? from : 0,
                                 has_count ? count : QHCA_LIST_DEFAULT, &em);
    }
    return qhca_inspect_end(s, &j, wrong, errp);
}

QhcaLook *qmp_qhca_ring(const char *device, QhcaObject object,
                        uint32_t number, bool has_ring, QhcaRingName ring,
                        bool has_index, uint32_t index, bool has_count,
                        uint32_t count, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    struct qhca_ring_query look = {
        .object = object,
        .number = number,
        .ring = has_ring ? ring : qhca_ring_default(object),
        .ranged = has_index,
        .index = has_index ? index : 0,
        .count = has_count ? count : 1,
    };
    const char *wrong;
    QhcaJson j;
    struct qhca_emit em = qhca_json_emit(&j);

    if (!s) {
        return NULL;
    }
    wrong = qhca_inspect_ring(s->engine, &look, &em);
    return qhca_inspect_end(s, &j, wrong, errp);
}

QhcaLook *qmp_qhca_walk(const char *device, QhcaObject object,
                        uint32_t number, bool has_ring, QhcaRingName ring,
                        bool has_index, uint32_t index, bool has_offset,
                        uint64_t offset, bool has_va, uint64_t va,
                        bool has_entries, uint32_t entries, bool has_bytes,
                        uint32_t bytes, Error **errp)
{
    struct qhca_walk_look look = {
        .object = object,
        .number = number,
        .ring = has_ring ? ring : qhca_ring_default(object),
        .by = has_index ? QHCA_WALK_INDEX :
              has_va ? QHCA_WALK_VA : QHCA_WALK_OFFSET,
        .at = has_index ? index : has_va ? va : offset,
        .entries = has_entries ? entries : QHCA_ENTRIES,
        .bytes = has_bytes ? bytes : QHCA_BYTES,
    };
    const char *wrong;
    QhcaState *s;
    QhcaJson j;
    struct qhca_emit em = qhca_json_emit(&j);

    if (has_index + has_offset + has_va != 1) {
        error_setg(errp, "Give one of 'index', 'offset' and 'va'");
        return NULL;
    }
    s = qhca_find(device, errp);
    if (!s) {
        return NULL;
    }
    wrong = qhca_inspect_walk(s->engine, &look, &em);
    return qhca_inspect_end(s, &j, wrong, errp);
}

QhcaLook *qmp_qhca_tree(const char *device, QhcaObject object,
                        uint32_t number, bool has_ring, QhcaRingName ring,
                        bool has_from, uint64_t from, bool has_count,
                        uint32_t count, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    struct qhca_tree_look look = {
        .object = object,
        .number = number,
        .ring = has_ring ? ring : qhca_ring_default(object),
        .from = has_from ? from : 0,
        .max = has_count ? count : QHCA_LIST_DEFAULT,
    };
    const char *wrong;
    QhcaJson j;
    struct qhca_emit em = qhca_json_emit(&j);

    if (!s) {
        return NULL;
    }
    wrong = qhca_inspect_tree(s->engine, &look, &em);
    return qhca_inspect_end(s, &j, wrong, errp);
}

/* ---- counters ---- */

static void qhca_get_counter(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    QhcaState *s = QHCA(obj);
    uint64_t val = s->engine ? qhca_stat(s->engine, (uintptr_t)opaque) : 0;

    visit_type_uint64(v, name, &val, errp);
}

void qhca_class_counters(ObjectClass *klass)
{
    unsigned i;

    for (i = 0; i < QHCA_STAT_COUNT; i++) {
        g_autofree char *name = NULL;

        if (!qhca_stat_name(i)) {
            continue;
        }
        name = g_strdup_printf("counter-%s", qhca_stat_name(i));
        object_class_property_add(klass, name, "uint64", qhca_get_counter,
                                  NULL, NULL, (void *)(uintptr_t)i);
        object_class_property_set_description(klass, name,
                                              "counts since the last reset");
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: the QMP commands of a QEMU built without the device or without its
 * observers.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"

static void *no_device(Error **errp)
{
    error_setg(errp, "This QEMU is built without qhca, or without its "
               "observers");
    return NULL;
}

QhcaLook *qmp_qhca_inspect(const char *device, QhcaObject object,
                           bool has_number, uint32_t number, bool has_from,
                           uint32_t from, bool has_count, uint32_t count,
                           Error **errp)
{
    return no_device(errp);
}

QhcaLook *qmp_qhca_ring(const char *device, QhcaObject object,
                        uint32_t number, bool has_ring, QhcaRingName ring,
                        bool has_index, uint32_t index, bool has_count,
                        uint32_t count, Error **errp)
{
    return no_device(errp);
}

QhcaLook *qmp_qhca_walk(const char *device, QhcaObject object,
                        uint32_t number, bool has_ring, QhcaRingName ring,
                        bool has_index, uint32_t index, bool has_offset,
                        uint64_t offset, bool has_va, uint64_t va,
                        bool has_entries, uint32_t entries, bool has_bytes,
                        uint32_t bytes, Error **errp)
{
    return no_device(errp);
}

QhcaLook *qmp_qhca_tree(const char *device, QhcaObject object,
                        uint32_t number, bool has_ring, QhcaRingName ring,
                        bool has_from, uint64_t from, bool has_count,
                        uint32_t count, Error **errp)
{
    return no_device(errp);
}

QhcaBreakInfo *qmp_qhca_break_add(const char *device, QhcaCondition *c,
                                  Error **errp)
{
    return no_device(errp);
}

void qmp_qhca_break_remove(const char *device, bool has_id, uint32_t id,
                           Error **errp)
{
    no_device(errp);
}

QhcaBreakInfoList *qmp_qhca_break_list(const char *device, Error **errp)
{
    return no_device(errp);
}

void qmp_qhca_step(const char *device, bool has_on, QhcaStopOn on,
                   bool has_count, uint64_t count, Error **errp)
{
    no_device(errp);
}

void qmp_qhca_step_cancel(const char *device, Error **errp)
{
    no_device(errp);
}

QhcaLook *qmp_qhca_query_names(const char *device, Error **errp)
{
    return no_device(errp);
}

void qmp_qhca_record_start(const char *device, const char *file,
                           bool has_limit, uint64_t limit,
                           bool has_frame_bytes, uint32_t frame_bytes,
                           Error **errp)
{
    no_device(errp);
}

QhcaRecord *qmp_qhca_record_stop(const char *device, Error **errp)
{
    return no_device(errp);
}

QhcaFaultInfo *qmp_qhca_fault_add(const char *device, QhcaFault *f,
                                  Error **errp)
{
    return no_device(errp);
}

void qmp_qhca_fault_remove(const char *device, bool has_id, uint32_t id,
                           Error **errp)
{
    no_device(errp);
}

QhcaFaults *qmp_qhca_fault_list(const char *device, Error **errp)
{
    return no_device(errp);
}

void qmp_qhca_fault_seed(const char *device, uint64_t seed, Error **errp)
{
    no_device(errp);
}

QhcaLook *qmp_qhca_query_stop(const char *device, Error **errp)
{
    return no_device(errp);
}

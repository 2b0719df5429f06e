/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structures of the hardware interface as tables of fields, and the names
 * of its codes.  A test checks that the tables cover every byte.
 */
#ifndef QHCA_DECODE_H
#define QHCA_DECODE_H

#include "inspect.h"
#include "../base/trace.h"

struct qhca_name {
    uint64_t val;
    const char *name;           /* NULL: end of the table */
};

enum qhca_field_kind {
    QHCA_FD_DEC,
    QHCA_FD_HEX,
    QHCA_FD_BE,                 /* network order, hexadecimal */
    QHCA_FD_BYTES,
    QHCA_FD_GID,
    QHCA_FD_MAC,
    QHCA_FD_ENUM,               /* a number, and its name as NAME_name */
    QHCA_FD_FLAGS,              /* a number, and names as NAME_names */
    QHCA_FD_STRUCT,
    QHCA_FD_RSVD                /* not shown */
};

struct qhca_field {
    const char *name;           /* NULL: end of the table */
    uint16_t off, size;
    uint8_t kind;               /* enum qhca_field_kind */
    const char *label;          /* ENUM, FLAGS: name of the text */
    const struct qhca_name *names;      /* ENUM, FLAGS */
    const struct qhca_field *fields;    /* STRUCT */
};

struct qhca_struct_layout {
    const char *name;           /* of the structure */
    size_t size;
    const struct qhca_field *fields;
};

/* All layouts, for the test. */
extern const struct qhca_struct_layout qhca_struct_layouts[];

extern const struct qhca_field qhca_fields_buf[], qhca_fields_av[],
    qhca_fields_qpc[], qhca_fields_cqc[], qhca_fields_srqc[],
    qhca_fields_eqc[], qhca_fields_mpt[], qhca_fields_gid[],
    qhca_fields_port[], qhca_fields_caps[], qhca_fields_cqe[],
    qhca_fields_tm_cqe[], qhca_fields_eqe[], qhca_fields_eth_qc[],
    qhca_fields_ctrl[], qhca_fields_remote[], qhca_fields_sge[],
    qhca_fields_ud[], qhca_fields_rq_wqe[], qhca_fields_eth_wqe[],
    qhca_fields_eth_seg[], qhca_fields_tm_wqe[], qhca_fields_xrc[],
    qhca_fields_masked[], qhca_fields_page_fault[], qhca_fields_dbrec[],
    qhca_fields_wqc[], qhca_fields_flow_match[], qhca_fields_flow[],
    qhca_fields_eth_cqe[], qhca_fields_shaperc[];

extern const struct qhca_name qhca_names_feature[], qhca_names_qp_type[],
    qhca_names_qp_state[], qhca_names_qp_flag[], qhca_names_req_state[],
    qhca_names_rsp_state[], qhca_names_access[], qhca_names_form[],
    qhca_names_cq_state[], qhca_names_arm[], qhca_names_srq_flag[],
    qhca_names_srq_state[], qhca_names_mr_flag[], qhca_names_mr_state[],
    qhca_names_gid_type[], qhca_names_wqe_op[], qhca_names_wqe_flag[],
    qhca_names_cqe_op[], qhca_names_cqe_flag[], qhca_names_wc[],
    qhca_names_syn[], qhca_names_event[], qhca_names_cmd[],
    qhca_names_st[], qhca_names_db[], qhca_names_eth_wqe_flag[],
    qhca_names_tm_wqe_flag[],
    qhca_names_page_fault_flag[], qhca_names_fatal[], qhca_names_net[],
    qhca_names_bth[], qhca_names_stat[], qhca_names_wq_state[],
    qhca_names_wq_flag[], qhca_names_hash[], qhca_names_flow_type[],
    qhca_names_flow_flag[], qhca_names_fault_action[],
    qhca_names_hash_type[], qhca_names_rqt[],
    qhca_names_hash_by[], qhca_names_hash_mode[], qhca_names_eth_q_flag[],
    qhca_names_eq_flag[];

/** Name of @val, or NULL. */
const char *qhca_name_of(const struct qhca_name *names, uint64_t val);
/** Emit @val as @name and its name, if it has one, as @label. */
void qhca_emit_enum(const struct qhca_emit *em, const char *name,
                    const char *label, const struct qhca_name *names,
                    uint64_t val, bool hex);
/** Emit the set bits of @val as one text, "A|B|0x40". */
void qhca_emit_flags(const struct qhca_emit *em, const char *label,
                     const struct qhca_name *names, uint64_t val);
/** Emit @len bytes (at most 1024) as hexadecimal digits. */
void qhca_emit_bytes(const struct qhca_emit *em, const char *name,
                     const void *p, size_t len);
/** Emit a MAC address. */
void qhca_emit_mac(const struct qhca_emit *em, const char *name,
                   const uint8_t m[6]);
/** Emit a BTH opcode: number and name. */
void qhca_emit_bth(const struct qhca_emit *em, const char *name,
                   const char *label, uint8_t opcode);
/** Emit the fields of the structure at @p, without begin and end. */
void qhca_decode(const struct qhca_emit *em, const struct qhca_field *fields,
                 const void *p);
/** The same, as an object @name. */
void qhca_decode_as(const struct qhca_emit *em, const char *name,
                    const struct qhca_field *fields, const void *p);

/** Emit the fields of a trace event (decode_trace.c). */
void qhca_emit_trace(const struct qhca_emit *em, const struct qhca_trace *t);

/*
 * decode_wqe.c: work queue entries of @len bytes at @p.  Software wrote them,
 * so they may contain anything.
 */
void qhca_decode_send_wqe(const struct qhca_emit *em, uint8_t qp_type,
                          const void *p, size_t len);
void qhca_decode_recv_wqe(const struct qhca_emit *em, const void *p,
                          size_t len);
void qhca_decode_eth_wqe(const struct qhca_emit *em, const void *p,
                         size_t len);
void qhca_decode_tm_wqe(const struct qhca_emit *em, const void *p,
                        size_t len);
void qhca_decode_cqe(const struct qhca_emit *em, const void *p);

/* Shorthands */
static inline void qhca_emit_dec(const struct qhca_emit *em,
                                 const char *name, uint64_t val)
{
    em->num(em->opaque, name, val, false);
}

static inline void qhca_emit_hex(const struct qhca_emit *em,
                                 const char *name, uint64_t val)
{
    em->num(em->opaque, name, val, true);
}

static inline void qhca_emit_flag(const struct qhca_emit *em,
                                  const char *name, bool val)
{
    em->flag(em->opaque, name, val);
}

static inline void qhca_emit_text(const struct qhca_emit *em,
                                  const char *name, const char *text)
{
    em->text(em->opaque, name, text);
}

static inline void qhca_emit_begin(const struct qhca_emit *em,
                                   const char *name)
{
    em->begin(em->opaque, name, false);
}

static inline void qhca_emit_list(const struct qhca_emit *em,
                                  const char *name)
{
    em->begin(em->opaque, name, true);
}

static inline void qhca_emit_end(const struct qhca_emit *em)
{
    em->end(em->opaque);
}

#endif /* QHCA_DECODE_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding structures of the hardware interface by their field tables. */
#include <stdio.h>

#include "observe/decode.h"
#include "transport/rc.h"

#define BYTES_MAX           1024

const char *qhca_name_of(const struct qhca_name *names, uint64_t val)
{
    for (; names->name; names++) {
        if (names->val == val) {
            return names->name;
        }
    }
    return NULL;
}

void qhca_emit_enum(const struct qhca_emit *em, const char *name,
                    const char *label, const struct qhca_name *names,
                    uint64_t val, bool hex)
{
    const char *text = qhca_name_of(names, val);

    em->num(em->opaque, name, val, hex);
    if (text) {
        qhca_emit_text(em, label, text);
    }
}

void qhca_emit_flags(const struct qhca_emit *em, const char *label,
                     const struct qhca_name *names, uint64_t val)
{
    char text[512];
    size_t n = 0;

    text[0] = 0;
    for (; names->name && n < sizeof(text); names++) {
        if (names->val && (val & names->val) == names->val) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
                                  n ? "|" : "", names->name);
            val &= ~names->val;
        }
    }
    if (val && n < sizeof(text)) {
        snprintf(text + n, sizeof(text) - n, "%s0x%llx", n ? "|" : "",
                 (unsigned long long)val);
    }
    qhca_emit_text(em, label, text);
}

void qhca_emit_bytes(const struct qhca_emit *em, const char *name,
                     const void *p, size_t len)
{
    static const char digit[] = "0123456789abcdef";
    const uint8_t *b = p;
    char text[2 * BYTES_MAX + 1];
    size_t i;

    len = len < BYTES_MAX ? len : BYTES_MAX;
    for (i = 0; i < len; i++) {
        text[2 * i] = digit[b[i] >> 4];
        text[2 * i + 1] = digit[b[i] & 15];
    }
    text[2 * len] = 0;
    qhca_emit_text(em, name, text);
}

void qhca_emit_bth(const struct qhca_emit *em, const char *name,
                   const char *label, uint8_t opcode)
{
    const char *op = qhca_name_of(qhca_names_bth, opcode & 0x1f);
    const char *cls;
    char text[48];

    switch (opcode & QHCA_CLASS_MASK) {
    case QHCA_CLASS_RC:
        cls = "RC";
        break;
    case QHCA_CLASS_UC:
        cls = "UC";
        break;
    case QHCA_CLASS_UD:
        cls = "UD";
        break;
    case QHCA_CLASS_XRC:
        cls = "XRC";
        break;
    case QHCA_CLASS_OWN:
        cls = "MASKED";
        break;
    default:
        cls = NULL;
        break;
    }
    qhca_emit_hex(em, name, opcode);
    if (cls && op) {
        snprintf(text, sizeof(text), "%s %s", cls, op);
        qhca_emit_text(em, label, text);
    }
}

static void emit_gid(const struct qhca_emit *em, const char *name,
                     const uint8_t *g)
{
    char text[40];
    unsigned i, n = 0;

    if (qhca_ip6_is_ip4(g)) {
        snprintf(text, sizeof(text), "::ffff:%u.%u.%u.%u", g[12], g[13],
                 g[14], g[15]);
    } else {
        for (i = 0; i < 16; i += 2) {
            n += (unsigned)snprintf(text + n, sizeof(text) - n, "%s%02x%02x",
                                    i ? ":" : "", g[i], g[i + 1]);
        }
    }
    qhca_emit_text(em, name, text);
}

void qhca_emit_mac(const struct qhca_emit *em, const char *name,
                   const uint8_t m[6])
{
    char text[18];

    snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1],
             m[2], m[3], m[4], m[5]);
    qhca_emit_text(em, name, text);
}

static uint64_t emit_number(const uint8_t *p, size_t size, bool be)
{
    uint64_t val = 0;
    size_t i;

    for (i = 0; i < size; i++) {
        val = val << 8 | p[be ? i : size - 1 - i];
    }
    return val;
}

static void emit_field(const struct qhca_emit *em,
                       const struct qhca_field *f, const uint8_t *p)
{
    switch (f->kind) {
    case QHCA_FD_DEC:
        qhca_emit_dec(em, f->name, emit_number(p, f->size, false));
        break;
    case QHCA_FD_HEX:
        qhca_emit_hex(em, f->name, emit_number(p, f->size, false));
        break;
    case QHCA_FD_BE:
        qhca_emit_hex(em, f->name, emit_number(p, f->size, true));
        break;
    case QHCA_FD_BYTES:
        qhca_emit_bytes(em, f->name, p, f->size);
        break;
    case QHCA_FD_GID:
        emit_gid(em, f->name, p);
        break;
    case QHCA_FD_MAC:
        qhca_emit_mac(em, f->name, p);
        break;
    case QHCA_FD_ENUM:
        qhca_emit_enum(em, f->name, f->label, f->names,
                       emit_number(p, f->size, false), false);
        break;
    case QHCA_FD_FLAGS:
        qhca_emit_hex(em, f->name, emit_number(p, f->size, false));
        qhca_emit_flags(em, f->label, f->names, emit_number(p, f->size, false));
        break;
    case QHCA_FD_STRUCT:
        qhca_decode_as(em, f->name, f->fields, p);
        break;
    case QHCA_FD_RSVD:
        break;
    }
}

void qhca_decode(const struct qhca_emit *em, const struct qhca_field *fields,
                 const void *p)
{
    for (; fields->name; fields++) {
        emit_field(em, fields, (const uint8_t *)p + fields->off);
    }
}

void qhca_decode_as(const struct qhca_emit *em, const char *name,
                    const struct qhca_field *fields, const void *p)
{
    qhca_emit_begin(em, name);
    qhca_decode(em, fields, p);
    qhca_emit_end(em);
}

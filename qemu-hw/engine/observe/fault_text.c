/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault rules in text form.  A rule is an action and fields:
 *
 *     drop number=17 psn=5-9 opcode=SEND_ONLY nth=2
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "observe/fault_state.h"
#include "observe/decode.h"

#define WORD_MAX    128

/* ---- opcodes ---- */

static void set_bit(uint32_t opcode[8], unsigned op)
{
    opcode[op / 32] |= 1u << op % 32;
}

/* The opcodes of a group: those with all of @yes and none of @no. */
static const struct group {
    const char *name;
    uint32_t yes, no;
} groups[] = {
    { "request", 0, QHCA_OPF_RESP },
    { "response", QHCA_OPF_RESP, 0 },
    { "send", QHCA_OPF_SEND, 0 },
    { "write", QHCA_OPF_WRITE, 0 },
    { "read", QHCA_OPF_READ, QHCA_OPF_RESP },
    { "read-response", QHCA_OPF_READ | QHCA_OPF_RESP, 0 },
    { "atomic", QHCA_OPF_ATOMIC, QHCA_OPF_RESP },
};

/* "SEND_ONLY" and "send-only" are the same. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b) &&
            !((*a == '-' || *a == '_') && (*b == '-' || *b == '_'))) {
            return false;
        }
    }
    return !*a && !*b;
}

static bool one_opcode(const char *name, uint32_t opcode[8])
{
    const struct qhca_name *n;
    bool found = false;
    unsigned op, i;
    char *end;

    if (isdigit((unsigned char)*name)) {
        unsigned long val = strtoul(name, &end, 0);

        if (*end || val > 255) {
            return false;
        }
        set_bit(opcode, (unsigned)val);
        return true;
    }
    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (same_name(name, groups[i].name)) {
            for (op = 0; op < 256; op++) {
                uint32_t flags = qhca_op_info((uint8_t)op).flags;

                if ((flags & QHCA_OPF_VALID) && !(flags & groups[i].no) &&
                    (flags & groups[i].yes) == groups[i].yes) {
                    set_bit(opcode, op);
                }
            }
            return true;
        }
    }
    for (n = qhca_names_bth; n->name; n++) {
        if (!same_name(name, n->name)) {
            continue;
        }
        for (op = n->val; op < 256; op += 32) {
            if (qhca_op_info((uint8_t)op).flags & QHCA_OPF_VALID) {
                set_bit(opcode, op);
                found = true;
            }
        }
    }
    return found;
}

bool qhca_fault_opcode(const char *name, uint32_t opcode[8])
{
    char word[WORD_MAX];
    size_t n;

    do {
        n = strcspn(name, ",");
        if (!n || n >= sizeof(word)) {
            return false;
        }
        memcpy(word, name, n);
        word[n] = 0;
        if (!one_opcode(word, opcode)) {
            return false;
        }
        name += n;
    } while (*name++ == ',');
    return true;
}

/* ---- parsing ---- */

struct parser {
    struct qhca_fault_rule *f;
    char *err;
    size_t len;
};

__attribute__((format(printf, 2, 3)))
static bool wrong(struct parser *p, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(p->err, p->len, fmt, args);
    va_end(args);
    return false;
}

static bool rule_number(const char *text, uint64_t max, uint64_t *val)
{
    unsigned long long v;
    char *end;

    if (!isdigit((unsigned char)*text)) {
        return false;
    }
    errno = 0;
    v = strtoull(text, &end, 0);
    *val = v;
    return !errno && !*end && v <= max;
}

/* "5-9" or "5" */
static bool rule_range(const char *text, uint64_t max, uint64_t *first,
                       uint64_t *last)
{
    char word[WORD_MAX];
    const char *dash = strchr(text, '-');

    if (!dash) {
        *last = 0;
        if (!rule_number(text, max, first)) {
            return false;
        }
        *last = *first;
        return true;
    }
    if ((size_t)(dash - text) >= sizeof(word)) {
        return false;
    }
    memcpy(word, text, (size_t)(dash - text));
    word[dash - text] = 0;
    return rule_number(word, max, first) && rule_number(dash + 1, max, last);
}

/* "250us", "3ms", "1s", "800" or "800ns" */
static bool rule_duration(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {
        { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
        { "", 1 },
    };
    unsigned long long v;
    char *end;
    unsigned i;

    if (!isdigit((unsigned char)*text)) {
        return false;
    }
    errno = 0;
    v = strtoull(text, &end, 10);
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!strcmp(end, units[i].unit) && !errno &&
            v <= UINT64_MAX / units[i].ns) {
            *ns = v * units[i].ns;
            return true;
        }
    }
    return false;
}

/* "0.01" as parts per million: at most six decimals, no rounding. */
static bool rule_chance(const char *text, uint32_t *ppm)
{
    uint32_t unit = QHCA_FAULT_PPM;

    if ((*text != '0' && *text != '1') || (text[1] && text[1] != '.')) {
        return false;
    }
    *ppm = *text == '1' ? unit : 0;
    for (text += text[1] ? 2 : 1; *text; text++) {
        unit /= 10;
        if (!isdigit((unsigned char)*text) || !unit) {
            return false;
        }
        *ppm += (uint32_t)(*text - '0') * unit;
    }
    return *ppm <= QHCA_FAULT_PPM;
}

/* "out", "in" or "both": 1, 2 or 3. */
static bool rule_choice(const char *text, const char *one, const char *two,
                        uint8_t *val)
{
    *val = !strcmp(text, one) ? 1 : !strcmp(text, two) ? 2 :
           !strcmp(text, "both") ? 3 : 0;
    return *val;
}

static bool by_name(const char *(*name)(unsigned i), const char *text,
                    uint8_t *val)
{
    unsigned i;

    for (i = 0; name(i); i++) {
        if (!strcmp(name(i), text)) {
            *val = (uint8_t)i;
            return true;
        }
    }
    return false;
}

bool qhca_fault_qp_type(const char *text, uint8_t *val)
{
    const struct qhca_name *n;

    for (n = qhca_names_qp_type; n->name; n++) {
        if (same_name(text, n->name)) {
            *val = (uint8_t)n->val;
            return true;
        }
    }
    return false;
}

static const char *const number_names[] = {
    "number", "qpn", "cqn", "eqn", "vector", "key", NULL
};

static bool rule_field(struct parser *p, const char *name, const char *val)
{
    struct qhca_fault_rule *f = p->f;
    uint64_t a, b;
    unsigned i;

    for (i = 0; number_names[i]; i++) {
        if (!strcmp(name, number_names[i])) {
            f->fields |= QHCA_FLT_NUMBER;
            f->number = 0;
            if (!rule_number(val, UINT32_MAX, &a)) {
                return wrong(p, "%s=%s: a number is wanted", name, val);
            }
            f->number = (uint32_t)a;
            return true;
        }
    }
    if (!strcmp(name, "peer")) {
        f->fields |= QHCA_FLT_PEER;
        if (!rule_number(val, UINT32_MAX, &a)) {
            return wrong(p, "peer=%s: a number is wanted", val);
        }
        f->peer = (uint32_t)a;
    } else if (!strcmp(name, "psn") || !strcmp(name, "rel-psn")) {
        if (f->fields & QHCA_FLT_PSN) {
            return wrong(p, "only one of psn and rel-psn can be given, once");
        }
        f->fields |= QHCA_FLT_PSN;
        f->psn_relative = *name == 'r';
        if (!rule_range(val, QHCA_PSN_MASK, &a, &b)) {
            return wrong(p, "%s=%s: a PSN or FIRST-LAST is wanted, each 0 to "
                         "16777215", name, val);
        }
        f->psn = (uint32_t)a;
        f->psn_last = (uint32_t)b;
    } else if (!strcmp(name, "opcode")) {
        f->fields |= QHCA_FLT_OPCODE;
        if (!qhca_fault_opcode(val, f->opcode)) {
            return wrong(p, "opcode=%s: a name (SEND_ONLY, ACK, ...), a group "
                         "(request, response, send, write, read, "
                         "read-response, atomic) or a number 0 to 255 is "
                         "wanted", val);
        }
    } else if (!strcmp(name, "syndrome")) {
        f->fields |= QHCA_FLT_SYNDROME;
        if (!rule_number(val, 255, &a)) {
            return wrong(p, "syndrome=%s: a number 0 to 255 is wanted", val);
        }
        f->syndrome = (uint8_t)a;
    } else if (!strcmp(name, "qp-type")) {
        f->fields |= QHCA_FLT_QP_TYPE;
        if (!qhca_fault_qp_type(val, &f->qp_type)) {
            return wrong(p, "qp-type=%s: rc, uc, ud, gsi, xrc-ini, xrc-tgt or "
                         "raw is wanted", val);
        }
    } else if (!strcmp(name, "kind")) {
        f->fields |= QHCA_FLT_KIND;
        if (!by_name(qhca_dma_name, val, &f->kind)) {
            return wrong(p, "kind=%s: command, table, wqe, cqe, eqe, record, "
                         "data or ethernet is wanted", val);
        }
    } else if (!strcmp(name, "access")) {
        f->fields |= QHCA_FLT_ACCESS;
        if (!rule_choice(val, "read", "write", &f->access)) {
            return wrong(p, "access=%s: read, write or both is wanted", val);
        }
    } else if (!strcmp(name, "direction")) {
        f->fields |= QHCA_FLT_DIRECTION;
        if (!rule_choice(val, "out", "in", &f->direction)) {
            return wrong(p, "direction=%s: out, in or both is wanted", val);
        }
    } else if (!strcmp(name, "address")) {
        f->fields |= QHCA_FLT_ADDR;
        if (!rule_range(val, UINT64_MAX, &f->addr, &f->addr_last)) {
            return wrong(p, "address=%s: a DMA address or FIRST-LAST is "
                         "wanted", val);
        }
    } else if (!strcmp(name, "index")) {
        f->fields |= QHCA_FLT_INDEX;
        if (!rule_range(val, UINT64_MAX, &f->index, &f->index_last)) {
            return wrong(p, "index=%s: a number or FIRST-LAST is wanted",
                         val);
        }
    } else if (!strcmp(name, "probability")) {
        f->fields |= QHCA_FLT_CHANCE;
        if (!rule_chance(val, &f->chance)) {
            return wrong(p, "probability=%s: 0 to 1 with at most six decimals "
                         "is wanted", val);
        }
    } else if (!strcmp(name, "at")) {
        f->fields |= QHCA_FLT_AT;
        if (!by_name(qhca_fault_at_name, val, &f->at)) {
            return wrong(p, "at=%s: now, packet, recv, dma, table, cqe, event, "
                         "interrupt or register is wanted", val);
        }
    } else if (!strcmp(name, "time")) {
        f->fields |= QHCA_FLT_NS;
        if (!rule_duration(val, &f->ns)) {
            return wrong(p, "time=%s: a time like 800ns, 250us, 3ms or 1s is "
                         "wanted", val);
        }
    } else if (!strcmp(name, "packets")) {
        f->fields |= QHCA_FLT_PACKETS;
        if (!rule_number(val, UINT32_MAX, &a)) {
            return wrong(p, "packets=%s: a number is wanted", val);
        }
        f->packets = (uint32_t)a;
    } else if (!strcmp(name, "count")) {
        f->fields |= QHCA_FLT_COUNT;
        if (!rule_number(val, UINT64_MAX, &f->count)) {
            return wrong(p, "count=%s: a number is wanted", val);
        }
    } else if (!strcmp(name, "skip") || !strcmp(name, "nth") ||
               !strcmp(name, "every")) {
        if (!rule_number(val, UINT64_MAX, *name == 's' ? &f->skip :
                    *name == 'n' ? &f->nth : &f->every)) {
            return wrong(p, "%s=%s: a number is wanted", name, val);
        }
    } else {
        return wrong(p, "no field '%s': there are number (or qpn, cqn, eqn, "
                     "vector, key), peer, psn, rel-psn, opcode, syndrome, "
                     "qp-type, direction, kind, access, address, index, at, "
                     "skip, nth, every, count, probability, time, packets",
                     name);
    }
    return true;
}

bool qhca_fault_parse(const char *line, struct qhca_fault_rule *f, char *err,
                      size_t len)
{
    struct parser p = { f, err, len };
    char word[QHCA_FAULT_TEXT], *val;
    bool first = true;
    size_t n;

    memset(f, 0, sizeof(*f));
    for (;;) {
        line += strspn(line, " \t\r");
        n = strcspn(line, " \t\r");
        if (!n) {
            break;
        }
        if (n >= sizeof(word)) {
            return wrong(&p, "a word of %zu letters is too long", n);
        }
        memcpy(word, line, n);
        word[n] = 0;
        line += n;
        if (first) {
            first = false;
            if (!by_name(qhca_fault_action_name, word, &f->action)) {
                return wrong(&p, "no action '%s': there are drop, delay, "
                             "duplicate, reorder, corrupt, corrupt-icrc, "
                             "corrupt-payload, no-ack, rnr, dma-error, "
                             "table-error, cq-overflow, stall-events, "
                             "hold-interrupt, lose-interrupt, fatal, reset, "
                             "link-down, garbage", word);
            }
            continue;
        }
        val = strchr(word, '=');
        if (!val) {
            return wrong(&p, "'%s' is not FIELD=VALUE", word);
        }
        *val++ = 0;
        if (!rule_field(&p, word, val)) {
            return false;
        }
    }
    return first ? wrong(&p, "the action is missing") : true;
}

/* One line: a rule, "seed N", or nothing.  @add: apply it, it is valid. */
static bool one_line(struct qhca *e, char *line, bool add, char *err,
                     size_t len)
{
    struct parser p = { NULL, err, len };
    struct qhca_fault_rule f;
    const char *bad;
    uint64_t seed;
    char *hash = strchr(line, '#');
    size_t n;

    if (hash) {
        *hash = 0;
    }
    line += strspn(line, " \t\r");
    n = strlen(line);
    while (n && strchr(" \t\r", line[n - 1])) {
        line[--n] = 0;
    }
    if (!*line) {
        return true;
    }
    if (!strncmp(line, "seed ", 5)) {
        if (!rule_number(line + 5 + strspn(line + 5, " \t"), UINT64_MAX,
                         &seed)) {
            return wrong(&p, "%s: a number is wanted", line);
        }
        bad = add ? qhca_fault_seed(e, seed) : NULL;
        return bad ? wrong(&p, "%s", bad) : true;
    }
    if (!qhca_fault_parse(line, &f, err, len)) {
        return false;
    }
    bad = add ? qhca_fault_add(e, &f) : qhca_fault_check(&f);
    return bad ? wrong(&p, "%s", bad) : true;
}

bool qhca_fault_parse_all(struct qhca *e, const char *text, char *err,
                          size_t len)
{
    const char *at, *end;
    char line[QHCA_FAULT_TEXT], why[QHCA_FAULT_TEXT];
    unsigned pass, line_no, rules = 0;
    size_t n;

    for (pass = 0; pass < 2; pass++) {
        line_no = 1;
        for (at = text; *at; at = end + 1) {
            n = strcspn(at, ";\n");
            end = at + n;
            if (n >= sizeof(line)) {
                snprintf(err, len, "line %u: longer than %zu letters",
                         line_no, sizeof(line) - 1);
                return false;
            }
            memcpy(line, at, n);
            line[n] = 0;
            if (!one_line(e, line, pass, why, sizeof(why))) {
                snprintf(err, len, "line %u: %s", line_no, why);
                return false;
            }
            rules += !pass && line[strspn(line, " \t\r")];
            line_no += *end == '\n';
            if (!*end) {
                break;
            }
        }
        if (rules > QHCA_FAULTS_MAX) {
            snprintf(err, len, "%u rules: there can be %u at most", rules,
                     QHCA_FAULTS_MAX);
            return false;
        }
    }
    return true;
}

/* ---- formatting ---- */

struct writer {
    char *buf;
    size_t len, used;
};

__attribute__((format(printf, 2, 3)))
static void rule_put(struct writer *w, const char *fmt, ...)
{
    va_list args;
    int n;

    if (w->used >= w->len) {
        return;
    }
    va_start(args, fmt);
    n = vsnprintf(w->buf + w->used, w->len - w->used, fmt, args);
    va_end(args);
    w->used += n > 0 ? (size_t)n : 0;
}

static void put_range(struct writer *w, const char *name, uint64_t first,
                      uint64_t last, bool hex)
{
    rule_put(w, hex ? " %s=0x%llx" : " %s=%llu", name,
             (unsigned long long)first);
    if (last != first) {
        rule_put(w, hex ? "-0x%llx" : "-%llu", (unsigned long long)last);
    }
}

/* As short as possible: a group, then names, then numbers for the rest. */
static void put_opcodes(struct writer *w, const uint32_t opcode[8])
{
    uint32_t left[8], some[8];
    const char *sep = " opcode=";
    const struct qhca_name *n;
    unsigned i, op;

    memcpy(left, opcode, sizeof(left));
    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        memset(some, 0, sizeof(some));
        one_opcode(groups[i].name, some);
        if (!memcmp(some, opcode, sizeof(some))) {
            rule_put(w, "%s%s", sep, groups[i].name);
            return;
        }
    }
    for (n = qhca_names_bth; n->name; n++) {
        bool all = true;

        memset(some, 0, sizeof(some));
        one_opcode(n->name, some);
        for (i = 0; i < 8; i++) {
            all = all && (left[i] & some[i]) == some[i];
        }
        if (all) {
            rule_put(w, "%s%s", sep, n->name);
            sep = ",";
            for (i = 0; i < 8; i++) {
                left[i] &= ~some[i];
            }
        }
    }
    for (op = 0; op < 256; op++) {
        if (left[op / 32] >> op % 32 & 1) {
            rule_put(w, "%s0x%02x", sep, op);
            sep = ",";
        }
    }
}

static const char *const out_in[] = { "", "out", "in", "both" };
static const char *const read_write[] = { "", "read", "write", "both" };

static void rule_put_match(struct writer *w, const struct qhca_fault_rule *f)
{
    const char *type = qhca_name_of(qhca_names_qp_type, f->qp_type);

    if (f->fields & QHCA_FLT_NUMBER) {
        rule_put(w, " number=%u", f->number);
    }
    if (f->fields & QHCA_FLT_PEER) {
        rule_put(w, " peer=%u", f->peer);
    }
    if (f->fields & QHCA_FLT_PSN) {
        put_range(w, f->psn_relative ? "rel-psn" : "psn", f->psn,
                  f->psn_last, false);
    }
    if (f->fields & QHCA_FLT_OPCODE) {
        put_opcodes(w, f->opcode);
    }
    if (f->fields & QHCA_FLT_SYNDROME) {
        rule_put(w, " syndrome=0x%02x", f->syndrome);
    }
    if ((f->fields & QHCA_FLT_QP_TYPE) && type) {
        rule_put(w, " qp-type=%s", type);
    }
    if (f->fields & QHCA_FLT_KIND) {
        rule_put(w, " kind=%s", qhca_dma_name(f->kind));
    }
    if (f->fields & QHCA_FLT_ACCESS) {
        rule_put(w, " access=%s", read_write[f->access & 3]);
    }
    if (f->fields & QHCA_FLT_DIRECTION) {
        rule_put(w, " direction=%s", out_in[f->direction & 3]);
    }
    if (f->fields & QHCA_FLT_ADDR) {
        put_range(w, "address", f->addr, f->addr_last, true);
    }
    if (f->fields & QHCA_FLT_INDEX) {
        put_range(w, "index", f->index, f->index_last, false);
    }
}

void qhca_fault_format(const struct qhca_fault_rule *f, char *buf, size_t len)
{
    struct writer w = { buf, len, 0 };

    rule_put(&w, "%s", qhca_fault_action_name(f->action));
    if (f->at != qhca_fault_default_at(f->action)) {
        rule_put(&w, " at=%s", qhca_fault_at_name(f->at));
    }
    rule_put_match(&w, f);
    if (f->skip) {
        rule_put(&w, " skip=%llu", (unsigned long long)f->skip);
    }
    if (f->nth) {
        rule_put(&w, " nth=%llu", (unsigned long long)f->nth);
    }
    if (f->every) {
        rule_put(&w, " every=%llu", (unsigned long long)f->every);
    }
    if (f->fields & QHCA_FLT_COUNT) {
        rule_put(&w, " count=%llu", (unsigned long long)f->count);
    }
    if (f->fields & QHCA_FLT_CHANCE) {
        rule_put(&w, " probability=%u.%06u", f->chance / QHCA_FAULT_PPM,
                 f->chance % QHCA_FAULT_PPM);
    }
    if (f->fields & QHCA_FLT_NS) {
        rule_put(&w, " time=%lluns", (unsigned long long)f->ns);
    }
    if (f->fields & QHCA_FLT_PACKETS) {
        rule_put(&w, " packets=%u", f->packets);
    }
}

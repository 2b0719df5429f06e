/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault rules of tests: RULE(DROP, .nth = 2). */
#ifndef QHCA_TEST_RULE_H
#define QHCA_TEST_RULE_H

#include "die.h"
#include "observe/fault.h"

#define RULE(what, ...) \
    ((struct qhca_fault_rule){ .action = QHCA_FLT_##what, ##__VA_ARGS__ })

/* The rule @f for these opcodes only. */
static inline struct qhca_fault_rule rule_for(const char *opcode,
                                              struct qhca_fault_rule f)
{
    f.fields |= QHCA_FLT_OPCODE;
    CHECK(qhca_fault_opcode(opcode, f.opcode), "no opcode %s", opcode);
    return f;
}

/* Add a rule; its id. */
static inline uint32_t rule_add(struct qhca *e, struct qhca_fault_rule f)
{
    const char *wrong = qhca_fault_add(e, &f);

    CHECK(!wrong, "%s", wrong);
    return f.id;
}

#endif /* QHCA_TEST_RULE_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault injection: opcodes and groups of them, by name. */
#include "observe/fault_state.h"
#include "observe/decode.h"

/* The opcodes of a group: those with all of @yes and none of @no. */
static const struct {
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

static void fault_set_opcode(uint32_t opcode[8], unsigned op)
{
    opcode[op / 32] |= 1u << op % 32;
}

bool qhca_fault_opcode(const char *name, uint32_t opcode[8])
{
    const struct qhca_name *n;
    bool found = false;
    unsigned i, op;

    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (op = 0; !strcmp(name, groups[i].name) && op < 256; op++) {
            uint32_t flags = qhca_op_info((uint8_t)op).flags;

            if ((flags & QHCA_OPF_VALID) && !(flags & groups[i].no) &&
                (flags & groups[i].yes) == groups[i].yes) {
                fault_set_opcode(opcode, op);
                found = true;
            }
        }
    }
    /* A name is that of one opcode of each transport. */
    for (n = qhca_names_bth; n->name; n++) {
        for (op = n->val; !strcmp(name, n->name) && op < 256; op += 32) {
            if (qhca_op_info((uint8_t)op).flags & QHCA_OPF_VALID) {
                fault_set_opcode(opcode, op);
                found = true;
            }
        }
    }
    return found;
}

/* SPDX-License-Identifier: GPL-2.0 */
/* Trace events of qhca.ko. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM qhca

#if !defined(QHCA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define QHCA_TRACE_H

#include <linux/timekeeping.h>
#include <linux/tracepoint.h>

#ifndef CONFIG_QHCA_DEBUG
#undef TRACE_EVENT
#define TRACE_EVENT(name, proto, ...)					\
	static inline void trace_##name(proto) {}			\
	static inline bool trace_##name##_enabled(void) { return false; }
#endif

struct qhca_aq_cmd;
struct qhca_aq_slot;
struct qhca_core;
struct qhca_eq;
struct qhca_eqe;

/* A command is in the ring; its doorbell is rung right after this. */
TRACE_EVENT(qhca_aq_cmd,
	TP_PROTO(const struct qhca_core *core, const struct qhca_aq_cmd *cmd,
		 u32 doorbell),
	TP_ARGS(core, cmd, doorbell),
	TP_STRUCT__entry(
		__string(pci, pci_name(core->dev.pdev))
		__field(u8, opcode)
		__field(u16, ticket)
		__field(u32, obj)
		__field(u32, doorbell)
		__field(u32, in_len)
		__field(u32, out_len)
		__field(u64, mask)
		__field(u64, arg)
	),
	TP_fast_assign(
		__assign_str(pci);
		__entry->opcode = cmd->opcode;
		__entry->ticket = le16_to_cpu(cmd->cmd_id);
		__entry->obj = le32_to_cpu(cmd->obj);
		__entry->doorbell = doorbell;
		__entry->in_len = le32_to_cpu(cmd->in_len);
		__entry->out_len = le32_to_cpu(cmd->out_len);
		__entry->mask = le64_to_cpu(cmd->mask);
		__entry->arg = le64_to_cpu(cmd->arg);
	),
	TP_printk("pci=%s opcode=%s ticket=%u obj=%#x doorbell=%u in_len=%u out_len=%u mask=%#llx arg=%#llx",
		  __get_str(pci), show_qhca_cmd(__entry->opcode),
		  __entry->ticket, __entry->obj, __entry->doorbell,
		  __entry->in_len, __entry->out_len, __entry->mask,
		  __entry->arg)
);

/*
 * The answer to a command was taken from the ring, or, with err -EIO and no
 * status, the command was given up because the device is dead. ns: since the
 * doorbell, 0 if the event was off then. The waiter runs next.
 */
TRACE_EVENT(qhca_aq_done,
	TP_PROTO(const struct qhca_core *core, const struct qhca_aq_slot *slot,
		 u16 ticket),
	TP_ARGS(core, slot, ticket),
	TP_STRUCT__entry(
		__string(pci, pci_name(core->dev.pdev))
		__field(u8, opcode)
		__field(u8, status)
		__field(u16, ticket)
		__field(u32, obj)
		__field(int, err)
		__field(u64, result)
		__field(u64, ns)
	),
	TP_fast_assign(
		__assign_str(pci);
		__entry->opcode = slot->opcode;
		__entry->ticket = ticket;
		__entry->err = slot->err;
		__entry->status = slot->err ? 0 : slot->cqe.status;
		__entry->obj = slot->err ? 0 : le32_to_cpu(slot->cqe.obj);
		__entry->result = slot->err ? 0 : le64_to_cpu(slot->cqe.result);
		__entry->ns = slot->posted ? ktime_get_mono_fast_ns() -
					     slot->posted : 0;
	),
	TP_printk("pci=%s opcode=%s ticket=%u obj=%#x status=%s err=%d result=%#llx ns=%llu",
		  __get_str(pci), show_qhca_cmd(__entry->opcode),
		  __entry->ticket, __entry->obj, show_qhca_st(__entry->status),
		  __entry->err, __entry->result, __entry->ns)
);

/* An interrupt handler begins. Vector 0: commands and asynchronous events. */
TRACE_EVENT(qhca_irq,
	TP_PROTO(const struct qhca_eq *eq),
	TP_ARGS(eq),
	TP_STRUCT__entry(
		__string(pci, pci_name(eq->core->dev.pdev))
		__field(u16, vector)
		__field(int, irq)
	),
	TP_fast_assign(
		__assign_str(pci);
		__entry->vector = eq->vector;
		__entry->irq = eq->irq;
	),
	TP_printk("pci=%s vector=%u irq=%d", __get_str(pci), __entry->vector,
		  __entry->irq)
);

/* An entry of an event queue was taken. index: counter, not slot. */
TRACE_EVENT(qhca_eqe,
	TP_PROTO(const struct qhca_eq *eq, u32 index,
		 const struct qhca_eqe *eqe),
	TP_ARGS(eq, index, eqe),
	TP_STRUCT__entry(
		__string(pci, pci_name(eq->core->dev.pdev))
		__field(u32, eqn)
		__field(u32, index)
		__field(u8, type)
		__field(u8, syndrome)
		__field(u32, obj)
		__field(u32, arg)
	),
	TP_fast_assign(
		__assign_str(pci);
		__entry->eqn = eq->eqn;
		__entry->index = index;
		__entry->type = eqe->type;
		__entry->syndrome = eqe->syndrome;
		__entry->obj = le32_to_cpu(eqe->obj);
		__entry->arg = le32_to_cpu(eqe->arg);
	),
	TP_printk("pci=%s eqn=%u index=%u type=%s obj=%#x syndrome=%#x arg=%#x",
		  __get_str(pci), __entry->eqn, __entry->index,
		  show_qhca_ev(__entry->type), __entry->obj,
		  __entry->syndrome, __entry->arg)
);

/*
 * value will be stored in QHCA_REG_MARKER next: the store lies between this
 * event and qhca_marker, whatever the trace clock is.
 */
TRACE_EVENT(qhca_marker_begin,
	TP_PROTO(const struct qhca_core *core, u64 value),
	TP_ARGS(core, value),
	TP_STRUCT__entry(
		__string(pci, pci_name(core->dev.pdev))
		__field(u64, value)
	),
	TP_fast_assign(
		__assign_str(pci);
		__entry->value = value;
	),
	TP_printk("pci=%s value=%#llx", __get_str(pci), __entry->value)
);

/*
 * value was stored in QHCA_REG_MARKER between the times before and after, in ns
 * of the trace clock "mono"; interrupts were off.
 */
TRACE_EVENT(qhca_marker,
	TP_PROTO(const struct qhca_core *core, u64 value, const char *text,
		 u64 before, u64 after),
	TP_ARGS(core, value, text, before, after),
	TP_STRUCT__entry(
		__string(pci, pci_name(core->dev.pdev))
		__field(u64, value)
		__string(text, text)
		__field(u64, before)
		__field(u64, after)
	),
	TP_fast_assign(
		__assign_str(pci);
		__entry->value = value;
		__assign_str(text);
		__entry->before = before;
		__entry->after = after;
	),
	TP_printk("pci=%s value=%#llx before=%llu after=%llu text=\"%s\"",
		  __get_str(pci), __entry->value, __entry->before,
		  __entry->after, __get_str(text))
);

#endif /* QHCA_TRACE_H */

#ifdef CONFIG_QHCA_DEBUG
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE qhca_trace
#include <trace/define_trace.h>
#endif

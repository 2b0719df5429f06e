/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Encoders: from work requests to the device's work queue entries.
 *
 * They write only to the given slot, take no lock and know no queue.  The
 * device may read the slot only after a doorbell, so the order of the stores
 * does not matter here.
 */
#ifndef QHCA_WQE_H
#define QHCA_WQE_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/qhca-hw.h>
#include <util/compiler.h>

#define QHCA_RC_WQE_HEADER	sizeof(struct qhca_sq_wqe)
#define QHCA_XRC_WQE_HEADER	sizeof(struct qhca_xrc_wqe)
#define QHCA_UD_WQE_HEADER	sizeof(struct qhca_ud_wqe)
#define QHCA_RQ_WQE_HEADER	sizeof(struct qhca_rq_wqe)

/* An address handle holds its address vector, ready to be copied. */
struct qhca_ah {
	struct ibv_ah		ibv_ah;
	struct qhca_av		av;
};

/* Properties of the queue for the encoders. */
struct qhca_wqe_rules {
	uint32_t	ops;		/* bit n: ibv_wr_opcode n is allowed */
	uint32_t	max_sge;
	uint32_t	max_inline;	/* bytes */
	bool		ud;		/* entries have an address vector */
	bool		xrc;		/* entries have an SRQ number */
	bool		raw;		/* entries are frames */
	bool		sig_all;	/* every entry generates a completion */
};

/* Returns the bits of @rules->ops for a QP type and the device's features. */
static inline uint32_t qhca_wqe_ops(enum ibv_qp_type type, uint64_t features)
{
	uint32_t ops = 1U << IBV_WR_SEND | 1U << IBV_WR_SEND_WITH_IMM;

	if (type == IBV_QPT_XRC_RECV)
		return 0;
	if (type == IBV_QPT_RAW_PACKET)
		return 1U << IBV_WR_SEND;
	if (type == IBV_QPT_UD)
		return ops;
	ops |= 1U << IBV_WR_RDMA_WRITE | 1U << IBV_WR_RDMA_WRITE_WITH_IMM;
	if (features & QHCA_FEAT_MW)
		ops |= 1U << IBV_WR_BIND_MW | 1U << IBV_WR_LOCAL_INV;
	if (type != IBV_QPT_RC && type != IBV_QPT_XRC_SEND)
		return ops;
	ops |= 1U << IBV_WR_RDMA_READ;
	if (features & QHCA_FEAT_FLUSH)
		ops |= 1U << IBV_WR_FLUSH;
	if (features & QHCA_FEAT_ATOMIC_WRITE)
		ops |= 1U << IBV_WR_ATOMIC_WRITE;
	if (features & QHCA_FEAT_FAST_REG)
		ops |= 1U << IBV_WR_SEND_WITH_INV;
	if (features & QHCA_FEAT_ATOMIC)
		ops |= 1U << IBV_WR_ATOMIC_CMP_AND_SWP |
		       1U << IBV_WR_ATOMIC_FETCH_AND_ADD;
	return ops;
}

/* Returns the device's opcode; @op must be one of qhca_wqe_ops(). */
static inline uint8_t qhca_wqe_opcode(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_SEND_WITH_IMM:
		return QHCA_WQE_SEND_IMM;
	case IBV_WR_SEND_WITH_INV:
		return QHCA_WQE_SEND_INV;
	case IBV_WR_RDMA_WRITE:
		return QHCA_WQE_RDMA_WRITE;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return QHCA_WQE_RDMA_WRITE_IMM;
	case IBV_WR_RDMA_READ:
		return QHCA_WQE_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return QHCA_WQE_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return QHCA_WQE_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return QHCA_WQE_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return QHCA_WQE_LOCAL_INV;
	case IBV_WR_FLUSH:
		return QHCA_WQE_FLUSH;
	case IBV_WR_ATOMIC_WRITE:
		return QHCA_WQE_ATOMIC_WRITE;
	default:
		return QHCA_WQE_SEND;
	}
}

/* Returns QHCA_WQE_F_* for ibv_send_flags, without INLINE. */
static inline uint8_t qhca_wqe_flags(unsigned int send_flags, bool sig_all)
{
	uint8_t flags = 0;

	if (sig_all || (send_flags & IBV_SEND_SIGNALED))
		flags |= QHCA_WQE_F_SIGNALED;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= QHCA_WQE_F_SOLICITED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= QHCA_WQE_F_FENCE;
	if (send_flags & IBV_SEND_IP_CSUM)
		flags |= QHCA_WQE_F_ETH_CSUM;
	return flags;
}

/* Returns the bytes of a WQE's header, which precedes SGEs or data. */
static inline size_t qhca_wqe_header(const struct qhca_wqe_rules *rules)
{
	if (rules->ud)
		return QHCA_UD_WQE_HEADER;
	return rules->xrc ? QHCA_XRC_WQE_HEADER : QHCA_RC_WQE_HEADER;
}

/* Clears the header in @slot and fills in the fields of all opcodes. */
static inline void qhca_wqe_begin(const struct qhca_wqe_rules *rules,
				  void *slot, uint64_t wr_id, uint8_t opcode,
				  uint8_t flags)
{
	struct qhca_wqe_ctrl *ctrl = slot;

	/*
	 * Constant lengths: for a variable one the compiler emits a string
	 * instruction, which takes long to start.
	 */
	if (rules->ud)
		memset(slot, 0, QHCA_UD_WQE_HEADER);
	else if (rules->xrc)
		memset(slot, 0, QHCA_XRC_WQE_HEADER);
	else
		memset(slot, 0, QHCA_RC_WQE_HEADER);
	ctrl->opcode = rules->raw ? QHCA_WQE_RAW_SEND : opcode;
	ctrl->flags = flags;
	ctrl->wr_id = htole64(wr_id);
}

/* Sets the remote address and key of an RDMA or atomic WQE. */
static inline void qhca_wqe_set_remote(void *slot, uint64_t addr, uint32_t rkey)
{
	struct qhca_sq_wqe *wqe = slot;

	wqe->remote.addr = htole64(addr);
	wqe->remote.rkey = htole32(rkey);
}

/* Sets the SRQ at the peer of an XRC WQE. */
static inline void qhca_wqe_set_srqn(void *slot, uint32_t srqn)
{
	struct qhca_xrc_wqe *wqe = slot;

	wqe->srqn = htole32(srqn);
}

/*
 * Sets range, type and level of a FLUSH WQE.
 *
 * @len: bytes; @type: IBV_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT or both;
 * @level: IBV_FLUSH_RANGE or IBV_FLUSH_MR; both as in the device
 *
 * Returns 0, or EINVAL for values that a request cannot carry.
 */
static inline int qhca_wqe_set_flush(void *slot, uint64_t addr, uint32_t rkey,
				     uint64_t len, uint8_t type, uint8_t level)
{
	struct qhca_wqe_ctrl *ctrl = slot;

	if (!type || type & ~(QHCA_FLUSH_T_GLOBAL | QHCA_FLUSH_T_PERSISTENT) ||
	    level > QHCA_FLUSH_L_MR || len > UINT32_MAX)
		return EINVAL;
	ctrl->arg0 = htole64(len);
	ctrl->arg1 = htole64(type | level << QHCA_FLUSH_L_SHIFT);
	qhca_wqe_set_remote(slot, addr, rkey);
	return 0;
}

/* Sets the key of a SEND_INV or LOCAL_INV WQE. */
static inline void qhca_wqe_set_inv(void *slot, uint32_t rkey)
{
	struct qhca_wqe_ctrl *ctrl = slot;

	/* The only key in a field of network order. */
	ctrl->imm = (__force __be32)htole32(rkey);
}

/*
 * Sets the range and rights that a BIND_MW WQE binds, and the new key.  Windows
 * have no right of local write, which some programs request.  Returns 0, or
 * EINVAL for an invalid flag.
 */
static inline int qhca_wqe_set_bind(void *slot, uint32_t rkey,
				    const struct ibv_mw_bind_info *info)
{
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_ZERO_BASED;
	struct qhca_sq_wqe *wqe = slot;

	if ((info->mw_access_flags & ~known) || (info->length && !info->mr))
		return EINVAL;
	wqe->ctrl.arg0 = htole64(info->addr);
	wqe->ctrl.arg1 = htole64(info->length);
	wqe->remote.addr = htole64(info->mr ? info->mr->lkey : 0);
	wqe->remote.rkey = htole32(rkey);
	wqe->remote.arg = htole32(info->mw_access_flags &
				  ~IBV_ACCESS_LOCAL_WRITE);
	return 0;
}

/* Sets the destination of a UD WQE. */
static inline void qhca_wqe_set_ud(void *slot, const struct qhca_ah *ah,
				   uint32_t qpn, uint32_t qkey)
{
	struct qhca_ud_wqe *wqe = slot;

	wqe->av = ah->av;
	wqe->dest_qpn = htole32(qpn);
	wqe->qkey = htole32(qkey);
}

static inline void qhca_sge_set(struct qhca_sge *sge, uint64_t addr,
				uint32_t len, uint32_t lkey)
{
	sge->addr = htole64(addr);
	sge->len = htole32(len);
	sge->lkey = htole32(lkey);
}

/* Returns 0, or EINVAL for more SGEs than the queue was created for. */
static inline int qhca_wqe_set_sges(const struct qhca_wqe_rules *rules,
				    void *slot, const struct ibv_sge *list,
				    size_t num)
{
	struct qhca_sge *sge = (void *)((char *)slot + qhca_wqe_header(rules));
	struct qhca_wqe_ctrl *ctrl = slot;
	size_t i;

	if (num > rules->max_sge)
		return EINVAL;
	for (i = 0; i < num; i++)
		qhca_sge_set(sge + i, list[i].addr, list[i].length,
			     list[i].lkey);
	ctrl->num_sge = htole16(num);
	return 0;
}

/*
 * Appends @len bytes of inline data; may be called several times for a WQE.
 * READs and atomics receive data, so they cannot be inline.
 *
 * @used: bytes of data in the WQE so far, 0 at first.  The WQE has them too,
 *	  but the device can write to it.
 *
 * Returns 0, EINVAL for a wrong opcode, or ENOMEM for too many bytes.
 */
static inline int qhca_wqe_add_inline(const struct qhca_wqe_rules *rules,
				      void *slot, uint32_t *used,
				      const void *data, size_t len)
{
	struct qhca_wqe_ctrl *ctrl = slot;

	if (ctrl->opcode >= QHCA_WQE_RDMA_READ &&
	    ctrl->opcode != QHCA_WQE_RAW_SEND)
		return EINVAL;
	if (len > rules->max_inline - *used)
		return ENOMEM;
	if (len)
		memcpy((char *)slot + qhca_wqe_header(rules) + *used, data,
		       len);
	*used += len;
	ctrl->flags |= QHCA_WQE_F_INLINE;
	ctrl->num_sge = htole16(*used);
	return 0;
}

/*
 * Encodes one send work request.
 *
 * @rules: of the queue
 * @slot: the whole WQE slot; large enough for what @rules allows
 * @wr: the request; not kept
 *
 * Returns 0; EOPNOTSUPP for an opcode that this QP type or device does not
 * support; EINVAL for a bad number of SGEs, flag or address handle; ENOMEM for
 * too much inline data.
 */
static inline int qhca_wqe_encode_send(const struct qhca_wqe_rules *rules,
				       void *slot, const struct ibv_send_wr *wr)
{
	struct qhca_wqe_ctrl *ctrl = slot;
	uint32_t used = 0;
	int i, ret;

	/* The structure lacks the fields for FLUSH: see ibv_wr_flush. */
	if ((unsigned int)wr->opcode >= 32 ||
	    !(rules->ops & 1U << wr->opcode) || wr->opcode == IBV_WR_FLUSH)
		return EOPNOTSUPP;
	if ((wr->send_flags & IBV_SEND_IP_CSUM) && !rules->raw)
		return EOPNOTSUPP;
	if (wr->num_sge < 0)
		return EINVAL;

	qhca_wqe_begin(rules, slot, wr->wr_id, qhca_wqe_opcode(wr->opcode),
		       qhca_wqe_flags(wr->send_flags, rules->sig_all));
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ctrl->imm = wr->imm_data;
		/* fallthrough */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		qhca_wqe_set_remote(slot, wr->wr.rdma.remote_addr,
				    wr->wr.rdma.rkey);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ctrl->arg1 = htole64(wr->wr.atomic.swap);
		/* fallthrough */
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ctrl->arg0 = htole64(wr->wr.atomic.compare_add);
		qhca_wqe_set_remote(slot, wr->wr.atomic.remote_addr,
				    wr->wr.atomic.rkey);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ctrl->imm = wr->imm_data;
		break;
	case IBV_WR_SEND_WITH_INV:
		qhca_wqe_set_inv(slot, wr->invalidate_rkey);
		break;
	case IBV_WR_LOCAL_INV:
		qhca_wqe_set_inv(slot, wr->invalidate_rkey);
		return 0;
	case IBV_WR_BIND_MW:
		/* Type 1 windows use ibv_bind_mw(). */
		if (!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2)
			return EINVAL;
		return qhca_wqe_set_bind(slot, wr->bind_mw.rkey,
					 &wr->bind_mw.bind_info);
	default:
		break;
	}

	if (rules->xrc)
		qhca_wqe_set_srqn(slot, wr->qp_type.xrc.remote_srqn);
	if (rules->ud) {
		if (!wr->wr.ud.ah)
			return EINVAL;
		qhca_wqe_set_ud(slot, (const struct qhca_ah *)wr->wr.ud.ah,
				wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	}

	if (!(wr->send_flags & IBV_SEND_INLINE))
		return qhca_wqe_set_sges(rules, slot, wr->sg_list,
					 wr->num_sge);
	/* An empty message is inline data of 0 bytes. */
	ret = qhca_wqe_add_inline(rules, slot, &used, NULL, 0);
	for (i = 0; !ret && i < wr->num_sge; i++)
		ret = qhca_wqe_add_inline(rules, slot, &used,
					  (const void *)(uintptr_t)
					  wr->sg_list[i].addr,
					  wr->sg_list[i].length);
	return ret;
}

/*
 * Encodes one receive work request into @slot of an RQ or SRQ.
 * Returns 0, or EINVAL for a bad number of SGEs.
 */
static inline int qhca_wqe_encode_recv(uint32_t max_sge, void *slot,
				       const struct ibv_recv_wr *wr)
{
	struct qhca_rq_wqe *wqe = slot;
	struct qhca_sge *sge = (struct qhca_sge *)(wqe + 1);
	int i;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge)
		return EINVAL;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = htole64(wr->wr_id);
	wqe->num_sge = htole16(wr->num_sge);
	for (i = 0; i < wr->num_sge; i++)
		qhca_sge_set(sge + i, wr->sg_list[i].addr,
			     wr->sg_list[i].length, wr->sg_list[i].lkey);
	return 0;
}

/*
 * Chooses the WQE size of a send queue.
 *
 * @rules: in: ud, xrc, requested max_sge and max_inline; out: the actual
 *	   max_sge and max_inline of the size, within the limits
 * @limit_sge, @limit_inline: of the device
 * @stride: out: log2 of the WQE bytes, 6..10
 *
 * Returns 0, or EINVAL if the device cannot do it.
 */
static inline int qhca_wqe_send_stride(struct qhca_wqe_rules *rules,
				       uint32_t limit_sge,
				       uint32_t limit_inline, uint8_t *stride)
{
	size_t header = qhca_wqe_header(rules);
	size_t sges, data, space;
	uint8_t n = 6;

	if (rules->max_sge > limit_sge || rules->max_inline > limit_inline)
		return EINVAL;
	sges = rules->max_sge * sizeof(struct qhca_sge);
	data = rules->max_inline;
	while (((size_t)1 << n) < header + (sges > data ? sges : data))
		n++;
	if (n > 10)
		return EINVAL;
	space = ((size_t)1 << n) - header;
	sges = space / sizeof(struct qhca_sge);
	rules->max_sge = sges < limit_sge ? sges : limit_sge;
	rules->max_inline = space < limit_inline ? space : limit_inline;
	*stride = n;
	return 0;
}

/*
 * Chooses the WQE size of an RQ or SRQ.  @max_sge: in: requested, out: the
 * actual maximum of the size.  @stride: out: log2 of the WQE bytes, 5..9.
 * Returns 0, or EINVAL if the device cannot do it.
 */
static inline int qhca_wqe_recv_stride(uint32_t *max_sge, uint32_t limit_sge,
				       uint8_t *stride)
{
	size_t sges;
	uint8_t n = 5;

	if (*max_sge > limit_sge)
		return EINVAL;
	while (((size_t)1 << n) < QHCA_RQ_WQE_HEADER +
				  *max_sge * sizeof(struct qhca_sge))
		n++;
	if (n > 9)
		return EINVAL;
	sges = (((size_t)1 << n) - QHCA_RQ_WQE_HEADER) /
	       sizeof(struct qhca_sge);
	*max_sge = sges < limit_sge ? sges : limit_sge;
	*stride = n;
	return 0;
}

#endif /* QHCA_WQE_H */

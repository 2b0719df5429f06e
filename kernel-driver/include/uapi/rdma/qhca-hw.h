/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * qhca-hw.h - the contract between the qhca device and its software.
 *
 * This is the only definition of registers, commands, contexts, descriptors
 * and codes.  The QEMU device, the Linux driver, the rdma-core provider and
 * the tests all include this file; docs/hardware.md explains it and a test
 * compares the two, field by field.
 *
 * Rules that hold everywhere:
 *  - Every multi-byte field is little-endian, but for those typed __be32 or
 *    documented as a byte string (GIDs, MAC addresses), which are in network
 *    order.
 *  - A reserved field (rsvd*) is written as zero by software and by the
 *    device, and ignored by whoever reads it, except that the device refuses
 *    (QHCA_ST_BAD_PARAM) a command whose reserved *flag bits* are set, so that
 *    they can get a meaning later.
 *  - An "index" or "counter" of a ring counts entries since the ring was made,
 *    wraps at 2^32 and is never masked; the slot is (index & (depth - 1)).
 *    A ring of depth N can therefore hold N entries, and full differs from
 *    empty.
 *  - Object numbers (QPN, CQN, ...) are 24 bits wide.
 *  - "DMA address" is an address as the device puts it on the bus: an IOVA
 *    when there is an IOMMU.
 */
#ifndef QHCA_HW_H
#define QHCA_HW_H

#include <linux/types.h>

/* ------------------------------------------------------------------ PCI -- */

#define QHCA_PCI_VENDOR_ID		0x1234	/* QEMU's experimental vendor */
#define QHCA_PCI_DEVICE_ID		0x7ca0
#define QHCA_PCI_REVISION		0x01
/* class code 0x020000: Ethernet controller (the RDMA engine is in it) */

#define QHCA_BAR_REGS			0	/* registers, 64-bit memory */
#define QHCA_BAR_DB			2	/* doorbell pages, 64-bit memory */
#define QHCA_BAR_MSIX			4	/* MSI-X table and PBA */

#define QHCA_BAR_REGS_SIZE		0x4000
#define QHCA_BAR_DB_SIZE		0x4000000	/* 64 MiB */

/* ------------------------------------------- registers (BAR 0 offsets) -- */
/*
 * 32-bit registers take aligned 4-byte accesses; 64-bit registers take
 * aligned 8-byte accesses or two 4-byte ones, low half first (reading the low
 * half latches the high half; writing takes effect with the high half).
 */
#define QHCA_REG_ID			0x0000	/* RO 32: QHCA_ID_MAGIC */
#define QHCA_REG_VERSION		0x0004	/* RO 32: major 31:16 minor 15:0 */
#define QHCA_REG_FEATURES		0x0008	/* RO 64: QHCA_FEAT_* */
#define QHCA_REG_CTRL			0x0010	/* RW 32: QHCA_CTRL_* */
#define QHCA_REG_STATUS			0x0014	/* RO 32: QHCA_STATUS_* */
#define QHCA_REG_DB_SHIFT		0x0018	/* RW 32: log2 of the doorbell page stride, 12..16; fixed while enabled */
#define QHCA_REG_DB_PAGES		0x001c	/* RO 32: doorbell pages at this stride */
#define QHCA_REG_CLOCK			0x0020	/* RO 64: device clock, nanoseconds */
#define QHCA_REG_MARKER			0x0028	/* WO 64: any value; traced together with the device clock */
#define QHCA_REG_ASQ_BASE		0x0030	/* RW 64: DMA address of the admin submission ring, 4 KiB aligned; fixed while enabled */
#define QHCA_REG_ACQ_BASE		0x0038	/* RW 64: DMA address of the admin completion ring, 4 KiB aligned; fixed while enabled */
#define QHCA_REG_AQ_SHIFT		0x0040	/* RW 32: log2 of the depth of both rings, 1..8; fixed while enabled */
#define QHCA_REG_ASQ_DB			0x0044	/* WO 32: producer index of the admin submission ring */
#define QHCA_REG_AQ_CTRL		0x0048	/* RW 32: QHCA_AQ_CTRL_* */
#define QHCA_REG_VECTORS		0x004c	/* RO 32: MSI-X vectors of the function */

#define QHCA_ID_MAGIC			0x41434851	/* "QHCA" */
#define QHCA_VERSION_MAJOR		1
#define QHCA_VERSION_MINOR		0

/* QHCA_REG_FEATURES, also in struct qhca_dev_caps */
#define QHCA_FEAT_RC			(1ULL << 0)
#define QHCA_FEAT_UC			(1ULL << 1)
#define QHCA_FEAT_UD			(1ULL << 2)
#define QHCA_FEAT_SRQ			(1ULL << 3)
#define QHCA_FEAT_ATOMIC		(1ULL << 4)	/* compare-and-swap, fetch-and-add */
#define QHCA_FEAT_FAST_REG		(1ULL << 5)	/* REG_MR, LOCAL_INV, SEND with invalidate */
#define QHCA_FEAT_LIST_FORM		(1ULL << 6)	/* QHCA_BUF_LIST */
#define QHCA_FEAT_ETH_CSUM		(1ULL << 7)	/* checksum offload of the Ethernet function */

#define QHCA_CTRL_ENABLE		(1U << 0)	/* 0 -> 1 starts the admin queue; 1 -> 0 is the same as RESET */
#define QHCA_CTRL_RESET			(1U << 1)	/* write 1: all objects vanish, all registers take their reset value; reads as 0 */

#define QHCA_STATUS_READY		(1U << 0)	/* enabled and able to take commands */
#define QHCA_STATUS_FATAL		(1U << 1)	/* only a reset helps; reason in 15:8 */
#define QHCA_STATUS_LINK		(1U << 2)	/* the wire is connected and up */
#define QHCA_STATUS_FATAL_SHIFT		8
#define QHCA_STATUS_FATAL_MASK		0x0000ff00U

#define QHCA_FATAL_NONE			0
#define QHCA_FATAL_AQ_DMA		1	/* an admin ring could not be read or written */
#define QHCA_FATAL_AQ_INDEX		2	/* ASQ doorbell more than the depth ahead */
#define QHCA_FATAL_AQ_CONFIG		3	/* enabled with a bad AQ_SHIFT, DB_SHIFT or ring address */
#define QHCA_FATAL_EQ			4	/* an event ring could not be written */

#define QHCA_AQ_CTRL_IRQ		(1U << 0)	/* raise MSI-X vector 0 after each admin completion */

/* ---------------------------------- doorbells (offset in a page, BAR 2) -- */
/*
 * Each doorbell page belongs to one user access region (UAR): page number =
 * UAR index, at BAR 2 + (index << DB_SHIFT).  UAR 0 is the kernel's.  All
 * doorbells are aligned 8-byte little-endian stores; another size is a guest
 * error: counted and ignored.  The device ignores (and counts) a doorbell
 * for an object whose context names another UAR.
 */
#define QHCA_DB_SQ			0x000	/* send queue: QPN, producer index ("head") */
#define QHCA_DB_CQ_ARM			0x008	/* completion queue: CQN, flags, consumer index */
#define QHCA_DB_EQ			0x010	/* event queue (UAR 0 only): EQN, flags, consumer index */
#define QHCA_DB_ETH_SQ			0x018	/* Ethernet send queue (UAR 0 only): number, producer index */
#define QHCA_DB_RQ			0x020	/* receive queue: QPN; index ignored: the device reads the doorbell record, see there */

#define QHCA_DB_NUM_MASK		0x0000000000ffffffULL	/* object number */
#define QHCA_DB_SOLICITED		(1ULL << 24)	/* CQ_ARM: only solicited or error completions fire */
#define QHCA_DB_EQ_ARM			(1ULL << 24)	/* EQ: raise the vector at the next event, at once if one is waiting */
#define QHCA_DB_INDEX_SHIFT		32		/* index in 63:32 */

/*
 * Doorbell record: 8 bytes, 8-byte aligned, in memory; software writes index,
 * the device reads it when it needs it.  Used by RQ and SRQ (producer index)
 * and CQ (consumer index).
 *
 * flags is written by the device.  When an RQ needs attention without a packet
 * (the QP entered the error state: receives posted from now on must be
 * flushed), the device first sets QHCA_DBREC_NOTIFY, then reads index.
 * Software that posts receives stores index, executes a full memory barrier, reads
 * flags, and if NOTIFY is set rings QHCA_DB_RQ.  So no receive is forgotten, and
 * in the normal states posting a receive causes no exit.  The
 * device clears flags when the QP leaves RESET for INIT.
 */
struct qhca_dbrec {
	__le32	index;
	__le32	flags;		/* QHCA_DBREC_* */
};

#define QHCA_DBREC_NOTIFY		(1U << 0)

/* ------------------------------------------------------- buffer tables -- */
/*
 * How the device finds the memory of a queue or a memory region: the one
 * form used by SQ, RQ, CQ, SRQ, EQ, Ethernet queues and MRs.  Let "off" be the
 * byte offset from the start of the queue or region, and pos = off + first.
 *
 * QHCA_BUF_DIRECT  one contiguous block: address = addr + pos.  (0 hops)
 * QHCA_BUF_LIST    addr points to "entries" struct qhca_buf_seg; the byte at
 *                  "off" lies in the segment found by adding up lengths.
 *                  first is 0.  For study: searching costs time in
 *                  proportion to the number of segments.
 * QHCA_BUF_FLAT    equal-size buffers: addr points to one contiguous table of
 *                  "entries" 64-bit entries; entry pos >> page_shift holds
 *                  the address of the page.  (1 hop)
 * QHCA_BUF_TREE    multi-level table with 1, 2 or 3 hops: addr is the root
 *                  table; every table is 1 << table_shift bytes and holds
 *                  E = table_shift - 3 bits of index.  With h hops, level i
 *                  (0 = root) is indexed by E bits of (pos >> page_shift),
 *                  from the top: (page >> (E * (h - 1 - i))) & (2^E - 1).
 *
 * Entries of the last level hold a page address (the leaf), others the
 * address of a table.  Tables must not change while an object uses them,
 * unless a command says so; the device may keep what it has read.
 */
#define QHCA_BUF_DIRECT			0
#define QHCA_BUF_LIST			1
#define QHCA_BUF_FLAT			2
#define QHCA_BUF_TREE			3

#define QHCA_BUF_PAGE_SHIFT_MIN		12	/* 4 KiB */
#define QHCA_BUF_PAGE_SHIFT_MAX		31	/* 2 GiB */
#define QHCA_BUF_TABLE_SHIFT_MIN	12	/* 4 KiB tables, 512 entries */
#define QHCA_BUF_TABLE_SHIFT_MAX	21	/* 2 MiB tables */
#define QHCA_BUF_HOPS_MAX		3
#define QHCA_BUF_LIST_MAX		4096	/* segments in a list */

struct qhca_buf {
	__le64	addr;		/* see above; 8-byte aligned for LIST and FLAT, table aligned for TREE, 64-byte aligned for DIRECT queues */
	__le64	len;		/* bytes of the queue or region; a power of two times the stride for queues */
	__le32	first;		/* position of byte 0 inside page 0; 0 for queues and lists */
	__le32	entries;	/* LIST, FLAT: entries in the list or table; else 0 */
	__u8	form;		/* QHCA_BUF_* */
	__u8	hops;		/* DIRECT and LIST 0, FLAT 1, TREE 1..3 */
	__u8	page_shift;	/* FLAT and TREE: 12..31; else 0 */
	__u8	table_shift;	/* TREE: 12..21; else 0 */
	__u8	rsvd[4];
};

struct qhca_buf_seg {
	__le64	addr;		/* DMA address; bit 63 of len says valid */
	__le64	len;		/* 62:0 bytes (for queues a multiple of 4096, so that no entry straddles), 63 QHCA_BUF_SEG_VALID */
};

#define QHCA_BUF_SEG_VALID		(1ULL << 63)

/* a table entry (__le64) */
#define QHCA_BTE_VALID			(1ULL << 0)	/* must be set in each entry used */
#define QHCA_BTE_TABLE			(1ULL << 1)	/* set: address of a table; clear: address of a page */
#define QHCA_BTE_ADDR_MASK		0xfffffffffffff000ULL	/* aligned to the page or table size */

/* --------------------------------------------------------- admin queue -- */
/*
 * Two rings of the same depth.  Software writes commands, then
 * QHCA_REG_ASQ_DB.  Commands run in order; each gives one completion, in the
 * same order.  A submission slot may be reused only after its completion was
 * taken, so the completion ring cannot overflow.  The phase bit of a completion is
 * 1 in the first lap of the ring, 0 in the second, and so on; software
 * clears the ring before it enables the device.
 */
struct qhca_aq_cmd {
	__u8	opcode;		/* QHCA_CMD_* */
	__u8	flags;		/* 0 */
	__le16	cmd_id;		/* comes back in the completion */
	__le32	obj;		/* object number; 0 where the command has none */
	__le64	in_addr;	/* DMA address of the input structure, 64-byte aligned */
	__le64	out_addr;	/* DMA address of the output structure, 64-byte aligned */
	__le32	in_len;		/* bytes at in_addr: exactly the structure's size */
	__le32	out_len;	/* bytes at out_addr: at least the structure's size */
	__le64	mask;		/* modify commands: which fields count */
	__le64	arg;		/* command specific */
	__u8	rsvd[16];
};

struct qhca_aq_cqe {
	__le64	result;		/* command specific; with QHCA_ST_BAD_PARAM the offset of the offending field in the input */
	__le32	obj;		/* number of the object made, or the command's obj */
	__le16	cmd_id;
	__u8	status;		/* QHCA_ST_* */
	__u8	phase;		/* bit 0; written last, with the 8 bytes it lies in */
};

#define QHCA_ST_OK			0
#define QHCA_ST_BAD_OPCODE		1	/* no such command: EOPNOTSUPP */
#define QHCA_ST_UNSUPPORTED		2	/* known but not offered by this device: EOPNOTSUPP */
#define QHCA_ST_BAD_PARAM		3	/* a field out of range: EINVAL */
#define QHCA_ST_BAD_OBJ			4	/* no such object: ENOENT */
#define QHCA_ST_BAD_STATE		5	/* not allowed in the object's state: EINVAL */
#define QHCA_ST_BUSY			6	/* other objects still refer to it: EBUSY */
#define QHCA_ST_NO_RESOURCES		7	/* limit reached: ENOMEM */
#define QHCA_ST_DMA_FAULT		8	/* input, output or table could not be accessed: EFAULT */
#define QHCA_ST_BAD_TABLE		9	/* a buffer-table descriptor makes no sense: EINVAL */

#define QHCA_CMD_NOP			0x00	/* does nothing, completes */
#define QHCA_CMD_QUERY_DEVICE		0x01	/* out: struct qhca_dev_caps */
#define QHCA_CMD_QUERY_PORT		0x02	/* out: struct qhca_port */
#define QHCA_CMD_MODIFY_PORT		0x03	/* in: struct qhca_port, mask QHCA_PORT_M_* */
#define QHCA_CMD_QUERY_STATS		0x04	/* out: __le64[QHCA_STAT_COUNT]; out_len may be smaller: that much is written */
#define QHCA_CMD_SET_GID		0x05	/* obj: index; in: struct qhca_gid (type NONE clears) */
#define QHCA_CMD_QUERY_GID		0x06	/* obj: index; out: struct qhca_gid */
#define QHCA_CMD_SET_MC_LIST		0x07	/* in: in_len / 8 entries of struct qhca_mac; replaces the multicast filter */
#define QHCA_CMD_ALLOC_UAR		0x10	/* obj <- UAR index */
#define QHCA_CMD_FREE_UAR		0x11
#define QHCA_CMD_ALLOC_PD		0x12	/* obj <- PD number */
#define QHCA_CMD_FREE_PD		0x13
#define QHCA_CMD_CREATE_EQ		0x18	/* in: struct qhca_eqc; obj <- EQN */
#define QHCA_CMD_DESTROY_EQ		0x19
#define QHCA_CMD_QUERY_EQ		0x1a	/* out: struct qhca_eqc */
#define QHCA_CMD_CREATE_CQ		0x20	/* in: struct qhca_cqc; obj <- CQN */
#define QHCA_CMD_MODIFY_CQ		0x21	/* in: struct qhca_cqc, mask QHCA_CQ_M_* */
#define QHCA_CMD_DESTROY_CQ		0x22	/* after its completion no event names this CQN */
#define QHCA_CMD_QUERY_CQ		0x23	/* out: struct qhca_cqc */
#define QHCA_CMD_CREATE_SRQ		0x28	/* in: struct qhca_srqc; obj <- SRQN */
#define QHCA_CMD_MODIFY_SRQ		0x29	/* in: struct qhca_srqc, mask QHCA_SRQ_M_* */
#define QHCA_CMD_DESTROY_SRQ		0x2a
#define QHCA_CMD_QUERY_SRQ		0x2b	/* out: struct qhca_srqc */
#define QHCA_CMD_CREATE_QP		0x30	/* in: struct qhca_qpc; obj <- QPN; state RESET */
#define QHCA_CMD_MODIFY_QP		0x31	/* in: struct qhca_qpc, mask QHCA_QP_M_* */
#define QHCA_CMD_DESTROY_QP		0x32	/* after its completion no DMA for this QP */
#define QHCA_CMD_QUERY_QP		0x33	/* out: struct qhca_qpc */
#define QHCA_CMD_CREATE_MR		0x38	/* in: struct qhca_mpt; obj <- key (index 31:8, the given low byte 7:0) */
#define QHCA_CMD_DESTROY_MR		0x39	/* obj: key; after its completion no DMA through this MR */
#define QHCA_CMD_QUERY_MR		0x3a	/* obj: key; out: struct qhca_mpt */
#define QHCA_CMD_CREATE_ETH_SQ		0x40	/* in: struct qhca_eth_qc; obj <- number */
#define QHCA_CMD_DESTROY_ETH_SQ		0x41	/* after its completion no DMA for this queue */
#define QHCA_CMD_CREATE_ETH_RQ		0x42	/* in: struct qhca_eth_qc; obj <- number */
#define QHCA_CMD_DESTROY_ETH_RQ		0x43	/* after its completion no DMA for this queue */

/* QUERY_DEVICE: limits and identity */
struct qhca_dev_caps {
	__le64	features;	/* QHCA_FEAT_* */
	__u8	node_guid[8];	/* EUI-64, network order */
	__le64	max_mr_size;	/* bytes */
	__le64	page_size_cap;	/* bit n: buffer-table pages of 2^n bytes */
	__le32	max_qp;
	__le32	max_cq;
	__le32	max_srq;
	__le32	max_mr;
	__le32	max_pd;
	__le32	max_uar;	/* at the present doorbell stride */
	__le32	max_eq;
	__le32	max_qp_wr;	/* greatest depth of SQ and RQ */
	__le32	max_cqe;	/* greatest depth of a CQ */
	__le32	max_srq_wr;
	__le32	max_sge;	/* per send or receive WQE */
	__le32	max_inline;	/* bytes, any QP type */
	__le32	max_gid;	/* entries of the GID table */
	__le32	max_eth_queues;	/* Ethernet SQs, and as many RQs */
	__le32	max_eq_depth;
	__le32	max_rd_atomic;	/* per QP, as responder and as requester */
	__le32	max_msg_size;	/* bytes */
	__le32	fw_version;	/* 31:24 major, 23:16 minor, 15:0 patch */
	__u8	rsvd[24];
};

/* QUERY_PORT, MODIFY_PORT */
struct qhca_port {
	__u8	mac[6];		/* permanent address in QUERY; MODIFY sets the address filter */
	__u8	link;		/* RO: 1 up, 0 down */
	__u8	promisc;	/* 1: take every frame */
	__u8	allmulti;	/* 1: take every multicast frame */
	__u8	rsvd0[3];
	__le32	mtu;		/* Ethernet payload bytes accepted, 68..9216; frames over it are dropped in receive */
	__le32	eth_rqn;	/* Ethernet RQ that gets frames not meant for the engine; QHCA_ETH_RQ_NONE: dropped */
	__le32	speed;		/* RO: Mb/s */
	__le32	max_mtu;	/* RO */
	__u8	perm_mac[6];	/* RO */
	__u8	rsvd1[30];
};

#define QHCA_ETH_RQ_NONE		0xffffffffU

#define QHCA_PORT_M_MAC			(1ULL << 0)
#define QHCA_PORT_M_PROMISC		(1ULL << 1)
#define QHCA_PORT_M_ALLMULTI		(1ULL << 2)
#define QHCA_PORT_M_MTU			(1ULL << 3)
#define QHCA_PORT_M_ETH_RQN		(1ULL << 4)

struct qhca_mac {
	__u8	mac[6];
	__u8	rsvd[2];
};

#define QHCA_MC_LIST_MAX		256

/* SET_GID, QUERY_GID */
struct qhca_gid {
	__u8	gid[16];	/* IPv4 as ::ffff:a.b.c.d */
	__u8	mac[6];		/* source MAC of packets sent from this GID */
	__le16	vlan;		/* 0..4094, or QHCA_VLAN_NONE: untagged */
	__u8	type;		/* QHCA_GID_* */
	__u8	rsvd[39];
};

#define QHCA_GID_NONE			0
#define QHCA_GID_ROCE_V2		1	/* IPv4 if the GID is v4-mapped, else IPv6 */
#define QHCA_VLAN_NONE			0xffff

#define QHCA_ROCE_UDP_PORT		4791

/* ---------------------------------------------------------------- EQ ---- */

struct qhca_eqc {
	struct qhca_buf	buf;		/* 0x00 */
	__le32	eqn;		/* RO */
	__u8	shift;		/* log2 of the depth, 1..16 */
	__u8	flags;		/* 0 */
	__le16	vector;		/* MSI-X vector, 0..VECTORS-1 */
	__le32	prod;		/* RO */
	__le32	cons;		/* RO: as last told by QHCA_DB_EQ */
	__u8	armed;		/* RO */
	__u8	rsvd[15];
};

/*
 * Event queue entry.  The phase bit is 1 in the first lap; software clears
 * the ring before CREATE_EQ.  A full EQ loses nothing: events wait in the
 * device (one of each kind and object) until there is room.
 */
struct qhca_eqe {
	__u8	type;		/* QHCA_EV_* */
	__u8	syndrome;	/* QHCA_SYN_* for errors, else 0 */
	__u8	rsvd0[2];
	__le32	obj;		/* number of the CQ, QP, SRQ; 0 for port and device events */
	__le32	arg;		/* CQ event: producer index; port event: 1 up, 0 down */
	__u8	rsvd1[3];
	__u8	phase;		/* bit 0; written last, with the 8 bytes it lies in */
};

#define QHCA_EV_CQ			0x01	/* completion event of an armed CQ, on the CQ's EQ */
/* the rest is delivered on the asynchronous EQ: the one with number 0 */
#define QHCA_EV_CQ_ERR			0x10	/* overflow, or its memory failed */
#define QHCA_EV_QP_FATAL		0x20	/* local work queue catastrophic error */
#define QHCA_EV_QP_REQ_ERR		0x21	/* invalid request local work queue error */
#define QHCA_EV_QP_ACCESS_ERR		0x22	/* local access violation work queue error */
#define QHCA_EV_COMM_EST		0x23	/* first packet came while in RTR */
#define QHCA_EV_SQ_DRAINED		0x24
#define QHCA_EV_LAST_WQE		0x25	/* QP on an SRQ reached ERR and took its last receive WQE */
#define QHCA_EV_SRQ_ERR			0x30
#define QHCA_EV_SRQ_LIMIT		0x31
#define QHCA_EV_PORT			0x40	/* link changed, see arg */
#define QHCA_EV_DEVICE_FATAL		0x50	/* see QHCA_REG_STATUS */

#define QHCA_EQN_ASYNC			0	/* the first EQ made must be this one */

/* ---------------------------------------------------------------- CQ ---- */

struct qhca_cqc {
	struct qhca_buf	buf;		/* 0x00: depth * sizeof(struct qhca_cqe) */
	__le64	dbrec;		/* DMA address of a struct qhca_dbrec: consumer index */
	__le32	cqn;		/* RO */
	__le32	eqn;		/* EQ of its completion events */
	__le32	uar;		/* whose doorbell page may arm it */
	__u8	shift;		/* log2 of the depth, 0..22 */
	__u8	flags;		/* 0 */
	__le16	mod_count;	/* event moderation: at most every so many CQEs; 0 and 1: each */
	__le16	mod_usec;	/* event moderation: but no later than this, microseconds */
	__u8	state;		/* RO: QHCA_CQ_* */
	__u8	arm;		/* RO: QHCA_ARM_* */
	__le32	prod;		/* RO */
	__le32	cons;		/* RO: as last read from the doorbell record */
	__u8	rsvd[60];
};

#define QHCA_CQ_OK			0
#define QHCA_CQ_ERR			1	/* overflown or memory fault: takes no more CQEs */
#define QHCA_ARM_NONE			0
#define QHCA_ARM_ANY			1
#define QHCA_ARM_SOLICITED		2

#define QHCA_CQ_M_MODERATION		(1ULL << 0)	/* mod_count, mod_usec */
#define QHCA_CQ_M_RESIZE		(1ULL << 1)	/* buf, shift; entries not yet consumed are copied to the same counters */

/*
 * Completion queue entry.  The phase bit is 1 in the first lap; software
 * clears the ring before CREATE_CQ.  The last 8 bytes are written last, in one
 * store.
 */
struct qhca_cqe {
	__le64	wr_id;		/* 0x00: from the WQE */
	__le32	qpn;		/* 0x08: local QPN; number of an Ethernet queue */
	__le32	wqe_index;	/* 0x0c: counter of the WQE in SQ or RQ; WQE number in an SRQ */
	__le32	byte_len;	/* 0x10: bytes received or read */
	__be32	imm;		/* 0x14: immediate data as on the wire; with QHCA_CQE_F_INV the invalidated key as __le32 */
	__le32	src_qpn;	/* 0x18: UD receive */
	__u8	opcode;		/* 0x1c: QHCA_CQE_OP_* */
	__u8	status;		/* 0x1d: QHCA_WC_* */
	__u8	syndrome;	/* 0x1e: QHCA_SYN_*: why, for errors */
	__u8	sl;		/* 0x1f: UD receive: priority from the VLAN tag */
	__le16	flags;		/* 0x20: QHCA_CQE_F_* */
	__le16	pkey_index;	/* 0x22: GSI receive */
	__le32	csum;		/* 0x24: Ethernet receive: 15:0 ones' complement sum of the frame from byte 14 on */
	__u8	smac[6];	/* 0x28: UD receive */
	__le16	vlan;		/* 0x2e: UD, Ethernet receive: TCI or QHCA_VLAN_NONE */
	__le64	timestamp;	/* 0x30: device clock, nanoseconds */
	__le16	num_wqe;	/* 0x38: Ethernet receive: buffers used */
	__u8	net_type;	/* 0x3a: UD receive: QHCA_NET_* */
	__u8	rsvd[4];	/* 0x3b */
	__u8	phase;		/* 0x3f: bit 0 */
};

#define QHCA_CQE_OP_SEND		0x00	/* requester; all SEND forms */
#define QHCA_CQE_OP_RDMA_WRITE		0x01
#define QHCA_CQE_OP_RDMA_READ		0x02
#define QHCA_CQE_OP_COMP_SWAP		0x03
#define QHCA_CQE_OP_FETCH_ADD		0x04
#define QHCA_CQE_OP_LOCAL_INV		0x05
#define QHCA_CQE_OP_REG_MR		0x06
#define QHCA_CQE_OP_ETH_SEND		0x40
#define QHCA_CQE_OP_RECV		0x80
#define QHCA_CQE_OP_RECV_RDMA_IMM	0x81
#define QHCA_CQE_OP_ETH_RECV		0xc0

#define QHCA_CQE_F_GRH			(1U << 0)	/* the first 40 bytes hold a GRH (or the IPv4 header in its last 20) */
#define QHCA_CQE_F_IMM			(1U << 1)
#define QHCA_CQE_F_INV			(1U << 2)	/* SEND with invalidate: imm holds the key */
#define QHCA_CQE_F_SOLICITED		(1U << 3)
#define QHCA_CQE_F_SMAC			(1U << 4)
#define QHCA_CQE_F_VLAN			(1U << 5)	/* vlan is valid; Ethernet: the tag was taken out of the frame */
#define QHCA_CQE_F_L3_OK		(1U << 6)	/* Ethernet: IPv4 header checksum right (also set for IPv6) */
#define QHCA_CQE_F_L4_OK		(1U << 7)	/* Ethernet: TCP or UDP checksum right */
#define QHCA_CQE_F_SRQ			(1U << 8)	/* the receive WQE came from an SRQ */

#define QHCA_NET_IB			0
#define QHCA_NET_IPV4			1
#define QHCA_NET_IPV6			2

/* completion status; the values follow the verbs' list */
#define QHCA_WC_SUCCESS			0
#define QHCA_WC_LOC_LEN_ERR		1
#define QHCA_WC_LOC_QP_OP_ERR		2
#define QHCA_WC_LOC_PROT_ERR		4
#define QHCA_WC_WR_FLUSH_ERR		5
#define QHCA_WC_MW_BIND_ERR		6
#define QHCA_WC_BAD_RESP_ERR		7
#define QHCA_WC_LOC_ACCESS_ERR		8
#define QHCA_WC_REM_INV_REQ_ERR		9
#define QHCA_WC_REM_ACCESS_ERR		10
#define QHCA_WC_REM_OP_ERR		11
#define QHCA_WC_RETRY_EXC_ERR		12
#define QHCA_WC_RNR_RETRY_EXC_ERR	13
#define QHCA_WC_FATAL_ERR		19
#define QHCA_WC_GENERAL_ERR		21

/* why: the finer reason beside a status or an event */
#define QHCA_SYN_NONE			0x00
#define QHCA_SYN_KEY_INVALID		0x01	/* no such MR, or the key byte differs */
#define QHCA_SYN_KEY_PD			0x02	/* MR of another PD */
#define QHCA_SYN_KEY_BOUNDS		0x03	/* outside the MR */
#define QHCA_SYN_KEY_ACCESS		0x04	/* the MR does not allow it */
#define QHCA_SYN_QP_ACCESS		0x05	/* the QP does not allow it */
#define QHCA_SYN_KEY_PRIVILEGE		0x06	/* reserved key on a QP without the right */
#define QHCA_SYN_TABLE_INVALID		0x10	/* buffer-table entry not valid or of the wrong kind */
#define QHCA_SYN_TABLE_DMA		0x11	/* a table could not be read */
#define QHCA_SYN_DATA_DMA		0x12	/* data could not be read or written */
#define QHCA_SYN_WQE_DMA		0x13	/* a WQE or doorbell record could not be read */
#define QHCA_SYN_WQE_OPCODE		0x20	/* opcode unknown or not for this QP type */
#define QHCA_SYN_WQE_SGE		0x21	/* more SGEs or inline bytes than the stride holds */
#define QHCA_SYN_WQE_LENGTH		0x22	/* message too long: for UD over the MTU, else over max_msg_size */
#define QHCA_SYN_WQE_FLAGS		0x23	/* flags that do not go with the opcode */
#define QHCA_SYN_WQE_AV			0x24	/* address vector names no valid GID index */
#define QHCA_SYN_DB_INDEX		0x30	/* producer index beyond the ring */
#define QHCA_SYN_RQ_LENGTH		0x31	/* message longer than the receive WQE */
#define QHCA_SYN_PSN_SEQ		0x40	/* NAK: sequence error */
#define QHCA_SYN_TIMEOUT		0x41	/* no acknowledge in time, retries used up */
#define QHCA_SYN_RNR			0x42	/* receiver not ready, retries used up */
#define QHCA_SYN_NAK_INV_REQ		0x43
#define QHCA_SYN_NAK_ACCESS		0x44
#define QHCA_SYN_NAK_OP			0x45
#define QHCA_SYN_BAD_PACKET		0x46	/* opcode sequence, length or header broken */
#define QHCA_SYN_RD_ATOMIC		0x47	/* more outstanding reads than agreed */
#define QHCA_SYN_CQ_OVERFLOW		0x50
#define QHCA_SYN_CQ_DMA			0x51
#define QHCA_SYN_FLUSH			0x60	/* the QP was in, or went to, the error state */

/* ---------------------------------------------------------------- MR ---- */

/* access flags of MRs and QPs; the bits follow the verbs' */
#define QHCA_ACCESS_LOCAL_WRITE		(1U << 0)
#define QHCA_ACCESS_REMOTE_WRITE	(1U << 1)
#define QHCA_ACCESS_REMOTE_READ		(1U << 2)
#define QHCA_ACCESS_REMOTE_ATOMIC	(1U << 3)
#define QHCA_ACCESS_MASK		0x0000000fU

struct qhca_mpt {
	struct qhca_buf	buf;		/* 0x00: unused with QHCA_MR_F_PHYS */
	__le64	iova;		/* 0x20: address of byte 0 as SGEs and RETHs name it */
	__le64	len;		/* 0x28: bytes; must equal buf.len */
	__le32	key;		/* 0x30: in: key byte in 7:0; out: whole key */
	__le32	pd;		/* 0x34 */
	__le32	access;		/* 0x38: QHCA_ACCESS_* */
	__u8	flags;		/* 0x3c: QHCA_MR_F_* */
	__u8	state;		/* 0x3d: RO: QHCA_MR_* */
	__u8	rsvd0[2];
	__le32	max_entries;	/* 0x40: FAST_REG: greatest number of pages, in a FLAT table at buf.addr */
	__u8	rsvd1[60];
};

#define QHCA_MR_F_PHYS			(1U << 0)	/* address = DMA address, iova 0, len 2^64 - 1; kernel only */
#define QHCA_MR_F_FAST_REG		(1U << 1)	/* made in state FREE; QHCA_WQE_REG_MR fills it */

#define QHCA_MR_FREE			0
#define QHCA_MR_VALID			1

#define QHCA_KEY_INDEX_SHIFT		8
#define QHCA_KEY_BYTE_MASK		0x000000ffU
#define QHCA_LKEY_RESERVED		0x00000000U	/* SGE address is a DMA address; only on QPs with QHCA_QP_F_PRIVILEGED */

/* ---------------------------------------------------------------- AV ---- */

struct qhca_av {
	__u8	dgid[16];
	__u8	dmac[6];
	__le16	sgid_index;
	__le32	flow_label;	/* 19:0 */
	__u8	traffic_class;
	__u8	hop_limit;
	__u8	sl;		/* VLAN priority when the source GID has a VLAN */
	__u8	flags;		/* 0 */
	__le16	udp_sport;	/* 0: 0xc000 | hash of the QPNs */
	__u8	rsvd[14];
};

/* ---------------------------------------------------------------- QP ---- */

#define QHCA_QPT_RC			0
#define QHCA_QPT_UC			1
#define QHCA_QPT_UD			2
#define QHCA_QPT_GSI			3	/* UD with QPN 1; one per device */

#define QHCA_QPS_RESET			0
#define QHCA_QPS_INIT			1
#define QHCA_QPS_RTR			2
#define QHCA_QPS_RTS			3
#define QHCA_QPS_SQD			4
#define QHCA_QPS_SQE			5
#define QHCA_QPS_ERR			6

/*
 * Send WQEs are executed in RTS only; in SQD they wait, in SQE and ERR they are
 * flushed.  A doorbell in another state is counted and ignored.  Going to RESET
 * sets all counters of the QP to 0, and drops its CQEs' right to exist: the
 * software cleans its CQ.
 */

/* path MTU code: 1 256, 2 512, 3 1024, 4 2048, 5 4096 bytes */

struct qhca_qpc {
	/* set by CREATE_QP */
	__le32	qpn;		/* 0x000: RO */
	__u8	type;		/* 0x004: QHCA_QPT_* */
	__u8	state;		/* 0x005: QHCA_QPS_*; RESET at create */
	__u8	flags;		/* 0x006: QHCA_QP_F_* */
	__u8	rsvd0;
	__le32	pd;		/* 0x008 */
	__le32	uar;		/* 0x00c: whose doorbell page may ring it */
	__le32	send_cqn;	/* 0x010 */
	__le32	recv_cqn;	/* 0x014 */
	__le32	srqn;		/* 0x018: with QHCA_QP_F_SRQ */
	__u8	sq_shift;	/* 0x01c: log2 of SQ depth in WQEs, 0..15 */
	__u8	sq_stride;	/* 0x01d: log2 of SQ WQE bytes, 6..10; 0: no SQ */
	__u8	rq_shift;	/* 0x01e: log2 of RQ depth, 0..15 */
	__u8	rq_stride;	/* 0x01f: log2 of RQ WQE bytes, 5..9; 0: no RQ */
	struct qhca_buf	sq;		/* 0x020 */
	struct qhca_buf	rq;		/* 0x040: not with QHCA_QP_F_SRQ */
	__le64	rq_dbrec;	/* 0x060: DMA address of a struct qhca_dbrec: RQ producer index */
	__le64	cookie;		/* 0x068: software's own, returned by QUERY_QP */
	/* set by MODIFY_QP */
	struct qhca_av	av;		/* 0x070 */
	__le32	dest_qpn;	/* 0x0a0 */
	__le32	qkey;		/* 0x0a4: UD */
	__le32	sq_psn;		/* 0x0a8: first PSN to send, 23:0 */
	__le32	rq_psn;		/* 0x0ac: first PSN expected, 23:0 */
	__le32	access;		/* 0x0b0: QHCA_ACCESS_*, remote bits */
	__le16	pkey_index;	/* 0x0b4: 0 (the default partition key 0xffff) */
	__u8	path_mtu;	/* 0x0b6: 1..5 */
	__u8	timeout;	/* 0x0b7: local ACK timeout: 4.096 us * 2^n, 0 none, 0..31 */
	__u8	retry_cnt;	/* 0x0b8: 0..7 */
	__u8	rnr_retry;	/* 0x0b9: 0..7, 7: no end */
	__u8	min_rnr_timer;	/* 0x0ba: code 0..31 sent in RNR NAKs */
	__u8	max_rd_atomic;	/* 0x0bb: outstanding READs and atomics as requester */
	__u8	max_dest_rd_atomic;	/* 0x0bc: as responder */
	__u8	en_sqd_event;	/* 0x0bd: with a change to SQD: 1 asks for QHCA_EV_SQ_DRAINED */
	__u8	rsvd1[2];
	/* read-only: where the machines stand */
	__le32	sq_head;	/* 0x0c0: producer index last rung */
	__le32	sq_next;	/* 0x0c4: next WQE to be sent first */
	__le32	sq_tail;	/* 0x0c8: oldest WQE not completed */
	__le32	rq_head;	/* 0x0cc: producer index last read from the record */
	__le32	rq_tail;	/* 0x0d0: next receive WQE to take */
	__le32	snd_psn;	/* 0x0d4: next PSN to send */
	__le32	una_psn;	/* 0x0d8: oldest PSN not acknowledged */
	__le32	exp_psn;	/* 0x0dc: responder: next PSN expected */
	__le32	msn;		/* 0x0e0: responder: message sequence number */
	__le32	credits;	/* 0x0e4: SQ: last AETH credit code; 31: none told */
	__u8	retry_left;	/* 0x0e8 */
	__u8	rnr_left;	/* 0x0e9 */
	__u8	req_state;	/* 0x0ea: QHCA_REQ_* */
	__u8	rsp_state;	/* 0x0eb: QHCA_RSP_* */
	__u8	rd_outstanding;	/* 0x0ec: READs and atomics in flight as requester */
	__u8	syndrome;	/* 0x0ed: QHCA_SYN_* that brought the QP to ERR or SQE */
	__u8	rsvd2[2];
	__le64	deadline;	/* 0x0f0: device clock at which the timer fires; 0: not running */
	__le64	sq_leaf;	/* 0x0f8: DMA address of the SQ page in use (cached leaf); 0: none */
	__le64	rq_leaf;	/* 0x100: DMA address of the RQ page in use */
	__le32	sq_leaf_page;	/* 0x108: its page number in the SQ buffer */
	__le32	rq_leaf_page;	/* 0x10c */
	__le64	tx_packets;	/* 0x110 */
	__le64	rx_packets;	/* 0x118 */
	__le64	retransmits;	/* 0x120: packets sent again */
	__le64	timeouts;	/* 0x128 */
	__le64	rnr_naks_rx;	/* 0x130 */
	__le64	seq_naks_rx;	/* 0x138 */
	__le64	duplicates;	/* 0x140: duplicate requests answered */
	__u8	rsvd3[184];	/* 0x148 */
};

#define QHCA_QP_F_SRQ			(1U << 0)	/* receives come from srqn */
#define QHCA_QP_F_PRIVILEGED		(1U << 1)	/* may use QHCA_LKEY_RESERVED; kernel QPs only */

#define QHCA_REQ_IDLE			0
#define QHCA_REQ_ACTIVE			1	/* has something to send */
#define QHCA_REQ_WAIT_ACK		2
#define QHCA_REQ_WAIT_RNR		3
#define QHCA_REQ_WAIT_FENCE		4
#define QHCA_REQ_WAIT_RD		5	/* max_rd_atomic reached */
#define QHCA_RSP_IDLE			0
#define QHCA_RSP_MESSAGE		1	/* in the middle of a message */
#define QHCA_RSP_READ			2	/* sending READ responses */
#define QHCA_RSP_NAKED			3	/* a NAK is out; waits for the PSN it asked for */

/* MODIFY_QP mask.  STATE comes with the attributes the transition needs. */
#define QHCA_QP_M_STATE			(1ULL << 0)
#define QHCA_QP_M_ACCESS		(1ULL << 1)
#define QHCA_QP_M_PKEY_INDEX		(1ULL << 2)
#define QHCA_QP_M_QKEY			(1ULL << 3)
#define QHCA_QP_M_AV			(1ULL << 4)
#define QHCA_QP_M_PATH_MTU		(1ULL << 5)
#define QHCA_QP_M_TIMEOUT		(1ULL << 6)
#define QHCA_QP_M_RETRY_CNT		(1ULL << 7)
#define QHCA_QP_M_RNR_RETRY		(1ULL << 8)
#define QHCA_QP_M_RQ_PSN		(1ULL << 9)
#define QHCA_QP_M_SQ_PSN		(1ULL << 10)
#define QHCA_QP_M_MAX_RD_ATOMIC		(1ULL << 11)
#define QHCA_QP_M_MAX_DEST_RD_ATOMIC	(1ULL << 12)
#define QHCA_QP_M_MIN_RNR_TIMER		(1ULL << 13)
#define QHCA_QP_M_DEST_QPN		(1ULL << 14)
#define QHCA_QP_M_SQD_EVENT		(1ULL << 15)
#define QHCA_QP_M_ALL			0x000000000000ffffULL

/* ---------------------------------------------------------------- SRQ --- */
/*
 * WQEs of an SRQ are not completed in order, so an SRQ has two rings: the WQE
 * array, addressed by WQE number, and the index ring, into which software
 * writes (as __le32) the number of each WQE it posts.  The doorbell record counts the
 * entries of the index ring.
 */
struct qhca_srqc {
	struct qhca_buf	buf;		/* 0x00: WQEs: depth << stride */
	struct qhca_buf	idx;		/* 0x20: index ring: depth * 4 */
	__le64	dbrec;		/* 0x40: DMA address of a struct qhca_dbrec: producer index */
	__le32	srqn;		/* 0x48: RO */
	__le32	pd;		/* 0x4c */
	__le32	uar;		/* 0x50 */
	__u8	shift;		/* 0x54: log2 of the depth, 0..15 */
	__u8	stride;		/* 0x55: log2 of WQE bytes, 5..9 */
	__u8	flags;		/* 0x56: 0 */
	__u8	state;		/* 0x57: RO: QHCA_SRQ_* */
	__le32	limit;		/* 0x58: QHCA_EV_SRQ_LIMIT when fewer are left; 0: disarmed; cleared by the event */
	__le32	head;		/* 0x5c: RO: producer index last read */
	__le32	tail;		/* 0x60: RO: next to take */
	__u8	rsvd[28];
};

#define QHCA_SRQ_OK			0
#define QHCA_SRQ_ERR			1

#define QHCA_SRQ_M_LIMIT		(1ULL << 0)

/* --------------------------------------------------------------- WQEs --- */

struct qhca_sge {
	__le64	addr;
	__le32	len;		/* bytes; 0 means 0 */
	__le32	lkey;
};

/*
 * Send WQE of RC and UC: struct qhca_sq_wqe, then SGEs or inline data.
 * Send WQE of UD and GSI: struct qhca_ud_wqe, then the same.
 * The WQE with counter n starts at byte (n & (depth - 1)) << sq_stride.
 */
struct qhca_wqe_ctrl {
	__u8	opcode;		/* 0x00: QHCA_WQE_* */
	__u8	flags;		/* 0x01: QHCA_WQE_F_* */
	__le16	num_sge;	/* 0x02: SGEs, or with INLINE bytes of data */
	__be32	imm;		/* 0x04: immediate data as on the wire; *_INV, LOCAL_INV: key (as __le32) */
	__le64	wr_id;		/* 0x08 */
	__le64	arg0;		/* 0x10: COMP_SWAP: compare; FETCH_ADD: add; REG_MR: iova */
	__le64	arg1;		/* 0x18: COMP_SWAP: swap; REG_MR: length */
};

struct qhca_wqe_remote {
	__le64	addr;		/* remote address; REG_MR: DMA address of the FLAT page table */
	__le32	rkey;		/* remote key; REG_MR: the new key */
	__le32	arg;		/* REG_MR: access flags 7:0, page_shift 15:8, pages 31:16 */
};

struct qhca_sq_wqe {
	struct qhca_wqe_ctrl	ctrl;
	struct qhca_wqe_remote	remote;	/* 0x20: zero for SEND forms */
	/* 0x30: struct qhca_sge[] or inline bytes */
};

struct qhca_ud_wqe {
	struct qhca_wqe_ctrl	ctrl;
	__le32	dest_qpn;	/* 0x20 */
	__le32	qkey;		/* 0x24: bit 31 set: the QP's own is used */
	__u8	rsvd[8];
	struct qhca_av	av;		/* 0x30 */
	/* 0x60: struct qhca_sge[] or inline bytes */
};

#define QHCA_WQE_SEND			0x00
#define QHCA_WQE_SEND_IMM		0x01
#define QHCA_WQE_SEND_INV		0x02
#define QHCA_WQE_RDMA_WRITE		0x08
#define QHCA_WQE_RDMA_WRITE_IMM		0x09
#define QHCA_WQE_RDMA_READ		0x10
#define QHCA_WQE_COMP_SWAP		0x18
#define QHCA_WQE_FETCH_ADD		0x19
#define QHCA_WQE_LOCAL_INV		0x20
#define QHCA_WQE_REG_MR			0x21
#define QHCA_WQE_ETH_SEND		0x40

#define QHCA_WQE_F_SIGNALED		(1U << 0)
#define QHCA_WQE_F_SOLICITED		(1U << 1)
#define QHCA_WQE_F_FENCE		(1U << 2)	/* wait until earlier READs and atomics are done */
#define QHCA_WQE_F_INLINE		(1U << 3)

/* Receive WQE of RQ and SRQ: this header, then SGEs. */
struct qhca_rq_wqe {
	__le64	wr_id;
	__le16	num_sge;
	__u8	rsvd[6];
	/* 0x10: struct qhca_sge[] */
};

/* ----------------------------------------------------------- Ethernet --- */
/*
 * Ethernet queues have buffers, CQs and counters like QPs, but are only for the
 * kernel (UAR 0); their addresses are DMA addresses.
 */
struct qhca_eth_qc {
	struct qhca_buf	buf;		/* 0x00 */
	__le64	dbrec;		/* 0x20: RQ: producer index; SQ: 0 */
	__le32	cqn;		/* 0x28 */
	__u8	shift;		/* 0x2c: log2 of the depth, 0..15 */
	__u8	stride;		/* 0x2d: log2 of WQE bytes: SQ 6..9, RQ 4 */
	__u8	rsvd[18];
};

/* Ethernet send WQE: this header, then num_sge struct qhca_eth_seg */
struct qhca_eth_wqe {
	__u8	opcode;		/* QHCA_WQE_ETH_SEND */
	__u8	flags;		/* QHCA_WQE_F_SIGNALED, QHCA_WQE_F_ETH_* */
	__le16	num_sge;
	__le16	csum_start;	/* ETH_CSUM: sum from this byte of the frame to its end ... */
	__le16	csum_offset;	/* ... and store it this far behind csum_start */
	__le16	vlan;		/* ETH_VLAN: TCI to insert */
	__u8	rsvd[6];
};

#define QHCA_WQE_F_ETH_CSUM		(1U << 4)
#define QHCA_WQE_F_ETH_VLAN		(1U << 5)

/* one segment of a frame to send, or one receive buffer (a whole receive WQE) */
struct qhca_eth_seg {
	__le64	addr;		/* DMA address */
	__le32	len;		/* bytes */
	__u8	rsvd[4];
};

#define QHCA_ETH_MAX_FRAME		9234	/* 9216 + header and one VLAN tag */
#define QHCA_ETH_MAX_SGE		30

/* --------------------------------------------------------- statistics --- */
/* indices into the array QUERY_STATS returns; all count since reset */
#define QHCA_STAT_ETH_RX_PACKETS	0
#define QHCA_STAT_ETH_RX_BYTES		1
#define QHCA_STAT_ETH_RX_DROPPED	2	/* no buffer */
#define QHCA_STAT_ETH_RX_FILTERED	3	/* not our address */
#define QHCA_STAT_ETH_RX_ERRORS		4	/* too long, too short */
#define QHCA_STAT_ETH_TX_PACKETS	5
#define QHCA_STAT_ETH_TX_BYTES		6
#define QHCA_STAT_ETH_TX_ERRORS		7
#define QHCA_STAT_ETH_RX_MULTICAST	8
#define QHCA_STAT_ROCE_RX_PACKETS	16
#define QHCA_STAT_ROCE_RX_BYTES		17
#define QHCA_STAT_ROCE_TX_PACKETS	18
#define QHCA_STAT_ROCE_TX_BYTES		19
#define QHCA_STAT_ROCE_ICRC_ERRORS	20
#define QHCA_STAT_ROCE_RX_MALFORMED	21	/* header broken, or opcode not for the QP */
#define QHCA_STAT_ROCE_RX_NO_QP		22	/* no such QP, or not in a receiving state */
#define QHCA_STAT_ROCE_OUT_OF_SEQUENCE	23	/* request PSN ahead of the expected one */
#define QHCA_STAT_ROCE_DUPLICATE	24	/* request PSN behind it */
#define QHCA_STAT_ROCE_RNR_NAK_TX	25
#define QHCA_STAT_ROCE_RNR_NAK_RX	26
#define QHCA_STAT_ROCE_SEQ_NAK_TX	27
#define QHCA_STAT_ROCE_SEQ_NAK_RX	28
#define QHCA_STAT_ROCE_TIMEOUTS		29
#define QHCA_STAT_ROCE_RETRANSMITS	30	/* packets sent again */
#define QHCA_STAT_ROCE_ACCESS_ERRORS	31	/* remote access NAKs sent */
#define QHCA_STAT_ROCE_INV_REQ_ERRORS	32	/* invalid request NAKs sent */
#define QHCA_STAT_ROCE_OP_ERRORS	33	/* remote operational NAKs sent */
#define QHCA_STAT_ROCE_RETRY_EXCEEDED	34
#define QHCA_STAT_ROCE_RNR_EXCEEDED	35
#define QHCA_STAT_ROCE_ACK_TX		36
#define QHCA_STAT_ROCE_ACK_RX		37
#define QHCA_STAT_UD_DROPPED		38	/* no receive WQE, bad Q_Key, too long */
#define QHCA_STAT_DOORBELLS		48
#define QHCA_STAT_DB_BAD_OBJECT		49	/* doorbell for a number that does not exist */
#define QHCA_STAT_DB_BAD_OWNER		50	/* doorbell through another context's page */
#define QHCA_STAT_DB_BAD_INDEX		51	/* producer index beyond the ring */
#define QHCA_STAT_DB_BAD_ACCESS		52	/* wrong size, alignment or offset */
#define QHCA_STAT_TABLE_FAULTS		53	/* buffer-table entry invalid or unreadable */
#define QHCA_STAT_DMA_ERRORS		54
#define QHCA_STAT_CQ_OVERFLOWS		55
#define QHCA_STAT_WQES			56	/* send WQEs fetched */
#define QHCA_STAT_CQES			57
#define QHCA_STAT_EQES			58
#define QHCA_STAT_INTERRUPTS		59
#define QHCA_STAT_TABLE_WALKS		60	/* walks that read at least one entry */
#define QHCA_STAT_AQ_COMMANDS		61
#define QHCA_STAT_AQ_ERRORS		62	/* commands with a status other than OK */
#define QHCA_STAT_DB_BAD_STATE		63	/* SQ doorbell for a QP not in RTS, SQD, SQE or ERR */
#define QHCA_STAT_COUNT			64

#endif /* QHCA_HW_H */

/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * qhca-hw.h - the contract between the qhca device and its software.
 *
 * This is the only definition of registers, commands, contexts, descriptors
 * and codes.  The QEMU device, the Linux driver, the rdma-core provider and
 * the tests all include this file.
 *
 * Rules that hold everywhere:
 *  - Every multi-byte field is little-endian, except those typed __be* or
 *    documented as a byte string (GIDs, MAC addresses), which are in network
 *    order.
 *  - A reserved field (rsvd*) is written as zero by software and by the
 *    device, and ignored by the reader, except that the device refuses
 *    (QHCA_ST_BAD_PARAM) a command whose reserved *flag bits* are set, so that
 *    they can be given a meaning later.
 *  - An "index" or "counter" of a ring counts entries since the ring was
 *    created, wraps at 2^32 and is never masked; the slot is
 *    (index & (depth - 1)).  A ring of depth N can therefore hold N entries:
 *    full and empty are distinct.
 *  - Object numbers (QPN, CQN, ...) are 24 bits wide.
 *  - A "DMA address" is what the device puts on the bus: an IOVA if there is
 *    an IOMMU.
 */
#ifndef QHCA_HW_H
#define QHCA_HW_H

#include <linux/types.h>

/* ------------------------------------------------------------------ PCI -- */

#define QHCA_PCI_VENDOR_ID		0x1234	/* QEMU's experimental vendor */
#define QHCA_PCI_DEVICE_ID		0x7ca0
#define QHCA_PCI_REVISION		0x01
/* class code 0x020000: Ethernet controller (the RDMA engine is part of it) */

#define QHCA_BAR_REGS			0	/* registers, MSI-X table and PBA, 64-bit memory */
#define QHCA_BAR_DB			2	/* doorbell pages, 64-bit memory, prefetchable */
#define QHCA_BAR_DM			4	/* device memory, 64-bit memory, prefetchable; absent without QHCA_FEAT_DM */

#define QHCA_BAR_REGS_SIZE		0x10000
#define QHCA_MSIX_PBA			0x7000	/* in BAR 0: pending bits; the registers are below */
#define QHCA_MSIX_TABLE			0x8000	/* in BAR 0: room for 2048 vectors */
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
#define QHCA_FEAT_XRC			(1ULL << 8)	/* extended reliable connected QPs, XRC domains and SRQs */
#define QHCA_FEAT_MW			(1ULL << 9)	/* memory windows of types 1 and 2B */
#define QHCA_FEAT_REREG			(1ULL << 10)	/* MODIFY_MR */
#define QHCA_FEAT_DM			(1ULL << 11)	/* device memory (QHCA_BAR_DM), QHCA_MR_F_DM */
#define QHCA_FEAT_ODP			(1ULL << 12)	/* on-demand paging: QHCA_MR_F_ODP */
#define QHCA_FEAT_RAW_PACKET		(1ULL << 13)	/* raw packet QPs */
#define QHCA_FEAT_FLOW			(1ULL << 14)	/* flow steering to raw packet and RSS QPs */
#define QHCA_FEAT_RSS			(1ULL << 15)	/* WQs, indirection tables, RSS QPs */
#define QHCA_FEAT_MCAST			(1ULL << 16)	/* multicast groups of UD QPs */
#define QHCA_FEAT_TAG_MATCHING		(1ULL << 17)	/* SRQs with QHCA_SRQ_F_TM */
#define QHCA_FEAT_FLUSH			(1ULL << 18)	/* FLUSH */
#define QHCA_FEAT_ATOMIC_WRITE		(1ULL << 19)	/* ATOMIC WRITE */
#define QHCA_FEAT_MASKED_ATOMIC		(1ULL << 20)	/* compare-and-swap, fetch-and-add with masks */
#define QHCA_FEAT_CQ_RESIZE		(1ULL << 21)	/* QHCA_CQ_M_RESIZE */
#define QHCA_FEAT_SRQ_RESIZE		(1ULL << 22)	/* QHCA_SRQ_M_RESIZE */
#define QHCA_FEAT_ETH_LSO		(1ULL << 23)	/* QHCA_WQE_F_ETH_LSO: TCP and UDP segmentation */
#define QHCA_FEAT_ETH_RSS		(1ULL << 24)	/* RQTs of Ethernet RQs, flows to them, QHCA_HASH_BY_TYPE */
#define QHCA_FEAT_ETH_HDS		(1ULL << 25)	/* QHCA_ETH_Q_F_HDS: header/data split */
#define QHCA_FEAT_ETH_SUPER		(1ULL << 26)	/* super-frames: QHCA_ETH_Q_F_SUPER */
#define QHCA_FEAT_ETH_GRO		(1ULL << 27)	/* QHCA_ETH_Q_F_GRO: frames are merged on receive */
#define QHCA_FEAT_PORT_STATS		(1ULL << 28)	/* QHCA_STAT_PORT_* */
#define QHCA_FEAT_EQ_RECORD		(1ULL << 29)	/* QHCA_EQ_F_RECORD: doorbell records of EQs */
#define QHCA_FEAT_SQ_RECORD		(1ULL << 30)	/* QHCA_QP_F_SQ_RECORD: doorbell records of SQs */
#define QHCA_FEAT_ETH_TUNNEL		(1ULL << 31)	/* inner_l3: segmentation in tunnels */
#define QHCA_FEAT_ETH_SHAPER		(1ULL << 32)	/* shapers: rate limits of Ethernet SQs */
#define QHCA_FEAT_ETH_HASH_LABEL	(1ULL << 33)	/* QHCA_HASH_LABEL_*: RSS by IPv6 flow label */
#define QHCA_FEAT_ETH_LOOPBACK		(1ULL << 34)	/* QHCA_PORT_M_LOOPBACK */
#define QHCA_FEAT_ETH_UNPAD		(1ULL << 35)	/* QHCA_ETH_Q_F_UNPAD: padding is not stored */
#define QHCA_FEAT_PAUSE			(1ULL << 36)	/* QHCA_PORT_M_PAUSE: flow control, counters of MAC control frames */

#define QHCA_CTRL_ENABLE		(1U << 0)	/* 0 -> 1 starts the admin queue; 1 -> 0 is the same as RESET */
#define QHCA_CTRL_RESET			(1U << 1)	/* write 1: destroys all objects and resets all registers; reads as 0 */

#define QHCA_STATUS_READY		(1U << 0)	/* enabled and able to take commands */
#define QHCA_STATUS_FATAL		(1U << 1)	/* cleared only by a reset; reason in 15:8 */
#define QHCA_STATUS_LINK		(1U << 2)	/* the wire is connected and up */
#define QHCA_STATUS_FATAL_SHIFT		8
#define QHCA_STATUS_FATAL_MASK		0x0000ff00U

#define QHCA_FATAL_NONE			0
#define QHCA_FATAL_AQ_DMA		1	/* an admin ring could not be read or written */
#define QHCA_FATAL_AQ_INDEX		2	/* ASQ doorbell: index behind the last one, or more than the depth ahead */
#define QHCA_FATAL_AQ_CONFIG		3	/* enabled with a bad AQ_SHIFT, DB_SHIFT or ring address */
#define QHCA_FATAL_EQ			4	/* an event ring could not be written, or an EQ's doorbell record not accessed */
#define QHCA_FATAL_INTERNAL		5	/* the device itself failed */

#define QHCA_AQ_CTRL_IRQ		(1U << 0)	/* raise MSI-X vector 0 after each admin completion */

/* ---------------------------------- doorbells (offset in a page, BAR 2) -- */
/*
 * Each doorbell page belongs to one user access region (UAR): page number =
 * UAR index, at BAR 2 + (index << DB_SHIFT).  UAR 0 is the kernel's.  All
 * doorbells are aligned 8-byte little-endian stores; any other size is a guest
 * error: counted and ignored.  The device ignores (and counts) a doorbell
 * for an object whose context names another UAR.
 */
#define QHCA_DB_SQ			0x000	/* send queue: QPN, producer index ("head") */
#define QHCA_DB_CQ_ARM			0x008	/* completion queue: CQN, flags, consumer index */
#define QHCA_DB_EQ			0x010	/* event queue (UAR 0 only): EQN, flags, consumer index (ignored with QHCA_EQ_F_RECORD) */
#define QHCA_DB_ETH_SQ			0x018	/* Ethernet send queue (UAR 0 only): number, producer index */
#define QHCA_DB_RQ			0x020	/* receive queue: QPN; the index is ignored: the device reads the doorbell record, see below */
#define QHCA_DB_MR_SYNC			0x028	/* ODP MR (UAR 0 only): index of its key; see QHCA_MR_F_ODP */
#define QHCA_DB_TM			0x030	/* tag operations: SRQN, producer index of the operation ring */

#define QHCA_DB_NUM_MASK		0x0000000000ffffffULL	/* object number */
#define QHCA_DB_SOLICITED		(1ULL << 24)	/* CQ_ARM: only solicited or error completions raise an event */
#define QHCA_DB_EQ_ARM			(1ULL << 24)	/* EQ: raise the vector at the next event, or at once if one is pending */
#define QHCA_DB_INDEX_SHIFT		32		/* index in 63:32 */

/*
 * Doorbell record: 8 bytes, 8-byte aligned, in memory; software writes index,
 * the device reads it when it needs it.  It holds the producer index of an RQ,
 * SRQ, or SQ with QHCA_QP_F_SQ_RECORD, and the consumer index of a CQ, or EQ
 * with QHCA_EQ_F_RECORD.
 *
 * flags is written by the device.  When an RQ needs attention without a packet
 * (the QP entered the error state: receives posted from now on must be
 * flushed), the device first sets QHCA_DBREC_NOTIFY, then reads index.
 * Software that posts receives stores index, executes a full memory barrier, reads
 * flags, and if NOTIFY is set rings QHCA_DB_RQ.  No receive is missed, and
 * in the normal states posting a receive causes no exit.  The device clears
 * flags when the QP goes from RESET to INIT.  With an EQ, NOTIFY means that
 * events wait for room; see QHCA_EQ_F_RECORD.  With an SQ, it means that the
 * device does not look for WQEs by itself; see QHCA_QP_F_SQ_RECORD.
 */
struct qhca_dbrec {
	__le32	index;
	__le32	flags;		/* QHCA_DBREC_* */
};

#define QHCA_DBREC_NOTIFY		(1U << 0)

/* ------------------------------------------------------- buffer tables -- */
/*
 * How the device finds the memory of a queue or a memory region.  All queues
 * and MRs describe their memory in this way.  Let "off" be the byte offset from
 * the start of the queue or region, and pos = off + first.
 *
 * QHCA_BUF_DIRECT  one contiguous block: address = addr + pos.  (0 hops)
 * QHCA_BUF_LIST    addr points to "entries" struct qhca_buf_seg; the segment
 *                  of the byte at "off" is found by adding up lengths.
 *                  first is 0.  For teaching: the search takes time in
 *                  proportion to the number of segments.
 * QHCA_BUF_FLAT    pages of one size: addr points to one contiguous table of
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
 * unless a command says so (or the object is an MR with QHCA_MR_F_ODP); the
 * device may cache what it has read.
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
#define QHCA_BUF_SEG_MIN		512	/* bytes of a region's segment; its first and last may be shorter */

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
	__le64	addr;		/* DMA address; bit 63 of len: valid */
	__le64	len;		/* 62:0 bytes (for queues a multiple of 4096, so that no entry crosses a boundary; for regions QHCA_BUF_SEG_MIN or more), 63 QHCA_BUF_SEG_VALID */
};

#define QHCA_BUF_SEG_VALID		(1ULL << 63)

/* a table entry (__le64) */
#define QHCA_BTE_VALID			(1ULL << 0)	/* must be set in each entry used */
#define QHCA_BTE_TABLE			(1ULL << 1)	/* set: address of a table; clear: address of a page */
#define QHCA_BTE_WRITE			(1ULL << 2)	/* page entry of an ODP MR: may be written; ignored elsewhere */
#define QHCA_BTE_ADDR_MASK		0xfffffffffffff000ULL	/* aligned to the page or table size */

/* --------------------------------------------------------- admin queue -- */
/*
 * Two rings of the same depth.  Software writes commands, then
 * QHCA_REG_ASQ_DB.  Commands run in order; each produces one completion, in the
 * same order.  A submission slot may be reused only after its completion was
 * consumed, so the completion ring cannot overflow.  The phase bit of a
 * completion is 1 in the first pass around the ring, 0 in the second, and so on;
 * software clears the ring before it enables the device.
 */
struct qhca_aq_cmd {
	__u8	opcode;		/* QHCA_CMD_* */
	__u8	flags;		/* 0 */
	__le16	cmd_id;		/* returned in the completion */
	__le32	obj;		/* object number; 0 where the command has none */
	__le64	in_addr;	/* DMA address of the input structure, 64-byte aligned */
	__le64	out_addr;	/* DMA address of the output structure, 64-byte aligned */
	__le32	in_len;		/* bytes at in_addr: exactly the structure's size */
	__le32	out_len;	/* bytes at out_addr: at least the structure's size */
	__le64	mask;		/* modify commands: the fields to change */
	__le64	arg;		/* command specific */
	__u8	rsvd[16];
};

struct qhca_aq_cqe {
	__le64	result;		/* command specific; with QHCA_ST_BAD_PARAM the offset of the offending field in the input */
	__le32	obj;		/* number of the new object, or the command's obj */
	__le16	cmd_id;
	__u8	status;		/* QHCA_ST_* */
	__u8	phase;		/* bit 0; written last, with the 8 bytes that contain it */
};

#define QHCA_ST_OK			0
#define QHCA_ST_BAD_OPCODE		1	/* no such command: EOPNOTSUPP */
#define QHCA_ST_UNSUPPORTED		2	/* known but not offered by this device: EOPNOTSUPP */
#define QHCA_ST_BAD_PARAM		3	/* a field out of range: EINVAL */
#define QHCA_ST_BAD_OBJ			4	/* no such object: ENOENT */
#define QHCA_ST_BAD_STATE		5	/* not allowed in the object's state: EINVAL */
#define QHCA_ST_BUSY			6	/* other objects still refer to it: EBUSY */
#define QHCA_ST_NO_RESOURCES		7	/* limit reached: ENOMEM */
#define QHCA_ST_DMA_ERROR		8	/* input, output or table could not be accessed: EFAULT */
#define QHCA_ST_BAD_TABLE		9	/* a buffer-table descriptor is invalid: EINVAL */

#define QHCA_CMD_NOP			0x00	/* does nothing, completes */
#define QHCA_CMD_QUERY_DEVICE		0x01	/* out: struct qhca_dev_caps */
#define QHCA_CMD_QUERY_PORT		0x02	/* out: struct qhca_port */
#define QHCA_CMD_MODIFY_PORT		0x03	/* in: struct qhca_port, mask QHCA_PORT_M_* */
#define QHCA_CMD_QUERY_STATS		0x04	/* out: __le64[QHCA_STAT_COUNT]; out_len may be smaller: only as much is written */
#define QHCA_CMD_SET_GID		0x05	/* obj: index; in: struct qhca_gid (type NONE clears) */
#define QHCA_CMD_QUERY_GID		0x06	/* obj: index; out: struct qhca_gid */
#define QHCA_CMD_SET_MC_LIST		0x07	/* in: in_len / 8 entries of struct qhca_mac; replaces the multicast filter */
#define QHCA_CMD_ALLOC_UAR		0x10	/* obj <- UAR index */
#define QHCA_CMD_FREE_UAR		0x11
#define QHCA_CMD_ALLOC_PD		0x12	/* obj <- PD number */
#define QHCA_CMD_FREE_PD		0x13
#define QHCA_CMD_ALLOC_XRCD		0x14	/* obj <- number of an XRC domain */
#define QHCA_CMD_FREE_XRCD		0x15
#define QHCA_CMD_CREATE_EQ		0x18	/* in: struct qhca_eqc; obj <- EQN */
#define QHCA_CMD_DESTROY_EQ		0x19
#define QHCA_CMD_QUERY_EQ		0x1a	/* out: struct qhca_eqc */
#define QHCA_CMD_CREATE_CQ		0x20	/* in: struct qhca_cqc; obj <- CQN */
#define QHCA_CMD_MODIFY_CQ		0x21	/* in: struct qhca_cqc, mask QHCA_CQ_M_* */
#define QHCA_CMD_DESTROY_CQ		0x22	/* after its completion no event has this CQN */
#define QHCA_CMD_QUERY_CQ		0x23	/* out: struct qhca_cqc */
#define QHCA_CMD_CREATE_SRQ		0x28	/* in: struct qhca_srqc; obj <- SRQN */
#define QHCA_CMD_MODIFY_SRQ		0x29	/* in: struct qhca_srqc, mask QHCA_SRQ_M_* */
#define QHCA_CMD_DESTROY_SRQ		0x2a
#define QHCA_CMD_QUERY_SRQ		0x2b	/* out: struct qhca_srqc */
#define QHCA_CMD_CREATE_QP		0x30	/* in: struct qhca_qpc; obj <- QPN; state RESET */
#define QHCA_CMD_MODIFY_QP		0x31	/* in: struct qhca_qpc, mask QHCA_QP_M_* */
#define QHCA_CMD_DESTROY_QP		0x32	/* after its completion no DMA for this QP */
#define QHCA_CMD_QUERY_QP		0x33	/* out: struct qhca_qpc */
#define QHCA_CMD_QUERY_PAGE_FAULT	0x34	/* obj: QPN; out: struct qhca_page_fault[QHCA_PAGE_FAULT_SIDES] */
#define QHCA_CMD_RESUME_PAGE_FAULT	0x35	/* obj: QPN; arg: QHCA_RESUME_* */
#define QHCA_CMD_ATTACH_MC		0x36	/* obj: QPN of a UD QP; in: struct qhca_mcg; attaching again is no error */
#define QHCA_CMD_DETACH_MC		0x37	/* obj: QPN; in: struct qhca_mcg; after its completion no packet of the group for this QP */
#define QHCA_CMD_CREATE_MR		0x38	/* in: struct qhca_mpt; obj <- key (index 31:8, the given low byte 7:0) */
#define QHCA_CMD_DESTROY_MR		0x39	/* obj: key; after its completion no DMA through this MR */
#define QHCA_CMD_QUERY_MR		0x3a	/* obj: key; out: struct qhca_mpt */
#define QHCA_CMD_MODIFY_MR		0x3b	/* obj: key; in: struct qhca_mpt, mask QHCA_MR_M_* */
#define QHCA_CMD_CREATE_MW		0x3c	/* in: struct qhca_mpt; obj <- key; the other commands are those of MRs */
#define QHCA_CMD_CREATE_ETH_SQ		0x40	/* in: struct qhca_eth_qc; obj <- number */
#define QHCA_CMD_DESTROY_ETH_SQ		0x41	/* after its completion no DMA for this queue */
#define QHCA_CMD_CREATE_ETH_RQ		0x42	/* in: struct qhca_eth_qc; obj <- number */
#define QHCA_CMD_DESTROY_ETH_RQ		0x43	/* after its completion no DMA for this queue */
#define QHCA_CMD_MODIFY_ETH_RQ		0x44	/* in: struct qhca_eth_qc, mask QHCA_ETH_RQ_M_* */
#define QHCA_CMD_QUERY_ETH_RQ		0x45	/* out: struct qhca_eth_qc */
#define QHCA_CMD_QUERY_ETH_SQ		0x46	/* out: struct qhca_eth_qc */
#define QHCA_CMD_MODIFY_ETH_SQ		0x47	/* in: struct qhca_eth_qc, mask QHCA_ETH_SQ_M_* */
#define QHCA_CMD_CREATE_WQ		0x48	/* in: struct qhca_wqc; obj <- WQN; state RESET */
#define QHCA_CMD_MODIFY_WQ		0x49	/* in: struct qhca_wqc, mask QHCA_WQ_M_* */
#define QHCA_CMD_DESTROY_WQ		0x4a	/* after its completion no DMA for this WQ */
#define QHCA_CMD_QUERY_WQ		0x4b	/* out: struct qhca_wqc */
#define QHCA_CMD_CREATE_RQT		0x4c	/* arg: QHCA_RQT_*; in: __le32 queue numbers, in_len / 4 of them, a power of two; obj <- RQTN */
#define QHCA_CMD_DESTROY_RQT		0x4d
#define QHCA_CMD_CREATE_FLOW		0x50	/* in: struct qhca_flow; obj <- its number */
#define QHCA_CMD_DESTROY_FLOW		0x51	/* after its completion the rule has no effect */
#define QHCA_CMD_CREATE_SHAPER		0x58	/* in: struct qhca_shaperc; obj <- number */
#define QHCA_CMD_DESTROY_SHAPER		0x59
#define QHCA_CMD_MODIFY_SHAPER		0x5a	/* in: struct qhca_shaperc, mask QHCA_SHAPER_M_* */
#define QHCA_CMD_QUERY_SHAPER		0x5b	/* out: struct qhca_shaperc */

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
	__le32	max_uar;	/* at the current doorbell stride */
	__le32	max_eq;
	__le32	max_qp_wr;	/* greatest depth of SQ and RQ */
	__le32	max_cqe;	/* greatest depth of a CQ */
	__le32	max_srq_wr;
	__le32	max_sge;	/* per send or receive WQE */
	__le32	max_inline;	/* bytes, any QP type */
	__le32	max_gid;	/* entries of the GID table */
	__le32	max_eth_queues;	/* Ethernet SQs, and the same number of RQs */
	__le32	max_eq_depth;
	__le32	max_rd_atomic;	/* per QP, as responder and as requester */
	__le32	max_msg_size;	/* bytes */
	__le32	fw_version;	/* 31:24 major, 23:16 minor, 15:0 patch */
	__le32	max_xrcd;
	__le32	max_shapers;	/* 0: no QHCA_FEAT_ETH_SHAPER */
	__le64	dm_size;	/* bytes of device memory, all of QHCA_BAR_DM; 0: none */
	__u8	rsvd[8];
};

/* QUERY_PORT, MODIFY_PORT */
struct qhca_port {
	__u8	mac[6];		/* address filter of the Ethernet function; after a reset the permanent address */
	__u8	link;		/* RO: 1 up, 0 down */
	__u8	promisc;	/* 1: accept every frame */
	__u8	allmulti;	/* 1: accept every multicast frame */
	__u8	loopback;	/* 1: the Ethernet function receives the frames that it sends (QHCA_FEAT_ETH_LOOPBACK) */
	__u8	pause_rx;	/* 1: obey PAUSE frames (QHCA_FEAT_PAUSE) */
	__u8	rsvd0;
	__le32	mtu;		/* Ethernet payload bytes accepted, 68..9216; longer received frames are dropped */
	__le32	eth_rqn;	/* Ethernet RQ that gets frames not meant for the engine; QHCA_ETH_RQ_NONE: dropped */
	__le32	speed;		/* RO: Mb/s */
	__le32	max_mtu;	/* RO */
	__u8	perm_mac[6];	/* RO */
	__u8	rsvd1[2];
	__le32	eth_qpn;	/* RSS QP over Ethernet RQs that gets these frames in place of eth_rqn; QHCA_ETH_QP_NONE: none */
	__u8	rsvd2[24];
};

#define QHCA_ETH_RQ_NONE		0xffffffffU
#define QHCA_ETH_QP_NONE		0xffffffffU

#define QHCA_PORT_M_MAC			(1ULL << 0)
#define QHCA_PORT_M_PROMISC		(1ULL << 1)
#define QHCA_PORT_M_ALLMULTI		(1ULL << 2)
#define QHCA_PORT_M_MTU			(1ULL << 3)
#define QHCA_PORT_M_ETH_RQN		(1ULL << 4)
#define QHCA_PORT_M_ETH_QPN		(1ULL << 5)
#define QHCA_PORT_M_LOOPBACK		(1ULL << 6)
#define QHCA_PORT_M_PAUSE		(1ULL << 7)

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

/* ATTACH_MC, DETACH_MC */
struct qhca_mcg {
	__u8	mgid[16];	/* multicast GID; IPv4 as ::ffff:224.x.y.z .. 239.x.y.z */
	__u8	rsvd[48];
};

#define QHCA_MC_GROUPS_MAX		4096	/* groups with a member */
#define QHCA_MC_QPS_MAX			64	/* members of a group */
#define QHCA_QPN_MULTICAST		0xffffffU	/* destination of packets to a group */

/* ---------------------------------------------------------------- EQ ---- */

struct qhca_eqc {
	struct qhca_buf	buf;		/* 0x00 */
	__le32	eqn;		/* RO */
	__u8	shift;		/* log2 of the depth, 1..16 */
	__u8	flags;		/* QHCA_EQ_F_* */
	__le16	vector;		/* MSI-X vector, 0..VECTORS-1 */
	__le32	prod;		/* RO */
	__le32	cons;		/* RO: as last written to QHCA_DB_EQ, or read from the record */
	__u8	armed;		/* RO; 0 with QHCA_EQ_F_RECORD */
	__u8	rsvd[7];
	__le64	dbrec;		/* 0x38: with QHCA_EQ_F_RECORD, DMA address of a struct qhca_dbrec: consumer index; else 0 */
};

/*
 * QHCA_EQ_F_RECORD (QHCA_FEAT_EQ_RECORD): the consumer index is in a doorbell
 * record, and software need not ring after an interrupt.  When the device has
 * written entry p it executes a full barrier and reads the index: if that is p,
 * software had consumed all earlier entries, and the device raises the vector;
 * if not, software has not yet reached entry p.  Software consumes entries,
 * stores the index, executes a full barrier, and looks for an entry once more
 * before it returns.  No event is missed.
 *
 * If software returns although there is an entry, it rings QHCA_DB_EQ with
 * QHCA_DB_EQ_ARM: the device raises the vector at once.
 *
 * When the EQ is full, the device sets QHCA_DBREC_NOTIFY in the record, executes
 * a full barrier, and reads the index again; if the EQ is still full, the event
 * stays pending.  Software that reads NOTIFY, after the barrier that follows its
 * store, rings QHCA_DB_EQ.  The device clears NOTIFY when no event is pending.
 */
#define QHCA_EQ_F_RECORD		(1U << 0)

/*
 * Event queue entry.  The phase bit is 1 in the first pass around the ring;
 * software clears the ring before CREATE_EQ.  A full EQ loses nothing: events
 * stay pending in the device (one of each kind and object) until there is room.
 */
struct qhca_eqe {
	__u8	type;		/* QHCA_EV_* */
	__u8	syndrome;	/* QHCA_SYN_* for errors, else 0 */
	__u8	rsvd0[2];
	__le32	obj;		/* number of the CQ, QP, SRQ, Ethernet queue; 0 for port and device events */
	__le32	arg;		/* CQ event: producer index; port event: 1 up, 0 down */
	__u8	rsvd1[3];
	__u8	phase;		/* bit 0; written last, with the 8 bytes that contain it */
};

#define QHCA_EV_CQ			0x01	/* completion event of an armed CQ, on the CQ's EQ */
/* all others are delivered on the asynchronous EQ, which has number 0 */
#define QHCA_EV_CQ_ERR			0x10	/* overflow, or its memory could not be accessed */
#define QHCA_EV_QP_FATAL		0x20	/* local work queue catastrophic error */
#define QHCA_EV_QP_REQ_ERR		0x21	/* invalid request local work queue error */
#define QHCA_EV_QP_ACCESS_ERR		0x22	/* local access violation work queue error */
#define QHCA_EV_COMM_EST		0x23	/* first packet arrived while in RTR */
#define QHCA_EV_SQ_DRAINED		0x24
#define QHCA_EV_LAST_WQE		0x25	/* QP on an SRQ entered ERR and will take no more receive WQEs */
#define QHCA_EV_SRQ_ERR			0x30
#define QHCA_EV_SRQ_LIMIT		0x31
#define QHCA_EV_ETH_SQ_ERR		0x38	/* Ethernet SQ: its ring or its CQ failed; it sends nothing more: destroy it */
#define QHCA_EV_ETH_RQ_ERR		0x39	/* Ethernet RQ: its ring, doorbell record or CQ failed; it receives nothing more: destroy it */
#define QHCA_EV_PORT			0x40	/* link changed, see arg */
#define QHCA_EV_DEVICE_FATAL		0x50	/* see QHCA_REG_STATUS */
#define QHCA_EV_PAGE_FAULT		0x60	/* a QP waits for a page of an ODP MR: QHCA_CMD_QUERY_PAGE_FAULT */

#define QHCA_EQN_ASYNC			0	/* this EQ must be created first */

/* ---------------------------------------------------------------- CQ ---- */

struct qhca_cqc {
	struct qhca_buf	buf;		/* 0x00: depth * sizeof(struct qhca_cqe) */
	__le64	dbrec;		/* DMA address of a struct qhca_dbrec: consumer index */
	__le32	cqn;		/* RO */
	__le32	eqn;		/* EQ for its completion events */
	__le32	uar;		/* UAR whose doorbell page may arm it */
	__u8	shift;		/* log2 of the depth, 0..22 */
	__u8	flags;		/* 0 */
	__le16	mod_count;	/* event moderation: at most one event per this number of CQEs; 0 and 1: one for each */
	__le16	mod_usec;	/* event moderation: but no later than this, microseconds */
	__u8	state;		/* RO: QHCA_CQ_* */
	__u8	arm;		/* RO: QHCA_ARM_* */
	__le32	prod;		/* RO */
	__le32	cons;		/* RO: as last read from the doorbell record */
	__u8	rsvd[60];
};

#define QHCA_CQ_OK			0
#define QHCA_CQ_ERR			1	/* overflow or DMA error: takes no more CQEs */
#define QHCA_ARM_NONE			0
#define QHCA_ARM_ANY			1
#define QHCA_ARM_SOLICITED		2

#define QHCA_CQ_M_MODERATION		(1ULL << 0)	/* mod_count, mod_usec */
#define QHCA_CQ_M_RESIZE		(1ULL << 1)	/* buf, shift: see below */

/*
 * Resizing.  Software stops consuming CQEs, updates the doorbell record, and
 * gives each entry of the new buffer the phase that means "not yet written"
 * for the next counters: those from the consumer index on.  The device copies
 * the CQEs between the consumer and the producer index to the slots of their
 * counters and continues after them; counters and arming do not change.  After
 * success the old buffer belongs to software again; after failure the CQ is
 * unchanged.  The device refuses if there are more CQEs than the new depth, or
 * if the CQ is in QHCA_CQ_ERR.
 */

/*
 * Completion queue entry.  The phase bit is 1 in the first pass around the
 * ring; software clears the ring before CREATE_CQ.  The last 8 bytes are
 * written last, in one store.
 */
struct qhca_cqe {
	__le64	wr_id;		/* 0x00: from the WQE */
	__le32	qpn;		/* 0x08: local QPN or WQN; number of an Ethernet queue */
	__le32	wqe_index;	/* 0x0c: counter of the WQE in SQ or RQ; WQE number in an SRQ */
	__le32	byte_len;	/* 0x10: bytes received or read */
	__be32	imm;		/* 0x14: immediate data as on the wire; with QHCA_CQE_F_INV the invalidated key as __le32 */
	__le32	src_qpn;	/* 0x18: UD receive; with QHCA_CQE_F_SRQN: SRQN */
	__u8	opcode;		/* 0x1c: QHCA_CQE_OP_* */
	__u8	status;		/* 0x1d: QHCA_WC_* */
	__u8	syndrome;	/* 0x1e: QHCA_SYN_*: the reason of an error, else 0 */
	__u8	sl;		/* 0x1f: UD receive: priority from the VLAN tag */
	__le16	flags;		/* 0x20: QHCA_CQE_F_* */
	__le16	pkey_index;	/* 0x22: GSI receive */
	__le32	csum;		/* 0x24: see struct qhca_eth_cqe */
	__u8	smac[6];	/* 0x28: UD receive */
	__le16	vlan;		/* 0x2e: UD, Ethernet receive: TCI or QHCA_VLAN_NONE */
	__le64	timestamp;	/* 0x30: device clock, nanoseconds */
	__le16	num_wqe;	/* 0x38: see struct qhca_eth_cqe */
	__u8	net_type;	/* 0x3a: UD receive: QHCA_NET_* */
	__u8	rsvd[4];	/* 0x3b */
	__u8	phase;		/* 0x3f: bit 0 */
};

#define QHCA_CQE_OP_SEND		0x00	/* requester: all forms of SEND */
#define QHCA_CQE_OP_RDMA_WRITE		0x01
#define QHCA_CQE_OP_RDMA_READ		0x02
#define QHCA_CQE_OP_COMP_SWAP		0x03
#define QHCA_CQE_OP_FETCH_ADD		0x04
#define QHCA_CQE_OP_LOCAL_INV		0x05
#define QHCA_CQE_OP_REG_MR		0x06
#define QHCA_CQE_OP_BIND_MW		0x07
#define QHCA_CQE_OP_FLUSH		0x08
#define QHCA_CQE_OP_ATOMIC_WRITE	0x09
#define QHCA_CQE_OP_MASKED_COMP_SWAP	0x0a
#define QHCA_CQE_OP_MASKED_FETCH_ADD	0x0b
#define QHCA_CQE_OP_ETH_SEND		0x40
#define QHCA_CQE_OP_RECV		0x80
#define QHCA_CQE_OP_RECV_RDMA_IMM	0x81
#define QHCA_CQE_OP_RAW_RECV		0x82	/* frame received by a raw packet QP or a WQ */
#define QHCA_CQE_OP_TM_RECV		0x90	/* see struct qhca_tm_cqe for these */
#define QHCA_CQE_OP_TM_NO_TAG		0x91
#define QHCA_CQE_OP_TM_ADD		0x94
#define QHCA_CQE_OP_TM_DEL		0x95
#define QHCA_CQE_OP_TM_SYNC		0x96
#define QHCA_CQE_OP_ETH_RECV		0xc0

#define QHCA_CQE_F_GRH			(1U << 0)	/* the first 40 bytes hold a GRH (or the IPv4 header in its last 20) */
#define QHCA_CQE_F_IMM			(1U << 1)
#define QHCA_CQE_F_INV			(1U << 2)	/* SEND with invalidate: imm holds the key */
#define QHCA_CQE_F_SOLICITED		(1U << 3)
#define QHCA_CQE_F_SMAC			(1U << 4)
#define QHCA_CQE_F_VLAN			(1U << 5)	/* vlan is valid; Ethernet: the tag was removed from the frame */
#define QHCA_CQE_F_L3_OK		(1U << 6)	/* Ethernet: IPv4 header checksum correct (also set for IPv6) */
#define QHCA_CQE_F_L4_OK		(1U << 7)	/* Ethernet: TCP or UDP checksum correct */
#define QHCA_CQE_F_SRQ			(1U << 8)	/* the receive WQE came from an SRQ */
#define QHCA_CQE_F_SRQN			(1U << 9)	/* src_qpn is the SRQN: the SRQ has a CQ of its own */
#define QHCA_CQE_F_TM_SYNC_REQ		(1U << 10)	/* new tags stay inactive until software reports the same count of unexpected messages */
#define QHCA_CQE_F_TM_MATCH		(1U << 11)	/* TM_RECV: a tag matched; wqe_index holds its handle */
#define QHCA_CQE_F_TM_DATA_VALID	(1U << 12)	/* TM_RECV: the data is complete, the tag's entry is free */
#define QHCA_CQE_F_CWR			(1U << 13)	/* merged packet: all of its frames have CWR, not only the first */
#define QHCA_CQE_F_SAME_ID		(1U << 14)	/* merged packet: all frames have the same IPv4 identification; in a tunnel: the outer one */
#define QHCA_CQE_F_SAME_INNER_ID	(1U << 15)	/* merged packet in a tunnel: all frames have the same inner IPv4 identification */

/* CQEs of Ethernet queues: struct qhca_cqe, read as follows. */
struct qhca_eth_cqe {
	__u8	rsvd0[8];	/* 0x00 */
	__le32	num;		/* 0x08: number of the Ethernet queue */
	__le32	wqe_index;	/* 0x0c: counter of the WQE; receive: of the first in the ring */
	__le32	byte_len;	/* 0x10: receive: bytes stored */
	__le32	rss_hash;	/* 0x14: receive: see hash_type */
	__le32	flow_tag;	/* 0x18: receive: tag of the flow that steered the frame here; else 0 */
	__u8	opcode;		/* 0x1c: QHCA_CQE_OP_ETH_* */
	__u8	status;		/* 0x1d: QHCA_WC_* */
	__u8	syndrome;	/* 0x1e: QHCA_SYN_* */
	__u8	hash_type;	/* 0x1f: receive: QHCA_HASH_TYPE_* */
	__le16	flags;		/* 0x20: QHCA_CQE_F_* */
	__le16	header_len;	/* 0x22: receive: bytes in the header ring of a split frame; 0: not split */
	__le32	csum;		/* 0x24: receive: 15:0 ones' complement sum of the stored bytes from byte 14 on */
	__le32	data_index;	/* 0x28: split frame: counter of the first WQE in the data ring */
	__le16	gso_size;	/* 0x2c: super-frame, merged packet: payload bytes of each of its frames; else 0 */
	__le16	vlan;		/* 0x2e: receive: TCI or QHCA_VLAN_NONE */
	__le64	timestamp;	/* 0x30: device clock, nanoseconds: when the frame arrived, or was sent */
	__le16	num_wqe;	/* 0x38: receive: buffers used in the ring */
	__u8	num_data;	/* 0x3a: split frame: buffers used in the data ring */
	__u8	gso_segs;	/* 0x3b: super-frame, merged packet: frames it represents; else 0 */
	__u8	rsvd2[3];
	__u8	phase;		/* 0x3f: bit 0 */
};

#define QHCA_HASH_TYPE_NONE		0	/* rss_hash is 0 */
#define QHCA_HASH_TYPE_L3		1	/* addresses only */
#define QHCA_HASH_TYPE_L4		2	/* addresses and ports */

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
#define QHCA_WC_TM_ERR			22	/* a tag operation failed: see the syndrome */
#define QHCA_WC_TM_RNDV_INCOMPLETE	23	/* the tag's buffer is too small for a rendezvous and holds only the headers */

/* syndrome: the detailed reason, in addition to a status or an event */
#define QHCA_SYN_NONE			0x00
#define QHCA_SYN_KEY_INVALID		0x01	/* no such MR, or the key byte differs */
#define QHCA_SYN_KEY_PD			0x02	/* MR of another PD */
#define QHCA_SYN_KEY_BOUNDS		0x03	/* outside the MR */
#define QHCA_SYN_KEY_ACCESS		0x04	/* the MR does not allow it */
#define QHCA_SYN_QP_ACCESS		0x05	/* the QP does not allow it */
#define QHCA_SYN_KEY_PRIVILEGE		0x06	/* reserved key on a QP that is not privileged */
#define QHCA_SYN_PAGE_FAULT		0x07	/* ODP: software could not provide the page */
#define QHCA_SYN_MW_BOUND		0x08	/* the MR has windows, or the type 2 window is bound */
#define QHCA_SYN_MW_QP			0x09	/* type 2 window of another QP */
#define QHCA_SYN_TABLE_INVALID		0x10	/* buffer-table entry not valid or of the wrong kind */
#define QHCA_SYN_TABLE_DMA		0x11	/* a table could not be read */
#define QHCA_SYN_DATA_DMA		0x12	/* data could not be read or written */
#define QHCA_SYN_WQE_DMA		0x13	/* a WQE or doorbell record could not be read */
#define QHCA_SYN_WQE_OPCODE		0x20	/* opcode unknown or not for this QP type */
#define QHCA_SYN_WQE_SGE		0x21	/* more SGEs or inline bytes than fit the stride */
#define QHCA_SYN_WQE_LENGTH		0x22	/* message too long: UD: over the MTU; else over max_msg_size */
#define QHCA_SYN_WQE_FLAGS		0x23	/* flags not allowed with the opcode */
#define QHCA_SYN_WQE_AV			0x24	/* address vector names no valid GID index */
#define QHCA_SYN_DB_INDEX		0x30	/* producer index beyond the ring */
#define QHCA_SYN_RQ_LENGTH		0x31	/* message longer than the receive WQE */
#define QHCA_SYN_TM_HANDLE		0x32	/* tag operation: no such entry, or ADD to one in use */
#define QHCA_SYN_PSN_SEQ		0x40	/* NAK: sequence error */
#define QHCA_SYN_TIMEOUT		0x41	/* no acknowledgment in time, retries exhausted */
#define QHCA_SYN_RNR			0x42	/* receiver not ready, retries exhausted */
#define QHCA_SYN_NAK_INV_REQ		0x43
#define QHCA_SYN_NAK_ACCESS		0x44
#define QHCA_SYN_NAK_OP			0x45
#define QHCA_SYN_BAD_PACKET		0x46	/* invalid opcode sequence, length or header */
#define QHCA_SYN_RD_ATOMIC		0x47	/* more outstanding READs than max_dest_rd_atomic */
#define QHCA_SYN_XRC_SRQ		0x48	/* a request names no SRQ of the QP's XRC domain */
#define QHCA_SYN_CQ_OVERFLOW		0x50
#define QHCA_SYN_CQ_DMA			0x51
#define QHCA_SYN_FLUSH			0x60	/* the QP was in, or went to, the error state */

/*
 * In the CQE of a send WQE with status LOC_QP_OP_ERR or WR_FLUSH_ERR: the WQE
 * could not be read, so wr_id is 0 and opcode is meaningless.  Software finds
 * both in its own ring by wqe_index.
 */
#define QHCA_SYN_IS_WQE_LOST(syn)	((syn) == QHCA_SYN_TABLE_INVALID || \
					 (syn) == QHCA_SYN_TABLE_DMA || \
					 (syn) == QHCA_SYN_WQE_DMA)

/* ---------------------------------------------------------------- MR ---- */

/* access flags of MRs and QPs; the bits follow the verbs' */
#define QHCA_ACCESS_LOCAL_WRITE		(1U << 0)
#define QHCA_ACCESS_REMOTE_WRITE	(1U << 1)
#define QHCA_ACCESS_REMOTE_READ		(1U << 2)
#define QHCA_ACCESS_REMOTE_ATOMIC	(1U << 3)
#define QHCA_ACCESS_MW_BIND		(1U << 4)	/* windows may be bound to the MR */
#define QHCA_ACCESS_FLUSH_GLOBAL	(1U << 8)	/* FLUSH to global visibility */
#define QHCA_ACCESS_FLUSH_PERSISTENT	(1U << 9)	/* FLUSH to persistence */
#define QHCA_ACCESS_MASK		0x0000031fU

struct qhca_mpt {
	struct qhca_buf	buf;		/* 0x00: unused with QHCA_MR_F_PHYS */
	__le64	iova;		/* 0x20: address of byte 0 in SGEs and RETHs */
	__le64	len;		/* 0x28: bytes; must equal buf.len */
	__le32	key;		/* 0x30: in: key byte in 7:0; out: whole key */
	__le32	pd;		/* 0x34 */
	__le32	access;		/* 0x38: QHCA_ACCESS_* */
	__u8	flags;		/* 0x3c: QHCA_MR_F_* */
	__u8	state;		/* 0x3d: RO: QHCA_MR_* */
	__u8	rsvd0[2];
	__le32	max_entries;	/* 0x40: FAST_REG: greatest number of pages, in a FLAT table at buf.addr */
	__le32	mw_mr_key;	/* 0x44: RO: bound window: key of its MR */
	__le32	mw_qpn;		/* 0x48: RO: bound window of type 2: its QP */
	__u8	rsvd1[52];
};

#define QHCA_MR_F_PHYS			(1U << 0)	/* address = DMA address, iova 0, len 2^64 - 1; kernel only */
#define QHCA_MR_F_FAST_REG		(1U << 1)	/* created in state FREE; QHCA_WQE_REG_MR fills it */
#define QHCA_MR_F_MW1			(1U << 2)	/* memory window of type 1; see QHCA_WQE_BIND_MW */
#define QHCA_MR_F_MW2			(1U << 3)	/* memory window of type 2B */
#define QHCA_MR_F_DM			(1U << 4)	/* device memory: buf is DIRECT, its addr an offset in QHCA_BAR_DM */

/*
 * On-demand paging.  The table of an ODP MR is FLAT or TREE, and its entries,
 * including those of tables, may lack QHCA_BTE_VALID.  An access through such
 * an entry, or a write through a page entry without QHCA_BTE_WRITE, is a page
 * fault: the QP suspends that operation, see struct qhca_page_fault; other QPs
 * are not affected.  Access rights are checked first, as for any other MR.
 *
 * Software may at any time make an entry valid or add QHCA_BTE_WRITE.  Before
 * it takes a page or table away it clears the entry, stores to
 * QHCA_DB_MR_SYNC and reads any register.  When that read has returned, the
 * device has no access in progress that used the old entry, and caches nothing
 * of it.
 */
#define QHCA_MR_F_ODP			(1U << 5)

/*
 * A page fault.  A QP has four sides, each of which can wait for one page fault.
 * QHCA_EV_PAGE_FAULT reports a new one.
 */
struct qhca_page_fault {
	__le64	addr;		/* 0x00: first byte that could not be accessed, as an address of the MR */
	__le64	len;		/* 0x08: bytes from there that the operation will access, inside the MR; at most 1 MiB */
	__le32	key;		/* 0x10: whole key of the MR */
	__le32	token;		/* 0x14: software passes it to QHCA_CMD_RESUME_PAGE_FAULT */
	__u8	flags;		/* 0x18: QHCA_PAGE_FAULT_*; 0: this side does not wait */
	__u8	rsvd[7];
};

#define QHCA_PAGE_FAULT_VALID	(1U << 0)
#define QHCA_PAGE_FAULT_WRITE	(1U << 1)	/* the page will be written */

/* index in the array of QUERY_PAGE_FAULT */
#define QHCA_PAGE_FAULT_SEND		0	/* requester: data to send; no request leaves */
#define QHCA_PAGE_FAULT_LAND		1	/* requester: READ or atomic response to store; later responses are dropped and requested again */
#define QHCA_PAGE_FAULT_RECV		2	/* responder: request to execute; later requests are dropped, RC: NAKed (sequence error) at the end */
#define QHCA_PAGE_FAULT_READ		3	/* responder: data of READ responses; later responses wait */
#define QHCA_PAGE_FAULT_SIDES	4

/*
 * RESUME_PAGE_FAULT: the side continues.  With FAILED, the same fault again is
 * an error (QHCA_SYN_PAGE_FAULT), as if the MR did not allow the access.
 * QHCA_ST_BAD_STATE: the side does not wait with this token.
 */
#define QHCA_RESUME_SIDE_MASK		0x00000000000000ffULL
#define QHCA_RESUME_FAILED		(1ULL << 8)
#define QHCA_RESUME_TOKEN_SHIFT		32

#define QHCA_MR_FREE			0
#define QHCA_MR_VALID			1

/*
 * MODIFY_MR: replaces what the mask selects, atomically and under traffic; the
 * key does not change.  After a failure the MR is unchanged.  QHCA_ST_BUSY:
 * windows are bound to it; QHCA_ST_BAD_STATE: not allowed for MRs of this kind
 * (PHYS, FAST_REG, windows; TRANS: also DM and ODP).
 */
#define QHCA_MR_M_PD			(1ULL << 0)	/* pd */
#define QHCA_MR_M_ACCESS		(1ULL << 1)	/* access */
#define QHCA_MR_M_TRANS			(1ULL << 2)	/* buf, iova, len */

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
#define QHCA_QPT_XRC_INI		4	/* XRC initiator: sends only; no RQ, no recv_cqn */
#define QHCA_QPT_XRC_TGT		5	/* XRC target: receives into SRQs of its XRC domain; no queue, no CQ, no PD */
#define QHCA_QPT_RAW			6	/* raw packet: Ethernet frames; receives what flows steer to it */
#define QHCA_QPT_RSS			7	/* spreads frames over the queues of an indirection table; no queue, no CQ, always in state RTR */

#define QHCA_QPS_RESET			0
#define QHCA_QPS_INIT			1
#define QHCA_QPS_RTR			2
#define QHCA_QPS_RTS			3
#define QHCA_QPS_SQD			4
#define QHCA_QPS_SQE			5
#define QHCA_QPS_ERR			6

/*
 * Send WQEs are executed in RTS only; in SQD they wait, in SQE and ERR they are
 * flushed.  A doorbell in another state is counted and ignored.  The transition
 * to RESET sets all counters of the QP to 0 and invalidates its CQEs: software
 * removes them from the CQ.
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
	__le32	uar;		/* 0x00c: UAR whose doorbell page may ring it */
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
	__le64	cookie;		/* 0x068: opaque to the device, returned by QUERY_QP */
	/* set by MODIFY_QP */
	struct qhca_av	av;		/* 0x070 */
	__le32	dest_qpn;	/* 0x0a0 */
	__le32	qkey;		/* 0x0a4: UD */
	__le32	sq_psn;		/* 0x0a8: first PSN to send, 23:0 */
	__le32	rq_psn;		/* 0x0ac: first PSN expected, 23:0 */
	__le32	access;		/* 0x0b0: QHCA_ACCESS_*, remote bits */
	__le16	pkey_index;	/* 0x0b4: 0 (the default partition key 0xffff) */
	__u8	path_mtu;	/* 0x0b6: 1..5 */
	__u8	timeout;	/* 0x0b7: local ACK timeout: 4.096 us * 2^n, 0..31; 0: none */
	__u8	retry_cnt;	/* 0x0b8: 0..7 */
	__u8	rnr_retry;	/* 0x0b9: 0..7; 7: unlimited */
	__u8	min_rnr_timer;	/* 0x0ba: code 0..31 sent in RNR NAKs */
	__u8	max_rd_atomic;	/* 0x0bb: outstanding READs and atomics as requester */
	__u8	max_dest_rd_atomic;	/* 0x0bc: as responder */
	__u8	en_sqd_event;	/* 0x0bd: with a transition to SQD: 1 requests QHCA_EV_SQ_DRAINED */
	__u8	rsvd1[2];
	/* read-only: progress of the queues and of the transport */
	__le32	sq_head;	/* 0x0c0: producer index last rung */
	__le32	sq_next;	/* 0x0c4: next WQE to be sent first */
	__le32	sq_tail;	/* 0x0c8: oldest WQE not completed */
	__le32	rq_head;	/* 0x0cc: producer index last read from the record */
	__le32	rq_tail;	/* 0x0d0: next receive WQE to take */
	__le32	snd_psn;	/* 0x0d4: next PSN to send */
	__le32	una_psn;	/* 0x0d8: oldest PSN not acknowledged */
	__le32	exp_psn;	/* 0x0dc: responder: next PSN expected */
	__le32	msn;		/* 0x0e0: responder: message sequence number */
	__le32	credits;	/* 0x0e4: SQ: last AETH credit code; 31: none received */
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
	/* set by CREATE_QP */
	__le32	xrcd;		/* 0x148: XRC_TGT: XRC domain; else 0 */
	__le32	rqtn;		/* 0x14c: RSS: indirection table */
	__le32	rx_hash_fields;	/* 0x150: RSS: QHCA_HASH_* */
	__u8	rx_hash_func;	/* 0x154: RSS: QHCA_HASH_TOEPLITZ */
	__u8	rsvd3[3];
	__u8	rx_hash_key[40];	/* 0x158: RSS */
	__le64	sq_dbrec;	/* 0x180: with QHCA_QP_F_SQ_RECORD, DMA address of a struct qhca_dbrec: SQ producer index; else 0 */
	__u8	rsvd4[120];	/* 0x188 */
};

#define QHCA_QP_F_SRQ			(1U << 0)	/* receives come from srqn */
#define QHCA_QP_F_PRIVILEGED		(1U << 1)	/* may use QHCA_LKEY_RESERVED; kernel QPs only */
#define QHCA_QP_F_BLOCK_MC_LOOP		(1U << 2)	/* UD: it does not receive what it sends to its own groups */
#define QHCA_QP_F_STRIP_VLAN		(1U << 3)	/* RAW: the VLAN tag of a received frame goes to the CQE */
#define QHCA_QP_F_SQ_RECORD		(1U << 4)	/* RC and XRC_INI with an SQ: its producer index is in sq_dbrec, see below */

/*
 * QHCA_QP_F_SQ_RECORD (QHCA_FEAT_SQ_RECORD): posting a send causes no exit while
 * the device is processing the queue.  Software that posts stores the producer
 * index in the record, executes a full memory barrier, reads flags, and rings
 * QHCA_DB_SQ if QHCA_DBREC_NOTIFY is set; the index in that doorbell is ignored.
 * Doorbells may therefore be rung in any order, and outside of the queue's lock.
 *
 * The device sets NOTIFY when the QP goes from RESET to INIT, clears it while
 * something makes it read the index again (WQEs that wait to be sent, packets
 * about to be acknowledged), sets it when that ends or the QP enters ERR, and
 * then reads the index once more.
 */

#define QHCA_REQ_IDLE			0
#define QHCA_REQ_ACTIVE			1	/* has something to send */
#define QHCA_REQ_WAIT_ACK		2
#define QHCA_REQ_WAIT_RNR		3
#define QHCA_REQ_WAIT_FENCE		4
#define QHCA_REQ_WAIT_RD		5	/* max_rd_atomic reached */
#define QHCA_REQ_WAIT_PAGE		6	/* QHCA_PAGE_FAULT_SEND or QHCA_PAGE_FAULT_LAND */
#define QHCA_REQ_WAIT_CREDITS		7	/* the peer has no receive */
#define QHCA_RSP_IDLE			0
#define QHCA_RSP_MESSAGE		1	/* in the middle of a message */
#define QHCA_RSP_READ			2	/* sending READ responses */
#define QHCA_RSP_NAKED			3	/* has sent a NAK; waits for the PSN that it requested */
#define QHCA_RSP_WAIT_PAGE		4	/* QHCA_PAGE_FAULT_RECV or QHCA_PAGE_FAULT_READ */

/* MODIFY_QP mask.  STATE requires the attributes that the transition needs. */
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
#define QHCA_QP_M_RX_HASH		(1ULL << 16)	/* RSS: rx_hash_fields, rx_hash_func, rx_hash_key */
#define QHCA_QP_M_RQTN			(1ULL << 17)	/* RSS: rqtn: another table of the same kind */
#define QHCA_QP_M_ALL			0x000000000003ffffULL

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
	__u8	flags;		/* 0x56: QHCA_SRQ_F_* */
	__u8	state;		/* 0x57: RO: QHCA_SRQ_* */
	__le32	limit;		/* 0x58: QHCA_EV_SRQ_LIMIT when fewer WQEs are left; 0: disarmed; cleared by the event */
	__le32	head;		/* 0x5c: RO: producer index last read */
	__le32	tail;		/* 0x60: RO: next to take */
	__le32	xrcd;		/* 0x64: with QHCA_SRQ_F_XRC: its XRC domain; else 0 */
	__le32	cqn;		/* 0x68: with QHCA_SRQ_F_XRC and _TM: CQ of its receives; else 0 */
	/* QHCA_SRQ_F_TM; else 0 */
	__u8	ops_shift;	/* 0x6c: log2 of the depth of the operation ring, 0..15 */
	__u8	ops_stride;	/* 0x6d: log2 of bytes of an operation, 6..9 */
	__u8	rsvd0[2];
	__le32	max_tags;	/* 0x70: entries of the tag list, 1..1024 */
	__le32	ops_head;	/* 0x74: RO: producer index last rung */
	__le32	ops_tail;	/* 0x78: RO: next operation to execute */
	__le32	tags;		/* 0x7c: RO: entries in the list now */
	struct qhca_buf	ops;	/* 0x80: operation ring: depth << ops_stride */
	__le32	unexp_seen;	/* 0xa0: RO: unexpected messages that the device has counted */
	__le32	unexp_told;	/* 0xa4: RO: the count that software last reported */
	__u8	rsvd1[88];
};

#define QHCA_SRQ_F_XRC			(1U << 0)	/* used by XRC_TGT QPs of xrcd; no QP names it as its SRQ */
#define QHCA_SRQ_F_TM			(1U << 1)	/* tag matching */

#define QHCA_SRQ_OK			0
#define QHCA_SRQ_ERR			1

#define QHCA_SRQ_M_LIMIT		(1ULL << 0)	/* limit */
#define QHCA_SRQ_M_RESIZE		(1ULL << 1)	/* buf, idx, shift: see below */

/*
 * Resizing: an SRQ can only grow.  Software copies its WQEs to the same
 * numbers in the new array and, for each counter that may be posted, the
 * entry of the index ring to the counter's slot in the new ring.  It posts
 * nothing until the command is complete.  After success the old memory belongs
 * to software again; after failure the SRQ is unchanged.
 */

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
	__le64	arg0;		/* 0x10: *_COMP_SWAP: compare; *_FETCH_ADD: add; REG_MR: iova; BIND_MW: address in the MR; FLUSH: length */
	__le64	arg1;		/* 0x18: *_COMP_SWAP: swap; REG_MR, BIND_MW: length; FLUSH: 3:0 QHCA_FLUSH_T_*, 5:4 QHCA_FLUSH_L_* */
};

struct qhca_wqe_remote {
	__le64	addr;		/* remote address; REG_MR: DMA address of the FLAT page table; BIND_MW: key of the MR 31:0 */
	__le32	rkey;		/* remote key; REG_MR, BIND_MW: the new key */
	__le32	arg;		/* REG_MR: access flags 7:0, page_shift 15:8, pages 31:16; BIND_MW: access flags, QHCA_BIND_* */
};

struct qhca_sq_wqe {
	struct qhca_wqe_ctrl	ctrl;
	struct qhca_wqe_remote	remote;	/* 0x20: zero for SEND forms */
	/* 0x30: struct qhca_sge[] or inline bytes */
};

/* Send WQE of XRC_INI: the same with the number of the peer's SRQ. */
struct qhca_xrc_wqe {
	struct qhca_wqe_ctrl	ctrl;
	struct qhca_wqe_remote	remote;	/* 0x20 */
	__le32	srqn;		/* 0x30: SRQN at the peer, 23:0 */
	__u8	rsvd[12];
	/* 0x40: struct qhca_sge[] or inline bytes */
};

/* Send WQE of RC with opcode MASKED_COMP_SWAP or MASKED_FETCH_ADD. */
struct qhca_masked_wqe {
	struct qhca_wqe_ctrl	ctrl;
	struct qhca_wqe_remote	remote;	/* 0x20 */
	__le64	mask;		/* 0x30: COMP_SWAP: bits compared; FETCH_ADD: highest bit of each field; no carry goes beyond it */
	__le64	swap_mask;	/* 0x38: COMP_SWAP: bits replaced */
	/* 0x40: struct qhca_sge[] */
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
#define QHCA_WQE_ATOMIC_WRITE		0x0a
#define QHCA_WQE_RDMA_READ		0x10
#define QHCA_WQE_COMP_SWAP		0x18
#define QHCA_WQE_FETCH_ADD		0x19
#define QHCA_WQE_MASKED_COMP_SWAP	0x1a
#define QHCA_WQE_MASKED_FETCH_ADD	0x1b
#define QHCA_WQE_LOCAL_INV		0x20
#define QHCA_WQE_REG_MR			0x21
#define QHCA_WQE_BIND_MW		0x22
#define QHCA_WQE_FLUSH			0x30
#define QHCA_WQE_ETH_SEND		0x40
#define QHCA_WQE_RAW_SEND		0x41	/* a frame, on a raw packet QP */

#define QHCA_WQE_F_SIGNALED		(1U << 0)
#define QHCA_WQE_F_SOLICITED		(1U << 1)
#define QHCA_WQE_F_FENCE		(1U << 2)	/* wait until earlier READs and atomics are done */
#define QHCA_WQE_F_INLINE		(1U << 3)

/*
 * BIND_MW (RC, UC, XRC_INI): the window with the new key's index takes this key
 * and grants access (REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC) to a range of an
 * MR: by the MR's addresses, or with ZERO_BASED (type 2 only) from 0 on.  QP,
 * window and MR must be of the same PD; the MR needs MW_BIND, and LOCAL_WRITE
 * if the peer may write.  The MR's remote flags do not matter.
 *
 * Type 1: usable through every QP of the PD.  A new bind replaces the previous
 * one; with length 0 the window is unbound.
 * Type 2B: usable only through the QP that bound it.  A bound window must be
 * invalidated before it is bound again: by LOCAL_INV on that QP or SEND_INV
 * from its peer; length 0 is not allowed.  Destroying the QP frees it.
 *
 * An MR with bound windows cannot be destroyed, modified or invalidated.
 */
#define QHCA_BIND_ZERO_BASED		(1U << 5)
#define QHCA_BIND_ACCESS		(QHCA_ACCESS_REMOTE_WRITE | \
					 QHCA_ACCESS_REMOTE_READ | \
					 QHCA_ACCESS_REMOTE_ATOMIC)

/* arg1 of FLUSH; the values are those of the FETH */
#define QHCA_FLUSH_T_GLOBAL		(1U << 0)	/* make visible to all readers */
#define QHCA_FLUSH_T_PERSISTENT		(1U << 1)	/* make persistent */
#define QHCA_FLUSH_T_MASK		0x0000000fU
#define QHCA_FLUSH_L_RANGE		0	/* the given bytes */
#define QHCA_FLUSH_L_MR			1	/* the whole memory region */
#define QHCA_FLUSH_L_SHIFT		4

/* Receive WQE of RQ and SRQ: this header, then SGEs. */
struct qhca_rq_wqe {
	__le64	wr_id;
	__le16	num_sge;
	__u8	rsvd[6];
	/* 0x10: struct qhca_sge[] */
};

/* -------------------------------------------------------- tag matching --- */
/*
 * An SRQ with QHCA_SRQ_F_TM has a list of tags, each with a buffer.  RC QPs
 * on it have no SQ (sq_stride 0): the device uses their send side for
 * rendezvous.  A SEND that arrives begins with a struct qhca_tmh:
 *
 *  EAGER   data follows.  If (tag & mask) of the header equals an active
 *          entry's tag - the oldest such entry - the data goes to the entry's
 *          buffer, without the header.
 *  RNDV    struct qhca_rvh follows and gives the location of the data; at most
 *          QHCA_TM_MAX_RNDV bytes in total.  On a match the device READs it into
 *          the entry's buffer, then SENDs both headers back with opcode FIN.
 *  others  and messages that are too short are not matched.
 *
 * A message that does not match goes, including its headers, to a receive WQE of
 * the SRQ, as an unexpected message, and is counted.  From then on new entries
 * are inactive, because software may match the message to them; when software
 * reports the same count, all entries become active.
 *
 * Entries are numbered 0 .. max_tags - 1 by software.  A handle has the
 * number in its bits 15:0 and a value chosen by software in 31:16; TAG_DEL
 * must give the whole handle.
 */
struct qhca_tmh {		/* as on the wire */
	__u8	opcode;		/* QHCA_TMH_* */
	__u8	rsvd[3];
	__be32	app_ctx;	/* opaque to the device */
	__be64	tag;
};

struct qhca_rvh {		/* as on the wire */
	__be64	va;
	__be32	rkey;
	__be32	len;
};

#define QHCA_TMH_NO_TAG			0
#define QHCA_TMH_RNDV			1
#define QHCA_TMH_FIN			2
#define QHCA_TMH_EAGER			3

#define QHCA_TM_MAX_RNDV		64	/* bytes of a rendezvous request */
#define QHCA_TM_MAX_TAGS		1024	/* entries of a list */
#define QHCA_TM_MAX_SGE			4	/* SGEs of a tag's buffer */

/* An operation in the ring: this header, then SGEs. */
struct qhca_tm_wqe {
	__u8	opcode;		/* 0x00: QHCA_WQE_TAG_* */
	__u8	flags;		/* 0x01: QHCA_WQE_F_SIGNALED, QHCA_WQE_F_TM_SYNC */
	__le16	num_sge;	/* 0x02: TAG_ADD */
	__le32	unexp;		/* 0x04: TM_SYNC: unexpected messages software has handled */
	__le64	wr_id;		/* 0x08: of the operation's CQE */
	__le64	recv_wr_id;	/* 0x10: TAG_ADD: of the CQEs of the message */
	__le64	tag;		/* 0x18: TAG_ADD */
	__le64	mask;		/* 0x20: TAG_ADD */
	__le32	handle;		/* 0x28: TAG_ADD, TAG_DEL */
	__le32	result;		/* 0x2c: written by the device, with handle in one store: QHCA_TM_DONE | QHCA_SYN_* */
	/* 0x30: struct qhca_sge[] */
};

#define QHCA_WQE_TAG_ADD		0x60
#define QHCA_WQE_TAG_DEL		0x61
#define QHCA_WQE_TAG_SYNC		0x62

#define QHCA_WQE_F_TM_SYNC		(1U << 4)	/* unexp is valid; always set in TAG_SYNC */

#define QHCA_TM_DONE			0x80000000U	/* executed: the slot is free again */

/* CQEs of SRQs with QHCA_SRQ_F_TM: struct qhca_cqe, read as follows. */
struct qhca_tm_cqe {
	__le64	wr_id;		/* 0x00 */
	__le32	qpn;		/* 0x08: QP that received the message; 0 for operations */
	__le32	wqe_index;	/* 0x0c: TM_RECV with MATCH or DATA_VALID: handle; operations: counter; else WQE number in the SRQ */
	__le32	byte_len;	/* 0x10: bytes stored */
	__be32	imm;		/* 0x14 */
	__le32	srqn;		/* 0x18 */
	__u8	opcode;		/* 0x1c: QHCA_CQE_OP_* */
	__u8	status;		/* 0x1d */
	__u8	syndrome;	/* 0x1e */
	__u8	rsvd0;
	__le16	flags;		/* 0x20: QHCA_CQE_F_* */
	__u8	rsvd1[2];
	__be32	app_ctx;	/* 0x24: MATCH: from the header */
	__be64	tag;		/* 0x28: MATCH: from the header */
	__le64	timestamp;	/* 0x30 */
	__u8	rsvd2[7];
	__u8	phase;		/* 0x3f */
};

/* ----------------------------------------------------------- Ethernet --- */
/*
 * Ethernet queues have buffers, CQs and counters like QPs, but only the kernel
 * (UAR 0) can use them; their addresses are DMA addresses.
 */
struct qhca_eth_qc {
	struct qhca_buf	buf;		/* 0x00 */
	__le64	dbrec;		/* 0x20: RQ: producer index; SQ: 0 */
	__le32	cqn;		/* 0x28 */
	__u8	shift;		/* 0x2c: log2 of the depth, 0..15 */
	__u8	stride;		/* 0x2d: log2 of WQE bytes: SQ 6..9, RQ 4 */
	__u8	flags;		/* 0x2e: RQ: QHCA_ETH_Q_F_* */
	__u8	state;		/* 0x2f: QHCA_WQS_*: RO, except with QHCA_ETH_RQ_M_STATE; RDY after create */
	/* RQ with QHCA_ETH_Q_F_HDS; else 0 */
	struct qhca_buf	data_buf;	/* 0x30: ring of data buffers: depth << 4 */
	__le64	data_dbrec;	/* 0x50: its producer index */
	__le32	hds_thresh;	/* 0x58: frames longer than this are split, bytes */
	__u8	data_shift;	/* 0x5c: log2 of its depth, 0..15 */
	__u8	rsvd0[3];
	/* read-only */
	__le32	head;		/* 0x60: producer index last read or rung */
	__le32	tail;		/* 0x64: next WQE to take */
	__le32	data_head;	/* 0x68 */
	__le32	data_tail;	/* 0x6c */
	__le64	dropped;	/* 0x70: RQ: its frames that arrived when it had no buffer or was not in RDY */
	__u8	syndrome;	/* 0x78: QHCA_SYN_* that brought it to ERR */
	__u8	waits;		/* 0x79: SQ: 1: it has frames, but a shaper delays them */
	__u8	rsvd1[2];
	/* read-write */
	__le32	shaper;		/* 0x7c: SQ: the shaper that it is a member of, or QHCA_SHAPER_NONE; RQ: 0 */
};

/*
 * Header/data split.  The headers of a TCP or UDP frame, up to the exact end of
 * the TCP or UDP header, go to a buffer of the ring, the payload to buffers of
 * the data ring: it begins in a new one and fills all but the last.
 * All other frames (other protocols, fragments, frames without payload or not
 * longer than hds_thresh) go to the ring as a whole.
 */
#define QHCA_ETH_Q_F_HDS		(1U << 0)

/*
 * Super-frames: adapters that know of each other send the frames of a large
 * send as one.  An RQ with this flag receives it whole; gso_size and gso_segs
 * describe the frames that it represents.  Other RQs receive these frames: the
 * device segments it.
 */
#define QHCA_ETH_Q_F_SUPER		(1U << 1)

/*
 * Merge consecutive frames of a TCP flow: the RQ receives them as one packet,
 * described like a super-frame by gso_size and gso_segs.  Segmenting it as a
 * large send restores the same frames.
 */
#define QHCA_ETH_Q_F_GRO		(1U << 2)

/*
 * In a frame of minimum length, the bytes after the IP packet are Ethernet
 * padding: an RQ with this flag receives the frame without them.
 */
#define QHCA_ETH_Q_F_UNPAD		(1U << 3)

/*
 * MODIFY_ETH_RQ.  RDY to RESET: after the completion no DMA and no CQE for this
 * queue; its counters are 0, its number stays in the tables that contain it, and
 * frames for it are dropped.  RINGS requires the state RESET and can be combined
 * with the transition from RESET to RDY.
 */
#define QHCA_ETH_RQ_M_STATE		(1ULL << 0)	/* state: to RESET from any state, to RDY from RESET */
#define QHCA_ETH_RQ_M_RINGS		(1ULL << 1)	/* buf, dbrec, cqn, shift, flags, data_buf, data_dbrec, data_shift */
#define QHCA_ETH_RQ_M_HDS_THRESH	(1ULL << 2)	/* hds_thresh */

/* Ethernet send WQE: this header, then num_sge struct qhca_eth_seg */
struct qhca_eth_wqe {
	__u8	opcode;		/* QHCA_WQE_ETH_SEND */
	__u8	flags;		/* QHCA_WQE_F_SIGNALED, QHCA_WQE_F_ETH_* */
	__le16	num_sge;
	__le16	csum_start;	/* ETH_CSUM: sum from this byte of the frame to its end ... */
	__le16	csum_offset;	/* ... and store the checksum at csum_start + csum_offset */
	__le16	vlan;		/* ETH_VLAN: TCI to insert */
	__le16	mss;		/* 0x0a: ETH_LSO: payload bytes of a segment */
	__le16	hdr_len;	/* 0x0c: ETH_LSO: bytes of the headers, to the end of the TCP or UDP header */
	__le16	inner_l3;	/* 0x0e: ETH_LSO: offset of the inner IP header of a packet in a tunnel, or 0 */
};

#define QHCA_WQE_F_ETH_CSUM		(1U << 4)	/* not with ETH_LSO */
#define QHCA_WQE_F_ETH_VLAN		(1U << 5)

/*
 * Large send: the segments hold one TCP segment or UDP datagram with more
 * payload than fits a frame.  The device sends it as frames of mss bytes of
 * payload (the last may have fewer), each with a copy of the headers in which it
 * sets: IPv4 total length, identification (incremented per frame) and header
 * checksum; IPv6 payload length; TCP sequence number, FIN and PSH only in the
 * last frame, CWR only in the first; UDP length; and the TCP or UDP checksum.
 * The values that these fields had do not matter.
 *
 * In a tunnel (QHCA_FEAT_ETH_TUNNEL) inner_l3 is the offset of the inner IP
 * header, and the above applies to the inner headers.  In the outer headers the
 * device sets the IP fields in the same way; if UDP follows, also its length
 * and, unless that is 0, its checksum.  Everything in between is copied
 * unchanged.
 */
#define QHCA_WQE_F_ETH_LSO		(1U << 6)

#define QHCA_ETH_LSO_MAX		65536	/* payload bytes of a large send */
#define QHCA_ETH_LSO_HDR_MAX		256	/* bytes of its headers */
#define QHCA_ETH_SUPER_IP_MAX		65535	/* bytes of the IP packet in a super-frame */
#define QHCA_ETH_SUPER_SEGS_MAX		128	/* frames in it */

/* one segment of a frame to send, or one receive buffer (a whole receive WQE) */
struct qhca_eth_seg {
	__le64	addr;		/* DMA address */
	__le32	len;		/* bytes */
	__u8	rsvd[4];
};

#define QHCA_ETH_MAX_FRAME		9234	/* 9216 + header and one VLAN tag */
#define QHCA_ETH_MAX_SGE		30

/*
 * Shapers (QHCA_FEAT_ETH_SHAPER).  A shaper is a token bucket over its members:
 * Ethernet SQs, and other shapers.  Each frame takes its bytes, without FCS, out
 * of the bucket of each shaper between its SQ and the port, and may leave a debt
 * there.  While one of these shapers is in debt, the SQ sends no frame.  Members
 * that have frames share the rate of their shaper by weight, in bytes.
 */
struct qhca_shaperc {
	__le64	rate;		/* 0x00: bits per second, 0: no limit */
	__le32	burst;		/* 0x08: bytes that the bucket holds */
	__le32	parent;		/* 0x0c: shaper that it is a member of, or QHCA_SHAPER_NONE */
	__u8	weight;		/* 0x10: its share of the parent, 1..255; an SQ has 1 */
	/* read-only */
	__u8	waits;		/* 0x11: 1: it is in debt, and members have frames */
	__u8	rsvd0[6];
	__le32	members;	/* 0x18 */
	__le32	tokens;		/* 0x1c: bytes in the bucket */
	__le32	debt;		/* 0x20: bytes that it lacks */
	__u8	rsvd1[4];
	__le64	frames;		/* 0x28: frames that passed */
	__le64	bytes;		/* 0x30: their bytes */
	__le64	held;		/* 0x38: how often its members had to wait */
};

#define QHCA_SHAPER_NONE		0U		/* a member of the port */
#define QHCA_SHAPER_RATE_MAX		1000000000000ULL	/* 1 Tb/s */
#define QHCA_SHAPER_BURST_MAX		(1U << 30)
#define QHCA_SHAPER_DEPTH_MAX		8		/* shapers between an SQ and the port */

/* MODIFY_SHAPER */
#define QHCA_SHAPER_M_RATE		(1ULL << 0)	/* rate, burst */
#define QHCA_SHAPER_M_PARENT		(1ULL << 1)	/* parent */
#define QHCA_SHAPER_M_WEIGHT		(1ULL << 2)	/* weight */

/* MODIFY_ETH_SQ */
#define QHCA_ETH_SQ_M_SHAPER		(1ULL << 0)	/* shaper */

/* ------------------------------------- raw packets, RSS, flow steering -- */
/*
 * A WQ is a receive queue without a QP: ring, doorbell record, NOTIFY and CQEs
 * are those of an RQ.  No WQN equals a QPN.
 */
struct qhca_wqc {
	struct qhca_buf	buf;		/* 0x00: ring */
	__le64	dbrec;		/* 0x20: DMA address of a struct qhca_dbrec */
	__le64	cookie;		/* 0x28: opaque to the device, returned by QUERY_WQ */
	__le32	wqn;		/* 0x30: RO */
	__le32	pd;		/* 0x34 */
	__le32	uar;		/* 0x38 */
	__le32	cqn;		/* 0x3c */
	__u8	shift;		/* 0x40: log2 of the depth, 0..15 */
	__u8	stride;		/* 0x41: log2 of WQE bytes, 5..9 */
	__u8	flags;		/* 0x42: QHCA_WQ_F_* */
	__u8	state;		/* 0x43: QHCA_WQS_*; RESET at create */
	__le32	head;		/* 0x44: RO: producer index last read */
	__le32	tail;		/* 0x48: RO: next WQE to take */
	__u8	syndrome;	/* 0x4c: RO: QHCA_SYN_* that brought the WQ to ERR */
	__u8	rsvd[51];	/* 0x4d */
};

#define QHCA_WQS_RESET			0
#define QHCA_WQS_RDY			1
#define QHCA_WQS_ERR			2

#define QHCA_WQ_F_STRIP_VLAN		(1U << 0)	/* as QHCA_QP_F_STRIP_VLAN */

#define QHCA_WQ_M_STATE			(1ULL << 0)
#define QHCA_WQ_M_FLAGS			(1ULL << 1)

#define QHCA_RQT_WQ			0	/* entries are WQNs */
#define QHCA_RQT_ETH_RQ			1	/* entries are numbers of Ethernet RQs */

#define QHCA_RQT_WQS_MAX		512	/* entries of an indirection table */
#define QHCA_RQTS_MAX			1024	/* indirection tables */

/* RSS: the fields of a frame that are hashed, in this order; the bits are the verbs' */
#define QHCA_HASH_SRC_IPV4		(1U << 0)
#define QHCA_HASH_DST_IPV4		(1U << 1)
#define QHCA_HASH_SRC_IPV6		(1U << 2)
#define QHCA_HASH_DST_IPV6		(1U << 3)
#define QHCA_HASH_SRC_PORT_TCP		(1U << 4)
#define QHCA_HASH_DST_PORT_TCP		(1U << 5)
#define QHCA_HASH_SRC_PORT_UDP		(1U << 6)
#define QHCA_HASH_DST_PORT_UDP		(1U << 7)
#define QHCA_HASH_MASK			0x000000ffU
#define QHCA_HASH_TOEPLITZ		1

/*
 * QHCA_HASH_BY_TYPE changes the meaning of the bits: QHCA_HASH_BY_* for each
 * type of frame, shifted by QHCA_HASH_*_SHIFT.  A fragment is of type IPV4 or
 * IPV6, which have no ports.  The order is source address, destination address,
 * source port, destination port.
 *
 * SYM_XOR replaces both with source ^ destination, SYM_OR_XOR with
 * source | destination followed by source ^ destination; both directions of a
 * connection then have the same hash.  Source and destination must be selected
 * together, and only one of SYM_XOR and SYM_OR_XOR may be set.
 *
 * LABEL_* (QHCA_FEAT_ETH_HASH_LABEL), not with SYM_*: the flow label of an IPv6
 * frame of this type comes last, as 4 bytes; the upper 12 bits are 0.
 */
#define QHCA_HASH_BY_TYPE		(1U << 31)
#define QHCA_HASH_SYM_XOR		(1U << 24)
#define QHCA_HASH_SYM_OR_XOR		(1U << 25)
#define QHCA_HASH_LABEL_TCP6		(1U << 26)
#define QHCA_HASH_LABEL_UDP6		(1U << 27)
#define QHCA_HASH_LABEL_IPV6		(1U << 28)
#define QHCA_HASH_BY_SRC_IP		0x1U
#define QHCA_HASH_BY_DST_IP		0x2U
#define QHCA_HASH_BY_SRC_PORT		0x4U
#define QHCA_HASH_BY_DST_PORT		0x8U
#define QHCA_HASH_BY_MASK		0xfU
#define QHCA_HASH_TCP4_SHIFT		0
#define QHCA_HASH_UDP4_SHIFT		4
#define QHCA_HASH_IPV4_SHIFT		8
#define QHCA_HASH_TCP6_SHIFT		12
#define QHCA_HASH_UDP6_SHIFT		16
#define QHCA_HASH_IPV6_SHIFT		20

/*
 * What a flow matches.  All fields are as on the wire; fields that a frame lacks
 * are 0.  A frame matches if (frame & mask) == (value & mask).
 */
struct qhca_flow_match {
	__u8	dmac[6];	/* 0x00 */
	__u8	smac[6];	/* 0x06 */
	__be16	ethertype;	/* 0x0c: after the VLAN tag, if there is one */
	__be16	vlan;		/* 0x0e: TCI */
	__u8	src_ip[16];	/* 0x10: IPv6; IPv4 in the last 4 bytes */
	__u8	dst_ip[16];	/* 0x20 */
	__be16	src_port;	/* 0x30: TCP, UDP */
	__be16	dst_port;	/* 0x32 */
	__u8	proto;		/* 0x34: IPv4 protocol, IPv6 first next header */
	__u8	tos;		/* 0x35: IPv4 type of service, IPv6 traffic class */
	__u8	ttl;		/* 0x36: IPv4 time to live, IPv6 hop limit */
	__u8	ip_flags;	/* 0x37: IPv4: 2:0 flags, as in the three highest bits of the byte on the wire */
	__be32	flow_label;	/* 0x38: IPv6: 19:0 */
	__u8	l3;		/* 0x3c: 4, 6; else 0 */
	__u8	l4;		/* 0x3d: 6 TCP, 17 UDP, also after IPv6 extension headers; else 0, also in all but the first fragment */
	__u8	tagged;		/* 0x3e: 1: it has a VLAN tag */
	__u8	rsvd;
};

struct qhca_flow {
	__le32	qpn;		/* 0x00: QP of type RAW or RSS (over WQs or Ethernet RQs) */
	__u8	type;		/* 0x04: QHCA_FLOW_* */
	__u8	flags;		/* 0x05: QHCA_FLOW_F_* */
	__le16	priority;	/* 0x06: NORMAL: the lowest value takes precedence */
	__le32	tag;		/* 0x08: reported in the CQE */
	__u8	rsvd[52];	/* 0x0c */
	struct qhca_flow_match	value;	/* 0x40: NORMAL */
	struct qhca_flow_match	mask;	/* 0x80: NORMAL */
};

#define QHCA_FLOW_NORMAL		0	/* frames that match */
#define QHCA_FLOW_ALL_DEFAULT		1	/* frames that match no other rule */
#define QHCA_FLOW_MC_DEFAULT		2	/* multicast frames that match no other rule */
#define QHCA_FLOW_SNIFFER		3	/* a copy of every frame that the port sends or receives */

#define QHCA_FLOW_F_DONT_TRAP		(1U << 0)	/* later rules get the frame, too */
#define QHCA_FLOW_F_DROP		(1U << 1)	/* the frame is dropped */
#define QHCA_FLOW_F_ADDR_FILTER		(1U << 2)	/* only frames that the port's address filter accepts */

#define QHCA_FLOWS_MAX			4096	/* rules */
#define QHCA_FLOW_MASKS_MAX		64	/* different masks among NORMAL rules */
#define QHCA_FLOW_COPIES_MAX		64	/* QPs that receive one frame */

/* --------------------------------------------------------- statistics --- */
/* indices into the array that QUERY_STATS returns; all count from the last reset */
#define QHCA_STAT_ETH_RX_PACKETS	0
#define QHCA_STAT_ETH_RX_BYTES		1
#define QHCA_STAT_ETH_RX_DROPPED	2	/* no buffer, no queue, too many at one time */
#define QHCA_STAT_ETH_RX_FILTERED	3	/* not for this port's addresses */
#define QHCA_STAT_ETH_RX_ERRORS		4	/* too long, too short */
#define QHCA_STAT_ETH_TX_PACKETS	5
#define QHCA_STAT_ETH_TX_BYTES		6
#define QHCA_STAT_ETH_TX_ERRORS		7
#define QHCA_STAT_ETH_RX_MULTICAST	8
#define QHCA_STAT_RAW_RX_PACKETS	9	/* frames delivered to raw packet QPs and WQs */
#define QHCA_STAT_RAW_RX_BYTES		10
#define QHCA_STAT_RAW_RX_DROPPED	11	/* no receive WQE, too long, not in a receiving state, too many at one time */
#define QHCA_STAT_RAW_TX_PACKETS	12	/* frames sent by raw packet QPs */
#define QHCA_STAT_RAW_TX_BYTES		13
#define QHCA_STAT_ETH_RX_GRO_PACKETS	14	/* merged packets received by RQs with QHCA_ETH_Q_F_GRO */
#define QHCA_STAT_ETH_RX_GRO_FRAMES	15	/* frames in them */
#define QHCA_STAT_ROCE_RX_PACKETS	16
#define QHCA_STAT_ROCE_RX_BYTES		17
#define QHCA_STAT_ROCE_TX_PACKETS	18
#define QHCA_STAT_ROCE_TX_BYTES		19
#define QHCA_STAT_ROCE_ICRC_ERRORS	20
#define QHCA_STAT_ROCE_RX_MALFORMED	21	/* invalid header, or opcode not for the QP */
#define QHCA_STAT_ROCE_RX_NO_QP		22	/* no such QP, or not in a receiving state */
#define QHCA_STAT_ROCE_OUT_OF_SEQUENCE	23	/* request PSN ahead of the expected one */
#define QHCA_STAT_ROCE_DUPLICATE	24	/* request PSN before the expected one */
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
#define QHCA_STAT_UD_DROPPED		38	/* UD: no receive WQE, bad Q_Key, too long, too many members at one time; UC: no receive WQE */
#define QHCA_STAT_ROCE_RX_MULTICAST	39	/* packets for a group with members, each counted once */
#define QHCA_STAT_PAGE_FAULTS		44	/* page faults reported by QHCA_EV_PAGE_FAULT */
#define QHCA_STAT_PAGE_FAULT_DROPS	45	/* packets dropped while their QP waited for a page */
#define QHCA_STAT_DOORBELLS		48
#define QHCA_STAT_DB_BAD_OBJECT		49	/* doorbell for a number that does not exist */
#define QHCA_STAT_DB_BAD_OWNER		50	/* doorbell through another context's page */
#define QHCA_STAT_DB_BAD_INDEX		51	/* producer index beyond the ring */
#define QHCA_STAT_DB_BAD_ACCESS		52	/* wrong size, alignment or offset */
#define QHCA_STAT_TABLE_ERRORS		53	/* buffer-table entry invalid or unreadable */
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
/* the port's counters (QHCA_FEAT_PORT_STATS) */
#define QHCA_STAT_PORT_RX_FRAMES	64	/* frames on the wire: all kinds, including RoCE */
#define QHCA_STAT_PORT_RX_OCTETS	65	/* their bytes on a real Ethernet: padded to 60, plus 4 of FCS */
#define QHCA_STAT_PORT_RX_MULTICAST	66	/* multicast, without broadcast */
#define QHCA_STAT_PORT_RX_BROADCAST	67
#define QHCA_STAT_PORT_RX_64		68	/* by octets: 64 */
#define QHCA_STAT_PORT_RX_127		69	/* 65..127 */
#define QHCA_STAT_PORT_RX_255		70	/* 128..255 */
#define QHCA_STAT_PORT_RX_511		71	/* 256..511 */
#define QHCA_STAT_PORT_RX_1023		72	/* 512..1023 */
#define QHCA_STAT_PORT_RX_1518		73	/* 1024..1518 */
#define QHCA_STAT_PORT_RX_LARGE		74	/* 1519 and more */
#define QHCA_STAT_PORT_RX_UNDERSIZE	75	/* refused: incomplete Ethernet header */
#define QHCA_STAT_PORT_RX_OVERSIZE	76	/* refused: longer than the port's MTU */
#define QHCA_STAT_PORT_RX_CONTROL	77	/* MAC control frames (QHCA_FEAT_PAUSE) ... */
#define QHCA_STAT_PORT_RX_PAUSE		78	/* ... that are PAUSE */
/* the same for frames sent, in the same order */
#define QHCA_STAT_PORT_TX_FRAMES	80
#define QHCA_STAT_PORT_TX_OCTETS	81
#define QHCA_STAT_PORT_TX_MULTICAST	82
#define QHCA_STAT_PORT_TX_BROADCAST	83
#define QHCA_STAT_PORT_TX_64		84
#define QHCA_STAT_PORT_TX_127		85
#define QHCA_STAT_PORT_TX_255		86
#define QHCA_STAT_PORT_TX_511		87
#define QHCA_STAT_PORT_TX_1023		88
#define QHCA_STAT_PORT_TX_1518		89
#define QHCA_STAT_PORT_TX_LARGE		90
#define QHCA_STAT_PORT_TX_CONTROL	93
#define QHCA_STAT_PORT_TX_PAUSE		94
#define QHCA_STAT_COUNT			96

#endif /* QHCA_HW_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The structures of the hardware interface, field by field. */
#include "observe/decode.h"
#include "transport/rc.h"

#define FIELD(s, m, kind, label, names, fields) \
    { #m, offsetof(struct s, m), sizeof(((struct s *)0)->m), kind, label, \
      names, fields }
#define F(s, m, kind)       FIELD(s, m, QHCA_FD_##kind, NULL, NULL, NULL)
#define ENUM(s, m, names)   FIELD(s, m, QHCA_FD_ENUM, #m "_name", names, NULL)
#define FLAGS(s, m, names)  FIELD(s, m, QHCA_FD_FLAGS, #m "_names", names, \
                                  NULL)
#define SUB(s, m, fields)   FIELD(s, m, QHCA_FD_STRUCT, NULL, NULL, fields)
#define RSVD(s, m)          F(s, m, RSVD)
#define END                 { 0 }

const struct qhca_field qhca_fields_buf[] = {
    F(qhca_buf, addr, HEX),
    F(qhca_buf, len, DEC),
    F(qhca_buf, first, DEC),
    F(qhca_buf, entries, DEC),
    ENUM(qhca_buf, form, qhca_names_form),
    F(qhca_buf, hops, DEC),
    F(qhca_buf, page_shift, DEC),
    F(qhca_buf, table_shift, DEC),
    RSVD(qhca_buf, rsvd),
    END
};

const struct qhca_field qhca_fields_av[] = {
    F(qhca_av, dgid, GID),
    F(qhca_av, dmac, MAC),
    F(qhca_av, sgid_index, DEC),
    F(qhca_av, flow_label, DEC),
    F(qhca_av, traffic_class, DEC),
    F(qhca_av, hop_limit, DEC),
    F(qhca_av, sl, DEC),
    F(qhca_av, flags, DEC),
    F(qhca_av, udp_sport, DEC),
    RSVD(qhca_av, rsvd),
    END
};

const struct qhca_field qhca_fields_qpc[] = {
    F(qhca_qpc, qpn, DEC),
    ENUM(qhca_qpc, type, qhca_names_qp_type),
    ENUM(qhca_qpc, state, qhca_names_qp_state),
    FLAGS(qhca_qpc, flags, qhca_names_qp_flag),
    RSVD(qhca_qpc, rsvd0),
    F(qhca_qpc, pd, DEC),
    F(qhca_qpc, uar, DEC),
    F(qhca_qpc, send_cqn, DEC),
    F(qhca_qpc, recv_cqn, DEC),
    F(qhca_qpc, srqn, DEC),
    F(qhca_qpc, sq_shift, DEC),
    F(qhca_qpc, sq_stride, DEC),
    F(qhca_qpc, rq_shift, DEC),
    F(qhca_qpc, rq_stride, DEC),
    SUB(qhca_qpc, sq, qhca_fields_buf),
    SUB(qhca_qpc, rq, qhca_fields_buf),
    F(qhca_qpc, rq_dbrec, HEX),
    F(qhca_qpc, cookie, HEX),
    SUB(qhca_qpc, av, qhca_fields_av),
    F(qhca_qpc, dest_qpn, DEC),
    F(qhca_qpc, qkey, HEX),
    F(qhca_qpc, sq_psn, DEC),
    F(qhca_qpc, rq_psn, DEC),
    FLAGS(qhca_qpc, access, qhca_names_access),
    F(qhca_qpc, pkey_index, DEC),
    F(qhca_qpc, path_mtu, DEC),
    F(qhca_qpc, timeout, DEC),
    F(qhca_qpc, retry_cnt, DEC),
    F(qhca_qpc, rnr_retry, DEC),
    F(qhca_qpc, min_rnr_timer, DEC),
    F(qhca_qpc, max_rd_atomic, DEC),
    F(qhca_qpc, max_dest_rd_atomic, DEC),
    F(qhca_qpc, en_sqd_event, DEC),
    RSVD(qhca_qpc, rsvd1),
    F(qhca_qpc, sq_head, DEC),
    F(qhca_qpc, sq_next, DEC),
    F(qhca_qpc, sq_tail, DEC),
    F(qhca_qpc, rq_head, DEC),
    F(qhca_qpc, rq_tail, DEC),
    F(qhca_qpc, snd_psn, DEC),
    F(qhca_qpc, una_psn, DEC),
    F(qhca_qpc, exp_psn, DEC),
    F(qhca_qpc, msn, DEC),
    F(qhca_qpc, credits, DEC),
    F(qhca_qpc, retry_left, DEC),
    F(qhca_qpc, rnr_left, DEC),
    ENUM(qhca_qpc, req_state, qhca_names_req_state),
    ENUM(qhca_qpc, rsp_state, qhca_names_rsp_state),
    F(qhca_qpc, rd_outstanding, DEC),
    ENUM(qhca_qpc, syndrome, qhca_names_syn),
    RSVD(qhca_qpc, rsvd2),
    F(qhca_qpc, deadline, DEC),
    F(qhca_qpc, sq_leaf, HEX),
    F(qhca_qpc, rq_leaf, HEX),
    F(qhca_qpc, sq_leaf_page, DEC),
    F(qhca_qpc, rq_leaf_page, DEC),
    F(qhca_qpc, tx_packets, DEC),
    F(qhca_qpc, rx_packets, DEC),
    F(qhca_qpc, retransmits, DEC),
    F(qhca_qpc, timeouts, DEC),
    F(qhca_qpc, rnr_naks_rx, DEC),
    F(qhca_qpc, seq_naks_rx, DEC),
    F(qhca_qpc, duplicates, DEC),
    F(qhca_qpc, xrcd, DEC),
    F(qhca_qpc, rqtn, DEC),
    FLAGS(qhca_qpc, rx_hash_fields, qhca_names_hash),
    F(qhca_qpc, rx_hash_func, DEC),
    RSVD(qhca_qpc, rsvd3),
    F(qhca_qpc, rx_hash_key, BYTES),
    F(qhca_qpc, sq_dbrec, HEX),
    RSVD(qhca_qpc, rsvd4),
    END
};

const struct qhca_field qhca_fields_cqc[] = {
    SUB(qhca_cqc, buf, qhca_fields_buf),
    F(qhca_cqc, dbrec, HEX),
    F(qhca_cqc, cqn, DEC),
    F(qhca_cqc, eqn, DEC),
    F(qhca_cqc, uar, DEC),
    F(qhca_cqc, shift, DEC),
    F(qhca_cqc, flags, DEC),
    F(qhca_cqc, mod_count, DEC),
    F(qhca_cqc, mod_usec, DEC),
    ENUM(qhca_cqc, state, qhca_names_cq_state),
    ENUM(qhca_cqc, arm, qhca_names_arm),
    F(qhca_cqc, prod, DEC),
    F(qhca_cqc, cons, DEC),
    RSVD(qhca_cqc, rsvd),
    END
};

const struct qhca_field qhca_fields_srqc[] = {
    SUB(qhca_srqc, buf, qhca_fields_buf),
    SUB(qhca_srqc, idx, qhca_fields_buf),
    F(qhca_srqc, dbrec, HEX),
    F(qhca_srqc, srqn, DEC),
    F(qhca_srqc, pd, DEC),
    F(qhca_srqc, uar, DEC),
    F(qhca_srqc, shift, DEC),
    F(qhca_srqc, stride, DEC),
    FLAGS(qhca_srqc, flags, qhca_names_srq_flag),
    ENUM(qhca_srqc, state, qhca_names_srq_state),
    F(qhca_srqc, limit, DEC),
    F(qhca_srqc, head, DEC),
    F(qhca_srqc, tail, DEC),
    F(qhca_srqc, xrcd, DEC),
    F(qhca_srqc, cqn, DEC),
    F(qhca_srqc, ops_shift, DEC),
    F(qhca_srqc, ops_stride, DEC),
    RSVD(qhca_srqc, rsvd0),
    F(qhca_srqc, max_tags, DEC),
    F(qhca_srqc, ops_head, DEC),
    F(qhca_srqc, ops_tail, DEC),
    F(qhca_srqc, tags, DEC),
    SUB(qhca_srqc, ops, qhca_fields_buf),
    F(qhca_srqc, unexp_seen, DEC),
    F(qhca_srqc, unexp_told, DEC),
    RSVD(qhca_srqc, rsvd1),
    END
};

const struct qhca_field qhca_fields_eqc[] = {
    SUB(qhca_eqc, buf, qhca_fields_buf),
    F(qhca_eqc, eqn, DEC),
    F(qhca_eqc, shift, DEC),
    FLAGS(qhca_eqc, flags, qhca_names_eq_flag),
    F(qhca_eqc, vector, DEC),
    F(qhca_eqc, prod, DEC),
    F(qhca_eqc, cons, DEC),
    F(qhca_eqc, armed, DEC),
    RSVD(qhca_eqc, rsvd),
    F(qhca_eqc, dbrec, HEX),
    END
};

const struct qhca_field qhca_fields_mpt[] = {
    SUB(qhca_mpt, buf, qhca_fields_buf),
    F(qhca_mpt, iova, HEX),
    F(qhca_mpt, len, DEC),
    F(qhca_mpt, key, HEX),
    F(qhca_mpt, pd, DEC),
    FLAGS(qhca_mpt, access, qhca_names_access),
    FLAGS(qhca_mpt, flags, qhca_names_mr_flag),
    ENUM(qhca_mpt, state, qhca_names_mr_state),
    RSVD(qhca_mpt, rsvd0),
    F(qhca_mpt, max_entries, DEC),
    F(qhca_mpt, mw_mr_key, HEX),
    F(qhca_mpt, mw_qpn, DEC),
    RSVD(qhca_mpt, rsvd1),
    END
};

const struct qhca_field qhca_fields_gid[] = {
    F(qhca_gid, gid, GID),
    F(qhca_gid, mac, MAC),
    F(qhca_gid, vlan, DEC),
    ENUM(qhca_gid, type, qhca_names_gid_type),
    RSVD(qhca_gid, rsvd),
    END
};

const struct qhca_field qhca_fields_port[] = {
    F(qhca_port, mac, MAC),
    F(qhca_port, link, DEC),
    F(qhca_port, promisc, DEC),
    F(qhca_port, allmulti, DEC),
    F(qhca_port, loopback, DEC),
    F(qhca_port, pause_rx, DEC),
    RSVD(qhca_port, rsvd0),
    F(qhca_port, mtu, DEC),
    F(qhca_port, eth_rqn, DEC),
    F(qhca_port, speed, DEC),
    F(qhca_port, max_mtu, DEC),
    F(qhca_port, perm_mac, MAC),
    RSVD(qhca_port, rsvd1),
    F(qhca_port, eth_qpn, DEC),
    RSVD(qhca_port, rsvd2),
    END
};

const struct qhca_field qhca_fields_caps[] = {
    FLAGS(qhca_dev_caps, features, qhca_names_feature),
    F(qhca_dev_caps, node_guid, BYTES),
    F(qhca_dev_caps, max_mr_size, HEX),
    F(qhca_dev_caps, page_size_cap, HEX),
    F(qhca_dev_caps, max_qp, DEC),
    F(qhca_dev_caps, max_cq, DEC),
    F(qhca_dev_caps, max_srq, DEC),
    F(qhca_dev_caps, max_mr, DEC),
    F(qhca_dev_caps, max_pd, DEC),
    F(qhca_dev_caps, max_uar, DEC),
    F(qhca_dev_caps, max_eq, DEC),
    F(qhca_dev_caps, max_qp_wr, DEC),
    F(qhca_dev_caps, max_cqe, DEC),
    F(qhca_dev_caps, max_srq_wr, DEC),
    F(qhca_dev_caps, max_sge, DEC),
    F(qhca_dev_caps, max_inline, DEC),
    F(qhca_dev_caps, max_gid, DEC),
    F(qhca_dev_caps, max_eth_queues, DEC),
    F(qhca_dev_caps, max_eq_depth, DEC),
    F(qhca_dev_caps, max_rd_atomic, DEC),
    F(qhca_dev_caps, max_msg_size, DEC),
    F(qhca_dev_caps, fw_version, DEC),
    F(qhca_dev_caps, max_xrcd, DEC),
    F(qhca_dev_caps, max_shapers, DEC),
    F(qhca_dev_caps, dm_size, DEC),
    RSVD(qhca_dev_caps, rsvd),
    END
};

const struct qhca_field qhca_fields_cqe[] = {
    F(qhca_cqe, wr_id, HEX),
    F(qhca_cqe, qpn, DEC),
    F(qhca_cqe, wqe_index, DEC),
    F(qhca_cqe, byte_len, DEC),
    F(qhca_cqe, imm, BE),
    F(qhca_cqe, src_qpn, DEC),
    ENUM(qhca_cqe, opcode, qhca_names_cqe_op),
    ENUM(qhca_cqe, status, qhca_names_wc),
    ENUM(qhca_cqe, syndrome, qhca_names_syn),
    F(qhca_cqe, sl, DEC),
    FLAGS(qhca_cqe, flags, qhca_names_cqe_flag),
    F(qhca_cqe, pkey_index, DEC),
    F(qhca_cqe, csum, DEC),
    F(qhca_cqe, smac, MAC),
    F(qhca_cqe, vlan, DEC),
    F(qhca_cqe, timestamp, DEC),
    F(qhca_cqe, num_wqe, DEC),
    ENUM(qhca_cqe, net_type, qhca_names_net),
    RSVD(qhca_cqe, rsvd),
    F(qhca_cqe, phase, DEC),
    END
};

const struct qhca_field qhca_fields_tm_cqe[] = {
    F(qhca_tm_cqe, wr_id, HEX),
    F(qhca_tm_cqe, qpn, DEC),
    F(qhca_tm_cqe, wqe_index, DEC),
    F(qhca_tm_cqe, byte_len, DEC),
    F(qhca_tm_cqe, imm, BE),
    F(qhca_tm_cqe, srqn, DEC),
    ENUM(qhca_tm_cqe, opcode, qhca_names_cqe_op),
    ENUM(qhca_tm_cqe, status, qhca_names_wc),
    ENUM(qhca_tm_cqe, syndrome, qhca_names_syn),
    RSVD(qhca_tm_cqe, rsvd0),
    FLAGS(qhca_tm_cqe, flags, qhca_names_cqe_flag),
    RSVD(qhca_tm_cqe, rsvd1),
    F(qhca_tm_cqe, app_ctx, BE),
    F(qhca_tm_cqe, tag, BE),
    F(qhca_tm_cqe, timestamp, DEC),
    RSVD(qhca_tm_cqe, rsvd2),
    F(qhca_tm_cqe, phase, DEC),
    END
};

const struct qhca_field qhca_fields_eth_cqe[] = {
    RSVD(qhca_eth_cqe, rsvd0),
    F(qhca_eth_cqe, num, DEC),
    F(qhca_eth_cqe, wqe_index, DEC),
    F(qhca_eth_cqe, byte_len, DEC),
    F(qhca_eth_cqe, rss_hash, HEX),
    F(qhca_eth_cqe, flow_tag, DEC),
    ENUM(qhca_eth_cqe, opcode, qhca_names_cqe_op),
    ENUM(qhca_eth_cqe, status, qhca_names_wc),
    ENUM(qhca_eth_cqe, syndrome, qhca_names_syn),
    ENUM(qhca_eth_cqe, hash_type, qhca_names_hash_type),
    FLAGS(qhca_eth_cqe, flags, qhca_names_cqe_flag),
    F(qhca_eth_cqe, header_len, DEC),
    F(qhca_eth_cqe, csum, HEX),
    F(qhca_eth_cqe, data_index, DEC),
    F(qhca_eth_cqe, gso_size, DEC),
    F(qhca_eth_cqe, vlan, DEC),
    F(qhca_eth_cqe, timestamp, DEC),
    F(qhca_eth_cqe, num_wqe, DEC),
    F(qhca_eth_cqe, num_data, DEC),
    F(qhca_eth_cqe, gso_segs, DEC),
    RSVD(qhca_eth_cqe, rsvd2),
    F(qhca_eth_cqe, phase, DEC),
    END
};

const struct qhca_field qhca_fields_eqe[] = {
    ENUM(qhca_eqe, type, qhca_names_event),
    ENUM(qhca_eqe, syndrome, qhca_names_syn),
    RSVD(qhca_eqe, rsvd0),
    F(qhca_eqe, obj, DEC),
    F(qhca_eqe, arg, HEX),
    RSVD(qhca_eqe, rsvd1),
    F(qhca_eqe, phase, DEC),
    END
};

const struct qhca_field qhca_fields_eth_qc[] = {
    SUB(qhca_eth_qc, buf, qhca_fields_buf),
    F(qhca_eth_qc, dbrec, HEX),
    F(qhca_eth_qc, cqn, DEC),
    F(qhca_eth_qc, shift, DEC),
    F(qhca_eth_qc, stride, DEC),
    FLAGS(qhca_eth_qc, flags, qhca_names_eth_q_flag),
    ENUM(qhca_eth_qc, state, qhca_names_wq_state),
    SUB(qhca_eth_qc, data_buf, qhca_fields_buf),
    F(qhca_eth_qc, data_dbrec, HEX),
    F(qhca_eth_qc, hds_thresh, DEC),
    F(qhca_eth_qc, data_shift, DEC),
    RSVD(qhca_eth_qc, rsvd0),
    F(qhca_eth_qc, head, DEC),
    F(qhca_eth_qc, tail, DEC),
    F(qhca_eth_qc, data_head, DEC),
    F(qhca_eth_qc, data_tail, DEC),
    F(qhca_eth_qc, dropped, DEC),
    ENUM(qhca_eth_qc, syndrome, qhca_names_syn),
    F(qhca_eth_qc, waits, DEC),
    RSVD(qhca_eth_qc, rsvd1),
    F(qhca_eth_qc, shaper, DEC),
    END
};

const struct qhca_field qhca_fields_shaperc[] = {
    F(qhca_shaperc, rate, DEC),
    F(qhca_shaperc, burst, DEC),
    F(qhca_shaperc, parent, DEC),
    F(qhca_shaperc, weight, DEC),
    F(qhca_shaperc, waits, DEC),
    RSVD(qhca_shaperc, rsvd0),
    F(qhca_shaperc, members, DEC),
    F(qhca_shaperc, tokens, DEC),
    F(qhca_shaperc, debt, DEC),
    RSVD(qhca_shaperc, rsvd1),
    F(qhca_shaperc, frames, DEC),
    F(qhca_shaperc, bytes, DEC),
    F(qhca_shaperc, held, DEC),
    END
};

const struct qhca_field qhca_fields_ctrl[] = {
    ENUM(qhca_wqe_ctrl, opcode, qhca_names_wqe_op),
    FLAGS(qhca_wqe_ctrl, flags, qhca_names_wqe_flag),
    F(qhca_wqe_ctrl, num_sge, DEC),
    F(qhca_wqe_ctrl, imm, BE),
    F(qhca_wqe_ctrl, wr_id, HEX),
    F(qhca_wqe_ctrl, arg0, HEX),
    F(qhca_wqe_ctrl, arg1, HEX),
    END
};

const struct qhca_field qhca_fields_remote[] = {
    F(qhca_wqe_remote, addr, HEX),
    F(qhca_wqe_remote, rkey, HEX),
    F(qhca_wqe_remote, arg, HEX),
    END
};

const struct qhca_field qhca_fields_sge[] = {
    F(qhca_sge, addr, HEX),
    F(qhca_sge, len, DEC),
    F(qhca_sge, lkey, HEX),
    END
};

const struct qhca_field qhca_fields_ud[] = {
    SUB(qhca_ud_wqe, ctrl, qhca_fields_ctrl),
    F(qhca_ud_wqe, dest_qpn, DEC),
    F(qhca_ud_wqe, qkey, HEX),
    RSVD(qhca_ud_wqe, rsvd),
    SUB(qhca_ud_wqe, av, qhca_fields_av),
    END
};

const struct qhca_field qhca_fields_rq_wqe[] = {
    F(qhca_rq_wqe, wr_id, HEX),
    F(qhca_rq_wqe, num_sge, DEC),
    RSVD(qhca_rq_wqe, rsvd),
    END
};

const struct qhca_field qhca_fields_eth_wqe[] = {
    ENUM(qhca_eth_wqe, opcode, qhca_names_wqe_op),
    FLAGS(qhca_eth_wqe, flags, qhca_names_eth_wqe_flag),
    F(qhca_eth_wqe, num_sge, DEC),
    F(qhca_eth_wqe, csum_start, DEC),
    F(qhca_eth_wqe, csum_offset, DEC),
    F(qhca_eth_wqe, vlan, DEC),
    F(qhca_eth_wqe, mss, DEC),
    F(qhca_eth_wqe, hdr_len, DEC),
    F(qhca_eth_wqe, inner_l3, DEC),
    END
};

const struct qhca_field qhca_fields_eth_seg[] = {
    F(qhca_eth_seg, addr, HEX),
    F(qhca_eth_seg, len, DEC),
    RSVD(qhca_eth_seg, rsvd),
    END
};

const struct qhca_field qhca_fields_tm_wqe[] = {
    ENUM(qhca_tm_wqe, opcode, qhca_names_wqe_op),
    FLAGS(qhca_tm_wqe, flags, qhca_names_tm_wqe_flag),
    F(qhca_tm_wqe, num_sge, DEC),
    F(qhca_tm_wqe, unexp, DEC),
    F(qhca_tm_wqe, wr_id, HEX),
    F(qhca_tm_wqe, recv_wr_id, HEX),
    F(qhca_tm_wqe, tag, HEX),
    F(qhca_tm_wqe, mask, HEX),
    F(qhca_tm_wqe, handle, HEX),
    F(qhca_tm_wqe, result, HEX),
    END
};

const struct qhca_field qhca_fields_xrc[] = {
    SUB(qhca_xrc_wqe, ctrl, qhca_fields_ctrl),
    SUB(qhca_xrc_wqe, remote, qhca_fields_remote),
    F(qhca_xrc_wqe, srqn, DEC),
    RSVD(qhca_xrc_wqe, rsvd),
    END
};

const struct qhca_field qhca_fields_masked[] = {
    SUB(qhca_masked_wqe, ctrl, qhca_fields_ctrl),
    SUB(qhca_masked_wqe, remote, qhca_fields_remote),
    F(qhca_masked_wqe, mask, HEX),
    F(qhca_masked_wqe, swap_mask, HEX),
    END
};

const struct qhca_field qhca_fields_page_fault[] = {
    F(qhca_page_fault, addr, HEX),
    F(qhca_page_fault, len, DEC),
    F(qhca_page_fault, key, HEX),
    F(qhca_page_fault, token, DEC),
    FLAGS(qhca_page_fault, flags, qhca_names_page_fault_flag),
    RSVD(qhca_page_fault, rsvd),
    END
};

const struct qhca_field qhca_fields_dbrec[] = {
    F(qhca_dbrec, index, DEC),
    F(qhca_dbrec, flags, DEC),
    END
};

const struct qhca_field qhca_fields_wqc[] = {
    SUB(qhca_wqc, buf, qhca_fields_buf),
    F(qhca_wqc, dbrec, HEX),
    F(qhca_wqc, cookie, HEX),
    F(qhca_wqc, wqn, DEC),
    F(qhca_wqc, pd, DEC),
    F(qhca_wqc, uar, DEC),
    F(qhca_wqc, cqn, DEC),
    F(qhca_wqc, shift, DEC),
    F(qhca_wqc, stride, DEC),
    FLAGS(qhca_wqc, flags, qhca_names_wq_flag),
    ENUM(qhca_wqc, state, qhca_names_wq_state),
    F(qhca_wqc, head, DEC),
    F(qhca_wqc, tail, DEC),
    ENUM(qhca_wqc, syndrome, qhca_names_syn),
    RSVD(qhca_wqc, rsvd),
    END
};

const struct qhca_field qhca_fields_flow_match[] = {
    F(qhca_flow_match, dmac, MAC),
    F(qhca_flow_match, smac, MAC),
    F(qhca_flow_match, ethertype, BE),
    F(qhca_flow_match, vlan, BE),
    F(qhca_flow_match, src_ip, BYTES),
    F(qhca_flow_match, dst_ip, BYTES),
    F(qhca_flow_match, src_port, BE),
    F(qhca_flow_match, dst_port, BE),
    F(qhca_flow_match, proto, DEC),
    F(qhca_flow_match, tos, DEC),
    F(qhca_flow_match, ttl, DEC),
    F(qhca_flow_match, ip_flags, DEC),
    F(qhca_flow_match, flow_label, BE),
    F(qhca_flow_match, l3, DEC),
    F(qhca_flow_match, l4, DEC),
    F(qhca_flow_match, tagged, DEC),
    RSVD(qhca_flow_match, rsvd),
    END
};

const struct qhca_field qhca_fields_flow[] = {
    F(qhca_flow, qpn, DEC),
    ENUM(qhca_flow, type, qhca_names_flow_type),
    FLAGS(qhca_flow, flags, qhca_names_flow_flag),
    F(qhca_flow, priority, DEC),
    F(qhca_flow, tag, HEX),
    RSVD(qhca_flow, rsvd),
    SUB(qhca_flow, value, qhca_fields_flow_match),
    SUB(qhca_flow, mask, qhca_fields_flow_match),
    END
};

#define LAYOUT(s, v) { #s, sizeof(struct s), qhca_fields_##v }

const struct qhca_struct_layout qhca_struct_layouts[] = {
    LAYOUT(qhca_buf, buf),
    LAYOUT(qhca_av, av),
    LAYOUT(qhca_qpc, qpc),
    LAYOUT(qhca_cqc, cqc),
    LAYOUT(qhca_srqc, srqc),
    LAYOUT(qhca_eqc, eqc),
    LAYOUT(qhca_mpt, mpt),
    LAYOUT(qhca_gid, gid),
    LAYOUT(qhca_port, port),
    LAYOUT(qhca_dev_caps, caps),
    LAYOUT(qhca_cqe, cqe),
    LAYOUT(qhca_tm_cqe, tm_cqe),
    LAYOUT(qhca_eth_cqe, eth_cqe),
    LAYOUT(qhca_eqe, eqe),
    LAYOUT(qhca_eth_qc, eth_qc),
    LAYOUT(qhca_shaperc, shaperc),
    LAYOUT(qhca_wqe_ctrl, ctrl),
    LAYOUT(qhca_wqe_remote, remote),
    LAYOUT(qhca_sge, sge),
    LAYOUT(qhca_ud_wqe, ud),
    LAYOUT(qhca_rq_wqe, rq_wqe),
    LAYOUT(qhca_eth_wqe, eth_wqe),
    LAYOUT(qhca_eth_seg, eth_seg),
    LAYOUT(qhca_tm_wqe, tm_wqe),
    LAYOUT(qhca_xrc_wqe, xrc),
    LAYOUT(qhca_masked_wqe, masked),
    LAYOUT(qhca_page_fault, page_fault),
    LAYOUT(qhca_dbrec, dbrec),
    LAYOUT(qhca_wqc, wqc),
    LAYOUT(qhca_flow_match, flow_match),
    LAYOUT(qhca_flow, flow),
    { NULL, 0, NULL }
};

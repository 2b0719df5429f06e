/* SPDX-License-Identifier: GPL-2.0 */
/* Converts a rule of ethtool -N to a match of the device. */
#ifndef QHCA_NTUPLE_MATCH_H
#define QHCA_NTUPLE_MATCH_H

#include <linux/ethtool.h>
#include <rdma/qhca-hw.h>

int qhca_ntuple_match(const struct ethtool_rx_flow_spec *fs,
		      struct qhca_flow_match *value,
		      struct qhca_flow_match *mask);

#endif /* QHCA_NTUPLE_MATCH_H */

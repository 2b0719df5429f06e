/* SPDX-License-Identifier: GPL-2.0 */
/* What a rule of ethtool -N looks at, as the device's match. */
#ifndef QHCA_NTUPLE_MATCH_H
#define QHCA_NTUPLE_MATCH_H

#include <linux/ethtool.h>
#include <rdma/qhca-hw.h>

int qhca_ntuple_match(const struct ethtool_rx_flow_spec *fs,
		      struct qhca_flow_match *value,
		      struct qhca_flow_match *mask);

#endif /* QHCA_NTUPLE_MATCH_H */

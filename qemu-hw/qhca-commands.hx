HXCOMM SPDX-License-Identifier: GPL-2.0-or-later

    {
        .name       = "qhca_break",
        .args_type  = "condition:S",
        .params     = "event [field=number...]",
        .help       = "stop at an event of the qhca RDMA adapter",
    },

SRST
``qhca_break`` *event* [*field*\ =\ *number*...]
  Stop at an event of the qhca RDMA adapter; see QMP's ``qhca-break-add``.
ERST

    {
        .name       = "qhca_delete",
        .args_type  = "id:l?",
        .params     = "[id]",
        .help       = "remove one or all breaks of the qhca RDMA adapter",
    },

SRST
``qhca_delete`` [*id*]
  Remove one or all breaks of the qhca RDMA adapter.
ERST

    {
        .name       = "qhca_step",
        .args_type  = "on:s?,count:l?",
        .params     = "[event [count]]",
        .help       = "resume until an event of the qhca RDMA adapter",
    },

SRST
``qhca_step`` [*event* [*count*]]
  Resume the qhca RDMA adapter until *count* (default 1) events of a kind
  (default: send WQEs fetched) have occurred.
ERST

    {
        .name       = "qhca_fault",
        .args_type  = "rule:S",
        .params     = "action[,key=value...]",
        .help       = "inject a fault into the qhca RDMA adapter",
    },

SRST
``qhca_fault`` *action*\ [,\ *key*\ =\ *value*...]
  Inject a fault into the qhca RDMA adapter: the members of QMP's ``QhcaFault``.
ERST

    {
        .name       = "qhca_fault_seed",
        .args_type  = "seed:l",
        .params     = "seed",
        .help       = "set the seed of the qhca RDMA adapter's faults",
    },

SRST
``qhca_fault_seed`` *seed*
  Reset the counts of all faults of the qhca RDMA adapter and set their seed.
ERST

    {
        .name       = "qhca_fault_delete",
        .args_type  = "id:l?",
        .params     = "[id]",
        .help       = "remove one or all faults of the qhca RDMA adapter",
    },

SRST
``qhca_fault_delete`` [*id*]
  Remove one or all faults of the qhca RDMA adapter.
ERST

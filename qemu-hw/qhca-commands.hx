
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
        .help       = "remove a break of the qhca RDMA adapter, or all",
    },

SRST
``qhca_delete`` [*id*]
  Remove a break of the qhca RDMA adapter, or all.
ERST

    {
        .name       = "qhca_step",
        .args_type  = "on:s?,count:l?",
        .params     = "[event [count]]",
        .help       = "go on to the next event of the qhca RDMA adapter",
    },

SRST
``qhca_step`` [*event* [*count*]]
  Go on until that many events of a kind (send WQEs fetched, if nothing is
  said) of the qhca RDMA adapter.
ERST

    {
        .name       = "qhca_fault",
        .args_type  = "rule:S",
        .params     = "action [field=value...]",
        .help       = "let something go wrong in the qhca RDMA adapter",
    },

SRST
``qhca_fault`` *action* [*field*\ =\ *value*...]
  Let something go wrong in the qhca RDMA adapter; see QMP's
  ``qhca-fault-add``.  ``qhca_fault seed`` *number* sets the seed.
ERST

    {
        .name       = "qhca_fault_delete",
        .args_type  = "id:l?",
        .params     = "[id]",
        .help       = "remove a fault of the qhca RDMA adapter, or all",
    },

SRST
``qhca_fault_delete`` [*id*]
  Remove a fault of the qhca RDMA adapter, or all.
ERST

HXCOMM SPDX-License-Identifier: GPL-2.0-or-later

    {
        .name       = "qhca",
        .args_type  = "what:s?,number:l?,ring:s?",
        .params     = "[what [number [ring]]]",
        .help       = "show objects of the qhca RDMA adapter",
    },

SRST
  ``info qhca`` [*what* [*number* [*ring*]]]
    Show the qhca RDMA adapter, all objects of a kind, one object, one of its
    rings or its buffer table (*ring* ``tree``); why the adapter stopped
    (``stop``); or the injected faults (``faults``).
ERST


    {
        .name       = "qhca",
        .args_type  = "what:s?,number:l?,ring:s?",
        .params     = "[what [number [ring]]]",
        .help       = "show objects of the qhca RDMA adapter",
    },

SRST
  ``info qhca`` [*what* [*number* [*ring*]]]
    Show the qhca RDMA adapter, objects of a kind, one of them, one of its
    rings, its buffer table (*ring* ``tree``), (``stop``) why it stopped, or
    (``faults``) its faults on demand.
ERST

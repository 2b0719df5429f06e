# SPDX-License-Identifier: GPL-2.0-or-later
"""
Lines of perftest in which every pair of values of these options occurs at least once, where it makes
sense: a bug often needs two of them.
"""

import itertools

PROGRAMS = ["ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw",
            "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat"]  # fmt: skip
FACTORS = [
    PROGRAMS,
    ["", "-c UC", "-c UD"],
    ["", "-s 1", "-s 1000", "-s 70000"],
    ["", "-m 256"],
    ["", "-q 4"],
    ["", "-e"],
    ["", "-R"],
    ["", "-t 1", "-t 64 -l 8"],
    ["", "-I 64"],
    ["", "--use-srq"],
    ["", "-b"],
]


def permitted(program, transport, size, mtu, qps, events, cm, depth, inline, srq, both) -> bool:
    """Does perftest accept them, does each change something, and is there no chance in it?"""
    _, verb, kind = program.split("_")
    bandwidth = kind == "bw"
    datagram = transport == "-c UD"
    return not (
        (transport and verb in ("read", "atomic"))
        or (datagram and verb != "send")
        or (datagram and size in ("", "-s 70000"))          # reduced to a packet
        or (datagram and mtu)
        or (verb == "atomic" and (size or mtu))
        or (not bandwidth and (qps or depth or both))
        or (events and verb == "write")                     # refused
        or (cm and (transport == "-c UC" or mtu))           # its QPs have the port's MTU
        or (inline and (verb not in ("send", "write")
                        or (size != "-s 1" and (size or bandwidth))))
        or (srq and (verb != "send" or transport == "-c UC"))
        or (srq and cm)                                     # fails, and so does its clean-up
        or (srq and datagram and qps)                       # fewer receives than datagrams
    )


def lines() -> list[str]:
    """The first choice is the line with most new pairs, and so on until there are none."""
    number: dict = {}
    reach = []
    for values in itertools.product(*FACTORS):
        if permitted(*values):
            mask = 0
            for pair in itertools.combinations(enumerate(values), 2):
                mask |= 1 << number.setdefault(pair, len(number))
            reach.append((mask, values))
    missing = (1 << len(number)) - 1
    chosen = []
    while missing:
        mask, values = max(reach, key=lambda r: (r[0] & missing).bit_count())
        missing &= ~mask
        # a multiple of the lists' length, and more than a queue holds
        chosen.append(" ".join([*filter(None, values), "-n 96"]))
    return chosen

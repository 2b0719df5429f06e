# SPDX-License-Identifier: GPL-2.0-or-later
"""The net device under way: counters of the port."""

import json

from test_driver import ping


def groups(guest):
    """Counters of ethtool's standard groups: MAC by name, RMON by direction and lower limit."""
    shown = json.loads(guest.run("ethtool --json -S $NETDEV --groups eth-mac rmon").out)[0]
    found = dict(shown["eth-mac"])
    for side in ("rx", "tx"):
        for part in shown["rmon"][f"{side}-pktsNtoM"]:
            found[side, part["low"]] = part["val"]
    return found


def test_port_counters(pair):
    """Frames by size, at the sender as sent, at the receiver as received."""
    a, b = pair.a, pair.b
    # room for the largest that is sent
    pair.set_mtu(4000)
    ping(pair)
    # bytes of payload of UDP, and the size that it belongs to: 46 more on the wire
    sizes = {0: 0, 30: 65, 100: 128, 300: 256, 700: 512, 1200: 1024, 3000: 1519}
    before = {g.name: groups(g) for g in pair}
    a.run("python3 -", input=f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in {list(sizes)}:
    for i in range(40):
        s.sendto(bytes(size), ("{b.ip}", 9))
""")

    def grown(guest, names):
        after = groups(guest)
        return [after[n] - before[guest.name][n] for n in names]

    b._until(lambda: min(grown(b, [("rx", low) for low in sizes.values()])) >= 40, 30,
             "frames are missing")
    assert min(grown(a, [("tx", low) for low in sizes.values()])) >= 40
    # none of it counts in the other direction; there may be a few others
    assert max(grown(b, [("tx", low) for low in (256, 512, 1024, 1519)])) < 40
    sent = grown(a, ["FramesTransmittedOK", "OctetsTransmittedOK"])
    payload = 40 * sum(max(46, size + 28) for size in sizes)
    assert sent[0] >= 40 * len(sizes) and payload <= sent[1] < payload + 100 * 1500
    # no pause frames on this wire, and nobody says there are
    refused = a.run("ethtool -A $NETDEV rx on", check=False)
    assert refused.rc and "not supported" in refused.err, refused.describe()

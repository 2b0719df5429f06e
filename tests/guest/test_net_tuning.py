# SPDX-License-Identifier: GPL-2.0-or-later
"""The net device in operation: counters of the port, adaptive moderation, changes under
traffic."""

import json
import re

import pytest

from labs import PATIENCE, Python
from qhca_lab.pair import start_server
from test_driver import ping
from test_net_queues import transfer


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
    a.run(Python(f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in {list(sizes)}:
    for i in range(40):
        s.sendto(bytes(size), ("{b.ip}", 9))
"""))

    def grown(guest, names):
        after = groups(guest)
        return [after[n] - before[guest.name][n] for n in names]

    b._until(lambda: min(grown(b, [("rx", low) for low in sizes.values()])) >= 40, PATIENCE,
             "frames are missing")
    assert min(grown(a, [("tx", low) for low in sizes.values()])) >= 40
    # none of it counts in the other direction; there may be a few others
    assert max(grown(b, [("tx", low) for low in (256, 512, 1024, 1519)])) < 40
    sent = grown(a, ["FramesTransmittedOK", "OctetsTransmittedOK"])
    # with header and FCS, as drivers/net/hw/ethtool_std_stats.sh of the kernel has it
    octets = 40 * sum(max(46, size + 28) + 18 for size in sizes)
    assert sent[0] >= 40 * len(sizes) and octets <= sent[1] < octets + 100 * 1500
    # none was lost in the MAC
    assert grown(a, ["FramesLostDueToIntMACXmitError"]) == [0]


def buffer_size(pair, guest):
    """Bytes of a receive buffer, of the driver, and of a frame in one, of the device."""
    shown = guest.run(f"ethtool -g {guest.netdev}").out
    queue = pair.qmp(guest.name, "qhca-inspect", object="eth-rq")["look"]["objects"][0]

    def ring(**which):
        return pair.qmp(guest.name, "qhca-ring", object="eth-rq", number=queue["number"],
                        ring="rq", count=1, **which)["look"]

    last = ring(index=ring()["producer"] - 1 & 0xffffffff)["entries"][0]
    return int(re.findall(r"RX Buf Len:\s+(\d+)", shown)[-1]), last["len"]


@pytest.mark.long("every size in turn; tests/device/test_eth_rq has frames in several buffers")
def test_buffer_size(pair):
    """Receive buffers of other sizes, replaced under traffic; the link stays up."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    pair.set_mtu(9000)
    changes = b.run(f"cat /sys/class/net/{dev}/carrier_changes").out
    job = a.start(f"exec ping -q -i 0.01 -s 8000 {b.ip}")
    try:
        for size in (32768, 8192, 4096):
            b.run(f"ethtool -G {dev} rx-buf-len {size}")
            told, room = buffer_size(pair, b)
            # the rest is headroom, and what the stack keeps of a packet
            assert told == size and size - 600 < room < size
            transfer(a, b, b.ip, 5304)
        for size, why in ((2048, "power of two"), (12288, "power of two"), (65536, "from 4096")):
            refused = b.run(f"ethtool -G {dev} rx-buf-len {size}", check=False)
            assert refused.rc and why in refused.err, refused.describe()
        # smaller frames and split ones fit into large buffers as well
        b.run(f"ethtool -G {dev} rx-buf-len 16384 rx 128 tcp-data-split on")
        pair.set_mtu(1500)
        transfer(a, b, b.ip, 5304)
    finally:
        job.kill()
        b.run(f"ethtool -G {dev} rx-buf-len 4096 rx 1024 tcp-data-split auto")
    assert b.run(f"cat /sys/class/net/{dev}/carrier_changes").out == changes
    ping(pair)


def moderation(pair, guest, kind):
    """(frames, us) of each queue's CQ, as the device has them."""
    found = []
    queues = pair.qmp(guest.name, "qhca-inspect", object=f"eth-{kind}")["look"]
    for queue in queues["objects"]:
        context = pair.qmp(guest.name, "qhca-inspect", object=f"eth-{kind}",
                           number=queue["number"])["look"]["context"]
        cq = pair.qmp(guest.name, "qhca-inspect", object="cq",
                      number=context["cqn"])["look"]["context"]
        found.append((cq["mod_count"], cq["mod_usec"]))
    return found


def test_moderation_of_one_queue(pair):
    """Each queue has its own moderation, which an exchange of all queues keeps."""
    a, dev = pair.a, pair.a.netdev
    was = re.findall(r"Combined:\s+(\d+)", a.run(f"ethtool -l {dev}").out)[1]
    try:
        a.run(f"ethtool -L {dev} combined 2")
        assert "Adaptive RX: on  TX: off" in a.run(f"ethtool -c {dev}").out
        # settings without effect are refused
        assert a.run(f"ethtool -C {dev} rx-usecs 5", check=False).rc
        a.run(f"ethtool -Q {dev} queue_mask 2 -C adaptive-rx off "
              "rx-usecs 33 rx-frames 7 tx-usecs 9")
        assert a.run(f"ethtool -Q {dev} queue_mask 4 -C tx-usecs 9", check=False).rc
        for _ in range(2):
            shown = a.run(f"ethtool -Q {dev} queue_mask 3 -c").out
            first, second = shown.split("Queue: 1")
            assert "Adaptive RX: on" in first and re.search(r"tx-usecs:\s+50\b", first), shown
            assert "Adaptive RX: off" in second and re.search(r"rx-usecs:\s+33\b", second), shown
            assert (7, 33) in moderation(pair, a, "rq")
            assert sorted(moderation(pair, a, "sq")) == [(32, 9), (32, 50)]
            a.run(f"ethtool -G {dev} rx 512")
        # ethtool passes queue 0's values for what a command does not mention: no error, though
        # queue 1 has others
        a.run(f"ethtool -Q {dev} queue_mask 2 -C adaptive-rx on")
        a.run(f"ethtool -C {dev} tx-usecs 8")
        assert moderation(pair, a, "sq") == [(32, 8), (32, 8)]
    finally:
        a.run(f"ethtool -G {dev} rx 1024; ethtool -L {dev} combined {was}; "
              f"ethtool -C {dev} adaptive-rx off adaptive-tx off; "
              f"ethtool -C {dev} adaptive-rx on rx-usecs 0 rx-frames 0 tx-usecs 50 tx-frames 32")
    ping(pair)


@pytest.mark.long("the kernel's algorithm; test_moderation_of_one_queue has what it sets")
def test_adaptive_moderation(pair):
    """Under traffic the algorithm chooses, of both directions; switched off, it is silent."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    b.run(f"ethtool -C {dev} adaptive-tx on")
    begin = {kind: moderation(pair, b, kind) for kind in ("rq", "sq")}
    traffic = start_server(b, "iperf3 -s")
    client = a.start(f"iperf3 -c {b.ip} -t 300 --bidir")
    try:
        adapted = set()

        def both():
            """Has the moderation of both directions changed, each independently?"""
            adapted.update(k for k in begin if moderation(pair, b, k) != begin[k])
            return adapted == set(begin)
        b._until(both, PATIENCE, "nothing was adapted")
        b.run(f"ethtool -C {dev} adaptive-rx off adaptive-tx off")
        b.run(f"ethtool -C {dev} rx-usecs 21 rx-frames 20 tx-usecs 23 tx-frames 22")
        b.run(f"ping -c 20 -i 0.05 {a.ip}")
        assert set(moderation(pair, b, "rq")) == {(20, 21)}
        assert set(moderation(pair, b, "sq")) == {(22, 23)}
    finally:
        client.kill()
        traffic.kill()
        b.run(f"ethtool -C {dev} adaptive-rx on rx-usecs 0 rx-frames 0 tx-usecs 50 tx-frames 32",
              check=False)
    ping(pair)


@pytest.mark.long("a dozen changes, each while the wire is full")
def test_changes_under_traffic(pair):
    """Threaded NAPI, MTU, rings, split, channels, moderation: the link stays, TCP goes on."""
    a, b, dev = pair.a, pair.b, pair.b.netdev
    channels = re.findall(r"Combined:\s+(\d+)", b.run(f"ethtool -l {dev}").out)[1]
    changes = b.run(f"cat /sys/class/net/{dev}/carrier_changes").out
    server = start_server(b, "iperf3 -s")
    client = a.start(f"iperf3 -c {b.ip} -t 600 --bidir")
    packets = f"cat /sys/class/net/{dev}/statistics/rx_packets"
    try:
        for line in (
            f"echo 1 > /sys/class/net/{dev}/threaded",
            f"ethtool -G {dev} rx 64 tx 64",
            f"ip link set {dev} mtu 3000",
            f"ethtool -G {dev} rx 2048 tx 1024",
            f"ethtool -G {dev} tcp-data-split on",
            f"ethtool -L {dev} combined 4",
            f"ethtool -C {dev} adaptive-tx on",
            f"ethtool -G {dev} rx 256",
            f"echo 0 > /sys/class/net/{dev}/threaded",
            f"ip link set {dev} mtu 1500",
            f"ethtool -G {dev} tcp-data-split off",
            f"ethtool -L {dev} combined 1",
        ):
            b.run(line)
            before = int(b.run(packets).out)
            b.wait_for(f"test $({packets}) -gt {before + 100}", 60)
        assert client.running, client.result().describe()
    finally:
        client.kill()
        server.kill()
        b.run(f"echo 0 > /sys/class/net/{dev}/threaded; ethtool -C {dev} adaptive-tx off; "
              f"ethtool -G {dev} rx 1024 tx 512 tcp-data-split off; "
              f"ethtool -L {dev} combined {channels}", check=False)
        pair.set_mtu(1500)
    assert b.run(f"cat /sys/class/net/{dev}/carrier_changes").out == changes
    ping(pair)

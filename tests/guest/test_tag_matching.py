# SPDX-License-Identifier: GPL-2.0-or-later
"""
Tag matching with data: the receiver has a TM SRQ, the sender is an RC QP of any
adapter, also one that knows nothing of tags.
"""

import json

PROGRAM = "/qhca/build/guest-progs/tm"
PORT = 18600


def transfer(receiver, sender):
    """Run both ends; each checks what it gets."""
    job = receiver.start(f"timeout 100 {PROGRAM}")
    receiver.wait_port(receiver.ip, PORT)
    sent = sender.run(f"timeout 100 {PROGRAM} {receiver.ip}", timeout=110, check=False)
    received = job.wait(110)
    assert received.rc == 0, f"receiver: {received.err}\nsender: {sent.err}"
    assert sent.rc == 0, f"sender: {sent.err}"
    assert json.loads(sent.out)["bursts"] == json.loads(received.out)["bursts"] == 100
    assert json.loads(received.out)["unexpected"] == 2


def test_between_guests(pair):
    transfer(pair.a, pair.b)


def test_loopback(pair):
    transfer(pair.a, pair.a)


def test_soft_roce_sends(mixed):
    """Soft-RoCE answers the adapter's READs and takes its FINs."""
    transfer(mixed.a, mixed.b)

# SPDX-License-Identifier: GPL-2.0-or-later
"""A wire with losses between two guests: relays unix datagrams.

    relay.py --end SOCKET PEER --end SOCKET PEER --loss PERCENT --seed N

A frame that arrives at one end's SOCKET goes to the other end's PEER. Each
direction draws from a random sequence of its own, so the n-th frame of a
direction has the same fate for the same seed. Ends at SIGTERM; the counts are
kept in the --report file while it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from qhca_lab import roce, sched  # noqa: E402


class Direction(threading.Thread):
    """Forward frames from SOURCE to the guest behind PEER."""

    def __init__(self, source, peer, options, salt):
        super().__init__(daemon=True)
        self.source, self.peer, self.options = source, peer, options
        self.random = random.Random(f"{options.seed}/{salt}")
        self.passed = self.lost = self.undeliverable = 0

    def run(self):
        # Forwarding is as urgent as sending. Threads do not inherit what was
        # done for their process.
        sched.prefer(threading.get_native_id())
        out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        loss = self.options.loss / 100
        only_roce = self.options.match == "roce"
        while True:
            frame = self.source.recv(1 << 17)
            if (not only_roce or roce.find(frame)) and self.random.random() < loss:
                self.lost += 1
                continue
            try:
                # Blocks while the guest does not read: only chosen frames are lost.
                out.sendto(frame, self.peer)
                self.passed += 1
            except OSError:
                self.undeliverable += 1  # the guest is not there (yet)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--end", nargs=2, action="append", required=True)
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--match", choices=("all", "roce"), default="all")
    parser.add_argument("--report")
    options = parser.parse_args()
    if len(options.end) != 2:
        parser.error("a wire has two ends")
    sockets = []
    for path, _peer in options.end:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        if os.path.exists(path):
            os.unlink(path)
        end.bind(path)
        sockets.append(end)
    directions = [
        Direction(sockets[0], options.end[1][1], options, 0),
        Direction(sockets[1], options.end[0][1], options, 1),
    ]
    for direction in directions:
        direction.start()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        time.sleep(0.5)
        if options.report:
            counts = [
                {"passed": d.passed, "lost": d.lost, "undeliverable": d.undeliverable}
                for d in directions
            ]
            with open(options.report + ".new", "w") as f:
                json.dump(counts, f)
            os.replace(options.report + ".new", options.report)


if __name__ == "__main__":
    main()

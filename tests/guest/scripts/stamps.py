# SPDX-License-Identifier: GPL-2.0-or-later
"""Hardware timestamps as seen by an application in a guest. Each function prints one line of JSON;
all times are nanoseconds of the adapter's PTP clock."""

import ctypes
import fcntl
import json
import os
import select
import socket
import struct
import sys
import time

NETDEV = os.environ["NETDEV"]
SIOCSHWTSTAMP, SIOCGHWTSTAMP, SIOCETHTOOL = 0x89B0, 0x89B1, 0x8946
ETHTOOL_GET_TS_INFO = 0x41
SO_TIMESTAMPING = 37
TX_HARDWARE, RX_HARDWARE, RAW_HARDWARE = 1 << 0, 1 << 2, 1 << 6
SO_EE_ORIGIN_TIMESTAMPING = 4
# Seconds, for the default kernel.
LIMIT = 100 * int(os.environ.get("QHCA_PACE", "1"))


def ioctl(number, data):
    """An ioctl of the interface with a pointer to a structure; returns its contents afterwards."""
    buffer = ctypes.create_string_buffer(data, len(data))
    request = struct.pack("16sP16x", NETDEV.encode(), ctypes.addressof(buffer))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, number, request)
    return buffer.raw


def configure(tx, rx):
    """SIOCSHWTSTAMP; (flags, tx_type, rx_filter) of the driver's response."""
    return struct.unpack("3i", ioctl(SIOCSHWTSTAMP, struct.pack("3i", 0, tx, rx)))


def config():
    return struct.unpack("3i", ioctl(SIOCGHWTSTAMP, bytes(12)))


def phc_index():
    data = struct.pack("I", ETHTOOL_GET_TS_INFO) + bytes(40)
    return struct.unpack_from("i", ioctl(SIOCETHTOOL, data), 8)[0]


def clock_id():
    """The clock of /dev/ptpN, for clock_gettime() and its like."""
    return ~os.open(f"/dev/ptp{phc_index()}", os.O_RDWR) << 3 | 3


def now():
    return time.clock_gettime_ns(clock_id())


def stamp(messages):
    """The hardware's time among control messages, or 0."""
    for level, kind, data in messages:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING):
            numbers = struct.unpack("6q", data[:48])
            return numbers[4] * 10**9 + numbers[5]
    return 0


def send(address, wanted=True):
    """Send a datagram to port 9999; its send time, and the clock before and after."""
    clock = clock_id()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TX_HARDWARE | RAW_HARDWARE)
        before = time.clock_gettime_ns(clock)
        s.sendto(b"stamp me", (address, 9999))
        sent = 0
        if wanted:
            poll = select.poll()
            poll.register(s, 0)
            if not poll.poll(LIMIT * 1000):
                sys.exit("no timestamp came")
            _, control, _, _ = s.recvmsg(2000, 1000, socket.MSG_ERRQUEUE)
            sent = stamp(control)
        after = time.clock_gettime_ns(clock)
        if not wanted:
            try:
                s.recvmsg(2000, 1000, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
                sys.exit("a timestamp that was not requested")
            except BlockingIOError:
                pass
    print(json.dumps([before, sent, after]))


def receive():
    """Receive the datagram; its receive time, and the clock before and after."""
    clock = clock_id()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_HARDWARE | RAW_HARDWARE)
        s.settimeout(LIMIT)
        s.bind(("", 9999))
        before = time.clock_gettime_ns(clock)
        print("ready", flush=True)
        _, control, _, _ = s.recvmsg(2000, 1000)
        after = time.clock_gettime_ns(clock)
    print(json.dumps([before, stamp(control), after]))


def receive_stream():
    """Receive the data of one connection; the receive times of its parts, and the clock before and
    after."""
    clock = clock_id()
    with socket.create_server(("", 9999)) as server:
        server.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_HARDWARE | RAW_HARDWARE)
        server.settimeout(LIMIT)
        before = time.clock_gettime_ns(clock)
        print("ready", flush=True)
        s, _ = server.accept()
        with s:
            s.settimeout(LIMIT)
            s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_HARDWARE | RAW_HARDWARE)
            stamps = []
            while True:
                data, control, _, _ = s.recvmsg(1 << 20, 1000)
                if not data:
                    break
                stamps.append(stamp(control))
        after = time.clock_gettime_ns(clock)
    print(json.dumps([before, stamps, after]))


class Timex(ctypes.Structure):
    _fields_ = [
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long), ("esterror", ctypes.c_long), ("status", ctypes.c_int),
        ("constant", ctypes.c_long), ("precision", ctypes.c_long), ("tolerance", ctypes.c_long),
        ("sec", ctypes.c_long), ("usec", ctypes.c_long), ("rest", ctypes.c_byte * 200),
    ]  # fmt: skip


ADJ_FREQUENCY, ADJ_SETOFFSET, ADJ_NANO = 0x2, 0x100, 0x2000


def adjust(**fields):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.clock_adjtime(clock_id(), ctypes.byref(Timex(**fields))) < 0:
        raise OSError(ctypes.get_errno(), "clock_adjtime")


def rate():
    """The clock's rate, as a multiple of the system's, to a thousandth."""
    def both():
        # the system's time before and after the clock's
        return time.monotonic_ns(), time.clock_gettime_ns(clock), time.monotonic_ns()

    clock = clock_id()
    first = both()
    while True:
        now = both()
        least, most = now[0] - first[2], now[2] - first[0]
        if least > 0 and most - least < least / 2000:
            return 2 * (now[1] - first[1]) / (least + most)


def step(seconds):
    """Move the clock."""
    adjust(modes=ADJ_SETOFFSET, sec=seconds)
    return now()


def now():
    return time.clock_gettime_ns(clock_id())


def steer():
    """Everything that can be done with the clock."""
    clock = clock_id()
    found = {"plain": rate()}
    adjust(modes=ADJ_FREQUENCY, freq=50000 << 16)
    found["fast"] = rate()
    adjust(modes=ADJ_FREQUENCY, freq=-(50000 << 16))
    found["slow"] = rate()
    adjust(modes=ADJ_FREQUENCY, freq=0)
    before = time.clock_gettime_ns(clock)
    adjust(modes=ADJ_SETOFFSET | ADJ_NANO, sec=-5000, usec=7)
    found["back"] = before - time.clock_gettime_ns(clock)
    time.clock_settime_ns(clock, 10**18)
    found["set"] = time.clock_gettime_ns(clock) - 10**18
    try:
        adjust(modes=ADJ_FREQUENCY, freq=200000 << 16)
        sys.exit("a clock that runs at any rate")
    except OSError as error:
        found["refused"] = error.errno
    print(json.dumps(found))


if __name__ == "__main__":
    result = globals()[sys.argv[1]](*[a if "." in a else int(a) for a in sys.argv[2:]])
    if result is not None:
        print(json.dumps(result))

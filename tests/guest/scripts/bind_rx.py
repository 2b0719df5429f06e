# SPDX-License-Identifier: GPL-2.0-or-later
"""Bind memory of another device to a receive queue, like an application of devmem TCP;
the kernel makes the driver replace the queue for this.

Run in a guest: python3 bind_rx.py QUEUE [BYTES]; prints "bound" or the name of the error.
It stays bound until standard input ends.
"""

import errno
import fcntl
import os
import socket
import struct
import sys

NETLINK_GENERIC, NLM_F_REQUEST, NLM_F_ACK = 16, 1, 4
NLMSG_ERROR = 2
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 0x10, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
# linux/netdev.h
NETDEV_CMD_BIND_RX = 13
NETDEV_A_DMABUF_IFINDEX, NETDEV_A_DMABUF_QUEUES, NETDEV_A_DMABUF_FD = 1, 2, 3
NETDEV_A_QUEUE_ID, NETDEV_A_QUEUE_TYPE, NETDEV_QUEUE_TYPE_RX = 1, 3, 0
UDMABUF_CREATE = 0x40187542
F_ADD_SEALS, F_SEAL_SHRINK, MFD_ALLOW_SEALING = 1033, 2, 2
SIZE = 16 << 20     # if not given


def attribute(kind, data):
    """An attribute of netlink; an int is of 32 bits."""
    if isinstance(data, int):
        data = struct.pack("I", data)
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def attributes(data):
    """{kind: bytes} of a message's attributes."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def ask(sock, family, command, data):
    """The kernel's response; OSError if it refuses."""
    message = struct.pack("BBH", command, 1, 0) + data
    sock.send(struct.pack("IHHII", 16 + len(message), family, NLM_F_REQUEST | NLM_F_ACK, 1, 0)
              + message)
    answer = sock.recv(65536)
    length, kind = struct.unpack_from("IH", answer)
    if kind == NLMSG_ERROR and (error := struct.unpack_from("i", answer, 16)[0]):
        raise OSError(-error, os.strerror(-error))
    return attributes(answer[20:length])


def dmabuf(size):
    """A dma-buf of ordinary memory; its fd."""
    memory = os.memfd_create("bind_rx", MFD_ALLOW_SEALING)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)
    with open("/dev/udmabuf", "rb") as device:
        request = bytearray(struct.pack("IIQQ", memory, 0, 0, size))
        return fcntl.ioctl(device, UDMABUF_CREATE, request)


def main():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC) as sock:
        name = attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0")
        family = ask(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, name)[CTRL_ATTR_FAMILY_ID]
        sock.recv(65536)    # the acknowledge
        queue = attribute(NETDEV_A_QUEUE_ID, int(sys.argv[1]))
        size = int(sys.argv[2]) if len(sys.argv) > 2 else SIZE
        queue += attribute(NETDEV_A_QUEUE_TYPE, NETDEV_QUEUE_TYPE_RX)
        data = attribute(NETDEV_A_DMABUF_IFINDEX, socket.if_nametoindex(os.environ["NETDEV"]))
        data += attribute(NETDEV_A_DMABUF_QUEUES | 0x8000, queue)   # nested
        data += attribute(NETDEV_A_DMABUF_FD, dmabuf(size))
        try:
            ask(sock, struct.unpack("H", family)[0], NETDEV_CMD_BIND_RX, data)
        except OSError as error:
            print(errno.errorcode[error.errno], flush=True)
            return
        print("bound", flush=True)
        sys.stdin.read()


main()

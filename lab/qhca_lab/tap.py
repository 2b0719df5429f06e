# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a tap on the bridge br0 and pass its file through a socket.

    python3 tap.py NAME SOCKET-FD      run inside the network namespace
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys

TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000

name, number = sys.argv[1], int(sys.argv[2])
try:
    tap = os.open("/dev/net/tun", os.O_RDWR)
except OSError as error:
    sys.exit(f"{error}: load the module tun, let everybody use the file (mode 666)")
fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
for words in (["mtu", "9000", "master", "br0"], ["up"]):
    subprocess.run(["ip", "link", "set", name] + words, check=True)
with socket.socket(fileno=number) as passage:
    socket.send_fds(passage, [b"tap"], [tap])

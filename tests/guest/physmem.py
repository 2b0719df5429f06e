# SPDX-License-Identifier: GPL-2.0-or-later
"""Write a guest's physical memory from outside, through QEMU's gdb stub."""

import contextlib
import os
import socket
import tempfile


class GdbStub:
    """The required subset of the remote protocol."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(path)

    def _packet(self):
        data = b""
        while True:
            byte = self.sock.recv(1)
            if not byte:
                raise ConnectionError("the gdb stub hung up")
            if byte == b"$":
                data = b""
            elif byte == b"#":
                self.sock.recv(2)
                self.sock.sendall(b"+")
                return data.decode()
            elif byte != b"+":
                data += byte

    def call(self, text):
        body = text.encode()
        self.sock.sendall(b"$" + body + b"#%02x" % (sum(body) & 0xFF))
        return self._packet()

    def write(self, addr, data):
        answer = self.call(f"M{addr:x},{len(data):x}:{data.hex()}")
        assert answer == "OK", f"writing {addr:#x}: {answer}"


@contextlib.contextmanager
def _stub(lab, guest):
    path = os.path.join(tempfile.mkdtemp(prefix="qhca-gdb-"), "sock")
    # another test's debugger may have left its stub open
    lab.hmp(guest, "gdbserver none")
    said = lab.hmp(guest, f"gdbserver unix:{path},server=on,wait=off")
    assert os.path.exists(path), f"gdbserver: {said}"
    stub = GdbStub(path)
    try:
        stub.call("?")
        assert stub.call("Qqemu.PhyMemMode:1") == "OK"
        yield stub
        stub.call("Qqemu.PhyMemMode:0")
        stub.call("D")
    finally:
        stub.sock.close()
        lab.hmp(guest, "gdbserver none")
        lab.qmp(guest, "cont")


def write64(lab, guest, addr, value):
    """Store one little-endian 64-bit word at a physical address."""
    with _stub(lab, guest) as stub:
        stub.write(addr, value.to_bytes(8, "little"))

# SPDX-License-Identifier: GPL-2.0-or-later
"""
Memory links: adapters on a switch that share a folder, and a peer in this process, which may break
all rules.
"""

import contextlib
import fcntl
import mmap
import os
import random
import select
import signal
import socket
import struct as layouts
from pathlib import Path

from adapter import CQ, EQ, Adapter
from layout import C, struct
from live import ACCESS, Switch
from machine import TIMEOUT, Machine, until
from rdma import MR, QP, array, gid_bytes, mac_bytes, set_gid

SHARED = ("-object", "memory-backend-memfd,id=ram,size=256M,share=on",
          "-machine", "memory-backend=ram")
ROOM = 1 << 20                  # half of an end's region: first its sends, then its receives
SECOND = 1_000_000_000          # of virtual time, ns: minimum interval of markers
QKEY = 0x1234
MARKER, ROCE = b"\x88\xb5", b"\x08\x00"
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 2, 4


class Net(Switch):
    """A switch that keeps what it has forwarded."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[bytes] = []

    def _forward(self, source: Machine, frame: bytes) -> None:
        self.frames.append(frame)
        super()._forward(source, frame)

    def until(self, condition, what: str):
        """Forward until @condition holds."""
        return until(lambda: (self.turn(), condition())[1], what)

    def packets(self) -> int:
        """RoCEv2 packets that have used the wire."""
        return sum(f[12:14] == ROCE for f in self.frames)

    def lose(self, machine: Machine) -> None:
        """The machine has ended."""
        if machine in self.ports:
            self.unplug(machine)


class End:
    """A machine with an adapter in the folder of @net's memory links."""

    def __init__(self, net: Net, folder: Path, number: int, *options: str,
                 memory: tuple[str, ...] = SHARED, properties: str = "", place: str = "addr=4.0"):
        self.net, self.folder, self.number = net, folder, number
        self.mac, self.ip = f"02:00:00:00:00:{number:02x}", f"10.99.0.{number}"
        self.device = f"qhca,id=q,{place},mac={self.mac},memlink={folder}{properties}"
        self.options = (*memory, *options)
        self.m = Machine(*self.options, device=self.device)
        net.plug(self.m)

    def start(self, adapter: Adapter | None = None) -> "End":
        self.adapter = adapter or Adapter(self.m)
        self.adapter.start()
        self.setup()
        return self

    def setup(self) -> None:
        self.cq = CQ(self.adapter, EQ(self.adapter), shift=7)
        self.pd = self.adapter.command(C.QHCA_CMD_ALLOC_PD).obj
        set_gid(self.adapter, ip=self.ip, mac=self.mac)
        self.mr = MR(self.adapter, self.pd, 2 * ROOM, ACCESS)

    def close(self, check: bool = True) -> None:
        self.net.lose(self.m)
        self.m.close(check)

    def kill(self) -> None:
        """It ends without notice."""
        self.m.process.kill()
        self.m.process.wait()
        self.close(check=False)

    def suspend(self, yes: bool) -> None:
        self.m.process.send_signal(signal.SIGSTOP if yes else signal.SIGCONT)

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.m.process.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.m.process.pid}/task"))

    def socket(self) -> Path:
        return self.folder / self.mac.replace(":", "")

    def links(self) -> dict[str, dict]:
        """By the peer's MAC address."""
        look = self.m.qmp("qhca-inspect", object="device", device="q")["look"]
        return {link["peer"]: link for link in look["memlinks"]}

    def link(self, peer: "End") -> dict:
        return self.links()[peer.mac]


class Route:
    """QPs of one type from end @a to end @b and back. PSNs begin far from those of earlier ones:
    after a reset a QP may reuse the number of one that still receives packets."""

    psn = 100

    def __init__(self, a: End, b: End, kind: int = C.QHCA_QPT_RC, mtu: int = 3,
                 timeout: int = 14, retry_cnt: int = 7):
        self.a, self.b, self.net, self.kind = a, b, a.net, kind
        self.dice = random.Random(1)
        Route.psn = psn = (Route.psn + 0x10000) & 0xFFFFFF
        fields = {"sq_stride": 7, "sq_shift": 3} if kind == C.QHCA_QPT_UD else {}
        self.qa, self.qb = (QP(e.adapter, e.cq, e.pd, type=kind, **fields) for e in (a, b))
        if fields:
            self.qa.SQ_STRIDE = self.qb.SQ_STRIDE = 7
        for qp, other, to in ((self.qa, self.qb, b), (self.qb, self.qa, a)):
            if kind == C.QHCA_QPT_RC:
                qp.to_init(ACCESS & ~C.QHCA_ACCESS_LOCAL_WRITE)
                qp.to_rtr(psn=psn, dest_qpn=other.num, ip=to.ip, mac=to.mac, mtu=mtu)
                qp.to_rts(psn=psn, timeout=timeout, retry_cnt=retry_cnt)
            elif kind == C.QHCA_QPT_UC:
                qp.to_init(C.QHCA_ACCESS_REMOTE_WRITE)
                qp.modify("STATE", "AV", "PATH_MTU", "DEST_QPN", "RQ_PSN",
                          state=C.QHCA_QPS_RTR, av=self.address(to), path_mtu=mtu,
                          dest_qpn=other.num, rq_psn=psn)
                qp.modify("STATE", "SQ_PSN", state=C.QHCA_QPS_RTS, sq_psn=psn)
            else:
                qp.modify("STATE", "PKEY_INDEX", "QKEY", state=C.QHCA_QPS_INIT, qkey=QKEY)
                qp.modify("STATE", state=C.QHCA_QPS_RTR)
                qp.modify("STATE", "SQ_PSN", state=C.QHCA_QPS_RTS, sq_psn=psn)

    @staticmethod
    def address(to: End):
        return struct("qhca_av")(dgid=array("qhca_av", "dgid", gid_bytes(to.ip)),
                                 dmac=array("qhca_av", "dmac", mac_bytes(to.mac)),
                                 sgid_index=0, hop_limit=64)

    def post(self, opcode: int, length: int, clean: bool = True) -> bytes:
        """
        Post a message from a to b (READ: that a asks b for); its data.  @clean: what
        its destination is overwritten first, for check().
        """
        a, b = self.a, self.b
        data = self.dice.randbytes(length)
        read = opcode == C.QHCA_WQE_RDMA_READ
        source, sink = (b, a) if read else (a, b)
        source.mr.fill(data)
        if clean:
            sink.adapter.m.command("memset", hex(sink.mr.addr + ROOM), length + 1, "0x77")
        local = (a.mr.iova + (ROOM if read else 0), length, a.mr.key)
        remote = b.mr.iova + (0 if read else ROOM), b.mr.key
        if opcode == C.QHCA_WQE_SEND:
            gap = 40 if self.kind == C.QHCA_QPT_UD else 0
            self.qb.post_recv((b.mr.iova + ROOM - gap, length + gap, b.mr.key))
            remote = 0, 0
        if self.kind == C.QHCA_QPT_UD:
            self.post_datagram(local)
        else:
            self.qa.post_send(local, opcode=opcode, remote=remote)
        return data

    def post_datagram(self, local) -> None:
        wqe = struct("qhca_ud_wqe")(
            ctrl=struct("qhca_wqe_ctrl")(opcode=C.QHCA_WQE_SEND, num_sge=1,
                                         flags=C.QHCA_WQE_F_SIGNALED),
            dest_qpn=self.qb.num, qkey=QKEY, av=self.address(self.b))
        slot = self.qa.sq_prod & 7
        self.a.m.write_mem(self.qa.sq + (slot << 7), bytes(wqe) + bytes(struct("qhca_sge")(*local)))
        self.qa.sq_prod += 1
        self.qa.ring_sq()

    def completed(self, end: End):
        """The next completion at @end."""
        self.net.until(end.cq.peek, "a completion")
        return end.cq.take()

    def check(self, opcode: int, data: bytes) -> None:
        """The message is complete, and exactly its data has been written."""
        cqe = self.completed(self.a)
        assert cqe.status == C.QHCA_WC_SUCCESS, f"status {cqe.status}"
        if opcode == C.QHCA_WQE_SEND:
            cqe = self.completed(self.b)
            assert cqe.status == C.QHCA_WC_SUCCESS
        elif self.kind != C.QHCA_QPT_RC:
            self.net.until(lambda: self.b.mr.data(len(data) + 1, ROOM)[:-1] == data,
                           "the data")
        sink = self.a if opcode == C.QHCA_WQE_RDMA_READ else self.b
        assert sink.mr.data(len(data) + 1, ROOM) == data + b"\x77", "other data"

    def move(self, opcode: int, length: int) -> int:
        """One checked message; returns how many packets used the wire."""
        before = self.net.packets()
        self.check(opcode, self.post(opcode, length))
        return self.net.packets() - before

    def there_and_back(self) -> int:
        """Both ends have sent something that the other has acknowledged."""
        back = Route.__new__(Route)
        back.__dict__.update(self.__dict__, a=self.b, b=self.a, qa=self.qb, qb=self.qa)
        return (self.move(C.QHCA_WQE_RDMA_WRITE, 8)
                + back.move(C.QHCA_WQE_RDMA_WRITE, 8))

    def up(self) -> "Route":
        """Run until only the link is used: about a second of virtual time."""
        def quiet() -> bool:
            if self.there_and_back():
                for end in (self.a, self.b):
                    end.m.clock_step(SECOND // 10)
                return False
            return True

        until(quiet, "packets on the link")
        return self


def sealed(size: int, seals: int = F_SEAL_SHRINK | F_SEAL_GROW, flags: int = 0) -> int:
    """A memory file."""
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | flags)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Lingering:
    """
    A TCP socket whose close() does not return before its peer has taken all data, which it
    does not do.
    """

    FIN_WAIT1 = "04"

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.sock = socket.create_connection(server.getsockname())
            self.peer = server.accept()[0]
        self.port = f":{self.sock.getsockname()[1]:04X}"
        self.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.send(bytes(1 << 16))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, layouts.pack("ii", 1, 3600))

    def closing(self) -> bool:
        """Is a process in close()?"""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[1].endswith(self.port):
                return words[3] == self.FIN_WAIT1 and words[9] != "0"
        return False

    def pass_to(self, sock: socket.socket) -> None:
        """From now on only the reader of @sock has it."""
        socket.send_fds(sock, [b"!"], [self.sock.fileno()])
        self.sock.close()


class Peer:
    """
    A handmade connecting end of a memory link to @end.  It is correct only with the
    defaults.
    """

    HELLO = layouts.Struct("=II6sHI4xQ16Q")
    MAGIC, VERSION, RING = 0x71684D4C, 4, 0x101000
    PROD, WANTS_ROOM, CONS, SLEEPS, REFUSES, SEEN, DATA = 0, 4, 64, 68, 72, 76, 4096
    REFS, COPYING, DONE, REVOKED = 3, 4, 5, 6

    def __init__(self, end: End, number: int = 9):
        self.end, self.mac = end, bytes((2, 0, 0, 0, 0, number))
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(TIMEOUT)
        self.token = random.getrandbits(64)
        self.rings: list[mmap.mmap] = []

        def connected() -> bool:
            try:
                self.sock.connect(str(end.socket()))
            except BlockingIOError:
                return False    # it does not accept at the moment
            return True

        until(connected, "room for a connection")

    def hello(self, fds: list[int] | None = None, memory: int = 0, **fields) -> "Peer":
        """Introduce ourselves: @fds are passed and closed; default: good rings."""
        if fds is None:
            fds = [sealed(self.RING), sealed(self.RING)]
            self.rings = [mmap.mmap(fd, self.RING) for fd in fds]
        regions = fields.get("regions", len(fds) - 2)
        spaces = fields.get("spaces", [0, memory] * max(0, len(fds) - 2))
        data = self.HELLO.pack(
            fields.get("magic", self.MAGIC), fields.get("version", self.VERSION),
            fields.get("mac", self.mac), fields.get("rings", 2), regions & 0xFFFFFFFF,
            self.token, *(spaces + [0] * 16)[:16])
        data = (data + bytes(64))[:fields.get("length", len(data))]
        try:
            socket.send_fds(self.sock, [data], fds)
        finally:
            for fd in fds:
                os.close(fd)
        return self

    def answer(self) -> "Peer":
        """Receive the other end's hello: its regions in self.memory, descriptors."""
        data, fds, _, _ = socket.recv_fds(self.sock, 4096, 16)
        assert data, "refused"
        hello = self.HELLO.unpack(data)
        assert hello[:2] == (self.MAGIC, self.VERSION)
        assert hello[2] == mac_bytes(self.end.mac) and len(fds) == hello[4]
        assert not any(data[20:24])
        self.memory = fds
        return self

    def close(self) -> None:
        self.sock.close()
        for fd in getattr(self, "memory", []):
            os.close(fd)
        self.memory = []

    def cut_off(self) -> bool:
        """Wait until the other end has closed the connection."""
        try:
            while self.sock.recv(16):
                pass
        except ConnectionResetError:
            pass
        return True

    def connected(self) -> bool:
        """Has the other end not closed the connection?"""
        while select.select([self.sock], [], [], 0)[0]:
            if not self.sock.recv(16):
                return False
        return True

    def bell(self, message: bytes = b"!") -> None:
        try:
            self.sock.send(message, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass                # its limit is reached

    def word(self, ring: int, at: int) -> int:
        return int.from_bytes(self.rings[ring][at:at + 4], "little")

    def set_word(self, ring: int, at: int, value: int) -> None:
        self.rings[ring][at:at + 4] = value.to_bytes(4, "little")

    def put(self, data: bytes, prod: int) -> None:
        """The contents of the ring to the other end, and its end position."""
        self.rings[0][self.DATA:self.DATA + len(data)] = data
        self.set_word(0, self.PROD, prod & 0xFFFFFFFF)

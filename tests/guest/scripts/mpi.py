# SPDX-License-Identifier: GPL-2.0-or-later
"""
Open MPI between two guests. They have no sshd, so mpirun uses this script to start its daemon on
the other one.

  mpi.py serve            run commands of agents, until the first has ended
  mpi.py agent HOST WORD...  run the words as a shell command at HOST
  mpi.py program          the program of both ranks
"""

import ctypes
import socket
import subprocess
import sys

PORT = 13338
# eager, fragmented, and by rendezvous
SIZES = [0, 1, 1000, 10_000, 100_000, 1 << 20]


def serve():
    with socket.create_server(("", PORT)) as server:
        peer, _ = server.accept()
        with peer, peer.makefile() as text:
            command = text.readline()
            subprocess.run(["sh", "-c", command], check=True)


def agent(host, *words):
    """mpirun's replacement for ssh: ends when the remote command has ended."""
    with socket.create_connection((host, PORT)) as peer:
        peer.sendall((" ".join(words) + "\n").encode())
        peer.recv(1)


def program():
    mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)

    def handle(name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))

    def call(name, *args):
        assert getattr(mpi, name)(*args) == 0, name

    world, byte = handle("ompi_mpi_comm_world"), handle("ompi_mpi_byte")
    call("MPI_Init", None, None)
    rank, ranks = ctypes.c_int(), ctypes.c_int()
    call("MPI_Comm_rank", world, ctypes.byref(rank))
    call("MPI_Comm_size", world, ctypes.byref(ranks))
    assert ranks.value == 2, ranks
    me, other = rank.value, 1 - rank.value
    for size in SIZES:
        # both ways at once; the data identifies the sender
        mine = bytes((i * 7 + me) & 0xFF for i in range(size))
        theirs = ctypes.create_string_buffer(size + 1)
        call("MPI_Sendrecv", mine, size, byte, other, size, theirs, size, byte, other,
             size, world, None)
        assert theirs.raw[:size] == bytes((i * 7 + other) & 0xFF for i in range(size)), size
    sums = (ctypes.c_int * 1000)()
    values = (ctypes.c_int * 1000)(*(i * (me + 1) for i in range(1000)))
    call("MPI_Allreduce", values, sums, 1000, handle("ompi_mpi_int"),
         handle("ompi_mpi_op_sum"), world)
    assert list(sums) == [3 * i for i in range(1000)]
    call("MPI_Barrier", world)
    call("MPI_Finalize")
    print(f"rank {me}: done", flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

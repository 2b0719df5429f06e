# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine whose main loop is never idle, as under a guest that never rests."""

import contextlib
import queue
import socket
import struct
import subprocess
import threading

from machine import TIMEOUT, Lines, Machine

# A qtest command that does nothing, and its answer, which no other command has. Its length is a
# power of two: programs write as much as a buffer holds, and other commands only come in between.
IDLE, ANSWER = "endianness     ", "OK little"


class Busy:
    """In the place of Machine.qtest: between the test's commands there are always others."""

    def __init__(self, lines: Lines):
        self.lines = lines
        self.answers: queue.Queue[str | None] = queue.Queue()
        # A socket with a time limit of Python's does not block, as the others need.
        lines.sock.settimeout(None)
        lines.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                              struct.pack("ll", int(TIMEOUT), 0))
        # A process: threads of this one would not always be quick enough.
        self.others = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "yes", IDLE],
                                       stdout=lines.sock.fileno())
        self.begun = threading.Event()
        threading.Thread(target=self.hear, daemon=True).start()
        if not self.begun.wait(TIMEOUT):
            self.others.kill()
            raise TimeoutError("QEMU does not answer")

    def hear(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                answer = self.lines.line()
                if answer == ANSWER:
                    self.begun.set()
                else:
                    self.answers.put(answer)
        self.answers.put(None)

    def send(self, text: str) -> None:
        self.lines.send(text)

    def line(self) -> str:
        answer = self.answers.get(timeout=TIMEOUT)
        if answer is None:
            raise EOFError("QEMU closed the connection: did it die?")
        return answer


@contextlib.contextmanager
def never_idle(machine: Machine):
    """In the block, what QEMU does when it has nothing else to do has to wait: for example the
    completion of what a thread does for it."""
    machine.qtest = busy = Busy(machine.qtest)
    try:
        yield
    finally:
        busy.others.kill()
        busy.others.wait()

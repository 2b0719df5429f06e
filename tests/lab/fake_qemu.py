# SPDX-License-Identifier: GPL-2.0-or-later
"""A QMP server like QEMU's, in this process: it records and answers what tools do, without a
guest."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path


class Refuse(Exception):
    """A command is refused with this text."""


class FakeQemu:
    """Serves the QMP sockets NAMES in DIRECTORY, one client each at a time.

    `commands` are (name, arguments) of all clients in the order they came.
    `answers` has values or functions of the arguments by command; a command
    without one is refused. Run states are kept as QEMU does.
    """

    def __init__(self, directory: Path, names=("qmp", "qmp1", "qmp2", "qmp3")):
        self.commands: list[tuple[str, dict]] = []
        self.state = "running"
        self.answers: dict = {
            "qmp_capabilities": {},
            "query-status": lambda _a: {"status": self.state, "running": self.state == "running"},
            "stop": lambda _a: self.stop("paused"),
            "cont": lambda _a: self.run(),
        }
        self._clients: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listeners = []
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(directory / name))
            listener.listen(1)
            self._listeners.append(listener)
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def names(self) -> list[str]:
        """The commands so far, without the greeting's."""
        return [name for name, _ in self.commands if name != "qmp_capabilities"]

    def asked(self, name: str) -> list[dict]:
        """The arguments of all commands NAME so far."""
        return [arguments for n, arguments in self.commands if n == name]

    def stop(self, state: str) -> dict:
        if self.state == "running":
            self.state = state
            self.event("STOP")
        return {}

    def run(self) -> dict:
        if self.state != "running":
            self.state = "running"
            self.event("RESUME")
        return {}

    def event(self, name: str, data: dict | None = None) -> None:
        """Send an event to every client."""
        message = {"event": name, "data": data or {},
                   "timestamp": {"seconds": 0, "microseconds": 0}}
        with self._lock:
            for client in self._clients:
                self._say(client, message)

    @staticmethod
    def _say(client: socket.socket, message: dict) -> None:
        with contextlib.suppress(OSError):
            client.sendall(json.dumps(message).encode() + b"\r\n")

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError, ValueError), client:
                self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        self._say(client, {"QMP": {"version": {}, "capabilities": []}})
        with self._lock:
            self._clients.add(client)
        try:
            for line in client.makefile("r"):
                message = json.loads(line)
                name, arguments = message["execute"], message.get("arguments", {})
                self.commands.append((name, arguments))
                try:
                    answer = self.answers.get(name)
                    if answer is None:
                        raise Refuse(f"The command {name} has not been found")
                    value = answer(arguments) if callable(answer) else answer
                    reply = {"return": value}
                except Refuse as error:
                    reply = {"error": {"class": "GenericError", "desc": str(error)}}
                if "id" in message:
                    reply["id"] = message["id"]
                with self._lock:
                    self._say(client, reply)
        finally:
            with self._lock:
                self._clients.discard(client)

    def close(self) -> None:
        """End as QEMU does: all connections break."""
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections to a server that does not listen yet, or no more."""

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import unix_socket  # noqa: E402
from qhca_lab.errors import LabError  # noqa: E402
from qhca_lab.qmp import Qmp  # noqa: E402


@pytest.fixture
def bound(tmp_path):
    """A socket that is bound, and its path."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        yield sock, path


def test_server_that_listens_later(bound, monkeypatch):
    sock, path = bound
    refused = threading.Event()
    sleep = unix_socket.time.sleep

    def wait(seconds):
        refused.set()
        sleep(seconds)

    def listen():
        refused.wait()
        sock.listen()

    monkeypatch.setattr(unix_socket.time, "sleep", wait)
    server = threading.Thread(target=listen)
    server.start()
    with unix_socket.connect(path, 5) as client:
        assert client.gettimeout() == 5
    server.join()
    assert refused.is_set()


def test_server_is_gone(bound):
    """Its socket is older than the time in which a server begins to listen."""
    _sock, path = bound
    os.utime(path, (0, 0))
    with pytest.raises(ConnectionRefusedError):
        unix_socket.connect(path)
    with pytest.raises(LabError, match="no QMP at .*refused"):
        Qmp(path)
    # The lock is free again.
    with pytest.raises(LabError, match="refused"):
        Qmp(path, 0.1)


def test_server_never_listens(bound, monkeypatch):
    """Also if the socket's time is in the future."""
    _sock, path = bound
    os.utime(path, (1 << 40, 1 << 40))
    monkeypatch.setattr(unix_socket, "YOUNG", 0.1)
    with pytest.raises(ConnectionRefusedError):
        unix_socket.connect(path)


def test_no_server(tmp_path):
    with pytest.raises(FileNotFoundError):
        unix_socket.connect(tmp_path / "socket")

# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of a saved guest as a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab.memory import CHUNK, PAGE, Memory, size_of  # noqa: E402

SIZE = 8 * CHUNK


@pytest.fixture
def memory():
    memory = Memory(SIZE)
    yield memory
    memory.close()


@pytest.mark.parametrize("text, size", [
    ("1G", 1 << 30), ("512M", 512 << 20), ("768", 768 << 20), ("2048k", 2 << 20), ("2g", 2 << 30),
    ("1T", 1 << 40), ("1.5G", 3 << 29), ("0.5", None), ("1.3G", None), ("1GB", None),
    ("512B", None), ("1G,slots=2,maxmem=4G", None), ("0", None), ("", None), ("512K", None),
    ("-1G", None), ("size=1G", None), ("1e3", None), ("99999999T", None)])
def test_sizes_as_qemu_takes_them(text, size):
    assert size_of(text) == size


def test_written_and_filled_in(memory, tmp_path):
    """The same contents, at the ends and around a chunk's border, too."""
    expected = bytearray(SIZE)
    for at in (0, PAGE, 3 * CHUNK - PAGE, 3 * CHUNK, 5 * CHUNK + 7 * PAGE, SIZE - PAGE):
        page = os.urandom(PAGE)
        expected[at : at + PAGE] = page
        os.pwrite(memory.fd, page, at)
    memory.write_to(tmp_path / "memory")
    assert (tmp_path / "memory").read_bytes() == expected
    other = Memory(SIZE)
    os.pwrite(other.fd, b"what QEMU wrote before", 2 * CHUNK)
    other.fill_from(tmp_path / "memory")
    assert os.pread(other.fd, SIZE, 0) == expected
    other.close()


def test_pages_of_zeros_take_no_room(memory, tmp_path):
    os.pwrite(memory.fd, bytes(4 * CHUNK), 0)
    os.pwrite(memory.fd, b"x", 2 * CHUNK)
    memory.write_to(tmp_path / "memory")
    assert (tmp_path / "memory").stat().st_blocks * 512 <= SIZE // 4
    other = Memory(SIZE)
    other.fill_from(tmp_path / "memory")
    assert os.fstat(other.fd).st_blocks * 512 <= SIZE // 4
    assert os.pread(other.fd, 2, 2 * CHUNK) == b"x\0"
    other.close()


def test_others_cannot_read_what_is_saved(memory, tmp_path):
    memory.write_to(tmp_path / "memory")
    assert (tmp_path / "memory").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        memory.write_to(tmp_path / "memory")


def test_it_cannot_shrink(memory):
    """So an adapter shares it (qemu-hw/qhca-memlink.c), even after it was opened by its
    name, as QEMU does it."""
    code = ("import os, sys; fd = os.open(sys.argv[1], os.O_RDWR); os.pwrite(fd, b'y', 5);"
            "os.ftruncate(fd, 4096)")
    done = subprocess.run([sys.executable, "-c", code, f"/proc/self/fd/{memory.fd}"],
                          pass_fds=[memory.fd], capture_output=True, text=True)
    assert "PermissionError" in done.stderr
    assert os.pread(memory.fd, 1, 5) == b"y"

# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of a guest that is saved, or starts from a saved one: a file without a name.

QEMU maps it, so its contents are copied from file to file, by the kernel. QEMU's own way,
which is to read them into its mapping, costs a page fault for each page: a second or two
of a CPU per guest."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
# Bytes to read at a time.
CHUNK = 1 << 20
UNITS = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# More than a host has; a larger file might not be possible.
MOST = 1 << 44


def size_of(text: str) -> int | None:
    """The bytes that QEMU takes from "-m TEXT"; None if TEXT says more than a number of MiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text.upper())
    size = float(found[1]) * UNITS[found[2]] if found else 0
    return int(size) if 0 < size <= MOST and not size % (1 << 20) else None


def _extents(fd: int) -> Iterator[tuple[int, int]]:
    """Where the file FD has data: offset and length."""
    size, at = os.fstat(fd).st_size, 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:      # no data after it
                return
            raise
        end = os.lseek(fd, at, os.SEEK_HOLE)
        yield at, end - at
        at = end


class Memory:
    """SIZE bytes, all zero. `fd` is for QEMU to inherit; close() when QEMU has started, or
    the contents have been filled in or written."""

    def __init__(self, size: int):
        self.fd = os.memfd_create("guest", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.fd, size)
        # An adapter shares it over a memory link only if it cannot shrink.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS,
                    fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)

    def close(self) -> None:
        os.close(self.fd)

    def write_to(self, path: Path) -> None:
        """Write the contents to a new file; where pages hold zeros, it has holes."""
        zeros = bytes(PAGE)
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as out:
            out.truncate(os.fstat(self.fd).st_size)
            for begin, length in _extents(self.fd):
                for at in range(begin, begin + length, CHUNK):
                    chunk = os.pread(self.fd, min(CHUNK, begin + length - at), at)
                    for n in range(0, len(chunk), PAGE):
                        page = chunk[n : n + PAGE]
                        if page != zeros and os.pwrite(out.fileno(), page, at + n) < len(page):
                            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def fill_from(self, path: Path) -> None:
        """Replace the contents by those of a file that write_to() has written."""
        for begin, length in _extents(self.fd):
            os.pwrite(self.fd, bytes(length), begin)
        with open(path, "rb") as source:
            for begin, length in _extents(source.fileno()):
                os.lseek(self.fd, begin, os.SEEK_SET)
                end = begin + length
                while begin < end:
                    sent = os.sendfile(self.fd, source.fileno(), begin, end - begin)
                    if not sent:
                        raise OSError(f"{path} ends too early")
                    begin += sent

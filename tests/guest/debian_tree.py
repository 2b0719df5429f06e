# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's build tree, assembled from Debian's packages of image and headers.

It holds the part of the results of `make bzImage modules` that `make kernel` reads: the image, the
configuration, the files for building modules, and only those modules that guests of the lab need.
"""

import os
import subprocess
from pathlib import Path

from qhca_lab.kernels import BZIMAGE
from qhca_lab.paths import BUILD, TOP

# These, and their dependencies.
MODULES = """virtio_blk virtio_console virtio_net ext4 9p 9pnet_virtio
    ib_uverbs rdma_ucm ib_umad rdma_rxe"""

COPY = """\
set -eu
version=$1 target=$2
headers=/usr/src/linux-headers-$version
mkdir -p "$target/arch/x86/boot"
cp "/boot/vmlinuz-$version" "$target/arch/x86/boot/bzImage"
cp -a "$headers/." "$target/"
# What is a link in a package leads to another package.
for link in $(find "$target" -maxdepth 1 -type l); do
    ln -sfn "$(readlink -f "$headers/${link##*/}")" "$link"
done
sed -i "s#$headers#$target#g" "$target/Makefile"
cp "/usr/lib/modules/$version"/modules.builtin* "$target/"
rm -f "$target"/modules.builtin.*bin
modprobe -S "$version" -a --show-depends $3 | awk '$1 == "insmod" { print $2 }' | sort -u |
while read -r ko; do
    name=${ko#*/kernel/}
    mkdir -p "$target/${name%/*}"
    xz -dc "$ko" >"$target/${name%.xz}"
    echo "${name%.ko.xz}.o"
done >"$target/modules.order"
"""


def make(target: Path) -> str:
    """Put a tree of the build root's kernel into TARGET; that kernel's version."""
    (headers,) = (BUILD / "root" / "usr" / "src").glob("linux-headers-*-amd64")
    version = headers.name.removeprefix("linux-headers-")
    target.mkdir()
    subprocess.run([str(TOP / "lab" / "in-root"), "sh", "-c", COPY, "sh", version, str(target),
                    " ".join(MODULES.split())], check=True, capture_output=True, text=True,
                   env=dict(os.environ, QHCA_BIND=str(target)))
    assert (target / BZIMAGE).stat().st_size > 1 << 20
    return version

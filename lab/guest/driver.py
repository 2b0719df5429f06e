# SPDX-License-Identifier: GPL-2.0-or-later
"""Load the built driver in this guest, with its dependencies.

    driver.py [MODULE.PARAMETER=VALUE ...]      (bin/qhca-load; e.g. qhca.layout=list)

A separate module, because boot.py calls it: an emulated CPU starts programs slowly, and
this saves four.
"""

import ctypes
import os
import re
import subprocess
import sys

import guestenv

# init_module(2) of x86-64, for which glibc has no function.
INIT_MODULE = 175


def loaded(module):
    return os.path.exists(f"/sys/module/{module}")


def images():
    """The contents of the modules' files, without debug information, which is nine tenths
    of a module."""
    # A kernel other than the image's has its own driver, and so may have a lab. Early
    # revisions have the modules as they were built only.
    built = guestenv.config().get("driver", "/qhca/build/driver")
    place = f"{built}/guest" if os.path.isdir(f"{built}/guest") else built
    found = {}
    for module in guestenv.MODULES:
        try:
            with open(f"{place}/{module}.ko", "rb") as f:
                found[module] = f.read()
        except FileNotFoundError:
            raise FileNotFoundError(f"no {module}.ko in {place.removeprefix('/qhca/')}: "
                                    "build it first") from None
    return found


def needs(image):
    """The modules that one needs, by its section .modinfo."""
    found = re.search(rb"\0depends=([^\0]*)\0", image)
    return found[1].decode().split(",") if found and found[1] else []


def insert(module, image, parameters):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(INIT_MODULE, image, ctypes.c_ulong(len(image)), " ".join(parameters).encode()):
        raise OSError(f"{module}.ko: {os.strerror(ctypes.get_errno())}: see the kernel's log")


def load(parameters):
    """Load the driver with PARAMETERS as on the command line. OSError if it is not possible; what is
    loaded already stays as it is."""
    missing = [m for m in guestenv.MODULES if not loaded(m)]
    if not missing:
        return
    found = images()
    wanted = {n for module in missing for n in needs(found[module])} - set(guestenv.MODULES)
    wanted = sorted(n for n in wanted if not loaded(n))
    if wanted:
        done = subprocess.run(["/usr/sbin/modprobe", "-a", *wanted], stdin=subprocess.DEVNULL)
        if done.returncode:
            raise OSError(f"modprobe -a {' '.join(wanted)}: status {done.returncode}")
    for module in missing:
        own = [p.removeprefix(f"{module}.") for p in parameters if p.startswith(f"{module}.")]
        insert(module, found[module], own)


if __name__ == "__main__":
    try:
        load(sys.argv[1:])
    except OSError as error:
        sys.exit(f"qhca-load: {error}")
